"""`racer-viewer bench train`: how fast PPO learns here, and what holds it up.

The same PPO learns on the racer's cars, on an environment that costs nothing (the ceiling), and on one RacerEnv over a
WebSocket, in turn; the ratios are medians over the rounds.
"""

import json
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from racer_env import RacerEnv
from racer_env.env import ACTION_SPACE, OBSERVATION_SPACE
from racer_viewer.bench.bridge import bridge_process
from racer_viewer.bench.harness import describe_machine
from racer_viewer.training.config import RunConfig, preset
from racer_viewer.training.sb3 import Model, RacerMetricsCallback, make_env, make_model
from racer_viewer.warmup import prepare_engine

RACER, CEILING, ONE_CAR = "RacerVectorEnv", "costs nothing", "one RacerEnv over WebSocket"
METRICS = "RacerVectorEnv with metrics"
LEAST_OF_CEILING, LEAST_SPEEDUP, LEAST_WITH_METRICS = 0.85, 20.0, 0.99
NEVER = 10**9
ONE_CAR_ROLLOUT = 2048
"""Steps between two updates, where there is only one car."""


@dataclass(frozen=True)
class Figures:
    """Steps per second, and the racer's against the others'."""

    machine: str
    steps_per_second: dict[str, float]
    of_ceiling: float
    against_one_car: float
    with_metrics: float


def run(rounds: int, as_json: bool) -> int:
    """Measure and print."""
    prepare_engine()
    figures = measure(rounds)
    if as_json:
        print(json.dumps(asdict(figures), indent=2))
    else:
        _print(figures)
    return 0


def measure(rounds: int, config: RunConfig | None = None) -> Figures:
    config = replace(config or preset("ppo"), timesteps=10**9)
    alone = replace(config, num_cars=1, n_steps=ONE_CAR_ROLLOUT)
    with ExitStack() as open_things:
        url = open_things.enter_context(bridge_process(uvloop=False))
        one_car = VecNormalize(DummyVecEnv([lambda: RacerEnv(url)]), gamma=config.gamma)
        learners = {
            RACER: _Learner(make_model(config, make_env(config))),
            CEILING: _Learner(make_model(config, VecNormalize(FreeCars(config.num_cars), gamma=config.gamma))),
            METRICS: _Learner(make_model(config, make_env(config)), RacerMetricsCallback()),
            ONE_CAR: _Learner(make_model(alone, one_car)),
        }
        for learner in learners.values():
            open_things.callback(learner.close)
            learner.go()
        speeds: dict[str, list[float]] = {name: [] for name in learners}
        for _ in range(rounds):
            for name, learner in learners.items():
                speeds[name].append(learner.go())

    def ratio(one: str, other: str) -> float:
        return statistics.median(a / b for a, b in zip(speeds[one], speeds[other], strict=True))

    return Figures(
        machine=describe_machine(),
        steps_per_second={name: statistics.median(values) for name, values in speeds.items()},
        of_ceiling=ratio(RACER, CEILING),
        against_one_car=ratio(RACER, ONE_CAR),
        with_metrics=ratio(METRICS, RACER),
    )


class _Learner:
    """A model that learns one rollout at a time."""

    def __init__(self, model: Model, callback: RacerMetricsCallback | None = None) -> None:
        self._model, self._callback = model, callback
        self._steps = model.n_steps * model.n_envs

    def go(self) -> float:
        """Gather a rollout and learn from it; steps per second."""
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
        """Nothing is done with them."""

    def step_wait(self) -> VecEnvStepReturn:
        return self._observations, self._rewards, self._dones, self._infos

    def close(self) -> None:
        """Nothing is open."""

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


def _print(figures: Figures) -> None:
    console = Console()
    table = Table(box=None, pad_edge=False, header_style="bold", title=figures.machine, title_justify="left")
    table.add_column("PPO learns on")
    table.add_column("steps/s", justify="right")
    for name, speed in figures.steps_per_second.items():
        table.add_row(name, f"{speed:,.0f}")
    console.print(table)
    for text, value, least in (
        ("of the ceiling", figures.of_ceiling, LEAST_OF_CEILING),
        ("× one car over WebSocket", figures.against_one_car, LEAST_SPEEDUP),
        ("of it with metrics", figures.with_metrics, LEAST_WITH_METRICS),
    ):
        verdict = "reached" if value >= least else "missed"
        console.print(f"{value:.2f} {text} (at least {least:g}: {verdict})", markup=False, highlight=False)
