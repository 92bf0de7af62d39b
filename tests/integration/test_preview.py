"""Previews: servers inside sandboxes at origins of their own, on a listener that has nothing of the API."""
import asyncio
import hashlib
import http.client
import os
import re
import socket
import subprocess
import time
import urllib.parse

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from daemon import ASAN, BUILD, ROOT, all_events, environment, wait_for

API = "/holt/v1"
INSIDE = f"{ROOT}/tests/integration/inside_server.py"
BIG = (8 if ASAN else 32) << 20


class Site:
    """A sandbox with the test's server in it, and its preview as a browser would see it."""

    def __init__(self, holtd):
        self.d = holtd
        self.id = holtd.ok("POST", f"{API}/sandboxes", {})["id"]
        self.path = f"{API}/sandboxes/{self.id}"
        with open(INSIDE, encoding="utf-8") as f:
            program = f.read()
        self.exec = holtd.ok("POST", f"{self.path}/execs", {"command": ["python3", "-c", program, "0"], "background": True})
        self.port = int(wait_for(self.output))
        link = holtd.ok("POST", f"{self.path}/previews", {"port": self.port})
        self.origin, self.link = link["origin"], link["url"]
        self.host = urllib.parse.urlsplit(self.origin).netloc
        self.listener = int(self.host.split(":")[1])

    def output(self):
        return self.d.ok("GET", f"{self.path}/execs/{self.exec['id']}/output?stream=stdout").strip()

    def request(self, method, path, body=None, headers=None, host=None, port=None):
        c = http.client.HTTPConnection("127.0.0.1", port or self.listener, timeout=60)
        try:
            c.request(method, path, body, {"Host": host or self.host, **(headers or {})})
            r = c.getresponse()
            return r.status, r.read(), r.headers
        finally:
            c.close()

    def open(self, link=None):
        path, code = urllib.parse.urlsplit(link or self.link)[2::2]
        status, _, headers = self.request("POST", path, code)
        assert status == 204, status
        return headers["Set-Cookie"]

    def cookie(self):
        link = self.d.ok("POST", f"{self.path}/previews", {"port": self.port})["url"]
        return {"Cookie": self.open(link).split(";")[0]}


@pytest.fixture(scope="module")
def site(holtd):
    s = Site(holtd)
    yield s
    holtd.ok("DELETE", s.path)


def test_a_link_opens_one_preview_once(site):
    assert re.fullmatch(r"http://\d+-sb-[0-9a-z]{20}\.localhost:\d+", site.origin)
    assert site.link.startswith(site.origin + "/.holt/open#")
    assert site.request("GET", "/echo")[0] == 401
    assert site.request("GET", "/echo", headers={"Authorization": f"Bearer {site.d.token}"})[0] == 401, "links only"
    status, page, headers = site.request("GET", "/.holt/open")
    assert status == 200 and b"<script>" in page and "default-src 'none'" in headers["Content-Security-Policy"]
    cookie = site.open()
    assert re.fullmatch(r"holt_preview=\S+; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200", cookie)
    mine = {"Cookie": cookie.split(";")[0]}
    assert site.request("GET", "/echo", headers=mine)[0] == 200
    path, code = urllib.parse.urlsplit(site.link)[2::2]
    assert site.request("POST", path, code)[0] == 401, "a code works once"
    assert site.request("GET", "/.holt/other", headers=mine)[0] == 404
    opened = [e for e in all_events(site.d) + site.d.ok("GET", f"{API}/audit")["events"] if e["type"] == "preview.opened"]
    assert opened and opened[0]["object"] == f"sandbox/{site.id}:{site.port}"


def test_it_is_for_one_sandbox_and_port(site):
    other = Site(site.d)
    try:
        mine = site.cookie()
        assert site.request("GET", "/echo", headers=mine)[0] == 200
        assert other.request("GET", "/echo", headers=mine)[0] == 401
        label, rest = site.host.split("-", 1)
        assert site.request("GET", "/echo", headers=mine, host=f"{int(label) + 1}-{rest}")[0] == 401
        code = urllib.parse.urlsplit(other.link)[4]
        assert site.request("POST", "/.holt/open", code)[0] == 401, "another's code"
        assert other.open(), "which still works for its own"
    finally:
        site.d.ok("DELETE", other.path)


