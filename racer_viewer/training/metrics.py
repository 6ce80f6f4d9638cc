"""What a run records of the driving: reward components, lap times, completion."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from racer_env.bridge.interface import COMPONENT_KEYS
from racer_env.engine import TICKS_PER_SECOND
from racer_viewer.training.vec_env import SB3VecEnv


class Tick(NamedTuple):
    """What one tick of all cars gave, as arrays with a row for each."""

    components: NDArray[np.float64]
    lap: NDArray[np.int64]
    step_count: NDArray[np.int64]
    ended: NDArray[np.int64]


class RacerMetricsCallback(BaseCallback):
    """Records reward components every step, and at the end of a rollout what happened in it.

    `reward/progress` ... `reward/stillness`: mean over steps and cars.
    `racer/mean_lap_time_sec`, `racer/best_lap_time_sec`: of the laps completed in the rollout.
    `racer/completion_rate`: part of the episodes that ended with at least one lap completed.
    `racer/episodes_this_rollout`: how many ended.

    A lap's time is the number of steps between two counts of a lap, or since the start of the episode, at 60 ticks a
    second. Works on any environment with the racer's infos; on a SB3VecEnv it reads arrays instead of dictionaries.
    `best_lap` and `laps` are kept over the whole run.
    """

    def __init__(self) -> None:
        super().__init__()
        self.best_lap: float | None = None
        self.laps = self.episodes = 0
        self._lap_times: list[float] = []
        self._ended = self._completed = 0
        self._lap = self._lap_start = np.zeros(0, np.int64)
        self._completed_now = np.zeros(0, np.bool_)

    def _on_training_start(self) -> None:
        self._cars = _find_cars(self.training_env)
        self._begin(self.training_env.num_envs)

    def _on_step(self) -> bool:
        tick = self._tick()
        for key, value in zip(COMPONENT_KEYS, tick.components.mean(axis=0).tolist(), strict=True):
            self.logger.record_mean(f"reward/{key}", value)
        self._count_laps(tick)
        if len(tick.ended):
            self._count_ends(tick.ended)
        return True

    def _on_rollout_end(self) -> None:
        if self._lap_times:
            self.logger.record("racer/mean_lap_time_sec", float(np.mean(self._lap_times)))
            self.logger.record("racer/best_lap_time_sec", min(self._lap_times))
        if self._ended:
            self.logger.record("racer/completion_rate", self._completed / self._ended)
        self.logger.record("racer/episodes_this_rollout", self._ended)
        self._lap_times, self._ended, self._completed = [], 0, 0

    def _begin(self, count: int) -> None:
        self._lap, self._lap_start = np.ones(count, np.int64), np.zeros(count, np.int64)
        self._completed_now = np.zeros(count, np.bool_)

    def _tick(self) -> Tick:
        if self._cars is not None:
            step = self._cars.last_step
            if not len(step.ended):
                return Tick(step.components, step.cars.lap, step.cars.step_count, step.ended)
            lap, step_count = step.cars.lap.copy(), step.cars.step_count.copy()
            lap[step.ended], step_count[step.ended] = step.final_cars.lap, step.final_cars.step_count
            return Tick(step.components, lap, step_count, step.ended)
        infos: list[dict[str, Any]] = self.locals["infos"]
        return Tick(
            np.array([[info[key] for key in COMPONENT_KEYS] for info in infos]),
            np.array([info["lap"] for info in infos]),
            np.array([info["stepCount"] for info in infos]),
            np.flatnonzero(self.locals["dones"]),
        )

    def _count_laps(self, tick: Tick) -> None:
        done = tick.lap > self._lap
        if not done.any():
            return
        times = (tick.step_count - self._lap_start)[done] / TICKS_PER_SECOND
        self._lap_times += times.tolist()
        self.laps += len(times)
        self.best_lap = min([*times.tolist(), *([self.best_lap] if self.best_lap else [])])
        self._lap[done], self._lap_start[done] = tick.lap[done], tick.step_count[done]
        self._completed_now |= done

    def _count_ends(self, ended: NDArray[np.int64]) -> None:
        self._ended += len(ended)
        self.episodes += len(ended)
        self._completed += int(self._completed_now[ended].sum())
        self._lap[ended], self._lap_start[ended], self._completed_now[ended] = 1, 0, False


def _find_cars(env: VecEnv) -> SB3VecEnv | None:
    """The SB3VecEnv within wrappers, if there is one."""
    while isinstance(env, VecEnvWrapper):
        env = env.venv
    return env if isinstance(env, SB3VecEnv) else None
