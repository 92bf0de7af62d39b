"""What operators watch holt with: every series moves, the rules of packaging/monitoring fire, a real Prometheus scrapes and a real
Alertmanager delivers."""
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
import urllib.request

import pytest
from websockets.sync.client import connect

from daemon import BUILD, ROOT, Program, free_ports, native, wait_for

API = "/holt/v1"
FILES = f"{ROOT}/packaging/monitoring"
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
needs_prometheus = pytest.mark.skipif(
    not all(shutil.which(p, path=PATH) for p in ("promtool", "prometheus", "prometheus-alertmanager")), reason="tools/deps monitoring")


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("monitoring"))
    yield d
    d.clear()
    d.stop()


def series(d):
    """Every sample of /metrics by its name and labels."""
    text = d.request("GET", "/metrics")[1]
    return {m[1]: float(m[2]) for m in re.finditer(r"^([a-z_]+(?:\{.*?\})?) (\S+)$", text, re.MULTILINE)}


def moved(d, name, by, act):
    before = series(d)[name]
    act()
    wait_for(lambda: series(d)[name] == before + by)


def run(d, box, *command):
    return d.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": list(command)})


def make(d, name):
    return d.ok("POST", f"{API}/sandboxes", {"name": name})["id"]


def test_sandboxes_and_agents_are_counted(holtd):
    box = make(holtd, "counted")
    assert series(holtd)['holt_sandboxes{state="running"}'] == series(holtd)["agentic_agents_connected"]
    moved(holtd, 'holt_sandboxes{state="stopped"}', 1, lambda: holtd.ok("POST", f"{API}/sandboxes/{box}/stop", {}))
    for name in ("agentic_agents_connected", "agentic_agents_ready", 'agentic_agents_by_status{status="ready"}', 'agentic_containers_by_status{status="running"}'):
        moved(holtd, name, 1, lambda: holtd.ok("POST", f"{API}/sandboxes/{box}/start"))
        moved(holtd, name, -1, lambda: holtd.ok("POST", f"{API}/sandboxes/{box}/stop", {}))
    moved(holtd, 'agentic_containers_by_status{status="stopped"}', -1, lambda: holtd.ok("DELETE", f"{API}/sandboxes/{box}"))
    assert series(holtd)["agentic_uptime_seconds"] >= 0


def test_commands_are_counted(holtd):
    box = make(holtd, "runner")
    for name in ("agentic_commands_total", 'agentic_commands_by_result{result="success"}', 'holt_commands_total{result="success"}', "holt_command_seconds_count",
                 "agentic_commands_duration_ms_count", 'agentic_commands_duration_ms_bucket{le="60000"}', 'agentic_command_latency_seconds_bucket{le="60"}'):
        moved(holtd, name, 1, lambda: run(holtd, box, "true"))
    for name in ('agentic_commands_by_result{result="failed"}', 'holt_commands_total{result="failed"}'):
        moved(holtd, name, 1, lambda: run(holtd, box, "false"))
    before = series(holtd)
    run(holtd, box, "sleep", "0.2")
    after = series(holtd)
    assert 190 <= after["agentic_commands_duration_ms_sum"] - before["agentic_commands_duration_ms_sum"] < 20000
    assert after['agentic_commands_duration_ms_bucket{le="100"}'] == before['agentic_commands_duration_ms_bucket{le="100"}']

    def start():
        holtd.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": ["cat"], "pty": {"rows": 24, "cols": 80}, "background": True})
    for name in ("holt_commands_running", "agentic_pty_sessions_active"):
        moved(holtd, name, 1, start)
    assert series(holtd)['agentic_agents_by_status{status="busy"}'] == 1


def submit(d, command, **more):
    manifest = {"version": "1", "kind": "Task", "metadata": {"name": "count"}, "agent": {"command": command}, **more}
    t = d.ok("POST", f"{API}/task-runs", {"manifest": manifest})["id"]
    return lambda: wait_for(lambda: d.ok("GET", f"{API}/task-runs/{t}")["ended_at"], 60)


@pytest.mark.parametrize("outcome, command, more, names", [
    ("success", "true", {}, ["agentic_tasks_completed_total", 'agentic_tasks_by_state{state="completed"}', 'holt_tasks{state="completed"}', "agentic_tasks_total"]),
    ("failure", "false", {}, ['agentic_tasks_by_state{state="failed"}']),
    ("timeout", "sleep 100", {"lifecycle": {"timeout": "1s"}}, []),
])
def test_tasks_are_counted(holtd, outcome, command, more, names):
    before = series(holtd)
    submit(holtd, command, **more)()
    after = series(holtd)
    for name in [f'agentic_task_outcomes_total{{outcome="{outcome}"}}', f'holt_task_outcomes_total{{outcome="{outcome}"}}', *names]:
        assert after[name] == before[name] + 1, name


