"""The native API of sandboxes, commands, files and ports, against holtd with the fake runtime and a real holt-init.

The fake runtime isolates nothing: paths inside are paths of this machine, so every test keeps to its own directory."""
import asyncio
import base64
import http.client
import io
import json
import os
import re
import socket
import struct
import subprocess
import tarfile
import threading
import time
import urllib.parse

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from daemon import BUILD, Holtd, all_events, wait_for

API = "/holt/v1"
BIG = 8 * 1024 * 1024


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = Holtd(tmp_path_factory.mktemp("holtd"), "--runtime", "fake")
    yield d
    for s in d.ok("GET", f"{API}/sandboxes?limit=1000")["sandboxes"]:
        d.ok("DELETE", f"{API}/sandboxes/{s['id']}")
    assert d.alive(), d.log()[-5000:]
    status = d.stop()
    assert status == 0, f"holtd ended with {status}:\n{d.log()[-5000:]}"


class Box:
    """A sandbox and short words for what is done with it."""

    def __init__(self, holtd, **spec):
        self.d = holtd
        self.object = holtd.ok("POST", f"{API}/sandboxes", spec)
        self.id = self.object["id"]
        self.path = f"{API}/sandboxes/{self.id}"

    def exec(self, command, **more):
        return self.d.ok("POST", f"{self.path}/execs", {"command": command, **more})

    def background(self, command, **more):
        return self.exec(command, background=True, **more)

    def get(self, exec_id):
        return self.d.ok("GET", f"{self.path}/execs/{exec_id}")

    def wait(self, exec_id, limit=20):
        return wait_for(lambda: (lambda x: x if x["ended_at"] else None)(self.get(exec_id)), limit)

    def output(self, exec_id, **query):
        return raw(self.d, "GET", f"{self.path}/execs/{exec_id}/output?{urllib.parse.urlencode(query)}")

    def files(self, path, what="", **query):
        return f"{self.path}/files{what}?" + urllib.parse.urlencode({"path": str(path), **query})


@pytest.fixture
def box(holtd):
    b = Box(holtd)
    yield b
    holtd.request("DELETE", b.path)


def raw(d, method, path, body=None, headers=None, token="admin", timeout=60):
    """(status, bytes, headers), bytes as they are."""
    c = http.client.HTTPConnection("127.0.0.1", d.port, timeout=timeout)
    h = {"Authorization": f"Bearer {d.token if token == 'admin' else token}"} if token else {}
    c.request(method, path, body, {**h, **(headers or {})})
    r = c.getresponse()
    data = r.read()
    c.close()
    return r.status, data, {k.lower(): v for k, v in r.getheaders()}


def error(reply):
    status, body, _ = reply
    if isinstance(body, bytes):
        body = json.loads(body)
    return status, body["error"]


# --- life ---


def test_life(holtd):
    b = Box(holtd, name="life", labels={"team": "blue"}, memory_bytes="64m")
    assert b.object["state"] == "running" and b.object["runtime"] == "fake"
    assert b.object["limits"]["memory_bytes"] == 64 << 20
    assert "memory_bytes" in b.object["unenforced"], "the fake runtime enforces nothing, and says so"
    assert holtd.ok("GET", f"{API}/sandboxes/life")["id"] == b.id
    found = holtd.ok("GET", f"{API}/sandboxes?label=team%3Dblue&state=running")["sandboxes"]
    assert [s["id"] for s in found] == [b.id]
    assert holtd.ok("GET", f"{API}/sandboxes?label=team%3Dred")["sandboxes"] == []
    changed = holtd.ok("PATCH", b.path, {"name": "life2", "labels": {"a": "b"}, "ttl_ms": "1h"})
    assert (changed["name"], changed["labels"], changed["ttl_ms"]) == ("life2", {"a": "b"}, 3600000)
    assert holtd.ok("POST", f"{b.path}/pause")["state"] == "paused"
    assert holtd.ok("POST", f"{b.path}/resume")["state"] == "running"
    assert holtd.ok("POST", f"{b.path}/stop", {"force": True})["state"] == "stopped"
    status, e = error(holtd.request("POST", f"{b.path}/execs", {"command": ["true"]}))
    assert status == 409 and b.id in e["message"], e
    assert holtd.ok("POST", f"{b.path}/start")["state"] == "running"
    assert b.exec(["true"])["exit_code"] == 0
    assert holtd.ok("POST", f"{b.path}/restart", {"grace_ms": 100})["state"] == "running"
    assert holtd.ok("GET", f"{b.path}/stats")["id"] == b.id
    assert holtd.request("DELETE", b.path)[0] == 204
    status, e = error(holtd.request("GET", b.path))
    assert status == 404 and e["object"] == f"sandbox/{b.id}"
    types = [e["type"] for e in all_events(holtd, object=f"sandbox/{b.id}")]
    assert types and len(types) == len([t for t in types if t.startswith("sandbox.")])


def test_pages(holtd):
    boxes = [Box(holtd, labels={"page": "1"}) for _ in range(3)]
    seen, cursor = [], ""
    while cursor is not None:
        page = holtd.ok("GET", f"{API}/sandboxes?label=page%3D1&limit=2" + (f"&cursor={cursor}" if cursor else ""))
        seen += [s["id"] for s in page["sandboxes"]]
        cursor = page["cursor"]
    assert seen == [b.id for b in boxes]
    for b in boxes:
        holtd.ok("DELETE", b.path)


