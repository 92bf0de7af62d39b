"""A canary as a secret: it must arrive where it is bound to, and be nowhere else: not inside (output, files, environments,
command lines, memory), not with others, and in nothing that holt keeps or says."""
import base64
import contextlib
import gzip
import http.server
import importlib.util
import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import threading
import time
import urllib.parse

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = f"{HERE}/../../.."
sys.path[:0] = [HERE, f"{HERE}/../../integration"]

from daemon import all_events, native, wait_for  # noqa: E402
from egress import Authority, Names  # noqa: E402

CANARY, ROTATED, PLAIN = "canary-4f1d9c27/b83e+6a5=x", "canary-rotated-d5027b61", "canary-in-plain-9e31aa04"
HOSTS = ("api.test", "other.test", "plain.test")


def forms(value):
    """What the value could be told by: itself, and what encodings leave of it at each offset."""
    raw = value.encode()
    found = {raw, urllib.parse.quote(value, safe="").encode(), raw[::-1], raw.hex().encode()}
    for pad in range(3):  # base64 at any offset: the groups that depend on the value alone
        whole = base64.b64encode(b"\0" * pad + raw)
        found.add(whole[4 if pad else 0 : -4])
    return found


FORMS = forms(CANARY) | forms(ROTATED) | forms(PLAIN)


def has_canary(data):
    data = data.encode(errors="surrogateescape") if isinstance(data, str) else data
    return next((f for f in FORMS if f in data), None)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body, **headers):
        self.send_response(status)
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        head = "".join(f"{k.lower()}: {v}\n" for k, v in self.headers.items())
        got = f"{self.command} {self.path}\n{head}\n".encode() + body
        self.server.seen.append((self.headers.get("host", "").split(":")[0], got.decode(errors="replace")))
        path = self.path.partition("?")[0]
        value = self.headers.get("authorization", "") + self.path
        if path.startswith("/git/"):
            self.git(path[5:])
        elif path == "/redirect":  # to another host, with what came in the URL
            key = urllib.parse.quote(self.headers.get("x-key", ""), safe="")
            self.reply(302, got, location=f"https://other.test:{self.server.server_port}/echo?stolen={key}")
        elif path == "/error":
            self.reply(500, b"<h1>Internal error</h1><pre>" + got + b"</pre>", x_error=value)
        elif path == "/gzip":
            if "gzip" in self.headers.get("accept-encoding", ""):
                self.reply(200, gzip.compress(got), content_encoding="gzip")
            else:
                self.reply(200, got)
        elif path == "/chunked":  # cut inside the value
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for i in range(0, len(got), 7):
                part = got[i : i + 7]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.reply(200, got, x_echo=value, set_cookie=f"session={self.headers.get('x-key', 'none')}; Path=/",
                       etag='"%s"' % self.headers.get("x-key", ""))

    def git(self, name):
        want = base64.b64encode(f"bot:{self.server.password}".encode()).decode()
        if self.headers.get("authorization") != f"Basic {want}":
            self.reply(401, b"who are you?", www_authenticate='Basic realm="git"')
            return
        path = f"{self.server.repository}/{name}"
        if os.path.isfile(path):
            with open(path, "rb") as f:
                self.reply(200, f.read(), content_type="text/plain")
        else:
            self.reply(404, b"no")

    do_GET = do_POST = do_PUT = do_HEAD = answer


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, tls=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen, self.password, self.repository, self.tls = [], CANARY, None, tls
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self):
        c, peer = super().get_request()
        c.settimeout(20)
        return (self.tls.wrap_socket(c, server_side=True, do_handshake_on_connect=False) if self.tls else c), peer

    def handle_error(self, request, client_address):
        pass  # clients that go away

    def got(self, host=None):
        return "\n".join(text for h, text in self.seen if host in (None, h))


