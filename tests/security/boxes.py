"""holt-spawn and sandboxes, driven as holtd drives them but from python, so that a test needs no daemon.

Both protocols are in docs/protocol-spawn.md and docs/protocol-guest.md.  A Spawn runs as root or as an ordinary
user; sandboxes that a test leaves are destroyed by Spawn.stop().
"""
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("HOLT_BUILD", f"{HERE}/../../build"))
sys.path.insert(0, f"{HERE}/../tools")

import as_user  # noqa: E402
from waiting import SLOW, wait_for  # noqa: E402, F401 (for the tests)

VERSION = 2  # SPAWN_VERSION of src/wire/spawn.h
MARK = bytes.fromhex("f39bc7e88db1fa96d4a9ee83cbbdf091")
CAN_MEMORY, CAN_CPU, CAN_PIDS, CAN_DISK, CAN_FREEZE, CAN_KILL_TREE, CAN_USERS = (1 << i for i in range(7))
ROOTFS_RO, NESTING, UPPER_DISK, RESTART, RELAY, NETWORK, WIDE = 1, 2, 4, 8, 16, 32, 512
TMPFS, VOLUME, SHARED, HOST, LAYER, OWN = range(6)
PTY, STDIN, MERGE, KILL_REST = 1, 2, 4, 8
READ, WRITE, STAT, LIST, MKDIR, REMOVE, RENAME, CHMOD, TAR_IN, TAR_OUT, WATCH = range(11)
APPEND, EXCLUSIVE, PARENTS, RECURSIVE, NOFOLLOW = 1, 2, 4, 8, 16
NO_LIMIT, NO_ID = 2**63 - 1, 2**32 - 1
NPROC = (6, 400, 400)  # RLIMIT_NPROC where nothing else limits: a mistake in a test must not take the machine


class Refused(Exception):
    """An error that spawn or init sent."""


