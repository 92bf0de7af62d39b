"""The golden test machine: its sshd trusts an authority, and the logins that everybody knows are in it alone."""
import glob
import io
import os
import shutil
import subprocess
import tarfile

import pytest

from daemon import BUILD, native, wait_for
from packages import debian_image
from ssh_client import API, SSHD

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = f"{ROOT}/tools/golden-vm"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="files of an image belong to root"),
              pytest.mark.skipif(not SSHD or not shutil.which("dpkg"), reason="no sshd, or no Debian: tools/deps test")]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """Of `holt access ca --dir`: (its directory, a key that it has signed for `sandbox`)."""
    d = tmp_path_factory.mktemp("ca")
    subprocess.run([f"{BUILD}/holt", "access", "ca", "--dir", d / "ca"], check=True, capture_output=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", d / "key"], check=True)
    subprocess.run(["ssh-keygen", "-q", "-s", d / "ca/ssh-ca", "-I", "me", "-n", "sandbox", "-V", "+5m", f"{d}/key.pub"], check=True)
    return d


def golden(*words):
    return subprocess.run([SCRIPT, *map(str, words)], capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def image(authority, tmp_path_factory):
    d = tmp_path_factory.mktemp("golden")
    (d / "root.tar").write_bytes(debian_image(["openssh-server", "openssh-client", "bash"]))
    said = golden("test-vm", authority / "ca/ssh-ca.pub", authority / "ca/ssh-ca", "--root", d / "root.tar", "--out", d)
    assert said.returncode == 0, said.stderr
    return (d / "test-vm.tar").read_bytes()


@pytest.fixture(scope="module")
def box(image, authority, tmp_path_factory):
    d = native(tmp_path_factory.mktemp("d"))
    d.ok("POST", f"{API}/images/import?name=test-vm", image, headers={"Content-Type": "application/x-tar"})
    d.box = d.ok("POST", f"{API}/sandboxes", {"image": "test-vm"})["id"]
    for name in ("key", "key-cert.pub"):
        d.ok("PUT", f"{API}/sandboxes/{d.box}/files?path=/root/{name}&mode=600", (authority / name).read_bytes(), headers={"Content-Type": "application/octet-stream"})
    inside(d, "mkdir -p /run/sshd && ssh-keygen -A && /usr/sbin/sshd -p 2222 -o ListenAddress=127.0.0.1 && chmod 600 /root/key*")
    wait_for(lambda: inside(d, "ssh-keyscan -p 2222 127.0.0.1 2>/dev/null")["stdout"])
    yield d
    d.clear()
    d.stop()


def inside(d, line):
    return d.ok("POST", f"{API}/sandboxes/{d.box}/execs", {"command": ["bash", "-c", line], "timeout_ms": 60000})


SSH = "ssh -F /dev/null -p 2222 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"


def test_it_trusts_the_authority(box):
    said = inside(box, f"{SSH} -o BatchMode=yes -o IdentitiesOnly=yes -i /root/key sandbox@127.0.0.1 id -un")
    assert (said["exit_code"], said["stdout"]) == (0, "sandbox\n"), said
    assert inside(box, f"{SSH} -o BatchMode=yes -o IdentitiesOnly=yes -i /root/key root@127.0.0.1 id -un")["exit_code"] == 255, "another name's"
    inside(box, "cp /root/key /root/bare && chmod 600 /root/bare")
    assert inside(box, f"{SSH} -o BatchMode=yes -o IdentitiesOnly=yes -i /root/bare sandbox@127.0.0.1 id -un")["exit_code"] == 255, "the key alone"


@pytest.mark.parametrize("user, password, opens", [("testuser", "testpassword", True), ("root", "rootpassword", True), ("testuser", "other", False), ("sandbox", "", False)])
def test_its_logins(box, user, password, opens):
    ask = f"printf '#!/bin/bash\\necho {password}\\n' > /tmp/ask; chmod 700 /tmp/ask; "
    said = inside(box, f"{ask} SSH_ASKPASS=/tmp/ask SSH_ASKPASS_REQUIRE=force {SSH} -o PreferredAuthentications=password -o NumberOfPasswordPrompts=1 {user}@127.0.0.1 id -un")
    assert (said["stdout"] == f"{user}\n") == opens and (said["exit_code"] == 0) == opens, said


def test_its_logins_are_nowhere_else(box, image, authority):
    """Not in an image that holt makes otherwise, and in no file of holt but the script, its test and documents."""
    plain = box.ok("POST", f"{API}/sandboxes", {})["id"]
    said = box.ok("POST", f"{API}/sandboxes/{plain}/execs", {"command": ["grep", "-c", "^testuser:", "/etc/passwd"]})
    assert said["stdout"] == "0\n"
    words = ("testpassword", "rootpassword")
    named = [f for f in glob.glob(f"{ROOT}/src/**/*", recursive=True) + glob.glob(f"{ROOT}/tools/*") if os.path.isfile(f)
             and any(w.encode() in open(f, "rb").read() for w in words)]
    assert named == [SCRIPT]
    with tarfile.open(fileobj=io.BytesIO(image)) as t:
        assert not [n for n in t.getnames() if "ssh_host_" in n], "each machine has its own host keys"
    private = (authority / "ca/ssh-ca").read_text().splitlines()[2]  # the first lines are the same in all keys
    assert len(private) > 40 and private.encode() not in image, "the authority's key stays outside"


def test_what_is_refused(authority, tmp_path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    for words, why in (((), "usage"), (("test-vm", authority / "ca/ssh-ca.pub", tmp_path / "other"), "not the key of"),
                       (("../x", authority / "ca/ssh-ca.pub", authority / "ca/ssh-ca"), "cannot be an image's name"),
                       (("x", tmp_path / "none", authority / "ca/ssh-ca"), "cannot be read"), (("x", "--odd"), "unknown option")):
        said = golden(*words, *(["--out", tmp_path / "out"] if len(words) == 3 else []))
        assert said.returncode == 1 and why in said.stderr, (words, said.stderr)
    assert not (tmp_path / "out").exists()
