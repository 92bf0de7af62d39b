"""Policies: rules for commands, paths, time and output, in every interface, and inside by Landlock."""
import io
import json
import os
import shutil
import tarfile
import urllib.parse

import pytest

from daemon import BUILD, all_events, native, wait_for

API = "/holt/v1"
DENY_ETC = {"name": "careful", "paths_deny": ["/etc"], "write_allow": ["/srv", "/tmp"]}
UNFENCED = f"{BUILD}/tests/security/holt-init-unfenced"


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    h = native(tmp_path_factory.mktemp("policy"))
    yield h
    h.stop()


@pytest.fixture(scope="module")
def unfenced(tmp_path_factory):
    """The same programs, with an init that leaves Landlock out."""
    bindir = tmp_path_factory.mktemp("bin")
    for name in ("holt-spawn", "holt-egress", "holt-unpack"):
        shutil.copy(f"{BUILD}/{name}", bindir)
    shutil.copy(UNFENCED, bindir / "holt-init")
    h = native(tmp_path_factory.mktemp("unfenced"), "--bindir", str(bindir))
    yield h
    h.stop()


@pytest.fixture
def policy(host, request):
    """Makes policies, and removes them with their sandboxes."""
    made = []

    def make(on=host, **rules):
        rules.setdefault("name", f"p{len(made)}-{os.getpid()}-{abs(hash(request.node.name)) % 100000}")
        made.append((on, on.ok("POST", f"{API}/policies", rules)))
        return made[-1][1]
    yield make
    for on, p in made:
        on.clear()
        on.request("DELETE", f"{API}/policies/{p['id']}")


def box(h, **fields):
    return h.ok("POST", f"{API}/sandboxes", fields)


def run(h, b, command, **more):
    return h.request("POST", f"{API}/sandboxes/{b['id']}/execs", {"command": command, **more})


def out(h, b, command, **more):
    status, reply, _ = run(h, b, command, **more)
    assert status == 200, reply
    return reply


def file_at(b, path, what="files", **query):
    return f"{API}/sandboxes/{b['id']}/{what}?" + urllib.parse.urlencode({"path": path, **query})


def refused(reply, *words):
    assert reply[0] == 403, reply
    for word in words:
        assert word in json.dumps(reply[1]), reply


# --- the object ---

def test_a_policy_lives(host, policy):
    p = policy(name="life", commands_deny=["sudo"], timeout_ms="30s")
    assert p["commands_deny"] == ["sudo"] and p["timeout_ms"] == 30000 and p["paths_deny"] == [] and not p["shipped"]
    assert host.ok("GET", f"{API}/policies/life") == p
    assert p["id"] in [x["id"] for x in host.ok("GET", f"{API}/policies")["policies"]]
    changed = host.ok("PATCH", f"{API}/policies/life", {"paths_deny": ["/etc"]})
    assert changed["paths_deny"] == ["/etc"] and changed["commands_deny"] == ["sudo"]
    b = box(host, policy="life")
    assert b["policy"] == "life" and b["policies"] == ["life"]
    status, reply, _ = host.request("DELETE", f"{API}/policies/life")
    assert status == 409 and "1 sandboxes" in reply["error"]["message"]
    host.ok("DELETE", f"{API}/sandboxes/{b['id']}")
    host.ok("DELETE", f"{API}/policies/life")
    assert host.request("GET", f"{API}/policies/life")[0] == 404
    types = [e["type"] for e in all_events(host) if e["object"] == f"policy/{p['id']}"]
    assert types == ["policy.created", "policy.updated", "policy.removed"]


@pytest.mark.parametrize("wrong", [
    {"paths_deny": ["etc"]}, {"paths_deny": ["/etc/"]}, {"paths_deny": ["/a/../b"]}, {"paths_deny": [""]},
    {"timeout_ms": "10m", "timeout_max_ms": "5m"}, {"paths_deny": [f"/d{i}" for i in range(101)]},
])
def test_what_makes_no_sense_is_refused(host, wrong):
    assert host.request("POST", f"{API}/policies", {"name": "wrong", **wrong})[0] == 400


