#!/usr/bin/env python3
"""Sessions: what a screen costs.

  many   1,000 sessions that draw 10 screens a second each, all of them watched: CPU of holtd per update that is sent,
         memory per session, unwatched and watched
  echo   from a key to its echo: through holt's attach, against a bare pseudo-terminal

usage: session_bench.py BUILD [--sessions 1000] [--seconds 10] [--only many,echo]
Run it on a quiet machine, as root or with cgroups of one's own: tests/integration/daemon.py starts the daemon.
"""
import argparse
import base64
import os
import pty
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import tty

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

API = "/holt/v1"
PER_BOX = 50


class Socket:
    """A WebSocket client without comforts: what it costs is not what is measured."""

    def __init__(self, port, token, path):
        self.s = socket.create_connection(("127.0.0.1", port))
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        self.s.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: holt.attach.v1\r\nSec-WebSocket-Key: {key}\r\n"
                       f"Authorization: Bearer {token}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            got = self.s.recv(4096)
            assert got, head
            head += got
        assert b" 101 " in head.split(b"\r\n")[0], head

    def send(self, data):
        assert len(data) < 126
        self.s.sendall(bytes([0x82, 0x80 | len(data), 0, 0, 0, 0]) + data)


def start(build, directory):
    os.environ["HOLT_BUILD"] = build
    import daemon
    return daemon.native(directory)


def many(holtd, build, args):
    token = holtd.token
    empty = holtd.rss_kib()
    with open(f"{build}/tests/bench/drawer", "rb") as f:
        drawer = f.read()
    sessions, box = [], None
    for n in range(args.sessions):
        if n % PER_BOX == 0:
            box = holtd.ok("POST", f"{API}/sandboxes", {})["id"]
            holtd.ok("PUT", f"{API}/sandboxes/{box}/files?path=/tmp/drawer&mode=755", drawer, headers={"Content-Type": "application/octet-stream"})
        holtd.ok("POST", f"{API}/sandboxes/{box}/sessions", {"name": f"s{n}", "command": ["/tmp/drawer", str(args.rate)]})
        sessions.append(f"{API}/sandboxes/{box}/sessions/s{n}")
    time.sleep(2)
    unwatched, cpu = holtd.rss_kib(), holtd.cpu_seconds()
    time.sleep(args.seconds)
    idle = (holtd.cpu_seconds() - cpu) / args.seconds
    poll, sockets = select.epoll(), {}
    for path in sessions:
        w = Socket(holtd.port, token, f"{path}/attach?role=observer&raw=false&screen=true&updates={args.rate}")
        w.s.setblocking(False)
        sockets[w.s.fileno()] = w
        poll.register(w.s, select.EPOLLIN)
    seen = drain(poll, sockets, 2)  # the keyframes
    cpu, began = holtd.cpu_seconds(), time.monotonic()
    seen = drain(poll, sockets, args.seconds)
    took, used = time.monotonic() - began, holtd.cpu_seconds() - cpu
    watched = holtd.rss_kib()
    print(f"{args.sessions} sessions, {args.rate} screens a second each, {took:.1f} s: {seen / took:,.0f} updates a second")
    print(f"  CPU of holtd {used / took * 100:.0f} % watched, {idle * 100:.0f} % unwatched: "
          f"{used / max(seen, 1) * 1e6:.1f} us per update in all, {(used - idle * took) / max(seen, 1) * 1e6:.1f} us for the screen alone")
    print(f"  memory per session: {(unwatched - empty) / args.sessions:.1f} KiB unwatched, "
          f"{(watched - empty) / args.sessions:.1f} KiB watched (with its client's connection)")
    for w in sockets.values():
        w.s.close()


def drain(poll, sockets, seconds):
    end, seen = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for fd, _ in poll.poll(0.2):
            data = sockets[fd].s.recv(1 << 20)
            assert data, "a watcher was closed"
            seen += data.count(b'"type":"screen"')
    return seen


def through_holt(holtd, count):
    box = holtd.ok("POST", f"{API}/sandboxes", {})["id"]
    holtd.ok("POST", f"{API}/sandboxes/{box}/sessions", {"name": "echo", "command": ["sh", "-c", "stty raw -echo; echo ready; exec cat"]})
    w = Socket(holtd.port, holtd.token, f"{API}/sandboxes/{box}/sessions/echo/attach?role=controller&stdout_offset=0")
    got = b""
    while b"ready" not in got:
        got += w.s.recv(65536)
    time.sleep(1)  # past the moment in which small output has no file yet
    times = []
    for n in range(count):
        key = b"%c" % (97 + n % 26)
        began = time.perf_counter()
        w.send(b"\0" + key)
        while not w.s.recv(65536).endswith(key):
            pass
        times.append(time.perf_counter() - began)
        time.sleep(0.002)
    w.s.close()
    return times


def bare(count):
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp("cat", ["cat"])
    tty.setraw(fd)
    time.sleep(0.3)
    times = []
    for n in range(count):
        key = b"%c" % (97 + n % 26)
        began = time.perf_counter()
        os.write(fd, key)
        while not os.read(fd, 4096).endswith(key):
            pass
        times.append(time.perf_counter() - began)
        time.sleep(0.002)
    os.close(fd)
    os.waitpid(pid, 0)
    return times


def echo(holtd, args):
    a, b = through_holt(holtd, args.count), bare(args.count)
    ours, floor = statistics.median(a) * 1e6, statistics.median(b) * 1e6
    print(f"key to echo, median of {args.count}: through holt {ours:.0f} us, bare pseudo-terminal {floor:.0f} us, more {ours - floor:.0f} us; "
          f"99 %: {sorted(a)[int(args.count * 0.99)] * 1e6:.0f} and {sorted(b)[int(args.count * 0.99)] * 1e6:.0f} us")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--sessions", type=int, default=1000)
    p.add_argument("--rate", type=int, default=10)
    p.add_argument("--seconds", type=int, default=10)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--only", default="many,echo")
    args = p.parse_args()
    build = os.path.abspath(args.build)
    with tempfile.TemporaryDirectory(prefix="bench") as d:
        holtd = start(build, d)
        try:
            if "echo" in args.only:
                echo(holtd, args)
            if "many" in args.only:
                many(holtd, build, args)
        finally:
            holtd.clear()
            holtd.stop()


if __name__ == "__main__":
    main()
