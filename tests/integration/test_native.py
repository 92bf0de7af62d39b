"""`holt run` and the life of a sandbox on the native runtime: namespaces, overlay, cgroups, seccomp, for real.

As whoever runs the tests, and, if that is root, with a holtd of an ordinary user: with one id, with ranges of ids, and with
ranges and cgroups of its own.
"""
import contextlib
import glob
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from daemon import BUILD, SLOW, environment, native, wait_for
from home import MODES, Home


@pytest.fixture(scope="module", params=MODES)
def mode(request):
    return request.param


@pytest.fixture
def home(mode):
    h = Home(mode)
    yield h
    h.close()


@pytest.fixture(scope="module")
def holtd(mode):
    h = Home(mode)
    try:
        d = h.native()
        yield d
        d.clear()
        wait_for(lambda: not os.listdir(f"{d.state}/sb"))  # holt-spawn's end would leave what is still going
        d.stop()
    finally:
        h.close()


def holt(holtd, *args, **more):
    env = environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token})
    return subprocess.run([f"{BUILD}/holt", *args], env=env, capture_output=True, timeout=60 * SLOW, **more)


def test_a_reprovisioned_one_starts_without_its_files(holtd):
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"env": {"KEPT": "yes"}})["id"]
    path = f"/holt/v1/sandboxes/{box}"
    holtd.ok("POST", f"{path}/execs", {"command": "echo x > /workspace/file"})
    for before in ("running", "stopped"):
        assert holtd.ok("GET", path)["state"] == before
        made = holtd.ok("POST", f"{path}/reprovision")
        assert (made["id"], made["state"]) == (box, "running")
        r = holtd.ok("POST", f"{path}/execs", {"command": "echo $KEPT; ls /workspace; echo y > /workspace/file"})
        assert r["stdout"] == "yes\n", r
        holtd.ok("POST", f"{path}/stop")
    holtd.ok("POST", f"{path}/start")
    assert holtd.ok("POST", f"{path}/execs", {"command": "cat /workspace/file"})["stdout"] == "y\n"
    holtd.ok("DELETE", path)


def test_an_owner_that_the_sandbox_does_not_have_is_refused(holtd, mode):
    """With one id (rootless) that is everybody but root; with ranges who is beyond them."""
    box = holtd.ok("POST", "/holt/v1/sandboxes", {})["id"]
    has_many = mode != "rootless" and (mode != "own" or os.geteuid() == 0 or has_ranges())
    for field, value, known in (("uid", 0, True), ("uid", 1000, has_many), ("gid", 1000, has_many), ("uid", 4294967294, False)):
        path = f"/tmp/of-{field}-{value}"
        status, reply, _ = holtd.request("PUT", f"/holt/v1/sandboxes/{box}/files?path={path}&{field}={value}", b"x")
        assert status == (204 if known else 501), (field, value, reply)
        assert known or "'uid' or 'gid'" in reply["error"]["message"], reply
    kept = f"/holt/v1/sandboxes/{box}/files?path=/tmp/of-uid-0"
    assert holtd.request("PUT", f"{kept}&uid=4294967294", b"y")[0] == 501
    names = [f["name"] for f in holtd.ok("GET", f"/holt/v1/sandboxes/{box}/files/list?path=/tmp")["files"]]
    assert "of-uid-0" in names and "of-uid-4294967294" not in names, names  # what is refused makes no file and empties none
    assert holtd.ok("GET", kept) == "x"
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{box}")


def test_run_passes_everything_through(holtd):
    r = holt(holtd, "run", "--", "sh", "-c", "cat; echo err >&2; exit 7", input=b"a\0b\xff")
    assert (r.returncode, r.stdout, r.stderr) == (7, b"a\0b\xff", b"err\n")
    assert holt(holtd, "run", "--", "sh", "-c", "kill -9 $$").returncode == 128 + 9
    assert holt(holtd, "run", "--", "/no/such/program").returncode == 127
    assert holt(holtd, "run", "--", "python3", "-c", "print(1)").stdout == b"1\n"


