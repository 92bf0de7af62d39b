#!/usr/bin/env python3
"""A Kubernetes cluster of one node on this machine, in network, mount and process namespaces of its own.

usage: cluster.py up DIR       starts it (root); prints DIR/kubeconfig and how to enter its network
       cluster.py down DIR     ends it and removes what it made
       cluster.py build        only fetches and builds its programs into the cache

Programs: the servers are built once from the pinned Go modules beside this file, etcd, containerd and the
network plugins come from the distribution's packages; both are kept in HOLT_KUBE_CACHE (~/.cache/holt-kube).
DIR/kubeconfig is the administrator's. The API server listens inside: nsenter --net -t $(cat DIR/pid) kubectl ...
"""
import glob
import io
import json
import hashlib
import os
import signal
import shutil
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
VERSION = "v1.36.4"
CACHE = os.environ.get("HOLT_KUBE_CACHE") or os.path.expanduser("~/.cache/holt-kube")
BIN = f"{CACHE}/{VERSION}/bin"
PACKAGES = f"{CACHE}/packages"
SERVERS = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"]
DEBS = ["etcd-server", "containerd", "containernetworking-plugins"]
NODE_IP = "10.200.0.1"
IMAGE = "holt.test/busybox:1"
SYSCTLS = ["vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"]  # kubelet writes them


def run(*argv, **kw):
    return subprocess.run(argv, check=True, **kw)


# ---- programs ----

def build():
    """Servers and packages, if the cache lacks them."""
    os.makedirs(BIN, exist_ok=True)
    missing = [s for s in SERVERS if not os.path.exists(f"{BIN}/{s}")]
    if missing:
        print(f"building {', '.join(missing)} {VERSION}: some minutes, once", flush=True)
        flags = f"-s -w -X k8s.io/component-base/version.gitVersion={VERSION}"
        for s in missing:
            run("nice", "go", "build", "-trimpath", "-ldflags", flags, "-o", f"{BIN}/{s}.new", f"k8s.io/kubernetes/cmd/{s}",
                cwd=HERE, env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"})
            os.rename(f"{BIN}/{s}.new", f"{BIN}/{s}")
    if not os.path.exists(f"{PACKAGES}/usr/bin/containerd"):
        os.makedirs(PACKAGES, exist_ok=True)
        run("apt-get", "-qq", "download", *DEBS, cwd=PACKAGES, stderr=subprocess.DEVNULL)
        for deb in glob.glob(f"{PACKAGES}/*.deb"):
            run("dpkg", "-x", deb, PACKAGES)
            os.unlink(deb)


# ---- files ----

def certificates(d):
    """One authority; a certificate for each component, named as the cluster's rules expect."""
    def ssl(*a):
        run("openssl", *a, cwd=d, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    ssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=holt-test-ca", "-keyout", "ca.key", "-out", "ca.crt")
    ssl("genrsa", "-out", "sa.key", "2048")
    names = {"server": "/CN=kube-apiserver", "admin": "/O=system:masters/CN=admin", "kcm": "/CN=system:kube-controller-manager",
             "scheduler": "/CN=system:kube-scheduler", "node": "/O=system:nodes/CN=system:node:node1",
             "to-kubelet": "/O=system:masters/CN=apiserver"}
    with open(f"{d}/san", "w") as f:
        f.write(f"subjectAltName=IP:127.0.0.1,IP:{NODE_IP},IP:10.96.0.1,DNS:kubernetes.default.svc,DNS:node1")
    for name, subject in names.items():
        ssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr")
        ssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
            "-extfile", "san", "-out", f"{name}.crt")


def kubeconfig(d, name, path):
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
              "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", "certificate-authority": f"{d}/ca.crt"}}],
              "users": [{"name": "u", "user": {"client-certificate": f"{d}/{name}.crt", "client-key": f"{d}/{name}.key"}}],
              "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}
    with open(path, "w") as f:
        json.dump(config, f)


def image(path, name, files, command):
    """An OCI archive of one layer; made of bytes alone, so that two runs make the same."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.USTAR_FORMAT) as t:
        for where, (data, mode) in sorted(files.items()):
            i = tarfile.TarInfo(where)
            i.mode, i.size = mode, len(data or b"")
            i.type = tarfile.REGTYPE if data is not None else tarfile.DIRTYPE
            t.addfile(i, io.BytesIO(data or b""))
    blobs = {}

    def blob(data, kind):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    layer_ref = blob(layer.getvalue(), "layer.v1.tar")
    config = {"architecture": "amd64", "os": "linux", "config": {"Cmd": command, "Env": ["PATH=/bin"]},
              "rootfs": {"type": "layers", "diff_ids": [layer_ref["digest"]]}}
    config_ref = blob(json.dumps(config).encode(), "config.v1+json")
    manifest = blob(json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                                "config": config_ref, "layers": [layer_ref]}).encode(), "manifest.v1+json")
    manifest["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    with tarfile.open(path, "w") as t:
        def add(where, data):
            i = tarfile.TarInfo(where)
            i.size, i.mode = len(data), 0o644
            t.addfile(i, io.BytesIO(data))

        add("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        add("index.json", json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode())
        for digest, data in sorted(blobs.items()):
            add(f"blobs/sha256/{digest}", data)


def settings(d):
    os.makedirs(f"{d}/cni", exist_ok=True)
    with open(f"{d}/containerd.toml", "w") as f:
        f.write(f"""version = 2
