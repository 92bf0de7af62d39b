"""The load of test_team_storm.py: agents and people on one board, who know what came of every request they made.

A request whose reply was lost may have happened or not.  Its client waits until holtd is back, reads back, and asks again only
when it did not happen: so everything it counts as done must be there exactly once, and nothing else may be.
"""
import collections
import hashlib
import http.client
import json
import random
import threading
import time
from urllib.parse import quote

from hub_client import form

INSIST_S = 60
FINE = (200, 201, 202, 400, 403, 409, 429)  # an answer: done, proposed, or refused by a rule


class Gone(Exception):
    """No answer: it may have happened or not."""


class Stopped(Exception):
    """The storm is over."""


class World:
    def __init__(self, holtd, seed, store_may_fail=False):
        self.holtd, self.port, self.token = holtd, holtd.port, holtd.token
        self.rng = random.Random(seed)
        self.store_may_fail = store_may_fail
        self.stop, self.is_up = threading.Event(), threading.Event()
        self.is_up.set()
        self.life = 0  # how often holtd was started
        self.wrong, self.asked = [], collections.Counter()
        self.project = None
        self.agents, self.people = [], []

    def down(self):
        self.is_up.clear()

    def serve(self, holtd):
        self.holtd = holtd
        self.life += 1
        self.is_up.set()

    def raise_wrong(self):
        if self.wrong:
            raise self.wrong[0]


class Client(threading.Thread):
    def __init__(self, world, name, token=None):
        super().__init__(daemon=True, name=name)
        self.world, self.label, self.token = world, name, token or world.token
        self.rng = random.Random(world.rng.random())
        self.conn, self.made = None, 0

    def run(self):
        try:
            while not self.world.stop.is_set() and not self.world.wrong:
                self.step()
        except Stopped:
            pass
        except BaseException as e:
            e.add_note(f"in {self.label}")
            self.world.wrong.append(e)
        finally:
            self.hang_up()

    def key(self):
        self.made += 1
        return f"{self.label}.{self.made}"

    # --- requests ---

    def hang_up(self):
        if self.conn:
            self.conn.close()
        self.conn = None

    def once(self, method, path, body=None, token=None):
        """One try: (status, JSON), or Gone.  body: what becomes JSON, or (bytes, content type)."""
        headers = {"Authorization": f"Bearer {token or self.token}"}
        if isinstance(body, tuple):
            body, headers["Content-Type"] = body
        elif body is not None:
            body = json.dumps(body)
        self.conn = self.conn or http.client.HTTPConnection("127.0.0.1", self.world.port, timeout=30)
        try:
            self.conn.request(method, path, body, headers)
            r = self.conn.getresponse()
            data = r.read()
        except (OSError, http.client.HTTPException) as e:
            self.hang_up()
            raise Gone(f"{method} {path}: {e!r}") from e
        self.world.asked[f"{method} {r.status}"] += 1
        return r.status, json.loads(data) if data else None

    def wait_up(self, life, why):
        """Until another holtd than that of `life` is there: the one that had the request is dead, and the request with it."""
        end = time.monotonic() + INSIST_S
        while self.world.life == life or not self.world.is_up.is_set():
            if time.monotonic() > end or self.world.wrong:
                raise why
            time.sleep(0.02)

    def act(self, method, path, body=None, happened=None):
        """The status, and the reply; (0, None) when the reply was lost and the thing done.  happened() is asked after a lost reply; without it
        the request may be repeated."""
        end = time.monotonic() + INSIST_S
        while True:
            life = self.world.life
            try:
                status, reply = self.once(method, path, body)
            except Gone as why:
                self.wait_up(life, why)
                if happened and happened():
                    return 0, None
                continue
            if status != 503:
                left = status == 404 and reply["error"] == "agent not found"  # it removed itself just now
                assert status in FINE or left, f"{method} {path} {body}: {status} {reply}"
                return status, reply
            assert self.world.store_may_fail, f"{method} {path}: {status} {reply}"
            assert "whether the change was made" not in (reply.get("hint") or ""), reply  # 503 is: nothing was done
            assert time.monotonic() < end, reply
            time.sleep(0.05)

    def read(self, path, token=None):
        """A read, whatever it takes."""
        end = time.monotonic() + INSIST_S
        while True:
            try:
                status, reply = self.once("GET", path, token=token)
                if status == 200:
                    return reply
                why = AssertionError(f"GET {path}: {status} {reply}")
                if status != 503 or not self.world.store_may_fail:
                    raise why
            except Gone as e:
                why = e
            if time.monotonic() > end:
                raise why
            time.sleep(0.02)

    def events_of(self, obj):
        """What the log says of one object, read as a person."""
        since, found = 0, []
        while True:
            page = self.read(f"/holt/v1/events?object={quote(obj)}&since={since}&limit=1000", self.world.token)["events"]
            if not page:
                return found
            found += page
            since = page[-1]["seq"]

    @property
    def board(self):
        return f"/projects/{self.world.project}"

    def tasks(self, **query):
        return self.read(f"{self.board}/tasks" + "".join(f"{'&' if i else '?'}{k}={v}" for i, (k, v) in enumerate(query.items())))


