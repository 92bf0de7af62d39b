"""The published contract: valid by two linters, and what the daemon really serves."""
import json
import os
import shutil
import subprocess

import pytest

from conftest import NODE
from daemon import BUILD, ROOT


@pytest.fixture(scope="module")
def document(holtd):
    return holtd.ok("GET", "/holt/v1/openapi.json", token=None)


def test_it_is_the_checked_in_one(document):
    with open(f"{ROOT}/api/openapi.json", encoding="utf-8") as f:
        assert json.load(f) == document


def test_openapi_spec_validator(document):
    from openapi_spec_validator import validate
    assert document["openapi"].startswith("3.1")
    validate(document)


def test_redocly(tmp_path, document):
    if not shutil.which("node") or not os.path.isdir(f"{NODE}/node_modules/@redocly/cli"):
        pytest.skip("node or @redocly/cli is not installed: make deps")
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    r = subprocess.run(
        ["node", f"{NODE}/node_modules/@redocly/cli/bin/cli.js", "lint", "--extends=spec", "openapi.json"], cwd=tmp_path,
        capture_output=True, text=True, timeout=80, stdin=subprocess.DEVNULL,
        env={**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"})
    assert r.returncode == 0, r.stdout + r.stderr


def operations(document):
    for path, item in document["paths"].items():
        for method, op in item.items():
            if method in ("get", "post", "put", "patch", "delete"):
                yield method.upper(), path, op


def test_every_operation_is_served(holtd, document):
    """Each answers, by something else than 404 for its path or 405."""
    seen = 0
    for method, path, op in operations(document):
        real = path.replace("{id}", "tk_00000000000000000000")
        body = {"image": ""} if path.endswith("/sandboxes") else {}  # refused: none is made here
        status, reply, _ = holtd.request(method, real, body if method in ("POST", "PUT", "PATCH") else None,
                                         headers={"Accept": "application/json"})
        seen += 1
        assert status not in (405, 501), (method, path)
        if status == 404:
            assert "{" in path, (method, path, reply)
        assert str(status) in op["responses"] or "default" in op["responses"], (method, path, status)
    assert seen >= 8


def test_every_role_gets_what_the_document_says(holtd, document):
    """Without a token only what names no security answers."""
    for method, path, op in operations(document):
        if op.get("security") == [] or "security" not in op and not document.get("security"):
            continue
        real = path.replace("{id}", "tk_00000000000000000000")
        status, reply, _ = holtd.request(method, real, {} if method in ("POST", "PUT", "PATCH") else None, token=None)
        assert status == 401, (method, path, status, reply)


def properties(document):
    for name, schema in document["components"]["schemas"].items():
        for key, p in schema.get("properties", {}).items():
            yield f"{name}.{key}", p


def test_every_property_has_a_type(document):
    untyped = [n for n, p in properties(document) if not {"type", "$ref", "oneOf", "anyOf", "enum"} & set(p)]
    assert not untyped


def test_null_is_what_the_document_says(holtd, document):
    """An absent field and null are the same; the document says so of each that is not required."""
    schema = document["components"]["schemas"]["SandboxCreateInput"]
    given = {k: None for k in schema["properties"] if k not in schema["required"]}
    for key in given:
        p = schema["properties"][key]
        assert "null" in p.get("type", []) or {"type": "null"} in p.get("oneOf", []), key
    made = holtd.ok("POST", "/holt/v1/sandboxes", given)
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{made['id']}")


def test_a_whole_number_may_have_a_point(holtd):
    status, made, _ = holtd.request("POST", "/holt/v1/sandboxes", b'{"pids": 2240.0}')
    assert status == 201 and made["limits"]["pids"] == 2240
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{made['id']}")
    status, reply, _ = holtd.request("POST", "/holt/v1/sandboxes", b'{"pids": 2240.5}')
    assert status == 400 and "pids" in reply["error"]["message"]


def required_of(document, name):
    return set(document["components"]["schemas"][name]["required"])


def test_replies_have_what_they_must(holtd, document):
    agent = holtd.ok("POST", "/holt/v1/agents", {"name": "typed"})
    assert required_of(document, "NewAgent") <= set(agent)
    pending = holtd.ok("GET", "/holt/v1/agents/typed/revocation")
    assert required_of(document, "PendingRevocation") <= set(pending)
    holtd.ok("DELETE", "/holt/v1/agents/typed")


def test_limits_that_cannot_be_enforced_are_said_or_refused(holtd):
    """The fake runtime enforces nothing."""
    made = holtd.ok("POST", "/holt/v1/sandboxes", {"memory_bytes": "64m"})
    assert "memory_bytes" in made["unenforced"]
    assert any(w.startswith("memory_bytes is not enforced") for w in made["warnings"]), made
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{made['id']}")
    status, reply, _ = holtd.request("POST", "/holt/v1/sandboxes", {"memory_bytes": "64m", "require_limits": True})
    assert status == 501 and "memory_bytes" in reply["error"]["message"], reply
    assert not [s for s in holtd.ok("GET", "/holt/v1/sandboxes")["sandboxes"] if s["state"] == "running"]


def test_a_setting_demands_limits_of_all(new_holtd):
    d = new_holtd("--require-limits")
    assert d.request("POST", "/holt/v1/sandboxes", {"memory_bytes": "64m"})[0] == 501
    made = d.ok("POST", "/holt/v1/sandboxes", {})
    d.ok("DELETE", f"/holt/v1/sandboxes/{made['id']}")


def test_the_command_line_warns(holtd, tmp_path):
    env = {**os.environ, "HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token, "HOME": str(tmp_path)}
    r = subprocess.run([f"{BUILD}/holt", "create", "--memory-bytes", "64m"], env=env, capture_output=True, text=True, timeout=60)
    assert r.returncode == 0 and r.stderr == "holt: warning: this host cannot enforce --memory; `holt doctor` says what it needs\n", "once"
    for s in holtd.ok("GET", "/holt/v1/sandboxes")["sandboxes"]:
        holtd.ok("DELETE", f"/holt/v1/sandboxes/{s['id']}")
