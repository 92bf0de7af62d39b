"""Nobody gets at another's objects, by any route.

All routes, as holtd prints them (--print-routes: operations and dialects), are walked by everybody who is not A, with ids, names, aliases and
OWNER/NAME of what A has. Nothing of A's is told (no reply holds a mark of A's that was not in the request), and A's objects are afterwards as
they were. A route or field that this file does not know how to fill in fails the test: a new one cannot be left out.
"""
import http.client
import json
import re
import subprocess
import time

import grpc
import pytest

from agentbox_client import DESCRIPTOR, Sandbox
from archives import member, tar
from daemon import BUILD, ROOT, native, wait_for

API = "/holt/v1"
CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims"
MARK = "mark-of-a"  # in names and contents of A's; whoever is not A never sees it
NONE_OF_OURS = {403, 404, 405}
# Routes that tell nothing of anybody, whoever asks; their replies are searched all the same.
OPEN = {"healthz", "sbx.health", "readyz", "openapi", "login", "hub.ping", "page", "token.self", "logout", "login.code", "agentic.service", "agentic.http",
        "agentic.live", "agentic.unknown"}
# The team is one: agents without a tenant see its boards, mail between others excepted. What they cannot do is change what is A's.
TEAM_SHARED = re.compile(r"^(hub\.)?(agent|agents|capabilities|checkpoint|revocation|project|task(?!_)|tasks|message|approval|proposal|file)")
SOCKETS = {"fluid.stream", "fluid.job_stream", "sbx.stream", "agentic.orchestrate"}  # who asks for no WebSocket is told so first
LONG = {"events", "event.list", "hub.events", "agentic.events"}


def printed():
    text = subprocess.run([f"{BUILD}/holtd", "--print-routes"], capture_output=True, check=True, timeout=60).stdout
    return [json.loads(line) for line in text.splitlines()]


with open(f"{ROOT}/api/openapi.json", encoding="utf-8") as spec:
    OPENAPI = json.load(spec)


def resolve(x):
    while "$ref" in x:
        at = OPENAPI
        for part in x["$ref"].split("/")[1:]:
            at = at[part]
        x = at
    return x


def schema_of(route):
    """The request's JSON schema, its query parameters, its upload type: of an operation; else nothing."""
    path = re.sub(r"\{(\w+)\.\.\.\}", r"{\1}", route["path"])
    op = OPENAPI["paths"].get(path, {}).get(route["method"].lower())
    if not op:
        return None, [], None
    content = op.get("requestBody", {}).get("content", {})
    query = [resolve(p) for p in op.get("parameters", [])]
    query = [p for p in query if p["in"] == "query" and p.get("required")]
    if "application/json" in content:
        schema = content["application/json"]["schema"]
        return resolve(schema.get("oneOf", [schema])[0]), query, None  # the other is null: a body may be absent
    return None, query, next(iter(content), None)


def example(schema):
    schema = resolve(schema)
    if schema.get("examples"):
        return schema["examples"][0]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    return {"array": ["true"], "object": {}, "integer": 1, "boolean": False}.get(kind, "true")


PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB7Jm0dVd0tQv5ZQ9m0b8kq3m5JfM0o0c8m8oJ3n3f8k"


