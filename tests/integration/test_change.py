"""Differences between snapshots, images and live sandboxes: each is what was done inside, and no more."""
import base64
import io
import json
import os
import pty
import socket
import subprocess
import tarfile
import threading
import time
import urllib.request

import pytest

from daemon import BUILD, SLOW, all_events, environment, native, wait_for

BOXES = "/holt/v1/sandboxes"


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    daemon = native(tmp_path_factory.mktemp("change"))
    yield daemon
    daemon.stop()


@pytest.fixture
def box(holtd):
    made = []

    def make(**fields):
        made.append(holtd.ok("POST", BOXES, fields))
        return made[-1]["id"]
    yield make
    for b in made:
        holtd.request("DELETE", f"{BOXES}/{b['id']}")


def sh(holtd, box, script, **more):
    ran = holtd.ok("POST", f"{BOXES}/{box}/execs", {"command": ["sh", "-c", script], **more})
    assert ran["exit_code"] == 0, ran
    return ran["stdout"]


def snap(holtd, box, name):
    """Stopped for it where commands cannot be frozen."""
    status, reply = holtd.request("POST", f"{BOXES}/{box}/snapshots", {"name": name})[:2]
    if status == 501:
        holtd.ok("POST", f"{BOXES}/{box}/stop", {"force": True})
        reply = holtd.ok("POST", f"{BOXES}/{box}/snapshots", {"name": name})
        holtd.ok("POST", f"{BOXES}/{box}/start")
    else:
        assert status == 201, reply
    return reply


def diff(holtd, box, query=""):
    return holtd.ok("GET", f"{BOXES}/{box}/diff?limit=10000&{query}")


def files(reply):
    return {c["path"]: c for c in reply["changes"] if c["kind"] == "file"}


def others(reply, kind):
    return [c for c in reply["changes"] if c["kind"] == kind]


def test_a_new_sandbox_differs_in_nothing(holtd, box):
    b = box()
    reply = diff(holtd, b, "all=true")
    assert reply == {"changes": [], "files_added": 0, "files_changed": 0, "files_removed": 0, "others": 0, "more": False}


CHANGE = r"""
set -e; cd /root; rm old/gone; rm -rf old/tree; mkdir old/tree; echo new > old/tree/n
sed -i 's/^20$/twenty/' conf; chmod 4750 tool; chown 12:34 owned; rm link; ln -s ../b link
rm turned; mkdir turned; echo below > turned/x; head -c 5000 /dev/urandom > 'with space'
printf 'a\0b' > bin; touch same; touch -d @5 time; ln conf hard; mkfifo pipe
python3 -c "import os; os.setxattr('/root/attr', 'user.color', b'blue')"; echo x > "$(printf 'new\nline')"
printf 'caf\351' > "$(printf 'caf\351')"; mkdir -p deep/er/est; echo 1 > deep/er/est/f
"""
BEFORE = r"""
set -e; cd /root; mkdir -p old/tree/sub; echo gone > old/gone; echo 1 > old/tree/sub/f; echo 2 > old/tree/m; seq 1 40 > conf
for f in tool owned turned bin same time attr; do echo $f > $f; done; ln -s a link; chmod 755 tool
"""


@pytest.fixture
def changed(holtd, box):
    b = box()
    sh(holtd, b, BEFORE)
    snap(holtd, b, "clean")
    before = sh(holtd, b, "sha256sum /root/conf").split()[0]
    sh(holtd, b, CHANGE)
    return b, before


def test_each_kind_of_change_is_shown(holtd, changed):
    b, conf = changed
    reply = diff(holtd, b, "from=clean")
    got = files(reply)
    assert list(got) == sorted(got, key=lambda p: p.encode().split(b"/")), "in the order of paths"
    added = {p for p, c in got.items() if c["what"] == "added"}
    assert {p for p in added if "caf" not in p} == {
        "/root/old/tree/n", "/root/turned/x", "/root/with space", "/root/hard", "/root/pipe", "/root/new\nline", "/root/deep",
        "/root/deep/er", "/root/deep/er/est", "/root/deep/er/est/f"}
    odd = [c for p, c in got.items() if "caf" in p]
    assert len(odd) == 1 and base64.b64decode(odd[0]["path_base64"]) == b"/root/caf\xe9"
    assert {p for p, c in got.items() if c["what"] == "removed"} == {
        "/root/old/gone", "/root/old/tree/m", "/root/old/tree/sub", "/root/old/tree/sub/f"}
    by = {p: c["by"] for p, c in got.items() if c["what"] == "changed"}
    assert by == {"/root/conf": ["content"], "/root/tool": ["mode"], "/root/owned": ["owner"], "/root/link": ["target"],
                  "/root/turned": ["type"], "/root/bin": ["content"], "/root/attr": ["xattrs"]}
    c = got["/root/conf"]
    assert c["diff"].splitlines() == ["@@ -17,7 +17,7 @@", " 17", " 18", " 19", "-20", "+twenty", " 21", " 22", " 23"]
    assert c["before"]["sha256"] == conf and c["after"]["sha256"] == sh(holtd, b, "sha256sum /root/conf").split()[0]
    assert got["/root/tool"]["before"]["mode"] == "0755" and got["/root/tool"]["after"]["mode"] == "4750"
    assert (got["/root/owned"]["after"]["uid"], got["/root/owned"]["after"]["gid"]) == (12, 34)
    assert got["/root/link"]["after"]["target"] == "../b"
    assert got["/root/bin"]["binary"] and "diff" not in got["/root/bin"]
    assert got["/root/attr"]["after"]["xattrs"] == [{"name": "user.color", "value_base64": base64.b64encode(b"blue").decode()}]
    assert got["/root/hard"]["after"]["link"] == "/root/conf" and got["/root/pipe"]["after"]["type"] == "fifo"
    assert (reply["files_added"], reply["files_changed"], reply["files_removed"]) == (len(added), 7, 4)
    assert [c["command"].split("\n")[0] for c in others(reply, "command")][:1] == ["sh -c sha256sum /root/conf"]


