"""Strokes: a line drawn freehand becomes a smooth closed centreline with few control points.

The stroke is resampled evenly, closed where its ends meet, freed of small loops, smoothed until no bend is tighter than
a car can take, and fitted with as few control points as keep to it. Imported lines are fitted the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.centreline import Centreline, Floats, build_centreline
from racer_env.engine.circuit_check import MAX_COORDINATE, MAX_LAP_LENGTH, MAX_PROBLEMS
from racer_env.errors import CircuitError, CircuitProblem, CircuitProblemKind
from racer_viewer.circuits.draft import DEFAULT_HALF_WIDTH, DIGITS, HALF_WIDTHS, Draft, Point
from racer_viewer.circuits.preview import preview

MAX_STROKE_POINTS = 100_000
"""Maximum number of points of a stroke that are read; of a longer one, every n-th."""
MIN_STROKE_LENGTH = 150.0
"""Length from which a closed stroke can be a lap [units]."""
SAMPLE_STEP = 4.0
"""Distance between the samples of a line [units]; larger for lines with more than MAX_SAMPLES."""
MIN_SAMPLES, MAX_SAMPLES = 64, 2048
SMOOTHING = 10.0
"""Standard deviation of the smoothing along the line [units]: it removes the tremor of a hand, not a corner."""
OVERLAP_SHARE = 0.2
"""Share of a stroke at each end within which its ends are joined where they are closest."""
MAX_CURL = 0.2
"""Maximum length of a small loop that is cut out, as a share of the line."""
MIN_RADIUS = 24.0
"""Minimum radius of a bend after smoothing, if it can be had [units]."""
MAX_RELAXATIONS, STEPS_PER_RELAXATION = 60, 6
"""Maximum number of times that tight bends are looked for, and steps by which they are smoothed each time."""
TOLERANCE, STROKE_TOLERANCE = 2.0, 4.0
"""Maximum distance between a line, or a stroke, and the spline through its control points [units]."""
MAX_SPACING = 90.0
"""Maximum distance between control points, so that walls do not cut corners [units]."""
CORNER_WEIGHT = 40.0
"""Distance on a straight that counts as much as a turn by one radian when control points are distributed [units]."""
MAX_CORNER_WEIGHT = 3.0
"""Maximum number of further control points for each one that a straight of the same length has."""
MIN_POINTS, MAX_FITTED_POINTS = 12, 600
MAX_COMPARED = 400
"""Number of points, about, at which a line is compared with the spline."""
MIN_SPACING = 8.0
"""Minimum distance between control points on average [units]."""
MAX_WIDENINGS = 10
"""Maximum number of times that bends with too little room are smoothed more."""
WIDENING, WIDENED_REACH, MAX_RADIUS = 1.5, 120.0, 150.0
"""Factor of the minimum radius there, the distance within which it holds [units], and its limit [units]."""
MAX_ROUND = 0.5
"""Limit of that radius, as a share of the radius of a circle as long as the line: smoothing shrinks small lines."""


def fit_stroke(stroke: Sequence[tuple[float, float]], half_width: float = DEFAULT_HALF_WIDTH) -> tuple[Point, ...]:
    """Return the control points of a circuit along a stroke, in its direction, the first one where it begins.

    Raises CircuitError with the place if no lap is in it. Whether the circuit can be driven, its preview says.
    """
    drawn = _plain(stroke)
    line = _without_curls(smoothed(_joined(_resampled(drawn, closed=False)), SMOOTHING))
    length = _length(line)
    if length < MIN_STROKE_LENGTH:
        x, y = drawn.mean(axis=0)
        raise _refusal("short", f"the stroke is too short: draw a lap of at least {MIN_STROKE_LENGTH:.0f} units", x, y)
    if length > MAX_LAP_LENGTH:
        reason = f"the stroke is {length:.0f} units long: a lap has at most {MAX_LAP_LENGTH:.0f}"
        raise _refusal("long", reason, *drawn[0])
    return fit_road(np.column_stack([line, np.full(len(line), half_width)]), STROKE_TOLERANCE)


def fit_road(line: Floats, tolerance: float = TOLERANCE) -> tuple[Point, ...]:
    """Return the control points of a circuit along an evenly spaced closed line of x, y and half-width.

    Bends that are too tight for the walls are smoothed more, and only they, until cars can drive there. Raises
    CircuitError if nothing of the line is left then.
    """
    widest = min(MAX_RADIUS, MAX_ROUND * _length(line) / (2.0 * math.pi))
    radii, smooth = np.full(len(line), min(MIN_RADIUS, widest)), line[:, :2]
    best: tuple[Point, ...] = ()
    fewest = MAX_PROBLEMS + 1
    for attempt in range(MAX_WIDENINGS + 1):
        smooth = relaxed(smooth, radii)
        if _length(smooth) < MIN_STROKE_LENGTH:
            break
        spacing = MAX_SPACING / (1.0 + 0.25 * attempt)
        points = fit_line(np.column_stack([smooth, line[:, 2]]), tolerance, spacing)
        problems = preview(Draft(points=points)).problems
        if len(problems) < fewest:
            best, fewest = points, len(problems)
        tight = [problem for problem in problems if problem.kind in ("tight", "close")]
        if not tight:
            break
        for problem in tight:
            near = np.hypot(smooth[:, 0] - problem.x, smooth[:, 1] - problem.y) < WIDENED_REACH
            radii[near] = np.minimum(radii[near] * WIDENING, widest)
    if not best:
        raise _refusal("tight", "the line turns back on itself: leave room for a lap", *line[:, :2].mean(axis=0))
    return best


def fit_line(line: Floats, tolerance: float = TOLERANCE, spacing: float = MAX_SPACING) -> tuple[Point, ...]:
    """Return few control points whose centreline stays within a tolerance of a closed line.

    line: rows of x, y and half-width; the last one is not the first one again.
    spacing: maximum distance between control points on average [units].
    """
    places, closed = _cumulative(line[:, :2]), np.vstack([line, line[:1]])
    weights = _corner_weights(line[:, :2], places)
    count = max(MIN_POINTS, math.ceil(places[-1] / spacing))
    limit = min(MAX_FITTED_POINTS, max(MIN_POINTS, int(places[-1] / MIN_SPACING)))
    while True:
        arcs = np.interp(np.arange(count) * (weights[-1] / count), weights, places)
        rows = np.column_stack([np.interp(arcs, places, closed[:, column]) for column in range(3)])
        if count >= limit or _deviation(build_centreline(rows), line[:, :2]) <= tolerance:
            break
        count = min(limit, math.ceil(count * 1.15))
    low, high = HALF_WIDTHS
    rows[:, 2] = np.clip(rows[:, 2], low, high)
    return tuple(Point(*(round(float(value), DIGITS) for value in row)) for row in rows)


def resampled(line: Floats, count: int) -> Floats:
    """Return a closed line of rows x, y, ... with evenly spaced points; it begins at the same one."""
    places = _cumulative(line[:, :2])
    at = np.arange(count) * (places[-1] / count)
    closed = np.vstack([line, line[:1]])
    return np.column_stack([np.interp(at, places, column) for column in closed.T])


def sample_count(length: float) -> int:
    """Return the number of samples for a line of this length."""
    return int(min(max(length / SAMPLE_STEP, MIN_SAMPLES), MAX_SAMPLES))


def smoothed(line: Floats, deviation: float) -> Floats:
    """Return an evenly spaced closed line after a Gaussian filter. deviation: standard deviation along the line."""
    spacing = _length(line) / len(line)
    frequencies = np.fft.rfftfreq(len(line)) * 2.0 * math.pi
    kept = np.exp(-0.5 * (frequencies * deviation / max(spacing, 1e-9)) ** 2)
    return np.asarray(np.fft.irfft(np.fft.rfft(line, axis=0) * kept[:, None], len(line), axis=0))


def relaxed(line: Floats, radii: Floats) -> Floats:
    """Return a closed line in which bends were smoothed until they have at least the radius given at each point.

    It stays as it is elsewhere. A line that is too small for this becomes as round as possible.
    """
    for _ in range(MAX_RELAXATIONS):
        before, after = np.roll(line, 1, axis=0), np.roll(line, -1, axis=0)
        tight = _turns(before, line, after) > 1.0 / radii
        if not tight.any():
            break
        near = np.flatnonzero(_spread(tight, 3))
        left, right, line = near - 1, (near + 1) % len(line), line.copy()
        for _step in range(STEPS_PER_RELAXATION):
            line[near] = (line[left] + line[near] + line[right]) / 3.0
    return line


def _plain(stroke: Sequence[tuple[float, float]]) -> Floats:
    """Return the finite points of a stroke without repetitions. Raises CircuitError if fewer than three are left."""
    points = np.array(stroke[:: max(1, len(stroke) // MAX_STROKE_POINTS)], np.float64).reshape(-1, 2)
    points = points[np.isfinite(points).all(axis=1)]
    points = np.clip(points, -MAX_COORDINATE, MAX_COORDINATE)
    if len(points):
        moved = np.append(True, np.hypot(*np.diff(points, axis=0).T) > 1e-6)
        points = points[moved]
    if len(points) < 3:
        x, y = points[0] if len(points) else (0.0, 0.0)
        raise _refusal("short", "the stroke is too short: hold the button and draw a whole lap", float(x), float(y))
    return points


def _resampled(line: Floats, closed: bool) -> Floats:
    if closed:
        return resampled(line, sample_count(_length(line)))
    places = np.append(0.0, np.cumsum(np.hypot(*np.diff(line, axis=0).T)))
    at = np.linspace(0.0, places[-1], sample_count(float(places[-1])))
    return np.column_stack([np.interp(at, places, column) for column in line.T])


def _joined(line: Floats) -> Floats:
    """Return a closed line: a stroke without the ends that overlap, evenly spaced.

    The ends meet where they are closest to each other; what was drawn beyond that is dropped. Each unit that is
    dropped counts like half a unit of gap, so that a stroke which simply ends beside its beginning keeps all of it.
    """
    share = max(1, int(len(line) * OVERLAP_SHARE))
    spacing = _length(line, closed=False) / max(len(line) - 1, 1)
    first, last = line[:share], line[-share:]
    gaps = np.hypot(*(first[:, None] - last[None, :]).transpose(2, 0, 1))
    dropped = spacing * (np.arange(share)[:, None] + np.arange(share)[::-1][None, :])
    begin, end = np.unravel_index(int(np.argmin(gaps + 0.5 * dropped)), gaps.shape)
    joined = line[int(begin) : len(line) - share + int(end) + 1]
    return _resampled(joined, closed=True)


def _without_curls(line: Floats) -> Floats:
    """Return a closed line without small loops, such as those of a hand that hesitates."""
    for _ in range(32):
        loop = _smallest_loop(line)
        if loop is None:
            break
        first, last = loop
        # The point where the line crosses itself stays; the start of the line stays its start where possible.
        line = np.delete(line, np.arange(first + 1, last + 1) % len(line), axis=0)
        line = _resampled(line, closed=True)
    return line


def _smallest_loop(line: Floats) -> tuple[int, int] | None:
    """Return the first and last segment of the shortest loop that may be cut out; None without one."""
    count = len(line)
    reach = int(count * MAX_CURL)
    ways = np.roll(line, -1, axis=0) - line
    best: tuple[int, int] | None = None
    for apart in range(2, reach):
        other = np.roll(line, -apart, axis=0)
        if (found := _segments_cross(line, ways, other, np.roll(ways, -apart, axis=0))).any():
            first = int(np.argmax(found))
            best = first, first + apart
            break
    return best


def _segments_cross(a: Floats, a_way: Floats, b: Floats, b_way: Floats) -> NDArray[np.bool_]:
    to_b, to_b_end = b - a, b + b_way - a
    from_b, from_b_end = a - b, a + a_way - b
    sides_of_a = _cross(a_way, to_b) * _cross(a_way, to_b_end)
    sides_of_b = _cross(b_way, from_b) * _cross(b_way, from_b_end)
    return np.asarray((sides_of_a < 0.0) & (sides_of_b < 0.0))


def _cross(first: Floats, second: Floats) -> Floats:
    return np.asarray(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])


def _turns(before: Floats, here: Floats, after: Floats) -> Floats:
    """Return the curvature at each point of a line, from the circle through it and its neighbours."""
    a, b, c = here - before, after - here, after - before
    lengths = np.hypot(*a.T) * np.hypot(*b.T) * np.hypot(*c.T)
    sharp = np.sum(a * b, axis=1) < 0.0  # it turns back: tighter than any circle through the points
    bend = 2.0 * np.abs(_cross(a, b)) / np.maximum(lengths, 1e-12)
    return np.where(sharp, np.inf, bend)


def _spread(chosen: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    return np.asarray(np.any([np.roll(chosen, shift) for shift in range(-reach, reach + 1)], axis=0))


def _cumulative(line: Floats) -> Floats:
    """Return the distance along a closed line at each of its points and at its end."""
    ways = np.roll(line, -1, axis=0) - line
    return np.append(0.0, np.cumsum(np.hypot(ways[:, 0], ways[:, 1])))


def _length(line: Floats, closed: bool = True) -> float:
    places = _cumulative(line[:, :2])
    return float(places[-1] if closed else places[-2])


def _corner_weights(line: Floats, places: Floats) -> Floats:
    """Return a measure along a closed line that grows with the distance, and faster in bends."""
    ways = np.roll(line, -1, axis=0) - line
    headings = np.arctan2(ways[:, 1], ways[:, 0])
    turned = np.abs((np.diff(headings, prepend=headings[-1]) + math.pi) % (2.0 * math.pi) - math.pi)
    spread = np.mean([np.roll(turned, shift) for shift in range(-4, 5)], axis=0)
    steps = np.diff(places)
    return np.append(0.0, np.cumsum(steps + np.minimum(CORNER_WEIGHT * spread, MAX_CORNER_WEIGHT * steps)))


def _deviation(spline: Centreline, line: Floats) -> float:
    """Return the maximum distance from a line to a spline along it."""
    count = 2 * len(line)
    points = spline.points(np.arange(count, dtype=np.float64) * (spline.length / count))
    # Both run along each other from the same start: the nearest point is at nearly the same share of the lap.
    every = max(1, len(line) // MAX_COMPARED)
    share, line = (_cumulative(line)[:-1] / _length(line) * count)[::every], line[::every]
    window = (np.round(share).astype(np.int64)[:, None] + np.arange(-12, 13)) % count
    first, second = points[window], points[(window + 1) % count]
    way = second - first
    along = np.clip(np.sum((line[:, None] - first) * way, axis=2) / np.maximum(np.sum(way**2, axis=2), 1e-12), 0.0, 1.0)
    gaps = np.hypot(*(first + along[..., None] * way - line[:, None]).transpose(2, 0, 1))
    return float(gaps.min(axis=1).max())


def _refusal(kind: CircuitProblemKind, reason: str, x: float, y: float) -> CircuitError:
    return CircuitError(reason, CircuitProblem(kind, reason, float(x), float(y)))
