"""kill -9 in a loop, under writing clients: what was acknowledged is there, and the chain holds."""
import http.client
import json
import os
import subprocess
import threading
import time

import pytest

from daemon import BUILD, SOAK, Holtd, all_events, environment, wait_for

WRITERS = 32
ROUNDS = 50 if SOAK else 5


class Writer(threading.Thread):
    """Makes and revokes tokens until the daemon dies; remembers only what was acknowledged."""

    def __init__(self, number, port, token, stop):
        super().__init__(daemon=True)
        self.number, self.port, self.token, self.stop_event = number, port, token, stop
        self.made, self.revoked = {}, set()
        self.unsure = set()  # asked, never answered: may be there or not
        self.wrong = []

    def _call(self, conn, method, path, body=None):
        conn.request(method, path, json.dumps(body) if body else None,
                     {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        r = conn.getresponse()
        data = r.read()
        if r.status >= 300:
            self.wrong.append((r.status, data[:300]))
        return r.status, json.loads(data) if data else None

    def run(self):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        i = 0
        while not self.stop_event.is_set():
            i += 1
            name = f"w{self.number}-{i}"
            try:
                status, reply = self._call(conn, "POST", "/holt/v1/tokens", {"name": name, "role": "observer"})
                if status != 201:
                    return
                self.made[reply["id"]] = name
                if i % 3 == 0:
                    self.unsure.add(reply["id"])
                    status, _ = self._call(conn, "DELETE", f"/holt/v1/tokens/{reply['id']}")
                    if status != 204:
                        return
                    self.unsure.discard(reply["id"])
                    self.revoked.add(reply["id"])
            except (OSError, http.client.HTTPException, ValueError):
                return


def all_tokens(d):
    found, cursor = {}, ""
    while True:
        page = d.ok("GET", f"/holt/v1/tokens?limit=1000{'&cursor=' + cursor if cursor else ''}")
        found.update({t["id"]: t["name"] for t in page["tokens"]})
        cursor = page.get("cursor")
        if not cursor:
            return found


def check(d, made, revoked, unsure, head):
    live = all_tokens(d)
    lost = [i for i in made if i not in live and i not in revoked and i not in unsure]
    assert not lost, f"{len(lost)} acknowledged tokens are lost: {lost[:3]}"
    back = [i for i in revoked if i in live]
    assert not back, f"{len(back)} revoked tokens work again: {back[:3]}"
    events = all_events(d)
    seqs = [e["seq"] for e in events]
    assert seqs == sorted(set(seqs)), "a seq was used twice, or events are out of order"
    created = {e["object"] for e in events if e["type"] == "token.created"}
    gone = [i for i in made if f"token/{i}" not in created]
    assert not gone, f"{len(gone)} acknowledged tokens have no event: {gone[:3]}"
    ended = {e["object"] for e in events if e["type"] == "token.revoked"}
    assert not [i for i in revoked if f"token/{i}" not in ended]
    verdict = d.ok("GET", f"/holt/v1/audit/verify?head={head}" if head else "/holt/v1/audit/verify")
    assert verdict["ok"] is True, verdict
    return verdict["head"]


@pytest.mark.slow
@pytest.mark.timeout(3600 if SOAK else 800)
def test_kill_9_under_32_writers(tmp_path):
    made, revoked, unsure, head = {}, set(), set(), None
    slowest = 0.0
    for n in range(ROUNDS):
        d = Holtd(tmp_path, config="connections_per_peer: 1000\n")
        slowest = max(slowest, d.ready_after)
        try:
            head = check(d, made, revoked, unsure, head)
            stop = threading.Event()
            writers = [Writer(f"{n}-{i}", d.port, d.token, stop) for i in range(WRITERS)]
            for w in writers:
                w.start()
            time.sleep(0.2 + (n * 37 % 50) / 50)
            wait_for(lambda: sum(len(w.made) for w in writers) > WRITERS or any(w.wrong for w in writers), 60)
        finally:
            d.kill()
        stop.set()
        for w in writers:
            w.join(90)
            assert not w.is_alive()
            assert not w.wrong, w.wrong[:3]
            made.update(w.made)
            revoked |= w.revoked
            unsure |= w.unsure
    assert len(made) > ROUNDS * WRITERS, "the writers hardly wrote: this proves nothing"
    d = Holtd(tmp_path)
    slowest = max(slowest, d.ready_after)
    try:
        check(d, made, revoked, unsure, head)
        r = subprocess.run([f"{BUILD}/holt", "audit", "verify"], capture_output=True, text=True, timeout=60,
                           env=environment({"HOLT_SERVER": d.url, "HOLT_TOKEN": d.token, "HOME": str(tmp_path)}))
        assert r.returncode == 0, r.stdout + r.stderr
    finally:
        status = d.stop()
    assert status == 0
    print(f"{ROUNDS} kills, {len(made)} tokens, {len(revoked)} revoked; slowest start {slowest:.3f} s")
    assert slowest < 10, "a start that waits for something; what it takes on a quiet machine: make bench"


@pytest.mark.of_sqlite
def test_a_changed_event_is_named(tmp_path):
    import sqlite3
    d = Holtd(tmp_path)
    for i in range(5):
        d.new_token(f"t{i}")
    good = d.ok("GET", "/holt/v1/audit/verify")
    assert good["ok"] is True and good["checked"] >= 5
    victim = all_events(d)[3]["seq"]
    d.stop()
    path = next(os.path.join(d.state, n) for n in os.listdir(d.state) if n.endswith(".db"))
    with sqlite3.connect(path) as db:
        table = next(r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'event%'"))
        changed = db.execute(f"UPDATE {table} SET actor = 'somebody-else' WHERE seq = ?", (victim,)).rowcount
        assert changed == 1
    db.close()
    d = Holtd(tmp_path)
    try:
        verdict = d.ok("GET", "/holt/v1/audit/verify")
        assert verdict["ok"] is False
        assert verdict["broken_seq"] == victim and verdict["broken_why"]
        r = subprocess.run([f"{BUILD}/holt", "audit", "verify"], capture_output=True, text=True, timeout=60,
                           env=environment({"HOLT_SERVER": d.url, "HOLT_TOKEN": d.token, "HOME": str(tmp_path)}))
        assert r.returncode != 0 and str(victim) in r.stdout + r.stderr
    finally:
        d.kill()


def test_sigterm_is_a_clean_end(new_holtd):
    d = new_holtd("--shutdown-ms", "10m", name="clean")
    before = d.new_token("kept")["id"]
    assert d.stop() == 0, "shutdown_ms is for those that have something to end"
    d = new_holtd(name="clean")
    assert before in all_tokens(d)
    assert not [e for e in all_events(d) if "epoch" in e["type"]], "only an unclean start opens an epoch"


def test_an_unclean_start_opens_an_epoch(new_holtd):
    d = new_holtd(name="unclean")
    d.new_token("x")
    last = d.ok("GET", "/holt/v1/info")["event_seq"]
    d.kill()
    d = new_holtd(name="unclean")
    epochs = [e for e in all_events(d) if "epoch" in e["type"]]
    assert len(epochs) == 1 and epochs[0]["seq"] >= last + 1000000