def test_the_shipped_lists_are_there_and_stay(host):
    p = host.ok("GET", f"{API}/policies/fluid-defaults")
    assert p["shipped"] and "git" in p["commands_allow"] and "sudo" in p["commands_deny"] and "bash" in p["commands_reserved"]
    assert {"|", "&&", "..", "\n", "$("} <= set(p["words_deny"]) and p["timeout_max_ms"] == 300000
    assert host.request("PATCH", f"{API}/policies/fluid-defaults", {"commands_deny": []})[0] == 409
    assert host.request("DELETE", f"{API}/policies/fluid-defaults")[0] == 409


@pytest.mark.not_on("runsc", "it has no Landlock: the create says so")
def test_it_is_there_again_after_a_restart(tmp_path):
    h = native(tmp_path)
    h.ok("POST", f"{API}/policies", DENY_ETC)
    b = box(h, name="b")
    out(h, b, "mkdir -p /srv; echo hush > /etc/hostname")
    h.ok("PATCH", f"{API}/sandboxes/b", {"policy": "careful"})
    h.process.kill()
    h.process.wait()
    h = native(tmp_path)
    try:
        wait_for(lambda: h.request("GET", file_at(b, "/tmp", "files/list"))[0] == 200, 30)
        assert h.ok("GET", f"{API}/sandboxes/b")["policy"] == "careful"
        refused(h.request("GET", file_at(b, "/etc/hostname")), "careful", "paths_deny /etc")
        assert out(h, b, ["cat", "/etc/hostname"])["exit_code"] == 1
    finally:
        h.stop()


# --- commands ---

CASES = [  # rules, command, the word of the refusal or None
    ({"commands_deny": ["sudo"]}, ["sudo", "ls"], "commands_deny 'sudo'"),
    ({"commands_deny": ["sudo"]}, ["/usr/bin/sudo", "ls"], "commands_deny 'sudo'"),
    ({"commands_deny": ["sudo"]}, "true; sudo ls", "commands_deny 'sudo'"),
    ({"commands_deny": ["sudo"]}, "A=1 'su'do ls", "commands_deny 'sudo'"),
    ({"commands_deny": ["sudo"]}, 'echo "$(sudo ls)"', "commands_deny 'sudo'"),
    ({"commands_deny": ["sudo"]}, "if true; then sudo ls; fi", "commands_deny 'sudo'"),
    ({"commands_deny": ["sudo"]}, "x=sudo; $x ls", "made by the shell"),
    ({"commands_deny": ["sudo"]}, ["sh", "-c", "sudo ls"], "commands_deny 'sudo'"),
    ({"commands_deny": ["sudo"]}, ["env", "-i", "A=1", "sudo", "ls"], "commands_deny 'sudo'"),
    ({"commands_deny": ["sudo"]}, "echo sudo", None),
    ({"commands_deny": ["sudo"]}, "echo $(date) sudo > /dev/null; for i in 1 2; do echo $i; done", None),
    ({"commands_deny": ["git push"]}, ["git", "push", "origin"], "commands_deny 'git push'"),
    ({"commands_deny": ["git push"]}, ["echo", "git", "push"], None),
    ({"commands_deny": ["rm -r*"]}, "rm -rf /tmp/x", "commands_deny 'rm -r*'"),
    ({"commands_allow": ["echo", "true"]}, ["echo", "hi"], None),
    ({"commands_allow": ["echo", "true"]}, "true && echo hi", None),
    ({"commands_allow": ["echo"]}, ["ls"], "'ls' is not in commands_allow"),
    ({"commands_allow": ["echo"]}, ["/tmp/echo"], "is not in commands_allow"),
    ({"commands_allow": ["echo"]}, ["/bin/echo"], None),
    ({"commands_allow": ["echo"]}, "echo hi | ls", "'ls' is not in commands_allow"),
    ({"commands_allow": ["echo"], "commands_deny": ["echo"]}, ["echo"], "commands_deny 'echo'"),
    ({"commands_reserved": ["sh"]}, ["sh", "-c", "true"], "commands_reserved 'sh'"),
    ({"words_deny": ["&&"]}, "true && true", "words_deny '&&'"),
    ({"words_deny": [".."]}, ["ls", "../x"], "words_deny '..'"),
]


