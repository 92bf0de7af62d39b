"""The rules between a request and production are left out in turn, and what they forbid must happen: so their tests can fail.

The holtd used here is built with src/base/omit.h; the one that is installed has no such switch."""
import subprocess

import pytest

import test_rollout
from daemon import BUILD, native
from ssh_client import API
from test_rollout import BOOKS, answer, apply, book, comes_to, d, machine, output, production, run, show, token, write  # noqa: F401

pytestmark = [*test_rollout.pytestmark, pytest.mark.slow]
UNRULED = f"{BUILD}/tests/security/holtd-unruled"
PROBE = """
import os, socket, urllib.parse
p = urllib.parse.urlsplit(os.environ['HTTPS_PROXY'])
s = socket.create_connection((p.hostname, p.port))
s.sendall(b'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\\r\\n')
print('said', s.recv(99).decode().split()[1])
"""


def start(directory, omit):
    d = native(directory, "--bindir", BUILD, program=UNRULED, env={"HOLTD_OMIT": omit})
    d.agent, d.ann = token(d, "worker", "agent"), token(d, "ann")
    return d


def without_a_person(d, path):
    """A playbook changes a target, and nobody was asked."""
    box = production(d, "prod")
    book(d, "x", write("/root/x", "x"), owner=d.agent)
    ro = apply(d, "x", "prod", d.agent)
    return comes_to(d, ro, "succeeded", "waiting")["state"] == "succeeded" and run(d, box, "cat", "/root/x")["stdout"] == "x"


def by_its_requester(d, path):
    """A person approves what the same person asked for."""
    production(d, "prod")
    book(d, "x", ("ping", None), owner=d.ann)
    return answer(d, apply(d, "x", "prod", d.ann), True, d.ann)[0] == 200


def a_check_runs_a_program(d, path):
    """A template's program runs before anybody has approved."""
    production(d, "prod")
    book(d, "x", ("command", {"cmd": "echo {{ lookup('pipe', 'echo ran >&2; exit 1') }}"}))
    ro = apply(d, "x", "prod", "admin")
    comes_to(d, ro, "waiting")
    return "returned 1" in output(d, ro, "check")


def another_machine_answers(d, path):
    """A machine with another host key than the target's gets the playbook."""
    with machine(d, path / "m", "real") as port:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path / "evil"], check=True)
        d.ok("POST", f"{API}/targets", {"name": "evil", "address": "127.0.0.1", "port": port, "host_key": (path / "evil.pub").read_text().strip(), "principals": ["deploy"]})
        return d.ok("POST", f"{API}/targets/evil/check", {})["reached"]


def it_reaches_elsewhere(d, path):
    """A playbook, approved, connects from its sandbox to something that is not the target: holtd itself."""
    production(d, "prod")
    program = PROBE.replace("{port}", str(d.port))
    look = "python3 -c \"exec(bytes.fromhex('%s'))\"" % program.encode().hex()
    tasks = [{"name": "look", "module": "set_fact", "params": {"look": {"__ansible_unsafe": look}}}, {"name": "say", "module": "debug", "params": {"msg": "{{ lookup('pipe', look) }}"}}]
    d.ok("POST", BOOKS, {"name": "x", "tasks": tasks}, token=d.agent)
    ro = apply(d, "x", "prod", d.agent)
    answer(d, ro, True, d.ann)
    comes_to(d, ro, "succeeded")
    assert "said " in output(d, ro), output(d, ro)
    return "said 200" in output(d, ro)


def an_agent_reads_the_check(d, path):
    """An agent sees what is in a target's file by asking to change it."""
    box = production(d, "prod")
    run(d, box, "sh", "-c", "echo word-inside > /root/private")
    book(d, "x", write("/root/private", "x"), owner=d.agent)
    ro = apply(d, "x", "prod", d.agent)
    comes_to(d, ro, "waiting")
    return "-word-inside" in str(d.request("GET", f"{test_rollout.ROLLOUTS}/{ro}/logs?phase=check&follow=false", token=d.agent)[1])


RULES = {"readers": an_agent_reads_the_check, "approval": without_a_person, "asker": by_its_requester, "looking": a_check_runs_a_program, "pin": another_machine_answers, "reach": it_reaches_elsewhere}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("omitted", [True, False])
def test_what_is_forbidden_happens_without_the_rule_alone(tmp_path, rule, omitted):
    d = start(tmp_path / "d", rule if omitted else "")
    try:
        assert RULES[rule](d, tmp_path) == omitted, f"{'without' if omitted else 'with'} the rule '{rule}'"
    finally:
        d.clear()
        d.stop()


def test_the_installed_holtd_has_no_switch():
    def has(program):
        return subprocess.run(["grep", "-q", "HOLTD_OMIT", program], check=False).returncode == 0
    assert has(UNRULED) and not has(f"{BUILD}/holtd")
