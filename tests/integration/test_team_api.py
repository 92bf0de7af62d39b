"""The team by the native API and the command line: the same objects and rules as the hub's, in the native form."""
import json
import os
import re
import subprocess


from daemon import BUILD, environment, wait_for
from hub_client import call
from session_client import Session

V1 = "/holt/v1"


def post(d, path, body=None, token="admin", want=None):
    status, reply, _ = d.request("POST", V1 + path, body or {}, token=token)
    assert want is None and status < 300 or status == want, (path, status, reply)
    return reply


def get(d, path, token="admin"):
    status, reply, _ = d.request("GET", V1 + path, token=token)
    assert status == 200, (path, status, reply)
    return reply


def refusal(d, method, path, body=None, token="admin"):
    status, reply, _ = d.request(method, V1 + path, body, token=token)
    return status, reply["error"]["code"], reply["error"]["message"]


def agent(d, name, **more):
    return post(d, "/agents", {"name": name, **more}, want=201)


def project(d, name="p"):
    return post(d, "/projects", {"name": name}, want=201)["id"]


def task(d, p, title="t", **more):
    return post(d, "/tasks", {"project": p, "title": title, **more}, want=201)["id"]


# --- every operation ---

ASKS = {"approvalAnswers", "approvalAsk", "approvalCancel", "approvalWatch", "grantList", "grantRevoke"}  # test_approval.py calls them


def test_every_operation_of_the_team_was_called(holtd):
    """The rows of the table, not a list of mine: whoever adds one is told."""
    spec = get(holtd, "/openapi.json")
    ours = {o["operationId"] for path in spec["paths"].values() for o in path.values()
            if set(o["tags"]) & {"agent", "project", "board", "msg", "approval"}} - ASKS
    with open(__file__, encoding="utf-8") as f:
        named = re.findall(r"# ([a-z_.]+)\n", f.read())
    called = {re.sub(r"[._](.)", lambda m: m[1].upper(), name) for name in named}
    assert len(ours) >= 45
    missing = sorted(ours - called)
    assert not missing, missing


def test_agents(holtd):
    a = agent(holtd, "ann", type="coder", capabilities=["Code", "review"], metadata={"k": [1]}, max_tasks=2)  # agent.register
    assert a["token"].startswith("holt_") and a["mode"] == "fully_autonomous" and a["capabilities"] == ["code", "review"]
    assert a["metadata"] == {"k": [1]} and a["max_tasks"] == 2 and a["status"] == "online" and a["task_id"] is None
    agent(holtd, "bea", mode="advisory")
    assert [x["name"] for x in get(holtd, "/agents?limit=1")["agents"]] == ["ann"]  # agent.list
    page = get(holtd, "/agents?limit=1&cursor=ann")
    assert [x["name"] for x in page["agents"]] == ["bea"] and page["cursor"] is None
    assert get(holtd, "/agents?limit=1")["cursor"] == "ann"
    assert [x["name"] for x in get(holtd, "/agents?cursor=anna")["agents"]][0] == "bea"  # a place: nobody need stand there
    assert [x["name"] for x in get(holtd, "/agents?capability=CODE")["agents"]] == ["ann"]
    assert get(holtd, "/agents?status=stalled")["agents"] == []
    assert get(holtd, "/agents/bea")["mode"] == "advisory"  # agent.get
    assert refusal(holtd, "GET", "/agents/none")[:2] == (404, "not_found")
    # agent.update
    changed = holtd.ok("PATCH", f"{V1}/agents/ann", {"mode": "manual", "description": "d"})
    assert changed["mode"] == "manual" and changed["mode_max"] == "manual" and changed["description"] == "d"
    assert changed["capabilities"] == ["code", "review"] and changed["max_tasks"] == 2
    assert holtd.ok("PATCH", f"{V1}/agents/ann", {"clear_capabilities": True})["capabilities"] == []
    assert refusal(holtd, "PATCH", "/agents/ann", {"mode": "fully_autonomous"}, a["token"])[0] == 403
    assert post(holtd, "/agents/ann/heartbeat", token=a["token"])["ticks"] == 1  # agent.heartbeat
    assert refusal(holtd, "POST", "/agents/bea/heartbeat", {}, a["token"])[0] == 403
    k = post(holtd, "/agents/ann/checkpoints", {"state": "s", "rationale": "r", "metadata": {"a": 1}}, a["token"], 201)  # agent.checkpoint
    assert k["sequence"] == 1 and k["task_id"] is None and k["metadata"] == {"a": 1}
    assert [x["id"] for x in get(holtd, "/agents/ann/checkpoints")["checkpoints"]] == [k["id"]]  # agent.checkpoints
    assert holtd.request("DELETE", f"{V1}/agents/ann")[0] == 204  # agent.remove
    assert holtd.request("GET", f"{V1}/agents", token=a["token"])[0] == 401  # its token went with it