def test_a_protected_sandbox_stays(tmp_path):
    """Against requests, its lifetimes and a restart of holtd; test_sbx.py: against a dialect."""
    d = Holtd(tmp_path, "--runtime", "fake")
    b = Box(d, name="kept", protected=True, ttl_ms=1000, idle_ttl_ms=1000)
    try:
        assert b.object["protected"] is True and Box(d).object["protected"] is False
        status, e = error(d.request("DELETE", b.path))
        assert (status, e["code"], e["object"]) == (409, "conflict", f"sandbox/{b.id}"), e
        assert e["hint"] == f"holt update {b.id} --protected=false"
        env = {**os.environ, "HOLT_SERVER": d.url, "HOLT_TOKEN": d.token}
        holt = subprocess.run([f"{BUILD}/holt", "rm", "kept"], env=env, capture_output=True, text=True, timeout=60)
        assert holt.returncode != 0 and "protected" in holt.stderr and "--protected=false" in holt.stderr, holt
        d.process.kill()
        d.process.wait()
        d = Holtd(tmp_path, "--runtime", "fake")
        time.sleep(2.5)  # both lifetimes are over, and two ticks have seen it
        assert d.ok("GET", b.path)["state"] == "running", "its lifetime does not end it"
        assert d.ok("PATCH", b.path, {"name": "still"})["protected"] is True, "a change of something else leaves it"
        shown = subprocess.run([f"{BUILD}/holt", "update", "still", "--protected=false"], env={**env, "HOLT_SERVER": d.url},
                               capture_output=True, text=True, timeout=60)
        assert shown.returncode == 0, shown
        wait_for(lambda: d.request("GET", b.path)[0] == 404, 10)
    finally:
        d.clear()
        assert d.stop() == 0


def test_create_is_idempotent(holtd):
    key = {"Idempotency-Key": "create-once"}
    first = holtd.request("POST", f"{API}/sandboxes", {"labels": {"k": "1"}}, headers=key)
    again = holtd.request("POST", f"{API}/sandboxes", {"labels": {"k": "1"}}, headers=key)
    other = holtd.request("POST", f"{API}/sandboxes", {"labels": {"k": "2"}}, headers=key)
    assert first[0] == 201 and again[0] == 201 and again[1]["id"] == first[1]["id"]
    assert again[2]["Idempotency-Replayed"] == "true"
    assert other[0] == 409
    holtd.ok("DELETE", f"{API}/sandboxes/{first[1]['id']}")


@pytest.mark.parametrize("method,path,body,status,word", [
    ("POST", "/sandboxes", {"memory_bytes": "1k"}, 400, "memory_bytes"),
    ("POST", "/sandboxes", {"nmae": "x"}, 400, "nmae"),
    ("POST", "/sandboxes", {"mounts": [{"kind": "tmpfs", "target": "tmp"}]}, 400, "target"),
    ("POST", "/sandboxes", {"mounts": [{"kind": "tmpfs", "target": "/a/../b"}]}, 400, "target"),
    ("POST", "/sandboxes", {"mounts": [{"kind": "host", "source": "/etc", "target": "/e"}]}, 403, "/etc"),
    ("POST", "/sandboxes", {"mounts": [{"kind": "odd", "target": "/e"}]}, 400, "kind"),
    ("POST", "/sandboxes", {"runtime": "nosuch"}, None, "nosuch"),
    ("POST", "/sandboxes", {"network": "open"}, 501, "has no network control"),
    ("POST", "/sandboxes", {"network": {"allow": ["a..b"]}}, 400, "rule 1 of 'allow'"),
    ("POST", "/sandboxes", {"network": {"alow": []}}, 400, "alow"),
    ("POST", "/run", {"command": ["true"], "allow": ["*.com"]}, 400, "top-level"),
    ("POST", "/run", {}, 400, "command"),
    ("POST", "/run", {"command": []}, 400, "command"),
    ("POST", "/run", {"command": ["a", 1]}, 400, "command"),
    ("POST", "/run", {"command": ["a"], "pty": {"rows": 0}}, 400, "rows"),
    ("POST", "/run", {"command": ["a"], "stdin": "a", "stdin_base64": "YQ=="}, 400, "stdin_base64"),
    ("POST", "/run", {"command": ["a"], "stdin_base64": "?"}, 400, "stdin_base64"),
    ("POST", "/run", {"command": ["cat"], "stdin_open": True}, 400, "stdin_open"),
    ("GET", "/sandboxes/nobody", None, 404, "nobody"),
    ("POST", "/sandboxes/nobody/execs", {"command": ["true"]}, 404, "nobody"),
])
def test_errors_name_what_is_wrong(holtd, method, path, body, status, word):
    got, e = error(holtd.request(method, API + path, body))
    assert (got == status or status is None and got >= 400) and word in json.dumps(e), e


# --- commands ---


def test_exec_sync(box):
    r = box.exec(["sh", "-c", "printf out; printf err >&2; exit 3"], env={"A": "1"})
    assert (r["stdout"], r["stderr"], r["exit_code"], r["state"]) == ("out", "err", 3, "exited")
    assert not r["timed_out"] and not r["truncated"] and r["duration_ms"] >= 0 and r["usage"]["max_rss_kib"] > 0
    assert box.exec("echo $B-$0", env={"B": "x"})["stdout"].startswith("x-")
    assert box.exec(["pwd"], cwd="/usr")["stdout"] == "/usr\n"
    r = box.exec(["sh", "-c", "kill -9 $$"])
    assert (r["exit_code"], r["signal"]) == (137, 9)
    r = box.exec(["no-such-program"])
    assert r["state"] == "failed" and "no-such-program" in r["failure"]


def test_exec_binary_and_truncated(box):
    r = box.exec(["printf", "\\377\\000a"])
    assert r["stdout"] is None and base64.b64decode(r["stdout_base64"]) == b"\xff\0a"
    r = box.exec(f"head -c {20 << 20} /dev/zero | tr '\\0' x; echo e >&2")
    assert r["truncated"] and r["stdout_bytes"] == 20 << 20
    assert len(r["stdout"].replace(f"\n[{r['stdout_omitted']} bytes are left out here]\n", "")) == 16 << 20 and r["stderr"] == "e\n"


