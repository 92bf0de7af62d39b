"""Playbooks from differences: what they do on a fresh machine, by the distribution's ansible-playbook."""
import json
import os
import re
import subprocess

import pytest

from daemon import BUILD, SLOW, environment, native
from ssh_client import API, SSHD

BOXES, BOOKS = f"{API}/sandboxes", f"{API}/playbooks"
NO_ANSIBLE = pytest.mark.skipif(not os.path.exists("/usr/bin/ansible-playbook"), reason="no ansible: tools/deps test")


@pytest.fixture(scope="module")
def d(tmp_path_factory):
    daemon = native(tmp_path_factory.mktemp("generate"))
    yield daemon
    daemon.clear()
    daemon.stop()


@pytest.fixture
def box(d):
    made = []

    def make(**fields):
        made.append(d.ok("POST", BOXES, fields))
        return made[-1]["id"]
    yield make
    for b in made:
        d.request("DELETE", f"{BOXES}/{b['id']}")


def sh(d, box, script, **more):
    ran = d.ok("POST", f"{BOXES}/{box}/execs", {"command": ["sh", "-c", script], **more})
    assert ran["exit_code"] == 0, ran
    return ran["stdout"]


def tasks_of(book):
    return [(t["module"].rsplit(".", 1)[1], t["params"]) for t in book["tasks"]]


def play(d, box, name):
    """In the sandbox itself, which has the machine's ansible; how many tasks changed something."""
    text = d.request("GET", f"{BOOKS}/{name}/export")[1]
    r = d.ok("POST", f"{BOXES}/{box}/execs", {"command": ["sh", "-c", "mkdir -p /tmp/a && cat > /tmp/a/p.yml && cd /tmp/a && HOME=/tmp/a ANSIBLE_LOCAL_TEMP=/tmp/a "
                                              "ANSIBLE_REMOTE_TEMP=/tmp/a LC_ALL=C.UTF-8 ansible-playbook -i localhost, -c local p.yml"], "stdin": text}, timeout=300)
    assert r["exit_code"] == 0, r["stdout"] + r["stderr"]
    return int(re.search(r"changed=(\d+)", r["stdout"])[1])


CHANGE = r"""
set -e; cd /root; rm old/gone; rm -rf old/tree; sed -i 's/20/twenty/' conf; chmod 4750 tool; chown 12:34 owned; rm link; ln -s ../b link
rm turned; mkdir turned; printf '{{ template }} # "quotes" \\ and: colons\n\ttab\n' > turned/x; printf 'a\0\377\376b' > bin
mkdir -p /etc/app/conf.d /srv/www; printf 'server {\n  listen 443 ssl;\n}\n' > /etc/app/conf.d/tls.conf; echo '<html>' > /srv/www/index.html
printf 'net.ipv4.ip_forward = 1\n' > /etc/sysctl-app.conf; chmod 0600 /etc/sysctl-app.conf
echo 'eve:x:1234:1234:Eve:/srv/eve:/bin/sh' >> /etc/passwd; echo 'eve:x:1234:' >> /etc/group; echo 'ops:x:1300:eve' >> /etc/group
mkdir -p /srv/eve /var/spool/cron/crontabs; chown 1234:1234 /srv/eve; echo 'export A=1' > /srv/eve/.profile; chown 1234:1234 /srv/eve/.profile
echo '@daily true' > /var/spool/cron/crontabs/eve; chown 1234:1300 /var/spool/cron/crontabs/eve; chmod 600 /var/spool/cron/crontabs/eve
mkdir -p /etc/systemd/system/multi-user.target.wants; printf '[Service]\nExecStart=/bin/true\n' > /etc/systemd/system/web.service
ln -s ../web.service /etc/systemd/system/multi-user.target.wants/web.service
"""
BEFORE = r"""
set -e; cd /root; mkdir -p old/tree/sub; echo gone > old/gone; echo 1 > old/tree/sub/f; seq 1 40 > conf
for f in tool owned turned bin same; do echo $f > $f; done; ln -s a link; chmod 755 tool
"""


