"""holt-egress by itself: the proxy, the judge's answers on the wire, the resolver, its limits."""
import contextlib
import os
import re
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest

from daemon import wait_for
from egress import (DNS_TCP, DNS_UDP, HELLO, TCP4, VERSION, Egress, Names, Peer, basic, client_hello, connect, echo, jwt,
                    proxy, read_head, socks)

BUILD = os.environ.get("HOLT_BUILD", "build")
LOOPBACK = {"cidr": "127.0.0.0/8", "ports": ["1-65535"]}


NAMES = {"plain.test": ["127.0.0.1"], "tls.test": ["127.0.0.1"], "private.test": ["10.9.8.7"],
         "both.test": ["10.9.8.7", "127.0.0.1"], "meta.test": ["169.254.169.254"], "mute.test": False}


@pytest.fixture()
def egress(names):
    e = Egress(BUILD + "/holt-egress", names.address)
    yield e
    e.close()


@pytest.fixture(scope="module")
def echoes():
    p = Peer(echo)
    yield p
    p.close()


def everything(c):
    data = b""
    while True:
        part = c.recv(65536)
        if not part:
            return data
        data += part


def test_connect_leads_to_an_allowed_name_only(egress, echoes):
    port = egress.box({"allow": [f"plain.test:{echoes.port}", LOOPBACK]})
    c, head = connect(port, f"PLAIN.test.:{echoes.port}")
    assert head.startswith("HTTP/1.1 200")
    c.sendall(b"hello")
    assert c.recv(10) == b"hello"
    c.shutdown(socket.SHUT_WR)  # a half-close is passed on, and comes back
    assert c.recv(10) == b""
    v = egress.event(what="closed")
    assert (v["host"], v["port"], v["up"], v["down"], v["id"]) == ("plain.test", echoes.port, 5, 5, "sb_1")
    assert egress.event(what="allowed")["rule"] == f"allow plain.test:{echoes.port}"
    c, head = connect(port, f"other.test:{echoes.port}")
    assert head.startswith("HTTP/1.1 403")
    assert f"other.test port {echoes.port} is refused: no rule allows this host and port (--allow other.test:{echoes.port})\n" in head
    assert f"403 refused by holt: no rule allows this host and port (--allow other.test:{echoes.port})\r\n" in head
    assert "(--allow other.test)\r\n" in connect(port, "other.test:443")[1]
    assert egress.event(what="denied")["host"] == "other.test"
    assert connect(port, "plain.test:1")[1].startswith("HTTP/1.1 403")


def test_names_are_resolved_once_and_private_addresses_refused(egress, names, echoes):
    p = echoes.port
    port = egress.box({"allow": [f"{n}.test:{p}" for n in ("private", "meta", "both", "plain")]})
    for n, address, kind in (("private", "10.9.8.7", "private"), ("meta", "169.254.169.254", "link-local"), ("plain", "127.0.0.1", "loopback")):
        head = connect(port, f"{n}.test:{p}")[1]
        assert head.startswith("HTTP/1.1 403") and f"it resolves to a {kind} address" in head and "egress_internal" in head
        assert address not in head, "names of the inside are not looked up for a sandbox"
        assert egress.event(host=f"{n}.test")["rule"] == f"it resolves to {address}, a {kind} address"
    del names.asked[:]
    egress.set("sb_1", {"allow": [f"both.test:{p}", {"cidr": "127.0.0.1", "ports": [p]}]})
    c, head = connect(port, f"both.test:{p}")  # of two addresses only the allowed one is dialled
    assert head.startswith("HTTP/1.1 200")
    assert names.asked.count("both.test") == 2  # A and AAAA, each once
    assert connect(port, f"no-such.test:{p}")[1].startswith("HTTP/1.1 403")


def test_rebinding_changes_nothing_between_check_and_dial(names, echoes):
    seen = []

    def rebinds():
        seen.append(1)
        return ["10.1.1.1"] if len(seen) > 2 else ["127.0.0.1"]

    names.names["rebind.test"] = rebinds
    e = Egress(BUILD + "/holt-egress", names.address)
    try:
        port = e.box({"allow": [f"rebind.test:{echoes.port}", LOOPBACK]})
        c, head = connect(port, f"rebind.test:{echoes.port}")
        assert head.startswith("HTTP/1.1 200")
        c.sendall(b"x")
        assert c.recv(1) == b"x"
        assert connect(port, f"rebind.test:{echoes.port}")[1].startswith("HTTP/1.1 403")
    finally:
        e.close()


