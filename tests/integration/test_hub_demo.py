"""`make hub`: one command starts the hub with two agents in sandboxes and prints the seed's check."""
import os
import signal
import subprocess

from daemon import BUILD, ROOT, end_spawn, environment, wait_for

LINES = """=== Testing Sandbox Isolation ===
[PASS] External egress blocked
[PASS] Hub reachable from agent
[PASS] Agent messaging via Hub works
=== ALL ISOLATION TESTS PASSED ===
"""


def start(directory, *args, env=None):
    options = environment()["ASAN_OPTIONS"] + ":detect_leaks=0"
    os.makedirs(directory, exist_ok=True)
    return subprocess.Popen([f"{ROOT}/tools/hub", BUILD, *args, "--runtime", "native", "--state", f"{directory}/state", "--listen", "127.0.0.1:0"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                            env=environment({"ASAN_OPTIONS": options, **(env or {})}))


def finish(p, directory):
    try:
        out, err = p.communicate(timeout=80)
        return p.returncode, out, err
    finally:
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGKILL)
        end_spawn(f"{directory}/state")


def test_the_lines_of_the_seed(tmp_path):
    status, out, err = finish(start(tmp_path, "--once"), tmp_path)
    assert (status, out) == (0, LINES), (out, err)
    assert not os.listdir(f"{tmp_path}/state/sandboxes") if os.path.isdir(f"{tmp_path}/state/sandboxes") else True


def test_what_is_not_blocked_is_seen(tmp_path):
    """The hub itself stands for an address outside that answers."""
    status, out, _ = finish(start(tmp_path, "--once", env={"HUB_OUTSIDE": "http://hub:8080/ping"}), tmp_path)
    assert status == 1 and "[FAIL] External egress blocked" in out and "[PASS] Hub reachable from agent" in out
    assert "ALL ISOLATION TESTS PASSED" not in out


def test_it_stays_until_it_is_told_to_go(tmp_path):
    p = start(tmp_path)
    try:
        lines = [p.stdout.readline() for _ in range(5)]
        assert "".join(lines) == LINES
        wait_for(lambda: "Ctrl-C" in p.stdout.readline())
        assert p.poll() is None
    finally:
        p.send_signal(signal.SIGINT)
    status, _, err = finish(p, tmp_path)
    assert status == 130, err
