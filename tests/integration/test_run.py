"""`make run` (tools/run): holtd starts, a first sandbox does the main job before the reader's eyes, holtd goes on serving.
As root, as an ordinary user, with a port that is taken, and on a machine that forbids user namespaces."""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

from daemon import ASAN, BUILD, ROOT, die_with_parent, end_spawn, environment, wait_for

USER = 61234  # nobody's: it is in no passwd and has no range of ids
pytestmark = pytest.mark.skipif(ASAN, reason="about what people see, which the sanitizers do not change")


def test_make_run_builds_what_is_installed_and_no_test():
    commands = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "programs"], capture_output=True, text=True, check=True).stdout
    assert "tests/" not in commands.replace(ROOT, "")
    with open(f"{ROOT}/tools/install", encoding="utf-8") as f:
        installed = set(re.findall(r"^    echo \"755 \$build/(\S+) ", f.read(), re.M))
    assert len(installed) >= 6
    assert installed <= set(re.findall(r"(?: -o |cp -p \S+ )(\S+)(?= |$)", commands, re.M)), "tools/install wants what `make` does not build"
    rules = subprocess.run(["make", "-n", "-C", ROOT, "run"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"tools/build \S+ programs", rules) and "ninja" not in rules


@pytest.fixture
def place():
    """A directory that an ordinary user can reach, as tmp_path cannot be; removed with what is in it."""
    d = tempfile.mkdtemp(prefix="holt-run-")
    os.chmod(d, 0o755)
    yield d
    end_spawn(f"{d}/state")
    shutil.rmtree(d)


def reaches_the_sources(user):
    return subprocess.run(["test", "-x", f"{ROOT}/tools/run"], user=user, group=user, extra_groups=[], check=False).returncode == 0


@pytest.fixture
def ordinary_user():
    """A user who may look into this clone: in root's home, say, there is none."""
    if not reaches_the_sources(USER):
        pytest.skip("this clone is in a directory that is closed to other users")
    return USER


@pytest.fixture
def run(place):
    """Starts tools/run with its output in a file; (process, text so far)."""
    made = []

    def start(*args, before=(), user=None, listen="127.0.0.1:0"):
        os.makedirs(f"{place}/home", exist_ok=True)
        if user:
            for name in (place, f"{place}/home"):
                os.chown(name, user, user)
        env = environment({"HOME": f"{place}/home"})
        del env["HOLT_RUNTIME"]
        out = open(f"{place}/out", "wb")
        p = subprocess.Popen([*before, f"{ROOT}/tools/run", BUILD, "--state", f"{place}/state", "--listen", listen, *args], env=env,
                             stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=die_with_parent, user=user, group=user,
                             extra_groups=[] if user else None, cwd=place, start_new_session=True)
        out.close()
        made.append(p)

        def text():
            with open(f"{place}/out", encoding="utf-8") as f:
                return f.read()
        return p, text

    yield start
    for p in made:
        if p.poll() is None:
            p.kill()
        p.wait()


def shown(p, text):
    """All that it prints, up to the last line of what to try."""
    return wait_for(lambda: re.search(r"(?s).*\n  curl .*/holt/v1/info\n", text()) or p.poll() is not None and pytest.fail(text()), 20)[0]


def says_hello(text):
    return re.search(r"""\nA first sandbox:
  \S+/holt run -- sh -c '.*'
  hello from sb[-_]\w+: root, \d+ processes, no network
  \(made, run and removed in (\d+) ms\)

Try, in another terminal:
""", text)


@pytest.mark.parametrize("ordinary", [False, pytest.param(True, marks=pytest.mark.needs_root("is another user"))], ids=["ourselves", "ordinary user"])
def test_the_main_job_is_done(run, place, request, ordinary):
    user = request.getfixturevalue("ordinary_user") if ordinary else None
    p, text = run(user=user)
    seen = shown(p, text)
    assert says_hello(seen), seen
    assert int(says_hello(seen)[1]) < 2000
    export = re.search(r"^  export (HOLT_SERVER=\S+ HOLT_TOKEN=.*)$", seen, re.M)[1]
    r = subprocess.run(["/bin/sh", "-c", f"export {export}; {BUILD}/holt run -- echo again"], capture_output=True, timeout=60,
                       env=environment(), user=user, group=user, extra_groups=[] if user else None)
    assert r.stdout == b"again\n", "what it says to type works, and it goes on serving"
    os.killpg(p.pid, signal.SIGINT)  # as Ctrl-C does: everything that it started gets it
    assert p.wait(60) == 0
    left = [name for name in os.listdir(f"{place}/state/sb") if name.startswith("sb")]
    assert not left


def test_the_readers_end_does_not_wait_for_what_outlives_holtd(run, place):
    """holt-spawn goes on; whoever reads `make run` through a pipe still sees its end."""
    env = environment({"HOME": place, "HOLT_RUNTIME": "native"})
    with subprocess.Popen([f"{ROOT}/tools/run", BUILD, "--state", f"{place}/state", "--listen", "127.0.0.1:0"], env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=die_with_parent) as p:
        while b"curl" not in p.stdout.readline():
            assert p.poll() is None
        p.terminate()
        p.communicate(timeout=60)
        assert p.returncode == 0


def test_a_port_that_is_taken(run):
    with socket.create_server(("127.0.0.1", 0)) as s:
        address = f"127.0.0.1:{s.getsockname()[1]}"
        p, text = run(listen=address)
        assert p.wait(60) == 3
        assert f"holtd: listen on {address}: Address already in use\nhint: " in text() and "make run ARGS=" in text()


@pytest.fixture
def forbidding():
    """A user namespace with our ids in which no further ones may be made; its holder's pid."""
    if os.geteuid() != 0:
        pytest.skip("needs root: maps more than one id")
    p = subprocess.Popen(["unshare", "--user", "sleep", "60"], preexec_fn=die_with_parent)
    wait_for(lambda: os.readlink(f"/proc/{p.pid}/ns/user") != os.readlink("/proc/self/ns/user"))
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{p.pid}/{name}", "w", encoding="ascii") as f:
            f.write("0 0 65536")
    yield p.pid
    p.kill()
    p.wait()


def test_a_machine_that_forbids_namespaces(run, place, forbidding, ordinary_user):
    """It says what is missing and the one command that mends it, and serves all the same."""
    script = f"echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --reuid {ordinary_user} --regid {ordinary_user} --clear-groups \"$@\""
    os.makedirs(f"{place}/home")
    for name in (place, f"{place}/home"):
        os.chown(name, USER, USER)
    p, text = run(before=["nsenter", "--user", "--target", str(forbidding), "/bin/sh", "-c", script, "sh"])
    seen = shown(p, text)
    assert re.search(r"\n  holt: create a sandbox: runtime 'native' does not work on this host: .*make a user namespace: No space left", seen)
    assert "  holt: native sandboxes cannot run here, because of: user namespaces\n" \
           "  hint: sudo sysctl -w user.max_user_namespaces=65536\n" in seen
    assert not says_hello(seen) and p.poll() is None
    p.terminate()
    assert p.wait(60) == 0
