#!/usr/bin/env python3
"""An ordinary user for tests that run as root: with or without id ranges, with or without cgroups of its own.

usage: as_user.py [--ranges] [--cgroups] PROGRAM [ARGUMENT...]

PROGRAM runs as a user that nobody else is, in a mount namespace in which /etc/passwd and, with --ranges, /etc/subuid and
/etc/subgid know it; with --cgroups in cgroups that belong to it, as a user manager makes them (Delegate=yes). An argument
below the build directory (HOLT_BUILD, or the one that PROGRAM is in) is reached through a bind mount, so it may be closed to that
user. Status 77: this host cannot, the last line says why. Run by an ordinary user it runs PROGRAM as that user.
"""
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

CLONE_NEWNS = 0x20000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_PDEATHSIG = 1
FIRST_USER, USERS = 900000, 99000  # below those that holt-spawn gives to sandboxes
RANGE = "300000:65536"  # of subordinate ids
CONTROLLERS = ("memory", "pids", "cpu")
_libc = ctypes.CDLL(None, use_errno=True)
_next = FIRST_USER + os.getpid() * 8 % USERS


class Skip(Exception):
    """What this host lacks."""


def _check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def _mount(source, target, flags):
    _check(_libc.mount(source and source.encode(), target.encode(), None, flags, None), f"mount {target}")


def _cgroup_mounts():
    """(v2 mount or None, [v1 mounts])"""
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return "/sys/fs/cgroup", []
    v2 = "/sys/fs/cgroup/unified"
    v1 = [f"/sys/fs/cgroup/{c}" for c in CONTROLLERS]
    return (v2 if os.path.exists(f"{v2}/cgroup.procs") else None), [d for d in v1 if os.path.isdir(d)]


def _processes(uid):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
                if f"\nUid:\t{uid}\t" in f.read():
                    yield int(pid)
        except OSError:
            pass


def _take_user():
    """An id that is nobody's, and a socket whose name keeps it from the tests that run now: it ends with its process."""
    global _next
    for _ in range(1000):
        uid = _next
        _next = FIRST_USER + (_next + 1 - FIRST_USER) % USERS
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0holt-test-user-{uid}")
        except OSError:
            claim.close()
            continue
        if not any(True for _ in _processes(uid)):
            return uid, claim
        claim.close()
    raise Skip("a thousand user ids are all taken: are there processes that a test has left?")


class User:
    """enter() in the child (preexec_fn), close() when it has ended."""

    def __init__(self, build, ranges=False, cgroups=False):
        if os.geteuid() != 0:
            raise Skip("needs root, to be another user")
        if ranges and not shutil.which("newuidmap"):
            raise Skip("newuidmap is not installed")
        self.uid, self._claim = _take_user()
        self.build, self.ranges, self.groups = os.path.abspath(build), ranges, []
        self.directory = tempfile.mkdtemp(prefix="holt-user.", dir="/tmp")
        os.chmod(self.directory, 0o755)
        self.bin = f"{self.directory}/build"
        os.mkdir(self.bin)
        self._write("passwd", "/etc/passwd", f"holt-test:x:{self.uid}:{self.uid}::/tmp:/bin/sh\n")
        if ranges:
            for name in ("subuid", "subgid"):
                self._write(name, None, f"holt-test:{RANGE}\n")
        if cgroups:
            self._delegate()

    def _write(self, name, before, text):
        with open(f"{self.directory}/{name}", "w", encoding="utf-8") as f:
            if before:
                with open(before, encoding="utf-8") as old:
                    f.write(old.read())
            f.write(text)
        os.chmod(f"{self.directory}/{name}", 0o644)

    def _delegate(self):
        v2, v1 = _cgroup_mounts()
        if not v2:
            self.close()
            raise Skip("no cgroup v2 is mounted")
        if not v1:
            for c in CONTROLLERS:
                try:
                    with open(f"{v2}/cgroup.subtree_control", "w", encoding="ascii") as f:
                        f.write(f"+{c}")
                except OSError:
                    pass
        for mount in [v2, *v1]:
            group = f"{mount}/holt-test-{os.getpid()}-{self.uid}"
            os.mkdir(group)
            self.groups.append(group)
            for name in (".", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads", "tasks"):
                if os.path.exists(f"{group}/{name}"):
                    os.chown(f"{group}/{name}", self.uid, self.uid)

    def path(self, name):
        """Where a file of the build is for that user."""
        full = os.path.abspath(name)
        return self.bin + full[len(self.build):] if full.startswith(self.build + "/") else name

    @staticmethod
    def _attach(group):
        with open(f"{group}/cgroup.procs", "w", encoding="ascii") as f:
            f.write("0")

    def enter(self):
        for group in self.groups:
            try:
                self._attach(group)
            except OSError:  # v2: it passes controllers on, so the daemons are below it (src/spawn/delegated.c)
                self._attach(f"{group}/holt-self")
        _check(_libc.unshare(CLONE_NEWNS), "unshare")
        _mount(None, "/", MS_REC | MS_PRIVATE)
        _mount(self.build, self.bin, MS_BIND)
        _mount(f"{self.directory}/passwd", "/etc/passwd", MS_BIND)
        for name in ("subuid", "subgid"):
            if self.ranges and not os.path.exists(f"/etc/{name}"):
                raise OSError(f"/etc/{name} is missing")
            if self.ranges:
                _mount(f"{self.directory}/{name}", f"/etc/{name}", MS_BIND)
        os.setgroups([])
        os.setresgid(self.uid, self.uid, self.uid)
        os.setresuid(self.uid, self.uid, self.uid)
        os.chdir("/tmp")

    @staticmethod
    def _remove(group):
        for d, _, _ in os.walk(group, topdown=False):
            try:
                os.rmdir(d)
            except OSError:
                return False
        return True

    def close(self):
        """A failed test may have left sandboxes: nobody else is this user."""
        for pid in _processes(self.uid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for group in self.groups:
            end = time.monotonic() + 5
            while not self._remove(group) and time.monotonic() < end:  # who was killed goes in its own time
                time.sleep(0.02)
        self.groups = []
        shutil.rmtree(self.directory, ignore_errors=True)
        self._claim.close()


def main():
    options = {"--ranges": False, "--cgroups": False}
    args = sys.argv[1:]
    while args and args[0] in options:
        options[args.pop(0)] = True
    if not args:
        sys.exit(__doc__)
    if os.geteuid() != 0 and not any(options.values()):
        os.execv(args[0], args)
    build = os.environ.get("HOLT_BUILD") or os.path.dirname(os.path.abspath(args[0]))
    try:
        user = User(build, options["--ranges"], options["--cgroups"])
    except Skip as e:
        print(e)
        return 77
    try:
        parent = os.getpid()

        def enter():
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            user.enter()
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # setuid(2) has cleared it
            if os.getppid() != parent:
                os._exit(1)

        return subprocess.run([user.path(a) for a in args], preexec_fn=enter, check=False).returncode
    finally:
        user.close()


if __name__ == "__main__":
    sys.exit(main())
