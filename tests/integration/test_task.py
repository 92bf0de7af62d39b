"""Tasks: from a manifest to artifacts, with a git server on loopback and a stand-in for Claude Code."""
import hashlib
import json
import os
import signal
import subprocess
import time
import urllib.request

import pytest

from daemon import BUILD, all_events, native, wait_for
from git_server import BACKEND, GitServer

pytestmark = pytest.mark.skipif(not os.path.exists(BACKEND), reason="git is not installed: make deps")
NAMES = {"git.test": ["127.0.0.1"]}
RUNS = "/holt/v1/task-runs"
ORDER = ["pending", "staging", "provisioning", "ready", "running", "completing", "completed"]

# Prints what Claude Code prints with --output-format stream-json, does a little work, and asks if it is told to.
CLAUDE = r"""#!/bin/sh
line() { printf '%s\n' "$1"; }
for prompt; do :; done
line '{"type":"system","subtype":"init","session_id":"s1","model":"stand-in"}'
printf '%s\n' "$@" > "$OUTBOX/argv.txt"
pwd > "$OUTBOX/where.txt"
ls -l ~/inbox/ > "$OUTBOX/inbox.txt"
line '{"type":"assistant","message":{"content":[{"type":"text","text":"reading"},{"type":"tool_use","id":"t1","name":"Read","input":{}}],"usage":{"input_tokens":10,"output_tokens":5}}}'
line '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}}'
line '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"Edit","input":{}}],"usage":{"input_tokens":20,"output_tokens":7}}}'
case "$prompt" in
*ask*) printf 'Proceed with the change? (y/n) '; read -r answer; echo "answer: $answer" > "$OUTBOX/answer.txt";;
esac
case "$prompt" in
*fail*) echo 'it went wrong'; exit 3;;
*hang*) sleep 600;;
*wait*) while [ ! -e "$OUTBOX/go" ]; do sleep 0.05; done;;
esac
echo changed > README.md
mkdir -p build/out && echo made > build/out/result.txt && echo new > untracked.txt
echo summary > "$OUTBOX/SUMMARY.md"
line '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"total_cost_usd":0.0125,"usage":{"input_tokens":30,"output_tokens":12}}'
"""


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    g = GitServer(tmp_path_factory.mktemp("git"))
    yield g
    g.close()


def start(directory, names, *args, **more):
    d = native(directory, "--egress-dns", names.address, "--egress-internal", "git.test=127.0.0.0/8", *args, **more)
    tools = f"{d.state}/agentshare/global/bin"
    os.makedirs(tools, exist_ok=True)
    os.chmod(tools, 0o755)
    with open(f"{tools}/claude", "w", encoding="utf-8") as f:
        f.write(CLAUDE)
    os.chmod(f"{tools}/claude", 0o755)
    return d


@pytest.fixture(scope="module")
def holtd(tmp_path_factory, names):
    d = start(tmp_path_factory.mktemp("task"), names)
    yield d
    d.clear()
    assert d.stop() == 0, d.log()[-4000:]


def manifest(repo, prompt="Refactor the authentication module", **more):
    m = {"version": "1", "kind": "Task", "metadata": {"id": "", "name": "Refactor authentication"},
         "repository": {"url": repo.url, "branch": "main"}, "claude": {"prompt": prompt, "model": "claude-sonnet-4-5-20250929"},
         "lifecycle": {"timeout": "2h"}}
    for key, value in more.items():
        m[key] = {**m.get(key, {}), **value} if isinstance(value, dict) else value
    return m


def submit(holtd, m, **more):
    return holtd.ok("POST", RUNS, {"manifest": m, **more})


def get(holtd, t):
    return holtd.ok("GET", f"{RUNS}/{t['id']}")


def wait_state(holtd, t, *states, limit=60):
    def look():
        now = get(holtd, t)
        return now if now["state"] in states else None
    found = wait_for(look, limit)
    assert found, get(holtd, t)
    return found


def ended(holtd, t, state="completed"):
    t = wait_state(holtd, t, "completed", "failed", "failed_preserved", "cancelled")
    assert t["state"] == state, f"{t['state']}: {t['error']}"
    return t


def artifacts(holtd, t):
    return {a["path"]: a for a in holtd.ok("GET", f"{RUNS}/{t['id']}/artifacts")["artifacts"]}


def content(holtd, t, path):
    return holtd.ok("GET", f"{RUNS}/{t['id']}/artifacts/{path}")


