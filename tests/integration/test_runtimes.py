"""What every runtime does alike, from outside; and what sets each apart.  One that is not installed is skipped."""
import contextlib
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import urllib.request

import pytest

from daemon import BUILD, ROOT, SLOW, Holtd, environment, programs_of, wait_for

BOXES = "/holt/v1/sandboxes"
RUN = "/holt/v1/run"
NAMES = ("native", "runc", "crun", "runsc")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@contextlib.contextmanager
def served(directory, *args, runtime="native", env=None):
    holtd = Holtd(directory, "--runtime", runtime, *args, env=env)
    try:
        yield holtd
    finally:
        if holtd.alive():  # containers outlive holtd and holt-spawn
            holtd.clear()
        holtd.stop()


@pytest.fixture(params=NAMES)
def runtime(request):
    if request.param != "native" and not shutil.which(request.param, path=PATH):
        pytest.skip(f"{request.param} is not installed: tools/deps runtimes")
    return request.param


def sh(holtd, box, script, **more):
    r = holtd.ok("POST", f"{BOXES}/{box['id']}/execs", {"command": ["sh", "-c", script], **more})
    return r["exit_code"], r["stdout"]


def create(holtd, runtime, **spec):
    box = holtd.ok("POST", BOXES, {"runtime": runtime, **spec})
    assert box["runtime"] == runtime and box["state"] == "running"
    return box


def gone(holtd, box):
    holtd.ok("DELETE", f"{BOXES}/{box['id']}")
    assert not os.path.exists(f"{holtd.state}/sb/{box['id']}")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
                assert box["id"] not in f.read()
        except OSError:
            pass


def test_a_life(tmp_path, runtime):
    """Commands, files that a stop keeps, a pause, and nothing left."""
    with served(tmp_path) as holtd:
        box = create(holtd, runtime, name="otter")
        assert sh(holtd, box, "echo hi; exit 7") == (7, "hi\n")
        assert sh(holtd, box, "hostname; id -u; echo kept > /root/file")[0] == 0
        kernel = sh(holtd, box, "dmesg 2>&1")[1]
        assert ("Starting gVisor" in kernel) == (runtime == "runsc")
        holtd.ok("POST", f"{BOXES}/{box['id']}/pause")
        holtd.ok("POST", f"{BOXES}/{box['id']}/resume")
        assert sh(holtd, box, "echo on")[1] == "on\n"
        holtd.ok("POST", f"{BOXES}/{box['id']}/stop")
        holtd.ok("POST", f"{BOXES}/{box['id']}/start")
        assert sh(holtd, box, "cat /root/file") == (0, "kept\n")
        gone(holtd, box)


def test_root_read_only_and_mounts(tmp_path, runtime):
    with served(tmp_path) as holtd:
        box = create(holtd, runtime, rootfs="ro", mounts=[{"kind": "tmpfs", "target": "/vol", "size_bytes": 1 << 20}])
        script = "for d in /etc /usr /tmp /run /vol; do touch $d/x 2>/dev/null && echo $d; done; :"
        assert sh(holtd, box, script) == (0, "/tmp\n/run\n/vol\n")
        gone(holtd, box)


def test_no_network_leads_out(tmp_path, runtime):
    with served(tmp_path) as holtd:
        box = create(holtd, runtime)
        script = "timeout 5 bash -c 'exec 3<>/dev/tcp/1.1.1.1/80' 2>/dev/null && echo out; tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"
        assert sh(holtd, box, script)[1] == "lo\n"
        gone(holtd, box)


def test_output_survives_holtd(tmp_path, runtime):
    """Killed with -9 under a running command: all of its output, once."""
    with served(tmp_path) as holtd:
        box = create(holtd, runtime)
        x = holtd.ok("POST", f"{BOXES}/{box['id']}/execs",
                     {"command": ["sh", "-c", "for i in $(seq 60); do echo $i; sleep 0.03; done"], "background": True})
        time.sleep(0.7)
        holtd.process.kill()
        holtd.process.wait()
        with served(tmp_path) as again:
            path = f"{BOXES}/{box['id']}/execs/{x['id']}"
            wait_for(lambda: again.ok("GET", path)["state"] == "exited", 60 * SLOW)
            assert again.request("GET", f"{path}/output")[1].split() == [str(i) for i in range(1, 61)]
            gone(again, box)


