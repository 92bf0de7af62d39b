"""One more dialect and one more runtime (tests/plug/toy.c): their rows are all it takes."""
import json
import subprocess

import pytest

from daemon import BUILD, Holtd
from own_network import own_network
from waiting import wait_for

PROGRAM = f"{BUILD}/tests/plug/holtd-plug"


@pytest.fixture(scope="module")
def plugged(tmp_path_factory):
    d = Holtd(tmp_path_factory.mktemp("plug"), "--runtime", "toy", "--bindir", BUILD, env={"TOY_GREETING": "good day"}, program=PROGRAM)
    yield d
    d.stop()


def test_a_dialect_plugs_in_with_its_setting_and_its_errors(plugged):
    status, body, _ = plugged.request("GET", "/toy")
    assert (status, body) == (200, "good day"), "the route, and the setting by the dialect's own variable"
    status, body, _ = plugged.request("GET", "/toy/else")
    assert status == 404 and body.startswith("there is nothing at"), "a path that it owns: an error in its form"
    assert plugged.request("GET", "/toy", token=None)[0] == 401, "the checks before a handler are the same"
    assert 'operation="toy.run"' in plugged.request("GET", "/metrics")[1]
    settings = plugged.ok("GET", "/holt/v1/settings")["settings"]
    assert [s["source"] for s in settings if s["key"] == "toy_greeting"] == ["variable TOY_GREETING"]
    assert plugged.request("GET", "/sandboxes")[0] == 200, "the others are as they were"


def test_a_runtime_plugs_in(plugged):
    box = plugged.ok("POST", "/holt/v1/sandboxes", {"name": "plug"})
    assert box["runtime"] == "toy"
    run = plugged.ok("POST", "/holt/v1/run", {"command": ["echo", "hi"]})
    assert run["stdout"] == "hi\n", run


def test_its_address_is_a_seed_port(tmp_path):
    with own_network():
        d = Holtd(tmp_path / "d", "--runtime", "toy", "--seed-ports", program=PROGRAM)
        try:
            d.port = 7070
            wait_for(lambda: d._is_ready())
            assert d.request("GET", "/toy", token=None)[1] == "hello"
        finally:
            d.stop()


def test_routes_are_printed():
    text = subprocess.run([PROGRAM, "--print-routes"], capture_output=True, check=True, timeout=60).stdout
    assert {"method": "GET", "path": "/toy", "name": "toy.run", "permission": "read"} in [json.loads(x) for x in text.splitlines()]
