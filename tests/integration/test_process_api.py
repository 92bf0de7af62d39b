"""agentbox's process_api on port 2024 inside a sandbox: its formats, and that it reaches its own sandbox only."""
import json
import os
import socket

import pytest

from agentbox_client import Sandbox
from daemon import BUILD, native, wait_for
from inside import Inside

API = "/holt/v1"


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("process_api"))
    yield d
    d.clear()
    assert d.stop() == 0


class Session(Inside):
    """A session, and requests by curl from inside it."""

    def __init__(self, d, session="inside", **more):
        self.box = Sandbox(d.port, d.token)
        super().__init__(d, self.box.CreateSession(session_id=session, process_api=True, **more).session.sandbox_id)

    def ask(self, method, path, body=None, headers=(), address="127.0.0.1"):
        """(status, text, content type)"""
        status, kind, text = self.curl(method, f"http://{address}:2024{path}", "--noproxy", "*", body=body, headers=headers)
        return status, text, kind

    def post(self, at, /, **body):
        status, text, _ = self.ask("POST", at, body)
        return status, json.loads(text)


@pytest.fixture(scope="module")
def inside(holtd):
    return Session(holtd)


def test_health(inside):
    assert inside.d.ok("GET", inside.path)["process_api"] is True
    for address in ("127.0.0.1", "localhost", "[::1]"):
        assert inside.ask("GET", "/health", address=address) == (200, '{"status": "ok"}', "application/json; charset=utf-8")


def test_exec(inside):
    status, text, _ = inside.ask("POST", "/exec", {"command": "echo out; echo err >&2; pwd; exit 3"})
    assert (status, text) == (200, '{"exit_code": 3, "stdout": "out\\n/workspace\\n", "stderr": "err\\n", "timed_out": false}')
    assert inside.post("/exec", command="pwd", workdir="/tmp")[1]["stdout"] == "/tmp\n"
    assert inside.post("/exec", command="kill -9 $$")[1]["exit_code"] == -9
    assert inside.post("/exec", command="sleep 20", timeout=0.5) == \
        (200, {"exit_code": -1, "stdout": "", "stderr": "Command timed out", "timed_out": True})
    assert inside.post("/exec", command="true", timeout=0)[1]["timed_out"] is True
    assert inside.post("/exec", command="echo x", timeout=None)[1]["stdout"] == "x\n"


def test_exec_failures(inside):
    assert inside.post("/exec") == (400, {"error": "Missing 'command' field"})
    assert inside.post("/exec", command="") == (400, {"error": "Missing 'command' field"})
    assert inside.post("/exec", command=["ls"])[1]["stderr"] == "cmd must be a string"
    assert inside.post("/exec", command="true", workdir="/none") == \
        (200, {"exit_code": -1, "stdout": "", "stderr": "[Errno 2] No such file or directory: '/none'", "timed_out": False})
    assert inside.ask("POST", "/exec", "not json")[:2] == (400, '{"error": "Invalid JSON"}')
    assert inside.ask("POST", "/exec", "[]")[0] == 500
    assert inside.ask("GET", "/exec")[:2] == (405, "405: Method Not Allowed")
    assert inside.ask("GET", "/nowhere")[:2] == (404, "404: Not Found")


def test_stream(inside):
    status, text, kind = inside.ask("POST", "/exec/stream", {"command": "echo a; sleep 0.3; echo b >&2; exit 5"})
    assert (status, kind) == (200, "text/event-stream")
    assert text == ('data: {"type": "stdout", "data": "a\\n"}\n\n'
                    'data: {"type": "stderr", "data": "b\\n"}\n\n'
                    'data: {"type": "exit", "exit_code": 5}\n\n')
    _, text, _ = inside.ask("POST", "/exec/stream", {"command": "true", "workdir": "/none"})
    assert text == 'data: {"type": "error", "data": "[Errno 2] No such file or directory: \'/none\'"}\n\n'
    assert inside.ask("POST", "/exec/stream", {"command": 5})[1:] == \
        ('data: {"type": "error", "data": "cmd must be a string"}\n\n', "text/event-stream")
    assert inside.ask("POST", "/exec/stream", {})[:2] == (400, '{"error": "Missing \'command\' field"}')


