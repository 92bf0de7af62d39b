"""holtd as a process: its state directory, its manager, its signals, its sockets."""
import http.client
import os
import re
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest

from daemon import ASAN, BUILD, Holtd, environment, native, wait_for


def refused(*args):
    r = subprocess.run([f"{BUILD}/holtd", "--listen", "127.0.0.1:0", *args], capture_output=True, text=True, timeout=60,
                       env=environment(), stdin=subprocess.DEVNULL)
    assert r.returncode not in (0, 99) and r.returncode > 0, r.stdout + r.stderr
    return r.stderr


def test_the_state_directory_is_private(new_holtd):
    d = new_holtd()
    assert stat.S_IMODE(os.stat(d.state).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(f"{d.state}/admin-token").st_mode) == 0o600
    assert re.fullmatch(r"holt_[A-Za-z0-9_-]{43}\n", open(f"{d.state}/admin-token", encoding="ascii").read())


def test_an_idle_one_is_small(new_holtd):
    """What only some need is loaded or made when they ask: libpq and the libraries behind it, the text of OpenAPI."""
    d = new_holtd()
    with open(f"/proc/{d.pid}/maps", encoding="ascii") as f:
        libraries = set(re.findall(r"/(lib[a-z0-9_-]+)\.so", f.read()))
    assert "libsqlite3" in libraries and not libraries & {"libpq", "libgnutls", "libldap", "libkrb5"}
    with open(f"/proc/{d.pid}/smaps_rollup", encoding="ascii") as f:
        heap = int(re.search(r"^Private_Dirty:\s+(\d+) kB", f.read(), re.M).group(1))
    assert ASAN or heap < 4096, f"{heap} KiB"
    assert d.ok("GET", "/holt/v1/openapi.json")["openapi"].startswith("3.")


def test_a_directory_that_others_may_write_is_refused(tmp_path):
    state = tmp_path / "open"
    state.mkdir()
    state.chmod(0o777)
    said = refused("--state", str(state))
    assert str(state) in said and "chmod 700" in said


def test_a_file_is_no_state_directory(tmp_path):
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in refused("--state", str(tmp_path / "file"))


def test_a_symbolic_link_as_the_lock_is_refused(tmp_path):
    state = tmp_path / "state"
    state.mkdir(0o700)
    (tmp_path / "victim").write_text("precious")
    (state / "lock").symlink_to(tmp_path / "victim")
    refused("--state", str(state))
    assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.parametrize("abstract", [False, True])
def test_a_service_manager_is_told(tmp_path, abstract):
    name = f"\0holt-notify-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(name)
        s.settimeout(60)
        d = Holtd(tmp_path / "d", env={"NOTIFY_SOCKET": name.replace("\0", "@")})
        assert s.recv(1000) == b"READY=1"
        d.process.send_signal(signal.SIGHUP)
        assert re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=\d+", s.recv(1000))
        assert s.recv(1000) == b"READY=1"
        assert d.stop() == 0
        assert s.recv(1000) == b"STOPPING=1"


def test_a_manager_that_is_gone_is_no_trouble(new_holtd):
    assert new_holtd(env={"NOTIFY_SOCKET": "/nowhere/notify"}).stop() == 0


def test_sighup_under_load_drops_nothing(holtd):
    c = http.client.HTTPConnection("127.0.0.1", holtd.port, timeout=60)
    for _ in range(50):
        holtd.process.send_signal(signal.SIGHUP)
        c.request("GET", "/holt/v1/tokens/self", headers={"Authorization": f"Bearer {holtd.token}"})
        r = c.getresponse()
        assert r.status == 200 and r.read()
    c.close()


def test_a_broken_file_at_sighup_changes_nothing(new_holtd):
    d = new_holtd(config="metrics: true\n")
    with open(f"{d.directory}/holt.yaml", "w", encoding="utf-8") as f:
        f.write("metrics: [\n")
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "settings were not changed" in d.log())
    assert d.request("GET", "/metrics")[0] == 200
    with open(f"{d.directory}/holt.yaml", "w", encoding="utf-8") as f:
        f.write("metrics: false\n")
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: d.request("GET", "/metrics")[0] == 404)


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(new_holtd, which):
    d = new_holtd()
    d.process.send_signal(which)
    assert d.process.wait(60) == 0


