"""A revoked agent reads, reports of itself and acknowledges; whatever the interface, it does nothing else."""
import http.client
import json
import re
import socket
import time
import urllib.parse

import grpc
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import inside
from agentbox_client import Sandbox
from daemon import ROOT, native, wait_for
from hub_client import call, form

API = "/holt/v1"
SAFE = {"none", "self", "read", "events", "audit", "sandbox.read", "sandbox.content", "secret.read", "team.read", "team.content", "team.report", "ask.read"}
NOT_AN_AGENTS = {"tokens", "login", "admin", "image.write", "secrets", "team.rule"}
WHY = re.compile(r"agent '(\w+)' is revoked, by token/tk_\w+ at \d{4}-\d\d-\d\dT[\d:.]+Z: why it is")


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("revoke"), "--sbx-allowed-hosts", "a.example")  # else agents make none by sbx
    yield d
    d.clear()
    assert d.stop() == 0


class Agent:
    """With a token of its own."""

    def __init__(self, d, name):
        self.d, self.name = d, name
        self.token = call(d.url, "POST", "/agents/register", {"name": name}, token=d.token)[1]["token"]

    def ask(self, method, path, body=None, **more):
        return self.d.request(method, path, body, token=self.token, **more)[:2]

    def ok(self, method, path, body=None):
        status, reply = self.ask(method, path, body)
        assert 200 <= status < 300, (method, path, status, reply)
        return reply

    def box(self, **spec):
        return f"{API}/sandboxes/{self.ok('POST', f'{API}/sandboxes', spec)['id']}"

    def told(self, what, reason="why it is", **more):
        return self.d.ok("POST", f"{API}/agents/{self.name}/{what}", {"reason": reason, **more})

    def ack(self, **body):
        return self.ok("POST", f"{API}/agents/{self.name}/revocation/ack", body)["ended"]


@pytest.fixture
def agent(holtd, request):
    a = Agent(holtd, re.sub(r"\W", "_", request.node.name)[:60])
    yield a
    holtd.request("POST", f"{API}/agents/{a.name}/revocation/ack", {})


def refused(got):
    """By the one error; its text."""
    status, reply = got
    error = reply["error"]
    text = error["message"] if isinstance(error, dict) else error
    assert status == 403 and WHY.match(text), got
    if isinstance(error, dict):
        assert error["code"] == "forbidden" and "holt agent ack" in error["hint"]
    return text


def operations():
    with open(f"{ROOT}/api/openapi.json", encoding="utf-8") as f:
        for path, methods in json.load(f)["paths"].items():
            for method, op in methods.items():
                if isinstance(op, dict) and "x-permission" in op:
                    yield method.upper(), path, op["x-permission"], op["operationId"]


def test_every_operation_of_the_native_api(holtd, agent):
    """By its permission alone: an operation that is added is held to it, too."""
    box = agent.box()
    agent.told("revoke")
    seen = set()
    for method, path, perm, name in operations():
        if method == "HEAD" or name in ("fileWatch", "agentAck", "agentRegister"):  # no text; no end; below
            continue
        filled = re.sub(r"\{(\w+)\}", lambda m: {"id": box.rsplit("/", 1)[1], "name": agent.name, "port": "1"}.get(m[1], "x"), path)
        status, reply = agent.ask(method, filled, {} if method in ("POST", "PUT", "PATCH") else None, timeout=10)
        seen.add(perm)
        if perm in SAFE:
            assert status < 400 or "is revoked" not in str(reply), (name, status, reply)
        elif perm in NOT_AN_AGENTS:
            assert status == 403, (name, status, reply)
        else:
            refused((status, reply))
    assert {"sandbox.write", "team.write", "team.report", "sandbox.content"} <= seen
    assert holtd.ok("GET", box)["state"] == "running"  # people decide what becomes of it
    assert agent.ok("POST", f"{API}/agents", {"name": agent.name})["status"] == "revoked"
    agent.ok("POST", f"{API}/agents/{agent.name}/heartbeat")
    assert agent.ok("GET", f"{API}/agents/{agent.name}")["status"] == "revoked"
    assert agent.ack() == 1
    assert agent.ok("POST", f"{box}/execs", {"command": ["true"]})["exit_code"] == 0
    holtd.ok("DELETE", box)


