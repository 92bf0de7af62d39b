"""fluid.sh's HTTP interface, with its own clients from PyPI and raw: on 8080 and 8081, where nobody needs a token."""
import ctypes
import hashlib
import inspect
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from websockets.sync.client import connect

from daemon import BUILD, native, wait_for
from own_network import own_network

MAIN = "http://127.0.0.1:8080"
SEED_EXAMPLE = """
from virsh_sandbox import VirshSandbox

client = VirshSandbox("http://localhost:8080")
sandbox = None

try:
    # Agent gets its own VM with full root access
    sandbox = client.sandbox.create_sandbox(
        source_vm_name="ubuntu-base",
        agent_id="nginx-setup-agent",
        auto_start=True,
        wait_for_ip=True
    ).sandbox
    
    run_agent("Install nginx and configure TLS, create an Ansible playbook to recreate the task.", sandbox.id)
    
    # NOW the human reviews:
    # - Diff between snapshots shows exactly what changed
    # - Auto-generated Ansible playbook ready to apply
    # - Human approves \u2192 playbook runs on production
    # - Human rejects \u2192 nothing happens, agent tries again

finally:
    if(sandbox):
        # Clean up sandbox
        client.sandbox.destroy_sandbox(sandbox.id)
"""


def call(method, path, body=None, base=MAIN, headers=None, timeout=60):
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data=data, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as f:
            status, raw, heads = f.status, f.read(), f.headers
    except urllib.error.HTTPError as e:
        status, raw, heads = e.code, e.read(), e.headers
    if "json" in (heads.get("Content-Type") or ""):
        return status, json.loads(raw), heads
    return status, raw.decode(), heads


def ok(method, path, body=None, status=200, **more):
    got, reply, _ = call(method, path, body, **more)
    assert got == status, (method, path, got, reply)
    return reply


def join_network(d):
    """For threads of a test: they begin in the process's own network."""
    def join():
        with open(f"/proc/{d.process.pid}/ns/net") as f:
            assert ctypes.CDLL(None, use_errno=True).setns(f.fileno(), 0) == 0
    return join


@pytest.fixture(scope="module")
def fluid(tmp_path_factory):
    with own_network():
        d = native(tmp_path_factory.mktemp("fluid"), "--seed-ports", config="fluid_key_dirs: [/srv/keys]\n")
        yield d
        d.clear()
        d.stop()


@pytest.fixture
def box(fluid):
    made = ok("POST", "/v1/sandboxes", {"source_vm_name": "ubuntu-base", "agent_id": "tester", "auto_start": True}, 201)["sandbox"]
    yield made["id"]
    call("DELETE", f"/v1/sandboxes/{made['id']}")


def run(box, command, **more):
    return ok("POST", f"/v1/sandboxes/{box}/run", {"command": command, **more})["command"]


# --- the published client ---


def test_the_seeds_example_as_printed(fluid):
    """Unmodified, with the package from PyPI; run_agent is the reader's own."""
    seen = []

    def run_agent(prompt, sandbox):
        got = ok("GET", f"/v1/sandboxes/{sandbox}")["sandbox"]
        seen.append((prompt, got["state"], got["agent_id"], got["base_image"], run(sandbox, "id -u")["stdout"]))

    names = {"run_agent": run_agent}
    exec(compile(SEED_EXAMPLE, "the seed's example", "exec"), names)
    assert seen == [(seen[0][0], "RUNNING", "nginx-setup-agent", "ubuntu-base", "0\n")]
    assert names["sandbox"].id.startswith("SBX-") and names["sandbox"].ip_address == "127.0.0.1"
    assert call("GET", f"/v1/sandboxes/{names['sandbox'].id}")[0] == 404


def test_the_client_of_the_second_generation(fluid):
    from virsh_sandbox import VirshSandbox
    from virsh_sandbox.exceptions import BadRequestException, NotFoundException
    with VirshSandbox(MAIN) as client:
        assert client.health.get_health().status == "ok"
        assert "ubuntu-base" in [v.name for v in client.vms.list_virtual_machines().vms]
        made = client.sandbox.create_sandbox(source_vm_name="ubuntu-base", agent_id="a", cpu=1, memory_mb=256, ttl_seconds=3600)
        box = made.sandbox.id
        assert (made.sandbox.state, made.sandbox.ttl_seconds, made.ip_address) == ("CREATED", 3600, None)
        assert client.sandbox.start_sandbox(box, wait_for_ip=True).ip_address == "127.0.0.1"
        assert client.sandbox.discover_sandbox_ip(box).ip_address == "127.0.0.1"
        ran = client.sandbox.run_sandbox_command(box, command="echo $A; echo b >&2; exit 3", env={"A": "x y"}, timeout_sec=30).command
        assert (ran.stdout, ran.stderr, ran.exit_code, ran.env_json) == ("x y\n", "b\n", 3, '{"A":"x y"}')
        snap = client.sandbox.create_snapshot(box, name="before", external=True).snapshot
        assert (snap.name, snap.kind, snap.sandbox_id) == ("before", "EXTERNAL", box)
        commands = client.sandbox.list_sandbox_commands(box)
        assert commands.total == 1 and commands.commands[0].id == ran.id and commands.commands[0].stdout == "x y\n"
        got = client.sandbox.get_sandbox(box, include_commands=True)
        assert got.sandbox.state == "RUNNING" and [c.command for c in got.commands] == [ran.command]
        key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPAY5N8Xg3zL2v1xk1n8m2m3b1bq0lM0hYk5i3xkq7c me"
        client.sandbox.inject_ssh_key(box, public_key=key, username="root")
        assert run(box, "cat ~/.ssh/authorized_keys")["stdout"] == key + "\n"
        listed = client.sandbox.list_sandboxes(agent_id="a", state="RUNNING", vm_name=made.sandbox.sandbox_name)
        assert [s.id for s in listed.sandboxes] == [box] and listed.total == 1
        assert client.sandbox.destroy_sandbox(box).state == "DESTROYED"
        with pytest.raises(NotFoundException):
            client.sandbox.get_sandbox(box)
        with pytest.raises(BadRequestException):
            client.sandbox.create_sandbox(agent_id="a")


# --- sandboxes ---


def test_the_life_of_a_sandbox(fluid):
    """Both prefixes, exact statuses; our own names for the same thing."""
    made = ok("POST", "/api/v1/sandboxes", {"source_vm_name": "host", "agent_id": "a", "vm_name": "web", "auto_start": True, "wait_for_ip": True}, 201)
    box = made["sandbox"]
    assert made["ip_address"] == "127.0.0.1" and made["ssh_port"] > 0
    assert set(box) == {"id", "job_id", "agent_id", "sandbox_name", "base_image", "network", "ip_address", "state", "created_at", "updated_at"}
    assert (box["sandbox_name"], box["base_image"], box["network"], box["state"]) == ("web", "host", "open", "RUNNING")
    assert box["id"].startswith("SBX-") and box["job_id"].startswith("JOB-") and len(box["id"]) == len(box["job_id"]) == 12
    native = fluid.ok("GET", f"/holt/v1/sandboxes/{box['id']}")
    for name in (native["id"], "web", box["id"]):
        assert ok("GET", f"/v1/sandboxes/{name}")["sandbox"]["id"] == box["id"]
    stopped = ok("POST", "/v1/sandboxes/web/stop", {"force": True})
    assert stopped["stopped"] is True and stopped["sandbox_id"] == box["id"] and stopped["sandbox"]["state"] == "STOPPED"
    assert call("GET", "/v1/sandboxes/web/ip")[0] == 500
    assert ok("POST", "/v1/sandboxes/web/start") == {}
    assert ok("GET", "/v1/sandboxes/web/ip")["ip_address"] == "127.0.0.1"
    assert call("POST", "/v1/sandboxes", {"source_vm_name": "host", "agent_id": "a", "vm_name": "web"})[0] == 409
    assert ok("DELETE", "/v1/sandboxes/web") == {"state": "DESTROYED", "base_image": "host", "sandbox_name": "web"}
    assert call("GET", "/v1/sandboxes/web")[1] == {"error": "sandbox not found: web", "code": 404}


