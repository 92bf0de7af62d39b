"""Layers and the base are everybody's: no link that a sandbox or an image left leads the next set-up into them.

The set-up of a sandbox writes into its root (trusted authorities, resolv.conf) and mounts there, with more rights than whoever
is inside.  It once walked plain paths, and a link to /proc/self/fd/5 replaced the certificates of an image for all who came after.
"""
import hashlib
import os
import shutil

import pytest

import boxes
from conftest import open_spawn

UNGUARDED = f"{boxes.BUILD}/tests/security/holt-spawn-unguarded"
MODES = ("root", "rootless", "bare")
CA = "-----BEGIN CERTIFICATE-----\nholt\n-----END CERTIFICATE-----\n"
BUNDLE = "etc/ssl/certs/ca-certificates.crt"
DISK = boxes.UPPER_DISK | boxes.NETWORK
# Where a builder once held the trees: its descriptors; its stage, which only a walk from its own root finds (src/spawn/step_root.c).
WAYS = [*(f"/proc/self/fd/{n}" for n in range(3, 24)), *(f"/proc/1/fd/{n}" for n in (3, 5, 8)), "/proc/self/cwd/1", "/tmp/1", "/tmp/0"]


def make_layer(spawn, name, files=(), links=()):
    """layers/NAME/fs, as an unpacked image has them; its owner is root inside."""
    top = f"{spawn.state}/layers/{name}/fs"
    for path, content in files:
        os.makedirs(os.path.dirname(f"{top}/{path}"), exist_ok=True)
        with open(f"{top}/{path}", "w", encoding="utf-8") as f:
            f.write(content)
    for path, to in links:
        os.makedirs(os.path.dirname(f"{top}/{path}"), exist_ok=True)
        os.symlink(to, f"{top}/{path}")
    uid = spawn.user.uid if spawn.user else 0
    for d, _, names in os.walk(f"{spawn.state}/layers"):
        for n in [d, *(os.path.join(d, n) for n in names)]:
            os.lchown(n, uid, uid)
    os.chown(f"{spawn.state}/layers", uid, uid)


def shared_files(spawn):
    """Every file of the layers and the base with what is in it."""
    found = {}
    for top in ("layers", "base"):
        for d, _, names in os.walk(f"{spawn.state}/{top}"):
            for n in names:
                path = os.path.join(d, n)
                if os.path.islink(path):
                    found[path] = os.readlink(path)
                elif "/trust-" not in path:
                    with open(path, "rb") as f:
                        found[path] = hashlib.sha256(f.read()).hexdigest()
    return found


def busybox(spawn):
    path = shutil.which("busybox")
    if not path:
        pytest.skip("needs busybox-static for an image without libraries")
    names = [f"bin/{n}" for n in ("sh", "rm", "ln", "mkdir", "cat", "ls", "mv", "touch", "echo", "mount")]
    make_layer(spawn, "a" * 64, [(BUNDLE, "of the image\n")], [(n, "busybox") for n in names])
    to = f"{spawn.state}/layers/{'a' * 64}/fs/bin/busybox"
    shutil.copy(path, to)
    if spawn.user:
        os.chown(to, spawn.user.uid, spawn.user.uid)


@pytest.fixture(params=MODES)
def image(request):
    s = open_spawn(request.param)
    try:
        busybox(s)
        yield s
    finally:
        s.stop()


def restart(spawn, box, **spec):
    box.destroy(keep=1)
    try:
        return spawn.create(box.id, **{**spec, "flags": spec["flags"] | boxes.RESTART})
    except boxes.Refused:  # of what it left it may well fail; its files are there still
        return spawn.create(box.id, **{**spec, "flags": (spec["flags"] | boxes.RESTART) & ~boxes.NETWORK, "ca": ""})


def attack_by_restart(spawn, ways, directories=("/etc/ssl/certs", "/etc/ssl")):
    """The sandbox puts links in the place of what the set-up writes, and is started again."""
    spec = {"flags": DISK, "layers": ["a" * 64], "ca": CA}
    box = spawn.create("sb_1", **spec)
    for directory in directories:
        for way in ways:
            assert box.sh(f"rm -rf {directory}; ln -s {way}{directory} {directory}").code == 0
            box = restart(spawn, box, **spec)
    box.destroy()


def attack_by_image(spawn, ways):
    """An image above the shared layer brings the links."""
    for i, way in enumerate(ways):
        name = f"{i:064x}"
        make_layer(spawn, name, links=[("etc/ssl", f"{way}/etc/ssl"), ("usr", f"{way}/etc"), ("etc/pki", f"{way}/etc/ssl")])
    before = shared_files(spawn)
    for i in range(len(ways)):
        try:
            spawn.create("sb_2", flags=boxes.NETWORK, layers=["a" * 64, f"{i:064x}"], ca=CA).destroy()
        except boxes.Refused:
            pass
    return before


def test_certificates_of_an_image_after_a_restart(image):
    before = shared_files(image)
    attack_by_restart(image, WAYS)
    assert shared_files(image) == before
    box = image.create("sb_3", layers=["a" * 64])
    assert box.sh(f"cat /{BUNDLE}").out == b"of the image\n"
    box.destroy()


def test_certificates_by_a_hostile_image(image):
    assert attack_by_image(image, WAYS) == shared_files(image)


def test_the_host_image_after_a_restart(image):
    """Its programs are attached in directories that it may replace; so is the bundle of authorities."""
    spec = {"flags": DISK, "ca": CA}
    before = shared_files(image)
    box = image.create("sb_1", **spec)
    for way in ("/proc/self/fd/5", "/tmp/0", "/proc/self/cwd/0"):
        assert box.sh(f"mv /etc/ssl /etc/ssl.$$; ln -s {way}/etc/ssl /etc/ssl; rm -rf /opt; ln -s {way}/opt /opt").code == 0
        box = restart(image, box, **spec)
        assert box.sh("ls /usr/bin/env").code == 0
    box.destroy()
    assert shared_files(image) == before


@pytest.mark.parametrize("mode", MODES)
def test_layers_are_overwritten_without_the_guards(mode):
    """Each of the two suffices: without both, the image's own path through the builder's stage works."""
    for omit, falls in (("inside", False), ("layers_readonly", False), ("inside,layers_readonly", True)):
        s = open_spawn(mode, program=UNGUARDED, env={"HOLT_OMIT": omit})
        try:
            busybox(s)
            before = shared_files(s)
            attack_by_restart(s, ["/tmp/1"])
            assert (shared_files(s) != before) == falls, f"without '{omit}'"
        finally:
            s.stop()
