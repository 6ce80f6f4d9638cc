"""Map of driven lines: a part of the road or all of it, with the line of each lap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import Track
from racer_viewer.render.overlays.panel import blend
from racer_viewer.ui.theme import Colour, Theme

Floats = NDArray[np.float64]

SMOOTHING = 2
"""Factor by which the map is drawn larger and then reduced, for smooth edges."""
ROAD_SHADE, EDGE_SHADE = 0.45, 0.9
"""Share of the line colour in the road and its edges."""
MARGIN = 14
"""Distance of the circuit from the edge of the map, at scale 1 [px]."""
ROAD_POINT = 2.0
"""Distance between points of the road's edges [units]."""
LINE_WIDTH, START_WIDTH = 2.2, 2.0
"""Width of a driven line and of the start line, at scale 1 [px]."""


@dataclass(frozen=True)
class MapWindow:
    """Part of the plane that a map shows.

    x, y: its middle [units]. scale: pixels per unit. size: of the map [px].
    """

    x: float
    y: float
    scale: float
    size: tuple[int, int]

    def place(self, xs: Floats, ys: Floats) -> tuple[Floats, Floats]:
        """Return the pixels of some points."""
        width, height = self.size
        return 0.5 * width + (xs - self.x) * self.scale, 0.5 * height - (ys - self.y) * self.scale


def whole_circuit(track: Track, theme: Theme, size: tuple[int, int]) -> MapWindow:
    """Return the window that shows the whole road."""
    edges = np.concatenate([track.inner_road, track.outer_road])
    low, high = edges.min(axis=0), edges.max(axis=0)
    room = [max(1, length - 2 * theme.px(MARGIN)) for length in size]
    scale = min(room[0] / (high[0] - low[0]), room[1] / (high[1] - low[1]))
    return MapWindow(float(low[0] + high[0]) / 2.0, float(low[1] + high[1]) / 2.0, float(scale), size)


def draw_lap_map(
    theme: Theme, track: Track, window: MapWindow, lines: Sequence[tuple[Floats, Floats, Colour]]
) -> pygame.Surface:
    """Return a map with the road and the (xs, ys) of some lines in their colours; the last one is on top."""
    picture, (width, height) = theme.panel(*window.size), window.size
    large = MapWindow(window.x, window.y, window.scale * SMOOTHING, (width * SMOOTHING, height * SMOOTHING))
    canvas = pygame.Surface(large.size, pygame.SRCALPHA, 32)
    background = theme.palette.panel[:3]
    canvas.fill((*background, 0))
    _draw_road(canvas, theme, track, large)
    for xs, ys, colour in lines:
        points = np.stack(large.place(xs, ys), axis=1)
        thickness = max(2, round(SMOOTHING * theme.scale * LINE_WIDTH))
        pygame.draw.lines(canvas, colour, False, points.tolist(), thickness)
        inside = ((points >= 0.0) & (points < large.size)).all(axis=1)
        for point in points[inside].tolist():
            pygame.draw.circle(canvas, colour, point, thickness / 2.0)
    picture.blit(pygame.transform.smoothscale(canvas, window.size), (0, 0))
    return picture


def _draw_road(canvas: pygame.Surface, theme: Theme, track: Track, window: MapWindow) -> None:
    background, line = theme.palette.panel[:3], theme.palette.line
    road, edge = blend(background, line, ROAD_SHADE), blend(background, theme.palette.faint, EDGE_SHADE)
    arcs = np.linspace(0.0, track.length, max(8, math.ceil(track.length / ROAD_POINT)) + 1)
    middle, along = track.centreline.points(arcs), track.centreline.tangents(arcs)
    across = np.stack([-along[:, 1], along[:, 0]], axis=1) * track.centreline.half_widths_at(arcs)[:, None]
    left, right = (np.stack(window.place(*points.T), axis=1) for points in (middle + across, middle - across))
    for corners in zip(left[:-1].tolist(), left[1:].tolist(), right[1:].tolist(), right[:-1].tolist(), strict=True):
        pygame.draw.polygon(canvas, road, corners)
    for side in (left, right):
        pygame.draw.lines(canvas, edge, False, side.tolist(), max(1, round(SMOOTHING * theme.scale)))
    thickness = max(2, round(SMOOTHING * theme.scale * START_WIDTH))
    pygame.draw.line(canvas, theme.palette.text, left[0].tolist(), right[0].tolist(), thickness)