def test_questions_are_counted(holtd):
    ask = {"question": "May I?", "action": "deploy", "wait_ms": 0}
    agent = holtd.ok("POST", f"{API}/tokens", {"name": "asker", "role": "operator"})["token"]
    moved(holtd, "holt_approvals_waiting", 1, lambda: holtd.ok("POST", f"{API}/approvals", ask, token=agent))
    wait_for(lambda: series(holtd)["holt_approvals_oldest_seconds"] >= 1)


def test_websockets_are_counted(holtd):
    before = series(holtd)
    with connect(f"ws://127.0.0.1:{holtd.port}{API}/events", additional_headers={"Authorization": f"Bearer {holtd.token}"}):
        now = series(holtd)
    assert now["agentic_ws_connections_current"] == now["holt_ws_connections"] == before["holt_ws_connections"] + 1
    assert now["agentic_ws_connections_total"] == before["agentic_ws_connections_total"] + 1
    wait_for(lambda: series(holtd)["holt_ws_connections"] == before["holt_ws_connections"])


def names_in(expr):
    return set(re.findall(r"\b(?:holt|agentic|process)_[a-z_]+", expr))


def test_every_query_names_series_that_exist(holtd):
    run(holtd, make(holtd, "series"), "true")
    there = {re.sub(r"\{.*", "", name) for name in series(holtd)}
    wanted = set()
    for name in os.listdir(FILES):
        with open(f"{FILES}/{name}", encoding="utf-8") as f:
            if name.startswith("grafana-"):
                wanted |= {n for p in json.load(f)["panels"] for t in p["targets"] for n in names_in(t["expr"])}
            elif name == "rules.yml":
                wanted |= names_in(re.sub(r"(summary|action):.*", "", f.read()))
    assert len(wanted) > 30 and wanted - there == set()


@needs_prometheus
def test_promtool_has_nothing_to_say(tmp_path):
    shutil.copytree(FILES, tmp_path / "m")
    (tmp_path / "m/token").write_text("x")
    for argv in (["check", "config", "prometheus.yml"], ["test", "rules", "rules_test.yml"]):
        r = subprocess.run(["promtool", *argv], cwd=tmp_path / "m", capture_output=True, text=True, env={**os.environ, "PATH": PATH})
        assert r.returncode == 0, r.stdout + r.stderr
    with open(f"{FILES}/rules.yml", encoding="utf-8") as f:
        alerts = set(re.findall(r"- alert: (\w+)", f.read()))
    with open(f"{FILES}/rules_test.yml", encoding="utf-8") as f:
        text = f.read()
    assert alerts == set(re.findall(r"alertname: (\w+)", text)), "each alert has a test"
    assert alerts == set(re.findall(r"name: (\w+) stays quiet", text))


class Receiver(http.server.ThreadingHTTPServer):
    """What Alertmanager posts to."""

    def __init__(self):
        got = self.got = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802
                got.extend(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@needs_prometheus
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_dead_agent_reaches_a_person(tmp_path):
    d = native(tmp_path / "d")
    receiver, (prometheus, alertmanager) = Receiver(), free_ports(2)
    env = {"HOLT_SERVER": d.url, "HOLT_TOKEN": d.token, "HOLT_MONITORING": str(tmp_path / "m"), "PROMETHEUS": f"127.0.0.1:{prometheus}",
           "ALERTMANAGER": f"127.0.0.1:{alertmanager}", "ALERT_WEBHOOK": f"http://127.0.0.1:{receiver.server_port}/"}
    watch = Program([f"{ROOT}/tools/monitoring", BUILD], env=env)

    def value(query):
        url = f"http://127.0.0.1:{prometheus}/api/v1/query?query={query}"
        with urllib.request.urlopen(url) as r:
            found = json.load(r)["data"]["result"]
        return float(found[0]["value"][1]) if found else None

    def answers(query):
        try:
            return value(query)
        except OSError:
            return None
    try:
        box = make(d, "lively")
        wait_for(lambda: answers("agentic_agents_connected") == 1, 60)
        wait_for(lambda: answers("agentic_agents_connected%20offset%201m") == 1, 120)
        d.ok("POST", f"{API}/sandboxes/{box}/stop", {})
        wait_for(lambda: any(a["labels"]["alertname"] == "AgentDisconnected" and a["status"] == "firing" for a in receiver.got), 60)
    finally:
        watch.stop()
        receiver.shutdown()
        d.clear()
        d.stop()
