"""Completion in zsh and fish, and the manual pages: what `make install` gives a person's shell."""
import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from daemon import BUILD, environment

HOLT = f"{BUILD}/holt"
needs_zsh = pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
needs_fish = pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
needs_groff = pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")


class Lists(BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"sandboxes": [{"id": "sb_1", "name": "build"}, {"id": "sb_2", "name": "other"}], "cursor": None}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def names():
    """A server that lists two sandboxes, whoever asks."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Lists)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def alone(tmp_path, names):
    return environment({"HOME": str(tmp_path), "HOLT_SERVER": names, "HOLT_TOKEN": "holt_x", "TERM": "dumb", "LANG": "C.UTF-8",
                        "PATH": f"{BUILD}:{os.environ['PATH']}"})


LINES = [  # typed, a word that it becomes
    ("holt tok", "token"),
    ("holt token cre", "create"),
    ("holt token create x --ten", "--tenant"),
    ("holt token create x --role op", "operator"),
    ("holt token create x --role=op", "--role=operator"),
    ("holt exec bu", "build"),
    ("holt cp oth", "other:"),
]


@needs_fish
@pytest.mark.parametrize("typed, word", LINES)
def test_fish_completes(alone, typed, word):
    r = subprocess.run(["fish", "--no-config", "-c", f"holt completion fish | source; complete -C {json.dumps(typed)}"],
                       capture_output=True, text=True, timeout=60, env=alone, check=False)
    assert (r.returncode, r.stderr) == (0, "")
    assert [line.split("\t")[0] for line in r.stdout.splitlines()] == [word]


@needs_fish
def test_fish_offers_files_where_holt_has_nothing_to_say(alone, tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    r = subprocess.run(["fish", "--no-config", "-c", "holt completion fish | source; complete -C 'holt image import no'"],
                       capture_output=True, text=True, timeout=60, env=alone, cwd=tmp_path, check=False)
    assert [line.split("\t")[0] for line in r.stdout.splitlines()] == ["notes.txt"], r.stderr


class Zsh:
    """An interactive zsh on a terminal of its own."""

    def __init__(self, env, cwd):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe("zsh", ["zsh", "-f", "-i"], env)
        self.seen = ""

    def until(self, text):
        deadline = time.monotonic() + 60
        while text not in self.seen:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.seen!r}"
            if select.select([self.fd], [], [], 1)[0]:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")

    def say(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


@contextlib.contextmanager
def zsh(env, cwd, how):
    shell = Zsh(env, cwd)
    try:
        shell.say("PS1='> '; unsetopt zle_bracketed_paste; autoload -U compinit\n")
        shell.say(how + "; echo rea''dy\n")
        shell.until("ready")
        yield shell
    finally:
        shell.end()


SOURCED = "compinit -D -u; source <(holt completion zsh)"
INSTALLED = "mkdir site; holt completion zsh > site/_holt; fpath=($PWD/site $fpath); compinit -D -u"


@needs_zsh
@pytest.mark.parametrize("how", [SOURCED, INSTALLED], ids=["sourced", "installed"])
def test_zsh_completes(alone, tmp_path, how):
    """Each line is completed by a Tab and run as an argument of echo: what zsh made of it is then printed."""
    with zsh(alone, tmp_path, how) as shell:
        for n, (typed, word) in enumerate(LINES):
            # accept-line would run it: the buffer is printed instead
            shell.say(f"print-it{n}() {{ zle -I; print -r -- \"<{n}:$BUFFER>\"; BUFFER=; }}; zle -N print-it{n}; bindkey '^X' print-it{n}; "
                      f"echo bound{n}''!\n")
            shell.until(f"bound{n}!")
            shell.say(typed + "\t\x18")
            shell.until(f"<{n}:{typed.rsplit(' ', 1)[0]} {word}")


def pages():
    return subprocess.run([HOLT, "man"], capture_output=True, text=True, timeout=60, env=environment(), check=True).stdout.split()


def roff(page):
    return subprocess.run([HOLT, "man", page], capture_output=True, text=True, timeout=60, env=environment(), check=True).stdout


@needs_groff
def test_manual_pages_have_no_warnings_and_every_verb_and_setting():
    found = pages()
    assert {"holt.1", "holt-sandbox.1", "holt-exec.1", "holt-machine.1", "holtd.8"} <= set(found)
    shown = {}
    for page in found:
        source = roff(page)
        assert not re.search(r"^\.S[HS] .*\n\.PP$", source, re.M), f"{page}: a paragraph after a heading, which begins one itself"
        r = subprocess.run(["groff", "-ww", "-mandoc", "-Tutf8", "-Kutf8", "-rLL=78n"], input=source, capture_output=True, text=True,
                           timeout=60, env={**environment(), "GROFF_NO_SGR": "1"}, check=True)
        assert r.stderr == "", f"{page}: {r.stderr}"
        shown[page] = re.sub(".\x08", "", r.stdout)  # bold is printed twice
    verbs = subprocess.run([HOLT, "--help"], capture_output=True, text=True, timeout=60, env=environment(), check=True).stdout
    verbs = {line[2:].split("  ")[0] for line in verbs.splitlines() if line[:2] == "  " and line[2:3].isalpha() and not line.startswith("  holt ")}
    assert len(verbs) > 80
    everything = "".join(shown.values())
    for verb in verbs:
        assert f"holt {verb}" in everything, verb
    settings = subprocess.run([f"{BUILD}/holtd", "--print-settings"], capture_output=True, text=True, timeout=60, env=environment(), check=True).stdout
    for line in settings.splitlines():
        flag = "--" + line.removeprefix("# ").split(":")[0].split(" ")[0].replace("_", "-")
        assert flag in shown["holtd.8"], flag


def test_a_page_that_is_not_there_is_named():
    r = subprocess.run([HOLT, "man", "holt-nonsense"], capture_output=True, text=True, timeout=60, env=environment(), check=False)
    assert r.returncode == 2 and "holt-nonsense" in r.stderr and "`holt man` lists the pages" in r.stderr
