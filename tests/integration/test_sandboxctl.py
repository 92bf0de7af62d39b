"""sandboxctl, the operator's command of agentic-sandbox: every noun and verb against a real holtd."""
import contextlib
import json
import os
import pty
import select
import stat
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from daemon import BUILD, environment, wait_for
from git_server import BACKEND
from test_task import repo, start  # noqa: F401 (repo is a fixture)

NAMES = {"git.test": ["127.0.0.1"]}

NOUNS = ("agent", "session", "container", "vm", "task", "hitl", "loadout", "storage", "event", "health", "ops")
VERBS = {
    "agent": "list get stop rotate-secret shell", "session": "list get kill tail record input resize attach",
    "container": "list get create start stop delete", "vm": "create list get start stop restart destroy reprovision deploy-agent",
    "task": "submit list get cancel logs artifacts", "hitl": "list respond", "loadout": "list get registry",
    "storage": "global inbox outbox", "event": "list tail", "health": "status watchdog", "ops": "get wait",
}
MANIFEST = 'version: "1"\nkind: Task\nmetadata: {name: small}\nrepository: {url: "%s", branch: main}\nclaude: {prompt: "%s"}\n'


@pytest.fixture(scope="module")
def holtd(tmp_path_factory, names):
    d = start(tmp_path_factory.mktemp("sandboxctl"), names, config="image_aliases: ['agentic/claude:latest=host']\n")
    yield d
    d.clear()
    d.stop()


def env_of(home, holtd=None, **more):
    env = {"HOME": str(home), "LANG": "C.UTF-8", "HOLT_STATE": f"{home}/none"}
    if holtd:
        env |= {"AGENTIC_SERVER": holtd.url, "HOLT_TOKEN": holtd.token}
    return environment(env | more)


@pytest.fixture
def ctl(tmp_path, holtd):
    """Runs it by its own name, as a link to holt."""
    def run(*words, status=0, stdin="", env=None, name="sandboxctl", server=holtd):
        link = tmp_path / name
        if not link.is_symlink():
            link.symlink_to(f"{BUILD}/holt")
        r = subprocess.run([link, *words], capture_output=True, text=True, timeout=120, input=stdin, env=env_of(tmp_path, server, **(env or {})), check=False)
        assert r.returncode == status, f"{name} {' '.join(words)}: {r.returncode}\n{r.stdout}{r.stderr}"
        return r
    return run


@pytest.fixture
def agent(holtd, request):
    name = "ctl-" + "".join(c if c.isalnum() else "-" for c in request.node.name.removeprefix("test_"))[:40].strip("-")
    holtd.ok("POST", "/api/v1/containers", {"name": name, "image": "agentic/claude:latest"})
    yield name
    holtd.request("DELETE", f"/api/v1/containers/{name}")


def table(result):
    """The rows of a list by their heads; it has a dashed rule and gaps of two spaces."""
    lines = result.stdout.splitlines()
    heads = lines[0].split()
    assert set(lines[1]) <= {"-", " "} and len(lines[1].split()) == len(heads), result.stdout
    starts = [0] + [i for i in range(2, len(lines[1])) if lines[1][i] == "-" and lines[1][i - 2:i] == "  "]
    ends = [*[s - 2 for s in starts[1:]], None]
    return [{h: line[s:e].strip() for h, s, e in zip(heads, starts, ends, strict=True)} for line in lines[2:]]


def session(holtd, agent, command, name="s"):
    return holtd.ok("POST", f"/api/v1/agents/{agent}/sessions", {"command": command, "session_name": name, "rows": 20, "cols": 60})["session_id"]


# --- the command line ---

def test_help_is_a_tree_of_nouns(ctl):
    text = ctl("--help").stdout
    assert text == ctl("--help", name="agentic-sandbox").stdout == ctl().stdout
    for noun in NOUNS:
        assert f"\n{noun}\n" in text
        part = ctl(noun, "--help").stdout
        for verb in VERBS[noun].split():
            assert f"\n  {verb}" in part, (noun, verb)
    assert "--signal" in ctl("session", "kill", "--help").stdout and "Remove a container" not in ctl("session", "kill", "--help").stdout
    assert ctl("--version").stdout.startswith("sandboxctl ")