@pytest.mark.parametrize("authority, status", [
    ("127.0.0.1:{p}", 200), ("[::ffff:127.0.0.1]:{p}", 200), ("0177.0.0.1:{p}", 400), ("0x7f.0.0.1:{p}", 400),
    ("2130706433:{p}", 400), ("127.1:{p}", 400), ("127.0.0.1.:{p}", 400), ("plain.test", 400), ("plain.test:", 400),
    ("plain.test:0", 400), ("plain.test:99999", 400), ("pl\xe4in.test:{p}", 400), ("plain.test@x:{p}", 400),
    ("::1:{p}", 400), ("10.9.8.7:{p}", 403), ("[::1]:{p}", 403), ("*.test:{p}", 400), ("a..b:{p}", 400)])
def test_odd_authorities(egress, echoes, authority, status):
    port = egress.box({"allow": [{"cidr": "127.0.0.0/8", "ports": [echoes.port]}]})
    head = connect(port, authority.format(p=echoes.port))[1]
    assert head.startswith(f"HTTP/1.1 {status}"), head


def test_absolute_form_http(egress, web):
    port = egress.box({"allow": [f"plain.test:{web.port}", LOOPBACK]})
    c = proxy(port)
    body = b"x" * 200000
    c.sendall(f"POST http://plain.test:{web.port}/a?b=c HTTP/1.1\r\nHost: plain.test:{web.port}\r\nProxy-Authorization: Basic eDp5\r\n"
              f"Proxy-Connection: keep-alive\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-Kept: 2\r\n"
              f"Content-Length: {len(body)}\r\n\r\n".encode() + body + b"GET http://evil.test/ HTTP/1.1\r\n\r\n")
    got = everything(c)
    head, _, sent = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    line, *fields = sent.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert line == b"POST /a?b=c HTTP/1.1"
    assert sorted(fields) == sorted([b"host: plain.test:%d" % web.port, b"x-kept: 2", b"content-length: 200000", b"connection: close"])
    assert sent.partition(b"\r\n\r\n")[2] == body  # and nothing of what followed
    c = proxy(port)
    c.sendall(f"PUT http://plain.test:{web.port}/ HTTP/1.1\r\nHost: plain.test:{web.port}\r\nTransfer-Encoding: chunked\r\n\r\n"
              "3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n".encode())
    assert everything(c).endswith(b"3\r\nabc\r\n0\r\n\r\n")


