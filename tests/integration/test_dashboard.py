"""The dashboard in a real browser (tests/integration/node/dashboard.js has the steps), and the files it is made of."""
import gzip
import json
import os
import re
import shutil
import subprocess
import urllib.request

import pytest

from daemon import ASAN, NO_FREEZE, ROOT, can_freeze, free_ports, native, wait_for
from ssh_client import SSHD

API = "/holt/v1"
NODE = f"{ROOT}/tests/integration/node"
TRICK = "<img src=x onerror=\"window.pwned=1\">"

needs_browser = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not shutil.which("node") or not os.path.isdir(f"{NODE}/node_modules/axe-core"), reason="make deps"),
    pytest.mark.skipif(not shutil.which("chromium"), reason="no Chromium: make deps"),
    pytest.mark.skipif(ASAN, reason="the browser is the slow part"),
]


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    directory = tmp_path_factory.mktemp("dashboard")
    os.makedirs(directory / "loadouts/profiles")
    manifest = {"apiVersion": "loadout/v1", "kind": "loadout", "metadata": {"name": "quick"}, "runcmd": ["echo made > /etc/made", "sleep 1"]}
    (directory / "loadouts/profiles/quick.yaml").write_text(json.dumps(manifest))
    d = native(directory, "--loadouts-dir", str(directory / "loadouts"))
    yield d
    d.clear()
    d.stop()


def link(d, **body):
    return f"{d.url}/#login=" + d.ok("POST", f"{API}/login/code", body)["code"]


class Browser:
    def __init__(self, scenario, **plan):
        self.p = subprocess.Popen(["node", "dashboard.js", scenario, json.dumps(plan)], cwd=NODE, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)

    def line(self):
        said = self.p.stdout.readline()
        assert said, self.p.stderr.read()
        return json.loads(said)

    def go_on(self):
        self.p.stdin.write("{}\n")
        self.p.stdin.flush()

    def end(self):
        try:
            said = self.line()
            assert said["problems"] == [], "the page's console is clean"
            return said
        finally:
            self.p.kill()
            self.p.communicate()


def show(scenario, **plan):
    return Browser(scenario, **plan).end()


def fetch(d, path, **headers):
    return urllib.request.urlopen(urllib.request.Request(d.url + path, headers=headers))


# --- the files ---


def test_the_page_is_embedded_and_strict(holtd):
    r = fetch(holtd, "/", **{"Accept-Encoding": "gzip"})
    page = gzip.decompress(r.read()).decode()
    policy = dict(p.split(" ", 1) for p in r.headers["Content-Security-Policy"].split("; "))
    assert r.headers["Content-Encoding"] == "gzip" and r.headers["Cache-Control"] == "no-cache"
    assert policy["default-src"] == "'none'" and policy["script-src"] == "'self'" and policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'" and policy["require-trusted-types-for"] == "'script'"
    assert r.headers["X-Content-Type-Options"] == "nosniff" and r.headers["X-Frame-Options"] == "DENY"
    assert not re.search(r"<script(?![^>]*src=)|style=|https?://", page), "nothing inline, nothing from elsewhere"


def test_files_of_the_page_are_served_plain_and_packed(holtd):
    page = fetch(holtd, "/").read().decode()
    for path in re.findall(r'(?:src|href)="(/assets/[^"]+)"', page):
        packed = fetch(holtd, path, **{"Accept-Encoding": "br, gzip;q=0.5"})
        plain = fetch(holtd, path, **{"Accept-Encoding": "gzip;q=0"})
        assert "immutable" in packed.headers["Cache-Control"]
        assert plain.headers["Content-Encoding"] is None and gzip.decompress(packed.read()) == plain.read()
        with pytest.raises(urllib.error.HTTPError) as e:
            fetch(holtd, path, **{"If-None-Match": f'"other", {packed.headers["ETag"]}'})
        assert e.value.code == 304
    with pytest.raises(urllib.error.HTTPError) as e:
        fetch(holtd, "/assets/..%2f..%2fetc%2fpasswd")
    assert e.value.code == 404


