"""Secrets as holtd keeps them: set, shown without their values, given to sandboxes as placeholders; and the authority that
sandboxes with a network trust.  What becomes of them on the wire: test_intercept.py, tests/security/egress/test_canary.py."""
import json
import os
import pty
import re
import select
import signal
import sqlite3
import subprocess

import pytest

from archives import folder, member, symlink, tar
from daemon import BUILD, all_events, environment, wait_for
from home import Home

HOLT = f"{BUILD}/holt"
VALUE = "canary-7b1e55d0-value"
PLACEHOLDER = "holt-secret-[0-9a-f]{32}"


@pytest.fixture(autouse=True)
def clean(holtd):
    yield
    holtd.clear()
    for s in holtd.ok("GET", "/holt/v1/secrets")["secrets"]:
        holtd.ok("DELETE", f"/holt/v1/secrets/{s['name']}")
    assert VALUE not in holtd.log()


def put(holtd, name, **body):
    return holtd.ok("PUT", f"/holt/v1/secrets/{name}", body)


def create(holtd, **body):
    return holtd.ok("POST", "/holt/v1/sandboxes", body)


def env_of(holtd, box, name):
    r = holtd.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["sh", "-c", f"printf %s \"${name}\""]})
    return r["stdout"]


def refused(holtd, method, path, body, code, *words, **more):
    status, reply, _ = holtd.request(method, path, body, **more)
    assert reply["error"]["code"] == code, (status, reply)
    text = json.dumps(reply)
    assert all(w in text for w in words), text
    assert VALUE not in text
    return reply["error"]


# --- the API ---

def test_a_secret_is_set_changed_shown_and_removed(holtd):
    s = holtd.ok("POST", "/holt/v1/secrets", {"name": "gh", "value": VALUE, "hosts": ["API.example.com.", "*.example.org"]})
    assert s["hosts"] == ["api.example.com", "*.example.org"] and s["in"] == ["header", "query", "basic"]
    assert (s["methods"], s["path"], s["plain"], s["used_by"]) == (None, None, False, 0) and s["id"].startswith("sc_")
    refused(holtd, "POST", "/holt/v1/secrets", {"name": "gh", "value": VALUE, "hosts": ["a.test"]}, "conflict", "exists already")
    changed = put(holtd, "gh", methods=["GET", "POST"], path="/v1/*", **{"in": ["basic", "header"]}, plain=True)
    assert changed["id"] == s["id"] and changed["hosts"] == s["hosts"] and changed["rotated_at"] == s["rotated_at"]
    assert (changed["methods"], changed["path"], changed["in"], changed["plain"]) == (["GET", "POST"], "/v1/*", ["header", "basic"], True)
    rotated = put(holtd, "gh", value=VALUE + "-2")
    assert rotated["rotated_at"] > s["rotated_at"] and rotated["path"] == "/v1/*" and rotated["plain"] is True
    wider = put(holtd, "gh", methods=[], path="", plain=False)
    assert (wider["methods"], wider["path"], wider["plain"]) == (None, None, False)
    assert holtd.ok("GET", "/holt/v1/secrets/gh") == holtd.ok("GET", f"/holt/v1/secrets/{s['id']}") == wider
    put(holtd, "second", value=VALUE, hosts=["b.test"])
    page = holtd.ok("GET", "/holt/v1/secrets?limit=1")
    assert [x["name"] for x in page["secrets"]] == ["gh"] and page["cursor"] == s["id"]
    assert [x["name"] for x in holtd.ok("GET", f"/holt/v1/secrets?cursor={page['cursor']}")["secrets"]] == ["second"]
    holtd.ok("DELETE", "/holt/v1/secrets/gh")
    refused(holtd, "GET", "/holt/v1/secrets/gh", None, "not_found", "holt secret ls")
    refused(holtd, "DELETE", "/holt/v1/secrets/gh", None, "not_found")
    mine = [e for e in all_events(holtd) if e["object"] == f"secret/{s['id']}"]
    assert [e["type"] for e in mine] == ["secret.created", "secret.updated", "secret.updated", "secret.updated", "secret.removed"]
    assert [e["data"].get("rotated") for e in mine] == [True, False, True, False, None]
    assert VALUE not in json.dumps(all_events(holtd)) and VALUE not in json.dumps(holtd.ok("GET", "/holt/v1/audit?limit=1000"))


