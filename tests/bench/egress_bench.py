"""What run.py measures of the network: a connection, a plain HTTP request and a download through holt-egress beside the same through
HAProxy, through the least proxy that knows CONNECT (HAProxy knows none), and directly, in turns (bench_egress.c)."""
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
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen tcp
    mode tcp
    bind 127.0.0.1:{tcp}
    server s 127.0.0.1:{server}
listen http
    mode http
    bind 127.0.0.1:{http}
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
    """The program, and its ports: of bytes as they are, of requests.  None: it is not installed."""
    from daemon import free_ports, wait_for
    from run import _connects
    program = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
    if not program:
        return None, 0, 0
    tcp, http = free_ports(2)
    with open(f"{directory}/haproxy.cfg", "w", encoding="ascii") as f:
        f.write(HAPROXY.format(tcp=tcp, http=http, server=server))
    p = Program([program, "-db", "-q", "-f", f"{directory}/haproxy.cfg"], stderr=subprocess.DEVNULL)
    wait_for(lambda: _connects(http), 5)
    return p, tcp, http


def start_own(program, *args):
    """bench_egress as a server: the program and its port."""
    p = Program([program, *args], stdout=subprocess.PIPE, text=True)
    return p, p.process.stdout.readline().strip()


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


def text(took, name):
    from run import p95
    return f"{statistics.median(took[name]):.0f} µs (p95 {p95(took[name]):.0f})"


def added(took, name):
    return statistics.median(took[name]) - statistics.median(took["direct"])


def bench_connections(table, args, program, server, ports):
    """ports: of holt, and those of `floor`, `tcp` and `http` that are there."""
    turns = str(args.turns * 10)
    ways = ["direct=direct:0", f"holt=connect:{ports['holt']}", f"floor=connect:{ports['floor']}"]
    took = values([program, "byte", turns, server, *ways, *([f"tcp=tcp:{ports['tcp']}"] if "tcp" in ports else [])])
    beside = f"directly: {text(took, 'direct')}; the least CONNECT proxy: {text(took, 'floor')}"
    beside += f"; HAProxy, tcp, a round trip less: {text(took, 'tcp')}" if "tcp" in ports else "; HAProxy is not installed"
    table.add("connection through holt-egress (CONNECT) to the first byte back", text(took, "holt"), beside,
              f"+{added(took, 'holt'):.0f} µs (the least +{added(took, 'floor'):.0f})", "≤ 100 µs added", added(took, "holt") <= 100)
    if "http" not in ports:
        return
    took = values([program, "get", turns, server, "direct=direct:0", f"holt=tcp:{ports['holt']}", f"haproxy=tcp:{ports['http']}"])
    table.add("plain HTTP request through holt-egress to the first byte back", text(took, "holt"),
              f"directly: {text(took, 'direct')}; HAProxy, http: {text(took, 'haproxy')}",
              f"+{added(took, 'holt'):.0f} µs (HAProxy +{added(took, 'haproxy'):.0f})", "", None)


def bench_egress(table, args, directory):
    from egress import Egress
    from run import cpu_us
    program = f"{args.build}/tests/bench/bench_egress"
    server, port = start_own(program, "serve")
    floor, least = start_own(program, "floor", port)
    egress = Egress(f"{args.build}/holt-egress")
    ours = egress.box({"allow": [{"cidr": "127.0.0.1", "ports": [int(port)]}]})
    threading.Thread(target=drain, args=(egress,), daemon=True).start()  # as holtd does
    haproxy, theirs, http = start_haproxy(directory, port)
    ways = ["direct=direct:0", f"holt=connect:{ours}"] + ([f"haproxy=tcp:{theirs}"] if haproxy else [])
    try:
        bench_connections(table, args, program, port, {"holt": ours, "floor": least, **({"tcp": theirs, "http": http} if haproxy else {})})
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
        for p in filter(None, (server, floor, haproxy)):
            p.stop()
        egress.close()
