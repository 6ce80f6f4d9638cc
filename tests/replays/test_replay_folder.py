"""Replay folders: files are listed at once and read in portions."""

import os
from dataclasses import replace
from pathlib import Path

from racer_viewer.replays import ReplayFacts, ReplayFolder, save_replay
from tests.replays.replay_drives import DATE, ring_run


def saved(folder: Path, name: str, age: int, driver: str = "Anna") -> Path:
    """Save a replay file that appears to be so many seconds old."""
    path = folder / f"{name}.racer"
    save_replay(replace(ring_run(), driver=driver), path)
    os.utime(path, (1e9 - age, 1e9 - age))
    return path


def test_the_newest_is_first_and_read_first(tmp_path: Path) -> None:
    old, new, middle = saved(tmp_path, "b", 30), saved(tmp_path, "c", 10), saved(tmp_path, "a", 20)
    (tmp_path / ".half-written.racer").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("nothing to see")
    folder = ReplayFolder(tmp_path)
    assert folder.paths == [new, middle, old]
    assert folder.facts(new) is None
    assert folder.read_some(0.0) == [new]
    assert folder.facts(middle) is None
    assert folder.read_some(60.0) == [middle, old]
    assert folder.read_some(60.0) == []


def test_facts_are_those_of_the_replay(tmp_path: Path) -> None:
    run = ring_run()
    path = saved(tmp_path, "lap", 0)
    folder = ReplayFolder(tmp_path)
    folder.read_some(1.0)
    expected = ReplayFacts("Ring", "Anna", min(run.laps), len(run.laps), run.ticks, DATE, None)
    assert folder.facts(path) == expected


def test_a_file_that_cannot_be_read_has_a_reason_and_the_others_are_read(tmp_path: Path) -> None:
    broken, fine = tmp_path / "broken.racer", saved(tmp_path, "fine", 10)
    broken.write_bytes(fine.read_bytes()[:100])
    folder = ReplayFolder(tmp_path)
    folder.read_some(60.0)
    assert folder.facts(broken) == "is damaged or truncated"
    assert isinstance(folder.facts(fine), ReplayFacts)


def test_only_what_is_new_is_read_again(tmp_path: Path) -> None:
    same, changed, gone = saved(tmp_path, "same", 30), saved(tmp_path, "changed", 20), saved(tmp_path, "gone", 10)
    folder = ReplayFolder(tmp_path)
    folder.read_some(60.0)
    gone.unlink()
    saved(tmp_path, "changed", 5, driver="Bob")
    added = saved(tmp_path, "added", 0)
    folder.refresh()
    assert folder.paths == [added, changed, same]
    assert folder.read_some(60.0) == [added, changed]
    facts = folder.facts(changed)
    assert isinstance(facts, ReplayFacts)
    assert facts.driver == "Bob"


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert ReplayFolder(tmp_path / "replays").paths == []
