"""A real holtd (or another server program of the build) in a state directory of its own."""
import contextlib
import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(0, f"{ROOT}/tests/tools")

from waiting import SLOW, wait_for  # noqa: E402, F401 (for the tests)

BUILD = os.environ.get("HOLT_BUILD", f"{ROOT}/build")
ASAN = "asan" in os.path.basename(BUILD)
SOAK = os.environ.get("HOLT_SOAK") == "1"
LOGS = os.environ.get("HOLT_LOGS", "")
POSTGRES = os.environ.get("HOLT_TEST_POSTGRES", "")  # set by tests/tools/postgres.py: every holtd uses it
START_LIMIT = 60 if ASAN else 30  # limits are for what hangs: on a busy machine all takes its time
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def environment(extra=None):
    """A clean one: no HOLT_* or alias of the caller's leaks into a test.  The runtime is `fake`, which needs no
    holt-spawn; what is about sandboxes for real asks for `--runtime native`."""
    env = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TZ", "TMPDIR")}
    log = f":log_path={LOGS}/sanitizer" if LOGS else ""
    env["ASAN_OPTIONS"] = f"detect_leaks=1:exitcode=99:quarantine_size_mb=8{log}"
    env["UBSAN_OPTIONS"] = f"print_stacktrace=1:halt_on_error=1:exitcode=99{log}"
    env["HOLT_RUNTIME"] = "fake"
    env["HOLT_PREVIEW_LISTEN"] = "127.0.0.1:0"
    if POSTGRES:
        env["HOLT_DB"] = POSTGRES
    env.update(extra or {})
    return env


def free_ports(count=1):
    socks = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in socks]
    for s in socks:
        s.close()
    return ports


def programs_of(state, *names):
    """The pids of those that run with this state directory, children of holt-spawn on their way to be an init included."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                argv = f.read().split(b"\0")
        except OSError:
            continue
        if os.path.basename(argv[0]).decode(errors="replace") in names and os.fsencode(str(state)) in argv and is_running(pid):
            yield int(pid)


def end_spawn(state):
    """holt-spawn and holt-egress outlive their holtd: those of this state directory are ended with the test."""
    mine = list(programs_of(state, "holt-spawn", "holt-egress"))
    for pid in mine:
        with contextlib.suppress(ProcessLookupError):  # it may be ending already
            os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not any(is_running(p) for p in mine))


def end_fakes(directory):
    """The fake runtime's inits outlive a holtd that is killed, as those of any runtime do; without a next start nobody ends them."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/exe").endswith("/holt-init") and os.readlink(f"/proc/{pid}/cwd").startswith(f"{directory}/"):
                os.kill(int(pid), signal.SIGKILL)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Program:
    """A child that prints where it listens; killed with us, whatever happens."""

    def __init__(self, argv, env=None, cwd=None, log=None, user=None):
        """user: an as_user.User that it runs as."""
        def enter():
            if user:
                user.enter()
            die_with_parent()  # after the change of user, which clears it

        if user:
            argv = [user.path(a) for a in argv]
        self.argv = argv
        self.log_path = log or os.devnull
        self.out = []
        self.started = time.monotonic()
        with open(self.log_path, "ab") as err:
            self.process = subprocess.Popen(
                argv, env=environment(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=err, preexec_fn=enter)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.out.append(line.decode(errors="replace"))

    @property
    def pid(self):
        return self.process.pid

    @property
    def text(self):
        return "".join(self.out)

    def log(self):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def alive(self):
        return self.process.poll() is None

    def wait_text(self, pattern, limit=START_LIMIT):
        def look():
            found = re.search(pattern, self.text)
            if not found and not self.alive():
                self._reader.join(1)
                found = re.search(pattern, self.text)
                assert found, f"{self.argv[0]} ended with {self.process.returncode}:\n{self.text}{self.log()}"
            return found
        return wait_for(look, limit)

    def stop(self, limit=40):
        """SIGTERM and a clean end."""
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(limit)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"did not end within {limit} s of SIGTERM:\n{self.log()[-3000:]}") from None
        self._reader.join(2)
        return self.process.returncode

    def kill(self):
        if self.alive():
            self.process.kill()
        self.process.wait()
        self._reader.join(2)

    def _status(self, key):
        with open(f"/proc/{self.pid}/status", encoding="ascii", errors="replace") as f:
            return int(re.search(rf"^{key}:\s+(\d+)", f.read(), re.M)[1])

    def rss_kib(self):
        return self._status("VmRSS")

    def peak_kib(self):
        return self._status("VmHWM")

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def fd_count(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))


