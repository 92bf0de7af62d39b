"""SSH into sandboxes: stock ssh, scp, sftp, rsync, Ansible and an editor's way, with certificates of minutes."""
import contextlib
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

import pytest

import archives

from daemon import BUILD, environment, free_ports, native, wait_for
from ssh_client import API, SSHD, Client

RUNTIMES = ("native", "runc", "runsc")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

pytestmark = [pytest.mark.skipif(not SSHD, reason="no sshd: tools/deps test"), pytest.mark.skipif(os.geteuid() != 0, reason="sshd inside needs several users")]


@contextlib.contextmanager
def daemon(directory, runtime="native", **more):
    d = native(directory, "--runtime", runtime, **more)
    try:
        yield d
    finally:
        d.clear()
        d.stop()


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    with daemon(tmp_path_factory.mktemp("ssh")) as d:
        yield d


@pytest.fixture
def client(holtd, tmp_path, request):
    box = holtd.ok("POST", f"{API}/sandboxes", {"name": f"box-{abs(hash(request.node.name)) % 10**8}"})["id"]
    return Client(holtd, tmp_path / "client", box)


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def copy_both_ways(c, tmp_path):
    """8 MiB by scp, sftp and rsync, there and back: the same bytes."""
    (tmp_path / "big").write_bytes(os.urandom(8 << 20))
    port, at = str(c.at["port"]), "root@127.0.0.1"
    said = c.run("scp", *c.options, "-P", port, f"{tmp_path}/big", f"{at}:/root/by-scp")
    assert said.returncode == 0, said.stderr
    said = c.run("sftp", *c.options, "-b", "-", "-P", port, at, input=f"get /root/by-scp {tmp_path}/by-sftp\n")
    assert said.returncode == 0, said.stderr
    assert digest(tmp_path / "by-sftp") == digest(tmp_path / "big")
    if shutil.which("rsync"):
        shell = " ".join(["ssh", *c.options, "-p", port])
        (tmp_path / "tree").mkdir()
        shutil.copy(tmp_path / "big", tmp_path / "tree/a")
        said = c.run("rsync", "-a", "-e", shell, f"{tmp_path}/tree/", f"{at}:/root/tree/")
        assert said.returncode == 0, said.stderr
        said = c.run("rsync", "-a", "-e", shell, f"{at}:/root/tree/", f"{tmp_path}/back/")
        assert said.returncode == 0 and digest(tmp_path / "back/a") == digest(tmp_path / "big"), said.stderr


def ansible_ping(c, tmp_path):
    if not shutil.which("ansible"):
        pytest.skip("no ansible: tools/deps test")
    (tmp_path / "hosts").write_text(f"box ansible_host=127.0.0.1 ansible_port={c.at['port']} ansible_user=root ansible_python_interpreter=/usr/bin/python3\n")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", "ANSIBLE_LOCAL_TEMP": f"{tmp_path}/ansible",
           "ANSIBLE_SSH_ARGS": " ".join(c.options)}
    said = c.run("ansible", "-i", f"{tmp_path}/hosts", "box", "-m", "ping", env=env)
    assert said.returncode == 0 and '"pong"' in said.stdout, said.stdout + said.stderr


@pytest.mark.slow
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_stock_clients_work_on_every_runtime(tmp_path, runtime):
    if runtime != "native" and not shutil.which(runtime, path=PATH):
        pytest.skip(f"{runtime} is not installed: tools/deps runtimes")
    with daemon(tmp_path / "d", runtime) as d:
        box = d.ok("POST", f"{API}/sandboxes", {"name": "box", "env": {"COLOUR": 'dark "blue" \\ # x'}})["id"]
        c = Client(d, tmp_path / "client", "box")
        said = c.ssh("id -un; echo $COLOUR; exit 7")
        assert (said.returncode, said.stdout) == (7, 'root\ndark "blue" \\ # x\n'), said.stderr
        said = c.ssh("tty && stty size", more=["-tt"])
        assert said.returncode == 0 and "/dev/pts/" in said.stdout, said.stdout + said.stderr
        copy_both_ways(c, tmp_path)
        ansible_ping(c, tmp_path)
        wait_for(lambda: not c.sessions(state="active"))
        seen = c.sessions()
        assert len(seen) >= 5 and all((s["state"], s["sandbox"], s["serial"], s["user"]) == ("ended", box, c.certificate["serial"], "root") for s in seen), seen
        assert max(s["bytes_in"] for s in seen) > 8 << 20 and max(s["bytes_out"] for s in seen) > 8 << 20
        wait_for(lambda: d.ok("POST", f"{API}/sandboxes/box/execs", {"command": ["ls", "/run/holt-ssh"]})["stdout"] == "")  # nothing stays
        assert c.ssh("true", user="nobody").returncode != 0, "an account that cannot log in"
        d.ok("POST", f"{API}/sandboxes/box/execs", {"command": ["sh", "-c", "echo ann:x:1000:1000::/tmp:/bin/sh >> /etc/passwd"]})
        assert c.ssh("id -un; id -u; touch /etc/x", user="ann").stdout == "ann\n1000\n", "any user of the image"


