"""Hosts of virtual machines: two libvirtd, each with an sshd of its own, reached by qemu+ssh with strict keys."""
import os
import shutil
import subprocess
import time

import pytest

from daemon import BUILD, ROOT, all_events, environment, free_ports, native, wait_for
from hypervisor import Hypervisor, lacking, minimal_base

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
LONG = 300
BOX = "/holt/v1/sandboxes"
SMALL = {"runtime": "vm", "memory_bytes": 200 << 20}


def why_not():
    if not os.path.exists(f"{BUILD}/holt-virt"):
        return "this build has no holt-virt: install libvirt-dev (tools/deps vm)"
    if not shutil.which("sshd", path="/usr/sbin:/usr/bin"):
        return "no sshd (tools/deps vm)"
    return lacking()


class Ground:
    """Two hosts, the ssh configuration that leads to them, and a holtd that is started again."""

    def __init__(self, path):
        self.path = path
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{path}/key"], check=True)
        self.hosts = {}
        for name, port in zip(("rack-a", "rack-b"), free_ports(2)):
            os.makedirs(f"{path}/{name}")
            self.hosts[name] = Hypervisor(f"{path}/{name}", port, f"{path}/key.pub")
        self.a, self.b = self.hosts.values()
        with open(f"{path}/ssh_config", "w", encoding="ascii") as f:
            for name, h in self.hosts.items():
                f.write(f"Host {name}\n  HostName 127.0.0.1\n  Port {h.port}\n  User root\n  IdentityFile {path}/key\n"
                        f"  IdentitiesOnly yes\n  UserKnownHostsFile {path}/known_hosts\n  StrictHostKeyChecking no\n")
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{path}/stranger"], check=True)
            f.write(f"Host rack-c\n  HostName 127.0.0.1\n  Port {self.a.port}\n  User root\n  IdentityFile {path}/stranger\n"
                    f"  IdentitiesOnly yes\n  UserKnownHostsFile {path}/known_hosts\n")
        self.know(self.a.known() + self.b.known())
        lines = [f"  - name: {name}\n    uri: qemu+ssh://{name}/system\n    pool_dir: {h.pool}\n    ssh_config: {path}/ssh_config\n"
                 for name, h in self.hosts.items()]
        with open(f"{path}/holt.yaml", "w", encoding="ascii") as f:
            f.write("hosts:\n" + "".join(lines) + "    machines: 3\n    memory: 4g\n"
                    f"  - rack-c=qemu+ssh://rack-c/system ssh_config={path}/ssh_config\n")
        minimal_base(BUILD, ROOT, f"{path}/state")
        self.d = self.start()

    def know(self, text):
        with open(f"{self.path}/known_hosts", "w", encoding="ascii") as f:
            f.write(text)

    def start(self):
        self.d = native(self.path, "--config", f"{self.path}/holt.yaml", "--vm-accel", "tcg")
        return self.d

    def host(self, name):
        return self.d.ok("GET", f"/holt/v1/hosts/{name}")

    def wait_state(self, name, state):
        return wait_for(lambda: (h := self.host(name))["state"] == state and h, 90, 0.2)

    def create(self, **more):
        return self.d.ok("POST", BOX, {**SMALL, **more}, timeout=LONG)

    def sh(self, box, line):
        return self.d.ok("POST", f"{BOX}/{box}/execs", {"command": line}, timeout=LONG)["stdout"]


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    if why_not():
        pytest.skip(why_not())
    g = Ground(tmp_path_factory.mktemp("hosts"))
    for name in g.hosts:
        g.wait_state(name, "up")
    yield g
    g.d.clear()
    assert g.d.stop() == 0
    left = [h.domains() + h.volumes() for h in g.hosts.values()]
    for h in g.hosts.values():
        h.end()
    assert left == [[], []]


@pytest.fixture(scope="module")
def boxes(ground):
    """One machine on each host, which tests share."""
    return [ground.create(name=f"box-{i}") for i in range(2)]


