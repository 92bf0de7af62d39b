"""What run.py measures of sandboxes: holt over HTTP beside a floor program, bwrap, crun, runc and posix_spawn, in turns (bench_jobs.c);
bytes through logs and files (bench_bulk.c); a thousand sandboxes at once."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import time

PEERS = {"bwrap": "bwrap", "crun": "crun", "crun-exec": "crun", "runc": "runc"}
NAMES = {
    "posix_spawn": "posix_spawn of `true`, no sandbox",
    "floor": "floor: sandbox, `true`, gone; memory upper",
    "run": "**holt: POST /holt/v1/run of `true`**",
    "floor-dir": "floor with a directory upper",
    "three": "**holt: create, exec `true`, destroy: three requests, disk upper**",
    "first": "**holt: create, then exec: first output; from the pool**",
    "first-cold": "**holt: the same, made cold**",
    "run-paced": "**holt: POST /holt/v1/run, from the pool**",
    "run-cold": "**holt: the same, made cold**",
    "burst": "**holt: 100 creates at once, 10 of them made ahead**",
    "burst-cold": "**holt: the same, all made cold**",
    "exec": "**holt: exec of `true` in a running sandbox**",
    "create-destroy": "**holt: create, destroy: two requests, disk upper**",
    "bwrap": "bwrap, read-only /usr and a tmpfs",
    "crun": "crun run (busybox)",
    "crun-exec": "crun exec (busybox)",
    "runc": "runc run (busybox)",
}


class Jobs:
    """bench_jobs against one holtd.  What fails is said and remembered, not dropped."""

    def __init__(self, holtd, args, directory, cold=None):
        self.env = {**os.environ, **({"HOLT_BENCH_COLD": f"{cold.port}:{cold.state}/admin-token"} if cold else {})}
        self.argv = [f"{args.build}/tests/bench/bench_jobs", directory, str(holtd.port), f"{holtd.state}/admin-token"]
        self.missing = {}
        for job, program in PEERS.items():
            if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
                self.missing[job] = f"{program} is not installed"

    def _run(self, mode, jobs):
        jobs = [j for j in jobs if j not in self.missing]
        r = subprocess.run([*self.argv, *map(str, mode), *jobs], capture_output=True, text=True, timeout=300, env=self.env)
        found = {}
        for line in r.stdout.splitlines():
            name, count, *rest = line.split("\t")
            if count == "failed":
                why = r.stderr.strip().splitlines()
                self.missing[name] = f"it failed: {why[-1] if why else 'no reason given'}"
            else:
                found[name] = dict(zip(("median", "p95", "rate"), map(float, rest)))
        if r.returncode:
            raise RuntimeError(f"bench_jobs ended with {r.returncode}: {r.stderr}")
        return found

    def turns(self, rounds, *jobs):
        return self._run(("turns", rounds), jobs)

    def rate(self, workers, ms, *jobs):
        return self._run(("rate", workers, ms), jobs)


def make_bundles(directory):
    """Root filesystems of crun and runc: a busybox, nothing else."""
    busybox = shutil.which("busybox")
    runc = shutil.which("runc", path=os.environ["PATH"] + ":/usr/sbin")
    if not busybox or not runc:
        return
    for name, argv in (("run", ["/bin/true"]), ("idle", ["/bin/sleep", "1000000"])):
        bundle = f"{directory}/oci/{name}"
        for sub in ("bin", "proc", "dev", "sys", "tmp"):
            os.makedirs(f"{bundle}/rootfs/{sub}")
        shutil.copy(busybox, f"{bundle}/rootfs/bin/busybox")
        for applet in ("true", "sleep"):
            os.symlink("busybox", f"{bundle}/rootfs/bin/{applet}")
        subprocess.run([runc, "spec"], cwd=bundle, check=True)
        with open(f"{bundle}/config.json", encoding="utf-8") as f:
            config = json.load(f)
        config["process"]["terminal"] = False
        config["process"]["args"] = argv
        with open(f"{bundle}/config.json", "w", encoding="utf-8") as f:
            json.dump(config, f)


def _ms(us):
    return f"{us / 1e3:.2f} ms"


def _both(row):
    return f"{_ms(row['median'])} (p95 {_ms(row['p95'])})"


def _times(table, title, found, missing, floors):
    """A table of latencies, each with its ratios."""
    lines = [f"\n### {title}\n", "| | median | p95 |" + "".join(f" × {f} |" for f in floors), "| --- |" + " --- |" * (2 + len(floors))]
    for name, row in found.items():
        ratios = "".join(f" {row['median'] / found[f]['median']:.2f} |" if f in found else " |" for f in floors)
        lines.append(f"| {NAMES.get(name, name)} | {_ms(row['median'])} | {_ms(row['p95'])} |{ratios}")
    lines += [f"| {NAMES.get(name, name)} | not measured: {why} | |" + " |" * len(floors) for name, why in missing.items()]
    table.text("\n".join(lines) + "\n")


def bench_turns(table, jobs, args):
    found = jobs.turns(args.turns, "posix_spawn", "floor", "run", "bwrap", "floor-dir", "three", "exec", "crun", "crun-exec", "runc")
    _times(table, "One at a time", found, jobs.missing, ["floor", "posix_spawn"])

    def ratio(a, b):
        return found[a]["median"] / found[b]["median"] if a in found and b in found else None

    def aim(job, mine, other, text, limit, below=True):
        """below: mine / other ≤ limit; else other / mine ≥ limit"""
        r = ratio(mine, other) if below else ratio(other, mine)
        if r is None:
            table.add(job, "", jobs.missing.get(other, ""), "", text, None)
            return
        table.add(job, _both(found[mine]), f"{other}: {_both(found[other])}", f"{r:.2f}", text, r <= limit if below else r >= limit)

    aim("run in one request, memory upper", "run", "floor", "≤ 1.5 × the floor", 1.5)
    aim("the same against bwrap", "run", "bwrap", "faster", 1.0, below=False)
    aim("the same against crun run", "run", "crun", "≥ 2.5 × faster", 2.5, below=False)
    aim("the same against runc run", "run", "runc", "≥ 7 × faster", 7, below=False)
    aim("create, exec, destroy as three requests, disk upper", "three", "floor-dir", "≤ 1.6 × the floor with a directory", 1.6)
    aim("exec in a running sandbox over HTTP", "exec", "posix_spawn", "≤ 2 × posix_spawn", 2)
    aim("the same against crun exec", "exec", "crun-exec", "≥ 8 × faster", 8, below=False)


def bench_pool(table, make, args, directory):
    """In turns against two holtd, one with a pool and one without; between requests there is time to make the next."""
    common = "log_level: warn\nconnections_per_peer: 1000\n"
    warm, cold = make("warm", config=common + "pool_size: 10\n"), make("cold", config=common + "pool_size: 0\n")
    jobs = Jobs(warm, args, directory, cold)
    time.sleep(2)
    found = jobs.turns(args.turns, "posix_spawn", "first", "first-cold", "run-paced", "run-cold")
    bursts = jobs.turns(max(3, args.turns // 20), "burst", "burst-cold")
    _times(table, "The warm pool", found, jobs.missing, ["posix_spawn"])
    _times(table, "A hundred creates at once", bursts, jobs.missing, [])
    first, floor = found["first"], found["posix_spawn"]
    aim = max(1000, 3 * floor["median"])
    table.add("warm pool: create to first output", _both(first), f"cold: {_both(found['first-cold'])}; posix_spawn: {_both(floor)}",
              f"{first['median'] / floor['median']:.2f}", "≤ 1 ms or ≤ 3 × posix_spawn", first["median"] <= aim)
    table.add("the same as one request (run)", _both(found["run-paced"]), f"cold: {_both(found['run-cold'])}",
              f"{found['run-paced']['median'] / floor['median']:.2f}", "", None)
    table.add("100 creates at once, 10 of them ready", _both(bursts["burst"]), f"all cold: {_both(bursts['burst-cold'])}",
              f"{bursts['burst']['median'] / bursts['burst-cold']['median']:.2f}", "", None)


def bench_rate(table, jobs, args):
    at_once = jobs.rate(8, args.rate_ms, "floor", "run", "floor-dir", "three", "bwrap", "crun", "runc")
    _times(table, "Eight at once", at_once, jobs.missing, ["floor", "floor-dir"])
    lines = ["\n### Sandboxes a second\n", "| clients or workers | floor | holt: run | × | floor, directory | holt: create, destroy | × |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for workers in (1, 2, 4, 8):
        found = jobs.rate(workers, args.rate_ms, "floor", "run", "floor-dir", "create-destroy")
        rates = {k: v["rate"] for k, v in found.items()}
        lines.append(f"| {workers} | {rates['floor']:.0f} | {rates['run']:.0f} | {rates['run'] / rates['floor']:.2f} | {rates['floor-dir']:.0f} | "
                     f"{rates['create-destroy']:.0f} | {rates['create-destroy'] / rates['floor-dir']:.2f} |")
        if workers == 8:
            r = rates["create-destroy"] / rates["floor-dir"]
            table.add("create and destroy, 8 clients", f"{rates['create-destroy']:.0f}/s", f"floor with 8 workers: {rates['floor-dir']:.0f}/s",
                      f"{r:.2f}", "≥ 0.7 ×", r >= 0.7)
            r = rates["run"] / rates["floor"]
            table.add("run, 8 clients", f"{rates['run']:.0f}/s", f"floor with 8 workers: {rates['floor']:.0f}/s", f"{r:.2f}", "≥ 0.7 ×", r >= 0.7)
    table.text("\n".join(lines) + "\n")


def bench_bulk(table, holtd, args, directory):
    peak = holtd.peak_kib()
    from run import measured
    r, cpu = measured(holtd.pid, lambda: subprocess.run(
        [f"{args.build}/tests/bench/bench_bulk", directory, str(holtd.port), f"{holtd.state}/admin-token", str(args.mib), str(args.rounds)],
        capture_output=True, text=True, timeout=600))
    if r.returncode:
        raise RuntimeError(f"bench_bulk: {r.stderr}")
    rate = {name: float(mid) for name, mid, _ in (line.split("\t") for line in r.stdout.splitlines())}
    grown = (holtd.peak_kib() - peak) / 1024
    gib = 3 * args.mib * args.rounds / 1024
    for name, bare, job, beside, text in (
            ("stream", "relay", "stdout, sandbox → log → client", "a pipe through one relay process", "≥ 1 ×"),
            ("file-in", "bare-in", "file upload", "a bare process, TCP → file", ""),
            ("file-out", "bare-out", "file download", "a bare process, file → TCP", "")):
        ratio = rate[name] / rate[bare]
        table.add(f"{job}, {args.mib} MiB", f"{rate[name]:.0f} MB/s", f"{beside}: {rate[bare]:.0f} MB/s", f"{ratio:.2f}", text,
                  ratio >= 1 if text else None)
    table.add("holtd's memory while these went through", f"grew by {grown:.1f} MiB; {cpu / 1e3 / gib:.0f} ms of CPU per GiB", "", "",
              "constant (≤ 8 MiB)", grown <= 8)


def _meminfo():
    with open("/proc/meminfo", encoding="ascii") as f:
        return {k: int(v) for k, v in re.findall(r"^(\w+):\s+(\d+)", f.read(), re.M)}


def _kernel_kib(m):
    return m["Slab"] + m["KernelStack"] + m["PageTables"] + m.get("Percpu", 0)


def _private_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return sum(int(v) for v in re.findall(r"^Private_\w+:\s+(\d+)", f.read(), re.M))


def _is_init(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().startswith(b"holt-init\0")
    except OSError:
        return False


def _inits(state):
    """The children of this installation's holt-spawn that are an init."""
    from daemon import programs_of
    from run import children
    return [c for p in programs_of(state, "holt-spawn") for c in children(p) if _is_init(c)]


