"""SSH certificates of minutes, with stock ssh, ssh-keygen and sshd as judges."""
import os
import shutil
import subprocess
import urllib.request

import pytest

from daemon import free_ports, native, wait_for

API = "/holt/v1"
CERTIFICATES = f"{API}/access/certificates"

pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen: make deps")


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("access"))
    yield d
    d.clear()
    d.stop()


def keygen(path, kind="ed25519"):
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "me", "-f", str(path)], check=True)
    with open(f"{path}.pub", encoding="ascii") as f:
        return f.read()


def issue(d, key, **more):
    return d.ok("POST", CERTIFICATES, {"public_key": key, **more})


def listed(path):
    return subprocess.run(["ssh-keygen", "-L", "-f", str(path)], capture_output=True, text=True, check=True).stdout


def krl(d, to):
    with urllib.request.urlopen(f"{d.url}{API}/access/krl") as r, open(to, "wb") as f:
        f.write(r.read())
    return str(to)


def is_revoked(d, tmp_path, certificate):
    (tmp_path / "asked.pub").write_text(certificate + "\n")
    r = subprocess.run(["ssh-keygen", "-Q", "-f", krl(d, tmp_path / "krl"), str(tmp_path / "asked.pub")], capture_output=True, text=True)
    assert "ok" in r.stdout or "REVOKED" in r.stdout, r.stdout + r.stderr
    return "REVOKED" in r.stdout


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_ssh_keygen_reads_a_certificate(holtd, tmp_path, kind):
    made = issue(holtd, keygen(tmp_path / "key", kind), principals=["deploy", "root"], ttl_ms=120000)
    (tmp_path / "key-cert.pub").write_text(made["certificate"] + "\n")
    text = listed(tmp_path / "key-cert.pub")
    assert "user certificate" in text and f"Serial: {made['serial']}" in text
    principals, options = text.split("Principals:")[1].split("Critical Options:")
    assert principals.split() == ["deploy", "root"]
    assert options.split("Extensions:")[1].split() == ["permit-pty"], "no forwarding of anything"
    authority = holtd.ok("GET", f"{API}/access/ca")["public_key"]
    (tmp_path / "ca.pub").write_text(authority + "\n")
    fingerprint = subprocess.run(["ssh-keygen", "-l", "-f", str(tmp_path / "ca.pub")], capture_output=True, text=True, check=True).stdout.split()[1]
    assert f"Signing CA: ED25519 {fingerprint}" in text
    own = subprocess.run(["ssh-keygen", "-l", "-f", str(tmp_path / "key.pub")], capture_output=True, text=True, check=True).stdout.split()[1]
    assert made["fingerprint"] == own and made["state"] == "active"


def test_serials_are_unique_also_after_a_restart(tmp_path):
    d = native(tmp_path)
    key, serials = keygen(tmp_path / "key"), []
    try:
        authority = d.ok("GET", f"{API}/access/ca")
        serials += [issue(d, key, principals=["x"])["serial"] for _ in range(5)]
        d.process.kill()
        d.process.wait()
        d = native(tmp_path)
        serials += [issue(d, key, principals=["x"])["serial"] for _ in range(5)]
        assert len(set(serials)) == 10 and serials == sorted(serials)
        assert d.ok("GET", f"{API}/access/ca") == authority, "the key stays"
        assert len(d.ok("GET", CERTIFICATES)["certificates"]) == 10, "and so do the rows"
        mode = os.stat(f"{d.state}/ssh-ca").st_mode & 0o777
        assert mode == 0o600
    finally:
        d.stop()


def test_an_authority_of_ones_own(tmp_path):
    native(tmp_path).stop()
    public = keygen(tmp_path / "own").split()[:2]
    with open(tmp_path / "state/ssh-ca", "wb") as f:  # its owner and mode stay
        f.write((tmp_path / "own").read_bytes())
    d = native(tmp_path)
    try:
        assert d.ok("GET", f"{API}/access/ca")["public_key"].split() == public
    finally:
        d.stop()