def test_output_survives_holtd_and_holt_spawn(tmp_path, runtime):
    """Both killed with -9 under a running command: all of its output, once; and nothing left after it."""
    with served(tmp_path) as holtd:
        box = create(holtd, runtime)
        x = holtd.ok("POST", f"{BOXES}/{box['id']}/execs",
                     {"command": ["sh", "-c", "for i in $(seq 80); do echo $i; sleep 0.03; done"], "background": True})
        path = f"{BOXES}/{box['id']}/execs/{x['id']}"
        wait_for(lambda: holtd.request("GET", f"{path}/output")[1].split()[5:])
        for pid in programs_of(holtd.state, "holt-spawn"):
            os.kill(pid, signal.SIGKILL)
        holtd.process.kill()
        holtd.process.wait()
        with served(tmp_path) as again:
            wait_for(lambda: again.ok("GET", path)["state"] == "exited", 60 * SLOW)
            assert again.request("GET", f"{path}/output")[1].split() == [str(i) for i in range(1, 81)]
            seen = subprocess.run([f"{ROOT}/tools/leftovers", again.state], capture_output=True, text=True, check=False).stdout
            assert runtime == "native" or "holt-keeper" in seen, "leftovers knows containers"
            gone(again, box)
        left = subprocess.run([f"{ROOT}/tools/leftovers", holtd.state], capture_output=True, text=True, check=False).stdout
        assert not [line for line in left.splitlines() if line.split()[0] in ("process", "mount", "cgroup")], left


def test_limits_hold(tmp_path, runtime):
    """What is enforced by the host's cgroups and disks: where gVisor is in between, it is gVisor that they reach."""
    with served(tmp_path) as holtd:
        box = create(holtd, runtime, memory_bytes="128m")
        assert "memory" not in box["unenforced"]
        r = holtd.ok("POST", f"{BOXES}/{box['id']}/execs", {"command": ["python3", "-c", "x = bytearray(400 << 20); print('had it')"]})
        assert r["stdout"] == "" and (r["oom"] or runtime == "runsc"), r
        wait_for(lambda: any(e["type"] == "sandbox.oom" for e in holtd.ok("GET", "/holt/v1/events?limit=1000")["events"]))
        state = holtd.ok("GET", f"{BOXES}/{box['id']}")["state"]
        assert state == ("failed" if runtime == "runsc" else "running")
        gone(holtd, box)
        box = create(holtd, runtime, disk_bytes="16m", cpu_millis=500, pids=400)
        assert sh(holtd, box, "head -c 40000000 /dev/zero > /root/x 2>/dev/null; echo $?; rm /root/x") == (0, "1\n")
        before, began = holtd.ok("GET", f"{BOXES}/{box['id']}/stats")["cpu_us"], time.monotonic()
        sh(holtd, box, "timeout 3 sh -c 'while :; do :; done'")
        stats = holtd.ok("GET", f"{BOXES}/{box['id']}/stats")
        assert stats["cpu_us"] - before < 0.75 * 1e6 * (time.monotonic() - began), "half of a core, and a little"
        assert stats["pids"] > 0 and stats["memory_bytes"] > 100 * 1024 and stats["disk_bytes"] > 0
        if runtime != "runsc":  # there its own threads count too, and gVisor ends when it gets no more
            assert "Cannot fork" in holtd.ok("POST", f"{BOXES}/{box['id']}/execs",
                                             {"command": ["sh", "-c", "for i in $(seq 500); do sleep 9 & done"], "kill_rest": True})["stderr"]
        gone(holtd, box)


def test_ports_archives_terminals(tmp_path, runtime):
    with served(tmp_path) as holtd:
        box = create(holtd, runtime)
        path = f"{BOXES}/{box['id']}"
        r = holtd.ok("POST", f"{path}/execs", {"command": ["sh", "-c", "test -t 0 && tty && stty size"], "pty": {"rows": 33, "cols": 99}})
        assert r["exit_code"] == 0 and r["stdout"].split() == ["/dev/pts/0", "33", "99"], r
        sh(holtd, box, "mkdir -p /root/site/in; echo hello > /root/site/index.html; echo deep > /root/site/in/x")
        packed = urllib.request.urlopen(urllib.request.Request(
            f"{holtd.url}{path}/archive?path=/root/site", headers={"Authorization": f"Bearer {holtd.token}"})).read()
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            assert any(m.name.endswith("in/x") for m in tar.getmembers())
        holtd.ok("PUT", f"{path}/archive?path=/root/copy", packed, headers={"Content-Type": "application/x-tar"})
        assert sh(holtd, box, "find /root/copy -name x | xargs cat") == (0, "deep\n")
        holtd.ok("POST", f"{path}/execs", {"command": ["python3", "-m", "http.server", "-d", "/root/site", "--bind", "127.0.0.1", "8000"], "background": True})
        wait_for(lambda: holtd.request("GET", f"{path}/ports/8000/index.html")[:2] == (200, "hello\n"), 60 * SLOW)
        assert holtd.ok("POST", f"{path}/previews", {"port": 8000})["url"].startswith("http")
        gone(holtd, box)


