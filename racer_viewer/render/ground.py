"""The ground: grass, runoff, shoulder, asphalt, kerbs, walls and start line of a track.

It is drawn in square tiles when they are first seen, each from the few pieces that lie in it, larger than needed and
then shrunk, which smooths all edges. So a long circuit costs no more time or memory than a short one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pygame
from numpy.typing import ArrayLike, NDArray

from racer_env.engine import Track
from racer_env.engine.car import SHOULDER_WIDTH
from racer_env.engine.walls import curvatures

Floats = NDArray[np.float64]
Colour = tuple[int, int, int]

GRASS: tuple[Colour, Colour] = ((44, 82, 48), (40, 76, 45))
"""Mown in stripes."""
RUNOFF: Colour = (172, 152, 112)
SHOULDER: tuple[Colour, Colour] = ((84, 127, 67), (78, 119, 63))
"""In bands across, by which one sees how fast one goes."""
ASPHALT: tuple[Colour, ...] = ((68, 70, 76), (66, 68, 74), (64, 66, 72), (62, 64, 70))
"""Darker towards the middle, where most cars drive."""
PAINT: Colour = (236, 234, 226)
KERB: tuple[Colour, Colour] = ((200, 48, 44), PAINT)
WALL: Colour = (222, 222, 216)
WALL_SIDE: Colour = (122, 124, 126)
WALL_SHADOW: Colour = (30, 56, 34)
CHEQUERS: tuple[Colour, Colour] = (PAINT, (24, 24, 26))

STRIPE_WIDTH, BAND_LENGTH = 20.0, 16.0
EDGE_LINE_WIDTH = 0.5
KERB_WIDTH, KERB_LENGTH = 1.6, 4.0
KERB_CURVATURE, KERB_SPAN = 1.0 / 140.0, 20.0
"""Bends sharper than this have kerbs; the length of road over which that is judged."""
KERB_REACH, KERB_TAPER = 8, 5
"""In pieces to each side: how far a kerb goes on beyond its bend, and over how many it gets narrow."""
WALL_WIDTH, WALL_DEPTH, SHADOW_WIDTH = 0.8, 1.3, 1.9
"""Of a wall's top, with its side and with its shadow, outwards from the line that cars and rays meet."""
CHEQUER_SIZE, CHEQUER_ROWS = 1.25, 3

LEAST_GAP = 0.01
"""Between road and wall, so that there is a direction from the one to the other."""
PIECE_LENGTH = 2.0
"""The road is drawn in pieces of about this length."""
TILE = 256
"""Width and height of a tile [px]."""
SMOOTHING = 3
"""Tiles are drawn so many times larger."""
TILES_KEPT = 192
"""Some 50 MB."""
GRAIN = 5
"""By how much a pixel may be brighter than its neighbour, of 255."""


