"""The team as the event log alone tells it, and every rule that can be seen there, checked at each event.

`replay(events)` takes what GET /holt/v1/events gives, oldest first.  `compare(team, ask)` holds it against what holtd says now,
member by member; ask(path) is a GET as a person.
"""
import datetime

OPEN = ("ready", "in_progress")  # cards here count against in_progress, and against an agent's own limit; in ready only claimed ones
LIMITS = {"in_progress": 3, "in_review": 5}


def ms(text):
    """Both ways to write a time (RFC 3339, and naive UTC as the hub does) as milliseconds; None stays."""
    if not text:
        return None
    t = datetime.datetime.fromisoformat(text.removesuffix("Z"))
    return round(t.replace(tzinfo=datetime.timezone.utc).timestamp() * 1000)


class Broken(AssertionError):
    """A rule that did not hold."""


class Team:
    def __init__(self):
        self.agents, self.cards, self.projects, self.steps, self.files = {}, {}, {}, {}, {}
        self.dropped = {}  # messages that made room for others
        self.messages, self.edges, self.checkpoints, self.directives, self.proposals = {}, {}, {}, {}, {}
        self.known = set()  # names that were an agent's once
        self.recent = []  # the newest events: one work's stand together

    # --- helpers ---

    def need(self, ok, why, *about):
        if not ok:
            raise Broken(f"seq {self.event['seq']}: {why}: {about} in {self.event}")

    def open_directives(self, agent, kind):
        return [d for d in self.directives.values() if d["agent"] == agent and d["kind"] == kind and not d["ended_at"]]

    def count(self, owner, project, statuses):
        return sum(c["assigned_to"] == owner and c["status"] in statuses and project in (None, c["project"])
                   and (statuses != OPEN or c["status"] != "ready" or c["claimed_by"] != "")
                   for c in self.cards.values())

    def forget(self, owner, card):
        if owner in self.agents and self.agents[owner]["task_id"] == card:
            self.agents[owner]["task_id"] = ""

    # --- one event ---

    def apply(self, event):
        self.event = event
        kind, _, what = event["type"].partition(".")
        handler = getattr(self, f"on_{kind}", None)
        if handler:
            handler(what, event["data"])
            self.recent = [*self.recent[-7:], event]

    def on_agent(self, what, d):
        if what == "checkpoint":
            self.checkpoint(d)
        elif what in ("paused", "resumed", "revoked", "recovered"):
            self.directive(what, d)
        elif what == "removed":
            self.need(self.count(d["name"], None, OPEN) == 0, "one with cards in hand was removed")
            del self.agents[d["name"]]
        elif what != "default_mode":
            self.need(what == "registered" or d["name"] in self.agents, "an agent from nowhere")
            self.need(d["paused"] == bool(self.open_directives(d["name"], "pause")), "paused is not what people said")
            self.need(d["revoked"] == bool(self.open_directives(d["name"], "revoke")), "revoked is not what people said")
            self.agents[d["name"]] = dict(d)
            self.known.add(d["name"])

    def checkpoint(self, d):
        a = self.agents[d["agent"]]
        self.need(d["sequence"] == a["sequence"] + 1, "a checkpoint is missing or there twice", a["sequence"])
        a["sequence"], a["task_id"] = d["sequence"], d["task_id"]
        self.checkpoints.setdefault(d["agent"], []).append(d)

    def directive(self, what, d):
        if what in ("paused", "revoked"):
            self.need(d["id"] not in self.directives and not d["ended_at"], "a directive given twice")
            self.need(what != "paused" or not self.open_directives(d["agent"], "pause"), "paused twice")
        else:
            before = self.directives[d["id"]]
            self.need(not before["ended_at"] and d["ended_at"], "a directive ended twice")
            self.need({**before, "ended_at": d["ended_at"]} == d, "a directive changed")
        self.directives[d["id"]] = d

    def on_project(self, what, d):
        if what == "file":
            before = self.files.setdefault(d["project"], {}).get(d["name"], {"version": 0})
            self.need(d["version"] == before["version"] + 1, "a version is missing or there twice", before)
            self.files[d["project"]][d["name"]] = d
            return
        if what == "file_removed":
            del self.files[d["project"]][d["name"]]
            return
        if what == "removed":
            self.files.pop(d["id"], None)
            gone = {i for i, c in self.cards.items() if c["project"] == d["id"]}
            self.cards = {i: c for i, c in self.cards.items() if i not in gone}
            for a in self.agents.values():
                a["task_id"] = "" if a["task_id"] in gone else a["task_id"]
            del self.projects[d["id"]]
            return
        self.need((what == "created") != (d["id"] in self.projects), "a project made twice, or never")
        self.projects[d["id"]] = d

    # --- boards ---

    def on_task(self, what, d):
        before = self.cards.get(d["id"])
        self.need((what == "created") == (before is None), "a task made twice, or never")
        before = before or {**d, "status": d["from"], "moves": 0, "assigned_to": "", "claimed_by": ""}
        self.need(d["from"] == before["status"], "it was not there", before["status"])
        self.check_owner(what, before, d)
        self.check_actor(what, before, d)
        self.cards[d["id"]] = d
        self.check_limits(before, d)
        moved = d["status"] != d["from"]
        self.need(d["moves"] == before["moves"] + moved, "its moves do not follow each other", before["moves"])
        if moved:
            self.steps.setdefault(d["id"], []).append(
                {"from": d["from"], "to": d["status"], "by": d["by"], "note": d["note"] or "", "at": ms(d["updated_at"])})
        self.current_card(what, before, d)

    def check_owner(self, what, before, d):
        """One owner at any time: nobody gets what another has, nobody loses it without a reason."""
        had, has = before["assigned_to"], d["assigned_to"]
        if what == "claimed":
            self.need(d["by"] == has == d["claimed_by"] != "", "claimed for somebody else")
            self.need(had in ("", has), "claimed from under its owner", had)
            self.need(not before["claimed_by"], "claimed twice", before["claimed_by"])
            self.need(d["status"] == "ready" and d["from"] in ("backlog", "ready"), "claimed from there")
        elif what == "assigned":
            self.need(has and d["from"] != "done", "assigned to nobody, or done already")
        elif self.takes(what, before, d):
            self.need(has == d["claimed_by"] == d["by"], "begun by one that does not get it")
        elif had != has:
            gone = what in ("unassigned", "released") or d["status"] == "backlog" or (what, d["by"]) == ("moved", "system")
            self.need(what == "created" or (not has and gone), "it changed hands", had, has)

    def takes(self, what, before, d):
        """An agent that begins or hands in what nobody has takes it, by the rules of a claim."""
        return what == "moved" and d["status"] in ("in_progress", "in_review") and not before["assigned_to"] and d["by"] in self.agents

    def check_actor(self, what, before, d):
        by = self.agents.get(d["by"])
        self.need(by or d["by"] not in self.known or what == "created", "by one that is not registered any more")
        if what in ("claimed", "moved", "reviewed") and by:
            self.need(not self.open_directives(d["by"], "revoke"), "by one that is revoked")
        if what == "claimed" or self.takes(what, before, d):
            self.need(by and not self.open_directives(d["by"], "pause"), "claimed by one that is paused")
            self.need(by["mode"] != "manual" or before["assigned_to"] == d["by"], "claimed by a manual agent")
            self.need(set(d["required_capabilities"]) <= set(by["capabilities"]), "claimed by one that cannot")
        if what == "assigned" and d["assigned_to"] in self.agents:
            told = self.open_directives(d["assigned_to"], "pause") + self.open_directives(d["assigned_to"], "revoke")
            self.need(not told, "assigned to one that is paused or revoked")
        if what == "moved" and by:
            own = before["assigned_to"] in ("", d["by"]) and (by["mode"] != "manual" or before["assigned_to"] == d["by"])
            self.need(own or d["by"] in before["reviewers"] or "coordinator" in by["capabilities"], "moved by a stranger")
        if what in ("moved", "claimed") and by and "advisory" in (by["mode"], by["mode_max"]):
            self.asked = getattr(self, "asked", {})
            self.asked[d["id"]] = self.event["seq"]  # its approval follows: see on_approval
        if what == "moved" and d["status"] == "done":
            others = [r for r in before["reviewers"] if r != before["assigned_to"]]
            self.need(not d["reviews_asked"] or len(others) >= d["required_reviewers"], "done without its reviews")
            below = [c["id"] for c in self.cards.values() if c["parent"] == d["id"] and c["status"] != "done"]
            self.need(not below, "done before its subtasks", below)

    def check_limits(self, before, d):
        """Whoever gets one more must have had room for it, by the limits of that moment."""
        owner = d["assigned_to"]
        if not owner:
            return
        limits = {**LIMITS, **self.projects[d["project"]]["limits"]}

        def entered(statuses):
            if d["status"] == "ready" and not d["claimed_by"] and statuses == OPEN:
                return False
            return d["status"] in statuses and not (before["assigned_to"] == owner and before["status"] in statuses)

        for column, statuses in (("in_progress", OPEN), ("in_review", ("in_review",))):
            n = self.count(owner, d["project"], statuses)
            self.need(not entered(statuses) or n <= limits[column], f"{owner} has {n} in {column}", limits[column])
        if owner in self.agents and self.agents[owner]["task_max"] and entered(OPEN):
            n = self.count(owner, None, OPEN)
            self.need(n <= self.agents[owner]["task_max"], f"{owner} has {n} of its own limit", self.agents[owner]["task_max"])

    def current_card(self, what, before, d):
        owner = d["assigned_to"]
        if what == "claimed" or (what == "moved" and d["status"] == "in_progress"):
            if owner in self.agents:
                self.agents[owner]["task_id"] = d["id"]
        elif before["assigned_to"] != owner or (what == "moved" and d["status"] == "done"):
            self.forget(before["assigned_to"], d["id"])

    # --- mail and proposals ---

    def on_message(self, what, d):
        if what == "acknowledged":
            self.need(not self.messages[d["id"]]["acknowledged"], "acknowledged twice")
            self.messages[d["id"]]["acknowledged"] = True
            return
        self.need(not self.open_directives(d["from"], "revoke"), "sent by one that is revoked")
        for i in d["dropped"]:
            gone = self.dropped[i] = self.messages.pop(i)
            self.need(gone["acknowledged"] or gone["to"] == "*", "an unread message was dropped", gone)
        for m in [{"id": d["id"], "to": d["to"]}, *d["copies"]]:
            self.need(m["id"] not in self.messages, "a message twice", m)
            self.messages[m["id"]] = {"id": m["id"], "from": d["from"], "to": m["to"], "content": d["content"], "type": d["type"],
                                      "timestamp": ms(d["sent_at"]), "acknowledged": False}
            pair = (d["from"], m["to"])
            if pair[0] in self.agents and pair[1] in self.agents:
                self.edges[pair] = self.edges.get(pair, 0) + 1

    def on_approval(self, what, d):
        before = self.proposals.get(d["id"])
        if what == "created":
            self.need(before is None and d["state"] == "pending", "a proposal made twice")
        else:
            self.need(before and before["state"] == "pending", "a proposal decided twice", before)
        if what == "approved":  # executed in the same work, once: its event stands right before
            done = [e for e in self.recent if e["type"] == {"claim": "task.claimed", "move": "task.moved"}[d["action"]]
                    and e["data"]["id"] == d["task_id"] and e["data"]["by"] == d["agent"]]
            self.need(done and self.asked.pop(d["task_id"], None) == done[-1]["seq"], "approved, and not executed")
        self.proposals[d["id"]] = d


