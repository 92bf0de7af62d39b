"""The tools that guard the tree: each must find what it is there to find."""
import importlib.machinery
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys

from waiting import wait_for

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))


def tree(tmp_path, files):
    for path, text in files.items():
        p = tmp_path / path
        p.parent.mkdir(parents=True, exist_ok=True)
        p.write_text(text)
    return tmp_path


def layers(tmp_path, files):
    root = tree(tmp_path, files)
    r = subprocess.run(
        [sys.executable, f"{ROOT}/tools/check-layers", str(root)], capture_output=True, text=True)
    return r.returncode, r.stdout


def test_layers_accepts_includes_that_point_down(tmp_path):
    status, out = layers(tmp_path, {
        "src/net/conn.h": '#include "proto/http.h"\n#include <uv.h>\n',
        "src/net/conn.c": '/* conn: x. */\n#include "net/conn.h"\n\n#include "base/buf.h"\n#include <stdio.h>\n',
        "src/api/a.c": '/* a: x. */\n#include "core/event/event.h"\n#include "net/xchg.h"\n',
    })
    assert (status, out) == (0, "")


def refused(tmp_path, path, text, words):
    status, out = layers(tmp_path, {path: text})
    assert status == 1
    assert f"{path}:1:" in out and words in out


def test_layers_refuses_an_include_that_points_up(tmp_path):
    refused(tmp_path, "src/base/buf.c", '#include "net/conn.h"\n', "may not include src/net")


def test_layers_refuses_net_and_core_including_each_other(tmp_path):
    refused(tmp_path, "src/net/a.c", '#include "core/event/event.h"\n', "may not include src/core")
    refused(tmp_path, "src/core/a.c", '#include "net/server.h"\n', "may not include src/net")


def test_layers_keeps_the_rooms_of_core_and_api_apart(tmp_path):
    refused(tmp_path, "src/core/team/a.c", '#include "core/sandbox/sandbox.h"\n', "src/core/team may not include src/core/sandbox")
    refused(tmp_path, "src/core/blob.c", '#include "core/team/team.h"\n', "src/core may not include src/core/team")
    refused(tmp_path, "src/api/share/a.c", '#include "api/native/run.h"\n', "src/api/share may not include src/api/native")
    refused(tmp_path, "src/api/native/a.c", '#include "api/dialects/dialect.h"\n', "src/api/native may not include src/api/dialects")
    refused(tmp_path, "src/api/dialects/x/a.c", '#include "api/dialects/y/y.h"\n', "a dialect may not include another")
    refused(tmp_path, "src/store/a.c", '#include "core/event/event_internal.h"\n', "is private to src/core/event")
    refused(tmp_path, "src/core/cellar/a.c", '#include "core/store.h"\n', "is not a room of the design")


def test_architecture_has_the_table_of_rooms():
    with open(f"{ROOT}/ARCHITECTURE.md", encoding="utf-8") as f:
        rows = re.findall(r"^\| `((?:core|api)/\w+)` \|(.*)\|$", f.read(), re.M)
    assert {name: set(re.findall(r"`([^`]+)`", may)) for name, may in rows} == load("check-layers").ROOMS


def test_layers_keeps_settings_out_of_core(tmp_path):
    refused(tmp_path, "src/core/a.c", 'int f(const struct config *c);\n', "knows no settings")


def test_architecture_has_the_table_of_folders():
    may = load("check-layers").MAY_INCLUDE
    with open(f"{ROOT}/ARCHITECTURE.md", encoding="utf-8") as f:
        rows = re.findall(r"^\| (`src/\w+`(?:, `src/\w+`)*) \| (\d?) ?\| .* \|(.*)\|$", f.read(), re.M)
    layer = {name: int(n) for names, n, _ in rows if n for name in re.findall(r"src/(\w+)", names)}
    meant = {"core and below": {n for n in layer if layer[n] <= layer["core"]}, "libc": set()}
    for names, n, what in rows:
        below = {"all below": {x for x in layer if n and layer[x] < int(n)}}
        said = {**meant, **below}.get(what.strip(), set(re.findall(r"\w+", what)) & set(may))
        for name in re.findall(r"src/(\w+)", names):
            assert said == may[name], name
    assert {x for names, _, _ in rows for x in re.findall(r"src/(\w+)", names)} == set(may)


