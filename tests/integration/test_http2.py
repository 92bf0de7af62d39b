"""HTTP/2: frames by hand that a server must survive, and h2load."""
import re
import shutil
import struct
import subprocess
import time

import pytest

from daemon import wait_for
from h2raw import (
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, H2, HEADERS, PING, PREFACE, PUSH_PROMISE, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, error_of, frame, hpack, request, status_of)

GET = END_STREAM | END_HEADERS


def test_a_plain_request(holtd):
    with H2(holtd.port) as c:
        c.send(frame(HEADERS, GET, 1, request()))
        got = c.until(HEADERS, 1, wait=0.5)
        head = next(f for f in got if f[0] == HEADERS)
        assert status_of(head[3]) == 200
        got += c.until(DATA, 1) if not any(f[0] == DATA for f in got) else []
        assert b'"alive"' in b"".join(f[3] for f in got if f[0] == DATA)


def test_a_hundred_streams_at_once(holtd):
    with H2(holtd.port) as c:
        c.send(b"".join(frame(HEADERS, GET, 1 + 2 * i, request()) for i in range(100)))

        def served(got):
            return len([f for f in got if f[0] == HEADERS and status_of(f[3]) == 200])

        assert served(c.frames(0.3, lambda got: served(got) == 100)) == 100


def test_the_preface_in_single_bytes(holtd):
    with H2(holtd.port, hello=False) as c:
        for b in PREFACE + frame(SETTINGS) + frame(HEADERS, GET, 1, request()):
            c.send(bytes([b]))
        assert c.until(HEADERS, 1, wait=1.0)


def test_an_early_reply_to_an_upload_is_no_error(holtd):
    """RFC 9113 8.1: after a complete reply the server may ask to stop sending, by RST_STREAM with NO_ERROR only."""
    with H2(holtd.port) as c:
        c.send(frame(HEADERS, END_HEADERS, 1, request("/no/such/path", "POST")))
        c.send(frame(DATA, 0, 1, b"x" * 10000) * 3)
        got = c.frames(0.5, lambda got: any(f[0] in (HEADERS, DATA) and f[1] & END_STREAM for f in got))
        away, resets = error_of(got)
        assert [status_of(f[3]) for f in got if f[0] == HEADERS] == [404]
        assert any(f[0] in (HEADERS, DATA) and f[1] & END_STREAM for f in got)
        assert away in (None, 0) and resets.get(1, 0) == 0
        c.send(frame(HEADERS, GET, 3, request()))
        assert c.until(HEADERS, 3, wait=0.5), "the connection goes on"


