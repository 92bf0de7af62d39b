"""Every attempt of bypasses.py from inside a real sandbox; and with its guard left out, to see that it would be seen."""
import base64
import contextlib
import gzip
import hashlib
import os
import posixpath
import queue
import select
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../../integration"]

from bypasses import ATTEMPTS, PRELUDE  # noqa: E402
from daemon import BUILD, Holtd, environment, wait_for  # noqa: E402
from egress import Authority, Egress, Names, Peer, basic, connect, jwt, proxy, read_head  # noqa: E402

GUARDS = ("policy", "addresses", "inside", "sni", "requests", "overrides", "scrub", "compressed", "hidden", "names", "guessing")
UNGUARDED = f"{BUILD}/tests/security/holt-egress-unguarded"
VALUE = "c4n4ry-Value/0123456789"
TOKEN = "t0ken-Value-9876543210"  # could be a header's name
ALONE = ("secret_guessed",)  # its sandbox is refused every request for a minute: others would fail for that


class Prey:
    """What no attempt may touch: TCP and UDP on every address of the host, and an abstract socket."""

    def __init__(self):
        self.tcp = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.udp.bind(("::", self.port))
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(f"\0holt-egress-prey-{self.port}")
        self.unix.listen()

        self.heard = queue.SimpleQueue()
        self.over, self._wake = socket.socketpair()
        self._thread = threading.Thread(target=self._hear, daemon=True)
        self._thread.start()

    def _hear(self):
        """Who comes is sent away at once: an attempt that got through need not wait for an answer."""
        while True:
            ready = select.select([self.tcp, self.udp, self.unix, self.over], [], [])[0]
            if self.over in ready:
                return
            for s in ready:
                s.recv(100) if s is self.udp else s.accept()[0].close()
                self.heard.put(s)

    def contacts(self):
        """So many since it was asked last."""
        n = 0
        with contextlib.suppress(queue.Empty):
            while self.heard.get(timeout=0.05):
                n += 1
        return n

    def close(self):
        self._wake.send(b"x")
        self._thread.join()
        for s in (self.tcp, self.udp, self.unix, self.over, self._wake):
            s.close()