class Agent(Client):
    """An agent with a token of its own.  What it did is in done, by kind."""

    def __init__(self, world, name, token, others):
        super().__init__(world, name, token)
        self.others = others
        self.sent, self.notes, self.states, self.acked = {}, {}, set(), set()
        self.claims, self.refused = collections.Counter(), collections.Counter()
        self.proposed, self.uploads = set(), {}

    def step(self):
        what = self.rng.choices(
            (self.beat, self.claim, self.work, self.review, self.send, self.mail, self.checkpoint, self.upload, self.again),
            (2, 5, 10, 4, 4, 3, 2, 1, 0.15))[0]
        what()

    def note(self, kind, status, reply):
        """Of a refusal: why.  One that is revoked says yes to that and goes on."""
        if status in (400, 403, 409, 429):
            self.refused[f"{kind} {status}"] += 1
        if status == 403 and "is revoked" in reply["error"]:
            self.obey()
        if status == 202:
            self.proposed.add(reply["proposal_id"])

    def beat(self):
        self.act("POST", f"/agents/{self.label}/heartbeat")

    def obey(self):
        told = self.read(f"/agents/{self.label}/revocation")
        if told["pending"] and self.rng.random() < 0.7:
            self.act("POST", f"/agents/{self.label}/revocation/ack", {"revocation_id": told["revocation_id"]})

    def again(self):
        """Registers anew, some after removing themselves."""
        if self.rng.random() < 0.3 and "coordinator" not in self.tags:  # only people give that one again
            self.act("DELETE", f"/agents/{self.label}", happened=lambda: self.label not in
                     {a["name"] for a in self.read("/agents")})
        self.act("POST", "/agents/register", {"name": self.label, "type": "storm", "capabilities": self.tags})

    def claim(self):
        ready = self.read(f"{self.board}/tasks/ready?agent={self.label}")[:12]
        if not ready:
            return
        t = self.rng.choice(ready)["id"]
        if self.claims[t] and self.tasks_own(t):
            return  # its own already: a claim would say yes and do nothing

        def happened():
            n = sum(e["type"] == "task.claimed" and e["data"]["by"] == self.label for e in self.events_of(f"task/{t}"))
            assert n in (self.claims[t], self.claims[t] + 1), f"{self.label} claimed {t} {n} times, not {self.claims[t]}"
            return n > self.claims[t]

        status, reply = self.act("POST", f"{self.board}/tasks/{t}/claim", {"agent": self.label}, happened)
        self.claims[t] += status in (0, 200)
        self.note("claim", status, reply)

    def tasks_own(self, task):
        return self.read(f"{self.board}/tasks/{task}")["claimed_by"] == self.label

    def work(self):
        mine = self.read(f"/tasks?agent={self.label}&project_id={self.world.project}")
        if mine:
            t = self.rng.choice(mine)
            ways = {"backlog": ["ready"], "ready": ["in_progress"] * 8 + ["backlog"], "blocked": ["ready", "backlog"],
                    "in_progress": ["in_review"] * 6 + ["blocked", "ready"], "in_review": ["done"] * 3 + ["in_progress"],
                    "done": ["backlog"]}
            self.move(t["id"], self.rng.choice(ways[t["status"]]))

    def move(self, task, to):
        note = self.key()
        body = {"status": to, "agent": self.label, "note": note}
        if to == "blocked":
            body["blocked_reason"] = note
            if self.rng.random() < 0.5:
                body["blocked_by"] = self.rng.choice(self.world.tasks_known)

        def happened():
            seen = [e for e in self.events_of(f"task/{task}") if e["data"].get("note") == note]
            asked = [p for p in self.read(f"/proposals?agent={self.label}") if p["note"] == note]
            return bool(seen or asked)

        status, reply = self.act("PATCH", f"{self.board}/tasks/{task}", body, happened)
        self.notes[note] = (status, task)
        self.note("move", status, reply)

    def review(self):
        waiting = self.tasks(status="in_review")
        if not waiting:
            return
        t = self.rng.choice(waiting)
        status, reply = self.act("POST", f"{self.board}/tasks/{t['id']}/reviewers/{self.label}")
        self.note("review", status, reply)
        if status == 200:
            self.move(t["id"], "done")

    def send(self):
        to = "*" if self.rng.random() < 0.01 else self.rng.choice(self.others)
        text = self.key()

        def happened():
            return text in {m["content"] for m in self.read(f"/messages/history/{self.label}/{to}?limit=200")}

        status, reply = self.act("POST", "/messages/send", {"from": self.label, "to": to, "content": text}, happened)
        if status in (0, 200):
            self.sent[text] = (to, reply["id"] if reply else None)
        self.note("send", status, reply)

    def mail(self):
        for m in self.read(f"/messages/{self.label}?unread=true")[:10]:
            assert m["id"] not in self.acked, f"{m} was acknowledged, and came again"
            status, reply = self.act("POST", f"/messages/{m['id']}/ack")
            self.note("ack", status, reply)
            if status == 403:  # revoked meanwhile: it stays unread
                return
            assert status == 200
            self.acked.add(m["id"])

    def upload(self):
        """Files that others write too: each upload is a version of its own."""
        name, text = f"{self.rng.randrange(4)}.txt", self.key().encode() * self.rng.randrange(1, 2000)
        checksum = hashlib.sha256(text).hexdigest()

        def happened():
            return any(e["type"] == "project.file" and e["data"]["checksum"] == checksum
                       for e in self.events_of(f"project/{self.world.project}"))

        status, reply = self.act("POST", f"{self.board}/files", form([("uploader", None, self.label.encode()), ("file", name, text)]),
                                 happened)
        if status in (0, 200):
            assert not reply or reply["checksum"] == checksum, reply
            self.uploads[checksum] = (name, text)
        self.note("upload", status, reply)

    def checkpoint(self):
        state = self.key()

        def happened():
            return state in {c["state"] for c in self.read(f"/agents/{self.label}/checkpoints?limit=5")}

        status, reply = self.act("POST", f"/agents/{self.label}/checkpoint",
                                 {"task_id": self.rng.choice(self.world.tasks_known), "state": state}, happened)
        assert status in (0, 200), reply
        self.states.add(state)


