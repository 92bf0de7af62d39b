"""Templates: the description of a sandbox under a name, for create and run."""
import json
import os
import subprocess

import pytest

from daemon import BUILD, Holtd, all_events, environment, native, wait_for

BOXES, TEMPLATES = "/holt/v1/sandboxes", "/holt/v1/templates"


def refused(holtd, *request, token="admin"):
    status, reply, _ = holtd.request(*request, token=token)
    assert status >= 400, reply
    return status, reply["error"]["message"]


def test_a_create_starts_from_it_and_is_stronger(holtd):
    made = holtd.ok("POST", TEMPLATES, {"name": "small", "pids": 64, "memory_bytes": "128m", "labels": {"team": "blue"}, "idle_ttl_ms": "1h",
                                        "env": {"WORD": "otter"}, "network": "none"})
    assert made["name"] == "small" and made["pool"] == 0 and made["warnings"] == []
    assert made["fields"] == {"pids": 64, "memory_bytes": "128m", "labels": {"team": "blue"}, "idle_ttl_ms": "1h", "env": {"WORD": None},
                              "network": "none"}, "as given, without values of the environment"
    box = holtd.ok("POST", BOXES, {"template": "small", "pids": 32})
    assert (box["limits"]["pids"], box["limits"]["memory_bytes"], box["labels"], box["idle_ttl_ms"]) == (32, 128 << 20, {"team": "blue"}, 3600000)
    assert holtd.ok("POST", f"{BOXES}/{box['id']}/execs", {"command": ["sh", "-c", "echo $WORD"]})["stdout"] == "otter\n"
    ran = holtd.ok("POST", "/holt/v1/run", {"template": made["id"], "command": ["sh", "-c", "echo $WORD $MORE"], "env": {"MORE": "x"}})
    assert ran["stdout"] == "otter x\n", "what run does not take (idle_ttl_ms) is left out"
    assert [e["type"] for e in all_events(holtd) if e["object"] == f"template/{made['id']}"] == ["template.created"]
    assert not any("otter" in json.dumps(e) for e in all_events(holtd, type="template.*"))
    assert holtd.ok("GET", f"{TEMPLATES}/small") == made
    assert [t["id"] for t in holtd.ok("GET", TEMPLATES)["templates"]] == [made["id"]]
    holtd.ok("DELETE", f"{TEMPLATES}/small")
    assert refused(holtd, "POST", BOXES, {"template": "small"}) == (404, "field 'template': there is no template 'small'")
    assert holtd.ok("GET", f"{BOXES}/{box['id']}")["state"] == "running", "what it made stays"
    holtd.ok("DELETE", f"{BOXES}/{box['id']}")


def test_what_is_wrong_is_said_when_it_is_made(holtd):
    for body, why in (({"name": "x", "pids": 1}, "pids"), ({"name": "x", "nosuch": 1}, "nosuch"), ({"name": "a/b"}, "name"), ({}, "name"),
                      ({"name": "x", "pool": 1000}, "pool")):
        status, text = refused(holtd, "POST", TEMPLATES, body)
        assert status == 400 and why in text, text
    holtd.ok("POST", TEMPLATES, {"name": "twice"})
    assert refused(holtd, "POST", TEMPLATES, {"name": "twice"})[0] == 409
    holtd.ok("DELETE", f"{TEMPLATES}/twice")
    assert refused(holtd, "GET", f"{TEMPLATES}/twice")[0] == 404


def test_whose_it_is(holtd):
    agent, other = (holtd.ok("POST", "/holt/v1/tokens", {"name": n, "role": "agent", "agent": n})["token"] for n in ("tp-one", "tp-two"))
    holtd.ok("POST", TEMPLATES, {"name": "own", "pids": 50}, token=agent)
    assert refused(holtd, "POST", BOXES, {"template": "own"}, token=other)[0] == 404
    assert refused(holtd, "GET", f"{TEMPLATES}/own", token=other)[0] == 404
    assert holtd.ok("GET", TEMPLATES, token=other)["templates"] == []
    assert refused(holtd, "POST", TEMPLATES, {"name": "mine", "shared": True}, token=agent)[0] == 403
    assert refused(holtd, "POST", TEMPLATES, {"name": "mine", "pool": 1}, token=agent)[0] == 403
    shared = holtd.ok("POST", TEMPLATES, {"name": "house", "pids": 77, "shared": True})
    box = holtd.ok("POST", BOXES, {"template": "house"}, token=other)
    assert box["limits"]["pids"] == 77
    assert refused(holtd, "DELETE", f"{TEMPLATES}/{shared['id']}", token=other)[0] == 403
    holtd.ok("DELETE", f"{BOXES}/{box['id']}")
    holtd.ok("DELETE", f"{TEMPLATES}/house")
    holtd.ok("DELETE", f"{TEMPLATES}/own", token=agent)


