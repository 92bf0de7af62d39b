"""The screen on the server against tmux: a program in a session, its output also fed into a pane of tmux, at the same sizes.
After each random step text and cursor are those that `tmux capture-pane` shows, at the same byte of the output; also after
kill -9 of holtd.  1,000 steps with HOLT_SOAK=1."""
import os
import random
import shutil
import subprocess
import tempfile
import time

import pytest

from daemon import SLOW, native
from session_client import API, Session

SOAK = os.environ.get("HOLT_SOAK") == "1"
STEPS = 1000 if SOAK else 100
ENV = {"PS1": "> ", "ENV": "", "LESS": "", "HISTFILE": ""}

# A full-screen program in the manner of today's agents: a box at the bottom, text that scrolls above it inside a region,
# a status line, colours, wide characters, drawn anew after each key and each size.
AGENT = r"""
import os, select, shutil, signal, sys, termios, tty
tty.setraw(0)
lines, box, size = [], '', [24, 80]
def draw(*_):
    size[1], size[0] = shutil.get_terminal_size()
    rows, cols = size
    out = ['\033[?2026h\033[?25l\033[H\033[2J']
    room = max(rows - 4, 1)
    for i, text in enumerate(lines[-room:]):
        out.append('\033[%d;1H\033[3%dm%s\033[0m' % (i + 1, 1 + i % 6, text[:cols]))
    if rows > 4 and cols > 4:
        out.append('\033[%d;1H\u256d%s\u256e' % (rows - 3, '\u2500' * (cols - 2)))
        out.append('\033[%d;1H\u2502 > %s' % (rows - 2, box[-(cols - 6):] if cols > 6 else ''))
        out.append('\033[%d;%dH\u2502' % (rows - 2, cols))
        out.append('\033[%d;1H\u2570%s\u256f' % (rows - 1, '\u2500' * (cols - 2)))
        out.append('\033[%d;1H\033[7m %d lines \033[0m\033[%d;%dH\033[?25h' % (rows, len(lines), rows - 2, min(len(box), max(cols - 6, 0)) + 5))
    out.append('\033[?2026l')
    os.write(1, ''.join(out).encode())
signal.signal(signal.SIGWINCH, draw)
os.write(1, b'\033[?1049h\033[?2004h\033]0;agent\007')
draw()
while True:
    try:
        key = os.read(0, 64).decode(errors='replace')
    except InterruptedError:
        continue
    for k in key:
        if k == '\r':
            lines.append('you said \u4e2d\u6587 e\u0301 ' + box)
            lines.extend('  answer %d of %s' % (i, box) for i in range(len(box) % 5))
            box = ''
        elif k == '\x7f':
            box = box[:-1]
        elif k >= ' ':
            box += k
    draw()
"""

TEXT = "".join(f"line {i}: the quick brown fox \t {'ä' * (i % 7)} 中文 {'x' * (i % 90)}\n" for i in range(200))
VIM = [["i"], ["Escape"], ["h"], ["j"], ["k"], ["l"], ["w"], ["b"], ["x"], ["d", "d"], ["p"], ["u"], ["o"], ["G"], ["g", "g"], ["C-f"], ["C-b"],
       ["Up"], ["Down"], ["C-v"], ["~"], ["Enter"], ["A"], ["中"], ["é"], ["/", "f", "o", "x", "Enter"], ["Tab"], ["C-w", "s"], ["C-w", "w"]]
LESS = [["Space"], ["b"], ["j"], ["k"], ["G"], ["g"], ["Down"], ["Up"], ["Right"], ["Left"], ["/", "f", "o", "x", "Enter"], ["n"], ["d"], ["u"]]
SHELL = [["e", "c", "h", "o", " ", "a", "中", "é", "Enter"], ["Tab"], ["BSpace"], ["C-a"], ["C-e"], ["l", "s", " ", "/", "Enter"], ["C-u"], ["Up"],
         ["x"] * 30, ["Left"], ["C-k"], ["C-l"], ["p", "r", "i", "n", "t", "f", " ", "'", "\\", "t", "z", "'", "Enter"]]
