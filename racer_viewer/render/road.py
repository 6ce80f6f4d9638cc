"""Road geometry for drawing: racing line, edge lines, and polygons of runoff, shoulder, kerbs, asphalt, paint and
walls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from racer_env.engine import Track
from racer_env.engine.car import SHOULDER_WIDTH
from racer_env.engine.starts import GRID_BOXES, GRID_FIRST, GRID_OFFSET, GRID_SPACING
from racer_env.engine.walls import curvatures

Floats = NDArray[np.float64]

SPACINGS = (64.0, 32.0, 16.0, 8.0)
"""Point spacings of the racing line, from coarse to fine [units]."""
ROUNDS = 110
"""Relaxation rounds per spacing."""
EDGE_GAP = 5.0
"""Smallest distance from the line to the edge of the road [units]."""
STIFFNESS, TENSION = 0.06, 0.003
"""Relaxation weights per round, against bending and against length."""


def racing_line(track: Track, arcs: Floats) -> Floats:
    """Return points (n, 2) of a smooth line within the road, at these distances along the centreline.

    A coarse line is relaxed first and then refined, so that a long bend is taken as a whole.
    """
    offsets, known = np.zeros(1), np.zeros(1)
    for spacing in SPACINGS:
        count = max(8, round(track.length / spacing))
        here = np.arange(count) * track.length / count
        offsets = _straightened(track, here, np.interp(here, known, offsets, period=track.length))
        known = here
    return _placed(track, arcs, np.interp(arcs, known, offsets, period=track.length))


def _straightened(track: Track, arcs: Floats, offsets: Floats) -> Floats:
    """Return offsets to the left of the centreline [units], relaxed within the road."""
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
    """Return the sum of the vectors from each point of a closed line to its two neighbours."""
    return np.concatenate((points[1:], points[:1])) + np.concatenate((points[-1:], points[:-1])) - 2.0 * points


def _placed(track: Track, arcs: Floats, offsets: Floats) -> Floats:
    return track.centreline.points(arcs) + _left(track, arcs) * offsets[:, None]


def _left(track: Track, arcs: Floats) -> Floats:
    tangents = track.centreline.tangents(arcs)
    return np.stack([-tangents[:, 1], tangents[:, 0]], axis=1)


Ints = NDArray[np.intp]

PIECE_LENGTH = 2.0
"""Approximate distance between two points of a line [units]."""
MIN_WALL_GAP = 0.01
"""Smallest distance between road and wall [units], so that the direction between them is defined."""
BEND_CURVATURE, BEND_SPAN = 1.0 / 140.0, 20.0
"""Curvature from which a bend has kerbs [1/unit], and the length of road over which it is measured [units]."""
KERB_REACH, KERB_TAPER = 8, 5
"""Extension of a kerb beyond its bend, and length of its taper [points to each side]."""


@dataclass(frozen=True, eq=False)
class Side:
    """Lines along one side of the road, closed by repeating their first point, (n + 1, 2).

    away: unit vectors from the road to the wall.
    kerb: share of a kerb's full width at each point, 0 to 1.
    barrier: the same for the outside of bends.
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
    """Both sides of the road, and the racing line between them as a share of the width."""

    sides: tuple[Side, Side]
    worn: Floats
    piece: float
    """Length of road between two points [units]."""
    heading: float
    """Heading of the standing start [rad]."""

    def thinned(self, piece: float) -> Course:
        """Return a course with points about this far apart [units], for small scales."""
        count = len(self.worn) - 1
        kept = max(16, round(count * self.piece / max(piece, self.piece)))
        places = np.rint(np.linspace(0, count, kept + 1)).astype(np.intp)
        first, second = (side.at(places) for side in self.sides)
        return Course((first, second), self.worn[places], self.piece * count / kept, self.heading)


def build_course(track: Track, worn: bool = True) -> Course:
    """Build both sides of a road. worn: find the racing line, which takes longest; otherwise it is the middle."""
    fineness = max(1, round(track.length / (len(track.inner) - 1) / PIECE_LENGTH))
    walls = [_finer(line, fineness, curved=False) for line in (track.inner, track.outer)]
    edges = [_finer(line, fineness, curved=True) for line in (track.inner_road, track.outer_road)]
    count = len(walls[0]) - 1
    arcs = np.arange(count) * track.length / count
    bends = curvatures(track.centreline, arcs, BEND_SPAN)
    tangents = track.centreline.tangents(arcs)
    left = np.stack([-tangents[:, 1], tangents[:, 0]], axis=1)
    first, second = (_side(wall, edge, left, bends) for wall, edge in zip(walls, edges, strict=True))
    line = _worn(track, arcs, edges) if worn else np.full(count + 1, 0.5)
    return Course((first, second), line, track.length / count, track.start[2])


