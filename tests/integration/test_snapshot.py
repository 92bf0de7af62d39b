"""Snapshots: taken while commands run, restored in place, kept over crashes."""
import os
import threading
import time

import pytest

from daemon import NO_FREEZE, all_events, can_freeze, native, wait_for
from test_native import spawn_of

BOXES, SNAPSHOTS = "/holt/v1/sandboxes", "/holt/v1/snapshots"


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    daemon = native(tmp_path_factory.mktemp("snapshot"))
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def freezes(holtd):
    return can_freeze(holtd)


@pytest.fixture(autouse=True)
def needs_freeze(freezes):
    if not freezes:
        pytest.skip(NO_FREEZE)


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


def snap(holtd, box, name=None):
    return holtd.ok("POST", f"{BOXES}/{box}/snapshots", {"name": name} if name else {})


def restore(holtd, box, snapshot):
    return holtd.ok("POST", f"{BOXES}/{box}/restore", {"snapshot": snapshot})


def layers(holtd):
    return sorted(os.listdir(os.path.join(holtd.state, "layers")))


MANIFEST = ("cd /root && find . -printf '%p %y %m %u %g %n %s %l\\n' | sort && find . -type f -exec sha256sum {} + | sort && "
            "(getfattr -R -d -m user -P . 2>/dev/null; true)")
TREE = """
set -e; cd /root; mkdir -p a/b/c 'with space' d; echo one > a/one; echo two > a/b/two; chmod 4750 a/one; chmod 1777 d
ln a/one a/hard; ln -s ../nowhere a/link; mkfifo a/pipe; head -c 100000 /dev/urandom > 'with space/bin'
truncate -s 50M sparse; printf end >> sparse; chown 12:34 a/b/two; touch "$(printf 'new\\nline')"
python3 -c "
import os, socket; os.setxattr('/root/a/one', 'user.color', b'blue'); os.setxattr('/root/d', 'user.dir', b'1')
socket.socket(socket.AF_UNIX).bind('/root/a/sock')"
"""


def test_a_restore_brings_back_every_byte_and_attribute(holtd, box):
    b = box(name="all")
    sh(holtd, b, TREE)
    before = sh(holtd, b, MANIFEST)
    made = snap(holtd, b, "clean")
    assert made["name"] == "clean" and made["sandbox"] == b and made["parent"] is None and made["image"] == "host"
    assert made["host"].startswith("sha256:") and made["digest"].startswith("sha256:") and made["frozen_us"] > 0
    assert 100000 <= made["size_bytes"] < 5 << 20, "holes are not copied"
    sh(holtd, b, "cd /root && rm -rf a d && echo x > 'with space/bin' && mkdir a && echo new > a/other; rm /etc/hosts; echo > /etc/passwd.new")
    done = restore(holtd, b, "clean")
    assert done["sandbox"] == b and done["snapshot"] == made["id"] and done["execs_ended"] == 0
    assert sh(holtd, b, MANIFEST) == before
    assert sh(holtd, b, "cat /etc/hosts; ls /etc/passwd.new 2>&1 || true").count("No such file") == 1
    assert holtd.ok("GET", f"{BOXES}/{b}")["snapshot"] == made["id"]
    restore(holtd, b, done["undo"])
    assert sh(holtd, b, "cat /root/a/other; ls /etc/hosts 2>&1 || true").split("\n")[0] == "new", "a restore can be undone"


def test_equal_layers_in_one_stack(holtd, box):
    """Layers are kept by their content: a snapshot may have the layer of another one below it."""
    b = box()
    first = snap(holtd, b)
    for turn in range(3):
        restore(holtd, b, snap(holtd, b)["id"])  # of nothing new: each the same empty layer
        assert holtd.ok("GET", f"{BOXES}/{b}")["state"] == "running", turn
    assert snap(holtd, b)["digest"] == first["digest"]
    same = "mkdir -p /root/d; printf same > /root/d/f; touch -d @1 /root/d/f /root/d /root"
    for script in (same, "rm -r /root/d; touch -d @2 /root", same):
        sh(holtd, b, script)
        restore(holtd, b, snap(holtd, b)["id"])
    assert sh(holtd, b, "cat /root/d/f") == "same"


def test_whiteouts_and_opaque_directories_are_part_of_it(holtd, box):
    b = box()
    sh(holtd, b, "mkdir -p /root/d/e && echo old > /root/d/e/f && echo gone > /root/gone")
    first = snap(holtd, b)
    fork = holtd.ok("POST", "/holt/v1/forks", {"source": first["id"]})["sandboxes"][0]["id"]
    sh(holtd, fork, "rm -rf /root/d /root/gone && mkdir /root/d && echo new > /root/d/n")
    second = snap(holtd, fork)
    again = holtd.ok("POST", "/holt/v1/forks", {"source": second["id"]})["sandboxes"][0]["id"]
    assert sh(holtd, again, "find /root -mindepth 1 | sort") == "/root/d\n/root/d/n\n", "the removal of lower files, and of a whole directory"
    for x in (fork, again):
        holtd.ok("DELETE", f"{BOXES}/{x}")
    assert second["parent"] == first["id"]


