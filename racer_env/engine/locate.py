"""Where a point is on the track: nearest centreline point, arc and half-width there."""

import math

import numpy as np

from racer_env.engine.compiled import part
from racer_env.engine.tables import cell_at

SEARCH_ROUNDS = 16
"""Rounds of the ternary search around the nearest coarse sample. Its small remaining error shows in the
observations of existing agents, so the rounds are part of the racer."""


@part
def locate(track, x, y):
    """Distance to the centreline, arc in [0, length) of the nearest point, half the road width there."""
    frame = track.frame[0]
    sample = _nearest_sample(track, frame, x, y)
    stretch = track.samples[sample].stretch
    best_arc = sample * frame.length / frame.samples
    best_square = (track.samples[sample].x - x) ** 2 + (track.samples[sample].y - y) ** 2
    low, high = best_arc - frame.spacing, best_arc + frame.spacing
    low_stretch = high_stretch = stretch
    for _ in range(SEARCH_ROUNDS):
        third = (high - low) * (1.0 / 3.0)
        a, b = low + third, high - third
        low_stretch = stretch_at(track.stretches, low_stretch, a)
        high_stretch = stretch_at(track.stretches, high_stretch, b)
        square_a = _squared_distance(track.stretches[low_stretch], a, x, y)
        square_b = _squared_distance(track.stretches[high_stretch], b, x, y)
        nearer_a = square_a < square_b
        low, high = (low if nearer_a else a), (b if nearer_a else high)
        arc, square = (a if nearer_a else b), (square_a if nearer_a else square_b)
        nearer = square < best_square
        best_arc, best_square = (arc if nearer else best_arc), (square if nearer else best_square)
    stretch = stretch_at(track.stretches, stretch, best_arc)
    half_width = track.stretches[stretch].width0 + track.stretches[stretch].width1 * (
        best_arc - track.stretches[stretch].arc
    )
    if best_arc < 0.0:
        best_arc += frame.length
    if best_arc >= frame.length:
        best_arc -= frame.length
    return math.sqrt(best_square), best_arc, half_width


@part
def pose_at(track, arc):
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
def stretch_at(stretches, stretch, arc):
    """The stretch an arc lies in, walking from one close by."""
    while arc < stretches[stretch].arc:
        stretch -= 1
    while arc >= stretches[stretch + 1].arc:
        stretch += 1
    return stretch


@part
def _nearest_sample(track, frame, x, y):
    cell = track.cells[cell_at(frame, x, y)]
    nearest, best = 0, np.inf
    for j in range(cell.samples, cell.samples + cell.candidates):
        i = track.lists[j]
        square = (track.samples[i].x - x) ** 2 + (track.samples[i].y - y) ** 2
        if square < best:
            nearest, best = i, square
    return nearest


@part
def _squared_distance(stretch, arc, x, y):
    u = arc - stretch.arc
    square = u * u
    dx = (stretch.x0 - x + u * stretch.x1) + square * (stretch.x2 + u * stretch.x3)
    dy = (stretch.y0 - y + u * stretch.y1) + square * (stretch.y2 + u * stretch.y3)
    return dx * dx + dy * dy
