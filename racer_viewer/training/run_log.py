"""The files that a run tells its story in, beside its checkpoints.

Writing a run's story while it happens."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from racer_viewer.training.run_log_reader import EVENT, LAPS, POLICY, RUN_LOG_FILE, SPEED, UPDATE, RunLogReader

KEPT_LINES = 10_000
"""That wait where the disk is full; beyond that the oldest are lost."""
LAPS_SECONDS = 0.25
"""Laps are written together, at most so often."""


class RunLog:
    """Appends to a run's live.jsonl. A disk that is full loses nothing for a while, and never ends the run.

    steps: that the run goes on from; what was written of a time after them, before a crash, is taken back by readers.
    on_problem: hears of a disk that cannot be written to, since the file itself cannot tell then.
    """

    def __init__(self, folder: Path, steps: int = 0, on_problem: Callable[[str], None] = lambda text: None) -> None:
        self._path, self.on_problem = folder / RUN_LOG_FILE, on_problem
        before = RunLogReader(folder)
        before.read_all()
        self.known = {event.kind for event in before.history.events if event.steps <= steps}
        """Kinds of events that there were before."""
        self._before = before.seconds_at(steps)
        self._begin = time.monotonic()
        self._paused_at: float | None = None
        self._file: BinaryIO | None = None
        self._waiting: list[bytes] = []
        self._laps: list[list[float]] = []
        self._sectors: list[list[float | None]] = []
        self._laps_written = 0.0
        self._last_update = (steps, self._before)
        self._steps, self._failed = steps, False

    @property
    def seconds(self) -> float:
        """Since the run began, without pauses."""
        now = time.monotonic() if self._paused_at is None else self._paused_at
        return self._before + now - self._begin

    def event(self, kind: str, text: str, steps: int, **more: Any) -> None:
        """Something happened; see `racer_viewer.run_history.Event`."""
        self.known.add(kind)
        self._write({"what": EVENT, **self._when(steps), "kind": kind, "text": text, **more})

    def update(self, values: Mapping[str, float], steps: int) -> None:
        """The figures of an update of the policy, and how fast it went since the one before."""
        values = {name: value for name, value in values.items() if math.isfinite(value)}
        before, seconds = self._last_update
        if steps > before and self.seconds > seconds:
            values[SPEED] = (steps - before) / (self.seconds - seconds)
            self._last_update = (steps, self.seconds)
        self._write({"what": UPDATE, **self._when(steps), "values": values})

    def laps(self, times: Sequence[float], steps: int, circuits: Sequence[int] | None = None) -> None:
        """Times [s] of laps that were finished. circuits: number of each one's, if that is known."""
        self._laps += [[steps, round(time, 4), *_number(circuits, row)] for row, time in enumerate(times)]

    def sectors(self, rows: Sequence[Sequence[float]], steps: int, circuits: Sequence[int] | None = None) -> None:
        """Times [s] of the thirds of laps; NaN for those that were not driven as a whole."""
        for number, row in enumerate(rows):
            times = (None if math.isnan(time) else round(time, 4) for time in row)
            self._sectors.append([steps, *times, *_number(circuits, number)])

    def network(self, layout: Mapping[str, Any]) -> None:
        self._write(dict(layout))

    def policy(self, steps: int, offset: int) -> None:
        self._write({"what": POLICY, "steps": steps, "offset": offset})

    def pause(self, steps: int) -> None:
        self._paused_at = time.monotonic()
        self.event("paused", "Paused", steps)

    def resume(self, steps: int) -> None:
        if self._paused_at is not None:
            self._begin += time.monotonic() - self._paused_at
            self._paused_at = None
        self.event("resumed", "Goes on", steps)

    def tick(self) -> None:
        """Write the laps that wait, if it is time."""
        if (self._laps or self._sectors) and time.monotonic() - self._laps_written > LAPS_SECONDS:
            self._write_laps()

    def close(self) -> None:
        self._write_laps()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write_laps(self) -> None:
        if self._laps or self._sectors:
            self._laps_written = time.monotonic()
            laps, sectors, self._laps, self._sectors = self._laps, self._sectors, [], []
            self._write({"what": LAPS, "laps": laps, "sectors": sectors})

    def _when(self, steps: int) -> dict[str, Any]:
        self._steps = steps
        return {"steps": steps, "seconds": round(self.seconds, 6)}

    def _write(self, content: Mapping[str, Any]) -> None:
        self._waiting.append(_line(content))
        try:
            if self._file is None:
                self._file = _open_for_appending(self._path)
            # After a failure half a line may be there, which a new one ends.
            self._file.write((b"\n" if self._failed else b"") + b"".join(self._waiting))
        except OSError as error:
            del self._waiting[:-KEPT_LINES]
            if not self._failed:
                self._failed = True
                self._tell_of_failure(f"could not write {self._path.name}: {error.strerror or error}; the run goes on")
        else:
            self._waiting.clear()
            self._failed = False

    def _tell_of_failure(self, text: str) -> None:
        """At once to those who look, and in the file when it can be written again."""
        self._waiting.append(_line({"what": EVENT, **self._when(self._steps), "kind": "problem", "text": text}))
        self.on_problem(text)


def _number(circuits: Sequence[int] | None, row: int) -> list[int]:
    return [] if circuits is None else [int(circuits[row])]


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def _open_for_appending(path: Path) -> BinaryIO:
    """Unbuffered, so that a line is there when it was written; a last line that was cut off is ended first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("ab", buffering=0)
    if path.is_file() and path.stat().st_size:
        with path.open("rb") as before:
            before.seek(-1, 2)
            if before.read(1) != b"\n":
                file.write(b"\n")
    return file