def test_the_listeners_serve_nothing_of_each_other(site):
    mine = site.cookie()
    admin = {"Authorization": f"Bearer {site.d.token}"}
    for path in ("/holt/v1/info", "/", "/healthz", "/metrics", "/holt/v1/sandboxes"):
        for host in (f"127.0.0.1:{site.listener}", f"localhost:{site.listener}", "evil.example", "sb.localhost",
                     f"0{site.host}", f"8000-{site.id}.localhost", "8000-build.localhost", f"0-{site.host.split('-', 1)[1]}"):
            assert site.request("GET", path, headers=admin, host=host)[0] == 403, (path, host)
        status, body, _ = site.request("GET", path, headers=mine)
        assert b"holt_" not in body and b'"version"' not in body and status in (200, 404), "the sandbox's own page"
        assert site.request("GET", path, headers={**mine, **admin}, port=site.d.port)[0] == 403, "no preview on the API's"
    assert site.request("POST", "/holt/v1/login", "{}", headers={"Content-Type": "application/json"})[0] == 401
    listed = site.d.ok("GET", f"{API}/info")["listen"]
    assert not any(str(site.listener) in a for a in listed), listed


def test_what_goes_in_and_what_comes_out(site):
    mine = site.cookie()
    headers = {"Cookie": f"a=1; {mine['Cookie']}; b=2; holt_session=x", "Authorization": "Bearer holt_x", "Proxy-Authorization": "x",
               "Origin": site.origin, "X-Mine": "yes"}
    status, body, out = site.request("GET", "/echo?token=theirs", headers=headers)
    text = body.decode().lower()
    assert status == 200 and text.startswith("get /echo?token=theirs http/1.1\n")
    assert "cookie: a=1; b=2\n" in text and "holt_" not in text and "authorization" not in text
    assert f"host: localhost:{site.port}\n" in text and f"origin: http://localhost:{site.port}\n" in text
    assert "x-mine: yes" in text and f"x-forwarded-host: {site.host}\n" in text
    assert out.get_all("Set-Cookie") == ["mine=1; Path=/", "tossed=1; Path=/"]
    assert "Service-Worker-Allowed" not in out and "Content-Security-Policy" not in out and len(out.get_all("Date")) == 1
    assert site.request("GET", "/redirect", headers=mine)[2]["Location"] == "/echo"


def test_pages_of_other_origins_are_refused(site):
    mine = site.cookie()
    sibling = site.origin.replace("//", "//1")
    for more in ({"Origin": sibling}, {"Origin": "null"}, {"Origin": site.d.url}, {"Origin": "http://evil.example"},
                 {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, {"Sec-Fetch-Site": "cross-site"},
                 {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}):
        assert site.request("GET", "/echo", headers={**mine, **more})[0] == 403, more
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert site.request("GET", "/echo", headers={**mine, **visit})[0] == 200


def test_it_ends_with_its_token(site):
    made = site.d.new_token("viewer")
    link = site.d.ok("POST", f"{site.path}/previews", {"port": site.port}, token=made["token"])["url"]
    mine = {"Cookie": site.open(link).split(";")[0]}
    unused = site.d.ok("POST", f"{site.path}/previews", {"port": site.port}, token=made["token"])["url"]
    assert site.request("GET", "/echo", headers=mine)[0] == 200
    s = socket.create_connection(("127.0.0.1", site.listener), 60)
    s.sendall(f"GET /slow HTTP/1.1\r\nHost: {site.host}\r\nCookie: {mine['Cookie']}\r\n\r\n".encode())
    assert s.recv(100)
    site.d.ok("DELETE", f"{API}/tokens/{made['id']}")
    assert site.request("GET", "/echo", headers=mine)[0] == 401
    path, code = urllib.parse.urlsplit(unused)[2::2]
    assert site.request("POST", path, code)[0] == 401
    s.settimeout(60)
    try:
        while s.recv(4096):
            pass
    except ConnectionResetError:
        pass
    s.close()


def test_guessing_is_slowed_down(new_holtd):
    d = new_holtd("--login-failures", "3")
    s = Site(d)
    assert [s.request("POST", "/.holt/open", f"guess{i}")[0] for i in range(5)] == [401, 401, 401, 429, 429]
    assert s.request("POST", "/.holt/open", "x" * 5000)[0] in (413, 429)
    d.clear()


def test_bytes_stream_both_ways(site):
    mine = site.cookie()
    status, body, _ = site.request("GET", f"/big?{BIG}", headers=mine)
    assert status == 200 and len(body) == BIG and body[-65536:] == bytes(range(256)) * 256
    data = os.urandom(BIG // 4)
    assert site.request("POST", "/md5", data, headers=mine)[1].decode() == hashlib.md5(data).hexdigest()
    chunks = (data[i:i + 65536] for i in range(0, len(data), 65536))
    assert site.request("POST", "/md5", chunks, headers=mine)[1].decode() == hashlib.md5(data).hexdigest()
    c = http.client.HTTPConnection("127.0.0.1", site.listener, timeout=60)
    for _ in range(3):  # one connection
        c.request("GET", "/echo", headers={"Host": site.host, **mine})
        r = c.getresponse()
        assert r.status == 200 and r.read() and not r.will_close
    c.close()


def test_a_viewer_who_goes_away(site):
    mine = site.cookie()
    gone = site.output().count("gone")
    for _ in range(3):
        s = socket.create_connection(("127.0.0.1", site.listener), 60)
        s.sendall(f"GET /slow HTTP/1.1\r\nHost: {site.host}\r\nCookie: {mine['Cookie']}\r\n\r\n".encode())
        assert s.recv(100)
        s.close()
    wait_for(lambda: site.output().count("gone") == gone + 3)
    s = socket.create_connection(("127.0.0.1", site.listener), 60)
    s.sendall(f"GET /big?{BIG * 4} HTTP/1.1\r\nHost: {site.host}\r\nCookie: {mine['Cookie']}\r\n\r\n".encode())
    time.sleep(0.5)  # it takes nothing: the server inside waits, holtd's memory does not grow
    before = site.d.rss_kib()
    time.sleep(0.5)
    assert site.d.rss_kib() - before < 4096
    s.close()


def test_websocket(site):
    async def run(headers):
        sock = socket.create_connection(("127.0.0.1", site.listener))
        async with connect(f"ws://{site.host}/ws", sock=sock, compression=None, additional_headers=headers) as w:
            for text in ("hello", "x" * 70000):
                await w.send(text)
                assert await asyncio.wait_for(w.recv(), 60) == text

    mine = site.cookie()
    asyncio.run(run({**mine, "Origin": site.origin}))
    for headers in ({**mine, "Origin": "http://evil.example"}, {"Origin": site.origin}):
        with pytest.raises(InvalidStatus):
            asyncio.run(run(headers))


def holt(holtd, *args, **more):
    env = environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token})
    return subprocess.run([f"{BUILD}/holt", *args], env=env, capture_output=True, text=True, timeout=60, **more)


