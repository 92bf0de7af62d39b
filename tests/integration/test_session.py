"""Sessions: named terminals with members, screens, recordings."""
import contextlib
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import threading
import time
import urllib.parse

import pytest

from daemon import BUILD, ROOT, SLOW, environment, native, wait_for
from session_client import API, Session


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("session"))
    yield d
    d.clear()
    d.stop()


@pytest.fixture
def box(holtd):
    b = holtd.ok("POST", f"{API}/sandboxes", {})["id"]
    yield b
    holtd.request("DELETE", f"{API}/sandboxes/{b}")


QUIET = ["sh", "-c", "PS1='> ' ENV= exec sh"]  # a shell whose screen is known


def test_a_session_has_a_name_and_a_screen(holtd, box):
    s = Session(holtd, box, "work", QUIET, rows=10, cols=60)
    assert (s.made["name"], s.made["rows"], s.made["cols"], s.made["state"]) == ("work", 10, 60, "running")
    s.wait_text(">")
    s.send("echo one; printf '\\033[1;31mred\\033[0m\\n'", "Enter")
    seen = s.wait_screen(lambda v: v["cursor"] == {"row": 3, "col": 2, "visible": True})
    assert seen["text"].split("\n")[1:3] == ["one", "red"] and seen["complete"]
    assert "\033[0;1;31mred\033[0m" in s.screen(format="ansi")
    assert s.screen(format="text").split("\n")[2] == "red"
    cells = s.screen(cells="true")["lines"][2]["runs"]
    assert cells == [{"text": "red", "width": 3, "fg": 1, "bold": True}], cells
    # by the command's own path, and as it was
    exec_path = f"{API}/sandboxes/{box}/execs/{s.made['id']}/screen"
    assert holtd.ok("GET", exec_path)["text"] == seen["text"]
    assert holtd.ok("GET", f"{exec_path}?offset=2")["text"].strip() == ">"
    assert holtd.ok("GET", f"{exec_path}?offset=0")["text"].strip() == ""


def test_its_name_is_unique_while_it_runs(holtd, box):
    s = Session(holtd, box, "one", QUIET)
    status, reply, _ = holtd.request("POST", f"{API}/sandboxes/{box}/sessions", {"name": "one"})
    assert status == 409 and "already" in reply["error"]["message"], reply
    for bad in ("newest", s.made["id"], "a/b", ""):
        assert holtd.request("POST", f"{API}/sandboxes/{box}/sessions", {"name": bad})[0] == 400, bad
    other = Session(holtd, box, "two", QUIET)
    names = [x["name"] for x in holtd.ok("GET", f"{API}/sandboxes/{box}/sessions")["sessions"]]
    assert names == ["one", "two"]
    assert other.kill()["state"] == "exited"
    names = [x["name"] for x in holtd.ok("GET", f"{API}/sandboxes/{box}/sessions")["sessions"]]
    assert names == ["one"]
    again = Session(holtd, box, "two", QUIET)
    assert again.get()["id"] == again.made["id"] != other.made["id"]
    assert len(holtd.ok("GET", f"{API}/sandboxes/{box}/sessions?all=true")["sessions"]) == 3
    assert holtd.request("GET", f"{API}/sandboxes/{box}/sessions/none")[0] == 404
    plain = holtd.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": ["true"]})["id"]
    assert holtd.request("GET", f"{API}/sandboxes/{box}/sessions/{plain}")[0] == 404
    assert holtd.request("GET", f"{API}/sandboxes/{box}/execs/{plain}/screen")[0] == 409


def test_all_sessions_in_pages(holtd):
    boxes = [holtd.ok("POST", f"{API}/sandboxes", {})["id"] for _ in range(3)]
    want = set()
    for b in boxes:
        for name in ("a", "b"):
            want.add(Session(holtd, b, name, QUIET).made["id"])
    for limit in (1, 2, 3, 100):
        got, cursor = [], ""
        while True:
            page = holtd.ok("GET", f"{API}/sessions?limit={limit}&cursor={cursor}")
            got += [s["id"] for s in page["sessions"]]
            cursor = page["cursor"]
            if not cursor:
                break
        assert sorted(got) == sorted(want) and len(got) == 6, (limit, got)
    holtd.clear()


