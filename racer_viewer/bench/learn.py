"""`racer-viewer bench learn`: time from an untrained policy to a first clean lap, and to a target lap time.

The policy is evaluated after every rollout, deterministically and from the standing start; that time is not counted.
"""

import math
import statistics
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.vec_env import VecNormalize

from racer_env.engine import Track, load_circuit
from racer_viewer.agents import load_agent
from racer_viewer.bench.harness import Summary, describe_machine, print_report
from racer_viewer.training.config import RunConfig
from racer_viewer.training.evaluation import evaluate
from racer_viewer.training.sb3 import LogStdLimitCallback, Model, make_env, make_model, save_checkpoint
from racer_viewer.warmup import prepare_engine

PACE = {"track-01": 7.22, "track-03": 17.82}
"""Target lap times by circuit: flying laps of earlier agents [s]."""


@dataclass(frozen=True)
class Milestone:
    """Training steps and time until something was reached."""

    steps: int
    seconds: float


@dataclass(frozen=True)
class SeedResult:
    """Milestones of one seed; None for those it did not reach."""

    seed: int
    first_lap: Milestone | None
    pace: Milestone | None
    total: Milestone


@dataclass(frozen=True)
class LearningReport:
    """Results of all seeds; `pace` is the target lap time [s]."""

    machine: str
    pace: float | None
    seeds: list[SeedResult]


def run(config: RunConfig, seeds: int, pace: float | None, as_json: bool) -> int:
    """Measure and print; return 1 if a seed misses a milestone."""
    prepare_engine()
    pace = pace or PACE.get(config.tracks[0])
    results = [learn(replace(config, seed=config.seed + number), pace) for number in range(seeds)]
    report = LearningReport(describe_machine(), pace, results)
    print_report(report, _summary(config, report), as_json)
    return 0 if all(each.first_lap and (each.pace or not pace) for each in results) else 1


def learn(config: RunConfig, pace: float | None) -> SeedResult:
    """Train one seed until all milestones are reached or the config's steps are used up."""
    with closing(make_env(config)) as env, tempfile.TemporaryDirectory() as folder:
        model = make_model(config, env)
        milestones = _MilestoneCallback(model, env, load_circuit(config.tracks[0]), pace, Path(folder))
        callbacks: list[BaseCallback] = [milestones]
        if config.algo == "ppo":
            callbacks.append(LogStdLimitCallback(config))
        model.learn(config.timesteps, CallbackList(callbacks))
        return SeedResult(config.seed, milestones.first_lap, milestones.pace, milestones.now())


class _MilestoneCallback(BaseCallback):
    """Evaluates the policy after every rollout, with the clock stopped."""

    def __init__(self, model: Model, env: VecNormalize, track: Track, pace: float | None, folder: Path) -> None:
        super().__init__()
        self._learner, self._env, self._track, self._wanted, self._folder = model, env, track, pace, folder
        self.first_lap: Milestone | None = None
        self.pace: Milestone | None = None
        self._evaluating = 0.0
        self._begin = time.perf_counter()

    def now(self) -> Milestone:
        return Milestone(self.num_timesteps, time.perf_counter() - self._begin - self._evaluating)

    def _on_training_start(self) -> None:
        self._begin = time.perf_counter()

    def _on_rollout_start(self) -> None:
        begin = time.perf_counter()
        self._evaluate(self.now())
        self._evaluating += time.perf_counter() - begin

    def _on_step(self) -> bool:
        return not (self.first_lap and (self.pace or not self._wanted))

    def _evaluate(self, now: Milestone) -> None:
        """Note milestones: a clean first lap, and the target lap time without touching a wall."""
        agent = load_agent(save_checkpoint(self._learner, self._env, self._folder / "policy.zip"))
        if self.first_lap is None:
            (drive,) = evaluate(agent.act, [self._track], enough_laps=1)
            self.first_lap = now if drive.laps and drive.clean else None
        if self.pace is None and self._wanted:
            (drive,) = evaluate(agent.act, [self._track])
            self.pace = now if not drive.wall_ticks and (drive.best_flying or math.inf) <= self._wanted else None


def _summary(config: RunConfig, report: LearningReport) -> Summary:
    pace = report.pace
    rows = [[str(each.seed), _cell(each.first_lap), _cell(each.pace) if pace else ""] for each in report.seeds]
    lines = []
    for name, milestones in (
        ("first clean lap", [each.first_lap for each in report.seeds]),
        ("pace", [each.pace for each in report.seeds]),
    ):
        seconds = [milestone.seconds for milestone in milestones if milestone]
        if seconds:
            lines.append(
                f"{name}: {len(seconds)} of {len(report.seeds)} seeds, {min(seconds):.1f} to {max(seconds):.1f} s, "
                f"median {statistics.median(seconds):.1f} s"
            )
    title = f"{report.machine}: {config.algo} on {config.tracks[0]}, {config.num_cars} cars"
    return Summary(title, ("seed", "first clean lap", f"{pace:.2f} s, no wall" if pace else ""), rows, lines)


def _cell(milestone: Milestone | None) -> str:
    return f"{milestone.seconds:.1f} s, {milestone.steps:,} steps" if milestone else "not reached"
