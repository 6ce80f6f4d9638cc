"""Agent panel: expected return, action spread and input sensitivity of the policy that drives the followed car."""

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
    Floats,
    Panel,
    PanelInput,
    StableAxis,
    TextPainter,
    blend,
    fill_bar,
    round_up,
)
from racer_viewer.snapshot import PolicyInsight
from racer_viewer.timing import NO_TIME, signed
from racer_viewer.translation import _, mark
from racer_viewer.ui.theme import TEXT, TEXT_SMALL, Colour

ACTIONS = (mark("steer"), mark("throttle"), mark("brake"))
OTHER_INPUTS = (mark("speed"), mark("yaw"), mark("steer"), mark("lap"), mark("centre"))
"""Names of the observation entries after the rays, in order."""
ACTION_RANGES = np.array([2.0, 1.0, 1.0])
INPUT_RANGES = np.array([1.0] * RAY_COUNT + [1.0, 2.0, 2.0, 1.0, 1.0])
"""Width of the value range of each action and each observation entry."""
TRACE_HEIGHT, TRACE_POINTS = 30, 90
EXPECTED_HEIGHT = TRACE_HEIGHT + 6
SPREAD_HEIGHT = (len(ACTIONS) + 1) * ROW + 4
MATTERS_HEIGHT = (len(OTHER_INPUTS) + 1) * ROW
HEIGHT = 2 * EDGE + ROW + EXPECTED_HEIGHT + SPREAD_HEIGHT + MATTERS_HEIGHT
COMPACT_HEIGHT = 2 * EDGE + 2 * ROW + MATTERS_HEIGHT
EMPTY_HEIGHT = 2 * EDGE + ROW - 3
LABEL_WIDTH, FIGURE_WIDTH, LABEL_GAP = 56, 44, 4
"""Space left and right of the action bars, and between a label and its bar, at scale 1 [px]."""
INPUT_LABEL_WIDTH, INPUT_FIGURE_WIDTH = 46, 20
"""Space left and right of the input bars, at scale 1 [px]."""
FAN_WIDTH, FAN_GAP = 92, 10
"""Width of the ray fan and the gap to its right, at scale 1 [px]."""
FAN_INNER, FAN_SPACE = 0.24, 0.16
"""Inner radius of the fan as a share of its radius; gap between two rays as a share of the angle between them."""
LEVELS = 16
"""Number of shades of a ray."""
MIN_SPREAD_REACH, MIN_SHARE_REACH = 0.1, 0.2
"""Smallest reach of the spread and share axes."""
SMOOTHING = 4


class EmptyAgentPanel(Panel):
    """Placeholder panel for a car that no agent drives."""

    def __init__(self, painter: TextPainter) -> None:
        super().__init__(painter, EMPTY_HEIGHT)
        self.painter.text(self.plate, _("no agent drives this car"), self.left, self.top, self.palette.faint)


