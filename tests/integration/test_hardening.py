"""What each of our own processes may still do: docs/hardening.md says it, /proc/PID/status shows it."""
import os
import re
import signal
import socket
import ssl
import stat
import subprocess

import pytest

from daemon import ASAN, ROOT, native, programs_of, wait_for
from home import Home

HOLTD, EGRESS = 999990, 999991  # base/account.h, where the system has no such users
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be started as it")
not_sanitized = pytest.mark.skipif(ASAN, reason="a build with sanitizers has no filter of system calls: docs/hardening.md")
KEYS = ("Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")


def said():
    """{(mode, process): {key: value}} of the table in docs/hardening.md; `*` is not compared."""
    rows = {}
    with open(f"{ROOT}/docs/hardening.md", encoding="utf-8") as f:
        for line in f:
            cells = [c.strip().strip("`") for c in line.strip().strip("|").split("|")]
            if len(cells) == 2 + len(KEYS) and cells[0] in ("root", "rootless"):
                rows[cells[0], cells[1]] = dict(zip(KEYS, cells[2:], strict=True))
    return rows


def status(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        found = dict(re.findall(r"^(\w+):\s+(\S+)", f.read(), re.M))
    return {k: found[k] for k in KEYS}


def uid_of(pid):
    return int(status(pid)["Uid"])


def spawn_of(d):
    """Its holt-spawn, which leads a session of its own."""
    return next((p for p in programs_of(d.state, "holt-spawn") if os.getsid(p) == p), None)


def init_of(d, box):
    spawn = spawn_of(d)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
                text = f.read()
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                name = f.read().split(b"\0")[0]
        except OSError:
            continue
        if f"PPid:\t{spawn}\n" in text and re.search(r"^NSpid:\t\d+\t1$", text, re.M) and b"holt-init" in name:
            return int(pid)
    raise AssertionError(f"no init of {box}")


def start_all(directory, **more):
    """A holtd with a sandbox that has a network, so that all of our programs run."""
    d = native(directory, **more)
    try:
        box = d.ok("POST", "/holt/v1/sandboxes", {"network": {"mode": "open"}})
        wait_for(d.egress_pid)
    except BaseException:
        d.kill()
        raise
    return d, box["id"]


def bounded(row):
    """Capabilities that this machine's root lacks cannot be kept."""
    ours = int(status("self")["CapBnd"], 16)
    return {k: f"{int(v, 16) & ours:016x}" if k.startswith("Cap") and v != "*" else v for k, v in row.items()}


def compare(mode, d, box):
    found = {"holtd": d.pid, "holt-egress": d.egress_pid(), "holt-spawn": spawn_of(d), "holt-init": init_of(d, box)}
    table = said()
    for name, pid in found.items():
        want, have = table[mode, name], status(pid)
        if (mode, name) == ("root", "holt-spawn"):
            want = bounded(want)
        if ASAN and name in ("holtd", "holt-egress", "holt-spawn"):
            want = {**want, "Seccomp": "*"}
        assert {k: v for k, v in have.items() if want[k] != "*"} == {k: v for k, v in want.items() if v != "*"}, name


@needs_root
def test_started_as_root_each_has_what_the_document_says(tmp_path):
    d, box = start_all(tmp_path / "d")
    try:
        compare("root", d, box)
        d.clear()
    finally:
        d.stop()


def test_started_by_a_user_each_has_what_the_document_says():
    home = Home("rootless")
    try:
        d, box = start_all(home.path, user=home.user)
        try:
            compare("rootless", d, box)
            d.clear()
        finally:
            d.stop()
    finally:
        home.close()


@pytest.mark.parametrize("mode", ["own", "rootless"])
def test_directories_that_settings_name_are_made(mode):
    """Also where their parents are missing, before holtd is kept to its own; what is a path inside is nothing on the host."""
    home = Home(mode)
    inside = f"{home.path}/events"
    os.mkdir(inside, 0o755)
    before = os.stat(inside)
    try:
        d = native(home.path, "--storage-path", f"{home.path}/deep/tenants", "--sbx-cache-mode", "hostpath", "--sbx-cache-hostpath",
                   f"{home.path}/far/cache", "--sbx-events-dir", inside, user=home.user)
        try:
            assert os.path.isdir(f"{home.path}/deep/tenants") and os.path.isdir(f"{home.path}/far/cache")
            assert (os.stat(inside).st_uid, os.stat(inside).st_gid) == (before.st_uid, before.st_gid)
        finally:
            d.stop()
    finally:
        home.close()


@needs_root
def test_nothing_of_the_store_is_readable_to_the_egress_proxy(tmp_path):
    d, _ = start_all(tmp_path / "d")
    try:
        assert uid_of(d.egress_pid()) not in (0, uid_of(d.pid))
        r = subprocess.run(["cat", f"{d.state}/holt.db", f"{d.state}/admin-token", f"{d.state}/secret.key"],
                           user=EGRESS, group=EGRESS, extra_groups=[], capture_output=True, cwd="/", check=False)
        assert r.stdout == b""
        links = [os.readlink(f"/proc/{d.egress_pid()}/fd/{n}") for n in os.listdir(f"/proc/{d.egress_pid()}/fd")]
        assert [p for p in links if p.startswith(d.state) and not p.endswith(("/egress.lock", "/egress.log"))] == []
        d.clear()
    finally:
        d.stop()


@needs_root
def test_the_state_of_a_holtd_that_was_root_is_taken_over(tmp_path):
    """Sandboxes live on and are adopted; links are not followed."""
    d = native(tmp_path / "d", "--user", "root")
    victim = tmp_path / "victim"
    victim.write_text("root's\n")
    try:
        assert uid_of(d.pid) == 0
        box = d.ok("POST", "/holt/v1/sandboxes", {"name": "box"})["id"]
        d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["sh", "-c", "echo before > /root/file; echo out"]})
        d.process.send_signal(signal.SIGTERM)  # its holt-spawn stays, and serves root
        assert d.process.wait(30) == 0
        old = spawn_of(d)
        os.symlink(victim, f"{d.state}/blobs/link")
        os.symlink(victim, f"{d.state}/spool/link")
        e = native(tmp_path / "d")
        try:
            assert uid_of(e.pid) == HOLTD
            wait_for(lambda: spawn_of(e) not in (None, old))
            r = e.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["cat", "/root/file"]})
            assert r["stdout"] == "before\n"
            assert os.stat(victim).st_uid == 0
            for name in ("holt.db", "admin-token", "ca.key", "blobs", "layers"):
                st = os.lstat(f"{e.state}/{name}")
                assert st.st_uid == HOLTD and not st.st_mode & (stat.S_IRWXG | stat.S_IRWXO), name
            for name in ("sb", "shells", "spawn.lock"):
                assert os.lstat(f"{e.state}/{name}").st_uid == 0, name
            e.clear()
        finally:
            e.stop()
        back = native(tmp_path / "d", "--user", "root")  # and back again
        try:
            assert uid_of(back.pid) == 0
            assert back.ok("GET", "/holt/v1/sandboxes")["sandboxes"] == []
        finally:
            back.stop()
    finally:
        d.kill()