def sse(holtd, path, last=None):
    """All events of a stream until it ends: (id, event, data)."""
    h = {"Authorization": f"Bearer {holtd.token}", "Accept": "text/event-stream"}
    if last:
        h["Last-Event-ID"] = last
    with urllib.request.urlopen(urllib.request.Request(holtd.url + path, headers=h), timeout=60) as f:
        text = f.read().decode()
    found = []
    for block in text.split("\n\n"):
        fields = [line.partition(": ") for line in block.split("\n") if line and not line.startswith(":")]
        if fields:
            found.append((next((v for k, _, v in fields if k == "id"), ""), next((v for k, _, v in fields if k == "event"), ""),
                          "\n".join(v for k, _, v in fields if k == "data")))
    return found


def states_of(holtd, t):
    return [e["data"]["state"] for e in all_events(holtd, object=f"task_run/{t['id']}") if e["type"] != "task_run.cleaned"]


def test_a_task_from_its_manifest_to_its_artifacts(holtd, repo):
    t = submit(holtd, manifest(repo, lifecycle={"artifact_patterns": ["**/*.txt", "README.md"]}))
    assert t["state"] == "pending" and t["id"].startswith("tr_") and t["warnings"] == []
    t = ended(holtd, t)
    assert states_of(holtd, t) == ORDER
    assert t["exit_code"] == 0 and t["error"] is None
    assert {k: t["progress"][k] for k in ("tool_calls", "turns", "input_tokens", "output_tokens", "cost_usd", "current_tool")} == {
        "tool_calls": 2, "turns": 2, "input_tokens": 30, "output_tokens": 12, "cost_usd": 0.0125, "current_tool": None}
    argv = content(holtd, t, "argv.txt").split("\n")
    assert argv[:8] == ["-p", "--output-format", "stream-json", "--verbose", "--model", "claude-sonnet-4-5-20250929",
                        "--dangerously-skip-permissions", "--"]
    assert argv[8] == "Refactor the authentication module"
    found = artifacts(holtd, t)
    assert {"SUMMARY.md", "build/out/result.txt", "README.md", "untracked.txt", f"{t['id']}.patch", f"{t['id']}-untracked.txt",
            "metadata.json"} <= set(found)
    assert content(holtd, t, f"{t['id']}-untracked.txt").split() == ["build/out/result.txt", "untracked.txt"]
    patch = content(holtd, t, f"{t['id']}.patch")
    assert "-three" in patch and "+changed" in patch
    for path, a in found.items():
        with open(f"{holtd.state}/agentshare/outbox/{t['id']}/{path}", "rb") as f:
            data = f.read()
        assert (a["size"], a["sha256"]) == (len(data), hashlib.sha256(data).hexdigest()), path
    with open(f"{holtd.state}/agentshare/tasks/{t['id']}/manifest.yaml", encoding="utf-8") as f:
        assert "Refactor authentication" in f.read()
    wait_for(lambda: not holtd.ok("GET", "/holt/v1/sandboxes")["sandboxes"])
    wait_for(lambda: not holtd.ok("GET", "/holt/v1/volumes")["volumes"])


def test_the_inbox_is_read_only_and_current_is_the_workspace(holtd, repo):
    script = ("touch ~/inbox/$TASK_ID/x 2> ~/outbox/refused; touch ~/inbox/$TASK_ID/repo/x 2>> ~/outbox/refused; "
              "touch /mnt/global/x 2>> ~/outbox/refused; cat ~/inbox/current/README.md > ~/outbox/copy; "
              "touch ~/inbox/current/new && cat ~/inbox/$TASK_ID/TASK.md > ~/outbox/task; cd ~/inbox/current && pwd -P > ~/outbox/pwd")
    t = ended(holtd, submit(holtd, {"metadata": {"name": "look"}, "repository": {"url": repo.url, "branch": "main"},
                                    "agent": {"command": script}}))
    assert content(holtd, t, "refused").count("Read-only file system") == 3
    assert content(holtd, t, "copy") == "three\n"
    assert content(holtd, t, "task").startswith("# look")
    assert content(holtd, t, "pwd").strip() == f"/mnt/workspace/{t['id']}"