def test_wrong_usage_exits_2(ctl):
    for words in (["nothing"], ["agent"], ["agent", "nothing"], ["agent", "get"], ["agent", "get", "a", "b"], ["agent", "list", "--nonsense"],
                  ["agent", "get", "x", "--watch", "1s"], ["session", "resize", "x", "--cols", "wide"]):
        assert ctl(*words, status=2).stderr.startswith("Error: "), words


def test_contexts(ctl, tmp_path, holtd):
    none = {"server": None}
    ctl("config", "set-context", "local", "--server", holtd.url, "--token", holtd.token, **none)
    ctl("config", "set-context", "other", "--server", "http://127.0.0.1:1", "--role", "admin", **none)
    path = tmp_path / ".config/agentic-sandbox/contexts.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert 'current_context = "local"' in text and f'server = "{holtd.url}"' in text and 'role = "admin"' in text
    rows = {r["NAME"]: r for r in table(ctl("config", "contexts", **none))}
    assert rows["local"]["CURRENT"] == "*" and rows["other"]["SERVER"] == "http://127.0.0.1:1" and rows["other"]["CURRENT"] == "-"
    who = json.loads(ctl("--json", "config", "whoami", **none).stdout)
    assert (who["context"], who["server"], who["role"]) == ("local", holtd.url, "admin")
    assert ctl("agent", "list", **none).stdout  # by the context's server and token
    assert "127.0.0.1:1" in ctl("agent", "list", "--context", "other", status=1, **none).stderr
    assert "127.0.0.1:1" in ctl("agent", "list", status=1, env={"SANDBOXCTL_CONTEXT": "other"}, **none).stderr
    ctl("config", "use-context", "other", **none)
    ctl("agent", "list", status=1, **none)
    ctl("config", "use-context", "none", status=2, **none)
    # the original's own spelling of the file
    path.write_text(f"current_context = 'mine' # a remark\n\n[contexts.mine]\nserver = \"{holtd.url}\"\ntoken = \"{holtd.token}\"\nrole = \"operator\"\n")
    ctl("agent", "list", **none)
    path.write_text("current_context = [1]\n")
    assert "line 1" in ctl("agent", "list", status=1, **none).stderr


def test_exit_codes(ctl, agent, holtd, tmp_path):
    assert ctl("agent", "get", "none", status=2).stderr == "Error: Agent 'none' not found\n"
    ctl("container", "create", agent, "--image", "host", status=3)
    ctl("agent", "list", status=4, env={"HOLT_TOKEN": "holt_wrong"})
    ctl("agent", "list", status=1, env={"AGENTIC_SERVER": "http://127.0.0.1:1"})
    ctl("container", "delete", agent, status=1)  # nobody to ask, no --yes
    assert "name" in json.loads(ctl("--json", "container", "get", agent).stdout)


def test_a_get_is_tried_twice(ctl):
    """A GET that fails with 5xx is sent again once; a POST is not."""
    seen = []

    class Broken(BaseHTTPRequestHandler):
        def answer(self):
            seen.append(self.command)
            self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.dumps({"error": "broken"} if len(seen) < 2 else {"agents": []}).encode()
            self.send_response(503 if len(seen) < 2 else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Broken)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = {"AGENTIC_SERVER": f"http://127.0.0.1:{server.server_port}"}
    ctl("agent", "list", env=url)
    assert seen == ["GET", "GET"]
    seen.clear()
    assert ctl("agent", "stop", "x", status=1, env=url).stderr == "Error: broken\n"
    assert seen == ["POST"]
    server.shutdown()
    server.server_close()


def test_the_audit_log(ctl, agent, tmp_path):
    ctl("container", "stop", agent, "--timeout", "1")
    ctl("container", "start", "none", status=2)
    path = tmp_path / ".local/state/sandboxctl/audit.log"
    assert ctl("audit-log", "path").stdout.strip() == str(path) and stat.S_IMODE(path.stat().st_mode) == 0o600
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(r["kind"], r["verb"], r["target"]) for r in rows[:2]] == [("intent", "container stop", agent), ("outcome", "container stop", agent)]
    assert rows[1]["outcome"] == "ok" and rows[1]["duration_ms"] >= 0 and rows[3]["outcome"] == "err" and "none" in rows[3]["err"]
    assert [json.loads(line) for line in ctl("audit-log", "tail", "-n", "1").stdout.splitlines()] == rows[-1:]
    assert len(ctl("audit-log", "grep", "intent").stdout.splitlines()) == 2