def test_a_stale_bundle_is_found(tmp_path):
    shutil.copytree(f"{ROOT}/web", tmp_path / "web", ignore=shutil.ignore_patterns("node_modules"))
    shutil.copytree(f"{ROOT}/api", tmp_path / "api")
    run = lambda: subprocess.run([f"{ROOT}/tools/check-web", str(tmp_path)], capture_output=True, text=True)  # noqa: E731
    assert run().returncode == 0, run().stdout
    api = json.loads((tmp_path / "api/openapi.json").read_text())
    unused = api["paths"]["/holt/v1/access/certificates"]
    api["paths"]["/holt/v1/unused"] = {"get": {**next(iter(unused.values())), "operationId": "unusedList"}}
    (tmp_path / "api/openapi.json").write_text(json.dumps(api))
    assert run().returncode == 0, "an operation that the dashboard does not use changes nothing"
    api["components"]["schemas"]["Sandbox"]["properties"]["mood"] = {"type": "string"}
    (tmp_path / "api/openapi.json").write_text(json.dumps(api))
    assert run().returncode == 1 and "types.ts is older" in run().stdout and "make web" not in run().stdout
    subprocess.run([f"{ROOT}/tools/web-types", "--write", str(tmp_path)], check=True)
    assert run().returncode == 0, run().stdout
    with open(tmp_path / "web/src/text.ts", "a", encoding="utf-8") as f:
        f.write("// changed\n")
    assert run().returncode == 1 and "make web" in run().stdout


def test_self_lists_its_permissions(holtd):
    mine = holtd.ok("GET", f"{API}/tokens/self")["permissions"]
    assert "tokens" in mine and "sandbox.write" in mine
    watcher = holtd.ok("POST", f"{API}/tokens", {"name": "watcher", "role": "observer"})["token"]
    seen = holtd.request("GET", f"{API}/tokens/self", token=watcher)[1]["permissions"]
    assert "sandbox.read" in seen and "sandbox.write" not in seen and "sandbox.content" not in seen


# --- in the browser ---


