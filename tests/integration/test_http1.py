"""HTTP/1.1 on raw sockets: what a strict server must refuse, and how; and what it must do well."""
import os
import socket
import time

import pytest

from daemon import Holtd, wait_for
from raw import Closed, Raw, get

H = "Host: 127.0.0.1\r\n"
TAIL = f"GET /healthz HTTP/1.1\r\n{H}\r\n"  # what a smuggler hides behind the first request
POST = "POST /holt/v1/tokens HTTP/1.1\r\n"

BAD = {  # name: (bytes, statuses that are right)
    "content-length and transfer-encoding": (
        f"{POST}{H}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{TAIL}", {400}),
    "transfer-encoding and content-length": (
        f"{POST}{H}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{TAIL}", {400}),
    "two different content-lengths": (
        f"{POST}{H}Content-Length: 2\r\nContent-Length: 44\r\n\r\n{{}}{TAIL}", {400}),
    "the same content-length twice": (
        f"{POST}{H}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{{}}{TAIL}", {400}),
    "a list as content-length": (f"{POST}{H}Content-Length: 2, 2\r\n\r\n{{}}{TAIL}", {400}),
    "negative content-length": (f"{POST}{H}Content-Length: -1\r\n\r\n{TAIL}", {400}),
    "content-length with a sign": (f"{POST}{H}Content-Length: +2\r\n\r\n{{}}{TAIL}", {400}),
    "content-length in hexadecimal": (f"{POST}{H}Content-Length: 0x2\r\n\r\n{{}}{TAIL}", {400}),
    "empty content-length": (f"{POST}{H}Content-Length: \r\n\r\n{TAIL}", {400}),
    "content-length past 64 bits": (
        f"{POST}{H}Content-Length: 18446744073709551618\r\n\r\n{{}}{TAIL}", {400, 413}),
    "transfer-encoding identity": (f"{POST}{H}Transfer-Encoding: identity\r\n\r\n{TAIL}", {400, 501}),
    "chunked is not last": (f"{POST}{H}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n{TAIL}", {400, 501}),
    "chunked twice": (f"{POST}{H}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n{TAIL}", {400, 501}),
    "two transfer-encoding fields": (
        f"{POST}{H}Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n{TAIL}", {400, 501}),
    "transfer-encoding with a vertical tab": (
        f"{POST}{H}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n{TAIL}", {400, 501}),
    "transfer-encoding: xchunked": (f"{POST}{H}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{TAIL}", {400, 501}),
    "transfer-encoding on HTTP/1.0": (
        f"POST / HTTP/1.0\r\n{H}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{TAIL}", {400, 501}),
    "obs-fold": (f"GET /healthz HTTP/1.1\r\n{H}X-A: b\r\n c\r\n\r\n{TAIL}", {400}),
    "obs-fold by a tab": (f"GET /healthz HTTP/1.1\r\n{H}X-A: b\r\n\tc\r\n\r\n{TAIL}", {400}),
    "space before the first field": (f"GET /healthz HTTP/1.1\r\n {H}\r\n{TAIL}", {400}),
    "bare LF after the request line": (f"GET /healthz HTTP/1.1\n{H}\r\n{TAIL}", {400}),
    "bare LF after a field": ("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\n\r\n" + TAIL, {400}),
    "bare LF at the end of the head": (f"GET /healthz HTTP/1.1\r\n{H}\n{TAIL}", {400}),
    "bare CR in a value": (f"GET /healthz HTTP/1.1\r\n{H}X-A: a\rb\r\n\r\n{TAIL}", {400}),
    "bare CR as line end": (f"GET /healthz HTTP/1.1\rHost: a\r\r{TAIL}", {400}),
    "NUL in a value": (f"GET /healthz HTTP/1.1\r\n{H}X-A: a\0b\r\n\r\n{TAIL}", {400}),
    "NUL in a name": (f"GET /healthz HTTP/1.1\r\n{H}X\0A: a\r\n\r\n{TAIL}", {400}),
    "NUL in the target": (f"GET /heal\0thz HTTP/1.1\r\n{H}\r\n{TAIL}", {400}),
    "DEL in a value": (f"GET /healthz HTTP/1.1\r\n{H}X-A: a\x7fb\r\n\r\n{TAIL}", {400}),
    "Host with a space before the colon": (f"GET /healthz HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n{TAIL}", {400}),
    "Content-Length with a space before the colon": (
        f"{POST}{H}Content-Length : 2\r\n\r\n{{}}{TAIL}", {400}),
    "two Hosts": (f"GET /healthz HTTP/1.1\r\n{H}Host: evil.example\r\n\r\n{TAIL}", {400}),
    "the same Host twice": (f"GET /healthz HTTP/1.1\r\n{H}{H}\r\n{TAIL}", {400}),
    "no Host": (f"GET /healthz HTTP/1.1\r\n\r\n{TAIL}", {400}),
    "Host with a name behind an address": (f"GET /healthz HTTP/1.1\r\nHost: [::1]evil.example\r\n\r\n{TAIL}", {400}),
    "Host with brackets around a name": (f"GET /healthz HTTP/1.1\r\nHost: [localhost]\r\n\r\n{TAIL}", {400}),
    "Host with two ports": (f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:1:2\r\n\r\n{TAIL}", {400}),
    "Host with a port that is none": (f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:65536\r\n\r\n{TAIL}", {400}),
    "an absolute target with a name behind an address": (
        f"GET http://[::1]evil.example/healthz HTTP/1.1\r\nHost: [::1]evil.example\r\n\r\n{TAIL}", {400}),
    **{f"two {name} fields": (f"GET /healthz HTTP/1.1\r\n{H}{name}: {a}\r\n{name}: {b}\r\n\r\n{TAIL}", {400}) for name, a, b in (
        ("Origin", "http://127.0.0.1", "http://evil.example"), ("Authorization", "Bearer a", "Bearer b"),
        ("Cookie", "holt_session=a", "holt_session=b"), ("Content-Type", "application/json", "text/plain"),
        ("Sec-Fetch-Site", "same-origin", "cross-site"), ("Idempotency-Key", "a", "b"), ("Range", "bytes=0-1", "bytes=2-3"))},
    "Host is a list": (f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1, evil\r\n\r\n{TAIL}", {400, 403, 421}),
    "Host with a path": (f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1/x\r\n\r\n{TAIL}", {400, 403, 421}),
    "empty field name": (f"GET /healthz HTTP/1.1\r\n{H}: a\r\n\r\n{TAIL}", {400}),
    "a field without a colon": (f"GET /healthz HTTP/1.1\r\n{H}nonsense\r\n\r\n{TAIL}", {400}),
    "a field name with a parenthesis": (f"GET /healthz HTTP/1.1\r\n{H}X(A: a\r\n\r\n{TAIL}", {400}),
    "two spaces in the request line": (f"GET  /healthz HTTP/1.1\r\n{H}\r\n{TAIL}", {400}),
    "a tab in the request line": (f"GET\t/healthz HTTP/1.1\r\n{H}\r\n{TAIL}", {400}),
    "space behind the version": (f"GET /healthz HTTP/1.1 \r\n{H}\r\n{TAIL}", {400}),
    "no version": (f"GET /healthz\r\n{H}\r\n{TAIL}", {400, 505}),
    "lower-case version": (f"GET /healthz http/1.1\r\n{H}\r\n{TAIL}", {400, 505}),
    "version 1.10": (f"GET /healthz HTTP/1.10\r\n{H}\r\n{TAIL}", {400, 505}),
    "version 2.0": (f"GET /healthz HTTP/2.0\r\n{H}\r\n{TAIL}", {400, 505}),
    "version 3.1": (f"GET /healthz HTTP/3.1\r\n{H}\r\n{TAIL}", {400, 505}),
    "a method with a control character": (f"G\x01T /healthz HTTP/1.1\r\n{H}\r\n{TAIL}", {400}),
    "a target with a space": (f"GET /heal thz HTTP/1.1\r\n{H}\r\n{TAIL}", {400}),
    "a target that is no path": (f"GET healthz HTTP/1.1\r\n{H}\r\n{TAIL}", {400}),
    "a target with a fragment": (f"GET /healthz#x HTTP/1.1\r\n{H}\r\n{TAIL}", {400}),
    "CONNECT": (f"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n{TAIL}", {400, 403, 405, 421, 501}),
    "chunk size with a sign": (f"{POST}{H}Transfer-Encoding: chunked\r\n\r\n+2\r\n{{}}\r\n0\r\n\r\n{TAIL}", {400}),
    "chunk size with 0x": (f"{POST}{H}Transfer-Encoding: chunked\r\n\r\n0x2\r\n{{}}\r\n0\r\n\r\n{TAIL}", {400}),
    "chunk size past 64 bits": (
        f"{POST}{H}Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n{{}}\r\n0\r\n\r\n{TAIL}", {400, 413}),
    "empty chunk size": (f"{POST}{H}Transfer-Encoding: chunked\r\n\r\n\r\n{{}}\r\n0\r\n\r\n{TAIL}", {400}),
    "space behind a chunk size": (f"{POST}{H}Transfer-Encoding: chunked\r\n\r\n2 \r\n{{}}\r\n0\r\n\r\n{TAIL}", {400}),
    "bare LF behind a chunk size": (f"{POST}{H}Transfer-Encoding: chunked\r\n\r\n2\n{{}}\r\n0\r\n\r\n{TAIL}", {400}),
    "chunk longer than its size": (f"{POST}{H}Transfer-Encoding: chunked\r\n\r\n1\r\n{{}}\r\n0\r\n\r\n{TAIL}", {400}),
    "bare LF behind a chunk": (f"{POST}{H}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\n0\r\n\r\n{TAIL}", {400}),
    "a bad trailer": (f"{POST}{H}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\nbad trailer\r\n\r\n{TAIL}", {400}),
    "binary noise": ("\x80\x81\x82\r\n\r\n", {400}),
    "an SSH client": ("SSH-2.0-OpenSSH_9.2\r\n\r\n", {400}),
    "a huge header field": (f"GET /healthz HTTP/1.1\r\n{H}X-A: {'a' * (1 << 20)}\r\n\r\n", {431}),
    "ten thousand header fields": (
        "GET /healthz HTTP/1.1\r\n" + H + "".join(f"X-{i}: 1\r\n" for i in range(10000)) + "\r\n", {431}),
    "a huge target": (f"GET /{'a' * (1 << 20)} HTTP/1.1\r\n{H}\r\n", {414, 431}),
    "a huge method": ("A" * (1 << 20) + f" / HTTP/1.1\r\n{H}\r\n", {400, 414, 431, 501}),
    "a huge chunk extension": (
        f"{POST}{H}Transfer-Encoding: chunked\r\n\r\n2;{'x' * (1 << 20)}\r\n{{}}\r\n0\r\n\r\n", {400, 413, 431}),
    "a huge trailer": (
        f"{POST}{H}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\nX: {'x' * (1 << 20)}\r\n\r\n", {400, 413, 431}),
    "a body over the limit": (f"{POST}{H}Content-Length: 1000000000000\r\n\r\n", {413}),
}
# Without a token these are refused by the framing before, or by authentication after, the body is read.
NEEDS_TOKEN = {n for n, (b, _) in BAD.items() if b.startswith(POST)}


@pytest.mark.parametrize("name", BAD)
def test_bad_request_is_refused(holtd, name):
    data, statuses = BAD[name]
    if name in NEEDS_TOKEN:
        data = data.replace(H, f"{H}Authorization: Bearer {holtd.token}\r\nContent-Type: application/json\r\n", 1)
    with Raw(holtd.port) as c:
        c.send(data.encode("latin-1"))
        replies = c.all_replies()
        assert len(replies) == 1, replies
        assert replies[0].status in statuses, replies
        assert replies[0].error()
        assert c.closed(), "the connection must not be used again"
    holtd.assert_alive()


def test_bad_requests_made_no_token(holtd):
    assert len(holtd.ok("GET", "/holt/v1/tokens")["tokens"]) == 1


@pytest.mark.parametrize("step", [1, 3, 64])
def test_a_request_in_small_pieces(holtd, step):
    data = get(host="127.0.0.1").encode()
    with Raw(holtd.port) as c:
        for i in range(0, len(data), step):
            c.send(data[i:i + step])
            if step == 1:
                time.sleep(0.001)
        assert c.read().status == 200


def test_keep_alive_and_pipelining_answer_in_order(holtd):
    paths = ["/healthz", "/no-such-path", "/readyz"] * 10
    with Raw(holtd.port) as c:
        c.send("".join(get(p, "127.0.0.1") for p in paths))
        got = [c.read().status for _ in paths]
    assert got == [200, 404, 200] * 10


def test_more_pipelined_requests_than_may_be_outstanding(holtd):
    with Raw(holtd.port) as c:
        c.send(get(host="127.0.0.1") * 2000)
        assert [c.read().status for _ in range(2000)] == [200] * 2000


def test_pipelined_reply_is_complete_after_half_close(holtd):
    with Raw(holtd.port) as c:
        c.send(get(host="127.0.0.1") * 3)
        c.half_close()
        assert [c.read().status for _ in range(3)] == [200] * 3
        assert c.closed()


def test_connection_close_is_obeyed(holtd):
    with Raw(holtd.port) as c:
        c.send(get(host="127.0.0.1", more="Connection: close\r\n"))
        r = c.read()
        assert r.status == 200 and r.header("connection") == "close"
        assert c.closed()


def test_http_1_0_closes(holtd):
    with Raw(holtd.port) as c:
        c.send(get(host="127.0.0.1", version="HTTP/1.0"))
        assert c.read().status == 200
        assert c.closed()


def test_chunked_request_body(holtd):
    body = b'{"name": "chunked", "role": "observer"}'
    chunks = b"".join(b"%x;ext=1\r\n%c\r\n" % (1, b) for b in body) + b"0\r\nX-Trailer: 1\r\n\r\n"
    with Raw(holtd.port) as c:
        c.send(f"{POST}{H}Authorization: Bearer {holtd.token}\r\nContent-Type: application/json\r\n"
               "Transfer-Encoding: chunked\r\n\r\n")
        c.send(chunks)
        assert c.read().status == 201
        c.send(get(host="127.0.0.1"))
        assert c.read().status == 200, "the connection goes on behind the body"


def test_expect_100_continue(holtd):
    body = b'{"name": "expect", "role": "observer"}'
    head = (f"{POST}{H}Authorization: Bearer {holtd.token}\r\nContent-Type: application/json\r\n"
            f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n")
    with Raw(holtd.port) as c:
        c.send(head)
        assert c.read().status == 100
        c.send(body)
        assert c.read().status == 201


def test_expect_100_is_refused_without_reading_the_body(holtd):
    with Raw(holtd.port) as c:
        c.send(f"{POST}{H}Expect: 100-continue\r\nContent-Length: 1000000\r\n\r\n")
        assert c.read().status == 401
        assert c.closed()


def test_unknown_expectation(holtd):
    with Raw(holtd.port) as c:
        c.send(f"GET /healthz HTTP/1.1\r\n{H}Expect: miracles\r\n\r\n")
        assert c.read().status == 417


def test_head_has_the_headers_of_get_and_no_body(holtd):
    with Raw(holtd.port) as c:
        c.send(f"HEAD /healthz HTTP/1.1\r\n{H}\r\n")
        head = c.read("HEAD")
        c.send(get(host="127.0.0.1"))
        full = c.read()
        assert head.status == full.status == 200
        assert int(head.header("content-length")) == len(full.body) > 0


def test_options_names_the_methods(holtd):
    status, _, headers = holtd.request("OPTIONS", "/holt/v1/tokens")
    assert status in (200, 204)
    allow = {m.strip() for m in headers["Allow"].split(",")}
    assert {"GET", "POST", "OPTIONS"} <= allow and "DELETE" not in allow


def test_unknown_path_and_method(holtd):
    status, reply, _ = holtd.request("GET", "/holt/v1/nothing-here")
    assert status == 404 and reply["error"]["code"] == "not_found"
    status, reply, headers = holtd.request("PUT", "/holt/v1/tokens", {})
    assert status == 405 and reply["error"]["code"]
    assert {"GET", "POST"} <= {m.strip() for m in headers["Allow"].split(",")}


def test_foreign_host_is_refused(holtd):
    """DNS rebinding: a page of evil.example that resolves to 127.0.0.1 must get nothing."""
    with Raw(holtd.port) as c:
        c.send(get(host="evil.example"))
        r = c.read()
        assert r.status in (400, 403, 421) and r.error()


def test_cors_is_an_allowlist(new_holtd):
    d = new_holtd(config="cors_origins: [\"https://good.example\"]\n")
    ask = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    status, _, h = d.request("OPTIONS", "/holt/v1/info", token=None, headers={"Origin": "https://good.example", **ask})
    assert status in (200, 204)
    assert h["Access-Control-Allow-Origin"] == "https://good.example"
    assert "authorization" in h["Access-Control-Allow-Headers"].lower()
    assert "origin" in h["Vary"].lower()
    status, _, h = d.request("GET", "/holt/v1/info", headers={"Origin": "https://good.example"})
    assert status == 200 and h["Access-Control-Allow-Origin"] == "https://good.example"
    assert {"grpc-status", "grpc-message"} <= set(h["Access-Control-Expose-Headers"].split(", "))
    for origin in ("https://evil.example", "https://good.example.evil.example", "null"):
        # A page cannot read what it gets without the header; what changes something is refused altogether.
        status, _, h = d.request("GET", "/holt/v1/info", headers={"Origin": origin})
        assert status in (200, 403) and h["Access-Control-Allow-Origin"] is None, origin
        status, _, h = d.request("POST", "/holt/v1/tokens", {"name": "x"}, headers={"Origin": origin})
        assert status == 403 and h["Access-Control-Allow-Origin"] is None, origin


LIMITS = """
header_ms: 1s
idle_ms: 1s
body_idle_ms: 1s
connections_max: 200
connections_per_peer: 20
"""


def test_slow_loris_is_cut_off(new_holtd):
    d = new_holtd(config=LIMITS)
    begin = time.monotonic()
    with Raw(d.port) as c:
        c.send(f"GET /healthz HTTP/1.1\r\n{H}")
        for i in range(300):
            c.send(f"X-{i}: 1\r\n")  # progress does not help: the whole head has one deadline
            try:
                c.sock.settimeout(0.1)
                c._more()
                break
            except TimeoutError:
                continue
            except Closed:
                break
        took = time.monotonic() - begin
        if c.buffer:
            c.sock.settimeout(30)
            assert c.read().status == 408
        assert 0.5 < took < 20
    d.assert_alive()


def test_a_connection_that_says_nothing_is_closed(new_holtd):
    d = new_holtd(config=LIMITS)
    with Raw(d.port) as silent, Raw(d.port) as used:
        used.send(get(host="127.0.0.1"))
        assert used.read().status == 200
        assert silent.closed(30) and used.closed(30)


def test_a_body_that_stops_is_cut_off(new_holtd):
    d = new_holtd(config=LIMITS)
    with Raw(d.port) as c:
        c.send(f"{POST}{H}Authorization: Bearer {d.token}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{")
        assert c.read().status == 408
        assert c.closed()
    d.assert_alive()


def test_connections_per_peer_are_bounded(new_holtd):
    d = new_holtd(config=LIMITS.replace("1s", "60s"))
    held = []
    try:
        refused = 0
        for _ in range(40):
            c = Raw(d.port)
            held.append(c)
            c.send(get(host="127.0.0.1"))
            try:
                refused += c.read().status in (429, 503)
            except (Closed, TimeoutError, ConnectionResetError):
                refused += 1
        assert refused == 20
    finally:
        for c in held:
            c.sock.close()
    wait_for(lambda: _answers(d))


def _answers(d):
    try:
        return d.request("GET", "/healthz", token=None)[0] == 200
    except OSError:
        return False


def test_client_that_leaves_in_the_middle_costs_nothing(holtd):
    before = holtd.fd_count()
    for cut in (1, 20, 60):
        for _ in range(50):
            with Raw(holtd.port) as c:
                c.send((get(host="127.0.0.1") * 3)[:cut])
                c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # RST
    wait_for(lambda: holtd.fd_count() <= before + 2)
    holtd.assert_alive()


def test_an_unanswered_request_outlives_the_idle_timeout(new_holtd):
    """The server owes the reply (here: of a quiet event stream), so no timeout of the client's runs."""
    d = new_holtd(config=LIMITS)
    head = d.ok("GET", "/holt/v1/info")["event_seq"]
    with Raw(d.port) as c:
        c.send(get(f"/holt/v1/events?follow=true&since={head}", "127.0.0.1", f"Authorization: Bearer {d.token}\r\n"))
        assert c.head()[0] == 200
        time.sleep(3.5)
        d.new_token("after-the-idle-time")
        wait_for(lambda: _sees(c, b"after-the-idle-time"))


def _sees(c, word):
    try:
        c.sock.settimeout(0.2)
        c._more()
    except TimeoutError:
        pass
    return word in c.buffer


def test_a_disconnect_is_seen_at_once(holtd):
    def connections():
        return holtd.ok("GET", "/holt/v1/info")["connections"]

    before = connections()
    streams = []
    for _ in range(10):
        c = Raw(holtd.port)
        c.send(get("/holt/v1/events?follow=true", "127.0.0.1", f"Authorization: Bearer {holtd.token}\r\n"))
        assert c.head()[0] == 200
        streams.append(c)
    assert connections() >= before + 10
    for c in streams:
        c.sock.close()
    wait_for(lambda: connections() <= before + 1)  # idle_ms is longer


def test_a_peer_that_vanished_is_asked_for(holtd):
    """One that is switched off says nothing; proc(5): timer 2 of a socket that owes nothing is the one for such peers."""
    with socket.create_connection(("127.0.0.1", holtd.port)) as c:
        ends = [f"0100007F:{port:04X}" for port in (holtd.port, c.getsockname()[1])]

        def timer():
            with open("/proc/net/tcp", encoding="ascii") as f:
                rows = [line.split() for line in f]
            return next((row[5] for row in rows if row[1:3] == ends), None)

        kind, ticks = wait_for(timer).split(":")
        assert kind == "02" and 0 < int(ticks, 16) <= 60 * os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_ten_thousand_idle_connections(new_holtd):
    """Bounded by the fds of both ends: each needs one per connection."""
    import resource
    want = 10000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < want + 500:
        pytest.skip(f"RLIMIT_NOFILE is {hard}, {want + 500} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    d = new_holtd(config="connections_max: 12000\nconnections_per_peer: 12000\nidle_ms: 10m\n")
    idle = d.rss_kib()
    held = []
    try:
        for i in range(want):
            s = socket.socket()
            s.connect(("127.0.0.1", d.port))
            held.append(s)
            s.sendall(get(host="127.0.0.1").encode())
            if i % 100 == 99:
                for x in held[-100:]:
                    assert x.recv(4096).startswith(b"HTTP/1.1 200")
        d.assert_alive()
        grown = d.rss_kib() - idle
        print(f"{want} idle connections: {grown} KiB more, {grown * 1024 / want:.0f} bytes each")
        assert grown * 1024 / want < 4096
    finally:
        for s in held:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    wait_for(lambda: d.fd_count() < 100, 60)


def test_unix_socket(new_holtd, tmp_path):
    path = f"{tmp_path}/s.sock"
    d = new_holtd(listen=[f"unix:{path}"])
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    with Raw(0, sock=s) as c:
        c.send(get(host="localhost"))
        assert c.read().status == 200
    assert os.stat(path).st_mode & 0o777 in (0o600, 0o660, 0o700)
    assert d.stop() == 0
    assert not os.path.exists(path), "the socket file goes with the daemon"
    # A file left behind by a daemon that was killed does not stop the next one.
    d = Holtd(tmp_path / "again", listen=[f"unix:{path}"])
    d.kill()
    d = Holtd(tmp_path / "again", listen=[f"unix:{path}"])
    assert d.stop() == 0
