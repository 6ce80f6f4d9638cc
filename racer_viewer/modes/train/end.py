"""A run that has learned for as long as it was told to: for how many steps more?

A training has ended: what came of it, and what can be done with it now."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.modes.play import open_play
from racer_viewer.modes.screen import AppContext, ListScreen
from racer_viewer.modes.train.run_facts import best_policy, best_steps, fastest_laps
from racer_viewer.modes.train.showcase import steps_in_words
from racer_viewer.modes.watch import open_watch
from racer_viewer.ui.item_list import Button, Item

if TYPE_CHECKING:
    from racer_viewer.modes.train.screen import TrainScreen

MORE = (100_000, 300_000, 1_000_000)


class MoreStepsScreen(ListScreen):
    """done: steps that it has learned for; total: that it was told to. before: done before it is opened again."""

    title = "Learn on"

    def __init__(
        self, app: AppContext, folder: Path, done: int, total: int, before: Callable[[], None] = lambda: None
    ) -> None:
        self._folder, self._done, self._before = folder, done, before
        usual = [Button(f"{more:,} steps more", self._hint(more), on_press=partial(self._go_on, more)) for more in MORE]
        again = Button(f"As many again: {total:,} steps", self._hint(total), on_press=partial(self._go_on, total))
        items = usual if total in MORE else [*usual, again]
        super().__init__(app, [*items, Button("Leave it as it is", on_press=self.back)])

    @property
    def subtitle(self) -> str:
        return f"{self._folder.name} has learned for all of its {self._done:,} steps. How many more?"

    def _hint(self, more: int) -> str:
        return f"From the last that was saved, to {self._done + more:,} steps in all"

    def _go_on(self, more: int) -> None:
        from racer_viewer.modes.train.setup import resume_run

        self.app.pop()
        self._before()
        resume_run(self.app, self._folder, self._done + more)


RACED_LAPS = 3


class TrainEndScreen(ListScreen):
    """Over the last picture of it. Going back leads to the timeline over the whole training."""

    darkness = 200
    return_label = "Back to the training"
    subtitle_lines = 4

    def __init__(self, app: AppContext, train: TrainScreen) -> None:
        self._train = train
        super().__init__(app, self._items(app))

    @property
    def title(self) -> str:  # type: ignore[override]
        return {"finished": "It has learned", "failed": "The training has failed"}.get(self._train.run.state, "Stopped")

    @property
    def subtitle(self) -> str:
        run = self._train.run
        if run.problem:
            return run.problem
        laps = filter(None, (best_policy(run.history), fastest_laps(run.history)))
        return f"{run.config.name}: {run.steps:,} steps; {'; '.join(laps) or 'no whole lap yet'}"

    def _items(self, app: AppContext) -> list[Item]:
        items: list[Item] = []
        if self._train.best_model() is not None:
            items += [
                Button("Race it", f"You against {self._learned()}", on_press=self._race),
                Button("Watch it", "With all that it sees and wants", on_press=self._watch),
            ]
            items.append(self._resuming())
        items += [
            Button("See the training again", "A timeline over all of it", on_press=app.pop),
            Button("To the menu", on_press=self._leave),
        ]
        return items

    def _learned(self) -> str:
        """What is raced and watched, in words."""
        steps = best_steps(self._train.run.history)
        return "what it has learned" if steps is None else f"its best policy, after {steps_in_words(steps)} steps"

    def _resuming(self) -> Button:
        if self._train.run.state == "finished":
            return Button("Learn on", "For some steps more", on_press=self._ask_for_more)
        return Button("Resume", "Learn on from the last that was saved", on_press=self._resume)

    def _race(self) -> None:
        run, model = self._train.run, self._train.best_model()
        if model is None:
            self.app.notify(f"There is no model in {run.folder} any more")
        else:
            open_play(self.app, run.config.tracks[0], [(run.config.name, model)], RACED_LAPS)

    def _watch(self) -> None:
        run, model = self._train.run, self._train.best_model()
        if model is None:
            self.app.notify(f"There is no model in {run.folder} any more")
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
        """This, and the training below it."""
        self.app.pop()
        self.app.pop()

    def _leave(self) -> None:
        self.app.pop_to_menu()
