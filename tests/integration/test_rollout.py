"""Playbooks applied to targets: check, approval by another person, run, rollback; with the distribution's ansible-playbook and sshd."""
import base64
import contextlib
import os
import shutil
import subprocess
import time
import urllib.request

import pytest

from daemon import BUILD, all_events, can_freeze, free_ports, native, wait_for
from git_server import BACKEND, GitServer, git
from ssh_client import API, SSHD

pytestmark = [pytest.mark.skipif(not shutil.which("ansible-playbook", path="/usr/bin"), reason="no ansible: tools/deps test"),
              pytest.mark.skipif(not SSHD, reason="no sshd: tools/deps test"),
              pytest.mark.skipif(os.geteuid() != 0, reason="sshd logs in as another user")]
ROLLOUTS, BOOKS = f"{API}/rollouts", f"{API}/playbooks"
OVER = ("succeeded", "failed", "rejected", "cancelled", "rolled_back")
LONG = 120
NAMES = {"git.test": ["127.0.0.1"]}


def token(d, name, role="operator", **more):
    return d.ok("POST", f"{API}/tokens", {"name": name, "role": role, **({"agent": name} if role == "agent" else {"person": name}), **more})["token"]


@pytest.fixture(scope="module")
def d(tmp_path_factory):
    daemon = native(tmp_path_factory.mktemp("rollout"))
    daemon.agent, daemon.ann, daemon.bob = token(daemon, "worker", "agent"), token(daemon, "ann"), token(daemon, "bob")
    yield daemon
    daemon.clear()
    daemon.stop()


def production(d, name, **target):
    """A second sandbox with the machine's sshd, as a target."""
    box = d.ok("POST", f"{API}/sandboxes", {"name": name})["id"]
    d.ok("POST", f"{API}/targets", {"name": name, "sandbox": name, **target})
    assert d.ok("POST", f"{API}/targets/{name}/check", {})["reached"]  # its first login adds the account 'sshd' (docs/access.md)
    return box


@contextlib.contextmanager
def machine(d, directory, name, **target):
    """A machine that is none of ours: the distribution's sshd on loopback, which trusts the authority."""
    os.makedirs(directory, exist_ok=True)
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{directory}/host"], check=True)
    (directory / "ca.pub").write_text(d.ok("GET", f"{API}/access/ca")["public_key"] + "\n")
    (directory / "principals").write_text("deploy\n")
    port = free_ports()[0]
    options = {"Port": port, "ListenAddress": "127.0.0.1", "HostKey": directory / "host", "TrustedUserCAKeys": directory / "ca.pub", "UsePAM": "no",
               "AuthorizedPrincipalsFile": directory / "principals", "StrictModes": "no", "PidFile": "none", "PasswordAuthentication": "no",
               "PermitRootLogin": "prohibit-password"}
    p = subprocess.Popen([SSHD, "-D", "-f", "/dev/null", *(a for k, v in options.items() for a in ("-o", f"{k}={v}"))], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: subprocess.run(["ssh-keyscan", "-p", str(port), "127.0.0.1"], capture_output=True).stdout)
        key = (directory / "host.pub").read_text().strip()
        d.ok("POST", f"{API}/targets", {"name": name, "address": "127.0.0.1", "port": port, "host_key": key, "principals": ["deploy"], **target})
        yield port
    finally:
        p.terminate()
        p.wait()


def book(d, name, *tasks, owner="admin", **more):
    body = {"name": name, "tasks": [{"name": f"Step {i}", "module": m, "params": p} for i, (m, p) in enumerate(tasks)], **more}
    return d.ok("POST", BOOKS, body, token=owner)["name"]


def write(path, content):
    return "copy", {"dest": str(path), "content": content, "mode": "0640"}


def apply(d, name, to, owner, **more):
    return d.ok("POST", f"{BOOKS}/{name}/apply", {"to": to, **more}, token=owner)["id"]


def show(d, rollout):
    return d.ok("GET", f"{ROLLOUTS}/{rollout}")


def comes_to(d, rollout, *states):
    seen = {}

    def there():
        seen.update(show(d, rollout))
        assert seen["state"] in states or seen["state"] not in OVER, (seen["error"], seen, output(d, rollout, "check"), output(d, rollout))
        return seen["state"] in states
    wait_for(there, LONG)
    return seen


