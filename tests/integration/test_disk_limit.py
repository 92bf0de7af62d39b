"""Limits of a sandbox's own files on disk: enforced by an image as root, said to be missing without."""
import glob
import os
import shutil

import pytest

from daemon import native, wait_for
from home import Home

CAN = os.geteuid() == 0 and os.path.exists("/dev/loop-control") and shutil.which("mke2fs", path="/usr/sbin:/sbin")
images = pytest.mark.skipif(not CAN, reason="needs root, loop devices and mke2fs")


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("disk"))
    yield d
    d.clear()
    d.stop()
    assert not loops(d)


def loops(d):
    """Loop devices on files of this state directory, removed ones too."""
    found = []
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        try:
            with open(path, encoding="utf-8") as f:
                found.append(f.read().strip())
        except OSError:
            pass
    return [p for p in found if os.path.basename(d.directory) in p]


def sh(d, id, line):
    r = d.ok("POST", f"/holt/v1/sandboxes/{id}/execs", {"command": line})
    return r["stdout"] + r["stderr"]


def make(d, size=32 << 20):
    return d.ok("POST", "/holt/v1/sandboxes", {"disk_bytes": size})


@images
@pytest.mark.parametrize("mib", [4, 64])
def test_full_inside_is_full_inside(holtd, mib):
    box = make(holtd, mib << 20)
    assert box["unenforced"] == [] and box["limits"]["disk_bytes"] == mib << 20
    assert "No space left" in sh(holtd, box["id"], f"head -c {2 * mib}M /dev/zero > /root/big")
    written = int(sh(holtd, box["id"], "stat -c %s /root/big"))
    assert (mib << 20) * 0.75 < written < mib << 20
    used = holtd.ok("GET", f"/holt/v1/sandboxes/{box['id']}/stats")["disk_bytes"]
    assert written <= used <= mib << 20
    assert os.stat(f"{holtd.state}/sb/{box['id']}/disk.img").st_blocks * 512 <= (mib << 20) + (1 << 20)
    assert sh(holtd, box["id"], "rm /root/big; sync; echo ok > /root/f; cat /root/f") == "ok\n"
    wait_for(lambda: holtd.ok("GET", f"/holt/v1/sandboxes/{box['id']}/stats")["disk_bytes"] < 1 << 20)
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{box['id']}")
    assert not loops(holtd) and not os.path.exists(f"{holtd.state}/sb/{box['id']}")


@images
def test_files_are_bounded_too(holtd):
    box = make(holtd, 16 << 20)
    line = "import itertools\nfor i in itertools.count():\n  open(f'/root/{i}', 'w').close()"
    r = holtd.ok("POST", f"/holt/v1/sandboxes/{box['id']}/execs", {"command": ["python3", "-c", line]})
    assert "No space left" in r["stderr"]
    assert int(sh(holtd, box["id"], "ls /root | wc -l")) < 5000
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{box['id']}")


@images
def test_files_stay_over_a_stop_and_ids_are_roots(holtd):
    id = make(holtd)["id"]
    sh(holtd, id, "echo kept > /root/f; chown 33:33 /root/f; mkdir -m 700 /etc/new; rm -r /opt")
    for _ in range(2):
        holtd.ok("POST", f"/holt/v1/sandboxes/{id}/stop", {"force": True})
        assert not loops(holtd), "a stopped one is mounted nowhere"
        assert holtd.ok("POST", f"/holt/v1/sandboxes/{id}/start")["unenforced"] == []
        assert sh(holtd, id, "cat /root/f; stat -c '%u %a' /root/f /etc/new; ls -d /opt 2>/dev/null") == "kept\n33 644\n0 700\n"
        assert "No space" in sh(holtd, id, "head -c 64M /dev/zero > /root/big; rm /root/big")
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{id}")
    assert not loops(holtd)


@images
def test_killed_and_adopted_it_goes_without_a_trace(tmp_path):
    d = native(tmp_path)
    runs, stopped = make(d)["id"], make(d)["id"]
    sh(d, runs, "echo kept > /root/f")
    sh(d, stopped, "echo kept > /root/f")
    d.ok("POST", f"/holt/v1/sandboxes/{stopped}/stop", {"force": True})
    d.kill()  # holt-spawn too
    assert len(loops(d)) == 1, "the one that runs goes on"
    d = native(tmp_path)
    assert wait_for(lambda: sh(d, runs, "cat /root/f")) == "kept\n"
    assert d.ok("GET", f"/holt/v1/sandboxes/{runs}")["unenforced"] == []
    assert 0 < d.ok("GET", f"/holt/v1/sandboxes/{runs}/stats")["disk_bytes"] < 32 << 20
    for id in (runs, stopped):
        d.ok_once_found("POST", f"/holt/v1/sandboxes/{id}/restart" if id == runs else f"/holt/v1/sandboxes/{id}/start", {})
        assert sh(d, id, "cat /root/f") == "kept\n"
        d.ok("DELETE", f"/holt/v1/sandboxes/{id}")
    assert not loops(d)
    assert os.listdir(f"{d.state}/sb") == []
    d.stop()