def test_the_other_way_round_and_between_snapshots(holtd, changed):
    b, _ = changed
    snap(holtd, b, "after")
    sh(holtd, b, "rm -rf /root/*")
    there, back = files(diff(holtd, b, "from=clean&to=after")), files(diff(holtd, b, "from=after&to=clean"))
    other = {"added": "removed", "removed": "added", "changed": "changed"}
    assert {p: other[c["what"]] for p, c in there.items()} == {p: c["what"] for p, c in back.items()}
    assert there["/root/conf"]["before"]["sha256"] == back["/root/conf"]["after"]["sha256"]
    assert files(diff(holtd, b, "from=clean&to=clean")) == {}
    general = holtd.ok("GET", f"/holt/v1/diff?from={b}@clean&to={b}@after&limit=10000")
    assert files(general) == there
    assert set(files(holtd.ok("GET", f"/holt/v1/diff?to={b}@after&limit=10000"))) >= {"/root/conf", "/root/deep"}, "since its image"


def test_paths_volatile_trees_names_and_pages(holtd, box):
    b = box()
    sh(holtd, b, "echo 1 > /etc/one; echo 2 > /tmp/two; mkdir -p /home/holt/.cache /home/holt/x; echo 3 > /home/holt/.cache/three; echo 4 > /home/holt/x/four")
    assert set(files(diff(holtd, b))) == {"/etc/one", "/home/holt", "/home/holt/x", "/home/holt/x/four"}
    assert set(files(diff(holtd, b, "all=true"))) >= {"/tmp/two", "/home/holt/.cache/three"}
    assert set(files(diff(holtd, b, "path=/home/holt/x"))) == {"/home/holt/x", "/home/holt/x/four"}
    assert set(files(diff(holtd, b, "path=/home/holt/x/four,/etc"))) == {"/etc/one", "/home/holt/x/four"}
    names = files(diff(holtd, b, "text=false"))
    assert "diff" not in names["/etc/one"] and "sha256" not in names["/etc/one"]["after"]
    page = holtd.ok("GET", f"{BOXES}/{b}/diff?limit=2")
    assert len(page["changes"]) == 2 and page["more"] is True
    status, reply = holtd.request("GET", f"{BOXES}/{b}/diff?path=etc")[:2]
    assert status == 400 and "absolute" in reply["error"]["message"]


