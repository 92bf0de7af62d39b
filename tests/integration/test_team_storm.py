"""A team at work while holtd is killed, on both stores, and while PostgreSQL is stopped and started: nobody owns what another has, no
limit is exceeded, no message is lost or there twice, and the event log replays to exactly what holtd says in the end.

HOLT_SOAK=1: 64 agents for a minute and three kills, else 16 agents for 8 s and one.  HOLT_SOAK_SEED=N repeats a run's choices.
"""
import collections
import os
import random
import signal
import sys
import time

import pytest

from daemon import ROOT, SOAK, Holtd, all_events, free_ports, wait_for
from hub_client import download
from team_clients import Agent, Coordinator, Follower, Person, Watcher, World
from team_replay import compare, replay

sys.path.insert(0, f"{ROOT}/tests/tools")
import postgres  # noqa: E402

AGENTS, SECONDS, KILLS = (64, 60, 3) if SOAK else (16, 8, 1)
TASKS = 3 * AGENTS
INBOX = 20
CONFIG = f"inbox_max: {INBOX}\nmessage_rate: 0\nagent_heartbeat_ms: 4s\ntask_grace_ms: 1s\nconnections_per_peer: 1000\nlog_level: warn\n"


class House:
    """holtd under a team: killed and started again on the same port and state."""

    def __init__(self, directory, server):
        self.directory, self.server = directory, server
        (self.port,) = free_ports()
        self.holtd = self.start()

    def start(self):
        env = {"HOLT_DB": self.server.url if self.server else ""}
        return Holtd(self.directory, config=CONFIG, port=self.port, env=env)

    def kill(self, world):
        world.down()
        self.holtd.kill()
        self.holtd = self.start()
        world.serve(self.holtd)

    def stop_server(self, how):
        """Away long enough that requests are refused."""
        self.server.stop(how)
        time.sleep(0.7)
        self.server.start()


def people_of(world, holtd, count):
    """Registers the agents: some are advisory, manual, coordinators, or have a limit of their own."""
    names = [f"a{n:02}" for n in range(count)]
    for n, name in enumerate(names):
        tags = ["code"] if n % 2 else []
        tags += ["coordinator"] if n % 16 == 5 else []
        mode = {7: "advisory", 6: "manual"}.get(n % 8, "fully_autonomous")
        own = {1: 1, 2: 2}.get(n % 8, 0)
        token = holtd.ok("POST", "/agents/register", {
            "name": name, "type": "storm", "capabilities": tags, "autonomy_mode": mode, "max_concurrent_tasks": own})["token"]
        a = (Coordinator if "coordinator" in tags else Agent)(world, name, token, [x for x in names if x != name])
        a.tags, a.task_max, a.mode_max = tags, own, mode
        world.agents.append(a)
    world.manual = [n for i, n in enumerate(names) if i % 8 == 6]
    world.people = [Person(world, f"h{n}", names[n::3]) for n in range(3)]


def set_up(house, seed):
    world = World(house.holtd, seed, house.server is not None)
    people_of(world, house.holtd, AGENTS)
    world.project = house.holtd.ok("POST", "/projects", {"name": "storm", "creator": "human"})["id"]
    for a in world.agents:  # members put files into it
        house.holtd.ok("POST", f"/projects/{world.project}/join", {"agent": a.label})
    world.tasks_known = [
        house.holtd.ok("POST", f"/projects/{world.project}/tasks", {
            "title": f"t{n}", "priority": f"P{n % 4}", **({"required_capabilities": ["code"]} if n % 5 == 0 else {}),
            **({"required_reviewers": 1} if n % 3 == 0 else {})})["id"] for n in range(TASKS)]
    return world


KINDS = ("task.claimed", "task.moved", "task.reviewed", "task.assigned", "task.released", "message.sent", "agent.checkpoint",
         "agent.revoked", "agent.recovered", "agent.paused", "approval.created", "approval.approved", "project.file")


def lacking(holtd):
    """What has not happened yet: without it the storm proves nothing."""
    found = {k: holtd.request("GET", f"/holt/v1/events?type={k}&limit=1") for k in KINDS}
    return [k for k, (status, reply, _) in found.items() if status != 200 or not reply["events"]]


