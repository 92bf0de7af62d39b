"""The commands that pass a sandbox's command through: pipes, terminals, signals, exit statuses, copies, forwarded ports.
Against a scripted server (fake_holtd.py), which can also misbehave, and against a real holtd with the fake runtime and with
the native one."""
import contextlib
import hashlib
import io
import json
import os
import pty
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import tarfile
import termios
import threading
import time
from fcntl import ioctl

import pytest

from daemon import BUILD, Holtd, environment, wait_for
from fake_holtd import FakeHoltd

HOLT = f"{BUILD}/holt"
scripted = pytest.mark.parametrize("server", ["scripted"], indirect=True)  # looks into the server, or it misbehaves
real = pytest.mark.parametrize("server", ["fake", "native"], indirect=True)


class RealBox:
    def __init__(self, daemon, reply):
        self.daemon, self.id = daemon, reply["id"]

    def only_exec(self):
        execs = self.daemon.ok("GET", f"/holt/v1/sandboxes/{self.id}/execs")["execs"]
        assert len(execs) == 1
        return RealExec(execs[0])


class RealExec:
    def __init__(self, reply):
        self.id, self.ended, self.inputs = reply["id"], reply["state"] not in ("starting", "running"), None


class RealServer(Holtd):
    """What the tests ask of FakeHoltd, answered by a daemon."""

    def box(self, name=None):
        return RealBox(self, self.ok("POST", "/holt/v1/sandboxes", {"name": name} if name else {}))

    @property
    def destroyed(self):
        return self.ok("GET", "/holt/v1/events?type=sandbox.destroyed")["events"]


@pytest.fixture(scope="module")
def daemons(tmp_path_factory):
    """One for each runtime, made when first asked for."""
    made = {}

    def get(runtime):
        if runtime not in made:
            # The leak check does not work in the processes that a sanitized holt-spawn clones.
            options = environment()["ASAN_OPTIONS"] + (":detect_leaks=0" if runtime == "native" else "")
            made[runtime] = RealServer(tmp_path_factory.mktemp(runtime), "--runtime", runtime, env={"ASAN_OPTIONS": options})
        return made[runtime]

    yield get
    for d in made.values():
        assert d.stop() == 0, d.log()[-5000:]


@pytest.fixture(params=["scripted", "fake", "native"])
def server(request, tmp_path):
    if request.param != "scripted":
        d = request.getfixturevalue("daemons")(request.param)
        d.gone = len(d.destroyed)
        yield d
        d.clear()
        return
    d = FakeHoltd(tmp_path / "boxes")
    yield d
    d.stop()


def all_gone(server):
    """Every one-shot sandbox of this test is destroyed, and there was one."""
    if isinstance(server, FakeHoltd):
        return len(server.destroyed) == 1
    return len(server.destroyed) == server.gone + 1 and not server.ok("GET", "/holt/v1/sandboxes")["sandboxes"]


@pytest.fixture
def env(server, tmp_path):
    return environment({"HOME": str(tmp_path), "XDG_CONFIG_HOME": f"{tmp_path}/config", "HOLT_STATE": f"{tmp_path}/none",
                        "HOLT_SERVER": server.url, "HOLT_TOKEN": server.token, "LANG": "C.UTF-8", "TERM": "xterm"})


@pytest.fixture
def holt(env):
    def run(*args, status=0, **more):
        if "input" not in more:
            more.setdefault("stdin", subprocess.DEVNULL)
        r = subprocess.run([HOLT, *args], capture_output=True, timeout=60, env=env, **more)
        assert r.returncode == status, f"holt {' '.join(map(str, args))}: {r.returncode}\n{r.stdout}{r.stderr}"
        return r
    return run


@pytest.fixture
def start(env):
    """Starts holt with pipes; killed at the end."""
    made = []

    def run(*args, **more):
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        made.append(subprocess.Popen([HOLT, *args], env=env, **options))
        return made[-1]

    yield run
    for p in made:
        if p.poll() is None:
            p.kill()
        p.communicate()


class Terminal:
    """A program on a pty of its own."""

    def __init__(self, argv, env, rows=30, cols=100):
        self.master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True,
                                        preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0))
        self.seen = b""

    def read(self, limit=0.1):
        if select.select([self.master], [], [], limit)[0]:
            with contextlib.suppress(OSError):
                self.seen += os.read(self.master, 65536)
        return self.seen

    def wait_for(self, pattern, limit=60):
        return wait_for(lambda: re.search(pattern, self.read()), limit)

    def type(self, data):
        os.write(self.master, data)

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def end(self, limit=60):
        def over():
            self.read(0.05)
            return self.process.poll() is not None
        wait_for(over, limit)
        self.read()
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is as it was"
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal(env):
    made = []

    def run(*args, **more):
        made.append(Terminal([HOLT, *args], env, **more))
        return made[-1]

    yield run
    for t in made:
        t.close()


