"""The lines along a track that all drawing of its ground starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from racer_env.engine import Track
from racer_env.engine.car import SHOULDER_WIDTH
from racer_env.engine.walls import curvatures
from racer_viewer.render.racing_line import racing_line

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

PIECE_LENGTH = 2.0
"""Between two points of a line, about [units]."""
LEAST_GAP = 0.01
"""Between road and wall, so that there is a direction from the one to the other."""
BEND_CURVATURE, BEND_SPAN = 1.0 / 140.0, 20.0
"""Bends sharper than this [1/unit] have kerbs; the length of road over which that is judged."""
KERB_REACH, KERB_TAPER = 8, 5
"""In points to each side: how far a kerb goes on beyond its bend, and over how many it gets narrow."""


@dataclass(frozen=True, eq=False)
class Side:
    """What lies along one side of the road; lines are closed by repeating their first point, (n + 1, 2).

    away: unit directions from the road to the wall.
    kerb: 0 to 1, the share of a kerb's full width at each point; `barrier` the same for the outside of bends.
    """

    wall: Floats
    shoulder: Floats
    edge: Floats
    away: Floats
    kerb: Floats
    barrier: Floats

    def at(self, places: Ints) -> Side:
        lines = (self.wall, self.shoulder, self.edge, self.away, self.kerb, self.barrier)
        return Side(*(line[places] for line in lines))


@dataclass(frozen=True, eq=False)
class Course:
    """Both sides, and between their edges the line that cars take, as a share from the first to the second."""

    sides: tuple[Side, Side]
    worn: Floats
    piece: float
    """Length of road between two points [units]."""
    heading: float
    """Of the standing start [rad]."""

    def thinned(self, piece: float) -> Course:
        """With points about this far apart, for pictures in which more could not be told apart."""
        count = len(self.worn) - 1
        kept = max(16, round(count * self.piece / max(piece, self.piece)))
        places = np.rint(np.linspace(0, count, kept + 1)).astype(np.intp)
        first, second = (side.at(places) for side in self.sides)
        return Course((first, second), self.worn[places], self.piece * count / kept, self.heading)


def build_course(track: Track) -> Course:
    fineness = max(1, round(track.length / (len(track.inner) - 1) / PIECE_LENGTH))
    walls = [_finer(line, fineness, curved=False) for line in (track.inner, track.outer)]
    edges = [_finer(line, fineness, curved=True) for line in (track.inner_road, track.outer_road)]
    count = len(walls[0]) - 1
    arcs = np.arange(count) * track.length / count
    bends = curvatures(track.centreline, arcs, BEND_SPAN)
    tangents = track.centreline.tangents(arcs)
    left = np.stack([-tangents[:, 1], tangents[:, 0]], axis=1)
    first, second = (_side(wall, edge, left, bends) for wall, edge in zip(walls, edges, strict=True))
    return Course((first, second), _worn(track, arcs, edges), track.length / count, track.start[2])


def _side(wall: Floats, edge: Floats, left: Floats, bends: Floats) -> Side:
    gap = np.maximum(np.hypot(*(wall - edge).T), LEAST_GAP)[:, None]
    away = (wall - edge) / gap
    towards = np.sign((away[:-1] * left).sum(axis=1)) * bends
    kerb, barrier = (_tapered(side > BEND_CURVATURE) for side in (towards, -towards))
    return Side(wall, edge + away * np.minimum(gap, SHOULDER_WIDTH), edge, away, kerb, barrier)


def _tapered(there: NDArray[np.bool_]) -> Floats:
    wide = _around(there, KERB_REACH).any(axis=0)
    tapered = _around(wide, KERB_TAPER).mean(axis=0)
    return np.append(tapered, tapered[0])


def _around(values: ArrayLike, reach: int) -> NDArray[np.bool_]:
    """Of a closed line, for each place the values up to so far before and after it, (2 * reach + 1, n)."""
    return np.array([np.roll(values, shift) for shift in range(-reach, reach + 1)])


def _worn(track: Track, arcs: Floats, edges: Sequence[Floats]) -> Floats:
    line = racing_line(track, arcs)
    across = edges[1][:-1] - edges[0][:-1]
    share = ((line - edges[0][:-1]) * across).sum(axis=1) / np.maximum((across * across).sum(axis=1), LEAST_GAP)
    return np.append(share, share[0])


def _finer(line: Floats, pieces: int, curved: bool) -> Floats:
    """A closed line with so many pieces for each of its own, straight or along a Catmull-Rom spline."""
    points = line[:-1]
    before, after, far = (np.roll(points, shift, axis=0) for shift in (1, -1, -2))
    t = (np.arange(pieces) / pieces)[None, :, None]
    p0, p1, p2, p3 = (each[:, None] for each in (before, points, after, far))
    if curved:
        m1, m2 = (p2 - p0) / 2.0, (p3 - p1) / 2.0
        bend = 3.0 * (p2 - p1) - 2.0 * m1 - m2
        fine = p1 + t * (m1 + t * (bend + t * (2.0 * (p1 - p2) + m1 + m2)))
    else:
        fine = p1 + t * (p2 - p1)
    fine = fine.reshape(-1, 2)
    return np.vstack([fine, fine[:1]])