def test_the_hub(holtd, agent):
    p = agent.ok("POST", "/projects", {"name": "p"})["id"]
    agent.told("revoke")
    me = f"/agents/{agent.name}"
    for method, path, body in (
            ("POST", "/projects", {"name": "x"}), ("POST", f"/projects/{p}/tasks", {"title": "t"}), ("DELETE", f"/projects/{p}", None),
            ("POST", f"/projects/{p}/tasks/x/claim", {"agent": agent.name}), ("PATCH", f"/projects/{p}/tasks/x", {"status": "ready"}),
            ("POST", "/messages/send", {"to": "x", "content": "y"}), ("POST", "/messages/ms_x/ack", None),
            ("POST", f"{me}/autonomy", {"mode": "manual"}), ("POST", f"{me}/capabilities", {"tags": ["a"]}), ("DELETE", me, None)):
        refused(call(holtd.url, method, path, body, token=agent.token)[:2])
    raw, kind = form([("file", "f", b"x")])
    refused(call(holtd.url, "POST", f"/projects/{p}/files", token=agent.token, raw=raw, headers={"Content-Type": kind})[:2])
    for method, path in (("GET", "/agents"), ("GET", f"/messages/{agent.name}"), ("GET", f"{me}/revocation"), ("POST", f"{me}/heartbeat"),
                         ("POST", f"{me}/checkpoint"), ("GET", f"/projects/{p}/tasks"), ("POST", f"{me}/revocation/ack")):
        assert call(holtd.url, method, path, token=agent.token)[0] == 200, path
    assert call(holtd.url, "POST", "/messages/send", {"to": "x", "content": "y"}, token=agent.token)[0] == 200


def test_sbx(holtd, agent):
    box = agent.ok("POST", "/sandboxes", {})["id"]
    agent.told("revoke")
    refused(agent.ask("POST", "/sandboxes", {}))
    refused(agent.ask("POST", f"/sandboxes/{box}/exec", {"command": ["true"], "async": False}))
    refused(agent.ask("POST", f"/sandboxes/{box}/execs/x/cancel"))
    refused(agent.ask("DELETE", f"/sandboxes/{box}"))
    assert agent.ask("GET", f"/sandboxes/{box}")[0] == 200
    agent.ack()
    agent.ok("DELETE", f"/sandboxes/{box}")


def test_agentbox(holtd, agent):
    box = Sandbox(holtd.port, agent.token)
    session = box.CreateSession(session_id=f"s-{agent.name}").session
    agent.told("revoke")
    s = session.session_id
    for name, fields in (("CreateSession", {"session_id": "other"}), ("Exec", {"session_id": s, "command": "true"}),
                         ("ExecStream", {"session_id": s, "command": "true"}), ("WriteFile", {"session_id": s, "path": "/tmp/x"}),
                         ("PipInstall", {"session_id": s, "packages": ["x"]}), ("DestroySession", {"session_id": s})):
        with pytest.raises(grpc.RpcError) as e:
            reply = getattr(box, name)(**fields)
            list(reply) if name == "ExecStream" else None
        assert e.value.code() == grpc.StatusCode.PERMISSION_DENIED and WHY.match(e.value.details()), name
    assert box.GetSession(session_id=s).session.sandbox_id == session.sandbox_id
    assert not box.GetSession(session_id=s).session.proxy_url
    refused(agent.ask("POST", "/sandbox.v1.SandboxService/Exec", {"sessionId": s, "command": "true"}))
    agent.ack()
    assert box.Exec(session_id=s, command="echo again").stdout == "again\n"
    box.DestroySession(session_id=s)
    box.close()


class Box(inside.Box):
    def ask(self, method, path, body=None):
        return self.ask_json(method, f"http://holt{path}", "--unix-socket", "/run/holt.sock", body=body,
                             headers=["content-type: application/json"])

    def process_api(self, at, /, **body):
        return self.ask_json("POST", f"http://127.0.0.1:2024{at}", "--noproxy", "*", body=body)