def _side(wall: Floats, edge: Floats, left: Floats, bends: Floats) -> Side:
    gap = np.maximum(np.hypot(*(wall - edge).T), MIN_WALL_GAP)[:, None]
    away = (wall - edge) / gap
    towards = np.sign((away[:-1] * left).sum(axis=1)) * bends
    kerb, barrier = (_tapered(side > BEND_CURVATURE) for side in (towards, -towards))
    return Side(wall, edge + away * np.minimum(gap, SHOULDER_WIDTH), edge, away, kerb, barrier)


def _tapered(there: NDArray[np.bool_]) -> Floats:
    wide = _around(there, KERB_REACH).any(axis=0)
    tapered = _around(wide, KERB_TAPER).mean(axis=0)
    return np.append(tapered, tapered[0])


def _around(values: ArrayLike, reach: int) -> NDArray[np.bool_]:
    """Return the values of a closed line around each point, (2 * reach + 1, n)."""
    return np.array([np.roll(values, shift) for shift in range(-reach, reach + 1)])


def _worn(track: Track, arcs: Floats, edges: Sequence[Floats]) -> Floats:
    line = racing_line(track, arcs)
    across = edges[1][:-1] - edges[0][:-1]
    share = ((line - edges[0][:-1]) * across).sum(axis=1) / np.maximum((across * across).sum(axis=1), MIN_WALL_GAP)
    return np.append(share, share[0])


def _finer(line: Floats, pieces: int, curved: bool) -> Floats:
    """Return a closed line with each piece subdivided, straight or along a Catmull-Rom spline."""
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


Colour = tuple[int, ...]
"""Colour as RGB, or as premultiplied RGBA."""
Layer = tuple[Floats, Sequence[Colour]]
"""Polygons with equal corner counts (n, corners, 2), and the colour of each."""

RUNOFF: Colour = (172, 152, 112)
RUNOFF_RAKED: Colour = (165, 145, 106)
RUNOFF_SHADE: Colour = (126, 111, 84)
SHOULDER: tuple[Colour, Colour] = ((84, 127, 67), (77, 118, 62))
"""Alternating bands across the shoulder, which make speed visible."""
ASPHALT: tuple[Colour, ...] = ((72, 74, 80), (70, 72, 78), (67, 69, 75), (64, 66, 72), (61, 62, 68), (57, 58, 64))
"""Asphalt colours from the edges to the darker racing line."""
PATCH: tuple[Colour, Colour] = ((68, 70, 77), (75, 76, 81))
"""Colours of repaired patches."""
PAINT: Colour = (236, 234, 226)
GRID_PAINT: Colour = (206, 206, 202)
KERB: tuple[Colour, Colour] = ((200, 48, 44), PAINT)
KERB_SIDE: Colour = (52, 62, 46)
WALL: Colour = (222, 222, 216)
WALL_BLOCK: Colour = (211, 211, 206)
"""Colour of every other wall block."""
BARRIER: tuple[Colour, Colour] = ((204, 58, 50), (226, 226, 220))
"""Colours of walls outside of bends."""
WALL_SIDE: Colour = (112, 114, 117)
GRASS_SHADE: Colour = (0, 0, 0, 92)
CHEQUERS: tuple[Colour, Colour] = (PAINT, (24, 24, 26))

RAKED = (0.22, 0.44, 0.66, 0.88)
"""Start and end of the darker strips across the runoff, as shares of its width."""
BAND_LENGTH, BLOCK_LENGTH, KERB_LENGTH, RUN_LENGTH = 16.0, 6.0, 4.0, 16.0
"""Lengths along the road of shoulder bands, wall blocks, kerb pieces, and polygons of one colour [units]."""
EDGE_LINE_WIDTH, EDGE_LINE_INSET = 0.55, 0.35
KERB_WIDTH, KERB_SIDE_WIDTH = 2.0, 0.35
WALL_WIDTH, WALL_DEPTH = 0.9, 1.4
"""Width of a wall's top, and depth including its side, outwards from the line that cars and rays hit [units]."""
SUN = (0.72, -0.69)
"""Direction of shadows; the light comes from the upper left."""
WALL_SHADOW = 1.9
"""Length of a wall's shadow [units]."""
WORN_WIDTHS = (10.0, 7.4, 5.4, 3.6, 2.0)
"""Half-widths around the racing line of the asphalt colours after the first [units]."""
PATCH_SPACING, PATCH_LENGTHS, PATCH_WIDTHS, PATCH_POINTS = 70.0, (8.0, 26.0), (0.16, 0.4), 7
"""Spacing and lengths of repaired patches [units], widths as shares of the road, and points along each side."""
CHEQUER_SIZE, CHEQUER_ROWS = 1.25, 4
GRID_BOX, GRID_LINE = (6.0, 3.8), 0.4
"""Boxes of the starting grid: length and half-width, line width [units]."""


