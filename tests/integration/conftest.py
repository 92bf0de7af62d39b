"""Fixtures of the integration tests.  One holtd per module, unless a test needs its own (new_holtd)."""
import os
import resource
import shutil
import subprocess

import pytest

from daemon import ASAN, BUILD, POSTGRES, SLOW, Holtd, Program, end_fakes, free_ports
from egress import Names, Peer, http_echo

try:
    import websockets.asyncio.client
    import websockets.sync.client
except ImportError:  # tools/v2-guest has none
    pass
else:  # a client that reads much on a busy machine does not get to the answers to its own pings
    for connect in (websockets.asyncio.client.connect.__init__, websockets.sync.client.connect):
        connect.__kwdefaults__.update(open_timeout=60, ping_interval=None)

HERE = os.path.dirname(os.path.abspath(__file__))
NODE = f"{HERE}/node"
pytest_plugins = []


# The pass with sanitizers is for faults of memory in our C.  It leaves out, besides tests that are marked slow and those of
# clients in node, modules whose subject is something else and whose requests other modules send as well.
NOT_SANITIZED = {
    "test_browser": "pages in a browser",
    "test_dashboard": "pages in a browser: the API's tests have their requests",
    "test_generate": "ansible of others: test_change and test_playbook have its requests",
    "test_golden": "a script",
    "test_hub_demo": "a script: test_hub_inside has its requests",
    "test_install": "a script",
    "test_openapi": "validators of others read a document",
    "test_packages": "package managers of others: test_egress and test_intercept have their requests",
    "test_programs": "programs of others in sandboxes",
    "test_proof": "ansible and sshd of others: test_change and test_rollout have its requests",
    "test_rollout": "ansible and sshd of others are the slow part",
    "test_rules": "the same with a rule left out",
    "test_sandboxctl": "a command line: test_agentic has its requests",
    "test_schema": "a walk over replies that the tests of each operation have",
    "test_shells": "completion by shells",
    "test_soak": "deaths under load, of programs that are built for it",
    "test_syscalls": "the kernel's table",
    "test_team_storm": "much load: test_hub and test_team_api have its requests",
}


def is_sanitized(item):
    return item.path.stem not in NOT_SANITIZED and "node" not in item.fixturenames


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: long or heavy; left out of the pass with sanitizers")
    config.addinivalue_line("markers", "of_sqlite: about SQLite's file; left out when all is on PostgreSQL")
    config.addinivalue_line("markers", "own_timeout: sets its own time limit")
    config.addinivalue_line("markers", "not_on(runtime, why): skipped when HOLT_RUNTIME names this one; 'containers' are all but native")
    config.addinivalue_line("markers", "needs_root(why): skipped for an ordinary user")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # a login has 1,024; some tests hold more connections
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))


def pytest_collection_modifyitems(items):
    if POSTGRES:
        items[:] = [i for i in items if not i.get_closest_marker("of_sqlite")]
    if ASAN:
        items[:] = [i for i in items if is_sanitized(i)]
    for item in items:
        needs_root = item.get_closest_marker("needs_root")
        if needs_root and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason=f"needs root: {needs_root.args[0]}"))
        for mark in item.iter_markers("not_on"):
            runtime = os.environ.get("HOLT_RUNTIME", "native")
            if runtime == mark.args[0] or (mark.args[0] == "containers" and runtime != "native"):
                item.add_marker(pytest.mark.skip(reason=f"{runtime}: {mark.args[1]}"))
        if not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout((300 if ASAN else 180) * SLOW))


@pytest.fixture(scope="session", autouse=True)
def no_inits_of_the_fake_runtime_stay(tmp_path_factory):
    yield
    end_fakes(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = Holtd(tmp_path_factory.mktemp("holtd"))
    yield d
    died = not d.alive()
    status = d.process.returncode if died else d.stop()
    assert not died, f"holtd died during the module with {status}:\n{d.log()[-5000:]}"
    assert status == 0, f"holtd ended with {status}:\n{d.log()[-5000:]}"


@pytest.fixture
def new_holtd(tmp_path):
    """Starts daemons of this test's own; each is stopped, and must end cleanly, unless it has ended already."""
    made = []

    def make(*args, name=None, **more):
        d = Holtd(tmp_path / (name or f"holtd{len(made)}"), *args, **more)
        made.append(d)
        return d

    yield make
    for d in made:
        if d.alive():
            status = d.stop()
            assert status == 0, f"holtd ended with {status}:\n{d.log()[-5000:]}"


@pytest.fixture(scope="module")
def names(request):
    """A name server that knows the NAMES of the module."""
    n = Names(request.module.NAMES)
    yield n
    n.close()


@pytest.fixture(scope="module")
def web():
    """A server on loopback that says what it was asked."""
    p = Peer(http_echo)
    yield p
    p.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """(certificate, key): self-signed, for localhost and 127.0.0.1."""
    d = tmp_path_factory.mktemp("tls")
    cert, key = f"{d}/cert.pem", f"{d}/key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        check=True, capture_output=True)
    return cert, key


@pytest.fixture(scope="module")
def echo(tmp_path_factory):
    """The test server of src/net with echo services: tests/integration/echo_server.c says what it offers."""
    path = f"{BUILD}/tests/integration/echo_server"
    if not os.path.exists(path):
        pytest.fail(f"{path} is not built")
    p = Program([path, "127.0.0.1:0"], log=str(tmp_path_factory.mktemp("echo") / "log"))
    p.port = int(p.wait_text(r"port (\d+)")[1])
    yield p
    died = not p.alive()
    status = p.process.returncode if died else p.stop()
    assert not died and status == 0, f"echo_server ended with {status}:\n{p.log()[-5000:]}"


@pytest.fixture(scope="session")
def node():
    """Runs a script of tests/integration/node with arguments; its output, or a failure."""
    if not shutil.which("node"):
        pytest.skip("node is not installed: make deps")
    if not os.path.isdir(f"{NODE}/node_modules/ws"):
        pytest.skip("node packages are not installed: make deps")

    def run(script, *args, timeout=60):
        r = subprocess.run(["node", f"{NODE}/{script}", *map(str, args)], capture_output=True, text=True,
                           timeout=timeout, stdin=subprocess.DEVNULL, cwd=NODE)
        assert r.returncode == 0, f"{script} ended with {r.returncode}:\n{r.stdout}{r.stderr}"
        return r.stdout

    return run


@pytest.fixture
def port():
    return free_ports()[0]