def test_stream_is_live_and_ends_with_its_reader(inside):
    said = inside.run("python3", "-c", """
import http.client, time
began = time.monotonic()
c = http.client.HTTPConnection("127.0.0.1", 2024)
c.request("POST", "/exec/stream", '{"command": "echo now; exec sleep 71"}')
r = c.getresponse()
assert b"now" in r.readline() and time.monotonic() - began < 60
c.sock.close()
r.close()
""")
    assert said["exit_code"] == 0, said
    wait_for(lambda: inside.run("pgrep", "-f", "sleep 71")["exit_code"] == 1)


@pytest.mark.not_on("runsc", "gVisor of before 2023 refuses statx(AT_NO_AUTOMOUNT), and so ls and stat of coreutils 9 on a name")
def test_files(inside):
    assert inside.ask("POST", "/file/write", {"path": "d/a.txt", "content": "one\n"})[:2] == (200, '{"success": true}')
    assert inside.post("/file/write", path="/workspace/d/a.txt", content="two\n", mode="a") == (200, {"success": True})
    assert inside.ask("POST", "/file/read", {"path": "d/a.txt"})[:2] == (200, '{"success": true, "content": "one\\ntwo\\n"}')
    assert inside.post("/file/write", path="empty", content="") == (200, {"success": True})
    assert inside.post("/file/read", path="empty") == (200, {"success": True, "content": ""})
    big = "x" * (3 << 20)
    assert inside.run("sh", "-c", "cat > /workspace/big.json; curl -sS --data-binary @/workspace/big.json http://127.0.0.1:2024/file/write",
                      stdin=json.dumps({"path": "big", "content": big}))["stdout"] == '{"success": true}'
    assert inside.run("stat", "-c", "%s", "/workspace/big")["stdout"] == f"{len(big)}\n"


def test_file_failures(inside):
    assert inside.post("/file/write", path="/etc/x", content="") == (403, {"error": "Path not allowed"})
    assert inside.post("/file/write", path="/workspace2/x", content="") == (403, {"error": "Path not allowed"})
    assert inside.post("/file/write", path="x") == (400, {"error": "Missing 'path' or 'content' field"})
    assert inside.post("/file/write", content="x") == (400, {"error": "Missing 'path' or 'content' field"})
    assert inside.post("/file/read") == (400, {"error": "Missing 'path' field"})
    assert inside.post("/file/read", path="/etc/passwd") == (200, {"success": False, "error": "Path not allowed"})
    assert inside.post("/file/read", path="none") == (200, {"success": False, "error": "File not found"})
    inside.post("/exec", command="printf '\\377' > bad; mkdir -p dir")
    assert inside.post("/file/read", path="bad")[1]["error"] == \
        "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"
    assert inside.post("/file/read", path="dir")[1]["error"].startswith("[Errno 21] Is a directory: ")


def test_nothing_of_the_api_is_there(inside):
    """Whatever the request carries; nor does a page that a browser inside shows get anything."""
    token = f"Authorization: Bearer {inside.d.token}"
    for method, path in (("GET", f"{API}/sandboxes"), ("POST", f"{API}/sandboxes"), ("GET", "/sandboxes"), ("GET", "/metrics"),
                         ("GET", "/healthz"), ("POST", "/sandbox.v1.SandboxService/ListSessions"), ("GET", "/"),
                         ("GET", f"{API}/tokens"), ("GET", "/health/../metrics")):
        assert inside.ask(method, path, headers=(token,))[0] == 404, path
    assert inside.ask("POST", "/exec", {"command": "id"}, headers=("Origin: http://evil.example",))[0] == 403


