"""Runs: all that was learned here, with the curve of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from racer_env.errors import RacerError
from racer_viewer.modes.screen import MENU_KEYS, AppContext, Key, ListScreen, MessageScreen
from racer_viewer.modes.train.end import MoreStepsScreen
from racer_viewer.modes.train.run_facts import RunFacts, RunScanner, best_policy, fastest_laps
from racer_viewer.modes.waiting import BackgroundTask
from racer_viewer.render.plots import Sparkline
from racer_viewer.training.run_folder import remove_run
from racer_viewer.training.run_lock import running_learner
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.item_list import Button, Column, Row

if TYPE_CHECKING:
    import pygame

COLUMNS = (
    Column("run", 0.30),
    Column("algorithm", 0.13),
    Column("circuit", 0.17),
    Column("steps", 0.14, right=True),
    Column("fastest lap", 0.12, right=True),
    Column("date", 0.14, right=True),
)
NONE, NO_OTHER, READING = "None yet: Train starts one", "There is no other run to compare with", "Looking for runs"
LEARNING = "learning now: Enter brings it back"
PER_CIRCUIT = "several"
"""Instead of a fastest lap, where the hint has one for every circuit."""
SMALL_HEIGHT = 200
"""Of the curve of the chosen run, at scale 1 [px]."""


class RunsScreen(ListScreen):
    """Newest first. Enter opens one; with `choose` it is given to whoever asked instead.

    without: folders that are not listed.
    """

    title = "Runs"
    list_width = 780

    def __init__(
        self, app: AppContext, choose: Callable[[Path], None] | None = None, without: Collection[Path] = ()
    ) -> None:
        super().__init__(app)
        self._choose, self._without = choose, set(without)
        self._lookout, self._seen = RunScanner(app.data / "runs"), -1
        self._facts: list[RunFacts] = []
        self._marked: list[Path] = []
        self._small = Sparkline(app.theme)
        self._work: BackgroundTask[str] | None = None
        self._working = ""
        self.list.columns = COLUMNS
        self._fill()

    @property
    def subtitle(self) -> str:
        return f"Kept in {self._lookout.folder}"

    @property
    def reading(self) -> bool:
        """Whether there are runs that it has not looked at yet."""
        return self._lookout.reading or self._seen != self._lookout.changes

    def keys(self) -> Sequence[Key]:
        if self._choose is not None:
            return (MENU_KEYS[0], ("Enter", "compare with it"), MENU_KEYS[3])
        key = self.app.key_label
        return (
            MENU_KEYS[0],
            ("Left Right", "mark to compare"),
            ("Enter", "open"),
            (key(Command.RESTART), "resume"),
            (key(Command.KEEP), "export"),
            ("Delete", "delete"),
            MENU_KEYS[3],
        )

    def handle(self, intent: Intent) -> None:
        facts = self._chosen
        if facts is None or self._choose is not None:
            super().handle(intent)
        elif intent == Command.DELETE:
            self._ask(facts)
        elif intent == Command.RESTART:
            self._resume(facts)
        elif intent == Command.KEEP:
            self._do_behind(f"Exporting {facts.folder.name}", partial(_export, facts.folder, self.app.data / "exports"))
        else:
            super().handle(intent)

    def on_show(self) -> None:
        """Whoever was on top may have begun or ended some."""
        self._lookout.start()

    def on_cover(self) -> None:
        self._lookout.stop()

    def on_close(self) -> None:
        self._lookout.stop()

    def tick(self, controls: Controls) -> None:
        if self._seen != self._lookout.changes or not self._facts:
            self._seen = self._lookout.changes
            self._fill()
        self._look_at_work()

    def draw_beside(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        facts, theme = self._chosen, self.app.theme
        if self._small.theme is not theme:
            self._small = Sparkline(theme)
        left = area.right + theme.px(30)
        width = surface.get_width() - left - theme.px(30)
        if facts is not None and width > theme.px(160):
            self._small.draw(surface, area.__class__(left, area.y, width, theme.px(SMALL_HEIGHT)), facts.curves)

    @property
    def _chosen(self) -> RunFacts | None:
        return self._facts[self.list.chosen] if self._facts else None

    def _fill(self) -> None:
        self._facts = [facts for facts in self._lookout.facts if facts.folder not in self._without]
        none = READING if self._lookout.reading else NONE if self._choose is None else NO_OTHER
        self.list.items = [self._row(facts) for facts in self._facts] or [Button(none, enabled=False)]

    def _row(self, facts: RunFacts) -> Row:
        row = _row(facts, partial(self._open, facts))
        if self._choose is None and facts.config is not None:
            row.marked, row.on_mark = facts.folder in self._marked, partial(self._mark, facts.folder)
        return row

    def _mark(self, folder: Path, on: bool) -> None:
        self._marked = [each for each in self._marked if each != folder] + [folder] * on

    def _open(self, facts: RunFacts) -> None:
        if self._choose is not None:
            self.app.pop()
            self._choose(facts.folder)
        else:
            from racer_viewer.modes.train.setup import open_run

            open_run(self.app, facts.folder, [each for each in self._marked if each != facts.folder])

    def _resume(self, facts: RunFacts) -> None:
        from racer_viewer.modes.train.setup import resume_run

        if facts.learning:
            self.app.notify("It is learning already: Enter brings it back")
        elif facts.config is not None and facts.is_finished:
            self.app.push(MoreStepsScreen(self.app, facts.folder, facts.steps, facts.config.timesteps))
        else:
            resume_run(self.app, facts.folder)

    def _ask(self, facts: RunFacts) -> None:
        def delete() -> None:
            self.app.pop()
            self._mark(facts.folder, False)
            self._do_behind(f"Deleting {facts.folder.name}", partial(_delete, facts.folder))

        if facts.learning:
            self.app.notify("It is still learning: stop it first")
            return
        text = f"{facts.folder} is removed, with all its models. It cannot be brought back."
        items = [Button("Keep it", on_press=self.app.pop), Button("Delete", on_press=delete)]
        self.app.push(MessageScreen(self.app, "Delete this run?", text, items))

    def _do_behind(self, words: str, work: Callable[[], str]) -> None:
        """One thing at a time; what came of it is said at the end."""
        if self._work is not None:
            self.app.notify(f"{self._working} first")
            return
        self._working, self._work = words, BackgroundTask(work, "racer-work-on-run")
        self.app.notify(f"{words} ...")

    def _look_at_work(self) -> None:
        if self._work is None:
            return
        if not self._work.done:
            self.app.notify(f"{self._working} ...")
            return
        work, self._work = self._work, None
        try:
            self.app.notify(work.result())
        except (RacerError, OSError, ImportError) as error:
            self.app.notify(str(error))
        self._lookout.start()


def _export(folder: Path, exports: Path) -> str:
    """The best model of a run, as something to give away."""
    from racer_viewer.training.export import share

    exports.mkdir(parents=True, exist_ok=True)
    return f"Exported as {share(folder / f'{folder.name}_best.zip', exports / f'{folder.name}.zip')}"


def _delete(folder: Path) -> str:
    if running_learner(folder) is not None:
        raise RacerError(f"{folder.name} is still learning: stop it first")
    remove_run(folder)
    return f"{folder.name} is deleted"


def _row(facts: RunFacts, do: Callable[[], None]) -> Row:
    if facts.config is None:
        return Row(facts.folder.name, facts.problem, cells=("", "cannot be read", "", "", ""), on_press=do)
    config, curves = facts.config, facts.curves
    several = len(config.circuits) > 1
    circuit = f"{len(config.circuits)} circuits" if several else config.tracks[0]
    fastest = "–" if not len(curves.laps) else PER_CIRCUIT if several else f"{curves.laps[:, 1].min():.2f}"
    date = f"{datetime.fromtimestamp(facts.changed):%Y-%m-%d}"
    cells = (config.algo.upper(), circuit, f"{facts.steps:,}", fastest, date)
    hints = (LEARNING if facts.learning else "", best_policy(curves), fastest_laps(curves) if several else "")
    return Row(facts.folder.name, "; ".join(filter(None, hints)), cells=cells, on_press=do)
