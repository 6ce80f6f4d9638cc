"""Background of the swarm view: the dimmed circuit, and a heat map of where cars have been lately."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import Track
from racer_viewer.render.camera import View
from racer_viewer.render.steady_ground import SteadyGround
from racer_viewer.render.swarm_legend import HEAT_SHADES, Bytes

CELLS_ALONG = 320
"""Number of cells along the longer side of a circuit: cells of 2 to 5 units."""
BORDER = 2
"""Cells around a circuit, for cars beyond its edge."""
HALF_LIFE = 1800.0
"""Half-life of the heat [car ticks]."""
HOT_SHARE = 0.95
"""Quantile of the warm cells that gets the hottest colour, so that one hot spot does not darken the rest."""
HOT_PASSES = 6.0
"""Smallest number of passes for the hottest colour."""
COLD_PASSES = 0.05
"""Number of passes below which a cell counts as cold."""

BLUE_FIRST = (2, 1, 0, 3)
"""Byte order of pygame's own surfaces; other orders take many times as long to draw."""

Floats = NDArray[np.float32]


class Heat:
    """Heat map: distance driven in each cell of a grid.

    half_life: in car ticks, or None if nothing cools.
    """

    def __init__(self, track: Track, half_life: float | None = HALF_LIFE) -> None:
        lines = np.concatenate([track.inner, track.outer])
        low, high = lines.min(axis=0), lines.max(axis=0)
        self.cell = float((high - low).max()) / CELLS_ALONG
        """Width and height of a cell [units]."""
        self.half_life = half_life
        self._low = low - BORDER * self.cell
        columns, rows = (math.ceil(side) + 2 * BORDER for side in ((high - low) / self.cell).tolist())
        self.grid = np.zeros((rows, columns), np.float32)
        """Distance driven in each cell [units]; rows go north, columns east."""
        self.changes = self.beginnings = 0
        """Counters of changes and of resets, for caching pictures."""

    def reset(self) -> None:
        """Clear the map."""
        self.grid[:] = 0.0
        self.beginnings += 1

    def cool(self, ticks: int) -> None:
        """Cool the map for so many car ticks."""
        if self.half_life is not None and ticks > 0:
            self.grid *= np.float32(0.5 ** (ticks / self.half_life))
            self.changes += 1

    def add(self, places: NDArray[np.floating], way: NDArray[np.floating]) -> None:
        """Add distances (n,) [units] to the cells of positions (n, 2); positions outside the grid are ignored."""
        (rows, columns), (west, south) = self.grid.shape, self._low.tolist()
        x, y = (places[:, 0] - west) / self.cell, (places[:, 1] - south) / self.cell
        inside = (x >= 0.0) & (y >= 0.0) & (x < columns) & (y < rows)
        cells = y[inside].astype(np.intp) * columns + x[inside].astype(np.intp)
        np.add.at(self.grid.reshape(-1), cells, way[inside].astype(np.float32))
        self.changes += 1

    def way_at(self, x: float, y: float) -> float:
        """Return the distance driven in the cell of a position [units]."""
        column, row = ((np.array((x, y)) - self._low) // self.cell).astype(int).tolist()
        rows, columns = self.grid.shape
        return float(self.grid[row, column]) if 0 <= row < rows and 0 <= column < columns else 0.0

    def layer(self, view: View, colours: Bytes) -> tuple[pygame.Surface, tuple[int, int]]:
        """Return the premultiplied overlay picture and its position; takes some milliseconds.

        colours: result of `heat_colours`.
        """
        rows, columns = self.grid.shape
        west, south = self._low.tolist()
        left, top = view.to_screen(west + 0.5 * self.cell, south + (rows - 0.5) * self.cell)
        per_cell = self.cell * view.scale
        size = max(1, round((columns - 1) * per_cell)), max(1, round((rows - 1) * per_cell))
        return pygame.transform.smoothscale(self._coloured(colours), size), (round(left), round(top))

    def _coloured(self, colours: Bytes) -> pygame.Surface:
        """Return one pixel per cell, north up; the centres of the outer cells are its edges when enlarged."""
        warm = _blurred(self.grid) - np.float32(COLD_PASSES * self.cell)
        there = warm[warm > 0.0]
        hot = HOT_PASSES * self.cell
        if len(there):
            place = int(HOT_SHARE * (len(there) - 1))
            hot = max(hot, float(np.partition(there, place)[place]))
        levels = np.clip(warm[::-1] * np.float32((HEAT_SHADES - 1) / hot), 0.0, HEAT_SHADES - 1.0).astype(np.uint8)
        np.take(colours[:, BLUE_FIRST], levels, axis=0, out=self._pixels)
        return pygame.image.frombuffer(self._pixels.data, self.grid.shape[::-1], "BGRA")

    @cached_property
    def _pixels(self) -> Bytes:
        return np.zeros((*self.grid.shape, 4), np.uint8)


def _blurred(grid: Floats) -> Floats:
    """Return the grid blurred along both axes, so that single paths join to a band."""
    blurred = 0.5 * grid
    blurred[1:] += 0.25 * grid[:-1]
    blurred[:-1] += 0.25 * grid[1:]
    result = 0.5 * blurred
    result[:, 1:] += 0.25 * blurred[:, :-1]
    result[:, :-1] += 0.25 * blurred[:, 1:]
    return result


DIMMED = (158, 162, 172)
"""Brightness of the ground's red, green and blue, of 255, so that cars and heat stand out."""
REFRESHED = 12
"""Interval of redrawing the heat [window ticks]."""

Layer = tuple[pygame.Surface, tuple[int, int]]
"""Picture and its position."""


class _HeatOf(NamedTuple):
    """Inputs of a picture with heat."""

    ground: pygame.Surface
    view: View
    heat: Heat
    beginnings: int
    colours: Bytes

    def looks_like(self, other: _HeatOf | None) -> bool:
        """Return True if only the heat's values differ."""
        return other is not None and self.colours is other.colours and self[:-1] == other[:-1]


class SwarmBackdrop:
    """Dimmed ground of one track, with heat.

    patient: complete every picture, for films; otherwise keeping the frame rate has priority.
    """

    def __init__(self, track: Track, patient: bool = False) -> None:
        self.track = track
        self._ground = SteadyGround(track, brightness=DIMMED, patient=patient)
        self._heated = pygame.Surface((1, 1), depth=32)
        self._heat: _HeatOf | None = None
        self._tick, self._heat_drawn = 0, -REFRESHED
        self._heat_layer: Layer | None = None
        self._changes = 0
        """Change counter of the heat on the picture or the layer."""
        self._drew_ahead = False
        """True if `draw_ahead` was called since the last picture."""

    def prepare(self, view: View) -> None:
        """Complete a view, about 0.2 s."""
        self._ground.prepare(view)

    def draw(self, surface: pygame.Surface, view: View, heat: Heat | None, colours: Bytes, tick: int) -> None:
        """Cover a surface. heat: None if it is not shown. tick: window tick."""
        ground = self._ground.picture(view)
        surface.blit(ground if heat is None else self._with_heat(ground, view, heat, colours, tick), (0, 0))

    def draw_ahead(self) -> bool:
        """Draw a part of what the last view lacks, about 2 ms; return False if it is complete."""
        self._drew_ahead = True
        return self._ground.draw_ahead() or self._draw_heat()

    def _with_heat(self, ground: pygame.Surface, view: View, heat: Heat, colours: Bytes, tick: int) -> pygame.Surface:
        """Return the ground with heat that is at most some tenths of a second old."""
        self._tick = tick
        wanted = _HeatOf(ground, view, heat, heat.beginnings, colours)
        if not wanted.looks_like(self._heat):
            self._heat, self._heat_layer, self._heat_drawn = wanted, None, tick
            self._changes = heat.changes
            self._lay(ground, heat.layer(view, colours))
        elif not self._drew_ahead:
            self._draw_heat()
        self._drew_ahead = False
        return self._heated

    def _draw_heat(self) -> bool:
        """Colour changed heat in one call and blend it onto the ground in another, so that neither takes long."""
        if self._heat is None:
            return False
        ground, view, heat, _, colours = self._heat
        if self._heat_layer is not None:
            self._lay(ground, self._heat_layer)
            self._heat_layer, self._heat_drawn = None, self._tick
            return True
        if heat.changes == self._changes or 0 <= self._tick - self._heat_drawn < REFRESHED:
            return False
        self._changes, self._heat_layer = heat.changes, heat.layer(view, colours)
        return True

    def _lay(self, ground: pygame.Surface, layer: Layer) -> None:
        if self._heated.get_size() != ground.get_size():
            self._heated = pygame.Surface(ground.get_size(), depth=32)
        self._heated.blit(ground, (0, 0))
        self._heated.blit(*layer, special_flags=pygame.BLEND_PREMULTIPLIED)
