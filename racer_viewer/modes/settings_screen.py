"""Settings screens: general settings, the player's name and the keys. Changes apply and are saved at once."""

from __future__ import annotations

from functools import partial

from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.settings import FRAME_LIMITS, UNITS, Settings
from racer_viewer.ui.bindings import BINDING_LABELS, DEFAULT_BINDINGS, key_name, rebind
from racer_viewer.ui.intents import Click, Controls, Intent, KeyPress, TextInput
from racer_viewer.ui.item_list import Button, Choice, Item, Slider, toggle
from racer_viewer.ui.views import ListView, MessageView

MAX_NAME_LENGTH = 20


class SettingsScreen(Screen):
    """All settings but the keys, which have a screen of their own."""

    def __init__(self, app: AppContext) -> None:
        super().__init__(app, ListView("Settings", _items(app)))

    def refresh(self) -> None:
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
            "Speed unit", options=UNITS, chosen=UNITS.index(now.units),
            on_change=lambda number: app.change(units=UNITS[number]),
        ),
        Slider(
            "Size of text and panels", low=0.6, high=2.0, step=0.1, number=now.ui_scale, unit="%",
            on_change=lambda number: app.change(ui_scale=number),
        ),
        toggle(
            "Colour-blind palette", now.colour_blind, lambda on: app.change(colour_blind=on),
            "Blue and orange instead of green and red",
        ),
        Choice(
            "Frame limit", "Cars always move at 60 ticks per second: lap times do not depend on this",
            options=limits, chosen=FRAME_LIMITS.index(now.frame_limit) if now.frame_limit in FRAME_LIMITS else 1,
            on_change=lambda number: app.change(frame_limit=FRAME_LIMITS[number]),
        ),
        Button("Your name", "For records and replays", on_press=lambda: app.push(NameScreen(app)), note=now.name),
        toggle("Full screen", now.full_screen, lambda on: app.change(full_screen=on), "F11 does the same anywhere"),
        Button("Keys", "Choose the keys for driving and for overlays", on_press=lambda: app.push(KeysScreen(app))),
        Button("Reset to defaults", "All settings except the keys", on_press=lambda: _reset(app)),
    ]  # fmt: skip


def _reset(app: AppContext) -> None:
    fresh = Settings(bindings=app.settings.bindings, window=app.settings.window)
    app.change(**{name: getattr(fresh, name) for name in fresh.__struct_fields__})
    app.notify("All settings are back to their defaults")
    if app.top is not None:
        app.top.refresh()


class NameScreen(Screen):
    """Input of the player's name: Enter accepts it, Esc discards it."""

    typing = True

    def __init__(self, app: AppContext) -> None:
        self._message = MessageView("Your name", "", [Button("OK", on_press=self._accept)])
        super().__init__(app, self._message)
        self._name = app.settings.name
        self._update_text()

    def handle(self, intent: Intent) -> None:
        match intent:
            case TextInput(text):
                self._name = (self._name + "".join(each for each in text if each.isprintable()))[:MAX_NAME_LENGTH]
            case KeyPress("backspace"):
                self._name = self._name[:-1]
            case KeyPress("escape"):
                self.app.pop()
            case KeyPress("return" | "enter") | Click():
                self._accept()
            case _:
                return
        self._update_text()

    def _update_text(self) -> None:
        self._message.text = f"{self._name}|\nYour records and replays carry this name."

    def _accept(self) -> None:
        self.app.change(name=self._name.strip() or "You")
        self.app.pop()


class KeysScreen(Screen):
    """Key bindings: Enter on a line, then the new key."""

    def __init__(self, app: AppContext) -> None:
        super().__init__(app, ListView("Keys", subtitle=self._prompt))
        self._waiting: str | None = None
        """Control or command that the next key is for."""
        self._fill()

    def _prompt(self) -> str:
        return f"Press the key for: {BINDING_LABELS[self._waiting]} (Esc cancels)" if self._waiting else ""

    def handle(self, intent: Intent) -> None:
        if self._waiting is None:
            super().handle(intent)
        elif isinstance(intent, KeyPress):
            self._choose(intent.key)

    def tick(self, controls: Controls) -> None:
        self.typing = self._waiting is not None  # not before the next tick: the key press gives commands too

    def _choose(self, key: str) -> None:
        name, self._waiting = self._waiting, None
        assert name is not None
        if key != "escape":
            bindings = rebind(self.app.settings.bindings, name, key)
            if bindings == self.app.settings.bindings and key not in bindings[name]:
                self.app.notify(f"{key_name(key)} cannot be changed: choose another key")
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
        self.list.items = [*lines, Button("Reset to defaults", on_press=self._reset)]

    def _reset(self) -> None:
        self.app.change(bindings=dict(DEFAULT_BINDINGS))
        self._fill()
