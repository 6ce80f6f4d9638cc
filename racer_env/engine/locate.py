"""Location of a point on the track: nearest centreline point, arc and half-width there.

The nearest coarse sample of the centreline starts a fixed search: it takes a bracket around the sample, compares the
distances at its thirds and drops the third beyond the farther point, 16 times; the nearest point that it looked at is
the result. The small remaining error shows in the observations of existing agents, so the rounds are part of the
simulation. `search` runs them.

`predict_search` computes their result directly. Let `s` be the true place of the least distance, and `d` the distance
to it from the middle of the bracket. Each round drops the third that is farther from `s`, and the new middle is the
point that was nearer: a round is just `d -= copysign(h, d)`, with `h` a sixth of the width. The result is the middle
with the smallest `|d|`, including the sample itself, which is the first middle.

This holds where the squared distance is nearly symmetric around `s`. At `u` from there it is `c·u²`, times a factor
that differs from 1 by at most `skew·|u|/3` where the centreline is smooth, and by `kink·(1 − joint/|u|)` more past the
nearest joint of two stretches; `limits` bounds both around every sample. Hence a round is certain if `|d|` is more than
about `skew·h²/6 + kink·(h − joint)/2`, and the result if the second smallest `|d|` is larger by about
`skew·d²/3 + 2·kink·(d − joint)`. The factors in the code are larger, to cover terms of higher order. If anything is
not certain, `search` runs.
"""

import math

import numpy as np

from racer_env.engine.compiled import Compiled, part, shared
from racer_env.engine.tables import square_at

SEARCH_ROUNDS = 16
"""Rounds of the search."""
BRACKET_SHRINK = 2.0 / 3.0
"""Factor of the bracket's width in every round."""
MIN_CURVATURE = 0.1
"""Minimum second derivative of half the squared distance: 1 near a straight line, 0 at the centre of a bend."""
MAX_SKEW, MAX_KINK = 0.24, 0.2
"""Maximum asymmetry for a prediction; the skew is for a sixth of the first bracket."""
MAX_STEP = 0.05
"""Maximum length of the last step towards the true nearest point [units]; its error is below the step's cube."""
ROUNDING = 1e-8
"""Difference of offsets [units] below which rounding may decide a comparison."""


@part
def predict_search(
    stretch: Compiled, following: Compiled, limits: Compiled, arc: float, guess: float, spacing: float,
    distance: float, x: float, y: float,
) -> tuple[bool, float]:  # fmt: skip
    """Return whether the result of `search` around a sample is certain, and its arc.

    guess: estimate of the true nearest place, within the stretch.
    distance: upper bound of the distance to any point of the bracket.
    """
    step, curvature = step_to_nearest(stretch, guess - stretch.arc, x, y)
    place = guess + step
    joint = min(place - stretch.arc, following.arc - place)
    skew = (limits.skew + distance * limits.skew_per_distance) / curvature
    kink = limits.kink + distance * limits.kink_per_distance / curvature
    offset = place - arc
    best, least, second, slack = offset, abs(offset), math.inf, math.inf
    size, h = least, spacing / 3.0
    certain = (
        (curvature > MIN_CURVATURE) & (abs(step) < MAX_STEP) & (least < spacing)
        & (skew * h < MAX_SKEW) & ((kink < MAX_KINK) | (joint > 2.0 * spacing))
    )  # fmt: skip
    for _ in range(SEARCH_ROUNDS):
        slack = min(slack, size - 0.25 * skew * h * h - 1.2 * kink * max(0.0, h - joint))
        offset -= math.copysign(h, offset)
        size = abs(offset)
        second = min(second, max(size, least))
        best = offset if size < least else best
        least = min(size, least)
        h *= BRACKET_SHRINK
    error = ROUNDING + abs(step) ** 3
    apart = second - least - 0.5 * skew * second * second - 3.0 * kink * max(0.0, second - joint)
    return certain & (slack > error) & (apart > 2.0 * error) & (joint > least), arc + (place - arc - best)


@part
def step_to_nearest(stretch: Compiled, u: float, x: float, y: float) -> tuple[float, float]:
    """Return Halley's step from a point of a stretch towards the least distance, and half the second derivative of the
    squared distance."""
    dx, dy = point_from(stretch, u, x, y)
    vx = stretch.x1 + u * (2.0 * stretch.x2 + u * 3.0 * stretch.x3)
    vy = stretch.y1 + u * (2.0 * stretch.y2 + u * 3.0 * stretch.y3)
    jx, jy = 6.0 * stretch.x3, 6.0 * stretch.y3
    ax, ay = 2.0 * stretch.x2 + u * jx, 2.0 * stretch.y2 + u * jy
    slope = dx * vx + dy * vy
    curvature = (vx * vx + vy * vy) + (dx * ax + dy * ay)
    change = 3.0 * (vx * ax + vy * ay) + (dx * jx + dy * jy)
    return -2.0 * slope * curvature / (2.0 * curvature * curvature - slope * change), curvature