root = "{d}/containerd"
state = "{d}/run"
[grpc]
address = "{d}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{IMAGE}"
restrict_oom_score_adj = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{PACKAGES}/usr/lib/cni"
conf_dir = "{d}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
""")
    with open(f"{d}/cni/10-bridge.conflist", "w") as f:
        json.dump({"cniVersion": "1.0.0", "name": "holt", "plugins": [
            {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False,
             "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]], "dataDir": f"{d}/ipam"}},
            {"type": "loopback"}]}, f)
    with open(f"{d}/kubelet.yaml", "w") as f:
        json.dump({"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1", "cgroupDriver": "cgroupfs",
                   "failCgroupV1": False, "failSwapOn": False, "oomScoreAdj": 0, "makeIPTablesUtilChains": False,
                   "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": f"{d}/ca.crt"}},
                   "authorization": {"mode": "Webhook"}, "tlsCertFile": f"{d}/node.crt", "tlsPrivateKeyFile": f"{d}/node.key",
                   "containerRuntimeEndpoint": f"unix://{d}/containerd.sock", "podLogsDir": f"{d}/pod-logs",
                   "imageGCHighThresholdPercent": 100,
                   "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"}}, f)


# ---- the cluster, inside its namespaces ----

children = {}  # process id: name and arguments


def start(d, name, *argv):
    env = {**os.environ, "PATH": f"{PACKAGES}/usr/bin:{BIN}:" + os.environ["PATH"]}
    with open(f"{d}/{name}.log", "a") as log:
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=d)
    children[p.pid] = name, argv


def wait_for(what, test, seconds=120):
    end = time.monotonic() + seconds
    while not test():
        if time.monotonic() > end:
            raise SystemExit(f"the cluster's {what} is not ready after {seconds} s")
        time.sleep(0.1)


def kubectl(d, *a):
    return subprocess.run(["kubectl", "--kubeconfig", f"{d}/kubeconfig", *a], capture_output=True, text=True)


def supervise(d):
    """The first process of the namespaces: when it ends, all of the cluster ends."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    for line in ["link set lo up", "link add up0 type veth peer name up1", f"addr add {NODE_IP}/24 dev up0", "link set up0 up",
                 "link set up1 up", "route add default via 10.200.0.254"]:
        run("ip", *line.split())
    etcd = "http://127.0.0.1:2379"
    start(d, "etcd", "etcd", "--data-dir", f"{d}/etcd", "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
          "--listen-peer-urls", "http://127.0.0.1:2380", "--initial-advertise-peer-urls", "http://127.0.0.1:2380",
          "--initial-cluster", "default=http://127.0.0.1:2380", "--unsafe-no-fsync")
    start(d, "containerd", "containerd", "--config", f"{d}/containerd.toml")
    start(d, "apiserver", "kube-apiserver", f"--etcd-servers={etcd}", "--bind-address=127.0.0.1", "--secure-port=6443",
          f"--advertise-address={NODE_IP}", "--tls-cert-file=server.crt", "--tls-private-key-file=server.key", "--client-ca-file=ca.crt",
          "--service-account-key-file=sa.key", "--service-account-signing-key-file=sa.key",
          "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.96.0.0/24",
          "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
          "--kubelet-client-certificate=to-kubelet.crt", "--kubelet-client-key=to-kubelet.key",
          "--kubelet-preferred-address-types=InternalIP", f"--cert-dir={d}/certs")
    wait_for("API server", lambda: kubectl(d, "get", "--raw", "/readyz").stdout == "ok")
    common = ["--leader-elect=false", "--bind-address=127.0.0.1"]
    start(d, "kcm", "kube-controller-manager", "--kubeconfig=kcm.conf", "--authentication-kubeconfig=kcm.conf",
          "--authorization-kubeconfig=kcm.conf", "--service-account-private-key-file=sa.key", "--root-ca-file=ca.crt",
          "--use-service-account-credentials=true", *common)
    start(d, "scheduler", "kube-scheduler", "--kubeconfig=scheduler.conf", "--authentication-kubeconfig=scheduler.conf",
          "--authorization-kubeconfig=scheduler.conf", *common)
    ctr = [f"{PACKAGES}/usr/bin/ctr", "--address", f"{d}/containerd.sock", "-n", "k8s.io"]
    wait_for("containerd", lambda: subprocess.run([*ctr, "images", "import", f"{d}/busybox.tar"], capture_output=True).returncode == 0)
    start(d, "kubelet", "kubelet", "--config=kubelet.yaml", "--kubeconfig=node.conf", "--hostname-override=node1", f"--node-ip={NODE_IP}",
          f"--root-dir={d}/kubelet", f"--cert-dir={d}/certs")
    wait_for("node", lambda: "True" in kubectl(d, "get", "node", "node1", "-o",
                                               "jsonpath={.status.conditions[?(@.type=='Ready')].status}").stdout)
    wait_for("account", lambda: kubectl(d, "get", "serviceaccount", "default").returncode == 0)
    open(f"{d}/ready", "w").close()
    while True:
        pid, _ = os.wait()  # also what the shims left
        if pid in children:  # a component that was killed comes back, as on a real node
            name, argv = children.pop(pid)
            time.sleep(0.5)
            start(d, name, *argv)


