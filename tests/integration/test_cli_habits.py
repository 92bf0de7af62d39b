"""The command line in a Docker hand: its flags, verbs and outputs mean here what they mean there, or the refusal says what does."""
import json
import os
import re
import signal

import pytest

from daemon import wait_for
from test_cli_sandbox import all_gone, daemons, env, holt, real, scripted, server, start, terminal  # noqa: F401 (fixtures)


def names(server):
    return {s["name"]: s["state"] for s in server.ok("GET", "/holt/v1/sandboxes")["sandboxes"]}


def first_line(result):
    return result.stderr.decode().split("\n")[0]


# --- flags ---

@scripted
def test_letters_share_a_word(holt, server):
    holt("run", "-im64m", "-eA=1", "-w/", "--", "true")
    body = server.runs[-1]
    assert (body["memory_bytes"], body["env"], body["cwd"], body["stdin_open"]) == (64 << 20, {"A": "1"}, "/", True)
    holt("run", "-it", "--", "true", "-x")
    assert server.runs[-1]["pty"] and server.runs[-1]["command"] == ["true", "-x"]
    holt("run", "-i=false", "--", "true")
    assert "stdin_open" not in server.runs[-1]


@scripted
def test_dockers_spellings(holt, server):
    holt("run", "--rm", "--name", "x", "--cpus", "1.5", "-m", "64m", "--workdir", "/", "--label", "a=b", "--pids-limit", "64", "--net", "none",
         "--", "true")
    body = server.runs[-1]
    assert (body["name"], body["cpu_millis"], body["memory_bytes"], body["cwd"], body["labels"], body["pids"], body["network"]) == (
        "x", 1500, 64 << 20, "/", {"a": "b"}, 64, "none")
    assert "rm" not in body and "detach" not in body


@scripted
def test_volumes_by_name_and_by_path(holt, server, tmp_path):
    (tmp_path / "a,b").mkdir()
    holt("run", "-v", "cache:/cache", "-v", "tools:/tools:ro", "-v", f"{tmp_path}/a,b:/data:ro", "-v", "./a,b:/more", "--", "true", cwd=tmp_path)
    body = server.runs[-1]
    assert body["volumes"] == [{"name": "cache", "path": "/cache", "read_only": False}, {"name": "tools", "path": "/tools", "read_only": True}]
    assert body["mounts"] == [{"kind": "host", "source": f"{tmp_path}/a,b", "target": "/data", "readonly": True},
                              {"kind": "host", "source": f"{tmp_path}/a,b", "target": "/more", "readonly": False}]
    assert "volume" not in body


@scripted
@pytest.mark.parametrize("value, why", [
    ("/data", "it is not SRC:DST"), ("cache:data", "DST is not an absolute path"), ("cache:/c:Z", "ro or rw"), (":/x", "it is not SRC:DST"),
    ("/no/such/directory:/x", "No such file or directory"), ("~/x:/x", "not expanded"),
])
def test_a_wrong_volume_is_named(holt, server, value, why):
    r = holt("run", "-v", value, "--", "true", status=125)
    assert why in first_line(r) and not server.runs
    assert why in first_line(holt("create", "-v", value, status=holt_status(why)))


def holt_status(why):
    return 2 if "No such" in why else 1


@real
def test_a_directory_of_the_host_needs_the_operator(holt, server, tmp_path):
    r = holt("create", "-v", f"{tmp_path}:/data", status=4)
    assert b"may not be mounted" in r.stderr and b"host_mounts" in r.stderr
    r = holt("run", "-v", "no-such-volume:/data", "--", "true", status=125)
    assert b"there is no volume 'no-such-volume'" in r.stderr and b"holt volume create" in r.stderr
    assert names(server) == {}


