"""Drawing functions shared by screens: headings, key caps, status lines, progress bars, shades."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import pygame

from racer_viewer.ui.theme import MARGIN, PADDING, TEXT, TEXT_HUGE, TEXT_LARGE, TEXT_SMALL, Colour, Theme

FOOTER_HEIGHT = 40
"""Height of the line of keys at the bottom, at scale 1 [px]."""
BAR_WIDTH, BAR_HEIGHT = 420, 10
"""Size of a progress bar in the middle of a window, at scale 1 [px]."""
STATUS_HEIGHT, WORD_GAP = 26, 18
"""Height of the status line at the top, and distance between its words, at scale 1 [px]."""
ColouredWords = Sequence[tuple[str, Colour]]
"""Texts with their colours, drawn side by side."""
MIN_SUBTITLE_SHRINK = 0.45
"""Smallest part of the scale to which letters of a subtitle shrink before it is shortened."""
MEDAL_SMOOTHING = 4
"""Supersampling factor of medals."""
CAP = (46, 54, 60)
CAP_EDGE = (84, 94, 100)
SHADE = (6, 9, 12)
_ARROWS = {
    "Left": ((0.62, 0.2), (0.62, 0.8), (0.22, 0.5)),
    "Right": ((0.38, 0.2), (0.38, 0.8), (0.78, 0.5)),
    "Up": ((0.2, 0.66), (0.8, 0.66), (0.5, 0.26)),
    "Down": ((0.2, 0.34), (0.8, 0.34), (0.5, 0.74)),
}


def draw_key_cap(surface: pygame.Surface, theme: Theme, name: str, x: int, centre: int) -> int:
    """Draw keys as on a keyboard and return their width [px]; `name` is one key or several, separated by blanks."""
    start = x
    for part in name.split():
        if part in ("or", "to", "/"):
            text = theme.text(part, TEXT_SMALL, theme.palette.faint)
            surface.blit(text, (x, centre - text.get_height() // 2))
            x += text.get_width() + theme.px(4)
            continue
        height = theme.px(22)
        width = height if part in _ARROWS else max(height, theme.width(part, TEXT_SMALL) + theme.px(12))
        cap = pygame.Rect(x, centre - height // 2, width, height)
        pygame.draw.rect(surface, CAP, cap, border_radius=theme.px(5))
        pygame.draw.rect(surface, CAP_EDGE, cap, theme.px(1), border_radius=theme.px(5))
        if part in _ARROWS:
            points = [(cap.x + px * width, cap.y + py * height) for px, py in _ARROWS[part]]
            pygame.draw.polygon(surface, theme.palette.text, points)
        else:
            text = theme.text(part, TEXT_SMALL)
            surface.blit(text, text.get_rect(center=cap.center))
        x += width + theme.px(4)
    return x - start


def key_cap_width(theme: Theme, name: str) -> int:
    """Return the width of what `draw_key_cap` draws [px]."""
    width = 0
    for part in name.split():
        letters = theme.width(part, TEXT_SMALL)
        if part in ("or", "to", "/"):
            width += letters + theme.px(4)
        else:
            cap = theme.px(22) if part in _ARROWS else max(theme.px(22), letters + theme.px(12))
            width += cap + theme.px(4)
    return width


def draw_footer(surface: pygame.Surface, theme: Theme, keys: Sequence[tuple[str, str]]) -> None:
    """Draw the keys of a screen along the bottom, as many as fit."""
    height = theme.px(FOOTER_HEIGHT)
    area = pygame.Rect(0, surface.get_height() - height, surface.get_width(), height)
    surface.blit(shade(area.size, 190), area)
    x = theme.px(MARGIN)
    for key, does in keys:
        width = key_cap_width(theme, key) + theme.px(4) + theme.width(does, TEXT_SMALL)
        if x + width > area.width - theme.px(MARGIN):
            break
        draw_key_cap(surface, theme, key, x, area.centery)
        text = theme.text(does, TEXT_SMALL, theme.palette.faint)
        surface.blit(text, (x + width - text.get_width(), area.centery - text.get_height() // 2))
        x += width + theme.px(20)


def draw_status_line(surface: pygame.Surface, theme: Theme, left: ColouredWords, right: ColouredWords = ()) -> None:
    """Draw a dark line of text along the top, in smaller letters where not everything fits.

    Words that do not fit at all are cut, from the right of those at the left.
    """
    height, room = theme.px(STATUS_HEIGHT), surface.get_width()
    surface.blit(shade((room, height), 190), (0, 0))
    texts = [text for text, _colour in (*left, *right)]
    theme = theme.fitting(lambda smaller: _words_width(smaller, texts) + 2 * smaller.px(MARGIN) <= room)
    gap, margin = theme.px(WORD_GAP), theme.px(MARGIN)
    end = surface.get_width() - margin
    for text, colour in reversed(right):
        words = theme.text(text, TEXT_SMALL, colour)
        end -= words.get_width()
        surface.blit(words, (end, (height - words.get_height()) // 2))
        end -= gap
    x = margin
    for text, colour in left:
        fitting = theme.truncate(text, end - x, TEXT_SMALL) if end > x else ""
        words = theme.text(fitting, TEXT_SMALL, colour)
        surface.blit(words, (x, (height - words.get_height()) // 2))
        x += words.get_width() + gap


def _words_width(theme: Theme, texts: Sequence[str]) -> int:
    return sum(theme.width(text, TEXT_SMALL) for text in texts) + theme.px(WORD_GAP) * max(0, len(texts) - 1)


def draw_heading(surface: pygame.Surface, theme: Theme, title: str, subtitle: str = "") -> int:
    """Draw a title at the top left and return the y where it ends [px]."""
    x, y = theme.px(MARGIN * 3), theme.px(MARGIN * 2.2)
    text = theme.text(title, TEXT_LARGE)
    surface.blit(text, (x, y))
    y += text.get_height()
    pygame.draw.rect(surface, theme.palette.accent, (x, y + theme.px(4), theme.px(44), theme.px(4)))
    y += theme.px(16)
    if subtitle:
        room = surface.get_width() - 2 * x
        smaller = theme.fitting(lambda smaller: smaller.width(subtitle) <= room, MIN_SUBTITLE_SHRINK)
        line = smaller.text(smaller.truncate(subtitle, room), TEXT, theme.palette.faint)
        surface.blit(line, (x, y))
        y += line.get_height()
    return y + theme.px(PADDING)


def draw_centred(
    surface: pygame.Surface, theme: Theme, text: str, y: int, size: int = TEXT_HUGE, colour: Colour | None = None
) -> None:
    """Draw a horizontally centred line with a dark outline, readable on any background."""
    room = surface.get_width() - 2 * theme.px(MARGIN)
    smaller = theme.fitting(lambda smaller: smaller.width(text, size) <= room)
    line, dark = smaller.text(text, size, colour), smaller.text(text, size, SHADE)
    x = (surface.get_width() - line.get_width()) // 2
    edge = max(1, line.get_height() // 24)
    for dx, dy in ((-edge, 0), (edge, 0), (0, -edge), (0, edge), (edge, edge)):
        surface.blit(dark, (x + dx, y + dy))
    surface.blit(line, (x, y))


def draw_medal(surface: pygame.Surface, colour: Colour, centre: tuple[int, int], radius: int) -> None:
    """Draw a medal: a coin with a rim, light from the upper left and a star."""
    picture = _medal(colour, max(1, radius))
    surface.blit(picture, picture.get_rect(center=centre))


@lru_cache(maxsize=64)
def _medal(colour: Colour, radius: int) -> pygame.Surface:
    large = MEDAL_SMOOTHING * radius
    picture = pygame.Surface((2 * large + 2,) * 2, pygame.SRCALPHA, 32)
    picture.fill((*darker(colour), 0))  # so that its edge gets no dark fringe
    middle = large, large
    pygame.draw.circle(picture, darker(colour), middle, large)
    pygame.draw.circle(picture, colour, middle, 0.9 * large)
    pygame.draw.circle(picture, darker(colour), middle, 0.78 * large)
    light = [round(part + (255 - part) * 0.35) for part in colour]
    pygame.draw.circle(picture, light, middle, 0.74 * large, draw_top_left=True)
    pygame.draw.circle(picture, colour, (large * 1.03, large * 1.03), 0.72 * large)
    star = [
        (
            large + math.sin(point * math.pi / 5.0) * large * (0.22, 0.5)[point % 2 == 0],
            large - math.cos(point * math.pi / 5.0) * large * (0.22, 0.5)[point % 2 == 0],
        )
        for point in range(10)
    ]
    pygame.draw.polygon(picture, darker(colour), star)
    return pygame.transform.smoothscale(picture, (2 * radius, 2 * radius))


def darker(colour: Colour) -> Colour:
    red, green, blue = (part * 3 // 4 for part in colour)
    return red, green, blue


def draw_progress_bar(surface: pygame.Surface, theme: Theme, centre: tuple[int, int], width: int, share: float) -> None:
    """Draw a progress bar; `share` is the completed part, 0 to 1."""
    bar = pygame.Rect(0, 0, width, theme.px(BAR_HEIGHT))
    bar.center = centre
    pygame.draw.rect(surface, theme.palette.line, bar, border_radius=bar.height // 2)
    bar.width = max(bar.height, round(bar.width * share))
    pygame.draw.rect(surface, theme.palette.accent, bar, border_radius=bar.height // 2)


def draw_notice(surface: pygame.Surface, theme: Theme, text: str, bottom: int) -> None:
    """Draw a notice in place of the line of keys, which ends at `bottom`."""
    strip = _notice(theme, text, surface.get_width())
    surface.blit(strip, strip.get_rect(bottomleft=(0, bottom)))


@lru_cache(maxsize=4)
def _notice(theme: Theme, text: str, width: int) -> pygame.Surface:
    """Return a strip with a text of one line or, in smaller letters, of as many as it needs."""
    strip = pygame.Surface((width, theme.px(FOOTER_HEIGHT)), depth=32)
    strip.fill(theme.palette.panel[:3])
    strip.fill(theme.palette.accent, (0, 0, theme.px(5), strip.get_height()))
    margin, room = theme.px(MARGIN), width - 2 * theme.px(MARGIN)
    size = TEXT if theme.width(text) <= room else TEXT_SMALL

    def fits(smaller: Theme) -> bool:
        return len(smaller.wrapped(text, room, size)) * smaller.line_height(size) <= strip.get_height()

    smaller = theme.fitting(fits)
    lines, pitch = smaller.wrapped(text, room, size), smaller.line_height(size)
    for number, line in enumerate(lines):
        strip.blit(smaller.text(line, size), (margin, (strip.get_height() - len(lines) * pitch) // 2 + number * pitch))
    return strip


@lru_cache(maxsize=8)
def shade(size: tuple[int, int], darkness: int) -> pygame.Surface:
    """Return a dark layer that makes text readable over a picture; darkness is 0 to 255."""
    surface = pygame.Surface(size, pygame.SRCALPHA, 32)
    surface.fill((*SHADE, darkness))
    return surface


SIDE_DARKNESS, SIDE_FADE = 232, 0.8
"""Darkness below a menu at the left, 0 to 255, and width in which it fades beside it, as a share of the menu's."""


@lru_cache(maxsize=4)
def side_shade(size: tuple[int, int], width: int) -> pygame.Surface:
    """Return a layer that is dark at the left, below a menu of this width [px], and clear at the right."""
    strip = pygame.Surface((size[0], 1), pygame.SRCALPHA, 32)
    for x in range(size[0]):
        share = min(1.0, max(0.0, 1.0 - (x / width - 0.75) / (SIDE_FADE + 0.25)))
        strip.set_at((x, 0), (*SHADE, round(SIDE_DARKNESS * share * share * (3.0 - 2.0 * share))))
    return pygame.transform.scale(strip, size)