# --- run: pipes and exit statuses ---

def test_run_passes_all_three_streams(holt, server):
    r = holt("run", "--", "sh", "-c", "cat; echo told >&2; exit 3", input=b"a\0\xff\r\n", status=3)
    assert (r.stdout, r.stderr) == (b"a\0\xff\r\n", b"told\n")
    wait_for(lambda: all_gone(server))


@pytest.mark.parametrize("command, status", [
    (["true"], 0), (["sh", "-c", "exit 255"], 255), (["sh", "-c", "kill -9 $$"], 137), (["sh", "-c", "kill -15 $$"], 143),
    (["no-such-program"], 127), (["/no/such/program"], 127), (["/etc/passwd"], 126), (["/etc"], 126),
])
def test_exit_statuses(holt, command, status):
    r = holt("run", "--", *command, status=status)
    assert (b"holt: the command did not run" in r.stderr) == (status in (126, 127))


def test_large_binary_both_ways(holt):
    data = os.urandom(3 << 20)
    assert holt("run", "cat", input=data).stdout == data


def test_input_from_a_file_and_output_to_one(holt, env, tmp_path):
    data = os.urandom(1 << 20)
    (tmp_path / "in").write_bytes(data)
    with open(tmp_path / "in", "rb") as i, open(tmp_path / "out", "wb") as o:
        subprocess.run([HOLT, "run", "cat"], stdin=i, stdout=o, env=env, check=True, timeout=60)
    assert (tmp_path / "out").read_bytes() == data
    with open(tmp_path / "out", "ab") as o:  # an appended file is not written over
        subprocess.run([HOLT, "run", "echo", "end"], stdin=subprocess.DEVNULL, stdout=o, env=env, check=True, timeout=60)
    assert (tmp_path / "out").read_bytes() == data + b"end\n"


@scripted
def test_the_commands_words_are_its_own(holt, server):
    r = holt("run", "--env", "A=1", "--memory", "64m", "--cpu", "1.5", "--timeout", "30s", "sh", "-c", "echo $0 $1 $A", "a,b", "--env")
    assert r.stdout == b"a,b --env 1\n"
    body = server.runs[-1]
    assert body["command"][-2:] == ["a,b", "--env"] and body["memory_bytes"] == 64 << 20
    assert body["cpu_millis"] == 1500 and body["timeout_ms"] == 30000 and "pty" not in body


@scripted
def test_input_is_left_alone_when_not_wanted(start, server):
    r, w = os.pipe()
    os.write(w, b"kept")
    p = start("run", "--no-interactive", "--", "sh", "-c", "cat; echo done", stdin=r)
    assert p.communicate(timeout=60)[0] == b"done\n"
    assert os.read(r, 10) == b"kept"
    os.close(r)
    os.close(w)
    assert "stdin_open" not in server.runs[-1]


def test_closed_input(env):
    r = subprocess.run(["/bin/sh", "-c", f"exec {HOLT} run -- sh -c 'cat; echo done' <&-"], env=env, capture_output=True, timeout=60)
    assert (r.returncode, r.stdout) == (0, b"done\n")


@scripted
@pytest.mark.parametrize("args", [["run"], ["run", "--nonsense", "ls"], ["exec", "box"], ["run", "--memory", "much", "ls"]])
def test_own_mistakes_are_125(holt, args):
    r = holt(*args, status=125)
    assert r.stderr.startswith(b"holt: ") and r.stdout == b""


@scripted
def test_own_failures_are_125(holt, server, env):
    server.refuse = (429, {"code": "limit", "message": "too many sandboxes", "object": "", "hint": "remove some"})
    r = holt("run", "ls", status=125)
    assert r.stderr == b"holt: too many sandboxes\nhint: remove some\n"
    r = subprocess.run([HOLT, "run", "ls"], env=env | {"HOLT_SERVER": "http://127.0.0.1:1"}, capture_output=True, timeout=60)
    assert r.returncode == 125 and b"no daemon answers" in r.stderr
    r = subprocess.run([HOLT, "run", "ls"], env=env | {"HOLT_TOKEN": "wrong"}, capture_output=True, timeout=60)
    assert r.returncode == 125 and b"no token" in r.stderr


@real
@pytest.mark.parametrize("args, why", [
    (["-w", "/no/such/directory"], b"change to directory '/no/such/directory': No such file or directory"),
    (["-u", "no-such-user"], b"no user 'no-such-user' in the sandbox"),
])
def test_what_stands_around_the_command_is_125(holt, server, args, why):
    assert why in holt("run", *args, "--", "true", status=125).stderr
    status = server.ok("POST", "/holt/v1/run", {"command": ["true"], "cwd": "/no/such/directory"})["exit_code"]
    assert status == 125, "decided by the daemon: other clients see the same"
    wait_for(lambda: not server.ok("GET", "/holt/v1/sandboxes")["sandboxes"])


