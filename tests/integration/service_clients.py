"""The load of test_kill_service.py: users of the sbx and agentbox interfaces, and of the network, who know what must be
true whatever dies meanwhile.  Workers of the native interface are those of soak_clients.py."""
import json
import threading
import time

import grpc
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from agentbox_client import Sandbox
from daemon import wait_for
from soak_clients import API, INSIST_S, Client, Command, Gone, World, differ


class Service(World):
    """Sandboxes of all three interfaces; `things` check themselves after a round."""

    def __init__(self, holtd, seed, peer):
        super().__init__(holtd, seed)
        self.peer, self.things = peer, []

    def verify_all(self):
        kept = [b for b in self.boxes if not b.destroyed]
        for box in kept:
            self.check_box(box)
        for t in self.things:
            t.check()

    def destroy_all(self):
        for s in self.listed(f"{API}/sandboxes", "sandboxes"):
            status, reply, _ = self.holtd.request("DELETE", f"{API}/sandboxes/{s['id']}")
            assert status in (204, 404), (status, reply)
        wait_for(lambda: not self.listed(f"{API}/sandboxes", "sandboxes"), 20)


class SbxUser(Client):
    """Commands begun through sbx, followed by its stream: every `seq` grows, and is the same when it is read again."""

    def work(self):
        w = self.world
        self.who, self.events, self.done = self.key(), {}, []
        status, reply = w.insist(lambda: w.once("POST", "/sandboxes", {"id": self.who, "allowed_hosts": ["web.test"]}))
        assert status == 200, reply
        self.reply = {k: reply[k] for k in ("id", "namespace", "pod_name")}
        w.things.append(self)
        while self.on():
            c = Command(self.key(), self.rng.choice((5, 60, 300)), 20, 0.02, code=0)
            try:
                status, reply = w.once("POST", f"/sandboxes/{self.who}/exec", {"command": c.argv})
            except Gone:
                w.is_up.wait(20)
                continue
            if status == 503:
                continue
            assert status == 200, reply
            c.id = reply["exec_id"]
            self.follow(c)
            self.done.append(c)

    def follow(self, c):
        """Its events to the end, across breaks, each once."""
        end, last = time.monotonic() + INSIST_S, 0
        got = self.events[c.id] = []
        while not got or got[-1]["type"] != "exit":
            assert time.monotonic() < end, f"{c.key}: no exit after {len(got)} events"
            for e in self.stream(c, last):
                assert e["seq"] > last, f"seq {e['seq']} after {last}"
                last = e["seq"]
                got.append(e)
        self.compare(c, got)

    def stream(self, c, since):
        w = self.world
        url = f"ws://127.0.0.1:{w.holtd.port}/sandboxes/{self.who}/stream?exec_id={c.id}&since={since}&close=true"
        got = []
        try:
            with connect(url, proxy=None, max_size=None, open_timeout=10, close_timeout=1,
                         additional_headers={"Authorization": f"Bearer {w.token}"}) as ws:
                while True:
                    got.append(json.loads(ws.recv(timeout=20)))
        except (OSError, WebSocketException, TimeoutError):
            pass
        if not got or got[-1]["type"] != "exit":
            w.is_up.wait(20)
            time.sleep(0.02)
        return got

    def compare(self, c, events):
        def text(stream):
            return "".join(e["data"] for e in events if e["type"] == "output" and e["stream"] == stream).encode()
        assert not [e for e in events if e.get("gap")], c.key
        assert text("stdout") == c.out, f"stdout of {c.key}: {differ(text('stdout'), c.out)}"
        assert text("stderr") == c.err, f"stderr of {c.key}: {differ(text('stderr'), c.err)}"
        assert events[-1]["exit_code"] == c.code

    def check(self):
        w = self.world
        status, reply = w.insist(lambda: w.once("POST", "/sandboxes", {"id": self.who}))
        assert status == 200 and {k: reply[k] for k in self.reply} == self.reply, reply
        for c in self.done:
            record = w.insist(lambda c=c: w.once("GET", f"/sandboxes/{self.who}/execs/{c.id}"))[1]
            assert record["exit_code"] == 0 and record["status"] == "completed", record
        c = self.done[-1] if self.done else None
        again = self.stream(c, 0) if c else []
        assert again == (self.events[c.id] if c else []), "another seq, or other bytes, when read again"