def test_only_a_valid_certificate_of_this_sandbox_opens_it(holtd, client, tmp_path):
    assert client.ssh("echo in").stdout == "in\n"
    other = holtd.ok("POST", f"{API}/sandboxes", {})["id"]
    client.renew(sandbox=other)
    assert client.ssh("true").returncode == 255, "another sandbox's"
    os.unlink(f"{client.key}-cert.pub")
    assert client.ssh("true").returncode == 255, "the key alone"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{tmp_path}/ca"], check=True)
    subprocess.run(["ssh-keygen", "-q", "-s", f"{tmp_path}/ca", "-I", "x", "-n", f"{client.box},root", f"{client.key}.pub"], check=True)
    assert client.ssh("true").returncode == 255, "another authority's"
    wait_for(lambda: len(client.sessions(sandbox=client.box, state="refused")) == 3)
    refused = client.sessions(sandbox=client.box, state="refused")
    assert all(s["certificate"] is None and s["ended_at"] for s in refused)
    types = [e["type"] for e in holtd.ok("GET", f"{API}/events?object=sandbox/{client.box}")["events"]]
    assert "ssh.started" in types and "ssh.ended" in types and "ssh.refused" in types
    client.renew()
    assert client.ssh("true").returncode == 0


def test_the_host_key_is_the_sandboxs_own(holtd, client, tmp_path):
    other = Client(holtd, tmp_path / "other", holtd.ok("POST", f"{API}/sandboxes", {})["id"])
    assert other.at["host_key"] != client.at["host_key"] and other.at["port"] != client.at["port"]
    with open(f"{client.dir}/known", "w", encoding="ascii") as f:
        f.write(f"[127.0.0.1]:{client.at['port']} {other.at['host_key']}\n")
    assert client.ssh("true").returncode == 255, "strictly checked"
    look = {"command": ["grep", "-rl", "PRIVATE KEY", "/etc", "/run", "/root", "/tmp"]}
    wait_for(lambda: holtd.ok("POST", f"{API}/sandboxes/{client.box}/execs", look)["stdout"] == "")  # no key lies about between connections


def ends_within_a_second(client, end):
    with client.open("echo started; sleep 600 & wait") as p:
        assert p.stdout.readline() == "started\n"
        wait_for(lambda: client.sessions(sandbox=client.box, state="active"))
        began = time.monotonic()
        end()
        p.wait(timeout=10)
        took = time.monotonic() - began
    assert took < 1, took
    return client.sessions(sandbox=client.box)[-1]


def test_a_revoked_certificate_ends_its_session_within_a_second(holtd, client):
    last = ends_within_a_second(client, lambda: holtd.ok("DELETE", f"{API}/access/certificates/{client.certificate['id']}"))
    assert (last["state"], last["reason"]) == ("ended", "the certificate is revoked")
    assert client.ssh("true").returncode == 255, "and is refused at once"
    ps = holtd.ok("POST", f"{API}/sandboxes/{client.box}/execs", {"command": ["sh", "-c", "grep -l sleep /proc/[0-9]*/comm | wc -l"]})
    assert ps["stdout"].strip() == "0", "what it had started is gone, too"
    client.renew()
    assert client.ssh("true").returncode == 0, "only that one"


def test_a_session_ends_with_its_token_and_its_sandbox(holtd, client):
    token = holtd.new_token("leaver")
    client.renew(token=token["token"])
    last = ends_within_a_second(client, lambda: holtd.ok("DELETE", f"{API}/tokens/{token['id']}"))
    assert last["reason"] == "the token is revoked or expired" and last["holder"] == f"token/{token['id']}"
    client.renew()
    ends_within_a_second(client, lambda: holtd.ok("DELETE", f"{API}/sandboxes/{client.box}"))
    wait_for(lambda: not is_open(client.at["port"]))


