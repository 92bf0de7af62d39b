"""`unknown: ask` with real sandboxes: a connection to a host that no rule knows waits for a person."""
import os
import signal
import subprocess
import time

import pytest

from daemon import BUILD, Program, environment, native, wait_for
from test_network import create, run

NAMES = {f"{h}.test": ["127.0.0.1"] for h in ("one", "two", "three", "four", "five")} | {"private.test": ["10.1.2.3"]}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("ask")


@pytest.fixture(scope="module")
def holtd(home, names):
    d = native(home, "--egress-dns", names.address)
    yield d
    d.clear()
    d.stop()


@pytest.fixture
def box(holtd, web):
    b = ask_box(holtd, web)
    yield b
    holtd.request("DELETE", f"/holt/v1/sandboxes/{b}")


def ask_box(d, web, **more):
    return create(d, {"mode": "allowlist", "unknown": "ask", "allow": [{"cidr": "127.0.0.1/32", "ports": [web.port]}], "deny": ["never.test"]}, **more)


def fetch(d, box, host, web, more=()):
    """Begins a request inside; a function that gives its end: (exit status, HTTP status, body and message)."""
    x = d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {
        "command": ["curl", "-sS", "-m", "60", "-w", "\n%{http_code}", *more, f"http://{host}:{web.port}/x"], "background": True})["id"]

    def end(d=d):
        r = wait_for(lambda: (lambda r: r if r["ended_at"] else None)(d.ok("GET", f"/holt/v1/sandboxes/{box}/execs/{x}")), 90)
        out = d.request("GET", f"/holt/v1/sandboxes/{box}/execs/{x}/output")[1]
        return r["exit_code"], out.rsplit("\n", 1)[-1], out
    return end


def wait_connected(d, box, n):
    """Until so many of its clients have a connection to holt-egress, of which both ends are in its network; then they ask."""
    def count():
        r = d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": "cat /proc/net/tcp /proc/net/tcp6"})
        return sum(1 for line in r["stdout"].splitlines() if line.split()[3:4] == ["01"])
    wait_for(lambda: count() >= 2 * n)
    time.sleep(0.3)


def pending(d, box=None):
    found = d.ok("GET", "/holt/v1/approvals?state=pending")["approvals"]
    return [a for a in found if a["kind"] == "egress" and (box is None or a["sandbox"] == box)]


def question(d, box, host=None):
    return wait_for(lambda: [a for a in pending(d, box) if host in (None, a["host"])])[0]


def decide(d, approval, what, scope="once", **more):
    return d.ok("POST", f"/holt/v1/approvals/{approval['id']}/{what}", {"scope": scope}, **more)


def rules(d):
    return d.ok("GET", "/holt/v1/rules")["rules"]


@pytest.mark.not_on("runsc", "gVisor shows no connections of the host's stack in /proc/net/tcp, by which the test waits")
def test_once_is_for_those_who_wait(holtd, box, web):
    first = [fetch(holtd, box, "one.test", web), fetch(holtd, box, "one.test", web, ["--noproxy", "*"])]
    q = question(holtd, box)
    assert (q["host"], q["port"], q["sandbox"], q["state"]) == ("one.test", web.port, box, "pending")
    wait_connected(holtd, box, 2)
    assert len(pending(holtd, box)) == 1, "many connections to one host are one question"
    seen = web.count
    decide(holtd, q, "approve")
    assert [e()[1] for e in first] == ["200", "200"] and web.count == seen + 2
    again = fetch(holtd, box, "one.test", web)
    q2 = question(holtd, box)
    assert q2["id"] != q["id"]
    assert holtd.ok("POST", f"/holt/v1/approvals/{q2['id']}/deny", {"reason": "no need"})["state"] == "rejected"
    code, status, out = again()
    assert status == "403" and "a person denied it" in out
    types = [e["type"] for e in holtd.ok("GET", "/holt/v1/events?type=approval.*&limit=1000")["events"]]
    assert types[-4:] == ["approval.created", "approval.approved", "approval.created", "approval.rejected"]
    assert rules(holtd) == []
    code, body, _ = holtd.request("POST", f"/holt/v1/approvals/{q['id']}/approve", {})
    assert code == 409 and "already" in body["error"]["message"]


