"""Every method of the client 0.0.15, which has the agent interface too; run with that package on PYTHONPATH.

usage: fluid_sdk_0_0_15.py MAIN AGENT TOKEN PUBLIC_KEY    prints one line per method, "all N methods" at the end
"""
import inspect
import sys

from virsh_sandbox import VirshSandbox
from virsh_sandbox.exceptions import ApiException

main, agent, token, key = sys.argv[1:]
client = VirshSandbox(main, agent)
person = VirshSandbox(main, agent)
for one in (person.human, person.audit):
    one._api.api_client.set_default_header("Authorization", f"Bearer {token}")
called = set()


def call(group, method, *args, of=client, refused=None, **kwargs):
    """refused: the status that it must have."""
    called.add((group, method))
    try:
        got = getattr(getattr(of, group), method)(*args, **kwargs)
    except ApiException as e:
        assert e.status == refused, (group, method, e.status, e.body)
        print(group, method, e.status)
        return None
    assert refused is None, (group, method, got)
    print(group, method, "ok")
    return got


def sandboxes():
    assert call("vms", "list_virtual_machines").vms
    box = call("sandbox", "create_sandbox", source_vm_name="ubuntu-base", agent_id="old", auto_start=True, wait_for_ip=True).sandbox.id
    call("sandbox", "start_sandbox", box, wait_for_ip=True)
    assert [s.id for s in call("sandbox", "list_sandboxes", agent_id="old").sandboxes] == [box]
    ran = call("sandbox", "run_sandbox_command", box, command="whoami", username="root", timeout_sec=30).command
    assert (ran.stdout, ran.exit_code) == ("root\n", 0)
    call("sandbox", "inject_ssh_key", box, public_key=key, username="root")
    assert call("sandbox", "create_snapshot", box, name="s", external=False).snapshot.kind == "INTERNAL"
    call("sandbox", "create_snapshot", box, name="t", external=False)
    assert call("sandbox", "diff_snapshots", box, from_snapshot="s", to_snapshot="t").diff.to_snapshot == "t"
    return box


def access(box):
    assert call("access", "v1_access_ca_pubkey_get").public_key
    made = call("access", "v1_access_request_post", public_key=key, sandbox_id=box, ttl_minutes=1, user_id="me")
    assert made.ttl_seconds == 60
    assert call("access", "v1_access_certificate_cert_id_get", made.certificate_id).status == "ACTIVE"
    assert call("access", "v1_access_certificates_get", sandbox_id=box).total == 1
    session = call("access", "v1_access_session_start_post", certificate_id=made.certificate_id, source_ip="192.0.2.1").session_id
    assert call("access", "v1_access_sessions_get", sandbox_id=box, active_only=True).sessions[0].id == session
    call("access", "v1_access_session_end_post", session_id=session, reason="done")
    call("access", "v1_access_certificate_cert_id_delete", made.certificate_id, reason="over")


def terminals(box):
    assert call("sandbox", "sandbox_api_health")
    made = call("sandbox", "create_sandbox_session", sandbox_id=box, session_name="old", ttl_minutes=2)
    assert made.sandbox_id == box and made.ttl_seconds <= 120
    assert call("sandbox", "list_sandbox_sessions").total == 1
    assert call("sandbox", "get_sandbox_session", "old").is_expired is False
    call("sandbox", "kill_sandbox_session", "old")


def tmux():
    pane = call("tmux", "create_tmux_pane", session_name="pane", command="cat").pane_id
    assert [s.name for s in call("tmux", "list_tmux_sessions")] == ["pane"]
    assert [w.session_name for w in call("tmux", "list_tmux_windows", session="pane")] == ["pane"]
    assert [p.pane_id for p in call("tmux", "list_tmux_panes", session="pane").panes] == [pane]
    assert call("tmux", "send_keys_to_pane", key="Enter", pane_id=pane).sent is True
    assert call("tmux", "read_tmux_pane", last_n_lines=10, pane_id=pane).pane_id == pane
    assert call("tmux", "switch_tmux_pane", pane_id=pane).switched is True
    call("tmux", "release_tmux_session", "pane")
    call("tmux", "kill_tmux_pane", pane)
    call("tmux", "create_tmux_pane", session_name="pane", command="cat")
    assert call("tmux", "kill_tmux_session", "pane")
    call("tmux", "create_tmux_session", refused=400)  # its parameters were lost by the generator


