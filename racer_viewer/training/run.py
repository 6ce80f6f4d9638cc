"""Training run: turns a config into a folder with checkpoints, the best policy and the run log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import numpy as np

from racer_env.engine import Circuit, Config, circuit_name, load_circuit, parse_config
from racer_env.errors import RacerError, os_reason
from racer_viewer.optional import SB3
from racer_viewer.training.callbacks import (
    CheckpointCallback,
    EvaluationCallback,
    MetricsCallback,
    PolicyLogCallback,
    ProgressCallback,
    ProgressHandler,
    RunLogCallback,
)
from racer_viewer.training.config import RunConfig, kept_name, load_run_config
from racer_viewer.training.learner import Callback, CallbackList, Learner, LearnerError, LearnerFactory
from racer_viewer.training.metrics import DrivingMetrics
from racer_viewer.training.policy_log import PolicyLog
from racer_viewer.training.run_folder import (
    CONFIG_FILE,
    Checkpoint,
    check_name_is_free,
    check_steps_left,
    find_checkpoint,
    folder_of,
    free_name,
    keep_files,
    latest_model,
    store_circuit,
    write_config,
)
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.run_log_reader import FINISHED, STOPPED

ENGINES = {"native": "native engine", "sb3": "stable-baselines3", "ray": "Ray"}
"""Names of engines in the run log."""
LEARNERS = {
    "native": "racer_viewer.training.native.learner:NativeLearner",
    "sb3": "racer_viewer.training.sb3:SB3Learner",
}
"""Learner of each engine that trains in one process, as MODULE:CLASS; its module is imported when it is needed."""
POLICY_INTERVAL = {"ppo": 1, "sac": 8}
"""Number of updates per logged policy; SAC makes many updates per second."""


@dataclass(frozen=True)
class RunResult:
    """Result of a run. model: last saved model, None if the run was discarded. best: best model, if there is one."""

    folder: Path
    model: Path | None
    best: Path | None
    steps: int
    finished: bool


class Run:
    """One training run. `learn` does the work; `stop` and `discard` end it, from a signal handler or another thread.

    checkpoint: saved model to resume from. make_learner: engine; that of the config by default.
    metrics: driving metrics so far. log: run log, available once `learn` has started.
    """

    log: RunLog

    def __init__(
        self,
        config: RunConfig,
        runs: Path,
        checkpoint: Checkpoint | None = None,
        make_learner: LearnerFactory | None = None,
    ) -> None:
        if checkpoint is None and config.name:
            check_name_is_free(config.name, runs)
        engine = config.local_engine if make_learner is None else config.engine
        self.config = replace(config, name=config.name or free_name(config, runs), engine=engine)
        self.folder = checkpoint.model.parent if checkpoint else runs / self.config.name
        self.tracks = [load_circuit(name) for name in self.config.circuits]
        """Tracks of the distinct circuits, loaded now so that a bad one is reported before anything is written."""
        self.metrics = DrivingMetrics()
        self._checkpoint = checkpoint
        self._make_learner = make_learner or create_learner
        self._stopped = self._discarded = False
        self._learner: Learner | None = None
        self._checkpoints: CheckpointCallback | None = None
        self._callbacks = CallbackList([])

    @classmethod
    def in_folder(cls, where: Path, make_learner: LearnerFactory | None = None) -> Run:
        """Return the run of an existing folder: resumed from its latest checkpoint, or started if it has none.

        where: the folder, or a checkpoint in it to resume from.
        """
        folder = folder_of(where)
        config = load_run_config(folder / CONFIG_FILE)
        if where != folder or latest_model(folder) is not None:
            checkpoint = find_checkpoint(where, folder.parent)
            return cls(replace(config, name=config.name or folder.name), folder.parent, checkpoint, make_learner)
        run = cls(replace(config, name=""), folder.parent, make_learner=make_learner)
        run.config, run.folder = replace(config, name=config.name or folder.name), folder
        return run

    def stop(self) -> None:
        """Stop after the current tick and save a checkpoint."""
        self._stopped = True

    def discard(self) -> None:
        """Stop after the current tick and save nothing."""
        self._stopped = self._discarded = True

    @property
    def stopped(self) -> bool:
        return self._stopped

    @property
    def discarded(self) -> bool:
        return self._discarded

    def learn(
        self,
        report: ProgressHandler = lambda progress: None,
        callbacks: Sequence[Callback] = (),
        on_problem: Callable[[str], None] = lambda text: None,
    ) -> RunResult:
        """Learn until the config's number of steps, or until `stop`.

        callbacks: called in every tick, after its metrics were recorded.
        on_problem: receives problems that cannot be written to the run log.
        """
        self.config = keep_files(self.config, self.folder)
        with closing(self._make_learner(self.config)) as learner:
            self._learner = learner
            steps = self._load(learner)
            write_config(self.config, self.folder)
            self.log = RunLog(self.folder, steps, on_problem)
            with closing(self.log):
                self._log_start(steps)
                every = POLICY_INTERVAL[self.config.algo]
                with closing(PolicyLog(self.folder, self.log, learner.policy_layout(), every)) as policies:
                    best = self._run_learner(learner, report, callbacks, policies)
                return self._finish(learner, best)

    def save_now(self) -> None:
        """Save a checkpoint. Only from within `learn`."""
        assert self._checkpoints is not None
        self._checkpoints.save()

    def change_rewards(self, weights: Mapping[str, float], terms: Mapping[str, str] | None = None) -> None:
        """Change reward weights, by the keys of an ai-config, from the next tick on. Only from within `learn`.

        terms: all terms from now on; None keeps them.
        """
        assert self._learner is not None
        before = self.config.rewards
        plain = before.to_json()
        rewards = parse_config(
            {**plain, "weights": {**plain["weights"], **weights}, "terms": before.formulas if terms is None else terms}
        )
        if rewards == before:
            return
        self._learner.set_rewards(rewards)
        self.config = replace(self.config, rewards=rewards)
        steps = self._learner.steps
        self.log.event("weights", describe_change(before, rewards), steps, rewards=rewards.to_json())
        self._write_config(steps)

    def set_circuit(self, circuit: Circuit, number: int = 0) -> None:
        """Let the cars of a circuit start their next episodes on another one. Only from within `learn`.

        number: index of the circuit in `config.circuits`. Raises CircuitError if the other one cannot be driven.
        """
        assert self._learner is not None
        if not 0 <= number < len(self.tracks):
            raise RacerError(f"the run has no circuit number {number}")
        track, before = circuit.build(), self.tracks[number]
        assert track.tables, "tables are built here, before anything is changed"
        if len(track.gates) == len(before.gates) and np.array_equal(track.control_points, before.control_points):
            return
        name = store_circuit(circuit, self.folder)
        self._learner.set_circuit(self.config.circuits[number], name, track)
        self.config = replace(self.config, tracks=self._learner.config.tracks)
        self.tracks[number] = track
        self._callbacks.on_circuit_change(number, track)
        steps = self._learner.steps
        self.log.circuit(f"{circuit.name}: {track.length:.0f} units", steps, self._logged_circuits(), number)
        self._write_config(steps)

    def _write_config(self, steps: int) -> None:
        try:
            write_config(self.config, self.folder)
        except OSError as error:
            self.log.event("problem", f"could not write {CONFIG_FILE}: {os_reason(error)}", steps)

    def _logged_circuits(self) -> list[str]:
        return [kept_name(name, self.folder) for name in self.config.circuits]

    def _load(self, learner: Learner) -> int:
        """Load the checkpoint or the model to start from; return the number of steps learned before."""
        if self._checkpoint is None:
            if self.config.begin_from:
                learner.load_weights(self.config.begin_from)
            return 0
        check_steps_left(self._checkpoint, self.config)
        learner.load(self._checkpoint)
        return self._checkpoint.steps

    def _run_learner(
        self, learner: Learner, report: ProgressHandler, callbacks: Sequence[Callback], policies: PolicyLog
    ) -> Path | None:
        """Learn with all callbacks; return the best model."""
        evaluation = EvaluationCallback(self.folder, self.tracks, self.log, lambda: self._discarded)
        self._checkpoints = CheckpointCallback(self.folder, self.log)
        self._callbacks = group = CallbackList(
            [
                MetricsCallback(self.metrics),
                RunLogCallback(self.log),
                PolicyLogCallback(policies),
                *callbacks,
                ProgressCallback(self.folder, self.log, self.metrics, evaluation, report, lambda: self._stopped),
                evaluation,
                self._checkpoints,
            ]
        )
        group.attach(learner)
        try:
            learner.learn(self.folder, self.log, group)
        except LearnerError:
            self.save_now()
            raise
        return evaluation.best

    def _finish(self, learner: Learner, best: Path | None) -> RunResult:
        """Save the model and write the end to the run log."""
        steps, finished = learner.steps, not self._stopped
        path = None
        if not self._discarded:
            stem = self.config.name if finished else f"{self.config.name}_{steps}_steps"
            path = learner.save(self.folder / f"{stem}.zip")
            self.log.event("checkpoint", f"Saved {path.name}", steps)
        word = "Finished" if finished else "Stopped"
        self.log.event("end", f"{word} after {steps:,} steps", steps, outcome=FINISHED if finished else STOPPED)
        return RunResult(self.folder, path, best, steps, finished)

    def _log_start(self, steps: int) -> None:
        config = self.config
        where = circuit_name(config.tracks[0]) if len(self.tracks) == 1 else f"{len(self.tracks)} circuits"
        engine = ENGINES.get(config.engine, type(self._learner).__name__)
        text = f"Started: {config.algo.upper()} on {where}, {config.num_cars} cars, {engine}"
        text = text if not steps else f"Resumed at {steps:,} steps"
        self.log.event("begin", text, steps, circuits=self._logged_circuits())


def describe_change(before: Config, after: Config) -> str:
    """Return in words which weights and terms of two configs differ."""
    old, new = before.to_json()["weights"], after.to_json()["weights"]
    changed = [f"{key} from {value:g} to {new[key]:g}" for key, value in old.items() if value != new[key]]
    names = dict.fromkeys([*before.formulas, *after.formulas])
    for name in names:
        formula = after.formulas.get(name)
        if formula != before.formulas.get(name):
            word = "new" if name not in before.formulas else "removed" if formula is None else "changed"
            changed.append(f"term {name} {word}")
    return ", ".join(changed) or "order of the terms"


def create_learner(config: RunConfig, bridge_url: str | None = None) -> Learner:
    """Create the learner of a run in this process, with the engine of the config."""
    check_engine(config, bridge_url)
    module, _, name = LEARNERS[config.local_engine].partition(":")
    make: Callable[..., Learner] = getattr(import_module(module), name)
    return make(config) if bridge_url is None else make(config, bridge_url)


def check_engine(config: RunConfig, bridge_url: str | None = None) -> None:
    """Raise RacerError if the engine of a config is not installed, or cannot drive the cars of a bridge."""
    if config.local_engine == "native":
        if bridge_url is not None:
            raise RacerError("--engine native trains on cars of this process only; use --engine sb3 with --bridge")
    else:
        SB3.require()