@pytest.mark.parametrize("request_text, status", [
    ("GET http://plain.test:{p}/ HTTP/1.1\r\nHost: other.test\r\n\r\n", 400),
    ("GET http://plain.test:{p}/ HTTP/1.1\r\nHost: plain.test:{p}\r\nHost: x\r\n\r\n", 400),
    ("GET http://plain.test:{p}/ HTTP/1.1\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: plain.test:{p}\r\n\r\n", 400),
    ("GET https://plain.test:{p}/ HTTP/1.1\r\nHost: plain.test:{p}\r\n\r\n", 400),
    ("GET ftp://plain.test:{p}/ HTTP/1.1\r\nHost: plain.test:{p}\r\n\r\n", 400),
    ("GET http://u:p@plain.test:{p}/ HTTP/1.1\r\nHost: plain.test:{p}\r\n\r\n", 400),
    ("GET http://other.test:{p}/ HTTP/1.1\r\nHost: other.test:{p}\r\n\r\n", 403),
    ("GET http://plain.test/ HTTP/1.1\r\nHost: plain.test\r\n\r\n", 403),
    ("POST http://plain.test:{p}/ HTTP/1.1\r\nHost: plain.test:{p}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    ("POST http://plain.test:{p}/ HTTP/1.1\r\nHost: plain.test:{p}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    ("GET http://plain.test:{p}/ HTTP/1.1\nHost: plain.test:{p}\n\n", 400),
    ("GET http://plain.test:{p}/ HTTP/1.1\r\nHost : plain.test:{p}\r\n\r\n", 400),
    ("GET http://plain.test:{p}/ HTTP/1.1\r\nHost: plain.test:{p}\r\nX: " + "a" * 40000 + "\r\n\r\n", 431),
])
def test_http_that_two_could_read_in_two_ways(egress, web, request_text, status):
    port = egress.box({"allow": [f"plain.test:{web.port}", LOOPBACK]})
    before = web.count
    c = proxy(port)
    c.sendall(request_text.format(p=web.port).encode())
    assert everything(c).startswith(b"HTTP/1.1 %d" % status)
    assert web.count == before


def test_socks(egress, echoes):
    port = egress.box({"allow": [f"plain.test:{echoes.port}", f"127.0.0.1:{echoes.port}"]})
    for host, kind in (("plain.test", 3), ("127.0.0.1", 1), ("127.0.0.1", 3)):
        c, code = socks(port, host, echoes.port, kind=kind)
        assert code == 0
        c.sendall(b"hi")
        assert c.recv(2) == b"hi"
    assert socks(port, "other.test", echoes.port)[1] == 2
    assert socks(port, "::1", echoes.port, kind=4)[1] == 2
    assert socks(port, "10.0.0.1", echoes.port, kind=1)[1] == 2
    assert socks(port, "plain.test", echoes.port, command=3)[1] == 7  # UDP
    assert socks(port, "plain.test", echoes.port, command=2)[1] == 7  # BIND
    assert socks(port, "a\0b", echoes.port)[1] == 8
    assert socks(port, "0x7f.1", echoes.port)[1] == 8
    c = proxy(port)
    c.sendall(b"\x05\x01\x02")  # only with a password
    assert c.recv(2) == b"\x05\xff"
    c = proxy(port)
    c.sendall(b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00")  # SOCKS4
    with pytest.raises(ConnectionResetError):
        c.recv(1)


def test_a_port_for_tls_wants_the_name_in_the_hello(egress, tmp_path):
    import subprocess
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                    "-out", cert, "-days", "2", "-subj", "/CN=tls.test", "-addext", "subjectAltName=DNS:tls.test"],
                   check=True, capture_output=True)
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ctx.load_cert_chain(cert, key)
    seen = []

    def raw(c):
        seen.append(c.recv(65536))

    secure, plain = Peer(echo, tls=ctx), Peer(raw)
    allow = [{"host": "tls.test", "ports": [secure.port, plain.port], "scheme": "https"}, LOOPBACK]
    port = egress.box({"allow": allow})
    c, head = connect(port, f"tls.test:{secure.port}")
    assert head.startswith("HTTP/1.1 200")
    client = ssl.create_default_context(cafile=cert)
    with client.wrap_socket(c, server_hostname="TLS.test") as t:
        t.sendall(b"secret")
        assert t.recv(10) == b"secret"
    for first, why in ((client_hello("other.test"), "TLS for another name (other.test)"),
                       (client_hello(None), "TLS without a server name"),
                       (b"GET / HTTP/1.1\r\nHost: tls.test\r\n\r\n", "a request without TLS on a port for TLS"),
                       (b"\x16\x03\x01\x00\x00", "a request without TLS on a port for TLS"),
                       (b"\x16\x03\x01\x40\x00\x01\x00\xff\xff", "a request without TLS on a port for TLS"),
                       (b"SSH-2.0-x\r\n", "a request without TLS on a port for TLS")):
        del egress.events[:]
        c, head = connect(port, f"tls.test:{plain.port}")
        c.sendall(first)
        with pytest.raises(ConnectionResetError):
            assert c.recv(10) == b""
            raise ConnectionResetError
        assert egress.event(what="denied")["rule"] == why
    assert [s for s in seen if s] == []  # no byte came through
    c, head = connect(port, f"tls.test:{secure.port}")  # in pieces it is the same hello
    for b in client_hello("tls.test"):
        c.send(bytes([b]))
    assert c.recv(1) == b"\x16"
    c = proxy(port)
    c.sendall(f"GET http://tls.test:{plain.port}/ HTTP/1.1\r\nHost: tls.test:{plain.port}\r\n\r\n".encode())
    assert b"plain HTTP on a port for TLS" in everything(c)
    secure.close()
    plain.close()


def ask(query, sock, to):
    sock.sendto(query, to)
    return sock.recv(1000)


