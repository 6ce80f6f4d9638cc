"""Views that fill a screen: a list under a title, or a message with buttons; the line of keys, and cards with hints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pygame

from racer_viewer.translation import _, mark
from racer_viewer.ui.item_list import ROW_GAP, ROW_HEIGHT, Column, Item, ItemList
from racer_viewer.ui.paint import FOOTER_HEIGHT, draw_footer, draw_heading, draw_key_cap, key_cap_width, shade
from racer_viewer.ui.theme import MARGIN, PADDING, TEXT, TEXT_SMALL, Colour, Theme

Key = tuple[str, str]
"""Key to press, and what it does, for the line of keys."""
ALL_KEYS: Key = ("F1", mark("all keys"))
"""Last key of a line that has no room for all keys."""
WORD_GAP, KEY_GAP = 4, 20
"""Distance between a key and its description, and between two keys, as in `draw_footer`, at scale 1 [px]."""
LIST_WIDTH, TEXT_WIDTH, BUTTON_WIDTH = 520, 760, 320
"""Default width of a list, and widths of a message's text and buttons, at scale 1 [px]."""
LINE_GAP = 6
"""Distance between two lines of a message at scale 1 [px]."""

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
        top = draw_heading(surface, theme, self.title)
        x, bottom = theme.px(MARGIN * 3), surface.get_height() - theme.px(FOOTER_HEIGHT)
        width, y = surface.get_width() - 2 * x, top
        smaller = theme.fitting(lambda smaller: top + self._height(smaller, width) <= bottom)
        for paragraph in self.text.splitlines():
            for line in smaller.wrapped(paragraph, min(smaller.px(TEXT_WIDTH), width)):
                surface.blit(smaller.text(line, TEXT), (x, y))
                y += smaller.line_height() + smaller.px(LINE_GAP)
            y += smaller.px(LINE_GAP)
        y += smaller.px(MARGIN)
        self.list.draw(surface, smaller, pygame.Rect(x, y, min(smaller.px(BUTTON_WIDTH), width), bottom - y))
        draw_footer(surface, theme, keys)

    def _height(self, theme: Theme, width: int) -> int:
        """Return the height of text and buttons [px]."""
        lines = [theme.wrapped(paragraph, min(theme.px(TEXT_WIDTH), width)) for paragraph in self.text.splitlines()]
        pitch, gap = theme.line_height() + theme.px(LINE_GAP), theme.px(LINE_GAP)
        buttons = len(self.list.items) * theme.px(ROW_HEIGHT + ROW_GAP)
        return sum(map(len, lines)) * pitch + len(lines) * gap + theme.px(MARGIN) + buttons


def draw_hint(
    surface: pygame.Surface, theme: Theme, text: str, x: int, colour: Colour | None = None, right: int = 0
) -> None:
    """Draw a line of small text above the keys; it ends at `right`, by default at the margin [px]."""
    if text:
        width, size = (right or surface.get_width() - x) - x, TEXT_SMALL + 2
        smaller = theme.fitting(lambda smaller: smaller.width(text, size) <= width)
        hint = smaller.text(smaller.truncate(text, width, size), size, colour or theme.palette.faint)
        surface.blit(hint, (x, surface.get_height() - theme.px(FOOTER_HEIGHT) - 2 * hint.get_height()))


def draw_keys(surface: pygame.Surface, theme: Theme, keys: Sequence[Key], right: int = 0) -> None:
    """Draw the line of keys along the bottom; where not all fit, the last one is the key for the list of all.

    right: width at the right end that stays free [px].
    """
    picture = _key_line(theme, surface.get_width(), right, tuple(keys))
    surface.blit(picture, (0, surface.get_height() - picture.get_height()))


def fitting_keys(theme: Theme, width: int, keys: Sequence[Key]) -> Sequence[Key]:
    """Return as many keys as fit in a line of this width [px]."""
    room = width - 2 * theme.px(MARGIN)
    if _keys_width(theme, keys) <= room:
        return keys
    others, last = [key for key in keys if key[0] != ALL_KEYS[0]], translated([ALL_KEYS])
    while others and _keys_width(theme, [*others, *last]) > room:
        others.pop()
    return [*others, *last]


def _keys_width(theme: Theme, keys: Sequence[Key]) -> int:
    widths = (key_cap_width(theme, key) + theme.px(WORD_GAP) + theme.width(does, TEXT_SMALL) for key, does in keys)
    return sum(widths) + theme.px(KEY_GAP) * (len(keys) - 1)


def translated(keys: Sequence[Key]) -> tuple[Key, ...]:
    """Return keys of a table with their descriptions in the language of the screen."""
    return tuple((key, _(does)) for key, does in keys)


@lru_cache(maxsize=8)
def _key_line(theme: Theme, width: int, right: int, keys: tuple[Key, ...]) -> pygame.Surface:
    """Return the drawn line of keys; cached because drawing takes a millisecond and it rarely changes."""
    picture = pygame.Surface((width, theme.px(FOOTER_HEIGHT)), pygame.SRCALPHA, 32)
    draw_footer(picture, theme, fitting_keys(theme, width - right, keys))
    return picture


