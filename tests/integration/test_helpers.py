"""holt-spawn and holt-egress of another release that an earlier holtd has left running: ended and started again, or named."""
import os
import signal
import subprocess

import pytest

from daemon import is_running, native
from home import Home

# Speaks the first version of a protocol: whatever it is greeted with, its welcome says 1.
OLD = """
import signal, socket, struct, sys
stubborn, path, welcome = sys.argv[1] == "stubborn", sys.argv[2], int(sys.argv[3])
if stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(path)
s.listen()
print("ready", flush=True)
while True:
    c, _ = s.accept()
    hello = c.recv(32768)
    if hello:
        tag = hello[4:8] if welcome == 2 else bytes(4)
        c.send(struct.pack("<I", welcome) + tag + struct.pack("<HBI", 1, 0, 0) + bytes(16))
        c.recv(32768)
    c.close()
"""
WELCOMES = {"spawn.sock": 2, "egress.sock": 3}


@pytest.fixture(params=["own", "rootless"])
def home(request):
    h = Home(request.param)
    yield h
    h.close()


def start_old(home, name, nature="mild"):
    path = f"{home.path}/state/{name}"
    if os.path.lexists(path):
        os.unlink(path)

    def enter():
        if home.user:
            home.user.enter()
    p = subprocess.Popen(["/usr/bin/python3", "-c", OLD, nature, path, str(WELCOMES[name])], stdout=subprocess.PIPE,
                         preexec_fn=enter, text=True)
    assert p.stdout.readline() == "ready\n"
    owner = os.stat(f"{home.path}/state/holt.db")
    os.chown(path, owner.st_uid, owner.st_gid)  # that of another user would be ended for this alone
    return p


def test_of_another_release_are_replaced(home):
    d = home.native()
    assert d.stop() == 0
    old = [start_old(home, name) for name in WELCOMES]
    d = home.native()
    try:
        for p in old:
            assert p.wait(30) == -signal.SIGTERM
        assert d.text.count("it belongs to another release") + d.log().count("it belongs to another release") == 2
        run = d.ok("POST", "/holt/v1/run", {"command": ["echo", "hello"], "network": {"mode": "allowlist", "allow": ["a.test"]}})
        assert run["stdout"] == "hello\n", run
    finally:
        d.stop()
        for p in old:
            p.kill()


def test_that_cannot_be_ended_is_named():
    h = Home("own")
    d = native(h.path)
    assert d.stop() == 0
    old = start_old(h, "spawn.sock", "stubborn")
    d = native(h.path)
    try:
        status, body, _ = d.request("POST", "/holt/v1/run", {"command": ["true"]})
        assert status >= 400 and "holt-spawn is of another release" in body["error"]["message"], body
        assert "systemctl restart holt-spawn" in body["error"]["hint"], body
        assert is_running(old.pid)
    finally:
        old.kill()
        old.wait()
        d.stop()
        h.close()
