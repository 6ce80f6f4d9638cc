"""The line that most cars take around a track: where the asphalt is worn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import Track

Floats = NDArray[np.float64]

SPACINGS = (64.0, 32.0, 16.0, 8.0)
"""Distances between the points of the line [units], from a rough one to the finest."""
ROUNDS = 110
"""How often a line is straightened at each spacing."""
EDGE_GAP = 5.0
"""From the line to the edge of the road, at least [units]."""
STIFFNESS, TENSION = 0.06, 0.003
"""How much a point gives way to what would bend the line less, and to what would make it shorter, in one round."""


def racing_line(track: Track, arcs: Floats) -> Floats:
    """Points (n, 2) of a smooth line within the road at these distances along the centreline.

    A rough line is straightened first and then refined, so that even a long bend is taken as a whole.
    """
    offsets, known = np.zeros(1), np.zeros(1)
    for spacing in SPACINGS:
        count = max(8, round(track.length / spacing))
        here = np.arange(count) * track.length / count
        offsets = _straightened(track, here, np.interp(here, known, offsets, period=track.length))
        known = here
    return _placed(track, arcs, np.interp(arcs, known, offsets, period=track.length))


def _straightened(track: Track, arcs: Floats, offsets: Floats) -> Floats:
    """Offsets to the left of the centreline [units], after relaxation within the road."""
    room = np.maximum(0.0, track.centreline.half_widths_at(arcs) - EDGE_GAP)
    centres, left = track.centreline.points(arcs), _left(track, arcs)
    for _ in range(ROUNDS):
        points = centres + left * offsets[:, None]
        sag = _pull(points)
        bend = _pull(sag)
        offsets = offsets + ((TENSION * sag - STIFFNESS * bend) * left).sum(axis=1)
        offsets = np.clip(offsets, -room, room)
    return offsets


def _pull(points: Floats) -> Floats:
    """From each point of a closed line towards its two neighbours, summed."""
    return np.concatenate((points[1:], points[:1])) + np.concatenate((points[-1:], points[:-1])) - 2.0 * points


def _placed(track: Track, arcs: Floats, offsets: Floats) -> Floats:
    return track.centreline.points(arcs) + _left(track, arcs) * offsets[:, None]


def _left(track: Track, arcs: Floats) -> Floats:
    tangents = track.centreline.tangents(arcs)
    return np.stack([-tangents[:, 1], tangents[:, 0]], axis=1)