@pytest.mark.parametrize("rules, command, why", CASES)
def test_command_rules(host, policy, rules, command, why):
    p = policy(**rules)
    b = box(host, policy=p["name"])
    reply = run(host, b, command)
    if why is None:
        assert reply[0] == 200 and reply[1]["exit_code"] == 0, reply
    else:
        refused(reply, p["name"], why, "holt policy update")
        assert not host.ok("GET", f"{API}/sandboxes/{b['id']}/execs")["execs"]


def test_the_shipped_lists_hold(host):
    b = box(host, policy="fluid-defaults")
    assert out(host, b, ["echo", "hi"])["stdout"] == "hi\n"
    assert out(host, b, "echo hi")["stdout"] == "hi\n"
    for command in (["bash"], ["sudo", "ls"], "echo a; echo b", "echo $(date)", ["vi"], ["ls", ".."], "echo a & ls"):
        if command == "echo a & ls":  # both are allowed
            assert run(host, b, command)[0] == 200
        else:
            refused(run(host, b, command), "fluid-defaults")
    refused(run(host, b, ["echo"], timeout_ms=600000), "timeout_max_ms 300000")
    refused(run(host, b, ["echo"], env={"PATH": "/tmp"}), "PATH")
    refused(host.request("GET", file_at(b, "/etc/passwd")), "fluid-defaults")


def test_a_refusal_is_recorded_without_arguments(host, policy):
    p = policy(commands_deny=["sudo"])
    b = box(host, policy=p["name"])
    refused(run(host, b, ["sudo", "hush-hush"]), "commands_deny")
    found = [e for e in all_events(host) if e["type"] == "policy.refused" and e["object"] == f"sandbox/{b['id']}"]
    assert len(found) == 1 and found[0]["data"]["policy"] == p["name"] and "hush" not in json.dumps(found[0])


def test_every_interface_asks(host, policy):
    """run, sessions, and process_api inside: one check in core."""
    p = policy(commands_deny=["sleep"], paths_deny=["/etc"])
    refused(host.request("POST", f"{API}/run", {"command": ["sleep", "1"], "policy": p["name"]}), "commands_deny")
    b = box(host, policy=p["name"], relay=True, process_api=True)
    refused(host.request("POST", f"{API}/sandboxes/{b['id']}/sessions", {"name": "s", "command": ["sleep", "1"]}), "commands_deny")
    refused(host.request("POST", f"{API}/sandboxes/{b['id']}/execs", {"command": ["sleep"], "background": True}), "commands_deny")
    inside = ("import http.client,json;c=http.client.HTTPConnection('127.0.0.1',2024);"
              "c.request('POST','/exec',json.dumps({'command':'sleep 1'}),{'Content-Type':'application/json'});"
              "r=c.getresponse();print(r.status,r.read().decode())")
    said = out(host, b, ["python3", "-c", inside])
    assert "commands_deny" in said["stdout"], said


# --- who has which ---

def test_agents_have_theirs_and_the_installations(tmp_path):
    h = native(tmp_path, env={"HOLT_AGENT_POLICY": "fluid-defaults"})
    try:
        h.ok("POST", f"{API}/policies", {"name": "for-ann", "commands_deny": ["touch"], "agents": ["ann"]})
        h.ok("POST", f"{API}/agents", {"name": "ann"})
        token = h.ok("POST", f"{API}/tokens", {"name": "t", "role": "agent", "agent": "ann"})["token"]
        b = h.ok("POST", f"{API}/sandboxes", {}, token=token)
        assert b["policies"] == ["fluid-defaults", "for-ann"] and b["policy"] is None
        by = {"token": token}
        refused(h.request("POST", f"{API}/sandboxes/{b['id']}/execs", {"command": ["bash"]}, **by), "fluid-defaults")
        refused(h.request("POST", f"{API}/sandboxes/{b['id']}/execs", {"command": ["touch", "x"]}, **by), "for-ann")
        assert h.request("PATCH", f"{API}/sandboxes/{b['id']}", {"policy": ""}, **by)[0] == 403
        assert h.request("POST", f"{API}/policies", {"name": "own"}, **by)[0] == 403
        assert h.request("PATCH", f"{API}/policies/for-ann", {"agents": []}, **by)[0] == 403
        # a person's sandbox has neither
        assert h.ok("POST", f"{API}/sandboxes", {})["policies"] == []
    finally:
        h.stop()


