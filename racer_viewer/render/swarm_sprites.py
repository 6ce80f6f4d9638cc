"""Sprites of the swarm view: cars as darts, episode-end marks, the ring around the best car, and fading trails."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_viewer.render.camera import View
from racer_viewer.render.swarm_legend import SHADES, shades_of
from racer_viewer.ui.theme import Colour

HEADINGS = 64
"""Number of headings of car sprites."""
FADES = 12
"""Number of fading steps of a mark."""
SMOOTHING = 4
"""Supersampling factor."""
RIM: Colour = (10, 12, 16)
FRESH: Colour = (255, 246, 230)
"""Colour of a new mark."""
GLOWING = 0.25
"""Share of a mark's lifetime until it has its own colour."""

_DART = ((1.0, 0.0), (-0.80, 0.66), (-0.46, 0.0), (-0.80, -0.66))
"""Dart outline in half car lengths, x ahead."""
_ROOF = ((0.62, 0.0), (-0.52, 0.30), (-0.40, 0.0), (-0.52, -0.30))
_BODY, _LIGHT = (226, 226, 226), (255, 255, 255)
"""Greys that are multiplied with a car's colour."""

Floats = NDArray[np.float64]
Blits = list[tuple[pygame.Surface, tuple[int, int]]]


class Darts:
    """Car sprites of one length [px], by colour and heading."""

    def __init__(self, length: float, colours: NDArray[np.uint8]) -> None:
        self._length, self._side = length, _side(length)
        self._colours = [tuple(colour) for colour in colours.tolist()]
        self._plain: list[pygame.Surface | None] = [None] * HEADINGS
        self._tinted: list[pygame.Surface | None] = [None] * (HEADINGS * SHADES)

    def blits(self, places: Floats, heading: NDArray[np.float32], quality: NDArray[np.float32]) -> Blits:
        """Return the blits of cars at these surface positions (N, 2), in order."""
        turns = np.rint(heading * (HEADINGS / (2.0 * math.pi))).astype(np.intp) % HEADINGS
        numbers = (turns * SHADES + shades_of(quality)).tolist()
        half = self._side / 2.0
        corners = np.rint(places - half).astype(int).tolist()
        return [
            (self._tinted[number] or self._tint(number), corner)
            for number, corner in zip(numbers, corners, strict=True)
        ]

    def _tint(self, number: int) -> pygame.Surface:
        turn, shade = divmod(number, SHADES)
        plain = self._plain[turn] = self._plain[turn] or self._drawn(turn * 2.0 * math.pi / HEADINGS)
        picture = plain.copy()
        picture.fill(self._colours[shade], special_flags=pygame.BLEND_RGB_MULT)
        self._tinted[number] = picture
        return picture

    def _drawn(self, heading: float) -> pygame.Surface:
        canvas = _canvas(self._side)
        middle, reach = self._side / 2.0, self._length / 2.0
        dart = _turned(_DART, heading, middle, reach)
        _outline(canvas, dart, 2.0 * _rim(self._length))
        _polygon(canvas, _BODY, dart)
        _polygon(canvas, _LIGHT, _turned(_ROOF, heading, middle, reach))
        return _shrunk(canvas)


class Marks:
    """Sprites of episode ends, `size` pixels wide: a cross for a crash, a dot for a time-out."""

    def __init__(self, size: float, crash: Colour, over: Colour) -> None:
        ages = (np.arange(FADES) / FADES).tolist()
        self._crosses = [_cross(size, _glow(crash, age), (1.0 - age) ** 0.8) for age in ages]
        self._dots = [_dot(size, over, 0.7 * (1.0 - age)) for age in ages]

    @property
    def sign(self) -> pygame.Surface:
        """Cross in its final colour for a legend."""
        return self._crosses[round(GLOWING * FADES)]

    def blits(self, places: Floats, ages: Floats, crashed: NDArray[np.bool_]) -> Blits:
        """Return the blits of marks at these surface positions with ages from 0 to 1."""
        half = self.sign.get_width() / 2.0
        corners = np.rint(places - half).astype(int).tolist()
        fades = np.clip(ages * FADES, 0, FADES - 1).astype(int).tolist()
        return [
            ((self._crosses if crash else self._dots)[fade], corner)
            for fade, crash, corner in zip(fades, crashed.tolist(), corners, strict=True)
        ]


def ring_picture(radius: float, width: float, colour: Colour) -> pygame.Surface:
    """Return a ring with dark edges inside and outside [px]."""
    canvas = _canvas(2 * math.ceil(radius + width) + 2)
    middle = canvas.get_rect().center
    for paint, outer, inner in (
        (RIM, radius + width, radius - width),
        (colour, radius + width / 2, radius - width / 2),
    ):
        pygame.draw.circle(canvas, paint, middle, outer * SMOOTHING, max(1, round((outer - inner) * SMOOTHING)))
    return _shrunk(canvas)