def question(name, kind=1, head=b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"):
    labels = b"".join(bytes([len(x)]) + x for x in name.encode("latin-1").split(b"."))
    return head + labels + b"\0" + struct.pack(">HH", kind, 1)


def test_the_resolver_makes_addresses_up(egress, names, echoes):
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    udp.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO
    tcp, listener = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0))
    tcp.setblocking(False)
    udp.setblocking(False)
    listener.setblocking(False)
    allow = [f"plain.test:{echoes.port}", LOOPBACK]
    assert egress.set("sb_1", {"allow": allow}, [(TCP4, listener), (DNS_UDP, udp), (DNS_TCP, tcp)]) == ""
    to, to_tcp, port = udp.getsockname(), tcp.getsockname(), listener.getsockname()[1]
    for s in (udp, tcp, listener):
        s.close()
    del names.asked[:]
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(60)
    one = ask(question("Plain.TEST"), s, to)
    assert one[:4] == b"\x12\x34\x81\x80" and one[6:8] == b"\0\1"
    made_up = socket.inet_ntoa(one[-4:])
    assert made_up.startswith("198.18.") and ask(question("plain.test"), s, to)[-4:] == one[-4:]
    assert ask(question("other.test"), s, to)[-4:] != one[-4:]
    for kind in (28, 16, 15, 5, 12, 65, 255):
        assert ask(question("plain.test", kind), s, to)[2:8] == b"\x81\x80\0\1\0\0"  # no data
    for bad in ("a b.test", "x\0y.test", "127.1", "-a.test"):
        assert ask(question(bad), s, to)[3] & 15 == 3
    s.sendto(b"\x12", to)
    s.sendto(question("a.test")[:-3], to)
    assert s.recv(100)[3] & 15 == 1
    assert names.asked == []  # nobody was asked
    with socket.create_connection(to_tcp) as t:
        q = question("plain.test")
        t.sendall(struct.pack(">H", len(q)) + q)
        assert t.recv(1000)[-4:] == one[-4:]
    # the proxy maps the address back, whichever way it comes
    c, code = socks(port, made_up, echoes.port, kind=1)
    assert code == 0
    c.sendall(b"z")
    assert c.recv(1) == b"z"
    assert connect(port, f"{made_up}:{echoes.port}")[1].startswith("HTTP/1.1 200")
    head = connect(port, f"198.19.77.77:{echoes.port}")[1]
    assert "this address no longer belongs to a name" in head


def asks(port, host, dport):
    c = proxy(port)
    c.sendall(f"CONNECT {host}:{dport} HTTP/1.1\r\nHost: {host}:{dport}\r\n\r\n".encode())
    return c


ASK = {"mode": "allowlist", "allow": [LOOPBACK], "unknown": "ask"}


def test_a_person_is_asked(egress, echoes):
    port = egress.box(ASK)
    c = asks(port, "plain.test", echoes.port)
    egress.wait(lambda: egress.questions)
    q = egress.questions.pop()
    assert (q["id"], q["host"], q["port"]) == ("sb_1", "plain.test", echoes.port)
    egress.connect()  # another holtd is asked again
    egress.wait(lambda: egress.questions)
    assert egress.questions.pop() == q
    egress.answer(q["question"] + 1, 0)  # nobody's
    egress.answer(q["question"], 1)
    assert read_head(c).startswith(b"HTTP/1.1 200")
    egress.answer(q["question"], 0)  # it was answered
    egress.set("sb_1", ASK)  # the same again: what a person granted stays
    c.sendall(b"x")
    assert c.recv(1) == b"x"
    d = asks(port, "plain.test", echoes.port)  # it was for one connection
    egress.wait(lambda: egress.questions)
    egress.answer(egress.questions.pop()["question"], 0)
    assert b"refused by holt: a person denied it" in everything(d)
    d = asks(port, "tls.test", 9)
    egress.wait(lambda: egress.questions)
    egress.answer(egress.questions.pop()["question"], 0, "nobody decided in time")
    assert b"nobody decided in time" in everything(d)
    egress.set("sb_1", {"mode": "allowlist", "allow": [LOOPBACK]})
    with pytest.raises(ConnectionError):
        c.recv(1)


def test_what_people_answered_comes_with_the_policy(egress, echoes):
    port = egress.box(ASK)
    there = f"plain.test:{echoes.port}"
    c, d = asks(port, "plain.test", echoes.port), asks(port, "tls.test", echoes.port)
    egress.wait(lambda: len(egress.questions) == 2)
    learned = f"+{there}\n-tls.test:{echoes.port}\nnonsense\n+:1\n+a b:1\n+c.test:99999\n"
    assert egress.set("sb_1", ASK, learned=learned) == ""  # those who wait are judged by it
    assert read_head(c).startswith(b"HTTP/1.1 200")
    assert f"deny tls.test:{echoes.port}".encode() in everything(d)
    assert connect(port, there)[1].startswith("HTTP/1.1 200") and len(egress.questions) == 2
    assert egress.set("sb_1", ASK, learned=f"+{there}\n") == ""
    c.sendall(b"x")
    assert c.recv(1) == b"x"  # another holtd says the same: nothing changes
    assert egress.set("sb_1", ASK) == ""
    with pytest.raises(ConnectionError):
        c.recv(1)