class World:
    """What A has, and who is not A."""

    def __init__(self, d, storage):
        self.d, self.storage = d, storage
        a = self.a = self.who("a", "operator", tenant="ta")
        box = a("POST", f"{API}/sandboxes", {"name": f"box-{MARK}", "env": {"X": MARK}, "volumes": []})
        a("PUT", f"{API}/sandboxes/{box['id']}/files?path=/tmp/f", MARK.encode())
        run = a("POST", f"{API}/sandboxes/{box['id']}/execs", {"command": ["echo", MARK], "pty": True})
        session = a("POST", f"{API}/sandboxes/{box['id']}/sessions", {"name": f"term-{MARK}", "command": ["echo", MARK]})
        wait_for(lambda: a("GET", f"{API}/sandboxes/{box['id']}/sessions/{session['id']}")["state"] == "exited")
        a("POST", f"{API}/sandboxes/{box['id']}/stop", {})  # one that runs has snapshots only where it has a cgroup
        snapshot = a("POST", f"{API}/sandboxes/{box['id']}/snapshots", {"name": f"snap-{MARK}"})
        a("POST", f"{API}/sandboxes/{box['id']}/start")
        volume = a("POST", f"{API}/volumes", {"name": f"vol-{MARK}"})
        template = a("POST", f"{API}/templates", {"name": f"tpl-{MARK}", "labels": {"of": MARK}})
        target = a("POST", f"{API}/targets", {"name": f"tgt-{MARK}", "sandbox": box["id"]})
        playbook = a("POST", f"{API}/playbooks", {"name": f"pb-{MARK}", "tasks": [{"name": MARK, "module": "ping"}]})
        rollout = a("POST", f"{API}/playbooks/{playbook['id']}/apply", {"to": target["id"], "note": MARK})
        a("POST", f"{API}/rollouts/{rollout['id']}/cancel", {})
        image = a("POST", f"{API}/images/import?name=img-{MARK}&format=tar", tar(member("f", MARK.encode())))
        certificate = a("POST", f"{API}/access/certificates", {"public_key": PUBLIC_KEY, "sandbox": box["id"]})
        secret = a("POST", f"{API}/secrets", {"name": f"sec-{MARK}", "value": f"v-{MARK}", "hosts": ["a.example"]})
        a("POST", f"{API}/remote-secrets", {"agent": f"rem-{MARK}"})
        manifest = {"version": "1", "kind": "Task", "metadata": {"name": f"work-{MARK}"}, "repository": {"url": "http://127.0.0.1:1/r.git", "branch": "main"},
                    "claude": {"prompt": MARK}}
        work = a("POST", f"{API}/task-runs", {"manifest": manifest})
        wait_for(lambda: a("GET", f"{API}/task-runs/{work['id']}")["state"].startswith("failed"))
        build = a("POST", f"{API}/loadouts/build", {"manifest": {"apiVersion": "loadout/v1", "kind": "loadout", "metadata": {"name": MARK}, "runcmd": [f"echo {MARK}"]}})
        schedule = a("POST", f"{API}/task-schedules", {"name": f"at-{MARK}", "cron": "0 3 1 1 *", "manifest": manifest})
        sbx = a("POST", "/sandboxes", {"id": MARK})["id"]
        said = {"message": {"messageId": MARK, "role": "user", "parts": [{"text": MARK}]}}
        said = d.ok("POST", f"/agents/{box['id']}/v1/messages:send", said, token=a.token, headers={"A2A-Extensions": "https://agentic-sandbox.aiwg.io/extensions/runtime/v1"})["id"]
        wait_for(lambda: a("GET", f"/agents/{box['id']}/v1/tasks/{said}")["status"]["state"] == "completed")
        a("POST", CLAIMS, {"metadata": {"name": f"claim-{MARK}", "labels": {"of": MARK}}, "spec": {"warmPoolRef": {"name": f"tpl-{MARK}"}}})
        wait_for(lambda: [c for c in a("GET", f"{CLAIMS}/claim-{MARK}")["status"]["conditions"] if c["status"] == "True"])
        self.client = Sandbox(d.port, a.token)
        self.client.CreateSession(session_id=f"ses-{MARK}", tenant_id="ta")
        self.client.WriteFile(session_id=f"ses-{MARK}", path="/workspace/f", content=MARK.encode())
        # The team is people's without a tenant.
        self.human = self.who("human", "operator")
        agent = f"agent_{MARK}".replace("-", "_")
        self.agent = agent
        token = self.human("POST", "/agents/register", {"name": agent})["token"]
        self.agents_token = token
        project = d.ok("POST", "/projects", {"name": f"p-{MARK}", "creator": agent}, token=token)["id"]
        d.ok("PUT", f"{API}/projects/{project}/files?path=f", MARK.encode(), token=token, headers={"Content-Type": "application/octet-stream"})
        task = self.human("POST", f"{API}/tasks", {"project": project, "title": f"t-{MARK}"})["id"]
        d.ok("POST", f"/agents/{agent}/autonomy", {"mode": "advisory"})
        proposal = d.ok("POST", f"/projects/{project}/tasks", {"title": f"q-{MARK}", "creator": agent}, token=token)
        proposal = d.ok("POST", f"/projects/{project}/tasks/{proposal['id']}/claim", {"agent_name": agent}, token=token)["proposal_id"] \
            if "proposal_id" not in proposal else proposal["proposal_id"]
        plan = a("POST", "/v1/plan/create", {"name": f"plan-{MARK}", "steps": ["a"]})["plan_id"]
        owner = a.made["id"]
        named = lambda name: [name, f"{owner}/{name}", f"token/{owner}/{name}", f"ta/{name}"]
        boxes = [box["id"], run["sandbox"] if "sandbox" in run else box["id"], *named(f"box-{MARK}"), f"claim-{MARK}", f"default/claim-{MARK}", sbx, f"ses-{MARK}"]
        self.refs = {
            "sandboxes": sorted(set(boxes)), "execs": [run["id"]], "sessions": [session["id"], f"term-{MARK}"], "volumes": [volume["id"], *named(f"vol-{MARK}")],
            "targets": [target["id"], *named(f"tgt-{MARK}")], "playbooks": [playbook["id"], *named(f"pb-{MARK}")], "rollouts": [rollout["id"]], "jobs": [rollout["id"]], "generate": ["ansible", "puppet"],
            "sandboxclaims": [f"claim-{MARK}"], "sandboxtemplates": [template["id"], f"tpl-{MARK}"], "sandboxwarmpools": [template["id"], f"tpl-{MARK}"],
            "templates": [template["id"], *named(f"tpl-{MARK}")],
            "images": [image["id"], f"img-{MARK}", f"ta/img-{MARK}"], "secrets": [secret["id"], *named(f"sec-{MARK}")],
            "tokens": [owner], "agents": [agent], "reviewers": [agent], "projects": [project], "tasks": [str(task), work["id"], said], "artifacts": [f"{said}-stdout-0000"], "pushNotificationConfigs": ["pn_0"],
            "messages": [agent], "history": [agent], "approvals": [proposal], "proposals": [proposal], "rules": ["er_0"], "grants": ["gr_0"], "certificates": [certificate["id"]], "certificate": [certificate["id"]], "panes": [session["id"]], "plan": [plan], "pending": [proposal], "requests": [proposal], "assets": ["index.js"], "gates": ["ga_0"], "hosts": ["local"], "webhooks": ["wh_0"],
            "operations": ["op_0"], "hitl": [proposal], "vms": sorted(set(boxes)), "containers": sorted(set(boxes)), "ports": ["1"], "t": ["0" * 64], "tenant": ["ta"], "policies": ["fluid-defaults"],
            "snapshots": [snapshot["id"], f"box-{MARK}@snap-{MARK}"], "forks": sorted(set(boxes)), "remote-secrets": [f"rem-{MARK}"], "task-runs": [work["id"]], "task-schedules": [schedule["id"]], "builds": [build["id"]], "loadouts": ["basic"], "inbox": sorted(set(boxes)), "outbox": sorted(set(boxes)),
        }
        self.snapshot = snapshot["id"]
        self.box, self.volume, self.image, self.secret, self.project, self.task = box, volume, image, secret, project, task
        self.marks = [MARK, box["id"], run["id"], volume["id"], image["id"], secret["id"], certificate["id"], snapshot["id"], work["id"], said, build["id"], schedule["id"], target["id"], playbook["id"], rollout["id"], owner]

    def who(self, name, role, **more):
        body = {"name": name, "role": role, **more, **({"agent": name} if role == "agent" else {})}
        made = self.d.ok("POST", f"{API}/tokens", body)

        def ask(method, path, data=None, **headers):
            upload = {"Content-Type": "application/octet-stream"} if isinstance(data, bytes) else None
            return self.d.ok(method, path, data, token=made["token"], headers=upload)
        ask.token, ask.made, ask.role, ask.tenant = made["token"], made, role, more.get("tenant")
        return ask

    def state(self):
        """All that A has, as A and an admin see it; without what passes."""
        volatile = {"resourceVersion", "active_at", "last_used_at", "last_seen", "last_heartbeat", "heartbeat_at", "execs_live"}
        strip = lambda x: ({k: strip(v) for k, v in x.items() if k not in volatile} if isinstance(x, dict)
                           else [strip(v) for v in x] if isinstance(x, list) else x)
        d, box = self.d, f"{API}/sandboxes/{self.box['id']}"
        d.ok("POST", f"/agents/{self.agent}/heartbeat", {}, token=self.agents_token)  # or it goes offline by itself
        paths = [f"{API}/sandboxes?limit=1000", f"{box}/execs", f"{box}/files?path=/tmp/f", f"{box}/files/list?path=/tmp", f"{API}/volumes",
                 f"{API}/images", f"{API}/secrets", f"{API}/remote-secrets", f"{API}/task-runs", f"{API}/task-schedules", f"{API}/snapshots", f"{API}/targets", f"{API}/playbooks/pb-{MARK}", f"{API}/rollouts"]
        got = {p: strip(d.ok("GET", p, token=self.a.token)) for p in paths}
        people = [f"/agents/{self.agent}", f"{API}/projects/{self.project}", f"{API}/projects/{self.project}/files/list",
                  f"{API}/projects/{self.project}/files?path=f", f"{API}/tasks/{self.task}", f"{API}/tokens/{self.a.made['id']}",
                  f"{API}/approvals/{self.refs['approvals'][0]}"]
        got.update({p: strip(d.ok("GET", p)) for p in people})
        got["storage"] = (self.storage / "ta" / "workspace" / "f").read_text()
        return got


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    storage = tmp_path_factory.mktemp("walk-storage")
    d = native(tmp_path_factory.mktemp("walk"), "--storage-path", str(storage), "--sbx-allowed-hosts", "a.example")
    try:
        w = World(d, storage)
        yield w
        w.client.close()
    finally:
        d.clear()
        assert d.stop() == 0


