"""Real programs under the allowlist of system calls (src/spawn/calls.c): each does its work, and the filter refuses it nothing.

The holt-spawn is the tests' own (holt-spawn-unguarded with HOLT_OMIT=silence): a refused call waits until the test has listed it and
given the answer that the table says.  Left out of the list is what is ENOSYS by design, for its caller takes the other way: clone3
(init's second filter; libc takes clone), and io_uring_setup of newer libuv (node takes epoll and threads).  Heavy ones (this repository, Chromium with its own sandbox) run with HOLT_SOAK=1.
"""
import ctypes
import errno
import fcntl
import glob
import hashlib
import io
import os
import select
import shutil
import struct
import subprocess
import sys
import tarfile
import threading
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../security")

import boxes  # noqa: E402
from packages import debian_image  # noqa: E402

SOAK = os.environ.get("HOLT_SOAK") == "1"
UNGUARDED = f"{boxes.BUILD}/tests/security/holt-spawn-unguarded"
TABLE = f"{boxes.BUILD}/tests/security/calls_table"
LISTENER_FD = 7  # src/spawn/step_rights.c
RECV, SEND = 0xc0502100, 0xc0182101  # ioctls of seccomp_unotify(2)
IO_URING_SETUP = "425("
GO = "/usr/local/go/bin/go"
libc = ctypes.CDLL(None, use_errno=True)


class Listener(threading.Thread):
    """Lists the calls that a sandbox's filter refuses, and answers them as the filter would."""

    def __init__(self, box):
        super().__init__(daemon=True)
        pidfd = os.pidfd_open(box.pid)
        self.fd = libc.syscall(438, pidfd, LISTENER_FD, 0)  # pidfd_getfd
        os.close(pidfd)
        assert self.fd >= 0, os.strerror(ctypes.get_errno())
        self.kind, self.over, self.refused, self.answers = box.kind(), False, {}, {}
        self.start()

    def answer(self, nr, args):
        key = (nr, *args)
        if key not in self.answers:
            question = ":".join(map(str, (nr, *args)))
            out = subprocess.run([TABLE, *self.kind, question], capture_output=True, text=True, check=True).stdout.split()
            self.answers[key] = int(out[1]), out[2]
        return self.answers[key]

    def run(self):
        while not self.over:
            if not select.select([self.fd], [], [], 0.05)[0]:
                continue
            try:
                got = fcntl.ioctl(self.fd, RECV, bytes(80))
            except OSError:  # it was killed meanwhile, or all are gone
                time.sleep(0.01)
                continue
            ident, pid, _, nr, _, _, *args = struct.unpack("<QIIiIQ6Q", got)
            error, name = self.answer(nr, args)
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
                    who = f.read().strip()
            except OSError:
                who = "?"
            self.refused[f"{name if name != '-' else nr}({', '.join(hex(a) for a in args[:3])})"] = f"{errno.errorcode.get(error)} to {who}"
            try:
                fcntl.ioctl(self.fd, SEND, struct.pack("<QqiI", ident, 0, -error, 0))
            except OSError:
                pass

    def stop(self):
        self.over = True
        self.join()
        os.close(self.fd)
        return self.refused


def rust():
    """The toolchain's directory, or None."""
    if not shutil.which("rustup"):
        return None
    return os.path.dirname(os.path.dirname(subprocess.run(["rustup", "which", "cargo"], check=True, capture_output=True, text=True).stdout.strip()))


# What of the host programs need besides /usr.
HOST_DIRS = {d: d for d in glob.glob("/etc/java-*") + glob.glob("/etc/postgresql-common") if os.path.isdir(d)}
if rust():
    HOST_DIRS[rust()] = "/opt/rust"
SOURCE = os.path.abspath(f"{HERE}/../..")


@pytest.fixture(scope="module", params=["root", "rootless"])
def spawn(request):
    seen = [d for d in [*HOST_DIRS, SOURCE] if request.param == "root" or is_open(d)]
    allowed = [a for d in seen for a in ("--allow", d)]
    try:
        s = boxes.Spawn(request.param, program=UNGUARDED, env={"HOLT_OMIT": "silence"}, args=(*allowed, "--nesting", "yes"))
    except boxes.as_user.Skip as e:
        pytest.skip(str(e))
    yield s
    s.stop()


def opened(spawn, **spec):
    """A sandbox, and what lists the calls that it is refused."""
    mounts = [(boxes.HOST, d, to, 0, 1) for d, to in HOST_DIRS.items() if not spawn.user or is_open(d)]
    box = spawn.create("sb_programs", mounts=mounts, flags=spec.pop("flags", 0), connect=False, **spec)
    try:
        listener = Listener(box)
        box.connect()
    except BaseException:
        box.destroy()
        raise
    return box, listener


