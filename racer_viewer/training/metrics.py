"""Driving metrics of a run: reward components, lap times, completed episodes. Nothing here needs torch."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from racer_env.bridge.interface import COMPONENT_KEYS, BatchStep
from racer_env.engine import TICKS_PER_SECOND, Track
from racer_env.engine.car import MAX_SPEED
from racer_env.engine.rewards import COMPONENT_CAPACITY
from racer_env.engine.track import DEFAULT_GATES

EPISODES = "racer/episodes_this_rollout"
EPISODE_WINDOW = 100
"""Number of episodes over which rewards and lengths are averaged, as in stable-baselines3."""
STUCK_TICKS = 180
"""Minimum time without a gate after which a car counts as stuck [ticks]; a car that stands still is stopped then."""
STUCK_SPEED = MAX_SPEED / 4
"""Speed below which a car may count as stuck [units/s]; faster ones may have started beyond their next gate."""
NO_GATE = -1
"""Gate of a car whose episode has just started; its first tick sets it."""


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
    stopped: NDArray[np.bool_]
    """True for each ended episode that ended because the car stood still."""
    gates: NDArray[np.int64]
    """Last gate of each car, at the end of its episode if that ended."""
    speeds: NDArray[np.float64]
    """Speed of each car [units/s], at the end of its episode if that ended."""


def step_info(step: BatchStep) -> StepInfo:
    """Extract the metrics of a tick."""
    rows = np.flatnonzero(step.finished_lap_ticks)
    times = (step.finished_lap_ticks[rows] / TICKS_PER_SECOND).tolist() if len(rows) else []
    gates, speeds, ended = step.cars.checkpoint.astype(np.int64), step.cars.speed, step.ended
    if len(ended):
        speeds = speeds.copy()
        gates[ended], speeds[ended] = step.final_cars.checkpoint, step.final_cars.speed
    stopped = step.terminated[ended].astype(np.bool_)
    return StepInfo(step.rewards, step.components, times, rows, ended, stopped, gates, speeds)


def stuck_ticks(track: Track) -> int:
    """Return the time without a gate after which a car is stuck on this track [ticks]."""
    spacing = track.length / len(track.gates)
    return max(STUCK_TICKS, round(spacing / STUCK_SPEED * TICKS_PER_SECOND))


def completion_rate(distance: float, failures: int) -> float:
    """Return the probability that a car drives a whole lap without getting stuck, at the rate of failures seen.

    distance: laps driven by all cars, counted in gates. failures: how often a car was slower than `STUCK_SPEED` and had
    passed no gate for `stuck_ticks`, or was stopped because it stood still. The time limit of an episode is no failure:
    circuits whose lap is longer than an episode have a rate too.
    """
    return math.exp(-failures / distance) if distance else 0.0


@dataclass(eq=False)
class DrivingStats:
    """Statistics of some ticks of all cars.

    steps: environment steps, summed over cars. components: sums of the reward components and terms, with room for the
    maximum of terms, because a run may change them while it learns. laps: lap times [s].
    lap_circuits: circuit index of each lap; empty if unknown. sectors: sector times [s] of laps, NaN where a sector was
    not driven completely. sector_circuits: circuit index of each row of sectors; empty if unknown. returns, lengths:
    reward and ticks of the episodes that ended. distance, failures: see `completion_rate`. car_rewards, car_episodes:
    reward and number of ended episodes of each car of this process; None if unknown.
    """

    steps: int = 0
    components: NDArray[np.float64] = field(default_factory=lambda: np.zeros(COMPONENT_CAPACITY))
    laps: list[float] = field(default_factory=list)
    lap_circuits: list[int] = field(default_factory=list)
    sectors: list[list[float]] = field(default_factory=list)
    sector_circuits: list[int] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    distance: float = 0.0
    failures: int = 0
    car_rewards: NDArray[np.float64] | None = None
    car_episodes: NDArray[np.int64] | None = None

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
        self.distance += other.distance
        self.failures += other.failures


class EpisodeTracker:
    """Sums rewards and ticks of every car's episode, and counts gates and failures."""

    def __init__(self, cars: int) -> None:
        self._returns, self._lengths = np.zeros(cars), np.zeros(cars, np.int64)
        self._gates, self._since_gate = np.full(cars, NO_GATE), np.zeros(cars, np.int64)
        self._stuck = np.zeros(cars, np.bool_)

    def step(
        self,
        info: StepInfo,
        gate_counts: NDArray[np.float64] | float = DEFAULT_GATES,
        stuck_after: NDArray[np.int64] | int = STUCK_TICKS,
    ) -> DrivingStats:
        """Add a tick; return its statistics without circuits and sectors.

        gate_counts, stuck_after: number of gates and `stuck_ticks` of each car's circuit, or of all of them.
        """
        self._returns += info.rewards
        self._lengths += 1
        stats = DrivingStats(len(info.rewards), laps=info.lap_times)
        stats.components[: info.components.shape[1]] = info.components.sum(axis=0)
        stats.car_rewards, stats.car_episodes = info.rewards, np.zeros(len(info.rewards), np.int64)
        passed = (info.gates != self._gates) & (self._gates != NO_GATE)
        self._gates, rows = info.gates, info.ended
        self._since_gate += 1
        if passed.any():
            self._since_gate[passed], self._stuck[passed] = 0, False
            stats.distance = float((passed / gate_counts).sum())
        stuck = (self._since_gate >= stuck_after) & (info.speeds < STUCK_SPEED)
        if len(rows):
            stuck[rows] |= info.stopped
        stats.failures = int((stuck & ~self._stuck).sum())
        self._stuck |= stuck
        if len(rows):
            stats.returns, stats.lengths = self._returns[rows].tolist(), self._lengths[rows].tolist()
            self._returns[rows], self._lengths[rows], self._since_gate[rows] = 0.0, 0, 0
            self._gates[rows], self._stuck[rows] = NO_GATE, False
            stats.car_episodes[rows] = 1
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

    `reward/progress` ... `reward/stillness`, and `reward/NAME` of each term: mean over steps and cars.
    `racer/mean_lap_time_sec`, `racer/best_lap_time_sec`: over the laps completed in a rollout.
    `racer/completion_rate`: see `completion_rate`; since the last rollout with ended episodes.
    `racer/episodes_this_rollout`: number of episodes that ended.
    `rollout/ep_rew_mean`, `rollout/ep_len_mean`: mean over the last 100 episodes, in rewards of the environment.

    best_lap: best lap time [s] of the run. laps, episodes: numbers of the run.
    """

    def __init__(self) -> None:
        self.best_lap: float | None = None
        self.laps = self.episodes = 0
        self._rollout = DrivingStats()
        self._distance, self._failures = 0.0, 0
        """Distance and failures since the completion rate was recorded last."""
        self._last_returns = deque[float](maxlen=EPISODE_WINDOW)
        self._last_lengths = deque[int](maxlen=EPISODE_WINDOW)

    def add(self, stats: DrivingStats, logger: MetricsLogger, keys: Sequence[str] = COMPONENT_KEYS) -> None:
        """Record the reward components, and keep the rest for the end of the rollout. keys: names of the components."""
        if not stats.steps:
            return
        for key, value in zip(keys, (stats.components[: len(keys)] / stats.steps).tolist(), strict=True):
            logger.record_mean(f"reward/{key}", value)
        rollout = self._rollout
        rollout.laps += stats.laps
        self._distance += stats.distance
        self._failures += stats.failures
        if stats.returns:
            rollout.returns += stats.returns
            rollout.lengths += stats.lengths
            self.episodes += len(stats.returns)
        if stats.laps:
            self.laps += len(stats.laps)
            self.best_lap = min([*stats.laps, self.best_lap or math.inf])

    def forget_laps(self) -> None:
        """Forget the lap times so far: they are of a circuit that was exchanged for another one."""
        self.best_lap = None
        self._rollout.laps.clear()

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
            record("racer/completion_rate", completion_rate(self._distance, self._failures))
            self._distance, self._failures = 0.0, 0
            record("rollout/ep_rew_mean", float(np.mean(self._last_returns)))
            record("rollout/ep_len_mean", float(np.mean(self._last_lengths)))
        if ended or EPISODES not in logger.name_to_value:
            record(EPISODES, ended)  # SAC writes metrics after several rollouts: a zero must not replace a count
