"""The load of test_soak.py: clients that know what must be true, whatever dies meanwhile.

A client repeats a request that got no answer under the same Idempotency-Key, as a careful one does, so each create and
each command happens once.  Some requests are made once only: what came of them is there as a whole or not at all.
"""
import http.client
import json
import random
import struct
import threading
import time
from urllib.parse import quote

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from daemon import wait_for

API = "/holt/v1"
PAD = "x" * 60
INSIST_S = 90
KEPT = 200  # commands in one sandbox: of more than `execs_max`, 256, the oldest are forgotten


class Gone(Exception):
    """No answer: it may have happened or not."""


class Doomed(Exception):
    """The sandbox's init was killed on purpose."""


class Command:
    """A command that writes numbered lines on both streams, notes that it ran, and ends with a status."""

    def __init__(self, key, lines, pause_every=0, pause=0.0, code=0):
        self.key, self.lines, self.code, self.id = key, lines, code, None
        stop = f"[ $((i % {pause_every})) = 0 ] && sleep {pause}; " if pause_every else ""
        self.argv = ["sh", "-c", f"echo {key} >> /root/ran; i=0; while [ $i -lt {lines} ]; do echo {key} out $i {PAD}; "
                     f"echo {key} err $i >&2; i=$((i + 1)); {stop}done; exit {code}"]
        self.out = "".join(f"{key} out {i} {PAD}\n" for i in range(lines)).encode()
        self.err = "".join(f"{key} err {i}\n" for i in range(lines)).encode()


class Box:
    def __init__(self, name):
        self.name, self.id, self.doomed, self.destroyed = name, None, False, False
        self.commands, self.files = [], {}
        self.tried = []  # commands that were asked for once: there or not

    @property
    def path(self):
        return f"{API}/sandboxes/{self.id}"