def line_of(c):
    """For a shell in a sandbox whose root is read-only: without the note that it ran."""
    return c.argv[2].split("; ", 1)[1]


def is_unavailable(code, text):
    """A holtd that has just begun says so in the answer: this interface has no other way."""
    return code == -1 and ("is still connecting" in text or "does not answer" in text)


class AgentboxUser(Client):
    """Sessions through gRPC: commands to their end and streamed."""

    def work(self):
        w = self.world
        self.who, self.port, self.box = self.key(), None, None
        made = self.call(lambda b: b.CreateSession(session_id=self.who, allowed_hosts=["web.test"]))
        self.container, self.hosts = made.session.container_id, list(made.session.allowed_hosts)
        w.things.append(self)
        while self.on():
            c = Command(self.key(), self.rng.choice((1, 20, 200)), code=self.rng.randrange(3))
            try:
                if self.rng.random() < 0.5:
                    r = self.client().Exec(session_id=self.who, command=line_of(c))
                    if is_unavailable(r.exit_code, r.stderr):
                        continue
                    assert (r.stdout.encode(), r.stderr.encode(), r.exit_code) == (c.out, c.err, c.code), c.key
                else:
                    self.streamed(c)
                w.runs += 1
            except grpc.RpcError as e:
                self.forgive(e)

    def streamed(self, c):
        out, code = b"", None
        for m in self.client().ExecStream(session_id=self.who, command=line_of(c)):
            if m.type == "error" and is_unavailable(-1, m.data):
                return
            if m.type == "stdout":
                out += m.data.encode()
            elif m.type == "exit":
                code = m.exit_code
        assert (out, code) == (c.out, c.code), c.key

    def forgive(self, e):
        """Only what a daemon that is gone says; what became of the command is not known then."""
        assert e.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.INTERNAL), e
        self.world.is_up.wait(20)
        time.sleep(0.02)

    def client(self):
        if self.port != self.world.holtd.port:
            if self.box:
                self.box.close()
            self.port = self.world.holtd.port
            self.box = Sandbox(self.port, self.world.token)
        return self.box

    def call(self, ask):
        end = time.monotonic() + INSIST_S
        while True:
            try:
                return ask(self.client())
            except grpc.RpcError as e:
                self.forgive(e)
                assert time.monotonic() < end, e

    def check(self):
        s = self.call(lambda b: b.GetSession(session_id=self.who)).session
        assert (s.container_id, list(s.allowed_hosts), s.status) == (self.container, self.hosts, "running"), s
        c = Command(self.key(), 3)
        r = wait_for(lambda: (lambda r: None if is_unavailable(r.exit_code, r.stderr) else r)(
            self.call(lambda b: b.Exec(session_id=self.who, command=line_of(c)))), 20)
        assert r.stdout.encode() == c.out


# Holds one connection, and says how often it had to begin anew.
HOLDER = """
import os, socket, sys, time
breaks = sent = 0
while not os.path.exists('/tmp/stop'):
    try:
        with socket.create_connection(('echo.test', %d), 20) as c:
            c.sendall(b'hello %s\\n')
            assert c.recv(1) == b'!'
            while not os.path.exists('/tmp/stop'):
                line = b'%%08d' %% sent
                c.sendall(line)
                got = b''
                while len(got) < 8:
                    part = c.recv(8 - len(got))
                    if not part: raise ConnectionError('its end')
                    got += part
                if got != line: sys.exit('wrong bytes')
                sent += 1
                time.sleep(0.005)
    except OSError as e:
        breaks += 1
        time.sleep(0.05)
print(breaks, sent)
"""


