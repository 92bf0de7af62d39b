"""holt-agent: the agent program for machines that holt did not make."""
import contextlib
import os
import secrets
import signal
import subprocess

import pytest

from daemon import BUILD, Holtd, Program, all_events, environment, free_ports, wait_for
from test_agent_grpc import API, output_of, ready

COUNT = "i=0; while [ $i -lt 4000 ]; do echo line $i; i=$((i+1)); [ $((i % 100)) = 0 ] && sleep 0.05; done"


class HoltAgent(Program):
    def __init__(self, directory, port, name, secret, *args, **env):
        super().__init__([f"{BUILD}/holt-agent", *args],
                         {"AGENT_ID": name, "AGENT_SECRET": secret, "MANAGEMENT_SERVER": f"127.0.0.1:{port}", "HOME": str(directory), **env},
                         log=f"{directory}/{name}.log")

    def end(self):
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(20)


@pytest.fixture
def port():
    return free_ports()[0]


@pytest.fixture
def world(tmp_path, port):
    """(start a holtd there, start an agent)"""
    with contextlib.ExitStack() as stack:
        made = []

        def holtd(*args, **more):
            d = Holtd(tmp_path, "--remote-first-contact", "always", *args, port=port, **more)
            made[:] = [d]
            return d

        def agent(name="far", secret=None, *args, **env):
            a = HoltAgent(tmp_path, port, name, secret or secrets.token_hex(32), *args, **env)
            stack.callback(a.end)
            return a
        yield holtd, agent
        stack.close()
        for d in made:
            if d.alive():
                d.stop()


def run(d, name, command, **more):
    return d.ok("POST", f"/holt/v1/sandboxes/{name}/execs", {"command": ["sh", "-c", command], **more})


def test_it_needs_three_settings(tmp_path):
    def refused(*args, **env):
        r = subprocess.run([f"{BUILD}/holt-agent", *args], env=environment(env), capture_output=True, text=True, timeout=20, check=False)
        assert r.returncode == 64, r
        return r.stderr
    full = {"AGENT_ID": "a", "AGENT_SECRET": "0" * 64, "MANAGEMENT_SERVER": "127.0.0.1:1"}
    for missing in full:
        assert f"{missing} is not set" in refused(**{k: v for k, v in full.items() if k != missing})
    assert "not 64 hex digits" in refused(**{**full, "AGENT_SECRET": "short"})
    assert "not HOST:PORT" in refused(**{**full, "MANAGEMENT_SERVER": "nowhere"})
    assert "HEARTBEAT_INTERVAL" in refused(**{**full, "HEARTBEAT_INTERVAL": "soon"})
    assert "no arguments" in refused("what", **full)
    r = subprocess.run([f"{BUILD}/holt-agent", "--help"], capture_output=True, text=True, timeout=20, check=True)
    assert "AGENT_SECRET" in r.stdout and "MANAGEMENT_SERVER" in r.stdout


def test_it_is_static():
    assert "statically linked" in subprocess.run(["file", f"{BUILD}/holt-agent"], capture_output=True, text=True, check=True).stdout


def test_commands(world):
    holtd, agent = world
    d = holtd()
    secret = secrets.token_hex(32)
    a = agent("far", secret, LEFT="over")
    row = ready(d, "far")
    assert row["system_info"]["kernel"] == os.uname().release and row["ip_address"] == "127.0.0.1" and row["hostname"] == os.uname().nodename
    wait_for(lambda: d.ok("GET", f"{API}/agents/far")["metrics"]["memory_total_bytes"] > 1 << 20)
    r = run(d, "far", "cat; echo err >&2; echo $A $LEFT; pwd; exit 3", stdin="in\n", env={"A": "b c"})
    assert (r["exit_code"], r["stdout"], r["stderr"]) == (3, f"in\nb c over\n{d.directory}\n", "err\n"), r
    r = d.ok("POST", "/holt/v1/sandboxes/far/execs", {"command": ["no-such-program"]})
    assert (r["exit_code"], r["state"]) == (127, "failed"), r
    r = d.ok("POST", "/holt/v1/sandboxes/far/execs", {"command": ["/etc/passwd"]})
    assert r["exit_code"] == 126, r
    r = run(d, "far", "true", cwd="/no/such/dir")
    assert r["state"] == "failed", r
    r = run(d, "far", "trap '' TERM; sleep 1000 & sleep 1000", timeout_ms=200)
    assert r["timed_out"] and r["exit_code"] == 137, r
    assert len(run(d, "far", "seq 1 600000")["stdout"]) == len("".join(f"{n}\n" for n in range(1, 600001)))
    r = run(d, "far", "sleep 1000 & echo $!")
    assert r["exit_code"] == 0, "what holds its pipe does not hold its end"
    os.kill(int(r["stdout"]), signal.SIGKILL)
    everything = run(d, "far", "env; cat /proc/$PPID/environ; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep AGENT_ID=far")["stdout"]
    assert secret not in everything
    assert secret not in run(d, "far", "cat /proc/*/cmdline | tr '\\0' ' '")["stdout"]
    a.end()
    assert a.process.returncode == 0