def test_a_sandbox_of_another_interface_is_found(fluid):
    """By id and by name, with the fields that this interface wants."""
    made = fluid.ok("POST", "/holt/v1/sandboxes", {"name": "native-one"})
    got = ok("GET", "/v1/sandboxes/native-one")["sandbox"]
    assert (got["id"], got["sandbox_name"], got["state"], got["base_image"]) == (made["id"], "native-one", "RUNNING", "host")
    assert made["id"] in [s["id"] for s in ok("GET", "/v1/sandboxes")["sandboxes"]]
    assert {"name": "native-one", "state": "running"}.items() <= next(v for v in ok("GET", "/v1/vms")["vms"] if v["name"] == "native-one").items()
    assert run("native-one", "echo hi")["stdout"] == "hi\n"
    ok("DELETE", "/v1/sandboxes/native-one")


def test_lists_are_filtered_and_paged(fluid):
    made = [ok("POST", "/v1/sandboxes", {"source_vm_name": "host", "agent_id": f"lister-{i % 2}"}, 201)["sandbox"] for i in range(3)]
    ids = [m["id"] for m in made]
    assert [s["id"] for s in ok("GET", "/v1/sandboxes?agent_id=lister-0")["sandboxes"]] == [ids[2], ids[0]]
    assert [s["id"] for s in ok("GET", f"/v1/sandboxes?job_id={made[1]['job_id']}")["sandboxes"]] == [ids[1]]
    assert [s["id"] for s in ok("GET", "/v1/sandboxes?agent_id=lister-0&limit=1&offset=1")["sandboxes"]] == [ids[0]]
    assert ok("GET", "/v1/sandboxes?agent_id=lister-0&state=RUNNING") == {"sandboxes": [], "total": 0}
    row = ok("GET", "/v1/sandboxes?agent_id=lister-1")["sandboxes"][0]
    assert row["state"] == "CREATED" and row["created_at"].endswith("Z") and "." not in row["created_at"]
    status, reply, _ = call("GET", "/v1/sandboxes?limit=x")
    assert status == 400 and reply["error"].startswith("invalid limit: "), reply
    for i in ids:
        ok("DELETE", f"/v1/sandboxes/{i}")


def test_a_lifetime_acts(fluid):
    made = ok("POST", "/v1/sandboxes", {"source_vm_name": "host", "agent_id": "a", "ttl_seconds": 1, "auto_start": True}, 201)["sandbox"]
    assert made["ttl_seconds"] == 1
    wait_for(lambda: call("GET", f"/v1/sandboxes/{made['id']}")[0] == 404)


def test_sources_are_images_templates_snapshots_and_sandboxes(fluid, box):
    run(box, "echo golden > /etc/golden")
    ok("POST", f"/v1/sandboxes/{box}/snapshots", {"name": "gold"}, 201)
    run(box, "echo later > /etc/golden")
    fluid.ok("POST", "/holt/v1/templates", {"name": "web-template", "image": "host", "env": {"FROM": "template"}, "shared": True})
    name = ok("GET", f"/v1/sandboxes/{box}")["sandbox"]["sandbox_name"]
    found = {}
    for source, look in ((name, "cat /etc/golden"), (box, "cat /etc/golden"), (f"{name}@gold", "cat /etc/golden"), ("web-template", "echo $FROM")):
        made = ok("POST", "/v1/sandboxes", {"source_vm_name": source, "agent_id": "a", "auto_start": True}, 201)["sandbox"]
        assert made["base_image"] == source and made["id"].startswith("SBX-")
        found[source] = run(made["id"], look)["stdout"]
        ok("DELETE", f"/v1/sandboxes/{made['id']}")
    assert found == {name: "later\n", box: "later\n", f"{name}@gold": "golden\n", "web-template": "template\n"}
    assert "web-template" in [v["name"] for v in ok("GET", "/v1/vms")["vms"]]
    status, reply, _ = call("POST", "/v1/sandboxes", {"source_vm_name": "no-such", "agent_id": "a"})
    assert status == 404 and "no-such" in reply["error"] and "/v1/vms" in reply["details"], reply


# --- commands ---


def test_commands(box):
    """A login shell; what the shell sees is what was sent, line by line; both paths."""
    text = 'x=1\nfor i in a b; do echo "$x $i"; done\n[[ $BASH_VERSION ]] && echo bash'
    got = run(box, text)
    assert (got["stdout"], got["exit_code"], got["command"], got["sandbox_id"]) == ("1 a\n1 b\nbash\n", 0, text, box)
    assert ok("POST", f"/v1/sandboxes/{box}/command", {"command": "pwd; whoami"})["command"]["stdout"].endswith("root\n")
    late = run(box, "echo early; sleep 60", timeout_sec=1)
    assert (late["exit_code"], late["stdout"]) == (-1, "early\n")
    assert run(box, "env | grep ^A_", env={"A-B": "1"})["stdout"] == "A_B=1\n"
    nobody = run(box, "true", user="no-such-user")
    assert nobody["exit_code"] == 255 and "no-such-user" in nobody["stderr"], nobody
    rows = ok("GET", f"/v1/sandboxes/{box}/commands?limit=2")
    assert rows["total"] == 2 and rows["commands"][0]["command"] == "env | grep ^A_"


def test_a_key_of_the_server_is_only_named_where_the_operator_said(box):
    status, reply, _ = call("POST", f"/v1/sandboxes/{box}/run", {"command": "true", "user": "root", "private_key_path": "/etc/shadow"})
    assert status == 403 and "fluid_key_dirs" in reply["error"], reply
    for path in ("/srv/keys/../x", "/srv/keysx/a", "/srv/keys"):
        assert call("POST", f"/v1/sandboxes/{box}/run", {"command": "true", "private_key_path": path})[0] == 403, path
    assert run(box, "echo ok", user="root", private_key_path="/srv/keys/id")["stdout"] == "ok\n"


def test_a_restore_reverts(box):
    run(box, "echo one > /root/f")
    first = ok("POST", f"/v1/sandboxes/{box}/snapshot", {"name": "one"}, 201)["snapshot"]
    run(box, "echo two > /root/f; touch /root/g")
    ok("POST", f"/v1/sandboxes/{box}/snapshots", {"name": "two"}, 201)
    listed = ok("GET", f"/v1/sandboxes/{box}/snapshots")
    assert [s["name"] for s in listed["snapshots"]] == ["two", "one"] and listed["total"] == 2
    assert listed["snapshots"][1] == first and first["id"].startswith("SNP-") and first["kind"] == "INTERNAL"
    back = ok("POST", f"/v1/sandboxes/{box}/snapshots/one/restore")
    assert back["snapshot"] == first and back["sandbox"]["id"] == box and back["sandbox"]["state"] == "RUNNING"
    assert run(box, "cat /root/f; ls /root/g")["stdout"] == "one\n"
    ok("POST", f"/v1/sandboxes/{box}/snapshots/{listed['snapshots'][0]['id']}/restore", {})
    assert run(box, "cat /root/f; ls /root/g")["stdout"] == "two\n/root/g\n"
    assert call("POST", f"/v1/sandboxes/{box}/snapshots/none/restore")[0] == 404
    assert call("POST", f"/v1/sandboxes/{box}/snapshot", {"name": "one"})[0] == 409