def test_layers_keeps_the_privileged_part_small(tmp_path):
    refused(tmp_path, "src/spawn/a.c", '#include "proto/json.h"\n', "may not include src/proto")
    refused(tmp_path, "src/init/a.c", '#include "proto/json.h"\n', "may not include src/proto")


def test_layers_keeps_io_out_of_the_codecs(tmp_path):
    refused(tmp_path, "src/proto/a.c", "#include <uv.h>\n", "may only be used in")
    refused(tmp_path, "src/api/a.c", "#include <sqlite3.h>\n", "may only be used in")


def test_layers_refuses_relative_includes(tmp_path):
    refused(tmp_path, "src/base/a.c", '#include "../net/conn.h"\n', "write includes from src/ on")


def test_layers_wants_the_own_header_first(tmp_path):
    status, out = layers(tmp_path, {
        "src/base/buf.h": "#pragma once\n",
        "src/base/buf.c": '#include <stdio.h>\n#include "base/buf.h"\n',
    })
    assert status == 1 and "own header first" in out


def test_layers_wants_a_line_that_says_what_a_source_is(tmp_path):
    words = "opens with one line that says what it is"
    refused(tmp_path, "src/base/a.c", "#include <stdio.h>\n", words)
    refused(tmp_path, "src/api/native/b.c", "/* two lines are\n * one too many */\n#include <stdio.h>\n", words)
    refused(tmp_path, "src/core/c.c", "", words)
    good = {"src/base/a.c": "/* a: adds. */\n#include <stdio.h>\n", "src/base/b.h": "#pragma once\n"}
    assert layers(tmp_path / "good", good) == (0, "")


def test_layers_refuses_an_unknown_folder(tmp_path):
    refused(tmp_path, "src/utils/a.c", "\n#include <stdio.h>\n", "not a folder of the design")


def test_layers_refuses_paths_of_a_machine(tmp_path):
    home = "/" + "home/somebody/x"
    refused(tmp_path, "docs/a.md", f"see {home}\n", "names a machine's path")
    refused(tmp_path, "docs/b.md", "see /" + "work/main\n", "names a machine's path")
    host = "registry." + "npmjs.org"
    refused(tmp_path, "docs/c.md", f"from {host}\n", "package host")


def test_layers_allows_paths_inside_a_sandbox(tmp_path):
    assert layers(tmp_path, {"docs/a.md": "/workspace, sb/work/ex_1, /home and /root\n"})[0] == 0


def test_layers_wants_every_fuzz_target_built_and_seeded(tmp_path):
    status, out = layers(tmp_path, {"tests/fuzz/fuzz_x.c": "", "tests/fuzz/meson.build": ""})
    assert status == 1
    assert "is not in tests/fuzz/meson.build" in out and "has no corpus" in out


def test_format_finds_a_badly_formatted_file(tmp_path):
    bad = tmp_path / "bad.c"
    bad.write_text("int  main( void ){return 0;}\n")
    r = subprocess.run(
        [f"{ROOT}/.venv/bin/clang-format", "--dry-run", "--Werror", f"--style=file:{ROOT}/.clang-format", str(bad)],
        capture_output=True)
    assert r.returncode != 0


def load(tool):
    """A tool in Python as a module."""
    name = tool.replace("-", "_")
    loader = importlib.machinery.SourceFileLoader(name, f"{ROOT}/tools/{tool}")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def run_tests():
    return load("run-tests")


def totals(*again):
    """A run in which each of these tests failed; each is the answers of its further runs, or None."""
    t = run_tests().Totals()
    t.add("good", True)
    for i, answers in enumerate(again):
        t.add(f"bad{i}", False, "", answers and iter(answers).__next__)
    t.look_again()
    return t


def test_a_failure_counts_unless_it_passes_twice_alone():
    t = totals([True, True], [True, False], [False])
    assert (t.line(), t.unsteady, list(t.failures)) == ("2 passed, 2 failed", ["bad0"], ["bad1", "bad2"])
    assert totals(None).line() == "1 passed, 1 failed"  # no test but a build, or a sanitizer's finding
    assert totals(*[[True, True]] * 4).line() == "1 passed, 4 failed"  # too many to be accidents


