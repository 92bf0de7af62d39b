"""WebSocket: Python websockets and node ws against the echo service, frames by hand, and the event view of holtd."""
import asyncio
import base64
import hashlib
import json
import os
import struct
import time

import pytest
from websockets.asyncio.client import connect

from daemon import wait_for
from raw import Closed, Raw

PATH = "/ws"
TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA


def frame(opcode, payload=b"", fin=True, rsv=0, mask=b"\1\2\3\4", length=None):
    """length: what the header claims, if not the truth."""
    n = len(payload) if length is None else length
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    flag = 0x80 if mask else 0
    if n < 126:
        head += bytes([flag | n])
    elif n < 65536:
        head += bytes([flag | 126]) + struct.pack(">H", n)
    else:
        head += bytes([flag | 127]) + struct.pack(">Q", n)
    if not mask:
        return head + payload
    return head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload))


class Ws(Raw):
    """A client that sends what it is told."""

    def __init__(self, port, path=PATH, more="", key=None, version="13", host="127.0.0.1"):
        super().__init__(port)
        self.key = key or base64.b64encode(os.urandom(16)).decode()
        self.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  f"Sec-WebSocket-Key: {self.key}\r\nSec-WebSocket-Version: {version}\r\n{more}\r\n")
        self.reply = self.read()

    def frame(self):
        """(opcode, fin, payload)"""
        a, b = self.take(2)
        assert not b & 0x80, "a server does not mask"
        n = b & 0x7F
        if n == 126:
            n = struct.unpack(">H", self.take(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", self.take(8))[0]
        return a & 0xF, bool(a & 0x80), self.take(n)

    def close_code(self):
        """The code of the close frame that must come next; 1006 when the server just goes."""
        try:
            while True:
                op, _, payload = self.frame()
                if op == CLOSE:
                    return struct.unpack(">H", payload[:2])[0] if payload else 1005
        except Closed:
            return 1006


def test_handshake(echo):
    with Ws(echo.port) as c:
        assert c.reply.status == 101
        want = base64.b64encode(hashlib.sha1((c.key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        assert c.reply.header("sec-websocket-accept") == want
        c.send(frame(TEXT, b"hello"))
        assert c.frame() == (TEXT, True, b"hello")


@pytest.mark.parametrize("more", [{"key": "short"}, {"key": "not base64 at all!!!!!!!"}, {"version": "8"}])
def test_bad_handshake(echo, more):
    with Ws(echo.port, **more) as c:
        assert c.reply.status in (400, 426)
        if more.get("version"):
            assert c.reply.header("sec-websocket-version") == "13"


def test_frames_that_arrive_with_the_handshake(echo):
    """A client may send right behind its request, and in single bytes."""
    with Raw(echo.port) as c:
        key = base64.b64encode(b"0" * 16).decode()
        c.send(f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
               f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode() + frame(TEXT, b"early"))
        assert c.read().status == 101
        assert c.take(7) == b"\x81\x05early"
        for b in frame(BINARY, b"slow"):
            c.send(bytes([b]))
            time.sleep(0.001)
        assert c.take(6) == b"\x82\x04slow"


def test_ping_is_answered_and_pong_ignored(echo):
    with Ws(echo.port) as c:
        c.send(frame(PONG, b"unasked") + frame(PING, b"abc"))
        assert c.frame() == (PONG, True, b"abc")


def test_fragments_are_joined_and_controls_come_between(echo):
    with Ws(echo.port) as c:
        c.send(frame(TEXT, b"one ", fin=False) + frame(PING, b"p") + frame(0, b"two ", fin=False) + frame(0, b"three"))
        assert c.frame() == (PONG, True, b"p")
        got = b""
        while True:
            op, fin, part = c.frame()
            got += part
            if fin:
                break
        assert got == b"one two three"


def test_utf8_split_between_fragments(echo):
    raw = "žluťoučký €".encode()
    with Ws(echo.port) as c:
        for i, b in enumerate(raw):
            c.send(frame(TEXT if i == 0 else 0, bytes([b]), fin=i == len(raw) - 1))
        assert c.frame()[2] == raw


BAD = {  # name: (bytes, close codes that are right)
    "unmasked": (frame(TEXT, b"x", mask=None), {1002}),
    "RSV1": (frame(TEXT, b"x", rsv=4), {1002}),
    "RSV2": (frame(TEXT, b"x", rsv=2), {1002}),
    "RSV3": (frame(TEXT, b"x", rsv=1), {1002}),
    "opcode 3": (frame(3, b"x"), {1002}),
    "opcode 11": (frame(11, b"x"), {1002}),
    "continuation of nothing": (frame(0, b"x"), {1002}),
    "a new message inside another": (frame(TEXT, b"x", fin=False) + frame(TEXT, b"y"), {1002}),
    "fragmented ping": (frame(PING, b"x", fin=False), {1002}),
    "ping of 126 bytes": (frame(PING, b"x" * 126), {1002}),
    "not the shortest length": (b"\x81\xfe\x00\x01\1\2\3\4" + b"y", {1002}),
    "a length of 2^63": (b"\x82\xff\x80\0\0\0\0\0\0\0\1\2\3\4", {1002, 1009}),
    "over the message limit": (frame(BINARY, b"x", length=1 << 40), {1009}),
    "text that is not UTF-8": (frame(TEXT, b"\xc3\x28"), {1007}),
    "an overlong UTF-8 form": (frame(TEXT, b"\xc0\xaf"), {1007}),
    "a UTF-16 surrogate": (frame(TEXT, b"\xed\xa0\x80"), {1007}),
    "UTF-8 that stops short": (frame(TEXT, b"\xe2\x82"), {1007}),
    "close with one byte": (frame(CLOSE, b"\x03"), {1002}),
    "close code 999": (frame(CLOSE, struct.pack(">H", 999)), {1002}),
    "close code 1005": (frame(CLOSE, struct.pack(">H", 1005)), {1002}),
    "close code 5000": (frame(CLOSE, struct.pack(">H", 5000)), {1002}),
    "a close reason that is not UTF-8": (frame(CLOSE, struct.pack(">H", 1000) + b"\xff\xfe"), {1002, 1007}),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_frame(echo, name):
    raw, codes = BAD[name]
    with Ws(echo.port) as c:
        assert c.reply.status == 101
        c.send(raw)
        assert c.close_code() in codes
        c.half_close()
        assert c.closed()
    assert echo.alive()


def test_the_connection_ends_although_the_client_does_not(echo):
    with Ws(echo.port) as c:
        c.send(frame(TEXT, b"x", rsv=4))
        assert c.close_code() == 1002
        assert c.closed()


@pytest.mark.parametrize("code", [1000, 1001, 3000, 4999])
def test_close_code_is_echoed(echo, code):
    with Ws(echo.port) as c:
        c.send(frame(CLOSE, struct.pack(">H", code) + b"bye"))
        assert c.close_code() == code
        assert c.closed()


def test_a_fragmented_message_over_the_limit(echo):
    with Ws(echo.port) as c:
        part = b"x" * 65536
        c.send(frame(BINARY, part, fin=False))
        for _ in range(2000):
            if c.sock.fileno() < 0:
                break
            before = len(c.buffer)
            c.send(frame(0, part, fin=False))
            c.sock.settimeout(0.001)
            try:
                c._more()
            except TimeoutError:
                pass
            except Closed:
                break
            if len(c.buffer) > before:
                break
        c.sock.settimeout(30)
        assert c.close_code() in (1009, 1006)
    assert echo.rss_kib() < 200 * 1024


def test_a_reader_that_stops_is_slowed_not_buffered(echo):
    """64 MiB of echoes to somebody who reads nothing."""
    before = echo.rss_kib()
    with Ws(echo.port) as c:
        c.sock.settimeout(1)
        sent = 0
        try:
            while sent < 64 << 20:
                c.sock.sendall(frame(BINARY, b"x" * 32768, mask=b"\0\0\0\0"))
                sent += 32768
        except TimeoutError:
            pass
        assert sent < 64 << 20, "the server swallowed everything"
        assert echo.rss_kib() - before < 16 * 1024


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 60))


@pytest.mark.parametrize("offer, chosen", [(["echo.v1"], "echo.v1"), (["echo.v1", "echo.v2"], "echo.v2"), (["other"], None)])
def test_subprotocol_is_the_server_s_choice(echo, offer, chosen):
    async def talk():
        async with connect(f"ws://127.0.0.1:{echo.port}{PATH}", subprotocols=offer, proxy=None) as ws:
            assert ws.subprotocol == chosen

    run(talk())


def test_server_closes(echo):
    with Ws(echo.port) as c:
        c.send(frame(TEXT, b"close-please"))
        assert c.close_code() == 1000
        c.send(frame(CLOSE, struct.pack(">H", 1000)))
        assert c.closed()


def test_python_websockets(echo):
    async def talk():
        async with connect(f"ws://127.0.0.1:{echo.port}{PATH}", max_size=None, compression=None, proxy=None) as ws:
            for message in ("", "hello", "ž€😀" * 1000, b"", b"\0\xff" * 5000, "x" * 300000):
                await ws.send(message)
                assert await ws.recv() == message
            await ws.send(["frag", "ment", "ed"])
            assert await ws.recv() == "fragmented"
            await (await ws.ping())
            await ws.close(4001, "done")
        assert ws.close_code == 4001

    run(talk())


def test_python_websockets_with_its_defaults(echo):
    """It offers permessage-deflate, which the server is free to decline."""
    async def talk():
        async with connect(f"ws://127.0.0.1:{echo.port}{PATH}", proxy=None) as ws:
            await ws.send("plain")
            assert await ws.recv() == "plain"

    run(talk())


def test_node_ws(echo, node):
    report = json.loads(node("ws_echo.js", f"ws://127.0.0.1:{echo.port}{PATH}"))
    assert report["ok"] is True, report


def auth(holtd):
    return f"Authorization: Bearer {holtd.token}\r\n"


def test_event_view_needs_a_token(holtd):
    with Ws(holtd.port, "/holt/v1/events") as c:
        assert c.reply.status == 401 and c.reply.error()


def test_event_view_refuses_a_foreign_origin(holtd):
    """Cross-site WebSocket hijacking: browsers send cookies along, but also Origin."""
    with Ws(holtd.port, "/holt/v1/events", auth(holtd) + "Origin: https://evil.example\r\n") as c:
        assert c.reply.status == 403 and c.reply.error()


def test_event_view_by_python(holtd):
    async def follow():
        head = holtd.ok("GET", "/holt/v1/info")["event_seq"]
        url = f"ws://127.0.0.1:{holtd.port}/holt/v1/events?since={head}&type=token.created"
        async with connect(url, additional_headers={"Authorization": f"Bearer {holtd.token}"}, proxy=None) as ws:
            made = await asyncio.to_thread(holtd.new_token, "by-websocket")
            event = json.loads(await asyncio.wait_for(ws.recv(), 60))
            assert event["type"] == "token.created" and event["object"] == f"token/{made['id']}"

    run(follow())


def test_event_view_survives_bad_frames(holtd):
    for raw, codes in BAD.values():
        with Ws(holtd.port, "/holt/v1/events", auth(holtd)) as c:
            assert c.reply.status == 101
            c.send(raw)
            assert c.close_code() in codes | {1003, 1008, 1000}
    holtd.assert_alive()


def test_event_view_is_closed_at_shutdown(new_holtd):
    d = new_holtd()
    with Ws(d.port, "/holt/v1/events", auth(d)) as c:
        assert c.reply.status == 101
        d.process.terminate()
        assert c.close_code() in (1001, 1006, 1012)
    assert d.process.wait(60) == 0


def test_clients_that_vanish_leave_nothing(holtd):
    before = holtd.fd_count()
    clients = [Ws(holtd.port, "/holt/v1/events", auth(holtd)) for _ in range(30)]
    assert all(c.reply.status == 101 for c in clients)
    for c in clients:
        c.sock.close()
    wait_for(lambda: holtd.fd_count() <= before + 2)


