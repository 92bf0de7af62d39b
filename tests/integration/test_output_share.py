"""The output of one agent's commands takes at most `agent_output` of the host's disk, in all its sandboxes together."""
import glob
import os

import pytest

from daemon import all_events, native, wait_for

API = "/holt/v1"
MIB = 1 << 20
LIMIT = 4 * MIB
SLACK = 1 * MIB  # what runs keeps at least two blocks, and its heads
WRITE = "import sys\nfor _ in range(int(sys.argv[1])): sys.stdout.buffer.write(b'x' * 1023 + b'\\n')\nsys.stdout.flush()\n"


def start(directory):
    return native(directory, config=f"agent_output: {LIMIT}\npool_size: 0\n")


@pytest.fixture
def place(tmp_path):
    """A daemon that can be started again: place.d is the one that runs."""
    class Place:
        d = start(tmp_path / "d")

        def again(self):
            assert self.d.stop() == 0
            self.d = start(tmp_path / "d")
    p = Place()
    yield p
    p.d.clear()
    assert p.d.stop() == 0


def agent_of(d, name="a"):
    return d.ok("POST", f"{API}/tokens", {"name": name, "role": "agent", "agent": name})["token"]


def used(d, boxes):
    return sum(os.stat(f).st_blocks * 512 for b in boxes for f in glob.glob(f"{d.state}/execs/{b}/*.log"))


def write(d, token, box, kib, then="", background=False):
    body = {"command": ["python3", "-c", WRITE + then, str(kib)], "background": background}
    return d.ok("POST", f"{API}/sandboxes/{box}/execs", body, token=token)


def test_an_agents_logs_together_have_a_bound(place):
    d = place.d
    token = agent_of(d)
    boxes = [d.ok("POST", f"{API}/sandboxes", {}, token=token)["id"] for _ in range(2)]
    made = [write(d, token, boxes[n % 2], 1536) for n in range(6)]
    wait_for(lambda: used(d, boxes) <= LIMIT + SLACK)
    removed = [e["object"] for e in all_events(d, type="exec.removed")]
    assert f"exec/{made[0]['id']}" in removed and f"exec/{made[-1]['id']}" not in removed, "the oldest go, and it is said"
    assert d.ok("GET", f"{API}/sandboxes/{boxes[1]}/execs/{made[-1]['id']}", token=token)["exit_code"] == 0
    place.again()
    d = place.d
    write(d, token, boxes[0], 3072)
    wait_for(lambda: used(d, boxes) <= LIMIT + SLACK)


def test_one_that_runs_is_cut_and_that_is_said(place):
    d = place.d
    token = agent_of(d)
    box = d.ok("POST", f"{API}/sandboxes", {}, token=token)["id"]
    x = write(d, token, box, 20 << 10, "import time; time.sleep(1000)", background=True)
    (cut,) = wait_for(lambda: all_events(d, type="exec.output_cut"))
    assert cut["object"] == f"exec/{x['id']}" and cut["data"]["limit_bytes"] == LIMIT and cut["data"]["setting"] == "agent_output"
    wait_for(lambda: d.ok("GET", f"{API}/sandboxes/{box}/execs/{x['id']}", token=token)["stdout_bytes"] == 20 * MIB)
    wait_for(lambda: used(d, [box]) <= LIMIT + SLACK)
    assert len(all_events(d, type="exec.output_cut")) == 1, "once for each command"


def test_people_have_no_such_bound(place):
    d = place.d
    box = d.ok("POST", f"{API}/sandboxes", {})["id"]
    for _ in range(4):
        write(d, "admin", box, 2048)
    assert used(d, [box]) > 2 * LIMIT - SLACK
    assert not all_events(d, type="exec.removed") and not all_events(d, type="exec.output_cut")


def test_what_a_sandbox_starts_itself_counts_for_its_owner(place):
    """Through the relay of a person's sandbox."""
    d = place.d
    box = d.ok("POST", f"{API}/sandboxes", {"relay": True})["id"]
    ask = ("import json,socket,sys\n"
           "for _ in range(int(sys.argv[3])):\n"
           "    s=socket.socket(socket.AF_UNIX); s.connect('/run/holt.sock')\n"
           "    b=json.dumps({'command':['python3','-c',sys.argv[2],'4096'],'output_bytes':1<<30}).encode()\n"
           "    s.sendall(b'POST '+sys.argv[1].encode()+b'/execs HTTP/1.1\\r\\nHost: holt\\r\\nContent-Type: application/json\\r\\n'\n"
           "        b'Connection: close\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(b) + b)\n"
           "    while s.recv(65536): pass\n")
    d.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": ["python3", "-c", ask, f"{API}/sandboxes/{box}", WRITE, "8"]})
    wait_for(lambda: used(d, [box]) <= LIMIT + SLACK)
    assert all_events(d, type="exec.removed")
