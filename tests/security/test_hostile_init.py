"""A PID 1 that lies to holtd's end of the guest protocol: its own sandbox is lost, and nothing else suffers."""
import os
import re
import subprocess

import pytest

import boxes
from test_end import leftovers

DRIVER = f"{boxes.BUILD}/tests/security/hostile_driver"
HOSTILE = f"{boxes.BUILD}/tests/security/security-hostile-init"
# lie: must the connection have been ended?
LIES = {"zeros": True, "random": True, "frames": True, "data": None, "data held": True, "gap": True, "end": True, "ack": True,
        "length": True, "nonce": True, "relays": None, "twice": None, "again": None, "pongs": None, "resets": None,
        "slow": None, "silent": None, "execs": None, "never": False, "gone": True}


@pytest.fixture(scope="module")
def two():
    if os.geteuid() != 0:
        pytest.skip("needs root")
    hostile, good = boxes.Spawn(init=HOSTILE), boxes.Spawn()
    box = good.create("sb_good", pids=50, memory=128 << 20)
    box.sock.close()
    yield hostile, good
    hostile.stop()
    good.stop()


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_harms_its_own_sandbox_only(two, lie):
    hostile, good = two
    box = hostile.create("sb_liar", connect=False, hostname=lie.split()[0], pids=50, memory=128 << 20)
    r = subprocess.run([DRIVER, f"{hostile.state}/sb/sb_liar/init.sock", f"{good.state}/sb/sb_good/init.sock", "600",
                        *(["hold"] if "held" in lie else []), *(["ends"] if LIES[lie] else [])],
                       capture_output=True, text=True, timeout=90 * boxes.SLOW, check=False)
    box.destroy()  # whatever it does: it never exits by itself
    assert r.returncode == 0, f"{r.returncode}: {r.stdout}{r.stderr}"
    seen = dict(re.findall(r"^(\w+) (.*)$", r.stdout, re.M))
    assert int(seen["connections"]) >= 1, r.stdout
    if LIES[lie] is not None:
        assert (int(seen["lost"]) + int(seen["gone"]) > 0) == LIES[lie], r.stdout
    assert int(seen["grown_kib"]) < 8192, r.stdout
    assert int(seen["good_exited"]) >= 10 and seen["good_lost"] == "0", r.stdout
    assert int(seen["good_slowest_ms"]) < 5000 * boxes.SLOW, r.stdout  # the machine may be busy; alone it is 20
    assert leftovers(hostile) == ""