def test_a_full_disk_is_said(env, server):
    with open("/dev/full", "wb") as full:
        r = subprocess.run([HOLT, "run", "--", "echo", "hi"], env=env, stdout=full, stderr=subprocess.PIPE, timeout=60,
                           stdin=subprocess.DEVNULL)
    assert r.returncode == 125 and r.stderr == b"holt: write standard output: No space left on device\n"
    wait_for(lambda: all_gone(server))


def test_a_reader_that_takes_one_line_of_endless_input(env, server):
    """`yes | holt run -- head -1`: what the command does not read is nobody's failure."""
    line = f"yes | {HOLT} run -- head -1; echo ${{PIPESTATUS[*]}}"
    r = subprocess.run(["/bin/bash", "-c", line], env=env, capture_output=True, timeout=60)
    assert (r.stdout, r.stderr) == (b"y\n141 0\n", b"")
    wait_for(lambda: all_gone(server))


@real
def test_a_killed_client_leaves_nothing(start, server):
    """SIGKILL, while the command writes, while it reads, while it sleeps: destroyed all the same."""
    for command in ("yes", "cat", "exec sleep 1000", "trap '' INT TERM HUP; while :; do sleep 1; done"):
        p = start("run", "--", "sh", "-c", f"echo up; {command}")
        assert p.stdout.read(3) == b"up\n"
        p.kill()
        p.wait(60)
    wait_for(lambda: len(server.destroyed) == server.gone + 4 and not server.ok("GET", "/holt/v1/sandboxes")["sandboxes"])


def test_a_broken_pipe_ends_the_command(start, server):
    p = start("run", "--", "yes", stdin=subprocess.DEVNULL)
    assert p.stdout.read(4) == b"y\ny\n"
    p.stdout.close()
    assert p.wait(60) == 141 and p.stderr.read() == b""
    wait_for(lambda: all_gone(server))


def test_a_slow_reader_loses_nothing(start):
    p = start("run", "--", "sh", "-c", "seq 1 200000; echo end >&2", stdin=subprocess.DEVNULL)
    time.sleep(0.5)
    out, err = p.communicate(timeout=60)
    assert hashlib.sha256(out).digest() == hashlib.sha256(b"".join(b"%d\n" % i for i in range(1, 200001))).digest()
    assert err == b"end\n" and p.returncode == 0


def test_a_blocked_reader_does_not_block_signals(start, server):
    p = start("run", "--", "yes", stdin=subprocess.DEVNULL)
    wait_for(lambda: struct.unpack("i", ioctl(p.stdout, termios.FIONREAD, bytes(4)))[0] >= 60000)  # it is full, nobody reads
    interrupt_until_it_ends(p)
    wait_for(lambda: all_gone(server))


def test_output_goes_to_sockets(env):
    a, b = socket.socketpair()
    p = subprocess.Popen([HOLT, "run", "--", "seq", "1", "100000"], stdin=subprocess.DEVNULL, stdout=b, env=env)
    b.close()
    got = b""
    while part := a.recv(65536):
        got += part
    a.close()
    assert p.wait(60) == 0 and got.count(b"\n") == 100000


# --- signals ---

def interrupt_until_it_ends(p):
    """As a person does: two within a second are seen as two only by a client that gets to run between them.  One more may meet it at its
    very end, when it does not listen any more: a shell says 130 of that, too."""
    sent = [p.send_signal(signal.SIGINT)]

    def over():
        with contextlib.suppress(subprocess.TimeoutExpired):
            p.wait(0.2)
        if p.poll() is None:
            sent.append(p.send_signal(signal.SIGINT))
        return p.poll() is not None
    wait_for(over, 60)
    assert p.returncode == 130 or (len(sent) > 1 and p.returncode == -signal.SIGINT), (p.returncode, len(sent))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_command(start, number):
    name = number.name[3:]
    p = start("run", "--", "sh", "-c", f"trap 'echo got {name}; exit 9' {name}; echo ready; while :; do sleep 0.05; done")
    assert p.stdout.readline() == b"ready\n"
    p.send_signal(number)
    assert p.wait(60) == 9 and p.stdout.read() == b"got %s\n" % name.encode()


def test_a_signal_that_kills_the_command(start):
    p = start("run", "--", "sh", "-c", "echo ready; exec sleep 60")
    assert p.stdout.readline() == b"ready\n"
    p.send_signal(signal.SIGTERM)
    assert p.wait(60) == 143


