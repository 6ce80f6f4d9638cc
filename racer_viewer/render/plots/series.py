"""Content of a chart: lines, dots, stacked areas and event marks, with the averages and sums they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from racer_viewer.render.plots.axes import PLAIN, Limits, Unit, figure_limits
from racer_viewer.translation import mark
from racer_viewer.ui.theme import Colour

Floats = NDArray[np.float64]
BLOCK = 64
Words = Sequence[tuple[str, Colour]]


@dataclass(frozen=True, eq=False)
class ChartLine:
    """Values over steps, with ascending xs.

    smooth: draw a moving average with the values faint behind it.
    joined: bridge missing values; otherwise they leave a gap.
    stepped: hold a value until the next one.
    dash: dash length at scale 1 [px]; 0 is a solid line.
    """

    name: str
    colour: Colour
    xs: Floats
    ys: Floats
    smooth: bool = True
    joined: bool = False
    stepped: bool = False
    dash: float = 0.0


@dataclass(frozen=True, eq=False)
class Dots:
    name: str
    colour: Colour
    xs: Floats
    ys: Floats


@dataclass(frozen=True, eq=False)
class Stack:
    """Stacked areas, positive ones upwards and negative ones downwards. parts: (n, k)."""

    names: tuple[str, ...]
    colours: tuple[Colour, ...]
    xs: Floats
    parts: Floats


@dataclass(frozen=True)
class ChartMark:
    """Mark of an event of one kind. colour: replaces the kind's own colour."""

    x: float
    kind: str
    text: str
    colour: Colour | None = None


@dataclass(frozen=True, eq=False)
class Content:
    """Everything that one chart shows.

    limits: range of the value axis.
    include: values that the axis always contains.
    latest: text beside the title.
    legend: names of the drawn series.
    empty: text if there is nothing to draw.
    along: text for a position along the horizontal axis.
    """

    title: str
    unit: Unit = PLAIN
    lines: tuple[ChartLine, ...] = ()
    dots: tuple[Dots, ...] = ()
    stack: Stack | None = None
    marks: tuple[ChartMark, ...] = ()
    limits: Limits = figure_limits
    include: tuple[float, ...] = ()
    latest: Words = ()
    legend: Words = ()
    empty: str = mark("no data yet")
    along: str = mark("{steps} steps")

    @cached_property
    def is_empty(self) -> bool:
        drawn = [line.ys for line in self.lines] + [dots.ys for dots in self.dots]
        drawn += [self.stack.parts] if self.stack else []
        return not any(np.isfinite(values).any() for values in drawn)


def moving_average(values: Floats, weight: float) -> Floats:
    """Return the exponential moving average with weight 0 to 0.99 for the past, without bias towards 0.

    Missing values are skipped and stay missing.
    """
    there = np.isfinite(values)
    averages = np.full(len(values), np.nan)
    averages[there] = _filtered(values[there], weight) / _filtered(np.ones(int(there.sum())), weight)
    return averages


def _filtered(values: Floats, weight: float) -> Floats:
    """Return the decayed sum of each value and those before it, block by block."""
    kernel, left = _weights(weight)
    blocks = np.concatenate([values, np.zeros(-len(values) % BLOCK)]).reshape(-1, BLOCK) @ kernel
    for block, before in zip(blocks[1:], blocks, strict=False):
        block += before[-1] * left
    return blocks.ravel()[: len(values)]


@lru_cache(maxsize=8)
def _weights(weight: float) -> tuple[Floats, Floats]:
    """Return the weights of the values in a block for each later one, and of the one before the block."""
    ages = np.subtract.outer(np.arange(BLOCK), np.arange(BLOCK)).T
    return np.where(ages >= 0, weight ** np.maximum(ages, 0.0), 0.0), weight ** np.arange(1.0, BLOCK + 1.0)


def moving_averages(columns: Floats, weight: float) -> Floats:
    """Return the moving average of each column."""
    return np.stack([moving_average(column, weight) for column in columns.T], axis=1)


def stacked(parts: Floats) -> tuple[Floats, Floats]:
    """Return upper ends of the positive parts and lower ends of the negative ones, both (n, k); NaN where one is
    missing."""
    return np.cumsum(np.maximum(parts, 0.0), axis=1), np.cumsum(np.minimum(parts, 0.0), axis=1)


def running_best(xs: Floats, ys: Floats, end: float) -> tuple[Floats, Floats]:
    """Return the points at which the running minimum fell, and the last value again at the end."""
    there = np.isfinite(ys)
    xs, ys = xs[there], ys[there]
    if not len(xs):
        return xs, ys
    least = np.minimum.accumulate(ys)
    better = np.diff(least, prepend=np.inf) < 0.0
    return np.append(xs[better], max(end, xs[-1])), np.append(least[better], least[-1])