def output(d, rollout, phase="run", follow=False):
    text = d.request("GET", f"{ROLLOUTS}/{rollout}/logs?phase={phase}&follow={str(follow).lower()}")[1]
    return "".join(line[6:] + "\n" for line in text.splitlines() if line.startswith("data: "))


def run(d, box, *command):
    return d.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": list(command)})


def tree(d, box):
    """Everything but what every login changes: times of access, and the records of sshd."""
    said = run(d, box, "sh", "-c", "find / -xdev \\( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp \\) -prune -o "
                                   "-not -name lastlog -not -name wtmp -printf '%p %y %m %u %s %T@\\n' 2>/dev/null | grep -v '^/usr' | sort")
    return said["stdout"]


def nothing_left(d):
    """No throw-away sandbox, no certificate that still opens something."""
    no_tools(d)
    return not [c for c in d.ok("GET", f"{API}/access/certificates")["certificates"] if c["state"] == "active"]


def answer(d, rollout, yes, who, reason="ok"):
    q = comes_to(d, rollout, "waiting")["approval"]
    return d.request("POST", f"{API}/approvals/{q}/{'approve' if yes else 'deny'}", {"reason": reason}, token=who)


def test_a_machine_is_changed_after_another_persons_yes(d, tmp_path):
    with machine(d, tmp_path / "machine", "web-1"):
        said = d.ok("POST", f"{API}/targets/web-1/check", {}, token=d.agent)
        assert said["reached"] and said["exit_code"] == 0 and "pong" in said["output"], said
        to = tmp_path / "changed"
        book(d, "motd", write(to, "hello\n"), ("command", {"cmd": "echo seen-by-a-command"}), owner=d.ann)
        ro = apply(d, "motd", "web-1", d.ann, note="as agreed")
        waiting = comes_to(d, ro, "waiting")
        assert waiting["check_exit"] == 0 and waiting["exit_code"] is None and waiting["people"] == 1 and not to.exists()
        q = d.ok("GET", f"{API}/approvals/{waiting['approval']}", token=d.bob)
        assert q["kind"] == "sensitive" and "motd" in q["question"] and "web-1" in q["question"] and "as agreed" in q["note"] and "status 0" in q["note"]
        kinds = {a["kind"]: a["content"] for a in q["attachments"]}
        assert kinds["playbook"] == waiting["content"] and "+hello" in kinds["diff"] and "changed=1" in kinds["diff"]
        assert answer(d, ro, True, d.ann)[0] == 403, "its requester is no other person"
        assert show(d, ro)["state"] == "waiting"
        assert answer(d, ro, True, d.bob)[0] == 200
        done = comes_to(d, ro, "succeeded")
        assert done["exit_code"] == 0 and done["ended_at"] and done["decided_by"] and done["error"] is None and done["snapshot"] is None
        assert to.read_text() == "hello\n" and to.stat().st_mode & 0o777 == 0o640
        assert "changed=2" in output(d, ro) and "changed=1" in output(d, ro, "check")
        assert nothing_left(d)
        moves = [e["type"] for e in all_events(d) if e["object"] == f"rollout/{ro}"]
        assert moves == [f"rollout.{s}" for s in ("created", "checking", "waiting", "approved", "applying", "succeeded")]
        assert "hello" not in str([e for e in all_events(d) if e["object"] == f"rollout/{ro}"])


def test_a_no_changes_not_one_byte_and_says_why(d):
    box = production(d, "prod-no")
    run(d, box, "sh", "-c", "echo before > /etc/app.conf")
    book(d, "conf", write("/etc/app.conf", "after\n"), ("file", {"path": "/etc/new.d", "state": "directory"}), owner=d.agent)
    before = tree(d, box)
    ro = apply(d, "conf", "prod-no", d.agent)
    assert answer(d, ro, True, d.agent)[0] == 403
    assert answer(d, ro, False, d.ann, "not before the weekend")[0] == 200
    over = d.ok("GET", f"{ROLLOUTS}/{comes_to(d, ro, 'rejected')['id']}", token=d.agent)
    assert over["error"] == "not before the weekend" and over["decided_by"] and over["exit_code"] is None and over["snapshot"] is None
    assert "-before" in output(d, ro, "check") and "+after" in output(d, ro, "check"), "the check has looked"
    assert tree(d, box).splitlines() == before.splitlines()
    assert output(d, ro) == "not before the weekend\n" and nothing_left(d)
    again = apply(d, "conf", "prod-no", d.agent)  # it may try again
    assert answer(d, again, True, d.ann)[0] == 200
    assert comes_to(d, again, "succeeded")["exit_code"] == 0 and run(d, box, "cat", "/etc/app.conf")["stdout"] == "after\n"


