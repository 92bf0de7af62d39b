"""The end of sandboxes: nothing is left, whatever was done inside; a thousand at once."""
import os
import re
import signal
import subprocess
import time

import pytest

import boxes
from conftest import put_probe

ROOT = os.path.abspath(f"{boxes.HERE}/../..")


def leftovers(spawn, *flags):
    return subprocess.run([f"{ROOT}/tools/leftovers", "--serving", *flags, spawn.state], capture_output=True, text=True,
                          check=False).stdout


@pytest.fixture
def clean(spawn):
    """A spawn of the test's own: what is left is of this test."""
    s = boxes.Spawn(spawn.mode)
    s.create("sb_first", flags=boxes.UPPER_DISK).destroy()  # what spawn keeps from then on is made
    yield s
    s.stop()


def test_leftovers_sees_a_sandbox(clean):
    """The tool finds what is there, or its silence would say nothing."""
    box = clean.create("sb_1", flags=boxes.UPPER_DISK)
    ch = box.start(["sleep", "60"])
    box.next()
    text = leftovers(clean)
    kinds = {line.split()[0] for line in text.splitlines()}
    assert kinds >= {"process", "namespace", "file"}, text
    assert ("cgroup" in kinds) == bool(clean.features & boxes.CAN_KILL_TREE), text
    assert len(re.findall("^process", text, re.M)) >= 2, text  # init and the command
    assert ch
    box.destroy()
    assert leftovers(clean) == ""


def hold_on(box):
    """Everything inside that could keep a sandbox from its end."""
    box.sh("/tmp/probe daemon")
    for argv in (["/tmp/probe", "daemon"], ["/usr/bin/python3", "-c", (
            "import os, signal, time\n"
            "for s in range(1, 65):\n"
            "  try: signal.signal(s, signal.SIG_IGN)\n"
            "  except (OSError, ValueError): pass\n"
            "for i in range(20):\n"
            "  if os.fork() == 0: os.setsid(); break\n"
            "time.sleep(600)")], ["sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done"]):
        box.start(argv)
    box.start(["sh", "-c", "kill -STOP $$"])
    box.start(["cat"], flags=boxes.PTY)
    box.sh("mkdir -p /workspace/a/b; chmod 000 /workspace/a/b /workspace/a; mkfifo /workspace/fifo; cd /workspace;"
           " ln -s / up; touch -- -rf '*' \"$(printf 'new\\nline')\"")


@pytest.mark.parametrize("flags", [0, boxes.UPPER_DISK, boxes.ROOTFS_RO], ids=["memory", "disk", "read-only"])
def test_nothing_holds_a_sandbox(clean, flags):
    before = clean.fds()
    box = put_probe(clean.create("sb_1", flags=flags))
    hold_on(box)
    box.destroy()
    assert leftovers(clean) == ""
    boxes.wait_for(lambda: clean.fds() == before)


def test_a_paused_sandbox_ends(clean):
    box = put_probe(clean.create("sb_1"))
    hold_on(box)
    clean.pause("sb_1", True)
    box.destroy()
    assert leftovers(clean) == ""


def test_a_deep_tree_on_disk_is_removed(clean):
    """3,000 directories in each other: past the depth of any recursion, and of PATH_MAX."""
    box = put_probe(clean.create("sb_1", flags=boxes.UPPER_DISK))
    assert b"deep 3000 ok" in box.run("/tmp/probe", "deep", "/workspace/deep", "3000").out
    box.destroy()
    assert leftovers(clean) == ""


def test_a_deep_tree_is_removed_with_few_descriptors(clean):
    """holt-spawn may have as many sandboxes as it may have files open: what is left decides how deep it goes at once."""
    box = put_probe(clean.create("sb_1", flags=boxes.UPPER_DISK))
    assert b"deep 500 ok" in box.run("/tmp/probe", "deep", "/workspace/deep", "500").out
    id = clean.user.uid if clean.user else 0  # whoever it is may lower its limits
    subprocess.run(["prlimit", f"--pid={clean.process.pid}", f"--nofile={clean.fds() + 50}"], user=id, group=id, check=True)
    box.destroy()
    assert leftovers(clean) == ""


