"""The runtime of virtual machines: a real libvirtd and QEMU (TCG), a small base made from packages."""
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

from daemon import ASAN, BUILD, ROOT, native, programs_of, wait_for
from egress import Peer, http_echo
from hypervisor import Hypervisor, lacking, minimal_base

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
NAMES = {"web.test": ["127.0.0.1"], "other.test": ["127.0.0.1"]}
LONG = 300  # seconds: a boot under TCG on a busy machine


def why_not():
    if not os.path.exists(f"{BUILD}/holt-virt"):
        return "this build has no holt-virt: install libvirt-dev (tools/deps vm)"
    return lacking()


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A state directory with a base of machines."""
    if why_not():
        pytest.skip(why_not())
    d = tmp_path_factory.mktemp("vm")
    minimal_base(BUILD, ROOT, d / "state")
    return d


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    h = Hypervisor(tmp_path_factory.mktemp("host"))
    yield h
    h.end()


def start(base, host, names):
    return native(base, "--vm-uri", host.uri, "--vm-pool-dir", host.pool, "--vm-accel", "tcg", "--egress-dns", names.address)


class Daemon:
    """Replaced by a test that kills it."""

    def __init__(self, base, host, names):
        self.base, self.host, self.names = base, host, names
        self.d = start(base, host, names)

    def again(self):
        self.d = start(self.base, self.host, self.names)
        return self.d


@pytest.fixture(scope="module")
def daemon(base, host, names):
    x = Daemon(base, host, names)
    yield x
    x.d.clear()
    assert x.d.stop() == 0
    assert host.domains() == [] and host.volumes() == []
    assert wait_for(lambda: not list(programs_of(str(base / "state"), "holt-virt")), 30)


@pytest.fixture(scope="module")
def machine(daemon):
    """One that tests share: they leave it running."""
    return daemon.d.ok("POST", "/holt/v1/sandboxes", {"runtime": "vm", "name": "shared", "memory_bytes": 200 << 20}, timeout=LONG)


def sh(d, box, line, **more):
    return d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": line, **more}, timeout=LONG)


def test_it_is_another_kernel(daemon, machine):
    assert machine["runtime"] == "vm" and machine["state"] == "running"
    r = sh(daemon.d, "shared", "uname -r; hostname; id -u; cat /proc/1/comm; ls /sys/class/net; grep MemTotal /proc/meminfo")
    release, name, uid, first, net, memory = r["stdout"].splitlines()
    assert release != os.uname().release and "amd64" in release
    assert (name, uid, first, net) == ("shared", "0", "holt-init", "lo")
    assert 100_000 < int(memory.split()[1]) < 200_000  # KiB


def test_commands_files_and_terminals(daemon, machine):
    d = daemon.d
    assert sh(d, "shared", "echo out; echo err >&2; exit 7")["exit_code"] == 7
    blob = os.urandom(300_000)
    path = f"/holt/v1/sandboxes/{machine['id']}/files?path=/workspace/blob"
    d.ok("PUT", path, blob, headers={"Content-Type": "application/octet-stream"}, timeout=LONG)
    assert sh(d, "shared", "wc -c < /workspace/blob")["stdout"].strip() == str(len(blob))
    r = sh(d, "shared", "test -t 0 && stty size", pty={"rows": 33, "cols": 77})
    assert "33 77" in r["stdout"]
    assert d.ok("GET", f"/holt/v1/sandboxes/{machine['id']}/stats")["cpu_us"] > 0


def test_a_pause_stops_it(daemon, machine):
    d = daemon.d
    x = d.ok("POST", "/holt/v1/sandboxes/shared/execs", {"command": "while :; do echo t; sleep 0.1; done", "background": True}, timeout=LONG)["id"]
    output = f"/holt/v1/sandboxes/shared/execs/{x}/output?stream=stdout&offset=0"
    wait_for(lambda: d.ok("GET", output), 60)
    d.ok("POST", "/holt/v1/sandboxes/shared/pause", timeout=LONG)
    assert "paused" in daemon.host.virsh("list", "--all").stdout
    d.ok("POST", "/holt/v1/sandboxes/shared/resume", timeout=LONG)
    before = len(d.ok("GET", output))
    wait_for(lambda: len(d.ok("GET", output)) > before, 60)
    d.ok("POST", f"/holt/v1/sandboxes/shared/execs/{x}/cancel", timeout=LONG)


def test_killed_helpers_lose_nothing(daemon, machine):
    """holt-virt, then holtd, by kill -9 under a command: every line comes once."""
    d, state = daemon.d, f"{daemon.base}/state"
    x = d.ok("POST", "/holt/v1/sandboxes/shared/execs", {"command": "i=0; while [ $i -lt 300 ]; do echo $i; i=$((i+1)); sleep 0.05; done",
                                                          "background": True}, timeout=LONG)["id"]
    one = f"/holt/v1/sandboxes/shared/execs/{x}"
    wait_for(lambda: d.ok("GET", f"{one}/output?stream=stdout&offset=0"), 60)
    virt = wait_for(lambda: list(programs_of(state, "holt-virt")), 10)
    os.kill(virt[0], signal.SIGKILL)
    wait_for(lambda: [p for p in programs_of(state, "holt-virt") if p not in virt], 60)
    d.process.kill()
    d.process.wait()
    d = daemon.again()
    wait_for(lambda: d.ok("GET", one)["state"] not in ("starting", "running"), LONG)
    ended = d.ok("GET", one)
    assert ended["exit_code"] == 0, ended
    assert d.ok("GET", f"{one}/output?stream=stdout&offset=0") == "".join(f"{i}\n" for i in range(300))


def leftovers(daemon, box):
    """What tools/leftovers finds of a machine, by kind."""
    r = subprocess.run([f"{ROOT}/tools/leftovers", "--serving", "--machines", daemon.host.uri, daemon.d.state], capture_output=True, text=True,
                       timeout=LONG, check=False)
    assert r.stderr == ""
    return sorted(line.split()[0] for line in r.stdout.splitlines() if box in line)


def test_stop_keeps_the_disk_and_destroy_leaves_nothing(daemon):
    d, host = daemon.d, daemon.host
    box = d.ok("POST", "/holt/v1/sandboxes", {"runtime": "vm", "name": "kept"}, timeout=LONG)["id"]
    sh(d, "kept", "echo here > /workspace/file")
    d.ok("POST", "/holt/v1/sandboxes/kept/stop", timeout=LONG)
    assert f"holt-{box}" in host.virsh("list", "--inactive", "--name").stdout.split()
    assert leftovers(daemon, box) == ["domain", "volume", "volume"]  # its disk, its console
    d.ok("POST", "/holt/v1/sandboxes/kept/start", timeout=LONG)
    assert sh(d, "kept", "cat /workspace/file")["stdout"] == "here\n"
    d.ok("DELETE", "/holt/v1/sandboxes/kept", timeout=LONG)
    assert f"holt-{box}" not in host.domains()
    assert leftovers(daemon, box) == []


def test_what_happens_to_it_outside_is_noticed(daemon, machine):
    """virsh destroy, and a killed QEMU: the sandbox has failed, at once, and leaves nothing."""
    d, host = daemon.d, daemon.host
    for how in ("virsh", "kill"):
        box = d.ok("POST", "/holt/v1/sandboxes", {"runtime": "vm", "name": f"hit-by-{how}", "memory_bytes": 200 << 20}, timeout=LONG)["id"]
        if how == "virsh":
            assert host.virsh("destroy", f"holt-{box}").returncode == 0
        else:
            pid = [p for p in host.qemus() if box.encode() in open(f"/proc/{p}/cmdline", "rb").read()]
            os.kill(pid[0], signal.SIGKILL)
        began = time.monotonic()
        wait_for(lambda box=box: d.ok("GET", f"/holt/v1/sandboxes/{box}")["state"] == "failed", 30, 0.05)
        assert time.monotonic() - began < 2 * (5 if os.getloadavg()[0] > 4 else 1)
        d.ok("DELETE", f"/holt/v1/sandboxes/{box}", timeout=LONG)
        assert leftovers(daemon, box) == []


def test_one_started_outside_runs_again(daemon, machine):
    """virsh start of one that is stopped, and of one that was ended outside: the same machine takes orders, by its own disk."""
    d, host = daemon.d, daemon.host
    box = d.ok("POST", "/holt/v1/sandboxes", {"runtime": "vm", "name": "woken", "memory_bytes": 200 << 20}, timeout=LONG)["id"]
    sh(d, "woken", "echo here > /workspace/file")
    d.ok("POST", "/holt/v1/sandboxes/woken/stop", timeout=LONG)
    for again in range(2):
        assert host.virsh("start", f"holt-{box}").returncode == 0
        pid = [p for p in host.qemus() if box.encode() in open(f"/proc/{p}/cmdline", "rb").read()]
        wait_for(lambda: d.ok("GET", f"/holt/v1/sandboxes/{box}")["state"] == "running", 120, 0.1)
        assert sh(d, "woken", "hostname; cat /workspace/file")["stdout"] == "woken\nhere\n"
        assert pid and os.path.exists(f"/proc/{pid[0]}")  # taken, not booted again
        if again == 0:
            assert host.virsh("destroy", f"holt-{box}").returncode == 0
            wait_for(lambda: d.ok("GET", f"/holt/v1/sandboxes/{box}")["state"] == "failed", 30, 0.05)
    d.ok("DELETE", f"/holt/v1/sandboxes/{box}", timeout=LONG)
    assert leftovers(daemon, box) == []


def test_a_pause_from_outside_is_shown(daemon, machine):
    d, host, box = daemon.d, daemon.host, machine["id"]
    for verb, state in (("suspend", "paused"), ("resume", "running")):
        assert host.virsh(verb, f"holt-{box}").returncode == 0
        wait_for(lambda state=state: d.ok("GET", f"/holt/v1/sandboxes/{box}")["state"] == state, 30, 0.05)
    assert sh(d, "shared", "echo alive")["stdout"] == "alive\n"
    d.ok("POST", "/holt/v1/sandboxes/shared/pause", timeout=LONG)  # and one of holtd's own, which somebody takes back
    assert host.virsh("resume", f"holt-{box}").returncode == 0
    wait_for(lambda: d.ok("GET", f"/holt/v1/sandboxes/{box}")["state"] == "running", 30, 0.05)


def test_the_helper_has_few_rights(daemon, machine):
    pid = wait_for(lambda: list(programs_of(f"{daemon.base}/state", "holt-virt")), 10)[0]
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status", encoding="ascii").read().splitlines())
    assert int(status["CapEff"], 16) in (0, 1 << 2) and status["CapEff"] == status["CapPrm"]  # CAP_DAC_READ_SEARCH: the base below a closed directory
    assert status["NoNewPrivs"] == "1" and (ASAN or status["Seccomp"] == "2")


def test_clones_of_one_memory_have_nothing_in_common(daemon, machine):
    """Machines of one shape continue from one saved memory: names, ids, random numbers and disks are their own, the clock is right."""
    d, host = daemon.d, daemon.host
    line = "hostname; cat /etc/machine-id /proc/sys/kernel/random/uuid; head -c 16 /dev/urandom | od -An -tx1; date +%s; cat /workspace/mine 2>/dev/null"
    seen = []
    for name in ("twin-a", "twin-b"):
        box = d.ok("POST", "/holt/v1/sandboxes", {"runtime": "vm", "name": name, "memory_bytes": 200 << 20}, timeout=LONG)["id"]
        assert "base-" in host.virsh("vol-dumpxml", f"{box}.qcow2", "--pool", "holt").stdout.split("<backingStore>")[1].split(".200-1.qcow2")[0]
        seen.append(sh(d, name, line)["stdout"].splitlines())
        sh(d, name, "echo mine > /workspace/mine")
        assert abs(int(seen[-1][4]) - time.time()) < 30
    assert [len(x) for x in seen] == [5, 5]  # no file of the other's
    assert all(seen[0][i] != seen[1][i] for i in range(4)), seen
    assert len(set(seen[0][1])) > 4 and "base-" not in " ".join(host.domains())
    d.ok("POST", "/holt/v1/sandboxes/twin-a/stop", timeout=LONG)
    d.ok("POST", "/holt/v1/sandboxes/twin-a/start", timeout=LONG)  # boots, from its own disk
    again = sh(d, "twin-a", line)["stdout"].splitlines()
    assert again[:2] == seen[0][:2] and again[5] == "mine"
    for name in ("twin-a", "twin-b"):
        d.ok("DELETE", f"/holt/v1/sandboxes/{name}", timeout=LONG)


def test_a_host_that_hangs_slows_nobody(daemon, machine):
    """libvirtd is stopped: what needs it fails in time, then at once; everything else goes on, and so does it afterwards."""
    d, pid = daemon.d, daemon.host.pid()
    stats = "/holt/v1/sandboxes/shared/stats"
    d.ok("GET", stats, timeout=LONG)
    os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        status, reply, _ = d.request("GET", stats)
        assert status == 504 and "did not answer in time" in reply["error"]["message"], reply
        assert time.monotonic() - began > 4
        began = time.monotonic()
        status, reply, _ = d.request("GET", stats)
        assert status == 503 and "the next attempt is in" in reply["error"]["message"], reply
        assert d.ok("POST", "/holt/v1/run", {"runtime": "native", "command": ["echo", "on"]})["stdout"] == "on\n"
        assert time.monotonic() - began < 4
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: d.request("GET", stats)[0] == 200, 120, 0.5)
    assert sh(d, "shared", "echo alive")["stdout"] == "alive\n"


def test_a_reboot_ends_only_that_machine(daemon, machine):
    d = daemon.d
    d.ok("POST", "/holt/v1/sandboxes", {"runtime": "vm", "name": "rash"}, timeout=LONG)
    d.request("POST", "/holt/v1/sandboxes/rash/execs", {"command": "echo b > /proc/sysrq-trigger; reboot -f; sleep 60", "timeout_ms": 60000}, timeout=LONG)
    wait_for(lambda: d.ok("GET", "/holt/v1/sandboxes/rash")["state"] in ("failed", "stopped"), 60)
    assert sh(d, "shared", "echo alive")["stdout"] == "alive\n"
    d.ok("DELETE", "/holt/v1/sandboxes/rash", timeout=LONG)


# --- networks: no interface; init leads connections out, holt-egress judges them ---

@pytest.fixture(scope="module")
def web():
    """Says what it was asked, and keeps it."""
    seen = []

    def serve(c):
        seen.append(c.recv(65536, socket.MSG_PEEK).decode())
        http_echo(c)

    p = Peer(serve)
    p.seen = seen
    yield p
    p.close()


@pytest.fixture(scope="module")
def online(daemon, web):
    """A machine with an allowlist and a secret."""
    d = daemon.d
    d.ok("PUT", "/holt/v1/secrets/key", {"value": "canary-value-of-a-secret", "hosts": ["web.test"], "plain": True})
    allow = [f"web.test:{web.port}", {"cidr": "127.0.0.1/32", "ports": [web.port]}]
    return d.ok("POST", "/holt/v1/sandboxes", {"runtime": "vm", "name": "online", "memory_bytes": 200 << 20, "secrets": [{"name": "key", "env": "KEY"}],
                                               "network": {"mode": "allowlist", "allow": allow}}, timeout=LONG)["id"]


def denied(d, host):
    return [e["data"] for e in d.ok("GET", "/holt/v1/events?type=egress.denied&limit=1000")["events"] if e["data"]["host"] == host]


def test_an_allowlist_holds_without_an_interface(daemon, online, web, names):
    d, url = daemon.d, f"http://web.test:{web.port}"
    del names.asked[:]
    r = sh(d, online, f"ls /sys/class/net; wget -qO - {url}/proxied; wget -qO - -Y off {url}/direct")
    assert r["stdout"].startswith("lo\nGET /proxied HTTP/1.1") and "GET /direct HTTP/1.1" in r["stdout"], r
    assert set(names.asked) == {"web.test"}  # by holt-egress; the machine's own resolver asks nobody
    r = sh(d, online, f"wget -qO - -Y off http://evil.test:{web.port}/; wget -qO - -Y off http://192.0.2.7/; wget -qO - http://other.test:{web.port}/; "
                      "nslookup leak.evil.test 9.9.9.9")
    assert "GET /" not in r["stdout"] and "198.18." in r["stdout"], r
    for host in ("evil.test", "192.0.2.7", "other.test"):
        wait_for(lambda host=host: denied(d, host))
    assert set(names.asked) == {"web.test"}


def test_a_placeholder_becomes_the_secret_outside(daemon, online, web):
    r = sh(daemon.d, online, f"echo $KEY; grep -c BEGIN /etc/ssl/certs/ca-certificates.crt; wget -qO - --header \"X-Key: $KEY\" http://web.test:{web.port}/secret")
    placeholder, authorities, request = r["stdout"].split("\n", 2)
    assert placeholder.startswith("holt-secret-") and int(authorities) >= 1
    assert "canary-value-of-a-secret" not in r["stdout"] and placeholder in request, request  # what comes back is masked again
    assert "canary-value-of-a-secret" in web.seen[-1]


def test_much_goes_both_ways_and_egress_comes_back(daemon, online, web):
    d, state = daemon.d, f"{daemon.base}/state"
    line = f"head -c 1500000 /dev/zero | tr '\\0' x > /tmp/body; wget -qO - --post-file /tmp/body http://web.test:{web.port}/big | wc -c"
    assert int(sh(d, online, line)["stdout"]) > 1_500_000
    egress = list(programs_of(state, "holt-egress"))
    os.kill(egress[0], signal.SIGKILL)
    wait_for(lambda: [p for p in programs_of(state, "holt-egress") if p not in egress], 60)
    wait_for(lambda: sh(d, online, f"wget -qO - http://web.test:{web.port}/again")["exit_code"] == 0, 60, 1)
    d.ok("PATCH", f"/holt/v1/sandboxes/{online}", {"network": {"mode": "allowlist"}})
    assert sh(d, online, f"wget -qO - http://web.test:{web.port}/closed")["exit_code"] != 0


def test_what_it_lacks_is_said(daemon):
    d = daemon.d
    for more, word in (({"network": {"mode": "raw"}}, "network"), ({"memory_bytes": 32 << 20}, "96 MiB"), ({"disk_bytes": 8 << 20}, "512 MiB")):
        status, reply, _ = d.request("POST", "/holt/v1/sandboxes", {"runtime": "vm", "name": "no", **more}, timeout=LONG)
        assert status >= 400 and word in reply["error"]["message"], reply
    assert not [n for n in daemon.host.domains() if "no" in n.split("-")[1:2]]


def test_down_switches_off_and_purge_removes(base, host, names, tmp_path, request):
    """Another installation with the same base, and so with templates of the first; last, because the base's volumes go too."""
    shutil.copytree(base / "state" / "vm", tmp_path / "state" / "vm")
    d = start(tmp_path, host, names)
    request.addfinalizer(lambda: d.process.poll() is None and d.process.kill())
    box = d.ok("POST", "/holt/v1/sandboxes", {"runtime": "vm", "memory_bytes": 200 << 20}, timeout=LONG)["id"]
    r = subprocess.run([f"{BUILD}/holt", "down", "--state", d.state], capture_output=True, text=True, timeout=LONG, check=False)
    assert r.returncode == 0 and "ended 1 sandbox" in r.stdout, r
    assert f"holt-{box}" in host.virsh("list", "--inactive", "--name").stdout.split()
    d = start(tmp_path, host, names)
    d.ok("POST", f"/holt/v1/sandboxes/{box}/start", timeout=LONG)
    r = subprocess.run([f"{BUILD}/holt", "purge", "--yes", "--state", d.state], capture_output=True, text=True, timeout=LONG, check=False)
    assert r.returncode == 0 and not os.path.exists(d.state), r
    assert f"holt-{box}" not in host.domains() and not [v for v in host.volumes() if box in v]


def test_a_base_is_not_made_of_nonsense(tmp_path):
    for argv, word in ((["--size", "much"], "not a size"), (["--release", "NO/SUCH"], "not the code name"), (["--release", "noble"], "--mirror")):
        r = subprocess.run([f"{BUILD}/holt", "image", "build-vm", "--state", str(tmp_path), *argv], capture_output=True, text=True, timeout=60, check=False)
        assert r.returncode != 0 and (word in r.stderr or "needs" in r.stderr), r.stderr
    assert os.listdir(tmp_path) == []


def test_without_a_base_it_says_what_makes_one(tmp_path):
    d = native(tmp_path)
    status, reply, _ = d.request("POST", "/holt/v1/sandboxes", {"runtime": "vm"})
    assert status == 501 and ("holt image build-vm" in reply["error"]["hint"] or "libvirt-dev" in reply["error"]["hint"]), reply
    assert d.stop() == 0
