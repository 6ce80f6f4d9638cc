"""A car from above, and the rays by which it sees."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine.car import MAX_WHEEL_ANGLE
from racer_env.engine.rays import RAY_ANGLES, RAY_RANGE
from racer_viewer.render.ground import Colour

Points = Sequence[tuple[float, float]]
ToScreen = Callable[[float, float], tuple[float, float]]
"""From a point on the track to pixels."""

BODY: Colour = (226, 62, 44)
BODY_SHADE: Colour = (164, 38, 30)
FLOOR: Colour = (34, 36, 42)
TYRE: Colour = (20, 20, 22)
STRIPE: Colour = (244, 240, 230)
COCKPIT: Colour = (26, 28, 34)
HELMET: Colour = (255, 196, 40)
BRAKE_LIGHT: Colour = (255, 30, 20)
SHADOW = (0, 0, 0, 96)

_HULL: Points = (
    (1.95, 0.16), (1.00, 0.30), (0.45, 0.40), (0.25, 0.74), (-0.85, 0.76), (-1.35, 0.44), (-1.80, 0.34),
    (-1.80, -0.34), (-1.35, -0.44), (-0.85, -0.76), (0.25, -0.74), (0.45, -0.40), (1.00, -0.30), (1.95, -0.16),
)  # fmt: skip
"""The car is 4 units long and 2 wide; x points ahead and y to the left, from its middle."""
_SPINE: Points = ((1.90, 0.09), (-1.75, 0.15), (-1.75, -0.15), (1.90, -0.09))
_FLOOR: Points = ((0.30, 0.84), (-1.00, 0.88), (-1.45, 0.60), (-1.45, -0.60), (-1.00, -0.88), (0.30, -0.84))
_COCKPIT: Points = ((0.55, 0.20), (0.20, 0.32), (-0.45, 0.30), (-0.45, -0.30), (0.20, -0.32), (0.55, -0.20))
_FRONT_WING: Points = ((2.00, 0.40), (1.85, 0.96), (1.50, 0.96), (1.60, 0.20), (1.60, -0.20), (1.50, -0.96),
                       (1.85, -0.96), (2.00, -0.40))  # fmt: skip
_REAR_WING: Points = ((-1.55, 0.82), (-2.00, 0.82), (-2.00, -0.82), (-1.55, -0.82))
_LIGHT: Points = ((-1.82, 0.50), (-2.06, 0.50), (-2.06, -0.50), (-1.82, -0.50))
_HEAD, _HEAD_SIZE = (-0.08, 0.0), 0.24
_WHEEL: Points = ((0.42, 0.20), (-0.42, 0.20), (-0.42, -0.20), (0.42, -0.20))
_FRONT_AXLE, _REAR_AXLE, _WHEEL_OFFSET = 1.12, -1.22, 0.80
_SHADOW_OFFSET = (0.30, -0.30)
"""On the track, not on the car: the sun does not turn with it."""
_REACH = 2.7
"""From the middle, including the shadow."""
_BRAKING = 0.1

ENLARGED = 1.5
"""Cars are drawn larger than they are, to be seen on roads that are wide for them."""
SMOOTHING = 4
"""The car is drawn so many times larger and then shrunk."""

_NEARNESS = (0.0, 0.5, 1.0)
_COLOURS = np.array([(60, 220, 200), (255, 214, 70), (255, 70, 46)], float)
"""Of a ray that meets no wall, a wall halfway, a wall at once."""
_LIGHT_OF_RAY = 0.6
"""Of its colour, added to what lies below."""
_DOT_SIZE = 3.0
"""Radius [px]."""


class CarSprite:
    """Draws cars, where a unit of the track is `scale` pixels."""

    def __init__(self, scale: float) -> None:
        self._scale = scale * ENLARGED
        self._size = 2 * math.ceil(_REACH * self._scale) + 2
        self._canvas = pygame.Surface((self._size * SMOOTHING,) * 2, pygame.SRCALPHA, 32)

    def draw(self, surface: pygame.Surface, to_screen: ToScreen, car: Mapping[str, Any]) -> None:
        """With its front wheels as they steer, and a light when it brakes.

        The wheels turn as they do at rest: at speed they turn so little that one could not see it.
        """
        x, y = to_screen(car["x"], car["y"])
        left, top = math.floor(x) - self._size // 2, math.floor(y) - self._size // 2
        self._middle = ((x - left) * SMOOTHING, (y - top) * SMOOTHING)
        self._canvas.fill((0, 0, 0, 0))
        heading, wheel_angle = car["heading"], -car["steer"] * MAX_WHEEL_ANGLE
        for shape in (_FLOOR, _HULL, _FRONT_WING, _REAR_WING):
            self._polygon(SHADOW, shape, heading, _SHADOW_OFFSET)
        for axle, angle in ((_FRONT_AXLE, wheel_angle), (_REAR_AXLE, 0.0)):
            for side in (_WHEEL_OFFSET, -_WHEEL_OFFSET):
                self._polygon(TYRE, _turned(_WHEEL, angle, (axle, side)), heading)
        self._polygon(BODY_SHADE, _FRONT_WING, heading)
        self._polygon(FLOOR, _FLOOR, heading)
        self._polygon(BODY, _HULL, heading)
        self._polygon(STRIPE, _SPINE, heading)
        self._polygon(COCKPIT, _COCKPIT, heading)
        self._polygon(BODY_SHADE, _REAR_WING, heading)
        if car["brake"] > _BRAKING:
            self._polygon(BRAKE_LIGHT, _LIGHT, heading)
        ((head_x, head_y),) = self._pixels([_HEAD], heading)
        pygame.draw.circle(self._canvas, HELMET, (head_x, head_y), _HEAD_SIZE * self._scale * SMOOTHING)
        small = pygame.transform.smoothscale(self._canvas, (self._size, self._size))
        surface.blit(small, (left, top), special_flags=pygame.BLEND_PREMULTIPLIED)

    def _polygon(
        self,
        colour: Sequence[int],
        shape: Points,
        heading: float,
        offset: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        pygame.draw.polygon(self._canvas, colour, self._pixels(shape, heading, offset))

    def _pixels(self, shape: Points, heading: float, offset: tuple[float, float] = (0.0, 0.0)) -> Points:
        per_unit = self._scale * SMOOTHING
        x, y = self._middle
        return [(x + px * per_unit, y - py * per_unit) for px, py in _turned(shape, heading, offset)]


def _turned(shape: Points, angle: float, offset: tuple[float, float]) -> Points:
    cos, sin = math.cos(angle), math.sin(angle)
    return [(offset[0] + x * cos - y * sin, offset[1] + x * sin + y * cos) for x, y in shape]


class RayLight:
    """Draws the rays of a car as light on the ground."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._layer = pygame.Surface(size, depth=32)

    def draw(self, surface: pygame.Surface, to_screen: ToScreen, car: Mapping[str, Any]) -> None:
        """Redder the nearer the wall is, and with a dot where it meets one."""
        start = to_screen(car["x"], car["y"])
        ends = [
            to_screen(car["x"] + length * math.cos(angle), car["y"] + length * math.sin(angle))
            for length, angle in zip(car["rays"], car["heading"] + RAY_ANGLES, strict=True)
        ]
        colours = [_ray_colour(length) for length in car["rays"]]
        self._layer.fill((0, 0, 0))
        for end, colour in zip(ends, colours, strict=True):
            pygame.draw.aaline(self._layer, (colour * _LIGHT_OF_RAY).astype(int).tolist(), start, end)
        surface.blit(self._layer, (0, 0), special_flags=pygame.BLEND_RGB_ADD)
        for end, colour, length in zip(ends, colours, car["rays"], strict=True):
            if length < RAY_RANGE:
                pygame.draw.aacircle(surface, (20, 22, 26), end, _DOT_SIZE + 1.5)
                pygame.draw.aacircle(surface, colour.astype(int).tolist(), end, _DOT_SIZE)


def _ray_colour(length: float) -> NDArray[np.float64]:
    nearness = 1.0 - length / RAY_RANGE
    return np.array([np.interp(nearness, _NEARNESS, channel) for channel in _COLOURS.T])
