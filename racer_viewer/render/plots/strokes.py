"""Smooth lines over pixel columns."""

from __future__ import annotations

import math

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_viewer.ui.theme import Colour

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FINE, COARSE = 3, 1
"""So many parts of a pixel column are looked at: several for smooth edges of steep lines, one for what is faint."""
DOT = 1.2
"""Radius of a point that stands alone, of the width of the line."""
ALMOST = 0.996
"""Of a pixel: covered so far, it is covered."""


def draw_line(
    surface: pygame.Surface, colour: Colour, xs: Floats, ys: Floats, width: float, slices: int = FINE
) -> None:
    """A line [px] with gaps where ys are NaN, xs rising; a point alone between gaps is a dot.

    It is drawn column by column: many thousand points cost no more than a few hundred. The surface's clip is obeyed.
    """
    area = surface.get_clip()
    there = np.isfinite(ys)
    if not there.any() or not area.width or not area.height:
        return
    xs, ys = xs - area.left, ys - area.top
    canvas = surface.subsurface(area)
    _paint(canvas, colour, *_covered(area.size, slices, *_thick(*_extent(xs, ys, slices), width / 2.0, slices)))
    alone = there & ~np.append(False, there[:-1]) & ~np.append(there[1:], False)
    if alone.any():
        dots = _extent(xs[alone], ys[alone], slices, joined=False)
        _paint(canvas, colour, *_covered(area.size, slices, *_thick(*dots, DOT * width, slices)))


def stepped(xs: Floats, ys: Floats) -> tuple[Floats, Floats]:
    """Corners of a line whose values hold until the next."""
    return np.repeat(xs, 2)[1:], np.repeat(ys, 2)[:-1]


def dashed(xs: Floats, ys: Floats, dash: int) -> tuple[Floats, Floats]:
    """The line a pixel column at a time, with gaps as long as the dashes."""
    there = np.isfinite(ys)
    if there.sum() < 2:
        return xs, ys
    columns = np.arange(np.ceil(xs[there][0]), xs[there][-1] + 1.0)
    rows = np.interp(columns, xs, ys)
    rows[(columns // dash) % 2 == 1] = np.nan
    return columns, rows


def _extent(xs: Floats, ys: Floats, slices: int, joined: bool = True) -> tuple[int, Floats, Floats]:
    """Number of the first slice, and how far up and down the thin line goes in each; NaN where it is not.

    A pixel's middle has the whole number, so its left edge is half a pixel before.
    """
    places = (xs + 0.5) * slices
    numbers = np.floor(places).astype(np.int64)
    first, last = int(numbers[0]), int(numbers[-1])
    edges = np.interp(np.arange(first, last + 2), places, ys) if joined else np.full(last - first + 2, np.nan)
    low, high = np.fmin(edges[:-1], edges[1:]), np.fmax(edges[:-1], edges[1:])
    starts = np.flatnonzero(np.diff(numbers, prepend=first - 1))
    there = numbers[starts] - first
    low[there] = np.fmin(low[there], np.fmin.reduceat(ys, starts))
    high[there] = np.fmax(high[there], np.fmax.reduceat(ys, starts))
    return first, low + 0.5, high + 0.5


def _thick(first: int, low: Floats, high: Floats, radius: float, slices: int) -> tuple[int, Floats, Floats]:
    """The same of a line drawn with a round pen."""
    beyond = math.ceil(radius * slices)
    upper, lower = np.full(len(low) + 2 * beyond, np.nan), np.full(len(low) + 2 * beyond, np.nan)
    for off in range(-beyond, beyond + 1):
        away = max(0.0, abs(off) - 0.5) / slices
        if away < radius:
            reach = math.sqrt(radius * radius - away * away)
            part = slice(beyond + off, beyond + off + len(low))
            np.fmin(upper[part], low - reach, out=upper[part])
            np.fmax(lower[part], high + reach, out=lower[part])
    return first - beyond, upper, lower


def _covered(size: tuple[int, int], slices: int, first: int, low: Floats, high: Floats) -> tuple[Ints, Ints, Floats]:
    """Columns and rows of pixels, and which part of each the line covers."""
    width, height = size
    upper, lower = (np.clip(_by_column(width, slices, first, ends), 0.0, height) for ends in (low, high))
    empty = lower <= upper
    tops = np.floor(np.where(empty, height, upper).min(axis=1)).astype(np.int64)
    heights = np.maximum(0, np.ceil(np.where(empty, 0.0, lower).max(axis=1)).astype(np.int64) - tops)
    which = np.repeat(np.arange(width), heights)
    rows = tops[which] + np.arange(len(which)) - np.repeat(np.cumsum(heights) - heights, heights)
    parts = np.zeros(len(which))
    for upper_ends, lower_ends in zip(upper.T, lower.T, strict=True):
        parts += np.maximum(0.0, np.minimum(lower_ends[which], rows + 1.0) - np.maximum(upper_ends[which], rows))
    return which, rows, parts / slices


def _by_column(width: int, slices: int, first: int, ends: Floats) -> Floats:
    """(width, slices) of those that are in the picture; 0 where there is no line."""
    row = np.zeros(width * slices)
    left, right = max(0, first), min(len(row), first + len(ends))
    if left < right:
        row[left:right] = np.nan_to_num(ends[left - first : right - first])
    return row.reshape(width, slices)


def _paint(surface: pygame.Surface, colour: Colour, columns: Ints, rows: Ints, parts: Floats) -> None:
    """Lay the colour over pixels, as opaque as they are covered."""
    whole = parts > ALMOST
    pixels = pygame.surfarray.pixels2d(surface)
    pixels[columns[whole], rows[whole]] = surface.map_rgb(colour) & 0xFFFFFFFF
    del pixels
    edge = (parts > 1.0 - ALMOST) & ~whole
    columns, rows, share = columns[edge], rows[edge], parts[edge]
    if surface.get_masks()[3]:
        opacity = pygame.surfarray.pixels_alpha(surface)
        below = opacity[columns, rows] / 255.0 * (1.0 - share)
        opacity[columns, rows] = np.rint(255.0 * (share + below))
        share = share / (share + below)
        del opacity
    colours = pygame.surfarray.pixels3d(surface)
    before = colours[columns, rows]
    colours[columns, rows] = np.rint(before + (np.array(colour) - before) * share[:, None])
    del colours
