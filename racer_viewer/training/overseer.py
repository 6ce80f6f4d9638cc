"""Looking after a run: saving, evaluating, reporting."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

from racer_viewer.agents import load_agent
from racer_viewer.training.checkpoints import save_checkpoint
from racer_viewer.training.evaluation import Evaluation, Score, evaluate, score
from racer_viewer.training.learner import Model

if TYPE_CHECKING:
    from racer_viewer.training.run import Run

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


class Overseer(BaseCallback):
    """Looks after a run: stops it when asked, saves, evaluates, and reports."""

    def __init__(self, run: Run, model: Model, env: VecNormalize, report: Report) -> None:
        super().__init__()
        self._run, self._env, self._metrics, self._report = run, env, run.metrics, report
        self._learner = model
        self._tracks = run.tracks[:EVALUATED_TRACKS]
        self._evaluation: tuple[Evaluation, ...] = ()
        self.best: Path | None = None
        self._best_score: Score = (len(self._tracks) + 1, 0.0)
        self._saved = self._evaluated = model.num_timesteps
        self._begin_steps, self._begin = model.num_timesteps, run.story.seconds
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
            self.save_checkpoint()

    def save_checkpoint(self) -> None:
        """By the model's own counter: this may be asked for in a tick that has not come here yet."""
        self._saved = steps = self._learner.num_timesteps
        path = self._save(f"{self._run.config.name}_{steps}_steps")
        if path is not None:
            self._run.story.event("checkpoint", f"Saved {path.name}", steps)

    def _on_training_end(self) -> None:
        if self._run.discarded:
            return
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
                laps = ", ".join(_summary(each) for each in self._evaluation)
                self._run.story.event("best", f"New best: {laps}", self.num_timesteps)
                self._tell(f"new best: {laps}")

    def _save(self, stem: str) -> Path | None:
        """A full disk does not end a run: what was saved before stays, and the next time may go better."""
        try:
            return save_checkpoint(self._learner, self._env, self._run.folder / f"{stem}.zip")
        except OSError as error:
            problem = f"could not save {stem}: {error.strerror or error}; the run goes on"
            self._run.story.event("problem", problem, self.num_timesteps)
            self._tell(problem)
            return None

    def _best_lap(self) -> float | None:
        """Of the cars that learn; on one circuit also of the evaluations, which drive with a steady hand."""
        evaluated = self._evaluation[0].best_flying if len(self._evaluation) == 1 else None
        return min(filter(None, (self._metrics.best_lap, evaluated)), default=None)

    def _tell(self, note: str = "") -> None:
        self._reported = time.monotonic()
        seconds = self._run.story.seconds - self._begin
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
