"""What run.py measures of the network: a connection and a download through holt-egress beside the same through HAProxy, and directly,
in turns (bench_egress.c)."""
import os
import shutil
import statistics
import subprocess
import threading

HAPROXY = """
global
    maxconn 1000
    nbthread 1
    tune.bufsize 131072
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend in
    bind 127.0.0.1:{port}
    default_backend out
backend out
    server s 127.0.0.1:{server}
"""


class Program:
    def __init__(self, argv, **more):
        from daemon import die_with_parent
        self.process = subprocess.Popen(argv, preexec_fn=die_with_parent, **more)

    def stop(self):
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


def start_haproxy(directory, server):
    from daemon import free_ports, wait_for
    from run import _connects
    program = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
    if not program:
        return None, 0
    port = free_ports()[0]
    with open(f"{directory}/haproxy.cfg", "w", encoding="ascii") as f:
        f.write(HAPROXY.format(port=port, server=server))
    p = Program([program, "-db", "-q", "-f", f"{directory}/haproxy.cfg"], stderr=subprocess.DEVNULL)
    wait_for(lambda: _connects(port), 5)
    return p, port


def values(argv):
    """{name: [value of each turn]}"""
    out = subprocess.run(argv, capture_output=True, text=True, timeout=600)
    if out.returncode:
        raise RuntimeError(f"{' '.join(argv)} ended with {out.returncode}: {out.stderr}")
    found = {}
    for line in out.stdout.splitlines():
        name, value = line.split("\t")
        found.setdefault(name, []).append(float(value))
    return found


def drain(egress):
    try:
        while egress.sock.recv(65536):
            pass
    except OSError:
        pass


def bench_egress(table, args, directory):
    from egress import Egress
    from run import cpu_us, p95
    program = f"{args.build}/tests/bench/bench_egress"
    server = Program([program, "serve"], stdout=subprocess.PIPE, text=True)
    port = server.process.stdout.readline().strip()
    egress = Egress(f"{args.build}/holt-egress")
    ours = egress.box({"allow": [{"cidr": "127.0.0.1", "ports": [int(port)]}]})
    threading.Thread(target=drain, args=(egress,), daemon=True).start()  # as holtd does
    haproxy, theirs = start_haproxy(directory, port)
    ways = ["direct=direct:0", f"holt=connect:{ours}"] + ([f"haproxy=tcp:{theirs}"] if haproxy else [])
    try:
        took = values([program, "connect", str(args.turns * 10), port, *ways])
        mid = {k: statistics.median(v) for k, v in took.items()}

        def text(k):
            return f"{mid[k]:.0f} µs (p95 {p95(took[k]):.0f})"
        added = mid["holt"] - mid["direct"]
        beside = f"directly: {text('direct')}" + (f"; HAProxy, tcp: {text('haproxy')}" if haproxy else "; HAProxy is not installed")
        table.add("connection through holt-egress (CONNECT) to the first byte back", text("holt"), beside, f"+{added:.0f} µs",
                  "≤ 100 µs added", added <= 100)
        rates, cpu = {}, {}
        pids = {"holt": egress.process.pid, **({"haproxy": haproxy.process.pid} if haproxy else {})}
        for _ in range(args.rounds):
            for way in ways:  # each by itself, for its CPU time; in turns all the same
                name = way.split("=")[0]
                before = cpu_us(pids[name]) if name in pids else 0
                for k, v in values([program, "bulk", "1", str(args.mib * 4), port, way]).items():
                    rates.setdefault(k, []).extend(v)
                if name in pids:
                    cpu.setdefault(name, []).append((cpu_us(pids[name]) - before) / 1000 / (args.mib * 4 / 1024))

        def rate(k):
            spent = f", {statistics.median(cpu[k]):.0f} ms CPU per GiB" if k in cpu else ""
            return f"{statistics.median(rates[k]):,.0f} MB/s{spent}"
        if not haproxy:
            table.add("download through holt-egress", rate("holt"), "HAProxy is not installed", "", "≥ 0.8 × HAProxy", None)
            return
        ratio = statistics.median(a / b for a, b in zip(rates["holt"], rates["haproxy"]))
        table.add("download through holt-egress", rate("holt"), f"HAProxy, tcp: {rate('haproxy')}; directly: {rate('direct')}", f"{ratio:.2f}",
                  "≥ 0.8 × HAProxy", ratio >= 0.8)
    finally:
        for p in filter(None, (server, haproxy)):
            p.stop()
        egress.close()
