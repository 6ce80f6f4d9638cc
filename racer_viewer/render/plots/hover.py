"""Crosshair at the mouse, and a box with the values there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_viewer.render.overlays.panel import blend
from racer_viewer.render.plots.chart import SWATCH, TICK_TEXT, Chart
from racer_viewer.render.plots.drawing import colour_of
from racer_viewer.render.plots.series import ChartLine, Dots, Stack, Words
from racer_viewer.translation import _
from racer_viewer.ui.theme import Colour, Theme

Floats = NDArray[np.float64]

NEAR = 7
"""Largest distance at which a value counts as below the mouse, at scale 1 [px]."""
MISSING = "–"


@dataclass(frozen=True)
class Reading:
    """Formatted value. average: value of the moving average. point: position in pixels of the chart."""

    name: str
    text: str
    colour: Colour
    average: str = ""
    point: tuple[float, float] | None = None


def readings(chart: Chart, x: float, y: float) -> list[Reading]:
    """Return the values of everything the chart shows at a pixel of it."""
    content = chart.content
    found = [_line_reading(chart, line, x) for line in content.lines]
    found += [_dot_reading(chart, dots, x, y) for dots in content.dots]
    if content.stack is not None:
        found += _stack_readings(chart, content.stack, x)
    return found


def _line_reading(chart: Chart, line: ChartLine, x: float) -> Reading:
    there = np.flatnonzero(np.isfinite(line.ys)) if line.joined or line.stepped else np.arange(len(line.xs))
    xs = chart.axes.xs(line.xs[there])
    beyond = chart.theme.px(NEAR)
    nearest = _held(xs, x, beyond) if line.stepped else _nearest(xs, x, beyond)
    if nearest is None or not np.isfinite(line.ys[there[nearest]]):
        return Reading(line.name, MISSING, line.colour)
    index = there[nearest]
    drawn = chart.smoothed(line)
    read = chart.content.unit.read
    average = "" if drawn is line.ys else read(float(drawn[index]))
    point = x if line.stepped else float(xs[nearest]), chart.axes.y(float(drawn[index]))
    return Reading(line.name, read(float(line.ys[index])), line.colour, average, point)


def _dot_reading(chart: Chart, dots: Dots, x: float, y: float) -> Reading:
    """Return the nearest dot if it is near in both directions, else the nearest in time."""
    there, near = np.flatnonzero(np.isfinite(dots.ys)), 2 * chart.theme.px(NEAR)
    xs = chart.axes.xs(dots.xs[there])
    index = _nearest(xs, x, near)
    if index is None:
        return Reading(dots.name, MISSING, dots.colour)
    beside = np.flatnonzero(np.abs(xs - x) <= near)
    away = np.hypot(xs[beside] - x, chart.axes.ys(dots.ys[there[beside]]) - y)
    if len(away) and away.min() <= near:
        index = int(beside[np.argmin(away)])
    value = float(dots.ys[there[index]])
    return Reading(dots.name, chart.content.unit.read(value), dots.colour, "", (float(xs[index]), chart.axes.y(value)))


def _stack_readings(chart: Chart, stack: Stack, x: float) -> Iterator[Reading]:
    """Yield the values of the components that are not zero throughout the run."""
    index = _nearest(chart.axes.xs(stack.xs), x, chart.axes.frame.width)
    drawn, read = chart.smoothed_parts(stack), chart.content.unit.read
    for number, (name, colour) in enumerate(zip(stack.names, stack.colours, strict=True)):
        if not np.nan_to_num(stack.parts[:, number]).any():
            continue
        if index is None or not np.isfinite(stack.parts[index, number]):
            yield Reading(name, MISSING, colour)
        else:
            average = read(float(drawn[index, number])) if chart.smoothing else ""
            yield Reading(name, read(float(stack.parts[index, number])), colour, average)


def _nearest(xs: Floats, x: float, beyond: float) -> int | None:
    """Return the index nearest to x, or None if x is more than `beyond` outside the range."""
    if not len(xs) or not xs[0] - beyond <= x <= xs[-1] + beyond:
        return None
    return int(np.argmin(np.abs(xs - x)))


def _held(xs: Floats, x: float, beyond: float) -> int | None:
    """Return the last index at or before x, or None if x is more than `beyond` after the last."""
    if not len(xs) or x > xs[-1] + beyond:
        return None
    before = int(np.searchsorted(xs, x + 0.5, side="right")) - 1
    return before if before >= 0 else None


EDGE, OFF, GAP, CORNER = 7, 14, 10, 5
"""Padding of the box, distance to the mouse, column gap and corner radius, at scale 1 [px]."""
OPACITY = 236
NAME_SHARE = 0.6
"""Largest share of the width for names; longer names are cut."""
CROSSHAIR_SHADE = 0.55
RING, DOT = 4, 3
"""Radius of the mark at a value with and without its dark edge, at scale 1 [px]."""


def draw_crosshair(surface: pygame.Surface, chart: Chart, place: tuple[int, int], x: float, y: float | None) -> None:
    """Draw the crosshair of a chart at `place`, in pixels of the chart; without y only the vertical line."""
    frame = chart.axes.frame.move(place)
    colour = blend(chart.theme.palette.panel[:3], chart.theme.palette.text, CROSSHAIR_SHADE)
    surface.fill(colour, pygame.Rect(place[0] + round(x), frame.top, 1, frame.height).clip(frame))
    if y is not None:
        surface.fill(colour, pygame.Rect(frame.left, place[1] + round(y), frame.width, 1).clip(frame))


def draw_hover(
    surface: pygame.Surface, chart: Chart, place: tuple[int, int], mouse: tuple[int, int], within: pygame.Rect
) -> None:
    """Draw the crosshair, a ring around each value, and a box with all values inside the `within` rectangle."""
    x, y = mouse[0] - place[0], mouse[1] - place[1]
    draw_crosshair(surface, chart, place, x, y)
    found = readings(chart, x, y)
    frame, px = chart.axes.frame, chart.theme.px
    for reading in found:
        if reading.point is not None and frame.collidepoint(reading.point):
            centre = place[0] + round(reading.point[0]), place[1] + round(reading.point[1])
            pygame.draw.aacircle(surface, chart.theme.palette.panel[:3], centre, px(RING))
            pygame.draw.aacircle(surface, reading.colour, centre, px(DOT))
    box = _value_box(chart.theme, _notes(chart, x), found, within.size)
    area = box.get_rect(topleft=(mouse[0] + px(OFF), mouse[1] + px(OFF)))
    if area.right > within.right:
        area.right = mouse[0] - px(OFF)
    if area.bottom > within.bottom:
        area.bottom = mouse[1] - px(OFF)
    surface.blit(box, area.clamp(within))


def _notes(chart: Chart, x: float) -> Words:
    """Return the step and the events there."""
    palette = chart.theme.palette
    near = [(mark.text, colour_of(mark, palette)) for mark, at in chart.marks if abs(at - x) <= chart.theme.px(NEAR)]
    here = _(chart.content.along).format(steps=f"{chart.axes.steps_at(x):,.0f}")
    return [(here, palette.faint), *near]


@dataclass(frozen=True, eq=False)
class _Row:
    """Rendered text of a reading."""

    colour: Colour
    name: pygame.Surface
    value: pygame.Surface
    average: pygame.Surface | None

    @property
    def average_width(self) -> int:
        return self.average.get_width() if self.average else 0


def _value_box(theme: Theme, notes: Words, found: list[Reading], most: tuple[int, int]) -> pygame.Surface:
    """Return a box with the notes, and below them columns of names, values and averages, as many as fit."""
    px, edge = theme.px, theme.px(EDGE)
    height = theme.line_height(TICK_TEXT) + px(1)
    room = most[0] - 2 * edge
    heads = [theme.text(theme.truncate(text, room, TICK_TEXT), TICK_TEXT, colour) for text, colour in notes]
    rows = [_row(theme, reading, room) for reading in found[: max(0, (most[1] - 2 * edge) // height - len(heads))]]
    averages = max((row.average_width for row in rows), default=0)
    right = averages + px(GAP) if averages else 0
    width = max([*(head.get_width() for head in heads), _columns_width(theme, rows) + right])
    box = _plate(theme, (min(most[0], width + 2 * edge), min(most[1], 2 * edge + height * (len(heads) + len(rows)))))
    for number, head in enumerate(heads):
        box.blit(head, (edge, edge + number * height))
    for number, row in enumerate(rows, len(heads)):
        top, end = edge + number * height, box.get_width() - edge
        swatch = pygame.Rect(edge, top + (height - px(SWATCH)) // 2, px(SWATCH), px(SWATCH))
        pygame.draw.rect(box, row.colour, swatch, border_radius=px(2))
        box.blit(row.name, (edge + px(SWATCH + 4), top))
        box.blit(row.value, (end - right - row.value.get_width(), top))
        if row.average:
            box.blit(row.average, (end - row.average_width, top))
    return box


def _row(theme: Theme, reading: Reading, room: int) -> _Row:
    name = theme.truncate(reading.name or _("value"), round(NAME_SHARE * room), TICK_TEXT)
    average = (
        theme.text(_("avg {average}").format(average=reading.average), TICK_TEXT, theme.palette.faint)
        if reading.average
        else None
    )
    return _Row(reading.colour, theme.text(name, TICK_TEXT), theme.text(reading.text, TICK_TEXT), average)


def _columns_width(theme: Theme, rows: list[_Row]) -> int:
    """Return the width of names and values, including the gap between them."""
    if not rows:
        return 0
    names, values = max(row.name.get_width() for row in rows), max(row.value.get_width() for row in rows)
    return theme.px(SWATCH + 4) + names + theme.px(GAP) + values


def _plate(theme: Theme, size: tuple[int, int]) -> pygame.Surface:
    box = pygame.Surface(size, pygame.SRCALPHA, 32)
    pygame.draw.rect(box, (*theme.palette.panel[:3], OPACITY), box.get_rect(), border_radius=theme.px(CORNER))
    pygame.draw.rect(box, theme.palette.line, box.get_rect(), theme.px(1), border_radius=theme.px(CORNER))
    return box
