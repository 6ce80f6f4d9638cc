"""What a run records of the driving: reward components, lap times, completion."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from racer_env.bridge.interface import COMPONENT_KEYS
from racer_env.engine import TICKS_PER_SECOND
from racer_viewer.training.vec_env import SB3VecEnv

EPISODES = "racer/episodes_this_rollout"
REMEMBERED_EPISODES = 100
"""Over which episode rewards are averaged, as stable-baselines3 does."""


class Tick(NamedTuple):
    """What one tick of all cars gave, as arrays with a row for each."""

    rewards: NDArray[np.float64]
    components: NDArray[np.float64]
    laps: list[float]
    """Times [s] of the laps that were completed in it."""
    lappers: NDArray[np.int64]
    """Rows of the cars that completed one."""
    ended: NDArray[np.int64]


@dataclass(eq=False)
class Driven:
    """What cars drove: times [s] of their laps, and of the episodes that ended the rewards and lengths.

    completed: of these episodes, how many had a lap.
    """

    laps: list[float] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    completed: int = 0

    def add(self, other: Driven) -> None:
        self.laps += other.laps
        self.returns += other.returns
        self.lengths += other.lengths
        self.completed += other.completed


class Episodes:
    """Follows the episodes of cars from their beginning."""

    def __init__(self, cars: int) -> None:
        self._returns, self._lengths = np.zeros(cars), np.zeros(cars, np.int64)
        self._has_lapped = np.zeros(cars, np.bool_)

    def tick(self, tick: Tick) -> Driven:
        self._returns += tick.rewards
        self._lengths += 1
        driven = Driven(tick.laps)
        if tick.laps:
            self._has_lapped[tick.lappers] = True
        rows = tick.ended
        if len(rows):
            driven.returns, driven.lengths = self._returns[rows].tolist(), self._lengths[rows].tolist()
            driven.completed = int(self._has_lapped[rows].sum())
            self._returns[rows], self._lengths[rows], self._has_lapped[rows] = 0.0, 0, False
        return driven


class RacerMetricsCallback(BaseCallback):
    """Records reward components every step, and at the end of a rollout what happened in it.

    `reward/progress` ... `reward/stillness`: mean over steps and cars.
    `racer/mean_lap_time_sec`, `racer/best_lap_time_sec`: of the laps completed in the rollout.
    `racer/completion_rate`: part of the episodes that ended with at least one lap completed.
    `racer/episodes_this_rollout`: how many ended.
    `rollout/ep_rew_mean`, `rollout/ep_len_mean`: of the last 100 episodes, in rewards as the environment pays them.

    A lap's time is the number of steps between two counts of a lap, or since the start of the episode, at 60 ticks a
    second. Works on any environment with the racer's infos; on a SB3VecEnv it reads arrays instead of dictionaries,
    and knows that a first lap from elsewhere than the start line is none. `best_lap` and `laps` are of the whole run,
    `tick` is the latest one.
    """

    tick: Tick

    def __init__(self) -> None:
        super().__init__()
        self.best_lap: float | None = None
        self.laps = self.episodes = 0
        self._rollout = Driven()
        self._last_returns = deque[float](maxlen=REMEMBERED_EPISODES)
        self._last_lengths = deque[int](maxlen=REMEMBERED_EPISODES)

    def _on_training_start(self) -> None:
        count = self.training_env.num_envs
        self._cars, self._driving = find_cars(self.training_env), Episodes(count)
        self._lap, self._lap_start = np.ones(count, np.int64), np.zeros(count, np.int64)

    def _on_step(self) -> bool:
        self.tick = tick = self._from_infos() if self._cars is None else tick_of(self._cars)
        self.add(self._driving.tick(tick), tick.components.mean(axis=0))
        return True

    def add(self, driven: Driven, components: NDArray[np.float64]) -> None:
        """Count what was driven, by cars of this process or of others. components: (6,) means over steps and cars."""
        for key, value in zip(COMPONENT_KEYS, components.tolist(), strict=True):
            self.logger.record_mean(f"reward/{key}", value)
        self._rollout.add(driven)
        self.episodes += len(driven.returns)
        if driven.laps:
            self.laps += len(driven.laps)
            self.best_lap = min([*driven.laps, self.best_lap or math.inf])

    def _on_rollout_end(self) -> None:
        rollout, self._rollout, record = self._rollout, Driven(), self.logger.record
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
        if ended or EPISODES not in self.logger.name_to_value:
            record(EPISODES, ended)  # SAC writes its log now and then: zero must not hide a count

    def _from_infos(self) -> Tick:
        infos: list[dict[str, Any]] = self.locals["infos"]
        ended = np.flatnonzero(self.locals["dones"])
        lap, steps = (np.array([info[key] for info in infos]) for key in ("lap", "stepCount"))
        lappers = np.flatnonzero(lap > self._lap)
        times = ((steps - self._lap_start)[lappers] / TICKS_PER_SECOND).tolist()
        self._lap[lappers], self._lap_start[lappers] = lap[lappers], steps[lappers]
        self._lap[ended], self._lap_start[ended] = 1, 0
        components = np.array([[info[key] for key in COMPONENT_KEYS] for info in infos])
        return Tick(components.sum(axis=1), components, times, lappers, ended)


def tick_of(cars: SB3VecEnv) -> Tick:
    """The latest one."""
    step = cars.last_step
    lappers = np.flatnonzero(step.finished_lap_ticks)
    times = (step.finished_lap_ticks[lappers] / TICKS_PER_SECOND).tolist() if len(lappers) else []
    return Tick(step.rewards, step.components, times, lappers, step.ended)


def find_cars(env: VecEnv) -> SB3VecEnv | None:
    """The SB3VecEnv within wrappers, if there is one."""
    while isinstance(env, VecEnvWrapper):
        env = env.venv
    return env if isinstance(env, SB3VecEnv) else None