def layers(course: Course) -> list[Layer]:
    """Return all layers on top of the grass, lowest first."""
    sides = course.sides
    edges = sides[0].edge, sides[1].edge
    return [
        *(_shadow(course, side, GRASS_SHADE, outside=True) for side in sides),
        *(layer for side in sides for layer in _runoff(course, side)),
        *(_band(side.shoulder, side.edge, SHOULDER, course.piece, BAND_LENGTH) for side in sides),
        *(_shadow(course, side, RUNOFF_SHADE, outside=False) for side in sides),
        *(layer for side in sides for layer in _kerb(course, side)),
        *_asphalt(course, *edges),
        *(_edge_line(course, side) for side in sides),
        _grid(course),
        _start_line(edges[0][0], edges[1][0], course.heading),
        *(layer for side in sides for layer in _wall(course, side)),
    ]


def _runs(count: int, together: int) -> NDArray[np.intp]:
    """Return the point indices of each run of so many pieces of a line, (runs, together + 1)."""
    starts = np.arange(0, count, together)[:, None]
    return np.asarray(np.minimum(starts + np.arange(together + 1), count))


def _band(a: Floats, b: Floats, colours: tuple[Colour, ...], piece: float, length: float) -> Layer:
    """Return the area between two lines as polygons of about this length, with alternating colours."""
    runs = _runs(len(a) - 1, max(1, round(length / piece)))
    corners = np.concatenate([a[runs], b[runs][:, ::-1]], axis=1)
    return corners, [colours[number % len(colours)] for number in range(len(runs))]


def _chosen(layer: Layer, there: Any) -> Layer:
    """Return the polygons of a layer that a boolean mask selects."""
    corners, colours = layer
    return corners[there], list(itertools.compress(colours, there.tolist()))


def _runoff(course: Course, side: Side) -> list[Layer]:
    lines = [side.shoulder + share * (side.wall - side.shoulder) for share in RAKED]
    strips = [_band(lines[i], lines[i + 1], (RUNOFF_RAKED,), course.piece, RUN_LENGTH) for i in (0, 2)]
    return [_band(side.shoulder, side.wall, (RUNOFF,), course.piece, RUN_LENGTH), *strips]


def _shadow(course: Course, side: Side, colour: Colour, outside: bool) -> Layer:
    """Return a wall's shadow, either the part outside of the walls or the part inside."""
    fall = np.array(SUN) * WALL_SHADOW
    top = side.wall + side.away * WALL_WIDTH if outside else side.wall
    outwards = (side.away @ fall) > 0.0
    runs = _runs(len(top) - 1, max(1, round(KERB_LENGTH / course.piece)))
    there = outwards[runs].any(axis=1) if outside else (~outwards[runs]).any(axis=1)
    return _chosen(_band(top, top + fall, (colour,), course.piece, KERB_LENGTH), there)


def _kerb(course: Course, side: Side) -> list[Layer]:
    """Return kerbs along the inside of bends, with a dark rim."""
    width = side.kerb[:, None] * KERB_WIDTH
    rim = width + (side.kerb > 0.0)[:, None] * KERB_SIDE_WIDTH
    runs = _runs(len(width) - 1, max(1, round(KERB_LENGTH / course.piece)))
    there = (side.kerb[runs] > 0.0).any(axis=1)
    bands = ((rim, (KERB_SIDE,)), (width, KERB))
    return [
        _chosen(_band(side.edge, side.edge + side.away * reach, colours, course.piece, KERB_LENGTH), there)
        for reach, colours in bands
    ]


def _asphalt(course: Course, first: Floats, second: Floats) -> list[Layer]:
    across = second - first
    width = np.maximum(np.hypot(*across.T), MIN_WALL_GAP)
    worn = []
    for colour, reach in zip(ASPHALT[1:], WORN_WIDTHS, strict=True):
        shares = (np.clip(course.worn + way * reach / width, 0.0, 1.0)[:, None] for way in (-1.0, 1.0))
        a, b = (first + share * across for share in shares)
        worn.append(_band(a, b, (colour,), course.piece, RUN_LENGTH))
    return [_band(first, second, (ASPHALT[0],), course.piece, RUN_LENGTH), _patches(course, first, across), *worn]