NOBODYS = {"group": "extensions.agents.x-k8s.io", "version": "v1beta1", "namespace": "default"}


def fillings(world, path):
    """Each way of filling the path's braces in with what is A's: (path, the texts that were put in)."""
    done = [("", [])]
    literal = ""
    for part in path.strip("/").split("/"):
        hole = re.fullmatch(r"\{(\w+)(\.\.\.)?\}", part)
        if not hole:
            literal, choices = part, [(part, [])]
        elif hole[1] in NOBODYS:
            choices = [(NOBODYS[hole[1]], [])]
        elif hole[1] in ("path", "rest") or (hole[2] and literal == "files"):
            choices = [("f", [])]
        else:
            kind = "history" if hole[1] == "b" else "sandboxes" if hole[1] == "instance" else literal
            assert kind in world.refs, f"test_walk.py does not know what to put into {{{hole[1]}}} of {path}"
            choices = [(ref.replace("/", "%2F"), [ref]) for ref in world.refs[kind]]
        done = [(f"{p}/{text}", refs + more) for p, refs in done for text, more in choices]
    return done


FIELDS = {  # fields of bodies that name something of somebody's: how
    "tenant": lambda w: ["ta"], "template": lambda w: w.refs["templates"], "image": lambda w: w.refs["images"],
    "volumes": lambda w: [[{"name": v, "path": "/v"}] for v in w.refs["volumes"]],
    "secrets": lambda w: [[{"name": v}] for v in w.refs["secrets"]],
    "secret": lambda w: [[v] for v in w.refs["secrets"]], "context": lambda w: w.refs["volumes"], "base": lambda w: w.refs["images"],
    "agent": lambda w: w.refs["agents"], "project": lambda w: w.refs["projects"], "network": lambda w: [],
}


