"""Sandboxes made ahead, and holt-spawn itself: what the host changes meanwhile, and when nobody needs them any more."""
import os
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import boxes
from conftest import open_spawn


@pytest.fixture
def etc():
    """A copy of the host's /etc, and a holt-spawn that has it for its own: the host's is not ours to change."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to copy all of /etc")
    top = tempfile.mkdtemp(prefix="holt-etc.", dir="/var/tmp")
    os.chmod(top, 0o755)
    subprocess.run(["cp", "-a", "/etc", f"{top}/etc"], check=True)
    with open(f"{top}/spawn", "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\nexec unshare -m sh -c 'mount --bind {top}/etc /etc && exec {boxes.BUILD}/holt-spawn \"$@\"' sh \"$@\"\n")
    os.chmod(f"{top}/spawn", 0o755)
    yield top
    shutil.rmtree(top)


def test_programs_that_the_host_replaces(etc):
    """After ldconfig or an upgrade, as many creates failed as were made ahead: their copy of the file had no name any more."""
    s = open_spawn("warm root", program=f"{etc}/spawn")
    try:
        boxes.wait_for(lambda: s.pool(2) == 2, step=0.05)
        for name in ("ld.so.cache", "ssl/certs"):  # a file and a directory
            os.rename(f"{etc}/etc/{name}", f"{etc}/etc/{name}.old")
            subprocess.run(["cp", "-a", f"{etc}/etc/{name}.old", f"{etc}/etc/{name}"], check=True)
            subprocess.run(["rm", "-rf", f"{etc}/etc/{name}.old"], check=True)
        with open(f"{etc}/etc/ssl/certs/holt-new", "w", encoding="ascii") as f:
            f.write("new\n")
        for i in range(3):
            box = s.create(f"sb_{i}")
            assert box.sh("cat /etc/ssl/certs/holt-new; test -s /etc/ld.so.cache && ls / > /dev/null && echo well").out == b"new\nwell\n"
            box.destroy()
        s.pool(2)
        assert s.broken == 0
    finally:
        s.stop()


def test_those_made_ahead_answer_first():
    """Sixteen creates at once were answered in one batch: what takes long is done between the others, one at a time."""
    s = open_spawn("warm root", args=("--nesting", "yes"))
    try:
        boxes.wait_for(lambda: s.pool(2) == 2, step=0.05)
        slow = [s.send(3, s.create_payload(f"sb_slow{i}", flags=boxes.NESTING)) for i in range(8)]
        warm = [s.send(3, s.create_payload(f"sb_warm{i}")) for i in range(2)]
        order = []
        while len(order) < 10:
            kind, tag, r, fds = s.receive()
            assert kind == 4, r.error()
            order.append(tag)
            for fd in fds:
                os.close(fd)
        assert max(order.index(t) for t in warm) < 6, f"{[('warm' if t in warm else 'slow') for t in order]}"
        assert sorted(order) == slow + warm
    finally:
        s.stop()


def test_a_create_that_waits_can_be_cancelled():
    s = open_spawn("root", args=("--nesting", "yes"))
    try:
        made = [s.send(3, s.create_payload(f"sb_{i}", flags=boxes.NESTING)) for i in range(6)]
        gone = s.send(8, s.destroy_payload("sb_5"))
        ends = {}
        while not ends.keys() >= {*made, gone}:
            kind, tag, r, fds = s.receive()
            ends[tag] = r.error()[0] if kind == 15 else 0
            for fd in fds:
                os.close(fd)
        assert ends[gone] == 0 and [ends[t] for t in made[:5]] == [0] * 5
        assert "sb_5" not in [row[0] for row in s.list()], "it was made after its end"
    finally:
        s.stop()


def processes_of(state):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
                if state in f.read().split("\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


@pytest.mark.parametrize("mode", ["warm root", "warm rootless", "warm bare"])
def test_it_ends_when_nobody_needs_it(mode):
    """Nine processes once stayed behind a holtd that had been stopped: holt-spawn, its children and what it had made ahead."""
    s = open_spawn(mode, args=("--linger-ms", "300"))
    try:
        boxes.wait_for(lambda: s.pool(2) == 2, step=0.05)
        box = s.create("sb_1", connect=False)
        s.sock.close()
        time.sleep(0.9)
        assert s.process.poll() is None, "a sandbox lives"
        s.connect()
        os.close(box.pidfd)
        s.destroy("sb_1")
        time.sleep(0.9)
        assert s.process.poll() is None, "holtd is there"
        s.sock.close()
        assert s.process.wait(20 * boxes.SLOW) == 0
        boxes.wait_for(lambda: not processes_of(s.state))
    finally:
        for pid in processes_of(s.state):
            os.kill(pid, signal.SIGTERM)
        s.stop()


UEVENTS = """import socket
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)
s.bind((0, 1)); s.settimeout(3); print("listens", flush=True)
try: print(s.recv(4096)[:4])
except OSError: print("silence")
"""


def trigger():
    with open("/sys/class/net/lo/uevent", "w", encoding="ascii") as f:
        f.write("change")
    with open("/sys/devices/virtual/mem/null/uevent", "w", encoding="ascii") as f:
        f.write("change")


def hears(spawn):
    box = spawn.create("sb_hears")
    try:
        channel = box.start(["/usr/bin/python3", "-c", UEVENTS])
        assert b"listens" in box.collect(channel, limit=7).out, "the socket itself is allowed: libudev opens one"
        trigger()
        return b"silence" not in box.collect(channel).out
    finally:
        box.destroy()


def test_events_of_devices_do_not_come_in():
    """The kernel sends them to every network namespace that belongs to the host's user namespace."""
    s = open_spawn("root")
    try:
        assert not hears(s)
    finally:
        s.stop()


