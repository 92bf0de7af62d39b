"""The hub by its name from inside a sandbox: as the sandbox's agent, without a header, and never as anybody else."""
import json

import pytest

import inside
from daemon import native, wait_for
from hub_client import call

API = "/holt/v1"
HUB = "http://hub:8080"


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("inside"))
    yield d
    d.clear()
    assert d.stop() == 0


class Box(inside.Box):
    def ask(self, method, path, body=None, headers=(), options=()):
        """(status, JSON or text)"""
        return self.ask_json(method, f"{HUB}{path}", *options, body=body, headers=headers)


@pytest.fixture(scope="module")
def ann(holtd):
    return Box(holtd, name="ann-box", agent="ann", hub=True)


def test_it_is_asked_for(holtd, ann):
    assert ann.made["hub"] is True and ann.made["relay"] is True and ann.made["agent"] == "ann"
    plain = Box(holtd, agent="plain")
    assert plain.made["hub"] is False and plain.made["relay"] is False and plain.made["agent"] == "plain"
    assert plain.run("curl", "-sS", "-m", "5", f"{HUB}/ping")["exit_code"] != 0
    assert "hub" not in plain.run("cat", "/etc/hosts")["stdout"]
    holtd.ok("DELETE", plain.path)
    status, reply, _ = holtd.request("POST", f"{API}/sandboxes", {"hub": True})
    assert status == 400 and "agent" in reply["error"]["message"]
    assert holtd.request("POST", f"{API}/sandboxes", {"agent": "a/b"})[0] == 400


def test_the_flow_of_an_agent(holtd, ann):
    assert ann.ask("GET", "/ping") == (200, {"status": "ok"})
    status, reply = ann.ask("POST", "/agents/register", {"name": "ann", "type": "coder"})
    assert status == 201 and "token" not in reply
    status, p = ann.ask("POST", "/projects", {"name": "p"})
    assert status == 201
    status, k = ann.ask("POST", f"/projects/{p['id']}/tasks", {"title": "t"})
    assert status == 201
    assert ann.ask("POST", f"/projects/{p['id']}/tasks/{k['id']}/claim", {"agent": "ann"})[0] == 200
    assert ann.ask("PATCH", f"/projects/{p['id']}/tasks/{k['id']}", {"status": "in_progress"})[0] == 200
    assert ann.ask("POST", "/messages/send", {"to": "bob", "content": "see http://hub:8080"})[0] == 200
    assert ann.ask("POST", "/agents/ann/heartbeat")[0] == 200
    task = call(holtd.url, "GET", f"/projects/{p['id']}/tasks/{k['id']}", token=holtd.token)[1]
    assert task["claimed_by"] == "ann" and task["transitions"][-1]["by"] == "ann"
    ann.run("sh", "-c", "echo from inside > /tmp/f")
    r = ann.run("curl", "-sS", "-F", "file=@/tmp/f", f"{HUB}/projects/{p['id']}/files")
    assert json.loads(r["stdout"])["filename"] == "f", r
    assert ann.ask("GET", f"/projects/{p['id']}/files/f")[1] == "from inside\n"
    assert call(holtd.url, "GET", f"/projects/{p['id']}/files", token=holtd.token)[1][0]["uploader"] == "ann"
    assert ann.ask("GET", f"{API}/tasks/{k['id']}")[1]["assigned_to"] == "ann"  # the native form as well
    log = call(holtd.url, "GET", "/audit/log", token=holtd.token, query={"limit": 1000})[1]
    assert {x["actor"] for x in log if x["action"] == "claim_task"} == {f"sandbox/{ann.id}"}


def test_it_is_never_anybody_else(holtd, ann):
    Box(holtd, name="bob-box", agent="bob", hub=True).ask("POST", "/agents/register", {"name": "bob"})
    ann.ask("POST", "/agents/register", {"name": "ann"})
    admin = (f"Authorization: Bearer {holtd.token}",)
    carried = [(), admin, (*admin, "X-Forwarded-For: 127.0.0.1"), ("Host: localhost",), ("Cookie: holt_session=x",)]
    for headers in carried:
        for method, path, body in [
            ("POST", "/agents/bob/heartbeat", None),
            ("POST", "/agents/register", {"name": "bob"}),
            ("POST", "/messages/send", {"from": "bob", "to": "x", "content": "y"}),
            ("GET", "/messages/bob", None),
            ("POST", "/agents/bob/pause", {}),
            ("POST", "/agents/ann/resume", {}),
            ("POST", "/autonomy/set-mode", {"mode": "manual"}),
            ("GET", "/audit/log", None),
            ("GET", "/events", None),
            ("POST", f"{API}/tokens", {"name": "x", "role": "admin"}),
            ("POST", f"{API}/sandboxes", {"agent": "bob", "hub": True}),
        ]:
            body_headers = ("content-type: application/json",) if path.startswith(API) else ()
            status, reply = ann.ask(method, path, body, (*headers, *body_headers))
            assert status == 403, (headers, method, path, status, reply)


