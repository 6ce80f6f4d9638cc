"""Ground of a track at one scale.

It is drawn in square tiles when they are first needed. Each tile is rendered from the few shapes inside it,
supersampled for smooth edges. A long circuit therefore costs no more time or memory than a short one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import Track
from racer_viewer.render.road import Colour, Course, Floats, Layer, build_course, layers
from racer_viewer.render.scenery import (
    FLECKS,
    GRASS,
    STRIPE_WIDTH,
    UNEVENNESS,
    Woods,
    grass_texture,
    grey,
    tree_pictures,
    unevenness,
)

TILE = 128
"""Width and height of a tile [px]."""
SMOOTHING = 3
"""Supersampling factor of tiles."""
MAX_TILES = 640
"""Maximum number of cached tiles, about 42 MB."""
EVICTED = 16
"""Part of a full cache that is evicted at once, as a divisor; finding the farthest tiles takes long."""
TEXTURE = 4
"""Period of the finest texture [tiles]."""
GRAIN = 5
"""Largest brightness difference between neighbouring pixels, of 255."""
MIN_PIECE = 6.5
"""Smallest length of a straight piece of road [px]."""

Place = tuple[int, int]
"""Column and row of a tile."""
Corners = NDArray[np.int32]

_GRASS = [tuple(max(0, part - (FLECKS + UNEVENNESS) // 2) for part in colour) for colour in GRASS]
"""Grass colours before textures lighten them."""


class GroundPlan:
    """Scale-independent description of a track's ground; without a track, of a meadow without a tree."""

    def __init__(self, track: Track | None) -> None:
        self.track = track
        self.course: Course | None = None if track is None else build_course(track)
        self.woods = None if self.course is None else Woods(self.course)
        self._layers: dict[float, list[Layer]] = {}

    @property
    def extent(self) -> tuple[Floats, Floats]:
        """Lower left and upper right corner of the track's walls [units]."""
        if self.track is None:
            return np.zeros(2), np.ones(2)
        lines = np.concatenate([self.track.inner, self.track.outer])
        return lines.min(axis=0), lines.max(axis=0)

    def layers(self, piece: float) -> list[Layer]:
        """Return the layers on top of the grass, in straight pieces of at least this length [units]."""
        if self.course is None:
            return []
        piece = max(piece, self.course.piece)
        if piece not in self._layers:
            self._layers[piece] = layers(self.course.thinned(piece))
        return self._layers[piece]


@lru_cache(maxsize=2)
def ground_plan(track: Track | None) -> GroundPlan:
    """Return the plan of a track. A thread can call it before the window needs it; a long track takes 0.2 s."""
    plan = GroundPlan(track)
    plan.layers(0.0)
    return plan


