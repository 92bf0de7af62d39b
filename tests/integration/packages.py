"""What package managers fetch: a Python index, a node and a Rust registry, a git repository and a Debian archive, made by the test
and served from loopback over HTTP and HTTPS; and a Debian image made of packages that are installed here."""
import contextlib
import functools
import gzip
import hashlib
import http.server
import io
import json
import os
import ssl
import subprocess
import tarfile
import threading
import zipfile

HOSTS = ["pypi.test", "npm.test", "crates.test", "git.test", "deb.test", "files.test"]
GIT_BACKEND = "/usr/lib/git-core/git-http-backend"


def certificates(where):
    """A CA, and a certificate for HOSTS that it signed: (the CA's file, a server's context)."""
    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=where, check=True, capture_output=True)

    new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    openssl(*new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=the test's CA", "-addext", "keyUsage=keyCertSign,digitalSignature")
    names = ",".join("DNS:" + h for h in HOSTS)
    openssl("req", *new[2:-2], "-keyout", "key.pem", "-out", "csr.pem", "-subj", "/CN=files.test")
    (where / "ext").write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", "csr.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "ext", "-out", "cert.pem")
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ctx.load_cert_chain(where / "cert.pem", where / "key.pem")
    return where / "ca.pem", ctx


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files, what npm and cargo read with the URL they asked by, and git's smart protocol below /git/."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        if self.path.startswith("/git/"):
            self.git()
        elif self.path == "/den":
            self.say(b'{"name": "den", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "den", "version": "1.0.0", '
                     b'"dist": {"tarball": "%s/den-1.0.0.tgz"}}}}' % self.asked_by())
        elif self.path == "/crates/config.json":
            self.say(b'{"dl": "%s/{crate}-{version}.crate"}' % self.asked_by())
        else:
            super().do_GET()

    def do_POST(self):
        self.git()

    def asked_by(self):
        scheme = b"https" if isinstance(self.connection, ssl.SSLSocket) else b"http"
        return b"%s://%s" % (scheme, self.headers["host"].encode())

    def say(self, body, status=200, headers=()):
        self.send_response(status)
        for k, v in headers:
            self.send_header(k, v)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def git(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": self.directory, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path.removeprefix("/git"),
               "QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("content-type", ""),
               "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""), "HTTP_GIT_PROTOCOL": self.headers.get("git-protocol", ""),
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        out = subprocess.run([GIT_BACKEND], input=body, env=env, capture_output=True, check=True).stdout
        head, _, body = out.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = next((int(v.split()[0]) for k, v in headers if k.lower() == "status"), 200)
        self.say(body, status, [h for h in headers if h[0].lower() != "status"])


def python_index(root):
    wheel = "otter-1.0-py3-none-any.whl"
    os.makedirs(root / "simple/otter")
    with zipfile.ZipFile(root / wheel, "w") as z:
        z.writestr("otter.py", "print('an otter')\n")
        z.writestr("otter-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: otter\nVersion: 1.0\n")
        z.writestr("otter-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr("otter-1.0.dist-info/RECORD", "otter.py,,\notter-1.0.dist-info/METADATA,,\notter-1.0.dist-info/WHEEL,,\notter-1.0.dist-info/RECORD,,\n")
    (root / "simple/otter/index.html").write_text(f'<a href="/{wheel}">{wheel}</a>')


def add(tar, name, content, mode=0o644):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    tar.addfile(info, io.BytesIO(content))


def node_package(root):
    with tarfile.open(root / "den-1.0.0.tgz", "w:gz") as t:
        add(t, "package/package.json", b'{"name": "den", "version": "1.0.0"}')
        add(t, "package/index.js", b"console.log('a den')")


def rust_registry(root):
    """One crate in a sparse index, as cargo reads them."""
    crate = io.BytesIO()
    with tarfile.open(fileobj=crate, mode="w:gz") as t:
        add(t, "otter-1.0.0/Cargo.toml", b'[package]\nname = "otter"\nversion = "1.0.0"\n')
        add(t, "otter-1.0.0/src/lib.rs", b"// an otter in a crate\n")
    (root / "otter-1.0.0.crate").write_bytes(crate.getvalue())
    (root / "crates/ot/te").mkdir(parents=True)
    (root / "crates/ot/te/otter").write_text(json.dumps({
        "name": "otter", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False, "cksum": hashlib.sha256(crate.getvalue()).hexdigest()}) + "\n")


def git_repository(root):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": str(root)}
    who = ["-c", "user.name=t", "-c", "user.email=t@t"]
    (root / "work").mkdir()
    (root / "work/README").write_text("an otter's den\n" * 1000)
    for args in (["init", "-q", "work"], ["-C", "work", "add", "README"], ["-C", "work", *who, "commit", "-q", "-m", "one"],
                 ["clone", "-q", "--bare", "work", "repo.git"]):
        subprocess.run(["git", *args], cwd=root, env=env, check=True, capture_output=True)


def debian_archive(root):
    """One package, `holt-otter`, in a flat archive without signatures."""
    tree = root / "deb-tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/holt-otter").write_text("#!/bin/sh\necho an otter by apt\n")
    (tree / "usr/bin/holt-otter").chmod(0o755)
    control = "Package: holt-otter\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@t>\nDescription: an otter\n"
    (tree / "DEBIAN/control").write_text(control)
    (root / "debian").mkdir()
    deb = root / "debian/holt-otter.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, deb], check=True, capture_output=True)
    data = deb.read_bytes()
    packages = (control + f"Filename: ./holt-otter.deb\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n").encode()
    release = "Suite: stable\nArchitectures: all amd64 arm64\nSHA256:\n"
    for name, content in (("Packages", packages), ("Packages.gz", gzip.compress(packages, mtime=0))):
        (root / "debian" / name).write_bytes(content)
        release += f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n"
    (root / "debian/Release").write_text(release)


@contextlib.contextmanager
def served(root, tls):
    """Everything above, on two ports of loopback: (http, https)."""
    python_index(root)
    node_package(root)
    rust_registry(root)
    git_repository(root)
    debian_archive(root)
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(root))) for _ in range(2)]
    servers[1].socket = tls.wrap_socket(servers[1].socket, server_side=True, do_handshake_on_connect=False)
    for s in servers:
        threading.Thread(target=s.serve_forever, daemon=True).start()
    try:
        yield servers[0].server_port, servers[1].server_port
    finally:
        for s in servers:
            s.shutdown()
            s.server_close()