def test_a_size_holds_from_its_place_in_the_output(holtd, box):
    s = Session(holtd, box, "size", QUIET, rows=5, cols=20)
    s.wait_text(">")
    s.send("printf '%s' 0123456789012345678901234567890", "Enter")
    s.wait_text("01234567890123456789\n01234567890")
    s.resize(8, 60)
    got = s.wait_screen(lambda x: x["cols"] == 60)
    assert got["rows"] == 8
    s.send("clear; printf '%s' 0123456789012345678901234567890; stty size", "Enter")
    s.wait_text("0123456789012345678901234567890")
    s.wait_text("8 60")
    at = s.get()["output_bytes"]
    assert (s.get()["rows"], s.get()["cols"]) == (8, 60)
    assert s.screen(offset=2)["cols"] == 20
    assert s.screen(offset=at)["cols"] == 60


def test_keys(holtd, box):
    """The bytes of keys, as cat -v shows them; with application cursor keys they differ."""
    s = Session(holtd, box, "keys", ["sh", "-c", "stty -icanon -echo; echo go; exec cat -v"])
    s.wait_text("go")
    s.send("é", "Up", "F5", "C-a", "M-x", "x", "Tab", "S-Tab", "Delete")
    s.wait_text("M-CM-)^[[A^[[15~^A^[xx")
    app = Session(holtd, box, "app", ["sh", "-c", "stty -icanon -echo; printf '\\033[?1hgo'; exec cat -v"])
    app.wait_text("go")
    app.send(None, "Up", "End")
    app.wait_text("^[OA^[OF")
    status, reply, _ = holtd.request("POST", app.path + "/send", {"keys": ["Hyper"]})
    assert status == 400 and "Hyper" in reply["error"]["message"] and "Enter" in reply["error"]["hint"]
    assert holtd.request("POST", app.path + "/send", {})[0] == 400
    app.kill()
    assert holtd.request("POST", app.path + "/send", {"text": "x"})[0] == 409


def test_members_take_over_and_hand_over(holtd, box):
    s = Session(holtd, box, "team", QUIET)
    with s.watch(role="controller", name="ada") as ada, s.watch(role="observer", name="bob", screen="true") as bob, \
            s.watch(role="observer", name="eve", raw="false", screen="true") as eve:
        ada.wait_for("members", lambda m: len(m["members"]) == 3)
        assert [(m["name"], m["role"]) for m in ada.of("members")[-1]["members"]] == [
            ("ada", "controller"), ("bob", "observer"), ("eve", "observer")]
        assert s.get()["controller"] == "ada" and s.get()["members"] == 3
        assert {m["name"] for m in holtd.ok("GET", s.path + "/members")["members"]} == {"ada", "bob", "eve"}
        ada.type(b"echo by-ada\n")
        for w in (bob, eve):
            w.until(lambda w: "by-ada\n" in w.text)
        # an observer's input is refused, and nothing of it arrives
        bob.type(b"echo by-bob\n")
        assert "observer" in bob.wait_for("error")["error"]["message"]
        bob.say(type="resize", rows=5, cols=5)
        bob.until(lambda w: len(w.of("error")) == 2)
        # by request: not while somebody controls it
        status, reply, _ = holtd.request("POST", s.path + "/send", {"text": "echo rest\n"})
        assert status == 409 and "ada" in reply["error"]["message"], reply
        # handed over
        ada.say(type="hand_over", to="nobody")
        assert "nobody" in ada.wait_for("error")["error"]["message"]
        ada.say(type="hand_over", to="bob")
        bob.wait_for("role", lambda m: m["role"] == "controller")
        eve.wait_for("members", lambda m: ("bob", "controller") in [(x["name"], x["role"]) for x in m["members"]])
        bob.say(type="input", text="echo by-bob", keys=["Enter"])
        eve.until(lambda w: "by-bob\n" in w.text)
        ada.until(lambda w: w.of("role")[-1]["role"] == "observer")
        # taken over, given up, taken by a request
        eve.say(type="take")
        bob.wait_for("role", lambda m: m["role"] == "observer")
        eve.wait_for("role", lambda m: m["role"] == "controller")
        eve.say(type="release")
        ada.wait_for("members", lambda m: all(x["role"] == "observer" for x in m["members"]))
        s.send("echo by-rest\n")
        eve.until(lambda w: "by-rest\n" in w.text)
        bob.say(type="take")
        bob.wait_for("role", lambda m: m["role"] == "controller")
        s.send("echo by-force\n", take=True)
        eve.until(lambda w: "by-force\n" in w.text)
    wait_for(lambda: s.get()["members"] == 0)
    s.send("echo still here\n")
    s.wait_text("still here\n")