def compat(tmp_path, rows):
    root = tree(tmp_path, {
        "docs/compatibility.md": "| id | promise | state | shown by |\n| --- | --- | --- | --- |\n" + rows,
        "tests/integration/test_a.py": "def test_one():\n    pass\n",
        "tests/unit/test_b.c": "cmocka_unit_test(two),\n",
    })
    r = subprocess.run(
        [sys.executable, f"{ROOT}/tools/check-compat", str(root)], capture_output=True, text=True)
    return r.returncode, r.stdout


def test_compat_wants_a_test_for_each_promise_that_is_kept(tmp_path):
    good = "| S1-001 | a | yes | `test_a::one`, `test_b.c::two` |\n| X-2 | b | not yet | |\n"
    assert compat(tmp_path, good) == (0, "")
    for row, words in (
            ("| S1-001 | a | yes | `test_a::gone` |", "there is no test test_a::gone"),
            ("| S1-001 | a | yes | |", "names no test"),
            ("| S1-001 | a | partly: b is to come | |", "names no test"),
            ("| S1-001 | a | maybe | `test_a::one` |", "not a row"),
            ("| X-2 | again | yes | `test_a::one` |", "X-2 stands twice"),
            ):
        status, out = compat(tmp_path, good.replace("S1-001", "S1-009") + row + "\n")
        assert status == 1 and words in out, (row, out)
    assert compat(tmp_path, "")[0] == 1


def docs(tmp_path, files):
    r = subprocess.run([sys.executable, f"{ROOT}/tools/check-docs", str(tree(tmp_path, files))],
                       capture_output=True, text=True)
    return r.returncode, r.stdout


EXAMPLE = "# A\n\n```sh\nholt ps\n```\n\n"


def test_docs_accepts_what_is_written_as_agreed(tmp_path):
    assert docs(tmp_path, {
        "docs/a.md": EXAMPLE + "See [B](b.md#two-words) and [the top](#a).\n\n| " + "wide " * 40 + "|\n"
                     + f"[a link](https://holt.example/{'x' * 120})\n",
        "docs/b.md": EXAMPLE + "## Two words\n\n" + "line\n" * 6 + "\n- item\n  more\n- item\n" + "  more\n" * 5,
        "ARCHITECTURE.md": "# A\n\n`src/base/err.c` has them; `test_cli.py` shows it.\n",
        "README.md": EXAMPLE + "<!-- figures: docs/benchmarks.md -->\n| run | 3.91 ms |\n\nend\n",
        "docs/benchmarks.md": "| run | 3.91 ms |\n",
        "docs/runtime.md": EXAMPLE + "## The steps\n\n| step | why |\n| --- | --- |\n| ids | b |\n| clone | d |\n\n## End\n",
        "src/spawn/setup.c": '    {"ids",  SETUP_AHEAD, step_ids},\n    {"clone",  SETUP_CLAIM, step_clone},\n',
        "docs/events.md": EXAMPLE + "| type |\n| --- |\n| box.made, .gone |\n| run.begun, .over |\n",
        "src/core/box/box.c": 'put("box.made"); put("box.gone"); open("key.pub");\n',
        "src/core/box/run.c": 'snprintf(type, n, "run.%s", name);\n    [RUN_BEGUN] = {"begun", 0},\n    [RUN_OVER]  = {"over", 0},\n',
        "src/api/dialects/x/x.c": 'put("other.system");\n',
    }) == (0, "")
    for path, text, words in (
            ("docs/a.md", EXAMPLE + "word " * 21 + "\n", "has 105 columns"),
            ("docs/a.md", EXAMPLE + "line\n" * 7, "more than 6 lines"),
            ("docs/a.md", EXAMPLE + "- item\n" + "  more\n" * 6, "more than 6 lines"),
            ("docs/a.md", EXAMPLE + "[B](c.md)\n", "'c.md', which is not there"),
            ("docs/a.md", EXAMPLE + "[B](b.md#three)\n", "no heading has that anchor"),
            ("docs/a.md", EXAMPLE + "as in `src/base/err.c`\n", "names a source or test ('src/b')"),
            ("docs/a.md", EXAMPLE + "as `test_cli` shows\n", "names a source or test ('test_cli')"),
            ("docs/a.md", "# A\n\nMany words.\n", "no example within its first 25 lines"),
            ("README.md", EXAMPLE + "<!-- figures: docs/benchmarks.md -->\n| run | 3.90 ms |\n\nend\n", "says '3.90 ms'"),
            ("src/spawn/setup.c", '    {"ids",  SETUP_AHEAD, step_ids},\n', "row 'clone' where src/spawn/setup.c has the step 'None'"),
            ("src/core/box/box.c", 'put("box.moved");\n', "does not name the event 'box.moved' of src/core/box/box.c"),
            ("docs/events.md", EXAMPLE + "| box.made, .gone, .over |\n| run.begun |\n", "does not name the event 'run.over'"),
            ):
        kept = (tmp_path / path).read_text()
        status, out = docs(tmp_path, {path: text})
        assert status == 1 and words in out, (path, words, out)
        (tmp_path / path).write_text(kept)


