"""Change with proof, from one end to the other: what an agent did in a sandbox is what production gets, after a person's yes."""
import re

import pytest

import test_rollout
from daemon import can_freeze
from ssh_client import API
from test_rollout import BOOKS, ROLLOUTS, answer, apply, comes_to, d, nothing_left, output, run, tree  # noqa: F401

pytestmark = [*test_rollout.pytestmark, pytest.mark.slow]
PREPARE = r"""
set -e; grep -q '^sshd:' /etc/passwd || echo 'sshd:x:100:65534::/run/sshd:/usr/sbin/nologin' >> /etc/passwd
mkdir -p /etc/app /srv; printf 'port = 80\nhost = any\n' > /etc/app/app.conf; echo old > /srv/old; printf 'vm.swappiness = 60\n' > /etc/app/sysctl.conf
"""
CHANGE = r"""
set -e; sed -i 's/80/443/' /etc/app/app.conf; chmod 0600 /etc/app/app.conf; rm /srv/old; mkdir -p /srv/www/tls; chmod 0750 /srv/www/tls
printf 'server {\n  listen 443 ssl; # {{ not a template }}\n}\n' > /etc/app/tls.conf; echo '<html>' > /srv/www/index.html; ln -s index.html /srv/www/home
printf 'vm.swappiness = 10\n' > /etc/app/sysctl.conf; chown 1234:1234 /srv/www/index.html
"""


def box(d, name, owner="admin", **fields):
    made = d.ok("POST", f"{API}/sandboxes", {"name": name, **fields}, token=owner)["id"]
    return made


def sh(d, box, script):
    said = run(d, box, "sh", "-c", script)
    assert said["exit_code"] == 0, said
    return said["stdout"]


def snap(d, box, name):
    return d.ok("POST", f"{API}/sandboxes/{box}/snapshots", {"name": name})["id"]


def difference(d, box, before, after):
    """What has changed, without what no two machines share: times."""
    reply = d.ok("GET", f"{API}/diff?limit=10000&from={before}&to={after}")
    volatile = {"modified_at"}
    strip = lambda x: ({k: strip(v) for k, v in x.items() if k not in volatile} if isinstance(x, dict) else [strip(v) for v in x] if isinstance(x, list) else x)
    return [strip(c) for c in reply["changes"] if c["kind"] != "command"]


def changed_in(d, rollout):
    return int(re.search(r"changed=(\d+)", output(d, rollout))[1])


def test_a_change_with_proof(d):
    if not can_freeze(d):
        pytest.skip("sandboxes have no cgroup of their own here: snapshots only of stopped ones")
    # an agent tries it
    work = box(d, "work", d.agent)
    sh(d, work, PREPARE)
    clean = snap(d, work, "clean")
    sh(d, work, CHANGE)
    done = snap(d, work, "done")
    first = difference(d, work, clean, done)
    assert {"/etc/app/app.conf", "/etc/app/tls.conf", "/srv/old", "/srv/www/index.html"} <= {"/" + c["path"].lstrip("/") for c in first if c.get("path")}, first
    # the playbook of it
    made = d.ok("POST", f"{BOOKS}/generate", {"name": "proof", "from": clean, "to": done}, token=d.agent)
    assert made["tasks"], made
    # it repeats the change on a fresh fork, and a second run changes nothing
    fork = d.ok("POST", f"{API}/forks", {"source": clean, "name": "fork"}, token=d.agent)["sandboxes"][0]["id"]
    base = snap(d, fork, "base")
    once = comes_to(d, apply(d, "proof", fork, d.agent), "succeeded")
    assert once["people"] == 0 and changed_in(d, once["id"]) > 0
    assert difference(d, fork, base, snap(d, fork, "once")) == first
    assert changed_in(d, comes_to(d, apply(d, "proof", fork, d.agent), "succeeded")["id"]) == 0
    # production: a no changes not one byte
    prod = box(d, "production")
    sh(d, prod, PREPARE)
    d.ok("POST", f"{API}/targets", {"name": "production", "sandbox": "production"})
    before, files = snap(d, prod, "before"), tree(d, prod)
    no = apply(d, "proof", "production", d.agent, note="as tried in 'work'")
    assert answer(d, no, False, d.ann, "not today")[0] == 200
    assert comes_to(d, no, "rejected")["error"] == "not today"
    assert tree(d, prod).splitlines() == files.splitlines() and difference(d, prod, before, snap(d, prod, "still")) == []
    # and a yes of another person changes exactly what the agent changed
    yes = apply(d, "proof", "production", d.agent)
    assert answer(d, yes, True, d.agent)[0] == 403
    q = d.ok("GET", f"{API}/approvals/{comes_to(d, yes, 'waiting')['approval']}", token=d.ann)
    assert {a["kind"] for a in q["attachments"]} >= {"playbook"}
    assert answer(d, yes, True, d.ann)[0] == 200
    over = comes_to(d, yes, "succeeded")
    assert difference(d, prod, before, snap(d, prod, "after")) == first
    # and back
    d.ok("POST", f"{ROLLOUTS}/{over['id']}/rollback", {}, token=d.ann)
    comes_to(d, over["id"], "rolled_back")
    assert nothing_left(d)
