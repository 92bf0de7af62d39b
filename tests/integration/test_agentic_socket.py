"""agentic-sandbox's WebSocket: subscriptions, commands, sessions and their frames."""
import base64
import json
import subprocess

import pytest
from websockets.sync.client import connect

from daemon import ROOT, native, wait_for

API = "/api/v1"


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("agentic-socket"))
    yield d
    d.clear()
    d.stop()


@pytest.fixture
def agent(holtd, request):
    name = "agent-" + "".join(c if c.isalnum() else "-" for c in request.node.name.removeprefix("test_"))[:40].strip("-")
    assert holtd.request("POST", f"{API}/containers", {"name": name, "image": "host"})[0] == 201
    yield name
    holtd.request("DELETE", f"{API}/containers/{name}")


class Client:
    def __init__(self, holtd, token=None, path="/"):
        self.ws = connect(f"ws://127.0.0.1:{holtd.port}{path}", additional_headers={"Authorization": f"Bearer {token or holtd.token}"})
        self.seen = []
        assert "join_session" in self.wait("server_hello")["supported_client_messages"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ws.close()

    def say(self, kind, **more):
        self.ws.send(json.dumps({"type": kind, **more}))

    def wait(self, kind, good=lambda m: True):
        while True:
            m = json.loads(self.ws.recv(timeout=30))
            self.seen.append(m)
            if m["type"] == kind and good(m):
                return m

    def until_output(self, text, command):
        """The output of a command so far, once it has this text."""
        got = ""
        while text not in got:
            m = self.wait("output", lambda m: m["command_id"] == command)
            got += m["data"]
        return got

    def frame(self, kind, good=lambda m: True):
        return self.wait("session_frame", lambda m: m["kind"] == kind and good(m))


def test_agents_and_commands(holtd, agent):
    with Client(holtd) as c, Client(holtd, path="/ws") as monitor:
        monitor.say("subscribe", agent_id="*")
        assert monitor.wait("subscribed")["agent_id"] == "*"
        c.say("ping", timestamp=7)
        assert c.wait("pong")["timestamp"] == 7
        c.say("list_agents")
        assert agent in [a["id"] for a in c.wait("agent_list")["agents"]]
        c.say("send_command", agent_id=agent, command="sh", args=["-c", "read a; echo got $a; printf 'r\\303'; sleep 0.3; printf '\\251\\n'; exit 3"])
        started = c.wait("command_started")
        assert started["agent_id"] == agent
        c.say("send_input", agent_id=agent, command_id=started["command_id"], data="one\n")
        c.wait("input_sent")
        for reader in (c, monitor):  # a character that came in two parts is whole
            assert "got one\nré\n" in reader.until_output("ré\n", started["command_id"])
            assert reader.wait("command_completed")["exit_code"] == 3
        c.say("send_command", agent_id="nobody", command="true")
        assert c.wait("error")["message"] == "Agent 'nobody' not found"
        c.ws.send("{")
        assert c.wait("error")["message"].startswith("Invalid message: ")
        c.say("dance")
        assert "dance" in c.wait("error")["message"]
        assert monitor.wait("metrics_update", lambda m: m["agent_id"] == agent)["memory_used_bytes"] > 0


def test_shells_and_sessions(holtd, agent):
    with Client(holtd) as c:
        c.say("start_shell", agent_id=agent, cols=100, rows=30)
        shell = c.wait("shell_started")
        c.say("start_shell", agent_id=agent)
        assert c.wait("shell_started")["command_id"] == shell["command_id"]
        c.say("send_input", agent_id=agent, command_id=shell["command_id"], data="stty size\n")
        c.until_output("30 100", shell["command_id"])
        c.say("pty_resize", agent_id=agent, command_id=shell["command_id"], cols=10, rows=3)
        assert "at least" in c.wait("error")["message"]
        c.say("pty_resize", agent_id=agent, command_id=shell["command_id"], cols=90, rows=20)
        assert c.wait("pong")["timestamp"] == 0
        c.say("create_session", agent_id=agent, session_name="work", session_type="interactive", command="printf 'Sure? (y/n) '; read a; sleep 1000")
        made = c.wait("session_created")
        c.say("list_sessions", agent_id=agent)
        assert sorted(s["session_name"] for s in c.wait("session_list")["sessions"]) == ["main", "work"]
        assert c.wait("hitl_request")["session_id"] == made["command_id"]
        c.say("attach_session", agent_id=agent, session_name="work", cols=80, rows=24)
        assert c.wait("session_attached")["command_id"] == made["command_id"]
        c.say("kill_session", agent_id=agent, session_name="work")
        c.wait("session_killed")
        c.wait("command_completed", lambda m: m["command_id"] == made["command_id"])
        c.say("attach_session", agent_id=agent, session_name="work")
        assert "not found" in c.wait("error")["message"]


def test_frames_of_a_session(holtd, agent):
    made = holtd.ok("POST", f"{API}/agents/{agent}/sessions", {"command": "echo ready; PS1='> ' ENV= exec sh", "rows": 10, "cols": 40})
    session = made["session_id"]
    wait_for(lambda: "ready" in holtd.ok("GET", f"{API}/sessions/{session}/screen")["text"])
    text = lambda m: base64.b64decode(m["data"]).decode()
    with Client(holtd) as watcher, Client(holtd) as writer:
        watcher.ws.send(json.dumps({"type": "join_session", "session_id": session, "role": "observer"}))
        joined = watcher.wait("session_joined")
        assert joined["role"] == "observer" and joined["current_seq"] > 0
        assert "ready" in text(watcher.frame("keyframe"))
        writer.ws.send(json.dumps(made["join_message"] | {"replay_from": 0}))
        assert "ready" in text(writer.frame("output"))  # from the beginning
        watcher.frame("membership_changed", lambda m: len(m["controllers"]) == 1 and len(m["observers"]) == 1)
        watcher.say("session_input", session_id=session, data="x")
        assert "controller" in watcher.wait("error")["message"]
        writer.say("session_input", session_id=session, data="echo $((40+2))\n")
        seen = ""
        while "42" not in seen:
            seen += text(watcher.frame("output"))
        writer.say("session_resize", session_id=session, rows=12, cols=50)
        assert watcher.frame("resize")["cols"] == 50
        watcher.say("leave_session", session_id=session)
        watcher.wait("session_left")
        writer.say("session_input", session_id=session, data="exit 4\n")
        assert writer.frame("closed")["exit_code"] == 4
        writer.say("join_session", session_id="none")
        assert writer.wait("error")["message"] == "Session 'none' not found"


def test_output_is_neither_lost_nor_doubled(holtd, agent):
    with Client(holtd) as c:
        c.say("send_command", agent_id=agent, command="seq 1 200000")
        command = c.wait("command_started")["command_id"]
        got = ""
        while True:
            m = json.loads(c.ws.recv(timeout=30))
            if m["type"] == "output" and m["command_id"] == command:
                got += m["data"]
            elif m["type"] == "command_completed":
                break
        # the first lines may have been there before the reply
        early = "".join(x["data"] for x in c.seen if x["type"] == "output" and x["command_id"] == command)
        assert early + got == "".join(f"{i}\n" for i in range(1, 200001))


def test_a_stranger_sees_nothing(holtd, agent):
    token = holtd.ok("POST", "/holt/v1/tokens", {"name": "b", "role": "operator", "tenant": "tb"})["token"]
    with Client(holtd, token) as stranger, Client(holtd) as c:
        stranger.say("subscribe", agent_id="*")
        stranger.wait("subscribed")
        stranger.say("subscribe", agent_id=agent)
        assert "not found" in stranger.wait("error")["message"]
        c.say("send_command", agent_id=agent, command="echo hidden")
        command = c.wait("command_started")["command_id"]
        c.wait("command_completed")
        for kind, more in (("join_session", {"session_id": command}), ("list_sessions", {"agent_id": agent}),
                           ("send_input", {"agent_id": agent, "command_id": command, "data": "x"})):
            stranger.say(kind, **more)
            assert "not found" in stranger.wait("error")["message"]
        stranger.say("list_agents")
        assert stranger.wait("agent_list")["agents"] == []
        stranger.say("ping", timestamp=1)
        stranger.wait("pong")
        assert {m["type"] for m in stranger.seen} == {"server_hello", "subscribed", "error", "agent_list", "pong"}
    status = holtd.request("GET", "/", token=None, headers={"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                                                            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})[0]
    assert status == 401


def test_a_gate_closes_open_sockets_too(holtd, agent):
    made = holtd.ok("POST", f"{API}/agents/{agent}/sessions", {"command": "cat"})
    with Client(holtd) as c:
        c.ws.send(json.dumps(made["join_message"]))
        c.wait("session_joined")
        gate = holtd.ok("POST", "/holt/v1/gates", {"operation": "exec.*"})["id"]
        try:
            for kind, more in (("send_command", {"command": "true"}), ("start_shell", {}), ("create_session", {"session_name": "x"}),
                               ("kill_session", {"session_name": made["session_name"]})):
                c.say(kind, agent_id=agent, **more)
                assert "approval" in c.wait("error")["message"], kind
            for kind, more in (("session_input", {"data": "x"}), ("session_resize", {"rows": 9, "cols": 30})):
                c.say(kind, session_id=made["session_id"], **more)
                assert "approval" in c.wait("error")["message"], kind
        finally:
            holtd.ok("DELETE", f"/holt/v1/gates/{gate}")


def test_a_client_in_node(holtd, agent):
    r = subprocess.run(["node", f"{ROOT}/tests/integration/node/agentic_watch.js", f"ws://127.0.0.1:{holtd.port}/", holtd.token, agent],
                       capture_output=True, text=True, timeout=60, check=False)
    assert r.stdout == "seen\n", r
