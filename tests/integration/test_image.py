"""Images: import, pull, list, remove, against a real holtd on the fake runtime (which unpacks with a plain
child instead of a sandbox: the rest of the path is the same)."""
import hashlib
import json
import os
import signal
import socket
import stat
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from archives import folder, gz, member, symlink, tar
from daemon import BUILD, environment, native, wait_for
from registry import Registry, digest


@pytest.fixture
def fake(new_holtd):
    return new_holtd("--runtime", "fake")


@pytest.fixture
def registry():
    made = []

    def make(**how):
        made.append(Registry(**how))
        return made[-1]

    yield make
    for r in made:
        r.close()


def call(d, method, path, body=None, raw=None, status=None):
    data = raw if raw is not None else (json.dumps(body).encode() if body is not None else None)
    rq = urllib.request.Request(d.url + path, data=data, method=method, headers={
        "authorization": f"Bearer {d.token}",
        "content-type": "application/x-tar" if raw is not None else "application/json"})
    try:
        with urllib.request.urlopen(rq, timeout=60) as r:
            got, text = r.status, r.read()
    except urllib.error.HTTPError as e:
        got, text = e.code, e.read()
    doc = json.loads(text) if text else None
    if status:
        assert got == status, (got, doc)
    return doc


def images(d, query=""):
    return [i for i in call(d, "GET", f"/holt/v1/images{query}", status=200)["images"] if i["id"] != "host"]


def layer_dirs(d):
    return sorted(os.listdir(f"{d.state}/layers"))


def settled(d, count):
    """Exactly this many layers on disk, and nothing in the spool."""
    wait_for(lambda: len(layer_dirs(d)) == count and os.listdir(f"{d.state}/spool") == [], 60)


LOW = tar(folder("etc"), member("etc/name", b"low"), member("etc/gone", b"x"), member("bin/tool", b"#!\n", mode=0o755))
HIGH = tar(member("etc/name", b"high"), member("etc/.wh.gone"))


def oci_layout(layers, name=None, diff_ids=None, broken=None, defaults=None):
    blobs = {}

    def add(data):
        blobs[digest(data)] = data
        return {"digest": digest(data), "size": len(data)}

    config = add(json.dumps({"os": "linux", "architecture": "amd64", "config": defaults or {"Env": ["A=b"], "Cmd": ["sh"]}, "rootfs": {
        "diff_ids": diff_ids or [digest(p) for _, p in layers]}}).encode())
    manifest = add(json.dumps({"schemaVersion": 2, "config": config, "layers": [
        dict(add(b), mediaType="application/vnd.oci.image.layer.v1.tar+gzip") for b, _ in layers]}).encode())
    if broken is not None:
        d = digest(layers[broken][0])
        blobs[d] = blobs[d] + b"\0" * 512
    if name:
        manifest["annotations"] = {"org.opencontainers.image.ref.name": name}
    index = {"schemaVersion": 2, "manifests": [dict(manifest, mediaType="application/vnd.oci.image.manifest.v1+json")]}
    return tar(member("oci-layout", b'{"imageLayoutVersion": "1.0.0"}'), member("index.json", json.dumps(index).encode()),
               *[member("blobs/sha256/" + d.split(":")[1], data) for d, data in blobs.items()])


def docker_save(layers, name="team/app:1.2"):
    config = json.dumps({"os": "linux", "architecture": "amd64", "rootfs": {"diff_ids": [digest(p) for p in layers]}}).encode()
    files, names = [], []
    for p in layers:
        names.append(hashlib.sha256(b"id" + p).hexdigest() + "/layer.tar")
        files.append(member(names[-1], p))
    c = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": c, "RepoTags": [name], "Layers": names}]).encode()
    return tar(*files, member(c, config), member("manifest.json", manifest))


# --- import ---

def test_the_host_is_always_there(fake):
    i = call(fake, "GET", "/holt/v1/images/host", status=200)
    assert i["id"] == "host" and i["state"] == "ready" and i["source"] == "builtin"
    assert call(fake, "DELETE", "/holt/v1/images/host")["error"]["code"] == "conflict"


