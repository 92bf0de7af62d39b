"""The table of system calls (src/spawn/calls.c) against what a command in a sandbox finds."""
import errno
import subprocess

import boxes

TABLE = f"{boxes.BUILD}/tests/security/calls_table"


def table(*kind):
    """{question: (answer, name)}; a question is NR:A0:A1:A2, an answer `ok` or an errno's name."""
    out = subprocess.run([TABLE, *kind], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return {q: ("ok" if a == "0" else errno.errorcode[int(a)].replace("ENOTSUP", "EOPNOTSUPP"), name) for q, a, name in rows}


def walk(box):
    expected = table(*box.kind())
    questions = list(expected)
    seen = {}
    for i in range(0, len(questions), 400):
        r = box.run("/tmp/probe", "walk", *questions[i:i + 400])
        seen.update(line.split() for line in r.out.decode().splitlines())
    wrong = {q: (expected[q][1], seen.get(q)) for q in questions if seen.get(q) != expected[q][0]}
    assert not wrong, f"{len(wrong)} calls are not as the table says: {dict(list(wrong.items())[:20])}"
    assert sum(a == "ok" for a, _ in expected.values()) > 200
