"""The centreline as compiled code reads it: cubics, and bounds of their asymmetry around each coarse sample."""

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.centreline import CHORDS_PER_SEGMENT, Centreline, Floats

STRETCH = np.dtype([(name, "f8") for name in (
    "arc", "x0", "x1", "x2", "x3", "y0", "y1", "y2", "y3", "width0", "width1")])  # fmt: skip
"""Interval of the arc table: x, y and half-width as polynomials of the distance from `arc`."""

LIMITS = np.dtype([(name, "f8") for name in ("skew", "skew_per_distance", "kink", "kink_per_distance")])
"""Bounds that `locate.predict_search` needs of the centreline within one spacing of a coarse sample.

They bound half the squared distance to any point, as a function of the arc. Its third derivative is at most
`skew` plus `skew_per_distance` times the distance; all joints of stretches together change its second derivative
by at most the fraction `kink`, plus `kink_per_distance` times the distance."""

NO_LIMIT = 1e3
"""Bound for stretches without length: no search is predicted next to them."""


def build_stretches(line: Centreline, spacing: float) -> tuple[NDArray[np.void], int]:
    """Return the arc table as cubics in the distance, and the index of the stretch that starts at distance 0.

    A few stretches are repeated at both ends, so that the search around the start line never wraps.
    """
    count = len(line.arcs) - 1
    lengths = np.diff(line.arcs)
    rate = np.where(lengths > 0.0, 1.0 / CHORDS_PER_SEGMENT / np.where(lengths > 0.0, lengths, 1.0), 0.0)
    segment, step = np.divmod(np.arange(count), CHORDS_PER_SEGMENT)
    t = (step / CHORDS_PER_SEGMENT)[:, None]
    a0, a1, a2, a3 = np.moveaxis(line.cubics[segment], 1, 0)
    rate2 = rate[:, None]
    coefficients = (
        a0 + t * (a1 + t * (a2 + t * a3)),
        (a1 + t * (2.0 * a2 + t * 3.0 * a3)) * rate2,
        (a2 + t * 3.0 * a3) * rate2**2,
        a3 * rate2**3,
    )
    table = np.zeros(count, STRETCH)
    table["arc"] = line.arcs[:-1]
    for power, values in enumerate(coefficients):
        table[f"x{power}"], table[f"y{power}"] = values[:, 0], values[:, 1]
    widths = np.append(line.half_widths, line.half_widths[0])
    knots = line.arcs[::CHORDS_PER_SEGMENT]
    spans = np.diff(knots)
    slopes = np.where(spans > 0.0, np.diff(widths) / np.where(spans > 0.0, spans, 1.0), 0.0)
    table["width1"] = slopes[segment]
    table["width0"] = widths[segment] + slopes[segment] * (line.arcs[:-1] - knots[segment])

    before = count - int(np.searchsorted(line.arcs, line.length - 2.0 * spacing, side="right")) + 1
    after = int(np.searchsorted(line.arcs, 2.0 * spacing, side="right"))
    head, tail = table[count - before :].copy(), table[:after].copy()
    head["arc"] -= line.length
    tail["arc"] += line.length
    end = np.zeros(1, STRETCH)
    end["arc"] = np.inf
    return np.concatenate([head, table, tail, end]), before


def symmetry_limits(stretches: NDArray[np.void], arcs: Floats, spacing: float) -> NDArray[np.void]:
    """Return the bounds around the samples at these arcs."""
    table = stretches[:-1]
    lengths = np.append(np.diff(table["arc"]), 0.0)
    v, a, j = (
        factor * np.stack([table[f"x{power}"], table[f"y{power}"]], axis=1)
        for power, factor in ((1, 1.0), (2, 2.0), (3, 6.0))
    )
    end_v = v + lengths[:, None] * (a + lengths[:, None] * j / 2.0)
    end_a = a + lengths[:, None] * j
    first = np.searchsorted(table["arc"], arcs - 1.01 * spacing, side="right") - 1
    last = np.searchsorted(table["arc"], arcs + 1.01 * spacing, side="right") - 1
    limits = np.zeros(len(arcs), LIMITS)
    limits["skew"] = _range_max(3.0 * _max_acceleration(v, a, j, lengths), first, last)
    limits["skew_per_distance"] = _range_max(np.hypot(j[:, 0], j[:, 1]), first, last)
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = np.sum(v[1:] ** 2, axis=1) / np.sum(end_v[:-1] ** 2, axis=1)
        jumps = np.hypot(*(a[1:] - squares[:, None] * end_a[:-1]).T)
        limits["kink"] = _range_sum(np.maximum(squares, 1.0 / squares) - 1.0, first, last)
        limits["kink_per_distance"] = _range_sum(jumps * np.maximum(1.0, 1.0 / squares), first, last)
    return limits


def _max_acceleration(v: Floats, a: Floats, j: Floats, lengths: Floats) -> Floats:
    """Bound the product of first and second derivative on each stretch by its largest Bernstein coefficient."""
    c0 = np.sum(v * a, axis=1)
    c1 = np.sum(v * j + a * a, axis=1) * lengths
    c2 = np.sum(a * j, axis=1) * lengths**2 * 1.5
    c3 = np.sum(j * j, axis=1) * lengths**3 * 0.5
    return np.abs([c0, c0 + c1 / 3.0, c0 + (2.0 * c1 + c2) / 3.0, c0 + c1 + c2 + c3]).max(axis=0)


def _range_max(values: Floats, first: NDArray[np.intp], last: NDArray[np.intp]) -> Floats:
    """Return the largest of values[first] to values[last]."""
    return np.maximum.reduceat(np.append(values, 0.0), np.stack([first, last + 1], axis=1).reshape(-1))[::2]


def _range_sum(values: Floats, first: NDArray[np.intp], last: NDArray[np.intp]) -> Floats:
    """Return the sums of values[first:last]."""
    values = np.append(np.nan_to_num(values, nan=NO_LIMIT, posinf=NO_LIMIT), 0.0)
    return np.where(first < last, np.add.reduceat(values, np.stack([first, last], axis=1).reshape(-1))[::2], 0.0)
