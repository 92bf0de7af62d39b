"""agentic-sandbox's HTTP interface: agents, sessions, containers, machines, HITL, events."""
import json
import subprocess
import threading
import urllib.request

import pytest
from websockets.sync.client import connect

from daemon import native, wait_for
from own_network import own_network

API = "/api/v1"


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("agentic"), config="image_aliases: ['agentic/claude:latest=host']\n")
    yield d
    d.clear()
    d.stop()


@pytest.fixture
def agent(holtd, request):
    name = "agent-" + "".join(c if c.isalnum() else "-" for c in request.node.name.removeprefix("test_"))[:40].strip("-")
    made = holtd.request("POST", f"{API}/containers", {"name": name, "image": "agentic/claude:latest"})
    assert made[0] == 201, made
    yield name
    holtd.request("DELETE", f"{API}/containers/{name}")


def refused(holtd, method, path, body=None, token="admin"):
    status, reply, _ = holtd.request(method, path, body, token=token)
    return status, reply


def test_the_life_of_a_container(holtd):
    body = {"name": "agent-01", "image": "agentic/claude:latest", "env": ["A=1", {"key": "B", "value": "2"}], "cmd": ["sleep", "1000"]}
    status, made, _ = holtd.request("POST", f"{API}/containers", body)
    assert status == 201 and (made["name"], made["image"], made["status"]) == ("agent-01", "agentic/claude:latest", "running"), made
    assert refused(holtd, "POST", f"{API}/containers", body)[0] == 409
    rows = holtd.ok("GET", f"{API}/containers?status=running")
    assert rows["total"] == 1 and rows["containers"][0]["id"] == made["id"]
    run = holtd.ok("POST", f"/holt/v1/sandboxes/{made['id']}/execs", {"command": ["sh", "-c", "echo $A$B"]})
    assert run["stdout"] == "12\n"
    assert holtd.ok("POST", f"{API}/containers/agent-01/stop?timeout=1") == {"name": "agent-01", "action": "stop", "status": "stopped", "timeout": 1}
    assert holtd.ok("GET", f"{API}/containers?status=running")["total"] == 0
    assert holtd.ok("POST", f"{API}/containers/agent-01/start")["status"] == "running"
    assert holtd.ok("DELETE", f"{API}/containers/agent-01") == {"deleted": True, "name": "agent-01"}
    assert refused(holtd, "GET", f"{API}/containers/agent-01") == (404, {"error": "container not found: agent-01"})


@pytest.mark.parametrize("name", ["Agent", "a_b", "a b", "", "ä"])
def test_names_have_one_rule(holtd, name):
    status, reply = refused(holtd, "POST", f"{API}/containers", {"name": name, "image": "host"})
    assert status == 400 and "[a-z0-9-]" in reply["error"], reply
    status, reply = refused(holtd, "POST", f"{API}/vms", {"name": name})
    assert status == 400 and reply["error"]["code"] == "INVALID_VM_NAME" and "[a-z0-9-]" in reply["error"]["message"], reply


def test_requests_that_are_refused(holtd):
    assert refused(holtd, "POST", f"{API}/containers", {"name": "x", "image": "no/such:image"})[0] == 404
    status, reply = refused(holtd, "POST", f"{API}/containers", {"name": "x", "image": "host", "mounts": ["/etc:/x"]})
    assert status == 400 and "host" in reply["error"], reply
    for body, code in (({"vcpus": 99}, "TOO_MANY_CPUS"), ({"memory_mb": 1 << 20}, "TOO_MUCH_MEMORY"), ({"disk_gb": 501}, "DISK_TOO_LARGE"),
                       ({"vcpus": 0}, "INVALID_RESOURCE_VALUE"), ({"profile": "basic", "loadout": "x"}, "VALIDATION_ERROR")):
        status, reply = refused(holtd, "POST", f"{API}/vms", {"name": "x", **body})
        assert (status, reply["error"]["code"]) == (400, code), reply
    assert refused(holtd, "GET", f"{API}/nothing") == (404, {"error": "not found"})
    assert refused(holtd, "GET", f"{API}/vms/none")[1]["error"]["code"] == "VM_NOT_FOUND"
    assert refused(holtd, "GET", f"{API}/operations/none")[1]["error"]["code"] == "OPERATION_NOT_FOUND"
    assert refused(holtd, "GET", f"{API}/agents/none") == (404, {"error": "Agent 'none' not found"})
    assert refused(holtd, "GET", f"{API}/agents", token=None)[0] == 401