def destroy_all(holtd):
    def rest():
        return [b["id"] for b in holtd.ok("GET", "/holt/v1/sandboxes?limit=1000")["sandboxes"]]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        while ids := rest():
            list(pool.map(lambda i: holtd.request("DELETE", f"/holt/v1/sandboxes/{i}", timeout=60), ids))


def bench_many(table, make, args, directory):
    holtd = make("many", config="log_level: warn\n")
    jobs = Jobs(holtd, args, directory)
    few = jobs.turns(60, "create-destroy", "floor-dir")
    time.sleep(1)
    before = _meminfo()
    jobs.turns(args.many - 3, "create")  # and three to warm up
    time.sleep(1)
    after = _meminfo()
    private = [_private_kib(p) for p in _inits(holtd.state)]
    many = jobs.turns(60, "create-destroy", "floor-dir")
    ratio = many["create-destroy"]["median"] / few["create-destroy"]["median"]
    table.add(f"create and destroy while {args.many:,} are live", _both(many["create-destroy"]), f"with one: {_both(few['create-destroy'])}; "
              f"the floor then: {_both(many['floor-dir'])}, {_both(few['floor-dir'])}", f"{ratio:.2f}", "≤ 1.5 ×", ratio <= 1.5)
    mine = sum(private) / len(private)
    table.add("memory of an idle sandbox's init", f"{mine:.0f} KiB private ({len(private):,} inits)", "", "", "≤ 64 KiB", mine <= 64)
    kernel = (_kernel_kib(after) - _kernel_kib(before)) / args.many
    whole = (mine + kernel) / 1024
    table.add("the same with the kernel's share", f"{whole:.2f} MiB (slab, stacks, page tables, percpu); MemAvailable fell by "
              f"{(before['MemAvailable'] - after['MemAvailable']) / 1024 / args.many:.2f} MiB each", "", "", "≤ 0.7 MiB", whole <= 0.7)
    rss = holtd.rss_kib() / 1024
    table.add(f"holtd resident with {args.many:,} idle sandboxes", f"{rss:.1f} MiB", "", "", "≤ 64 MiB", rss <= 64)
    holtd.process.kill()
    holtd.process.wait()
    again = make("many", config="log_level: warn\n")
    count = len(again.ok("GET", "/holt/v1/sandboxes?limit=1000")["sandboxes"])
    table.add(f"restart with {args.many:,} live sandboxes to the first answered request", f"{again.ready_after * 1e3:.0f} ms ({count:,} listed)", "", "",
              "≤ 1 s", again.ready_after <= 1)


def bench_sandbox(table, make, args, directory, wanted):
    made = []

    def make_native(name, **more):
        made.append(make(name, "--runtime", "native", **more))
        return made[-1]

    try:
        _bench_sandbox(table, make_native, args, directory, wanted)
    finally:  # sandboxes outlive their holtd
        for d in made:
            if d.alive():
                destroy_all(d)


def _bench_sandbox(table, make, args, directory, wanted):
    os.makedirs(f"{directory}/oci", exist_ok=True)
    make_bundles(directory)
    holtd = make("sandbox", config="log_level: warn\nconnections_per_peer: 1000\n")
    jobs = Jobs(holtd, args, directory)
    if "sandbox" in wanted:
        bench_turns(table, jobs, args)
        bench_rate(table, jobs, args)
        for name, why in jobs.missing.items():
            print(f"    not measured: {NAMES[name]}: {why}")
    if "pool" in wanted:
        bench_pool(table, make, args, directory)
    if "bulk" in wanted:
        bench_bulk(table, holtd, args, directory)
    if "many" in wanted:
        bench_many(table, make, args, directory)
