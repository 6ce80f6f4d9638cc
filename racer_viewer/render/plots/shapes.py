"""Dots and areas in pixels."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_viewer.ui.theme import Colour

Floats = NDArray[np.float64]

SMOOTHING = 4
LIGHT, DENSE = 120, 235
"""How opaque a lone dot is, and one that stands for many; of 255."""
MANY = 4
"""Dots in one place from which on they are drawn dense."""


def draw_dots(surface: pygame.Surface, colour: Colour, xs: Floats, ys: Floats, radius: int) -> int:
    """Dots that let others shine through; of those that would cover each other one is drawn. Returns how many are."""
    if not len(xs):
        return 0
    cell = max(1, radius)
    columns, rows = (xs // cell).astype(np.int64), (ys // cell).astype(np.int64)
    columns, rows = columns - columns.min(), rows - rows.min()
    _, first, counts = np.unique(columns * (rows.max() + 1) + rows, return_index=True, return_counts=True)
    sprites = _dot(colour, radius, LIGHT), _dot(colour, radius, DENSE)
    half = sprites[0].get_width() / 2
    lefts, tops = np.rint(xs[first] - half).astype(int).tolist(), np.rint(ys[first] - half).astype(int).tolist()
    drawn = map(sprites.__getitem__, (counts >= MANY).tolist())
    surface.fblits(zip(drawn, zip(lefts, tops, strict=True), strict=True))
    return len(lefts)


@lru_cache(maxsize=64)
def _dot(colour: Colour, radius: int, opacity: int) -> pygame.Surface:
    side = 2 * radius + 1
    large = pygame.Surface((side * SMOOTHING, side * SMOOTHING), pygame.SRCALPHA, 32)
    large.fill((*colour, 0))
    middle = side * SMOOTHING / 2
    pygame.draw.circle(large, (*colour, opacity), (middle, middle), (radius + 0.25) * SMOOTHING)
    return pygame.transform.smoothscale(large, (side, side))


def draw_areas(
    surface: pygame.Surface, colours: tuple[Colour, ...], columns: NDArray[np.int64], ends: Floats, base: int
) -> None:
    """Areas over pixel columns of the surface's clip.

    ends: (columns, k) where each area ends [px]; it starts where the one before it does, the first one at the base.
    """
    area = surface.get_clip()
    limits = area.top, area.bottom
    tops = np.clip(np.rint(np.where(np.isfinite(ends), ends, base)), *limits).astype(np.int64)
    edges = np.hstack([np.full((len(tops), 1), min(limits[1], max(limits[0], base))), tops])
    heights = np.abs(np.diff(edges, axis=1))
    totals = heights.sum(axis=1)
    which = np.repeat(np.arange(len(tops)), totals)
    away = np.arange(len(which)) - np.repeat(np.cumsum(totals) - totals, totals)
    downwards = edges[which, -1] > edges[which, 0]
    rows = edges[which, 0] + np.where(downwards, away, -1 - away)
    shades = np.array([surface.map_rgb(colour) & 0xFFFFFFFF for colour in colours], np.uint32)
    pixels = pygame.surfarray.pixels2d(surface)
    pixels[columns[which], rows] = np.repeat(np.tile(shades, len(tops)), heights.ravel())
    del pixels