def test_exec_stdin_and_deadline(box):
    assert box.exec(["cat"], stdin="häh")["stdout"] == "häh"
    data = os.urandom(300000)
    r = box.exec(["md5sum"], stdin_base64=base64.b64encode(data).decode())
    import hashlib
    assert r["stdout"].split()[0] == hashlib.md5(data).hexdigest()
    r = box.exec(["sleep", "30"], timeout_ms=200)
    assert r["timed_out"] and r["exit_code"] != 0


def test_exec_is_idempotent(box, tmp_path):
    key = {"Idempotency-Key": "exec-once"}
    body = {"command": f"echo x >> {tmp_path}/n"}
    a = box.d.ok("POST", f"{box.path}/execs", body, headers=key)
    b = box.d.ok("POST", f"{box.path}/execs", body, headers=key)
    assert a["id"] == b["id"] and (tmp_path / "n").read_text() == "x\n"


def test_exec_background_stdin_signal(box):
    x = box.background(["sh", "-c", "read a; echo got $a; read b; echo got $b"], stdin_open=True)
    assert x["state"] == "running" and x["exit_code"] is None and x["stdout"] is None
    for part, query in ((b"one\n", ""), (b"two\n", "?eof=true")):
        assert raw(box.d, "POST", f"{box.path}/execs/{x['id']}/stdin{query}", part)[0] == 204
    assert box.wait(x["id"])["exit_code"] == 0
    assert box.output(x["id"])[1] == b"got one\ngot two\n"
    x = box.background(["sleep", "60"])
    assert box.d.request("POST", f"{box.path}/execs/{x['id']}/signal", {"signal": "NOPE"})[0] == 400
    box.d.ok("POST", f"{box.path}/execs/{x['id']}/signal", {"signal": "SIGTERM"})
    assert box.wait(x["id"])["signal"] == 15
    x = box.background(["sleep", "60"])
    box.d.ok("POST", f"{box.path}/execs/{x['id']}/cancel")
    done = box.wait(x["id"])
    assert done["cancelled"] and done["exit_code"] == 137
    listed = [e["id"] for e in box.d.ok("GET", f"{box.path}/execs")["execs"]]
    assert x["id"] in listed and listed == sorted(listed)


def test_stdin_that_is_not_open(box):
    x = box.background(["sleep", "60"])
    status, e = error(raw(box.d, "POST", f"{box.path}/execs/{x['id']}/stdin", b"x"))
    assert status == 409 and e["object"] == f"exec/{x['id']}" and "stdin_open" in e["hint"]


def test_stdin_streams_with_back_pressure(box):
    data = os.urandom(BIG)
    x = box.background(["sh", "-c", "sleep 0.3; md5sum"], stdin_open=True)
    assert raw(box.d, "POST", f"{box.path}/execs/{x['id']}/stdin?eof=true", data)[0] == 204
    box.wait(x["id"])
    import hashlib
    assert box.output(x["id"])[1].split()[0].decode() == hashlib.md5(data).hexdigest()


def test_output_from_any_offset(box):
    x = box.exec("seq 1 1000; echo bad >&2")
    whole = "".join(f"{i}\n" for i in range(1, 1001)).encode()
    for offset in (0, 1, 1000, len(whole)):
        status, data, h = box.output(x["id"], offset=offset)
        assert status == 200 and data == whole[offset:] and h["x-holt-offset"] == str(offset)
    status, data, h = box.output(x["id"], offset=-10)
    assert data == whole[-10:] and h["x-holt-offset"] == str(len(whole) - 10)
    assert h["x-holt-exit-code"] == "0" and h["x-content-type-options"] == "nosniff"
    assert box.output(x["id"], stream="stderr")[1] == b"bad\n"
    status, e = error(box.output(x["id"], offset=len(whole) + 1))
    assert status == 416 and str(len(whole)) in e["message"]
    assert raw(box.d, "GET", f"{box.path}/logs")[1].count(b"\n") == 1001


def test_output_follows(box, tmp_path):
    x = box.background(["sh", "-c", f"echo a; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo b; sleep 0.3; exit 4"])
    c = http.client.HTTPConnection("127.0.0.1", box.d.port, timeout=60)
    c.request("GET", f"{box.path}/execs/{x['id']}/output?follow=true", headers={"Authorization": f"Bearer {box.d.token}"})
    r = c.getresponse()
    assert r.readline() == b"a\n"  # before the command goes on
    (tmp_path / "go").touch()
    assert r.read() == b"b\n"
    c.close()
    assert box.wait(x["id"])["exit_code"] == 4


def test_output_that_is_gone_says_from_where_it_is_kept(box):
    x = box.exec(["head", "-c", str(4 << 20), "/dev/zero"], output_bytes=65536)
    assert x["truncated"]
    status, e = error(box.output(x["id"], offset=0))
    assert status == 410 and "kept from byte" in e["message"], e
    kept = int(e["hint"].rsplit("=", 1)[1])
    status, data, _ = box.output(x["id"], offset=kept)
    assert status == 200 and len(data) == (4 << 20) - kept > 0


def test_output_that_nobody_reads_holds_up_no_reply(holtd, box):
    """More than output_bytes, in both forms that reply at the end: the oldest goes; they cannot be asked to block."""
    for path in ("/holt/v1/run", f"{box.path}/execs"):
        r = holtd.ok("POST", path, {"command": "seq 1 100000", "output_bytes": 65536})
        assert r["truncated"] and r["stdout"].endswith("\n100000\n") and r["exit_code"] == 0
        status, reply, _ = holtd.request("POST", path, {"command": "true", "on_full": "block"})
        assert status == 400 and "'on_full'" in reply["error"]["message"] and reply["error"]["hint"]


