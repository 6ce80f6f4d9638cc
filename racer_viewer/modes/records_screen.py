"""Records: the best laps on every circuit, each of them a drive that can be seen again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from racer_env.errors import RacerError
from racer_viewer.modes.choose import CircuitChooser
from racer_viewer.modes.loading import open_safely
from racer_viewer.modes.message import MessageScreen
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.screen import MENU_KEYS, Key, Stage
from racer_viewer.records import Entry
from racer_viewer.render.overlays import lap_time
from racer_viewer.replays import trace_replay
from racer_viewer.ui.intents import Do, Intent
from racer_viewer.ui.items import Button, Item


class RecordsScreen(CircuitChooser):
    """The ten best of the chosen circuit; Enter shows one, Delete takes it out."""

    title = "Records"

    def __init__(self, app: Stage) -> None:
        super().__init__(app)
        tell = self._chosen_circuit.changed

        def changed(number: int) -> None:
            tell(number)
            self._fill()

        self._chosen_circuit.changed = changed
        self._entries: Sequence[Entry] = ()
        self._fill()

    def keys(self) -> Sequence[Key]:
        return (*MENU_KEYS[:4], ("Delete", "take out"))

    def handle(self, intent: Intent) -> None:
        entry = self._entry()
        if intent == Do.DELETE and entry is not None:
            self._ask(entry)
        else:
            super().handle(intent)

    def _fill(self) -> None:
        try:
            self._entries = self.app.records.top(self.circuit)
            nothing = "No record yet: drive a lap"
        except (RacerError, OSError) as error:
            self._entries, nothing = (), str(error)
        if self.app.records.notice:
            self.app.say(self.app.records.notice)
        lines: list[Item] = [
            _line(place, entry, partial(self._open, entry)) for place, entry in enumerate(self._entries, 1)
        ]
        self.list.items = [self._chosen_circuit, *(lines or [Button(nothing, enabled=False)])]

    def _entry(self) -> Entry | None:
        number = self.list.chosen - 1
        return self._entries[number] if 0 <= number < len(self._entries) else None

    def _open(self, entry: Entry) -> None:
        open_safely(self.app, lambda: ReplayScreen(self.app, trace_replay(self.app.records.replay_of(entry))))

    def _ask(self, entry: Entry) -> None:
        def delete() -> None:
            self.app.records.delete(entry)
            self.app.pop()
            self._fill()

        self.app.push(
            MessageScreen(
                self.app,
                "Take this record out?",
                f"{lap_time(entry.best_lap)} s by {entry.driver} on {entry.circuit_name}. It cannot be brought back.",
                [Button("Keep it", do=self.app.pop), Button("Take it out", do=delete)],
            )
        )


def _line(place: int, entry: Entry, do: Callable[[], None]) -> Button:
    clean = "clean" if entry.clean else "not clean"
    hint = f"{entry.laps} laps, best lap {clean}, {entry.date.astimezone():%Y-%m-%d %H:%M}; Enter to see it"
    return Button(f"{place}.  {entry.driver}", hint, do=do, note=f"{lap_time(entry.best_lap)} s")
