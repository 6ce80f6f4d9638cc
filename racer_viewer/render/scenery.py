"""Surroundings of a track: uneven grass and trees, deterministic for every position."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_viewer.render.road import SUN, Colour, Course, Floats

GRASS: tuple[Colour, Colour] = ((50, 90, 48), (45, 83, 44))
"""Colours of the mown stripes."""
STRIPE_WIDTH = 20.0
"""Width of a stripe along the tile edges [units]."""
FLECKS = 9
"""Largest brightness difference between blades of grass, of 255."""
UNEVENNESS = 14
"""Largest brightness difference between areas of grass, of 255."""

CELL = 9.0
"""Size of the grid squares that can hold one tree each [units]."""
CLEARING = 7.0
"""Smallest distance between a wall and a tree's crown [units]."""
TREE_SIZES = (2.6, 3.4, 4.3, 5.4)
"""Crown radii [units]."""
TREE_SHAPES = 3
WOODS = 0.56
"""Threshold of the slow noise above which trees stand densely."""
LONE_TREE_SHARE = 0.03
"""Share of squares elsewhere that hold a tree."""
CROWNS: tuple[tuple[Colour, Colour, Colour], ...] = (
    ((24, 54, 30), (36, 76, 40), (54, 98, 50)),
    ((28, 58, 28), (44, 82, 36), (66, 106, 46)),
    ((22, 50, 34), (32, 68, 44), (46, 88, 56)),
)
"""Crown colours in the shade, between, and in the light."""
TREE_SHADOW = (0, 0, 0, 84)
_LUMPS = 7
_TREE_RADIUS, _TREE_REACH = 120.0, 2.1
"""Radius of the master pictures of trees [px], and distance from centre to edge in radii."""
SURROUNDINGS = 300.0
"""Distance from the track up to which there are trees [units]."""
_MASK_SCALE, _MASK_SIZE, _FREE = 0.5, 2**22, (255, 255, 255)
"""Largest scale of the mask of tree-free areas [px per unit], its maximum size [px], and its colour there."""
_BLOCK = 64
"""Cells along the side of a block, in which trees grow when a part of it is drawn first."""
_HASHES = (4, 5, 6, 7)
"""Hash seeds: presence of a tree, its position in the square (two), and its kind."""
_TABLE = 64
"""Period of the noise [steps]."""
_SLOW, _FAST = 75.0, 18.0
"""Step lengths of the noise for woods and for grass [units]."""


class PlaneNoise:
    """Smooth noise from 0 to 1 over the plane."""

    def __init__(self, step: float, seed: int) -> None:
        self._step = step
        self._table = np.random.default_rng(seed).uniform(size=(_TABLE, _TABLE))

    def __call__(self, x: Floats, y: Floats) -> Floats:
        column, row = np.floor(x / self._step), np.floor(y / self._step)
        u, v = _eased(x / self._step - column), _eased(y / self._step - row)
        i, j = column.astype(int) % _TABLE, row.astype(int) % _TABLE
        after_i, after_j = (i + 1) % _TABLE, (j + 1) % _TABLE
        low = self._table[i, j] * (1.0 - u) + self._table[after_i, j] * u
        high = self._table[i, after_j] * (1.0 - u) + self._table[after_i, after_j] * u
        return np.asarray(low * (1.0 - v) + high * v)


def _eased(share: Floats) -> Floats:
    return share * share * (3.0 - 2.0 * share)


