"""Kills under load, on the native runtime: holtd, holt-spawn, both, and inits, at named points (src/base/point.h) and
at random times.  What was acknowledged is there, every command's output is byte for byte what it wrote, what was not
acknowledged is there as a whole or not at all, `lost` is only what ran under a killed init, and nothing is left.

HOLT_SOAK=1: 200 rounds, else 20.  HOLT_SOAK_SEED=N repeats a run's choices, HOLT_SOAK_ROUNDS=A-B some of its rounds.
"""
import mmap
import os
import random
import shutil
import signal
import struct
import subprocess
import threading
import time

import pytest

from daemon import ASAN, BUILD, ROOT, SOAK, Holtd, environment, programs_of, wait_for
from soak_clients import ROLES, World

ROUNDS = 200 if SOAK else 20
VICTIMS = {"holtd": 0, "spawn": 4, "both": 2, "init": 6}  # and with which point each begins; then they take turns
POINTS = {  # name: who stops there, and how often it is passed in a second of this load, about
    "before commit": ("holtd", 20),
    "after commit": ("holtd", 20),
    "output written": ("holtd", 20),
    "end saved": ("holtd", 10),
    "cloned": ("spawn", 3),
    "recorded": ("spawn", 3),
    "running": ("spawn", 3),
    "undone": ("spawn", 2),
}


class Points:
    """The file that arms one point (tests/soak/point.c)."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as f:
            f.write(bytes(64))
        with open(path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 64)

    def arm(self, name, count):
        self.map[4:64] = name.encode().ljust(60, b"\0")
        self.map[0:4] = struct.pack("i", count)

    def disarm(self):
        self.map[0:4] = bytes(4)

    def left(self):
        return struct.unpack("i", self.map[0:4])[0]


def stat_of(pid):
    """Fields of proc(5)'s stat from the third on: state, ppid, pgrp, session, ..."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()
    except OSError:
        return ["gone", "", "", ""]


def state_of(pid):
    return stat_of(pid)[0]


def find_program(name, state):
    """The one of this state directory, not a child of it on its way to be an init: its pid, or None."""
    return next((p for p in programs_of(state, name) if stat_of(p)[3] == str(p)), None)


def make_bindir(path):
    os.makedirs(path)
    for name, program in {"holt-spawn": "tests/soak/holt-spawn-points", "holt-init": "holt-init",
                          "holt-unpack": "holt-unpack", "holt-egress": "holt-egress"}.items():
        os.symlink(f"{BUILD}/{program}", f"{path}/{name}")
    return str(path)


class House:
    """The daemons under test; they die and come back, the state directory stays."""

    def __init__(self, directory, *args):
        self.directory, self.args = str(directory), args
        os.makedirs(self.directory, exist_ok=True)
        self.bindir = make_bindir(f"{self.directory}/bin")
        self.points = Points(f"{self.directory}/points")
        self.holtd = None
        self.start()

    def start(self, *args):
        options = environment()["ASAN_OPTIONS"] + ":detect_leaks=0"
        self.holtd = Holtd(self.directory, "--runtime", "native", "--bindir", self.bindir, *self.args, *args,
                           env={"ASAN_OPTIONS": options, "SOAK_POINTS": self.points.path},
                           program=f"{BUILD}/tests/soak/holtd-points")
        return self.holtd

    @property
    def state(self):
        return self.holtd.state

    def spawn(self):
        return find_program("holt-spawn", self.state)

    def egress(self):
        return find_program("holt-egress", self.state)

    def init_of(self, box):
        with open(f"{self.state}/sb/{box}/record", encoding="ascii") as f:
            return int(f.read().split()[0])

    def kill_holtd(self):
        self.holtd.process.kill()
        self.holtd.process.wait()

    def fds(self):
        """Of both, without the namespaces that holt-spawn keeps in stock."""
        def count(pid):
            links = []
            for fd in os.listdir(f"/proc/{pid}/fd"):
                try:
                    links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
                except OSError:
                    pass
            return len([k for k in links if not k.startswith(("net:[", "user:["))])
        return count(self.holtd.pid), count(wait_for(self.spawn))

    def leftovers(self, *flags):
        r = subprocess.run([f"{ROOT}/tools/leftovers", *(flags or ["--serving"]), self.state], capture_output=True,
                           text=True, timeout=60)
        return r.stdout + r.stderr

    def end(self):
        """Also after a failure nothing stays."""
        self.points.disarm()
        for pid in filter(None, (self.holtd.pid if self.holtd.alive() else None, self.spawn())):
            os.kill(pid, signal.SIGCONT)
        try:
            if not self.holtd.alive():
                self.start()
            for s in self.holtd.ok("GET", "/holt/v1/sandboxes?limit=100")["sandboxes"]:
                self.holtd.request("DELETE", f"/holt/v1/sandboxes/{s['id']}")
            self.holtd.stop()
        except BaseException:
            self.kill_all()
            raise

    def kill_all(self):
        """What hangs is killed, and its groups removed."""
        self.kill_holtd()
        found = [line.split(" ", 2)[:2] for line in self.leftovers("--").splitlines()]
        for pid in [int(what) for kind, what in found if kind == "process"]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.5)
        for path in sorted((what for kind, what in found if kind == "cgroup"), key=len, reverse=True):
            try:
                os.rmdir(path)
            except OSError:
                pass