def test_a_root_tar_becomes_an_image(fake):
    archive = gz(tar(folder("./"), folder("etc"), member("etc/passwd", b"root"), symlink("bin", "usr/bin")))
    i = call(fake, "POST", "/holt/v1/images/import?name=mine", raw=archive, status=201)
    assert i["state"] == "ready" and i["name"] == "mine:latest" and i["layers"] == 1
    assert i["digest"] == digest(archive)
    settled(fake, 1)
    [d] = layer_dirs(fake)
    assert d.startswith("ly_") and len(d) == 31
    with open(f"{fake.state}/layers/{d}/fs/etc/passwd") as f:
        assert f.read() == "root"
    with open(f"{fake.state}/layers/{d}/meta") as f:
        assert json.load(f)["digest"] == digest(archive)
    assert call(fake, "GET", "/holt/v1/images/mine", status=200)["id"] == i["id"]
    call(fake, "DELETE", "/holt/v1/images/mine:latest", status=204)
    settled(fake, 0)
    assert images(fake) == []


@pytest.mark.parametrize("kind", ["oci", "docker"])
def test_image_archives(fake, kind):
    archive = oci_layout([(gz(LOW), LOW), (gz(HIGH), HIGH)]) if kind == "oci" else docker_save([LOW, HIGH])
    query = "?name=team/app:1.2" if kind == "oci" else ""
    i = call(fake, "POST", f"/holt/v1/images/import{query}", raw=archive, status=201)
    assert i["name"] == "team/app:1.2" and i["layers"] == 2 and i["arch"] == "amd64"
    if kind == "oci":
        assert i["defaults"] == {"env": ["A=b"], "cmd": ["sh"]}
    settled(fake, 2)
    trees = {}
    for d in layer_dirs(fake):
        with open(f"{fake.state}/layers/{d}/fs/etc/name") as f:
            trees[f.read()] = f"{fake.state}/layers/{d}/fs"
    assert set(trees) == {"low", "high"}
    assert stat.S_ISCHR(os.lstat(trees["high"] + "/etc/gone").st_mode)
    call(fake, "DELETE", f"/holt/v1/images/{i['id']}", status=204)
    settled(fake, 0)


def test_layers_are_shared_and_counted(fake):
    call(fake, "POST", "/holt/v1/images/import?name=a", raw=oci_layout([(gz(LOW), LOW)]), status=201)
    b = call(fake, "POST", "/holt/v1/images/import?name=b", raw=oci_layout([(gz(LOW), LOW), (gz(HIGH), HIGH)]), status=201)
    settled(fake, 2)
    call(fake, "DELETE", "/holt/v1/images/a", status=204)
    assert len(images(fake)) == 1
    time.sleep(0.3)
    assert len(layer_dirs(fake)) == 2
    call(fake, "DELETE", f"/holt/v1/images/{b['id']}", status=204)
    settled(fake, 0)


def test_one_layer_twice_in_an_image(fake):
    call(fake, "POST", "/holt/v1/images/import?name=a", raw=oci_layout([(gz(LOW), LOW), (gz(HIGH), HIGH), (gz(LOW), LOW)]), status=201)
    settled(fake, 2)
    assert images(fake)[0]["layers"] == 3
    call(fake, "DELETE", "/holt/v1/images/a", status=204)
    settled(fake, 0)


