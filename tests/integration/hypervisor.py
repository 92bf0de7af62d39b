"""A libvirtd of the test's own: its configuration, sockets, machines and disks in a directory of the test's, in a mount namespace where the host's
libvirt is not seen.  There is no /dev/kvm there: machines run by TCG.  (One that is there and does not work makes libvirt probe QEMU anew with each
description: 13 s instead of none.)"""
import os
import shutil
import signal
import subprocess
import time

SETUP = """
set -e
for d in /etc/libvirt /var/lib/libvirt /run/libvirt /var/log/libvirt /var/cache/libvirt; do mkdir -p $d; mount -t tmpfs -o mode=755 private $d; done
mkdir /run/libvirt/dev
mount -t tmpfs -o mode=755 dev /run/libvirt/dev
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /run/libvirt/dev/
mkdir /run/libvirt/dev/pts /run/libvirt/dev/shm
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
exec tini -s -- libvirtd -f "$1" -p "${1%.conf}.pid"
"""


def lacking():
    """Why there can be none here; None: there can."""
    if os.geteuid() != 0:
        return "needs root: libvirtd's own directories are mounted over"
    names = [n for n in ("libvirtd", "tini", "qemu-system-x86_64", "qemu-img", "unshare") if not shutil.which(n, path="/usr/sbin:/usr/bin:/sbin:/bin")]
    return f"not installed: {', '.join(names)} (tools/deps vm)" if names else None


class Hypervisor:
    def __init__(self, path):
        self.path = str(path)
        self.sock = f"{self.path}/run/libvirt-sock"
        self.pool = f"{self.path}/pool"
        os.makedirs(f"{self.path}/run", exist_ok=True)
        with open(f"{self.path}/libvirtd.conf", "w", encoding="utf-8") as f:
            f.write(f'unix_sock_dir = "{self.path}/run"\nauth_unix_rw = "none"\nauth_unix_ro = "none"\n'
                    f'log_outputs = "3:file:{self.path}/libvirtd.log"\n')
        self.process = None
        self.start()

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
        return int(open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii").read().split()[0])

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