def test_people_stay_in_charge(holtd, ann):
    ann.ask("POST", "/agents/register", {"name": "ann"})
    d = call(holtd.url, "POST", "/agents/ann/revoke", {"reason": "r"}, token=holtd.token)[1]
    assert ann.ask("POST", "/messages/send", {"to": "x", "content": "y"})[0] == 403
    assert ann.ask("GET", "/agents/ann/revocation")[1]["pending"] is True
    assert ann.ask("POST", "/agents/ann/revocation/ack", {"revocation_id": d["revocation_id"]})[0] == 200
    assert ann.ask("POST", "/messages/send", {"to": "x", "content": "y"})[0] == 200


def test_an_agent_makes_sandboxes_in_its_own_name_only(holtd):
    t = call(holtd.url, "POST", "/agents/register", {"name": "maker"}, token=holtd.token)[1]["token"]
    status, made, _ = holtd.request("POST", f"{API}/sandboxes", {"agent": "maker", "hub": True}, token=t)
    assert status == 201 and made["agent"] == "maker"
    assert holtd.request("DELETE", f"{API}/sandboxes/{made['id']}", token=t)[0] == 204
    status, reply, _ = holtd.request("POST", f"{API}/sandboxes", {"agent": "ann"}, token=t)
    assert status == 403 and "only for itself" in reply["error"]["message"]


def test_a_sandbox_without_an_agent_is_nobody(holtd):
    box = Box(holtd, relay=True)
    r = box.run("curl", "-sS", "--unix-socket", "/run/holt.sock", "-X", "POST", "-d", '{"name": "x"}', "http://holt/agents/register")
    assert "not for an agent of the team" in r["stdout"], r
    r = box.run("curl", "-sS", "--unix-socket", "/run/holt.sock", "-F", "file=@/etc/hosts", "http://holt/projects/pj_x/files")
    assert "not for an agent of the team" in r["stdout"], r
    holtd.ok("DELETE", box.path)
    holtd.assert_alive()


def test_with_a_network_and_its_proxy(holtd):
    """Programs that use the proxy of the environment go past it for this name."""
    box = Box(holtd, agent="net", hub=True, network={"mode": "allowlist", "allow": ["example.com"]})
    assert box.ask("GET", "/ping")[0] == 200
    code = "import urllib.request; print(urllib.request.urlopen('http://hub:8080/ping', timeout=60).status)"
    assert box.run("python3", "-c", code)["stdout"] == "200\n"
    holtd.ok("DELETE", box.path)


def test_ports_of_its_own_stay_free(ann):
    code = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 8080)); s.listen(); print('bound')"
    assert ann.run("python3", "-c", code)["stdout"] == "bound\n"


def test_it_survives_stop_start_and_the_daemon(tmp_path):
    d = native(tmp_path / "d")
    try:
        b = Box(d, name="kept", agent="kept", hub=True)
        assert b.ask("POST", "/agents/register", {"name": "kept"})[0] == 201
        d.ok("POST", f"{b.path}/stop", {"force": True})
        d.ok("POST", f"{b.path}/start", {})
        assert b.ask("POST", "/agents/kept/heartbeat")[0] == 200
        d.process.kill()
        d.process.wait()
        e = native(tmp_path / "d")
        try:
            b.d = e
            wait_for(lambda: e.request("POST", f"{b.path}/execs", {"command": ["true"]})[0] == 200)
            assert e.ok("GET", b.path)["agent"] == "kept"
            assert b.ask("POST", "/agents/kept/heartbeat")[0] == 200
            assert b.ask("POST", "/agents/other/heartbeat")[0] == 403
            e.ok("DELETE", b.path)
        finally:
            e.stop()
    finally:
        d.kill()


def test_a_read_only_root(holtd):
    box = Box(holtd, agent="ro", hub=True, rootfs="ro")
    assert box.ask("GET", "/ping")[0] == 200
    holtd.ok("DELETE", box.path)