# --- one round ---


def wait_at(house, point):
    """Until a process stands at the point."""
    who = POINTS[point][0]

    def there():
        pid = house.holtd.pid if who == "holtd" else house.spawn()
        return house.points.left() == 0 and pid and state_of(pid) == "T"
    wait_for(there, 60, 0.002)


def strike(house, world, victim, rng):
    """Kills; what is stopped and not killed goes on."""
    spawn = house.spawn()
    if victim == "init":
        box = world.doom(rng)
        if box:
            os.kill(house.init_of(box), signal.SIGKILL)
    if victim in ("spawn", "both"):
        os.kill(spawn, signal.SIGKILL)
    if victim in ("holtd", "both"):
        world.is_up.clear()
        house.kill_holtd()
    for pid in (house.holtd.pid if victim not in ("holtd", "both") else None, spawn):
        if pid and state_of(pid) == "T":
            os.kill(pid, signal.SIGCONT)
    if not house.holtd.alive():
        world.serve(house.start())


def one_round(house, number, seed):
    rng = random.Random(f"{seed}/{number}")
    victim = list(VICTIMS)[number % 4]
    turn = number // 4
    point = list(POINTS)[(turn // 2 + VICTIMS[victim]) % len(POINTS)] if turn % 2 == 0 else None
    world = World(house.holtd, rng.random())
    clients = [role(world, f"r{number}-{i}") for i, role in enumerate(ROLES)]
    for c in clients:
        c.start()
    try:
        world.wait_busy()
        time.sleep(0.2 + rng.random() * 0.5)
        if point:
            house.points.arm(point, rng.randint(1, POINTS[point][1]))
            wait_at(house, point)
        strike(house, world, victim, rng)
        time.sleep(0.2)
    finally:
        house.points.disarm()
        world.stop.set()
    for c in clients:
        c.join(180)
        assert not c.is_alive(), f"{c.name} hangs"
    world.raise_wrong()
    world.verify(lost_is_fine=victim == "init")
    return victim, point, world


def check_clean(house, world, head):
    world.destroy_all()
    wait_for(lambda: house.leftovers() == "", 60, 0.1) if house.leftovers() else None
    verdict = world.holtd.ok("GET", "/holt/v1/audit/verify" + (f"?head={head}" if head else ""))
    assert verdict["ok"] is True, verdict
    return verdict["head"]


def few_fds(count, base, more):
    """As many descriptors as after the first round, once what is under way has ended; their numbers."""
    def few():
        now = count()
        return now if all(n <= b + more for n, b in zip(now, base)) else None
    try:
        return wait_for(few)
    except AssertionError as e:
        e.add_note(f"descriptors of holtd, holt-spawn, holt-egress: {base}, now {count()}")
        raise


def rounds_wanted():
    asked = os.environ.get("HOLT_SOAK_ROUNDS", "")
    if not asked:
        return range(ROUNDS)
    a, _, b = asked.partition("-")
    return range(int(a), int(b or a) + 1)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="kills of inits and the look at what is left need root")
@pytest.mark.timeout(3600 if SOAK or ASAN else 800)
def test_kills_under_load(tmp_path):
    seed = os.environ.get("HOLT_SOAK_SEED", str(random.SystemRandom().randrange(10**6)))
    print(f"HOLT_SOAK_SEED={seed}")
    house = House(tmp_path / "h")
    base, head, begun, totals = None, None, time.monotonic(), {}
    try:
        for number in rounds_wanted():
            started = time.monotonic()
            try:
                victim, point, world = one_round(house, number, seed)
                head = check_clean(house, world, head)
            except BaseException as e:
                e.add_note(f"round {number} of seed {seed}; left:\n{house.leftovers()[:2000]}\n{house.holtd.log()[-4000:]}")
                raise
            base = base or house.fds()
            few_fds(house.fds, base, 2)
            for kind, n in world.counts().items():
                totals[kind] = totals.get(kind, 0) + n
            print(f"round {number}: {victim} at {point or 'a random time'}: {world.counts()}, "
                  f"{time.monotonic() - started:.1f} s", flush=True)
    finally:
        house.end()
    print(f"{len(rounds_wanted())} rounds in {time.monotonic() - begun:.0f} s: {totals}")
    assert totals["commands"] > 5 * len(rounds_wanted()), "hardly any load: this proves nothing"
    shutil.rmtree(tmp_path / "h/state", ignore_errors=True)


def children_of(pid):
    return [int(p) for p in filter(str.isdigit, os.listdir("/proc")) if stat_of(p)[1] == str(pid)]


@pytest.mark.skipif(os.geteuid() != 0, reason="the kill needs root")
@pytest.mark.skipif(not os.path.isdir("/sys/fs/cgroup/memory"), reason="no cgroup v1 here: nothing is parked")
def test_a_child_that_asks_too_late_does_not_stay(tmp_path):
    """holt-spawn dies between the birth of a helper, which has its sockets, and the helper's wish to die with it."""
    house = House(tmp_path / "h")
    try:
        house.points.arm("parked", 1)
        box = house.holtd.ok("POST", "/holt/v1/sandboxes", {"memory_bytes": 64 << 20})["id"]
        spawn = wait_for(house.spawn)
        late = wait_for(lambda: [p for p in children_of(spawn) if state_of(p) == "T"], 60)
        os.kill(spawn, signal.SIGKILL)
        wait_for(lambda: state_of(spawn) in ("Z", "gone"))
        os.kill(late[0], signal.SIGCONT)
        wait_for(lambda: house.spawn() not in (None, spawn), 60)
        assert house.holtd.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["true"]})["exit_code"] == 0
        wait_for(lambda: state_of(late[0]) in ("Z", "gone"))
    finally:
        house.end()
    shutil.rmtree(tmp_path / "h/state", ignore_errors=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="the look at what is left needs root")
def test_a_claim_that_is_cut_short_leaves_nothing(tmp_path):
    """holt-spawn dies when a shell has the request's name and files, and still its own record."""
    house = House(tmp_path / "h")
    try:
        wait_for(lambda: len(os.listdir(f"{house.state}/shells")) == 4)
        house.points.arm("unrecorded", 1)
        asked = threading.Thread(target=lambda: house.holtd.request("POST", "/holt/v1/sandboxes", {"name": "cut"}))
        asked.start()
        spawn = wait_for(house.spawn)
        wait_for(lambda: state_of(spawn) == "T", 60)
        [box] = os.listdir(f"{house.state}/sb")
        assert os.path.isdir(f"{house.state}/sb/{box}/fs")
        os.kill(spawn, signal.SIGKILL)
        asked.join()
        house.holtd.request("DELETE", "/holt/v1/sandboxes/cut")
        wait_for(lambda: house.leftovers() == "", 60, 0.1)
    finally:
        house.end()
    shutil.rmtree(tmp_path / "h/state", ignore_errors=True)
