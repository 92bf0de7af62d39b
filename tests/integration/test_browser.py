"""HTML served from inside a sandbox, in a real browser whose owner is logged in: it cannot act on the API, nor on another
sandbox's preview, with the viewer's rights.  docs/threat-model.md says which guard stands against what."""
import json
import os
import re
import shutil
import subprocess
import urllib.parse

import pytest

from daemon import ASAN, BUILD, ROOT, environment, free_ports, native, wait_for

API = "/holt/v1"
HERE = f"{ROOT}/tests/integration"
NODE = f"{HERE}/node"
SECRET = "the victim's own words"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(420),
    pytest.mark.skipif(not shutil.which("node") or not os.path.isdir(f"{NODE}/node_modules/playwright-core"), reason="make deps"),
    pytest.mark.skipif(not shutil.which("chromium"), reason="no Chromium: make deps"),
    pytest.mark.skipif(ASAN, reason="the browser is the slow part"),
]


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("browser"), "--audit-fold-ms", "0")
    yield d
    d.clear()
    d.stop()


def put(d, box, path, data):
    assert d.request("PUT", f"{API}/sandboxes/{box}/files?path={path}", data, headers={"Content-Type": "application/octet-stream"})[0] < 300


def read(name):
    with open(f"{HERE}/{name}", "rb") as f:
        return f.read()


def site(d, name, files):
    """A sandbox with the test's server in it: (id, port)."""
    box = d.ok("POST", f"{API}/sandboxes", {"name": name})["id"]
    d.ok("POST", f"{API}/sandboxes/{box}/files/mkdir", {"path": "/srv/www", "parents": True})
    for path, data in {"/srv/server.py": read("inside_server.py"), "/srv/secret": SECRET.encode(), **files}.items():
        put(d, box, path, data)
    x = d.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": ["python3", "/srv/server.py", "8000", "/srv/www"], "background": True})
    wait_for(lambda: "8000" in d.ok("GET", f"{API}/sandboxes/{box}/execs/{x['id']}/output?stream=stdout"))
    return box


def preview(d, box):
    return d.ok("POST", f"{API}/sandboxes/{box}/previews", {"port": 8000})


@pytest.fixture
def forward(holtd):
    """The attacker's port at 127.0.0.1, where the dashboard is too: one site to the browser, and its cookies go there."""
    env = environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token})
    local = free_ports()[0]
    p = subprocess.Popen([f"{BUILD}/holt", "port-forward", "attacker", f"{local}:8000"], env=env, stdout=subprocess.PIPE)
    p.stdout.readline()
    yield f"http://127.0.0.1:{local}"
    p.kill()
    p.wait()
    p.stdout.close()


def outcomes(pages):
    return {f"page {n}, {name}": said for n, got in enumerate(pages) for name, said in got.items()}


def browse(plan):
    r = subprocess.run(["node", "browser_attack.js", json.dumps(plan)], cwd=NODE, capture_output=True, text=True, timeout=400,
                       stdin=subprocess.DEVNULL)
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout)


def test_a_page_from_inside_has_none_of_its_viewers_rights(holtd, request):
    files = {"/srv/www/attack.html": read("attack.html"), "/srv/www/worker.js": read("attack_worker.js"), "/srv/www/index.html": b"hello"}
    attacker, victim = site(holtd, "attacker", files), site(holtd, "victim", {"/srv/www/seen": SECRET.encode(), "/srv/www/index.html": b"hi"})
    forwarded = request.getfixturevalue("forward")
    mine, theirs = preview(holtd, attacker), preview(holtd, victim)
    own_host = urllib.parse.urlsplit(mine["origin"]).hostname
    apis = [f"http://{h}:{holtd.port}" for h in ("127.0.0.1", "localhost", own_host, "rebound.example")]
    at = {"apis": apis, "victim": theirs["origin"], "box": victim, "self": attacker, "port": 8000}
    codes = [holtd.ok("POST", f"{API}/login/code", {})["code"] for _ in range(2)]
    plan = {
        "rules": "MAP rebound.example 127.0.0.1",
        "logins": [f"{api}/#login={code}" for api, code in zip(apis, codes)],
        "victim": theirs["url"],
        "pages": [{"open": mine["url"], "url": mine["origin"] + "/attack.html", "at": at},
                  {"url": forwarded + "/attack.html", "at": at},
                  {"url": forwarded.replace("127.0.0.1", "localhost") + "/attack.html", "at": at}],
        "visits": [{"url": f"{apis[0]}{API}/sandboxes/{attacker}/{what}", "headers": headers} for what, headers in (
            ("ports/8000/attack.html", {}), ("ports/8000/attack.html", {"Authorization": f"Bearer {holtd.token}"}),
            ("files?path=/srv/www/attack.html", {}))],
    }
    before = holtd.ok("GET", f"{API}/events?limit=1000")["events"][-1]["seq"]
    out = browse(plan)

    assert out["before"] == out["victim"] == {"status": 200, "text": SECRET}, "the viewer sees the victim's preview, before and after"
    assert out["self"] == [200, 200], "and is still logged in, at both names"
    assert out["used"] == {"posted": "9dd4e461268c8034f5c8564e155c67a6", "echo": "hello", "event": "tick",
                           "cookies": "mine=1; tossed=1", "sent": "mine=1; tossed=1"}, "its own page works"
    said = outcomes(out["pages"])
    assert len(said) > 300, "every attempt has run"
    through = {k: v for k, v in said.items() if "read:" in v}
    assert not through, through
    assert not re.search("holt_(session|preview)=", "".join(got["cookies"] for got in out["pages"]))

    cookie, bearer, file = out["visits"]
    assert cookie == {"status": 403, "ran": False, "download": False}, "the path form takes no cookie"
    assert bearer == {"status": 200, "ran": False, "download": False}, "and its pages run no script"
    assert not file["ran"] and file["download"], "a file is saved, not shown"

    for c in out["cookies"]:
        assert c["domain"] not in ("localhost.", ".localhost"), f"a cookie for all previews: {c}"
        ours = c["name"] in ("holt_session", "holt_preview") and c["value"] != "evil"
        assert not ours or (c["sameSite"] == "Strict" and c["httpOnly"]), c

    boxes = {b["name"]: b["state"] for b in holtd.ok("GET", f"{API}/sandboxes")["sandboxes"]}
    assert boxes == {"attacker": "running", "victim": "running"}
    made = [e for e in holtd.ok("GET", f"{API}/events?since={before}&limit=1000")["events"] if not e["object"].startswith("token/")]
    assert not made, made
    audit = holtd.ok("GET", f"{API}/audit?since={before}&limit=1000")["events"]
    assert not [e for e in audit if e["type"] == "request.read" and "secret" in e["object"]], "nothing was read"
    refused = [e for e in audit if e["type"] == "request.refused"]
    assert len(refused) > 100, "the attempts did reach holtd"


def test_a_rebound_name_is_not_ours(new_holtd):
    """A page whose name's address changed to 127.0.0.1 is of holtd's origin to the browser; where no token is needed, Host says no."""
    d = new_holtd("--auth", "off")
    plan = {"rules": "MAP rebound.example 127.0.0.1", "rebound": f"http://rebound.example:{d.port}"}
    assert browse(plan) == [403, 403, 403, 403]
    assert d.ok("GET", f"{API}/sandboxes", token=None)["sandboxes"] == []
