"""The published contract: valid by two linters, and what the daemon really serves."""
import json
import os
import shutil
import subprocess

import pytest

from conftest import NODE
from daemon import ROOT


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
