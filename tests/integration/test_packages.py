"""Package managers in an allowlisted sandbox, as their users call them, through the proxy to servers of the test's own;
and what each says when the policy refuses a host."""
import os
import shutil
import subprocess

import pytest

from daemon import native
from packages import GIT_BACKEND, HOSTS, certificates, debian_image, served

NAMES = {h: ["127.0.0.1"] for h in HOSTS}

REFUSED = "refused by holt: no rule allows this host and port"


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return certificates(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def ports(tmp_path_factory, ca):
    with served(tmp_path_factory.mktemp("packages"), ca[1]) as p:
        yield p


@pytest.fixture(scope="module")
def holtd(tmp_path_factory, names):
    d = native(tmp_path_factory.mktemp("holtd"), "--egress-dns", names.address)
    yield d
    d.clear()
    d.stop()


def policy(ports):
    return {"mode": "allowlist", "allow": [rule for h in HOSTS for rule in (
        {"host": h, "ports": [ports[0]]}, {"host": h, "ports": [ports[1]], "scheme": "https"})] + [{"cidr": "127.0.0.1", "ports": list(ports)}]}


def run(holtd, box, command, **more):
    r = holtd.ok("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": command, "timeout_ms": 90000, **more}, timeout=100)
    return r["exit_code"], r["stdout"] + r["stderr"]


def put(holtd, box, path, content):
    assert holtd.request("PUT", f"/holt/v1/sandboxes/{box}/files?path={path}", content, headers={"Content-Type": "application/octet-stream"})[0] in (200, 201, 204)


@pytest.fixture(scope="module")
def box(holtd, ports, ca):
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"network": policy(ports), "upper": "memory"})["id"]
    put(holtd, box, "/tmp/ca.pem", ca[0].read_bytes())
    return box


# how each tool is called, what proves that it worked, and how it is told of the test's CA
TOOLS = {
    "pip": ("pypi.test", "pip -vv install --disable-pip-version-check --no-cache-dir --retries 0 --target {d} --trusted-host {h} --index-url {u}/simple otter",
            "PYTHONPATH={d} python3 -m otter", "an otter", {"PIP_CERT": "/tmp/ca.pem"}),
    "npm": ("npm.test", "mkdir -p {d} && cd {d} && npm install --no-audit --no-fund --fetch-retries=0 --cache {d}/cache --registry {u}/ den",
            "node {d}/node_modules/den", "a den", {"npm_config_cafile": "/tmp/ca.pem", "NODE_EXTRA_CA_CERTS": "/tmp/ca.pem"}),
    "cargo": ("crates.test", "mkdir -p {d}/src && cd {d} && touch src/lib.rs && printf '[package]\\nname = \"den\"\\n[dependencies]\\notter = {{version = \"1\", registry = \"t\"}}\\n' >Cargo.toml"
              " && CARGO_HOME={d}/home PATH=/tmp/bin:$PATH CARGO_NET_RETRY=0 CARGO_REGISTRIES_T_INDEX=sparse+{u}/crates/ cargo vendor -q {d}/got",
              "cat {d}/got/otter/src/lib.rs", "an otter in a crate", {"CARGO_HTTP_CAINFO": "/tmp/ca.pem"}),
    "git": ("git.test", "git clone -q {u}/git/repo.git {d}", "git -C {d} log --format=%s; tail -1 {d}/README", "one\nan otter's den", {"GIT_SSL_CAINFO": "/tmp/ca.pem"}),
    "curl": ("files.test", "curl -sS --fail-with-body -o {d} {u}/simple/otter/index.html || {{ cat {d}; exit 22; }}", "cat {d}", "otter-1.0", {"CURL_CA_BUNDLE": "/tmp/ca.pem"}),
}
# What the tool itself shows of a refusal.  Of a refused CONNECT curl and git print the number alone.
BODY = "is refused: no rule allows this host and port"
SHOWN = {("cargo", "http"): BODY, ("cargo", "https"): "403", ("pip", "http"): REFUSED, ("pip", "https"): REFUSED, ("npm", "http"): REFUSED, ("npm", "https"): REFUSED,
         ("git", "http"): BODY, ("git", "https"): "403", ("curl", "http"): BODY, ("curl", "https"): "403"}


