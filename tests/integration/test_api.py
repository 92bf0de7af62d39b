"""The native API from outside: who may what, refusals, throttling, idempotency, sessions, streams that end."""
import concurrent.futures
import http.client
import json
import re
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from daemon import all_events, wait_for
from raw import Raw

ROLES = ["none", "observer", "agent", "operator", "admin"]
# Written out by hand, so that a change of the operations table must be made here as well, on purpose.
MAY = {
    "GET /holt/v1/info": "observer operator admin",
    "GET /holt/v1/settings": "observer operator admin",
    "GET /healthz": "none observer agent operator admin",
    "GET /readyz": "none observer agent operator admin",
    "GET /metrics": "observer operator admin",
    "GET /holt/v1/openapi.json": "none observer agent operator admin",
    "POST /holt/v1/tokens": "admin",
    "GET /holt/v1/tokens": "admin",
    "GET /holt/v1/tokens/{id}": "admin",
    "DELETE /holt/v1/tokens/{id}": "admin",
    "GET /holt/v1/tokens/self": "observer agent operator admin",
    "GET /holt/v1/events": "observer operator admin",
    "GET /holt/v1/audit": "operator admin",
    "GET /holt/v1/audit/verify": "operator admin",
    "POST /holt/v1/login": "none observer agent operator admin",
    "POST /holt/v1/login/code": "observer operator admin",
    "GET /holt/v1/login/oidc": "none observer agent operator admin",
    "GET /holt/v1/login/oidc/callback": "none observer agent operator admin",
    "POST /holt/v1/logout": "observer agent operator admin",
    # An agent: only what it made (test_sandbox_api.py).
    "GET /holt/v1/sandboxes": "observer agent operator admin",
    "POST /holt/v1/sandboxes": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}": "observer agent operator admin",
    "PATCH /holt/v1/sandboxes/{id}": "agent operator admin",
    "DELETE /holt/v1/sandboxes/{id}": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/start": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/stop": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/restart": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/pause": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/resume": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/reprovision": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/stats": "observer agent operator admin",
    "GET /holt/v1/stats": "observer agent operator admin",
    "GET /holt/v1/sandboxes/{id}/logs": "agent operator admin",
    "POST /holt/v1/run": "agent operator admin",
    "GET /holt/v1/run": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/execs": "observer agent operator admin",
    "POST /holt/v1/sandboxes/{id}/execs": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/execs/{exec}": "observer agent operator admin",
    "GET /holt/v1/sandboxes/{id}/execs/{exec}/output": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/execs/{exec}/attach": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/execs/{exec}/signal": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/execs/{exec}/stdin": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/execs/{exec}/resize": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/execs/{exec}/cancel": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/execs/{exec}/wait": "observer agent operator admin",
    "GET /holt/v1/sandboxes/{id}/files": "agent operator admin",
    "PUT /holt/v1/sandboxes/{id}/files": "agent operator admin",
    "DELETE /holt/v1/sandboxes/{id}/files": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/files/list": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/files/mkdir": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/files/move": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/files/watch": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/archive": "agent operator admin",
    "PUT /holt/v1/sandboxes/{id}/archive": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/ports/{port}": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/previews": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/execs/{exec}/screen": "agent operator admin",
    "GET /holt/v1/sessions": "observer agent operator admin",
    "POST /holt/v1/sandboxes/{id}/sessions": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/sessions": "observer agent operator admin",
    "GET /holt/v1/sandboxes/{id}/sessions/{session}": "observer agent operator admin",
    "GET /holt/v1/sandboxes/{id}/sessions/{session}/members": "observer agent operator admin",
    "GET /holt/v1/sandboxes/{id}/sessions/{session}/screen": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/sessions/{session}/send": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/sessions/{session}/resize": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/sessions/{session}/kill": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/sessions/{session}/attach": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/sessions/{session}/recording": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/sessions/{session}/search": "agent operator admin",
    "GET /holt/v1/access/ca": "observer agent operator admin",
    "GET /holt/v1/access/krl": "none observer agent operator admin",
    "POST /holt/v1/access/certificates": "agent operator admin",
    "GET /holt/v1/access/certificates": "observer agent operator admin",
    "GET /holt/v1/access/certificates/{id}": "observer agent operator admin",
    "DELETE /holt/v1/access/certificates/{id}": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/ssh": "agent operator admin",
    "DELETE /holt/v1/sandboxes/{id}/ssh": "agent operator admin",
    "GET /holt/v1/access/sessions": "observer agent operator admin",
    "GET /holt/v1/targets": "observer agent operator admin",
    "POST /holt/v1/targets": "operator admin",
    "GET /holt/v1/targets/{id}": "observer agent operator admin",
    "DELETE /holt/v1/targets/{id}": "operator admin",
    "GET /holt/v1/playbooks": "observer agent operator admin",
    "POST /holt/v1/playbooks": "agent operator admin",
    "POST /holt/v1/playbooks/generate": "agent operator admin",
    "GET /holt/v1/playbooks/{id}": "agent operator admin",
    "DELETE /holt/v1/playbooks/{id}": "agent operator admin",
    "GET /holt/v1/playbooks/{id}/export": "agent operator admin",
    "POST /holt/v1/playbooks/{id}/tasks": "agent operator admin",
    "PATCH /holt/v1/playbooks/{id}/tasks/{task}": "agent operator admin",
    "DELETE /holt/v1/playbooks/{id}/tasks/{task}": "agent operator admin",
    "PUT /holt/v1/playbooks/{id}/order": "agent operator admin",
    "POST /holt/v1/playbooks/{id}/apply": "agent operator admin",
    "POST /holt/v1/playbooks/{id}/publish": "agent operator admin",
    "GET /holt/v1/rollouts": "observer agent operator admin",
    "GET /holt/v1/rollouts/{id}": "agent operator admin",
    "GET /holt/v1/rollouts/{id}/logs": "agent operator admin",
    "POST /holt/v1/rollouts/{id}/cancel": "agent operator admin",
    "POST /holt/v1/rollouts/{id}/rollback": "operator admin",
    "POST /holt/v1/targets/{id}/check": "agent operator admin",
    "GET /holt/v1/builds": "observer agent operator admin",
    "GET /holt/v1/builds/{id}": "observer agent operator admin",
    "GET /holt/v1/builds/{id}/log": "agent operator admin",
    "POST /holt/v1/builds/{id}/cancel": "operator admin",
    "POST /holt/v1/images/build": "operator admin",
    "GET /holt/v1/loadouts": "observer agent operator admin",
    "GET /holt/v1/loadouts/{name}": "observer agent operator admin",
    "POST /holt/v1/loadouts/resolve": "observer agent operator admin",
    "POST /holt/v1/loadouts/build": "operator admin",
    "GET /holt/v1/usage": "observer agent operator admin",
    "POST /holt/v1/sandboxes/{id}/loadout": "operator admin",
    "GET /holt/v1/loadout-registry": "observer agent operator admin",
    "GET /holt/v1/templates": "observer agent operator admin",
    "POST /holt/v1/templates": "agent operator admin",
    "GET /holt/v1/templates/{id}": "observer agent operator admin",
    "DELETE /holt/v1/templates/{id}": "agent operator admin",
    "GET /holt/v1/volumes": "observer agent operator admin",
    "POST /holt/v1/volumes": "agent operator admin",
    "GET /holt/v1/volumes/{id}": "observer agent operator admin",
    "PATCH /holt/v1/volumes/{id}": "agent operator admin",
    "DELETE /holt/v1/volumes/{id}": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/crashes": "observer agent operator admin",
    "POST /holt/v1/sandboxes/{id}/crash-reset": "agent operator admin",
    "GET /holt/v1/quotas": "observer agent operator admin",
    "GET /holt/v1/remotes": "observer agent operator admin",
    "GET /holt/v1/remote-secrets": "observer operator admin",
    "POST /holt/v1/remote-secrets": "operator admin",
    "POST /holt/v1/remote-secrets/{agent}/rotate": "operator admin",
    "DELETE /holt/v1/remote-secrets/{agent}": "operator admin",
    "GET /holt/v1/secrets": "observer operator admin",
    "POST /holt/v1/secrets": "operator admin",
    "GET /holt/v1/secrets/{name}": "observer operator admin",
    "PUT /holt/v1/secrets/{name}": "operator admin",
    "DELETE /holt/v1/secrets/{name}": "operator admin",
    "GET /holt/v1/ca": "observer operator admin",
    "GET /holt/v1/rules": "observer operator admin",
    "DELETE /holt/v1/rules/{id}": "operator admin",
    "GET /holt/v1/images": "observer agent operator admin",
    "GET /holt/v1/images/{id}": "observer agent operator admin",
    "POST /holt/v1/images/pull": "operator admin",
    "POST /holt/v1/images/import": "operator admin",
    "POST /holt/v1/sandboxes/{id}/commit": "operator admin",
    "DELETE /holt/v1/images/{id}": "operator admin",
    "GET /holt/v1/sandboxes/{id}/ports/{port}/{path}": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/ports/{port}/{path}": "agent operator admin",
    "PUT /holt/v1/sandboxes/{id}/ports/{port}/{path}": "agent operator admin",
    "PATCH /holt/v1/sandboxes/{id}/ports/{port}/{path}": "agent operator admin",
    "DELETE /holt/v1/sandboxes/{id}/ports/{port}/{path}": "agent operator admin",
    "GET /holt/v1/hosts": "observer operator admin",
    "GET /holt/v1/hosts/{name}": "observer operator admin",
    "POST /holt/v1/hosts/{name}/drain": "admin",
    "POST /holt/v1/prune": "admin",
    "GET /holt/v1/df": "observer operator admin",
    "POST /holt/v1/policies": "operator admin",
    "GET /holt/v1/policies": "observer agent operator admin",
    "GET /holt/v1/policies/{id}": "observer agent operator admin",
    "PATCH /holt/v1/policies/{id}": "operator admin",
    "DELETE /holt/v1/policies/{id}": "operator admin",
    "POST /holt/v1/task-runs": "agent operator admin",
    "GET /holt/v1/task-runs": "observer agent operator admin",
    "GET /holt/v1/task-runs/{id}": "observer agent operator admin",
    "POST /holt/v1/task-runs/{id}/cancel": "agent operator admin",
    "POST /holt/v1/task-runs/{id}/retry": "agent operator admin",
    "GET /holt/v1/task-runs/{id}/logs": "agent operator admin",
    "GET /holt/v1/task-runs/{id}/artifacts": "observer agent operator admin",
    "GET /holt/v1/task-runs/{id}/artifacts/{path}": "agent operator admin",
    "POST /holt/v1/task-schedules": "agent operator admin",
    "GET /holt/v1/task-schedules": "observer agent operator admin",
    "DELETE /holt/v1/task-schedules/{id}": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/snapshots": "agent operator admin",
    "GET /holt/v1/snapshots": "observer agent operator admin",
    "GET /holt/v1/diff": "agent operator admin",
    "GET /holt/v1/export": "agent operator admin",
    "POST /holt/v1/forks/{id}/apply": "agent operator admin",
    "GET /holt/v1/sandboxes/{id}/diff": "agent operator admin",
    "GET /holt/v1/snapshots/{id}": "observer agent operator admin",
    "DELETE /holt/v1/snapshots/{id}": "agent operator admin",
    "POST /holt/v1/sandboxes/{id}/restore": "agent operator admin",
    "POST /holt/v1/forks": "agent operator admin",
    "POST /holt/v1/forks/{id}/keep": "agent operator admin",
    # The team; an agent: as itself (test_team_api.py).
    "POST /holt/v1/agents": "agent operator admin",
    "GET /holt/v1/agents": "observer agent operator admin",
    "GET /holt/v1/agents/{name}": "observer agent operator admin",
    "PATCH /holt/v1/agents/{name}": "agent operator admin",
    "DELETE /holt/v1/agents/{name}": "agent operator admin",
    "POST /holt/v1/agents/{name}/heartbeat": "agent operator admin",
    "PUT /holt/v1/autonomy": "operator admin",
    "POST /holt/v1/agents/{name}/checkpoints": "agent operator admin",
    "GET /holt/v1/agents/{name}/checkpoints": "observer agent operator admin",
    "POST /holt/v1/agents/{name}/pause": "operator admin",
    "POST /holt/v1/agents/{name}/resume": "operator admin",
    "POST /holt/v1/agents/{name}/revoke": "operator admin",
    "GET /holt/v1/agents/{name}/revocation": "observer agent operator admin",
    "POST /holt/v1/agents/{name}/revocation/ack": "agent operator admin",
    "GET /holt/v1/revocations": "observer agent operator admin",
    "POST /holt/v1/messages": "agent operator admin",
    "GET /holt/v1/messages": "observer agent operator admin",
    "POST /holt/v1/messages/{id}/ack": "agent operator admin",
    "GET /holt/v1/messages/history": "observer agent operator admin",
    "GET /holt/v1/messages/graph": "observer agent operator admin",
    "POST /holt/v1/approvals": "agent operator admin",
    "POST /holt/v1/approvals/{id}/answer": "operator admin",
    "POST /holt/v1/approvals/answers": "operator admin",
    "POST /holt/v1/approvals/{id}/cancel": "agent operator admin",
    "GET /holt/v1/approvals/{id}/events": "observer agent operator admin",
    "POST /holt/v1/webhooks": "admin",
    "GET /holt/v1/webhooks": "admin",
    "DELETE /holt/v1/webhooks/{id}": "admin",
    "POST /holt/v1/webhooks/{id}/test": "admin",
    "GET /holt/v1/webhooks/{id}/deliveries": "admin",
    "POST /holt/v1/gates": "operator admin",
    "GET /holt/v1/gates": "observer operator admin",
    "DELETE /holt/v1/gates/{id}": "operator admin",
    "GET /holt/v1/grants": "observer agent operator admin",
    "DELETE /holt/v1/grants/{id}": "operator admin",
    "GET /holt/v1/approvals": "observer agent operator admin",
    "GET /holt/v1/approvals/{id}": "observer agent operator admin",
    "POST /holt/v1/approvals/{id}/approve": "operator admin",
    "POST /holt/v1/approvals/{id}/deny": "operator admin",
    "POST /holt/v1/projects": "agent operator admin",
    "GET /holt/v1/projects": "observer agent operator admin",
    "GET /holt/v1/projects/{id}": "observer agent operator admin",
    "DELETE /holt/v1/projects/{id}": "agent operator admin",
    "POST /holt/v1/projects/{id}/members": "agent operator admin",
    "PUT /holt/v1/projects/{id}/limits": "agent operator admin",
    "GET /holt/v1/projects/{id}/metrics": "observer agent operator admin",
    "GET /holt/v1/projects/{id}/files": "agent operator admin",
    "PUT /holt/v1/projects/{id}/files": "agent operator admin",
    "DELETE /holt/v1/projects/{id}/files": "agent operator admin",
    "GET /holt/v1/projects/{id}/files/list": "observer agent operator admin",
    "POST /holt/v1/tasks": "agent operator admin",
    "GET /holt/v1/tasks": "observer agent operator admin",
    "GET /holt/v1/tasks/{id}": "observer agent operator admin",
    "GET /holt/v1/tasks/{id}/history": "observer agent operator admin",
    "GET /holt/v1/projects/{project}/ready": "observer agent operator admin",
    "POST /holt/v1/tasks/{id}/claim": "agent operator admin",
    "POST /holt/v1/tasks/{id}/assign": "agent operator admin",
    "POST /holt/v1/tasks/{id}/unassign": "agent operator admin",
    "POST /holt/v1/tasks/{id}/move": "agent operator admin",
    "POST /holt/v1/tasks/{id}/reviewers": "agent operator admin",
}
BODIES = {"POST /holt/v1/tokens": {"name": "made"}, "POST /holt/v1/login": {"code": "wrong"}, "POST /holt/v1/login/code": {},
          "POST /holt/v1/sandboxes": {"image": ""}}  # refused: none is made here


