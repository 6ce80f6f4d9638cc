"""Distance rays of a car: a fan that is redder the nearer the wall is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine.rays import RAY_ANGLES, RAY_RANGE
from racer_viewer.render.camera import View
from racer_viewer.ui.theme import TEXT_SMALL, Theme

Floats = NDArray[np.float64]
Point = tuple[float, float]
ToScreen = Callable[[float, float], tuple[float, float]]
"""Map from a track position to pixels."""

_NEARNESS = (0.0, 0.5, 1.0)
_COLOURS = np.array([(60, 220, 200), (255, 214, 70), (255, 70, 46)], float)
"""Colours of a ray that hits no wall, a wall halfway, and a wall at once."""
"""Share of the ray's colour that is added to the ground."""
_DOT_SIZE = 3.0
"""Radius of the end dot at scale 1 [px]."""
_DOT_RIM = (20, 22, 26)
_PLATE = (14, 18, 20, 170)
_LABEL_GAP = 16
"""Distance from a hit point to the centre of its label at scale 1 [px]."""
_LABEL_MARGIN = 6
"""Distance of labels from the edge of the window [px]."""
_MAX_PLATES = 256


class RayFan:
    """The nine rays of one car, with the distance at the end of each."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._plates: dict[tuple[int, int], pygame.Surface] = {}

    def draw(self, surface: pygame.Surface, view: View, car: Mapping[str, Any]) -> None:
        start = view.to_screen(float(car["x"]), float(car["y"]))
        lengths, angles = np.asarray(car["rays"]), car["heading"] + view.turn + RAY_ANGLES
        directions = np.stack([np.cos(angles), -np.sin(angles)], axis=1)
        ends = (start + directions * (lengths * view.scale)[:, None]).tolist()
        colours = _ray_colours(lengths)
        for end, colour in zip(ends, colours.astype(int).tolist(), strict=True):
            pygame.draw.aaline(surface, colour, start, end)
        self._mark(surface, ends, colours, lengths.tolist())
        self._write(surface, start, directions.tolist(), lengths.tolist(), view.scale)

    def _mark(self, surface: pygame.Surface, ends: list[Point], colours: Floats, lengths: list[float]) -> None:
        size = _DOT_SIZE * self._theme.scale
        room = surface.get_rect().inflate(8 * size, 8 * size)
        for end, colour, length in zip(ends, colours.astype(int).tolist(), lengths, strict=True):
            if length < RAY_RANGE and room.collidepoint(end):
                pygame.draw.aacircle(surface, _DOT_RIM, end, size + 1.5)
                pygame.draw.aacircle(surface, colour, end, size)

    def _write(
        self,
        surface: pygame.Surface,
        start: Point,
        directions: list[list[float]],
        lengths: list[float],
        scale: float,
    ) -> None:
        """Write each ray's length [units] just beyond its end, or where it leaves the window."""
        gap, widest = self._theme.px(_LABEL_GAP), self._plate(round(RAY_RANGE))
        inside = surface.get_rect().inflate(
            -2 * _LABEL_MARGIN - widest.get_width(), -2 * _LABEL_MARGIN - widest.get_height()
        )
        if not inside.collidepoint(start):
            return
        placed = []
        for (dx, dy), length in zip(directions, lengths, strict=True):
            plate = self._plate(round(length))
            reach = min(length * scale + gap, _room(start, dx, dy, inside))
            x, y = start[0] + dx * reach, start[1] + dy * reach
            placed.append((plate, (round(x - plate.get_width() / 2), round(y - plate.get_height() / 2))))
        surface.fblits(placed)

    def _plate(self, length: int) -> pygame.Surface:
        """Return a number on a dark plate; the cache is cleared when the theme's scale changes."""
        key = length, self._theme.px(TEXT_SMALL)
        if key not in self._plates:
            if len(self._plates) >= _MAX_PLATES:
                self._plates.clear()
            text = self._theme.text(str(length), TEXT_SMALL)
            plate = pygame.Surface((text.get_width() + 6, text.get_height() + 2), pygame.SRCALPHA, 32)
            pygame.draw.rect(plate, _PLATE, plate.get_rect(), border_radius=4)
            plate.blit(text, (3, 1))
            self._plates[key] = plate
        return self._plates[key]


def _room(start: Point, dx: float, dy: float, inside: pygame.Rect) -> float:
    """Return the distance from a point to the border of a rectangle in a direction [px]."""
    across = ((inside.right if dx > 0.0 else inside.left) - start[0]) / dx if dx else math.inf
    down = ((inside.bottom if dy > 0.0 else inside.top) - start[1]) / dy if dy else math.inf
    return min(across, down)


def _ray_colours(lengths: Floats) -> Floats:
    """Return ray colours, (n, 3)."""
    nearness = 1.0 - lengths / RAY_RANGE
    return np.stack([np.interp(nearness, _NEARNESS, channel) for channel in _COLOURS.T], axis=1)
