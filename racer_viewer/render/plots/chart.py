"""Chart: one pair of axes with its content, drawn once and shown many times."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_viewer.render.overlays.panel import blend
from racer_viewer.render.plots.axes import Axes, quantity, rounded_limits, tick_step, ticks_within
from racer_viewer.render.plots.drawing import (
    COARSE,
    FINE,
    FLAG_DISTANCE,
    LANE,
    dashed,
    draw_areas,
    draw_dots,
    draw_flags,
    draw_line,
    draw_poles,
    placed_marks,
    stepped,
)
from racer_viewer.render.plots.series import ChartLine, Content, Dots, Stack, moving_average, moving_averages, stacked
from racer_viewer.translation import _
from racer_viewer.ui.theme import PADDING, TEXT_SMALL, Colour, Theme

Floats = NDArray[np.float64]

TICK_TEXT = 16
"""Text height of the axis labels at scale 1 [px]."""
EDGE = 6
"""Space above and below at scale 1 [px]."""
TICK_WIDTH, TICK_HEIGHT = 52, 30
"""Smallest tick interval on either axis at scale 1 [px]."""
MIN_LEGEND_HEIGHT = 150
"""Smallest chart height with a legend at scale 1 [px]."""
RAW_SHADE, AREA_SHADE, ARROW_SHADE = 0.38, 0.62, 0.7
"""Colour share of elements in the background."""
FRAME_SHADE, GRID_SHADE = 0.28, 0.7
"""Share of the line colour in the frame and the grid."""
MAX_SMOOTHING = 0.99
MIN_OUTLINED_HEIGHT = 3.0
"""Smallest height of an area that has an outline, as a multiple of the outline's width."""
LINE_WIDTH, RAW_WIDTH, OUTLINE_WIDTH = 1.9, 1.0, 1.0
DOT_RADIUS = 1.6
"""Dot radius at scale 1 [px]."""
ARROW = 4
"""Size of the arrow for values outside the frame, at scale 1 [px]."""
INSET = 3
"""Distance from the edge of the frame to the ends of the axes, at scale 1 [px]."""
SWATCH = 8
"""Size of a legend swatch at scale 1 [px]."""


