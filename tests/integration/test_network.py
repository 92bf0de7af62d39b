"""What real sandboxes reach through holt-egress: names of a test's own name server, servers on loopback, nothing else."""
import os
import signal
import ssl
import subprocess

import pytest

from daemon import BUILD, Holtd, Program, environment, free_ports, native, wait_for
from egress import Peer, basic, connect, echo, http_echo, jwt
from home import Home


NAMES = {"web.test": ["127.0.0.1"], "secure.test": ["127.0.0.1"], "www.web.test": ["127.0.0.1"], "private.test": ["10.1.2.3"]}


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    d = tmp_path_factory.mktemp("tls")
    cert, key = d / "c.pem", d / "k.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                    "-out", cert, "-days", "2", "-subj", "/CN=secure.test", "-addext", "subjectAltName=DNS:secure.test"],
                   check=True, capture_output=True)
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ctx.load_cert_chain(cert, key)
    p = Peer(http_echo, tls=ctx)
    yield p
    p.close()


def start(directory, names, **env):
    return native(directory, "--egress-dns", names.address, env=env)


@pytest.fixture(scope="module")
def holtd(tmp_path_factory, names):
    d = start(tmp_path_factory.mktemp("network"), names)
    yield d
    d.clear()
    d.stop()


def create(holtd, network, **more):
    return holtd.ok("POST", "/holt/v1/sandboxes", {"network": network, "upper": "memory", **more})["id"]


def run(holtd, box, command, **more):
    r = holtd.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": command, "timeout_ms": 30000, **more})
    return r["exit_code"], r["stdout"], r["stderr"]


def policy(web, secure=None):
    allow = [f"web.test:{web.port}", f"*.web.test:{web.port}", {"cidr": "127.0.0.1/32", "ports": [web.port]}]
    if secure:
        allow += [{"host": "secure.test", "ports": [secure.port], "scheme": "https"},
                  {"cidr": "127.0.0.1/32", "ports": [secure.port]}]
    return {"mode": "allowlist", "allow": allow}


@pytest.fixture(scope="module")
def box(holtd, web, secure):
    return create(holtd, policy(web, secure))


def test_an_allowed_host_is_reached_with_and_without_the_proxy(holtd, box, web):
    url = f"http://web.test:{web.port}/x"
    code, out, err = run(holtd, box, ["curl", "-sS", url])  # by http_proxy
    assert code == 0 and out.startswith("GET /x HTTP/1.1"), err
    code, out, err = run(holtd, box, ["curl", "-sS", "--noproxy", "*", url])  # redirected, by the made-up address
    assert code == 0 and out.startswith("GET /x HTTP/1.1"), err
    code, out, err = run(holtd, box, ["curl", "-sS", "--noproxy", "*", "-x", "socks5h://127.0.0.1:3128", f"http://www.web.test:{web.port}/y"])
    assert code == 0
    code, out, err = run(holtd, box, ["python3", "-c", f"import urllib.request as u; print(u.urlopen('{url}').status)"])
    assert (code, out) == (0, "200\n"), err


def test_tls_by_both_ways(holtd, box, secure):
    url = f"https://secure.test:{secure.port}/"
    for more in ([], ["--noproxy", "*"]):
        code, out, err = run(holtd, box, ["curl", "-sSk", *more, url])
        assert code == 0 and out.startswith("GET / HTTP/1.1"), err
    # an allowed address under another name: refused before a byte is passed on
    seen = secure.count
    code, _, err = run(holtd, box, ["curl", "-sSk", "--noproxy", "*", "--connect-to", f"::secure.test:{secure.port}", f"https://other.test:{secure.port}/"])
    assert code == 35, err
    v = wait_for(lambda: [e for e in holtd.ok("GET", "/holt/v1/events?type=egress.denied&limit=1000")["events"] if "other.test" in e["data"]["rule"]])
    assert v[0]["data"]["host"] == "secure.test" and v[0]["object"] == f"sandbox/{box}"


