"""`racer-viewer bench train`: training speed of PPO with each engine.

Whole runs, with metrics, run log, policy log and car feed, learn in turn: one rollout and its update at a time. The
ratios are medians over the rounds, so that other programs on the machine change them little. A learner without any of
that shows what it costs.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue

from racer_env.errors import RacerError
from racer_viewer.bench.harness import Goal, Summary, describe_machine, median_ratio, print_report
from racer_viewer.training.config import RunConfig, preset
from racer_viewer.training.controlled_run import CarFeedCallback
from racer_viewer.training.learner import Callback, CallbackList
from racer_viewer.training.metrics import DrivingStats
from racer_viewer.training.run import Run, create_learner
from racer_viewer.training.run_log import RunLog
from racer_viewer.warmup import prepare_engine

SB3, ONE_THREAD, TWO_THREADS = "sb3", "native, 1 thread", "native, 2 threads"
LEARNER_ALONE = "native, 1 thread, no metrics"
MIN_RATIOS = {
    "quick": {ONE_THREAD: 3.5, TWO_THREADS: 5.0},
    "champion": {TWO_THREADS: 4.0},
}
"""Goals for the speed of the native engine against stable-baselines3, by preset."""
MAX_GATHERING, MAX_METRICS = 0.25, 0.01
"""Goals for parts of the time of the native engine with one thread."""
ENDLESS = 10**9
START_TIMEOUT = 120.0
"""Time for a learner to start, torch and compilation included [s]."""


@dataclass(frozen=True)
class TrainingReport:
    """Training speed by engine.

    Attributes:
        steps_per_second: medians over the rounds
        steps_per_cpu_second: the same by the time of all threads, which other programs change less
        ratios: speed of the native engine, by threads, against stable-baselines3; medians over the rounds
        cpu_ratios: the same by the time of all threads
        gathering: part of the time in which rollouts are collected
        metrics: part of the time of the native engine that metrics, run log, policy log and car feed take
    """

    machine: str
    preset: str
    steps_per_second: dict[str, float]
    steps_per_cpu_second: dict[str, float]
    ratios: dict[str, float]
    cpu_ratios: dict[str, float]
    gathering: dict[str, float]
    metrics: float


def run(name: str, rounds: int, as_json: bool) -> int:
    """Measure a preset and print; return the exit code."""
    prepare_engine()
    report = measure(name, rounds, preset("ppo", name))
    print_report(report, _summary(report), as_json)
    return 0


def measure(name: str, rounds: int, config: RunConfig) -> TrainingReport:
    """Measure rollouts and updates of each engine in turn."""
    config = replace(config, timesteps=ENDLESS, begin_from="", checkpoint_every=0, evaluate_every=0)
    configs = {
        SB3: replace(config, engine="sb3"),
        ONE_THREAD: replace(config, engine="native", threads=1),
        LEARNER_ALONE: replace(config, engine="native", threads=1),
        TWO_THREADS: replace(config, engine="native", threads=2),
    }
    turns: dict[str, list[Turn]] = {each: [] for each in configs}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="racer-bench-")))
        trainees: dict[str, Trainee] = {}
        for number, (kind, each) in enumerate(configs.items()):
            new = AloneTrainee if kind == LEARNER_ALONE else RunTrainee
            trainees[kind] = stack.enter_context(closing(new(replace(each, name=f"run-{number}"), folder)))
            trainees[kind].go()
        for _ in range(rounds):
            for kind, trainee in trainees.items():
                turns[kind].append(trainee.go())

    speeds = {kind: [1.0 / turn.seconds for turn in each] for kind, each in turns.items()}
    cpu_speeds = {kind: [1.0 / turn.cpu_seconds for turn in each] for kind, each in turns.items()}
    steps = config.num_cars * config.n_steps
    return TrainingReport(
        machine=describe_machine(),
        preset=name,
        steps_per_second={kind: steps * statistics.median(each) for kind, each in speeds.items()},
        steps_per_cpu_second={kind: steps * statistics.median(each) for kind, each in cpu_speeds.items()},
        ratios=_ratios(speeds),
        cpu_ratios=_ratios(cpu_speeds),
        gathering={
            kind: statistics.median(turn.gathering / turn.seconds for turn in each) for kind, each in turns.items()
        },
        metrics=1.0 - median_ratio(cpu_speeds, ONE_THREAD, LEARNER_ALONE),
    )


def _ratios(speeds: Mapping[str, list[float]]) -> dict[str, float]:
    return {kind: median_ratio(speeds, kind, SB3) for kind in (ONE_THREAD, TWO_THREADS)}


@dataclass(frozen=True)
class Turn:
    """Times of one rollout and its update [s]: all of it, that of all threads, and that of the rollout alone."""

    seconds: float
    cpu_seconds: float
    gathering: float


class Trainee(ABC):
    """A learner in a thread of its own that collects one rollout and learns from it whenever it is its turn."""

    def __init__(self, config: RunConfig, runs: Path) -> None:
        self._config, self._runs = config, runs
        self._callback = _TurnCallback()
        self._thread = threading.Thread(target=self._callback.guard(self._learn), name=f"racer-{config.name}")
        self._thread.start()
        self._callback.wait()

    def go(self) -> Turn:
        """Let it learn once."""
        return self._callback.go()

    def close(self) -> None:
        self._callback.stop()
        self._thread.join()

    @abstractmethod
    def _learn(self) -> None:
        """Learn until the callback asks to stop."""


class RunTrainee(Trainee):
    """A whole training run, as users start it."""

    def _learn(self) -> None:
        run = Run(self._config, self._runs)
        with closing(CarFeedCallback(run, lambda: True, print)) as feed:
            run.learn(callbacks=[feed, self._callback])


class AloneTrainee(Trainee):
    """A learner without anything that a run adds."""

    def _learn(self) -> None:
        folder = self._runs / self._config.name
        folder.mkdir()
        with closing(create_learner(self._config)) as learner, closing(RunLog(folder, 0, print)) as log:
            group = CallbackList([self._callback])
            group.attach(learner)
            learner.learn(folder, log, group)


class _TurnCallback(Callback):
    """Stops a learner before each rollout until it is its turn, and measures its turns."""

    def __init__(self) -> None:
        self._permits: SimpleQueue[bool] = SimpleQueue()
        self._turns: SimpleQueue[Turn | Exception | None] = SimpleQueue()
        self._going = True
        self._begin = self._cpu_begin = self._collected = 0.0
        self._learning = False

    def go(self) -> Turn:
        """Let the learner take a turn, and wait for its end."""
        self._permits.put(True)
        turn = self.wait()
        assert turn is not None
        return turn

    def stop(self) -> None:
        self._permits.put(False)

    def wait(self) -> Turn | None:
        """Return the next turn, or None after the start of the learner. Raises the error that ended it."""
        turn = self._turns.get(timeout=START_TIMEOUT)
        if isinstance(turn, Exception):
            raise turn
        return turn

    def guard(self, learn: Callable[[], None]) -> Callable[[], None]:
        """Return `learn`, which passes its errors to the measuring thread."""

        def guarded() -> None:
            try:
                learn()
                self._turns.put(RacerError("the learner ended"))
            except Exception as error:
                self._turns.put(error)

        return guarded

    def on_rollout_start(self) -> None:
        now, cpu = time.perf_counter(), time.process_time()
        if not self._going:
            return
        turn = Turn(now - self._begin, cpu - self._cpu_begin, self._collected - self._begin)
        self._turns.put(turn if self._learning else None)
        self._going = self._learning = self._permits.get()
        self._begin, self._cpu_begin = time.perf_counter(), time.process_time()

    def on_step(self, stats: DrivingStats) -> bool:
        return self._going

    def on_rollout_end(self) -> None:
        self._collected = time.perf_counter()


def _summary(report: TrainingReport) -> Summary:
    rows = [
        [kind, f"{speed:,.0f}", f"{report.steps_per_cpu_second[kind]:,.0f}", f"{report.gathering[kind]:.0%}"]
        for kind, speed in report.steps_per_second.items()
    ]
    lines = []
    for kind, ratio in report.ratios.items():
        goal = MIN_RATIOS.get(report.preset, {}).get(kind)
        text = f" {Goal.at_least(ratio, goal)}" if goal else ""
        lines.append(f"{kind}: {ratio:.2f} × sb3 ({report.cpu_ratios[kind]:.2f} by CPU time){text}")
    gathering = Goal.at_most(report.gathering[ONE_THREAD], MAX_GATHERING)
    metrics = Goal.at_most(report.metrics, MAX_METRICS)
    lines += [f"gathering: {gathering.value:.0%} {gathering}", f"metrics and car feed: {metrics.value:.1%} {metrics}"]
    columns = (f"PPO, preset {report.preset}", "steps/s", "steps/CPU s", "gathering")
    return Summary(report.machine, columns, rows, lines)
