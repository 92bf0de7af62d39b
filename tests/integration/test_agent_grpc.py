"""Agents on machines that holt did not make, over gRPC: registration, commands, terminals, reconnects, secrets."""
import hashlib
import json
import os
import secrets
import signal
import subprocess

import grpc
import pytest
from websockets.sync.client import connect

from agent_client import PROVISIONING, Agent, M, run
from daemon import BUILD, Holtd, all_events, environment, free_ports, wait_for

API = "/api/v1"


def start(directory, *args, port=0, **more):
    return Holtd(directory, *args, port=port, **more)


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = start(tmp_path_factory.mktemp("agents"), "--remote-first-contact", "always")
    yield d
    d.clear()
    d.stop()


@pytest.fixture
def name(request):
    return "a-" + "".join(c if c.isalnum() else "-" for c in request.node.name.removeprefix("test_"))[:50].strip("-")


@pytest.fixture
def agent(holtd, name):
    a = Agent(holtd.port, name, secrets.token_hex(32))
    assert not a.error, a.error
    ready(holtd, name)
    yield a
    a.end()
    holtd.request("DELETE", f"{API}/agents/{name}")


def ready(holtd, name, *states):
    def look():
        status, reply, _ = holtd.request("GET", f"{API}/agents/{name}")
        return status == 200 and reply["status"] in (states or ("Ready", "Busy")) and reply
    return wait_for(look)


def test_an_agent_is_in_the_list_with_what_it_says(holtd, agent, name):
    agent.measure()
    row = wait_for(lambda: (r := ready(holtd, name)).get("metrics", {}).get("memory_total_bytes") == 8 << 20 and r)
    assert (row["hostname"], row["ip_address"], row["profile"], row["runtime"]) == (f"{name}.test", "192.0.2.7", "agentic-dev", "remote")
    assert row["metrics"]["cpu_percent"] == 25 and row["metrics"]["load_avg"] == [0.5, 0.25, 0.125] and row["metrics"]["uptime_seconds"] == 77
    assert row["system_info"]["cpu_cores"] == 3 and row["system_info"]["kernel"] == "6.0"
    assert name in [a["id"] for a in holtd.ok("GET", f"{API}/agents")["agents"]]
    ack = agent.got("registration_ack")[0].registration_ack
    assert ack.accepted and ack.heartbeat_interval_seconds == 30


def test_commands_are_execs(holtd, agent, name):
    r = holtd.ok("POST", f"/holt/v1/sandboxes/{name}/execs", {"command": ["sh", "-c", "cat; echo err >&2; echo $A; exit 3"],
                                                              "stdin": "in\n", "env": {"A": "b c"}})
    assert (r["exit_code"], r["stdout"], r["stderr"]) == (3, "in\nb c\n", "err\n"), r
    r = holtd.ok("POST", f"/holt/v1/sandboxes/{name}/execs", {"command": ["no-such-program"]})
    assert r["exit_code"] == 127 and r["state"] == "failed", r
    r = holtd.ok("POST", f"/holt/v1/sandboxes/{name}/execs", {"command": ["sleep", "1000"], "timeout_ms": 200})
    assert r["timed_out"] and r["exit_code"] == 137, r


def test_much_output_arrives_whole(holtd, agent, name):
    r = holtd.ok("POST", f"/holt/v1/sandboxes/{name}/execs", {"command": ["sh", "-c", "seq 1 700000"]})
    assert hashlib.sha256(r["stdout"].encode()).hexdigest() == hashlib.sha256("".join(f"{n}\n" for n in range(1, 700001)).encode()).hexdigest()


