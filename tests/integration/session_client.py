"""A client of sessions: requests, and a WebSocket that keeps the screen as its messages tell it."""
import json
import time
import urllib.parse

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from daemon import SLOW

API = "/holt/v1"


class Session:
    def __init__(self, holtd, box, name="main", command=None, rows=24, cols=80, **more):
        self.holtd, self.box, self.name = holtd, box, name
        self.path = f"{API}/sandboxes/{box}/sessions/{name}"
        body = {"name": name, "rows": rows, "cols": cols, **more}
        if command is not None:
            body["command"] = command
        self.made = holtd.ok("POST", f"{API}/sandboxes/{box}/sessions", body)

    def get(self):
        return self.holtd.ok("GET", self.path)

    def send(self, text=None, *keys, **more):
        body = dict(more)
        if text:
            body["text"] = text
        if keys:
            body["keys"] = list(keys)
        self.holtd.ok("POST", self.path + "/send", body)

    def resize(self, rows, cols):
        return self.holtd.ok("POST", self.path + "/resize", {"rows": rows, "cols": cols})

    def kill(self):
        return self.holtd.ok("POST", self.path + "/kill")

    def screen(self, **query):
        return self.holtd.ok("GET", self.path + "/screen?" + urllib.parse.urlencode(query))

    def wait_screen(self, good, limit=20):
        """Until good(screen) holds."""
        end = time.monotonic() + limit * SLOW
        while True:
            s = self.screen()
            if good(s):
                return s
            assert time.monotonic() < end, f"the screen stays\n{s['text']}"
            time.sleep(0.01)

    def wait_text(self, text, limit=20):
        return self.wait_screen(lambda s: text in s["text"], limit)

    def watch(self, token="admin", **query):
        return Watch(self, token, query)


class Watch:
    """Messages by type, output, and the screen as updates have made it."""

    def __init__(self, session, token, query):
        holtd = session.holtd
        token = holtd.token if token == "admin" else token
        url = f"ws://127.0.0.1:{holtd.port}{session.path}/attach?{urllib.parse.urlencode(query)}"
        self.ws = connect(url, proxy=None, max_size=None, open_timeout=10 * SLOW, close_timeout=1, subprotocols=["holt.attach.v1"],
                          additional_headers={"Authorization": f"Bearer {token}"})
        self.messages, self.output, self.ends_at = [], bytearray(), None
        self.lines, self.view, self.keyframes, self.updates, self.closed = {}, None, 0, 0, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ws.close()

    def say(self, **message):
        self.ws.send(json.dumps(message))

    def type(self, data):
        self.ws.send(b"\0" + data)

    def take(self, timeout=0.01):
        """One message, if there is one; False: none came."""
        try:
            m = self.ws.recv(timeout=timeout)
        except TimeoutError:
            return False
        except ConnectionClosed as e:
            self.closed = e
            return False
        if isinstance(m, bytes):
            offset = int.from_bytes(m[1:9], "big")
            assert self.ends_at is None or offset == self.ends_at, f"a gap: {self.ends_at} to {offset}"
            self.output += m[9:]
            self.ends_at = offset + len(m) - 9
            return True
        m = json.loads(m)
        if m["type"] == "screen":
            self.draw(m)
        self.messages.append(m)
        return True

    def draw(self, m):
        if m["keyframe"]:
            self.keyframes += 1
            self.lines = {}
        assert self.view or m["keyframe"], "a difference before any keyframe"
        self.updates += 1
        if self.view and (self.view["rows"], self.view["cols"]) != (m["rows"], m["cols"]):
            self.lines = {}
        self.view = m
        for line in m["lines"]:
            self.lines[line["row"]] = "".join(r["text"] for r in line["runs"])

    @property
    def text(self):
        return "".join(self.lines.get(r, "").rstrip() + "\n" for r in range(self.view["rows"])) if self.view else ""

    def until(self, good, limit=20):
        end = time.monotonic() + limit * SLOW
        while not good(self):
            assert time.monotonic() < end and not (self.closed and not good(self)), (self.messages[-5:], self.output[-500:])
            self.take(0.05)
        return self

    def of(self, kind):
        return [m for m in self.messages if m["type"] == kind]

    def wait_for(self, kind, good=lambda m: True, limit=20):
        self.until(lambda w: any(good(m) for m in w.of(kind)), limit)
        return next(m for m in reversed(self.of(kind)) if good(m))
