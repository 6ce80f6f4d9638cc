"""Settings screens: general settings, the player's name and the keys. Changes apply and are saved at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.settings import (
    FRAME_LIMITS,
    LANGUAGE_SETTINGS,
    RENDERERS,
    RESOLUTIONS,
    UNITS,
    Settings,
)
from racer_viewer.translation import LANGUAGE_NAMES, _, mark
from racer_viewer.ui.bindings import BINDING_LABELS, DEFAULT_BINDINGS, Bindings, key_name, rebind
from racer_viewer.ui.intents import Click, Controls, Intent, KeyPress, TextInput
from racer_viewer.ui.item_list import Button, Choice, Item, Slider, toggle
from racer_viewer.ui.views import ListView, MessageView

MAX_NAME_LENGTH = 20
"""Maximum length of the player's name [characters]."""
LANGUAGE_LABELS: dict[str, str] = {"system": mark("System"), **LANGUAGE_NAMES}
RESOLUTION_LABELS = {"auto": mark("automatic"), "full": mark("full"), "half": mark("half")}
RENDERER_LABELS = {"auto": mark("automatic"), "software": mark("software"), "gpu": mark("graphics card")}
RESET_HINT = mark("Restores the defaults, except keys and name")


class SettingsScreen(Screen):
    """All settings but the keys, which have a screen of their own."""

    def __init__(self, app: AppContext) -> None:
        super().__init__(app, ListView(_("Settings"), _items(app)))

    def refresh(self) -> None:
        self.list.items = _items(self.app)

    def translate(self) -> None:
        assert self.content is not None
        self.content.title = _("Settings")
        self.refresh()


def _items(app: AppContext) -> list[Item]:
    now = app.settings
    limits = [_("{limit} fps").format(limit=limit) if limit else _("none") for limit in FRAME_LIMITS]
    return [
        Slider(
            _("Volume"),
            _("M turns the sound off and on"),
            high=1.0,
            step=0.05,
            number=now.volume,
            unit="%",
            on_change=lambda number: app.change(volume=number),
        ),
        Choice(
            _("Language"),
            options=[_(LANGUAGE_LABELS[each]) for each in LANGUAGE_SETTINGS],
            chosen=LANGUAGE_SETTINGS.index(now.language),
            on_change=lambda number: app.change(language=LANGUAGE_SETTINGS[number]),
        ),
        Choice(
            _("Speed unit"),
            options=UNITS,
            chosen=UNITS.index(now.units),
            on_change=lambda number: app.change(units=UNITS[number]),
        ),
        Slider(
            _("Interface scale"),
            _("Size of text and panels"),
            low=0.6,
            high=2.0,
            step=0.1,
            number=now.ui_scale,
            unit="%",
            on_change=lambda number: app.change(ui_scale=number),
        ),
        toggle(
            _("Colour-blind palette"),
            now.colour_blind,
            lambda on: app.change(colour_blind=on),
            _("Blue and orange instead of green and red"),
        ),
        Choice(
            _("Frame limit"),
            _("Cars always move at 60 ticks per second: lap times do not depend on this"),
            options=limits,
            chosen=FRAME_LIMITS.index(now.frame_limit) if now.frame_limit in FRAME_LIMITS else 1,
            on_change=lambda number: app.change(frame_limit=FRAME_LIMITS[number]),
        ),
        Choice(
            _("Resolution"),
            _("Automatic is lower in very large windows and where drawing is slow; half is for the ground"),
            options=[_(RESOLUTION_LABELS[each]) for each in RESOLUTIONS],
            chosen=RESOLUTIONS.index(now.resolution),
            on_change=lambda number: app.change(resolution=RESOLUTIONS[number]),
        ),
        Choice(
            _("Renderer"),
            _("In use: {renderer}. A change applies at the next start.").format(
                renderer=_(RENDERER_LABELS[app.renderer])
            ),
            options=[_(RENDERER_LABELS[each]) for each in RENDERERS],
            chosen=RENDERERS.index(now.renderer),
            on_change=lambda number: app.change(renderer=RENDERERS[number]),
        ),
        Button(_("Your name"), _("For records and replays"), on_press=lambda: app.push(NameScreen(app)), note=now.name),
        toggle(
            _("Full screen"), now.full_screen, lambda on: app.change(full_screen=on), _("F11 switches it at any time")
        ),
        Button(
            _("Keys"), _("Choose the keys for driving and for overlays"), on_press=lambda: app.push(KeysScreen(app))
        ),
        Button(_("Reset settings"), _(RESET_HINT), on_press=lambda: _reset(app)),
    ]