def test_users_services_timetables_and_packages(holtd, box):
    b = box()
    sh(holtd, b, "mkdir -p /var/lib/dpkg; printf 'Package: old\nStatus: install ok installed\nVersion: 1\n\n' > /var/lib/dpkg/status;"
                 "echo 'root:!:1::::::' > /etc/shadow")
    snap(holtd, b, "clean")
    sh(holtd, b, r"""
echo 'eve:x:1000:1000:Eve:/home/eve:/bin/bash' >> /etc/passwd; echo 'eve:x:1000:' >> /etc/group; echo 'eve:$6$secret:1::::::' >> /etc/shadow
sed -i 's/^root:!/root:$6$other/' /etc/shadow; sed -i 's/^tty:x:5:/&eve/' /etc/group
mkdir -p /etc/systemd/system/multi-user.target.wants /etc/cron.d /var/spool/cron/crontabs /var/lib/dpkg/info /opt/v
cd /etc/systemd/system; echo '[Service]' > web.service; ln -s ../web.service multi-user.target.wants/; ln -s /dev/null masked.timer
echo '* * * * * root true' > /etc/cron.d/job; echo '@daily x' > /var/spool/cron/crontabs/eve
printf 'Package: nginx\nStatus: install ok installed\nVersion: 1.2-3\n\nPackage: rc\nStatus: deinstall ok config-files\nVersion: 9\n\n' > /var/lib/dpkg/status
printf '/opt\n/opt/nginx\n/etc/nginx.conf\n' > /var/lib/dpkg/info/nginx.list; echo b > /opt/nginx; echo c > /etc/nginx.conf
p=/opt/v/lib/python3/site-packages; mkdir -p $p/foo $p/foo-1.5.dist-info /opt/v/bin; echo > $p/foo/a.py; echo > /opt/v/bin/foo
printf 'foo/a.py,,\n../../../bin/foo,,\n' > $p/foo-1.5.dist-info/RECORD
n=/usr_/lib/node_modules; mkdir -p $n/left $n/@s/pad; printf '{"name": "left", "version": "2.0.1"}' > $n/left/package.json; printf '{"version": "3.0.0"}' > $n/@s/pad/package.json
""")
    reply = diff(holtd, b, "from=clean")
    assert "$6$" not in json.dumps(others(reply, "user"))
    users = {c["name"]: c for c in others(reply, "user")}
    assert users["eve"]["what"] == "added" and users["eve"]["attrs"]["shell"] == {"before": None, "after": "/bin/bash"}
    assert users["eve"]["attrs"]["password"]["after"] == "set"
    assert users["root"]["attrs"] == {"password": {"before": "locked", "after": "set"}}
    groups = {c["name"]: c for c in others(reply, "group")}
    assert groups["eve"]["what"] == "added" and groups["tty"]["attrs"] == {"members": {"before": None, "after": "eve"}}
    services = {c["name"]: c["attrs"] for c in others(reply, "service")}
    assert services == {"web.service": {"unit": {"before": "no", "after": "yes"}, "enabled": {"before": "no", "after": "yes"}},
                        "masked.timer": {"masked": {"before": "no", "after": "yes"}}}
    assert {(c["name"], c["path"]) for c in others(reply, "cron")} == {
        ("job", "/etc/cron.d/job"), ("eve", "/var/spool/cron/crontabs/eve")}
    packages = {(c["manager"], c["name"]): (c["before"], c["after"]) for c in others(reply, "package")}
    assert packages == {("dpkg", "nginx"): (None, "1.2-3"), ("dpkg", "old"): ("1", None), ("pip", "foo"): (None, "1.5"),
                        ("npm", "left"): (None, "2.0.1"), ("npm", "@s/pad"): (None, "3.0.0")}
    packaged = {p for p, c in files(reply).items() if c["packaged"]}
    assert {"/opt/nginx", "/opt/v/lib/python3/site-packages/foo", "/opt/v/lib/python3/site-packages/foo/a.py", "/opt/v/bin/foo",
            "/usr_/lib/node_modules/left/package.json"} <= packaged
    assert "/etc/nginx.conf" not in packaged and "/etc/passwd" not in packaged


def lines_of(holtd, path):
    r = urllib.request.Request(holtd.url + path, headers={"Authorization": f"Bearer {holtd.token}"})
    with urllib.request.urlopen(r, timeout=300) as f:
        assert f.headers["Content-Type"] == "application/x-ndjson"
        return [json.loads(line) for line in f]


def test_a_stream_has_every_change_and_says_its_end(holtd, box):
    b = box()
    sh(holtd, b, "mkdir /root/m; cd /root/m; seq 1 20000 | xargs touch")
    lines = lines_of(holtd, f"{BOXES}/{b}/diff?stream=true")
    assert lines[-1]["end"]["files_added"] == 20001
    assert sum(c.get("kind") == "file" for c in lines[:-1]) == 20001
    holtd.ok("DELETE", f"{BOXES}/{b}")
    assert holtd.request("GET", f"{BOXES}/{b}/diff?stream=true")[0] == 404


def test_who_may_see_it(holtd, box):
    b = box(name="secretive")
    sh(holtd, b, "echo 1 > /root/f")
    snap(holtd, b, "s")
    mine = holtd.ok("POST", "/holt/v1/tokens", {"name": "an-agent", "role": "agent", "agent": "stranger"})["token"]
    for path in (f"{BOXES}/{b}/diff", f"/holt/v1/diff?to={b}", f"/holt/v1/diff?to={b}@s", "/holt/v1/diff?from=secretive&to=host"):
        assert holtd.request("GET", path, token=mine)[0] in (403, 404), path
    watcher = holtd.ok("POST", "/holt/v1/tokens", {"name": "a-watcher", "role": "observer"})["token"]
    assert holtd.request("GET", f"{BOXES}/{b}/diff", token=watcher)[0] == 403
    assert holtd.request("GET", f"{BOXES}/{b}/diff")[0] == 200
    assert any(e["audit"] and "sandbox.diff" in json.dumps(e) for e in all_events(holtd, audit="true"))
    for query in ("to=nowhere", "to=nowhere@x", "to=sn_00000000000000000000"):
        assert holtd.request("GET", f"/holt/v1/diff?{query}")[0] == 404, query


