"""Every refusal by a limit says which limit, its value, and the setting that raises it."""
import pathlib
import re

import pytest

from daemon import ROOT

API = "/holt/v1"
SOURCES = sorted(pathlib.Path(ROOT, "src").rglob("*.c"))
REFUSAL = re.compile(r"err_set\(\s*[^;]*?\bERR_(?:LIMIT|FULL)\b\s*,\s*([^,]+),")
NAMED = re.compile(r'\berr_limit\(\s*[^,]+,[^,]*?"([a-z0-9_]+)"')
MENTIONED = re.compile(r"\bsettings? '([a-z0-9_]+)'")
SETTINGS = """
team_max: 2
inbox_max: 1
message_rate: 3
tokens_max: 6
secrets_max: 1
volumes_max: 2
sandboxes_max: 1
execs_max: 2
agent_sandboxes: 1
proposals_max: 1
"""


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def keys_of(holtd):
    return {s["key"] for s in holtd.ok("GET", f"{API}/settings")["settings"]}


def unsaid(text):
    """(line, errno argument) of each refusal whose function goes on without saying its limit."""
    for m in REFUSAL.finditer(text):
        rest = text[m.end():text.index("\n}", m.end())]
        said = re.search(r"\b(err_limit|err_limit_fixed|err_hint)\(", rest)
        ours = m[1].strip() == "0"
        if not said or (ours and said[1] == "err_hint"):
            yield line_of(text, m.start())


def test_the_walk_finds_what_it_looks_for():
    bad = 'int f(void)\n{\n    return err_set(e, ERR_LIMIT, 0, "full");\n}\n'
    hint = 'int f(void)\n{\n    err_set(e, ERR_LIMIT, 0, "full");\n    return err_hint(e, "wait");\n}\n'
    good = 'int f(void)\n{\n    err_set(e, ERR_LIMIT, 0, "full");\n    return err_limit(e, "team_max", 1, "wait");\n}\n'
    system = 'int f(void)\n{\n    err_set(e, ERR_LIMIT, EMFILE, "full");\n    return err_hint(e, "ulimit -n");\n}\n'
    assert list(unsaid(bad)) == [3] and list(unsaid(hint)) == [3] and not list(unsaid(good)) and not list(unsaid(system))


def test_every_refusal_in_the_source_says_its_limit():
    disk = ("sqlite_err.c",)  # the disk's end, which no setting of holt's moves
    missing = [f"{p.relative_to(ROOT)}:{n}" for p in SOURCES if p.name not in disk for n in unsaid(p.read_text())]
    assert not missing, missing


def test_every_setting_that_is_named_exists(holtd):
    keys = keys_of(holtd)
    named = [(p.name, m[1]) for p in SOURCES for m in NAMED.finditer(p.read_text())]
    mentioned = [(p.name, m[1]) for p in SOURCES for m in MENTIONED.finditer(p.read_text())]
    assert len(named) >= 20
    assert not [(f, k) for f, k in named + mentioned if k not in keys]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    from daemon import Holtd
    d = Holtd(tmp_path_factory.mktemp("small"), config=SETTINGS)
    yield d
    d.clear()
    assert d.stop() == 0


def refused(reply, setting, value, status=429):
    got, body, _ = reply
    assert got == status, reply
    error = body["error"]
    assert f"'{setting}' ({value})" in error["hint"] and "…" not in error["hint"], error


def until_refused(ask, most=12):
    for n in range(most):
        reply = ask(n)
        if reply[0] >= 400:
            return reply
    raise AssertionError(f"{most} were taken")


@pytest.mark.parametrize("setting, value, path, body", [
    ("team_max", 2, "/agents", lambda n: {"name": f"agent-{n}"}),
    ("team_max", 2, "/projects", lambda n: {"name": f"p{n}"}),
    ("secrets_max", 1, "/secrets", lambda n: {"name": f"s{n}", "value": "xxxxxxxxxxxx", "hosts": ["a.example"]}),
    ("volumes_max", 2, "/volumes", lambda n: {"name": f"v{n}"}),
    ("tokens_max", 6, "/tokens", lambda n: {"name": f"t{n}", "role": "observer"}),
    ("sandboxes_max", 1, "/sandboxes", lambda n: {}),
])
def test_too_many_objects(small, setting, value, path, body):
    refused(until_refused(lambda n: small.request("POST", f"{API}{path}", body(n))), setting, value)


def test_too_many_messages(small):
    def send(n):
        return small.request("POST", f"{API}/messages", {"from": "x", "to": "y", "type": "note", "content": str(n)})
    refused(until_refused(send), "inbox_max", 1)