def test_a_signal_passes_input_that_nobody_reads(start):
    with open("/dev/zero", "rb") as zeros:
        p = start("run", "--", "sh", "-c", "trap 'exit 5' INT; echo ready; while :; do sleep 0.05; done", stdin=zeros)
    assert p.stdout.readline() == b"ready\n"
    time.sleep(0.3)
    p.send_signal(signal.SIGINT)
    assert p.wait(60) == 5


@real
def test_a_killed_client_leaves_nothing_behind_unread_input(start, server):
    """The end of its connection waits behind input that the command does not read; a ping brings it out."""
    with open("/dev/zero", "rb") as zeros:
        p = start("run", "--", "sh", "-c", "echo ready; exec sleep 60", stdin=zeros)
    assert p.stdout.readline() == b"ready\n"
    time.sleep(0.3)
    p.kill()
    wait_for(lambda: all_gone(server), 60)


def test_the_second_interrupt_cuts_behind_unread_input(start, server):
    with open("/dev/zero", "rb") as zeros:
        p = start("run", "--", "sh", "-c", "trap '' INT; echo ready; while :; do sleep 0.05; done", stdin=zeros)
    assert p.stdout.readline() == b"ready\n"
    time.sleep(0.3)
    interrupt_until_it_ends(p)
    wait_for(lambda: all_gone(server))


def test_the_second_interrupt_cuts(start, server):
    p = start("run", "--", "sh", "-c", "trap '' INT; echo ready; while :; do sleep 0.05; done")
    assert p.stdout.readline() == b"ready\n"
    p.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert p.poll() is None, "the first one is the command's"
    interrupt_until_it_ends(p)
    wait_for(lambda: all_gone(server))


