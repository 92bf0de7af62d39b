"""What every runtime does alike, from outside; and what sets each apart.  One that is not installed is skipped."""
import contextlib
import os
import shutil
import time

import pytest

from daemon import SLOW, Holtd, wait_for

BOXES = "/holt/v1/sandboxes"
RUN = "/holt/v1/run"
NAMES = ("native", "runc", "crun", "runsc")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@contextlib.contextmanager
def served(directory):
    holtd = Holtd(directory, "--runtime", "native")
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


def test_one_that_is_not_there(tmp_path):
    with served(tmp_path) as holtd:
        status, e = holtd.request("POST", BOXES, {"runtime": "nosuch"})[:2]
        assert status == 400 and "there is no runtime 'nosuch'" in e["error"]["message"]
