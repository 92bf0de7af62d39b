"""The escape attempts: what each does inside, and what it must see.

CALLS: rows of `probe calls` and the answers that are right; anything else, `ok` above all, is a hole.
ATTEMPTS: functions of (box, host) that raise AssertionError when they got through.  `host` (see conftest.py)
holds what the attempt is after: a secret, a listener, a neighbour.  test_guards.py runs some against a holt-spawn
that leaves out the guard, and demands that they fail there.
"""
import ctypes
import errno
import glob
import io
import os
import re
import signal
import struct
import tarfile
import time

import pytest

import boxes
import calls
from boxes import CAN_MEMORY, CAN_PIDS, Refused

EPERM = {"EPERM"}
NO_FAMILY = {"EAFNOSUPPORT"}
CALLS = {
    **dict.fromkeys([f"unshare_{n}" for n in "user mnt pid net ipc uts cgroup time".split()], EPERM),
    **dict.fromkeys(["clone_user", "clone_user_high", "clone_mnt", "clone_net"], EPERM),
    **dict.fromkeys(["clone3_plain", "clone3_user", "clone3_cgroup"], {"ENOSYS"}),
    **dict.fromkeys(["setns_self", "setns_pidfd"], EPERM),
    "setns_init_net": {"EACCES", "EPERM"},
    **dict.fromkeys([f"mount_{n}" for n in "tmpfs proc sysfs cgroup cgroup2 bind disk".split()], EPERM),
    **dict.fromkeys(["remount_usr", "remount_proc_sys", "umount_proc_sys", "umount_keys", "pivot_root"], EPERM),
    **dict.fromkeys(["fsopen", "open_tree", "move_mount", "mount_setattr"], EPERM),
    **dict.fromkeys(["open_tree_attr", "listmount", "io_uring_setup"], {"ENOSYS"}),
    **dict.fromkeys(["bpf", "perf_event_open", "userfaultfd", "keyctl_session", "keyctl_read", "add_key",
                     "request_key", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
                     "open_by_handle_at", "name_to_handle_at", "acct", "swapon", "swapoff", "reboot", "clock_settime",
                     "settimeofday", "adjtimex", "quotactl", "iopl", "ioperm", "syslog", "modify_ldt", "fanotify_init",
                     "move_pages", "vhangup", "sethostname"], EPERM),
    **dict.fromkeys(["socket_raw", "socket_raw6", "netlink_link_down", "netlink_uevent", "tiocsti", "tiocsti_high"], EPERM),
    **dict.fromkeys([f"socket_{n}" for n in "packet packet_high vsock vsock_high alg alg_high key xdp bluetooth can"
                     " tipc".split()], NO_FAMILY),
    **dict.fromkeys(["ptrace_attach_init", "ptrace_seize_init", "process_vm_readv_init", "pidfd_getfd_init",
                     "prlimit_init", "prlimit_up", "sched_fifo", "capset_all"], EPERM),
    **dict.fromkeys([f"socketpair_{n}" for n in "tipc tipc_high vsock kcm smc rxrpc".split()], NO_FAMILY),
    **dict.fromkeys(["tioclinux", "tioclinux_high", "tiocsetd", "tiocsetd_high", "tioccons", "personality_exec", "personality_zero",
                     "personality_high", "prctl_mm", "fanotify_mark"], EPERM),
    **dict.fromkeys(["socket_sctp", "socket_sctp6", "socket_dccp", "netlink_netfilter", "netlink_xfrm",
                     "netlink_crypto"], {"EPROTONOSUPPORT"}),
    "prctl_core": {"EINVAL"},
    "cachestat": {"ENOSYS"},
    "nice_up": {"EACCES"},
    "chroot_init_root": {"EACCES", "EPERM"},
    "seccomp_off": {"EINVAL", "EPERM"},
    **dict.fromkeys(["mknod_null", "mknod_mem"], EPERM),
    "mknod_disk": {"EPERM", "EACCES"},  # of the user namespace, or of Landlock before it
}

ATTEMPTS = {}


def attempt(f):
    ATTEMPTS[f.__name__] = f
    return f


def probe(box, *args, **more):
    """{name: result} of the probe's lines."""
    r = box.run("/tmp/probe", *args, **more)
    assert r.how == 0 and r.code == 0, f"probe {args}: {r}"
    return dict(line.split(" ", 1) for line in r.out.decode(errors="replace").splitlines())


def refused(seen, *allowed):
    """Every result is an errno, one of `allowed` where given."""
    for name, result in seen.items():
        assert re.fullmatch(r"E[A-Z]+", result), f"{name}: {result}"
        assert not allowed or result in allowed, f"{name}: {result}, not {allowed}"


def said(box, line, **more):
    r = box.sh(line, **more)
    return (r.out + r.err).decode(errors="replace")


# ---- files and secrets of the host ----

@attempt
def read_shadow(box, host):
    refused(probe(box, "read", "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh/ssh_host_rsa_key",
                  "/etc/machine-id"), "ENOENT")


@attempt
def read_secret_file(box, host):
    """A file of the host, by its path and from every directory that could be the host's root."""
    paths = [host.secret_path] + [p + host.secret_path for p in ("/proc/1/root", "/proc/self/root", "/proc/1/cwd",
                                                                 "/../../..", "/mnt", "/proc/self/cwd")]
    refused(probe(box, "read", *paths))


