"""fluid.sh's HTTP interface, with its own clients from PyPI and raw: on 8080 and 8081, where nobody needs a token."""
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from daemon import native, wait_for
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
    status, reply, _ = fluid.request("GET", "/v1/sandboxes", token=None)
    assert status == 401 and reply["code"] == 401 and "error" in reply