@pytest.mark.parametrize("repository, text", [({"branch": "other"}, "one"), ({"commit": 1}, "two")])
def test_a_branch_or_a_commit_is_cloned_shallow(holtd, repo, repository, text):
    if "commit" in repository:
        repository = {"commit": repo.commits[1], "branch": "main"}
    m = {"metadata": {"name": "clone"}, "repository": {"url": repo.url, **repository},
         "agent": {"command": "git rev-list --count HEAD > ~/outbox/count; cat README.md > ~/outbox/text"}}
    t = ended(holtd, submit(holtd, m))
    assert content(holtd, t, "text") == f"{text}\n"
    assert content(holtd, t, "count") == "1\n"


def test_a_subpath_is_where_the_agent_works(holtd, repo):
    m = {"metadata": {"name": "sub"}, "repository": {"url": repo.url, "branch": "main", "subpath": "src"},
         "agent": {"command": ["sh", "-c", "ls > ~/outbox/ls"]}}
    assert content(holtd, ended(holtd, submit(holtd, m)), "ls") == "main.txt\n"
    m["repository"]["subpath"] = "nowhere"
    t = ended(holtd, submit(holtd, m), "failed")
    assert "the repository has no directory 'nowhere'" in t["error"] and states_of(holtd, t) == ["pending", "staging", "failed"]


def test_a_wrong_repository_fails_with_what_git_said(holtd, repo):
    t = ended(holtd, submit(holtd, manifest(repo, repository={"branch": "absent"})), "failed")
    assert "couldn't find remote ref refs/heads/absent" in t["error"]
    t = ended(holtd, submit(holtd, manifest(repo, repository={"url": "http://elsewhere.test/x.git"})), "failed")
    assert "the repository could not be cloned" in t["error"]


def test_a_non_zero_exit_fails_and_may_keep_the_sandbox(holtd, repo):
    t = ended(holtd, submit(holtd, manifest(repo, "fail now")), "failed")
    assert t["exit_code"] == 3 and t["error"] == "its command ended with status 3"
    assert "argv.txt" in artifacts(holtd, t)
    wait_for(lambda: not holtd.ok("GET", "/holt/v1/sandboxes")["sandboxes"])
    t = ended(holtd, submit(holtd, manifest(repo, "fail now", lifecycle={"failure_action": "preserve"})), "failed_preserved")
    box = holtd.ok("GET", f"/holt/v1/sandboxes/{t['sandbox']}")
    assert box["state"] == "running"
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{t['sandbox']}")


def test_timeouts_and_hangs_end_a_task(holtd, repo):
    # The clone counts too, and a busy machine takes seconds for one.
    t = ended(holtd, submit(holtd, manifest(repo, "hang", lifecycle={"timeout": "6s"})), "failed")
    assert t["error"] == "it ran longer than 'lifecycle.timeout'"
    t = ended(holtd, submit(holtd, manifest(repo, "hang", lifecycle={"hang_timeout": "1s"})), "failed")
    assert "hang_timeout" in t["error"]


def test_a_cancel_ends_the_command_and_removes_the_sandbox(holtd, repo):
    t = wait_state(holtd, submit(holtd, manifest(repo, "hang")), "running")
    status, now, _ = holtd.request("POST", f"{RUNS}/{t['id']}/cancel", {"reason": "enough"})
    assert status == 200 and now["state"] == "cancelled" and now["error"] == "enough"
    wait_for(lambda: not holtd.ok("GET", "/holt/v1/sandboxes")["sandboxes"])
    status, reply, _ = holtd.request("POST", f"{RUNS}/{t['id']}/cancel", {})
    assert status == 409 and reply["error"]["code"] == "conflict"


def test_a_question_is_answered_through_the_session(holtd, repo):
    t = wait_state(holtd, submit(holtd, manifest(repo, "please ask")), "running")

    def screen():
        s = holtd.request("GET", f"/holt/v1/sandboxes/{t['sandbox']}/sessions/task/screen")[1]
        return "(y/n)" in json.dumps(s)
    wait_for(screen)
    holtd.ok("POST", f"/holt/v1/sandboxes/{t['sandbox']}/sessions/task/send", {"text": "y", "keys": ["Enter"]})
    t = ended(holtd, t)
    assert content(holtd, t, "answer.txt") == "answer: y\n"


