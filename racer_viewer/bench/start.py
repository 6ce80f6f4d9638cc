"""`racer-viewer bench start`: time until the menu is on screen, against a bare window.

Each is a process of its own, timed from its start to its first frame.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from racer_env.errors import RacerError
from racer_viewer.bench.harness import Goal, Summary, describe_machine, median_ratio, print_report
from racer_viewer.ui.display import has_display

BARE, MENU = "import pygame, and a window", "the menu"
MAX_RATIO = 3.0
"""Goal for the menu's time against that of the bare window."""
_CODE = {
    BARE: """
import pygame
pygame.display.init()
window = pygame.Window("Racer", (1280, 720), resizable=True)
window.get_surface()
window.flip()
""",
    MENU: """
import racer_viewer.cli, sys
from pathlib import Path
from racer_viewer.app.window import App
App(Path(sys.argv[1])).frame(0.0)
""",
}
_SHOWN = "shown"
_END = f"\nimport os\nprint({_SHOWN!r}, flush=True)\nos._exit(0)\n"


@dataclass(frozen=True)
class StartReport:
    """Median times [s], and the ratio of the menu's to the bare window's."""

    machine: str
    display: str
    seconds: dict[str, float]
    ratio: float


def run(rounds: int, as_json: bool) -> int:
    """Measure and print; return 1 if the menu takes too long."""
    report = measure(rounds)
    goal = Goal.at_most(report.ratio, MAX_RATIO)
    print_report(report, _summary(report, goal), as_json)
    return 0 if goal.reached else 1


def measure(rounds: int) -> StartReport:
    """Measure both in turn, after one round that fills the disk cache."""
    environment = dict(os.environ) if has_display() else {**os.environ, "SDL_VIDEODRIVER": "dummy"}
    times: dict[str, list[float]] = {name: [] for name in _CODE}
    with tempfile.TemporaryDirectory() as data:
        for number in range(rounds + 1):
            for name, code in _CODE.items():
                seconds = _seconds_until_shown(code, data, environment)
                if number:
                    times[name].append(seconds)
    return StartReport(
        describe_machine(),
        environment.get("SDL_VIDEODRIVER", "a real display"),
        {name: statistics.median(values) for name, values in times.items()},
        median_ratio(times, MENU, BARE),
    )


def _seconds_until_shown(code: str, data: str, environment: dict[str, str]) -> float:
    command = [sys.executable, "-P", "-c", code + _END, data]
    begin = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            if line.strip() == _SHOWN:
                return time.perf_counter() - begin
        raise RacerError(f"no window opened: {(process.stderr.read().strip().splitlines() or ['?'])[-1]}")


def _summary(report: StartReport, goal: Goal) -> Summary:
    rows = [[name, f"{seconds * 1000:.0f}"] for name, seconds in report.seconds.items()]
    title = f"{report.machine}, {report.display}"
    return Summary(title, ("until the first frame", "ms"), rows, [f"{goal.value:.2f} × the bare window {goal}"])