class World:
    def __init__(self, holtd, seed):
        self.holtd = holtd
        self.rng = random.Random(seed)
        self.stop, self.is_up = threading.Event(), threading.Event()
        self.is_up.set()
        self.lock = threading.Lock()
        self.boxes, self.tried, self.wrong = [], [], []
        self.runs = self.bytes = 0
        self.token = holtd.token

    def serve(self, holtd):
        self.holtd = holtd
        self.is_up.set()

    # --- requests ---

    def raw(self, method, path, data=None, headers=None):
        """One try: (status, bytes, headers), or Gone."""
        c = http.client.HTTPConnection("127.0.0.1", self.holtd.port, timeout=30)
        try:
            c.request(method, path, data, {"Authorization": f"Bearer {self.token}", **(headers or {})})
            r = c.getresponse()
            return r.status, r.read(), r.headers
        except (OSError, http.client.HTTPException) as e:
            raise Gone(f"{method} {path}: {e!r}") from e
        finally:
            c.close()

    def once(self, method, path, body=None, key=None):
        headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
        status, data, _ = self.raw(method, path, None if body is None else json.dumps(body), headers)
        return status, json.loads(data) if data else None

    def insist(self, ask):
        """Until there is an answer that is not `unavailable`."""
        end = time.monotonic() + INSIST_S
        while True:
            try:
                got = ask()
                if got[0] != 503:
                    return got
                why = got
            except Gone as e:
                why = e
            assert time.monotonic() < end, f"no answer in {INSIST_S} s: {why}"
            self.is_up.wait(20)
            time.sleep(0.02)

    # --- what clients do ---

    def create(self, name, **more):
        box = Box(name)
        status, reply = self.insist(lambda: self.once("POST", f"{API}/sandboxes", {"name": name, **more}, f"c-{name}"))
        assert status == 201, f"create {name}: {status} {reply}"
        assert reply["state"] == "running", reply
        box.id = reply["id"]
        with self.lock:
            self.boxes.append(box)
        return box

    def try_create(self, name):
        """Once, without a key."""
        with self.lock:
            self.tried.append(name)
        try:
            self.once("POST", f"{API}/sandboxes", {"name": name})
        except Gone:
            pass

    def destroy(self, box):
        status, reply = self.insist(lambda: self.once("DELETE", box.path))
        assert status in (204, 404), f"destroy {box.id}: {status} {reply}"
        box.destroyed = True

    def refused(self, box, what, status, reply):
        if box.doomed:
            raise Doomed()
        raise AssertionError(f"{what} in {box.id}: {status} {reply}")

    def run(self, box, c):
        """To its end: the reply has it all."""
        box.commands.append(c)
        status, r = self.insist(
            lambda: self.once("POST", f"{box.path}/execs", {"command": c.argv}, f"x-{c.key}"))
        if status != 200 or r["state"] == "lost":
            self.refused(box, f"run {c.key}", status, r)
        c.id = r["id"]
        assert r["stdout"].encode() == c.out and r["stderr"].encode() == c.err, f"output of {c.key} in {box.id}: {r}"
        assert r["exit_code"] == c.code, r

    def begin(self, box, c, **more):
        box.commands.append(c)
        status, r = self.insist(lambda: self.once(
            "POST", f"{box.path}/execs", {"command": c.argv, "background": True, **more}, f"x-{c.key}"))
        if status not in (200, 202):
            self.refused(box, f"begin {c.key}", status, r)
        c.id = r["id"]
        return c

    def try_begin(self, box, c):
        box.tried.append(c)
        try:
            self.once("POST", f"{box.path}/execs", {"command": c.argv, "background": True})
        except Gone:
            pass

    def put(self, box, path, data):
        status, reply, _ = self.insist(lambda: self.raw("PUT", f"{box.path}/files?path={quote(path)}", data))
        if not 200 <= status < 300:
            self.refused(box, f"write {path}", status, reply)
        box.files[path] = data

    def get(self, box, path):
        status, data, _ = self.insist(lambda: self.raw("GET", f"{box.path}/files?path={quote(path)}"))
        if status != 200:
            self.refused(box, f"read {path}", status, data)
        return data

    # --- around them ---

    def wait_busy(self):
        wait_for(lambda: self.wrong or len([b for b in self.boxes if b.commands]) >= 3, 30, 0.01)

    def doom(self, rng):
        with self.lock:
            live = [b for b in self.boxes if b.commands and not b.destroyed]
            box = rng.choice(live) if live else None
            if box:
                box.doomed = True
            return box.id if box else None

    def raise_wrong(self):
        if self.wrong:
            raise self.wrong[0]

    def counts(self):
        live = [b for b in self.boxes]
        return {"boxes": len(live), "commands": sum(len(b.commands) for b in live), "runs": self.runs,
                "files": sum(len(b.files) for b in live), "kB": self.bytes // 1000,
                "lost": sum(getattr(c, "lost", False) for b in live for c in b.commands)}

    # --- what must be true ---

    def listed(self, path, what):
        found, cursor = [], ""
        while True:
            page = self.holtd.ok("GET", f"{path}?limit=100" + (f"&cursor={cursor}" if cursor else ""))
            found += page[what]
            cursor = page["cursor"]
            if not cursor:
                return found

    def output(self, box, c, stream, offset=0):
        status, data, _ = self.raw("GET", f"{box.path}/execs/{c.id}/output?stream={stream}&offset={offset}")
        assert status == 200, (status, data)
        self.bytes += len(data)
        return data

    def check_command(self, box, c, lost_is_fine):
        def ended():
            x = self.holtd.ok("GET", f"{box.path}/execs/{c.id}")
            return x if x["state"] not in ("starting", "running") else None
        x = wait_for(ended, 30)
        out, err = self.output(box, c, "stdout"), self.output(box, c, "stderr")
        if x["state"] == "lost":
            assert box.doomed and lost_is_fine, f"{c.key} is lost in {box.id}: {x}"
            assert x["failure"], x
            assert c.out.startswith(out) and c.err.startswith(err), f"{c.key} in {box.id}: not what it wrote"
            c.lost = True
            return
        assert x["state"] == "exited" and x["exit_code"] == c.code, x
        assert out == c.out, f"stdout of {c.key} in {box.id} ({c.id}): {differ(out, c.out)}"
        assert err == c.err, f"stderr of {c.key} in {box.id} ({c.id}): {differ(err, c.err)}"
        at = self.rng.randrange(len(c.out))
        assert self.output(box, c, "stdout", at) == c.out[at:]

    def check_execs(self, box):
        """Each command is there once; those that were tried once are there as a whole or not at all."""
        known = {c.key: c for c in box.commands}
        tried = {c.key: c for c in box.tried}
        seen = set()
        for x in self.listed(f"{box.path}/execs", "execs"):
            if x["command"][:2] != ["sh", "-c"] or "/root/ran" not in x["command"][2]:
                continue
            key = x["command"][2].split()[1]
            assert key not in seen, f"{key} is there twice in {box.id}"
            seen.add(key)
            assert key in known or key in tried, f"{key} in {box.id}: nobody asked for it"
            if key in tried:
                tried[key].id = x["id"]
                self.check_command(box, tried[key], True)
        for c in box.commands:
            assert c.id is None or c.key in seen, f"{c.key} ({c.id}) is not there any more in {box.id}"
            if c.id:
                self.check_command(box, c, True)
        return known, tried

    def check_box(self, box):
        def settled():
            s = self.holtd.ok("GET", box.path)
            return s if s["state"] == ("failed" if box.doomed else "running") else None
        s = wait_for(settled, 20)
        known, tried = self.check_execs(box)
        if box.doomed:
            assert s["failure"], s
            self.holtd.ok("POST", f"{box.path}/start")
            box.doomed = False
        for path, data in box.files.items():
            assert self.get(box, path) == data, f"{path} in {box.id}"
        status, ran, _ = self.raw("GET", f"{box.path}/files?path=/root/ran")
        ran = ran.decode().split() if status == 200 else []
        assert len(ran) == len(set(ran)), f"run twice in {box.id}: {sorted(k for k in ran if ran.count(k) > 1)}"
        missing = [k for k, c in known.items() if c.id and k not in ran and not getattr(c, "lost", False)]
        assert not missing, f"never ran in {box.id}: {missing}"
        assert not [k for k in ran if k not in known and k not in tried]

    def verify(self, lost_is_fine):
        assert lost_is_fine or not [b for b in self.boxes if b.doomed]
        kept = {b.id: b for b in self.boxes if not b.destroyed}
        gone = {b.id for b in self.boxes if b.destroyed}

        def others():
            """A one-shot run's sandbox goes by itself."""
            listed = self.listed(f"{API}/sandboxes", "sandboxes")
            assert not [s["id"] for s in listed if s["id"] in gone], "a destroyed one is back"
            assert set(kept) <= {s["id"] for s in listed}, f"lost: {set(kept) - {s['id'] for s in listed}}"
            rest = [s for s in listed if s["id"] not in kept]
            return None if [s for s in rest if s["name"] not in self.tried] else (rest,)
        (rest,) = wait_for(others, 20, 0.05)
        for s in rest:  # never acknowledged, but there: then wholly
            s = self.holtd.ok("GET", f"{API}/sandboxes/{s['id']}")
            assert s["state"] == "running", s
            assert self.holtd.ok("POST", f"{API}/sandboxes/{s['id']}/execs", {"command": ["true"]})["exit_code"] == 0
        for box in kept.values():
            self.check_box(box)

    def destroy_all(self):
        for s in self.listed(f"{API}/sandboxes", "sandboxes"):
            status, reply, _ = self.holtd.request("DELETE", f"{API}/sandboxes/{s['id']}")
            assert status in (204, 404), (status, reply)
        assert self.listed(f"{API}/sandboxes", "sandboxes") == []


