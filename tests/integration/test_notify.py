"""Commands that events are given to, each in a throw-away sandbox."""
import os

import pytest

from daemon import native, wait_for

API = "/holt/v1"

pytestmark = pytest.mark.skipif(os.geteuid() != 0 and not os.path.exists("/etc/subuid"), reason="needs sandboxes")


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("notify"))
    yield d
    d.clear()
    d.stop()


def add(d, command, **more):
    return d.ok("POST", f"{API}/webhooks", {"command": command, "types": ["approval.created"], **more})


def ask(d, title="may I?"):
    return d.ok("POST", f"{API}/approvals", {"question": title})["id"]


def deliveries(d, hook, **query):
    text = "&".join(f"{k}={v}" for k, v in query.items())
    return d.ok("GET", f"{API}/webhooks/{hook['id']}/deliveries?{text}")["deliveries"]


def test_a_command_gets_the_event_and_its_output_is_kept(holtd):
    hook = add(holtd, "read line; echo \"$HOLT_EVENT\"; echo \"$line\"; echo words >&2; ls /work /root; id -u")
    assert (hook["url"], hook["secret"]) == (None, "")
    asked = ask(holtd)
    [last] = wait_for(lambda: deliveries(holtd, hook, state="delivered"))
    lines = last["output"].splitlines()
    assert lines[0] == "approval.created" and asked in lines[1] and "words" in lines
    assert (last["attempts"], last["status"], last["error"]) == (1, 0, "")
    wait_for(lambda: not holtd.ok("GET", f"{API}/sandboxes")["sandboxes"])  # thrown away
    holtd.ok("DELETE", f"{API}/webhooks/{hook['id']}")


def test_failures_are_visible_and_tried_again(holtd):
    hook = add(holtd, "cat > /dev/null; echo broken >&2; exit 3")
    ask(holtd)
    last = wait_for(lambda: [x for x in deliveries(holtd, hook, state="failing") if x["attempts"] >= 2])[0]
    assert last["status"] == 3 and last["error"] == "the command ended with status 3" and "broken" in last["output"]
    holtd.ok("DELETE", f"{API}/webhooks/{hook['id']}")


def test_it_reaches_nothing_and_sees_nothing(holtd):
    hook = add(holtd, "cat /proc/net/dev | wc -l; ls -d /var/lib/holt /home/*; cat /etc/shadow; env | grep -ci proxy; true")
    ask(holtd)
    [last] = wait_for(lambda: deliveries(holtd, hook, state="delivered"))
    assert "No such file" in last["output"] and "root:" not in last["output"]
    holtd.ok("DELETE", f"{API}/webhooks/{hook['id']}")


def test_its_own_sandboxes_do_not_wake_it(holtd):
    hook = add(holtd, "true", types=["sandbox.*", "exec.*"])
    box = holtd.ok("POST", f"{API}/sandboxes", {})["id"]
    wait_for(lambda: deliveries(holtd, hook, state="delivered"))
    holtd.ok("DELETE", f"{API}/sandboxes/{box}")
    wait_for(lambda: any(x["type"] == "sandbox.destroyed" for x in deliveries(holtd, hook)))
    head = holtd.ok("GET", f"{API}/webhooks")["webhooks"][-1]
    seen = deliveries(holtd, hook)
    own = [e["seq"] for e in holtd.ok("GET", f"{API}/events?object=sandbox/{box}&limit=1000")["events"]]
    assert head["id"] == hook["id"] and {x["seq"] for x in seen} <= set(own), "those of this sandbox, and no others"
    holtd.ok("DELETE", f"{API}/webhooks/{hook['id']}")


def test_what_is_refused(holtd):
    for body in ({"command": "true"}, {}, {"command": "true", "url": "http://127.0.0.1:1/x", "types": ["a.b"]}):
        assert holtd.request("POST", f"{API}/webhooks", body)[0] == 400, body
    operator = holtd.new_token("op")["token"]
    assert holtd.request("POST", f"{API}/webhooks", {"command": "true", "types": ["a.b"]}, token=operator)[0] == 403
