"""One rule for every creating request: the Idempotency-Key belongs to its sender, the same request is carried out once and
another one under the key is refused; on the native API, sbx, hub and agentbox, and whatever dies."""
import json
import re
import sqlite3
import subprocess

import grpc
import pytest

from agentbox_client import Sandbox
from daemon import BUILD, ROOT, native, wait_for

API = "/holt/v1"


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("keys"))
    yield d
    d.clear()
    assert d.stop() == 0


@pytest.fixture
def box(holtd):
    made = holtd.ok("POST", f"{API}/sandboxes", {})
    yield f"{API}/sandboxes/{made['id']}"
    holtd.ok("DELETE", f"{API}/sandboxes/{made['id']}")


def post(d, path, body, key, **more):
    status, reply, headers = d.request("POST", path, body, headers={"Idempotency-Key": key}, **more)
    return status, reply, headers.get("Idempotency-Replayed") == "true"


def lines(d, box, name="/tmp/n"):
    return d.ok("POST", f"{box}/execs", {"command": f"wc -l < {name}"})["stdout"].strip()


def test_a_command_runs_once(holtd, box):
    body = {"command": "echo x >> /tmp/n; cat", "stdin": "in", "env": {"A": "1"}}
    first, again = (post(holtd, f"{box}/execs", body, "k") for _ in range(2))
    assert (first[0], first[2]) == (200, False) and (again[0], again[2]) == (200, True)
    assert first[1] == again[1] and again[1]["stdout"] == "in" and lines(holtd, box) == "1"
    other = post(holtd, f"{box}/execs", {**body, "stdin": "other"}, "k")
    assert other[0] == 409 and "another request" in other[1]["error"]["message"]
    token = holtd.new_token("second")["token"]  # a key of somebody else is another key
    assert post(holtd, f"{box}/execs", body, "k", token=token)[1]["id"] != first[1]["id"]
    assert lines(holtd, box) == "2"


def test_a_running_command_is_joined_and_gets_no_input_twice(holtd, box):
    body = {"command": "cat; echo x >> /tmp/n", "stdin": "once\n", "stdin_open": True, "background": True}
    first = post(holtd, f"{box}/execs", body, "j")
    again = post(holtd, f"{box}/execs", body, "j")
    assert (first[0], again[0]) == (202, 202) and again[1]["id"] == first[1]["id"] and again[1]["state"] == "running"
    x = f"{box}/execs/{first[1]['id']}"
    assert holtd.request("POST", f"{x}/stdin?eof=true", b"", headers={"Content-Type": "application/octet-stream"})[0] == 204
    wait_for(lambda: holtd.ok("GET", x)["state"] == "exited")
    assert holtd.ok("GET", f"{x}/output?stream=stdout") == "once\n"


def test_a_command_that_is_no_longer_kept_is_not_run_again(tmp_path):
    d = native(tmp_path, "--execs-max", "2")
    box = f"{API}/sandboxes/{d.ok('POST', f'{API}/sandboxes', {})['id']}"
    assert post(d, f"{box}/execs", {"command": "echo x >> /tmp/n"}, "k")[0] == 200
    for _ in range(3):
        assert lines(d, box) == "1"
    status, reply, _ = post(d, f"{box}/execs", {"command": "echo x >> /tmp/n"}, "k")
    assert status == 409 and "no longer kept" in reply["error"]["message"]
    assert lines(d, box) == "1"
    d.clear()
    assert d.stop() == 0


def test_a_run_runs_once(holtd, tmp_path):
    body = {"command": "cat /proc/sys/kernel/random/uuid"}
    first, again = (post(holtd, f"{API}/run", body, "r") for _ in range(2))
    assert first[0] == again[0] == 200 and again[2] and again[1] == first[1]
    assert post(holtd, f"{API}/run", {"command": "true"}, "r")[0] == 409
    failed = [post(holtd, f"{API}/run", {"command": "true", "image": "none"}, "f") for _ in range(2)]
    assert failed[0][0] == failed[1][0] == 404, "after a failure the key is free"


