"""Looking after a run: saving, evaluating, reporting."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

from racer_env.errors import RacerError
from racer_viewer.agents import AgentError, load_agent
from racer_viewer.training.evaluation import Evaluation, Score, evaluate, score
from racer_viewer.training.sb3 import Model, save_checkpoint

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
    """None before there is one, and on several circuits, of which the shortest would win."""
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
        self._best_laps: dict[str, float] = {}
        """By circuit, of the policies that were the best so far."""
        self._fastest: float | None = None
        """Lap that was told of [s]."""
        self._saved = self._evaluated = model.num_timesteps
        self._begin_steps, self._begin = model.num_timesteps, run.story.seconds
        self._reported = 0.0

    def _on_step(self) -> bool:
        now = time.monotonic()
        if now - self._reported > REPORT_SECONDS:
            self._tell()
            if not self._run.folder.is_dir():
                raise RacerError(f"{self._run.folder} was removed while it learned: nothing of it is left")
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
            self._run.story.event("checkpoint", "Checkpoint saved", steps)

    def _on_training_end(self) -> None:
        if self._run.discarded:
            return
        if self._run.config.evaluate_every and self.num_timesteps > self._evaluated:
            self._evaluate()

    @property
    def _best_stem(self) -> str:
        return f"{self._run.config.name}_best"

    def _on_training_start(self) -> None:
        """What was the best before the run was gone on with is to be beaten first."""
        best = self._run.folder / f"{self._best_stem}.zip"
        if self._begin_steps and self._run.config.evaluate_every and best.is_file():
            try:
                self._evaluation = self._drive(best)
            except AgentError:
                return
            self.best, self._best_score = best, score(self._evaluation)
            self._note_best_laps()

    def _drive(self, model: Path) -> tuple[Evaluation, ...]:
        agent, rewards = load_agent(model), self._run.config.rewards
        return tuple(evaluate(agent.act, self._tracks, config=rewards, enough_laps=EVALUATED_LAPS))

    def _evaluate(self) -> None:
        """Drive what would be saved now; if it laps faster than ever, keep it as the best."""
        candidate = self._save(f"{self._run.config.name}_latest")
        if candidate is None:
            return
        self._evaluation = self._drive(candidate)
        self._tell_laps()
        now = score(self._evaluation)
        self.logger.record("eval/clean_circuits", len(self._evaluation) - now[0])
        for each in self._evaluation:
            if each.best_flying is not None:
                self.logger.record(f"eval/lap_{each.track}", each.best_flying)
        note = ""
        if now < self._best_score:
            self._best_score = now
            self.best = self._save(self._best_stem)
            faster = self._note_best_laps()
            if now[0] < len(self._evaluation):
                clean = f"{len(self._evaluation) - now[0]} of {len(self._evaluation)} circuits without a fault"
                text = ", ".join(faster) or clean
                self._run.story.event("best", f"New best: {text}", self.num_timesteps)
                note = f"new best: {text}"
        self._tell(note)

    def _tell_laps(self) -> None:
        """On long circuits no episode of a learning car is a whole lap: these are the only ones there."""
        story, circuits = self._run.story, self._run.config.circuits
        for number, each in enumerate(self._evaluation):
            laps = [lap for episode in each.episodes for lap in episode.flying_laps]
            story.laps(laps, self.num_timesteps, [number] * len(laps))
            if laps and "first lap" not in story.known:
                where = f" on {circuits[number]}" if len(circuits) > 1 else ""
                story.event("first lap", f"First lap: {laps[0]:.2f} s{where}", self.num_timesteps)

    def _note_best_laps(self) -> list[str]:
        """Circuits that no best policy was as fast on before, with their new laps, in words."""
        laps = {each.track: each.best_flying for each in self._evaluation}
        faster = {
            name: lap for name, lap in laps.items() if lap is not None and lap < self._best_laps.get(name, math.inf)
        }
        self._best_laps.update(faster)
        return [f"{name} {lap:.2f} s" for name, lap in faster.items()]

    def _save(self, stem: str) -> Path | None:
        """A full disk does not end a run: what was saved before stays, and the next time may go better."""
        try:
            return save_checkpoint(self._learner, self._env, self._run.folder / f"{stem}.zip")
        except OSError as error:
            self.tell_problem(f"could not save {stem}: {error.strerror or error}; the run goes on")
            return None

    def tell_problem(self, text: str) -> None:
        self._run.story.event("problem", text, self.num_timesteps)
        self._tell(text)

    def _best_lap(self) -> float | None:
        """Of the cars that learn, and of the evaluations, which drive with a steady hand."""
        if len(self._run.tracks) > 1:
            return None
        evaluated = self._evaluation[0].best_flying if self._evaluation else None
        self._fastest = min(filter(None, (self._fastest, self._metrics.best_lap, evaluated)), default=None)
        return self._fastest

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
