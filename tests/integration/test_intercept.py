"""holt-egress reading what goes to hosts that have a secret or a rule about methods and paths."""
import base64
import contextlib
import gzip
import hashlib
import os
import ssl
import struct
import threading
import time

import pytest

from daemon import ASAN, wait_for
from egress import Authority, Egress, Peer, client_hello, connect, proxy, read_head, socks

BUILD = os.environ.get("HOLT_BUILD", "build")
LOOPBACK = {"cidr": "127.0.0.0/8", "ports": ["1-65535"]}
VALUE, PLACEHOLDER = "s3cr3t/Value+for=api&more", "holt_secret_0123456789abcdef"
HOSTS = ("api.test", "other.test", "plain.test", "untrusted.test")
NAMES = {h: ["127.0.0.1"] for h in HOSTS}


class Server:
    """HTTP/1.1 with keep-alive; `answer(method, target, headers, body)` gives the raw reply, or a list of parts sent apart."""

    def __init__(self, tls=None):
        self.seen, self.answer, self.connections = [], None, 0
        self.peer = Peer(self.serve, tls)
        self.port = self.peer.port

    def serve(self, c):
        self.connections += 1
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                part = c.recv(65536)
                if not part:
                    return
                data += part
            head, _, data = data.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            method, target, _ = lines[0].split(" ")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
            if "expect" in headers:
                c.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            need = int(headers.get("content-length", 0))
            while len(data) < need or (headers.get("transfer-encoding") == "chunked" and b"0\r\n\r\n" not in data):
                data += c.recv(65536)
            body, data = (data[:need], data[need:]) if need else (data, b"") if "transfer-encoding" in headers else (b"", data)
            self.seen.append((method, target, headers, body))
            reply = self.answer(method, target, headers, body) if self.answer else ok(head + b"\n" + body)
            for part in reply if isinstance(reply, list) else [reply]:
                c.sendall(part)
                time.sleep(0.02 if isinstance(reply, list) else 0)
            if b"connection: close" in b"".join(reply if isinstance(reply, list) else [reply]).partition(b"\r\n\r\n")[0]:
                return

    def close(self):
        self.peer.close()


def ok(body, *headers):
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n" % len(body) + b"".join(h + b"\r\n" for h in headers) + b"\r\n" + body


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("world"), "The World")


@pytest.fixture(scope="module")
def holt(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("holt"), "holt")


@pytest.fixture()
def api(world):
    s = Server(world.server(*HOSTS[:3]))
    yield s
    s.close()


@pytest.fixture()
def plain():
    s = Server()
    yield s
    s.close()


@pytest.fixture()
def egress(names, world, holt):
    e = Egress(BUILD + "/holt-egress", names.address, "--cacert", world.path)
    assert e.has_ca == 0
    assert e.ca(holt) == "" and e.ca(holt) == ""
    yield e
    said = e.close()
    assert VALUE not in said


def binding(**more):
    return {"placeholder": PLACEHOLDER, "value": VALUE, "hosts": ["api.test"], **more}


def allow(server, *hosts, scheme="https", **more):
    return [{"host": h, "ports": [server.port], "scheme": scheme, **more} for h in hosts] + [LOOPBACK]


def secure(port, server, authority, name="api.test", sni=None, alpn=("http/1.1",)):
    c, head = connect(port, f"{name}:{server.port}")
    assert head.startswith("HTTP/1.1 200"), head
    ctx = ssl.create_default_context(cafile=authority.path)
    ctx.set_alpn_protocols(list(alpn))
    return ctx.wrap_socket(c, server_hostname=sni or name)


def reply_of(c, head_only=False):
    """Status, headers, body as the framing has it, de-chunked."""
    data = read_head(c)
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
    status = int(lines[0].split(" ")[1])
    if head_only or status in (101, 204, 304) or status < 200:
        return status, headers, body
    if headers.get("transfer-encoding") == "chunked":
        out = bytearray()
        while True:
            while b"\r\n" not in body:
                body += c.recv(65536)
            size, _, body = body.partition(b"\r\n")
            while len(body) < int(size, 16) + 2:
                body += c.recv(65536)
            out += body[: int(size, 16)]
            body = body[int(size, 16) + 2 :]
            if int(size, 16) == 0:
                return status, headers, bytes(out)
    body = bytearray(body)
    while len(body) < int(headers.get("content-length", 1 << 60)):
        part = c.recv(65536)
        if not part:
            break
        body += part
    return status, headers, bytes(body)


def ask(c, server, method="GET", target="/", host="api.test", headers=(), body=b""):
    head = f"{method} {target} HTTP/1.1\r\nHost: {host}:{server.port}\r\n" + "".join(h + "\r\n" for h in headers)
    c.sendall(head.encode("latin-1") + b"\r\n" + body)
    return reply_of(c, method == "HEAD")