def test_machines_are_spread(ground, boxes):
    """The least loaded host gets the next one; what each machine is asked goes to its own."""
    assert [b["host"] for b in boxes] == ["rack-a", "rack-b"]
    for b, h in zip(boxes, ground.hosts.values()):
        assert h.domains() == [f"holt-{b['id']}"]
        assert ground.sh(b["id"], "hostname") == f"{b['name']}\n"
        seen = ground.host(b["host"])
        assert (seen["machines"], seen["memory_used_bytes"], seen["drained"]) == (1, 200 << 20, False)
        assert seen["cpus"] > 0 and "QEMU" in seen["version"] and seen["accel"] == "tcg" or seen["accel"] is None
    assert ground.host("rack-b")["memory_bytes"] == 4 << 30  # the setting's limit
    r = subprocess.run([f"{BUILD}/holt", "host", "ls"], capture_output=True, text=True, timeout=60, check=False,
                       env=environment({"HOLT_SERVER": ground.d.url, "HOLT_TOKEN": ground.d.token}))
    assert r.returncode == 0 and "rack-a" in r.stdout and "rack-b" in r.stdout and "up" in r.stdout, r


def test_a_life_on_a_host_of_choice(ground, boxes):
    g = ground
    box = g.create(name="life", host="rack-b")["id"]
    g.sh(box, "echo kept > /workspace/file")
    g.d.ok("POST", f"{BOX}/{box}/pause", timeout=LONG)
    assert "paused" in g.b.virsh("list").stdout
    g.d.ok("POST", f"{BOX}/{box}/resume", timeout=LONG)
    g.d.ok("POST", f"{BOX}/{box}/stop", timeout=LONG)
    assert f"holt-{box}" in g.b.virsh("list", "--inactive", "--name").stdout
    g.d.ok("POST", f"{BOX}/{box}/start", timeout=LONG)
    assert g.sh(box, "cat /workspace/file") == "kept\n"
    assert g.d.ok("GET", f"{BOX}/{box}/stats")["cpu_us"] > 0
    g.d.ok("DELETE", f"{BOX}/{box}", timeout=LONG)
    assert f"holt-{box}" not in g.b.domains() and not [v for v in g.b.volumes() if box in v]


def test_a_drained_host_gets_no_more(ground, boxes):
    g = ground
    g.d.ok("POST", "/holt/v1/hosts/rack-a/drain", {})
    g.d.process.kill()  # it stays so
    g.d.process.wait()
    g.start()
    assert g.host("rack-a")["drained"]
    more = g.create(name="elsewhere")  # rack-b has more already
    assert more["host"] == "rack-b"
    wait_for(lambda: g.d.ok("GET", f"{BOX}/box-0")["state"] == "running", 60)
    assert wait_for(lambda: g.d.request("POST", f"{BOX}/box-0/execs", {"command": "echo on"}, timeout=LONG)[0] == 200, 60)
    status, reply, _ = g.d.request("POST", BOX, {**SMALL, "host": "rack-a"})
    assert status == 429 and "'rack-a': drained" in reply["error"]["message"], reply
    g.d.ok("POST", "/holt/v1/hosts/rack-a/drain", {"off": True})
    g.d.ok("DELETE", f"{BOX}/{more['id']}", timeout=LONG)
    assert {"host.drained", "host.opened"} <= {e["type"] for e in all_events(g.d)}


def test_what_does_not_fit_is_said(ground, boxes):
    for more, word in (({"memory_bytes": 1 << 40, "host": "rack-a"}, "MiB of memory"), ({"cpu_millis": 1000000, "host": "rack-b"}, "CPUs"), ({"host": "nowhere"}, "no host 'nowhere'"),
                       ({"runtime": "native", "host": "rack-a"}, "has no hosts")):
        status, reply, _ = ground.d.request("POST", BOX, {**SMALL, **more})
        assert status == 400 and word in reply["error"]["message"], reply
    ground.wait_state("rack-a", "up")


