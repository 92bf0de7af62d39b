"""HTTP/1.1 by hand: sends exactly the bytes a test says, reads replies strictly."""
import json
import socket
import time


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def header(self, name):
        return next((v for k, v in self.headers if k == name.lower()), None)

    def error(self):
        """The code of the JSON error body; fails when it is not one."""
        assert "application/json" in (self.header("content-type") or ""), (self.status, self.headers, self.body)
        e = json.loads(self.body)["error"]
        assert isinstance(e["message"], str) and e["message"], e
        return e["code"]

    def __repr__(self):
        return f"Reply({self.status}, {self.headers}, {self.body[:200]!r})"


class Closed(Exception):
    """The server ended the connection where a reply was due."""


class Raw:
    def __init__(self, port, timeout=60, host="127.0.0.1", sock=None):
        self.sock = sock or socket.create_connection((host, port), timeout)
        self.sock.settimeout(timeout)
        if self.sock.family != socket.AF_UNIX:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        """A server that has refused may have closed already: that is for read() to see."""
        try:
            self.sock.sendall(data if isinstance(data, bytes) else data.encode())
        except (BrokenPipeError, ConnectionResetError):
            pass
        return self

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def _more(self):
        try:
            got = self.sock.recv(65536)
        except ConnectionResetError:
            got = b""
        if not got:
            raise Closed(self.buffer)
        self.buffer += got

    def _until(self, mark):
        while mark not in self.buffer:
            self._more()
        part, self.buffer = self.buffer.split(mark, 1)
        return part

    def take(self, n):
        while len(self.buffer) < n:
            self._more()
        part, self.buffer = self.buffer[:n], self.buffer[n:]
        return part

    def head(self):
        lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, status, *_ = lines[0].split(" ")
        assert version == "HTTP/1.1", lines[0]
        headers = [(k.lower(), v.strip()) for k, v in (line.split(":", 1) for line in lines[1:])]
        return int(status), headers

    def read(self, method="GET"):
        """The next reply; interim ones (100) are returned like others, without a body."""
        status, headers = self.head()
        r = Reply(status, headers, b"")
        if method == "HEAD" or status in (204, 304) or 100 <= status < 200:
            return r
        if r.header("transfer-encoding") == "chunked":
            while True:
                n = int(self._until(b"\r\n").split(b";")[0], 16)
                r.body += self.take(n)
                assert self.take(2) == b"\r\n" if n else True
                if not n:
                    while self._until(b"\r\n"):
                        pass
                    return r
        if r.header("content-length") is not None:
            r.body = self.take(int(r.header("content-length")))
            return r
        r.body = self.rest()
        return r

    def rest(self):
        """Everything until the server closes."""
        try:
            while True:
                self._more()
        except Closed:
            got, self.buffer = self.buffer, b""
            return got

    def closed(self, within=30.0):
        """Does the server close (without more bytes) in that time?"""
        self.sock.settimeout(within)
        try:
            return not self.buffer and self.sock.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def all_replies(self, limit=20):
        """Replies until the server closes or says nothing for half a second."""
        found = []
        self.sock.settimeout(0.5)
        end = time.monotonic() + limit
        while time.monotonic() < end:
            try:
                found.append(self.read())
            except (Closed, TimeoutError):
                break
        return found


def get(path="/healthz", host="localhost", more="", version="HTTP/1.1"):
    return f"GET {path} {version}\r\nHost: {host}\r\n{more}\r\n"