def test_an_operation_tells_its_end(holtd):
    """Where there is no hypervisor, the operation fails, and says why."""
    status, reply, _ = holtd.request("POST", f"{API}/vms", {"name": "agent-vm"})
    assert status == 202 and reply["operation"]["type"] == "vm_create" and reply["operation"]["target"] == "agent-vm", reply
    path = f"{API}/operations/{reply['operation']['id']}"
    done = wait_for(lambda: (o := holtd.ok("GET", path))["status"] != "running" and o, 120)
    assert done["progress_percent"] == 100 and (done["status"] == "completed" or done["error"]), done
    holtd.request("DELETE", f"{API}/vms/agent-vm?force=true")


def test_agents_are_sandboxes(holtd, agent):
    native_one = holtd.ok("POST", "/holt/v1/sandboxes", {"name": "made-natively", "labels": {"loadout": "profiles/basic.yaml"}})
    rows = {a["id"]: a for a in holtd.ok("GET", f"{API}/agents")["agents"]}
    assert {agent, "made-natively"} <= set(rows)
    assert rows["made-natively"]["loadout"] == "profiles/basic.yaml" and rows["made-natively"]["instance_id"] == native_one["id"]
    one = holtd.ok("GET", f"{API}/agents/{agent}")
    assert one["status"] == "Ready" and one["metrics"]["memory_used_bytes"] > 0 and one["connected_at"] > 1e12, one
    assert [a["id"] for a in holtd.ok("GET", f"{API}/agents?state=disconnected")["agents"]] == []
    holtd.ok("POST", f"{API}/agents/made-natively/stop")
    assert holtd.ok("GET", f"{API}/agents/made-natively")["status"] == "Disconnected"
    holtd.ok("POST", f"{API}/agents/made-natively/start")
    assert holtd.ok("POST", f"{API}/agents/made-natively/destroy")["vm"]["state"] == "stopped"
    assert holtd.ok("DELETE", f"{API}/agents/made-natively")["deleted"] is True
    assert refused(holtd, "GET", f"{API}/agents/made-natively")[0] == 404


def test_sessions_and_their_screens(holtd, agent):
    path = f"{API}/agents/{agent}/sessions"
    made = holtd.ok("POST", path, {"command": "printf 'one\\033[5;10Htwo'; sleep 1000", "session_name": "main", "rows": 20, "cols": 60})
    assert made["session_name"] == "main" and made["pty_ws_subprotocol"] == "pty-ws.v1" and made["join_message"]["session_id"] == made["session_id"]
    assert refused(holtd, "POST", path, {"session_name": "main"})[0] == 409
    row = holtd.ok("GET", path)["sessions"][0]
    assert (row["session_id"], row["session_name"], row["has_screen"]) == (made["session_id"], "main", True)
    everything = holtd.ok("GET", f"{API}/sessions")
    assert [s["agent_id"] for s in everything if s["session_id"] == made["session_id"]] == [agent]
    screen = wait_for(lambda: (s := holtd.ok("GET", f"{API}/sessions/{made['session_id']}/screen"))["text"].count("two") and s)
    assert (screen["rows"], screen["cols"], screen["cursor"], screen["prompt_detected"]) == (20, 60, {"row": 4, "col": 12}, False), screen
    assert screen["text"].split("\n")[4] == " " * 9 + "two"
    assert refused(holtd, "GET", f"{API}/sessions/none/screen") == (404, {"error": "session 'none' not tracked"})
    assert refused(holtd, "DELETE", f"{API}/sessions/{made['session_id']}?signal=USR1")[0] == 400
    assert holtd.ok("DELETE", f"{API}/sessions/{made['session_id']}?signal=KILL") == {"session_id": made["session_id"], "signal": 9, "status": "signaled"}
    wait_for(lambda: holtd.ok("GET", path)["sessions"] == [])
    holtd.ok("POST", path, {"command": "sleep 1000", "session_name": "again"})
    for _ in range(2):
        assert holtd.request("DELETE", f"{path}/again")[0] == 204