def test_a_setting_that_names_nothing_stops_the_start(tmp_path):
    with pytest.raises(AssertionError, match="agent_policy"):
        native(tmp_path, env={"HOLT_AGENT_POLICY": "nosuch"})


def test_a_template_has_one(host, policy):
    p = policy(commands_deny=["ls"])
    host.ok("POST", f"{API}/templates", {"name": "with-policy", "policy": p["name"]})
    b = box(host, template="with-policy")
    host.ok("DELETE", f"{API}/templates/with-policy")
    refused(run(host, b, ["ls"]), "commands_deny")


# --- paths: the file API ---

def tar_of(*entries):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as t:
        for name, kind, link in entries:
            i = tarfile.TarInfo(name)
            i.type, i.linkname = kind, link
            i.size = 2 if kind == tarfile.REGTYPE else 0
            t.addfile(i, io.BytesIO(b"hi") if i.size else None)
    return raw.getvalue()


def test_no_file_operation_gets_there(host, policy):
    p = policy(paths_deny=["/etc"], write_allow=["/srv", "/tmp"])
    b = box(host)
    out(host, b, "mkdir -p /srv; echo hush > /etc/hostname")
    host.ok("PATCH", f"{API}/sandboxes/{b['id']}", {"policy": p["name"]})
    put = {"headers": {"Content-Type": "application/octet-stream"}}
    name = p["name"]
    assert host.request("PUT", file_at(b, "/srv/ok"), b"hi", **put)[0] < 300
    assert host.request("GET", file_at(b, "/srv/ok"))[1] == "hi"
    refused(host.request("GET", file_at(b, "/etc/hostname")), name, "paths_deny /etc")
    refused(host.request("GET", file_at(b, "/etc/missing")), name, "paths_deny /etc")  # or names could be guessed
    refused(host.request("PUT", file_at(b, "/etc/new"), b"x", **put), name, "paths_deny /etc")
    refused(host.request("PUT", file_at(b, "/home/new"), b"x", **put), name, "write_allow")
    refused(host.request("GET", file_at(b, "/etc", "files/list")), name)
    refused(host.request("DELETE", file_at(b, "/etc/hostname")), name)
    refused(host.request("POST", f"{API}/sandboxes/{b['id']}/files/mkdir", {"path": "/etc/d"}), name)
    refused(host.request("POST", f"{API}/sandboxes/{b['id']}/files/move", {"from": "/etc/hostname", "to": "/srv/h"}), name)
    refused(host.request("POST", f"{API}/sandboxes/{b['id']}/files/move", {"from": "/srv/ok", "to": "/etc/h"}), name)
    refused(host.request("GET", file_at(b, "/etc", "archive")), name)
    refused(host.request("GET", file_at(b, "/", "archive")), name, "/etc")
    refused(host.request("PUT", file_at(b, "/", "archive"), tar_of(("etc/x", tarfile.REGTYPE, "")),
                         headers={"Content-Type": "application/x-tar"}), name)
    refused(host.request("GET", file_at(b, "/etc/hostname", "files/watch")), name)
    assert host.request("HEAD", file_at(b, "/etc/hostname"))[0] == 403
    names = [f["name"] for f in host.ok("GET", file_at(b, "/", "files/list"))["files"]]
    assert "etc" not in names and "srv" in names  # what is denied is not listed