def test_build_says_what_it_does(tmp_path):
    """Outside a terminal a line per tenth, and the compilers' words; it fails with ninja."""
    rows = "".join(f"build a{i}: touch\n" for i in range(40))
    tree(tmp_path, {
        "bin/meson": "#!/bin/sh\nmkdir -p $2 && cp rules $2/build.ninja\n",
        "rules": "rule touch\n  command = touch $out; [ $out != a7 ] || echo careful\nrule fail\n  command = false\n"
                 f"{rows}build programs: phony {' '.join(f'a{i}' for i in range(40))}\nbuild broken: fail\n",
        "tools/x": "",
    })
    (tmp_path / "bin/meson").chmod(0o755)
    shutil.copy(f"{ROOT}/tools/build", tmp_path / "tools/build")

    def build(target):
        env = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "JOBS": "1"}
        r = subprocess.run([tmp_path / "tools/build", "out", target], env=env, capture_output=True, text=True)
        return r.returncode, r.stdout

    status, out = build("programs")
    lines = out.splitlines()
    assert status == 0 and lines[:2] == ["build: configuring out with meson", "build: programs: 40 steps, 1 at once; about a minute on two cores"]
    assert "careful" in lines and "build: programs, 20 of 40 steps" in lines and lines[-1] == "build: programs, 40 of 40 steps"
    assert len(lines) == 13, out
    assert build("programs") == (0, "")
    assert build("broken")[0] != 0