def test_what_the_policy_knows_is_not_asked(holtd, box, web):
    assert fetch(holtd, box, "never.test", web)()[1] == "403"
    assert fetch(holtd, box, "192.0.2.1", web)()[1] == "403", "addresses are never asked about"
    assert pending(holtd, box) == []


def test_for_this_sandbox(holtd, box, web):
    other = ask_box(holtd, web)
    end = fetch(holtd, box, "two.test", web)
    decide(holtd, question(holtd, box), "approve", "sandbox")
    assert end()[1] == "200"
    assert fetch(holtd, box, "two.test", web)()[1] == "200", "it is known now"
    [rule] = rules(holtd)
    assert (rule["sandbox"], rule["host"], rule["port"], rule["allow"]) == (box, "two.test", web.port, True)
    end = fetch(holtd, other, "two.test", web)
    decide(holtd, question(holtd, other), "deny", "sandbox")
    assert end()[1] == "403"
    assert "deny two.test" in fetch(holtd, other, "two.test", web)()[2], "and so is a no"
    assert holtd.request("DELETE", f"/holt/v1/sandboxes/{other}")[0] == 204
    wait_for(lambda: [r["sandbox"] for r in rules(holtd)] == [box])


def test_always_is_for_the_tenant(holtd, web):
    a, b, c = (ask_box(holtd, web, tenant=t) for t in ("acme", "acme", "other"))
    ends = [fetch(holtd, x, "three.test", web) for x in (a, b, c)]
    for x in (b, c):
        question(holtd, x)
    decide(holtd, question(holtd, a), "approve", "always")
    assert [e()[1] for e in ends[:2]] == ["200", "200"], "the other one's question is answered, too"
    assert pending(holtd, b) == [] and len(pending(holtd, c)) == 1
    later = ask_box(holtd, web, tenant="acme")
    assert fetch(holtd, later, "three.test", web)()[1] == "200", "those that are made later as well"
    rule = next(r for r in rules(holtd) if r["host"] == "three.test")
    assert rule["sandbox"] is None and rule["tenant"] == "acme"
    env = environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token})
    assert b"three.test" in subprocess.run([f"{BUILD}/holt", "rule", "ls"], env=env, capture_output=True, timeout=60, check=True).stdout
    subprocess.run([f"{BUILD}/holt", "rule", "rm", rule["id"]], env=env, timeout=60, check=True)
    end = fetch(holtd, later, "three.test", web)
    decide(holtd, question(holtd, later), "deny")
    assert end()[1] == "403", "it is asked again"
    for x in (a, b, c, later):
        assert holtd.request("DELETE", f"/holt/v1/sandboxes/{x}")[0] == 204
    assert pending(holtd) == [], "what a destroyed sandbox asked is closed"
    assert ends[2] and [x["state"] for x in holtd.ok("GET", "/holt/v1/approvals?limit=1000")["approvals"] if x.get("sandbox") == c] == ["closed"]


def test_an_agent_never_answers(holtd, box, web):
    token = holtd.ok("POST", "/holt/v1/tokens", {"name": "a", "role": "agent", "agent": "asker"})["token"]
    end = fetch(holtd, box, "four.test", web)
    q = question(holtd, box)
    for what in ("approve", "deny"):
        assert holtd.request("POST", f"/holt/v1/approvals/{q['id']}/{what}", {"scope": "once"}, token=token)[0] == 403
    assert holtd.request("DELETE", "/holt/v1/rules/ru_x", token=token)[0] == 403
    observer = holtd.new_token("o", "observer")["token"]
    assert holtd.request("POST", f"/holt/v1/approvals/{q['id']}/approve", {}, token=observer)[0] == 403
    operator = holtd.new_token("p", "operator")["token"]
    assert decide(holtd, q, "approve", token=operator)["decided_by"].startswith("token/")
    assert end()[1] == "200"


def test_the_hub_sees_proposals_only(holtd, box, web):
    end = fetch(holtd, box, "four.test", web)
    q = question(holtd, box)
    assert q["id"] not in str(holtd.ok("GET", "/proposals"))
    assert holtd.request("GET", f"/proposals/{q['id']}")[0] == 404
    assert holtd.request("POST", f"/proposals/{q['id']}/approve", {})[0] == 404
    assert q["id"] not in str(holtd.request("GET", "/audit/logs")[1])
    decide(holtd, q, "deny")
    assert end()[1] == "403"


