"""Forks: sandboxes with the files of another, and keeping one of them."""
import json

import pytest

from daemon import NO_FREEZE, all_events, can_freeze, native, wait_for
from test_image import holt
from test_snapshot import BOXES, SNAPSHOTS, sh, snap

FORKS = "/holt/v1/forks"


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    daemon = native(tmp_path_factory.mktemp("fork"))
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def freezes(holtd):
    return can_freeze(holtd)


@pytest.fixture(autouse=True)
def needs_freeze(freezes):
    if not freezes:
        pytest.skip(NO_FREEZE)


def fork(holtd, source, **fields):
    return holtd.ok("POST", FORKS, {"source": source, **fields})


def end(holtd, *boxes):
    for b in boxes:
        holtd.ok("DELETE", f"{BOXES}/{b}")


def test_eight_of_a_running_one(holtd):
    b = holtd.ok("POST", BOXES, {"name": "parent", "env": {"WORD": "otter", "OTHER": "1"}, "pids": 99, "labels": {"a": "b"}})["id"]
    sh(holtd, b, "echo base > /root/f")
    made = fork(holtd, "parent", count=8, name="try", env={"OTHER": "2"}, memory_bytes="64m", labels={"x": "y"})
    boxes = [s["id"] for s in made["sandboxes"]]
    assert [s["name"] for s in made["sandboxes"]] == [f"try-{i}" for i in range(1, 9)] and len(set(boxes)) == 8
    one = made["sandboxes"][0]
    assert one["forked_from"] == made["snapshot"] and one["limits"]["pids"] == 99 and one["limits"]["memory_bytes"] == 64 << 20
    assert one["labels"] == {"x": "y"} and one["image"] == "host" and one["ttl_ms"] is None
    for i, x in enumerate(boxes):
        assert sh(holtd, x, f"cat /root/f; echo $WORD $OTHER; echo {i} > /root/f") == "base\notter 2\n"
    assert [sh(holtd, x, "cat /root/f") for x in boxes] == [f"{i}\n" for i in range(8)], "each has its own"
    assert sh(holtd, b, "cat /root/f") == "base\n"
    kept = holtd.ok("POST", f"{FORKS}/try-3/keep")
    assert kept["kept"] == boxes[2] and sorted(kept["removed"]) == sorted(boxes[:2] + boxes[3:])
    assert sh(holtd, boxes[2], "cat /root/f") == "2\n"
    assert holtd.request("POST", f"{FORKS}/parent/keep")[0] == 409, "it is no fork"
    end(holtd, b, boxes[2])


def test_secrets_volumes_and_lifetimes_are_not_inherited(holtd):
    holtd.ok("PUT", "/holt/v1/secrets/key", {"value": "s3cret", "hosts": ["api.example.com"]})
    holtd.ok("POST", "/holt/v1/volumes", {"name": "shared"})
    b = holtd.ok("POST", BOXES, {"name": "rich", "secret": ["key=KEY"], "volumes": [{"name": "shared", "path": "/data"}], "ttl_ms": "1h",
                                 "network": {"mode": "allowlist", "allow": ["api.example.com"]}})["id"]
    sh(holtd, b, "echo in > /data/f; test -n \"$KEY\"")
    poor = fork(holtd, b)["sandboxes"][0]
    assert (poor["secrets"], poor["volumes"], poor["ttl_ms"]) == ([], [], None)
    assert poor["network"]["mode"] == "allowlist"
    assert sh(holtd, poor["id"], "echo \"[$KEY]\"; ls /data | wc -l") == "[]\n0\n"
    again = fork(holtd, b, secret=["key=KEY"], volumes=[{"name": "shared", "path": "/data"}], network="none")["sandboxes"][0]
    assert again["secrets"][0]["name"] == "key" and again["network"]["mode"] == "none"
    assert sh(holtd, again["id"], "cat /data/f") == "in\n"
    end(holtd, b, poor["id"], again["id"])


def test_of_a_fork_of_a_stopped_one(holtd):
    b = holtd.ok("POST", BOXES, {})["id"]
    sh(holtd, b, "echo 0 > /root/f")
    holtd.ok("POST", f"{BOXES}/{b}/stop", {"force": True})
    chain = [b]
    for i in range(1, 5):
        chain.append(fork(holtd, chain[-1])["sandboxes"][0]["id"])
        sh(holtd, chain[-1], f"echo {i} >> /root/f")
    assert sh(holtd, chain[-1], "cat /root/f") == "0\n1\n2\n3\n4\n"
    assert sh(holtd, chain[2], "cat /root/f") == "0\n1\n2\n"
    end(holtd, *chain)


def test_all_or_none(holtd):
    b = holtd.ok("POST", BOXES, {"name": "src"})["id"]
    taken = holtd.ok("POST", BOXES, {"name": "n-2"})["id"]
    before = len(holtd.ok("GET", BOXES)["sandboxes"])
    status, reply, _ = holtd.request("POST", FORKS, {"source": "src", "count": 3, "name": "n"})
    assert status == 409, reply
    wait_for(lambda: len(holtd.ok("GET", BOXES)["sandboxes"]) == before)
    end(holtd, b, taken)


def test_nobody_reads_its_environment_in_events(holtd):
    b = holtd.ok("POST", BOXES, {"env": {"TOKEN": "sw0rdfish"}})["id"]
    made = snap(holtd, b)
    assert not any("sw0rdfish" in json.dumps(e) for e in all_events(holtd))
    assert "sw0rdfish" not in json.dumps(holtd.ok("GET", f"{SNAPSHOTS}/{made['id']}"))
    x = fork(holtd, made["id"])["sandboxes"][0]["id"]
    assert sh(holtd, x, "echo $TOKEN") == "sw0rdfish\n"
    end(holtd, b, x)


def test_on_the_command_line(holtd):
    def cli(*args):
        return holt(holtd, *args)
    cli("create", "--name", "box")
    cli("exec", "box", "--", "sh", "-c", "echo 1 > /root/f")
    assert "clean" in cli("snapshot", "create", "box", "clean")
    cli("exec", "box", "--", "sh", "-c", "echo 2 > /root/f")
    assert "undo" in cli("restore", "box", "clean")
    assert cli("exec", "box", "--", "cat", "/root/f") == "1\n"
    made = json.loads(cli("fork", "box@clean", "--count", "2", "--name", "f", "-o", "json"))
    assert [s["name"] for s in made["sandboxes"]] == ["f-1", "f-2"]
    cli("snapshot", "create", "f-1", "below")
    tree = cli("snapshot", "tree").splitlines()
    assert tree[-2].startswith("box@clean") and tree[-1].startswith("  f-1@below"), tree
    assert "clean" in cli("snapshot", "ls", "box") and "sha256:" in cli("snapshot", "inspect", "box@clean")
    assert json.loads(cli("commit", "f-1", "made:1", "-o", "json"))["state"] == "ready"
    assert json.loads(cli("fork", "keep", "f-1", "-o", "json"))["removed"] == [made["sandboxes"][1]["id"]]
    cli("snapshot", "rm", "box@clean")
    cli("snapshot", "rm", "f-1@below")
    cli("image", "rm", "made:1")
    cli("rm", "box", "f-1")
