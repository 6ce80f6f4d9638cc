"""Screens, and the stack that they lie on. Nothing here needs a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.settings import Settings, SettingsFile
from racer_viewer.ui.bindings import key_name
from racer_viewer.ui.intents import Controls, Do, Intent
from racer_viewer.ui.theme import COLOUR_BLIND, ORDINARY, REFERENCE_HEIGHT, Theme, fitting_scale

if TYPE_CHECKING:
    import pygame

    from racer_viewer.engine_room import EngineRoom
    from racer_viewer.modes.link import BridgeAddress
    from racer_viewer.records import Records
    from racer_viewer.sound import Effect, SoundStage

Key = tuple[str, str]
"""What to press, and what it does."""

SAID_TICKS = 240
"""How long a message stays."""


class Screen:
    """One thing that the user does. It is drawn over the screen below it if it is see-through."""

    see_through = False
    typing = False
    """Whether letters are taken as letters, so that no key means anything else."""
    way_back = ""
    """How the way out of a race that began here is called; empty if it leads on, to a screen further below."""

    def __init__(self, app: Stage) -> None:
        self.app = app

    def keys(self) -> Sequence[Key]:
        """For the line at the bottom, and for the help."""
        return ()

    def handle(self, intent: Intent) -> None:
        """Something was pressed, pointed at or dropped."""

    def tick(self, controls: Controls) -> None:
        """A sixtieth of a second has passed."""

    def draw(self, surface: pygame.Surface, share: float) -> None:
        """`share` of the next tick has passed already."""

    def draw_ahead(self) -> bool:
        """There is time before the next picture: prepare a little of what it may need; False if there is nothing."""
        return False

    def closing(self, then: Callable[[], None]) -> Screen | None:
        """What to ask before the window closes, and the answer's way to close it; None closes at once."""
        return None

    def shown(self) -> None:
        """It is on top now, for the first time or again."""

    def covered(self) -> None:
        """Another one was put on top of it."""

    def closed(self) -> None:
        """It was taken from the stack."""


@dataclass
class Stage:
    """What all screens share, and the stack of them. The top one is played; the app ends when there is none."""

    settings_file: SettingsFile
    settings: Settings
    data: Path
    room: EngineRoom
    speaker: SoundStage
    bridge: BridgeAddress | None = None
    """Where cars are driven; None is in this process."""
    theme: Theme = field(default_factory=Theme)
    height: int = REFERENCE_HEIGHT
    """Of the window [px]."""
    screens: list[Screen] = field(default_factory=list)
    said: str = ""
    said_ticks: int = 0
    on_settings: list[Callable[[Settings], None]] = field(default_factory=list)
    """Told when settings change: the window is interested in some of them."""
    _records: Records | None = None

    @property
    def top(self) -> Screen | None:
        return self.screens[-1] if self.screens else None

    @property
    def lowest(self) -> int:
        """Number of the lowest screen that can be seen."""
        return max((number for number, screen in enumerate(self.screens) if not screen.see_through), default=0)

    def push(self, screen: Screen) -> None:
        if self.top is not None:
            self.top.covered()
        self.screens.append(screen)
        screen.shown()

    def pop(self) -> None:
        if self.screens:
            self.screens.pop().closed()
        if self.top is not None:
            self.top.shown()

    def back_to(self, kind: type[Screen]) -> None:
        """Close screens until one of this kind is on top."""
        self._close_until(lambda screen: isinstance(screen, kind))

    @property
    def way_out(self) -> str:
        """Of a race, in words: where `leave_race` leads to."""
        return next((screen.way_back for screen in reversed(self.screens) if screen.way_back), "Leave")

    def leave_race(self) -> None:
        """Close screens until one that has a way back to it is on top."""
        self._close_until(lambda screen: bool(screen.way_back))

    def _close_until(self, stays: Callable[[Screen], bool]) -> None:
        while self.screens and not stays(self.screens[-1]):
            self.screens.pop().closed()
        if self.top is not None:
            self.top.shown()

    def ask_to_quit(self) -> None:
        """Quit, unless a screen has something to ask first. Who asks again while that is asked, is asked no more."""
        for screen in reversed(self.screens):
            question = screen.closing(self.quit)
            if question is not None:
                if type(self.top) is not type(question):
                    self.push(question)
                return
        self.quit()

    def quit(self) -> None:
        while self.screens:
            self.screens.pop().closed()

    def say(self, text: str) -> None:
        """A line over whatever is shown, for a while."""
        self.said, self.said_ticks = text, SAID_TICKS

    def change(self, **values: object) -> None:
        """Change settings; they are saved at once."""
        self.settings = self.settings.changed(**values)
        self.settings_file.save(self.settings)
        if self.settings_file.problem:
            self.say(self.settings_file.problem)
            self.settings_file.problem = ""
        for told in self.on_settings:
            told(self.settings)

    @property
    def records(self) -> Records:
        """Opened when somebody asks."""
        if self._records is None:
            from racer_viewer.records import Records

            self._records = Records(self.data / "records.sqlite")
        return self._records

    def fit(self, size: tuple[int, int]) -> None:
        """Letters and panels for a window of this size."""
        self.height = size[1]
        scale = fitting_scale(size, self.settings.ui_scale)
        palette = COLOUR_BLIND if self.settings.colour_blind else ORDINARY
        if (scale, palette) != (self.theme.scale, self.theme.palette):
            self.theme = Theme(scale, palette)

    def key_of(self, what: str) -> str:
        """The first key that does it, as it is shown."""
        keys = self.settings.bindings.get(what, ())
        return key_name(keys[0]) if keys else "–"


MENU_KEYS: tuple[Key, ...] = (
    ("Up Down", "choose"),
    ("Left Right", "change"),
    ("Enter", "accept"),
    ("Esc", "back"),
    ("F1", "help"),
)
DO_SOUNDS: dict[Do, Effect] = {
    Do.UP: "move",
    Do.DOWN: "move",
    Do.LEFT: "move",
    Do.RIGHT: "move",
    Do.ACCEPT: "accept",
    Do.BACK: "back",
}
