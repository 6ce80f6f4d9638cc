"""What a runner tells of the driving: reward components, laps, sectors, episodes, and the moments of what it saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from racer_env.bridge import BatchStep
from racer_env.engine import CAR, COMPONENTS, TICKS_PER_SECOND, Simulation, load_circuit
from racer_viewer.training.config import RunConfig
from racer_viewer.training.live.sectors import SectorTimes, Times
from racer_viewer.training.vec_env import SB3VecEnv

Rows = Sequence[int] | NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and variance of so many values."""

    mean: NDArray[np.float64]
    var: NDArray[np.float64]
    count: int

    @classmethod
    def of(cls, values: NDArray[np.floating]) -> Moments:
        """Of rows."""
        return cls(values.mean(axis=0, dtype=np.float64), values.var(axis=0, dtype=np.float64), len(values))


@dataclass(eq=False)
class Report:
    """Of one rollout of one runner.

    components: (6,) sums over steps and cars. laps, sectors: times [s]; lap_circuits, sector_circuits: number of each
    one's among those of the run, as far as that is known. completed: episodes that ended with a lap.
    observations, returns: what normalisation is learned from. seconds: that gathering it took.
    """

    steps: int = 0
    components: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(COMPONENTS)))
    laps: list[float] = field(default_factory=list)
    lap_circuits: list[int] = field(default_factory=list)
    sectors: list[Times] = field(default_factory=list)
    sector_circuits: list[int] = field(default_factory=list)
    episode_returns: list[float] = field(default_factory=list)
    episode_lengths: list[int] = field(default_factory=list)
    completed: int = 0
    passed_a_gate: bool = False
    observations: Moments | None = None
    returns: Moments | None = None
    seconds: float = 0.0


class Witness:
    """Sees every tick of a runner's cars. `take` is the report since the last one."""

    def __init__(self, config: RunConfig, cars: SB3VecEnv) -> None:
        self._config, self._cars = config, cars
        count = cars.num_envs
        self._numbers = np.array([config.circuits.index(name) for name in config.tracks])
        self._returns, self._lengths = np.zeros(count), np.zeros(count, np.int64)
        self._has_lapped = np.zeros(count, np.bool_)
        self._report = Report()

    def start(self) -> None:
        """All cars are at the beginning of an episode."""
        simulation: Simulation | None = getattr(self._cars.cars.batch, "simulation", None)
        self._tracks = None if simulation is None else simulation.cars.view(CAR, np.ndarray)["track"]
        self._circuits = self._circuits_now()
        self._sectors: SectorTimes | None = None
        step = self._cars.last_step
        self._checkpoints = step.cars.checkpoint.copy()
        if simulation is not None or len(self._config.tracks) == 1:
            tracks = simulation.tracks if simulation else [load_circuit(self._config.tracks[0])]
            self._sectors = SectorTimes(tracks, self._cars.num_envs, self._config.starts == "line")
            self._sectors.start(step.cars.checkpoint, self._tracks)
        self._returns[:], self._lengths[:], self._has_lapped[:] = 0.0, 0, False

    def tick(self) -> None:
        """After a step."""
        step, report = self._cars.last_step, self._report
        report.steps += len(step.rewards)
        report.components += step.components.sum(axis=0)
        self._returns += step.rewards
        self._lengths += 1
        lappers = np.flatnonzero(step.finished_lap_ticks)
        if len(lappers):
            report.laps += (step.finished_lap_ticks[lappers] / TICKS_PER_SECOND).tolist()
            report.lap_circuits += self._circuits_of(lappers)
            self._has_lapped[lappers] = True
        if self._sectors is not None and (laps := self._sectors.tick(step, self._tracks)):
            rows, times = zip(*laps, strict=True)
            report.sectors += times
            report.sector_circuits += self._circuits_of(rows)
        if not report.passed_a_gate:
            self._look_for_gate(step)
        if len(step.ended):
            self._note_episodes(step.ended)

    def take(self) -> Report:
        report, self._report = self._report, Report()
        return report

    def note_moments(self, observations: Moments, returns: Moments, seconds: float) -> None:
        """Of all ticks since the last report."""
        self._report.observations, self._report.returns = observations, returns
        self._report.seconds += seconds

    def _note_episodes(self, ended: NDArray[np.int64]) -> None:
        report = self._report
        report.episode_returns += self._returns[ended].tolist()
        report.episode_lengths += self._lengths[ended].tolist()
        report.completed += int(self._has_lapped[ended].sum())
        self._returns[ended], self._lengths[ended], self._has_lapped[ended] = 0.0, 0, False
        if self._tracks is not None:
            self._circuits = self._circuits_now()  # cars that begin anew may do so elsewhere

    def _look_for_gate(self, step: BatchStep) -> None:
        took_one = step.cars.checkpoint != self._checkpoints
        took_one[step.ended] = False
        self._checkpoints[...] = step.cars.checkpoint
        self._report.passed_a_gate = bool(took_one.any())

    def _circuits_now(self) -> NDArray[np.int64] | None:
        """Number of each car's circuit; a bridge does not say which, where there are several."""
        if self._tracks is not None:
            return self._numbers.take(self._tracks)
        return np.zeros(self._cars.num_envs, np.int64) if len(self._config.circuits) == 1 else None

    def _circuits_of(self, rows: Rows) -> list[int]:
        circuits = self._circuits
        return [] if circuits is None else [int(circuits[row]) for row in rows]
