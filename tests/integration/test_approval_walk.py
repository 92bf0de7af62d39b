"""Who asked cannot answer, by any route.

All routes, as holtd prints them, are walked with an agent's question in every place: by the agent's token, by its sandbox's relay, by its hub
identity (with and without its name), by another agent, and by a request without credentials. The question is as it was afterwards, and nothing
was granted. A person answers it by the same requests: they are good ones.
"""
import json
import re

import pytest

from daemon import native
from test_walk import example, printed, schema_of, send

API = "/holt/v1"
LONG = {"events", "event.list", "hub.events", "approval.watch"}  # streams: they answer nothing
ENDS = {"approval.cancel", "fluid.cancel"}  # an asker may take its own question back: that is no yes
INSIDE = r"""
import http.client, json, socket, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect("/run/holt.sock")
out = []
for method, path, body in json.load(sys.stdin):
    c = Unix("localhost")
    c.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json", "Authorization": "Bearer x"})
    r = c.getresponse()
    out.append([method, path, r.status])
    c.close()
print(json.dumps(out))
"""


class Who:
    def __init__(self, token):
        self.token = token


class World:
    def __init__(self, d):
        self.d = d
        self.agent = d.ok("POST", f"{API}/agents", {"name": "walker"})["token"]
        self.other = d.ok("POST", f"{API}/agents", {"name": "other"})["token"]
        self.person = d.ok("POST", f"{API}/tokens", {"name": "ann", "role": "operator", "person": "ann"})["token"]
        self.box = d.ok("POST", f"{API}/sandboxes", {"agent": "walker", "relay": True, "hub": True})["id"]
        self.ids = [self.ask(self.agent), self.ask_inside(), self.propose()]

    def ask(self, who):
        return self.d.ok("POST", f"{API}/approvals", {"question": "May I?", "action": "deploy", "arguments": {"v": 1}}, token=who)["id"]

    def inside(self, requests):
        r = self.d.ok("POST", f"{API}/sandboxes/{self.box}/execs", {"command": ["python3", "-c", INSIDE], "stdin": json.dumps(requests)}, timeout=300)
        assert r["exit_code"] == 0, r
        return json.loads(r["stdout"])

    def ask_inside(self):
        before = {a["id"] for a in self.d.ok("GET", f"{API}/approvals")["approvals"]}
        assert self.inside([["POST", f"{API}/approvals", {"question": "From inside?", "action": "deploy"}]])[0][2] == 201
        return next(a["id"] for a in self.d.ok("GET", f"{API}/approvals")["approvals"] if a["id"] not in before)

    def propose(self):
        d = self.d
        project = d.ok("POST", "/projects", {"name": "p", "creator": "walker"}, token=self.agent)["id"]
        task = d.ok("POST", f"{API}/tasks", {"project": project, "title": "t"})["id"]
        d.ok("PATCH", f"{API}/agents/walker", {"mode": "advisory"})
        return d.ok("POST", f"{API}/tasks/{task}/claim", {"agent": "walker"}, token=self.agent)["approval"]

    def states(self):
        return [self.d.ok("GET", f"{API}/approvals/{i}")["state"] for i in self.ids]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("answer-walk"))
    try:
        yield World(d)
    finally:
        d.clear()
        assert d.stop() == 0


def requests(world):
    """(route, method, path, body): every route, with each question wherever something can be named."""
    for route in printed():
        if route["name"] in LONG | ENDS or route["path"].startswith(("/sandbox.v1", "/grpc.")) or route["method"] in ("GET", "HEAD"):
            continue
        schema, query, upload = schema_of(route)
        method = "POST" if route["method"] == "*" else route["method"]
        ask = "&".join(f"{p['name']}={example(p['schema'])}" for p in query)
        for i in world.ids if "{" in route["path"] or route["name"] == "approval.answers" else world.ids[:1]:
            path = re.sub(r"\{\w+(\.\.\.)?\}", i, route["path"]) + (f"?{ask}" if ask else "")
            least = {k: example(schema["properties"][k]) for k in schema.get("required", [])} if schema else {}
            fields = set(schema["properties"]) if schema else {"by", "reason", "approved"}
            named = {k: v for k, v in {"by": "ann", "reason": "yes", "agent": "walker", "person": "ann", "approved": True, "preview": False}.items() if k in fields}
            body = b"x" if upload else {**least, **named}
            if "answers" in fields:
                body = {"answers": [{"id": i, "approve": True}]}
            yield route, method, path, body


SKIP = {"logout", "agent.remove", "agent.ack", "hub.agent.remove", "agent.register", "hub.agent.register", "image.pull"}


def test_no_asker_answers(world):
    before, count = world.states(), 0
    assert before == ["pending"] * 3
    all_requests = [r for r in requests(world) if r[0]["name"] not in SKIP]
    for who in (Who(world.agent), Who(world.other), Who("holt_" + "0" * 43)):
        for route, method, path, body in all_requests:
            status, text = send(world, who, method, path, body)
            count += 1
            if "/approvals/" in path or "/proposals/" in path or "/grants/" in path:
                assert status in (401, 403, 404, 405, 429), (route["name"], path, status, text)
    relayed = world.inside([[m, p, None if isinstance(b, bytes) else b] for _, m, p, b in all_requests])
    for method, path, status in relayed:
        if "/approvals/" in path or "/proposals/" in path or "/grants/" in path:
            assert status in (403, 404, 405), (method, path, status)
    assert count + len(relayed) > 400
    assert world.states() == before
    assert world.d.ok("GET", f"{API}/grants")["grants"] == []


def test_a_person_answers_by_the_same_requests(world):
    answered = {}
    for route, method, path, body in requests(world):
        if route["name"] in ("approval.approve", "approval.answers", "hub.proposal.approve"):
            status, _ = send(world, Who(world.person), method, path, body)
            answered.setdefault(route["name"], set()).add(status)
    assert 200 in answered["approval.answers"] and 200 in answered["hub.proposal.approve"]
    assert world.states() == ["approved"] * 3
