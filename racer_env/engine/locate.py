"""Where a point is on the track: nearest centreline point, arc and half-width there."""

import math

import numpy as np

from racer_env.engine.compiled import Compiled, part
from racer_env.engine.tables import square_at

SEARCH_ROUNDS = 16
"""Rounds of the ternary search around the nearest coarse sample. Its small remaining error shows in the
observations of existing agents, so the rounds are part of the racer."""


@part
def locate(track: Compiled, x: float, y: float) -> tuple[float, float, float]:
    """Distance to the centreline, arc in [0, length) of the nearest point, half the road width there."""
    frame = track.frame[0]
    stretches = track.stretches
    sample = _nearest_sample(track, frame, x, y)
    near = track.samples[sample]
    arc = sample * frame.length / frame.samples
    square = (near.x - x) ** 2 + (near.y - y) ** 2
    low, high = arc - frame.spacing, arc + frame.spacing
    first, last = stretch_at(stretches, near.stretch, low), stretch_at(stretches, near.stretch, high)
    rounds = SEARCH_ROUNDS
    while rounds > 0 and first != last:
        a, b = _thirds(low, high)
        stretch_a, stretch_b = stretch_at(stretches, first, a), stretch_at(stretches, last, b)
        square_a = _squared_distance(stretches[stretch_a], a, x, y)
        square_b = _squared_distance(stretches[stretch_b], b, x, y)
        if square_a < square_b:
            last = stretch_b
        else:
            first = stretch_a
        low, high, arc, square = _narrowed(low, high, arc, square, a, b, square_a, square_b)
        rounds -= 1
    stretch = stretches[first]
    for _ in range(rounds):
        a, b = _thirds(low, high)
        square_a, square_b = _squared_distance(stretch, a, x, y), _squared_distance(stretch, b, x, y)
        low, high, arc, square = _narrowed(low, high, arc, square, a, b, square_a, square_b)
    stretch = stretches[stretch_at(stretches, near.stretch, arc)]
    half_width = stretch.width0 + stretch.width1 * (arc - stretch.arc)
    if arc < 0.0:
        arc += frame.length
    if arc >= frame.length:
        arc -= frame.length
    return math.sqrt(square), arc, half_width


@part
def _thirds(low: float, high: float) -> tuple[float, float]:
    third = (high - low) * (1.0 / 3.0)
    return low + third, high - third


@part
def _narrowed(
    low: float, high: float, arc: float, square: float, a: float, b: float, square_a: float, square_b: float
) -> tuple[float, float, float, float]:
    """One round of the search: the third beyond the farther point goes, the nearer point counts if it is the best."""
    nearer_a = square_a < square_b
    low, high = (low if nearer_a else a), (b if nearer_a else high)
    candidate, distance = (a if nearer_a else b), (square_a if nearer_a else square_b)
    better = distance < square
    return low, high, (candidate if better else arc), (distance if better else square)


@part
def pose_at(track: Compiled, arc: float) -> tuple[float, float, float, float]:
    """Point, direction of travel and half road width at an arc in [0, length)."""
    frame = track.frame[0]
    sample = min(int(arc / frame.spacing), frame.samples - 1)
    stretch = track.stretches[stretch_at(track.stretches, track.samples[sample].stretch, arc)]
    u = arc - stretch.arc
    x = stretch.x0 + u * (stretch.x1 + u * (stretch.x2 + u * stretch.x3))
    y = stretch.y0 + u * (stretch.y1 + u * (stretch.y2 + u * stretch.y3))
    dx = stretch.x1 + u * (2.0 * stretch.x2 + u * 3.0 * stretch.x3)
    dy = stretch.y1 + u * (2.0 * stretch.y2 + u * 3.0 * stretch.y3)
    return x, y, math.atan2(dy, dx), stretch.width0 + u * stretch.width1


@part
def stretch_at(stretches: Compiled, stretch: int, arc: float) -> int:
    """The stretch an arc lies in, walking from one close by."""
    while arc < stretches[stretch].arc:
        stretch -= 1
    while arc >= stretches[stretch + 1].arc:
        stretch += 1
    return stretch


@part
def _nearest_sample(track: Compiled, frame: Compiled, x: float, y: float) -> int:
    square = track.squares[square_at(frame, x, y)]
    nearest, best = 0, np.inf
    for j in range(square.samples, square.samples + square.candidates):
        i = track.lists[j]
        distance = (track.samples[i].x - x) ** 2 + (track.samples[i].y - y) ** 2
        closer = distance < best
        nearest, best = (i if closer else nearest), (distance if closer else best)
    return nearest


@part
def _squared_distance(stretch: Compiled, arc: float, x: float, y: float) -> float:
    u = arc - stretch.arc
    square = u * u
    dx = (stretch.x0 - x + u * stretch.x1) + square * (stretch.x2 + u * stretch.x3)
    dy = (stretch.y0 - y + u * stretch.y1) + square * (stretch.y2 + u * stretch.y3)
    return dx * dx + dy * dy
