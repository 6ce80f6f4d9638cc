"""Settings: changed at once, remembered at once."""

from __future__ import annotations

from functools import partial

from racer_viewer.modes.screen import AppContext, ListScreen, MessageScreen
from racer_viewer.settings import FRAME_LIMITS, UNITS, Settings
from racer_viewer.ui.bindings import BINDING_LABELS, DEFAULT_BINDINGS, key_name, rebind
from racer_viewer.ui.intents import Click, Controls, Intent, KeyPress, TextInput
from racer_viewer.ui.item_list import Button, Choice, Item, Slider, toggle


class SettingsScreen(ListScreen):
    title = "Settings"

    def __init__(self, app: AppContext) -> None:
        super().__init__(app, _items(app))

    def on_show(self) -> None:
        self.list.items = _items(self.app)


def _items(app: AppContext) -> list[Item]:
    now = app.settings
    limits = [f"{limit} fps" if limit else "none" for limit in FRAME_LIMITS]
    return [
        Slider(
            "Volume", "M turns the sound off and on", high=1.0, step=0.05, number=now.volume, unit="%",
            on_change=lambda number: app.change(volume=number),
        ),
        Choice(
            "Speed in", options=UNITS, chosen=UNITS.index(now.units),
            on_change=lambda number: app.change(units=UNITS[number]),
        ),
        Slider(
            "Size of letters and panels", low=0.6, high=2.0, step=0.1, number=now.ui_scale, unit="%",
            on_change=lambda number: app.change(ui_scale=number),
        ),
        toggle(
            "Colours for colour-blind eyes", now.colour_blind, lambda on: app.change(colour_blind=on),
            "Blue and orange instead of green and red",
        ),
        Choice(
            "Frame limit", "Cars always move in 60 ticks a second: a lap time does not depend on this",
            options=limits, chosen=FRAME_LIMITS.index(now.frame_limit) if now.frame_limit in FRAME_LIMITS else 1,
            on_change=lambda number: app.change(frame_limit=FRAME_LIMITS[number]),
        ),
        Button("Your name", "For records and replays", on_press=lambda: app.push(NameScreen(app)), note=now.name),
        toggle("Full screen", now.full_screen, lambda on: app.change(full_screen=on), "F11, anywhere"),
        Button("Keys", "Choose the keys for driving and for what is shown", on_press=lambda: app.push(KeysScreen(app))),
        Button("Back to the defaults", "All settings but your keys", on_press=lambda: _to_defaults(app)),
    ]  # fmt: skip


def _to_defaults(app: AppContext) -> None:
    fresh = Settings(bindings=app.settings.bindings, window=app.settings.window)
    app.change(**{name: getattr(fresh, name) for name in fresh.__struct_fields__})
    app.notify("All settings are as they were at first")
    if app.top is not None:
        app.top.on_show()


LONGEST_NAME = 20


class NameScreen(MessageScreen):
    """Type a name, press Enter. Esc leaves it as it was."""

    typing = True

    def __init__(self, app: AppContext) -> None:
        super().__init__(app, "Your name", "", [Button("OK", on_press=self._accept)])
        self._name = app.settings.name
        self._show()

    def handle(self, intent: Intent) -> None:
        match intent:
            case TextInput(text):
                self._name = (self._name + "".join(each for each in text if each.isprintable()))[:LONGEST_NAME]
            case KeyPress("backspace"):
                self._name = self._name[:-1]
            case KeyPress("escape"):
                self.app.pop()
            case KeyPress("return" | "enter") | Click():
                self._accept()
            case _:
                return
        self._show()

    def _show(self) -> None:
        self.text = f"{self._name}|\nIt stands beside your records and replays."

    def _accept(self) -> None:
        self.app.change(name=self._name.strip() or "You")
        self.app.pop()


class KeysScreen(ListScreen):
    """Choose a line, press Enter, press the new key."""

    title = "Keys"

    def __init__(self, app: AppContext) -> None:
        super().__init__(app)
        self._waiting: str | None = None
        self._fill()

    @property
    def subtitle(self) -> str:
        return f"Press the key for: {BINDING_LABELS[self._waiting]} (Esc to leave it)" if self._waiting else ""

    def handle(self, intent: Intent) -> None:
        if self._waiting is None:
            super().handle(intent)
        elif isinstance(intent, KeyPress):
            self._choose(intent.key)

    def tick(self, controls: Controls) -> None:
        self.typing = self._waiting is not None  # not before the next tick: the key itself means something else too

    def _choose(self, key: str) -> None:
        name, self._waiting = self._waiting, None
        assert name is not None
        if key != "escape":
            bindings = rebind(self.app.settings.bindings, name, key)
            if bindings == self.app.settings.bindings and key not in bindings[name]:
                self.app.notify(f"{key_name(key)} always does the same: choose another key")
            self.app.change(bindings=bindings)
        self._fill()

    def _wait(self, name: str) -> None:
        self._waiting, self.typing = name, True

    def _fill(self) -> None:
        bindings = self.app.settings.bindings
        lines: list[Item] = [
            Button(
                label,
                "Enter, then the new key",
                on_press=partial(self._wait, name),
                note=" or ".join(key_name(key) for key in bindings[name]),
            )
            for name, label in BINDING_LABELS.items()
        ]
        self.list.items = [*lines, Button("Back to the defaults", on_press=self._defaults)]

    def _defaults(self) -> None:
        self.app.change(bindings=dict(DEFAULT_BINDINGS))
        self._fill()
