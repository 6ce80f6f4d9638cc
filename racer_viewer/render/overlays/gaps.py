"""Who is how far ahead or behind."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pygame

from racer_viewer.render.overlays.letters import Letters
from racer_viewer.render.overlays.panel import EDGE, ROW, Panel, View
from racer_viewer.render.overlays.times import NONE, signed

ROWS, COMPACT_ROWS = 7, 3
"""The most cars that are listed."""
DOT = 4
"""Radius at scale 1 [px]."""


class GapsPanel(Panel):
    """A row for each of the nearest cars, from the one farthest ahead; this car's place among all of them above."""

    EVERY, PHASE = 4, 2

    def __init__(self, letters: Letters, rows: int) -> None:
        super().__init__(letters, 2 * EDGE + (rows + 1) * ROW - 2)
        self._rows = rows
        self.title("GAPS s")
        self._figure_width = letters.figure_width("+00.00")

    def draw_moving(self, board: pygame.Surface, view: View) -> None:
        snapshot, gaps = view.snapshot, view.snapshot.gaps
        ahead = sum(gap < 0.0 for number, gap in enumerate(gaps) if number != snapshot.focus)
        self.letters.word_to(board, f"place {ahead + 1} of {len(gaps)}", self.right, self.top, self.palette.text)
        name_left = self.left + self.px(3.5 * DOT)
        room = self.right - self._figure_width - self.px(6) - name_left
        for row, number in enumerate(nearest(gaps, snapshot.focus, self._rows), start=1):
            look, gap, top = snapshot.looks[number], gaps[number], self.top + row * self.row
            middle = top + self.theme.line_height() // 2 - self.px(1)
            pygame.draw.aacircle(
                board, look.colour, (self.left + self.px(DOT), middle), self.px(DOT), self.px(1.5) if look.ghost else 0
            )
            self.letters.word(board, self.letters.fitted(look.name, room), name_left, top, self.palette.text)
            known = signed(gap) if math.isfinite(gap) else NONE
            self.letters.figure(board, known, self.right, top, self.palette.text)


def nearest(gaps: Sequence[float], focus: int, rows: int) -> list[int]:
    """Numbers of the other cars with the smallest gaps, from the one farthest ahead; unknown gaps come last."""
    others = [number for number in range(len(gaps)) if number != focus]
    near = sorted(others, key=lambda number: _known_or_last(abs(gaps[number])))[:rows]
    return sorted(near, key=lambda number: _known_or_last(gaps[number]))


def _known_or_last(gap: float) -> float:
    return gap if math.isfinite(gap) else math.inf
