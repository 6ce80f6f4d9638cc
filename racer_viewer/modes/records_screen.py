"""Records: the best laps on every circuit; each is a drive that can be replayed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from racer_env.errors import RacerError
from racer_viewer.modes.circuits import CircuitPicker
from racer_viewer.modes.replay_screen import open_runs
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.render.overlays import lap_time
from racer_viewer.replays import MAX_COMPARED
from racer_viewer.replays.records import RecordEntry
from racer_viewer.ui.intents import Command, Intent
from racer_viewer.ui.item_list import Button, Column, Item, Row
from racer_viewer.ui.views import Key, ListView

COLUMNS = (
    Column("Driver", 2.2),
    Column("Best lap", 1.2, right=True),
    Column("Laps", 0.7, right=True),
    Column("Date", 1.5, right=True),
)
KEYS: tuple[Key, ...] = (
    ("Up Down", "choose"),
    ("Left Right", "circuit, mark"),
    ("Enter", "replay, with marked ones"),
    ("Delete", "delete"),
    ("Esc", "back"),
)


class RecordsScreen(Screen):
    """The ten best laps on the chosen circuit; Enter replays one together with the marked ones, Delete removes it."""

    def __init__(self, app: AppContext) -> None:
        self.picker = CircuitPicker(app, self._fill)
        super().__init__(app, ListView("Records", columns=COLUMNS, width=600, draw_beside=self.picker.draw))
        self._entries: Sequence[RecordEntry] = ()
        self._fill()

    def keys(self) -> Sequence[Key]:
        return KEYS

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
            empty = "No record yet: drive a lap"
        except (RacerError, OSError) as error:
            self._entries, empty = (), str(error)
        if self.app.records.notice:
            self.app.notify(self.app.records.notice)
        rows: list[Item] = [self._row(place, entry) for place, entry in enumerate(self._entries, 1)]
        self.list.items = [self.picker.item, *(rows or [Button(empty, enabled=False)])]

    def _row(self, place: int, entry: RecordEntry) -> Row:
        clean = "clean" if entry.clean else "not clean"
        hint = f"{entry.laps} laps, best lap {clean}, {entry.date.astimezone():%Y-%m-%d %H:%M}; Enter replays it"
        cells = f"{lap_time(entry.best_lap)} s", str(entry.laps), f"{entry.date.astimezone():%Y-%m-%d}"
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
            self.app.notify(f"At most {MAX_COMPARED} at a time")

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
                "Delete this record?",
                f"{lap_time(entry.best_lap)} s by {entry.driver} on {entry.circuit_name}. This cannot be undone.",
                [Button("Cancel", on_press=self.app.pop), Button("Delete", on_press=delete)],
            )
        )
