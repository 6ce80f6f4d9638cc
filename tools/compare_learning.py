"""Compare how the engines of training learn: `python tools/compare_learning.py results.json --seeds 20`.

Each run trains one seed of preset `quick` on one circuit with one engine. Its policy is evaluated before every rollout
without noise from the start line: a lap is clean if the car touches no wall and never leaves the road.
After all steps the fastest flying lap is measured, unless `--first-laps` ends runs at their first clean lap: it needs
many more seeds than lap times, which differ little. Results are written after every run; a run that is in the file is
not repeated, so that the comparison can be interrupted, continued and extended. The table of all results is printed.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import cast

import msgspec
import numpy as np

from racer_env.engine import Track, load_circuit
from racer_viewer.agents import Agent, load_agent
from racer_viewer.paths import atomic_write
from racer_viewer.training.config import Engine, RunConfig, preset
from racer_viewer.training.evaluation import evaluate
from racer_viewer.training.learner import Callback, CallbackList
from racer_viewer.training.metrics import DrivingStats
from racer_viewer.training.run import create_learner
from racer_viewer.training.run_log import RunLog

ENGINES = ("native", "sb3")
MAX_DIFFERENCE = 0.1
"""Difference of medians, of the first clean lap and of the lap time, up to which two engines learn equally well."""
OFF_TRACK_PENALTY = {"track-03": -0.01}
"""Weights that replace the preset's, by circuit. With the preset's it pays to cut the corners of track-03: whether and
when a policy drives a clean lap there is chance."""
ROLLOUT = preset("ppo").n_steps * preset("ppo").num_cars
"""Steps of a rollout: the first laps are known to no less."""
RESAMPLES = 20_000
"""Number of random divisions of the seeds for the probability that two engines are alike."""


@dataclass(frozen=True)
class Result:
    """Result of one seed.

    first_lap, first_clean_lap: environment steps before them; None if there was none.
    lap: fastest flying lap after all steps [s]; None without one. clean: whether that drive was clean.
    seconds: duration of the run, without evaluations. steps: steps of the whole run.
    """

    engine: str
    track: str
    seed: int
    steps: int
    first_lap: int | None
    first_clean_lap: int | None
    lap: float | None
    clean: bool
    seconds: float


class FirstLapsCallback(Callback):
    """Evaluates the policy before every rollout until it drives a clean lap.

    lap, clean_lap: steps of the first ones; None before. seconds: time spent on evaluations.
    stop: end the run with the first clean lap.
    """

    def __init__(self, track: Track, folder: Path, stop: bool) -> None:
        self._track, self._folder, self._stop = track, folder, stop
        self.lap: int | None = None
        self.clean_lap: int | None = None
        self.seconds = 0.0

    def on_rollout_start(self) -> None:
        if self.clean_lap is None:
            begin = time.perf_counter()
            (drive,) = evaluate(self.agent().act, [self._track], enough_laps=1)
            if drive.laps:
                self.lap = self.lap or self.learner.steps
                self.clean_lap = self.learner.steps if drive.clean else None
            self.seconds += time.perf_counter() - begin

    def on_step(self, stats: DrivingStats) -> bool:
        return not self._stop or self.clean_lap is None

    def agent(self) -> Agent:
        """Return the current policy."""
        return load_agent(self.learner.save(self._folder / "policy.zip"))


def run_config(engine: str, track: str, seed: int, steps: int, threads: int) -> RunConfig:
    """Return the config of a run."""
    config = preset("ppo")
    rewards = config.rewards
    if track in OFF_TRACK_PENALTY:
        weights = msgspec.structs.replace(rewards.weights, off_track_penalty=OFF_TRACK_PENALTY[track])
        rewards = msgspec.structs.replace(rewards, weights=weights)
    return replace(
        config,
        engine=cast(Engine, engine),
        tracks=(track,),
        seed=seed,
        timesteps=steps,
        threads=threads,
        rewards=rewards,
    )


def measure(config: RunConfig, first_laps: bool) -> Result:
    """Train one seed. first_laps: end at the first clean lap."""
    circuit = load_circuit(config.tracks[0])
    with tempfile.TemporaryDirectory() as name, closing(create_learner(config)) as learner:
        folder = Path(name)
        first = FirstLapsCallback(circuit, folder, first_laps)
        group = CallbackList([first])
        group.attach(learner)
        begin = time.perf_counter()
        with closing(RunLog(folder)) as log:
            learner.learn(folder, log, group)
        seconds = time.perf_counter() - begin - first.seconds
        steps, lap, clean = learner.steps, None, first.clean_lap is not None
        if not first_laps:
            (drive,) = evaluate(first.agent().act, [circuit])
            lap, clean = drive.best_flying, drive.clean
        return Result(
            config.local_engine, config.tracks[0], config.seed, steps, first.lap, first.clean_lap, lap, clean, seconds
        )


def median(values: Iterable[float | None], interval: int = 0) -> float:
    """Return the median; a seed that did not reach its goal counts as infinite.

    interval: distance between two values; the median is interpolated between them.
    """
    numbers = [math.inf if value is None else value for value in values]
    middle = statistics.median(numbers)
    return statistics.median_grouped(numbers, interval) if interval and math.isfinite(middle) else middle


def chance(ours: Sequence[float | None], theirs: Sequence[float | None]) -> float:
    """Return how often a random division of all seeds differs by as much, in the mean rank."""
    values = np.array([math.inf if value is None else value for value in (*ours, *theirs)])
    ranks = (values[:, None] > values).sum(1) + 0.5 * (values[:, None] == values).sum(1)
    count, rng = len(ours), np.random.default_rng(0)
    sums = np.array([rng.permutation(ranks)[:count].sum() for _ in range(RESAMPLES)])
    usual = ranks.mean() * count
    return float(np.mean(np.abs(sums - usual) >= abs(ranks[:count].sum() - usual) - 1e-9))


def table(results: Sequence[Result]) -> str:
    """Return a table of all circuits and engines: medians with first and third quartiles, and their comparison."""
    columns = ("first lap [steps]", "first clean lap [steps]", "flying lap [s]")
    lines = [f"circuit    engine  seeds  {'  '.join(f'{each:27}' for each in columns)}  clean  steps/s"]
    for track in dict.fromkeys(each.track for each in results):
        compared = []
        for engine in ENGINES:
            chosen = [each for each in results if (each.track, each.engine) == (track, engine)]
            if not chosen:
                continue
            first = [each.first_lap for each in chosen]
            clean, laps = [each.first_clean_lap for each in chosen], [each.lap for each in chosen]
            compared.append((clean, laps))
            cells = (_spread(first, ",.0f", ROLLOUT), _spread(clean, ",.0f", ROLLOUT), _spread(laps, ".3f"))
            speed = statistics.median(each.steps / each.seconds for each in chosen)
            lines.append(
                f"{track:10} {engine:7} {len(chosen):5}  {'  '.join(f'{each:27}' for each in cells)}"
                f"  {sum(each.clean for each in chosen):5} {speed:8,.0f}"
            )
        if len(compared) == len(ENGINES):
            (clean, laps), (their_clean, their_laps) = compared
            lines.append(_verdict(track, columns[1], clean, their_clean, ROLLOUT))
            lines.append(_verdict(track, columns[2], laps, their_laps))
    return "\n".join(lines)


def _verdict(
    track: str, name: str, ours: Sequence[float | None], theirs: Sequence[float | None], interval: int = 0
) -> str:
    """Compare two engines."""
    ratio = median(ours, interval) / median(theirs, interval)
    if math.isnan(ratio):
        return f"{track:10} {name}: reached by too few"
    equal = "equal" if abs(ratio - 1.0) <= MAX_DIFFERENCE else "DIFFERENT"
    return (
        f"{track:10} {name}: ratio of medians {ratio:.3f} ({equal}); as different by chance: {chance(ours, theirs):.0%}"
    )


def _spread(values: Sequence[float | None], form: str, interval: int = 0) -> str:
    """Return "median (first quartile to third quartile)"."""
    numbers = sorted(math.inf if value is None else value for value in values)
    last = len(numbers) - 1
    quartiles = numbers[round(0.25 * last)], median(values, interval), numbers[round(0.75 * last)]
    return f"{quartiles[1]:{form}} ({quartiles[0]:{form}} to {quartiles[2]:{form}})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="results, JSON; created or continued")
    parser.add_argument("--seeds", type=int, default=0, help="number of seeds; 0 only prints the table")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--tracks", nargs="+", default=["track-01", "track-03"])
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--threads", type=int, default=1, help="threads of the native engine")
    parser.add_argument("--first-laps", action="store_true", help="end runs at their first clean lap")
    options = parser.parse_args()
    results = [Result(**each) for each in json.loads(options.file.read_text())] if options.file.exists() else []
    known = {(each.engine, each.track, each.seed) for each in results}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for track in options.tracks:
            for engine in options.engines:
                if (engine, track, seed) in known:
                    continue
                config = run_config(engine, track, seed, options.steps, options.threads)
                results.append(measure(config, options.first_laps))
                with atomic_write(options.file) as temporary:
                    temporary.write_text(json.dumps([asdict(each) for each in results], indent=1) + "\n")
                print(results[-1], file=sys.stderr, flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