def test_dev_builds_and_starts_again_on_a_change(tmp_path):
    """A tree of its own whose "holtd" is made by copying a source."""
    tree(tmp_path, {
        "meson.build": "",
        "src/holtd.c": "#!/bin/sh\necho one >>started; exec sleep 60\n",
        "build/build.ninja": "rule copy\n  command = cp $in $out && chmod +x $out\n"
                             "build holtd: copy ../src/holtd.c\nbuild programs: phony holtd\n",
        "tools/x": "",
    })
    shutil.copy(f"{ROOT}/tools/dev", tmp_path / "tools/dev")
    started = tmp_path / "started"
    p = subprocess.Popen(
        [tmp_path / "tools/dev", "build"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: started.exists() and started.read_text() == "one\n")
        (tmp_path / "src/holtd.c").write_text("#!/bin/sh\necho two >>started; exec sleep 60\n")
        wait_for(lambda: started.read_text() == "one\ntwo\n")
    finally:
        p.terminate()
        p.wait(timeout=30)


def test_every_script_parses():
    for name in sorted(os.listdir(f"{ROOT}/tools")):
        path = f"{ROOT}/tools/{name}"
        with open(path, encoding="utf-8") as f:
            first = f.readline()
        if "bash" in first:
            subprocess.run(["bash", "-n", path], check=True)
        elif "python" in first:
            subprocess.run([sys.executable, "-c", f"import ast; ast.parse(open({path!r}).read())"], check=True)


def test_every_migration_is_built_in():
    with open(f"{ROOT}/src/store/meson.build", encoding="utf-8") as f:
        listed = re.findall(r"'migrations/(\w+\.sql)'", f.read())
    assert listed == sorted(os.listdir(f"{ROOT}/src/store/migrations"))
    assert [int(name[:4]) for name in listed] == list(range(1, len(listed) + 1))


def test_make_help_names_every_public_target():
    out = subprocess.run(["make", "-s", "-C", ROOT, "help"], capture_output=True, text=True, check=True).stdout
    for target in ("build build-all deps run dev test test-runtimes check bench fmt fuzz soak install uninstall").split():
        assert f"make {target} " in out


def paths(root):
    r = subprocess.run([sys.executable, f"{ROOT}/tools/check-paths", str(root)], capture_output=True, text=True)
    return r.returncode, r.stdout


def copy_of_spawn(tmp_path):
    folder = f"{ROOT}/src/spawn"
    files = {}
    for name in os.listdir(folder):
        with open(f"{folder}/{name}", encoding="utf-8") as f:
            files[f"src/spawn/{name}"] = f.read()
    return tree(tmp_path, files)


def test_paths_finds_a_plain_path_in_a_step(tmp_path):
    root = copy_of_spawn(tmp_path)
    assert paths(root) == (0, "")
    step = root / "src/spawn/step_trust.c"
    for call in ('mkdir("/etc", 0755)', 'rename(a, b)', "openat(AT_FDCWD, name, 0)", "syscall(SYS_openat2, root, name, &how, 24)"):
        step.write_text(step.read_text() + f"\nstatic void evil(void)\n{{\n    (void){call};\n}}\n")
        status, out = paths(root)
        assert status == 1 and "step_trust.c" in out and "evil" in out
        step.write_text(step.read_text().rsplit("\nstatic void evil", 1)[0])
    assert paths(root) == (0, "")


def test_paths_keeps_its_table_exact(tmp_path):
    root = copy_of_spawn(tmp_path)
    (root / "src/spawn/netns.c").write_text("")
    status, out = paths(root)
    assert status == 1 and "uses no path any more" in out


APT = """#!/bin/bash
case "$*" in
*update*) ;;
*Debug::NoLocking=1*--assume-no*)
    [ -e silent ] || printf '%s\\n' '0 upgraded, 286 newly installed, 0 to remove and 3 not upgraded.' \
        'Need to get 75.5 MB/187 MB of archives.' 'After this operation, 790 MB of additional disk space will be used.'
    exit 1 ;;
*--assume-no*)
    echo 'E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?' >&2
    exit 100 ;;
*) echo "$*" >installed ;;
esac
"""


def test_deps_says_how_much_before_it_installs(tmp_path):
    """apt as an ordinary user meets it: the lock is root's, and only sudo may install."""
    programs = {"apt-get": APT, "dpkg-query": "#!/bin/sh\n", "sudo": '#!/bin/sh\n[ "$1" = -n ] && shift\nexec "$@"\n'}
    tree(tmp_path, {f"bin/{name}": text for name, text in programs.items()})
    for name in programs:
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "tools").mkdir()
    shutil.copy(f"{ROOT}/tools/deps", tmp_path / "tools/deps")

    def deps():
        env = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
        return subprocess.run([tmp_path / "tools/deps", "run"], env=env, capture_output=True, text=True, check=True).stderr

    assert deps() == "deps: installing uidmap curl: 286 packages, 75.5 MB to fetch, 790 MB on disk\n"
    assert (tmp_path / "installed").read_text().endswith(" uidmap curl\n")
    (tmp_path / "silent").touch()
    assert deps() == "deps: installing uidmap curl: apt does not say how much\n"


def test_a_part_is_run_by_its_own_target_alone():
    """A marked test is in `make test-PART`, and in no step of `make test`."""
    seen = []
    module = run_tests()
    module.pytest = lambda t, prefix, argv, *more: seen.append((prefix, argv[argv.index("-m") + 1]))
    module.meson_tests = lambda t, directory, scale=3, part=None: seen.append(("meson", part))
    module.build = lambda *more: True
    module.on_runtimes = lambda t: seen.append(("on each runtime", "all"))
    for name in ("unit", "asan", "integration", "integration-postgres", "integration-asan", "security"):
        module.STEPS[name](None)
    assert len(seen) == 6 and all(what is None or "not runtimes" in what for _, what in seen), seen
    seen.clear()
    module.STEPS["runtimes"](None)
    assert seen == [("meson", "runtimes"), ("on each runtime", "all"), ("integration, runtimes", "runtimes"), ("security, runtimes", "runtimes")]
    for part in module.PARTS:
        out = subprocess.run(["make", "-n", "-C", ROOT, f"test-{part}"], capture_output=True, text=True, check=True).stdout
        assert f"run-tests --part {part}" in out