def is_open(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def test_a_session_of_a_revoked_agent_ends(holtd, client):
    holtd.ok("POST", f"{API}/agents", {"name": "ssh-agent"})
    agent = holtd.ok("POST", f"{API}/tokens", {"name": "ssh-agent", "role": "agent", "agent": "ssh-agent"})["token"]
    status, own, _ = holtd.request("POST", f"{API}/sandboxes", {"name": "agents-own"}, token=agent)
    assert status == 201
    assert holtd.request("POST", f"{API}/sandboxes/{client.box}/ssh", {}, token=agent)[0] in (403, 404), "not others'"
    c = Client(holtd, client.dir / "agent", own["id"], token=agent)
    last = ends_within_a_second(c, lambda: holtd.ok("POST", f"{API}/agents/ssh-agent/revoke", {}))
    assert last["reason"] == "the agent is revoked"
    assert c.ssh("true").returncode == 255


@pytest.mark.slow
def test_a_certificate_expires(holtd, client):
    """The shortest there is.  A session that it opened goes on; a new one is refused."""
    client.renew(ttl_ms=60000)
    with client.open("cat") as p:
        p.stdin.write("before\n")
        p.stdin.flush()
        assert p.stdout.readline() == "before\n"
        wait_for(lambda: client.ssh("true").returncode == 255, 80)
        wait_for(lambda: holtd.ok("GET", f"{API}/access/certificates/{client.certificate['id']}")["state"] == "expired")
        p.stdin.write("after\n")
        p.stdin.flush()
        assert p.stdout.readline() == "after\n"
        holtd.ok("DELETE", f"{API}/access/certificates/{client.certificate['id']}")  # also one that has expired
        p.wait(timeout=10)


def test_forwarding_needs_a_certificate_that_says_so(holtd, client, tmp_path):
    """As an editor does: a script on the standard input of a shell, which starts a server; then its port or socket."""
    script = "mkdir -p ~/.server; python3 -m http.server --bind 127.0.0.1 8765 >/dev/null 2>&1 </dev/null & echo $! > ~/.server/pid; echo up\n"
    said = client.ssh("bash", more=["-T"], input=script)
    assert said.stdout == "up\n", said.stderr
    alive = holtd.ok("POST", f"{API}/sandboxes/{client.box}/execs", {"command": ["sh", "-c", "kill -0 $(cat /root/.server/pid) && echo alive"]})
    assert alive["stdout"] == "alive\n", "a server outlives the connection that started it"
    unix = "import os, socket; s = socket.socket(socket.AF_UNIX); s.bind('/root/sock'); s.listen(); c = s.accept()[0]; c.send(c.recv(9)[::-1])"
    local, plain = free_ports(2)

    def through(*forward, talk):
        with client.open(f'echo up; timeout 20 python3 -c "{unix}"', more=[*forward]) as p:
            assert p.stdout.readline() == "up\n"
            return talk()

    def web():
        with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", local), 10) as s:
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return s.recv(15)
        return b""

    assert through("-L", f"{local}:127.0.0.1:8765", talk=web) == b"", "not without"
    client.renew(forwarding=True)
    wait_for(lambda: through("-L", f"{local}:127.0.0.1:8765", talk=web) == b"HTTP/1.0 200 OK")

    def sock():
        def answer():
            with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", plain), 10) as s:
                s.sendall(b"hello")
                return s.recv(9)
            return None
        return wait_for(answer)

    client.ssh("rm -f /root/sock")
    assert through("-L", f"{plain}:/root/sock", talk=sock) == b"olleh"
    said = client.ssh("ssh-add -l", more=["-A"])
    assert said.returncode != 0 and "SSH_AUTH_SOCK" not in client.ssh("env", more=["-A"]).stdout, "agents never"


def test_port_and_records_survive_holtd(tmp_path):
    with contextlib.ExitStack() as stack:
        d = native(tmp_path)
        stack.callback(lambda: (d.clear(), d.stop()))
        box = d.ok("POST", f"{API}/sandboxes", {"name": "box"})["id"]
        c = Client(d, tmp_path / "client", box)
        with c.open("cat") as p:
            p.stdin.write("x\n")
            p.stdin.flush()
            assert p.stdout.readline() == "x\n"
            wait_for(lambda: c.sessions(state="active"))
            d.process.send_signal(signal.SIGKILL)
            d.process.wait()
            p.wait(timeout=10)
        d = c.d = native(tmp_path)
        wait_for(lambda: is_open(c.at["port"]))
        again = d.ok("POST", f"{API}/sandboxes/box/ssh", {})
        assert again == c.at, "port and host key stay"
        [cut] = c.sessions(certificate=c.certificate['id'])
        assert (cut["state"], cut["reason"], cut["user"]) == ("ended", "holtd was restarted", "root") and cut["ended_at"]
        assert c.ssh("echo in").stdout == "in\n"
        wait_for(lambda: "sshd" not in d.ok("POST", f"{API}/sandboxes/box/execs", {"command": ["sh", "-c", "cat /proc/[0-9]*/comm"]})["stdout"])
        d.ok("DELETE", f"{API}/sandboxes/box/ssh")
        assert not is_open(c.at["port"])


def test_ports_are_those_of_the_setting(tmp_path):
    first = free_ports()[0]
    with daemon(tmp_path, env={"HOLT_SSH_PORTS": f"{first}-{first}"}) as d:
        for name in ("a", "b"):
            d.ok("POST", f"{API}/sandboxes", {"name": name})
        assert d.ok("POST", f"{API}/sandboxes/a/ssh", {})["port"] == first
        status, reply, _ = d.request("POST", f"{API}/sandboxes/b/ssh", {})
        assert status == 429 and "ssh_ports" in reply["error"]["hint"]
        d.ok("DELETE", f"{API}/sandboxes/a/ssh")
        assert d.ok("POST", f"{API}/sandboxes/b/ssh", {})["port"] == first


def busybox_image(d, name, *more):
    """An image of another libc than the host's: one static program under many names."""
    if not os.path.exists("/bin/busybox"):
        pytest.skip("no static busybox: tools/deps test")
    with open("/bin/busybox", "rb") as f:
        program = f.read()
    names = [archives.symlink(f"bin/{n}", "busybox") for n in ("sh", "cat", "echo", "id", "sleep", "ls", "mkdir", "env", "printf")]
    image = archives.tar(archives.folder("bin"), archives.member("bin/busybox", program, mode=0o755), *names, archives.folder("etc"), archives.folder("tmp", 0o1777),
                         archives.folder("root", 0o700), archives.folder("usr"), archives.folder("usr/sbin"), archives.folder("home"),
                         archives.member("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000:ann:/home:/bin/sh"), *more)
    req = urllib.request.Request(f"{d.url}{API}/images/import?name={name}", image, {"Authorization": f"Bearer {d.token}"}, method="POST")
    with urllib.request.urlopen(req) as r:
        assert r.status == 201


CLAIM = b"""#!/bin/sh
echo "Accepted publickey for root from x port 1 ssh2: ED25519-CERT SHA256:x ID x (serial $(cat /serial)) CA x" >&2
echo "SSH-2.0-fake"; exec sleep 60
"""


def test_a_hostile_sandbox_gains_nothing(holtd, tmp_path):
    """Its sshd is a program of its own, which claims what it likes: nothing but a certificate of this sandbox is recorded."""
    busybox_image(holtd, "liar", archives.member("usr/sbin/sshd", CLAIM, mode=0o755))
    box = holtd.ok("POST", f"{API}/sandboxes", {"image": "liar"})["id"]
    other = holtd.ok("POST", f"{API}/sandboxes", {})["id"]
    client, theirs = Client(holtd, tmp_path / "mine", box), Client(holtd, tmp_path / "theirs", other)
    for serial in (theirs.certificate["serial"], 1, -1, "x" * 5000, 2**70, ""):
        holtd.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": ["sh", "-c", f"echo '{serial}' > /serial"]})
        with socket.create_connection(("127.0.0.1", client.at["port"]), 20) as s:
            with contextlib.suppress(ConnectionError):
                while s.recv(100):
                    pass
        last = wait_for(lambda: client.sessions(sandbox=box, state="refused"))[-1]
        assert "not a valid one" in last["reason"] and last["certificate"] is None, (serial, last)
    assert all(s["state"] == "refused" for s in client.sessions(sandbox=box)) and not client.sessions(sandbox=other)
    holtd.assert_alive()


@pytest.mark.parametrize("trap", ["mkdir -m 777 /run/holt-ssh", "ln -s /etc /run/holt-ssh", "rm -f /etc/passwd; mkfifo /etc/passwd", "echo x > /run/sshd"])
def test_files_that_lie_in_wait_are_refused(holtd, client, trap):
    holtd.ok("POST", f"{API}/sandboxes/{client.box}/execs", {"command": ["sh", "-c", trap]})
    assert client.ssh("true").returncode == 255
    assert wait_for(lambda: client.sessions(sandbox=client.box, state="refused"))[-1]["reason"]
    holtd.assert_alive()


def test_a_policy_holds_for_ssh(holtd, tmp_path):
    holtd.ok("POST", f"{API}/policies", {"name": "no-shell", "commands_deny": ["sh"]})
    box = holtd.ok("POST", f"{API}/sandboxes", {"policy": "no-shell"})["id"]
    c = Client(holtd, tmp_path / "client", box)
    assert c.ssh("true").returncode == 255
    assert "no-shell" in wait_for(lambda: c.sessions(sandbox=box))[-1]["reason"]


def test_connections_are_bounded(holtd, client):
    held = [socket.create_connection(("127.0.0.1", client.at["port"]), 10) for _ in range(80)]
    try:
        greeted = 0
        for s in held:
            s.settimeout(20)
            with contextlib.suppress(ConnectionError):
                greeted += s.recv(4) == b"SSH-"
        assert greeted == 64
    finally:
        for s in held:
            s.close()
    wait_for(lambda: client.ssh("true").returncode == 0)


@pytest.fixture
def holt(holtd, tmp_path):
    env = environment({"HOME": str(tmp_path), "HOLT_STATE": f"{tmp_path}/none", "HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token})

    def run(*args, status=0, **more):
        r = subprocess.run([f"{BUILD}/holt", *args], **{"capture_output": True, "text": True, "timeout": 60, "env": env, "cwd": tmp_path, **more})
        assert r.returncode == status, f"{args}: {r.returncode}\n{r.stdout}{r.stderr}"
        return r
    run.env = env
    return run


def test_holt_ssh_is_one_step(holtd, holt, tmp_path):
    holtd.ok("POST", f"{API}/sandboxes", {"name": "one-step"})
    assert holt("ssh", "one-step", "--", "echo $HOME; exit 5", status=5).stdout == "/root\n"
    assert holt("ssh", "one-step", "cat", input="through\n").stdout == "through\n"
    assert "not available" in holt("ssh", "-l", "nobody", "one-step", "true", status=1, stdin=subprocess.DEVNULL).stdout, "its shell is nologin"
    left = [os.path.join(top, n) for top, _, names in os.walk(tmp_path) for n in names]
    assert not left, "no key, certificate or file of known hosts is on the disk"
    assert "no sandbox" in holt("ssh", "nobody-here", status=255).stderr
    table = holt("access", "sessions").stdout
    assert "root" in table and "ended" in table


def test_holt_ssh_keeps_its_key_in_memory(holtd, holt, tmp_path):
    """While it runs, key and certificate are files without a name, readable by their owner alone."""
    holtd.ok("POST", f"{API}/sandboxes", {"name": "in-memory"})
    p = subprocess.Popen([f"{BUILD}/holt", "ssh", "in-memory", "echo up; cat"], env=holt.env, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "up\n"
        kept = [os.stat(f"/proc/{p.pid}/fd/{n}") for n in os.listdir(f"/proc/{p.pid}/fd") if "memfd:holt-ssh" in os.readlink(f"/proc/{p.pid}/fd/{n}")]
        assert len(kept) == 3 and all(st.st_mode & 0o777 == 0o600 and st.st_nlink == 0 for st in kept)
        assert not any(names for _, _, names in os.walk(tmp_path))
        p.stdin.close()
        assert p.wait(timeout=20) == 0
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


def test_a_sandbox_without_sshd_says_so(holtd, holt, tmp_path):
    busybox_image(holtd, "bare")
    holtd.ok("POST", f"{API}/sandboxes", {"image": "bare", "name": "bare-box"})
    said = holt("ssh", "bare-box", "true", status=255, stdin=subprocess.DEVNULL)
    assert "no sshd" in said.stderr and "openssh-server" in said.stderr


def test_an_authority_in_a_folder(holt, tmp_path):
    public = holt("access", "ca", "--dir", "ca").stdout
    assert (tmp_path / "ca/ssh-ca.pub").read_text() == public and (tmp_path / "ca/ssh-ca").stat().st_mode & 0o777 == 0o600
    shown = subprocess.run(["ssh-keygen", "-y", "-f", f"{tmp_path}/ca/ssh-ca"], capture_output=True, text=True, check=True).stdout
    assert shown.split()[:2] == public.split()[:2]
    assert "never replaced" in holt("access", "ca", "--dir", "ca", status=3).stderr
    assert (tmp_path / "ca/ssh-ca.pub").read_text() == public