def test_many_files_hold_nobody_up(clean):
    """While 60,000 files go, another sandbox is made and answers (fewer where the machine is slow: HOLT_SLOW)."""
    count = round(60000 / boxes.SLOW)
    box = put_probe(clean.create("sb_1", flags=boxes.UPPER_DISK))
    assert f"inodes {count} ok" in box.run("/tmp/probe", "inodes", "/workspace/many", str(count)).out.decode()
    box.sock.close()
    tag = clean.send(8, clean.destroy_payload("sb_1"))
    began = time.monotonic()
    other = clean.create("sb_2")
    took = time.monotonic() - began
    assert other.run("true").code == 0
    other.destroy()
    while leftovers(clean) and time.monotonic() < began + 120 * boxes.SLOW:
        time.sleep(0.2)
    assert leftovers(clean) == ""
    all_of_it = time.monotonic() - began
    assert took < max(0.5 * boxes.SLOW, all_of_it / 2), f"a create took {took:.2f} of the {all_of_it:.2f} s of a removal"
    assert tag


def remover(spawn):
    """The child of holt-spawn that removes files."""
    with open(f"/proc/{spawn.process.pid}/task/{spawn.process.pid}/children", encoding="ascii") as f:
        children = [int(pid) for pid in f.read().split()]
    return next((pid for pid in children if b"holt-spawn" in read_cmdline(pid)), None)


def read_cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read()
    except OSError:
        return b""


def test_a_removal_that_takes_long_is_no_failure(spawn, clean):
    """However many files there are: while they are being removed, destroy waits."""
    if spawn.mode != "root":
        pytest.skip("takes ten seconds, and is the same in every mode")
    box = put_probe(clean.create("sb_1", flags=boxes.UPPER_DISK))
    assert b"inodes 5000 ok" in box.run("/tmp/probe", "inodes", "/workspace/many", "5000").out
    box.sock.close()
    tag = clean.send(8, clean.destroy_payload("sb_1"))
    boxes.wait_for(lambda: remover(clean))
    child = remover(clean)
    os.kill(child, signal.SIGSTOP)
    try:
        assert not boxes.readable(clean.sock.fileno(), 11), clean.receive()[2].error()  # UNDO_LATE_MS and a second
    finally:
        os.kill(child, signal.SIGCONT)
    kind, got, r, _ = clean.receive()
    while got != tag:
        kind, got, r, _ = clean.receive()
    clean.check_done(kind, r)
    assert leftovers(clean) == ""


def test_init_killed_from_outside(clean):
    """As the OOM killer may: the commands go with it, destroy cleans up."""
    box = put_probe(clean.create("sb_1"))
    hold_on(box)
    os.kill(box.pid, 9)
    boxes.wait_for(lambda: not box.alive())
    box.destroy()
    assert leftovers(clean) == ""


def test_killed_spawn_leaves_nothing_that_the_next_does_not_find(clean):
    box = put_probe(clean.create("sb_1", flags=boxes.UPPER_DISK))
    hold_on(box)
    clean.process.kill()
    clean.process.wait()
    clean.sock.close()
    clean.start()
    assert [row[0] for row in clean.list()] == ["sb_1"]
    assert box.run("true").code == 0
    box.destroy()
    assert leftovers(clean) == ""


def test_few_files_for_commands_are_enough_for_init(clean):
    """A limit of open files is each command's; init needs three for every command that runs."""
    box = clean.create("sb_1", nofile=16)
    for _ in range(30):
        box.start(["sleep", "60"])
    r = box.sh("ulimit -Hn; ulimit -n")
    assert (r.code, r.out) == (0, b"16\n16\n"), r
    box.destroy()


def available_kib():
    with open("/proc/meminfo", encoding="utf-8") as f:
        return int(re.search(r"MemAvailable:\s+(\d+)", f.read())[1])


def private_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
        return sum(map(int, re.findall(r"Private_\w+:\s+(\d+)", f.read())))


def create_all(spawn, ids):
    """In flight together, 32 at a time."""
    made, wanted, in_flight = [], list(ids), {}
    while wanted or in_flight:
        while wanted and len(in_flight) < 32:
            id = wanted.pop()
            in_flight[spawn.send(3, spawn.create_payload(id))] = id
        kind, tag, r, fds = spawn.receive()
        if tag in in_flight:
            id = in_flight.pop(tag)
            spawn.check_done(kind, r)
            pid, enforced = r.take("II")
            made.append(boxes.Box(spawn, id, pid, enforced, fds[0], connect=False))
    return made


