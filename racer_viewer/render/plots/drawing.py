"""Drawing primitives of charts: anti-aliased lines, dots, areas, and flags for events."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_viewer.render.overlays.panel import blend
from racer_viewer.render.plots.axes import Axes
from racer_viewer.render.plots.series import ChartMark
from racer_viewer.ui.theme import Colour, Palette, Theme

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FINE, COARSE = 3, 1
"""Samples per pixel column: several for smooth edges of steep lines, one for faint lines."""
DOT = 1.2
"""Radius of an isolated point, as a multiple of the line width."""
FULL_COVERAGE = 0.996
"""Coverage above which a pixel counts as fully covered."""


def draw_line(
    surface: pygame.Surface, colour: Colour, xs: Floats, ys: Floats, width: float, slices: int = FINE
) -> None:
    """Draw a line [px] with gaps where ys are NaN and ascending xs; an isolated point becomes a dot.

    The line is drawn column by column, so that thousands of points cost no more than hundreds. It respects the
    surface's clip.
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
    """Return the corners of a line whose values hold until the next one."""
    return np.repeat(xs, 2)[1:], np.repeat(ys, 2)[:-1]


def dashed(xs: Floats, ys: Floats, dash: int) -> tuple[Floats, Floats]:
    """Return the line sampled per pixel column, with gaps as long as the dashes."""
    there = np.isfinite(ys)
    if there.sum() < 2:
        return xs, ys
    columns = np.arange(np.ceil(xs[there][0]), xs[there][-1] + 1.0)
    rows = np.interp(columns, xs, ys)
    rows[(columns // dash) % 2 == 1] = np.nan
    return columns, rows


def _extent(xs: Floats, ys: Floats, slices: int, joined: bool = True) -> tuple[int, Floats, Floats]:
    """Return the index of the first slice, and the lowest and highest point of the thin line in each; NaN where there
    is none.

    Pixel centres are at integers, so the left edge of a pixel is half a pixel before.
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
    """Return the same extent for a line drawn with a round pen."""
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
    """Return pixel columns, rows and coverage of a line."""
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
    """Return the slices inside the picture, (width, slices); 0 where there is no line."""
    row = np.zeros(width * slices)
    left, right = max(0, first), min(len(row), first + len(ends))
    if left < right:
        row[left:right] = np.nan_to_num(ends[left - first : right - first])
    return row.reshape(width, slices)


def _paint(surface: pygame.Surface, colour: Colour, columns: Ints, rows: Ints, parts: Floats) -> None:
    """Blend the colour into pixels by their coverage."""
    whole = parts > FULL_COVERAGE
    pixels = pygame.surfarray.pixels2d(surface)
    pixels[columns[whole], rows[whole]] = surface.map_rgb(colour) & 0xFFFFFFFF
    del pixels
    edge = (parts > 1.0 - FULL_COVERAGE) & ~whole
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


SMOOTHING = 4
LIGHT, DENSE = 120, 235
"""Opacity of an isolated dot and of one that stands for many, of 255."""
MANY = 4
"""Number of dots in one place from which they are drawn dense."""


def draw_dots(surface: pygame.Surface, colour: Colour, xs: Floats, ys: Floats, radius: int) -> int:
    """Draw translucent dots, one for those that would cover each other; return the number drawn."""
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
    """Draw areas over the pixel columns of the surface's clip.

    ends: (columns, k) end of each area [px]; it starts at the end of the one before, the first one at the base.
    """
    area = surface.get_clip()
    limits = area.top, area.bottom
    edges = np.hstack([np.full((len(ends), 1), float(base)), ends])
    for before, here in pairwise(edges.T):  # an area without an end is empty
        np.copyto(here, before, where=~np.isfinite(here))
    edges = np.clip(np.rint(edges), *limits).astype(np.int64)
    heights = np.abs(np.diff(edges, axis=1))
    totals = heights.sum(axis=1)
    which = np.repeat(np.arange(len(edges)), totals)
    away = np.arange(len(which)) - np.repeat(np.cumsum(totals) - totals, totals)
    downwards = edges[which, -1] > edges[which, 0]
    rows = edges[which, 0] + np.where(downwards, away, -1 - away)
    shades = np.array([surface.map_rgb(colour) & 0xFFFFFFFF for colour in colours], np.uint32)
    pixels = pygame.surfarray.pixels2d(surface)
    pixels[columns[which], rows] = np.repeat(np.tile(shades, len(edges)), heights.ravel())
    del pixels


IMPORTANCE = ("problem", "weights", "circuit", "first lap", "best", "checkpoint", "first gate")
"""Event kinds that have a flag; if space is short, the first ones win."""
EVERYWHERE = ("problem", "weights", "circuit")
"""Event kinds that are shown in every chart, because they affect everything after them."""
LANE = 10
"""Height of the flags above the frame at scale 1 [px]."""
FLAG_DISTANCE = 11
"""Smallest distance between two flags at scale 1 [px]."""
POLE_SHADE, STRONG_POLE_SHADE = 0.3, 0.7
"""Colour share of an event line."""


def placed_marks(marks: Iterable[ChartMark], axes: Axes, gap: float) -> list[tuple[ChartMark, int]]:
    """Return the marks that fit, with their pixel columns; of one kind, later ones win."""
    chosen: list[tuple[ChartMark, int]] = []
    known = [mark for mark in marks if mark.kind in IMPORTANCE]
    for mark in sorted(known, key=lambda mark: (IMPORTANCE.index(mark.kind), -mark.x)):
        x = round(axes.x(mark.x))
        if axes.frame.left <= x < axes.frame.right and all(abs(x - other) >= gap for _, other in chosen):
            chosen.append((mark, x))
    return chosen


def draw_poles(surface: pygame.Surface, theme: Theme, chosen: list[tuple[ChartMark, int]], frame: pygame.Rect) -> None:
    """Draw the event lines; called before the values are drawn over them."""
    for mark, x in reversed(chosen):
        shade = STRONG_POLE_SHADE if mark.kind in EVERYWHERE else POLE_SHADE
        colour = blend(theme.palette.panel[:3], colour_of(mark, theme.palette), shade)
        surface.fill(colour, (x, frame.top, theme.px(1), frame.height))


def draw_flags(surface: pygame.Surface, theme: Theme, chosen: list[tuple[ChartMark, int]], frame: pygame.Rect) -> None:
    """Draw the flags above the frame; kinds differ in shape as well as in colour."""
    for mark, x in chosen:
        _draw_flag(surface, mark.kind, colour_of(mark, theme.palette), x, frame.top, theme.px(LANE - 3))


def _draw_flag(surface: pygame.Surface, kind: str, colour: Colour, x: int, bottom: int, size: int) -> None:
    top = bottom - size
    if kind in EVERYWHERE:
        surface.fill(colour, (x, top, max(1, size // 6), size))
        pygame.draw.polygon(surface, colour, [(x, top), (x + size, top + size * 0.35), (x, top + size * 0.7)])
    elif kind == "checkpoint":
        side = size * 2 // 3
        surface.fill(colour, (x - side // 2, top + (size - side) // 2, side, side))
    elif kind == "best":
        middle, half = top + size / 2, size / 2
        pygame.draw.polygon(surface, colour, [(x, top), (x + half, middle), (x, bottom), (x - half, middle)])
    else:
        pygame.draw.aacircle(surface, colour, (x, top + size // 2), size // 2)


def colour_of(mark: ChartMark, palette: Palette) -> Colour:
    kinds = {
        "problem": palette.bad, "weights": palette.accent, "circuit": palette.player, "best": palette.good,
        "checkpoint": palette.faint,
    }  # fmt: skip
    return mark.colour or kinds.get(mark.kind, palette.text)