def test_revoked_ones_are_in_the_list_at_once(holtd, tmp_path):
    key = keygen(tmp_path / "key")
    one, other = (issue(holtd, key, principals=["x"]) for _ in range(2))
    assert not is_revoked(holtd, tmp_path, one["certificate"])
    gone = holtd.ok("DELETE", f"{CERTIFICATES}/{one['id']}?reason=laptop+lost")
    assert gone["state"] == "revoked" and gone["reason"] == "laptop lost"
    assert is_revoked(holtd, tmp_path, one["certificate"]) and not is_revoked(holtd, tmp_path, other["certificate"])
    assert holtd.request("DELETE", f"{CERTIFICATES}/{one['id']}")[0] == 409
    types = [e["type"] for e in holtd.ok("GET", f"{API}/events?object=certificate/{one['id']}")["events"]]
    assert types == ["certificate.issued", "certificate.revoked"]


def test_it_dies_with_its_token_and_its_sandbox(holtd, tmp_path):
    key = keygen(tmp_path / "key")
    box = holtd.ok("POST", f"{API}/sandboxes", {"name": "short"})["id"]
    for_box = issue(holtd, key, sandbox="short")
    assert for_box["principals"] == [box] and for_box["sandbox"] == box
    token = holtd.new_token("leaver")
    status, of_token, _ = holtd.request("POST", CERTIFICATES, {"public_key": key, "principals": ["x"]}, token=token["token"])
    assert status == 201
    assert not is_revoked(holtd, tmp_path, for_box["certificate"]) and not is_revoked(holtd, tmp_path, of_token["certificate"])
    holtd.ok("DELETE", f"{API}/sandboxes/{box}")
    holtd.ok("DELETE", f"{API}/tokens/{token['id']}")
    assert is_revoked(holtd, tmp_path, for_box["certificate"]) and is_revoked(holtd, tmp_path, of_token["certificate"])
    assert holtd.ok("GET", f"{CERTIFICATES}/{for_box['id']}")["state"] == "revoked"


def test_what_is_refused_says_why(holtd, tmp_path):
    key = keygen(tmp_path / "key")
    refused = [
        ({"public_key": "ssh-dss AAAA", "principals": ["x"]}, "public key"),
        ({"public_key": "ssh-ed25519 %%%", "principals": ["x"]}, "base64"),
        ({"public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", "principals": ["x"]}, "damaged"),
        ({"public_key": key}, "'sandbox' or 'principals'"),
        ({"public_key": key, "principals": ["a b"]}, "principals"),
        ({"public_key": key, "principals": ["x"], "ttl_ms": 601000}, "ttl_ms"),
        ({"public_key": key, "principals": ["x"], "ttl_ms": 59000}, "ttl_ms"),
    ]
    for body, word in refused:
        status, reply, _ = holtd.request("POST", CERTIFICATES, body)
        assert status == 400 and word in reply["error"]["message"], (body, reply)
    assert holtd.request("POST", CERTIFICATES, {"public_key": key, "sandbox": "nobody"})[0] == 404


def test_a_tenant_gets_certificates_for_its_own_sandboxes_only(holtd, tmp_path):
    """Machines trust the installation's authority, and a sandbox's sshd lets in whoever has its id as a principal."""
    key = keygen(tmp_path / "key")
    token = holtd.ok("POST", f"{API}/tokens", {"name": "of-ta", "role": "operator", "tenant": "ta"})["token"]
    theirs = holtd.ok("POST", f"{API}/sandboxes", {"name": "of-nobody"})["id"]
    mine = holtd.ok("POST", f"{API}/sandboxes", {"name": "of-ta"}, token=token)["id"]
    for principals in (["deploy"], [theirs], [mine]):
        assert holtd.request("POST", CERTIFICATES, {"public_key": key, "principals": principals}, token=token)[0] == 403, principals
    assert holtd.ok("POST", CERTIFICATES, {"public_key": key, "sandbox": mine}, token=token)["principals"] == [mine]
    status, reply, _ = holtd.request("POST", CERTIFICATES, {"public_key": key, "principals": [mine]})
    assert status == 400 and "sandbox's id" in reply["error"]["message"], reply
    machine = {"name": "prod", "address": "192.0.2.1", "host_key": key}
    assert holtd.request("POST", f"{API}/targets", machine, token=token)[0] == 403
    holtd.ok("POST", f"{API}/targets", {"name": "box", "sandbox": mine}, token=token)
    holtd.ok("DELETE", f"{API}/targets/box", token=token)


