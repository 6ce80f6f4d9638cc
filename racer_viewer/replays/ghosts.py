"""Ghosts: laps that are shown beside a car for comparison, driven as they were or slowed down to another lap time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from racer_viewer.replays.trace import Cars, ReplayLap, Trace

if TYPE_CHECKING:
    from racer_viewer.replays.replay import Floats
    from racer_viewer.timing import LapTime


@dataclass(frozen=True, eq=False)
class GhostLap:
    """A lap of a ghost.

    rows: (T + 1,) of `CAR`, from line to line.
    pace: rows per tick; below 1 the lap is slowed down.
    """

    rows: Cars
    pace: float
    length: float

    @cached_property
    def distances(self) -> Floats:
        """Largest distance from the line up to each row [units]."""
        arcs, half = self.rows["arc"], self.length / 2.0
        moves = (np.diff(arcs, prepend=0.0) + half) % self.length - half
        return np.maximum.accumulate(np.cumsum(moves))

    def row_at(self, tick: int) -> Cars:
        """Return the ghost's row (1,) so many ticks after the line, between two rows if it is slowed down."""
        place = min(tick * self.pace, len(self.rows) - 1.0)
        number = int(place)
        row = self.rows[number : number + 1]
        if place == number:
            return row
        row, after, share = row.copy(), self.rows[number + 1], place - number
        for name in ("x", "y"):
            row[name] += (after[name] - row[name]) * share
        turn = (after["heading"] - row["heading"] + np.pi) % (2.0 * np.pi) - np.pi
        row["heading"] += turn * share
        return row

    def delta(self, tick: int, distance: float) -> float:
        """Return how far a car is behind (+) or ahead of (−) the ghost [ticks], by its ticks and distance in a lap."""
        from racer_viewer.timing import tick_at

        return tick - tick_at(self.distances, distance) / self.pace


@dataclass(frozen=True, eq=False)
class Ghost:
    """A car that repeats a lap, and the lap time to beat.

    trace: re-simulated drive with the lap; it must have a clean one.
    name: name of the car.
    lap_ticks: lap time [ticks]; that of the trace's best lap, or a longer one.
    """

    trace: Trace
    name: str
    lap_ticks: int

    @cached_property
    def pace(self) -> float:
        return self._best.ticks / self.lap_ticks

    @cached_property
    def best(self) -> GhostLap:
        """Best lap of the ghost."""
        return self._lap(self._best)

    @cached_property
    def first(self) -> GhostLap:
        """Lap from the standing start; the best lap if the drive did not start on the line."""
        lap = next((lap for lap in self.trace.laps if lap.first == 0), None)
        return self.best if lap is None else self._lap(lap)

    @property
    def time(self) -> LapTime:
        """Lap time to beat, with its gates."""
        from racer_viewer.timing import LapTime

        return LapTime(self.lap_ticks, tuple(round(ticks / self.pace) for ticks in self._best.gate_ticks))

    @property
    def _best(self) -> ReplayLap:
        best = self.trace.best_lap
        assert best is not None, "a ghost needs a clean lap"
        return best

    def _lap(self, lap: ReplayLap) -> GhostLap:
        return GhostLap(self.trace.lap_rows(lap), self.pace, self.trace.track.length)


def ghost_of(trace: Trace) -> Ghost | None:
    """Return the ghost of a drive; None if it has no clean lap."""
    best = trace.best_lap
    return None if best is None else Ghost(trace, trace.replay.driver, best.ticks)
