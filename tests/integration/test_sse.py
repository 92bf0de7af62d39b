"""Server-sent events: by hand, by curl, and by a browser's EventSource that reconnects."""
import glob
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from conftest import NODE
from daemon import die_with_parent, free_ports, wait_for
from raw import Raw, get


class Sse:
    """A follower of the event stream."""

    def __init__(self, d, query="", headers="", sock=None):
        self.c = Raw(d.port, sock=sock)
        self.c.send(get(f"/holt/v1/events?follow=true{query}", "127.0.0.1",
                        f"Authorization: Bearer {d.token}\r\n{headers}"))
        self.status, self.headers = self.c.head()
        self.text = b""

    def events(self, count, limit=60):
        """At least so many events as dicts {id, event, data}; comments are left out."""
        def parse():
            found = []
            for block in self.text.replace(b"\r\n", b"\n").split(b"\n\n")[:-1]:
                fields = [line.split(b": ", 1) for line in block.split(b"\n") if line and not line.startswith(b":")]
                if any(f[0] == b"data" for f in fields):
                    e = {}
                    for k, v in fields:
                        e[k.decode()] = e.get(k.decode(), "") + v.decode()
                    e["data"] = json.loads(e["data"])
                    found.append(e)
            return found

        end = time.monotonic() + limit
        while len(parse()) < count:
            assert time.monotonic() < end, self.text
            n = int(self.c._until(b"\r\n"), 16)
            self.text += self.c.take(n)
            self.c.take(2)
        return parse()

    def close(self):
        self.c.sock.close()


def test_replay_then_live(holtd):
    made = [holtd.new_token(f"replay{i}") for i in range(3)]
    s = Sse(holtd, "&type=token.created")
    assert s.status == 200
    assert dict(s.headers)["content-type"].startswith("text/event-stream")
    assert "no-cache" in dict(s.headers).get("cache-control", "") or "no-store" in dict(s.headers).get("cache-control", "")
    s.events(3)
    live = holtd.new_token("live")
    count = len(holtd.ok("GET", "/holt/v1/events?type=token.created&limit=1000")["events"])
    got = [e["data"]["object"] for e in s.events(count)]
    for t in [*made, live]:
        assert f"token/{t['id']}" in got
    seqs = [int(e["id"]) for e in s.events(4)]
    assert seqs == sorted(set(seqs))
    assert all(int(e["id"]) == e["data"]["seq"] for e in s.events(4))
    s.close()


def test_last_event_id_continues(holtd):
    for i in range(5):
        holtd.new_token(f"resume{i}")
    all_seen = holtd.ok("GET", "/holt/v1/events?type=token.created&limit=1000")["events"]
    middle = all_seen[-3]["seq"]
    s = Sse(holtd, "&type=token.created", f"Last-Event-ID: {middle}\r\n")
    assert [int(e["id"]) for e in s.events(2)] == [e["seq"] for e in all_seen[-2:]]
    s.close()


def test_the_accept_header_asks_for_a_stream(holtd):
    holtd.new_token("accept")
    r = subprocess.run(
        ["curl", "-sSN", "--noproxy", "*", "--max-time", "8", "-H", "Accept: text/event-stream",
         "-H", f"Authorization: Bearer {holtd.token}", f"{holtd.url}/holt/v1/events"], capture_output=True, text=True)
    assert r.returncode == 28, "the stream stays open until curl's time is up"
    assert "data: {" in r.stdout and "id: " in r.stdout


