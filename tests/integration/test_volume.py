"""Volumes on the native runtime, as root and rootless: shared, kept, counted, apart by tenant."""
import json
import os
import subprocess

import pytest

from daemon import BUILD, environment, native, wait_for
from home import Home


@pytest.fixture(scope="module", params=["own", "rootless", "ranges"])
def holtd(request):
    home = Home(request.param)
    d = home.native()
    try:
        yield d
        clear(d)
    finally:
        d.stop()
        home.close()


def clear(d):
    d.clear()
    for v in d.ok("GET", "/holt/v1/volumes")["volumes"]:
        d.ok("DELETE", f"/holt/v1/volumes/{v['id']}")


@pytest.fixture(autouse=True)
def clean(holtd):
    yield
    clear(holtd)


def box(holtd, *volumes, **more):
    body = {"upper": "memory", "volumes": list(volumes), **more}
    return holtd.ok("POST", "/holt/v1/sandboxes", body)["id"]


def sh(holtd, id, line):
    r = holtd.ok("POST", f"/holt/v1/sandboxes/{id}/execs", {"command": line})
    return r["stdout"] + r["stderr"]


def at(name, path, read_only=False):
    return {"name": name, "path": path, "read_only": read_only}


@pytest.mark.not_on("runsc", "gVisor of before 2023 refuses statx(AT_NO_AUTOMOUNT), and so ls and stat of coreutils 9 on a name")
@pytest.mark.parametrize("kind", ["disk", "tmpfs"])
def test_two_sandboxes_read_and_write_one_volume(holtd, kind):
    v = holtd.ok("POST", "/holt/v1/volumes", {"name": "data", "kind": kind})
    assert (v["used_by"], v["used_bytes"]) == (0, 0) and v["id"].startswith("vl_")
    one, two = box(holtd, at("data", "/data")), box(holtd, at(v["id"], "/deep/er"), at("data", "/ro", True))
    assert sh(holtd, one, "echo hello > /data/f; chmod 600 /data/f; head -c 100000 /dev/zero > /data/z") == ""
    assert sh(holtd, two, "cat /deep/er/f; echo back >> /deep/er/f; stat -c %u /ro/f") == "hello\n0\n"
    assert sh(holtd, one, "cat /data/f") == "hello\nback\n"
    assert "Read-only" in sh(holtd, two, "echo x > /ro/f")
    got = holtd.ok("GET", "/holt/v1/volumes/data")
    assert got["used_by"] == 2 and got["used_bytes"] >= 100000, got
    assert holtd.ok("GET", f"/holt/v1/sandboxes/{two}")["volumes"] == [
        {"id": v["id"], "name": "data", "path": "/deep/er", "read_only": False},
        {"id": v["id"], "name": "data", "path": "/ro", "read_only": True}]
    status, refusal, _ = holtd.request("DELETE", "/holt/v1/volumes/data")
    assert status == 409 and one in refusal["error"]["message"] and two in refusal["error"]["message"], refusal
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{one}")
    assert sh(holtd, two, "cat /deep/er/f") == "hello\nback\n"
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{two}")
    three = box(holtd, at("data", "/data"))
    assert sh(holtd, three, "cat /data/f 2>/dev/null || echo gone") == ("gone\n" if kind == "tmpfs" else "hello\nback\n")
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{three}")
    holtd.ok("DELETE", "/holt/v1/volumes/data")
    assert holtd.request("GET", "/holt/v1/volumes/data")[0] == 404
    assert not os.path.exists(f"{holtd.state}/volumes/{v['id']}")
    types = [e["type"] for e in holtd.ok("GET", "/holt/v1/events?limit=1000")["events"] if e["object"] == f"volume/{v['id']}"]
    assert types == ["volume.created", "volume.removed"]


def test_a_tmpfs_has_its_size(holtd):
    holtd.ok("POST", "/holt/v1/volumes", {"name": "small", "kind": "tmpfs", "size_bytes": 1 << 20})
    id = box(holtd, at("small", "/m"))
    assert "No space" in sh(holtd, id, "head -c 2000000 /dev/zero > /m/f")
    assert holtd.ok("GET", "/holt/v1/volumes/small")["size_bytes"] == 1 << 20
    assert holtd.request("POST", "/holt/v1/volumes", {"name": "x", "size_bytes": 1 << 20})[0] == 400