# Makes one's own by that name, whoever else has one; with which body that is a good request.
MAKES_OWN = {"secret.set": {"value": "of-b", "hosts": ["b.example"]}}
LOCAL = {"ref": "127.0.0.1:1/x:1"}  # nothing is asked of the outside


class Naming(dict):
    """A body that names what is A's: never a success."""


SOURCES = ("sandboxes", "snapshots", "templates", "images")
# Of dialects whose bodies are read before anything is looked for: the least that is valid, and what can name A's.
VALID = {"fluid.start": {}, "fluid.stop": {}, "fluid.run": {"command": "true"}, "fluid.snapshot": {"name": "x"}, "fluid.restore": {},
         "fluid.sshkey": {"public_key": "ssh-ed25519 AAAA x", "username": "root"}, "fluid.create": {"source_vm_name": "no-such", "agent_id": "b"},
         "fluid.access_request": {"sandbox_id": "no-such", "user_id": "b", "public_key": "ssh-ed25519 AAAA x"}, "fluid.certificate_revoke": {},
         "fluid.session_start": {"certificate_id": "no-such"}, "fluid.session_end": {"session_id": "no-such"},
         "fluid.ask": {"prompt": "?", "action_type": "x", "timeout_secs": 1}, "fluid.ask_async": {"prompt": "?", "action_type": "x"},
         "fluid.respond": {"request_id": "no-such", "approved": True, "approved_by": "b"},
         "fluid.tmux_session_create": {"name": "b", "command": "true"}, "fluid.tmux_pane_create": {"command": "true"}, "fluid.tmux_read": {"pane_id": "no-such"},
         "fluid.tmux_switch": {"pane_id": "no-such"}, "fluid.tmux_send": {"pane_id": "no-such", "key": "Enter"}, "fluid.terminal_create": {"sandbox_id": "no-such"},
         "fluid.command": {"command": "ls"}, "fluid.file_copy": {"source": "/etc/hostname", "destination": "/tmp/h"}, "fluid.audit_query": {},
         "fluid.publish": {"job_id": "no-such"}, "fluid.diff": {"from_snapshot": "a", "to_snapshot": "b"}, "fluid.job_create": {"vm_name": "no-such", "playbook": "no-such"}, "fluid.book_create": {"name": "b"}, "fluid.book_task_add": {"name": "b", "module": "ping"},
         "fluid.book_task_change": {"name": "b"}, "fluid.book_reorder": {"task_ids": ["no-such"]},
         "fluid.plan_create": {"steps": ["b"]}, "fluid.plan_update": {"plan_id": "no-such", "status": "active"}, "fluid.plan_advance": {}, "fluid.plan_abort": {},
         **{f"fluid.file_{what}": {"path": "/tmp/f", "content": "b", "old_text": "b"} for what in ("read", "write", "edit", "delete", "list", "exists", "hash")}}