def test_one_that_is_not_there(tmp_path):
    with served(tmp_path) as holtd:
        status, e = holtd.request("POST", BOXES, {"runtime": "nosuch"})[:2]
        assert status == 400 and "there is no runtime 'nosuch'" in e["error"]["message"]


def test_doctor_tries_each(tmp_path):
    """Its release, and a sandbox that the daemon makes with it; without a daemon it says so."""
    def doctor(**env):
        r = subprocess.run([f"{BUILD}/holt", "doctor", "-o", "json"], capture_output=True, text=True, timeout=120, env=environment(env), check=False)
        return {c["name"]: c for c in json.loads(r.stdout)["checks"]}

    with served(tmp_path) as holtd:
        checks = doctor(HOLT_SERVER=holtd.url, HOLT_TOKEN=holtd.token)
        for name in NAMES[1:]:
            check = checks[f"runtime {name}"]
            if shutil.which(name, path=PATH):
                assert f"{name} version" in check["detail"] and "a sandbox works" in check["detail"], check
            else:
                assert (check["state"], check["detail"]) == ("limited", "not installed"), check
    check = doctor(HOLT_SERVER="http://127.0.0.1:1", HOLT_TOKEN="x")["runtime runc"]
    assert check["state"] == "limited" and ("not tried" in check["detail"] or check["detail"] == "not installed"), check


# ---- which one it is ----

def needs(name):
    if not shutil.which(name, path=PATH):
        pytest.skip(f"{name} is not installed: tools/deps runtimes")


@pytest.fixture
def place():
    """For programs: not below /tmp, which is another where sandboxes are made."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="holt-test.") as d:
        os.chmod(d, 0o755)
        yield pathlib.Path(d)


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_auto_takes_the_strongest_that_works(tmp_path):
    needs("runsc")
    with served(tmp_path, runtime="auto") as holtd:
        assert holtd.ok("POST", BOXES, {})["runtime"] == "runsc"
        assert holtd.ok("POST", BOXES, {"runtime": "native"})["runtime"] == "native"
        assert "a runtime works on this host runtime=runsc" in holtd.log().replace('"', "")


def test_auto_leaves_out_what_does_not_work(tmp_path, place):
    script(place / "runsc", "echo no room >&2; exit 1")
    with served(tmp_path, runtime="auto", env={"PATH": f"{place}:{PATH}"}) as holtd:
        assert holtd.ok("POST", BOXES, {})["runtime"] == "native"
        status, e = holtd.request("POST", BOXES, {"runtime": "runsc"})[:2]
        assert status == 501 and "runsc failed: no room" in e["error"]["message"], e


def test_a_further_runtime(tmp_path, place):
    """A third one, by its name, program and flags: here runc behind a script that says how it was called."""
    needs("runc")
    program = script(place / "wrapped", f"echo \"$@\" >> {place}/called; exec runc \"$@\"")
    (place / "called").touch()
    (place / "called").chmod(0o666)
    config = f"runtime: third\noci_runtimes: ['third={program} --log-format json']\n"
    holtd = Holtd(tmp_path / "d", config=config, env={"HOLT_RUNTIME": "third"})
    try:
        box = holtd.ok("POST", BOXES, {})
        assert box["runtime"] == "third"
        assert sh(holtd, box, "echo hi") == (0, "hi\n")
        assert " --log-format json run " in (place / "called").read_text()
        assert holtd.ok("GET", f"{BOXES}?runtime=third")["sandboxes"][0]["id"] == box["id"]
        gone(holtd, box)
    finally:
        holtd.clear()
        holtd.stop()


@pytest.mark.parametrize("value, why", [
    ("runc=/usr/bin/x", "there is a runtime 'runc' already"),
    ("third", "'third' is no further runtime"),
    ("third=relative", "is no further runtime"),
    ("third=/tmp/x", "cannot be below /tmp"),
    ("third,fast=/usr/bin/x", "is no further runtime"),
])
def test_further_runtimes_that_are_none(tmp_path, value, why):
    bad = Holtd(tmp_path, config=f"oci_runtimes: ['{value}']\n", ready=False)
    assert bad.process.wait(60) != 0
    assert why in bad.text + bad.log()


def test_a_default_that_is_not_there(tmp_path):
    bad = Holtd(tmp_path, env={"HOLT_RUNTIME": "nosuch"}, ready=False)
    assert bad.process.wait(60) != 0
    assert "setting 'runtime' is 'nosuch'; it must be one of: native, runc, crun, runsc" in bad.text + bad.log()


def test_the_runtime_of_sbx(tmp_path):
    needs("runc")
    with served(tmp_path, "--sbx-runtime", "runc") as holtd:
        holtd.ok("POST", "/sandboxes", {"id": "by-sbx"})
        box = holtd.ok("GET", f"{BOXES}/by-sbx")
        assert box["runtime"] == "runc"
        gone(holtd, box)
