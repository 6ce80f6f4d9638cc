"""The nearest point of the centreline around a coarse sample, as a fixed search finds it.

The search takes a bracket around the sample, compares the distances at its thirds and drops the third beyond the
farther point, 16 times over; the nearest point that it looked at is the answer. Its small remaining error shows in
the observations of existing agents, so the rounds are part of the racer. `search` runs them as they are.

`foresee` tells what they come to. Let `s` be where the distance is truly least, and `d` the way to it from the middle
of the bracket. Each round drops the third that is farther from `s`, and the new middle is the point that was nearer:
so all that a round does is `d -= copysign(h, d)`, with `h` a sixth of the width. The answer is the middle with the
smallest `d`, counting the sample, which is the first.

This holds where the squared distance is nearly symmetric around `s`. At `u` from there it is `c·u²`, times 1 within
`skew·|u|/3` where the centreline is smooth, and within `kink·(1 − joint/|u|)` more past the nearest joint of two
stretches; `limits` has bounds of both around every sample. Hence a round is certain if `|d|` is more than about
`skew·h²/6 + kink·(h − joint)/2`, and the answer if the next best `d` is longer by about
`skew·d²/3 + 2·kink·(d − joint)`. The factors in use are larger, for what is of higher order. Where anything is not
certain, `search` is asked.


Where a point is on the track: nearest centreline point, arc and half-width there."""

import math

import numpy as np

from racer_env.engine.compiled import Compiled, part, shared
from racer_env.engine.tables import square_at

SEARCH_ROUNDS = 16
KEPT = 2.0 / 3.0
"""Of the bracket's width, in every round."""
LEAST_CURVATURE = 0.1
"""Of half the squared distance: 1 near a straight line, 0 at the centre of a bend. Below this nothing is foreseen."""
MOST_SKEW, MOST_KINK = 0.24, 0.2
"""More is not foreseen; the skew is for a sixth of the first width."""
LONGEST_STEP = 0.05
"""The last step towards the true least distance; its error is below the step's cube."""
ROUNDING = 1e-8
"""Offsets that differ by less may compare either way."""


@part
def foresee(
    stretch: Compiled, following: Compiled, limits: Compiled, arc: float, guess: float, spacing: float,
    distance: float, x: float, y: float,
) -> tuple[bool, float]:  # fmt: skip
    """Whether it is certain what the search around a sample comes to, and the arc that it comes to.

    The guess of the true place is in the stretch; `distance` is none below that of any point of the bracket.
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
        (curvature > LEAST_CURVATURE) & (abs(step) < LONGEST_STEP) & (least < spacing)
        & (skew * h < MOST_SKEW) & ((kink < MOST_KINK) | (joint > 2.0 * spacing))
    )  # fmt: skip
    for _ in range(SEARCH_ROUNDS):
        slack = min(slack, size - 0.25 * skew * h * h - 1.2 * kink * max(0.0, h - joint))
        offset -= math.copysign(h, offset)
        size = abs(offset)
        second = min(second, max(size, least))
        best = offset if size < least else best
        least = min(size, least)
        h *= KEPT
    error = ROUNDING + abs(step) ** 3
    apart = second - least - 0.5 * skew * second * second - 3.0 * kink * max(0.0, second - joint)
    return certain & (slack > error) & (apart > 2.0 * error) & (joint > least), arc + (place - arc - best)


@part
def step_to_nearest(stretch: Compiled, u: float, x: float, y: float) -> tuple[float, float]:
    """A step (Halley's) from a point of a stretch to where the distance is least; and half the second derivative of
    the squared distance."""
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
    """The way from (x, y) to a point of a stretch."""
    square = u * u
    dx = (stretch.x0 - x + u * stretch.x1) + square * (stretch.x2 + u * stretch.x3)
    dy = (stretch.y0 - y + u * stretch.y1) + square * (stretch.y2 + u * stretch.y3)
    return dx, dy


@shared
def search(stretches: Compiled, stretch: int, arc: float, square: float, spacing: float, x: float, y: float) -> float:
    """The arc that the search around a sample comes to; `stretch` is the sample's, `square` its squared distance."""
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
    """The stretch an arc lies in, walking from one close by."""
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