def test_a_check_shows_files_to_people_alone(d):
    """--diff prints what is in a target's files: an agent does not read production by asking to change it."""
    box = production(d, "prod-read")
    run(d, box, "sh", "-c", "echo top-secret-word > /root/private; chmod 600 /root/private")
    book(d, "peek", write("/root/private", "x\n"), owner=d.agent)
    assert d.request("POST", f"{BOOKS}/peek/apply", {"to": "prod-read", "check": True}, token=d.agent)[0] == 403
    ro = apply(d, "peek", "prod-read", d.agent)
    q = comes_to(d, ro, "waiting")["approval"]
    seen = [str(d.request("GET", path, token=d.agent)[1]) for path in (
        f"{ROLLOUTS}/{ro}", f"{ROLLOUTS}/{ro}/logs?phase=check&follow=false", f"{API}/approvals/{q}", f"{API}/approvals", f"/v1/human/pending/{q}",
        f"/v1/ansible/jobs/{ro}", f"{API}/events?limit=1000")]
    assert not [s for s in seen if "top-secret-word" in s]
    assert d.request("GET", f"{ROLLOUTS}/{ro}/logs?phase=check&follow=false", token=d.agent)[0] == 403
    assert "-top-secret-word" in output(d, ro, "check") and "-top-secret-word" in str(d.ok("GET", f"{API}/approvals/{q}", token=d.ann))
    answer(d, ro, False, d.ann)
    comes_to(d, ro, "rejected")
    assert d.request("GET", f"{ROLLOUTS}/{ro}/logs?phase=check&follow=false", token=d.agent)[0] == 403
    again = apply(d, "peek", "prod-read", d.agent)
    answer(d, again, True, d.ann)
    comes_to(d, again, "succeeded")
    assert d.request("GET", f"{ROLLOUTS}/{again}/logs?phase=check&follow=false", token=d.agent)[0] == 200, "approved: it was meant to"


def test_a_sandbox_is_rolled_back(d):
    if not can_freeze(d):
        pytest.skip("sandboxes have no cgroup of their own here: snapshots only of stopped ones")
    box = production(d, "prod-back")
    run(d, box, "sh", "-c", "echo before > /etc/app.conf")
    before = run(d, box, "cat", "/etc/app.conf")["stdout"]
    book(d, "back", write("/etc/app.conf", "after\n"), ("command", {"cmd": "false"}), owner=d.agent)
    ro = apply(d, "back", "prod-back", d.agent)
    answer(d, ro, True, d.ann)
    failed = comes_to(d, ro, "failed")
    assert failed["exit_code"] == 2 and "status 2" in failed["error"] and failed["snapshot"].startswith("sn_")
    assert run(d, box, "cat", "/etc/app.conf")["stdout"] == "after\n", "its first step was done"
    assert d.request("POST", f"{ROLLOUTS}/{ro}/rollback", {}, token=d.agent)[0] == 403
    d.ok("POST", f"{ROLLOUTS}/{ro}/rollback", {}, token=d.ann)
    comes_to(d, ro, "rolled_back")
    wait_for(lambda: d.ok("GET", f"{API}/sandboxes/{box}")["state"] == "running")
    assert run(d, box, "cat", "/etc/app.conf")["stdout"] == before
    assert d.request("POST", f"{ROLLOUTS}/{ro}/rollback", {}, token=d.ann)[0] == 409
    assert nothing_left(d)


def kill(d, directory):
    """holtd alone dies at once, and another one takes over."""
    d.process.kill()
    d.process.wait()
    again = native(directory)
    again.ann = d.ann
    return again


def no_tools(d):
    wait_for(lambda: not [s for s in d.ok("GET", f"{API}/sandboxes")["sandboxes"] if "holt.internal" in s["labels"]], 60)