@attempt
def find_secret(box, host):
    """No file inside, /usr aside, holds it."""
    assert said(box, f"grep -rslF '{host.secret}' /etc /var /opt /home /root /tmp /run /mnt /workspace /dev/shm"
                " 2>/dev/null") == ""


@attempt
def list_host_homes(box, host):
    for d, names in probe(box, "list", "/root", "/home", "/srv", "/boot", "/media").items():
        assert names in ("list", "ENOENT"), f"{d}: {names}"


@attempt
def root_is_made_up(box, host):
    names = set(said(box, "ls -A /").split()) - ({".holt-init"} if box.spawn.runtime else set())  # a container's first process
    assert names <= {"bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "mnt", "opt", "proc", "root",
                     "run", "sbin", "sys", "tmp", "usr", "var", "workspace"}, names


@attempt
def environment_of_spawn(box, host):
    assert "the-secret-of-spawn" not in said(box, "env; cat /proc/[0-9]*/environ 2>/dev/null")
    refused(probe(box, "read", "/proc/1/environ"), "EACCES")


@attempt
def look_into_init(box, host):
    refused(probe(box, "read", *(f"/proc/1/{n}" for n in "mem maps smaps auxv stack syscall pagemap io personality"
                                 " numa_maps".split())), "EACCES", "EPERM")
    refused(probe(box, "link", *(f"/proc/1/{n}" for n in "root cwd exe fd/0 fd/3 fd/5 ns/net ns/mnt ns/user".split())),
            "EACCES", "EPERM")
    # Some come and go: that there is none may be seen, what there is may not.
    refused(probe(box, "link", *(f"/proc/1/fd/{n}" for n in range(4, 32))), "EACCES", "EPERM", "ENOENT")


@attempt
def descriptors_of_others(box, host):
    out = box.python(
        "import os, glob\n"
        "for p in glob.glob('/proc/[0-9]*/fd/*'):\n"
        "  if p.split('/')[2] != str(os.getpid()):\n"
        "    try: print(p, os.readlink(p))\n"
        "    except OSError: pass\n").out
    assert out == b"", out


@attempt
def kernel_memory(box, host):
    for name, result in probe(box, "read", "/proc/kcore", "/proc/kmsg", "/proc/keys", "/proc/timer_list", "/dev/mem",
                              "/dev/kmem", "/dev/port", "/dev/kmsg", "/proc/slabinfo", "/proc/vmallocinfo",
                              "/proc/kpagecount", "/proc/kpageflags", "/proc/sched_debug").items():
        assert result in ("ENOENT", "EACCES", "EPERM", "read 0"), f"{name}: {result}"


MASKED = "kcore keys key-users kallsyms kmsg cmdline config.gz interrupts timer_list timer_stats sched_debug latency_stats".split()
MASKED_DIRS = "acpi asound bus driver fs irq pressure scsi".split()
# What may be seen, and why: docs/threat-model.md.  A name that is not here is a new kernel's: judge it, then add it to one of the three.
SEEN = set("""allocinfo bootconfig buddyinfo cgroups consoles cpuinfo crypto device-tree devices diskstats dma dynamic_debug execdomains fb filesystems
    iomem ioports kpagecgroup kpagecount kpageflags loadavg locks mdstat meminfo misc modules mounts mtrr net pagetypeinfo partitions schedstat self
    slabinfo softirqs stat swaps sys sysrq-trigger sysvipc thread-self tty uptime version version_signature vmallocinfo vmstat xen zoneinfo""".split())


@attempt
def what_proc_tells(box, host):
    seen = probe(box, "read", *(f"/proc/{n}" for n in MASKED))
    wrong = {n: r for n, r in seen.items() if r not in ("read 0", "ENOENT")}
    assert not wrong, wrong
    for d, names in probe(box, "list", *(f"/proc/{n}" for n in MASKED_DIRS)).items():
        assert names in ("list", "ENOENT"), f"{d}: {names}"
    assert b"Read-only" in box.sh("mkdir /proc/pressure/x").err or not os.path.exists("/proc/pressure")
    names = {n for n in said(box, "ls /proc").split() if not n.isdigit()}
    assert names <= SEEN | set(MASKED) | set(MASKED_DIRS), names - SEEN - set(MASKED) - set(MASKED_DIRS)


@attempt
def kernel_addresses(box, host):
    out = box.sh("cat /proc/kallsyms /proc/iomem 2>/dev/null | cut -d' ' -f1 | grep -v '^0*$' | grep -E '^[0-9a-f]{16}$'"
                 " | head -3").out
    assert out == b"", out


@attempt
def sysfs(box, host):
    assert probe(box, "list", "/sys") == {"/sys": "list"}
    assert "sysfs" not in said(box, "cut -d' ' -f3 /proc/mounts")


