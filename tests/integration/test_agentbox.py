"""The agentbox interface on native sandboxes, by grpcio: the whole surface, and every failure text of the contract."""
import base64
import gzip
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request

import grpc
import pytest

from google.protobuf import descriptor_pool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from websockets.sync.client import connect as ws_connect

from agentbox_client import DEFAULT_HOSTS, DESCRIPTOR, Sandbox
from daemon import BUILD, ROOT, Holtd, Program, environment, free_ports, native, wait_for
from egress import Names, Peer, http_echo, jwt
from packages import python_index


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("agentbox"))
    yield d
    d.clear()
    assert d.stop() == 0


@pytest.fixture(scope="module")
def box(holtd):
    s = Sandbox(holtd.port, holtd.token)
    yield s
    s.close()


@pytest.fixture(scope="module")
def session(box):
    box.CreateSession(session_id="main")
    yield "main"
    box.DestroySession(session_id="main")


def test_create_get_list_destroy(box, holtd):
    made = box.CreateSession(session_id="life").session
    assert made.session_id == "life" and made.status == "running" and list(made.allowed_hosts) == DEFAULT_HOSTS
    assert re.fullmatch("[0-9a-f]{12}", made.container_id) and not made.HasField("tenant_id")
    assert abs(made.created_at - time.time()) < 60
    again = box.CreateSession(session_id="life", tenant_id="other", allowed_hosts=["x.example"]).session
    assert again.container_id == made.container_id and not again.HasField("tenant_id")
    assert list(again.allowed_hosts) == DEFAULT_HOSTS, "the first one's win"
    own = box.CreateSession(allowed_hosts=["b.example", "*.a.example"], tenant_id="t1").session
    assert re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", own.session_id)
    assert list(own.allowed_hosts) == ["b.example", "*.a.example"] and own.tenant_id == "t1"
    assert [s.session_id for s in box.ListSessions().sessions] == ["life", own.session_id]
    assert box.GetSession(session_id="life").session.session_id == "life"
    # It is a sandbox like any other, under any of its names.
    native_view = holtd.ok("GET", "/holt/v1/sandboxes/life")
    assert native_view["id"] == made.sandbox_id and native_view["limits"]["memory_bytes"] == 4 << 30
    for name in ("life", own.session_id):
        assert box.DestroySession(session_id=name).success
    assert not box.DestroySession(session_id="life").success
    assert not box.ListSessions().sessions
    with pytest.raises(grpc.RpcError) as e:
        box.GetSession(session_id="life")
    assert (e.value.code(), e.value.details()) == (grpc.StatusCode.NOT_FOUND, "Session not found")


