"""The hub as its page, its SDK and curl find it: what the original sends, who counts as a person, who as alive."""
import base64
import http.client
import json
import socket

import pytest

from daemon import Holtd, wait_for
from hub_client import AgentClient, call

PAGE = {"Origin": "http://localhost:8080"}


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    d = Holtd(tmp_path_factory.mktemp("page"), "--auth", "off", "--message-rate", "0")
    yield d
    assert d.stop() == 0


def must(d, method, path, body=None, page=False, **query):
    status, reply, _ = ask(d, method, path, body, page, **query)
    assert status < 300, (path, status, reply)
    return reply


def ask(d, method, path, body=None, page=False, **query):
    """page: as the browser sends it, with the page's Origin."""
    return call(d.url, method, path, body, None, query, {"Origin": d.url} if page else None)


def board(d, owner=None, mode=None, title="t"):
    if owner:
        AgentClient(d.url, owner, "x").register()
    if mode:
        must(d, "POST", f"/agents/{owner}/autonomy", {"mode": mode})
    p = must(d, "POST", "/projects", {"name": "p", "creator": "human"})["id"]
    k = must(d, "POST", f"/projects/{p}/tasks", {"title": title})["id"]
    return p, k, f"/projects/{p}/tasks/{k}"


def test_limits_of_a_project_as_the_original_sends_them(hub):
    """On a plain column name the page's script dies: there it stands only where a PATCH has put it, as in the original."""
    p, _, _ = board(hub)
    preset = {"TaskStatus.IN_PROGRESS": 3, "TaskStatus.IN_REVIEW": 5}
    assert must(hub, "GET", f"/projects/{p}")["wip_limits"] == preset
    must(hub, "PATCH", f"/projects/{p}/wip", {"status": "in_progress", "limit": 7})
    assert must(hub, "GET", f"/projects/{p}")["wip_limits"] == {**preset, "in_progress": 7}


def test_a_card_dragged_on_the_page_is_moved_by_a_person(hub):
    p, k, path = board(hub, "adv", "advisory")
    must(hub, "POST", f"{path}/assign", {"agent": "adv", "assigned_by": "human"}, page=True)
    assert ask(hub, "PATCH", path, {"status": "in_progress"}, page=True)[0] == 200
    card = must(hub, "GET", path)
    assert card["status"] == "in_progress" and card["transitions"][-1]["by"] == "human"
    assert AgentClient(hub.url, "adv").transition_task(p, k, "in_review") is False, "the SDK has no Origin: the agent's own rules"


def test_the_dialog_of_the_page_assigns_to_a_manual_agent(hub):
    """It sends the assignee as `agent` of the PATCH, then the assignment."""
    _, _, path = board(hub, "man", "manual")
    assert ask(hub, "PATCH", path, {"status": "ready", "agent": "man", "note": "please"}, page=True)[0] == 200
    must(hub, "POST", f"{path}/assign", {"agent": "man"}, page=True)
    card = must(hub, "GET", path)
    assert (card["assigned_to"], card["transitions"][-1]["by"], card["transitions"][-1]["note"]) == ("man", "human", "please")
    assert ask(hub, "PATCH", path, {"status": "in_progress", "agent": "man", "note": ""}, page=True)[0] == 200
    assert must(hub, "GET", path)["transitions"][-1]["by"] == "human", "who sits at the page did it, not the agent it names"


def test_what_is_merely_assigned_does_not_fill_the_limit(hub):
    AgentClient(hub.url, "full", "x").register()
    p = must(hub, "POST", "/projects", {"name": "p", "creator": "human"})["id"]
    tasks = [must(hub, "POST", f"/projects/{p}/tasks", {"title": str(n), "assigned_to": "full"})["id"] for n in range(5)]
    for t in tasks:
        assert ask(hub, "PATCH", f"/projects/{p}/tasks/{t}", {"status": "ready"})[0] == 200, "only claims count (X-029)"
    a = AgentClient(hub.url, "full")
    for t in tasks[:3]:
        a.claim_task(p, t)
    status, reply, _ = ask(hub, "POST", f"/projects/{p}/tasks/{tasks[3]}/claim", {"agent": "full"})
    assert (status, reply["error"]) == (400, "WIP limit reached for full (limit: 3)")