def differ(got, want):
    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    return f"{len(got)} bytes, not {len(want)}; from {at}: {got[at:at + 80]!r}, not {want[at:at + 80]!r}"


# --- the clients ---


class Client(threading.Thread):
    def __init__(self, world, name):
        super().__init__(daemon=True, name=f"{type(self).__name__} {name}")
        self.world, self.label, self.made = world, name, 0
        self.rng = random.Random(world.rng.random())

    def key(self):
        self.made += 1
        return f"{self.label}-{self.made}"

    def run(self):
        try:
            self.work()
        except Doomed:
            pass
        except BaseException as e:
            self.world.wrong.append(e)

    def on(self):
        return not self.world.stop.is_set() and not self.world.wrong


class Worker(Client):
    """Commands to their end, in the background and only tried; files."""

    def work(self):
        w, rng = self.world, self.rng
        box = w.create(self.key())
        while self.on():
            if len(box.commands) + len(box.tried) >= KEPT:
                box = w.create(self.key())
            what = rng.randrange(5)
            if what < 2:
                w.run(box, Command(self.key(), rng.choice((1, 5, 50, 400)), code=rng.randrange(4)))
            elif what == 2:
                w.begin(box, Command(self.key(), 60, 10, 0.05, code=3))
            elif what == 3:
                w.try_begin(box, Command(self.key(), 20))
            else:
                path = f"/root/{self.key()}"
                w.put(box, path, rng.randbytes(rng.choice((0, 100, 200000))))
                assert w.get(box, path) == box.files[path], path


