"""Search for settings with Ray Tune: many short runs in parallel, of which slow ones end early; and their plot.

Each trial learns in one process, or on Ray if it has runners. The first trial has the given settings, so that the best
trial is never worse than these.
"""

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
from racer_viewer.training.ray.cluster import check_cpus, ray_session
from racer_viewer.training.ray.settings import RaySettings

if TYPE_CHECKING:
    from racer_viewer.training.callbacks import Progress
    from racer_viewer.training.run import Run

NO_LAP = 1000.0
"""Time [s] longer than any lap; results above it are trials without a clean lap on every circuit."""
EVALUATIONS = 12
"""Number of evaluations of a complete trial."""
GRACE_EVALUATIONS = 4
"""Number of evaluations before a trial may end early."""
REDUCTION_FACTOR = 2
"""Factor by which the number of trials shrinks whenever they are compared."""
CLEANUP_TIMEOUT = 10.0
"""Time [s] for other nodes to remove files of trials."""
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
"""Distribution of every setting that is searched."""


@dataclass(frozen=True)
class Trial:
    """Trial of a search.

    settings: changes to the given settings. curve: steps and lap time [s] of every evaluation, see `lap_of`.
    problem: reason of a failure.
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
    """Return the objective: the mean flying lap [s], or a value above NO_LAP unless every circuit is driven cleanly."""
    failed, value = score(evaluation)
    return value / len(evaluation) if not failed else 2.0 * NO_LAP * failed + value


def draw_settings(trials: int, seed: int) -> list[Settings]:
    """Draw the settings of all trials; the first are the given ones."""
    random = np.random.default_rng(seed)
    drawn = [{name: draw(random) for name, draw in SPACE.items()} for _ in range(trials - 1)]
    return [{}, *drawn]


def search(
    config: RunConfig,
    trials: int,
    settings: RaySettings | None,
    address: str | None,
    on_result: Callable[[Trials], None],
    is_stopped: Callable[[], bool],
) -> Trials:
    """Run all trials and return them, the best first.

    settings: runners of each trial; None learns in the trial's own process. on_result: receives all trials after each
    evaluation. is_stopped: whether to end the search and return the trials so far.
    """
    config = replace(
        config, name="", threads=1, evaluate_every=max(1, config.timesteps // EVALUATIONS), checkpoint_every=0
    )
    found = [Trial(number, drawn) for number, drawn in enumerate(draw_settings(trials, config.seed))]
    runners = 0 if settings is None else settings.runners
    with ray_session(address, runners), _shared_folder() as folder:
        check_cpus(1 + runners)
        problems = _run_trials(config, found, settings, folder, on_result, is_stopped)
    return ranked(replace(each, problem=problems.get(each.number, "")) for each in found)


@contextmanager
def _shared_folder() -> Iterator[str]:
    """Create a temporary folder, and remove it from all nodes at the end: trials write to the same path on their node,
    and those that end early leave their files.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    with tempfile.TemporaryDirectory(prefix="racer-tune-", ignore_cleanup_errors=True) as folder:
        yield folder
        remove, here = ray.remote(num_cpus=0)(shutil.rmtree), ray.get_runtime_context().get_node_id()
        removals = [
            remove.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(
                folder, ignore_errors=True
            )
            for node in ray.nodes()
            if node["Alive"] and node["NodeID"] != here
        ]
        if removals:
            ray.wait(removals, num_returns=len(removals), timeout=CLEANUP_TIMEOUT)


def ranked(trials: Iterable[Trial]) -> Trials:
    """Sort trials, the best first."""
    return sorted(trials, key=lambda each: (each.best, each.number))