def test_without_root_it_is_said():
    home = Home("rootless")
    d = home.native()
    box = make(d)
    assert "disk_bytes" in box["unenforced"]
    assert sh(d, box["id"], "head -c 40M /dev/zero > /root/big; stat -c %s /root/big") == f"{40 << 20}\n"
    assert d.ok("GET", f"/holt/v1/sandboxes/{box['id']}/stats")["disk_bytes"] >= 40 << 20
    memory = d.ok("POST", "/holt/v1/sandboxes", {"disk_bytes": 8 << 20, "upper": "memory"})
    assert "disk_bytes" not in memory["unenforced"] and "No space" in sh(d, memory["id"], "head -c 10M /dev/zero > /root/big")
    for id in (box["id"], memory["id"]):
        d.ok("DELETE", f"/holt/v1/sandboxes/{id}")
    d.stop()
    home.close()


def own(d, size, target="/workspace", **more):
    return d.ok("POST", "/holt/v1/sandboxes", {"mounts": [{"kind": "own", "target": target, "size_bytes": size}], **more})


@images
def test_a_directory_of_its_own_has_a_limit_too(holtd):
    """Its own one: the rest of the root has none, and each of two has its own."""
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"mounts": [{"kind": "own", "target": "/workspace", "size_bytes": 16 << 20},
                                                            {"kind": "own", "target": "/cache", "size_bytes": 48 << 20},
                                                            {"kind": "own", "target": "/free"}]})
    id = box["id"]
    assert box["unenforced"] == [] and box["limits"]["disk_bytes"] is None
    assert sh(holtd, id, "ls -A /workspace /cache; stat -c '%u %a' /workspace") == "/cache:\n\n/workspace:\n0 755\n"
    assert "No space left" in sh(holtd, id, "head -c 32M /dev/zero > /workspace/big")
    for place in ("/cache", "/free", "/root"):
        assert sh(holtd, id, f"head -c 32M /dev/zero > {place}/big") == "", place
    sh(holtd, id, "sync")
    assert holtd.ok("GET", f"/holt/v1/sandboxes/{id}/stats")["disk_bytes"] >= (12 + 32 + 64) << 20
    for _ in range(2):
        holtd.ok("POST", f"/holt/v1/sandboxes/{id}/stop", {"force": True})
        assert not loops(holtd), "a stopped one is mounted nowhere"
        holtd.ok("POST", f"/holt/v1/sandboxes/{id}/start")
        assert sh(holtd, id, "stat -c %s /cache/big /free/big") == 2 * f"{32 << 20}\n"
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{id}")
    assert not loops(holtd) and not os.path.exists(f"{holtd.state}/sb/{id}")


@images
def test_killed_and_adopted_a_directory_with_a_limit_goes_too(tmp_path):
    d = native(tmp_path)
    runs, stopped = own(d, 16 << 20)["id"], own(d, 16 << 20)["id"]
    sh(d, runs, "echo kept > /workspace/f")
    d.ok("POST", f"/holt/v1/sandboxes/{stopped}/stop", {"force": True})
    d.kill()  # holt-spawn too
    assert len(loops(d)) == 1
    d = native(tmp_path)
    assert wait_for(lambda: sh(d, runs, "cat /workspace/f")) == "kept\n"
    for id in (runs, stopped):
        d.ok("DELETE", f"/holt/v1/sandboxes/{id}")
    assert not loops(d) and os.listdir(f"{d.state}/sb") == []
    d.stop()


def test_without_root_a_directory_without_its_limit_is_said():
    home = Home("rootless")
    d = home.native()
    box = own(d, 16 << 20)
    assert box["unenforced"].count("disk_bytes") == 1
    assert sh(d, box["id"], "head -c 20M /dev/zero > /workspace/big; stat -c %s /workspace/big") == f"{20 << 20}\n"
    d.ok("POST", f"/holt/v1/sandboxes/{box['id']}/stop", {"force": True})
    assert "disk_bytes" in d.ok("POST", f"/holt/v1/sandboxes/{box['id']}/start", {})["unenforced"]
    assert sh(d, box["id"], "stat -c %s /workspace/big") == f"{20 << 20}\n"
    d.ok("DELETE", f"/holt/v1/sandboxes/{box['id']}")
    d.stop()
    home.close()