def test_logs_are_history_then_live_then_the_end(holtd, repo):
    t = submit(holtd, manifest(repo, "please ask"))
    wait_state(holtd, t, "running")
    wait_for(lambda: get(holtd, t)["progress"]["tool_calls"] == 2)
    follower = subprocess.Popen(["curl", "-sN", "-H", f"Authorization: Bearer {holtd.token}", f"{holtd.url}{RUNS}/{t['id']}/logs"],
                                stdout=subprocess.PIPE, text=True)
    seen = ""
    while "Proceed with the change? (y/n)" not in seen:
        seen += follower.stdout.readline()
    assert "event: event\n" in seen and '"name":"Edit"' in seen
    holtd.ok("POST", f"/holt/v1/sandboxes/{get(holtd, t)['sandbox']}/sessions/task/send", {"text": "n", "keys": ["Enter"]})
    rest = follower.communicate(timeout=60)[0]
    assert rest.rstrip().endswith("event: completed\ndata: 0")
    ended(holtd, t)
    events = sse(holtd, f"{RUNS}/{t['id']}/logs")
    assert events[-1][1:] == ("completed", "0")
    assert [json.loads(e[2])["type"] for e in events if e[1] == "event"] == ["system", "assistant", "user", "assistant", "result"]
    middle = len(events) // 2
    assert sse(holtd, f"{RUNS}/{t['id']}/logs", last=events[middle][0]) == events[middle + 1:]


def test_wrong_manifests_are_refused_with_the_path_of_the_field(holtd, repo):
    for change, words in (({"version": "2"}, "'version' must be \"1\""), ({"kind": "Job"}, "'kind' must be \"Task\""),
                          ({"metadata": {"name": ""}}, "'metadata.name'"), ({"claude": {"prompt": ""}}, "'claude.prompt'"),
                          ({"repository": {"url": "ftp://x"}}, "'repository.url'"), ({"vm": {"network_mode": "x"}}, "'vm.network_mode'"),
                          ({"lifecycle": {"timeout": "soon"}}, "'lifecycle.timeout'"), ({"metadata": {"id": "../x"}}, "'metadata.id'")):
        status, reply, _ = holtd.request("POST", RUNS, {"manifest": manifest(repo, **change)})
        assert status == 400 and words in reply["error"]["message"], (change, reply)
    t = submit(holtd, manifest(repo, "hang", surprise=1, claude={"mood": "good"}))
    assert t["warnings"] == ["unknown field 'surprise' is ignored", "unknown field 'claude.mood' is ignored"]
    holtd.ok("POST", f"{RUNS}/{t['id']}/cancel", {})


def test_ids_of_clients_are_kept_and_unique(holtd, repo):
    t = submit(holtd, manifest(repo, "hang", metadata={"id": "my-task.1"}))
    assert t["id"] == "my-task.1"
    status, reply, _ = holtd.request("POST", RUNS, {"manifest": manifest(repo, metadata={"id": "my-task.1"})})
    assert status == 409 and "'my-task.1' exists already" in reply["error"]["message"]
    holtd.ok("POST", f"{RUNS}/{t['id']}/cancel", {})


def test_retries_run_the_manifest_again(holtd, repo):
    t = ended(holtd, submit(holtd, manifest(repo, "fail", lifecycle={"retries": 1})), "failed")
    again = wait_for(lambda: [x for x in holtd.ok("GET", RUNS + "?limit=1000")["tasks"] if x["retry_of"] == t["id"]])[0]
    again = ended(holtd, again, "failed")
    assert again["attempt"] == 2
    third = ended(holtd, holtd.ok("POST", f"{RUNS}/{again['id']}/retry", {}), "failed")
    assert third["retry_of"] == again["id"] and third["attempt"] == 3


def test_an_idle_sandbox_that_takes_tasks_is_used_and_stays(holtd, repo):
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"labels": {"holt.tasks": "accept"}})
    t = ended(holtd, submit(holtd, {"metadata": {"name": "there"}, "agent": {"command": "hostname > ~/outbox/where; touch ~/inbox/$TASK_ID/x"}}))
    assert t["sandbox"] == box["id"]
    assert holtd.ok("GET", f"/holt/v1/sandboxes/{box['id']}")["state"] == "running"
    assert "where" in artifacts(holtd, t)
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{box['id']}")


