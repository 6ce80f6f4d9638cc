"""Walls, road edges and gates, built from a centreline."""

import math
from dataclasses import dataclass

import numpy as np

from racer_env.engine.centreline import Centreline, Floats

WALL_OFFSET = 30.0
"""Distance from the road edge to the wall, where there is room [units]."""
MIN_WALL_DISTANCE = 4.0
"""Minimum distance from the centreline to a wall [units]."""
ROAD_INSIDE_WALL = 2.0
"""Minimum distance from a road edge to its wall [units]."""
STRAIGHT_CURVATURE = 1e-8
"""Curvature below which the track is straight."""
REDUCTION_SMOOTHING = (10, 3)
"""Box filter over the wall reductions: samples to each side, passes."""
LINE_SMOOTHING = (4, 2)
"""Box filter over the finished lines: samples to each side, passes."""


@dataclass(frozen=True)
class Borders:
    """Walls and road edges of a track, each closed by repeating its first point, (S + 1, 2)."""

    inner: Floats
    outer: Floats
    inner_road: Floats
    outer_road: Floats


def build_borders(line: Centreline) -> Borders:
    """Offset the centreline to both sides to get walls and road edges; walls move in on the inside of tight bends."""
    samples = max(200, 12 * len(line.half_widths))
    distances = np.arange(samples) * line.length / samples
    centres, tangents = line.points(distances), line.tangents(distances)
    half_widths = line.half_widths_at(distances)
    normals = np.stack([-tangents[:, 1], tangents[:, 0]], axis=1)
    lines = {}
    for side, reduction in zip((1.0, -1.0), _wall_reductions(line, distances, half_widths), strict=True):
        wall = np.maximum(MIN_WALL_DISTANCE, half_widths + WALL_OFFSET - reduction)
        road = np.minimum(half_widths, wall - ROAD_INSIDE_WALL)
        lines[side] = [_closed_line(centres + normals * (side * offset)[:, None]) for offset in (wall, road)]
    (left, left_road), (right, right_road) = lines[1.0], lines[-1.0]
    if abs(signed_area(right)) < abs(signed_area(left)):
        return Borders(right, left, right_road, left_road)
    return Borders(left, right, left_road, right_road)


def build_gates(line: Centreline, borders: Borders, count: int) -> Floats:
    """Return a row per gate: inner end xy, outer end xy, centre xy, direction xy, arc."""
    arcs = np.arange(count) * line.length / count
    centres, directions = line.points(arcs), line.tangents(arcs)
    samples = len(borders.inner) - 1
    reach = max(5, math.ceil(samples / count))
    window = np.floor(np.arange(count) * samples / count + 0.5).astype(int)[:, None]
    window = (window + np.arange(-reach, reach + 1)) % samples
    ends = []
    for wall in (borders.inner, borders.outer):
        offsets = wall[window] - centres[:, None]
        nearest = np.argmin(np.hypot(offsets[..., 0], offsets[..., 1]), axis=1)
        ends.append(wall[window[np.arange(count), nearest]])
    return np.hstack([*ends, centres, directions, arcs[:, None]])


def curvatures(line: Centreline, distances: Floats, step: float) -> Floats:
    """Return the signed curvature (left-hand positive) at these distances, from the turn of the tangent over `step`."""
    before, after = line.tangents(distances - step / 2), line.tangents(distances + step / 2)
    angle = np.arccos(np.clip(np.sum(before * after, axis=1), -1.0, 1.0))
    cross = before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]
    return np.asarray(np.where(cross >= 0.0, angle, -angle) / step)


def _wall_reductions(line: Centreline, distances: Floats, half_widths: Floats) -> tuple[Floats, Floats]:
    """Return how far the left and the right wall move in, so that the inside of a tight bend does not fold."""
    curvature = curvatures(line, distances, line.length / len(distances))
    bent = np.abs(curvature) >= STRAIGHT_CURVATURE
    radius = np.where(bent, 1.0 / np.where(bent, np.abs(curvature), 1.0), np.inf)
    wall = half_widths + WALL_OFFSET
    room = np.minimum(wall, np.maximum(MIN_WALL_DISTANCE, radius - MIN_WALL_DISTANCE))
    reduction = np.where(radius < wall + MIN_WALL_DISTANCE, wall - room, 0.0)
    left_hand = curvature >= 0.0
    left = _smooth(np.where(left_hand, reduction, 0.0), *REDUCTION_SMOOTHING)
    right = _smooth(np.where(left_hand, 0.0, reduction), *REDUCTION_SMOOTHING)
    return left, right


def _closed_line(points: Floats) -> Floats:
    smooth = _smooth(points, *LINE_SMOOTHING)
    return np.vstack([smooth, smooth[:1]])


def _smooth(values: Floats, reach: int, passes: int) -> Floats:
    """Apply a circular box filter along the first axis."""
    for _ in range(passes):
        values = np.mean([np.roll(values, shift, axis=0) for shift in range(-reach, reach + 1)], axis=0)
    return values


def signed_area(closed: Floats) -> float:
    """Return the area inside a closed line, positive if it runs counter-clockwise."""
    x, y = closed[:, 0], closed[:, 1]
    return float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]) / 2.0)
