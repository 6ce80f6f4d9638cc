"""`racer-viewer bench rewards`: time to score an hour of replays under ten rewards.

The built-in driver drives. The simulation of the replays, which is needed once, and the scores are timed apart, in
processor time: other programs on the machine do not count.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from racer_env.engine import REWARD_COMPONENTS, Config, Driver, Simulation, load_circuit, parse_config
from racer_env.engine.rewards import SPEED
from racer_env.engine.scoring import RecordedDrive, pay, record_drive, total
from racer_viewer.bench.harness import Goal, Summary, describe_machine, print_report
from racer_viewer.warmup import prepare_engine

Result = TypeVar("Result")

HOUR = 216_000
"""Number of ticks in an hour."""
MAX_SECONDS = 2.0
"""Limit of the time for the scores of an hour under ten rewards [s]."""
REWARDS = 10
TERMS = {
    "smooth": "-0.0005 * abs(steer_change)",
    "line": "0.0002 * (1 - centre_distance / half_width) if speed > 40 else 0",
    "bend": "0.001 * min(1, abs(curvature_50) * 40) * (speed / 160) ** 2",
}


@dataclass(frozen=True)
class RewardsReport:
    """Results. Times in seconds of the processor, medians over the rounds; ticks is the number that was scored."""

    machine: str
    ticks: int
    rewards: int
    simulation_seconds: float
    scores_seconds: float
    together: Goal


def run(rounds: int, as_json: bool) -> int:
    """Measure and print; return the exit code."""
    prepare_engine()
    report = measure(rounds)
    rows = [
        ("simulate the replays once", f"{report.simulation_seconds:.2f} s"),
        (f"pay {report.rewards} rewards", f"{report.scores_seconds:.2f} s"),
        ("both", f"{report.together.value:.2f} s {report.together}"),
    ]
    title = f"An hour of replays ({report.ticks:,} ticks) under {report.rewards} rewards, each with {len(TERMS)} terms"
    print_report(report, Summary(title, ("part", "time"), rows, (report.machine,)), as_json)
    return 0


def measure(rounds: int, ticks: int = HOUR) -> RewardsReport:
    """Simulate a long drive and pay it with ten rewards, some times."""
    track = load_circuit("track-01")
    simulation, driver, part = Simulation(track), Driver(track), 3000
    lap = np.zeros((min(part, ticks), 3))
    for tick in range(len(lap)):
        lap[tick] = driver.act(simulation.cars)[0]
        simulation.step(lap[tick : tick + 1])
    actions = np.resize(lap, (ticks, 3))
    speed = REWARD_COMPONENTS[SPEED].weight_key
    configs = [
        parse_config({"weights": {"progress": 1.0 + number, speed: 0.001 * number}, "terms": TERMS})
        for number in range(REWARDS)
    ]
    drive = record_drive(track, actions[:60])
    pay(drive, configs[0])  # compiles
    simulated, scored = [], []
    for _ in range(rounds):
        drive, seconds = _timed(lambda: record_drive(track, actions))
        simulated.append(seconds)
        _, seconds = _timed(partial(_scores, drive, configs))
        scored.append(seconds)
    both = statistics.median(a + b for a, b in zip(simulated, scored, strict=True))
    return RewardsReport(
        describe_machine(), ticks, len(configs), statistics.median(simulated), statistics.median(scored),
        Goal.at_most(both, MAX_SECONDS),
    )  # fmt: skip


def _scores(drive: RecordedDrive, configs: Sequence[Config]) -> list[float]:
    return [float(total(pay(drive, each)).sum()) for each in configs]


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    begin = time.process_time()
    result = work()
    return result, time.process_time() - begin
