"""A server that speaks the native API's sandbox part as far as the command line needs it, and runs the commands as plain
processes of this machine: what is tested is the client.  Sandboxes are directories; nothing is isolated."""
import base64
import errno
import hashlib
import io
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import tarfile
import termios
import threading
import time
import urllib.parse
from fcntl import ioctl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Gone(Exception):
    pass


class WebSocket:
    """The server's end, blocking, frames of any size."""

    def __init__(self, handler):
        self.read, self.lock = handler.rfile.read, threading.Lock()
        handler.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.write_raw = handler.connection.sendall

    def exactly(self, n):
        data = self.read(n)
        if len(data) < n:
            raise Gone
        return data

    def send(self, data):
        op = 1 if isinstance(data, str) else 2
        data = data.encode() if op == 1 else bytes(data)
        n = len(data)
        head = bytes([0x80 | op]) + (bytes([n]) if n < 126 else b"\x7e" + struct.pack(">H", n) if n < 65536
                                     else b"\x7f" + struct.pack(">Q", n))
        with self.lock:
            try:
                self.write_raw(head + data)
            except (OSError, ValueError):
                raise Gone from None

    def send_json(self, **message):
        self.send(json.dumps(message))

    def close(self, code=1000, reason=""):
        payload = struct.pack(">H", code) + reason.encode()
        with self.lock:
            try:
                self.write_raw(bytes([0x88, len(payload)]) + payload)
            except (OSError, ValueError):
                pass

    def receive(self):
        """(True, text) or (False, bytes); None: a close frame came."""
        while True:
            try:
                head = self.exactly(2)
                assert head[1] & 0x80, "a client must mask"
                n = head[1] & 0x7f
                n = struct.unpack(">H", self.exactly(2))[0] if n == 126 else struct.unpack(">Q", self.exactly(8))[0] if n == 127 else n
                mask, data = self.exactly(4), self.exactly(n)
            except (OSError, ValueError):
                raise Gone from None
            data = (int.from_bytes(data, "big") ^ int.from_bytes((mask * (n // 4 + 1))[:n], "big")).to_bytes(n, "big")
            op = head[0] & 0x0f
            if op == 8:
                return None
            if op == 9:
                with self.lock:
                    self.write_raw(bytes([0x8a, n]) + data)
            elif op in (1, 2):
                return op == 1, data


class Exec:
    def __init__(self, ident, box, body):
        self.id, self.box, self.body = ident, box, body
        self.output = []  # (stream, offset, bytes)
        self.sizes = {1: 0, 2: 0}
        self.ended, self.failure, self.refused, self.process, self.master = False, None, None, None, None
        self.changed = threading.Condition()
        self.inputs, self.size = b"", None
        command = body["command"]
        argv = command if isinstance(command, list) else ["/bin/sh", "-c", command]
        env = {**os.environ, **body.get("env", {})}
        cwd = body.get("cwd") or box.root
        pipes = []
        try:
            if body.get("pty"):
                self.master, slave = pty.openpty()
                if isinstance(body["pty"], dict):
                    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", body["pty"]["rows"], body["pty"]["cols"], 0, 0))
                self.process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=cwd, start_new_session=True,
                                                preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0))
                os.close(slave)
                pipes = [(1, self.master)]
            else:
                self.process = subprocess.Popen(
                    argv, stdin=subprocess.PIPE if body.get("stdin_open") else subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, env=env, cwd=cwd, start_new_session=True)
                pipes = [(1, self.process.stdout.fileno()), (2, self.process.stderr.fileno())]
        except OSError as e:
            self.failure = f"run '{argv[0]}': {e.strerror}"
            self.refused = 127 if e.errno == errno.ENOENT else 126
            self.ended = True
            return
        self.readers = [threading.Thread(target=self._read, args=p, daemon=True) for p in pipes]
        for r in self.readers:
            r.start()
        threading.Thread(target=self._wait, daemon=True).start()

    def _read(self, stream, fd):
        while True:
            try:
                data = os.read(fd, 65536)
            except (OSError, ValueError):
                return
            if not data:
                return
            with self.changed:
                while sum(len(d) for _, _, d in self.output[-64:]) > 1 << 20 and self.waits_for_reader():
                    self.changed.wait(1)
                self.output.append((stream, self.sizes[stream], data))
                self.sizes[stream] += len(data)
                self.changed.notify_all()

    def waits_for_reader(self):
        return False

    def _wait(self):
        self.process.wait()
        for r in self.readers:
            r.join(5)
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def object(self):
        code = self.process.returncode if self.process else self.refused
        number = -code if code is not None and code < 0 else None
        return {"id": self.id, "sandbox": self.box.id, "state": "failed" if self.failure else "exited" if self.ended else "running",
                "command": self.body["command"], "cwd": None, "user": None, "pty": bool(self.body.get("pty")),
                "exit_code": 128 + number if number else code, "signal": number, "timed_out": False, "cancelled": False,
                "oom": False, "created_at": "2026-01-02T03:04:05.678Z", "duration_ms": 12, "stdout_bytes": self.sizes[1],
                "stderr_bytes": self.sizes[2], "failure": self.failure}

    def signal(self, name):
        number = getattr(signal, f"SIG{name}")
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def write(self, data):
        self.inputs += data
        try:
            if self.master is not None:
                os.write(self.master, data)
            elif self.process.stdin and not self.process.stdin.closed:
                self.process.stdin.write(data)
                self.process.stdin.flush()
        except OSError:
            pass

    def eof(self):
        try:
            if self.master is not None:
                os.write(self.master, b"\x04")
            elif self.process.stdin:
                self.process.stdin.close()
        except OSError:
            pass

    def resize(self, rows, cols):
        self.size = (rows, cols)
        if self.master is not None:
            ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def kill(self):
        if self.process and self.process.poll() is None:
            self.signal("KILL")


class Box:
    def __init__(self, ident, root, name=None):
        self.id, self.root, self.name, self.execs, self.unenforced = ident, root, name, {}, []
        os.makedirs(root, exist_ok=True)

    def object(self):
        return {"id": self.id, "name": self.name, "state": "running", "image": "host", "runtime": "fake", "execs_live": 0,
                "created_at": "2026-01-02T03:04:05.678Z", "labels": {}, "limits": {}, "unenforced": self.unenforced}

    def only_exec(self):
        assert len(self.execs) == 1
        return next(iter(self.execs.values()))

    def path(self, p):
        return os.path.normpath(self.root + "/" + p)


class FakeHoltd:
    """.seen: what clients asked for, method and path; .destroyed: the roots of one-shot sandboxes that ended."""

    def __init__(self, directory):
        self.directory = str(directory)
        self.boxes, self.seen, self.destroyed, self.counter = {}, [], [], 0
        self.archives = {}    # path -> bytes sent instead of a real archive
        self.refuse = None    # (status, error object) for the next request
        self.drop_attach = 0  # cut this many attach connections after their first output
        self.resend = False   # offsets that a client asks for are not heeded
        self.slow = 0         # seconds for each piece of a transfer
        self.unenforced = []  # of every sandbox that is made
        self.runs = []
        self.token = "test-token"
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        for box in self.boxes.values():
            for x in box.execs.values():
                x.kill()

    def ident(self, prefix):
        self.counter += 1
        return f"{prefix}_{self.counter:020d}"

    def box(self, name=None):
        ident = self.ident("sb")
        self.boxes[ident] = Box(ident, f"{self.directory}/{ident}", name)
        self.boxes[ident].unenforced = self.unenforced
        return self.boxes[ident]

    def find(self, ref):
        return next((b for b in self.boxes.values() if ref in (b.id, b.name)), None)

    def handler(self):
        holtd = self

        class Handler(Requests):
            daemon = holtd

        return Handler


class Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    daemon = None

    def log_message(self, *args):
        pass

    def reply(self, status, body=None, kind="application/json"):
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        for at in range(0, len(data), 1 << 20):
            self.wfile.write(data[at:at + (1 << 20)])
            time.sleep(self.daemon.slow)
        self.close_connection = True

    def fail(self, status, code, message, obj=""):
        self.reply(status, {"error": {"code": code, "message": message, "object": obj, "hint": ""}})

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            out = io.BytesIO()
            while True:
                n = int(self.rfile.readline().strip(), 16)
                out.write(self.rfile.read(n))
                time.sleep(self.daemon.slow)
                self.rfile.readline()
                if n == 0:
                    return out.getvalue()
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def handle_any(self):
        d = self.daemon
        url = urllib.parse.urlsplit(self.path)
        query = {k: v[-1] for k, v in urllib.parse.parse_qs(url.query).items()}
        d.seen.append(f"{self.command} {self.path}")
        if self.headers.get("Authorization") != f"Bearer {d.token}":
            return self.fail(401, "unauthenticated", "no token")
        if d.refuse:
            status, error = d.refuse
            d.refuse = None
            return self.reply(status, {"error": error})
        parts = [urllib.parse.unquote(p) for p in url.path.split("/")[3:]]
        if parts == ["run"]:
            return self.run()
        if parts == ["stats"]:
            return self.reply(200, {"stats": [self.stats_of(b) for b in d.boxes.values()], "cursor": None})
        if parts[0] != "sandboxes":
            return self.fail(404, "not_found", "no such path")
        if len(parts) == 1:
            if self.command == "POST":
                return self.reply(201, d.box(json.loads(self.body() or b"{}").get("name")).object())
            return self.reply(200, {"sandboxes": [b.object() for b in d.boxes.values()], "cursor": None})
        box = d.find(parts[1])
        if not box:
            return self.fail(404, "not_found", f"there is no sandbox '{parts[1]}'", f"sandbox/{parts[1]}")
        return self.sandbox(box, parts[2:], query)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = handle_any

    def sandbox(self, box, rest, query):
        if not rest:
            return self.reply(200, box.object())
        what = {"execs": self.execs, "files": self.files, "archive": self.archive, "ports": self.ports, "stats": self.stats,
                "logs": self.logs}[rest[0]]
        return what(box, rest[1:], query)

    def stats(self, box, _rest, _query):
        self.reply(200, self.stats_of(box))

    @staticmethod
    def stats_of(box):
        return {"id": box.id, "memory_bytes": 1 << 20, "memory_peak_bytes": 2 << 20, "cpu_us": int(time.monotonic() * 250000), "pids": 3,
                "oom_kills": 0, "disk_bytes": 4096, "net_rx_bytes": 0, "net_tx_bytes": 0}

    def logs(self, box, _rest, query):
        x = box.execs[query["exec"]] if "exec" in query else list(box.execs.values())[-1]
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        at = 0
        while True:
            with x.changed:
                while at >= len(x.output) and not x.ended and query.get("follow") == "true":
                    x.changed.wait(1)
                if at >= len(x.output):
                    break
                data = x.output[at][2]
                at += 1
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def files(self, box, rest, query):
        path = box.path(query["path"])
        if rest == ["list"]:
            if not os.path.exists(path):
                return self.fail(404, "not_found", f"no file '{query['path']}'", f"file/{query['path']}")
            if not os.path.isdir(path):
                return self.fail(409, "conflict", f"'{query['path']}' is no directory", f"file/{query['path']}")
            return self.reply(200, {"files": [{"name": n} for n in sorted(os.listdir(path))], "cursor": None})
        try:
            with open(path, "rb") as f:
                self.reply(200, f.read(), "application/octet-stream")
        except OSError as e:
            self.fail(404, "not_found", f"read '{query['path']}': {e.strerror}", f"file/{query['path']}")

    def archive(self, box, _rest, query):
        path = box.path(query["path"])
        if self.command == "PUT":
            os.makedirs(path, exist_ok=True)
            with tarfile.open(fileobj=io.BytesIO(self.body())) as t:
                t.extractall(path, filter="fully_trusted") if hasattr(tarfile, "fully_trusted_filter") else t.extractall(path)
            return self.reply(204)
        if query["path"] in self.daemon.archives:
            return self.reply(200, self.daemon.archives[query["path"]], "application/x-tar")
        if not os.path.lexists(path):
            return self.fail(404, "not_found", f"no file '{query['path']}'", f"file/{query['path']}")
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
            t.add(path, os.path.basename(path))
        return self.reply(200, out.getvalue(), "application/x-tar")

    def upgrade(self, protocol):
        assert self.headers["Upgrade"].lower() == "websocket" and self.headers["Sec-WebSocket-Version"] == "13"
        assert self.headers["Sec-WebSocket-Protocol"] == protocol
        accept = base64.b64encode(hashlib.sha1((self.headers["Sec-WebSocket-Key"] + GUID).encode()).digest()).decode()
        self.send_response_only(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept),
                            ("Sec-WebSocket-Protocol", protocol)):
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        return WebSocket(self)

    def run(self):
        ws = self.upgrade("holt.attach.v1")
        box = self.daemon.box()
        x = None
        try:
            text, first = ws.receive()
            assert text
            body = json.loads(first)
            self.daemon.runs.append(body)
            x = Exec(self.daemon.ident("ex"), box, body)
            box.execs[x.id] = x
            self.attached(ws, x, 0, 0)
        except Gone:
            pass
        finally:
            if x:
                x.kill()
            self.daemon.destroyed.append(box.id)

    def execs(self, box, rest, query):
        if not rest:
            if self.command == "GET":
                return self.reply(200, {"execs": [x.object() for x in box.execs.values()], "cursor": None})
            x = Exec(self.daemon.ident("ex"), box, json.loads(self.body()))
            box.execs[x.id] = x
            return self.reply(202, x.object())
        x = box.execs.get(rest[0])
        if not x:
            return self.fail(404, "not_found", f"there is no command '{rest[0]}'", f"exec/{rest[0]}")
        if rest[1:] == ["attach"]:
            ws = self.upgrade("holt.attach.v1")
            try:
                self.attached(ws, x, int(query.get("stdout_offset", 0)), int(query.get("stderr_offset", 0)), query.get("role"))
            except Gone:
                pass
            return None
        if rest[1:] == ["signal"]:
            x.signal(json.loads(self.body())["signal"])
        return self.reply(200, x.object())

    def attached(self, ws, x, out_offset, err_offset, role="controller"):
        if x.failure:
            ws.send_json(type="exit", exec=x.object())
            return ws.close()
        ws.send_json(type="started", exec=x.object(), sandbox=x.box.object())
        ws.send_json(type="role", role=role or "controller")
        threading.Thread(target=self.take_input, args=(ws, x, role), daemon=True).start()
        at, offsets = 0, {1: out_offset, 2: err_offset}
        while True:
            with x.changed:
                while at >= len(x.output) and not x.ended and not ws_gone(ws):
                    x.changed.wait(0.2)
                if ws_gone(ws):
                    raise Gone
                if at >= len(x.output):
                    break
                stream, offset, data = x.output[at]
                at += 1
            if offset + len(data) > offsets[stream] or self.daemon.resend:
                ws.send(bytes([stream]) + struct.pack(">Q", offset) + data)
                if self.daemon.drop_attach > 0:
                    self.daemon.drop_attach -= 1
                    self.connection.shutdown(socket.SHUT_RDWR)
                    raise Gone
        ws.send_json(type="exit", exec=x.object())
        ws.close()
        return None

    def take_input(self, ws, x, role):
        try:
            while True:
                got = ws.receive()
                if got is None:
                    break
                text, data = got
                if not text:
                    assert data[0] == 0 and role != "observer"
                    x.write(data[1:])
                    continue
                m = json.loads(data)
                if m["type"] == "eof":
                    x.eof()
                elif m["type"] == "signal":
                    x.signal(m["signal"])
                elif m["type"] == "resize":
                    x.resize(m["rows"], m["cols"])
                elif m["type"] == "detach":
                    break
        except Gone:
            pass
        ws.gone = True
        ws.close()
        with x.changed:
            x.changed.notify_all()

    def ports(self, box, rest, _query):
        try:
            peer = socket.create_connection(("127.0.0.1", int(rest[0])), 5)
        except OSError as e:
            return self.fail(503, "unavailable", f"port {rest[0]} of {box.id}: {e.strerror}", f"sandbox/{box.id}")
        ws = self.upgrade("holt.tcp.v1")

        def back():
            while True:
                try:
                    data = peer.recv(65536)
                    ws.send(data)
                except (OSError, Gone):
                    return
                if not data:
                    return

        thread = threading.Thread(target=back, daemon=True)
        thread.start()
        try:
            while True:
                got = ws.receive()
                if got is None:
                    break
                if got[1]:
                    peer.sendall(got[1])
                else:
                    peer.shutdown(socket.SHUT_WR)
                    thread.join(10)
                    break
        except (Gone, OSError):
            pass
        peer.close()
        return ws.close()


def ws_gone(ws):
    return getattr(ws, "gone", False)
