"""The sbx interface on native sandboxes: HTTP and WebSocket, by clients that know nothing of holt."""
import asyncio
import base64
import http.client
import json
import os
import re
import shutil
import subprocess
import threading
import time

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from daemon import BUILD, SOAK, Holtd, environment, native, wait_for
from own_network import own_network


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("sbx"), env={"SANDBOX_ENV_FROM_SETTING": "s", "SANDBOX_MEM_LIMIT": "512Mi"})
    yield d
    d.clear()
    assert d.stop() == 0


def call(holtd, method, path, body=None, raw=None, headers=None, timeout=60):
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
    assert re.fullmatch("[0-9a-f]{64}", made.pop("ingest_token")), "told once"
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
    got, phases = [], []

    def create():
        got.append(ok(holtd, "POST", "/sandboxes", {"id": "same"}))
        phases.append(ok(holtd, "GET", "/sandboxes/same")["phase"])
    threads = [threading.Thread(target=create) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(got) == 8 and len(ok(holtd, "GET", "/sandboxes")) == 1
    assert phases == ["Running"] * 8, "all are answered when it is ready"
    ok(holtd, "DELETE", "/sandboxes/same")


def test_a_create_during_a_delete_makes_a_new_one(holtd):
    """Its answer is not about the one that goes: that would be gone when the asker uses it."""
    auth = {"authorization": f"Bearer {holtd.token}"}
    one, two = (http.client.HTTPConnection("127.0.0.1", holtd.port, timeout=60) for _ in range(2))
    for c in (one, two):  # open, so that the requests arrive in this order
        c.request("GET", "/sandboxes", headers=auth)
        c.getresponse().read()
    for _ in range(3):
        first = ok(holtd, "POST", "/sandboxes", {"id": "again"})["ingest_token"]
        start(holtd, "again", "sleep", "1000")
        one.request("DELETE", "/sandboxes/again", headers=auth)
        time.sleep(0.001)
        two.request("POST", "/sandboxes", '{"id": "again"}', auth)
        made = json.loads(two.getresponse().read())
        assert one.getresponse().read() == b'{"status":"deleted"}'
        assert made["id"] == "sbx-again" and made["ingest_token"] != first
        assert sync(holtd, "again", "echo", "new")[1]["stdout"] == "new\n"
        ok(holtd, "DELETE", "/sandboxes/again")
    one.close()
    two.close()


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


def test_bodies_as_go_takes_them(holtd):
    """Keys in any case, of two the last; what is no character is U+FFFD; but no NUL, for which no argument or variable has room."""
    raw = b'{"id": "first", "ID": "go", "env": {"A": "x\xff", "B": "\\ud800y"}, "Image": ""}'
    assert call(holtd, "POST", "/sandboxes", raw=raw)[1]["id"] == "sbx-go"
    assert sync(holtd, "go", "sh", "-c", "echo $A $B")[1]["stdout"] == "x\ufffd \ufffdy\n"
    assert sync(holtd, "go", "echo", "a\0b") == (400, {"error": "command: a text with a NUL character"})
    assert call(holtd, "POST", "/sandboxes", raw='{"env": {"A": "\\u0000"}}')[:2] == (400, {"error": "env: a text with a NUL character"})
    ok(holtd, "DELETE", "/sandboxes/go")


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


def test_the_shared_cache(holtd):
    names = [ok(holtd, "POST", "/sandboxes", {"cache_mode": mode})["id"] for mode in ("hostpath", "hostpath", "pvc", "emptydir")]
    assert sync(holtd, names[0], "sh", "-c", "echo kept > /cache/file")[0] == 200
    assert [sync(holtd, name, "cat", "/cache/file")[0] for name in names] == [200, 200, 500, 500]
    for name in names:
        ok(holtd, "DELETE", f"/sandboxes/{name}")


def test_hosts_are_the_network_policy(holtd):
    """Each entry that names something is a rule, however people write it: one that a list lost would be open, or shut, in silence."""
    def rule(x):
        return f"{x.get('host') or x['cidr']}{':' + str(x['ports'][0]) if 'ports' in x else ''}"

    for body, mode, allow, deny in (
            ({}, "open", [], []),
            ({"disallowed_hosts": ["evil.example"]}, "open", [], ["evil.example"]),
            ({"allowed_hosts": ["a.example", "*.b.example", "no host!"]}, "allowlist", ["a.example", "*.b.example"], []),
            ({"allowed_hosts": [" a.example ", "", "b.example:8443", ".c.example"]}, "allowlist", ["a.example", "b.example:8443", "*.c.example"], []),
            ({"disallowed_hosts": [" evil.example", "10.0.0.0/8", "192.0.2.1", "https://f.example:1/x", "*"]}, "open", [],
             ["evil.example", "10.0.0.0/8", "192.0.2.1", "f.example:1", "*"]),
            ({"allowed_hosts": ["*", "d.example"], "disallowed_hosts": ["evil.example"]}, "open", ["d.example"], ["evil.example"])):
        name = ok(holtd, "POST", "/sandboxes", body)["id"]
        policy = holtd.ok("GET", f"/holt/v1/sandboxes/{name}")["network"]
        assert (policy["mode"], [rule(x) for x in policy["allow"]], [rule(x) for x in policy["deny"]]) == (mode, allow, deny)
        ok(holtd, "DELETE", f"/sandboxes/{name}")
    for unclear in ("a.example/path", "who@evil.example", "evil.example;bad.example"):
        status, got, _ = call(holtd, "POST", "/sandboxes", {"disallowed_hosts": ["c.example", unclear]})
        assert status == 400 and "rule 2 of 'deny'" in got["error"], got


def test_sync_exec(holtd, box):
    status, got = sync(holtd, box, "sh", "-c", "echo out; echo err >&2; echo $FROM_SETTING")
    assert status == 200 and got.pop("sync_exec_id")
    assert got == {"stdout": "out\ns\n", "stderr": "err\n", "status": "completed", "exit_code": 0}
    status, got = sync(holtd, box, "sh", "-c", "echo kept; exit 3")
    assert status == 500 and got["error"] == "command terminated with exit code 3"
    assert (got["stdout"], got["exit_code"], got["status"]) == ("kept\n", 3, "failed"), "the output is not lost"
    status, got = sync(holtd, box, "sh", "-c", "echo early; sleep 60", timeout_seconds=5)
    assert (status, got["error"], got["stdout"], got["exit_code"]) == (500, "context deadline exceeded", "early\n", 124)
    status, got = sync(holtd, box, "no-such-program")
    assert status == 500 and "no-such-program" in got["error"]
    assert sync(holtd, box, "printf", r"a\377b")[1]["stdout"] == "a\ufffdb"

    def is_quick():
        began = time.monotonic()
        return sync(holtd, box, "true")[0] == 200 and time.monotonic() - began < 0.4

    wait_for(is_quick)  # a wait of half a second would make none so, a busy machine only some


def original_prints(got):
    """Both generations of the original command decide by `exec_id` whether a reply is of a command in the background."""
    return f"exec_id={got['exec_id']} status={got['status']}\n" if got.get("exec_id") else got.get("stdout", "") + got.get("stderr", "")


def test_sync_reply_prints_its_output_in_the_original_command(holtd, box):
    status, got = sync(holtd, box, "sh", "-c", "echo hello")
    assert status == 200 and original_prints(got) == "hello\n"
    e = ok(holtd, "POST", f"/sandboxes/{box}/exec", {"command": ["true"], "async": True})
    assert original_prints(e) == f"exec_id={e['exec_id']} status=running\n"
    assert ended(holtd, box, got["sync_exec_id"])["status"] == "completed", "its record is there all the same"


def test_the_command_of_the_pod_does_not_keep_it(tmp_path):
    """`sleep infinity` is what its own configuration starts everywhere: that alone must not keep a sandbox for ever."""
    d = native(tmp_path / "d", env={"SANDBOX_IDLE_TTL": "2s", "SANDBOX_IMAGE": "sandbox-base:dev"})
    try:
        ok(d, "POST", "/sandboxes", {"id": "idle", "command": ["sleep", "infinity"]})
        ok(d, "POST", "/sandboxes", {"id": "busy", "command": ["sh", "-c", "sleep infinity"]})
        assert sync(d, "busy", "sh", "-c", "sleep 5; echo done")[1]["stdout"] == "done\n", "a command of a client is activity"
        assert [x["id"] for x in ok(d, "GET", "/sandboxes")] == ["sbx-busy"]
        wait_for(lambda: not ok(d, "GET", "/sandboxes"))
    finally:
        d.clear()
        assert d.stop() == 0


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
    e = start(holtd, box, "sh", "-c", "until [ -e /tmp/go ]; do sleep 0.05; done; exit 5", timeout_seconds=90)
    r = record(holtd, box, e)
    assert (r["sandbox_id"], r["exec_id"], r["status"], r["timeout_seconds"]) == (box, e, "running", 90) and "exit_code" not in r
    assert sync(holtd, box, "touch", "/tmp/go")[0] == 200
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
    wait_for(lambda: sync(holtd, box, "pgrep", "-x", "sleep")[0] == 500)  # nothing of it is left


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
    assert call(holtd, "GET", f"/sandboxes/{box}/stream/?exec_id=a")[2]["location"] == f"/sandboxes/{box}/stream?exec_id=a"
    c = http.client.HTTPConnection("127.0.0.1", holtd.port)
    c.request("GET", "/sandboxes")
    r = c.getresponse()
    assert r.status == 401 and isinstance(json.loads(r.read())["error"], str) and r.headers["x-request-id"]
    status, got, _ = call(holtd, "POST", "/sandboxes", {"id": "evil"}, headers={"origin": "http://evil.example", "content-type": "text/plain"})
    assert status == 403, got
    assert call(holtd, "GET", "/sandboxes/evil")[0] == 404


def test_metrics_and_health(holtd, box):
    status, got, headers = call(holtd, "GET", "/metrics", headers={"accept": "application/json"})
    assert status == 200 and got["sandbox_create_total"] > 0 and headers["x-request-id"]
    before = got["sandbox_exec_total"]
    ended(holtd, box, start(holtd, box, "false"))
    run = f"/sandboxes/{box}/exec"
    assert [call(holtd, "POST", path, {"command": [c], "async": False})[0]
            for path, c in ((run, "true"), (run, "false"), ("/sandboxes/nobody/exec", "true"))] == [200, 500, 404]
    got = call(holtd, "GET", "/metrics", headers={"accept": "application/json"})[1]
    assert got["sandbox_exec_total"] == before + 2, "those in the background, and those that were waited for and went well"
    for key in ("cmdline", "memstats", "sandbox_cache_mode", "sandbox_create_warm_hit_total", "sandbox_create_cold_total", "sandbox_delete_total",
                "sandbox_create_ready_ms_avg", "sandbox_create_ready_ms_last", "sandbox_stream_buffer", "warm_pool_desired", "warm_pool_ready"):
        assert key in got
    _, got, headers = call(holtd, "GET", "/healthz", headers={"accept": "text/plain", "x-request-id": "mine"})
    assert got == "ok" and headers["x-request-id"] == "mine"


def test_metrics_on_its_own_port(tmp_path):
    """Where its clients come from, who says nothing gets what they know; Prometheus says what it wants."""
    with own_network():
        d = Holtd(tmp_path / "d", "--seed-ports")
        try:
            d.port = 8080
            wait_for(lambda: d._is_ready())
            assert call(d, "GET", "/healthz")[1] == "ok"
            for accept in ({}, {"accept": "*/*"}):
                assert call(d, "GET", "/metrics", headers=accept)[1]["sandbox_create_total"] == 0
            wants = {"accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"}
            assert call(d, "GET", "/metrics", headers=wants)[1].startswith("# HELP")
        finally:
            assert d.stop() == 0


# --- the stream ---

def stream_url(holtd, box, query=""):
    return f"ws://127.0.0.1:{holtd.port}/sandboxes/{box}/stream{query}"


def listen(holtd, box, query="", until=None, limit=60):
    """Events as they come, until one for which until() is true; without it, until none comes before and after a pong."""
    async def run():
        got, quiet = [], False
        async with connect(stream_url(holtd, box, query), additional_headers={"authorization": f"Bearer {holtd.token}"},
                           max_size=None) as ws:
            while True:
                try:
                    got.append(json.loads(await asyncio.wait_for(ws.recv(), limit if until else 0.4)))
                    quiet = False
                except TimeoutError:
                    assert not until, got[-3:]
                    if quiet:
                        return got
                    await (await ws.ping())
                    quiet = True
                if until and until(got[-1]):
                    return got
    return asyncio.run(run())


def exits(exec_id):
    return lambda e: e["type"] == "exit" and e["exec_id"] == exec_id


@pytest.fixture
def fresh(holtd):
    name = ok(holtd, "POST", "/sandboxes", {})["id"]
    yield name
    ok(holtd, "DELETE", f"/sandboxes/{name}")


def shape(e):
    return e["type"], e.get("stream"), e.get("data"), e.get("exit_code")


def test_stream_replays_and_is_live(holtd, fresh):
    a = start(holtd, fresh, "sh", "-c", "echo one; sleep 0.2; echo two >&2; sleep 0.2; exit 3")
    live = listen(holtd, fresh, until=exits(a))
    assert [shape(e) for e in live] == [("start", None, None, None), ("output", "stdout", "one\n", None), ("output", "stderr", "two\n", None),
                                        ("exit", "stderr", "command terminated with exit code 3", 3)]
    assert all(e["sandbox_id"] == fresh and e["exec_id"] == a for e in live)
    assert list(live[1]) == ["sandbox_id", "exec_id", "seq", "type", "stream", "data", "time"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", live[0]["time"])
    b = start(holtd, fresh, "echo", "three")
    wait_for(lambda: record(holtd, fresh, b)["status"] == "completed")
    replay = listen(holtd, fresh)
    assert replay[:4] == live, "the same, with the same seq"
    assert [shape(e) for e in replay[4:]] == [("start", None, None, None), ("output", "stdout", "three\n", None), ("exit", None, None, 0)]
    seqs = [e["seq"] for e in replay]
    assert seqs == sorted(set(seqs)) and seqs[-1] < 2 ** 53
    assert listen(holtd, fresh, f"?exec_id={b}") == replay[4:]
    native_id = holtd.ok("GET", f"/holt/v1/sandboxes/{fresh}/execs")["execs"][-1]["id"]
    assert listen(holtd, fresh, f"?exec_id={native_id}") == replay[4:], "by either of its ids"
    assert listen(holtd, fresh, f"?since={seqs[2]}") == replay[3:]
    assert listen(holtd, fresh, f"?since={seqs[-1]}") == []
    assert listen(holtd, fresh, "?since=0&exec_id=nobody") == []


def test_stream_of_commands_side_by_side(holtd, fresh):
    ids = [start(holtd, fresh, "sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do echo {n}.$i; sleep 0.02; done") for n in range(5)]
    for e in ids:
        ended(holtd, fresh, e)
    got = listen(holtd, fresh)
    seqs = [e["seq"] for e in got]
    assert seqs == sorted(set(seqs))
    for n, e in enumerate(ids):
        mine = [x for x in got if x["exec_id"] == e]
        assert (mine[0]["type"], mine[-1]["type"]) == ("start", "exit")
        assert "".join(x.get("data", "") for x in mine) == "".join(f"{n}.{i}\n" for i in range(1, 9))


def test_stream_begins_with_the_last_200(holtd, fresh):
    e = start(holtd, fresh, "sh", "-c", "i=0; while [ $i -lt 400 ]; do echo $i; i=$((i+1)); sleep 0.002; done")
    everything = listen(holtd, fresh, "?since=0", until=exits(e))
    assert "".join(x.get("data", "") for x in everything) == "".join(f"{i}\n" for i in range(400))
    assert len(everything) > 200, "else this shows nothing"
    assert listen(holtd, fresh) == everything[-200:]
    middle = everything[len(everything) // 3]["seq"]
    assert listen(holtd, fresh, f"?since={middle}") == [x for x in everything if x["seq"] > middle]


def test_characters_and_bytes(holtd, fresh):
    e = start(holtd, fresh, "sh", "-c", r"printf 'x\342'; sleep 0.2; printf '\202'; sleep 0.2; printf '\254y'; sleep 0.2; printf 'a\377b'")
    got = [x for x in listen(holtd, fresh, until=exits(e)) if x["type"] == "output"]
    assert "".join(x["data"] for x in got) == "x\u20acya\ufffdb", "a character in three pieces is one"
    exact = b"".join(base64.b64decode(x["data_base64"]) if "data_base64" in x else x["data"].encode() for x in got)
    assert exact == b"x\xe2\x82\xacya\xffb"


def test_how_commands_end_in_the_stream(holtd, fresh):
    e = start(holtd, fresh, "sleep", "60", timeout_seconds=1)
    assert shape(listen(holtd, fresh, until=exits(e))[-1]) == ("exit", "stderr", "context deadline exceeded", 124)
    e = start(holtd, fresh, "sleep", "60")
    ok(holtd, "POST", f"/sandboxes/{fresh}/execs/{e}/cancel")
    assert listen(holtd, fresh, until=exits(e))[-1]["exit_code"] == 1
    assert sync(holtd, fresh, "no-such-program")[0] == 500
    last = listen(holtd, fresh)[-1]
    assert last["exit_code"] == 1 and "no-such-program" in last["data"]


def test_stream_refusals(holtd, box):
    assert call(holtd, "GET", f"/sandboxes/{box}/stream")[0] == 400
    for query, where, status in (("?since=x", box, 400), ("?since=-1", box, 400), ("", "none", 404)):
        with pytest.raises(InvalidStatus) as e:
            listen(holtd, where, query)
        assert e.value.response.status_code == status

    async def foreign():
        async with connect(stream_url(holtd, box), additional_headers={"authorization": f"Bearer {holtd.token}"}, origin="http://evil.example"):
            pass
    with pytest.raises(InvalidStatus) as e:
        asyncio.run(foreign())
    assert e.value.response.status_code == 403


def test_close_at_exit_and_with_the_sandbox(holtd):
    name = ok(holtd, "POST", "/sandboxes", {})["id"]

    async def run():
        headers = {"authorization": f"Bearer {holtd.token}"}
        e = start(holtd, name, "sh", "-c", "echo x; sleep 0.3")
        async with connect(stream_url(holtd, name, f"?exec_id={e}&close=true"), additional_headers=headers) as ws:
            got = [json.loads(m)["type"] async for m in ws]
        assert got[-1] == "exit" and ws.close_code == 1000
        async with connect(stream_url(holtd, name), additional_headers=headers) as ws:
            await ws.recv()
            await asyncio.to_thread(ok, holtd, "DELETE", f"/sandboxes/{name}")
            async for _ in ws:
                pass
        assert ws.close_code == 1000
    asyncio.run(run())


def test_many_readers_of_a_busy_command(holtd, fresh):
    """All have every event; one that does not read for a while is given the rest from the log."""
    async def run():
        headers = {"authorization": f"Bearer {holtd.token}"}
        e = start(holtd, fresh, "sh", "-c", "sleep 0.5; i=0; while [ $i -lt 300 ]; do head -c 30000 /dev/zero | tr '\\0' z; echo $i; i=$((i+1)); done")

        async def read(slow):
            async with connect(stream_url(holtd, fresh, f"?exec_id={e}"), additional_headers=headers, max_size=None,
                               max_queue=1 if slow else 16) as ws:
                seqs, size = [], 0
                if slow:
                    await asyncio.sleep(3)
                while True:
                    m = json.loads(await asyncio.wait_for(ws.recv(), 60))
                    seqs.append(m["seq"])
                    size += len(m.get("data", "")) if m["type"] == "output" else 0
                    assert "gap" not in m
                    if m["type"] == "exit":
                        return seqs, size
        got = await asyncio.gather(*[read(n == 0) for n in range(30)])
        assert got[0][1] == 300 * 30000 + sum(len(f"{i}\n") for i in range(300))
        assert all(g == got[1] for g in got)
    asyncio.run(run())


@pytest.mark.skipif(not SOAK, reason="HOLT_SOAK=1")
def test_a_thousand_readers(holtd, fresh):
    async def run():
        gate = asyncio.Semaphore(50)
        assert sync(holtd, fresh, "mkfifo", "go")[0] == 200
        e = start(holtd, fresh, "sh", "-c", "read x < /workspace/go; i=0; while [ $i -lt 1000 ]; do echo line $i; i=$((i+1)); done; exit 9")
        ready = 0

        async def read():
            nonlocal ready
            async with gate:
                ws = await connect(stream_url(holtd, fresh), additional_headers={"authorization": f"Bearer {holtd.token}"}, open_timeout=60)
            ready += 1
            async with ws:
                seqs, text = [], ""
                while True:
                    m = json.loads(await asyncio.wait_for(ws.recv(), 120))
                    if m["exec_id"] != e:
                        continue
                    seqs.append(m["seq"])
                    if m["type"] == "exit":
                        return seqs, text
                    text += m.get("data", "")

        async def begin():
            while ready < 1000:
                await asyncio.sleep(0.05)
            await asyncio.to_thread(sync, holtd, fresh, "sh", "-c", "echo go > go")
        got = await asyncio.gather(begin(), *[read() for _ in range(1000)])
        assert got[1][1] == "".join(f"line {i}\n" for i in range(1000)) and all(g == got[1] for g in got[1:])
    asyncio.run(run())


def test_node_ws(holtd, node):
    assert "ok" in node("sbx.mjs", holtd.url, holtd.token)


def test_records_and_seq_outlive_holtd(tmp_path):
    d = native(tmp_path)
    try:
        name = ok(d, "POST", "/sandboxes", {"id": "lasting"})["id"]
        e = start(d, name, "sh", "-c", "echo before; sleep 0.2; echo more; sleep 6; echo after; exit 7")
        before = listen(d, name, until=lambda x: x.get("data") == "more\n")
        assert len(before) == 3
        quick = start(d, name, "echo", "quick")
        ended(d, name, quick)
        early = listen(d, name)
        hasty = start(d, name, "sh", "-c", "echo told; sleep 60")

        def kill_at_once(x):  # before its output had to be written, had nobody been told of it
            if x["exec_id"] == hasty and x["type"] == "output":
                d.process.kill()
                return True
            return False
        told = listen(d, name, until=kill_at_once)[-2:]
        d.process.wait()
        d = native(tmp_path)
        assert [x for x in listen(d, name, f"?exec_id={hasty}")] == told, "who was told is told the same"
        ok(d, "POST", f"/sandboxes/{name}/execs/{hasty}/cancel")
        ended(d, name, hasty)
        assert record(d, name, e)["status"] == "running"
        after = [x for x in listen(d, name, until=exits(e)) if x["exec_id"] != hasty]
        assert after[:len(early)] == early, "the same events with the same seq"
        assert [shape(x) for x in after[len(early):]] == [("output", "stdout", "after\n", None), ("exit", "stderr", "command terminated with exit code 7", 7)]
        assert [x for x in listen(d, name, f"?since={before[-1]['seq']}") if x["exec_id"] != hasty] == after[3:]
        assert record(d, name, quick)["status"] == "completed"
        ok(d, "DELETE", "/sandboxes/lasting")
    finally:
        assert d.stop() == 0


def test_commands_that_are_no_longer_kept_are_a_gap(tmp_path):
    d = native(tmp_path / "d", "--execs-max", "4")
    try:
        ok(d, "POST", "/sandboxes", {"id": "gap"})
        made = []

        def run(count):  # one after another: what ends before the first command does is no gap after it
            for _ in range(count):
                made.append(start(d, "gap", "echo", "x"))
                ended(d, "gap", made[-1])
        run(3)
        seen = listen(d, "gap", until=exits(made[0]))
        run(4)
        last = exits(made[-1])
        got = listen(d, "gap", f"?since={seen[-1]['seq']}", last)
        assert {x["exec_id"] for x in got} == set(made[3:])
        assert [x.get("gap") for x in got] == [True] + [None] * (len(got) - 1), "once, with the first event after it"
        got = listen(d, "gap", f"?since={seen[-1]['seq']}&exec_id={made[-1]}", last)
        assert [(x["type"], x.get("gap")) for x in got] == [("start", True), ("output", None), ("exit", None)], "also where the first is not shown"
        assert not any("gap" in x for x in listen(d, "gap", until=last)), "the last ones are all that was asked for"
        assert not any("gap" in x for x in listen(d, "gap", f"?since={got[0]['seq']}", last))
    finally:
        d.clear()
        assert d.stop() == 0


def test_ingest(holtd):
    made = ok(holtd, "POST", "/sandboxes", {"id": "sidecar"})
    other = ok(holtd, "POST", "/sandboxes", {"id": "other"})
    base = f"ws://127.0.0.1:{holtd.port}"
    token = made["ingest_token"]
    ours = {"authorization": f"Bearer {holtd.token}"}

    async def send(url, headers, *messages):
        async with connect(url, additional_headers=headers, max_size=None) as ws:
            for m in messages:
                await ws.send(m if isinstance(m, (str, bytes)) else json.dumps(m))
            await (await ws.ping())
            await asyncio.sleep(0.1)

    for url, headers in ((f"{base}/sandboxes/sidecar/ingest", {}), (f"{base}/t/{'0' * 64}/sandboxes/sidecar/ingest", {}),
                         (f"{base}/t/{other['ingest_token']}/sandboxes/sidecar/ingest", {}), (f"{base}/t/{token}/sandboxes/none/ingest", {}),
                         (f"{base}/sandboxes/sidecar/ingest", {"x-ingest-token": other["ingest_token"]})):
        with pytest.raises(InvalidStatus) as e:
            asyncio.run(send(url, headers))
        assert e.value.response.status_code == 401
    asyncio.run(send(f"{base}/t/{token}/sandboxes/sbx-sidecar/ingest", {},
                     {"exec_id": "abc", "type": "start", "sandbox_id": "forged", "seq": 7, "unknown": 1}, "not JSON", "[1]", b"bytes",
                     {"exec_id": "abc", "type": "output", "stream": "stdout", "data": "h\u00e9llo\n", "time": "2026-01-02T03:04:05Z"},
                     {"exec_id": "nul", "type": "output", "data": "a\0b"}, '{"exec_id": "nul", "type": "output", "data": "\\ud800"}'))
    e = start(holtd, "sidecar", "echo", "between")
    ended(holtd, "sidecar", e)
    asyncio.run(send(f"{base}/sandboxes/sidecar/ingest", {"x-ingest-token": token}, {"exec_id": "abc", "type": "exit", "exit_code": 5}))
    asyncio.run(send(f"{base}/sandboxes/sidecar/ingest", ours, {"exec_id": "big", "type": "output", "data": "\u20ac\x01" * 20000}))
    got = listen(holtd, "sidecar")
    seqs = [x["seq"] for x in got]
    assert seqs == sorted(set(seqs)) and all(x["sandbox_id"] == "sbx-sidecar" for x in got)
    abc = [x for x in got if x["exec_id"] == "abc"]
    assert [shape(x) for x in abc] == [("start", None, None, None), ("output", "stdout", "h\u00e9llo\n", None), ("exit", None, None, 5)]
    assert abc[1]["time"] == "2026-01-02T03:04:05Z" and abc[0]["time"].endswith("Z") and all(x["source"] == "ingest" for x in abc)
    assert [x["exec_id"] for x in got[:8]] == ["abc", "abc", "nul", "nul", e, e, e, "abc"], "in one order with our own"
    assert [x["data"] for x in got if x["exec_id"] == "nul"] == ["a\0b", "\ufffd"], "as Go writes a command's bytes"
    assert "".join(x["data"] for x in got if x["exec_id"] == "big") == "\u20ac\x01" * 20000
    assert listen(holtd, "sidecar", f"?since={seqs[1]}&exec_id=abc") == abc[2:]
    e = start(holtd, "sidecar", "sh", "-c", "sleep 1; echo real; exit 3")
    asyncio.run(send(f"{base}/t/{token}/sandboxes/sidecar/ingest", {}, {"exec_id": e, "type": "output", "stream": "stdout", "data": "forged\n"},
                     {"exec_id": e, "type": "exit", "exit_code": 0}))
    got = listen(holtd, "sidecar", f"?exec_id={e}&since=0", until=exits(e))
    assert [(x["type"], x.get("data"), "source" in x) for x in got[:2]] == [("start", None, False), ("output", "real\n", False)]
    assert got[2]["exit_code"] == 3 and len(got) == 3, "nobody speaks for our commands"
    assert call(holtd, "GET", f"/t/{token}/sandboxes/sidecar/ingest")[0] == 400
    assert token not in json.dumps(holtd.ok("GET", "/holt/v1/sandboxes/sidecar"))
    for name in ("sidecar", "other"):
        ok(holtd, "DELETE", f"/sandboxes/{name}")


def test_settings(tmp_path):
    config = tmp_path / "sbx.yaml"
    config.write_text("async_exec: false\nidle_ttl: 2m\ncpu_limit: 1500m\nallowed_hosts:\n  - f.example\n  - g.example\n"
                      "env:\n  ONE: file\n  TWO: file\nexec_timeout: 1s\nexec_max_timeout: 10s\nstream_buffer: 3\nwarm_pool_size: 0\n")
    d = native(tmp_path / "d", env={"SANDBOX_CONFIG": str(config), "SANDBOX_IDLE_TTL": "9m", "SANDBOX_ENV_TWO": "variable", "SANDBOX_MEM_LIMIT": "0.5Gi",
                                    "SANDBOX_STREAM_ENDPOINT": "http://control.example:8080/", "SANDBOX_EXEC_STATUS_RETENTION": "1s"})
    try:
        made = ok(d, "POST", "/sandboxes", {"id": "set"})
        box = d.ok("GET", "/holt/v1/sandboxes/set")
        assert box["idle_ttl_ms"] == 120000, "its file goes before its variables"
        assert (box["limits"]["cpu_millis"], box["limits"]["memory_bytes"]) == (1500, 1 << 29)
        status, got, _ = call(d, "POST", "/sandboxes/set/exec", {"command": ["sh", "-c", "echo $ONE $TWO $SBX_ALLOWED_HOSTS $SBX_SANDBOX_ID $SBX_STREAM_ENDPOINT"]})
        assert status == 200 and got["stdout"] == (
            f"file variable f.example,g.example sbx-set http://control.example:8080/t/{made['ingest_token']}\n"), "synchronous, by the setting"
        assert sync(d, "set", "sleep", "9")[1]["error"] == "context deadline exceeded", "the setting's limit"
        assert sync(d, "set", "true", timeout_seconds=11)[1] == {"error": "timeout_seconds must be <= 10"}
        assert len(listen(d, "set")) == 3
        assert call(d, "GET", f"/sandboxes/set/execs/{got['sync_exec_id']}")[:2] == (404, {"error": "exec not found"}), "for a second only"
        ok(d, "DELETE", "/sandboxes/set")
    finally:
        assert d.stop() == 0
    config.write_text("nobody_knows: 1\n")
    bad = Holtd(tmp_path / "bad", env={"SANDBOX_CONFIG": str(config)}, ready=False)
    assert bad.process.wait(60) != 0 and "nobody_knows" in bad.log() + bad.text


@pytest.mark.not_on("containers", "containers are not made ahead: warm_pool_desired is 0")
def test_settings_as_people_write_them(tmp_path):
    """Durations of Go, lists with spaces, values with commas; in its file what is empty is nothing, and 0 and false less than a variable."""
    config = tmp_path / "sbx.yaml"
    config.write_text("idle_ttl: 1h30m\ncpu_limit: 0.5\nmem_limit: ''\ncache_pvc_size: ''\nvolume_mode: ''\nallowed_hosts: []\nwarm_pool_size: 0\n"
                      "warm_pool_autosize: false\nasync_exec: false\nenv:\n  ONE: a, b\n  NONE: ''\n")
    d = native(tmp_path / "d", env={"SANDBOX_CONFIG": str(config), "SANDBOX_ENV_NO_PROXY": "localhost,127.0.0.1", "SANDBOX_VOLUME_MODE": "pvc",
                                    "SANDBOX_ALLOWED_HOSTS": "a.example, b.example ,", "SANDBOX_DISALLOWED_HOSTS": "c.example, d.example",
                                    "SANDBOX_WARM_POOL_SIZE": "2", "SANDBOX_ASYNC_EXEC": "1", "SANDBOX_EXEC_MAX_TIMEOUT": "0"})
    try:
        ok(d, "POST", "/sandboxes", {"id": "set"})
        box = d.ok("GET", "/holt/v1/sandboxes/set")
        assert (box["idle_ttl_ms"], box["limits"]["cpu_millis"], box["limits"]["memory_bytes"]) == (5400000, 500, None)
        assert [[x["host"] for x in box["network"][k]] for k in ("allow", "deny")] == [["a.example", "b.example"], ["c.example", "d.example"]]
        assert box["mounts"][0]["size_bytes"] == 10 << 30, "an empty text in the file is none"
        got = call(d, "POST", "/sandboxes/set/exec", {"command": ["sh", "-c", "echo $ONE $NO_PROXY $SBX_ALLOWED_HOSTS"]})[1]
        assert got["stdout"] == "a, b localhost,127.0.0.1 a.example,b.example\n", "async_exec: false is the one that counts"
        assert call(d, "GET", "/metrics", headers={"accept": "application/json"})[1]["warm_pool_desired"] == 2
        for seconds in (31622401, (1 << 63) - 1):
            assert sync(d, "set", "true", timeout_seconds=seconds) == (400, {"error": "timeout_seconds must be <= 31622400"})
        ok(d, "DELETE", "/sandboxes/set")
    finally:
        assert d.stop() == 0


def test_claims_have_their_size(tmp_path):
    """pvc: /workspace and /cache are as large as they say, and go with the sandbox; emptydir has no limit of its own."""
    d = native(tmp_path / "d", env={"SANDBOX_CACHE_PVC_SIZE": "64Mi", "SANDBOX_CPU_REQUEST": "100m", "SANDBOX_CREATE_READY_TIMEOUT": "60s"})
    try:
        assert "SANDBOX_CPU_REQUEST' is understood but has no effect: holt reserves no CPU" in d.log()
        assert "SANDBOX_CREATE_READY_TIMEOUT' is understood but has no effect: a create replies" in d.log()

        def size(box, place):
            return int(sync(d, box, "df", "-B1", "--output=size", place)[1]["stdout"].split()[1])

        ok(d, "POST", "/sandboxes", {"id": "claims", "volume_mode": "pvc", "cache_mode": "PVC"})
        ok(d, "POST", "/sandboxes", {"id": "own", "cache_mode": "pvc", "cache_pvc_size": "0.03125Gi"})
        ok(d, "POST", "/sandboxes", {"id": "plain", "cache_pvc_size": "32Mi"})
        can = os.geteuid() == 0 and os.path.exists("/dev/loop-control") and shutil.which("mke2fs", path="/usr/sbin:/sbin")
        assert ("disk_bytes" in d.ok("GET", "/holt/v1/sandboxes/claims")["unenforced"]) != bool(can)
        if can:
            assert 9 << 30 < size("claims", "/workspace") <= 10 << 30 and 48 << 20 < size("claims", "/cache") <= 64 << 20
            assert size("own", "/cache") <= 32 << 20 < size("own", "/workspace")
            status, got = sync(d, "own", "sh", "-c", "head -c 40M /dev/zero > /cache/big")
            assert status == 500 and "No space left" in got["stderr"]
        assert sync(d, "plain", "sh", "-c", "head -c 40M /dev/zero > /cache/big")[0] == 200
        assert call(d, "POST", "/sandboxes", {"cache_pvc_size": "5Q"})[:2] == (
            400, {"error": "cache_pvc_size: '5Q' is not a quantity like '500m', '2' or '512Mi'"})
        assert call(d, "POST", "/sandboxes", {"cache_pvc_size": "1k"})[:2] == (400, {"error": "cache_pvc_size must be from 1Mi to 1Ti"})
        status, _, headers = call(d, "POST", "/sandboxes", {"id": "classy", "cache_pvc_storage_class": "fast", "cache_pvc_access_mode": "rwx"})
        assert status == 200 and "cache_pvc_storage_class has no effect" in headers["warning"]
        for name in ("claims", "own", "plain", "classy"):
            ok(d, "DELETE", f"/sandboxes/{name}")
        assert os.listdir(f"{d.state}/sb") == []
    finally:
        assert d.stop() == 0


def test_the_cache_may_be_a_directory_of_the_host(tmp_path):
    cache = tmp_path / "deep" / "cache"
    d = native(tmp_path / "d", env={"SANDBOX_CACHE_MODE": "hostpath", "SANDBOX_CACHE_HOSTPATH": str(cache)})
    try:
        for name in ("one", "two"):
            ok(d, "POST", "/sandboxes", {"id": name})
        assert sync(d, "one", "sh", "-c", "echo kept > /cache/file")[0] == 200
        assert sync(d, "two", "cat", "/cache/file")[1]["stdout"] == "kept\n"
        assert (cache / "file").read_text() == "kept\n"
        for name in ("one", "two"):
            ok(d, "DELETE", f"/sandboxes/{name}")
        assert (cache / "file").exists() and d.ok("GET", "/holt/v1/volumes")["volumes"] == []
    finally:
        assert d.stop() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="as another user the directory is its own inside too")
def test_the_cache_s_directory_may_be_there_already(tmp_path):
    """An empty one is given to those inside; one with files stays as it is, and the log says what to do."""
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    for names, works in (([], True), (["mine"], False)):
        for name in names:
            os.chown(cache, 0, 0)
            (cache / name).write_text("mine")
        d = native(tmp_path / f"d{len(names)}", env={"SANDBOX_CACHE_MODE": "hostpath", "SANDBOX_CACHE_HOSTPATH": str(cache)})
        try:
            ok(d, "POST", "/sandboxes", {"id": "one"})
            status, got = sync(d, "one", "sh", "-c", "echo kept > /cache/file && rm /cache/file")
            assert (status == 200) == works, got
            assert ("chown -R" in d.log()) != works and cache.stat().st_mode & 0o777 == 0o700
            ok(d, "DELETE", "/sandboxes/one")
        finally:
            assert d.stop() == 0


def test_an_agent_has_the_operator_s_hosts(tmp_path):
    """Hosts that a setting gives everybody are no choice of the agent's; everything, or a list of its own, would be."""
    d = native(tmp_path / "d", env={"SANDBOX_ALLOWED_HOSTS": "a.example,b.example"})
    try:
        made = d.ok("POST", "/holt/v1/tokens", {"name": "maker", "role": "agent", "agent": "maker"})
        who = {"authorization": f"Bearer {made['token']}"}
        assert call(d, "POST", "/sandboxes", {"id": "given"}, headers=who)[0] == 200
        policy = d.ok("GET", "/holt/v1/sandboxes/given")["network"]
        assert policy["mode"] == "allowlist" and [x["host"] for x in policy["allow"]] == ["a.example", "b.example"]
        for own in ({"allowed_hosts": ["evil.example"]}, {"disallowed_hosts": ["a.example"]}):
            status, got, _ = call(d, "POST", "/sandboxes", own, headers=who)
            assert status == 403 and "may not set the network" in got["error"], got
        ok(d, "DELETE", "/sandboxes/given")
    finally:
        assert d.stop() == 0


def test_an_agent_does_not_get_everything(holtd):
    made = holtd.ok("POST", "/holt/v1/tokens", {"name": "maker", "role": "agent", "agent": "maker"})
    status, got, _ = call(holtd, "POST", "/sandboxes", {}, headers={"authorization": f"Bearer {made['token']}"})
    assert status == 403 and "may not set the network" in got["error"], "without a setting it would be open"


def copied(d, box, exec_id, directory):
    """{name: content} of one command's files in the events' directory, once its end is among them."""
    script = ("import os, sys, json; d, e = sys.argv[1:]\n"
              "print(json.dumps({n: open(f'{d}/{n}').read() for n in os.listdir(d) if n.startswith(e)}))")

    def there():
        status, got = sync(d, box, "python3", "-c", script, directory, exec_id)
        f = json.loads(got["stdout"]) if status == 200 else {}
        return f"{exec_id}.exit" in f and f
    return wait_for(there)


def test_sidecar_mode(tmp_path):
    """What commands write is in files inside, as the original's sidecar wants it; the stream is what it was."""
    d = native(tmp_path / "d", env={"SANDBOX_STREAM_MODE": "sidecar", "SANDBOX_STREAM_ENDPOINT": "http://h.example:1"})
    try:
        made = ok(d, "POST", "/sandboxes", {"id": "side", "command": ["sh", "-c", "echo first; sleep 1000"]})
        assert sync(d, "side", "sh", "-c", "echo $SBX_EVENTS_DIR")[1]["stdout"] == "/sbx-events\n"
        e = start(d, "side", "sh", "-c", "echo out; echo err >&2; printf '\\377'; exit 5")
        got = listen(d, "side", f"?exec_id={e}", exits(e))
        assert [x["type"] for x in got][0::len(got) - 1] == ["start", "exit"] and got[-1]["exit_code"] == 5
        wait_for(lambda: sync(d, "side", "test", "-e", f"/sbx-events/{e}.exit")[0] == 200)
        assert sync(d, "side", "sh", "-c", f"cd /sbx-events; cat {e}.stdout {e}.stderr {e}.exit | base64 -w0")[1]["stdout"] == \
            base64.b64encode(b"out\n\xfferr\n5").decode()
        wait_for(lambda: "first\n" in sync(d, "side", "sh", "-c", "cat /sbx-events/*.stdout")[1].get("stdout", ""))
        # It is there as it is written, and also when a command is cancelled or its time is over.
        slow = start(d, "side", "sh", "-c", "echo begun; exec sleep 1000")
        late = start(d, "side", "sleep", "1000", timeout_seconds=1)
        wait_for(lambda: sync(d, "side", "cat", f"/sbx-events/{slow}.stdout")[1].get("stdout") == "begun\n")
        assert sync(d, "side", "test", "-e", f"/sbx-events/{slow}.exit")[0] == 500
        ok(d, "POST", f"/sandboxes/side/execs/{slow}/cancel")
        wait_for(lambda: sync(d, "side", "cat", f"/sbx-events/{slow}.exit")[1].get("stdout") == "1")
        wait_for(lambda: sync(d, "side", "cat", f"/sbx-events/{late}.exit")[1].get("stdout") == "124")
        big = start(d, "side", "sh", "-c", "seq 400000")
        ended(d, "side", big)
        wait_for(lambda: sync(d, "side", "test", "-e", f"/sbx-events/{big}.exit")[0] == 200)
        assert sync(d, "side", "sh", "-c", f"seq 400000 | cmp - /sbx-events/{big}.stdout")[0] == 200

        async def send(*messages):
            async with connect(f"ws://127.0.0.1:{d.port}/t/{made['ingest_token']}/sandboxes/side/ingest") as ws:
                for m in messages:
                    await ws.send(json.dumps(m))
                await (await ws.ping())

        before = len(listen(d, "side", f"?exec_id={e}"))
        asyncio.run(send({"exec_id": e, "type": "output", "stream": "stdout", "data": "out\n"}, {"exec_id": "other", "type": "start"}))
        wait_for(lambda: [x["type"] for x in listen(d, "side", "?exec_id=other")] == ["start"])
        assert len(listen(d, "side", f"?exec_id={e}")) == before, "a sidecar that reads the files says nothing new"
        ok(d, "DELETE", "/sandboxes/side")
    finally:
        assert d.stop() == 0


def test_sidecar_files_survive_holtd(tmp_path):
    env = {"SANDBOX_STREAM_SIDECAR_IMAGE": "streamer:1", "SANDBOX_STREAM_EVENTS_DIR": "/var/ev"}
    d = native(tmp_path / "d", env=env)
    ok(d, "POST", "/sandboxes", {"id": "side"})
    e = start(d, "side", "sh", "-c", "echo one; until test -e /tmp/go; do sleep 0.05; done; echo two; exit 3")
    wait_for(lambda: sync(d, "side", "cat", f"/var/ev/{e}.stdout")[1].get("stdout") == "one\n")
    d.process.kill()
    d.process.wait()
    d = native(tmp_path / "d", env=env)
    try:
        wait_for(lambda: sync(d, "side", "touch", "/tmp/go")[0] == 200)
        f = copied(d, "side", e, "/var/ev")
        assert (f[f"{e}.stdout"], f[f"{e}.stderr"], f[f"{e}.exit"]) == ("one\ntwo\n", "", "3")
        wait_for(lambda: not any(name.endswith(".new") for name in copied(d, "side", e, "/var/ev")))
        ok(d, "DELETE", "/sandboxes/side")
    finally:
        assert d.stop() == 0


def test_a_protected_sandbox_stays(holtd):
    ok(holtd, "POST", "/sandboxes", {"id": "kept"})
    assert call(holtd, "PATCH", "/holt/v1/sandboxes/kept", {"protected": True}, headers={"content-type": "application/json"})[0] == 200
    status, reply, _ = call(holtd, "DELETE", "/sandboxes/kept")
    assert status == 409 and "is protected" in reply["error"], reply
    assert sync(holtd, "kept", "echo", "here")[1]["stdout"] == "here\n"
    assert call(holtd, "PATCH", "/holt/v1/sandboxes/kept", {"protected": False}, headers={"content-type": "application/json"})[0] == 200
    ok(holtd, "DELETE", "/sandboxes/kept")


# --- the command ---

@pytest.mark.timeout(600)
def test_command_line(holtd, tmp_path):
    os.symlink(f"{BUILD}/holt", tmp_path / "sbx")
    env = environment({"HOLT_TOKEN": holtd.token, "HOME": str(tmp_path)})

    def sbx(*words, by_link=True):
        argv = [str(tmp_path / "sbx")] if by_link else [f"{BUILD}/holt", "sbx"]
        r = subprocess.run(argv + list(words), env=env, capture_output=True, text=True, timeout=60)
        return r.returncode, r.stdout, r.stderr

    at = ("-addr", holtd.url)
    for words in ((), ("nonsense",)):
        code, out, err = sbx(*words)
        assert code == 1 and out.startswith("usage: sbx") and not err
    assert sbx("create", *at, "-id", "cli", "-env", "A=b c", "--allow-host=a.example") == (
        0, "id=sbx-cli namespace=sbx-cli pod=sandbox\n", "")
    assert sbx("create", *at, "-env", "bad")[::2] == (1, 'invalid env pair: "bad" (expected KEY=VALUE)\n')
    code, out, _ = sbx("status", *at, by_link=False)
    assert code == 0 and re.match(r"ID +AGE +STATE +ALLOCATED +LAST_EXEC_TIME\n(.*\n)*sbx-cli +\d+s +Active +true +-\n", out), out
    assert sbx("status", *at, "-id", "cli")[1] == "id=sbx-cli\nnamespace=sbx-cli\nphase=Running\npod_name=sandbox\n"
    assert sbx("exec", *at, "-id", "cli", "-sync", "--", "sh", "-c", "echo $A; echo e >&2") == (0, "b c\n", "e\n")
    assert sbx("exec", *at, "-id", "cli", "-sync", "-cmd", "echo  two words")[1] == "two words\n"
    assert sbx("exec", *at, "-id", "cli", "-sync", "--", "sh", "-c", "echo kept; exit 4") == (
        4, "kept\n", '500 Internal Server Error: {"error":"command terminated with exit code 4"}\n')
    raw = subprocess.run([str(tmp_path / "sbx"), "exec", *at, "-id", "cli", "-stream-raw", "--", "sh", "-c", "printf 'x\\377\\303'; echo e >&2; exit 5"],
                         env=env, capture_output=True, timeout=60)
    assert (raw.returncode, raw.stdout, raw.stderr) == (5, b"x\xff\xc3", b"e\n")
    for how in ("-stream-raw", "-sync"):  # NUL is a byte like others, and all of them come
        r = subprocess.run([str(tmp_path / "sbx"), "exec", *at, "-id", "cli", how, "--", "sh", "-c", "printf 'a\\0b\\377'; printf 'c\\0' >&2"],
                           env=env, capture_output=True, timeout=60)
        assert (r.returncode, r.stdout, r.stderr) == (0, b"a\0b\xff", b"c\0")
        r = subprocess.run([str(tmp_path / "sbx"), "exec", *at, "-id", "cli", how, "--", "sh", "-c", "yes 0123456 | head -c 20000000"],
                           env=env, capture_output=True, timeout=240)
        assert (r.returncode, r.stdout) == (0, b"0123456\n" * 2500000)
    assert sbx("exec", *at, "-id", "cli", "-stream-raw", "--", "no'\"such") == (1, "", "run 'no'\"such': No such file or directory\n")
    assert sbx("exec", *at, "-id", "cli", "-sync", "--", "no'\"such") == (
        1, "", """500 Internal Server Error: {"error":"run 'no'\\"such': No such file or directory"}\n""")
    assert sbx("exec", *at, "-id", "cli", "-sync", "-timeout", "0", "-cmd", "echo\ta \n b") == (0, "a b\n", "")
    code, out, _ = sbx("exec", *at, "-id", "cli", "-stream", "--", "sh", "-c", "echo a; exit 6")
    lines = out.splitlines()
    assert code == 6 and re.fullmatch("exec_id=[0-9a-f]{16} status=running", lines[0])
    assert [json.loads(x)["type"] for x in lines[1:]] == ["start", "output", "exit"]
    code, out, _ = sbx("exec", *at, "-id", "cli", "-timeout", "77", "--", "sleep", "99")
    exec_id = re.fullmatch("exec_id=([0-9a-f]{16}) status=running\n", out)[1]
    code, out, _ = sbx("exec-status", *at, "-id", "cli", "-exec-id", exec_id)
    assert re.fullmatch(f"sandbox_id=sbx-cli\nexec_id={exec_id}\nstatus=running\ntimeout_seconds=77\nstarted_at=.*Z\n", out), out
    assert "status=cancel" in sbx("exec-cancel", *at, "-id", "cli", "-exec-id", exec_id)[1]
    wait_for(lambda: "status=canceled\n" in sbx("exec-status", *at, "-id", "cli", "-exec-id", exec_id)[1])
    assert sbx("exec-cancel", *at, "-id", "cli", "-exec-id", exec_id) == (1, "", '409 Conflict: {"error":"exec is already in terminal state"}\n')
    assert sbx("exec", *at, "-id", "cli") == (1, "", "-cmd is required\n")
    assert sbx("exec", *at, "--", "true") == (1, "", "-id is required\n")
    assert sbx("exec-status", *at, "-id", "cli") == (1, "", "-exec-id is required\n")
    assert sbx("delete", *at, "-id", "") == sbx("exec", *at, "-id=", "--", "true") == (1, "", "-id is required\n"), "a variable that is not set"
    assert sbx("create", "-h")[:2] == (0, sbx()[1])
    assert sbx("delete", *at, "-id", "cli") == (0, "deleted\n", "")
    assert sbx("delete", *at, "-id", "cli") == (1, "", '404 Not Found: {"error":"namespaces \\"cli\\" not found"}\n')
    assert sbx("status", "-nonsense") == (1, "", "flag provided but not defined: -nonsense\n")
    assert sbx("status", "-addr", "http://127.0.0.1:1")[0] == 1