class World:
    def __init__(self, directory):
        self.directory = directory
        self.names = Names({h: ["127.0.0.1"] for h in HOSTS})
        self.authority = Authority(directory, "The World")
        self.secure, self.plain = Server(self.authority.server(*HOSTS)), Server()
        self.secure.repository = self.plain.repository = self.make_repository()
        self.holtd = self.start()

    def start(self):
        return native(f"{self.directory}/holtd", "--egress-dns", self.names.address, "--egress-ca-file", self.authority.path,
                      "--log-level", "debug")

    def make_repository(self):
        bare, work = f"{self.directory}/repo.git", f"{self.directory}/work"
        env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": str(self.directory)}
        for argv in (["init", "-q", "--bare", bare], ["clone", "-q", bare, work]):
            subprocess.run(["git", *argv], check=True, capture_output=True, env=env)
        with open(f"{work}/file", "w") as f:
            f.write("cloned\n")
        for argv in (["add", "file"], ["-c", "user.name=t", "-c", "user.email=t@t.test", "commit", "-qm", "one"],
                     ["push", "-q", "origin", "HEAD"]):
            subprocess.run(["git", "-C", work, *argv], check=True, capture_output=True, env=env)
        subprocess.run(["git", "-C", bare, "update-server-info"], check=True, capture_output=True, env=env)
        return bare

    def policy(self):
        return {"allow": [{"host": h, "ports": [self.secure.server_port], "scheme": "https"} for h in HOSTS] +
                [{"host": h, "ports": [self.plain.server_port], "scheme": "http"} for h in HOSTS] +
                [{"cidr": "127.0.0.0/8", "ports": [self.secure.server_port, self.plain.server_port]}]}

    def url(self, path, host="api.test"):
        return f"https://{host}:{self.secure.server_port}{path}"

    def http(self, path, host="plain.test"):
        return f"http://{host}:{self.plain.server_port}{path}"

    def secret(self, name, **body):
        return self.holtd.ok("PUT", f"/holt/v1/secrets/{name}", body)

    def run(self, box, command, **more):
        """What it printed; never the canary."""
        r = self.holtd.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": command, "timeout_ms": 60000, **more}, timeout=70)
        out = r["stdout"] + r["stderr"]
        assert not has_canary(out), out
        assert not r["timed_out"], out
        return out

    def close(self):
        self.holtd.clear()
        self.holtd.stop()
        for s in (self.secure, self.plain):
            s.shutdown()
            s.server_close()
        self.names.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("only root can look into the memory of what runs inside")
    w = World(tmp_path_factory.mktemp("canary"))
    w.secret("api", value=CANARY, hosts=["api.test"])
    w.secret("plain", value=PLAIN, hosts=["plain.test"], plain=True)
    yield w
    w.close()


@pytest.fixture(scope="module")
def box(world):
    r = world.holtd.ok("POST", "/holt/v1/sandboxes", {
        "network": world.policy(), "upper": "memory", "env": {"SERVER": world.url(""), "GIT_TERMINAL_PROMPT": "0"},
        "secrets": [{"name": "api", "env": "API_KEY"}, {"name": "plain"}]})
    assert [(s["name"], s["env"]) for s in r["secrets"]] == [("api", "API_KEY"), ("plain", "PLAIN")]
    upload(world.holtd, r["id"])
    return r["id"]


def upload(holtd, box):
    """Python's requests, which the host's python may not have: as the test's own has it."""
    found = importlib.util.find_spec("requests")
    if not found:
        pytest.skip("python has no requests here: make deps")
    site = os.path.dirname(os.path.dirname(found.origin))
    to = io.BytesIO()
    with tarfile.open(fileobj=to, mode="w") as t:
        for name in ("requests", "urllib3", "idna", "certifi", "charset_normalizer"):
            t.add(f"{site}/{name}", name, filter=lambda m: None if m.name.endswith((".so", "__pycache__")) else m)
    holtd.ok("PUT", f"/holt/v1/sandboxes/{box}/archive?path=/root", to.getvalue(), headers={"Content-Type": "application/x-tar"})


# --- by each client: the value goes out, the placeholder comes back ---

URLLIB = """
import os, ssl, urllib.request as u
r = u.Request(os.environ["SERVER"] + "/echo?key=" + os.environ["API_KEY"], headers={"Authorization": "Bearer " + os.environ["API_KEY"]})
with u.urlopen(r) as f: print(f.status, dict(f.headers), f.read().decode())
"""
REQUESTS = """
import os, requests
key, s = os.environ["API_KEY"], requests.Session()
for path in ("/echo", "/gzip", "/chunked", "/error"):
    r = s.get(os.environ["SERVER"] + path, params={"key": key}, auth=("bot", key), headers={"X-Key": key})
    print(r.status_code, dict(r.headers), r.text)
print(s.cookies)
"""
FETCH = """
const key = process.env.API_KEY;
fetch(process.env.SERVER + "/echo?key=" + key, {method: "POST", body: "body of node", headers: {"x-api-key": key}})
  .then(async r => console.log(r.status, JSON.stringify([...r.headers]), await r.text()), e => { console.log(e, e.cause); process.exit(1); });
"""
CURL = "curl -sS -i --compressed"


