"""Words and figures of one theme."""

from __future__ import annotations

import pygame

from racer_viewer.ui.theme import TEXT_SMALL, Colour, Theme

SIGNS = "+−±"


class Letters:
    """Sets words and figures on a board.

    Figures are set sign by sign, all digits at the same distance and to the right: a number that changes every tick
    does not jump, and each glyph is rendered once.
    """

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self._glyphs: dict[tuple[int, Colour], dict[str, tuple[pygame.Surface, int]]] = {}
        self._fitted: dict[tuple[str, int, int], str] = {}

    def word(
        self, board: pygame.Surface, text: str, left: int, top: int, colour: Colour, size: int = TEXT_SMALL
    ) -> None:
        board.blit(self.theme.text(text, size, colour), (left, top))

    def word_to(
        self, board: pygame.Surface, text: str, right: int, top: int, colour: Colour, size: int = TEXT_SMALL
    ) -> None:
        """A word that ends at `right`."""
        drawn = self.theme.text(text, size, colour)
        board.blit(drawn, (right - drawn.get_width(), top))

    def figure(
        self, board: pygame.Surface, text: str, right: int, top: int, colour: Colour, size: int = TEXT_SMALL
    ) -> None:
        """A number that ends at `right`."""
        glyphs = self._glyphs.get((size, colour))
        if glyphs is None:
            glyphs = self._glyphs[size, colour] = {}
        placed = []
        for sign in reversed(text):
            if sign not in glyphs:
                glyphs[sign] = self._glyph(sign, size, colour)
            glyph, pitch = glyphs[sign]
            right -= pitch
            placed.append((glyph, (right, top)))
        board.fblits(placed)

    def figure_width(self, text: str, size: int = TEXT_SMALL) -> int:
        return sum(self._pitch(sign, size) for sign in text)

    def fitted(self, text: str, width: int, size: int = TEXT_SMALL) -> str:
        """As much of a text as there is room for; what is cut off is marked."""
        key = text, width, size
        if key not in self._fitted:
            self._fitted[key] = self.theme.fitting(text, width, size)
        return self._fitted[key]

    def _glyph(self, sign: str, size: int, colour: Colour) -> tuple[pygame.Surface, int]:
        return self.theme.font(size).render(sign, colour), self._pitch(sign, size)

    def _pitch(self, sign: str, size: int) -> int:
        """Distance from one sign to the next [px]."""
        alike = next((kind for kind in ("0123456789", SIGNS) if sign in kind), sign)
        return max(self.theme.width(each, size) for each in alike)