def test_what_a_hostile_sandbox_puts_there_stays_there(holtd, box):
    """Links that lead out, devices, odd names, deep trees, a huge file with holes, a database of packages that is none."""
    b = box()
    sh(holtd, b, r"""
mkdir -p /root/h /var/lib/dpkg; cd /root/h; ln -s /etc/shadow out; ln -s / all; ln -s /proc/1/root up; truncate -s 200M holes
printf 'x\033[31m\nPackage: p\n' > "$(printf 'esc\033[2J')"; head -c 3000000 /dev/urandom > /var/lib/dpkg/status
printf 'a:b\n::::\n\0\0' > /etc/passwd; python3 -c "
import os
for i in range(400):
    os.mkdir('d' * 60); os.chdir('d' * 60)
open('end', 'w').close()"
""")
    got = files(diff(holtd, b, "path=/root/h"))
    assert got["/root/h/out"]["after"]["target"] == "/etc/shadow" and "diff" not in got["/root/h/out"]
    assert not any(p.startswith(("/root/h/all/", "/root/h/up/")) for p in got)
    assert got["/root/h/holes"]["after"]["size"] == 200 << 20 and got["/root/h/holes"].get("diff_left_out")
    assert any(p.endswith("/end") and len(p) > 20000 for p in got)
    assert holtd.ok("GET", f"{BOXES}/{b}/diff?path=/etc")["files_changed"] == 1


def tools(holtd):
    return holtd.ok("GET", f"{BOXES}?label=holt.internal%3Dcompare")["sandboxes"]


def test_a_client_that_leaves_and_a_crash_leave_no_sandbox(tmp_path):
    d = native(tmp_path)
    try:
        b = d.ok("POST", BOXES, {})["id"]
        sh(d, b, "truncate -s 60G /root/holes")  # takes long to read
        for end in ("leave", "crash"):
            s = socket.create_connection(("127.0.0.1", int(d.url.rsplit(":", 1)[1])))
            s.sendall(f"GET {BOXES}/{b}/diff HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {d.token}\r\n\r\n".encode())
            wait_for(lambda: tools(d))
            if end == "crash":
                d.process.kill()
                d.process.wait()
                d = native(tmp_path)
            s.close()
            wait_for(lambda: not tools(d))
        assert d.ok("GET", "/holt/v1/snapshots?all=true")["snapshots"] == []
        assert d.ok("GET", f"{BOXES}/{b}")["state"] == "running"
        d.ok("DELETE", f"{BOXES}/{b}")
    finally:
        d.stop()


def holt(d, *args, status=0):
    env = environment({"HOLT_SERVER": d.url, "HOLT_TOKEN": d.token})
    ran = subprocess.run([f"{BUILD}/holt", *args], env=env, capture_output=True, timeout=60 * SLOW)
    assert ran.returncode == status, ran
    return (ran.stdout if status == 0 else ran.stderr).decode(errors="surrogateescape")


def test_on_the_command_line(tmp_path, holtd, changed):
    b, _ = changed
    patch = holt(holtd, "diff", f"{b}@clean", b, "/root/conf", "/root/link", "/root/tool")
    assert patch.splitlines()[:6] == ["diff --git a/root/conf b/root/conf", "--- a/root/conf", "+++ b/root/conf", "@@ -17,7 +17,7 @@", " 17",
                                      " 18"]
    assert "old mode 100755\nnew mode 104750\n" in patch and "-a\n\\ No newline at end of file\n+../b\n" in patch
    assert "\x1b" not in patch
    root = tmp_path / "root"
    root.mkdir()
    (root / "conf").write_text("".join(f"{i}\n" for i in range(1, 41)))
    text = holt(holtd, "diff", f"{b}@clean", b, "/root/conf")
    text = text[:text.index("# commands")] if "# commands" in text else text
    subprocess.run(["git", "apply", "-"], input=text.encode(), cwd=tmp_path, check=True)
    assert (root / "conf").read_text().split("\n")[19] == "twenty", "git applies it"
    stat = holt(holtd, "diff", f"{b}@clean", b, "--stat")
    assert " root/conf" in stat and "| " in stat and "files changed" in stat and "Bin 4 -> 3 bytes" in stat
    names = holt(holtd, "diff", f"{b}@clean", b, "--name-only", "/root/old").splitlines()
    assert names == ["/root/old/gone", "/root/old/tree/m", "/root/old/tree/n", "/root/old/tree/sub", "/root/old/tree/sub/f"]
    objects = [json.loads(line) for line in holt(holtd, "diff", b, "--json").splitlines()]
    assert objects[-1]["end"]["files_added"] > 5
    assert "no sandbox, snapshot or image" in holt(holtd, "diff", "nothing", status=2)
    assert "third" in holt(holtd, "diff", "a", "b", "c", status=1)


def test_colours_and_a_pager_on_a_terminal(holtd, changed):
    b, _ = changed
    env = environment({"HOLT_SERVER": holtd.url, "HOLT_TOKEN": holtd.token, "TERM": "xterm", "PAGER": "sed s/^/PAGED:/"})
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(f"{BUILD}/holt", ["holt", "diff", f"{b}@clean", b], env)
    out = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    os.close(fd)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"PAGED:\x1b[1mdiff --git a/root/conf b/root/conf\x1b[0m" in out and b"\x1b[32m+twenty\x1b[0m" in out
    assert b"caf\xef\xbf\xbd" in out or b"caf\\x" in out, "what is no text is made harmless"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_thousand_files_in_bounded_memory(tmp_path):
    d = native(tmp_path)
    try:
        b = d.ok("POST", BOXES, {})["id"]
        make = "mkdir /root/m; cd /root/m; python3 -c \"\nfor i in range(100000): open(str(i), 'w').write(str(i))\""
        assert d.ok("POST", f"{BOXES}/{b}/execs", {"command": make}, timeout=300)["exit_code"] == 0
        d.ok("GET", f"{BOXES}/{b}/diff?limit=1", timeout=300)
        before = d.peak_kib()
        lines = lines_of(d, f"{BOXES}/{b}/diff?stream=true")
        assert lines[-1]["end"]["files_added"] == 100001
        assert d.peak_kib() - before < 32 * 1024
        d.ok("DELETE", f"{BOXES}/{b}")
    finally:
        d.stop()