def test_it_is_another_computer(holtd):
    r = holt(holtd, "run", "--", "sh", "-c", "id -u; hostname; echo $$; ls /proc | grep -c '^[0-9]'; cat /etc/shadow; ls /sys/class/net")
    lines = r.stdout.decode().split("\n")
    assert lines[0] == "0" and lines[1].startswith("sb") and lines[1] != os.uname().nodename
    assert int(lines[3]) < 10, "only its own processes"
    if os.access("/etc/shadow", os.R_OK):
        with open("/etc/shadow", encoding="utf-8") as f:
            assert f.readline() not in r.stdout.decode()
    probe = "import socket; s = socket.socket(); s.settimeout(2); print(s.connect_ex(('127.0.0.1', %d)))" % holtd.port
    assert holt(holtd, "run", "--", "python3", "-c", probe).stdout.strip() not in (b"", b"0"), "holtd itself is out of reach"


def test_nothing_is_left(holtd):
    holt(holtd, "run", "--", "true")
    wait_for(lambda: not holtd.ok("GET", "/holt/v1/sandboxes")["sandboxes"])
    left = os.listdir(f"{holtd.state}/sb") if os.path.isdir(f"{holtd.state}/sb") else []
    assert not [n for n in left if n.startswith("sb_")], left
    with open("/proc/self/mounts", encoding="utf-8") as f:
        assert f"{holtd.state}/sb/sb_" not in f.read()


def has_ranges():
    """This user has subordinate ids, as Debian gives them to everybody it makes."""
    with open("/etc/subuid", encoding="ascii") as f:
        return bool(shutil.which("newuidmap")) and re.search(rf"^({pwd.getpwuid(os.geteuid()).pw_name}|{os.geteuid()}):", f.read(), re.M) is not None


@pytest.mark.parametrize("upper", ["memory", "disk"])
def test_users_other_than_root(holtd, mode, upper):
    """`/` is everybody's to walk, and a home that is not there is no reason to refuse."""
    if mode == "rootless" or (mode == "own" and os.geteuid() != 0 and not has_ranges()):
        r = holt(holtd, "run", "--upper", upper, "-u", "nobody", "--", "true")
        assert r.returncode == 125 and b"newuidmap" in r.stderr, "one id is all there is, and the remedy is told"
        return
    r = holt(holtd, "run", "--upper", upper, "-u", "nobody", "--", "sh", "-c", "id -un; pwd; stat -c %a /; touch /tmp/f && echo made; touch /f")
    assert r.stdout == b"nobody\n/\n755\nmade\n", r.stderr
    assert b"Permission denied" in r.stderr
    r = holt(holtd, "run", "--upper", upper, "-u", "1000:1000", "-w", "/workspace", "--", "sh", "-c", "id -u; pwd")
    assert r.stdout == b"1000\n/workspace\n", r.stderr


def test_files_stay_over_a_stop(holtd):
    assert holt(holtd, "create", "--name", "keep").returncode == 0
    assert holt(holtd, "exec", "keep", "--", "sh", "-c", "echo kept > /root/f").returncode == 0
    assert holt(holtd, "stop", "keep").returncode == 0
    assert holt(holtd, "start", "keep").returncode == 0
    assert holt(holtd, "exec", "keep", "--", "cat", "/root/f").stdout == b"kept\n"
    assert holt(holtd, "rm", "keep").returncode == 0


