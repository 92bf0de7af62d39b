"""Flags, environment, file: who wins, and what a mistake is told."""
import json
import os
import re
import signal
import socket
import subprocess

import pytest

from daemon import BUILD, ROOT, Holtd, environment, free_ports, wait_for


def run(*args, env=None, **more):
    return subprocess.run([f"{BUILD}/holtd", *args], capture_output=True, text=True, timeout=60, env=environment(env),
                          stdin=subprocess.DEVNULL, **more)


def refused(tmp_path, *args, env=None):
    r = run("--state", f"{tmp_path}/state", *args, env=env)
    assert r.returncode not in (0, 99) and r.returncode > 0, r.stdout + r.stderr
    return r.stdout + r.stderr


def settings(d):
    return d.ok("GET", "/holt/v1/settings")


def test_help_version_and_printed_settings():
    assert "--listen" in run("--help").stdout
    assert re.search(r"\d+\.\d+\.\d+", run("--version").stdout)
    r = run("--print-settings")
    assert r.returncode == 0 and "listen" in r.stdout


@pytest.mark.parametrize("flag", ["--listen", "--state", "--db", "--auth", "--config", "--log-level", "--log-format",
                                  "--seed-ports", "--env-file"])
def test_help_names_every_flag(flag):
    assert flag in run("--help").stdout


def test_unknown_flag(tmp_path):
    said = refused(tmp_path, "--lisen", "127.0.0.1:0")
    assert "--lisen" in said and "--listen" in said, "and what was probably meant"


def test_flag_without_value(tmp_path):
    assert "--listen" in refused(tmp_path, "--listen")


@pytest.mark.parametrize("flag, value", [("--auth", "maybe"), ("--log-level", "loud"), ("--log-format", "xml"),
                                         ("--listen", "nonsense"), ("--listen", "127.0.0.1:99999")])
def test_bad_flag_value(tmp_path, flag, value):
    said = refused(tmp_path, flag, value)
    assert value in said and (flag in said or flag.strip("-").replace("-", "_") in said), said


def test_unknown_key_in_the_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "holt.yaml"
    path.write_text("log_level: info\n\nlisten_adress: x\n")
    said = refused(tmp_path, "--config", str(path))
    assert "listen_adress" in said and f"{path}:3" in said, said


def test_bad_value_in_the_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "holt.yaml"
    path.write_text("log_level: info\nconnections_max: many\n")
    said = refused(tmp_path, "--config", str(path))
    assert "connections_max" in said and f"{path}:2" in said and "many" in said, said


@pytest.mark.parametrize("text", ["a: [", "- a\n- b\n", "\t: x", "a: *nobody\n", "listen: {a: b}\n", "\0\1\2"])
def test_broken_file(tmp_path, text):
    path = tmp_path / "holt.yaml"
    path.write_text(text)
    assert str(path) in refused(tmp_path, "--config", str(path))


def test_missing_file(tmp_path):
    said = refused(tmp_path, "--config", f"{tmp_path}/none.yaml")
    assert f"{tmp_path}/none.yaml" in said and "No such file" in said


def test_unknown_environment_variable(tmp_path):
    said = refused(tmp_path, "--listen", "127.0.0.1:0", env={"HOLT_LOG_LEVL": "info"})
    assert "HOLT_LOG_LEVL" in said


def test_bad_environment_value(tmp_path):
    said = refused(tmp_path, "--listen", "127.0.0.1:0", env={"HOLT_LOG_LEVEL": "loud"})
    assert "HOLT_LOG_LEVEL" in said and "loud" in said


def test_flag_beats_environment_beats_file(new_holtd):
    d = new_holtd("--log-level", "error", config="log_level: warn\nlog_format: json\nlogin_failures: 7\n",
                  env={"HOLT_LOG_LEVEL": "debug", "HOLT_LOG_FORMAT": "logfmt"})
    text = json.dumps(settings(d))
    assert '"error"' in text and '"logfmt"' in text
    assert '"warn"' not in text


def test_env_file_stands_below_the_environment(new_holtd, tmp_path):
    (tmp_path / "env").write_text("# a comment\nHOLT_LOG_LEVEL=debug\nHOLT_LOG_FORMAT=json\n")
    d = new_holtd("--env-file", f"{tmp_path}/env", env={"HOLT_LOG_LEVEL": "error"})
    text = json.dumps(settings(d))
    assert '"error"' in text and '"json"' in text and '"debug"' not in text