class TestPages:
    pytestmark = needs_browser

    def test_what_instances_use_is_one_request_for_all(self, holtd):
        for body in ({"name": "idle-one", "memory_bytes": 64 << 20}, {"name": "busy-one"}):
            holtd.ok("POST", f"{API}/sandboxes", body)
        holtd.ok("POST", f"{API}/sandboxes/busy-one/execs", {"command": "while :; do :; done", "background": True})
        said = show("load", login=link(holtd), busy="busy-one", idle="idle-one")
        assert set(said["asked"]) == {f"{API}/stats"}, said
        assert "of 64 MiB" in said["idle"] and said["named"] == "sandbox/busy-one"
        for name in ("busy-one", "idle-one"):
            holtd.ok("DELETE", f"{API}/sandboxes/{name}")

    def test_the_walk_from_create_to_output(self, holtd):
        got = show("walk", login=link(holtd), name="walker", runtime=holtd.ok("GET", f"{API}/info").get("runtime", "native"))
        assert "[a-z0-9-]+" in got["rule"] and got["refused"], "the rule is shown while typing"
        assert got["badge"] == "[NS]" and got["ms"] < 15000

    @pytest.mark.skipif(not SSHD or not shutil.which("ansible-playbook", path="/usr/bin") or os.geteuid() != 0, reason="no sshd or ansible, or not root")
    def test_a_change_is_seen_approved_and_applied(self, tmp_path):
        holtd = native(tmp_path)
        try:
            self.change(holtd)
        finally:
            holtd.clear()
            holtd.stop()

    def change(self, holtd):
        ann = holtd.ok("POST", f"{API}/tokens", {"name": "ann", "role": "operator", "person": "ann"})["token"]
        box = holtd.ok("POST", f"{API}/sandboxes", {"name": "tried"}, token=ann)["id"]
        run = lambda name, line: holtd.ok("POST", f"{API}/sandboxes/{name}/execs", {"command": line})["stdout"]  # noqa: E731
        run("tried", f"echo {TRICK!r} > /etc/motd")
        holtd.ok("POST", f"{API}/sandboxes", {"name": "production"})
        holtd.ok("POST", f"{API}/targets", {"name": "production", "sandbox": "production"})
        task = {"name": "Greet", "module": "copy", "params": {"dest": "/etc/motd", "content": "hello\n"}}
        holtd.ok("POST", f"{API}/playbooks", {"name": "greeting", "tasks": [task]}, token=ann)
        ann_link = f"{holtd.url}/#login=" + holtd.ok("POST", f"{API}/login/code", {}, token=ann)["code"]
        b = Browser("change", login=ann_link, other=link(holtd), box=box, playbook="greeting", target="production")
        assert b.line() == {"wait": "unchanged"}
        assert run("production", "cat /etc/motd") != "hello\n", "not before another person has approved"
        b.go_on()
        got = b.end()
        assert f"+{TRICK}" in got["diff"] and got["halves"][1] == TRICK, "shown as text"
        assert "changed=1" in got["check"]
        assert run("production", "cat /etc/motd") == "hello\n"

    def test_an_instance_of_a_loadout(self, holtd):
        got = show("loadout", login=link(holtd), name="loaded", loadout="quick")
        assert len(got["steps"]) == 2 and "echo made" in " ".join(got["steps"]), got
        made = holtd.ok("GET", f"{API}/sandboxes/loaded")
        assert holtd.ok("POST", f"{API}/sandboxes/loaded/execs", {"command": "cat /etc/made"})["stdout"] == "made\n"
        holtd.ok("DELETE", f"{API}/sandboxes/{made['id']}")

    def test_the_life_of_an_instance_without_a_shell(self, holtd):
        box = holtd.ok("POST", f"{API}/sandboxes", {"name": "liver"})["id"]
        got = show("life", login=link(holtd), name="liver", steps=[
            ["Pause", "paused"], ["Resume", "running"], ["Stop", "stopped"], ["Start", "running"], ["Restart", "running"], ["Force off", "stopped"]])
        assert len(got["seen"]) == 6 and "files" in got["warning"], "what is lost is said"
        assert holtd.request("GET", f"{API}/sandboxes/{box}")[0] == 404

    def test_two_browsers_and_a_killed_daemon(self, tmp_path):
        port = free_ports()[0]
        d = native(tmp_path, port=port)
        try:
            box = d.ok("POST", f"{API}/sandboxes", {"name": "pair"})["id"]
            line = "for i in $(seq 1 20); do echo line $i; sleep 0.25; done; read counter"
            d.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": line, "pty": {"rows": 24, "cols": 80}, "background": True})
            b = Browser("pair", login=link(d), second=link(d), box=box, last="line 20", words="for i in")
            assert b.line() == {"wait": "kill"}
            d.process.kill()
            d.process.wait()
            d = native(tmp_path, port=port)
            b.go_on()
            got = b.end()
            for text in got["texts"]:
                assert re.findall(r"line (\d+)", text) == [str(i) for i in range(1, 21)], "nothing is lost or doubled"
            assert "watching" in got["observer"]
        finally:
            d.clear()
            d.stop()

    def test_resync_paints_the_server_s_screen(self, holtd):
        box = holtd.ok("POST", f"{API}/sandboxes", {"name": "drifter"})["id"]
        line = r"printf '\033[?1049h\033[2J\033[3;5Htop line\033[20;1H\033[1mbottom line\033[0m'; read x"
        holtd.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": ["sh", "-c", line], "pty": {"rows": 24, "cols": 80}, "background": True})
        got = show("resync", login=link(holtd), box=box, words="printf")
        rows = [r.replace("\xa0", " ").rstrip() for r in got["rows"]]
        assert "drifted" in got["drifted"] and rows[2] == "    top line" and rows[19] == "bottom line"

    def test_questions_are_answered_without_a_terminal(self, holtd):
        project = holtd.ok("POST", f"{API}/projects", {"name": "questions"})["id"]
        holtd.ok("POST", f"{API}/agents", {"name": "asker", "mode": "advisory"})
        holtd.ok("POST", f"{API}/projects/{project}/members", {"agent": "asker"})
        for n in range(3):
            task = holtd.ok("POST", f"{API}/tasks", {"project": project, "title": f"question {n}"})["id"]
            holtd.ok("POST", f"{API}/tasks/{task}/move", {"status": "ready"})
            holtd.ok("POST", f"{API}/tasks/{task}/claim", {"agent": "asker"})
        got = show("approve", login=link(holtd))
        assert got["badge"] == "3" and got["count"] == 3
        assert sum("approved" in t for t in got["decided"]) == 1 and sum("not now, please" in t for t in got["decided"]) == 1
        states = [a["state"] for a in holtd.ok("GET", f"{API}/approvals")["approvals"]]
        assert sorted(states) == ["approved", "pending", "rejected"]

    def test_a_grant_is_shown_and_taken_back(self, holtd):
        agent = holtd.ok("POST", f"{API}/tokens", {"name": "deployer", "role": "agent", "agent": "deployer"})["token"]
        person = holtd.ok("POST", f"{API}/tokens", {"name": "ann", "role": "operator", "person": "ann"})["token"]
        asked = holtd.ok("POST", f"{API}/approvals", {"question": "May I?", "action": "sandbox.destroy", "arguments": {"id": "x"}}, token=agent)["id"]
        holtd.ok("POST", f"{API}/approvals/{asked}/approve", {}, token=person)
        assert len(holtd.ok("GET", f"{API}/grants")["grants"]) == 1
        got = show("grants", login=link(holtd))
        assert "sandbox.destroy" in got["words"] and "exactly as asked" in got["words"]
        assert holtd.ok("GET", f"{API}/grants")["grants"] == []

    def test_cards_move_and_refused_moves_snap_back(self, holtd):
        project = holtd.ok("POST", f"{API}/projects", {"name": "board"})["id"]
        for title in ("first", "second"):
            holtd.ok("POST", f"{API}/tasks", {"project": project, "title": title})
        got = show("board", login=link(holtd), project=project)
        assert "Not moved" in got["refused"] and got["where"] == 1, "the card is where it was, with the reason"
        assert got["lanes"] == ["unassigned"]
        assert {t["title"]: t["status"] for t in holtd.ok("GET", f"{API}/tasks?project={project}")["tasks"]} == {"first": "ready", "second": "backlog"}

    def test_an_agent_is_paused_and_revoked(self, holtd):
        for name in ("worker", "friend"):
            holtd.ok("POST", f"{API}/agents", {"name": name})
        holtd.ok("POST", f"{API}/messages", {"from": "worker", "to": "friend", "content": "hello friend"})
        got = show("agents", login=link(holtd), agent="worker")
        assert "hello friend" in got["feed"]
        agent = holtd.ok("GET", f"{API}/agents/worker")
        assert agent["status"] == "revoked" and agent["mode"] == "advisory"

    def test_the_wall_shows_every_session(self, tmp_path):
        d = native(tmp_path)
        try:
            box = d.ok("POST", f"{API}/sandboxes", {"name": "many"})["id"]
            command = ["sh", "-c", f"echo '{TRICK} first words'; read a; echo after the kill; read a"]
            d.ok("POST", f"{API}/sandboxes/{box}/sessions", {"name": "one", "command": command})
            b = Browser("wall", login=link(d), first="many · one", second="many · two", words="first words")
            assert b.line() == {"wait": "second"}
            d.ok("POST", f"{API}/sandboxes/{box}/sessions", {"name": "two", "command": ["sh", "-c", "echo here too; read a"]})
            b.go_on()
            assert b.line() == {"wait": "kill"}
            port = d.port
            super(type(d), d).kill()
            d = native(tmp_path, port=port)
            d.ok("POST", f"{API}/sandboxes/{box}/sessions/one/send", {"keys": ["Enter"]})
            b.go_on()
            got = b.end()
            assert (got["markup"], got["panes"]) == (0, 1)
        finally:
            d.clear()
            d.stop()

    def test_a_task_from_the_form_to_its_artifact(self, holtd):
        command = f"echo '{TRICK} at work'; test -e ~/outbox/go || while ! test -e /tmp/go; do sleep 0.1; done; echo all done | tee ~/outbox/made.txt"
        b = Browser("tasks", login=link(holtd), name="reporter", command=command, words="at work")
        assert b.line() == {"wait": "running"}
        run = holtd.ok("GET", f"{API}/task-runs")["tasks"][-1]
        holtd.ok("POST", f"{API}/sandboxes/{run['sandbox']}/execs", {"command": ["touch", "/tmp/go"]})
        b.go_on()
        got = b.end()
        assert f"{TRICK} at work" in got["lines"] and got["markup"] == 0, "what a task prints is text"
        assert got["made"] == "all done\n"
        assert [r.split()[-1] for r in got["rows"]] == ["cancelled", "completed"]
        assert [t["state"] for t in holtd.ok("GET", f"{API}/task-runs")["tasks"]] == ["completed", "cancelled"]

    def test_snapshots_go_back_and_fork(self, holtd):
        if not can_freeze(holtd):
            pytest.skip(NO_FREEZE)
        box = holtd.ok("POST", f"{API}/sandboxes", {"name": "saved"})["id"]
        run = lambda where, line: holtd.ok("POST", f"{API}/sandboxes/{where}/execs", {"command": ["sh", "-c", line]})["stdout"]  # noqa: E731
        run(box, "echo good > /root/state")
        b = Browser("snapshots", login=link(holtd), box=box, name="try")
        assert b.line() == {"wait": "mistake"}
        run(box, "echo bad > /root/state")
        b.go_on()
        assert "Running commands are ended" in b.end()["warning"]
        assert [run(where, "cat /root/state") for where in (box, "try-1", "try-2")] == ["good\n"] * 3

    def test_a_recording_is_played_again(self, holtd):
        box = holtd.ok("POST", f"{API}/sandboxes", {"name": "recorded"})["id"]
        line = r"printf 'the first screen\n'; sleep 0.3; printf '\033[2J\033[Hthe last screen\n'"
        holtd.ok("POST", f"{API}/sandboxes/{box}/sessions", {"name": "show", "command": ["sh", "-c", line]})
        wait_for(lambda: holtd.ok("GET", f"{API}/sandboxes/{box}/sessions?all=true")["sessions"][0]["ended_at"])
        got = show("replay", login=link(holtd), session="recorded · show", last="the last screen")
        assert "the last screen" in got["end"] and "the first screen" not in got["end"]
        assert "the last screen" not in got["start"]

    def test_an_observer_sees_no_dead_buttons(self, holtd):
        holtd.ok("POST", f"{API}/sandboxes", {"name": "looked-at"})
        got = show("observe", login=link(holtd, role="observer"), name="looked-at")
        assert got["create"] == 0 and got["buttons"] == []

    def test_text_from_sandboxes_stays_text(self, holtd):
        box = holtd.ok("POST", f"{API}/sandboxes", {"name": "hostile", "labels": {"x": TRICK}})["id"]
        holtd.ok("POST", f"{API}/agents", {"name": TRICK.replace("/", ""), "capabilities": [TRICK]})
        project = holtd.ok("POST", f"{API}/projects", {"name": TRICK})["id"]
        holtd.ok("POST", f"{API}/tasks", {"project": project, "title": TRICK, "description": TRICK})
        tricks = r"\033]0;pwned title\007\033]8;;javascript:window.pwned=1\007click\033]8;;\007\033]52;c;cHduZWQ=\007end of tricks"
        holtd.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": ["sh", "-c", f"printf '{tricks}'; read x"], "pty": {"rows": 24, "cols": 80}, "background": True})
        holtd.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": ["echo", TRICK]})
        got = show("hostile", login=link(holtd), box=box, places=["now", "instances", f"board/{project}", "agents", "events", f"instances/{box}/overview"])
        assert got["ran"] == [None, 0], "no script, no element"
        assert "pwned" not in got["title"]

    def test_axe_finds_nothing(self, holtd):
        box = holtd.ok("POST", f"{API}/sandboxes", {"name": "readable"})["id"]
        holtd.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": ["echo", "hi"]})
        for n in range(3):
            holtd.ok("POST", f"{API}/sandboxes/{box}/sessions", {"name": f"agent-{n}", "command": ["sh", "-c", "ls -l /usr; read a"]})
        holtd.request("POST", f"{API}/sandboxes/{box}/snapshots", {"name": "clean"})  # not where commands cannot be frozen
        task = holtd.ok("POST", f"{API}/task-runs", {"manifest": {"version": "1", "kind": "Task", "metadata": {"name": "report"}, "agent": {"command": "echo hello"}}})["id"]
        tabs = [f"instances/{box}/{tab}" for tab in ("terminal", "commands", "files", "network", "snapshots", "changes", "stats", "events", "overview")]
        places = ["now", "instances", "instances/new", "terminals", "approvals", "approvals/grants", "board", "agents", "agents/messages", "events", "things/tokens", "things/secrets", "things/policies",
                  "things/hosts", "things/access", "terminals/wall", "terminals/recordings", "tasks", f"tasks/{task}", "settings", "changes", "changes/playbooks", "changes/rollouts", "changes/targets", *tabs]
        got = show("axe", dark=link(holtd), light=link(holtd), places=places, shots=os.environ.get("HOLT_SHOTS"))
        assert got["found"] == {}
