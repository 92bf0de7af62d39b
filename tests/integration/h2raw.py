"""HTTP/2 by hand (RFC 9113): sends exactly the frames a test says; knows just enough HPACK for that."""
import socket
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM = ACK = 0x1
END_HEADERS = 0x4
_STATIC_STATUS = {8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500}


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _integer(value, bits, first=0):
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([first | value])
    out, value = bytes([first | limit]), value - limit
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def hpack(fields):
    """Literals without indexing and without Huffman code: as long as it is right, it may be dull."""
    out = b""
    for name, value in fields:
        for text in (b"\0" if text is None else text for text in (None, name, value)):
            if text == b"\0":
                out += b"\0"
                continue
            raw = text if isinstance(text, bytes) else text.encode()
            out += _integer(len(raw), 7) + raw
    return out


def request(path="/healthz", method="GET", authority="127.0.0.1", more=()):
    return hpack([(":method", method), (":scheme", "http"), (":path", path), (":authority", authority), *more])


class H2:
    def __init__(self, port, settings=b"", timeout=60, hello=True):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.ended = False  # the server has closed
        self.stalled = False  # it takes no more bytes
        if hello:
            self.send(PREFACE + frame(SETTINGS, 0, 0, settings))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        """False when the server is gone, or takes no more."""
        try:
            self.sock.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            self.ended = True
            return False
        except TimeoutError:  # it reads no more: back-pressure
            self.stalled = True
            return False

    def frames(self, wait=2.0, met=None, limit=30.0):
        """What has come, until nothing comes for that long or the server closes: (type, flags, stream, payload).
        With met(frames), silence does not end it before that is true, or the limit is past."""
        found, end = [], time.monotonic() + limit
        self.sock.settimeout(wait)
        while True:
            while len(self.buffer) >= 9:
                n = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) < 9 + n:
                    break
                head, payload = self.buffer[:9], self.buffer[9:9 + n]
                self.buffer = self.buffer[9 + n:]
                found.append((head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF, payload))
                if found[-1][0] == SETTINGS and not found[-1][1] & ACK:
                    self.send(frame(SETTINGS, ACK))
            try:
                got = self.sock.recv(65536)
            except TimeoutError:
                if met and not met(found) and time.monotonic() < end:
                    continue
                return found
            except ConnectionResetError:
                got = b""
            if not got:
                self.ended = True
                return found
            self.buffer += got

    def until(self, kind, stream=None, wait=0.2):
        """Frames up to the first of that kind, and what comes right after; None when it does not come."""
        def came(found):
            return any(f[0] == kind and stream in (None, f[2]) for f in found)
        seen = self.frames(wait, came)
        return seen if came(seen) else None


def status_of(payload):
    """:status as the first field of a header block; 0 when it is Huffman-coded."""
    while payload and payload[0] & 0xE0 == 0x20:  # dynamic table size update
        payload = payload[1:]
    first = payload[0]
    if first & 0x80:
        return _STATIC_STATUS[first & 0x7F]
    if payload[1] & 0x80:
        return 0
    return int(payload[2:5])


def error_of(frames):
    """(GOAWAY's code or None, {stream: RST_STREAM's code})"""
    away = next((int.from_bytes(f[3][4:8], "big") for f in frames if f[0] == GOAWAY), None)
    return away, {f[2]: int.from_bytes(f[3], "big") for f in frames if f[0] == RST_STREAM}