@pytest.fixture(scope="module")
def tokens(holtd):
    made = {r: holtd.new_token(r, r)["token"] for r in ("observer", "operator", "admin")}
    made["agent"] = holtd.ok("POST", "/holt/v1/tokens", {"name": "a", "role": "agent", "agent": "a1"})["token"]
    return {**made, "none": None}


def test_the_matrix_names_every_operation(holtd):
    paths = holtd.ok("GET", "/holt/v1/openapi.json")["paths"]
    served = {f"{m.upper()} {p}" for p, ops in paths.items() for m in ops if m in ("get", "post", "put", "patch", "delete")}
    assert served == set(MAY)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("operation", MAY)
def test_every_role(holtd, tokens, operation, role):
    method, path = operation.split(" ")
    status, reply, headers = holtd.request(method, path.replace("{id}", "tk_none").replace("{port}", "80").replace("{name}", "a1"), BODIES.get(operation), token=tokens[role])
    if role in MAY[operation].split():
        if operation == "POST /holt/v1/login":  # the code is wrong, whoever asks
            assert status == 401 and "login code" in reply["error"]["message"] or status == 429
        else:
            assert status not in (401, 403), reply
    elif role == "none":
        assert status == 401 and reply["error"]["code"] == "unauthenticated"
        assert headers["www-authenticate"].startswith("Bearer")
    else:
        assert status == 403 and reply["error"]["code"] == "forbidden"
        assert role in reply["error"]["message"]