def test_oversight(holtd):
    t = agent(holtd, "otto")["token"]
    assert post(holtd, "/agents/otto/pause", {"reason": "r"})["status"] == "paused"  # agent.pause
    assert refusal(holtd, "POST", "/agents/otto/resume", {}, t)[0] == 403
    assert post(holtd, "/agents/otto/resume")["status"] == "online"  # agent.resume
    d = post(holtd, "/agents/otto/revoke", {"reason": "why"})  # agent.revoke
    assert d["flush"] is True and d["acknowledged_at"] is None and d["issued_by"].startswith("token/")
    assert get(holtd, "/agents/otto/revocation", t) == {"pending": True, "id": d["id"], "reason": "why", "flush": True}  # agent.revocation
    assert refusal(holtd, "POST", "/messages", {"to": "x", "content": "y"}, t)[0] == 403
    assert post(holtd, "/agents/otto/revocation/ack", {"id": "dv_other"}, t) == {"ended": 0}
    assert post(holtd, "/agents/otto/revocation/ack", {"id": d["id"]}, t) == {"ended": 1}  # agent.ack
    assert get(holtd, "/agents/otto/revocation") == {"pending": False, "id": None, "reason": None, "flush": None}
    assert get(holtd, "/revocations?limit=1")["revocations"][0]["acknowledged_at"]  # agent.revocations
    before = get(holtd, "/agents")["agents"]
    # agent.default_mode
    assert "otto" in holtd.ok("PUT", f"{V1}/autonomy", {"mode": "advisory"})["agents"]
    assert agent(holtd, "late")["mode"] == "advisory"
    holtd.ok("PUT", f"{V1}/autonomy", {"mode": "fully_autonomous"})
    assert len(get(holtd, "/agents")["agents"]) == len(before) + 1
    assert refusal(holtd, "PUT", "/autonomy", {"mode": "manual"}, t)[0] == 403


def test_projects(holtd):
    p = post(holtd, "/projects", {"name": "named"}, want=201)  # project.create
    assert p["creator"] == "human" and p["members"] == ["human"] and p["limits"] == {"in_progress": 3, "in_review": 5}
    assert p["id"] in [x["id"] for x in get(holtd, "/projects?member=human&limit=1000")["projects"]]  # project.list
    assert get(holtd, f"/projects/{p['id']}") == p  # project.get
    assert post(holtd, f"/projects/{p['id']}/members", {"agent": "zoe"})["members"] == ["human", "zoe"]  # project.join
    # project.limit
    assert holtd.ok("PUT", f"{V1}/projects/{p['id']}/limits", {"status": "in_progress", "cards": 1})["limits"]["in_progress"] == 1
    m = get(holtd, f"/projects/{p['id']}/metrics")  # project.metrics
    assert m["total"] == 0 and m["by_status"]["done"] == 0 and m["cycle_p99_ms"] == 0
    assert holtd.request("DELETE", f"{V1}/projects/{p['id']}")[0] == 204  # project.remove
    assert refusal(holtd, "GET", f"/projects/{p['id']}")[:2] == (404, "not_found")