@pytest.mark.parametrize("body, words", [
    ({"hosts": ["a.test"]}, "value"),
    ({"value": VALUE}, "at least one host"),
    ({"value": VALUE, "hosts": ["10.0.0.1"]}, "is an address"),
    ({"value": VALUE, "hosts": ["*"]}, "hosts"),
    ({"value": VALUE, "hosts": ["*.test"]}, "top-level"),
    ({"value": VALUE, "hosts": ["a.test:443"]}, "hosts"),
    ({"value": VALUE, "hosts": [f"h{i}.test" for i in range(33)]}, "hosts"),
    ({"value": "abc", "hosts": ["a.test"]}, "4 to 4096"),
    ({"value": "x" * 4097, "hosts": ["a.test"]}, "value"),
    ({"value": VALUE + "\r\nX: 1", "hosts": ["a.test"]}, "not allowed in a header"),
    ({"value": VALUE + "\u0000", "hosts": ["a.test"]}, ""),
    ({"value": {"deep": VALUE}, "hosts": ["a.test"]}, "value"),
    ({"value": [VALUE], "hosts": ["a.test"]}, "value"),
    ({"value": VALUE, "hosts": ["a.test"], "methods": ["get"]}, "methods"),
    ({"value": VALUE, "hosts": ["a.test"], "path": "v1"}, "path"),
    ({"value": VALUE, "hosts": ["a.test"], "path": "/a/../b"}, "path"),
    ({"value": VALUE, "hosts": ["a.test"], "in": ["cookie"]}, "header, query and basic"),
    ({"value": VALUE, "hosts": ["a.test"], "in": ["header", "header"]}, "each once"),
    ({"value": VALUE, "hosts": ["a.test"], VALUE[:6]: 1}, ""),
])
def test_what_is_wrong_is_said_without_the_value(holtd, body, words):
    refused(holtd, "PUT", "/holt/v1/secrets/bad", body, "invalid", words)
    assert holtd.ok("GET", "/holt/v1/secrets")["secrets"] == []


def test_broken_bodies_repeat_nothing(holtd):
    for raw in (b'{"value": "%s", "hosts": [' % VALUE.encode(), b'{"value": %s}' % VALUE.encode(), b'{"value": "%s" "x"}' % VALUE.encode()):
        status, reply, _ = holtd.request("PUT", "/holt/v1/secrets/bad", raw)
        assert status == 400 and VALUE not in json.dumps(reply), reply


def test_a_sandbox_has_a_placeholder_of_its_own(holtd):
    put(holtd, "gh-token", value=VALUE, hosts=["api.test"])
    a = create(holtd, secrets=[{"name": "gh-token"}, {"name": "gh-token", "env": "AGAIN"}])
    b = create(holtd, secret=["gh-token=TOKEN"])
    assert [(s["name"], s["env"], s["unreachable"]) for s in a["secrets"]] == [
        ("gh-token", "GH_TOKEN", ["api.test"]), ("gh-token", "AGAIN", ["api.test"])]
    found = [env_of(holtd, a["id"], "GH_TOKEN"), env_of(holtd, a["id"], "AGAIN"), env_of(holtd, b["id"], "TOKEN")]
    assert len(set(found)) == 3 and all(re.fullmatch(PLACEHOLDER, f) for f in found)
    assert holtd.ok("GET", "/holt/v1/secrets/gh-token")["used_by"] == 2
    # what a command says of the variable itself wins
    r = holtd.ok("POST", f"/holt/v1/sandboxes/{b['id']}/execs", {"command": "echo $TOKEN", "env": {"TOKEN": "mine"}})
    assert r["stdout"] == "mine\n"
    r = holtd.ok("POST", "/holt/v1/run", {"command": "echo $GH_TOKEN", "secret": ["gh-token"]})
    assert re.fullmatch(PLACEHOLDER + "\n", r["stdout"])
    holtd.ok("POST", f"/holt/v1/sandboxes/{b['id']}/restart", {"force": True})
    assert env_of(holtd, b["id"], "TOKEN") == found[2]
    holtd.ok("DELETE", "/holt/v1/secrets/gh-token")  # it may go while it is used
    assert holtd.ok("GET", f"/holt/v1/sandboxes/{b['id']}")["secrets"] == [{"name": "gh-token", "env": "TOKEN", "unreachable": []}]
    assert env_of(holtd, b["id"], "TOKEN") == found[2]