def test_what_people_answered_counts_only_where_the_policy_asks(egress, echoes):
    there = f"plain.test:{echoes.port}"
    strict = {"mode": "allowlist", "allow": [LOOPBACK]}
    port = egress.box(strict)
    assert egress.set("sb_1", strict, learned=f"+{there}\n") == ""
    assert "403 refused by holt: no rule" in connect(port, there)[1]
    assert egress.set("sb_1", {**ASK, "allow": [LOOPBACK, there]}, learned=f"-{there}\n") == ""  # its own rules go first
    assert connect(port, there)[1].startswith("HTTP/1.1 200")
    assert egress.set("sb_1", {**ASK, "deny": ["plain.test"]}, learned=f"+{there}\n") == ""
    assert "deny plain.test" in connect(port, there)[1]


def test_many_questions_do_not_shut_holtd_out(egress):
    ports = [egress.box({"mode": "allowlist", "unknown": "ask"}, f"sb_{i}") for i in range(9)]
    waiting = []
    for port in ports:
        for _ in range(500):
            waiting.append(asks(port, "unknown.test", 80))
        egress.wait(lambda: len(egress.questions) == len(waiting), 30)
    egress.questions.clear()
    egress.sock.close()
    egress.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    egress.sock.connect(egress.dir.name + "/egress.sock")
    egress.send(HELLO, 0, struct.pack("<HH", VERSION, VERSION))
    time.sleep(0.5)  # a holtd that is slow to read
    egress.wait(lambda: len(egress.questions) == len(waiting), 30)
    for c in waiting:
        c.close()


def test_who_gives_up_waiting_holds_no_place(egress, echoes):
    port = egress.box(ASK)
    c = asks(port, "plain.test", echoes.port)
    egress.wait(lambda: egress.questions)
    c.close()

    def nobody_asks():
        egress.questions.clear()
        egress.connect()
        egress.set("sb_1", ASK)
        return egress.questions == []

    wait_for(nobody_asks)


def test_connections_outlive_holtd_and_policies_are_kept(egress, echoes):
    port = egress.box({"allow": [f"plain.test:{echoes.port}", LOOPBACK]})
    c, _ = connect(port, f"plain.test:{echoes.port}")
    egress.sock.close()
    c.sendall(b"a")
    assert c.recv(1) == b"a"
    assert connect(port, f"other.test:{echoes.port}")[1].startswith("HTTP/1.1 403")
    assert connect(port, f"plain.test:{echoes.port}")[1].startswith("HTTP/1.1 200")
    egress.sock = None
    egress.connect()
    assert egress.known == ["sb_1"]
    assert egress.event(what="denied")["host"] == "other.test"  # what happened meanwhile is told
    c.sendall(b"b")
    assert c.recv(1) == b"b"
    # another policy ends what it does not allow, and only that
    assert egress.set("sb_1", {"allow": [LOOPBACK]}) == ""
    with pytest.raises(ConnectionResetError):
        c.recv(1)
    assert egress.remove("sb_1") == ""
    with pytest.raises(OSError):
        proxy(port)


def test_an_operator_lets_names_lead_inside(egress, echoes):
    """A mirror of a public name in the company's network: that name, to that network, and nothing else."""
    p = echoes.port
    inside = "=plain.test 127.0.0.0/8\n=*.corp.test 10.0.0.0/8\n=broken\n=x.test 1.2.3.4/99\n"
    port = egress.box({"allow": [f"{n}.test:{p}" for n in ("plain", "both", "private")], "deny": [{"cidr": "127.0.0.9/32"}]})
    assert connect(port, f"plain.test:{p}")[1].startswith("HTTP/1.1 403")
    policy = {"allow": [f"{n}.test:{p}" for n in ("plain", "both", "private")]}
    assert egress.set("sb_1", policy, learned=inside) == ""
    assert connect(port, f"plain.test:{p}")[1].startswith("HTTP/1.1 200")
    for n in ("both", "private"):
        assert connect(port, f"{n}.test:{p}")[1].startswith("HTTP/1.1 403"), "another name"
    assert egress.set("sb_1", {**policy, "deny": [{"cidr": "127.0.0.0/8"}]}, learned=inside) == ""
    assert connect(port, f"plain.test:{p}")[1].startswith("HTTP/1.1 403"), "what the sandbox's own policy denies stays denied"


def test_a_refusal_says_what_would_allow_it(egress, echoes):
    port = egress.box({"allow": ["a.test"]})
    head = connect(port, f"other.test:{echoes.port}")[1]
    assert f"--allow other.test:{echoes.port}" in head
    assert "--allow" not in connect(egress.box({"allow": ["a.test"], "deny": ["b.test"]}, "sb_2"), "b.test:443")[1], "a rule that denies is not lifted by one that allows"


