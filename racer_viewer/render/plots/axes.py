"""Axes of a chart: round ticks and number formats, value limits that ignore outliers, and the mapping to pixels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pygame
from numpy.typing import NDArray

STEPS = (1.0, 2.0, 5.0, 10.0)
PARTS = 5
"""Number of parts of a tick interval at which an axis may end."""
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
MINUTE = 60.0
"""Length of a minute [s]."""
DIGITS = 3
"""Significant digits of a value that is read, as opposed to an axis label."""
MIN_PLAIN_RESOLUTION = 1e-5
"""Finest resolution written without an exponent."""
_ROUNDING = 1e-9


def tick_step(extent: float, most: int) -> float:
    """Return a tick interval of 1, 2 or 5 times a power of ten with at most `most` intervals."""
    if not 0.0 < extent < math.inf:
        return 1.0
    least = extent / max(1, most)
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in STEPS if step * power >= least * (1.0 - _ROUNDING))


def ticks_within(low: float, high: float, step: float) -> list[float]:
    """Return the multiples of the step from low to high."""
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    return [number * step for number in range(first, last + 1)]


def rounded_limits(low: float, high: float, most: int) -> tuple[float, float, float]:
    """Return the tightest round limits and the tick interval.

    There are at most `most` tick intervals and at least two ticks.
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
    """Format a value as 1.2M, 200k, 7.5, −0.002 or 2e-5, with the decimals that a difference of `resolution` needs."""
    if abs(value) < resolution * 1e-6:
        return "0"
    size, sign = abs(value), "−" if value < 0.0 else ""
    for unit, letter in PREFIXES:
        if size >= unit * (1.0 - _ROUNDING):
            text = f"{size / unit:.{_decimals(resolution / unit)}f}"
            return sign + (text.rstrip("0").rstrip(".") if "." in text else text) + letter
    if resolution < MIN_PLAIN_RESOLUTION * (1.0 - _ROUNDING):
        exponent = math.floor(math.log10(size) + _ROUNDING)
        return f"{sign}{size / 10.0**exponent:.{_decimals(resolution / 10.0**exponent)}f}e{exponent}"
    return f"{sign}{size:.{_decimals(resolution)}f}"


def figure(value: float) -> str:
    """Format a value with three digits, as 25.2k, 7.03 or 0.00231."""
    if not value:
        return "0"
    return quantity(value, 10.0 ** (math.floor(math.log10(abs(value))) - DIGITS + 1))


def seconds(value: float) -> str:
    """Format a lap time, as 6.65 or 1:02.45."""
    return _clock(value, 2)


def percent(value: float) -> str:
    return f"{100.0 * value:.0f} %"


@dataclass(frozen=True)
class Unit:
    """Number format of a quantity. tick: on an axis, given the interval. read: alone. name: unit after the latter."""

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
"""Margin above the best lap time, as a share of it, within which laps are always shown."""
LAP_SPREAD = 4.0
"""Multiple of the median's distance to the best lap up to which laps are shown."""
INNER = 0.05
"""Share of values at either end that may be outliers."""
FENCE = 1.5
"""Distance beyond the other values, as a multiple of their extent, up to which a value is shown."""


def lap_limits(times: Floats) -> tuple[float, float]:
    """Return limits from the best lap to laps slower than most; a lap ten times as long is outside."""
    best, middle = float(times.min()), float(np.quantile(times, 0.5, method="lower"))
    return best, min(float(times.max()), best + max(LAP_SPREAD * (middle - best), LAP_ROOM * best))


def figure_limits(values: Floats) -> tuple[float, float]:
    """Return limits that contain all values but outliers."""
    low, high = (float(each) for each in np.quantile(values, (INNER, 1.0 - INNER)))
    reach = FENCE * (high - low)
    if not reach:
        return float(values.min()), float(values.max())
    return max(float(values.min()), low - reach), min(float(values.max()), high + reach)


def all_values(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def span_of(*steps: Floats) -> tuple[float, float]:
    """Return the span from 0 to the last step, or from the first step if the first half is empty."""
    there = [each for each in steps if len(each)]
    if not there:
        return 0.0, 1.0
    first, last = min(float(each.min()) for each in there), max(float(each.max()) for each in there)
    begin = first if 0.5 * last < first < last else 0.0
    return begin, max(last, math.nextafter(begin, math.inf), begin + 1.0)


BEYOND = 3.0
"""Clamp of points outside the frame, as a multiple of its height."""


@dataclass(frozen=True, eq=False)
class Axes:
    """Mapping between values and pixels.

    frame: plot area in pixels of the chart.
    span: steps from left to right.
    inset: distance from the edge of the frame to the ends of the axes [px], so that values there stay visible.
    """

    frame: pygame.Rect
    span: tuple[float, float]
    low: float
    high: float
    inset: int = 0

    def xs(self, steps: Floats) -> Floats:
        """Return the pixel columns of steps."""
        first, last = self.span
        return self.frame.left + self.inset + (steps - first) * (self._width / (last - first))

    def ys(self, values: Floats) -> Floats:
        """Return the pixel rows of values."""
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
        """Return the steps at a pixel column, clamped to the span."""
        first, last = self.span
        share = (x - self.frame.left - self.inset) / self._width
        return first + min(1.0, max(0.0, share)) * (last - first)

    @property
    def _width(self) -> int:
        return max(1, self.frame.width - 1 - 2 * self.inset)

    def outside(self, values: Floats) -> Floats:
        """Return 1 for values above the frame, -1 for values below it, and 0 for others and missing ones."""
        return np.where(values > self.high, 1.0, np.where(values < self.low, -1.0, 0.0))
