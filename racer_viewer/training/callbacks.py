"""Callbacks of a run: metrics, run log, policy log, checkpoints, evaluations, progress reports."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from racer_env.bridge.interface import component_keys
from racer_env.engine import Track, circuit_name
from racer_env.errors import RacerError, os_reason
from racer_viewer.agents import AgentError, load_agent
from racer_viewer.training.evaluation import Evaluation, Score, evaluate, score
from racer_viewer.training.learner import Callback, Learner
from racer_viewer.training.metrics import DrivingMetrics, DrivingStats
from racer_viewer.training.policy_log import PolicyLog
from racer_viewer.training.run_folder import CONFIG_FILE
from racer_viewer.training.run_log import RunLog

REPORT_INTERVAL = 0.5
"""Time between two progress reports [s]."""
EVALUATED_TRACKS = 8
"""Maximum number of circuits of an evaluation; it takes the first circuits of the run."""
EVALUATED_LAPS = 2


@dataclass(frozen=True)
class Progress:
    """Progress of a run."""

    steps: int
    total: int
    steps_per_second: float
    laps: int
    best_lap: float | None
    """Best lap time [s]; None before the first lap and in runs on several circuits."""
    episodes: int
    evaluation: tuple[Evaluation, ...]
    """Latest evaluation."""
    note: str = ""
    """Event to report: a checkpoint, a new best policy, a problem."""

    @property
    def seconds_left(self) -> float:
        return (self.total - self.steps) / self.steps_per_second if self.steps_per_second else 0.0


ProgressHandler = Callable[[Progress], None]


class MetricsCallback(Callback):
    """Records driving metrics."""

    def __init__(self, metrics: DrivingMetrics) -> None:
        self._metrics = metrics

    def on_step(self, stats: DrivingStats) -> bool:
        self._metrics.add(stats, self.learner.logger, component_keys(self.learner.config.rewards))
        return True

    def on_rollout_end(self) -> None:
        self._metrics.end_rollout(self.learner.logger)

    def on_circuit_change(self, number: int, track: Track) -> None:
        self._metrics.forget_laps()


class RunLogCallback(Callback):
    """Writes laps, sector times, the first gate, the first lap and problems to the run log."""

    def __init__(self, log: RunLog) -> None:
        self._log = log

    def on_step(self, stats: DrivingStats) -> bool:
        log, steps = self._log, self.learner.steps
        if stats.distance and "first gate" not in log.known:
            log.event("first gate", "First gate", steps)
        if stats.laps:
            log.laps(stats.laps, steps, stats.lap_circuits or None)
            log_first_lap(log, steps, stats.laps[0], self._circuit_of(stats))
        if stats.sectors:
            log.sectors(stats.sectors, steps, stats.sector_circuits or None)
        log.tick()
        return True

    def on_problem(self, text: str) -> None:
        self._log.event("problem", text, self.learner.steps)

    def _circuit_of(self, stats: DrivingStats) -> str:
        """Return the circuit of the first lap; empty if unknown or if there is only one."""
        circuits = self.learner.config.circuits
        return circuits[stats.lap_circuits[0]] if stats.lap_circuits and len(circuits) > 1 else ""


def log_first_lap(log: RunLog, steps: int, lap: float, circuit: str) -> None:
    """Write the event of the first lap, unless it is in the log already."""
    if "first lap" not in log.known:
        log.event("first lap", f"First lap: {lap:.2f} s{f' on {circuit_name(circuit)}' if circuit else ''}", steps)


class PolicyLogCallback(Callback):
    """Offers every new policy to the policy log, and writes the last one."""

    def __init__(self, policies: PolicyLog) -> None:
        self._policies = policies
        self._offered = self._written = -1
        """Number of updates of the policy that was offered last, and written last."""

    def on_rollout_start(self) -> None:
        updates = self.learner.updates
        if updates != self._offered:
            self._offered = updates
            if self._policies.offer(self._record, self.learner.steps):
                self._written = updates

    def on_training_end(self) -> None:
        if self.learner.updates != self._written:
            self._policies.keep(self._record(), self.learner.steps)

    def _record(self) -> bytes:
        weights = self.learner.policy_weights()
        return self._policies.layout.encode(weights.tensors, weights.obs_mean, weights.obs_var)


class CheckpointCallback(Callback):
    """Saves a checkpoint every `config.checkpoint_every` steps."""

    def __init__(self, folder: Path, log: RunLog) -> None:
        self._folder, self._log = folder, log
        self._saved_steps = 0

    def on_training_start(self) -> None:
        self._saved_steps = self.learner.steps

    def on_rollout_end(self) -> None:
        every = self.learner.config.checkpoint_every
        if every and self.learner.steps - self._saved_steps >= every:
            self.save()

    def save(self) -> None:
        """Save a checkpoint now."""
        self._saved_steps = steps = self.learner.steps
        path = self._folder / f"{self.learner.config.name}_{steps}_steps.zip"
        if save_model(self.learner, path, self.group.on_problem) is not None:
            self._log.event("checkpoint", "Checkpoint saved", steps)


class EvaluationCallback(Callback):
    """Evaluates the policy every `config.evaluate_every` steps and at the end, and saves the best one.

    is_discarded: whether to skip the last evaluation. latest: latest evaluation. best: path of the best model so far.
    """

    def __init__(
        self,
        folder: Path,
        tracks: Sequence[Track],
        log: RunLog,
        is_discarded: Callable[[], bool],
    ) -> None:
        self._folder, self._log, self._is_discarded = folder, log, is_discarded
        self._tracks = list(tracks[:EVALUATED_TRACKS])
        self._evaluated_steps = 0
        self.latest: tuple[Evaluation, ...] = ()
        self.best: Path | None = None
        self._best_score: Score = (len(self._tracks) + 1, 0.0)
        self._best_laps: dict[str, float] = {}
        """Best lap time [s] of any best policy, by circuit."""

    def on_training_start(self) -> None:
        """Evaluate the best model of a run that is resumed: a new one must be better."""
        best, self._evaluated_steps = self._path("best"), self.learner.steps
        if self.learner.steps and self.learner.config.evaluate_every and best.is_file():
            try:
                self.latest = self._drive(best)
            except AgentError:
                return
            self.best, self._best_score = best, score(self.latest)
            self._update_best_laps()

    def on_circuit_change(self, number: int, track: Track) -> None:
        """Evaluate on the new circuit from now on; the best policy so far was the best one on the circuit before."""
        if number < len(self._tracks):
            self._tracks[number] = track
            self.latest, self.best, self._best_score = (), None, (len(self._tracks) + 1, 0.0)
            self._best_laps.clear()

    def on_rollout_end(self) -> None:
        every = self.learner.config.evaluate_every
        if every and self.learner.steps - self._evaluated_steps >= every:
            self._evaluated_steps = self.learner.steps
            self._evaluate()

    def on_training_end(self) -> None:
        is_due = self.learner.config.evaluate_every and self.learner.steps > self._evaluated_steps
        if is_due and not self._is_discarded():
            self._evaluate()

    def _path(self, suffix: str) -> Path:
        return self._folder / f"{self.learner.config.name}_{suffix}.zip"

    def _drive(self, model: Path) -> tuple[Evaluation, ...]:
        agent, rewards = load_agent(model), self.learner.config.rewards
        return tuple(evaluate(agent.act, self._tracks, config=rewards, enough_laps=EVALUATED_LAPS))

    def _evaluate(self) -> None:
        """Save the policy and evaluate the saved model; copy it if it is the best so far."""
        candidate = save_model(self.learner, self._path("latest"), self.group.on_problem)
        if candidate is None:
            return
        self.latest = self._drive(candidate)
        self._log_laps()
        now = score(self.latest)
        record = self.learner.logger.record
        record("eval/clean_circuits", len(self.latest) - now[0])
        for each in self.latest:
            if each.best_flying is not None:
                record(f"eval/lap_{each.track}", each.best_flying)
        self.group.on_note(self._save_best(now) if now < self._best_score else "")

    def _save_best(self, now: Score) -> str:
        """Save the best policy; return a note if it completes any circuit."""
        self._best_score = now
        self.best = save_model(self.learner, self._path("best"), self.group.on_problem)
        faster = self._update_best_laps()
        clean = len(self.latest) - now[0]
        if not clean:
            return ""
        text = ", ".join(faster) or f"{clean} of {len(self.latest)} circuits are clean"
        self._log.event("best", f"New best: {text}", self.learner.steps)
        return f"new best: {text}"

    def _log_laps(self) -> None:
        """Write the laps to the run log; on long circuits no training episode contains a whole lap."""
        circuits, steps = self.learner.config.circuits, self.learner.steps
        for number, each in enumerate(self.latest):
            laps = [lap for episode in each.episodes for lap in episode.flying_laps]
            self._log.laps(laps, steps, [number] * len(laps))
            if laps:
                log_first_lap(self._log, steps, laps[0], circuits[number] if len(circuits) > 1 else "")

    def _update_best_laps(self) -> list[str]:
        """Return the circuits with a new best lap, each with its time."""
        laps = {each.track: each.best_flying for each in self.latest}
        faster = {
            name: lap for name, lap in laps.items() if lap is not None and lap < self._best_laps.get(name, math.inf)
        }
        self._best_laps.update(faster)
        return [f"{circuit_name(name)} {lap:.2f} s" for name, lap in faster.items()]


class ProgressCallback(Callback):
    """Reports progress, stops the run on request, and fails if the run's folder is gone."""

    def __init__(
        self,
        folder: Path,
        log: RunLog,
        metrics: DrivingMetrics,
        evaluation: EvaluationCallback,
        handler: ProgressHandler,
        is_stopped: Callable[[], bool],
    ) -> None:
        self._folder, self._log, self._metrics, self._evaluation = folder, log, metrics, evaluation
        self._first_steps, self._first_seconds = 0, 0.0
        self._handler, self._is_stopped = handler, is_stopped
        self._best_lap: float | None = None
        self._reported = 0.0

    def on_training_start(self) -> None:
        self._first_steps, self._first_seconds = self.learner.steps, self._log.seconds

    def on_step(self, stats: DrivingStats) -> bool:
        if time.monotonic() - self._reported > REPORT_INTERVAL:
            self._report()
            if not (self._folder / CONFIG_FILE).is_file():  # a checkpoint may have created the folder again
                raise RacerError(f"{self._folder} was removed while the run was learning; nothing of it is left")
        return not self._is_stopped()

    def on_note(self, text: str) -> None:
        self._report(text)

    def on_problem(self, text: str) -> None:
        self._report(text)

    def on_circuit_change(self, number: int, track: Track) -> None:
        self._best_lap = None

    def _report(self, note: str = "") -> None:
        self._reported = time.monotonic()
        steps, seconds = self.learner.steps, self._log.seconds - self._first_seconds
        self._handler(
            Progress(
                steps,
                self.learner.config.timesteps,
                (steps - self._first_steps) / seconds if seconds else 0.0,
                self._metrics.laps,
                self._update_best_lap(),
                self._metrics.episodes,
                self._evaluation.latest,
                note,
            )
        )

    def _update_best_lap(self) -> float | None:
        """Return the best lap of training cars and evaluations; on several circuits lap times do not compare."""
        if len(self.learner.config.circuits) > 1:
            return None
        evaluated = self._evaluation.latest[0].best_flying if self._evaluation.latest else None
        self._best_lap = min(filter(None, (self._best_lap, self._metrics.best_lap, evaluated)), default=None)
        return self._best_lap


def save_model(learner: Learner, path: Path, on_problem: Callable[[str], None]) -> Path | None:
    """Save the learner's model; report a full disk instead of ending the run."""
    try:
        return learner.save(path)
    except OSError as error:
        on_problem(f"could not save {path.stem}: {os_reason(error)}; the run continues")
        return None
