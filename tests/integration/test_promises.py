"""Promises of other systems (docs/compatibility.md) that no test of a single object shows."""
import time

import grpc
import pytest

from agentbox_client import Sandbox
from daemon import Holtd, native, wait_for
from hub_client import AgentClient, call


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("real"))
    yield d
    d.clear()
    assert d.stop() == 0


def sh(d, box, line):
    r = d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["sh", "-c", line]})
    assert r["exit_code"] == 0, r
    return r["stdout"]


@pytest.mark.parametrize("said, format", [("pretty", "logfmt"), ("compact", "logfmt"), ("json", "json")])
def test_log_format(new_holtd, said, format):
    d = new_holtd("--log-level", "debug", env={"LOG_FORMAT": said})
    d.request("GET", "/healthz", token=None)
    d.stop()
    lines = [x for x in d.log().splitlines() if x.strip()]
    assert lines and all(x.startswith("{") == (format == "json") for x in lines), lines


def test_log_format_that_is_none(tmp_path):
    d = Holtd(tmp_path, env={"LOG_FORMAT": "loud"}, ready=False)
    assert d.process.wait(60) != 0
    assert "'loud' is not a log format" in d.log() + d.text


@pytest.mark.parametrize("said, status", [("false", 404), ("true", 200)])
def test_metrics_enabled(new_holtd, said, status):
    assert new_holtd(env={"METRICS_ENABLED": said}).request("GET", "/metrics")[0] == status


def test_init_reaps_orphans(real):
    """Children whose parent has ended become init's, and no zombie stays of them."""
    box = real.ok("POST", "/holt/v1/sandboxes", {})["id"]
    out = sh(real, box, "for i in 1 2 3 4 5; do (sleep 0.3 & echo $!); done; sleep 0.1; echo; grep -h ^PPid /proc/$(pgrep -n sleep)/status")
    pids, parent = out.split("\n\n")
    assert parent.split() == ["PPid:", "1"]
    states = "for p in %s; do grep -hs ^State /proc/$p/status; done; true" % " ".join(pids.split())
    wait_for(lambda: sh(real, box, states) == "")
    assert "Z (zombie)" not in sh(real, box, "cat /proc/[0-9]*/status")


@pytest.mark.not_on("runsc", "every mount from outside is v9fs in gVisor")
def test_a_memory_volume_is_memory(real):
    real.ok("POST", "/holt/v1/volumes", {"name": "shared", "kind": "tmpfs"})
    box = real.ok("POST", "/holt/v1/sandboxes", {"volumes": [{"name": "shared", "path": "/sandbox"}]})["id"]
    assert sh(real, box, "stat -f -c %T /sandbox") == "tmpfs\n"


@pytest.mark.slow
def test_exec_of_agentbox_has_thirty_seconds(real):
    s = Sandbox(real.port, real.token)
    try:
        s.CreateSession(session_id="limits")
        began = time.monotonic()
        assert s.Exec(session_id="limits", command="sleep 100", rpc_timeout=90).timed_out
        assert 29 < time.monotonic() - began < 60
    finally:
        s.close()


def test_sandbox_image_of_agentbox(tmp_path):
    d = native(tmp_path / "d", env={"SANDBOX_IMAGE": "nowhere/none:1"})
    s = Sandbox(d.port, d.token)
    try:
        with pytest.raises(grpc.RpcError) as e:
            s.CreateSession(session_id="x")
        assert "nowhere/none:1" in e.value.details()
    finally:
        s.close()
        assert d.stop() == 0


def test_no_interface_ends_anothers_sandbox(tmp_path):
    """Lifetimes are a sandbox's own: agentbox's timer ends agentbox's idle sessions alone."""
    d = native(tmp_path / "d", env={"SESSION_TIMEOUT": "2", "SANDBOX_IDLE_TTL": "1h"})
    s = Sandbox(d.port, d.token)
    try:
        session = s.CreateSession(session_id="brief").session.sandbox_id
        own = d.ok("POST", "/holt/v1/sandboxes", {"name": "own"})["id"]
        d.ok("POST", "/sandboxes", {"id": "sbx"})
        kept = [d.ok("GET", f"/holt/v1/sandboxes/{name}") for name in (session, "sbx", own)]
        assert [x["idle_ttl_ms"] for x in kept] == [2000, 3600000, None]
        wait_for(lambda: not s.ListSessions().sessions)
        wait_for(lambda: {x["id"] for x in d.ok("GET", "/holt/v1/sandboxes")["sandboxes"]} == {x["id"] for x in kept[1:]})
    finally:
        s.close()
        d.clear()
        assert d.stop() == 0


def test_tasks_by_status_and_agent(new_holtd):
    hub = new_holtd("--auth", "off")
    a = AgentClient(hub.url, "ann")
    a.register()
    p = a.create_project("p")["id"]
    t = [a.create_task(p, str(n))["id"] for n in range(3)]
    a.claim_task(p, t[1])

    def tasks(**query):
        return sorted(x["id"] for x in call(hub.url, "GET", f"/projects/{p}/tasks", query=query)[1])

    assert tasks() == sorted(t)
    status = call(hub.url, "GET", f"/projects/{p}/tasks/{t[1]}")[1]["status"]
    assert tasks(status="backlog") == sorted(set(t) - {t[1]}) and tasks(status=status) == [t[1]]
    assert tasks(agent="ann") == [t[1]] and tasks(agent="bob") == []
    assert tasks(agent="ann", status="done") == []


def test_commands_are_in_the_audit_log(real):
    box = real.ok("POST", "/holt/v1/sandboxes", {})["id"]
    sh(real, box, "true")
    rows = wait_for(lambda: [e for e in real.ok("GET", "/holt/v1/events?limit=1000&type=exec.*")["events"] if box in str(e)])
    assert [e["type"] for e in rows] == ["exec.started", "exec.exited"] and rows[0]["actor"].startswith("token/"), rows
