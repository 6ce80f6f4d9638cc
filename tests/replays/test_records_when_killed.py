"""Records survive a kill at any moment while several processes enter them."""

import random
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
from record_child import EVERY_ONE
from replay_drives import RING

from racer_viewer.replays import trace_replay
from racer_viewer.replays.records import Records

CHILD = Path(__file__).with_name("record_child.py")
LATEST_KILL = 0.02
"""After the last word that was waited for [s]: a record takes about a third of that."""
KILLED = 1 if sys.platform == "win32" else -9


def start_child(path: Path, name: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, str(CHILD), str(path), name], stdout=subprocess.PIPE, text=True)


def killed_after_a_while(child: "subprocess.Popen[str]", chance: random.Random) -> list[str]:
    """The records that the process said it had entered."""
    assert child.stdout is not None
    said = [child.stdout.readline().strip() for _ in range(chance.randint(1, 20))]
    Event().wait(chance.uniform(0.0, LATEST_KILL))
    child.kill()
    rest, _ = child.communicate()
    assert child.returncode == KILLED, "it ended by itself"
    return said + [line.strip() for line in rest.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_kill_at_any_moment_loses_no_record_that_was_entered(tmp_path: Path, rounds: int) -> None:
    path, chance, said = tmp_path / "records.db", random.Random(), list[str]()
    for attempt in range(rounds):
        for child in [start_child(path, f"{attempt}{letter}") for letter in "abc"]:
            said += killed_after_a_while(child, chance)
        entries = Records(path).top(RING, EVERY_ONE)
        assert set(said) <= {entry.driver for entry in entries}
    records = Records(path)
    for entry in entries:
        assert trace_replay(records.replay_of(entry)).mismatch is None
    assert records.notice is None
    set_aside = {file.name for file in tmp_path.iterdir()} - {"records.db", "records.db-journal"}
    assert not set_aside  # a journal without anything to undo stays until the next record