def replay(events):
    team = Team()
    for e in events:
        team.apply(e)
    assert not getattr(team, "asked", {}), f"an advisory agent acted without an approval: {team.asked}"
    return team


# --- against what holtd says ---


def same(what, told, now):
    if told != now:
        lost = {k: (told.get(k), now.get(k)) for k in {*told, *now} if told.get(k) != now.get(k)} if isinstance(told, dict) else told
        raise AssertionError(f"{what}: the log says one thing, holtd another (log, holtd): {lost} {now if lost is told else ''}")


def none(text):
    return text or None


def card_told(team, c):
    return {
        "assigned_to": none(c["assigned_to"]), "blocked_by": none(c["blocked_by"]), "blocked_reason": none(c["blocked_reason"]),
        "claimed_by": none(c["claimed_by"]), "completed_at": ms(c["completed_at"]), "created_at": ms(c["created_at"]),
        "created_by": c["created_by"], "description": c["description"], "id": c["id"], "parent_task_id": none(c["parent"]),
        "priority": f"P{c['priority']}", "required_capabilities": c["required_capabilities"],
        "required_reviewers": c["required_reviewers"], "review_started_at": ms(c["review_started_at"]), "reviewers": c["reviewers"],
        "started_at": ms(c["started_at"]), "status": c["status"],
        "subtasks": sorted(x["id"] for x in team.cards.values() if x["parent"] == c["id"]), "title": c["title"],
        "transitions": team.steps.get(c["id"], [])[-5:], "updated_at": ms(c["updated_at"]),
    }


