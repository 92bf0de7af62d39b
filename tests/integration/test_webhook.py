"""Events sent to a receiver: signed, in order, tried again, given up visibly; nothing is lost by a restart."""
import hashlib
import hmac
import http.server
import json
import threading
import time

import pytest

from daemon import Holtd, all_events, wait_for

API = "/holt/v1"


class Receiver:
    """Keeps what it gets; replies with .status, after .hold is set."""

    def __init__(self):
        self.got, self.status = [], 200
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append((self.path, dict(self.headers), body))
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *a):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook"

    def seqs(self):
        return [json.loads(b)["seq"] for _, _, b in self.got]


@pytest.fixture
def receiver():
    r = Receiver()
    yield r
    r.server.shutdown()
    r.server.server_close()


@pytest.fixture
def d(tmp_path):
    d = Holtd(tmp_path, "--webhook-hosts", "127.0.0.1")
    yield d
    assert d.stop() == 0


def ask(d, n=1):
    return [d.ok("POST", f"{API}/approvals", {"question": f"q{i}"})["id"] for i in range(n)]


def deliveries(d, hook, **query):
    more = "&".join(f"{k}={v}" for k, v in query.items())
    return d.ok("GET", f"{API}/webhooks/{hook['id']}/deliveries?{more}")["deliveries"]


def test_events_come_signed_and_in_order(d, receiver):
    ask(d)  # before: not sent
    hook = d.ok("POST", f"{API}/webhooks", {"url": receiver.url, "types": ["approval.*"]})
    assert "secret" not in str(d.ok("GET", f"{API}/webhooks"))
    ids = ask(d, 20)
    d.ok("POST", f"{API}/tokens", {"name": "other"})  # another type
    wait_for(lambda: len(receiver.got) >= 20)
    wanted = [e["seq"] for e in all_events(d) if e["type"] == "approval.created"][1:]
    assert receiver.seqs() == wanted
    path, h, body = receiver.got[0]
    event = json.loads(body)
    assert path == "/hook" and event["type"] == "approval.created" and event["object"] == f"approval/{ids[0]}"
    made = hmac.new(hook["secret"].encode(), h["holt-timestamp"].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert h["holt-signature"] == f"sha256={made}" and abs(int(h["holt-timestamp"]) - time.time()) < 60
    assert h["holt-delivery"] == f"{hook['id']}-{event['seq']}"
    wait_for(lambda: len(deliveries(d, hook)) == 20)
    assert {x["state"] for x in deliveries(d, hook)} == {"delivered"}


def test_a_failure_is_tried_again_and_a_restart_loses_nothing(tmp_path, receiver):
    d = Holtd(tmp_path, "--webhook-hosts", f"127.0.0.1:{receiver.port}")
    hook = d.ok("POST", f"{API}/webhooks", {"url": receiver.url, "types": ["approval.created", "approval.cancelled"]})
    receiver.status = 500
    ids = ask(d, 3)
    wait_for(lambda: len(receiver.got) >= 2)  # the first, again
    assert len(set(receiver.seqs())) == 1
    [failing] = wait_for(lambda: [x for x in deliveries(d, hook) if x["attempts"] >= 2])
    assert failing["state"] == "failing" and failing["status"] == 500 and "500" in failing["error"]
    d.kill()
    receiver.status = 204
    d = Holtd(tmp_path, "--webhook-hosts", f"127.0.0.1:{receiver.port}")
    try:
        d.ok("POST", f"{API}/approvals/{ids[0]}/cancel", {})
        wait_for(lambda: len(set(receiver.seqs())) == 4)
        assert sorted(set(receiver.seqs())) == [e["seq"] for e in all_events(d) if e["type"] in ("approval.created", "approval.cancelled")]
        wait_for(lambda: {x["state"] for x in deliveries(d, hook)} == {"delivered"})
        d.ok("DELETE", f"{API}/webhooks/{hook['id']}")
        seen = len(receiver.got)
        ask(d)
        assert d.request("GET", f"{API}/webhooks/{hook['id']}/deliveries")[0] == 404
        assert len(receiver.got) == seen
    finally:
        assert d.stop() == 0


def test_off_unless_a_setting_names_the_host(tmp_path, d, receiver):
    for url in ("http://localhost:1/x", "https://example.org/x"):
        status, reply, _ = d.request("POST", f"{API}/webhooks", {"url": url})
        assert status == 403 and "webhook_hosts" in reply["error"]["hint"]
    assert d.request("POST", f"{API}/webhooks", {"url": "unix:/run/x.sock"})[0] == 400
    operator = d.new_token("op")["token"]
    assert d.request("POST", f"{API}/webhooks", {"url": receiver.url}, token=operator)[0] == 403
    plain = Holtd(tmp_path / "plain")
    try:
        assert plain.request("POST", f"{API}/webhooks", {"url": receiver.url})[0] == 403
    finally:
        assert plain.stop() == 0


def test_a_test_says_what_the_receiver_said(d, receiver):
    hook = d.ok("POST", f"{API}/webhooks", {"url": receiver.url, "types": ["none.*"]})["id"]
    wait_for(lambda: d.request("POST", f"{API}/webhooks/{hook}/test")[0] != 404)
    assert d.ok("POST", f"{API}/webhooks/{hook}/test") == {"delivered": True, "status": 200, "error": ""}
    assert json.loads(receiver.got[-1][2])["type"] == "webhook.test"
    receiver.status = 410
    assert d.ok("POST", f"{API}/webhooks/{hook}/test")["status"] == 410
    receiver.server.shutdown()
    receiver.server.server_close()
    gone = d.ok("POST", f"{API}/webhooks/{hook}/test")
    assert gone["delivered"] is False and gone["status"] == 0 and gone["error"]
