#!/usr/bin/env python3
"""What a virtual machine costs: a create that boots, one that continues from saved memory, a bare boot by virsh, and a command in a running one.
usage: tests/bench/machines.py [N]   (root; needs tools/deps vm; its libvirtd, base and holtd are its own, machines run by TCG)"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
from daemon import BUILD, native  # noqa: E402
from hypervisor import Hypervisor, lacking  # noqa: E402

MEMORY = 200 << 20


def took(work, *args, **more):
    began = time.monotonic()
    result = work(*args, **more)
    return (time.monotonic() - began) * 1000, result


def create(d, **more):
    """Until a command's first output is here."""
    box = d.ok("POST", "/holt/v1/sandboxes", {"runtime": "vm", "memory_bytes": MEMORY, **more}, timeout=300)["id"]
    run(d, box)
    return box


def run(d, box):
    r = d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["echo", "up"]}, timeout=300)
    assert r["stdout"] == "up\n", r


def bare(host, domain, console):
    """virsh start, until the machine's first program says so on its console."""
    assert host.virsh("start", domain).returncode == 0
    while b"waiting for orders" not in open(console, "rb").read():
        time.sleep(0.005)
    host.virsh("destroy", domain)


def line(name, values, of=None):
    ratio = f"  {statistics.median(values) / statistics.median(of):.2f} of a cold create" if of else ""
    print(f"{name:40} median {statistics.median(values):8.1f} ms   min {min(values):8.1f}   max {max(values):8.1f}   n {len(values)}{ratio}", flush=True)


def measure(d, host, n):
    d.ok("DELETE", f"/holt/v1/sandboxes/{create(d)}", timeout=300)  # the template is there
    d.ok("DELETE", f"/holt/v1/sandboxes/{create(d, disk_bytes=600 << 20)}", timeout=300)
    cold, clones, execs, bares = [], [], [], []
    stopped = create(d)
    d.ok("POST", f"/holt/v1/sandboxes/{stopped}/stop", timeout=300)
    for _ in range(n):  # in turn: the load of others counts for all
        ms, box = took(create, d, disk_bytes=600 << 20)
        cold.append(ms)
        d.ok("DELETE", f"/holt/v1/sandboxes/{box}", timeout=300)
        ms, box = took(create, d)
        clones.append(ms)
        execs += [took(run, d, box)[0] for _ in range(20)]
        d.ok("DELETE", f"/holt/v1/sandboxes/{box}", timeout=300)
        console = f"{host.pool}/{stopped}.console"
        open(console, "wb").close()
        bares.append(took(bare, host, f"holt-{stopped}", console)[0])
    line("create that boots, first output", cold)
    line("create from saved memory, first output", clones, cold)
    line("bare: virsh start to init", bares, cold)
    line("command in a running machine", execs)


def main():
    why = lacking() or (None if os.path.exists(f"{BUILD}/holt-virt") else "this build has no holt-virt")
    if why:
        sys.exit(f"machines: {why}")
    with tempfile.TemporaryDirectory(prefix="holt-machines-") as top:
        os.makedirs(f"{top}/d/state")
        os.makedirs(f"{top}/h")
        subprocess.run([f"{BUILD}/holt", "image", "build-vm", "--state", f"{top}/d/state", "--minimal", "--size", "512M"], check=True, capture_output=True)
        host = Hypervisor(f"{top}/h")
        try:
            d = native(f"{top}/d", "--vm-uri", host.uri, "--vm-pool-dir", host.pool, "--vm-accel", "tcg")
            print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors", flush=True)
            measure(d, host, int(sys.argv[1]) if len(sys.argv) > 1 else 5)
            d.clear()
            d.stop()
        finally:
            host.end()


if __name__ == "__main__":
    main()