@NO_ANSIBLE
@pytest.mark.timeout(600)
def test_a_generated_playbook_reproduces_the_change_and_is_idempotent(d, box):
    b = box(name="work")
    sh(d, b, BEFORE)
    fresh = d.ok("POST", f"{API}/forks", {"source": b, "name": "fresh"})["sandboxes"][0]["id"]
    sh(d, b, CHANGE)
    base = d.ok("GET", f"{BOXES}/{fresh}")["snapshot"]
    made = d.ok("POST", f"{BOOKS}/generate", {"name": "repeat", "from": base, "to": "work"})
    assert made["become"] is True and [n["reason"] for n in made["notes"]] and all("commands ran" in n["reason"] for n in made["notes"])
    syntax = subprocess.run(["/usr/bin/ansible-playbook", "--syntax-check", "-i", "localhost,", "/dev/stdin"],
                            input=d.request("GET", f"{BOOKS}/repeat/export")[1].encode(), capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert syntax.returncode == 0, syntax.stderr
    assert play(d, fresh, "repeat") > 10
    assert play(d, fresh, "repeat") == 0, "the second time changes nothing"
    residue = d.ok("GET", f"{API}/diff?from=work&to=fresh&commands=false")["changes"]
    left = [(c["kind"], c.get("path", c.get("name"))) for c in residue]
    left = [x for x in left if x not in [("file", "/etc/passwd"), ("file", "/etc/group"), ("file", "/etc/passwd-"), ("file", "/etc/group-"), ("file", "/etc/.pwd.lock"),
                                         ("file", "/etc/shadow"), ("file", "/etc/shadow-"), ("file", "/etc/gshadow"), ("file", "/etc/gshadow-"), ("file", "/etc/subuid"),
                                         ("file", "/etc/subgid"), ("file", "/etc/subuid-"), ("file", "/etc/subgid-"), ("file", "/var/mail"), ("file", "/var/mail/eve"),
                                         ("file", "/var/spool/mail"), ("file", "/var/spool/mail/eve"), ("user", "eve")]]
    assert left == [], residue
    users = [c for c in residue if c["kind"] == "user"]
    assert all(set(c["attrs"]) <= {"password"} for c in users), users
    assert sh(d, fresh, "cat /root/turned/x") == sh(d, b, "cat /root/turned/x"), "no template is filled in"
    assert sh(d, fresh, "id -Gn eve").split() == ["eve", "ops"]
    if SSHD:
        env = environment({"HOLT_SERVER": d.url, "HOLT_TOKEN": d.token})
        ran = subprocess.run([f"{BUILD}/holt", "playbook", "verify", "repeat", "--base", base, "--against", "work"], env=env, capture_output=True, text=True)
        assert ran.returncode == 0, ran
        lines = ran.stdout.splitlines()
        assert re.fullmatch(r"first time: [1-9]\d* changed; second time: 0 changed", lines[0]), lines
        assert not any("/root/" in x or "/etc/app" in x for x in lines[1:]), lines
        assert {s["id"] for s in d.ok("GET", BOXES)["sandboxes"]} == {b, fresh}, "its fork is gone"
    d.ok("DELETE", f"{BOOKS}/repeat")
    d.ok("DELETE", f"{BOXES}/{fresh}")


def test_packages_services_and_notes(d, box):
    b = box()
    sh(d, b, r"""
mkdir -p /var/lib/dpkg/info /opt/nginx /opt/v/bin; printf 'Package: nginx\nStatus: install ok installed\nVersion: 1.2-3\n\nPackage: libz\nStatus: install ok installed\nVersion: 9\n\n' > /var/lib/dpkg/status
printf '/opt/nginx\n/opt/nginx/bin\n/etc/nginx.conf\n' > /var/lib/dpkg/info/nginx.list; echo b > /opt/nginx/bin; echo 'worker 4;' > /etc/nginx.conf
p=/opt/v/lib/python3.11/site-packages; mkdir -p $p/foo $p/foo-1.5.dist-info; echo > $p/foo/a.py; printf 'foo/a.py,,\nfoo-1.5.dist-info/RECORD,,\n' > $p/foo-1.5.dist-info/RECORD
mkdir -p /etc/systemd/system/multi-user.target.wants; ln -s ../web.service /etc/systemd/system/multi-user.target.wants/web.service
head -c 2000000 /dev/zero > /srv; mkfifo /pipe; echo 'x:$6$hash:1::::::' > /etc/shadow; echo 'x:x:1:1::/:/bin/sh' >> /etc/passwd
""")
    made = d.ok("POST", f"{BOOKS}/generate", {"name": "p", "to": b})
    tasks = tasks_of(made)
    assert ("apt", {"name": ["libz=9", "nginx=1.2-3"], "state": "present", "allow_downgrade": True, "update_cache": True, "cache_valid_time": 3600}) in tasks
    assert ("pip", {"name": "foo", "version": "1.5", "state": "present", "virtualenv": "/opt/v", "virtualenv_command": "python3 -m venv"}) in tasks
    assert ("shell", {"cmd": "systemctl daemon-reload && systemctl start 'web.service'", "removes": "/run/systemd/system",
                      "creates": "/run/systemd/units/invocation:web.service"}) in tasks
    written = {p.get("dest") for m, p in tasks if m == "copy"}
    assert "/etc/nginx.conf" in written and not {"/opt/nginx/bin", "/etc/shadow", "/etc/passwd"} & written
    assert not any("/site-packages/foo" in json.dumps(p) for m, p in tasks if m != "pip")
    reasons = {n["path"]: n["reason"] for n in made["notes"]}
    assert "over 1 MiB" in reasons["/srv"] and "no file" in reasons["/pipe"] and "password" in reasons["/etc/shadow"]
    assert "$6$" not in json.dumps(made)
    d.ok("DELETE", f"{BOOKS}/p")


def test_secrets_are_refused_or_become_variables(d, box):
    d.ok("PUT", f"{API}/secrets/api", {"value": "correct-horse-battery", "hosts": ["api.test"]})
    b = box(secrets=[{"name": "api"}], network="none")
    for content, what in (("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n", "private key"), ("key = AKIAIOSFODNN7EXAMPLE\n", "AWS"),
                          (f"token: ghp_{'a1B2' * 9}\n", "GitHub"), ("pass=correct-horse-battery\n", "value of a secret"),
                          ("pass=Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5\n", "value of a secret")):
        d.ok("PUT", f"{BOXES}/{b}/files?path=/etc/app.key", content.encode(), headers={"Content-Type": "application/octet-stream"})
        status, reply, _ = d.request("POST", f"{BOOKS}/generate", {"name": "s", "to": b})
        assert status == 409 and "/etc/app.key" in reply["error"]["message"] and what in reply["error"]["message"], (content, reply)
        made = d.ok("POST", f"{BOOKS}/generate", {"name": "s", "to": b, "secrets": "vault"})
        assert next(p for m, p in tasks_of(made) if m == "copy")["content"] == "{{ vault_etc_app_key }}"
        assert content.strip() not in json.dumps(made) and "vault_etc_app_key" in json.dumps(made["notes"])
        d.ok("DELETE", f"{BOOKS}/s")
    d.ok("PUT", f"{BOXES}/{b}/files?path=/etc/app.key", b"AKIA is a prefix; xAKIAIOSFODNN7EXAMPLE is none; ghp_short\n", headers={"Content-Type": "application/octet-stream"})
    d.ok("POST", f"{BOOKS}/generate", {"name": "s", "to": b})
    d.ok("DELETE", f"{BOOKS}/s")
    d.ok("DELETE", f"{API}/secrets/api")


def test_on_the_command_line(d, box):
    b = box(name="cli")
    sh(d, b, "echo 1 > /etc/one")
    env = environment({"HOLT_SERVER": d.url, "HOLT_TOKEN": d.token})

    def holt(*args):
        ran = subprocess.run([f"{BUILD}/holt", *args], env=env, capture_output=True, timeout=60 * SLOW, text=True)
        assert ran.returncode == 0, ran
        return ran.stdout
    assert "one" in holt("playbook", "generate", "mine", "--to", "cli")
    assert 'dest: /etc/one' in holt("playbook", "export", "mine")
    assert d.request("POST", f"{BOOKS}/generate", {"name": "mine", "to": "cli"})[0] == 409
    assert d.request("POST", f"{BOOKS}/generate", {"name": "other", "to": "nobody"})[0] == 404
    holt("playbook", "rm", "mine")