def test_an_agent_gets_certificates_for_its_own_sandboxes_only(holtd, tmp_path):
    key = keygen(tmp_path / "key")
    holtd.ok("POST", f"{API}/agents", {"name": "sshy"})
    agent = holtd.ok("POST", f"{API}/tokens", {"name": "sshy", "role": "agent", "agent": "sshy"})["token"]
    ask = lambda **body: holtd.request("POST", CERTIFICATES, {"public_key": key, **body}, token=agent)  # noqa: E731
    theirs = holtd.ok("POST", f"{API}/sandboxes", {"name": "theirs"})["id"]
    mine = holtd.request("POST", f"{API}/sandboxes", {"name": "mine"}, token=agent)[1]["id"]
    assert ask(principals=["root"])[0] == 403
    assert ask(sandbox=theirs)[0] in (403, 404)
    status, made, _ = ask(sandbox=mine)
    assert status == 201 and made["principals"] == [mine]
    issue(holtd, key, principals=["x"])
    seen = holtd.request("GET", CERTIFICATES, token=agent)[1]["certificates"]
    assert [c["id"] for c in seen] == [made["id"]]


@pytest.fixture
def sshd(holtd, tmp_path):
    """A host of ours: sshd on loopback that trusts the authority and reads the list of revoked ones."""
    program = shutil.which("sshd", path="/usr/sbin:/usr/bin") or pytest.skip("no sshd: apt-get install openssh-server")
    if os.geteuid() != 0:
        pytest.skip("needs root: sshd logs in as another user")
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    keygen(tmp_path / "host")
    (tmp_path / "ca.pub").write_text(holtd.ok("GET", f"{API}/access/ca")["public_key"] + "\n")
    (tmp_path / "principals").write_text("deploy\n")
    port = free_ports()[0]
    options = {"Port": port, "ListenAddress": "127.0.0.1", "HostKey": tmp_path / "host", "TrustedUserCAKeys": tmp_path / "ca.pub", "UsePAM": "no",
               "AuthorizedPrincipalsFile": tmp_path / "principals", "RevokedKeys": krl(holtd, tmp_path / "revoked"), "StrictModes": "no", "PidFile": "none",
               "PasswordAuthentication": "no", "PermitRootLogin": "prohibit-password"}
    argv = [program, "-D", "-e", "-f", "/dev/null", *(a for k, v in options.items() for a in ("-o", f"{k}={v}"))]
    penalties = ["-o", "PerSourcePenalties=no"]  # OpenSSH 9.8: refusals, which are tested here, would close the port for a while
    if subprocess.run([*argv, *penalties, "-t"], capture_output=True).returncode == 0:
        argv += penalties
    p = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    p.stderr.readline()
    wait_for(lambda: subprocess.run(["ssh-keyscan", "-p", str(port), "127.0.0.1"], capture_output=True).stdout)
    yield port
    p.terminate()
    p.wait()
    p.stderr.close()


def ssh(port, key, *command):
    return subprocess.run(["ssh", "-F", "/dev/null", "-i", str(key), "-p", str(port), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
                           "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "root@127.0.0.1", *command], capture_output=True, text=True, timeout=30)


def test_a_host_lets_the_holder_in_until_it_is_revoked(holtd, sshd, tmp_path):
    def hold(**more):
        made = issue(holtd, key, **more)
        (tmp_path / "key-cert.pub").write_text(made["certificate"] + "\n")
        return made

    key = keygen(tmp_path / "key")
    assert ssh(sshd, tmp_path / "key", "true").returncode == 255, "the key alone opens nothing"
    hold(principals=["other"])
    assert ssh(sshd, tmp_path / "key", "true").returncode == 255, "nor does another name's certificate"
    made = hold(principals=["deploy"])
    r = ssh(sshd, tmp_path / "key", "echo in")
    assert (r.returncode, r.stdout) == (0, "in\n"), r.stderr
    holtd.ok("DELETE", f"{CERTIFICATES}/{made['id']}")
    krl(holtd, tmp_path / "revoked")
    assert ssh(sshd, tmp_path / "key", "true").returncode == 255, "revoked"
    hold(principals=["deploy"])
    assert ssh(sshd, tmp_path / "key", "true").returncode == 0, "only that one"
