"""Opening the screen of a training: of a new run, of one that goes on, or of one that is to be seen.

Before training: what to learn, where and how. The first line starts it as it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.modes.choose import CircuitChooser
from racer_viewer.modes.screen import AppContext, MessageScreen
from racer_viewer.modes.train.runs import RunsScreen
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.tensorboard import show_tensorboard
from racer_viewer.modes.waiting import open_in_background, open_safely
from racer_viewer.runtime import can_train, training_install_hint
from racer_viewer.training.config import DEFAULT_PRESET, PRESETS, RunConfig, preset
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.ui.item_list import Button, Choice, Item

if TYPE_CHECKING:
    import pygame

Opened = Callable[[TrainScreen], None]
"""Hears of the screen as soon as there is one."""


def _nobody(screen: TrainScreen) -> None:
    pass


def open_training(
    app: AppContext,
    config: RunConfig,
    compared: Sequence[Path] = (),
    tensorboard: bool = False,
    opened: Opened = _nobody,
) -> None:
    """Begin a run and see it, with the curves of others over its own."""

    def begin() -> TrainScreen:
        screen = _screen_of(app, RunMonitor.start(config, app.data / "runs"), compared, opened)
        if tensorboard:
            show_tensorboard(screen.run.folder, app.notify)
        return screen

    open_safely(app, begin)


def open_run(app: AppContext, folder: Path, compared: Sequence[Path] = (), opened: Opened = _nobody) -> None:
    """See a run that is learning, or that has learned, with the curves of others over its own."""
    _open_in_background(
        app, f"Opening {folder.name}", lambda: RunMonitor.attach(folder), RunMonitor.detach, compared, opened
    )


def resume_run(app: AppContext, folder: Path, timesteps: int | None = None, opened: Opened = _nobody) -> None:
    """Learn on from the last that was saved, to so many steps in all; None is what it was told to."""
    words = f"Resuming {folder.name}"
    _open_in_background(app, words, lambda: RunMonitor.continue_run(folder, timesteps), RunMonitor.close, opened=opened)


def _open_in_background(
    app: AppContext,
    words: str,
    open_it: Callable[[], RunMonitor],
    undo: Callable[[RunMonitor], None],
    compared: Sequence[Path] = (),
    opened: Opened = _nobody,
) -> None:
    """undo: what becomes of the run if the user leaves before it is there."""
    open_in_background(app, words, open_it, lambda run: _screen_of(app, run, compared, opened), undo)


def _screen_of(app: AppContext, run: RunMonitor, compared: Sequence[Path], opened: Opened) -> TrainScreen:
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


ALGORITHMS = ("ppo", "sac")
CARS = (8, 16, 32, 64, 128, 256)
STEPS = (100_000, 250_000, 500_000, 800_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000)
FIRST_STEPS = 500_000
"""That quick offers: a car that drives, within half a minute."""
ABOUT = {
    "quick": "One circuit, a first lap within seconds",
    "champion": "All circuits and some random ones: one policy for everything, in minutes",
    "specialist": "Begins with what the champion knows and learns one circuit to the last hundredth",
}


class TrainSetupScreen(CircuitChooser):
    title = "Train"

    def __init__(self, app: AppContext) -> None:
        super().__init__(app)
        self._algorithm = Choice(
            "Algorithm", options=[each.upper() for each in ALGORITHMS], on_change=self._take_algorithm
        )
        self._preset = Choice("Preset", on_change=lambda number: self._take_preset())
        self._cars = Choice("Cars", "That learn at the same time", options=[str(count) for count in CARS])
        self._steps = Choice("Steps", "Of all cars together", options=[f"{count:,}" for count in STEPS])
        self._begin = Button("Start", on_press=self._start)
        self._runs = Button("Runs", "See, compare, resume or delete what was learned before", on_press=self._see_runs)
        self._take_algorithm(0)

    @property
    def config(self) -> RunConfig:
        """Of the run that would start now."""
        algo, name = self._chosen_preset
        config = preset(algo, name)
        tracks = config.tracks if _has_its_own(config) else (self.where,)
        return replace(config, tracks=tracks, num_cars=CARS[self._cars.chosen], timesteps=STEPS[self._steps.chosen])

    def draw_beside(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        """The chosen circuit, where it is the one that is learned on."""
        if self._chosen_circuit in self.list.items:
            super().draw_beside(surface, area)

    @property
    def _chosen_preset(self) -> tuple[str, str]:
        return ALGORITHMS[self._algorithm.chosen], self._preset.value or DEFAULT_PRESET

    def _take_algorithm(self, number: int) -> None:
        self._preset.options = list(PRESETS[ALGORITHMS[number]])
        self._preset.chosen = 0
        self._take_preset()

    def _take_preset(self) -> None:
        """Cars and steps as the preset has them."""
        algo, name = self._chosen_preset
        config = preset(algo, name)
        self._preset.hint = ABOUT.get(name, "")
        knows = f"with what {config.begin_from} knows" if config.begin_from else "from nothing"
        self._begin.hint = f"Learning begins {knows}"
        self._cars.chosen = CARS.index(config.num_cars)
        self._steps.chosen = STEPS.index(FIRST_STEPS if name == DEFAULT_PRESET and algo == "ppo" else config.timesteps)
        circuit = _fixed_circuits(config) if _has_its_own(config) else self._chosen_circuit
        self.list.items = [self._begin, circuit, self._algorithm, self._preset, self._cars, self._steps, self._runs]

    def _start(self) -> None:
        if can_train():
            open_training(self.app, self.config)
        else:
            self.app.push(MessageScreen(self.app, "Training is not installed", training_install_hint()))

    def _see_runs(self) -> None:
        self.app.push(RunsScreen(self.app))


def _has_its_own(config: RunConfig) -> bool:
    """Whether a preset says itself where to learn; one circuit only stands for any."""
    return len(config.tracks) > 1


def _fixed_circuits(config: RunConfig) -> Item:
    """In place of the choice of a circuit, where there is none."""
    count = f"{len(config.circuits)} of the preset"
    return Button(
        "Circuits",
        "This preset learns on circuits of its own: the other ones let you choose",
        enabled=False,
        note=count,
    )
