"""`racer-viewer tune`: many short runs with other settings, side by side on Ray Tune; those that lag behind end early.

A trial is a run of the usual learner in one process: as many of them learn at once as there are cores. The first one
has the settings as they are, so that the best one is never worse than these.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from racer_viewer.training.config import RunConfig, parse_run_config
from racer_viewer.training.evaluation import Evaluation, evaluate, score
from racer_viewer.training.ray.machines import ray_running

NO_LAP = 1000.0
"""No lap [s] is as long; above it is what stands for one where a circuit is not lapped cleanly yet."""
EVALUATIONS = 12
"""Of every trial that is not ended early."""
GRACE = 4
"""Evaluations before a trial may be ended."""
KEPT = 2
"""One of so many goes on, whenever trials are compared."""
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
    curve: tuple[tuple[int, float], ...]
    problem: str = ""

    @property
    def best(self) -> float:
        return min((lap for _, lap in self.curve), default=np.inf)

    @property
    def steps(self) -> int:
        return self.curve[-1][0] if self.curve else 0


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
    config: RunConfig, trials: int, address: str | None, on_result: Callable[[int, int, float], None]
) -> list[Trial]:
    """All trials, the best first. on_result: hears of each evaluation the trial's number, its steps and lap."""
    config = replace(config, name="", evaluate_every=max(1, config.timesteps // EVALUATIONS), checkpoint_every=0)
    drawn = draw_settings(trials, config.seed)
    with ray_running(address, processes=1), tempfile.TemporaryDirectory(prefix="racer-tune-") as folder:
        found = _run_trials(config, drawn, folder, on_result)
    return sorted(found, key=lambda each: (each.best, each.number))


def _run_trials(
    config: RunConfig, drawn: Sequence[Settings], folder: str, on_result: Callable[[int, int, float], None]
) -> list[Trial]:
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler

    curves: dict[int, list[tuple[int, float]]] = {number: [] for number in range(len(drawn))}

    class Listener(tune.Callback):
        def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Mapping[str, Any], **_: Any) -> None:
            number, steps, lap = int(trial.config[TRIAL]), int(result[STEPS]), float(result[LAP])
            curves[number].append((steps, lap))
            on_result(number, steps, lap)

    tuner = tune.Tuner(
        tune.with_resources(tune.with_parameters(_learn, base=config.to_json(), drawn=list(drawn)), {"cpu": 1}),
        param_space={TRIAL: tune.grid_search(list(range(len(drawn))))},
        tune_config=tune.TuneConfig(
            metric=LAP,
            mode="min",
            scheduler=ASHAScheduler(
                time_attr=STEPS,
                max_t=2 * config.timesteps,
                grace_period=config.timesteps * GRACE // EVALUATIONS,
                reduction_factor=KEPT,
            ),
        ),
        run_config=tune.RunConfig(storage_path=folder, verbose=0, callbacks=[Listener()]),
    )
    problems = {int(each.config[TRIAL]): str(each.error).strip().splitlines()[-1] for each in tuner.fit() if each.error}
    return [
        Trial(number, settings, tuple(curves[number]), problems.get(number, ""))
        for number, settings in enumerate(drawn)
    ]


def _learn(trial: Mapping[str, Any], base: str, drawn: Sequence[Settings]) -> None:
    """In a process of Ray: one trial, to its end or until it is ended."""
    import json

    from ray import tune

    from racer_viewer.agents import load_agent
    from racer_viewer.training.overseer import EVALUATED_LAPS, EVALUATED_TRACKS
    from racer_viewer.training.run import Run

    config = parse_run_config({**json.loads(base), **drawn[trial[TRIAL]]})
    told: list[tuple[Evaluation, ...]] = [()]

    def tell(evaluation: tuple[Evaluation, ...], steps: int) -> None:
        if evaluation and evaluation is not told[0]:
            told[0] = evaluation
            tune.report({LAP: lap_of(evaluation), STEPS: steps})

    with tempfile.TemporaryDirectory(prefix="racer-trial-") as folder:
        run = Run(config, Path(folder))
        run.folder.mkdir(parents=True)
        outcome = run.learn(lambda progress: tell(progress.evaluation, progress.steps))
        assert outcome.model is not None
        agent, tracks = load_agent(outcome.model), run.tracks[:EVALUATED_TRACKS]
        tell(
            tuple(evaluate(agent.act, tracks, config=config.rewards, enough_laps=EVALUATED_LAPS)),
            outcome.steps,
        )