# --- merge-back ---


def fork(holtd, source, count=1):
    made = holtd.ok("POST", "/holt/v1/forks", {"source": source, "count": count})["sandboxes"]
    return [s["id"] for s in made]


def apply(holtd, fork, onto, **more):
    return holtd.ok("POST", f"/holt/v1/forks/{fork}/apply", {"onto": onto, **more}, timeout=120)


def drop(holtd, *boxes):
    for b in boxes:
        holtd.ok("DELETE", f"{BOXES}/{b}")


TREE = ("cd /root && find . -printf '%p %y %m %U %G %l\\n' | sort && find . -type f -exec sha256sum {} + | sort; python3 -c '"
        "import os\nfor d, ds, fs in sorted(os.walk(\"/root\")):\n for f in sorted(fs + ds):\n  p = os.path.join(d, f)\n"
        "  print(p, [(a, os.getxattr(p, a, follow_symlinks=False)) for a in os.listxattr(p, follow_symlinks=False)])'")


def test_every_kind_of_change_is_merged(holtd, box):
    """What the fork is, the target becomes; what the target has gained stays; and it can be taken back."""
    b = box()
    sh(holtd, b, BEFORE)
    (f,) = fork(holtd, b)
    sh(holtd, f, CHANGE)
    was = sh(holtd, b, TREE)
    dry = apply(holtd, f, b, dry_run=True)
    assert dry["done"] is False and dry["applied"] > 15 and dry["conflicts"] == 0 and dry["undo"] is None
    assert sh(holtd, b, TREE) == was, "a dry run changes nothing"
    done = apply(holtd, f, b)
    assert done["done"] is True and done["applied"] == dry["applied"] and done["undo"].startswith("sn_")
    assert sh(holtd, b, TREE) == sh(holtd, f, TREE)
    assert sh(holtd, b, "stat -c %h /root/conf; stat -c %i /root/conf /root/hard | uniq | wc -l").split() == ["2", "1"], "a hard link stays one"
    assert sh(holtd, b, "stat -c %Y /root/tool") == sh(holtd, f, "stat -c %Y /root/tool")
    again = apply(holtd, f, b)
    assert again["done"] is True and again["applied"] == 0 and again["already"] == dry["applied"] and again["undo"] is None
    holtd.ok("POST", f"{BOXES}/{b}/restore", {"snapshot": done["undo"]})
    assert sh(holtd, b, TREE) == was
    assert holtd.ok("GET", f"{BOXES}/{f}")["state"] == "running", "resumed"
    drop(holtd, f)


def test_conflicts_are_listed_and_never_guessed(holtd, box):
    b = box()
    sh(holtd, b, "cd /root; for f in both same mine gone stays; do echo $f > $f; done; mkdir d r t; echo 1 > d/1; echo 1 > r/1; echo 1 > t/1")
    (f,) = fork(holtd, b)
    sh(holtd, f, "cd /root; echo fork > both; echo equal > same; rm gone; chmod 600 stays; rm -r d; rm -r t; echo file > t; echo n > r/new; echo f > fresh")
    sh(holtd, b, "cd /root; echo box > both; echo equal > same; echo changed > gone; echo more > d/gained; echo more > t/gained; rm -r r; echo mine > mine;"
                 "echo b > fresh; echo own > own")
    was = sh(holtd, b, TREE)
    reply = apply(holtd, f, b)
    verdicts = {c["path"]: c["verdict"] for c in reply["changes"]}
    assert reply["done"] is False and reply["undo"] is None and reply["conflicts"] == 5
    assert {p for p, v in verdicts.items() if v == "conflict"} == {"/root/both", "/root/gone", "/root/t", "/root/r/new", "/root/fresh"}
    assert verdicts["/root/same"] == "already" and verdicts["/root/stays"] == verdicts["/root/d/1"] == verdicts["/root/d"] == "apply"
    both = next(c for c in reply["changes"] if c["path"] == "/root/both")
    assert both["onto"]["size"] == len("box\n") and both["after"]["size"] == len("fork\n")
    assert sh(holtd, b, TREE) == was, "with a conflict, nothing is changed"
    assert apply(holtd, f, b, theirs=["/root/both"])["conflicts"] == 4
    done = apply(holtd, f, b, theirs=["/"], ours=["/root/gone", "/root/r", "/root/t"])
    assert done["done"] is True and done["conflicts"] == 0 and done["kept"] >= 3
    assert sh(holtd, b, "cd /root; cat both same gone fresh own mine; stat -c %a stays; ls d t; ls r 2>&1 || true").split() == [
        "fork", "equal", "changed", "f", "own", "mine", "600", "d:", "gained", "t:", "1", "gained", "ls:", "cannot", "access", "'r':", "No", "such",
        "file", "or", "directory"]
    drop(holtd, f)


