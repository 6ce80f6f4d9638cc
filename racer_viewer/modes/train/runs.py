"""The list of all training runs, to open, compare, resume, export and delete them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from racer_env.errors import RacerError
from racer_viewer.modes.screen import MENU_KEYS, AppContext, MessageScreen, Screen
from racer_viewer.modes.train.end import MoreStepsScreen
from racer_viewer.modes.train.run_facts import RunFacts, RunScanner, best_policy, fastest_laps
from racer_viewer.modes.waiting import BackgroundTask
from racer_viewer.render.plots import Sparkline
from racer_viewer.training.run_folder import remove_run
from racer_viewer.training.run_lock import running_learner
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.item_list import Button, Column, Row
from racer_viewer.ui.views import Key, ListView

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
NO_RUN, NO_OTHER_RUN, READING = "No runs yet: Train starts one", "No other run to compare with", "Reading runs"
LEARNING = "learning now: Enter opens it"
PER_CIRCUIT = "several"
"""Text instead of a fastest lap, where the hint has one for every circuit."""
CURVE_HEIGHT = 200
"""Height of the curve of the selected run, at scale 1 [px]."""


class RunsScreen(Screen):
    """Training runs, newest first.

    choose: called with the folder of the run that Enter chooses; by default Enter opens it.
    without: folders that are not listed.
    """

    def __init__(
        self, app: AppContext, choose: Callable[[Path], None] | None = None, without: Collection[Path] = ()
    ) -> None:
        self._scanner, self._seen = RunScanner(app.data / "runs"), -1
        view = ListView(
            "Runs",
            columns=COLUMNS,
            subtitle=f"Saved in {self._scanner.folder}",
            width=780,
            draw_beside=self._draw_curve,
        )
        super().__init__(app, view)
        self._choose, self._without = choose, set(without)
        self._facts: list[RunFacts] = []
        self._marked: list[Path] = []
        self._curve = Sparkline(app.theme)
        self._task: BackgroundTask[str] | None = None
        self._task_text = ""
        self._fill()

    @property
    def reading(self) -> bool:
        """True while there are runs that are not in the list yet."""
        return self._scanner.reading or self._seen != self._scanner.changes

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
            self._confirm_delete(facts)
        elif intent == Command.RESTART:
            self._resume(facts)
        elif intent == Command.KEEP:
            self._start_task(
                f"Exporting {facts.folder.name}", partial(export_best, facts.folder, self.app.data / "exports")
            )
        else:
            super().handle(intent)

    def on_show(self) -> None:
        self._scanner.start()

    def on_cover(self) -> None:
        self._scanner.stop()

    def on_close(self) -> None:
        self._scanner.stop()

    def tick(self, controls: Controls) -> None:
        if self._seen != self._scanner.changes or not self._facts:
            self._seen = self._scanner.changes
            self._fill()
        self._check_task()

    def _draw_curve(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        facts, theme = self._chosen, self.app.theme
        if self._curve.theme is not theme:
            self._curve = Sparkline(theme)
        left = area.right + theme.px(30)
        width = surface.get_width() - left - theme.px(30)
        if facts is not None and width > theme.px(160):
            self._curve.draw(surface, area.__class__(left, area.y, width, theme.px(CURVE_HEIGHT)), facts.curves)

    @property
    def _chosen(self) -> RunFacts | None:
        return self._facts[self.list.chosen] if self._facts else None

    def _fill(self) -> None:
        self._facts = [facts for facts in self._scanner.facts if facts.folder not in self._without]
        empty = READING if self._scanner.reading else NO_RUN if self._choose is None else NO_OTHER_RUN
        self.list.items = [self._row(facts) for facts in self._facts] or [Button(empty, enabled=False)]

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
            self.app.notify("This run is learning already: Enter opens it")
        elif facts.config is not None and facts.is_finished:
            self.app.push(MoreStepsScreen(self.app, facts.folder, facts.steps, facts.config.timesteps))
        else:
            resume_run(self.app, facts.folder)

    def _confirm_delete(self, facts: RunFacts) -> None:
        def delete() -> None:
            self.app.pop()
            self._mark(facts.folder, False)
            self._start_task(f"Deleting {facts.folder.name}", partial(_delete, facts.folder))

        if facts.learning:
            self.app.notify("This run is still learning: stop it first")
            return
        text = f"{facts.folder} and all its models are deleted. This cannot be undone."
        items = [Button("Cancel", on_press=self.app.pop), Button("Delete", on_press=delete)]
        self.app.push(MessageScreen(self.app, "Delete this run?", text, items))

    def _start_task(self, text: str, task: Callable[[], str]) -> None:
        """Start a task in the background, one at a time; its result is shown as a notice."""
        if self._task is not None:
            self.app.notify(f"{self._task_text}: wait until it is done")
            return
        self._task_text, self._task = text, BackgroundTask(task, "racer-run-task")
        self.app.notify(f"{text} ...")

    def _check_task(self) -> None:
        if self._task is None:
            return
        if not self._task.done:
            self.app.notify(f"{self._task_text} ...")
            return
        task, self._task = self._task, None
        try:
            self.app.notify(task.result())
        except (RacerError, OSError, ImportError) as error:
            self.app.notify(str(error))
        self._scanner.start()


def export_best(folder: Path, exports: Path) -> str:
    """Export the best model of a run as one file to share; return a notice."""
    from racer_viewer.training.export import share

    exports.mkdir(parents=True, exist_ok=True)
    return f"Exported as {share(folder / f'{folder.name}_best.zip', exports / f'{folder.name}.zip')}"


def _delete(folder: Path) -> str:
    """Delete a run; return a notice."""
    if running_learner(folder) is not None:
        raise RacerError(f"{folder.name} is still learning: stop it first")
    remove_run(folder)
    return f"Deleted {folder.name}"


def _row(facts: RunFacts, on_press: Callable[[], None]) -> Row:
    if facts.config is None:
        return Row(facts.folder.name, facts.problem, cells=("", "cannot be read", "", "", ""), on_press=on_press)
    config, curves = facts.config, facts.curves
    several = len(config.circuits) > 1
    circuit = f"{len(config.circuits)} circuits" if several else config.tracks[0]
    fastest = "–" if not len(curves.laps) else PER_CIRCUIT if several else f"{curves.laps[:, 1].min():.2f}"
    date = f"{datetime.fromtimestamp(facts.changed):%Y-%m-%d}"
    cells = (config.algo.upper(), circuit, f"{facts.steps:,}", fastest, date)
    hints = (LEARNING if facts.learning else "", best_policy(curves), fastest_laps(curves) if several else "")
    return Row(facts.folder.name, "; ".join(filter(None, hints)), cells=cells, on_press=on_press)
