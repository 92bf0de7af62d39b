"""Limits by cgroup v2 alone, seen from both sides: what the group's files say, and what happens when a limit is met.

On a host with v1 hierarchies only the tests that need no files of v2 run; `make test-v2` runs all of them.
"""
import os
import time

import pytest

import boxes
from attempts import grown, stands_still
from boxes import CAN_CPU, CAN_FREEZE, CAN_KILL_TREE, CAN_MEMORY, CAN_PIDS

MOUNT = "/sys/fs/cgroup"
MIB = 1 << 20
EVENT, OOM = 16, 2
WORK = "work"


def read(box, name):
    with open(f"{group_of(box)}/{name}", encoding="ascii") as f:
        return f.read().strip()


def group_of(box):
    """Init's own group, which is the sandbox's."""
    if not os.path.exists(f"{MOUNT}/cgroup.controllers"):
        pytest.skip("not cgroup v2 alone: `make test-v2` runs this")
    with open(f"/proc/{box.pid}/cgroup", encoding="ascii") as f:
        return MOUNT + f.read().strip().removeprefix("0::")


def needs(spawn, *features):
    if any(not spawn.features & f for f in features):
        pytest.skip("not enforced here, and create says so")


@pytest.fixture
def make(spawn):
    """Sandboxes that go with the test."""
    made = []

    def create(**spec):
        made.append(spawn.create(f"sb_limits{len(made)}", **spec))
        return made[-1]

    yield create
    for box in made:
        box.destroy()


def test_what_is_enforced_is_said(spawn, make):
    """As root, and with a group of one's own, all; without one, nothing that takes a group."""
    box = make(memory=64 * MIB, cpu=500, pids=40)
    everything = CAN_MEMORY | CAN_CPU | CAN_PIDS
    group = group_of(box)
    if spawn.mode == "bare":
        assert not box.enforced & (CAN_MEMORY | CAN_CPU) and not spawn.features & (CAN_KILL_TREE | everything)
        assert "holt-" not in group, group
        return
    assert box.enforced & everything == everything, box.enforced
    assert spawn.features & (CAN_FREEZE | CAN_KILL_TREE) == CAN_FREEZE | CAN_KILL_TREE
    assert (read(box, "memory.max"), read(box, "pids.max"), read(box, "cpu.max")) == (str(64 * MIB), "40", "50000 100000")
    assert not os.path.exists(f"{group}/memory.swap.max") or read(box, "memory.swap.max") == "0"


def test_limits_stay_with_holt_spawn(spawn, make):
    """What is given to the sandbox's root: the commands' group, and the list of its own."""
    needs(spawn, CAN_MEMORY)
    box = make(memory=64 * MIB)
    group, inside = group_of(box), os.stat(f"/proc/{box.pid}").st_uid
    assert read(box, "cgroup.subtree_control") == ""
    if spawn.mode == "root":
        for name in ("", "/memory.max", "/pids.max", "/cgroup.kill", "/cgroup.freeze"):
            assert not os.path.exists(group + name) or os.stat(group + name).st_uid == 0 != inside, name
    assert {os.stat(group + n).st_uid for n in ("/work", f"/{WORK}/cgroup.procs", "/cgroup.procs")} == {inside_root(box)}


def inside_root(box):
    with open(f"/proc/{box.pid}/uid_map", encoding="ascii") as f:
        return int(f.readline().split()[1])


def in_work(number):
    return f"0::/{WORK}/ex_{number}\n".encode()


def test_commands_are_born_in_groups_of_their_own(spawn, make):
    needs(spawn, CAN_KILL_TREE)
    box = make()
    assert box.sh("grep ^0: /proc/self/cgroup").out == in_work(1)
    assert box.sh("grep ^0: /proc/self/cgroup; grep ^0: /proc/1/cgroup").out == in_work(2) + b"0::/\n"


def test_too_much_memory_is_an_event_with_its_reason(spawn, make):
    needs(spawn, CAN_MEMORY)
    box = make(memory=64 * MIB)
    r = box.python("b'x' * (200 << 20)")
    assert (r.how, r.code) == (1, 9), r
    kinds = []
    while (EVENT, OOM) not in kinds:
        kind, _, reader, _ = spawn.receive()
        kinds.append((kind, (reader.text(), reader.take("B"))[1] if kind == EVENT else None))
    assert spawn.stats(box.id)["oom_kills"] >= 1
    assert box.alive() and box.run("true").oom == 0
    if os.path.exists(f"{MOUNT}/cgroup.controllers"):
        assert r.oom == 1 and spawn.stats(box.id)["peak"] <= 64 * MIB
    killed = box.start(["sleep", "60"])
    box.signal(killed, 9, 2)
    assert box.collect(killed).oom == 0  # killed, and not for that


def test_processes_end_somewhere(spawn, make):
    box = make(pids=30)
    if not box.enforced & CAN_PIDS:  # a rlimit does it too where one id is mapped
        pytest.skip("not enforced here, and create says so")
    r = box.python("import os, time\nn = 0\ntry:\n  while n < 100:\n    if os.fork() == 0: time.sleep(60)\n    n += 1\n"
                   "except OSError as e: print(n, e.errno, flush=True)", flags=boxes.KILL_REST)
    count, why = map(int, r.out.split())
    assert 10 < count < 30 and why == 11, r
    assert box.run("true").code == 0


