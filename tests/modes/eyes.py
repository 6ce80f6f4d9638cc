"""Reads the car's position from pixels of the app's window: the dot on the map."""

from __future__ import annotations

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import CAR, Track
from racer_viewer.render.overlays import Overlays
from racer_viewer.snapshot import CarStyle, Snapshot
from racer_viewer.ui.paint import CAP_EDGE, FOOTER_HEIGHT
from racer_viewer.ui.theme import ORDINARY, Theme, fitting_scale
from tests.modes.xvfb_screen import XvfbScreen

WINDOW = (1280, 720)
SCREEN = (1400, 900)
PLAYER = np.array(ORDINARY.player)


KEY_INTERVAL = 0.15
"""Time between two keys [s]; the app must draw a frame in between."""


def press(screen: XvfbScreen, *keys: str) -> None:
    for key in keys:
        screen.do("key", key, "sleep", KEY_INTERVAL)


class Eyes:
    """Finds the car on the map in the corner of the window and returns its position on the track."""

    def __init__(self, screen: XvfbScreen, track: Track, bottom: int = 0) -> None:
        """bottom: height of what is below the line of keys [px]."""
        self._screen = screen
        places = np.array([(-150.0, 90.0), (200.0, -40.0), (0.0, -100.0)])
        dots = np.array([_dot(_map_picture(track, *place, bottom)) for place in places])
        self._to_world = np.linalg.solve(np.column_stack([dots, np.ones(3)]), places)

    def see(self) -> tuple[float, float] | None:
        dot = _dot(self.window())
        return None if dot is None else tuple((np.array([*dot, 1.0]) @ self._to_world).tolist())

    def sees_no_keys(self) -> bool:
        """Return whether nothing has the colour of a key's edge where the line of keys begins."""
        corner = self.window()[WINDOW[1] - 40 :, :60]
        return not bool((corner == CAP_EDGE).all(axis=2).any())

    def shows(self, colour: tuple[int, int, int]) -> bool:
        return bool((self.window() == colour).all(axis=2).any())

    def window(self) -> NDArray[np.uint8]:
        """Return the pixels of the app's window."""
        pixels = self._screen.pixels
        left, top = (SCREEN[0] - WINDOW[0]) // 2, (SCREEN[1] - WINDOW[1]) // 2
        return pixels[top : top + WINDOW[1], left : left + WINDOW[0]]


def _dot(window: NDArray[np.uint8]) -> tuple[float, float] | None:
    """Return the centre of the followed car's dot, in the lower right of the window."""
    height, width = window.shape[:2]
    corner = window[height // 2 :, width * 3 // 4 :]
    rows, columns = np.nonzero((corner == PLAYER).all(axis=2))
    return None if len(rows) < 8 else (float(columns.mean()), float(rows.mean()))


def _map_picture(track: Track, x: float, y: float, bottom: int) -> NDArray[np.uint8]:
    """Draw the map with a car at this position."""
    cars = np.zeros(1, CAR)
    cars["x"], cars["y"] = x, y
    surface = pygame.Surface(WINDOW)
    snapshot = Snapshot(track, cars, (CarStyle("You", ORDINARY.player),))
    theme = Theme(fitting_scale(WINDOW))
    panels = surface.subsurface((0, 0, WINDOW[0], WINDOW[1] - bottom - theme.px(FOOTER_HEIGHT)))
    Overlays(theme).draw(panels, snapshot, ("timing", "map"))
    return np.ascontiguousarray(pygame.surfarray.array3d(surface).swapaxes(0, 1))