@pytest.mark.parametrize("verb", ["stop", "restart"])
def test_a_refused_stop_changes_nothing(holtd, verb):
    """Files in memory cannot be kept: that is said before a command is ended, and the sandbox goes on with them."""
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"name": "m", "upper": "memory"})["id"]
    try:
        assert holt(holtd, "exec", "m", "--", "sh", "-c", "echo kept > /root/f").returncode == 0
        live = holtd.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["sleep", "600"], "background": True})["id"]
        status, reply, _ = holtd.request("POST", f"/holt/v1/sandboxes/{box}/{verb}", {})
        assert status == 501 and "in memory" in str(reply) and "holt rm" in str(reply), reply
        assert holtd.ok("GET", f"/holt/v1/sandboxes/{box}")["state"] == "running"
        assert holtd.ok("GET", f"/holt/v1/sandboxes/{box}/execs/{live}")["state"] == "running", "no command was ended"
        assert holt(holtd, "exec", "m", "--", "cat", "/root/f").stdout == b"kept\n"
    finally:
        holtd.ok("DELETE", f"/holt/v1/sandboxes/{box}")


# What an ordinary user lacks without cgroups; processes are then limited by an rlimit, which holds where there is one id.
UNENFORCED = {"rootless": ["memory_bytes", "kill", "pause"], "ranges": ["memory_bytes", "pids", "kill", "pause"]}


def test_what_is_not_enforced_is_said(holtd, mode):
    assert holt(holtd, "create", "--name", "said", "--memory", "64m", "--pids", "32", "--nofile", "100").returncode == 0
    box = holtd.ok("GET", "/holt/v1/sandboxes/said")
    if mode != "own" or os.geteuid() == 0:
        assert box["unenforced"] == UNENFORCED.get(mode, []), box
    assert holt(holtd, "rm", "said").returncode == 0


def test_limits_hold(holtd):
    assert holt(holtd, "create", "--name", "small", "--memory", "64m", "--pids", "32").returncode == 0
    box = holtd.ok("GET", "/holt/v1/sandboxes/small")
    if "pids" not in box["unenforced"]:
        r = holt(holtd, "exec", "small", "--", "sh", "-c", "for i in $(seq 100); do sleep 60 & done; echo done")
        assert r.returncode != 0 or b"done" not in r.stdout, "a hundred processes do not fit"
    if "memory_bytes" not in box["unenforced"]:
        r = holt(holtd, "exec", "small", "--", "python3", "-c", "b'x' * (200 << 20)")
        seen = [holtd.ok("GET", f"/holt/v1/{path}") for path in ("sandboxes/small/execs", "sandboxes/small/stats", "events?type=sandbox.oom")]
        assert r.returncode == 128 + 9 and b"killed: out of memory" in r.stderr, seen
        wait_for(lambda: holtd.ok("GET", "/holt/v1/events?type=sandbox.oom")["events"])
        assert holtd.ok("GET", "/holt/v1/sandboxes/small/execs")["execs"][-1]["oom"]
    r = holt(holtd, "exec", "small", "--", "sh", "-c", "kill -9 $$")
    assert r.returncode == 128 + 9 and r.stderr == b"", "a kill that was not for want of memory is not called one"
    assert holt(holtd, "rm", "small").returncode == 0


def init_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"^PPid:\s+(\d+)$", f.read(), re.M)[1])


def pid_of(*command):
    """Of the host: the process with this command line."""
    for at in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(at, "rb") as f:
            if f.read().rstrip(b"\0").split(b"\0") == [c.encode() for c in command]:
                return int(at.split("/")[2])
    return None