def test_from_inside_its_sandbox(holtd, agent):
    """Whoever made it: what names the agent is its own."""
    box = Box(holtd, agent=agent.name, hub=True, relay=True)
    agent.told("revoke")
    refused(box.ask("POST", f"{box.path}/execs", {"command": ["true"]}))
    refused(box.ask("DELETE", box.path))
    refused(box.ask("POST", "/messages/send", {"to": "x", "content": "y"}))
    refused(box.ask_json("POST", "http://hub:8080/projects", body={"name": "p"}))
    assert box.ask("GET", box.path)[0] == 200
    assert box.ask_json("POST", f"http://hub:8080/agents/{agent.name}/heartbeat")[0] == 200
    assert box.ask_json("POST", f"http://hub:8080/agents/{agent.name}/revocation/ack")[0] == 200
    assert box.ask("POST", f"{box.path}/execs", {"command": ["true"]})[0] == 200
    holtd.ok("DELETE", box.path)


def test_from_inside_what_it_made_without_its_name(holtd, agent):
    box = Box.__new__(Box)
    inside.Inside.__init__(box, holtd, agent.box(relay=True).rsplit("/", 1)[1])
    assert box.ask("POST", f"{box.path}/execs", {"command": ["true"]})[0] == 200
    agent.told("revoke")
    refused(box.ask("POST", f"{box.path}/execs", {"command": ["true"]}))
    agent.ack()
    assert box.ask("DELETE", f"{box.path}/files?path=/tmp/none")[0] == 404
    holtd.ok("DELETE", box.path)


def test_process_api(holtd, agent):
    client = Sandbox(holtd.port, agent.token)
    made = client.CreateSession(session_id=f"p-{agent.name}", process_api=True).session
    box = Box.__new__(Box)
    inside.Inside.__init__(box, holtd, made.sandbox_id)
    assert box.process_api("/exec", command="echo x")[1]["stdout"] == "x\n"
    agent.told("revoke")
    for path in ("/exec", "/exec/stream", "/file/write", "/file/read"):
        refused(box.process_api(path, command="true", path="/tmp/x", content="x"))
    assert box.ask_json("GET", "http://127.0.0.1:2024/health", "--noproxy", "*")[0] == 200
    agent.ack()
    assert box.process_api("/exec", command="echo y")[1]["stdout"] == "y\n"
    client.close()
    holtd.ok("DELETE", box.path)


# --- what had begun ---


def test_a_terminal_stays_open_for_reading_only(holtd, agent):
    box = agent.box()
    x = agent.ok("POST", f"{box}/execs", {"command": ["cat"], "background": True, "stdin_open": True})["id"]
    with connect(f"ws://127.0.0.1:{holtd.port}{box}/execs/{x}/attach?role=controller", proxy=None,
                 additional_headers={"Authorization": f"Bearer {agent.token}"}) as ws:
        seen = [json.loads(ws.recv(30)) for _ in range(2)]
        assert [m["type"] for m in seen] == ["started", "role"]
        assert json.loads(ws.recv(30))["type"] == "members"
        ws.send(b"\0before\n")
        assert ws.recv(30)[9:] == b"before\n"
        agent.told("revoke")
        for typed in (b"\0after\n", '{"type": "signal", "signal": "KILL"}', '{"type": "eof"}'):
            ws.send(typed)
            m = json.loads(ws.recv(30))
            assert m["type"] == "error" and WHY.match(m["error"]["message"]), m
        holtd.ok("POST", f"{box}/execs/{x}/signal", {"signal": "KILL"})  # a person's
        assert json.loads(ws.recv(30))["type"] == "exit"
    status, reply = agent.ask("GET", f"{box}/execs/{x}/output")
    assert (status, reply) == (200, "before\n")
    holtd.ok("DELETE", box)