def cargo():
    """The program itself: what is on the PATH may be rustup's, which looks for it below a home that no sandbox sees."""
    if not shutil.which("cargo"):
        pytest.skip("cargo is not installed here")
    if not shutil.which("rustup"):
        return shutil.which("cargo")
    return subprocess.run(["rustup", "which", "cargo"], check=True, capture_output=True, text=True).stdout.strip()


def need(holtd, box, tool):
    if tool == "cargo":
        with open(cargo(), "rb") as f:
            put(holtd, box, "/tmp/bin/cargo", f.read())
        run(holtd, box, "chmod 755 /tmp/bin/cargo")
    elif not shutil.which(tool, path="/usr/bin:/bin") or (tool == "git" and not os.path.exists(GIT_BACKEND)):
        pytest.skip(f"{tool} is not installed here")


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_package_manager_works_and_says_what_refused_it(holtd, box, ports, tool, scheme):
    need(holtd, box, tool)
    host, line, check, prints, env = TOOLS[tool]
    port = ports[scheme == "https"]
    for where, extra in (("by", {}), ("past", {v: "" for v in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "PIP_PROXY", "CARGO_HTTP_PROXY",
                                                               "npm_config_proxy", "npm_config_https_proxy")})):
        d = f"/tmp/{tool}-{scheme}-{where}"
        code, out = run(holtd, box, line.format(h=host, u=f"{scheme}://{host}:{port}", d=d), env={**env, **extra})
        assert code == 0, (where, out)
        assert prints in run(holtd, box, check.format(d=d))[1]
    code, out = run(holtd, box, line.format(h="elsewhere.test", u=f"{scheme}://elsewhere.test:{port}", d=f"/tmp/{tool}-{scheme}-refused"), env=env)
    assert code != 0 and SHOWN[tool, scheme] in out, out
    denied = [e["data"] for e in holtd.ok("GET", "/holt/v1/events?type=egress.denied&limit=1000")["events"] if e["object"] == f"sandbox/{box}"]
    assert {"host": "elsewhere.test", "port": port, "rule": "no rule allows this host and port"}.items() <= denied[-1].items()


def test_apt_in_a_debian_image(holtd, ports, ca):
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        pytest.skip("no apt here to make an image of")
    code, body, _ = holtd.request("POST", "/holt/v1/images/import?name=debian", debian_image(), headers={"Content-Type": "application/x-tar"}, timeout=120)
    assert code == 201, body
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"image": "debian", "network": policy(ports)})["id"]
    put(holtd, box, "/tmp/ca.pem", ca[0].read_bytes())
    apt = "apt-get -o Acquire::Retries=0 -o Acquire::https::CaInfo=/tmp/ca.pem "
    for url in (f"http://deb.test:{ports[0]}", f"https://deb.test:{ports[1]}"):
        put(holtd, box, "/etc/apt/sources.list", f"deb [trusted=yes] {url}/debian ./\n".encode())
        for env in ({}, {v: "" for v in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}):
            code, out = run(holtd, box, f"rm -rf /var/lib/apt/lists/*; {apt} update -qq && {apt} install -y -qq holt-otter && holt-otter && "
                            f"{apt} purge -y -qq holt-otter && {apt} clean", env=env)
            assert code == 0 and "an otter by apt" in out, out
    put(holtd, box, "/etc/apt/sources.list", f"deb [trusted=yes] http://elsewhere.test:{ports[0]}/debian ./\n".encode())
    code, out = run(holtd, box, f"{apt} update --error-on=any")
    assert code != 0 and REFUSED in out, out
    assert holtd.request("DELETE", f"/holt/v1/sandboxes/{box}")[0] == 204