def below_the_reaper(tmp_path, script):
    """Starts a step of run-tests that leaves a daemon as holt-spawn does; (process, the daemon's pid)."""
    (tmp_path / "step").write_text(
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        f"        open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()) + '\\n')\n"
        "        time.sleep(1000)\n"
        "    os._exit(0)\n"
        "os.wait()\n" + script)
    p = subprocess.Popen([sys.executable, f"{ROOT}/tests/tools/reaper.py", sys.executable, tmp_path / "step"], stderr=subprocess.PIPE,
                         text=True, start_new_session=True)
    wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
    return p, int((tmp_path / "pid").read_text())


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_a_step_that_is_cut_off_leaves_no_daemon(tmp_path):
    p, daemon = below_the_reaper(tmp_path, "time.sleep(1000)\n")
    assert not is_gone(daemon)
    p.terminate()
    assert p.wait(30) == 143 and is_gone(daemon)
    p.stderr.close()


def test_a_step_that_ends_leaves_no_daemon(tmp_path):
    p, daemon = below_the_reaper(tmp_path, "sys.exit(7)\n")
    assert p.wait(30) == 7 and is_gone(daemon)
    assert p.stderr.read().startswith("reaper: left behind, ended: 1 python")
    p.stderr.close()


def test_a_run_that_is_killed_leaves_no_daemon(tmp_path):
    """Whoever limits the time of `make test` kills it without a word."""
    (tmp_path / "slow.py").write_text(
        "import subprocess, sys, time\n"
        f"p = subprocess.Popen(['setsid', 'sleep', '1000']); open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid) + '\\n'); time.sleep(1000)\n")
    script = (f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); import test_tools\n"
              f"test_tools.run_tests().run([sys.executable, {str(tmp_path / 'slow.py')!r}], 1000, quiet=True)\n")
    p = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
    daemon = int((tmp_path / "pid").read_text())
    assert not is_gone(daemon)
    os.killpg(p.pid, signal.SIGKILL)
    p.wait()
    wait_for(lambda: is_gone(daemon))


def test_a_step_that_takes_too_long_is_ended_as_a_whole(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import subprocess, time\n"
        f"p = subprocess.Popen(['setsid', 'sleep', '1000']); open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid)); time.sleep(1000)\n")
    status, text = run_tests().run([sys.executable, tmp_path / "slow.py"], 3, quiet=True)
    assert (status, text) == (None, "took longer than 3 s")
    assert is_gone(int((tmp_path / "pid").read_text()))


def steps(rows, needs):
    """Runs steps that do as rows says ({name: passes}); (the order in which they began, totals)."""
    module, began = run_tests(), []

    def make(name, passes):
        def one(t):
            began.append(name)
            t.add(name, passes)
            return passes
        return one

    module.STEPS = {name: make(name, passes) for name, passes in rows.items()}
    module.NEEDS = needs
    t = module.Totals()
    module.Run(t, list(rows)).all()
    return began, t


def test_a_step_waits_for_what_it_needs():
    began, t = steps({"user": True, "build": True, "free": True}, {"user": "build"})
    assert sorted(began) == ["build", "free", "user"] and began.index("user") > began.index("build")
    assert t.line() == "3 passed, 0 failed"
    began, t = steps({"user": True, "build": False, "free": True}, {"user": "build"})
    assert sorted(began) == ["build", "free"] and list(t.failures) == ["build", "user"]


def test_the_slowest_tests_are_named():
    t = run_tests().Totals()
    for i in range(30):
        t.add(f"t{i}", True, seconds=float(i))
    assert len(t.slowest()) == 20 and t.slowest()[0] == "  29.0 s  t29" and "t9" not in " ".join(t.slowest())