def test_it_is_asked_for(holtd, inside):
    box = Sandbox(holtd.port, holtd.token)
    made = box.CreateSession(session_id="without").session
    probe = "curl -sS -m 60 --noproxy '*' http://127.0.0.1:2024/health"
    assert box.Exec(session_id="without", command=probe).exit_code == 7, "nobody listens"
    assert holtd.ok("GET", f"{API}/sandboxes/{made.sandbox_id}")["process_api"] is False
    plain = holtd.ok("POST", f"{API}/sandboxes", {"process_api": True})
    r = holtd.ok("POST", f"{API}/sandboxes/{plain['id']}/execs", {"command": ["sh", "-c", probe]})
    assert r["stdout"] == '{"status": "ok"}', "a native sandbox may have it too"
    assert box.Exec(session_id="without", command="echo still-alone").stdout == "still-alone\n"
    holtd.ok("DELETE", f"{API}/sandboxes/{plain['id']}")
    box.DestroySession(session_id="without")


def test_the_setting(tmp_path):
    d = native(tmp_path / "d", "--agentbox-process-api")
    try:
        box = Sandbox(d.port, d.token)
        box.CreateSession(session_id="by-default")
        box.CreateSession(session_id="not", process_api=False)
        probe = "curl -sS -m 60 --noproxy '*' http://127.0.0.1:2024/health"
        assert box.Exec(session_id="by-default", command=probe).stdout == '{"status": "ok"}'
        assert box.Exec(session_id="not", command=probe).exit_code == 7
        for name in ("by-default", "not"):
            assert box.DestroySession(session_id=name).success
    finally:
        assert d.stop() == 0


def test_it_outlives_holtd(tmp_path):
    d = native(tmp_path / "d")
    one = Session(d, "kept")
    d.process.kill()
    d.process.wait()
    e = native(tmp_path / "d")
    try:
        one.d = e
        wait_for(lambda: e.request("POST", f"{one.path}/execs", {"command": ["true"]})[0] == 200)
        assert one.ask("GET", "/health")[0] == 200
        e.ok_once_found("POST", f"{one.path}/stop", {"force": True})
        e.ok("POST", f"{one.path}/start", {})
        assert one.post("/exec", command="echo again")[1]["stdout"] == "again\n"
        e.ok("DELETE", one.path)
    finally:
        assert e.stop() == 0
        d.kill()


def test_connections_are_bounded(inside):
    said = inside.run("python3", "-c", """
import socket, time
def ask():
    s = socket.create_connection(("127.0.0.1", 2024), 60)
    try:
        s.sendall(b"GET /health HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n")
        return s, s.recv(100)
    except OSError:
        return s, b""
held = [ask() for _ in range(100)]
served = sum(1 for _, got in held if got.startswith(b"HTTP/1.1 200"))
for s, _ in held:
    s.close()
for _ in range(300):
    again = ask()[1][:12]
    if again:
        break
    time.sleep(0.1)
print(served, again.decode())
""")
    assert said["stdout"] == "64 HTTP/1.1 200\n", said


def test_init_does_not_decide(new_holtd, tmp_path):
    """An init that listens although its sandbox was made without: holtd refuses what comes through it."""
    bindir = tmp_path / "bin"
    bindir.mkdir()
    for name in os.listdir(BUILD):
        if name.startswith("holt-") and os.access(f"{BUILD}/{name}", os.X_OK) and os.path.isfile(f"{BUILD}/{name}"):
            os.symlink(f"{BUILD}/{name}", bindir / name)
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    (bindir / "holt-init").unlink()
    (bindir / "holt-init").write_text(f'#!/bin/sh\nexec {BUILD}/holt-init "$@" --process-port {port}\n')
    (bindir / "holt-init").chmod(0o755)
    d = new_holtd("--bindir", str(bindir))
    box = d.ok("POST", f"{API}/sandboxes", {})
    assert d.ok("POST", f"{API}/sandboxes/{box['id']}/execs", {"command": ["true"]})["exit_code"] == 0
    with socket.create_connection(("127.0.0.1", port), 60) as s:
        try:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n")
            assert s.recv(100) == b""
        except (BrokenPipeError, ConnectionResetError):
            pass
    d.ok("DELETE", f"{API}/sandboxes/{box['id']}")
    status, reply, _ = d.request("POST", f"{API}/sandboxes", {"process_api": True})
    assert status in (400, 501) and "process_api" in reply["error"]["message"], "this runtime isolates nothing"
