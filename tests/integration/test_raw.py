"""Sandboxes with a raw network: an interface on a bridge of the operator's.  Everything happens in a network namespace that
the test makes: holtd, the bridge and the servers are in it, the machine's own network is not touched."""
import ctypes
import os
import shutil
import socket
import subprocess
import threading

import pytest

import egress
from daemon import native, wait_for

CLONE_NEWNET = 0x40000000
pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="a bridge needs root"),
              pytest.mark.skipif(not shutil.which("ip"), reason="no ip here")]


def in_new_network(body):
    """Runs body in a thread of its own, which alone is in a new network namespace, and what it starts."""
    failed = []

    def run():
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
                pytest.skip("this machine makes no network namespaces")
            for line in ("link set lo up", "link add br-test type bridge", "addr add 10.77.0.1/24 dev br-test", "link set br-test up"):
                subprocess.run(["ip", *line.split()], check=True)
            body()
        except BaseException as e:
            failed.append(e)
    t = threading.Thread(target=run)
    t.start()
    t.join()
    if failed:
        raise failed[0]


def udp_echo():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("10.77.0.1", 0))

    def serve():
        while True:
            try:
                data, peer = s.recvfrom(100)
                s.sendto(data, peer)
            except OSError:
                return
    threading.Thread(target=serve, daemon=True).start()
    return s


def start(tmp_path, *flags):
    return native(tmp_path, *flags)


def run(d, box, command):
    r = d.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": command, "timeout_ms": 20000})
    return r["exit_code"], r["stdout"] + r["stderr"]


def links():
    out = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    return [line.split()[1].split("@")[0] for line in out.splitlines() if ": hv" in line]


def test_a_raw_network(tmp_path):
    def body():
        web, udp = egress.Peer(egress.http_echo, host="10.77.0.1"), udp_echo()
        d = start(tmp_path, "--raw-bridge", "br-test,10.77.0.0/24")
        try:
            made = d.ok("POST", "/holt/v1/sandboxes", {"network": "raw", "upper": "memory"})
            assert made["network"] == {"mode": "raw"} and "network" in made["unenforced"], made
            box, other = made["id"], d.ok("POST", "/holt/v1/sandboxes", {"network": {"mode": "raw"}})["id"]
            assert "network" in d.ok("GET", f"/holt/v1/sandboxes/{box}")["unenforced"]
            assert len(links()) == 2
            code, out = run(d, box, ["curl", "-sS", f"http://10.77.0.1:{web.port}/x"])
            assert code == 0 and out.startswith("GET /x"), out
            code, out = run(d, box, ["python3", "-c", "import socket; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(60); "
                                     f"s.sendto(b'hi',('10.77.0.1',{udp.getsockname()[1]})); print(s.recv(9))"])
            assert out == "b'hi'\n"
            addresses = {run(d, b, ["sh", "-c", "hostname -I || ip -o -4 addr show eth0"])[1].split()[0] for b in (box, other)}
            assert len(addresses) == 2
            assert run(d, box, ["cat", "/etc/resolv.conf"])[1].startswith("nameserver 10.77.0.1\n")
            assert "_proxy" not in run(d, box, ["env"])[1].lower()
            assert run(d, box, ["ip", "link", "set", "eth0", "down"])[0] != 0  # it is not its own
            for change in ("none", "open"):
                code, reply, _ = d.request("PATCH", f"/holt/v1/sandboxes/{box}", {"network": change})
                assert code == 409 and "raw" in reply["error"]["message"], reply
            agent = d.ok("POST", "/holt/v1/tokens", {"name": "a", "role": "agent", "agent": "a"})["token"]
            assert d.request("POST", "/holt/v1/sandboxes", {"network": "raw"}, token=agent)[0] == 403
            d.kill()
            d = start(tmp_path, "--raw-bridge", "br-test,10.77.0.0/24")
            wait_for(lambda: d.request("GET", f"/holt/v1/sandboxes/{box}")[1].get("state") == "running")
            assert run(d, box, ["curl", "-sS", f"http://10.77.0.1:{web.port}/x"])[0] == 0
            d.ok_once_found("POST", f"/holt/v1/sandboxes/{other}/stop")
            assert len(links()) == 1
            d.ok("PATCH", f"/holt/v1/sandboxes/{other}", {"network": "none"})
            d.ok("POST", f"/holt/v1/sandboxes/{other}/start")
            assert run(d, other, ["curl", "-sS", "-m", "5", f"http://10.77.0.1:{web.port}/x"])[0] != 0
            for b in (box, other):
                assert d.request("DELETE", f"/holt/v1/sandboxes/{b}")[0] == 204
            assert links() == []
        finally:
            d.stop()
            web.close()
            udp.close()
    in_new_network(body)


def test_without_a_bridge_it_is_refused(tmp_path):
    def body():
        d = start(tmp_path / "none")
        try:
            code, reply, _ = d.request("POST", "/holt/v1/sandboxes", {"network": "raw"})
            assert code == 501 and "no bridge is set" in reply["error"]["message"] and "raw_bridge" in reply["error"]["hint"], reply
        finally:
            d.stop()
        d = start(tmp_path / "gone", "--raw-bridge", "br-none,10.77.0.0/24")
        try:
            code, reply, _ = d.request("POST", "/holt/v1/sandboxes", {"network": "raw"})
            assert code >= 400 and "bridge 'br-none'" in reply["error"]["message"], reply
            assert links() == [] and d.ok("GET", "/holt/v1/sandboxes")["sandboxes"] == []
        finally:
            d.stop()
    in_new_network(body)