def card_now(c):
    times = ("completed_at", "created_at", "review_started_at", "started_at", "updated_at")
    return {**c, **{k: ms(c[k]) for k in times}, "transitions": [{**s, "at": ms(s["at"])} for s in c["transitions"]]}


def compare_boards(team, ask):
    same("projects", {p: True for p in team.projects}, {p["id"]: True for p in ask("/projects")})
    for p in team.projects.values():
        now = ask(f"/projects/{p['id']}")
        files = {n: {"checksum": f["checksum"], "size": f["size"], "updated_at": ms(f["created_at"]), "version": f["version"]}
                 for n, f in team.files.get(p["id"], {}).items()}
        told = {"created_at": ms(p["created_at"]), "files": files, "id": p["id"], "members": p["members"], "name": p["name"],
                "wip_limits": p["limits"]}
        shown = now["wip_limits"]
        now["wip_limits"] = {"in_progress": shown.pop("TaskStatus.IN_PROGRESS"), "in_review": shown.pop("TaskStatus.IN_REVIEW"), **shown}
        now["files"] = {n: {**f, "updated_at": ms(f["updated_at"])} for n, f in now["files"].items()}
        same(f"project {p['id']}", told, {**now, "created_at": ms(now["created_at"])})
        cards = {c["id"]: c for c in ask(f"/projects/{p['id']}/tasks")}
        told = {i: c for i, c in team.cards.items() if c["project"] == p["id"]}
        same(f"tasks of {p['id']}", {i: True for i in told}, {i: True for i in cards})
        for i, c in told.items():
            same(f"task {i}", card_told(team, c), card_now(cards[i]))
        counts = {s: sum(c["status"] == s for c in told.values()) for s in ask(f"/projects/{p['id']}/metrics")["by_status"]}
        same(f"metrics of {p['id']}", counts, ask(f"/projects/{p['id']}/metrics")["by_status"])