def test_a_diff_of_two_snapshots(box):
    run(box, "mkdir -p /var/lib/dpkg/info /root/d; echo 1 > /root/f; echo 1 > /root/g; echo x > /root/d/gone")
    ok("POST", f"/v1/sandboxes/{box}/snapshot", {"name": "one"}, 201)
    run(box, "echo 2 > /root/f; chmod 700 /root/g; rm /root/d/gone; echo n > /root/new; echo /tmp/x > /tmp/volatile;"
             r"printf 'Package: nginx\nStatus: install ok installed\nVersion: 1.2\n\n' > /var/lib/dpkg/status;"
             "mkdir -p /etc/systemd/system/multi-user.target.wants; ln -s ../web.service /etc/systemd/system/multi-user.target.wants/web.service")
    ok("POST", f"/v1/sandboxes/{box}/snapshot", {"name": "two"}, 201)
    run(box, "rm -r /root/f")
    asked = {"from_snapshot": "one", "to_snapshot": "two"}
    diff = ok("POST", f"/v1/sandboxes/{box}/diff", asked)["diff"]
    assert (diff["sandbox_id"], diff["from_snapshot"], diff["to_snapshot"]) == (box, "one", "two") and diff["id"].startswith("DIF-")
    made = diff["diff_json"]
    assert made["files_modified"] == ["/root/f", "/root/g"] and made["files_removed"] == ["/root/d/gone"]
    assert "/root/new" in made["files_added"] and not any(p.startswith("/tmp") for p in made["files_added"])
    assert made["packages_added"] == [{"name": "nginx", "version": "1.2"}] and "packages_removed" not in made
    assert made["services_changed"] == [{"name": "web.service", "enabled": True}]
    assert [c["cmd"][-40:] for c in made["commands_run"]] and all(c["exit_code"] == 0 for c in made["commands_run"])
    assert len(made["commands_run"]) == 1, "only those of the interval"
    assert ok("POST", f"/v1/sandboxes/{box}/diff", asked)["diff"] == diff, "again: the same"
    assert ok("POST", f"/v1/sandboxes/{box}/diff", {"from_snapshot": "two", "to_snapshot": "two"})["diff"]["diff_json"] == {}
    assert call("POST", f"/v1/sandboxes/{box}/diff", {"from_snapshot": "one", "to_snapshot": "none"})[0] == 404
    assert call("POST", f"/v1/sandboxes/{box}/diff", {"from_snapshot": "one"})[0] == 400


def test_a_playbook_of_what_has_changed(box, fluid):
    ok("POST", f"/v1/sandboxes/{box}/snapshot", {"name": "one"}, 201)
    run(box, "mkdir /etc/app; echo 1 > /etc/app/conf")
    ok("POST", f"/v1/sandboxes/{box}/snapshot", {"name": "two"}, 201)
    run(box, "echo 2 > /etc/later")
    job = ok("GET", f"/v1/sandboxes/{box}")["sandbox"]["job_id"]
    made = ok("POST", f"/v1/sandboxes/{box}/generate/ansible")
    assert made["name"] == job and "dest: /etc/app/conf" in made["yaml"] and "later" not in made["yaml"] and made["message"] and made["note"]
    assert ok("GET", f"/v1/ansible/playbooks/{job}/export")["yaml"] == made["yaml"]
    assert ok("POST", f"/v1/sandboxes/{box}/generate/ansible")["yaml"] == made["yaml"], "again: it is made anew"
    assert "file { '/etc/app/conf':" in ok("POST", f"/v1/sandboxes/{box}/generate/puppet")["manifest"]
    assert call("POST", f"/v1/sandboxes/{box}/generate/chef")[0] == 400
    assert call("POST", "/v1/sandboxes/SBX-00000000/generate/ansible")[0] == 404
    assert call("DELETE", f"/v1/ansible/playbooks/{job}")[0] == 204


# --- the form of replies ---


def test_bodies_are_read_strictly(box):
    for body, text in ((b"", "invalid json: EOF"), (b"{", "invalid json: "), (b"[]", "invalid json: "), (b'{"command":1}', 'field "command"'),
                       (b'{"command":"true","x":1}', 'unknown field "x"'), (b'{"command":"true"} {}', "invalid json: "), (b"{}", "command is required")):
        status, reply, _ = call("POST", f"/v1/sandboxes/{box}/run", body)
        assert status == 400 and text in reply["error"] and reply["code"] == 400, (body, reply)
    for path in ("start", "run", "snapshot", "sshkey"):
        body = {"command": "x", "name": "x", "public_key": "x", "username": "x"} if path != "start" else {}
        body = {k: v for k, v in body.items() if path == "run" and k == "command" or path == "snapshot" and k == "name" or path == "sshkey" and k[0] in "pu"}
        assert call("POST", f"/v1/sandboxes/SBX-00000000/{path}", body)[0] == 404, path


def test_replies_have_the_originals_form(fluid):
    status, reply, heads = call("GET", "/v1/health")
    assert (status, reply) == (200, {"status": "ok"})
    assert heads["Content-Type"] == "application/json; charset=utf-8" and heads["X-Content-Type-Options"] == "nosniff"
    status, reply, heads = call("GET", "/v1/nothing")
    assert status == 404 and heads["Content-Type"].startswith("text/plain")
    assert call("PUT", "/v1/sandboxes")[0] == 405
    assert ok("GET", "/v1/sandboxes/?limit=1") == ok("GET", "/v1/sandboxes?limit=1")
    assert call("GET", "/v1/sandboxes/a/b")[0] == 404
    status, reply, _ = fluid.request("GET", "/v1/sandboxes", token=None)
    assert status == 401 and reply["code"] == 401 and "error" in reply


# --- live ---


def frames(ws, until, most=200):
    got = []
    while len(got) < most:
        got.append(json.loads(ws.recv(timeout=30)))
        if until(got[-1]):
            return got
    raise AssertionError(got)


