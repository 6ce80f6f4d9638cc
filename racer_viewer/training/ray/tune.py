"""`racer-viewer tune`: many short runs with other settings, side by side on Ray Tune; those that lag behind end early.

A trial is a run of the usual learner in one process, unless it is to have runners of its own: as many of them learn at
once as there are cores. The first one has the settings as they are, so that the best one is never worse than these.


The trials of a search as a picture (SVG): lap time over steps, the best one bright."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from racer_viewer.training.config import RunConfig, parse_run_config
from racer_viewer.training.evaluation import Evaluation, score
from racer_viewer.training.ray.cluster import check_room, ray_running
from racer_viewer.training.ray.settings import Spread

if TYPE_CHECKING:
    from racer_viewer.training.overseer import Progress
    from racer_viewer.training.run import Run

NO_LAP = 1000.0
"""No lap [s] is as long; above it is what stands for one where a circuit is not lapped cleanly yet."""
EVALUATIONS = 12
"""Of every trial that is not ended early."""
GRACE = 4
"""Evaluations before a trial may be ended."""
KEPT = 2
"""One of so many goes on, whenever trials are compared."""
REMOVING_SECONDS = 10.0
"""For other machines to remove what trials have left."""
LAP, STEPS, TRIAL = "lap", "steps", "trial"

Settings = Mapping[str, Any]
Draw = Callable[[np.random.Generator], Any]


def _log(low: float, high: float) -> Draw:
    return lambda random: float(f"{np.exp(random.uniform(np.log(low), np.log(high))):.3g}")


def _even(low: float, high: float) -> Draw:
    return lambda random: float(f"{random.uniform(low, high):.3g}")


def _one_of(*values: Any) -> Draw:
    return lambda random: values[int(random.integers(len(values)))]


SPACE: Mapping[str, Draw] = {
    "learning_rate": _log(3e-4, 3e-3),
    "final_learning_rate": _log(3e-5, 3e-4),
    "gamma": _one_of(0.97, 0.98, 0.985, 0.99),
    "gae_lambda": _even(0.9, 0.98),
    "clip_range": _one_of(0.1, 0.2, 0.3),
    "n_steps": _one_of(64, 128, 256),
    "n_epochs": _one_of(3, 5, 8),
    "batch_size": _one_of(1024, 2048, 4096),
    "ent_coef": _one_of(0.0, 1e-4, 1e-3),
    "log_std": _even(-2.0, -0.7),
}
"""What is tried, and how it is drawn."""


@dataclass(frozen=True)
class Trial:
    """One that was tried.

    settings: that differ from the given ones. curve: (steps, lap [s] or more than NO_LAP) of every evaluation.
    problem: why it failed, if it did.
    """

    number: int
    settings: Settings
    curve: tuple[tuple[int, float], ...] = ()
    problem: str = ""

    @property
    def best(self) -> float:
        return min((lap for _, lap in self.curve), default=np.inf)

    @property
    def steps(self) -> int:
        return self.curve[-1][0] if self.curve else 0


Trials = Sequence[Trial]


def lap_of(evaluation: Sequence[Evaluation]) -> float:
    """What is to become small: the mean flying lap [s]; above NO_LAP as long as one circuit is not driven cleanly."""
    failed, value = score(evaluation)
    return value / len(evaluation) if not failed else 2.0 * NO_LAP * failed + value


def draw_settings(trials: int, seed: int) -> list[Settings]:
    """The same for the same seed."""
    random = np.random.default_rng(seed)
    drawn = [{name: draw(random) for name, draw in SPACE.items()} for _ in range(trials - 1)]
    return [{}, *drawn]


def search(
    config: RunConfig,
    trials: int,
    spread: Spread | None,
    address: str | None,
    on_result: Callable[[Trials], None],
    is_stopped: Callable[[], bool],
) -> Trials:
    """All trials, the best first.

    spread: of each trial over runners; None learns within the trial's own process. on_result: hears after each
    evaluation what all trials are like now. is_stopped: whether to end it, and return what was found so far.
    """
    config = replace(config, name="", evaluate_every=max(1, config.timesteps // EVALUATIONS), checkpoint_every=0)
    found = [Trial(number, settings) for number, settings in enumerate(draw_settings(trials, config.seed))]
    runners = 0 if spread is None else spread.runners
    with ray_running(address, runners), _folder_everywhere() as folder:
        check_room(1 + runners)
        problems = _run_trials(config, found, spread, folder, on_result, is_stopped)
    return ranked(replace(each, problem=problems.get(each.number, "")) for each in found)


@contextmanager
def _folder_everywhere() -> Iterator[str]:
    """For what is needed meanwhile only: here, and on other machines, where trials make it under the same name. Those
    that are ended early do not remove what they have written.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    with tempfile.TemporaryDirectory(prefix="racer-tune-", ignore_cleanup_errors=True) as folder:
        yield folder
        remove, here = ray.remote(num_cpus=0)(shutil.rmtree), ray.get_runtime_context().get_node_id()
        asked = [
            remove.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(
                folder, ignore_errors=True
            )
            for node in ray.nodes()
            if node["Alive"] and node["NodeID"] != here
        ]
        if asked:
            ray.wait(asked, num_returns=len(asked), timeout=REMOVING_SECONDS)