class Surfer(Client):
    """A sandbox with an allowlist that holds a connection open, and asks for hosts that it may and may not reach."""

    def work(self):
        w = self.world
        p = w.peer
        self.policy = {"mode": "allowlist", "allow": [{"host": "web.test", "ports": [p.web]}, {"host": "echo.test", "ports": [p.echo]},
                                                      {"cidr": "127.0.0.1/32", "ports": [p.web, p.echo]}], "deny": ["evil.test"], "unknown": "ask"}
        self.box = w.create(self.key(), network=self.policy)
        self.policy = w.insist(lambda: w.once("GET", self.box.path))[1]["network"]
        self.who = self.key()
        status, r = w.insist(lambda: w.once("POST", f"{self.box.path}/execs", {
            "command": ["python3", "-c", HOLDER % (p.echo, self.who)], "background": True}, f"x-{self.who}"))
        assert status in (200, 202), r
        self.exec = r["id"]
        wait_for(lambda: p.flowed(self.who), 20)
        self.ask()
        w.things.append(self)
        while self.on():
            self.surf(self.rng.choice(("web", "evil", "asked")))

    def ask(self):
        """One more host, by a person's word, for this sandbox."""
        w = self.world
        w.holtd.ok("POST", f"{self.box.path}/execs", {"command": ["curl", "-s", f"http://asked.test:{w.peer.web}/"], "background": True})
        [q] = wait_for(lambda: w.holtd.ok("GET", f"{API}/approvals?state=pending&sandbox={self.box.id}")["approvals"], 20)
        w.holtd.ok("POST", f"{API}/approvals/{q['id']}/approve", {"scope": "sandbox"})

    def surf(self, host):
        """From within; what the daemon's death leaves unsaid is not judged."""
        w = self.world
        url = f"http://{host}.test:{w.peer.web}/"
        key = f"x-{self.key()}"
        status, r = w.insist(lambda: w.once("POST", f"{self.box.path}/execs", {
            "command": ["curl", "-sS", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}", url]}, key))
        assert status == 200, r
        if w.egress_died.is_set() and r["stdout"] not in ("200", "403"):
            return  # its proxy went away under it
        assert r["stdout"] == ("403" if host == "evil" else "200"), (url, r["stdout"], r["stderr"])

    def check(self):
        w = self.world
        assert w.holtd.ok("GET", self.box.path)["network"] == self.policy
        w.egress_died.clear()
        wait_for(lambda: w.peer.grows(self.who), 20)
        for host in ("web", "evil", "asked"):
            self.surf(host)
        w.holtd.ok("POST", f"{self.box.path}/execs", {"command": ["touch", "/tmp/stop"]})
        x = wait_for(lambda: (lambda x: x if x["ended_at"] else None)(w.holtd.ok("GET", f"{self.box.path}/execs/{self.exec}")), 30)
        breaks, sent = map(int, w.output(self.box, type("X", (), {"id": self.exec}), "stdout").split())
        assert x["exit_code"] == 0 and sent > 10, x
        assert breaks == 0 or w.egress_kills, f"its connection broke {breaks} times, and holt-egress lived"


class Peer:
    """What is reached: an echo that knows who speaks and how much, and a web server."""

    def __init__(self, servers):
        self.echo_server, self.web_server = servers(self.serve_echo), servers(self.serve_web)
        self.echo, self.web = self.echo_server.port, self.web_server.port
        self.lock, self.bytes, self.seen = threading.Lock(), {}, {}

    def serve_echo(self, c):
        name = b""
        while not name.endswith(b"\n"):
            name += c.recv(1)
        name = name.decode().split()[1]
        c.sendall(b"!")
        while data := c.recv(4096):
            c.sendall(data)
            with self.lock:
                self.bytes[name] = self.bytes.get(name, 0) + len(data)

    @staticmethod
    def serve_web(c):
        c.recv(65536)
        c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")

    def flowed(self, name):
        with self.lock:
            return self.bytes.get(name, 0)

    def grows(self, name):
        before = self.flowed(name)
        time.sleep(0.1)
        return self.flowed(name) > before

    def all_grow(self):
        """Bytes move on every connection there is, now."""
        before = dict(self.bytes)
        wait_for(lambda: all(self.bytes[n] > b for n, b in before.items() if self.is_live(n)), 60)

    def is_live(self, name):
        return name not in self.seen

    def forget(self):
        self.seen.update(self.bytes)

    def close(self):
        self.echo_server.close()
        self.web_server.close()