def test_a_secret_goes_out_and_a_placeholder_comes_back(egress, api, holt):
    assert egress.secrets("sb_1", [binding()]) == ""  # before its sandbox is known
    port = egress.box({"allow": allow(api, "api.test", "other.test")})
    c = secure(port, api, holt)
    assert c.selected_alpn_protocol() == "http/1.1"
    basic = base64.b64encode(f"me:{PLACEHOLDER}".encode()).decode()
    status, headers, body = ask(c, api, target=f"/x?key={PLACEHOLDER}&b=2",
                                headers=[f"Authorization: Bearer {PLACEHOLDER}", "Accept-Encoding: gzip, br", "Range: bytes=0-3"])
    assert status == 200
    method, target, got, _ = api.seen[-1]
    assert got["authorization"] == f"Bearer {VALUE}"
    assert target == "/x?key=s3cr3t%2FValue%2Bfor%3Dapi%26more&b=2"
    assert got["accept-encoding"] == "identity" and "range" not in got
    assert VALUE.encode() not in body and f"authorization: Bearer {PLACEHOLDER}".encode() in body and b"s3cr3t" not in body
    status, _, body = ask(c, api, headers=[f"Authorization: Basic {basic}"])  # the same connection
    want = base64.b64encode(f"me:{VALUE}".encode()).decode()
    assert api.seen[-1][2]["authorization"] == f"Basic {want}"
    assert want.encode() not in body and base64.b64encode(VALUE.encode())[:20] not in body
    assert api.connections == 1
    assert not any(VALUE in str(v) for v in egress.events)


def test_many_guesses_in_one_request_tell_nothing(egress, api, holt):
    """The server says back what it gets: the place of a placeholder would show the guess that was right."""
    egress.secrets("sb_1", [binding()])
    port = egress.box({"allow": allow(api, "api.test")})
    guesses = [f"s3cr3t/Value+for=api&{i:04}" for i in range(2000)]
    right = "\n".join([*guesses[:1000], VALUE, *guesses[1000:]]).encode()
    wrong = "\n".join(guesses).encode()

    def send(body, *headers):
        return ask(secure(port, api, holt), api, "POST", headers=[f"Content-Length: {len(body)}", *headers], body=body)
    assert send(wrong)[0] == 200
    for _ in range(4):
        status, _, said = send(right)
        assert status == 403 and b"placeholder" in said and PLACEHOLDER.encode() not in said, said
    assert not any(VALUE.encode() in body for _, _, _, body in api.seen)
    for body in (wrong, right, b""):  # four bits are enough
        status, _, said = send(body, f"Authorization: Bearer {PLACEHOLDER}")
        assert status == 403 and b"could be guessing" in said, said
    egress.wait(lambda: any("contains the value of a secret" in str(v) for v in egress.events))


def test_only_where_it_is_bound(egress, api, holt, world):
    port = egress.box({"allow": allow(api, "api.test", "other.test")})
    egress.secrets("sb_1", [binding(methods=["POST"], path="/v1/*", **{"in": ["header"]})])
    c = secure(port, api, holt)
    header = [f"X-Key: {PLACEHOLDER}"]
    for method, target, filled in (("POST", "/v1/x", True), ("GET", "/v1/x", False), ("POST", "/v2", False), ("POST", "/v1/../v2", False),
                                   ("POST", "/v1/%2e%2e/v2", False), ("post", "/v1/x", False)):
        ask(c, api, method, target, headers=header)
        assert api.seen[-1][2]["x-key"] == (VALUE if filled else PLACEHOLDER), (method, target)
    ask(c, api, "POST", f"/v1/x?k={PLACEHOLDER}", headers=["Authorization: Basic " + base64.b64encode(PLACEHOLDER.encode() + b":").decode()])
    assert api.seen[-1][1] == f"/v1/x?k={PLACEHOLDER}"
    assert base64.b64decode(api.seen[-1][2]["authorization"][6:]) == PLACEHOLDER.encode() + b":"
    # to a host without a binding it goes through as it is, and nobody looks at it: the server's own certificate
    o = secure(port, api, world, "other.test")
    ask(o, api, host="other.test", headers=header)
    assert api.seen[-1][2]["x-key"] == PLACEHOLDER
    # and a change acts on the next request
    assert egress.secrets("sb_1", [binding(value="another-value-1")]) == ""
    ask(c, api, headers=header)
    assert api.seen[-1][2]["x-key"] == "another-value-1"
    assert egress.secrets("sb_1", []) == ""
    ask(c, api, headers=header)
    assert api.seen[-1][2]["x-key"] == PLACEHOLDER


