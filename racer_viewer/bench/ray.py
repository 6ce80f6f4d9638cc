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
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from racer_viewer.bench.harness import describe_machine
from racer_viewer.training.config import RunConfig, preset
from racer_viewer.training.ray.cluster import ray_session
from racer_viewer.training.ray.settings import RaySettings, RunnerSettings
from racer_viewer.training.sb3 import make_env, make_model
from racer_viewer.warmup import prepare_engine

if TYPE_CHECKING:
    from racer_viewer.training.ray.algorithm import Iteration, RacerPPO

RUNNERS = (1, 2)
NEVER = 10**9
PICKLE_PROTOCOL = 5
"""That Ray sends with."""


@dataclass(frozen=True)
class Parts:
    """Medians of an iteration on Ray.

    steps_per_second: of it all. driving: seconds that the slowest runner took. gathering: seconds from the request
    until everything had come. learning: seconds of the learner. gathered_bytes: from each runner. weights_bytes: to
    each.
    """

    steps_per_second: float
    driving: float
    gathering: float
    learning: float
    gathered_bytes: int
    weights_bytes: int


@dataclass(frozen=True)
class Figures:
    """steps: of an iteration. parts: by number of runners. limit: steps per second if gathering took no time.
    useful_runners: of this machine's speed, that gather as fast as it learns.
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


def measure(rounds: int) -> Figures:
    config = replace(preset("ppo"), timesteps=NEVER)
    with ExitStack() as open_things:
        open_things.enter_context(ray_session(None, sum(RUNNERS)))
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

    def __init__(self, algorithm: RacerPPO) -> None:
        self._algorithm = algorithm
        self.seconds: list[float] = []
        self._iterations: list[Iteration] = []

    def go(self) -> float:
        begin = time.perf_counter()
        self._algorithm.train()
        seconds = time.perf_counter() - begin
        self._iterations.append(self._algorithm.last)
        return seconds

    def parts(self) -> Parts:
        measured = self._iterations[1:]
        return Parts(
            steps_per_second=measured[0].steps / statistics.median(self.seconds),
            driving=statistics.median(max(runner.seconds for runner in each.rollouts) for each in measured),
            gathering=statistics.median(each.gathering for each in measured),
            learning=statistics.median(each.learning for each in measured),
            gathered_bytes=max(_sent(each) for each in measured[-1].rollouts),
            weights_bytes=_sent(self._algorithm.policy_state()),
        )


def _sent(content: object) -> int:
    """Bytes of it on the wire."""
    return len(pickle.dumps(content, PICKLE_PROTOCOL))


@contextmanager
def _sb3(config: RunConfig) -> Iterator[_Alone]:
    env = make_env(config)
    try:
        yield _Alone(make_model(config, env))
    finally:
        env.close()


@contextmanager
def _on_ray(config: RunConfig, runners: int) -> Iterator[_Spread]:
    from racer_viewer.training.ray.algorithm import build_algorithm

    settings = RaySettings(runners=runners)
    with build_algorithm(config, settings, RunnerSettings(settings.runner_config(config))) as algorithm:
        yield _Spread(algorithm)


def _print(figures: Figures) -> None:
    console = Console()
    table = Table(box=None, pad_edge=False, header_style="bold", title=figures.machine, title_justify="left")
    for column in ("PPO learns in", "steps/s", "ratio", "driving", "gathering", "learning", "from each", "to each"):
        table.add_column(column, justify="left" if column.startswith("PPO") else "right")
    table.add_row("SB3 alone", f"{figures.sb3_steps_per_second:,.0f}", "1.00")
    for runners, each in figures.parts.items():
        table.add_row(
            f"Ray, {runners} runner{'s' if runners > 1 else ''}",
            f"{each.steps_per_second:,.0f}",
            f"{each.steps_per_second / figures.sb3_steps_per_second:.2f}",
            f"{1000.0 * each.driving:.0f} ms",
            f"{1000.0 * each.gathering:.0f} ms",
            f"{1000.0 * each.learning:.0f} ms",
            f"{each.gathered_bytes / 2**10:.0f} KiB",
            f"{each.weights_bytes / 2**10:.0f} KiB",
        )
    console.print(table)
    console.print(
        f"An iteration is {figures.steps:,} steps. However many runners: at most {figures.limit:,.0f} steps/s, "
        f"which is what the learner takes; {figures.useful_runners:.1f} runners gather as fast as it learns.",
        highlight=False,
    )