KEYS = [["a"], ["hello"], ["Enter"], ["BSpace"], ["中"], ["w"] * 40, ["q"]]
TMUX = [["C-b", "%"], ["C-b", '"'], ["C-b", "o"], ["C-b", "c"], ["C-b", "n"], ["l", "s", "Enter"], ["e", "c", "h", "o", " ", "中", "Enter"], ["x"], ["C-b", "z"]]

PROGRAMS = {
    "sh": (["bash", "--norc", "--noprofile"], SHELL, "bash"),
    "vim": (["vim", "-u", "NONE", "/tmp/text"], VIM, "vim"),
    "less": (["less", "/tmp/text"], LESS, "less"),
    "htop": (["htop", "--no-color", "-d", "1000"], [["F6", "Escape"], ["Down"], ["Up"], ["t"], ["F5"], ["I"]], "htop"),
    "tmux": (["tmux", "-L", "inner", "-f", "/dev/null", "new-session", "bash --norc --noprofile"], TMUX, "tmux"),
    "agent": (["python3", "-c", AGENT], KEYS, "python3"),
}


class Tmux:
    """A tmux server of this test with one pane, which shows the bytes that it is fed."""

    def __init__(self, rows, cols, directory):
        self.socket, self.marks, self.file = f"{directory}/tmux", 0, f"{directory}/fifo"
        os.mkfifo(self.file)
        with open(f"{directory}/conf", "w", encoding="utf-8") as f:
            f.write("set -g status off\nset -g default-terminal tmux-256color\nset -g escape-time 0\nset -g allow-rename on\n")
        self.env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": directory}
        self.run("-f", f"{directory}/conf", "new-session", "-d", "-x", str(cols), "-y", str(rows), "-s", "t",
                 f"stty raw -echo; exec cat {self.file}")
        self.pipe = open(self.file, "wb", buffering=0)

    def run(self, *args):
        return subprocess.run(["tmux", "-S", self.socket, *args], env=self.env, capture_output=True, check=True, text=True,
                              timeout=20 * SLOW).stdout

    def sync(self):
        """Until all that was fed is on its screen: a title comes last.  Only between sequences."""
        self.marks += 1
        self.pipe.write(b"\033]2;mark%d\033\\" % self.marks)
        end = time.monotonic() + 10 * SLOW
        while self.run("display-message", "-p", "-t", "t", "#{pane_title}").strip() != f"mark{self.marks}":
            assert time.monotonic() < end, "tmux does not show what it was fed"

    def resize(self, rows, cols):
        self.sync()
        self.run("resize-window", "-t", "t", "-x", str(cols), "-y", str(rows))

    def look(self):
        self.sync()
        out = self.run("capture-pane", "-p", "-t", "t", ";", "display-message", "-p", "-t", "t",
                       "#{cursor_y} #{cursor_x} #{pane_height} #{pane_width}")
        *rows, where = out.rstrip("\n").split("\n")
        row, col, height, width = map(int, where.split())
        rows = [r.rstrip() for r in rows][:height]
        # Behind the last column it waits outside in tmux, and at the edge here.
        return rows + [""] * (height - len(rows)), (row, min(col, width - 1)), (height, width)

    def close(self):
        self.pipe.close()
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.env, capture_output=True, timeout=20 * SLOW)


