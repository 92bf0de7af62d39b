"""Long output: the reply of a command has its beginning and its end; what a sandbox itself starts keeps little on the host."""
import glob
import hashlib
import http.client
import os
import socket
import threading
import time

import pytest

from daemon import free_ports, native
from inside import Box

API = "/holt/v1"
WRITE = ("import sys\nn=int(sys.argv[1])\nout=sys.stdout.buffer\nout.write(b'the beginning\\n')\n"
         "for _ in range(n): out.write(b'x' * 1023 + b'\\n')\nout.write(b'the end\\n')\n")


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("output"))
    yield d
    d.clear()
    assert d.stop() == 0


@pytest.mark.parametrize("kib", [20 << 10, 80 << 10])  # past what a reply holds; past what the log keeps
def test_a_long_output_has_its_beginning_and_its_end(boxes, kib):
    box = Box(boxes)
    r = box.run("python3", "-c", WRITE, str(kib))
    total = kib * 1024 + len("the beginning\nthe end\n")
    assert r["exit_code"] == 0 and r["stdout_bytes"] == total and r["truncated"] is True
    assert r["stdout"].startswith("the beginning\n") and r["stdout"].endswith("the end\n")
    mark = f"\n[{r['stdout_omitted']} bytes are left out here]\n"
    assert r["stdout"].count(mark) == 1
    assert len(r["stdout"]) - len(mark) + r["stdout_omitted"] == total
    assert r["stderr_omitted"] == 0


def test_a_short_output_is_whole(boxes):
    box = Box(boxes)
    r = box.run("echo", "hello")
    assert (r["stdout"], r["truncated"], r["stdout_omitted"]) == ("hello\n", False, 0)


# Lines of many lengths, and the mark of the guest protocol, which no frame may hold.
MIXED = ("import sys\nout, err = sys.stdout.buffer, sys.stderr.buffer\nmark = bytes.fromhex('f39bc7e88db1fa96d4a9ee83cbbdf091')\n"
         "for i in range(int(sys.argv[1])):\n line = b'%d ' % i * (i * i % 977) + mark * (i % 5) + b'\\n'\n out.write(line)\n"
         " if i % 100 == 0: err.write(line)\n")
# cat writes in large pieces
FROM_FILES = 'python3 -c "$0" "$1" > /tmp/out 2> /tmp/err; read x < /tmp/go; cat /tmp/err >&2 & cat /tmp/out; wait'


def mixed(n, every):
    mark, h, total = bytes.fromhex("f39bc7e88db1fa96d4a9ee83cbbdf091"), hashlib.sha256(), 0
    for i in range(0, n, every):
        line = b"%d " % i * (i * i % 977) + mark * (i % 5) + b"\n"
        h.update(line)
        total += len(line)
    return total, h.hexdigest()


def read_slowly(boxes, path, pauses, found, begun):
    c = http.client.HTTPConnection("127.0.0.1", boxes.port, timeout=60)
    c.request("GET", path, headers={"Authorization": f"Bearer {boxes.token}"})
    r, h, total = c.getresponse(), hashlib.sha256(), 0
    begun.release()
    while part := r.read(1 << 20):
        h.update(part)
        total += len(part)
        if total > 4 << 20 and pauses:
            time.sleep(pauses.pop())
    found.append((total, h.hexdigest()))
    c.close()


def test_readers_of_any_pace_have_every_byte(boxes):
    """Some take the bytes as they come, others fall behind and read them from the log; the command waits for the slowest."""
    box, n = Box(boxes), 12000
    box.run("mkfifo", "/tmp/go")
    x = boxes.ok("POST", f"{box.path}/execs", {"command": ["sh", "-c", FROM_FILES, MIXED, str(n)],
                                               "background": True, "on_full": "block", "output_bytes": 1 << 20})
    fast, slow, err, begun = [], [], [], threading.Semaphore(0)
    threads = [threading.Thread(target=read_slowly, args=(boxes, f"{box.path}/execs/{x['id']}/output?follow=true&stream={s}", p, to, begun))
               for s, p, to in (("stdout", [], fast), ("stdout", [0.3, 0.1, 0.2], slow), ("stderr", [], err))]
    for t in threads:
        t.start()
    for t in threads:
        assert begun.acquire(timeout=30)
    box.run("sh", "-c", "echo > /tmp/go")
    for t in threads:
        t.join(90)
    assert fast == slow == [mixed(n, 1)]
    assert err == [mixed(n, 100)]


def test_commands_that_a_sandbox_starts_itself_keep_little(boxes):
    box = Box(boxes, relay=True, disk_bytes=64 << 20)
    ask = ("import json,socket,sys\ns=socket.socket(socket.AF_UNIX); s.connect('/run/holt.sock')\n"
           "b=json.dumps({'command':['python3','-c',sys.argv[2],'30000'],'output_bytes':1<<30}).encode()\n"
           "s.sendall(b'POST '+sys.argv[1].encode()+b'/execs HTTP/1.1\\r\\nHost: holt\\r\\nContent-Type: application/json\\r\\n'\n"
           "b'Connection: close\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(b) + b)\n"
           "while s.recv(65536): pass\n")
    for _ in range(3):
        box.python(ask, box.path, WRITE)
    used = sum(os.stat(f).st_blocks * 512 for f in glob.glob(f"{boxes.state}/execs/{box.id}/*.log"))
    assert 0 < used <= 3 * (4 << 20), used
    r = box.run("python3", "-c", WRITE, "10")
    assert r["truncated"] is False, "a person's command has the usual room"


def test_the_limit_on_commands_says_its_setting(new_holtd):
    d = new_holtd("--execs-max", "2")
    box = d.ok("POST", f"{API}/sandboxes", {})
    for _ in range(2):
        assert d.request("POST", f"{API}/sandboxes/{box['id']}/execs", {"command": ["sleep", "100"], "background": True})[0] == 202
    status, reply, _ = d.request("POST", f"{API}/sandboxes/{box['id']}/execs", {"command": ["true"]})
    assert status == 429 and "execs_max" in reply["error"]["hint"], reply
    d.ok("DELETE", f"{API}/sandboxes/{box['id']}")


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False


def test_a_port_that_a_variable_names_is_open_beside_listen(new_holtd):
    """GRPC_PORT was dropped as soon as --listen was given; and `localhost` may be ::1."""
    (port,) = free_ports()
    d = new_holtd(env={"GRPC_PORT": str(port)})
    assert d.port != port
    with socket.create_connection(("127.0.0.1", port), 10) as c:
        c.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert c.recv(100).startswith(b"HTTP/1.1 200")
    if not has_ipv6():
        pytest.skip("this host has no ::1")
    with socket.create_connection(("::1", port), 10) as c:
        c.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert c.recv(100).startswith(b"HTTP/1.1 200")