def test_many_creates_of_one_id_make_one(box):
    got = []
    threads = [threading.Thread(target=lambda: got.append(box.CreateSession(session_id="same").session.container_id))
               for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(got) == 12 and len(set(got)) == 1
    assert box.DestroySession(session_id="same").success


def test_creates_and_destroys_of_one_id_come_one_after_the_other(box):
    """As by the original's lock: a create never fails by a destroy, nor does it return what is on its way out."""
    session = {"session_id": "again"}

    def look():
        try:
            return {box.GetSession(**session).session.container_id}
        except grpc.RpcError as e:
            assert e.code() == grpc.StatusCode.NOT_FOUND
            return set()

    for _ in range(8):
        made, gone, used = [], [], []
        for _ in range(3):
            made.append(box.call("CreateSession", session))
            used += [box.call("Exec", {**session, "command": "true"}), box.call("WriteFile", {**session, "path": "x"})]
            gone += [box.call("DestroySession", session), box.call("DestroySession", session)]
            made.append(box.call("CreateSession", session))
        infos = [f.result(60).session for f in made]
        assert {(i.session_id, i.status) for i in infos} == {("again", "running")}
        ended = sum(f.result(60).success for f in gone)
        for f in used:
            assert "is creating" not in str(f.result(60)), "until it is made there is none"
        left = look()
        assert len({i.container_id for i in infos}) == ended + len(left), "each was ended once, by one who was told so"
        if left:
            assert left <= {i.container_id for i in infos} and run(box, "again", "echo here")[1] == "here\n"
        assert box.DestroySession(**session).success == bool(left)


def test_an_id_that_names_another_sandbox(box, holtd):
    """What was not made as a session is found by its name, and no create hands it out."""
    native_box = holtd.ok("POST", "/holt/v1/sandboxes", {"name": "taken"})
    for name in ("taken", native_box["id"]):
        with pytest.raises(grpc.RpcError) as e:
            box.CreateSession(session_id=name, allowed_hosts=["x.example"])
        assert e.value.code() == grpc.StatusCode.UNKNOWN
        assert e.value.details() == f"Exception calling application: create a sandbox: a sandbox named '{name}' exists already"
    assert run(box, "taken", "echo by its name")[1] == "by its name\n"
    holtd.ok("DELETE", "/holt/v1/sandboxes/taken")
    assert box.CreateSession(session_id="taken").session.session_id == "taken"
    assert holtd.request("POST", "/holt/v1/sandboxes", {"name": "taken"})[0] == 409
    assert box.DestroySession(session_id="taken").success


def test_names_that_would_be_paths(box):
    for tenant in ("../x", "a/b", ".", "..", "-x", "a" * 65, "a\0b"):
        with pytest.raises(grpc.RpcError) as e:
            box.CreateSession(session_id="bad", tenant_id=tenant)
        assert e.value.code() == grpc.StatusCode.INVALID_ARGUMENT, tenant
    with pytest.raises(grpc.RpcError) as e:
        box.CreateSession(session_id="s" * 300)
    assert e.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def run(box, session, command, **more):
    r = box.Exec(session_id=session, command=command, **more)
    return r.exit_code, r.stdout, r.stderr, r.timed_out


def test_exec(box, session):
    assert run(box, session, "echo out; echo err >&2; exit 3") == (3, "out\n", "err\n", False)
    assert run(box, session, "kill -9 $$")[0] == -9
    assert run(box, session, "nosuchprogram")[0] == 127
    assert run(box, session, "pwd; id -u; readlink /proc/self/fd/0")[1] == "/workspace\n0\n/dev/null\n"
    assert run(box, session, "pwd", workdir="/tmp")[1] == "/tmp\n"
    assert run(box, session, r"printf 'a\377b\303'")[1] == "a\ufffdb\ufffd"
    assert run(box, session, "cat; echo $X", stdin=b"in", env={"X": "y"})[1] == "iny\n"
    assert run(box, session, "mkdir -p sub/dir; echo x", timeout=2**31 - 1)[1] == "x\n"
    assert run(box, session, "pwd", workdir="sub/dir")[1] == "/workspace/sub/dir\n", "relative to /workspace"
    for n in (9000, 70000, 131000):
        assert run(box, session, f"printf {'x' * n} | wc -c")[:2] == (0, f"{n}\n")
    code, out, _, _ = run(box, session, "head -c 3000000 /dev/zero | tr '\\0' x")
    assert code == 0 and len(out) == 3000000


def test_exec_failures_are_told_in_the_answer(box, session):
    assert run(box, "none", "true") == (-1, "", "Session not found", False)
    assert run(box, "", "true") == (-1, "", "Session not found", False)
    assert run(box, session, "") == (-1, "", "", False)
    assert run(box, session, "true", workdir="/no/such") == (-1, "", "[Errno 2] No such file or directory: '/no/such'", False)
    assert run(box, session, "true", workdir="/etc/passwd") == (-1, "", "[Errno 20] Not a directory: '/etc/passwd'", False)
    assert run(box, session, "true", workdir="no") == (-1, "", "[Errno 2] No such file or directory: 'no'", False)
    assert run(box, session, "true", workdir="/it's") == (-1, "", "[Errno 2] No such file or directory: \"/it's\"", False)
    assert run(box, session, "true", workdir="/a'\"\n\\") == (-1, "", r"""[Errno 2] No such file or directory: '/a\'"\n\\'""", False)
    assert run(box, session, "x" * 131072) == (-1, "", "[Errno 7] Argument list too long: '/bin/sh'", False)
    assert run(box, session, "echo a\0b") == (-1, "", "embedded null byte", False)
    assert run(box, session, "true", timeout=-1) == (-1, "", "Command timed out", True)


def test_deadline_ends_everything(box, session):
    began = time.monotonic()
    assert run(box, session, "sleep 50", timeout=1) == (-1, "", "Command timed out", True)
    code, out, err, timed_out = run(box, session, "echo early; setsid sleep 51 & sleep 52", timeout=5)
    assert (code, out, err, timed_out) == (-1, "early\n", "Command timed out", True), "what came before is kept"
    assert time.monotonic() - began < 50
    wait_for(lambda: run(box, session, "pgrep -x sleep")[0] == 1)  # nothing of it is left
    assert run(box, session, "sleep 60 & echo now")[:2] == (0, "now\n"), "a child in the background does not hold the answer"
    run(box, session, "pkill sleep")


def test_a_caller_who_goes_ends_the_command(box, session):
    with pytest.raises(grpc.RpcError) as e:
        box.Exec(rpc_timeout=1, session_id=session, command="exec sleep 70")
    assert e.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    wait_for(lambda: run(box, session, "pgrep -x sleep")[0] == 1)


def test_a_revoked_token_ends_its_streams_and_their_commands(box, session, holtd):
    made = holtd.new_token("for-a-while")
    other = Sandbox(holtd.port, made["token"])
    stream = other.ExecStream(session_id=session, command="echo up; setsid sleep 71 & sleep 72")
    assert next(stream).data == "up\n"
    holtd.ok("DELETE", f"/holt/v1/tokens/{made['id']}")
    with pytest.raises(grpc.RpcError) as e:
        list(stream)
    assert (e.value.code(), e.value.details()) == (grpc.StatusCode.UNAVAILABLE, "the token is revoked or expired")
    wait_for(lambda: run(box, session, "pgrep -x sleep")[0] == 1)  # nobody would ever read what it says, nor end it
    other.close()


def test_stream_is_live(box, session):
    seen = []
    for m in box.ExecStream(session_id=session, command="echo a; until [ -e go ]; do sleep 0.05; done; echo b >&2; exit 5"):
        seen.append((m.type, m.data, m.exit_code if m.HasField("exit_code") else None))
        if len(seen) == 1:
            assert run(box, session, "touch go")[0] == 0  # it came while the command runs
    assert seen == [("stdout", "a\n", None), ("stderr", "b\n", None), ("exit", "", 5)]
    last = list(box.ExecStream(session_id=session, command="true"))[-1]
    assert last.type == "exit" and last.HasField("exit_code") and last.exit_code == 0
    text = "".join(m.data for m in box.ExecStream(
        session_id=session, command=r"printf 'x\342'; sleep 0.2; printf '\202'; sleep 0.2; printf '\254'"))
    assert text == "x\u20ac", "a character that came in three pieces"


def test_stream_failures(box, session):
    def stream(**fields):
        return [(m.type, m.data) for m in box.ExecStream(**fields)]
    assert stream(session_id="none", command="true") == [("error", "Session not found")]
    assert stream(session_id=session, command="") == []
    assert stream(session_id=session, command="true", workdir="/no") == [("error", "[Errno 2] No such file or directory: '/no'")]
    assert stream(session_id=session, command="x" * 140000) == [("error", "[Errno 7] Argument list too long: '/bin/sh'")]
    assert stream(session_id=session, command="exec sleep 90", timeout=1) == [("error", "Command timed out")]
    call = box.ExecStream(session_id=session, command="exec sleep 80")
    time.sleep(0.3)
    call.cancel()
    wait_for(lambda: run(box, session, "pgrep -x sleep")[0] == 1)


def test_stream_of_much(box, session):
    n = 0
    for m in box.ExecStream(session_id=session, command="head -c 20000000 /dev/zero | tr '\\0' y"):
        n += len(m.data)
    assert n == 20000000


def test_a_slow_reader_misses_nothing(box, session):
    """More than the log keeps and all windows hold: the command waits."""
    seen = []
    for m in box.ExecStream(session_id=session, command="head -c 90000000 /dev/zero | tr '\\0' y"):
        if not seen:
            time.sleep(1.5)
        seen.append((m.type, len(m.data)))
    assert {t for t, _ in seen[:-1]} == {"stdout"} and seen[-1][0] == "exit" and sum(n for _, n in seen) == 90000000


def test_files(box, session):
    def write(path, content="", **more):
        r = box.WriteFile(session_id=session, path=path, content=content, **more)
        assert r.success != r.HasField("error")
        return r.success or r.error

    def read(path, **more):
        r = box.ReadFile(session_id=session, path=path, **more)
        assert r.success == (r.HasField("content") or r.HasField("data")) and r.success != r.HasField("error")
        return r.content if r.success else (r.error,)

    assert write("a/b/c.txt", "one\n") is True and read("a/b/c.txt") == "one\n"
    assert write("/workspace/a/b/c.txt", "two\n", mode="a") is True and read("/workspace/a/b/c.txt") == "one\ntwo\n"
    assert write("a/b/c.txt", "three", mode="w") is True and read("a/b/c.txt") == "three"
    assert write("empty") is True and read("empty") == ""
    assert write("/mnt/user-data/outputs/o", "x") is True and read("/mnt/user-data/outputs/o") == "x"
    assert write("big", "z" * 5_000_000) is True and len(read("big")) == 5_000_000
    for path in ("/etc/passwd", "/workspace2/x", "../etc/x", "/workspace/../root/x", "/mnt/user-data/uploads/x", "/tmp/x"):
        assert write(path, "x") == "Path not allowed", path
    for path in ("/etc/passwd", "/etc/none", "/workspace2/x", "../etc/passwd", "/mnt/x", "/", "/mnt", "/etc", "/etc/passwd/x"):
        assert read(path) == ("Path not allowed",), path
    assert write("/", "x") == write("/mnt/user-data", "x") == "Path not allowed"
    run(box, session, "ln -s /etc/passwd out; ln -s /etc inside; ln -s /workspace/a/b/c.txt abs; ln -s /etc/gone dangling")
    assert read("out") == ("Path not allowed",) and write("out", "x") == "Path not allowed"
    assert write("inside/new/x", "x") == "Path not allowed" and write("dangling", "x") == "Path not allowed"
    assert read("inside") == ("Path not allowed",) and write("inside", "x") == "Path not allowed", "a directory, but outside"
    assert read("abs") == "three" and read("abs/x") == ("File not found",)
    for name in (".", "a/..", "/workspace/", "a/b/../../../workspace"):
        assert read(name) == ("[Errno 21] Is a directory: '/workspace'",) and write(name, "x") == "[Errno 21] Is a directory: '/workspace'", name
    assert write("slash/", "s") is True and read("slash") == "s"
    run(box, session, "mkdir \"o'd\"")
    assert read("o'd") == ("[Errno 21] Is a directory: \"/workspace/o'd\"",)
    assert read("none") == ("File not found",) and read("a") == ("[Errno 21] Is a directory: '/workspace/a'",)
    assert write("a", "x") == "[Errno 21] Is a directory: '/workspace/a'"
    assert write("", "x") == "Missing 'path' or 'content' field" and read("") == ("Missing 'path' field",)
    run(box, session, r"printf '\377x' > bin")
    assert read("bin") == ("'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",)
    assert box.ReadFile(session_id=session, path="bin", binary=True).data == b"\xffx"
    assert box.WriteFile(session_id=session, path="raw", data=b"\0\xfe").success
    assert run(box, session, "od -An -tx1 raw")[1].split() == ["00", "fe"]
    assert box.ReadFile(session_id="none", path="x").error == "Session not found"
    assert box.WriteFile(session_id="none", path="x", content="y").error == "Session not found"


def test_only_the_promised_places_are_writable(box, session):
    for path, ok in (("/workspace/w", True), ("/mnt/user-data/outputs/w", True), ("/tmp/w", True), ("/run/w", True),
                     ("/w", False), ("/etc/w", False), ("/root/w", False), ("/usr/w", False), ("/mnt/user-data/uploads/w", False)):
        assert (run(box, session, f"echo x > {path}")[0] == 0) == ok, path


@pytest.mark.not_on("runsc", "gVisor of before 2023 refuses statx(AT_NO_AUTOMOUNT), and so ls and stat of coreutils 9 on a name")
def test_tmp_is_no_smaller_than_the_disk(box, session):
    assert run(box, session, "head -c 100000000 /dev/zero > /tmp/much && stat -c '%s' /tmp/much; stat -c %a /tmp; rm /tmp/much")[1] == "100000000\n1777\n"


def test_only_the_allowed_hosts(box, session, holtd):
    """The policy is the session's list; programs find the proxy, and those that ignore it are led there all the same."""
    policy = holtd.ok("GET", f"/holt/v1/sandboxes/{session}")["network"]
    assert policy["mode"] == "allowlist" and len(policy["allow"]) == 8
    assert "http://" in run(box, session, "echo $HTTPS_PROXY $http_proxy")[1]
    out = run(box, session, "curl -s -m 10 http://evil.test/; curl -s -m 10 --noproxy '*' http://evil.test/ || echo no way")[1]
    assert "evil.test port 80 is refused" in out and "no way" in out
    odd = ["localhost", "not a host", "", "*", "*.x.example", "http://x", "y.example:8443", "y.example:x", "10.1.0.0/16", "[::1]:81"]
    box.CreateSession(session_id="odd", allowed_hosts=odd)
    policy = holtd.ok("GET", "/holt/v1/sandboxes/odd")["network"]
    assert policy["mode"] == "allowlist"
    assert policy["allow"] == [{"host": "localhost"}, {"host": "*.x.example"}, {"host": "y.example", "ports": [8443]},
                               {"cidr": "10.1.0.0/16"}, {"cidr": "::1", "ports": [81]}]
    assert list(box.GetSession(session_id="odd").session.allowed_hosts) == odd, "as they were asked for"
    assert box.DestroySession(session_id="odd").success
    for host in ("a\nb", "a\0b", "\x1f"):
        with pytest.raises(grpc.RpcError) as e:
            box.CreateSession(session_id="odd", allowed_hosts=["c.example", host])
        assert e.value.code() == grpc.StatusCode.INVALID_ARGUMENT and "number 2" in e.value.details()


def test_an_agent_has_the_house_s_hosts(holtd):
    """What the dialect gives everybody is no choice of the agent's; a host of its own would be."""
    made = holtd.ok("POST", "/holt/v1/tokens", {"name": "maker", "role": "agent", "agent": "maker"})
    agent = Sandbox(holtd.port, made["token"])
    assert list(agent.CreateSession(session_id="of-agent").session.allowed_hosts) == DEFAULT_HOSTS
    assert agent.Exec(session_id="of-agent", command="echo works").stdout == "works\n"
    assert list(agent.CreateSession(session_id="fewer", allowed_hosts=DEFAULT_HOSTS[:1]).session.allowed_hosts) == DEFAULT_HOSTS[:1]
    for hosts in (["evil.example"], [DEFAULT_HOSTS[0], "evil.example"], [f"*.{DEFAULT_HOSTS[0]}"], ["*"]):
        with pytest.raises(grpc.RpcError) as e:
            agent.CreateSession(session_id="more", allowed_hosts=hosts)
        assert e.value.code() == grpc.StatusCode.PERMISSION_DENIED and "may not set the network" in e.value.details(), hosts
    status, reply, _ = holtd.request("PATCH", "/holt/v1/sandboxes/of-agent", {"network": "open"}, token=made["token"])
    assert status == 403, reply
    for name in ("of-agent", "fewer"):
        assert agent.DestroySession(session_id=name).success
    agent.close()


def test_an_agent_cannot_join_what_another_makes(holtd):
    """Each gets a session of its own by the name, and ends its own only."""
    agents = [Sandbox(holtd.port, holtd.ok("POST", "/holt/v1/tokens", {"name": n, "role": "agent", "agent": n})["token"]) for n in ("first", "second")]
    outcomes = []

    def create(agent, name):
        try:
            outcomes.append(agent.CreateSession(session_id=name).session.session_id)
        except grpc.RpcError as e:
            outcomes.append(e.code())
    for i in range(8):
        outcomes.clear()
        threads = [threading.Thread(target=create, args=(a, f"raced-{i}")) for a in agents]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert outcomes == [f"raced-{i}"] * 2, outcomes
        owners = {b["owner"] for b in holtd.ok("GET", "/holt/v1/sandboxes")["sandboxes"] if f"raced-{i}" in str(b["aliases"])}
        assert len(owners) == 2
        for a in agents:
            assert a.DestroySession(session_id=f"raced-{i}").success
    for a in agents:
        a.close()


def test_proxy_credentials(tmp_path):
    """Where the proxy listens on TCP a session has credentials for it, which end with it."""
    port = free_ports()[0]
    names, web = Names({"web.test": ["127.0.0.1"]}), Peer(http_echo)
    d = native(tmp_path / "d", "--egress-dns", names.address, env={"PROXY_HOST": "127.0.0.1", "PROXY_PORT": str(port), "SIGNING_KEY": "dev-secret"})
    try:
        s = Sandbox(d.port, d.token)
        made = s.CreateSession(session_id="with-proxy", tenant_id="t", allowed_hosts=["web.test"]).session
        user, at = made.proxy_url.removeprefix("http://").split("@")
        assert at == f"127.0.0.1:{port}" and user.startswith("sandbox:jwt_")
        token = user.removeprefix("sandbox:jwt_")
        head, claims = [json.loads(base64.urlsafe_b64decode(p + "==")) for p in token.split(".")[:2]]
        assert head == {"typ": "JWT", "alg": "HS256"} and 4 * 3600 - 60 < claims["exp"] - time.time() <= 4 * 3600
        assert list(claims) == ["iss", "session_id", "tenant_id", "allowed_hosts", "exp", "sandbox_id"]
        assert (claims["iss"], claims["tenant_id"], claims["allowed_hosts"]) == ("sandbox-egress-control", "t", "web.test")
        assert claims["session_id"] == "with-proxy"

        def curl(proxy_url, *more, url=f"http://web.test:{web.port}/hello"):
            r = subprocess.run(["curl", "-sS", "-m", "60", "-o", "/dev/null", "-w", "%{http_code} %{http_connect}", "-x", proxy_url, *more, url],
                               capture_output=True, text=True, check=False)
            return r.stdout.split()

        allow = [f"web.test:{web.port}", {"cidr": "127.0.0.1/32", "ports": [web.port]}]
        d.ok("PATCH", f"/holt/v1/sandboxes/{made.sandbox_id}", {"network": {"allow": allow}})
        assert curl(made.proxy_url) == ["200", "000"] and curl(made.proxy_url, "-p") == ["200", "200"]
        assert curl(made.proxy_url, url=f"http://evil.test:{web.port}/")[0] == "403", "its session's policy"
        again = s.GetSession(session_id="with-proxy").session.proxy_url
        assert curl(again) == ["200", "000"]
        for name in ("with-proxy", made.sandbox_id):  # whoever has the key may sign
            assert curl(f"http://any:jwt_{jwt('dev-secret', name)}@{at}") == ["200", "000"], name
        other = s.CreateSession(session_id="another").session.proxy_url
        assert curl(other)[0] == "403", "another session's policy"
        old = jwt("dev-secret", made.sandbox_id, exp=int(time.time()) - 5)
        for bad in (at, f"sandbox:x@{at}", f"sandbox:jwt_{token[:-4]}AAAA@{at}", f"sandbox:jwt_{old}@{at}",
                    f"sandbox:jwt_{jwt('other-key', made.sandbox_id)}@{at}", f"sandbox:jwt_{jwt('dev-secret', 'with-prox')}@{at}"):
            assert curl(f"http://{bad}")[0] == "407", bad
        observer = Sandbox(d.port, d.new_token("watches", "observer")["token"])
        assert not observer.GetSession(session_id="with-proxy").session.HasField("proxy_url"), "who may only look gets none"
        assert not any(x.HasField("proxy_url") for x in s.ListSessions().sessions)
        observer.close()
        assert token not in d.log() and token not in json.dumps(d.ok("GET", "/holt/v1/events?limit=1000"))
        assert s.DestroySession(session_id="with-proxy").success
        assert curl(made.proxy_url)[0] == "407" and curl(again)[0] == "407", "they ended with their session"
        successor = s.CreateSession(session_id="with-proxy", allowed_hosts=["web.test"]).session
        d.ok("PATCH", f"/holt/v1/sandboxes/{successor.sandbox_id}", {"network": {"allow": allow}})
        assert curl(successor.proxy_url)[0] == "200"
        assert curl(made.proxy_url)[0] == "407", "the next one of that name is another"
        assert s.DestroySession(session_id="with-proxy").success
        last = s.GetSession(session_id="another").session.proxy_url
        assert curl(last)[0] == "403"
        s.close()
        Program.stop(d)  # holt-egress goes on
        d = native(tmp_path / "d", "--egress-dns", names.address)
        wait_for(lambda: curl(last)[0] == "000")  # who starts without PROXY_HOST has no such proxy, not even the one of before
        s = Sandbox(d.port, d.token)
        assert not s.GetSession(session_id="another").session.HasField("proxy_url")
        assert s.DestroySession(session_id="another").success
        s.close()
    finally:
        assert d.stop() == 0
        names.close()
        web.close()


@pytest.mark.not_on("containers", "about the sessions of a native daemon")
def test_runtime(tmp_path, holtd):
    """SANDBOX_RUNTIME: what it means is said in the log; one that cannot work stops the start."""
    said = [line for line in holtd.log().splitlines() if "agentbox's sessions" in line]
    assert len(said) == 1 and "runtime=native" in said[0] and "SANDBOX_RUNTIME names it" in said[0], said
    for name in filter(lambda n: not shutil.which(n), ("runsc", "runc")):  # one that is installed: the next test
        bad = Holtd(tmp_path / name, "--runtime", "native", env={"SANDBOX_RUNTIME": name}, ready=False)
        assert bad.process.wait(60) != 0
        assert f"SANDBOX_RUNTIME is '{name}', which is not installed" in bad.log() + bad.text
    bad = Holtd(tmp_path / "other", env={"SANDBOX_RUNTIME": "docker"}, ready=False)
    assert bad.process.wait(60) != 0 and "docker" in bad.log() + bad.text

    def doctor(**env):
        r = subprocess.run([f"{BUILD}/holt", "doctor", "-o", "json"], capture_output=True, text=True, timeout=60, env=environment(env), check=False)
        return next(c for c in json.loads(r.stdout)["checks"] if c["name"] == "agentbox's runtime")

    check = doctor()
    assert check["state"] == "ok" and check["detail"].startswith("runsc with runsc: " if shutil.which("runsc") else "native: "), check
    check = doctor(SANDBOX_RUNTIME="runsc")
    assert (check["state"], "not installed" in check["detail"]) == (("ok", False) if shutil.which("runsc") else ("missing", True)), check


@pytest.mark.parametrize("name", ["native", "runc", "runsc"])
def test_sessions_of_a_named_runtime(tmp_path, name):
    if name != "native" and not shutil.which(name):
        pytest.skip(f"{name} is not installed: tools/deps runtimes")
    d = native(tmp_path, env={"SANDBOX_RUNTIME": name})
    try:
        assert "SANDBOX_RUNTIME names it" in d.log()
        s = Sandbox(d.port, d.token)
        made = s.CreateSession(session_id="by-name").session
        assert d.ok("GET", f"/holt/v1/sandboxes/{made.sandbox_id}")["runtime"] == name
        r = s.Exec(session_id="by-name", command="echo $((6 * 7)) > /workspace/f && cat /workspace/f")
        assert (r.exit_code, r.stdout) == (0, "42\n")
        assert s.DestroySession(session_id="by-name").success
        s.close()
    finally:
        assert d.stop() == 0


@pytest.mark.parametrize("works", [True, False])
def test_sessions_of_no_named_runtime_get_gvisor_where_it_works(tmp_path, works):
    if not shutil.which("runsc"):
        pytest.skip("runsc is not installed: tools/deps runtimes")
    env = {"SANDBOX_RUNTIME": ""}
    if not works:
        place = tempfile.TemporaryDirectory(dir="/var/tmp", prefix="holt-test.")  # /tmp is another where sandboxes are made
        os.chmod(place.name, 0o755)
        env["PATH"] = f"{place.name}:{os.environ['PATH']}"
        with open(f"{place.name}/runsc", "w", encoding="ascii") as f:
            f.write("#!/bin/sh\necho this host is too small >&2\nexit 1\n")
        os.chmod(f"{place.name}/runsc", 0o755)
    d = native(tmp_path / "d", env=env)
    try:
        s = Sandbox(d.port, d.token)
        for name in ("first", "second"):
            made = s.CreateSession(session_id=name).session
            assert d.ok("GET", f"/holt/v1/sandboxes/{made.sandbox_id}")["runtime"] == ("runsc" if works else "native")
        s.close()
        said = [line for line in d.log().splitlines() if "agentbox's sessions" in line]
        assert len(said) == 2 and "SANDBOX_RUNTIME is unset" in said[0], said
        assert ("gVisor works here" if works else "runsc failed: this host is too small") in said[1], said
    finally:
        d.clear()
        assert d.stop() == 0
        if not works:
            place.cleanup()


def test_settings_that_cannot_work_stop_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    for i, (name, value, why) in enumerate((
            ("STORAGE_PATH", str(tmp_path / "file"), "Not a directory"), ("STORAGE_PATH", str(tmp_path / "file/x"), "Not a directory"),
            ("PROXY_HOST", "bad host", "neither an address nor a host name"), ("PROXY_HOST", "0x7f.1", "neither an address nor a host name"),
            ("PROXY_PORT", "0", "from 1 to 65535"), ("GRPC_PORT", "x", "from 1 to 65535"), ("SESSION_TIMEOUT", "-1", "must be a duration"))):
        bad = Holtd(tmp_path / str(i), env={name: value}, ready=False)
        assert bad.process.wait(10) != 0, (name, value)
        assert why in bad.log() + bad.text, (name, value)


def test_pip_install_checks(box, session):
    def pip(session_id, *packages):
        r = box.PipInstall(session_id=session_id, packages=packages)
        return r.exit_code, r.stderr
    assert pip("none", "six") == (-1, "Session not found")
    box.CreateSession(session_id="closed", allowed_hosts=DEFAULT_HOSTS[:1])
    assert pip("closed", "six") == (-1, f"pip install requires {DEFAULT_HOSTS[0]} and {DEFAULT_HOSTS[1]} in allowed_hosts")
    box.DestroySession(session_id="closed")
    for bad in ("six; id", "-r x", "git+https://x", "a b", "", "six\n", "a[", "a[]", "a==", "$(id)", "a'b", "../x", "a@b"):
        assert pip(session, "six", bad) == (-1, f"Invalid package specifier: {bad}"), bad
    code, said = pip(session)
    assert code == 1 and "at least one requirement" in said, "pip's own words: nothing else stops it before"


@pytest.mark.not_on("runsc", "gVisor of before 2023 refuses statx(AT_NO_AUTOMOUNT), and so ls and stat of coreutils 9 on a name")
def test_pip_installs_below_workspace(box, session, tmp_path):
    """Although the distribution may call its Python externally managed: the root is read-only."""
    python_index(tmp_path)
    wheel = next(tmp_path.glob("*.whl"))
    assert box.WriteFile(session_id=session, path=wheel.name, data=wheel.read_bytes()).success
    code, out, err, _ = run(box, session, f"pip install --user --no-index ./{wheel.name} && python3 -m otter", timeout=100)
    assert code == 0 and "an otter" in out, (out, err)
    assert run(box, session, "ls -d .local/lib/python3*/site-packages/otter*")[0] == 0


def test_unknown_method_and_no_token(box, holtd):
    call = box.channel.unary_unary("/sandbox.v1.SandboxService/Nothing", lambda m: m, lambda m: m)
    with pytest.raises(grpc.RpcError) as e:
        call(b"", timeout=60, metadata=box.metadata)
    assert (e.value.code(), e.value.details()) == (grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
    for token, code in ((None, grpc.StatusCode.UNAUTHENTICATED), ("holt_wrong", grpc.StatusCode.UNAUTHENTICATED),
                        (holtd.new_token("looker", "observer")["token"], grpc.StatusCode.PERMISSION_DENIED)):
        other = Sandbox(holtd.port, token)
        with pytest.raises(grpc.RpcError) as e:
            other.CreateSession()
        assert e.value.code() == code
        other.close()


def connect(holtd, method, body, kind="application/json", token=True, **more):
    r = urllib.request.Request(f"{holtd.url}/sandbox.v1.SandboxService/{method}", body, {"Content-Type": kind, **more})
    if token:
        r.add_header("Authorization", f"Bearer {holtd.token}")
    try:
        with urllib.request.urlopen(r, timeout=60) as f:
            return f.status, f.read(), f.headers["Content-Type"]
    except urllib.error.HTTPError as e:
        with e:
            return e.code, e.read(), e.headers["Content-Type"]


def test_connect_unary(holtd, session):
    status, body, kind = connect(holtd, "Exec", json.dumps({"sessionId": session, "command": "echo hi; exit 2"}).encode())
    assert (status, kind) == (200, "application/json") and json.loads(body) == {"exitCode": 2, "stdout": "hi\n"}
    status, body, _ = connect(holtd, "GetSession", b'{"session_id": "none"}')
    assert status == 404 and json.loads(body) == {"code": "not_found", "message": "Session not found"}
    status, body, kind = connect(holtd, "ListSessions", b"", "application/proto")
    assert (status, kind) == (200, "application/proto") and b"main" in body
    assert connect(holtd, "Exec", b"{", "application/json")[0] == 400
    assert connect(holtd, "Exec", b'{"nosuch": 1}', "application/json")[0] == 400
    assert connect(holtd, "Exec", b"x", "text/plain")[0] == 415
    assert connect(holtd, "ExecStream", b"{}")[0] == 501
    packed = gzip.compress(json.dumps({"sessionId": session, "command": "echo packed"}).encode())
    assert json.loads(connect(holtd, "Exec", packed, **{"Content-Encoding": "gzip"})[1]) == {"stdout": "packed\n"}
    assert connect(holtd, "Exec", packed[:-9], **{"Content-Encoding": "gzip"})[0] == 400
    assert connect(holtd, "Exec", gzip.compress(b" " * (20 << 20)), **{"Content-Encoding": "gzip"})[0] == 413
    assert json.loads(connect(holtd, "Exec", packed, **{"Content-Encoding": "br"})[1])["code"] == "unimplemented"
    assert connect(holtd, "Exec", b"{}", token=False)[0] == 401


def test_connect_deadline(box, holtd, session):
    began = time.monotonic()
    slow = json.dumps({"sessionId": session, "command": "exec sleep 73"}).encode()
    status, body, _ = connect(holtd, "Exec", slow, **{"Connect-Timeout-Ms": "400"})
    assert (status, json.loads(body)["code"]) == (504, "deadline_exceeded") and time.monotonic() - began < 60
    wait_for(lambda: run(box, session, "pgrep -x sleep")[0] == 1)
    for bad in ("x", "-1", "1" * 11, ""):
        assert connect(holtd, "ListSessions", b"{}", **{"Connect-Timeout-Ms": bad})[0] == 400, bad
    assert connect(holtd, "ListSessions", b"{}", **{"Connect-Timeout-Ms": "9999999999"})[0] == 200


def test_grpc_port_is_like_the_seed_s_own(tmp_path):
    """With --seed-ports its clients come without a token, as they do on 50051; else they need one."""
    ports = free_ports(2)
    for args, works in ((("--seed-ports",), True), ((), False)):
        d = Holtd(tmp_path / str(works), *args, env={"LISTEN_ADDR": f"127.0.0.1:{ports[1]}", "GRPC_PORT": str(ports[0])}, port=None)
        s = Sandbox(ports[0])
        try:
            assert not s.ListSessions().sessions and works
        except grpc.RpcError as e:
            assert e.code() == grpc.StatusCode.UNAUTHENTICATED and not works
        finally:
            s.close()
            assert d.stop() == 0


def test_sessions_outlive_holtd(tmp_path):
    d = native(tmp_path / "first")
    s = Sandbox(d.port, d.token)
    first = s.CreateSession(session_id="kept", tenant_id="t", allowed_hosts=["h.example"]).session
    assert run(s, "kept", "echo x > /workspace/f")[0] == 0
    s.close()
    d.process.kill()
    d.process.wait()
    d = native(tmp_path / "first")
    s = Sandbox(d.port, d.token)
    wait_for(lambda: run(s, "kept", "cat /workspace/f")[1] == "x\n")
    again = s.GetSession(session_id="kept").session
    assert (again.container_id, again.tenant_id, list(again.allowed_hosts)) == (first.container_id, "t", ["h.example"])
    assert s.DestroySession(session_id="kept").success
    s.close()
    assert d.stop() == 0


def held_by(d, box):
    """A command of this sandbox that has filled its log and waits for its reader: its path."""
    def stands():
        [x] = [x for x in d.ok("GET", f"/holt/v1/sandboxes/{box}/execs")["execs"] if not x["ended_at"]]
        return x["id"] if x["stdout_bytes"] > 65536 else None
    return f"/holt/v1/sandboxes/{box}/execs/{wait_for(stands, 20)}"


def goes_on_unread(d, path):
    """To its end, without anybody who reads: the oldest went, and that is said."""
    record = wait_for(lambda: (lambda x: x if x["ended_at"] else None)(d.ok("GET", path)), 40)
    assert (record["state"], record["exit_code"], record["stdout_bytes"]) == ("exited", 3, 22888896), record
    text = d.ok("GET", f"{path.rsplit('/execs', 1)[0]}/logs?exec={record['id']}")
    assert "of stdout are no longer kept" in text[:100] and text.endswith("2999999\n3000000\n")
    types = [e["type"] for e in d.ok("GET", "/holt/v1/events?limit=1000")["events"] if e["object"] == f"exec/{record['id']}"]
    assert types == ["exec.started", "exec.unread", "exec.exited"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_streamed_command_outlives_its_reader(tmp_path, how):
    """Its client went with holtd: nobody can take the stream up again, and the command must not wait for ever."""
    more = {"config": "output_bytes: 64k\n"}
    d = native(tmp_path / "d", **more)
    s = Sandbox(d.port, d.token)
    box = s.CreateSession(session_id="s").session.sandbox_id
    call = s.ExecStream(session_id="s", command="seq 1 3000000; exit 3")
    assert next(iter(call)).type == "stdout"
    path = held_by(d, box)
    d.process.kill() if how == "killed" else d.process.terminate()
    d.process.wait(20)
    s.close()
    d = native(tmp_path / "d", **more)
    try:
        goes_on_unread(d, path)
    finally:
        d.request("DELETE", f"/holt/v1/sandboxes/{box}")
        assert d.stop() == 0


@pytest.mark.slow
def test_a_run_outlives_its_reader(tmp_path):
    """Its client went with holtd: it ends though nobody reads what it writes, and its sandbox goes."""
    d = native(tmp_path)
    ws = ws_connect(f"ws://127.0.0.1:{d.port}/holt/v1/run", subprotocols=["holt.attach.v1"], proxy=None, max_queue=1,
                 additional_headers={"Authorization": f"Bearer {d.token}"})
    ws.send(json.dumps({"command": "seq 1 3000000; exit 3", "output_bytes": 131072}))
    x = json.loads(ws.recv())["exec"]
    path = f"/holt/v1/sandboxes/{x['sandbox']}/execs/{x['id']}"
    wait_for(lambda: d.ok("GET", path)["stdout_bytes"] > 131072)
    d.process.kill()
    d.process.wait()
    ws.close()
    d = native(tmp_path)
    try:
        assert not d.ok("GET", path)["ended_at"], "it waits, for a moment"
        wait_for(lambda: not d.ok("GET", "/holt/v1/sandboxes")["sandboxes"], 40)
        [end] = [e for e in d.ok("GET", "/holt/v1/events?limit=1000")["events"] if e["type"] == "exec.exited"]
        assert (end["data"]["exit_code"], end["data"]["stdout_bytes"]) == (3, 22888896), end
    finally:
        assert d.stop() == 0


@pytest.mark.not_on("runsc", "gVisor of before 2023 refuses statx(AT_NO_AUTOMOUNT), and so ls and stat of coreutils 9 on a name")
def test_tenant_storage(tmp_path):
    """Shared by a tenant's sessions, kept after them, found on the host below STORAGE_PATH; other tenants see nothing of it."""
    d = native(tmp_path / "d", env={"STORAGE_PATH": f"{tmp_path}/data/tenants"})
    s = Sandbox(d.port, d.token)
    try:
        for name, tenant in (("a1", "alpha"), ("a2", "alpha"), ("b1", "beta"), ("n", "")):
            s.CreateSession(session_id=name, tenant_id=tenant)
        assert run(s, "a1", "echo one > /workspace/f; echo two > /mnt/user-data/outputs/g; id -u; stat -c %u /workspace")[1] == "0\n0\n"
        assert run(s, "a2", "cat f /mnt/user-data/outputs/g; echo more >> f")[1] == "one\ntwo\n"
        for other in ("b1", "n"):
            assert run(s, other, "ls /workspace /mnt/user-data/outputs | grep -c '[fg]$'")[1] == "0\n"
        for name in ("a1", "a2"):
            assert s.DestroySession(session_id=name).success
        assert (tmp_path / "data/tenants/alpha/workspace/f").read_text() == "one\nmore\n"
        s.CreateSession(session_id="a3", tenant_id="alpha")
        assert s.ReadFile(session_id="a3", path="f").content == "one\nmore\n"
        assert run(s, "a3", "echo x > /etc/x; echo x > /mnt/x")[0] != 0
    finally:
        for session in s.ListSessions().sessions:
            s.DestroySession(session_id=session.session_id)
        s.close()
        d.stop()


def test_storage_that_belongs_to_root_is_refused_with_the_remedy(tmp_path):
    """A session was made, its /workspace could not be written to, and nothing said so."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to have files of root")
    old = tmp_path / "data/tenants/alpha/workspace"
    old.mkdir(parents=True)
    (old / "f").write_text("old\n")
    d = native(tmp_path / "d", env={"STORAGE_PATH": f"{tmp_path}/data/tenants"})
    s = Sandbox(d.port, d.token)
    try:
        with pytest.raises(grpc.RpcError) as e:
            s.CreateSession(session_id="a1", tenant_id="alpha")
        assert "belongs to root of the host" in e.value.details() and f"chown -R {os.stat(d.state).st_uid}:" in e.value.details()
        assert not s.ListSessions().sessions
        subprocess.run(["chown", "-R", "1000000:1000000", str(old)], check=True)
        s.CreateSession(session_id="a1", tenant_id="alpha")
        assert run(s, "a1", "cat f; echo new > f; cat f")[1] == "old\nnew\n"
    finally:
        for session in s.ListSessions().sessions:
            s.DestroySession(session_id=session.session_id)
        s.close()
        d.stop()


def test_seed_port_and_timeout(tmp_path):
    """As the original's clients find it: GRPC_PORT, no token; idle sessions end, busy ones do not."""
    port = free_ports()[0]
    d = Holtd(tmp_path / "s", "--seed-ports", "--runtime", "native", env={"GRPC_PORT": str(port), "SESSION_TIMEOUT": "2"})
    s = Sandbox(50051)
    try:
        s.CreateSession(session_id="idle")
        s.CreateSession(session_id="busy")
        assert s.Exec(session_id="busy", command="sleep 5; echo done", timeout=60).stdout == "done\n"
        assert [x.session_id for x in s.ListSessions().sessions] == ["busy"]
        wait_for(lambda: not s.ListSessions().sessions)
    finally:
        s.close()
        d.stop()


def test_connectrpc_over_every_transport(holtd, node, tmp_path):
    subprocess.run(["protoc", "-I", f"{ROOT}/api", f"--descriptor_set_out={tmp_path}/set", "sandbox/v1/sandbox.proto"],
                   check=True, cwd=f"{ROOT}/api")
    out = node("agentbox.mjs", holtd.url, holtd.token, f"{tmp_path}/set")
    assert out.count(": ok\n") == 6, out


def check_example(lines, first):
    """Output may come in one event or in several."""
    assert (lines[0], lines[-1]) == (first, "exit 0") and lines[1].startswith("stdout "), lines
    assert "".join(lines[1:-1]).replace("stdout", "").split() == ["1", "2", "3"] or "".join(lines[1:-1]).replace("stdout ", "") == "123", lines


def test_example_in_python(holtd):
    r = subprocess.run([f"{ROOT}/.venv/bin/python", f"{ROOT}/examples/agentbox/python_client.py"], capture_output=True, text=True, timeout=60,
                       env=environment({"PYTHONPATH": f"{ROOT}/examples/agentbox/gen", "PYTHONDONTWRITEBYTECODE": "1", "HOLT_TOKEN": holtd.token,
                                        "HOLT_GRPC": f"127.0.0.1:{holtd.port}"}), check=False)
    assert r.returncode == 0, r.stderr
    check_example(r.stdout.splitlines(), "exit 0: hello from /workspace/hello.py")


def test_example_in_typescript(holtd, tmp_path):
    """It is type-checked, then run as it stands."""
    modules = f"{ROOT}/tests/integration/node/node_modules"
    if not os.path.exists(f"{modules}/.bin/tsc"):
        pytest.skip("node packages are not installed: make deps")
    shutil.copytree(f"{ROOT}/examples/agentbox", tmp_path / "example", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    os.symlink(modules, tmp_path / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    r = subprocess.run(["node", f"{modules}/.bin/tsc", "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext",
                        "--skipLibCheck", "--types", "node", "--outDir", "out", "example/client.ts"],
                       cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert r.returncode == 0, r.stdout
    r = subprocess.run(["node", "out/client.js"], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                       env=environment({"HOLT_URL": holtd.url, "HOLT_TOKEN": holtd.token}), check=False)
    assert r.returncode == 0, r.stderr
    check_example(r.stdout.splitlines(), "hello")


def test_reflection(box):
    """By grpcio-reflection's client, as grpcurl and others do it."""
    db = ProtoReflectionDescriptorDatabase(box.channel)
    assert set(db.get_services()) >= {"sandbox.v1.SandboxService", "grpc.health.v1.Health"}
    pool = descriptor_pool.DescriptorPool(db)
    service = pool.FindServiceByName("sandbox.v1.SandboxService")
    assert [m.name for m in service.methods] == [m.name for m in DESCRIPTOR.methods]
    assert pool.FindMessageTypeByName("sandbox.v1.ExecRequest.EnvEntry").file.name == "sandbox/v1/sandbox.proto"
    for missing in ("sandbox.v1.Nothing", "sandbox.v1.Exec", "sandbox", ""):
        with pytest.raises(KeyError):
            db.FindFileContainingSymbol(missing)
    with pytest.raises(KeyError):
        db.FindFileByName("none.proto")
