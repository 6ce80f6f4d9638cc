"""What the agent that drives makes of what it sees: what it expects, how sure it is, and what matters to it."""

from __future__ import annotations

import math

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine.rays import RAY_ANGLES, RAY_COUNT
from racer_viewer.render.overlays.panel import (
    EDGE,
    ROW,
    SECONDS,
    TICKS,
    CalmAxis,
    Floats,
    Letters,
    Panel,
    View,
    blend,
    fill_bar,
    round_up,
)
from racer_viewer.snapshot import PolicyInsight
from racer_viewer.timing import NO_TIME, signed
from racer_viewer.ui.theme import TEXT, TEXT_SMALL, Colour

ACTIONS = ("steer", "throttle", "brake")
OTHER_INPUTS = ("speed", "yaw", "steer", "lap", "centre")
"""The inputs after the rays, in their order."""
ACTION_RANGES = np.array([2.0, 1.0, 1.0])
INPUT_RANGES = np.array([1.0] * RAY_COUNT + [1.0, 2.0, 2.0, 1.0, 1.0])
"""From the least to the greatest that an action or an input can be."""
TRACE_HEIGHT, TRACE_POINTS = 30, 90
EXPECTED_HEIGHT = TRACE_HEIGHT + 6
SPREAD_HEIGHT = (len(ACTIONS) + 1) * ROW + 4
MATTERS_HEIGHT = (len(OTHER_INPUTS) + 1) * ROW
HEIGHT = 2 * EDGE + ROW + EXPECTED_HEIGHT + SPREAD_HEIGHT + MATTERS_HEIGHT
COMPACT_HEIGHT = 2 * EDGE + 2 * ROW + MATTERS_HEIGHT
EMPTY_HEIGHT = 2 * EDGE + ROW - 3
LABEL_WIDTH, FIGURE_WIDTH = 56, 44
"""Left and right of the bars of the actions, at scale 1 [px]."""
INPUT_LABEL_WIDTH, INPUT_FIGURE_WIDTH = 46, 20
"""The same of the bars of the inputs."""
FAN_WIDTH, FAN_GAP = 92, 10
"""The fan of the rays, and what is free right of it, at scale 1 [px]."""
FAN_INNER, FAN_SPACE = 0.24, 0.16
"""The hole of the fan, of its radius; and what is left free between two rays, of the angle between them."""
LEVELS = 16
"""Shades of a ray."""
LEAST_SPREAD, LEAST_SHARE = 0.1, 0.2
"""Where the axes end at least."""
SMOOTHING = 4


class NobodyPanel(Panel):
    """Where no agent drives."""

    def __init__(self, letters: Letters) -> None:
        super().__init__(letters, EMPTY_HEIGHT)
        self.letters.word(self.plate, "no agent drives this car", self.left, self.top, self.palette.faint)