def test_taken_while_commands_write(holtd, box):
    b = box()
    started = holtd.ok("POST", f"{BOXES}/{b}/execs", {"command": ["sh", "-c", "cd /root; i=0; while :; do i=$((i+1)); echo $i > t; mv t a; echo $i > t; mv t b; done"],
                                                      "background": True})
    wait_for(lambda: "b" in sh(holtd, b, "ls /root"))
    made = [snap(holtd, b) for _ in range(5)]
    assert all(m["frozen_us"] > 0 for m in made)
    assert holtd.ok("GET", f"{BOXES}/{b}/execs/{started['id']}")["state"] == "running", "it goes on"
    values = []
    for m in made:
        fork = holtd.ok("POST", "/holt/v1/forks", {"source": m["id"]})["sandboxes"][0]["id"]
        x, y = (int(v) for v in sh(holtd, fork, "cat /root/a /root/b").split())
        assert x - y in (0, 1), "one moment: nothing written later is in it"
        values.append(x)
        holtd.ok("DELETE", f"{BOXES}/{fork}")
    assert values == sorted(values) and len(set(values)) > 1
    done = restore(holtd, b, made[0]["id"])
    assert done["execs_ended"] == 1
    ended = holtd.ok("GET", f"{BOXES}/{b}/execs/{started['id']}")
    assert ended["state"] != "running", "its commands end, and that is said"


def test_paused_and_stopped_ones(holtd, box):
    b = box()
    sh(holtd, b, "echo 1 > /root/f")
    holtd.ok("POST", f"{BOXES}/{b}/pause")
    paused = snap(holtd, b)
    assert paused["frozen_us"] == 0 and holtd.ok("GET", f"{BOXES}/{b}")["state"] == "paused", "its pause is somebody else's"
    holtd.ok("POST", f"{BOXES}/{b}/resume")
    holtd.ok("POST", f"{BOXES}/{b}/stop", {"force": True})
    stopped = snap(holtd, b)
    assert stopped["digest"] == paused["digest"], "by its content"
    restore(holtd, b, paused["id"])
    assert holtd.ok("GET", f"{BOXES}/{b}")["state"] == "stopped", "it runs again only if it ran"
    holtd.ok("POST", f"{BOXES}/{b}/start")
    assert sh(holtd, b, "cat /root/f") == "1\n"


def test_a_disk_limit_stays(holtd, box):
    b = box(disk_bytes=64 << 20)
    if "disk" in holtd.ok("GET", f"{BOXES}/{b}")["unenforced"]:
        pytest.skip("disk limits are not enforced here")
    sh(holtd, b, "head -c 10000000 /dev/zero | tr '\\0' x > /root/big; echo 1 > /root/f")
    first = snap(holtd, b, "one")
    sh(holtd, b, "echo 2 > /root/f; rm /root/big")
    restore(holtd, b, "one")
    assert sh(holtd, b, "cat /root/f; wc -c < /root/big") == "1\n10000000\n"
    ran = holtd.ok("POST", f"{BOXES}/{b}/execs", {"command": ["sh", "-c", "head -c 100000000 /dev/zero > /root/more"]})
    assert ran["exit_code"] != 0 and "No space" in ran["stderr"]
    assert first["size_bytes"] >= 10000000


def test_names_lists_and_limits(holtd, box):
    b = box(name="named")
    one, two = snap(holtd, b), snap(holtd, b, "clean")
    assert (one["name"], two["name"], two["parent"]) == ("s1", "clean", one["id"])
    assert holtd.ok("GET", f"{SNAPSHOTS}/named@clean") == two == holtd.ok("GET", f"{SNAPSHOTS}/{two['id']}")
    assert [s["id"] for s in holtd.ok("GET", f"{SNAPSHOTS}?sandbox=named")["snapshots"]] == [one["id"], two["id"]]
    labelled = holtd.ok("POST", f"{BOXES}/{b}/snapshots", {"labels": {"step": "3"}})
    assert [s["id"] for s in holtd.ok("GET", f"{SNAPSHOTS}?label=step=3")["snapshots"]] == [labelled["id"]]
    status, reply, _ = holtd.request("POST", f"{BOXES}/{b}/snapshots", {"name": "clean"})
    assert status == 409 and "named@" not in reply["error"]["message"] and "holt snapshot rm" in reply["error"]["hint"]
    assert holtd.request("GET", f"{SNAPSHOTS}/named@nosuch")[0] == 404
    holtd.ok("DELETE", f"{BOXES}/{b}")
    assert holtd.ok("GET", f"{SNAPSHOTS}/named@clean")["id"] == two["id"], "it outlives its sandbox"
    for s in (one, two, labelled):
        holtd.ok("DELETE", f"{SNAPSHOTS}/{s['id']}")
    assert [e["type"] for e in all_events(holtd) if e["object"] == f"snapshot/{two['id']}"] == ["snapshot.created", "snapshot.removed"]


