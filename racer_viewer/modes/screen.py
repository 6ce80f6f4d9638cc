"""The keys of a screen in one line along the bottom: as many as fit, the most important first.

Screens, and the stack that they lie on. Nothing here needs a window.

A screen that is a list of items under a heading: most of the app's screens are.

Something that the user should know, or be asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pygame

from racer_viewer.settings import Settings, SettingsFile
from racer_viewer.ui.bindings import key_name
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.item_list import Button, Item, ItemList
from racer_viewer.ui.paint import FOOTER_HEIGHT, draw_footer, draw_heading, key_cap_width, shade
from racer_viewer.ui.theme import (
    COLOUR_BLIND,
    MARGIN,
    ORDINARY,
    PADDING,
    REFERENCE_HEIGHT,
    TEXT,
    TEXT_SMALL,
    Theme,
    fitting_scale,
)

if TYPE_CHECKING:
    from racer_viewer.modes.race_view import RaceView
    from racer_viewer.replays.records import Records
    from racer_viewer.sound import Effect, SoundPlayer
    from racer_viewer.warmup import EngineWarmup

ALL_KEYS: Key = ("F1", "all keys")
"""Stands at the end wherever others had to be left out."""
WORD_GAP, KEY_GAP = 4, 20
"""Between a key and what it does, and from there to the next, as `footer` has them, at scale 1 [px]."""


def draw_keys(surface: pygame.Surface, theme: Theme, keys: Sequence[Key]) -> None:
    """Those that come first are drawn first; where not all of them fit, there is still the one for the list of all."""
    picture = _picture(theme, surface.get_width(), tuple(keys))
    surface.blit(picture, (0, surface.get_height() - picture.get_height()))


def fitting_keys(theme: Theme, width: int, keys: Sequence[Key]) -> Sequence[Key]:
    """As many as a line of this width [px] has room for."""
    room = width - 2 * theme.px(MARGIN)
    if _width(theme, keys) <= room:
        return keys
    others = [key for key in keys if key[0] != ALL_KEYS[0]]
    while others and _width(theme, [*others, ALL_KEYS]) > room:
        others.pop()
    return [*others, ALL_KEYS]


def _width(theme: Theme, keys: Sequence[Key]) -> int:
    words = (key_cap_width(theme, key) + theme.px(WORD_GAP) + theme.width(does, TEXT_SMALL) for key, does in keys)
    return sum(words) + theme.px(KEY_GAP) * (len(keys) - 1)


@lru_cache(maxsize=8)
def _picture(theme: Theme, width: int, keys: tuple[Key, ...]) -> pygame.Surface:
    """Kept, since it takes a millisecond to draw and is the same for seconds."""
    picture = pygame.Surface((width, theme.px(FOOTER_HEIGHT)), pygame.SRCALPHA, 32)
    draw_footer(picture, theme, fitting_keys(theme, width, keys))
    return picture


Key = tuple[str, str]
"""What to press, and what it does."""

NOTICE_TICKS = 240
"""How long a message stays."""


@dataclass(frozen=True)
class BridgeAddress:
    """A server that simulates the cars; `token` is for servers that require one."""

    url: str
    token: str | None = None


class Screen:
    """One thing that the user does. It is drawn over the screen below it if it is see-through."""

    see_through = False
    typing = False
    """Whether letters are taken as letters, so that no key means anything else."""
    is_main_menu = False
    """True for the main menu, which `AppContext.pop_to_menu` returns to."""
    return_label = ""
    """How the way out of a race that began here is called; empty if it leads on, to a screen further below."""

    view: RaceView | None = None
    """Picture of a race, if the screen shows one; it can be recorded, and its cars are heard while it is on top."""

    def __init__(self, app: AppContext) -> None:
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

    def confirm_close(self, then: Callable[[], None]) -> Screen | None:
        """What to ask before the window closes, and the answer's way to close it; None closes at once."""
        return None

    def on_show(self) -> None:
        """Handle that the screen is on top, for the first time or again."""
        if self.view is not None:
            self.app.sound.resume()

    def on_cover(self) -> None:
        """Handle that another screen was pushed on top."""
        if self.view is not None:
            self.app.sound.pause()

    def on_close(self) -> None:
        """Handle that the screen was removed from the stack."""
        if self.view is not None:
            self.app.sound.pause()


