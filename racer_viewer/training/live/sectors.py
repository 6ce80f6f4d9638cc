"""How long the learning cars take for each third of a lap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.bridge.interface import BatchStep
from racer_env.engine import TICKS_PER_SECOND, Track
from racer_viewer.curves import SECTORS

Times = list[float]
"""[s] of each sector of a lap; NaN where unknown."""
UNKNOWN = -1
"""Tick at which a car came into its sector, if it did not come in over the line of it."""
_NO_TIMES: Times = [math.nan] * SECTORS
"""The same NaN each time, so that it equals itself in a list."""


class SectorTimes:
    """Follows all cars at once. A lap's row has NaN for sectors that were not driven from line to line.

    from_line: whether episodes start on the start line, so that their first sector counts.

    In most ticks no car comes into another sector: that is seen with few operations on arrays, the rest car by car.
    """

    def __init__(self, tracks: Sequence[Track], cars: int, from_line: bool) -> None:
        self._most = max(len(track.gates) for track in tracks)
        self._sector_at = np.concatenate([_sectors_of(len(track.gates), self._most) for track in tracks])
        """By gate the sector that begins there or goes on, of one track after the other."""
        self._begin = 0 if from_line else UNKNOWN
        self._first_gate: NDArray[np.int64] = np.zeros(cars, np.int64)
        """Where the gates of each car's track begin."""
        self._sector: NDArray[np.int64] = np.zeros(cars, np.int64)
        self._entered = [UNKNOWN] * cars
        self._times = [list(_NO_TIMES) for _ in range(cars)]

    def start(self, checkpoints: NDArray[Any], tracks: NDArray[Any] | None) -> None:
        """All cars are at the beginning of an episode."""
        self._start(range(len(self._entered)), checkpoints, tracks)

    def tick(self, step: BatchStep, tracks: NDArray[Any] | None) -> Sequence[tuple[int, Times]]:
        """After a step; the times [s] of laps that ended in it, or were given up, each with the row of its car.

        tracks: number of each car's, now.
        """
        checkpoints, ticks = step.cars.checkpoint, step.cars.step_count
        ended: list[int] = step.ended.tolist() if len(step.ended) else []
        if ended:
            checkpoints, ticks = checkpoints.copy(), ticks.copy()
            checkpoints[ended], ticks[ended] = step.final_cars.checkpoint, step.final_cars.step_count
        sectors = self._sector_at.take(checkpoints + self._first_gate)
        moved = (sectors != self._sector).nonzero()[0].tolist()
        if not moved and not ended:
            return ()
        for row in moved:
            self._leave(row, int(ticks[row]))
        self._sector = sectors
        over = dict.fromkeys([*(row for row in moved if sectors[row] == 0), *ended])
        laps = [(row, self._take(row)) for row in over]
        if ended:
            self._start(ended, step.cars.checkpoint, tracks)
        return [(row, times) for row, times in laps if times != _NO_TIMES]

    def _leave(self, row: int, tick: int) -> None:
        if self._entered[row] != UNKNOWN:
            self._times[row][self._sector[row]] = (tick - self._entered[row]) / TICKS_PER_SECOND
        self._entered[row] = tick

    def _take(self, row: int) -> Times:
        times, self._times[row] = self._times[row], list(_NO_TIMES)
        return times

    def _start(self, rows: Sequence[int], checkpoints: NDArray[Any], tracks: NDArray[Any] | None) -> None:
        for row in rows:
            if tracks is not None:
                self._first_gate[row] = tracks[row] * self._most
            self._sector[row] = self._sector_at[checkpoints[row] + self._first_gate[row]]
            self._entered[row], self._times[row] = self._begin, list(_NO_TIMES)


def _sectors_of(gates: int, most: int) -> NDArray[np.int64]:
    ends = [gates * part // SECTORS for part in range(1, SECTORS)]
    return np.searchsorted(ends, np.arange(most), "right").astype(np.int64)