def test_audit_rows_of_the_event_list_need_more(holtd, tokens):
    assert holtd.request("GET", "/holt/v1/events?audit=true", token=tokens["observer"])[0] == 403
    assert holtd.request("GET", "/holt/v1/events?audit=true", token=tokens["operator"])[0] == 200
    assert not any(e["audit"] for e in all_events(holtd))


def test_a_refusal_is_an_audit_row(new_holtd):
    d = new_holtd()
    observer = d.new_token("o", "observer")
    d.request("POST", "/holt/v1/tokens", {"name": "x"}, token=observer["token"])
    d.request("GET", "/holt/v1/info", token=None)
    rows = wait_for(lambda: (r := d.ok("GET", "/holt/v1/audit?type=request.refused")["events"]) and len(r) == 2 and r)
    assert rows[0]["object"] == "operation/token.create" and rows[0]["actor"] == f"token/{observer['id']}"
    assert rows[0]["data"] == {"method": "POST", "path": "/holt/v1/tokens", "peer": "127.0.0.1", "code": 403}
    assert rows[1]["actor"] == "anonymous" and rows[1]["data"]["code"] == 401
    wait_for(lambda: d.ok("GET", "/holt/v1/audit?type=request.read")["events"])  # reading the audit is a row too
    assert d.ok("GET", "/holt/v1/audit/verify")["ok"]


