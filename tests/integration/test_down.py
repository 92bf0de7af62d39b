"""`holt down` and `holt purge`: whatever runs of an installation ends, whatever it has kept goes, and nothing of others."""
import json
import os
import re
import signal
import subprocess

import pytest

from daemon import BUILD, ROOT, environment, is_running, programs_of, wait_for
from home import MODES, Home


@pytest.fixture(params=MODES)
def home(request):
    h = Home(request.param)
    yield h
    h.close()


def holt(home, *args, status=0, typed=None):
    def enter():
        if home.user:
            home.user.enter()
    path = f"{BUILD}/holt"
    # The leak check ends what a sanitized holt-spawn clones.
    env = environment({"HOME": home.path, "ASAN_OPTIONS": environment()["ASAN_OPTIONS"] + ":detect_leaks=0"})
    r = subprocess.run([home.user.path(path) if home.user else path, *args], capture_output=True, text=True, timeout=120, env=env,
                       stdin=subprocess.DEVNULL if typed is None else None, input=typed, preexec_fn=enter, check=False)
    assert r.returncode == status, f"{r.stdout}\n{r.stderr}"
    return r.stdout + r.stderr


def leftovers(state):
    return subprocess.run([f"{ROOT}/tools/leftovers", state], capture_output=True, text=True, timeout=60, check=False).stdout


def end(holtd, sig):
    holtd.process.send_signal(sig)
    holtd.process.wait(60)
    holtd._reader.join(5)


def create(holtd, **spec):
    return holtd.ok("POST", "/holt/v1/sandboxes", spec)["id"]


def run(holtd, box, line):
    reply = holtd.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["sh", "-c", line]})
    assert reply["exit_code"] == 0, reply
    return reply["stdout"]


def world(holtd, many_ids):
    """Sandboxes with files on disk, with files in memory, and with a network, and a file that belongs to a subordinate id."""
    disk, memory = create(holtd, upper="disk"), create(holtd, upper="memory")
    net = create(holtd, network={"mode": "allowlist", "allow": ["example.test"]})
    run(holtd, disk, "echo kept > /root/f; mkdir -p /root/closed/in; chmod 0 /root/closed")
    if many_ids:
        run(holtd, disk, "mkdir /root/theirs; touch /root/theirs/f; chown -R 1000:1000 /root/theirs; chmod 700 /root/theirs")
    holtd.ok("POST", f"/holt/v1/sandboxes/{memory}/execs", {"command": ["sleep", "1000"], "background": True})
    return disk, memory, net


def start(holtd, box):
    """A holtd that has just started may still be clearing up after the sandbox's death: 409 says to try again."""
    def tried():
        status, reply, _ = holtd.request("POST", f"/holt/v1/sandboxes/{box}/start")
        assert status < 300 or (status == 409 and "try again when that is done" in json.dumps(reply)), reply
        return status < 300
    wait_for(tried)


def inits(state):
    return [int(open(f"{state}/sb/{b}/record", encoding="ascii").read().split()[0]) for b in os.listdir(f"{state}/sb")]


def test_down_ends_all_and_purge_removes_all(home):
    many = has_users(home)
    holtd = home.native("--pool-size", "1")
    try:
        disk, memory, net = world(holtd, many)
        running = inits(holtd.state)
        assert len(running) == 3 and all(map(is_running, running))
        end(holtd, signal.SIGINT)
        assert re.search(r"holtd has ended\. 3 sandboxes are running, with commands and network; .*\n.*\n  \S*holt down --state ", holtd.text), holtd.text
        assert all(map(is_running, running)), "that is what it says"
        out = holt(home, "down", "--state", holtd.state)
        assert "ended 3 sandboxes\n" in out, out
        assert not any(map(is_running, running))
        assert not list(programs_of(holtd.state, "holtd", "holt-spawn", "holt-egress"))
        assert "nothing of" in holt(home, "down", "--state", holtd.state)
        holtd = home.native()
        start(holtd, disk)
        assert run(holtd, disk, "cat /root/f") == "kept\n"
        assert memory not in running_ids(holtd) and net not in running_ids(holtd)
        assert "--yes" in holt(home, "purge", "--state", holtd.state, status=1)
        assert holtd.alive() and disk in running_ids(holtd)
        out = holt(home, "purge", "--yes", "--state", holtd.state)
        assert "ended holtd (process" in out and "removed" in out, out
        holtd.process.wait(60)
        assert not os.path.exists(holtd.state)
        assert leftovers(holtd.state) == ""
        assert "nothing to remove" in holt(home, "purge", "--yes", "--state", holtd.state)
    finally:
        holtd.kill()
        if os.path.exists(holtd.state):
            holt(home, "purge", "--yes", "--state", holtd.state)


def has_users(home):
    """Sandboxes have users: as root, or with ranges."""
    return os.geteuid() == 0 and (not home.user or home.user.ranges)


def running_ids(holtd):
    return [b["id"] for b in holtd.ok("GET", "/holt/v1/sandboxes?state=running")["sandboxes"]]


def test_purge_removes_only_a_state_directory(tmp_path):
    """A directory that somebody names by mistake stays as it is."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter").write_text("dear")
    r = subprocess.run([f"{BUILD}/holt-spawn", "--state", f"{tmp_path}/mine", "--init", f"{BUILD}/holt-init", "--end", "remove"],
                       capture_output=True, text=True, timeout=60, env=environment(), check=False)
    assert r.returncode == 1 and "not a state directory" in r.stderr
    assert os.listdir(tmp_path / "mine") == ["letter"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_another_users_installation_is_not_ours_to_end(tmp_path):
    os.chown(tmp_path, 12345, 12345)
    r = subprocess.run([f"{BUILD}/holt", "down", "--state", str(tmp_path)], capture_output=True, text=True, timeout=60,
                       env=environment(), check=False)
    assert r.returncode != 0 and "belongs to user" in r.stderr