def test_what_is_not_listed_is_refused_with_the_rule(holtd, box, web):
    code, out, err = run(holtd, box, ["curl", "-sS", "-i", f"http://evil.test:{web.port}/"])
    assert "403" in out and f"evil.test port {web.port} is refused: no rule allows this host and port" in out
    for target in (f"http://evil.test:{web.port}/", f"http://127.0.0.2:{web.port}/", "http://8.8.8.8/", "http://[2001:db8::1]/",
                   "http://169.254.169.254/latest/meta-data/", f"http://web.test:{holtd.port}/"):
        code, out, err = run(holtd, box, ["curl", "-sS", "-m", "10", "--noproxy", "*", target])
        assert code != 0 and out == "", (target, out)
    denied = [e["data"] for e in holtd.ok("GET", "/holt/v1/events?type=egress.denied&limit=1000")["events"]]
    assert {d["host"] for d in denied} >= {"evil.test", "8.8.8.8", "2001:db8::1", "169.254.169.254"}
    code, out, _ = run(holtd, box, ["curl", "-sS", "-m", "5", "--noproxy", "*", f"http://127.0.0.1:{holtd.port}/healthz"])
    assert code == 7  # its own loopback is its own


def test_the_resolver_asks_nobody(holtd, box, names):
    del names.asked[:]
    code, out, _ = run(holtd, box, ["python3", "-c", "import socket; print(socket.gethostbyname('secret-data.evil.test'))"])
    assert code == 0 and out.startswith("198.18.")
    code, out, _ = run(holtd, box, ["python3", "-c", "import socket; print(socket.getaddrinfo('x.evil.test', 80, socket.AF_INET6))"])
    assert code != 0
    probe = ("import socket,struct; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(3); "
             "s.sendto(b'\\x12\\x34\\x01\\0\\0\\1\\0\\0\\0\\0\\0\\0\\1a\\4test\\0\\0\\1\\0\\1',('9.9.9.9',53)); d,p=s.recvfrom(512); print(p[0], d[-4]);")
    assert run(holtd, box, ["python3", "-c", probe])[1] == "9.9.9.9 198\n"
    assert names.asked == []


def test_nothing_but_tcp_leaves(holtd, box):
    probe = ("import socket; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(2); s.connect(('8.8.8.8',443)); s.send(b'quic')\n"
             "try: print('got', s.recv(10))\nexcept OSError as e: print(type(e).__name__)")
    assert run(holtd, box, ["python3", "-c", probe])[1] in ("ConnectionRefusedError\n", "timeout\n", "TimeoutError\n")
    ping = ("import socket\ntry:\n s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM,1); s.settimeout(2)\n"
            " s.sendto(b'\\x08\\0\\xf7\\xff\\0\\0\\0\\0',('8.8.8.8',0)); print('got', s.recv(100))\nexcept OSError: print('nothing')")
    assert run(holtd, box, ["python3", "-c", ping])[1] == "nothing\n"


def test_the_environment_leads_to_the_proxy(holtd, box, web):
    out = run(holtd, box, ["env"])[1].splitlines()
    for name in ("HTTP_PROXY", "https_proxy", "ALL_PROXY", "npm_config_proxy", "CARGO_HTTP_PROXY", "PIP_PROXY"):
        assert f"{name}=http://127.0.0.1:3128" in out
    assert "NO_PROXY=localhost,127.0.0.1,::1,.localhost,hub" in out
    assert run(holtd, box, ["sh", "-c", "echo $HTTP_PROXY"], env={"HTTP_PROXY": "mine"})[1] == "mine\n"
    none = create(holtd, "none")
    assert "HTTP_PROXY" not in run(holtd, none, ["env"])[1]
    code, _, err = run(holtd, none, ["curl", "-sS", "http://8.8.8.8/"])
    assert code == 7
    code, _, err = run(holtd, none, ["curl", "-sS", f"http://web.test:{web.port}/"])
    assert code == 6


def test_a_policy_is_changed_while_the_sandbox_runs(holtd, web):
    box = create(holtd, {"mode": "allowlist"})
    url = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", f"http://web.test:{web.port}/"]
    assert run(holtd, box, url)[1] == "403"
    reply = holtd.ok("PATCH", f"/holt/v1/sandboxes/{box}", {"network": policy(web)})
    assert reply["network"]["mode"] == "allowlist" and reply["network"]["allow"][0] == {"host": "web.test", "ports": [web.port]}
    assert run(holtd, box, url)[1] == "200"
    holtd.ok("PATCH", f"/holt/v1/sandboxes/{box}", {"network": "none"})
    assert run(holtd, box, url)[1] == "403"
    assert holtd.ok("GET", f"/holt/v1/sandboxes/{box}")["network"] == {"mode": "none"}
    for bad, status, why in (("all", 400, "'mode'"), ({"mode": "raw"}, 409, "without an interface"), ({"allow": ["a b"]}, 400, "rule 1 of 'allow'"),
                             ({"allow": [{"host": "a.b", "methods": ["get"]}]}, 400, "methods"), (7, 400, "network")):
        code, body, _ = holtd.request("PATCH", f"/holt/v1/sandboxes/{box}", {"network": bad})
        assert code == status and why in body["error"]["message"], body
    none = create(holtd, "none")
    code, body, _ = holtd.request("PATCH", f"/holt/v1/sandboxes/{none}", {"network": "open"})
    assert code == 409 and "without a network" in body["error"]["message"]


