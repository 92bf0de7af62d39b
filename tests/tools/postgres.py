#!/usr/bin/env python3
"""A PostgreSQL server for tests: a directory of its own, a Unix socket only, gone with whoever started it.

usage: postgres.py PROGRAM [ARGUMENT...]

PROGRAM runs with HOLT_TEST_POSTGRES set to the server's URL. Status 77: there is no server program here, the last line says why.
"""
import ctypes
import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Skip(Exception):
    """What this host lacks."""


def find(name):
    """A program of the server: they are not in PATH."""
    places = []
    if shutil.which("pg_config"):
        places.append(subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True).stdout.strip())
    newest_first = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: -float(p.split("/")[4]))
    for place in places + newest_first:
        if place and os.access(f"{place}/{name}", os.X_OK):
            return f"{place}/{name}"
    raise Skip(f"no {name}: install the package postgresql (tools/deps test)")


def _user():
    """The server refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Skip("PostgreSQL does not run as root, and there is neither a user 'postgres' nor 'nobody'")


class Postgres:
    """start() and stop() any number of times; close() removes everything."""

    def __init__(self):
        self.process = None
        self.programs = {n: find(n) for n in ("initdb", "postgres", "pg_isready")}
        self.user = _user()
        self.directory = tempfile.mkdtemp(prefix="holt-pg-", dir="/tmp")  # a socket's path is short
        try:
            if self.user:
                os.chown(self.directory, self.user.pw_uid, self.user.pw_gid)
            os.chmod(self.directory, 0o755)  # the socket is for the tests' users
            self._initdb()
            self.start()
        except BaseException:
            self.close()
            raise

    def _enter(self):
        if self.user:
            os.setgroups([])
            os.setgid(self.user.pw_gid)
            os.setuid(self.user.pw_uid)
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)  # after the change of user, which clears it

    def _initdb(self):
        """With an order of texts that is not their bytes', where the server has one: holt's must not depend on it."""
        base = [self.programs["initdb"], "-D", f"{self.directory}/data", "-U", "holt", "-A", "trust", "-E", "UTF8", "--no-sync",
                "--locale=C.UTF-8"]
        for more in (["--locale-provider=icu", "--icu-locale=en-US"], []):
            r = subprocess.run(base + more, capture_output=True, text=True, stdin=subprocess.DEVNULL, preexec_fn=self._enter,
                               cwd="/", env={"PATH": os.environ.get("PATH", "")}, timeout=120)
            if r.returncode == 0:
                return
            shutil.rmtree(f"{self.directory}/data", ignore_errors=True)
        raise RuntimeError(f"initdb: {r.stdout}{r.stderr}")

    @property
    def url(self):
        return f"postgres://holt@/postgres?host={self.directory}"

    def start(self, wait=True):
        with open(f"{self.directory}/log", "ab") as log:
            self.process = subprocess.Popen(
                [self.programs["postgres"], "-D", f"{self.directory}/data", "-k", self.directory, "-c", "listen_addresses=",
                 "-c", "max_connections=100", "-c", "shared_buffers=16MB"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", preexec_fn=self._enter,
                env={"PATH": os.environ.get("PATH", "")})
        if wait:
            self.wait()

    def wait(self, limit=60):
        end = time.monotonic() + limit
        while subprocess.run([self.programs["pg_isready"], "-q", "-h", self.directory]).returncode != 0:
            assert self.process.poll() is None and time.monotonic() < end, f"PostgreSQL does not start:\n{self.log()}"
            time.sleep(0.05)

    def log(self):
        with open(f"{self.directory}/log", encoding="utf-8", errors="replace") as f:
            return f.read()[-5000:]

    def stop(self, how=signal.SIGINT):
        """SIGINT: a fast, clean end.  SIGKILL: of all its processes, as a crash of the machine's."""
        if not self.process or self.process.poll() is not None:
            return
        children = self.children() if how == signal.SIGKILL else []
        self.process.send_signal(how)
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(60)
        for pid in children:  # a lock file names the dead one until its children are gone
            end = time.monotonic() + 10
            while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
                time.sleep(0.01)

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as f:
            return [int(p) for p in f.read().split()]

    def close(self):
        try:
            self.stop(signal.SIGQUIT)
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def main():
    if len(sys.argv) < 2:
        print(__doc__.strip().split("\n\n")[1], file=sys.stderr)
        return 64
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # meson's time limit: the server goes too
    try:
        with Postgres() as server:
            return subprocess.run(sys.argv[1:], env={**os.environ, "HOLT_TEST_POSTGRES": server.url}).returncode
    except Skip as why:
        print(f"skipped: {why}")
        return 77


if __name__ == "__main__":
    sys.exit(main())