def test_roles(holtd, box):
    s = Session(holtd, box, "roles", QUIET)
    s.wait_text(">")
    blind = holtd.new_token("blind", "observer")["token"]
    sees = holtd.ok("POST", f"{API}/tokens", {"name": "sees", "role": "observer", "content": True})["token"]
    assert holtd.request("GET", s.path, token=blind)[0] == 200
    assert holtd.request("GET", s.path + "/screen", token=blind)[0] == 403
    assert holtd.request("GET", s.path + "/screen", token=sees)[0] == 200
    assert holtd.request("GET", s.path + "/recording", token=blind)[0] == 403
    assert holtd.request("GET", s.path + "/search?text=x", token=blind)[0] == 403
    for what, body in (("send", {"text": "x"}), ("resize", {"rows": 5, "cols": 5}), ("kill", None)):
        assert holtd.request("POST", f"{s.path}/{what}", body, token=sees)[0] == 403, what
    with s.watch(token=sees, screen="true") as w, s.watch(role="controller", name="boss") as boss:
        assert w.wait_for("role")["role"] == "observer"
        w.until(lambda w: w.text.startswith(">"))
        w.say(type="take")
        assert w.wait_for("error")["error"]["code"] == "forbidden"
        boss.say(type="hand_over", to="sees")
        assert boss.wait_for("error")["error"]["code"] == "forbidden"


@pytest.mark.slow  # much output, and limits of time
def test_updates_are_few_and_endless_output_does_not_starve_them(holtd, box):
    s = Session(holtd, box, "busy", ["sh", "-c", "i=0; while :; do i=$((i+1)); echo line $i; done"])
    with s.watch(raw="false", screen="true", updates=5) as w:
        w.wait_for("screen")
        start, before = time.monotonic(), w.updates
        w.until(lambda w: w.updates >= before + 10)
        took = time.monotonic() - start
        assert took > 1.6, f"10 updates of at most 5 a second within {took:.2f} s"
        assert took < 6 * SLOW
        last = w.of("screen")[-1]
        assert last["offset"] > w.of("screen")[0]["offset"]
        w.say(type="keyframe")
        w.until(lambda w: w.keyframes == 2)
    s.kill()


@pytest.mark.slow  # much output, and limits of time
def test_a_stalled_reader_loses_nothing_but_time(holtd, box):
    s = Session(holtd, box, "flood", ["sh", "-c", "read x; seq 1 1500000; echo done; sleep 1000"], rows=24)
    with s.watch(role="controller", name="w", screen="true") as slow, s.watch(screen="true", raw="false") as quick:
        slow.wait_for("screen")
        slow.type(b"\n")
        quick.until(lambda w: "done\n" in w.text, 60)  # the stalled one holds nobody up
        slow.until(lambda w: w.output.endswith(b"done\r\n"), 60)
        want = b"\r\n" + b"".join(b"%d\r\n" % i for i in range(1, 1500001)) + b"done\r\n"
        assert slow.output == want
        slow.until(lambda w: "done\n" in w.text)
        assert slow.text == quick.text
        assert slow.of("lag") and slow.of("lag")[-1]["ms"] >= 200, [m["type"] for m in slow.messages]
    s.kill()