def test_watch_shows_a_list_again(tmp_path, holtd, agent):
    p = subprocess.Popen([f"{BUILD}/holt", "sandboxctl", "agent", "list", "--watch", "200ms"], stdout=subprocess.PIPE, text=True, env=env_of(tmp_path, holtd))
    heads = 0
    try:
        while heads < 3:
            line = p.stdout.readline()
            assert line
            heads += line.startswith("ID ")
    finally:
        p.kill()
        p.wait()


def test_words_for_completion(ctl):
    for shell in ("bash", "zsh"):
        script = ctl("completions", shell).stdout
        r = subprocess.run(["bash", "-c", script.replace("autoload -U +X bashcompinit && bashcompinit", "") +
                            '\nCOMP_WORDS=(sandboxctl agent ""); COMP_CWORD=2; _sandboxctl; echo "${COMPREPLY[@]}"'],
                           capture_output=True, text=True, check=True)
        assert {"list", "get", "stop", "shell"} <= set(r.stdout.split()), r.stdout
    assert "complete -c sandboxctl" in ctl("completions", "fish").stdout
    ctl("completions", "other", status=1)


# --- agents, containers, machines ---

def test_agents(ctl, agent):
    row = {r["ID"]: r for r in table(ctl("agent", "list"))}[agent]
    assert (row["HOSTNAME"], row["STATUS"], row["PROFILE"]) == (agent, "Ready", "-")
    assert agent in [a["id"] for a in json.loads(ctl("agents", "--json").stdout)["agents"]]
    assert table(ctl("agent", "list", "--state", "error")) == []
    lines = dict(line.split(None, 1) for line in ctl("agent", "get", agent).stdout.splitlines())
    assert lines["id"] == agent and lines["status"] == "Ready"
    assert ctl("exec", agent, "sh", "-c", "echo $0 --json; exit 7", "x", status=7).stdout == "x --json\n"
    assert ctl("agent", "exec", agent, "--timeout", "60", "--", "cat", stdin="typed").stdout == "typed"
    ctl("agent", "stop", agent)
    assert {r["ID"]: r for r in table(ctl("agent", "list"))}[agent]["STATUS"] == "Disconnected"


def test_containers(ctl):
    made = json.loads(ctl("--json", "container", "create", "ctl-box", "--image", "agentic/claude:latest", "-e", "A=1", "-e", "B=2", "--", "sleep", "1000").stdout)
    assert (made["name"], made["status"]) == ("ctl-box", "running")
    assert ctl("exec", "ctl-box", "sh", "-c", "echo $A$B").stdout == "12\n"
    row = {r["NAME"]: r for r in table(ctl("container", "list", "--state", "running"))}["ctl-box"]
    assert (row["ID"], row["STATUS"], row["FINISHED"]) == (made["id"], "running", "-")
    ctl("container", "stop", "ctl-box", "--timeout", "1")
    assert "stopped" in ctl("container", "get", "ctl-box").stdout
    ctl("container", "start", "ctl-box")
    ctl("container", "delete", "ctl-box", "--yes")
    ctl("container", "get", "ctl-box", status=2)


