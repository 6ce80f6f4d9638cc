"""Waiting for conditions with a deadline."""

import time
from collections.abc import Callable
from threading import Event

TIMEOUT = 90.0
"""Default limit for a condition to become true [s]."""
POLL_INTERVAL = 0.02
"""Time between two checks of a condition [s]."""


def wait_until(condition: Callable[[], object], what: str, timeout: float = TIMEOUT) -> None:
    """Check a condition until it is true; fail after the timeout, naming what was waited for."""
    end, pause = time.monotonic() + timeout, Event()
    while not condition():
        assert time.monotonic() < end, f"waited {timeout:g} s for {what}"
        pause.wait(POLL_INTERVAL)
