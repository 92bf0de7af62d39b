"""The published contract against the daemon: schemathesis makes requests from api/openapi.json, right ones and wrong ones, and
every reply must be one that the document names.  The same requests each time; HOLT_SOAK=1 makes ten times as many.

All of it goes to the native runtime: the fake one isolates nothing, and a made-up path or command would be the host's.
"""
import collections
import contextlib
import itertools
import json
import os
import re

import pytest
import requests

from daemon import ASAN, NO_FREEZE, ROOT, SLOW, SOAK, can_freeze, native, wait_for
from registry import Registry

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: make deps")

from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from hypothesis.errors import Unsatisfiable  # noqa: E402
from schemathesis import GenerationMode  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.core.parameters import ParameterLocation  # noqa: E402
from schemathesis.core.failures import Failure, FailureGroup  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance, negative_data_rejection, response_headers_conformance, response_schema_conformance,
    status_code_conformance)

with open(f"{ROOT}/api/openapi.json", encoding="utf-8") as f:
    DOCUMENT = json.load(f)
EXAMPLES = (100 if SOAK else 4) if not ASAN else 2  # of right and of wrong data each, for each operation
COVERAGE = 400 if SOAK else 8  # of the cases that walk each field's edges
LIMIT = 20 * SLOW  # seconds for one reply

LEFT_OUT = {
    **dict.fromkeys(["runAttach", "execAttach", "sessionAttach", "portTunnel"], "a WebSocket: test_ws.py, test_session.py"),
    "fileWatch": "a stream of events without an end: test_sse.py",
    "taskRunLogs": "a stream of events, which the document has as text: test_task.py",
    "rolloutLogs": "likewise: test_rollout.py",
    "targetCheck": "logs in to a machine: test_rollout.py",
    "sessionRecording": "follows as long as the session runs: test_session.py",
    "execWait": "waits as long as the command runs: test_process_api.py",
    "logout": "ends the session that asks: test_api.py",
}
pytestmark = pytest.mark.slow  # the sanitizers see the same requests in the tests of each operation
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB7Jm0dVd0tQv5ZQ9m0b8kq3m5JfM0o0c8m8oJ3n3f8k"
FREEZE = {"imageCommit", "snapshotCreate", "fork"}  # of a sandbox that runs
NO_SUCCESS = {  # what no made-up request can have; the replies to wrong ones are looked at all the same
    "login": "a code works once: test_api.py",
    "accessRequest": "the key must be one: test_access.py",
    "targetCreate": "an address needs the key of its host: test_playbook.py",
    "playbookReorder": "it names each task once: test_playbook.py",
    **dict.fromkeys(["playbookApply", "playbookPublish", "rolloutGet", "rolloutCancel", "rolloutRollback"], "a playbook must have been applied: test_rollout.py"),
    **dict.fromkeys(["changeDiff", "changeExport", "forkApply"], "both states must be there: test_change.py"),
    "playbookGenerate": "both states must be there: test_generate.py",
    "loadoutApply": "its steps must work: test_loadout.py",
    "imageBuild": "its steps must work: test_loadout.py",
    "loadoutBuild": "its steps must work: test_loadout.py",
    "buildGet": "there must be one: test_loadout.py",
    "buildLog": "there must be one: test_loadout.py",
    "buildCancel": "of one that runs: test_loadout.py",
    "accessRevoke": "of one that is not revoked yet: test_access.py",
    "sandboxLogs": "of a sandbox with commands of its relay: test_relay.py",
    "imageImport": "the bytes must be an archive: test_image.py",
    "taskAssign": "depends on what the requests before have made of the task: test_team_api.py",
    "taskMove": "depends on what the requests before have made of the task: test_team_api.py",
    "archiveWrite": "the bytes must be a tar: test_transfer.py",
    "imagePull": "the registry must have it: test_image.py; its 202 is asked for below",
    "imageRemove": "the image must be one that was imported: test_image.py",
    "ruleRemove": "a rule comes from an approval: test_ask.py",
    "taskClaim": "an agent's own token does it: test_team_api.py",
    **dict.fromkeys(["loginOidc", "loginOidcCallback"], "an issuer must be set, and a browser is sent on: test_oidc.py"),
    "taskRunArtifact": "the agent of a run must have made one: test_task.py",
    "approvalAnswer": "a program in a session must have asked: test_prompt.py",
    **dict.fromkeys(["approvalGet", "approvalApprove", "approvalDeny", "approvalAnswers", "approvalCancel", "approvalWatch", "grantRevoke", "gateRemove", "gateAdd", "webhookAdd", "webhookRemove", "webhookTest", "webhookDeliveries"], "somebody must have asked: test_pending.py"),
}


