"""How far the value axis goes, so that a few strange values do not flatten all others."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

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
