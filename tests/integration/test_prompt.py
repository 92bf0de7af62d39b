"""Prompts: a session that waits for a person is an approval, and its answer is typed."""
import os
import textwrap

import pytest

from daemon import native, wait_for
from session_client import API, Session


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("prompt"))
    yield d
    d.clear()
    d.stop()


@pytest.fixture
def box(holtd):
    b = holtd.ok("POST", f"{API}/sandboxes", {})["id"]
    yield b
    holtd.request("DELETE", f"{API}/sandboxes/{b}")


def pending(d, exec_id=None, state="pending"):
    rows = d.ok("GET", f"{API}/approvals?kind=prompt&state={state}")["approvals"]
    return [r for r in rows if exec_id in (None, r["exec"])]


def wait_prompt(d, s):
    return wait_for(lambda: pending(d, s.made["id"]))[0]


def answer(d, approval, text):
    return d.ok("POST", f"{API}/approvals/{approval['id']}/answer", {"text": text})


def one(d, approval):
    return d.ok("GET", f"{API}/approvals/{approval['id']}")


def test_a_question_is_noticed_and_answered(holtd, box):
    script = "echo building; printf 'Deploy to production? (y/n) '; read a; echo got $a; sleep 1000"
    s = Session(holtd, box, "work", ["sh", "-c", script])
    p = wait_prompt(holtd, s)
    assert (p["question"], p["way"], p["sandbox"]) == ("Deploy to production? (y/n)", "line", box)
    assert p["alternatives"] == ["y", "n"] and "building" in p["note"]
    reply = answer(holtd, p, "y")
    assert reply["state"] == "approved" and reply["choice"] == "y"
    s.wait_text("got y")
    wait_for(lambda: one(holtd, p)["typed"])
    assert pending(holtd, s.made["id"]) == []  # the slot is free, and nothing is asked again


def test_yes_and_no_are_answers_too(holtd, box):
    script = "while :; do printf 'Continue [Y/n] '; read a; echo got $a; done"
    s = Session(holtd, box, "loop", ["sh", "-c", script])
    first = wait_prompt(holtd, s)
    holtd.ok("POST", f"{API}/approvals/{first['id']}/deny", {})
    s.wait_text("got n")
    second = wait_for(lambda: [p for p in pending(holtd, s.made["id"]) if p["id"] != first["id"]])[0]
    holtd.ok("POST", f"{API}/approvals/{second['id']}/approve", {})
    s.wait_text("got y")


def test_a_text_has_no_yes(holtd, box):
    s = Session(holtd, box, "name", ["sh", "-c", "printf 'Enter the release name: '; read a; echo got $a; sleep 1000"])
    p = wait_prompt(holtd, s)
    status, reply, _ = holtd.request("POST", f"{API}/approvals/{p['id']}/approve", {})
    assert status == 400 and "approval answer" in reply["error"]["hint"], reply
    answer(holtd, p, "blue moon")
    s.wait_text("got blue moon")


def test_it_is_dropped_when_the_prompt_is_gone_or_the_session_ends(holtd, box):
    s = Session(holtd, box, "gone", ["sh", "-c", "printf 'Sure? (y/n) '; read a; printf 'More? (y/n) '; read a"])
    first = wait_prompt(holtd, s)
    s.send("n", "Enter")  # somebody answers at the terminal
    wait_for(lambda: one(holtd, first)["state"] == "closed")
    second = wait_for(lambda: pending(holtd, s.made["id"]))[0]
    assert second["question"].startswith("More?")
    s.kill()
    wait_for(lambda: one(holtd, second)["state"] == "closed")
    assert one(holtd, second)["reason"] == "its session ended"


MENU = """
import sys, termios, tty
options = ["Yes", "Yes, and don't ask again", "No (esc)"]
at = 0
old = termios.tcgetattr(0)
tty.setraw(0)
def draw(first=False):
    up = "" if first else f"\\033[{len(options) + 1}A"
    rows = "".join(f"\\r\\033[K{'❯' if i == at else ' '} {i + 1}. {o}\\r\\n" for i, o in enumerate(options))
    sys.stdout.write(f"{up}\\033[?25l\\r\\033[KDo you want to run 'make deploy'?\\r\\n{rows}")
    sys.stdout.flush()
draw(True)
while True:
    key = __import__("os").read(0, 1024)
    if key == b"\\r":
        break
    if key == b"\\033[B":
        at = min(at + 1, 2)
    elif key == b"\\033[A":
        at = max(at - 1, 0)
    else:
        sys.stdout.write(f"bad key {key!r}\\r\\n")
    draw()
termios.tcsetattr(0, termios.TCSADRAIN, old)
print("chose", options[at])
__import__("time").sleep(1000)
"""


@pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="no python3 below /usr, which sandboxes have")
def test_a_menu_is_answered_with_arrow_keys(holtd, box):
    s = Session(holtd, box, "menu", ["/usr/bin/python3", "-c", textwrap.dedent(MENU)])
    p = wait_prompt(holtd, s)
    assert (p["way"], p["question"]) == ("menu", "Do you want to run 'make deploy'?")
    assert p["alternatives"] == ["Yes", "Yes, and don't ask again", "No (esc)"]
    answer(holtd, p, "No")
    seen = s.wait_text("chose No (esc)")
    assert "bad key" not in seen["text"], seen["text"]


def test_a_password_is_shown_to_nobody(holtd, box):
    s = Session(holtd, box, "secret", ["sh", "-c", "stty -echo; printf 'Password: '; read a; echo; [ $a = hunter2 ] && echo welcome; sleep 1000"])
    p = wait_prompt(holtd, s)
    assert p["way"] == "secret"
    assert answer(holtd, p, "hunter2")["choice"] is None
    s.wait_text("welcome")
    wait_for(lambda: one(holtd, p)["typed"])
    events = holtd.ok("GET", f"{API}/events?limit=1000&type=approval.*")
    assert "hunter2" not in str(events) and "hunter2" not in str(one(holtd, p))


def test_an_answer_survives_a_kill(tmp_path):
    d = native(tmp_path)
    box = d.ok("POST", f"{API}/sandboxes", {})["id"]
    s = Session(d, box, "work", ["sh", "-c", "printf 'Sure? (y/n) '; read a; echo got $a; sleep 1000"])
    p = wait_prompt(d, s)
    # a sandbox that stands still takes no input: the answer is owed when holtd is killed
    d.ok("POST", f"{API}/sandboxes/{box}/pause")
    answer(d, p, "y")
    d.kill()
    d = native(tmp_path)
    s.holtd = d
    d.ok_once_found("POST", f"{API}/sandboxes/{box}/resume")
    s.wait_text("got y")
    wait_for(lambda: one(d, p)["typed"])
    assert s.screen()["text"].count("got y") == 1
    d.clear()
    d.stop()


def test_a_pending_prompt_survives_a_kill(tmp_path):
    d = native(tmp_path)
    box = d.ok("POST", f"{API}/sandboxes", {})["id"]
    s = Session(d, box, "work", ["sh", "-c", "printf 'Sure? (y/n) '; read a; echo got $a; sleep 1000"])
    p = wait_prompt(d, s)
    d.kill()
    d = native(tmp_path)
    s.holtd = d
    answer(d, p, "yes")
    s.wait_text("got yes")
    wait_for(lambda: one(d, p)["typed"])
    assert [a["id"] for a in d.ok("GET", f"{API}/approvals?kind=prompt")["approvals"]] == [p["id"]]
    d.clear()
    d.stop()


@pytest.mark.slow
def test_logs_and_sources_ask_nothing(holtd, box):
    """Source files of the host, and lines with every pattern in them, with pauses in between."""
    script = r"""
    ask='Do you want to continue? [Y/n]'
    n=0
    for f in $(find /usr/include /usr/lib/python3* /usr/share/perl* -type f \( -name '*.h' -o -name '*.py' -o -name '*.pm' \) | head -3000); do
        cat "$f"
        echo "$ask"; echo "  read -p 'Are you sure? (y/n) ' a"; echo "Password: x"
        n=$((n + 1)); [ $((n % 200)) = 0 ] && sleep 0.6
    done
    sleep 1
    echo the-flood-is-over
    sleep 1000
    """
    s = Session(holtd, box, "flood", ["sh", "-c", script])
    s.wait_text("the-flood-is-over", 120)
    assert holtd.ok("GET", f"{API}/sandboxes/{box}/sessions/flood")["output_bytes"] > 10 << 20
    everything = holtd.ok("GET", f"{API}/approvals?kind=prompt&sandbox={box}")["approvals"]
    assert everything == [], everything


def test_it_can_be_switched_off(tmp_path):
    d = native(tmp_path, config="prompts: false\n")
    box = d.ok("POST", f"{API}/sandboxes", {})["id"]
    s = Session(d, box, "work", ["sh", "-c", "printf 'Sure? (y/n) '; read a; printf 'Again? (y/n) '; sleep 1000"])
    s.wait_text("Sure?")
    s.send("y", "Enter")
    s.wait_text("Again?")
    assert d.ok("GET", f"{API}/approvals?kind=prompt")["approvals"] == []
    d.clear()
    d.stop()