def test_exec_over_grpc(holtd, agent, name):
    out, err, last = run(holtd.port, name, "sh", "-c", "echo out; echo err >&2; echo $X; exit 5", token=holtd.token, env={"X": "y"})
    assert (out, err, last.exit_code) == (b"out\ny\n", b"err\n", 5)
    with pytest.raises(grpc.RpcError) as e:
        run(holtd.port, "nobody-there", "true", token=holtd.token)
    assert e.value.code() == grpc.StatusCode.NOT_FOUND
    with pytest.raises(grpc.RpcError) as e:
        run(holtd.port, name, "true")
    assert e.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_exec_over_grpc_in_a_sandbox_of_ours(holtd):
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"name": "ours"})
    assert run(holtd.port, "ours", "echo", "hello", token=holtd.token)[0] == b"hello\n"
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{box['id']}")


def test_a_session_has_a_terminal_and_a_screen(holtd, agent, name):
    s = holtd.ok("POST", f"{API}/agents/{name}/sessions", {"command": "stty size; printf 'Go on? (y/n) '; read a; echo got $a; sleep 1000"})
    screen = wait_for(lambda: (r := holtd.ok("GET", f"{API}/sessions/{s['session_id']}/screen")) and "(y/n)" in r["text"] and r)
    assert screen["text"].startswith("50 220"), screen
    ask = wait_for(lambda: [q for q in holtd.ok("GET", f"{API}/hitl")["requests"] if q["session_id"] == s["session_id"]])[0]
    assert holtd.request("POST", f"{API}/hitl/{ask['hitl_id']}/respond", {"response": "yes"})[0] == 204
    wait_for(lambda: "got yes" in holtd.ok("GET", f"{API}/sessions/{s['session_id']}/screen")["text"])
    assert holtd.request("DELETE", f"{API}/agents/{name}/sessions/{s['session_name']}")[0] == 204
    wait_for(lambda: not agent.commands)


def exec_of(holtd, name, command):
    return holtd.ok("POST", f"/holt/v1/sandboxes/{name}/execs", {"command": ["sh", "-c", command], "background": True, "stdin_open": True})["id"]


def output_of(holtd, name, x):
    return holtd.request("GET", f"/holt/v1/sandboxes/{name}/execs/{x}/output")[1]


def test_a_lost_link_keeps_commands(holtd, agent, name):
    x = exec_of(holtd, name, "echo one; read a; echo $a; sleep 1000")
    wait_for(lambda: "one" in output_of(holtd, name, x))
    agent.drop()
    ready(holtd, name, "Disconnected")
    agent.seen.clear()
    agent.connect()
    ready(holtd, name, "Busy")
    holtd.ok("POST", f"/holt/v1/sandboxes/{name}/execs/{x}/stdin", b"two\n", headers={"Content-Type": "application/octet-stream"})
    wait_for(lambda: output_of(holtd, name, x) == "one\ntwo\n")
    assert [list(m.session_reconcile.keep_session_ids) for m in agent.got("session_reconcile")] == [[x]]


def test_a_session_that_holt_does_not_know_is_ended(holtd, agent, name):
    x = exec_of(holtd, name, "sleep 1000")
    c = wait_for(lambda: agent.commands.get(x))
    agent.drop()
    agent.commands = {"stranger": c}
    c.id = "stranger"
    agent.seen.clear()
    agent.connect()
    wait_for(lambda: [m for m in agent.got("session_reconcile") if list(m.session_reconcile.kill_session_ids) == ["stranger"]])
    state = wait_for(lambda: (r := holtd.ok("GET", f"/holt/v1/sandboxes/{name}/execs/{x}"))["state"] != "running" and r["state"])
    assert state == "lost"