@pytest.mark.not_on("runsc", "gVisor of before 2023 refuses statx(AT_NO_AUTOMOUNT), and so ls and stat of coreutils 9 on a name")
def test_a_tenants_volume_is_its_own(holtd):
    for tenant in ("acme", "other"):
        holtd.ok("POST", "/holt/v1/volumes", {"name": "data", "tenant": tenant})
    v = holtd.ok("GET", "/holt/v1/volumes/data?tenant=acme")
    mine = box(holtd, at("data", "/d"), tenant="acme")
    sh(holtd, mine, "echo secret > /d/f")
    theirs = box(holtd, at("data", "/d"), tenant="other")
    assert sh(holtd, theirs, "ls /d") == ""
    for tenant in ({"tenant": "other"}, {}):
        body = {"volumes": [at(v["id"], "/d")], **tenant}
        assert holtd.request("POST", "/holt/v1/sandboxes", body)[0] == 404
    holtd.ok("POST", "/holt/v1/volumes", {"name": "common"})
    assert sh(holtd, box(holtd, at("common", "/c"), tenant="acme"), "touch /c/x; ls /c") == "x\n"
    assert {x["tenant"] for x in holtd.ok("GET", "/holt/v1/volumes?tenant=acme")["volumes"]} == {"acme"}


def test_what_is_refused(holtd):
    holtd.ok("POST", "/holt/v1/volumes", {"name": "data"})
    assert holtd.request("POST", "/holt/v1/volumes", {"name": "data"})[0] == 409
    assert holtd.request("POST", "/holt/v1/volumes", {"name": "Data!"})[0] == 400
    for volumes in ([at("nope", "/d")], [at("../sb", "/d")]):
        assert holtd.request("POST", "/holt/v1/sandboxes", {"volumes": volumes})[0] == 404
    agent = holtd.ok("POST", "/holt/v1/tokens", {"name": "worker", "role": "agent", "agent": "worker"})["token"]
    assert holtd.request("GET", "/holt/v1/volumes", token=agent)[1]["volumes"] == []
    for name, status in (("data", 404), (holtd.ok("GET", "/holt/v1/volumes/data")["id"], 403)):  # a name is its owner's
        assert holtd.request("DELETE", f"/holt/v1/volumes/{name}", token=agent)[0] == status
        assert holtd.request("POST", "/holt/v1/sandboxes", {"volumes": [at(name, "/d")]}, token=agent)[0] == status
    assert holtd.request("POST", "/holt/v1/volumes", {"name": "mine"}, token=agent)[0] == 201


def test_a_key_makes_one(holtd):
    key = {"Idempotency-Key": "k1"}
    a = holtd.ok("POST", "/holt/v1/volumes", {"name": "once"}, headers=key)
    b = holtd.ok("POST", "/holt/v1/volumes", {"name": "once"}, headers=key)
    assert a == b and len(holtd.ok("GET", "/holt/v1/volumes")["volumes"]) == 1


def holt(holtd, *args):
    env = environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token})
    return subprocess.run([f"{BUILD}/holt", *args], env=env, capture_output=True, timeout=60, text=True)


def test_the_command_line(holtd):
    made = holt(holtd, "volume", "create", "cli-1", "--kind", "tmpfs", "--size", "8m")
    assert made.returncode == 0, made.stderr
    listed = holt(holtd, "volume", "ls").stdout
    assert "cli-1" in listed and "tmpfs" in listed
    volumes = json.dumps([at("cli-1", "/v")])
    assert holt(holtd, "run", "--volumes", volumes, "--", "sh", "-c", "echo x > /v/f; cat /v/f").stdout == "x\n"
    assert json.loads(holt(holtd, "volume", "inspect", "cli-1", "-o", "json").stdout)["size_bytes"] == 8 << 20
    holt(holtd, "create", "--name", "user", "--volumes", volumes)
    r = holt(holtd, "volume", "rm", "cli-1")
    assert r.returncode == 3 and "user" in r.stderr, r
    assert holt(holtd, "rm", "user").returncode == 0
    assert holt(holtd, "volume", "rm", "cli-1").returncode == 0


def test_it_is_there_after_a_crash(tmp_path):
    d = native(tmp_path)
    v = d.ok("POST", "/holt/v1/volumes", {"name": "data"})
    m = d.ok("POST", "/holt/v1/volumes", {"name": "mem", "kind": "tmpfs"})
    id = box(d, at("data", "/data"), at("mem", "/mem"))
    assert sh(d, id, "echo kept > /data/f; echo kept > /mem/f") == ""
    d.kill()  # holtd and holt-spawn: the sandbox goes on
    d = native(tmp_path)
    wait_for(lambda: d.ok("GET", f"/holt/v1/sandboxes/{id}")["state"] == "running")
    assert [x["id"] for x in d.ok("GET", "/holt/v1/volumes")["volumes"]] == [v["id"], m["id"]]
    assert d.ok("GET", "/holt/v1/volumes/mem")["used_by"] == 1
    assert wait_for(lambda: sh(d, id, "cat /data/f /mem/f")) == "kept\nkept\n"
    other = box(d, at("data", "/data"))
    assert sh(d, other, "cat /data/f") == "kept\n"
    status, refusal, _ = d.request("POST", "/holt/v1/sandboxes", {"volumes": [at("mem", "/mem")]})
    assert status == 409 and "earlier holt-spawn" in refusal["error"]["message"]
    assert d.request("DELETE", "/holt/v1/volumes/mem")[0] == 409
    clear(d)
    assert not os.listdir(f"{d.state}/volumes")
    d.stop()