def test_an_output_that_is_too_long_to_keep(holtd):
    body = {"command": "head -c 1200000 /dev/zero | tr '\\0' x"}
    assert post(holtd, f"{API}/run", body, "long")[0] == 200
    status, reply, _ = post(holtd, f"{API}/run", body, "long")
    assert status == 409 and "not kept" in reply["error"]["message"]


@pytest.mark.parametrize("after", ["start", "end"])
def test_a_command_runs_once_over_a_kill(tmp_path, after):
    d = native(tmp_path)
    box = f"{API}/sandboxes/{d.ok('POST', f'{API}/sandboxes', {})['id']}"
    body = {"command": "echo x >> /tmp/n; " + ("sleep 300" if after == "start" else "true"), "background": True}
    first = post(d, f"{box}/execs", body, "k")
    assert first[0] == 202
    wait_for(lambda: lines(d, box) == "1")
    d.process.kill()
    d.process.wait()
    d = native(tmp_path, port=d.port)
    again = wait_for(lambda: (lambda g: g if g[0] != 503 else None)(post(d, f"{box}/execs", body, "k")))
    assert (again[0], again[2], again[1]["id"]) == (202, True, first[1]["id"]), again
    assert post(d, f"{box}/execs", {"command": "true"}, "k")[0] == 409
    assert lines(d, box) == "1"
    d.clear()
    assert d.stop() == 0


@pytest.mark.parametrize("init", ["the same", "another", "not known"])
def test_a_row_whose_command_its_init_does_not_know(tmp_path, init):
    """It was never asked to run it, unless another init answers now: then the command may have run."""
    d = native(tmp_path)
    box = f"{API}/sandboxes/{d.ok('POST', f'{API}/sandboxes', {})['id']}"
    body = {"command": "sleep 300", "background": True}
    first = post(d, f"{box}/execs", body, "k")[1]["id"]
    d.process.kill()
    d.process.wait()
    other = first[:-1] + ("b" if first[-1] == "a" else "a")  # init has never heard of this one
    with sqlite3.connect(f"{d.state}/holt.db") as db:
        assert db.execute("SELECT pid FROM execs WHERE id = ?", (first,)).fetchone() == (0,)
        db.execute("UPDATE execs SET id = ? WHERE id = ?", (other, first))
        db.execute("UPDATE idempotency SET object = ? WHERE object = ?", (f"exec/{other}", f"exec/{first}"))
        spec = json.loads(db.execute("SELECT spec FROM execs WHERE id = ?", (other,)).fetchone()[0])
        assert len(spec["epoch"]) == 32
        spec["epoch"] = {"the same": spec["epoch"], "another": "0" * 32, "not known": ""}[init]
        db.execute("UPDATE execs SET spec = ? WHERE id = ?", (json.dumps(spec), other))
    d = native(tmp_path, port=d.port)
    again = wait_for(lambda: (lambda g: g if g[0] != 503 else None)(post(d, f"{box}/execs", body, "k")))
    if init == "the same":
        assert (again[0], again[2]) == (202, False) and again[1]["id"] not in (first, other), again
    else:
        assert (again[0], again[2], again[1]["id"], again[1]["state"]) == (202, True, other, "lost"), again
        assert not d.ok("GET", f"{box}/execs?state=running")["execs"], "it may have run: not a second time"
    d.clear()
    assert d.stop() == 0


