"""What is built on the grass, as polygons: runoff, shoulder, kerbs, asphalt, paint and walls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_viewer.render.course import Course, Floats, Side

Colour = tuple[int, ...]
"""Red, green, blue, and how opaque it is where that is not wholly; then the colour is multiplied with it already."""
Layer = tuple[Floats, Sequence[Colour]]
"""Polygons of as many corners each (n, corners, 2), and the colour of each."""

RUNOFF: Colour = (172, 152, 112)
RUNOFF_RAKED: Colour = (165, 145, 106)
RUNOFF_SHADE: Colour = (126, 111, 84)
SHOULDER: tuple[Colour, Colour] = ((84, 127, 67), (77, 118, 62))
"""In bands across, by which one sees how fast one goes."""
ASPHALT: tuple[Colour, ...] = ((72, 74, 80), (70, 72, 78), (67, 69, 75), (64, 66, 72), (61, 62, 68), (57, 58, 64))
"""From the edges to where most cars drive, which wears it dark."""
PATCH: tuple[Colour, Colour] = ((68, 70, 77), (75, 76, 81))
"""Where it was mended."""
PAINT: Colour = (236, 234, 226)
GRID_PAINT: Colour = (206, 206, 202)
KERB: tuple[Colour, Colour] = ((200, 48, 44), PAINT)
KERB_SIDE: Colour = (52, 62, 46)
WALL: Colour = (222, 222, 216)
WALL_BLOCK: Colour = (211, 211, 206)
"""Of every other block."""
BARRIER: tuple[Colour, Colour] = ((204, 58, 50), (226, 226, 220))
"""Of walls outside of bends."""
WALL_SIDE: Colour = (112, 114, 117)
GRASS_SHADE: Colour = (0, 0, 0, 92)
CHEQUERS: tuple[Colour, Colour] = (PAINT, (24, 24, 26))

RAKED = (0.22, 0.44, 0.66, 0.88)
"""Where darker strips begin and end across the runoff."""
BAND_LENGTH, BLOCK_LENGTH, KERB_LENGTH, RUN_LENGTH = 16.0, 6.0, 4.0, 16.0
"""Along the road, of shoulder bands, blocks of wall, pieces of kerb, and polygons of one colour [units]."""
EDGE_LINE_WIDTH, EDGE_LINE_INSET = 0.55, 0.35
KERB_WIDTH, KERB_SIDE_WIDTH = 2.0, 0.35
WALL_WIDTH, WALL_DEPTH = 0.9, 1.4
"""Of a wall's top, and with its side, outwards from the line that cars and rays meet [units]."""
SUN = (0.72, -0.69)
"""The way that shadows fall: the light comes from the upper left."""
WALL_SHADOW = 1.9
"""[units]"""
WORN_WIDTHS = (10.0, 7.4, 5.4, 3.6, 2.0)
"""To each side of the racing line, one for each but the first of the asphalt's colours [units]."""
PATCH_SPACING, PATCH_LENGTHS, PATCH_WIDTHS, PATCH_POINTS = 70.0, (8.0, 26.0), (0.16, 0.4), 7
"""Of mended places: apart by and long [units], shares of the road's width, points along each side."""
CHEQUER_SIZE, CHEQUER_ROWS = 1.25, 4
GRID_ROWS, GRID_SPACING, GRID_FIRST, GRID_BOX, GRID_LINE = 8, 11.0, 7.0, (4.4, 3.6), 0.4
"""Boxes of the starting grid: how many, apart by, from the line to the first, length and half-width, and paint."""


def layers(course: Course) -> list[Layer]:
    """All that lies on the grass, the lowest first."""
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
    """Numbers of the points of each run of so many pieces of a line, (runs, together + 1)."""
    starts = np.arange(0, count, together)[:, None]
    return np.asarray(np.minimum(starts + np.arange(together + 1), count))