CARD_WIDTH, CARD_KEY_SCALE = 500, 1.45
"""Maximum width of a hint card at scale 1 [px], and the size of its keys relative to those of the key line."""
CARD_SHRINK, MIN_CARD_SCALE = 0.92, 0.45
"""Factor by which a card shrinks until it fits, and its lower limit."""


@dataclass(frozen=True)
class HintCard:
    """A card with what to press, in large letters, and a short text.

    keys: keys and what they do, side by side.
    footer: keys in small letters below the text.
    progress: number of this hint, from 1, and of all hints; (0, 0) without.
    done: what the hint asks for is done; it gets a green check mark.
    """

    keys: tuple[Key, ...] = ()
    text: str = ""
    title: str = ""
    footer: tuple[Key, ...] = ()
    progress: tuple[int, int] = (0, 0)
    done: bool = False

    def draw(self, surface: pygame.Surface, theme: Theme, area: pygame.Rect, at_top: bool = False) -> pygame.Rect:
        """Draw the card at the bottom or top of an area, as large as it fits; return its place."""
        picture = _card(theme, self, max(1, area.width), max(1, area.height))
        place = picture.get_rect(midtop=area.midtop) if at_top else picture.get_rect(midbottom=area.midbottom)
        surface.blit(picture, place)
        return place


@lru_cache(maxsize=8)
def _card(theme: Theme, card: HintCard, width: int, height: int) -> pygame.Surface:
    """Return the picture of a card; cached, because it is drawn in every frame and rarely changes."""
    shrink = 1.0
    picture = _card_at(theme, card, width)
    while (picture.get_width() > width or picture.get_height() > height) and shrink > MIN_CARD_SCALE:
        shrink *= CARD_SHRINK
        picture = _card_at(Theme(theme.scale * shrink, theme.palette), card, width)
    return picture


def _card_at(theme: Theme, card: HintCard, width: int) -> pygame.Surface:
    """Return the picture of a card in the size of a theme; its text is wrapped to a width [px]."""
    large = Theme(theme.scale * CARD_KEY_SCALE, theme.palette)
    pad, gap = theme.px(PADDING * 1.3), theme.px(8)
    lines = theme.wrapped(card.text, max(1, min(theme.px(CARD_WIDTH), width - 2 * pad))) if card.text else []
    number = f"{card.progress[0]} / {card.progress[1]}" if card.progress[1] else ""
    heights = [
        theme.line_height(TEXT_SMALL) + gap // 2 if card.title else 0,
        large.px(26) + gap if card.keys else 0,
        len(lines) * (theme.line_height() + theme.px(4)),
        theme.px(26) + gap // 2 if card.footer else 0,
    ]
    check = theme.px(30) if card.done else 0
    widths = [
        theme.width(card.title, TEXT_SMALL) + theme.width(f"   {number}", TEXT_SMALL),
        _keys_width(large, card.keys) + check if card.keys else 0,
        max((theme.width(line) for line in lines), default=0),
        _keys_width(theme, card.footer) if card.footer else 0,
    ]
    picture = theme.panel(max(widths) + 2 * pad, sum(heights) + 2 * pad)
    accent = theme.palette.good if card.done else theme.palette.accent
    edge = pygame.Rect(0, 0, theme.px(5), picture.get_height())
    pygame.draw.rect(picture, accent, edge, border_radius=theme.px(2))
    x, y = pad, pad
    if card.title:
        picture.blit(theme.text(card.title, TEXT_SMALL, accent), (x, y))
        count = theme.text(number, TEXT_SMALL, theme.palette.faint)
        picture.blit(count, (picture.get_width() - pad - count.get_width(), y))
        y += heights[0]
    if card.keys:
        end = _draw_large_keys(picture, large, card.keys, x, y + large.px(13))
        if card.done:
            points = [(end + theme.px(px), y + large.px(py)) for px, py in ((0, 13), (7, 19), (20, 5))]
            pygame.draw.lines(picture, theme.palette.good, False, points, theme.px(4))
        y += heights[1]
    for line in lines:
        picture.blit(theme.text(line), (x, y))
        y += theme.line_height() + theme.px(4)
    if card.footer:
        _draw_large_keys(picture, theme, card.footer, x, y + gap // 2 + theme.px(13))
    return picture


def _draw_large_keys(surface: pygame.Surface, theme: Theme, keys: Sequence[Key], x: int, centre: int) -> int:
    """Draw keys with what they do in one line; return the x where they end [px]."""
    for key, does in keys:
        x += draw_key_cap(surface, theme, key, x, centre) + theme.px(WORD_GAP)
        text = theme.text(does, TEXT_SMALL)
        surface.blit(text, (x, centre - text.get_height() // 2))
        x += text.get_width() + theme.px(KEY_GAP)
    return x - theme.px(KEY_GAP) + theme.px(10)