def text(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<I", len(b)) + b


def rows(items):
    return struct.pack("<I", len(items)) + b"".join(items)


def readable(fd, seconds):
    """select.select takes no descriptor past 1,023."""
    p = select.poll()
    p.register(fd, select.POLLIN)
    return bool(p.poll(seconds * 1000))


class Reader:
    def __init__(self, b):
        self.b, self.at = b, 0

    def take(self, fmt):
        v = struct.unpack_from("<" + fmt, self.b, self.at)
        self.at += struct.calcsize("<" + fmt)
        return v if len(v) > 1 else v[0]

    def text(self):
        n = self.take("I")
        self.at += n
        return self.b[self.at - n:self.at].decode(errors="replace")

    def error(self):
        code, sys = self.take("HI")
        return code, sys, self.text()


class Spawn:
    """One holt-spawn and its connection.  mode: "root"; "rootless": an ordinary user with id ranges and cgroups of its own;
    "bare": one with neither.  "warm" before it: sandboxes are made ahead, and every create takes one of those."""

    def __init__(self, mode="root", program=None, init=None, env=None, args=(), runtime=""):
        self.mode, self.args, self.runtime = mode, args, runtime
        self.shells = 2 if mode.startswith("warm ") else 0
        mode = mode.removeprefix("warm ")
        self.user = None if mode == "root" else as_user.User(BUILD, *[mode == "rootless"] * 2)
        self.tag = 0
        self.live = set()
        self.state = tempfile.mkdtemp(prefix="holt-sec.", dir="/tmp")
        self.program = program or f"{BUILD}/holt-spawn"
        self.init = init or f"{BUILD}/holt-init"
        self.env = {"PATH": "/usr/bin:/bin", "HOLT_SECRET": "the-secret-of-spawn", **(env or {})}
        if self.user:
            os.chown(self.state, self.user.uid, self.user.uid)
        self.process = self.sock = None
        self.start()

    def start(self):
        argv = [self.program, "--state", self.state, "--init", self.init, *self.args]
        if self.user:
            argv = [self.user.path(a) for a in argv]
        self.log = open(f"{self.state}.log", "ab")
        self.process = subprocess.Popen(
            argv, env=self.env, cwd="/tmp", stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            preexec_fn=self.user and self.user.enter)
        self.connect()

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(60 * SLOW)
        if self.user:
            os.seteuid(self.user.uid)  # spawn looks at SO_PEERCRED
        try:
            end = time.monotonic() + 60 * SLOW
            while True:
                try:
                    self.sock.connect(f"{self.state}/spawn.sock")
                    break
                except OSError:
                    if time.monotonic() > end or self.process.poll() is not None:
                        with open(f"{self.state}.log", encoding="utf-8") as f:
                            raise RuntimeError(f"holt-spawn does not serve: {f.read()[-2000:]}") from None
                    time.sleep(0.01)
        finally:
            if self.user:
                os.seteuid(0)
        kind, r, _ = self.call(1, struct.pack("<HH", VERSION, VERSION) + text("in_security"))
        assert kind == 2, "no welcome"
        version, _, self.features = r.take("HBI")
        assert version == VERSION
        if self.shells:
            self.pool(self.shells)

    def pool(self, shells):
        """How many are ready; so many are to be."""
        kind, r, _ = self.call(14, struct.pack("<II", 4, shells))
        assert kind == 22
        self.ready, self.broken = r.take("IQ")
        return self.ready

    def limits(self, **limits):
        """Those that one made ahead can have: not of cgroup v1, where a process cannot be born without and get them later."""
        v1 = not os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        return {k: v for k, v in limits.items() if not (self.shells and v1 and k in ("memory", "pids", "cpu"))}

    def send(self, kind, payload=b""):
        self.tag += 1
        self.sock.send(struct.pack("<II", kind, self.tag) + payload)
        return self.tag

    def receive(self):
        """(type, tag, Reader, fds)"""
        data, fds, _, _ = socket.recv_fds(self.sock, 32768, 4)
        if not data:
            raise RuntimeError("holt-spawn closed the connection")
        kind, tag = struct.unpack_from("<II", data)
        return kind, tag, Reader(data[8:]), fds

    def call(self, kind, payload=b""):
        tag = self.send(kind, payload)
        while True:
            kind, got, r, fds = self.receive()
            if got == tag:
                return kind, r, fds
            for fd in fds:
                os.close(fd)

    def check_done(self, kind, r):
        if kind == 15:
            code, _, msg = r.error()
            if code:
                raise Refused(msg)

    @staticmethod
    def create_payload(id, hostname="den", flags=0, memory=0, disk=0, cpu=0, pids=0, nofile=0,
                       mounts=(), layers=(), ca="", runtime=""):
        """mounts: (kind, source, target[, size[, readonly]]), see enum spawn_mount_kind; layers: their names, lowest first"""
        return (text(id) + text(hostname) + struct.pack("<IQQIII", flags, memory, disk, cpu, pids, nofile)
                + rows([text(name) for name in layers])
                + rows([bytes([k]) + text(a) + text(b) + struct.pack("<BQ", *(more + [0, 0])[1::-1])
                        for k, a, b, *more in mounts])
                + text(ca) + text(runtime))

    def create(self, id, connect=True, **spec):
        fits = self.shells and spec == self.limits(**spec) and not spec.get("flags", 0) & (NESTING | RESTART | WIDE)
        for _ in range(round(2000 * SLOW)):
            if not fits or self.pool(self.shells) > 0:
                break
            time.sleep(0.02)  # a question is work: holt-spawn makes none for 10 ms after it
        kind, r, fds = self.call(3, self.create_payload(id, **{"runtime": self.runtime, **spec}))
        self.check_done(kind, r)
        assert kind == 4
        self.live.add(id)
        pid, enforced = r.take("II")
        assert (r.text(), r.take("B")) == (f"sb/{id}/init.sock", bool(fits))
        return Box(self, id, pid, enforced, fds[0], connect, spec.get("flags", 0))

    @staticmethod
    def destroy_payload(id, keep=0):
        return text(id) + bytes([keep])

    def destroy(self, id, keep=0):
        kind, r, _ = self.call(8, self.destroy_payload(id, keep))
        self.check_done(kind, r)
        self.live.discard(id)

    def stats(self, id):
        kind, r, _ = self.call(10, text(id))
        self.check_done(kind, r)
        return dict(zip(("memory", "peak", "cpu_us", "pids", "oom_kills", "disk"), r.take("6Q")))

    def pause(self, id, on):
        kind, r, _ = self.call(9, text(id) + bytes([on]))
        self.check_done(kind, r)

    def kill_work(self, id):
        kind, r, _ = self.call(7, text(id) + bytes([0]))
        self.check_done(kind, r)

    def list(self):
        kind, r, _ = self.call(12, text(""))
        assert kind == 13
        _, n = r.take("BI")
        return [(r.text(), r.take("BB"), r.text()) for _ in range(n)]

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self):
        """Destroys what lives, ends spawn and removes the state directory, which must be nearly empty."""
        if self.process.poll() is None:
            self.sock.close()
            self.connect()
            for id in [row[0] for row in self.list()]:
                self.destroy(id)
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(60 * SLOW)
        self.sock.close()
        self.log.close()
        os.unlink(f"{self.state}.log")
        left = os.listdir(f"{self.state}/sb") + os.listdir(f"{self.state}/shells")
        shutil.rmtree(self.state, ignore_errors=True)
        if self.user:
            self.user.close()
        assert not left, f"left in sb/ and shells/: {left}"


