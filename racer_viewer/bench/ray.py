"""`racer-viewer bench train --engine ray`: what Ray's runners bring on this machine, and what more of them could.

The same PPO learns with stable-baselines3 in one process and on Ray with one and with two runners, in turn, always on
the same number of cars. The parts of an iteration say how it grows with machines: runners gather side by side, but one
learner learns.
"""

from __future__ import annotations

import json
import pickle
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from racer_viewer.bench.machine import describe_machine
from racer_viewer.progress import prepare_engine
from racer_viewer.training.config import RunConfig
from racer_viewer.training.learner import make_env, make_model
from racer_viewer.training.presets import preset
from racer_viewer.training.ray.machines import ray_running
from racer_viewer.training.ray.settings import Spread

RUNNERS = (1, 2)
NEVER = 10**9
PICKLE_PROTOCOL = 5
"""That Ray sends with."""


@dataclass(frozen=True)
class Parts:
    """Medians of an iteration on Ray.

    steps_per_second: of it all. gathering: seconds that the slowest runner drove. waiting: seconds until all that was
    gathered had come. learning: seconds of the learner, with sending its weights. gathered_bytes: from each runner.
    weights_bytes: to each.
    """

    steps_per_second: float
    gathering: float
    waiting: float
    learning: float
    gathered_bytes: int
    weights_bytes: int


@dataclass(frozen=True)
class Figures:
    """steps: of an iteration. parts: by number of runners. limit: steps per second if gathering took no time.
    useful_runners: of this machine's speed, until gathering takes as long as learning.
    """

    machine: str
    steps: int
    sb3_steps_per_second: float
    parts: dict[int, Parts]
    limit: float
    useful_runners: float


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
    config = replace(config or preset("ppo"), timesteps=NEVER)
    with ExitStack() as open_things:
        open_things.enter_context(ray_running(None, sum(RUNNERS)))
        sb3 = open_things.enter_context(_sb3(config))
        on_ray = {runners: open_things.enter_context(_on_ray(config, runners)) for runners in RUNNERS}
        kinds: tuple[_Alone | _Spread, ...] = (sb3, *on_ray.values())
        for each in kinds:
            each.go()
        for _ in range(rounds):
            for each in kinds:
                each.seconds.append(each.go())
        parts = {runners: each.parts() for runners, each in on_ray.items()}
    steps, alone = config.num_cars * config.n_steps, parts[min(parts)]
    return Figures(
        machine=describe_machine(),
        steps=steps,
        sb3_steps_per_second=steps / statistics.median(sb3.seconds),
        parts=parts,
        limit=steps / alone.learning,
        useful_runners=alone.gathering / alone.learning,
    )


class _Alone:
    """stable-baselines3, one rollout at a time."""

    def __init__(self, model: Any) -> None:
        self._model, self.seconds = model, list[float]()

    def go(self) -> float:
        begin = time.perf_counter()
        self._model.learn(self._model.n_steps * self._model.n_envs, log_interval=NEVER, reset_num_timesteps=False)
        return time.perf_counter() - begin


class _Spread:
    """Ray, one iteration at a time."""

    def __init__(self, algorithm: Any, steps: int) -> None:
        self._algorithm, self._steps = algorithm, steps
        self.seconds, self._gathering, self._learning = list[float](), list[float](), list[float]()

    def go(self) -> float:
        begin = time.perf_counter()
        result = self._algorithm.train()
        seconds = time.perf_counter() - begin
        reports = self._algorithm.env_runner_group.foreach_env_runner("take_report", local_env_runner=False)
        self._gathering.append(max(each.seconds for each in reports))
        timers = result["timers"]
        self._learning.append(float(timers["learner_update_timer"] + timers["synch_weights"]))
        return seconds

    def parts(self) -> Parts:
        whole, learning = statistics.median(self.seconds), self._learning[-1]  # RLlib's own is a running mean
        group = self._algorithm.env_runner_group
        gathered = group.foreach_env_runner(_gathered_bytes, local_env_runner=False)
        state = self._algorithm.learner_group.get_state(components="learner/rl_module", inference_only=True)
        return Parts(
            steps_per_second=self._steps / whole,
            gathering=statistics.median(self._gathering[1:]),
            waiting=max(0.0, whole - learning),
            learning=learning,
            gathered_bytes=max(gathered),
            weights_bytes=len(pickle.dumps(state, PICKLE_PROTOCOL)),
        )


def _gathered_bytes(runner: Any) -> int:
    return len(pickle.dumps(runner.sample(), PICKLE_PROTOCOL))


@contextmanager
def _sb3(config: RunConfig) -> Iterator[_Alone]:
    env = make_env(config)
    try:
        yield _Alone(make_model(config, env))
    finally:
        env.close()


@contextmanager
def _on_ray(config: RunConfig, runners: int) -> Iterator[_Spread]:
    from racer_viewer.training.ray.algorithm import algorithm_of

    with algorithm_of(config, Spread(runners=runners), None) as algorithm:
        yield _Spread(algorithm, config.num_cars * config.n_steps)


def _print(figures: Figures) -> None:
    console = Console()
    table = Table(box=None, pad_edge=False, header_style="bold", title=figures.machine, title_justify="left")
    for column in ("PPO learns with", "steps/s", "gathering", "learning", "from a runner", "to a runner"):
        table.add_column(column, justify="left" if column.startswith("PPO") else "right")
    table.add_row("stable-baselines3", f"{figures.sb3_steps_per_second:,.0f}", "", "", "", "")
    for runners, each in figures.parts.items():
        table.add_row(
            f"Ray, {runners} runner{'s' if runners > 1 else ''}",
            f"{each.steps_per_second:,.0f}",
            f"{1000.0 * each.gathering:.0f} ms",
            f"{1000.0 * each.learning:.0f} ms",
            f"{each.gathered_bytes / 2**20:.2f} MiB",
            f"{each.weights_bytes / 2**10:.0f} KiB",
        )
    console.print(table)
    console.print(
        f"An iteration is {figures.steps:,} steps. However many runners: at most {figures.limit:,.0f} steps/s, "
        f"which is what the learner takes; {figures.useful_runners:.1f} runners gather as fast as it learns.",
        highlight=False,
    )
