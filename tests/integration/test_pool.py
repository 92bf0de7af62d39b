"""The warm pool of the native runtime: what it takes from there is what it would have made, and nothing of it is left."""
import json
import os
import re
import signal
import subprocess
import time

import pytest

from daemon import SLOW, Holtd, is_running, wait_for
from home import MODES, Home

RUN = "/holt/v1/run"
BOXES = "/holt/v1/sandboxes"

# What a process inside can see of its sandbox.  Of two that are alike, only numbers that the kernel gave differ.
FACTS = r"""
exec 2>&1
echo "== who"; id; hostname; umask; pwd; echo $$
echo "== env"; env | sort | grep -v SANDBOX_ID
echo "== status"; grep -E '^(Cap|Seccomp|NoNewPrivs|Groups|Uid|Gid|NSpid|Threads)' /proc/self/status
grep -E '^(Cap|Seccomp|NoNewPrivs)' /proc/1/status
echo "== ids"; awk '{print $1, $3}' /proc/self/uid_map /proc/self/gid_map
echo "== limits"; cat /proc/self/limits; cat /proc/self/oom_score_adj
echo "== cgroup"; sed 's/ex_[0-9]*/ex/' /proc/self/cgroup; cat /proc/1/cgroup
echo "== fds"; ls /proc/self/fd
echo "== mounts"; cat /proc/self/mountinfo
echo "== sizes"; df -P / /dev/shm /tmp | awk '{print $1, $2, $6}'; df -iP / | awk '{print $2}'
echo "== root"; stat -c '%n %a %u %g' / /tmp /etc /root /run /var/tmp /dev /proc; ls -A / /etc /dev
echo "== kernel"; cat /proc/sys/user/max_user_namespaces /proc/sys/net/ipv4/ip_unprivileged_port_start
for f in kcore keys sysrq-trigger timer_list; do wc -c < /proc/$f; done
echo "== network"; cat /proc/net/dev | cut -d: -f1; cat /proc/net/fib_trie; cat /etc/resolv.conf; wc -l < /proc/net/unix
echo "== namespaces"; ls /proc/self/ns; [ "$(readlink /proc/self/ns/net)" = "$(readlink /proc/1/ns/net)" ] && echo same
echo "== writes"; for d in / /etc /tmp /run /usr /proc/sys/kernel /dev /vol /home; do touch $d/x && echo $d; done
"""

REQUESTS = {
    "plain": {},
    "in memory": {"upper": "memory"},
    "limits": {"upper": "memory", "disk_bytes": 64 << 20, "nofile": 300},
    "read-only": {"rootfs": "ro", "mounts": [{"kind": "tmpfs", "target": "/vol", "size_bytes": 1 << 20}]},
    "named": {"name": "otter", "env": {"COLOUR": "brown"}, "mounts": [{"kind": "tmpfs", "target": "/vol", "readonly": True}]},
    "network": {"network": {"mode": "open"}},
}


def metrics(holtd):
    text = holtd.request("GET", "/metrics", headers={"Accept": "text/plain"})[1]
    found = {k: int(float(v)) for k, v in re.findall(r'^holt_pool_(\w+)\{runtime="native"\} (\S+)', text, re.M)}
    return {"size": 0, "ready": 0, "claims_total": 0, "misses_total": 0, "broken_total": 0, **found}


def shells(holtd):
    return sorted(os.listdir(f"{holtd.state}/shells"))


def wait_ready(holtd, n):
    """Until so many are ready, as holtd knows it: that is asked once a second."""
    wait_for(lambda: metrics(holtd)["ready"] == n == len(shells(holtd)), 60)


def create(holtd, warm, **spec):
    before = metrics(holtd)["claims_total"]
    box = holtd.ok("POST", BOXES, spec)
    assert metrics(holtd)["claims_total"] - before == warm, f"warm: {not warm}"
    return box


def sh(holtd, box, script):
    r = holtd.ok("POST", f"{BOXES}/{box['id']}/execs", {"command": ["sh", "-c", script]})
    assert r["exit_code"] is not None
    return r["stdout"]


