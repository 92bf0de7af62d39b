"""The hub as its document (seed 003) shows it: each flow of the SDK, every curl line as printed, each row of its tables; on port 8080,
where nobody needs a token."""
import hashlib
import json
import os
import shutil
import subprocess
import threading
import time

import pytest

from daemon import Holtd, wait_for
from hub_client import AgentClient, HubError, call
from own_network import own_network

HUB = "http://127.0.0.1:8080"

# As printed, but for {id}: a project's.  In the document's network the name `hub` is the hub's; here it is this machine's.
CURL_LINES = [
    """curl -X POST http://hub:8080/agents/claude/autonomy -d '{"mode":"advisory"}'""",
    """curl -X POST http://hub:8080/autonomy/set-mode -d '{"mode":"manual"}'""",
    """curl -X PATCH http://hub:8080/projects/{id}/wip \\
-d '{"status":"in_progress","limit":5}'""",
    """curl "http://hub:8080/projects/{id}/tasks/ready?agent=claude&capabilities=code&capabilities=review\"""",
    """curl http://hub:8080/projects/{id}/metrics""",
    """curl -X POST http://hub:8080/agents/claude/pause -d '{"reason":"reviewing output"}'""",
    """curl -X POST http://hub:8080/agents/claude/resume""",
    """curl -X POST http://hub:8080/agents/claude/revoke -d '{"reason":"policy violation"}'""",
]


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    with own_network():
        d = Holtd(tmp_path_factory.mktemp("sdk"), "--seed-ports", "--host-names", "hub")
        yield d
        assert d.stop() == 0


def ok(method, path, body=None, **query):
    status, reply, _ = call(HUB, method, path, body, None, query)
    assert 200 <= status < 300, f"{method} {path}: {status} {reply}"
    return reply


def test_the_first_steps(hub):
    """The document's example, line by line."""
    lead = AgentClient(HUB, "lead", "human")
    project_id = lead.create_project("quick start")["id"]
    task_id = lead.create_task(project_id, "feature X", required_capabilities=["code"])["id"]
    hermes = AgentClient(HUB, "hermes", "hermes")
    hermes.register()
    client = AgentClient(HUB + "/", "first", "claude")  # a slash at the end does no harm
    client.register()
    client.set_capabilities(["code", "review", "testing"])
    client.set_autonomy_mode("fully_autonomous")
    assert client.claim_task(project_id, task_id) == {"ok": True, "task_id": task_id}
    client.submit_checkpoint(task_id=task_id, state="implementing feature X", rationale="user story #42")
    assert client.check_revocation()["pending"] is False
    ok("POST", "/agents/first/revoke", {"reason": "look", "flush_required": False})
    rev = client.check_revocation()
    assert rev["pending"]
    assert client.acknowledge_revocation(rev["revocation_id"])
    client.register()
    client.set_capabilities(["code", "review", "testing"])
    assert client.transition_task(project_id, task_id, "in_progress")
    assert client.transition_task(project_id, task_id, "in_review")
    assert client.transition_task(project_id, task_id, "done")
    client.send_message(to="hermes", content="PR #42 ready for review")
    assert [m["content"] for m in hermes.wait_for_messages(poll_interval=0.05)] == ["PR #42 ready for review"]
    before = ok("GET", "/agents/first")["last_heartbeat"]
    client.start_heartbeat(interval=0.05)
    wait_for(lambda: ok("GET", "/agents/first")["last_heartbeat"] != before)
    client.stop_heartbeat()
    assert [t["id"] for t in client.get_my_tasks(project_id)] == [task_id]
    assert client.unregister()


def test_the_autonomous_loop(hub):
    client, other = AgentClient(HUB, "copilot", "codex"), AgentClient(HUB, "sender", "x")
    assert other.ensure_registered(metadata={"role": "sender"}) and other.ensure_registered()
    stop, got = threading.Event(), []

    def handle_message(msg):
        got.append((msg["from"], msg["content"]))
        if msg["content"] == "bad":
            raise ValueError("a handler that fails once")

    loop = threading.Thread(target=client.run_autonomous_loop, daemon=True, kwargs={
        "handler": handle_message, "poll_interval": 0.02, "heartbeat_interval": 0.05, "stop_event": stop,
        "metadata": {"role": "coding-assistant"}})
    loop.start()
    wait_for(lambda: any(a["name"] == "copilot" for a in ok("GET", "/agents")))
    for text in ("one", "two"):
        other.send_message("copilot", text)
    wait_for(lambda: ("sender", "two") in got)
    assert got == [("sender", "one"), ("sender", "two")]  # each once: acknowledged is read
    other.send_message("copilot", "bad")
    wait_for(lambda: client.failures and got.count(("sender", "bad")) > 1)  # not acknowledged: it comes again, and the loop goes on
    stop.set()
    loop.join(60)
    assert not loop.is_alive()
    with pytest.raises(RuntimeError):
        AgentClient(HUB, "a/b").run_autonomous_loop(handle_message, stop_event=stop)


