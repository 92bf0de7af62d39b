"""The sbx interface on native sandboxes: HTTP and WebSocket, by clients that know nothing of holt."""
import http.client
import json
import os
import re
import subprocess
import threading
import time

import pytest

from daemon import BUILD, ROOT, environment, free_ports, native, wait_for


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("sbx"), env={"SANDBOX_ENV_FROM_SETTING": "s", "SANDBOX_MEM_LIMIT": "512Mi"})
    yield d
    for box in d.ok("GET", "/holt/v1/sandboxes")["sandboxes"]:
        d.request("DELETE", f"/holt/v1/sandboxes/{box['id']}")
    assert d.stop() == 0


def call(holtd, method, path, body=None, raw=None, headers=None, timeout=30):
    """(status, decoded body, headers); no content type is sent, as with the original's clients."""
    c = http.client.HTTPConnection("127.0.0.1", holtd.port, timeout=timeout)
    data = raw if raw is not None else None if body is None else json.dumps(body)
    c.request(method, path, data, {"authorization": f"Bearer {holtd.token}", **(headers or {})})
    r = c.getresponse()
    text = r.read().decode()
    got = json.loads(text) if r.getheader("content-type", "").startswith("application/json") else text
    c.close()
    return r.status, got, r.headers


def ok(holtd, method, path, body=None):
    status, got, _ = call(holtd, method, path, body)
    assert status == 200, got
    return got


@pytest.fixture(scope="module")
def box(holtd):
    yield ok(holtd, "POST", "/sandboxes", {"id": "main"})["id"]
    ok(holtd, "DELETE", "/sandboxes/main")


def sync(holtd, box, *argv, **more):
    return call(holtd, "POST", f"/sandboxes/{box}/exec", {"command": list(argv), "async": False, **more})[:2]


def start(holtd, box, *argv, **more):
    got = ok(holtd, "POST", f"/sandboxes/{box}/exec", {"command": list(argv), **more})
    assert got["status"] == "running" and re.fullmatch("[0-9a-f]{16}", got["exec_id"])
    return got["exec_id"]


def record(holtd, box, exec_id):
    return ok(holtd, "GET", f"/sandboxes/{box}/execs/{exec_id}")


def ended(holtd, box, exec_id):
    return wait_for(lambda: (lambda r: r if r["status"] not in ("running", "canceling") else None)(record(holtd, box, exec_id)))


def test_create_list_get_delete(holtd):
    made = ok(holtd, "POST", "/sandboxes", {"id": "demo"})
    assert made == {"id": "sbx-demo", "namespace": "sbx-demo", "pod_name": "sandbox"}
    assert ok(holtd, "POST", "/sandboxes", {"id": "demo", "image": "other"}) == made, "idempotent"
    assert ok(holtd, "POST", "/sandboxes", {"id": "sbx-demo"}) == made, "what was returned may be sent"
    own = ok(holtd, "POST", "/sandboxes", {})
    assert re.fullmatch("sbx-[0-9a-f]{12}", own["id"])
    for name in ("demo", "sbx-demo"):
        got = ok(holtd, "GET", f"/sandboxes/{name}")
        assert got == {"id": "sbx-demo", "namespace": "sbx-demo", "phase": "Running", "pod_name": "sandbox"}
        assert holtd.ok("GET", f"/holt/v1/sandboxes/{name}")["limits"]["memory_bytes"] == 512 << 20
    holtd.ok("POST", "/holt/v1/sandboxes", {"name": "native-one"})
    rows = ok(holtd, "GET", "/sandboxes")
    assert [r["id"] for r in rows] == sorted(["sbx-demo", own["id"]]), "only its own, by name"
    assert rows[0]["namespace"] == rows[0]["id"] and re.fullmatch("[0-9]+s", rows[0]["age"])
    assert (rows[0]["state"], rows[0]["allocated"], rows[0]["last_exec_time"]) == ("Active", "true", "-")
    assert sync(holtd, "native-one", "echo", "x")[1]["stdout"] == "x\n", "but any may be named"
    assert sync(holtd, "demo", "true")[0] == 200
    rows = {r["id"]: r for r in ok(holtd, "GET", "/sandboxes")}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", rows["sbx-demo"]["last_exec_time"])
    for name in ("demo", own["id"], "native-one"):
        assert ok(holtd, "DELETE", f"/sandboxes/{name}") == {"status": "deleted"}
    assert call(holtd, "DELETE", "/sandboxes/demo")[:2] == (404, {"error": 'namespaces "demo" not found'})
    assert call(holtd, "GET", "/sandboxes/demo")[:2] == (404, {"error": 'pods "sandbox" not found'})
    assert ok(holtd, "GET", "/sandboxes") == []


