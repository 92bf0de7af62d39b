"""A database that is full, read-only, corrupt, locked or gone: clear errors, and nothing acknowledged is lost."""
import contextlib
import os
import shutil
import sqlite3
import subprocess

import pytest

from daemon import BUILD, Holtd, end_fakes, environment, wait_for


def database(state):
    return next(os.path.join(state, n) for n in sorted(os.listdir(state)) if n.endswith(".db"))


@contextlib.contextmanager
def small_disk(path, size="24m"):
    os.makedirs(path, exist_ok=True)
    r = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path)], capture_output=True, text=True)
    if r.returncode:
        pytest.skip(f"needs to mount a small tmpfs: {r.stderr.strip()}")
    try:
        yield str(path)
    finally:
        end_fakes(path)
        subprocess.run(["umount", "-l", str(path)], check=False)


def fill(path):
    """Takes every byte that is left."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    with contextlib.suppress(OSError):
        while True:
            os.write(fd, b"x" * 4096)
    os.close(fd)


def refusal(state, *args):
    """What holtd says when it will not start."""
    r = subprocess.run([f"{BUILD}/holtd", "--listen", "127.0.0.1:0", "--state", str(state), *args], capture_output=True,
                       text=True, timeout=60, env=environment(), stdin=subprocess.DEVNULL)
    assert r.returncode not in (0, 99) and r.returncode > 0, r.stdout + r.stderr
    return r.stdout + r.stderr


@pytest.mark.of_sqlite
def test_full_disk(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        d = Holtd(disk)
        try:
            kept = [d.new_token(f"before{i}")["id"] for i in range(3)]
            fill(f"{disk}/filler")
            status, reply = 201, None
            for i in range(2000):
                status, reply, _ = d.request("POST", "/holt/v1/tokens", {"name": "n" * 90, "role": "observer"})
                if status != 201:
                    break
                kept.append(reply["id"])
            assert status in (500, 503, 507), reply
            message = reply["error"]["message"].lower()
            assert "full" in message or "space" in message, message
            ready, body, _ = d.request("GET", "/readyz", token=None)
            assert ready == 503, body
            assert d.request("GET", "/healthz", token=None)[0] == 200
            assert d.request("GET", "/holt/v1/tokens")[0] == 200, "reading still works"
            os.unlink(f"{disk}/filler")
            wait_for(lambda: d.request("POST", "/holt/v1/tokens", {"name": "after", "role": "observer"})[0] == 201, 60)
            wait_for(lambda: d.request("GET", "/readyz", token=None)[0] == 200, 60)
            d.kill()
            d = Holtd(disk)
            live = {t["id"] for t in d.ok("GET", "/holt/v1/tokens?limit=1000")["tokens"]}
            assert set(kept[:900]) <= live
            assert d.ok("GET", "/holt/v1/audit/verify")["ok"] is True
        finally:
            if d.alive():
                d.kill()


@pytest.mark.of_sqlite
def test_read_only_disk(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        d = Holtd(disk)
        d.stop()
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        said = refusal(f"{disk}/state")
        assert "read-only" in said.lower() or "readonly" in said.lower(), said
        assert f"{disk}/state" in said


@pytest.mark.of_sqlite
def test_corrupt_database(tmp_path):
    d = Holtd(tmp_path)
    d.new_token("x")
    d.stop()
    path = database(d.state)
    with open(path, "r+b") as f:
        f.write(os.urandom(4096))
    said = refusal(d.state)
    assert path in said
    assert "corrupt" in said.lower() or "not a database" in said.lower() or "malformed" in said.lower(), said


@pytest.mark.of_sqlite
def test_truncated_database(tmp_path):
    d = Holtd(tmp_path)
    for i in range(50):
        d.new_token(f"x{i}")
    d.stop()
    path = database(d.state)
    size = os.stat(path).st_size
    os.truncate(path, size // 2)
    said = refusal(d.state)
    assert path in said and ("corrupt" in said.lower() or "malformed" in said.lower()), said


@pytest.mark.of_sqlite
def test_a_newer_database_is_not_touched(tmp_path):
    d = Holtd(tmp_path)
    d.stop()
    path = database(d.state)
    before = None
    with contextlib.closing(sqlite3.connect(path)) as db:
        tables = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = next((t for t in tables if "migration" in t or "schema" in t), None)
        if table is None:
            pytest.fail(f"no table of migrations: {tables}")
        columns = [r[1] for r in db.execute(f"PRAGMA table_info({table})")]
        number = columns[0]
        row = db.execute(f"SELECT * FROM {table} ORDER BY {number} DESC LIMIT 1").fetchone()
        new = tuple(9999 if c == number else v for c, v in zip(columns, row))
        db.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(new))})", new)
        db.commit()
    with open(path, "rb") as f:
        before = f.read()
    said = refusal(d.state)
    assert "9999" in said or "newer" in said.lower(), said
    with open(path, "rb") as f:
        assert f.read() == before


def test_a_second_daemon_on_the_same_state_is_refused(holtd):
    said = refusal(holtd.state)
    assert holtd.state in said and f"{holtd.pid}" in said, said
    holtd.assert_alive()
    holtd.new_token("still-fine")


@pytest.mark.of_sqlite
def test_a_database_locked_by_another_program(tmp_path):
    d = Holtd(tmp_path)
    d.stop()
    with contextlib.closing(sqlite3.connect(database(d.state), isolation_level=None)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        said = refusal(d.state)
        assert "lock" in said.lower() or "use" in said.lower(), said
        db.execute("ROLLBACK")


@pytest.mark.of_sqlite
def test_a_database_that_is_deleted_under_the_daemon(tmp_path):
    """Writes into a file nobody can find again must not be acknowledged."""
    d = Holtd(tmp_path)
    try:
        d.new_token("x")
        for n in os.listdir(d.state):
            if ".db" in n:
                os.unlink(f"{d.state}/{n}")
        status, reply, _ = d.request("POST", "/holt/v1/tokens", {"name": "lost", "role": "observer"})
        assert status >= 500, (status, reply)
        assert reply["error"]["message"]
        assert d.request("GET", "/readyz", token=None)[0] == 503
        assert d.request("GET", "/healthz", token=None)[0] == 200
    finally:
        d.kill()


def test_a_state_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    said = refusal(tmp_path / "file" / "state")
    assert f"{tmp_path}/file" in said


def test_secrets_on_disk_are_for_the_owner_only(holtd):
    assert os.stat(holtd.state).st_mode & 0o077 == 0
    assert os.stat(f"{holtd.state}/admin-token").st_mode & 0o777 == 0o600
    token = holtd.token.encode()
    made = holtd.new_token("secret")["token"].encode()
    for name in os.listdir(holtd.state):
        path = f"{holtd.state}/{name}"
        if os.path.isfile(path) and name != "admin-token":
            with open(path, "rb") as f:
                data = f.read()
            assert token not in data and made not in data, f"{name} holds a token in clear"
    assert made.decode() not in holtd.log() and token.decode() not in holtd.log()


def test_the_admin_token_is_made_once(new_holtd):
    d = new_holtd(name="once")
    first = d.token
    d.stop()
    d = new_holtd(name="once")
    assert d.token == first
    assert d.request("GET", "/holt/v1/info")[0] == 200


def test_a_copy_of_the_state_is_a_backup(new_holtd, tmp_path):
    d = new_holtd(name="origin")
    kept = d.new_token("kept")["id"]
    d.stop()
    shutil.copytree(d.state, tmp_path / "copy" / "state")
    d = new_holtd(name="copy")
    assert kept in {t["id"] for t in d.ok("GET", "/holt/v1/tokens")["tokens"]}
    assert d.ok("GET", "/holt/v1/audit/verify")["ok"] is True