def test_files(holtd):
    p = project(holtd)
    files = f"{V1}/projects/{p}/files"
    raw = {"Content-Type": "application/octet-stream"}
    data = os.urandom(100000)
    # project.file.write
    f = holtd.ok("PUT", f"{files}?path=a/b.bin", data, headers=raw)
    assert f["version"] == 1 and f["size_bytes"] == 100000 and f["uploader"] == "human" and f["path"] == "a/b.bin"
    assert holtd.ok("PUT", f"{files}?path=a/b.bin", b"", headers=raw)["version"] == 2
    r = subprocess.run(["curl", "-sS", "-H", f"Authorization: Bearer {holtd.token}", f"{holtd.url}{files}?path=a/b.bin&version=1"],
                       capture_output=True, check=True, timeout=60)  # project.file.read
    assert r.stdout == data
    assert [x["version"] for x in get(holtd, f"/projects/{p}/files/list")["files"]] == [2]  # project.file.list
    page = get(holtd, f"/projects/{p}/files/list?path=a/b.bin&limit=1")
    assert [x["version"] for x in page["files"]] == [2]
    assert [x["version"] for x in get(holtd, f"/projects/{p}/files/list?path=a/b.bin&cursor={page['cursor']}")["files"]] == [1]
    assert refusal(holtd, "GET", f"/projects/{p}/files?path=none")[:2] == (404, "not_found")
    status, reply, _ = holtd.request("PUT", f"{files}?path=../x", b"x", headers=raw)
    assert status == 400 and reply["error"]["message"] == "Invalid filename"
    assert holtd.request("PUT", f"{V1}/projects/pj_none/files?path=x", b"x", headers=raw)[0] == 404
    status, reply, _ = holtd.request("PUT", f"{files}?path=big", b"x" * 10485761, headers=raw)
    assert (status, reply["error"]["code"]) == (413, "too_large")
    t = agent(holtd, "filer")["token"]
    assert holtd.request("PUT", f"{files}?path=mine", b"x", token=t, headers=raw)[0] == 403  # not a member yet
    holtd.ok("POST", f"{V1}/projects/{p}/members", {"agent": "filer"}, token=t)
    assert holtd.request("PUT", f"{files}?path=mine", b"x", token=t, headers=raw)[1]["uploader"] == "filer"
    assert holtd.request("PUT", f"{files}?path=mine&uploader=other", b"x", token=t, headers=raw)[0] == 403
    assert refusal(holtd, "DELETE", f"/projects/{p}/files?path=a/b.bin", None, t)[0] == 403
    assert holtd.request("DELETE", f"{files}?path=a/b.bin")[0] == 204  # project.file.remove
    assert refusal(holtd, "GET", f"/projects/{p}/files?path=a/b.bin")[0] == 404


def test_pages_of_a_board_at_work(holtd):
    """What the last page ended with moves on, or goes: the next page is what follows, nothing is left out or told twice."""
    p = project(holtd)
    made = [task(holtd, p, f"t{i}", priority=f"P{i % 3}") for i in range(30)]
    order = sorted(made, key=lambda k: (made.index(k) % 3, k))
    seen, cursor = [], ""
    while True:
        page = get(holtd, f"/tasks?project={p}&status=backlog&limit=4{cursor}")
        seen += [k["id"] for k in page["tasks"]]
        if not page["cursor"]:
            break
        post(holtd, f"/tasks/{seen[-1]}/move", {"status": "ready"})
        cursor = f"&cursor={page['cursor']}"
    assert seen == order
    for name in ("pg-a", "pg-b", "pg-c"):
        agent(holtd, name)
    page = get(holtd, "/agents?limit=1&cursor=pg-")
    assert page["cursor"] == "pg-a"
    holtd.ok("DELETE", f"{V1}/agents/pg-a")
    assert [a["name"] for a in get(holtd, "/agents?limit=2&cursor=pg-a")["agents"]] == ["pg-b", "pg-c"]
    others = [project(holtd) for _ in range(3)]
    page = get(holtd, f"/projects?limit=1&cursor={p}")
    holtd.ok("DELETE", f"{V1}/projects/{others[0]}")
    assert [x["id"] for x in get(holtd, f"/projects?cursor={page['cursor']}")["projects"]] == others[1:]


