"""Many WebSocket readers of one busy command, by sbx's interface (tests/bench/bench_streams.c reads)."""
import json
import statistics
import subprocess
import time
import urllib.request

READERS = 1000
LINE = "line $i of a build that goes on"
# As a build prints, then as fast as a shell can.
PACED = f"i=0; while [ $i -lt 300 ]; do echo {LINE}; i=$((i+1)); sleep 0.01; done"
BUSY = f"i=0; while [ $i -lt 20000 ]; do echo {LINE}; i=$((i+1)); done"


def ask(holtd, method, path, body=None):
    r = urllib.request.Request(f"{holtd.url}{path}", method=method, data=None if body is None else json.dumps(body).encode(),
                               headers={"authorization": f"Bearer {holtd.token}"})
    with urllib.request.urlopen(r, timeout=60) as reply:
        return json.loads(reply.read())


def one(holtd, args, readers, line, cpu_us):
    """(whole, events, deliveries, seconds, p50, p95, p99, max), CPU of holtd in us, its resident MiB."""
    box = ask(holtd, "POST", "/sandboxes", {})["id"]
    p = subprocess.Popen([f"{args.build}/tests/bench/bench_streams", str(holtd.port), f"{holtd.state}/admin-token", box, str(readers)],
                         stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "ready\n", "bench_streams did not connect"
        time.sleep(0.2)
        before = cpu_us(holtd.pid)
        ask(holtd, "POST", f"/sandboxes/{box}/exec", {"command": ["sh", "-c", line]})
        got = p.stdout.readline().split()
        cpu, rss = cpu_us(holtd.pid) - before, holtd.rss_kib() / 1024
        assert p.wait(30) == 0 and len(got) == 8, got
        return [float(x) for x in got], cpu, rss
    finally:
        p.kill()
        p.wait()
        p.stdout.close()
        ask(holtd, "DELETE", f"/sandboxes/{box}")


def bench_streams(table, make, args, cpu_us):
    holtd = make("streams", "--runtime", "native", config="connections_per_peer: 20000\nconnections_max: 20000\nlog_level: warn\n")
    for name, line in (("a line every 10 ms", PACED), ("20,000 lines at once", BUSY)):
        rows = [one(holtd, args, READERS, line, cpu_us) for _ in range(max(1, min(args.rounds, 3)))]
        whole = min(r[0][0] for r in rows)
        rate = statistics.median(r[0][2] / r[0][3] for r in rows)
        cost = statistics.median(r[1] / r[0][2] for r in rows)
        late = [statistics.median(r[0][k] for r in rows) / 1000 for k in (4, 5, 7)]
        table.add(f"{READERS:,} WebSocket readers of one command, {name}",
                  f"{rate:,.0f} events/s, {cost:.2f} µs CPU each; delay {late[0]:.1f} ms at the median, {late[1]:.1f} at 95 %, {late[2]:.1f} at most; "
                  f"holtd {max(r[2] for r in rows):.0f} MiB",
                  f"{whole:,.0f} readers had every event", "", "all of them", whole == READERS)
