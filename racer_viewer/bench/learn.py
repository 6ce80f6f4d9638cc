"""`racer-viewer bench learn`: time from an untrained policy to a first clean lap, and to a target lap time.

The policy is evaluated after every rollout, deterministically and from the standing start; that time is not counted.
With `--wall` the clock runs from the click on Start in the window, and stops when the window has received the policy.
"""

import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from racer_env.engine import Track, load_circuit
from racer_env.errors import RacerError
from racer_viewer.agents import Agent, load_agent
from racer_viewer.bench.harness import Goal, Summary, describe_machine, print_report
from racer_viewer.training.config import RunConfig
from racer_viewer.training.evaluation import evaluate
from racer_viewer.training.learner import Callback, CallbackList
from racer_viewer.training.metrics import DrivingStats
from racer_viewer.training.run import create_learner
from racer_viewer.training.run_log import RunLog
from racer_viewer.warmup import prepare_engine

PACE = {"track-01": 7.22, "track-03": 17.82}
"""Target lap times by circuit: flying laps of earlier agents [s]."""
MAX_WALL_MEDIAN, MAX_WALL_WORST = 2.0, 4.0
"""Goals for the time from Start to the first clean lap [s]."""
FORM_SECONDS = 3.0
"""Time for which the form is open before Start is pressed [s]; people take longer."""
MORE_SECONDS = 2.0
"""Time for which a run in the window goes on after its first lap, whose driver had noise on its actions [s]."""
WALL_TIMEOUT = 60.0
"""Time after which a run in the window has failed to learn [s]."""


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


@dataclass(frozen=True)
class WallResult:
    """Times since Start was pressed [s]: until cars move in the window, and until the first clean lap."""

    seed: int
    moving: float
    first_lap: Milestone


@dataclass(frozen=True)
class WallReport:
    """Results of all seeds, and statistics of the time until the first clean lap [s]."""

    machine: str
    seeds: list[WallResult]
    median: float
    worst: float
    median_moving: float


def run(config: RunConfig, seeds: int, pace: float | None, as_json: bool) -> int:
    """Measure and print; return 1 if a seed misses a milestone."""
    prepare_engine()
    pace = pace or PACE.get(config.tracks[0])
    results = [learn(replace(config, seed=config.seed + number), pace) for number in range(seeds)]
    report = LearningReport(describe_machine(), pace, results)
    print_report(report, _summary(config, report), as_json)
    return 0 if all(each.first_lap and (each.pace or not pace) for each in results) else 1


def run_wall(config: RunConfig, seeds: int, as_json: bool) -> int:
    """Measure in the window and print; return 1 if the first clean lap takes too long."""
    prepare_engine()
    report = measure_wall(config, seeds)
    goals = (Goal.at_most(report.median, MAX_WALL_MEDIAN), Goal.at_most(report.worst, MAX_WALL_WORST))
    print_report(report, _wall_summary(config, report, goals), as_json)
    return 0 if all(goal.reached for goal in goals) else 1


def learn(config: RunConfig, pace: float | None) -> SeedResult:
    """Train one seed until all milestones are reached or the config's steps are used up."""
    with tempfile.TemporaryDirectory() as name, closing(create_learner(config)) as learner:
        folder = Path(name)
        milestones = _MilestoneCallback(load_circuit(config.tracks[0]), pace, folder)
        group = CallbackList([milestones])
        group.attach(learner)
        with closing(RunLog(folder, 0, lambda text: None)) as log:
            learner.learn(folder, log, group)
        return SeedResult(config.seed, milestones.first_lap, milestones.pace, milestones.now())


class _MilestoneCallback(Callback):
    """Evaluates the policy before every rollout, with the clock stopped."""

    def __init__(self, track: Track, pace: float | None, folder: Path) -> None:
        self._track, self._wanted, self._folder = track, pace, folder
        self.first_lap: Milestone | None = None
        self.pace: Milestone | None = None
        self._evaluating = 0.0
        self._begin = time.perf_counter()

    def now(self) -> Milestone:
        return Milestone(self.learner.steps, time.perf_counter() - self._begin - self._evaluating)

    def on_training_start(self) -> None:
        self._begin = time.perf_counter()

    def on_rollout_start(self) -> None:
        begin = time.perf_counter()
        self._evaluate(self.now())
        self._evaluating += time.perf_counter() - begin

    def on_step(self, stats: DrivingStats) -> bool:
        return not (self.first_lap and (self.pace or not self._wanted))

    def _evaluate(self, now: Milestone) -> None:
        """Note milestones: a clean first lap, and the target lap time without touching a wall."""
        agent = load_agent(self.learner.save(self._folder / "policy.zip"))
        if self.first_lap is None:
            self.first_lap = now if drives_clean_lap(agent, self._track) else None
        if self.pace is None and self._wanted:
            (drive,) = evaluate(agent.act, [self._track])
            self.pace = now if not drive.wall_ticks and (drive.best_flying or math.inf) <= self._wanted else None


