"""Figures over the picture: speed, laps, and where on the circuit the car is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pygame

from racer_env.engine import DT, Track

TEXT, FAINT = (244, 242, 234), (168, 174, 170)
PANEL = (14, 18, 18, 176)
MAP_ROAD = (196, 202, 198)
MAP_CAR = (255, 86, 52)
MARGIN = 16
PADDING = 12
CORNER = 10
"""Radius of a panel's corners [px]."""
BIG, SMALL = 44, 20
"""Heights of letters [px]."""
MAP_SIZE = 132
"""The longer side of a circuit on the map [px]."""
MAP_ROAD_WIDTH, MAP_CAR_SIZE = 4, 3.5
MAP_SMOOTHING = 3


class SpeedAndLaps:
    """The line of figures at the lower left."""

    def __init__(self) -> None:
        pygame.font.init()
        self._big, self._small = pygame.font.Font(None, BIG), pygame.font.Font(None, SMALL)

    def draw(self, surface: pygame.Surface, car: Mapping[str, Any]) -> None:
        last = car["last_lap_ticks"]
        fields = (
            ("SPEED", f"{car['speed']:.0f}", "000"),
            ("LAP", f"{car['lap']}", "00"),
            ("TIME", lap_time(car["lap_ticks"]), "00.00"),
            ("LAST LAP", lap_time(last) if last else "–", "00.00"),
        )
        widths = [max(self._big.size(widest)[0], self._small.size(label)[0]) for label, _, widest in fields]
        height = self._big.get_height() + self._small.get_height() - 2
        panel = _panel(sum(widths) + PADDING * 2 * len(fields), height + PADDING * 2 - 8)
        x = PADDING
        for (label, value, _), width in zip(fields, widths, strict=True):
            panel.blit(self._small.render(label, True, FAINT), (x, PADDING - 2))
            panel.blit(self._big.render(value, True, TEXT), (x, PADDING + self._small.get_height() - 2))
            x += width + 2 * PADDING
        surface.blit(panel, (MARGIN, surface.get_height() - MARGIN - panel.get_height()))


class CircuitMap:
    """The whole circuit at the lower right, with its name and a dot for the car."""

    def __init__(self, track: Track) -> None:
        pygame.font.init()
        line = track.centreline.points(np.arange(0.0, track.length, 1.0))
        low, high = line.min(axis=0), line.max(axis=0)
        self._scale = MAP_SIZE / float((high - low).max())
        self._left, self._top = float(low[0]), float(high[1])
        width, height = (round(float(side) * self._scale) + 2 * MAP_ROAD_WIDTH for side in high - low)
        name = pygame.font.Font(None, SMALL).render(track.circuit.name if track.circuit else "", True, FAINT)
        self._panel = _panel(max(width, name.get_width()) + 2 * PADDING, height + 2 * PADDING + name.get_height())
        self._inset = (self._panel.get_width() - width) // 2, PADDING
        self._panel.blit(name, ((self._panel.get_width() - name.get_width()) // 2, PADDING + height + 2))
        canvas = pygame.Surface((width * MAP_SMOOTHING, height * MAP_SMOOTHING), pygame.SRCALPHA, 32)
        for x, y in line.tolist():
            px, py = self._place(x, y)
            pygame.draw.circle(
                canvas, MAP_ROAD, (px * MAP_SMOOTHING, py * MAP_SMOOTHING), MAP_ROAD_WIDTH * MAP_SMOOTHING / 2
            )
        road = pygame.transform.smoothscale(canvas, (width, height))
        self._panel.blit(road, self._inset, special_flags=pygame.BLEND_PREMULTIPLIED)

    def draw(self, surface: pygame.Surface, car: Mapping[str, Any]) -> None:
        width, height = self._panel.get_size()
        left, top = surface.get_width() - MARGIN - width, surface.get_height() - MARGIN - height
        surface.blit(self._panel, (left, top))
        x, y = self._place(car["x"], car["y"])
        spot = (left + self._inset[0] + x, top + self._inset[1] + y)
        pygame.draw.aacircle(surface, TEXT, spot, MAP_CAR_SIZE + 1.5)
        pygame.draw.aacircle(surface, MAP_CAR, spot, MAP_CAR_SIZE)

    def _place(self, x: float, y: float) -> tuple[float, float]:
        """Of a point on the track, in pixels of the map."""
        return (x - self._left) * self._scale + MAP_ROAD_WIDTH, (self._top - y) * self._scale + MAP_ROAD_WIDTH


def lap_time(ticks: int) -> str:
    """As 17.82, or 1:02.45 from a minute on."""
    minutes, seconds = divmod(ticks * DT, 60.0)
    return f"{minutes:.0f}:{seconds:05.2f}" if minutes else f"{seconds:.2f}"


def _panel(width: int, height: int) -> pygame.Surface:
    panel = pygame.Surface((width, height), pygame.SRCALPHA, 32)
    pygame.draw.rect(panel, PANEL, panel.get_rect(), border_radius=CORNER)
    return panel
