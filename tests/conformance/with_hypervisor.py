#!/usr/bin/env python3
"""A libvirtd of the test's own and a small base of machines, for a program of the suite.

usage: with_hypervisor.py BUILD PROGRAM [ARGUMENT...]

PROGRAM runs with HOLT_VM_URI, HOLT_VM_POOL and HOLT_VM_BASE (a directory with the base's files) set. Status 77: it cannot be here, the last line says why.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/tests/integration")
from hypervisor import Hypervisor, lacking, minimal_base  # noqa: E402


def main():
    build, argv = sys.argv[1], sys.argv[2:]
    why = lacking() if os.path.exists(f"{build}/holt-virt") else "this build has no holt-virt: install libvirt-dev (tools/deps vm)"
    if why:
        print(why)
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    where = tempfile.mkdtemp(prefix="holt-vm-", dir="/tmp")  # a socket's path is short
    host = None
    try:
        minimal_base(build, ROOT, f"{where}/state")
        host = Hypervisor(where)
        env = {"HOLT_VM_URI": host.uri, "HOLT_VM_POOL": host.pool, "HOLT_VM_BASE": f"{where}/state/vm/base"}
        return subprocess.run(argv, env={**os.environ, **env}, check=False).returncode
    finally:
        if host:
            host.end()
        shutil.rmtree(where, ignore_errors=True)


sys.exit(main())