def test_layers_go_when_nothing_needs_them(tmp_path):
    holtd = native(tmp_path)
    before = layers(holtd)
    b = holtd.ok("POST", BOXES, {})["id"]
    sh(holtd, b, "head -c 100000 /dev/urandom > /root/f")
    made = snap(holtd, b)
    assert len(layers(holtd)) == len(before) + 1
    again = snap(holtd, b)
    assert again["digest"] == made["digest"]
    wait_for(lambda: len(layers(holtd)) == len(before) + 1)  # the same content is stored once
    fork = holtd.ok("POST", "/holt/v1/forks", {"source": made["id"]})["sandboxes"][0]["id"]
    for s in (made, again):
        holtd.ok("DELETE", f"{SNAPSHOTS}/{s['id']}")
    holtd.ok("DELETE", f"{BOXES}/{b}")
    assert sh(holtd, fork, "wc -c < /root/f") == "100000\n", "a layer in use stays"
    holtd.ok("DELETE", f"{BOXES}/{fork}")
    wait_for(lambda: layers(holtd) == before)
    holtd.stop()


def test_what_cannot_be_done_is_said(holtd, box):
    b = box(upper="memory")
    status, reply, _ = holtd.request("POST", f"{BOXES}/{b}/snapshots", {})
    assert status == 501 and "in memory" in reply["error"]["message"], reply
    b = box()
    sh(holtd, b, "cd /root && python3 -c \"\nimport os\nfor i in range(1100):\n    os.mkdir('d'); os.chdir('d')\"")
    status, reply, _ = holtd.request("POST", f"{BOXES}/{b}/snapshots", {})
    assert status == 413 and "nest deeper" in reply["error"]["message"], reply
    wait_for(lambda: not any(n.startswith("tmp_") for n in layers(holtd)))
    assert holtd.ok("POST", f"{BOXES}/{b}/execs", {"command": ["true"]})["exit_code"] == 0, "and it goes on"


def test_another_agents_are_not_seen(holtd, box):
    agent, other = (holtd.ok("POST", "/holt/v1/tokens", {"name": n, "role": "agent", "agent": n})["token"] for n in ("sn-one", "sn-two"))
    b = holtd.ok("POST", BOXES, {"name": "mine"}, token=agent)["id"]
    made = holtd.ok("POST", f"{BOXES}/{b}/snapshots", {"name": "x"}, token=agent)
    assert holtd.request("GET", f"{SNAPSHOTS}/{made['id']}", token=other)[0] in (403, 404)
    assert holtd.request("GET", f"{SNAPSHOTS}/mine@x", token=other)[0] == 404
    assert holtd.ok("GET", SNAPSHOTS, token=other)["snapshots"] == []
    assert holtd.request("POST", "/holt/v1/forks", {"source": made["id"]}, token=other)[0] in (403, 404)
    assert holtd.request("DELETE", f"{SNAPSHOTS}/{made['id']}", token=other)[0] in (403, 404)
    assert holtd.request("POST", BOXES, {"image": made["id"]}, token=other)[0] in (403, 404), "nor by the image"
    assert holtd.ok("POST", BOXES, {"image": "mine@x", "name": "again"}, token=agent)["forked_from"] == made["id"]
    for x in (b, "again"):
        holtd.ok("DELETE", f"{BOXES}/{x}", token=agent)
    holtd.ok("DELETE", f"{SNAPSHOTS}/{made['id']}", token=agent)


def test_a_commit_is_an_image(holtd, box):
    b = box()
    sh(holtd, b, "echo built > /opt/app; rm /etc/nsswitch.conf")
    image = holtd.ok("POST", f"{BOXES}/{b}/commit", {"image": "team/app:1"})
    assert image["state"] == "ready" and image["source"] == "commit" and image["name"] == "team/app:1"
    c = box(image="team/app:1")
    assert sh(holtd, c, "cat /opt/app; ls /etc/nsswitch.conf 2>&1 || true; python3 -c 'print(1+1)'").split("\n")[0::2][0] == "built"
    assert sh(holtd, c, "python3 -c 'print(1+1)'") == "2\n", "on the programs of this machine"
    assert holtd.ok("GET", f"{SNAPSHOTS}?sandbox={b}&all=true")["snapshots"] == [] or wait_for(
        lambda: holtd.ok("GET", f"{SNAPSHOTS}?sandbox={b}&all=true")["snapshots"] == [])
    holtd.ok("DELETE", f"{BOXES}/{c}")
    holtd.ok("DELETE", "/holt/v1/images/team%2Fapp:1")


