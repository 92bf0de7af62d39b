"""holtd's side of the egress protocol (docs/protocol-egress.md), a name server, and peers to reach."""
import base64
import hmac
import json
import os
import select
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time

VERSION = 3  # EGRESS_VERSION of src/wire/egress.h
HELLO, KNOWN, WELCOME, SET, REMOVE, DONE, VERDICT, QUESTION, ANSWER, LISTEN, CA, SECRETS = range(1, 13)
TCP4, TCP6, DNS_UDP, DNS_TCP = 1, 2, 4, 8
WHATS = ["denied", "allowed", "closed"]


def text(s):
    b = s.encode() if isinstance(s, str) else s
    return struct.pack("<I", len(b)) + b


class Reader:
    def __init__(self, b):
        self.b, self.at = b, 0

    def num(self, fmt):
        v = struct.unpack_from("<" + fmt, self.b, self.at)[0]
        self.at += struct.calcsize(fmt)
        return v

    def text(self):
        n = self.num("I")
        self.at += n
        return self.b[self.at - n : self.at].decode()


class Names:
    """A name server on loopback: `names` maps a name to its IPv4 addresses; False: to no answer at all."""

    def __init__(self, names):
        self.names, self.asked = names, []
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.sock.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                query, peer = self.sock.recvfrom(2048)
            except OSError:
                return
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1 : at + 1 + query[at]].decode())
                at += query[at] + 1
            name, kind = ".".join(labels).lower(), struct.unpack_from(">H", query, at + 1)[0]
            self.asked.append(name)
            found = self.names.get(name)
            if callable(found):
                found = found()
            if found is False:
                continue
            records = found if found and kind == 1 else []
            out = query[:2] + struct.pack(">HHHHH", 0x8180 if found is not None else 0x8183, 1, len(records), 0, 0)
            out += query[12 : at + 5]
            for a in records:
                out += b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(a)
            self.sock.sendto(out, peer)

    def close(self):
        self.sock.close()


class Peer:
    """A TCP server: `serve(conn)` runs in a thread for each connection."""

    def __init__(self, serve, tls=None, host="127.0.0.1"):
        self.listener = socket.create_server((host, 0))
        self.port = self.listener.getsockname()[1]
        self.serve, self.tls, self.count = serve, tls, 0
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                c, _ = self.listener.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self.one, args=(c,), daemon=True).start()

    def one(self, c):
        try:
            c.settimeout(60)
            self.serve(self.tls.wrap_socket(c, server_side=True) if self.tls else c)
        except OSError:
            pass
        finally:
            c.close()

    def close(self):
        self.listener.close()


def read_head(c):
    data = b""
    while b"\r\n\r\n" not in data:
        part = c.recv(65536)
        if not part:
            break
        data += part
    return data


def http_echo(c):
    """Answers with the request it got, head and body."""
    data = read_head(c)
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            while len(body) < int(line.split(b":")[1]):
                body += c.recv(65536)
    if b"chunked" in head:
        while not body.endswith(b"0\r\n\r\n"):
            body += c.recv(65536)
    got = head + b"\r\n\r\n" + body
    c.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(got) + got)


def echo(c):
    while True:
        data = c.recv(65536)
        if not data:
            c.shutdown(socket.SHUT_WR) if not isinstance(c, ssl.SSLSocket) else None
            return
        c.sendall(data)


class Egress:
    """holt-egress with listeners on loopback in place of a sandbox's."""

    def __init__(self, program, dns="127.0.0.1:1", *more, env=None):
        self.dir = tempfile.TemporaryDirectory(prefix="holt-egress-")
        self.process = subprocess.Popen([program, "--state", self.dir.name, "--dns", dns, *map(str, more)], stderr=subprocess.PIPE,
                                        env={**os.environ, **(env or {})})
        self.tag, self.events, self.known, self.questions = 0, [], [], []
        self.sock = None
        self.connect()

    def connect(self):
        if self.sock:
            self.sock.close()
        for _ in range(1000):
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                self.sock.connect(self.dir.name + "/egress.sock")
                break
            except OSError:
                self.sock.close()
                time.sleep(0.02)
        self.known, self.welcomed = [], False
        self.send(HELLO, 0, struct.pack("<HH", VERSION, VERSION))
        self.wait(lambda: self.welcomed)

    def send(self, kind, tag, payload, fds=()):
        socket.send_fds(self.sock, [struct.pack("<II", kind, tag) + payload], list(fds))

    def take(self, seconds):
        if not select.select([self.sock], [], [], seconds)[0]:
            return None
        packet = self.sock.recv(65536)
        assert packet, "holt-egress closed the connection: %s" % self.process.poll()
        kind, tag = struct.unpack_from("<II", packet)
        r = Reader(packet[8:])
        if kind == WELCOME:
            self.welcomed, _, self.has_ca = r.num("H") == VERSION, r.num("I"), r.num("B")
        elif kind == KNOWN:
            self.known.append(r.text())
        elif kind == VERDICT:
            v = {"id": r.text(), "host": r.text(), "port": r.num("H"), "what": WHATS[r.num("B")], "via": r.num("B"),
                 "rule": r.text(), "up": r.num("Q"), "down": r.num("Q"), "ms": r.num("Q"), "folded": r.num("I")}
            self.events.append(v)
        elif kind == QUESTION:
            self.questions.append({"question": r.num("Q"), "id": r.text(), "host": r.text(), "port": r.num("H")})
        elif kind == DONE:
            self.done = (tag, r.num("H"), r.num("I"), r.text())
        return kind

    def wait(self, met, seconds=30):
        until = time.monotonic() + seconds
        while not met():
            left = until - time.monotonic()
            assert left > 0 and self.take(left) is not None, (self.events, self.questions)

    def call(self, kind, payload, fds=()):
        self.tag += 1
        self.done = None
        self.send(kind, self.tag, payload, fds)
        self.wait(lambda: self.done and self.done[0] == self.tag)
        return self.done[3]  # "" : success

    def set(self, box, policy, listeners=(), learned="", alias=""):
        """listeners: (kind, socket) in the order of their bits."""
        policy = policy if isinstance(policy, str) else json.dumps(policy)
        kinds = sum(k for k, _ in listeners)
        return self.call(SET, text(box) + struct.pack("<I", kinds) + text(policy) + text(learned) + text(alias) + b"\0", [s.fileno() for _, s in listeners])

    def remove(self, box):
        return self.call(REMOVE, text(box))

    def listen(self, host, port, key):
        return self.call(LISTEN, text(host) + struct.pack("<H", port) + text(key))

    def ca(self, authority):
        return self.call(CA, text(authority.cert) + text(authority.key))

    def secrets(self, box, bindings):
        return self.call(SECRETS, text(box) + text(bindings if isinstance(bindings, str) else json.dumps(bindings)))

    def answer(self, question, allow, reason=""):
        self.send(ANSWER, 0, struct.pack("<QB", question, allow) + text(reason))

    def event(self, **want):
        """The next verdict that has these members."""
        def find():
            return next((v for v in self.events if all(v[k] == x for k, x in want.items())), None)
        self.wait(find)
        return find()

    def box(self, policy, name="sb_1", alias=""):
        """A sandbox whose proxy listens on a port of loopback; returns that port."""
        s = socket.create_server(("127.0.0.1", 0))
        s.setblocking(False)
        with s:
            assert self.set(name, policy, [(TCP4, s)], alias=alias) == ""
            return s.getsockname()[1]

    def close(self):
        self.sock.close()
        self.process.terminate()
        self.process.wait(30)
        said = self.process.stderr.read().decode()
        self.process.stderr.close()
        self.dir.cleanup()
        assert "ERROR" not in said and "runtime error" not in said, said
        return said