def test_helpers_of_the_inbox(hub):
    a, b = AgentClient(HUB, "in-a"), AgentClient(HUB, "in-b")
    a.register()
    b.register()
    assert b.wait_for_messages(timeout_seconds=0.2, poll_interval=0.05) == []
    for n in range(4):
        a.send_message("in-b", str(n), message_type="note")
    seen = []
    assert b.process_inbox(seen.append, auto_ack=False) == 4 and len(b.get_messages(unread_only=True)) == 4
    assert b.process_inbox(seen.append, max_messages=3) == 3
    assert [m["content"] for m in b.get_messages(unread_only=True)] == ["3"]
    assert len(b.get_messages()) == 4 and b.ack(b.get_messages()[3]["id"]) and b.get_messages(True) == []
    with pytest.raises(HubError):
        a.send_message("", "to nobody")


def test_projects_of_the_sdk(hub):
    a, b = AgentClient(HUB, "pr-a"), AgentClient(HUB, "pr-b")
    a.register()
    p = a.create_project("of the SDK")["id"]
    assert b.join_project(p) and not b.join_project("none")
    assert p in [x["id"] for x in b.list_projects(agent="pr-b")] and p in [x["id"] for x in b.list_projects()]
    t = a.create_task(p, "title", "description", assigned_to="pr-a")
    assert t["assigned_to"] == "pr-a" and t["status"] == "backlog"
    assert a.update_task(p, t["id"], "ready") and not a.update_task(p, t["id"], "done")
    assert a.transition_task(p, t["id"], "blocked", blocked_reason="waits") and a.transition_task(p, t["id"], "ready")
    with pytest.raises(HubError) as e:
        b.claim_task(p, t["id"])
    assert e.value.status == 404  # it is not registered
    data = bytes(range(256)) * 100
    wanted = {"filename": "notes.bin", "checksum": hashlib.sha256(data).hexdigest(), "size": len(data)}
    assert wanted.items() <= a.upload_file(p, "notes.bin", data).items()
    assert b.download_file(p, "notes.bin") == data
    with pytest.raises(HubError) as e:
        a.upload_file(p, "../escape", b"x")
    assert e.value.status == 400


@pytest.fixture
def curl(hub, tmp_path):
    """Runs a line in a shell.  What its name `hub` is stands in curl's own settings, so that the line stays as it is."""
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    (tmp_path / ".curlrc").write_text('silent\nshow-error\nmax-time = 60\nresolve = "hub:8080:127.0.0.1"\n'
                                      'write-out = "\\n%{http_code}"\n', encoding="ascii")

    def run(line):
        r = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60,
                           env={"PATH": os.environ["PATH"], "CURL_HOME": str(tmp_path), "HOME": str(tmp_path)})
        assert r.returncode == 0, (line, r.stderr)
        body, _, status = r.stdout.rpartition("\n")
        return int(status), json.loads(body)

    return run


def test_curl_lines_as_printed(curl):
    claude = AgentClient(HUB, "claude", "claude")
    claude.register(capabilities=["code", "review"])
    p = claude.create_project("curl")["id"]
    task = claude.create_task(p, "t", required_capabilities=["review"])["id"]
    got = []
    for line in CURL_LINES:
        status, reply = curl(line.replace("{id}", p))
        assert status == 200, (line, status, reply)
        got.append(reply)
    ok("POST", "/autonomy/set-mode", {"mode": "fully_autonomous"})
    assert got[0] == {"name": "claude", "autonomy_mode": "advisory"}
    assert got[1]["mode"] == "manual" and "claude" in got[1]["updated_agents"]
    assert ok("GET", f"/projects/{p}")["wip_limits"]["in_progress"] == 5
    assert [t["id"] for t in got[3]] == [task] and got[4]["total_tasks"] == 1
    assert got[5]["status"] == "busy" and got[6]["status"] == "online"
    assert claude.check_revocation()["revocation_id"] == got[7]["revocation_id"]