def ranked(trials: Iterable[Trial]) -> Trials:
    return sorted(trials, key=lambda each: (each.best, each.number))


def _run_trials(
    config: RunConfig,
    found: list[Trial],
    spread: Spread | None,
    folder: str,
    on_result: Callable[[Trials], None],
    is_stopped: Callable[[], bool],
) -> dict[int, str]:
    """Adds to what is found of each. Returns why trials failed, by their number."""
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler

    class Listener(tune.Callback):
        def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Mapping[str, Any], **_: Any) -> None:
            number, point = int(trial.config[TRIAL]), (int(result[STEPS]), float(result[LAP]))
            found[number] = replace(found[number], curve=(*found[number].curve, point))
            on_result(ranked(found))

    class Stopper(tune.Stopper):
        def __call__(self, trial_id: str, result: Mapping[str, Any]) -> bool:
            return False

        def stop_all(self) -> bool:
            return is_stopped()

    drawn = [each.settings for each in found]
    learn = tune.with_parameters(_learn, base=config.to_json(), drawn=drawn, spread=spread, folder=folder)
    processes = [{"CPU": 1.0}] * (1 if spread is None else 1 + spread.runners)
    tuner = tune.Tuner(
        tune.with_resources(learn, tune.PlacementGroupFactory(processes)),
        param_space={TRIAL: tune.grid_search(list(range(len(found))))},
        tune_config=tune.TuneConfig(
            metric=LAP,
            mode="min",
            scheduler=ASHAScheduler(
                time_attr=STEPS,
                max_t=2 * config.timesteps,
                grace_period=max(1, config.timesteps * GRACE // EVALUATIONS),
                reduction_factor=KEPT,
            ),
        ),
        run_config=tune.RunConfig(storage_path=folder, verbose=0, callbacks=[Listener()], stop=Stopper()),
    )
    ended = [each for each in tuner.fit() if each.error]
    return {int(each.config[TRIAL]): str(each.error).strip().splitlines()[-1] for each in ended}


def _learn(trial: Mapping[str, Any], base: str, drawn: Sequence[Settings], spread: Spread | None, folder: str) -> None:
    """In a process of Ray: one trial, to its end or until it is ended."""
    from ray import tune

    config = parse_run_config({**json.loads(base), **drawn[trial[TRIAL]]})
    told: tuple[Evaluation, ...] = ()

    def tell(progress: Progress) -> None:
        nonlocal told
        if progress.evaluation and progress.evaluation is not told:
            told = progress.evaluation
            tune.report({LAP: lap_of(told), STEPS: progress.steps})

    run = _run_of(config, Path(folder, f"trial-{trial[TRIAL]}"), spread)
    run.folder.mkdir(parents=True)
    run.learn(tell)


def _run_of(config: RunConfig, runs: Path, spread: Spread | None) -> Run:
    if spread is None:
        from racer_viewer.training.run import Run

        return Run(config, runs)
    from racer_viewer.training.ray.run import RayRun

    return RayRun(config, runs, spread=spread)


WIDTH, HEIGHT = 960, 540
LEFT, RIGHT, TOP, BOTTOM = 84, 40, 92, 60
"""Margins [px]."""
NONE_AT = 70
"""Where evaluations without a clean lap are marked [px from above]."""
MOST_LINES = 8
"""Of a grid, across one axis."""
LEAST_SPAN = 0.1
"""Of the axis of lap times [s]."""
PAPER, GRID, TEXT, OTHERS, BEST, GIVEN = "#14181f", "#2a313c", "#c6ccd6", "#6f7f97", "#35d07f", "#f0b43c"
FONT = "font-family='system-ui, sans-serif'"

Place = Callable[[float, float], tuple[float, float]]
"""From steps and seconds to pixels."""


def plot_trials(trials: Sequence[Trial]) -> str:
    """trials: the best first."""
    laps = [lap for each in trials for _, lap in each.curve if lap < NO_LAP]
    if not laps:
        return _page([_text(WIDTH / 2, HEIGHT / 2, "No trial has driven a clean lap yet", "middle", 18)])
    step = nice_step(max(max(laps) - min(laps), LEAST_SPAN))
    low, high = math.floor(min(laps) / step) * step, math.ceil(max(laps) / step + 1e-9) * step
    most = max(each.steps for each in trials)

    def place(steps: float, lap: float) -> tuple[float, float]:
        down = (high - lap) / (high - low)
        return LEFT + (WIDTH - LEFT - RIGHT) * steps / most, TOP + (HEIGHT - TOP - BOTTOM) * down

    parts = _axes(most, low, high, step, place)
    best = trials[0]
    for each in reversed(trials):
        colour = BEST if each is best else GIVEN if each.number == 0 else OTHERS
        parts += _curve(each, colour, 3.0 if each is best else 1.5, place)
    return _page([*_title(trials), *parts])


def nice_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, a few of which make up the span."""
    least = span / MOST_LINES
    size = 10.0 ** math.floor(math.log10(least))
    return next(size * times for times in (1.0, 2.0, 5.0, 10.0) if size * times >= least * (1.0 - 1e-9))


def _title(trials: Sequence[Trial]) -> list[str]:
    best, count = trials[0], len(trials)
    without = sum(all(lap >= NO_LAP for _, lap in each.curve) for each in trials)
    words = f"{count} trial{'s' if count > 1 else ''}, {without} without a clean lap"
    return [
        _text(LEFT, 34, f"{words}; the best, number {best.number}: {best.best:.2f} s", "start", 18),
        _text(WIDTH - RIGHT, 34, "the best", "end", 14, BEST),
        _text(WIDTH - RIGHT - 72, 34, "as given", "end", 14, GIVEN),
    ]


def _axes(most: int, low: float, high: float, step: float, place: Place) -> list[str]:
    parts = [_text(LEFT - 10, NONE_AT + 5, "no lap", "end", 14)]
    digits = max(0, -math.floor(math.log10(step)))
    for number in range(round((high - low) / step) + 1):
        left, y = place(0.0, low + number * step)
        parts.append(f"<path d='M{left:.1f} {y:.1f}H{WIDTH - RIGHT}' stroke='{GRID}'/>")
        parts.append(_text(left - 10, y + 5, f"{low + number * step:.{digits}f} s", "end", 14))
    apart = nice_step(most)
    for number in range(int(most / apart + 1e-9) + 1):
        x, bottom = place(number * apart, low)
        parts.append(_text(x, bottom + 24, f"{number * apart / 1000:,g}k", "middle", 14))
    parts.append(_text(WIDTH / 2, HEIGHT - 10, "steps", "middle", 14))
    return parts


def _curve(trial: Trial, colour: str, width: float, place: Place) -> list[str]:
    """A line through the clean laps; what has none is a dot above. The trial's number is at the end."""
    points = [place(steps, lap) for steps, lap in trial.curve if lap < NO_LAP]
    others = [(place(steps, 0.0)[0], float(NONE_AT)) for steps, lap in trial.curve if lap >= NO_LAP]
    parts = [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='2' fill='{colour}'/>" for x, y in (*points, *others)]
    if points:
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f"<polyline points='{line}' fill='none' stroke='{colour}' stroke-width='{width}'/>")
        x, y = points[-1]
        parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{2.0 + width:.1f}' fill='{colour}'/>")
        parts.append(_text(x + 10, y + 5, str(trial.number), "start", 14, colour))
    return parts


def _text(x: float, y: float, text: str, anchor: str, size: int, colour: str = TEXT) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' {FONT} font-size='{size}' fill='{colour}' text-anchor='{anchor}'>{text}</text>"
    )


def _page(parts: Sequence[str]) -> str:
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}'>"
    return "\n".join((head, f"<rect width='{WIDTH}' height='{HEIGHT}' fill='{PAPER}'/>", *parts, "</svg>")) + "\n"