def test_a_network_that_the_request_names_is_all_of_it(holtd):
    """Checked where it is merged: the fake runtime has no network, so its refusal shows whose rules arrived."""
    holtd.ok("POST", TEMPLATES, {"name": "net", "network": "allowlist", "allow": ["a.example"]})
    assert "network" in refused(holtd, "POST", BOXES, {"template": "net"})[1]
    box = holtd.ok("POST", BOXES, {"template": "net", "network": "none"})
    assert box["network"]["mode"] == "none" and not box["network"].get("allow")
    holtd.ok("DELETE", f"{BOXES}/{box['id']}")
    holtd.ok("DELETE", f"{TEMPLATES}/net")


def test_it_outlives_the_daemon(new_holtd):
    d = new_holtd(name="same")
    d.ok("POST", TEMPLATES, {"name": "kept", "pids": 99})
    d.stop()
    d = new_holtd(name="same")
    assert d.ok("POST", BOXES, {"template": "kept"})["limits"]["pids"] == 99


def test_its_pool(tmp_path):
    """Native sandboxes are made ahead for it; a runtime that makes none says so."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    d = native(tmp_path, "--pool-size", "0")
    try:
        assert metric(d) == 0
        made = d.ok("POST", TEMPLATES, {"name": "ready", "runtime": "native", "pool": 2})
        assert made["warnings"] == []
        wait_for(lambda: metric(d) == 2)
        made = d.ok("POST", TEMPLATES, {"name": "cold", "runtime": "runc", "pool": 2})
        assert made["warnings"] == ["runtime 'runc' makes no sandboxes ahead: none are kept ready"]
        d.ok("DELETE", f"{TEMPLATES}/ready")
        wait_for(lambda: metric(d) == 0)
    finally:
        d.stop()


def metric(d):
    text = d.request("GET", "/metrics")[1]
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith("holt_pool_size{") and 'runtime="native"' in line)


def test_the_command_line(holtd, tmp_path):
    def holt(*args):
        env = environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token, "HOME": str(tmp_path)})
        return subprocess.run([f"{BUILD}/holt", *args], capture_output=True, text=True, timeout=60, env=env, check=False)

    r = holt("template", "create", "cli", "--pids", "55", "--env", "A=b", "--labels", "x=y")
    assert r.returncode == 0, r.stderr
    assert "cli" in holt("template", "ls").stdout
    assert json.loads(holt("template", "inspect", "cli", "-o", "json").stdout)["fields"]["pids"] == 55
    r = holt("run", "--template", "cli", "--", "sh", "-c", "echo $A")
    assert (r.returncode, r.stdout) == (0, "b\n"), r.stderr
    r = holt("create", "--template", "cli", "-o", "json")
    assert json.loads(r.stdout)["labels"] == {"x": "y"}, r.stderr
    assert holt("rm", json.loads(r.stdout)["id"]).returncode == 0
    assert holt("template", "rm", "cli").returncode == 0
    r = holt("create", "--template", "cli")
    assert r.returncode != 0 and "there is no template 'cli'" in r.stderr


def test_a_runtime_that_is_not_there(tmp_path):
    """A template of a runtime that is not there is an error of the create, which names it."""
    d = Holtd(tmp_path)
    try:
        d.ok("POST", TEMPLATES, {"name": "gone", "runtime": "nosuch"})
        assert "there is no runtime 'nosuch'" in refused(d, "POST", BOXES, {"template": "gone"})[1]
    finally:
        d.stop()
