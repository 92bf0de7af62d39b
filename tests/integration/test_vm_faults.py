"""Machines that cannot be made: the error says what and why, and nothing is left."""
import os
import subprocess

import pytest

from daemon import BUILD, ROOT, native
from hypervisor import Hypervisor, lacking, minimal_base

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
LONG = 300


@pytest.fixture(autouse=True)
def possible():
    if not os.path.exists(f"{BUILD}/holt-virt"):
        pytest.skip("this build has no holt-virt: install libvirt-dev (tools/deps vm)")
    if lacking():
        pytest.skip(lacking())


@pytest.fixture
def host(tmp_path):
    h = Hypervisor(tmp_path)
    yield h
    h.end()


def refused(tmp_path, host):
    """The error of a create; nothing of the machine is left."""
    d = native(tmp_path, "--vm-uri", host.uri, "--vm-pool-dir", host.pool, "--vm-accel", "tcg")
    try:
        status, reply, _ = d.request("POST", "/holt/v1/sandboxes", {"runtime": "vm", "name": "never", "memory_bytes": 200 << 20}, timeout=LONG)
        assert d.ok("GET", "/holt/v1/sandboxes")["sandboxes"] == []
        assert host.domains() == [] and host.volumes() == []
        return status, reply["error"]
    finally:
        assert d.stop() == 0


def test_a_base_that_never_boots(tmp_path, host):
    """The last words of its console are in the error."""
    minimal_base(BUILD, ROOT, tmp_path / "state")
    (tmp_path / "state" / "vm" / "base" / "initrd").write_bytes(b"no initrd")
    status, error = refused(tmp_path, host)
    assert status == 503 and "did not start" in error["message"] and "Kernel panic" in error["message"], error


def test_a_full_disk(tmp_path):
    minimal_base(BUILD, ROOT, tmp_path / "state")
    os.makedirs(tmp_path / "pool")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "holt-test", str(tmp_path / "pool")], check=True)
    try:
        host = Hypervisor(tmp_path)
        try:
            status, error = refused(tmp_path, host)
            assert status == 507 and "is full" in error["message"] and "local" in error["message"] and "pool_dir" in error["hint"], error
            assert host.virsh("vol-list", "holt").stdout.strip() == ""  # no half of a base either
        finally:
            host.end()
    finally:
        subprocess.run(["umount", "-l", str(tmp_path / "pool")], check=True)
