"""Where a point is on the track: nearest centreline point, arc and half-width there."""

import math

import numpy as np

from racer_env.engine.compiled import Compiled, part
from racer_env.engine.search import foresee, point_from, search, step_to_nearest, stretch_at
from racer_env.engine.tables import square_at


@part
def locate(track: Compiled, x: float, y: float) -> tuple[float, float, float]:
    """Distance to the centreline, arc in [0, length) of the nearest point, half the road width there."""
    frame = track.frame[0]
    stretches = track.stretches
    sample, square = _nearest_sample(track, frame, x, y)
    near = track.samples[sample].stretch
    arc = sample * frame.length / frame.samples
    stretch = stretches[near]
    guess = arc + step_to_nearest(stretch, arc - stretch.arc, x, y)[0]
    index = near + (guess >= stretches[near + 1].arc) - (guess < stretch.arc)
    stretch = stretches[index]
    distance = math.sqrt(square) + 2.0 * frame.spacing
    certain, found = foresee(
        stretch, stretches[index + 1], track.limits[sample], arc, guess, frame.spacing, distance, x, y
    )
    if not certain:
        found = search(stretches, near, arc, square, frame.spacing, x, y)
        stretch = stretches[stretch_at(stretches, near, found)]
    u = found - stretch.arc
    dx, dy = point_from(stretch, u, x, y)
    if found < 0.0:
        found += frame.length
    if found >= frame.length:
        found -= frame.length
    return math.sqrt(dx * dx + dy * dy), found, stretch.width0 + stretch.width1 * u


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
def _nearest_sample(track: Compiled, frame: Compiled, x: float, y: float) -> tuple[int, float]:
    square = track.squares[square_at(frame, x, y)]
    nearest, best = 0, np.inf
    for j in range(square.samples, square.samples + square.candidates):
        i = track.lists[j]
        distance = (track.samples[i].x - x) ** 2 + (track.samples[i].y - y) ** 2
        closer = distance < best
        nearest, best = (i if closer else nearest), (distance if closer else best)
    return nearest, best