@pytest.mark.slow
def test_eight_forks_of_a_busy_sandbox(holtd, box):
    """Merged back one after another, with and without conflicts: exactly the expected tree, and what the parent has added since is there."""
    b = box(name="busy")
    sh(holtd, b, "cd /root; mkdir src; for i in 1 2 3 4 5 6 7 8; do echo $i > src/$i; done; echo 0 > shared; mkdir log")
    busy = holtd.ok("POST", f"{BOXES}/{b}/execs", {"background": True, "command": [
        "sh", "-c", "i=0; while :; do i=$((i+1)); echo $i >> /root/log/all; echo $i > /root/log/last; sleep 0.01; done"]})["id"]
    forks = fork(holtd, b, 8)
    for n, f in enumerate(forks, 1):
        sh(holtd, f, f"cd /root; echo fork {n} > src/{n}; echo new > added-{n}; mkdir -p deep/{n}; echo x > deep/{n}/x; echo fork {n} > other-{n % 2}; rm -r log")
    sh(holtd, b, "cd /root; echo gained > gained; echo parent > src/8")
    outcomes = []
    for n, f in enumerate(forks, 1):
        reply = apply(holtd, f, "busy", ours=["/root/log"])
        conflicts = {c["path"] for c in reply["changes"] if c["verdict"] == "conflict"}
        outcomes.append((reply["done"], conflicts))
        if conflicts:
            assert apply(holtd, f, "busy", ours=["/root/log", "/root/src"], theirs=["/root/other-0", "/root/other-1"])["done"] is True
    assert outcomes == [(True, set()), (True, set())] + [(False, {f"/root/other-{n % 2}"} | ({"/root/src/8"} if n == 8 else set())) for n in range(3, 9)]
    tree = sh(holtd, b, "cd /root; cat src/* gained shared other-0 other-1; cat added-* | sort | uniq -c; find deep -type f | wc -l").split("\n")
    assert tree[:8] == [f"fork {n}" for n in range(1, 8)] + ["parent"] and tree[8:12] == ["gained", "0", "fork 8", "fork 7"]
    assert tree[12].split() == ["8", "new"] and tree[13] == "8"
    lines = [int(x) for x in sh(holtd, b, "cat /root/log/all").split()]
    assert lines == list(range(1, len(lines) + 1)), "not a line of the busy command is lost"
    more = sh(holtd, b, "wc -l < /root/log/all")
    wait_for(lambda: sh(holtd, b, "wc -l < /root/log/all") != more)
    assert holtd.ok("GET", f"{BOXES}/{b}/execs/{busy}")["state"] == "running"
    assert len(holtd.ok("POST", f"/holt/v1/forks/{forks[0]}/keep")["removed"]) == 7
    drop(holtd, forks[0])


def test_what_is_no_merge(holtd, box):
    b, other = box(), box()
    (f,) = fork(holtd, b)

    def refused(fork, **fields):
        status, reply, _ = holtd.request("POST", f"/holt/v1/forks/{fork}/apply", fields)
        return status, reply["error"]["message"]
    assert refused(b, onto=f) == (409, f"sandbox '{b}' is no fork")
    assert refused(f, onto=f)[0] == 400 and refused(f, onto="nobody")[0] == 404 and refused(f, onto=b, ours=["x"])[0] == 400
    holtd.ok("POST", f"{BOXES}/{b}/stop", {"force": True})
    assert "does not run" in refused(f, onto=b)[1]
    assert apply(holtd, f, other)["done"] is True, "into a sibling of the same image"
    drop(holtd, f)


@pytest.mark.slow
def test_a_kill_in_the_middle_of_a_merge_is_said(tmp_path):
    """kill -9 of holtd at any moment: afterwards both run, nothing is left, and a merge that had begun to write is an event with the way back."""
    d = native(tmp_path)
    try:
        b = d.ok("POST", BOXES, {})["id"]
        sh(d, b, "mkdir /root/m; echo was > /root/m/f")
        (f,) = fork(d, b)
        sh(d, f, "cd /root/m; rm f; for i in $(seq 1 30); do head -c 3000000 /dev/zero > $i; done; echo end > zz")
        before = sh(d, b, TREE)
        told = set()
        for delay in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8):
            t = threading.Thread(target=lambda: quietly(lambda: apply(d, f, b)))
            t.start()
            time.sleep(delay)
            d.process.kill()
            d.process.wait()
            t.join()
            d = native(tmp_path)
            wait_for(lambda: {d.ok("GET", f"{BOXES}/{x}")["state"] for x in (b, f)} == {"running"})
            wait_for(lambda: not tools(d))
            events = [e for e in all_events(d) if e["type"].startswith("merge.")]
            wait_for(lambda: sh(d, b, "echo"))
            now = sh(d, b, TREE)
            if now != before:
                wait_for(lambda: [e for e in all_events(d) if e["type"].startswith("merge.")])
                events = [e for e in all_events(d) if e["type"].startswith("merge.")]
                undo = events[-1]["data"]["undo"]
                d.ok("POST", f"{BOXES}/{b}/restore", {"snapshot": undo})
                assert sh(d, b, TREE) == before, "the snapshot is the way back"
            told |= {e["type"] for e in events}
        assert apply(d, f, b)["done"] is True
        assert sh(d, b, "cat /root/m/zz") == "end\n"
        drop(d, b, f)
        assert told
    finally:
        d.stop()


