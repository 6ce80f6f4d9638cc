"""Run log writer: events, metrics, laps and policies of a run, appended to live.jsonl while it learns."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from racer_env.errors import os_reason
from racer_viewer.training.run_log_reader import EVENT, LAPS, POLICY, RUN_LOG_FILE, SPEED, UPDATE, RunLogReader

MAX_PENDING_LINES = 10_000
"""Maximum number of lines kept in memory while the disk is full; older lines are dropped."""
LAPS_INTERVAL = 0.25
"""Minimum time between two entries for laps [s]; laps in between are written together."""


class RunLog:
    """Writer of a run log. A full disk never ends the run: lines wait in memory until there is space again.

    steps: number of steps the run resumes from; readers discard older entries beyond it.
    on_problem: called with a message when the log cannot be written.
    known: kinds of all events so far.
    """

    def __init__(self, folder: Path, steps: int = 0, on_problem: Callable[[str], None] = lambda text: None) -> None:
        self._path, self.on_problem = folder / RUN_LOG_FILE, on_problem
        before = RunLogReader(folder)
        before.read_all()
        self.known = {event.kind for event in before.history.events if event.steps <= steps}
        self._seconds_before = before.seconds_at(steps)
        self._start = time.monotonic()
        self._paused_at: float | None = None
        self._file: BinaryIO | None = None
        self._pending: list[bytes] = []
        self._laps: list[list[float]] = []
        self._sectors: list[list[float | None]] = []
        self._laps_written = 0.0
        self._last_update = (steps, self._seconds_before)
        self._steps, self._failed = steps, False

    @property
    def seconds(self) -> float:
        """Learning time since the start of the run, without pauses [s]."""
        now = time.monotonic() if self._paused_at is None else self._paused_at
        return self._seconds_before + now - self._start

    def event(self, kind: str, text: str, steps: int, **more: Any) -> None:
        """Log an event; see `racer_viewer.run_history.RunEvent`."""
        self.known.add(kind)
        self._write({"what": EVENT, **self._when(steps), "kind": kind, "text": text, **more})

    def circuit(self, text: str, steps: int, circuits: Sequence[str], replaced: int) -> None:
        """Log that a circuit was exchanged, after all laps on the one before.

        circuits: names of all circuits now. replaced: index of the new one.
        """
        self._write_laps()
        self.event("circuit", text, steps, circuits=list(circuits), replaced=replaced)

    def update(self, values: Mapping[str, float], steps: int) -> None:
        """Log the metrics of a policy update, and the learning speed since the previous one."""
        values = {name: value for name, value in values.items() if math.isfinite(value)}
        before, seconds = self._last_update
        if steps > before and self.seconds > seconds:
            values[SPEED] = (steps - before) / (self.seconds - seconds)
            self._last_update = (steps, self.seconds)
        self._write({"what": UPDATE, **self._when(steps), "values": values})

    def laps(self, times: Sequence[float], steps: int, circuits: Sequence[int] | None = None) -> None:
        """Log the times of finished laps [s]. circuits: circuit index of each lap, if known."""
        self._laps += [[steps, round(time, 4), *_circuit(circuits, row)] for row, time in enumerate(times)]

    def sectors(self, rows: Sequence[Sequence[float]], steps: int, circuits: Sequence[int] | None = None) -> None:
        """Log the sector times of laps [s]; NaN for incomplete sectors."""
        for number, row in enumerate(rows):
            times = (None if math.isnan(time) else round(time, 4) for time in row)
            self._sectors.append([steps, *times, *_circuit(circuits, number)])

    def network(self, layout: Mapping[str, Any]) -> None:
        """Log the layout of the policies that follow."""
        self._write(dict(layout))

    def policy(self, steps: int, offset: int) -> None:
        """Log the position of a policy record."""
        self._write({"what": POLICY, "steps": steps, "offset": offset})

    def pause(self, steps: int) -> None:
        self._paused_at = time.monotonic()
        self.event("paused", "Paused", steps)

    def resume(self, steps: int) -> None:
        if self._paused_at is not None:
            self._start += time.monotonic() - self._paused_at
            self._paused_at = None
        self.event("resumed", "Resumed", steps)

    def tick(self) -> None:
        """Write the collected laps if the last write is LAPS_INTERVAL ago. Call once per tick."""
        if (self._laps or self._sectors) and time.monotonic() - self._laps_written > LAPS_INTERVAL:
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
        self._pending.append(_to_line(content))
        try:
            if self._file is None:
                self._file = open_for_appending(self._path)
            # A failed write may have left an incomplete line: end it.
            self._file.write((b"\n" if self._failed else b"") + b"".join(self._pending))
        except OSError as error:
            del self._pending[:-MAX_PENDING_LINES]
            if not self._failed:
                self._failed = True
                self._report_failure(f"could not write {self._path.name}: {os_reason(error)}; the run continues")
        else:
            self._pending.clear()
            self._failed = False

    def _report_failure(self, text: str) -> None:
        """Report a failure now, and log it once the file can be written again."""
        self._pending.append(_to_line({"what": EVENT, **self._when(self._steps), "kind": "problem", "text": text}))
        self.on_problem(text)


def open_for_appending(path: Path) -> BinaryIO:
    """Open a log unbuffered, so that readers see every line at once; end an incomplete last line first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("ab", buffering=0)
    if path.is_file() and path.stat().st_size:
        with path.open("rb") as before:
            before.seek(-1, 2)
            if before.read(1) != b"\n":
                file.write(b"\n")
    return file


def _circuit(circuits: Sequence[int] | None, row: int) -> list[int]:
    return [] if circuits is None else [int(circuits[row])]


def _to_line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"