@dataclass
class AppContext:
    """What all screens share, and the stack of them. The top one is played; the app ends when there is none."""

    settings_file: SettingsFile
    settings: Settings
    data: Path
    warmup: EngineWarmup
    sound: SoundPlayer
    bridge: BridgeAddress | None = None
    """Where cars are driven; None is in this process."""
    theme: Theme = field(default_factory=Theme)
    height: int = REFERENCE_HEIGHT
    """Of the window [px]."""
    screens: list[Screen] = field(default_factory=list)
    notice: str = ""
    notice_ticks: int = 0
    on_settings_change: list[Callable[[Settings], None]] = field(default_factory=list)
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
            self.top.on_cover()
        self.screens.append(screen)
        screen.on_show()

    def pop(self) -> None:
        if self.screens:
            self.screens.pop().on_close()
        if self.top is not None:
            self.top.on_show()

    def pop_to(self, kind: type[Screen]) -> None:
        """Close screens until one of this kind is on top."""
        self._close_until(lambda screen: isinstance(screen, kind))

    def pop_to_menu(self) -> None:
        """Close screens until the main menu is on top."""
        self._close_until(lambda screen: screen.is_main_menu)

    @property
    def leave_label(self) -> str:
        """Of a race, in words: where `leave_race` leads to."""
        return next((screen.return_label for screen in reversed(self.screens) if screen.return_label), "Leave")

    def leave_race(self) -> None:
        """Close screens until one that has a way back to it is on top."""
        self._close_until(lambda screen: bool(screen.return_label))

    def _close_until(self, stays: Callable[[Screen], bool]) -> None:
        while self.screens and not stays(self.screens[-1]):
            self.screens.pop().on_close()
        if self.top is not None:
            self.top.on_show()

    def ask_to_quit(self) -> None:
        """Quit, unless a screen has something to ask first. Who asks again while that is asked, is asked no more."""
        for screen in reversed(self.screens):
            question = screen.confirm_close(self.quit)
            if question is not None:
                if type(self.top) is not type(question):
                    self.push(question)
                return
        self.quit()

    def quit(self) -> None:
        while self.screens:
            self.screens.pop().on_close()

    def notify(self, text: str) -> None:
        """A line over whatever is shown, for a while."""
        self.notice, self.notice_ticks = text, NOTICE_TICKS

    def change(self, **values: object) -> None:
        """Change settings; they are saved at once."""
        self.settings = self.settings.changed(**values)
        self.settings_file.save(self.settings)
        if self.settings_file.problem:
            self.notify(self.settings_file.problem)
            self.settings_file.problem = ""
        for told in self.on_settings_change:
            told(self.settings)

    @property
    def records(self) -> Records:
        """Opened when somebody asks."""
        if self._records is None:
            from racer_viewer.replays.records import Records

            self._records = Records(self.data / "records.sqlite")
        return self._records

    def fit(self, size: tuple[int, int]) -> None:
        """Letters and panels for a window of this size."""
        self.height = size[1]
        scale = fitting_scale(size, self.settings.ui_scale)
        palette = COLOUR_BLIND if self.settings.colour_blind else ORDINARY
        if (scale, palette) != (self.theme.scale, self.theme.palette):
            self.theme = Theme(scale, palette)

    def key_label(self, what: str) -> str:
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
COMMAND_SOUNDS: dict[Command, Effect] = {
    Command.UP: "move",
    Command.DOWN: "move",
    Command.LEFT: "move",
    Command.RIGHT: "move",
    Command.ACCEPT: "accept",
    Command.BACK: "back",
}


LIST_WIDTH = 520
"""At scale 1 [px]."""