@scripted
@pytest.mark.parametrize("args, hint", [
    (["run", "-p", "8080:80", "--", "true"], "holt port-forward SANDBOX 8080:80"),
    (["run", "--publish=8080:80", "--", "true"], "holt port-forward SANDBOX 8080:80"),
    (["exec", "box", "-p", "80", "--", "true"], "holt port-forward"),
    (["exec", "--rm", "box", "--", "true"], "`holt create` and `holt run` take it"),
    (["exec", "-v", "a:/a", "box", "--", "true"], "`holt create` and `holt run` take it"),
    (["run", "--privileged", "--", "true"], "--nesting"),
    (["run", "--read-only", "--", "true"], "--rootfs ro"),
    (["run", "--entrypoint", "sh", "--", "true"], "first word"),
    (["run", "--no-rm", "--", "true"], "-d keeps it"),
    (["run", "-name", "x", "--", "true"], "did you mean --name?"),
    (["run", "--nmae", "x", "--", "true"], "did you mean --name?"),
])
def test_what_is_not_here_says_what_is(holt, server, args, hint):
    r = holt(*args, status=125)
    assert hint in r.stderr.decode() and not server.runs and not server.boxes


@scripted
def test_an_image_in_the_commands_place(holt, server):
    r = holt("run", "ubuntu:22.04", "true", status=127)
    assert b"holt run --image ubuntu:22.04 -- COMMAND" in r.stderr
    assert b"--image" not in holt("run", "/no/such/program", status=127).stderr


# --- run -d, --name ---

@real
def test_run_in_the_background(holt, server):
    r = holt("run", "-d", "--name", "web", "-e", "WORD=said", "--", "sh", "-c", "echo $WORD; sleep 1000")
    ident = r.stdout.decode().strip()
    assert re.fullmatch(r"sb_\w+", ident) and r.stderr == b""
    assert names(server) == {"web": "running"}
    wait_for(lambda: holt("logs", "web").stdout == b"said\n")
    assert holt("ps", "-q").stdout.decode().split() == [ident]
    holt("kill", "-s", "TERM", "web")
    holt("wait", "web", status=143)
    assert names(server) == {"web": "running"}, "it stays, as a container does"


@real
def test_run_in_the_background_and_remove(holt, server):
    holt("run", "-d", "--rm", "--", "true")
    wait_for(lambda: not server.ok("GET", "/holt/v1/sandboxes")["sandboxes"])


@real
def test_a_command_that_does_not_run_leaves_no_sandbox(holt, server):
    r = holt("run", "-d", "--", "/no/such/program", status=125)
    assert b"the command did not run: " in r.stderr and r.stdout == b""
    assert names(server) == {}


@real
def test_a_run_has_a_name(start, holt, server):
    p = start("run", "--name", "job", "--", "sh", "-c", "echo up; read x")
    assert p.stdout.readline() == b"up\n"
    assert holt("exec", "job", "--", "hostname").stdout in (b"job\n", os.uname().nodename.encode() + b"\n")
    assert b"exists already" in holt("run", "--name", "job", "--", "true", status=125).stderr
    p.communicate(b"\n")
    wait_for(lambda: names(server) == {})


# --- verbs ---

@real
def test_create_stop_and_start_print_one_line(holt, server):
    r = holt("create", "--name", "box")
    assert re.fullmatch(rb"sb_\w+\n", r.stdout)
    assert holt("stop", "box").stdout == b"box\n" and names(server) == {"box": "stopped"}
    assert holt("start", "box").stdout == b"box\n"
    assert json.loads(holt("stop", "box", "-o", "json").stdout)["state"] == "stopped"
    assert re.search(rb"^state +running", holt("start", "box", "-o", "table").stdout, re.M)
    holt("create", "--name", "two")
    assert holt("stop", "box", "none", "two", status=2).stdout == b"box\ntwo\n"
    assert names(server) == {"box": "stopped", "two": "stopped"}


