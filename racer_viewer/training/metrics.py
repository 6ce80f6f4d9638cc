"""Driving metrics of a run: reward components, lap times, completed episodes. Nothing here needs torch."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from racer_env.bridge.interface import COMPONENT_KEYS, BatchStep
from racer_env.engine import TICKS_PER_SECOND

EPISODES = "racer/episodes_this_rollout"
EPISODE_WINDOW = 100
"""Number of episodes over which rewards and lengths are averaged, as in stable-baselines3."""


class StepInfo(NamedTuple):
    """Result of one tick of all cars, one array row per car."""

    rewards: NDArray[np.float64]
    components: NDArray[np.float64]
    lap_times: list[float]
    """Times [s] of the laps completed in this tick."""
    lap_rows: NDArray[np.int64]
    """Rows of the cars that completed a lap."""
    ended: NDArray[np.int64]
    """Rows of the cars whose episode ended."""


def step_info(step: BatchStep) -> StepInfo:
    """Extract the metrics of a tick."""
    rows = np.flatnonzero(step.finished_lap_ticks)
    times = (step.finished_lap_ticks[rows] / TICKS_PER_SECOND).tolist() if len(rows) else []
    return StepInfo(step.rewards, step.components, times, rows, step.ended)


@dataclass(eq=False)
class DrivingStats:
    """Statistics of some ticks of all cars.

    steps: environment steps, summed over cars. components: sums of the reward components. laps: lap times [s].
    lap_circuits: circuit index of each lap; empty if unknown. sectors: sector times [s] of laps, NaN where a sector was
    not driven completely. sector_circuits: circuit index of each row of sectors; empty if unknown. returns, lengths:
    reward and ticks of the episodes that ended. completed: how many of those episodes had a lap. gate_passed: whether
    any car has passed a gate so far.
    """

    steps: int = 0
    components: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(COMPONENT_KEYS)))
    laps: list[float] = field(default_factory=list)
    lap_circuits: list[int] = field(default_factory=list)
    sectors: list[list[float]] = field(default_factory=list)
    sector_circuits: list[int] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    completed: int = 0
    gate_passed: bool = False

    def add(self, other: DrivingStats) -> None:
        """Add the statistics of other ticks."""
        self.steps += other.steps
        self.components = self.components + other.components
        self.laps += other.laps
        self.lap_circuits += other.lap_circuits
        self.sectors += other.sectors
        self.sector_circuits += other.sector_circuits
        self.returns += other.returns
        self.lengths += other.lengths
        self.completed += other.completed
        self.gate_passed |= other.gate_passed


class EpisodeTracker:
    """Sums rewards and ticks of every car's episode."""

    def __init__(self, cars: int) -> None:
        self._returns, self._lengths = np.zeros(cars), np.zeros(cars, np.int64)
        self._has_lapped = np.zeros(cars, np.bool_)

    def step(self, info: StepInfo) -> DrivingStats:
        """Add a tick; return its statistics without circuits and sectors."""
        self._returns += info.rewards
        self._lengths += 1
        stats = DrivingStats(len(info.rewards), info.components.sum(axis=0), info.lap_times)
        if info.lap_times:
            self._has_lapped[info.lap_rows] = True
        rows = info.ended
        if len(rows):
            stats.returns, stats.lengths = self._returns[rows].tolist(), self._lengths[rows].tolist()
            stats.completed = int(self._has_lapped[rows].sum())
            self._returns[rows], self._lengths[rows], self._has_lapped[rows] = 0.0, 0, False
        return stats


class MetricsLogger(Protocol):
    """Collector of the metrics of one update, with the interface of stable-baselines3's Logger."""

    name_to_value: dict[str, float]

    def record(self, key: str, value: Any) -> None:
        """Set a metric."""

    def record_mean(self, key: str, value: float) -> None:
        """Add a value to the mean of a metric."""


class DrivingMetrics:
    """Records the statistics of a run as metrics.

    `reward/progress` ... `reward/stillness`: mean over steps and cars.
    `racer/mean_lap_time_sec`, `racer/best_lap_time_sec`: over the laps completed in a rollout.
    `racer/completion_rate`: share of the ended episodes with at least one completed lap.
    `racer/episodes_this_rollout`: number of episodes that ended.
    `rollout/ep_rew_mean`, `rollout/ep_len_mean`: mean over the last 100 episodes, in rewards of the environment.

    best_lap: best lap time [s] of the run. laps, episodes: numbers of the run.
    """

    def __init__(self) -> None:
        self.best_lap: float | None = None
        self.laps = self.episodes = 0
        self._rollout = DrivingStats()
        self._last_returns = deque[float](maxlen=EPISODE_WINDOW)
        self._last_lengths = deque[int](maxlen=EPISODE_WINDOW)

    def add(self, stats: DrivingStats, logger: MetricsLogger) -> None:
        """Record the reward components, and keep the rest for the end of the rollout."""
        if not stats.steps:
            return
        for key, value in zip(COMPONENT_KEYS, (stats.components / stats.steps).tolist(), strict=True):
            logger.record_mean(f"reward/{key}", value)
        rollout = self._rollout
        rollout.laps += stats.laps
        if stats.returns:
            rollout.returns += stats.returns
            rollout.lengths += stats.lengths
            rollout.completed += stats.completed
            self.episodes += len(stats.returns)
        if stats.laps:
            self.laps += len(stats.laps)
            self.best_lap = min([*stats.laps, self.best_lap or math.inf])

    def end_rollout(self, logger: MetricsLogger) -> None:
        """Record the metrics of the rollout."""
        rollout, self._rollout, record = self._rollout, DrivingStats(), logger.record
        ended = len(rollout.returns)
        if rollout.laps:
            record("racer/mean_lap_time_sec", float(np.mean(rollout.laps)))
            record("racer/best_lap_time_sec", min(rollout.laps))
        if ended:
            self._last_returns.extend(rollout.returns)
            self._last_lengths.extend(rollout.lengths)
            record("racer/completion_rate", rollout.completed / ended)
            record("rollout/ep_rew_mean", float(np.mean(self._last_returns)))
            record("rollout/ep_len_mean", float(np.mean(self._last_lengths)))
        if ended or EPISODES not in logger.name_to_value:
            record(EPISODES, ended)  # SAC writes metrics after several rollouts: a zero must not replace a count
