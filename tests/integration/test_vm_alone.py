"""holt vm: machines where no holtd runs; a later holtd finds them."""
import os
import subprocess

import pytest

from daemon import BUILD, ROOT, environment, native, programs_of, wait_for
from hypervisor import Hypervisor, lacking, minimal_base

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
LONG = 300


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    """A state directory that no holtd serves, and a host."""
    if not os.path.exists(f"{BUILD}/holt-virt"):
        pytest.skip("this build has no holt-virt: install libvirt-dev (tools/deps vm)")
    if lacking():
        pytest.skip(lacking())
    d = tmp_path_factory.mktemp("alone")
    host = Hypervisor(tmp_path_factory.mktemp("host"))
    (d / "holt.yaml").write_text(f"vm_uri: qemu:///system?socket={host.sock}\nvm_pool_dir: {host.pool}\nvm_accel: tcg\nuser: root\n")
    minimal_base(BUILD, ROOT, d / "state")
    yield d, host
    host.end()


def vm(d, *argv, fails=False):
    r = subprocess.run([f"{BUILD}/holt", "vm", argv[0], "--state", f"{d}/state", "--config", f"{d}/holt.yaml", *argv[1:]], capture_output=True, text=True,
                       timeout=LONG, stdin=subprocess.DEVNULL, check=False, env=environment({"HOME": str(d), "HOLT_RUNTIME": "native"}))
    assert (r.returncode != 0) == fails, r
    assert not list(programs_of(f"{d}/state", "holtd")), "a holtd is left"
    return r.stdout + r.stderr


def test_a_machine_without_holtd(ground):
    d, host = ground
    said = vm(d, "provision", "solo", "--profile", "basic", "--cpus", "1", "--memory", "200", "--network-mode", "isolated", "--start")
    assert "running" in said and "solo" in said, said
    (domain,) = host.domains()
    assert domain in host.virsh("list", "--name").stdout  # it outlives the command
    assert vm(d, "ssh", "solo", "--", "sh", "-c", "echo mine > /workspace/file; hostname") == "solo\n"
    assert "already" in vm(d, "provision", "solo", fails=True)
    holtd = native(d, "--config", f"{d}/holt.yaml")  # now there is one, and it knows the machine
    box = holtd.ok("GET", "/holt/v1/sandboxes/solo")
    assert box["state"] == "running" and f"holt-{box['id']}" == domain and box["limits"]["memory_bytes"] == 200 << 20
    wait_for(lambda: holtd.request("POST", "/holt/v1/sandboxes/solo/execs", {"command": "true"}, timeout=LONG)[0] == 200, 60)
    assert holtd.ok("POST", "/holt/v1/sandboxes/solo/execs", {"command": "cat /workspace/file"}, timeout=LONG)["stdout"] == "mine\n"
    assert holtd.stop() == 0
    said = vm(d, "reprovision", "solo")
    assert box["id"] in said and host.domains() == [domain]
    assert vm(d, "ssh", "solo", "--", "sh", "-c", "ls /workspace; hostname") == "solo\n"
    vm(d, "destroy", "solo")
    assert host.domains() == [] and host.volumes() == []


def test_without_start_it_is_stopped(ground):
    d, host = ground
    assert "stopped" in vm(d, "provision", "later", "--memory", "200M")
    assert host.virsh("list", "--name").stdout.split() == [] and len(host.domains()) == 1
    vm(d, "destroy", "later")
    assert host.domains() == [] and host.volumes() == []


def test_nonsense_is_refused(ground):
    d, host = ground
    assert "no size" in vm(d, "provision", "x", "--memory", "lots", fails=True)
    assert "allowlist" in vm(d, "provision", "x", "--network-mode", "full", "--allow", "a.example", fails=True)
    assert "there is no sandbox 'nobody'" in vm(d, "destroy", "nobody", fails=True)
    assert "does not fit on host 'local'" in vm(d, "provision", "x", "--memory", "4000000", fails=True)  # 4 TB
    assert host.domains() == []