def test_tasks(holtd):
    p = project(holtd)
    x = agent(holtd, "tia", capabilities=["code"])["token"]
    y = agent(holtd, "udo")["token"]
    first = task(holtd, p, "one", priority="P0", capabilities=["code"], description="d")  # task.create
    second = task(holtd, p, "two", parent=first, reviews=1)
    assert [k["id"] for k in get(holtd, f"/tasks?project={p}")["tasks"]] == [first, second]  # task.list
    page = get(holtd, f"/tasks?project={p}&limit=1")
    assert [k["id"] for k in get(holtd, f"/tasks?project={p}&cursor={page['cursor']}")["tasks"]] == [second]
    k = get(holtd, f"/tasks/{first}")  # task.get
    assert k["subtasks"] == [second] and k["priority"] == "P0" and k["status"] == "backlog" and k["reviews"] == 0
    assert get(holtd, f"/tasks/{second}")["reviews"] == 1 and get(holtd, f"/tasks/{second}")["parent"] == first
    assert [k["id"] for k in get(holtd, f"/projects/{p}/ready?agent=tia")["tasks"]] == [first, second]  # task.ready
    assert refusal(holtd, "POST", f"/tasks/{first}/claim", {"agent": "tia"}, y)[0] == 403
    assert refusal(holtd, "POST", f"/tasks/{first}/assign", {"agent": "udo"}, y)[0] == 403
    done = post(holtd, f"/tasks/{first}/claim", {"agent": "tia"}, x)  # task.claim
    assert done["approval"] is None and done["task"]["status"] == "ready" and done["task"]["claimed_by"] == "tia"
    assert refusal(holtd, "POST", f"/tasks/{first}/claim", {"agent": "udo"}, y)[:2] == (409, "conflict")
    assert post(holtd, f"/tasks/{first}/move", {"status": "in_progress", "note": "go"}, x)["task"]["status"] == "in_progress"  # task.move
    status, code, text = refusal(holtd, "POST", f"/tasks/{first}/move", {"status": "done"}, x)
    assert (status, code) == (412, "precondition") and "→" in text
    steps = get(holtd, f"/tasks/{first}/history")["moves"]  # task.history
    assert [(s["from"], s["to"], s["by"]) for s in steps][-1] == ("ready", "in_progress", "tia") and steps[-1]["note"] == "go"
    assert post(holtd, f"/tasks/{second}/assign", {"agent": "udo"})["task"]["assigned_to"] == "udo"  # task.assign
    assert post(holtd, f"/tasks/{second}/reviewers", {"agent": "tia"})["task"]["reviewers"] == ["tia"]  # task.review
    assert post(holtd, f"/tasks/{second}/unassign")["task"]["status"] == "backlog"  # task.unassign
    assert get(holtd, "/tasks?agent=tia")["tasks"][0]["id"] == first and get(holtd, f"/tasks?project={p}&status=done")["tasks"] == []
    assert refusal(holtd, "GET", "/tasks?project=pj_none")[0] == 404 and refusal(holtd, "GET", "/tasks/cd_none")[0] == 404
    # the hub sees the same task
    assert call(holtd.url, "GET", f"/projects/{p}/tasks/{first}", token=holtd.token)[1]["status"] == "in_progress"


def test_messages(holtd):
    a, b = agent(holtd, "mia")["token"], agent(holtd, "ned")["token"]
    m = post(holtd, "/messages", {"to": "ned", "content": "hello"}, a, 201)  # message.send
    assert m["from"] == "mia" and m["type"] == "text" and m["acknowledged"] is False
    assert refusal(holtd, "POST", "/messages", {"to": "ned", "content": "https://evil.com"}, a)[:2] == (400, "invalid")
    assert [x["content"] for x in get(holtd, "/messages?unread=true", b)["messages"]] == ["hello"]  # message.inbox
    assert refusal(holtd, "GET", "/messages?agent=ned", None, a)[0] == 403
    assert holtd.request("POST", f"{V1}/messages/{m['id']}/ack", {}, token=b)[0] == 204  # message.ack
    assert get(holtd, "/messages?agent=ned&unread=true")["messages"] == []
    assert [x["id"] for x in get(holtd, "/messages/history?a=ned&b=mia", a)["messages"]] == [m["id"]]  # message.history
    assert {"from": "mia", "to": "ned", "count": 1} in get(holtd, "/messages/graph")["edges"]  # message.graph
    assert refusal(holtd, "POST", "/messages/ms_none/ack", {}, b)[0] == 404