class Ground:
    """Ground of one track at `scale` pixels per unit. Pixel coordinates start at the track's origin and point down."""

    def __init__(self, plan: GroundPlan, scale: float) -> None:
        self.scale, self._plan = scale, plan
        self._tiles: dict[Place, pygame.Surface] = {}
        self.kept = MAX_TILES
        """Maximum number of cached tiles."""

    def draw(self, surface: pygame.Surface, left: int, top: int) -> None:
        """Cover a surface with the area right of `left` and below `top`, drawing missing tiles now."""
        for column, row in self.places(surface.get_size(), left, top):
            surface.blit(self.tile((column, row)), (column * TILE - left, row * TILE - top))

    @property
    def tiles(self) -> Mapping[Place, pygame.Surface]:
        """Cached tiles."""
        return self._tiles

    def places(self, size: tuple[int, int], left: int, top: int) -> list[Place]:
        """Return the tiles that cover a view."""
        return list(itertools.product(_tiles(left, size[0]), _tiles(top, size[1])))

    def tile(self, place: Place) -> pygame.Surface:
        """Return a tile from the cache, or draw it."""
        tile = self._tiles.get(place)
        if tile is None:
            tile = self.render_tile(*place)
            self.keep(place, tile)
        return tile

    def keep(self, place: Place, tile: pygame.Surface) -> None:
        """Cache a tile; if the cache is full, evict the farthest ones."""
        if len(self._tiles) >= self.kept:
            column, row = place
            nearest_first = sorted(self._tiles, key=lambda other: abs(other[0] - column) + abs(other[1] - row))
            for other in nearest_first[self.kept - self.kept // EVICTED :]:
                del self._tiles[other]
        self._tiles[place] = tile

    def warm_up(self) -> None:
        """Build textures and shapes before the first tile needs them."""
        _ = self._shapes, self._pictures, self._canvas

    def render_tile(self, column: int, row: int) -> pygame.Surface:
        size = TILE / self.scale
        left, top = column * size, -row * size
        part = (column % TEXTURE * TILE, row % TEXTURE * TILE, TILE, TILE)
        tile = self._grass(left, top, size, part)
        if self._build(column, row):
            built = pygame.transform.smoothscale(self._canvas, (TILE, TILE))
            tile.blit(built, (0, 0), special_flags=pygame.BLEND_PREMULTIPLIED)
        self._plant(tile, left, top, size)
        tile.blit(self._pictures.grain, (0, 0), part, pygame.BLEND_RGB_ADD)
        return tile

    def _grass(self, left: float, top: float, size: float, part: tuple[int, int, int, int]) -> pygame.Surface:
        """Draw grass stripes from the lower left to the upper right, in uneven green."""
        tile = pygame.Surface((TILE, TILE), depth=32)
        tile.fill(_GRASS[0])
        period = 2.0 * STRIPE_WIDTH
        x = math.floor((left - top) / period) * period - left + top
        while x < 2.0 * size:
            corners = ((x, 0.0), (x + STRIPE_WIDTH, 0.0), (x + STRIPE_WIDTH - size, size), (x - size, size))
            pygame.draw.polygon(tile, _GRASS[1], [(px * self.scale, py * self.scale) for px, py in corners])
            x += period
        tile.blit(self._pictures.blades, (0, 0), part, pygame.BLEND_RGB_ADD)
        tile.blit(unevenness(left, top, size, TILE), (0, 0), special_flags=pygame.BLEND_RGB_ADD)
        return tile

    def _build(self, column: int, row: int) -> bool:
        """Draw the road onto the canvas; return False if none of it lies in this tile."""
        size, shapes = TILE * SMOOTHING, self._shapes
        origin = np.array([column * size, row * size], np.int32)
        chosen = shapes.within(origin, origin + size)
        if not len(chosen):
            return False
        self._canvas.fill((0, 0, 0, 0))
        bounds = np.searchsorted(chosen, shapes.starts).tolist()
        for number, (start, end) in enumerate(itertools.pairwise(bounds)):
            if start < end:
                rows = chosen[start:end] - shapes.starts[number]
                points = (shapes.corners[number][rows] - origin).tolist()
                colours = shapes.colours[number]
                for which, polygon in zip(rows.tolist(), points, strict=True):
                    pygame.draw.polygon(self._canvas, colours[which], polygon)
        return True

    def _plant(self, tile: pygame.Surface, left: float, top: float, size: float) -> None:
        if self._plan.woods is None:
            return
        trees = self._plan.woods.trees(left, top - size, left + size, top)
        x, y = (trees.x - left) * self.scale, (top - trees.y) * self.scale
        corners = np.rint(np.stack([x, y], axis=1)).astype(int) - self._pictures.halves[trees.kind][:, None]
        pictures = (self._pictures.trees[kind] for kind in trees.kind.tolist())
        tile.fblits(list(zip(pictures, corners.tolist(), strict=True)), pygame.BLEND_PREMULTIPLIED)

    @cached_property
    def _shapes(self) -> _Shapes:
        return _shapes(self._plan.layers(MIN_PIECE / self.scale), self.scale * SMOOTHING)

    @cached_property
    def _pictures(self) -> _Pictures:
        return _pictures(self.scale)

    @cached_property
    def _canvas(self) -> pygame.Surface:
        return pygame.Surface((TILE * SMOOTHING, TILE * SMOOTHING), pygame.SRCALPHA, 32)


@dataclass(frozen=True, eq=False)
class _Shapes:
    """Polygons of all layers, in canvas pixels from the track's origin.

    starts: index of the first polygon of each layer, and the total count.
    low, high: bounds of every polygon, (2, n).
    """

    corners: list[Corners]
    colours: list[Sequence[Colour]]
    starts: NDArray[np.intp]
    low: Corners
    high: Corners

    def within(self, low: Corners, high: Corners) -> NDArray[np.intp]:
        """Return the indices of polygons that may touch a rectangle."""
        (left, top), (right, bottom) = low, high
        beside = (self.low[0] > right) | (self.high[0] < left) | (self.low[1] > bottom) | (self.high[1] < top)
        return np.flatnonzero(~beside)


def _shapes(found: Sequence[Layer], per_unit: float) -> _Shapes:
    corners = [np.rint(points * (per_unit, -per_unit)).astype(np.int32) for points, _ in found]
    starts = np.cumsum([0, *(len(points) for points in corners)])
    if not corners:
        return _Shapes([], [], starts, *np.zeros((2, 2, 0), np.int32))
    low = np.concatenate([points.min(axis=1) for points in corners]).T.copy()
    high = np.concatenate([points.max(axis=1) for points in corners]).T.copy()
    return _Shapes(corners, [colours for _, colours in found], starts, low, high)


@dataclass(frozen=True, eq=False)
class _Pictures:
    """Textures that are added to tiles, and tree sprites with half their sizes."""

    blades: pygame.Surface
    grain: pygame.Surface
    trees: list[pygame.Surface]
    halves: NDArray[np.intp]


def _pictures(scale: float) -> _Pictures:
    trees = tree_pictures(scale)
    halves = np.array([picture.get_width() // 2 for picture in trees])
    return _Pictures(_blades(), _grain(), trees, halves)


@cache
def _blades() -> pygame.Surface:
    return grass_texture(TEXTURE * TILE)


@cache
def _grain() -> pygame.Surface:
    """Return faint noise that keeps large surfaces from looking flat."""
    return grey(np.random.default_rng(0).integers(0, GRAIN + 1, (TEXTURE * TILE, TEXTURE * TILE)))


def _tiles(start: int, length: int) -> range:
    """Return the tile columns or rows that cover so many pixels."""
    return range(start // TILE, (start + length - 1) // TILE + 1)
