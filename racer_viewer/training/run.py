"""A training run: from a config to a folder with checkpoints, the best so far, and figures of the whole way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import Logger, make_output_format
from stable_baselines3.common.vec_env import VecNormalize

from racer_env.engine import load_circuit
from racer_env.errors import RacerError
from racer_viewer.agents import load_agent
from racer_viewer.folders import written_whole
from racer_viewer.training.checkpoints import CONFIG_FILE, Checkpoint, begin_from, restore, save_checkpoint
from racer_viewer.training.config import RunConfig
from racer_viewer.training.evaluation import Evaluation, Score, evaluate, score
from racer_viewer.training.learner import Model, QuieterNoise, make_env, make_model
from racer_viewer.training.metrics import RacerMetricsCallback

REPORT_SECONDS = 0.5
EVALUATED_TRACKS = 8
"""Of a run on more circuits, the first so many decide which policy is the best."""
EVALUATED_LAPS = 2


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    steps: int
    total: int
    steps_per_second: float
    laps: int
    best_lap: float | None
    episodes: int
    evaluation: tuple[Evaluation, ...]
    """The latest one."""
    note: str = ""
    """Something that happened: a checkpoint, a new best, a problem."""

    @property
    def seconds_left(self) -> float:
        return (self.total - self.steps) / self.steps_per_second if self.steps_per_second else 0.0


Report = Callable[[Progress], None]


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    folder: Path
    model: Path
    best: Path | None
    steps: int
    finished: bool


class Run:
    """One run. `learn` does it all; `stop` ends it early, from a signal handler or another thread."""

    def __init__(
        self, config: RunConfig, runs: Path, checkpoint: Checkpoint | None = None, bridge_url: str | None = None
    ) -> None:
        self.config = config if config.name else replace(config, name=_free_name(config, runs))
        self.folder = checkpoint.model.parent if checkpoint else runs / self.config.name
        if checkpoint is None and self.folder.exists():
            name = self.config.name
            raise RacerError(f"there is a run {name} already: choose another --name, or go on with --resume {name}")
        self.tracks = [load_circuit(name) for name in dict.fromkeys(self.config.tracks)]
        """Each once; what cannot be driven is told before anything is written."""
        self._checkpoint = checkpoint
        self._bridge_url = bridge_url
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    @property
    def stopped(self) -> bool:
        return self._stopped

    def learn(self, report: Report = lambda progress: None) -> Outcome:
        """Learn until the config's number of steps, or until `stop`."""
        env = make_env(self.config, self._bridge_url)
        try:
            return self._learn(env, report)
        finally:
            env.close()

    def _learn(self, env: VecNormalize, report: Report) -> Outcome:
        model = make_model(self.config, env)
        done = 0
        if self._checkpoint is None and self.config.begin_from:
            begin_from(self.config.begin_from, model, env)
        elif self._checkpoint is not None:
            restore(self._checkpoint, model, env)
            done = self._checkpoint.steps
            if done >= self.config.timesteps:
                raise RacerError(
                    f"{self._checkpoint.model} has learned its {done} steps: ask for more with --timesteps"
                )
        self._write_config()
        model.set_logger(_logger(self.folder, f"_{done}" if done else ""))
        metrics = RacerMetricsCallback()
        watch = _Watch(self, model, env, metrics, report)
        callbacks: list[BaseCallback] = [metrics, watch]
        if self.config.algo == "ppo":
            callbacks.append(QuieterNoise(self.config))
        try:
            steps = self.config.timesteps - done
            model.learn(steps, CallbackList(callbacks), log_interval=1, reset_num_timesteps=not done)
        finally:
            model.logger.close()
        stem = self.config.name if not self._stopped else f"{self.config.name}_{model.num_timesteps}_steps"
        path = save_checkpoint(model, env, self.folder / f"{stem}.zip")
        return Outcome(self.folder, path, watch.best, model.num_timesteps, not self._stopped)

    def _write_config(self) -> None:
        with written_whole(self.folder / CONFIG_FILE) as temporary:
            temporary.write_text(self.config.to_json(), encoding="utf-8")


def _logger(folder: Path, suffix: str) -> Logger:
    """Figures as progress.csv and for TensorBoard; a run that goes on writes to files of its own."""
    return Logger(str(folder), [make_output_format(kind, str(folder), suffix) for kind in ("csv", "tensorboard")])