def test_two_imports_of_one_layer_at_once(fake):
    archive = oci_layout([(gz(LOW), LOW), (gz(HIGH), HIGH)])
    threads = [threading.Thread(target=call, args=(fake, "POST", f"/holt/v1/images/import?name=n{i}"),
                                kwargs={"raw": archive, "status": 201}) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [i["state"] for i in images(fake)] == ["ready"] * 6
    settled(fake, 2)
    for i in images(fake):
        call(fake, "DELETE", f"/holt/v1/images/{i['id']}", status=204)
    settled(fake, 0)


def test_a_name_moves_to_the_newer_image(fake):
    call(fake, "POST", "/holt/v1/images/import?name=a", raw=tar(member("x", b"1")), status=201)
    second = call(fake, "POST", "/holt/v1/images/import?name=a", raw=tar(member("x", b"2")), status=201)
    assert sorted(i["name"] for i in images(fake)) == ["", "a:latest"]
    assert call(fake, "GET", "/holt/v1/images/a", status=200)["id"] == second["id"]


@pytest.mark.parametrize("archive,words", [
    (tar(member("../evil", b"x")), "'..'"),
    (tar(symlink("a", "/tmp"), member("a/evil", b"x")), "link"),
    (b"this is no archive", "early"),
    (b"", "empty"),
    (oci_layout([(gz(LOW), LOW)], diff_ids=[digest(b"other")]), "does not match the image's config"),
    (oci_layout([(gz(LOW), LOW)], broken=0), "digest"),
    (oci_layout([(gz(LOW), LOW)], diff_ids=[digest(LOW), digest(LOW)]), "diff_ids"),
    (tar(member("index.json", b"{}")), "manifests"),
    (tar(member("manifest.json", b'[{"Config": "../../x", "Layers": []}]')), "config"),
], ids=["dotdot", "symlink", "garbage", "empty", "diff_id", "digest", "count", "index", "docker"])
def test_bad_archives_leave_nothing(fake, archive, words):
    e = call(fake, "POST", "/holt/v1/images/import?name=a", raw=archive)["error"]
    assert e["code"] == "invalid" and any(w in e["message"] for w in words.split("|")), e
    settled(fake, 0)
    assert images(fake) == [], "only where they are asked for"
    [i] = images(fake, "?all=true")
    assert i["state"] == "failed" and i["failure"]
    assert i["id"] not in holt(fake, "image", "ls") and i["id"] in holt(fake, "image", "ls", "--all")
    assert call(fake, "GET", "/holt/v1/images/a")["error"]["code"] == "not_found"


def test_a_client_that_goes_leaves_nothing(fake):
    s = socket.create_connection(("127.0.0.1", fake.port))
    s.sendall(f"POST /holt/v1/images/import?name=a HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {fake.token}\r\n"
              "content-type: application/x-tar\r\ncontent-length: 100000\r\n\r\n".encode() + b"x" * 5000)
    wait_for(lambda: images(fake) and images(fake)[0]["done_bytes"] > 0)
    s.close()
    wait_for(lambda: images(fake, "?all=true")[0]["state"] == "failed")
    settled(fake, 0)


def test_images_outlive_the_daemon(new_holtd):
    d = new_holtd("--runtime", "fake", name="one")
    i = call(d, "POST", "/holt/v1/images/import?name=a", raw=oci_layout([(gz(LOW), LOW), (gz(HIGH), HIGH)]), status=201)
    os.makedirs(f"{d.state}/layers/tmp_0123456789/fs/left/over")
    os.makedirs(f"{d.state}/layers/ly_0123456789/fs")
    with open(f"{d.state}/spool/sp_x", "w") as f:
        f.write("x")
    os.kill(d.process.pid, signal.SIGKILL)
    d.process.wait()
    d2 = new_holtd("--runtime", "fake", name="one")
    assert call(d2, "GET", "/holt/v1/images/a", status=200)["id"] == i["id"]
    settled(d2, 2)


def test_progress_is_told_by_events(fake):
    call(fake, "POST", "/holt/v1/images/import?name=a", raw=tar(member("x", b"1")), status=201)
    types = [e["type"] for e in call(fake, "GET", "/holt/v1/events?object=image/", status=200)["events"]]
    assert types[-1] == "image.created" and "image.progress" in types


# --- pull ---

def test_a_pull(fake, registry):
    r = registry()
    r.add_image([(gz(LOW), LOW), (gz(HIGH), HIGH)], "1.2", config={"Env": ["A=b"]})
    i = call(fake, "POST", "/holt/v1/images/pull", {"ref": f"{r.host}/team/app:1.2"}, status=201)
    assert i["state"] == "ready" and i["layers"] == 2 and i["defaults"] == {"env": ["A=b"]}
    assert i["name"] == f"{r.host}/team/app:1.2"
    settled(fake, 2)
    before = len(r.seen)
    call(fake, "POST", "/holt/v1/images/pull", {"ref": f"{r.host}/team/app:1.2", "name": "again"}, status=201)
    assert not [p for p, _ in r.seen[before:] if digest(gz(LOW)) in p], "a layer that is there was fetched again"


def test_a_digest_alone_gives_no_layer_of_another_tenant(fake, registry):
    """Who names another tenant's layer in a manifest of its own has to bring that layer's bytes too."""
    private = tar(member("etc/key", b"of acme alone"))
    theirs, ours = registry(), registry()
    for r in (theirs, ours):
        r.add_image([(gz(private), private)], "1")
    del theirs.blobs[digest(gz(private))]
    tokens = {t: call(fake, "POST", "/holt/v1/tokens", {"name": f"op-{t}", "role": "operator", "tenant": t}, status=201)["token"]
              for t in ("acme", "beta")}

    def pull(tenant, r, name):
        return fake.request("POST", "/holt/v1/images/pull", {"ref": f"{r.host}/team/app:1", "name": name}, token=tokens[tenant])[:2]

    assert pull("acme", ours, "mine")[0] == 201
    status, reply = pull("beta", theirs, "stolen")
    assert status != 201 and "404" in json.dumps(reply), reply
    assert pull("acme", theirs, "mine-again")[0] == 201, "its own layer was fetched again"
    assert pull("beta", ours, "honest")[0] == 201, "who brings the bytes has the layer"


def test_a_large_layer(fake, registry):
    big = tar(member("big", os.urandom(12 << 20)), member("zero", b"\0" * (30 << 20)))
    r = registry()
    r.add_image([(gz(big, 1), big)], "latest")
    i = call(fake, "POST", "/holt/v1/images/pull", {"ref": f"{r.host}/team/app"}, status=201)
    assert i["size_bytes"] == 42 << 20


def test_an_index_by_platform_with_token_and_storage_elsewhere(fake, registry):
    r = registry(auth=True, redirect=True)
    good = r.add_image([(gz(LOW), LOW)])
    other = r.add_image([(gz(HIGH), HIGH)], arch="s390x")
    here = os.uname().machine.replace("x86_64", "amd64").replace("aarch64", "arm64")
    r.add_manifest({"schemaVersion": 2, "manifests": [
        dict(other, platform={"os": "linux", "architecture": "s390x"}),
        dict(good, platform={"os": "linux", "architecture": here})]}, "latest", kind="index")
    i = call(fake, "POST", "/holt/v1/images/pull", {"ref": f"{r.host}/team/app"}, status=201)
    assert i["digest"] == good["digest"]
    token = [p for p, _ in r.seen if p.startswith("/token")]
    assert token and "scope=repository%3Ateam%2Fapp%3Apull" in token[0] and "service=test" in token[0]
    assert [h for _, h in r.seen if h.get("authorization")], "the token was not used"
    assert r.storage_seen, "the redirect was not followed"
    for _, headers in r.storage_seen:
        assert "authorization" not in {k.lower() for k in headers}, "the token went to another host"


def test_by_digest(fake, registry):
    r = registry()
    m = r.add_image([(gz(LOW), LOW)])
    assert call(fake, "POST", "/holt/v1/images/pull", {"ref": f"{r.host}/team/app@{m['digest']}"}, status=201)["digest"] == m["digest"]


def wrong_layer(r, m):
    forged = gz(tar(member("etc/forged", b"x" * 20)))
    assert len(forged) <= len(gz(LOW))
    r.wrong[digest(gz(LOW))] = forged


def cut_layer(r, m):
    r.cut[digest(gz(LOW))] = 60


def long_layer(r, m):
    r.wrong[digest(gz(LOW))] = gz(LOW) + b"\0" * 5000


def wrong_config(r, m):
    d = next(d for d, b in r.blobs.items() if b"diff_ids" in b)
    r.wrong[d] = r.blobs[d].replace(b"amd64", b"arm64")


def wrong_manifest(r, m):
    r.wrong[m["digest"]] = b"{}"


def hostile_layer(r, m):
    bad = tar(member("../../evil", b"x"))
    r.add_image([(gz(bad), bad)], "latest")


def lying_diff_id(r, m):
    r.add_image([(gz(LOW), LOW)], "latest", diff_ids=[digest(b"x")])


def missing_blob(r, m):
    del r.blobs[digest(gz(LOW))]


def endless_redirects(r, m):
    r.loops = True


def redirect_to_file(r, m):
    r.redirect_to = "file:///etc/passwd"


def redirect_to_nowhere(r, m):
    r.redirect_to = "http://[bad"


def clear_text_elsewhere(r, m):
    r.redirect_to = "http://registry.invalid/x"


@pytest.mark.parametrize("spoil,words", [
    (wrong_layer, "another digest"), (cut_layer, "registry|early|damaged"), (long_layer, "expected"), (wrong_config, "another digest"),
    (wrong_manifest, "another digest"), (hostile_layer, "'..'"), (lying_diff_id, "does not match the image's config"), (missing_blob, "404"),
    (endless_redirects, "too often"), (redirect_to_file, "web address"), (redirect_to_nowhere, "not a server"),
    (clear_text_elsewhere, "encrypted"),
])
def test_a_registry_that_misbehaves(fake, registry, spoil, words):
    r = registry()
    m = r.add_image([(gz(LOW), LOW)], "latest")
    spoil(r, m)
    ref = f"{r.host}/team/app" + (f"@{m['digest']}" if spoil is wrong_manifest else "")
    e = call(fake, "POST", "/holt/v1/images/pull", {"ref": ref})["error"]
    assert any(w in e["message"] for w in words.split("|")), e
    settled(fake, 0)
    assert [i["state"] for i in images(fake, "?all=true")] == ["failed"] and images(fake) == []


def test_refused_by_the_token_server(fake, registry):
    r = registry(auth=True)
    r.add_image([(gz(LOW), LOW)], "latest")
    r.deny = True
    e = call(fake, "POST", "/holt/v1/images/pull", {"ref": f"{r.host}/team/app"})["error"]
    assert "token server replied with status 403" in e["message"]


def test_no_such_tag(fake, registry):
    r = registry()
    assert call(fake, "POST", "/holt/v1/images/pull", {"ref": f"{r.host}/team/app:no"})["error"]["code"] == "not_found"


def test_a_pull_can_be_watched_and_stopped(fake, registry):
    r = registry()
    r.add_image([(gz(LOW), LOW)], "latest")
    r.slow = threading.Event()
    i = call(fake, "POST", "/holt/v1/images/pull", {"ref": f"{r.host}/team/app", "wait": False}, status=202)
    assert i["state"] == "working"
    call(fake, "DELETE", f"/holt/v1/images/{i['id']}", status=204)
    wait_for(lambda: call(fake, "GET", f"/holt/v1/images/{i['id']}")["state"] == "failed")
    r.slow.set()
    settled(fake, 0)


def test_a_daemon_that_stops_during_a_pull(new_holtd, registry):
    r = registry()
    r.add_image([(gz(LOW), LOW)], "latest")
    r.slow = threading.Event()
    d = new_holtd("--runtime", "fake", name="one")
    call(d, "POST", "/holt/v1/images/pull", {"ref": f"{r.host}/team/app", "wait": False}, status=202)
    wait_for(lambda: layer_dirs(d))
    assert d.stop() == 0
    r.slow.set()
    settled(new_holtd("--runtime", "fake", name="one"), 0)


@pytest.mark.parametrize("ref", ["Bad Name", "a/../b", "registry.invalid:80/x/y z", "http://x/y"])
def test_bad_references(fake, ref):
    assert call(fake, "POST", "/holt/v1/images/pull", {"ref": ref})["error"]["code"] == "invalid"


# --- the command line ---

def holt(d, *args, stdin=None, status=0):
    p = subprocess.run([f"{BUILD}/holt", *args], input=stdin, capture_output=True, timeout=60,
                       env=environment({"HOLT_SERVER": d.url, "HOLT_TOKEN": d.token, "HOME": d.state}))
    assert p.returncode == status, (p.returncode, p.stdout, p.stderr)
    return p.stdout.decode() if status == 0 else p.stderr.decode()


def test_cli_imports_files_directories_and_streams(fake, tmp_path):
    (tmp_path / "a.tar").write_bytes(oci_layout([(gz(LOW), LOW)]))
    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "root/etc/name").write_text("dir")
    i = json.loads(holt(fake, "image", "import", str(tmp_path / "a.tar"), "--name", "team/file", "-o", "json"))
    assert i["state"] == "ready" and i["name"] == "team/file:latest"
    assert json.loads(holt(fake, "image", "import", str(tmp_path / "root"), "--name", "dir", "-o", "json"))["layers"] == 1
    assert "ready" in holt(fake, "image", "import", "-", "--name", "pipe", stdin=docker_save([HIGH]))
    table = holt(fake, "image", "ls")
    for name in ("host", "team/file:latest", "dir:latest", "pipe:latest"):
        assert name in table
    assert json.loads(holt(fake, "image", "inspect", "team/file", "-o", "json"))["id"] == i["id"]
    holt(fake, "image", "rm", "team/file:latest")
    assert "there is no image" in holt(fake, "image", "inspect", "team/file", status=2)


