"""The hub's rules: agents, boards, mail, oversight, events.  Its document's flows: test_hub_sdk.py; all at once: test_team_storm.py."""
import json
import re
import signal
import threading
import time
import urllib.request

import pytest
from websockets.sync.client import connect

from daemon import all_events, wait_for
from hub_client import AgentClient, HubError, call

TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?$")


@pytest.fixture(scope="module")
def open_hub(tmp_path_factory):
    """As the original: nobody needs a token, so nobody can be told apart."""
    from daemon import Holtd
    d = Holtd(tmp_path_factory.mktemp("hub"), "--auth", "off")
    yield d
    assert d.stop() == 0


def agent(hub, name, kind="worker", **more):
    c = AgentClient(hub.url + "/", name, kind)
    c.register(**more)
    return c


def person(hub, method, path, body=None, **query):
    return call(hub.url, method, path, body, None, query)


def ok(hub, method, path, body=None, **query):
    status, reply, _ = person(hub, method, path, body, **query)
    assert 200 <= status < 300, f"{method} {path}: {status} {reply}"
    return reply


def refused(status, text, f, *args, **more):
    with pytest.raises(HubError) as e:
        f(*args, **more)
    assert e.value.status == status, e.value
    assert text in e.value.body["error"], e.value
    return e.value


def status_of(hub, name):
    return ok(hub, "GET", f"/agents/{name}")["status"]


# --- agents ---


def test_register_and_list(open_hub):
    a = AgentClient(open_hub.url, "reg", "coder")
    reply = a.register({"k": [1]}, capabilities="Code, review", autonomy_mode="nonsense")
    assert reply["id"] == "reg" and reply["type"] == "coder" and reply["capabilities"] == ["code", "review"]
    assert reply["autonomy_mode"] == "fully_autonomous" and TIME.match(reply["registered_at"])
    assert "token" not in reply
    item = next(x for x in ok(open_hub, "GET", "/agents") if x["name"] == "reg")
    assert {"name", "type", "status", "registered_at", "last_heartbeat", "autonomy_mode", "capabilities",
            "current_task_id", "checkpoint_sequence"} <= set(item)
    assert item["status"] == "online" and item["current_task_id"] is None
    assert a.heartbeat() and a.ensure_registered()
    assert ok(open_hub, "POST", "/agents/reg/heartbeat")["checkpoint_tick"] == 3
    assert a.unregister() and not a.unregister() and not a.heartbeat()
    assert person(open_hub, "POST", "/agents/reg/heartbeat")[:2][1]["error"] == "agent not found"


@pytest.mark.parametrize("body,text", [
    ({}, "name required"), ({"name": 7}, "name must be a text"), ({"name": "a/b"}, "slashes"), ({"name": "a,b"}, "commas"),
    ({"name": "x" * 129}, "1 to 128"), ({"name": "*"}, "not a name"), ({"name": "human"}, "not a name"),
    ({"name": "."}, "'.' or '..'"), ({"name": ".."}, "'.' or '..'"), ({"name": "graph"}, "not a name"), ({"name": "register"}, "not a name"),
    ({"name": "a", "capabilities": 3}, "capabilities must be"), ({"name": "a", "capabilities": ["a"] * 65}, "at most 64"),
    ({"name": "a", "metadata": []}, "an object"), ([], "a JSON object"), (None, "name required"),
])
def test_bad_registrations(open_hub, body, text):
    raw = b"" if body is None else json.dumps(body).encode()
    status, reply, _ = call(open_hub.url, "POST", "/agents/register", raw=raw)
    assert status == 400 and text in reply["error"], reply


def test_errors_are_json_in_the_hubs_shape(open_hub):
    for method, path, status in (("GET", "/agents/", 404), ("PUT", "/agents", 405), ("GET", "/projects/x/y/z", 404),
                                 ("GET", "/projects/none", 404), ("GET", "/projects/none/tasks", 404),
                                 ("GET", "/projects/none/metrics", 404), ("GET", "/projects/none/tasks/ready", 404),
                                 ("POST", "/projects/none/tasks", 400)):
        got, reply, _ = person(open_hub, method, path)
        assert got == status and isinstance(reply["error"], str), (method, path, got, reply)
    assert call(open_hub.url, "POST", "/messages/send", raw=b"{nope")[0] == 400
    assert person(open_hub, "GET", "/revocation/history", limit="many")[0] == 400
    status, reply, headers = person(open_hub, "OPTIONS", "/agents")
    assert (status, reply) == (200, None) and headers["Allow"] == "GET, HEAD, OPTIONS"
    # No content type is needed, but a page of another site cannot use that.
    assert call(open_hub.url, "POST", "/agents/register", {"name": "evil"}, headers={"Origin": "http://evil.example"})[0] == 403


def test_capabilities(open_hub):
    a = agent(open_hub, "cap1")
    agent(open_hub, "cap2", capabilities=["Testing"])
    assert a.set_capabilities(["Code", " testing ", "code"], "does things") == {"name": "cap1", "tags": ["code", "testing"]}
    assert ok(open_hub, "GET", "/capabilities/match", tag="TESTING") == {"tag": "TESTING", "agents": ["cap1", "cap2"]}
    assert {"agent": "cap1", "tags": ["code", "testing"], "description": "does things"} in ok(open_hub, "GET", "/capabilities")
    assert person(open_hub, "GET", "/capabilities/match")[1]["error"] == "tag required"
    assert person(open_hub, "POST", "/agents/nobody/capabilities", {"tags": "x"})[0] == 404


def test_checkpoints_keep_history(open_hub):
    a = agent(open_hub, "chk")
    assert person(open_hub, "GET", "/agents/chk/checkpoint")[1]["error"] == "No checkpoint found"
    for n in (1, 2, 3):
        assert a.submit_checkpoint(f"t{n}", "working", "because", {"n": n})["sequence"] == n
    last = ok(open_hub, "GET", "/agents/chk/checkpoint")
    assert (last["task_id"], last["state"], last["rationale"], last["sequence"]) == ("t3", "working", "because", 3)
    assert [c["sequence"] for c in ok(open_hub, "GET", "/agents/chk/checkpoints")] == [3, 2, 1]
    item = ok(open_hub, "GET", "/agents/chk")
    assert item["current_task_id"] == "t3" and item["checkpoint_sequence"] == 3
    assert person(open_hub, "POST", "/agents/nobody/checkpoint", {})[0] == 404


def test_pause_outlives_heartbeat_and_registration(open_hub):
    a = agent(open_hub, "paused")
    p = a.create_project("pauses")["id"]
    held, other = (a.create_task(p, t)["id"] for t in ("held", "other"))
    a.claim_task(p, held)
    assert ok(open_hub, "POST", "/agents/paused/pause", {"reason": "look"}) == {
        "name": "paused", "status": "busy", "paused": True}
    a.heartbeat()
    a.register()
    a.unregister()
    a.register()
    item = ok(open_hub, "GET", "/agents/paused")
    assert item["status"] == "busy" and item["paused"]
    refused(403, "paused", a.claim_task, p, other)
    assert person(open_hub, "POST", f"/projects/{p}/tasks/{other}/assign", {"agent": "paused"})[0] == 403
    refused(403, "paused", a.create_task, p, "for it", assigned_to="paused")
    assert ok(open_hub, "POST", "/agents/paused/resume")["status"] == "online"
    a.claim_task(p, other)


def test_work_in_hand_is_finished_while_paused(open_hub):
    a = agent(open_hub, "finisher")
    p = a.create_project("finish")["id"]
    t = a.create_task(p, "t")["id"]
    a.claim_task(p, t)
    ok(open_hub, "POST", "/agents/finisher/pause")
    for to in ("in_progress", "in_review", "done"):
        assert ok(open_hub, "PATCH", f"/projects/{p}/tasks/{t}", {"status": to, "agent": "finisher"})["status"] == to


