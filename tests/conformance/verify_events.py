#!/usr/bin/env python3
"""A stranger's verifier, written from docs/events.md alone; usage: verify_events.py FILE.db"""
import hashlib
import sqlite3
import struct
import sys


def event_hash(prev, seq, time_ms, audit, times, texts):
    head = prev + b"holt-event-1" + struct.pack(">QQBQ", seq, time_ms, audit, times)
    return hashlib.sha256(head + b"".join(struct.pack(">Q", len(t)) + t for t in texts)).digest()


def verify(path):
    db = sqlite3.connect(path)
    db.text_factory = bytes
    at, before, head, head_hash = db.execute(
        "SELECT anchor_seq, anchor_hash, head_seq, head_hash FROM chain WHERE id = 1").fetchone()
    count = 0
    for seq, ms, audit, times, prev, have, *texts in db.execute(
            "SELECT seq, time_ms, audit, times, prev, hash, type, object, actor, data FROM events ORDER BY seq"):
        if seq != at + (1000000 if texts[0] == b"system.epoch" else 1) or prev != before:
            sys.exit(f"event {seq} does not follow event {at}")
        if event_hash(prev, seq, ms, audit, times, texts) != have:
            sys.exit(f"event {seq} was altered")
        at, before, count = seq, have, count + 1
    if (at, before) != (head, head_hash):
        sys.exit(f"the log ends at {at}, its head is {head}")
    return count


if __name__ == "__main__":
    print(verify(sys.argv[1]), "events are whole")