def test_what_a_create_may_not_ask_for(holtd):
    put(holtd, "gh", value=VALUE, hosts=["api.test"])
    for body, code, words in (
            ({"secrets": [{"name": "none"}]}, "not_found", "there is no secret 'none'"),
            ({"secrets": [{"name": "gh", "env": "A-B"}]}, "invalid", "not a valid name of a variable"),
            ({"secrets": [{"name": "gh", "env": "1A"}]}, "invalid", "not a valid name of a variable"),
            ({"secrets": [{"name": "gh"}, {"name": "gh"}]}, "invalid", "two secrets have the variable 'GH'"),
            ({"secrets": [{"name": "gh"}], "env": {"GH": "x"}}, "invalid", "'env' also sets the variable 'GH'"),
            ({"secrets": [{"name": "gh", "value": VALUE}]}, "invalid", "wrong or unknown"),
            ({"secrets": "gh"}, "invalid", "list"), ({"secrets": [1]}, "invalid", "object"),
            ({"secrets": [{"name": "gh", "env": f"V{i}"} for i in range(33)]}, "invalid", "at most 32")):
        refused(holtd, "POST", "/holt/v1/sandboxes", body, code, words)
    for i in range(4):
        put(holtd, f"big{i}", value="v" * 4000, hosts=["api.test"])
    refused(holtd, "POST", "/holt/v1/sandboxes", {"secret": [f"big{i}" for i in range(4)]}, "limit", "24576 bytes")
    box = create(holtd, secret=["big0", "big1", "gh"])["id"]
    refused(holtd, "PUT", "/holt/v1/secrets/gh", {"value": "v" * 4096}, "limit", box)
    assert holtd.ok("GET", "/holt/v1/sandboxes")["sandboxes"][0]["id"] == box


def test_agents_neither_see_nor_use_them(holtd):
    put(holtd, "gh", value=VALUE, hosts=["api.test"])
    agent = holtd.ok("POST", "/holt/v1/tokens", {"name": "a", "role": "agent", "agent": "a1"})["token"]
    observer = holtd.new_token("o", "observer")["token"]
    for method, path in (("GET", "secrets"), ("GET", "secrets/gh"), ("PUT", "secrets/gh"), ("DELETE", "secrets/gh"), ("GET", "ca")):
        assert holtd.request(method, f"/holt/v1/{path}", {} if method == "PUT" else None, token=agent)[0] == 403
    refused(holtd, "POST", "/holt/v1/sandboxes", {"secret": ["gh"]}, "forbidden", "an agent may not give", token=agent)
    refused(holtd, "POST", "/holt/v1/run", {"command": "true", "secret": ["gh"]}, "forbidden", "an agent may not give", token=agent)
    assert holtd.ok("GET", "/holt/v1/secrets/gh", token=observer)["name"] == "gh"
    assert holtd.request("PUT", "/holt/v1/secrets/gh", {"value": VALUE}, token=observer)[0] == 403
    operator = holtd.new_token("p", "operator")["token"]
    assert holtd.ok("PUT", "/holt/v1/secrets/gh", {"value": VALUE}, token=operator)["name"] == "gh"


# --- what is kept ---

def in_state(holtd):
    for directory, _, names in os.walk(holtd.state):
        for name in names:
            path = f"{directory}/{name}"
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    if VALUE.encode() in f.read():
                        yield path


