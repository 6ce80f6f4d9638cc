"""`racer-viewer bench train --preview`: what the live preview costs the learner, and the learner the preview.

One run trains in its own process all the time. In turn the window shows it at 60 frames per second, and shows nothing.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from racer_env.errors import RacerError
from racer_viewer.app.window import MIN_SPARE_TIME, TICK, App
from racer_viewer.bench.harness import Goal, Summary, describe_machine, print_report
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.training.config import preset
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.ui.display import has_display

MIN_OF_HEADLESS = 0.95
"""Goal for the training speed with the preview, against that without it."""
PHASE_SECONDS = 5.0
"""Time with the preview, and without it, in each round [s]."""
LEARNER_TIMEOUT = 60.0
"""Time for the learner to start, and to end [s]."""
ENDLESS = 10**9

FrameTime = tuple[float, float]
"""Time of a frame, and the part of it that the window's own thread worked [s]."""


@dataclass(frozen=True)
class PreviewReport:
    """Median steps per second with and without the window, and times of frames [ms].

    Attributes:
        work_p50, work_p99: part of a frame's time in which the window's own thread worked [ms]
        late: part of the frames that took longer than 1/60 s
    """

    machine: str
    headless: float
    preview: float
    ratio: float
    picture_p50: float
    picture_p99: float
    work_p50: float
    work_p99: float
    late: float


def run(rounds: int, as_json: bool) -> int:
    """Measure and print; return 1 if the preview costs too much."""
    report = measure(rounds)
    goal = Goal.at_least(report.ratio, MIN_OF_HEADLESS)
    print_report(report, _summary(report, goal), as_json)
    return 0 if goal.reached else 1


def measure(rounds: int, seconds: float = PHASE_SECONDS) -> PreviewReport:
    if not has_display():
        os.environ["SDL_VIDEODRIVER"] = "dummy"
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    with tempfile.TemporaryDirectory(prefix="racer-bench-") as folder:
        app = App(Path(folder))
        app.context.warmup.wait()
        config = replace(preset("ppo"), timesteps=ENDLESS, name="bench", checkpoint_every=0, evaluate_every=0)
        watched = RunMonitor.start(config, Path(folder) / "runs")
        try:
            screen = TrainScreen(app.context, watched)
            app.context.push(screen)
            _wait_for_training(app, watched)
            return _measure(app, watched, rounds, seconds)
        finally:
            watched.stop(discard=True)
            end = time.monotonic() + LEARNER_TIMEOUT
            while watched.folder.exists() and time.monotonic() < end:
                time.sleep(TICK)
            app.close()


def _wait_for_training(app: App, watched: RunMonitor) -> None:
    end = time.monotonic() + LEARNER_TIMEOUT
    while len(watched.history.policies) < 3:
        if watched.state == "failed" or time.monotonic() > end:
            raise RacerError(watched.problem or "the learner does not start")
        app.frame(TICK)
        time.sleep(TICK)


def _measure(app: App, watched: RunMonitor, rounds: int, seconds: float) -> PreviewReport:
    without, beside, ratios = [], [], []
    frames: list[FrameTime] = []
    for _ in range(rounds):
        without.append(_speed(watched, lambda: time.sleep(seconds)))
        beside.append(_speed(watched, lambda: frames.extend(_show(app, seconds))))
        ratios.append(beside[-1] / without[-1])
    times = np.array(frames)
    (p50, work_p50), (p99, work_p99) = (np.percentile(times, [50, 99], axis=0) * 1000.0).tolist()
    late = float(np.mean(times[:, 0] > TICK))
    headless, preview, ratio = (statistics.median(each) for each in (without, beside, ratios))
    return PreviewReport(describe_machine(), headless, preview, ratio, p50, p99, work_p50, work_p99, late)


def _speed(watched: RunMonitor, phase: Callable[[], None]) -> float:
    """Return the training speed during a phase [steps/s]."""
    watched.swarm()
    steps, begin = watched.steps, time.perf_counter()
    phase()
    watched.swarm()
    return (watched.steps - steps) / (time.perf_counter() - begin)


def _show(app: App, seconds: float) -> list[FrameTime]:
    """Draw 60 frames per second for a while; return their times."""
    times, due = [], time.perf_counter()
    end = due + seconds
    while due < end:
        begin, work = time.perf_counter(), time.thread_time()
        app.frame(TICK)
        times.append((time.perf_counter() - begin, time.thread_time() - work))
        due += TICK
        while (
            due - time.perf_counter() > MIN_SPARE_TIME and app.context.top is not None and app.context.top.draw_ahead()
        ):
            pass
        time.sleep(max(0.0, due - time.perf_counter()))
    return times


def _summary(report: PreviewReport, goal: Goal) -> Summary:
    rows = [
        ["steps/s without a preview", f"{report.headless:,.0f}"],
        ["steps/s with it", f"{report.preview:,.0f}"],
        ["frame, median and p99", f"{report.picture_p50:.1f}, {report.picture_p99:.1f} ms"],
        ["own work in it", f"{report.work_p50:.1f}, {report.work_p99:.1f} ms"],
        ["frames over 1/60 s", f"{report.late:.1%}"],
    ]
    return Summary(
        report.machine, ("training with a live preview", ""), rows, [f"{goal.value:.3f} of the speed {goal}"]
    )
