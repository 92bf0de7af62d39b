#!/usr/bin/env python3
"""Measures holtd against floor programs and peers, interleaved in one run on one machine, and writes docs/benchmarks.md.

usage: run.py [--build DIR] [--seconds N] [--rounds N] [--only get,append,grpc,memory,team,sandbox,pool,bulk,many,streams,egress] [--no-write]
CPU per request is user and system time of the server's processes, from /proc/PID/stat, over the requests answered.
A ratio is the median of the rounds' ratios; p95 is over the rounds.
"""
import argparse
import os
import platform
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(0, f"{ROOT}/tests/integration")
sys.path.insert(0, f"{ROOT}/tests/bench")
ALL = "get,append,grpc,memory,team,sandbox,pool,bulk,many,streams,egress"

NGINX = """
daemon off; worker_processes 1; pid {d}/nginx.pid; error_log {d}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000000; default_type application/json; etag on;
  client_body_temp_path {d}/b; proxy_temp_path {d}/p; fastcgi_temp_path {d}/f; uwsgi_temp_path {d}/u; scgi_temp_path {d}/s;
  server {{ listen 127.0.0.1:{port}; location / {{ root {d}/www; }} }}
}}
"""
WRK_POST = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer {token}"
wrk.body = '{{"name": "bench", "role": "observer"}}'
"""


def p95(values):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


class Table:
    def __init__(self):
        self.rows = []
        self.texts = []

    def add(self, job, measured, beside, ratio, aim, met):
        self.rows.append((job, measured, beside, ratio, aim, {True: "yes", False: "**no**", None: ""}[met]))
        print(f"{job}\n    {measured}   beside: {beside or '-'}   ratio: {ratio or '-'}   aim: {aim or '-'}"
              + ("" if met is None else f"   met: {'yes' if met else 'NO'}"), flush=True)

    def text(self, markdown):
        """A table of its own, printed after the jobs."""
        self.texts.append(markdown)
        print(markdown, flush=True)

    def markdown(self):
        head = "| job | holt | beside | ratio | aim | met |\n| --- | --- | --- | --- | --- | --- |\n"
        return head + "".join("| " + " | ".join(r) + " |\n" for r in self.rows) + "".join(self.texts)

    def verdict(self):
        """Each aim of the design that can be measured today, met or not."""
        width = max(len(r[0]) for r in self.rows)
        for job, measured_, _, ratio, aim, met in self.rows:
            if aim:
                print(f"  {({'yes': 'met', '**no**': 'NOT MET'}).get(met, 'not measured'):12}  {job:{width}}  {ratio or measured_}  (aim {aim})")


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(x) for x in f.read().split()]
    except FileNotFoundError:
        return []


def cpu_us(pid):
    total = 0
    for p in [pid, *children(pid)]:
        with open(f"/proc/{p}/stat", encoding="ascii", errors="replace") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total * 1e6 / os.sysconf("SC_CLK_TCK")


def wrk(url, seconds, connections=32, headers=(), script=None):
    """(requests per second, requests, latency of the median in ms, of the 99th percentile in ms)"""
    argv = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency"]
    for h in headers:
        argv += ["-H", h]
    if script:
        argv += ["-s", script]
    out = subprocess.run([*argv, url], capture_output=True, text=True, check=True).stdout
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)", out)
    if bad:
        raise RuntimeError(f"wrk {url}: {bad[0]}")

    def ms(mark):
        value, unit = re.search(rf"{mark}%\s+([\d.]+)(us|ms|s)\b", out).groups()
        return float(value) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]

    count = int(re.search(r"(\d+) requests in", out)[1])
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]), count, ms(50), ms(99)


def h2load(url, count, *args):
    out = subprocess.run(["h2load", "-n", str(count), *args, url], capture_output=True, text=True, check=True).stdout
    ok = int(re.search(r"(\d+) succeeded", out)[1])
    if ok != count:
        raise RuntimeError(f"h2load {url}: {count - ok} of {count} failed\n{out}")
    return float(re.search(r"finished in .*?, ([\d.]+) req/s", out)[1])


def measured(pid, work):
    """work()'s value, and the CPU time of pid that passed meanwhile, in µs"""
    before = cpu_us(pid)
    value = work()
    return value, cpu_us(pid) - before