@pytest.mark.parametrize("version", ["--http1.1", "--http2-prior-knowledge"])
def test_curl_follows(holtd, version):
    p = subprocess.Popen(
        ["curl", "-sSN", "--noproxy", "*", version, "-H", f"Authorization: Bearer {holtd.token}",
         f"{holtd.url}/holt/v1/events?follow=true"], stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
    lines = queue.Queue()
    threading.Thread(target=lambda: [lines.put(x) for x in p.stdout], daemon=True).start()
    try:
        made = holtd.new_token("curl-follows")
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if made["id"] in lines.get(timeout=60):
                return
        raise AssertionError("the event never came")
    finally:
        p.kill()
        p.wait()


def test_a_slow_reader_loses_nothing_and_slows_nobody(holtd):
    head = holtd.ok("GET", "/holt/v1/info")["event_seq"]
    slow = Sse(holtd, f"&since={head}&type=token.created")
    names = [f"slow{i}" for i in range(200)]
    begin = time.monotonic()
    ids = [holtd.new_token(n)["id"] for n in names]
    assert time.monotonic() - begin < 60
    got = [e["data"]["object"] for e in slow.events(200)]
    assert got == [f"token/{i}" for i in ids]
    slow.close()


def test_a_reader_that_stops_is_told_and_goes_on_later(new_holtd):
    """It took nothing for write_ms: behind the last whole event stand the reason and the end, no reset; its last id leads to the rest."""
    d = new_holtd("--auth", "off", config="write_ms: 6s\nmessage_rate: 0\n")
    send = {"from": "a", "to": "b", "content": "x" * 60000}
    ids = [d.ok("POST", "/holt/v1/messages", send, token=None)["id"] for _ in range(80)]
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", d.port))
    slow = Sse(d, "&type=message.sent", sock=s)  # all of them are there: from now on it takes nothing
    time.sleep(9)  # it is told after 6 s and cut after 12
    text = b""
    while (n := int(slow.c._until(b"\r\n"), 16)) > 0:
        text += slow.c.take(n)
        slow.c.take(2)
    assert slow.c.take(2) == b"\r\n"
    assert text.rsplit(b"\n\n", 2)[1].startswith(b": ended: the client read nothing for too long"), text[-200:]
    slow.text = text
    got = slow.events(1)
    assert len(got) < len(ids), "the kernel took it all: send more"
    again = Sse(d, "&type=message.sent", f"Last-Event-ID: {got[-1]['id']}\r\n")
    got += again.events(len(ids) - len(got), 30)
    assert [e["data"]["object"] for e in got] == [f"message/{i}" for i in ids]
    slow.c.send(get("/healthz", "127.0.0.1"))
    assert slow.c.head()[0] == 200, "the connection serves on"
    slow.close()
    again.close()


class Browser:
    def __init__(self, *args):
        self.p = subprocess.Popen(
            ["node", f"{NODE}/browser_sse.js", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent, start_new_session=True)
        self.seen = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.p.stdout:
            self.seen.append(json.loads(line))

    def ids(self):
        return [x["id"] for x in self.seen if "id" in x]

    def objects(self):
        return [x["data"]["object"] for x in self.seen if "id" in x]

    def wait(self, what, limit=40):
        def look():
            assert self.p.poll() is None, self.p.stderr.read()
            return what()
        return wait_for(look, limit, 0.1)

    def close(self):
        self.p.stdin.close()
        try:
            self.p.wait(60)
        except subprocess.TimeoutExpired:
            pass
        try:  # its own session: node and every process of the browser
            os.killpg(self.p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.p.wait()


@pytest.fixture
def browser():
    if not shutil.which("node") or not os.path.isdir(f"{NODE}/node_modules/playwright-core"):
        pytest.skip("node or playwright-core is not installed: make deps")
    cache = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", os.path.expanduser("~/.cache/ms-playwright"))
    if not shutil.which("chromium") and not glob.glob(f"{cache}/chromium*/*/*"):
        pytest.skip("no Chromium: make deps")
    made = []

    def make(*args):
        made.append(Browser(*args))
        return made[-1]

    yield make
    for b in made:
        b.close()


def test_browser_logs_in_by_a_one_time_code(holtd, browser):
    code = holtd.ok("POST", "/holt/v1/login/code", {})["code"]
    b = browser(holtd.url, "/holt/v1/events?follow=true", code)
    b.wait(lambda: any(x.get("open") for x in b.seen))
    assert b.seen[0] == {"login": 200, "readable": ""}, "the cookie is not for scripts"
    made = holtd.new_token("for-the-browser")
    b.wait(lambda: f"token/{made['id']}" in b.objects())
    status, reply, _ = holtd.request("POST", "/holt/v1/login", {"code": code}, token=None)
    assert status in (401, 403) and reply["error"], "a code works once"


def test_browser_reconnects_without_a_gap(new_holtd, browser):
    """holtd dies and comes back: EventSource sends Last-Event-ID and misses nothing, doubles nothing."""
    port = free_ports()[0]
    d = new_holtd("--auth", "off", port=port, name="same")
    b = browser(d.url, "/holt/v1/events?follow=true")
    b.wait(lambda: any(x.get("open") for x in b.seen))
    first = [d.ok("POST", "/holt/v1/tokens", {"name": f"a{i}"}, token=None)["id"] for i in range(3)]
    b.wait(lambda: f"token/{first[-1]}" in b.objects())
    d.kill()
    d = new_holtd("--auth", "off", port=port, name="same")
    second = [d.ok("POST", "/holt/v1/tokens", {"name": f"b{i}"}, token=None)["id"] for i in range(3)]
    b.wait(lambda: f"token/{second[-1]}" in b.objects())
    assert any("error" in x for x in b.seen)
    created = [x for x in b.objects() if x in {f"token/{i}" for i in first + second}]
    assert created == [f"token/{i}" for i in first + second]
    assert len(b.ids()) == len(set(b.ids()))
