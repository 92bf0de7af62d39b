"""Every attempt of attempts.py, against holt-spawn as root and as an ordinary user."""
import pytest

from attempts import ATTEMPTS, CALLS


@pytest.mark.parametrize("name", CALLS)
def test_call_is_refused(calls, name):
    assert calls[name] in CALLS[name], f"{name}: {calls[name]}"


def test_every_call_of_the_probe_is_judged(calls):
    assert set(calls) == set(CALLS)


@pytest.mark.parametrize("name", ATTEMPTS)
def test_attempt_fails(box, host, name):
    ATTEMPTS[name](box, host)
    assert box.alive()
    assert host.neighbour.alive()