def test_failed_logins_are_throttled_and_a_good_token_is_not(new_holtd):
    d = new_holtd(config="login_failures: 3\nlogin_window_ms: 8s\n")
    for _ in range(3):
        assert d.request("GET", "/holt/v1/info", token="holt_wrong")[0] == 401
    status, reply, headers = d.request("GET", "/holt/v1/info", token="holt_wrong")
    assert status == 429 and reply["error"]["code"] == "limit"
    assert headers.get_all("retry-after") in [[str(n)] for n in range(1, 10)]
    assert d.request("POST", "/holt/v1/login", {"code": "x"}, token=None)[0] == 429
    assert d.request("GET", "/holt/v1/info")[0] == 200
    assert d.request("GET", "/healthz", token="holt_wrong")[0] == 200
    wait_for(lambda: d.request("GET", "/holt/v1/info", token="holt_wrong")[0] == 401, 60, 0.2)


@pytest.mark.parametrize("query", ["token=x", "access_token=x", "limit=1&token=x"])
def test_a_token_in_the_url_is_refused(holtd, query):
    status, reply, _ = holtd.request("GET", f"/holt/v1/events?{query}")
    assert status == 400 and "Authorization" in reply["error"]["hint"]


def test_host_and_origin(holtd):
    assert holtd.request("GET", "/healthz", headers={"Host": "evil.example"})[0] == 403
    assert holtd.request("GET", "/healthz", headers={"Host": f"localhost:{holtd.port}"})[0] == 200
    evil = {"Origin": "https://evil.example"}
    assert holtd.request("POST", "/holt/v1/tokens", {"name": "x"}, headers=evil)[0] == 403
    assert holtd.request("POST", "/holt/v1/login", {"code": "x"}, token=None, headers=evil)[0] == 403
    own = {"Origin": holtd.url}
    assert holtd.request("POST", "/holt/v1/tokens", {"name": "x"}, headers=own)[0] == 201


