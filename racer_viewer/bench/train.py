"""`racer-viewer bench train`: training speed of PPO, and what limits it.

The same PPO trains in turn on the racer's cars, on an environment that costs nothing (the ceiling), and on one RacerEnv
over WebSocket; the ratios are medians over the rounds.
"""

import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from racer_env import RacerEnv
from racer_env.env import ACTION_SPACE, OBSERVATION_SPACE
from racer_viewer.bench.bridge import bridge_process
from racer_viewer.bench.harness import Goal, Summary, describe_machine, median_ratio, print_report
from racer_viewer.training.config import RunConfig, preset
from racer_viewer.training.sb3 import Model, make_env, make_model
from racer_viewer.training.vec_env import RacerMetricsCallback
from racer_viewer.warmup import prepare_engine

RACER, CEILING, ONE_CAR = "RacerVectorEnv", "costs nothing", "one RacerEnv over WebSocket"
METRICS = "RacerVectorEnv with metrics"
MIN_OF_CEILING, MIN_SPEEDUP, MIN_WITH_METRICS = 0.85, 20.0, 0.99
"""Goals for ratios of training speed."""
NEVER = 10**9
ONE_CAR_ROLLOUT = 2048
"""Rollout length of the single car [steps]."""


@dataclass(frozen=True)
class TrainingReport:
    """Steps per second, and ratios of the racer's speed to the others."""

    machine: str
    steps_per_second: dict[str, float]
    of_ceiling: float
    against_one_car: float
    with_metrics: float


def run(rounds: int, as_json: bool) -> int:
    """Measure and print; return the exit code."""
    prepare_engine()
    report = measure(rounds)
    print_report(report, _summary(report), as_json)
    return 0


def measure(rounds: int, config: RunConfig | None = None) -> TrainingReport:
    """Measure rollouts of each kind in turn."""
    config = replace(config or preset("ppo"), timesteps=10**9)
    alone = replace(config, num_cars=1, n_steps=ONE_CAR_ROLLOUT)
    with ExitStack() as stack:
        url = stack.enter_context(bridge_process(uvloop=False))
        one_car = VecNormalize(DummyVecEnv([lambda: RacerEnv(url)]), gamma=config.gamma)
        learners = {
            RACER: _Learner(make_model(config, make_env(config))),
            CEILING: _Learner(make_model(config, VecNormalize(FreeCars(config.num_cars), gamma=config.gamma))),
            METRICS: _Learner(make_model(config, make_env(config)), RacerMetricsCallback()),
            ONE_CAR: _Learner(make_model(alone, one_car)),
        }
        for learner in learners.values():
            stack.callback(learner.close)
            learner.go()
        speeds: dict[str, list[float]] = {name: [] for name in learners}
        for _ in range(rounds):
            for name, learner in learners.items():
                speeds[name].append(learner.go())

    return TrainingReport(
        machine=describe_machine(),
        steps_per_second={name: statistics.median(values) for name, values in speeds.items()},
        of_ceiling=median_ratio(speeds, RACER, CEILING),
        against_one_car=median_ratio(speeds, RACER, ONE_CAR),
        with_metrics=median_ratio(speeds, METRICS, RACER),
    )


class _Learner:
    """A model that trains one rollout at a time."""

    def __init__(self, model: Model, callback: RacerMetricsCallback | None = None) -> None:
        self._model, self._callback = model, callback
        self._steps = model.n_steps * model.n_envs

    def go(self) -> float:
        """Collect a rollout and train on it; return steps per second."""
        begin = time.perf_counter()
        self._model.learn(self._steps, callback=self._callback, log_interval=NEVER, reset_num_timesteps=False)
        return self._steps / (time.perf_counter() - begin)

    def close(self) -> None:
        env = self._model.get_env()
        if env is not None:
            env.close()


class FreeCars(VecEnv):
    """An environment that costs nothing: random observations and rewards, drawn once."""

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs, OBSERVATION_SPACE, ACTION_SPACE)
        rng = np.random.default_rng(0)
        self._observations = rng.uniform(0.0, 1.0, (num_envs, *OBSERVATION_SPACE.shape)).astype(np.float32)
        self._rewards = rng.uniform(-0.01, 0.01, num_envs).astype(np.float32)
        self._dones, self._infos = np.zeros(num_envs, np.bool_), [{} for _ in range(num_envs)]  # type: ignore[var-annotated]

    def reset(self) -> NDArray[np.float32]:
        return self._observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Ignore the actions."""

    def step_wait(self) -> VecEnvStepReturn:
        return self._observations, self._rewards, self._dones, self._infos

    def close(self) -> None:
        """Do nothing."""

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [getattr(self, attr_name, None) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *arguments: Any, indices: VecEnvIndices = None, **options: Any) -> list[Any]:
        return []

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[None]:
        return [None] * self.num_envs


def _summary(report: TrainingReport) -> Summary:
    goals = {
        "of the ceiling": Goal.at_least(report.of_ceiling, MIN_OF_CEILING),
        "× one car over WebSocket": Goal.at_least(report.against_one_car, MIN_SPEEDUP),
        "of it with metrics": Goal.at_least(report.with_metrics, MIN_WITH_METRICS),
    }
    rows = [[name, f"{speed:,.0f}"] for name, speed in report.steps_per_second.items()]
    lines = [f"{goal.value:.2f} {text} {goal}" for text, goal in goals.items()]
    return Summary(report.machine, ("PPO trains on", "steps/s"), rows, lines)