class Coordinator(Agent):
    """One with the tag: hands out work too."""

    def step(self):
        if self.rng.random() < 0.15:
            self.assign()
        else:
            super().step()

    def assign(self):
        t = self.rng.choice(self.world.tasks_known)
        if self.rng.random() < 0.7:
            status, reply = self.act("POST", f"{self.board}/tasks/{t}/assign", {"agent": self.rng.choice(self.others)})
        else:
            status, reply = self.act("POST", f"{self.board}/tasks/{t}/unassign")
        self.note("assign", status, reply)


class Person(Client):
    """Tells some of the agents what to do, decides about all proposals, makes tasks, sets limits."""

    def __init__(self, world, name, mine):
        super().__init__(world, name)
        self.mine, self.paused = mine, {}
        self.pauses, self.revocations, self.titles = set(), {}, {}
        self.decided = collections.Counter()

    def step(self):
        what = self.rng.choices((self.pause, self.resume, self.revoke, self.decide, self.assign, self.create, self.limit),
                                (2, 3, 2, 8, 4, 2, 0.5))[0]
        what()
        time.sleep(self.rng.random() * 0.05)

    def pause(self):
        name, reason = self.rng.choice(self.mine), self.key()
        if self.paused.get(name) or not self.is_there(name):
            return
        status, reply = self.act("POST", f"/agents/{name}/pause", {"reason": reason})
        if status == 200:
            assert reply["paused"] is True, reply
            self.paused[name] = reason
            self.pauses.add(reason)

    def resume(self):
        for name in [n for n in self.paused if self.is_there(n)][:1]:
            status, reply = self.act("POST", f"/agents/{name}/resume")
            if status == 200:
                assert reply["paused"] is False, reply
                del self.paused[name]

    def is_there(self, name):
        return name in {a["name"] for a in self.read("/agents")}

    def revoke(self):
        name, reason = self.rng.choice(self.mine), self.key()

        def happened():
            return reason in {d["reason"] for d in self.read("/revocation/history?limit=1000")}

        status, reply = self.act("POST", f"/agents/{name}/revoke", {"reason": reason, "flush_required": self.rng.random() < 0.5},
                                 happened)
        assert status in (0, 200), reply
        self.revocations[reason] = name

    def decide(self):
        pending = self.read("/proposals?status=pending")
        if not pending:
            return
        p = self.rng.choice(pending)["id"]
        what, reason = self.rng.choice(("approve", "approve", "reject")), self.key()

        def happened():
            return self.read(f"/proposals/{p}")["reason"] == reason

        status, reply = self.act("POST", f"/proposals/{p}/{what}", {"reason": reason}, happened)
        if status in (0, 200):
            self.decided[p] += 1
        elif what == "approve" and self.rng.random() < 0.5:  # the board does not allow it any more
            status, reply = self.act("POST", f"/proposals/{p}/reject", {"reason": reason}, happened)
            self.decided[p] += status in (0, 200)

    def assign(self):
        t, name = self.rng.choice(self.world.tasks_known), self.rng.choice(self.world.manual)
        body = {"agent": name, "assigned_by": self.key()}
        status, reply = self.act("POST", f"{self.board}/tasks/{t}/assign", body, lambda: any(
            e["type"] == "task.assigned" and e["data"]["by"] == body["assigned_by"] for e in self.events_of(f"task/{t}")))
        if status == 200 and self.rng.random() < 0.2:
            self.act("POST", f"{self.board}/tasks/{t}/unassign")

    def create(self):
        title = self.key()
        body = {"title": title, "priority": f"P{self.rng.randrange(4)}", "description": "x" * self.rng.randrange(200)}
        if self.rng.random() < 0.3:
            body["required_reviewers"] = 1
        if self.rng.random() < 0.2:
            body["required_capabilities"] = ["code"]
        if self.rng.random() < 0.2:
            body["parent_task_id"] = self.rng.choice(self.world.tasks_known)
        status, reply = self.act("POST", f"{self.board}/tasks", body, lambda: any(t["title"] == title for t in self.tasks()))
        assert status in (0, 201), reply
        self.titles[title] = reply["id"] if reply else None
        if reply:
            self.world.tasks_known.append(reply["id"])

    def limit(self):
        column, limit = self.rng.choice((("in_progress", 2), ("in_progress", 3), ("in_review", 2), ("in_review", 4)))
        assert self.act("PATCH", f"{self.board}/wip", {"status": column, "limit": limit})[0] == 200


