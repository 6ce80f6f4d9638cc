"""Lap and sector times: how they are measured, compared and written, and which laps count."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from racer_env.engine import TICKS_PER_SECOND
from racer_env.engine.laps import track_limit_faults
from racer_viewer.translation import _, mark

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SECTORS = 3
"""Sectors of a lap; each has as many gates as the others, give or take one."""
NO_TIME = "–"
"""Text shown in place of a missing time or number."""
NOT_CLEAN = "* "
"""Mark before the time of a lap that does not count."""
OFF_ROAD, WALL_CONTACT, PUT_BACK = mark("off the road"), mark("wall contact"), mark("put back on the road")
"""Reasons for which a lap does not count."""

GateTicks = tuple[int, ...]
"""Ticks since the start of the lap by gate number; gate 0 is the finish line, 0 ticks means not yet crossed."""


def sector_gates(gate_count: int) -> list[int]:
    """Return the gates at which the second and later sectors begin."""
    return [gate_count * part // SECTORS for part in range(1, SECTORS)]


@dataclass(frozen=True)
class LapTime:
    """A finished lap [ticks].

    fault: first reason for which it does not count, and where; empty if it is clean.
    """

    ticks: int
    gates: GateTicks
    fault: str = ""

    @property
    def clean(self) -> bool:
        """True if the car never left the road and touched no wall; other laps earn no medal and no record."""
        return not self.fault

    @property
    def text(self) -> str:
        """Lap time, marked if the lap is not clean."""
        return ("" if self.clean else NOT_CLEAN) + lap_time(self.ticks)

    def sectors(self) -> tuple[int, ...]:
        """Return the ticks of each sector."""
        return _sector_ticks(self.gates)


def best_lap(laps: tuple[LapTime, ...] | list[LapTime]) -> LapTime | None:
    """Return the fastest clean lap, the first of equals; None without a clean lap."""
    return min((lap for lap in laps if lap.clean), key=lambda lap: lap.ticks, default=None)


def lap_to_show(laps: tuple[LapTime, ...] | list[LapTime]) -> LapTime | None:
    """Return the fastest clean lap, or the fastest of all if none is clean; None without a lap."""
    return best_lap(laps) or min(laps, key=lambda lap: lap.ticks, default=None)


def _sector_ticks(gates: GateTicks) -> tuple[int, ...]:
    """Return the ticks of each sector; unfinished sectors are left out."""
    ends = [gates[gate] for gate in sector_gates(len(gates))] + [gates[0]]
    ends = ends[: ends.index(0)] if 0 in ends else ends
    return tuple(end - begin for end, begin in zip(ends, (0, *ends), strict=False))


class SectorRank(Enum):
    """Rank of a sector time: FASTEST of all cars, BEST of its own car, or SLOWER; NONE in a lap that does not count."""

    NONE = 0
    SLOWER = 1
    BEST = 2
    FASTEST = 3


@dataclass(frozen=True)
class Sector:
    """One sector as shown: its time and the time to beat [ticks], None where there is none yet.

    now: time in this lap; in the previous lap until the first sector of this one is finished.
    best: time in the lap to beat.
    """

    now: int | None
    best: int | None
    rank: SectorRank = SectorRank.NONE


class SectorTimes:
    """Fastest clean time of each sector so far [ticks], by one car or by all cars of a race."""

    def __init__(self, lap: LapTime | None = None) -> None:
        self._ticks: list[int | None] = [None] * SECTORS
        for number, ticks in enumerate(lap.sectors() if lap else ()):
            self.add(number, ticks)

    def add(self, number: int, ticks: int) -> bool:
        """Take a time of a sector; returns whether it is the fastest so far. An equal time is not."""
        before = self._ticks[number]
        faster = before is None or ticks < before
        if faster:
            self._ticks[number] = ticks
        return faster


@dataclass(frozen=True)
class Timing:
    """Times of the followed car as shown [ticks].

    best: fastest lap of this run or the record on this circuit, whichever is faster.
    delta: time behind (+) or ahead of (−) the best lap at the last gate.
    ghost_delta: time behind (+) or ahead of (−) the ghost at this place; None without a ghost.
    fault: reason for which the current lap does not count, and where; empty while it is clean.
    """

    lap: int
    lap_ticks: int
    last: int | None
    best: int | None
    delta: int | None
    sectors: tuple[Sector, ...] = ()
    fault: str = ""
    ghost_delta: float | None = None


class RaceProgress:
    """Distance of one car from the start line along the circuit, tick by tick; negative before the line [units].

    It grows by the length of the circuit with every lap, and shrinks while the car drives backwards.

    now: distance after the last tick.
    """

    def __init__(self, length: float, gate_count: int, car: Any) -> None:
        """Start with a row of `CAR` at the beginning of an episode."""
        self._length, self._gate_length = length, length / gate_count
        self._checkpoint = int(car["checkpoint"])
        self._gate = self._checkpoint if car["lap_gates"] >= 0 else self._checkpoint - gate_count
        """Gates crossed since the start line."""
        self.now = self._distance(float(car["arc"]))
        self._farthest = array("d", [self.now])
        """Largest distance so far, by tick."""

    def add(self, checkpoint: int, arc: float) -> None:
        """Add a tick."""
        if checkpoint != self._checkpoint:
            self._checkpoint = checkpoint
            self._gate += 1
        self.now = self._distance(arc)
        self._farthest.append(max(self.now, self._farthest[-1]))

    @property
    def in_lap(self) -> float:
        """Distance from the start line in this lap [units]."""
        return self.now % self._length if self.now >= 0.0 else self.now

    def ticks_behind(self, other: RaceProgress) -> float:
        """Return how long ago the other car was where this one is; negative if it still has to come here [ticks]."""
        if self.now > other.now:
            return -other.ticks_behind(self)
        return len(other._farthest) - 1 - other.reached_at(self.now)

    def reached_at(self, distance: float) -> float:
        """Return the tick, with its fraction, at which the car had come this far; 0 if it started beyond."""
        return tick_at(self._farthest, distance)

    def went_back(self, ticks: int, distance: float) -> bool:
        """Return whether the car is this far behind its farthest point, which it reached so many ticks ago or more."""
        far = self._farthest
        return len(far) > ticks and far[-1] == far[-1 - ticks] and self.now < far[-1] - distance

    def _distance(self, arc: float) -> float:
        beyond_gate = arc - self._checkpoint * self._gate_length
        half = self._length / 2.0
        return self._gate * self._gate_length + (beyond_gate + half) % self._length - half


def tick_at(farthest: Sequence[float] | NDArray[np.float64], distance: float) -> float:
    """Return the index, with its fraction, at which distances that never shrink reach this one."""
    tick = bisect_left(farthest, distance)
    if tick == 0 or tick == len(farthest):
        return float(min(tick, len(farthest) - 1))
    before, after = float(farthest[tick - 1]), float(farthest[tick])
    return tick - 1 + (distance - before) / (after - before)


class Stopwatch:
    """Measures the laps of one car, tick by tick.

    to_beat: lap to compare with, the record for instance; a faster clean lap of this run replaces it.
    fastest: sector times of all cars; by default those of the lap to beat and of this car.
    from_grid: the car starts before the line; its laps are counted from there.
    """

    def __init__(
        self,
        gate_count: int,
        to_beat: LapTime | None = None,
        fastest: SectorTimes | None = None,
        from_grid: bool = False,
    ) -> None:
        self.laps: list[LapTime] = []
        self.best = to_beat
        self._laps_before = int(from_grid)
        self._fastest, self._own = fastest or SectorTimes(to_beat), SectorTimes()
        self._ranks = [SectorRank.NONE] * SECTORS
        self._gates = [0] * gate_count
        self._checkpoint = 0
        self._lap, self._lap_ticks = 1, 0
        self._delta: int | None = None
        self._fault = ""

    @property
    def best_of_run(self) -> LapTime | None:
        return best_lap(self.laps)

    def tick(
        self, lap: int, lap_ticks: int, checkpoint: int, finished_lap_ticks: int, fault: str = ""
    ) -> LapTime | None:
        """Take the car's columns after a tick; returns the lap that this tick finished.

        fault: reason for which the current lap does not count, if it happened in this tick.
        """
        finished = None
        if fault and not self._fault:
            sector = 1 + sum(self._checkpoint >= gate for gate in sector_gates(len(self._gates)))
            self._fault = _("{fault} in sector {sector}").format(fault=_(fault), sector=sector)
        if checkpoint != self._checkpoint:
            self._checkpoint = checkpoint
            self._gates[checkpoint] = finished_lap_ticks if checkpoint == 0 else lap_ticks
            self._delta = self._delta_at(checkpoint)
            self._rank_sectors(checkpoint)
        if finished_lap_ticks:
            finished = LapTime(finished_lap_ticks, tuple(self._gates), self._fault)
            self.laps.append(finished)
            if finished.clean and (self.best is None or finished.ticks < self.best.ticks):
                self.best = finished
        if lap != self._lap:
            self._lap, self._gates, self._fault = lap, [0] * len(self._gates), ""
        self._lap_ticks = lap_ticks
        return finished

    def timing(self, ghost_delta: float | None = None) -> Timing:
        """Return the times to show."""
        return Timing(
            lap=max(1, self._lap - self._laps_before),
            lap_ticks=self._lap_ticks,
            last=self.laps[-1].ticks if self.laps else None,
            best=self.best.ticks if self.best else None,
            delta=self._delta,
            sectors=self._sectors(),
            fault=self._fault,
            ghost_delta=ghost_delta,
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
        return tuple(
            Sector(_item(now, number), _item(best, number), rank if number < len(now) else SectorRank.NONE)
            for number, rank in enumerate(self._ranks)
        )

    def _rank_sectors(self, gate: int) -> None:
        """Rank the sector that ends at a gate, if one does."""
        ends = [*sector_gates(len(self._gates)), 0]
        now = _sector_ticks(tuple(self._gates))
        number = ends.index(gate) if gate in ends else SECTORS
        if number >= len(now):
            return
        if number == 0:
            self._ranks = [SectorRank.NONE] * SECTORS
        if not self._fault:
            best, fastest = self._own.add(number, now[number]), self._fastest.add(number, now[number])
            self._ranks[number] = SectorRank.FASTEST if fastest else SectorRank.BEST if best else SectorRank.SLOWER


class TraceTimings:
    """Times shown at each tick of a re-simulated replay, available without stepping through the ticks before.

    Everything but the time of the current lap changes only at gates and faults, so only those are stored.

    rows: (T + 1,) of `racer_env.engine.CAR`.
    gate_rows: indices of the rows in which a gate was crossed.
    put_back: indices of the rows before which the car was put back on the road.
    """

    def __init__(
        self,
        rows: NDArray[Any],
        gate_rows: NDArray[np.int64],
        stopwatch: Stopwatch,
        put_back: tuple[int, ...] = (),
    ) -> None:
        self._lap_ticks = rows["lap_ticks"]
        faults = first_faults(rows, put_back)
        self._at = sorted({0, *gate_rows.tolist(), *faults})
        self._timings: list[Timing] = []
        columns = (rows[name][self._at].tolist() for name in ("lap", "lap_ticks", "checkpoint", "finished_lap_ticks"))
        for row, lap, lap_ticks, checkpoint, finished in zip(self._at, *columns, strict=True):
            stopwatch.tick(lap, lap_ticks, checkpoint, finished, faults.get(row, ""))
            self._timings.append(stopwatch.timing())

    def at(self, tick: int) -> Timing:
        """Return the times after this tick."""
        timing = self._timings[bisect_right(self._at, tick) - 1]
        return replace(timing, lap_ticks=int(self._lap_ticks[tick]))


def fault_text(wall_contact: bool, off_road: bool, put_back: bool = False) -> str:
    """Return the reason for which a lap does not count after such a tick; empty if it still does."""
    return PUT_BACK if put_back else WALL_CONTACT if wall_contact else OFF_ROAD if off_road else ""


def first_faults(rows: NDArray[Any], put_back: tuple[int, ...] = ()) -> dict[int, str]:
    """Return the first fault of each lap in some rows of one car, by the index of the row."""
    wall, off_road = track_limit_faults(rows)
    faulty = wall | off_road
    faulty[list(put_back)] = True
    faulty[0] = False
    found: dict[int, str] = {}
    laps = set()
    for row in faulty.nonzero()[0].tolist():
        lap = int(rows["lap"][row - 1])
        if lap not in laps:
            laps.add(lap)
            found[row] = fault_text(bool(wall[row]), bool(off_road[row]), row in put_back)
    return found


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
