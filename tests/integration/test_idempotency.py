"""One rule for every creating request: the Idempotency-Key belongs to its sender, the same request is carried out once and
another one under the key is refused; on the native API, sbx, hub and agentbox, and whatever dies."""
import json
import sqlite3

import grpc
import pytest

from agentbox_client import Sandbox
from daemon import native, wait_for

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