def test_idle_connections_do_not_close_the_gate(egress, echoes):
    """Who says nothing holds no place against those who show their credentials."""
    egress.box({"allow": [f"plain.test:{echoes.port}", LOOPBACK]})
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    assert egress.listen("127.0.0.1", port, "secret") == ""
    held = [proxy(port) for _ in range(600)]
    try:
        for _ in range(3):
            c, head = connect(port, f"plain.test:{echoes.port}", basic(jwt("secret", "sb_1")))
            assert head.startswith("HTTP/1.1 200")
            c.close()
        assert sum(is_open(c) for c in held) < 520, "the oldest went"
    finally:
        for c in held:
            c.close()


def is_open(c):
    c.setblocking(False)
    try:
        return c.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_credentials_on_tcp(egress, echoes):
    egress.box({"allow": [f"plain.test:{echoes.port}", LOOPBACK]})
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    assert egress.listen("127.0.0.1", port, "secret") == ""
    to = f"plain.test:{echoes.port}"
    c, head = connect(port, to, basic(jwt("secret", "sb_1")))
    assert head.startswith("HTTP/1.1 200")
    c.sendall(b"hi")
    assert c.recv(2) == b"hi"
    assert egress.event(what="allowed")["id"] == "sb_1"
    assert connect(port, f"other.test:{echoes.port}", basic(jwt("secret", "sb_1")))[1].startswith("HTTP/1.1 403")
    good = jwt("secret", "sb_1")
    for bad in ("", basic(jwt("wrong", "sb_1")), basic(jwt("secret", "sb_1", exp=int(time.time()) - 1)), basic(jwt("secret", "sb_2")),
                basic(jwt("secret", "sb_1", head={"alg": "none"})), basic(good.rsplit(".", 1)[0] + "."), basic(good + "x"), basic("x"),
                basic(jwt("secret", "")), basic(jwt("secret", "sb_1", exp="x")), basic(good).replace("Basic", "Bearer"),
                "Proxy-Authorization: Basic ????\r\n", "Proxy-Authorization: Basic " + "QUFB" * 6000 + "\r\n"):
        head = connect(port, to, bad)[1]
        assert head.startswith("HTTP/1.1 407") and 'proxy-authenticate: Basic realm="holt"' in head, (bad, head)
    c = proxy(port)
    c.sendall(b"\x05\x01\x00")  # SOCKS has no credentials here
    with pytest.raises(ConnectionResetError):
        c.recv(1)
    assert egress.listen("127.0.0.1", port, "other") == ""  # another key
    assert connect(port, to, basic(good))[1].startswith("HTTP/1.1 407")
    assert connect(port, to, basic(jwt("other", "sb_1")))[1].startswith("HTTP/1.1 200")
    egress.remove("sb_1")  # tokens die with their sandbox
    assert "their sandbox was destroyed" in connect(port, to, basic(jwt("other", "sb_1")))[1]


def test_the_proxy_on_tcp_is_shut_again(egress, echoes):
    """By a holtd that wants none, or another: what is open from an earlier one does not stay."""
    egress.box({"allow": [f"plain.test:{echoes.port}", LOOPBACK]})
    with socket.create_server(("127.0.0.1", 0)) as s, socket.create_server(("127.0.0.1", 0)) as busy:
        port, taken = s.getsockname()[1], busy.getsockname()[1]
        s.close()
        good = basic(jwt("secret", "sb_1"))
        for then in (("", port), ("127.0.0.1", taken)):
            assert egress.listen("127.0.0.1", port, "secret") == ""
            assert connect(port, f"plain.test:{echoes.port}", good)[1].startswith("HTTP/1.1 200")
            assert ("in use" in egress.listen(*then, "other")) == (then[1] == taken)
            with pytest.raises(ConnectionRefusedError):
                connect(port, f"plain.test:{echoes.port}", good)
        assert egress.listen("127.0.0.1", port, "secret") == "" == egress.listen("every.test", port, "other"), "the same port on all addresses"
        assert connect(port, f"plain.test:{echoes.port}", good)[1].startswith("HTTP/1.1 407")
        assert connect(port, f"plain.test:{echoes.port}", basic(jwt("other", "sb_1")))[1].startswith("HTTP/1.1 200")