def test_a_killed_holtd_goes_on_in_every_state(tmp_path):
    """The command runs once, whatever dies; what is left behind is nothing."""
    d, at = native(tmp_path / "d"), tmp_path / "m"
    try:
        d.ann = token(d, "ann")
        with machine(d, at, "prod"):
            book(d, "slow", ("shell", {"cmd": f"echo begun >> {at}/begun; sleep 5; echo through >> {at}/through"}))
            ro = apply(d, "slow", "prod", "admin")
            comes_to(d, ro, "checking", "waiting")
            d = kill(d, tmp_path / "d")
            comes_to(d, ro, "waiting")
            d = kill(d, tmp_path / "d")
            q = comes_to(d, ro, "waiting")["approval"]
            assert [a["id"] for a in d.ok("GET", f"{API}/approvals?state=pending")["approvals"]] == [q]
            assert d.request("POST", f"{API}/approvals/{q}/approve", {}, token=d.ann)[0] == 200
            d = kill(d, tmp_path / "d")  # before it could notice, or right after
            wait_for((at / "begun").exists, LONG)
            d = kill(d, tmp_path / "d")
            done = comes_to(d, ro, "succeeded")
            assert done["exit_code"] == 0 and output(d, ro).count("PLAY RECAP") == 1 and "changed=1" in output(d, ro)
            assert ((at / "begun").read_text(), (at / "through").read_text()) == ("begun\n", "through\n")
            no_tools(d)
    finally:
        d.clear()
        d.stop()


def test_a_killed_holtd_ends_what_went_through_it(tmp_path):
    """The way into a sandbox of ours is holtd's own: a run there breaks, once, and says so."""
    d = native(tmp_path / "d")
    try:
        d.ann = token(d, "ann")
        box = production(d, "prod")
        book(d, "slow", ("shell", {"cmd": "echo begun >> /root/begun; sleep 600"}))
        ro = apply(d, "slow", "prod", "admin")
        answer(d, ro, True, d.ann)
        wait_for(lambda: run(d, box, "cat", "/root/begun")["stdout"], LONG)
        d = kill(d, tmp_path / "d")
        assert comes_to(d, ro, "failed")["exit_code"] == 4
        assert run(d, box, "cat", "/root/begun")["stdout"] == "begun\n"
        if show(d, ro)["snapshot"]:
            d.ok("POST", f"{ROLLOUTS}/{ro}/rollback", {}, token=d.ann)
            d = kill(d, tmp_path / "d")
            comes_to(d, ro, "rolled_back")
            wait_for(lambda: d.ok("GET", f"{API}/sandboxes/{box}")["state"] == "running")
            assert run(d, box, "ls", "/root/begun")["exit_code"] != 0
        no_tools(d)
    finally:
        d.clear()
        d.stop()


def test_a_run_whose_sandbox_is_gone_has_an_end(tmp_path):
    d = native(tmp_path / "d")
    try:
        d.ann = token(d, "ann")
        box = production(d, "prod")
        book(d, "slow", ("shell", {"cmd": "echo begun >> /root/begun; sleep 600"}))
        ro = apply(d, "slow", "prod", "admin")
        answer(d, ro, True, d.ann)
        wait_for(lambda: run(d, box, "cat", "/root/begun")["stdout"], LONG)
        tool = [s["id"] for s in d.ok("GET", f"{API}/sandboxes")["sandboxes"] if s["labels"].get("holt.internal") == ro]
        assert len(tool) == 1
        d.ok("DELETE", f"{API}/sandboxes/{tool[0]}")
        over = comes_to(d, ro, "failed")
        assert over["error"] and nothing_left(d) and run(d, box, "cat", "/root/begun")["stdout"] == "begun\n"
    finally:
        d.clear()
        d.stop()


def test_cancelled_in_every_state(d):
    box = production(d, "prod-cancel")
    book(d, "stay", ("shell", {"cmd": "echo begun > /root/begun; sleep 600"}), owner=d.agent)
    early = apply(d, "stay", "prod-cancel", d.agent)
    d.ok("POST", f"{ROLLOUTS}/{early}/cancel", {}, token=d.agent)
    waits = apply(d, "stay", "prod-cancel", d.agent)
    q = comes_to(d, waits, "waiting")["approval"]
    d.ok("POST", f"{ROLLOUTS}/{waits}/cancel", {"reason": "changed my mind"}, token=d.agent)
    assert show(d, waits)["error"] == "changed my mind" and d.ok("GET", f"{API}/approvals/{q}")["state"] == "cancelled"
    runs = apply(d, "stay", "prod-cancel", d.agent)
    answer(d, runs, True, d.ann)
    wait_for(lambda: run(d, box, "cat", "/root/begun")["stdout"], LONG)
    d.ok("POST", f"{ROLLOUTS}/{runs}/cancel", {}, token=d.agent)
    assert show(d, runs)["state"] == "cancelled" and "in part" in show(d, runs)["error"]
    assert d.request("POST", f"{ROLLOUTS}/{runs}/cancel", {}, token=d.agent)[0] == 409
    assert comes_to(d, early, "cancelled")["approval"] is None and nothing_left(d)