def test_cli_pulls_and_says_what_went_wrong(fake, registry, tmp_path):
    r = registry()
    r.add_image([(gz(LOW), LOW)], "1")
    assert json.loads(holt(fake, "image", "pull", f"{r.host}/app:1", "--name", "app", "-o", "json"))["name"] == "app:latest"
    wrong_layer(r, None)
    holt(fake, "image", "rm", "app")
    settled(fake, 0)
    said = subprocess.run([f"{BUILD}/holt", "image", "pull", f"{r.host}/app:1"], capture_output=True, text=True,
                          env=environment({"HOLT_SERVER": fake.url, "HOLT_TOKEN": fake.token, "HOME": str(tmp_path)}))
    assert said.returncode != 0 and "another digest" in said.stderr, said


# --- sandboxes on images ---

def test_names_of_other_systems_stand_for_the_host(fake):
    for name in ("ubuntu:22.04", "sandbox-base:dev", "agentbox-sandbox:latest"):
        made = call(fake, "POST", "/holt/v1/sandboxes", {"image": name}, status=201)
        run = call(fake, "POST", "/holt/v1/run", {"image": name, "command": ["true"]}, status=200)
        said = f"'{name}' means the host's own files here (setting image_aliases); `holt image pull {name}` downloads the image"
        assert made["image"] == "host" and said in made["warnings"] and said in run["warnings"], (made, run)
        assert said in call(fake, "GET", f"/holt/v1/sandboxes/{made['id']}", status=200)["warnings"]
    assert call(fake, "POST", "/holt/v1/sandboxes", {"image": "host"}, status=201)["warnings"] == []
    assert call(fake, "POST", "/holt/v1/sandboxes", {"image": "debian:12"})["error"]["code"] == "not_found"