def test_holtd_dies_and_sessions_stay(tmp_path):
    port = free_ports()[0]
    d = start(tmp_path, "--remote-first-contact", "always", port=port)
    a = Agent(port, "survivor", secrets.token_hex(32))
    try:
        ready(d, "survivor")
        s = d.ok("POST", f"{API}/agents/survivor/sessions", {"command": "echo before; read a; echo $a; sleep 1000"})
        wait_for(lambda: "before" in d.ok("GET", f"{API}/sessions/{s['session_id']}/screen")["text"])
        d.kill()
        wait_for(lambda: a.error)
        d = start(tmp_path, "--remote-first-contact", "never", port=port)
        assert ready(d, "survivor", "Disconnected")["id"] == "survivor"
        a.seen.clear()
        a.connect()
        assert not a.error, a.error
        ready(d, "survivor", "Busy")
        row, = [r for r in d.ok("GET", f"{API}/agents/survivor/sessions")["sessions"] if r["session_id"] == s["session_id"]]
        d.ok("POST", f"/holt/v1/sandboxes/survivor/execs/{s['session_id']}/stdin", b"after\n", headers={"Content-Type": "application/octet-stream"})
        wait_for(lambda: "after" in d.ok("GET", f"{API}/sessions/{s['session_id']}/screen")["text"])
    finally:
        a.end()
        d.clear()
        d.stop()


# --- secrets ---

def refusal(holtd, name, secret):
    a = Agent(holtd.port, name, secret)
    try:
        return wait_for(lambda: a.error)
    finally:
        a.end()


def test_a_wrong_secret_is_refused(holtd, agent, name):
    for wrong in (secrets.token_hex(32), "", agent.secret[:-1], None):
        e = refusal(holtd, name, wrong)
        assert (e.code(), e.details()) == (grpc.StatusCode.UNAUTHENTICATED, "Invalid agent secret"), (wrong, e)
    e = refusal(holtd, "", "x")
    assert (e.code(), e.details()) == (grpc.StatusCode.UNAUTHENTICATED, "Missing x-agent-id header")
    assert not agent.error
    with open(f"{holtd.state}/secrets/agent-hashes.json", encoding="ascii") as f:
        assert json.load(f)[name] == hashlib.sha256(agent.secret.encode()).hexdigest()
    assert os.stat(f.name).st_mode & 0o777 == 0o600


def test_first_contact_is_refused_off_the_seed_ports(tmp_path):
    d = start(tmp_path)
    try:
        assert refusal(d, "unknown", secrets.token_hex(32)).code() == grpc.StatusCode.UNAUTHENTICATED
        assert d.ok("GET", f"{API}/agents")["agents"] == []
    finally:
        d.stop()


def test_events_of_an_agent(holtd, name):
    a = Agent(holtd.port, name, secrets.token_hex(32))
    ready(holtd, name)
    a.beat(PROVISIONING, setup_status="installing:docker", setup_progress_json='{"step": 2}')
    row = ready(holtd, name, "Provisioning")
    assert (row["setup_status"], row["setup_progress_json"]) == ("installing:docker", '{"step": 2}')
    a.beat(setup_status="ready")
    ready(holtd, name, "Ready")
    a.end()
    ready(holtd, name, "Disconnected")

    def types():
        return [e["type"] for e in all_events(holtd) if e["type"].startswith("agent.") and e["data"].get("name") == name]
    want = ["agent.connected", "agent.ready", "agent.provisioning", "agent.ready", "agent.disconnected"]
    assert wait_for(lambda: types() == want and want), types()
    theirs = [e["event_type"] for e in reversed(holtd.ok("GET", f"{API}/events?source={name}")["events"]) if e["event_type"].startswith("agent.")]
    assert theirs == want
    holtd.ok("DELETE", f"{API}/agents/{name}")


def test_events_of_a_session(holtd, agent, name):
    holtd.ok("POST", f"{API}/agents/{name}/sessions", {"command": "sleep 0.1"})
    box = holtd.ok("GET", f"/holt/v1/sandboxes/{name}")["id"]

    def told():
        rows = [(e["event"], e["type"]) for e in reversed(holtd.ok("GET", f"{API}/events?source={box}")["events"])]
        return [r for r in rows if r[0].startswith("session.")]
    want = [("session.start", "session_start"), ("session.end", "session_end")]
    assert wait_for(lambda: told() == want and want), told()