@pytest.mark.parametrize("tokens", [False, True])
def test_every_act_is_a_sign_of_life(new_holtd, tokens):
    d = new_holtd(*(() if tokens else ("--auth", "off")), "--agent-heartbeat-ms", "3s", "--task-grace-ms", "2s", "--message-rate", "0")
    boss = d.token if tokens else None
    names = ("sender", "poller", "checker", "silent")
    agents = {n: AgentClient(d.url, n, "x", token=boss) for n in names}
    for a in agents.values():
        a.register()
    p = call(d.url, "POST", "/projects", {"name": "p", "creator": "human"}, boss)[1]["id"]
    for n in names:
        t = call(d.url, "POST", f"/projects/{p}/tasks", {"title": n}, boss)[1]["id"]
        agents[n].claim_task(p, t)

    def status():
        agents["sender"].send_message("nobody", "hello")
        agents["poller"].get_messages(True)
        agents["checker"].submit_checkpoint(None, "working")
        return {x["name"]: x["status"] for x in call(d.url, "GET", "/agents", None, boss)[1]}

    def owners():
        status()
        return {x["title"]: x["assigned_to"] for x in call(d.url, "GET", f"/projects/{p}/tasks", None, boss)[1]}

    wait_for(lambda: status()["silent"] == "offline")
    wait_for(lambda: owners()["silent"] is None)
    assert owners() == {"sender": "sender", "poller": "poller", "checker": "checker", "silent": None}
    assert status() == {"sender": "online", "poller": "online", "checker": "online", "silent": "offline"}


def test_a_page_s_look_is_nobody_s_life(new_holtd):
    d = new_holtd("--auth", "off", "--agent-heartbeat-ms", "2s")
    AgentClient(d.url, "dead", "x").register()

    def gone():
        must(d, "POST", "/agents/dead/autonomy", {"mode": "advisory"}, page=True)
        must(d, "POST", "/agents/dead/autonomy", {"mode": "advisory"})
        return must(d, "GET", "/agents/dead")["status"] == "offline"

    wait_for(gone)


@pytest.mark.parametrize("step", ["ready", "in_progress"])
def test_what_was_taken_from_an_agent_it_moves_no_more(hub, step):
    a = AgentClient(hub.url, f"taken-{step}", "x")
    a.register()
    p, k, path = board(hub)
    a.claim_task(p, k)
    if step == "in_progress":
        assert a.transition_task(p, k, "in_progress")
    must(hub, "POST", f"/agents/taken-{step}/revoke", {"flush_required": True})
    assert must(hub, "GET", path)["assigned_to"] is None
    status, reply, _ = ask(hub, "PATCH", path, {"status": "in_progress"})
    assert status == 403 and "revoked" in reply["error"], reply
    assert must(hub, "GET", path)["status"] == "ready"
    # Anybody else may, by name; and a person.
    b = AgentClient(hub.url, f"other-{step}", "x")
    b.register()
    b.claim_task(p, k)
    assert b.transition_task(p, k, "in_progress")
    assert must(hub, "GET", path)["assigned_to"] == f"other-{step}"


def test_an_agent_that_comes_back_has_its_task_again(new_holtd):
    """Never in progress without an owner."""
    d = new_holtd("--auth", "off", "--agent-heartbeat-ms", "2s", "--task-grace-ms", "1s")
    a = AgentClient(d.url, "back", "x")
    a.register()
    p, k, path = board(d)
    a.claim_task(p, k)
    wait_for(lambda: must(d, "GET", path)["assigned_to"] is None)
    a.heartbeat()
    assert a.transition_task(p, k, "in_progress")
    assert must(d, "GET", path)["assigned_to"] == "back"


def test_no_checkpoint_of_the_one_before(hub):
    a = AgentClient(hub.url, "anew", "x")
    a.register()
    a.submit_checkpoint("t", "working")
    assert ask(hub, "GET", "/agents/anew/checkpoint")[0] == 200
    a.register()
    assert ask(hub, "GET", "/agents/anew/checkpoint")[:2] == (404, {"code": "not_found", "error": "No checkpoint found"})
    a.submit_checkpoint("t", "again")
    assert must(hub, "GET", "/agents/anew/checkpoint")["state"] == "again"
    assert a.unregister()
    assert ask(hub, "GET", "/agents/anew/checkpoint")[0] == 404


def test_a_blocker_that_is_none_is_named(hub):
    _, _, path = board(hub)
    status, reply, _ = ask(hub, "PATCH", path, {"status": "blocked", "blocked_by": "no-such"})
    assert status == 400 and "blocked_by" in reply["error"] and "'no-such'" in reply["error"], reply


@pytest.mark.parametrize("name", ["system", "System", "anonymous", "ANONYMOUS", "Human", "hu\u200bman", " human ", "a\u202eb", "hum\u00adan",
                                  "x\u2066y", "\ufeffann", "ann\u3164", "ｈｕｍａｎ", "admin\u0085", "a\U000e0041b"])
def test_names_that_could_be_taken_for_others(hub, name):
    status, reply, _ = ask(hub, "POST", "/agents/register", {"name": name})
    assert status == 400, (status, reply)


@pytest.mark.parametrize("text,safe", [
    ("http:&#47;&#47;evil.com", False), ("http:&#x2F;&#X2f;evil.com", False), ("http&colon;//evil.com", False), ("http&#58//evil.com", False),
    ("http:&sol;&sol;evil&period;com", False), ("http\u2236//evil.com", False), ("http\ua789//evil.com", False), ("http:\u2215\u2215evil.com", False),
    ("http://127.0.0.1:80.evil.com", False), ("http://[::1]:80.evil.com", False), ("http://hub:8080.evil.com/", False),
    ("http&amp;#58;//evil.com", False), ("http:// is a scheme", True), ("use http:// or https://", True), ('the prefix "http://" is cut', True),
    ("http:// evil.com is two words", True), ("http://127.0.0.1:80, and http://hub:8080.", True), ("AT&T; a&b &colon; c", True), ("3 &lt; 4 &#47; 5", True),
])
def test_other_spellings_of_a_url(hub, text, safe):
    status, reply, _ = ask(hub, "POST", "/messages/send", {"from": "filter", "to": "nobody", "content": text})
    assert status == (200 if safe else 400), reply