def test_machines(ctl, holtd):
    """Where there is no hypervisor, the operation says so; the requests are the same."""
    made = ctl("--json", "vm", "create", "ctl-vm", "--profile", "basic", "--vcpus", "1", "--memory", "256", "--disk", "4", "--agentshare", "--start")
    op = json.loads(made.stdout)["operation"]["id"]
    assert op in ctl("ops", "get", op).stdout
    done = json.loads(ctl("--json", "ops", "get", op).stdout)
    if wait_for(lambda: (o := holtd.ok("GET", f"/api/v1/operations/{op}"))["status"] != "running" and o, 120)["status"] == "failed":
        assert ctl("ops", "wait", op, status=1).stderr.startswith("Error: ")
        ctl("vm", "create", "ctl-vm2", "--wait", "--memory", "256", "--vcpus", "1", "--disk", "4", status=1)
    else:
        ctl("ops", "wait", op, "--timeout", "1m")
        ctl("vm", "deploy-agent", "ctl-vm", "--wait")
        ctl("vm", "restart", "ctl-vm", "--wait")
        ctl("vm", "stop", "ctl-vm", "--force")
        ctl("vm", "start", "ctl-vm")
    assert done["target"] == "ctl-vm"
    ctl("ops", "get", "none", status=2)
    ctl("vm", "list")
    for verb in ("get", "start", "stop", "restart", "deploy-agent"):
        ctl("vm", verb, "none", status=2)
    ctl("vm", "destroy", "none", "--yes", status=2)
    ctl("vm", "destroy", "none", status=1)
    ctl("vm", "reprovision", "none", "--yes", status=2)
    holtd.request("DELETE", "/api/v1/vms/ctl-vm?force=true")


def test_an_agent_is_made_anew(ctl, holtd, agent):
    assert ctl("exec", agent, "sh", "-c", "echo old > /root/f; cat /root/f").stdout == "old\n"
    ctl("vm", "reprovision", agent, "--yes", "--wait")
    assert ctl("exec", agent, "sh", "-c", "cat /root/f 2>/dev/null || echo gone").stdout == "gone\n"


# --- sessions ---

