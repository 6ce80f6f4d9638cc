"""Runs: all that was learned here, with the curve of each."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from racer_env.errors import RacerError
from racer_viewer.curves import Curves
from racer_viewer.modes.lists import ListScreen
from racer_viewer.modes.message import MessageScreen
from racer_viewer.modes.screen import MENU_KEYS, Key, Stage
from racer_viewer.render.plots import SmallCurve
from racer_viewer.training.config import RunConfig, load_run_config
from racer_viewer.training.live import load_curves, running_learner
from racer_viewer.ui.intents import Controls, Do, Intent
from racer_viewer.ui.item_list import Column
from racer_viewer.ui.items import Button, Row

if TYPE_CHECKING:
    import pygame

COLUMNS = (
    Column("run", 0.30),
    Column("algorithm", 0.13),
    Column("circuit", 0.17),
    Column("steps", 0.14, right=True),
    Column("best lap", 0.12, right=True),
    Column("date", 0.14, right=True),
)
NONE = "None yet: Train starts one"
SMALL_HEIGHT = 200
"""Of the curve of the chosen run, at scale 1 [px]."""


@dataclass(frozen=True, eq=False)
class RunFacts:
    """What is known of a run, or (problem) why nothing is."""

    folder: Path
    config: RunConfig | None
    curves: Curves
    learning: bool
    changed: float
    problem: str = ""


class RunsScreen(ListScreen):
    """Newest first. Enter opens one; with `choose` it is given to whoever asked instead."""

    title = "Runs"
    list_width = 780

    def __init__(self, app: Stage, choose: Callable[[Path], None] | None = None) -> None:
        super().__init__(app)
        self._choose = choose
        self._folder = app.data / "runs"
        self._facts: list[RunFacts] = []
        self._marked: list[Path] = []
        self._small = SmallCurve(app.theme)
        self._unread = self._folders()
        self.list.columns = COLUMNS
        self.list.items = [Button(NONE, enabled=False)]

    @property
    def subtitle(self) -> str:
        return f"Kept in {self._folder}"

    def keys(self) -> Sequence[Key]:
        if self._choose is not None:
            return (MENU_KEYS[0], ("Enter", "compare with it"), MENU_KEYS[3])
        key = self.app.key_of
        return (
            MENU_KEYS[0],
            ("Left Right", "mark to compare"),
            ("Enter", "open"),
            (key(Do.RESTART), "resume"),
            (key(Do.KEEP), "export"),
            ("Delete", "delete"),
            MENU_KEYS[3],
        )

    def handle(self, intent: Intent) -> None:
        facts = self._chosen
        if facts is None or self._choose is not None:
            super().handle(intent)
        elif intent == Do.DELETE:
            self._ask(facts)
        elif intent == Do.RESTART:
            self._resume(facts)
        elif intent == Do.KEEP:
            self._export(facts)
        else:
            super().handle(intent)

    def shown(self) -> None:
        """Whoever was on top may have begun or ended some."""
        folders = self._folders()
        if {*folders} != {*self._unread, *(facts.folder for facts in self._facts)}:
            self._facts, self._unread = [], folders
            self._fill()

    def tick(self, controls: Controls) -> None:
        """One run is read in each tick: there may be many."""
        if self._unread:
            self._facts.append(_facts_of(self._unread.pop(0)))
            self._fill()

    def draw_beside(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        facts, theme = self._chosen, self.app.theme
        left = area.right + theme.px(30)
        width = surface.get_width() - left - theme.px(30)
        if facts is not None and width > theme.px(160):
            self._small.draw(surface, area.__class__(left, area.y, width, theme.px(SMALL_HEIGHT)), facts.curves)

    @property
    def _chosen(self) -> RunFacts | None:
        return self._facts[self.list.chosen] if self._facts else None

    def _folders(self) -> list[Path]:
        try:
            folders = [each for each in self._folder.iterdir() if each.is_dir()]
        except OSError:
            return []
        return sorted(folders, key=_changed, reverse=True)

    def _fill(self) -> None:
        self.list.items = [self._row(facts) for facts in self._facts] or [Button(NONE, enabled=False)]

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
            from racer_viewer.modes.train_screen import open_run

            open_run(self.app, facts.folder, [each for each in self._marked if each != facts.folder])

    def _resume(self, facts: RunFacts) -> None:
        from racer_viewer.modes.train_screen import resume_run

        if running_learner(facts.folder) is not None:
            self.app.say("It is learning already: Enter brings it back")
        else:
            resume_run(self.app, facts.folder)

    def _export(self, facts: RunFacts) -> None:
        """The best model of a run, as something to give away."""
        from racer_viewer.training.share import share

        best = facts.folder / f"{facts.folder.name}_best.zip"
        target = self.app.data / "exports" / f"{facts.folder.name}.zip"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            self.app.say(f"Exported as {share(best, target)}")
        except (RacerError, OSError, ImportError) as error:
            self.app.say(str(error))

    def _ask(self, facts: RunFacts) -> None:
        def delete() -> None:
            self.app.pop()
            try:
                shutil.rmtree(facts.folder)
            except OSError as error:
                self.app.say(f"{facts.folder} could not be removed: {error.strerror or error}")
                return
            self._mark(facts.folder, False)
            self.shown()

        if running_learner(facts.folder) is not None:
            self.app.say("It is still learning: stop it first")
            return
        text = f"{facts.folder} is removed, with all its models. It cannot be brought back."
        items = [Button("Keep it", do=self.app.pop), Button("Delete", do=delete)]
        self.app.push(MessageScreen(self.app, "Delete this run?", text, items))


def _changed(folder: Path) -> float:
    """When; a folder that has just gone is the oldest."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _facts_of(folder: Path) -> RunFacts:
    changed = _changed(folder)
    try:
        config = load_run_config(folder / "config.json")
        return RunFacts(folder, config, load_curves(folder), running_learner(folder) is not None, changed)
    except (RacerError, OSError) as error:
        return RunFacts(folder, None, Curves(), False, changed, str(error))


def _row(facts: RunFacts, do: Callable[[], None]) -> Row:
    if facts.config is None:
        return Row(facts.folder.name, facts.problem, cells=("", "cannot be read", "", "", ""), do=do)
    config, curves = facts.config, facts.curves
    circuit = config.tracks[0] if len(config.tracks) == 1 else f"{len(set(config.tracks))} circuits"
    steps = f"{int(curves.steps[-1]):,}" if len(curves.steps) else "0"
    best = f"{curves.laps[:, 1].min():.2f}" if len(curves.laps) else "–"
    cells = (config.algo.upper(), circuit, steps, best, f"{datetime.fromtimestamp(facts.changed):%Y-%m-%d}")
    return Row(facts.folder.name, "learning now: Enter brings it back" if facts.learning else "", cells=cells, do=do)