class Ground:
    """The ground of one track at `scale` pixels per unit."""

    def __init__(self, track: Track, scale: float) -> None:
        self.track, self.scale = track, scale
        layers = _layers(track)
        self._corners = np.concatenate([corners for corners, _ in layers])
        self._colours = [colour for _, colours in layers for colour in colours]
        self._left, self._bottom = self._corners.min(axis=1).T.copy()
        self._right, self._top = self._corners.max(axis=1).T.copy()
        self._tiles: dict[tuple[int, int], pygame.Surface] = {}
        self._canvas = pygame.Surface((TILE * SMOOTHING, TILE * SMOOTHING), depth=32)
        self._grain = _grain()

    def draw(self, surface: pygame.Surface, left: int, top: int) -> None:
        """Cover a surface with what lies right of `left` and below `top`; these are pixels from the track's origin."""
        columns, rows = _tiles(left, surface.get_width()), _tiles(top, surface.get_height())
        for column, row in itertools.product(columns, rows):
            surface.blit(self._tile(column, row), (column * TILE - left, row * TILE - top))

    def draw_ahead(self, size: tuple[int, int], left: int, top: int) -> None:
        """Prepare one tile just beyond a view, if one is missing: so that a moving view never waits for many."""
        columns, rows = _tiles(left - TILE, size[0] + 2 * TILE), _tiles(top - TILE, size[1] + 2 * TILE)
        for place in itertools.product(columns, rows):
            if place not in self._tiles:
                self._tile(*place)
                return

    def _tile(self, column: int, row: int) -> pygame.Surface:
        """From those at hand, or drawn; the one that was not seen for the longest time makes room."""
        tile = self._tiles.pop((column, row), None) or self._drawn_tile(column, row)
        self._tiles[column, row] = tile
        if len(self._tiles) > TILES_KEPT:
            del self._tiles[next(iter(self._tiles))]
        return tile

    def _drawn_tile(self, column: int, row: int) -> pygame.Surface:
        size = TILE / self.scale
        left, top = column * size, -row * size
        per_unit = self.scale * SMOOTHING
        self._mow(left, top, size)
        beside = (self._left > left + size) | (self._right < left) | (self._bottom > top) | (self._top < top - size)
        chosen = np.flatnonzero(~beside)
        corners = np.rint((self._corners[chosen] - (left, top)) * (per_unit, -per_unit)).astype(int)
        for number, points in zip(chosen.tolist(), corners.tolist(), strict=True):
            pygame.draw.polygon(self._canvas, self._colours[number], points)
        tile = pygame.transform.smoothscale(self._canvas, (TILE, TILE))
        tile.blit(self._grain, (0, 0), special_flags=pygame.BLEND_RGB_ADD)
        return tile

    def _mow(self, left: float, top: float, size: float) -> None:
        """Stripes of grass from the lower left to the upper right, over a whole tile."""
        self._canvas.fill(GRASS[0])
        per_unit = self.scale * SMOOTHING
        period = 2.0 * STRIPE_WIDTH
        x = math.floor((left - top) / period) * period - left + top
        while x < 2.0 * size:
            corners = ((x, 0.0), (x + STRIPE_WIDTH, 0.0), (x + STRIPE_WIDTH - size, size), (x - size, size))
            pygame.draw.polygon(self._canvas, GRASS[1], [(px * per_unit, py * per_unit) for px, py in corners])
            x += period