class Nginx:
    def __init__(self, directory, body, port):
        from daemon import die_with_parent, wait_for
        os.makedirs(f"{directory}/www")
        os.chmod(directory, 0o755)
        with open(f"{directory}/www/file.json", "wb") as f:
            f.write(body)
        with open(f"{directory}/nginx.conf", "w", encoding="ascii") as f:
            f.write(("user root;" if os.getuid() == 0 else "") + NGINX.format(d=directory, port=port))
        program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        self.process = subprocess.Popen([program, "-c", f"{directory}/nginx.conf", "-e", f"{directory}/error.log"],
                                        preexec_fn=die_with_parent)
        self.url = f"http://127.0.0.1:{port}/file.json"
        wait_for(lambda: _connects(port), 5)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def _connects(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def bench_get(table, holtd, args, directory):
    from daemon import free_ports
    auth = f"Authorization: Bearer {holtd.token}"
    url = f"{holtd.url}/holt/v1/tokens/self"
    body = subprocess.run(["curl", "-sS", "--noproxy", "*", "-H", auth, url], capture_output=True, check=True).stdout
    nginx = Nginx(f"{directory}/nginx", body, free_ports()[0])
    ours, theirs = [], []
    try:
        wrk(url, 1, headers=[auth])
        wrk(nginx.url, 1, headers=[auth])
        for _ in range(args.rounds):
            for pid, target, to in ((holtd.pid, url, ours), (nginx.process.pid, nginx.url, theirs)):
                (rate, count, mid, late), cpu = measured(pid, lambda t=target: wrk(t, args.seconds, headers=[auth]))
                to.append((rate, cpu / count, mid, late))
    finally:
        nginx.stop()

    def text(rows):
        rates, cpus = [r[0] for r in rows], [r[1] for r in rows]
        return (f"{statistics.median(rates):,.0f}/s, {statistics.median(cpus):.1f} µs CPU (p95 {p95(cpus):.1f}), "
                f"latency {statistics.median(r[2] for r in rows):.2f} ms, p99 {statistics.median(r[3] for r in rows):.2f} ms")

    ratio = statistics.median(o[1] / t[1] for o, t in zip(ours, theirs))
    table.add(f"authenticated GET of {len(body)} bytes, 32 connections", text(ours), f"nginx, static file: {text(theirs)}",
              f"CPU {ratio:.2f}", "CPU ≤ 1.5 ×", ratio <= 1.5)


def appends(program, directory, postgres=False):
    """What a program of tests/bench says of itself, on a fresh database: appends per second."""
    path = f"{directory}/append.db"
    argv = [f"{ROOT}/tests/tools/postgres.py", program, "postgres"] if postgres else [program, path]
    r = subprocess.run(argv, capture_output=True, text=True)
    if postgres and r.returncode == 77:
        return 0.0
    found = re.search(r"([\d.]+) appends/s", r.stdout)
    for end in ("", "-wal", "-shm", ".lock"):
        if os.path.exists(path + end):
            os.unlink(path + end)
    if r.returncode or not found:
        raise RuntimeError(f"{program} ended with {r.returncode}:\n{r.stdout}{r.stderr}")
    return float(found[1])


def token_creates(holtd, args, directory):
    script = f"{directory}/post.lua"
    with open(script, "w", encoding="ascii") as f:
        f.write(WRK_POST.format(token=holtd.token))
    return wrk(f"{holtd.url}/holt/v1/tokens", args.seconds, script=script)[0]


def bench_append(table, make, args, directory):
    rows = []
    for i in range(args.rounds):  # a daemon each: the number of tokens is limited
        holtd = make(f"append{i}", config="connections_per_peer: 1000\nlog_level: warn\n")
        rows.append((appends(f"{args.build}/tests/bench/bench_store", directory),
                     appends(f"{args.build}/tests/bench/floor_sqlite", directory),
                     token_creates(holtd, args, directory)))
    beside = f"bare SQLite doing the same group commits: {statistics.median(r[1] for r in rows):,.0f}/s"
    ratio = statistics.median(r[0] / r[1] for r in rows)
    table.add("durable event append, 32 clients, in one process", f"{statistics.median(r[0] for r in rows):,.0f}/s",
              beside, f"{ratio:.2f}", "≥ 0.5", ratio >= 0.5)
    store = statistics.median(appends(f"{args.build}/tests/bench/bench_store", directory, True) for _ in range(args.rounds))
    if store > 0:
        table.add("the same on a PostgreSQL server of this machine", f"{store:,.0f}/s", beside,
                  f"{store / statistics.median(r[1] for r in rows):.2f}", "", None)
    ratio = statistics.median(r[2] / r[1] for r in rows)
    table.add("durable token create over HTTP (a row and its event), 32 clients",
              f"{statistics.median(r[2] for r in rows):,.0f}/s", beside, f"{ratio:.2f}", "", None)


def bench_grpc(table, holtd, args, directory):
    """An empty HealthCheckRequest is one gRPC frame of five zero bytes."""
    with open(f"{directory}/frame", "wb") as f:
        f.write(b"\0" * 5)
    count = args.seconds * 8000
    grpc = ["-t1", "-c32", "-m1", "-d", f"{directory}/frame", "-H", "content-type: application/grpc", "-H", "te: trailers"]
    g, h = [], []
    for _ in range(args.rounds):
        rate, cpu = measured(holtd.pid, lambda: h2load(f"{holtd.url}/grpc.health.v1.Health/Check", count, *grpc))
        g.append((rate, cpu / count))
        rate, cpu = measured(holtd.pid, lambda: h2load(f"{holtd.url}/healthz", count, "-t1", "-c32", "--h1"))
        h.append((rate, cpu / count))

    def text(rows):
        return f"{statistics.median(r[0] for r in rows):,.0f}/s, {statistics.median(r[1] for r in rows):.1f} µs CPU"

    ratio = statistics.median(a[1] / b[1] for a, b in zip(g, h))
    table.add("gRPC unary health check, 32 connections", text(g), f"the same over HTTP/1.1: {text(h)}",
              f"CPU {ratio:.2f}", "", None)


def bench_memory(table, make, args):
    from raw import get
    holtd = make("memory", config="connections_max: 12000\nconnections_per_peer: 12000\nidle_ms: 10m\n")
    time.sleep(1)
    idle = holtd.rss_kib()
    table.add("resident memory, idle", f"{idle / 1024:.1f} MiB", "", "", "≤ 12 MiB", idle <= 12 * 1024)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    want = 10000 if hard == resource.RLIM_INFINITY or hard > 10500 else hard - 500
    resource.setrlimit(resource.RLIMIT_NOFILE, (want + 500, hard))
    held = []
    for i in range(want):
        s = socket.create_connection(("127.0.0.1", holtd.port), 10)
        s.sendall(get(host="127.0.0.1").encode())
        assert s.recv(4096).startswith(b"HTTP/1.1 200")
        held.append(s)
    time.sleep(1)
    full = holtd.rss_kib()
    table.add(f"resident memory, {want:,} open idle connections", f"{full / 1024:.1f} MiB", "", "",
              "", None)
    print(f"    {(full - idle) * 1024 / want:.0f} bytes each")
    for s in held:
        s.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        cpu = re.search(r"model name\s*:\s*(.*)", f.read())
    return f"{os.cpu_count()} cores{' of ' + cpu[1].strip() if cpu else ''}, Linux {platform.release()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=f"{ROOT}/build")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=ALL, help="parts, with commas between")
    parser.add_argument("--turns", type=int, default=200, help="rounds of what is timed one at a time")
    parser.add_argument("--rate-ms", type=int, default=2000)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--many", type=int, default=1000)
    parser.add_argument("--team", type=int, default=6000, help="claims and messages of one round")
    parser.add_argument("--subscribers", type=int, default=1000)
    parser.add_argument("--no-write", action="store_true")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    os.environ["HOLT_BUILD"] = args.build
    from daemon import Holtd, end_fakes
    table, made = Table(), []
    # In the build directory: /tmp may be memory.
    with tempfile.TemporaryDirectory(prefix="bench.", dir=args.build) as directory:
        def make(name, *flags, **more):
            made.append(Holtd(f"{directory}/{name}", *flags, **more))
            return made[-1]

        try:
            wanted = args.only.split(",")
            unknown = [w for w in wanted if w not in ALL.split(",")]
            if unknown:
                parser.error(f"there is no part '{unknown[0]}': {ALL}")
            if {"sandbox", "pool", "bulk", "many"} & set(wanted):
                from sandbox import bench_sandbox
                bench_sandbox(table, make, args, directory, wanted)
            if "egress" in wanted:
                from egress_bench import bench_egress
                bench_egress(table, args, directory)
            holtd = make("main", config="connections_per_peer: 1000\nlog_level: warn\n")
            if "get" in wanted:
                bench_get(table, holtd, args, directory)
            if "append" in wanted:
                bench_append(table, make, args, directory)
            if "grpc" in wanted:
                bench_grpc(table, holtd, args, directory)
            if "memory" in wanted:
                bench_memory(table, make, args)
            if "streams" in wanted:
                from streams import bench_streams
                bench_streams(table, make, args, cpu_us)
            if "team" in wanted:
                from team import bench_team
                bench_team(table, make, args, directory)
        finally:
            for d in made:
                d.kill()
            end_fakes(directory)
    if not args.no_write:
        with open(f"{ROOT}/docs/benchmarks.md", "w", encoding="utf-8") as f:
            f.write("# Benchmarks\n\nPrinted by `make bench`; every line is measured in one run, holt and what stands beside it in "
                    f"turns.\n\nMachine: {machine()}; {args.rounds} rounds of {args.seconds} s.\n\n{table.markdown()}")
    table.verdict()
    bad = [r[0] for r in table.rows if r[5] == "**no**"]
    print("every aim is met" if not bad else f"aims not met: {'; '.join(bad)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