def _reset(app: AppContext) -> None:
    now = app.settings
    fresh = Settings(
        bindings=now.bindings, window=now.window, name=now.name, tour=now.tour, tour_part=now.tour_part, raced=now.raced
    )
    app.change(**{name: getattr(fresh, name) for name in fresh.__struct_fields__})
    app.notify(_("Settings reset to defaults. Keys and name are unchanged."))
    if app.top is not None:
        app.top.refresh()


class NameScreen(Screen):
    """Input of the player's name: Enter accepts it, Esc discards it."""

    typing = True

    def __init__(self, app: AppContext) -> None:
        self._message = MessageView(_("Your name"), "", [Button(_("OK"), on_press=self._accept)])
        super().__init__(app, self._message)
        self._name = app.settings.name
        self._untouched = True
        """True until the first key; the first letter then replaces the name."""
        self._update_text()

    def handle(self, intent: Intent) -> None:
        match intent:
            case TextInput(text):
                before = "" if self._untouched else self._name
                name = before + "".join(each for each in text if each.isprintable())
                self._name, self._untouched = name[:MAX_NAME_LENGTH], False
                if len(name) > MAX_NAME_LENGTH:
                    self.app.notify(_("A name has at most {limit} characters").format(limit=MAX_NAME_LENGTH))
            case KeyPress("backspace"):
                self._name, self._untouched = self._name[:-1], False
            case KeyPress("escape"):
                self.app.pop()
            case KeyPress("return" | "enter") | Click():
                self._accept()
            case _:
                return
        self._update_text()

    def _update_text(self) -> None:
        left = MAX_NAME_LENGTH - len(self._name)
        typed = _("[{name}]  type a new name").format(name=self._name) if self._untouched else f"{self._name}|"
        self._message.text = _("{typed}\nYour records and replays carry this name. {left} characters left.").format(
            typed=typed, left=left
        )

    def _accept(self) -> None:
        self.app.change(name=self._name.strip() or "You")
        self.app.pop()


class KeysScreen(Screen):
    """Key bindings: Enter on a line, then the new key."""

    def __init__(self, app: AppContext) -> None:
        super().__init__(app, ListView(_("Keys"), subtitle=self._prompt))
        self._waiting: str | None = None
        """Control or command that the next key is for."""
        self._fill()

    def _prompt(self) -> str:
        return (
            _("Press the key for: {command} (Esc cancels)").format(command=_(BINDING_LABELS[self._waiting]))
            if self._waiting
            else ""
        )

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
        now = self.app.settings.bindings
        taken = [other for other, keys in now.items() if other != name and key in keys]
        if key != "escape":
            bindings = rebind(now, name, key)
            if bindings == now and key not in bindings[name]:
                self.app.notify(_("{key} cannot be changed: choose another key").format(key=key_name(key)))
            elif taken:
                self._ask(name, key, taken, bindings)
            else:
                self.app.change(bindings=bindings)
        self._fill()

    def _ask(self, name: str, key: str, taken: Sequence[str], bindings: Bindings) -> None:
        """Ask before a key is taken from another command."""
        losses = [
            f"{_(BINDING_LABELS[other])}: {_(' or ').join(key_name(each) for each in bindings[other])}"
            for other in taken
        ]
        text = _("{key} is used for {others}.\nIf {command} gets it, the others keep: {kept}.").format(
            key=key_name(key),
            others=", ".join(_(BINDING_LABELS[other]) for other in taken),
            command=_(BINDING_LABELS[name]),
            kept=", ".join(losses),
        )

        def accept() -> None:
            self.app.change(bindings=dict(bindings))
            self.app.pop()

        buttons = [
            Button(
                _("Use {key} for {command}").format(key=key_name(key), command=_(BINDING_LABELS[name])), on_press=accept
            ),
            Button(_("Cancel"), _("Change nothing"), on_press=self.app.pop),
        ]
        self.app.push(MessageScreen(self.app, _("This key is taken"), text, buttons))

    def refresh(self) -> None:
        self._fill()

    def _wait(self, name: str) -> None:
        self._waiting, self.typing = name, True

    def _fill(self) -> None:
        bindings = self.app.settings.bindings
        lines: list[Item] = [
            Button(
                _(label),
                _("Enter, then the new key"),
                on_press=partial(self._wait, name),
                note=_(" or ").join(key_name(key) for key in bindings[name]),
            )
            for name, label in BINDING_LABELS.items()
        ]
        self.list.items = [*lines, Button(_("Reset keys"), _("Restores the default keys"), on_press=self._reset)]

    def _reset(self) -> None:
        self.app.change(bindings=dict(DEFAULT_BINDINGS))
        self.app.notify(_("Keys reset to defaults"))
        self._fill()