def plainly(text, box):
    """Without what differs between any two sandboxes: mount numbers, devices, host ids, the marks of commands."""
    text = text.replace(box["id"], "ID")
    text = re.sub(r"^\d+ \d+ \d+:\d+ ", "", text, flags=re.M)
    text = re.sub(r"\b(uid|gid)=\d{5,}", r"\1=N", text)
    text = re.sub(r"^\S+/trust-\w+ ", "trust ", text, flags=re.M)  # each holtd has its own authority, in its own state directory
    # A cold one's parts are made by two processes at once: which mount is the older is chance.
    text = re.sub(r"(?<=== mounts\n).*?(?=== sizes)", lambda m: "\n".join(sorted(m[0].splitlines())) + "\n", text, flags=re.S)
    return re.sub(r"^(Max file locks).*", r"\1", text, flags=re.M)


@pytest.fixture(scope="module", params=MODES)
def pair(request):
    """A holtd with a pool and one without, alike in all else."""
    homes = [Home(request.param), Home(request.param)]
    daemons = []
    try:
        daemons = [homes[0].native("--pool-size", "2"), homes[1].native("--pool-size", "0")]
        yield daemons
        for d in daemons:
            d.stop()
            assert shells(d) == []
    finally:
        for d in daemons:
            d.kill()
        for h in homes:
            h.close()


@pytest.mark.parametrize("name", REQUESTS)
def test_a_claimed_sandbox_is_as_a_cold_one(pair, name):
    said = []
    for holtd, warm in zip(pair, (1, 0)):
        if warm:
            wait_ready(holtd, 2)
        box = create(holtd, warm, **REQUESTS[name])
        said.append(plainly(sh(holtd, box, FACTS), box))
        said.append(json.dumps({k: v for k, v in holtd.ok("GET", f"{BOXES}/{box['id']}").items()
                                if k not in ("id", "owner") and not k.endswith("_at")}, indent=1))
        holtd.ok("DELETE", f"{BOXES}/{box['id']}")
    assert said[0].splitlines() == said[2].splitlines()
    assert said[1] == said[3]
    assert "== writes" in said[0] and said[0].count("\n") > 100, "the facts were told"


def test_a_run_claims_one(pair):
    wait_ready(pair[0], 2)
    before = metrics(pair[0])["claims_total"]
    assert pair[0].ok("POST", RUN, {"command": ["echo", "hello"]})["stdout"] == "hello\n"
    assert metrics(pair[0])["claims_total"] == before + 1


def test_one_is_used_once(pair):
    holtd = pair[0]
    wait_ready(holtd, 2)
    first = create(holtd, 1, upper="memory")
    sh(holtd, first, "echo mine > /root/file; echo mine > /tmp/file; echo mine > /dev/shm/file; nohup sleep 1000 >/dev/null 2>&1 &")
    holtd.ok("DELETE", f"{BOXES}/{first['id']}")
    for _ in range(3):
        wait_ready(holtd, 2)
        box = create(holtd, 1, upper="memory")
        assert sh(holtd, box, "cat /root/file /tmp/file /dev/shm/file; pgrep sleep") == ""
        holtd.ok("DELETE", f"{BOXES}/{box['id']}")


def test_a_burst_is_served(pair):
    """More than there are: the rest is made cold, and all work."""
    holtd = pair[0]
    wait_ready(holtd, 2)
    boxes = [holtd.ok("POST", BOXES, {"name": f"burst{i}"}) for i in range(12)]
    assert [sh(holtd, b, "hostname") for b in boxes] == [f"burst{i}\n" for i in range(12)]
    for b in boxes:
        holtd.ok("DELETE", f"{BOXES}/{b['id']}")
    wait_ready(holtd, 2)


def test_they_are_no_sandboxes(pair):
    wait_ready(pair[0], 2)
    assert pair[0].ok("GET", BOXES)["sandboxes"] == []
    for name in shells(pair[0]):
        assert pair[0].request("GET", f"{BOXES}/{name}")[0] == 404


