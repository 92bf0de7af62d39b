"""Targets and playbooks as objects: tasks, their order, the text for ansible-playbook."""
import json
import shutil
import subprocess

import pytest

from daemon import all_events, native
from ssh_client import API

BOOKS, TARGETS = f"{API}/playbooks", f"{API}/targets"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKhvm1nvvBFgGTLnRcmMiGFTnHVTkyvdPOBc3rZ8rYxF"


@pytest.fixture(scope="module")
def d(tmp_path_factory):
    daemon = native(tmp_path_factory.mktemp("playbook"))
    yield daemon
    daemon.clear()
    daemon.stop()


def refused(d, *request, token="admin"):
    status, reply, _ = d.request(*request, token=token)
    assert status >= 400, reply
    return status, reply["error"]["message"]


def text_of(d, path):
    return d.request("GET", path)[1]


def task(title, module, **params):
    return {"name": title, "module": module, "params": params or None}


def test_tasks_and_their_order(d):
    made = d.ok("POST", BOOKS, {"name": "web", "become": True, "tasks": [task("Install nginx", "apt", name="nginx", state="present")]})
    assert made["hosts"] == "all" and made["notes"] is None and [t["name"] for t in made["tasks"]] == ["Install nginx"]
    assert text_of(d, f"{BOOKS}/web/export") == (
        "- name: web\n  hosts: all\n  become: true\n  tasks:\n    - apt:\n        name: nginx\n        state: present\n      name: Install nginx\n")
    first = made["tasks"][0]["id"]
    two = d.ok("POST", f"{BOOKS}/web/tasks", task("Ping", "ping"))["tasks"][1]["id"]
    assert refused(d, "PUT", f"{BOOKS}/web/order", {"tasks": [two]})[0] == 400
    assert refused(d, "PUT", f"{BOOKS}/web/order", {"tasks": [two, two]})[0] == 400
    assert refused(d, "PUT", f"{BOOKS}/web/order", {"tasks": [two, "pt_01k4r8w2m9h5t7c3xqvd"]})[0] == 404
    assert [t["id"] for t in d.ok("PUT", f"{BOOKS}/web/order", {"tasks": [two, first]})["tasks"]] == [two, first]
    changed = d.ok("PATCH", f"{BOOKS}/web/tasks/{two}", {"params": {"data": 1234567}})
    assert changed["tasks"][0] == {**changed["tasks"][0], "name": "Ping", "module": "ping", "params": {"data": 1234567}}
    assert "data: 1234567\n" in text_of(d, f"{BOOKS}/web/export")
    d.ok("DELETE", f"{BOOKS}/web/tasks/{first}")
    assert refused(d, "DELETE", f"{BOOKS}/web/tasks/{first}")[0] == 404
    assert refused(d, "POST", BOOKS, {"name": "web"})[0] == 409
    again = json.loads(text_of(d, f"{BOOKS}/web/export?as=json"))
    copy = d.ok("POST", BOOKS, {**again, "name": "web2"})
    assert text_of(d, f"{BOOKS}/web2/export").replace("web2", "web") == text_of(d, f"{BOOKS}/web/export") and len(copy["tasks"]) == 1
    assert {(b["name"], b["tasks"]) for b in d.ok("GET", BOOKS)["playbooks"]} == {("web", 1), ("web2", 1)}
    d.ok("DELETE", f"{BOOKS}/web2")
    assert [e["type"] for e in all_events(d) if e["object"] == f"playbook/{made['id']}"] == ["playbook.created"] + 4 * ["playbook.changed"]


def test_a_restart_keeps_them(tmp_path):
    d = native(tmp_path)
    try:
        book = d.ok("POST", BOOKS, {"name": "kept", "tasks": [task("Ü", "copy", dest="/x", content={"__ansible_unsafe": "{{ a }}\n"})]})
        target = d.ok("POST", TARGETS, {"name": "host", "address": "192.0.2.1", "host_key": KEY, "user": "deploy", "become": True, "people": 2})
        d.kill()
        d = native(tmp_path)
        assert d.ok("GET", f"{BOOKS}/kept") == book and d.ok("GET", f"{TARGETS}/host") == target
    finally:
        d.clear()
        d.stop()


HOSTILE = ["a: b", "- x", "{{ lookup('pipe', 'id') }}", "'\"\\", "#c", "&a", "*a", "!x y", "a\n  b: c", "\t", "~", "no", "1e3", "0x10", "1:20", "=", "<<",
           "%TAG", "@x", "`x", "|", ">", "é\u2028\u0085\ufeff", "\u0007\u001b[0m", "a" * 5000, "---", "...", "?", ": ", " #", "[a", "{a", ",", "2001-01-01", ""]