def test_sighup_reloads_what_is_reloadable(new_holtd):
    d = new_holtd(config="log_level: info\n")
    with open(f"{d.directory}/holt.yaml", "w", encoding="utf-8") as f:
        f.write("log_level: debug\n")
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: '"debug"' in json.dumps(settings(d)), 60)
    with open(f"{d.directory}/holt.yaml", "w", encoding="utf-8") as f:
        f.write("log_level: nonsense\n")
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "nonsense" in d.log(), 60)
    d.assert_alive()
    assert '"debug"' in json.dumps(settings(d)), "a bad file changes nothing"


def test_auth_off_only_on_loopback(tmp_path):
    said = refused(tmp_path, "--auth", "off", "--listen", "0.0.0.0:0")
    assert "auth" in said and "0.0.0.0" in said and "127.0.0.1" in said


def test_auth_off_says_so(new_holtd):
    d = new_holtd("--auth", "off")
    assert d.request("GET", "/holt/v1/info", token=None)[0] == 200
    assert "auth" in (d.text + d.log()).lower()


def test_the_start_line_says_where_how_and_what_next(holtd):
    assert f"127.0.0.1:{holtd.port}" in holtd.text
    assert "admin-token" in holtd.text or "login" in holtd.text
    assert len(re.findall(r"\bholt \w+|curl ", holtd.text)) >= 3, holtd.text


def test_busy_port_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as s:
        busy = s.getsockname()[1]
        said = refused(tmp_path, "--listen", f"127.0.0.1:{busy}")
        assert str(busy) in said and "in use" in said


def test_listen_addr_opens_three_ports_and_skips_a_busy_one(tmp_path):
    base = next(p for p in free_ports(20) if all(_is_free(p + i) for i in range(3)))
    with socket.create_server(("127.0.0.1", base + 1)):
        d = Holtd(tmp_path, env={"LISTEN_ADDR": f"127.0.0.1:{base}"}, port=None)
        try:
            for p in (base, base + 2):
                socket.create_connection(("127.0.0.1", p), 5).close()
            assert str(base + 1) in d.log() + d.text, "the busy port is named"
        finally:
            assert d.stop() == 0


def _is_free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def test_seed_ports(tmp_path):
    seeds = [8080, 8120, 8121, 8122, 50051, 5173]
    free = [p for p in seeds if _is_free(p)]
    if not free:
        pytest.skip("every seed port is in use here")
    d = Holtd(tmp_path, "--seed-ports")
    try:
        for p in free:
            socket.create_connection(("127.0.0.1", p), 5).close()
        for p in set(seeds) - set(free):
            assert str(p) in d.log() + d.text, "a busy port is named and skipped"
        url, d.port = d.port, free[0]
        # Without a token: the identity of the setting, an operator, never an admin.
        assert d.request("GET", "/holt/v1/info", token=None)[0] == 200
        assert d.request("POST", "/holt/v1/tokens", {"name": "x", "role": "admin"}, token=None)[0] in (401, 403)
        # A browser's page from elsewhere is not that operator.
        assert d.request("GET", "/holt/v1/info", token=None, headers={"Origin": "https://evil.example"})[0] == 403
        d.port = url
        assert d.request("GET", "/holt/v1/info", token=None)[0] == 401, "other listeners still ask"
    finally:
        assert d.stop() == 0


def test_ipv6(new_holtd):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 loopback here")
    port = free_ports()[0]
    new_holtd(listen=[f"[::1]:{port}"])
    socket.create_connection(("::1", port), 5).close()


def test_alias_names_of_the_environment(new_holtd):
    d = new_holtd(env={"LOG_FORMAT": "json", "RUST_LOG": "debug"})
    text = json.dumps(settings(d))
    assert '"json"' in text and '"debug"' in text


def test_json_log_lines_are_json(new_holtd):
    d = new_holtd("--log-format", "json", "--log-level", "debug")
    d.request("GET", "/healthz", token=None, headers={"X-Evil": 'a"b\\c'})
    d.stop()
    lines = [x for x in d.log().splitlines() if x.strip()]
    assert lines
    for line in lines:
        json.loads(line)


def test_printed_files_are_fresh():
    for flag, path in (("--print-openapi", "api/openapi.json"), ("--print-settings-doc", "docs/settings.md")):
        r = run(flag)
        assert r.returncode == 0
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            assert f.read() == r.stdout, f"{path} is stale: run 'make api'"
