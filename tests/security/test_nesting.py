"""Sandboxes with `nesting`: namespaces and mounts can be made inside, and every attempt to get out fails all the same."""
import pytest

import boxes
from attempts import ATTEMPTS, CALLS
from conftest import LIMITS, open_spawn, put_probe

# What nesting is for: the calls may succeed, or fail for want of a capability that only a namespace of one's own gives.
OPENED = {name for name in CALLS if name.split("_")[0] in ("unshare", "setns", "mount", "umount", "remount", "fsopen", "move", "open")
          or name in ("clone_user", "clone_user_high", "clone_mnt", "clone_net", "pivot_root")
          or name.startswith(("netlink_", "socket_sctp", "socket_dccp"))}  # protocols, for a network of its own
OVERLAY = """set -e
mount -t tmpfs t /mnt; mkdir /mnt/u /mnt/w /mnt/l /mnt/m; echo lower > /mnt/l/f
mount -t overlay o -o lowerdir=/mnt/l,upperdir=/mnt/u,workdir=/mnt/w,userxattr /mnt/m
echo upper > /mnt/m/f; cat /mnt/u/f /mnt/l/f"""
WITHIN = {  # by root of a namespace made inside: shell lines that print nothing when the guard holds
    "the masks stay": "for f in kcore keys timer_list; do umount /proc/$f 2>/dev/null && echo took off $f; done; cat /proc/keys",
    "sysctl stays read-only": "mount -o remount,rw,bind /proc/sys 2>/dev/null && echo remounted;"
                              "umount /proc/sys 2>/dev/null && echo took off; (echo x > /proc/sys/kernel/core_pattern) 2>/dev/null && echo wrote",
    "a fresh /proc without masks": "mkdir -p /tmp/p; mount -t proc p /tmp/p 2>/dev/null && ls /tmp/p",
    "no /sys": "mkdir -p /tmp/s; mount -t sysfs s /tmp/s 2>/dev/null && ls /tmp/s",
    "no cgroup v1": "mkdir -p /tmp/c; mount -t cgroup -o memory c /tmp/c 2>/dev/null && ls /tmp/c",
    "/usr stays read-only": "mount -o remount,rw,bind /usr 2>/dev/null && touch /usr/x && echo wrote; (echo > /usr/x) 2>/dev/null && echo wrote",
    "no device": "mknod /tmp/d b 254 0 2>/dev/null && echo made; head -c1 /tmp/d 2>/dev/null",
    "no disk": "mkdir -p /tmp/e; for d in vda sda; do mount -t ext4 /dev/$d /tmp/e 2>/dev/null && ls /tmp/e; done",
    "init's root": "ls /proc/1/root/ 2>/dev/null; readlink /proc/1/fd/* /proc/1/exe /proc/1/cwd",
    "init's namespaces": "nsenter -t 1 -m true 2>/dev/null && echo entered",
    "init's end": "kill -9 1; kill -STOP 1; true",
}


@pytest.fixture(scope="module", params=["root", "rootless"])
def nests(request):
    s = open_spawn(request.param, args=("--nesting", "yes"))
    yield s
    s.stop()


@pytest.fixture(scope="module")
def host(nests, prey):
    prey.neighbour = put_probe(nests.create("sb_neighbour", **LIMITS))
    yield prey
    prey.neighbour.destroy()


@pytest.fixture
def box(nests):
    b = put_probe(nests.create("sb_nests", flags=boxes.NESTING, **LIMITS))
    yield b
    b.destroy()


def test_the_operator_decides(spawn):
    with pytest.raises(boxes.Refused, match="was started without '--nesting yes'"):
        spawn.create("sb_nests", flags=boxes.NESTING, **LIMITS)


def test_namespaces_and_mounts_can_be_made(box):
    assert box.sh("unshare -Urm true && unshare -Urn true && unshare -Ur unshare -Ur true && echo yes").out == b"yes\n"
    r = box.run("unshare", "-Urm", "sh", "-c", OVERLAY)
    assert r.out == b"upper\nlower\n", str(r)
    assert b"denied" in box.sh("mount -t tmpfs t /mnt").err, "the sandbox's own root has no more rights than before"


def test_without_it_the_errno_is_clear(nests):
    b = nests.create("sb_plain", **LIMITS)
    assert b"unshare failed: Operation not permitted" in b.sh("unshare -Urm true").err
    b.destroy()


def test_namespaces_are_bounded(box):
    source = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
held = []
while libc.unshare(0x04000000) == 0:  # CLONE_NEWUTS
    held.append(open("/proc/self/ns/uts"))
print(len(held) < 200, errno.errorcode[ctypes.get_errno()])
"""
    r = box.run("unshare", "-Ur", "python3", "-c", source)
    assert r.out == b"True ENOSPC\n", str(r)


@pytest.mark.parametrize("name", sorted(set(ATTEMPTS) - {"nested_user_namespace"}))
def test_attempt_fails(box, host, name):
    if box.spawn.user and name == "users_of_neighbours":
        pytest.skip("without root, sandboxes share their users: docs/threat-model.md")
    ATTEMPTS[name](box, host)
    assert box.alive() and host.neighbour.alive()


@pytest.mark.parametrize("name", WITHIN)
def test_attempt_from_within_fails(box, name):
    r = box.run("unshare", "-Urm", "sh", "-c", WITHIN[name])
    assert r.out == b"", str(r)
    assert box.alive() and box.sh("echo up").out == b"up\n"


def test_other_calls_stay_refused(box):
    out = box.run("/tmp/probe", "calls").out.decode()
    found = dict(line.split(" ", 1) for line in out.splitlines())
    wrong = {n: found[n] for n in set(CALLS) - OPENED if found[n] not in CALLS[n]}
    assert not wrong
