"""The installed units under systemd: the first start after a `make run` as root, an upgrade, the removal, a user's own unit.

Each test goes on with what the one before has left, as a person would; the last line of defence is that the machine is thrown away.
"""
import os
import pwd
import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = f"{ROOT}/build"
STATE = "/var/lib/holt"
UNITS = ("holt-spawn", "holt-egress", "holtd")
sys.path.insert(0, f"{ROOT}/tests/tools")

from waiting import wait_for  # noqa: E402

for name in [n for n in os.environ if n.startswith("HOLT_")]:
    del os.environ[name]  # the tests' own: holtd takes none that it does not know

RESTRICTED = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
USER = "dev"


def sh(line, status=0, user=None):
    argv = ["sh", "-c", line]
    if user:
        argv = ["runuser", "-u", user, "--", "env", f"HOME=/home/{user}", f"XDG_RUNTIME_DIR=/run/user/{pwd.getpwnam(user).pw_uid}", *argv]
    r = subprocess.run(argv, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, check=False)
    assert status is None or r.returncode == status, f"{line}: {r.returncode}\n{r.stdout}\n{r.stderr}\n{journal()}"
    return r.stdout + r.stderr


def journal():
    return subprocess.run(["journalctl", "-b", "--no-pager", "-n", "60", "-u", "holtd", "-u", "holt-spawn"], capture_output=True, text=True,
                          check=False).stdout


def healthy():
    try:
        with urllib.request.urlopen("http://127.0.0.1:8122/healthz", timeout=20) as f:
            return f.status == 200
    except OSError:
        return False


def install(*args):
    return sh(f"{ROOT}/tools/install {' '.join(args) or BUILD} '' /usr/local")


def holt(line, **more):
    return sh(f"/usr/local/bin/holt {line}", **more)


def main_pid(unit):
    return int(sh(f"systemctl show -p MainPID --value {unit}"))


def owner(pid):
    return pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name


def is_up():
    assert not [u for u in UNITS if "failed" in sh(f"systemctl is-active {u}", None)], journal()
    return healthy()


@pytest.fixture(scope="module", autouse=True)
def person():
    if subprocess.run(["id", USER], capture_output=True, check=False).returncode != 0:
        sh(f"useradd -m -s /bin/bash {USER}")
    yield


def test_the_service_takes_over_what_root_has_used():
    """`make run` as root, Ctrl-C, `holt down`, `make install`, `systemctl enable --now holtd`: it serves, as its user, and has the sandbox."""
    p = subprocess.Popen([f"{BUILD}/holtd"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_for(lambda: healthy() or p.poll() is not None, 60)
    assert p.poll() is None, p.stdout.read()
    sh(f"{BUILD}/holt create --name old && {BUILD}/holt exec old -- sh -c 'echo kept > /root/f'")
    p.send_signal(signal.SIGINT)
    said = p.communicate(timeout=60)[0]
    assert "1 sandbox goes on without it" in said and "holt down" in said, said
    assert "ended 1 sandbox" in sh(f"{BUILD}/holt down")
    assert os.stat(f"{STATE}/sb").st_uid == 0, "a holtd of root's: its own files are those of the number that it drops to"
    out = install()
    assert "/usr/local/lib/systemd/system/holtd.service" in out and pwd.getpwnam("holt").pw_uid != 0
    sh("systemctl enable --now holtd")
    wait_for(is_up, 120)
    assert owner(main_pid("holtd")) == "holt" and owner(main_pid("holt-spawn")) == "root"
    assert pwd.getpwuid(os.stat(f"{STATE}/holt.db").st_uid).pw_name == "holt"
    assert "hello" in holt("run -- echo hello")
    holt("start old")
    assert holt("exec old -- cat /root/f") == "kept\n"


def test_an_upgrade_restarts_the_daemons_and_keeps_sandboxes():
    command = re.search(r"ex_\w+", holt("exec old -d -- sh -c 'sleep 20; echo through'"))[0]
    before = [main_pid(u) for u in UNITS]
    out = install()
    assert all(f"restarted {u}.service" in out for u in UNITS), out
    wait_for(is_up, 120)
    assert not set(before) & {main_pid(u) for u in UNITS}
    assert "through" in sh(f"/usr/local/bin/holt wait old {command} >/dev/null; /usr/local/bin/holt logs old {command}")


def test_a_restart_of_the_machine_would_start_it():
    assert sh("systemctl is-enabled holtd") == "enabled\n"
    sh(f"systemctl stop {' '.join(UNITS)} && systemctl start multi-user.target")
    sh("systemctl start holtd")
    wait_for(is_up, 120)
    assert "old" in holt("ls")


def test_uninstall_says_what_it_leaves_and_removes_it_when_asked():
    out = install("--remove")
    for words in ("holtd.service, which is running", "/var/lib/holt (", "user holt", "PURGE=yes"):
        assert words in out, out
    assert not os.path.exists("/usr/local/bin/holtd") and os.path.exists(f"{STATE}/holt.db")
    install()
    out = install("--remove", "--purge")
    assert "left on this machine" not in out, out
    assert not os.path.exists(STATE) and not os.path.exists("/usr/local/bin/holt")
    assert "holt" not in [u.pw_name for u in pwd.getpwall()]
    assert sh("pgrep -x 'holt[d-].*'", None) == ""
    assert sh("systemctl list-unit-files 'holt*' --no-legend", None).strip() == ""


@pytest.mark.skipif(not os.path.exists(RESTRICTED), reason="this kernel does not restrict user namespaces by AppArmor")
def test_apparmor_profile_makes_rootless_work():
    """As Ubuntu has it: the first words are the one command, which is not to switch the restriction off; the profile is enough."""
    assert open(RESTRICTED, encoding="ascii").read().strip() == "1", "the distribution's default"
    out = sh(f"timeout -s INT 60 {ROOT}/tools/run {BUILD} --listen 127.0.0.1:0", None, user=USER)
    assert "install --apparmor" in out, out
    assert "restrict_unprivileged_userns=0" not in out + sh(f"{BUILD}/holt doctor", None, user=USER)
    install()
    assert "Native sandboxes can run here" in holt("doctor", user=USER)
    assert open(RESTRICTED, encoding="ascii").read().strip() == "1"


def test_a_persons_own_unit():
    """`systemctl --user enable --now holt`: without root, with limits of the user's own cgroups."""
    if not os.path.exists("/usr/local/bin/holtd"):
        install()
    sh(f"loginctl enable-linger {USER}")
    wait_for(lambda: "running" in sh("systemctl --user is-system-running", None, user=USER), 120)
    sh("systemctl --user enable --now holt", user=USER)
    wait_for(healthy, 120)
    assert sh("/usr/local/bin/holt run -- id -un", user=USER) == "root\n"
    assert "ended holtd" in sh("/usr/local/bin/holt down", user=USER)
    time.sleep(2)
    assert not healthy(), "a clean end is not restarted"
    assert "removed" in sh("/usr/local/bin/holt purge --yes", user=USER)
    assert not os.path.exists(f"/home/{USER}/.local/state/holt")
    install("--remove", "--purge")