def raw(d, text):
    with socket.create_connection(("127.0.0.1", d.port), 20) as s:
        s.sendall(text)
        s.settimeout(20)
        got = b""
        while chunk := s.recv(65536):
            got += chunk
    head, _, body = got.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def test_errors_before_any_route_have_the_dialect_s_shape(new_holtd):
    d = new_holtd("--auth", "off", "--header-max", "8192", "--body-max", "65536")
    for path in ("/agents", "/projects/x", "/sandboxes"):
        status, got = raw(d, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX: {'x' * 20000}\r\n\r\n".encode())
        assert status == 431 and isinstance(got["error"], str), got
        status, got = raw(d, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n".encode())
        assert status == 403 and isinstance(got["error"], str), got
        status, got = raw(d, f"GET {path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".encode())
        assert status == 403 and isinstance(got["error"], str), got
    status, got = raw(d, b"POST /agents/register HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\nConnection: close\r\n\r\n")
    assert status == 413 and isinstance(got["error"], str), got
    for path in (b"/agents/../x", b"/agents//x"):
        status, got = raw(d, b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert status == 400 and isinstance(got["error"], str), got
    assert isinstance(raw(d, b"GET /holt/v1/nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[1]["error"], dict)


def test_the_token_as_a_password(new_holtd):
    """An unchanged SDK has a URL and nothing else: http://NAME:TOKEN@HOST."""
    d = new_holtd()
    token = d.ok("POST", "/holt/v1/tokens", {"name": "sdk", "role": "agent", "agent": "far"})["token"]

    def basic(user, password, path="/agents/register", body='{"name": "far"}', **more):
        c = http.client.HTTPConnection("127.0.0.1", d.port, timeout=60)
        c.request("POST", path, body, {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode(), **more})
        r = c.getresponse()
        got = r.status, json.loads(r.read()), r.headers
        c.close()
        return got

    assert basic("far", token)[0] == 201
    assert basic("far", token, "/messages/send", '{"from": "far", "to": "x", "content": "hello"}')[0] == 200
    assert basic("far", token, "/messages/send", '{"from": "other", "to": "x"}')[0] == 403
    status, _, headers = basic("far", "wrong")
    assert status == 401 and "basic" not in headers.get("WWW-Authenticate", "").lower(), "no browser shall ask for it"
    assert basic("far", token, **{"Sec-Fetch-Site": "same-site"})[0] == 401, "what a browser keeps is not sent for other pages"
    for bad in ("Basic", "Basic !!!!", "Basic " + base64.b64encode(b"nocolon").decode(), "Basic " + base64.b64encode(b"far:").decode()):
        assert d.request("GET", "/agents", token=None, headers={"Authorization": bad})[0] == 401


def test_heartbeats_in_the_audit_are_one_entry(new_holtd):
    d = new_holtd("--auth", "off")
    a = AgentClient(d.url, "beat", "x")
    a.register()
    for _ in range(20):
        assert a.heartbeat()

    def beats():
        return [x for x in must(d, "GET", "/audit/log", limit=1000) if x["action"] == "heartbeat"]

    wait_for(beats)
    assert [(x["agent"], x["details"]) for x in beats()] == [("beat", {"checkpoint_tick": 1})], "the rest is counted, and written when its time is over"
    assert d.stop() == 0
    again = Holtd(d.directory, "--auth", "off")
    try:
        d = again
        assert [(x["count"], x["details"]["checkpoint_tick"]) for x in beats()] == [(1, 1), (19, 20)]
    finally:
        assert again.stop() == 0


def test_the_page_s_development_server_on_the_next_port(tmp_path):
    """5173 is ours with --seed-ports: theirs goes to the next free one."""
    def free(port):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) != 0

    port = next((p for p in (8080, 8120, 8121, 50051) if free(p)), None)
    if not port:
        pytest.skip("every seed port is in use here")
    d = Holtd(tmp_path, "--seed-ports")
    own = d.port
    try:
        d.port = port
        for n in range(5173, 5184):
            for host in ("localhost", "127.0.0.1"):
                status, _, h = d.request("GET", "/agents", token=None, headers={"Origin": f"http://{host}:{n}"})
                assert status == 200 and h["Access-Control-Allow-Origin"] == f"http://{host}:{n}"
        assert d.request("GET", "/agents", token=None, headers={"Origin": "http://localhost:5184"})[0] == 403
    finally:
        d.port = own
        assert d.stop() == 0