def test_a_form_cannot_post_json(holtd):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        status, reply, _ = holtd.request("POST", "/holt/v1/tokens", b'{"name":"x"}', headers={"Content-Type": kind})
        assert status == 415 and "application/json" in reply["error"]["hint"]


# --- idempotency ---

def test_a_key_creates_once(holtd):
    key = {"Idempotency-Key": "once-1"}
    body = {"name": "once", "role": "observer"}
    first = holtd.ok("POST", "/holt/v1/tokens", body, headers=key)
    status, reply, _ = holtd.request("POST", "/holt/v1/tokens", body, headers=key)
    assert status == 409 and reply["error"]["object"] == f"token/{first['id']}"
    assert first["token"] not in json.dumps(reply)
    status, reply, _ = holtd.request("POST", "/holt/v1/tokens", {**body, "name": "other"}, headers=key)
    assert status == 409 and "another request" in reply["error"]["message"]
    names = [t["name"] for t in holtd.ok("GET", "/holt/v1/tokens?limit=1000")["tokens"]]
    assert names.count("once") == 1 and "other" not in names


def test_a_key_belongs_to_who_sent_it(holtd, tokens):
    key = {"Idempotency-Key": "mine"}
    assert holtd.request("POST", "/holt/v1/tokens", {"name": "m"}, headers=key)[0] == 201
    assert holtd.request("POST", "/holt/v1/tokens", {"name": "m"}, token=tokens["admin"], headers=key)[0] == 201


def test_a_failed_request_leaves_the_key_free(holtd):
    key = {"Idempotency-Key": "second-try"}
    assert holtd.request("POST", "/holt/v1/tokens", {"name": "x", "role": "agent"}, headers=key)[0] == 400
    assert holtd.request("POST", "/holt/v1/tokens", {"name": "x"}, headers=key)[0] == 201


def test_the_same_key_at_once_creates_once(holtd):
    def create(_):
        return holtd.request("POST", "/holt/v1/tokens", {"name": "race"}, headers={"Idempotency-Key": "race"})[0]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(create, range(24)))
    assert statuses.count(201) == 1 and set(statuses) == {201, 409}
    names = [t["name"] for t in holtd.ok("GET", "/holt/v1/tokens?limit=1000")["tokens"]]
    assert names.count("race") == 1


