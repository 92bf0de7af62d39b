#!/usr/bin/env python3
"""A restart of holtd with many live sandboxes: how long until it answers, until all are at hand again, and what holtd
holds in memory.  Needs root.

usage: restart.py [--build DIR] [--count N]
The aims (design §6, for 1,000 sandboxes): first answer within 1 s, 64 MiB resident.
"""
import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
API = "/holt/v1/sandboxes"
CLIENTS = 8
AIM_ANSWER_S, AIM_RSS_MIB = 1.0, 64


def each(work, items):
    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(work, items))


def start(directory, Holtd):
    return Holtd(directory, "--runtime", "native")


def measure(directory, count, Holtd):
    d = start(directory, Holtd)
    try:
        boxes = [b["id"] for b in each(lambda _: d.ok("POST", API, {}), range(count))]
        time.sleep(2)
        rows = [("resident before, MiB", d.rss_kib() / 1024, AIM_RSS_MIB)]
        d.process.kill()
        d.process.wait()
        d = start(directory, Holtd)
        rows.append(("first answer, s", d.ready_after, AIM_ANSWER_S))
        states = {b["id"]: b["state"] for b in d.ok("GET", f"{API}?limit=1000")["sandboxes"]}
        rows.append(("listed, s", time.monotonic() - d.started, None))
        assert count > 1000 or set(boxes) == set(states), "some are not there"
        ends = each(lambda b: d.ok("POST", f"{API}/{b}/execs", {"command": ["true"]})["exit_code"], boxes)
        assert set(ends) == {0}, "a command failed"
        rows.append(("a command in each, s", time.monotonic() - d.started, None))
        time.sleep(6)
        rows.append(("resident after, MiB", d.rss_kib() / 1024, AIM_RSS_MIB))
        each(lambda b: d.ok("DELETE", f"{API}/{b}"), boxes)
        return rows
    finally:
        d.kill()


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--build", default=f"{ROOT}/build")
    a.add_argument("--count", type=int, default=1000)
    a = a.parse_args()
    os.environ["HOLT_BUILD"] = os.path.abspath(a.build)
    sys.path.insert(0, f"{ROOT}/tests/integration")
    from daemon import Holtd
    with tempfile.TemporaryDirectory(prefix="holt-restart.") as directory:
        for what, value, aim in measure(directory, a.count, Holtd):
            verdict = "" if aim is None else f"aim {aim:g}: {'met' if value <= aim else 'MISSED'}"
            print(f"{what:24} {value:9.3f}  {verdict}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