@real
def test_lists_as_docker_has_them(holt, server):
    a, b = (holt("create", "--name", n).stdout.decode().strip() for n in ("a", "b"))
    holt("stop", "b")
    assert holt("ps", "-q").stdout.decode().split() == [a]
    assert holt("ps", "-aq").stdout.decode().split() == holt("ls", "-q").stdout.decode().split() == holt("ls", "-aq").stdout.decode().split() == [a, b]
    table = holt("ps").stdout.decode()
    assert re.match(r"ID +NAME +STATE", table) and a in table and b not in table
    assert holt("list").stdout == holt("ls").stdout
    assert b"it selects commands of one sandbox" in holt("ps", "--state", "exited", status=1).stderr
    holt("exec", "a", "--", "true")
    assert re.fullmatch(rb"ex_\w+\n", holt("ps", "a", "-q").stdout)


@real
def test_kill(holt, server):
    server.box("box")
    holt("exec", "-d", "box", "--", "sleep", "1000")
    assert holt("kill", "box").stdout == b"box\n"
    assert names(server) == {"box": "stopped"}


@real
def test_rm_all(holt, server, terminal):
    for n in ("a", "b"):
        server.box(n)
    r = holt("rm", "--all", status=1)
    assert b"would destroy 2 sandboxes" in r.stderr and b"--yes" in r.stderr
    holt("rm", "--all", "a", status=1)
    for answer in (b"n\n", b"\n", b"\x04"):
        t = terminal("rm", "--all")
        t.wait_for(rb"Destroy 2 sandboxes and what is in them\? \[y/N\] ")
        t.type(answer)
        assert t.end() == 1
    assert names(server) == {"a": "running", "b": "running"}
    t = terminal("delete", "-a")
    t.wait_for(rb"\[y/N\] ")
    t.type(b"y\n")
    assert t.end() == 0 and names(server) == {}
    server.box("c")
    holt("rm", "-af")
    assert names(server) == {}
    holt("rm", "--all", "--yes")


@real
def test_the_newest_command(holt, server):
    server.box("box")
    assert b"has not run any command yet" in holt("attach", "box", status=125).stderr
    assert b"has not run any command yet" in holt("wait", "box", status=125).stderr
    holt("exec", "box", "--", "echo", "old")
    holt("exec", "-d", "box", "--", "sh", "-c", "echo new; exit 9")
    holt("wait", "box", status=9)
    assert holt("attach", "box", status=9).stdout == b"new\n"
    holt("exec", "-d", "box", "--", "sleep", "1000")
    holt("signal", "box", "newest", "INT")
    holt("wait", "box", status=128 + signal.SIGINT)


# --- words ---

@real
def test_a_killed_command_says_by_what(holt, server):
    assert first_line(holt("run", "--timeout", "200ms", "--", "sleep", "1000", status=137)) == "holt: killed after 200ms (--timeout)"
    server.box("box")
    assert first_line(holt("exec", "--timeout", "1s", "box", "--", "sleep", "1000", status=137)) == "holt: killed after 1s (--timeout)"
    assert re.fullmatch(r"holt: killed after 1(\.\d)?s \(its time limit\)", first_line(holt("wait", "box", status=137)))


# --- terminals ---

