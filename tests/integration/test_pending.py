"""What holtd holds in memory for clients that have not shown who they are, and for what is inside a sandbox, is bounded."""
import contextlib
import json
import socket
import struct

import pytest

from daemon import Holtd, native, wait_for
from h2raw import DATA, END_HEADERS, H2, HEADERS, error_of, frame, request
from inside import Box
from raw import Raw

API = "/holt/v1"
LOGIN = f"POST {API}/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
KIB = 1024


def pending(d):
    text = d.request("GET", "/metrics")[1]
    return int(next(x for x in text.splitlines() if x.startswith("holt_http_pending_bytes")).split()[1])


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    d = Holtd(tmp_path_factory.mktemp("small"), "--pending-per-peer", "256k", "--pending-max", "1m")
    yield d
    assert d.stop() == 0


def test_login_takes_small_bodies_only(holtd):
    with Raw(holtd.port) as c:
        c.send(f"{LOGIN}Content-Length: {16 << 20}\r\n\r\n")
        r = c.read()
        assert r.status == 413 and "limit" in r.body.decode()
    with Raw(holtd.port) as c:
        c.send(f"{LOGIN}Transfer-Encoding: chunked\r\n\r\n")
        c.send("4000\r\n" + "x" * 0x4000 + "\r\n")
        assert c.read().status == 413


@pytest.mark.parametrize("path", [f"{API}/logout", f"{API}/agents/x/pause", "/ping", "/agents/x/heartbeat"])
def test_small_operations_take_small_bodies_only(holtd, path):
    with Raw(holtd.port) as c:
        c.send(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
               f"Authorization: Bearer {holtd.token}\r\nContent-Length: {16 << 20}\r\n\r\n")
        assert c.read().status == 413


def test_a_message_of_an_unknown_caller_is_small(holtd):
    with H2(holtd.port) as c:
        head = request("/grpc.health.v1.Health/Check", "POST", more=[("content-type", "application/grpc"), ("te", "trailers")])
        c.send(frame(HEADERS, END_HEADERS, 1, head))
        c.send(frame(DATA, 0, 1, b"\0" + struct.pack(">I", 8 << 20)))
        got = c.frames(5, lambda got: any(f[0] == HEADERS for f in got))
        assert any(f[0] == HEADERS for f in got), "refused by its length, before its bytes are there"


def test_half_read_heads_count(small):
    with contextlib.ExitStack() as stack:
        refused = 0
        for _ in range(12):
            c = stack.enter_context(Raw(small.port))
            c.send("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + "x" * (40 * KIB))
            with contextlib.suppress(socket.timeout):
                c.sock.settimeout(0.5)
                r = c.read()
                assert r.status == 429 and "pending_per_peer" in r.body.decode()
                refused += 1
        assert refused >= 5
        assert pending(small) <= 256 * KIB
        assert small.request("GET", f"{API}/tokens")[0] == 200, "whoever has a token is served meanwhile"
    wait_for(lambda: pending(small) == 0)


def test_bodies_of_unknown_clients_count(small):
    """The login's own limit is 4 KiB or less; its heads and bodies together are bounded too."""
    with contextlib.ExitStack() as stack:
        statuses = []
        for _ in range(12):
            c = stack.enter_context(Raw(small.port))
            c.send(f"{LOGIN}X: {'x' * (40 * KIB)}\r\nContent-Length: 1000\r\n\r\n{{")
            with contextlib.suppress(socket.timeout):
                c.sock.settimeout(0.5)
                statuses.append(c.read().status)
        assert statuses and set(statuses) == {429}
        assert pending(small) <= 256 * KIB
    wait_for(lambda: pending(small) == 0)


def test_streams_of_unknown_clients_count(small):
    """HTTP/2: a hundred streams whose bodies do not end, on one connection."""
    with H2(small.port) as c:
        for i in range(100):
            head = request(f"{API}/login", "POST", more=[("content-type", "application/json"), ("x", "x" * 8000)])
            c.send(frame(HEADERS, END_HEADERS, 1 + 2 * i, head))
        got = c.frames(5, lambda got: any(f[0] == HEADERS for f in got) or error_of(got)[0] is not None)
        assert any(f[0] == HEADERS for f in got) or error_of(got)[0] is not None
        assert pending(small) <= 256 * KIB
    wait_for(lambda: pending(small) == 0)


def test_a_token_needs_no_budget(small):
    """A body larger than the budget, of somebody who is known."""
    status, reply, _ = small.request("POST", f"{API}/sandboxes", {"labels": {"a": "b" * 60}, "env": {"A": "x" * 300000}})
    assert status != 429 and "pending" not in json.dumps(reply)


def test_the_relay_has_a_budget(tmp_path):
    d = native(tmp_path, "--pending-per-peer", "256k")
    try:
        box = Box(d, relay=True)
        script = (
            "import socket,sys\n"
            "held=[]\n"
            "got=b''\n"
            "for i in range(8):\n"
            "    s=socket.socket(socket.AF_UNIX); s.connect('/run/holt.sock'); s.settimeout(1)\n"
            f"    s.sendall(b'POST {box.path}/execs HTTP/1.1\\r\\nHost: holt\\r\\nContent-Type: application/json\\r\\n'\n"
            "              b'Content-Length: 1000000\\r\\n\\r\\n' + b' ' * 100000)\n"
            "    held.append(s)\n"
            "    try: got += s.recv(4096)\n"
            "    except TimeoutError: pass\n"
            "sys.stdout.buffer.write(got)\n")
        out = box.run("python3", "-c", script)["stdout"]
        assert out.count("HTTP/1.1 429") >= 5 and "pending_per_peer" in out, out
        wait_for(lambda: pending(d) == 0)
    finally:
        d.clear()
        d.stop()