BAD = {  # each ends the connection or the stream, or is answered with 4xx; none may be served
    "a wrong preface": (PREFACE[:-4] + b"XX\r\n" + frame(HEADERS, GET, 1, request())),
    "no SETTINGS first": PREFACE + frame(HEADERS, GET, 1, request()),
    "an authority with a name behind an address": frame(HEADERS, GET, 1, request(authority="[::1]evil.example")),
    "an authority that differs from Host": frame(HEADERS, GET, 1, request(more=[("host", "evil.example")])),
    "two Origin fields": frame(HEADERS, GET, 1, request(more=[("origin", "http://127.0.0.1")] * 2)),
    "two Authorization fields": frame(HEADERS, GET, 1, request(more=[("authorization", "Bearer a")] * 2)),
    "HEADERS on stream 0": frame(HEADERS, GET, 0, request()),
    "an even stream": frame(HEADERS, GET, 2, request()),
    "a stream number that goes back": frame(HEADERS, GET, 5, request("/x")) + frame(HEADERS, GET, 3, request()),
    "DATA on an idle stream": frame(DATA, 0, 1, b"x"),
    "DATA on stream 0": frame(DATA, 0, 0, b"x"),
    "WINDOW_UPDATE of nothing": frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0)),
    "a window past its limit": frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7FFFFFFF)) * 2,
    "SETTINGS of a wrong length": frame(SETTINGS, 0, 0, b"12345"),
    "SETTINGS on a stream": frame(SETTINGS, 0, 1),
    "ACK with a payload": frame(SETTINGS, ACK, 0, b"123456"),
    "a wrong initial window": frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0xFFFFFFFF)),
    "a wrong frame size": frame(SETTINGS, 0, 0, struct.pack(">HI", 5, 1)),
    "PING of a wrong length": frame(PING, 0, 0, b"123"),
    "RST_STREAM of an idle stream": frame(RST_STREAM, 0, 1, b"\0\0\0\x08"),
    "PUSH_PROMISE from a client": frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\x02" + request()),
    "a frame over the limit": frame(DATA, 0, 1, b"x" * 20000),
    "CONTINUATION without HEADERS": frame(CONTINUATION, END_HEADERS, 1, request()),
    "another frame between HEADERS and CONTINUATION":
        frame(HEADERS, END_STREAM, 1, request()[:5]) + frame(PING, 0, 0, b"12345678"),
    "padding longer than the frame": frame(HEADERS, GET | 0x8, 1, b"\xff" + request()),
    "an HPACK index out of the table": frame(HEADERS, GET, 1, b"\xff\xff\x7f"),
    "HPACK index 0": frame(HEADERS, GET, 1, b"\x80"),
    "an endless HPACK integer": frame(HEADERS, GET, 1, b"\xff" + b"\xff" * 20),
    "an HPACK string past the block": frame(HEADERS, GET, 1, b"\0\x7f\xff\xff\x7fabc"),
    "an upper-case field": frame(HEADERS, GET, 1, request(more=[("X-A", "b")])),
    "connection: keep-alive": frame(HEADERS, GET, 1, request(more=[("connection", "keep-alive")])),
    "transfer-encoding": frame(HEADERS, GET, 1, request(more=[("transfer-encoding", "chunked")])),
    "CR LF in a value": frame(HEADERS, GET, 1, request(more=[("x-a", "b\r\nc: d")])),
    "NUL in a value": frame(HEADERS, GET, 1, request(more=[("x-a", "b\0c")])),
    "no :path": frame(HEADERS, GET, 1, hpack([(":method", "GET"), (":scheme", "http"), (":authority", "127.0.0.1")])),
    "no :method": frame(HEADERS, GET, 1, hpack([(":path", "/healthz"), (":scheme", "http"), (":authority", "127.0.0.1")])),
    ":path twice": frame(HEADERS, GET, 1, request(more=[(":path", "/x")])),
    "a pseudo field after others": frame(HEADERS, GET, 1, hpack([("x-a", "b")]) + request()),
    "an unknown pseudo field": frame(HEADERS, GET, 1, request(more=[(":x", "y")])),
    "an empty :path": frame(HEADERS, GET, 1, request(path="")),
    "a :path with a space": frame(HEADERS, GET, 1, request(path="/heal thz")),
    "host differs from :authority": frame(HEADERS, GET, 1, request(more=[("host", "evil.example")])),
    "a foreign :authority": frame(HEADERS, GET, 1, request(authority="evil.example")),
    "a body longer than content-length":
        frame(HEADERS, END_HEADERS, 1, request("/holt/v1/tokens", "POST", more=[("content-length", "1")]))
        + frame(DATA, END_STREAM, 1, b"xxxx"),
    "two content-lengths":
        frame(HEADERS, GET, 1, request(more=[("content-length", "0"), ("content-length", "1")])),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_frames(holtd, name):
    raw = BAD[name]
    with H2(holtd.port, hello=not raw.startswith(b"PRI")) as c:
        c.send(raw)
        got = c.frames(0.4, lambda got: raw.startswith(b"PRI") or any(f[0] in (GOAWAY, RST_STREAM, HEADERS) for f in got))
        away, resets = error_of(got)
        served = [status_of(f[3]) for f in got if f[0] == HEADERS]
        assert 200 not in served, (name, got)
        assert away or resets or c.ended or any(s == 0 or s >= 400 for s in served) or raw.startswith(b"PRI"), (name, got)
    holtd.assert_alive()


def test_a_huge_header_list_is_refused(holtd):
    block = request(more=[(f"x-{i}", "a" * 4000) for i in range(40)])
    parts = [block[i:i + 16000] for i in range(0, len(block), 16000)]
    with H2(holtd.port) as c:
        c.send(frame(HEADERS, END_STREAM, 1, parts[0]))
        for i, p in enumerate(parts[1:]):
            c.send(frame(CONTINUATION, END_HEADERS if i == len(parts) - 2 else 0, 1, p))
        got = c.frames(0.5, lambda got: any(f[0] in (GOAWAY, RST_STREAM, HEADERS) for f in got))
        away, resets = error_of(got)
        assert away is not None or resets or c.ended or any(f[0] == HEADERS and status_of(f[3]) != 200 for f in got)
    holtd.assert_alive()


PATIENCE = 3.0  # seconds for others while one misbehaves; what holds the loop holds it for longer, a busy machine does not


def latency(holtd):
    begin = time.monotonic()
    assert holtd.request("GET", "/healthz", token=None)[0] == 200
    return time.monotonic() - begin