def test_a_key_survives_a_crash(new_holtd):
    d = new_holtd(name="same")
    key = {"Idempotency-Key": "k"}
    assert d.request("POST", "/holt/v1/tokens", {"name": "x"}, headers=key)[0] == 201
    d.kill()
    d = new_holtd(name="same")
    assert d.request("POST", "/holt/v1/tokens", {"name": "x"}, headers=key)[0] == 409


@pytest.mark.parametrize("key", ["", "k" * 129, "a b"])
def test_a_bad_key_is_refused(holtd, key):
    status, reply, _ = holtd.request("POST", "/holt/v1/tokens", {"name": "x"}, headers={"Idempotency-Key": key})
    assert status == 400 and "Idempotency-Key" in reply["error"]["message"]


# --- tokens ---

def test_a_revoked_token_is_dead_at_once(holtd):
    t = holtd.new_token("short", "observer")
    assert holtd.request("GET", "/holt/v1/info", token=t["token"])[0] == 200
    assert holtd.request("DELETE", f"/holt/v1/tokens/{t['id']}")[0] == 204
    assert holtd.request("GET", "/holt/v1/info", token=t["token"])[0] == 401
    assert holtd.request("DELETE", f"/holt/v1/tokens/{t['id']}")[0] == 404


def test_a_token_revoked_before_its_body_came_is_refused(holtd):
    t = holtd.new_token("slow", "admin")
    with Raw(holtd.port) as c:
        c.send(f"POST /holt/v1/tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {t['token']}\r\n"
               "Content-Type: application/json\r\nContent-Length: 12\r\n\r\n")
        time.sleep(0.2)
        assert holtd.request("DELETE", f"/holt/v1/tokens/{t['id']}")[0] == 204
        c.send('{"name":"x"}')
        assert c.read().status == 401


def test_the_last_admin_token_stays(new_holtd):
    d = new_holtd()
    own = d.ok("GET", "/holt/v1/tokens/self")["id"]
    status, reply, _ = d.request("DELETE", f"/holt/v1/tokens/{own}")
    assert status == 409 and reply["error"]["object"] == f"token/{own}"


def test_a_token_expires(holtd):
    t = holtd.ok("POST", "/holt/v1/tokens", {"name": "brief", "ttl_ms": 5000})
    assert holtd.request("GET", "/holt/v1/info", token=t["token"])[0] == 200
    wait_for(lambda: holtd.request("GET", "/holt/v1/info", token=t["token"])[0] == 401, 60, 0.1)


def test_pages_of_tokens(new_holtd):
    d = new_holtd()
    made = {d.new_token(f"t{i}")["id"] for i in range(25)}
    seen, cursor = [], ""
    while True:
        page = d.ok("GET", f"/holt/v1/tokens?limit=10{cursor}")
        seen += [t["id"] for t in page["tokens"]]
        if not page["cursor"]:
            break
        cursor = f"&cursor={page['cursor']}"
    assert seen == sorted(seen) and len(seen) == 26 and made < set(seen)


# --- sessions ---

def _cookie(headers):
    c = headers["set-cookie"]
    assert "HttpOnly" in c and "SameSite=Strict" in c and "Path=/" in c
    return {"Cookie": c.split(";")[0]}


def log_in(d, **auth):
    """A cookie's header: of a session that comes from whoever asks."""
    code = d.ok("POST", "/holt/v1/login/code", {}, **auth)["code"]
    status, _, headers = d.request("POST", "/holt/v1/login", {"code": code}, token=None)
    assert status == 200
    return {"Cookie": headers["set-cookie"].split(";")[0]}


def test_what_came_from_a_token_dies_with_it(holtd):
    """Sessions, sessions of sessions, codes, and streams that are open: at once."""
    made = holtd.ok("POST", "/holt/v1/tokens", {"name": "root", "role": "operator"})
    first = log_in(holtd, token=made["token"])
    second = log_in(holtd, token=None, headers=first)
    code = holtd.ok("POST", "/holt/v1/login/code", {}, token=None, headers=second)["code"]
    with connect(holtd.url.replace("http", "ws", 1) + "/holt/v1/events?follow=true", additional_headers=second) as stream:
        holtd.ok("DELETE", f"/holt/v1/tokens/{made['id']}")
        for cookie in (first, second):
            assert holtd.request("GET", "/holt/v1/tokens/self", token=None, headers=cookie)[0] == 401
        assert holtd.request("POST", "/holt/v1/login", {"code": code}, token=None)[0] in (401, 429)
        with pytest.raises(ConnectionClosed):
            while True:
                stream.recv(timeout=20)
        assert stream.close_code == 1008


