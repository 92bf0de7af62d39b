"""What run.py measures of the hub: holtd, with every write synced, beside the least hub in Flask with everything in memory
(hub_flask.py), in turns; the clients are bench_team.c."""
import json
import os
import resource
import statistics
import subprocess
import sys

CLIENTS = 32
OPEN_MAX = 3  # claims of one agent: the default limit
UNREAD = 20  # as in hub_flask.py
SIZES = (100, 10000)
FLASK_SHARE = 10  # Flask gets a tenth of the requests: it would take too long otherwise
# The agents of the claims say nothing more: going offline, and their cards' return, would be thousands of events to every subscriber
# in the midst of the fan-out.
CONFIG = ("agent_heartbeat_ms: 24h\n"
          "message_rate: 0\ninbox_max: 100000\nteam_max: 1000000\nconnections_per_peer: 4000\nconnections_max: 4000\n"
          "log_level: warn\nauth: \"off\"\n")


class Hub:
    """One side: where it listens, and its process."""

    def __init__(self, name, port, pid, build):
        self.name, self.port, self.pid, self.build, self.made = name, port, pid, build, 0
        self.rows = {}

    def _run(self, *mode, text=""):
        argv = [f"{self.build}/tests/bench/bench_team", str(self.port), "-", *map(str, mode)]
        r = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=600)
        if r.returncode:
            raise RuntimeError(f"bench_team {' '.join(map(str, mode))} with {self.name}: {r.stderr[:500]}")
        head, *rest = r.stdout.splitlines()
        count, seconds, median, late = map(float, head.split("\t"))
        return {"rate": count / seconds, "median": median, "p95": late}, rest

    def calls(self, requests, clients=CLIENTS):
        lines = "".join(f"{m}\t{p}\t{'-' if b is None else json.dumps(b)}\n" for m, p, b in requests)
        return self._run("calls", clients, text=lines)

    def fan(self, subscribers, events):
        return self._run("fan", subscribers, events)[0]

    def note(self, job, row):
        self.rows.setdefault(job, []).append(row)

    # --- jobs ---

    def claims(self, count):
        """Each agent claims as many as the default limit lets it; agents and tasks are made before."""
        self.made += 1
        agents = [f"c{self.made}-{n}" for n in range(-(-count // OPEN_MAX))]
        self.calls([("POST", "/agents/register", {"name": a}) for a in agents])
        project = json.loads(self.calls([("POST", "/projects", {"name": "bench", "creator": "bench"})])[1][0])["id"]
        tasks = [json.loads(t)["id"] for t in self.calls(
            [("POST", f"/projects/{project}/tasks", {"title": f"t{n}"}) for n in range(count)])[1]]
        self.note("claims", self.calls([
            ("POST", f"/projects/{project}/tasks/{t}/claim", {"agent": agents[n % len(agents)]}) for n, t in enumerate(tasks)])[0])

    def messages(self, count):
        self.note("messages", self.calls([
            ("POST", "/messages/send", {"from": f"s{n % CLIENTS}", "to": f"r{n % 61}", "content": "x" * 100}) for n in range(count)])[0])

    def fill(self, size):
        """An inbox with so much that was read, and a little that was not."""
        name = f"box{size}"
        sent = [json.loads(m)["id"] for m in self.calls(
            [("POST", "/messages/send", {"from": "filler", "to": name, "content": "y" * 100}) for _ in range(size)])[1]]
        self.calls([("POST", f"/messages/{m}/ack", None) for m in sent])
        self.calls([("POST", "/messages/send", {"from": "filler", "to": name, "content": "z" * 100}) for _ in range(UNREAD)])

    def inbox(self, size, count):
        row, replies = self.calls([("GET", f"/messages/box{size}?unread=true", None)] * count, 1)
        assert all(len(json.loads(r)) == UNREAD for r in replies[:5]), replies[0][:300]
        self.note(f"inbox {size}", row)

    def of(self, job, key):
        return [r[key] for r in self.rows[job]]


def flask(directory, build, *sizes):
    from daemon import Program, free_ports, wait_for
    from run import _connects
    (port,) = free_ports()
    p = Program([sys.executable, f"{os.path.dirname(__file__)}/hub_flask.py", str(port), *map(str, sizes)], log=f"{directory}/flask.log")
    wait_for(lambda: _connects(port), 30)
    return p, Hub("Flask", port, p.pid, build)


def middle(values):
    return statistics.median(values)


def describe(hub, job, what="/s"):
    return (f"{middle(hub.of(job, 'rate')):,.0f}{what}, latency {middle(hub.of(job, 'median')) / 1e3:.2f} ms, "
            f"p95 {middle(hub.of(job, 'p95')) / 1e3:.2f} ms")


def ratio(ours, theirs, job, key="rate"):
    return middle(a / b for a, b in zip(ours.of(job, key), theirs.of(job, key)))


def bench_team(table, make, args, directory):
    from run import p95
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    holtd = make("team", config=CONFIG)
    process, theirs = flask(directory, args.build, *SIZES)
    ours = Hub("holt", holtd.port, holtd.pid, args.build)
    try:
        for size in SIZES:
            ours.fill(size)
        for _ in range(args.rounds):
            for hub, share in ((ours, 1), (theirs, FLASK_SHARE)):
                hub.claims(args.team // share)
                hub.messages(args.team // share)
                for size in SIZES:
                    hub.inbox(size, 200)
        for _ in range(args.rounds):
            ours.note("fan", ours.fan(args.subscribers, 50))
            fresh, hub = flask(directory, args.build)  # it never forgets a subscriber
            try:
                theirs.note("fan", hub.fan(args.subscribers, 5))
            finally:
                fresh.kill()
    finally:
        process.kill()
    beside = "the least hub in Flask, all in memory"
    for job, text in (("claims", "durable claim of a task, 32 clients"), ("messages", "durable message, 32 clients")):
        r = ratio(ours, theirs, job)
        table.add(text, describe(ours, job), f"{beside}: {describe(theirs, job)}", f"{r:.1f}", "≥ 20", r >= 20)
    small, large = ours.of("inbox 100", "median"), ours.of("inbox 10000", "median")
    grows = middle(b / a for a, b in zip(small, large))
    table.add(f"{UNREAD} unread of an inbox with 10,000 messages",
              f"{middle(large):.0f} µs, p95 {p95(ours.of('inbox 10000', 'p95')):.0f} µs; with 100: {middle(small):.0f} µs",
              f"{beside}: {middle(theirs.of('inbox 10000', 'median')):.0f} µs; with 100: {middle(theirs.of('inbox 100', 'median')):.0f} µs",
              f"{grows:.2f} × that with 100", "≤ 1.25", grows <= 1.25)
    r = ratio(ours, theirs, "fan")
    table.add(f"event to {args.subscribers:,} subscribers of /events", describe(ours, "fan", " deliveries/s"),
              f"{beside}: {describe(theirs, 'fan', ' deliveries/s')}", f"{r:.1f}", "", None)