def test_links_lead_nowhere(host, policy):
    """Made before the policy, so that nothing inside hinders them."""
    p = policy(paths_deny=["/etc", "/opt/secret"])
    b = box(host)
    out(host, b, "mkdir -p /opt/secret /srv/d; echo hush > /opt/secret/f; echo hush > /etc/hostname; ln -s /etc/hostname /srv/l; ln -s /etc /srv/e; "
                 "ln -s /etc/made /srv/dangling; ln -s /opt /srv/o; ln -s hostname /etc/lnk")
    host.ok("PATCH", f"{API}/sandboxes/{b['id']}", {"policy": p["name"]})
    put = {"headers": {"Content-Type": "application/octet-stream"}}
    for path in ("/srv/l", "/srv/e/hostname", "/srv/o/secret/f", "/srv/../etc/hostname"):
        assert host.request("GET", file_at(b, path))[0] == 403, path
    assert host.request("GET", file_at(b, "/proc/1/root/etc/hostname"))[0] in (400, 403)  # no magic link is followed
    for path in ("/srv/l", "/srv/e/new", "/srv/o/secret/new"):
        refused(host.request("PUT", file_at(b, path), b"x", **put), p["name"])
    assert host.request("PUT", file_at(b, "/srv/dangling"), b"x", **put)[0] in (403, 409)
    # neither what is denied nor what holds it can be moved out of its place, or removed
    refused(host.request("POST", f"{API}/sandboxes/{b['id']}/files/move", {"from": "/opt", "to": "/srv/x"}), p["name"], "/opt/secret")
    refused(host.request("DELETE", file_at(b, "/opt", recursive="true")), p["name"])
    tar = tar_of(("s", tarfile.SYMTYPE, "/etc"), ("s/x", tarfile.REGTYPE, ""))
    assert host.request("PUT", file_at(b, "/srv/d", "archive"), tar, headers={"Content-Type": "application/x-tar"})[0] >= 400
    tar = tar_of(("srv/hard", tarfile.LNKTYPE, "etc/hostname"),)
    refused(host.request("PUT", file_at(b, "/", "archive"), tar, headers={"Content-Type": "application/x-tar"}), p["name"])
    host.ok("PATCH", f"{API}/sandboxes/{b['id']}", {"policy": ""})
    assert out(host, b, "cat /etc/made /etc/new /etc/x 2>/dev/null; cat /opt/secret/f")["stdout"] == "hush\n"


# --- paths: inside ---

COMPILED = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) { char b[64]; int fd = open("/etc/hostname", O_RDONLY); return fd >= 0 && read(fd, b, 64) > 0 ? 0 : 1; }
"""
RACE = """
import os, threading
os.makedirs('/srv/r', exist_ok=True)
os.makedirs('/srv/r/plain', exist_ok=True)
open('/srv/r/plain/hostname', 'w').write('mine')
os.symlink('/srv/r/plain', '/srv/r/l')
stop = []
def turn():
    while not stop:
        for to in ('/etc', '/srv/r/plain'):
            os.symlink(to, '/srv/r/n'); os.rename('/srv/r/n', '/srv/r/l')
t = threading.Thread(target=turn); t.start()
won = 0
for i in range(3000):
    try:
        won += open('/srv/r/l/hostname').read() != 'mine'
    except OSError:
        pass