class Result:
    def __init__(self):
        self.out, self.err = b"", b""
        self.how = self.code = self.oom = None
        self.failure = ""

    def __str__(self):
        said = self.out.decode(errors="replace") + self.err.decode(errors="replace")
        return f"how {self.how}, code {self.code} {self.failure}: {said}"


class Box:
    """A sandbox and a connection to its init."""

    def __init__(self, spawn, id, pid, enforced, pidfd, connect=True, flags=0):
        self.spawn, self.id, self.pid, self.enforced, self.pidfd, self.flags = spawn, id, pid, enforced, pidfd, flags
        self.safety = () if enforced & CAN_PIDS else (NPROC,)
        self.next_exec = 0
        self.sock = None
        if connect:
            self.connect()

    def connect(self):
        if self.sock:
            self.sock.close()
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60 * SLOW)
        self.sock.connect(f"{self.spawn.state}/sb/{self.id}/init.sock")
        self.channel = -1
        self.data = b""
        self.nonce = os.urandom(16)
        self.sock.sendall(MARK)
        self.send(1, 0, struct.pack("<HH", 1, 1) + self.nonce)
        while len(self.data) < 16:
            self.more()
        assert self.data[:16] == MARK
        self.data = self.data[16:]
        assert self.next()[0] == 2, "no hello"

    def send(self, kind, channel, payload=None, aux=0, flags=0):
        p = b"" if payload is None else payload + b"\0"
        self.sock.sendall(struct.pack("<BBHIII", kind, flags, 0, len(p), channel, aux) + p)

    def more(self):
        got = self.sock.recv(1 << 20)
        if not got:
            raise ConnectionError("init closed the connection")
        self.data += got

    def next(self):
        """(type, flags, channel, aux, payload)"""
        while True:
            if len(self.data) >= 16:
                kind, flags, _, n, channel, aux = struct.unpack_from("<BBHIII", self.data)
                if len(self.data) >= 16 + n:
                    payload = self.data[16:16 + n][:-1]
                    self.data = self.data[16 + n:]
                    return kind, flags, channel, aux, payload
            self.more()

    def open(self, kind, payload):
        self.channel += 2
        self.send(kind, self.channel, payload)
        return self.channel

    def start(self, argv, flags=0, user="", cwd="/", env=None, rlimits=()):
        self.next_exec += 1
        env = {"PATH": "/usr/bin:/bin", "HOME": "/root", **(env or {})}
        return self.open(32, text(f"ex_{self.next_exec}") + struct.pack("<IHH", flags, 24, 80) + text(user) + text(cwd)
                         + rows([text(a) for a in argv]) + rows([text(f"{k}={v}") for k, v in env.items()])
                         + rows([struct.pack("<BQQ", *r) for r in (*self.safety, *rlimits)]))

    def collect(self, channel, limit=None, timeout=60 * SLOW, ack=True):
        """Output until the exit, or until `limit` bytes of stdout came; then the exec is forgotten."""
        r = Result()
        end = time.monotonic() + timeout
        while True:
            self.sock.settimeout(max(0.01, end - time.monotonic()))
            kind, _, ch, aux, p = self.next()
            if ch != channel:
                continue
            if kind == 18:
                raise Refused(Reader(p).error()[2])
            if kind == 16:
                if aux == 1:
                    r.out += p[8:]
                else:
                    r.err += p[8:]
                upto = struct.unpack_from("<Q", p)[0] + len(p) - 8
                if ack:
                    self.send(17, ch, struct.pack("<QQ", upto, upto + 262144), aux)
                if limit is not None and len(r.out) >= limit:
                    return r
            if kind == 37:
                q = Reader(p)
                r.how, r.code, _, r.oom = q.take("4B")
                q.take("6Q")
                r.failure = q.error()[2]
                self.send(38, ch)
                return r

    def run(self, *argv, timeout=60 * SLOW, **more):
        return self.collect(self.start(argv, **more), timeout=timeout)

    def sh(self, line, **more):
        return self.run("sh", "-c", line, **more)

    def kind(self):
        """Which table of calls it has: as calls_table's arguments."""
        return ["wide" if self.flags & WIDE else "narrow", *(["nesting"] if self.flags & NESTING else [])]

    def python(self, source, **more):
        return self.run("/usr/bin/python3", "-c", source, **more)

    def signal(self, channel, sig, scope=0):
        self.send(36, channel, bytes([sig, scope]))

    def file(self, op, path, flags=0, to="", offset=0, length=NO_LIMIT, mode=0, content=None):
        """The bytes that came; Refused when init says no."""
        ch = self.open(48, struct.pack("<BI", op, flags) + text(path) + text(to)
                       + struct.pack("<QQIII", offset, length, mode, NO_ID, NO_ID))
        got, sent, limit = b"", 0, 65536
        self.sock.settimeout(60 * SLOW)
        while True:
            if content is not None:
                while sent < min(len(content), limit) or (sent == len(content) == 0):
                    piece = content[sent:min(limit, sent + 32768)]
                    last = sent + len(piece) == len(content)
                    self.send(16, ch, struct.pack("<Q", sent) + piece, 0, 1 if last else 0)
                    sent += len(piece)
                    if last:
                        content = None
                        break
            kind, _, c, _, p = self.next()
            if c != ch:
                continue
            if kind == 18:
                raise Refused(Reader(p).error()[2])
            if kind == 17:
                limit = struct.unpack_from("<QQ", p)[1]
            if kind == 16:
                got += p[8:]
                upto = struct.unpack_from("<Q", p)[0] + len(p) - 8
                self.send(17, ch, struct.pack("<QQ", upto, upto + 262144), 1)
            if kind in (19, 49):
                return got

    def put(self, path, content, mode=0o755):
        self.file(WRITE, path, PARENTS, mode=mode, content=content)

    def alive(self):
        return not readable(self.pidfd, 0)

    def destroy(self, keep=0):
        """keep: it is stopped, its files stay."""
        if self.sock:
            self.sock.close()
        os.close(self.pidfd)
        self.spawn.destroy(self.id, keep)