@pytest.mark.parametrize("client, command, where", [
    ("curl header", f'{CURL} -H "Authorization: Bearer $API_KEY" $SERVER/echo', "Bearer {}"),
    ("curl query", f'{CURL} "$SERVER/echo?a=1&key=$API_KEY"', "&key={q}"),
    ("curl basic", f'{CURL} -u "bot:$API_KEY" $SERVER/echo', "Basic {b}"),
    ("curl gzip", f'{CURL} -H "X-Key: $API_KEY" $SERVER/gzip', "{}"),
    ("curl chunked", f'{CURL} -H "X-Key: $API_KEY" $SERVER/chunked', "{}"),
    ("curl error page", f'{CURL} -H "X-Key: $API_KEY" $SERVER/error', "{}"),
    ("curl without the proxy", f'{CURL} --noproxy "*" -H "X-Key: $API_KEY" $SERVER/echo', "{}"),
    ("curl to files", 'curl -sS -D /root/head -c /root/jar -o /root/body -H "X-Key: $API_KEY" $SERVER/echo && cat /root/head /root/jar /root/body', "{}"),
    ("urllib", ["python3", "-c", URLLIB], "Bearer {}"),
    ("requests", ["python3", "-c", REQUESTS], "Basic {b}"),
    ("node fetch", ["node", "-e", FETCH], "{}"),
])
def test_the_value_arrives_and_the_placeholder_comes_back(world, box, client, command, where):
    del world.secure.seen[:]
    out = world.run(box, command)
    got = world.secure.got("api.test")
    want = where.format(CANARY, q=urllib.parse.quote(CANARY, safe=""), b=base64.b64encode(f"bot:{CANARY}".encode()).decode())
    assert want in got or (client == "curl query" and f"&key={CANARY}" in got), (out, got)
    assert "holt-secret-" not in got, got
    assert "holt-secret-" in out or client == "curl basic", out


def test_git_clones_with_a_password_it_does_not_know(world, box):
    url = f"https://bot:$API_KEY@api.test:{world.secure.server_port}/git/"
    assert world.run(box, f'rm -rf /root/clone; git clone -q "{url}" /root/clone 2>&1; cat /root/clone/file').endswith("cloned\n")


def test_a_redirect_takes_nothing_along(world, box):
    del world.secure.seen[:]
    # -k: the other host is not intercepted, and inside nobody knows the world's authority
    out = world.run(box, f'{CURL} -k -L --location-trusted -H "X-Key: $API_KEY" $SERVER/redirect')
    assert CANARY in world.secure.got("api.test")
    other = world.secure.got("other.test")
    assert "GET /echo?stolen=holt-secret-" in other and not has_canary(other), (out, other)


def test_other_hosts_and_plain_http_do_not_get_it(world, box):
    del world.secure.seen[:], world.plain.seen[:]
    world.run(box, f'{CURL} -k -H "X-Key: $API_KEY" {world.url("/echo", "other.test")}')
    world.run(box, f'{CURL} -H "X-Key: $API_KEY" {world.http("/echo", "api.test")}')
    world.run(box, f'{CURL} -H "X-Key: $API_KEY" --data "$API_KEY" {world.http("/echo")}')
    # an allowed TLS name and the bound one in Host; the body is not replaced anywhere
    world.run(box, f'{CURL} -k -H "Host: api.test" -H "X-Key: $API_KEY" {world.url("/echo", "other.test")}')
    world.run(box, f'{CURL} -d "key=$API_KEY" $SERVER/echo')
    assert not has_canary(world.secure.got()) and not has_canary(world.plain.got())
    assert "holt-secret-" in world.plain.got() and "key=holt-secret-" in world.secure.got("api.test")


def test_in_plain_only_where_the_secret_says_so(world, box):
    del world.plain.seen[:]
    out = world.run(box, f'{CURL} -H "X-Key: $PLAIN" {world.http("/echo")}')
    assert PLAIN in world.plain.got() and "holt-secret-" in out