def test_a_changed_key_is_refused_by_name(ground, boxes):
    """The configuration says StrictHostKeyChecking no: it does not count."""
    g = ground
    other = g.a.known().split()[1:]
    g.know(g.a.known() + " ".join([f"[127.0.0.1]:{g.b.port}", *other]) + "\n")
    g.b.stop()
    g.b.start()
    down = wait_for(lambda: (h := g.host("rack-b"))["state"] == "down" and "host key" in h["reason"] and h, 90, 0.2)
    assert "'rack-b'" in down["reason"] and "not the known one" in down["reason"], down
    status, reply, _ = g.d.request("GET", f"{BOX}/box-1/stats", timeout=LONG)
    assert status == 503 and "rack-b" in reply["error"]["message"], reply
    assert g.sh("box-0", "echo fine") == "fine\n"
    g.know(g.a.known())  # and one that is not known at all
    wait_for(lambda: "is not known" in (g.host("rack-b")["reason"] or ""), 120, 0.5)
    assert "host.down" in {e["type"] for e in all_events(g.d)}
    g.know(g.a.known() + g.b.known())
    g.wait_state("rack-b", "up")
    assert wait_for(lambda: g.d.request("POST", f"{BOX}/box-1/execs", {"command": "echo back"}, timeout=LONG)[0] == 200, 90)


def test_a_host_that_vanishes_and_comes_back(ground, boxes):
    """Its command goes on; the other host's machines are served meanwhile, also by a holtd that starts then."""
    g = ground
    x = g.d.ok("POST", f"{BOX}/box-1/execs", {"command": "i=0; while [ $i -lt 200 ]; do echo $i; i=$((i+1)); sleep 0.1; done", "background": True},
               timeout=LONG)["id"]
    one = f"{BOX}/box-1/execs/{x}"
    wait_for(lambda: g.d.ok("GET", f"{one}/output?stream=stdout&offset=0"), 60)
    g.b.stop()
    g.wait_state("rack-b", "down")
    began = time.monotonic()
    assert g.sh("box-0", "echo fine") == "fine\n"
    assert time.monotonic() - began < 5
    g.d.process.kill()
    g.d.process.wait()
    g.start()
    assert wait_for(lambda: g.d.request("POST", f"{BOX}/box-0/execs", {"command": "echo on"}, timeout=LONG)[0] == 200, 60)
    assert g.d.ok("GET", f"{BOX}/box-1")["state"] == "running"  # nobody knows better
    status, reply, _ = g.d.request("POST", f"{BOX}/box-1/stop", timeout=LONG)
    assert status == 503 and "has not found it again yet" in reply["error"]["message"], reply
    g.b.start()
    g.wait_state("rack-b", "up")
    wait_for(lambda: g.d.ok("GET", one)["state"] not in ("starting", "running"), LONG, 0.5)
    assert g.d.ok("GET", one)["exit_code"] == 0
    assert g.d.ok("GET", f"{one}/output?stream=stdout&offset=0") == "".join(f"{i}\n" for i in range(200))


def test_a_host_that_refuses_our_key(ground):
    down = ground.wait_state("rack-c", "down")
    assert down["reason"] == "host 'rack-c' refuses our SSH key", down
    status, reply, _ = ground.d.request("POST", BOX, {**SMALL, "host": "rack-c"})
    assert status == 503 and "'rack-c': does not answer" in reply["error"]["message"], reply


def test_settings_of_hosts_are_checked(tmp_path):
    for entry, word in (("rack=qemu+ssh://h/system?no_verify=1", "not allowed"), ("rack=qemu+ssh://h/system?command=/bin/sh", "not allowed"),
                        ("rack=http://h/", "must be like"), ("rack=h cpus=many", "above 0"), ("rack=h color=red", "has no 'color'"),
                        ("Rack=h", "must begin with"), ("rack=h,rack=i", "two hosts named")):
        r = subprocess.run([f"{BUILD}/holtd", "--state", str(tmp_path), "--hosts", entry], capture_output=True, text=True, timeout=60, check=False,
                           env=environment())
        assert r.returncode != 0 and word in r.stdout + r.stderr, (entry, r)