class AgentPanel(Panel):
    """Compact, it has neither the trace of what is expected nor the spread of the actions."""

    EVERY, PHASE = 4, 0

    def __init__(self, letters: Letters, compact: bool) -> None:
        super().__init__(letters, COMPACT_HEIGHT if compact else HEIGHT)
        self.title("AGENT")
        self.spread_axis, self.share_axis = CalmAxis(LEAST_SPREAD), CalmAxis(LEAST_SHARE, 1.0)
        top = self.top + self.row
        self._value_top = top
        letters.word(self.plate, "expects", self.left, top, self.palette.text)
        self._trace = None if compact else self._trace_frame(top)
        top += self.row if compact else self.px(EXPECTED_HEIGHT)
        self.spread_bars: list[pygame.Rect] = []
        """Of steer, throttle and brake."""
        self._spread_top = top
        if not compact:
            letters.word(self.plate, "spread of actions", self.left, top, self.palette.faint)
            self.spread_bars = self._labelled_bars(ACTIONS, self.left, top + self.row, LABEL_WIDTH, FIGURE_WIDTH)
            top += self.px(SPREAD_HEIGHT)
        self._matters_top = top
        letters.word(self.plate, "matters now", self.left, top, self.palette.faint)
        self._fan_middle = self.left + self.px(FAN_WIDTH) // 2, top + self.row + self.px(FAN_WIDTH) // 2
        self.share_bars = self._labelled_bars(
            OTHER_INPUTS,
            self.left + self.px(FAN_WIDTH + FAN_GAP),
            top + self.row,
            INPUT_LABEL_WIDTH,
            INPUT_FIGURE_WIDTH,
        )
        """Of the inputs after the rays."""
        self._rays: dict[tuple[int, int], tuple[pygame.Surface, tuple[int, int]]] = {}

    def draw_moving(self, board: pygame.Surface, view: View) -> None:
        thought = view.snapshot.insight
        if thought is None:
            return
        self._draw_value(board, thought.value)
        if self._trace is not None:
            self._draw_trace(board, self._trace, view.history.values)
            self._draw_spread(board, thought.spread)
        self._draw_shares(board, shares(thought))

    def _draw_value(self, board: pygame.Surface, value: float | None) -> None:
        known = NO_TIME if value is None else signed(value)
        if self._trace is None:
            self.letters.figure(board, known, self.right, self._value_top, self.palette.text)
        else:
            end = self.left + self.px(LABEL_WIDTH)
            top = self._value_top + self.row - self.px(1)
            self.letters.figure(board, known, end, top, self.palette.text, TEXT)

    def _draw_trace(self, board: pygame.Surface, frame: pygame.Rect, values: Floats) -> None:
        """As high as the values of these seconds differ, and at least by a tenth of them."""
        points = values[:: TICKS // TRACE_POINTS]
        known = points[np.isfinite(points)]
        if len(known) < 2:
            return
        low, high = float(known.min()), float(known.max())
        reach = round_up(max(high - low, 0.1 * abs(high), 1e-3))
        low = math.floor(low / reach * 5.0) * reach / 5.0
        room = frame.height - self.px(3)
        ys = frame.bottom - self.px(2) - (known - low) / max(reach, high - low) * room
        step = (frame.width - 1) / (TRACE_POINTS - 1)
        xs = frame.right - 1 - step * np.arange(len(known) - 1, -1, -1)
        line = list(zip(xs.tolist(), np.maximum(ys, frame.top + 1).tolist(), strict=True))
        pygame.draw.lines(board, self.palette.accent, False, line, self.px(1.5))

    def _draw_spread(self, board: pygame.Surface, spread: NDArray[np.float32] | None) -> None:
        if spread is None:
            self.letters.word_to(board, "not known", self.right, self._spread_top, self.palette.faint)
            return
        reach = self.spread_axis.cover(float(spread.max()))
        self.letters.word_to(board, f"0 to {reach:g}", self.right, self._spread_top, self.palette.faint)
        for bar, value in zip(self.spread_bars, spread.tolist(), strict=True):
            fill_bar(board, bar, value / reach, self.palette.series[1])
            self.letters.figure(board, f"±{value:.2f}", self.right, self._beside(bar), self.palette.text)

    def _draw_shares(self, board: pygame.Surface, parts: Floats) -> None:
        reach = self.share_axis.cover(float(parts.max()))
        self.letters.word_to(board, f"0 to {100.0 * reach:g} %", self.right, self._matters_top, self.palette.faint)
        fan = [
            self._ray(number, round(share / reach * LEVELS)) for number, share in enumerate(parts[:RAY_COUNT].tolist())
        ]
        board.fblits(fan)
        rays = f"rays {100.0 * float(parts[:RAY_COUNT].sum()):.0f} %"
        drawn = self.theme.text(rays, TEXT_SMALL, self.palette.text)
        board.blit(drawn, (self._fan_middle[0] - drawn.get_width() // 2, self._fan_middle[1] + self.px(5)))
        for bar, share in zip(self.share_bars, parts[RAY_COUNT:].tolist(), strict=True):
            fill_bar(board, bar, share / reach, self.palette.accent)
            self.letters.figure(board, f"{100.0 * share:.0f}", self.right, self._beside(bar), self.palette.text)

    def _trace_frame(self, top: int) -> pygame.Rect:
        left = self.left + self.px(LABEL_WIDTH + 12)
        frame = pygame.Rect(left, top, self.right - left, self.px(TRACE_HEIGHT))
        self.plate.fill(blend(self.palette.panel[:3], self.palette.line, 0.5), frame)
        self.letters.word_to(self.plate, f"normalised return, {SECONDS} s", self.right, self.top, self.palette.faint)
        return frame

    def _labelled_bars(
        self, names: tuple[str, ...], left: int, top: int, label_width: int, figure_width: int
    ) -> list[pygame.Rect]:
        """Names on the plate and the places of their bars, one in each row, with room for a figure right of them."""
        start = left + self.px(label_width)
        bars = []
        for row, name in enumerate(names):
            self.letters.word(self.plate, name, left, top + row * self.row, self.palette.text)
            bar = self.bar_in_row(start, top + row * self.row, self.right - self.px(figure_width) - start)
            self.groove(bar)
            bars.append(bar)
        return bars

    def _beside(self, bar: pygame.Rect) -> int:
        """The top of small letters in the row of a bar."""
        return bar.centery - self.theme.line_height(TEXT_SMALL) // 2

    def _ray(self, number: int, level: int) -> tuple[pygame.Surface, tuple[int, int]]:
        """A ray of the fan in one of its shades, and where it lies."""
        if (number, level) not in self._rays:
            colour = blend(self.palette.line, self.palette.accent, level / LEVELS)
            picture, (x, y) = _wedge(float(RAY_ANGLES[number]), self.px(FAN_WIDTH) / 2.0, colour)
            self._rays[number, level] = picture, (self._fan_middle[0] + x, self._fan_middle[1] + y)
        return self._rays[number, level]


def shares(thought: PolicyInsight) -> Floats:
    """(14,) how much each input has to say now, all together 1.

    That is how far it could move the actions: what a change over the whole range of the input would do to each of
    them, as part of the action's range, if all went on as it does here.
    """
    effects = (np.abs(thought.sensitivity) / ACTION_RANGES[:, None]).sum(axis=0) * INPUT_RANGES
    return np.asarray(effects / max(float(effects.sum()), 1e-12), np.float64)


def _wedge(angle: float, radius: float, colour: Colour) -> tuple[pygame.Surface, tuple[int, int]]:
    """A smooth ray of the fan, and its place against the fan's middle; ahead is up, left is positive."""
    half = math.pi / (RAY_COUNT - 1) * (1.0 - FAN_SPACE) / 2.0
    turns = np.linspace(angle - half, angle + half, 7) + math.pi / 2.0
    arc = np.stack([np.cos(turns), -np.sin(turns)], axis=1) * radius
    corners = np.vstack([arc, arc[::-1] * FAN_INNER])
    low, high = np.floor(corners.min(axis=0)), np.ceil(corners.max(axis=0)) + 1
    width, height = (high - low).astype(int).tolist()
    canvas = pygame.Surface((width * SMOOTHING, height * SMOOTHING), pygame.SRCALPHA, 32)
    canvas.fill((*colour, 0))
    pygame.draw.polygon(canvas, colour, ((corners - low) * SMOOTHING).tolist())
    return pygame.transform.smoothscale(canvas, (width, height)), (int(low[0]), int(low[1]))
