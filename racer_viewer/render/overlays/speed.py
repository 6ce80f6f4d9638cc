"""The speedometer."""

from __future__ import annotations

import pygame

from racer_env.engine.car import MAX_SPEED
from racer_viewer.render.overlays.letters import Letters
from racer_viewer.render.overlays.panel import EDGE, Panel, View
from racer_viewer.ui.theme import TEXT_SMALL, Colour

SPEED_UNITS = {"units/s": 1.0, "km/h": 3.6, "mph": 2.236936}
"""What a speed of 1 unit/s is; a unit is a metre."""
HEIGHT, COMPACT_HEIGHT = 70, 44
DIGITS, COMPACT_DIGITS = 62, 44
"""Heights of letters at scale 1 [px]."""
SEGMENTS = 16
SEGMENT_GAP = 2
LOWEST_SEGMENT = 0.3
"""Height of the first segment, of that of the last."""
SMOOTHING = 4


class SpeedPanel(Panel):
    """Digits, and a ramp of segments up to the top speed. Compact, it is lower and its ramp has no figures."""

    EVERY, PHASE = 2, 1

    def __init__(self, letters: Letters, compact: bool) -> None:
        super().__init__(letters, COMPACT_HEIGHT if compact else HEIGHT)
        self._digits = COMPACT_DIGITS if compact else DIGITS
        self._digits_end = self.left + letters.figure_width("000", self._digits)
        small = self.theme.line_height(TEXT_SMALL)
        self._digits_top = (self.size[1] - self.theme.font(self._digits).get_ascent()) // 2 - self.px(2)
        left = self._digits_end + self.px(12)
        self._unit_top = self.size[1] - self.px(EDGE - 1) - small
        bottom = self._unit_top - self.px(3)
        self.ramp = pygame.Rect(left, self.top, self.right - left, bottom - self.top)
        """Where the segments are; its whole width is the top speed."""
        self.plate.blit(_ramp(self.ramp.size, self.palette.line), self.ramp)
        self._lit = _ramp(self.ramp.size, self.palette.accent)
        self._scale = not compact

    def draw_moving(self, board: pygame.Surface, view: View) -> None:
        speed, factor = float(view.snapshot.car["speed"]), SPEED_UNITS[view.units]
        self.letters.figure(
            board, f"{speed * factor:.0f}", self._digits_end, self._digits_top, self.palette.text, self._digits
        )
        lit = round(self.ramp.width * min(1.0, speed / MAX_SPEED))
        board.blit(self._lit, self.ramp, (0, 0, lit, self.ramp.height))
        faint, top = self.palette.faint, self._unit_top
        self.letters.word(board, view.units, self.ramp.left, top, faint)
        if self._scale:
            self.letters.figure(board, f"{MAX_SPEED * factor:.0f}", self.right, top, faint)


def _ramp(size: tuple[int, int], colour: Colour) -> pygame.Surface:
    """Segments side by side, each higher than the one before, with smooth edges."""
    width, height = size[0] * SMOOTHING, size[1] * SMOOTHING
    canvas = pygame.Surface((width, height), pygame.SRCALPHA, 32)
    canvas.fill((*colour, 0))
    pitch = width / SEGMENTS
    gap = pitch * SEGMENT_GAP / (size[0] / SEGMENTS)
    for number in range(SEGMENTS):
        left, right = number * pitch, (number + 1) * pitch - (gap if number < SEGMENTS - 1 else 0.0)
        tops = [height * (1.0 - LOWEST_SEGMENT) * (1.0 - x / width) for x in (left, right)]
        pygame.draw.polygon(canvas, colour, [(left, height), (left, tops[0]), (right, tops[1]), (right, height)])
    return pygame.transform.smoothscale(canvas, size)
