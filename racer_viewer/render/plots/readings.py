"""What the values are where the mouse is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from racer_viewer.render.plots.chart import Chart
from racer_viewer.render.plots.series import Dots, Line, Stack
from racer_viewer.ui.theme import Colour

Floats = NDArray[np.float64]

NEAR = 7
"""Something is at the mouse if it is no further away than this, at scale 1 [px]."""
MISSING = "–"


@dataclass(frozen=True)
class Reading:
    """A value in words. average: that of its moving average. point: where it is drawn, in pixels of the chart."""

    name: str
    text: str
    colour: Colour
    average: str = ""
    point: tuple[float, float] | None = None


def readings(chart: Chart, x: float, y: float) -> list[Reading]:
    """Of all that the chart shows, at a pixel of it."""
    content = chart.content
    found = [_line_reading(chart, line, x) for line in content.lines]
    found += [_dot_reading(chart, dots, x, y) for dots in content.dots]
    if content.stack is not None:
        found += _stack_readings(chart, content.stack, x)
    return found


def _line_reading(chart: Chart, line: Line, x: float) -> Reading:
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
    """The nearest dot in both directions, if it is near at all; else the nearest in time."""
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
    """Of the parts that are anything at all in this run."""
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
    """The place nearest to x, unless x is further than that beyond the first or the last one."""
    if not len(xs) or not xs[0] - beyond <= x <= xs[-1] + beyond:
        return None
    return int(np.argmin(np.abs(xs - x)))


def _held(xs: Floats, x: float, beyond: float) -> int | None:
    """The last place at or before x, unless x is further than that beyond the last one."""
    if not len(xs) or x > xs[-1] + beyond:
        return None
    before = int(np.searchsorted(xs, x + 0.5, side="right")) - 1
    return before if before >= 0 else None
