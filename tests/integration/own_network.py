"""A network of a test's own, where the ports of the described systems are free."""
import contextlib
import ctypes
import fcntl
import os
import socket
import struct

import pytest

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def own_network():
    """A network of this thread's (and what it starts), so that port 8080 is free."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if _libc.unshare(CLONE_NEWNET) < 0:
            pytest.skip("a network namespace needs root: port 8080 may be another's")
        try:
            with socket.socket() as s:  # netdevice(7): loopback starts down
                fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
            yield
        finally:
            assert _libc.setns(before, CLONE_NEWNET) == 0
    finally:
        os.close(before)
