"""The relay: what runs inside a sandbox asks the API at /run/holt.sock, as that sandbox and never more."""
import os
import socket

import pytest

import inside
from daemon import BUILD, native, wait_for

API = "/holt/v1"
SOCKET = "/run/holt.sock"


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("relay"))
    yield d
    d.clear()
    assert d.stop() == 0


class Box(inside.Box):
    def __init__(self, d, relay=True, **spec):
        super().__init__(d, relay=relay, **spec)

    def ask(self, method, path, body=None, headers=()):
        """(status, JSON or text)"""
        return self.ask_json(method, f"http://holt{path}", "--unix-socket", SOCKET, body=body,
                             headers=["content-type: application/json", *headers])


@pytest.fixture(scope="module")
def box(holtd):
    return Box(holtd, name="inside")


def test_it_is_asked_for(holtd):
    plain = Box(holtd, relay=False)
    assert plain.made["relay"] is False
    assert plain.run("test", "-e", SOCKET)["exit_code"] == 1
    holtd.ok("DELETE", plain.path)


def test_it_is_its_sandbox(box):
    assert box.made["relay"] is True
    status, reply = box.ask("GET", f"{API}/tokens/self")
    assert status == 200 and reply["role"] == "agent", reply
    other = Box(box.d, relay=False)
    status, reply = box.ask("GET", f"{API}/sandboxes")
    assert status == 200 and [s["id"] for s in reply["sandboxes"]] == [box.id]
    assert box.ask("GET", box.path)[0] == 200
    status, reply = box.ask("POST", f"{box.path}/execs", {"command": ["echo", "hello"]})
    assert (status, reply["stdout"]) == (200, "hello\n")
    assert box.ask("GET", f"{box.path}/files?path=/etc/passwd")[0] == 200
    status, reply = box.ask("PATCH", box.path, {"labels": {"by": "inside"}})
    assert status == 200 and reply["labels"] == {"by": "inside"}
    events = box.d.ok("GET", f"{API}/events?object=sandbox/{box.id}&limit=100")["events"]
    assert any(e["actor"] == f"sandbox/{box.id}" for e in events)
    box.d.ok("DELETE", other.path)


def attempts(box, other):
    yield "GET", f"{API}/sandboxes/{other}", None
    yield "DELETE", f"{API}/sandboxes/{other}", None
    yield "POST", f"{API}/sandboxes/{other}/execs", {"command": ["true"]}
    yield "GET", f"{API}/sandboxes/{other}/files?path=/etc/passwd", None
    yield "GET", f"{API}/sandboxes/{other}/ports/80/", None
    yield "POST", f"{API}/sandboxes/{other}/previews", {"port": 80}
    yield "POST", f"{API}/sandboxes", {}
    yield "POST", f"{API}/sandboxes", {"relay": True, "name": "child"}
    yield "POST", f"{API}/run", {"command": ["true"]}
    yield "PATCH", box.path, {"ttl_ms": 0}
    yield "PATCH", box.path, {"idle_ttl_ms": 999999}
    yield "PATCH", box.path, {"protected": True}
    yield "GET", f"{API}/tokens", None
    yield "POST", f"{API}/tokens", {"name": "x", "role": "admin"}
    yield "POST", f"{API}/login/code", {}
    yield "GET", f"{API}/events", None
    yield "GET", f"{API}/audit", None
    yield "GET", f"{API}/settings", None
    yield "GET", f"{API}/info", None
    yield "GET", "/metrics", None
    yield "POST", f"{API}/images/pull", {"reference": "example.org/x"}