def up(d):
    if os.geteuid() != 0:
        raise SystemExit("the cluster needs root: it mounts and makes cgroups")
    build()
    os.makedirs(d, exist_ok=True)
    d = os.path.abspath(d)
    with open(f"{d}/sysctls", "w") as f:
        json.dump({s: open(f"/proc/sys/{s}").read() for s in SYSCTLS}, f)
    certificates(d)
    settings(d)
    kubeconfig(d, "admin", f"{d}/kubeconfig")
    for name in ("kcm", "scheduler", "node"):
        kubeconfig(d, name, f"{d}/{name}.conf")
    busybox = open("/bin/busybox", "rb").read()
    files = {"bin": (None, 0o755), "tmp": (None, 0o1777), "bin/busybox": (busybox, 0o755), "bin/sh": (busybox, 0o755)}
    image(f"{d}/busybox.tar", IMAGE, files, ["/bin/busybox", "sleep", "infinity"])
    with open(f"{d}/supervisor.log", "w") as log:
        p = subprocess.Popen(["unshare", "--net", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc",
                              "sh", "-c", 'mount --make-rshared / && exec "$0" "$@"', sys.executable, os.path.abspath(__file__),
                              "supervise", d], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    with open(f"{d}/outer", "w") as f:
        f.write(str(p.pid))
    end = time.monotonic() + 240
    while not os.path.exists(f"{d}/ready"):
        if p.poll() is not None or time.monotonic() > end:
            down(d)
            raise SystemExit(f"the cluster did not start: see {d}/*.log")
        time.sleep(0.1)
    with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
        inner = f.read().split()[0]
    with open(f"{d}/pid", "w") as f:
        f.write(inner)
    print(f"{d}/kubeconfig\nnsenter --net -t {inner} kubectl --kubeconfig {d}/kubeconfig get pods -A")


def down(d):
    """With the first process of the process namespace everything in it ends, mounts too."""
    d = os.path.abspath(d)
    try:
        pid = int(open(f"{d}/outer").read())
        if b"cluster.py" in open(f"/proc/{pid}/cmdline", "rb").read():
            os.kill(pid, signal.SIGKILL)
            while os.path.exists(f"/proc/{pid}/exe"):
                try:
                    os.waitpid(pid, 0)
                except ChildProcessError:
                    time.sleep(0.05)
    except (FileNotFoundError, ProcessLookupError):
        pass
    for root in glob.glob("/sys/fs/cgroup/*/kubepods") + glob.glob("/sys/fs/cgroup/kubepods"):
        for where, _, _ in os.walk(root, topdown=False):
            for _ in range(100):  # the last process may still be ending
                try:
                    os.rmdir(where)
                    break
                except OSError:
                    time.sleep(0.02)
    if os.path.exists(f"{d}/sysctls"):
        for name, value in json.load(open(f"{d}/sysctls")).items():
            with open(f"/proc/sys/{name}", "w") as f:
                f.write(value)
        os.unlink(f"{d}/sysctls")
    for name in os.listdir(d) if os.path.isdir(d) else []:
        if not name.endswith(".log"):
            path = f"{d}/{name}"
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)


if __name__ == "__main__":
    if sys.argv[1:] == ["build"]:
        build()
    elif len(sys.argv) == 3 and sys.argv[1] in ("up", "down", "supervise"):
        {"up": up, "down": down, "supervise": supervise}[sys.argv[1]](sys.argv[2])
    else:
        raise SystemExit(__doc__)