def test_open_reaches_everything_but_what_is_private(holtd, web):
    box = create(holtd, {"mode": "open", "deny": ["evil.test"], "allow": [{"cidr": "127.0.0.1/32", "ports": [web.port]}]})
    url = ["curl", "-sS", f"http://web.test:{web.port}/"]
    assert run(holtd, box, url)[0] == 0
    assert "it resolves to a private address" in run(holtd, box, ["curl", "-sS", "http://private.test/"])[1]
    assert "deny evil.test" in run(holtd, box, ["curl", "-sS", "http://evil.test/"])[1]


def test_an_operator_lets_a_name_lead_inside(tmp_path, names, web):
    """As a mirror of a public name in the company's network: by the setting, for every sandbox."""
    d = native(tmp_path / "d", "--egress-dns", names.address, "--egress-internal", "web.test=127.0.0.0/8")
    try:
        box = create(d, {"allow": [f"web.test:{web.port}", f"www.web.test:{web.port}"]})
        assert run(d, box, ["curl", "-sSf", f"http://web.test:{web.port}/"])[0] == 0
        code, out, _ = run(d, box, ["curl", "-sS", f"http://www.web.test:{web.port}/"])
        assert "it resolves to a loopback address (an operator can allow it: setting egress_internal)" in out and "127.0.0.1" not in out

        def listed():
            return subprocess.run([f"{BUILD}/holt", "events", "--type", "egress.denied"], env=environment({"HOLT_SERVER": d.url, "HOLT_TOKEN": d.token}),
                                  capture_output=True, text=True, timeout=60).stdout

        wait_for(lambda: "www.web.test" in listed())
    finally:
        d.clear()
        assert d.stop() == 0
    bad = Holtd(tmp_path / "bad", "--egress-internal", "web.test=nowhere", ready=False)
    assert bad.process.wait(60) != 0


def test_allow_is_a_short_form(holtd, web):
    r = holtd.ok("POST", "/holt/v1/sandboxes", {"allow": [f"web.test:{web.port}"], "upper": "memory"})
    assert r["network"] == {"mode": "allowlist", "allow": [{"host": "web.test", "ports": [web.port]}], "deny": [], "unknown": "deny"}
    env = environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token})
    out = subprocess.run([f"{BUILD}/holt", "run", "--network", "open", "--", "sh", "-c", "echo $http_proxy"],
                         env=env, capture_output=True, timeout=60)
    assert out.stdout == b"http://127.0.0.1:3128\n", out.stderr


def test_verdicts_are_events_and_numbers(holtd, box, web):
    run(holtd, box, ["curl", "-sS", f"http://web.test:{web.port}/counted"])
    closed = wait_for(lambda: [e["data"] for e in holtd.ok("GET", "/holt/v1/events?type=egress.closed&limit=1000")["events"] if e["data"]["host"] == "web.test"])
    assert closed[-1]["bytes_up"] > 50 and closed[-1]["bytes_down"] > 50 and closed[-1]["via"] == "http"
    assert closed[-1]["rule"] == f"allow web.test:{web.port}"
    run(holtd, box, ["curl", "-sS", "https://unheard-of.test/"])
    wait_for(lambda: [e for e in holtd.ok("GET", "/holt/v1/events?type=egress.denied&limit=1000")["events"] if e["data"]["host"] == "unheard-of.test"])
    for e in holtd.ok("GET", "/holt/v1/events?limit=1000")["events"]:
        if e["type"].startswith("egress."):
            assert {"sandbox", "host", "port", "verdict", "rule", "bytes_up", "bytes_down"} <= set(e["data"]) and e["data"]["rule"], e
    text = holtd.request("GET", "/metrics")[1]
    assert 'holt_egress_verdicts_total{verdict="allowed"}' in text and 'holt_egress_bytes_total{direction="down"}' in text