def test_many_creates_of_one_id_make_one(holtd):
    got = []
    threads = [threading.Thread(target=lambda: got.append(ok(holtd, "POST", "/sandboxes", {"id": "same"}))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(got) == 8 and len(ok(holtd, "GET", "/sandboxes")) == 1
    ok(holtd, "DELETE", "/sandboxes/same")


CREATE = "json: cannot unmarshal %s into Go struct field CreateSandboxRequest.%s of type %s"


@pytest.mark.parametrize("body, text", [
    ("", "EOF"),
    ("  \n", "EOF"),
    ("{", "unexpected EOF"),
    ("{bad}", "invalid character 'b' looking for beginning of object key string"),
    ('{"id" 1}', "invalid character '1' after object key"),
    ('{"id":"a" "b"}', "invalid character '\"' after object key:value pair"),
    ('{"id":}', "invalid character '}' looking for beginning of value"),
    ('{"id":tru}', "invalid character '}' in literal true (expecting 'e')"),
    ('{"id":"a\nb"}', "invalid character '\\n' in string literal"),
    ('{"id":"\\x"}', "invalid character 'x' in string escape code"),
    ('{"command":["a" 1]}', "invalid character '1' after array element"),
    ('{"id":-x}', "invalid character 'x' in numeric literal"),
    ('{"id":1}', CREATE % ("number", "id", "string")),
    ('{"command":"x"}', CREATE % ("string", "command", "[]string")),
    ('{"command":[1]}', CREATE % ("number", "command", "string")),
    ('{"env":[]}', CREATE % ("array", "env", "map[string]string")),
    ('{"env":{"A":true}}', CREATE % ("bool", "env", "string")),
    ("[" * 100000, "exceeded max depth"),
    ('{"id":"UPPER"}', "id must be DNS-1123 compatible (lowercase letters, numbers, '-')"),
    ('{"id":"-a"}', "id must be DNS-1123 compatible (lowercase letters, numbers, '-')"),
    ('{"id":"a_b"}', "id must be DNS-1123 compatible (lowercase letters, numbers, '-')"),
])
def test_bodies_that_are_wrong(holtd, body, text):
    assert call(holtd, "POST", "/sandboxes", raw=body)[:2] == (400, {"error": text})


def test_fields_of_create(holtd):
    body = {"id": "fields", "env": {"A": "1", "FROM_SETTING": "r", "unknown": ""}, "allowed_hosts": ["a.example", "b.example"],
            "disallowed_hosts": ["c.example"], "volume_mode": "whatever", "cache_mode": None, "nobody": ["knows"],
            "command": ["sh", "-c", "echo begun > /workspace/begun; sleep 1000"]}
    status, got, _ = call(holtd, "POST", "/sandboxes", raw=json.dumps(body) + " trailing is not read")
    assert status == 200 and got["id"] == "sbx-fields"
    status, got = sync(holtd, "fields", "sh", "-c", "echo $A $FROM_SETTING $SBX_ALLOWED_HOSTS $SBX_DISALLOWED_HOSTS; pwd; touch /cache/x")
    assert (status, got["stdout"]) == (200, "1 r a.example,b.example c.example\n/workspace\n"), got
    wait_for(lambda: sync(holtd, "fields", "cat", "begun")[1].get("stdout") == "begun\n")
    ok(holtd, "DELETE", "/sandboxes/fields")


def test_sync_exec(holtd, box):
    status, got = sync(holtd, box, "sh", "-c", "echo out; echo err >&2; echo $FROM_SETTING")
    assert status == 200 and got.pop("exec_id")
    assert got == {"stdout": "out\ns\n", "stderr": "err\n", "status": "completed", "exit_code": 0}
    status, got = sync(holtd, box, "sh", "-c", "echo kept; exit 3")
    assert status == 500 and got["error"] == "command terminated with exit code 3"
    assert (got["stdout"], got["exit_code"], got["status"]) == ("kept\n", 3, "failed"), "the output is not lost"
    status, got = sync(holtd, box, "sh", "-c", "echo early; sleep 60", timeout_seconds=1)
    assert (status, got["error"], got["stdout"], got["exit_code"]) == (500, "context deadline exceeded", "early\n", 124)
    status, got = sync(holtd, box, "no-such-program")
    assert status == 500 and "no-such-program" in got["error"]
    assert sync(holtd, box, "printf", r"a\377b")[1]["stdout"] == "a\ufffdb"
    began = time.monotonic()
    assert sync(holtd, box, "true")[0] == 200 and time.monotonic() - began < 0.4, "no wait of half a second"


def test_exec_refusals(holtd, box):
    def refused(body, where=box):
        return call(holtd, "POST", f"/sandboxes/{where}/exec", raw=body)[:2]
    assert refused("") == (400, {"error": "EOF"})
    assert refused("{}") == (400, {"error": "command is required"})
    assert refused('{"command":[]}') == (400, {"error": "command is required"})
    assert refused('{"command":["x"],"timeout_seconds":0}') == (400, {"error": "timeout_seconds must be > 0"})
    assert refused('{"command":["x"],"timeout_seconds":21601}') == (400, {"error": "timeout_seconds must be <= 21600"})
    assert refused('{"command":["x"],"timeout_seconds":1.5}')[1]["error"] == (
        "json: cannot unmarshal number 1.5 into Go struct field ExecRequest.timeout_seconds of type int")
    assert refused('{"command":["x"],"async":1}')[1]["error"] == (
        "json: cannot unmarshal number into Go struct field ExecRequest.async of type bool")
    assert refused('{"command":["x"]}', "gone") == (404, {"error": 'sandbox not ready: pods "sandbox" not found'})
    holtd.ok("POST", f"/holt/v1/sandboxes/{box}/pause")
    status, got = refused('{"command":["x"]}')
    assert status == 409 and got["error"].startswith("sandbox not ready: ")
    holtd.ok("POST", f"/holt/v1/sandboxes/{box}/resume")


def test_async_exec_and_records(holtd, box):
    e = start(holtd, box, "sh", "-c", "sleep 0.3; exit 5", timeout_seconds=9)
    r = record(holtd, box, e)
    assert (r["sandbox_id"], r["exec_id"], r["status"], r["timeout_seconds"]) == (box, e, "running", 9) and "exit_code" not in r
    r = ended(holtd, box, e)
    assert (r["status"], r["exit_code"], r["error"]) == ("failed", 5, "command terminated with exit code 5")
    assert r["started_at"] < r["finished_at"] and r["finished_at"].endswith("Z")
    assert ended(holtd, box, start(holtd, box, "true"))["exit_code"] == 0
    r = ended(holtd, box, start(holtd, box, "sleep", "50", timeout_seconds=1))
    assert (r["status"], r["exit_code"], r["error"]) == ("timed_out", 124, "context deadline exceeded")
    for where in (f"/sandboxes/{box}/execs/0123456789abcdef", f"/sandboxes/none/execs/{e}"):
        assert call(holtd, "GET", where)[:2] == (404, {"error": "exec not found"})
        assert call(holtd, "POST", where + "/cancel")[:2] == (404, {"error": "exec not found"})


def test_cancel_ends_everything(holtd, box):
    e = start(holtd, box, "sh", "-c", "setsid sleep 91 & sleep 92")
    wait_for(lambda: sync(holtd, box, "pgrep", "-x", "sleep")[0] == 200)
    assert ok(holtd, "POST", f"/sandboxes/{box}/execs/{e}/cancel", None)["status"] in ("canceling", "canceled")
    r = ended(holtd, box, e)
    assert r["status"] == "canceled" and "exit_code" not in r and "error" not in r
    assert call(holtd, "POST", f"/sandboxes/{box}/execs/{e}/cancel")[:2] == (409, {"error": "exec is already in terminal state"})
    assert sync(holtd, box, "pgrep", "-x", "sleep")[0] == 500, "nothing of it is left"


def test_a_caller_who_goes_ends_a_sync_command(holtd, box):
    with pytest.raises(TimeoutError):
        call(holtd, "POST", f"/sandboxes/{box}/exec", {"command": ["sleep", "93"], "async": False}, timeout=1)
    wait_for(lambda: sync(holtd, box, "pgrep", "-x", "sleep")[0] == 500)


def test_conventions(holtd, box):
    status, got, headers = call(holtd, "GET", f"/sandboxes/{box}", headers={"x-request-id": "mine-1"})
    assert (status, headers["x-request-id"], headers["content-type"]) == (200, "mine-1", "application/json; charset=utf-8")
    assert re.fullmatch("[0-9a-z]{6,}", call(holtd, "GET", "/sandboxes")[2]["x-request-id"])
    for method, path in (("PUT", "/sandboxes"), ("GET", f"/sandboxes/{box}/nothing"), ("DELETE", f"/sandboxes/{box}/exec"), ("GET", "/sandboxes/a/b/c/d/e")):
        assert call(holtd, method, path)[:2] == (404, "404 page not found"), path
    status, _, headers = call(holtd, "GET", "/sandboxes/")
    assert (status, headers["location"]) == (301, "/sandboxes")
    assert call(holtd, "POST", "/sandboxes/")[0] == 307
    c = http.client.HTTPConnection("127.0.0.1", holtd.port)
    c.request("GET", "/sandboxes")
    r = c.getresponse()
    assert r.status == 401 and isinstance(json.loads(r.read())["error"], str) and r.headers["x-request-id"]
    status, got, _ = call(holtd, "POST", "/sandboxes", {"id": "evil"}, headers={"origin": "http://evil.example", "content-type": "text/plain"})
    assert status == 403, got
    assert call(holtd, "GET", "/sandboxes/evil")[0] == 404


def test_metrics_and_health(holtd, box):
    status, got, _ = call(holtd, "GET", "/metrics", headers={"accept": "application/json"})
    assert status == 200 and got["sandbox_create_total"] > 0 and got["sandbox_exec_total"] > 0
    for key in ("cmdline", "memstats", "sandbox_cache_mode", "sandbox_create_warm_hit_total", "sandbox_create_cold_total", "sandbox_delete_total",
                "sandbox_create_ready_ms_avg", "sandbox_create_ready_ms_last", "sandbox_stream_buffer", "warm_pool_desired", "warm_pool_ready"):
        assert key in got
    assert call(holtd, "GET", "/healthz", headers={"accept": "text/plain"})[1] == "ok"