def drives_clean_lap(agent: Agent, track: Track) -> bool:
    """Return whether an agent's first lap from the standing start is clean."""
    (drive,) = evaluate(agent.act, [track], enough_laps=1)
    return bool(drive.laps and drive.clean)


def measure_wall(config: RunConfig, seeds: int) -> WallReport:
    """Press Start in a window once per seed, and wait for a policy that drives a clean lap."""
    from racer_viewer.ui.display import has_display

    if not has_display():
        os.environ["SDL_VIDEODRIVER"] = "dummy"
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    with tempfile.TemporaryDirectory(prefix="racer-bench-", ignore_cleanup_errors=True) as folder:
        results = [
            _learn_in_window(replace(config, seed=config.seed + number), Path(folder)) for number in range(seeds)
        ]
    seconds = [each.first_lap.seconds for each in results]
    moving = statistics.median(each.moving for each in results)
    return WallReport(describe_machine(), results, statistics.median(seconds), max(seconds), moving)


def _learn_in_window(config: RunConfig, data: Path) -> WallResult:
    """Open the window and its form, press Start, and follow the run until it drives a clean lap."""
    from racer_viewer.app.window import TICK, App
    from racer_viewer.modes.train.screen import TrainScreen
    from racer_viewer.modes.train.setup import TrainSetupScreen

    app, track = App(data), load_circuit(config.tracks[0])

    def show(until: Callable[[], bool], seconds: float) -> None:
        """Draw 60 frames per second until a condition holds, or for some time."""
        end = time.perf_counter() + seconds
        while not until() and time.perf_counter() < end:
            begin = time.perf_counter()
            app.frame(TICK)
            time.sleep(max(0.0, begin + TICK - time.perf_counter()))

    try:
        app.context.warmup.wait()
        form = TrainSetupScreen(app.context)
        app.context.push(form)
        show(lambda: False, FORM_SECONDS)
        begin = time.perf_counter()
        form.start(config)
        screen = app.context.top
        if not isinstance(screen, TrainScreen):
            raise RacerError("the training screen does not open")
        watched = screen.run
        moving: list[float] = []
        received: list[Milestone] = []

        def note() -> bool:
            """Note when cars move, and each policy; return whether a car has driven a lap."""
            now = time.perf_counter() - begin
            if watched.state == "failed":
                raise RacerError(watched.problem)
            if not moving and watched.steps:
                moving.append(now)
            steps = watched.history.policies
            received.extend(Milestone(int(each), now) for each in steps[len(received) :])
            return len(watched.history.laps) > 0

        show(note, WALL_TIMEOUT)
        show(lambda: note() and False, MORE_SECONDS)
        watched.stop()
        show(lambda: watched.state in ("stopped", "finished", "failed"), WALL_TIMEOUT)
        for number, milestone in enumerate(received):
            if drives_clean_lap(watched.policy(number), track):
                return WallResult(config.seed, moving[0], milestone)
        raise RacerError(f"seed {config.seed} drove no clean lap soon after its first lap")
    finally:
        app.close()


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
                f"median {statistics.median(seconds):.2f} s"
            )
    return Summary(
        _title(config, report.machine),
        ("seed", "first clean lap", f"{pace:.2f} s, no wall" if pace else ""),
        rows,
        lines,
    )


def _wall_summary(config: RunConfig, report: WallReport, goals: tuple[Goal, Goal]) -> Summary:
    rows = [[str(each.seed), f"{each.moving:.2f} s", _cell(each.first_lap)] for each in report.seeds]
    times = f"median {report.median:.2f} s {goals[0]}, worst {report.worst:.2f} s {goals[1]}"
    lines = [f"from Start to the first clean lap: {times}", f"until cars move: median {report.median_moving:.2f} s"]
    return Summary(_title(config, report.machine), ("seed", "cars move", "first clean lap"), rows, lines)


def _title(config: RunConfig, machine: str) -> str:
    return f"{machine}: {config.algo} on {config.tracks[0]}, {config.num_cars} cars, {config.local_engine}"


def _cell(milestone: Milestone | None) -> str:
    return f"{milestone.seconds:.2f} s, {milestone.steps:,} steps" if milestone else "not reached"
