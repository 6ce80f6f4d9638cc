"""Opening the screen of a training: of a new run, of one that goes on, or of one that is to be seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from racer_viewer.modes.loading import open_safely
from racer_viewer.modes.opening import open_behind
from racer_viewer.modes.screen import Stage
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.tensorboard import show_tensorboard
from racer_viewer.training.config import RunConfig
from racer_viewer.training.live import WatchedRun

Opened = Callable[[TrainScreen], None]
"""Hears of the screen as soon as there is one."""


def _nobody(screen: TrainScreen) -> None:
    pass


def open_training(
    app: Stage,
    config: RunConfig,
    compared: Sequence[Path] = (),
    tensorboard: bool = False,
    opened: Opened = _nobody,
) -> None:
    """Begin a run and see it, with the curves of others over its own."""

    def begin() -> TrainScreen:
        screen = _screen_of(app, WatchedRun.start(config, app.data / "runs"), compared, opened)
        if tensorboard:
            show_tensorboard(screen.run.folder, app.say)
        return screen

    open_safely(app, begin)


def open_run(app: Stage, folder: Path, compared: Sequence[Path] = (), opened: Opened = _nobody) -> None:
    """See a run that is learning, or that has learned, with the curves of others over its own."""
    _open_behind(app, f"Opening {folder.name}", lambda: WatchedRun.attach(folder), WatchedRun.detach, compared, opened)


def resume_run(app: Stage, folder: Path, timesteps: int | None = None, opened: Opened = _nobody) -> None:
    """Learn on from the last that was saved, to so many steps in all; None is what it was told to."""
    words = f"Resuming {folder.name}"
    _open_behind(app, words, lambda: WatchedRun.go_on(folder, timesteps), WatchedRun.close, opened=opened)


def _open_behind(
    app: Stage,
    words: str,
    open_it: Callable[[], WatchedRun],
    undo: Callable[[WatchedRun], None],
    compared: Sequence[Path] = (),
    opened: Opened = _nobody,
) -> None:
    """undo: what becomes of the run if the user leaves before it is there."""
    open_behind(app, words, open_it, lambda run: _screen_of(app, run, compared, opened), undo)


def _screen_of(app: Stage, run: WatchedRun, compared: Sequence[Path], opened: Opened) -> TrainScreen:
    """A run that cannot be shown does not go on unseen."""
    try:
        screen = TrainScreen(app, run)
        for folder in compared:
            screen.compare_with(folder)
        opened(screen)
        return screen
    except BaseException:
        run.close()
        raise
