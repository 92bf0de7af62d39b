"""Each guard is left out in turn, and an attempt must get through: so the attempts can fail.

The holt-spawn used here is built as with -Dtest_guards=true (src/spawn/guards.h); the one that is installed has no such
switch, which is tested too.
"""
import subprocess
from types import SimpleNamespace

import pytest

import boxes
from attempts import ATTEMPTS, CALLS
from conftest import LIMITS, open_spawn, put_probe

UNGUARDED = f"{boxes.BUILD}/tests/security/holt-spawn-unguarded"
# guard: (attempts or calls that get through without it, where it can be left out)
ALL = ("root", "rootless", "bare")
GUARDS = {
    "seccomp": (["keyrings", "io_uring_setup", "name_to_handle_at", "add_key", "type_into_the_terminal", "socket_vsock", "tiocsetd", "personality_exec",
                 "every_call"], ALL),
    "command_filter": (["limits_of_init", "clone3_plain", "every_call"], ALL),
    "landlock": (["second_barrier"], ALL),
    "masks": (["what_proc_tells"], ALL),
    "caps": (["capabilities"], ALL),
    "userns": (["nested_user_namespace"], ALL),
    "rlimits": (["open_files"], ALL),
    "limits": (["fork_bomb", "memory_bomb"], ("root", "rootless")),  # by cgroups
    "network": (["interfaces", "host_addresses", "abstract_socket_of_host", "sockets_of_host"], ALL),
    "queues": (["queues_of_neighbours"], ALL),
    "usr_readonly": (["host_mounts"], ALL),
    "dev_readonly": (["write_dev"], ALL),
    "terminals": (["terminals"], ALL),
    "disk": (["disk_bomb"], ALL),
    "oom_score": (["outlive_the_hosts_programs"], ("root",)),
    "ids": (["users_of_neighbours"], ("root",)),  # only root has a range for each sandbox
}
CASES = [(guard, mode) for guard, (_, modes) in GUARDS.items() for mode in modes]


@pytest.mark.parametrize("guard, mode", CASES)
def test_attempt_gets_through_without(guard, mode, prey):
    s = open_spawn(mode, program=UNGUARDED, env={"HOLT_OMIT": guard})
    try:
        if guard == "limits" and not s.features & boxes.CAN_PIDS:
            pytest.skip("no cgroups here")
        host = SimpleNamespace(**vars(prey))
        host.neighbour = put_probe(s.create("sb_neighbour", **LIMITS))
        for name in GUARDS[guard][0]:
            box = put_probe(s.create("sb_attacker", **LIMITS))
            if guard == "limits":
                box.enforced |= boxes.CAN_MEMORY | boxes.CAN_PIDS  # or the attempt would not be made
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


@pytest.mark.parametrize("mode", ALL)
def test_attempts_fail_when_nothing_is_left_out(mode, prey):
    """The same program with its guards: else the tests above would only show that it is broken."""
    s = open_spawn(mode, program=UNGUARDED)
    try:
        host = SimpleNamespace(**vars(prey))
        host.neighbour = put_probe(s.create("sb_neighbour", **LIMITS))
        for names, modes in GUARDS.values():
            for name in names:
                if mode not in modes or name in CALLS:
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