def agent_told(team, a):
    """A pause that ends while the agent is revoked changes no status: the directive's own event tells it."""
    return {"autonomy_mode": a["mode"], "capabilities": a["capabilities"], "checkpoint_sequence": a["sequence"],
            "current_task_id": none(a["task_id"]), "max_concurrent_tasks": a["task_max"], "name": a["name"],
            "paused": bool(team.open_directives(a["name"], "pause")),
            "registered_at": ms(a["registered_at"]), "status": "busy" if a["status"] == "paused" else a["status"], "type": a["type"]}


def compare_agents(team, ask):
    """last_heartbeat has no events: it is the one member that the log does not tell."""
    now = {a["name"]: a for a in ask("/agents")}
    same("agents", {n: True for n in team.agents}, {n: True for n in now})
    for name, a in team.agents.items():
        item = {**now[name], "registered_at": ms(now[name]["registered_at"])}
        del item["last_heartbeat"]
        same(f"agent {name}", agent_told(team, a), item)
        kept = [(c["id"], c["sequence"], c["state"], none(c["task_id"]), c["rationale"], ms(c["timestamp"]))
                for c in ask(f"/agents/{name}/checkpoints?limit=1000")]
        told = [(c["id"], c["sequence"], c["state"], none(c["task_id"]), c["rationale"], ms(c["created_at"]))
                for c in reversed(team.checkpoints.get(name, []))][:1000]
        same(f"checkpoints of {name}", told, kept)
        open_ = sorted(team.open_directives(name, "revoke"), key=lambda d: d["id"])
        told = {"pending": bool(open_)}
        if open_:
            told |= {"revocation_id": open_[-1]["id"], "reason": open_[-1]["reason"], "flush_required": open_[-1]["flush"]}
        same(f"revocation of {name}", told, ask(f"/agents/{name}/revocation"))
    history = [(d["id"], d["agent"], d["reason"], ms(d["issued_at"]), d["acknowledged"], ms(d["acknowledged_at"]), d["issued_by"])
               for d in ask("/revocation/history?limit=1000")]
    told = [(d["id"], d["agent"], d["reason"], ms(d["issued_at"]), bool(d["ended_at"]), ms(d["ended_at"]), d["issued_by"])
            for d in sorted(team.directives.values(), key=lambda d: d["id"]) if d["kind"] == "revoke"][-1000:]
    same("revocations", told, history)