def test_who_ended_by_itself_was_not_timed_out(holtd):
    """Though init, on a busy machine, comes to tell of it after the time was over."""
    assert holt(holtd, "create", "--name", "late").returncode == 0
    command = ["sleep", f"0.7{os.getpid()}"]
    x = holtd.ok("POST", "/holt/v1/sandboxes/late/execs", {"command": command, "background": True, "timeout_ms": 1200})
    wait_for(lambda: pid_of(*command))
    pid = pid_of(*command)
    init = init_of(pid)
    began = time.monotonic()
    os.kill(init, signal.SIGSTOP)
    try:
        wait_for(lambda: pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        time.sleep(max(0, began + 1.6 - time.monotonic()))  # its time is over, and init has not told
        assert holtd.ok("GET", f"/holt/v1/sandboxes/late/execs/{x['id']}")["state"] == "running"
    finally:
        os.kill(init, signal.SIGCONT)
    wait_for(lambda: holtd.ok("GET", f"/holt/v1/sandboxes/late/execs/{x['id']}")["state"] == "exited")
    r = holtd.ok("GET", f"/holt/v1/sandboxes/late/execs/{x['id']}")
    assert (r["exit_code"], r["signal"], r["timed_out"]) == (0, None, False), r
    assert holt(holtd, "rm", "late").returncode == 0


BOMB = """import os
while True:
    try: os.fork()
    except OSError: pass
    try: os.waitpid(-1, os.WNOHANG)
    except OSError: pass
"""


def test_an_end_beside_a_fork_bomb_is_told(holtd):
    assert holt(holtd, "create", "--name", "bombed", "--pids", "128").returncode == 0
    try:
        if "pids" in holtd.ok("GET", "/holt/v1/sandboxes/bombed")["unenforced"]:
            pytest.skip("the number of processes is not limited here")
        quiet = holtd.ok("POST", "/holt/v1/sandboxes/bombed/execs", {"command": ["sleep", "1"], "background": True, "timeout_ms": 3000})
        bomb = holtd.ok("POST", "/holt/v1/sandboxes/bombed/execs", {"command": ["python3", "-c", BOMB], "background": True, "timeout_ms": 1500})
        for x, want in ((quiet, (0, False)), (bomb, (128 + 9, True))):
            wait_for(lambda x=x: holtd.ok("GET", f"/holt/v1/sandboxes/bombed/execs/{x['id']}")["state"] == "exited")
            r = holtd.ok("GET", f"/holt/v1/sandboxes/bombed/execs/{x['id']}")
            assert (r["exit_code"], r["timed_out"]) == want, r
        wait_for(lambda: holtd.ok("GET", "/holt/v1/sandboxes/bombed/stats")["pids"] == 1)
        assert holt(holtd, "exec", "bombed", "--", "true").returncode == 0, "nobody is left, and it is of use"
    finally:
        assert holt(holtd, "rm", "bombed").returncode == 0


@pytest.mark.parametrize("limits", [[], ["--memory", "256m", "--pids", "64"]], ids=["unlimited", "limited"])
def test_stats_are_measured(holtd, limits):
    """Also where no cgroup counts, as on cgroup v1 without limits."""
    assert holt(holtd, "create", "--name", "used", *limits).returncode == 0
    work = "import threading, time; x = bytearray(40 << 20); threading.Thread(target=time.sleep, args=(60,)).start(); print('up', flush=True)"
    assert holt(holtd, "exec", "used", "-d", "--", "python3", "-c", work).returncode == 0
    wait_for(lambda: b"up" in holt(holtd, "logs", "used").stdout)
    got = holtd.ok("GET", "/holt/v1/sandboxes/used/stats")
    assert 40 << 20 < got["memory_bytes"] < 200 << 20 and got["memory_peak_bytes"] >= got["memory_bytes"], got
    assert got["pids"] == 3 and got["cpu_us"] > 1000 and got["disk_bytes"] > 0, got
    assert b"used" in holt(holtd, "top", "--once").stdout
    assert holt(holtd, "rm", "used").returncode == 0


def test_pause_stops_and_stop_ends_everything(holtd):
    """By the freezer or by signals: a counter stands still, goes on, and its daemons go with it."""
    assert holt(holtd, "create", "--name", "clock").returncode == 0
    x = holtd.ok("POST", "/holt/v1/sandboxes/clock/execs",
                 {"command": "setsid sleep 600 & while :; do echo t; sleep 0.01; done", "background": True})

    def ticks():
        return len(holt(holtd, "logs", "clock", x["id"]).stdout)

    wait_for(ticks)
    assert holt(holtd, "pause", "clock").returncode == 0

    def stands_still():
        seen = ticks()
        time.sleep(0.3)
        return seen if ticks() == seen else None

    before = wait_for(stands_still)  # what it wrote before may still be on its way
    assert holt(holtd, "resume", "clock").returncode == 0
    wait_for(lambda: ticks() > before)
    assert holtd.request("POST", f"/holt/v1/sandboxes/clock/execs/{x['id']}/cancel")[0] < 300
    wait_for(lambda: holtd.ok("GET", f"/holt/v1/sandboxes/clock/execs/{x['id']}")["state"] not in ("running", "starting"))
    wait_for(lambda: b"sleep" not in holt(holtd, "exec", "clock", "--", "sh", "-c", "cat /proc/[0-9]*/comm").stdout)
    assert holt(holtd, "rm", "clock").returncode == 0


def test_commands_outlive_the_daemon(home):
    d = home.native()
    try:
        d.ok("POST", "/holt/v1/sandboxes", {"name": "box"})
        x = d.ok("POST", "/holt/v1/sandboxes/box/execs",
                 {"command": "for i in $(seq 200); do echo line $i; sleep 0.01; done", "background": True})
        time.sleep(0.5)
        d.process.kill()
        d.process.wait()
        e = home.native()
        try:
            def ended():
                return e.ok("GET", f"/holt/v1/sandboxes/box/execs/{x['id']}")["state"] == "exited"
            wait_for(ended, 60)
            r = holt(e, "logs", "box", x["id"])
            assert r.stdout.decode() == "".join(f"line {i}\n" for i in range(1, 201))
            e.request("DELETE", "/holt/v1/sandboxes/box")
            wait_for(lambda: not e.ok("GET", "/holt/v1/sandboxes")["sandboxes"])
        finally:
            e.stop()
    finally:
        d.kill()


def spawn_of(d):
    """The pid of its holt-spawn, which leads a session of its own."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read().split(b"\0")[:3] == [b"holt-spawn", b"--state", d.state.encode()] and os.getsid(int(pid)) == int(pid):
                    return int(pid)
        except OSError:
            pass
    return None


def test_a_holt_spawn_that_hangs_or_dies_does_not_stop_holtd(tmp_path):
    d = native(tmp_path / "d")
    silent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        d.ok("POST", "/holt/v1/sandboxes", {"name": "box"})
        os.unlink(f"{d.state}/spawn.sock")
        silent.bind(f"{d.state}/spawn.sock")
        silent.listen(8)  # it takes connections and never says a word
        dead = spawn_of(d)
        os.kill(dead, signal.SIGKILL)
        end, slowest = time.monotonic() + 3, 0.0
        while time.monotonic() < end:
            began = time.monotonic()
            assert holt(d, "exec", "box", "--", "true").returncode == 0, "what runs needs no holt-spawn"
            slowest = max(slowest, time.monotonic() - began)
        assert slowest < 4.5 * SLOW, f"holtd did not answer for {slowest:.1f} s"
        silent.close()
        assert holt(d, "create", "--name", "later").returncode == 0, "a new holt-spawn makes it"
        assert spawn_of(d) not in (None, dead)
        assert not os.path.exists(f"/proc/{dead}"), "the dead one was reaped"
    finally:
        silent.close()
        d.clear()
        d.stop()


@pytest.mark.skipif(os.geteuid() != 0 or not os.path.isdir("/sys/fs/cgroup/memory"), reason="on cgroup v1 only holt-spawn sees it")
def test_a_holt_spawn_that_is_late_is_asked_who_lacked_memory(tmp_path):
    """The end of a command and the reason of its end come by two ways."""
    d = native(tmp_path / "d")
    stopped = None
    try:
        box = d.ok("POST", "/holt/v1/sandboxes", {"memory_bytes": 64 << 20})["id"]
        stopped = spawn_of(d)
        os.kill(stopped, signal.SIGSTOP)
        x = d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["python3", "-c", "b'x' * (200 << 20)"], "background": True})["id"]
        [group] = glob.glob(f"/sys/fs/cgroup/memory/**/{box}", recursive=True)

        def says(name, text):
            with open(f"{group}/{name}", encoding="ascii") as f:
                return re.search(text, f.read())

        wait_for(lambda: says("memory.oom_control", "oom_kill 1") and says("cgroup.procs", r"\A\d+\n\Z"), 30)  # init alone
        plain = d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["true"]})
        assert plain["exit_code"] == 0 and not plain["oom"], "only who was killed waits"
        os.kill(stopped, signal.SIGCONT)
        r = wait_for(lambda: (lambda r: r if r["state"] == "exited" else None)(d.ok("GET", f"/holt/v1/sandboxes/{box}/execs/{x}")))
        assert r["exit_code"] == 128 + 9 and r["oom"], r
        d.request("DELETE", f"/holt/v1/sandboxes/{box}")
        # The event may be committed after the command's row: by the destroyed one, it is.
        wait_for(lambda: d.ok("GET", "/holt/v1/events?type=sandbox.destroyed")["events"])
        assert len(d.ok("GET", "/holt/v1/events?type=sandbox.oom")["events"]) == 1
    finally:
        if stopped:
            os.kill(stopped, signal.SIGCONT)
        d.stop()


def test_an_imported_image_runs(holtd, tmp_path):
    """Unpacked in a throw-away sandbox, mounted as a layer; the one program in it is static."""
    os.makedirs(tmp_path / "root/bin")
    shutil.copy(f"{BUILD}/holt-unpack", tmp_path / "root/bin/tool")
    r = holt(holtd, "image", "import", str(tmp_path / "root"), "--name", "tool:1")
    assert r.returncode == 0, r.stderr
    assert holt(holtd, "run", "--image", "tool:1", "--", "/bin/sh").returncode == 127, "the host's programs are not in it"
    r = holt(holtd, "run", "--image", "tool:1", "--", "/bin/tool", "--no-such-flag")
    assert r.returncode not in (0, 125, 126, 127), r.stderr
    assert holt(holtd, "image", "rm", "tool:1").returncode == 0


@pytest.mark.needs_root("gives directories to another user")
def test_what_the_operator_must_allow(holtd, tmp_path):
    """nesting and host mounts: refused with the setting's name, and holt-spawn is told of what the settings allow."""
    r = holt(holtd, "run", "--nesting", "--", "true")
    assert r.returncode == 125 and b"setting 'nesting'" in r.stderr
    for name in ("rw", "ro"):
        os.makedirs(tmp_path / name)
        (tmp_path / name / "f").write_text(f"of the host, {name}\n")
        os.chown(tmp_path / name, 12345, 12345)
    mounts = json.dumps([{"kind": "host", "source": f"{tmp_path}/{n}", "target": f"/{n}", "readonly": n == "ro"} for n in ("rw", "ro")])
    r = holt(holtd, "run", "--mounts", mounts, "--", "true")
    assert r.returncode == 125 and b"setting 'host_mounts'" in r.stderr
    d = native(tmp_path / "d", config=f"nesting: true\nhost_mounts: ['{tmp_path}/rw', '{tmp_path}/ro:ro']\n")
    try:
        assert holt(d, "run", "--nesting", "--", "unshare", "-Urm", "mount", "-t", "tmpfs", "t", "/mnt").returncode == 0
        r = holt(d, "run", "--", "unshare", "-Urm", "true")
        assert r.returncode == 1 and b"Operation not permitted" in r.stderr, "only where it was asked for"
        r = holt(d, "run", "--mounts", mounts, "--", "sh", "-c", "cat /rw/f /ro/f; echo new > /rw/g; echo no > /ro/g")
        assert r.stdout == b"of the host, rw\nof the host, ro\n" and b"/ro/g: Read-only file system" in r.stderr
        assert (tmp_path / "rw/g").read_text() == "new\n"
        r = holt(d, "run", "--mounts", mounts.replace('"readonly": true', '"readonly": false'), "--", "true")
        assert r.returncode == 125, "':ro' allows no more than that"
        assert d.ok("POST", "/holt/v1/sandboxes", {"nesting": True, "name": "n"})["nesting"]
        assert holt(d, "rm", "n").returncode == 0
    finally:
        d.stop()
