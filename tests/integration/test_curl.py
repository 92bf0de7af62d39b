"""curl: the client everybody has, over every kind of listener."""
import json
import subprocess

import pytest

from daemon import free_ports


def curl(*args, code=0):
    r = subprocess.run(
        ["curl", "-sS", "--noproxy", "*", "--max-time", "60", "-w", "\n%{http_code} %{http_version}", *args],
        capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert r.returncode == code, r.stderr
    body, _, status = r.stdout.rpartition("\n")
    return body, status


@pytest.fixture(scope="module")
def tls(tmp_path_factory, certificate):
    from daemon import Holtd
    cert, key = certificate
    port, both = free_ports(2)
    directory = tmp_path_factory.mktemp("tls-holtd")
    d = Holtd(directory, listen=[f"tls://127.0.0.1:{port}", f"127.0.0.1:{both}", f"unix:{directory}/holt.sock"],
              config=f"tls_cert: {cert}\ntls_key: {key}\n")
    d.tls_port, d.both_port, d.sock, d.cert = port, both, f"{directory}/holt.sock", cert
    yield d
    assert d.stop() == 0


@pytest.mark.parametrize("flag, version", [("--http1.1", "1.1"), ("--http1.0", "1.0"), ("--http2-prior-knowledge", "2")])
def test_clear_text(holtd, flag, version):
    body, status = curl(flag, f"{holtd.url}/healthz")
    assert json.loads(body)["status"] == "alive"
    assert status.split()[0] == "200"
    if version != "1.0":
        assert status.split()[1] == version


@pytest.mark.parametrize("flag, version", [("--http1.1", "1.1"), ("--http2", "2")])
def test_tls_by_alpn(tls, flag, version):
    body, status = curl(flag, "--cacert", tls.cert, f"https://localhost:{tls.tls_port}/healthz")
    assert json.loads(body)["status"] == "alive"
    assert status == f"200 {version}"


def test_tls_and_clear_text_on_one_port(tls):
    assert curl("--cacert", tls.cert, f"https://localhost:{tls.both_port}/healthz")[1].startswith("200")
    assert curl(f"http://localhost:{tls.both_port}/healthz")[1].startswith("200")


def test_clear_text_is_refused_where_tls_is_demanded(tls):
    r = subprocess.run(["curl", "-sS", "--noproxy", "*", "--max-time", "60", "-o", "/dev/null", "-w", "%{http_code}",
                        f"http://127.0.0.1:{tls.tls_port}/healthz"], capture_output=True, text=True)
    assert r.stdout != "200"
    tls.assert_alive()


def test_old_tls_is_refused(tls):
    r = subprocess.run(["curl", "-sS", "--noproxy", "*", "--max-time", "60", "--tls-max", "1.1", "--cacert", tls.cert,
                        f"https://localhost:{tls.tls_port}/healthz"], capture_output=True, text=True)
    assert r.returncode == 35, r.stderr


@pytest.mark.parametrize("flag", ["--http1.1", "--http2-prior-knowledge"])
def test_unix_socket(tls, flag):
    assert curl(flag, "--unix-socket", tls.sock, "http://localhost/healthz")[1].startswith("200")


@pytest.mark.parametrize("flag", ["--http1.1", "--http2-prior-knowledge"])
def test_make_use_and_revoke_a_token(holtd, flag):
    auth = ["-H", f"Authorization: Bearer {holtd.token}"]
    body, status = curl(flag, *auth, "-H", "Content-Type: application/json", "-d", '{"name": "c", "role": "observer"}',
                        f"{holtd.url}/holt/v1/tokens")
    assert status.startswith("201")
    made = json.loads(body)
    mine = ["-H", f"Authorization: Bearer {made['token']}"]
    body, status = curl(flag, *mine, f"{holtd.url}/holt/v1/tokens/self")
    assert status.startswith("200") and json.loads(body)["id"] == made["id"]
    assert curl(flag, *auth, "-X", "DELETE", f"{holtd.url}/holt/v1/tokens/{made['id']}")[1].startswith("204")
    body, status = curl(flag, *mine, f"{holtd.url}/holt/v1/tokens/self")
    assert status.startswith("401") and json.loads(body)["error"]["code"]


@pytest.mark.parametrize("flag", ["--http1.1", "--http2-prior-knowledge"])
def test_errors_are_json_on_both_versions(holtd, flag):
    for path, want in (("/holt/v1/info", "401"), ("/no/such", "404")):
        body, status = curl(flag, f"{holtd.url}{path}")
        assert status.startswith(want)
        e = json.loads(body)["error"]
        assert e["code"] and e["message"]


def test_field_errors_name_the_field_and_the_range(holtd):
    auth = ["-H", f"Authorization: Bearer {holtd.token}", "-H", "Content-Type: application/json"]
    url = f"{holtd.url}/holt/v1/tokens"
    for body, words in (
        ('{"role": "observer"}', ["name"]),
        ('{"name": "x", "role": "king"}', ["role", "observer", "admin"]),
        ('{"name": "x", "ttl_ms": 1}', ["ttl_ms", "1s", "3650d"]),
        ('{"name": "x", "colour": 1}', ["colour"]),
        ('{"name": 7}', ["name"]),
        ("{", ["body", "line 1"]),
        ("[]", ["object"]),
    ):
        text, status = curl(*auth, "-d", body, url)
        assert status.startswith("400"), (body, text)
        message = json.dumps(json.loads(text)["error"])
        assert all(w in message for w in words), (body, message)


def test_expect_and_upload_by_curl(holtd):
    body, status = curl("--http1.1", "-H", f"Authorization: Bearer {holtd.token}", "-H", "Content-Type: application/json",
                        "-H", "Expect: 100-continue", "-H", "Transfer-Encoding: chunked", "-d",
                        '{"name": "up", "role": "observer"}', f"{holtd.url}/holt/v1/tokens")
    assert status.startswith("201"), body


def test_metrics_are_prometheus_text(holtd):
    body, status = curl("-H", f"Authorization: Bearer {holtd.token}", f"{holtd.url}/metrics")
    assert status.startswith("200")
    names = {line.split("{")[0].split(" ")[0] for line in body.splitlines() if line and line[0] != "#"}
    for part in ("process_", "loop", "http", "store", "event"):
        assert any(part in n for n in names), f"no metric about {part}: {sorted(names)}"
    for line in body.splitlines():
        if line and line[0] != "#":
            float(line.rsplit(" ", 1)[1])
