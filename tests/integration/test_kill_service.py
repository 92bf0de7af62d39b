"""Kills at random times under users of sbx, agentbox, the native interface and the network: holtd, holt-spawn, both,
holt-egress.  Exec records, `seq` of streams, policies and what people answered are as before, open connections outlive holtd and holt-spawn
(bytes flow while there is none), and nothing is left.

HOLT_SOAK=1: 120 rounds, else 8.  HOLT_SOAK_SEED=N repeats a run's choices of what is killed and when.
"""
import os
import random
import shutil
import signal
import threading
import time

import pytest

import egress
from daemon import ASAN, SOAK, wait_for
from service_clients import AgentboxUser, Peer, SbxUser, Service, Surfer
from soak_clients import Churner, Worker
from test_soak import House, few_fds

ROUNDS = 120 if SOAK else 8
VICTIMS = ("holtd", "egress", "spawn", "both")
ROLES = (SbxUser, SbxUser, AgentboxUser, Surfer, Surfer, Worker, Churner)


def kill_holtd_and_look(house, world, spawn):
    """Bytes flow while nobody serves."""
    world.is_up.clear()
    house.kill_holtd()
    if spawn:
        os.kill(spawn, signal.SIGKILL)
    world.peer.all_grow()
    world.serve(house.start())
    world.peer.all_grow()


def strike(house, world, victim):
    spawn = wait_for(house.spawn, 60)  # the one before may just have been killed
    if victim == "egress":
        pid = wait_for(house.egress, 60)
        world.egress_kills += 1
        world.egress_died.set()
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: house.egress() not in (None, pid), 60)
    elif victim == "spawn":
        os.kill(spawn, signal.SIGKILL)
        world.peer.all_grow()
    else:
        kill_holtd_and_look(house, world, spawn if victim == "both" else None)


def one_round(house, peer, number, seed):
    rng = random.Random(f"{seed}/{number}")
    victim = VICTIMS[number % len(VICTIMS)]
    world = Service(house.holtd, rng.random(), peer)
    world.egress_kills, world.egress_died = 0, threading.Event()
    clients = [role(world, f"k{number}-{i}") for i, role in enumerate(ROLES)]
    for c in clients:
        c.start()
    try:
        wait_for(lambda: world.wrong or len(world.things) == 5, 60)
        world.raise_wrong()
        for _ in range(rng.randint(1, 2)):
            time.sleep(rng.random() * 0.7)
            strike(house, world, victim)
        time.sleep(0.2)
    finally:
        world.stop.set()
    for c in clients:
        c.join(180)
        assert not c.is_alive(), f"{c.name} hangs"
    world.raise_wrong()
    world.verify_all()
    peer.forget()
    return victim, world


def fds(house):
    def count(pid):
        return len(os.listdir(f"/proc/{pid}/fd"))
    return (*house.fds(), count(wait_for(house.egress)))


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="the look at what is left needs root")
@pytest.mark.timeout(3600 if SOAK or ASAN else 1000)
def test_daemons_die_under_the_service(tmp_path):
    seed = os.environ.get("HOLT_SOAK_SEED", str(random.SystemRandom().randrange(10**6)))
    print(f"HOLT_SOAK_SEED={seed}")
    names = egress.Names({"web.test": ["127.0.0.1"], "echo.test": ["127.0.0.1"], "asked.test": ["127.0.0.1"]})
    peer = Peer(egress.Peer)
    house = House(tmp_path / "h", "--egress-dns", names.address)
    base = head = None
    try:
        for number in range(ROUNDS):
            begun = time.monotonic()
            try:
                victim, world = one_round(house, peer, number, seed)
                world.destroy_all()
                wait_for(lambda: house.leftovers() == "", 60, 0.1)
                verdict = world.holtd.ok("GET", "/holt/v1/audit/verify" + (f"?head={head}" if head else ""))
                assert verdict["ok"] is True, verdict
                head = verdict["head"]
                base = base or fds(house)
                now = few_fds(lambda: fds(house), base, 3)
            except BaseException as e:
                e.add_note(f"round {number} of seed {seed}; left:\n{house.leftovers()[:2000]}\n{house.holtd.log()[-4000:]}")
                raise
            print(f"round {number}: {victim}: {world.counts()}, descriptors {now}, {time.monotonic() - begun:.1f} s", flush=True)
    finally:
        house.end()
        peer.close()
        names.close()
    shutil.rmtree(tmp_path / "h/state", ignore_errors=True)
