"""Crash loops: sandboxes whose init ends by itself again and again are stopped, rebuilt, given up, reset by a person."""
import os
import re
import signal

import pytest

from daemon import Holtd, all_events, is_running, wait_for

API = "/holt/v1"
SETTINGS = """
crash_count: 3
crash_window_ms: 5m
crash_uptime_ms: {uptime}
crash_healthy_ms: {healthy}
"""


@pytest.fixture
def world(tmp_path):
    made = []

    def begin(more="", uptime="2m", healthy="4m"):
        made[:] = [Holtd(tmp_path, config=SETTINGS.format(uptime=uptime, healthy=healthy) + more)]
        return made[0]
    yield begin
    for d in made:
        d.clear()
        d.stop()


def init_of(d, box):
    """The fake runtime's init works in the sandbox's directory."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe").endswith("/holt-init") and f"/{box}" in os.readlink(f"/proc/{pid}/cwd") and is_running(pid):
                return int(pid)
        except OSError:
            continue
    return None


def state(d, box):
    return d.ok("GET", f"{API}/sandboxes/{box}")["state"]


def crash(d, box):
    os.kill(wait_for(lambda: init_of(d, box)), signal.SIGKILL)
    wait_for(lambda: state(d, box) == "failed")


def crashes(d, box):
    return d.ok("GET", f"{API}/sandboxes/{box}/crashes")


def begin_again(d, box):
    """The step that cleans up behind a crash may still be under way."""
    def ask():
        status, reply, _ = d.request("POST", f"{API}/sandboxes/{box}/start")
        if status == 409 and "try again" in reply["error"].get("hint", ""):
            return None
        return (status, reply)
    return wait_for(ask)


def loop(d, box, times=3):
    for i in range(times):
        if i:
            status, reply = begin_again(d, box)
            assert status == 200, reply
        crash(d, box)


def types(d):
    return [e["type"] for e in all_events(d) if re.match(r"sandbox\.(crash|rebuilt)", e["type"])]


def metric(d, name):
    return int(float(re.search(rf"^{name} (\S+)$", d.request("GET", "/metrics")[1], re.M)[1]))


def test_it_is_found_and_announced_and_reset(world):
    d = world()
    box = d.ok("POST", f"{API}/sandboxes", {"name": "b"})["id"]
    loop(d, box, 2)
    c = crashes(d, box)
    assert (c["state"], c["crashes"], c["loop_since"]) == ("recovering", 2, None)
    assert begin_again(d, box)[0] == 200
    crash(d, box)
    c = crashes(d, box)
    assert (c["state"], c["crashes"], c["rebuild_at"]) == ("crash_loop", 3, None) and c["loop_since"]
    assert len(c["history"]) == 3 and all("signal 9" in h["why"] and h["uptime_ms"] >= 0 for h in c["history"])
    status, reply = begin_again(d, box)
    assert status == 409 and "crash loop" in reply["error"]["message"] and "crash-reset" in reply["error"]["hint"], reply
    assert types(d) == ["sandbox.crash_loop"]
    told = [e["event_type"] for e in d.ok("GET", "/api/v1/events?source=b")["events"]]
    assert "container.crash_loop_detected" in told
    wait_for(lambda: metric(d, "holt_sandboxes_crash_loop") == 1)
    assert metric(d, "holt_sandbox_crashes_total") == 3 and metric(d, "holt_sandbox_crash_loops_total") == 1
    d.ok("POST", f"{API}/sandboxes/{box}/crash-reset")
    assert crashes(d, box)["state"] == "healthy" and len(crashes(d, box)["history"]) == 3
    assert begin_again(d, box)[0] == 200
    crash(d, box)
    assert crashes(d, box)["state"] == "recovering"
    assert types(d) == ["sandbox.crash_loop", "sandbox.crash_reset"]
    wait_for(lambda: metric(d, "holt_sandboxes_crash_loop") == 0)


def test_it_outlives_holtd_and_ends_with_a_reprovision(world):
    d = world()
    box = d.ok("POST", f"{API}/sandboxes", {})["id"]
    loop(d, box)
    d.kill()
    d = world()
    assert crashes(d, box)["state"] == "crash_loop" and crashes(d, box)["crashes"] == 3
    assert begin_again(d, box)[0] == 409
    assert d.ok("POST", f"{API}/sandboxes/{box}/reprovision")["state"] == "running"
    assert crashes(d, box)["state"] == "healthy"


def test_it_is_rebuilt_after_its_cool_down_and_given_up(world):
    d = world("crash_rebuilds: 1\ncrash_cooldown_ms: 2s\n")
    box = d.ok("POST", f"{API}/sandboxes", {})["id"]
    d.ok("PUT", f"{API}/sandboxes/{box}/files?path=/tmp/kept-{box}", b"x", headers={"Content-Type": "application/octet-stream"})
    loop(d, box)
    c = crashes(d, box)
    assert c["state"] == "crash_loop" and c["rebuild_at"] > c["loop_since"]
    assert begin_again(d, box)[0] == 409
    wait_for(lambda: state(d, box) == "running")
    c = crashes(d, box)
    assert (c["state"], c["rebuilds"], c["rebuild_at"]) == ("healthy", 1, None)
    wait_for(lambda: types(d) == ["sandbox.crash_loop", "sandbox.rebuilt"])
    assert metric(d, "holt_sandbox_rebuilds_total") == 1
    loop(d, box)
    c = crashes(d, box)
    assert (c["state"], c["rebuild_at"]) == ("failed", None)
    assert types(d)[-1] == "sandbox.crash_loop_failed"
    assert begin_again(d, box)[0] == 409
    d.ok("POST", f"{API}/sandboxes/{box}/crash-reset")
    assert begin_again(d, box)[0] == 200


def test_a_pending_rebuild_outlives_holtd(world):
    more = "crash_rebuilds: 1\ncrash_cooldown_ms: 4s\n"
    d = world(more)
    box = d.ok("POST", f"{API}/sandboxes", {})["id"]
    loop(d, box)
    due = crashes(d, box)["rebuild_at"]
    d.kill()
    d = world(more)
    assert crashes(d, box)["rebuild_at"] == due
    wait_for(lambda: state(d, box) == "running")


def test_health_forgives(world):
    d = world(healthy="1s")
    box = d.ok("POST", f"{API}/sandboxes", {})["id"]
    loop(d, box, 2)
    assert begin_again(d, box)[0] == 200
    wait_for(lambda: crashes(d, box)["state"] == "healthy")
    crash(d, box)
    assert begin_again(d, box)[0] == 200
    crash(d, box)
    assert crashes(d, box)["state"] == "recovering" and crashes(d, box)["crashes"] == 4


def test_one_that_ran_for_long_is_in_no_loop(world):
    d = world(uptime="1ms")
    box = d.ok("POST", f"{API}/sandboxes", {})["id"]
    loop(d, box, 4)
    assert crashes(d, box)["state"] == "recovering" and begin_again(d, box)[0] == 200


def test_a_stop_is_no_crash(world):
    d = world()
    box = d.ok("POST", f"{API}/sandboxes", {})["id"]
    for _ in range(4):
        d.ok("POST", f"{API}/sandboxes/{box}/stop", {})
        d.ok("POST", f"{API}/sandboxes/{box}/start")
    assert crashes(d, box)["crashes"] == 0
