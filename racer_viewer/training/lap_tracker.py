"""How long the learning cars take for each third of a lap.

What there is to see of learning cars: their first gate, laps and sectors, and on which circuit each was driven."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.bridge.interface import BatchStep
from racer_env.engine import CAR, TICKS_PER_SECOND, Simulation, Track, load_circuit
from racer_viewer.timing import SECTORS, sector_gates
from racer_viewer.training.config import RunConfig
from racer_viewer.training.metrics import Tick
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.vec_env import SB3VecEnv

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
    return np.searchsorted(sector_gates(gates), np.arange(most), "right").astype(np.int64)


Rows = Sequence[int] | NDArray[np.int64]


@dataclass(eq=False)
class Sights:
    """laps, sectors: times [s]. lap_circuits, sector_circuits: number of each one's among the run's; empty if unknown.
    passed_a_gate: whether any car ever did.
    """

    laps: list[float] = field(default_factory=list)
    lap_circuits: list[int] = field(default_factory=list)
    sectors: list[Times] = field(default_factory=list)
    sector_circuits: list[int] = field(default_factory=list)
    passed_a_gate: bool = False

    def add(self, other: Sights) -> None:
        self.laps += other.laps
        self.lap_circuits += other.lap_circuits
        self.sectors += other.sectors
        self.sector_circuits += other.sector_circuits
        self.passed_a_gate |= other.passed_a_gate


class Spotter:
    """Looks at all cars, tick by tick, from the beginning of their episodes on."""

    def __init__(self, config: RunConfig, cars: SB3VecEnv) -> None:
        self._config, self._cars = config, cars
        self._numbers = np.array([config.circuits.index(name) for name in config.tracks])
        """By the number of a track that of its circuit: some may be there twice."""
        self._passed_a_gate = False

    def start(self) -> None:
        checkpoints = self._cars.last_step.cars.checkpoint
        simulation: Simulation | None = getattr(self._cars.cars.batch, "simulation", None)
        self._tracks = None if simulation is None else simulation.cars.view(CAR, np.ndarray)["track"]
        self._circuits = self._circuits_now()
        self._checkpoints = checkpoints.copy()
        self._sectors = self._follow_sectors(simulation)
        if self._sectors is not None:
            self._sectors.start(checkpoints, self._tracks)

    def tick(self, tick: Tick) -> Sights:
        """tick: the latest one."""
        step = self._cars.last_step
        if not self._passed_a_gate:
            self._look_for_gate(step.cars.checkpoint, tick.ended)
        sights = Sights(tick.laps, passed_a_gate=self._passed_a_gate)
        if tick.laps:
            sights.lap_circuits = self._circuits_of(tick.lappers)
        if self._sectors is not None and (laps := self._sectors.tick(step, self._tracks)):
            sights.sectors = [times for _, times in laps]
            sights.sector_circuits = self._circuits_of([row for row, _ in laps])
        if len(tick.ended) and self._tracks is not None:
            self._circuits = self._circuits_now()  # cars that begin anew may do so elsewhere
        return sights

    def _circuits_now(self) -> NDArray[np.int64] | None:
        """Number of each car's circuit; a bridge does not say which, where there are several."""
        if self._tracks is not None:
            return self._numbers.take(self._tracks)
        return np.zeros(self._cars.num_envs, np.int64) if len(self._config.circuits) == 1 else None

    def _circuits_of(self, rows: Rows) -> list[int]:
        circuits = self._circuits
        return [] if circuits is None else [int(circuits[row]) for row in rows]

    def _follow_sectors(self, simulation: Simulation | None) -> SectorTimes | None:
        """A bridge does not say which car is on which circuit: there it works for one only."""
        if simulation is None and len(self._config.tracks) > 1:
            return None
        tracks = simulation.tracks if simulation else [load_circuit(self._config.tracks[0])]
        return SectorTimes(tracks, self._cars.num_envs, self._config.starts == "line")

    def _look_for_gate(self, now: NDArray[np.integer], ended: NDArray[np.int64]) -> None:
        took_one = now != self._checkpoints
        took_one[ended] = False
        self._checkpoints[...] = now
        self._passed_a_gate = bool(took_one.any())


def tell(sights: Sights, story: RunLog, circuits: Sequence[str], steps: int) -> None:
    """circuits: names of the run's."""
    if sights.passed_a_gate and "first gate" not in story.known:
        story.event("first gate", "First gate", steps)
    if sights.laps:
        story.laps(sights.laps, steps, sights.lap_circuits or None)
        if "first lap" not in story.known:
            where = f" on {circuits[sights.lap_circuits[0]]}" if sights.lap_circuits and len(circuits) > 1 else ""
            story.event("first lap", f"First lap: {sights.laps[0]:.2f} s{where}", steps)
    if sights.sectors:
        story.sectors(sights.sectors, steps, sights.sector_circuits or None)
