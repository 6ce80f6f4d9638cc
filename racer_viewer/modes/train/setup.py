"""The screen before training, and functions that open the training screen for a new or an existing run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.modes.circuits import CircuitPicker
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.modes.train.runs import RunsScreen
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.tensorboard import show_tensorboard
from racer_viewer.modes.waiting import open_in_background, open_safely
from racer_viewer.runtime import can_train, training_install_hint
from racer_viewer.training.config import DEFAULT_PRESET, PRESETS, RunConfig, preset
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.ui.item_list import Button, Choice, Item
from racer_viewer.ui.views import ListView

if TYPE_CHECKING:
    import pygame

Opened = Callable[[TrainScreen], None]
"""Callback that receives the training screen when it is opened."""


def _ignore(screen: TrainScreen) -> None:
    pass


def open_training(
    app: AppContext,
    config: RunConfig,
    compared: Sequence[Path] = (),
    tensorboard: bool = False,
    opened: Opened = _ignore,
) -> None:
    """Start a run and show it, compared with the curves of other runs."""

    def begin() -> TrainScreen:
        screen = _screen_of(app, RunMonitor.start(config, app.data / "runs"), compared, opened)
        if tensorboard:
            show_tensorboard(screen.run.folder, app.notify)
        return screen

    open_safely(app, begin)


def open_run(app: AppContext, folder: Path, compared: Sequence[Path] = (), opened: Opened = _ignore) -> None:
    """Show a live or ended run, compared with the curves of other runs."""
    _open_in_background(
        app, f"Opening {folder.name}", lambda: RunMonitor.attach(folder), RunMonitor.detach, compared, opened
    )


def resume_run(app: AppContext, folder: Path, timesteps: int | None = None, opened: Opened = _ignore) -> None:
    """Resume a run from its last checkpoint, up to `timesteps` in total; None is its configured number."""
    text = f"Resuming {folder.name}"
    _open_in_background(app, text, lambda: RunMonitor.continue_run(folder, timesteps), RunMonitor.close, opened=opened)


def _open_in_background(
    app: AppContext,
    text: str,
    open_it: Callable[[], RunMonitor],
    undo: Callable[[RunMonitor], None],
    compared: Sequence[Path] = (),
    opened: Opened = _ignore,
) -> None:
    """Open a run in the background; `undo` is called with it if the user leaves before it is opened."""
    open_in_background(app, text, open_it, lambda run: _screen_of(app, run, compared, opened), undo)


def _screen_of(app: AppContext, run: RunMonitor, compared: Sequence[Path], opened: Opened) -> TrainScreen:
    """Return the screen of a run; if that fails, close the run."""
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
DEFAULT_STEPS = 500_000
"""Steps offered for the default preset: a car that drives, within half a minute."""
PRESET_HINTS = {
    "quick": "One circuit, a first lap within seconds",
    "champion": "All circuits and some random ones: one policy for everything, in minutes",
    "specialist": "Starts from the champion and masters one circuit",
}


class TrainSetupScreen(Screen):
    """Circuit, algorithm, preset, cars and steps of a new run."""

    def __init__(self, app: AppContext) -> None:
        self.picker = CircuitPicker(app)
        super().__init__(app, ListView("Train", draw_beside=self._draw_circuit))
        self._algorithm = Choice(
            "Algorithm", options=[each.upper() for each in ALGORITHMS], on_change=self._set_algorithm
        )
        self._preset = Choice("Preset", on_change=lambda number: self._set_preset())
        self._cars = Choice("Cars", "Cars that learn at the same time", options=[str(count) for count in CARS])
        self._steps = Choice(
            "Steps", "Environment steps of all cars together", options=[f"{count:,}" for count in STEPS]
        )
        self._start_button = Button("Start", on_press=self._start)
        self._runs = Button("Runs", "Open, compare, resume or delete earlier runs", on_press=self._open_runs)
        self._set_algorithm(0)

    @property
    def config(self) -> RunConfig:
        """Config of the run that Start would start."""
        algo, name = self._chosen_preset
        config = preset(algo, name)
        tracks = config.tracks if _has_own_circuits(config) else (self.picker.circuit_id,)
        return replace(config, tracks=tracks, num_cars=CARS[self._cars.chosen], timesteps=STEPS[self._steps.chosen])

    def refresh(self) -> None:
        self.picker.refresh()

    def _draw_circuit(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        """Draw the chosen circuit, unless the preset has its own circuits."""
        if self.picker.item in self.list.items:
            self.picker.draw(surface, area)

    @property
    def _chosen_preset(self) -> tuple[str, str]:
        return ALGORITHMS[self._algorithm.chosen], self._preset.value or DEFAULT_PRESET

    def _set_algorithm(self, number: int) -> None:
        self._preset.options = list(PRESETS[ALGORITHMS[number]])
        self._preset.chosen = 0
        self._set_preset()

    def _set_preset(self) -> None:
        """Set cars, steps and circuits as in the preset."""
        algo, name = self._chosen_preset
        config = preset(algo, name)
        self._preset.hint = PRESET_HINTS.get(name, "")
        source = f"the {config.begin_from} model" if config.begin_from else "scratch"
        self._start_button.hint = f"Train from {source}"
        self._cars.chosen = CARS.index(config.num_cars)
        self._steps.chosen = STEPS.index(
            DEFAULT_STEPS if name == DEFAULT_PRESET and algo == "ppo" else config.timesteps
        )
        circuit = _fixed_circuits(config) if _has_own_circuits(config) else self.picker.item
        self.list.items = [
            self._start_button,
            circuit,
            self._algorithm,
            self._preset,
            self._cars,
            self._steps,
            self._runs,
        ]

    def _start(self) -> None:
        if can_train():
            open_training(self.app, self.config)
        else:
            self.app.push(MessageScreen(self.app, "Training is not installed", training_install_hint()))

    def _open_runs(self) -> None:
        self.app.push(RunsScreen(self.app))


def _has_own_circuits(config: RunConfig) -> bool:
    """Return whether a preset has its own circuits; a single one is only a placeholder."""
    return len(config.tracks) > 1


def _fixed_circuits(config: RunConfig) -> Item:
    """Return a disabled item that replaces the choice of a circuit."""
    count = f"{len(config.circuits)} of the preset"
    return Button(
        "Circuits",
        "This preset has its own circuits; other presets let you choose one",
        enabled=False,
        note=count,
    )