def test_rotated_at_once_and_gone_at_once(world, box):
    world.secret("once", value=CANARY, hosts=["api.test"])
    other = world.holtd.ok("POST", "/holt/v1/sandboxes", {"network": world.policy(), "upper": "memory", "secret": ["once"]})["id"]
    ask = f'{CURL} -H "X-Key: $ONCE" {world.url("/echo")}'
    for value in (CANARY, ROTATED):
        world.secret("once", value=value)
        del world.secure.seen[:]
        world.run(other, ask)
        assert f"x-key: {value}" in world.secure.got()
    world.holtd.ok("DELETE", "/holt/v1/secrets/once")
    del world.secure.seen[:]
    ask = ask.replace(CURL, CURL + " -k")  # it is not intercepted any more
    world.run(other, ask)
    assert not has_canary(world.secure.got()) and "holt-secret-" in world.secure.got()
    world.secret("once", value=ROTATED, hosts=["api.test"])  # another secret of that name is another one
    world.run(other, ask)
    assert not has_canary(world.secure.got())
    world.holtd.ok("DELETE", f"/holt/v1/sandboxes/{other}")
    world.holtd.ok("DELETE", "/holt/v1/secrets/once")


LONG = """
import http.client, os, time
host, port = os.environ["SERVER"][8:].split(":")
c = http.client.HTTPSConnection("127.0.0.1", 3128)
c.set_tunnel(host, int(port))
while True:
    c.request("GET", "/echo", headers={"X-Key": os.environ["LONG"]})
    c.getresponse().read()
    time.sleep(0.05)
"""


def test_a_connection_that_lasts_loses_it_too(world):
    world.secret("long", value=CANARY, hosts=["api.test"])
    other = world.holtd.ok("POST", "/holt/v1/sandboxes", {"network": world.policy(), "upper": "memory", "secret": ["long"],
                                                          "env": {"SERVER": world.url("")}})["id"]
    del world.secure.seen[:]
    run = world.holtd.ok("POST", f"/holt/v1/sandboxes/{other}/execs", {"command": ["python3", "-c", LONG], "background": True})["id"]

    def moved_on(word):
        """One request at a time: none of before is on its way."""
        return word in world.secure.got() or world.holtd.ok("GET", f"/holt/v1/sandboxes/{other}/execs/{run}")["state"] != "running"

    wait_for(lambda: world.secure.got().count(CANARY) > 3)
    world.secret("long", value=ROTATED)
    wait_for(lambda: moved_on(ROTATED))
    del world.secure.seen[:]
    time.sleep(0.5)
    assert CANARY not in world.secure.got()
    world.holtd.ok("DELETE", "/holt/v1/secrets/long")
    wait_for(lambda: moved_on("holt-secret-"))
    del world.secure.seen[:]
    time.sleep(0.5)
    assert not has_canary(world.secure.got())
    world.holtd.ok("DELETE", f"/holt/v1/sandboxes/{other}")


def test_another_sandbox_gets_nothing_for_this_ones_placeholder(world, box):
    placeholder = world.run(box, "echo $API_KEY").strip()
    assert re.fullmatch("holt-secret-[0-9a-f]{32}", placeholder)
    other = world.holtd.ok("POST", "/holt/v1/sandboxes", {"network": world.policy(), "upper": "memory", "secret": ["api"]})["id"]
    del world.secure.seen[:]
    world.run(other, f'[ "$API" != {placeholder} ]; {CURL} -H "X-Key: {placeholder}" {world.url("/echo")}')
    assert placeholder in world.secure.got() and not has_canary(world.secure.got())
    world.holtd.ok("DELETE", f"/holt/v1/sandboxes/{other}")


# --- after deaths ---

def test_all_is_told_again_after_deaths(world, box):
    ask = f'{CURL} -H "X-Key: $API_KEY" $SERVER/echo'
    placeholder = world.run(box, "echo $API_KEY")

    def arrives():
        del world.secure.seen[:]
        world.run(box, ask)
        return f"x-key: {CANARY}" in world.secure.got()

    os.kill(world.holtd.egress_pid(), signal.SIGKILL)
    wait_for(arrives, 60, 0.2)
    world.holtd.process.kill()  # holt-egress lives on
    world.holtd.process.wait()
    world.holtd = world.start()
    wait_for(arrives, 60, 0.2)
    os.kill(world.holtd.egress_pid(), signal.SIGKILL)
    world.holtd.process.kill()
    world.holtd.process.wait()
    world.holtd = world.start()
    wait_for(arrives, 60, 0.2)
    assert world.run(box, "echo $API_KEY") == placeholder


def test_it_is_kept_over_stop_and_start(world):
    box = world.holtd.ok("POST", "/holt/v1/sandboxes", {"network": world.policy(), "secret": ["api"]})["id"]
    placeholder = world.run(box, "echo $API")
    world.holtd.ok("POST", f"/holt/v1/sandboxes/{box}/restart", {"force": True})
    del world.secure.seen[:]
    world.run(box, f'{CURL} -H "X-Key: $API" {world.url("/echo")}')
    assert f"x-key: {CANARY}" in world.secure.got() and world.run(box, "echo $API") == placeholder
    world.holtd.ok("DELETE", f"/holt/v1/sandboxes/{box}")


