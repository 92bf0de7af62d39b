"""Volumes keep what a sandbox left in them: links that wait for the next one's set-up."""
import os

import pytest

import boxes


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


def test_mounts_do_not_cover_what_guards(clean):
    """A mount over /proc or /dev is of the sandbox alone, and init goes on."""
    for target in ("/proc", "/proc/sys", "/dev", "/usr", "/etc"):
        try:
            box = clean.create("sb_1", mounts=[(boxes.TMPFS, "", target)], pids=50)
        except boxes.Refused:
            continue
        assert box.alive()
        box.destroy()


def test_mounts_work(clean):
    box = clean.create("sb_1", mounts=[(boxes.TMPFS, "", "/data/deep/t"), (boxes.VOLUME, "v1", "/data/v")])
    assert box.sh("touch /data/deep/t/a /data/v/kept && grep -c /data/ /proc/mounts").out == b"2\n"
    box.destroy()
    box = clean.create("sb_2", mounts=[(boxes.VOLUME, "v1", "/elsewhere")])
    assert box.sh("ls /elsewhere").out == b"kept\n"
    box.destroy()
