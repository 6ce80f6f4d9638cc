"""Records survive processes that are killed while entering them."""

import random
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from racer_viewer.replays import trace_replay
from racer_viewer.replays.records import Records
from tests.replays.record_child import ALL
from tests.replays.replay_drives import RING

MAX_KILL_DELAY = 0.02
"""Maximum delay of the kill after the last expected line [s]; entering a record takes about a third of it."""
KILLED = 1 if sys.platform == "win32" else -9
ROOT = Path(__file__).parents[2]


def start_child(path: Path, name: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.replays.record_child", str(path), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def kill_after_some_records(child: "subprocess.Popen[str]", chance: random.Random) -> list[str]:
    """Kill a process after some records; return the records that it reported."""
    assert child.stdout is not None
    reported = [child.stdout.readline().strip() for _ in range(chance.randint(1, 20))]
    Event().wait(chance.uniform(0.0, MAX_KILL_DELAY))
    child.kill()
    rest, _ = child.communicate()
    assert child.returncode == KILLED, "it ended by itself"
    return reported + [line.strip() for line in rest.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_kill_at_any_time_loses_no_entered_record(tmp_path: Path, rounds: int) -> None:
    path, chance, reported = tmp_path / "records.db", random.Random(), list[str]()
    for attempt in range(rounds):
        for child in [start_child(path, f"{attempt}{letter}") for letter in "abc"]:
            reported += kill_after_some_records(child, chance)
        entries = Records(path).top(RING, ALL)
        assert set(reported) <= {entry.driver for entry in entries}
    records = Records(path)
    for entry in entries:
        assert trace_replay(records.replay_of(entry)).mismatch is None
    assert records.notice is None
    set_aside = {file.name for file in tmp_path.iterdir()} - {"records.db", "records.db-journal"}
    assert not set_aside  # an empty journal stays until the next record