# ---- a Debian image ----

BASE = ["apt", "dpkg", "dash", "coreutils", "sed", "grep", "tar", "gzip", "base-files", "libc-bin", "diffutils"]
LEFT_OUT = ("/usr/share/doc", "/usr/share/man", "/usr/share/locale", "/usr/share/info", "/usr/lib/x86_64-linux-gnu/gconv",
            "/usr/share/perl", "/usr/share/zoneinfo")


def dpkg(fmt, *names):
    out = subprocess.run(["dpkg-query", "-W", "-f", fmt + "\n", *names], check=True, capture_output=True, text=True).stdout
    return out.splitlines()


def closure(names):
    """Installed packages that these need, themselves included."""
    needs, provides = {}, {}
    for line in dpkg("${Status}\t${Package}\t${Provides}\t${Pre-Depends},${Depends}"):
        status, name, gives, depends = line.split("\t")
        if not status.endswith(" installed"):
            continue
        needs[name] = [d.split("|") for d in depends.split(",") if d.strip()]
        for p in [name] + gives.split(","):
            provides.setdefault(p.split("(")[0].strip(), name)
    found, left = set(), list(names)
    while left:
        name = left.pop()
        if name in found or name not in needs:
            continue
        found.add(name)
        for alternatives in needs[name]:
            plain = [a.split("(")[0].split(":")[0].strip() for a in alternatives]
            left += [provides[a] for a in plain if a in provides][:1]
    return sorted(found)


def debian_image(more=()):
    """A tar of a small Debian root with apt in it, from the packages of this machine; no archive is asked.  more: packages besides."""
    names = closure(BASE + list(more))
    status = "".join("Package: %s\nStatus: install ok installed\nArchitecture: %s\nVersion: %s\nMaintainer: t <t@t>\nDescription: t\n\n" % tuple(line.split("\t"))
                     for line in dpkg("${Package}\t${Architecture}\t${Version}", *names))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for d in ("bin", "sbin", "lib", "lib64"):
            if os.path.islink("/" + d):
                t.add("/" + d, d)
        for d in ("tmp", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial",
                  "var/log/apt", "etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/trusted.gpg.d", "etc/apt/sources.list.d", "root"):
            info = tarfile.TarInfo(d)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if d == "tmp" else 0o755
            t.addfile(info)
        seen = set()
        listed = subprocess.run(["dpkg", "-L", *names], check=True, capture_output=True, text=True).stdout.splitlines()
        for path in listed:
            real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            if path.startswith(LEFT_OUT) or real in seen or not path.startswith("/") or path.startswith("/etc/apt"):
                continue
            seen.add(real)
            if os.path.islink(real) or os.path.isfile(real):
                t.add(real, real.lstrip("/"), recursive=False)
        add(t, "var/lib/dpkg/status", status.encode())
        add(t, "var/lib/dpkg/available", b"")
        for n in names:
            add(t, f"var/lib/dpkg/info/{n}.list", b"/.\n")
        add(t, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n")
        add(t, "etc/group", b"root:x:0:\nnogroup:x:65534:\n")
    return out.getvalue()