def test_a_name_that_leads_to_a_private_address(holtd, box, web):
    end = fetch(holtd, box, "private.test", web)
    decide(holtd, question(holtd, box), "approve", "sandbox")
    code, status, out = end()
    assert status == "403" and "it resolves to a private address" in out, "a person says yes to a name, not to an address"


def test_questions_are_bounded(holtd, box, web):
    line = "; ".join(f"curl -s -m 20 -o /dev/null http://h{i}.test:{web.port}/ &" for i in range(40)).replace("&;", "&")
    holtd.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["sh", "-c", line + " wait"], "background": True})
    wait_for(lambda: len(pending(holtd, box)) == 32)
    denied = wait_for(lambda: [e for e in holtd.ok("GET", "/holt/v1/events?type=egress.denied&limit=1000")["events"]
                               if e["object"] == f"sandbox/{box}" and "undecided" in e["data"]["rule"]])
    assert denied and len(pending(holtd, box)) == 32
    assert holtd.request("DELETE", f"/holt/v1/sandboxes/{box}")[0] == 204
    wait_for(lambda: pending(holtd, box) == [])


def test_nobody_answers(tmp_path, names, web):
    d = native(tmp_path, "--egress-dns", names.address, "--egress-ask-ms", "1500")
    try:
        box = ask_box(d, web)
        begun = time.monotonic()
        code, status, out = fetch(d, box, "one.test", web)()
        assert status == "403" and "nobody decided in time" in out and time.monotonic() - begun > 1.4
        assert pending(d) == []
        d.request("DELETE", f"/holt/v1/sandboxes/{box}")
    finally:
        d.stop()


def test_what_nobody_waits_for_any_more_is_closed_in_time(tmp_path, names, web):
    """Also by the next holtd, and when the sandbox went while there was none."""
    flags = ("--egress-dns", names.address, "--egress-ask-ms", "8000")  # longer than a start of holtd
    d = native(tmp_path, *flags)
    try:
        box = ask_box(d, web)
        assert fetch(d, box, "one.test", web, ["-m", "1"])()[0] == 28
        [q] = pending(d, box)
        Program.kill(d)
        d = native(tmp_path, *flags)
        assert [a["id"] for a in pending(d, box)] == [q["id"]]
        wait_for(lambda: pending(d, box) == [])
        closed = d.ok("GET", f"/holt/v1/approvals/{q['id']}")
        assert (closed["state"], closed["reason"], closed["decided_by"]) == ("closed", "nobody decided in time", "system")
        wait_for(lambda: d.request("DELETE", f"/holt/v1/sandboxes/{box}")[0] == 204)
    finally:
        d.stop()


@pytest.mark.not_on("runsc", "gVisor shows no connections of the host's stack in /proc/net/tcp, by which the test waits")
def test_a_restart_while_somebody_waits(tmp_path, names, web):
    """The same question goes on, and so do rules and what they allowed."""
    d = native(tmp_path, "--egress-dns", names.address)
    try:
        box = ask_box(d, web)
        end = fetch(d, box, "one.test", web)
        known = fetch(d, box, "two.test", web)
        decide(d, question(d, box, "two.test"), "approve", "sandbox")
        assert known()[1] == "200"
        q = question(d, box, "one.test")
        Program.kill(d)
        d = native(tmp_path, "--egress-dns", names.address)
        wait_for(lambda: d.request("GET", f"/holt/v1/sandboxes/{box}")[1].get("state") == "running")
        assert [a["id"] for a in pending(d, box)] == [q["id"]]
        assert fetch(d, box, "two.test", web)()[1] == "200"
        time.sleep(0.3)  # holt-egress has asked again, or asks now
        decide(d, q, "approve")
        assert end(d)[1] == "200"
        # holt-egress dies: who waited is gone, the question is not, and the rules are told to the next one
        gone = fetch(d, box, "three.test", web)
        q = question(d, box, "three.test")
        first = d.egress_pid()
        os.kill(first, signal.SIGKILL)
        assert gone()[0] != 0
        wait_for(lambda: d.egress_pid() not in (0, first))
        wait_for(lambda: fetch(d, box, "two.test", web)()[1] == "200")
        end = fetch(d, box, "three.test", web)
        wait_connected(d, box, 1)
        assert [a["id"] for a in pending(d, box)] == [q["id"]]
        decide(d, q, "approve")
        assert end()[1] == "200"
        d.request("DELETE", f"/holt/v1/sandboxes/{box}")
    finally:
        d.stop()