def is_open(path):
    """Is every directory on the way open to others?  An ordinary user's holt-spawn mounts nothing else."""
    while path != "/":
        if not os.stat(path).st_mode & 0o005:
            return False
        path = os.path.dirname(path)
    return True


@pytest.fixture
def box(spawn):
    b, listener = opened(spawn)
    b.listener = listener
    yield b
    refused = {call: answer for call, answer in listener.stop().items() if not (call.startswith(IO_URING_SETUP) and answer == "ENOSYS to node")}
    b.destroy()
    assert refused == {}, f"refused: {refused}"


def need(*paths):
    for path in paths:
        if not glob.glob(path):
            pytest.skip(f"{path} is not installed here")


def run(box, script, timeout=150, **more):
    r = box.sh("set -e; cd /workspace\n" + script, timeout=timeout * boxes.SLOW, **more)
    assert (r.how, r.code) == (0, 0), str(r)[-3000:]
    return r.out.decode(errors="replace")


def test_the_list_can_fail(spawn):
    """A call that the table lacks is listed, by name and argument."""
    b, listener = opened(spawn)
    b.python("import ctypes, socket\nl = ctypes.CDLL(None)\nl.syscall(425, 1, 0, 0)\n"
             "try: socket.socket(40, socket.SOCK_STREAM)\nexcept OSError as e: print(e.errno)")
    refused = listener.stop()
    b.destroy()
    assert refused == {"425(0x1, 0x0, 0x0)": "ENOSYS to python3", "socket(0x28, 0x80001, 0x0)": "EAFNOSUPPORT to python3"}, refused


def test_gcc_and_make(box):
    need("/usr/bin/gcc", "/usr/bin/make")
    box.put("/workspace/a.c", b'#include <pthread.h>\n#include <stdio.h>\nstatic void *f(void *p) { return p; }\n'
            b'int main(void) { pthread_t t; if (pthread_create(&t, 0, f, 0)) return 1; pthread_join(t, 0); puts("built"); }\n')
    box.put("/workspace/Makefile", b"all: a b\na b: a.c\n\tgcc -O2 -Wall -pthread -flto=2 -o $@ a.c\n")
    assert run(box, "make -s -j2; ./a; ./b; gcc -fsanitize=address,undefined -pthread -o s a.c; ASAN_OPTIONS=detect_leaks=0 ./s; "
               "gdb --version >/dev/null 2>&1 || true") == "built\n" * 3


def test_git(box):
    need("/usr/bin/git")
    assert run(box, "export HOME=/workspace; git init -q r; cd r; git config user.email a@b; git config user.name a\n"
               "for i in 1 2 3; do echo $i > f$i; git add .; git commit -qm $i; done; git gc -q; cd ..; git clone -q r s; git clone -q --bare r t\n"
               "cd s; git checkout -q -b x; git rebase -q HEAD~1; git worktree add -q ../w; git fsck; git log --format=%s | head -1") == "3\n"


def test_cargo_build(box):
    if not rust():
        pytest.skip("no rustup here")
    if "/opt/rust" not in box.sh("cat /proc/mounts").out.decode():
        pytest.skip("the toolchain is below a home that this user cannot read")
    box.put("/workspace/c/Cargo.toml", b'[package]\nname = "den"\nversion = "0.1.0"\nedition = "2021"\n')
    box.put("/workspace/c/src/main.rs", b'use std::thread;\nfn main() { let t = thread::spawn(|| 6 * 7); println!("{}", t.join().unwrap()); }\n'
            b'#[test] fn f() { assert_eq!(6 * 7, 42); }\n')
    assert run(box, "export PATH=/opt/rust/bin:$PATH CARGO_HOME=/workspace/h; cd c; cargo build -q --offline; cargo run -q --offline; "
               "cargo test -q --offline >/dev/null") == "42\n"


def test_go_build(box):
    need(GO)
    if box.spawn.user and not SOAK:
        pytest.skip("compiles the standard library: rootless with HOLT_SOAK=1")
    box.put("/workspace/g/go.mod", b"module den\n")
    box.put("/workspace/g/main.go", b'package main\nimport ("fmt"; "io"; "net"; "os/exec"; "time")\nfunc main() {\n'
            b'l, e := net.Listen("tcp", "127.0.0.1:0"); if e != nil { panic(e) }\n'
            b'go func() { c, _ := l.Accept(); fmt.Fprint(c, "served"); c.Close() }()\n'
            b'r, e := net.Dial("tcp", l.Addr().String()); if e != nil { panic(e) }\nb, _ := io.ReadAll(r)\n'
            b'o, e := exec.Command("echo", "ran").Output(); if e != nil { panic(e) }\ntime.Sleep(time.Millisecond); fmt.Print(string(b), " ", string(o)) }\n')
    assert run(box, f"cd g; export HOME=/workspace GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0; {GO} build -o den . && ./den") == "served ran\n"


