"""Screens after a run: its results and what to do next, and how many more steps to train."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.modes.play import open_play
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.modes.train.run_facts import best_policy, best_steps, fastest_laps
from racer_viewer.modes.train.showcase import steps_in_words
from racer_viewer.modes.watch import open_watch
from racer_viewer.translation import _, mark
from racer_viewer.ui.item_list import Button, Item
from racer_viewer.ui.views import ListView

if TYPE_CHECKING:
    from racer_viewer.modes.train.screen import TrainScreen

MORE_STEPS = (100_000, 300_000, 1_000_000)
"""Numbers of additional steps to choose from."""
RACE_LAPS = 3
"""Laps of a race against the trained policy."""
TITLES = {"finished": mark("Training finished"), "failed": mark("Training failed")}
"""Titles by the state of the run."""


class MoreStepsScreen(Screen):
    """Choice of additional steps for a finished run.

    done: steps of the run so far.
    total: steps in its configuration.
    before: called before the run is resumed.
    """

    def __init__(
        self, app: AppContext, folder: Path, done: int, total: int, before: Callable[[], None] = lambda: None
    ) -> None:
        self._folder, self._done, self._before = folder, done, before
        usual = [
            Button(_("{more:,} more steps").format(more=more), self._hint(more), on_press=partial(self._resume, more))
            for more in MORE_STEPS
        ]
        again = Button(
            _("{total:,} more steps, as many as before").format(total=total),
            self._hint(total),
            on_press=partial(self._resume, total),
        )
        items = usual if total in MORE_STEPS else [*usual, again]
        subtitle = _("{name} has finished its {done:,} steps. How many more?").format(name=folder.name, done=done)
        super().__init__(
            app, ListView(_("Continue training"), [*items, Button(_("Cancel"), on_press=self.back)], subtitle=subtitle)
        )

    def _hint(self, more: int) -> str:
        return _("Resume from the last checkpoint, up to {steps:,} steps in total").format(steps=self._done + more)

    def _resume(self, more: int) -> None:
        from racer_viewer.modes.train.setup import resume_run

        self.app.pop()
        self._before()
        resume_run(self.app, self._folder, self._done + more)


class TrainEndScreen(Screen):
    """Results of a run that has ended, over its last frame; Back leads to the timeline of the run."""

    return_label = mark("Back to the run")

    def __init__(self, app: AppContext, train: TrainScreen) -> None:
        self._train = train
        title = _(TITLES.get(train.run.state, mark("Training stopped")))
        view = ListView(title, self._items(app), subtitle=self._results, darkness=200, subtitle_lines=4)
        super().__init__(app, view)

    def _results(self) -> str:
        run = self._train.run
        if run.problem:
            return run.problem
        laps = filter(None, (best_policy(run.history), fastest_laps(run.history)))
        return _("{name}: {steps:,} steps; {laps}").format(
            name=run.config.name, steps=run.steps, laps="; ".join(laps) or _("no lap in training yet")
        )

    def _items(self, app: AppContext) -> list[Item]:
        items: list[Item] = []
        if self._train.best_model() is not None:
            items += [
                Button(
                    _("Race this agent"),
                    _("You against {policy}").format(policy=self._policy_text()),
                    on_press=self._race,
                ),
                Button(_("Watch this agent"), _("With its observations and actions"), on_press=self._watch),
            ]
            items.append(self._resume_button())
        items += [
            Button(_("Review the run"), _("A timeline of the whole run"), on_press=app.pop),
            Button(_("Main menu"), on_press=self._leave),
        ]
        return items

    def _policy_text(self) -> str:
        """Describe the policy that is raced and watched."""
        steps = best_steps(self._train.run.history)
        return (
            _("the trained policy")
            if steps is None
            else _("its best policy, after {steps} steps").format(steps=steps_in_words(steps))
        )

    def _resume_button(self) -> Button:
        if self._train.run.state == "finished":
            return Button(_("Continue training"), _("Add steps to this run"), on_press=self._ask_for_more)
        return Button(_("Resume"), _("Continue from the last checkpoint"), on_press=self._resume)

    def _race(self) -> None:
        run, model = self._train.run, self._train.best_model()
        if model is None:
            self.app.notify(_("There is no model in {folder}").format(folder=run.folder))
        else:
            open_play(self.app, run.config.tracks[0], [(run.config.name, model)], RACE_LAPS)

    def _watch(self) -> None:
        run, model = self._train.run, self._train.best_model()
        if model is None:
            self.app.notify(_("There is no model in {folder}").format(folder=run.folder))
        else:
            open_watch(self.app, [model], run.config.tracks[0])

    def _resume(self) -> None:
        from racer_viewer.modes.train.setup import resume_run

        folder = self._train.run.folder
        self._close_all()
        resume_run(self.app, folder)

    def _ask_for_more(self) -> None:
        run = self._train.run
        self.app.push(MoreStepsScreen(self.app, run.folder, run.steps, run.total, before=self._close_all))

    def _close_all(self) -> None:
        """Close this screen and the training screen below it."""
        self.app.pop()
        self.app.pop()

    def _leave(self) -> None:
        self.app.pop_to_menu()