class Chart:
    """Picture of a content in a given size.

    span: steps at both ends.
    smoothing: weight of the past in moving averages, 0 to 0.99.
    at_once: draw the whole picture now; otherwise it is empty and `draw_part` draws it piece by piece.

    Outliers may lie outside the frame; a small arrow at its edge marks them.
    """

    def __init__(
        self,
        theme: Theme,
        size: tuple[int, int],
        content: Content,
        span: tuple[float, float],
        smoothing: float = 0.6,
        at_once: bool = True,
    ) -> None:
        self.theme, self.content = theme, content
        self.smoothing = min(MAX_SMOOTHING, max(0.0, smoothing))
        self._smooth: dict[ChartLine | Stack, Floats] = {}
        self.picture = theme.panel(*size)
        self.axes, self._value_step = self._fitted_axes(size, span)
        self.marks = placed_marks(content.marks, self.axes, theme.px(FLAG_DISTANCE))
        self._parts = self._drawn_parts()
        while at_once and self.draw_part():
            pass

    def draw_part(self) -> bool:
        """Draw the next part of the picture, about a millisecond of work; return False when it is complete."""
        return next(self._parts, False)

    def smoothed(self, line: ChartLine) -> Floats:
        """Return the values drawn in the foreground for a line."""
        if not line.smooth or not self.smoothing:
            return line.ys
        if line not in self._smooth:
            self._smooth[line] = moving_average(line.ys, self.smoothing)
        return self._smooth[line]

    def smoothed_parts(self, stack: Stack) -> Floats:
        if stack not in self._smooth:
            parts = moving_averages(stack.parts, self.smoothing) if self.smoothing else stack.parts
            self._smooth[stack] = parts
        return self._smooth[stack]

    def _drawn_parts(self) -> Iterator[bool]:
        """Draw the picture, yielding between parts."""
        self._draw_title(self.picture.get_width())
        if self.axes.frame.width <= 0 or self.axes.frame.height <= 0:
            return
        self._draw_frame()
        self.picture.set_clip(self.axes.frame)
        draw_poles(self.picture, self.theme, self.marks, self.axes.frame)
        yield True
        yield from self._draw_values()
        self.picture.set_clip(None)
        draw_flags(self.picture, self.theme, self.marks, self.axes.frame)

    def _fitted_axes(self, size: tuple[int, int], span: tuple[float, float]) -> tuple[Axes, float]:
        """Return the axes in the space that labels leave, and the tick interval of the values."""
        px, small = self.theme.px, self.theme.line_height(TICK_TEXT)
        top = px(EDGE) + self.theme.line_height(TEXT_SMALL) + px(2)
        if self._has_legend(size):
            top += self.theme.line_height(TICK_TEXT) + px(2)
        top += px(LANE) if self.content.marks else small // 2
        bottom = size[1] - px(EDGE) - small - px(2)
        low, high, step = self._value_limits(max(2, (bottom - top) // px(TICK_HEIGHT)))
        labels = [self.content.unit.tick(value, step) for value in ticks_within(low, high, step)]
        widest = 0 if self.content.is_empty else max(self.theme.width(label, TICK_TEXT) for label in labels)
        left = px(PADDING) + (widest + px(6) if widest else 0)
        frame = pygame.Rect(left, top, max(0, size[0] - px(PADDING) - left), max(0, bottom - top))
        return Axes(frame, span, low, high, px(INSET)), step

    def _value_limits(self, most: int) -> tuple[float, float, float]:
        values = [line.ys for line in self.content.lines if not line.stepped] + [dots.ys for dots in self.content.dots]
        if self.content.stack is not None:
            values += [ends[:, -1] for ends in stacked(self.smoothed_parts(self.content.stack))]
        together = np.concatenate(values) if values else np.zeros(0)
        together = together[np.isfinite(together)]
        limits = self.content.limits(together) if len(together) else ()
        reached = (*limits, *self.content.include) or (0.0, 1.0)
        return rounded_limits(min(reached), max(reached), most)

    def _has_legend(self, size: tuple[int, int]) -> bool:
        return bool(self.content.legend) and size[1] >= self.theme.px(MIN_LEGEND_HEIGHT)

    def _draw_title(self, width: int) -> None:
        """Draw the name at the left, the latest values at the right and the legend below."""
        px, theme = self.theme.px, self.theme
        left, right, top = px(PADDING), width - px(PADDING), px(EDGE)
        title = theme.truncate(_(self.content.title), right - left, TEXT_SMALL)
        drawn = theme.text(title, TEXT_SMALL, theme.palette.faint)
        self.picture.blit(drawn, (left, top))
        for text, colour in reversed(self.content.latest):
            words = theme.text(text, TEXT_SMALL, colour)
            right -= words.get_width()
            if right < left + drawn.get_width() + px(6):
                break
            self.picture.blit(words, (right, top))
            right -= px(8)
        if self._has_legend(self.picture.get_size()):
            self._draw_legend(left, width - px(PADDING), top + theme.line_height(TEXT_SMALL) + px(2))

    def _draw_legend(self, left: int, right: int, top: int) -> None:
        px, height = self.theme.px, self.theme.line_height(TICK_TEXT)
        for name, colour in self.content.legend:
            words = self.theme.text(name, TICK_TEXT, self.theme.palette.text)
            width = px(SWATCH + 4) + words.get_width()
            if left + width > right:
                break
            swatch = pygame.Rect(left, top + (height - px(SWATCH)) // 2, px(SWATCH), px(SWATCH))
            pygame.draw.rect(self.picture, colour, swatch, border_radius=px(2))
            self.picture.blit(words, (left + px(SWATCH + 4), top))
            left += width + px(10)

    def _draw_frame(self) -> None:
        """Draw background, grid and labels."""
        theme, frame, palette = self.theme, self.axes.frame, self.theme.palette
        behind = palette.panel[:3]
        self.picture.fill(blend(behind, palette.line, FRAME_SHADE), frame)
        grid = blend(behind, palette.line, GRID_SHADE)
        if self.content.is_empty:
            said = theme.text(theme.truncate(_(self.content.empty), frame.width, TEXT_SMALL), TEXT_SMALL, palette.faint)
            self.picture.blit(said, said.get_rect(center=frame.center))
            return
        for value in ticks_within(self.axes.low, self.axes.high, self._value_step):
            y = round(self.axes.y(value))
            self.picture.fill(palette.line if not value else grid, (frame.left, y, frame.width, 1))
            label = theme.text(self.content.unit.tick(value, self._value_step), TICK_TEXT, palette.faint)
            self.picture.blit(label, (frame.left - theme.px(5) - label.get_width(), y - label.get_height() // 2))
        self._draw_steps(grid)

    def _draw_steps(self, grid: Colour) -> None:
        frame, (first, last) = self.axes.frame, self.axes.span
        step = tick_step(last - first, max(1, frame.width // self.theme.px(TICK_WIDTH)))
        top = frame.bottom + self.theme.px(2)
        end, values = 0, ticks_within(first, last, step)
        for value in values:
            x = round(self.axes.x(value))
            self.picture.fill(grid, (x, frame.top, 1, frame.height))
            said = quantity(value, step)
            if value == values[-1] and value:
                full = _(self.content.along).format(steps=said)
                fits = self._label_left(x, self.theme.width(full, TICK_TEXT)) >= end + self.theme.px(6)
                said = full if fits else said
            label = self.theme.text(said, TICK_TEXT, self.theme.palette.faint)
            end = self.picture.blit(label, (self._label_left(x, label.get_width()), top)).right

    def _label_left(self, x: int, width: int) -> int:
        """Return the left edge of a label centred below its tick, kept inside the chart."""
        edge = self.theme.px(4)
        return max(edge, min(x - width // 2, self.picture.get_width() - edge - width))

    def _draw_values(self) -> Iterator[bool]:
        if self.content.stack is not None:
            yield from self._draw_stack(self.content.stack)
        for dots in self.content.dots:
            self._draw_dots(dots)
            yield True
        for line in self.content.lines:
            if line.smooth and self.smoothing:
                faint = blend(self.theme.palette.panel[:3], line.colour, RAW_SHADE)
                self._draw_line(line, line.ys, faint, RAW_WIDTH, COARSE)
                yield True
        for line in self.content.lines:
            self._draw_line(line, self.smoothed(line), line.colour, LINE_WIDTH)
            self._draw_arrows(line.colour, line.xs, line.ys)
            yield True

    def _draw_line(self, line: ChartLine, ys: Floats, colour: Colour, width: float, slices: int = FINE) -> None:
        there = np.isfinite(ys) if line.joined or line.stepped else slice(None)
        xs, rows = self.axes.xs(line.xs[there]), self.axes.ys(ys[there])
        if line.stepped and len(xs):
            xs, rows = stepped(xs, rows)
        if line.dash:
            xs, rows = dashed(xs, rows, self.theme.px(line.dash))
        draw_line(self.picture, colour, xs, rows, width * self.theme.scale, slices)

    def _draw_dots(self, dots: Dots) -> None:
        inside = np.isfinite(dots.ys) & (self.axes.outside(dots.ys) == 0.0)
        xs, ys = self.axes.xs(dots.xs[inside]), self.axes.ys(dots.ys[inside])
        draw_dots(self.picture, dots.colour, xs, ys, self.theme.px(DOT_RADIUS))
        faint = blend(self.theme.palette.panel[:3], dots.colour, ARROW_SHADE)
        self._draw_arrows(faint, dots.xs, dots.ys)

    def _draw_stack(self, stack: Stack) -> Iterator[bool]:
        """Draw stacked areas; the first value counts from step 0, because it is a mean since then."""
        if not len(stack.xs):
            return
        frame, behind = self.axes.frame, self.theme.palette.panel[:3]
        columns, base = np.arange(frame.left, frame.right), round(self.axes.y(0.0))
        places = self.axes.xs(np.concatenate([[min(self.axes.span[0], stack.xs[0])], stack.xs]))
        faint = tuple(blend(behind, colour, AREA_SHADE) for colour in stack.colours)
        for ends in stacked(self.smoothed_parts(stack)):
            rows = self.axes.ys(np.vstack([ends[:1], ends]))
            edges = np.stack([np.interp(columns, places, row, left=np.nan, right=np.nan) for row in rows.T], axis=1)
            draw_areas(self.picture, faint, columns, edges, base)
            yield True
            starts = np.hstack([np.full((len(edges), 1), base), edges[:, :-1]])
            heights = np.nan_to_num(np.abs(edges - starts))
            outlines, width = np.where(heights >= 0.5, edges, np.nan), OUTLINE_WIDTH * self.theme.scale
            for number in np.flatnonzero(heights.max(axis=0) >= MIN_OUTLINED_HEIGHT * width).tolist():
                colour = stack.colours[number]
                draw_line(self.picture, colour, columns.astype(np.float64), outlines[:, number], width, COARSE)
                yield True

    def _draw_arrows(self, colour: Colour, steps: Floats, values: Floats) -> None:
        """Draw arrows where values are above or below the frame, one for values close to each other."""
        outside, size, frame = self.axes.outside(values), self.theme.px(ARROW), self.axes.frame
        for side, edge, inwards in ((1.0, frame.top, size), (-1.0, frame.bottom - 1, -size)):
            places = np.unique(self.axes.xs(steps[outside == side]) // (2 * size))
            for x in ((places + 0.5) * (2 * size)).tolist():
                pygame.draw.polygon(
                    self.picture, colour, [(x, edge), (x - size, edge + inwards), (x + size, edge + inwards)]
                )
