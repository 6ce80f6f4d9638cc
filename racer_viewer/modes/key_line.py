"""The keys of a screen in one line along the bottom: as many as fit, the most important first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pygame

from racer_viewer.modes.screen import Key
from racer_viewer.ui.paint import FOOTER_HEIGHT, footer, key_cap_width
from racer_viewer.ui.theme import MARGIN, TEXT_SMALL, Theme

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
    footer(picture, theme, fitting_keys(theme, width, keys))
    return picture
