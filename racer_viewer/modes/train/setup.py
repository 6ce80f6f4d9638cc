"""The screen before training, and functions that open the training screen for a new or an existing run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from racer_env.engine import Config, circuits
from racer_viewer.modes.circuits import CircuitPicker
from racer_viewer.modes.install import with_part
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.modes.train.reward_screen import RewardLabScreen
from racer_viewer.modes.train.runs import RunsScreen
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.teach import TeachScreen, read_lessons
from racer_viewer.modes.train.tensorboard import show_tensorboard
from racer_viewer.modes.waiting import open_in_background, open_safely
from racer_viewer.optional import SB3
from racer_viewer.replays import Trace, clean_laps
from racer_viewer.training.config import DEFAULT_PRESET, PRESETS, Engine, RunConfig, preset
from racer_viewer.training.run_monitor import LearnerProcess, RunMonitor, discard_learner, prepare_learner
from racer_viewer.translation import _, grouped, mark, ngettext
from racer_viewer.ui.intents import Controls
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
    prepared: LearnerProcess | None = None,
) -> None:
    """Start a run and show it, compared with the curves of other runs. prepared: process of `prepare_learner`."""

    def begin() -> TrainScreen:
        try:
            run = RunMonitor.start(config, app.data / "runs", prepared)
        except BaseException:
            if prepared is not None:
                discard_learner(prepared)
            raise
        screen = _screen_of(app, run, compared, opened)
        if tensorboard:
            show_tensorboard(screen.run.folder, app.notify)
        return screen

    open_safely(app, begin)


def compare_rewards(app: AppContext, config: RunConfig, first: Config, second: Config) -> None:
    """Start two runs that differ in their rewards only, and show the second compared with the first."""
    runs = app.data / "runs"

    def begin() -> TrainScreen:
        other = RunMonitor.start(replace(config, rewards=first), runs)
        try:
            run = RunMonitor.start(replace(config, rewards=second), runs)
        except BaseException:
            other.close()
            raise
        other.detach()
        return _screen_of(app, run, [other.folder], _ignore)

    open_safely(app, begin)


def open_run(app: AppContext, folder: Path, compared: Sequence[Path] = (), opened: Opened = _ignore) -> None:
    """Show a live or ended run, compared with the curves of other runs."""
    _open_in_background(
        app,
        _("Opening {name}").format(name=folder.name),
        lambda: RunMonitor.attach(folder),
        RunMonitor.detach,
        compared,
        opened,
    )


def resume_run(
    app: AppContext,
    folder: Path,
    timesteps: int | None = None,
    engine: Engine | None = None,
    opened: Opened = _ignore,
) -> None:
    """Resume a run from its last checkpoint, up to `timesteps` in total; None is its configured number and engine."""

    def resume() -> RunMonitor:
        return RunMonitor.continue_run(folder, timesteps, engine)

    _open_in_background(app, _("Resuming {name}").format(name=folder.name), resume, RunMonitor.close, opened=opened)


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
ENGINES: tuple[Engine, ...] = ("native", "sb3")
ENGINE_NAMES = ("native", "stable-baselines3")
CARS = (8, 16, 32, 64, 128, 256)
PREPARE_AFTER = 12
"""Ticks that the form is open until a learner process is prepared, so that walking through menus starts none."""
STEPS = (100_000, 250_000, 500_000, 800_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000)
DEFAULT_STEPS = 500_000
"""Steps offered for the default preset: a car that drives, within half a minute."""
PRESET_HINTS = {
    "quick": mark("One circuit, a first lap within seconds"),
    "champion": mark("All circuits and some random ones: one policy for everything, in minutes"),
    "specialist": mark("Starts from the champion and masters one circuit"),
}


class TrainSetupScreen(Screen):
    """Circuit, algorithm, preset, engine, cars and steps of a new run."""

    def __init__(self, app: AppContext) -> None:
        self.picker = CircuitPicker(app)
        super().__init__(app, ListView(_("Train"), draw_beside=self._draw_circuit))
        self._algorithm = Choice(
            _("Algorithm"), options=[each.upper() for each in ALGORITHMS], on_change=self._set_algorithm
        )
        self._preset = Choice(_("Preset"), on_change=lambda number: self._set_preset())
        self._engine = Choice(
            _("Engine"), _("native learns several times faster; stable-baselines3 needs torch"), options=ENGINE_NAMES
        )
        self._cars = Choice(_("Cars"), _("Cars that learn at the same time"), options=[str(count) for count in CARS])
        self._steps = Choice(
            _("Steps"), _("Environment steps of all cars together"), options=[grouped(f"{count:,}") for count in STEPS]
        )
        self._start_button = Button(_("Start"), on_press=self._start)
        self._rewards: Config | None = None
        """Reward that the user has chosen; None for that of the preset."""
        self._reward = Button(_("Reward"), _("Weights, own terms, and what they pay for good and bad drives"))
        self._reward.on_press = self._open_rewards
        self._lessons: tuple[str, ...] = ()
        """Replays that the run learns from."""
        self._driven: tuple[str, ...] = ()
        """Circuits of these replays, if they are bundled ones."""
        self._teach = Button(_("Teach"), _("Clone a policy from laps of yours, then let PPO go on"))
        self._teach.on_press, self._teach.note = self._open_teach, _("from scratch")
        self._runs = Button(_("Runs"), _("Open, compare, resume or delete earlier runs"), on_press=self._open_runs)
        self._ticks = 0
        self._prepared: LearnerProcess | None = None
        self._set_algorithm(0)

    @property
    def config(self) -> RunConfig:
        """Config of the run that Start would start."""
        algo, name = self._chosen_preset
        config = preset(algo, name)
        tracks = config.tracks if _has_own_circuits(config) else (self.picker.circuit_id,)
        taught = bool(self._lessons) and algo == "ppo"
        return replace(
            config,
            tracks=(self._driven or tracks) if taught else tracks,
            teach=self._lessons if taught else (),
            begin_from="" if taught else config.begin_from,
            engine="native" if taught else ENGINES[self._engine.chosen] if algo == "ppo" else "sb3",
            num_cars=CARS[self._cars.chosen],
            timesteps=STEPS[self._steps.chosen],
            rewards=self._rewards or config.rewards,
        )

    def refresh(self) -> None:
        self.picker.refresh()

    def on_show(self) -> None:
        super().on_show()
        self._ticks = 0

    def on_close(self) -> None:
        super().on_close()
        if (prepared := self._take_prepared()) is not None:
            discard_learner(prepared)

    def tick(self, controls: Controls) -> None:
        super().tick(controls)
        self._ticks += self.app.warmup.ready
        if self._ticks == PREPARE_AFTER and self._prepared is None:
            self._ticks += 1
            with suppress(OSError):  # the run starts a process of its own, and reports why it cannot
                self._prepared = prepare_learner()

    def _take_prepared(self) -> LearnerProcess | None:
        prepared, self._prepared = self._prepared, None
        return prepared

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
        config, self._rewards = preset(algo, name), None
        self._reward.note = _("of the preset")
        self._preset.hint = _(PRESET_HINTS.get(name, ""))
        source = _("the {model} model").format(model=config.begin_from) if config.begin_from else _("scratch")
        self._start_button.hint = _("Train from {source}").format(source=source)
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
            *([self._engine] if algo == "ppo" else []),
            self._cars,
            self._steps,
            self._reward,
            *([self._teach] if algo == "ppo" else []),
            self._runs,
        ]

    def start(self, config: RunConfig) -> None:
        """Start a run and show it."""
        open_training(self.app, config, prepared=self._take_prepared())

    def _start(self) -> None:
        config = self.config
        if config.local_engine == "native":
            self.start(config)
        else:
            with_part(self.app, SB3, lambda: self.start(self.config))

    def _open_rewards(self) -> None:
        config = self.config
        self.app.push(
            RewardLabScreen(
                self.app,
                config.rewards,
                config.circuits[0],
                config.progress_in_units,
                self._take_rewards,
                on_compare=self._compare_rewards,
            )
        )

    def _compare_rewards(self, first: Config, second: Config) -> None:
        """Start a run with each reward and the same seed; show the second beside the first, which learns unseen."""
        config = self.config

        def start() -> None:
            compare_rewards(self.app, replace(config, name=""), first, second)

        if config.local_engine == "native":
            start()
        else:
            with_part(self.app, SB3, start)

    def _take_rewards(self, rewards: Config) -> None:
        self._rewards = None if rewards == preset(*self._chosen_preset).rewards else rewards
        self._reward.note = _("of the preset") if self._rewards is None else _("own")

    def teach(self, replay: Path) -> None:
        """Choose a replay as what the run learns from."""
        read_lessons(self.app, [replay], lambda lessons: self._take_lessons([replay], lessons))

    def _open_teach(self) -> None:
        self.app.push(TeachScreen(self.app, [Path(name) for name in self._lessons], self._take_lessons))

    def _take_lessons(self, replays: Sequence[Path], lessons: Sequence[Trace]) -> None:
        known = {each.id for each in circuits()}
        driven = tuple(dict.fromkeys(each.replay.circuit.id for each in lessons))
        self._lessons, self._driven = tuple(map(str, replays)), driven if known.issuperset(driven) else ()
        laps = sum(len(clean_laps(each)) for each in lessons)
        self._teach.note = (
            ngettext("{laps} clean lap", "{laps} clean laps", laps).format(laps=laps) if laps else _("from scratch")
        )

    def _open_runs(self) -> None:
        self.app.push(RunsScreen(self.app))


def _has_own_circuits(config: RunConfig) -> bool:
    """Return whether a preset has its own circuits; a single one is only a placeholder."""
    return len(config.tracks) > 1


def _fixed_circuits(config: RunConfig) -> Item:
    """Return a disabled item that replaces the choice of a circuit."""
    count = _("{count} of the preset").format(count=len(config.circuits))
    return Button(
        _("Circuits"),
        _("This preset has its own circuits; other presets let you choose one"),
        enabled=False,
        note=count,
    )