def test_revocation_holds_until_acknowledged(open_hub):
    a = agent(open_hub, "revoked")
    p = a.create_project("revocations")["id"]
    t = a.create_task(p, "t")["id"]
    a.claim_task(p, t)
    ok(open_hub, "PATCH", f"/projects/{p}/tasks/{t}", {"status": "in_progress", "agent": "revoked"})
    assert status_of(open_hub, "revoked") == "busy"
    r = ok(open_hub, "POST", "/agents/revoked/revoke", {"reason": "policy"})
    card = ok(open_hub, "GET", f"/projects/{p}/tasks/{t}")
    assert card["status"] == "ready" and card["assigned_to"] is None and card["transitions"][-1]["by"] == "system"
    for _ in range(2):  # a poll does not consume it
        assert a.check_revocation() == {"pending": True, "revocation_id": r["revocation_id"], "reason": "policy",
                                        "flush_required": True}
    a.heartbeat()
    a.register()
    assert status_of(open_hub, "revoked") == "revoked"
    e = refused(403, "agent 'revoked' is revoked, by anonymous at 20", a.claim_task, p, t)
    assert e.body["error"].endswith("Z: policy") and "holt agent ack revoked" in e.body["hint"]
    refused(403, "revoked", a.send_message, "x", "hello")
    assert person(open_hub, "PATCH", f"/projects/{p}/tasks/{t}", {"status": "blocked", "agent": "revoked"})[0] == 403
    assert person(open_hub, "POST", f"/projects/{p}/tasks/{t}/reviewers/revoked")[0] == 403
    history = [h for h in ok(open_hub, "GET", "/revocation/history") if h["agent"] == "revoked"]
    assert [(h["id"], h["acknowledged"]) for h in history] == [(r["revocation_id"], False)]
    assert a.acknowledge_revocation("unknown") and a.check_revocation()["pending"]
    assert a.acknowledge_revocation(r["revocation_id"]) and a.check_revocation() == {"pending": False}
    assert status_of(open_hub, "revoked") == "online"
    assert [h["acknowledged"] for h in ok(open_hub, "GET", "/revocation/history") if h["agent"] == "revoked"] == [True]
    a.claim_task(p, t)


# --- autonomy ---


def test_modes(new_holtd):
    hub = new_holtd("--auth", "off")
    a = agent(hub, "m1", "coder")
    agent(hub, "m2", "writer")
    assert a.set_autonomy_mode("manual") == {"name": "m1", "autonomy_mode": "manual"}
    refused(400, "Invalid mode: wild", a.set_autonomy_mode, "wild")
    p = a.create_project("modes")["id"]
    t = a.create_task(p, "t")["id"]
    refused(403, "manual", a.claim_task, p, t)
    assert person(hub, "PATCH", f"/projects/{p}/tasks/{t}", {"status": "ready", "agent": "m1"})[0] == 403
    ok(hub, "POST", f"/projects/{p}/tasks/{t}/assign", {"agent": "m1"})
    assert ok(hub, "PATCH", f"/projects/{p}/tasks/{t}", {"status": "in_progress", "agent": "m1"})["status"] == "in_progress"
    assert a.register(autonomy_mode="fully_autonomous")["autonomy_mode"] == "manual"  # its own wish does not raise it
    assert ok(hub, "POST", "/autonomy/set-mode", {"mode": "advisory", "agent_type": "coder"}) == {
        "mode": "advisory", "updated_agents": ["m1"]}
    assert ok(hub, "POST", "/autonomy/set-mode", {"mode": "advisory"})["updated_agents"] == ["m1", "m2"]
    assert agent(hub, "m3").register()["autonomy_mode"] == "advisory"  # the default of those who come later