def serial_of(port):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port)) as s, context.wrap_socket(s) as t:
        return t.getpeercert(binary_form=True)


def make_certificate(cert, key):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                    key, "-out", cert, "-days", "2", "-subj", "/CN=localhost"], check=True, capture_output=True)
    os.chmod(key, 0o600)


def test_files_that_only_root_reads_are_read_again(tmp_path):
    """Certificate, key and settings file: replaced by others, as certbot and editors do, then SIGHUP."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_certificate(cert, key)
    d = native(tmp_path / "d", "--tls-cert", cert, "--tls-key", key, config="log_level: info\n")
    try:
        before = serial_of(d.port)
        make_certificate(tmp_path / "new-cert", tmp_path / "new-key")
        os.replace(tmp_path / "new-cert", cert)
        os.replace(tmp_path / "new-key", key)
        fresh = f"{d.directory}/fresh.yaml"
        with open(fresh, "w", encoding="utf-8") as f:
            f.write("log_level: debug\n")
        os.chmod(fresh, 0o600)
        os.replace(fresh, f"{d.directory}/holt.yaml")
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "settings were read again" in d.log() or "were not changed" in d.log())
        assert "not changed" not in d.log()
        wait_for(lambda: serial_of(d.port) != before)
        values = {s["key"]: s["value"] for s in d.ok("GET", "/holt/v1/settings")["settings"]}
        assert values["log_level"] == "debug"
    finally:
        d.stop()


@not_sanitized
def test_holtd_has_no_children_and_a_dead_holt_spawn_is_started_again(tmp_path):
    d = native(tmp_path / "d")
    try:
        names = set()
        for task in os.listdir(f"/proc/{d.pid}/task"):
            with open(f"/proc/{d.pid}/task/{task}/children", encoding="ascii") as f:
                names |= {open(f"/proc/{p}/comm", encoding="ascii").read().strip() for p in f.read().split()}
        assert names == {"holtd-starter"}
        old = spawn_of(d)
        os.kill(old, signal.SIGKILL)
        wait_for(lambda: spawn_of(d) not in (None, old))
        assert d.ok("POST", "/holt/v1/run", {"command": ["echo", "hi"]})["stdout"] == "hi\n"
    finally:
        d.stop()


@pytest.mark.parametrize("unit, most", [("holtd.service", 2.0), ("holt-egress.service", 2.6), ("holt-spawn.service", 7.0)])
def test_units_are_as_closed_as_the_document_says(tmp_path, unit, most):
    with open(f"{ROOT}/packaging/{unit}", encoding="utf-8") as f:
        (tmp_path / unit).write_text(f.read().replace("@BINDIR@", "/usr/bin"))
    try:
        r = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", tmp_path / unit], capture_output=True,
                           text=True, check=False)
    except FileNotFoundError:
        pytest.skip("systemd-analyze is not installed")
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", r.stdout)
    if not found:
        pytest.skip(f"systemd-analyze cannot look at a file: {r.stderr.strip()[:200]}")
    assert float(found[1]) <= most, r.stdout
    with open(f"{ROOT}/docs/hardening.md", encoding="utf-8") as f:
        page = f.read()
    release = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    if f"systemd {release};" in page:  # others count differently
        assert f"| `{unit}` | {found[1]} |" in page, f"docs/hardening.md has another value than {found[1]}"
