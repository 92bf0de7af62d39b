"""Fixtures of the attacks: a holt-spawn as root and one as an ordinary user, two sandboxes, and what to reach for."""
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from types import SimpleNamespace

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import boxes  # noqa: E402
from attempts import ATTEMPTS  # noqa: E402

PROBE = f"{boxes.BUILD}/tests/security/security-probe"
LIMITS = {"memory": 256 << 20, "disk": 128 << 20, "pids": 100, "nofile": 1024}


# What is ruled out: without root all sandboxes have the same users; by one id and no cgroups.  docs/threat-model.md says so.
# Without cgroups the kill of one command is a chase, which was lost once in some hundred times on a busy machine (docs/runtime.md).
NOT_IN = {
    "rootless": {"users_of_neighbours"},
    "bare": {"fork_faster_than_a_kill", "users_of_neighbours", "capabilities_of_another_user", "set_user_id", "memory_bomb"},
}
# In gVisor these are about gVisor's own kernel, not the host's: what its /proc, masks, terminals and calls answer, and an init that
# root inside may look at and end, which ends that sandbox alone.  Limits end gVisor as a whole (docs/runtimes.md).
NOT_IN["runsc"] = {
    "what_proc_tells", "sysfs", "host_mounts", "write_sysctl", "root_is_made_up", "environment_of_spawn", "look_into_init",
    "descriptors_of_others", "release_agent", "copy_of_init", "write_dev", "second_barrier", "device_nodes", "leaked_descriptors_terminal",
    "capabilities", "capabilities_of_another_user", "other_call_tables", "children_of_init", "signals_to_init", "type_into_the_terminal",
    "keyrings", "nested_user_namespace", "every_number_of_other_tables", "every_call", "fork_bomb", "memory_bomb", "memory_bomb_in_files",
    "terminals_of_neighbours", "terminals", "paths_of_the_api", "daemon_after_kill", "fork_faster_than_a_kill", "run_through_a_pause",
    "daemon_without_its_mark", "drown_a_kill"}
# By an ordinary user with one id and no cgroups: what holt does in another way there. With HOLT_BRIEF that alone is tried.
BARE_DIFFERS = {
    "root_is_made_up", "look_into_init", "cgroup_files", "cgroup_paths", "release_agent", "capabilities", "trace_commands_of_init",
    "children_of_init", "signals_to_init", "limits_of_init", "nested_user_namespace", "processes_of_neighbours", "fork_bomb",
    "die_after_init", "memory_bomb_in_files", "daemon_after_kill", "daemon_without_its_mark", "fork_faster_than_a_kill",
    "drown_a_kill", "run_through_a_pause"}


CONTAINERS = ("runc", "crun", "runsc")
# In `make test` these; the rest of the attempts on containers are in `make test-runtimes`.
IN_BRIEF = {"read_secret_file", "find_secret", "kernel_memory", "host_mounts", "release_agent", "write_usr", "device_nodes", "capabilities",
            "look_into_init", "leaked_descriptors", "host_addresses", "sockets_of_host", "processes_of_neighbours", "files_of_neighbours"}

NEEDS_LIMITS = {"memory_bomb", "fork_bomb"}  # those of v1 are not for sandboxes made ahead: boxes.py


def params_of(item):
    return item.callspec.params if hasattr(item, "callspec") else {}


def is_possible(item):
    params = params_of(item)
    mode = params.get("spawn", "")
    if mode in CONTAINERS:
        if item.path.name != "test_escape.py" or (mode == "runsc" and params.get("name") not in ATTEMPTS):
            return False  # its calls are gVisor's
        if params.get("name") not in IN_BRIEF:
            item.add_marker(pytest.mark.runtimes)
    if mode.startswith("warm "):  # what is tried: whether one made ahead is the same, and as well shut
        if item.path.name != "test_escape.py" or params.get("name") in NEEDS_LIMITS:
            return False
    return params.get("name") not in NOT_IN.get(mode.removeprefix("warm "), ())


