"""A libvirtd of the test's own: its configuration, sockets, machines and disks in a directory of the test's, in a mount namespace where the host's
libvirt is not seen.  There is no /dev/kvm there: machines run by TCG.  (One that is there and does not work makes libvirt probe QEMU anew with each
description: 13 s instead of none.)  With ssh=True it has an sshd of its own there, on loopback: a host as if it were another machine."""
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import time

SETUP = """
set -e
own=$(dirname "$1")
for d in /etc/libvirt /var/lib/libvirt /run/libvirt /var/log/libvirt /var/cache/libvirt; do
    mkdir -p $d "$own/own$d"; mount --bind "$own/own$d" $d; done # they outlive libvirtd, as on a machine
mkdir -p /run/libvirt/dev
mount -t tmpfs -o mode=755 dev /run/libvirt/dev
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /run/libvirt/dev/
mkdir -p /run/libvirt/dev/pts /run/libvirt/dev/shm
mount --bind /dev/pts /run/libvirt/dev/pts
mount --bind /dev/shm /run/libvirt/dev/shm
ln -s pts/ptmx /run/libvirt/dev/ptmx
mount --move /run/libvirt/dev /dev
printf '%s\\n' 'user = "root"' 'group = "root"' 'namespaces = []' 'security_driver = "none"' 'cgroup_controllers = []' \
    'stdio_handler = "file"' 'dynamic_ownership = 0' > /etc/libvirt/qemu.conf
# libvirtd does not start without the user that only libvirt-daemon-system makes.
if ! getent passwd libvirt-qemu > /dev/null; then
    for f in passwd group; do cp /etc/$f /run/libvirt/$f; done
    echo 'libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin' >> /run/libvirt/passwd
    for g in libvirt-qemu:64055 kvm:64056; do getent group ${g%:*} > /dev/null || echo "${g%:*}:x:${g#*:}:" >> /run/libvirt/group; done
    for f in passwd group; do mount --bind /run/libvirt/$f /etc/$f; done
fi
if [ -f "$own/sshd_config" ]; then mkdir -p /run/sshd; /usr/sbin/sshd -D -f "$own/sshd_config" -E "$own/sshd.log" & fi
exec tini -s -- libvirtd -f "$1" -p "${1%.conf}.pid"
"""


def lacking():
    """Why there can be none here; None: there can."""
    if os.geteuid() != 0:
        return "needs root: libvirtd's own directories are mounted over"
    names = [n for n in ("libvirtd", "tini", "qemu-system-x86_64", "qemu-img", "unshare") if not shutil.which(n, path="/usr/sbin:/usr/bin:/sbin:/bin")]
    return f"not installed: {', '.join(names)} (tools/deps vm)" if names else None


def minimal_base(build, root, state):
    """Puts a base of machines into a state directory: a root of busybox, made once for each build of init and kept in .cache."""
    sources = [f"{build}/holt-init", f"{build}/holt-build-vm"]
    key = hashlib.sha256(b"".join(open(p, "rb").read() for p in sources)).hexdigest()[:16]
    kept = f"{root}/.cache/vm/{key}"
    os.makedirs(kept, exist_ok=True)
    with open(f"{kept}/lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(f"{kept}/vm/base/id"):
            r = subprocess.run([f"{build}/holt", "image", "build-vm", "--state", kept, "--minimal", "--size", "512M"], capture_output=True, text=True,
                               timeout=300, check=False)
            assert r.returncode == 0, r.stderr
    os.makedirs(state, exist_ok=True)
    shutil.copytree(f"{kept}/vm", f"{state}/vm")


class Hypervisor:
    def __init__(self, path, ssh_port=None, key=None):
        self.path = str(path)
        self.sock = f"{self.path}/{'own/run/libvirt' if ssh_port else 'run'}/libvirt-sock"
        self.pool = f"{self.path}/pool"
        os.makedirs(f"{self.path}/run", exist_ok=True)
        with open(f"{self.path}/libvirtd.conf", "w", encoding="utf-8") as f:
            where = "/run/libvirt" if ssh_port else f"{self.path}/run"  # virt-ssh-helper knows only the usual place
            f.write(f'unix_sock_dir = "{where}"\nauth_unix_rw = "none"\nauth_unix_ro = "none"\n'
                    f'log_outputs = "3:file:{self.path}/libvirtd.log"\n')
        self.process = None
        self.port = ssh_port
        if ssh_port:
            self.write_sshd(key)
        self.start()

    def write_sshd(self, key):
        """For root with this public key."""
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.path}/host_key"], check=True)
        with open(f"{self.path}/sshd_config", "w", encoding="utf-8") as f:
            f.write(f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.path}/host_key\nAuthorizedKeysFile {key}\nStrictModes no\n"
                    "UsePAM no\nPermitRootLogin yes\nPidFile none\nMaxStartups 100\nMaxSessions 100\n")

    def known(self):
        """Its line of known_hosts."""
        return f"[127.0.0.1]:{self.port} " + " ".join(open(f"{self.path}/host_key.pub", encoding="ascii").read().split()[:2]) + "\n"

    @property
    def uri(self):
        return f"qemu:///system?socket={self.sock}"

    def start(self):
        with open(f"{self.path}/out", "ab") as out:
            self.process = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c", SETUP, "sh", f"{self.path}/libvirtd.conf"],
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        until = time.monotonic() + 60
        while self.virsh("list").returncode != 0:
            assert self.process.poll() is None and time.monotonic() < until, open(f"{self.path}/out", encoding="utf-8").read()
            time.sleep(0.1)

    def virsh(self, *argv):
        return subprocess.run(["virsh", "-q", "-c", self.uri, *argv], capture_output=True, text=True, timeout=60, check=False)

    def domains(self):
        return self.virsh("list", "--all", "--name").stdout.split()

    def volumes(self):
        """Those of machines: what is uploaded once stays."""
        self.virsh("pool-refresh", "holt")
        return [line.split()[0] for line in self.virsh("vol-list", "holt").stdout.splitlines() if line.strip() and not line.split()[0].startswith("base-")]

    def qemus(self):
        """Process ids of machines here."""
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and f"{self.path}/pool".encode() in open(f"/proc/{name}/cmdline", "rb").read().split(b"holt-virt")[0]:
                    found.append(int(name))
            except OSError:
                pass
        return found

    def pid(self):
        """Of libvirtd itself, below tini."""
        below = open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii").read().split()
        return next(int(p) for p in below if open(f"/proc/{p}/comm", encoding="ascii").read() == "libvirtd\n")

    def stop(self):
        """libvirtd and sshd are gone, machines go on: as a network that is cut."""
        os.kill(self.pid(), signal.SIGKILL)  # tini has put it into a group of its own
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self):
        for name in self.domains():
            self.virsh("destroy", name)
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for pid in self.qemus():
            os.kill(pid, signal.SIGKILL)
