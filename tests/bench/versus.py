#!/usr/bin/env python3
"""Two builds of holt against each other: exec, run and create, turn by turn, so that other load on the machine meets both alike.

usage: versus.py OLD_BUILD NEW_BUILD [N]      prints the medians, p95 and the ratio new/old of each
"""
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


class Daemon:
    def __init__(self, build):
        self.state = tempfile.mkdtemp(prefix="holt-versus.", dir="/tmp")
        self.log = open(f"{self.state}.log", "wb")
        self.process = subprocess.Popen([f"{build}/holtd", "--state", self.state, "--listen", f"unix:{self.state}/sock", "--auth", "off", "--runtime", "native"],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        end = time.monotonic() + 20
        while not os.path.exists(f"{self.state}/sock"):
            assert time.monotonic() < end and self.process.poll() is None, open(f"{self.state}.log", encoding="utf-8").read()
            time.sleep(0.02)
        import socket
        self.conn = http.client.HTTPConnection("localhost")
        self.conn.sock = socket.socket(socket.AF_UNIX)
        self.conn.sock.connect(f"{self.state}/sock")

    def call(self, method, path, body=None):
        self.conn.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        r = self.conn.getresponse()
        data = r.read()
        assert r.status < 300, (path, r.status, data)
        return json.loads(data) if data else None

    def stop(self):
        for box in self.call("GET", "/holt/v1/sandboxes")["sandboxes"]:
            self.call("DELETE", f"/holt/v1/sandboxes/{box['id']}")
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


def timed(f):
    began = time.perf_counter()
    f()
    return (time.perf_counter() - began) * 1e3


def main():
    builds, n = sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 500
    daemons = [Daemon(b) for b in builds]
    try:
        boxes = [d.call("POST", "/holt/v1/sandboxes", {"upper": "memory"})["id"] for d in daemons]
        true = {"command": ["/usr/bin/true"]}

        def create(d):
            d.call("DELETE", "/holt/v1/sandboxes/" + d.call("POST", "/holt/v1/sandboxes", {"upper": "memory"})["id"])

        acts = {
            "exec": lambda d, box: d.call("POST", f"/holt/v1/sandboxes/{box}/execs", true),
            "run": lambda d, box: d.call("POST", "/holt/v1/run", true),
            "create+destroy": lambda d, box: create(d),
        }
        for name, act in acts.items():
            took = ([], [])
            for i in range(n + 20):
                for which in ((0, 1), (1, 0))[i % 2]:
                    if name != "exec":
                        time.sleep(0.04)  # until the pool is filled again
                    t = timed(lambda: act(daemons[which], boxes[which]))
                    if i >= 20:
                        took[which].append(t)
            old, new = (statistics.median(t) for t in took)
            p95 = [sorted(t)[int(len(t) * 0.95)] for t in took]
            print(f"{name}: old {old:.3f} / {p95[0]:.3f} ms, new {new:.3f} / {p95[1]:.3f} ms, new/old {new / old:.3f} (n={n})", flush=True)
    finally:
        for d in daemons:
            d.stop()


if __name__ == "__main__":
    main()
