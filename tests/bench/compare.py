#!/usr/bin/env python3
"""Measures two builds of holt side by side: is the new one slower?  Each request goes to both in turn, the order changing every time,
so that what else the machine does meets both alike.

usage: compare.py OLD NEW [--turns N]     OLD and NEW are build directories
Prints for each job both medians and p95, and the ratio of the medians (new / old) with the 95 % range of a bootstrap.
"""
import argparse
import http.client
import json
import os
import random
import statistics
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(0, f"{ROOT}/tests/integration")
sys.path.insert(0, f"{ROOT}/tests/bench")
from daemon import Holtd  # noqa: E402  pylint: disable=wrong-import-position
from run import p95  # noqa: E402  pylint: disable=wrong-import-position

BOX = "/holt/v1/sandboxes"
RESAMPLES = 1000


class Side:
    """One build: its holtd, one connection to it, and a sandbox that runs."""

    def __init__(self, build, directory):
        self.holtd = Holtd(directory, "--runtime", "native", program=f"{build}/holtd", config="log_level: warn\n")
        self.connection = http.client.HTTPConnection("127.0.0.1", self.holtd.port)
        self.headers = {"Authorization": f"Bearer {self.holtd.token}", "Content-Type": "application/json"}
        self.box = self.send("POST", BOX, {})["id"]

    def send(self, method, path, body=None):
        self.connection.request(method, path, None if body is None else json.dumps(body), self.headers)
        r = self.connection.getresponse()
        data = r.read()
        if r.status >= 300:
            raise RuntimeError(f"{method} {path}: {r.status} {data[:500]}")
        return json.loads(data) if data else None

    def close(self):
        self.connection.close()
        if self.holtd.alive():
            self.holtd.clear()
        self.holtd.stop()


def create_and_destroy(side):
    side.send("DELETE", f"{BOX}/{side.send('POST', BOX, {})['id']}")


JOBS = {
    "run in one request": lambda s: s.send("POST", "/holt/v1/run", {"command": ["true"]}),
    "exec in a running sandbox": lambda s: s.send("POST", f"{BOX}/{s.box}/execs", {"command": ["true"]}),
    "create, destroy": create_and_destroy,
    "small authenticated GET": lambda s: s.send("GET", "/holt/v1/info"),
}


def measure(job, old, new, turns):
    times = {old: [], new: []}
    for turn in range(turns + 10):
        for side in (old, new) if turn % 2 else (new, old):
            start = time.perf_counter()
            job(side)
            if turn >= 10:  # the first ones warm up
                times[side].append((time.perf_counter() - start) * 1e3)
    return times[old], times[new]


def spread(old, new):
    """The middle 95 % of the ratio, resampled in pairs."""
    rng, found = random.Random(1), []
    for _ in range(RESAMPLES):
        at = rng.choices(range(len(old)), k=len(old))
        found.append(statistics.median(new[i] for i in at) / statistics.median(old[i] for i in at))
    found.sort()
    return found[int(0.025 * RESAMPLES)], found[int(0.975 * RESAMPLES)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--turns", type=int, default=500)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        sides = []
        try:
            for name, build in (("old", args.old), ("new", args.new)):
                sides.append(Side(os.path.abspath(build), f"{directory}/{name}"))
            print(f"n = {args.turns}, in turns; milliseconds, median (p95)")
            for name, job in JOBS.items():
                old, new = measure(job, *sides, args.turns)
                low, high = spread(old, new)
                print(f"{name:28}  old {statistics.median(old):6.3f} ({p95(old):6.3f})  new {statistics.median(new):6.3f} ({p95(new):6.3f})"
                      f"  ratio {statistics.median(new) / statistics.median(old):.3f} [{low:.3f} .. {high:.3f}]", flush=True)
        finally:
            for side in sides:
                side.close()


if __name__ == "__main__":
    main()
