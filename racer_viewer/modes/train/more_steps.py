"""A run that has learned for as long as it was told to: for how many steps more?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from racer_viewer.modes.lists import ListScreen
from racer_viewer.modes.screen import Stage
from racer_viewer.ui.items import Button

MORE = (100_000, 300_000, 1_000_000)


class MoreStepsScreen(ListScreen):
    """done: steps that it has learned for; total: that it was told to. before: done before it is opened again."""

    title = "Learn on"

    def __init__(
        self, app: Stage, folder: Path, done: int, total: int, before: Callable[[], None] = lambda: None
    ) -> None:
        self._folder, self._done, self._before = folder, done, before
        usual = [Button(f"{more:,} steps more", self._hint(more), do=partial(self._go_on, more)) for more in MORE]
        again = Button(f"As many again: {total:,} steps", self._hint(total), do=partial(self._go_on, total))
        items = usual if total in MORE else [*usual, again]
        super().__init__(app, [*items, Button("Leave it as it is", do=self.back)])

    @property
    def subtitle(self) -> str:
        return f"{self._folder.name} has learned for all of its {self._done:,} steps. How many more?"

    def _hint(self, more: int) -> str:
        return f"From the last that was saved, to {self._done + more:,} steps in all"

    def _go_on(self, more: int) -> None:
        from racer_viewer.modes.train.opening import resume_run

        self.app.pop()
        self._before()
        resume_run(self.app, self._folder, self._done + more)