def flood(holtd, make, count, batch=200):
    """Sends until the server has had enough; (frames sent, how the server ended it, worst latency of others)."""
    before = holtd.rss_kib()
    worst, sent = 0.0, 0
    with H2(holtd.port) as c:
        c.frames(0.2)
        c.sock.settimeout(3)
        while sent < count and not c.ended:
            if not c.send(b"".join(make(sent + i) for i in range(batch))):
                break
            sent += batch
            if sent % (batch * 25) == 0:
                worst = max(worst, latency(holtd))
        got = c.frames(1.0)
        away, _ = error_of(got)
        ended = c.ended or c.stalled or away is not None
    worst = max(worst, latency(holtd))
    wait_for(lambda: holtd.rss_kib() < before + 32 * 1024)
    holtd.assert_alive()
    return sent, ended, worst


def test_rapid_reset(holtd):
    """CVE-2023-44487: streams opened and reset at once must not buy work without bound."""
    def make(i):
        stream = 1 + 2 * i
        return frame(HEADERS, GET, stream, request("/holt/v1/info")) + frame(RST_STREAM, 0, stream, b"\0\0\0\x08")

    sent, ended, worst = flood(holtd, make, 100000)
    assert ended, f"the connection was let do {sent} resets"
    assert worst < PATIENCE


def test_continuation_flood(holtd):
    """CVE-2024-28182: a header block without end."""
    def make(i):
        if i == 0:
            return frame(HEADERS, END_STREAM, 1, request()[:20])
        return frame(CONTINUATION, 0, 1, b"\0\x03x-a\x03abc" * 20)

    sent, ended, worst = flood(holtd, make, 100000)
    assert ended, f"the connection was let send {sent} frames"
    assert worst < PATIENCE


def test_empty_continuation_flood(holtd):
    def make(i):
        return frame(HEADERS, END_STREAM, 1, request()[:20]) if i == 0 else frame(CONTINUATION, 0, 1, b"")

    assert flood(holtd, make, 100000)[1]


def test_ping_flood_without_reading(holtd):
    """Answers that nobody reads must not pile up."""
    _, _, worst = flood(holtd, lambda i: frame(PING, 0, 0, b"12345678"), 200000, 1000)
    assert worst < PATIENCE


def test_settings_flood(holtd):
    _, _, worst = flood(holtd, lambda i: frame(SETTINGS), 100000, 1000)
    assert worst < PATIENCE


def test_a_reader_that_stops_slows_only_itself(holtd):
    """A window of nothing: replies wait in the server, bounded by its streams; others are served."""
    with H2(holtd.port, settings=struct.pack(">HI", 4, 0)) as c:
        c.frames(0.2)
        c.send(b"".join(frame(HEADERS, GET, 1 + 2 * i, request("/holt/v1/openapi.json")) for i in range(50)))
        time.sleep(0.3)
        assert latency(holtd) < PATIENCE
        assert not any(f[0] == DATA and f[3] for f in c.frames(0.3))
        for i in range(50):
            c.send(frame(WINDOW_UPDATE, 0, 1 + 2 * i, struct.pack(">I", 100)))

        def bytes_in(got):
            return sum(len(f[3]) for f in got if f[0] == DATA)

        assert bytes_in(c.frames(0.5, lambda got: bytes_in(got) >= 5000)) == 5000


def test_goaway_on_shutdown(new_holtd):
    d = new_holtd()
    with H2(d.port) as c:
        c.send(frame(HEADERS, GET, 1, request()))
        assert c.until(HEADERS, 1, wait=0.5)
        d.process.terminate()
        got = c.frames(5.0, lambda got: any(f[0] == GOAWAY for f in got))
        assert any(f[0] == GOAWAY and f[3][4:8] == b"\0\0\0\0" for f in got)
    assert d.process.wait(60) == 0


@pytest.mark.parametrize("flags", [
    ["-c16", "-m32"], ["-c1", "-m100"], ["-c16", "--h1"], ["-c4", "-m16", "-w", "8", "-W", "10"]], ids=" ".join)
def test_h2load(holtd, flags):
    if not shutil.which("h2load"):
        pytest.skip("h2load is not installed: make deps")
    r = subprocess.run(
        ["h2load", "-n", "10000", *flags, "-H", f"authorization: Bearer {holtd.token}",
         f"{holtd.url}/holt/v1/tokens/self"], capture_output=True, text=True, timeout=80)
    m = re.search(r"requests: (\d+) total, .* (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", r.stdout)
    assert m, r.stdout + r.stderr
    assert m.groups() == ("10000", "10000", "0", "0", "0"), r.stdout