def test_the_live_stream(box):
    """History, then start, output and end while they happen; a plain GET is refused, not held."""
    old = run(box, "echo past")
    with connect(f"ws://127.0.0.1:8080/v1/sandboxes/{box}/stream") as ws:
        first, second = frames(ws, lambda f: f["type"] == "command_history")
        assert first["type"] == "connected" and first["sandbox_id"] == box
        assert first["data"] == {"sandbox_id": box, "sandbox_name": first["data"]["sandbox_name"], "state": "RUNNING", "ip_address": "127.0.0.1"}
        assert (second["data"]["command_id"], second["data"]["stdout"], second["data"]["exit_code"]) == (old["id"], "past\n", 0)
        new = run(box, "echo now; echo bad >&2; exit 4")
        got = [f for f in frames(ws, lambda f: f["type"] == "command_new") if f["type"] != "heartbeat"]
        assert {f["data"]["command_id"] for f in got} == {new["id"]}
        assert [f["type"] for f in got][0] == "command_start" and [f["type"] for f in got][-2:] == ["command_end", "command_new"]
        output = {f["data"]["is_stderr"]: f["data"]["output"] for f in got if f["type"] == "command_output"}
        assert output == {False: "now\n", True: "bad\n"} and got[-2]["data"]["exit_code"] == 4
        assert got[-1]["data"]["stdout"] == "now\n" and got[-1]["data"]["stderr"] == "bad\n"
        wait_for(lambda: run(box, "mkdir -p /root/d; echo x >> /root/d/f; rm -f /root/d/f") and any(
            f["type"] == "file_change" and f["data"]["path"].endswith("d/f") and f["data"]["operation"] == "deleted"
            for f in frames(ws, lambda f: f["type"] in ("command_new", "file_change") and "deleted" in json.dumps(f) or f["type"] == "command_new")))
        frames(ws, lambda f: f["type"] == "heartbeat" and "data" not in f)
        ok("DELETE", f"/v1/sandboxes/{box}")
        with pytest.raises(Exception) as end:
            frames(ws, lambda f: False)
        assert "1000" in str(end.value)
    assert call("GET", f"/v1/sandboxes/{box}/stream")[0] == 400


# --- access ---