def test_the_command(site):
    r = holt(site.d, "preview", site.id, str(site.port))
    assert r.returncode == 0 and r.stdout.startswith(site.origin + "/.holt/open#"), r
    assert site.open(r.stdout.strip())
    assert holt(site.d, "preview", site.id, "70000").returncode == 1
    assert holt(site.d, "preview", "nowhere", "80").returncode == 2


def test_busy_and_no_listener(new_holtd):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        taken = busy.getsockname()[1]
        d = new_holtd("--preview-listen", f"127.0.0.1:{taken}")
        assert "address skipped" in d.log() and str(taken) in d.log()
        box = d.ok("POST", f"{API}/sandboxes", {})
        origin = d.ok("POST", f"{API}/sandboxes/{box['id']}/previews", {"port": 80})["origin"]
        assert int(origin.rsplit(":", 1)[1]) not in (0, taken)
    d = new_holtd("--preview-listen", "")
    box = d.ok("POST", f"{API}/sandboxes", {})
    status, reply, _ = d.request("POST", f"{API}/sandboxes/{box['id']}/previews", {"port": 80})
    assert status == 503 and "preview_listen" in reply["error"]["hint"]


# --- the path form and port-forward, with the same server ---


@pytest.fixture
def forward(site):
    env = environment({"HOLT_SERVER": site.d.url, "HOLT_TOKEN": site.d.token})
    p = subprocess.Popen([f"{BUILD}/holt", "port-forward", site.id, f":{site.port}"], env=env, stdout=subprocess.PIPE, text=True)
    try:
        yield int(re.match(r"127\.0\.0\.1:(\d+) -> ", p.stdout.readline())[1])
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


def test_port_forward(site, forward):
    status, body, _ = site.request("GET", f"/big?{BIG}", port=forward)
    assert status == 200 and len(body) == BIG
    data = os.urandom(BIG // 4)
    assert site.request("POST", "/md5", data, port=forward)[1].decode() == hashlib.md5(data).hexdigest()

    async def run():
        async with connect(f"ws://127.0.0.1:{forward}/ws", compression=None, proxy=None) as w:
            await w.send("through")
            assert await asyncio.wait_for(w.recv(), 60) == "through"

    asyncio.run(run())
    gone = site.output().count("gone")
    s = socket.create_connection(("127.0.0.1", forward), 60)
    s.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
    assert s.recv(100)
    s.close()
    wait_for(lambda: site.output().count("gone") == gone + 1)


def test_path_form(site):
    admin = {"Authorization": f"Bearer {site.d.token}"}
    at = f"{site.path}/ports/{site.port}"
    status, body, headers = site.request("GET", f"{at}/big?{BIG}", headers=admin, host=f"127.0.0.1:{site.d.port}", port=site.d.port)
    assert status == 200 and len(body) == BIG and headers["Content-Security-Policy"] == "sandbox"
    gone = site.output().count("gone")
    s = socket.create_connection(("127.0.0.1", site.d.port), 60)
    s.sendall(f"GET {at}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {site.d.token}\r\n\r\n".encode())
    assert s.recv(1000)
    s.close()
    wait_for(lambda: site.output().count("gone") == gone + 1)