def test_a_command_that_ran_runs_after_a_restart(tmp_path):
    """Also before its init has answered the new holtd."""
    holtd = native(tmp_path, port=0)
    init = 0
    try:
        box = holtd.ok("POST", f"{API}/sandboxes", {})["id"]
        s = Session(holtd, box, "kept", QUIET)
        s.wait_text(">")
        x = holtd.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": ["sleep", "1000"], "background": True})
        assert (s.get()["state"], x["state"]) == ("running", "running")
        super(type(holtd), holtd).kill()  # holtd alone
        init = int((pathlib.Path(holtd.state) / "sb" / box / "record").read_text().split()[0])
        os.kill(init, signal.SIGSTOP)
        holtd = native(tmp_path, port=holtd.port)
        s.holtd = holtd
        assert s.get()["state"] == "running"
        assert holtd.ok("GET", f"{API}/sandboxes/{box}/execs/{x['id']}")["state"] == "running"
        os.kill(init, signal.SIGCONT)
        path = f"{API}/sandboxes/{box}/execs/{x['id']}/signal"
        wait_for(lambda: holtd.request("POST", path, {"signal": "KILL"})[0] < 300)  # once it is connected
        s.send("echo and on\n")
        s.wait_text("and on\n")
        holtd.ok("DELETE", f"{API}/sandboxes/{box}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            if init:
                os.kill(init, signal.SIGCONT)
        holtd.stop()


def test_the_same_after_a_kill_of_holtd(tmp_path):
    holtd = native(tmp_path, port=0)
    try:
        box = holtd.ok("POST", f"{API}/sandboxes", {})["id"]
        s = Session(holtd, box, "kept", QUIET, rows=8, cols=30)
        s.wait_text(">")
        s.resize(12, 50)
        s.send("for i in 1 2 3 4 5 6 7 8 9; do echo row $i; done; printf '\\033[3;10Hhere'; stty size", "Enter")
        before = s.wait_text("12 50")
        before = s.wait_screen(lambda x: x["cursor"]["row"] == 3 and x["cursor"]["col"] == 2)
        history = s.screen(history="true")["text"]
        super(type(holtd), holtd).kill()  # holtd alone
        holtd = native(tmp_path, port=holtd.port)
        s.holtd = holtd
        # the last output of before the kill may be with init still
        after = s.wait_screen(lambda x: x["offset"] >= before["offset"])
        assert {k: after[k] for k in before} == before
        assert s.screen(history="true")["text"] == history
        assert (s.get()["rows"], s.get()["cols"], s.get()["name"], s.get()["state"]) == (12, 50, "kept", "running")
        s.send("echo and on\n")
        s.wait_text("and on\n")
        s.kill()
        holtd.ok("DELETE", f"{API}/sandboxes/{box}")
    finally:
        holtd.stop()


def test_a_recording_and_a_search(holtd, box):
    s = Session(holtd, box, "rec", QUIET, rows=6, cols=30)
    s.wait_text(">")
    s.send("printf 'caf\\303'; sleep 0.2; printf '\\251 needle\\n'", "Enter")
    s.wait_text("café needle")
    s.resize(7, 33)
    s.send("exit", "Enter")
    wait_for(lambda: s.get()["state"] == "exited")
    lines = [json.loads(x) for x in holtd.ok("GET", s.path + "/recording").splitlines()]
    head, events = lines[0], lines[1:]
    assert (head["version"], head["width"], head["height"], head["title"]) == (2, 30, 6, "rec")
    assert [e[2] for e in events if e[1] == "r"] == ["33x7"]
    assert "café needle" in "".join(e[2] for e in events if e[1] == "o")
    assert all(a[0] <= b[0] for a, b in zip(events, events[1:]))
    took = events[-1][0]
    assert 0.2 <= took < 60 * SLOW
    short = [json.loads(x) for x in holtd.ok("GET", s.path + "/recording?idle=10ms").splitlines()][1:]
    assert short[-1][0] < took
    # a limit cuts between lines
    cut = holtd.ok("GET", s.path + "/recording?limit=1024")
    assert len(cut) <= 1024 and all(json.loads(x) for x in cut.splitlines())
    found = holtd.ok("GET", s.path + "/search?text=%C3%A9%20needle")["matches"]
    assert [m["line"] for m in found] == ["café needle"], found
    assert holtd.ok("GET", s.path + "/search?text=nothing")["matches"] == []


def test_old_output_that_was_dropped_is_said(holtd, box):
    s = Session(holtd, box, "much", ["sh", "-c", "seq 1 60000; echo end; sleep 1000"], output_bytes=131072)
    wait_for(lambda: s.get()["output_bytes"] == sum(len(str(i)) + 2 for i in range(1, 60001)) + 5)
    got = s.screen()
    assert not got["complete"]
    assert got["text"].split("\n")[:3] == ["59979", "59980", "59981"], got["text"]
    s.kill()


# --- three languages ---


class Node:
    """A member by Node's ws package."""

    def __init__(self, session, **query):
        holtd = session.holtd
        url = f"ws://127.0.0.1:{holtd.port}{session.path}/attach?{urllib.parse.urlencode(query)}"
        self.process = subprocess.Popen(["node", f"{ROOT}/tests/integration/node/session_watch.js", url, holtd.token],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.messages = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.messages.append(json.loads(line))

    def of(self, kind):
        return [m for m in list(self.messages) if m["type"] == kind]

    def say(self, **message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def wait_text(self, text):
        return wait_for(lambda: next((m for m in reversed(self.of("screen")) if text in m["text"]), None), 20)

    def close(self):
        self.process.stdin.close()
        self.process.wait(20 * SLOW)
        self.reader.join()


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_members_in_three_languages(holtd, box):
    """The controller is holt (C), the observers Python and Node: all see the same; control goes round."""
    s = Session(holtd, box, "three", QUIET, rows=12, cols=50)
    s.wait_text(">")
    node = Node(s, role="observer", name="node", screen="true", raw="false")
    with s.watch(role="observer", name="python", screen="true", raw="false") as python:
        c = Terminal(holtd, "session", "attach", box, "three", "--write", "--name", "c").until(b">")
        python.wait_for("members", lambda m: sorted((x["name"], x["role"]) for x in m["members"]) == [
            ("c", "controller"), ("node", "observer"), ("python", "observer")])
        c.type(b"echo from-c\r")
        python.until(lambda w: "from-c\n" in w.text)
        node.wait_text("from-c\n")
        python.until(lambda w: w.text == node.of("screen")[-1]["text"] == s.screen()["text"])
        # both observers are refused
        node.say(type="input", text="echo no\n")
        python.say(type="input", text="echo no\n")
        assert "observer" in wait_for(lambda: node.of("error"))[0]["error"]["message"]
        assert "observer" in python.wait_for("error")["error"]["message"]
        # C -> Node by taking, Node -> Python by handing over; everybody hears of it
        node.say(type="take")
        wait_for(lambda: node.of("role")[-1]["role"] == "controller")
        c.until(b"you only watch")
        node.say(type="input", text="echo from-node", keys=["Enter"])
        python.until(lambda w: "from-node\n" in w.text)
        node.say(type="hand_over", to="python")
        python.wait_for("role", lambda m: m["role"] == "controller")
        wait_for(lambda: ("python", "controller") in [(x["name"], x["role"]) for x in node.of("members")[-1]["members"]])
        python.say(type="input", text="echo from-python\n")
        node.wait_text("from-python\n")
        c.until(b"from-python")
        assert "echo no" not in s.screen(history="true")["text"]
        node.close()
        python.wait_for("members", lambda m: sorted(x["name"] for x in m["members"]) == ["c", "python"])
        python.say(type="input", text="exit\n")
        assert c.end() == 0
        assert python.wait_for("exit")["exec"]["exit_code"] == 0


# --- holt session ---


def holt(holtd, *args, **more):
    env = environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token})
    return subprocess.run([f"{BUILD}/holt", *args], env=env, capture_output=True, timeout=60 * SLOW, text=True, **more)


class Terminal:
    """holt with a terminal of its own."""

    def __init__(self, holtd, *args):
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token}))
            os.execv(f"{BUILD}/holt", ["holt", *args])

    def until(self, text, limit=20):
        end = time.monotonic() + limit * SLOW
        while text not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    assert text in self.seen, self.seen
        return self

    def type(self, data):
        os.write(self.fd, data)

    def end(self):
        """Its exit status."""
        end = time.monotonic() + 20 * SLOW
        while True:
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError(self.seen)


