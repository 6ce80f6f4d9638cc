"""Trails behind the cars of the swarm: dots so close that they are lines of light, fading towards their ends."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_viewer.render.camera import View

BRIGHTNESS = 0.85
"""Right behind a car, of the car's colour."""

Floats = NDArray[np.float32]


class TrailLight:
    """Adds trails to a picture, all at once, which is many times faster than line by line.

    colours: (n, 3) that cars may have; steps: places of the longest trail.
    """

    def __init__(self, colours: NDArray[np.uint8], steps: int) -> None:
        self._colours, self._steps = colours, steps
        self._layer = pygame.Surface((1, 1), depth=32)
        self._lights = np.zeros(0, np.uint32)

    def draw(
        self,
        surface: pygame.Surface,
        view: View,
        places: Floats,
        lengths: NDArray[np.intp],
        shades: NDArray[np.intp],
        width: int = 1,
    ) -> None:
        """For N cars on a surface of the view's size.

        places: (n, N, 2) where cars were, the latest last; lengths: (N,) how many of the latest are each car's trail.
        shades: (N,) numbers of colours; width: [px].
        """
        if self._layer.get_size() != view.size:
            self._layer = pygame.Surface(view.size, depth=32)
            self._lights = self._mapped(self._layer)
        ages = np.arange(len(places), dtype=np.int32)[::-1, None]
        x, y = _pixels(view, places, width)
        seen = (ages < lengths) & (x >= 0.0) & (y >= 0.0)
        seen &= (x < view.size[0] - width + 1.0) & (y < view.size[1] - width + 1.0)
        if not seen.any():
            return
        fades = ages * self._steps // np.maximum(1, lengths).astype(np.int32)
        lights = self._lights[(shades.astype(np.int32) * self._steps + fades)[seen]]
        row = self._layer.get_pitch() // self._lights.itemsize
        spots = y[seen].astype(np.int32) * row + x[seen].astype(np.int32)
        self._layer.fill(0)
        memory: Any = self._layer.get_buffer()
        pixels = np.frombuffer(memory, self._lights.dtype)
        for across, down in itertools.product(range(width), repeat=2):
            pixels[spots + (down * row + across)] = lights
        del pixels, memory
        surface.blit(self._layer, (0, 0), special_flags=pygame.BLEND_RGB_ADD)

    def _mapped(self, surface: pygame.Surface) -> NDArray[np.uint32]:
        """Colours as pixels of a surface, each from bright to dark."""
        fading = BRIGHTNESS * (1.0 - np.arange(self._steps) / self._steps)
        colours = (self._colours[:, None] * fading[:, None]).astype(np.uint32)
        shifts = np.array(surface.get_shifts()[:3], np.uint32)
        return np.asarray((colours << shifts).sum(axis=2, dtype=np.uint32).ravel())


def _pixels(view: View, places: Floats, width: int) -> tuple[Floats, Floats]:
    """Columns and rows of the first pixels of dots, not rounded yet."""
    left, top = (np.float32(side / 2.0 - (width - 1) / 2.0) for side in view.size)
    scale = np.float32(view.scale)
    return (places[..., 0] - np.float32(view.x)) * scale + left, (np.float32(view.y) - places[..., 1]) * scale + top