class Api:
    """HTTPS for api.test, unbound.test and rules.test by the name of Host; does what a careless server would."""

    def __init__(self, authority):
        self.heard = []  # (host, method, path as such a server reads it, everything)
        self.peer = Peer(self.serve, authority.server("api.test", "unbound.test", "rules.test"))
        self.port = self.peer.port

    def serve(self, c):
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                part = c.recv(65536)
                if not part:
                    return
                data += part
            head, _, data = data.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = {k.lower().replace("_", "-"): v for k, _, v in (x.partition(": ") for x in lines)}  # as CGI reads them
            method, target, _ = first.split(" ")
            if headers.get("transfer-encoding") == "chunked":
                while b"0\r\n\r\n" not in data:
                    data += c.recv(65536)
                data = data.partition(b"0\r\n\r\n")[2]
            method = headers.get("x-http-method-override", method)
            path = headers.get("x-original-url", target).partition("?")[0]
            path = posixpath.normpath(urllib.parse.unquote(urllib.parse.unquote(path)).replace("\\", "/"))
            self.heard.append((headers.get("host", "").partition(":")[0], method.upper(), path, head))
            c.sendall(self.reply(path, headers, head))
            if "close" in headers.get("connection", ""):
                return

    def reply(self, path, headers, head):
        key, more, body = headers.get("x-key", "").encode(), b"", head
        if path == "/echo-header":
            more, body = b"x-echo: " + key + b"\r\n", b""
        elif path == "/echo-name":
            more, body = key + b": 1\r\n", b""
        elif path == "/ws":
            accept = base64.b64encode(hashlib.sha1(headers["sec-websocket-key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
            return (b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: " + accept +
                    b"\r\n\r\n" + bytes([0x81, len(key)]) + key)
        elif path == "/echo-slow":
            return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"".join(b"1\r\n%c\r\n" % b for b in key) + b"0\r\n\r\n"
        elif path == "/echo-base64":
            body = base64.b64encode(b"user:" + key)
        elif path == "/echo-gzip":
            more, body = b"content-encoding: gzip\r\n", gzip.compress(key)
        elif path == "/echo-key":
            first, _, last = headers.get("range", "bytes=0-999")[6:].partition("-")
            body = key[int(first) : int(last) + 1]
        elif path == "/redirect":
            return b"HTTP/1.1 302 Found\r\nlocation: https://unbound.test:%d/?k=%s\r\ncontent-length: 0\r\n\r\n" % (self.port, key)
        return b"HTTP/1.1 200 OK\r\n%scontent-length: %d\r\n\r\n" % (more, len(body)) + body

    def betrays(self):
        """Did a value go where it may not, or a request that may not?"""
        for host, method, path, head in self.heard:
            if host == "unbound.test" and (VALUE.encode() in head or urllib.parse.quote(VALUE, safe="").encode() in head):
                return True
            if (host == "rules.test" and (method != "GET" or not path.startswith("/ok") or path == "/ok/secret")) or "smuggled" in path:
                return True
        return False

    def close(self):
        self.peer.close()


class World:
    """A name server, an allowed web server, an allowed TLS server, the prey; sandboxes by guard that is left out."""

    def __init__(self, factory):
        self.prey, self.heard, self.factory, self.boxes, self.daemons = Prey(), [], factory, {}, {}
        here = lambda: ["127.0.0.1"]  # noqa: E731
        turn = []

        def rebinds():
            turn.append(1)
            return ["127.0.0.1"] if len(turn) % 4 < 2 else ["10.0.0.1"]

        names = ("web", "secure", "evil", "notweb", "evil.web", "private", "api", "unbound", "rules")
        self.names = Names({**{f"{n}.test": here for n in names}, "rebind.test": rebinds, "inside.test": lambda: ["10.9.8.7"]})
        self.web = Peer(self.serve)
        self.authority = Authority(factory.mktemp("tls"))
        self.api = Api(self.authority)
        self.tls = Peer(self.serve_raw)
        self.host = next((a for a in subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split() if "." in a),
                         "127.0.0.1")

    def serve(self, c):
        data = read_head(c)
        c.settimeout(0.3)
        try:
            while True:
                part = c.recv(65536)
                if not part:
                    break
                data += part
        except OSError:
            pass
        self.heard.append(data)
        head = b"HTTP/1.1 302 Found\r\nlocation: http://private.test:%d/\r\n" % self.prey.port if b"/redirect" in data else b"HTTP/1.1 200 OK\r\n"
        c.sendall(head + b"content-length: 0\r\nconnection: close\r\n\r\n")

    @staticmethod
    def serve_raw(c):
        """Answers whatever comes first: a byte back is proof that a byte went through."""
        if c.recv(65536):
            c.sendall(b"through")

    def policy(self):
        p, api = self.prey.port, {"ports": [self.api.port], "scheme": "https"}
        return {"deny": [{"host": "rules.test", **api, "path": "/ok/secret"}],
                "allow": [{"host": "api.test", **api}, {"host": "unbound.test", **api}, f"api.test:{self.web.port}",
                          {"host": "rules.test", **api, "methods": ["GET"], "path": "/ok*"},
                          f"web.test:{self.web.port}", {"host": "secure.test", "ports": [self.tls.port], "scheme": "https"},
                          f"private.test:{p}", f"inside.test:{p}", f"rebind.test:{p}", {"cidr": "127.0.0.1/32", "ports": [self.web.port, self.tls.port, self.api.port]}]}

    def daemon(self, omit):
        directory = self.factory.mktemp(f"egress-{omit}")
        env = {"ASAN_OPTIONS": environment()["ASAN_OPTIONS"] + ":detect_leaks=0", "EGRESS_OMIT": omit}
        args = ["--runtime", "native", "--egress-dns", self.names.address, "--egress-ca-file", self.authority.path]
        if omit:
            os.makedirs(directory / "bin")
            for program in ("holt-spawn", "holt-init", "holt-unpack"):
                os.symlink(f"{BUILD}/{program}", directory / "bin" / program)
            os.symlink(UNGUARDED, directory / "bin" / "holt-egress")
            args += ["--bindir", str(directory / "bin")]
        d = Holtd(directory / "d", *args, env=env)
        self.daemons[omit] = d
        for name, value in (("canary", VALUE), ("token", TOKEN)):
            d.ok("POST", "/holt/v1/secrets", {"name": name, "value": value, "hosts": ["api.test"]})
        return d

    def box(self, omit="", alone=""):
        if (omit, alone) not in self.boxes:
            d = self.daemons.get(omit) or self.daemon(omit)
            secrets = [{"name": n, "env": n.upper()} for n in ("canary", "token")]
            self.boxes[omit, alone] = (d, d.ok("POST", "/holt/v1/sandboxes", {"network": self.policy(), "upper": "memory", "secrets": secrets})["id"])
        return self.boxes[omit, alone]

    def gets_through(self, attempt, omit=""):
        d, box = self.box(omit, attempt if attempt in ALONE else "")
        self.prey.contacts()
        del self.heard[:], self.api.heard[:]
        values = self.prey.port, self.host, len(VALUE), self.web.port, self.tls.port, self.api.port
        code = f"PREY, HOST, LENGTH, WEB, TLS, API = {values}\n{PRELUDE}\n{ATTEMPTS[attempt][1]}\n"
        r = d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["python3", "-c", code], "timeout_ms": 90000}, timeout=120)
        self.said = r["stdout"] + r["stderr"]

        def through():
            return bool(self.prey.contacts() or "THROUGH" in r["stdout"] or VALUE in r["stdout"] or TOKEN.lower() in r["stdout"].lower() or self.api.betrays() or
                        any(b"smuggled" in h or b"evil" in h or VALUE.encode() in h for h in self.heard))

        end = time.monotonic() + (30 if omit else 0.1)  # servers hear of it in their own time
        found = through()
        while not found and time.monotonic() < end:
            found = through()
        return found

    def close(self):
        for d, box in self.boxes.values():
            d.request("DELETE", f"/holt/v1/sandboxes/{box}")
        for d in self.daemons.values():
            d.stop()
        for x in (self.prey, self.names, self.web, self.tls, self.api):
            x.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    w = World(tmp_path_factory)
    yield w
    w.close()


def test_what_is_allowed_works(world):
    d, box = world.box()
    r = d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}",
                                                                     f"http://web.test:{world.web.port}/"], "timeout_ms": 20000})
    assert r["stdout"] == "200", r["stderr"]
    with socket.create_connection(("127.0.0.1", world.prey.port)):
        pass
    wait_for(lambda: world.prey.contacts() == 1)  # the listener hears: else no attempt could fail
    del world.api.heard[:]
    for url, status in ((f"--noproxy '*' https://api.test:{world.api.port}/direct", "200"),  # redirected
                        (f"https://rules.test:{world.api.port}/ok", "200"), (f"https://rules.test:{world.api.port}/no", "403"),
                        (f"https://api.test:{world.api.port}/", "200")):
        r = d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["sh", "-c", f'curl -sS -o /dev/null -w "%{{http_code}}" -H "X-Key: $CANARY" {url}'],
                                                             "timeout_ms": 20000})
        assert r["stdout"] == status, r["stderr"]
    for host, _, _, head in world.api.heard:  # and the value goes where it may
        assert (f"x-key: {VALUE}".encode() in head) == (host == "api.test")


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_it_does_not_get_through(world, attempt):
    assert not world.gets_through(attempt)


