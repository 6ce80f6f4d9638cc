"""`racer-viewer bench train --engine ray`: training speed with Ray's runners on this machine, and its limit.

The same PPO trains in turn in one process, with the native engine and with stable-baselines3, and on Ray with one and
with two runners, always on the same number of cars. The parts of an iteration show how it scales: runners collect in
parallel, one learner trains.
"""

from __future__ import annotations

import pickle
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from racer_viewer.bench.harness import Summary, describe_machine, print_report
from racer_viewer.bench.train import AloneTrainee
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
"""Pickle protocol that Ray uses."""


@dataclass(frozen=True)
class IterationParts:
    """Medians of an iteration on Ray.

    Attributes:
        driving: time of the slowest runner [s]
        gathering: time from the request until all rollouts have arrived [s]
        learning: time of the learner [s]
        gathered_bytes: size of the rollout from each runner
        weights_bytes: size of the weights to each runner
    """

    steps_per_second: float
    driving: float
    gathering: float
    learning: float
    gathered_bytes: int
    weights_bytes: int


@dataclass(frozen=True)
class RayReport:
    """Results of the benchmark.

    Attributes:
        steps: steps of an iteration
        native_steps_per_second: speed of the native engine in one thread
        parts: parts of an iteration by number of runners
        limit: steps per second if collecting took no time
        useful_runners: number of runners that collect as fast as the learner trains
    """

    machine: str
    steps: int
    native_steps_per_second: float
    sb3_steps_per_second: float
    parts: dict[int, IterationParts]
    limit: float
    useful_runners: float


def run(rounds: int, as_json: bool) -> int:
    """Measure and print; return the exit code."""
    prepare_engine()
    report = measure(rounds)
    print_report(report, _summary(report), as_json)
    return 0


def measure(rounds: int) -> RayReport:
    """Measure iterations of each kind in turn."""
    config = replace(preset("ppo"), timesteps=NEVER)
    with ExitStack() as stack:
        stack.enter_context(ray_session(None, sum(RUNNERS)))
        native, sb3 = stack.enter_context(_native(config)), stack.enter_context(_sb3(config))
        on_ray = {runners: stack.enter_context(_on_ray(config, runners)) for runners in RUNNERS}
        kinds: tuple[_NativeRounds | _Sb3Rounds | _RayRounds, ...] = (native, sb3, *on_ray.values())
        for each in kinds:
            each.go()
        for _ in range(rounds):
            for each in kinds:
                each.seconds.append(each.go())
        parts = {runners: each.parts() for runners, each in on_ray.items()}
    steps, single = config.num_cars * config.n_steps, parts[min(parts)]
    return RayReport(
        machine=describe_machine(),
        steps=steps,
        native_steps_per_second=steps / statistics.median(native.seconds),
        sb3_steps_per_second=steps / statistics.median(sb3.seconds),
        parts=parts,
        limit=steps / single.learning,
        useful_runners=single.gathering / single.learning,
    )


class _NativeRounds:
    """Native engine in one thread, one rollout at a time."""

    def __init__(self, trainee: AloneTrainee) -> None:
        self._trainee, self.seconds = trainee, list[float]()

    def go(self) -> float:
        return self._trainee.go().seconds


class _Sb3Rounds:
    """stable-baselines3, one rollout at a time."""

    def __init__(self, model: Any) -> None:
        self._model, self.seconds = model, list[float]()

    def go(self) -> float:
        begin = time.perf_counter()
        self._model.learn(self._model.n_steps * self._model.n_envs, log_interval=NEVER, reset_num_timesteps=False)
        return time.perf_counter() - begin


class _RayRounds:
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

    def parts(self) -> IterationParts:
        measured = self._iterations[1:]
        return IterationParts(
            steps_per_second=measured[0].steps / statistics.median(self.seconds),
            driving=statistics.median(max(runner.seconds for runner in each.rollouts) for each in measured),
            gathering=statistics.median(each.gathering for each in measured),
            learning=statistics.median(each.learning for each in measured),
            gathered_bytes=max(_sent(each) for each in measured[-1].rollouts),
            weights_bytes=_sent(self._algorithm.policy_state()),
        )


def _sent(content: object) -> int:
    """Return the size of an object on the wire [bytes]."""
    return len(pickle.dumps(content, PICKLE_PROTOCOL))


@contextmanager
def _native(config: RunConfig) -> Iterator[_NativeRounds]:
    config = replace(config, engine="native", threads=1, name="native")
    with (
        tempfile.TemporaryDirectory(prefix="racer-bench-") as folder,
        closing(AloneTrainee(config, Path(folder))) as trainee,
    ):
        yield _NativeRounds(trainee)


@contextmanager
def _sb3(config: RunConfig) -> Iterator[_Sb3Rounds]:
    env = make_env(config)
    try:
        yield _Sb3Rounds(make_model(config, env))
    finally:
        env.close()


@contextmanager
def _on_ray(config: RunConfig, runners: int) -> Iterator[_RayRounds]:
    from racer_viewer.training.ray.algorithm import build_algorithm

    settings = RaySettings(runners=runners)
    with build_algorithm(config, settings, RunnerSettings(settings.runner_config(config))) as algorithm:
        yield _RayRounds(algorithm)


def _summary(report: RayReport) -> Summary:
    native, sb3 = report.native_steps_per_second, report.sb3_steps_per_second
    rows = [["native, 1 thread", f"{native:,.0f}", "1.00"], ["sb3", f"{sb3:,.0f}", f"{sb3 / native:.2f}"]]
    for runners, each in report.parts.items():
        rows.append(
            [
                f"Ray, {runners} runner{'s' if runners > 1 else ''}",
                f"{each.steps_per_second:,.0f}",
                f"{each.steps_per_second / native:.2f}",
                *(f"{1000.0 * seconds:.0f} ms" for seconds in (each.driving, each.gathering, each.learning)),
                *(f"{size / 2**10:.0f} KiB" for size in (each.gathered_bytes, each.weights_bytes)),
            ]
        )
    columns = ("PPO trains in", "steps/s", "ratio", "driving", "gathering", "learning", "from each", "to each")
    line = (
        f"An iteration is {report.steps:,} steps. The learner limits any number of runners to {report.limit:,.0f} "
        f"steps/s; {report.useful_runners:.1f} runners collect as fast as it trains."
    )
    return Summary(report.machine, columns, rows, [line])
