"""A screen that is a list of items under a heading: most of the app's screens are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from racer_viewer.modes.key_line import draw_keys
from racer_viewer.modes.screen import DO_SOUNDS, MENU_KEYS, Key, Screen, Stage
from racer_viewer.ui.intents import Do, Intent
from racer_viewer.ui.item_list import ItemList
from racer_viewer.ui.items import Item
from racer_viewer.ui.paint import FOOTER_HEIGHT, heading, shade
from racer_viewer.ui.theme import MARGIN, PADDING, TEXT, TEXT_SMALL

if TYPE_CHECKING:
    import pygame

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

    def __init__(self, app: Stage, items: Sequence[Item] = ()) -> None:
        super().__init__(app)
        self.list = ItemList(items)

    @property
    def subtitle(self) -> str:
        return ""

    def keys(self) -> Sequence[Key]:
        return MENU_KEYS

    def handle(self, intent: Intent) -> None:
        if isinstance(intent, Do) and intent in DO_SOUNDS:
            self.app.speaker.play(DO_SOUNDS[intent])
        if intent == Do.BACK:
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
            hint = theme.text(theme.fitting(item.hint, width, TEXT_SMALL + 2), TEXT_SMALL + 2, theme.palette.faint)
            surface.blit(hint, (area.x, surface.get_height() - theme.px(FOOTER_HEIGHT) - 2 * hint.get_height()))
        draw_keys(surface, theme, self.keys())

    def _draw_heading(self, surface: pygame.Surface) -> int:
        """Returns where it ends [px]."""
        theme = self.app.theme
        if self.subtitle_lines == 1:
            return heading(surface, theme, self.title, self.subtitle)
        x, y = theme.px(MARGIN * 3), heading(surface, theme, self.title) - theme.px(PADDING)
        width = surface.get_width() - 2 * x
        lines = theme.wrapped(self.subtitle, width)
        shown = [*lines[: self.subtitle_lines - 1], " ".join(lines[self.subtitle_lines - 1 :])]
        for line in filter(None, shown):
            surface.blit(theme.text(theme.fitting(line, width), TEXT, theme.palette.faint), (x, y))
            y += theme.line_height() + theme.px(2)
        return y + theme.px(PADDING)

    def draw_beside(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        """Something at the right of the list."""