@pytest.mark.timeout(600 * boxes.SLOW)
def test_a_thousand_sandboxes(clean):
    count = int(os.environ.get("HOLT_MANY", "1000"))
    fds, before, began = clean.fds(), available_kib(), time.monotonic()
    made = create_all(clean, [f"sb_{i:04}" for i in range(count)])
    created = time.monotonic()
    for box in made:
        box.connect()
        assert box.run("echo", box.id).out == f"{box.id}\n".encode()
    answered = time.monotonic()
    assert len(made) == count and all(box.alive() for box in made)
    each = (before - available_kib()) / count
    private = sorted(private_kib(box.pid) for box in made[::count // 20])[10]
    spawn_kib = private_kib(clean.process.pid)
    tags = set()
    for box in made:
        box.sock.close()
        os.close(box.pidfd)
    gone = time.monotonic()
    for box in made:
        tags.add(clean.send(8, clean.destroy_payload(box.id)))
        while len(tags) >= 32:
            tags.discard(clean.receive()[1])
    while tags:
        tags.discard(clean.receive()[1])
    ended = time.monotonic()
    print(f"\n{count} sandboxes: created in {created - began:.1f} s, each answered a command in {answered - created:.1f} s,"
          f" destroyed in {ended - gone:.1f} s; {each:.0f} KiB each, of that {private} KiB private to init;"
          f" holt-spawn has {spawn_kib} KiB")
    assert leftovers(clean) == ""
    assert clean.fds() <= fds + 32  # namespaces kept for sandboxes to come
    assert each < 1536 and private <= 128, (each, private)


def v2_group(box):
    with open(f"/proc/{box.pid}/cgroup", encoding="ascii") as f:
        path = next((line.strip()[3:] for line in f if line.startswith("0::")), "/")
    for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if path != "/" and os.path.exists(f"{mount}{path}/work"):
            return f"{mount}{path}"
    pytest.skip("no cgroup v2 of its own here")


def test_deep_groups_do_not_keep_a_sandbox(spawn):
    """300 groups in each other could not be removed, and holt-spawn asked for them without a pause."""
    box = spawn.create("sb_deep")
    group = v2_group(box)
    at = os.open(f"{group}/work", os.O_RDONLY | os.O_DIRECTORY)
    owner = os.fstat(at).st_uid
    for i in range(600):
        for name in (f"g{i}", f"beside{i}"):
            os.mkdir(name, dir_fd=at)
            os.chown(name, owner, -1, dir_fd=at)  # as if it had been made inside
        below = os.open(f"g{i}", os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    box.destroy()
    assert not os.path.exists(group)


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_an_undo_that_stays_busy_is_told_and_costs_nothing(spawn):
    """What cannot be removed yet is asked for with pauses; whoever waits is told, and when it can go, all goes."""
    if spawn.mode != "root":
        pytest.skip("the same everywhere, and it takes ten seconds")
    box = spawn.create("sb_busy")
    held = f"{spawn.state}/sb/sb_busy/of-somebody-else"
    box.sock.close()
    os.close(box.pidfd)
    with open(held, "w", encoding="ascii"):
        pass
    tag = spawn.send(8, spawn.destroy_payload("sb_busy"))
    try:
        boxes.wait_for(lambda: not os.path.exists(f"{spawn.state}/sb/sb_busy/init.sock"))
        time.sleep(0.3)  # the quick attempts are over
        before = cpu_of(spawn.process.pid)
        time.sleep(1)
        assert cpu_of(spawn.process.pid) - before < 0.05, "it asks again and again"
        kind, got, r, _ = spawn.receive()
        while got != tag:
            kind, got, r, _ = spawn.receive()
        assert kind == 15 and "not empty" in r.error()[2]
        assert [row[0] for row in spawn.list()].count("sb_busy") == 1
    finally:
        os.unlink(held)
        spawn.destroy("sb_busy")
    assert not os.path.exists(f"{spawn.state}/sb/sb_busy")
