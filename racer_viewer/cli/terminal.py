"""Messages at the terminal while a run trains, and signals that stop it.

Imported only by verbs that train: it needs the training packages' modules.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from racer_env.errors import RacerError
from racer_viewer.modes.train.menu import RunDecision
from racer_viewer.plain_text import make_console
from racer_viewer.runtime import command_hint
from racer_viewer.training.run_folder import latest_model

if TYPE_CHECKING:
    from racer_viewer.modes.train.screen import TrainScreen
    from racer_viewer.training.callbacks import Progress as RunProgress

STDERR = 2
"""File descriptor of stderr."""
LINE_INTERVAL = 5.0
"""Time between two progress lines where there is no terminal [s]."""


@contextmanager
def stop_on_signals(stop: Callable[[], object]) -> Iterator[list[int]]:
    """Call `stop` on SIGINT or SIGTERM, and raise KeyboardInterrupt on the second one; yield the signals received."""
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)
        with suppress(OSError):  # not print, which may be interrupted by this very handler
            os.write(STDERR, b"\nStopping; press Ctrl-C again to quit without saving\n")
        stop()

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class ProgressReport:
    """Prints the progress of a run on stderr: a moving bar on a terminal, otherwise a line every few seconds."""

    def __init__(self, total: int) -> None:
        console = make_console(stderr=True)
        self._bar = _progress_bar(console) if console.is_terminal else None
        self._task = self._bar.add_task("", total=total, figures="") if self._bar else None
        self._last_line = 0.0

    def __enter__(self) -> ProgressReport:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar:
            self._bar.stop()

    def __call__(self, progress: RunProgress) -> None:
        best = f", best {progress.best_lap:.2f} s" if progress.best_lap else ""
        figures = f"{progress.steps_per_second:,.0f} steps/s, {progress.laps} laps{best}"
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=progress.steps, figures=figures)
            if progress.note:
                self._bar.console.print(f"{progress.steps:>12,}  {progress.note}", markup=False, highlight=False)
        elif progress.note or time.monotonic() - self._last_line > LINE_INTERVAL:
            self._last_line = time.monotonic()
            left = f"{max(0.0, progress.seconds_left):.0f} s left"
            note = f": {progress.note}" if progress.note else f", {left}"
            print(f"{progress.steps:,} of {progress.total:,} steps, {figures}{note}", file=sys.stderr, flush=True)


def _progress_bar(console: Console) -> Progress:
    columns = (
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.completed:,} steps"),
        TextColumn("{task.fields[figures]}"),
    )
    return Progress(*columns, TimeRemainingColumn(), console=console)


def print_run(screen: TrainScreen, own: bool = True) -> None:
    """Print a run's folder now, and its outcome when its screen is closed.

    Parameters:
        own: whether this window started the run
    """
    _print(f"{'Training' if screen.is_live else 'Trained'} in {screen.run.folder}")
    screen.on_closed.append(lambda: _print(describe_outcome(screen, own)))


def describe_outcome(screen: TrainScreen, own: bool) -> str:
    """Return how a run ended and how to continue, after its screen is closed. It may still be saving."""
    run, folder, after = screen.run, screen.run.folder, f"after {screen.run.steps:,} steps"
    if screen.decision is RunDecision.DISCARD:
        return f"Discarded {after}"
    see_it = f"Show it with: {command_hint('train', '--attach', folder)}"
    if screen.decision is RunDecision.DETACH:
        return f"It keeps training in the background. {see_it}"
    if run.problem:
        return run.problem if _saved_model(folder) is None else f"{run.problem} {_how_to_resume(folder)}"
    if run.state == "finished":
        model = _best_model(screen)
        return f"Finished {after}" + (f". Watch it with: {command_hint('watch', model)}" if model else "")
    if screen.is_live and not own and screen.decision is not RunDecision.STOP:
        return see_it  # closing this window does not stop a run that it did not start
    if run.state == "starting" and _saved_model(folder) is None:
        return "Stopped before training began; nothing was saved"
    return f"Stopped {after}. {_how_to_resume(folder)}"


def _how_to_resume(folder: Path) -> str:
    return f"Resume with: {command_hint('train', '--resume', folder)}"


def _saved_model(folder: Path) -> Path | None:
    with suppress(RacerError, OSError):
        return latest_model(folder)
    return None


def _best_model(screen: TrainScreen) -> Path | None:
    with suppress(RacerError, OSError):
        return screen.best_model()
    return None


def _print(text: str) -> None:
    """Print a line; a terminal that was closed while the window is open is not an error."""
    with suppress(OSError, ValueError):
        print(text, flush=True)
