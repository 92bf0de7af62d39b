"""Loadouts and builds of images: steps in sandboxes, cached layers, their use, what is refused."""
import io
import json
import os
import subprocess
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from daemon import BUILD, environment, native, wait_for

API = "/holt/v1"
NAMES = {"packages.test": ["127.0.0.1"]}
HEAD = {"apiVersion": "loadout/v1", "kind": "loadout"}
OWN = """apiVersion: loadout/v1
kind: loadout
metadata: {name: house, description: Of this house., labels: {category: task-focused, complexity: minimal}}
extends: [layers/house-tools.yaml]
network: {mode: allowlist, allowlist: {domains: [packages.test]}}
resources: {cpus: 1, memory: 256M}
runcmd: ["echo last >> /opt/order"]
"""
TOOLS = """apiVersion: loadout/v1
kind: layer
metadata: {name: house-tools}
write_files: [{path: /opt/tools/bin/hello, permissions: "0755", content: "#!/bin/sh\\necho hello from a tool"}]
runcmd: ["echo first >> /opt/order"]
"""


@pytest.fixture(scope="module")
def packages():
    """A package source on loopback: an archive with a program in it, as NODE_ARCHIVE names one."""
    class Source(BaseHTTPRequestHandler):
        def do_GET(self):
            body = io.BytesIO()
            with tarfile.open(fileobj=body, mode="w:gz") as t:
                for name in ("node", "npm"):
                    data = f'#!/bin/sh\n[ "$1" = install ] || {{ echo v22.0.0; exit; }}\nshift 2\nfor p; do p=${{p##*/}}; p=${{p%@*}}; '.encode() + \
                        b'printf "#!/bin/sh\\necho $p of the source\\n" > "$PREFIX/bin/${p%-code}"; chmod 755 "$PREFIX/bin/${p%-code}"; done\n'
                    info = tarfile.TarInfo(f"node-v22/bin/{name}")
                    info.size, info.mode = len(data), 0o755
                    t.addfile(info, io.BytesIO(data))
            self.send_response(200 if self.path == "/node.tar.gz" else 404)
            self.send_header("content-length", str(len(body.getvalue())))
            self.end_headers()
            self.wfile.write(body.getvalue())

        def log_message(self, *_):
            pass
    server = HTTPServer(("127.0.0.1", 0), Source)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def holtd(tmp_path_factory, names, packages):
    home = tmp_path_factory.mktemp("loadout")
    for path, text in (("profiles/house.yaml", OWN), ("layers/house-tools.yaml", TOOLS)):
        os.makedirs(home / "own" / os.path.dirname(path), exist_ok=True)
        (home / "own" / path).write_text(text)
    d = native(home, "--egress-dns", names.address, "--egress-internal", "packages.test=127.0.0.0/8", "--loadouts-dir", str(home / "own"),
               "--build-hosts", f"packages.test:{packages}", "--build-env", f"NODE_ARCHIVE=http://packages.test:{packages}/node.tar.gz,WHO=house")
    yield d
    d.clear()
    assert d.stop() == 0, d.log()[-4000:]