def test_a_request_under_way_is_finished(new_holtd):
    d = new_holtd()
    with socket.create_connection(("127.0.0.1", d.port), 60) as s:
        s.sendall(f"POST /holt/v1/tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {d.token}\r\n"
                  "Content-Type: application/json\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\n".encode())
        assert s.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"  # it has the head
        d.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        s.sendall(b'{"name":"x"}')
        assert s.recv(65536).startswith(b"HTTP/1.1 201 ")
    assert d.process.wait(60) == 0


def test_a_restart_is_no_disconnect(tmp_path):
    """Of a client whose command dies with its connection: holtd has cut that off, not the client."""
    d = native(tmp_path, "--shutdown-ms", "100")
    box = f"/holt/v1/sandboxes/{d.ok('POST', f'/holt/v1/sandboxes', {})['id']}"
    asked = threading.Thread(target=lambda: pytest.raises(
        (OSError, http.client.HTTPException), d.request, "POST", f"{box}/execs", {"command": "sleep 300", "cancel_on_disconnect": True}))
    asked.start()
    x = wait_for(lambda: d.ok("GET", f"{box}/execs?state=running")["execs"])[0]["id"]
    d.process.terminate()
    assert d.process.wait(30) == 0
    asked.join()
    d = native(tmp_path, port=d.port)
    found = d.ok("GET", f"{box}/execs/{x}")
    assert (found["state"], found["cancelled"]) == ("running", False), found
    assert d.ok("POST", f"{box}/execs/{x}/cancel")["exit_code"] == 137, "init has it, and it ran until now"
    d.clear()
    assert d.stop() == 0


def test_a_unix_socket(new_holtd, tmp_path):
    path = str(tmp_path / "holt.sock")
    d = new_holtd(listen=[f"unix:{path}"])
    assert f"unix:{path}" in d.text
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.sendall(f"GET /holt/v1/info HTTP/1.1\r\nHost: any.name\r\nAuthorization: Bearer {d.token}\r\n\r\n".encode())
        assert s.recv(65536).startswith(b"HTTP/1.1 200 ")
        s.sendall(b"GET /holt/v1/info HTTP/1.1\r\nHost: any.name\r\n\r\n")
        assert s.recv(65536).startswith(b"HTTP/1.1 401 "), "a socket is no identity"


def test_nobody_reads_the_banner(tmp_path):
    """A closed standard output must not end the daemon."""
    r, w = os.pipe()
    os.close(r)
    p = subprocess.Popen([f"{BUILD}/holtd", "--listen", "127.0.0.1:0", "--state", str(tmp_path / "s")], stdout=w,
                         stderr=subprocess.PIPE, env=environment(), stdin=subprocess.DEVNULL)
    os.close(w)
    try:
        assert any(b"msg=ready" in p.stderr.readline() for _ in range(100))
        time.sleep(0.2)
        assert p.poll() is None
    finally:
        p.terminate()
        assert p.wait(60) == 0
        p.stderr.close()


def test_no_outgoing_call(new_holtd, tmp_path):
    """strace sees no connect() but to the service manager's socket, which there is none of here."""
    if subprocess.run(["sh", "-c", "command -v strace"], capture_output=True, check=False).returncode:
        pytest.skip("strace is not installed: make deps")
    env = environment()
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # it does not work under strace
    trace = tmp_path / "trace"
    p = subprocess.Popen(["strace", "-f", "-e", "trace=connect,sendto,sendmsg", "-o", str(trace), f"{BUILD}/holtd",
                          "--listen", "127.0.0.1:0", "--state", str(tmp_path / "s")], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, env=env, stdin=subprocess.DEVNULL)
    try:
        wait_for(lambda: b"Try, " in p.stdout.readline())
        time.sleep(1.5)
    finally:
        with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as f:
            for child in f.read().split():
                os.kill(int(child), signal.SIGTERM)
        p.wait(60)
        p.stdout.close()
    assert "connect(" not in trace.read_text()
