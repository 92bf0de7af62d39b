"""Operations that need approval: refused with what to ask, done exactly once with the grant, closed to other ways in."""
import pytest

from daemon import Holtd, native
from test_approval import token

API = "/holt/v1"


@pytest.fixture(scope="module")
def d(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("gate"))
    yield d
    for g in d.ok("GET", f"{API}/gates")["gates"]:
        d.ok("DELETE", f"{API}/gates/{g['id']}")
    d.clear()
    assert d.stop() == 0


@pytest.fixture(scope="module")
def agent(d):
    return token(d, "worker", "agent")


@pytest.fixture(scope="module")
def person(d):
    return token(d, "ann", person="ann")


@pytest.fixture
def gate(d):
    made = []

    def add(operation, **more):
        made.append(d.ok("POST", f"{API}/gates", {"operation": operation, **more})["id"])
        return made[-1]
    yield add
    for g in made:
        d.request("DELETE", f"{API}/gates/{g}")


def run(d, box, who, command):
    return d.request("POST", f"{API}/sandboxes/{box}/execs", {"command": command}, token=who)


def refused(reply):
    """The id in the hint of a refusal."""
    status, body, _ = reply
    assert status == 403 and "approval" in body["error"]["message"], body
    return next(w.rstrip(";") for w in body["error"]["hint"].split() if w.startswith("rf_"))


def approve(d, who, rf, person, **more):
    q = d.ok("POST", f"{API}/approvals", {"question": "please", "refused": rf}, token=who)
    return q, d.ok("POST", f"{API}/approvals/{q['id']}/approve", more, token=person)


def count(d, box, who):
    return run(d, box, who, ["sh", "-c", "wc -l < /tmp/done"])[1]["stdout"].strip()


def test_the_granted_action_is_done_once(d, agent, person, gate):
    box = d.ok("POST", f"{API}/sandboxes", {}, token=agent)["id"]
    gate("exec.create", role="agent", command="sh -c echo*", reason="writes are reviewed")
    write = ["sh", "-c", "echo x >> /tmp/done"]
    first = run(d, box, agent, write)
    assert "writes are reviewed" in first[1]["error"]["message"]
    rf = refused(first)
    q, yes = approve(d, agent, rf, person)
    assert q["arguments"]["body"] == {"command": write} and q["sandbox"] == box and yes["grant"]["uses"] == 1
    refused(run(d, box, agent, ["sh", "-c", "echo y >> /tmp/done"]))  # a changed argument
    other = token(d, "other", "agent")
    assert d.request("POST", f"{API}/approvals", {"question": "x", "refused": rf}, token=other)[0] == 404
    assert run(d, box, agent, write)[1]["exit_code"] == 0
    refused(run(d, box, agent, write))  # a second use
    assert count(d, box, agent) == "1"
    assert run(d, box, agent, ["true"])[0] == 200  # what no gate matches


def test_a_rule_lets_the_like_pass(d, agent, person, gate):
    box = d.ok("POST", f"{API}/sandboxes", {"labels": {"env": "prod"}}, token=agent)["id"]
    free = d.ok("POST", f"{API}/sandboxes", {}, token=agent)["id"]
    gate("exec.*", role="agent", label="env=prod")
    rf = refused(run(d, box, agent, ["echo", "1"]))
    assert run(d, free, agent, ["echo", "1"])[0] == 200  # another label
    approve(d, agent, rf, person, scope="rule", pattern="echo *")
    assert [run(d, box, agent, ["echo", str(i)])[0] for i in range(3)] == [200] * 3
    refused(run(d, box, agent, ["ls"]))
    grant = d.ok("GET", f"{API}/grants")["grants"][-1]
    assert grant["used"] == 3
    d.ok("DELETE", f"{API}/grants/{grant['id']}")
    refused(run(d, box, agent, ["echo", "1"]))


def test_paths_and_people(d, agent, person, gate):
    box = d.ok("POST", f"{API}/sandboxes", {}, token=agent)["id"]
    gate("file.*", path="/srv/*", people=2)
    put = lambda path: d.request("PUT", f"{API}/sandboxes/{box}/files?path={path}", b"x", token=agent, headers={"Content-Type": "application/octet-stream"})
    rf = refused(put("/srv/a"))
    assert put("/tmp/a")[0] < 300
    q, yes = approve(d, agent, rf, person)
    assert yes["state"] == "pending" and yes["votes"] == 1
    d.ok("POST", f"{API}/approvals/{q['id']}/approve", {}, token=token(d, "bob", person="bob"))
    d.request("POST", f"{API}/sandboxes/{box}/execs", {"command": "mkdir -p /srv"}, token=agent)
    assert put("/srv/a")[0] < 300
    refused(put("/srv/a"))


def test_no_dialect_leads_around(d, agent, gate):
    """While a gate covers an operation, no route of a dialect with that permission is open to its caller."""
    made = d.ok("POST", f"{API}/sandboxes", {}, token=agent)["id"]
    assert d.request("POST", f"/sandboxes/{made}/exec", {"command": ["true"]}, token=agent)[0] < 300
    gate("exec.create", role="agent")
    for path, body in ((f"/sandboxes/{made}/exec", {"command": ["true"]}), ("/sandboxes", {"id": "more"})):
        status, reply, _ = d.request("POST", path, body, token=agent)
        assert status == 403 and "gate" in str(reply), (path, status, reply)
    assert d.request("GET", f"/sandboxes/{made}", token=agent)[0] == 200


def test_nobody_is_locked_out(d, gate):
    for operation in ("approval.*", "gate.add", "no.such"):
        assert d.request("POST", f"{API}/gates", {"operation": operation})[0] == 400
    gate("*")
    g = d.ok("POST", f"{API}/gates", {"operation": "run"})["id"]
    d.ok("DELETE", f"{API}/gates/{g}")
    assert d.request("POST", f"{API}/tokens", {"name": "x"})[0] == 403


def test_gates_outlive_a_restart_and_keep_no_secret(tmp_path):
    d = Holtd(tmp_path)
    who, person = token(d, "op"), token(d, "ann", person="ann")
    d.ok("POST", f"{API}/gates", {"operation": "secret.*", "reason": "keys"})
    d.kill()
    d = Holtd(tmp_path)
    try:
        put = lambda value: d.request("POST", f"{API}/secrets", {"name": "k", "value": value, "hosts": ["a.example"]}, token=who)
        rf = refused(put("very-secret-1"))
        q, _ = approve(d, who, rf, person)
        assert "very-secret" not in str(q) and q["arguments"]["body"]["name"] == "k"
        refused(put("very-secret-2"))
        assert put("very-secret-1")[0] == 201
    finally:
        d.stop()
