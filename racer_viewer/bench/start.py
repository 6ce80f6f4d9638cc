"""`racer-viewer bench start`: how long until the menu is on screen, against a bare window in the same run.

Each is a process of its own, timed from its start to its first picture.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from racer_env.errors import RacerError
from racer_viewer.bench.harness import describe_machine
from racer_viewer.ui.display import has_display

BARE, MENU = "import pygame, and a window", "the menu"
MOST = 3.0
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
class Figures:
    """Medians in seconds, and the menu's against the bare window's."""

    machine: str
    display: str
    seconds: dict[str, float]
    ratio: float


def run(rounds: int, as_json: bool) -> int:
    """Measure and print; the exit code is 1 if the menu takes too long."""
    figures = measure(rounds)
    if as_json:
        print(json.dumps(asdict(figures), indent=2))
    else:
        _print(figures)
    return 0 if figures.ratio <= MOST else 1


def measure(rounds: int) -> Figures:
    """In turn, after one round that only warms up the disk."""
    environment = dict(os.environ) if has_display() else {**os.environ, "SDL_VIDEODRIVER": "dummy"}
    times: dict[str, list[float]] = {name: [] for name in _CODE}
    with tempfile.TemporaryDirectory() as data:
        for number in range(rounds + 1):
            for name, code in _CODE.items():
                seconds = _seconds_until_shown(code, data, environment)
                if number:
                    times[name].append(seconds)
    return Figures(
        describe_machine(),
        environment.get("SDL_VIDEODRIVER", "a real display"),
        {name: statistics.median(values) for name, values in times.items()},
        statistics.median(menu / bare for menu, bare in zip(times[MENU], times[BARE], strict=True)),
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
        raise RacerError(f"no window came up: {(process.stderr.read().strip().splitlines() or ['?'])[-1]}")


def _print(figures: Figures) -> None:
    console = Console()
    title = f"{figures.machine}, {figures.display}"
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    table.add_column("until the first picture")
    table.add_column("ms", justify="right")
    for name, seconds in figures.seconds.items():
        table.add_row(name, f"{seconds * 1000:.0f}")
    console.print(table)
    verdict = "reached" if figures.ratio <= MOST else "missed"
    console.print(f"{figures.ratio:.2f} × the bare window (at most {MOST:g}: {verdict})", markup=False, highlight=False)