@pytest.mark.parametrize("attempt", [a for a in ATTEMPTS if ATTEMPTS[a][0] in GUARDS])
def test_without_its_guard_it_does(world, attempt):
    assert world.gets_through(attempt, ATTEMPTS[attempt][0])


def test_a_placeholder_to_a_host_without_a_binding_is_only_that(world):
    assert not world.gets_through("secret_to_unbound")
    host, _, _, head = world.api.heard[-1]
    assert host == "unbound.test" and b"x-key: holt" in head.lower(), (head, world.said)


def is_let_in(program, world, omit=""):
    """600 connections that say nothing stand at the proxy's TCP form: is one that shows its credentials still let in?"""
    e, held = Egress(program, world.names.address, env={"EGRESS_OMIT": omit, "ASAN_OPTIONS": "detect_leaks=0"}), []
    try:
        e.box({"allow": [f"web.test:{world.web.port}", {"cidr": "127.0.0.1", "ports": [world.web.port]}]})
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        assert e.listen("127.0.0.1", port, "key") == ""
        held += [proxy(port) for _ in range(600)]
        c, head = connect(port, f"web.test:{world.web.port}", basic(jwt("key", "sb_1")))
        c.close()
        return head.startswith("HTTP/1.1 200")
    except OSError:  # closed before it could say who it is
        return False
    finally:
        for c in held:
            c.close()
        e.close()


def test_idle_connections_shut_nobody_out(world):
    assert is_let_in(f"{BUILD}/holt-egress", world)


def test_without_the_guard_idle_connections_shut_others_out(world):
    assert not is_let_in(UNGUARDED, world, "gate")


def test_there_are_forty(world):
    assert len(ATTEMPTS) >= 40
    for guard in GUARDS:
        assert any(ATTEMPTS[a][0] == guard for a in ATTEMPTS)
