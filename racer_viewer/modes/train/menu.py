"""What can be done about a training while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from racer_env.engine import REWARD_COMPONENTS
from racer_viewer.modes.screen import AppContext, ListScreen, MessageScreen
from racer_viewer.modes.settings_screen import SettingsScreen
from racer_viewer.modes.train.panels import PACE_NAMES, RunDecision, TrainLayout, pace_index
from racer_viewer.modes.train.tensorboard import show_tensorboard
from racer_viewer.ui.item_list import Button, Choice, Item, Slider

if TYPE_CHECKING:
    from racer_viewer.modes.train.screen import TrainScreen

LARGEST_SMOOTHING = 0.95


class TrainMenu(ListScreen):
    """Learning goes on while it is open."""

    title = "Train"
    darkness = 150

    def __init__(self, app: AppContext, train: TrainScreen) -> None:
        self._train = train
        super().__init__(app, self._items(app, train))

    @property
    def subtitle(self) -> str:
        return str(self._train.run.folder)

    def _items(self, app: AppContext, train: TrainScreen) -> list[Item]:
        layouts = list(TrainLayout)
        shown: list[Item] = [
            Button("Go on", on_press=app.pop),
            Choice(
                "View", options=[each.value for each in layouts], chosen=layouts.index(train.layout),
                on_change=lambda number: setattr(train, "layout", layouts[number]),
            ),
            Slider(
                "Smoothing of the curves", high=LARGEST_SMOOTHING, step=0.05, number=train.smoothing, unit="%",
                on_change=lambda number: setattr(train, "smoothing", number),
            ),
        ]  # fmt: skip
        if not train.is_live:
            return [*shown, *self._always(app)]
        paused = train.run.state == "paused"
        return [
            *shown,
            Button(
                "Learn on" if paused else "Pause",
                on_press=partial(self._do, train.run.resume if paused else train.run.pause),
            ),
            Choice("Pace", options=PACE_NAMES, chosen=pace_index(train.run.pace), on_change=train.set_pace),
            Button("Save now", on_press=partial(self._do, train.save)),
            Button("Race the newest policy", on_press=partial(self._do, lambda: train.race_it(True))),
            Button(
                "Reward weights",
                "Change them and see what they do",
                on_press=lambda: app.push(WeightsScreen(app, train)),
            ),
            Button(
                "Stop and save",
                "What it knows is kept",
                on_press=partial(self._do, lambda: train.decide(RunDecision.STOP)),
            ),
            Button("Stop and discard", "Nothing of this run is left", on_press=self._ask_discard),
            Button("A second run beside it", "With the same settings and another seed", on_press=self._second),
            *self._always(app),
        ]

    def _always(self, app: AppContext) -> list[Item]:
        return [
            Button("Compare with", "Curves of another run over these", on_press=self._compare),
            Button("TensorBoard", "All figures of this run in a browser", on_press=self._show_tensorboard),
            Button("Settings", on_press=lambda: app.push(SettingsScreen(app))),
            Button("Leave", on_press=self._leave),
        ]

    def _do(self, what: Callable[[], object]) -> None:
        self.app.pop()
        what()

    def _ask_discard(self) -> None:
        def leave() -> None:
            self.app.pop()
            self.app.pop()

        self.app.push(DiscardScreen(self.app, self._train, leave))

    def _second(self) -> None:
        """The first one's curves come to lie over its own; that one learns on in the background, and Runs has it."""
        from racer_viewer.modes.train.setup import open_training

        config = self._train.run.config
        self._train.decide(RunDecision.DETACH)
        self.app.pop()
        self.app.pop()
        open_training(self.app, replace(config, seed=config.seed + 1, name=""), compared=[self._train.run.folder])

    def _compare(self) -> None:
        from racer_viewer.modes.train.runs import RunsScreen

        self.app.pop()
        known = (self._train.run.folder, *self._train.compared_folders)
        self.app.push(RunsScreen(self.app, choose=self._train.compare_with, without=known))

    def _show_tensorboard(self) -> None:
        show_tensorboard(self._train.run.folder, self.app.notify)

    def _leave(self) -> None:
        self.app.pop()
        question = self._train.confirm_close(self.app.pop)
        if question is None:
            self.app.pop()
        else:
            self.app.push(question)


class DiscardScreen(MessageScreen):
    """Asks before all of a run is thrown away. `then`: what to do when it is."""

    def __init__(self, app: AppContext, train: TrainScreen, then: Callable[[], None]) -> None:
        self._train, self._then = train, then
        text = f"{train.run.folder} is removed, with all that was saved in it. It cannot be brought back."
        super().__init__(
            app,
            "Discard this run?",
            text,
            [Button("Keep it", on_press=app.pop), Button("Discard", on_press=self._discard)],
        )

    def _discard(self) -> None:
        self.app.pop()
        self._train.decide(RunDecision.DISCARD)
        self._then()


class LeaveTrainingScreen(MessageScreen):
    """Before a training is left: what becomes of it. `then` leaves it."""

    def __init__(self, app: AppContext, train: TrainScreen, then: Callable[[], None]) -> None:
        self._train, self._then = train, then
        super().__init__(
            app,
            "It is still learning",
            f"{train.run.config.name} has {train.run.steps:,} of {train.run.total:,} steps.",
            [
                Button("Stay", on_press=app.pop),
                Button("Leave it learning", "Without a window; Runs brings it back", on_press=self._detach),
                Button("Stop and save", "It can be resumed", on_press=self._stop),
                Button("Stop and discard", "Nothing of this run is left", on_press=self._discard),
            ],
        )

    def _detach(self) -> None:
        self._train.decide(RunDecision.DETACH)
        self._go()

    def _stop(self) -> None:
        self._train.decide(RunDecision.STOP)
        self._go()

    def _discard(self) -> None:
        self.app.push(DiscardScreen(self.app, self._train, self._go))

    def _go(self) -> None:
        self.app.pop()
        self._then()


class WeightsScreen(ListScreen):
    """What each part of the reward is worth from now on; a change is an event of the run."""

    title = "Reward weights"
    darkness = 150

    def __init__(self, app: AppContext, train: TrainScreen) -> None:
        super().__init__(app)
        self._train, self._now = train, train.run.weights
        self._sliders = {
            component.weight_key: Slider(
                component.label.capitalize(),
                low=component.weight_range[0],
                high=component.weight_range[1],
                step=component.weight_step,
                number=float(self._now[component.weight_key]),
            )
            for component in REWARD_COMPONENTS
        }
        self.list.items = [*self._sliders.values(), Button("Apply", "From the next tick on", on_press=self._apply)]

    def _apply(self) -> None:
        """Only what was changed: the rest may have been changed by somebody else meanwhile."""
        numbers = {name: slider.number for name, slider in self._sliders.items()}
        changed = {name: number for name, number in numbers.items() if number != self._now[name]}
        self.app.pop()
        if changed:
            self._train.weigh(changed)
        else:
            self.app.notify("Nothing was changed")
