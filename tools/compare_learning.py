"""Compare how the engines of training learn: `python tools/compare_learning.py results.json --seeds 20`.

Each run trains one seed of preset `quick` on one circuit with one engine. Its policy is evaluated before every rollout
without noise from the start line: a lap is clean if the car touches no wall and never leaves the road.
After all steps the fastest flying lap is measured. Results are written after every run; a run that is in the file is
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

from racer_env.engine import Track, load_circuit
from racer_viewer.agents import Agent, load_agent
from racer_viewer.paths import atomic_write
from racer_viewer.training.config import preset
from racer_viewer.training.evaluation import evaluate
from racer_viewer.training.learner import Callback, CallbackList
from racer_viewer.training.run import create_learner
from racer_viewer.training.run_log import RunLog

ENGINES = ("native", "sb3")
MAX_DIFFERENCE = 0.1
"""Difference of medians, of the first clean lap and of the lap time, up to which two engines learn equally well. Steps
are known to a rollout only: the first lap of all comes after two to four of them and is shown without a verdict."""


@dataclass(frozen=True)
class Result:
    """Result of one seed.

    first_lap, first_clean_lap: environment steps before them; None if there was none.
    lap: fastest flying lap after all steps [s]; None without one. clean: whether that drive was clean.
    seconds: duration of the run, without evaluations.
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
    """

    def __init__(self, track: Track, folder: Path) -> None:
        self._track, self._folder = track, folder
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

    def agent(self) -> Agent:
        """Return the current policy."""
        return load_agent(self.learner.save(self._folder / "policy.zip"))


def measure(engine: str, track: str, seed: int, steps: int, threads: int) -> Result:
    """Train one seed."""
    values = {"engine": engine, "tracks": (track,), "seed": seed, "timesteps": steps, "threads": threads}
    config = replace(preset("ppo"), **values)  # type: ignore[arg-type]
    circuit = load_circuit(track)
    with tempfile.TemporaryDirectory() as name, closing(create_learner(config)) as learner:
        folder = Path(name)
        first = FirstLapsCallback(circuit, folder)
        group = CallbackList([first])
        group.attach(learner)
        begin = time.perf_counter()
        with closing(RunLog(folder)) as log:
            learner.learn(folder, log, group)
        seconds = time.perf_counter() - begin - first.seconds
        (drive,) = evaluate(first.agent().act, [circuit])
        return Result(
            engine, track, seed, learner.steps, first.lap, first.clean_lap, drive.best_flying, drive.clean, seconds
        )


def median(values: Iterable[float | None]) -> float:
    """Return the median; a seed that did not reach its goal counts as infinite."""
    return statistics.median(math.inf if value is None else value for value in values)


def table(results: Sequence[Result]) -> str:
    """Return a table of all circuits and engines, with medians, first and third quartiles, and ratios of medians."""
    columns = ("first lap [steps]", "first clean lap [steps]", "flying lap [s]")
    lines = [f"circuit    engine  seeds  {'  '.join(f'{each:27}' for each in columns)}  clean  steps/s"]
    for track in dict.fromkeys(each.track for each in results):
        medians = {}
        for engine in ENGINES:
            chosen = [each for each in results if (each.track, each.engine) == (track, engine)]
            if not chosen:
                continue
            first = [each.first_lap for each in chosen]
            clean, laps = [each.first_clean_lap for each in chosen], [each.lap for each in chosen]
            medians[engine] = [median(each) for each in (first, clean, laps)]
            cells = (_spread(first, ",.0f"), _spread(clean, ",.0f"), _spread(laps, ".3f"))
            speed = statistics.median(each.steps / each.seconds for each in chosen)
            lines.append(
                f"{track:10} {engine:7} {len(chosen):5}  {'  '.join(f'{each:27}' for each in cells)}"
                f"  {sum(each.clean for each in chosen):5} {speed:8,.0f}"
            )
        if len(medians) == len(ENGINES):
            ratios = [ours / theirs for ours, theirs in zip(*(medians[engine] for engine in ENGINES), strict=True)]
            shown = ", ".join("neither" if math.isnan(ratio) else f"{ratio:.3f}" for ratio in ratios)
            equal = all(math.isnan(ratio) or abs(ratio - 1.0) <= MAX_DIFFERENCE for ratio in ratios[1:])
            lines.append(f"{track:10} ratios of medians: {shown}: {'equal' if equal else 'DIFFERENT'}")
    return "\n".join(lines)


def _spread(values: Sequence[float | None], form: str) -> str:
    """Return "median (first quartile to third quartile)"."""
    numbers = sorted(math.inf if value is None else value for value in values)
    last = len(numbers) - 1
    quartiles = numbers[round(0.25 * last)], statistics.median(numbers), numbers[round(0.75 * last)]
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
    options = parser.parse_args()
    results = [Result(**each) for each in json.loads(options.file.read_text())] if options.file.exists() else []
    known = {(each.engine, each.track, each.seed) for each in results}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for track in options.tracks:
            for engine in options.engines:
                if (engine, track, seed) in known:
                    continue
                results.append(measure(engine, track, seed, options.steps, options.threads))
                with atomic_write(options.file) as temporary:
                    temporary.write_text(json.dumps([asdict(each) for each in results], indent=1) + "\n")
                print(results[-1], file=sys.stderr, flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