def is_the_same(item):
    """As it is with more rights: left out where each sandbox takes long (tools/v2-guest)."""
    params, file = params_of(item), item.path.name
    if params.get("mode", params.get("spawn")) not in ("bare", "warm bare"):
        return False
    attempt = file == "test_escape.py" and params.get("name") in ATTEMPTS
    return file in ("test_guards.py", "test_mounts.py", "test_shared_trees.py") or (attempt and params["name"] not in BARE_DIFFERS)


def pytest_collection_modifyitems(config, items):
    items[:] = [item for item in items if is_possible(item)]
    if os.environ.get("HOLT_BRIEF"):
        same = [item for item in items if is_the_same(item)]
        items[:] = [item for item in items if item not in same]
        config.hook.pytest_deselected(items=same)
    for item in items:
        if not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(240 * boxes.SLOW))


def put_probe(box):
    with open(PROBE, "rb") as f:
        box.put("/tmp/probe", f.read())
    return box


def host_addresses():
    text = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout
    return ["127.0.0.1", "127.0.0.53", "::1", "0.0.0.0", *text.split()]


@pytest.fixture(scope="session")
def prey():
    """What the attempts are after, on the host: a secret file, TCP and UDP listeners, an abstract socket."""
    directory = tempfile.mkdtemp(prefix="holt-secret.", dir="/var/tmp")
    h = SimpleNamespace(secret=secrets.token_hex(16), secret_dir=directory, secret_name="key")
    h.secret_path = f"{directory}/key"
    with open(os.open(h.secret_path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as f:
        f.write(h.secret)
    tcp = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    h.port = tcp.getsockname()[1]
    udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    udp.bind(("::", h.port))
    unix = socket.socket(socket.AF_UNIX)
    h.abstract = f"holt-test-{h.secret[:8]}"
    unix.bind("\0" + h.abstract)
    unix.listen()
    h.addresses = host_addresses()

    def contacts():
        n = 0
        for s, take in ((tcp, tcp.accept), (udp, lambda: udp.recvfrom(16)), (unix, unix.accept)):
            s.setblocking(False)
            try:
                while True:
                    take()
                    n += 1
            except BlockingIOError:
                pass
        return n

    h.contacts = contacts
    socket.create_connection(("127.0.0.1", h.port)).close()  # the listener works: else no attempt could fail
    assert contacts() == 1
    yield h
    for s in (tcp, udp, unix):
        s.close()
    shutil.rmtree(directory)


def open_spawn(mode, **more):
    if os.geteuid() != 0:
        pytest.skip("needs root, to be root and an ordinary user")
    if mode in CONTAINERS:
        if not shutil.which(mode, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            pytest.skip(f"{mode} is not installed: tools/deps runtimes")
        mode, more = "root", {**more, "runtime": mode}
    try:
        return boxes.Spawn(mode, **more)
    except boxes.as_user.Skip as e:
        pytest.skip(str(e))


@pytest.fixture(scope="session", params=["root", "rootless", "bare", "warm root", "warm rootless", "warm bare", *CONTAINERS])
def spawn(request):
    s = open_spawn(request.param)
    yield s
    s.stop()


@pytest.fixture(scope="session")
def host(spawn, prey):
    h = SimpleNamespace(**vars(prey))
    h.neighbour = put_probe(spawn.create("sb_neighbour", **spawn.limits(**LIMITS)))
    yield h
    h.neighbour.destroy()


@pytest.fixture
def box(spawn):
    b = put_probe(spawn.create("sb_attacker", **spawn.limits(**LIMITS)))
    yield b
    b.destroy()


@pytest.fixture(scope="session")
def calls(spawn):
    """What the probe's table of system calls answers: {name: result}."""
    b = put_probe(spawn.create("sb_calls", **spawn.limits(**LIMITS)))
    out = b.run("/tmp/probe", "calls").out.decode()
    b.destroy()
    return dict(line.split(" ", 1) for line in out.splitlines())
