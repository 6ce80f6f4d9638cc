"""Views that fill a screen: a list under a title, or a message with buttons; and the line of keys at the bottom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import pygame

from racer_viewer.ui.item_list import Column, Item, ItemList
from racer_viewer.ui.paint import FOOTER_HEIGHT, draw_footer, draw_heading, key_cap_width, shade
from racer_viewer.ui.theme import MARGIN, PADDING, TEXT, TEXT_SMALL, Colour, Theme

Key = tuple[str, str]
"""Key to press, and what it does, for the line of keys."""
ALL_KEYS: Key = ("F1", "all keys")
"""Last key of a line that has no room for all keys."""
WORD_GAP, KEY_GAP = 4, 20
"""Distance between a key and its description, and between two keys, as in `draw_footer`, at scale 1 [px]."""
LIST_WIDTH, TEXT_WIDTH, BUTTON_WIDTH = 520, 760, 320
"""Default width of a list, and widths of a message's text and buttons, at scale 1 [px]."""

DrawBeside = Callable[[pygame.Surface, pygame.Rect], None]
"""Function that draws beside the list, given the surface and the list's area."""


class ListView:
    """A title, a list of items, a hint for the selected item and the line of keys, over a darkened background.

    subtitle: text, or a function that returns it and is called for every frame.
    width: width of the list at scale 1 [px]; 0 is all the space between the margins.
    darkness: darkness of the background, 0 to 255.
    subtitle_lines: maximum number of lines for the subtitle.
    """

    def __init__(
        self,
        title: str,
        items: Sequence[Item] = (),
        columns: Sequence[Column] = (),
        *,
        subtitle: str | Callable[[], str] = "",
        width: int = LIST_WIDTH,
        darkness: int = 218,
        subtitle_lines: int = 1,
        draw_beside: DrawBeside | None = None,
    ) -> None:
        self.title, self.list = title, ItemList(items, columns)
        self._subtitle, self._subtitle_lines = subtitle, subtitle_lines
        self._width, self._darkness, self._draw_beside = width, darkness, draw_beside

    @property
    def subtitle(self) -> str:
        return self._subtitle if isinstance(self._subtitle, str) else self._subtitle()

    def draw(self, surface: pygame.Surface, theme: Theme, keys: Sequence[Key]) -> None:
        surface.blit(shade(surface.get_size(), self._darkness), (0, 0))
        top = self._draw_heading(surface, theme)
        area = surface.get_rect()
        area.x, area.y = theme.px(MARGIN * 3), top
        room = area.width - 2 * area.x
        area.width = min(theme.px(self._width), room) if self._width else room
        area.height = surface.get_height() - top - theme.px(FOOTER_HEIGHT + 3 * TEXT)
        self.list.draw(surface, theme, area)
        if self._draw_beside is not None:
            self._draw_beside(surface, area)
        draw_hint(surface, theme, self.list.item.hint if self.list.item is not None else "", area.x)
        draw_keys(surface, theme, keys)

    def _draw_heading(self, surface: pygame.Surface, theme: Theme) -> int:
        """Draw title and subtitle; return the y where they end [px]."""
        if self._subtitle_lines == 1:
            return draw_heading(surface, theme, self.title, self.subtitle)
        x, y = theme.px(MARGIN * 3), draw_heading(surface, theme, self.title) - theme.px(PADDING)
        width = surface.get_width() - 2 * x
        lines = theme.wrapped(self.subtitle, width)
        shown = [*lines[: self._subtitle_lines - 1], " ".join(lines[self._subtitle_lines - 1 :])]
        for line in filter(None, shown):
            surface.blit(theme.text(theme.truncate(line, width), TEXT, theme.palette.faint), (x, y))
            y += theme.line_height() + theme.px(2)
        return y + theme.px(PADDING)


class MessageView:
    """A title, some paragraphs of text, and buttons."""

    darkness = 225

    def __init__(self, title: str, text: str, items: Sequence[Item]) -> None:
        self.title, self.text, self.list = title, text, ItemList(items)

    def draw(self, surface: pygame.Surface, theme: Theme, keys: Sequence[Key]) -> None:
        surface.blit(shade(surface.get_size(), self.darkness), (0, 0))
        y = draw_heading(surface, theme, self.title)
        x = theme.px(MARGIN * 3)
        width = min(theme.px(TEXT_WIDTH), surface.get_width() - 2 * x)
        for paragraph in self.text.splitlines():
            for line in theme.wrapped(paragraph, width):
                surface.blit(theme.text(line, TEXT), (x, y))
                y += theme.line_height() + theme.px(6)
            y += theme.px(6)
        area = surface.get_rect()
        area.x, area.y, area.width = x, y + theme.px(MARGIN), theme.px(BUTTON_WIDTH)
        area.height = surface.get_height() - area.y - theme.px(FOOTER_HEIGHT)
        self.list.draw(surface, theme, area)
        draw_footer(surface, theme, keys)


def draw_hint(surface: pygame.Surface, theme: Theme, text: str, x: int, colour: Colour | None = None) -> None:
    """Draw a line of small text above the keys."""
    if text:
        width, size = surface.get_width() - 2 * x, TEXT_SMALL + 2
        hint = theme.text(theme.truncate(text, width, size), size, colour or theme.palette.faint)
        surface.blit(hint, (x, surface.get_height() - theme.px(FOOTER_HEIGHT) - 2 * hint.get_height()))


def draw_keys(surface: pygame.Surface, theme: Theme, keys: Sequence[Key]) -> None:
    """Draw the line of keys along the bottom; where not all fit, the last one is the key for the list of all."""
    picture = _key_line(theme, surface.get_width(), tuple(keys))
    surface.blit(picture, (0, surface.get_height() - picture.get_height()))


def fitting_keys(theme: Theme, width: int, keys: Sequence[Key]) -> Sequence[Key]:
    """Return as many keys as fit in a line of this width [px]."""
    room = width - 2 * theme.px(MARGIN)
    if _keys_width(theme, keys) <= room:
        return keys
    others = [key for key in keys if key[0] != ALL_KEYS[0]]
    while others and _keys_width(theme, [*others, ALL_KEYS]) > room:
        others.pop()
    return [*others, ALL_KEYS]


def _keys_width(theme: Theme, keys: Sequence[Key]) -> int:
    widths = (key_cap_width(theme, key) + theme.px(WORD_GAP) + theme.width(does, TEXT_SMALL) for key, does in keys)
    return sum(widths) + theme.px(KEY_GAP) * (len(keys) - 1)


@lru_cache(maxsize=8)
def _key_line(theme: Theme, width: int, keys: tuple[Key, ...]) -> pygame.Surface:
    """Return the drawn line of keys; cached because drawing takes a millisecond and it rarely changes."""
    picture = pygame.Surface((width, theme.px(FOOTER_HEIGHT)), pygame.SRCALPHA, 32)
    draw_footer(picture, theme, fitting_keys(theme, width, keys))
    return picture