def test_a_restart_keeps_them_and_the_value_is_nowhere_in_clear(new_holtd):
    d = new_holtd(name="d")
    assert not os.path.exists(f"{d.state}/secret.key")
    put(d, "gh", value=VALUE, hosts=["api.test"])
    box = create(d, secret=["gh"])["id"]
    key = f"{d.state}/secret.key"
    assert os.stat(key).st_mode & 0o7777 == 0o600 and os.stat(f"{d.state}/ca.key").st_mode & 0o7777 == 0o600
    ca, placeholder = d.ok("GET", "/holt/v1/ca"), env_of(d, box, "GH")
    assert list(in_state(d)) == []
    os.kill(d.pid, signal.SIGKILL)
    d.process.wait()
    d = new_holtd(name="d")
    wait_for(lambda: d.ok("GET", f"/holt/v1/sandboxes/{box}")["state"] == "running")
    assert d.ok("GET", "/holt/v1/ca") == ca and env_of(d, box, "GH") == placeholder
    assert d.ok("GET", "/holt/v1/secrets/gh")["used_by"] == 1
    put(d, "gh", value=VALUE + "-rotated")
    assert list(in_state(d)) == []
    d.ok("DELETE", f"/holt/v1/sandboxes/{box}")


def test_a_key_that_is_lost_open_or_another_is_said(new_holtd):
    d = new_holtd(name="d")
    put(d, "gh", value=VALUE, hosts=["api.test"])
    key = f"{d.state}/secret.key"
    with open(key) as f:
        right = f.read()

    def again(change):
        d.stop()
        change()
        return new_holtd(name="d")

    d = again(lambda: os.chmod(key, 0o640))
    refused(d, "POST", "/holt/v1/sandboxes", {"secret": ["gh"]}, "forbidden", "mode 0640", "chmod 600")
    refused(d, "PUT", "/holt/v1/secrets/gh", {"value": VALUE}, "forbidden", "chmod 600")
    d = again(lambda: os.unlink(key))
    assert "the secrets cannot be used" in d.log()
    refused(d, "POST", "/holt/v1/sandboxes", {"secret": ["gh"]}, "not_found", "is missing", "restore it from a backup")
    refused(d, "PUT", "/holt/v1/secrets/new", {"value": VALUE, "hosts": ["a.test"]}, "not_found", "is missing")

    def other():
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write("ab" * 32 + "\n")

    d = again(other)
    refused(d, "POST", "/holt/v1/sandboxes", {"secret": ["gh"]}, "conflict", "is not the key")
    os.unlink(key)

    def restore():
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(right)

    d = again(restore)
    assert put(d, "gh", value=VALUE)["name"] == "gh"
    d = again(lambda: os.unlink(key))
    d.ok("DELETE", "/holt/v1/secrets/gh")  # the way out without a backup
    assert put(d, "gh", value=VALUE, hosts=["api.test"])["name"] == "gh"
    assert os.stat(key).st_mode & 0o7777 == 0o600


@pytest.mark.of_sqlite
def test_rows_hold_what_only_the_key_opens(new_holtd):
    d = new_holtd(name="d")
    put(d, "gh", value=VALUE, hosts=["api.test"])
    put(d, "other", value="another-value", hosts=["b.test"])
    d.stop()
    with sqlite3.connect(f"{d.state}/holt.db") as db:
        sealed = dict(db.execute("SELECT name, sealed FROM secrets"))
        assert len(sealed["gh"]) == len(VALUE) + 29 and VALUE.encode() not in sealed["gh"]
        db.execute("UPDATE secrets SET sealed = ? WHERE name = 'other'", (sealed["gh"],))
    db.close()
    d = new_holtd(name="d")  # put in another's place, it opens for nobody
    assert "a secret cannot be decrypted" in d.log() and "name=other" in d.log()


def test_without_interception_there_is_no_authority(new_holtd):
    d = new_holtd("--intercept=false")
    refused(d, "GET", "/holt/v1/ca", None, "not_found", "'intercept'")
    put(d, "tls", value=VALUE, hosts=["api.test"])
    put(d, "plain", value=VALUE, hosts=["api.test"], plain=True)
    refused(d, "POST", "/holt/v1/sandboxes", {"secret": ["tls"]}, "conflict", "setting 'intercept'")
    box = create(d, secret=["plain"])["id"]
    assert not os.path.exists(f"{d.state}/ca.key")
    rule = {"allow": [{"host": "a.test", "methods": ["GET"]}]}
    refused(d, "POST", "/holt/v1/sandboxes", {"network": rule}, "unsupported", "interception")
    d.ok("DELETE", f"/holt/v1/sandboxes/{box}")


