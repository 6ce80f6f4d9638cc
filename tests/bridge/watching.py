"""Looking at a server process from outside: its memory, its log, and waiting for what must happen."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LIMIT_SECONDS = 20.0
MEGABYTE = 2**20


def eventually(condition: Callable[[], bool], what: str, seconds: float = LIMIT_SECONDS) -> None:
    """Wait for a condition, but not for ever."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"not within {seconds:g} s: {what}"
        time.sleep(0.01)


def memory_of(process_id: int) -> int:
    """Bytes that a process has in memory, where the system tells."""
    try:
        pages = Path(f"/proc/{process_id}/statm").read_text().split()[1]
    except OSError:
        pytest.skip("the memory of other processes can be read on Linux only")
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def events(log: Path, event: str) -> list[dict[str, Any]]:
    """The lines of a log that tell of an event, parsed."""
    lines = [json.loads(line[line.index("{") :]) for line in log.read_text().splitlines() if '{"event":' in line]
    return [line for line in lines if line["event"] == event]


def logged(log: Path, event: str, number: int = 1) -> list[dict[str, Any]]:
    """The same, as soon as there are so many."""
    eventually(lambda: len(events(log, event)) >= number, f"{number} × {event} in the log")
    return events(log, event)
