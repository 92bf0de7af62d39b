"""Volumes keep what a sandbox left in them: links that wait for the next one's set-up."""
import os

import pytest

import boxes
from conftest import open_spawn


def names_below(path):
    return {os.path.join(d, n) for d, dirs, files in os.walk(path) for n in dirs + files if "/volumes/" not in d}


@pytest.fixture
def clean(spawn):
    s = boxes.Spawn(spawn.mode)
    yield s
    s.stop()


def test_mount_point_behind_a_link_to_a_descriptor(clean):
    """The set-up's own descriptors lead out of the root: /proc/self/fd/N is not followed.

    It once was, and as an ordinary user a directory came to be in the state directory of the host.
    """
    box = clean.create("sb_1", mounts=[(boxes.VOLUME, "v1", "/workspace")])
    box.sh("for i in $(seq 3 40); do ln -s /proc/self/fd/$i /workspace/c$i; done; ln -s /proc/self/cwd /workspace/cwd;"
           " ln -s /proc/1/root /workspace/root; ln -s ../../../../../../../tmp /workspace/up")
    box.destroy()
    before = names_below(clean.state)
    for link in [f"c{i}" for i in range(3, 41)] + ["cwd", "root", "up"]:
        for kind, source in ((boxes.TMPFS, ""), (boxes.VOLUME, "v2")):
            try:
                clean.create("sb_2", mounts=[(boxes.VOLUME, "v1", "/workspace"),
                                             (kind, source, f"/workspace/{link}/holt-evil/x")]).destroy()
            except boxes.Refused:
                pass
    assert not any("holt-evil" in n for n in names_below(clean.state) - before)
    assert not os.path.exists("/tmp/holt-evil")


@pytest.mark.parametrize("source", ["..", ".", "a/b", "../sb", "", "/etc"])
def test_volume_is_a_name(clean, source):
    with pytest.raises((boxes.Refused, RuntimeError, OSError)):
        clean.create("sb_1", mounts=[(boxes.VOLUME, source, "/workspace")])
    clean.sock.close()
    clean.connect()
    assert clean.list() == []


@pytest.mark.parametrize("path", ["/etc", "/", "/root", "/tmp/../etc", "/proc/1/root"])
def test_host_directories_are_not_allowed_unless_named(clean, path):
    with pytest.raises(boxes.Refused, match="not allowed"):
        clean.create("sb_1", mounts=[(boxes.HOST, path, "/mnt/x")])


CLOSED = ("/", "/proc", "/proc/sys", "/proc/sys/kernel", "/proc/kcore", "/sys", "/sys/fs", "/dev", "/dev/pts", "/dev/shm/x",
          "/dev/null", "/run/holt.sock", "/etc/ssl/holt-ca.pem", "//proc//", "/tmp/../proc", "/proc/.", "/tmp/..", "/./dev/../proc")
KINDS = {"own": (boxes.OWN, ""), "tmpfs": (boxes.TMPFS, ""), "volume": (boxes.VOLUME, "v1"), "shared": (boxes.SHARED, "s1"),
         "host": (boxes.HOST, "/usr/share")}


@pytest.mark.parametrize("kind", KINDS)
def test_places_that_no_mount_can_have(spawn, kind):
    """A mount of its own at /proc was a second one, without masks and writable."""
    s = boxes.Spawn(spawn.mode, args=("--allow", "/usr/share", "--allow-write", "/usr/share"))
    try:
        for target in CLOSED:
            with pytest.raises(boxes.Refused, match="cannot be the target of a mount"):
                s.create("sb_1", mounts=[(*KINDS[kind], target)])
        assert s.list() == []
    finally:
        s.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_no_link_leads_a_mount_to_such_a_place(clean, kind):
    """What the sandbox leaves in a volume or in its own root decides where a target leads, when it starts again."""
    mounts = [(boxes.VOLUME, "links", "/links")]
    box = clean.create("sb_1", flags=boxes.UPPER_DISK, mounts=mounts)
    for i, to in enumerate(CLOSED[:11]):
        box.sh(f"ln -s {to} /links/{i}; ln -s ../../..{to} /links/up{i}; ln -s {to} /home/{i}")
    box.destroy(keep=1)
    for i, to in enumerate(CLOSED[:11]):
        for at in (f"/links/{i}", f"/links/up{i}", f"/home/{i}"):
            with pytest.raises(boxes.Refused):
                box = clean.create("sb_1", flags=boxes.UPPER_DISK | boxes.RESTART, mounts=[*mounts, (*KINDS[kind], at)])
                assert b"rw" not in box.sh("grep ' /proc' /proc/mounts | tail -1").out, f"{to} by {at}"
                box.destroy(keep=1)
    clean.destroy("sb_1")


@pytest.mark.parametrize("target", ["/run", "/etc", "/sysdata", "/processes", "/devices/x", "/etc/ssl", "/procs", "/data/dev"])
def test_places_with_names_alike_are_free(clean, target):
    box = clean.create("sb_1", mounts=[(boxes.TMPFS, "", target)])
    assert f" {target} tmpfs".encode() in box.sh("cat /proc/mounts").out
    box.destroy()


def test_mounts_work(clean):
    box = clean.create("sb_1", mounts=[(boxes.TMPFS, "", "/data/deep/t"), (boxes.VOLUME, "v1", "/data/v")])
    assert box.sh("touch /data/deep/t/a /data/v/kept && grep -c /data/ /proc/mounts").out == b"2\n"
    box.destroy()
    box = clean.create("sb_2", mounts=[(boxes.VOLUME, "v1", "/elsewhere")])
    assert box.sh("ls /elsewhere").out == b"kept\n"
    box.destroy()


def test_large_mounts_hold_nobody_up():
    """An empty image of each size is made by a child: a create beside it is answered meanwhile."""
    s = open_spawn("root")
    try:
        total = os.statvfs(s.state).f_blocks * os.statvfs(s.state).f_frsize
        tib = 1 << 40
        if total < tib:
            with pytest.raises(boxes.Refused, match="more than the size of the disk"):
                s.create("sb_1", mounts=[(boxes.OWN, "", f"/m{i}", tib) for i in range(8)])
        with pytest.raises(boxes.Refused, match="different sizes"):
            s.create("sb_1", mounts=[(boxes.OWN, "", f"/m{i}", (64 + i) << 20) for i in range(9)])
        sizes = [min(total, tib) - (i << 20) - (1 << 20) for i in range(4)]
        large = s.send(3, s.create_payload("sb_large", mounts=[(boxes.OWN, "", f"/m{i}", n) for i, n in enumerate(sizes)]))
        small = s.send(3, s.create_payload("sb_small"))
        order = []
        while len(order) < 2:
            kind, tag, r, fds = s.receive()
            if tag in (large, small):
                assert kind == 4, r.error()
                order.append(tag)
            for fd in fds:
                os.close(fd)
        assert order == [small, large], "the small one waited"
        assert s.process.poll() is None
    finally:
        s.stop()
