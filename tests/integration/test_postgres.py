"""holtd on PostgreSQL: a server that goes away and comes back, connections cut at a commit, two holtd on one database."""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from daemon import ASAN, BUILD, ROOT, Holtd, all_events, environment, wait_for
from hub_client import AgentClient
from test_kill import all_tokens, check

sys.path.insert(0, f"{ROOT}/tests/tools")
import postgres  # noqa: E402

WRITERS = 16
ROUNDS = 3


@pytest.fixture(scope="module")
def server():
    try:
        with postgres.Postgres() as s:
            yield s
    except postgres.Skip as why:
        pytest.skip(str(why))


@pytest.fixture
def up(server):
    """The server, running before and after."""
    if server.process.poll() is not None:
        server.start()
    yield server
    if server.process.poll() is not None:
        server.start()


def start(directory, url, *args, **more):
    return Holtd(directory, *args, env={"HOLT_DB": url}, **more)


def refusal(state, url, *args, limit=40):
    r = subprocess.run([f"{BUILD}/holtd", "--listen", "127.0.0.1:0", "--state", str(state), *args], capture_output=True,
                       text=True, timeout=limit, env=environment({"HOLT_DB": url}), stdin=subprocess.DEVNULL)
    assert r.returncode not in (0, 99) and r.returncode > 0, r.stdout + r.stderr
    return r.stdout + r.stderr


def make(d, name):
    return d.request("POST", "/holt/v1/tokens", {"name": name, "role": "observer"})


def make_slowly(d, name):
    return d.request("POST", "/holt/v1/tokens", {"name": name, "role": "observer"}, timeout=80)


def is_ready(d):
    return d.request("GET", "/readyz", token=None)[0] == 200


def doctor(d):
    """What it says of the database."""
    r = subprocess.run([f"{BUILD}/holt", "doctor", "-o", "json"], capture_output=True, text=True, timeout=60,
                       env=environment({"HOLT_SERVER": d.url, "HOLT_TOKEN": d.token, "HOME": d.directory}))
    return next(c for c in json.loads(r.stdout)["checks"] if c["name"] == "database")


def test_a_server_that_stops_and_starts(up, tmp_path):
    d = start(tmp_path, up.url)
    try:
        assert d.ok("GET", "/holt/v1/info")["store"] == "postgres"
        assert doctor(d) == {**doctor(d), "state": "ok", "detail": "postgres: works"}
        kept = [make(d, f"before{i}")[1]["id"] for i in range(3)]
        up.stop()
        wait_for(lambda: not is_ready(d))
        begin = time.monotonic()
        status, reply, _ = make(d, "meanwhile")
        assert status == 503 and time.monotonic() - begin < 40, reply
        assert "the database cannot be used now" in reply["error"]["message"] and "postgres:" not in str(reply), reply
        assert f"postgres://holt@{up.directory}/postgres" in d.log()
        assert "continues by itself" in reply["error"]["hint"]
        assert d.request("GET", "/healthz", token=None)[0] == 200
        assert f"{up.directory}/postgres" in d.ok("GET", "/holt/v1/info")["store_error"]
        assert doctor(d)["state"] == "missing" and "cannot be reached" in doctor(d)["detail"]
        assert d.request("GET", "/holt/v1/events")[0] == 503, "what is read from the server cannot be"
        assert d.request("GET", "/holt/v1/tokens")[0] == 200, "what holtd knows it still tells"
        up.start()
        wait_for(lambda: is_ready(d), 60)
        kept.append(make(d, "after")[1]["id"])
        assert d.request("GET", "/holt/v1/events")[0] == 200
        up.stop()
        up.start()  # nobody asked meanwhile: nobody needs to know
        status, reply, _ = make(d, "unnoticed")
        assert status in (201, 503), reply  # 503 only if holtd looked while it was away
        assert d.stop() == 0
        d = start(tmp_path, up.url)
        live = all_tokens(d)
        assert set(kept) <= set(live) and "meanwhile" not in live.values()
        assert d.ok("GET", "/holt/v1/audit/verify")["ok"] is True
        assert not [e for e in all_events(d) if "epoch" in e["type"]]
    finally:
        d.kill()