@attempt
def host_mounts(box, host):
    """What is mounted is of the image or of the kernel; nothing of the host is writable."""
    for line in said(box, "cat /proc/self/mountinfo").splitlines():
        f = line.split()
        kind = f[f.index("-") + 1]
        if kind not in ("tmpfs", "proc", "devpts", "overlay", "mqueue") and f[4] != "/":
            assert "ro" in f[5].split(","), line
        assert kind not in ("sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "bpf", "efivarfs"), line


# ---- writing where it would act on the host ----

@attempt
def write_sysctl(box, host):
    refused(probe(box, "write", *("/proc/sys/" + n for n in (
        "kernel/core_pattern kernel/hostname kernel/randomize_va_space vm/drop_caches vm/overcommit_memory"
        " net/ipv4/ip_forward user/max_user_namespaces fs/file-max kernel/pid_max kernel/ns_last_pid").split())),
            "EROFS", "EACCES", "ENOENT")


@attempt
def write_core_pattern(box, host):
    before = open("/proc/sys/kernel/core_pattern", encoding="utf-8").read()
    said(box, "echo '|/tmp/probe' > /proc/sys/kernel/core_pattern; sh -c 'kill -SEGV $$'")
    assert open("/proc/sys/kernel/core_pattern", encoding="utf-8").read() == before
    assert said(box, "ls /core* /tmp/core* 2>/dev/null") == ""


@attempt
def write_proc(box, host):
    paths = ["/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/proc/mtrr", "/proc/acpi", "/proc/1/mem", "/proc/kcore",
             "/proc/bus/pci"]
    masked = box.run("stat", "-c", "%t:%T %n", *paths).out.decode()  # by /dev/null, which takes everything
    refused(probe(box, "write", *[p for p in paths if f"1:3 {p}\n" not in masked]))
    for p in glob.glob("/proc/irq/*/smp_affinity")[:2]:
        refused(probe(box, "write", p))


@attempt
def cgroup_files(box, host):
    out = box.python(
        "import os\n"
        "for root, dirs, files in os.walk('/'):\n"
        "  if root == '/': dirs[:] = [d for d in dirs if d not in ('proc', 'usr')]\n"
        "  for f in files:\n"
        "    if f in ('release_agent', 'notify_on_release', 'cgroup.procs', 'devices.allow', 'memory.max'):\n"
        "      print(root, f)\n").out
    assert out == b"", out


@attempt
def cgroup_paths(box, host):
    """The names of the host's groups are not shown."""
    text = said(box, "cat /proc/self/cgroup")
    assert "holt" not in text and "sb_" not in text and "user.slice" not in text, text


@attempt
def release_agent(box, host):
    r = box.sh("mkdir -p /tmp/cg && mount -t cgroup -o rdma none /tmp/cg; mount -t cgroup -o memory none /tmp/cg;"
               " echo /tmp/probe > /tmp/cg/release_agent; ls /tmp/cg")
    assert r.out in (b"", b"release_agent\n") and b"denied" in r.err + b"denied" * (b"permitted" in r.err), r


@attempt
def write_usr(box, host):
    r = box.sh("touch /usr/x; rm /usr/bin/env; chmod 777 /usr/bin; echo x > /usr/bin/env; mv /usr/bin/env /usr/bin/e;"
               " echo x > /etc/ld.so.cache; rm /etc/alternatives/awk; touch /etc/ssl/certs/x; mkdir /usr/d")
    assert r.out == b"" and r.err.count(b"Read-only file system") + r.err.count(b"ermission denied") >= 9, r
    assert os.path.exists("/usr/bin/env") and not os.path.exists("/usr/x")


@attempt
def write_dev(box, host):
    """/dev is one for all sandboxes: nothing can be put or changed there."""
    r = box.sh("touch /dev/x; rm /dev/null; chmod 600 /dev/zero; ln -s a /dev/b; mkdir /dev/d; touch -d 2001-01-01"
               " /dev/full; chown 1 /dev/tty")
    assert r.out == b"" and r.err.count(b"Read-only file system") >= 5, r
    assert b"x" not in box.sh("ls /dev").out.split()


@attempt
def second_barrier(box, host):
    """Landlock is on, and out of the way: what only it answers with EACCES, and moves between directories."""
    abi = ctypes.CDLL(None).syscall(444, None, 0, 1)
    if abi >= 2 and not box.flags & boxes.NESTING:
        assert probe(box, "calls", "mknod_disk") == {"mknod_disk": "EACCES"}
    r = box.sh("mkdir -p /a/x /b && echo 1 > /a/f && ln /a/f /b/g && mv /a/f /b/h && mv /a/x /b/ && cat /b/g /b/h && mkfifo /b/p && stty -a </dev/ptmx | head -c 5;"
               " sleep 60 & kill $!; wait; rm -rf /a /b")
    assert r.out == b"1\n1\nspeed", str(r)


@attempt
def device_nodes(box, host):
    names = set(said(box, "ls -A /dev").split())
    assert names <= {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd", "stdin", "stdout",
                     "stderr", "mqueue", "console"}, names
    refused(probe(box, "read", "/dev/vda", "/dev/sda", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/loop-control",
                  "/dev/vsock", "/dev/userfaultfd"), "ENOENT")


@attempt
def node_from_tar(box, host):
    """A device node made by the kernel for us would still not open: nodev."""
    r = box.sh("mknod /tmp/mem c 1 1; mknod /workspace/d b 254 0; ls /tmp/mem /workspace/d")
    assert r.out == b"", r


# ---- rights ----

@attempt
def capabilities(box, host):
    status = dict(line.split(":\t", 1) for line in said(box, "cat /proc/self/status").splitlines() if ":\t" in line)
    kept = 0x800405fb  # chown dac_override fowner fsetid kill setgid setuid setpcap net_bind sys_chroot setfcap
    for name in ("CapPrm", "CapEff", "CapBnd"):
        assert int(status[name], 16) & ~kept == 0, f"{name} {status[name]}"
    assert int(status["CapInh"], 16) == 0 and int(status["CapAmb"], 16) == 0
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
    assert int(status.get("Seccomp_filters", "2")) >= 2


@attempt
def capabilities_of_another_user(box, host):
    if not box.spawn.features & boxes.CAN_USERS:
        pytest.skip("one id is mapped: there is no other user")
    text = said(box, "grep -E 'Cap(Prm|Eff|Amb)' /proc/self/status", user="1000")
    assert re.findall(r"\t(\w+)", text) == ["0" * 16] * 3, text


@attempt
def set_user_id(box, host):
    """Neither a file of the host nor one made inside gives back what a user has given up."""
    if not box.spawn.features & boxes.CAN_USERS:
        pytest.skip("one id is mapped: there is no other user")
    box.sh("cp /tmp/probe /tmp/suid; chown 0:0 /tmp/suid; chmod 6755 /tmp/suid")
    out = box.run("/tmp/suid", "ids", user="1000").out
    assert out == b"uid 1000 euid 1000 nnp 1\n", out


@attempt
def trace_commands_of_init(box, host):
    """No command traces init's child before it is a command: it still has what commands lack."""
    r = box.python(
        "import os, time, ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "end = time.time() + 0.5\n"
        "while time.time() < end:\n"
        "  for p in os.listdir('/proc'):\n"
        "    if p.isdigit():\n"
        "      try:\n"
        "        if int([l for l in open(f'/proc/{p}/status') if l.startswith('CapPrm')][0].split()[1], 16)"
        " & (1 << 35):\n"
        "          os.readlink(f'/proc/{p}/root'); print('read the root of', p)\n"
        "      except OSError: pass\n")
    assert r.out == b"", r


@attempt
def children_of_init(box, host):
    """File operations that take long run in children of init, with what init has: they are as shut as it is."""
    ch = box.open(48, struct.pack("<BI", boxes.TAR_IN, boxes.PARENTS) + boxes.text("/workspace/in") + boxes.text("")
                  + struct.pack("<QQIII", 0, boxes.NO_LIMIT, 0, boxes.NO_ID, boxes.NO_ID))  # and waits for bytes
    time.sleep(0.1)
    r = box.python(
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for p in os.listdir('/proc'):\n"
        "  if p.isdigit() and int(p) != os.getpid():\n"
        "    for n in ('root', 'cwd', 'exe', 'fd/3', 'fd/5'):\n"
        "      try: print(p, n, os.readlink(f'/proc/{p}/{n}'))\n"
        "      except OSError: pass\n"
        "    for n in ('mem', 'environ', 'maps'):\n"
        "      try: print(p, n, len(open(f'/proc/{p}/{n}', 'rb').read(1)))\n"
        "      except OSError: pass\n"
        "    if libc.ptrace(0x4206, int(p), 0, 0) == 0: print('traced', p)\n")
    box.send(19, ch)
    assert r.out == b"" and r.code == 0, r


@attempt
def signals_to_init(box, host):
    assert probe(box, "kill_init") == {"init_after_signals": "ok"}
    said(box, "kill -9 1; kill -STOP 1; kill -SEGV 1")
    assert box.alive() and said(box, "echo on") == "on\n"


@attempt
def limits_of_init(box, host):
    """RLIMIT_CPU of another process needs no more than its uid."""
    said(box, "prlimit --pid 1 --cpu=1:1; prlimit --pid 1 --nofile=3:3")
    limits = open(f"/proc/{box.pid}/limits", encoding="utf-8").read()
    assert re.search(r"Max cpu time +unlimited +unlimited", limits), limits


@attempt
def program_of_init(box, host):
    refused(probe(box, "exe"), "EACCES", "EPERM")
    said(box, "cp /tmp/probe /proc/1/exe; cp /tmp/probe /proc/self/exe")
    assert said(box, "echo on") == "on\n"


@attempt
def copy_of_init(box, host):
    """The memory file that is init cannot be read, so it can be neither studied nor run again."""
    r = box.sh("cat /proc/1/exe > /tmp/i; /proc/1/exe --listen-fd 0; ls -s /tmp/i")
    assert b"denied" in r.err and b"0 /tmp/i" in r.out, r


@attempt
def leaked_descriptors(box, host):
    r = box.run("/tmp/probe", "fds")
    lines = r.out.decode().splitlines()
    assert [line.split()[1] for line in lines] == ["0", "1", "2"], lines
    assert all(re.search(r"(/dev/null|pipe:\[\d+\])$", line) for line in lines), lines


@attempt
def leaked_descriptors_terminal(box, host):
    r = box.run("/tmp/probe", "fds", flags=boxes.PTY)
    lines = r.out.decode().split("\r\n")[:-1]
    assert len(lines) == 3 and all("/dev/pts/" in line or line.endswith(" /dev/null") for line in lines), lines


@attempt
def working_directory(box, host):
    assert said(box, "pwd; readlink /proc/self/cwd /proc/self/root") == "/\n/\n/\n"
    for path in ("/proc/self/fd/3", "/proc/1/cwd", "/proc/self/fd/7", "/proc/self/fd/8", "/proc/1/root"):
        r = box.run("/usr/bin/ls", cwd=path)  # CVE-2024-21626: a leaked directory as the cwd
        assert r.how == 2, f"cwd {path}: {r}"


@attempt
def out_of_chroot(box, host):
    r = box.run("/tmp/probe", "chroot")
    assert b" workspace" in r.out and host.secret_name.encode() not in r.out, r


@attempt
def other_call_tables(box, host):
    for sub in ("int80", "x32"):
        r = box.run("/tmp/probe", sub)
        assert (r.how, r.code) == (1, signal.SIGSYS) or b"ENOSYS" in r.out, f"{sub}: {r}"


@attempt
def every_number_of_other_tables(box, host):
    r = box.run("/tmp/probe", "tables")
    assert r.out == b"tables walked\n", str(r)[:2000]


@attempt
def every_call(box, host):
    """Each number up to 600, and each argument that a rule speaks of: what the table allows is let through, and nothing else."""
    calls.walk(box)


@attempt
def type_into_the_terminal(box, host):
    r = box.python("import fcntl, termios\nfcntl.ioctl(0, termios.TIOCSTI, b'x')", flags=boxes.PTY)
    assert b"Operation not permitted" in r.out, r


@attempt
def keyrings(box, host):
    refused(probe(box, "calls", "keyctl_session") | probe(box, "calls", "keyctl_read"), "EPERM", "ENOSYS")
    assert probe(box, "read", "/proc/keys") in ({"/proc/keys": "read 0"}, {"/proc/keys": "ENOENT"})


@attempt
def nested_user_namespace(box, host):
    assert said(box, "unshare -Ur true 2>/dev/null || echo no") == "no\n"
    assert said(box, "cat /proc/sys/user/max_user_namespaces") == "0\n"


# ---- the network ----

@attempt
def interfaces(box, host):
    assert said(box, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '") == "lo\n"


@attempt
def host_addresses(box, host):
    """The host's listener, at each of the host's addresses and at loopback."""
    seen = probe(box, "dial", str(host.port), *host.addresses)
    # UDP to our own loopback is sent and met by nobody.
    refused({k: v for k, v in seen.items() if not re.match(r"udp:(127\.|::1$|0\.0\.0\.0)", k)},
            "ENETUNREACH", "ECONNREFUSED", "EADDRNOTAVAIL", "EACCES")
    assert host.contacts() == 0


@attempt
def far_addresses(box, host):
    refused(probe(box, "dial", "53", "8.8.8.8", "1.1.1.1", "169.254.169.254", "10.0.0.1", "192.168.0.1",
                  "2001:4860:4860::8888", "fe80::1", "100.100.100.100"), "ENETUNREACH", "EINVAL", "EADDRNOTAVAIL",
            "ECONNREFUSED", "EACCES")


@attempt
def names(box, host):
    r = box.python("import socket\nfor n in ('example.com', 'localhost.localdomain', 'metadata.google.internal'):\n"
                   "  try: print(n, socket.getaddrinfo(n, 80))\n  except OSError: pass\n", timeout=30)
    assert r.out == b"", r


@attempt
def abstract_socket_of_host(box, host):
    refused(probe(box, "abstract", host.abstract), "ECONNREFUSED")


@attempt
def sockets_of_host(box, host):
    text = said(box, "cat /proc/net/unix")
    assert host.abstract not in text and text.count("init.sock") <= 1, text
    r = box.python("import socket, glob\nfor p in glob.glob('/run/**', recursive=True) + glob.glob('/tmp/*'):\n"
                   "  try: socket.socket(socket.AF_UNIX).connect(p); print(p)\n  except OSError: pass\n")
    assert r.out == b"", r


# ---- neighbours ----

@attempt
def processes_of_neighbours(box, host):
    ch = host.neighbour.start(["sleep", "77"])
    try:
        text = said(box, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert "77" not in text, text
    finally:
        host.neighbour.signal(ch, 9, 2)
        host.neighbour.collect(ch)


@attempt
def users_of_neighbours(box, host):
    if not box.spawn.features & boxes.CAN_USERS:
        pytest.skip("one id for all sandboxes: docs/threat-model.md")
    owners = [open(f"/proc/{b.pid}/uid_map", encoding="utf-8").read().split() for b in (box, host.neighbour)]
    a, b = (range(int(o[1]), int(o[1]) + int(o[2])) for o in owners)
    assert a.start >= 100000 and (a.stop <= b.start or b.stop <= a.start), owners


@attempt
def sockets_of_neighbours(box, host):
    ch = host.neighbour.start(["/usr/bin/python3", "-uc", (
        "import socket, time\ns = socket.socket(socket.AF_UNIX); s.bind('\\0holt-neighbour'); s.listen()\n"
        "t = socket.socket(); t.bind(('127.0.0.1', 7788)); t.listen(); print('up'); time.sleep(60)")])
    try:
        assert host.neighbour.collect(ch, limit=3).out == b"up\n"
        refused(probe(box, "abstract", "holt-neighbour"), "ECONNREFUSED")
        assert probe(box, "dial", "7788", "127.0.0.1")["tcp:127.0.0.1"] == "ECONNREFUSED"
        assert "holt-neighbour" not in said(box, "cat /proc/net/unix")
        assert ":1E6C " not in said(box, "cat /proc/net/tcp")
    finally:
        host.neighbour.signal(ch, 9, 2)
        host.neighbour.collect(ch)


@attempt
def queues_of_neighbours(box, host):
    assert probe(host.neighbour, "msg_make", "4711") == {"msgget": "ok"}
    assert probe(box, "msg_find", "4711") == {"msgget": "ENOENT"}


@attempt
def files_of_neighbours(box, host):
    host.neighbour.put("/workspace/theirs", b"theirs")
    host.neighbour.put("/dev/shm/theirs", b"theirs")
    host.neighbour.put("/tmp/theirs", b"theirs")
    refused(probe(box, "read", "/workspace/theirs", "/dev/shm/theirs", "/tmp/theirs"), "ENOENT")


@attempt
def terminals_of_neighbours(box, host):
    ch = host.neighbour.start(["sh", "-c", "echo up; sleep 60"], flags=boxes.PTY)
    try:
        host.neighbour.collect(ch, limit=2)
        assert probe(box, "list", "/dev/pts")["/dev/pts"] in ("list ptmx", "list")
    finally:
        host.neighbour.signal(ch, 9, 2)
        host.neighbour.collect(ch)


# ---- file operations of the API ----

@attempt
def paths_of_the_api(box, host):
    """Every operation by a path that would leave the root: it stays in it."""
    box.sh("rm -rf /workspace/*; ln -s / /workspace/up; ln -s /proc/1/root /workspace/init; ln -s /proc/self/cwd"
           " /workspace/cwd; ln -s ../../../../../../../tmp /workspace/tmp")
    name = host.secret_path
    for path in (name, f"/../../../..{name}", f"/workspace/up/../..{name}", f"/workspace/init{name}",
                 f"/workspace/cwd/{name}", f"/proc/1/root{name}", f"/proc/self/root{name}", f"/proc/1/cwd{name}",
                 "/proc/self/fd/3/x", "/proc/1/exe"):
        for op in (boxes.READ, boxes.STAT, boxes.LIST, boxes.CHMOD, boxes.REMOVE):
            try:
                got = box.file(op, path, mode=0o777)
                assert host.secret.encode() not in got, f"{path}: read"
                assert path in ("/proc/1/exe",), f"operation {op} on {path} worked"
            except Refused:
                pass
    # By names that nobody else gives a file of the host.
    made = [f"{c}-{host.secret[:8]}" for c in "wmn"]
    for op, path, to in ((boxes.WRITE, f"/workspace/tmp/{made[0]}", ""), (boxes.MKDIR, f"/workspace/tmp/{made[1]}", ""),
                         (boxes.RENAME, f"/workspace/tmp/{made[1]}", f"/workspace/tmp/../../../{made[2]}")):
        try:
            box.file(op, path, to=to, content=b"x" if op == boxes.WRITE else None)
        except Refused:
            pass
    assert not any(os.path.exists(p) for p in (f"/tmp/{made[0]}", f"/tmp/{made[1]}", f"/{made[2]}"))
    with open(name, encoding="utf-8") as f:
        assert f.read() == host.secret
    assert os.stat(name).st_mode & 0o777 == 0o600


@attempt
def races_on_the_api(box, host):
    """A link that points at a directory here and, the next moment, up and out: each operation, many times."""
    box.sh("mkdir -p /workspace/real")
    box.put("/workspace/real/f", b"mine")
    ch = box.start(["/tmp/probe", "flip", "/workspace/l", "real", "../../../../../../.." + host.secret_dir])
    secret = f"/workspace/l/{host.secret_name}"
    try:
        for i in range(60):
            for op, path, more in ((boxes.READ, secret, {}), (boxes.READ, "/workspace/l/f", {}),
                                   (boxes.STAT, secret, {}), (boxes.LIST, "/workspace/l", {}),
                                   (boxes.WRITE, "/workspace/l/holt-w", {"content": b"x"}),
                                   (boxes.WRITE, f"/workspace/l/deep{i}/holt-w", {"content": b"x", "flags":
                                                                                  boxes.PARENTS}),
                                   (boxes.MKDIR, f"/workspace/l/holt-m{i}", {}), (boxes.CHMOD, secret, {"mode": 0o666}),
                                   (boxes.RENAME, "/workspace/real/f", {"to": f"/workspace/l/holt-r{i}"}),
                                   (boxes.RENAME, secret, {"to": "/workspace/got"}),
                                   (boxes.REMOVE, secret, {}),
                                   (boxes.REMOVE, "/workspace/l/holt-w", {"flags": boxes.RECURSIVE})):
                try:
                    assert host.secret.encode() not in box.file(op, path, **more)
                except Refused:
                    pass
    finally:
        box.signal(ch, 9, 2)
        box.collect(ch)
    assert os.listdir(host.secret_dir) == [host.secret_name]
    assert os.stat(host.secret_path).st_mode & 0o777 == 0o600
    try:
        assert host.secret.encode() not in box.file(boxes.READ, "/workspace/got")
    except Refused:
        pass


def hostile_tar(host):
    """Entries by every way out that archives know: up, absolute, through links made by the archive, devices."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as t:
        def add(name, kind=tarfile.REGTYPE, link="", content=b"escaped"):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode = kind, link, 0o6755
            info.size = len(content) if kind == tarfile.REGTYPE else 0
            t.addfile(info, io.BytesIO(content) if kind == tarfile.REGTYPE else None)

        add("plain")
        add("out", tarfile.SYMTYPE, "../../../../../../.." + host.secret_dir)
        add("out/holt-a")
        add("root", tarfile.SYMTYPE, "/proc/1/root" + host.secret_dir)
        add("root/holt-b")
        add("fd", tarfile.SYMTYPE, "/proc/self/fd/3")
        add("fd/holt-c")
        add("hard", tarfile.LNKTYPE, "../../../../../../.." + host.secret_path)
        add("../../../../../../.." + host.secret_dir + "/holt-d")
        add(host.secret_dir + "/holt-e")
        info = tarfile.TarInfo("mem")
        info.type, info.devmajor, info.devminor, info.mode = tarfile.CHRTYPE, 1, 1, 0o666
        t.addfile(info)
    return raw.getvalue()


@attempt
def archives_of_the_api(box, host):
    """tar in: whole and entry by entry, for the first refusal ends an archive."""
    whole = hostile_tar(host)
    with tarfile.open(fileobj=io.BytesIO(whole)) as t:
        count = len(t.getmembers())
    archives = [whole]
    for skip in range(1, count):
        raw = io.BytesIO()
        with tarfile.open(fileobj=io.BytesIO(whole)) as t, tarfile.open(fileobj=raw, mode="w") as one:
            for m in t.getmembers()[skip:]:
                one.addfile(m, t.extractfile(m) if m.isreg() else None)
        archives.append(raw.getvalue())
    for archive in archives:
        try:
            box.file(boxes.TAR_IN, "/workspace/in", boxes.PARENTS, content=archive)
        except Refused:
            pass
    assert os.listdir(host.secret_dir) == [host.secret_name]
    with open(host.secret_path, encoding="utf-8") as f:
        assert f.read() == host.secret
    assert host.secret.encode() not in box.sh("cat /workspace/in/hard /workspace/in/out/key").out
    assert said(box, "cat /workspace/in/plain") == "escaped"  # archives are unpacked at all
    assert b"crw" not in box.sh("ls -l /workspace/in").out  # no device came to be
    assert said(box, "echo on") == "on\n"


@attempt
def archives_out_of_the_api(box, host):
    """tar out of a directory whose links lead up and out, while they change."""
    box.sh(f"mkdir -p /workspace/o/d; ln -s {host.secret_dir} /workspace/o/l; ln -s /proc/1/root/ /workspace/o/r")
    ch = box.start(["/tmp/probe", "flip", "/workspace/o/f", "d", "../../../../../../.." + host.secret_dir])
    try:
        assert len(box.file(boxes.TAR_OUT, "/workspace/o/d")) > 0  # archives are packed at all
        for path in ["/workspace/o"] * 20 + ["/workspace/o/f", "/workspace/o/l", "/workspace/o/r", "/proc/1/root",
                                             host.secret_dir]:
            try:
                assert host.secret.encode() not in box.file(boxes.TAR_OUT, path), path
            except Refused:
                pass
    finally:
        box.signal(ch, 9, 2)
        box.collect(ch)


# ---- exhaustion: what one takes, others still have ----

@attempt
def fork_bomb(box, host):
    if not box.enforced & CAN_PIDS:
        pytest.skip("the number of processes is not limited here, and create says so")
    _, count, why = box.run("/tmp/probe", "forks", "2000").out.decode().split()
    assert int(count) < 100 and why == "EAGAIN", (count, why)  # 100 were asked
    assert said(host.neighbour, "echo on") == "on\n" and box.alive()


@attempt
def memory_bomb(box, host):
    if not box.enforced & CAN_MEMORY:
        pytest.skip("memory is not limited here, and create says so")
    r = box.run("/tmp/probe", "memory", "1000")
    assert (r.how, r.code) == (1, signal.SIGKILL), r
    assert box.alive() and said(box, "echo on") == "on\n"  # init outlives its commands


@attempt
def die_after_init(box, host):
    """A command is the first to go when memory is short."""
    own = int(said(box, "cat /proc/self/oom_score_adj"))
    with open(f"/proc/{box.pid}/oom_score_adj", encoding="utf-8") as f:
        assert own > int(f.read()), own


@attempt
def outlive_the_hosts_programs(box, host):
    """No command gets below init's score, which is above that of the host's programs: they would be killed for its memory."""
    with open("/proc/self/status", encoding="ascii") as f:
        resource = int(re.search(r"CapEff:\s*(\w+)", f.read())[1], 16) >> 24 & 1  # CAP_SYS_RESOURCE
    if box.spawn.user or not resource:
        pytest.skip("the lowest score needs CAP_SYS_RESOURCE; without it nobody gets below its own user's")
    lowest = said(box, "for n in 199 150 100 99 50 0 -1 -900; do echo $n >/proc/self/oom_score_adj; done 2>/dev/null; cat /proc/self/oom_score_adj")
    assert int(lowest) == 100, lowest


@attempt
def memory_bomb_in_files(box, host):
    """A file in memory counts as memory: /dev/shm and /tmp end somewhere."""
    r = probe(box, "fill", "/dev/shm/x", "4000")["fill"].split()
    assert int(r[0]) <= 64 and r[1] == "ENOSPC", r


@attempt
def disk_bomb(box, host):
    r = probe(box, "fill", "/workspace/x", "4000")["fill"].split()
    assert int(r[0]) <= 128 and r[1] == "ENOSPC", r  # 128 MiB were asked


@attempt
def terminals(box, host):
    r = probe(box, "ptys", "3500")["ptys"].split()
    assert int(r[0]) <= 256 and r[1] in ("ENOSPC", "EMFILE"), r


@attempt
def open_files(box, host):
    r = box.python("import os\nn = 0\ntry:\n  while True: os.open('/dev/null', 0); n += 1\nexcept OSError as e: print(n,"
                   " e.errno)")
    n, why = map(int, r.out.split())
    assert n < 1024 and why == errno.EMFILE, r  # 1024 were asked


def flood(box, host, flags):
    ch = box.start(["yes", "0123456789" * 10], flags=flags)
    time.sleep(0.3)
    rss = int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{box.pid}/status", encoding="utf-8").read())[1])
    assert rss < 4096, f"init holds {rss} KiB"
    other = box.start(["echo", "on"])  # on the same connection, while the flood is not acknowledged
    r = box.collect(other)
    assert r.out == b"on\n", r
    box.signal(ch, 9, 2)
    box.connect()  # what is queued for the flood's channel goes
    assert said(box, "echo on") == "on\n"


@attempt
def output_flood(box, host):
    flood(box, host, 0)


@attempt
def terminal_flood(box, host):
    flood(box, host, boxes.PTY)


def gone_with(box, ch):
    """The daemon is there, and goes with the kill of its command.  Both take their time: it would stay for ever."""
    boxes.wait_for(lambda: "escaped" in said(box, "cat /proc/[0-9]*/comm"))
    box.signal(ch, signal.SIGKILL, 2)
    box.collect(ch)
    boxes.wait_for(lambda: "escaped" not in said(box, "cat /proc/[0-9]*/comm"))


@attempt
def daemon_after_kill(box, host):
    """Three forks and sessions away, ignoring every signal: gone with the kill of what it came from."""
    ch = box.start(["sh", "-c", "/tmp/probe daemon; echo up; exec sleep 600"])
    box.collect(ch, limit=3)
    gone_with(box, ch)


@attempt
def daemon_without_its_mark(box, host):
    """The same, and it has lowered the limit that marks it where there are no cgroups (src/init/kin.c)."""
    ch = box.start(["/usr/bin/python3", "-uc", (
        "import os, resource, time\n"
        "if os.fork() == 0:\n"
        "  if os.fork(): os._exit(0)\n"
        "  os.setsid(); mark = resource.getrlimit(10)[1]\n"
        "  resource.setrlimit(10, (mark - 1, mark - 1) if mark > 0 else (1, 1))\n"
        "  os.execve('/tmp/probe', ['probe', 'daemon'], {})\n"
        "os.wait(); print('up'); time.sleep(600)")])
    box.collect(ch, limit=3)
    gone_with(box, ch)


def grown(box, path):
    return len(box.file(boxes.READ, path))


def stands_still(box, *paths):
    """For a second: who was killed may be in a write, who was not grows it a thousand times."""
    before = [grown(box, p) for p in paths]
    time.sleep(1)
    return [grown(box, p) for p in paths] == before


@attempt
def fork_faster_than_a_kill(box, host):
    """Each process lives only until it has a child, in a session of its own.  All eight chains wait for each other's birth: on a
    busy machine the first ones' dead would fill the limit of processes."""
    ch = box.start(["/usr/bin/python3", "-uc", (
        "import os, time\nr, w = os.pipe()\n"
        "for i in range(8):\n  if os.fork() == 0: os.read(r, 1); os.execv('/tmp/probe', ['probe', 'chain', '/workspace/chain'])\n"
        "os.close(os.open('/workspace/chain', os.O_CREAT)); os.write(w, b'12345678'); print('up'); time.sleep(600)")])
    assert box.collect(ch, limit=3).out == b"up\n"
    boxes.wait_for(lambda: grown(box, "/workspace/chain"))
    before = grown(box, "/workspace/chain")
    boxes.wait_for(lambda: grown(box, "/workspace/chain") > before)  # it lives
    box.signal(ch, signal.SIGKILL, 2)
    box.collect(ch)
    boxes.wait_for(lambda: stands_still(box, "/workspace/chain"), 10)


@attempt
def drown_a_kill(box, host):
    """Signals to init, without end, do not hide the order to kill all work, nor give one."""
    ch = box.start(["/usr/bin/python3", "-uc", (
        "import os\nos.fork()\nprint('up')\nwhile True:\n  for s in (10, 12, 1): os.kill(1, s)")])
    box.collect(ch, limit=6)
    time.sleep(0.1)
    box.spawn.kill_work(box.id)
    r = box.collect(ch)
    assert (r.how, r.code) == (1, signal.SIGKILL), r
    boxes.wait_for(lambda: "python" not in said(box, "cat /proc/[0-9]*/comm"))  # the other one dies in its own time


@attempt
def run_through_a_pause(box, host):
    """Each wakes all others without pause, and init is told to look for a change."""
    files = [f"/workspace/t{i}" for i in range(3)]
    for path in files:
        ch = box.start(["/usr/bin/python3", "-c", (
            f"import os, signal\nf = open('{path}', 'ab', 0)\n"
            "while True:\n  f.write(b'x')\n  os.kill(-1, signal.SIGCONT)\n  os.kill(1, 10)")])
    boxes.wait_for(lambda: not any(box.sh(f"test -s {p}").code for p in files), 60)
    box.spawn.pause(box.id, True)
    boxes.wait_for(lambda: stands_still(box, *files), 10)  # without cgroups init is told, and stops one after the other
    before = [grown(box, p) for p in files]
    box.spawn.pause(box.id, False)
    boxes.wait_for(lambda: all(grown(box, p) > n for p, n in zip(files, before)))
    box.spawn.kill_work(box.id)
    box.collect(ch)  # before the next command is one of those that the order is for
    box.connect()
    assert said(box, "echo on") == "on\n"