def test_never_more_whatever_it_carries(box):
    d = box.d
    other = Box(d, relay=False, name="neighbour")
    code = d.ok("POST", f"{API}/login/code", {})["code"]
    _, _, headers = d.request("POST", f"{API}/login", {"code": code}, token=None)
    session = headers["Set-Cookie"].split(";")[0]
    carried = [(), (f"Authorization: Bearer {d.token}",), (f"Cookie: {session}",), (f"Authorization: Bearer {d.token}", f"Cookie: {session}"),
               ("X-Forwarded-For: 127.0.0.1", f"Host: 127.0.0.1:{d.port}"), ("Authorization: Bearer wrong",)]
    for n, headers in enumerate(carried):
        for method, path, body in attempts(box, other.id):
            status, reply = box.ask(method, path, body, headers)
            assert status == 403, (n, method, path, status, reply)
            if n and method == "GET":  # the rest with the strongest set only
                break
        assert box.ask("GET", box.path, headers=headers)[0] == 200, "nor less"
    for method, path, body in attempts(box, other.id):
        status, reply = box.ask(method, path, body, carried[3])
        assert status == 403, (method, path, status, reply)
    assert box.ask("GET", f"{box.path}?token={d.token}")[0] in (200, 400)
    assert {s["name"] for s in d.ok("GET", f"{API}/sandboxes")["sandboxes"]} == {"inside", "neighbour"}
    d.ok("DELETE", other.path)


def test_a_token_of_its_own_does_not_hide_who_asks(box):
    """An observer's token would let it see all: through the relay it does not count."""
    token = box.d.new_token("seen", "observer")["token"]
    status, reply = box.ask("GET", f"{API}/sandboxes", headers=(f"Authorization: Bearer {token}",))
    assert status == 200 and [s["id"] for s in reply["sandboxes"]] == [box.id]


def test_bytes_both_ways(box):
    size = 24 << 20
    r = box.run("sh", "-c", f"head -c {size} /dev/urandom > /tmp/big && md5sum < /tmp/big && curl -sS -m 60 --unix-socket {SOCKET} -T /tmp/big "
                f"'http://holt{box.path}/files?path=/tmp/copy' && curl -sS -m 60 --unix-socket {SOCKET} 'http://holt{box.path}/files?path=/tmp/copy' | md5sum")
    first, second = [line for line in r["stdout"].split("\n") if line.endswith("  -")]
    assert first == second, r


KEEP = """
import http.client, socket, sys
class C(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect("/run/holt.sock")
"""


def test_one_connection_many_requests(box):
    said = box.python(KEEP + f"""
c = C("holt")
for i in range(50):
    c.request("GET", "{box.path}")
    r = c.getresponse()
    assert r.status == 200 and r.read(), r.status
print("fine")
""")
    assert said == "fine\n"


def test_event_stream(box):
    said = box.python(KEEP + f"""
import os
os.makedirs("/tmp/watched", exist_ok=True)
c = C("holt")
c.request("GET", "{box.path}/files/watch?path=/tmp/watched", headers={{"Accept": "text/event-stream"}})
r = c.getresponse()
print(r.status, r.headers["Content-Type"])
while b"begun" not in (line := r.readline()):
    assert line
open("/tmp/watched/new", "w").close()
while b"/new" not in (line := r.readline()):
    assert line
print("seen")
""")
    assert said == "200 text/event-stream\nseen\n", said


def test_websocket(box):
    x = box.d.ok("POST", f"{box.path}/execs", {"command": ["sh", "-c", "echo from-the-command; sleep 60"], "background": True})
    said = box.python(f"""
import socket
s = socket.socket(socket.AF_UNIX)
s.settimeout(60)
s.connect("/run/holt.sock")
s.sendall(b"GET {box.path}/execs/{x['id']}/attach HTTP/1.1\\r\\nHost: holt\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
          b"Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n")
got = b""
while b"from-the-command" not in got:
    part = s.recv(4096)
    assert part, got
    got += part
print(got.split(b"\\r\\n")[0].decode())
""")
    assert said == "HTTP/1.1 101 Switching Protocols\n"
    box.d.ok("POST", f"{box.path}/execs/{x['id']}/cancel")