grass_noise = PlaneNoise(_FAST, seed=1)
_wood_noise = PlaneNoise(_SLOW, seed=2)


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees. kind: index of each sprite."""

    x: Floats
    y: Floats
    kind: NDArray[np.intp]


class Woods:
    """Trees around a course, everywhere but on it and close to it. They grow in blocks, when a tile shows one first."""

    def __init__(self, course: Course) -> None:
        lines = np.concatenate([side.wall for side in course.sides])
        self._low, self._high = lines.min(axis=0) - SURROUNDINGS, lines.max(axis=0) + SURROUNDINGS
        self._scale = min(_MASK_SCALE, math.sqrt(_MASK_SIZE / float((self._high - self._low).prod())))
        self._free = self._kept_free(course)
        first, last = np.floor(self._low / CELL).astype(int), np.floor(self._high / CELL).astype(int)
        self._columns, self._rows = (range(low, high) for low, high in zip(first.tolist(), last.tolist(), strict=True))
        self._blocks: dict[tuple[int, int], Trees] = {}

    def trees(self, left: float, bottom: float, right: float, top: float) -> Trees:
        """Return all trees visible in a rectangle, including their shadows, from back to front."""
        reach = 3.0 * max(TREE_SIZES)
        left, bottom, right, top = left - reach, bottom - reach, right + reach, top + reach
        columns = _blocks_between(max(left, self._low[0]), min(right, self._high[0]))
        rows = _blocks_between(max(bottom, self._low[1]), min(top, self._high[1]))
        found = [self._block(column, row) for column in columns for row in rows] or [_NO_TREES]
        x, y, kind = (np.concatenate([getattr(each, name) for each in found]) for name in ("x", "y", "kind"))
        near = np.flatnonzero((x > left) & (x < right) & (y > bottom) & (y < top))
        near = near[np.argsort(-y[near])]
        return Trees(x[near], y[near], kind[near])

    def _kept_free(self, course: Course) -> NDArray[np.bool_]:
        """Return the mask of squares without trees, from the lower left."""
        width, height = np.ceil((self._high - self._low) * self._scale).astype(int).tolist()
        mask = pygame.Surface((width + 1, height + 1), depth=32)
        walls = [(side.wall - self._low) * self._scale for side in course.sides]
        for start in range(0, len(walls[0]) - 1, 2):
            first, second = (wall[start : start + 3] for wall in walls)
            pygame.draw.polygon(mask, _FREE, [*first.tolist(), *second[::-1].tolist()])
            for place in (first[0], second[0]):
                pygame.draw.circle(mask, _FREE, place.tolist(), (CLEARING + max(TREE_SIZES)) * self._scale)
        return np.asarray(pygame.surfarray.array2d(mask) != 0)

    def _block(self, column: int, row: int) -> Trees:
        if (column, row) not in self._blocks:
            self._blocks[column, row] = self._grown(column, row)
        return self._blocks[column, row]

    def _grown(self, column: int, row: int) -> Trees:
        columns, rows = (
            np.arange(max(cells.start, number * _BLOCK), min(cells.stop, (number + 1) * _BLOCK))
            for cells, number in ((self._columns, column), (self._rows, row))
        )
        i, j = (each.ravel() for each in np.meshgrid(columns, rows, indexing="ij"))
        chance, dx, dy, kind = (_hashed(i, j, number) for number in _HASHES)
        x, y = (i + 0.1 + 0.8 * dx) * CELL, (j + 0.1 + 0.8 * dy) * CELL
        density = np.clip((_wood_noise(x, y) - WOODS) * 5.0, LONE_TREE_SHARE, 0.75)
        squares = (((each - low) * self._scale).astype(int) for each, low in zip((x, y), self._low, strict=True))
        across, up = (np.clip(each, 0, size - 1) for each, size in zip(squares, self._free.shape, strict=True))
        there = np.flatnonzero((chance < density) & ~self._free[across, up])
        return Trees(x[there], y[there], (kind[there] * len(TREE_SIZES) * TREE_SHAPES).astype(np.intp))


_NO_TREES = Trees(np.empty(0), np.empty(0), np.empty(0, np.intp))


def _blocks_between(low: float, high: float) -> range:
    """Return the numbers of the blocks that hold the cells between two coordinates."""
    size = _BLOCK * CELL
    return range(math.floor(low / size), math.floor(high / size) + 1)


def _hashed(i: NDArray[np.intp], j: NDArray[np.intp], number: int) -> Floats:
    """Return a pseudo-random number from 0 to 1 for each square of a grid."""
    mixed = i.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + j.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed += np.uint64(number) * np.uint64(0x165667B19E3779F9)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((mixed >> np.uint64(40)).astype(np.float64) / 2.0**24)


def tree_pictures(scale: float) -> list[pygame.Surface]:
    """Return a premultiplied sprite with shadow for each kind of tree, at so many pixels per unit."""
    sizes = [2 * max(1, round(_TREE_REACH * radius * scale)) for radius in TREE_SIZES for _ in range(TREE_SHAPES)]
    return [pygame.transform.smoothscale(tree, (size, size)) for tree, size in zip(_trees(), sizes, strict=True)]


@cache
def _trees() -> list[pygame.Surface]:
    """Return the master picture of each kind of tree."""
    random = np.random.default_rng(3)
    return [
        _tree(CROWNS[(shape + number) % len(CROWNS)], random)
        for number in range(len(TREE_SIZES))
        for shape in range(TREE_SHAPES)
    ]


def _tree(crown: tuple[Colour, Colour, Colour], random: np.random.Generator) -> pygame.Surface:
    """Draw a tree from above: lumps around the centre, lighter towards the sun."""
    half = round(_TREE_REACH * _TREE_RADIUS)
    canvas = pygame.Surface((2 * half, 2 * half), pygame.SRCALPHA, 32)
    to_sun = np.array([-SUN[0], SUN[1]]) * _TREE_RADIUS
    angles = (np.arange(_LUMPS) + random.uniform(-0.3, 0.3, _LUMPS)) * 2.0 * math.pi / _LUMPS
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1) * random.uniform(0.45, 0.62, (_LUMPS, 1))
    lumps = np.vstack([around, [[0.0, 0.0]]]) * _TREE_RADIUS
    sizes = np.append(random.uniform(0.36, 0.5, _LUMPS), 0.6) * _TREE_RADIUS
    for lump, reach in zip(lumps, sizes, strict=True):
        pygame.draw.circle(canvas, TREE_SHADOW, (half + lump - to_sun * 0.7).tolist(), reach)
    for colour, shift, share in zip(crown, (0.0, 0.1, 0.24), (1.0, 0.82, 0.5), strict=True):
        for lump, reach in zip(lumps, sizes, strict=True):
            place = half + lump * (0.6 + 0.4 * share) + to_sun * shift
            pygame.draw.circle(canvas, colour, place.tolist(), reach * share)
    return canvas


def grass_texture(size: int) -> pygame.Surface:
    """Return a tileable texture of short blades that is added to grass tiles."""
    random = np.random.default_rng(4)
    noise = random.uniform(size=(size, size))
    blades = np.mean([np.roll(noise, (shift, -shift // 2), axis=(0, 1)) for shift in range(3)], axis=0)
    return grey(blades * FLECKS)


def unevenness(left: float, top: float, size: float, pixels: int) -> pygame.Surface:
    """Return the brightness variation of the grass that is added to a tile."""
    count = 8
    steps = (np.arange(count) + 0.5) * size / count
    x, y = np.meshgrid(left + steps, top - steps, indexing="ij")
    small = grey((0.65 * grass_noise(x, y) + 0.35 * _wood_noise(x, y)) * UNEVENNESS)
    return pygame.transform.smoothscale(small, (pixels, pixels))


def grey(values: NDArray[Any]) -> pygame.Surface:
    surface = pygame.Surface(values.shape, depth=32)
    levels = values.astype(np.uint8)[..., None]
    pygame.surfarray.blit_array(surface, np.broadcast_to(levels, (*values.shape, 3)))
    return surface
