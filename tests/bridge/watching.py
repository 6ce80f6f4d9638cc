"""Observation of a server process from outside: its memory and its log."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.processes import wait_for

MEGABYTE = 2**20


def memory_of(process_id: int) -> int:
    """Return the resident memory of a process [bytes]; skip the test where it cannot be read."""
    try:
        pages = Path(f"/proc/{process_id}/statm").read_text().split()[1]
    except OSError:
        pytest.skip("the memory of other processes can be read on Linux only")
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def events(log: Path, event: str) -> list[dict[str, Any]]:
    """Return the parsed log lines of an event."""
    lines = [json.loads(line[line.index("{") :]) for line in log.read_text().splitlines() if '{"event":' in line]
    return [line for line in lines if line["event"] == event]


def logged(log: Path, event: str, number: int = 1) -> list[dict[str, Any]]:
    """Wait for a number of log lines of an event and return all of them."""
    wait_for(lambda: len(events(log, event)) >= number, f"{number} × {event} in the log")
    return events(log, event)