def quietly(what):
    try:
        what()
    except (AssertionError, OSError):
        pass


def test_merge_on_the_command_line(holtd, box):
    b = box(name="target")
    sh(holtd, b, "echo 1 > /root/a; echo 1 > /root/b")
    made = holtd.ok("POST", "/holt/v1/forks", {"source": "target", "name": "try"})["sandboxes"][0]["id"]
    sh(holtd, made, "echo 2 > /root/a; rm /root/b; echo n > /root/n")
    dry = holt(holtd, "apply", "try", "--onto", "target", "--dry-run").splitlines()
    assert dry == ["apply    M /root/a", "apply    D /root/b", "apply    A /root/n", "3 to apply, 0 already there, 0 kept, 0 conflicts"]
    sh(holtd, b, "echo 3 > /root/a")
    assert "decide each conflict" in holt(holtd, "apply", "try", "--onto", "target", status=1)
    assert holt(holtd, "apply", "try", "--onto", "target", "--theirs", "/").splitlines()[-1].startswith("3 applied")
    assert sh(holtd, b, "cat /root/a /root/n; ls /root") == "2\nn\na\nn\n"
    drop(holtd, made)


# --- export ---


def export(holtd, query):
    r = urllib.request.Request(f"{holtd.url}/holt/v1/export?{query}", headers={"Authorization": f"Bearer {holtd.token}"})
    with urllib.request.urlopen(r, timeout=120) as f:
        return f.read(), f.headers["Content-Type"]


def test_an_exported_archive_is_a_layer(holtd, changed):
    b, _ = changed
    raw, kind = export(holtd, f"from={b}@clean&to={b}&as=tar")
    assert kind == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        members = {m.name: m for m in tar.getmembers()}
        got = {n: tar.extractfile(m).read() for n, m in members.items() if m.isreg()}
    gone = {n for n in members if "/.wh." in n}
    assert gone == {"root/old/.wh.gone", "root/old/tree/.wh.m", "root/old/tree/.wh.sub"}, "a directory takes along what is in it"
    assert members["root/tool"].mode == 0o4750 and (members["root/owned"].uid, members["root/owned"].gid) == (12, 34)
    assert members["root/link"].linkname == "../b" and members["root/pipe"].isfifo() and members["root/hard"].islnk()
    assert members["root/attr"].pax_headers["SCHILY.xattr.user.color"] == "blue"
    assert got["root/old/tree/n"] == b"new\n" and len(got["root/with space"]) == 5000 and "root/same" not in members and "root/time" not in members
    whole, _ = export(holtd, f"to={b}@clean&as=tar&path=/root/old")
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        assert sorted(m.name for m in tar if m.isreg()) == ["root/old/gone", "root/old/tree/m", "root/old/tree/sub/f"]


def test_an_exported_patch_is_applied_by_git(tmp_path, holtd, box):
    b = box()
    sh(holtd, b, "mkdir /root/p; cd /root/p; seq 1 30 > a; echo x > exec; echo gone > gone; ln -s one link; echo 'é' > 'odd \"name'; printf 'no newline' > end")
    snap(holtd, b, "s")
    for name, content in (("a", "".join(f"{i}\n" for i in range(1, 31))), ("exec", "x\n"), ("gone", "gone\n"), ("odd \"name", "é\n"), ("end", "no newline")):
        (tmp_path / "root/p").mkdir(parents=True, exist_ok=True)
        (tmp_path / "root/p" / name).write_text(content)
    os.symlink("one", tmp_path / "root/p/link")
    sh(holtd, b, "cd /root/p; sed -i 's/^15$/fifteen/' a; chmod 755 exec; rm gone; ln -sfn two link; echo 'ü' > 'odd \"name'; printf 'still none' > end; mkdir d; echo n > d/new; chown 5:5 a")
    patch, kind = export(holtd, f"from={b}@s&to={b}")
    assert kind.startswith("text/plain")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "apply", "-"], input=patch, check=True)
    p = tmp_path / "root/p"
    assert "fifteen" in (p / "a").read_text() and os.access(p / "exec", os.X_OK) and not (p / "gone").exists() and os.readlink(p / "link") == "two"
    assert (p / "odd \"name").read_text() == "ü\n" and (p / "end").read_text() == "still none" and (p / "d/new").read_text() == "n\n"


