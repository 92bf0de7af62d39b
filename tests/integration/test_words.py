"""Bad inputs over all operations and routes: no reply has words that are ours alone (C names, SQL, paths of the state
directory, URLs of databases)."""
import json
import pathlib
import re

import pytest

from daemon import wait_for

API = "/holt/v1"
TEXTS = ["", "\0", "a\0b", "x" * 70000, "../../etc", "%", "'; DROP TABLE", "\ud800", "-1", "2240.0"]
VALUES = [*TEXTS, None, True, -1, 2**70, 1.5, [], [None], ["a\0b"], ["\0"], {"": ""}, {"a": "\0"}, [["x"]]]
SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE FROM|WHERE|sqlite|SQLSTATE|constraint)\b")
FOREIGN = re.compile(r"JSON_[A-Z]|\b(jansson|nghttp2|libuv|libpq)\b|\brow \d+\b|\bERR_|\bE[A-Z]{4,}\b|\.c:\d+")
NAME = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")
DOTTED = re.compile(r"\b[a-z]+_[a-z]+\.[a-z]+\b")  # a column of a table, or an operation: "task_run.create"


@pytest.fixture(scope="module")
def spec(holtd):
    return holtd.ok("GET", f"{API}/openapi.json")


@pytest.fixture(scope="module")
def known(holtd, spec):
    """Fields, choices and settings are words that people use."""
    words = set(NAME.findall(json.dumps(spec)))
    words |= {s["key"] for s in holtd.ok("GET", f"{API}/settings")["settings"]}
    for methods in spec["paths"].values():  # names of operations: "agent.default_mode"
        for op in methods.values():
            parts = re.findall(r"[A-Z]?[a-z0-9]+", op.get("operationId", "")) if isinstance(op, dict) else []
            words |= {"_".join(parts[i:]).lower() for i in range(len(parts))}
            for i in range(1, len(parts)):
                group = "_".join(parts[:i]).lower()
                words |= {group, f"{group}.{'_'.join(parts[i:]).lower()}"}
    return words


def texts_of(reply):
    """What is said to people: not what the client sent, which comes back in quotes."""
    if isinstance(reply, dict):
        for k, v in reply.items():
            if k in ("message", "hint", "detail", "error", "failure") and isinstance(v, str):
                yield re.sub(r"'[^']*'", "''", v), v
            else:
                yield from texts_of(v)
    elif isinstance(reply, list):
        for v in reply:
            yield from texts_of(v)


def check(holtd, known, what, status, reply):
    assert status != 500, (what, reply)
    for said, whole in texts_of(reply):
        assert not SQL.search(said) and not FOREIGN.search(said), (what, whole)
        assert str(holtd.state) not in whole and "postgres://" not in whole and "sqlite:" not in whole, (what, whole)
        foreign = [w for w in NAME.findall(said) + DOTTED.findall(said) if w not in known]
        assert not foreign, (what, whole, foreign)


def bodies(fields):
    yield b"{"
    yield b"[]"
    yield b'{"a":"\\u0000"}'
    yield b'{"\\u0000":1}'
    yield b'\xff\xfe'
    yield {"no_such_field": 1}
    for name in fields:
        for v in VALUES:
            yield {name: v}


def fields_of(spec, op):
    schema = op.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if "$ref" in schema:
        schema = spec["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return list(schema.get("properties", {}))


def test_no_reply_has_words_of_ours_alone(holtd, spec, known):
    asked = 0
    for path, methods in spec["paths"].items():
        for method, op in methods.items():
            if method not in ("post", "put", "patch", "delete", "get") or "{path}" in path and "ports" in path:
                continue
            if op["operationId"] in ("eventList", "logout", "imagePull"):
                continue
            at = re.sub(r"\{[^}]*\}", "x", path)
            if method in ("post", "put", "patch") and "application/json" in op.get("requestBody", {}).get("content", {}):
                for body in bodies(fields_of(spec, op)):
                    status, reply, _ = holtd.request(method.upper(), at, body)
                    check(holtd, known, (op["operationId"], str(body)[:80]), status, reply)
                    asked += 1
            for q in ("?limit=x", "?nothing=1", "?since=%00", "?path=%00"):
                if method in ("get", "delete"):
                    status, reply, _ = holtd.request(method.upper(), at + q)
                    check(holtd, known, (op["operationId"], q), status, reply)
                    asked += 1
    assert asked > 1000
    holtd.assert_alive()


def test_commands_with_impossible_texts(holtd, known):
    box = holtd.ok("POST", f"{API}/sandboxes", {})
    try:
        for more in ({"command": ["a", "b" * 300000]}, {"command": ["x"] * 5000}, {"command": ["true"], "env": {"A": "x" * 140000}},
                     {"command": ["true"], "cwd": "x" * 4095}, {"command": ["true"], "user": "u" * 300},
                     {"command": ["true"], "env": {"=": "x"}}, {"command": ["\0"]}, {"command": []}, {"command": [""]}):
            status, reply, _ = holtd.request("POST", f"{API}/sandboxes/{box['id']}/execs", more)
            check(holtd, known, str(more)[:80], status, reply)
    finally:
        holtd.ok("DELETE", f"{API}/sandboxes/{box['id']}")


def test_a_database_that_fails_is_not_named(new_holtd):
    d = new_holtd()
    token = d.token
    for f in pathlib.Path(d.state).rglob("holt.db*"):
        f.rename(f.with_name("gone-" + f.name))

    def refused():
        status, reply, _ = d.request("POST", f"{API}/tokens", {"name": "a", "role": "observer"}, token=token)
        return (status, reply) if status >= 500 else None

    status, reply = wait_for(refused)
    assert str(d.state) not in json.dumps(reply) and "holt.db" not in json.dumps(reply), reply
    assert "database" in reply["error"]["message"] and "restore a backup" in reply["error"]["hint"], reply
    d.kill()