def test_what_a_check_could_do_is_not_done_before(d):
    """A template may run programs, here and there: a person decides first."""
    box = production(d, "prod-act")
    book(d, "act", ("command", {"cmd": "touch /root/{{ lookup('pipe', 'echo made') }}"}), owner=d.agent)
    ro = apply(d, "act", "prod-act", d.agent)
    waiting = comes_to(d, ro, "waiting")
    assert waiting["check_exit"] is None and "template" in waiting["unchecked"] and output(d, ro, "check") in ("", "waiting\n")
    assert "template" in d.ok("GET", f"{API}/approvals/{waiting['approval']}")["note"]
    assert d.request("POST", f"{BOOKS}/act/apply", {"to": "prod-act", "check": True}, token=d.agent)[0] == 409
    answer(d, ro, True, d.ann)
    assert comes_to(d, ro, "succeeded") and run(d, box, "ls", "/root/made")["exit_code"] == 0


@pytest.mark.parametrize("text", ["#jinja2: variable_start_string:'[%', variable_end_string:'%]'\n{#x#}[% lookup('pipe', 'echo made') %]", "{# a comment makes a template #}"])
def test_templates_in_disguise_are_templates(d, text):
    """Its first line may give a template marks of its own, and a comment is enough to make it one."""
    name = f"disguise-{len(text)}"
    book(d, name, ("copy", {"dest": "/root/made", "content": text}), owner=d.agent)
    production(d, f"prod-{name}")
    waiting = comes_to(d, apply(d, name, f"prod-{name}", d.agent), "waiting")
    assert waiting["check_exit"] is None and "template" in (waiting["unchecked"] or ""), waiting
    assert d.request("POST", f"{BOOKS}/{name}/apply", {"to": f"prod-{name}", "check": True}, token=d.agent)[0] == 409


def test_its_sandbox_reaches_that_target_alone(d, tmp_path):
    production(d, "prod-far")
    program = f"""
import os, socket, urllib.parse
p = urllib.parse.urlsplit(os.environ['HTTPS_PROXY'])
def to(a):
    s = socket.create_connection((p.hostname, p.port))
    s.sendall(f'CONNECT {{a}} HTTP/1.1\\r\\nHost: {{a}}\\r\\n\\r\\n'.encode())
    return s.recv(99).decode().split()[1]
print('holtd', to('127.0.0.1:{d.port}'), 'other', to('192.0.2.7:22'), sorted(x for x in os.listdir('/tmp') if 'key' in x))
"""
    look = f"python3 -c \"exec(__import__('base64').b64decode('{base64.b64encode(program.encode()).decode()}'))\""
    tasks = [{"name": "look", "module": "set_fact", "params": {"look": {"__ansible_unsafe": look}}}, {"name": "say", "module": "debug", "params": {"msg": "{{ lookup('pipe', look) }}"}}]
    d.ok("POST", BOOKS, {"name": "far2", "tasks": tasks}, token=d.agent)
    ro = apply(d, "far2", "prod-far", d.agent)
    answer(d, ro, True, d.ann)
    comes_to(d, ro, "succeeded", "failed")
    assert "holtd 403 other 403 ['holt-key', 'holt-key-cert.pub']" in output(d, ro), output(d, ro)


def test_another_host_key_is_refused(d, tmp_path):
    with machine(d, tmp_path / "one", "one") as port:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{tmp_path}/evil"], check=True)
        d.ok("POST", f"{API}/targets", {"name": "evil", "address": "127.0.0.1", "port": port, "host_key": (tmp_path / "evil.pub").read_text().strip(), "principals": ["deploy"]})
        said = d.ok("POST", f"{API}/targets/evil/check", {})
        assert not said["reached"] and "verification failed" in said["output"], said
        book(d, "touch", write(tmp_path / "never", "x"))
        failed = comes_to(d, apply(d, "touch", "evil", "admin"), "failed")
        assert "reached" in failed["error"] and failed["approval"] is None and not (tmp_path / "never").exists()