def test_a_session_does_not_outlive_its_token(holtd):
    made = holtd.ok("POST", "/holt/v1/tokens", {"name": "short", "role": "operator", "ttl_ms": 60000})
    code = holtd.ok("POST", "/holt/v1/login/code", {}, token=made["token"])["code"]
    _, _, headers = holtd.request("POST", "/holt/v1/login", {"code": code}, token=None)
    assert 0 < int(re.search(r"Max-Age=(\d+)", headers["set-cookie"])[1]) <= 60
    cookie = {"Cookie": headers["set-cookie"].split(";")[0]}
    me = holtd.ok("GET", "/holt/v1/tokens/self", token=None, headers=cookie)
    assert me["expires_at"] <= made["expires_at"]


def test_login_and_logout(holtd):
    link = holtd.ok("POST", "/holt/v1/login/code", {"role": "observer"})
    assert link["url"] == f"{holtd.url}/#login={link['code']}"
    status, reply, headers = holtd.request("POST", "/holt/v1/login", {"code": link["code"]}, token=None)
    assert (status, reply) == (200, {"role": "observer"})
    cookie = _cookie(headers)
    assert holtd.ok("GET", "/holt/v1/tokens/self", token=None, headers=cookie)["role"] == "observer"
    assert holtd.request("POST", "/holt/v1/tokens", {"name": "x"}, token=None, headers=cookie)[0] == 403
    assert holtd.request("POST", "/holt/v1/login", {"code": link["code"]}, token=None)[0] in (401, 429)
    evil = {**cookie, "Origin": "https://evil.example"}
    assert holtd.request("GET", "/holt/v1/tokens/self", token=None, headers=evil)[0] == 403
    status, _, headers = holtd.request("POST", "/holt/v1/logout", token=None, headers=cookie)
    assert status == 204 and "Max-Age=0" in headers["set-cookie"]
    assert holtd.request("GET", "/holt/v1/tokens/self", token=None, headers=cookie)[0] == 401


def test_the_link_at_the_start_works(new_holtd):
    d = new_holtd()
    code = re.search(r"#login=(\S+)", d.text)[1]
    status, _, headers = d.request("POST", "/holt/v1/login", {"code": code}, token=None)
    assert status == 200
    assert d.ok("GET", "/holt/v1/tokens/self", token=None, headers=_cookie(headers))["role"] == "admin"


def test_nobody_makes_a_session_above_himself(holtd, tokens):
    assert holtd.request("POST", "/holt/v1/login/code", {"role": "admin"}, token=tokens["operator"])[0] == 403
    assert holtd.request("POST", "/holt/v1/login/code", {"role": "operator"}, token=tokens["observer"])[0] == 403
    assert holtd.request("POST", "/holt/v1/login/code", {"role": "agent"})[0] == 400
    assert holtd.ok("POST", "/holt/v1/login/code", {}, token=tokens["operator"])["role"] == "operator"


# --- streams ---

def _ws(d, token, query="", **more):
    return connect(f"ws://127.0.0.1:{d.port}/holt/v1/events{query}",
                   additional_headers={"Authorization": f"Bearer {token}"}, **more)


def test_events_over_a_websocket(holtd, tokens):
    head = holtd.ok("GET", "/holt/v1/info")["event_seq"]
    with _ws(holtd, tokens["observer"], f"?since={head}&type=token.created") as ws:
        made = [holtd.new_token(f"ws{i}")["id"] for i in range(3)]
        got = [json.loads(ws.recv(10)) for _ in made]
    assert [e["data"]["id"] for e in got] == made
    assert [e["seq"] for e in got] == sorted(e["seq"] for e in got)


def test_a_websocket_needs_a_token_and_its_own_origin(holtd, tokens):
    with pytest.raises(InvalidStatus) as e:
        connect(f"ws://127.0.0.1:{holtd.port}/holt/v1/events")
    assert e.value.response.status_code == 401
    with pytest.raises(InvalidStatus) as e:
        _ws(holtd, tokens["observer"], origin="https://evil.example")
    assert e.value.response.status_code == 403


def test_a_revoked_token_ends_its_streams(holtd):
    t = holtd.new_token("watcher", "observer")
    c = http.client.HTTPConnection("127.0.0.1", holtd.port, timeout=60)
    c.request("GET", "/holt/v1/events?follow=true", headers={"Authorization": f"Bearer {t['token']}"})
    sse = c.getresponse()
    assert sse.status == 200
    with _ws(holtd, t["token"]) as ws:
        assert holtd.request("DELETE", f"/holt/v1/tokens/{t['id']}")[0] == 204
        with pytest.raises(ConnectionClosed) as e:
            while True:
                ws.recv(30)
        assert e.value.rcvd.code == 1008
    sse.read()  # ends, or the timeout fails the test
    c.close()