class AgentPanel(Panel):
    """Value, spread and sensitivity of a policy. The compact form omits the value trace and the action spread."""

    EVERY, PHASE = 4, 0

    def __init__(self, painter: TextPainter, compact: bool) -> None:
        super().__init__(painter, COMPACT_HEIGHT if compact else HEIGHT)
        self.title(_("AGENT"))
        self.spread_axis, self.share_axis = StableAxis(MIN_SPREAD_REACH), StableAxis(MIN_SHARE_REACH, 1.0)
        top = self.top + self.row
        self._value_top = top
        if compact:
            painter.text(self.plate, _("expected return"), self.left, top, self.palette.text)
        else:
            painter.label(self.plate, _("return"), self.left, top, self.px(LABEL_WIDTH), self.palette.text)
        self._trace = None if compact else self._trace_frame(top)
        top += self.row if compact else self.px(EXPECTED_HEIGHT)
        self.spread_bars: list[pygame.Rect] = []
        """Bars of steer, throttle and brake."""
        self._spread_top = top
        if not compact:
            painter.text(self.plate, _("spread of actions"), self.left, top, self.palette.faint)
            self.spread_bars = self._labelled_bars(ACTIONS, self.left, top + self.row, LABEL_WIDTH, FIGURE_WIDTH)
            top += self.px(SPREAD_HEIGHT)
        self._matters_top = top
        painter.text(self.plate, _("key inputs"), self.left, top, self.palette.faint)
        self._fan_middle = self.left + self.px(FAN_WIDTH) // 2, top + self.row + self.px(FAN_WIDTH) // 2
        self.share_bars = self._labelled_bars(
            OTHER_INPUTS,
            self.left + self.px(FAN_WIDTH + FAN_GAP),
            top + self.row,
            INPUT_LABEL_WIDTH,
            INPUT_FIGURE_WIDTH,
        )
        """Bars of the observation entries after the rays."""
        self._rays: dict[tuple[int, int], tuple[pygame.Surface, tuple[int, int]]] = {}

    def draw_moving(self, board: pygame.Surface, view: PanelInput) -> None:
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
            self.painter.number(board, known, self.right, self._value_top, self.palette.text)
        else:
            end = self.left + self.px(LABEL_WIDTH)
            top = self._value_top + self.row - self.px(1)
            self.painter.number(board, known, end, top, self.palette.text, TEXT)

    def _draw_trace(self, board: pygame.Surface, frame: pygame.Rect, values: Floats) -> None:
        """Draw the value trace, scaled to its range in the shown seconds and at least to a tenth of its value."""
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
            self.painter.text_right(board, _("not known"), self.right, self._spread_top, self.palette.faint)
            return
        reach = self.spread_axis.cover(float(spread.max()))
        self.painter.text_right(
            board, _("0 to {reach:g}").format(reach=reach), self.right, self._spread_top, self.palette.faint
        )
        for bar, value in zip(self.spread_bars, spread.tolist(), strict=True):
            fill_bar(board, bar, value / reach, self.palette.series[1])
            self.painter.number(board, f"±{value:.2f}", self.right, self._beside(bar), self.palette.text)

    def _draw_shares(self, board: pygame.Surface, parts: Floats) -> None:
        reach = self.share_axis.cover(float(parts.max()))
        self.painter.text_right(
            board, _("0 to {reach:g} %").format(reach=100.0 * reach), self.right, self._matters_top, self.palette.faint
        )
        fan = [
            self._ray(number, round(share / reach * LEVELS)) for number, share in enumerate(parts[:RAY_COUNT].tolist())
        ]
        board.fblits(fan)
        rays = _("rays {share:.0f} %").format(share=100.0 * float(parts[:RAY_COUNT].sum()))
        drawn = self.theme.text(rays, TEXT_SMALL, self.palette.text)
        board.blit(drawn, (self._fan_middle[0] - drawn.get_width() // 2, self._fan_middle[1] + self.px(5)))
        for bar, share in zip(self.share_bars, parts[RAY_COUNT:].tolist(), strict=True):
            fill_bar(board, bar, share / reach, self.palette.accent)
            self.painter.number(board, f"{100.0 * share:.0f}", self.right, self._beside(bar), self.palette.text)

    def _trace_frame(self, top: int) -> pygame.Rect:
        left = self.left + self.px(LABEL_WIDTH + 12)
        frame = pygame.Rect(left, top, self.right - left, self.px(TRACE_HEIGHT))
        self.plate.fill(blend(self.palette.panel[:3], self.palette.line, 0.5), frame)
        self.painter.text_right(
            self.plate,
            _("normalised return, {seconds} s").format(seconds=SECONDS),
            self.right,
            self.top,
            self.palette.faint,
        )
        return frame

    def _labelled_bars(
        self, names: tuple[str, ...], left: int, top: int, label_width: int, figure_width: int
    ) -> list[pygame.Rect]:
        """Draw labels on the plate and return their bars, one per row, with space for a number at the right."""
        start = left + self.px(label_width)
        bars = []
        for row, name in enumerate(names):
            width = start - left - self.px(LABEL_GAP)
            self.painter.label(self.plate, _(name), left, top + row * self.row, width, self.palette.text)
            bar = self.bar_in_row(start, top + row * self.row, self.right - self.px(figure_width) - start)
            self.groove(bar)
            bars.append(bar)
        return bars

    def _beside(self, bar: pygame.Rect) -> int:
        """Return the top of small text in the row of a bar."""
        return bar.centery - self.theme.line_height(TEXT_SMALL) // 2

    def _ray(self, number: int, level: int) -> tuple[pygame.Surface, tuple[int, int]]:
        """Return the sprite of a ray in one shade, and its position."""
        if (number, level) not in self._rays:
            colour = blend(self.palette.line, self.palette.accent, level / LEVELS)
            picture, (x, y) = _wedge(float(RAY_ANGLES[number]), self.px(FAN_WIDTH) / 2.0, colour)
            self._rays[number, level] = picture, (self._fan_middle[0] + x, self._fan_middle[1] + y)
        return self._rays[number, level]


def shares(thought: PolicyInsight) -> Floats:
    """Return the share of each observation entry in the policy's sensitivity, (14,), summing to 1.

    An entry's effect is the change of each action, relative to the action's range, for a change of the entry over its
    whole range, extrapolated from the gradient at this observation.
    """
    effects = (np.abs(thought.sensitivity) / ACTION_RANGES[:, None]).sum(axis=0) * INPUT_RANGES
    return np.asarray(effects / max(float(effects.sum()), 1e-12), np.float64)


def _wedge(angle: float, radius: float, colour: Colour) -> tuple[pygame.Surface, tuple[int, int]]:
    """Return an anti-aliased ray sprite and its offset from the fan's centre; ahead is up, left is positive."""
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