def _run_trials(
    config: RunConfig,
    found: list[Trial],
    settings: RaySettings | None,
    folder: str,
    on_result: Callable[[Trials], None],
    is_stopped: Callable[[], bool],
) -> dict[int, str]:
    """Run the trials and update `found`; return the failures by trial number."""
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
    learn = tune.with_parameters(_learn, base=config.to_json(), drawn=drawn, settings=settings, folder=folder)
    processes = [{"CPU": 1.0}] * (1 if settings is None else 1 + settings.runners)
    tuner = tune.Tuner(
        tune.with_resources(learn, tune.PlacementGroupFactory(processes)),
        param_space={TRIAL: tune.grid_search(list(range(len(found))))},
        tune_config=tune.TuneConfig(
            metric=LAP,
            mode="min",
            scheduler=ASHAScheduler(
                time_attr=STEPS,
                max_t=2 * config.timesteps,
                grace_period=max(1, config.timesteps * GRACE_EVALUATIONS // EVALUATIONS),
                reduction_factor=REDUCTION_FACTOR,
            ),
        ),
        run_config=tune.RunConfig(storage_path=folder, verbose=0, callbacks=[Listener()], stop=Stopper()),
    )
    ended = [each for each in tuner.fit() if each.error]
    return {int(each.config[TRIAL]): str(each.error).strip().splitlines()[-1] for each in ended}


def _learn(
    trial: Mapping[str, Any], base: str, drawn: Sequence[Settings], settings: RaySettings | None, folder: str
) -> None:
    """Run one trial, in a process of Ray."""
    from ray import tune

    config = parse_run_config({**json.loads(base), **drawn[trial[TRIAL]]})
    reported: tuple[Evaluation, ...] = ()

    def report(progress: Progress) -> None:
        nonlocal reported
        if progress.evaluation and progress.evaluation is not reported:
            reported = progress.evaluation
            tune.report({LAP: lap_of(reported), STEPS: progress.steps})

    run = _make_run(config, Path(folder, f"trial-{trial[TRIAL]}"), settings)
    run.folder.mkdir(parents=True)
    run.learn(report)


def _make_run(config: RunConfig, runs: Path, settings: RaySettings | None) -> Run:
    if settings is None:
        from racer_viewer.training.run import Run

        return Run(config, runs)
    from racer_viewer.training.ray.learner import ray_run

    return ray_run(config, runs, settings)


WIDTH, HEIGHT = 960, 540
LEFT, RIGHT, TOP, BOTTOM = 84, 40, 92, 60
"""Margins [px]."""
NO_LAP_Y = 70
"""Vertical position of evaluations without a clean lap [px]."""
MAX_GRID_LINES = 8
"""Maximum number of grid lines per axis."""
MIN_LAP_SPAN = 0.1
"""Minimum span of the lap time axis [s]."""
PAPER, GRID, TEXT, OTHERS, BEST, GIVEN = "#14181f", "#2a313c", "#c6ccd6", "#6f7f97", "#35d07f", "#f0b43c"
FONT = "font-family='system-ui, sans-serif'"

Place = Callable[[float, float], tuple[float, float]]
"""Function from steps and lap time [s] to pixels."""


def plot_trials(trials: Sequence[Trial]) -> str:
    """Return an SVG of lap time over steps; `trials` are sorted, the best first."""
    laps = [lap for each in trials for _, lap in each.curve if lap < NO_LAP]
    if not laps:
        return _page([_text(WIDTH / 2, HEIGHT / 2, "No trial has driven a clean lap yet", "middle", 18)])
    step = nice_step(max(max(laps) - min(laps), MIN_LAP_SPAN))
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
    """Return a grid step for a span: 1, 2 or 5 times a power of ten."""
    least = span / MAX_GRID_LINES
    size = 10.0 ** math.floor(math.log10(least))
    return next(size * times for times in (1.0, 2.0, 5.0, 10.0) if size * times >= least * (1.0 - 1e-9))


def _title(trials: Sequence[Trial]) -> list[str]:
    best, count = trials[0], len(trials)
    without = sum(all(lap >= NO_LAP for _, lap in each.curve) for each in trials)
    words = f"{count} trial{'s' if count > 1 else ''}, {without} without a clean lap"
    return [
        _text(LEFT, 34, f"{words}; best: number {best.number} with {best.best:.2f} s", "start", 18),
        _text(WIDTH - RIGHT, 34, "best", "end", 14, BEST),
        _text(WIDTH - RIGHT - 72, 34, "as given", "end", 14, GIVEN),
    ]


def _axes(most: int, low: float, high: float, step: float, place: Place) -> list[str]:
    parts = [_text(LEFT - 10, NO_LAP_Y + 5, "no lap", "end", 14)]
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
    """Draw a line through clean laps, dots for evaluations without one, and the trial's number."""
    points = [place(steps, lap) for steps, lap in trial.curve if lap < NO_LAP]
    others = [(place(steps, 0.0)[0], float(NO_LAP_Y)) for steps, lap in trial.curve if lap >= NO_LAP]
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