def test_a_silent_agent(tmp_path):
    d = start(tmp_path, "--remote-first-contact", "always", env={"HEARTBEAT_TIMEOUT": "3"})
    a = Agent(d.port, "silent", secrets.token_hex(32))
    try:
        ready(d, "silent")
        ready(d, "silent", "Stale")
        e = wait_for(lambda: a.error)
        assert e.code() == grpc.StatusCode.DEADLINE_EXCEEDED and "no heartbeat" in e.details(), e
        ready(d, "silent", "Disconnected")
        reasons = [e["data"]["reason"] for e in all_events(d, type="agent.disconnected")]
        assert wait_for(lambda: len(reasons) == 1) and "no heartbeat" in reasons[0]
        a.drop()
        a.connect()
        ready(d, "silent")
    finally:
        a.end()
        d.stop()


def test_hashes_of_other_tools(tmp_path):
    d = start(tmp_path, "--remote-secrets", f"{tmp_path}/hashes")
    secret = secrets.token_hex(32)
    path = f"{tmp_path}/hashes/agent-hashes.json"
    try:
        with open(path, "w", encoding="ascii") as f:
            json.dump({"told": hashlib.sha256(secret.encode()).hexdigest(), "Bad Id": "x", "bad": "no hash"}, f)
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "settings were read again" in d.log())
        a = Agent(d.port, "told", secret)
        assert not a.error, a.error
        ready(d, "told")
        a.end()
        with open(path, "w", encoding="ascii") as f:
            f.write("{broken")
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "credentials of agents were not changed" in d.log())
        assert not a.connect().error
        a.end()
    finally:
        d.stop()


def test_stop_and_destroy_ask_the_agent_to_end(holtd, agent, name):
    assert holtd.ok("POST", f"/holt/v1/sandboxes/{name}/stop", {})["state"] == "stopped"
    wait_for(lambda: agent.got("shutdown"))
    wait_for(lambda: not agent.thread.is_alive())
    agent.drop()
    agent.connect()
    ready(holtd, name)
    holtd.ok("DELETE", f"{API}/agents/{name}")
    wait_for(lambda: len(agent.got("shutdown")) == 2)


def test_what_a_remote_agent_has_not(holtd, agent, name):
    status, reply, _ = holtd.request("GET", f"/holt/v1/sandboxes/{name}/files?path=/etc/passwd")
    assert status == 501 and "run a command" in reply["error"]["hint"], reply
    status, reply, _ = holtd.request("POST", "/holt/v1/sandboxes", {"runtime": "remote", "name": "nobody"})
    assert status == 409 and "no agent 'nobody' is connected" in reply["error"]["message"], reply
    assert holtd.request("POST", f"/holt/v1/sandboxes/{name}/pause")[0] == 501


def test_a_registration_must_come_first_and_be_its_own(holtd, name):
    for first in ({"heartbeat": M["Heartbeat"](agent_id=name)}, {"registration": M["AgentRegistration"](agent_id="other")}):
        a = Agent(holtd.port, name, "0" * 64, connect=False)
        a.registration = {}
        a.connect_with(first)
        e = wait_for(lambda: a.error)
        assert e.code() == grpc.StatusCode.INVALID_ARGUMENT and "registration" in e.details(), e
        a.end()


# --- secrets by request ---

