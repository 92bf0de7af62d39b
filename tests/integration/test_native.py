"""`holt run` and the life of a sandbox on the native runtime: namespaces, overlay, cgroups, seccomp, for real."""
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

from daemon import BUILD, Holtd, environment, wait_for


def native(directory, *args):
    """The leak check does not work in the processes that a sanitized holt-spawn clones."""
    options = environment()["ASAN_OPTIONS"] + ":detect_leaks=0"
    return Holtd(directory, "--runtime", "native", *args, env={"ASAN_OPTIONS": options})


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("native"))
    yield d
    for box in d.ok("GET", "/holt/v1/sandboxes")["sandboxes"]:
        d.request("DELETE", f"/holt/v1/sandboxes/{box['id']}")
    d.stop()


def holt(holtd, *args, **more):
    env = environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token})
    return subprocess.run([f"{BUILD}/holt", *args], env=env, capture_output=True, timeout=60, **more)


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


def test_files_stay_over_a_stop(holtd):
    assert holt(holtd, "create", "--name", "keep").returncode == 0
    assert holt(holtd, "exec", "keep", "--", "sh", "-c", "echo kept > /root/f").returncode == 0
    assert holt(holtd, "stop", "keep").returncode == 0
    assert holt(holtd, "start", "keep").returncode == 0
    assert holt(holtd, "exec", "keep", "--", "cat", "/root/f").stdout == b"kept\n"
    assert holt(holtd, "rm", "keep").returncode == 0


def test_limits_hold(holtd):
    assert holt(holtd, "create", "--name", "small", "--memory", "64m", "--pids", "32").returncode == 0
    box = holtd.ok("GET", "/holt/v1/sandboxes/small")
    assert box["unenforced"] == [], box
    r = holt(holtd, "exec", "small", "--", "python3", "-c", "b'x' * (200 << 20)")
    assert r.returncode == 128 + 9
    wait_for(lambda: holtd.ok("GET", "/holt/v1/events?type=sandbox.oom")["events"])
    r = holt(holtd, "exec", "small", "--", "sh", "-c", "for i in $(seq 100); do sleep 5 & done; echo done")
    assert r.returncode != 0 or b"done" not in r.stdout, "a hundred processes do not fit"
    assert holt(holtd, "rm", "small").returncode == 0


def test_commands_outlive_the_daemon(tmp_path):
    d = native(tmp_path / "d")
    try:
        d.ok("POST", "/holt/v1/sandboxes", {"name": "box"})
        x = d.ok("POST", "/holt/v1/sandboxes/box/execs",
                 {"command": "for i in $(seq 200); do echo line $i; sleep 0.01; done", "background": True})
        time.sleep(0.5)
        d.process.kill()
        d.process.wait()
        e = native(tmp_path / "d")
        try:
            def ended():
                return e.ok("GET", f"/holt/v1/sandboxes/box/execs/{x['id']}")["state"] == "exited"
            wait_for(ended, 20)
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
        assert slowest < 2, f"holtd did not answer for {slowest:.1f} s"
        silent.close()
        assert holt(d, "create", "--name", "later").returncode == 0, "a new holt-spawn makes it"
        assert spawn_of(d) not in (None, dead)
        assert not os.path.exists(f"/proc/{dead}"), "the dead one was reaped"
    finally:
        silent.close()
        for s in d.ok("GET", "/holt/v1/sandboxes")["sandboxes"]:
            d.request("DELETE", f"/holt/v1/sandboxes/{s['id']}")
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