def test_a_task_may_name_its_sandbox(holtd):
    """Tasks of one sandbox wait for one another, and find it as the first one did."""
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"name": "named"})
    command = {"command": "printf \"$WORD\" > ~/outbox/word; while [ \"$WORD\" = first ] && [ ! -e /tmp/go ]; do sleep 0.05; done", "env": {"WORD": "first"}}
    first = submit(holtd, {"metadata": {"name": "first"}, "agent": command, "sandbox": {"id": "named"}})
    second = submit(holtd, {"metadata": {"name": "second"}, "agent": {**command, "env": {"WORD": "second"}}, "sandbox": {"id": box["id"]}})
    wait_state(holtd, first, "running")
    assert get(holtd, second)["state"] == "pending"
    holtd.ok("POST", f"/holt/v1/sandboxes/{box['id']}/execs", {"command": ["touch", "/tmp/go"]})
    for t, word in ((first, "first"), (second, "second")):
        assert ended(holtd, t)["sandbox"] == box["id"] and content(holtd, t, "word") == word
    status, reply, _ = holtd.request("POST", RUNS, {"manifest": {"metadata": {"name": "x"}, "agent": command, "sandbox": {"id": "no-such"}}})
    assert status == 404 and "sandbox.id" in reply["error"]["message"], reply
    left = submit(holtd, {"metadata": {"name": "left"}, "agent": {"command": "sleep 600"}, "sandbox": {"id": "named"}})
    wait_state(holtd, left, "running")
    waiting = submit(holtd, {"metadata": {"name": "waiting"}, "agent": {"command": "true"}, "sandbox": {"id": "named"}})
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{box['id']}")
    ended(holtd, left, "failed")
    assert "gone" in ended(holtd, waiting, "failed")["error"]


def test_children_run_at_a_time_as_their_parent_says(holtd, repo):
    go = "while [ ! -e ~/outbox/go ]; do sleep 0.05; done; echo done > ~/outbox/out.txt"
    parent = submit(holtd, {"metadata": {"name": "parent"}, "agent": {"command": "true"},
                            "children": {"max_concurrent": 1, "wait_for_children": True, "aggregate_artifacts": True}})
    kids = [submit(holtd, {"metadata": {"name": f"child {n}"}, "agent": {"command": go}, "parent_id": parent["id"]}) for n in range(2)]
    first = wait_state(holtd, kids[0], "running")
    wait_state(holtd, parent, "completing", "ready", "running")
    assert get(holtd, kids[1])["state"] == "pending"
    holtd.ok("PUT", f"/holt/v1/sandboxes/{first['sandbox']}/files?path=/mnt/outbox/go", b"", headers={"Content-Type": "application/octet-stream"})
    ended(holtd, kids[0])
    second = wait_state(holtd, kids[1], "running")
    assert get(holtd, parent)["state"] == "completing"
    holtd.ok("PUT", f"/holt/v1/sandboxes/{second['sandbox']}/files?path=/mnt/outbox/go", b"", headers={"Content-Type": "application/octet-stream"})
    ended(holtd, parent)
    assert content(holtd, parent, f"children/{kids[0]['id']}/out.txt") == "done\n"
    status, reply, _ = holtd.request("POST", RUNS, {"manifest": {"metadata": {"name": "x"}, "agent": {"command": "true"}, "parent_id": "none"}})
    assert status == 404 and "parent_id" in reply["error"]["message"]


def test_the_queue_serves_priorities_within_the_limits(tmp_path, names, repo):
    d = start(tmp_path, names, "--tasks-running", "1")
    try:
        first = wait_state(d, submit(d, {"metadata": {"name": "first"}, "agent": {"command": "sleep 600"}}), "running")
        low, high = (submit(d, {"metadata": {"name": n}, "agent": {"command": "true"}, "priority": p}) for n, p in (("low", -5), ("high", 5)))
        d.ok("POST", f"{RUNS}/{first['id']}/cancel", {})
        low, high = ended(d, low), ended(d, high)
        assert high["started_at"] < low["started_at"]
    finally:
        d.clear()
        assert d.stop() == 0


def test_a_schedule_submits_its_task(holtd):
    m = {"metadata": {"name": "nightly"}, "agent": {"command": "true"}}
    s = holtd.ok("POST", "/holt/v1/task-schedules", {"name": "often", "cron": "* * * * *", "manifest": m})
    assert s["next_at"]
    status, reply, _ = holtd.request("POST", "/holt/v1/task-schedules", {"name": "x", "cron": "61 * * * *", "manifest": m})
    assert status == 400 and "minute '61'" in reply["error"]["message"]
    made = wait_for(lambda: holtd.ok("GET", "/holt/v1/task-schedules")["schedules"][0]["last_task"], 90)
    ended(holtd, {"id": made})
    assert holtd.request("DELETE", f"/holt/v1/task-schedules/{s['id']}")[0] == 204