class ListScreen(Screen):
    """Title, items, a hint for the chosen one, and the keys. Lies over what is below it, which is darkened."""

    see_through = True
    title = ""
    darkness = 218
    """Of 255."""
    list_width: int = LIST_WIDTH
    """At scale 1 [px]; 0 is all that there is between the margins."""
    subtitle_lines = 1
    """That a long subtitle may take; what is beyond is cut."""

    def __init__(self, app: AppContext, items: Sequence[Item] = ()) -> None:
        super().__init__(app)
        self.list = ItemList(items)

    @property
    def subtitle(self) -> str:
        return ""

    def keys(self) -> Sequence[Key]:
        return MENU_KEYS

    def handle(self, intent: Intent) -> None:
        if isinstance(intent, Command) and intent in COMMAND_SOUNDS:
            self.app.sound.play(COMMAND_SOUNDS[intent])
        if intent == Command.BACK:
            self.back()
        else:
            self.list.handle(intent)

    def back(self) -> None:
        self.app.pop()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme = self.app.theme
        surface.blit(shade(surface.get_size(), self.darkness), (0, 0))
        top = self._draw_heading(surface)
        area = surface.get_rect()
        area.x, area.y = theme.px(MARGIN * 3), top
        room = area.width - 2 * area.x
        area.width = min(theme.px(self.list_width), room) if self.list_width else room
        area.height = surface.get_height() - top - theme.px(FOOTER_HEIGHT + 3 * TEXT)
        self.list.draw(surface, theme, area)
        self.draw_beside(surface, area)
        item = self.list.item
        if item is not None and item.hint:
            width = surface.get_width() - 2 * area.x
            hint = theme.text(theme.truncate(item.hint, width, TEXT_SMALL + 2), TEXT_SMALL + 2, theme.palette.faint)
            surface.blit(hint, (area.x, surface.get_height() - theme.px(FOOTER_HEIGHT) - 2 * hint.get_height()))
        draw_keys(surface, theme, self.keys())

    def _draw_heading(self, surface: pygame.Surface) -> int:
        """Returns where it ends [px]."""
        theme = self.app.theme
        if self.subtitle_lines == 1:
            return draw_heading(surface, theme, self.title, self.subtitle)
        x, y = theme.px(MARGIN * 3), draw_heading(surface, theme, self.title) - theme.px(PADDING)
        width = surface.get_width() - 2 * x
        lines = theme.wrapped(self.subtitle, width)
        shown = [*lines[: self.subtitle_lines - 1], " ".join(lines[self.subtitle_lines - 1 :])]
        for line in filter(None, shown):
            surface.blit(theme.text(theme.truncate(line, width), TEXT, theme.palette.faint), (x, y))
            y += theme.line_height() + theme.px(2)
        return y + theme.px(PADDING)

    def draw_beside(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        """Something at the right of the list."""


class MessageScreen(ListScreen):
    """A title, some lines, and buttons; OK by default. `on_back` is called instead of closing the message."""

    darkness = 225

    def __init__(
        self,
        app: AppContext,
        title: str,
        text: str,
        items: Sequence[Item] = (),
        on_back: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(app, items or [Button("OK", on_press=self.back)])
        self.title, self.text, self._on_back = title, text, on_back

    def back(self) -> None:
        if self._on_back is None:
            super().back()
        else:
            self._on_back()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme = self.app.theme
        surface.blit(shade(surface.get_size(), self.darkness), (0, 0))
        y = draw_heading(surface, theme, self.title)
        x = theme.px(MARGIN * 3)
        width = min(theme.px(760), surface.get_width() - 2 * x)
        for paragraph in self.text.splitlines():
            for line in theme.wrapped(paragraph, width):
                surface.blit(theme.text(line, TEXT), (x, y))
                y += theme.line_height() + theme.px(6)
            y += theme.px(6)
        area = surface.get_rect()
        area.x, area.y, area.width = x, y + theme.px(MARGIN), theme.px(320)
        area.height = surface.get_height() - area.y - theme.px(FOOTER_HEIGHT)
        self.list.draw(surface, theme, area)
        draw_footer(surface, theme, self.keys())
