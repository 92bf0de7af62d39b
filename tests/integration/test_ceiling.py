"""What an agent may have: limits where it names none, none beyond the settings', and a number of things; people have a share."""
import pytest

from daemon import native

API = "/holt/v1"
SETTINGS = """
agent_memory: 256m
agent_memory_max: 512m
agent_cpu: 500
agent_cpu_max: 1000
agent_pids: 100
agent_pids_max: 200
agent_disk: 64m
agent_disk_max: 128m
agent_sandboxes: 2
agent_commands: 2
agent_volumes: 2
owner_sandboxes: 3
owner_volumes: 3
"""
MIB = 1 << 20


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("ceiling"), config=SETTINGS)
    yield d
    d.clear()
    assert d.stop() == 0


@pytest.fixture
def agent(holtd):
    made = holtd.ok("POST", f"{API}/tokens", {"name": "a", "role": "agent", "agent": "a"})

    def ask(method, path, body=None):
        return holtd.request(method, f"{API}{path}", body, token=made["token"])[:2]
    yield ask
    holtd.clear()
    for v in holtd.ok("GET", f"{API}/volumes")["volumes"]:
        holtd.ok("DELETE", f"{API}/volumes/{v['id']}")
    holtd.ok("DELETE", f"{API}/tokens/{made['id']}")


def test_defaults_are_the_agents_only(holtd, agent):
    limits = agent("POST", "/sandboxes", {})[1]["limits"]
    assert (limits["memory_bytes"], limits["cpu_millis"], limits["pids"], limits["disk_bytes"]) == (256 * MIB, 500, 100, 64 * MIB)
    limits = agent("POST", "/sandboxes", {"memory_bytes": "512m", "pids": 200})[1]["limits"]
    assert (limits["memory_bytes"], limits["pids"]) == (512 * MIB, 200)
    assert holtd.ok("POST", f"{API}/sandboxes", {})["limits"]["memory_bytes"] is None


@pytest.mark.parametrize("field, value, setting", [
    ("memory_bytes", "513m", "agent_memory_max"), ("cpu_millis", 1001, "agent_cpu_max"), ("pids", 201, "agent_pids_max"),
    ("disk_bytes", "129m", "agent_disk_max"),
    ("mounts", [{"kind": "own", "target": "/m", "size_bytes": 129 * MIB}], "agent_disk_max")])
def test_more_is_refused_by_name(holtd, agent, field, value, setting):
    status, reply = agent("POST", "/sandboxes", {field: value})
    assert status == 403 and field in reply["error"]["message"] and f"'{setting}'" in reply["error"]["hint"], reply
    status, reply = agent("POST", "/run", {field: value, "command": ["true"]})
    assert status == 403, reply
    assert holtd.ok("GET", f"{API}/sandboxes")["sandboxes"] == []


def refused(answer, setting):
    status, reply = answer
    assert status == 429 and f"'{setting}'" in reply["error"]["hint"], answer


def test_so_many_sandboxes_and_volumes(holtd, agent):
    for i in range(2):
        assert agent("POST", "/sandboxes", {})[0] == 201
        assert agent("POST", "/volumes", {"name": f"v{i}"})[0] == 201
    refused(agent("POST", "/sandboxes", {}), "agent_sandboxes")
    refused(agent("POST", "/run", {"command": ["true"]}), "agent_sandboxes")
    refused(agent("POST", "/volumes", {"name": "v2"}), "agent_volumes")
    status, reply = agent("POST", "/volumes", {"name": "t", "kind": "tmpfs", "size_bytes": "513m"})
    assert status == 403 and "agent_memory_max" in reply["error"]["hint"]
    for i in range(3):  # one who takes all of its own takes nothing of others'
        holtd.ok("POST", f"{API}/sandboxes", {})
        holtd.ok("POST", f"{API}/volumes", {"name": f"v{i}"})
    refused(holtd.request("POST", f"{API}/sandboxes", {})[:2], "owner_sandboxes")
    refused(holtd.request("POST", f"{API}/volumes", {"name": "v3"})[:2], "owner_volumes")


def test_so_many_commands(holtd, agent):
    boxes = [agent("POST", "/sandboxes", {})[1]["id"] for _ in range(2)]
    for box in boxes:
        assert agent("POST", f"/sandboxes/{box}/execs", {"command": ["sleep", "1000"], "background": True})[0] < 300
    refused(agent("POST", f"/sandboxes/{boxes[0]}/execs", {"command": ["true"]}), "agent_commands")
    assert holtd.ok("POST", f"{API}/sandboxes/{boxes[0]}/execs", {"command": ["true"]})["exit_code"] == 0


def test_they_are_on_by_default(tmp_path):
    d = native(tmp_path)
    try:
        token = d.ok("POST", f"{API}/tokens", {"name": "a", "role": "agent", "agent": "a"})["token"]
        limits = d.ok("POST", f"{API}/sandboxes", {}, token=token)["limits"]
        assert limits == {"memory_bytes": 1 << 30, "cpu_millis": 2000, "pids": 1024, "disk_bytes": 8 << 30, "nofile": None}
        assert d.request("POST", f"{API}/sandboxes", {"memory_bytes": "1t"}, token=token)[0] == 403
    finally:
        d.clear()
        d.stop()