def test_an_agent_does_not_free_itself(holtd):
    token = holtd.ok("POST", "/holt/v1/tokens", {"name": "agent", "role": "agent", "agent": "a"})["token"]
    code, body, _ = holtd.request("POST", "/holt/v1/sandboxes", {"network": "open"}, token=token)
    assert code == 403 and "agent" in body["error"]["message"]


def test_the_proxy_on_tcp(tmp_path_factory, names, web):
    port = free_ports()[0]
    d = start(tmp_path_factory.mktemp("tcp"), names, PROXY_HOST="127.0.0.1", PROXY_PORT=str(port), SIGNING_KEY="signs-it")
    try:
        box = create(d, policy(web))
        to = f"web.test:{web.port}"
        assert connect(port, to, basic(jwt("signs-it", box)))[1].startswith("HTTP/1.1 200")
        assert connect(port, to)[1].startswith("HTTP/1.1 407")
        assert d.request("DELETE", f"/holt/v1/sandboxes/{box}")[0] == 204
        assert connect(port, to, basic(jwt("signs-it", box)))[1].startswith("HTTP/1.1 407")
        assert "signs-it" not in str(d.ok("GET", "/holt/v1/settings"))
    finally:
        d.stop()


def test_connections_outlive_holtd_and_holt_egress_comes_back(tmp_path_factory, names, web):
    slow = Peer(echo)
    names.names["slow.test"] = ["127.0.0.1"]
    where = tmp_path_factory.mktemp("outlive")
    d = start(where, names)
    try:
        allow = [f"slow.test:{slow.port}", f"web.test:{web.port}", {"cidr": "127.0.0.1/32", "ports": [slow.port, web.port]}]
        box = create(d, {"allow": allow})
        script = (f"import socket,time; c=socket.create_connection(('slow.test',{slow.port}))\n"
                  "for i in range(60):\n c.sendall(b'x'); assert c.recv(1)==b'x'; time.sleep(.05)\nprint('held')")
        x = d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["python3", "-c", script], "background": True})["id"]
        wait_for(lambda: slow.count)
        first = d.egress_pid()
        Program.kill(d)
        d = start(where, names)
        wait_for(lambda: d.ok("GET", f"/holt/v1/sandboxes/{box}/execs/{x}")["state"] == "exited", 60)
        assert d.ok("GET", f"/holt/v1/sandboxes/{box}/execs/{x}")["exit_code"] == 0
        assert slow.count == 1 and d.egress_pid() == first
        url = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", f"http://web.test:{web.port}/"]
        assert run(d, box, url)[1] == "200"
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: d.egress_pid() not in (0, first))
        wait_for(lambda: run(d, box, url)[1] == "200")  # policies and listeners are there again
        assert d.request("DELETE", f"/holt/v1/sandboxes/{box}")[0] == 204
    finally:
        slow.close()
        d.stop()


@pytest.mark.parametrize("mode", ["rootless", "ranges"])
def test_an_ordinary_user_has_the_same(names, web, secure, mode):
    home = Home(mode)
    try:
        d = home.native("--egress-dns", names.address)
        try:
            box = create(d, policy(web, secure))
            url = f"http://web.test:{web.port}/x"
            for more in ([], ["--noproxy", "*"]):
                code, out, err = run(d, box, ["curl", "-sS", *more, url])
                assert code == 0 and out.startswith("GET /x HTTP/1.1"), err
                assert run(d, box, ["curl", "-sSk", *more, f"https://secure.test:{secure.port}/"])[0] == 0
            assert "is refused: no rule allows" in run(d, box, ["curl", "-sS", f"http://evil.test:{web.port}/"])[1]
            for target in (f"http://evil.test:{web.port}/", "http://8.8.8.8/", f"http://127.0.0.1:{d.port}/", "http://[2001:db8::1]/"):
                assert run(d, box, ["curl", "-sS", "-m", "10", "--noproxy", "*", target])[0] != 0, target
            code, body, _ = d.request("POST", "/holt/v1/sandboxes", {"network": "raw"})
            assert code == 501 and "root" in body["error"]["message"] and "open" in body["error"]["hint"], body
            first = d.egress_pid()
            os.kill(first, signal.SIGKILL)
            wait_for(lambda: d.egress_pid() not in (0, first))
            wait_for(lambda: run(d, box, ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", url])[1] == "200")
            assert d.request("DELETE", f"/holt/v1/sandboxes/{box}")[0] == 204
        finally:
            d.stop()
    finally:
        home.close()