def test_the_verbs(holtd, box, tmp_path):
    made = holt(holtd, "session", "create", box, "--name", "cli", "--rows", "10", "--cols", "70", "--", *QUIET)
    assert made.returncode == 0 and made.stdout.startswith("ex_"), made
    s = Session.__new__(Session)
    s.holtd, s.box, s.name, s.path = holtd, box, "cli", f"{API}/sandboxes/{box}/sessions/cli"
    s.wait_text(">")
    assert "cli" in holt(holtd, "session", "ls").stdout
    assert holt(holtd, "session", "send", box, "cli", "echo from-holt", "--keys", "Enter").returncode == 0
    s.wait_text("from-holt\n")
    shown = holt(holtd, "session", "screen", box, "cli")
    assert shown.stdout.split("\n")[1] == "from-holt", shown
    assert json.loads(holt(holtd, "session", "screen", box, "cli", "-o", "json").stdout)["rows"] == 10
    assert holt(holtd, "session", "resize", box, "cli", "12", "60").returncode == 0
    assert json.loads(holt(holtd, "session", "show", box, "cli", "-o", "json").stdout)["cols"] == 60
    # read-only: keys do nothing; Ctrl-P Ctrl-Q leaves
    t = Terminal(holtd, "session", "attach", box, "cli").until(b"from-holt")
    t.type(b"echo typed\r")
    t.type(b"\x10\x11")
    assert t.end() == 0 and b"holt session attach" in t.seen, t.seen
    assert "typed" not in s.screen()["text"]
    # --write takes control, from whoever has it
    with s.watch(role="controller", name="other") as other:
        t = Terminal(holtd, "session", "attach", box, "cli", "--write").until(b"from-holt")
        other.wait_for("role", lambda m: m["role"] == "observer")
        t.type(b"echo typed\r")
        t.until(b"\r\ntyped")
        t.type(b"\x10\x11")
        assert t.end() == 0
    s.wait_text("typed\n")
    t = Terminal(holtd, "session", "watch", box, "cli").until(b"from-holt")
    t.type(b"\x03")
    assert t.end() == 0
    assert s.get()["state"] == "running"
    # recording: to its end; export: so far; replay
    cast = tmp_path / "r.cast"
    env = environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token})
    recorder = subprocess.Popen([f"{BUILD}/holt", "session", "record", box, "cli", str(cast)], env=env)
    wait_for(lambda: cast.exists() and cast.stat().st_size > 0)
    assert holt(holtd, "session", "export", box, "cli", "-").stdout.startswith('{"version":2,')
    again = holt(holtd, "session", "export", box, "cli", str(cast))
    assert again.returncode != 0 and "not taken" in again.stderr, again
    assert holt(holtd, "session", "kill", box, "cli").returncode == 0
    assert recorder.wait(20 * SLOW) == 0
    assert "from-holt" in cast.read_text()
    replay = holt(holtd, "session", "replay", box, "cli", "--idle", "1ms", "--speed", "1000")
    assert "from-holt" in replay.stdout, replay
    assert "from-holt" in holt(holtd, "session", "search", box, "cli", "from-holt").stdout