IN_BOX = [name for name in VALID if name.startswith("fluid.file_") or name in ("fluid.command", "fluid.tmux_session_create", "fluid.tmux_pane_create", "fluid.terminal_create")]
NAMES = {"fluid.create": ("source_vm_name", SOURCES), "fluid.access_request": ("sandbox_id", ("sandboxes",)), "fluid.session_start": ("certificate_id", ("certificates",)),
         "fluid.respond": ("request_id", ("approvals",)), **{name: ("sandbox_id", ("sandboxes",)) for name in IN_BOX},
         **{f"fluid.tmux_{what}": ("pane_id", ("sessions",)) for what in ("read", "switch", "send")}}


def bodies(world, route):
    """What to send: the least that is valid, then each field that can name what is A's."""
    schema, _, upload = schema_of(route)
    if route["name"] in VALID:
        field, kinds = NAMES.get(route["name"], (None, ()))
        return [VALID[route["name"]]] + [Naming({**VALID[route["name"]], field: ref}) for kind in kinds for ref in world.refs[kind]]
    if upload:
        return [b"x"]
    if schema is None:
        return [None] if route["path"].startswith(API) or route["method"] in ("GET", "HEAD", "DELETE", "*") else [{"command": ["true"], "id": "x1", "name": "x", "title": "x"}]
    if route["name"] in MAKES_OWN:
        return [MAKES_OWN[route["name"]]]
    least = {k: LOCAL.get(k) or example(schema["properties"][k]) for k in schema.get("required", [])}
    return [least] + [Naming({**least, k: v}) for k in schema["properties"] if k in FIELDS for v in FIELDS[k](world)]