def test_logs_say_what_is_gone(holtd, box):
    x = box.exec("seq 1 100000; echo end >&2", output_bytes=65536)
    text = holtd.ok("GET", f"{box.path}/logs?exec={x['id']}")
    gap = re.match(r"\n\[holt: bytes 0 to (\d+) of stdout are no longer kept\]\n", text)
    assert gap and int(gap[1]) > 300000 and "100000\n" in text and "end\n" in text, text[:200]
    assert "no longer kept" not in holtd.ok("GET", f"{box.path}/logs?exec={x['id']}&tail=100"), "nobody asked for the rest"


def test_blocked_output_waits_for_its_reader(holtd, box):
    x = box.exec("seq 1 100000", background=True, output_bytes=65536, on_full="block")
    time.sleep(0.5)
    assert holtd.ok("GET", f"{box.path}/execs/{x['id']}")["state"] == "running", "it waits"
    got = holtd.ok("GET", f"{box.path}/execs/{x['id']}/output?follow=true")
    assert got == "".join(f"{i}\n" for i in range(1, 100001)), "nothing is lost"
    assert holtd.ok("GET", f"{box.path}/execs/{x['id']}/wait")["exit_code"] == 0


@pytest.mark.parametrize("how", ["cancelled", "timed out"])
def test_blocked_output_does_not_hold_up_a_kill(holtd, box, how):
    """Its end is behind output that nobody reads: it must not be taken for one that does not die, at others' expense."""
    other = box.exec("sleep 100", background=True)
    limit = {"timeout_ms": 3000} if how == "timed out" else {}
    x = box.exec("seq 1 100000; sleep 100", background=True, output_bytes=65536, on_full="block", **limit)
    wait_for(lambda: holtd.ok("GET", f"{box.path}/execs/{x['id']}")["stdout_bytes"] >= 65536)
    if how == "cancelled":
        holtd.ok("POST", f"{box.path}/execs/{x['id']}/cancel")
    done = holtd.ok("GET", f"{box.path}/execs/{x['id']}/wait")
    assert (done["state"], done["exit_code"], done["cancelled"], done["timed_out"]) == (
        "exited", 137, how == "cancelled", how == "timed out")
    got = holtd.ok("GET", f"{box.path}/execs/{x['id']}/output")
    assert len(got) == done["stdout_bytes"] and "".join(f"{i}\n" for i in range(1, 100001)).startswith(got), "nothing is lost"
    assert holtd.ok("GET", f"{box.path}/execs/{other['id']}")["state"] == "running"
    holtd.ok("POST", f"{box.path}/execs/{other['id']}/cancel")


def test_wait(holtd, box):
    began = time.monotonic()
    x = box.exec("sleep 0.5; exit 7", background=True)
    r = holtd.ok("GET", f"{box.path}/execs/{x['id']}/wait")
    assert (r["state"], r["exit_code"]) == ("exited", 7) and time.monotonic() - began > 0.4
    assert holtd.ok("GET", f"{box.path}/execs/{x['id']}/wait")["exit_code"] == 7, "at once, after the end"
    x = box.exec("sleep 100", background=True)
    with pytest.raises(OSError):
        holtd.request("GET", f"{box.path}/execs/{x['id']}/wait", timeout=0.3)
    holtd.ok("POST", f"{box.path}/execs/{x['id']}/cancel")
    assert holtd.ok("GET", f"{box.path}/execs/{x['id']}/wait")["cancelled"]


def test_a_slow_reader_costs_no_memory(box):
    x = box.background(["head", "-c", str(32 << 20), "/dev/zero"])
    s = socket.create_connection(("127.0.0.1", box.d.port))
    s.sendall(f"GET {box.path}/execs/{x['id']}/output?follow=true HTTP/1.1\r\nHost: 127.0.0.1\r\n"
              f"Authorization: Bearer {box.d.token}\r\n\r\n".encode())
    box.wait(x["id"])
    before = box.d.rss_kib()
    time.sleep(0.5)
    assert box.d.rss_kib() - before < 16 << 10
    s.close()