def storm(house, world):
    """Runs the load; holtd is killed at random times, and the server, if there is one, stopped between."""
    rng = random.Random(world.rng.random())
    watcher, follower = Watcher(world), Follower(world)
    clients = [*world.agents, *world.people, watcher, follower]
    blows = ["kill"] * KILLS + (["stop", "crash"] if house.server else [])
    rng.shuffle(blows)
    begin = time.monotonic()
    for c in clients:
        c.start()
    try:
        for n, blow in enumerate(blows):
            end = begin + SECONDS * (n + 0.6 + 0.6 * rng.random()) / (len(blows) + 1)
            while time.monotonic() < end and not world.wrong:
                time.sleep(0.05)
            if blow == "kill":
                house.kill(world)
            else:
                house.stop_server(signal.SIGINT if blow == "stop" else signal.SIGKILL)
        while time.monotonic() < begin + SECONDS and not world.wrong:
            time.sleep(0.05)
        wait_for(lambda: world.wrong or not lacking(house.holtd), 60, 0.2)  # on a slow machine that takes longer
    finally:
        world.stop.set()
    for c in clients:
        c.join(180)
        assert not c.is_alive(), f"{c.label} hangs"
    world.raise_wrong()
    assert watcher.looks > 0
    return follower


# --- what each client knows, against the log ---


def check_messages(world, team):
    """Each that its sender counts as sent is there once, to whom it was sent; and no other."""
    sent = {text: (a.label, to, mid) for a in world.agents for text, (to, mid) in a.sent.items()}
    everything = [*team.messages.values(), *team.dropped.values()]
    there = collections.Counter(m["content"] for m in everything if m["to"] in ("*", *(s[1] for s in sent.values()))
                                and sent.get(m["content"], ("", m["to"]))[1] == m["to"])
    assert there == collections.Counter(sent.keys()), f"lost or doubled: {there - collections.Counter(sent)} {collections.Counter(sent) - there}"
    for m in everything:
        sender, to, mid = sent[m["content"]]
        assert m["from"] == sender and (m["to"] == to or to == "*"), m
        assert m["to"] != to or mid in (None, m["id"]), m
    acked = {i for a in world.agents for i in a.acked}
    assert acked == {m["id"] for m in everything if m["acknowledged"]}


def check_board(world, team, events):
    """Every claim and move that was answered is in the log once; what was refused is not."""
    claims, notes = collections.Counter(), collections.Counter()
    approved = {p["note"] for p in team.proposals.values() if p["state"] == "approved" and p["action"] == "move"}
    asked = {p["note"]: p["id"] for p in team.proposals.values() if p["action"] == "move"}
    for e in events:
        if e["type"] == "task.claimed":
            claims[e["data"]["by"], e["data"]["id"]] += 1
        if e["type"] == "task.moved" and e["data"]["by"] != "system":
            notes[e["data"]["note"]] += 1
    by_person = {(p["agent"], p["task_id"]) for p in team.proposals.values() if p["action"] == "claim"}
    for a in world.agents:
        for t, n in a.claims.items():
            assert (a.label, t) in by_person or claims[a.label, t] == n, f"{a.label} claimed {t} {n} times: {claims[a.label, t]}"
        for note, (status, task) in a.notes.items():
            if note in asked:
                assert status in (0, 202) and notes[note] == (note in approved), (note, status, notes[note])
            elif status in (0, 200):
                assert notes[note] == 1, f"{note} of {task}: {status}, and {notes[note]} times in the log"
            elif status == 202:  # the same wish as one that waits already
                assert notes[note] == 0, note
            else:
                assert notes[note] == 0, f"{note} of {task} was refused with {status}, and done"
    assert {a for a, _ in claims} <= {a.label for a in world.agents}
    assert sum(notes.values()) == sum(notes[n] for a in world.agents for n in a.notes), "a move that nobody asked for"