def send(world, who, method, path, body, upgrade=False):
    """(status, text), at most the first 64 KiB and what comes within two seconds."""
    h = {"Authorization": f"Bearer {who.token}"}
    if body is not None:
        h["Content-Type"] = "application/octet-stream" if isinstance(body, bytes) else "application/json"
    if upgrade:
        h.update({"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                  "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
    c = http.client.HTTPConnection("127.0.0.1", world.d.port, timeout=20)
    try:
        c.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body), h)
        r = c.getresponse()
        text = "" if r.status == 101 else r.read(65536).decode(errors="replace")
        return r.status, text
    finally:
        c.close()


def told(world, text, sent):
    """Marks of A's that are in a reply and were not in the request."""
    return [m for m in world.marks if m in text.replace(sent, "") and m not in sent]


def check(world, who, route, path, refs, body, upgrade=False):
    status, text = send(world, who, "PUT" if route["method"] == "*" else route["method"], path, body, upgrade)
    sent = path + json.dumps(body if not isinstance(body, bytes) else "") + " ".join(refs)
    where = (who.made["name"], route["name"], route["method"], path, body, status, text[:300])
    shared = who.role == "agent" and not who.tenant and TEAM_SHARED.match(route["name"])
    assert status < 500 or status == 501 or route["name"] == "image.pull", where
    assert status != 101 or not refs, where
    if shared:
        return
    assert not told(world, text, sent), where
    assert status >= 400 or not isinstance(body, Naming), where
    if refs and route["name"] not in OPEN and route["name"] not in MAKES_OWN and route["permission"] != "none":
        assert status in NONE_OF_OURS or (status == 400 and route["name"] in SOCKETS and not upgrade), where


def strangers(world):
    return [world.who("agent-b", "agent", tenant="tb"), world.who("watch-b", "observer", tenant="tb", content=True),
            world.who("op-b", "operator", tenant="tb"), world.who("agent-c", "agent")]


def clean_up(world, made):
    """What the strangers made by the way."""
    owners = {f"token/{w.made['id']}" for w in made}
    for kind in ("sandboxes", "volumes", "templates", "images", "secrets", "targets", "playbooks"):
        for x in world.d.ok("GET", f"{API}/{kind}?limit=1000")[kind]:
            if x.get("owner") in owners:
                world.d.request("DELETE", f"{API}/{kind}/{x['id']}")


# Agents without a tenant work with the team: these make or change what is common, not what is A's.
TEAM_WORK = {"project.join", "task.create", "task.claim", "task.assign", "task.unassign", "task.move", "task.review", "message.send",
             "agent.register", "project.create", "project.limit", "message.ack"}