@pytest.mark.parametrize("state", ["pending", "staging", "provisioning", "ready", "running", "completing"])
def test_a_killed_daemon_goes_on_in_every_state(tmp_path, names, repo, state):
    """The command appends a line each time it runs: it must run once, whatever is killed when."""
    d = start(tmp_path, names)
    port = d.port
    script = "echo ran >> ~/outbox/runs; echo started; while [ ! -e ~/outbox/go ]; do sleep 0.05; done; echo finished"
    try:
        t = submit(d, {"metadata": {"name": "kill"}, "repository": {"url": repo.url, "branch": "main"}, "agent": {"command": script}})
        if state == "completing":
            now = wait_state(d, t, "running")
            d.ok("PUT", f"/holt/v1/sandboxes/{now['sandbox']}/files?path=/mnt/outbox/go", b"",
                 headers={"Content-Type": "application/octet-stream"})
        if state != "pending":
            wanted = ORDER[ORDER.index(state):]
            wait_for(lambda: get(d, t)["state"] in wanted)
        os.kill(d.pid, signal.SIGKILL)
        d.process.wait()
        d = native(tmp_path, "--egress-dns", names.address, "--egress-internal", "git.test=127.0.0.0/8", port=port)
        if state != "completing":
            now = wait_state(d, t, "running")
            wait_for(lambda: get(d, t)["progress"]["output_bytes"] > 0)
            d.ok("PUT", f"/holt/v1/sandboxes/{now['sandbox']}/files?path=/mnt/outbox/go", b"",
                 headers={"Content-Type": "application/octet-stream"})
        t = ended(d, t)
        assert content(d, t, "runs") == "ran\n"
        text = "".join(e[2] for e in sse(d, f"{RUNS}/{t['id']}/logs") if e[1] == "stdout")
        assert text == "startedfinished"
        wait_for(lambda: not d.ok("GET", "/holt/v1/volumes")["volumes"])
    finally:
        d.clear()
        assert d.stop() == 0, d.log()[-4000:]


def test_a_card_follows_the_task_that_works_on_it(holtd):
    project = holtd.ok("POST", "/holt/v1/projects", {"name": "app", "creator": "human"})["id"]
    for command, column in (("true", "in_review"), ("exit 3", "blocked")):
        card = holtd.ok("POST", "/holt/v1/tasks", {"project": project, "title": "work", "created_by": "human"})
        card = card.get("task", card)
        t = submit(holtd, {"metadata": {"name": "card"}, "agent": {"command": command}}, card=card["id"])
        assert wait_state(holtd, t, "completed", "failed")["card"] == card["id"]
        wait_for(lambda: holtd.ok("GET", f"/holt/v1/tasks/{card['id']}")["status"] == column)
        moves = [m["to"] for m in holtd.ok("GET", f"/holt/v1/tasks/{card['id']}/history")["moves"]]
        assert moves[-2:] == ["in_progress", column]


def test_a_task_moves_no_card_that_its_owner_may_not_move(holtd):
    """A manifest names any card: the rules of the board are those for the task's owner."""
    project = holtd.ok("POST", "/holt/v1/projects", {"name": "theirs", "creator": "human"})["id"]
    card = holtd.ok("POST", "/holt/v1/tasks", {"project": project, "title": "work", "created_by": "human"})
    card = card.get("task", card)["id"]
    tokens = [{"name": "mallory", "role": "agent", "agent": "mallory"}, {"name": "of-tc", "role": "operator", "tenant": "tc"}]
    for body in tokens:
        token = holtd.ok("POST", "/holt/v1/tokens", body)["token"]
        t = holtd.ok("POST", RUNS, {"manifest": {"metadata": {"name": "card"}, "agent": {"command": "true"}}, "card": card}, token=token)
        wait_state(holtd, t, "completed", "failed")
    holtd.ok("POST", "/holt/v1/projects", {"name": "after", "creator": "human"})  # writes keep their order
    assert holtd.ok("GET", f"/holt/v1/tasks/{card}")["status"] == "backlog"
    assert not [m for m in holtd.ok("GET", f"/holt/v1/tasks/{card}/history")["moves"] if m["to"] != "backlog"]