def hitl_of(holtd, session):
    return [h for h in holtd.ok("GET", f"{API}/hitl")["requests"] if h["session_id"] == session]


@pytest.mark.parametrize("key", ["response", "text"])
def test_hitl(holtd, agent, key):
    command = "printf 'Update all callers? (y/n) '; read a; echo got $a; sleep 1000"
    made = holtd.ok("POST", f"{API}/agents/{agent}/sessions", {"command": command})
    asked = wait_for(lambda: hitl_of(holtd, made["session_id"]))[0]
    assert asked["prompt"] == "Update all callers? (y/n)" and asked["created_at_ms"] > 1e12
    again = {"session_id": made["session_id"], "prompt": "again?"}
    assert refused(holtd, "POST", f"{API}/agents/{agent}/hitl", again)[0] == 409
    assert refused(holtd, "POST", f"{API}/hitl/{asked['hitl_id']}/respond", {})[0] == 422
    assert holtd.request("POST", f"{API}/hitl/{asked['hitl_id']}/respond", {key: "yes, update all callers"})[0] == 204
    wait_for(lambda: "got yes, update all callers" in holtd.ok("GET", f"{API}/sessions/{made['session_id']}/screen")["text"])
    assert refused(holtd, "POST", f"{API}/hitl/{asked['hitl_id']}/respond", {key: "y"})[0] == 404
    assert hitl_of(holtd, made["session_id"]) == []


def test_a_caller_may_ask_itself(holtd, agent):
    made = holtd.ok("POST", f"{API}/agents/{agent}/sessions", {"command": "read a; echo got $a; sleep 1000"})
    body = {"session_id": made["session_id"], "prompt": "which branch?", "context": "main or next"}
    status, reply, _ = holtd.request("POST", f"{API}/agents/{agent}/hitl", body)
    assert status == 201, reply
    assert refused(holtd, "POST", f"{API}/agents/{agent}/hitl", body)[0] == 409
    assert hitl_of(holtd, made["session_id"])[0]["context"] == "main or next"
    assert holtd.request("POST", f"{API}/hitl/{reply['hitl_id']}/respond", {"response": "next"})[0] == 204
    wait_for(lambda: "got next" in holtd.ok("GET", f"{API}/sessions/{made['session_id']}/screen")["text"])


def socket_of(holtd, path):
    return connect(f"ws://127.0.0.1:{holtd.port}{path}", additional_headers={"Authorization": f"Bearer {holtd.token}"})


def receive(ws, kind, good=lambda m: True):
    while True:
        m = json.loads(ws.recv(timeout=30))
        if m["type"] == kind and good(m):
            return m


