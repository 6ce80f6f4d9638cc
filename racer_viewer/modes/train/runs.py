"""The list of all training runs, to open, compare, resume, export and delete them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from racer_env.engine import circuit_name
from racer_env.errors import RacerError, in_one_line
from racer_viewer.modes.screen import MENU_KEYS, AppContext, MessageScreen, Screen
from racer_viewer.modes.train.end import MoreStepsScreen
from racer_viewer.modes.train.run_facts import RunFacts, RunScanner, best_policy, fastest_laps
from racer_viewer.modes.waiting import BackgroundTask
from racer_viewer.render.plots import Sparkline
from racer_viewer.training.run_folder import remove_run
from racer_viewer.training.run_lock import running_learner
from racer_viewer.translation import _, grouped, mark
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.item_list import Button, Column, Row
from racer_viewer.ui.views import Key, ListView, translated

if TYPE_CHECKING:
    import pygame

COLUMNS = (
    Column(mark("run"), 0.30),
    Column(mark("algorithm"), 0.13),
    Column(mark("circuit"), 0.17),
    Column(mark("steps"), 0.14, right=True),
    Column(mark("fastest lap"), 0.12, right=True),
    Column(mark("date"), 0.14, right=True),
)
NO_RUN, NO_OTHER_RUN, READING = (
    mark("No runs yet: start one with Train"),
    mark("No other run to compare with"),
    mark("Loading runs"),
)
LEARNING = mark("training now: press Enter to open it")
PER_CIRCUIT = mark("several")
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
            _("Runs"),
            columns=COLUMNS,
            subtitle=_("Saved in {folder}").format(folder=self._scanner.folder),
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
            return (*translated(MENU_KEYS[:1]), ("Enter", _("compare with it")), *translated(MENU_KEYS[3:4]))
        key = self.app.key_label
        return (
            *translated(MENU_KEYS[:1]),
            ("Left Right", _("mark to compare")),
            ("Enter", _("open")),
            (key(Command.RESTART), _("resume")),
            (key(Command.KEEP), _("export")),
            ("Delete", _("delete")),
            *translated(MENU_KEYS[3:4]),
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
                _("Exporting {name}").format(name=facts.folder.name),
                partial(export_best, facts.folder, self.app.data / "exports"),
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
        self.list.items = [self._row(facts) for facts in self._facts] or [Button(_(empty), enabled=False)]

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
            self.app.notify(_("This run is training already: press Enter to open it"))
        elif facts.config is not None and facts.is_finished:
            self.app.push(MoreStepsScreen(self.app, facts.folder, facts.steps, facts.config.timesteps))
        else:
            resume_run(self.app, facts.folder)

    def _confirm_delete(self, facts: RunFacts) -> None:
        def delete() -> None:
            self.app.pop()
            self._mark(facts.folder, False)
            self._start_task(_("Deleting {name}").format(name=facts.folder.name), partial(_delete, facts.folder))

        if facts.learning:
            self.app.notify(_("This run is still training: stop it first"))
            return
        text = _("{folder} and all its models are deleted. This cannot be undone.").format(folder=facts.folder)
        items = [Button(_("Cancel"), on_press=self.app.pop), Button(_("Delete"), on_press=delete)]
        self.app.push(MessageScreen(self.app, _("Delete this run?"), text, items))

    def _start_task(self, text: str, task: Callable[[], str]) -> None:
        """Start a task in the background, one at a time; its result is shown as a notice."""
        if self._task is not None:
            self.app.notify(_("{task}: wait until it is done").format(task=self._task_text))
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
            self.app.notify(in_one_line(error))
        self._scanner.start()


def export_best(folder: Path, exports: Path) -> str:
    """Export the best model of a run as one file to share; return a notice."""
    from racer_viewer.training.export import share

    exports.mkdir(parents=True, exist_ok=True)
    return _("Exported as {path}").format(
        path=share(folder / f"{folder.name}_best.zip", exports / f"{folder.name}.zip")
    )


def _delete(folder: Path) -> str:
    """Delete a run; return a notice."""
    if running_learner(folder) is not None:
        raise RacerError(f"{folder.name} is still training: stop it first")
    remove_run(folder)
    return _("Deleted {name}").format(name=folder.name)


def _row(facts: RunFacts, on_press: Callable[[], None]) -> Row:
    if facts.config is None:
        return Row(facts.folder.name, facts.problem, cells=("", _("cannot be read"), "", "", ""), on_press=on_press)
    config, curves = facts.config, facts.curves
    several = len(config.circuits) > 1
    circuit = _("{count} circuits").format(count=len(config.circuits)) if several else circuit_name(config.tracks[0])
    fastest = "–" if not len(curves.laps) else _(PER_CIRCUIT) if several else f"{curves.laps[:, 1].min():.2f}"
    cells = (config.algo.upper(), circuit, grouped(f"{facts.steps:,}"), fastest, _date(facts.changed))
    damage = (
        _("damaged: {damaged:,} lines of its log cannot be read").format(damaged=curves.damaged)
        if curves.damaged
        else ""
    )
    hints = (
        damage,
        _(LEARNING) if facts.learning else "",
        best_policy(curves),
        fastest_laps(curves) if several else "",
    )
    return Row(facts.folder.name, "; ".join(filter(None, hints)), cells=cells, on_press=on_press)


def _date(seconds: float) -> str:
    """Return the date of a time in seconds since 1970; a file may have any."""
    try:
        return f"{datetime.fromtimestamp(seconds):%Y-%m-%d}"
    except (ValueError, OverflowError, OSError):
        return "–"