def check_people(world, team, events):
    reasons = collections.Counter(e["data"]["reason"] for e in events if e["type"] in ("agent.paused", "agent.revoked"))
    said = {r for p in world.people for r in (*p.pauses, *p.revocations)}
    assert reasons == collections.Counter(said), f"{reasons - collections.Counter(said)} {collections.Counter(said) - reasons}"
    for p in world.people:
        for name, reason in p.paused.items():
            assert [d["reason"] for d in team.open_directives(name, "pause")] == [reason]
    decided = sum((p.decided for p in world.people), collections.Counter())
    assert decided == collections.Counter(i for i, p in team.proposals.items() if p["state"] in ("approved", "rejected"))
    titles = collections.Counter(c["title"] for c in team.cards.values())
    assert all(n == 1 for n in titles.values()), "a task made twice"
    assert len(titles) == TASKS + sum(len(p.titles) for p in world.people)
    for a in world.agents:  # removing itself and registering anew did not lift what people set
        now = team.agents[a.label]
        assert (now["mode_max"], now["task_max"]) == (a.mode_max, a.task_max), now
    states = collections.Counter(c["state"] for v in team.checkpoints.values() for c in v)
    assert states == collections.Counter(s for a in world.agents for s in a.states)


def check_files(world, team, events, holtd):
    """Each upload is one version, and the newest of each name is what a download gives."""
    told = collections.Counter((e["data"]["checksum"], e["data"]["name"], e["data"]["uploader"]) for e in events
                               if e["type"] == "project.file")
    assert told == collections.Counter((c, name, a.label) for a in world.agents for c, (name, _) in a.uploads.items())
    texts = {c: text for a in world.agents for c, (_, text) in a.uploads.items()}
    for name, f in team.files.get(world.project, {}).items():
        status, data, _ = download(holtd.url, world.project, name, holtd.token)
        assert status == 200 and data == texts[f["checksum"]], name


def settled(holtd):
    """All events, when no new ones come: nobody is alive any more, and what they held has gone back (a look each second)."""
    def is_gone(a):
        return a["status"] in ("offline", "revoked") or a["paused"]

    def still():
        if not all(map(is_gone, holtd.ok("GET", "/agents"))):
            return None
        before = all_events(holtd)
        time.sleep(2.5)
        return before if not holtd.ok("GET", f"/holt/v1/events?since={before[-1]['seq']}")["events"] else None
    return wait_for(still, 60, 0.2)


def check(house, world, follower):
    events = settled(house.holtd)
    team = replay(events)
    compare(team, lambda path: house.holtd.ok("GET", path))
    check_messages(world, team)
    check_board(world, team, events)
    check_people(world, team, events)
    check_files(world, team, events, house.holtd)
    wanted = [e["seq"] for e in events]
    assert follower.seen == wanted[:len(follower.seen)], "the live stream lost or doubled something"
    assert house.holtd.ok("GET", "/holt/v1/audit/verify")["ok"] is True
    return team, events


def report(world, team, events, seconds):
    kinds = collections.Counter(e["type"] for e in events)
    refused = sum((a.refused for a in world.agents), collections.Counter())
    print(f"{AGENTS} agents, {seconds:.0f} s: {sum(world.asked.values())} requests {dict(world.asked.most_common(9))}; "
          f"{len(events)} events {dict(kinds.most_common(14))}; refused {dict(refused.most_common(9))}")
    for kind in KINDS:
        assert kinds[kind] > 0, f"no {kind}: this proves nothing"
    assert team.dropped or kinds["message.sent"] < 3 * INBOX * AGENTS, "no inbox was ever full"
    assert kinds["message.sent"] > SECONDS and kinds["task.moved"] > SECONDS, "hardly any load"


@pytest.fixture
def server(request):
    if request.param == "sqlite":
        yield None
        return
    try:
        with postgres.Postgres() as s:
            yield s
    except postgres.Skip as why:
        pytest.skip(str(why))


@pytest.mark.timeout(900 if SOAK else 600)
@pytest.mark.parametrize("server", [pytest.param("sqlite", marks=pytest.mark.of_sqlite),
                                    pytest.param("postgres", marks=pytest.mark.slow)], indirect=True)
def test_storm(server, tmp_path):
    seed = os.environ.get("HOLT_SOAK_SEED", str(random.SystemRandom().randrange(10**6)))
    print(f"HOLT_SOAK_SEED={seed}")
    house = House(tmp_path, server)
    begin = time.monotonic()
    try:
        world = set_up(house, seed)
        follower = storm(house, world)
        team, events = check(house, world, follower)
        report(world, team, events, time.monotonic() - begin)
        house.kill(world)  # what was relaxed or in memory is the same after one more
        compare(replay(settled(house.holtd)), lambda path: house.holtd.ok("GET", path))
        assert house.holtd.stop() == 0
    finally:
        house.holtd.kill()