def test_lint_reads_again_only_what_has_changed(tmp_path):
    deps = "".join(f"{n}.o: #deps 2, deps mtime 1 (VALID)\n    ../src/base/{n}.c\n    ../src/base/{n}.h\n    /usr/include/stdio.h\n\n" for n in "ab")
    tree(tmp_path, {
        **{f"src/base/{n}": "" for n in ("a.c", "a.h", "b.c", "b.h", "c.c")},  # of c.c ninja knows nothing
        ".clang-tidy": "", "deps": deps, ".gitignore": "calls\n.cache\n",
        "bin/ninja": "#!/bin/sh\ncat deps\n",
        ".venv/bin/clang-tidy": "#!/bin/sh\n[ $1 = --version ] && exit\nfor f; do :; done\necho $f >>calls\n"
                                "! grep -H BAD $f\n",
    })
    for name in ("bin/ninja", ".venv/bin/clang-tidy"):
        (tmp_path / name).chmod(0o755)
    (tmp_path / "tools").mkdir()
    shutil.copy(f"{ROOT}/tools/lint", tmp_path / "tools/lint")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    env = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}

    def lint():
        """(status, what it said, the names of what it read)"""
        (tmp_path / "calls").write_text("")
        r = subprocess.run([tmp_path / "tools/lint", "build"], env=env, capture_output=True, text=True)
        assert r.stderr == ""
        return r.returncode, r.stdout, sorted(os.path.basename(p) for p in (tmp_path / "calls").read_text().split())

    assert lint() == (0, "", ["a.c", "b.c", "c.c"])
    assert lint() == (0, "", [])
    (tmp_path / "src/base/a.h").write_text("int a;\n")
    assert lint() == (0, "", ["a.c", "c.c"])
    (tmp_path / "src/base/b.c").write_text("BAD\n")
    for _ in range(2):
        assert lint() == (1, "src/base/b.c:BAD\n", ["b.c"])
    (tmp_path / ".clang-tidy").write_text("Checks: '*'\n")
    assert lint()[2] == ["a.c", "b.c", "c.c"]


def dialects(tmp_path, files):
    native = {"src/conf/settings.c": "agentbox-sandbox:latest\n", "src/core/policy/policy.h": "fluid-defaults\n",
              "src/agent/a.c": "agentic_sandbox\n", "src/kube/exec.c": '"v5.channel.k8s.io"\n'}
    for path in ("src/net/s.c", "src/ops/traits.h", "src/core/sandbox/a.c", "src/driver/d.c", "src/wire/spawn.h", "src/virt/m.c", "src/spawn/a.c", "src/init/m.c"):
        native[path] = "bool hub; /* and a hub of streams */\n"
    for name in ("agentbox", "agentic", "fluid", "hub", "k8s", "sbx"):
        native[f"src/api/dialects/{name}/{name}.c"] = f"void {name}_run(void);\n"
    root = tree(tmp_path, {**native, **files})
    r = subprocess.run([sys.executable, f"{ROOT}/tools/check-dialects", str(root)], capture_output=True, text=True)
    return r.returncode, r.stdout


def test_dialects_are_named_in_their_folders_only(tmp_path):
    assert dialects(tmp_path, {"src/api/dialects/table.c": "&dialect_hub, &dialect_sbx\n"}) == (0, "")
    for path, text, name in (("src/api/api.c", '#include "api/dialects/sbx/sbx.h"\n', "sbx"), ("src/daemon/d.c", "c->sbx_cache\n", "sbx"),
                             ("src/api/api.c", "if (hub_owns(path))\n", "hub"), ("src/core/sandbox/b.c", "hub_fail(r);\n", "hub"),
                             ("src/egress/gate.c", 'STR("agentbox/")\n', "agentbox"), ("src/net/x.c", "/* as Agentbox has it */\n", "agentbox")):
        status, out = dialects(tmp_path, {path: text})
        assert status == 1 and f"{path}:1: names the dialect '{name}'" in out, (path, text, out)
        (tmp_path / path).unlink()


def test_dialects_allow_nothing_that_nobody_needs(tmp_path):
    status, out = dialects(tmp_path, {"src/conf/settings.c": "nothing\n"})
    assert status == 1 and "where nothing needs it" in out
