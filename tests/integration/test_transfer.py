"""Long bodies in constant memory: both ways, both versions, slow readers included."""
import os
import socket
import subprocess
import threading
import time

import pytest

from daemon import ASAN, SOAK, wait_for
from raw import Raw

GIB = 1 << 30
SIZE = 10 * GIB if SOAK else GIB // 16 if ASAN else GIB
GROWTH_KIB = (64 if ASAN else 8) * 1024  # ASan keeps freed memory in quarantine
LIMIT = pytest.mark.timeout(1800 if SOAK else 180)
VERSIONS = ["--http1.1", "--http2-prior-knowledge"]


class Watch(threading.Thread):
    """The most memory the server holds while something runs."""

    def __init__(self, program):
        super().__init__(daemon=True)
        self.program, self.most, self.over = program, 0, threading.Event()

    def __enter__(self):
        self.before = self.program.rss_kib()
        self.start()
        return self

    def run(self):
        while not self.over.wait(0.02):
            self.most = max(self.most, self.program.rss_kib())

    def __exit__(self, *_):
        self.over.set()
        self.join()
        self.grown = max(0, self.most - self.before)


def curl(*args, stdin=None, timeout=1700):
    r = subprocess.run(["curl", "-sS", "--noproxy", "*", *args], stdin=stdin or subprocess.DEVNULL, capture_output=True,
                       timeout=timeout)
    assert r.returncode == 0, r.stderr.decode()
    return r.stdout.decode()


def zeros(count):
    """A pipe with so many bytes in it, sooner or later."""
    return subprocess.Popen(["head", "-c", str(count), "/dev/zero"], stdout=subprocess.PIPE)


@LIMIT
@pytest.mark.parametrize("version", VERSIONS)
def test_download(echo, version):
    with Watch(echo) as w:
        out = curl(version, "-o", "/dev/null", "-w", "%{http_code} %{size_download}",
                   f"http://127.0.0.1:{echo.port}/big?n={SIZE}")
    assert out == f"200 {SIZE}"
    assert w.grown < GROWTH_KIB, f"{w.grown} KiB more for {SIZE} bytes"


@LIMIT
@pytest.mark.parametrize("version", VERSIONS)
def test_upload(echo, version):
    with zeros(SIZE) as source, Watch(echo) as w:
        out = curl(version, "-H", "Expect:", "-T", "-", "-X", "POST", f"http://127.0.0.1:{echo.port}/sink", stdin=source.stdout)
    assert out.strip() == str(SIZE)
    assert w.grown < GROWTH_KIB, f"{w.grown} KiB more for {SIZE} bytes"


@LIMIT
@pytest.mark.parametrize("version", VERSIONS)
def test_echo_both_ways_at_once(echo, version):
    """The server has to slow the upload down to the pace of the download."""
    size = SIZE // 4
    with zeros(size) as source, Watch(echo) as w:
        out = curl(version, "-H", "Expect:", "-T", "-", "-X", "POST", "-o", "/dev/null", "-w", "%{size_download}",
                   f"http://127.0.0.1:{echo.port}/echo", stdin=source.stdout)
    assert out == str(size)
    assert w.grown < GROWTH_KIB, f"{w.grown} KiB more for {size} bytes"


def test_a_reader_that_stops_holds_the_source(echo):
    with Watch(echo) as w:
        with Raw(echo.port) as c:
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            c.send(f"GET /big?n={4 * GIB} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert c.head()[0] == 200
            cpu = echo.cpu_seconds()
            time.sleep(1)
            assert echo.cpu_seconds() - cpu < 0.2, "it spins while it waits"
    assert w.grown < GROWTH_KIB


def test_a_writer_whose_echo_nobody_reads_is_stopped(echo):
    with Watch(echo) as w, Raw(echo.port) as c:
        c.send(f"POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {GIB}\r\n\r\n")
        c.sock.settimeout(1)
        sent, block = 0, os.urandom(65536)
        try:
            while sent < GIB // 4:
                c.sock.sendall(block)
                sent += len(block)
        except TimeoutError:
            pass
        assert sent < GIB // 4, "the server swallowed everything"
    assert w.grown < GROWTH_KIB


def test_fifty_uploads_at_once(echo):
    size = 4 << 20
    with Watch(echo) as w:
        all_of_them = [
            subprocess.Popen(["curl", "-sS", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Expect:", "-T", "-", "-X",
                              "POST", f"http://127.0.0.1:{echo.port}/sink"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(50)]
        data = b"z" * size
        threads = [threading.Thread(target=lambda p=p: p.communicate(data)) for p in all_of_them]
        outs = []
        for p, t in zip(all_of_them, threads):
            t.start()
        for t in threads:
            t.join(60)
        for p in all_of_them:
            outs.append(p.returncode)
    assert outs == [0] * 50
    assert w.grown < 4 * GROWTH_KIB


def test_an_unanswered_request_and_its_end(echo):
    """/hang never answers: its handler is told at once that the client has gone."""
    told = echo.log().count("hang closed")
    held = []
    for _ in range(20):
        c = Raw(echo.port)
        c.send("GET /hang HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        held.append(c)
    time.sleep(0.3)
    assert echo.log().count("hang closed") == told
    for c in held:
        c.sock.close()
    wait_for(lambda: echo.log().count("hang closed") == told + 20)