def test_processor_time_is_rationed(spawn, make):
    needs(spawn, CAN_CPU)
    box = make(cpu=200)
    for _ in range(4):  # on a busy machine one might not get its ration
        box.start(["sh", "-c", "while :; do :; done"])

    def share():
        used, began = spawn.stats(box.id)["cpu_us"], time.monotonic()
        time.sleep(2)
        got = (spawn.stats(box.id)["cpu_us"] - used) / 1e6 / (time.monotonic() - began)
        assert got < 0.3, f"{got:.2f} of a processor; 0.2 were given"
        return got

    boxes.wait_for(lambda: share() > 0.05, 60)


def test_pause_stops_the_commands_and_not_init(spawn, make):
    box = make()
    ch = box.start(["sh", "-c", "while :; do echo x >> /tmp/n; sleep 0.02; done"])
    box.collect(box.start(["sh", "-c", "until [ -s /tmp/n ]; do sleep 0.02; done"]))
    spawn.pause(box.id, True)
    if spawn.features & CAN_FREEZE and os.path.exists(f"{MOUNT}/cgroup.controllers"):
        assert "frozen 1" in read(box, "work/cgroup.events")
    boxes.wait_for(lambda: stands_still(box, "/tmp/n"), 10)  # init answers
    size = grown(box, "/tmp/n")
    spawn.pause(box.id, False)
    boxes.wait_for(lambda: grown(box, "/tmp/n") > size)
    box.signal(ch, 9, 2)


def test_stats_are_the_groups(spawn, make):
    needs(spawn, CAN_MEMORY, CAN_PIDS, CAN_KILL_TREE)
    box = make(memory=256 * MIB, pids=50)
    ch = box.start(["/usr/bin/python3", "-c", "x = b'1' * (40 << 20)\nprint('up', flush=True)\nimport time\ntime.sleep(60)"])
    box.collect(ch, limit=3)
    s = spawn.stats(box.id)
    assert 40 * MIB < s["memory"] <= s["peak"] < 256 * MIB and s["pids"] == 2 and s["cpu_us"] > 1000, s
    if os.path.exists(f"{MOUNT}/cgroup.controllers"):
        assert abs(int(read(box, "memory.current")) - s["memory"]) < 8 * MIB
    box.signal(ch, 9, 2)


def test_its_group_goes_with_it(spawn):
    needs(spawn, CAN_KILL_TREE)
    box = spawn.create("sb_group", pids=20)
    group = group_of(box)
    box.start(["sh", "-c", "setsid sleep 60 & sleep 60"])
    assert box.run("true").code == 0 and os.path.isdir(f"{group}/work")
    box.destroy()
    assert not os.path.exists(group) and os.path.isdir(os.path.dirname(group))


SOCKETS = """import socket, os
kept, total = [], 0
def tcp():
    l = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(l.getsockname()); s = l.accept()[0]
    for k in (c, s):
        k.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22); k.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    return [c, s, l], [c, s]
def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); c.connect(s.getsockname())
    return [s, c], [c]
make = {"tcp": tcp, "udp": udp}[os.environ["KIND"]]
for _ in range(200):
    sockets, write = make(); kept += sockets
    for w in write:
        w.setblocking(False)
        try:
            for _ in range(200): total += w.send(bytes(60000))
        except OSError: pass
print("full", flush=True)
os.read(0, 1)
"""


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_buffers_of_sockets_count(spawn, make, kind):
    """600 MiB of them were held in a sandbox of 64 MiB: cgroup v1 counts them apart, and only where that is asked for."""
    if spawn.shells:
        pytest.skip("sandboxes made ahead have no limits of v1")
    needs(spawn, CAN_MEMORY)
    box = make(memory=64 * MIB, nofile=4096)
    if not box.enforced & CAN_MEMORY:
        return  # the kernel cannot, and it is said
    before = socket_pages()
    channel = box.start(["/usr/bin/python3", "-c", SOCKETS], flags=boxes.STDIN, env={"KIND": kind})
    out = box.collect(channel, limit=5)
    held = (socket_pages() - before) * 4096
    assert held <= 64 * MIB, f"{held >> 20} MiB in buffers of sockets; {out}"  # v2 counts them in the limit, v1 beside it


def socket_pages():
    """Of all network namespaces, as the kernel counts them."""
    with open("/proc/net/sockstat", encoding="ascii") as f:
        return sum(int(line.split()[-1]) for line in f if line.startswith(("TCP:", "UDP:")))


def test_huge_pages_count_or_are_said(spawn, make):
    """They are counted by no memory cgroup: either they are limited too, or the limit is not called enforced."""
    needs(spawn, CAN_MEMORY)
    box = make(**spawn.limits(memory=64 * MIB))
    if spawn.shells or not box.enforced & CAN_MEMORY:
        return
    with open(f"/proc/{box.pid}/cgroup", encoding="ascii") as f:
        path = next(line.strip()[3:] for line in f if line.startswith("0::"))
    group = next((m + path for m in (MOUNT, f"{MOUNT}/unified") if os.path.exists(f"{m}{path}/cgroup.procs")), None)
    limits = [n for n in os.listdir(group) if n.startswith("hugetlb.") and n.endswith("B.max")] if group else []
    if not limits:
        pool = "/sys/kernel/mm/hugepages"
        assert all(open(f"{pool}/{size}/nr_hugepages", encoding="ascii").read() == "0\n" for size in os.listdir(pool))
    for name in limits:
        with open(f"{group}/{name}", encoding="ascii") as f:
            assert f.read() == "0\n", name