class _Watch(BaseCallback):
    """Looks after a run: stops it when asked, saves, evaluates, and reports."""

    def __init__(
        self, run: Run, model: Model, env: VecNormalize, metrics: RacerMetricsCallback, report: Report
    ) -> None:
        super().__init__()
        self._run, self._env, self._metrics, self._report = run, env, metrics, report
        self._learner = model
        self._tracks = run.tracks[:EVALUATED_TRACKS]
        self._evaluation: tuple[Evaluation, ...] = ()
        self.best: Path | None = None
        self._best_score: Score = (len(self._tracks) + 1, 0.0)
        self._saved = self._evaluated = model.num_timesteps
        self._begin_steps, self._begin = model.num_timesteps, time.monotonic()
        self._reported = 0.0

    def _on_step(self) -> bool:
        now = time.monotonic()
        if now - self._reported > REPORT_SECONDS:
            self._tell()
        return not self._run.stopped

    def _on_rollout_end(self) -> None:
        config = self._run.config
        if config.evaluate_every and self.num_timesteps - self._evaluated >= config.evaluate_every:
            self._evaluated = self.num_timesteps
            self._evaluate()
        if config.checkpoint_every and self.num_timesteps - self._saved >= config.checkpoint_every:
            self._saved = self.num_timesteps
            self._save(f"{config.name}_{self.num_timesteps}_steps")

    def _on_training_end(self) -> None:
        if self._run.config.evaluate_every and self.num_timesteps > self._evaluated:
            self._evaluate()

    def _evaluate(self) -> None:
        """Drive what would be saved now; if it laps faster than ever, keep it as the best."""
        candidate = self._save(f"{self._run.config.name}_latest")
        if candidate is None:
            return
        agent = load_agent(candidate)
        self._evaluation = tuple(
            evaluate(agent.act, self._tracks, config=self._run.config.rewards, enough_laps=EVALUATED_LAPS)
        )
        now = score(self._evaluation)
        self.logger.record("eval/clean_circuits", len(self._evaluation) - now[0])
        for each in self._evaluation:
            if each.best_flying is not None:
                self.logger.record(f"eval/lap_{each.track}", each.best_flying)
        if now < self._best_score:
            self._best_score = now
            self.best = self._save(f"{self._run.config.name}_best")
            if now[0] < len(self._evaluation):
                self._tell(f"new best: {', '.join(_summary(each) for each in self._evaluation)}")

    def _save(self, stem: str) -> Path | None:
        """A full disk does not end a run: what was saved before stays, and the next time may go better."""
        try:
            return save_checkpoint(self._learner, self._env, self._run.folder / f"{stem}.zip")
        except OSError as error:
            self._tell(f"could not save {stem}: {error.strerror or error}; the run goes on")
            return None

    def _best_lap(self) -> float | None:
        """Of the cars that learn; on one circuit also of the evaluations, which drive with a steady hand."""
        evaluated = self._evaluation[0].best_flying if len(self._evaluation) == 1 else None
        return min(filter(None, (self._metrics.best_lap, evaluated)), default=None)

    def _tell(self, note: str = "") -> None:
        self._reported = time.monotonic()
        seconds = self._reported - self._begin
        self._report(
            Progress(
                self.num_timesteps,
                self._run.config.timesteps,
                (self.num_timesteps - self._begin_steps) / seconds if seconds else 0.0,
                self._metrics.laps,
                self._best_lap(),
                self._metrics.episodes,
                self._evaluation,
                note,
            )
        )


def _summary(evaluation: Evaluation) -> str:
    lap = evaluation.best_flying
    return f"{evaluation.track} {lap:.2f} s" if lap is not None else f"{evaluation.track} no lap"


def _free_name(config: RunConfig, runs: Path) -> str:
    """By the algorithm and the circuits, with the first number that is free."""
    track = config.tracks[0] if len(config.tracks) == 1 else f"{len(config.tracks)}-circuits"
    stem = "".join(
        letter if letter.isalnum() or letter in "-_" else "-" for letter in f"{config.algo}-{Path(track).stem}"
    )
    number = 1
    while (runs / f"{stem}-{number}").exists():
        number += 1
    return f"{stem}-{number}"
