"""Which system calls a sandbox may make, as a person and the operator choose it, and how many processes it may have."""
import pytest

from daemon import native

# remap_file_pages(2): old and seldom used, so not in the narrow table.
CALL = "import ctypes; l = ctypes.CDLL(None, use_errno=True); l.syscall(216, 0, 0, 0, 0, 0); print(ctypes.get_errno())"
NARROW, WIDE = "38\n", "22\n"  # ENOSYS, and EINVAL of the kernel itself
FORKS = """import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
made = []
try:
    while len(made) < 400:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        made.append(pid)
except BlockingIOError:
    pass
print(len(made))
for pid in made:
    os.kill(pid, 9)
"""


def python(d, box, source):
    r = d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["python3", "-c", source], "timeout_ms": 60000})
    assert r["exit_code"] == 0, r
    return r["stdout"]


def create(d, **spec):
    return d.ok("POST", "/holt/v1/sandboxes", {"upper": "memory", **spec})


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("holtd"))
    yield d
    d.clear()
    d.stop()


def test_narrow_is_the_usual_kind_and_wide_can_be_chosen(holtd):
    usual, narrow, wide = create(holtd), create(holtd, syscalls="narrow"), create(holtd, syscalls="wide")
    assert [b["syscalls"] for b in (usual, narrow, wide)] == ["narrow", "narrow", "wide"]
    assert [python(holtd, b["id"], CALL) for b in (usual, narrow, wide)] == [NARROW, NARROW, WIDE]
    assert holtd.request("POST", "/holt/v1/sandboxes", {"syscalls": "all"})[0] == 400


def test_it_is_kept_over_stop_and_restart(tmp_path):
    d = native(tmp_path / "d")
    try:
        box = d.ok("POST", "/holt/v1/sandboxes", {"syscalls": "wide"})["id"]
        d.stop()
        d = native(tmp_path / "d")
        assert d.ok("GET", f"/holt/v1/sandboxes/{box}")["syscalls"] == "wide"
        d.ok_once_found("POST", f"/holt/v1/sandboxes/{box}/stop", {})
        d.ok("POST", f"/holt/v1/sandboxes/{box}/start", {})
        assert python(d, box, CALL) == WIDE
    finally:
        d.clear()
        d.stop()


def test_agents_may_not_choose_wide(holtd):
    agent = holtd.ok("POST", "/holt/v1/tokens", {"name": "a", "role": "agent", "agent": "a1"})["token"]
    status, reply, _ = holtd.request("POST", "/holt/v1/sandboxes", {"syscalls": "wide"}, token=agent)
    assert status == 403 and "wide_syscalls" in str(reply) and "agents" in str(reply), reply
    assert holtd.request("POST", "/holt/v1/run", {"command": ["true"], "syscalls": "wide"}, token=agent)[0] == 403
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"upper": "memory"}, token=agent)
    assert box["syscalls"] == "narrow"


def test_the_operator_decides(tmp_path):
    d = native(tmp_path / "d", config="wide_syscalls: never\ndefault_pids: 40\n")
    try:
        assert d.request("POST", "/holt/v1/sandboxes", {"syscalls": "wide"})[0] == 403
        box = create(d)["id"]
        assert 20 < int(python(d, box, FORKS)) <= 40
        more = create(d, pids=120)["id"]  # its own limit counts, where the host can hold it
        assert int(python(d, more, FORKS)) > 60
    finally:
        d.clear()
        d.stop()


def test_wide_by_default_for_all(tmp_path):
    d = native(tmp_path / "d", config="syscalls: wide\nwide_syscalls: agents\n")
    try:
        agent = d.ok("POST", "/holt/v1/tokens", {"name": "a", "role": "agent", "agent": "a1"})["token"]
        for body in ({}, {"syscalls": "wide"}):
            box = d.ok("POST", "/holt/v1/sandboxes", {"upper": "memory", **body}, token=agent)
            assert box["syscalls"] == "wide" and python(d, box["id"], CALL) == WIDE
        assert python(d, create(d, syscalls="narrow")["id"], CALL) == NARROW
    finally:
        d.clear()
        d.stop()