# --- last: it is nowhere ---

HOLDER = REQUESTS + """
kept = [s.get(os.environ["SERVER"] + "/echo", headers={"X-Key": key}) for _ in range(20)]
open("/root/kept", "w").write(kept[0].text)
open("/root/ready", "w").close()
import time; time.sleep(300)
"""


def inside():
    """Host's pids of all that runs in the sandbox, one that stays first: they share their init's pid namespace."""
    inits = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            inits[int(pid)] = (os.readlink(f"/proc/{pid}/ns/pid"), open(f"/proc/{pid}/cmdline", "rb").read())
        except OSError:
            continue
    spaces = {ns: p for p, (ns, line) in inits.items() if b"import os, requests" in line}
    return sorted((p for p, (ns, _) in inits.items() if ns in spaces), key=lambda p: p not in spaces.values())


def memory(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            span, rights = line.split()[:2]
            low, high = (int(x, 16) for x in span.split("-"))
            if "r" not in rights or line.rstrip().endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                continue
            try:
                mem.seek(low)
                yield mem.read(min(high - low, 256 << 20))
            except (OSError, ValueError, OverflowError):
                continue


def files(root, skip=()):
    for directory, dirs, names in os.walk(root, followlinks=False):
        dirs[:] = [d for d in dirs if os.path.join(directory, d) not in skip]
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def test_it_is_nowhere_inside(world, box):
    holtd = world.holtd
    holtd.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["python3", "-c", HOLDER], "background": True})
    wait_for(lambda: holtd.request("GET", f"/holt/v1/sandboxes/{box}/files?path=/root/ready")[0] == 200, 60)
    out = world.run(box, "env; for d in /proc/[0-9]*; do cat $d/environ $d/cmdline; done | tr '\\0' '\\n'")
    assert "API_KEY=holt-secret-" in out
    pids = inside()
    assert len(pids) >= 2, pids
    placeholder, looked = world.run(box, "echo $API_KEY").strip().encode(), 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the last command's shell may be ending
            for name in ("environ", "cmdline"):
                with open(f"/proc/{pid}/{name}", "rb") as f:
                    assert not has_canary(f.read())
            for part in memory(pid):
                assert not has_canary(part), f"in the memory of {pid}"
                looked += part.count(placeholder)
    assert looked > 20  # the search sees what is there
    root, seen = f"/proc/{pids[0]}/root", 0
    for path in files(root, {f"{root}/{d}" for d in ("proc", "sys", "dev", "usr")}):
        with open(path, "rb") as f:
            data = f.read()
        assert not has_canary(data), path
        seen += placeholder in data
    assert seen >= 2, "the files that the clients wrote were not looked at"


def test_it_is_in_nothing_that_holt_keeps_or_says(world, box):
    holtd = world.holtd
    assert CANARY in world.secure.got()
    for path in ("sandboxes", f"sandboxes/{box}", f"sandboxes/{box}/execs", "secrets", "secrets/api", "settings", "openapi.json", "ca"):
        assert not has_canary(json.dumps(holtd.ok("GET", f"/holt/v1/{path}"))), path
    assert not has_canary(holtd.ok("GET", "/metrics"))
    events = all_events(holtd)
    kinds = {e["type"] for e in events}
    assert {"secret.created", "secret.updated", "secret.removed", "egress.allowed"} <= kinds
    assert not has_canary(json.dumps(events))
    assert "holt-secret-" not in json.dumps([e for e in events if e["type"].startswith(("sandbox.", "secret."))])
    assert not has_canary(json.dumps(holtd.ok("GET", "/holt/v1/audit?limit=1000")))
    seen = set()
    for path in files(holtd.state):
        with open(path, "rb") as f:
            assert not has_canary(f.read()), path
        seen.add(os.path.basename(path))
    assert {"holt.db", "egress.log", "secret.key", "ca.key"} <= seen
    assert not has_canary(holtd.log())
    for pid in (holtd.pid, holtd.egress_pid()):
        with open(f"/proc/{pid}/cmdline", "rb") as line, open(f"/proc/{pid}/environ", "rb") as env:
            assert not has_canary(line.read() + env.read())
    secrets = {s["name"]: s for s in holtd.ok("GET", "/holt/v1/secrets")["secrets"]}
    assert secrets["api"]["hosts"] == ["api.test"] and not any("value" in s for s in secrets.values())
