"""What the hub's own clients send without a name, from pages, and many at a time."""
import http.client
import socket
import threading

import pytest

from daemon import Holtd, all_events, wait_for
from hub_client import AgentClient, call


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    d = Holtd(tmp_path_factory.mktemp("seed"), "--auth", "off", "--message-rate", "0")
    yield d
    assert d.stop() == 0


def must(d, method, path, body=None, **query):
    status, reply, _ = call(d.url, method, path, body, None, query)
    assert status < 300, (path, status, reply)
    return reply


def card(d, owner, mode):
    a = AgentClient(d.url, owner, "x")
    a.register()
    must(d, "POST", f"/agents/{owner}/autonomy", {"mode": mode})
    p = must(d, "POST", "/projects", {"name": "p", "creator": "human"})["id"]
    k = must(d, "POST", f"/projects/{p}/tasks", {"title": "t"})["id"]
    must(d, "POST", f"/projects/{p}/tasks/{k}/assign", {"agent": owner})
    return a, f"/projects/{p}/tasks/{k}", p, k


def test_a_move_without_a_name_is_the_owner_s(hub):
    """The SDK's transition_task names nobody: a person's word would lift the rules that hold for its agent."""
    a, path, p, k = card(hub, "adv", "advisory")
    assert a.transition_task(p, k, "in_progress") is False  # 202: a proposal
    pending = must(hub, "GET", "/proposals", agent="adv", status="pending")
    assert [(x["action"], x["to"]) for x in pending] == [("move", "in_progress")]
    assert must(hub, "GET", path)["status"] == "ready"
    must(hub, "POST", f"/proposals/{pending[0]['id']}/approve", {})
    assert must(hub, "GET", path)["transitions"][-1]["by"] == "adv"
    a, path, p, k = card(hub, "rev", "fully_autonomous")
    assert a.transition_task(p, k, "in_progress") is True
    must(hub, "POST", "/agents/rev/revoke", {"flush_required": False})
    assert call(hub.url, "PATCH", path, {"status": "in_review"})[0] == 403
    # Nobody's card is anybody's to move.
    k = must(hub, "POST", f"/projects/{p}/tasks", {"title": "free"})["id"]
    assert call(hub.url, "PATCH", f"/projects/{p}/tasks/{k}", {"status": "ready"})[0] == 200


def test_a_person_with_a_token_overrules(new_holtd):
    d = new_holtd()
    t = call(d.url, "POST", "/agents/register", {"name": "adv", "autonomy_mode": "advisory"}, d.token)[1]["token"]
    p = call(d.url, "POST", "/projects", {"name": "p", "creator": "human"}, d.token)[1]["id"]
    k = call(d.url, "POST", f"/projects/{p}/tasks", {"title": "t", "assigned_to": "adv"}, d.token)[1]["id"]
    path = f"/projects/{p}/tasks/{k}"
    assert call(d.url, "PATCH", path, {"status": "ready"}, t)[0] == 202
    assert call(d.url, "PATCH", path, {"status": "ready"}, d.token)[0] == 200


def test_pages_of_the_seed_s_dashboard(tmp_path):
    """On the seed ports, without cookies; on no other listener."""
    def free(port):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) != 0

    port = next((p for p in (8080, 8120, 8121, 50051) if free(p)), None)
    if not port:
        pytest.skip("every seed port is in use here")
    d = Holtd(tmp_path, "--seed-ports")
    own = d.port
    try:
        for origin in ("http://localhost:5173", "http://127.0.0.1:5173"):
            d.port = port
            status, _, h = d.request("GET", "/agents", token=None, headers={"Origin": origin})
            assert status == 200 and h["Access-Control-Allow-Origin"] == origin and "Access-Control-Allow-Credentials" not in h
            status, _, h = d.request("OPTIONS", "/projects", token=None, headers={"Origin": origin, "Access-Control-Request-Method": "POST"})
            assert status == 204 and h["Access-Control-Allow-Origin"] == origin
            d.port = own
            status, _, h = d.request("GET", "/agents", headers={"Origin": origin})
            assert status == 403 and "Access-Control-Allow-Origin" not in h
        d.port = port
        assert d.request("GET", "/agents", token=None, headers={"Origin": "http://localhost:5184"})[0] == 403
        # A session counts for nothing in a request of such a page: it is the port's operator, no admin.
        d.port = own
        code = d.ok("POST", "/holt/v1/login/code", {})["code"]
        cookie = d.request("POST", "/holt/v1/login", {"code": code}, token=None)[2]["Set-Cookie"].split(";")[0]
        d.port = port
        assert d.request("GET", "/holt/v1/tokens", token=None, headers={"Cookie": cookie})[0] == 200
        assert d.request("GET", "/holt/v1/tokens", token=None, headers={"Cookie": cookie, "Origin": "http://localhost:5173"})[0] == 403
    finally:
        d.port = own
        assert d.stop() == 0


def test_many_readers_get_the_same_events(hub):
    count = 200
    streams = []
    must(hub, "POST", "/messages/send", {"from": "a", "to": "b", "content": "before"})
    head = all_events(hub)[-1]["seq"]
    for i in range(count):
        c = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=60)
        # Two forms of the same events, side by side.
        c.request("GET", "/events" if i % 2 else f"/holt/v1/events?follow=true&since={head}")
        streams.append(c.getresponse())
    sent = [must(hub, "POST", "/messages/send", {"from": "a", "to": "b", "content": f"m{i}"})["id"] for i in range(20)]
    got = [[] for _ in range(count)]

    def read(i):
        kind = "message_sent" if i % 2 else "message.sent"
        named = False
        while len(got[i]) < len(sent):
            line = streams[i].readline().decode()
            assert line, "the stream ended"
            if line.startswith("event:"):
                named = line.split(": ")[1].strip() == kind
            elif line.startswith("data:") and named:
                got[i].append(line.split('"id":"' if i % 2 else '"message/')[1].split('"')[0])

    threads = [threading.Thread(target=read, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    assert all(g == sent for g in got)
    for s in streams:
        s.close()
    wait_for(lambda: hub.fd_count() < count)


def test_time_is_looked_at_cheaply_and_still_acts(new_holtd):
    d = new_holtd("--auth", "off", "--agent-heartbeat-ms", "2s", "--task-grace-ms", "2s")
    AgentClient(d.url, "idle", "x").register()  # nothing but its silence says that it is due
    wait_for(lambda: must(d, "GET", "/agents/idle")["status"] == "offline")
    wait_for(lambda: [e for e in all_events(d, type="agent.status") if e["object"] == "agent/idle" and e["data"]["status"] == "offline"])
    a = AgentClient(d.url, "slow", "x")
    a.register()
    p = must(d, "POST", "/projects", {"name": "p", "creator": "human"})["id"]
    k = must(d, "POST", f"/projects/{p}/tasks", {"title": "t"})["id"]
    a.claim_task(p, k)
    wait_for(lambda: must(d, "GET", "/agents/slow")["status"] == "offline")
    wait_for(lambda: must(d, "GET", f"/projects/{p}/tasks/{k}")["assigned_to"] is None)
    a.heartbeat()
    assert must(d, "GET", "/agents/slow")["status"] == "online"
    # Revoked and kept alive: its cards go after the grace time all the same.
    a.claim_task(p, k)
    must(d, "POST", "/agents/slow/revoke", {"flush_required": False})

    def gone():
        a.heartbeat()
        return must(d, "GET", f"/projects/{p}/tasks/{k}")["assigned_to"] is None

    wait_for(gone)
    assert must(d, "GET", "/agents/slow")["status"] == "revoked"
