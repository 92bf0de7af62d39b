#!/usr/bin/env python3
"""Runs a command and, when it ends or is cut off, ends every process that it started.

usage: reaper.py COMMAND [ARGUMENT...]

Daemons leave their session and outlive their parents (holt-spawn, holt-egress, each sandbox's init), so killing a session
or a process group does not reach them.  This process is a child subreaper (prctl(2)): whatever loses its parent below it
becomes its child, never init's.  Once COMMAND ends, or SIGTERM, SIGINT or SIGHUP arrives, or the parent dies, all descendants are
killed by pid until there are none; what had to be killed after COMMAND's own end is named on stderr.
The status is COMMAND's, 128 + N when signal N ended it, 143 when it was cut off.
"""
import collections
import ctypes
import os
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LINGER = 3  # seconds that what ends by itself has: holt-spawn stays for two after its last client
CUT = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_libc = ctypes.CDLL(None, use_errno=True)


def descendants():
    """{pid: name} of what lives below this process."""
    children, names = collections.defaultdict(list), {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                head, rest = f.read().rsplit(")", 1)
        except OSError:
            continue
        state, parent = rest.split()[:2]
        children[int(parent)].append(int(pid))
        if state not in "ZX":
            names[int(pid)] = head.split("(", 1)[1]
    below, found = [os.getpid()], {}
    while below:
        for pid in children[below.pop()]:
            below.append(pid)
            if pid in names:
                found[pid] = names[pid]
    return found


def reap():
    """Collects the dead; {pid: wait status} of those."""
    dead = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return dead
        if not pid:
            return dead
        dead[pid] = status


def end_all():
    """Kills until nothing is left: who forks meanwhile is seen in the next round."""
    while found := descendants():
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
        reap()
    reap()


def start(argv):
    pid = os.fork()
    if pid == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, CUT | {signal.SIGCHLD})
        try:
            os.execvp(argv[0], argv)
        except OSError as e:
            print(f"reaper: {argv[0]}: {e.strerror}", file=sys.stderr, flush=True)
        os._exit(127)
    return pid


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    parent = os.getppid()
    signal.pthread_sigmask(signal.SIG_BLOCK, CUT | {signal.SIGCHLD})
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        return 143
    child = start(sys.argv[1:])
    while True:
        got = signal.sigwait(CUT | {signal.SIGCHLD})
        dead = reap()
        if got in CUT:
            end_all()
            return 143
        if child in dead:
            status = os.waitstatus_to_exitcode(dead[child])
            break
    limit = time.monotonic() + LINGER
    while (left := descendants()) and time.monotonic() < limit:
        time.sleep(0.05)
        reap()
    if left:
        counts = collections.Counter(left.values())
        print("reaper: left behind, ended: " + ", ".join(f"{n} {name}" for name, n in sorted(counts.items())), file=sys.stderr, flush=True)
    end_all()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