def test_disconnect_during_exec(box, tmp_path):
    for cancel in (False, True):
        body = json.dumps({"command": f"sleep 1; echo done > {tmp_path}/{cancel}", "cancel_on_disconnect": cancel}).encode()
        s = socket.create_connection(("127.0.0.1", box.d.port))
        s.sendall(f"POST {box.path}/execs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {box.d.token}\r\n"
                  f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        wait_for(lambda: box.d.ok("GET", f"{box.path}/execs?state=running")["execs"])
        s.close()
        wait_for(lambda: not box.d.ok("GET", f"{box.path}/execs?state=running")["execs"])
    assert (tmp_path / "False").exists() and not (tmp_path / "True").exists()


def test_cancel_on_disconnect_needs_a_client_that_waits(box):
    status, reply, _ = box.d.request("POST", f"{box.path}/execs", {"command": "true", "background": True, "cancel_on_disconnect": True})
    assert status == 400 and "cancel_on_disconnect" in reply["error"]["message"]


def test_the_sides_of_a_terminal(box):
    for side, status in ((4096, 202), (4097, 400)):
        size = {"rows": 24, "cols": side}
        got, made, _ = box.d.request("POST", f"{box.path}/execs", {"command": "sleep 100", "background": True, "pty": size})
        assert got == status and (status == 202 or "from 1 to 4096" in made["error"]["message"]), made
    x = f"{box.path}/execs/{box.d.ok('GET', f'{box.path}/execs?state=running')['execs'][0]['id']}"
    assert box.d.request("POST", f"{x}/resize", {"rows": 4097, "cols": 80})[0] == 400
    assert box.d.request("POST", f"{x}/resize", {"rows": 4096, "cols": 80})[0] == 200


# --- run ---


def test_run(holtd):
    r = holtd.ok("POST", f"{API}/run", {"command": ["sh", "-c", "cat; exit 5"], "stdin": "in"})
    assert (r["stdout"], r["exit_code"]) == ("in", 5)
    assert holtd.request("GET", f"{API}/sandboxes/{r['sandbox']}")[0] == 404


def test_run_is_destroyed_when_the_client_goes(holtd):
    body = json.dumps({"command": ["sleep", "60"], "labels": {"run": "gone"}}).encode()
    s = socket.create_connection(("127.0.0.1", holtd.port))
    s.sendall(f"POST {API}/run HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {holtd.token}\r\n"
              f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    def there():
        found = holtd.ok("GET", f"{API}/sandboxes?label=run%3Dgone")["sandboxes"]
        return found if found and found[0]["execs_live"] else None

    wait_for(there)
    s.close()
    wait_for(lambda: not holtd.ok("GET", f"{API}/sandboxes?label=run%3Dgone")["sandboxes"])


# --- attach ---


class Attach:
    """One client of holt.attach.v1."""

    def __init__(self, ws):
        self.ws, self.out, self.text = ws, {1: b"", 2: b""}, []

    async def step(self):
        m = await asyncio.wait_for(self.ws.recv(), 20)
        if isinstance(m, str):
            self.text.append(json.loads(m))
            return self.text[-1]
        stream, offset = m[0], struct.unpack(">Q", m[1:9])[0]
        assert offset == self.base.get(stream, 0) + len(self.out[stream]), "no byte is lost or doubled"
        self.out[stream] += m[9:]
        return None

    base = {}

    async def until(self, kind):
        while True:
            m = await self.step()
            if m and m["type"] == kind:
                return m

    async def until_output(self, part, stream=1):
        while part not in self.out[stream]:
            await self.step()

    async def type(self, data):
        await self.ws.send(b"\0" + data)

    async def say(self, **message):
        await self.ws.send(json.dumps(message))


def attach(d, path, token=None):
    return connect(f"ws://127.0.0.1:{d.port}{path}", subprotocols=["holt.attach.v1"], max_size=None, proxy=None,
                   additional_headers={"Authorization": f"Bearer {token or d.token}"})


def test_attach_two_observers_and_a_controller(box):
    x = box.background(["sh", "-c", "echo first; while read a; do echo got $a; echo e$a >&2; done; exit 7"],
                       stdin_open=True)
    path = f"{box.path}/execs/{x['id']}/attach"

    async def run():
        async with attach(box.d, path) as a, attach(box.d, path) as b, attach(box.d, path + "?role=observer") as c:
            c1, o1, o2 = Attach(a), Attach(b), Attach(c)
            assert a.subprotocol == "holt.attach.v1"
            assert (await c1.until("started"))["exec"]["id"] == x["id"]
            assert (await c1.until("role"))["role"] == "controller"
            assert (await o1.until("role"))["role"] == "observer"
            await o1.type(b"no\n")
            assert (await o1.until("error"))["error"]["code"] == "forbidden"
            with pytest.raises(InvalidStatus) as refused:
                async with attach(box.d, path + "?role=controller"):
                    pass
            assert refused.value.response.status_code == 409
            await c1.type(b"1\n")
            for o in (c1, o1, o2):
                await o.until_output(b"got 1\n")
                await o.until_output(b"e1\n", 2)
            async with attach(box.d, path + "?take=true") as e:
                o3 = Attach(e)
                assert (await o3.until("role"))["role"] == "controller"
                assert (await c1.until("role"))["role"] == "observer"
                await o3.type(b"2\n")
                await o3.until_output(b"got 2\n")
                await o3.say(type="eof")
                for o in (c1, o1, o2, o3):
                    end = await o.until("exit")
                    assert end["exec"]["exit_code"] == 7
                    assert o.out[1] == b"first\ngot 1\ngot 2\n" and o.out[2] == b"e1\ne2\n"
                    with pytest.raises(ConnectionClosed):
                        await o.ws.recv()
                    assert o.ws.close_code == 1000

    asyncio.run(run())


def test_control_is_taken_from_one_whose_input_waits(box):
    x = box.background(["sh", "-c", "sleep 1; cat | wc -c"], stdin_open=True)
    path = f"{box.path}/execs/{x['id']}/attach"

    async def run():
        async with attach(box.d, path) as a:
            first = Attach(a)
            await first.until("role")
            for _ in range(16):
                await first.type(b"x" * 65536)  # more than init and holtd hold for a command that reads nothing
            async with attach(box.d, path + "?take=true") as b:
                await first.until("role")
                await a.close()
                second = Attach(b)
                await second.until("role")
                await asyncio.sleep(1.5)  # the command reads: there is room, and nobody of the first is there
                await second.type(b"y" * 300000)
                await second.say(type="eof")
                assert (await second.until("exit"))["exec"]["exit_code"] == 0
                assert int(second.out[1]) >= 300000

    asyncio.run(run())


def test_attach_pty_resize_signal_detach(box):
    x = box.background(["sh"], pty={"rows": 30, "cols": 90})

    async def run():
        path = f"{box.path}/execs/{x['id']}/attach"
        async with attach(box.d, path) as w:
            c = Attach(w)
            await c.type(b"stty size\n")
            await c.until_output(b"30 90")
            await c.say(type="resize", rows=11, cols=22)
            await c.type(b"stty size\n")
            await c.until_output(b"11 22")
            await c.say(type="resize", rows=0, cols=22)
            assert (await c.until("error"))["error"]["code"] == "invalid"
            await c.type(b"cat\n")
            await c.say(type="detach")
            with pytest.raises(ConnectionClosed):
                while True:
                    await c.step()
        assert box.get(x["id"])["state"] == "running"
        box.d.ok("POST", f"{box.path}/execs/{x['id']}/resize", {"rows": 5, "cols": 6})
        async with attach(box.d, path + "?stdout_offset=-1&stderr_offset=-1") as w:
            c = Attach(w)
            started = (await c.until("started"))["exec"]
            c.base = {1: started["stdout_bytes"]}
            await c.say(type="signal", signal="KILL")
            assert (await c.until("exit"))["exec"]["signal"] == 9

    asyncio.run(run())


def test_attach_much_both_ways(box):
    data = os.urandom(BIG)
    x = box.background(["cat"], stdin_open=True)

    async def run():
        async with attach(box.d, f"{box.path}/execs/{x['id']}/attach") as w:
            c = Attach(w)

            async def send():
                for i in range(0, len(data), 100000):
                    await c.type(data[i:i + 100000])
                await c.say(type="eof")

            sender = asyncio.create_task(send())
            await c.until("exit")
            await sender
            assert c.out[1] == data

    asyncio.run(run())


def test_attach_after_the_end_replays(box):
    x = box.exec("echo a; echo b >&2; exit 2")

    async def run():
        async with attach(box.d, f"{box.path}/execs/{x['id']}/attach?role=observer") as w:
            c = Attach(w)
            assert (await c.until("exit"))["exec"]["exit_code"] == 2
            assert (c.out[1], c.out[2]) == (b"a\n", b"b\n")

    asyncio.run(run())


def test_run_over_a_socket(holtd):
    async def run():
        async with attach(holtd, f"{API}/run") as w:
            c = Attach(w)
            await w.send(json.dumps({"command": ["sh", "-c", "cat; echo e >&2; exit 9"], "stdin_open": True}))
            started = (await c.until("started"))["exec"]
            await c.type(b"hello")
            await c.say(type="eof")
            end = await c.until("exit")
            assert end["exec"]["exit_code"] == 9 and (c.out[1], c.out[2]) == (b"hello", b"e\n")
            with pytest.raises(ConnectionClosed):
                await w.recv()
            assert w.close_code == 1000
            assert holtd.request("GET", f"{API}/sandboxes/{started['sandbox']}")[0] == 404
        async with attach(holtd, f"{API}/run") as w:
            c = Attach(w)
            await w.send(json.dumps({"command": ["sleep", "60"]}))
            started = (await c.until("started"))["exec"]
        wait_for(lambda: holtd.request("GET", f"{API}/sandboxes/{started['sandbox']}")[0] == 404)
        async with attach(holtd, f"{API}/run") as w:
            c = Attach(w)
            await w.send(json.dumps({"comand": ["true"]}))
            assert "comand" in (await c.until("error"))["error"]["message"]
        async with attach(holtd, f"{API}/run") as w:
            await w.send(json.dumps({"command": ["sleep", "60"]}))

    asyncio.run(run())
    wait_for(lambda: not [s for s in holtd.ok("GET", f"{API}/sandboxes")["sandboxes"] if s["upper"] == "memory"])


# --- files ---


@pytest.mark.needs_root("the fake runtime runs as we do, and files are root's")
def test_files(box, tmp_path):
    data = os.urandom(BIG) + b"\0\r\n"
    path = tmp_path / "deep/er/a b.bin"
    assert raw(box.d, "PUT", box.files(path, mode="0600"), data)[0] == 204
    assert path.read_bytes() == data and path.stat().st_mode & 0o777 == 0o600
    status, got, h = raw(box.d, "GET", box.files(path))
    assert status == 200 and got == data
    assert h["content-disposition"].startswith("attachment") and h["x-content-type-options"] == "nosniff"
    status, got, h = raw(box.d, "GET", box.files(path), headers={"Range": "bytes=5-9"})
    assert (status, got) == (206, data[5:10]) and h["content-range"] == f"bytes 5-9/{len(data)}"
    assert raw(box.d, "GET", box.files(path), headers={"Range": f"bytes={len(data)}-"})[0] == 416
    status, got, h = raw(box.d, "HEAD", box.files(path))
    assert status == 200 and got == b"" and h["content-length"] == str(len(data)) and h["x-holt-mode"] == "0600"
    assert raw(box.d, "PUT", box.files(path, append="true"), b"more")[0] == 204
    assert path.read_bytes() == data + b"more"
    assert raw(box.d, "PUT", box.files(path, exclusive="true"), b"x")[0] == 409
    assert raw(box.d, "PUT", box.files(tmp_path / "no/x", parents="false"), b"x")[0] == 404
    assert raw(box.d, "PUT", box.files(tmp_path / "empty"), b"")[0] == 204
    assert raw(box.d, "GET", box.files(tmp_path / "empty"))[:2] == (200, b"")
    status, e = error(raw(box.d, "GET", box.files("/proc/self/environ")))
    assert status == 403, "what the kernel says of init is no file of the sandbox"


@pytest.mark.needs_root("the fake runtime runs as we do, and files are root's")
def test_files_list_mkdir_move_remove(box, tmp_path):
    box.d.ok("POST", f"{box.path}/files/mkdir", {"path": f"{tmp_path}/d/e", "parents": True})
    for name in ("c", "a", "b"):
        (tmp_path / "d" / name).write_text(name)
    os.symlink("a", tmp_path / "d/link")
    page = box.d.ok("GET", box.files(tmp_path / "d", "/list", limit=2))
    assert [f["name"] for f in page["files"]] == ["a", "b"] and page["cursor"] == "b"
    page = box.d.ok("GET", box.files(tmp_path / "d", "/list", cursor="b"))
    assert [(f["name"], f["kind"], f["link"]) for f in page["files"]] == [
        ("c", "file", None), ("e", "directory", None), ("link", "symlink", "a")]
    assert box.d.request("POST", f"{box.path}/files/move", {"from": f"{tmp_path}/d/a", "to": f"{tmp_path}/z"})[0] == 204
    assert (tmp_path / "z").read_text() == "a"
    assert box.d.request("DELETE", box.files(tmp_path / "d"))[0] >= 400
    assert box.d.request("DELETE", box.files(tmp_path / "d", recursive="true"))[0] == 204
    assert not (tmp_path / "d").exists()
    status, e = error(box.d.request("GET", box.files(tmp_path / "d")))
    assert status == 404 and e["object"] == f"sandbox/{box.id}" and "/d" in e["message"]
    assert box.d.request("GET", box.files(tmp_path))[0] == 400


def test_upload_survives_a_client_that_goes(box, tmp_path):
    s = socket.create_connection(("127.0.0.1", box.d.port))
    s.sendall(f"PUT {box.files(tmp_path / 'half')} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {box.d.token}\r\n"
              f"Content-Length: 1000000\r\n\r\n".encode() + b"x" * 5000)
    time.sleep(0.2)
    s.close()
    assert box.exec(["true"])["exit_code"] == 0


def test_archive(box, tmp_path):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as t:
        for name, content in (("x/one", b"1" * 100000), ("x/two", b"")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            t.addfile(info, io.BytesIO(content))
    assert raw(box.d, "PUT", f"{box.path}/archive?path={tmp_path}/in", made.getvalue())[0] == 204
    assert (tmp_path / "in/x/one").read_bytes() == b"1" * 100000
    status, data, h = raw(box.d, "GET", f"{box.path}/archive?path={tmp_path}/in")
    assert status == 200 and h["content-type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(data)) as t:
        names = [m.name for m in t.getmembers() if m.isfile()]
        one = [m for m in t.getmembers() if m.name.endswith("x/one")][0]
        assert len(names) == 2 and t.extractfile(one).read() == b"1" * 100000
    assert box.d.request("GET", f"{box.path}/archive?path={tmp_path}/none")[0] == 404


def test_watch(box, tmp_path):
    c = http.client.HTTPConnection("127.0.0.1", box.d.port, timeout=60)
    c.request("GET", box.files(tmp_path, "/watch"), headers={"Authorization": f"Bearer {box.d.token}"})
    r = c.getresponse()
    assert r.status == 200 and r.headers["content-type"].startswith("text/event-stream")
    assert r.readline() == b"event: begun\n"
    (tmp_path / "new").write_text("x")
    lines = []
    while not any("new" in line for line in lines):
        lines.append(r.readline().decode())
    assert "event: made\n" in lines
    c.close()
    assert box.d.request("GET", box.files(tmp_path / "none", "/watch"))[0] == 404


# --- ports ---

SERVER = r"""
import base64, hashlib, http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.headers.get("Upgrade"):
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers()
            while True:
                head = self.rfile.read(2)
                n = head[1] & 127
                mask = self.rfile.read(4)
                text = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(n)))
                self.wfile.write(bytes([head[0], n]) + text)
                if head[0] & 15 == 8:
                    return
        if self.path.startswith("/redirect"):
            self.send_response(302)
            self.send_header("Location", "/there")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = (self.requestline + "\n" + str(self.headers)).encode()
        self.send_response(200)
        self.send_header("Set-Cookie", "a=b")
        self.send_header("Service-Worker-Allowed", "/")
        if self.path.startswith("/chunked"):
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for i in range(64):
                self.wfile.write(b"10000\r\n" + b"c" * 65536 + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            n, body = 0, b""
            while True:
                size = int(self.rfile.readline(), 16)
                body += self.rfile.read(size)
                self.rfile.readline()
                if not size:
                    break
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        text = hashlib.md5(body).hexdigest().encode()
        self.send_response(201)
        self.end_headers()
        self.wfile.write(text)
        self.close_connection = True
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), H)
print(s.server_port, flush=True)
s.serve_forever()
"""


@pytest.fixture(scope="module")
def inside(holtd):
    b = Box(holtd)
    x = b.background(["python3", "-c", SERVER])
    port = wait_for(lambda: b.output(x["id"])[1].strip())
    b.ports = f"{b.path}/ports/{int(port)}"
    yield b
    holtd.ok("DELETE", b.path)


def test_port_get(inside):
    status, body, h = raw(inside.d, "GET", f"{inside.ports}/a%20b/?x=1", headers={"Cookie": "z=1", "X-Mine": "yes"})
    text = body.decode().lower()
    assert status == 200 and text.startswith("get /a%20b/?x=1 http/1.1")
    assert "x-mine: yes" in text and "cookie" not in text and "authorization" not in text and "holt_" not in text
    assert "set-cookie" not in h and "service-worker-allowed" not in h
    assert h["content-security-policy"] == "sandbox"
    assert raw(inside.d, "GET", f"{inside.ports}/")[1].startswith(b"GET / HTTP/1.1")
    assert raw(inside.d, "GET", f"{inside.ports}/?token=theirs")[1].startswith(b"GET /?token=theirs HTTP/1.1")
    assert raw(inside.d, "GET", f"{inside.ports}/redirect")[2]["location"] == f"{inside.ports}/there"
    assert len(raw(inside.d, "GET", f"{inside.ports}/chunked")[1]) == 64 * 65536
    status, body, h = raw(inside.d, "HEAD", f"{inside.ports}/")
    assert body == b"" and status == 501  # the server inside knows no HEAD


def test_port_post(inside):
    import hashlib
    data = os.urandom(BIG)
    status, body, _ = raw(inside.d, "POST", f"{inside.ports}/", data)
    assert (status, body.decode()) == (201, hashlib.md5(data).hexdigest())
    chunks = (data[i:i + 65536] for i in range(0, len(data), 65536))
    status, body, _ = raw(inside.d, "POST", f"{inside.ports}/", chunks)
    assert (status, body.decode()) == (201, hashlib.md5(data).hexdigest())


def test_port_websocket(inside):
    async def run():
        async with connect(f"ws://127.0.0.1:{inside.d.port}{inside.ports}/ws", compression=None, proxy=None,
                           additional_headers={"Authorization": f"Bearer {inside.d.token}"}) as w:
            for i in range(5):
                await w.send(f"hello {i}")
                assert await asyncio.wait_for(w.recv(), 60) == f"hello {i}"

    asyncio.run(run())


def test_port_refusals(inside):
    status, e = error(raw(inside.d, "GET", f"{inside.path}/ports/1/"))
    assert status == 503 and "127.0.0.1:1" in e["hint"], e
    assert raw(inside.d, "GET", f"{inside.path}/ports/70000/")[0] == 400
    assert raw(inside.d, "GET", f"{inside.path}/ports/8x/")[0] == 400
    assert raw(inside.d, "GET", f"{inside.ports}/", token=None)[0] == 401


def test_port_takes_no_cookie(inside):
    d = inside.d
    code = d.ok("POST", f"{API}/login/code")["code"]
    status, _, h = d.request("POST", f"{API}/login", {"code": code}, token=None)
    assert status < 300
    cookie = h["Set-Cookie"].split(";")[0]
    assert raw(d, "GET", f"{inside.path}", token=None, headers={"Cookie": cookie})[0] == 200
    assert raw(d, "GET", f"{inside.ports}/", token=None, headers={"Cookie": cookie})[0] == 403


# --- who may ---


def test_agents_touch_only_their_own(holtd, box, tmp_path):
    agent = holtd.ok("POST", f"{API}/tokens", {"name": "a", "role": "agent", "agent": "builder"})["token"]
    mine = holtd.ok("POST", f"{API}/sandboxes", {}, token=agent)
    assert [s["id"] for s in holtd.ok("GET", f"{API}/sandboxes", token=agent)["sandboxes"]] == [mine["id"]]
    assert holtd.ok("POST", f"{API}/sandboxes/{mine['id']}/execs", {"command": ["true"]}, token=agent)["exit_code"] == 0
    x = box.background(["sleep", "60"])
    for method, path, body in (
            ("GET", "", None), ("DELETE", "", None), ("PATCH", "", {"name": "x"}), ("POST", "/stop", {}),
            ("GET", "/execs", None), ("POST", "/execs", {"command": ["true"]}), ("GET", f"/execs/{x['id']}", None),
            ("GET", f"/execs/{x['id']}/output", None), ("POST", f"/execs/{x['id']}/cancel", None),
            ("GET", "/files?path=/etc/passwd", None), ("DELETE", f"/files?path={tmp_path}", None),
            ("POST", "/files/mkdir", {"path": f"{tmp_path}/x"}), ("GET", "/archive?path=/etc", None),
            ("GET", "/ports/80/", None), ("GET", "/stats", None), ("GET", "/logs", None)):
        status, e = error(holtd.request(method, box.path + path, body, token=agent))
        assert status == 403 and e["object"] == f"sandbox/{box.id}", (method, path, status, e)
    assert box.get(x["id"])["state"] == "running"
    assert holtd.request("DELETE", f"{API}/sandboxes/{mine['id']}", token=agent)[0] == 204


def test_observers_watch(holtd, box):
    token = holtd.ok("POST", "/holt/v1/tokens", {"name": "eyes", "role": "observer", "content": True})["token"]
    x = box.background(["sh", "-c", "echo a; sleep 60"])
    assert holtd.request("GET", box.path, token=token)[0] == 200
    assert holtd.request("POST", f"{box.path}/execs", {"command": ["true"]}, token=token)[0] == 403

    async def run():
        path = f"{box.path}/execs/{x['id']}/attach"
        async with attach(holtd, path, token) as w:
            c = Attach(w)
            assert (await c.until("role"))["role"] == "observer"
            await c.until_output(b"a\n")
        for query in ("?role=controller", "?take=true"):
            with pytest.raises(InvalidStatus) as refused:
                async with attach(holtd, path + query, token):
                    pass
            assert refused.value.response.status_code == 403

    asyncio.run(run())


def test_a_revoked_token_ends_its_streams(holtd, box):
    made = holtd.new_token("short")
    x = box.background(["sleep", "60"])

    async def run():
        async with attach(holtd, f"{box.path}/execs/{x['id']}/attach", made["token"]) as w:
            c = Attach(w)
            await c.until("role")
            await asyncio.to_thread(holtd.ok, "DELETE", f"{API}/tokens/{made['id']}")
            with pytest.raises(ConnectionClosed):
                while True:
                    await c.step()
            assert w.close_code == 1008

    asyncio.run(run())
    assert box.get(x["id"])["state"] == "running"


def test_reads_of_content_are_audited(holtd, box, tmp_path):
    (tmp_path / "f").write_text("x")
    raw(holtd, "GET", box.files(tmp_path / "f"))
    wait_for(lambda: [e for e in holtd.ok("GET", f"{API}/audit?limit=1000")["events"]
                      if e["object"] == f"sandbox/{box.id}:{tmp_path}/f"], 15)


def test_stopping_holtd_with_open_streams_is_quick(new_holtd):
    d = new_holtd("--runtime", "fake", "--shutdown-ms", "10m")
    b = Box(d)
    x = b.background(["sleep", "600"])
    ready = threading.Event()

    def follow():
        async def run():
            async with attach(d, f"{b.path}/execs/{x['id']}/attach") as w:
                c = Attach(w)
                await c.until("role")
                ready.set()
                with pytest.raises(ConnectionClosed):
                    while True:
                        await c.step()
                assert w.close_code == 1001
        asyncio.run(run())

    t = threading.Thread(target=follow)
    t.start()
    assert ready.wait(60)
    s = socket.create_connection(("127.0.0.1", d.port))
    s.sendall(f"GET {b.path}/execs/{x['id']}/output?follow=true HTTP/1.1\r\nHost: 127.0.0.1\r\n"
              f"Authorization: Bearer {d.token}\r\n\r\n".encode())
    assert s.recv(100)
    assert d.stop() == 0  # or it is killed, long before shutdown_ms
    t.join(60)
    assert not t.is_alive()
    again = new_holtd("--runtime", "fake", name="holtd0")
    wait_for(lambda: again.ok("GET", f"{b.path}/execs/{x['id']}")["state"] == "running")
    assert again.request("DELETE", b.path)[0] == 204