def test_orchestrate(holtd, agent):
    made = holtd.ok("POST", f"{API}/agents/{agent}/sessions", {"command": "PS1='> ' ENV= exec sh", "rows": 10, "cols": 40})
    path = f"/ws/sessions/{made['session_id']}/orchestrate"
    with socket_of(holtd, path) as watcher, socket_of(holtd, path + "?role=controller") as writer:
        assert receive(watcher, "session_start")["can_write"] is False
        assert receive(writer, "session_start")["role"] == "controller"
        for message in ({"type": "write", "text": "x"}, {"type": "resize", "rows": 5, "cols": 5}, {"type": "signal", "signal": "SIGINT"}):
            watcher.send(json.dumps(message))
            assert "controller" in receive(watcher, "error")["message"]
        watcher.send("{")
        assert receive(watcher, "error")["message"] == "invalid orchestrator input"
        writer.send(json.dumps({"type": "write", "text": "printf 'Sure? (y/n) '; read a\n"}))
        assert receive(watcher, "prompt_detected")["prompt_text"].endswith("Sure? (y/n)")
        writer.send(json.dumps({"type": "resize", "rows": 12, "cols": 50}))
        assert receive(watcher, "screen_update", lambda m: m["screen"]["rows"] == 12)["screen"]["cols"] == 50
        writer.send(json.dumps({"type": "write", "text": "y\nexit 3\n"}))
        assert receive(watcher, "session_end")["exit_code"] == 3
    assert refused(holtd, "GET", path + "?role=king")[0] == 400
    assert refused(holtd, "GET", "/ws/sessions/none/orchestrate")[0] == 404


def test_events_as_a_page_and_as_a_stream(holtd):
    got = []
    request = urllib.request.Request(f"http://127.0.0.1:{holtd.port}{API}/events?follow=true", headers={"Authorization": f"Bearer {holtd.token}"})
    stream = urllib.request.urlopen(request, timeout=30)

    def read():
        for line in stream:
            if line.startswith(b"data:"):
                got.append(json.loads(line[5:]))
                if got[-1]["event_type"] == "container.removed":
                    return

    reader = threading.Thread(target=read)
    reader.start()
    holtd.ok("POST", f"{API}/containers", {"name": "seen", "image": "host"})
    holtd.ok("POST", f"{API}/agents/seen/sessions", {"command": "true"})
    holtd.ok("DELETE", f"{API}/containers/seen")
    reader.join(30)
    stream.close()
    types = [e["event_type"] for e in got if e["vm_name"] == "seen"]
    assert types[0] == "container.created" and types[-1] == "container.removed", got
    assert "agent.pty.created" in [e["event_type"] for e in got]
    page = holtd.ok("GET", f"{API}/events?source=seen&limit=2")
    assert page["events"][0]["event_type"] == "container.removed" and len(page["events"]) == 2 and page["last_event_id"] > 0


def test_health(holtd, agent):
    assert holtd.ok("GET", "/api/health", token=None) == {"status": "ok", "service": "agentic-management"}
    assert holtd.ok("GET", "/healthz/http", token=None) == {"http": "alive"}
    assert holtd.ok("GET", f"{API}/health/live", token=None) == {"alive": True}
    assert holtd.ok("GET", f"{API}/health/ready") == {"ready": True, "reason": "agents_connected"}
    assert holtd.ok("GET", f"{API}/health")["agents"]["connected"] >= 1
    assert [i["ref"] for i in holtd.ok("GET", f"{API}/container-images")["images"]][0] == "agentic/claude:latest"


def test_the_seeds_lines_as_printed(tmp_path):
    with own_network():
        the_seeds_lines(tmp_path)


def the_seeds_lines(tmp_path):
    d = native(tmp_path, "--seed-ports")
    run = lambda line: subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=30, check=True).stdout
    d.ok("POST", f"{API}/containers", {"name": "agent-01", "image": "host"})
    made = d.ok("POST", f"{API}/agents/agent-01/sessions", {"command": "printf 'Go on? (y/n) '; read a; echo got $a; sleep 1000"})
    wait_for(lambda: json.loads(run("curl -s http://localhost:8122/api/v1/hitl"))["requests"])
    hitl = json.loads(run("curl -s http://localhost:8122/api/v1/hitl"))["requests"][0]["hitl_id"]
    run(f"""curl -s -X POST http://localhost:8122/api/v1/hitl/{hitl}/respond \\
-H "Content-Type: application/json" \\
-d '{{"response": "y"}}'""")
    wait_for(lambda: "got y" in json.loads(run(f"curl -s http://localhost:8122/api/v1/sessions/{made['session_id']}/screen"))["text"])
    d.clear()
    d.stop()
