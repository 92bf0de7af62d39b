"""holt approval ask, which holds on, and watch, with its keys."""
import os
import pty
import select
import subprocess
import threading
import time

import pytest

from daemon import BUILD, Holtd, environment, free_ports, wait_for
from test_approval import API, token


@pytest.fixture
def d(tmp_path):
    d = Holtd(tmp_path, port=free_ports()[0])
    yield d
    d.stop()


def command(d, who, *args):
    return [f"{BUILD}/holt", *args], environment({"HOLT_SERVER": d.url, "HOLT_TOKEN": who, "HOME": d.directory, "TERM": "xterm"})


def holt(d, who, *args, **more):
    argv, env = command(d, who, *args)
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False, **more)


def pending(d):
    return d.ok("GET", f"{API}/approvals?state=pending")["approvals"]


def test_ask_holds_on_across_a_restart(d, tmp_path):
    who, person = token(d, "worker", "agent"), token(d, "ann", person="ann")
    patch = tmp_path / "a.patch"
    patch.write_text("-old\n+new\n")
    got = []
    t = threading.Thread(target=lambda: got.append(holt(d, who, "approval", "ask", "Apply?", "--diff", str(patch), "--command", "make", "--wait", "5m", "-o", "json")))
    t.start()
    q = wait_for(lambda: pending(d))[0]
    d.kill()
    new = Holtd(d.directory, port=d.port)
    try:
        full = new.ok("GET", f"{API}/approvals/{q['id']}")
        assert [(a["kind"], a["content"]) for a in full["attachments"]] == [("diff", "-old\n+new\n"), ("command", "make")]
        new.ok("POST", f"{API}/approvals/{q['id']}/approve", {"reason": "fine"}, token=person)
        t.join(60)
        assert got[0].returncode == 0 and '"approved"' in got[0].stdout and len(new.ok("GET", f"{API}/approvals")["approvals"]) == 1
        no = threading.Thread(target=lambda: got.append(holt(new, who, "approval", "ask", "Again?", "--wait", "5m")))
        no.start()
        q = wait_for(lambda: pending(new))[0]
        new.ok("POST", f"{API}/approvals/{q['id']}/deny", {}, token=person)
        no.join(60)
        assert got[1].returncode == 1
        assert holt(new, who, "approval", "ask", "Late?", "--wait", "1s").returncode == 75
    finally:
        new.stop()


class Screen:
    """The program in a terminal of its own."""

    def __init__(self, argv, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, env)
        self.text = ""

    def read(self):
        while select.select([self.fd], [], [], 0.05)[0]:
            try:
                part = os.read(self.fd, 65536)
            except OSError:
                return self.text
            if not part:
                break
            self.text += part.decode(errors="replace")
        return self.text

    def shows(self, text):
        wait_for(lambda: text in self.read(), 30)

    def key(self, keys):
        self.text = ""
        os.write(self.fd, keys.encode())


def test_watch_decides_by_keys(d):
    who, person = token(d, "worker", "agent"), token(d, "ann", person="ann")
    ids = [d.ok("POST", f"{API}/approvals", {"question": f"question {i}?"}, token=who)["id"] for i in range(3)]
    s = Screen(*command(d, person, "approval", "watch"))
    try:
        s.shows("3 pending")
        s.shows("question 2?")
        s.key("j")  # to the second
        s.key("clooks fine\r")
        s.shows("comment: looks fine")
        s.key("a")
        s.shows(f"{ids[1]} approved")
        s.shows("2 pending")
        s.key("k")
        s.key("r")
        s.shows(f"{ids[0]} rejected")
        got = [d.ok("GET", f"{API}/approvals/{i}") for i in ids]
        assert [(a["state"], a["reason"]) for a in got] == [("rejected", ""), ("approved", "looks fine"), ("pending", "")]
        d.ok("POST", f"{API}/approvals", {"question": "a new one?"}, token=who)
        s.shows("a new one?")  # without a key
        s.key("q")
        assert wait_for(lambda: os.waitpid(s.pid, os.WNOHANG))[1] == 0
    finally:
        os.close(s.fd)
    assert ids[2] in holt(d, person, "approval", "watch").stdout  # no terminal: a list