CONFIG = schemathesis.Config.from_dict({"checks": {
    # 501: the host or the sandbox cannot do this, as the message says; a client asks for something else.
    "not_a_server_error": {"expected-statuses": ["2xx", "3xx", "4xx", "501"]},
    # What is wrong by its length may be refused before it is read.
    "negative_data_rejection": {"expected-statuses": ["400", "401", "403", "404", "405", "409", "413", "414", "415", "431"]},
}})
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT, config=CONFIG)


def operations():
    for found in SCHEMA.get_all_operations():
        op = found.ok()
        name = op.definition.raw["operationId"]
        if name not in LEFT_OUT and not name.startswith("portProxy"):  # what a program inside replies is its own affair
            yield pytest.param(op, id=name)


@schemathesis.check
def success_has_a_row(ctx, response, case):
    """"default" stands for failures: a success is named by its status."""
    if response.status_code < 300 and str(response.status_code) not in case.operation.definition.raw["responses"]:
        raise Failure(operation=case.operation.label, title="Undocumented success", message=f"status {response.status_code}")


@schemathesis.serializer("application/x-tar")
def archive(ctx, value):
    return value if isinstance(value, bytes) else bytes(getattr(value, "data", b"") or str(value).encode())


CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
          response_headers_conformance, negative_data_rejection, success_has_a_row]