@pytest.mark.parametrize("bad, why", [
    (binding(value="a\r\nb: c"), "not allowed in a header"), (binding(value="abc"), "4 to 4096"), (binding(value="a\nbcde"), "not allowed in a header"),
    (binding(hosts=["10.0.0.1"]), ""), (binding(hosts=[]), "'hosts'"), (binding(hosts=["*.com"]), "top-level"), (binding(placeholder="x"), "'placeholder'"),
    (binding(placeholder="has space here"), "'placeholder'"), (binding(**{"in": ["body"]}), "'in'"), (binding(path="v1"), "'path'"),
    (binding(path="/a/../b"), "'path'"), (binding(methods="GET"), "'methods'"), (binding(more=1), "'more'"), (binding(value=PLACEHOLDER * 2), "placeholder"),
    ("{", "JSON"), ("{}", "list"), ([binding()] * 65, "list"),
    ([binding(), binding(placeholder=PLACEHOLDER + "x")], "part of another"),
])
def test_secrets_that_are_refused(egress, bad, why):
    said = egress.secrets("sb_1", bad if isinstance(bad, (str, list)) else [bad])
    assert said and why in said and "s3cr3t" not in said and "b: c" not in said


def test_echoes_in_every_form(egress, api, holt):
    port = egress.box({"allow": allow(api, "api.test")})
    egress.secrets("sb_1", [binding()])
    c = secure(port, api, holt)
    v = VALUE.encode()
    forms = [v, base64.b64encode(v), base64.b64encode(b"u:" + v), base64.b64encode(b"us:" + v + b"tail"), base64.urlsafe_b64encode(b"use:" + v),
             b"s3cr3t%2FValue%2Bfor%3Dapi%26more", b"s3cr3t%2fValue%2bfor%3dapi%26more", b"s3cr3t\\/Value+for=api&more",
             b"s3cr3t/Value+for=api&amp;more", v.hex().encode(), v.hex().upper().encode()]
    for form in forms:
        core = form[4:-4]
        for reply in (ok(b"a" + form + b"z", b"x-echo: " + form, b"location: https://evil.test/?" + form),
                      [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"] + [b"1\r\n%c\r\n" % b for b in b"a" + form + b"z"] + [b"0\r\n\r\n"],
                      [b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\na" % (len(form) + 2), form[:7], form[7:] + b"z"]):
            api.answer = lambda *_, reply=reply: reply
            status, headers, body = ask(c, api)
            assert status == 200 and core not in body and PLACEHOLDER.encode() in body, (form, body)
            assert core.decode() not in str(headers)
            if form == v:
                assert body == b"a" + PLACEHOLDER.encode() + b"z"
    # until the end of the connection
    api.answer = lambda *_: b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(v) + v
    status, headers, body = ask(c, api)
    assert body == PLACEHOLDER.encode() and headers["connection"] == "close"


def test_compressed_replies_are_refused(egress, api, holt):
    port = egress.box({"allow": allow(api, "api.test")})
    egress.secrets("sb_1", [binding()])
    c = secure(port, api, holt)
    api.answer = lambda *_: ok(gzip.compress(VALUE.encode()), b"content-encoding: gzip")
    status, _, body = ask(c, api, headers=["Accept-Encoding: gzip"])
    assert status == 502 and b"compressed" in body


def test_methods_and_paths(egress, api, holt):
    rules = [{"host": "api.test", "ports": [api.port], "scheme": "https", "methods": ["GET", "HEAD"], "path": "/v1/*"},
             {"host": "api.test", "ports": [api.port], "scheme": "https", "methods": ["POST"], "path": "/v1/chat"}]
    deny = [{"host": "api.test", "ports": [api.port], "path": "/v1/admin*"}]
    port = egress.box({"allow": rules + [LOOPBACK], "deny": deny})
    for method, target, passes in (("GET", "/v1/models", True), ("HEAD", "/v1/models", True), ("POST", "/v1/chat", True), ("POST", "/v1/chat?x=/../", True),
                                   ("POST", "/v1/models", False), ("DELETE", "/v1/models", False), ("GET", "/", False), ("GET", "/v1/admin", False),
                                   ("GET", "/v1/%61dmin", False), ("GET", "/v1/x/../admin", False), ("GET", "/v1/..%2fadmin", False),
                                   ("GET", "/v1//admin", False), ("get", "/v1/models", False), ("GET", "/v1/.", False), ("OPTIONS", "*", False),
                                   ("GET", "/v1\\admin", False)):
        before = len(api.seen)
        c = secure(port, api, holt)
        status, _, body = ask(c, api, method, target)
        assert (status == 200) == passes and (len(api.seen) > before) == passes, (method, target, status, body)
    assert b"is refused: DELETE /v1/models: no rule allows this method and path" in ask(secure(port, api, holt), api, "DELETE", "/v1/models")[2]
    v = egress.event(what="denied", rule="GET /v1/admin: deny api.test:%d /v1/admin*" % api.port)
    assert v["host"] == "api.test"
    c = secure(port, api, holt)
    ask(c, api, "GET", "/v1/x", headers=["X-HTTP-Method-Override: DELETE", "X-Original-URL: /v1/admin"])
    assert not {"x-http-method-override", "x-original-url"} & set(api.seen[-1][2])


def test_a_policy_that_wants_to_see_ends_what_was_not_seen(egress, api, world):
    port = egress.box({"allow": allow(api, "api.test")})
    c = secure(port, api, world)
    assert ask(c, api)[0] == 200
    egress.set("sb_1", {"allow": allow(api, "api.test", methods=["GET"])})
    with pytest.raises(OSError):
        ask(c, api)


def test_a_secret_that_is_bound_later_ends_what_was_not_searched(egress, api, world, holt):
    port = egress.box({"allow": allow(api, "api.test", "other.test")})
    egress.secrets("sb_1", [binding(hosts=["other.test"])])
    c, d = secure(port, api, world), secure(port, api, world)  # tunnels
    egress.secrets("sb_1", [binding(hosts=["other.test"], path="/x")])
    assert ask(d, api)[0] == 200
    egress.secrets("sb_1", [binding()])
    for x in (c, d):
        with pytest.raises(OSError):
            x.sendall(b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
            if not x.recv(1):
                raise ConnectionResetError
    assert ask(secure(port, api, holt), api)[0] == 200


class Parts(list):
    """A reply whose parts are made while it is sent."""

    def __init__(self, parts):
        super().__init__([b""])
        self.parts = parts

    def __iter__(self):
        return self.parts


def test_a_value_of_before_and_a_value_of_after(egress, api, holt):
    port = egress.box({"allow": allow(api, "api.test", path="/*")})
    egress.secrets("sb_1", [binding()])
    go, new = threading.Event(), "rotated-Value/2"

    def stream(method, target, headers, body):
        def parts():
            yield b"HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n6\r\nfirst\n\r\n"
            go.wait(60)
            said = f"{new} {VALUE}".encode()
            yield b"%x\r\n%s\r\n0\r\n\r\n" % (len(said), said)
        return Parts(parts()) if target == "/stream" else ok(f"{VALUE} {new}".encode())

    api.answer = stream
    c = secure(port, api, holt)
    c.sendall(f"GET /stream HTTP/1.1\r\nHost: api.test:{api.port}\r\n\r\n".encode())
    wait_for(lambda: api.seen)
    time.sleep(0.2)
    egress.secrets("sb_1", [binding(value=new)])
    go.set()
    p = PLACEHOLDER.encode()
    assert reply_of(c)[2] == b"first\n" + p + b" " + p
    assert ask(secure(port, api, holt), api)[2] == p + b" " + p  # the server has not forgotten the old one
    other = "holt_secret_other_0123456789"
    egress.secrets("sb_1", [binding(value="another one", placeholder=other)])
    assert ask(secure(port, api, holt), api)[2] == p + b" " + p
    go.clear()
    egress.secrets("sb_1", [])  # a reply that nobody searches, and then there is something to search for
    del api.seen[:]
    c = secure(port, api, holt)
    c.sendall(f"GET /stream HTTP/1.1\r\nHost: api.test:{api.port}\r\n\r\n".encode())
    data = b""
    while b"first" not in data:
        data += c.recv(65536)
    egress.secrets("sb_1", [binding(value="a fresh one", hosts=["*.test.test", "api.test"])])
    go.set()
    with contextlib.suppress(OSError):
        for part in iter(lambda: c.recv(65536), b""):
            data += part
    assert new.encode() not in data and b"fresh" not in data


@pytest.mark.parametrize("field", ["X_HTTP_METHOD_OVERRIDE: DELETE", "X-Http-Method_Override: DELETE", "X-Original-Uri: /no",
                                   "X_Rewrite_Url: /no", "Forwarded: host=other.test", "X-Forwarded-Host: other.test",
                                   "Content_Length: 5", "Transfer_Encoding: chunked"])
def test_fields_that_make_another_request_of_it(egress, api, holt, field):
    port = egress.box({"allow": allow(api, "api.test", methods=["POST"], path="/ok")})
    assert ask(secure(port, api, holt), api, "POST", "/ok", headers=[field, "X-Other_Field: stays"])[0] == 200
    got = api.seen[-1][2]
    assert field.split(":")[0].lower() not in got and got["x-other_field"] == "stays"


@pytest.mark.parametrize("text, status", [
    ("GET / HTTP/1.1\r\nHost: other.test:{p}\r\n\r\n", 421), ("GET / HTTP/1.1\r\nHost: api.test:1\r\n\r\n", 421), ("GET / HTTP/1.1\r\nHost: api.test\r\n\r\n", 421),
    ("GET / HTTP/1.1\r\nHost: api.test:{p}\r\nHost: other.test\r\n\r\n", 400), ("GET / HTTP/1.1\r\n\r\n", 400),
    ("GET https://other.test:{p}/ HTTP/1.1\r\nHost: api.test:{p}\r\n\r\n", 400), ("GET https://other.test:{p}/ HTTP/1.1\r\nHost: other.test:{p}\r\n\r\n", 421),
    ("POST / HTTP/1.1\r\nHost: api.test:{p}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: api.test:{p}\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd", 400),
    ("POST / HTTP/1.1\r\nHost: api.test:{p}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    ("GET / HTTP/1.1\r\nHost: api.test:{p}\r\nX: a\r\n b\r\n\r\n", 400), ("GET / HTTP/1.1\nHost: api.test:{p}\n\n", 400),
    ("GET / HTTP/1.1\r\nHost: api.test:{p}\r\nTransfer-Encoding : chunked\r\n\r\n", 400), ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ("CONNECT other.test:443 HTTP/1.1\r\nHost: api.test:{p}\r\n\r\n", 501), ("GET /\x00 HTTP/1.1\r\nHost: api.test:{p}\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: api.test:{p}\r\nX: " + "a" * 40000 + "\r\n\r\n", 431),
])
def test_requests_that_two_could_read_in_two_ways(egress, api, holt, text, status):
    port = egress.box({"allow": allow(api, "api.test", "other.test")})
    egress.secrets("sb_1", [binding(hosts=["api.test", "other.test"])])
    c = secure(port, api, holt)
    c.sendall(text.format(p=api.port).encode("latin-1"))
    assert reply_of(c)[0] == status
    assert api.seen == []
    assert egress.event(what="denied")["host"] == "api.test"


def test_bodies(egress, api, holt):
    port = egress.box({"allow": allow(api, "api.test", methods=["POST"])})
    c = secure(port, api, holt)
    big = os.urandom(1 << 20)
    status, _, body = ask(c, api, "POST", headers=[f"Content-Length: {len(big)}", "Expect: 100-continue"])
    assert status == 100
    c.sendall(big)
    assert reply_of(c)[2].endswith(big)
    chunks = b"3;ext=1\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Trailer: " + PLACEHOLDER.encode() + b"\r\n\r\n"
    assert ask(c, api, "POST", headers=["Transfer-Encoding: chunked"], body=chunks)[0] == 200
    assert api.seen[-1][3] == b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"  # cut anew: no extension, no trailer
    c.sendall(f"POST /1 HTTP/1.1\r\nHost: api.test:{api.port}\r\nContent-Length: 1\r\n\r\naPOST /2 HTTP/1.1\r\nHost: api.test:{api.port}\r\n\r\n".encode())
    assert b"POST /1" in reply_of(c)[2] and b"POST /2" in reply_of(c)[2]  # one after the other
    c.sendall(b"POST / HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
    assert reply_of(c)[0] == 200 and c.recv(1) == b""


def test_a_large_reply_to_a_slow_reader(egress, api, holt):
    port = egress.box({"allow": allow(api, "api.test")})
    egress.secrets("sb_1", [binding()])
    piece = (b"x" * 1000 + VALUE.encode()) * 1000
    size = len(piece) * 30
    api.answer = lambda *_: [b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size] + [piece] * 30
    c = secure(port, api, holt)
    c.sendall(f"GET / HTTP/1.1\r\nHost: api.test:{api.port}\r\n\r\n".encode())
    time.sleep(1)
    assert resident(egress.process.pid) < 200 << 20
    body = reply_of(c)[2]
    assert body == (b"x" * 1000 + PLACEHOLDER.encode()) * 30000


def resident(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(x.split()[1]) for x in f if x.startswith("VmRSS")) * 1024


@pytest.mark.skipif(ASAN, reason="its memory is not the program's")
def test_many_slow_readers_cost_little(egress, api, holt):
    port = egress.box({"allow": allow(api, "api.test")})
    egress.secrets("sb_1", [binding()])
    api.answer = lambda *_: ok(b"x" * (2 << 20))
    before, readers = resident(egress.process.pid), []
    for _ in range(60):
        readers.append(secure(port, api, holt))
        readers[-1].sendall(f"GET / HTTP/1.1\r\nHost: api.test:{api.port}\r\n\r\n".encode())
    wait_for(lambda: len(api.seen) == 60)
    time.sleep(1)
    assert resident(egress.process.pid) - before < 60 * 350 * 1024
    for c in readers:
        c.close()


KEY = "dGhlIHNhbXBsZSBub25jZQ=="
WANTS = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {KEY}",
         f"Authorization: {PLACEHOLDER}", "Sec-WebSocket-Extensions: permessage-deflate"]


def frame(data, first=0x81):
    n = len(data)
    return bytes([first]) + (bytes([n]) if n < 126 else b"\x7e" + struct.pack(">H", n)) + data


def switching(*parts, accept=base64.b64encode(hashlib.sha1((KEY + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())):
    return [b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: " + accept +
            b"\r\n\r\n", *parts]


def read_until(c, data, n):
    while len(data) < n:
        part = c.recv(65536)
        assert part, data
        data += part
    return data


def test_websocket(egress, api, holt):
    port = egress.box({"allow": allow(api, "api.test", methods=["GET"], path="/ws")})
    egress.secrets("sb_1", [binding()])
    api.answer = lambda *_: switching(frame(b"hi " + VALUE.encode()))
    c = secure(port, api, holt)
    status, headers, rest = ask(c, api, "GET", "/ws", headers=WANTS)
    assert status == 101 and headers["upgrade"] == "websocket"
    got = api.seen[-1][2]
    assert got["authorization"] == VALUE and got["upgrade"] == "websocket" and "sec-websocket-extensions" not in got
    blotted = frame(b"hi " + PLACEHOLDER.encode())  # whatever the value's length
    assert read_until(c, rest, len(blotted)) == blotted
    c = secure(port, api, holt)
    assert ask(c, api, "GET", "/other", headers=WANTS)[0] == 403
    api.answer = None
    c = secure(port, api, holt)
    assert ask(c, api, "GET", "/ws", headers=["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: x"])[0] == 200
    assert not {"upgrade", "connection", "http2-settings"} & set(api.seen[-1][2])


def messages(c, data):
    """Up to "done"; a frame that is written anew may come in several."""
    got, text = [], b""
    while got[-1:] != [b"done"]:
        while len(data) < 2 or len(data) < (4 + int.from_bytes(data[2:4]) if data[1] == 126 else 2 + data[1]):
            part = c.recv(65536)
            if not part:
                return got
            data += part
        at, n = (4, int.from_bytes(data[2:4])) if data[1] == 126 else (2, data[1])
        first, payload, data = data[0], data[at : at + n], data[at + n :]
        if first & 8:
            got.append(("control", payload))
            continue
        text += payload
        if first & 0x80:
            got.append(text)
            text = b""
    return got


def test_a_value_in_frames_however_they_are_cut(egress, api, holt):
    port = egress.box({"allow": allow(api, "api.test")})
    egress.secrets("sb_1", [binding()])
    for body in (b"hi " + VALUE.encode(), b"A" * 300 + VALUE.encode() + b"B" * 40, b"x" * 70 + VALUE.encode()):
        whole = frame(body) + frame(b"", 0x89) + frame(b"done")
        want = [body.replace(VALUE.encode(), PLACEHOLDER.encode()), ("control", b""), b"done"]
        for cut in (1, 3, len(whole) - 20, len(whole) - 30):
            api.answer = lambda *_: switching(whole[:cut], whole[cut : cut + 7], whole[cut + 7 :])
            c = secure(port, api, holt)
            rest = ask(c, api, "GET", "/ws", headers=WANTS)[2]
            assert messages(c, rest) == want
    api.answer = lambda *_: switching(frame(b"over")[:4], b"er")  # what has ended does not wait for more
    c = secure(port, api, holt)
    rest = ask(c, api, "GET", "/ws", headers=WANTS)[2]
    assert read_until(c, rest, 6) == frame(b"over")


@pytest.mark.parametrize("wants, reply", [
    (WANTS, switching(accept=b"x")),  # a server that can be made to say 101 is none that knows the key
    (WANTS, [b"HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"]),
    (WANTS[:3], switching()),  # no key, no upgrade
])
def test_an_upgrade_that_was_not_taken(egress, api, holt, wants, reply):
    port = egress.box({"allow": allow(api, "api.test", methods=["GET"], path="/ws")})
    api.answer = lambda method, target, *_: reply if target == "/ws" else ok(b"smuggled")
    c = secure(port, api, holt)
    assert ask(c, api, "GET", "/ws", headers=wants)[0] == 502
    assert [x[1] for x in api.seen] == ["/ws"]


@pytest.mark.parametrize("said", [b"GET /forbidden HTTP/1.1\r\nHost: api.test\r\n\r\n", b"\x81\x02hi", b"\x83\x80\0\0\0\0"])
def test_behind_an_upgrade_only_frames_pass(egress, api, holt, said):
    port = egress.box({"allow": allow(api, "api.test", methods=["GET"], path="/ws")})
    api.answer = lambda method, target, *_: switching() if target == "/ws" else ok(b"smuggled")
    c = secure(port, api, holt)
    assert ask(c, api, "GET", "/ws", headers=WANTS)[0] == 101
    c.sendall(said)
    with pytest.raises(OSError):
        if not c.recv(10):
            raise ConnectionResetError
    assert [x[1] for x in api.seen] == ["/ws"]


def test_the_servers_certificate_is_checked(egress, world, holt, tmp_path):
    rogue = Server(Authority(tmp_path, "Rogue").server("api.test"))
    wrong = Server(world.server("else.test"))
    for s, why in ((rogue, b"not trusted"), (wrong, b"not trusted")):
        port = egress.box({"allow": allow(s, "api.test")}, f"sb_{s.port}")
        egress.secrets(f"sb_{s.port}", [binding()])
        c = secure(port, s, holt)
        status, _, body = ask(c, s, headers=[f"X: {PLACEHOLDER}"])
        assert status == 502 and why in body and s.seen == [], body
        s.close()


@pytest.mark.slow
def test_a_server_that_does_not_speak(egress, holt):
    mute = Peer(lambda c: time.sleep(19))
    port = egress.box({"allow": allow(mute, "api.test", methods=["GET"])})
    c = secure(port, mute, holt)
    c.settimeout(60)
    status, _, body = ask(c, mute)
    assert status == 502 and b"TLS with the server took too long" in body
    c, head = connect(port, f"api.test:{mute.port}")
    c.settimeout(60)
    c.sendall(client_hello("api.test"))
    with pytest.raises(ConnectionResetError):
        while c.recv(4096):
            pass
    assert egress.event(what="closed", rule="TLS with the client took too long")
    mute.close()


def test_the_way_in_does_not_matter(egress, api, holt):
    port = egress.box({"allow": allow(api, "api.test")})
    egress.secrets("sb_1", [binding()])
    c, code = socks(port, "api.test", api.port)
    assert code == 0
    c = ssl.create_default_context(cafile=holt.path).wrap_socket(c, server_hostname="api.test")
    ask(c, api, headers=[f"X: {PLACEHOLDER}"])
    assert api.seen[-1][2]["x"] == VALUE


def test_names_in_tls(egress, api, holt):
    port = egress.box({"allow": allow(api, "api.test", "other.test")})
    egress.secrets("sb_1", [binding(hosts=["api.test", "other.test"])])
    c, _ = connect(port, f"api.test:{api.port}")
    c.sendall(client_hello("other.test"))
    with pytest.raises(ConnectionResetError):
        c.recv(10)
    assert egress.event(what="denied")["rule"] == "TLS for another name (other.test)"
    with pytest.raises(OSError):
        secure(port, api, holt, alpn=("h2",))  # HTTP/2 is not spoken
    c = secure(port, api, holt, alpn=("h2", "http/1.1"))
    assert c.selected_alpn_protocol() == "http/1.1"
    names = c.getpeercert()
    assert names["subjectAltName"] == (("DNS", "api.test"),)
    assert ssl.cert_time_to_seconds(names["notAfter"]) - time.time() < 86401


def test_plain_http(egress, plain):
    p = plain.port
    port = egress.box({"allow": allow(plain, "plain.test", "api.test", scheme="http", path="/ok*") + [f"other.test:{p}"]})
    egress.secrets("sb_1", [binding(hosts=["plain.test", "other.test"], plain=True), binding(placeholder="holt_other_secret", value="tls-only-value")])

    def get(target, host, *headers):
        c = proxy(port)
        c.sendall((f"GET {target} HTTP/1.1\r\nHost: {host}:{p}\r\n" + "".join(h + "\r\n" for h in headers) + "\r\n").encode())
        return reply_of(c)

    status, headers, body = get(f"http://plain.test:{p}/ok", "plain.test", f"X: {PLACEHOLDER}", "Proxy-Authorization: x")
    assert status == 200 and headers["connection"] == "close" and VALUE.encode() not in body and PLACEHOLDER.encode() in body
    assert plain.seen[-1][1] == "/ok" and plain.seen[-1][2]["x"] == VALUE and "proxy-authorization" not in plain.seen[-1][2]
    assert get(f"http://plain.test:{p}/no", "plain.test")[0] == 403
    assert get(f"http://api.test:{p}/ok", "api.test", f"X: {PLACEHOLDER} holt_other_secret")[0] == 200  # not said for plain HTTP
    assert plain.seen[-1][2]["x"] == f"{PLACEHOLDER} holt_other_secret"
    plain.answer = lambda *_: ok(b"tls-only-value")  # it may have come there by TLS
    assert get(f"http://api.test:{p}/ok", "api.test")[2] == b"holt_other_secret"
    plain.answer = None
    get(f"http://other.test:{p}/any", "other.test", f"X: {PLACEHOLDER}")
    assert plain.seen[-1][2]["x"] == VALUE
    # in a tunnel, or redirected: the rule says that it is HTTP
    c, head = connect(port, f"plain.test:{p}")
    assert ask(c, plain, "GET", "/ok/1", "plain.test", [f"X: {PLACEHOLDER}"])[0] == 200
    assert plain.seen[-1][2]["x"] == VALUE
    assert ask(c, plain, "GET", "/no", "plain.test")[0] == 403
    # a port of which nothing says that it is HTTP is not looked at
    c, head = connect(port, f"other.test:{p}")
    ask(c, plain, "GET", "/", "other.test", [f"X: {PLACEHOLDER}"])
    assert plain.seen[-1][2]["x"] == PLACEHOLDER


def test_without_an_authority_nothing_passes(names, world, api):
    e = Egress(BUILD + "/holt-egress", names.address, "--cacert", world.path)
    try:
        port = e.box({"allow": allow(api, "api.test", methods=["GET"])})
        with pytest.raises(OSError):
            secure(port, api, world)
        assert e.event(what="denied")["rule"] == "interception has no authority"
        assert "certificate" in e.call(11, b"\x01\0\0\0x\x01\0\0\0y")
        assert api.connections == 0 or api.seen == []
    finally:
        e.close()


def test_a_person_lets_a_connection_in_and_rules_still_judge_its_requests(egress, api, holt):
    deny = [{"host": "api.test", "ports": [api.port], "scheme": "https", "methods": ["DELETE"]}]
    port = egress.box({"mode": "allowlist", "allow": [LOOPBACK], "deny": deny, "unknown": "ask"})
    c = proxy(port)
    c.sendall(f"CONNECT api.test:{api.port} HTTP/1.1\r\nHost: api.test:{api.port}\r\n\r\n".encode())
    egress.wait(lambda: egress.questions)
    egress.answer(egress.questions.pop()["question"], 1)
    assert read_head(c).startswith(b"HTTP/1.1 200")
    c = ssl.create_default_context(cafile=holt.path).wrap_socket(c, server_hostname="api.test")
    assert ask(c, api, "GET", "/")[0] == 200
    assert ask(c, api, "DELETE", "/")[0] == 403
    assert [s[0] for s in api.seen] == ["GET"]


def test_bytes_behind_a_reply_answer_nobody(egress, api, holt):
    port = egress.box({"allow": allow(api, "api.test", methods=["GET"])})
    api.answer = lambda *_: ok(b"1") + ok(b"stray")
    c = secure(port, api, holt)
    c.sendall((f"GET /1 HTTP/1.1\r\nHost: api.test:{api.port}\r\n\r\n" * 2).encode())
    assert reply_of(c)[2] == b"1"
    assert c.recv(10) == b""


@pytest.mark.parametrize("reply", [b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", b"HTTP/2 200\r\n\r\n", b"nonsense\r\n\r\n",
                                   b"HTTP/1.1 200 OK\ncontent-length: 0\n\n", b"HTTP/1.1 101 Switching Protocols\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n" * 20], ids=range(6))
def test_replies_that_are_malformed(egress, api, holt, reply):
    port = egress.box({"allow": allow(api, "api.test", methods=["GET"])})
    api.answer = lambda *_: reply
    c = secure(port, api, holt)
    c.sendall(f"GET / HTTP/1.1\r\nHost: api.test:{api.port}\r\n\r\n".encode())
    got = b""
    while part := c.recv(65536):
        got += part
    assert b"HTTP/1.1 502 " in got and b" 200 " not in got


def test_a_reply_that_breaks_off(egress, api, holt):
    port = egress.box({"allow": allow(api, "api.test", methods=["GET"])})
    api.answer = lambda *_: b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\nconnection: close\r\n\r\nabc"
    c = secure(port, api, holt)
    with pytest.raises(OSError):
        _, _, body = ask(c, api)
        assert body == b"abc"
        c.recv(1)
        raise OSError
    v = egress.event(what="closed")
    assert v["rule"] == "the reply is incomplete"


def test_secrets_of_another_sandbox(egress, api, holt):
    one, two = (egress.box({"allow": allow(api, "api.test", methods=["GET"])}, n) for n in ("sb_1", "sb_2"))
    egress.secrets("sb_1", [binding()])
    for port, got in ((one, VALUE), (two, PLACEHOLDER)):
        ask(secure(port, api, holt), api, headers=[f"X: {PLACEHOLDER}"])
        assert api.seen[-1][2]["x"] == got
    egress.remove("sb_1")
    egress.box({"allow": allow(api, "api.test", methods=["GET"])}, "sb_1")
    assert egress.secrets("sb_3", [binding()]) == ""
    egress.connect()
    assert sorted(egress.known) == ["sb_1", "sb_2"] and egress.has_ca == 1
