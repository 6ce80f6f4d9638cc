"""Round figures for axes, and how figures are written.

How far the value axis goes, so that a few strange values do not flatten all others.

From values to pixels and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pygame
from numpy.typing import NDArray

STEPS = (1.0, 2.0, 5.0, 10.0)
PARTS = 5
"""An axis ends at whole fifths of the distance between ticks."""
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
MINUTE = 60.0
"""[s]"""
DIGITS = 3
"""Of a figure that is read, not of one on an axis."""
LEAST_PLAIN = 1e-5
"""Figures with a finer resolution are written with a power of ten."""
_ROUNDING = 1e-9


def tick_step(extent: float, most: int) -> float:
    """The distance between ticks, 1, 2 or 5 times a power of ten, so that there are at most so many intervals."""
    if not 0.0 < extent < math.inf:
        return 1.0
    least = extent / max(1, most)
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in STEPS if step * power >= least * (1.0 - _ROUNDING))


def ticks_within(low: float, high: float, step: float) -> list[float]:
    """The multiples of the step from low to high."""
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    return [number * step for number in range(first, last + 1)]


def rounded_limits(low: float, high: float, most: int) -> tuple[float, float, float]:
    """Limits that are no further out than they have to be for being round, and the distance of the ticks.

    There are at most so many intervals between ticks, and at least two ticks.
    """
    if high <= low:
        margin = 0.05 * abs(low) or 1.0
        low, high = low - margin, high + margin
    step = tick_step(high - low, max(2, most))
    while len(ticks_within(low, high, step)) < 2:
        step = tick_step(step * 0.4, 1)
    part = step / PARTS
    return math.floor(low / part + 1e-6) * part, math.ceil(high / part - 1e-6) * part, step


def quantity(value: float, resolution: float) -> str:
    """As 1.2M, 200k, 7.5, −0.002 or 2e-5: as many decimals as a difference of `resolution` needs."""
    if abs(value) < resolution * 1e-6:
        return "0"
    size, sign = abs(value), "−" if value < 0.0 else ""
    for unit, letter in PREFIXES:
        if size >= unit * (1.0 - _ROUNDING):
            text = f"{size / unit:.{_decimals(resolution / unit)}f}"
            return sign + (text.rstrip("0").rstrip(".") if "." in text else text) + letter
    if resolution < LEAST_PLAIN * (1.0 - _ROUNDING):
        exponent = math.floor(math.log10(size) + _ROUNDING)
        return f"{sign}{size / 10.0**exponent:.{_decimals(resolution / 10.0**exponent)}f}e{exponent}"
    return f"{sign}{size:.{_decimals(resolution)}f}"


def figure(value: float) -> str:
    """With three digits, as 25.2k, 7.03 or 0.00231."""
    if not value:
        return "0"
    return quantity(value, 10.0 ** (math.floor(math.log10(abs(value))) - DIGITS + 1))


def seconds(value: float) -> str:
    """A lap time, as 6.65 or 1:02.45."""
    return _clock(value, 2)


def percent(value: float) -> str:
    return f"{100.0 * value:.0f} %"


@dataclass(frozen=True)
class Unit:
    """How values are written. tick: on an axis, with the distance of the ticks. read: alone. name: after the latter."""

    tick: Callable[[float, float], str]
    read: Callable[[float], str]
    name: str = ""


def _second_tick(value: float, step: float) -> str:
    return _clock(value, _decimals(step))


def _percent_tick(value: float, step: float) -> str:
    return f"{100.0 * value:.{_decimals(100.0 * step)}f} %"


def _clock(value: float, decimals: int) -> str:
    minutes, rest = divmod(round(abs(value), decimals), MINUTE)
    sign = "−" if value < 0.0 else ""
    if not minutes:
        return f"{sign}{rest:.{decimals}f}"
    return f"{sign}{minutes:.0f}:{rest:0{decimals + 3 if decimals else 2}.{decimals}f}"


def _decimals(resolution: float) -> int:
    return max(0, math.ceil(-math.log10(resolution) - 1e-6))


PLAIN = Unit(quantity, figure)
SECONDS = Unit(_second_tick, seconds, "s")
SHARE = Unit(_percent_tick, percent)


Floats = NDArray[np.float64]
Limits = Callable[[Floats], tuple[float, float]]

LAP_ROOM = 0.35
"""Of the best lap time: laps that are slower by this are always shown."""
LAP_SPREAD = 4.0
"""Times what the middle lap is slower than the best: such laps are shown, too."""
INNER = 0.05
"""The share of figures at either end that may be strange."""
FENCE = 1.5
"""How far beyond the others a figure may lie and still be shown, of the extent of the others."""


def lap_limits(times: Floats) -> tuple[float, float]:
    """From the best lap to those that are slower than most; one that took ten times as long is outside."""
    best, middle = float(times.min()), float(np.quantile(times, 0.5, method="lower"))
    return best, min(float(times.max()), best + max(LAP_SPREAD * (middle - best), LAP_ROOM * best))


def figure_limits(values: Floats) -> tuple[float, float]:
    """All values but those that are far from nearly all others."""
    low, high = (float(each) for each in np.quantile(values, (INNER, 1.0 - INNER)))
    reach = FENCE * (high - low)
    if not reach:
        return float(values.min()), float(values.max())
    return max(float(values.min()), low - reach), min(float(values.max()), high + reach)


def all_values(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def span_of(*steps: Floats) -> tuple[float, float]:
    """From 0 to the last steps; where nothing is in the first half, from the first."""
    there = [each for each in steps if len(each)]
    if not there:
        return 0.0, 1.0
    first, last = min(float(each.min()) for each in there), max(float(each.max()) for each in there)
    begin = first if 0.5 * last < first < last else 0.0
    return begin, max(last, math.nextafter(begin, math.inf), begin + 1.0)


BEYOND = 3.0
"""Points further outside than this, of the height of the frame, are brought here: nobody sees where they are."""


@dataclass(frozen=True, eq=False)
class Axes:
    """frame: where the values are, in pixels of the chart. span: steps from left to right.

    inset: from the edge of the frame to the ends of the axes [px], so that what is there can be seen.
    """

    frame: pygame.Rect
    span: tuple[float, float]
    low: float
    high: float
    inset: int = 0

    def xs(self, steps: Floats) -> Floats:
        """[px]"""
        first, last = self.span
        return self.frame.left + self.inset + (steps - first) * (self._width / (last - first))

    def ys(self, values: Floats) -> Floats:
        """[px]"""
        share = np.clip((values - self.low) / (self.high - self.low), -BEYOND, 1.0 + BEYOND)
        ys: Floats = self.frame.bottom - 1 - self.inset - share * (self.frame.height - 1 - 2 * self.inset)
        return ys

    def x(self, steps: float) -> float:
        first, last = self.span
        return self.frame.left + self.inset + (steps - first) * (self._width / (last - first))

    def y(self, value: float) -> float:
        share = min(1.0 + BEYOND, max(-BEYOND, (value - self.low) / (self.high - self.low)))
        return self.frame.bottom - 1 - self.inset - share * (self.frame.height - 1 - 2 * self.inset)

    def steps_at(self, x: float) -> float:
        """At a pixel, at the ends if it is outside."""
        first, last = self.span
        share = (x - self.frame.left - self.inset) / self._width
        return first + min(1.0, max(0.0, share)) * (last - first)

    @property
    def _width(self) -> int:
        return max(1, self.frame.width - 1 - 2 * self.inset)

    def outside(self, values: Floats) -> Floats:
        """1 for those above the frame, -1 for those below, 0 for the others and for what is missing."""
        return np.where(values > self.high, 1.0, np.where(values < self.low, -1.0, 0.0))