def test_an_image_of_that_name_goes_before_the_alias(fake):
    """The fake runtime has no layers: that it says so shows that it was given some.  What the attempt held is
    released."""
    call(fake, "POST", "/holt/v1/images/import?name=ubuntu:22.04", raw=tar(member("x", b"1")), status=201)
    e = call(fake, "POST", "/holt/v1/sandboxes", {"image": "ubuntu:22.04"})["error"]
    assert e["code"] == "unsupported" and "images" in e["message"]
    call(fake, "DELETE", "/holt/v1/images/ubuntu:22.04", status=204)
    settled(fake, 0)


# --- what an image says of commands ---

SHOW = r"""
#include <stdio.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv)
{
    char cwd[4096];

    for (int i = 0; i < argc; i++)
        printf("arg %s\n", argv[i]);
    printf("cwd %s\nid %d:%d\n", getcwd(cwd, sizeof cwd), (int)getuid(), (int)getgid());
    for (char **e = environ; *e; e++)
        printf("env %s\n", *e);
    return 0;
}
"""


@pytest.fixture(scope="module")
def show(tmp_path_factory):
    """A program that needs nothing else in its image."""
    at = tmp_path_factory.mktemp("show")
    (at / "show.c").write_text(SHOW)
    if subprocess.run(["cc", "-static", "-o", at / "show", at / "show.c"], capture_output=True, check=False).returncode:
        pytest.skip("no C compiler that links statically")
    return (at / "show").read_bytes()


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("native") / "d")
    yield d
    d.clear()
    d.stop()


