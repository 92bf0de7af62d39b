"""Each guard is left out in turn, and an attempt must get through: so the attempts can fail.

The holt-spawn used here is linked with omit.c and built as with -Dtest_guards=true; the one that is installed has no
such switch, which is tested too.
"""
import subprocess
from types import SimpleNamespace

import pytest

import boxes
from attempts import ATTEMPTS, CALLS
from conftest import LIMITS, put_probe

UNGUARDED = f"{boxes.BUILD}/tests/security/holt-spawn-unguarded"
# guard: (attempts or calls that get through without it, "root" where it can be left out as root only)
GUARDS = {
    "seccomp": (["keyrings", "io_uring_setup", "name_to_handle_at", "add_key"], None),
    "command filter": (["limits_of_init", "type_into_the_terminal", "socket_vsock", "clone3_plain"], None),
    "capabilities": (["capabilities"], None),
    "no namespaces": (["nested_user_namespace"], None),
    "rlimits": (["open_files"], None),
    "cgroup v1": (["fork_bomb", "memory_bomb"], "root"),
    "network": (["interfaces", "host_addresses", "abstract_socket_of_host", "sockets_of_host"], "root"),
    "queues": (["queues_of_neighbours"], None),
    "read-only": (["host_mounts", "write_dev"], None),
    "terminals": (["terminals"], None),
    "disk": (["disk_bomb"], None),
    # those of src/spawn/guards.h: a build with -Dtest_guards=true has them
    "command_filter": (["type_into_the_terminal", "socket_vsock", "limits_of_init"], None),
    "caps": (["capabilities"], None),
    "usr_readonly": (["host_mounts"], None),
    "userns": (["nested_user_namespace"], None),
    "ids": (["users_of_neighbours"], "root"),
}


@pytest.mark.parametrize("mode", ["root", "rootless"])
@pytest.mark.parametrize("guard", GUARDS)
def test_attempt_gets_through_without(guard, mode, prey):
    names, only = GUARDS[guard]
    if only not in (None, mode):
        pytest.skip(f"this guard can be left out as {only} only")
    s = boxes.Spawn(mode == "rootless", program=UNGUARDED, env={"HOLT_OMIT": guard})
    try:
        if guard == "cgroup v1" and not s.features & boxes.CAN_PIDS:
            pytest.skip("no cgroups here")
        host = SimpleNamespace(**vars(prey))
        host.neighbour = put_probe(s.create("sb_neighbour", **LIMITS))
        for name in names:
            box = put_probe(s.create("sb_attacker", **LIMITS))
            if name in CALLS:
                seen = box.run("/tmp/probe", "calls", name).out.decode().split()[1]
                assert seen not in CALLS[name], f"without '{guard}', {name} is refused all the same: {seen}"
            else:
                with pytest.raises((AssertionError, boxes.Refused, OSError)):
                    ATTEMPTS[name](box, host)
            box.destroy()
        host.contacts()
        host.neighbour.destroy()
    finally:
        s.stop()


@pytest.mark.parametrize("mode", ["root", "rootless"])
def test_attempts_fail_when_nothing_is_left_out(mode, prey):
    """The same program with its guards: else the tests above would only show that it is broken."""
    s = boxes.Spawn(mode == "rootless", program=UNGUARDED)
    try:
        host = SimpleNamespace(**vars(prey))
        host.neighbour = put_probe(s.create("sb_neighbour", **LIMITS))
        for names, only in GUARDS.values():
            for name in names:
                if only not in (None, mode) or name in CALLS:
                    continue
                box = put_probe(s.create("sb_attacker", **LIMITS))
                ATTEMPTS[name](box, host)
                box.destroy()
        host.neighbour.destroy()
    finally:
        s.stop()


def test_the_installed_spawn_has_no_switch():
    for word in ("HOLT_OMIT", "guard_left_out"):
        for program in ("holt-spawn", "holt-init"):
            found = subprocess.run(["grep", "-c", word, f"{boxes.BUILD}/{program}"], capture_output=True, check=False)
            assert found.returncode == 1, f"'{word}' is in {program}"
    assert subprocess.run(["grep", "-q", "HOLT_OMIT", UNGUARDED], check=False).returncode == 0
