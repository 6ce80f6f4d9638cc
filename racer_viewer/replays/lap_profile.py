"""Laps over distance: what a car did at every unit of the centreline, and where two laps differ most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import TICKS_PER_SECOND
from racer_viewer.replays.replay import Floats
from racer_viewer.replays.trace import ReplayLap, Trace

MAX_DIFFERENCES = 3
"""Maximum number of places where two laps are said to differ."""
MIN_DIFFERENCE = 0.02
"""Minimum time that is won or lost at such a place [s]; a tick is 0.017 s."""
PLACE_SHARE, MIN_PLACE = 1 / 16, 40.0
"""Length of a place as a share of the lap, and its minimum [units]."""
BRAKING = -0.1
"""Pedals below which a car brakes."""


@dataclass(frozen=True, eq=False)
class LapProfile:
    """A lap at every unit of distance from the start line, interpolated between ticks; (n,) each.

    distances: distance along the centreline [units]. times: time since the start of the lap [s]. speeds: [units/s].
    steering: of the car, −1 to 1, right is positive. pedals: throttle minus brake. xs, ys: position [units].
    seconds: lap time [s].
    """

    distances: Floats
    times: Floats
    speeds: Floats
    steering: Floats
    pedals: Floats
    xs: Floats
    ys: Floats
    seconds: float

    def index_at(self, distance: float) -> int:
        """Return the row nearest to a distance."""
        return int(np.clip(np.searchsorted(self.distances, distance), 0, len(self.distances) - 1))


def lap_profile(trace: Trace, lap: ReplayLap) -> LapProfile:
    """Return a lap of a trace over distance."""
    rows, length = trace.lap_rows(lap), trace.track.length
    steps = (np.diff(rows["arc"]) + 0.5 * length) % length - 0.5 * length
    first = float(rows["arc"][0])
    reached = (first - length if first > 0.5 * length else first) + np.concatenate([[0.0], np.cumsum(steps)])
    way = np.maximum.accumulate(reached)
    ahead = np.concatenate([[True], np.diff(way) > 0.0])  # ticks in which the car stood or went back are left out
    way, rows, ticks = way[ahead], rows[ahead], np.flatnonzero(ahead)
    distances = np.linspace(0.0, length, round(length) + 1)

    def over_distance(values: NDArray[np.generic]) -> Floats:
        return np.interp(distances, way, values.astype(np.float64))

    return LapProfile(
        distances,
        over_distance(ticks / TICKS_PER_SECOND),
        over_distance(rows["speed"]),
        over_distance(rows["steer"]),
        over_distance(rows["throttle"] - rows["brake"]),
        over_distance(rows["x"]),
        over_distance(rows["y"]),
        lap.ticks / TICKS_PER_SECOND,
    )


@dataclass(frozen=True)
class LapDifference:
    """A place where one lap wins time on the other.

    start, end: its ends [units]. seconds: time that the second lap loses there (+) or wins (−) [s].
    speed: how much faster the second lap is there at its slowest [units/s]. apart: largest distance of the lines
        [units]. brakes_later: how much later the second lap brakes [units]; None unless both brake there.
    """

    start: float
    end: float
    seconds: float
    speed: float
    apart: float
    brakes_later: float | None

    @property
    def middle(self) -> float:
        return 0.5 * (self.start + self.end)


@dataclass(frozen=True, eq=False)
class LapComparison:
    """Two laps on the same circuit, the second measured against the first."""

    first: LapProfile
    second: LapProfile

    @cached_property
    def gaps(self) -> Floats:
        """Time of the second lap behind (+) the first at every distance [s]."""
        return self.second.times - self.first.times

    @cached_property
    def apart(self) -> Floats:
        """Distance between the two lines at every distance [units]."""
        return np.hypot(self.second.xs - self.first.xs, self.second.ys - self.first.ys)

    @cached_property
    def differences(self) -> tuple[LapDifference, ...]:
        """Places where the laps differ most, the largest first."""
        distances = self.first.distances
        length = min(len(distances) - 1, round(max(MIN_PLACE, PLACE_SHARE * distances[-1])))
        won = self.gaps[length:] - self.gaps[:-length]
        found: list[LapDifference] = []
        while len(found) < MAX_DIFFERENCES:
            start = int(np.argmax(np.abs(won)))
            if abs(won[start]) < MIN_DIFFERENCE:
                break
            found.append(self._difference(start, start + length, float(won[start])))
            won[max(0, start - length) : start + length] = 0.0
        return tuple(found)

    def _difference(self, start: int, end: int, seconds: float) -> LapDifference:
        place, first, second = slice(start, end + 1), self.first, self.second
        before = slice(max(0, start - (end - start)), end + 1)
        points = [_braking_point(each.pedals[before]) for each in (first, second)]
        later = None if points[0] is None or points[1] is None else float(points[1] - points[0])
        return LapDifference(
            float(first.distances[start]),
            float(first.distances[end]),
            seconds,
            float(second.speeds[place].min() - first.speeds[place].min()),
            float(self.apart[place].max()),
            later,
        )


def _braking_point(pedals: Floats) -> int | None:
    """Return the row in which braking begins; None if the car does not brake, or has braked before."""
    braking = pedals < BRAKING
    if braking[0] or not braking.any():
        return None
    return int(np.argmax(braking))