class Typist:
    """sandboxctl at a terminal of its own."""

    def __init__(self, tmp_path, holtd, *words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(f"{BUILD}/holt", ["sandboxctl", *words], env_of(tmp_path, holtd, TERM="xterm"))
        self.seen = ""

    def until(self, text):
        def look():
            if select.select([self.fd], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self.fd, 65536).decode(errors="replace")
            return text in self.seen
        wait_for(look)

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        def look():
            with contextlib.suppress(OSError):
                if select.select([self.fd], [], [], 0)[0]:
                    self.seen += os.read(self.fd, 65536).decode(errors="replace")
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return pid and (status,)
        status = os.waitstatus_to_exitcode(wait_for(look)[0])
        os.close(self.fd)
        return status


def test_sessions(ctl, holtd, agent, tmp_path):
    ident = session(holtd, agent, "echo begun; while read line; do echo got:$line; [ $line = end ] && exit 3; done")
    rows = table(ctl("session", "list", "--agent", agent))
    assert [(r["SESSION_ID"], r["AGENT"], r["NAME"], r["ATT"], r["LAG"]) for r in rows] == [(ident, agent, "s", "0", "0")]
    assert table(ctl("session", "list", "--agent", "none")) == []
    assert ident in ctl("session", "get", ident).stdout
    ctl("session", "get", "none", status=2)
    ctl("session", "resize", ident, "--cols", "100", "--rows", "30")
    size = holtd.ok("GET", f"/holt/v1/sandboxes/{agent}/sessions/{ident}")
    assert (size["cols"], size["rows"]) == (100, 30)
    ctl("session", "resize", ident, status=1)
    (tmp_path / "typed").write_text("from a file\n")
    ctl("session", "input", ident, "-f", str(tmp_path / "typed"))
    ctl("session", "input", ident, "-f", "-", stdin="from stdin\n")
    wait_for(lambda: "got:from stdin" in holtd.ok("GET", f"/api/v1/sessions/{ident}/screen")["text"])
    cast = tmp_path / "cast"
    record = subprocess.Popen([f"{BUILD}/holt", "sandboxctl", "session", "record", ident, "-o", cast], env=env_of(tmp_path, holtd))
    tail = subprocess.Popen([f"{BUILD}/holt", "sandboxctl", "session", "tail", ident, "--replay-from", "0"], stdout=subprocess.PIPE, text=True, env=env_of(tmp_path, holtd))
    wait_for(lambda: cast.exists() and "from stdin" in cast.read_text())
    ctl("session", "input", ident, "-f", "-", stdin="end\n")
    out = tail.communicate(timeout=60)[0]
    assert "begun" in out and "got:from a file" in out and "got:end" in out and (tail.returncode, record.wait(60)) == (0, 0)
    lines = cast.read_text().splitlines()
    assert json.loads(lines[0])["version"] == 2 and any("got:end" in line for line in lines[1:])
    wait_for(lambda: table(ctl("session", "list", "--agent", agent)) == [])


def test_attach_only_watches_unless_it_may_write(holtd, agent, tmp_path):
    """Ctrl-A d leaves it running."""
    ident = session(holtd, agent, "echo begun; while read line; do echo got:$line; done")
    watch = Typist(tmp_path, holtd, "session", "attach", ident)
    watch.until("begun")
    watch.type("unwanted\r")
    watch.type("\x01d")
    watch.until("detached")
    assert watch.end() == 0
    write = Typist(tmp_path, holtd, "session", "attach", ident, "--write")
    write.until("begun")
    write.type("wanted\r")
    write.until("got:wanted")
    write.type("\x01d")
    assert write.end() == 0
    text = holtd.ok("GET", f"/api/v1/sessions/{ident}/screen")["text"]
    assert "got:wanted" in text and "unwanted" not in text
    again = Typist(tmp_path, holtd, "attach", agent, "s")
    again.until("got:wanted")
    again.type("\x01d")
    assert again.end() == 0


def test_a_shell_in_an_agent(ctl, holtd, agent, tmp_path):
    one = Typist(tmp_path, holtd, "agent", "shell", agent)
    one.type("echo $((40+2))x\r")
    one.until("42x")
    one.type("\x01d")
    assert one.end() == 0
    again = Typist(tmp_path, holtd, "agent", "shell", agent)  # the same session
    again.until("42x")
    again.type("exit 5\r")
    assert again.end() == 5
    once = Typist(tmp_path, holtd, "agent", "shell", agent, "--cmd", "echo by command; exit 4")
    assert once.end() == 4 and "by command" in once.seen


def test_a_session_is_killed(ctl, holtd, agent):
    ident = session(holtd, agent, "sleep 1000")
    ctl("session", "kill", ident, status=1)  # asks first
    ctl("session", "kill", ident, "--signal", "USR1", "--yes", status=1)
    assert "signaled" in ctl("session", "kill", ident, "--signal", "KILL", "--yes").stdout
    wait_for(lambda: table(ctl("session", "list", "--agent", agent)) == [])
    ctl("session", "kill", "none", "--yes", status=2)


def test_a_question_before_something_is_removed(holtd, tmp_path):
    for answer, left in (("n", True), ("yes", False)):
        holtd.request("POST", "/api/v1/containers", {"name": "ctl-asked", "image": "host"})
        one = Typist(tmp_path, holtd, "container", "delete", "ctl-asked")
        one.until("[y/N]")
        one.type(answer + "\r")
        assert one.end() == (1 if left else 0)
        assert (holtd.request("GET", "/api/v1/containers/ctl-asked")[0] == 200) is left


# --- tasks, questions, files ---

@pytest.mark.skipif(not os.path.exists(BACKEND), reason="git is not installed: make deps")
def test_tasks(ctl, tmp_path, repo):  # noqa: F811
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.json"
    good.write_text(MANIFEST % (repo.url, "go"))
    bad.write_text(json.dumps({"version": "1", "kind": "Task", "metadata": {"name": "bad"}, "repository": {"url": repo.url, "branch": "main"},
                               "claude": {"prompt": "fail"}}))
    done = json.loads(ctl("--json", "task", "submit", "--file", str(good), "--wait").stdout)
    assert (done["state"], done["exit_code"]) == ("completed", 0)
    failed = ctl("task", "submit", "-f", str(bad), "--wait", status=1)
    assert "failed" in failed.stdout
    rows = {r["ID"]: r for r in table(ctl("task", "list", "--state", "completed", "--limit", "5"))}
    assert rows[done["id"]]["NAME"] == "small" and rows[done["id"]]["STATE"] == "completed"
    assert done["id"] in ctl("task", "get", done["id"]).stdout
    for follow in ([], ["-f"]):
        assert '"tool_use"' in ctl("task", "logs", done["id"], *follow).stdout
    assert "SUMMARY.md" in [r["NAME"] for r in table(ctl("task", "artifacts", "list", done["id"]))]
    assert "SUMMARY.md" in [r["NAME"] for r in table(ctl("storage", "outbox", "ls", done["id"]))]
    ctl("task", "get", "none", status=2)
    waiting = json.loads(ctl("--json", "task", "submit", "-f", "-", stdin=MANIFEST % (repo.url, "hang")).stdout)["task_id"]
    ctl("task", "cancel", waiting, "--reason", "enough")
    wait_for(lambda: "cancelled" in ctl("task", "get", waiting).stdout)
    ctl("task", "cancel", waiting, status=1)
    ctl("task", "submit", "-f", str(tmp_path / "none"), status=2)
    ctl("task", "submit", "-f", "-", stdin="kind: [", status=1)


def test_questions(ctl, holtd, agent):
    ident = session(holtd, agent, "printf 'Update all callers? (y/n) '; read a; echo got $a; sleep 1000")
    row = wait_for(lambda: [r for r in table(ctl("hitl", "list")) if r["SESSION"] == ident])[0]
    assert row["PROMPT"] == "Update all callers? (y/n)"
    ctl("hitl", "respond", row["ID"], "--text", "yes")
    wait_for(lambda: "got yes" in holtd.ok("GET", f"/api/v1/sessions/{ident}/screen")["text"])
    ctl("hitl", "respond", row["ID"], "--text", "yes", status=2)


def test_loadouts(ctl):
    rows = {r["NAME"]: r for r in table(ctl("loadout", "list", "--category", "per-provider"))}
    assert set(rows) == {"claude-only", "codex-only", "copilot-only"} and rows["codex-only"]["DESCRIPTION"] == "Codex alone."
    assert "profiles/full-suite.yaml" in ctl("loadout", "get", "full-suite").stdout
    assert "init_scripts" in ctl("loadout", "registry").stdout
    ctl("loadout", "get", "none", status=2)


def test_storage(ctl, agent, tmp_path):
    (tmp_path / "f").write_bytes(bytes(range(256)))
    ctl("storage", "global", "push", "--path", "tools/f.bin", "-f", str(tmp_path / "f"))
    row = table(ctl("storage", "global", "ls", "--path", "tools"))[0]
    assert (row["KIND"], row["NAME"], row["SIZE"], row["MODE"]) == ("file", "f.bin", "256", "0644")
    ctl("storage", "inbox", "push", agent, "--path", "note", "-f", "-", stdin="hello")
    assert [r["NAME"] for r in table(ctl("storage", "inbox", "ls", agent))] == ["note"]
    ctl("storage", "global", "ls", "--path", "../..", status=1)
    ctl("storage", "outbox", "ls", "none", status=2)


# --- events, health ---

def test_events(ctl, holtd, agent, tmp_path):
    rows = table(ctl("event", "list", "--source", agent, "--since", "1h"))
    assert rows and {r["SOURCE"] for r in rows} == {agent}
    kind = rows[0]["TYPE"]
    assert {r["TYPE"] for r in table(ctl("event", "list", "--event-type", kind, "--limit", "3"))} == {kind}
    ctl("event", "list", "--since", "yesterday", status=1)
    p = subprocess.Popen([f"{BUILD}/holt", "sandboxctl", "event", "tail", "--since", "1h", "--filter", f"container.stopped.*{agent}"],
                         stdout=subprocess.PIPE, text=True, env=env_of(tmp_path, holtd))
    try:
        holtd.ok("POST", f"/api/v1/containers/{agent}/stop")
        assert agent in p.stdout.readline()
    finally:
        p.kill()
        p.wait()


def test_health(ctl):
    rows = table(ctl("health", "status"))
    assert len(rows) == 4 and {r["STATUS"] for r in rows} == {"ok"}
    assert "uptime_seconds" in ctl("health", "watchdog").stdout
    down = ctl("health", "status", status=1, env={"AGENTIC_SERVER": "http://127.0.0.1:1"})
    assert {r["STATUS"] for r in table(down)} != {"ok"}