def test_no_route_crosses(world):
    before = world.state()
    made = strangers(world)
    began, count = time.monotonic(), 0
    for route in printed():
        if route["name"] in ("policy.get", "policy.list", "loadout.get", "agentic.loadout"):
            continue  # the installation's: everybody may know the rules, to name them at a create
        if route["name"] in LONG or route["path"].startswith(("/sandbox.v1", "/grpc.")):
            continue  # streams, which need a permission that no stranger has (below); calls of protobuf services (below)
        short = route["name"].removeprefix("hub.")
        for who in made:
            team = who.role == "agent" and not who.tenant and (short in TEAM_WORK or short in ("task.reviewer", "project.wip", "approval.watch"))
            if team or route["name"] == "logout":
                continue
            _, query, _ = schema_of(route)
            ask = "&".join(f"{p['name']}={example(p['schema'])}" for p in query)
            for path, refs in fillings(world, route["path"]):
                path += f"?{ask}" if ask else ""
                for body in bodies(world, route):
                    check(world, who, route, path, refs, body)
                    count += 1
                if route["method"] == "GET":
                    check(world, who, route, path, refs, None, upgrade=True)
                    count += 1
        if route["name"] in MAKES_OWN:  # by A's names: they are B's own now
            clean_up(world, made)
    clean_up(world, made)
    assert world.state() == before
    assert count > 2000
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("name", sorted(LONG))
def test_streams_are_not_for_tenants_or_agents(world, name):
    for route in printed():
        if route["name"] == name:
            for who in strangers(world):
                assert send(world, who, route["method"], route["path"], None)[0] == 403


TEXTS = {"session_id": None, "tenant_id": "ta", "command": "cat /workspace/f; echo x > /workspace/f", "path": "/workspace/f"}


def call(client, method, fields):
    """(the code that refuses it, or None; the reply's text)"""
    try:
        reply = getattr(client, method.name)(**fields)
        return None, " ".join(str(x) for x in reply) if method.server_streaming else str(reply)
    except grpc.RpcError as e:
        return e.code(), e.details()


def test_no_call_crosses(world):
    """The same for every method of agentbox's service."""
    before = world.state()
    made = strangers(world)
    methods = [r for r in printed() if r["path"].startswith("/sandbox.v1")]
    assert {r["path"].rsplit("/", 1)[1] for r in methods} == {m.name for m in DESCRIPTOR.methods}
    for who in made:
        client = Sandbox(world.d.port, who.token)
        for m in DESCRIPTOR.methods:
            for ref in world.refs["sandboxes"]:
                fields = {f.name: TEXTS.get(f.name) or ref for f in m.input_type.fields if f.name in TEXTS}
                code, text = call(client, m, fields)
                where = (who.made["name"], m.name, fields, code, text[:300])
                assert not told(world, text, str(fields)), where
                assert code or "sessions" in text or text.strip() == "" or "not found" in text.lower(), where
        client.close()
    clean_up(world, made)
    assert world.state() == before


def test_the_walk_would_see_it(world):
    """A itself gets all of it, by the same requests: they are good ones, and what is searched for is there."""
    seen = 0
    for route in printed():
        if route["method"] != "GET" or route["permission"] not in ("sandbox.read", "sandbox.content", "secret.read") or route["name"] in LONG:
            continue
        if not route["path"].startswith(f"{API}/") or route["name"] in ("file.watch", "exec.attach", "session.attach", "run.attach", "file.list",
                                                                        "task_run.artifact"):  # its task failed before it made any
            continue
        _, query, _ = schema_of(route)
        own = {"path": "/tmp/f", "to": world.snapshot, "from": world.snapshot}
        ask = "&".join(f"{p['name']}={own.get(p['name']) or example(p['schema'])}" for p in query)
        path, refs = fillings(world, route["path"])[0]
        status, text = send(world, world.a, "GET", path + (f"?{ask}" if ask else ""), None)
        assert status == 200, (route, path, status, text[:200])
        seen += any(m in text for m in world.marks)
    assert seen >= 12
