"""The command line as a person or a script uses it: against a real holtd, and against servers that misbehave."""
import contextlib
import json
import os
import pty
import re
import select
import signal
import socket
import sqlite3
import ssl
import subprocess
import threading
import time

import pytest

from daemon import BUILD, ROOT, environment, free_ports

HOLT = f"{BUILD}/holt"


def holt_env(tmp_path, holtd=None, **more):
    env = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": f"{tmp_path}/config", "HOLT_STATE": f"{tmp_path}/no-state", "LANG": "C.UTF-8"}
    if holtd:
        env |= {"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token}
    return environment(env | more)


@pytest.fixture
def holt(tmp_path, holtd):
    """Runs holt against the module's daemon as its admin."""
    def run(*args, status=0, env=None, **more):
        r = subprocess.run([HOLT, *args], capture_output=True, text=True, timeout=60, stdin=more.pop("stdin", subprocess.DEVNULL),
                           env=holt_env(tmp_path, holtd, **(env or {})), **more)
        assert r.returncode == status, f"holt {' '.join(args)}: {r.returncode}\n{r.stdout}{r.stderr}"
        return r
    return run


@pytest.fixture
def alone(tmp_path):
    """Runs holt without any daemon."""
    def run(*args, status=0, env=None, **more):
        r = subprocess.run([HOLT, *args], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                           env=holt_env(tmp_path, **(env or {})), **more)
        assert r.returncode == status, f"holt {' '.join(args)}: {r.returncode}\n{r.stdout}{r.stderr}"
        return r
    return run


def as_json(result):
    return json.loads(result.stdout)


# --- without a daemon ---

def test_help_and_version(alone):
    assert "token create" in alone("--help").stdout
    assert alone().stdout == alone("help").stdout == alone("--help").stdout
    assert "--ttl TIME" in alone("token", "create", "--help").stdout
    assert alone("help", "token", "create").stdout == alone("token", "create", "-h").stdout
    assert "token revoke" in alone("token").stdout
    assert re.fullmatch(r"holt \d+\.\d+\.\d+\n", alone("version").stdout)
    assert alone("--version").stdout == alone("version").stdout
    assert re.fullmatch(r"\d+\.\d+\.\d+", as_json(alone("version", "-o", "json"))["version"])


@pytest.mark.parametrize("args, said, hint", [
    (["tokn", "ls"], "there is no command 'tokn ls'", "did you mean `holt token ls`?"),
    (["token", "creat", "x"], "there is no command 'token creat'", "did you mean `holt token create`?"),
    (["frobnicate"], "there is no command 'frobnicate'", "`holt --help` lists"),
    (["events", "--limt", "3"], "unknown flag '--limt' of holt events", "did you mean --limit?"),
    (["token", "create"], "missing argument: NAME", "--help"),
    (["inspect"], "missing argument: SANDBOX", "--help"),
    (["volume", "rm"], "missing argument: VOLUME", "--help"),
    (["volume", "lst"], "there is no command 'volume lst'", "did you mean `holt volume ls`?"),
    (["token", "create", "x", "--role", "king"], "--role: 'king' is not one of: observer, agent, operator, admin", ""),
    (["token", "create", "x", "--ttl", "soon"], "'soon' is not a duration", ""),
    (["status", "extra"], "'extra' is one argument too many", "--help"),
    (["status", "-o", "xml"], "'xml' is not one of: table, json, yaml", ""),
    (["status", "--server", "ftp://x"], "'ftp://x' is not a server", "http://HOST:PORT"),
    (["help", "tokens"], "there is no command 'tokens'", ""),
])
def test_mistakes_are_named(alone, args, said, hint):
    r = alone(*args, status=1)
    assert r.stdout == ""
    assert r.stderr.startswith("holt: ") and said in r.stderr and hint in r.stderr
    assert "\x1b" not in r.stderr, "no colours but on a terminal"


def test_no_daemon(alone, tmp_path):
    port = free_ports()[0]
    r = alone("status", env={"HOLT_SERVER": f"http://127.0.0.1:{port}"}, status=1)
    assert r.stderr.startswith(f"holt: no daemon answers at http://127.0.0.1:{port} (connection refused)\nhint: ")
    r = alone("status", "--server", f"unix:{tmp_path}/none.sock", status=1)
    assert f"no daemon answers at unix:{tmp_path}/none.sock (no such file or directory)" in r.stderr


def test_contexts(alone, tmp_path):
    path = f"{tmp_path}/config/holt/contexts.json"
    alone("context", "add", "a", "http://127.0.0.1:1", env={"HOLT_TOKEN": "secret-a"})
    (tmp_path / "t").write_text("secret-b\n")
    alone("context", "add", "b", "https://b.example", "--token-file", f"{tmp_path}/t")
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.listdir(os.path.dirname(path)) == ["contexts.json"], "no temporary file is left"
    r = alone("context", "ls")
    assert "secret" not in r.stdout and re.search(r"^yes +a +http://127.0.0.1:1", r.stdout, re.M)
    assert [c["name"] for c in as_json(alone("context", "ls", "-o", "json"))["contexts"]] == ["a", "b"]
    alone("context", "use", "b")
    alone("context", "use", "c", status=2)
    assert "127.0.0.1:1 " in alone("status", "--context", "a", status=1).stderr
    alone("context", "add", "a", "http://127.0.0.1:2", status=3)
    alone("context", "add", "a", "http://127.0.0.1:2", "--force")
    alone("context", "rm", "a")
    alone("context", "rm", "a", status=2)
    r = alone("context", "add", "far", "http://192.0.2.1", env={"HOLT_TOKEN": "x"})
    assert "unencrypted" in r.stderr
    with open(path, encoding="utf-8") as f:
        assert set(json.load(f)["contexts"]) == {"b", "far"}


def test_install_and_remove(tmp_path, holtd):
    """With sbx as a link to holt, unless another program has that name; what was installed goes without a trace."""
    def install(*args):
        return subprocess.run([f"{ROOT}/tools/install", *args], capture_output=True, text=True, timeout=60, env=environment(), check=True)

    dest = tmp_path / "dest"
    install(BUILD, str(dest), "/usr")
    sbx = dest / "usr/bin/sbx"
    assert os.readlink(sbx) == "holt"
    r = subprocess.run([sbx, "status", "-addr", holtd.url], capture_output=True, text=True, timeout=60, env=holt_env(tmp_path, holtd), check=False)
    assert (r.returncode, r.stdout.split()) == (0, ["ID", "AGE", "STATE", "ALLOCATED", "LAST_EXEC_TIME"])
    install("--remove", str(dest), "/usr")
    assert not [f for _, _, files in os.walk(dest) for f in files]
    sbx.write_text("#!/bin/sh\n")
    assert "another program" in install(BUILD, str(dest), "/usr").stderr
    install("--remove", str(dest), "/usr")
    assert sbx.read_text() == "#!/bin/sh\n"


def test_doctor_reports_and_changes_nothing(alone):
    with open("/proc/self/mounts", encoding="utf-8") as f:
        mounts = f.read()
    tmp = set(os.listdir("/tmp"))
    r = subprocess.run([HOLT, "doctor", "-o", "json"], capture_output=True, text=True, timeout=60, env=environment())
    v = json.loads(r.stdout)
    assert r.returncode == (0 if v["native_ok"] else 1)
    names = {c["name"] for c in v["checks"]}
    assert {"kernel", "user namespaces", "AppArmor userns restriction", "overlayfs", "cgroups", "subordinate ids", "daemon", "database"} <= names
    assert not {"KVM", "libvirt", "QEMU", "container runtimes"} & names, "of runtimes that are not built"
    assert "qemu" not in r.stdout and "userns=0" not in r.stdout
    for c in v["checks"]:
        assert c["state"] in ("ok", "limited", "missing") and c["detail"], c
        assert c["state"] == "ok" or (c["remedy"] and c["without"]), c
    with open("/proc/self/mounts", encoding="utf-8") as f:
        assert f.read() == mounts
    assert not [n for n in set(os.listdir("/tmp")) - tmp if "doctor" in n]
    text = subprocess.run([HOLT, "doctor"], capture_output=True, text=True, timeout=60, env=environment()).stdout
    assert re.search(r"^\d+ ok, \d+ limited, \d+ missing\.", text, re.M) and "\x1b" not in text
    assert text.count("         fix:     ") == text.count("         without: ") and "mend" not in text


def complete(alone, line, **more):
    """What bash offers with the cursor at the end of the line."""
    script = f"""
        PATH={BUILD}:$PATH
        source <(holt completion bash)
        COMP_LINE={json.dumps(line)}
        COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
        line="${{COMP_LINE//=/ = }}"
        read -ra COMP_WORDS <<< "${{line//:/ : }}"
        [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        _holt
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    r = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, timeout=60, env=environment(more))
    assert r.returncode == 0 and not r.stderr, r.stderr
    return r.stdout.split()


def answers(value):
    raw = reply(json.dumps(value))
    return lambda s: s.sendall(raw)


@pytest.mark.parametrize("line, listed, offered", [
    ("holt exec b", "sandboxes", ["build", "base"]),
    ("holt rm build ", "sandboxes", ["build", "base", "other", "sb_2"]),
    ("holt stop ba", "sandboxes", ["base"]),
    ("holt port-forward o", "sandboxes", ["other"]),
    ("holt cp ba", "sandboxes", ["base:"]),
    ("holt cp file ot", "sandboxes", ["other:"]),
    ("holt cat bu", "sandboxes", ["build:"]),
    ("holt create --image te", "images", ["team/app:1.2", "team/app:2.0"]),
    ("holt run --image team/app:2", "images", ["2.0"]),
    ("holt run --image team/app:", "images", ["1.2", "2.0"]),
    ("holt image rm team/app:1", "images", ["1.2"]),
    ("holt volume rm c", "volumes", ["cache"]),
    ("holt run -v c", "volumes", ["cache:"]),
    ("holt run -- b", None, []),
])
def test_completion_of_names(alone, line, listed, offered):
    rows = {"sandboxes": [{"id": "sb_1", "name": "build"}, {"id": "sb_3", "name": "base"}, {"id": "sb_4", "name": "other"}, {"id": "sb_2", "name": None},
                          {"id": "sb_5", "name": "b$(touch x)"}, {"id": "sb_6", "name": "b;x"}, {"id": "sb_7", "name": "-b"}],
            "images": [{"id": "im_1", "name": "team/app:1.2"}, {"id": "im_2", "name": "team/app:2.0"}, {"id": "host", "name": "host"}],
            "volumes": [{"id": "vo_1", "name": "cache"}, {"id": "vo_2", "name": "data"}]}
    with server(answers({listed: rows.get(listed), "cursor": None})) as (url, seen):
        assert complete(alone, line, HOLT_SERVER=url) == offered
    assert (f"GET /holt/v1/{listed}" in seen[0]) if listed else not seen


def test_completion_is_quick_and_silent_without_a_daemon(alone):
    assert complete(alone, "holt exec ", HOLT_SERVER=f"http://127.0.0.1:{free_ports()[0]}") == []
    with server(lambda s: s.recv(1), raw=True) as (url, _):  # accepts, and says nothing
        before = time.monotonic()
        assert complete(alone, "holt exec ", HOLT_SERVER=url) == []
        assert time.monotonic() - before < 20, "it gives up long before a request would"


def test_bash_completion(alone):
    assert complete(alone, "holt tok") == ["token"]
    assert complete(alone, "holt token ") == ["create", "ls", "inspect", "revoke", "whoami"]
    assert complete(alone, "holt token create x --role o") == ["observer", "operator"]
    assert complete(alone, "holt token create x --role=op") == ["operator"]
    assert complete(alone, "holt token create x --tt") == ["--ttl"]
    assert complete(alone, "holt -o ") == ["table", "json", "yaml"]
    assert complete(alone, "holt completion ") == ["bash", "zsh", "fish"]
    r = subprocess.run(["bash", "--norc", "-c", f"PATH={BUILD}:$PATH; source <(holt completion bash); complete -p holt"],
                       capture_output=True, text=True, timeout=60, env=environment())
    assert r.stdout == "complete -o default -F _holt holt\n"


# --- against servers that misbehave ---

@contextlib.contextmanager
def server(*connections, raw=False):
    """Each of the given functions serves one connection, after its request was read unless raw."""
    listener = socket.create_server(("127.0.0.1", 0))
    seen = []

    def serve():
        for f in connections:
            try:
                s, _ = listener.accept()
            except OSError:
                return
            with s:
                s.settimeout(30)
                request = b""
                while not raw and b"\r\n\r\n" not in request:
                    part = s.recv(65536)
                    if not part:
                        break
                    request += part
                seen.append(request.decode())
                with contextlib.suppress(OSError):
                    f(s)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
    listener.close()


def reply(body, status="200 OK", kind="application/json"):
    raw = body.encode()
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw


def test_a_reply_in_time_or_exit_5(alone):
    with server(lambda s: time.sleep(60)) as (url, _):
        r = alone("status", "--server", url, "--request-timeout", "300ms", status=5)
        assert "no reply in time" in r.stderr and "--request-timeout" in r.stderr


@pytest.mark.parametrize("code, http, status", [("not_found", "404 Not Found", 2), ("conflict", "409 Conflict", 3),
                                                ("forbidden", "403 Forbidden", 4), ("limit", "429 Too Many", 4),
                                                ("timeout", "504 Gateway Timeout", 5), ("internal", "500 Internal", 1)])
def test_exit_status_and_words_are_the_servers(alone, code, http, status):
    error = json.dumps({"error": {"code": code, "message": "it is\u001b[31m so", "object": "a/b", "hint": "do this"}})
    with server(lambda s: s.sendall(reply(error, http))) as (url, _):
        r = alone("status", "--server", url, status=status)
    assert r.stderr == "holt: it is\\x1b[31m so\nhint: do this\n"


@pytest.mark.parametrize("raw", [b"", b"garbage\r\n\r\n", reply("<html>", kind="text/html"), reply("{", "500 Oops"),
                                 reply('{"tokens": 7}'), b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"])
def test_a_server_that_is_no_holt(alone, raw):
    with server(lambda s: s.sendall(raw)) as (url, _):
        r = alone("token", "ls", "--server", url, status=1)
    assert r.stdout == "" and r.stderr.startswith("holt: ")


# CSI as one byte of C1, a line forged by NEL, an override of direction, marks of it, DEL: what acts on a terminal.
HOSTILE = "a\x9b2J\x85b\u202ec\u2066d\u200f\u061c\x7f\u2028\x1b]0;t\x07e"
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def hostile(value, **more):
    """A connection that answers with this, nothing escaped that JSON lets through."""
    raw = reply(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), **more)
    return lambda s: s.sendall(raw)


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
@pytest.mark.parametrize("args, body", [
    (["inspect", "x"], {"id": HOSTILE, "name": HOSTILE, "labels": {HOSTILE: HOSTILE}, "mounts": [{HOSTILE: HOSTILE}]}),
    (["ls"], {"sandboxes": [{"id": HOSTILE, "name": HOSTILE, "state": HOSTILE}], "cursor": None}),
    (["events"], {"events": [{"seq": 1, "type": HOSTILE, "object": HOSTILE, "data": {HOSTILE: HOSTILE}}], "cursor": None}),
    (["token", "create", "x"], {"id": HOSTILE, "token": HOSTILE}),
    (["login"], {"url": HOSTILE}),
])
def test_no_reply_acts_on_a_terminal(alone, form, args, body):
    with server(hostile(body)) as (url, _):
        r = alone(*args, "-o", form, "-s", url)
    assert not ACTS.search(r.stdout + r.stderr), ascii(r.stdout + r.stderr)
    assert "2J" in r.stdout
    if form == "json":
        assert json.loads(r.stdout) == body


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_no_followed_event_acts_on_a_terminal(alone, form):
    event = {"seq": 1, "time": HOSTILE, "type": HOSTILE, "object": HOSTILE, "actor": HOSTILE, "data": {HOSTILE: HOSTILE}}
    stream = f"id: 1\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"
    with server(hostile(stream, kind="text/event-stream")) as (url, _):
        r = alone("events", "-f", "--limit", "1", "-o", form, "-s", url)
    assert "2J" in r.stdout and not ACTS.search(r.stdout + r.stderr), ascii(r.stdout + r.stderr)


def test_no_error_of_a_server_acts_on_a_terminal(alone):
    error = {"error": {"code": "conflict", "message": HOSTILE, "object": HOSTILE, "hint": HOSTILE}}
    with server(hostile(error, status="409 Conflict")) as (url, _):
        r = alone("inspect", "x", "-s", url, status=3)
    assert r.stderr.count("2J") == 2 and not ACTS.search(r.stderr), ascii(r.stderr)


def test_sbx_replies_do_not_act_on_a_terminal(alone):
    with server(hostile({"id": HOSTILE, "namespace": HOSTILE, "pod_name": HOSTILE})) as (url, _):
        r = alone("sbx", "create", "-addr", url)
    assert "2J" in r.stdout and not ACTS.search(r.stdout), ascii(r.stdout)


def test_lists_follow_cursors_up_to_the_limit(alone):
    def page(ids, cursor):
        return lambda s: s.sendall(reply(json.dumps({"tokens": [{"id": i} for i in ids], "cursor": cursor})))
    with server(page("ab", "b"), page("cd", "d"), page("e", None)) as (url, seen):
        r = alone("token", "ls", "--server", url, "-o", "json")
    assert [t["id"] for t in as_json(r)["tokens"]] == list("abcde")
    assert [re.search(r"GET (\S+)", s)[1] for s in seen] == ["/holt/v1/tokens", "/holt/v1/tokens?cursor=b",
                                                             "/holt/v1/tokens?cursor=d"]
    with server(page("ab", "b"), page("cd", "d")) as (url, seen):
        r = alone("token", "ls", "--server", url, "-o", "json", "--limit", "3")
    assert [t["id"] for t in as_json(r)["tokens"]] == list("abc")
    with server(page("ab", "b"), page("c", None)) as (url, seen):
        alone("token", "ls", "--server", url, "--limit", "5000")
    assert "?limit=1000 " in seen[0] and "?limit=1000&cursor=b " in seen[1], "more than one page may hold"
    with server(page("ab", "b"), page("", "b")) as (url, seen):
        alone("token", "ls", "--server", url)
    assert len(seen) == 2, "the same cursor again is the end"


def test_a_large_reply_over_tls_and_one_that_is_cut(alone, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    rows = json.dumps({"tokens": [{"id": f"tk_{i}", "name": "x" * 1000} for i in range(20000)], "cursor": None})

    def whole(s):
        with context.wrap_socket(s, server_side=True) as t:
            t.recv(65536)
            t.sendall(reply(rows))
            t.unwrap()

    def cut(s):
        with context.wrap_socket(s, server_side=True) as t:
            t.recv(65536)
            t.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b'{"tokens": [], "cursor": null}')
            t.send(b"")
            os.close(t.detach())  # no close_notify

    with server(whole, cut, raw=True) as (url, _):
        url = url.replace("http:", "https:")
        r = alone("token", "ls", "--server", url, "--cacert", certificate[0], "-o", "json")
        assert len(as_json(r)["tokens"]) == 20000
        r = alone("token", "ls", "--server", url, "--cacert", certificate[0], status=1)
        assert "cut" in r.stderr


SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n: hello\n\n"


def sse(seq):
    return f"id: {seq}\nevent: t.created\ndata: {json.dumps({'seq': seq, 'time': 'T', 'type': 't.created'})}\n\n".encode()


def test_following_survives_a_lost_connection(alone):
    def first(s):
        s.sendall(SSE + sse(1) + sse(2) + b"id: 3\ndata: {\"half")

    def second(s):
        s.sendall(SSE + sse(3) + sse(4))

    with server(first, second) as (url, seen):
        r = alone("events", "-f", "--server", url, "-o", "json", "--limit", "4", "--type", "t.*")
    assert [json.loads(line)["seq"] for line in r.stdout.splitlines()] == [1, 2, 3, 4], "each once, in order"
    assert "trying again" in r.stderr
    assert "last-event-id" not in seen[0] and "last-event-id: 2" in seen[1]
    assert "type=t.%2A" in seen[0] and "follow=true" in seen[0] and "limit" not in seen[0]


def test_following_ends_when_refused(alone):
    refusal = json.dumps({"error": {"code": "forbidden", "message": "revoked"}})
    with server(lambda s: s.sendall(SSE + sse(1)), lambda s: s.sendall(reply(refusal, "403 Forbidden"))) as (url, _):
        r = alone("events", "-f", "--server", url, status=4)
    assert "revoked" in r.stderr


def test_a_reader_that_goes_ends_holt_quietly(tmp_path):
    def endless(s):
        s.sendall(SSE)
        for seq in range(100000):
            s.sendall(sse(seq))
    with server(endless) as (url, _):
        p = subprocess.Popen([HOLT, "events", "-f", "--server", url, "-o", "json"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=holt_env(tmp_path))
        p.stdout.readline()
        p.stdout.close()
        assert p.wait(30) == 0
        assert p.stderr.read() == b""
        p.stderr.close()


# --- against a real holtd ---

def test_status_in_every_form(holt):
    v = as_json(holt("status", "-o", "json"))
    assert v["name"] == "holt"
    assert re.search(rf"^version +{re.escape(v['version'])}$", holt("status").stdout, re.M)
    assert f"version: \"{v['version']}\"" in holt("status", "-o", "yaml").stdout
    assert "\x1b" not in holt("status").stdout


def test_colours_on_a_terminal_only(holtd, tmp_path):
    def on_terminal(**env):
        leader, follower = pty.openpty()
        p = subprocess.Popen([HOLT, "token", "ls"], stdout=follower, stdin=subprocess.DEVNULL,
                             env=holt_env(tmp_path, holtd, **{"TERM": "xterm", **env}))
        os.close(follower)
        out = b""
        while select.select([leader], [], [], 20)[0]:
            try:
                part = os.read(leader, 65536)
            except OSError:
                break
            if not part:
                break
            out += part
        os.close(leader)
        assert p.wait(60) == 0
        return out
    assert b"\x1b[1m" in on_terminal()
    assert b"\x1b" not in on_terminal(NO_COLOR="1")
    assert b"\x1b" not in on_terminal(TERM="dumb")


def test_tokens_from_making_to_revoking(holt):
    made = as_json(holt("token", "create", "cli-test", "--role", "operator", "--ttl", "15m", "-o", "json"))
    assert made["token"].startswith("holt_") and made["role"] == "operator" and made["expires_at"]
    assert re.search(rf"^{made['id']} +cli-test +operator", holt("token", "ls").stdout, re.M)
    seen = as_json(holt("token", "inspect", made["id"], "-o", "json"))
    assert seen["name"] == "cli-test" and "token" not in seen
    who = as_json(holt("token", "whoami", "-o", "json", env={"HOLT_TOKEN": made["token"]}))
    assert who["id"] == made["id"] and who["role"] == "operator"
    r = holt("token", "ls", env={"HOLT_TOKEN": made["token"]}, status=4)
    assert r.stderr.startswith("holt: ")
    assert holt("token", "revoke", made["id"]).stdout == ""
    holt("token", "whoami", env={"HOLT_TOKEN": made["token"]}, status=4)
    assert "tk_00000000000000000000" in holt("token", "inspect", "tk_00000000000000000000", status=2).stderr
    r = holt("token", "create", "x", "--ttl", "1ms", status=1)
    assert "ttl_ms" in r.stderr, "the server names the field and its range"


def test_without_a_token_the_hint_says_so(holt):
    r = holt("status", env={"HOLT_TOKEN": ""}, status=4)
    assert r.stderr.startswith("holt: not logged in to http://127.0.0.1:") and "set HOLT_TOKEN" in r.stderr


def test_the_local_admin_token_is_found(holtd, tmp_path):
    env = holt_env(tmp_path, HOLT_STATE=holtd.state, HOLT_SERVER=holtd.url)
    r = subprocess.run([HOLT, "token", "whoami", "-o", "json"], capture_output=True, text=True, timeout=60, env=env)
    assert r.returncode == 0 and json.loads(r.stdout)["role"] == "admin", r.stderr


def test_events_show_hosts(alone):
    events = [{"seq": 7, "type": "egress.denied", "object": "sandbox/sb_1", "actor": "system", "data": {"host": "evil.test", "port": 443}},
              {"seq": 8, "type": "token.created", "object": "token/tk_1", "actor": "token/tk_0", "data": {}}]
    with server(answers({"events": events, "cursor": None})) as (url, _):
        table = alone("events", "-s", url).stdout
    assert re.search(r"ACTOR +HOST\n", table) and re.search(r"system +evil.test:443\n", table) and re.search(r"tk_0 +-\n", table)
    with server(answers({"events": events, "cursor": None})) as (url, _):
        assert as_json(alone("events", "-o", "json", "-s", url))["events"] == events


def test_events_list_and_follow(holt, holtd, tmp_path):
    made = as_json(holt("token", "create", "watched", "-o", "json"))
    events = as_json(holt("events", "--object", f"token/{made['id']}", "-o", "json"))["events"]
    assert [e["type"] for e in events] == ["token.created"]
    assert "token.created" in holt("events", "--type", "token.*", "--limit", "5").stdout
    p = subprocess.Popen([HOLT, "events", "-f", "--since", str(events[0]["seq"]), "--type", "token.*", "-o", "json"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=holt_env(tmp_path, holtd))
    try:
        holt("token", "revoke", made["id"])
        line = p.stdout.readline()
        assert json.loads(line)["type"] == "token.revoked"
    finally:
        p.send_signal(signal.SIGINT)
        p.wait(60)
        p.stdout.close()
        p.stderr.close()


def test_following_goes_on_over_a_restart(new_holtd, tmp_path):
    port = free_ports()[0]
    d = new_holtd(port=port, name="same")
    p = subprocess.Popen([HOLT, "events", "-f", "--type", "token.created", "-o", "json"], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, env=holt_env(tmp_path, d))
    try:
        d.new_token("before")
        while json.loads(p.stdout.readline())["data"]["name"] != "before":
            pass
        d.kill()
        d = new_holtd(port=port, name="same")
        d.new_token("after")
        assert json.loads(p.stdout.readline())["data"]["name"] == "after", "neither lost nor doubled"
    finally:
        p.terminate()
        p.wait(60)
        p.stdout.close()


def test_settings(holt):
    rows = {r["key"]: r for r in as_json(holt("settings", "-o", "json"))["settings"]}
    assert rows["state"]["source"].startswith("flag")
    assert re.search(r"^listen +", holt("settings").stdout, re.M)


def test_login_prints_a_link_that_works_once(holt, holtd):
    url = holt("login").stdout.strip()
    assert url.startswith("http://") and "\n" not in url
    code = re.search(r"login=([^&]+)$", url)[1]
    assert holtd.request("POST", "/holt/v1/login", {"code": code}, token=None)[0] == 200
    assert holtd.request("POST", "/holt/v1/login", {"code": code}, token=None)[0] >= 400


def test_tls_and_unix_servers(new_holtd, certificate, tmp_path):
    cert, key = certificate
    tls_port = free_ports()[0]
    d = new_holtd("--tls-cert", cert, "--tls-key", key, listen=[f"tls://127.0.0.1:{tls_port}", f"unix:{tmp_path}/h.sock"])

    def run(server_url, *args, **env):
        return subprocess.run([HOLT, "status", "-o", "json", "--server", server_url, *args], capture_output=True, text=True,
                              timeout=60, env=holt_env(tmp_path, HOLT_TOKEN=d.token, **env))
    assert run(f"unix:{tmp_path}/h.sock").returncode == 0
    url = f"https://127.0.0.1:{tls_port}"
    r = run(url)
    assert r.returncode == 4 and "not trusted" in r.stderr and "--cacert" in r.stderr
    assert run(url, "--cacert", cert).returncode == 0
    assert run(url.replace("127.0.0.1", "localhost"), HOLT_CACERT=cert).returncode == 0
    assert "none.pem" in run(url, "--cacert", "/none.pem").stderr
    assert run(f"http://127.0.0.1:{tls_port}").returncode == 1


def test_audit_verify(holt, new_holtd, tmp_path):
    v = as_json(holt("audit", "verify", "-o", "json"))
    assert v["ok"] is True and re.fullmatch("[0-9a-f]{64}", v["head"])
    assert as_json(holt("audit", "verify", "--head", v["head"], "-o", "json"))["head_found"] is True
    r = holt("audit", "verify", "--head", "ab" * 32, status=3)
    assert "not in the chain" in r.stderr

    d = new_holtd(name="broken")
    for i in range(5):
        d.new_token(f"t{i}")
    d.stop()
    with contextlib.closing(sqlite3.connect(f"{d.state}/holt.db")) as db:
        seq = db.execute("SELECT seq FROM events ORDER BY seq LIMIT 1 OFFSET 2").fetchone()[0]
        db.execute("UPDATE events SET data = '{\"name\":\"forged\"}' WHERE seq = ?", (seq,))
        db.commit()
    d = new_holtd(name="broken")
    r = subprocess.run([HOLT, "audit", "verify"], capture_output=True, text=True, timeout=60, env=holt_env(tmp_path, d))
    assert r.returncode == 3, r.stdout + r.stderr
    assert re.search(rf"broken at event {seq}\b", r.stderr)