@part
def point_from(stretch: Compiled, u: float, x: float, y: float) -> tuple[float, float]:
    """Return the vector from (x, y) to a point of a stretch."""
    square = u * u
    dx = (stretch.x0 - x + u * stretch.x1) + square * (stretch.x2 + u * stretch.x3)
    dy = (stretch.y0 - y + u * stretch.y1) + square * (stretch.y2 + u * stretch.y3)
    return dx, dy


@shared
def search(stretches: Compiled, stretch: int, arc: float, square: float, spacing: float, x: float, y: float) -> float:
    """Return the arc that the search around a sample finds.

    stretch: index of the sample's stretch.
    square: squared distance to the sample.
    """
    low, high = arc - spacing, arc + spacing
    for _ in range(SEARCH_ROUNDS):
        third = (high - low) * (1.0 / 3.0)
        a, b = low + third, high - third
        stretch_a = stretch_at(stretches, stretch, a)
        stretch = stretch_at(stretches, stretch_a, b)
        square_a = _squared_distance(stretches[stretch_a], a, x, y)
        square_b = _squared_distance(stretches[stretch], b, x, y)
        if square_a < square_b:
            high, candidate, nearer = b, a, square_a
        else:
            low, candidate, nearer = a, b, square_b
        if nearer < square:
            arc, square = candidate, nearer
    return arc


@part
def stretch_at(stretches: Compiled, stretch: int, arc: float) -> int:
    """Return the index of the stretch that contains an arc, walking from one close by."""
    while arc < stretches[stretch].arc:
        stretch -= 1
    while arc >= stretches[stretch + 1].arc:
        stretch += 1
    return stretch


@part
def _squared_distance(stretch: Compiled, arc: float, x: float, y: float) -> float:
    dx, dy = point_from(stretch, arc - stretch.arc, x, y)
    return dx * dx + dy * dy


@part
def locate(track: Compiled, x: float, y: float) -> tuple[float, float, float]:
    """Return distance to the centreline, arc in [0, length) of the nearest point, and half the road width there."""
    frame = track.frame[0]
    stretches = track.stretches
    sample, square = nearest_sample(track, frame, x, y)
    near = track.samples[sample].stretch
    arc = sample * frame.length / frame.samples
    stretch = stretches[near]
    guess = arc + step_to_nearest(stretch, arc - stretch.arc, x, y)[0]
    index = near + (guess >= stretches[near + 1].arc) - (guess < stretch.arc)
    stretch = stretches[index]
    distance = math.sqrt(square) + 2.0 * frame.spacing
    certain, found = predict_search(
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
def point_at(track: Compiled, arc: float) -> tuple[float, float, float, float, float]:
    """Return point, tangent (dx, dy) of any length and half road width at an arc in [0, length)."""
    frame = track.frame[0]
    sample = min(int(arc / frame.spacing), frame.samples - 1)
    stretch = track.stretches[stretch_at(track.stretches, track.samples[sample].stretch, arc)]
    u = arc - stretch.arc
    x = stretch.x0 + u * (stretch.x1 + u * (stretch.x2 + u * stretch.x3))
    y = stretch.y0 + u * (stretch.y1 + u * (stretch.y2 + u * stretch.y3))
    dx = stretch.x1 + u * (2.0 * stretch.x2 + u * 3.0 * stretch.x3)
    dy = stretch.y1 + u * (2.0 * stretch.y2 + u * 3.0 * stretch.y3)
    return x, y, dx, dy, stretch.width0 + u * stretch.width1


@part
def pose_at(track: Compiled, arc: float) -> tuple[float, float, float, float]:
    """Return point, direction of travel and half road width at an arc in [0, length)."""
    x, y, dx, dy, half_width = point_at(track, arc)
    return x, y, math.atan2(dy, dx), half_width


@part
def nearest_sample(track: Compiled, frame: Compiled, x: float, y: float) -> tuple[int, float]:
    """Return the first nearest coarse sample and its squared distance, from the candidates of the point's square."""
    square = track.squares[square_at(frame, x, y)]
    nearest, best = 0, np.inf
    for j in range(square.samples, square.samples + square.candidates):
        i = track.lists[j]
        distance = (track.samples[i].x - x) ** 2 + (track.samples[i].y - y) ** 2
        closer = distance < best
        nearest, best = (i if closer else nearest), (distance if closer else best)
    return nearest, best