def test_an_advisory_agent_proposes(open_hub):
    a, rival = agent(open_hub, "adv"), agent(open_hub, "rival")
    a.set_autonomy_mode("advisory")
    p = a.create_project("advice")["id"]
    t1, t2 = (a.create_task(p, x)["id"] for x in "12")
    reply = a.claim_task(p, t1)
    assert reply["status"] == "pending_approval" and a.claim_task(p, t1) == reply  # the same wish is the same proposal
    assert ok(open_hub, "GET", f"/projects/{p}/tasks/{t1}")["assigned_to"] is None
    pending = ok(open_hub, "GET", "/proposals", agent="adv", status="pending")
    assert [x["task_id"] for x in pending] == [t1] and pending[0]["action"] == "claim"
    done = []

    def approve():
        done.append(person(open_hub, "POST", f"/proposals/{reply['proposal_id']}/approve", {"reason": "fine"})[0])

    threads = [threading.Thread(target=approve) for _ in range(8)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    assert sorted(done) == [200] + [409] * 7
    card = ok(open_hub, "GET", f"/projects/{p}/tasks/{t1}")
    assert card["assigned_to"] == "adv" and len(card["transitions"]) == 1
    # The board moved on: what is approved now is checked against it.
    late = a.claim_task(p, t2)["proposal_id"]
    rival.claim_task(p, t2)
    status, answer, _ = person(open_hub, "POST", f"/proposals/{late}/approve")
    assert status == 409 and "belongs to 'rival'" in answer["error"]
    assert ok(open_hub, "GET", f"/proposals/{late}")["status"] == "pending"
    assert ok(open_hub, "POST", f"/proposals/{late}/reject", {"reason": "too late"})["status"] == "rejected"
    move = ok(open_hub, "PATCH", f"/projects/{p}/tasks/{t1}", {"status": "in_progress", "agent": "adv"})["proposal_id"]
    assert ok(open_hub, "POST", f"/proposals/{move}/approve")["status"] == "approved"
    assert ok(open_hub, "GET", f"/projects/{p}/tasks/{t1}")["status"] == "in_progress"
    assert person(open_hub, "POST", "/proposals/none/approve")[1]["error"] == "proposal not found"
    t3 = a.create_task(p, "blocked by which?")["id"]
    first, again, other = (ok(open_hub, "PATCH", f"/projects/{p}/tasks/{t3}", {"status": "blocked", "blocked_by": x, "agent": "adv"})[
        "proposal_id"] for x in (t1, t1, t2))
    assert first == again != other
    own = a.claim_task(p, a.create_task(p, "3")["id"])["proposal_id"]  # who says it is an agent is one
    assert person(open_hub, "POST", f"/proposals/{own}/approve", {"by": "adv"})[0] == 403
    assert person(open_hub, "POST", f"/proposals/{own}/reject", {"by": "ann"})[0] == 200
    # It has lost the card meanwhile: a person's yes does not let it move another's.
    move = ok(open_hub, "PATCH", f"/projects/{p}/tasks/{t1}", {"status": "in_review", "agent": "adv"})["proposal_id"]
    ok(open_hub, "POST", f"/projects/{p}/tasks/{t1}/assign", {"agent": "rival"})
    ok(open_hub, "PATCH", f"/projects/{p}/tasks/{t1}", {"status": "in_progress"})
    status, answer, _ = person(open_hub, "POST", f"/proposals/{move}/approve")
    assert status == 403 and "belongs to 'rival'" in answer["error"]
    a.unregister()
    assert person(open_hub, "POST", f"/proposals/{move}/approve")[1]["error"] == "the proposal is closed already"
    assert ok(open_hub, "GET", f"/projects/{p}/tasks/{t1}")["status"] == "in_progress"


def test_proposals_go_with_what_they_are_about(new_holtd):
    hub = new_holtd("--auth", "off")
    a, b = agent(hub, "asks"), agent(hub, "asks2")
    events = Events(hub)
    p, q = (a.create_project(x)["id"] for x in "pq")
    a.set_autonomy_mode("advisory")
    b.set_autonomy_mode("advisory")
    gone, mine, others = (x.claim_task(y, a.create_task(y, "t")["id"])["proposal_id"] for x, y in ((a, p), (a, q), (b, q)))
    ok(hub, "DELETE", f"/projects/{p}")
    assert [x["id"] for x in ok(hub, "GET", "/proposals", status="closed")] == [gone]
    assert person(hub, "POST", f"/proposals/{gone}/approve")[0] == 409
    a.unregister()
    assert [x["id"] for x in ok(hub, "GET", "/proposals", status="pending")] == [others]
    agent(hub, "asks")  # somebody else's wish, under the same name
    assert person(hub, "POST", f"/proposals/{mine}/approve")[0] == 409
    wait_for(lambda: [x[2]["proposal_id"] for x in events.got if x[1] == "proposal_closed"] == [gone, mine])


# --- boards ---


def test_projects(open_hub):
    a = agent(open_hub, "pro")
    p = a.create_project("mine")
    assert set(p) == {"id", "name", "created_at"}
    assert AgentClient(open_hub.url, "other").join_project(p["id"]) and AgentClient(open_hub.url, "other").join_project(p["id"])
    whole = ok(open_hub, "GET", f"/projects/{p['id']}")
    assert whole["members"] == ["pro", "other"] and whole["wip_limits"] == {"TaskStatus.IN_PROGRESS": 3, "TaskStatus.IN_REVIEW": 5}
    assert [x["id"] for x in a.list_projects("other")] == [p["id"]]
    assert person(open_hub, "POST", "/projects", {"name": "x"})[1]["error"] == "name and creator required"
    assert person(open_hub, "PATCH", f"/projects/{p['id']}/wip", {"status": "in_progress"})[1]["error"] == "status and limit required"
    assert "from 0 to" in person(open_hub, "PATCH", f"/projects/{p['id']}/wip", {"status": "in_progress", "limit": -1})[1]["error"]
    assert person(open_hub, "PATCH", f"/projects/{p['id']}/wip", {"status": "x", "limit": 1})[1]["error"] == "Invalid status: x"
    assert person(open_hub, "PATCH", f"/projects/{p['id']}/wip", {"status": "done", "limit": "1"})[0] == 400
    t = a.create_task(p["id"], "t")["id"]
    assert ok(open_hub, "DELETE", f"/projects/{p['id']}") == {"status": "ok"}
    assert person(open_hub, "GET", f"/projects/{p['id']}")[1]["error"] == "project not found"
    assert person(open_hub, "PATCH", f"/projects/{p['id']}/tasks/{t}", {"status": "ready"})[0] == 404


ALLOWED = {"backlog": ["ready", "blocked"], "ready": ["in_progress", "blocked", "backlog"],
           "in_progress": ["in_review", "blocked", "ready"], "in_review": ["done", "in_progress"],
           "blocked": ["ready", "backlog"], "done": ["backlog"]}
WAY = {"backlog": [], "ready": ["ready"], "in_progress": ["ready", "in_progress"],
       "in_review": ["ready", "in_progress", "in_review"], "blocked": ["blocked"],
       "done": ["ready", "in_progress", "in_review", "done"]}


@pytest.mark.parametrize("start", list(ALLOWED))
def test_every_move(open_hub, start):
    a = agent(open_hub, "mover")
    p = a.create_project("moves")["id"]
    for to in ALLOWED:
        t = a.create_task(p, f"{start} {to}")["id"]
        for step in WAY[start]:
            assert a.transition_task(p, t, step)
        status, reply, _ = person(open_hub, "PATCH", f"/projects/{p}/tasks/{t}", {"status": to})
        if to in ALLOWED[start]:
            assert status == 200 and reply["status"] == to
        else:
            assert status == 400 and reply["error"] == f"Invalid transition: {start} → {to}"
    assert person(open_hub, "PATCH", f"/projects/{p}/tasks/{t}", {"status": "x"})[1]["error"] == "Invalid status: x"
    assert person(open_hub, "PATCH", f"/projects/{p}/tasks/none", {"status": "x"})[1]["error"] == "task not found"


def test_ready_queue(open_hub):
    a = agent(open_hub, "queue", capabilities=["code"])
    p = a.create_project("queue")["id"]
    low = a.create_task(p, "low", priority="p3")["id"]
    code = a.create_task(p, "code", priority="P1", required_capabilities=["Code"])["id"]
    review = a.create_task(p, "review", priority="P0", required_capabilities=["review"])["id"]
    plain = a.create_task(p, "plain", priority="whatever")["id"]

    def ready(**query):
        return [x["id"] for x in ok(open_hub, "GET", f"/projects/{p}/tasks/ready", **query)]

    assert ready() == [review, code, plain, low]
    assert ready(agent="queue", capabilities=["code", "review"]) == [review, code, plain, low]
    assert ready(agent="queue", capabilities=["code"]) == [code, plain, low]
    assert ready(agent="queue") == [code, plain, low]  # what it can, from its own profile
    refused(400, "Capabilities insufficient. Required: review", a.claim_task, p, review)
    a.claim_task(p, code)
    assert ready(agent="somebody else") == [review, plain, low]
    assert [x["id"] for x in a.get_my_tasks()] == [code] and ok(open_hub, "GET", "/tasks") == []


def test_claims_and_wip(open_hub):
    a, b = agent(open_hub, "wip"), agent(open_hub, "wip2")
    p = a.create_project("wip")["id"]
    t = [a.create_task(p, str(n))["id"] for n in range(8)]
    for x in t[:3]:
        assert a.claim_task(p, x) == {"ok": True, "task_id": x}
    assert a.claim_task(p, t[0])["ok"]  # a repeated request
    refused(400, "WIP limit reached for wip", a.claim_task, p, t[3])
    refused(409, "belongs to 'wip'", b.claim_task, p, t[0])
    refused(400, "Task not found", a.claim_task, p, "none")
    refused(404, "agent not found", AgentClient(open_hub.url, "ghost").claim_task, p, t[3])
    assert person(open_hub, "POST", f"/projects/{p}/tasks/{t[3]}/claim", {})[1]["error"] == "agent required"
    assert person(open_hub, "POST", f"/projects/{p}/tasks/{t[3]}/assign", {"agent": "wip"})[0] == 400
    ok(open_hub, "PATCH", f"/projects/{p}/wip", {"status": "in_progress", "limit": 5})
    for x in t[3:5]:
        a.claim_task(p, x)
    assert refused(400, "WIP limit", a.claim_task, p, t[5]).body["error"] == "WIP limit reached for wip (limit: 5)"
    ok(open_hub, "PATCH", f"/projects/{p}/wip", {"status": "in_review", "limit": 1})
    for x in t[:2]:
        assert a.transition_task(p, x, "in_progress")
    refused(400, "Cannot claim task in in_progress status", a.claim_task, p, t[0])
    assert a.transition_task(p, t[0], "in_review")
    status, reply, _ = person(open_hub, "PATCH", f"/projects/{p}/tasks/{t[1]}", {"status": "in_review"})
    assert status == 400 and reply["error"] == "WIP limit reached for wip in in_review (limit: 1)"
    assert ok(open_hub, "POST", f"/projects/{p}/tasks/{t[4]}/unassign") == {"ok": True}
    card = ok(open_hub, "GET", f"/projects/{p}/tasks/{t[4]}")
    assert card["status"] == "backlog" and card["assigned_to"] is None and card["claimed_by"] is None
    b.register(max_concurrent_tasks=1)
    b.claim_task(p, t[4])
    refused(400, "its own limit: 1", b.claim_task, p, t[6])


def test_reviews_blockers_and_subtasks(open_hub):
    a = agent(open_hub, "rev")
    p = a.create_project("reviews")["id"]
    gated = a.create_task(p, "gated", required_reviewers=1)["id"]
    a.claim_task(p, gated)
    for to in ("in_progress", "in_review"):
        assert a.transition_task(p, gated, to)
    assert not a.transition_task(p, gated, "done")
    for name in ("rev", "rev"):  # one's own review does not count
        ok(open_hub, "POST", f"/projects/{p}/tasks/{gated}/reviewers/{name}")
    assert not a.transition_task(p, gated, "done")
    ok(open_hub, "POST", f"/projects/{p}/tasks/{gated}/reviewers/peer")
    free = a.create_task(p, "free", required_reviewers=None)["id"]  # nobody asked for reviews
    assert all(a.transition_task(p, free, to) for to in ("ready", "in_progress", "in_review", "done"))
    waits = a.create_task(p, "waits")["id"]
    assert not a.transition_task(p, waits, "blocked", "needs it", "no-such-task")
    assert not a.transition_task(p, waits, "blocked", "needs it", waits)
    assert a.transition_task(p, waits, "blocked", "needs it", gated)
    assert ok(open_hub, "GET", f"/projects/{p}/tasks/{waits}")["blocked_by"] == gated
    status, reply, _ = person(open_hub, "PATCH", f"/projects/{p}/tasks/{waits}", {"status": "ready", "agent": "rev"})
    assert status == 400 and "not done" in reply["error"]
    child = a.create_task(p, "child", parent_task_id=gated)["id"]
    assert ok(open_hub, "GET", f"/projects/{p}/tasks/{gated}")["subtasks"] == [child]
    assert not a.transition_task(p, gated, "done")
    for to in ("ready", "in_progress", "in_review", "done"):
        assert a.transition_task(p, child, to)
    assert a.transition_task(p, gated, "done")
    card = ok(open_hub, "GET", f"/projects/{p}/tasks/{waits}")
    assert card["status"] == "ready" and card["blocked_by"] is None and card["blocked_reason"] is None


def test_unblocked_without_room(open_hub):
    """What waited comes back; its owner is full meanwhile, and has it no more, nor as its current one."""
    a = agent(open_hub, "roomless")
    p = a.create_project("room")["id"]
    waits, blocker, *more = (a.create_task(p, str(n))["id"] for n in range(5))
    a.claim_task(p, waits)
    assert a.transition_task(p, waits, "blocked", "", blocker)
    for t in more:
        a.claim_task(p, t)
    a.submit_checkpoint(waits, "waiting")
    for to in ("ready", "in_progress", "in_review", "done"):
        assert a.transition_task(p, blocker, to)
    card = ok(open_hub, "GET", f"/projects/{p}/tasks/{waits}")
    assert (card["status"], card["assigned_to"], card["claimed_by"]) == ("ready", None, None)
    assert ok(open_hub, "GET", "/agents/roomless")["current_task_id"] is None


def test_who_has_a_card_no_more(open_hub):
    """What goes to the backlog, and what its owner leaves behind, is anybody's again."""
    a, b = agent(open_hub, "leaver"), agent(open_hub, "taker")
    p = a.create_project("left")["id"]
    back, held, shown = (a.create_task(p, x)["id"] for x in ("back", "held", "shown"))
    for t in (back, held, shown):
        a.claim_task(p, t)
    for t, way in ((held, ["in_progress"]), (shown, ["in_progress", "in_review"])):
        for to in way:
            assert a.transition_task(p, t, to)
    assert a.transition_task(p, back, "backlog")
    card = ok(open_hub, "GET", f"/projects/{p}/tasks/{back}")
    assert (card["status"], card["assigned_to"], card["claimed_by"]) == ("backlog", None, None)
    b.claim_task(p, back)
    assert a.unregister()
    card = ok(open_hub, "GET", f"/projects/{p}/tasks/{held}")
    assert (card["status"], card["assigned_to"], card["transitions"][-1]["by"]) == ("ready", None, "system")
    assert ok(open_hub, "GET", f"/projects/{p}/tasks/{shown}")["status"] == "in_review"  # what is done is looked at
    b.claim_task(p, held)
    assert b.transition_task(p, held, "in_progress") and status_of(open_hub, "taker") == "busy"
    ok(open_hub, "DELETE", f"/projects/{p}")
    assert status_of(open_hub, "taker") == "online"


def test_metrics(open_hub):
    a = agent(open_hub, "met")
    p = a.create_project("metrics")["id"]
    t = [a.create_task(p, str(n))["id"] for n in range(3)]
    for x in t[:2]:
        a.claim_task(p, x)
        assert a.transition_task(p, x, "in_progress")
    for to in ("in_review", "done"):
        assert a.transition_task(p, t[0], to)
    m = ok(open_hub, "GET", f"/projects/{p}/metrics")
    assert m["total_tasks"] == 3 and m["completed_count"] == 1 and m["agent_throughput"] == {"met": 1}
    assert m["by_status"] == {"backlog": 1, "ready": 0, "in_progress": 1, "in_review": 0, "blocked": 0, "done": 1}
    assert m["agent_wip"]["met"] == {"in_progress": 1, "in_review": 0}
    assert m["avg_cycle_time_minutes"] >= 0 and m["p99_cycle_time_minutes"] >= m["p50_cycle_time_minutes"]


def test_a_hundred_claims_one_winner(open_hub):
    p = agent(open_hub, "race").create_project("race")["id"]
    t = AgentClient(open_hub.url, "race").create_task(p, "one")["id"]
    agents = [agent(open_hub, f"race{n}") for n in range(100)]
    results = [None] * len(agents)

    def claim(n):
        results[n] = agents[n].ask("POST", f"/projects/{p}/tasks/{t}/claim", {"agent": agents[n].name})[0]

    threads = [threading.Thread(target=claim, args=(n,)) for n in range(len(agents))]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    assert sorted(results) == [200] + [409] * 99
    assert ok(open_hub, "GET", f"/projects/{p}/tasks/{t}")["claimed_by"] == f"race{results.index(200)}"


def test_leases_and_status(new_holtd):
    hub = new_holtd("--auth", "off", "--agent-heartbeat-ms", "3s", "--task-grace-ms", "3s", "--agent-cycle", "2",
                    "--agent-missed", "2")
    a = agent(hub, "gone")
    p = a.create_project("leases")["id"]
    t = a.create_task(p, "t")["id"]
    a.claim_task(p, t)
    for _ in range(4):
        a.heartbeat()
    assert status_of(hub, "gone") == "stalled"
    a.submit_checkpoint(t, "alive")
    assert status_of(hub, "gone") == "online"
    wait_for(lambda: status_of(hub, "gone") == "offline")
    wait_for(lambda: ok(hub, "GET", f"/projects/{p}/tasks/{t}")["assigned_to"] is None)
    card = ok(hub, "GET", f"/projects/{p}/tasks/{t}")
    assert card["status"] == "ready"
    told = [e["data"]["status"] for e in all_events(hub, object="agent/gone") if e["type"] == "agent.status"]
    assert told == ["stalled", "online", "offline"]
    a.heartbeat()
    assert status_of(hub, "gone") == "online"
    a.claim_task(p, t)
    assert a.transition_task(p, t, "blocked", "waits")
    wait_for(lambda: ok(hub, "GET", f"/projects/{p}/tasks/{t}")["assigned_to"] is None)
    assert ok(hub, "GET", f"/projects/{p}/tasks/{t}")["status"] == "blocked"
    a.heartbeat()
    ok(hub, "POST", "/agents/gone/revoke")
    for _ in range(4):
        a.heartbeat()
    assert a.acknowledge_revocation(None) and status_of(hub, "gone") == "online"  # it begins anew, not stalled


@pytest.mark.parametrize("how", ["killed", "stopped for a while"])
def test_a_hub_that_was_away_blames_nobody(new_holtd, how):
    """Heartbeats could not be heard; the agent keeps its task, and has its time to be heard again."""
    times = ("--auth", "off", "--agent-heartbeat-ms", "3s", "--task-grace-ms", "1s")
    hub = new_holtd(*times, name="away")
    a = agent(hub, "kept")
    p = a.create_project("away")["id"]
    t = a.create_task(p, "t")["id"]
    a.claim_task(p, t)
    if how == "killed":
        hub.process.kill()
        hub.process.wait()
        time.sleep(6)
        hub = new_holtd(*times, name="away")
    else:
        hub.process.send_signal(signal.SIGSTOP)
        time.sleep(6)
        hub.process.send_signal(signal.SIGCONT)
    time.sleep(1.5)
    assert ok(hub, "GET", f"/projects/{p}/tasks/{t}")["assigned_to"] == "kept"
    assert status_of(hub, "kept") == "online"
    assert not [e for e in all_events(hub, object="agent/kept") if e["type"] == "agent.status"]
    wait_for(lambda: ok(hub, "GET", f"/projects/{p}/tasks/{t}")["assigned_to"] is None)


# --- mail ---


def test_messages(open_hub):
    a, b = agent(open_hub, "mail-a"), agent(open_hub, "mail-b")
    first = a.send_message("mail-b", "one")
    assert set(first) == {"id", "from", "to", "timestamp"}
    a.send_message("mail-b", "two", "task")
    assert [m["content"] for m in b.get_messages(True)] == ["one", "two"]
    assert [m["delivered"] for m in b.get_messages(True)] == [False, False]
    assert [m["type"] for m in b.get_messages()] == ["text", "task"]
    assert all(m["delivered"] for m in b.get_messages(True))
    seen = []
    assert b.process_inbox(seen.append) == 2 and b.process_inbox(seen.append) == 0  # acknowledged is read
    assert b.send_message("mail-a", "back")
    assert [m["content"] for m in ok(open_hub, "GET", "/messages/history/mail-a/mail-b")] == ["back", "two", "one"]
    assert [m["content"] for m in ok(open_hub, "GET", "/messages/history/mail-b/mail-a", limit=1)] == ["back"]
    graph = ok(open_hub, "GET", "/messages/graph")
    assert {"from": "mail-a", "to": "mail-b", "count": 2} in graph["edges"]
    assert {"id": "mail-a", "type": "worker"} in graph["nodes"]
    assert not b.ack("none")
    for body in ({}, {"from": "x"}, {"to": "x"}):
        assert person(open_hub, "POST", "/messages/send", body)[1]["error"] == "from and to required"
    assert person(open_hub, "POST", "/messages/send", {"from": "x", "to": "y", "content": 7})[0] == 400
    assert person(open_hub, "POST", "/messages/send", {"from": "x", "to": "y", "content": "z" * 70000})[0] == 413


def test_broadcast(new_holtd):
    hub = new_holtd("--auth", "off")
    agents = [agent(hub, f"b{n}") for n in range(3)]
    agents[0].send_message("*", "all hands")
    assert [len(x.get_messages(True)) for x in agents] == [0, 1, 1]
    assert [m["content"] for m in ok(hub, "GET", "/messages/*")] == ["all hands"]
    assert agents[1].process_inbox(lambda m: None) == 1 and len(agents[2].get_messages(True)) == 1


@pytest.mark.parametrize("text,safe", [
    ("see https://evil.com", False), ("HTTPS://EVIL.COM", False), ("http://8.8.8.8", False), ("http://hub:8080", True),
    ("http://localhost:3000/x", True), ("plain evil.com", True), ("http://localhost.evil.com", False),
])
def test_url_filter(open_hub, text, safe):
    status, reply, _ = person(open_hub, "POST", "/messages/send", {"from": f"u{hash(text)}", "to": "u2", "content": text})
    assert status == (200 if safe else 400)
    assert safe or reply["error"] == "Sandbox: message content blocked (external URL detected)"


def test_rate_limit_and_full_inbox(new_holtd):
    hub = new_holtd("--auth", "off", "--inbox-max", "3")
    a = agent(hub, "fast")
    for n in range(60):
        a.send_message(f"box{n // 3}", "x")
    e = refused(429, "60 messages within a minute", a.send_message, "other", "x")
    assert 1 <= int(e.headers["Retry-After"]) <= 60
    for _ in range(70):
        assert a.heartbeat()  # heartbeats are not messages
    b = agent(hub, "slow")
    refused(429, "inbox of 'box0' is full", b.send_message, "box0", "x")
    assert person(hub, "POST", f"/messages/{ok(hub, 'GET', '/messages/box0')[0]['id']}/ack")[0] == 200
    b.send_message("box0", "room again")
    assert len(ok(hub, "GET", "/messages/box0")) == 3
    for n in range(5):  # nobody acknowledges what was told to all: the oldest goes
        b.send_message("*", f"news {n}")
    assert [m["content"] for m in ok(hub, "GET", "/messages/*")] == ["news 2", "news 3", "news 4"]
    sent = {e["data"]["content"]: e["data"] for e in all_events(hub, type="message.sent")}
    assert sent["news 3"]["dropped"] == [sent["news 0"]["id"]] and sent["news 2"]["dropped"] == []
    assert len(a.get_messages()) == 3  # its inbox is full too, and the others heard


# --- with authentication ---


def test_an_agents_token_acts_only_as_that_agent(new_holtd):
    hub = new_holtd()
    assert call(hub.url, "GET", "/agents")[0] == 401
    assert isinstance(call(hub.url, "GET", "/agents")[1]["error"], str)
    a = AgentClient(hub.url, "alice", token=hub.token)
    b = AgentClient(hub.url, "bob", token=hub.token)
    c = AgentClient(hub.url, "carol", token=hub.token)
    assert a.register()["token"] and b.register()["token"] and c.register(capabilities=["coordinator"])["token"]
    assert hub.token not in (a.token, b.token)
    assert a.heartbeat() and "token" not in a.register()
    old = a.token
    a.token = hub.token
    assert a.register()["token"] != old and call(hub.url, "GET", "/agents", token=old)[0] == 401  # one at a time
    p = a.create_project("shared")["id"]
    t, u = (a.create_task(p, x)["id"] for x in "tu")
    for method, path, body in (
            ("POST", "/agents/bob/heartbeat", None), ("DELETE", "/agents/bob", None), ("POST", "/agents/register", {"name": "bob"}),
            ("POST", "/agents/bob/autonomy", {"mode": "manual"}), ("POST", "/agents/bob/checkpoint", {}),
            ("POST", f"/projects/{p}/tasks/{t}/claim", {"agent": "bob"}), ("GET", "/messages/bob", None),
            ("POST", "/messages/send", {"from": "bob", "to": "x"}), ("GET", "/messages/history/bob/carol", None),
            ("POST", "/agents/alice/pause", None), ("POST", "/agents/alice/resume", None), ("POST", "/agents/bob/revoke", None),
            ("POST", "/agents/bob/revocation/ack", None), ("POST", "/autonomy/set-mode", {"mode": "manual"}),
            ("POST", "/proposals/x/approve", None), ("POST", f"/projects/{p}/tasks/{t}/assign", {"agent": "alice"}),
            ("POST", f"/projects/{p}/tasks/{t}/unassign", None), ("PATCH", f"/projects/{p}/wip", {"status": "ready", "limit": 9}),
            ("POST", f"/projects/{p}/tasks", {"title": "for bob", "assigned_to": "bob"}),
            ("POST", f"/projects/{p}/tasks/{t}/reviewers/bob", None), ("POST", "/agents/alice/capabilities", {"tags": "coordinator"})):
        status, reply, _ = a.ask(method, path, body)
        assert status == 403 and isinstance(reply["error"], str), (method, path, status, reply)
    assert c.ask("POST", f"/projects/{p}/tasks/{u}/assign", {"agent": "bob"})[0] == 200
    assert b.ask("DELETE", f"/projects/{p}")[0] == 403 and b.ask("DELETE", f"/projects/{b.create_project('own')['id']}")[0] == 200
    a.claim_task(p, t)
    assert not b.transition_task(p, t, "in_progress") and a.transition_task(p, t, "in_progress")
    a.send_message("bob", "hi")
    mail = b.get_messages(True)
    assert [m["from"] for m in mail] == ["alice"] and not a.ack(mail[0]["id"]) and b.ack(mail[0]["id"])
    # People raise, agents do not.
    call(hub.url, "POST", "/agents/alice/autonomy", {"mode": "advisory"}, hub.token)
    refused(403, "up to 'advisory'", a.set_autonomy_mode, "fully_autonomous")
    assert a.register(autonomy_mode="fully_autonomous")["autonomy_mode"] == "advisory"
    assert a.set_autonomy_mode("manual")["autonomy_mode"] == "manual"
    b.register(max_concurrent_tasks=2)
    call(hub.url, "POST", "/agents/bob/autonomy", {"mode": "advisory"}, hub.token)
    assert b.unregister() and b.register(autonomy_mode="fully_autonomous", max_concurrent_tasks=9)["autonomy_mode"] == "advisory"
    assert b.must("GET", "/agents/bob")["max_concurrent_tasks"] == 2  # nor by leaving and coming back
    for more in (9, 0):
        assert b.ask("POST", "/agents/bob/capabilities", {"tags": [], "max_concurrent_tasks": more})[0] == 403
    assert b.ask("POST", "/agents/bob/capabilities", {"tags": [], "max_concurrent_tasks": 1})[0] == 200
    observer = hub.new_token("watcher", "observer")["token"]
    assert call(hub.url, "GET", "/agents", token=observer)[0] == 200
    assert call(hub.url, "POST", "/agents/alice/pause", token=observer)[0] == 403
    assert call(hub.url, "DELETE", "/agents/alice", token=hub.token)[0] == 200
    assert a.ask("GET", "/agents")[0] == 401  # its token went with it

    def audited(kind, word):
        return any(e["type"] == kind and word in e["object"] for e in hub.ok("GET", "/holt/v1/audit?limit=1000")["events"])
    wait_for(lambda: audited("request.read", "inbox") and audited("request.refused", "hub."))


@pytest.fixture
def team(new_holtd):
    """With tokens: (hub, a person's call that must work, a registrar of agents)."""
    hub = new_holtd()

    def boss(method, path, body=None):
        status, reply, _ = call(hub.url, method, path, body, hub.token)
        assert 200 <= status < 300, f"{method} {path}: {status} {reply}"
        return reply

    def join(name, kind="unknown", **more):
        c = AgentClient(hub.url, name, kind, hub.token)
        c.register(**more)
        return c

    return hub, boss, join


def test_who_begins_a_task_takes_it(team):
    """A move is no way around what a claim checks: pause, capabilities, limits."""
    _, boss, join = team
    a, m = join("a", capabilities=["code"]), join("m", autonomy_mode="manual")
    p = boss("POST", "/projects", {"name": "p", "creator": "boss"})["id"]

    def new(**more):
        t = boss("POST", f"/projects/{p}/tasks", {"title": "t", **more})["id"]
        boss("PATCH", f"/projects/{p}/tasks/{t}", {"status": "ready"})
        return t

    def begin(c, t):
        return c.ask("PATCH", f"/projects/{p}/tasks/{t}", {"status": "in_progress"})

    status, reply, _ = begin(a, new(required_capabilities=["deploy"]))
    assert status == 400 and "Capabilities insufficient" in reply["error"]
    boss("POST", "/agents/a/pause")
    assert begin(a, new())[0] == 403
    boss("POST", "/agents/a/resume")
    assert begin(m, new())[0] == 403
    mine = [new(required_capabilities=["code"]) for _ in range(3)]
    assert [begin(a, t)[1]["assigned_to"] for t in mine] == ["a"] * 3
    status, reply, _ = begin(a, new())
    assert (status, reply["error"]) == (400, "WIP limit reached for a in in_progress (limit: 3)")
    assert boss("GET", f"/projects/{p}/tasks/{mine[0]}")["claimed_by"] == "a"
    t = new(required_reviewers=1)
    boss("PATCH", f"/projects/{p}/tasks/{t}", {"status": "in_progress"})  # a person begins it for nobody
    assert boss("GET", f"/projects/{p}/tasks/{t}")["assigned_to"] is None
    # Who hands it in is its worker, and no reviewer of its own.
    assert a.ask("PATCH", f"/projects/{p}/tasks/{t}", {"status": "in_review"})[1]["assigned_to"] == "a"
    assert a.ask("POST", f"/projects/{p}/tasks/{t}/reviewers/a")[0] == 200
    assert a.ask("PATCH", f"/projects/{p}/tasks/{t}", {"status": "done"})[0] == 400


def test_nobody_gets_around_its_mode(team):
    _, boss, join = team
    v, m, c = join("v", autonomy_mode="advisory"), join("m", autonomy_mode="manual"), join("c", capabilities=["coordinator"])
    p = boss("POST", "/projects", {"name": "p", "creator": "boss"})["id"]
    t = boss("POST", f"/projects/{p}/tasks", {"title": "t"})["id"]
    boss("POST", f"/projects/{p}/tasks/{t}/assign", {"agent": "v"})
    # A manual agent moves what it was assigned; one that people made advisory does not become one.
    assert v.set_autonomy_mode("manual")["autonomy_mode"] == "manual"
    status, reply, _ = v.ask("PATCH", f"/projects/{p}/tasks/{t}", {"status": "in_progress"})
    assert status == 202 and boss("GET", f"/projects/{p}/tasks/{t}")["status"] == "ready"
    boss("POST", f"/proposals/{reply['proposal_id']}/approve")
    assert boss("GET", f"/projects/{p}/tasks/{t}")["status"] == "in_progress"
    boss("POST", "/agents/v/autonomy", {"mode": "manual"})  # a person's word
    assert v.ask("PATCH", f"/projects/{p}/tasks/{t}", {"status": "in_review"})[0] == 200
    boss("POST", "/agents/v/autonomy", {"mode": "advisory"})
    away, coder = join("away"), join("coder", "coder")
    assert away.unregister() and coder.unregister()  # nor by not being there when people say so
    boss("POST", "/autonomy/set-mode", {"mode": "advisory", "agent_type": "coder"})
    assert [x.register(autonomy_mode="fully_autonomous")["autonomy_mode"] for x in (away, coder)] == ["fully_autonomous", "advisory"]
    assert away.unregister() and coder.unregister()
    boss("POST", "/autonomy/set-mode", {"mode": "manual"})
    assert [x.register(autonomy_mode="fully_autonomous")["autonomy_mode"] for x in (away, coder)] == ["manual", "manual"]
    boss("POST", "/agents/c/autonomy", {"mode": "fully_autonomous"})
    boss("POST", "/agents/v/autonomy", {"mode": "advisory"})
    for x in (v, m):  # nor by making work for itself
        assert x.ask("POST", f"/projects/{p}/tasks", {"title": "own", "assigned_to": x.name})[0] == 403
        assert x.ask("POST", f"/projects/{p}/tasks", {"title": "for anybody"})[0] == 201
    assert c.ask("POST", f"/projects/{p}/tasks", {"title": "own", "assigned_to": "c"})[0] == 201
    free = boss("POST", f"/projects/{p}/tasks", {"title": "free"})["id"]
    boss("POST", "/agents/c/autonomy", {"mode": "advisory"})
    assert c.ask("POST", f"/projects/{p}/tasks/{free}/assign", {"agent": "c"})[0] == 403
    assert c.ask("POST", f"/projects/{p}/tasks/{free}/assign", {"agent": "m"})[0] == 200


def test_a_revoked_agent_is_halted(team):
    _, boss, join = team
    r = join("r")
    p = boss("POST", "/projects", {"name": "p", "creator": "boss"})["id"]
    own = r.create_project("own")["id"]
    tasks = [boss("POST", f"/projects/{p}/tasks", {"title": "t"})["id"] for _ in range(3)]
    for t in tasks:
        r.claim_task(p, t)
    for t, moves in ((tasks[1], ["in_progress"]), (tasks[2], ["in_progress", "in_review"])):
        for s in moves:
            assert r.transition_task(p, t, s)
    boss("POST", "/agents/r/revoke", {"reason": "x"})
    for t in tasks:  # flushed, with what was in review
        card = boss("GET", f"/projects/{p}/tasks/{t}")
        assert (card["status"], card["assigned_to"], card["claimed_by"]) == ("ready", None, None)
        assert card["transitions"][-1]["by"] == ("system" if t != tasks[0] else "r")
    acts = (("POST", f"/projects/{p}/tasks", {"title": "x"}), ("POST", "/projects", {"name": "x"}), ("POST", f"/projects/{p}/join", {}),
            ("POST", f"/projects/{p}/tasks/{t}/reviewers/r", None), ("DELETE", f"/projects/{own}", None),
            ("POST", "/messages/send", {"from": "r", "to": "x", "content": "x"}))
    for act in acts:
        assert r.ask(*act)[0] == 403, act
    assert not r.unregister()
    r.register()  # nor is this a way out
    for act in acts:
        assert r.ask(*act)[0] == 403, act
    assert r.acknowledge_revocation(r.check_revocation()["revocation_id"])
    assert [r.ask(*act)[0] // 100 for act in acts] == [2] * len(acts)


def test_leaving_is_no_way_to_get_work(team):
    """Paused or revoked, and not registered: neither a person nor a coordinator gives it any by mistake."""
    _, boss, join = team
    l, c = join("leaver"), join("giver", capabilities=["coordinator"])
    p = boss("POST", "/projects", {"name": "p", "creator": "boss"})["id"]
    t = boss("POST", f"/projects/{p}/tasks", {"title": "t"})["id"]
    boss("POST", "/agents/leaver/pause")
    assert l.unregister()
    for path, body in ((f"/projects/{p}/tasks/{t}/assign", {"agent": "leaver"}), (f"/projects/{p}/tasks", {"title": "u", "assigned_to": "leaver"})):
        status, reply, _ = c.ask("POST", path, body)
        assert status == 403 and "is paused" in reply["error"]
    l.register()
    boss("POST", "/agents/leaver/resume")
    assert c.ask("POST", f"/projects/{p}/tasks/{t}/assign", {"agent": "leaver"})[0] == 200
    boss("POST", "/agents/nobody/revoke", {"reason": "early"})
    status, reply, _ = c.ask("POST", f"/projects/{p}/tasks/{t}/assign", {"agent": "nobody"})
    assert status == 403 and "is revoked" in reply["error"]


def test_a_heartbeat_tells_what_people_said(team):
    d, boss, join = team
    a = join("pulse")
    beat = lambda: a.must("POST", "/agents/pulse/heartbeat")
    native = lambda: d.ok("POST", "/holt/v1/agents/pulse/heartbeat", {})["status"]
    assert (beat()["agent_status"], beat()["paused"], native()) == ("online", False, "online")
    boss("POST", "/agents/pulse/pause")
    assert (beat()["agent_status"], beat()["paused"], native()) == ("busy", True, "paused")
    boss("POST", "/agents/pulse/revoke")
    assert (beat()["status"], beat()["agent_status"], native()) == ("ok", "revoked", "revoked")


def test_coordinators_do_not_unblock(team):
    _, boss, join = team
    c = join("c", capabilities=["coordinator"])
    p = boss("POST", "/projects", {"name": "p", "creator": "boss"})["id"]
    t, u = (boss("POST", f"/projects/{p}/tasks", {"title": x})["id"] for x in "tu")
    boss("PATCH", f"/projects/{p}/tasks/{t}", {"status": "blocked", "blocked_by": u, "blocked_reason": "first u"})
    for act, body in (("assign", {"agent": "c"}), ("unassign", None)):
        status, reply, _ = c.ask("POST", f"/projects/{p}/tasks/{t}/{act}", body)
        assert status == 400 and "is blocked by" in reply["error"]
    boss("POST", f"/projects/{p}/tasks/{t}/unassign")
    card = boss("GET", f"/projects/{p}/tasks/{t}")
    assert (card["status"], card["blocked_by"], card["blocked_reason"]) == ("backlog", None, None)


# --- events and audit ---


class Events:
    """A reader of /events, on a thread of its own."""

    def __init__(self, hub, last=None, path="/events"):
        h = {"Last-Event-ID": str(last)} if last else {}
        self.stream = urllib.request.urlopen(urllib.request.Request(hub.url + path, headers=h), timeout=60)
        assert self.stream.headers["Content-Type"].startswith("text/event-stream")
        self.got = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        event = {}
        try:
            for line in self.stream:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    event[name] = value
                elif "data" in event:
                    self.got.append((int(event["id"]), event["event"], json.loads(event["data"])))
                    event = {}
        except (OSError, ValueError):
            pass

    def wait(self, count):
        wait_for(lambda: len(self.got) >= count)
        return self.got


def test_an_id_past_the_end_follows_from_now(open_hub):
    """Of another database, or of this one before it was restored: a stream that says nothing for ever is no answer."""
    for path, last in (("/events", 10 ** 12), ("/holt/v1/events?follow=true", 10 ** 12), (f"/holt/v1/events?follow=true&since={10 ** 12}", None)):
        e = Events(open_hub, last, path)
        ok(open_hub, "POST", "/agents/register", {"name": "past-the-end"})
        wait_for(lambda e=e: any("past-the-end" in str(got) for got in e.got))
        assert len(e.got) < 20, e.got  # from now on: others' agents may go offline meanwhile, but no past comes


def test_events_in_the_hubs_words(new_holtd):
    hub = new_holtd("--auth", "off")
    agent(hub, "before")
    e = Events(hub)
    a = agent(hub, "ev", capabilities=["code"])
    p = a.create_project("events")["id"]
    t = a.create_task(p, "task", priority="P1", created_by="ev")["id"]
    a.claim_task(p, t)
    ok(hub, "PATCH", f"/projects/{p}/tasks/{t}", {"status": "in_progress", "agent": "ev"})
    m = a.send_message("before", "é" * 300)
    a.submit_checkpoint(t, "s", "r")
    ok(hub, "POST", "/agents/ev/pause", {"reason": "look"})
    ok(hub, "POST", "/agents/ev/resume")
    r = ok(hub, "POST", "/agents/ev/revoke", {"reason": "bad"})
    a.acknowledge_revocation(r["revocation_id"])
    ok(hub, "POST", f"/projects/{p}/tasks/{t}/assign", {"agent": "before", "assigned_by": "boss"})
    ok(hub, "POST", f"/projects/{p}/tasks/{t}/unassign")
    ok(hub, "POST", f"/projects/{p}/tasks/{t}/reviewers/before")
    ok(hub, "POST", f"/projects/{p}/join", {"agent": "before"})
    ok(hub, "POST", "/autonomy/set-mode", {"mode": "advisory"})
    ok(hub, "DELETE", f"/projects/{p}")
    a.unregister()
    wait_for(lambda: any(x[1] == "agent_unregistered" for x in e.got))
    got = [x for x in e.got if x[1] != "agent_status_changed"]
    first = {}
    for _, name, data in got:
        first.setdefault(name, data)
    assert first["agent_registered"] == {"name": "ev", "type": "worker", "autonomy_mode": "fully_autonomous",
                                         "capabilities": ["code"]}
    assert first["project_created"] == {"id": p, "name": "events", "creator": "ev"}
    assert first["task_created"] == {"project": p, "task": {
        "id": t, "title": "task", "status": "backlog", "priority": 1, "assigned_to": None, "required_capabilities": []}}
    assert first["task_claimed"] == {"project": p, "task_id": t, "agent": "ev", "title": "task"}
    assert first["task_transition"] == {"project": p, "task_id": t, "title": "task", "new_status": "in_progress", "by": "ev"}
    sent = first["message_sent"]
    assert sent["content"] == "é" * 200 and sent["id"] == m["id"] and sent["timestamp"] == m["timestamp"]
    assert first["checkpoint_submitted"] == {"agent": "ev", "task_id": t, "state": "s", "sequence": 1}
    assert first["agent_paused"] == {"name": "ev", "reason": "look"} and first["agent_resumed"] == {"name": "ev"}
    assert first["agent_revoked"] == {"agent": "ev", "revocation_id": r["revocation_id"], "reason": "bad", "flush_required": True}
    assert first["agent_recovered"]["name"] == "ev"
    assert first["task_assigned"] == {"project": p, "task_id": t, "title": "task", "agent": "before", "by": "boss"}
    assert first["task_unassigned"] == {"project": p, "task_id": t}
    assert first["task_reviewer_added"] == {"project": p, "task_id": t, "reviewer": "before"}
    assert first["agent_joined_project"] == {"project": p, "agent": "before"}
    assert first["global_autonomy_changed"] == {"mode": "advisory", "agents": ["before", "ev"]}
    assert first["project_deleted"] == {"id": p} and first["agent_unregistered"] == {"name": "ev"}
    ids = [x[0] for x in e.got]
    assert ids == sorted(set(ids))
    again = Events(hub, ids[4]).wait(len(ids) - 5)  # what was missed comes again, nothing else
    assert again == e.got[5:]


def test_readers_of_several_kinds_at_once(new_holtd):
    """An event is written once for all who read the same form; nobody gets another's."""
    hub = new_holtd("--auth", "off", "--message-rate", "0")
    a = agent(hub, "kinds")
    head = all_events(hub)[-1]["seq"]
    native = [Events(hub, path=f"/holt/v1/events?follow=true&since={head}") for _ in range(3)]
    theirs = [Events(hub) for _ in range(3)]
    typed = Events(hub, path=f"/holt/v1/events?follow=true&since={head}&type=message.*")
    with connect(f"ws://127.0.0.1:{hub.port}/holt/v1/events?since={head}", proxy=None) as ws:
        for n in range(80):
            a.send_message("x", f"m{n}")
            a.submit_checkpoint(state=f"s{n}")
        log = all_events(hub)
        log = [e for e in log if e["seq"] > head]
        assert [json.loads(ws.recv(timeout=60)) for _ in log] == log
    for e in native:
        assert e.wait(len(log)) == [(x["seq"], x["type"], x) for x in log]
    mail = [x for x in log if x["type"] == "message.sent"]
    assert typed.wait(80) == [(x["seq"], x["type"], x) for x in mail]
    for e in theirs:
        assert [(i, name) for i, name, _ in e.wait(160)] == [
            (x["seq"], {"message.sent": "message_sent", "agent.checkpoint": "checkpoint_submitted"}[x["type"]]) for x in log]
        assert [d["content"] for _, name, d in e.got if name == "message_sent"] == [f"m{n}" for n in range(80)]


def test_audit_log(new_holtd):
    hub = new_holtd("--auth", "off")
    a = agent(hub, "aud")
    a.send_message("x", "hello")
    a.get_messages()
    ok(hub, "POST", "/agents/aud/pause", {"reason": "look"})
    assert a.ask("GET", "/agents/nobody")[0] == 404
    p = a.create_project("audit")["id"]
    t = a.create_task(p, "t")["id"]
    refused(403, "paused", a.claim_task, p, t)

    def actions():
        return [(x["action"], x["agent"]) for x in ok(hub, "GET", "/audit/log") if x["action"] != "status"]

    ok(hub, "POST", "/agents/aud/resume")
    ok(hub, "POST", f"/projects/{p}/tasks/{t}/assign", {"agent": "aud", "assigned_by": "ann"})
    details = {x["action"]: x["details"] for x in ok(hub, "GET", "/audit/log")}
    for action, known in {"register": {"type": "worker", "autonomy": "fully_autonomous"}, "send_message": {"to": "x"},
                          "pause_agent": {"agent": "aud", "reason": "look"}, "resume_agent": {"agent": "aud"},
                          "create_project": {"name": "audit"}, "assign_task": {"task": t, "to": "aud"}}.items():
        assert known.items() <= details[action].items()
    wanted = [("register", "aud"), ("send_message", "aud"), ("pause_agent", "human"), ("create_project", "aud")]
    assert [x for x in actions() if x in wanted] == wanted
    wait_for(lambda: {"request.read", "request.refused"} <= {x for x, _ in actions()})
    for x in ok(hub, "GET", "/audit/log"):
        assert TIME.match(x["timestamp"]) and x["actor"] and isinstance(x["details"], dict)
    assert len(ok(hub, "GET", "/audit/log", limit=2)) == 2
    assert person(hub, "GET", "/audit/log", limit="x")[0] == 400


def test_every_refusal_and_read_is_audited(team):
    hub, boss, join = team
    a = join("a")
    p = boss("POST", "/projects", {"name": "p", "creator": "boss"})["id"]
    t = boss("POST", f"/projects/{p}/tasks", {"title": "t"})["id"]
    boss("POST", f"/projects/{p}/tasks/{t}/assign", {"agent": "boss"})
    refused(400, "blocked", a.send_message, "b", "https://evil.com")
    refused(409, "belongs to", a.claim_task, p, t)
    assert person(hub, "POST", "/messages/send", {"from": "a", "to": "b"})[0] == 401
    assert a.ask("POST", "/messages/send", {})[0] == 400  # no refusal: it says nothing
    for name in ("x", "y", "z"):
        boss("GET", f"/messages/{name}")

    def log():
        return [(x["action"], x["agent"], x["details"].get("path"), x["details"].get("code"))
                for x in boss("GET", "/audit/log?limit=1000") if x["action"].startswith("request.")]

    wait_for(lambda: sum(x[0] == "request.read" for x in log()) == 3)
    admin = [x for x in boss("GET", "/audit/log") if x["action"] == "request.read"][0]["actor"]
    assert log() == [("request.refused", "a", "/messages/send", 400), ("request.refused", "a", f"/projects/{p}/tasks/{t}/claim", 409),
                     ("request.refused", "anonymous", "/messages/send", 401),
                     *(("request.read", admin, f"/messages/{x}", 200) for x in "xyz")]
