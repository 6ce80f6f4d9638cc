"""A screen that is a list of items under a heading: most of the app's screens are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from racer_viewer.modes.screen import DO_SOUNDS, MENU_KEYS, Key, Screen, Stage
from racer_viewer.ui.intents import Do, Intent
from racer_viewer.ui.item_list import ItemList
from racer_viewer.ui.items import Item
from racer_viewer.ui.paint import FOOTER_HEIGHT, footer, heading, shade
from racer_viewer.ui.theme import MARGIN, TEXT, TEXT_SMALL

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
        top = heading(surface, theme, self.title, self.subtitle)
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
        footer(surface, theme, self.keys())

    def draw_beside(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        """Something at the right of the list."""