def test_sbx(holtd):
    made = [post(holtd, "/sandboxes", {}, "s") for _ in range(2)]
    assert [m[0] for m in made] == [200, 200] and made[0][1]["id"] == made[1][1]["id"] and made[1][2]
    assert "ingest_token" in made[0][1] and "ingest_token" not in made[1][1], "a token is shown once"
    assert post(holtd, "/sandboxes", {"id": "another"}, "s")[0] == 409
    path = f"/sandboxes/{made[0][1]['id']}/exec"
    for asynchronous in (False, True):
        body = {"command": ["sh", "-c", "echo x >> /tmp/n"], "async": asynchronous}
        first, again = (post(holtd, path, body, f"e{asynchronous}") for _ in range(2))
        assert first[0] == again[0] == 200 and again[2]
        key = "exec_id" if asynchronous else "sync_exec_id"
        assert first[1][key] == again[1][key]
        assert post(holtd, path, {"command": ["true"]}, f"e{asynchronous}")[0] == 409
    count = {"command": ["sh", "-c", "wc -l < /tmp/n"], "async": False}
    wait_for(lambda: holtd.ok("POST", path, count)["stdout"].strip() == "2")
    holtd.ok("DELETE", f"/sandboxes/{made[0][1]['id']}")
    assert post(holtd, "/sandboxes", {}, "s")[0] == 409, "it was carried out; its sandbox is gone"


def test_hub(holtd):
    body = {"name": "p", "creator": "human"}
    first, again = (post(holtd, "/projects", body, "h") for _ in range(2))
    assert first[0] == again[0] < 300 and first[1] == again[1] and again[2]
    assert post(holtd, "/projects", {**body, "name": "q"}, "h")[0] == 409
    assert len([p for p in holtd.ok("GET", "/projects") if p["name"] == "p"]) == 1
    assert post(holtd, "/agents/register", {"name": "a", "role": "r"}, "h")[0] < 300, "a key is of one operation"
    assert post(holtd, "/agents/register", {"name": "a", "role": "r"}, "h")[0] == 409, "its reply held a token"


def test_agentbox(holtd):
    c = Sandbox(holtd.port, holtd.token)
    plain = list(c.metadata)

    def under(key):
        c.metadata = [*plain, ("idempotency-key", key)] if key else plain

    under("a")
    session = [c.CreateSession().session.session_id for _ in range(2)]
    assert session[0] == session[1]
    with pytest.raises(grpc.RpcError) as e:
        c.CreateSession(session_id="other")
    assert "another request" in e.value.details()
    under("b")
    line = {"session_id": session[0], "command": "cat; echo x >> /tmp/n", "stdin": b"in"}
    assert [c.Exec(**line).stdout for _ in range(2)] == ["in", "in"]
    under("c")
    streamed = [[m.data for m in c.ExecStream(**line) if m.type == "stdout"] for _ in range(2)]
    assert streamed == [["in"], ["in"]]
    under(None)
    assert c.Exec(session_id=session[0], command="wc -l < /tmp/n").stdout.strip() == "2"
    c.DestroySession(session_id=session[0])
    c.close()


# --- every operation that makes something ---

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB7Jm0dVd0tQv5ZQ9m0b8kq3m5JfM0o0c8m8oJ3n3f8k"
MANIFEST = {"version": "1", "kind": "Task", "metadata": {"name": "keyed"}, "agent": {"command": ["true"]}}
REQUESTS = {  # by operation: path and body, of what `made` has; an operation that takes the key and is not here fails the test
    "token.create": ("/tokens", {"name": "keyed", "role": "observer"}),
    "sandbox.create": ("/sandboxes", {"name": "keyed"}),
    "run": ("/run", {"command": "true"}),
    "exec.create": ("/sandboxes/{box}/execs", {"command": "true"}),
    "session.create": ("/sandboxes/{box}/sessions", {"name": "keyed", "command": ["sleep", "100"]}),
    "volume.create": ("/volumes", {"name": "keyed"}),
    "template.create": ("/templates", {"name": "keyed", "pids": 64}),
    "target.create": ("/targets", {"name": "keyed", "address": "192.0.2.1", "host_key": KEY}),
    "playbook.create": ("/playbooks", {"name": "keyed", "tasks": [{"name": "t", "module": "ping"}]}),
    "playbook.apply": ("/playbooks/{book}/apply", {"to": "box"}),
    "task_run.create": ("/task-runs", {"manifest": MANIFEST}),
    "agent.register": ("/agents", {"name": "keyed"}),
    "agent.checkpoint": ("/agents/{agent}/checkpoints", {"state": "keyed"}),
    "project.create": ("/projects", {"name": "keyed"}),
    "task.create": ("/tasks", {"project": "{project}", "title": "keyed"}),
    "message.send": ("/messages", {"to": "{agent}", "content": "keyed"}),
    "gate.add": ("/gates", {"operation": "volume.remove", "label": "keyed=yes"}),
}
TELLS_A_SECRET = {"token.create", "agent.register"}
WORKS_ON = {"task_run.create": "/task-runs", "playbook.apply": "/rollouts"}  # after the reply


