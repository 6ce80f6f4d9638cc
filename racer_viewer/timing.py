"""Lap times, split at every gate: how far ahead or behind, and how the sectors went.

Ticks as the times that people read.

The times of a run at any tick of it, without going through all ticks before."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

from racer_env.engine import TICKS_PER_SECOND
from racer_viewer.snapshot import Cars, Sector, Timing

SECTORS = 3

Gates = tuple[int, ...]
"""Ticks since the line by the number of the gate; number 0 is the line at the end, 0 is not taken yet."""


@dataclass(frozen=True)
class LapTime:
    """A finished lap."""

    ticks: int
    gates: Gates

    def sectors(self) -> tuple[int, ...]:
        """Ticks of each third of the gates."""
        ends = _sector_ends(self.gates)
        return tuple(end - before for end, before in zip(ends, (0, *ends), strict=False))


def _sector_ends(gates: Gates) -> tuple[int, ...]:
    """When each sector ended; those that are not over are missing."""
    numbers = [len(gates) * part // SECTORS for part in range(1, SECTORS)]
    ends = [gates[number] for number in numbers] + [gates[0]]
    return tuple(ends[: ends.index(0)] if 0 in ends else ends)


class Stopwatch:
    """Follows one car, tick by tick.

    to_beat: a lap from elsewhere, the record for instance; a faster one of this run takes its place.
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
        return min(self.laps, key=lambda lap: lap.ticks, default=None)

    def tick(self, lap: int, lap_ticks: int, checkpoint: int, finished_lap_ticks: int) -> LapTime | None:
        """The car's columns after a tick; returns the lap that ended in it."""
        finished = None
        if checkpoint != self._checkpoint:
            self._checkpoint = checkpoint
            self._gates[checkpoint] = finished_lap_ticks if checkpoint == 0 else lap_ticks
            self._delta = self._behind(checkpoint)
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
        """As it is shown."""
        return Timing(
            lap=self._lap,
            lap_ticks=self._lap_ticks,
            last=self.laps[-1].ticks if self.laps else None,
            best=self.best.ticks if self.best else None,
            delta=self._delta,
            sectors=self._sectors(),
        )

    def _behind(self, gate: int) -> int | None:
        if self.best is None or not self._gates[gate] or not self.best.gates[gate]:
            return None
        return self._gates[gate] - self.best.gates[gate]

    def _sectors(self) -> tuple[Sector, ...]:
        """Of this lap as far as it is; before its first sector is over, of the lap before."""
        now = LapTime(0, tuple(self._gates)).sectors()
        if not now and self.laps:
            now = self.laps[-1].sectors()
        best = self.best.sectors() if self.best else ()
        return tuple(Sector(_at(now, number), _at(best, number)) for number in range(SECTORS))


def _at(values: tuple[int, ...], number: int) -> int | None:
    return values[number] if number < len(values) else None


NONE = "–"
"""Shown where there is no figure."""


def lap_time(ticks: int) -> str:
    """As 17.82, or 1:02.45 from a minute on."""
    minutes, rest = divmod(ticks, 60 * TICKS_PER_SECOND)
    seconds = rest / TICKS_PER_SECOND
    return f"{minutes}:{seconds:05.2f}" if minutes else f"{seconds:.2f}"


def signed(value: float, decimals: int = 2) -> str:
    """With its sign, a true minus; what rounds to nothing has a plus."""
    text = f"{abs(value):.{decimals}f}"
    return ("−" if value < 0.0 and float(text) else "+") + text


def signed_time(ticks: int) -> str:
    """A difference in seconds, as +0.23."""
    return signed(ticks / TICKS_PER_SECOND)


class Timings:
    """What a clock shows at every tick of a trace. All but the time of this lap changes at gates only, so the clock is
    looked at once at each of them."""

    def __init__(self, rows: Cars, gate_rows: NDArray[np.int64], clock: Stopwatch) -> None:
        self._lap_ticks = rows["lap_ticks"]
        self._at = [0, *gate_rows.tolist()]
        self._shown: list[Timing] = []
        columns = (rows[name][self._at].tolist() for name in ("lap", "lap_ticks", "checkpoint", "finished_lap_ticks"))
        for lap, lap_ticks, checkpoint, finished in zip(*columns, strict=True):
            clock.tick(lap, lap_ticks, checkpoint, finished)
            self._shown.append(clock.timing())

    def at(self, tick: int) -> Timing:
        """After this tick."""
        shown = self._shown[bisect_right(self._at, tick) - 1]
        return replace(shown, lap_ticks=int(self._lap_ticks[tick]))
