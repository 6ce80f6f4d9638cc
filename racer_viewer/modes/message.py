"""Something that the user should know, or be asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from racer_viewer.modes.lists import ListScreen
from racer_viewer.modes.screen import Stage
from racer_viewer.ui.items import Button, Item
from racer_viewer.ui.paint import FOOTER_HEIGHT, footer, heading, shade
from racer_viewer.ui.theme import MARGIN, TEXT

if TYPE_CHECKING:
    import pygame


class MessageScreen(ListScreen):
    """A title, some lines, and what to do now: by default, nothing but go back."""

    darkness = 225

    def __init__(self, app: Stage, title: str, text: str, items: Sequence[Item] = ()) -> None:
        super().__init__(app, items or [Button("OK", do=self.back)])
        self.title, self.text = title, text

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme = self.app.theme
        surface.blit(shade(surface.get_size(), self.darkness), (0, 0))
        y = heading(surface, theme, self.title)
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
        footer(surface, theme, self.keys())