def shown(text):
    """What it printed: its arguments, directory, ids, and environment."""
    lines = [line.split(" ", 1) for line in text.splitlines()]
    return ([v for k, v in lines if k == "arg"], dict(lines)["cwd"], dict(lines)["id"],
            dict(v.split("=", 1) for k, v in lines if k == "env"))


def import_show(d, show, name, defaults):
    layer = tar(folder("bin"), folder("srv"), folder("etc"), folder("home"), member("bin/show", show, mode=0o755),
                member("etc/passwd", b"root:x:0:0::/root:/bin/sh\nann:x:1000:1001::/home:/bin/sh\n"),
                member("etc/group", b"root:x:0:\nann:x:1001:\nstaff:x:50:\n"))
    call(d, "POST", f"/holt/v1/images/import?name={name}", raw=oci_layout([(gz(layer), layer)], defaults=defaults), status=201)


def test_a_command_gets_what_its_image_says(real, show):
    import_show(real, show, "said", {"Env": ["PATH=/opt:/bin", "A=image", "B=image", "odd"], "WorkingDir": "/srv",
                                     "Entrypoint": ["/bin/show", "one"], "Cmd": ["two"]})
    r = call(real, "POST", "/holt/v1/run", {"image": "said"}, status=200)
    args, cwd, _, env = shown(r["stdout"])
    assert (args, cwd) == (["/bin/show", "one", "two"], "/srv") and r["cwd"] == "/srv"
    assert env["PATH"] == "/opt:/bin" and env["A"] == "image" and "odd" not in env
    args, cwd, _, env = shown(call(real, "POST", "/holt/v1/run", {"image": "said", "command": ["show"], "cwd": "/", "env": {"A": "mine"}},
                                   status=200)["stdout"])
    assert (args, cwd) == (["show"], "/"), "found by the image's PATH; what was asked for goes first"
    assert env["A"] == "mine" and env["B"] == "image"
    args, cwd, _, env = shown(holt(real, "run", "--image", "said", "-e", "B=mine"))
    assert args == ["/bin/show", "one", "two"] and cwd == "/srv" and env["A"] == "image" and env["B"] == "mine"
    box = call(real, "POST", "/holt/v1/sandboxes", {"image": "said", "env": {"B": "box"}}, status=201)["id"]
    call(real, "DELETE", "/holt/v1/images/said", status=204)
    for _ in range(2):
        _, cwd, _, env = shown(call(real, "POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["show"]}, status=200)["stdout"])
        assert cwd == "/srv" and env["A"] == "image" and env["B"] == "box", "each, also when the image is gone"
    assert shown(call(real, "POST", f"/holt/v1/sandboxes/{box}/execs", {}, status=200)["stdout"])[0] == ["/bin/show", "one", "two"]
    call(real, "DELETE", f"/holt/v1/sandboxes/{box}", status=204)


def test_what_an_image_says_outlives_the_daemon(show, tmp_path):
    d = native(tmp_path / "d")
    try:
        import_show(d, show, "said", {"Env": ["PATH=/bin", "A=image"], "WorkingDir": "srv"})
        box = call(d, "POST", "/holt/v1/sandboxes", {"image": "said"}, status=201)["id"]
        os.kill(d.process.pid, signal.SIGKILL)
        d.process.wait()
        d = native(tmp_path / "d")
        _, cwd, _, env = shown(call(d, "POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["show"]}, status=200)["stdout"])
        assert cwd == "/srv" and env["A"] == "image"
        d.clear()
    finally:
        d.stop()


def test_a_run_without_any_command(real, show):
    import_show(real, show, "silent", {"Env": ["A=image"]})
    for body in ({}, {"image": "host"}, {"image": "silent"}):
        e = call(real, "POST", "/holt/v1/run", body, status=400)["error"]
        assert "field 'command'" in e["message"], e
    assert "missing argument: COMMAND" in holt(real, "run", status=125)
    call(real, "DELETE", "/holt/v1/images/silent", status=204)
    settled(real, 0)  # what the refused runs held too


@pytest.mark.needs_root("an ordinary user's sandbox may have no second user")
@pytest.mark.parametrize("user, ids, home", [("1000:7", "1000:7", None), ("ann", "1000:1001", "/home"), ("1000", "1000:1001", "/home"),
                                             ("ann:staff", "1000:50", "/home"), ("ann:8", "1000:8", "/home")])
def test_a_command_runs_as_its_images_user(real, show, user, ids, home):
    import_show(real, show, "users", {"User": user, "Cmd": ["/bin/show"]})
    try:
        r = call(real, "POST", "/holt/v1/run", {"image": "users"}, status=200)
        _, _, got, env = shown(r["stdout"])
        assert got == ids and r["user"] == user
        assert shown(call(real, "POST", "/holt/v1/run", {"image": "users", "user": "0", "command": ["/bin/show"]}, status=200)["stdout"])[2] == "0:0"
        if home:
            assert env["HOME"] == home
    finally:
        call(real, "DELETE", "/holt/v1/images/users", status=204)