def test_all_is_there_after_a_restart(tmp_path):
    holtd = native(tmp_path)
    b = holtd.ok("POST", BOXES, {"name": "stays"})["id"]
    sh(holtd, b, "echo 1 > /root/f")
    made = snap(holtd, b, "one")
    sh(holtd, b, "echo 2 > /root/f")
    holtd.kill()
    holtd = native(tmp_path)
    assert holtd.ok("GET", f"{SNAPSHOTS}/stays@one") == made
    holtd.ok_once_found("POST", f"{BOXES}/{b}/restore", {"snapshot": "one"})
    assert sh(holtd, b, "cat /root/f") == "1\n"
    holtd.kill()
    holtd = native(tmp_path)
    wait_for(lambda: holtd.ok("GET", f"{BOXES}/{b}")["state"] == "running")
    assert sh(holtd, b, "cat /root/f") == "1\n", "also after its restore"
    holtd.ok_once_found("POST", f"{BOXES}/{b}/restart", {"force": True})
    assert sh(holtd, b, "cat /root/f") == "1\n"
    holtd.ok("DELETE", f"{BOXES}/{b}")
    holtd.stop()


def test_restores_right_after_the_start(tmp_path):
    """The first tick after a start finishes what a holtd of before left: not what this one does just then."""
    holtd = native(tmp_path)
    b = holtd.ok("POST", BOXES, {})["id"]
    sh(holtd, b, "mkdir /root/t && cd /root/t && for i in $(seq 400); do echo $i > $i; done")
    snap(holtd, b, "base")
    while time.monotonic() < holtd.started + 3:
        restore(holtd, b, "base")
    assert sh(holtd, b, "ls /root/t | wc -l") == "400\n"
    assert "finishing a restore" not in holtd.log()
    holtd.ok("DELETE", f"{BOXES}/{b}")
    holtd.ok("DELETE", f"{SNAPSHOTS}/{holtd.ok('GET', SNAPSHOTS)['snapshots'][0]['id']}")
    holtd.stop()


def test_an_empty_directory_of_a_restore_goes(tmp_path):
    """A restore that was killed between its directory and its row."""
    holtd = native(tmp_path)
    left = f"{holtd.state}/layers/mv_01k4r8w2m9h5t7c3xqvd"
    os.mkdir(left)
    assert holtd.stop() == 0
    holtd = native(tmp_path)
    assert not os.path.exists(left)
    holtd.stop()


def test_a_kill_in_the_middle(tmp_path):
    """kill -9 of holtd and of holt-spawn while snapshots and restores are made: what is listed is whole, what is not leaves nothing."""
    holtd = native(tmp_path)
    b = holtd.ok("POST", BOXES, {})["id"]
    sh(holtd, b, "mkdir /root/t && cd /root/t && for i in $(seq 400); do head -c 2000 /dev/urandom > $i; done; sha256sum * > /root/sums")
    base = snap(holtd, b, "base")
    for round_ in range(12):
        def work(path, body, holtd=holtd):
            try:
                holtd.request("POST", f"{BOXES}/{b}/{path}", body)
            except OSError:
                pass
        kind = ("snapshots", {}) if round_ % 2 else ("restore", {"snapshot": "base"})
        t = threading.Thread(target=work, args=kind)
        t.start()
        t.join(0.004 * round_)
        if round_ % 3 == 2:
            os.kill(spawn_of(holtd), 9)
        holtd.process.kill()
        holtd.process.wait()
        t.join()
        holtd = native(tmp_path)
        wait_for(lambda: not any(n.startswith(("tmp_", "mv_")) for n in layers(holtd)), 20)
        # a start that lost its holt-spawn has failed; its files are there
        wait_for(lambda: holtd.request("POST", f"{BOXES}/{b}/start")[0] == 200)
        assert "FAILED" not in sh(holtd, b, "cd /root/t && sha256sum -c /root/sums"), "the files are those of before or of after"
        for s in holtd.ok("GET", f"{SNAPSHOTS}?all=true")["snapshots"]:
            assert s["entries"] in (0, 401, 402, 403, 404), s
    fork = holtd.ok("POST", "/holt/v1/forks", {"source": base["id"]})["sandboxes"][0]["id"]
    assert "FAILED" not in sh(holtd, fork, "cd /root/t && sha256sum -c /root/sums")
    for x in (b, fork):
        holtd.ok("DELETE", f"{BOXES}/{x}")
    for s in holtd.ok("GET", f"{SNAPSHOTS}?all=true")["snapshots"]:
        holtd.request("DELETE", f"{SNAPSHOTS}/{s['id']}")
    wait_for(lambda: layers(holtd) == [])
    holtd.stop()