# --- the command line ---

def holt(holtd, *args, status=0, stdin=b"", **more):
    env = environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token, "HOME": "/nonexistent"})
    r = subprocess.run([HOLT, *args], input=stdin, capture_output=True, timeout=60, env=env, **more)
    out = (r.stdout + r.stderr).decode()
    assert r.returncode == status, out
    assert VALUE not in out
    return out


def test_set_from_standard_input_a_file_and_not_from_argv(holtd, tmp_path):
    out = holt(holtd, "secret", "set", "gh", "--host", "api.test", "--host", "*.api.test", "--method", "GET", "--in", "header,basic", "--plain",
               stdin=VALUE.encode() + b"\n")
    assert "rotated_at" in out
    s = holtd.ok("GET", "/holt/v1/secrets/gh")
    assert (s["hosts"], s["methods"], s["in"], s["plain"]) == (["api.test", "*.api.test"], ["GET"], ["header", "basic"], True)
    (tmp_path / "v").write_text(VALUE + "\n")
    assert holtd.ok("GET", "/holt/v1/secrets/gh")["rotated_at"] == s["rotated_at"]
    holt(holtd, "secret", "set", "gh", "--value-file", str(tmp_path / "v"))
    assert holtd.ok("GET", "/holt/v1/secrets/gh")["rotated_at"] > s["rotated_at"]
    holt(holtd, "secret", "set", "gh", "--keep-value", "--path", "/v1/*")
    assert holtd.ok("GET", "/holt/v1/secrets/gh")["path"] == "/v1/*"
    assert re.search(r"^gh +api\.test, \*\.api\.test +GET +/v1/\* ", holt(holtd, "secret", "ls"), re.M)
    assert "gh" in holt(holtd, "secret", "inspect", "gh")
    assert "unknown flag" in holt(holtd, "secret", "set", "gh", "--value", "x", status=1)
    holt(holtd, "secret", "set", "new", "--host", "a.test", "--value-file", str(tmp_path / "none"), status=2)
    assert "--keep-value" in holt(holtd, "secret", "set", "new", "--host", "a.test", status=1)
    out = holt(holtd, "run", "--secret", "gh=TOKEN", "--", "sh", "-c", "echo $TOKEN")
    assert re.fullmatch(PLACEHOLDER + "\n", out)
    holt(holtd, "secret", "rm", "gh")
    assert holtd.ok("GET", "/holt/v1/secrets")["secrets"] == []
    assert holt(holtd, "ca").startswith("-----BEGIN CERTIFICATE-----\n")