def test_every_row_of_the_tables(hub):
    """Each endpoint that the document lists, in an order in which each has something to work on."""
    a = AgentClient(HUB, "rows")
    a.register(capabilities=["code"], autonomy_mode="fully_autonomous")
    p = a.create_project("rows")["id"]
    t = a.create_task(p, "t")["id"]
    m = a.send_message("rows", "to myself")["id"]
    gone = ok("POST", "/projects", {"name": "gone", "creator": "rows"})["id"]
    card = f"/projects/{p}/tasks/{t}"
    for method, path, body in (
            ("POST", "/agents/register", {"name": "rows2", "autonomy_mode": "manual", "capabilities": ["x"]}),
            ("POST", "/agents/rows/heartbeat", None), ("GET", "/agents", None),
            ("POST", "/agents/rows/autonomy", {"mode": "fully_autonomous"}), ("POST", "/agents/rows/capabilities", {"tags": ["code"]}),
            ("POST", "/agents/rows/pause", None), ("POST", "/agents/rows/resume", None), ("POST", "/agents/rows/revoke", None),
            ("GET", "/agents/rows/revocation", None), ("POST", "/agents/rows/revocation/ack", None),
            ("POST", "/agents/rows/checkpoint", {}), ("GET", "/agents/rows/checkpoint", None),
            ("POST", "/autonomy/set-mode", {"mode": "fully_autonomous"}), ("GET", "/revocation/history", None),
            ("GET", "/capabilities", None), ("GET", "/capabilities/match?tag=code", None),
            ("POST", "/messages/send", {"from": "rows", "to": "rows2", "content": "x"}), ("GET", "/messages/rows", None),
            ("POST", f"/messages/{m}/ack", None), ("GET", "/messages/history/rows/rows2", None), ("GET", "/messages/graph", None),
            ("POST", "/projects", {"name": "x", "creator": "rows"}), ("GET", "/projects", None), ("GET", f"/projects/{p}", None),
            ("DELETE", f"/projects/{gone}", None), ("POST", f"/projects/{p}/join", {"agent": "rows2"}),
            ("PATCH", f"/projects/{p}/wip", {"status": "in_review", "limit": 2}),
            ("POST", f"/projects/{p}/tasks", {"title": "x"}), ("GET", f"/projects/{p}/tasks", None),
            ("GET", f"/projects/{p}/tasks?status=backlog&agent=rows&assigned_to=rows", None), ("GET", f"/projects/{p}/tasks/ready", None),
            ("POST", f"{card}/claim", {"agent": "rows"}), ("POST", f"{card}/assign", {"agent": "rows"}),
            ("PATCH", card, {"status": "in_progress", "agent": "rows"}), ("POST", f"{card}/reviewers/rows2", None),
            ("POST", f"{card}/unassign", None), ("GET", f"/projects/{p}/metrics", None), ("GET", "/ping", None),
            ("GET", "/audit/log", None), ("DELETE", "/agents/rows2", None)):
        ok(method, path, body)


def test_events_are_as_documented(curl):
    """`curl http://hub:8080/events` shows what happens, as it happens."""
    r = subprocess.Popen(["curl", "-sN", "--max-time", "150", f"{HUB}/events"], stdout=subprocess.PIPE, text=True)
    try:
        lines = []
        threading.Thread(target=lambda: lines.extend(iter(r.stdout.readline, "")), daemon=True).start()
        a = AgentClient(HUB, "evd")
        end = time.monotonic() + 60
        while "event: agent_registered\n" not in lines and time.monotonic() < end:
            a.register()  # until the stream is open
            time.sleep(0.05)
        p = a.create_project("e")["id"]
        t = a.create_task(p, "t")["id"]
        a.claim_task(p, t)
        assert a.transition_task(p, t, "in_progress")
        ok("POST", f"/projects/{p}/tasks/{t}/assign", {"agent": "evd"})
        a.send_message("x", "hello")
        a.submit_checkpoint()
        ok("POST", "/agents/evd/pause")
        ok("POST", "/agents/evd/resume")
        ok("POST", "/agents/evd/revoke")
        a.unregister()
        for name in ("message_sent", "task_transition", "task_claimed", "task_assigned", "agent_registered", "agent_unregistered",
                     "agent_paused", "agent_resumed", "agent_revoked", "checkpoint_submitted", "project_created"):
            wait_for(lambda n=name: f"event: {n}\n" in lines, 60)
    finally:
        r.kill()
        r.wait()