SCREEN = r"\033[?1049h\033[?25l\033[?1000h\033[?1006h\033[?2004h\033[?1h\033=\033[2;20r\033[31mdrawn"
PUT_BACK = [b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?1006l", b"\x1b[?2004l", b"\x1b[?1l", b"\x1b>", b"\x1b[r", b"\x1b[m"]


@real
def test_a_detached_screen_is_put_back(terminal, server):
    server.box("box")
    t = terminal("exec", "box", "-t", "--", "sh", "-c", f"printf '{SCREEN}'; read x")
    t.wait_for(rb"drawn")
    t.type(b"\x10\x11")
    assert t.end() == 0
    after = t.seen[t.seen.index(b"drawn"):]
    for undone in PUT_BACK:
        assert undone in after, (undone, after)
    assert after.index(b"\x1b[?1049l") < after.index(b"holt: detached")
    t = terminal("attach", "box", "--observe")
    t.wait_for(rb"drawn")
    t.type(b"\x03")
    assert t.end() == 0 and b"\x1b[?1049l" in t.seen


@real
def test_a_killed_screen_is_put_back(terminal, server):
    server.box("box")
    t = terminal("exec", "box", "-t", "--", "sh", "-c", f"printf '{SCREEN}'; kill -9 $$")
    assert t.end() == 137 and all(undone in t.seen for undone in PUT_BACK)
    t = terminal("exec", "box", "-t", "--", "sh", "-c", "printf '\\033[1mplain\\033[m'; read x")
    t.wait_for(rb"plain")
    t.type(b"\x10\x11")
    assert t.end() == 0 and b"\x1b" not in t.seen[t.seen.index(b"plain\x1b[m") + 8:], "nothing to put back"


@scripted
@pytest.mark.parametrize("key", [b"q", b"Q", b"xq"])
def test_q_leaves_top(terminal, server, key):
    server.box("box")
    t = terminal("top", "-n", "1h")
    t.wait_for(rb"1.0 MiB")
    wait_for(t.is_raw)
    t.type(key)
    assert t.end() == 0


@scripted
def test_signals_leave_top_and_its_terminal(terminal, server):
    server.box("box")
    t = terminal("top", "-n", "1h")
    t.wait_for(rb"1.0 MiB")
    wait_for(t.is_raw)
    t.process.send_signal(signal.SIGTERM)
    assert t.end() == -signal.SIGTERM


# --- transfers ---

@scripted
def test_cp_shows_progress_on_a_terminal_only(terminal, holt, server, tmp_path):
    server.box("box")
    (tmp_path / "big\x1bfile").write_bytes(b"x" * (24 << 20))
    server.slow = 0.02
    t = terminal("cp", str(tmp_path / "big\x1bfile"), "box:/")
    t.wait_for(rb"big\\x1bfile  \[#+\.+\] +\d+%  [\d.]+ MiB  [\d.]+ MiB/s")
    assert t.end() == 0 and t.seen.endswith(b"\r\x1b[Kholt: copied 24 MiB\r\n"), "in place of the bar"
    t = terminal("cp", "box:/big\x1bfile", str(tmp_path / "copy"))
    t.wait_for(rb"copy  [\d.]+ MiB  [\d.]+ MiB/s")
    assert t.end() == 0 and (tmp_path / "copy").stat().st_size == 24 << 20 and t.seen.endswith(b"holt: copied 24 MiB\r\n")
    assert holt("cp", "box:/big\x1bfile", str(tmp_path / "quiet")).stderr == b""


# --- what a sandbox is not ---

@real
def test_an_image_that_is_the_hosts_files_is_said(holt, server):
    said = b"holt: warning: 'ubuntu:22.04' means the host's own files here (setting image_aliases); `holt image pull ubuntu:22.04` downloads the image\n"
    assert holt("create", "--image", "ubuntu:22.04").stderr == said
    assert holt("run", "--image", "ubuntu:22.04", "--", "true").stderr == said
    assert holt("run", "-d", "--image", "ubuntu:22.04", "--", "true").stderr == said
    for args in (["create"], ["create", "--image", "host"], ["run", "--image", "host", "--", "true"]):
        assert holt(*args).stderr == b""


@scripted
def test_limits_that_do_not_hold_are_said(holt, server):
    server.unenforced = ["memory_bytes", "pids", "kill"]
    said = b"holt: warning: this host cannot enforce --memory, --pids; `holt doctor` says what it needs\n"
    assert holt("create", "-m", "64m").stderr == said
    assert holt("run", "-m", "64m", "--pids", "9", "--", "true").stderr == said
    server.unenforced = ["kill", "pause"]
    assert holt("run", "--", "true").stderr == b""
