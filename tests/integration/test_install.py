"""What `make install` puts there, and a state directory that root has used before the service does.

The units themselves are started by systemd in a machine of their own: tests/boot, `make test-v2`.
"""
import fcntl
import os
import pwd
import re
import subprocess

import pytest

from daemon import BUILD, ROOT, environment

NOBODY = pwd.getpwnam("nobody").pw_uid
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user: needs root")


def install(*args):
    return subprocess.run([f"{ROOT}/tools/install", *args], capture_output=True, text=True, timeout=60, env=environment(), check=True)


def installed(dest):
    return [os.path.join(d, f) for d, _, files in os.walk(dest) for f in files]


@pytest.mark.parametrize("prefix", ["/usr/local", "/opt/holt"])
def test_installed_files_name_installed_programs(tmp_path, prefix):
    """Nothing is left to be filled in, and what a unit starts is what was installed."""
    dest = str(tmp_path / "dest")
    install(BUILD, dest, prefix)
    started = 0
    for path in installed(dest):
        if not re.search(r"\.service$|apparmor\.d|sysusers\.d", path):
            continue
        with open(path, encoding="utf-8") as f:
            text = f.read()
        assert not re.search(r"@[A-Z]+@", text), path
        for program in re.findall(rf"{prefix}/bin/[a-z-]+", text):
            started += 1
            assert os.access(dest + program, os.X_OK), f"{path}: {program}"
    assert started >= 4
    units = {os.path.relpath(p, dest) for p in installed(dest) if p.endswith(".service")}
    top = "usr/local/lib" if prefix == "/usr/local" else "etc"  # where systemd looks
    assert units == {f"{top}/systemd/{n}" for n in ("system/holtd.service", "system/holt-egress.service", "system/holt-spawn.service",
                                                         "user/holt.service")}
    below = {os.path.relpath(p, dest + prefix) for p in installed(dest)}
    assert {"share/man/man1/holt.1", "share/man/man1/holt-exec.1", "share/man/man8/holtd.8", "share/bash-completion/completions/holt",
            "share/zsh/site-functions/_holt", "share/fish/vendor_completions.d/holt.fish"} <= below
    install("--remove", dest, prefix)
    assert installed(dest) == []


@pytest.fixture
def used(tmp_path):
    """A state directory as a holtd and a holt-spawn of root's leave it."""
    state = tmp_path / "state"
    for name in ("sb/sb_1", "shells", "base", "execs/ex_1", "layers/la_1/fs", "volumes/vo_1/fs"):
        (state / name).mkdir(parents=True)
    for name in ("lock", "holt.db", "admin-token", "spawn.lock", "execs/ex_1/out", "layers/la_1/meta", "layers/la_1/fs/file", "sb/sb_1/record"):
        (state / name).write_text(name)
    (tmp_path / "outside").write_text("not ours")
    (state / "link").symlink_to(tmp_path / "outside")
    (state / "execs/up").symlink_to("..")
    state.chmod(0o700)
    os.chown(state / "layers/la_1/fs/file", 1000000, 1000000)
    return state


def prepare(state, user="nobody"):
    return subprocess.run([f"{BUILD}/holt-spawn", "--prepare", "yes", "--state", str(state), "--init", f"{BUILD}/holt-init", "--user", user],
                          capture_output=True, text=True, timeout=60, env=environment(), check=False)


@needs_root
def test_state_of_root_is_handed_over(used, tmp_path):
    """What is holtd's becomes its user's; what is holt-spawn's, and files of sandboxes, stay; no link is followed."""
    r = prepare(used)
    assert (r.returncode, r.stderr) == (0, "")

    def owner(name):
        return os.lstat(used / name).st_uid
    theirs = (".", "lock", "holt.db", "admin-token", "execs", "execs/ex_1", "execs/ex_1/out", "layers", "layers/la_1", "layers/la_1/meta", "link")
    assert {n: owner(n) for n in theirs} == {n: NOBODY for n in theirs}
    ours = ("sb", "sb/sb_1", "sb/sb_1/record", "shells", "base", "volumes", "volumes/vo_1", "layers/la_1/fs", "spawn.lock")
    assert {n: owner(n) for n in ours} == {n: 0 for n in ours}
    assert owner("layers/la_1/fs/file") == 1000000
    assert os.stat(tmp_path / "outside").st_uid == 0 and os.stat(tmp_path).st_uid == 0
    assert prepare(used).returncode == 0  # a second start finds nothing to do
    assert owner("sb") == 0


@needs_root
def test_state_is_not_handed_over_while_it_is_used(used):
    for name in ("lock", "spawn.lock"):
        with open(used / name, "r+", encoding="utf-8") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            r = prepare(used)
        assert r.returncode == 1 and "holt down" in r.stderr, r.stderr
        assert os.stat(used).st_uid == 0 and os.stat(used / "holt.db").st_uid == 0


@needs_root
def test_state_is_made_for_the_service(tmp_path):
    state = tmp_path / "a" / "state"
    assert prepare(state).returncode == 0
    st = os.stat(state)
    assert (st.st_uid, st.st_mode & 0o777) == (NOBODY, 0o700)