def test_jvm(box):
    need("/usr/bin/javac", "/usr/bin/java")
    box.put("/workspace/Den.java", b'import java.net.*; import java.nio.file.*; import java.util.concurrent.*;\npublic class Den { public static void main(String[] a) throws Exception {\n'
            b'var s = com.sun.net.httpserver.HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);\n'
            b's.createContext("/", x -> { x.sendResponseHeaders(200, 2); x.getResponseBody().write("ok".getBytes()); x.close(); }); s.start();\n'
            b'var u = new URL("http://127.0.0.1:" + s.getAddress().getPort()); System.out.println(new String(u.openStream().readAllBytes()));\n'
            b'var p = Executors.newFixedThreadPool(8); for (int i = 0; i < 50; i++) p.submit(() -> Math.sqrt(2)); p.shutdown(); p.awaitTermination(9, TimeUnit.SECONDS);\n'
            b'new ProcessBuilder("echo", "ran").inheritIO().start().waitFor(); for (int i = 0; i < 20; i++) { byte[] b = new byte[8 << 20]; } System.gc(); s.stop(0); } }\n')
    assert run(box, "javac Den.java; java -Xmx128m Den; java -XX:+UseParallelGC -Xmx128m Den; java -XX:+UseNUMA -Xmx128m Den") == "ok\nran\n" * 3


def test_node(box):
    need("/usr/bin/node")
    box.put("/workspace/package.json", b'{"name": "den", "version": "1.0.0", "scripts": {"work": "node work.js"}}')
    box.put("/workspace/work.js", b'''const { Worker, isMainThread, parentPort } = require("worker_threads");
const { execFileSync } = require("child_process"), fs = require("fs"), http = require("http");
if (!isMainThread) { parentPort.postMessage(crypto_of()); } else {
  const w = new Worker(__filename); w.on("message", (m) => {
    const s = http.createServer((q, r) => r.end("served")).listen(0, "127.0.0.1", () => http.get(s.address(), (r) => {
      r.on("data", (d) => console.log(m, String(d), String(execFileSync("echo", ["ran"])).trim()));
      r.on("end", () => s.close()); })); });
  fs.watch(".").close(); fs.promises.readdir("/usr/bin"); }
function crypto_of() { return require("crypto").createHash("sha1").update("x").digest("hex").slice(0, 4); }
''')
    assert run(box, "export HOME=/workspace; node work.js") == "11f6 served ran\n"
    if box.sh("command -v npm").code == 0:
        assert "11f6 served ran" in run(box, "export HOME=/workspace; npm run --offline --no-update-notifier work")


def postgres_bin():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    return found[-1] if found else None


def test_postgresql(box):
    if not postgres_bin():
        pytest.skip("no PostgreSQL here")
    if not box.spawn.features & boxes.CAN_USERS:
        pytest.skip("one id is mapped: PostgreSQL does not run as root")
    box.sh("chown 1000 /workspace; echo p:x:1000:1000::/workspace:/bin/sh >> /etc/passwd")
    out = run(box, f"export PATH={postgres_bin()}:$PATH PGDATA=/workspace/db PGHOST=/workspace; initdb -U p >/dev/null; "
              "pg_ctl -s -w -l log -o \"-k /workspace -c listen_addresses=127.0.0.1\" start || { cat log; exit 1; }\n"
              "psql -qAtU p postgres -c 'create table t as select generate_series(1, 20000) n; create index on t (n); select sum(n) from t' -c 'vacuum analyze t'\n"
              "psql -qAtU p -h 127.0.0.1 postgres -c 'set max_parallel_workers_per_gather = 2; set min_parallel_table_scan_size = 0; set parallel_setup_cost = 0; "
              "select count(*) from t'; pgbench -U p -i -q postgres >/dev/null 2>&1; pgbench -U p -c 4 -t 20 postgres >/dev/null 2>&1; pg_dump -U p postgres | wc -l | tr -d 0-9\n"
              "pg_ctl -s -w -m fast stop", user="1000")
    assert out.split() == ["200010000", "20000"], out


CHROMIUM = ("/usr/lib/chromium/chromium --headless=new --disable-gpu --no-first-run --user-data-dir=/tmp/c --virtual-time-budget=3000 "
            "--dump-dom http://127.0.0.1:8000/ {more} 2>/tmp/said; true")


def page(box, more, **how):
    box.put("/workspace/index.html", b"<p id=x>before</p><script>new Worker(URL.createObjectURL(new Blob(['postMessage(6*7)'])))"
            b".onmessage = (e) => { document.getElementById('x').textContent = 'worker ' + e.data }</script>")
    return run(box, "python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 & p=$!\n"
               "until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8000))' 2>/dev/null; do sleep 0.1; done\n"
               + "export HOME=/tmp; " + CHROMIUM.format(more=more) + "; kill $p", **how)