class Authority:
    """A certificate authority made by openssl; `server` gives a context for TLS servers of these names."""

    def __init__(self, directory, name="Test Authority"):
        self.dir, self.path, self.key_path = str(directory), f"{directory}/ca.pem", f"{directory}/ca.key"
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.key_path, "-out", self.path,
                 "-days", "2", "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
        with open(self.path) as c, open(self.key_path) as k:
            self.cert, self.key = c.read(), k.read()

    def run(self, *args):
        subprocess.run(["openssl", *args], check=True, capture_output=True)

    def server(self, *names, alpn=("http/1.1",)):
        at = f"{self.dir}/{names[0].replace('*', 'any')}"
        self.run("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", at + ".key", "-out", at + ".csr",
                 "-subj", f"/CN={names[0]}", "-addext", "subjectAltName=" + ",".join("DNS:" + n for n in names))
        self.run("x509", "-req", "-in", at + ".csr", "-CA", self.path, "-CAkey", self.key_path, "-CAcreateserial", "-copy_extensions", "copy",
                 "-days", "2", "-out", at + ".pem")
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(at + ".pem", at + ".key")
        ctx.set_alpn_protocols(list(alpn))
        return ctx


def jwt(key, session, exp=None, head=None, **more):
    """A token as agentbox's clients make it."""
    def part(o):
        return base64.urlsafe_b64encode(json.dumps(o, separators=(",", ":")).encode()).rstrip(b"=")
    claims = {"iss": "sandbox-egress-control", "session_id": session, "tenant_id": None, "allowed_hosts": "a.test",
              "exp": int(time.time()) + 60 if exp is None else exp, **more}
    signed = part(head or {"typ": "JWT", "alg": "HS256"}) + b"." + part(claims)
    return (signed + b"." + base64.urlsafe_b64encode(hmac.new(key.encode(), signed, "sha256").digest()).rstrip(b"=")).decode()


def basic(token):
    return "Proxy-Authorization: Basic " + base64.b64encode(f"sandbox:jwt_{token}".encode()).decode() + "\r\n"


def proxy(port):
    c = socket.create_connection(("127.0.0.1", port))
    c.settimeout(30)
    return c


def connect(port, authority, more=""):
    """A tunnel, or the reply that refuses it: (socket, status line and rest)."""
    c = proxy(port)
    c.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{more}\r\n".encode("latin-1"))
    head = read_head(c)
    if not head.startswith(b"HTTP/1.1 200"):
        while True:
            part = c.recv(65536)
            if not part:
                break
            head += part
    return c, head.decode("latin-1")


def socks(port, host, dport, command=1, kind=3):
    c = proxy(port)
    c.sendall(b"\x05\x01\x00")
    assert c.recv(2) == b"\x05\x00"
    raw = {1: lambda: socket.inet_aton(host), 4: lambda: socket.inet_pton(socket.AF_INET6, host),
           3: lambda: bytes([len(host)]) + host.encode("latin-1")}[kind]()
    c.sendall(bytes([5, command, 0, kind]) + raw + struct.pack(">H", dport))
    return c, c.recv(10)[1]


def client_hello(name):
    """The first flight of a TLS client; name None: it says none."""
    ctx = ssl.create_default_context()
    ctx.check_hostname, ctx.verify_mode = False, ssl.CERT_NONE
    to, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    o = ctx.wrap_bio(to, out, server_hostname=name)
    try:
        o.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()