class Churner(Client):
    """Sandboxes that are soon destroyed, creates that are only tried, and one-shot runs."""

    def work(self):
        w = self.world
        while self.on():
            box = w.create(self.key(), **({"upper": "memory"} if self.made % 2 else {}))
            w.destroy(box)
            w.try_create(self.key())
            c = Command(self.key(), 30, code=7)
            try:
                status, r = w.once("POST", f"{API}/run", {"command": c.argv})
            except Gone:
                continue
            if status == 503:
                continue
            assert status == 200 and r["state"] == "exited", (status, r)
            assert (r["stdout"].encode(), r["stderr"].encode(), r["exit_code"]) == (c.out, c.err, 7), r
            w.runs += 1


class Follower(Client):
    """Reads a command's output while it is written, and goes on from its offset when the reply breaks off."""

    def work(self):
        w = self.world
        box = w.create(self.key())
        while self.on():
            c = w.begin(box, Command(self.key(), 2000, 100, 0.02))
            got, end = b"", time.monotonic() + INSIST_S
            while len(got) < len(c.out):
                got += self.follow(box, c, len(got))
                assert c.out.startswith(got), f"stdout of {c.key} in {box.id}: {differ(got, c.out)}"
                if box.doomed:
                    raise Doomed()
                assert time.monotonic() < end, f"{c.key} in {box.id} does not end: {len(got)} of {len(c.out)}"

    def follow(self, box, c, offset):
        w, got = self.world, b""
        conn = http.client.HTTPConnection("127.0.0.1", w.holtd.port, timeout=30)
        try:
            conn.request("GET", f"{box.path}/execs/{c.id}/output?follow=true&offset={offset}",
                         headers={"Authorization": f"Bearer {w.token}"})
            r = conn.getresponse()
            if r.status != 200:
                w.refused(box, f"follow {c.key} from {offset}", r.status, r.read())
            while part := r.read1(65536):
                got += part
        except (OSError, http.client.HTTPException):
            w.is_up.wait(20)
            time.sleep(0.02)
        finally:
            conn.close()
        return got


class Typist(Client):
    """A terminal over a WebSocket: numbered lines go in and come back, each once and in order."""

    def work(self):
        w = self.world
        box = w.create(self.key())
        status, r = w.insist(lambda: w.once("POST", f"{box.path}/execs", {
            "command": ["sh", "-c", "stty raw -echo; echo ready; exec cat"], "background": True,
            "pty": {"rows": 24, "cols": 80}}, f"x-{self.key()}"))
        if status not in (200, 202):
            w.refused(box, "terminal", status, r)
        self.got, self.sent, self.links = b"", 0, 0
        while self.on() and not box.doomed:
            try:
                self.links += 1
                self.type(f"{box.path}/execs/{r['id']}/attach", len(self.got))
            except (OSError, WebSocketException, TimeoutError):
                w.is_up.wait(20)
                time.sleep(0.02)
        if box.doomed:
            raise Doomed()
        lines = self.got.split(b"\n")
        assert lines[0] == b"ready" or self.sent == 0, lines[:2]
        numbers = [int(n) for n in lines[1:-1]]
        assert numbers == sorted(set(numbers)), f"typed once, back twice or out of order: {numbers}"
        lost = self.sent - len(numbers)
        assert lost <= self.links, f"{lost} of {self.sent} lines over {self.links} connections did not come back"

    def type(self, path, offset):
        w = self.world
        with connect(f"ws://127.0.0.1:{w.holtd.port}{path}?take=true&stdout_offset={offset}", proxy=None, max_size=None,
                     subprotocols=["holt.attach.v1"], open_timeout=10, close_timeout=1,
                     additional_headers={"Authorization": f"Bearer {w.token}"}) as ws:
            while b"ready" not in self.got and self.on():
                self.read(ws)
            while self.on():
                self.sent += 1
                line = b"%06d\n" % self.sent
                ws.send(b"\0" + line)
                while line not in self.got and self.on():
                    self.read(ws)
                time.sleep(0.01)

    def read(self, ws):
        try:
            m = ws.recv(timeout=1)
        except TimeoutError:
            return
        if isinstance(m, bytes):
            offset = struct.unpack(">Q", m[1:9])[0]
            assert offset == len(self.got), f"output from {offset}, not {len(self.got)}"
            self.got += m[9:]


ROLES = (Worker, Worker, Worker, Churner, Churner, Follower, Typist)
