"""Waiting for what must come, on machines that may be slow; for the tests of all rooms."""
import os
import time

SLOW = float(os.environ.get("HOLT_SLOW", "1"))  # how much more time than here things may take: tools/v2-guest


def wait_for(what, limit=30.0, step=0.02):
    """Calls what() until it is true; its value, or AssertionError."""
    end = time.monotonic() + limit * SLOW
    while True:
        got = what()
        if got:
            return got
        assert time.monotonic() < end, f"did not happen within {limit * SLOW:g} s"
        time.sleep(step)