def test_credentials_by_a_session_s_id(egress, echoes):
    """agentbox's own name of it comes first: one that looks like another sandbox's id is still its own."""
    may = {"allow": [f"plain.test:{echoes.port}", LOOPBACK]}
    egress.box(may, "sb_1", alias="mine")
    egress.box("none", "sb_2", alias="sb_1")
    egress.box(may, "sb_3", alias="sbx/theirs")
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    assert egress.listen("127.0.0.1", port, "secret") == ""
    for session, status in (("mine", 200), ("sb_1", 403), ("sb_3", 200), ("theirs", 407), ("agentbox/mine", 407), ("min", 407), ("minex", 407)):
        head = connect(port, f"plain.test:{echoes.port}", basic(jwt("secret", session)))[1]
        assert head.startswith(f"HTTP/1.1 {status}"), (session, head)
    for sandbox, status in (("sb_1", 200), ("sb_3", 407), ("sb_0", 407), ("", 407), (1, 407), ("s" * 64, 407)):
        head = connect(port, f"plain.test:{echoes.port}", basic(jwt("secret", "mine", sandbox_id=sandbox)))[1]
        assert head.startswith(f"HTTP/1.1 {status}"), (sandbox, head)
    egress.remove("sb_1")
    assert connect(port, f"plain.test:{echoes.port}", basic(jwt("secret", "mine")))[1].startswith("HTTP/1.1 407")


def test_budgets(egress, echoes):
    port = egress.box({"allow": [f"plain.test:{echoes.port}", LOOPBACK], "connections": 2, "bytes": 100000})
    c, head = connect(port, f"plain.test:{echoes.port}")
    with pytest.raises(ConnectionResetError):
        c.sendall(b"x" * 300000)
        while c.recv(65536):
            pass
        raise ConnectionResetError
    assert egress.event(what="closed")["rule"] == "the budget for this destination is spent"
    assert "budget" in connect(port, f"plain.test:{echoes.port}")[1]


def test_budgets_count_the_first_bytes_and_what_was_open_before(egress):
    got = []

    def sink(c):
        while part := c.recv(65536):
            got.append(part)

    peer = Peer(sink)
    there = f"plain.test:{peer.port}"
    rules = {"allow": [there, LOOPBACK]}
    port = egress.box({**rules, "bytes": 5000})
    clients = [proxy(port) for _ in range(2)]
    for c in clients:  # heads alone, to a server that says nothing
        c.sendall(f"GET http://{there}/?{'x' * 3000} HTTP/1.1\r\nHost: {there}\r\n\r\n".encode())
    assert egress.event(what="closed")["rule"] == "the budget for this destination is spent"
    assert sum(map(len, got)) <= 5000
    assert "budget" in connect(port, there)[1]
    assert egress.set("sb_1", rules) == ""
    c, head = connect(port, there)
    assert head.startswith("HTTP/1.1 200")
    assert egress.set("sb_1", {**rules, "bytes": 100}) == ""  # more than that is spent already
    with pytest.raises(ConnectionError):
        c.recv(1)
    port = egress.box(rules, "sb_2")
    c, head = connect(port, there)
    del got[:]
    assert egress.set("sb_2", {**rules, "bytes": 100}) == ""
    c.sendall(b"x" * 90)
    wait_for(lambda: b"".join(got) == b"x" * 90)
    c.sendall(b"x" * 90)
    with pytest.raises(ConnectionError):
        c.recv(1)
    assert b"".join(got) == b"x" * 90
    peer.close()


def test_a_policy_acts_on_who_waits_for_a_name(echoes, request):
    go = threading.Event()
    slow = Names({"plain.test": lambda: (go.wait(60), ["127.0.0.1"])[1]})
    request.addfinalizer(slow.close)
    e = Egress(BUILD + "/holt-egress", slow.address)
    request.addfinalizer(e.close)
    there, before = f"plain.test:{echoes.port}", echoes.count
    port = e.box({"allow": [there, LOOPBACK]})
    c, d = asks(port, "plain.test", echoes.port), asks(port, "plain.test", echoes.port)
    wait_for(lambda: slow.asked)
    assert e.set("sb_1", ASK) == ""  # whom it allowed it asks about now
    e.wait(lambda: len(e.questions) == 2)
    e.answer(e.questions.pop()["question"], 1)
    e.answer(e.questions.pop()["question"], 1)
    assert e.set("sb_1", {"allow": [LOOPBACK]}) == ""
    go.set()
    for x in (c, d):
        assert b"403 refused by holt: no rule" in everything(x)
    assert echoes.count == before


def test_names_of_one_sandbox_leave_room_for_others(egress, echoes):
    hostile = egress.box({"allow": ["mute.test"]}, "sb_hostile")
    other = egress.box({"allow": [f"plain.test:{echoes.port}", LOOPBACK]}, "sb_other")
    held = [asks(hostile, "mute.test", 443) for _ in range(470)]
    v = egress.event(what="denied")
    assert (v["id"], v["host"], v["rule"]) == ("sb_hostile", "mute.test", "too many of its names are being resolved")
    assert b"403 refused by holt: too many of its names are being resolved" in everything(held[-1])
    c, head = connect(other, f"plain.test:{echoes.port}")
    assert head.startswith("HTTP/1.1 200")
    for x in (c, *held):
        x.close()