def creating():
    """(name, whether it takes the key) of each native operation that makes something: a POST with the key, or with 201 or 202."""
    printed = subprocess.run([f"{BUILD}/holtd", "--print-routes"], capture_output=True, check=True, timeout=60).stdout
    names = {(r["method"], r["path"]): r["name"] for r in map(json.loads, printed.splitlines())}
    with open(f"{ROOT}/api/openapi.json", encoding="utf-8") as f:
        document = json.load(f)
    for path, methods in document["paths"].items():
        op = methods.get("post", {"responses": {}})
        key = any(p.get("name") == "Idempotency-Key" or p.get("$ref", "").endswith("/IdempotencyKey") for p in op.get("parameters", []))
        if key or {"201", "202"} & set(op["responses"]):
            yield names["POST", path], key


def test_what_takes_no_key_is_documented():
    with open(f"{ROOT}/docs/identity.md", encoding="utf-8") as f:
        section = f.read().partition("\n**Without a key.**")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| ((?:`[a-z_.]+`(?:, )?)+) \|", section, re.M)
    assert {name for c in cells for name in re.findall(r"`([a-z_.]+)`", c)} == {name for name, key in creating() if not key}


@pytest.fixture(scope="module")
def made(holtd):
    """What the requests name."""
    ok = lambda path, body: holtd.ok("POST", API + path, body)
    yield {"box": ok("/sandboxes", {"name": "box-of-keys"})["id"], "project": ok("/projects", {"name": "of-keys"})["id"],
           "agent": ok("/agents", {"name": "of-keys"})["name"], "book": ok("/playbooks", {"name": "of-keys", "tasks": [{"name": "t", "module": "ping"}]})["id"],
           "target": ok("/targets", {"name": "box", "sandbox": "box-of-keys"})["id"]}


@pytest.mark.parametrize("name", sorted(name for name, key in creating() if key))
def test_it_is_made_once(holtd, made, name):
    path, body = REQUESTS[name]
    fill = lambda x: x.format(**made) if isinstance(x, str) and x.startswith(("{", "/")) else x
    path, body = API + fill(path), {k: fill(v) for k, v in body.items()}
    first, again = (post(holtd, path, body, "all") for _ in range(2))
    assert 200 <= first[0] < 300 and not first[2], first
    if name in TELLS_A_SECRET:
        assert again[0] == 409 and "secret that is not kept" in again[1]["error"]["message"], again
    else:
        assert (again[0], again[2]) == (first[0], True) and again[1].get("id") == first[1].get("id"), (first, again)
    if name in WORKS_ON:
        work = f"{API}{WORKS_ON[name]}/{first[1]['id']}"
        holtd.request("POST", f"{work}/cancel", {})
        wait_for(lambda: holtd.ok("GET", work)["ended_at"])
    other = post(holtd, path, {**body, "unknown": 1}, "all")
    assert other[0] == 409 and "another request" in other[1]["error"]["message"], other
    refused = [post(holtd, path, {"unknown": 1}, "refused") for _ in range(2)]
    assert refused[0] == refused[1] and refused[0][0] == 400, "a refused one leaves the key free"