class Holtd(Program):
    """listen: further addresses; the first listener is 127.0.0.1 with a port of the kernel's choice, unless port
    says which (None: the settings decide, and the caller sets .port).  prefix: what starts it."""

    def __init__(self, directory, *args, listen=(), env=None, config=None, port=0, ready=True, user=None, program=None,
                 prefix=()):
        self.directory = str(directory)
        self.state = f"{self.directory}/state"
        os.makedirs(self.directory, exist_ok=True)
        argv = [*prefix, program or f"{BUILD}/holtd", "--state", self.state]
        if port is not None:
            argv += ["--listen", f"127.0.0.1:{port}"]
        for address in listen:
            argv += ["--listen", address]
        if config is not None:
            with open(f"{self.directory}/holt.yaml", "w", encoding="utf-8") as f:
                f.write(config)
            argv += ["--config", f"{self.directory}/holt.yaml"]
        super().__init__(argv + list(args), env, log=f"{self.directory}/holtd.log", user=user)
        self.port = port
        if ready:
            try:
                self.wait_ready()
            except BaseException:
                self.kill()
                raise

    def stop(self, limit=40):
        try:
            return super().stop(limit * SLOW)
        finally:
            end_spawn(self.state)

    def kill(self):
        super().kill()
        end_spawn(self.state)

    def wait_ready(self):
        if not self.port:
            self.port = int(self.wait_text(r"127\.0\.0\.1:([1-9]\d*)")[1])
        wait_for(self._is_ready, START_LIMIT, 0.005)
        self.ready_after = time.monotonic() - self.started

    def _is_ready(self):
        assert self.alive(), f"holtd ended with {self.process.returncode}:\n{self.text}{self.log()}"
        try:
            return self.request("GET", "/healthz", token=None)[0] == 200
        except OSError:
            return False

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self):
        with open(f"{self.state}/admin-token", encoding="ascii") as f:
            return f.read().strip()

    def request(self, method, path, body=None, token="admin", headers=None, timeout=60):
        """(status, JSON or text, headers); an error status is not an exception."""
        h = {"Connection": "close", **(headers or {})}
        if token:
            h["Authorization"] = f"Bearer {self.token if token == 'admin' else token}"
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            h.setdefault("Content-Type", "application/json")
        r = urllib.request.Request(self.url + path, data, h, method=method)
        try:
            with urllib.request.urlopen(r, timeout=timeout * SLOW) as f:
                return f.status, _decode(f), f.headers
        except urllib.error.HTTPError as e:
            with e:
                return e.code, _decode(e), e.headers
        except OSError as e:
            if self.process.poll() not in (None, 0, -signal.SIGKILL, -signal.SIGTERM):
                raise AssertionError(f"{method} {path}: holtd died with {self.process.returncode}:\n{self.log()[-5000:]}") from e
            raise

    def ok(self, method, path, body=None, **more):
        status, reply, _ = self.request(method, path, body, **more)
        assert 200 <= status < 300, f"{method} {path}: {status} {reply}"
        return reply

    def ok_once_found(self, method, path, body=None):
        """As ok, of a sandbox from before this holtd's start: 503 until holtd has found it again."""
        def ask():
            status, reply, _ = self.request(method, path, body)
            if status == 503 and "has not found it again yet" in reply["error"]["message"]:
                return None
            assert 200 <= status < 300, f"{method} {path}: {status} {reply}"
            return (reply,)
        return wait_for(ask)[0]

    def clear(self):
        """No sandbox stays."""
        assert self.alive(), f"holtd died with {self.process.returncode}:\n{self.log()[-5000:]}"
        for box in self.ok("GET", "/holt/v1/sandboxes")["sandboxes"]:
            status, reply, _ = self.request("DELETE", f"/holt/v1/sandboxes/{box['id']}")
            assert status < 300 or status == 404, reply  # one that ends by itself may be faster

    def egress_pid(self):
        """Of its holt-egress; 0: none runs."""
        return next(programs_of(self.state, "holt-egress"), 0)

    def new_token(self, name, role="operator"):
        return self.ok("POST", "/holt/v1/tokens", {"name": name, "role": role})

    def assert_alive(self):
        assert self.alive(), f"holtd died with {self.process.returncode}:\n{self.log()[-5000:]}"
        assert self.request("GET", "/healthz", token=None)[0] == 200


def native(directory, *args, env=None, **more):
    """One with real sandboxes: native ones, or those of the runtime in HOLT_RUNTIME (CONTRIBUTING.md).
    The leak check ends what a sanitized holt-spawn clones before it is init."""
    options = environment()["ASAN_OPTIONS"] + ":detect_leaks=0"
    runtime = os.environ.get("HOLT_RUNTIME", "native")
    named = {} if runtime == "crun" else {"SANDBOX_RUNTIME": runtime}  # unset would be gVisor's; agentbox has no crun
    return Holtd(directory, "--runtime", runtime, *args, env={"ASAN_OPTIONS": options, **named, **(env or {})}, **more)


def _decode(f):
    raw = f.read()
    if "json" in f.headers.get("Content-Type", ""):
        return json.loads(raw) if raw else None
    return raw.decode(errors="replace")


def can_freeze(holtd):
    """Whether a sandbox that runs can have a snapshot: not where it has no cgroup of its own (docs/snapshots.md)."""
    box = holtd.ok("POST", "/holt/v1/sandboxes", {})["id"]
    status = holtd.request("POST", f"/holt/v1/sandboxes/{box}/snapshots", {"name": "trial"})[0]
    holtd.request("DELETE", f"/holt/v1/sandboxes/{box}")
    holtd.request("DELETE", f"/holt/v1/snapshots/{box}@trial")
    return status != 501


NO_FREEZE = "sandboxes have no cgroup of their own here: snapshots only of stopped ones"


def all_events(holtd, **query):
    """Every event, page by page, as the list operation gives them."""
    since, found = 0, []
    more = "".join(f"&{k}={v}" for k, v in query.items())
    while True:
        page = holtd.ok("GET", f"/holt/v1/events?since={since}&limit=1000{more}")["events"]
        if not page:
            return found
        found += page
        since = page[-1]["seq"]