class World:
    """A holtd with one object of each kind, made again when an operation has removed it."""

    def __init__(self, holtd, registry):
        self.holtd, self.registry = holtd, registry
        self.session = requests.Session()
        self.headers = {"Authorization": f"Bearer {holtd.token}"}
        self.made = {}
        self.numbers = itertools.count(1)

    MAKERS = {
        "tokens": ("/tokens", {"name": "schema-token", "role": "observer"}, "id"),
        "sandboxes": ("/sandboxes", {"name": "schema-box"}, "id"),
        "templates": ("/templates", {"name": "schema-template", "pids": 64}, "name"),
        "certificates": ("/access/certificates", {"public_key": PUBLIC_KEY, "principals": ["schema"]}, "id"),
        "targets": ("/targets", {"name": "schema-target", "address": "192.0.2.1", "host_key": PUBLIC_KEY}, "name"),
        "playbooks": ("/playbooks", {"name": "schema-playbook", "tasks": [{"name": "t", "module": "ping"}]}, "name"),
        "policies": ("/policies", {"name": "schema-policy", "paths_deny": ["/srv/none"]}, "id"),
        "volumes": ("/volumes", {"name": "schema-volume"}, "name"),
        "secrets": ("/secrets", {"name": "schema-secret", "value": "value", "hosts": ["example.org"]}, "name"),
        "agents": ("/agents", {"name": "schema-agent"}, "name"),
        "projects": ("/projects", {"name": "schema-project"}, "id"),
    }

    def object(self, kind):
        path, body, key = self.MAKERS[kind]
        if kind not in self.made or self.call("GET", f"{path}/{self.made[kind]}").status_code != 200:
            self.made[kind] = self.ok("POST", path, body)[key]
        return self.made[kind]

    def call(self, method, path, body=None):
        return self.session.request(method, f"{self.holtd.url}/holt/v1{path}", json=body, headers=self.headers, timeout=LIMIT)

    def ok(self, method, path, body=None):
        r = self.call(method, path, body)
        assert r.ok, (method, path, r.status_code, r.text)
        return r.json()

    def new_name(self):
        return f"s{next(self.numbers)}"

    def exec(self):
        return self.ok("POST", f"/sandboxes/{self.object('sandboxes')}/execs", {"command": ["cat"], "pty": True, "background": True})["id"]

    def terminal(self):
        body = {"name": self.new_name(), "command": ["cat"]}
        return self.ok("POST", f"/sandboxes/{self.object('sandboxes')}/sessions", body)["id"]

    def file(self, path):
        """One that is there, in a sandbox or a project; for what lists or packs, the directory that it is in."""
        kind = path.split("/")[3]
        name = "/tmp/schema.txt" if kind == "sandboxes" else "schema.txt"
        r = self.session.put(f"{self.holtd.url}/holt/v1/{kind}/{self.object(kind)}/files", params={"path": name}, data=b"content",
                             headers=self.headers, timeout=LIMIT)
        assert r.ok, r.text
        return os.path.dirname(name) or name if path.endswith(("/list", "/archive")) else name

    def task(self):
        return self.ok("POST", "/tasks", {"project": self.object("projects"), "title": "t"})["id"]

    def playbook_task(self):
        return self.ok("POST", f"/playbooks/{self.object('playbooks')}/tasks", {"name": "t", "module": "ping"})["tasks"][-1]["id"]

    def message(self):
        return self.ok("POST", "/messages", {"to": self.object("agents"), "content": "c", "from": "human"})["id"]

    def snapshot(self):
        box = self.object("sandboxes")
        self.ok("POST", f"/sandboxes/{box}/stop", {})  # works also where commands cannot be frozen
        made = self.ok("POST", f"/sandboxes/{box}/snapshots", {})["id"]
        self.ok("POST", f"/sandboxes/{box}/start")
        return made

    def fork(self):
        return self.ok("POST", "/forks", {"source": self.snapshot()})["sandboxes"][0]["id"]

    def manifest(self):
        """Of a task that fails soon: there is no such repository."""
        return {"version": "1", "kind": "Task", "metadata": {"name": "schema"}, "claude": {"prompt": "p"},
                "repository": {"url": f"http://{self.registry.host}/none.git", "branch": "main"}}

    def task_run(self, ended=False):
        run = self.ok("POST", "/task-runs", {"manifest": self.manifest()})["id"]
        if ended:
            wait_for(lambda: self.ok("GET", f"/task-runs/{run}")["state"] == "failed")
        return run

    def schedule(self):
        return self.ok("POST", "/task-schedules", {"name": self.new_name(), "cron": "@monthly", "manifest": self.manifest()})["id"]

    def remote_secret(self):
        return self.ok("POST", "/remote-secrets", {"agent": self.new_name()})["agent"]

    NEW = {  # one for each request
        "agent": remote_secret,
        "exec": exec, "task": playbook_task, "session": terminal, "tasks": task, "messages": message, "snapshots": snapshot, "forks": fork,
        "task-runs": task_run, "task-schedules": schedule,
    }
    NAMES = {
        "module": lambda w: "ping",
        "ref": lambda w: f"{w.registry.host}/none:1",
        "project": lambda w: w.object("projects"),
        "image": lambda w: "host",
        "runtime": lambda w: "native",
        "source": lambda w: w.object("sandboxes"),
        "snapshot": snapshot,
        "manifest": manifest,
        "card": task,
        "cron": lambda w: "0 3 * * 1-5",
        **dict.fromkeys(["to", "from", "agent", "assigned_to", "creator", "created_by"], lambda w: w.object("agents")),
    }

    def fill(self, path):
        """Values of the path's braces that name real objects."""
        values = {}
        kind = path.replace("/access/", "/").split("/")[3] if path.count("/") > 2 else ""
        for name in re.findall(r"{(\w+)}", path):
            if path.endswith("/retry"):
                values[name] = self.task_run(ended=True)
            elif name in self.NEW:
                values[name] = self.NEW[name](self)
            elif name == "id" and kind in self.NEW:
                values[name] = self.NEW[kind](self)
            elif kind == "images":
                values[name] = "host"
            elif kind == "hosts":
                values[name] = "local"
            elif kind in self.MAKERS:
                values[name] = self.object(kind)
        return values


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    registry = Registry()
    d = native(tmp_path_factory.mktemp("schema"), "--image-registry", registry.host)
    yield World(d, registry)
    d.clear()
    wait_for(lambda: not os.listdir(f"{d.state}/sb"))
    assert d.stop() == 0
    registry.close()


def tame(world, case):
    """Nothing leaves this machine, nothing runs without an end, and names of objects are mostly those of some that there are."""
    case.headers.pop("Idempotency-Key", None)  # the edges use one key for all: each would get the first reply, or 409
    if isinstance(case.query, dict):
        case.query.pop("follow", None)
        if case.query.get("path") and isinstance(case.query["path"], str) and not is_wrong(case, ParameterLocation.QUERY):
            case.query["path"] = world.file(case.path)
    if not isinstance(case.body, dict):
        return
    for key, value in case.body.items():
        if not isinstance(value, str) or not value or is_wrong(case, ParameterLocation.BODY) and key != "ref":
            continue
        if case.path.endswith("/files/move"):
            case.body[key] = world.file(case.path) + (".new" if key == "to" else "")
        elif case.path.endswith("/commit"):
            case.body[key] = f"schema/{world.new_name()}:1"
        elif key in world.NAMES:
            case.body[key] = world.NAMES[key](world)
    if isinstance(case.body.get("count"), int) and not is_wrong(case, ParameterLocation.BODY):
        case.body["count"] = min(case.body["count"], 2)
    if "command" in case.body:
        case.body["timeout_ms"] = 1000
        if not is_wrong(case, ParameterLocation.BODY):
            case.body["command"] = ["true"]