def _patches(course: Course, first: Floats, across: Floats) -> Layer:
    """Return repaired patches, deterministic for a track."""
    count = len(first) - 1
    starts = np.arange(0, count, max(1, round(PATCH_SPACING / course.piece)))
    length, width, side, shade = np.random.default_rng(0).uniform(size=(len(starts), 4)).T
    pieces = np.maximum(1.0, (PATCH_LENGTHS[0] + length * np.ptp(PATCH_LENGTHS)) / course.piece)
    places = np.rint(starts[:, None] + pieces[:, None] * np.linspace(0.0, 1.0, PATCH_POINTS)).astype(int) % count
    share = PATCH_WIDTHS[0] + width * np.ptp(PATCH_WIDTHS)
    low = side * (1.0 - share)
    a, b = (first[places] + part[:, None, None] * across[places] for part in (low, low + share))
    return np.concatenate([a, b[:, ::-1]], axis=1), [PATCH[int(dark)] for dark in shade < 0.4]


def _edge_line(course: Course, side: Side) -> Layer:
    outer = side.edge - side.away * EDGE_LINE_INSET
    return _band(outer, outer - side.away * EDGE_LINE_WIDTH, (PAINT,), course.piece, RUN_LENGTH)


def _wall(course: Course, side: Side) -> list[Layer]:
    top, back = side.wall + side.away * WALL_WIDTH, side.wall + side.away * WALL_DEPTH
    runs = _runs(len(top) - 1, max(1, round(BLOCK_LENGTH / course.piece)))
    bent = (side.barrier[runs] > 0.5).all(axis=1)
    return [
        _band(top, back, (WALL_SIDE,), course.piece, RUN_LENGTH),
        _band(side.wall, top, (WALL, WALL_BLOCK), course.piece, BLOCK_LENGTH),
        _chosen(_band(side.wall, top, BARRIER, course.piece, BLOCK_LENGTH), bent),
    ]


def _quads(near: Floats, far: Floats) -> Floats:
    return np.stack([near[:-1], near[1:], far[1:], far[:-1]], axis=1)


def _start_line(inner: Floats, outer: Floats, heading: float) -> Layer:
    """Return chequers from one edge of the road to the other."""
    ahead = CHEQUER_SIZE * np.array([math.cos(heading), math.sin(heading)])
    columns = max(2, round(float(np.hypot(*(outer - inner))) / CHEQUER_SIZE))
    ends = inner + np.linspace(0.0, 1.0, columns + 1)[:, None] * (outer - inner)
    rows = [ends + (row - CHEQUER_ROWS / 2) * ahead for row in range(CHEQUER_ROWS + 1)]
    corners = np.concatenate([_quads(near, far) for near, far in itertools.pairwise(rows)])
    colours = [CHEQUERS[(row + column) % 2] for row in range(CHEQUER_ROWS) for column in range(columns)]
    return corners, colours


def _grid(course: Course) -> Layer:
    """Return the boxes of the starting grid, alternating left and right, each open at its back."""
    length, half = GRID_BOX
    strokes = (
        ((0.0, -half), (-GRID_LINE, half)),
        ((0.0, half), (-length, half - GRID_LINE)),
        ((0.0, -half), (-length, GRID_LINE - half)),
    )
    corners = []
    for row in range(GRID_BOXES):
        back = 1 + round((GRID_FIRST + row * GRID_SPACING) / course.piece)
        place = -back % len(course.worn)  # the grid of a tiny circuit, as it is drawn, may be longer than a lap
        first, second = (side.edge[place] for side in course.sides)
        across = (second - first) / np.hypot(*(second - first))
        ahead = np.array([-across[1], across[0]])
        ahead *= np.sign(ahead @ (math.cos(course.heading), math.sin(course.heading)))
        left = np.array([-ahead[1], ahead[0]]) * np.hypot(*(second - first)) / 2.0
        front = (first + second) / 2.0 + left * (GRID_OFFSET if row % 2 == 0 else -GRID_OFFSET)
        for (x0, y0), (x1, y1) in strokes:
            corners.append([front + ahead * x + across * y for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))])
    return np.array(corners), [GRID_PAINT] * len(corners)