class Writer(threading.Thread):
    """Makes tokens and sandboxes all the while; an error reply means that nothing was made."""

    def __init__(self, number, d, stop):
        super().__init__(daemon=True)
        self.number, self.port, self.token, self.stop_event = number, d.port, d.token, stop
        self.made, self.refused, self.sandboxes, self.strange = {}, set(), {}, []

    def _call(self, method, path, body=None):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            conn.request(method, path, json.dumps(body) if body else None,
                         {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
            r = conn.getresponse()
            data = r.read()
            return r.status, json.loads(data) if data else None
        finally:
            conn.close()

    def run(self):
        i = 0
        while not self.stop_event.is_set():
            i += 1
            name = f"w{self.number}-{i}"
            try:
                status, reply = self._call("POST", "/holt/v1/tokens", {"name": name, "role": "observer"})
            except (OSError, http.client.HTTPException, ValueError) as e:
                self.strange.append(repr(e))
                return
            if status == 201:
                self.made[reply["id"]] = name
            elif status == 503:
                self.refused.add(name)
                time.sleep(0.05)
            else:
                self.strange.append((status, reply))
                return


@pytest.mark.timeout(300)
def test_kill_9_of_the_server_under_writers(up, tmp_path):
    d = start(tmp_path, up.url, config="connections_per_peer: 1000\n")
    stop = threading.Event()
    writers = [Writer(i, d, stop) for i in range(WRITERS)]
    try:
        for w in writers:
            w.start()
        for n in range(ROUNDS):
            time.sleep(0.4 + n * 0.137)
            up.stop(signal.SIGKILL)
            time.sleep(0.2)
            up.start()
            wait_for(lambda: is_ready(d), 60)
        time.sleep(0.3)
        stop.set()
        for w in writers:
            w.join(60)
            assert not w.is_alive(), "a request was never answered"
            assert not w.strange, w.strange[:3]
        made = {k: v for w in writers for k, v in w.made.items()}
        refused = set().union(*(w.refused for w in writers))
        assert len(made) > 20 * ROUNDS and refused, "this proves nothing"
        for clean in (True, False):
            head = check(d, made, set(), set(), None)
            live = all_tokens(d)
            assert not refused & set(live.values()), "told as failed, and made nevertheless"
            assert len(set(live.values()) - {"admin"}) >= len(made)
            if clean:
                assert d.stop() == 0
                d = start(tmp_path, up.url)
        assert head
    finally:
        stop.set()
        d.kill()
    print(f"{len(made)} made, {len(refused)} refused")


def run_in_loop(d, stop, done, wrong):
    """Commands end in relaxed commits: what the server forgets of them in a crash is done again."""
    box = d.ok("POST", "/holt/v1/sandboxes", {})["id"]
    while not stop.is_set():
        status, reply, _ = d.request("POST", f"/holt/v1/sandboxes/{box}/execs", {"command": ["true"]}, timeout=60)
        if status == 200:
            done.append((box, reply["id"]))
        elif status in (429, 503):  # 429: too many ends wait to be written
            time.sleep(0.1)
        else:
            wrong.append((status, reply))
            return


@pytest.mark.timeout(300)
def test_a_crashed_server_loses_no_command(up, tmp_path):
    d = start(tmp_path, up.url)
    stop, done, wrong = threading.Event(), [], []
    threads = [threading.Thread(target=run_in_loop, args=(d, stop, done, wrong), daemon=True) for _ in range(4)]
    try:
        for t in threads:
            t.start()
        for n in range(ROUNDS):
            time.sleep(0.5 + n * 0.211)
            up.stop(signal.SIGKILL)
            up.start()
            wait_for(lambda: is_ready(d), 60)
        stop.set()
        for t in threads:
            t.join(60)
            assert not t.is_alive()
        assert not wrong, wrong[:3]
        assert len(done) > 10
        assert d.ok("GET", "/holt/v1/audit/verify")["ok"] is True
        d.kill()
        d = start(tmp_path, up.url)
        for box, run in done[-40:]:
            r = d.ok("GET", f"/holt/v1/sandboxes/{box}/execs/{run}")
            assert r["exit_code"] == 0, r
        assert d.ok("GET", "/holt/v1/audit/verify")["ok"] is True
    finally:
        stop.set()
        d.kill()


class Proxy:
    """Between holtd and the server; cuts the next connection that commits, by `cut`."""

    def __init__(self, server):
        self.path = f"{server.directory}/.s.PGSQL.5432"
        self.cut = None
        self.cuts = 0
        self.kept = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = (f"postgres://holt:pass-word@127.0.0.1:{self.listener.getsockname()[1]}/postgres"
                    "?sslmode=disable&gssencmode=disable")
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self.path)
        except OSError:
            client.close()
            return
        state = {"mute": False}
        threading.Thread(target=self._back, args=(server, client, state), daemon=True).start()
        while data := self._read(client):
            if self.cut and data.endswith(b"COMMIT\0"):
                how, self.cut = self.cut, None
                self.cuts += 1
                if how == "answer":  # committed, and nobody hears of it
                    state["mute"] = True
                    server.sendall(data)
                    time.sleep(0.3)
                elif how == "orphan":  # the server does not see that we are gone
                    self.kept.append(server)
                    client.shutdown(socket.SHUT_RDWR)
                    client.close()
                    return
                break
            server.sendall(data)
        for s in (client, server):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def _back(self, server, client, state):
        while data := self._read(server):
            try:
                if not state["mute"]:
                    client.sendall(data)
            except OSError:
                return

    @staticmethod
    def _read(s):
        try:
            return s.recv(65536)
        except OSError:
            return b""

    def close(self):
        self.listener.close()
        for s in self.kept:
            s.close()


@pytest.mark.parametrize("how, made", [("answer", True), ("question", False), ("orphan", False)])
def test_a_commit_in_doubt_is_found_out(up, tmp_path, how, made):
    proxy = Proxy(up)
    d = start(tmp_path, proxy.url)
    try:
        assert make(d, "before")[0] == 201
        for n in range(3):
            proxy.cut = how
            status, reply, _ = make(d, f"doubtful{n}")
            assert proxy.cuts == n + 1
            assert status == (201 if made else 503), reply
            if not made:
                assert "nothing was changed" in reply["error"]["hint"], reply
            assert make(d, f"next{n}")[0] == 201, "the next one is none the worse"
        for _ in range(2):
            names = list(all_tokens(d).values())
            assert [names.count(f"doubtful{n}") for n in range(3)] == [int(made)] * 3
            told = [e["data"]["name"] for e in all_events(d) if e["type"] == "token.created"]
            assert [told.count(f"doubtful{n}") for n in range(3)] == [int(made)] * 3
            assert d.ok("GET", "/holt/v1/audit/verify")["ok"] is True
            d.stop()
            d = start(tmp_path, proxy.url)
        assert "pass-word" not in d.log()
    finally:
        d.kill()
        proxy.close()


def test_two_holtd_on_one_database(up, tmp_path):
    a, b = start(tmp_path / "a", up.url), start(tmp_path / "b", up.url)
    try:
        ours = a.ok("POST", "/holt/v1/sandboxes", {"name": "same"})["id"]
        theirs = b.ok("POST", "/holt/v1/sandboxes", {"name": "same"})["id"]
        for i in range(10):
            make(a, f"a{i}")
            make(b, f"b{i}")
        for d in (a, b):
            d.kill()
        a, b = start(tmp_path / "a", up.url), start(tmp_path / "b", up.url)
        assert [s["id"] for s in a.ok("GET", "/holt/v1/sandboxes")["sandboxes"]] == [ours]
        assert [s["id"] for s in b.ok("GET", "/holt/v1/sandboxes")["sandboxes"]] == [theirs]
        assert a.request("GET", "/holt/v1/info", token=b.token)[0] == 401
        for d, letter in ((a, "a"), (b, "b")):
            names = set(all_tokens(d).values())
            assert {f"{letter}{i}" for i in range(10)} <= names
            assert all(n[0] == letter for n in names if n[1:].isdigit())
            assert d.ok("GET", "/holt/v1/audit/verify")["ok"] is True
    finally:
        a.kill()
        b.kill()


def test_two_teams_on_one_database(up, tmp_path):
    """The same names on both, at the same time: each is its own team."""
    both = [start(tmp_path / n, up.url, "--auth", "off") for n in "ab"]
    try:
        boards = []
        for d in both:
            AgentClient(d.url, "same").register()
            p = AgentClient(d.url, "same").create_project("same")["id"]
            boards.append((p, [AgentClient(d.url, "same").create_task(p, f"t{n}")["id"] for n in range(3)]))

        def work(d, project, tasks, letter):
            a = AgentClient(d.url, "same")
            for t in tasks:
                a.claim_task(project, t)
                a.send_message("same", f"{letter} {t}")
                a.submit_checkpoint(t, letter)

        threads = [threading.Thread(target=work, args=(d, *b, n)) for d, b, n in zip(both, boards, "ab")]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        AgentClient(both[0].url, "same").must("POST", "/agents/same/pause")
        for d in both:
            d.kill()
        both = [start(tmp_path / n, up.url, "--auth", "off") for n in "ab"]
        for d, (project, tasks), letter in zip(both, boards, "ab"):
            a = AgentClient(d.url, "same")
            assert [p["id"] for p in a.list_projects()] == [project]
            assert {t["id"] for t in a.get_my_tasks()} == set(tasks)
            assert {m["content"] for m in a.get_messages()} == {f"{letter} {t}" for t in tasks}
            assert [(c["state"], c["sequence"]) for c in a.must("GET", "/agents/same/checkpoints")] == [(letter, n) for n in (3, 2, 1)]
            assert a.must("GET", "/agents/same")["paused"] is (letter == "a")
            assert d.ok("GET", "/holt/v1/audit/verify")["ok"] is True
    finally:
        for d in both:
            d.kill()


def test_the_same_node_twice_is_refused(up, tmp_path):
    d = start(tmp_path / "a", up.url, "--node", "one")
    try:
        said = refusal(tmp_path / "b", up.url, "--node", "one")
        assert "holt_one" in said and "in use by another holtd" in said and "node" in said, said
        d.assert_alive()
        assert make(d, "x")[0] == 201
    finally:
        d.kill()
    other = start(tmp_path / "a", up.url, "--node", "one")  # who was killed leaves no lock behind
    try:
        assert "x" in all_tokens(other).values()
    finally:
        other.kill()


def test_a_start_waits_for_the_server(up, tmp_path):
    up.stop()
    d = start(tmp_path, up.url, ready=False)
    try:
        wait_for(lambda: "waiting for the database server" in d.log(), 60)
        up.start()
        d.wait_ready()
        assert make(d, "x")[0] == 201
    finally:
        d.kill()


def test_an_end_without_the_server(up, tmp_path):
    d = start(tmp_path, up.url)
    kept = make(d, "kept")[1]["id"]
    up.stop()
    assert make(d, "lost")[0] == 503
    begin = time.monotonic()
    assert d.stop() == 0 and time.monotonic() - begin < 30
    up.start()
    d = start(tmp_path, up.url)
    try:
        assert kept in all_tokens(d) and "lost" not in all_tokens(d).values()
        assert d.ok("GET", "/holt/v1/audit/verify")["ok"] is True
    finally:
        d.kill()


@pytest.mark.slow
def test_a_server_that_hangs_does_not_hang_the_daemon(up, tmp_path):
    d = start(tmp_path, up.url)
    stopped = [up.process.pid, *up.children()]
    try:
        assert make(d, "before")[0] == 201
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        begin = time.monotonic()
        replies = []
        t = threading.Thread(target=lambda: replies.append(make_slowly(d, "during")), daemon=True)
        t.start()
        while t.is_alive() and time.monotonic() - begin < 60:
            assert d.request("GET", "/healthz", token=None, timeout=15)[0] == 200
            time.sleep(0.5)
        assert replies and replies[0][0] == 503 and "cannot be used now" in replies[0][1]["error"]["message"], replies
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    try:
        wait_for(lambda: is_ready(d), 30)
        assert make(d, "after")[0] == 201
        assert "during" not in all_tokens(d).values()
    finally:
        d.kill()


@pytest.mark.slow
def test_a_start_without_a_server_ends(up, tmp_path):
    up.stop()
    said = refusal(tmp_path, up.url)
    assert f"postgres://holt@{up.directory}/postgres" in said and "cannot be reached" in said, said


def test_a_wrong_name_ends_the_start_at_once(up, tmp_path):
    begin = time.monotonic()
    said = refusal(tmp_path, up.url.replace("/postgres?", "/nowhere?").replace("holt@", "holt:secret-word@"))
    assert '"nowhere" does not exist' in said and "pg_hba.conf" in said, said
    assert "secret-word" not in said
    assert time.monotonic() - begin < (20 if ASAN else 12)
    said = refusal(tmp_path, "postgres://holt:secret%@[/x")
    assert "is malformed" in said and "secret" not in said, said