def test_the_life_of_a_secret(tmp_path):
    d = start(tmp_path)
    try:
        made = d.ok("POST", "/holt/v1/remote-secrets", {"agent": "told"})
        assert len(made["secret"]) == 64 and made["owner"].startswith("token/")
        assert d.request("POST", "/holt/v1/remote-secrets", {"agent": "told"})[0] == 409
        assert d.request("POST", "/holt/v1/remote-secrets", {"agent": "Bad_Id"})[0] == 400
        assert d.request("POST", "/holt/v1/remote-secrets", {"agent": "x", "secret": "A" * 64})[0] == 400
        row, = d.ok("GET", "/holt/v1/remote-secrets")["secrets"]
        assert row["agent"] == "told" and row["secret"] is None
        a = Agent(d.port, "told", made["secret"])
        ready(d, "told")
        assert d.ok("GET", "/holt/v1/remotes")["remotes"][0]["status"] == "ready"
        # a rotation: the old one until the new one was used
        new = d.ok("POST", "/holt/v1/remote-secrets/told/rotate", {"grace_ms": 600000})
        assert new["rotating"] and new["secret"] != made["secret"]
        assert not a.error
        a.drop()
        assert not a.connect().error, "the old one, within its grace"
        a.drop()
        a.secret = new["secret"]
        assert not a.connect().error
        assert refusal(d, "told", made["secret"]).code() == grpc.StatusCode.UNAUTHENTICATED
        assert not d.ok("GET", "/holt/v1/remote-secrets")["secrets"][0]["rotating"]
        # without grace, and over a restart
        last = d.ok("POST", "/holt/v1/remote-secrets/told/rotate", {"grace_ms": 0})["secret"]
        assert not a.error, "its link stays"
        d.kill()
        d = start(tmp_path)
        assert refusal(d, "told", new["secret"]).code() == grpc.StatusCode.UNAUTHENTICATED
        a.port, a.secret = d.port, last
        a.drop()
        assert not a.connect().error
        # revoked
        assert d.request("DELETE", "/holt/v1/remote-secrets/told")[0] == 204
        e = wait_for(lambda: a.error)
        assert e.code() == grpc.StatusCode.UNAUTHENTICATED and "revoked" in e.details(), e
        assert refusal(d, "told", last).code() == grpc.StatusCode.UNAUTHENTICATED
        assert d.request("DELETE", "/holt/v1/remote-secrets/told")[0] == 404
        types = wait_for(lambda: len(t := [e["type"] for e in all_events(d, type="remote.*")]) == 4 and t)
        assert types == ["remote.secret_added", "remote.secret_rotated", "remote.secret_rotated", "remote.secret_revoked"]
        a.end()
    finally:
        d.stop()


def test_secrets_of_both_kinds(holtd):
    d = holtd
    d.ok("PUT", "/holt/v1/secrets/git", {"value": "hidden-value", "hosts": ["git.example"]})
    status, made, _ = d.request("POST", f"{API}/secrets", {"agent_id": "listed"})
    assert status == 201 and len(made["secret"]) == 64
    rows = [s for s in d.ok("GET", f"{API}/secrets")["secrets"] if s.get("agent_id", s.get("name")) in ("listed", "git")]
    assert [(r["kind"], r.get("agent_id") or r["name"]) for r in rows] == [("agent", "listed"), ("egress", "git")]
    text = json.dumps(rows)
    assert "hidden-value" not in text and made["secret"] not in text and hashlib.sha256(made["secret"].encode()).hexdigest() not in text
    assert [r["kind"] for r in d.ok("GET", f"{API}/secrets?kind=egress")["secrets"]] == ["egress"]
    assert d.request("POST", f"{API}/secrets", {"agent_id": "listed"})[0] == 409
    assert d.request("POST", f"{API}/secrets", {})[0] == 422
    again = d.ok("POST", f"{API}/secrets", {"agent_id": "listed", "rotate": True})
    assert again["secret"] != made["secret"]
    status, turned, _ = d.request("POST", f"{API}/agents/listed/rotate-secret?grace_seconds=60")
    assert status == 202 and turned["grace_seconds"] == 60 and turned["status"] == "accepted" and len(turned["secret"]) == 64
    assert d.ok("GET", f"{API}/operations/{turned['operation_id']}")["status"] == "completed"
    assert d.request("POST", f"{API}/agents/nobody/rotate-secret")[0] == 404
    a = Agent(d.port, "listed", again["secret"])
    assert not a.error
    assert d.ok("DELETE", f"{API}/secrets/listed")["deleted"] is True
    wait_for(lambda: a.error)
    assert d.request("DELETE", f"{API}/secrets?agent_id=listed")[0] == 404
    a.end()
    observer = d.new_token("watcher", "observer")["token"]
    assert d.request("POST", f"{API}/secrets", {"agent_id": "x"}, token=observer)[0] == 403
    d.request("DELETE", f"{API}/agents/listed")
    d.request("DELETE", "/holt/v1/secrets/git")