def test_message_rate(new_holtd):
    d = new_holtd("--message-rate", "2")
    for _ in range(2):
        post(d, "/messages", {"to": "x", "content": "y"}, want=201)
    status, reply, headers = d.request("POST", f"{V1}/messages", {"to": "x", "content": "y"})
    assert status == 429 and reply["error"]["code"] == "limit" and 0 < int(headers["Retry-After"]) <= 60


def test_approvals(holtd):
    p = project(holtd)
    t = agent(holtd, "adi", mode="advisory")["token"]
    k = task(holtd, p)
    asked = post(holtd, f"/tasks/{k}/claim", {"agent": "adi"}, t)
    assert asked["approval"].startswith("ap_") and asked["task"]["claimed_by"] is None
    listed = get(holtd, "/approvals?state=pending&agent=adi")["approvals"]  # approval.list
    assert [(x["id"], x["kind"], x["action"], x["task_id"]) for x in listed] == [(asked["approval"], "proposal", "claim", k)]
    assert get(holtd, f"/approvals/{asked['approval']}", t)["state"] == "pending"  # approval.get
    assert refusal(holtd, "POST", f"/approvals/{asked['approval']}/approve", {}, t)[0] == 403
    yes = post(holtd, f"/approvals/{asked['approval']}/approve", {"reason": "fine"})  # approval.approve
    assert yes["state"] == "approved" and yes["reason"] == "fine" and yes["decided_at"]
    assert get(holtd, f"/tasks/{k}")["claimed_by"] == "adi"
    assert refusal(holtd, "POST", f"/approvals/{asked['approval']}/deny")[:2] == (409, "conflict")
    asked = post(holtd, f"/tasks/{k}/move", {"status": "in_progress"}, t)
    assert get(holtd, f"/approvals/{asked['approval']}")["to"] == "in_progress"
    assert post(holtd, f"/approvals/{asked['approval']}/deny")["state"] == "rejected"  # approval.deny
    assert get(holtd, f"/tasks/{k}")["status"] == "ready"


def test_a_prompt_is_answered(holtd):
    box = post(holtd, "/sandboxes")["id"]
    s = Session(holtd, box, "asks", ["sh", "-c", "printf 'Sure? (y/n) '; read a; echo got $a; sleep 1000"])
    [asked] = wait_for(lambda: get(holtd, f"/approvals?kind=prompt&state=pending&sandbox={box}")["approvals"])
    reply = post(holtd, f"/approvals/{asked['id']}/answer", {"text": "y"})  # approval.answer
    assert reply["state"] == "approved" and reply["choice"] == "y"
    s.wait_text("got y")
    holtd.ok("DELETE", f"{V1}/sandboxes/{box}")


def test_creating_twice_with_one_key(holtd):
    def create(path, body, key):
        return holtd.request("POST", V1 + path, body, headers={"Idempotency-Key": key})

    first, again = (create("/projects", {"name": "once"}, "k1") for _ in range(2))
    assert first[0] == again[0] == 201 and first[1]["id"] == again[1]["id"] and again[2]["Idempotency-Replayed"] == "true"
    assert [x["name"] for x in get(holtd, "/projects?limit=1000")["projects"]].count("once") == 1
    t = agent(holtd, "keyed")["token"]
    made = [holtd.request("POST", f"{V1}/projects", {"name": "keyed"}, token=t, headers={"Idempotency-Key": "k1"}) for _ in range(2)]
    assert [m[0] for m in made] == [201, 201] and made[0][1] == made[1][1] and made[0][1]["creator"] == "keyed"
    assert create("/agents", {"name": "once"}, "k2")[0] == 201
    status, reply, _ = create("/agents", {"name": "once"}, "k2")  # its token was shown once
    assert status == 409 and "agent/once" in json.dumps(reply)