def compare_mail(team, ask):
    """`delivered` has no events either, but what is acknowledged is delivered."""
    boxes = {}
    for m in team.messages.values():
        boxes.setdefault(m["to"], []).append(m)
    for name, told in boxes.items():
        assert len(told) <= 1000, f"more in the inbox of {name} than one list gives: this test cannot compare them"
        told = [{k: v for k, v in m.items() if k != "to"} for m in sorted(told, key=lambda m: m["id"])]
        now = ask(f"/messages/{name}")
        assert all(m.pop("delivered") for m in now), name
        same(f"inbox of {name}", told, [{**m, "timestamp": ms(m["timestamp"])} for m in now])
        unread = ask(f"/messages/{name}?unread=true")
        same(f"unread of {name}", [m["id"] for m in told if not m["acknowledged"]], [m["id"] for m in unread])
    graph = ask("/messages/graph")
    same("nodes", {n: a["type"] for n, a in team.agents.items()}, {n["id"]: n["type"] for n in graph["nodes"]})
    same("edges", {p: n for p, n in team.edges.items() if p[0] in team.agents and p[1] in team.agents},
         {(e["from"], e["to"]): e["count"] for e in graph["edges"]})


def compare_proposals(team, ask):
    now, told = {}, {}
    for agent in {p["agent"] for p in team.proposals.values()}:
        now |= {p["id"]: p for p in ask(f"/proposals?agent={agent}")}
        mine = sorted((p for p in team.proposals.values() if p["agent"] == agent), key=lambda p: p["id"])[:1000]
        told |= {p["id"]: {
            "action": p["action"], "agent": p["agent"], "created_at": ms(p["created_at"]), "decided_at": ms(p["decided_at"]),
            "decided_by": none(p["decided_by"]), "id": p["id"], "note": p["note"] or "", "project_id": p["project"],
            "reason": p["reason"], "status": p["state"], "task_id": p["task_id"], "to": p["to"]} for p in mine}
    for i in {*told, *now}:
        item = now.get(i) and {**now[i], "created_at": ms(now[i]["created_at"]), "decided_at": ms(now[i]["decided_at"])}
        same(f"proposal {i}", told.get(i), item)


def compare(team, ask):
    compare_boards(team, ask)
    compare_agents(team, ask)
    compare_mail(team, ask)
    compare_proposals(team, ask)