def test_a_terminal_is_asked_and_shows_nothing(holtd):
    env = environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token, "HOME": "/nonexistent", "TERM": "dumb"})
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(HOLT, [HOLT, "secret", "set", "tty", "--host", "api.test"], env)
    shown = b""
    while b"not shown" not in shown and select.select([fd], [], [], 20)[0]:
        shown += os.read(fd, 4096)
    os.write(fd, VALUE.encode() + b"\n")
    while select.select([fd], [], [], 20)[0]:
        try:
            part = os.read(fd, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, shown
    os.close(fd)
    assert VALUE.encode() not in shown and holtd.ok("GET", "/holt/v1/secrets/tty")["hosts"] == ["api.test"]


# --- the authority inside ---

@pytest.fixture(scope="module", params=["own", "rootless", "ranges"])
def real(request):
    home = Home(request.param)
    d = home.native()
    try:
        yield d
        d.clear()
    finally:
        d.stop()
        home.close()


def read(holtd, box, path):
    status, text, _ = holtd.request("GET", f"/holt/v1/sandboxes/{box}/files?path={path}")
    return text if status == 200 else None


BUNDLE, ALONE = "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/holt-ca.pem"


@pytest.mark.parametrize("more", [{}, {"rootfs": "ro"}, {"upper": "memory"}, {"upper": "memory", "rootfs": "ro"}])
def test_the_host_image_trusts_it(real, more):
    ca = real.ok("GET", "/holt/v1/ca")
    box = create(real, network="open", **more)["id"]
    bundle = read(real, box, BUNDLE)
    assert read(real, box, ALONE) == ca
    if os.path.exists(BUNDLE):
        with open(BUNDLE) as f:
            assert bundle == f.read() + ca
    env = env_of(real, box, "SSL_CERT_FILE:$REQUESTS_CA_BUNDLE:$CURL_CA_BUNDLE:$GIT_SSL_CAINFO:$CARGO_HTTP_CAINFO:$PIP_CERT:$NODE_EXTRA_CA_CERTS")
    assert env == ":".join([BUNDLE] * 7), "all that the host trusts, a company's own authority too, and ours"
    r = real.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": "echo $SSL_CERT_FILE", "env": {"SSL_CERT_FILE": "/mine"}})
    assert r["stdout"] == "/mine\n"
    if more.get("rootfs") == "ro":
        r = real.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": f"echo x >> {BUNDLE}; echo x >> {ALONE}"})
        assert r["stderr"].count("cannot create") == 2 and "Read-only" in r["stderr"]
    real.ok("DELETE", f"/holt/v1/sandboxes/{box}")


def test_without_a_network_there_is_nothing_of_it(real):
    box = create(real, upper="memory")["id"]
    assert read(real, box, ALONE) is None
    assert env_of(real, box, "SSL_CERT_FILE$NODE_EXTRA_CA_CERTS") == ""
    real.ok("DELETE", f"/holt/v1/sandboxes/{box}")


OLD = "-----BEGIN CERTIFICATE-----\nold\n-----END CERTIFICATE-----"
RHEL = "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"
IMAGES = {
    "debian": ([member("etc/ssl/certs/ca-certificates.crt", OLD.encode())], [BUNDLE, "/usr/local/share/ca-certificates/holt.crt"]),
    "alpine": ([member("etc/ssl/certs/ca-certificates.crt", OLD.encode() + b"\n"), symlink("etc/ssl/cert.pem", "certs/ca-certificates.crt")],
               [BUNDLE, "/etc/ssl/cert.pem"]),
    "rhel": ([member(RHEL, OLD.encode()), folder("etc/pki/tls/certs"), folder("etc/pki/ca-trust/source/anchors"),
              symlink("etc/pki/tls/certs/ca-bundle.crt", f"/{RHEL}")],
             ["/etc/pki/tls/certs/ca-bundle.crt", f"/{RHEL}", BUNDLE, "/etc/pki/ca-trust/source/anchors/holt.pem"]),
    "none": ([folder("etc")], [BUNDLE]),
    "bare": ([member("x", b"1")], [BUNDLE]),
    "odd": ([folder("etc/ssl/certs"), symlink("etc/ssl/certs/ca-certificates.crt", "ca-certificates.crt"),
             symlink("etc/ssl/cert.pem", "/proc/self/mem"), folder("etc/ssl/ca-bundle.pem")], [BUNDLE]),
    "outside": ([folder("etc/ssl/certs"), symlink("etc/ssl/certs/ca-certificates.crt", "../../../../../../../etc/passwd")], [BUNDLE]),
}


@pytest.mark.parametrize("kind", IMAGES)
def test_images_trust_it_by_their_own_bundle(real, kind):
    members, holds = IMAGES[kind]
    ca = real.ok("GET", "/holt/v1/ca")
    raw = tar(*members)
    real.ok("POST", f"/holt/v1/images/import?name={kind}", raw, headers={"Content-Type": "application/octet-stream"})
    box = create(real, image=kind, network="open")["id"]
    for _ in range(2):  # also when it is started again, and only once
        for path in [*holds, ALONE]:
            text = read(real, box, path)
            assert text and text.endswith(ca) and text.count(ca) == 1, (path, text)
            if kind in ("debian", "alpine", "rhel") and "holt" not in path:
                assert text == OLD + "\n" + ca
        real.ok("POST", f"/holt/v1/sandboxes/{box}/stop", {"force": True})
        real.ok("POST", f"/holt/v1/sandboxes/{box}/start", {})
    real.ok("DELETE", f"/holt/v1/sandboxes/{box}")
    box = create(real, image=kind, network="open", rootfs="ro")["id"]
    assert read(real, box, ALONE) == ca and read(real, box, BUNDLE).endswith(ca)
    real.ok("DELETE", f"/holt/v1/sandboxes/{box}")