def test_a_terminal(world):
    holtd, agent = world
    d = holtd()
    agent()
    ready(d, "far")
    s = d.ok("POST", f"{API}/agents/far/sessions", {"command": "stty size; printf 'Go on? (y/n) '; read a; echo got $a; read b; stty size; sleep 1000"})
    x = s["session_id"]

    def screen():
        return d.ok("GET", f"{API}/sessions/{x}/screen")
    wait_for(lambda: "(y/n)" in screen()["text"] and screen()["text"].startswith("50 220"))
    ask = wait_for(lambda: [q for q in d.ok("GET", f"{API}/hitl")["requests"] if q["session_id"] == x])[0]
    assert d.request("POST", f"{API}/hitl/{ask['hitl_id']}/respond", {"response": "y"})[0] == 204
    wait_for(lambda: "got y" in screen()["text"])
    d.ok("POST", f"/holt/v1/sandboxes/far/execs/{x}/resize", {"rows": 30, "cols": 100})
    d.ok("POST", f"/holt/v1/sandboxes/far/execs/{x}/stdin", b"\n", headers={"Content-Type": "application/octet-stream"})
    wait_for(lambda: "30 100" in screen()["text"])
    d.ok("POST", f"/holt/v1/sandboxes/far/execs/{x}/stdin", b"\x03", headers={"Content-Type": "application/octet-stream"})
    end = wait_for(lambda: (r := d.ok("GET", f"/holt/v1/sandboxes/far/execs/{x}"))["state"] == "exited" and r)
    assert end["exit_code"] == 130, end


def test_nothing_is_lost_when_holtd_is_killed(world):
    """A session and a counting command go on over two kills of holtd, and a third ends while it is down."""
    holtd, agent = world
    d = holtd()
    agent()
    ready(d, "far")
    s = d.ok("POST", f"{API}/agents/far/sessions", {"command": "echo before; read a; echo $a; sleep 1000"})["session_id"]
    x = d.ok("POST", "/holt/v1/sandboxes/far/execs", {"command": ["sh", "-c", COUNT], "background": True})["id"]
    short = d.ok("POST", "/holt/v1/sandboxes/far/execs", {"command": ["sh", "-c", "echo start; sleep 1; echo end; exit 7"], "background": True})["id"]
    wait_for(lambda: "line 300" in output_of(d, "far", x) and "start" in output_of(d, "far", short))
    for _ in range(2):
        d.kill()
        d = holtd()
        ready(d, "far")
    end = wait_for(lambda: (r := d.ok("GET", f"/holt/v1/sandboxes/far/execs/{short}"))["state"] == "exited" and r)
    assert end["exit_code"] == 7 and output_of(d, "far", short) == "start\nend\n"
    wait_for(lambda: d.ok("GET", f"/holt/v1/sandboxes/far/execs/{x}")["state"] == "exited")
    assert output_of(d, "far", x) == "".join(f"line {n}\n" for n in range(4000))
    d.ok("POST", f"/holt/v1/sandboxes/far/execs/{s}/stdin", b"after\n", headers={"Content-Type": "application/octet-stream"})
    wait_for(lambda: "after" in d.ok("GET", f"{API}/sessions/{s}/screen")["text"])
    assert d.ok("GET", f"{API}/agents/far")["status"] == "Busy"


def test_it_waits_for_a_server_that_is_not_there_yet(world):
    holtd, agent = world
    a = agent()
    wait_for(lambda: a.log().count("no link to the server") >= 2)
    d = holtd()
    ready(d, "far")


def test_a_wrong_secret(world):
    holtd, agent = world
    d = holtd()
    agent("far", "a" * 64)
    ready(d, "far")
    b = agent("far", "b" * 64)
    wait_for(lambda: "the server refuses this agent" in b.log() and "Invalid agent secret" in b.log())
    assert ready(d, "far")["status"] == "Ready" and b.alive()


def test_stop_ends_it(world):
    holtd, agent = world
    d = holtd()
    a = agent()
    ready(d, "far")
    d.ok("POST", "/holt/v1/sandboxes/far/execs", {"command": ["sleep", "1000"], "background": True})
    d.ok("POST", "/holt/v1/sandboxes/far/stop", {"grace_ms": 100})
    assert a.process.wait(20) == 0 and "asks this agent to end" in a.log()
    assert ready(d, "far", "Disconnected")


def test_heartbeats(world):
    holtd, agent = world
    d = holtd(env={"HEARTBEAT_TIMEOUT": "6"})
    a = agent(HEARTBEAT_INTERVAL="1")
    ready(d, "far")
    seen = {wait_for(lambda: d.ok("GET", f"{API}/agents/far")["last_heartbeat"])}
    wait_for(lambda: seen.add(d.ok("GET", f"{API}/agents/far")["last_heartbeat"]) or len(seen) >= 3)
    os.kill(a.pid, signal.SIGSTOP)
    ready(d, "far", "Stale")
    ready(d, "far", "Disconnected")
    os.kill(a.pid, signal.SIGCONT)
    ready(d, "far", "Ready")
    assert [e["type"] for e in all_events(d, type="agent.disconnected")] == ["agent.disconnected"]


def test_an_env_file(world, tmp_path, port):
    holtd, _ = world
    d = holtd()
    path = tmp_path / "agent.env"
    path.write_text(f"# of the agent\nAGENT_ID=filed\nAGENT_SECRET={'c' * 64}\nMANAGEMENT_SERVER=127.0.0.1:{port}\nAGENT_PROFILE=basic\n")
    a = Program([f"{BUILD}/holt-agent", "--env-file", str(path)], {}, log=f"{tmp_path}/filed.log")
    try:
        assert ready(d, "filed")["profile"] == "basic"
    finally:
        a.process.send_signal(signal.SIGTERM)
        a.process.wait(20)