@pytest.mark.skipif(not shutil.which("ansible-playbook"), reason="no ansible: tools/deps test")
def test_no_text_leaves_its_place(d):
    """Each text that YAML, Ansible or a shell could take for something else comes back as it was."""
    deep = {"list": HOSTILE, "map": {k: v for k, v in zip(HOSTILE, HOSTILE) if k}, "unsafe": [{"__ansible_unsafe": t} for t in HOSTILE],
            "bytes": {"__binary": "AP8K/w=="}, "deep": [[["x"], {"a": [{"b": None}]}], [], {}, True, 1.5, -3]}
    d.ok("POST", BOOKS, {"name": "hostile", "hosts": "a: b", "tasks": [{"name": "x: {{ y }} #", "module": "set_fact", "params": deep}]})
    text = text_of(d, f"{BOOKS}/hostile/export")
    reader = ("import sys, json, base64\nfrom ansible.parsing.dataloader import DataLoader\n"
              "def plain(v):\n"
              "    if isinstance(v, bytes): return base64.b64encode(v).decode()\n"
              "    if isinstance(v, dict): return {str(k): plain(x) for k, x in v.items()}\n"
              "    return [plain(x) for x in v] if isinstance(v, list) else v\n"
              "print(json.dumps(plain(DataLoader().load(sys.stdin.read())[0])))")
    said = subprocess.run(["/usr/bin/python3", "-c", reader], input=text, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    play = json.loads(said.stdout)
    assert play["hosts"] == "a: b" and play["tasks"][0]["name"] == "x: {{ y }} #" and list(play["tasks"][0]) == ["name", "set_fact"]
    got = play["tasks"][0]["set_fact"]
    assert got["list"] == HOSTILE and got["unsafe"] == HOSTILE and got["map"] == deep["map"] and got["bytes"] == "AP8K/w=="
    assert got["deep"] == [[["x"], {"a": [{"b": None}]}], [], None, True, 1.5, -3]


@pytest.mark.parametrize("module", ["check_mode", "delegate_to", "with_items", "action", "when", "vars", "a b", "a:b", "../x", "A", "a..b", ".a", "a.", "", "block"])
def test_a_module_is_no_keyword(d, module):
    assert refused(d, "POST", BOOKS, {"name": "kw", "tasks": [task("x", module)]})[0] == 400


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "-x", "a b", "x" * 129, "a\n", "{{x}}"])
def test_names(d, name):
    assert refused(d, "POST", BOOKS, {"name": name})[0] == 400


def test_limits(d):
    many = [task("x", "ping")] * 10001
    assert refused(d, "POST", BOOKS, {"name": "many", "tasks": many})[0] == 413
    big = task("x", "copy", dest="/x", content="x" * (8 << 20))
    assert refused(d, "POST", BOOKS, {"name": "big", "tasks": [big]})[0] == 413
    assert refused(d, "POST", BOOKS, {"name": "odd", "tasks": [{"name": "x", "module": "ping", "params": [1]}]})[0] == 400
    assert refused(d, "POST", BOOKS, {"name": "odd", "tasks": ["x"]})[0] == 400


def test_whose_they_are(d):
    one, two = (d.ok("POST", f"{API}/tokens", {"name": n, "role": "agent", "agent": n})["token"] for n in ("pb-one", "pb-two"))
    d.ok("POST", BOOKS, {"name": "own"}, token=one)
    d.ok("POST", BOOKS, {"name": "own"}, token=two)
    assert [b["name"] for b in d.ok("GET", BOOKS, token=two)["playbooks"]] == ["own"]
    assert refused(d, "POST", f"{BOOKS}/web/tasks", task("x", "ping"), token=two)[0] == 404
    assert refused(d, "POST", TARGETS, {"name": "t", "address": "192.0.2.1", "host_key": KEY}, token=one)[0] == 403
    d.ok("POST", TARGETS, {"name": "open", "address": "192.0.2.1", "host_key": KEY})
    d.ok("POST", TARGETS, {"name": "closed", "address": "192.0.2.2", "host_key": KEY, "shared": False})
    assert [t["name"] for t in d.ok("GET", TARGETS, token=one)["targets"]] == ["open"]
    assert refused(d, "DELETE", f"{TARGETS}/open", token=one)[0] == 403
    d.ok("DELETE", f"{TARGETS}/open")
    d.ok("DELETE", f"{TARGETS}/closed")


@pytest.mark.parametrize("body, why", [
    ({"address": "192.0.2.1"}, "host_key"), ({}, "address"), ({"address": "-oProxyCommand=x", "host_key": KEY}, "address"),
    ({"address": "a b", "host_key": KEY}, "address"), ({"address": "a\nb", "host_key": KEY}, "address"), ({"address": "x", "host_key": "ssh-ed25519 AAAA"}, "host_key"),
    ({"address": "x", "host_key": KEY, "user": "-lroot"}, "user"), ({"address": "x", "host_key": KEY, "user": "a b"}, "user"),
    ({"address": "x", "host_key": KEY, "principals": ["a,b c"]}, "principals"), ({"sandbox": "nosuch"}, "sandbox"), ({"address": "x", "sandbox": "y"}, "either")])
def test_a_target_is_checked(d, body, why):
    status, text = refused(d, "POST", TARGETS, {"name": "t", **body})
    assert status in (400, 404) and why in text


def test_a_target_is_a_sandbox(d):
    box = d.ok("POST", f"{API}/sandboxes", {"name": "prod"})["id"]
    made = d.ok("POST", TARGETS, {"name": "prod", "sandbox": "prod"})
    assert made["sandbox"] == box and made["address"] is None and made["host_key"] is None and made["principals"] == ["root"]
    d.ok("DELETE", f"{TARGETS}/prod")
