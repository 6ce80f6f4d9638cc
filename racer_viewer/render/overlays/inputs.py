"""Speed panel, and inputs panel: requested against actual steering, throttle and brake."""

from __future__ import annotations

import numpy as np
import pygame

from racer_env.engine.car import MAX_SPEED
from racer_viewer.render.overlays.panel import (
    EDGE,
    INPUT_SECONDS,
    INPUT_TICKS,
    ROW,
    Floats,
    Panel,
    PanelInput,
    TextPainter,
    blend,
    fill_bar,
    fill_signed_bar,
)
from racer_viewer.timing import signed
from racer_viewer.translation import _, mark
from racer_viewer.ui.theme import TEXT_SMALL, Colour

SPEED_UNITS = {"units/s": 1.0, "km/h": 3.6, "mph": 2.236936}
"""Conversion factors from units/s; one unit is one metre."""
SPEED_HEIGHT, SPEED_COMPACT_HEIGHT = 70, 44
DIGITS, COMPACT_DIGITS = 62, 44
"""Text heights of the speed, at scale 1 [px]."""
SEGMENTS = 16
SEGMENT_GAP = 2
LOWEST_SEGMENT = 0.3
"""Height of the first segment relative to the last."""
SMOOTHING = 4


class SpeedPanel(Panel):
    """Speed as digits and as a ramp of segments up to the top speed. The compact form is lower and unlabelled."""

    EVERY, PHASE = 2, 1

    def __init__(self, painter: TextPainter, compact: bool) -> None:
        super().__init__(painter, SPEED_COMPACT_HEIGHT if compact else SPEED_HEIGHT)
        self._digits = COMPACT_DIGITS if compact else DIGITS
        self._digits_end = self.left + painter.number_width("000", self._digits)
        small = self.theme.line_height(TEXT_SMALL)
        self._digits_top = (self.size[1] - self.theme.font(self._digits).get_ascent()) // 2 - self.px(2)
        left = self._digits_end + self.px(12)
        self._unit_top = self.size[1] - self.px(EDGE - 1) - small
        bottom = self._unit_top - self.px(3)
        self.ramp = pygame.Rect(left, self.top, self.right - left, bottom - self.top)
        """Area of the segments; its full width is the top speed."""
        self.plate.blit(_ramp(self.ramp.size, self.palette.line), self.ramp)
        self._lit = _ramp(self.ramp.size, self.palette.accent)
        self._scale = not compact

    def draw_moving(self, board: pygame.Surface, view: PanelInput) -> None:
        speed, factor = float(view.snapshot.car["speed"]), SPEED_UNITS[view.units]
        self.painter.number(
            board, f"{speed * factor:.0f}", self._digits_end, self._digits_top, self.palette.text, self._digits
        )
        lit = round(self.ramp.width * min(1.0, speed / MAX_SPEED))
        board.blit(self._lit, self.ramp, (0, 0, lit, self.ramp.height))
        faint, top = self.palette.faint, self._unit_top
        self.painter.text(board, view.units, self.ramp.left, top, faint)
        if self._scale:
            self.painter.number(board, f"{MAX_SPEED * factor:.0f}", self.right, top, faint)


def _ramp(size: tuple[int, int], colour: Colour) -> pygame.Surface:
    """Return segments side by side, each higher than the one before, with smooth edges."""
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


NAMES = (mark("steer"), mark("throttle"), mark("brake"))
TRACE_HEIGHT = 46
COMPACT_HEIGHT = 2 * EDGE + 4 * ROW
HEIGHT = COMPACT_HEIGHT + TRACE_HEIGHT + 6
LABEL_WIDTH, LABEL_GAP, FIGURE = 60, 4, "+100 %"
"""Width of the labels with the gap to their bars at scale 1 [px], and the widest number right of a bar."""
MARKER = 5
"""Width of the marker of the requested value, at scale 1 [px]."""
RAW_SHADE = 0.45
"""Opacity of the trace of requested values."""