def test_other_sandboxes_policies_are_their_own(egress, echoes):
    one = egress.box({"allow": [f"plain.test:{echoes.port}", LOOPBACK]}, "sb_1")
    two = egress.box({"mode": "open"}, "sb_2")
    three = egress.box("none", "sb_3")
    assert connect(one, f"plain.test:{echoes.port}")[1].startswith("HTTP/1.1 200")
    assert "loopback" in connect(two, f"plain.test:{echoes.port}")[1]
    assert "mode none" in connect(three, f"plain.test:{echoes.port}")[1]
    assert "mode 'none' has no rules" in egress.set("sb_3", {"mode": "none", "allow": ["a.b"]})
    assert "no listeners" in egress.set("sb_4", "none")


def test_a_slow_reader_slows_only_itself(egress, names):
    size = 64 << 20
    sent = []

    def flood(c):
        block = b"f" * 65536
        for _ in range(size // len(block)):
            c.sendall(block)
            sent.append(len(block))
        c.shutdown(socket.SHUT_WR)

    p = Peer(flood)
    port = egress.box({"allow": [f"plain.test:{p.port}", LOOPBACK]})
    c, head = connect(port, f"plain.test:{p.port}")
    time.sleep(0.5)
    assert sum(sent) < size / 2  # back-pressure reaches the server
    with open(f"/proc/{egress.process.pid}/status") as f:
        rss = next(int(x.split()[1]) for x in f if x.startswith("VmRSS"))
    assert rss < 200 * 1024
    got = len(head.partition("\r\n\r\n")[2])
    while True:
        part = c.recv(1 << 20)
        if not part:
            break
        got += len(part)
    assert got == size
    p.close()


def test_many_connections_are_bounded(egress, echoes):
    port = egress.box({"allow": [f"plain.test:{echoes.port}", LOOPBACK]})
    held = [proxy(port) for _ in range(520)]
    assert egress.event(what="denied")["rule"] == "too many connections at once"
    for c in held:
        c.close()

    def is_let_in():
        with contextlib.suppress(ConnectionError):
            return connect(port, f"plain.test:{echoes.port}")[1].startswith("HTTP/1.1 200")

    wait_for(is_let_in)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def limit_files(pid, soft):
    """As its user: prlimit(2) of another's process needs a capability that root may lack."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        uid = int(re.search(r"^Uid:\s+(\d+)", f.read(), re.M)[1])
    who = {"user": uid, "group": uid, "extra_groups": []} if os.geteuid() == 0 else {}
    subprocess.run(["prlimit", f"--pid={pid}", f"--nofile={soft}:"], **who, check=True)


@pytest.mark.needs_root("looks into holt-egress, which nobody else may")
def test_without_descriptors_it_says_so_and_goes_on(egress, echoes):
    """Who comes is hung up on, a sandbox's listeners are refused, holtd's connection and those that are open stay, and nothing spins."""
    pid = egress.process.pid
    port = egress.box({"allow": [f"plain.test:{echoes.port}", LOOPBACK]})
    open_before, _ = connect(port, f"plain.test:{echoes.port}")
    with open(f"/proc/{pid}/limits", encoding="ascii") as f:
        old = int(re.search(r"Max open files\s+(\d+)", f.read())[1])
    limit_files(pid, len(os.listdir(f"/proc/{pid}/fd")))
    before = cpu_seconds(pid)
    with proxy(port) as c, contextlib.suppress(ConnectionError):
        assert c.recv(1) == b""
    assert egress.event(what="denied")["rule"] == "too many connections at once"
    listeners = [(kind, socket.create_server(("127.0.0.1", 0))) for kind in (TCP4, DNS_TCP)]
    assert "cannot listen for sandbox 'sb_2': Too many open files" in egress.set("sb_2", {}, listeners)
    egress.connect()  # another holtd
    open_before.sendall(b"still here")
    assert open_before.recv(20) == b"still here"
    time.sleep(0.5)
    assert cpu_seconds(pid) - before < 0.3, "it spins"
    limit_files(pid, old)
    assert egress.set("sb_2", {}, listeners) == ""
    for _, s in listeners:
        s.close()
    assert connect(port, f"plain.test:{echoes.port}")[1].startswith("HTTP/1.1 200")