def _band(a: Floats, b: Floats, colours: tuple[Colour, ...], piece: float, length: float) -> Layer:
    """What lies between two lines, in polygons of about this length along them; the colours take turns."""
    runs = _runs(len(a) - 1, max(1, round(length / piece)))
    corners = np.concatenate([a[runs], b[runs][:, ::-1]], axis=1)
    return corners, [colours[number % len(colours)] for number in range(len(runs))]


def _chosen(layer: Layer, there: Any) -> Layer:
    """Those of its polygons for which an array of booleans is true."""
    corners, colours = layer
    return corners[there], list(itertools.compress(colours, there.tolist()))


def _runoff(course: Course, side: Side) -> list[Layer]:
    lines = [side.shoulder + share * (side.wall - side.shoulder) for share in RAKED]
    strips = [_band(lines[i], lines[i + 1], (RUNOFF_RAKED,), course.piece, RUN_LENGTH) for i in (0, 2)]
    return [_band(side.shoulder, side.wall, (RUNOFF,), course.piece, RUN_LENGTH), *strips]


def _shadow(course: Course, side: Side, colour: Colour, outside: bool) -> Layer:
    """Of a wall, where it falls outside of the walls, or where it falls inside."""
    fall = np.array(SUN) * WALL_SHADOW
    top = side.wall + side.away * WALL_WIDTH if outside else side.wall
    outwards = (side.away @ fall) > 0.0
    runs = _runs(len(top) - 1, max(1, round(KERB_LENGTH / course.piece)))
    there = outwards[runs].any(axis=1) if outside else (~outwards[runs]).any(axis=1)
    return _chosen(_band(top, top + fall, (colour,), course.piece, KERB_LENGTH), there)


def _kerb(course: Course, side: Side) -> list[Layer]:
    """Along the inside of bends, with a dark rim."""
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
    width = np.hypot(*across.T)
    worn = []
    for colour, reach in zip(ASPHALT[1:], WORN_WIDTHS, strict=True):
        shares = (np.clip(course.worn + way * reach / width, 0.0, 1.0)[:, None] for way in (-1.0, 1.0))
        a, b = (first + share * across for share in shares)
        worn.append(_band(a, b, (colour,), course.piece, RUN_LENGTH))
    return [_band(first, second, (ASPHALT[0],), course.piece, RUN_LENGTH), _patches(course, first, across), *worn]


def _patches(course: Course, first: Floats, across: Floats) -> Layer:
    """Mended places, always the same ones on the same track."""
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
    """Chequers from one edge of the road to the other."""
    ahead = CHEQUER_SIZE * np.array([math.cos(heading), math.sin(heading)])
    columns = max(2, round(float(np.hypot(*(outer - inner))) / CHEQUER_SIZE))
    ends = inner + np.linspace(0.0, 1.0, columns + 1)[:, None] * (outer - inner)
    rows = [ends + (row - CHEQUER_ROWS / 2) * ahead for row in range(CHEQUER_ROWS + 1)]
    corners = np.concatenate([_quads(near, far) for near, far in itertools.pairwise(rows)])
    colours = [CHEQUERS[(row + column) % 2] for row in range(CHEQUER_ROWS) for column in range(columns)]
    return corners, colours


def _grid(course: Course) -> Layer:
    """Boxes for the cars before the start, to the left and to the right in turn; each is open at its back."""
    length, half = GRID_BOX
    strokes = (
        ((0.0, -half), (-GRID_LINE, half)),
        ((0.0, half), (-length, half - GRID_LINE)),
        ((0.0, -half), (-length, GRID_LINE - half)),
    )
    corners = []
    for row in range(GRID_ROWS):
        place = -1 - round((GRID_FIRST + row * GRID_SPACING) / course.piece)
        first, second = (side.edge[place] for side in course.sides)
        across = (second - first) / np.hypot(*(second - first))
        ahead = np.array([-across[1], across[0]])
        ahead *= np.sign(ahead @ (math.cos(course.heading), math.sin(course.heading)))
        front = first + (second - first) * (0.3 + 0.4 * (row % 2))
        for (x0, y0), (x1, y1) in strokes:
            corners.append([front + ahead * x + across * y for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))])
    return np.array(corners), [GRID_PAINT] * len(corners)