def test_a_sandbox_of_ones_own_needs_nobody(d):
    mine = d.ok("POST", f"{API}/sandboxes", {"name": "mine"}, token=d.agent)["id"]
    book(d, "own", write("/root/x", "x\n"), owner=d.agent)
    checked = apply(d, "own", "mine", d.agent, check=True)
    assert comes_to(d, checked, "succeeded")["exit_code"] is None and run(d, mine, "ls", "/root/x")["exit_code"] != 0
    done = comes_to(d, apply(d, "own", "mine", d.agent), "succeeded")
    assert done["approval"] is None and done["people"] == 0 and run(d, mine, "cat", "/root/x")["stdout"] == "x\n"
    production(d, "not-mine")
    other = token(d, "other", "agent")
    assert d.request("POST", f"{BOOKS}/own/apply", {"to": "mine"}, token=other)[0] == 404
    assert d.request("GET", f"{ROLLOUTS}/{checked}", token=other)[0] == 404
    d.ok("POST", f"{API}/targets", {"name": "now-production", "sandbox": mine})  # from now on it does
    assert comes_to(d, apply(d, "own", "mine", d.agent), "waiting")["people"] == 1


def test_two_people(d):
    production(d, "prod-two", people=2)
    book(d, "two", ("ping", None))
    ro = apply(d, "two", "prod-two", "admin")
    assert answer(d, ro, True, d.ann)[0] == 200
    assert show(d, ro)["state"] == "waiting"
    assert answer(d, ro, True, d.ann)[0] == 409
    assert answer(d, ro, True, d.bob)[0] == 200
    comes_to(d, ro, "succeeded")


def test_a_user_without_sudo_is_no_root(d, tmp_path):
    with machine(d, tmp_path / "m", "plain", user="nobody"):
        book(d, "rooted", ("ping", None), become=True)
        status, said, _ = d.request("POST", f"{BOOKS}/rooted/apply", {"to": "plain"})
        assert status == 409 and "sudo" in said["error"]["message"]


def test_a_target_that_was_removed_is_left_alone(d):
    box = production(d, "prod-gone")
    book(d, "gone", write("/root/gone", "x"))
    ro = apply(d, "gone", "prod-gone", "admin")
    comes_to(d, ro, "waiting")
    d.ok("DELETE", f"{API}/targets/prod-gone")
    answer(d, ro, True, d.ann)
    assert "removed" in comes_to(d, ro, "failed")["error"] and run(d, box, "ls", "/root/gone")["exit_code"] != 0


def test_its_output_is_followed(d):
    production(d, "prod-follow")
    book(d, "follow", ("shell", {"cmd": "sleep 2; echo late"}))
    ro = apply(d, "follow", "prod-follow", "admin")
    answer(d, ro, True, d.ann)
    r = urllib.request.Request(f"{d.url}{ROLLOUTS}/{ro}/logs", headers={"Authorization": f"Bearer {d.token}"})
    began, lines = time.monotonic(), []
    with urllib.request.urlopen(r, timeout=LONG) as stream:
        for line in stream:
            lines.append(line.decode().rstrip("\n"))
            if line.startswith(b"event: completed"):
                break
    assert any("PLAY RECAP" in x for x in lines) and any("TASK [Step 0]" in x for x in lines) and time.monotonic() - began > 1
    env = {**os.environ, "HOLT_SERVER": d.url, "HOLT_TOKEN": d.token}
    said = subprocess.run([f"{BUILD}/holt", "rollout", "logs", ro], capture_output=True, text=True, timeout=60, env=env)
    assert said.returncode == 0 and "PLAY RECAP" in said.stdout and "TASK [Step 0]" in said.stdout, said
    said = subprocess.run([f"{BUILD}/holt", "rollout", "ls", "--state", "succeeded"], capture_output=True, text=True, timeout=60, env=env)
    assert said.returncode == 0 and ro in said.stdout, said


# --- publications ---


