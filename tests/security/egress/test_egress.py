"""Every attempt of attempts.py from inside a real sandbox; and with its guard left out, to see that it would be seen."""
import os
import select
import socket
import ssl
import subprocess
import sys
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../../integration"]

from attempts import ATTEMPTS, PRELUDE  # noqa: E402
from daemon import BUILD, Holtd, environment  # noqa: E402
from egress import Names, Peer, read_head  # noqa: E402

GUARDS = ("policy", "addresses", "sni")


class Prey:
    """What no attempt may touch: TCP and UDP on every address of the host, and an abstract socket."""

    def __init__(self):
        self.tcp = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.udp.bind(("::", self.port))
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind("\0holt-egress-prey")
        self.unix.listen()

    def contacts(self):
        n = 0
        while True:
            ready = select.select([self.tcp, self.udp, self.unix], [], [], 0.05)[0]
            if not ready:
                return n
            for s in ready:
                n += 1
                s.recv(100) if s is self.udp else s.accept()[0].close()

    def close(self):
        for s in (self.tcp, self.udp, self.unix):
            s.close()


class World:
    """A name server, an allowed web server, an allowed TLS server, the prey; sandboxes by guard that is left out."""

    def __init__(self, factory):
        self.prey, self.heard, self.factory, self.boxes, self.daemons = Prey(), [], factory, {}, []
        here = lambda: ["127.0.0.1"]  # noqa: E731
        turn = []

        def rebinds():
            turn.append(1)
            return ["127.0.0.1"] if len(turn) % 4 < 2 else ["10.0.0.1"]

        names = ("web", "secure", "evil", "notweb", "evil.web", "private")
        self.names = Names({**{f"{n}.test": here for n in names}, "rebind.test": rebinds})
        self.web = Peer(self.serve)
        d = factory.mktemp("tls")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", d / "k",
                        "-out", d / "c", "-days", "2", "-subj", "/CN=secure.test"], check=True, capture_output=True)
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
        p = self.prey.port
        return {"allow": [f"web.test:{self.web.port}", {"host": "secure.test", "ports": [self.tls.port], "scheme": "https"},
                          f"private.test:{p}", f"rebind.test:{p}", {"cidr": "127.0.0.1/32", "ports": [self.web.port, self.tls.port]}]}

    def box(self, omit=""):
        if omit not in self.boxes:
            directory = self.factory.mktemp(f"egress-{omit}")
            env = {"ASAN_OPTIONS": environment()["ASAN_OPTIONS"] + ":detect_leaks=0", "EGRESS_OMIT": omit}
            args = ["--runtime", "native", "--egress-dns", self.names.address]
            if omit:
                os.makedirs(directory / "bin")
                for program in ("holt-spawn", "holt-init", "holt-unpack"):
                    os.symlink(f"{BUILD}/{program}", directory / "bin" / program)
                os.symlink(f"{BUILD}/tests/security/holt-egress-unguarded", directory / "bin" / "holt-egress")
                args += ["--bindir", str(directory / "bin")]
            d = Holtd(directory / "d", *args, env=env)
            self.daemons.append(d)
            self.boxes[omit] = (d, d.ok("POST", "/holt/v1/sandboxes", {"network": self.policy(), "upper": "memory"})["id"])
        return self.boxes[omit]

    def gets_through(self, attempt, omit=""):
        d, box = self.box(omit)
        self.prey.contacts()
        del self.heard[:]
        code = f"{PRELUDE}\nPREY, HOST, WEB, TLS = {self.prey.port}, {self.host!r}, {self.web.port}, {self.tls.port}\n{ATTEMPTS[attempt][1]}\n"
        r = d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["python3", "-c", code], "timeout_ms": 40000}, timeout=60)
        time.sleep(0.1)
        return bool(self.prey.contacts() or "THROUGH" in r["stdout"] or any(b"smuggled" in h or b"evil" in h for h in self.heard))

    def close(self):
        for d, box in self.boxes.values():
            d.request("DELETE", f"/holt/v1/sandboxes/{box}")
        for d in self.daemons:
            d.stop()
        for x in (self.prey, self.names, self.web, self.tls):
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
    assert world.prey.contacts() == 1  # the listener hears: else no attempt could fail


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_it_does_not_get_through(world, attempt):
    assert not world.gets_through(attempt)


@pytest.mark.parametrize("attempt", [a for a in ATTEMPTS if ATTEMPTS[a][0] in GUARDS])
def test_without_its_guard_it_does(world, attempt):
    assert world.gets_through(attempt, ATTEMPTS[attempt][0])


def test_there_are_forty(world):
    assert len(ATTEMPTS) >= 40
    for guard in GUARDS:
        assert any(ATTEMPTS[a][0] == guard for a in ATTEMPTS)
