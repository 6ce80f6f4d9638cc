"""Lap and sector times: how they are measured, compared and written."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from racer_env.engine import TICKS_PER_SECOND

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SECTORS = 3
"""Sectors of a lap; each has as many gates as the others, give or take one."""
NO_TIME = "–"
"""Text shown in place of a missing time or number."""

GateTicks = tuple[int, ...]
"""Ticks since the start of the lap by gate number; gate 0 is the finish line, 0 ticks means not yet crossed."""


def sector_gates(gate_count: int) -> list[int]:
    """Return the gates at which the second and later sectors begin."""
    return [gate_count * part // SECTORS for part in range(1, SECTORS)]


@dataclass(frozen=True)
class LapTime:
    """A finished lap [ticks]."""

    ticks: int
    gates: GateTicks

    def sectors(self) -> tuple[int, ...]:
        """Return the ticks of each sector."""
        return _sector_ticks(self.gates)


def best_lap(laps: tuple[LapTime, ...] | list[LapTime]) -> LapTime | None:
    """Return the fastest lap, the first of equals; None without a lap."""
    return min(laps, key=lambda lap: lap.ticks, default=None)


def _sector_ticks(gates: GateTicks) -> tuple[int, ...]:
    """Return the ticks of each sector; unfinished sectors are left out."""
    ends = [gates[gate] for gate in sector_gates(len(gates))] + [gates[0]]
    ends = ends[: ends.index(0)] if 0 in ends else ends
    return tuple(end - begin for end, begin in zip(ends, (0, *ends), strict=False))


@dataclass(frozen=True)
class Sector:
    """One sector as shown: its time and the time to beat [ticks], None where there is none yet.

    now: time in this lap; in the previous lap until the first sector of this one is finished.
    best: time in the lap to beat.
    """

    now: int | None
    best: int | None


@dataclass(frozen=True)
class Timing:
    """Times of the followed car as shown [ticks].

    best: fastest lap of this run or the record on this circuit, whichever is faster.
    delta: time behind (+) or ahead of (−) the best lap at the last gate.
    """

    lap: int
    lap_ticks: int
    last: int | None
    best: int | None
    delta: int | None
    sectors: tuple[Sector, ...] = ()


class Stopwatch:
    """Measures the laps of one car, tick by tick.

    to_beat: lap to compare with, the record for instance; a faster lap of this run replaces it.
    """

    def __init__(self, gate_count: int, to_beat: LapTime | None = None) -> None:
        self.laps: list[LapTime] = []
        self.best = to_beat
        self._gates = [0] * gate_count
        self._checkpoint = 0
        self._lap, self._lap_ticks = 1, 0
        self._delta: int | None = None

    @property
    def best_of_run(self) -> LapTime | None:
        return best_lap(self.laps)

    def tick(self, lap: int, lap_ticks: int, checkpoint: int, finished_lap_ticks: int) -> LapTime | None:
        """Take the car's columns after a tick; returns the lap that this tick finished."""
        finished = None
        if checkpoint != self._checkpoint:
            self._checkpoint = checkpoint
            self._gates[checkpoint] = finished_lap_ticks if checkpoint == 0 else lap_ticks
            self._delta = self._delta_at(checkpoint)
        if finished_lap_ticks:
            finished = LapTime(finished_lap_ticks, tuple(self._gates))
            self.laps.append(finished)
            if self.best is None or finished.ticks < self.best.ticks:
                self.best = finished
        if lap != self._lap:
            self._lap, self._gates = lap, [0] * len(self._gates)
        self._lap_ticks = lap_ticks
        return finished

    def timing(self) -> Timing:
        """Return the times to show."""
        return Timing(
            lap=self._lap,
            lap_ticks=self._lap_ticks,
            last=self.laps[-1].ticks if self.laps else None,
            best=self.best.ticks if self.best else None,
            delta=self._delta,
            sectors=self._sectors(),
        )

    def _delta_at(self, gate: int) -> int | None:
        if self.best is None or not self._gates[gate] or not self.best.gates[gate]:
            return None
        return self._gates[gate] - self.best.gates[gate]

    def _sectors(self) -> tuple[Sector, ...]:
        now = _sector_ticks(tuple(self._gates))
        if not now and self.laps:
            now = self.laps[-1].sectors()
        best = self.best.sectors() if self.best else ()
        return tuple(Sector(_item(now, number), _item(best, number)) for number in range(SECTORS))


class TraceTimings:
    """Times shown at each tick of a re-simulated replay, available without stepping through the ticks before.

    Everything but the time of the current lap changes only at gates, so one `Timing` per gate is stored.

    rows: (T + 1,) of `racer_env.engine.CAR`.
    gate_rows: indices of the rows in which a gate was crossed.
    """

    def __init__(self, rows: NDArray[Any], gate_rows: NDArray[np.int64], stopwatch: Stopwatch) -> None:
        self._lap_ticks = rows["lap_ticks"]
        self._at = [0, *gate_rows.tolist()]
        self._timings: list[Timing] = []
        columns = (rows[name][self._at].tolist() for name in ("lap", "lap_ticks", "checkpoint", "finished_lap_ticks"))
        for lap, lap_ticks, checkpoint, finished in zip(*columns, strict=True):
            stopwatch.tick(lap, lap_ticks, checkpoint, finished)
            self._timings.append(stopwatch.timing())

    def at(self, tick: int) -> Timing:
        """Return the times after this tick."""
        timing = self._timings[bisect_right(self._at, tick) - 1]
        return replace(timing, lap_ticks=int(self._lap_ticks[tick]))


def _item(values: tuple[int, ...], number: int) -> int | None:
    return values[number] if number < len(values) else None


def lap_time(ticks: int) -> str:
    """Format a time as 17.82, or as 1:02.45 from one minute on."""
    minutes, rest = divmod(ticks, 60 * TICKS_PER_SECOND)
    seconds = rest / TICKS_PER_SECOND
    return f"{minutes}:{seconds:05.2f}" if minutes else f"{seconds:.2f}"


def signed(value: float, decimals: int = 2) -> str:
    """Format a number with its sign, a true minus; a value that rounds to zero gets a plus."""
    text = f"{abs(value):.{decimals}f}"
    return ("−" if value < 0.0 and float(text) else "+") + text


def signed_time(ticks: int) -> str:
    """Format a time difference in seconds as +0.23."""
    return signed(ticks / TICKS_PER_SECOND)