def files():
    assert call("file", "write_file", content="a\nb\n", path="/srv/f", overwrite=True, create_dir=True).bytes_written == 4
    assert call("file", "read_file", path="/srv/f", from_line=1, max_lines=10, to_line=2).content == "a\nb\n"
    assert call("file", "edit_file", path="/srv/f", old_text="a", new_text="c", all=False).replacements == 1
    assert call("file", "copy_file", source="/srv/f", destination="/srv/g", overwrite=False).bytes_copied == 4
    assert [f.name for f in call("file", "list_directory", path="/srv", recursive=False).files].count("g") == 1
    call("file", "delete_file", path="/srv/g", recursive=False, refused=403)
    call("file", "check_file_exists", refused=400)
    call("file", "get_file_hash", refused=400)


def commands():
    assert call("command", "run_command", command="echo", args=["hi"], dry_run=False, timeout=10).stdout == "hi\n"
    assert "ls" in call("command", "get_allowed_commands")["allowed"]


def people():
    question = call("human", "ask_human_async", prompt="?", action_type="x", alternatives=[], context="", timeout_secs=60, urgency="low")["request_id"]
    assert question in [p.request_id for p in call("human", "list_pending_approvals").pending]
    assert call("human", "get_pending_approval", question).prompt == "?"
    assert call("human", "respond_to_approval", of=person, approved=True, approved_by="ann", request_id=question).approved is True
    second = call("human", "ask_human_async", prompt="?", action_type="x")["request_id"]
    call("human", "cancel_approval", second)
    assert call("human", "ask_human", prompt="?", action_type="x", timeout_secs=1).status == "expired"


def plans():
    plan = call("plan", "create_plan", name="p", description="d", steps=["one", "two"]).plan_id
    assert [p.id for p in call("plan", "list_plans").plans] == [plan]
    assert call("plan", "get_plan", plan).plan.current_step == -1
    call("plan", "advance_plan_step", plan, {"result": ""})
    assert call("plan", "update_plan", plan_id=plan, step_index=0, status="completed", result="ok").plan.steps[0].result == "ok"
    call("plan", "abort_plan", plan, {"reason": "enough"})
    call("plan", "delete_plan", plan)


def audit():
    call("audit", "get_audit_stats", of=person, refused=None)
    assert call("audit", "query_audit_log", of=person, limit=5).entries


def jobs():
    call("ansible", "create_ansible_job", vm_name="none", playbook="none.yml", check=True, refused=400)
    call("ansible", "get_ansible_job", "none", refused=404)
    call("ansible", "stream_ansible_job_output", "none", refused=400)
    call("sandbox", "generate_configuration", box, "ansible")
    call("sandbox", "publish_changes", box, job_id="JOB-00000000", message="m", reviewers=["ann"], refused=501)


assert call("health", "get_health").status == "healthy"
box = sandboxes()
access(box)
terminals(box)
tmux()
files()
commands()
people()
plans()
audit()
jobs()
call("sandbox", "destroy_sandbox", box)
groups = [n for n in dir(client) if not n.startswith("_") and not inspect.ismethod(getattr(client, n)) and not n.endswith("configuration")]
every = {(g, m) for g in groups for m in dir(getattr(client, g)) if not m.startswith("_") and inspect.ismethod(getattr(getattr(client, g), m))}
assert every == called, every ^ called
print(f"all {len(every)} methods")