def _tiles(start: int, length: int) -> range:
    """The columns or rows of tiles that cover so many pixels."""
    return range(start // TILE, (start + length - 1) // TILE + 1)


Layer = tuple[Floats, Sequence[Colour]]
"""Four-cornered pieces (n, 4, 2), and the colour of each."""


def _layers(track: Track) -> list[Layer]:
    """All that lies on the grass, the lowest first."""
    fineness = max(1, round(track.length / (len(track.inner) - 1) / PIECE_LENGTH))
    walls = [_finer(line, fineness, curved=False) for line in (track.inner, track.outer)]
    edges = [_finer(line, fineness, curved=True) for line in (track.inner_road, track.outer_road)]
    gaps = [np.maximum(np.hypot(*(wall - edge).T), LEAST_GAP)[:, None] for wall, edge in zip(walls, edges, strict=True)]
    away = [(wall - edge) / gap for wall, edge, gap in zip(walls, edges, gaps, strict=True)]
    shoulders = [edge + out * np.minimum(gap, SHOULDER_WIDTH) for edge, out, gap in zip(edges, away, gaps, strict=True)]
    count = len(walls[0]) - 1
    bands = _alternating(SHOULDER, count, track.length / count, BAND_LENGTH)
    lines = list(zip(walls, shoulders, edges, away, strict=True))
    return [
        *(_band(wall, wall + out * SHADOW_WIDTH, WALL_SHADOW) for wall, _, _, out in lines),
        *(_band(wall, shoulder, RUNOFF) for wall, shoulder, _, _ in lines),
        *((_pieces(shoulder, edge), bands) for _, shoulder, edge, _ in lines),
        *_kerbs(track, [(edge, out) for _, _, edge, out in lines]),
        *_asphalt(*edges),
        *(_band(edge, edge - out * EDGE_LINE_WIDTH, PAINT) for _, _, edge, out in lines),
        _start_line(edges[0][0], edges[1][0], track.start[2]),
        *(_band(wall, wall + out * WALL_WIDTH, WALL) for wall, _, _, out in lines),
        *(_band(wall + out * WALL_WIDTH, wall + out * WALL_DEPTH, WALL_SIDE) for wall, _, _, out in lines),
    ]


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


def _pieces(a: Floats, b: Floats) -> Floats:
    """What lies between two lines, (n, 4, 2)."""
    return np.stack([a[:-1], a[1:], b[1:], b[:-1]], axis=1)


def _band(a: Floats, b: Floats, colour: Colour) -> Layer:
    return _pieces(a, b), [colour] * (len(a) - 1)


def _alternating(colours: tuple[Colour, Colour], count: int, piece: float, length: float) -> list[Colour]:
    """The colour of each of so many pieces, if it is to change after about this length."""
    together = max(1, round(length / piece))
    return [colours[number // together % 2] for number in range(count)]


def _asphalt(inner: Floats, outer: Floats) -> list[Layer]:
    """Bands side by side, the colours there and back again."""
    colours = (*ASPHALT, *ASPHALT[-2::-1])
    shares = np.linspace(0.0, 1.0, len(colours) + 1)
    lines = [inner + share * (outer - inner) for share in shares]
    return [_band(a, b, colour) for (a, b), colour in zip(itertools.pairwise(lines), colours, strict=True)]


def _kerbs(track: Track, sides: Sequence[tuple[Floats, Floats]]) -> list[Layer]:
    """Along the inside of the bends, of edges and the directions away from the road."""
    count = len(sides[0][0]) - 1
    arcs = np.arange(count) * track.length / count
    curvature = curvatures(track.centreline, arcs, KERB_SPAN)
    left = np.stack([-track.centreline.tangents(arcs)[:, 1], track.centreline.tangents(arcs)[:, 0]], axis=1)
    colours = _alternating(KERB, count, track.length / count, KERB_LENGTH)
    layers: list[Layer] = []
    for edge, away in sides:
        towards = np.sign((away[:-1] * left).sum(axis=1)) * curvature
        bends = _around(towards > KERB_CURVATURE, KERB_REACH).any(axis=0)
        width = KERB_WIDTH * _around(bends, KERB_TAPER).mean(axis=0)
        width = np.append(width, width[0])
        pieces = _pieces(edge, edge + away * width[:, None])
        there = np.flatnonzero(width[:-1] + width[1:])
        layers.append((pieces[there], [colours[number] for number in there]))
    return layers


def _around(values: ArrayLike, reach: int) -> NDArray[np.bool_]:
    """Of a closed line, for each place the values up to so far before and after it, (2 * reach + 1, n)."""
    return np.array([np.roll(values, shift) for shift in range(-reach, reach + 1)])


def _start_line(inner: Floats, outer: Floats, heading: float) -> Layer:
    """Chequers from one edge of the road to the other."""
    ahead = CHEQUER_SIZE * np.array([math.cos(heading), math.sin(heading)])
    columns = max(2, round(float(np.hypot(*(outer - inner))) / CHEQUER_SIZE))
    ends = inner + np.linspace(0.0, 1.0, columns + 1)[:, None] * (outer - inner)
    rows = [ends + (row - CHEQUER_ROWS / 2) * ahead for row in range(CHEQUER_ROWS + 1)]
    corners = np.concatenate([_pieces(near, far) for near, far in itertools.pairwise(rows)])
    colours = [CHEQUERS[(row + column) % 2] for row in range(CHEQUER_ROWS) for column in range(columns)]
    return corners, colours


def _grain() -> pygame.Surface:
    """Faint noise, so that large surfaces do not look like plastic."""
    noise = np.random.default_rng(0).integers(0, GRAIN + 1, (TILE, TILE, 1))
    grain = pygame.Surface((TILE, TILE), depth=32)
    pygame.surfarray.blit_array(grain, np.broadcast_to(noise, (TILE, TILE, 3)))
    return grain
