"""The centreline: a closed centripetal Catmull-Rom spline, parametrised by arc length.

These functions work on whole arrays and run once per track; the compiled search is in `locate`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CHORDS_PER_SEGMENT = 20
"""Chords along which the arc length between two control points is measured."""
MIN_KNOT = 1e-10
"""Minimum knot distance; closer control points count as one."""


@dataclass(frozen=True)
class Centreline:
    """A spline through control points, with its table of arc lengths.

    cubics: power-basis coefficients of x and y in t for every segment, (n, 4, 2).
    arcs: arc length at parameter k / CHORDS_PER_SEGMENT, ending with the lap length.
    half_widths: half the road width at the control points.
    """

    cubics: Floats
    arcs: Floats
    half_widths: Floats

    @property
    def length(self) -> float:
        """Length of a lap [units]."""
        return float(self.arcs[-1])

    def _segment_and_t(self, distances: Floats) -> tuple[NDArray[np.intp], Floats]:
        wrapped = np.mod(distances, self.length)
        interval = np.searchsorted(self.arcs, wrapped, side="right") - 1
        interval = np.clip(interval, 0, len(self.arcs) - 2)
        low, high = self.arcs[interval], self.arcs[interval + 1]
        chord = np.where(high > low, high - low, 1.0)
        fraction = (wrapped - low) / chord
        segment, step = np.divmod(interval, CHORDS_PER_SEGMENT)
        return segment, (step + fraction) / CHORDS_PER_SEGMENT

    def points(self, distances: Floats) -> Floats:
        """Return the points (m, 2) at these distances from the start."""
        segment, t = self._segment_and_t(distances)
        return _cubic(self.cubics[segment], t)

    def tangents(self, distances: Floats) -> Floats:
        """Return the unit tangents (m, 2) at these distances."""
        segment, t = self._segment_and_t(distances)
        a = self.cubics[segment]
        t = t[:, None]
        slopes = a[:, 1] + t * (2.0 * a[:, 2] + t * 3.0 * a[:, 3])
        lengths = np.hypot(slopes[:, 0], slopes[:, 1])
        return np.asarray(slopes / np.where(lengths > 0.0, lengths, 1.0)[:, None])

    def half_widths_at(self, distances: Floats) -> Floats:
        """Return half the road width at these distances."""
        knots = self.arcs[::CHORDS_PER_SEGMENT]
        values = np.append(self.half_widths, self.half_widths[0])
        return np.asarray(np.interp(np.mod(distances, self.length), knots, values))


def build_centreline(control_points: Floats) -> Centreline:
    """Build the centreline through rows of x, y, half-width."""
    points = control_points[:, :2]
    cubics = _segment_cubics(points)
    steps = np.arange(CHORDS_PER_SEGMENT) / CHORDS_PER_SEGMENT
    samples = _cubic(cubics[:, None], steps[None, :]).reshape(-1, 2)
    chords = np.roll(samples, -1, axis=0) - samples
    arcs = np.concatenate([[0.0], np.cumsum(np.hypot(chords[:, 0], chords[:, 1]))])
    return Centreline(cubics, arcs, control_points[:, 2].copy())


def _cubic(coefficients: Floats, t: Floats) -> Floats:
    a = coefficients
    t = t[..., None]
    return np.asarray(a[..., 0, :] + t * (a[..., 1, :] + t * (a[..., 2, :] + t * a[..., 3, :])))


def _segment_cubics(p1: Floats) -> Floats:
    p0, p2, p3 = np.roll(p1, 1, axis=0), np.roll(p1, -1, axis=0), np.roll(p1, -2, axis=0)
    k01, k12, k23 = _knots(p0, p1), _knots(p1, p2), _knots(p2, p3)
    m1 = k12 * ((p1 - p0) / k01 - (p2 - p0) / (k01 + k12) + (p2 - p1) / k12)
    m2 = k12 * ((p2 - p1) / k12 - (p3 - p1) / (k12 + k23) + (p3 - p2) / k23)
    return np.stack([p1, m1, 3.0 * (p2 - p1) - 2.0 * m1 - m2, 2.0 * (p1 - p2) + m1 + m2], axis=1)


def _knots(a: Floats, b: Floats) -> Floats:
    knots = np.sqrt(np.hypot(b[:, 0] - a[:, 0], b[:, 1] - a[:, 1]))
    return np.where(knots < MIN_KNOT, 1.0, knots)[:, None]