def _cross(size: float, colour: Colour, opacity: float) -> pygame.Surface:
    side = _side(size)
    canvas = _canvas(side)
    for paint, width in ((RIM, 0.24 * size + 2.0 * _rim(size)), (colour, 0.24 * size)):
        for angle in (math.pi / 4.0, -math.pi / 4.0):
            along, across = 0.4 + 0.5 * width / size, 0.5 * width / size
            stroke = ((along, across), (-along, across), (-along, -across), (along, -across))
            _polygon(canvas, paint, _turned(stroke, angle, side / 2.0, size))
    return _faded(_shrunk(canvas), opacity)


def _dot(size: float, colour: Colour, opacity: float) -> pygame.Surface:
    canvas = _canvas(_side(size))
    middle = canvas.get_rect().center
    for paint, radius in ((RIM, 0.22 * size + _rim(size)), (colour, 0.22 * size)):
        pygame.draw.circle(canvas, paint, middle, radius * SMOOTHING)
    return _faded(_shrunk(canvas), opacity)


def _faded(picture: pygame.Surface, opacity: float) -> pygame.Surface:
    picture.fill((round(255 * opacity),) * 4, special_flags=pygame.BLEND_RGBA_MULT)
    return picture


def _side(size: float) -> int:
    """Return the side of a picture for a shape of this size and its rim."""
    return 2 * math.ceil(size / 2.0 + _rim(size)) + 2


def _glow(colour: Colour, age: float) -> Colour:
    """Return the colour at an age, white at first."""
    share = min(1.0, age / GLOWING)
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(FRESH, colour, strict=True))
    return red, green, blue


def _rim(size: float) -> float:
    return max(0.8, size * 0.08)


def _turned(
    shape: Sequence[tuple[float, float]], angle: float, middle: float, reach: float
) -> list[tuple[float, float]]:
    cos, sin = math.cos(angle) * reach, math.sin(angle) * reach
    return [(middle + x * cos - y * sin, middle - x * sin - y * cos) for x, y in shape]


def _canvas(side: int) -> pygame.Surface:
    return pygame.Surface((side * SMOOTHING, side * SMOOTHING), pygame.SRCALPHA, 32)


def _polygon(canvas: pygame.Surface, colour: Colour, corners: Sequence[tuple[float, float]]) -> None:
    pygame.draw.polygon(canvas, colour, [(x * SMOOTHING, y * SMOOTHING) for x, y in corners])


def _outline(canvas: pygame.Surface, corners: Sequence[tuple[float, float]], width: float) -> None:
    """Draw a dark line along the edge of a shape, half of it outside."""
    points = [(x * SMOOTHING, y * SMOOTHING) for x, y in corners]
    for start, end in zip(points, [*points[1:], points[0]], strict=True):
        pygame.draw.line(canvas, RIM, start, end, max(1, round(width * SMOOTHING)))
        pygame.draw.circle(canvas, RIM, start, width * SMOOTHING / 2.0)


def _shrunk(canvas: pygame.Surface) -> pygame.Surface:
    """Return the canvas shrunk and premultiplied; transparent pixels are black."""
    return pygame.transform.smoothscale(canvas, (canvas.get_width() // SMOOTHING, canvas.get_height() // SMOOTHING))


BRIGHTNESS = 0.85
"""Brightness of a trail right behind a car, as a share of the car's colour."""

TrailFloats = NDArray[np.float32]


class TrailRenderer:
    """Additive trails, drawn all at once, which is much faster than line by line.

    colours: (n, 3) colours of cars.
    steps: positions of the longest trail.
    """

    def __init__(self, colours: NDArray[np.uint8], steps: int) -> None:
        self._colours, self._steps = colours, steps
        self._layer = pygame.Surface((1, 1), depth=32)
        self._lights = np.zeros(0, np.uint32)

    def draw(
        self,
        surface: pygame.Surface,
        view: View,
        places: TrailFloats,
        lengths: NDArray[np.intp],
        shades: NDArray[np.intp],
        width: int = 1,
    ) -> None:
        """Add the trails of N cars to a surface of the view's size.

        places: (n, N, 2) past positions, latest last.
        lengths: (N,) number of latest positions in each car's trail.
        shades: (N,) colour indices.
        width: trail width [px].
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
        """Return colours as pixel values of a surface, each from bright to dark."""
        fading = BRIGHTNESS * (1.0 - np.arange(self._steps) / self._steps)
        colours = (self._colours[:, None] * fading[:, None]).astype(np.uint32)
        shifts = np.array(surface.get_shifts()[:3], np.uint32)
        return np.asarray((colours << shifts).sum(axis=2, dtype=np.uint32).ravel())


def _pixels(view: View, places: TrailFloats, width: int) -> tuple[TrailFloats, TrailFloats]:
    """Return unrounded columns and rows of the first pixels of the dots."""
    left, top = (np.float32(side / 2.0 - (width - 1) / 2.0) for side in view.size)
    scale = np.float32(view.scale)
    return (places[..., 0] - np.float32(view.x)) * scale + left, (np.float32(view.y) - places[..., 1]) * scale + top