def test_ignored_signals_stay_ignored(env):
    p = subprocess.Popen(["/bin/sh", "-c", f"trap '' HUP; exec {HOLT} run -- sh -c 'echo ready; sleep 1; echo end'"], env=env,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"ready\n"
    p.send_signal(signal.SIGHUP)
    assert p.communicate(timeout=60)[0] == b"end\n" and p.returncode == 0


# --- terminals ---

@scripted
def test_run_with_a_terminal(terminal, server):
    t = terminal("run", "-t", "--", "sh", "-c", "stty size; echo $TERM; read x; echo got $x; exit 4", rows=33, cols=77)
    t.wait_for(rb"33 77\r\nxterm\r\n")
    assert t.is_raw()
    t.type(b"word\r")
    t.wait_for(rb"got word\r\n")
    assert t.end() == 4
    assert server.runs[-1]["pty"] == {"rows": 33, "cols": 77}


def test_ctrl_c_in_a_terminal_is_a_byte(terminal):
    t = terminal("run", "-t", "--", "sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done")
    t.wait_for(rb"ready")
    t.type(b"\x03")
    t.wait_for(rb"caught")
    assert t.end() == 5


def test_ctrl_c_without_a_terminal_inside_is_a_signal(terminal):
    t = terminal("run", "--", "sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done")
    t.wait_for(rb"ready")
    assert not t.is_raw()
    t.type(b"\x03")
    t.wait_for(rb"caught")
    assert t.end() == 5


def test_window_changes_are_passed_on(terminal):
    t = terminal("run", "-t", "--", "sh", "-c", "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done")
    t.wait_for(rb"ready")
    ioctl(t.master, termios.TIOCSWINSZ, struct.pack("HHHH", 41, 123, 0, 0))
    t.wait_for(rb"41 123")
    assert t.end() == 0


@scripted
def test_the_terminal_is_restored_after_a_lost_server(terminal, server):
    t = terminal("run", "-t", "--", "sh", "-c", "echo ready; sleep 60")
    t.wait_for(rb"ready")
    assert t.is_raw()
    server.drop_attach = 1
    t.process.send_signal(signal.SIGWINCH)
    next(iter(server.boxes.values())).execs.popitem()[1].write(b"x")  # echoed: the server drops the connection then
    assert t.end() == 125
    assert b"server closed the connection" in t.seen or b"ended the session" in t.seen


def test_line_mode_on_a_terminal(terminal):
    t = terminal("run", "--", "sh", "-c", "read x; echo got $x; cat")
    time.sleep(0.3)
    t.type(b"one\n")
    t.wait_for(rb"got one")
    t.type(b"two\n\x04")
    t.wait_for(rb"two\r\ntwo")
    assert t.end() == 0


# --- exec, shell, attach ---

@scripted
def test_exec(holt, server):
    box = server.box("build")
    r = holt("exec", "build", "-w", "/", "-e", "A=b", "--", "sh", "-c", "pwd; echo $A; cat; exit 6", input=b"in", status=6)
    assert r.stdout == b"/\nb\nin"
    assert holt("exec", "build", "nothing-here", status=127).stdout == b""
    r = holt("exec", "nobox", "ls", status=125)
    assert r.stderr == b"holt: there is no sandbox 'nobox'\n"
    assert len(box.execs) == 2


@real
def test_exec_loses_nothing_in_a_pipe(holt, server):
    """More than is kept, and a reader that is slow: the command waits."""
    server.box("build")
    r = holt("exec", "build", "--output-bytes", "64k", "--", "seq", "1", "200000")
    assert r.stdout == b"".join(b"%d\n" % i for i in range(1, 200001)) and r.stderr == b""
    r = holt("exec", "build", "-d", "-o", "json", "--", "sh", "-c", "exit 7")
    holt("wait", "build", json.loads(r.stdout)["id"], status=7)
    r = holt("exec", "build", "-d", "-o", "json", "--", "sleep", "100")
    holt("signal", "build", json.loads(r.stdout)["id"], "TERM")
    holt("wait", "build", json.loads(r.stdout)["id"], status=143)
    r = holt("exec", "build", "-d", "-o", "json", "--", "sleep", "100")
    assert json.loads(holt("cancel", "build", json.loads(r.stdout)["id"], "-o", "json").stdout)["cancelled"]
    holt("wait", "build", json.loads(r.stdout)["id"], status=137)


@real
def test_rm_takes_several(holt, server):
    for name in ("a", "b", "c"):
        server.box(name)
    r = holt("rm", "a", "none", "b", "nothing", status=2)
    assert r.stderr == b"holt: there is no sandbox 'nothing'\nholt: there is no sandbox 'none'\nhint: holt ls lists the sandboxes\n"
    assert [s["name"] for s in server.ok("GET", "/holt/v1/sandboxes")["sandboxes"]] == ["c"]
    holt("rm", "c")


@real
def test_list_by_label(holt, server):
    holt("create", "--name", "blue", "--labels", "team=blue", "--labels", "a=b c&d")
    holt("create", "--name", "red", "--labels", "team=red")
    assert b"blue" in holt("ls", "--label", "team=blue", "--label", "a=b c&d").stdout
    assert b"blue" not in holt("ls", "--label", "team=red").stdout


def test_exec_in_the_background(holt, server):
    server.box("build")
    r = holt("exec", "build", "-d", "-o", "json", "--", "sh", "-c", "echo later")
    exec_id = json.loads(r.stdout)["id"]
    assert holt("logs", "-f", "build", exec_id).stdout == b"later\n"
    assert holt("attach", "build", exec_id).stdout == b"later\n"


def test_exec_broken_pipe_ends_the_command(start, server):
    box = server.box("build")
    p = start("exec", "build", "--", "yes", stdin=subprocess.DEVNULL)
    assert p.stdout.read(2) == b"y\n"
    p.stdout.close()
    assert p.wait(60) == 141
    wait_for(lambda: box.only_exec().ended)


def test_detach_and_attach(terminal, server):
    box = server.box("build")
    t = terminal("exec", "build", "-t", "--", "sh", "-c", "echo ready; read x; echo got $x; read y; exit 7")
    t.wait_for(rb"ready")
    t.type(b"a\x10b")  # half of the keys is a key
    t.type(b"\x10\x11")
    assert t.end() == 0
    x = box.only_exec()
    assert f"holt attach build {x.id}".encode() in t.seen and not x.ended
    assert x.inputs in (b"a\x10b", None)
    t = terminal("attach", "build", x.id)
    t.wait_for(rb"ready")
    t.type(b"\rbye\r")
    t.wait_for(rb"got a\^?.*b")
    assert t.end() == 7


@scripted
def test_other_detach_keys(terminal, server):
    box = server.box("build")
    t = terminal("exec", "build", "-t", "--detach-keys", "ctrl-a,d", "--", "cat")
    wait_for(t.is_raw)
    t.type(b"\x10\x11x")
    t.type(b"\x01d")
    assert t.end() == 0
    assert box.only_exec().inputs == b"\x10\x11x"


@scripted
def test_observers_only_look(terminal, server):
    box = server.box("build")
    t = terminal("exec", "build", "-t", "--", "sh", "-c", "echo ready; read x; echo got $x; sleep 60")
    t.wait_for(rb"ready")
    x = box.only_exec()
    o = terminal("attach", "build", x.id, "--observe")
    o.wait_for(rb"ready")
    o.type(b"no\n")
    t.type(b"yes\r")
    o.wait_for(rb"got yes")
    assert x.inputs == b"yes\r"
    o.type(b"\x03")
    assert o.end() == 0 and not x.ended


@scripted
@pytest.mark.parametrize("resend", [False, True])
def test_a_lost_connection_is_made_again(terminal, server, resend):
    server.box("build")
    server.drop_attach, server.resend = 1, resend
    t = terminal("exec", "build", "-t", "--", "sh", "-c", "echo one; sleep 1; echo two; exit 8")
    t.wait_for(rb"trying again")
    t.wait_for(rb"two")
    assert t.end() == 8
    assert t.seen.count(b"one") == 1, "no output is shown twice"


def test_a_session_outlives_its_daemon(tmp_path):
    first = RealServer(tmp_path / "d", "--runtime", "fake")
    env = environment({"HOME": str(tmp_path), "HOLT_SERVER": first.url, "HOLT_TOKEN": first.token, "TERM": "xterm"})
    first.box("build")
    t = Terminal([HOLT, "exec", "build", "-t", "--", "sh", "-c", "echo one; read x; echo got $x; exit 8"], env)
    second = None
    try:
        t.wait_for(rb"one")
        first.kill()
        t.wait_for(rb"trying again")
        second = RealServer(tmp_path / "d", "--runtime", "fake", port=first.port)
        wait_for(lambda: second.ok("GET", "/holt/v1/sandboxes")["sandboxes"][0]["state"] == "running")
        time.sleep(1)
        t.type(b"word\r")
        t.wait_for(rb"got word")
        assert t.end() == 8 and t.seen.count(b"one") == 1
        second.ok("DELETE", "/holt/v1/sandboxes/build")
    finally:
        t.close()
        first.kill()
        if second:
            second.stop()


def test_shell(terminal, holt, server):
    server.box("build")
    assert b"needs a terminal" in holt("shell", "build", status=125).stderr
    t = terminal("shell", "build", "--shell", "/bin/sh", "-e", "WORD=there")
    t.type(b"echo $WORD $((6*7)); exit 3\r")
    t.wait_for(rb"there 42")
    assert t.end() == 3


# --- files ---

def make_tree(root):
    os.makedirs(f"{root}/sub/deep")
    os.makedirs(f"{root}/empty")
    files = {"a.bin": os.urandom(300_000), "sub/b": b"", "sub/deep/c": b"\0\xff" * 256, "sub/" + "n" * 120: b"long", "exact": b"x" * 512}
    for name, data in files.items():
        with open(f"{root}/{name}", "wb") as f:
            f.write(data)
    os.chmod(f"{root}/a.bin", 0o750)
    os.utime(f"{root}/a.bin", (1_600_000_000, 1_600_000_000))
    os.symlink("../a.bin", f"{root}/sub/link")
    return files


def same_tree(root, files):
    for name, data in files.items():
        with open(f"{root}/{name}", "rb") as f:
            assert f.read() == data, name
    st = os.stat(f"{root}/a.bin")
    assert stat.S_IMODE(st.st_mode) == 0o750 and st.st_mtime == 1_600_000_000
    assert os.readlink(f"{root}/sub/link") == "../a.bin" and os.path.isdir(f"{root}/empty")


@scripted
def test_cp_round_trip(holt, server, tmp_path):
    box = server.box("build")
    files = make_tree(tmp_path / "tree")
    holt("cp", str(tmp_path / "tree"), "build:/new")
    same_tree(f"{box.root}/new", files)
    holt("cp", str(tmp_path / "tree"), "build:/new")  # a directory that is there gets it in it
    same_tree(f"{box.root}/new/tree", files)
    holt("cp", f"{tmp_path}/tree/.", "build:/into")
    same_tree(f"{box.root}/into", files)
    os.mkdir(tmp_path / "here")
    holt("cp", "build:/into", str(tmp_path / "back"))
    same_tree(tmp_path / "back", files)
    holt("cp", "build:/into", str(tmp_path / "here"))
    same_tree(tmp_path / "here/into", files)
    holt("cp", "build:/into/.", str(tmp_path / "content"))
    same_tree(tmp_path / "content", files)
    holt("cp", "build:/into/a.bin", str(tmp_path / "one"))
    assert (tmp_path / "one").read_bytes() == files["a.bin"]
    assert holt("cat", "build:/into/a.bin").stdout == files["a.bin"]


@real
def test_cp_round_trip_through_a_sandbox(holt, server, tmp_path):
    """The fake runtime shows this machine's own root: everything stays in the test's directory."""
    server.box("build")
    inside = f"build:{tmp_path}/inside"
    files = make_tree(tmp_path / "tree")
    holt("cp", str(tmp_path / "tree"), f"{inside}/new")
    holt("cp", str(tmp_path / "tree"), f"{inside}/new")
    holt("cp", f"{tmp_path}/tree/.", f"{inside}/content")
    for remote, here in (("new", "a"), ("new/tree", "b"), ("content", "c"), ("content/.", "d")):
        holt("cp", f"{inside}/{remote}", str(tmp_path / here))
        same_tree(tmp_path / here, files)
    holt("cp", f"{inside}/new/a.bin", str(tmp_path / "one"))
    assert (tmp_path / "one").read_bytes() == files["a.bin"]
    assert holt("cat", f"{inside}/new/sub/deep/c").stdout == files["sub/deep/c"]
    archive = holt("cp", f"{inside}/new", "-").stdout
    holt("cp", "-", f"{inside}/again", input=archive)
    holt("cp", f"{inside}/again", str(tmp_path / "e"))
    same_tree(tmp_path / "e", files)


@scripted
def test_cp_archives(holt, server, tmp_path):
    server.box("build")
    files = make_tree(tmp_path / "tree")
    holt("cp", str(tmp_path / "tree"), "build:/a")
    archive = holt("cp", "build:/a", "-").stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as t:
        assert t.extractfile("a/a.bin").read() == files["a.bin"]
    holt("cp", "-", "build:/b", input=archive)
    holt("cp", "build:/b/a", str(tmp_path / "back"))
    same_tree(tmp_path / "back", files)


@scripted
def test_cp_mistakes(holt, server, tmp_path):
    server.box("build")
    for args, said in [(["x", "y"], "one of the two must be SANDBOX:PATH"), (["a:/x", "b:/y"], "one of the two"),
                       ([f"{tmp_path}/none", "build:/x"], "No such file"), (["build:/none", str(tmp_path)], "no file '/none'"),
                       (["nobox:/x", "y"], "there is no sandbox 'nobox'"), (["/etc/hostname", "nobox:/y"], "there is no sandbox 'nobox'"),
                       ([":/x", "y"], "is not SANDBOX:PATH"), (["build:/x", f"{tmp_path}/no/where"], "No such file")]:
        assert said in holt("cp", *args, status=holt_status(said)).stderr.decode(), args
    assert "is not SANDBOX:PATH" in holt("cat", "x", status=1).stderr.decode()
    assert "there is no sandbox" in holt("cat", "nobox:/x", status=2).stderr.decode()


def holt_status(said):
    return 2 if said.startswith(("No such", "no file", "there is no")) else 1


def entry(name, data=b"", kind=tarfile.REGTYPE, link="", mode=0o644):
    t = tarfile.TarInfo(name)
    t.type, t.linkname, t.mode, t.size = kind, link, mode, len(data)
    return t, data


def archive_of(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for info, data in entries:
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


@scripted
@pytest.mark.parametrize("entries", [
    [entry("x/../../escaped", b"!")],
    [entry("../escaped", b"!")],
    [entry("/{outside}/escaped", b"!")],
    [entry("x", kind=tarfile.DIRTYPE), entry("x/s", kind=tarfile.SYMTYPE, link="{outside}"), entry("x/s/escaped", b"!")],
    [entry("x", kind=tarfile.SYMTYPE, link="{outside}"), entry("x/escaped", b"!")],
    [entry("x", kind=tarfile.DIRTYPE), entry("x/s", kind=tarfile.SYMTYPE, link="../.."), entry("x/s/escaped", b"!")],
    [entry("x", kind=tarfile.DIRTYPE), entry("x/h", kind=tarfile.LNKTYPE, link="{outside}/victim"), entry("x/h", b"!")],
    [entry("x", kind=tarfile.DIRTYPE), entry("x/h", kind=tarfile.LNKTYPE, link="x/../../outside/victim")],
    [entry("x", kind=tarfile.DIRTYPE), entry("x/s", kind=tarfile.SYMTYPE, link="{outside}"),
     entry("x/h", kind=tarfile.LNKTYPE, link="x/s/victim")],
    [entry("x", kind=tarfile.DIRTYPE), entry("x//e", b"!"), entry("x/./e", b"!")],
], ids=lambda e: "+".join(i.name.replace("/", "_") for i, _ in e))
def test_hostile_archives_do_not_escape(holt, server, tmp_path, entries):
    server.box("build")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_bytes(b"mine")
    (tmp_path / "target").mkdir()
    made = []
    for info, data in entries:
        info.name, info.linkname = info.name.format(outside=outside), info.linkname.format(outside=outside)
        made.append((info, data))
    server.archives["/x"] = archive_of(*made)
    before = sorted(os.listdir(tmp_path))
    r = subprocess.run([HOLT, "cp", "build:/x", str(tmp_path / "target")], capture_output=True, timeout=60,
                       env=environment({"HOLT_SERVER": server.url, "HOLT_TOKEN": server.token, "HOME": str(tmp_path)}))
    assert r.returncode not in (0, 99), r.stderr
    assert sorted(os.listdir(tmp_path)) == before and os.listdir(outside) == ["victim"]
    assert (outside / "victim").read_bytes() == b"mine" and os.stat(outside / "victim").st_nlink == 1


@scripted
def test_what_is_there_is_not_written_through(holt, server, tmp_path):
    server.box("build")
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / "target/x").mkdir(parents=True)
    os.symlink(tmp_path / "victim", tmp_path / "target/x/link")
    os.link(tmp_path / "victim", tmp_path / "target/x/hard")
    server.archives["/x"] = archive_of(entry("x", kind=tarfile.DIRTYPE), entry("x/link", b"new"), entry("x/hard", b"new"),
                                       entry("x/suid", b"s", mode=0o6755), entry("x/fifo", kind=tarfile.FIFOTYPE),
                                       entry("x/dev", kind=tarfile.CHRTYPE))
    r = holt("cp", "build:/x", str(tmp_path / "target"))
    assert b"skipped 2" in r.stderr
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert (tmp_path / "target/x/link").read_bytes() == b"new" and not os.path.islink(tmp_path / "target/x/link")
    assert stat.S_IMODE(os.stat(tmp_path / "target/x/suid").st_mode) == 0o755
    assert sorted(os.listdir(tmp_path / "target/x")) == ["hard", "link", "suid"]


@scripted
@pytest.mark.parametrize("cut", [100, 512, 700, 1024])
def test_a_cut_archive_is_noticed(holt, server, tmp_path, cut):
    server.box("build")
    server.archives["/x"] = archive_of(entry("x", b"y" * 2000))[:cut]
    assert b"ended early" in holt("cp", "build:/x", str(tmp_path / "x"), status=1).stderr


@scripted
def test_dotted_archives(holt, server, tmp_path):
    server.box("build")
    server.archives["/d"] = archive_of(entry(".", kind=tarfile.DIRTYPE), entry("./f", b"1"), entry("./s/g", b"2"))
    holt("cp", "build:/d", str(tmp_path / "d"))
    assert (tmp_path / "d/f").read_bytes() == b"1" and (tmp_path / "d/s/g").read_bytes() == b"2"


# --- tables ---

@scripted
def test_tables(holt, server):
    server.box("build")
    holt("exec", "build", "--", "sh", "-c", "echo 'a b'")
    assert re.search(rb"sb_0+1 +build +running +host", holt("ls").stdout)
    assert b"sh -c 'echo 'a b''" in holt("ps", "build").stdout
    assert re.search(rb"memory +1.0 MiB", holt("stat", "build").stdout)
    assert re.search(rb"sb_0+1 +build +- +1.0 MiB +2.0 MiB +3", holt("top").stdout)
    assert json.loads(holt("top", "-o", "json").stdout)["sandboxes"][0]["pids"] == 3


@scripted
def test_top_refreshes(terminal, server):
    server.box("build")
    t = terminal("top", "-n", "200ms")
    t.wait_for(rb"2\d\.\d%")
    t.type(b"\x03")
    assert t.end() == -signal.SIGINT


# --- forwarded ports ---

@pytest.fixture
def echo_port():
    """A TCP server that gives everything back and ends when its client does."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(s):
        with s, contextlib.suppress(OSError):
            while data := s.recv(65536):
                s.sendall(data)

    def accept():
        while True:
            try:
                s = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=serve, args=(s,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def forwarded(p):
    return int(re.fullmatch(rb"127\.0\.0\.1:(\d+) -> build:\d+\n", p.stdout.readline())[1])


@pytest.mark.parametrize("server", ["scripted", "fake"], indirect=True)  # a native sandbox cannot reach the echo of this one
def test_port_forward(start, server, echo_port):
    server.box("build")
    p = start("port-forward", "build", f":{echo_port}")
    port = forwarded(p)
    data = os.urandom(2 << 20)

    def talk(payload):
        with socket.create_connection(("127.0.0.1", port), 60) as s:
            s.settimeout(60)
            threading.Thread(target=lambda: (s.sendall(payload), s.shutdown(socket.SHUT_WR)), daemon=True).start()
            got = b""
            while part := s.recv(65536):
                got += part
            return got

    assert talk(b"hello") == b"hello"
    assert talk(data) == data
    results = []
    threads = [threading.Thread(target=lambda i=i: results.append(talk(b"%d" % i * 1000) == b"%d" % i * 1000)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    assert results == [True] * 8
    p.send_signal(signal.SIGINT)
    assert p.wait(60) == -signal.SIGINT


def test_port_forward_refused(start, holt, server):
    server.box("build")
    p = start("port-forward", "build", ":1")
    with socket.create_connection(("127.0.0.1", forwarded(p)), 60) as s:
        s.settimeout(60)
        with contextlib.suppress(ConnectionResetError):
            assert s.recv(10) == b""
    assert b"port 1 " in p.stderr.readline()
    assert b"is not LOCAL:REMOTE" in holt("port-forward", "build", "80:x", status=1).stderr
    assert b"there is no sandbox" in holt("port-forward", "nobox", "80", status=2).stderr
