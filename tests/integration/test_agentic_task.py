"""agentic-sandbox's tasks and storage: the seed's lines as printed, with a git server and a stand-in for Claude Code."""
import json
import os
import subprocess

import pytest

from daemon import wait_for
from git_server import BACKEND
from test_task import repo, sse, start  # noqa: F401 (repo is a fixture)

pytestmark = pytest.mark.skipif(not os.path.exists(BACKEND), reason="git is not installed: make deps")
NAMES = {"git.test": ["127.0.0.1"]}
API = "/api/v1"
SUBMIT = """curl -X POST http://localhost:8122/api/v1/tasks \\
-H "Content-Type: application/json" \\
-d '{
"manifest": {
"version": "1",
"kind": "Task",
"metadata": {
"id": "",
"name": "Refactor authentication"
},
"repository": {
"url": "https://github.com/myorg/myapp.git",
"branch": "main"
},
"claude": {
"prompt": "Refactor the authentication module to use JWT refresh tokens",
"model": "claude-sonnet-4-5-20250929"
},
"lifecycle": {
"timeout": "2h"
}
}
}'"""


@pytest.fixture(scope="module")
def holtd(tmp_path_factory, names):
    d = start(tmp_path_factory.mktemp("agentic"), names)
    yield d
    d.clear()
    assert d.stop() == 0, d.log()[-4000:]


def shell(holtd, line):
    """The line as printed, but for the server's address, and with a token."""
    line = line.replace("http://localhost:8122", holtd.url).replace("curl ", f"curl -sS -H 'Authorization: Bearer {holtd.token}' ", 1)
    r = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=120, check=False)
    assert r.returncode == 0, r.stderr
    return r.stdout


def ended(holtd, task):
    return wait_for(lambda: (t := holtd.ok("GET", f"{API}/tasks/{task}"))["state"] in ("completed", "failed", "cancelled") and t, 60)


def test_the_seeds_lines_as_printed(holtd, repo):  # noqa: F811
    line = SUBMIT.replace("https://github.com/myorg/myapp.git", repo.url).replace("JWT refresh tokens", "JWT refresh tokens, and ask")
    made = json.loads(shell(holtd, line))
    task = made["task_id"]
    assert made["accepted"] is True and task and made["links"]["logs"] == f"/api/v1/tasks/{task}/logs"

    def pending():
        rows = json.loads(shell(holtd, "curl http://localhost:8122/api/v1/hitl"))["requests"]
        return [h for h in rows if "Proceed with the change?" in h["prompt"]]
    hitl = wait_for(pending, 60)[0]
    now = json.loads(shell(holtd, f"curl http://localhost:8122/api/v1/tasks/{task}"))
    assert now["state"] == "running" and now["progress"]["current_tool"] == "Edit" and now["vm_name"].startswith("task-")
    shell(holtd, f"""curl -X POST http://localhost:8122/api/v1/hitl/{hitl['hitl_id']}/respond \\
-H "Content-Type: application/json" \\
-d '{{"response": "yes, update all callers"}}'""")
    log = shell(holtd, f"curl http://localhost:8122/api/v1/tasks/{task}/logs")
    assert log.rstrip().endswith("event: completed\ndata: 0")
    assert ended(holtd, task)["state"] == "completed"
    rows = json.loads(shell(holtd, f"curl http://localhost:8122/api/v1/tasks/{task}/artifacts"))
    assert rows["task_id"] == task and rows["total_count"] == len(rows["artifacts"])
    assert {"SUMMARY.md", "answer.txt", f"{task}.patch"} <= {a["name"] for a in rows["artifacts"]}
    with open(f"{holtd.state}/agentshare/outbox/{task}/answer.txt", encoding="utf-8") as f:
        assert f.read() == "answer: yes, update all callers\n"
    assert holtd.ok("GET", f"{API}/tasks/{task}/artifacts/SUMMARY.md") == "summary\n"


def test_every_form_of_a_manifest_is_taken(holtd, repo):  # noqa: F811
    m = {"version": "1", "kind": "Task", "metadata": {"id": "", "name": "forms"}, "repository": {"url": repo.url, "branch": "main"},
         "claude": {"prompt": "go"}}
    text = f'version: "1"\nkind: Task\nmetadata: {{id: "", name: forms}}\nrepository: {{url: "{repo.url}", branch: main}}\nclaude: {{prompt: go}}\n'
    for body, kind in ((json.dumps({"manifest": m}), "application/json"), (json.dumps({"manifest_yaml": text}), "application/json"),
                       (json.dumps(m), "application/json"), (text, "application/yaml")):
        status, reply, _ = holtd.request("POST", f"{API}/tasks", body.encode(), headers={"Content-Type": kind})
        assert status == 202, reply
        assert ended(holtd, reply["task_id"])["state"] == "completed"
    for body in ({}, {"manifest": {**m, "repository": {}}}, {"manifest": {**m, "claude": {}}}):
        status, reply, _ = holtd.request("POST", f"{API}/tasks", body)
        assert status == 400 and reply["accepted"] is False and reply["task_id"] == "" and reply["error"], reply