def test_an_expired_token_ends_its_streams(holtd):
    t = holtd.ok("POST", "/holt/v1/tokens", {"name": "brief", "ttl_ms": 5000})
    with _ws(holtd, t["token"]) as ws, pytest.raises(ConnectionClosed) as e:
        while True:
            ws.recv(30)
    assert e.value.rcvd.code == 1008


def test_streams_do_not_hold_up_the_end(new_holtd):
    d = new_holtd("--shutdown-ms", "10m")
    with _ws(d, d.token):
        c = http.client.HTTPConnection("127.0.0.1", d.port, timeout=60)
        c.request("GET", "/holt/v1/events?follow=true", headers={"Authorization": f"Bearer {d.token}"})
        assert c.getresponse().status == 200
        assert d.stop() == 0  # or it is killed, long before shutdown_ms
        c.close()


# --- health and metrics ---

def test_health_in_the_clients_form(holtd):
    assert holtd.ok("GET", "/healthz", token=None) == {"status": "alive"}
    assert holtd.ok("GET", "/healthz", token=None, headers={"Accept": "text/plain"}) == "ok"
    assert holtd.ok("GET", "/healthz", token=None, headers={"Accept": "text/plain;q=0.5, application/json"}) == {"status": "alive"}
    ready = holtd.ok("GET", "/readyz", token=None)
    assert ready["ready"] is True and ready["status"] == "ready" and ready["agent_count"] >= 0


def test_ready_may_need_agents(new_holtd):
    d = new_holtd(config="ready_needs_agents: true\n")
    status, reply, _ = d.request("GET", "/readyz", token=None)
    assert status == 503 and reply["ready"] is False and reply["reason"] == "no_agents_connected"
    box = d.ok("POST", "/holt/v1/sandboxes", {})["id"]
    assert d.ok("GET", "/readyz", token=None)["agent_count"] == 1
    d.ok("DELETE", f"/holt/v1/sandboxes/{box}")
    assert d.request("GET", "/readyz", token=None)[0] == 503


def test_metrics(new_holtd):
    d = new_holtd()
    d.ok("GET", "/holt/v1/tokens/self")
    d.request("GET", "/holt/v1/info", token=None)
    d.request("GET", "/nothing")
    text = d.ok("GET", "/metrics")
    value = dict(re.findall(r"^([a-z_]+(?:\{[^}]*\})?) (\S+)$", text, re.M))
    assert value['holt_requests_total{operation="token.self",code="2xx"}'] == "1"
    assert value['holt_requests_total{operation="server.info",code="4xx"}'] == "1"
    assert value['holt_requests_total{operation="unknown",code="4xx"}'] == "1"
    assert value['holt_request_seconds_count{operation="token.self"}'] == "1"
    for name in ("process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds",
                 "process_start_time_seconds", "process_threads", "holt_loop_lag_seconds_count",
                 "holt_store_commits_total", "holt_events_total", "holt_http_connections"):
        assert float(value[name]) >= 0, name
    assert float(value["process_resident_memory_bytes"]) > 1e6 and float(value["process_threads"]) >= 2
    families = re.findall(r"^# TYPE (\S+)", text, re.M)
    assert len(families) == len(set(families)), "a family is printed once"
    vars = d.ok("GET", "/metrics", headers={"Accept": "application/json"})
    assert vars['holt_requests_total{operation="token.self",code="2xx"}'] == 1


def test_metrics_can_be_off(new_holtd):
    assert new_holtd(config="metrics: false\n").request("GET", "/metrics")[0] == 404


def test_methods_and_paths(holtd):
    status, reply, headers = holtd.request("PUT", "/holt/v1/tokens", {})
    assert status == 405 and headers["allow"].split(", ") == ["POST", "GET", "HEAD", "OPTIONS"]
    assert reply["error"]["code"] == "method_not_allowed"
    status, _, headers = holtd.request("OPTIONS", "/holt/v1/tokens/self", token=None)
    assert status == 204 and headers["allow"] == "GET, HEAD, OPTIONS"
    assert holtd.request("HEAD", "/holt/v1/tokens/self")[0] == 200
    for path in ("/holt/v1/tokens/", "/holt/v1/nothing", "/holt/v1/tokens/a%2Fb"):
        assert holtd.request("GET", path)[0] == 404, path
    for path in ("/holt/v1/../v1/info", "//healthz", "/holt/v1/%2e%2e/info"):
        assert holtd.request("GET", path)[0] in (400, 404), path
