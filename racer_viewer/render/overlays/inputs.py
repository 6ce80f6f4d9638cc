"""What the driver asks for against what the car makes of it."""

from __future__ import annotations

import numpy as np
import pygame

from racer_viewer.render.overlays.history import INPUT_SECONDS, INPUT_TICKS, Floats
from racer_viewer.render.overlays.letters import Letters
from racer_viewer.render.overlays.panel import EDGE, ROW, Panel, View, blend, fill_bar, fill_signed_bar
from racer_viewer.render.overlays.times import signed
from racer_viewer.ui.theme import TEXT_SMALL, Colour

NAMES = ("steer", "throttle", "brake")
TRACE_HEIGHT = 46
COMPACT_HEIGHT = 2 * EDGE + 4 * ROW
HEIGHT = COMPACT_HEIGHT + TRACE_HEIGHT + 6
LABEL_WIDTH, FIGURE = 60, "+100 %"
"""Room for names at scale 1 [px], and the widest figure right of a bar."""
MARKER = 5
"""Width of the mark of what was asked for, at scale 1 [px]."""
RAW_SHADE = 0.45
"""How much of its colour the trace of what was asked for has."""


class InputsPanel(Panel):
    """A bar for each input, with a hollow mark at what was asked for, and traces. Compact, it has no traces.

    In the traces right is up; the brake goes down from the middle.
    """

    EVERY, PHASE = 3, 0

    def __init__(self, letters: Letters, compact: bool) -> None:
        super().__init__(letters, COMPACT_HEIGHT if compact else HEIGHT)
        self.colours: tuple[Colour, ...] = (self.palette.accent, self.palette.good, self.palette.bad)
        self.title("INPUTS")
        self._draw_legend()
        left = self.left + self.px(LABEL_WIDTH)
        width = self.right - letters.figure_width(FIGURE) - self.px(4) - left
        self.bars = [self.bar_in_row(left, self._row_top(row), width) for row in range(len(NAMES))]
        """Places of the bars of steer, throttle and brake; right of the middle is steering to the right."""
        for row, (name, bar) in enumerate(zip(NAMES, self.bars, strict=True)):
            letters.word(self.plate, name, self.left, self._row_top(row), self.palette.text)
            letters.word_to(self.plate, "%", self.right, self._row_top(row), self.palette.faint)
            self.groove(bar)
        self._figure_end = self.right - self.theme.width(" %", TEXT_SMALL)
        steer = self.bars[0]
        self.plate.fill(self.palette.faint, (steer.centerx, steer.top - self.px(2), 1, steer.height + 2 * self.px(2)))
        self._trace = None if compact else self._trace_frame()

    def draw_moving(self, board: pygame.Surface, view: View) -> None:
        car = view.snapshot.car
        done = float(car["steer"]), float(car["throttle"]), float(car["brake"])
        asked = car["action"].tolist()
        fill_signed_bar(board, self.bars[0], done[0], self.colours[0])
        for row in (1, 2):
            fill_bar(board, self.bars[row], done[row], self.colours[row])
        for row, (bar, value, wish) in enumerate(zip(self.bars, done, asked, strict=True)):
            text = signed(100.0 * value, 0) if row == 0 else f"{100.0 * value:.0f}"
            self.letters.figure(board, text, self._figure_end, self._row_top(row), self.palette.text)
            self._draw_marker(board, bar, (wish + 1.0) / 2.0 if row == 0 else wish)
        if self._trace is not None:
            self._draw_traces(board, self._trace, view.history.asked, view.history.done)

    def _draw_legend(self) -> None:
        """Filled: the car. Hollow: the driver."""
        right = self.right
        for word, hollow in (("asked", True), ("car", False)):
            self.letters.word_to(self.plate, word, right, self.top, self.palette.faint)
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
        self.letters.word(self.plate, f"{INPUT_SECONDS} s", frame.left + self.px(4), bottom, self.palette.faint)
        return frame

    def _draw_traces(self, board: pygame.Surface, frame: pygame.Rect, asked: Floats, done: Floats) -> None:
        """Thin and dark what was asked for, bright what the car did."""
        half = (frame.height - self.px(3)) / 2.0
        xs = (frame.left + np.arange(INPUT_TICKS) * ((frame.width - 1) / (INPUT_TICKS - 1))).tolist()
        for rows, shade, width in ((asked, RAW_SHADE, 1), (done, 1.0, self.px(1.5))):
            ys = frame.centery - np.clip(rows, -1.0, 1.0) * (half, half, -half)
            for number in (2, 1, 0):
                colour = blend(self.palette.panel[:3], self.colours[number], shade)
                pygame.draw.lines(board, colour, False, list(zip(xs, ys[:, number].tolist(), strict=True)), width)

    def _row_top(self, row: int) -> int:
        return self.top + (row + 1) * self.row + self.px(2)