def raw_request(d, token, head, body=b""):
    s = socket.create_connection(("127.0.0.1", d.port))
    s.settimeout(30)
    s.sendall(f"{head}\r\nHost: 127.0.0.1:{d.port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode() + body)
    return s


def test_uploads_end(holtd, agent):
    """The head was let in; what comes after the revocation is not."""
    box = agent.box()
    x = agent.ok("POST", f"{box}/execs", {"command": ["cat"], "background": True, "stdin_open": True})["id"]
    p = agent.ok("POST", "/projects", {"name": "p"})["id"]
    more = "HTTP/1.1\r\nContent-Length: 20\r\nContent-Type: application/octet-stream"
    names = ("file", "stdin", "project file", "exec")
    sockets = [raw_request(holtd, agent.token, f"PUT {box}/files?path=/tmp/up {more}", b"x" * 10),
               raw_request(holtd, agent.token, f"POST {box}/execs/{x}/stdin {more}", b"first\n"),
               raw_request(holtd, agent.token, f"PUT {API}/projects/{p}/files?path=f {more}", b"x" * 10),
               raw_request(holtd, agent.token, f"POST {box}/execs HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 31",
                           b'{"command": ["touch"')]
    wait_for(lambda: agent.ok("GET", f"{box}/execs/{x}/output") == "first\n")
    agent.told("revoke")
    for name, s, rest in zip(names, sockets, (b"y" * 10, b"second\n" + b"z" * 7, b"y" * 10, b', "/tmp/x"]')):
        try:
            s.sendall(rest)
            got = s.recv(65536)
        except ConnectionError:
            got = b""
        s.close()
        assert not got.startswith(b"HTTP/1.1 2"), (name, got)
        if name != "file":  # that one may just end
            assert b"is revoked" in got, (name, got)
    assert holtd.ok("GET", f"{box}/execs/{x}/output") == "first\n"
    holtd.ok("DELETE", box)


SERVER = """
import socket, threading
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
def serve(c):
    with c:
        c.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello")
        c.recv(1 << 16)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],)).start()
"""


def test_tunnels_and_previews_end(holtd, agent):
    box = agent.box()
    x = agent.ok("POST", f"{box}/execs", {"command": ["python3", "-c", SERVER], "background": True})["id"]
    port = int(wait_for(lambda: agent.ok("GET", f"{box}/execs/{x}/output?stream=stdout").strip()))
    link = agent.ok("POST", f"{box}/previews", {"port": port})
    host = urllib.parse.urlsplit(link["origin"]).netloc

    def preview(method, path, body=None, **headers):
        c = http.client.HTTPConnection("127.0.0.1", int(host.split(":")[1]), timeout=30)
        c.request(method, path, body, {"Host": host, **headers})
        r = c.getresponse()
        text = r.read()
        c.close()
        return r.status, text, r.headers

    path, code = urllib.parse.urlsplit(link["url"])[2::2]
    cookie = preview("POST", path, code)[2]["Set-Cookie"].split(";")[0]
    assert preview("GET", "/", Cookie=cookie)[0] == 200
    with connect(f"ws://127.0.0.1:{holtd.port}{box}/ports/{port}", proxy=None,
                 additional_headers={"Authorization": f"Bearer {agent.token}"}) as ws:
        assert b"hello" in ws.recv(30)
        begun = time.monotonic()
        agent.told("revoke")
        with pytest.raises(ConnectionClosed) as e:
            ws.recv(30)
        assert e.value.rcvd.code == 1008 and "agent is revoked" in e.value.rcvd.reason
        assert time.monotonic() - begun < 10
    status, text, _ = preview("GET", "/", Cookie=cookie)
    refused((status, json.loads(text)))
    agent.ack()
    assert preview("GET", "/", Cookie=cookie)[0] == 200
    holtd.ok("DELETE", box)


# --- until it is acknowledged ---


def test_it_outlasts_the_daemon_and_all_must_be_acknowledged(tmp_path):
    d = native(tmp_path / "d")
    try:
        a = Agent(d, "kept")
        first, second = a.told("revoke"), a.told("revoke", "why it is, again")
        d.kill()
        d = native(tmp_path / "d", port=d.port)
        a.d = d
        assert "again" in refused(a.ask("POST", f"{API}/sandboxes", {}))
        assert a.ack(id=second["id"]) == 1
        assert "again" not in refused(a.ask("POST", f"{API}/sandboxes", {}))
        assert d.stop() == 0
        d = native(tmp_path / "d", port=d.port)
        a.d = d
        refused(a.ask("POST", f"{API}/sandboxes", {}))
        assert a.ack(id="dv_other") == 0
        refused(a.ask("POST", f"{API}/sandboxes", {}))
        assert a.ack(id=first["id"]) == 1
        assert d.stop() == 0
        d = native(tmp_path / "d", port=d.port)
        a.d = d
        d.ok("DELETE", a.box())
    finally:
        d.stop()


def test_every_token_of_it_and_no_other(holtd, agent):
    """The agent is revoked, not a token: one made for it later is no way out, nor is one's registering again."""
    more = holtd.ok("POST", f"{API}/tokens", {"name": "second", "role": "agent", "agent": agent.name})["token"]
    other = Agent(holtd, "other_one")
    agent.told("revoke")
    refused(holtd.request("POST", f"{API}/sandboxes", {}, token=more)[:2])
    agent.ok("POST", f"{API}/agents", {"name": agent.name})
    refused(agent.ask("POST", f"{API}/sandboxes", {}))
    late = Agent(holtd, agent.name)  # a person registers it: its token is new
    refused(late.ask("POST", f"{API}/sandboxes", {}))
    holtd.ok("DELETE", other.box())
    assert late.ack() == 1
    holtd.ok("DELETE", late.box())


def test_people_act_for_it(holtd, agent):
    agent.told("revoke")
    box = holtd.ok("POST", f"{API}/sandboxes", {"agent": agent.name})["id"]  # it is theirs to decide
    holtd.ok("DELETE", f"{API}/sandboxes/{box}")
    assert holtd.ok("POST", f"{API}/agents/{agent.name}/revocation/ack", {})["ended"] == 1
    holtd.ok("DELETE", agent.box())


def test_its_sandboxes_stop_when_people_say_so(holtd, agent):
    mine, named = agent.box(), f"{API}/sandboxes/" + holtd.ok("POST", f"{API}/sandboxes", {"agent": agent.name})["id"]
    other = f"{API}/sandboxes/" + holtd.ok("POST", f"{API}/sandboxes", {})["id"]
    x = agent.ok("POST", f"{mine}/execs", {"command": ["sleep", "1000"], "background": True})["id"]
    agent.told("revoke", stop=True)
    wait_for(lambda: [holtd.ok("GET", b)["state"] for b in (mine, named, other)] == ["stopped", "stopped", "running"])
    assert holtd.ok("GET", f"{mine}/execs/{x}")["ended_at"]
    refused(agent.ask("POST", f"{mine}/start"))
    for b in (mine, named, other):
        holtd.ok("DELETE", b)


def test_a_hostile_reason_is_cut(holtd, agent):
    agent.told("revoke", "why it is: " + "\u20ac\u0007\"" * 13000)
    text = refused(agent.ask("POST", f"{API}/sandboxes", {}))
    assert len(text.encode()) < 300
    assert agent.ack() == 1


def test_a_paused_agent_finishes_its_work(holtd, agent):
    agent.told("pause")
    box = agent.box()
    assert agent.ok("POST", f"{box}/execs", {"command": ["true"]})["exit_code"] == 0
    assert agent.ask("POST", "/messages/send", {"to": "x", "content": "late"})[0] == 200
    agent.ok("DELETE", box)
    holtd.ok("POST", f"{API}/agents/{agent.name}/resume")


def test_revoking_acts_before_its_reply(holtd, agent):
    """Whoever has the reply knows that nothing more comes."""
    for _ in range(20):
        agent.told("revoke")
        refused(agent.ask("POST", f"{API}/run", {"command": ["true"]}))
        assert agent.ack() == 1
        assert agent.ask("PATCH", f"{API}/sandboxes/none", {})[0] == 404
