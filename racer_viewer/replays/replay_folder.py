"""The replay files in a folder and what is in each, read little by little while a window goes on."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from racer_viewer.replays.replay import Replay, ReplayError
from racer_viewer.replays.replay_file import SUFFIX, load_replay


@dataclass(frozen=True)
class ReplayFacts:
    """What a list shows of a replay; times in ticks. A list of many keeps these, not the replays."""

    circuit: str
    driver: str
    best_lap: int | None
    laps: int
    ticks: int
    date: datetime
    other_engine: str | None
    """As `Replay.other_engine`."""


@dataclass(frozen=True)
class _File:
    """A file as it was when the folder was looked through. One that was written since is another."""

    path: Path
    written: int
    """[ns]"""
    size: int


class ReplayFolder:
    """Looked through when it is made and on `refresh`. A folder that is not there has no files.

    paths: newest first.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[Path, _File] = {}
        self._read: dict[_File, ReplayFacts | str] = {}
        self._unread: list[_File] = []
        self.refresh()

    @property
    def paths(self) -> list[Path]:
        return list(self._files)

    def refresh(self) -> None:
        """Look through the folder again; what was read and is still the same is not read again."""
        found = (_file(path) for path in self.folder.glob(f"*{SUFFIX}") if not path.name.startswith("."))
        files = sorted(filter(None, found), key=lambda file: (-file.written, file.path.name))
        self._files = {file.path: file for file in files}
        self._read = {file: self._read[file] for file in files if file in self._read}
        self._unread = [file for file in reversed(files) if file not in self._read]

    def read_some(self, seconds: float) -> list[Path]:
        """Read on, the newest first, at least one file and then until so much time has passed; those that were read."""
        end = time.perf_counter() + seconds
        paths: list[Path] = []
        while self._unread and (not paths or time.perf_counter() < end):
            file = self._unread.pop()
            self._read[file] = _facts_or_problem(file.path)
            paths.append(file.path)
        return paths

    def facts(self, path: Path) -> ReplayFacts | str | None:
        """Of one of `paths`: what is in it, or what is wrong with it; None as long as it was not read."""
        return self._read.get(self._files[path])


def _file(path: Path) -> _File | None:
    """None if it went away meanwhile."""
    try:
        status = path.stat()
    except OSError:
        return None
    return _File(path, status.st_mtime_ns, status.st_size)


def _facts_or_problem(path: Path) -> ReplayFacts | str:
    try:
        return _facts(load_replay(path))
    except ReplayError as error:
        return str(error).removeprefix(f"{path}: ")


def _facts(replay: Replay) -> ReplayFacts:
    return ReplayFacts(
        replay.circuit.name,
        replay.driver,
        min(replay.laps, default=None),
        len(replay.laps),
        replay.ticks,
        replay.date,
        replay.other_engine,
    )