class InputsPanel(Panel):
    """Bar per input with a hollow marker at the requested value, and traces. The compact form has no traces.

    In the traces, steering right is up and braking goes down from the middle.
    """

    EVERY, PHASE = 3, 0

    def __init__(self, painter: TextPainter, compact: bool) -> None:
        super().__init__(painter, COMPACT_HEIGHT if compact else HEIGHT)
        self.colours: tuple[Colour, ...] = (self.palette.accent, self.palette.good, self.palette.bad)
        self.title(_("INPUTS"))
        self._draw_legend()
        left = self.left + self.px(LABEL_WIDTH)
        width = self.right - painter.number_width(FIGURE) - self.px(4) - left
        self.bars = [self.bar_in_row(left, self._row_top(row), width) for row in range(len(NAMES))]
        """Bars of steer, throttle and brake; steering to the right fills right of the middle."""
        for row, (name, bar) in enumerate(zip(NAMES, self.bars, strict=True)):
            width = self.px(LABEL_WIDTH - LABEL_GAP)
            painter.label(self.plate, _(name), self.left, self._row_top(row), width, self.palette.text)
            painter.text_right(self.plate, "%", self.right, self._row_top(row), self.palette.faint)
            self.groove(bar)
        self._figure_end = self.right - self.theme.width(" %", TEXT_SMALL)
        steer = self.bars[0]
        self.plate.fill(self.palette.faint, (steer.centerx, steer.top - self.px(2), 1, steer.height + 2 * self.px(2)))
        self._trace = None if compact else self._trace_frame()

    def draw_moving(self, board: pygame.Surface, view: PanelInput) -> None:
        car = view.snapshot.car
        done = float(car["steer"]), float(car["throttle"]), float(car["brake"])
        asked = car["action"].tolist()
        fill_signed_bar(board, self.bars[0], done[0], self.colours[0])
        for row in (1, 2):
            fill_bar(board, self.bars[row], done[row], self.colours[row])
        for row, (bar, value, requested) in enumerate(zip(self.bars, done, asked, strict=True)):
            text = signed(100.0 * value, 0) if row == 0 else f"{100.0 * value:.0f}"
            self.painter.number(board, text, self._figure_end, self._row_top(row), self.palette.text)
            self._draw_marker(board, bar, (requested + 1.0) / 2.0 if row == 0 else requested)
        if self._trace is not None:
            self._draw_traces(board, self._trace, view.history.asked, view.history.done)

    def _draw_legend(self) -> None:
        """Draw the legend: a filled marker for the car, a hollow one for the driver."""
        right = self.right
        for word, hollow in ((_("asked"), True), (_("car"), False)):
            self.painter.text_right(self.plate, word, right, self.top, self.palette.faint)
            right -= self.theme.width(word, TEXT_SMALL) + self.px(MARKER + 4)
            mark = self.bar_in_row(right, self.top, self.px(MARKER))
            pygame.draw.rect(self.plate, self.palette.text, mark, self.px(1) if hollow else 0)
            right -= self.px(10)

    def _draw_marker(self, board: pygame.Surface, bar: pygame.Rect, share: float) -> None:
        middle = bar.left + round(bar.width * min(1.0, max(0.0, share)))
        width, over = self.px(MARKER), self.px(2)
        mark = pygame.Rect(middle - width // 2, bar.top - over, width, bar.height + 2 * over)
        pygame.draw.rect(board, self.palette.text, mark, self.px(1))

    def _trace_frame(self) -> pygame.Rect:
        top = self._row_top(len(NAMES)) + self.px(4)
        frame = pygame.Rect(self.left, top, self.right - self.left, self.px(TRACE_HEIGHT))
        self.plate.fill(blend(self.palette.panel[:3], self.palette.line, 0.5), frame)
        self.plate.fill(self.palette.line, (frame.left, frame.centery, frame.width, 1))
        bottom = frame.bottom - self.theme.line_height(TEXT_SMALL)
        self.painter.text(self.plate, f"{INPUT_SECONDS} s", frame.left + self.px(4), bottom, self.palette.faint)
        return frame

    def _draw_traces(self, board: pygame.Surface, frame: pygame.Rect, asked: Floats, done: Floats) -> None:
        """Draw requested values thin and dark, actual values bright."""
        half = (frame.height - self.px(3)) / 2.0
        xs = (frame.left + np.arange(INPUT_TICKS) * ((frame.width - 1) / (INPUT_TICKS - 1))).tolist()
        for rows, shade, width in ((asked, RAW_SHADE, 1), (done, 1.0, self.px(1.5))):
            ys = frame.centery - np.clip(rows, -1.0, 1.0) * (half, half, -half)
            for number in (2, 1, 0):
                colour = blend(self.palette.panel[:3], self.colours[number], shade)
                pygame.draw.lines(board, colour, False, list(zip(xs, ys[:, number].tolist(), strict=True)), width)

    def _row_top(self, row: int) -> int:
        return self.top + (row + 1) * self.row + self.px(2)