def test_refusals_and_reads_are_in_the_audit_log(holtd):
    t = agent(holtd, "audrey")["token"]
    assert refusal(holtd, "POST", "/agents/audrey/pause", {}, t)[0] == 403
    get(holtd, "/messages?agent=audrey")

    def there():
        log = call(holtd.url, "GET", "/audit/log", token=holtd.token, query={"limit": 1000})[1]
        objects = {(x["object"], x["action"]) for x in log}
        return {("operation/agent.pause", "request.refused"), ("operation/message.inbox", "request.read")} <= objects

    wait_for(there)


# --- the command line ---


def holt(d, *args, stdin=None, status=0):
    env = environment({"HOLT_SERVER": d.url, "HOLT_TOKEN": d.token})
    r = subprocess.run([f"{BUILD}/holt", *args], input=stdin, capture_output=True, env=env, timeout=60, check=False)
    assert r.returncode == status, (args, r.returncode, r.stderr.decode())
    return r.stdout.decode() if status == 0 else r.stderr.decode()


def cut(text):
    return [re.split(r"  +", line.strip()) for line in text.splitlines()]


def test_command_line(holtd, tmp_path):
    assert "holt_" in holt(holtd, "agent", "register", "cli", "--type", "coder", "--capabilities", "code")
    assert [r[0] for r in cut(holt(holtd, "agent", "ls", "--capability", "code"))][0] == "NAME"
    assert "cli" in holt(holtd, "agent", "ls")
    p = json.loads(holt(holtd, "project", "create", "from the cli", "-o", "json"))["id"]
    k = json.loads(holt(holtd, "board", "add", p, "Fix the parser", "--priority", "P0", "-o", "json"))["id"]
    other = json.loads(holt(holtd, "board", "add", p, "Write docs", "-o", "json"))["id"]
    holt(holtd, "board", "claim", k, "cli")
    holt(holtd, "board", "move", k, "in_progress")
    rows = holt(holtd, "board", "show", p).splitlines()
    assert re.split(r"  +", rows[0].strip()) == ["BACKLOG", "READY", "IN PROGRESS", "IN REVIEW", "BLOCKED", "DONE"]
    assert f"P2 Write docs {other}" in rows[1] and f"P0 Fix the parser (cli) {k}" in rows[1]
    assert rows[1].index("P2 Write") == rows[0].index("BACKLOG") and rows[1].index("P0 Fix") == rows[0].index("IN PROGRESS")
    lanes = holt(holtd, "board", "show", p, "--lanes").splitlines()
    assert lanes[0].split()[0] == "LANE" and {line.split()[0] for line in lanes[1:]} == {"cli", "-"}
    assert json.loads(holt(holtd, "board", "show", p, "-o", "json"))["tasks"][0]["id"] == k
    assert "pj_none" in holt(holtd, "board", "show", "pj_none", status=2)
    holt(holtd, "msg", "send", "cli", "hello there")
    assert "hello there" in holt(holtd, "msg", "ls", "cli", "--unread")
    f = tmp_path / "plan.md"
    f.write_bytes(b"plan\n" * 100)
    assert "docs/plan.md" in holt(holtd, "project", "put", p, "docs/plan.md", str(f))
    holt(holtd, "project", "put", p, "docs/plan.md", "-", stdin=b"v2")
    assert holt(holtd, "project", "cat", p, "docs/plan.md") == "v2"
    assert holt(holtd, "project", "cat", p, "docs/plan.md", "--version", "1") == "plan\n" * 100
    assert "docs/plan.md" in holt(holtd, "project", "files", p)
    holt(holtd, "agent", "set", "cli", "--mode", "advisory")
    t = json.loads(holt(holtd, "agent", "register", "cli", "--mode", "advisory", "-o", "json"))["token"]
    ask = post(holtd, f"/tasks/{k}/move", {"status": "in_review"}, t)["approval"]
    assert ask in holt(holtd, "approval", "ls", "--state", "pending")
    assert "rejected" in holt(holtd, "approval", "deny", ask, "--reason", "not yet")
    assert "paused" in holt(holtd, "agent", "pause", "cli", "--reason", "r") and "paused" not in holt(holtd, "agent", "resume", "cli")
