"""Round figures for axes, and how figures are written."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

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
