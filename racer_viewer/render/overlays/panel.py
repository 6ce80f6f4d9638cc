"""What all panels have: a plate with everything that does not move, and a board to draw the rest on."""

from __future__ import annotations

from dataclasses import dataclass

import pygame

from racer_viewer.render.overlays.history import History
from racer_viewer.render.overlays.letters import Letters
from racer_viewer.snapshot import Snapshot
from racer_viewer.ui.theme import PADDING, TEXT_SMALL, Colour

WIDTH = 232
"""Of every panel, at scale 1 [px]."""
ROW = 16
"""From one line of small letters to the next, at scale 1 [px]."""
EDGE = 9
"""Free at the top and at the bottom, at scale 1 [px]."""
BAR = 8
"""Thickness of a bar, at scale 1 [px]."""


@dataclass(frozen=True, eq=False)
class View:
    """What panels show. units: in which speeds are given, of `speed.SPEED_UNITS`."""

    snapshot: Snapshot
    history: History
    units: str


class Panel:
    """A panel of fixed size, `height` at scale 1 [px].

    Places are in pixels of the panel; `left` and `right` bound what is in it. What nobody can read 60 times a second
    is drawn anew only in every so many frames, `EVERY`; `PHASE` spreads such panels over different frames.
    """

    EVERY = 1
    PHASE = 0

    def __init__(self, letters: Letters, height: float) -> None:
        self.letters, self.theme, self.palette = letters, letters.theme, letters.theme.palette
        self.px = self.theme.px
        self.size = self.px(WIDTH), self.px(height)
        self.left, self.right, self.top = self.px(PADDING), self.size[0] - self.px(PADDING), self.px(EDGE)
        self.row, self.bar_height = self.px(ROW), self.px(BAR)
        self.plate = self.theme.panel(*self.size)
        self._drawn: pygame.Surface | None = None
        self._age: int | None = None

    def draw(self, board: pygame.Surface, view: View) -> None:
        """Onto a board of the panel's size."""
        self.prepare(view)
        if self.EVERY == 1:
            board.blit(self.plate, (0, 0))
            self.draw_moving(board, view)
        else:
            board.blit(self._recently_drawn(view), (0, 0))

    def forget(self) -> None:
        """What was drawn is out of date: the panel was not shown for a while."""
        self._age = None

    def prepare(self, view: View) -> None:
        """Bring the plate up to date, where something on it changes seldom."""

    def draw_moving(self, board: pygame.Surface, view: View) -> None:
        """What differs from frame to frame, onto a board that has the plate on it."""

    def _recently_drawn(self, view: View) -> pygame.Surface:
        if self._drawn is None:
            self._drawn = pygame.Surface(self.size, pygame.SRCALPHA, 32)
        if self._age is None or self._age >= self.EVERY:
            self._age = self.PHASE if self._age is None else 0
            self._drawn.fill((0, 0, 0, 0))
            self._drawn.blit(self.plate, (0, 0), special_flags=pygame.BLEND_RGBA_ADD)
            self.draw_moving(self._drawn, view)
        self._age += 1
        return self._drawn

    def title(self, text: str, note: str = "") -> None:
        """On the plate, in the first row."""
        self.letters.word(self.plate, text, self.left, self.top, self.palette.faint)
        self.letters.word_to(self.plate, note, self.right, self.top, self.palette.faint)

    def bar_in_row(self, left: int, top: int, width: int) -> pygame.Rect:
        """The place of a bar in the middle of the row that starts at `top`."""
        middle = top + self.theme.line_height(TEXT_SMALL) // 2
        return pygame.Rect(left, middle - self.bar_height // 2, width, self.bar_height)

    def groove(self, bar: pygame.Rect) -> None:
        """On the plate: where a bar can be."""
        self.plate.fill(self.palette.line, bar)


def fill_bar(board: pygame.Surface, bar: pygame.Rect, share: float, colour: Colour) -> None:
    """From the left, so much of its length."""
    board.fill(colour, (bar.left, bar.top, round(bar.width * min(1.0, max(0.0, share))), bar.height))


def fill_signed_bar(board: pygame.Surface, bar: pygame.Rect, share: float, colour: Colour) -> None:
    """From the middle, to the right if positive; ±1 is the end."""
    length = round(bar.width / 2 * min(1.0, abs(share)))
    board.fill(colour, (bar.centerx if share > 0.0 else bar.centerx - length, bar.top, length, bar.height))


def blend(a: Colour, b: Colour, share: float) -> Colour:
    """A colour between two; 0 is the first."""
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue
