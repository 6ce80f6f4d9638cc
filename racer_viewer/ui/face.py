"""Letters of one size. pygame's freetype sets them evenly, where its plain font module leaves gaps at small sizes."""

from __future__ import annotations

import pygame
import pygame.freetype

Colour = tuple[int, int, int]

EM = 0.6875
"""Height of an em, of the size that is asked for: as pygame's fonts take it."""


class Face:
    """pygame's own typeface. All lines of one size have the same height and baseline."""

    def __init__(self, size: int) -> None:
        pygame.freetype.init()
        self._em = EM * size
        self._font = pygame.freetype.Font(None, self._em)
        self._font.kerning = False
        self._font.pad = True

    def render(self, text: str, colour: Colour) -> pygame.Surface:
        return self._font.render(text or " ", colour)[0]

    def size(self, text: str) -> tuple[int, int]:
        return self._font.get_rect(text or " ").size

    def get_height(self) -> int:
        return self._font.get_rect("X").height

    def get_ascent(self) -> int:
        """From the top of a line to its baseline [px]."""
        return self._font.get_sized_ascender(self._em)