stop.append(1); t.join()
print('won', won > 0)
"""
INSIDE = {  # attempt: (command, what it prints or its status when it gets through)
    "shell": "cat /etc/hostname >/dev/null 2>&1",
    "shell_builtin": "read x < /etc/hostname",
    "write": "echo x > /etc/new",
    "truncate": "truncate -s 0 /etc/hostname",
    "list": "ls /etc >/dev/null 2>&1",
    "python": "python3 -c 'open(\"/etc/hostname\").read()' 2>/dev/null",
    "compiled": "/srv/compiled",
    "symlink": "ln -sf /etc/hostname /srv/l && cat /srv/l >/dev/null 2>&1",
    "race": f"python3 -c \"$RACE\" | grep -q 'won True'",
    "hard_link": "ln -f /etc/hostname /srv/h 2>/dev/null && cat /srv/h >/dev/null",
    "through_proc": "cat /proc/self/root/etc/hostname >/dev/null 2>&1",
    "rename_it": "mv /etc/hostname /srv/moved 2>/dev/null && cat /srv/moved",
    "exec_it": "cp /bin/true /etc/prog 2>/dev/null && /etc/prog",
}


def compiled(h, b, tmp_path):
    """A static program, made outside: the sandbox may have no compiler."""
    import subprocess
    (tmp_path / "c.c").write_text(COMPILED)
    subprocess.run(["cc", "-static", "-o", str(tmp_path / "c"), str(tmp_path / "c.c")], check=True)
    h.ok("PUT", file_at(b, "/srv/compiled", mode="0755"), (tmp_path / "c").read_bytes(),
         headers={"Content-Type": "application/octet-stream"})


def prepared(h, policy, tmp_path):
    p = policy(on=h, **{**DENY_ETC, "name": "inside"})
    b = box(h)
    out(h, b, "mkdir -p /srv; echo the-host > /etc/hostname")
    h.ok("PATCH", f"{API}/sandboxes/{b['id']}", {"policy": p["name"]})
    compiled(h, b, tmp_path)
    return b


@pytest.mark.not_on("runsc", "it has no Landlock: the create says so")
def test_nothing_inside_gets_there(host, policy, tmp_path):
    b = prepared(host, policy, tmp_path)
    assert "paths" not in host.ok("GET", f"{API}/sandboxes/{b['id']}")["unenforced"]
    assert out(host, b, "echo hi > /srv/f && cat /srv/f && python3 -c 'print(1)' && ls /usr >/dev/null")["stdout"] == "hi\n1\n"
    for name, line in INSIDE.items():
        assert out(host, b, line, env={"RACE": RACE})["exit_code"] != 0, name
    # nor may other users, or those that the shell leaves behind
    assert out(host, b, "(sleep 0.1; cat /etc/hostname) & wait $!")["exit_code"] != 0
    refused(host.request("GET", file_at(b, "/etc/hostname")), "inside")


def test_without_landlock_all_get_there(unfenced, policy, tmp_path):
    b = prepared(unfenced, policy, tmp_path)
    i = unfenced.ok("GET", f"{API}/sandboxes/{b['id']}")
    assert "paths" in i["unenforced"] and any("Landlock" in w for w in i["warnings"])
    for name, line in INSIDE.items():
        out(unfenced, b, "echo the-host > /etc/hostname")
        assert out(unfenced, b, line, env={"RACE": RACE})["exit_code"] == 0, name
    refused(unfenced.request("GET", file_at(b, "/etc/new")), "inside")  # the file API is held by init itself


@pytest.mark.not_on("runsc", "it has no Landlock: the create says so")
def test_require_paths(host, unfenced, policy):
    for h in (host, unfenced):
        p = policy(on=h, paths_deny=["/etc"])
        status, reply, _ = h.request("POST", f"{API}/sandboxes", {"policy": p["name"], "require_paths": True})
        if h is host:
            assert status == 201 and "paths" not in reply["unenforced"]
        else:
            assert status == 501 and "require_paths" in reply["error"]["message"], reply
            assert not h.ok("GET", f"{API}/sandboxes")["sandboxes"]


@pytest.mark.not_on("runsc", "it has no Landlock: the create says so")
def test_allow_lists_inside(host, policy):
    p = policy(paths_allow=["/srv", "/tmp"], write_deny=["/srv/in"])
    b = box(host)
    out(host, b, "mkdir -p /srv/in /srv/w /opt/x; echo in > /srv/in/f; echo no > /opt/x/f; echo no > /root/f")
    host.ok("PATCH", f"{API}/sandboxes/{b['id']}", {"policy": p["name"]})
    assert out(host, b, "cat /srv/in/f; echo a > /srv/w/a; echo b > /tmp/b; cat /srv/w/a /tmp/b; echo x >/dev/null")["stdout"] == "in\na\nb\n"
    for line in ("cat /opt/x/f", "cat /root/f", "echo x > /srv/in/g", "rm /srv/in/f", "mv /srv/in /srv/out", "touch /usr/x", "touch /new"):
        assert out(host, b, line)["exit_code"] != 0, line
    refused(host.request("GET", file_at(b, "/opt/x/f")), "not in paths_allow")
    refused(host.request("DELETE", file_at(b, "/srv/in/f")), "write_deny /srv/in")
    assert host.request("GET", file_at(b, "/srv/in/f"))[0] == 200


@pytest.mark.not_on("runsc", "it has no Landlock: the create says so")
def test_two_policies_both_hold(host, policy):
    one = policy(paths_deny=["/opt"], agents=["bob"])
    two = policy(paths_deny=["/media"])
    b = box(host, agent="bob", policy=two["name"])
    host.ok("POST", f"{API}/sandboxes/{b['id']}/files/mkdir", {"path": "/srv"})
    assert sorted(b["policies"]) == sorted([one["name"], two["name"]])
    for path, p in (("/opt", one), ("/media", two)):
        assert out(host, b, ["ls", path])["exit_code"] != 0
        refused(host.request("GET", file_at(b, path, "files/list")), p["name"])
    assert out(host, b, ["ls", "/srv"])["exit_code"] == 0


@pytest.mark.not_on("runsc", "it has no Landlock: the create says so")
def test_a_change_acts(host, policy):
    """At once on files; on commands from the next one."""
    p = policy(paths_deny=["/opt"])
    b = box(host, policy=p["name"])
    for path in ("/srv", "/tmp/x"):
        host.ok("POST", f"{API}/sandboxes/{b['id']}/files/mkdir", {"path": path})
    old = host.ok("POST", f"{API}/sandboxes/{b['id']}/execs",
                  {"command": "until [ -e /tmp/go ]; do sleep 0.05; done; ls /srv && ! ls /opt", "background": True})
    host.ok("PATCH", f"{API}/policies/{p['name']}", {"paths_deny": ["/srv"]})
    refused(host.request("GET", file_at(b, "/srv", "files/list")), "paths_deny /srv")
    assert host.request("GET", file_at(b, "/opt", "files/list"))[0] == 200
    assert out(host, b, "! ls /srv && ls /opt")["exit_code"] == 0
    out(host, b, "touch /tmp/go")
    wait_for(lambda: host.ok("GET", f"{API}/sandboxes/{b['id']}/execs/{old['id']}")["state"] == "exited", 20)
    assert host.ok("GET", f"{API}/sandboxes/{b['id']}/execs/{old['id']}")["exit_code"] == 0  # it kept its own rules


def test_nesting_and_path_rules_exclude_each_other(tmp_path):
    h = native(tmp_path, env={"HOLT_NESTING": "true"})
    try:
        h.ok("POST", f"{API}/policies", DENY_ETC)
        status, reply, _ = h.request("POST", f"{API}/sandboxes", {"policy": "careful", "nesting": True})
        assert status == 400 and "nesting" in reply["error"]["message"]
    finally:
        h.stop()


# --- time and output ---

def test_a_policy_limits_time_and_output(host, policy):
    p = policy(timeout_ms=300, output_bytes="64k")
    b = box(host, policy=p["name"])
    said = out(host, b, ["sleep", "60"])
    assert said["timed_out"] and said["exit_code"] != 0
    said = out(host, b, "head -c 200000 /dev/zero | tr '\\0' x; echo end", timeout_ms=20000)
    assert said["truncated"] and said["stdout"].endswith("end\n") and "bytes are left out here" in said["stdout"][:64]


def test_commands_have_a_limit_without_asking(tmp_path):
    h = native(tmp_path, env={"HOLT_COMMAND_TIME_MS": "300ms", "HOLT_SESSION_TIME_MS": "400ms"})
    try:
        b = box(h)
        assert out(h, b, ["sleep", "60"])["timed_out"]
        s = h.ok("POST", f"{API}/sandboxes/{b['id']}/sessions", {"name": "s", "command": ["sleep", "60"]})
        wait_for(lambda: h.ok("GET", f"{API}/sandboxes/{b['id']}/execs/{s['id']}")["timed_out"], 20)
    finally:
        h.stop()




# --- retention, prune, df ---

def test_prune_says_before_it_removes(tmp_path):
    h = native(tmp_path)
    try:
        b = box(h)
        out(h, b, "head -c 300000 /dev/zero")
        out(h, b, "echo two")
        wait_for(lambda: h.ok("POST", f"{API}/prune", {"older_than_ms": 1000})["commands"] == 2)
        said = h.ok("POST", f"{API}/prune", {"older_than_ms": 1000})
        assert not said["removed"] and said["commands"] == 2 and said["output_bytes"] == 300004 and said["events"] > 3
        assert len(h.ok("GET", f"{API}/sandboxes/{b['id']}/execs")["execs"]) == 2
        assert h.ok("POST", f"{API}/prune", {"older_than_ms": "1d"})["commands"] == 0
        assert h.ok("POST", f"{API}/prune", {"older_than_ms": 1000, "what": ["events"]})["commands"] == 0
        done = h.ok("POST", f"{API}/prune", {"older_than_ms": 1000, "yes": True})
        assert done["removed"] and done["commands"] == 2
        assert not h.ok("GET", f"{API}/sandboxes/{b['id']}/execs")["execs"]
        assert not os.listdir(f"{h.state}/execs/{b['id']}") if os.path.isdir(f"{h.state}/execs/{b['id']}") else True
        first = all_events(h)[0]["seq"]
        assert first > said["events"] - 1  # the oldest are gone …
        assert h.ok("GET", f"{API}/audit/verify")["ok"]  # … and the chain holds
        assert h.request("POST", f"{API}/prune", {"what": ["images"]})[0] == 400
        token = h.new_token("op")["token"]
        assert h.request("POST", f"{API}/prune", {"yes": True}, token=token)[0] == 403
    finally:
        h.stop()


def test_output_is_kept_as_long_as_the_setting_says(tmp_path):
    h = native(tmp_path, env={"HOLT_OUTPUT_KEEP_MS": "1s"})
    try:
        b = box(h)
        old = out(h, b, "echo one")["id"]
        live = h.ok("POST", f"{API}/sandboxes/{b['id']}/execs", {"command": ["sleep", "600"], "background": True})["id"]
        wait_for(lambda: [x["id"] for x in h.ok("GET", f"{API}/sandboxes/{b['id']}/execs")["execs"]] == [live], 20)
        assert h.request("GET", f"{API}/sandboxes/{b['id']}/execs/{old}")[0] == 404
    finally:
        h.stop()


def test_df_adds_up(tmp_path):
    h = native(tmp_path)
    try:
        b = box(h)
        out(h, b, "head -c 3000000 /dev/urandom > /root/big; head -c 400000 /dev/zero")
        use = {u["what"]: u for u in h.ok("GET", f"{API}/df")["use"]}
        parts = ("database", "output", "files", "uploads", "images", "sandboxes")
        assert use["total"]["bytes"] == sum(use[p]["bytes"] for p in parts)
        assert use["total"]["count"] == sum(use[p]["count"] for p in parts)
        assert use["output"]["count"] == 1 and 400000 <= use["output"]["bytes"] < 600000
        assert use["sandboxes"]["count"] == 1 and 3000000 <= use["sandboxes"]["bytes"] < 9000000
        assert use["database"]["bytes"] > 100000 and 0 < use["events"]["count"] < 100
        assert use["volumes"]["bytes"] is None
        on_disk = sum(os.stat(f"{h.state}/{f}").st_blocks * 512 for f in os.listdir(h.state) if f.startswith("holt.db") and "lock" not in f)
        assert abs(use["database"]["bytes"] - on_disk) < 1 << 20
    finally:
        h.stop()
