"""The menu of a run that is shown, and its questions: reward weights, discard, leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from racer_env.engine import REWARD_COMPONENTS, Config
from racer_viewer.modes.install import with_part
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.modes.settings_screen import SettingsScreen
from racer_viewer.modes.train.panels import PACE_NAMES, TrainLayout, pace_index
from racer_viewer.modes.train.tensorboard import show_tensorboard
from racer_viewer.optional import SB3
from racer_viewer.translation import _
from racer_viewer.ui.item_list import Button, Choice, Item, Slider
from racer_viewer.ui.views import ListView, MessageView

if TYPE_CHECKING:
    from racer_viewer.modes.train.screen import TrainScreen

MAX_SMOOTHING = 0.95
"""Maximum smoothing of the curves."""


class RunDecision(Enum):
    """Decision of the user about a live run: keep it learning without a window, stop it, or discard it."""

    DETACH = "detach"
    STOP = "stop"
    DISCARD = "discard"


class TrainMenu(Screen):
    """Menu of the training screen; learning goes on while it is open."""

    def __init__(self, app: AppContext, train: TrainScreen) -> None:
        self._train = train
        items = self._items(app, train)
        super().__init__(app, ListView(_("Train"), items, subtitle=str(train.run.folder), darkness=150))

    def _items(self, app: AppContext, train: TrainScreen) -> list[Item]:
        layouts = list(TrainLayout)
        shown: list[Item] = [
            Button(_("Back"), on_press=app.pop),
            Choice(
                _("View"), options=[_(each.value) for each in layouts], chosen=layouts.index(train.layout),
                on_change=lambda number: setattr(train, "layout", layouts[number]),
            ),
            Slider(
                _("Curve smoothing"), high=MAX_SMOOTHING, step=0.05, number=train.smoothing, unit="%",
                on_change=lambda number: setattr(train, "smoothing", number),
            ),
        ]  # fmt: skip
        if not train.is_live:
            return [*shown, *self._always(app)]
        paused = train.run.state == "paused"
        return [
            *shown,
            Button(
                _("Resume") if paused else _("Pause"),
                on_press=partial(self._close_and, train.run.resume if paused else train.run.pause),
            ),
            Choice(
                _("Pace"),
                options=[_(each) for each in PACE_NAMES],
                chosen=pace_index(train.run.pace),
                on_change=train.set_pace,
            ),
            Button(_("Save checkpoint"), on_press=partial(self._close_and, train.save)),
            Button(
                _("Race against the newest policy"), on_press=partial(self._close_and, lambda: train.race_policy(True))
            ),
            Button(
                _("Reward weights"),
                _("Change the weights of the reward components"),
                on_press=lambda: app.push(WeightsScreen(app, train)),
            ),
            Button(
                _("Reward lab"),
                _("Weights, own terms, and what they pay for good and bad drives"),
                on_press=self._open_lab,
            ),
            Button(
                _("Stop and save"),
                _("The run can be resumed later"),
                on_press=partial(self._close_and, lambda: train.decide(RunDecision.STOP)),
            ),
            Button(_("Stop and discard"), _("Deletes all files of this run"), on_press=self._confirm_discard),
            Button(
                _("Start a second run"),
                _("Same settings, another seed; this run keeps training"),
                on_press=self._start_second,
            ),
            *self._always(app),
        ]

    def _always(self, app: AppContext) -> list[Item]:
        return [
            Button(_("Compare with"), _("Add the curves of another run"), on_press=self._compare),
            Button(_("TensorBoard"), _("All metrics of this run in a browser"), on_press=self._show_tensorboard),
            Button(_("Settings"), on_press=lambda: app.push(SettingsScreen(app))),
            Button(_("Leave"), on_press=self._leave),
        ]

    def _open_lab(self) -> None:
        from racer_viewer.modes.train.reward_screen import RewardLabScreen

        train, config = self._train, self._train.run.config
        before = config.rewards

        def apply(rewards: Config) -> None:
            old, new = before.to_json()["weights"], rewards.to_json()["weights"]
            changed = {key: value for key, value in new.items() if value != old[key]}
            if rewards != before:
                train.set_weights(changed, rewards.formulas)

        self.app.push(RewardLabScreen(self.app, before, train.circuit, config.progress_in_units, apply, _("Apply")))

    def _close_and(self, action: Callable[[], object]) -> None:
        self.app.pop()
        action()

    def _confirm_discard(self) -> None:
        def leave() -> None:
            self.app.pop()
            self.app.pop()

        self.app.push(DiscardScreen(self.app, self._train, leave))

    def _start_second(self) -> None:
        """Start a run with another seed, compared with this one, which keeps learning in the background."""
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
        with_part(self.app, SB3, lambda: show_tensorboard(self._train.run.folder, self.app.notify))

    def _leave(self) -> None:
        self.app.pop()
        question = self._train.confirm_close(self.app.pop)
        if question is None:
            self.app.pop()
        else:
            self.app.push(question)


class DiscardScreen(Screen):
    """Question before a run is discarded; calls `then` afterwards."""

    def __init__(self, app: AppContext, train: TrainScreen, then: Callable[[], None]) -> None:
        self._train, self._then = train, then
        text = _("{folder} and everything in it is deleted. This cannot be undone.").format(folder=train.run.folder)
        buttons = [Button(_("Cancel"), on_press=app.pop), Button(_("Discard"), on_press=self._discard)]
        super().__init__(app, MessageView(_("Discard this run?"), text, buttons))

    def _discard(self) -> None:
        self.app.pop()
        self._train.decide(RunDecision.DISCARD)
        self._then()


class LeaveTrainingScreen(Screen):
    """Question before a live run is left: what becomes of it. `then` leaves it."""

    def __init__(self, app: AppContext, train: TrainScreen, then: Callable[[], None]) -> None:
        self._train, self._then = train, then
        text = _(
            "{name} has {steps:,} of {total:,} steps.\nIt can keep training in the background; Train > Runs lists it."
        ).format(name=train.run.config.name, steps=train.run.steps, total=train.run.total)
        buttons = [
            Button(_("Cancel"), on_press=app.pop),
            Button(_("Keep training in background"), on_press=self._detach),
            Button(_("Stop and save"), on_press=self._stop),
            Button(_("Stop and discard"), on_press=self._discard),
        ]
        super().__init__(app, MessageView(_("This run is still training"), text, buttons))

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


class WeightsScreen(Screen):
    """Sliders for the reward weights; a change applies from now on and is an event of the run."""

    def __init__(self, app: AppContext, train: TrainScreen) -> None:
        super().__init__(app, ListView(_("Reward weights"), darkness=150))
        self._train, self._now = train, train.run.weights
        self._sliders = {
            component.weight_key: Slider(
                _(component.label).capitalize(),
                low=component.weight_range[0],
                high=component.weight_range[1],
                step=component.weight_step,
                number=float(self._now[component.weight_key]),
            )
            for component in REWARD_COMPONENTS
        }
        self.list.items = [
            *self._sliders.values(),
            Button(_("Apply"), _("Applies from the next step on"), on_press=self._apply),
            Button(_("Cancel"), _("Keeps the current weights"), on_press=self.app.pop),
        ]

    @property
    def _changed(self) -> dict[str, float]:
        """Weights that were changed here; another client may have changed the others meanwhile."""
        numbers = {name: slider.number for name, slider in self._sliders.items()}
        return {name: number for name, number in numbers.items() if number != self._now[name]}

    def back(self) -> None:
        """Ask before changes are dropped."""
        if not self._changed:
            self.app.pop()
            return
        labels = [self._sliders[name].label for name in self._changed]
        text = _("Changed but not applied: {names}.").format(names=", ".join(labels))
        buttons = [
            Button(_("Apply"), _("Applies from the next step on"), on_press=partial(self._close_question, self._apply)),
            Button(_("Discard changes"), on_press=partial(self._close_question, self.app.pop)),
            Button(_("Keep editing"), on_press=self.app.pop),
        ]
        self.app.push(MessageScreen(self.app, _("Apply the new weights?"), text, buttons))

    def _close_question(self, action: Callable[[], None]) -> None:
        self.app.pop()
        action()

    def _apply(self) -> None:
        changed = self._changed
        self.app.pop()
        if changed:
            self._train.set_weights(changed)
        else:
            self.app.notify(_("No weights were changed"))