def test_tasks_go_to_sandboxes_of_their_tenant(holtd):
    """One of another tenant offers itself: it would see the task, and make its results."""
    token = holtd.ok("POST", "/holt/v1/tokens", {"name": "of-td", "role": "operator", "tenant": "td"})["token"]
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"labels": {"holt.tasks": "accept"}}, token=token)
    t = ended(holtd, submit(holtd, {"metadata": {"name": "ours"}, "agent": {"command": "true"}}))
    assert t["sandbox"] != box["id"]
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{box['id']}")


def test_an_agents_tasks_are_its_own(holtd, repo):
    one, two = (holtd.ok("POST", "/holt/v1/tokens", {"name": n, "role": "agent", "agent": n})["token"] for n in ("a", "b"))
    t = holtd.ok("POST", RUNS, {"manifest": {"metadata": {"name": "mine"}, "agent": {"command": "true"}}}, token=one)
    assert holtd.request("GET", f"{RUNS}/{t['id']}", token=one)[0] == 200
    assert holtd.request("GET", f"{RUNS}/{t['id']}", token=two)[0] == 403
    assert t["id"] not in [x["id"] for x in holtd.ok("GET", RUNS, token=two)["tasks"]]
    assert holtd.request("GET", f"{RUNS}/{t['id']}/artifacts/..%2f..%2fmanifest.yaml", token=one)[0] == 400
    ended(holtd, t)


def test_the_command_line(holtd, repo, tmp_path):
    def holt(*args, status=0):
        r = subprocess.run([f"{BUILD}/holt", "--server", holtd.url, *args], env={**os.environ, "HOLT_TOKEN": holtd.token},
                           capture_output=True, text=True, timeout=60, check=False)
        assert r.returncode == status, f"{args}: {r.returncode} {r.stdout}{r.stderr}"
        return r.stdout
    with open(tmp_path / "task.json", "w", encoding="utf-8") as f:
        json.dump(manifest(repo), f)
    t = json.loads(holt("task", "run", "-f", str(tmp_path / "task.json"), "--wait", "-o", "json"))
    assert t["state"] == "completed"
    assert t["id"] in holt("task", "ls", "--state", "completed")
    assert "SUMMARY.md" in holt("task", "artifacts", t["id"])
    assert holt("task", "download", t["id"], "SUMMARY.md") == "summary\n"
    assert '"name":"Edit"' in holt("task", "logs", t["id"])
    out = holt("task", "run", "--name", "echo", "--follow", "-o", "json", "--", "echo", "hello there")
    assert out.startswith("hello there\n") and '"completed"' in out
    assert '"failed"' in holt("task", "run", "--name", "no", "--wait", "-o", "json", "--", "false", status=1)
    holt("task", "schedule", "n", "0 3 * * *", "-f", str(tmp_path / "task.json"))
    s = json.loads(holt("task", "schedules", "-o", "json"))["schedules"][-1]
    assert s["next_at"].endswith("T03:00:00.000Z")
    holt("task", "unschedule", s["id"])


def test_usage_is_summed_for_each_user(holtd, repo):
    m = manifest(repo, metadata={"labels": {"user": "usage-alice"}}, sandbox={"memory": "512M"})
    tasks = [ended(holtd, submit(holtd, m)) for _ in range(2)]
    bad = manifest(repo, prompt="fail", metadata={"labels": {"user": "usage-alice"}})
    tasks.append(ended(holtd, submit(holtd, bad), "failed"))
    rows = holtd.ok("GET", "/holt/v1/usage?user=usage-alice")["users"]
    assert len(rows) == 1
    u = rows[0]
    assert (u["user"], u["tasks"], u["completed"], u["failed"]) == ("usage-alice", 3, 2, 1), u
    assert u["input_tokens"] == sum(t["progress"]["input_tokens"] for t in tasks) > 0 and u["output_tokens"] == sum(t["progress"]["output_tokens"] for t in tasks)
    assert u["cost_microusd"] == 25000 and 0 <= u["cpu_ms"] - sum(t["cpu_ms"] for t in tasks) <= 3 and u["wall_ms"] > 0
    assert holtd.ok("GET", "/holt/v1/usage?since=2099-01-01T00:00:00Z")["users"] == []
    assert {"usage-alice"} < {r["user"] for r in holtd.ok("GET", "/holt/v1/usage")["users"]} | {"x"}