def is_wrong(case, location):
    part = case.meta.components.get(location)
    return part is not None and part.mode == GenerationMode.NEGATIVE


def one(world, case, seen, faults):
    if not is_wrong(case, ParameterLocation.PATH):  # a wrong body is read only where the object is
        case.path_parameters = {**(case.path_parameters or {}), **world.fill(case.path)}
    tame(world, case)
    reply = case.call(base_url=world.holtd.url, session=world.session, headers=world.headers, timeout=LIMIT)
    seen.append(reply.status_code)
    try:
        case.validate_response(reply, checks=CHECKS, headers=world.headers)
    except FailureGroup as group:
        faults.append("\n".join(f"{f.title}: {f.message}" for f in group.exceptions)
                      + f"\n{reply.request.method} {reply.request.url}\n{str(reply.request.body)[:500]}"
                      + f"\n-> {reply.status_code} {reply.text[:500]}")


def edges(op, mode):
    """Cases at the edges of each field."""
    config = op.schema.config.generation_for(operation=op)
    cases = op.schema.iter_coverage_cases(op, generation_modes=[mode], generation_config=config)
    mine = (c for c in cases if c.method.upper() == op.method.upper())
    return itertools.islice(mine, COVERAGE)


@pytest.mark.parametrize("op", operations())
def test_each_reply_is_as_the_document_says(world, op):
    seen, faults = [], []
    for mode in GenerationMode:
        for case in edges(op, mode):
            one(world, case, seen, faults)

        @given(case=op.as_strategy(generation_mode=mode))
        @settings(max_examples=EXAMPLES, derandomize=True, deadline=None, database=None, phases=[Phase.generate],
                  suppress_health_check=list(HealthCheck))
        def made_up(case):
            one(world, case, seen, faults)

        with contextlib.suppress(Unsatisfiable):  # there is no wrong data for who takes no data
            made_up()
    for gate in world.ok("GET", "/gates")["gates"]:  # those that the requests made would hold up the next ones
        world.call("DELETE", f"/gates/{gate['id']}")
    world.holtd.clear()
    world.holtd.assert_alive()
    assert not faults, f"{len(faults)} replies are not as api/openapi.json says:\n\n" + "\n\n".join(faults[:8])
    if min(seen) >= 300 and op.definition.raw["operationId"] in FREEZE and not can_freeze(world.holtd):
        pytest.skip(NO_FREEZE)
    assert min(seen) < 300 or op.definition.raw["operationId"] in NO_SUCCESS, f"no request succeeded: {collections.Counter(seen)}"


@pytest.fixture
def ask(world):
    """One request of our own, judged as the made-up ones are; its reply."""
    def send(method, path, status, headers=None, **parts):
        case = SCHEMA[path][method].Case(path_parameters=world.fill(path), **parts)
        reply = case.call(base_url=world.holtd.url, session=world.session, headers={**world.headers, **(headers or {})}, timeout=LIMIT)
        assert reply.status_code == status, reply.text
        case.validate_response(reply, checks=CHECKS, headers=world.headers)
        return reply
    yield send
    world.holtd.clear()


def test_successes_that_a_header_or_a_field_asks_for(world, ask):
    """What made-up requests meet seldom or never: other media types, parts, what is done later."""
    assert ask("GET", "/healthz", 200, headers={"Accept": "text/plain"}).text == "ok"
    assert isinstance(ask("GET", "/metrics", 200, headers={"Accept": "application/json"}).json(), dict)
    ask("POST", "/holt/v1/sandboxes/{id}/execs", 202, body={"command": ["true"], "background": True}, media_type="application/json")
    ask("POST", "/holt/v1/images/pull", 202, body={"ref": f"{world.registry.host}/none:1", "wait": False}, media_type="application/json")
    for path in ("/holt/v1/sandboxes/{id}/files", "/holt/v1/projects/{id}/files"):
        assert ask("GET", path, 206, query={"path": world.file(path)}, headers={"Range": "bytes=0-2"}).content == b"con"
        ask("GET", path, 416, query={"path": world.file(path)}, headers={"Range": "bytes=70-"})
    tag = ask("GET", path, 200, query={"path": "schema.txt"}).headers["etag"][0]
    ask("GET", path, 304, query={"path": "schema.txt"}, headers={"If-None-Match": tag})