def test_events_of_devices_come_in_without_the_guard():
    s = open_spawn("root", program=f"{boxes.BUILD}/tests/security/holt-spawn-unguarded", env={"HOLT_OMIT": "uevents"})
    try:
        assert hears(s)
    finally:
        s.stop()


def range_of(box):
    with open(f"/proc/{box.pid}/uid_map", encoding="ascii") as f:
        return int(f.read().split()[1])


def claims_of(pids):
    """Files of ranges that name one of these processes; others' come and go."""
    found = []
    for name in os.listdir("/run/holt-ranges") if os.path.isdir("/run/holt-ranges") else ():
        try:
            with open(f"/run/holt-ranges/{name}", encoding="ascii") as f:
                words = f.read().split()
        except FileNotFoundError:
            continue
        found += [name] if {int(w) for w in words[::2]} & pids else []
    return found


def test_two_installations_share_no_users():
    """Each counted its ranges from the first on, and sandboxes of both had the same users to the kernel."""
    a, b = open_spawn("root"), open_spawn("root")
    pids = {a.process.pid, b.process.pid}
    try:
        ranges = [range_of(s.create(f"sb_{i}", connect=False)) for i in range(3) for s in (a, b)]
        assert len(set(ranges)) == 6, ranges
        os.kill(a.process.pid, signal.SIGKILL)  # its sandboxes live on, and keep their ranges
        a.process.wait()
        ranges += [range_of(b.create(f"sb_more{i}", connect=False)) for i in range(3)]
        assert len(set(ranges)) == 9, ranges
        a.start()
        pids.add(a.process.pid)
        ranges.append(range_of(a.create("sb_again", connect=False)))
        assert len(set(ranges)) == 10, ranges
    finally:
        a.stop()
        b.stop()
    assert claims_of(pids) == []


def test_a_range_that_is_kept_ready_stays_its_installations():
    """Its user namespace is kept for the next sandbox: another installation's would have had the same users meanwhile."""
    a, b = open_spawn("root"), open_spawn("root")
    fds, pids = f"/proc/{a.process.pid}/fd", {a.process.pid, b.process.pid}
    try:
        mine = {range_of(a.create(f"sb_{i}", connect=False, flags=boxes.UPPER_DISK)) for i in range(3)}
        for i in range(3):
            a.destroy(f"sb_{i}")
        kept = len(os.listdir(fds))
        theirs = {range_of(b.create(f"sb_{i}", connect=False)) for i in range(4)}
        assert not mine & theirs
        again = range_of(a.create("sb_again", connect=False, flags=boxes.UPPER_DISK))
        a.destroy("sb_again")
        assert again in mine and len(os.listdir(fds)) == kept
    finally:
        a.stop()
        b.stop()
    assert claims_of(pids) == []