@pytest.fixture
def publisher(tmp_path, names):
    """holtd whose playbooks go to a repository behind a password."""
    if not os.path.exists(BACKEND):
        pytest.skip("no git: tools/deps test")
    word = base64.b64encode(b"git:s3cret-word").decode()
    server = GitServer(tmp_path / "git" if (tmp_path / "git").mkdir() is None else None, password=f"Basic {word}")
    git("config", "-f", f"{server.root}/app.git/config", "http.receivepack", "true")
    d = native(tmp_path / "d", "--egress-dns", names.address, "--egress-internal", "git.test=127.0.0.0/8",
               "--publish-url", server.url, "--publish-secret", "git-word", "--publish-email", "ops@test")
    d.ok("PUT", f"{API}/secrets/git-word", {"value": "s3cret-word", "hosts": ["git.test"], "plain": True})
    d.git = server
    yield d
    server.close()
    d.clear()
    d.stop()


def test_a_playbook_is_published(publisher):
    d, bare = publisher, f"{publisher.git.root}/app.git"
    book(d, "web", ("ping", None))
    made = d.ok("POST", f"{BOOKS}/web/publish", {"branch": "fix-1", "message": "Renew it\n\nas agreed", "reviewers": ["ann", "bob <bob@test>"]})
    assert (made["branch"], made["path"], made["changed"]) == ("holt/fix-1", "playbooks/web.yml", True)
    assert git("rev-parse", "holt/fix-1", cwd=bare) == made["commit"] and git("rev-parse", "main", cwd=bare) == d.git.commits[-1]
    assert git("show", "holt/fix-1:playbooks/web.yml", cwd=bare) == d.request("GET", f"{BOOKS}/web/export")[1].strip()
    message = git("log", "-1", "--format=%an <%ae>%n%B", "holt/fix-1", cwd=bare)
    assert message.startswith("holt <ops@test>\nRenew it\n\nas agreed\n") and "Reviewer: ann\nReviewer: bob <bob@test>" in message
    assert git("rev-parse", "holt/fix-1~", cwd=bare) == d.git.commits[-1] and git("show", "holt/fix-1:README.md", cwd=bare) == "three"
    again = d.ok("POST", f"{BOOKS}/web/publish", {"branch": "fix-1"})
    assert not again["changed"] and again["commit"] == made["commit"]
    d.ok("POST", f"{BOOKS}/web/tasks", {"name": "More", "module": "ping"})
    more = d.ok("POST", f"{BOOKS}/web/publish", {"branch": "fix-1"})
    assert more["changed"] and git("rev-parse", "holt/fix-1~", cwd=bare) == made["commit"], "on the branch that was there"
    for branch in ("../x", "-x", "a b", "x.lock", "x..y", "x/../../main", ".x"):
        assert d.request("POST", f"{BOOKS}/web/publish", {"branch": branch})[0] == 400, branch
    assert d.request("POST", f"{BOOKS}/web/publish", {"reviewers": ["x\nSigned-off-by: boss"]})[0] == 400
    assert git("for-each-ref", "--format=%(refname:short)", "refs/heads", cwd=bare).split() == ["holt/fix-1", "main", "other"]
    d.ok("PUT", f"{API}/secrets/git-word", {"value": "another", "hosts": ["git.test"], "plain": True})
    status, said, _ = d.request("POST", f"{BOOKS}/web/publish", {"branch": "fix-2"})
    assert status == 503 and "git ended" in said["error"]["message"] and "s3cret" not in str(said), said
    no_tools(d)
    box = d.ok("POST", f"{API}/sandboxes", {"name": "box"})["id"]
    assert d.request("POST", f"/v1/sandboxes/{box}/publish", {"job_id": "JOB-00000000"})[0] == 404
    assert d.request("POST", f"/v1/sandboxes/{box}/publish", {})[0] == 400
    d.ok("PUT", f"{API}/secrets/git-word", {"value": "s3cret-word", "hosts": ["git.test"], "plain": True})
    book(d, "JOB-0a1b2c3d", ("ping", None))
    said = d.ok("POST", f"/v1/sandboxes/{box}/publish", {"job_id": "JOB-0a1b2c3d", "message": "m", "reviewers": ["ann"]})
    assert (said["status"], said["branch"]) == ("COMMITTED", "holt/JOB-0a1b2c3d") and git("rev-parse", said["branch"], cwd=bare) == said["commit_sha"]


def test_nothing_is_published_without_a_remote(d):
    book(d, "unpublished", ("ping", None))
    status, said, _ = d.request("POST", f"{BOOKS}/unpublished/publish", {})
    assert status == 501 and "publish_url" in said["error"]["hint"]