def processes(holtd):
    """(pid of the init, pid of the builder) of each shell: only those have an init with a holt-spawn below it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                argv = f.read().split(b"\0")
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{parent}/cmdline", "rb") as f:
                above = f.read().split(b"\0")
        except OSError:
            continue
        if argv[0] == b"holt-spawn" and holtd.state.encode() in argv and above[0] == b"holt-init":
            found.append((parent, int(pid)))
    return sorted(found)


@pytest.fixture
def holtd(tmp_path):
    d = Holtd(tmp_path / "p", "--runtime", "native", "--pool-size", "2")
    yield d
    d.kill()
    assert shells(d) == [] and os.listdir(f"{d.state}/sb") == []
    wait_for(lambda: processes(d) == [])


@pytest.mark.parametrize("which", [0, 1])
def test_a_broken_one_is_replaced(holtd, which):
    wait_ready(holtd, 2)
    victims = processes(holtd)
    assert len(victims) == 2
    for v in victims:
        os.kill(v[which], signal.SIGKILL)
    wait_for(lambda: metrics(holtd)["broken_total"] == 2 and metrics(holtd)["ready"] == 2, 60)
    assert not {v[0] for v in victims} & {v[0] for v in processes(holtd)}
    box = create(holtd, 1)
    assert sh(holtd, box, "echo well") == "well\n"
    holtd.ok("DELETE", f"{BOXES}/{box['id']}")


@pytest.mark.parametrize("body", ["{}", '{"network": {"mode": "open"}}'])
@pytest.mark.parametrize("which", [0, 1])
def test_a_claim_of_a_broken_one_is_made_cold(holtd, which, body):
    """holt-spawn is held while a shell dies: it finds the request first, then the end."""
    first = holtd.ok("POST", BOXES, json.loads(body))  # with a network, holt-egress is started before holt-spawn is asked
    holtd.ok("DELETE", f"{BOXES}/{first['id']}")
    wait_ready(holtd, 2)
    spawn = int(subprocess.run(["pgrep", "-o", "-f", f"^holt-spawn .*{holtd.state} "], capture_output=True, check=True).stdout)
    os.kill(spawn, signal.SIGSTOP)
    try:
        asked = subprocess.Popen(["curl", "-s", "-d", body, "-H", f"Authorization: Bearer {holtd.token}", "-H",
                                  "Content-Type: application/json", holtd.url + BOXES], stdout=subprocess.PIPE)
        time.sleep(0.3 * SLOW)
        for v in processes(holtd):
            os.kill(v[which], signal.SIGKILL)
        time.sleep(0.1)
    finally:
        os.kill(spawn, signal.SIGCONT)
    box = json.loads(asked.communicate(timeout=60 * SLOW)[0])
    assert box["state"] == "running", box
    assert sh(holtd, box, "echo well") == "well\n"
    holtd.ok("DELETE", f"{BOXES}/{box['id']}")


def test_a_new_holtd_finds_them(tmp_path):
    directory = tmp_path / "p"
    d = Holtd(directory, "--runtime", "native", "--pool-size", "2")
    try:
        wait_ready(d, 2)
        there = shells(d)
        os.kill(d.pid, signal.SIGKILL)
        d.process.wait()
        d = Holtd(directory, "--runtime", "native", "--pool-size", "2")
        wait_ready(d, 2)
        assert shells(d) == there, "holt-spawn kept them"
        box = create(d, 1)
        d.ok("DELETE", f"{BOXES}/{box['id']}")
        os.kill(d.pid, signal.SIGKILL)
        d.process.wait()
        d = Holtd(directory, "--runtime", "native", "--pool-size", "0")
        wait_ready(d, 0)  # one that wants none says so
    finally:
        d.kill()
    assert shells(d) == []


def test_a_new_holt_spawn_makes_its_own(holtd):
    wait_ready(holtd, 2)
    old, was = processes(holtd), shells(holtd)
    spawn = int(subprocess.run(["pgrep", "-o", "-f", f"^holt-spawn .*{holtd.state} "], capture_output=True, check=True).stdout)
    os.kill(spawn, signal.SIGKILL)
    wait_for(lambda: not any(is_running(p) for v in old for p in v), 30)
    wait_for(lambda: metrics(holtd)["ready"] == 2 and not set(shells(holtd)) & set(was) and len(shells(holtd)) == 2, 30)
    box = create(holtd, 1)
    assert sh(holtd, box, "echo well") == "well\n"
    holtd.ok("DELETE", f"{BOXES}/{box['id']}")


def test_killed_while_it_fills_and_claims(tmp_path):
    """holtd and holt-spawn die at any moment of fills and claims: what was acknowledged is there, and nothing else."""
    directory, acknowledged = tmp_path / "p", set()
    for i in range(8):
        d = Holtd(directory, "--runtime", "native", "--pool-size", "3")
        asked = [subprocess.Popen(["curl", "-s", "-d", "{}", "-H", f"Authorization: Bearer {d.token}", "-H",
                                   "Content-Type: application/json", d.url + BOXES], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                 for _ in range(4)]
        time.sleep(0.01 * i)
        if i % 2:
            found = subprocess.run(["pgrep", "-o", "-f", f"^holt-spawn .*{d.state} "], capture_output=True, check=False).stdout.split()
            for pid in found:
                os.kill(int(pid), signal.SIGKILL)
        os.kill(d.pid, signal.SIGKILL)
        d.process.wait()
        for a in asked:
            text = a.communicate(timeout=60 * SLOW)[0]
            if text.endswith(b"}") and b'"id"' in text:
                acknowledged.add(json.loads(text)["id"])
    d = Holtd(directory, "--runtime", "native", "--pool-size", "1")
    try:
        wait_ready(d, 1)
        there = {b["id"] for b in d.ok("GET", BOXES)["sandboxes"]}
        assert acknowledged <= there
        for id in there:
            d.ok("DELETE", f"{BOXES}/{id}")
        wait_for(lambda: os.listdir(f"{d.state}/sb") == [], 30)
        assert len(processes(d)) == 1
    finally:
        d.kill()
    wait_for(lambda: shells(d) == [] and processes(d) == [])


def test_autosize_follows_the_creates(tmp_path):
    d = Holtd(tmp_path / "p", "--runtime", "native", env={
        "SANDBOX_WARM_POOL_AUTOSIZE": "on", "SANDBOX_WARM_POOL_MIN": "1", "SANDBOX_WARM_POOL_MAX": "3"})
    try:
        wait_ready(d, 1)
        for n in (1, 2, 3, 4):
            box = d.ok("POST", BOXES, {})
            d.ok("DELETE", f"{BOXES}/{box['id']}")
            wait_ready(d, min(n, 3))
    finally:
        d.kill()
    assert shells(d) == []


def test_sbx_counts_what_was_warm(holtd):
    def counts():
        return holtd.request("GET", "/metrics", headers={"Accept": "application/json"})[1]

    wait_ready(holtd, 2)
    assert (counts()["warm_pool_desired"], counts()["warm_pool_ready"]) == (2, 2)
    box = holtd.ok("POST", "/sandboxes", {})
    assert (counts()["sandbox_create_warm_hit_total"], counts()["sandbox_create_cold_total"]) == (1, 0)
    holtd.ok("DELETE", f"/sandboxes/{box['id']}")


def test_a_reload_changes_the_size(tmp_path):
    d = Holtd(tmp_path / "p", "--runtime", "native", config="pool_size: 1\n")
    try:
        wait_ready(d, 1)
        for size in (3, 0):
            (tmp_path / "p" / "holt.yaml").write_text(f"pool_size: {size}\n")
            os.kill(d.pid, signal.SIGHUP)
            wait_ready(d, size)
    finally:
        d.kill()
