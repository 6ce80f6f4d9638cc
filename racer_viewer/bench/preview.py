"""`racer-viewer bench train --preview`: what the live picture costs the learner, and the learner the picture.

One run learns in its own process all the time. In turn the window shows it at 60 pictures a second, and shows nothing.
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from racer_env.errors import RacerError
from racer_viewer.app.window import AHEAD, TICK, App
from racer_viewer.bench.harness import describe_machine
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.training.config import preset
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.ui.display import has_display

LEAST_OF_HEADLESS = 0.95
PHASE_SECONDS = 5.0
START_SECONDS = 60.0
ENDLESS = 10**9

_Picture = tuple[float, float]
"""How long it took, and how much of that was work [s]."""


@dataclass(frozen=True)
class Figures:
    """Steps per second with and without the window, medians over the rounds; times of pictures [ms]."""

    machine: str
    headless: float
    preview: float
    ratio: float
    picture_p50: float
    picture_p99: float
    work_p50: float
    work_p99: float
    """Of a picture's time, what the window's own thread worked; the rest it waited for others [ms]."""
    late: float
    """Part of the pictures that took longer than a sixtieth of a second."""


def run(rounds: int, as_json: bool) -> int:
    """Measure and print; the exit code is 1 if the picture costs too much."""
    figures = measure(rounds)
    if as_json:
        print(json.dumps(asdict(figures), indent=2))
    else:
        _print(figures)
    return 0 if figures.ratio >= LEAST_OF_HEADLESS else 1


def measure(rounds: int, seconds: float = PHASE_SECONDS) -> Figures:
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
            _wait_until_it_learns(app, watched)
            return _measure(app, watched, rounds, seconds)
        finally:
            watched.stop(discard=True)
            end = time.monotonic() + START_SECONDS
            while watched.folder.exists() and time.monotonic() < end:
                time.sleep(TICK)
            app.close()


def _wait_until_it_learns(app: App, watched: RunMonitor) -> None:
    end = time.monotonic() + START_SECONDS
    while len(watched.history.policies) < 3:
        if watched.state == "failed" or time.monotonic() > end:
            raise RacerError(watched.problem or "the learner does not start")
        app.frame(TICK)
        time.sleep(TICK)


def _measure(app: App, watched: RunMonitor, rounds: int, seconds: float) -> Figures:
    without, beside, ratios = [], [], []
    pictures: list[_Picture] = []
    for _ in range(rounds):
        without.append(_speed(watched, lambda: time.sleep(seconds)))
        beside.append(_speed(watched, lambda: pictures.extend(_show(app, seconds))))
        ratios.append(beside[-1] / without[-1])
    times = np.array(pictures)
    (p50, work_p50), (p99, work_p99) = (np.percentile(times, [50, 99], axis=0) * 1000.0).tolist()
    late = float(np.mean(times[:, 0] > TICK))
    headless, preview, ratio = (statistics.median(each) for each in (without, beside, ratios))
    return Figures(describe_machine(), headless, preview, ratio, p50, p99, work_p50, work_p99, late)


def _speed(watched: RunMonitor, phase: Callable[[], None]) -> float:
    """Steps per second while something else goes on."""
    watched.swarm()
    steps, begin = watched.steps, time.perf_counter()
    phase()
    watched.swarm()
    return (watched.steps - steps) / (time.perf_counter() - begin)


def _show(app: App, seconds: float) -> list[_Picture]:
    """For so long, at 60 pictures a second."""
    times, due = [], time.perf_counter()
    end = due + seconds
    while due < end:
        begin, work = time.perf_counter(), time.thread_time()
        app.frame(TICK)
        times.append((time.perf_counter() - begin, time.thread_time() - work))
        due += TICK
        while due - time.perf_counter() > AHEAD and app.context.top is not None and app.context.top.draw_ahead():
            pass
        time.sleep(max(0.0, due - time.perf_counter()))
    return times


def _print(figures: Figures) -> None:
    table = Table(title=f"Training beside its live picture ({figures.machine})")
    table.add_column("")
    table.add_column("measured", justify="right")
    table.add_column("asked", justify="right")
    table.add_row("steps/s without a picture", f"{figures.headless:,.0f}", "")
    table.add_row("steps/s with it", f"{figures.preview:,.0f}", "")
    table.add_row("with against without", f"{figures.ratio:.3f}", f"{LEAST_OF_HEADLESS:g}")
    table.add_row("picture, median and p99", f"{figures.picture_p50:.1f}, {figures.picture_p99:.1f} ms", "")
    table.add_row("of that, own work", f"{figures.work_p50:.1f}, {figures.work_p99:.1f} ms", "")
    table.add_row("pictures over 1/60 s", f"{figures.late:.1%}", "")
    Console().print(table)
