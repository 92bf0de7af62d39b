"""A holtd whose database does not know what lives here (new, restored, or the wrong one) destroys nothing of it."""
import os
import shutil

import pytest

from daemon import BUILD, native, wait_for
from test_native import holt

API = "/holt/v1"


def kill(d):
    """holtd alone; holt-spawn and the sandboxes stay."""
    d.process.kill()
    d.process.wait()


def layers(d):
    return sorted(n for n in os.listdir(f"{d.state}/layers") if n.startswith("ly_"))


@pytest.fixture
def old(tmp_path):
    """A running sandbox with a command, a stopped one and an image; the holtd that knows them is dead."""
    d = native(tmp_path / "d")
    try:
        for name in ("runs", "rests"):
            d.ok("POST", f"{API}/sandboxes", {"name": name})
            d.ok("POST", f"{API}/sandboxes/{name}/execs", {"command": f"echo {name} > /root/mine; seq 1 9999"})
        d.ok("POST", f"{API}/sandboxes/runs/execs", {"command": ["sleep", "100"], "background": True})
        d.ok("POST", f"{API}/sandboxes/rests/stop", {"force": True})
        os.makedirs(tmp_path / "root/bin")
        shutil.copy(f"{BUILD}/holt-unpack", tmp_path / "root/bin/tool")
        assert holt(d, "image", "import", str(tmp_path / "root"), "--name", "tool:1").returncode == 0
        wait_for(lambda: len(os.listdir(f"{d.state}/sb")) == 2)  # the one that unpacked is gone
        kill(d)
        yield d
    finally:
        d.kill()
        if os.path.exists(f"{d.state}/admin-token.old"):
            os.rename(f"{d.state}/admin-token.old", f"{d.state}/admin-token")
        e = native(tmp_path / "d")
        e.clear()
        e.stop()


def other_database(old):
    return native(old.directory, "--db", f"sqlite:{old.state}/other.db")


def orphans(d):
    return {s["id"]: s for s in d.ok("GET", f"{API}/sandboxes?state=orphan")["sandboxes"]}


def test_a_database_that_knows_nothing_destroys_nothing(old):
    had, logs = layers(old), sorted(os.listdir(f"{old.state}/execs"))
    assert had and logs
    for _ in range(2):  # a second start is no wiser
        new = other_database(old)
        try:
            assert len(wait_for(lambda: len(orphans(new)) == 2 and orphans(new))) == 2
            for s in orphans(new).values():
                assert s["failure"] and s["owner"] == "system", s
                assert new.request("POST", f"{API}/sandboxes/{s['id']}/start")[0] == 409
            assert holt(new, "ls").stdout.decode().count("orphan") == 2
            assert new.ok("GET", f"{API}/sandboxes?state=stopped")["sandboxes"] == []
        finally:
            kill(new)
    assert layers(old) == had and sorted(os.listdir(f"{old.state}/execs")) == logs
    os.rename(f"{old.state}/admin-token.old", f"{old.state}/admin-token")
    again = native(old.directory)
    try:
        for name in ("runs", "rests"):
            x = again.ok("GET", f"{API}/sandboxes/{name}/execs")["execs"][0]
            text = holt(again, "logs", name, x["id"]).stdout.decode()
            assert text == "".join(f"{i}\n" for i in range(1, 10000)), name
            assert again.ok("POST", f"{API}/sandboxes/{name}/start")["state"] == "running"
            assert holt(again, "exec", name, "--", "cat", "/root/mine").stdout.decode() == f"{name}\n"
        assert holt(again, "run", "--image", "tool:1", "--", "/bin/tool", "--no-such-flag").returncode not in (125, 126, 127)
    finally:
        kill(again)


def test_an_orphan_goes_when_somebody_says_so(old):
    new = other_database(old)
    try:
        for box in wait_for(lambda: len(orphans(new)) == 2 and orphans(new)):
            assert holt(new, "rm", box).returncode == 0
            assert not os.path.exists(f"{new.state}/sb/{box}")
        wait_for(lambda: new.ok("GET", f"{API}/sandboxes")["sandboxes"] == [])  # also the one that clears what an import left
    finally:
        kill(new)
