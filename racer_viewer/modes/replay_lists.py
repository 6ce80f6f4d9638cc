"""Lists of records and of saved replays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from racer_env.errors import RacerError, in_one_line, os_reason
from racer_viewer.modes.circuits import CircuitPicker
from racer_viewer.modes.file_browser import FileBrowser
from racer_viewer.modes.replay_screen import open_replays, open_runs
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.render.overlays import lap_time
from racer_viewer.replays import MAX_COMPARED, ReplayFacts, ReplayFolder
from racer_viewer.replays.records import RecordEntry
from racer_viewer.timing import NOT_CLEAN
from racer_viewer.translation import _, mark, ngettext
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.item_list import Button, Column, Item, Row
from racer_viewer.ui.views import Key, ListView, translated

RECORD_COLUMNS = (
    Column(mark("Driver"), 2.2),
    Column(mark("Best lap"), 1.2, right=True),
    Column(mark("Laps"), 0.7, right=True),
    Column(mark("Date"), 1.5, right=True),
)
RECORD_KEYS: tuple[Key, ...] = (
    ("Up Down", mark("choose")),
    ("Left Right", mark("circuit, mark")),
    ("Enter", mark("replay, with marked ones")),
    ("Delete", mark("delete")),
    ("Esc", mark("back")),
)


class RecordsScreen(Screen):
    """The ten best laps on the chosen circuit; Enter replays one together with the marked ones, Delete removes it."""

    def __init__(self, app: AppContext) -> None:
        self.picker = CircuitPicker(app, self._fill)
        super().__init__(app, ListView(_("Records"), columns=RECORD_COLUMNS, width=600, draw_beside=self.picker.draw))
        self._entries: Sequence[RecordEntry] = ()
        self._fill()

    def keys(self) -> Sequence[Key]:
        return translated(RECORD_KEYS)

    def handle(self, intent: Intent) -> None:
        entry = self._entry()
        if intent == Command.DELETE and entry is not None:
            self._confirm_delete(entry)
        else:
            super().handle(intent)

    def refresh(self) -> None:
        self.picker.refresh()
        self._fill()

    def _fill(self) -> None:
        try:
            self._entries = self.app.records.top(self.picker.circuit)
            empty = _("No record yet: drive a lap")
        except (RacerError, OSError) as error:
            self._entries, empty = (), in_one_line(error)
        if self.app.records.notice:
            self.app.notify(self.app.records.notice)
        rows: list[Item] = [self._row(place, entry) for place, entry in enumerate(self._entries, 1)]
        self.list.items = [self.picker.item, *(rows or [Button(empty, enabled=False)])]

    def _row(self, place: int, entry: RecordEntry) -> Row:
        clean = "" if entry.clean else _("; * not clean: left the road or touched a wall, earns no medal")
        laps = ngettext("{laps} lap", "{laps} laps", entry.laps).format(laps=entry.laps)
        date = f"{entry.date.astimezone():%Y-%m-%d %H:%M}"
        hint = _("{laps}, {date}; Enter replays it").format(laps=laps, date=date) + clean
        sign = "" if entry.clean else NOT_CLEAN
        cells = f"{sign}{lap_time(entry.best_lap)} s", str(entry.laps), f"{entry.date.astimezone():%Y-%m-%d}"
        row = Row(f"{place}.  {entry.driver}", hint, cells=cells, on_press=partial(self._open, entry), marked=False)
        row.on_mark = partial(self._mark, row)
        return row

    def _entry(self) -> RecordEntry | None:
        number = self.list.chosen - 1
        return self._entries[number] if 0 <= number < len(self._entries) else None

    def _marked(self) -> list[RecordEntry]:
        rows = [item for item in self.list.items if isinstance(item, Row)]
        return [entry for entry, row in zip(self._entries, rows, strict=True) if row.marked]

    def _mark(self, row: Row, on: bool) -> None:
        if len(self._marked()) > MAX_COMPARED:
            row.marked = False
            self.app.notify(_("At most {limit} at a time").format(limit=MAX_COMPARED))

    def _open(self, entry: RecordEntry) -> None:
        """Replay this record together with the marked ones."""
        entries = [entry, *(other for other in self._marked() if other != entry)]
        open_runs(self.app, lambda: [self.app.records.replay_of(each) for each in entries])

    def _confirm_delete(self, entry: RecordEntry) -> None:
        def delete() -> None:
            self.app.records.delete(entry)
            self.app.pop()
            self._fill()

        self.app.push(
            MessageScreen(
                self.app,
                _("Delete this record?"),
                _("{lap} s by {driver} on {circuit}. This cannot be undone.").format(
                    lap=lap_time(entry.best_lap), driver=entry.driver, circuit=entry.circuit_name
                ),
                [Button(_("Cancel"), on_press=self.app.pop), Button(_("Delete"), on_press=delete)],
            )
        )


REPLAY_COLUMNS = (
    Column(mark("Circuit"), 2.2),
    Column(mark("Driver"), 2.6),
    Column(mark("Best lap"), 1.1, right=True),
    Column(mark("Laps"), 0.7, right=True),
    Column(mark("Length"), 1.1, right=True),
    Column(mark("Date"), 1.8, right=True),
)
READING_TIME = 0.004
"""Time budget for reading files per tick [s]."""
NONE = "–"
REPLAY_KEYS: tuple[Key, ...] = (
    ("Up Down", mark("choose")),
    ("Left Right", mark("mark")),
    ("Enter", mark("watch, with marked ones")),
    ("Delete", mark("delete")),
    ("Esc", mark("back")),
    ("F1", mark("help")),
)


class ReplaysScreen(Screen):
    """Replay files, newest first. They are read while the list is shown, a few in each tick."""

    def __init__(self, app: AppContext) -> None:
        super().__init__(app, ListView(_("Replays"), columns=REPLAY_COLUMNS, subtitle=self._subtitle, width=0))
        self._folder = ReplayFolder(app.data / "replays")
        self._marked: list[Path] = []
        self._rows: dict[Path, Row] = {}
        self._fill()

    def _subtitle(self) -> str:
        if self._marked:
            return _("{count} marked: Enter plays them together").format(count=len(self._marked))
        return _("Saved in {folder}").format(folder=self._folder.folder)

    def keys(self) -> Sequence[Key]:
        return translated(REPLAY_KEYS if self._rows else REPLAY_KEYS[-2:])

    def refresh(self) -> None:
        self._folder.refresh()
        self._fill()

    def handle(self, intent: Intent) -> None:
        path = self._path()
        if intent == Command.DELETE and path is not None:
            self._confirm_delete(path)
        else:
            super().handle(intent)

    def tick(self, controls: Controls) -> None:
        for path in self._folder.read_some(READING_TIME):
            self._describe(path)

    def _fill(self) -> None:
        paths = self._folder.paths
        self._rows = {path: self._rows.get(path, Row(path.stem)) for path in paths}
        self._marked = [path for path in self._marked if path in self._rows]
        for path in paths:
            self._describe(path)
        key = self.app.key_label(Command.KEEP)
        text = _("No replays yet: choose Save replay after a race, or press {key} while you watch").format(key=key)
        empty: Sequence[Item] = [Button(text, enabled=False)]
        browse = Button(_("Open file..."), _("A replay (.racer) from any folder"), on_press=self._browse)
        self.list.items = [*(list(self._rows.values()) or empty), browse]

    def _browse(self) -> None:
        def play(path: Path) -> None:
            open_replays(self.app, [path])

        self.app.push(FileBrowser(self.app, _("Open a replay"), (".racer",), play))

    def _describe(self, path: Path) -> None:
        """Fill the row of a file with what is known so far."""
        row, facts = self._rows[path], self._folder.facts(path)
        row.on_press, row.on_mark = partial(self._open, path), partial(self._mark, path)
        row.marked = path in self._marked if isinstance(facts, ReplayFacts) else None
        row.hint = path.name
        if isinstance(facts, ReplayFacts):
            row.label, row.cells = facts.circuit, _cells(facts)
            row.hint = f"{path.name}: {facts.engine_warning}" if facts.engine_warning else path.name
        elif facts is not None:
            row.label, row.cells, row.hint = path.name, (facts,), f"{path.name}: {facts}"

    def _path(self) -> Path | None:
        """Return the path of the selected file."""
        return next((path for path, row in self._rows.items() if row is self.list.item), None)

    def _mark(self, path: Path, on: bool) -> None:
        if not on:
            self._marked.remove(path)
        elif len(self._marked) < MAX_COMPARED:
            self._marked.append(path)
        else:
            self._rows[path].marked = False
            self.app.notify(_("At most {limit} at a time").format(limit=MAX_COMPARED))

    def _open(self, path: Path) -> None:
        """Open this replay together with the marked ones."""
        open_replays(self.app, [path, *(other for other in self._marked if other != path)])

    def _confirm_delete(self, path: Path) -> None:
        def delete() -> None:
            self.app.pop()
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                self.app.notify(_("{path} cannot be deleted: {reason}").format(path=path, reason=os_reason(error)))
            self.refresh()

        text = _("{path}\nThis cannot be undone.").format(path=path)
        buttons = [Button(_("Cancel"), on_press=self.app.pop), Button(_("Delete"), on_press=delete)]
        self.app.push(MessageScreen(self.app, _("Delete this replay?"), text, buttons))


def _cells(facts: ReplayFacts) -> tuple[str, ...]:
    return (
        facts.driver or _("Unknown"),
        NONE if facts.best_lap is None else lap_time(facts.best_lap),
        str(facts.laps),
        lap_time(facts.ticks),
        f"{facts.date.astimezone():%Y-%m-%d %H:%M}",
    )
