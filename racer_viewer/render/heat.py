"""Where cars have been lately: a grid over a circuit that grows warm under them and cools."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import Track
from racer_viewer.render.camera import View
from racer_viewer.render.swarm_colours import HEAT_SHADES, Bytes

CELLS_ALONG = 320
"""Of the longer side of a circuit: cells of 2 to 5 units."""
BORDER = 2
"""Cells around a circuit, for cars that are over its edge."""
HALF_LIFE = 1800.0
"""After which a place that nobody comes by is half as warm [ticks of the cars]."""
HOT_SHARE = 0.95
"""Of the places that are warm at all, so many are below the hottest colour: one hot spot does not darken the rest."""
HOT_PASSES = 6.0
"""And it takes so many cars to reach it, or one car that comes by so often."""
COLD_PASSES = 0.05
"""Below it a place is as if nobody had been there."""

BLUE_FIRST = (2, 1, 0, 3)
"""Order of bytes as pygame has them in its own surfaces: others take many times as long to draw."""

Floats = NDArray[np.float32]


class Heat:
    """Sums up how far cars drove in each cell of a grid.

    half_life: in ticks of the cars, or None if nothing cools.
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
        """Way that was driven in each cell [units]; rows go north, columns east."""
        self.changes = self.beginnings = 0
        """Counts what makes another picture of it, and how often it became cold at once."""

    def reset(self) -> None:
        """As if nobody had driven yet."""
        self.grid[:] = 0.0
        self.beginnings += 1

    def cool(self, ticks: int) -> None:
        """So many ticks of the cars went by."""
        if self.half_life is not None and ticks > 0:
            self.grid *= np.float32(0.5 ** (ticks / self.half_life))
            self.changes += 1

    def add(self, places: NDArray[np.floating], way: NDArray[np.floating]) -> None:
        """Warm the cells of these places (n, 2), each by a way (n,) [units]; what lies beyond the grid is left out."""
        (rows, columns), (west, south) = self.grid.shape, self._low.tolist()
        x, y = (places[:, 0] - west) / self.cell, (places[:, 1] - south) / self.cell
        inside = (x >= 0.0) & (y >= 0.0) & (x < columns) & (y < rows)
        cells = y[inside].astype(np.intp) * columns + x[inside].astype(np.intp)
        np.add.at(self.grid.reshape(-1), cells, way[inside].astype(np.float32))
        self.changes += 1

    def way_at(self, x: float, y: float) -> float:
        """What was driven in the cell of a place [units]."""
        column, row = ((np.array((x, y)) - self._low) // self.cell).astype(int).tolist()
        rows, columns = self.grid.shape
        return float(self.grid[row, column]) if 0 <= row < rows and 0 <= column < columns else 0.0

    def layer(self, view: View, colours: Bytes) -> tuple[pygame.Surface, tuple[int, int]]:
        """What to lay over the ground, multiplied with its transparency, and where; some milliseconds.

        colours: `swarm_colours.heat_colours`.
        """
        rows, columns = self.grid.shape
        west, south = self._low.tolist()
        left, top = view.to_screen(west + 0.5 * self.cell, south + (rows - 0.5) * self.cell)
        per_cell = self.cell * view.scale
        size = max(1, round((columns - 1) * per_cell)), max(1, round((rows - 1) * per_cell))
        return pygame.transform.smoothscale(self._coloured(colours), size), (round(left), round(top))

    def _coloured(self, colours: Bytes) -> pygame.Surface:
        """A pixel for each cell, north up. The middles of the first and the last are its edges when it is enlarged."""
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
    """Each cell with half as much of its neighbours along both axes, so that single ways join to a stripe."""
    blurred = 0.5 * grid
    blurred[1:] += 0.25 * grid[:-1]
    blurred[:-1] += 0.25 * grid[1:]
    result = 0.5 * blurred
    result[:, 1:] += 0.25 * blurred[:, :-1]
    result[:, :-1] += 0.25 * blurred[:, 1:]
    return result
