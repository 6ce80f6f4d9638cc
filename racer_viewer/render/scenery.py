"""What grows beside a track: grass of uneven green, and trees. The same place always looks the same."""

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
"""Mown in stripes."""
STRIPE_WIDTH = 20.0
"""Across, as the edges of tiles run [units]."""
FLECKS = 9
"""By how much a blade of grass may be brighter than the next, of 255."""
UNEVENNESS = 14
"""By how much the grass is brighter in one place than in another, of 255."""

CELL = 9.0
"""One tree may grow in each square of this size [units]."""
CLEARING = 7.0
"""Between a wall and the trunk of a tree beyond a tree's reach, at least [units]."""
TREE_SIZES = (2.6, 3.4, 4.3, 5.4)
"""Radius [units]."""
TREE_SHAPES = 3
WOODS = 0.56
"""Where the slow noise is above this, trees stand close."""
LONELY = 0.03
"""Share of squares elsewhere that have one."""
CROWNS: tuple[tuple[Colour, Colour, Colour], ...] = (
    ((24, 54, 30), (36, 76, 40), (54, 98, 50)),
    ((28, 58, 28), (44, 82, 36), (66, 106, 46)),
    ((22, 50, 34), (32, 68, 44), (46, 88, 56)),
)
"""Of the parts of a tree's crown in the shade, between, and in the light."""
TREE_SHADOW = (0, 0, 0, 84)
_LUMPS = 7
_TREE_RADIUS, _TREE_REACH = 120.0, 2.1
"""Of the pictures that trees are shrunk from [px], and from the middle to their edge, in radii."""
SURROUNDINGS = 300.0
"""How far from the track there are trees [units]."""
_MASK_SCALE, _FREE = 0.5, (255, 255, 255)
"""Of the picture that tells where trees may not grow [px per unit], and its colour there."""
_HASHES = (4, 5, 6, 7)
"""Which of the many ways to scatter trees: whether there is one, where in its square, and of which kind."""
_TABLE = 64
"""Noise repeats after so many of its steps."""
_SLOW, _FAST = 75.0, 18.0
"""Steps of the noise that woods follow, and of the grass [units]."""


class Noise:
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


grass_noise = Noise(_FAST, seed=1)
_wood_noise = Noise(_SLOW, seed=2)


@dataclass(frozen=True, eq=False)
class Trees:
    """Some of the trees, the farthest back first. kind: the number of the picture of each."""

    x: Floats
    y: Floats
    kind: NDArray[np.intp]


class Woods:
    """The trees around a course: everywhere but on it and close to it."""

    def __init__(self, course: Course) -> None:
        lines = np.concatenate([side.wall for side in course.sides])
        self._low, self._high = lines.min(axis=0) - SURROUNDINGS, lines.max(axis=0) + SURROUNDINGS
        self._all = self._grown(self._kept_free(course))

    def trees(self, left: float, bottom: float, right: float, top: float) -> Trees:
        """All that can be seen in a rectangle, with their shadows."""
        reach = 3.0 * max(TREE_SIZES)
        x, y, kind = self._all.x, self._all.y, self._all.kind
        near = (x > left - reach) & (x < right + reach) & (y > bottom - reach) & (y < top + reach)
        return Trees(x[near], y[near], kind[near])

    def _kept_free(self, course: Course) -> NDArray[np.bool_]:
        """Where no tree may grow, in squares from the lower left."""
        width, height = np.ceil((self._high - self._low) * _MASK_SCALE).astype(int).tolist()
        mask = pygame.Surface((width + 1, height + 1), depth=32)
        walls = [(side.wall - self._low) * _MASK_SCALE for side in course.sides]
        for start in range(0, len(walls[0]) - 1, 2):
            first, second = (wall[start : start + 3] for wall in walls)
            pygame.draw.polygon(mask, _FREE, [*first.tolist(), *second[::-1].tolist()])
            for place in (first[0], second[0]):
                pygame.draw.circle(mask, _FREE, place.tolist(), (CLEARING + max(TREE_SIZES)) * _MASK_SCALE)
        return np.asarray(pygame.surfarray.array2d(mask) != 0)

    def _grown(self, free: NDArray[np.bool_]) -> Trees:
        columns, rows = (
            np.arange(math.floor(low / CELL), math.floor(high / CELL))
            for low, high in zip(self._low, self._high, strict=True)
        )
        i, j = (each.ravel() for each in np.meshgrid(columns, rows, indexing="ij"))
        chance, dx, dy, kind = (_hashed(i, j, number) for number in _HASHES)
        x, y = (i + 0.1 + 0.8 * dx) * CELL, (j + 0.1 + 0.8 * dy) * CELL
        density = np.clip((_wood_noise(x, y) - WOODS) * 5.0, LONELY, 0.75)
        squares = (((each - low) * _MASK_SCALE).astype(int) for each, low in zip((x, y), self._low, strict=True))
        column, row = (np.clip(each, 0, size - 1) for each, size in zip(squares, free.shape, strict=True))
        there = np.flatnonzero((chance < density) & ~free[column, row])
        there = there[np.argsort(-y[there])]
        return Trees(x[there], y[there], (kind[there] * len(TREE_SIZES) * TREE_SHAPES).astype(np.intp))


def _hashed(i: NDArray[np.intp], j: NDArray[np.intp], number: int) -> Floats:
    """From 0 to 1, without order, for each square of a grid."""
    mixed = i.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + j.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed += np.uint64(number) * np.uint64(0x165667B19E3779F9)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((mixed >> np.uint64(40)).astype(np.float64) / 2.0**24)


def tree_pictures(scale: float) -> list[pygame.Surface]:
    """One for each kind of tree at so many pixels per unit, with shadow, multiplied with its transparency."""
    sizes = [2 * max(1, round(_TREE_REACH * radius * scale)) for radius in TREE_SIZES for _ in range(TREE_SHAPES)]
    return [pygame.transform.smoothscale(tree, (size, size)) for tree, size in zip(_trees(), sizes, strict=True)]


@cache
def _trees() -> list[pygame.Surface]:
    """Each kind, as large as it is ever needed and larger."""
    random = np.random.default_rng(3)
    return [
        _tree(CROWNS[(shape + number) % len(CROWNS)], random)
        for number in range(len(TREE_SIZES))
        for shape in range(TREE_SHAPES)
    ]


def _tree(crown: tuple[Colour, Colour, Colour], random: np.random.Generator) -> pygame.Surface:
    """Seen from above: lumps around the middle, each lighter towards the sun."""
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
    """Short blades, to be added to a tile of grass; it joins with itself on all sides."""
    random = np.random.default_rng(4)
    noise = random.uniform(size=(size, size))
    blades = np.mean([np.roll(noise, (shift, -shift // 2), axis=(0, 1)) for shift in range(3)], axis=0)
    return grey(blades * FLECKS)


def unevenness(left: float, top: float, size: float, pixels: int) -> pygame.Surface:
    """How much brighter the grass is here and there, to be added to a tile."""
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