def test_an_exported_script_repeats_the_change(holtd, box):
    b = box()
    sh(holtd, b, BEFORE)
    (f,) = fork(holtd, b)
    sh(holtd, b, CHANGE.replace('touch same', 'touch same; echo "it\'s \\$HOME" > quoted').replace('printf \'caf\\351\' > "$(printf \'caf\\351\')"; ', ""))
    script, _ = export(holtd, f"from={holtd.ok('GET', f'{BOXES}/{f}')['snapshot']}&to={b}&as=shell")
    for _ in range(2):
        r = holtd.ok("POST", f"{BOXES}/{f}/execs", {"command": ["sh", "-s"], "stdin": script.decode()})
        assert r["exit_code"] == 0, r
    left = files(holtd.ok("GET", f"/holt/v1/diff?from={b}&to={f}&limit=10000"))
    assert {p: c["by"] for p, c in left.items()} == {"/root/attr": ["xattrs"], "/root/pipe": []}, "what the notes say"
    assert "# not in it: /root/pipe" in script.decode()
    recipe, _ = export(holtd, f"to={b}&as=dockerfile")
    assert recipe.decode().startswith("# syntax=docker/dockerfile:1\n") and "FROM ${BASE}" in recipe.decode() and recipe.endswith(b"HOLT_STEP\n")
    manifest, _ = export(holtd, f"to={b}&as=puppet")
    assert "file { '/root/conf':\n  ensure => file,\n" in manifest.decode()
    drop(holtd, f)


def test_export_on_the_command_line(holtd, changed):
    b, _ = changed
    assert holt(holtd, "export", f"{b}@clean", b, "/root/conf").startswith("diff --git a/root/conf b/root/conf\n--- a/root/conf\n")
    assert holt(holtd, "export", b, "--as", "ansible").count("- name: change") == 1
    assert "no sandbox, snapshot or image" in holt(holtd, "export", "nothing", "--as", "tar", status=2)


def test_an_agent_does_not_read_past_path_rules(holtd):
    """Sandboxes of agents have a disk limit: their files are in an image, which is seen in snapshots alone."""
    holtd.ok("POST", "/holt/v1/policies", {"name": "careful", "paths_deny": ["/etc"]})
    worker = holtd.ok("POST", "/holt/v1/tokens", {"name": "worker", "role": "agent", "agent": "worker"})["token"]
    free, held = (holtd.ok("POST", BOXES, f, token=worker)["id"] for f in ({}, {"policy": "careful"}))
    sh(holtd, free, "echo 1 > /etc/own")
    for b in (free, held):
        snap(holtd, b, "s")
    assert set(files(holtd.ok("GET", f"{BOXES}/{free}/diff?to=s", token=worker))) == {"/etc/own"}, "its own, without rules"
    status, reply, _ = holtd.request("GET", f"{BOXES}/{free}/diff")
    assert status == 200 or (status == 501 and "disk limit" in reply["error"]["message"] and "snapshot" in reply["error"]["hint"])
    for path in (f"{BOXES}/{held}/diff?to=s", f"/holt/v1/diff?to={held}@s", f"/holt/v1/diff?from={held}@s&to={free}@s", f"/holt/v1/export?to={held}@s&as=tar"):
        status, reply, _ = holtd.request("GET", path, token=worker)
        assert status == 403 and "path rules" in reply["error"]["message"], (path, reply)
        assert holtd.request("GET", path)[0] == 200, "a person may look"
    drop(holtd, free, held)
    for b in (free, held):
        holtd.ok("DELETE", f"/holt/v1/snapshots/{b}@s")
    holtd.ok("DELETE", "/holt/v1/policies/careful")


def test_an_agent_reads_here_no_more_than_inside(holtd):
    """Of images, and of snapshots whose sandbox is gone, with its rules: the agent's own policies hold."""
    agent = holtd.ok("POST", "/holt/v1/tokens", {"name": "reader", "role": "agent", "agent": "reader"})["token"]
    box = holtd.ok("POST", BOXES, {}, token=agent)["id"]
    sh(holtd, box, "mkdir '/root/k[e]y'; echo top-secret > '/root/k[e]y/file'; echo shown > /root/open")
    taken = snap(holtd, box, "s")["id"]
    holtd.ok("DELETE", f"{BOXES}/{box}")
    policy = holtd.ok("POST", "/holt/v1/policies", {"name": "hides", "paths_deny": ["/root/k[e]y"], "agents": ["reader"]})["id"]
    whole = f"/holt/v1/diff?commands=false&to={taken}"
    for path in (whole, whole + "&all=true&path=/root/k[e]y"):
        said = json.dumps(holtd.ok("GET", path, token=agent))
        assert "top-secret" not in said and "/root/k[e]y/" not in said, said
    assert "shown" in json.dumps(holtd.ok("GET", whole, token=agent))
    assert "top-secret" in json.dumps(holtd.ok("GET", whole)), "people read it"
    holtd.ok("PATCH", f"/holt/v1/policies/{policy}", {"paths_allow": ["/srv"]})
    assert holtd.request("GET", whole, token=agent)[0] == 403
    holtd.ok("DELETE", f"/holt/v1/policies/{policy}")
    holtd.ok("DELETE", f"/holt/v1/snapshots/{taken}")