def test_certificates_open_ssh(fluid, box, tmp_path):
    """Issued, used with stock ssh, listed with its session, revoked: then refused."""
    subprocess.run(["ssh-keygen", "-qt", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    public = (tmp_path / "key.pub").read_text()
    got = ok("POST", "/v1/access/request", {"sandbox_id": box, "user_id": "me", "public_key": public, "ttl_minutes": 60})
    assert (got["vm_ip_address"], got["username"], got["ttl_seconds"], len(got["certificate_id"])) == ("127.0.0.1", "root", 600, 16)
    (tmp_path / "key-cert.pub").write_text(got["certificate"] + "\n")
    shown = subprocess.run(["ssh-keygen", "-Lf", tmp_path / "key-cert.pub"], check=True, capture_output=True, text=True).stdout
    assert "user certificate" in shown
    command = ["ssh", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes",
               "-i", str(tmp_path / "key"), "-p", str(got["ssh_port"]), "root@127.0.0.1", "echo over-ssh"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "over-ssh\n", done
    info = ok("GET", f"/v1/access/certificate/{got['certificate_id']}")
    assert (info["status"], info["sandbox_id"], info["is_expired"], info["principals"]) == ("ACTIVE", box, False, ["root"])
    wait_for(lambda: [s["status"] for s in ok("GET", f"/v1/access/sessions?sandbox_id={box}")["sessions"]] == ["ENDED"])
    own = ok("POST", "/v1/access/session/start", {"certificate_id": got["certificate_id"], "source_ip": "192.0.2.7"})["session_id"]
    assert own.startswith("SESS-")
    active = ok("GET", f"/v1/access/sessions?certificate_id={got['certificate_id']}&active_only=true")
    assert [(s["id"], s["source_ip"], s["status"]) for s in active["sessions"]] == [(own, "192.0.2.7", "ACTIVE")] and active["total"] == 1
    assert ok("POST", "/v1/access/session/end", {"session_id": own}) == {"message": "session ended", "session_id": own}
    assert call("POST", "/v1/access/session/end", {"session_id": own})[0] == 404
    assert ok("DELETE", f"/v1/access/certificate/{got['certificate_id']}", {})["id"] == got["certificate_id"]
    assert call("DELETE", f"/v1/access/certificate/{got['certificate_id']}")[0] == 400
    assert ok("GET", f"/v1/access/certificates?sandbox_id={box}&status=REVOKED")["total"] == 1
    assert ok("GET", f"/v1/access/certificates?sandbox_id={box}&active_only=true")["total"] == 0
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).returncode == 255
    assert call("POST", "/v1/access/session/start", {"certificate_id": got["certificate_id"]})[0] == 500
    assert call("GET", "/v1/access/certificate/0000000000000000")[1]["error"] == "certificate not found"
    assert ok("GET", "/v1/access/ca-pubkey")["public_key"].startswith("ssh-ed25519 ")
    assert call("POST", "/v1/access/request", {"sandbox_id": box})[1]["error"] == "user_id is required"


# --- people ---


@pytest.fixture(scope="module")
def person(fluid):
    token = fluid.ok("POST", "/holt/v1/tokens", {"name": "ann", "role": "operator", "person": "ann"})["token"]
    return {"Authorization": f"Bearer {token}"}


def answer(question, person, approved, **more):
    got, reply, _ = call("POST", "/api/v1/human/respond", {"request_id": question, "approved": approved, "approved_by": "Ann", **more}, headers=person)
    assert got == 200, reply
    return reply["data"]


def test_an_ask_waits_for_a_person(fluid, person):
    """It is held until the answer; the asker cannot give it; what was decided stays readable."""
    body = {"prompt": "drop the table?", "action_type": "destructive", "context": "prod", "urgency": "high", "alternatives": ["rename it"]}
    for approved, comment in ((True, "go on"), (False, "not today")):
        with ThreadPoolExecutor(1, initializer=join_network(fluid)) as pool:
            waiting = pool.submit(call, "POST", "/api/v1/human/ask", body)
            pending = wait_for(lambda: ok("GET", "/api/v1/human/pending")["data"]["pending"])
            assert len(pending) == 1
            question = pending[0]["request_id"]
            assert {"prompt": "drop the table?", "action_type": "destructive", "urgency": "high", "status": "pending", "context": "prod"}.items() <= pending[0].items()
            assert ok("GET", f"/v1/human/pending/{question}")["prompt"] == "drop the table?"
            status, reply, _ = call("POST", "/api/v1/human/respond", {"request_id": question, "approved": True, "approved_by": "me"})
            assert status == 403 and reply["error"]["code"] == "FORBIDDEN" and not reply["success"], reply
            assert not waiting.done()
            assert answer(question, person, approved, comment=comment)["approved"] is approved
            status, reply, heads = waiting.result(30)
        assert status == 200 and reply["success"] and heads["Cache-Control"] == "no-store", reply
        assert {"request_id": question, "approved": approved, "status": "approved" if approved else "rejected", "comment": comment}.items() <= reply["data"].items()
        assert reply["data"]["approved_by"].startswith("token/tk_")  # the decider as it is known, whatever it calls itself
        assert call("GET", f"/api/v1/human/pending/{question}")[0] == 404
        assert ok("GET", f"/api/v1/human/requests/{question}")["data"]["approved"] is approved


def test_an_ask_outlives_the_idle_limits_and_expires(tmp_path):
    """Held through every time limit of the server, until its own; then it is a no."""
    with own_network():
        d = native(tmp_path, "--seed-ports", "--idle-ms", "1000", "--header-ms", "1000")
        try:
            began = time.monotonic()
            got = ok("POST", "/v1/human/ask", {"prompt": "?", "action_type": "any", "timeout_secs": 4})
            assert (got["approved"], got["status"], got["comment"], got["success"]) == (False, "expired", "request timed out", True)
            assert time.monotonic() - began >= 4
        finally:
            d.stop()


def test_a_question_without_waiting(fluid, person):
    made = ok("POST", "/v1/human/ask-async", {"prompt": "?", "action_type": "deploy"})
    assert made["status"] == "pending"
    question = made["request_id"]
    assert [p["action_type"] for p in ok("GET", "/v1/human/pending")["pending"] if p["request_id"] == question] == ["deploy"]
    assert ok("DELETE", f"/v1/human/pending/{question}")["cancelled"] is True
    assert {"approved": False, "status": "rejected", "comment": "request cancelled"}.items() <= ok("GET", f"/v1/human/requests/{question}").items()
    for body in ({"prompt": "?"}, {"action_type": "x"}, {"prompt": "?", "action_type": "x", "urgency": "now"}):
        status, reply, _ = call("POST", "/api/v1/human/ask", body)
        assert status == 400 and reply["error"]["code"] == "VALIDATION_ERROR", reply
    status, reply, heads = call("GET", "/api/v1/human/requests/ap_none", headers={"X-Request-ID": "mine"})
    assert status == 404 and reply["error"]["code"] == "NOT_FOUND" and reply["request_id"] == heads["X-Request-ID"] == "mine"


def test_health_of_the_agent_port(fluid):
    for path in ("/v1/health", "/health"):
        got = ok("GET", path, base="http://127.0.0.1:8081")
        assert got["status"] == "healthy" and {"name": "tmux", "status": "healthy"} in got["components"], got
    assert ok("GET", "/v1/health") == {"status": "ok"}


# --- the agent interface ---


AGENT = "http://127.0.0.1:8081"


def agent(method, path, body=None, status=200):
    """Below /api/v1: the data of the envelope, or the error."""
    got, reply, _ = call(method, f"/api/v1{path}", body, base=AGENT)
    assert got == status and reply["success"] is (status == 200) and reply["request_id"] and reply["timestamp"], (path, got, reply)
    return reply["data"] if status == 200 else reply["error"]


def read_until(pane, text):
    return wait_for(lambda: (got := agent("POST", "/tmux/panes/read", {"pane_id": pane, "last_n_lines": 20})) and text in got["content"] and got)


def test_tmux(fluid, box):
    """Panes are terminals inside sandboxes: keys and text go in, the screen comes out."""
    made = agent("POST", "/tmux/sessions/create", {"name": "job", "sandbox_id": box})
    pane = made["pane_id"]
    assert made["session_name"] == "job" and made["session_id"].startswith("$") and pane.startswith("%")
    assert agent("POST", "/tmux/panes/send-keys", {"pane_id": pane, "text": "echo $((6*7))-$(hostname)"}) == {"pane_id": pane, "sent": True}
    agent("POST", "/tmux/panes/send-keys", {"pane_id": pane, "key": "Enter"})
    assert "42-" in read_until(pane, "42-")["content"]
    agent("POST", "/tmux/panes/send-keys", {"pane_id": "job:0.0", "text": "sleep 1000\r"})
    sleeping = lambda: run(box, "cat /proc/[0-9]*/comm | grep -c '^sleep$'")["stdout"] == "1\n"
    wait_for(sleeping)
    agent("POST", "/tmux/panes/send-keys", {"pane_id": pane, "key": "C-c"})
    wait_for(lambda: not sleeping())
    one = agent("POST", "/tmux/panes/read", {"pane_id": pane, "last_n_lines": 1})
    assert one["lines"] == 1 and "\n" not in one["content"]
    assert [p["pane_id"] for p in agent("GET", "/tmux/panes?session=job")["panes"]] == [pane]
    assert [w["session_name"] for w in agent("GET", "/tmux/windows?session=job")] == ["job"]
    listed = call("GET", "/v1/tmux/sessions", base=AGENT)[1]
    assert isinstance(listed, list) and {"name": "job", "windows": 1, "attached": False}.items() <= listed[0].items()
    for body in ({"pane_id": pane, "key": "F1"}, {"pane_id": "%1", "key": "Enter"}):
        assert agent("POST", "/tmux/panes/send-keys", body, 403)["code"] == "FORBIDDEN"
    assert agent("POST", "/tmux/panes/switch", {"pane_id": pane}) == {"pane_id": pane, "switched": True}
    second = agent("POST", "/tmux/panes/create", {"session_name": "job", "sandbox_id": box, "command": "cat"})
    assert second["session_name"].startswith("job-") and second["pane_id"] != pane
    assert agent("POST", "/tmux/sessions/job/release") == {"session_name": "job", "success": True}
    assert agent("DELETE", f"/tmux/panes/%25{second['pane_id'][1:]}")["killed"] is True
    assert agent("DELETE", "/tmux/sessions/job") == {"session_name": "job", "killed": True}
    assert agent("POST", "/tmux/panes/read", {"pane_id": pane}, 404)["code"] == "NOT_FOUND"
    assert agent("POST", "/tmux/sessions/create", {"name": "a b"}, 400)["code"] == "VALIDATION_ERROR"


def test_terminals_of_sandboxes(box):
    made = agent("POST", "/sandbox/sessions/create", {"sandbox_id": box, "ttl_minutes": 99})
    assert made["session_name"] == f"sandbox_{box}" and made["sandbox_id"] == box and 590 <= made["ttl_seconds"] <= 600
    listed = agent("GET", "/sandbox/sessions")
    assert [s["session_id"] for s in listed["sessions"]] == [made["session_id"]] and listed["total"] == 1
    assert agent("GET", f"/sandbox/sessions/{made['session_name']}")["is_expired"] is False
    assert agent("DELETE", f"/sandbox/sessions/{made['session_name']}")["credentials_cleaned"] is True
    assert agent("GET", "/sandbox/sessions")["total"] == 0
    assert agent("GET", f"/sandbox/sessions/{made['session_name']}", status=404)["code"] == "NOT_FOUND"


def test_commands_of_the_agent(fluid):
    """In a sandbox of the caller's own, never on the machine of holtd; by the rules of the shipped policy."""
    got = agent("POST", "/command/run", {"command": "echo", "args": ["a b", "$x"]})
    assert (got["stdout"], got["exit_code"], got["args"], got["dry_run"], got["timed_out"]) == ("a b $x\n", 0, ["a b", "$x"], False, False)
    assert agent("POST", "/command/run", {"command": "touch", "args": ["/tmp/by-agent"]})["exit_code"] == 0
    assert not os.path.exists("/tmp/by-agent")
    assert "by-agent" in agent("POST", "/command/run", {"command": "ls", "args": ["/tmp"]})["stdout"]
    assert agent("POST", "/command/run", {"command": "ls", "args": ["/"], "dry_run": True})["dry_run"] is True
    for command, args in (("sudo", ["ls"]), ("bash", ["-c", "ls"]), ("ls", ["a;b"]), ("no-such-tool", [])):
        assert agent("POST", "/command/run", {"command": command, "args": args}, 403)["code"] == "COMMAND_BLOCKED", command
    late = agent("POST", "/command/run", {"command": "tail", "args": ["-f", "/dev/null"], "timeout": 1})
    assert late["timed_out"] is True and late["exit_code"] == -1 and late["stderr"].startswith("command timed out")
    assert agent("POST", "/command/run", {"command": "ls", "timeout": 301}, 400)["code"] == "VALIDATION_ERROR"
    lists = agent("GET", "/command/allowed")
    assert "git" in lists["allowed"] and "sudo" in lists["denied"]


def test_files_of_the_agent(fluid, box):
    def at(what, status=200, **body):
        return agent("POST", f"/file/{what}", {"sandbox_id": box, **body}, status)
    text = "one\ntwo\nthree\n"
    assert at("write", path="/srv/d/f", content=text, create_dir=True, mode="0640") == {"path": "/srv/d/f", "written": True, "bytes_written": 14, "created": True}
    assert at("write", 409, path="/srv/d/f", content="x")["code"] == "VALIDATION_ERROR"
    got = at("read", path="/srv/d/f")
    assert (got["content"], got["total_lines"], got["from_line"], got["to_line"], got["truncated"], got["size"], got["mode"]) == (text, 3, 1, 3, False, 14, "-rw-r-----")
    part = at("read", path="/srv/d/f", from_line=2, to_line=2)
    assert (part["content"], part["truncated"], part["to_line"]) == ("two\n", True, 2)
    edited = at("edit", path="/srv/d/f", old_text="two", new_text="2")
    assert edited["replacements"] == 1 and edited["content_after"] == "one\n2\nthree\n" and "-two\n+2\n" in edited["diff"]
    assert at("edit", 400, path="/srv/d/f", old_text="nine", new_text="9")["code"] == "VALIDATION_ERROR"
    assert at("copy", source="/srv/d/f", destination="/srv/d/g")["bytes_copied"] == 12
    assert at("copy", 409, source="/srv/d/f", destination="/srv/d/g")["code"] == "VALIDATION_ERROR"
    assert run(box, "cat /srv/d/g; stat -c %a /srv/d/f")["stdout"] == "one\n2\nthree\n640\n"
    assert at("hash", path="/srv/d/g")["hash"] == hashlib.sha256(b"one\n2\nthree\n").hexdigest()
    assert at("exists", path="/srv/d")["is_dir"] is True and at("exists", path="/srv/none")["exists"] is False
    assert sorted(f["path"] for f in at("list", path="/srv", recursive=True)["files"]) == ["d", "d/f", "d/g"]
    assert [f["path"] for f in at("list", path="/srv")["files"]] == ["/srv/d"]
    assert at("read", 404, path="/srv/none")["code"] == "NOT_FOUND"
    for path in ("/etc/shadow", "/srv/../etc/shadow"):
        assert at("read", 403, path=path)["code"] == "FORBIDDEN"
    assert at("delete", 403, path="/srv/d/g")["code"] == "FORBIDDEN"
    assert at("write", 400, path="", content="")["code"] == "VALIDATION_ERROR"


def test_the_audit_log(fluid, box):
    fluid.request("GET", "/v1/sandboxes")
    run(box, "true")
    status, reply, _ = fluid.request("POST", "/api/v1/audit/query", {"tool": "command", "limit": 2})
    entries = reply["data"]["entries"]
    assert status == 200 and len(entries) == 2 and all(e["tool"] == "command" for e in entries) and reply["data"]["has_more"] is True
    assert entries[0]["timestamp"] >= entries[1]["timestamp"] and "arguments" in entries[0]
    status, reply, _ = fluid.request("POST", "/v1/audit/query", {"tool": "sandbox", "action": "created"})
    assert status == 200 and reply["total_count"] >= 1 and "arguments" not in reply["entries"][0]
    status, reply, _ = fluid.request("GET", "/v1/audit/stats")
    assert status == 200 and reply["enabled"] is True and reply["entries_by_tool"]["command"] >= 1
    assert fluid.request("POST", "/v1/audit/query", {"since": "yesterday"})[0] == 400


def test_plans(fluid):
    """Advance by advance, to the end, a failure or an abort."""
    made = agent("POST", "/plan/create", {"name": "tls", "steps": ["install", "configure"]})
    plan = made["plan_id"]
    assert {"id": plan, "name": "tls", "status": "pending", "current_step": -1}.items() <= made["plan"].items()
    assert [s["status"] for s in made["plan"]["steps"]] == ["pending", "pending"]
    assert agent("POST", f"/plan/{plan}/advance", {}) == {"plan_id": plan, "current_step": 0, "status": "in_progress"}
    agent("POST", f"/plan/{plan}/advance", {"result": "nginx 1.2"})
    got = agent("GET", f"/plan/{plan}")["plan"]
    assert [(s["status"], s.get("result")) for s in got["steps"]] == [("completed", "nginx 1.2"), ("active", None)]
    assert agent("POST", f"/plan/{plan}/advance")["status"] == "completed"
    assert agent("POST", f"/plan/{plan}/advance", status=409)["code"] == "VALIDATION_ERROR"
    second = agent("POST", "/plan/create", {"steps": ["a", "b"]})["plan_id"]
    assert agent("POST", "/plan/update", {"plan_id": second, "step_index": 0, "status": "failed", "error": "no"})["plan"]["status"] == "failed"
    third = agent("POST", "/plan/create", {"steps": ["a"]})["plan_id"]
    assert agent("POST", f"/plan/{third}/abort") == {"plan_id": third, "aborted": True, "reason": "aborted by user"}
    assert agent("GET", f"/plan/{third}")["plan"]["steps"][0]["status"] == "skipped"
    assert [p["id"] for p in agent("GET", "/plan")["plans"]] == [p["id"] for p in call("GET", "/v1/plan/", base=AGENT)[1]["plans"]] == [third, second, plan]
    for body, path in (({}, "create"), ({"steps": ["x"] * 51}, "create"), ({"plan_id": second, "status": "odd"}, "update"), ({"plan_id": third, "step_index": 7, "status": "active"}, "update")):
        assert call("POST", f"/api/v1/plan/{path}", body, base=AGENT)[0] in (400, 409), (path, body)
    assert agent("DELETE", f"/plan/{third}") == {"plan_id": third, "deleted": True}
    assert agent("GET", f"/plan/{third}", status=404)["code"] == "NOT_FOUND"
    agent("DELETE", f"/plan/{second}")
    agent("DELETE", f"/plan/{plan}")


def test_what_is_kept_over_a_restart(tmp_path):
    """Plans, and what a sandbox is for: its agent, job and source; one that was never started."""
    with own_network():
        d = native(tmp_path, "--seed-ports")
        try:
            plan = agent("POST", "/plan/create", {"name": "p", "steps": ["a", "b"]})["plan_id"]
            agent("POST", f"/plan/{plan}/advance")
            before = agent("GET", f"/plan/{plan}")
            made = ok("POST", "/v1/sandboxes", {"source_vm_name": "ubuntu-base", "agent_id": "kept", "ttl_seconds": 900}, 201)["sandbox"]
            d.stop()
            d = native(tmp_path, "--seed-ports")
            assert agent("GET", f"/plan/{plan}") == before
            got = ok("GET", f"/v1/sandboxes/{made['id']}")["sandbox"]
            assert got == made and got["state"] == "CREATED"
            ok("POST", f"/v1/sandboxes/{made['id']}/start")
            ok("POST", f"/v1/sandboxes/{made['id']}/stop")
            assert ok("GET", f"/v1/sandboxes/{made['id']}")["sandbox"]["state"] == "STOPPED"
        finally:
            d.clear()
            d.stop()


def test_every_method_of_the_first_generation(fluid, tmp_path):
    """The client 0.0.15 from PyPI: each of its methods is called, against 8080 and 8081."""
    package = os.path.join(os.path.dirname(__file__), "..", "..", ".venv", "fluid-0.0.15")
    if not os.path.isdir(package):
        pytest.skip("virsh-sandbox 0.0.15b0 is not there: tools/deps fetches it")
    subprocess.run(["ssh-keygen", "-qt", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    token = fluid.ok("POST", "/holt/v1/tokens", {"name": "bea", "role": "admin", "person": "bea"})["token"]
    done = subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__), "fluid_sdk_0_0_15.py"), MAIN, AGENT, token, (tmp_path / "key.pub").read_text().strip()],
                          env={**os.environ, "PYTHONPATH": package}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().endswith("methods"), done.stdout


def test_every_method_of_the_second_generation(fluid, tmp_path):
    """0.0.21: what test_the_client_of_the_second_generation has not called; none is left out."""
    from virsh_sandbox import VirshSandbox
    from virsh_sandbox.exceptions import ApiException
    client = VirshSandbox(MAIN)
    box = client.sandbox.create_sandbox(source_vm_name="ubuntu-base", agent_id="walk", auto_start=True).sandbox.id
    subprocess.run(["ssh-keygen", "-qt", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    with pytest.raises(ApiException) as e:
        client.sandbox.stream_sandbox_activity(box)
    assert e.value.status == 400
    certificate = client.access.request_access(public_key=(tmp_path / "key.pub").read_text(), sandbox_id=box, ttl_minutes=2, user_id="me").certificate_id
    assert client.access.get_certificate(certificate).status == "ACTIVE" and client.access.get_ca_public_key().public_key
    assert [c.id for c in client.access.list_certificates(sandbox_id=box, active_only=True).certificates] == [certificate]
    session = client.access.record_session_start(certificate_id=certificate).session_id
    assert [s.id for s in client.access.list_sessions(sandbox_id=box).sessions] == [session]
    client.access.record_session_end(session_id=session)
    client.access.revoke_certificate(certificate)
    for name in ("before", "after"):
        client.sandbox.create_snapshot(box, name=name)
        client.sandbox.run_sandbox_command(box, command=f"touch /root/{name}")
    changes = client.sandbox.diff_snapshots(box, from_snapshot="before", to_snapshot="after").diff.diff_json
    assert changes.files_added == ["/root/before"] and [c.exit_code for c in changes.commands_run] == [0]
    client.sandbox.generate_configuration(box, "ansible")
    for book in client.ansible_playbooks.list_playbooks().playbooks:
        client.ansible_playbooks.delete_playbook(book.name)
    client.sandbox.destroy_sandbox(box)
    with open(__file__, encoding="utf-8") as f:
        called = set(re.findall(r"client\.(\w+)\.(\w+)\(", f.read()))
    groups = {g: getattr(client, g) for g in ("access", "ansible", "ansible_playbooks", "health", "sandbox", "vms")}
    every = {(g, m) for g, o in groups.items() for m in dir(o) if not m.startswith("_") and inspect.ismethod(getattr(o, m))}
    assert every == called, every - called


def test_the_reference_lists_every_route(fluid):
    status, page, heads = call("GET", "/docs")
    assert status == 200 and heads["Content-Type"].startswith("text/html")
    for path in ("/v1/sandboxes/{id}/restore", "/v1/none"):
        assert path not in page
    for path in ("/v1/sandboxes/{id}/run", "/v1/ansible/jobs/{id}/stream", "/v1/human/ask", "/v1/tmux/panes/send-keys", "/v1/access/request"):
        assert f"<code>{path}</code>" in page, path
    assert "<code>source_vm_name</code>*" in page


# --- playbooks and jobs ---


def test_playbooks(fluid):
    """The published client: tasks, their order, the text of the seed's own example; the exact statuses."""
    from virsh_sandbox import VirshSandbox
    from virsh_sandbox.exceptions import ApiException
    client = VirshSandbox(MAIN)
    book = client.ansible_playbooks.create_playbook(name="web", become=True).playbook
    assert (book.name, book.hosts, book.become) == ("web", "all", True) and len(book.id) == 36
    first = client.ansible_playbooks.add_playbook_task("web", name="Install nginx", module="apt", params={"name": "nginx", "state": "present"}).task
    assert (first.position, first.playbook_id, first.module, first.params) == (0, book.id, "apt", {"name": "nginx", "state": "present"})
    assert client.ansible_playbooks.export_playbook("web").yaml == (
        "- name: web\n  hosts: all\n  become: true\n  tasks:\n    - apt:\n        name: nginx\n        state: present\n      name: Install nginx\n")
    second = client.ansible_playbooks.add_playbook_task("web", name="Ping", module="ping").task
    assert second.position == 1
    client.ansible_playbooks.reorder_playbook_tasks("web", task_ids=[second.id, first.id])
    got = client.ansible_playbooks.get_playbook("web")
    assert [(t.id, t.position) for t in got.tasks] == [(second.id, 0), (first.id, 1)] and got.playbook.id == book.id
    changed = client.ansible_playbooks.update_playbook_task("web", second.id, name="Pong", params={"data": 1234567}).task
    assert (changed.name, changed.module, changed.params) == ("Pong", "ping", {"data": 1234567})
    assert "data: 1234567\n" in client.ansible_playbooks.export_playbook("web").yaml
    client.ansible_playbooks.delete_playbook_task("web", first.id)
    client.ansible_playbooks.create_playbook(name="db", hosts="dbs")
    assert [p.name for p in client.ansible_playbooks.list_playbooks().playbooks] == ["db", "web"], "the newest first"
    for wrong, status in ((lambda: client.ansible_playbooks.create_playbook(name="web"), 409), (lambda: client.ansible_playbooks.create_playbook(hosts="x"), 400),
                          (lambda: client.ansible_playbooks.get_playbook("none"), 404), (lambda: client.ansible_playbooks.delete_playbook_task("web", first.id), 404),
                          (lambda: client.ansible_playbooks.add_playbook_task("none", name="x", module="ping"), 404),
                          (lambda: client.ansible_playbooks.reorder_playbook_tasks("web", task_ids=[]), 400),
                          (lambda: client.ansible_playbooks.create_playbook(name="../x"), 400)):
        with pytest.raises(ApiException) as e:
            wrong()
        assert e.value.status == status, e.value
    assert call("POST", "/v1/ansible/playbooks/web/tasks", {"name": "x", "module": "ping", "params": None})[0] == 201
    assert call("PATCH", "/api/v1/ansible/playbooks/web/tasks/reorder", {"task_ids": [second.id]})[0] == 400, "each task once"
    assert call("DELETE", "/v1/ansible/playbooks/db")[0] == 204
    client.ansible_playbooks.delete_playbook("web")
    assert call("GET", "/v1/ansible/playbooks")[1] == {"playbooks": [], "total": 0}


@pytest.mark.skipif(not os.path.exists("/usr/bin/ansible-playbook") or not os.path.exists("/usr/sbin/sshd"), reason="no ansible or sshd: tools/deps test")
def test_ansible_jobs(fluid, box):
    """A job runs without a viewer; its stream is there for late ones, too; a target waits for a person."""
    from virsh_sandbox import VirshSandbox
    from virsh_sandbox.exceptions import ApiException
    client = VirshSandbox(MAIN)
    ok("POST", "/v1/ansible/playbooks", {"name": "ping"}, 201)
    ok("POST", "/v1/ansible/playbooks/ping/tasks", {"name": "Say", "module": "shell", "params": {"cmd": "echo x > /root/by-ansible"}}, 201)
    name = client.sandbox.get_sandbox(box).sandbox.sandbox_name
    job = client.ansible.create_ansible_job(vm_name=name, playbook="ping.yml")
    assert job.ws_url == f"/v1/ansible/jobs/{job.job_id}/stream" and len(job.job_id) == 36

    def status(of):
        return client.ansible.get_ansible_job(of).status
    wait_for(lambda: status(job.job_id) == "finished", 120)
    assert run(box, "cat /root/by-ansible")["stdout"] == "x\n"
    got = client.ansible.get_ansible_job(job.job_id)
    assert (got.id, got.vm_name, got.playbook, got.check) == (job.job_id, name, "ping", False)
    for path in (job.ws_url, f"/ws/ansible/jobs/{job.job_id}", f"/api/v1/ansible/jobs/{job.job_id}/stream"):
        with connect(f"ws://127.0.0.1:8080{path}") as ws:
            lines = list(ws)
        assert lines[0].startswith("Running: ansible-playbook ") and lines[-1] == "\nJob finished (rc=0)" and "TASK [Say]" in " ".join(lines)
    checked = client.ansible.create_ansible_job(vm_name=name, playbook="ping", check=True).job_id
    with connect(f"ws://127.0.0.1:8080/v1/ansible/jobs/{checked}/stream") as ws:
        lines = list(ws)
    assert "--check" in lines[0] and lines[-1] == "\nJob finished (rc=0)" and status(checked) == "finished"
    fluid.ok("POST", "/holt/v1/targets", {"name": "production", "sandbox": box})
    waits = client.ansible.create_ansible_job(vm_name=name, playbook="ping.yml").job_id
    with connect(f"ws://127.0.0.1:8080/v1/ansible/jobs/{waits}/stream") as ws:
        assert ws.recv().startswith("Running:") and (asked := ws.recv(timeout=90)).startswith("Waiting for the approval ap_")
        assert status(waits) == "pending"
        person = fluid.ok("POST", "/holt/v1/tokens", {"name": "cy", "role": "operator", "person": "cy"})["token"]
        fluid.ok("POST", f"/holt/v1/approvals/{asked.split()[-1]}/deny", {"reason": "no"}, token=person)
        assert list(ws) == ["Error: no"] and status(waits) == "failed"
    for wrong, code in ((lambda: client.ansible.create_ansible_job(vm_name=name), 400), (lambda: client.ansible.create_ansible_job(vm_name=name, playbook="other.yml"), 400),
                        (lambda: client.ansible.create_ansible_job(vm_name="none", playbook="ping.yml"), 404), (lambda: client.ansible.get_ansible_job("none"), 404),
                        (lambda: client.ansible.stream_ansible_job_output(job.job_id), 400)):
        with pytest.raises(ApiException) as e:
            wrong()
        assert e.value.status == code, e.value
    fluid.ok("DELETE", "/holt/v1/targets/production")
    ok("DELETE", "/v1/ansible/playbooks/ping", status=204)


def test_a_publication_needs_a_remote(fluid, box):
    """As the original answers; with a remote: test_rollout.py."""
    from virsh_sandbox import VirshSandbox
    from virsh_sandbox.exceptions import ApiException
    client = VirshSandbox(MAIN)
    for sandbox, body, status in ((box, {"job_id": "JOB-00000000"}, 501), (box, {}, 400), ("none", {"job_id": "JOB-00000000"}, 404)):
        with pytest.raises(ApiException) as e:
            client.sandbox.publish_changes(sandbox, **body)
        assert e.value.status == status, e.value
    assert set(call("POST", f"/v1/sandboxes/{box}/publish", {"job_id": "x", "message": "m", "reviewers": ["a"]})[1]) == {"message", "note"}


# --- the command line ---


def test_its_settings_start_holtd(tmp_path):
    """The seed's config.yaml and .env, served by `virsh-sandbox --config`; no variable of another system clashes."""
    (tmp_path / ".env").write_text("LIBVIRT_URI=qemu:///session\nLIBVIRT_NETWORK=isolated\nBASE_IMAGE_DIR=/var/lib/libvirt/images/base\n"
                                   "SANDBOX_WORKDIR=/var/lib/libvirt/images/jobs\nDEFAULT_VCPUS=1\nCOMMAND_TIMEOUT_SEC=90\n")
    (tmp_path / "virsh-sandbox").symlink_to(os.path.join(BUILD, "holt"))
    config = "server:\n  listen: 127.0.0.1:8080\nvm:\n  default_memory_mb: 512\nansible:\n  allowed_playbooks: [ping.yml]\n"
    before = os.getcwd()
    with own_network():
        os.chdir(tmp_path)
        try:
            d = native(tmp_path / "d", program=str(tmp_path / "virsh-sandbox"), config=config)
        finally:
            os.chdir(before)
        try:
            status, reply, _ = call("GET", "/v1/health")
            assert (status, reply) == (200, {"status": "ok"})
            got = {s["key"]: s["value"] for s in d.ok("GET", "/holt/v1/settings")["settings"]}
            assert {"vm_uri": "qemu:///session", "vm_network": "isolated", "vm_pool_dir": "/var/lib/libvirt/images/jobs", "fluid_cpus": 1}.items() <= got.items(), got
            assert (got["fluid_memory_bytes"], got["fluid_command_timeout_ms"]) == (512 << 20, 90000), got
            log = d.log()
            assert "BASE_IMAGE_DIR" in log and "holt image" in log and "ansible.allowed_playbooks" in log
        finally:
            d.stop()


def test_the_commands_of_its_programs(fluid, tmp_path):
    """holt by the names fluid and virsh-sandbox."""
    def named(name, *words):
        link = tmp_path / name
        if not link.exists():
            link.symlink_to(os.path.join(BUILD, "holt"))
        return subprocess.run([link, *words], capture_output=True, text=True, timeout=60, env={**os.environ, "HOLT_SERVER": MAIN, "HOME": str(tmp_path)})
    up = named("virsh-sandbox", "status")
    assert (up.returncode, up.stdout) == (0, "status: ok\n"), up
    assert json.loads(named("virsh-sandbox", "status", "--json").stdout) == {"status": "ok"}
    assert named("virsh-sandbox", "hosts", "list").stdout.split()[:4] == ["NAME", "ADDRESS", "STATE", "VMS"]
    made = json.loads(named("fluid", "create", "--source-vm", "ubuntu-base", "--agent-id=cli", "--memory", "256").stdout)
    box = made["sandbox"]["id"]
    assert made["ip_address"] == "127.0.0.1" and made["sandbox"]["agent_id"] == "cli"
    assert json.loads(named("fluid", "run", box, "--user", "root", "echo", "from", "cli").stdout)["command"]["stdout"] == "from cli\n"
    assert box in [s["id"] for s in json.loads(named("fluid", "list", "--state", "RUNNING").stdout)["sandboxes"]]
    assert json.loads(named("fluid", "list", "--state=ERROR").stdout)["sandboxes"] == []
    assert json.loads(named("fluid", "snapshot", box, "--name", "a").stdout)["snapshot"]["name"] == "a"
    assert json.loads(named("fluid", "stop", box, "--force").stdout)["stopped"] is True
    assert json.loads(named("fluid", "start", box, "--wait-ip").stdout)["ip_address"] == "127.0.0.1"
    assert json.loads(named("fluid", "destroy", box).stdout)["state"] == "DESTROYED"
    gone = named("fluid", "get", box)
    assert gone.returncode == 1 and json.loads(gone.stderr) == {"error": f"sandbox not found: {box}"}
    assert "usage: fluid get ID" in named("fluid", "get").stderr
    down = subprocess.run([tmp_path / "virsh-sandbox", "status"], capture_output=True, text=True, timeout=60, env={**os.environ, "HOLT_SERVER": "http://127.0.0.1:1", "HOME": str(tmp_path)})
    assert down.returncode == 1 and "error" in json.loads(down.stderr)
    version = named("virsh-sandbox", "--version")
    assert version.returncode == 0 and "holtd" in version.stdout, version