def test_chromium(box):
    need("/usr/lib/chromium/chromium")
    out = page(box, "--no-sandbox")
    assert "worker 42" in out, out + box.sh("tail -c 2000 /tmp/said").out.decode()


@pytest.mark.skipif(not SOAK, reason="heavy: HOLT_SOAK=1")
def test_chromium_in_its_own_sandbox(spawn):
    """With nesting, as an ordinary user inside: its processes make namespaces and filters of their own."""
    need("/usr/lib/chromium/chromium")
    if not spawn.features & boxes.CAN_USERS:
        pytest.skip("one id is mapped: there is no ordinary user inside")
    b, listener = opened(spawn, flags=boxes.NESTING)
    try:
        b.sh("chown 1000 /workspace")
        out = page(b, "", user="1000")
        said = b.sh("tail -c 2000 /tmp/said").out.decode()
    finally:
        refused = listener.stop()
        b.destroy()
    assert "worker 42" in out, out + said
    assert refused == {}


def test_strace(box):
    need("/usr/bin/strace")
    assert "exited with 0" in run(box, "strace -f -o log sh -c 'true; /bin/true'; tail -1 log")


def local_package(top):
    """A repository of one package, for `deb file:`."""
    os.makedirs(f"{top}/p/DEBIAN")
    os.makedirs(f"{top}/p/usr/bin")
    with open(f"{top}/p/DEBIAN/control", "w", encoding="utf-8") as f:
        f.write("Package: holt-otter\nVersion: 1\nArchitecture: all\nMaintainer: t <t@t>\nDescription: t\n")
    with open(f"{top}/p/usr/bin/holt-otter", "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\necho an otter by apt\n")
    os.chmod(f"{top}/p/usr/bin/holt-otter", 0o755)
    subprocess.run(["dpkg-deb", "-Zgzip", "--root-owner-group", "-b", f"{top}/p", f"{top}/otter.deb"], check=True, capture_output=True)
    shutil.rmtree(f"{top}/p")
    with open(f"{top}/otter.deb", "rb") as f:
        deb = f.read()
    with open(f"{top}/Packages", "w", encoding="utf-8") as f:
        f.write("Package: holt-otter\nVersion: 1\nArchitecture: all\nMaintainer: t <t@t>\nDescription: t\n"
                f"Filename: ./otter.deb\nSize: {len(deb)}\nSHA256: {hashlib.sha256(deb).hexdigest()}\n\n")


def test_apt_in_an_image(spawn):
    need("/usr/bin/apt-get", "/usr/bin/dpkg-deb")
    name = "b" * 64
    top = f"{spawn.state}/layers/{name}/fs"
    if not os.path.exists(top):
        with tarfile.open(fileobj=io.BytesIO(debian_image())) as t:
            t.extractall(top, numeric_owner=True)
        os.makedirs(f"{top}/repo")
        local_package(f"{top}/repo")
        with open(f"{top}/etc/apt/sources.list", "w", encoding="utf-8") as f:
            f.write("deb [trusted=yes] file:/repo ./\n")
        owner = spawn.user.uid if spawn.user else os.geteuid()
        subprocess.run(["chown", "-hR", f"{owner}:{owner}", f"{spawn.state}/layers"], check=True)
    box = spawn.create("sb_apt", layers=[name], flags=boxes.UPPER_DISK, connect=False)
    listener = Listener(box)
    try:
        box.connect()
        r = box.sh("export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -y -qq holt-otter && holt-otter && apt-get purge -y -qq holt-otter && dpkg -l | tail -1",
                   timeout=150 * boxes.SLOW)
    finally:
        refused = listener.stop()
        box.destroy()
    assert r.code == 0 and b"an otter by apt" in r.out, str(r)[-3000:]
    assert refused == {}


@pytest.mark.skipif(not SOAK, reason="heavy: HOLT_SOAK=1")
@pytest.mark.timeout(900)
def test_this_repository(spawn):
    """meson and ninja of holt itself, with gcc and musl-gcc."""
    need("/usr/bin/meson", "/usr/bin/ninja", "/usr/bin/gcc")
    if spawn.user and not is_open(SOURCE):
        pytest.skip("this user cannot read the source")
    box = spawn.create("sb_holt", mounts=[(boxes.HOST, SOURCE, "/src", 0, 1)], flags=boxes.UPPER_DISK, connect=False)
    listener = Listener(box)
    try:
        box.connect()
        out = run(box, "meson setup --fatal-meson-warnings /workspace/b /src >/dev/null 2>&1 || meson setup /workspace/b /src | tail -30; "
                  "ninja -C /workspace/b -j2 holtd holt holt-spawn holt-init | tail -1; /workspace/b/holt version", timeout=800)
    finally:
        refused = listener.stop()
        box.destroy()
    assert "holt" in out
    assert refused == {}
