"""The screen on which replays are marked that a new run learns from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from racer_env.errors import RacerError, in_one_line
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.modes.waiting import SHORT_WAIT, BackgroundTask, WaitingScreen
from racer_viewer.render.overlays import lap_time
from racer_viewer.replays import ReplayFacts, ReplayFolder, Trace, load_lessons
from racer_viewer.training.config import MAX_LESSONS
from racer_viewer.translation import _, mark
from racer_viewer.ui.intents import Controls
from racer_viewer.ui.item_list import Button, Column, Item, Row
from racer_viewer.ui.views import Key, ListView, translated

READING_TIME = 0.004
"""Time budget for reading files per tick [s]."""
COLUMNS = (
    Column(mark("Circuit"), 2.2),
    Column(mark("Driver"), 2.2),
    Column(mark("Best lap"), 1.1, right=True),
    Column(mark("Laps"), 0.7, right=True),
)
KEYS: tuple[Key, ...] = (
    ("Up Down", mark("choose")),
    ("Enter", mark("mark")),
    ("Esc", mark("back")),
)

Chosen = Callable[[Sequence[Path], Sequence[Trace]], None]
"""Receives the marked replays, and their drives; nothing to train from scratch."""


class TeachScreen(Screen):
    """Replays with laps, newest first. Enter marks one, and the first item learns from the marked ones."""

    def __init__(self, app: AppContext, marked: Sequence[Path], chosen: Chosen) -> None:
        super().__init__(app, ListView(_("Teach"), columns=COLUMNS, width=700))
        self._folder, self._marked, self._chosen = ReplayFolder(app.data / "replays"), list(marked), chosen
        self._use = Button("", on_press=self._take)
        self._fill()

    def keys(self) -> Sequence[Key]:
        return translated(KEYS)

    def refresh(self) -> None:
        self._folder.refresh()
        self._fill()

    def tick(self, controls: Controls) -> None:
        super().tick(controls)
        if self._folder.read_some(READING_TIME):
            self._fill()

    def _fill(self) -> None:
        self._use.label = _("Use the marked laps") if self._marked else _("Train from scratch")
        self._use.hint = _("A policy is cloned from the clean laps; then PPO goes on")
        known = [(path, self._folder.facts(path)) for path in self._folder.paths]
        rows: list[Item] = [
            self._row(path, facts) for path, facts in known if isinstance(facts, ReplayFacts) and facts.laps
        ]
        empty = Button(_("No replay with a finished lap yet: drive, then choose Save replay"), enabled=False)
        self.list.items = [self._use, *(rows or [empty])]

    def _row(self, path: Path, facts: ReplayFacts) -> Row:
        best = f"{lap_time(facts.best_lap)} s" if facts.best_lap else ""
        row = Row(facts.circuit, path.name, cells=(facts.driver, best, str(facts.laps)), marked=path in self._marked)
        row.on_mark = partial(self._mark, path)
        row.on_press = lambda: self._mark(path, path not in self._marked)
        return row

    def _mark(self, path: Path, on: bool) -> None:
        if on and len(self._marked) >= MAX_LESSONS:
            self.app.notify(_("At most {limit} at a time").format(limit=MAX_LESSONS))
        elif on:
            self._marked.append(path)
        else:
            self._marked.remove(path)
        self._fill()

    def _take(self) -> None:
        def taken(lessons: Sequence[Trace]) -> None:
            self._chosen(self._marked, lessons)
            self.app.pop()

        read_lessons(self.app, self._marked, taken)


def read_lessons(app: AppContext, replays: Sequence[Path], taken: Callable[[Sequence[Trace]], None]) -> None:
    """Re-simulate replays in the background and pass their drives on; an error is shown as a notice."""
    task = BackgroundTask(lambda: load_lessons([str(path) for path in replays]), "racer-lessons")

    def finish() -> None:
        try:
            lessons = task.result()
        except (RacerError, OSError) as error:
            app.notify(in_one_line(error))
        else:
            taken(lessons)

    app.push(
        WaitingScreen(
            app,
            _("Reading the laps"),
            lambda: task.done,
            finish,
            cancel=lambda: task.cancel(lambda lessons: None),
            delay=SHORT_WAIT,
        )
    )