def test_list_cancel_and_unknown_ones(holtd, repo):  # noqa: F811
    m = {"metadata": {"id": "to-cancel", "name": "x"}, "repository": {"url": repo.url, "branch": "main"}, "claude": {"prompt": "hang"}}
    assert holtd.request("POST", f"{API}/tasks", {"manifest": m})[1]["task_id"] == "to-cancel"
    wait_for(lambda: holtd.ok("GET", f"{API}/tasks/to-cancel")["state"] == "running")
    page = holtd.ok("GET", f"{API}/tasks?state=running,pending&limit=1")
    assert page["total_count"] == 1 and page["tasks"][0]["id"] == "to-cancel" and page["has_more"] is False
    assert page["tasks"][0]["definition"]["claude"] == {"prompt": "hang"}
    assert holtd.request("POST", f"{API}/tasks", {"manifest": m})[0] == 409
    assert holtd.ok("GET", f"{API}/health")["tasks"] == {"running": 1, "pending": 0}
    assert holtd.ok("DELETE", f"{API}/tasks/to-cancel") == {"success": True, "previous_state": "running", "new_state": "cancelled"}
    assert holtd.request("DELETE", f"{API}/tasks/to-cancel")[0] == 400
    assert sse(holtd, f"{API}/tasks/to-cancel/logs")[-1][1] in ("completed", "error")
    assert holtd.request("GET", f"{API}/tasks/none")[:2] == (404, {"error": "Task not found"})
    status, reply, _ = holtd.request("DELETE", f"{API}/tasks/none")
    assert status == 404 and reply["success"] is False
    wait_for(lambda: not holtd.ok("GET", "/holt/v1/sandboxes")["sandboxes"])


def test_storage(holtd):
    up = {"headers": {"Content-Type": "application/octet-stream"}}
    assert holtd.ok("POST", f"{API}/storage/global?path=prompts/a.md", b"hello", **up) == {"path": "prompts/a.md", "bytes_written": 5}
    rows = holtd.ok("GET", f"{API}/storage/global?path=prompts")["entries"]
    assert [(e["name"], e["kind"], e["size_bytes"], e["mode"]) for e in rows] == [("a.md", "file", 5, "0644")]
    assert holtd.ok("GET", f"{API}/storage/global/_download?path=prompts/a.md") == "hello"
    for path in ("/etc/passwd", "../holt.db", "prompts/../../x", "prompts//a.md", "."):
        assert holtd.request("GET", f"{API}/storage/global/_download?path={path}")[0] == 400, path
    os.symlink("/etc", f"{holtd.state}/agentshare/global/link")
    assert holtd.request("GET", f"{API}/storage/global/_download?path=link/passwd")[0] == 400
    assert holtd.request("GET", f"{API}/storage/global?path=none")[0] == 404
    one, two = (holtd.ok("POST", "/holt/v1/tokens", {"name": n, "role": "agent", "agent": n})["token"] for n in ("a", "b"))
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"name": "agent-a"}, token=one)
    assert holtd.request("POST", f"{API}/storage/inbox/{box['id']}?path=in.txt", b"1", token=one, **up)[0] == 200
    assert holtd.request("GET", f"{API}/storage/inbox/{box['id']}/_download?path=in.txt", token=one)[1] == "1"
    assert holtd.request("GET", f"{API}/storage/inbox/{box['id']}", token=two)[0] in (403, 404)
    assert holtd.request("POST", f"{API}/storage/inbox/agent-a?path=named.txt", b"2", token=one, **up)[0] == 200
    holtd.ok("POST", "/holt/v1/sandboxes", {"name": "agent-a"}, token=two)  # a name is its owner's: not the way to another's files
    assert holtd.request("GET", f"{API}/storage/inbox/agent-a/_download?path=named.txt", token=two)[0] == 404
    assert [e["name"] for e in holtd.ok("GET", f"{API}/storage/inbox/agent-a", token=one)["entries"]] == ["in.txt", "named.txt"]
    task = {"manifest": {"version": "1", "kind": "Task", "metadata": {"id": box["id"], "name": "x"}, "agent": {"command": "true"}}}
    assert holtd.request("POST", "/holt/v1/task-runs", task, token=two)[0] == 400  # nor is a task with that id
    assert holtd.request("GET", f"{API}/storage/inbox/{box['id']}/_download?path=in.txt", token=two)[0] in (403, 404)
    assert holtd.request("POST", f"{API}/storage/global?path=x", b"1", token=one, **up)[0] == 403
    assert holtd.request("GET", f"{API}/storage/outbox/none", token=one)[0] == 404