def test_a_secret_of_another_tenant(holtd):
    d = holtd
    tokens = {t: d.ok("POST", "/holt/v1/tokens", {"name": t, "role": "operator", "tenant": t})["token"] for t in ("red", "blue")}
    d.ok("POST", "/holt/v1/remote-secrets", {"agent": "of-red"}, token=tokens["red"])
    assert [s["agent"] for s in d.ok("GET", "/holt/v1/remote-secrets", token=tokens["blue"])["secrets"]] == []
    assert d.request("DELETE", "/holt/v1/remote-secrets/of-red", token=tokens["blue"])[0] == 404
    assert d.request("POST", "/holt/v1/remote-secrets/of-red/rotate", {}, token=tokens["blue"])[0] == 404
    d.ok("DELETE", "/holt/v1/remote-secrets/of-red", token=tokens["red"])


def test_remote_on_the_command_line(holtd, agent, name):
    def holt(*args, want=0):
        r = subprocess.run([f"{BUILD}/holt", *args], env=environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token}), capture_output=True,
                           text=True, timeout=60, check=False)
        assert r.returncode == want, r
        return r.stdout
    assert name in holt("remote", "ls")
    made = json.loads(holt("-o", "json", "remote", "add", "by-cli"))
    assert len(made["secret"]) == 64
    assert "by-cli" in holt("remote", "secrets")
    assert json.loads(holt("-o", "json", "remote", "rotate", "by-cli", "--grace", "1h"))["rotating"]
    holt("remote", "revoke", "by-cli")
    assert "by-cli" not in holt("remote", "secrets")


def test_a_secret_ends_with_its_sandbox(tmp_path):
    d = start(tmp_path)
    try:
        secret = d.ok("POST", "/holt/v1/remote-secrets", {"agent": "short"})["secret"]
        a = Agent(d.port, "short", secret)
        ready(d, "short")
        d.ok("POST", "/holt/v1/sandboxes/short/stop", {})
        a.drop()
        assert not a.connect().error, "a stop ends no secret"
        ready(d, "short")
        assert d.request("DELETE", "/holt/v1/sandboxes/short")[0] < 300
        wait_for(lambda: d.ok("GET", "/holt/v1/remote-secrets")["secrets"] == [])
        assert refusal(d, "short", secret).code() == grpc.StatusCode.UNAUTHENTICATED
        a.end()
    finally:
        d.stop()


def test_the_same_over_the_websocket(holtd, agent, name):
    agent.beat(PROVISIONING, setup_status="installing:docker")
    agent.measure()
    ready(holtd, name, "Provisioning")
    with connect(f"ws://127.0.0.1:{holtd.port}/ws", additional_headers={"Authorization": f"Bearer {holtd.token}"}) as ws:
        def until(kind):
            while True:
                m = json.loads(ws.recv(timeout=60))
                if m["type"] == kind and m.get("agent_id", name) == name:
                    return m
        ws.send(json.dumps({"type": "list_agents"}))
        row, = [a for a in until("agent_list")["agents"] if a["id"] == name]
        assert (row["status"], row["setup_status"], row["hostname"]) == ("Provisioning", "installing:docker", f"{name}.test")
        ws.send(json.dumps({"type": "subscribe", "agent_id": name}))
        assert until("metrics_update")["memory_total_bytes"] == 8 << 20
        agent.beat()
        ws.send(json.dumps({"type": "send_command", "agent_id": name, "command": "echo", "args": ["over", "there"]}))
        assert until("output")["data"] == "over there\n"