class Watcher(Client):
    """Looks at the board all the while: no picture of it shows more than the highest limit there ever was."""

    def __init__(self, world):
        super().__init__(world, "watcher")
        self.looks = 0

    def step(self):
        open_, review, own = collections.Counter(), collections.Counter(), {a.label: a.task_max for a in self.world.agents}
        for c in self.tasks():
            open_[c["assigned_to"]] += c["status"] == "in_progress" or (c["status"] == "ready" and bool(c["claimed_by"]))
            review[c["assigned_to"]] += c["status"] == "in_review"
            assert not c["claimed_by"] or c["claimed_by"] == c["assigned_to"], f"two owners: {c}"
        del open_[None], review[None]
        assert all(n <= 3 and n <= (own.get(a) or 3) for a, n in open_.items()), open_
        assert all(n <= 5 for n in review.values()), review
        self.looks += 1
        self.world.stop.wait(0.2)


class Follower(Client):
    """Reads the live stream; after each break it goes on behind the last event it has."""

    def __init__(self, world):
        super().__init__(world, "follower")
        self.seen = []

    def step(self):
        c = http.client.HTTPConnection("127.0.0.1", self.world.port, timeout=2)
        try:
            last = {"Last-Event-ID": str(self.seen[-1])} if self.seen else {}
            c.request("GET", "/holt/v1/events?follow=true&since=0", headers={
                "Authorization": f"Bearer {self.world.token}", "Accept": "text/event-stream", **last})
            r = c.getresponse()
            while r.status == 200 and not self.world.stop.is_set() and (line := r.readline()):
                if line.startswith(b"id: "):
                    self.seen.append(int(line[4:]))
        except (OSError, http.client.HTTPException):
            pass
        finally:
            c.close()
        time.sleep(0.05)