@pytest.fixture
def holt(tmp_path, holtd):
    def run(*words, status=0, stdin=""):
        env = environment({"HOME": str(tmp_path), "LANG": "C.UTF-8", "HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token})
        r = subprocess.run([f"{BUILD}/holt", *words], capture_output=True, text=True, timeout=120, input=stdin, env=env, check=False)
        assert r.returncode == status, f"holt {' '.join(words)}: {r.returncode}\n{r.stdout}{r.stderr}"
        return r
    return run


def declare(name, **more):
    return {**HEAD, "metadata": {"name": name}, **more}


def build(holtd, manifest=None, status=200, **more):
    body = {**({"manifest": manifest} if manifest else {}), **more}
    got, reply, _ = holtd.request("POST", f"{API}/loadouts/build", body, timeout=120)
    assert got in ((200, 201) if status == 200 else (status,)), reply
    return reply


def marks(b):
    return [s["state"] for s in b["steps"]]


def run(holtd, line, **more):
    r = holtd.ok("POST", f"{API}/run", {"command": line, **more})
    assert r["exit_code"] == 0, r
    return r["stdout"]


# --- what there is ---

def test_shipped_ones_are_listed(holtd, holt):
    rows = {r["name"]: r for r in holtd.ok("GET", f"{API}/loadouts")["loadouts"]}
    assert {"basic", "agentic-dev", "claude-only", "codex-only", "copilot-only", "dual-review", "multi-provider", "full-suite", "security-audit",
            "research-station", "sdlc-team", "browser-qa", "automation-control", "house"} == set(rows)
    assert rows["dual-review"]["extends"] == ["layers/base-dev.yaml", "providers/claude-code.yaml", "providers/codex.yaml"]
    whole = {r["path"] for r in holtd.ok("GET", f"{API}/loadouts?all=true")["loadouts"]}
    for name in ("base-minimal", "base-dev", "ai-tools", "docker", "databases", "observability", "network-tools", "automation-control", "browser-automation"):
        assert f"layers/{name}.yaml" in whole
    for name in ("claude-code", "codex", "copilot", "cursor", "factory", "opencode", "warp", "windsurf", "openclaw"):
        assert f"providers/{name}.yaml" in whole
    assert set(r["name"] for r in holtd.ok("GET", f"{API}/loadouts?category=collaboration")["loadouts"]) == {"dual-review", "full-suite", "multi-provider"}
    assert holtd.ok("GET", f"{API}/loadouts/profiles/basic.yaml")["manifest"]["extends"] == ["layers/base-minimal.yaml"]
    assert holtd.request("GET", f"{API}/loadouts/none")[0] == 404
    registry = holtd.ok("GET", f"{API}/loadout-registry")
    assert [f["name"] for f in registry["frameworks"] if f["reserved"]] == ["all", "aiwg-dev"]
    assert [i["name"] for i in registry["init_scripts"]] == ["ubuntu", "ubuntu-minimal", "alpine"] and len(registry["presets"]) == 7
    assert "claude-only" in holt("loadout", "ls").stdout and "extends:" in holt("loadout", "show", "claude-only", "-o", "yaml").stdout
    assert "init_scripts" in holt("loadout", "registry").stdout


def test_a_resolved_one_has_all_that_it_extends(holtd, holt):
    r = holtd.ok("POST", f"{API}/loadouts/resolve", {"loadout": "full-suite"})
    m = r["manifest"]
    assert "extends" not in m and {"claude_code", "aider", "codex", "copilot"} <= {k for k, v in m["ai_tools"].items() if v["enabled"]}
    assert m["packages"].index("git") < m["packages"].index("docker.io") < m["packages"].index("sqlite3")  # in the order of extends
    assert {"packages", "python", "node", "go", "rust", "bun", "docker", "tool claude_code", "aiwg"} <= set(r["steps"]) and r["image"] is None
    dev = holtd.ok("POST", f"{API}/loadouts/resolve", {"loadout": "agentic-dev"})
    assert {"python", "node", "go", "rust", "docker", "tool claude_code", "tool aider"} <= set(dev["steps"])
    assert {"ripgrep", "fd-find", "jq"} <= set(dev["manifest"]["packages"])
    assert holtd.ok("POST", f"{API}/loadouts/resolve", {"loadout": "basic"})["steps"] == ["packages"]
    text = json.dumps(declare("by-text", extends=["layers/docker.yaml"]))
    assert "docker" in holtd.ok("POST", f"{API}/loadouts/resolve", {"manifest": text})["steps"]
    composed = holtd.ok("POST", f"{API}/loadouts/resolve", {"composition": {"init": "ubuntu-minimal", "aiwg": {"frameworks": ["sdlc"], "providers": ["codex"]}}})
    assert composed["steps"][-2:] == ["tool codex", "aiwg"]
    assert "tool claude_code" in holt("loadout", "resolve", "claude-only").stdout
    assert holt("loadout", "resolve", "-f", "-", stdin=text, status=0).stdout


@pytest.mark.parametrize(("body", "status", "words"), [
    ({"loadout": "none"}, 404, "there is no loadout"), ({}, 400, "give one of"), ({"loadout": "basic", "manifest": "x"}, 400, "give one of"),
    ({"loadout": "/etc/passwd"}, 403, "a path of the server"), ({"manifest": "a: ["}, 400, "line "), ({"manifest": {"kind": "loadout"}}, 400, "apiVersion"),
    ({"manifest": {**HEAD, "metadata": {"name": "x"}, "extends": ["../../../etc/x.yaml"]}}, 404, "there is no loadout"),
    ({"manifest": {**HEAD, "metadata": {"name": "x"}, "extends": ["/etc/x.yaml"]}}, 403, "a path of the server"),
    ({"manifest": {**HEAD, "metadata": {"name": "x"}, "packages": ["a; b"]}}, 400, "no name of a package"),
    ({"manifest": {**HEAD, "metadata": {"name": "x"}, "resources": {"memory": "lots"}}}, 400, "resources.memory"),
    ({"manifest": {**HEAD, "metadata": {"name": "x"}, "resources": {"gpu": {"enabled": True}}}}, 501, "resources.gpu"),
    ({"loadout": "basic", "base": "no/such:image"}, 404, "no/such"), ({"composition": {"init": "none"}}, 400, "no init 'none'"),
    ({"manifest": {**HEAD, "metadata": {"name": "x"}, "x": {"y": [["a"] * 1001]}}}, 400, "more than 1000 items"),
    ({"composition": {"aiwg": {"providers": ["claude-code"] * 65}}}, 400, "at most 64"),
])
def test_what_is_refused(holtd, body, status, words):
    got, reply, _ = holtd.request("POST", f"{API}/loadouts/resolve", body)
    assert got == status and words in reply["error"]["message"], reply


# --- building ---

def test_steps_run_once_and_their_order_stays(holtd):
    b = build(holtd, loadout="house")
    assert b["state"] == "ready" and marks(b) == ["done"] * 3 and [s["name"] for s in b["steps"]][0] == "file /opt/tools/bin/hello"
    again = build(holtd, loadout="house")
    assert marks(again) == ["cached"] * 3 and holtd.ok("GET", f"{API}/images/{again['image']}")["source"] == "build"
    assert run(holtd, "cat /opt/order; hello", image=b["name"]) == "first\nlast\nhello from a tool\n"
    more = build(holtd, declare("more", extends=["profiles/house.yaml"], runcmd=["echo more >> /opt/order"]))
    assert marks(more) == ["cached"] * 3 + ["done"]
    assert run(holtd, "cat /opt/order", image=more["name"]) == "first\nlast\nmore\n"
    assert marks(build(holtd, loadout="house", fresh=True)) == ["done"] * 3
    # images of steps are kept, and no list is full of them
    assert not [i for i in holtd.ok("GET", f"{API}/images")["images"] if i["source"] == "cache"]
    assert len([i for i in holtd.ok("GET", f"{API}/images?all=true")["images"] if i["source"] == "cache"]) >= 4
    assert not holtd.ok("GET", f"{API}/sandboxes")["sandboxes"]


def test_a_restart_finds_what_was_built(tmp_path):
    m = declare("kept", runcmd=["echo kept > /kept"])
    d = native(tmp_path)
    try:
        assert marks(build(d, m)) == ["done"]
        d.kill()
        d = native(tmp_path)
        b = build(d, m)
        assert marks(b) == ["cached"] and run(d, "cat /kept", image=b["name"]) == "kept\n"
    finally:
        d.stop()


def test_a_failed_step_tells_its_output(holtd, holt, tmp_path):
    m = declare("broken", runcmd=["echo fine > /fine", "echo this went wrong; exit 7", "echo never"])
    status, reply, _ = holtd.request("POST", f"{API}/loadouts/build", {"manifest": m})
    assert status == 400 and "step 2 of 3" in reply["error"]["message"] and "status 7: this went wrong" in reply["error"]["message"], reply
    b = holtd.ok("GET", f"{API}/builds")["builds"][-1]
    assert (b["state"], marks(b), b["step"]) == ("failed", ["done", "failed", "waiting"], 1) and "went wrong" in b["failure"]
    assert "this went wrong\n" in holtd.ok("GET", f"{API}/builds/{b['id']}/log")
    (tmp_path / "m.yaml").write_text(json.dumps(m))
    said = holt("loadout", "build", "-f", str(tmp_path / "m.yaml"), status=1).stderr
    assert "step 1/3 run echo fine > /fine: cached" in said and "this went wrong" in said
    m["runcmd"][1] = "echo repaired"
    assert marks(build(holtd, m)) == ["cached", "done", "done"]


def test_builds_are_seen_cancelled_and_bounded(holtd):
    status, b, _ = holtd.request("POST", f"{API}/loadouts/build", {"manifest": declare("slow", runcmd=["echo begun; sleep 1000"]), "wait": False})
    assert status == 202
    wait_for(lambda: "begun" in holtd.ok("GET", f"{API}/builds/{b['id']}/log"))
    now = holtd.ok("GET", f"{API}/builds/{b['id']}")
    assert now["state"] == "running" and marks(now) == ["running"] and now["image"] is None
    joined = holtd.ok("POST", f"{API}/loadouts/build", {"manifest": declare("slow", runcmd=["echo begun; sleep 1000"]), "wait": False})
    assert joined["id"] == b["id"]  # one of the same
    holtd.ok("POST", f"{API}/builds/{b['id']}/cancel")
    wait_for(lambda: holtd.ok("GET", f"{API}/builds/{b['id']}")["state"] == "cancelled")
    wait_for(lambda: not holtd.ok("GET", f"{API}/sandboxes")["sandboxes"])
    assert holtd.request("POST", f"{API}/builds/{b['id']}/cancel")[0] == 409
    assert holtd.request("GET", f"{API}/builds/none")[0] == 404
    status, reply, _ = holtd.request("POST", f"{API}/loadouts/build", {"manifest": declare("long", runcmd=[f"echo {i}" for i in range(51)])})
    assert status == 429 and "50 steps" in reply["error"]["message"]


def test_tools_come_from_the_source_of_the_setting(holtd, packages):
    """Through egress, from the hosts of the setting and no others."""
    m = declare("with-tools", runtimes={"node": {"enabled": True, "global_packages": ["thing@1.0.0"]}},
                ai_tools={"claude_code": {"enabled": True, "settings": {"model": "x"}}}, runcmd=["echo $WHO > /who"])
    b = build(holtd, m)
    assert run(holtd, "claude; thing; cat /root/.claude/settings.json /who", image=b["name"]) == \
        'claude-code of the source\nthing of the source\n{\n  "model": "x"\n}\nhouse\n'
    status, reply, _ = holtd.request("POST", f"{API}/loadouts/build", {"manifest": declare("away", runcmd=[f"curl -fsS http://other.test:{packages}/ >/dev/null"])})
    assert status == 400 and "step 1 of 1" in reply["error"]["message"], reply


def test_another_tenant_builds_its_own(holtd):
    m = declare("shared", runcmd=["echo $WHO > /x"])
    assert marks(build(holtd, m)) == ["done"]
    token = holtd.ok("POST", f"{API}/tokens", {"name": "of-ta", "role": "operator", "tenant": "ta"})["token"]
    theirs = holtd.ok("POST", f"{API}/loadouts/build", {"manifest": m}, token=token)
    assert marks(theirs) == ["done"]  # a layer of somebody else's is not theirs
    mine = holtd.ok("GET", f"{API}/builds")["builds"]
    assert holtd.request("GET", f"{API}/builds/{mine[0]['id']}", token=token)[0] == 404
    observer = holtd.new_token("watcher", "observer")["token"]
    assert holtd.request("POST", f"{API}/loadouts/build", {"manifest": m}, token=observer)[0] == 403


def test_an_image_that_a_tenant_made_is_no_build(holtd):
    """The name of a loadout's image is known to all who know the loadout, and people of no tenant see the images of all."""
    token = holtd.ok("POST", f"{API}/tokens", {"name": "of-tp", "role": "operator", "tenant": "tp"})["token"]
    m = declare("planted", runcmd=["echo right > /x"])
    name = holtd.ok("POST", f"{API}/loadouts/resolve", {"manifest": m})["image_name"]
    box = holtd.ok("POST", f"{API}/sandboxes", {}, token=token)["id"]
    holtd.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": ["sh", "-c", "echo planted > /x"]}, token=token)
    holtd.ok("POST", f"{API}/sandboxes/{box}/commit", {"image": name}, token=token)
    assert holtd.ok("POST", f"{API}/loadouts/resolve", {"manifest": m})["image"] is None
    assert marks(build(holtd, m)) == ["done"]
    image = holtd.ok("POST", f"{API}/loadouts/resolve", {"manifest": m})["image"]
    assert holtd.ok("POST", f"{API}/run", {"image": image, "command": ["cat", "/x"]})["stdout"] == "right\n"
    holtd.ok("DELETE", f"{API}/sandboxes/{box}")


def test_only_what_was_built_is_taken_from_the_cache(holtd):
    """An image that somebody gave the name of a step, or of a loadout, is not."""
    m = declare("squatted", runcmd=["echo true > /which"])
    plan = holtd.ok("POST", f"{API}/loadouts/resolve", {"manifest": m})
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as t:
        info = tarfile.TarInfo("which")
        info.size = 6
        t.addfile(info, io.BytesIO(b"false\n"))
    status, reply, _ = holtd.request("POST", f"{API}/images/import?name={plan['image_name']}&format=tar", body.getvalue(), headers={"Content-Type": "application/x-tar"})
    assert status < 300, reply
    assert holtd.ok("POST", f"{API}/loadouts/resolve", {"manifest": m})["image"] is None
    assert run(holtd, "cat /which", image=build(holtd, m)["image"]) == "true\n"


def test_a_stop_in_the_middle_of_a_step_is_clean(tmp_path):
    d = native(tmp_path)
    _, b, _ = d.request("POST", f"{API}/loadouts/build", {"manifest": declare("slow", runcmd=["echo begun; sleep 1000"]), "wait": False})
    wait_for(lambda: "begun" in d.ok("GET", f"{API}/builds/{b['id']}/log"))
    assert d.stop() == 0, d.log()[-3000:]
    d = native(tmp_path)
    try:
        assert d.ok("GET", f"{API}/builds")["builds"] == []
        d.clear()
    finally:
        assert d.stop() == 0


# --- use ---

def test_sandboxes_take_a_loadout(holtd, holt):
    status, reply, _ = holtd.request("POST", f"{API}/sandboxes", {"loadout": "basic", "image": "host"})
    assert status == 409 and "holt loadout build" in reply["error"]["hint"], reply
    build(holtd, loadout="house")
    box = holtd.ok("POST", f"{API}/sandboxes", {"loadout": "house"})
    try:
        assert box["limits"]["memory_bytes"] == 256 << 20 and box["limits"]["cpu_millis"] == 1000
        assert box["network"]["mode"] == "allowlist" and box["network"]["allow"] == [{"host": "packages.test"}]
    finally:
        holtd.ok("DELETE", f"{API}/sandboxes/{box['id']}")
    own = holtd.ok("POST", f"{API}/sandboxes", {"loadout": "profiles/house.yaml", "memory_bytes": 64 << 20, "network": "none"})
    assert own["limits"]["memory_bytes"] == 64 << 20 and own["network"]["mode"] == "none"
    holtd.ok("DELETE", f"{API}/sandboxes/{own['id']}")
    assert run(holtd, "hello", loadout="house") == "hello from a tool\n"
    holtd.ok("POST", f"{API}/templates", {"name": "housed", "loadout": "house"})
    assert run(holtd, "hello", template="housed") == "hello from a tool\n"
    assert holt("run", "--loadout", "house", "--", "hello").stdout == "hello from a tool\n"
    box = holt("create", "--loadout", "house").stdout.strip()
    assert holt("exec", box, "--", "hello").stdout == "hello from a tool\n"
    holt("rm", box)


def test_the_command_builds_what_is_missing(holt, holtd, tmp_path):
    made = holt("loadout", "build", "house", "--fresh")
    assert "step 3/3 run echo last >> /opt/order: done" in made.stderr and made.stdout.startswith("loadout/house:")
    for i in holtd.ok("GET", f"{API}/images?all=true")["images"]:
        if i["name"].startswith("loadout/house"):
            holtd.ok("DELETE", f"{API}/images/{i['id']}")
    ran = holt("run", "--loadout", "house", "--", "hello")
    assert ran.stdout == "hello from a tool\n" and "step 1/3" in ran.stderr


# --- Dockerfiles ---

DOCKERFILE = """# of a test
ARG BASE=host
FROM ${BASE}
ARG VERSION=1
ENV GREETING="hello there" PATH=/app/bin:$PATH
WORKDIR /app
COPY --chmod=0755 bin bin
COPY *.txt notes/
RUN echo "$GREETING $VERSION" > said && \\
    pwd >> said
USER 1000:1000
LABEL of=test
CMD ["sh", "-c", "cat said; tool; cat notes/*; id -u"]
"""


@pytest.fixture
def context(tmp_path):
    at = tmp_path / "context"
    (at / "bin").mkdir(parents=True)
    (at / "bin/tool").write_text("#!/bin/sh\necho a tool\n")
    (at / "b.txt").write_text("b\n")
    (at / "a.txt").write_text("a\n")
    (at / "Dockerfile").write_text(DOCKERFILE)
    return at


def test_an_image_of_a_dockerfile(holt, holtd, context):
    first = holt("image", "build", "-t", "made:1", str(context))
    assert first.stdout == "made:1\n" and first.stderr.count(": done") == 4, first.stderr
    assert holt("run", "--image", "made:1").stdout == "hello there 1\n/app\na tool\na\nb\n1000\n"
    assert holt("image", "build", "-t", "made:1", str(context)).stderr.count(": cached") == 4
    other = holt("image", "build", "-t", "made:2", "--build-arg", "VERSION=2", str(context)).stderr
    assert (other.count(": cached"), other.count(": done")) == (3, 1)
    assert holt("run", "--image", "made:2").stdout.startswith("hello there 2\n")
    (context / "a.txt").write_text("changed\n")  # COPY is known by the content
    third = holt("image", "build", "-t", "made:3", str(context)).stderr
    assert (third.count(": cached"), third.count(": done")) == (2, 2)
    assert "changed" in holt("run", "--image", "made:3").stdout
    on_top = context / "on-top"
    on_top.mkdir()
    (on_top / "Dockerfile").write_text("FROM made:3\nUSER 0\nRUN echo more >> said\nENTRYPOINT [\"cat\", \"said\"]\n")
    holt("image", "build", "-t", "made:4", str(on_top))
    assert holt("run", "--image", "made:4").stdout == "hello there 1\n/app\nmore\n"  # directory and environment are the base's
    assert not holtd.ok("GET", f"{API}/volumes")["volumes"] and not holtd.ok("GET", f"{API}/sandboxes")["sandboxes"]


def test_dockerfiles_that_are_refused(holt, holtd, context):
    for text, words in (("FROM host\nADD a b\n", "line 2: ADD is not known"), ("RUN x\n", "FROM comes first"), ("FROM host\nCOPY ../x /y\n", "leads out"),
                        ("FROM host\nCOPY none /y\n", "'./none' is not in the context"), ("FROM no/such:1\nRUN x\n", "no/such"),
                        ("FROM host\nRUN echo it broke; exit 3\n", "it broke")):
        (context / "Dockerfile").write_text(text)
        assert words in holt("image", "build", "-t", "bad:1", str(context), status=1).stderr
    assert not holtd.ok("GET", f"{API}/volumes")["volumes"]
    status, reply, _ = holtd.request("POST", f"{API}/images/build", {"name": "No Name", "dockerfile": "FROM host\nRUN sleep 1000\n"})
    assert status == 400 and "No Name" in reply["error"]["message"], reply
    status, reply, _ = holtd.request("POST", f"{API}/images/build", {"name": "x:1", "dockerfile": "FROM host\nCOPY a b\n"})
    assert status == 400 and "needs a context" in reply["error"]["message"]


def test_variables_that_double_stay_bounded(holtd):
    """A dozen short lines would mean a terabyte."""
    text = "FROM host\nENV A=0123456789abcdef\n" + 12 * "ENV A=$A$A$A$A${A}${A:-x}${A:+$A}${B:-$A}\n"
    status, reply, _ = holtd.request("POST", f"{API}/images/build", {"name": "large:1", "dockerfile": text})
    assert status == 400 and "over 512 KiB" in reply["error"]["message"], reply
    assert holtd.request("GET", "/healthz")[0] == 200


def test_a_link_in_the_context_leads_nowhere_outside(holt, context):
    os.symlink("/etc/hostname", context / "link")
    (context / "Dockerfile").write_text("FROM host\nCOPY link /got\nRUN test -L /got\n")
    holt("image", "build", "-t", "link:1", str(context))


# --- agentic-sandbox's form ---

def test_the_form_of_agentic_sandbox(holtd):
    rows = {r["name"]: r for r in holtd.ok("GET", "/api/v1/loadouts")["loadouts"]}
    one = rows["full-suite"]
    assert one["path"] == "profiles/full-suite.yaml" and one["category"] == "collaboration" and one["complexity"] == "full"
    assert one["resources"] == {"cpus": 8, "memory": "16G", "disk": "80G"} and one["frameworks"][0]["name"] == "all" and len(one["extends"]) == 9
    assert list(rows) == sorted(rows)
    assert holtd.ok("GET", "/api/v1/loadouts/claude-only")["extends"] == ["layers/base-dev.yaml", "providers/claude-code.yaml"]
    assert holtd.ok("GET", "/api/v1/loadouts/providers/codex.yaml")["ai_tools"] == ["codex"]
    assert holtd.request("GET", "/api/v1/loadouts/none")[0] == 404
    assert {p["name"] for p in holtd.ok("GET", "/api/v1/loadout/registry")["presets"]} >= {"claude-only", "full-suite"}
    assert set(r["name"] for r in holtd.ok("GET", "/api/v1/loadouts?complexity=minimal")["loadouts"]) == {"basic", "claude-only", "codex-only", "copilot-only", "house"}


def test_containers_are_made_with_a_loadout(holtd):
    """By path, parts or profile; the first one is built, the next one is not."""
    for i in holtd.ok("GET", f"{API}/images?all=true")["images"]:
        if i["name"].startswith("loadout/house"):
            holtd.ok("DELETE", f"{API}/images/{i['id']}")
    for name, body in (("of-path", {"loadout": "profiles/house.yaml"}), ("of-name", {"loadout": "house", "image": "host"}), ("of-profile", {"profile": "house"})):
        made = holtd.ok("POST", "/api/v1/containers", {"name": name, **body})
        assert made["status"] == "running", made
        assert holtd.ok("POST", f"{API}/sandboxes/{made['id']}/execs", {"command": ["hello"]})["stdout"] == "hello from a tool\n"
        holtd.ok("DELETE", f"/api/v1/containers/{name}")
    agent = holtd.ok("POST", "/api/v1/containers", {"name": "shown", "loadout": "profiles/house.yaml"})
    assert holtd.ok("GET", "/api/v1/agents/shown")["loadout"] == "profiles/house.yaml" and agent["name"] == "shown"
    holtd.ok("DELETE", "/api/v1/containers/shown")
    for body, status in (({"loadout": "none"}, 404), ({"loadout": "/etc/passwd"}, 403), ({"loadout": "house", "profile": "basic"}, 400),
                         ({"composition": {"init": "none"}}, 400)):
        assert holtd.request("POST", "/api/v1/containers", {"name": "refused", **body})[0] == status, body
    assert holtd.request("GET", "/api/v1/containers/refused")[0] == 404


def test_image_names_stand_for_loadouts(tmp_path):
    """Of agentic-sandbox, where no image has the name: its own file decides what that loadout is."""
    own = tmp_path / "own"
    for path, name in (("profiles/claude-only", "claude-only"), ("profiles/codex-only", "codex-only"), ("providers/opencode", "opencode"),
                       ("profiles/automation-control", "automation-control")):
        os.makedirs(own / os.path.dirname(path), exist_ok=True)
        (own / f"{path}.yaml").write_text(json.dumps(declare(name, runcmd=[f"echo {name} > /which"])))
    d = native(tmp_path, "--loadouts-dir", str(own))
    try:
        for image, name in (("claude", "claude-only"), ("codex", "codex-only"), ("opencode", "opencode"), ("automation-control", "automation-control")):
            made = d.ok("POST", "/api/v1/containers", {"name": name, "image": f"agentic/{image}:latest"})
            assert made["image"] == f"agentic/{image}:latest"
            assert d.ok("POST", f"{API}/sandboxes/{made['id']}/execs", {"command": ["cat", "/which"]})["stdout"] == f"{name}\n"
        assert {i["ref"] for i in d.ok("GET", "/api/v1/container-images")["images"]} == {f"agentic/{n}:latest" for n in ("claude", "codex", "opencode", "automation-control")}
        assert d.request("POST", "/api/v1/containers", {"name": "x", "image": "agentic/other:latest"})[0] == 404
        d.clear()
    finally:
        d.stop()


def test_machines_name_one_of_loadout_profile_composition(holtd):
    for body in ({"profile": "basic", "loadout": "x"}, {"loadout": "none"}, {"profile": "none"}, {"composition": {"init": "none"}}):
        status, reply, _ = holtd.request("POST", "/api/v1/vms", {"name": "refused", **body})
        assert (status, reply["error"]["code"]) == (400, "VALIDATION_ERROR"), reply


# --- in a sandbox that is there ---

def test_steps_run_in_a_sandbox_that_is_there(holtd, holt, tmp_path):
    box = holtd.ok("POST", f"{API}/sandboxes", {"name": "there"})["id"]
    b = holtd.ok("POST", f"{API}/sandboxes/there/loadout", {"loadout": "house"})
    assert b["state"] == "ready" and marks(b) == ["done"] * 3 and b["image"] is None
    assert holtd.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": "cat /opt/order; /opt/tools/bin/hello"})["stdout"] == "first\nlast\nhello from a tool\n"
    (tmp_path / "m.yaml").write_text(json.dumps(declare("bad", runcmd=["echo went wrong; exit 4", "touch /never"])))
    assert "status 4: went wrong" in holt("loadout", "apply", "there", "-f", str(tmp_path / "m.yaml"), status=1).stderr
    holt("exec", "there", "--", "test", "!", "-e", "/never")
    status, slow, _ = holtd.request("POST", f"{API}/sandboxes/there/loadout", {"manifest": declare("slow", runcmd=["echo begun; sleep 1000"]), "wait": False})
    assert status == 202
    wait_for(lambda: "begun" in holtd.ok("GET", f"{API}/builds/{slow['id']}/log"))
    holtd.ok("POST", f"{API}/builds/{slow['id']}/cancel")
    wait_for(lambda: holtd.ok("GET", f"{API}/builds/{slow['id']}")["state"] == "cancelled")
    assert holtd.ok("GET", f"{API}/sandboxes/{box}")["state"] == "running"  # it stays
    holtd.ok("POST", f"{API}/sandboxes/{box}/stop")
    assert holtd.request("POST", f"{API}/sandboxes/there/loadout", {"loadout": "house"})[0] == 409
    holtd.ok("DELETE", f"{API}/sandboxes/{box}")


# --- tasks ---

def ended(holtd, task):
    return wait_for(lambda: (t := holtd.ok("GET", f"{API}/task-runs/{task}"))["state"] in ("completed", "failed", "cancelled") and t, 60)


def test_a_task_has_its_loadout(holtd):
    def submit(name, line, **more):
        m = {"version": "1", "kind": "Task", "metadata": {"name": name}, "agent": {"command": line}, "sandbox": more}
        return holtd.ok("POST", f"{API}/task-runs", {"manifest": m})["id"]
    for i in holtd.ok("GET", f"{API}/images?all=true")["images"]:
        if i["name"].startswith("loadout/house"):
            holtd.ok("DELETE", f"{API}/images/{i['id']}")
    for name in ("builds it", "finds it"):
        task = submit(name, "hello > ~/outbox/said", loadout="house")
        done = ended(holtd, task)
        assert done["state"] == "completed", json.dumps([done["error"], done["exit_code"], str(holtd.request("GET", f"{API}/task-runs/{task}/logs?follow=false")[1])])
        assert holtd.ok("GET", f"{API}/task-runs/{task}/artifacts/said") in ("hello from a tool\n", b"hello from a tool\n")
    bad = ended(holtd, submit("unknown", "true", loadout="none"))
    assert bad["state"] == "failed" and "there is no loadout 'none'" in bad["error"]


def test_a_task_that_waits_for_its_loadout_is_cancelled(tmp_path):
    os.makedirs(tmp_path / "own")
    (tmp_path / "own/slow.yaml").write_text(json.dumps(declare("slow", runcmd=["echo begun; sleep 1000"])))
    (tmp_path / "own/broken.yaml").write_text(json.dumps(declare("broken", runcmd=["echo no; exit 9"])))
    d = native(tmp_path, "--loadouts-dir", str(tmp_path / "own"))
    try:
        def submit(loadout):
            m = {"version": "1", "kind": "Task", "metadata": {"name": "x"}, "agent": {"command": "true"}, "sandbox": {"loadout": loadout}}
            return d.ok("POST", f"{API}/task-runs", {"manifest": m})["id"]
        task = submit("slow")
        wait_for(lambda: [b for b in d.ok("GET", f"{API}/builds")["builds"] if b["state"] == "running"])
        d.ok("POST", f"{API}/task-runs/{task}/cancel")
        assert ended(d, task)["state"] == "cancelled"
        broken = ended(d, submit("broken"))
        assert broken["state"] == "failed" and "status 9: no" in broken["error"], broken
        for b in d.ok("GET", f"{API}/builds")["builds"]:
            d.request("POST", f"{API}/builds/{b['id']}/cancel")
        wait_for(lambda: not d.ok("GET", f"{API}/sandboxes")["sandboxes"])
    finally:
        d.stop()
