#!/usr/bin/env python3
"""What a sandbox of each container runtime costs against the bare tool, turn by turn in one run.

usage: runtimes.py [--build DIR] [--rounds N] [RUNTIME...]
  run   holt run (a create, a command's output, a destroy) against `RUNTIME run` of the same command with the same host's /usr
  exec  a command in a running sandbox against `RUNTIME exec`
  idle  memory of an idle sandbox, by its cgroup
Prints a table; ratios are of medians. Needs root. Other load moves both sides: trust the ratios.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../integration")

FLAGS = {"runc": [], "crun": [], "runsc": ["--network=none", "--ignore-cgroups"]}
COMMAND = ["/usr/bin/echo", "x"]


class Bare:
    """The tool by itself: the host's /usr read-only, no network, its own namespaces."""

    def __init__(self, runtime):
        self.dir = tempfile.mkdtemp(prefix="holt-bare.", dir="/var/tmp")
        self.argv = [runtime, "--root", f"{self.dir}/state", *FLAGS[runtime]]
        if runtime == "runsc" and "systrap" not in subprocess.run(["runsc", "flags"], capture_output=True, text=True, check=False).stdout:
            self.argv.append("--platform=ptrace")
        self.number = 0
        os.makedirs(f"{self.dir}/rootfs/usr")
        for name in ("bin", "lib", "lib64"):
            os.symlink(f"usr/{name}", f"{self.dir}/rootfs/{name}")
        self.prefix = []
        if runtime == "crun" and os.path.ismount("/sys/fs/cgroup/unified"):  # it refuses v1 and v2 side by side
            self.prefix = ["unshare", "-m", "sh", "-c", 'umount /sys/fs/cgroup/unified; exec "$@"', "sh"]

    def describe(self, args):
        caps = ["CAP_KILL"]
        spec = {"ociVersion": "1.0.2", "root": {"path": "rootfs", "readonly": True}, "hostname": "bare",
                "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "cwd": "/", "args": args, "env": ["PATH=/usr/bin"],
                            "noNewPrivileges": True, "capabilities": {k: caps for k in ("bounding", "effective", "permitted")}},
                "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                           {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]}],
                "linux": {"namespaces": [{"type": t} for t in ("pid", "mount", "uts", "ipc", "network")]}}
        with open(f"{self.dir}/config.json", "w", encoding="ascii") as f:
            json.dump(spec, f)

    def call(self, *args, **more):
        return subprocess.run([*self.prefix, *self.argv, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True, **more).stdout

    def run(self):
        self.number += 1
        assert self.call("run", "--bundle", self.dir, f"bare{self.number}x") == b"x\n"

    def start(self):
        self.describe(["/usr/bin/sleep", "10000"])
        subprocess.run([*self.prefix, *self.argv, "run", "--detach", "--bundle", self.dir, "idle"], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=True)  # it keeps what it inherits
        self.describe(COMMAND)

    def exec(self):
        assert self.call("exec", "idle", *COMMAND) == b"x\n"

    def close(self):
        subprocess.run([*self.prefix, *self.argv, "kill", "idle", "KILL"], capture_output=True, timeout=60, check=False)
        time.sleep(0.5)
        subprocess.run([*self.prefix, *self.argv, "delete", "--force", "idle"], capture_output=True, timeout=60, check=False)
        shutil.rmtree(self.dir, ignore_errors=True)


def took(what):
    began = time.perf_counter()
    what()
    return 1000 * (time.perf_counter() - began)


def measure(holtd, runtime, rounds):
    bare = Bare(runtime)
    try:
        bare.start()
    except BaseException:
        bare.close()
        raise
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"runtime": runtime})["id"]

    def run():
        assert holtd.ok("POST", "/holt/v1/run", {"runtime": runtime, "command": COMMAND})["stdout"] == "x\n"

    def one():
        assert holtd.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": COMMAND})["stdout"] == "x\n"

    times = {"run": [], "bare run": [], "exec": [], "bare exec": []}
    try:
        idle = holtd.ok("GET", f"/holt/v1/sandboxes/{box}/stats")["memory_bytes"]
        for _ in range(rounds):
            for name, what in (("run", run), ("bare run", bare.run), ("exec", one), ("bare exec", bare.exec)):
                times[name].append(took(what))
    finally:
        bare.close()
    m = {k: statistics.median(v[1:]) for k, v in times.items()}
    print(f"| {runtime} | {m['run']:.1f} | {m['bare run']:.1f} | {m['run'] / m['bare run']:.2f} | {m['exec']:.2f} | {m['bare exec']:.1f} | "
          f"{m['bare exec'] / m['exec']:.1f} | {idle / 1048576:.1f} |", flush=True)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--build", default=f"{HERE}/../../build")
    args.add_argument("--rounds", type=int, default=20)
    args.add_argument("runtimes", nargs="*", default=list(FLAGS))
    args = args.parse_args()
    os.environ["HOLT_BUILD"] = os.path.abspath(args.build)
    from daemon import Holtd  # reads HOLT_BUILD
    with tempfile.TemporaryDirectory(prefix="holt-bench.") as d:
        holtd = Holtd(d, "--runtime", "native")
        print("| runtime | run ms | bare run ms | ratio | exec ms | bare exec ms | times faster | idle MiB |\n"
              "| --- | --- | --- | --- | --- | --- | --- | --- |")
        try:
            for runtime in args.runtimes:
                try:
                    measure(holtd, runtime, args.rounds)
                except FileNotFoundError:
                    print(f"{runtime} is not installed", file=sys.stderr)
                except subprocess.CalledProcessError as e:  # crun refuses v1 and v2 cgroups side by side
                    print(f"{runtime} by itself does not run here: {(e.stderr or b'').decode().strip()}", file=sys.stderr)
        finally:
            holtd.clear()
            holtd.stop()


if __name__ == "__main__":
    main()
