"""Helpers for tests that start processes: whether one still runs, and waiting for a condition."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

TIMEOUT = 90.0
"""Time for a process to start and do something [s], on a busy machine."""
POLL_INTERVAL = 0.01
"""Time between two checks of a condition [s]."""


def process_exists(pid: int) -> bool:
    """Return True if there is a process with this id, running or not yet collected by its parent."""
    if sys.platform == "win32":
        listed = subprocess.run(["tasklist", "/FI", f"PID eq {pid}"], capture_output=True, text=True, check=True)
        return str(pid) in listed.stdout
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_gone(pid: int) -> bool:
    """Return True if a process has ended; it may still be a zombie."""
    if not process_exists(pid):
        return True
    if sys.platform == "linux":
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True
    if sys.platform == "win32":
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return state.stdout.strip()[:1] in ("", "Z")


def wait_for(condition: Callable[[], object], what: str = "a condition", timeout: float = TIMEOUT) -> None:
    """Wait until the condition is true; fail after the timeout [s]."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"waited {timeout:g} s for {what}"
        time.sleep(POLL_INTERVAL)