class Mirror:
    """A session, and the pane that gets its output."""

    def __init__(self, session, tmux, sizes):
        self.session, self.tmux, self.sizes, self.at = session, tmux, sizes, 0
        self.size = (session.made["rows"], session.made["cols"])
        self.attach()

    def attach(self):
        self.watch = self.session.watch(role="observer", stdout_offset=self.at)
        self.told = 0

    def feed(self, until, size):
        """The output up to this offset and this size, in the order in which they came."""
        end = time.monotonic() + 20 * SLOW
        while self.at < until or (self.at == until and self.size != size):
            assert time.monotonic() < end, (self.at, until)
            before = len(self.watch.output)
            self.watch.take(0.05)
            for m in self.watch.messages[self.told:]:
                if m["type"] == "size" and (m["rows"], m["cols"]) != self.size:
                    self.size = (m["rows"], m["cols"])
                    self.tmux.resize(*self.size)
            self.told = len(self.watch.messages)
            data = self.watch.output[before:]
            self.tmux.pipe.write(bytes(data))
            self.at += len(data)

    def ours(self):
        s = self.session.screen()
        return (s["text"].split("\n")[:-1], (s["cursor"]["row"], s["cursor"]["col"]), (s["rows"], s["cols"])), s["offset"]

    def compare(self):
        for _ in range(200):
            a, at = self.ours()
            self.feed(at, a[2])
            if self.at == at and self.size == a[2] and self.ours()[1] == at:
                break
        b = self.tmux.look()
        if a != b:
            rows = [f"{i}: holt {x!r}\n   tmux {y!r}" for i, (x, y) in enumerate(zip(a[0], b[0])) if x != y]
            raise AssertionError("\n".join([f"cursor {a[1]} {b[1]} size {a[2]} {b[2]}", *rows]))
        return a

    def act(self, rng, choices):
        if self.sizes and rng.random() < 0.12:
            rows, cols = rng.randint(8, 50), rng.randint(20, 120)
            self.session.resize(rows, cols)
            return f"size {rows} {cols}"
        did = rng.choice(choices)
        before = self.session.get()["output_bytes"]
        self.session.send(None, *(k for key in did for k in ([key] if len(key) == 1 or key[0].isupper() else list(key))))
        end = time.monotonic() + 0.3  # most keys show something
        while self.session.get()["output_bytes"] == before and time.monotonic() < end:
            time.sleep(0.01)
        return did


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_screen_is_the_one_that_tmux_shows(name, tmp_path_factory):
    command, choices, program = PROGRAMS[name]
    if not shutil.which("tmux") or not shutil.which(program):
        pytest.skip(f"tmux or {program} is not installed")
    directory, state = tempfile.mkdtemp(prefix="scr"), tmp_path_factory.mktemp("screens")
    seed = int(os.environ.get("HOLT_SOAK_SEED", random.randrange(1 << 30)))
    rng, steps = random.Random(seed), max(STEPS // len(PROGRAMS), 10)
    holtd, tmux, step, did = native(state), None, -1, "start"
    try:
        box = holtd.ok("POST", f"{API}/sandboxes", {})["id"]
        holtd.ok("PUT", f"{API}/sandboxes/{box}/files?path=/tmp/text", TEXT.encode(), headers={"Content-Type": "application/octet-stream"})
        session = Session(holtd, box, "it", command, rows=24, cols=80, env=ENV)
        session.wait_screen(lambda s: s["text"].strip())
        tmux = Tmux(24, 80, directory)
        both = Mirror(session, tmux, sizes=name != "sh")  # tmux wraps long lines anew, as few terminals do
        for step in range(steps):
            did = both.act(rng, choices)
            seen = both.compare()
            if step == steps // 2:
                at = both.at
                super(type(holtd), holtd).kill()
                holtd = session.holtd = native(state, port=holtd.port)
                both.attach()
                did = "kill -9 of holtd"
                after = both.compare()
                assert both.at != at or after == seen  # another place: it went on meanwhile
    except AssertionError as e:
        raise AssertionError(f"seed {seed}, step {step} of {name}: {did}\n{e}") from None
    finally:
        if tmux:
            tmux.close()
        holtd.clear()
        holtd.stop()
        shutil.rmtree(directory, ignore_errors=True)
