"""All keys, of everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from racer_viewer.modes.screen import Key, Screen
from racer_viewer.ui.bindings import NAMES, key_name
from racer_viewer.ui.intents import Click, Do, Intent
from racer_viewer.ui.paint import FOOTER_HEIGHT, footer, heading, key_cap, key_cap_width, shade
from racer_viewer.ui.theme import MARGIN, TEXT

if TYPE_CHECKING:
    import pygame

EVERYWHERE: tuple[Key, ...] = (
    ("F1 or H", "this list"),
    ("F11", "full screen"),
    ("F12", "screenshot"),
    ("Up Down", "choose"),
    ("Left Right", "change"),
    ("Enter or Space", "accept"),
    ("Esc", "back, or pause"),
)
GAMEPAD: tuple[Key, ...] = (
    ("Stick", "steer, choose"),
    ("RT LT", "throttle, brake"),
    ("A", "accept"),
    ("B or Start", "back, pause"),
    ("X", "restart"),
    ("Y", "camera"),
    ("LB RB", "rays, reward"),
)
ROW = 30
"""At scale 1 [px]."""


class HelpScreen(Screen):
    """Three columns: what you bound, what is the same everywhere, and the gamepad."""

    see_through = True

    def keys(self) -> Sequence[Key]:
        return (("Esc", "back"),)

    def handle(self, intent: Intent) -> None:
        if intent in (Do.BACK, Do.HELP, Do.ACCEPT) or isinstance(intent, Click):
            self.app.pop()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme = self.app.theme
        surface.blit(shade(surface.get_size(), 235), (0, 0))
        top = heading(surface, theme, "Keys")
        bindings = self.app.settings.bindings
        driving = [(" or ".join(key_name(key) for key in bindings[name]), label) for name, label in NAMES.items()]
        columns = (("Driving and overlays", driving), ("Everywhere", EVERYWHERE), ("Gamepad", GAMEPAD))
        left = theme.px(MARGIN * 3)
        room = surface.get_height() - top - theme.px(FOOTER_HEIGHT + 40)
        row = min(theme.px(ROW), room // max(len(keys) for _, keys in columns))
        width = (surface.get_width() - 2 * left) // len(columns)
        for number, (title, keys) in enumerate(columns):
            self._draw_column(surface, left + number * width, top, row, title, keys)
        footer(surface, theme, self.keys())

    def _draw_column(self, surface: pygame.Surface, x: int, y: int, row: int, title: str, keys: Sequence[Key]) -> None:
        theme = self.app.theme
        surface.blit(theme.text(title, TEXT, theme.palette.accent), (x, y))
        caps = max(key_cap_width(theme, key) for key, _ in keys)
        for number, (key, does) in enumerate(keys):
            centre = y + theme.px(44) + number * row
            key_cap(surface, theme, key, x, centre)
            text = theme.text(does, TEXT, theme.palette.faint)
            surface.blit(text, (x + caps + theme.px(10), centre - text.get_height() // 2))
