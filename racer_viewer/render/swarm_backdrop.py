"""Where cars have been lately: a grid over a circuit that grows warm under them and cools.

What the swarm is seen on: the whole circuit, darker than it is, and the heat on it."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import Track
from racer_viewer.render.camera import View
from racer_viewer.render.ground import Plan
from racer_viewer.render.swarm_legend import HEAT_SHADES, Bytes
from racer_viewer.render.tiles import GroundLevels

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


DIMMED = (158, 162, 172)
"""What is left of the ground's red, green and blue, of 255: cars and heat stand out."""
REFRESHED = 12
"""Heat is drawn anew after so many ticks of the window."""
STEADY_PICTURES = 20
"""After which a view is taken to stay, and its ground is drawn exactly."""
PICTURES_KEPT = 4
"""Finished grounds, for layouts that one goes back and forth between."""

Layer = tuple[pygame.Surface, tuple[int, int]]
"""A picture, and where it goes."""


class _HeatOf(NamedTuple):
    """What a picture with heat is made of."""

    ground: pygame.Surface
    view: View
    heat: Heat
    beginnings: int
    colours: Bytes

    def looks_like(self, other: _HeatOf | None) -> bool:
        """But for how warm it is."""
        return other is not None and self.colours is other.colours and self[:-1] == other[:-1]


class Backdrop:
    """The ground of one track. A view that stays is drawn once, tile by tile, and kept.

    patient: every picture is complete, for films, where a window prefers to be in time.
    """

    def __init__(self, track: Track, patient: bool = False) -> None:
        self.track = track
        self._patient = patient
        self._finished: dict[View, pygame.Surface] = {}
        self._unfinished = self._heated = pygame.Surface((1, 1), depth=32)
        self._ground: GroundLevels | None = None
        self._coming: GroundLevels | None = None
        self._view: View | None = None
        self._steady = 0
        self._heat: _HeatOf | None = None
        self._tick, self._heat_drawn = 0, -REFRESHED
        self._heat_layer: Layer | None = None
        self._changes = 0
        """Of the heat that is on the picture, or on the layer."""
        self._helped = False
        """Whether time was left since the last picture."""

    def prepare(self, view: View) -> None:
        """Finish a view, some 0.2 s."""
        if view not in self._finished:
            self._ground = GroundLevels(self.track, view.scale, self._plan)
            self._finish(view)

    def draw(self, surface: pygame.Surface, view: View, heat: Heat | None, colours: Bytes, tick: int) -> None:
        """Cover a surface. heat: or None if it is not shown; tick: of the window."""
        ground = self._picture(view)
        surface.blit(ground if heat is None else self._with_heat(ground, view, heat, colours, tick), (0, 0))

    def draw_ahead(self) -> bool:
        """Draw a little of what the last view still lacks, about 2 ms; False if it lacks nothing."""
        self._helped = True
        return self._draw_ground() or self._draw_heat()

    def _draw_ground(self) -> bool:
        view = self._view
        if view is None or view in self._finished or self._coming is None or self._coming.base != view.scale:
            return False
        if self._coming.draw_ahead(view):
            return True
        self._ground = self._coming
        self._finish(view)
        return False

    @property
    def _plan(self) -> Plan | None:
        return self._ground.plan if self._ground else None

    def _picture(self, view: View) -> pygame.Surface:
        self._steady = self._steady + 1 if view == self._view else 0
        self._view = view
        if self._patient:
            self.prepare(view)
        elif view not in self._finished:
            self._go_on(view)
        return self._finished.get(view) or self._unfinished

    def _go_on(self, view: View) -> None:
        """Towards the exact ground; meanwhile what there is is scaled."""
        if self._ground is None:
            self._ground = self._coming = GroundLevels(self.track, view.scale)
        elif self._steady >= STEADY_PICTURES and (self._coming is None or self._coming.base != view.scale):
            self._coming = GroundLevels(self.track, view.scale, self._plan)
        self._draw_ground()
        if view not in self._finished:
            if self._unfinished.get_size() != view.size:
                self._unfinished = pygame.Surface(view.size, depth=32)
            self._ground.draw(self._unfinished, view)
            self._unfinished.fill(DIMMED, special_flags=pygame.BLEND_RGB_MULT)

    def _finish(self, view: View) -> None:
        assert self._ground is not None
        while len(self._finished) >= PICTURES_KEPT:
            del self._finished[next(iter(self._finished))]
        picture = pygame.Surface(view.size, depth=32)
        self._ground.draw(picture, view, patient=True)
        picture.fill(DIMMED, special_flags=pygame.BLEND_RGB_MULT)
        self._finished[view] = picture

    def _with_heat(self, ground: pygame.Surface, view: View, heat: Heat, colours: Bytes, tick: int) -> pygame.Surface:
        """The ground with heat on it, at most some tenths of a second old."""
        self._tick = tick
        wanted = _HeatOf(ground, view, heat, heat.beginnings, colours)
        if not wanted.looks_like(self._heat):
            self._heat, self._heat_layer, self._heat_drawn = wanted, None, tick
            self._changes = heat.changes
            self._lay(ground, heat.layer(view, colours))
        elif not self._helped:
            self._draw_heat()
        self._helped = False
        return self._heated

    def _draw_heat(self) -> bool:
        """Heat that changed is coloured at once and laid on the ground another time, so that neither takes long."""
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