def test_connections_are_bounded(box):
    said = box.python("""
import socket, time
def ask():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect("/run/holt.sock")
    try:
        s.sendall(b"GET /healthz HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n")
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
    assert said == "64 HTTP/1.1 200\n", said
    wait_for(lambda: box.d.ok("GET", f"{API}/info")["connections"] < 20)


@pytest.mark.needs_root("counts holtd's descriptors, which nobody else may")
def test_askers_that_go_away(box):
    before = box.d.fd_count()
    box.python("""
import os, socket
for i in range(300):
    s = socket.socket(socket.AF_UNIX)
    s.connect("/run/holt.sock")
    if i % 3 == 0:
        s.sendall(b"GET /holt/v1/sandboxes HTTP/1.1\\r\\n" + (b"Host: h\\r\\n\\r\\n" if i % 2 else b""))
    elif i % 3 == 1:
        s.sendall(os.urandom(5000))
    s.close()
""")
    wait_for(lambda: box.d.fd_count() <= before + 2)
    assert box.ask("GET", box.path)[0] == 200


@pytest.mark.not_on("runsc", "gVisor of before 2023 refuses statx(AT_NO_AUTOMOUNT), and so ls and stat of coreutils 9 on a name")
def test_it_survives_stop_and_start(box):
    box.d.ok("POST", f"{box.path}/stop", {"force": True})
    box.d.ok("POST", f"{box.path}/start", {})
    assert box.ask("GET", box.path)[0] == 200
    assert box.run("stat", "-c", "%a", SOCKET)["stdout"] == "666\n"


def test_it_survives_the_daemon(tmp_path):
    d = native(tmp_path / "d")
    try:
        b = Box(d, name="kept")
        assert b.ask("GET", b.path)[0] == 200
        d.process.kill()
        d.process.wait()
        e = native(tmp_path / "d")
        try:
            b.d = e
            wait_for(lambda: e.request("POST", f"{b.path}/execs", {"command": ["true"]})[0] == 200)
            assert b.ask("GET", b.path)[1]["relay"] is True
            assert b.ask("POST", f"{API}/sandboxes", {}, (f"Authorization: Bearer {e.token}",))[0] == 403
            e.ok("DELETE", b.path)
        finally:
            e.stop()
    finally:
        d.kill()


def test_it_can_end_itself(holtd):
    b = Box(holtd)
    holtd.request("POST", f"{b.path}/execs", {"command": ["curl", "-sS", "--unix-socket", SOCKET, "-X", "DELETE", f"http://holt{b.path}"]})
    wait_for(lambda: holtd.request("GET", b.path)[0] == 404)


def test_auth_off_makes_nobody_inside_admin(tmp_path):
    d = native(tmp_path / "off", "--auth", "off")
    try:
        b = Box(d)
        assert b.ask("GET", f"{API}/tokens")[0] == 403
        assert b.ask("GET", b.path)[0] == 200
        d.ok("DELETE", b.path)
    finally:
        d.stop()


def test_other_runtimes_say_so(new_holtd):
    d = new_holtd()
    status, reply, _ = d.request("POST", f"{API}/sandboxes", {"relay": True})
    assert status in (400, 501) and "relay" in reply["error"]["message"], reply




def test_init_does_not_decide(new_holtd, tmp_path):
    """An init that listens although its sandbox was made without a relay: holtd refuses what comes through it."""
    bindir = tmp_path / "bin"
    bindir.mkdir()
    for name in os.listdir(BUILD):
        if name.startswith("holt-") and os.access(f"{BUILD}/{name}", os.X_OK) and os.path.isfile(f"{BUILD}/{name}"):
            os.symlink(f"{BUILD}/{name}", bindir / name)
    path = f"{tmp_path}/s"
    (bindir / "holt-init").unlink()
    (bindir / "holt-init").write_text(f'#!/bin/sh\nexec {BUILD}/holt-init "$@" --relay {path}\n')
    (bindir / "holt-init").chmod(0o755)
    d = new_holtd("--bindir", str(bindir))
    box = d.ok("POST", f"{API}/sandboxes", {})
    assert d.ok("POST", f"{API}/sandboxes/{box['id']}/execs", {"command": ["true"]})["exit_code"] == 0
    for _ in range(3):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(60)
            s.connect(path)
            try:
                s.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
                assert s.recv(100) == b""
            except (BrokenPipeError, ConnectionResetError):
                pass
    assert d.ok("POST", f"{API}/sandboxes/{box['id']}/execs", {"command": ["true"]})["exit_code"] == 0
    d.ok("DELETE", f"{API}/sandboxes/{box['id']}")
