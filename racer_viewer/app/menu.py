"""The main menu. Importing it loads nothing heavy, so that it is shown at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import pygame

from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.modes.settings_screen import SettingsScreen
from racer_viewer.modes.waiting import open_when_ready
from racer_viewer.ui.intents import Controls
from racer_viewer.ui.item_list import Button, Item
from racer_viewer.ui.paint import FOOTER_HEIGHT, draw_footer, side_shade
from racer_viewer.ui.theme import MARGIN, TEXT, TEXT_HUGE
from racer_viewer.ui.views import Key, ListView, draw_hint

if TYPE_CHECKING:
    from racer_viewer.app.backdrop import MenuBackdrop

NIGHT, ROAD, LINE = (20, 26, 30), (38, 42, 48), (232, 230, 222)
"""Colours of the background until the engine is ready: a road at night."""
MENU_WIDTH = 300
"""Width of the list at scale 1 [px]."""
FADE_TICKS = 45
"""Time in which the backdrop fades in [ticks]."""


class MenuScreen(Screen):
    """Play, watch, train, and so on, with a bundled agent driving behind as soon as the engine is ready."""

    see_through = False
    is_main_menu = True
    return_label = "Main menu"

    def __init__(self, app: AppContext) -> None:
        super().__init__(app, ListView("Racer", _items(app)))
        self.backdrop: MenuBackdrop | None = None
        self._fade = 0

    def keys(self) -> Sequence[Key]:
        return (("Up Down", "choose"), ("Enter", "accept"), ("F1", "help"), ("F11", "full screen"), ("Esc", "quit"))

    def tick(self, controls: Controls) -> None:
        if self.backdrop is None and self.app.warmup.ready:
            from racer_viewer.app.backdrop import MenuBackdrop

            self.backdrop = MenuBackdrop(self.app)
        if self.backdrop is not None:
            self.backdrop.tick()
            self._fade = min(FADE_TICKS, self._fade + 1)

    def draw_ahead(self) -> bool:
        return self.backdrop is not None and self.backdrop.draw_ahead()

    def on_close(self) -> None:
        if self.backdrop is not None:
            self.backdrop.close()

    def _draw_background(self, surface: pygame.Surface, share: float) -> None:
        """Draw the background of the menu and of the screens over it."""
        if self.backdrop is not None:
            self.backdrop.draw(surface, share)
        if self._fade < FADE_TICKS:
            night = _night(surface.get_size())
            night.set_alpha(255 - 255 * self._fade // FADE_TICKS)
            surface.blit(night, (0, 0))

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme = self.app.theme
        self._draw_background(surface, share)
        if self.app.top is not self:
            return
        surface.blit(side_shade(surface.get_size()), (0, 0))
        x, y = theme.px(MARGIN * 3), theme.px(MARGIN * 2.5)
        title = theme.text("RACER", TEXT_HUGE)
        surface.blit(title, (x, y))
        y += title.get_height()
        pygame.draw.rect(surface, theme.palette.accent, (x + theme.px(2), y, theme.px(64), theme.px(5)))
        y += theme.px(14)
        surface.blit(theme.text("drive · watch · train", TEXT, theme.palette.faint), (x + theme.px(2), y))
        y += theme.px(54)
        area = pygame.Rect(x, y, theme.px(MENU_WIDTH), surface.get_height() - y - theme.px(FOOTER_HEIGHT + 2.5 * TEXT))
        self.list.draw(surface, theme, area)
        self._draw_status(surface, x)
        draw_footer(surface, theme, self.keys())

    def _draw_status(self, surface: pygame.Surface, x: int) -> None:
        """Draw the hint of the selected item or, while the engine starts, the progress of its warm-up."""
        palette, warmup = self.app.theme.palette, self.app.warmup
        item = self.list.item
        text, colour = (item.hint if item else ""), palette.faint
        if warmup.problem:
            text, colour = warmup.problem, palette.bad
        elif not warmup.ready and warmup.done > 0.0:
            text = f"{warmup.text} ({warmup.done:.0%}), on the first run only"
        draw_hint(surface, self.app.theme, text, x, colour)


def _items(app: AppContext) -> list[Item]:
    def entry(label: str, hint: str, make: Callable[[AppContext], Screen]) -> Button:
        return Button(label, hint, on_press=lambda: open_when_ready(app, lambda: make(app)))

    return [
        entry("Play", "Drive against the clock, your ghost or agents", _play),
        entry("Watch", "Watch trained agents drive, and see what they see", _watch),
        entry("Train", "Train an agent to drive", _train),
        entry("Replays", "Replays that you have saved", _replays),
        entry("Records", "Best laps on every circuit", _records),
        Button("Settings", "Sound, units, sizes, colours and keys", on_press=lambda: app.push(SettingsScreen(app))),
        Button("Quit", on_press=app.quit),
    ]


def _play(app: AppContext) -> Screen:
    from racer_viewer.modes.choose import PlaySetupScreen

    return PlaySetupScreen(app)


def _watch(app: AppContext) -> Screen:
    from racer_viewer.modes.choose import WatchSetupScreen

    return WatchSetupScreen(app)


def _train(app: AppContext) -> Screen:
    from racer_viewer.modes.train.setup import TrainSetupScreen

    return TrainSetupScreen(app)


def _replays(app: AppContext) -> Screen:
    from racer_viewer.modes.replay_lists import ReplaysScreen

    return ReplaysScreen(app)


def _records(app: AppContext) -> Screen:
    from racer_viewer.modes.replay_lists import RecordsScreen

    return RecordsScreen(app)


@lru_cache(maxsize=2)
def _night(size: tuple[int, int]) -> pygame.Surface:
    """Draw a road at night with lines and polygons only, which takes no time."""
    width, height = size
    night = pygame.Surface(size)
    night.fill(NIGHT)
    vanish = width * 0.68, height * 0.34
    pygame.draw.polygon(night, ROAD, [vanish, (width * 0.30, height), (width * 1.25, height)])
    for foot in (0.30, 1.25):
        pygame.draw.aaline(night, LINE, vanish, (width * foot, height))
    for number in range(12):
        near, far = 0.86**number, 0.86 ** (number + 0.45)
        dash = [
            (vanish[0] + (width * (0.775 + side) - vanish[0]) * part, vanish[1] + (height - vanish[1]) * part)
            for part, side in ((near, -0.008), (near, 0.008), (far, 0.008), (far, -0.008))
        ]
        pygame.draw.polygon(night, LINE, dash)
    return night
