"""The resource use of all sandboxes: one list, and a live stream of what changed."""
import json

import pytest

from daemon import native, wait_for
from raw import Raw, get

API = "/holt/v1"


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("stats"))
    yield d
    d.clear()
    d.stop()


class Follower:
    """Of GET /holt/v1/stats?follow=true: what each event says."""

    def __init__(self, d, token=None):
        self.c = Raw(d.port)
        self.c.send(get(f"{API}/stats?follow=true", "127.0.0.1", f"Authorization: Bearer {token or d.token}\r\n"))
        self.status, _ = self.c.head()
        self.text = b""

    def next(self):
        while True:
            block, end, rest = self.text.partition(b"\n\n")
            if end:
                self.text = rest
                fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if not line.startswith(b":"))
                if fields:
                    assert fields[b"event"] == b"stats"
                    return json.loads(fields[b"data"])
            else:
                n = int(self.c._until(b"\r\n"), 16)
                if n == 0:
                    raise EOFError
                self.text += self.c.take(n)
                self.c.take(2)

    def close(self):
        self.c.sock.close()


def make(d, name, **more):
    return d.ok("POST", f"{API}/sandboxes", {"name": name, **more})["id"]


def test_a_list_has_what_each_alone_says(holtd):
    ids = [make(holtd, f"list{i}") for i in range(3)]
    stopped = make(holtd, "list-stopped")
    holtd.ok("POST", f"{API}/sandboxes/{stopped}/stop")
    reply = holtd.ok("GET", f"{API}/stats")
    assert reply["cursor"] is None
    got = {s["id"]: s for s in reply["stats"]}
    assert set(ids) <= set(got) and stopped not in got
    alone = holtd.ok("GET", f"{API}/sandboxes/{ids[0]}/stats")
    assert set(alone) == set(got[ids[0]]) and alone["pids"] == got[ids[0]]["pids"]
    holtd.clear()
    assert holtd.ok("GET", f"{API}/stats")["stats"] == []


def test_a_stream_begins_with_all_and_goes_on_with_what_changed(holtd):
    idle, busy = make(holtd, "idle"), make(holtd, "busy")
    f = Follower(holtd)
    first = f.next()
    assert first["all"] and {s["id"] for s in first["stats"]} == {idle, busy}
    holtd.ok("POST", f"{API}/sandboxes/{busy}/execs", {"command": "while :; do :; done", "background": True})
    seen = []

    def hot():
        seen.append(f.next())
        return len(seen) > 3 and any(s["id"] == busy and s["cpu_us"] > 200000 for s in seen[-1]["stats"])
    wait_for(hot)
    assert not any(e["all"] for e in seen)
    assert any(idle not in [s["id"] for s in e["stats"]] for e in seen), "an idle one is left out"
    times = [e["at"] for e in seen]
    assert times == sorted(times)
    f.close()
    holtd.clear()


def test_everybody_sees_their_own(holtd):
    tokens = {t: holtd.ok("POST", f"{API}/tokens", {"name": f"of-{t}", "role": "operator", "tenant": t})["token"] for t in ("red", "blue")}
    red = holtd.ok("POST", f"{API}/sandboxes", {"name": "r"}, token=tokens["red"])["id"]
    followers = {t: Follower(holtd, token) for t, token in tokens.items()}
    assert [s["id"] for s in followers["red"].next()["stats"]] == [red]
    assert followers["blue"].next()["stats"] == []
    assert holtd.ok("GET", f"{API}/stats", token=tokens["blue"])["stats"] == []
    assert [s["id"] for s in holtd.ok("GET", f"{API}/stats")["stats"]] == [red], "an admin sees all"
    mine = next(t for t in holtd.ok("GET", f"{API}/tokens")["tokens"] if t["name"] == "of-red")
    holtd.ok("DELETE", f"{API}/tokens/{mine['id']}")
    with pytest.raises(EOFError):  # the stream ends with its token
        while True:
            followers["red"].next()
    followers["blue"].close()
    holtd.clear()


def test_a_watched_holtd_stops(tmp_path):
    d = native(tmp_path)
    make(d, "box")
    f = Follower(d)
    f.next()
    d.clear()
    assert d.stop() == 0
    f.close()
