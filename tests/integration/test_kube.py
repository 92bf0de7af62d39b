"""Our client of API servers against a real cluster of one node; kubectl is the witness."""
import json
import os
import subprocess
import sys
import threading
import time
import uuid

import pytest

from daemon import BUILD, ROOT

pytestmark = pytest.mark.kube
CLUSTER = f"{ROOT}/tests/kube/cluster.py"
TOOL = f"{BUILD}/tests/kube/kube_tool"
IMAGE = "holt.test/busybox:1"
PODS = "/api/v1/namespaces/default/pods"


class Cluster:
    def __init__(self, where):
        self.where = where
        self.config = f"{where}/kubeconfig"
        self.enter = ["nsenter", "--net", "-t", open(f"{where}/pid").read()]

    def tool(self, *argv, config=None, **kw):
        return subprocess.run([*self.enter, TOOL, config or self.config, *argv], capture_output=True, timeout=90, **kw)

    def start(self, *argv):
        return subprocess.Popen([*self.enter, TOOL, self.config, *argv], stdout=subprocess.PIPE, text=True)

    def kubectl(self, *argv):
        p = subprocess.run([*self.enter, "kubectl", "--kubeconfig", self.config, *argv], capture_output=True, text=True, timeout=90)
        assert p.returncode == 0, p.stderr
        return p.stdout

    def pid_of(self, name):
        """The process of a component, found by its log, which only it has open."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/fd/2") == f"{self.where}/{name}.log":
                    return int(pid)
            except OSError:
                pass
        raise AssertionError(f"{name} does not run")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("a cluster needs root")
    where = str(tmp_path_factory.mktemp("cluster"))
    try:
        subprocess.run([sys.executable, CLUSTER, "up", where], check=True, timeout=2400)
        yield Cluster(where)
    finally:
        subprocess.run([sys.executable, CLUSTER, "down", where], check=True, timeout=60)


def pod(name, **labels):
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": {
        "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": IMAGE, "imagePullPolicy": "Never", "command": ["/bin/busybox", "sleep", "infinity"]}]}})


@pytest.fixture(scope="module")
def running(cluster):
    p = cluster.tool("call", "POST", PODS, pod("p1", app="p1"))
    assert p.returncode == 0, p.stderr
    cluster.kubectl("wait", "--for=condition=Ready", "pod/p1", "--timeout=60s")
    return "p1"


def test_versions_and_refusals(cluster):
    p = cluster.tool("call", "GET", "/version")
    assert json.loads(p.stdout)["gitVersion"] == "v1.36.4"
    p = cluster.tool("call", "GET", f"{PODS}/nobody")
    assert (p.returncode, p.stderr) == (1, b'not_found: the cluster refused: pods "nobody" not found\n')
    p = cluster.tool("call", "POST", PODS, '{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "No Name"}}')
    assert p.returncode == 1 and b"invalid: the cluster refused: Pod \"No Name\" is invalid" in p.stderr


def test_a_wrong_authority_is_refused(cluster, tmp_path):
    other = tmp_path / "other.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other", "-keyout", str(tmp_path / "k"),
                    "-out", str(other)], check=True, capture_output=True)
    config = json.load(open(cluster.config))
    config["clusters"][0]["cluster"]["certificate-authority"] = "other.crt"  # relative to the file
    (tmp_path / "config").write_text(json.dumps(config))
    p = cluster.tool("call", "GET", "/version", config=str(tmp_path / "config"))
    assert p.returncode == 1 and b"is not trusted" in p.stderr


def test_a_service_accounts_token_has_its_rights_alone(cluster, tmp_path):
    token = cluster.kubectl("create", "token", "default")
    config = json.load(open(cluster.config))
    (tmp_path / "token").write_text(token)
    config["users"][0]["user"] = {"tokenFile": "token"}
    (tmp_path / "config").write_text(json.dumps(config))
    assert cluster.tool("call", "GET", "/version", config=str(tmp_path / "config")).returncode == 0
    p = cluster.tool("call", "GET", PODS, config=str(tmp_path / "config"))
    assert p.returncode == 1 and p.stderr.startswith(b"forbidden: the cluster refused: pods is forbidden")
    (tmp_path / "token").write_text("nonsense")
    p = cluster.tool("call", "GET", PODS, config=str(tmp_path / "config"))
    assert p.returncode == 1 and p.stderr.startswith(b"unauthenticated: ")


def test_apply_tells_whose_field_it_is(cluster):
    target = "/api/v1/namespaces/default/configmaps/cm"

    def body(value):
        return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"a": value}})

    assert cluster.tool("apply", target, body("1"), "one").returncode == 0
    p = cluster.tool("apply", target, body("2"), "two")
    assert p.returncode == 1 and p.stderr.startswith(b"conflict: ") and b'conflict with "one"' in p.stderr
    assert cluster.tool("apply", target, body("2"), "two", "force").returncode == 0
    assert cluster.kubectl("get", "cm", "cm", "-o", "jsonpath={.data.a}") == "2"
    p = cluster.tool("delete", target, str(uuid.uuid4()))
    assert p.returncode == 1 and p.stderr.startswith(b"conflict: ")  # another object of that name
    uid = cluster.kubectl("get", "cm", "cm", "-o", "jsonpath={.metadata.uid}")
    assert cluster.tool("delete", target, uid).returncode == 0


def test_exec_keeps_bytes_and_status(cluster, running):
    data = os.urandom(3 << 20)
    p = cluster.tool("exec", "default", running, "main", "/bin/busybox", "cat", input=data)
    assert (p.returncode, p.stdout == data, p.stderr) == (0, True, b"")
    p = cluster.tool("exec", "default", running, "main", "/bin/sh", "-c", "echo out; echo err >&2; exit 7", input=b"")
    assert (p.returncode, p.stdout, p.stderr) == (7, b"out\n", b"err\n")
    p = cluster.tool("exec", "default", running, "main", "/bin/sh", "-c", "kill -9 $$", input=b"")
    assert p.returncode == 137
    p = cluster.tool("exec", "default", running, "nothere", "/bin/sh", input=b"")
    assert p.returncode == 254 and b"container nothere is not valid for pod p1" in p.stderr


def read_until(p, text, seconds=60):
    lines = []
    late = threading.Timer(seconds, p.kill)
    late.start()
    try:
        for line in p.stdout:
            lines.append(line)
            if text in line:
                return lines
    finally:
        late.cancel()
    raise AssertionError(f"{text!r} never came: {lines}")


def test_a_watch_survives_the_api_servers_death(cluster):
    watch = cluster.start("watch", PODS, "app=w", "1000")
    try:
        read_until(watch, "synced")
        assert cluster.tool("call", "POST", PODS, pod("w1", app="w")).returncode == 0
        read_until(watch, "added w1")
        read_until(watch, "modified w1 Running")
        os.kill(cluster.pid_of("apiserver"), 9)
        read_until(watch, "health unavailable")
        read_until(watch, "health well")  # the cluster starts it again
        deadline = time.monotonic() + 60
        while cluster.tool("call", "POST", PODS, pod("w2", app="w")).returncode != 0:
            assert time.monotonic() < deadline
        lines = read_until(watch, "added w2")
        assert not any("deleted" in line for line in lines)
        cluster.kubectl("delete", "pod", "w1", "--force", "--grace-period=0")
        read_until(watch, "deleted w1")
    finally:
        watch.kill()
        watch.wait()
