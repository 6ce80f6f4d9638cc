"""Cars seen from above: the vector drawing of a car, and cached sprites for drawing many cars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine.car import MAX_WHEEL_ANGLE
from racer_viewer.render.camera import REFERENCE_HEIGHT, View
from racer_viewer.render.rays import ToScreen
from racer_viewer.snapshot import Cars, CarStyle

Floats = NDArray[np.float64]
Points = Sequence[tuple[float, float]]
Colour = tuple[int, int, int]

BODY: Colour = (226, 62, 44)
"""Default body colour."""
FLOOR: Colour = (34, 36, 42)
TYRE, TREAD = (20, 20, 22), (46, 46, 50)
STRIPE: Colour = (244, 240, 230)
COCKPIT: Colour = (26, 28, 34)
HELMET: Colour = (255, 196, 40)
BRAKE_LIGHT: Colour = (255, 40, 26)
TAIL_LIGHT: Colour = (92, 18, 16)
SHADOW = (0, 0, 0, 96)
_SHADE, _LIGHT_SHADE = 0.70, 0.35
"""Darkening of the body's shaded parts; lightening of its ridges."""

_HULL: Points = (
    (1.95, 0.16), (1.00, 0.30), (0.45, 0.40), (0.25, 0.74), (-0.85, 0.76), (-1.35, 0.44), (-1.80, 0.34),
    (-1.80, -0.34), (-1.35, -0.44), (-0.85, -0.76), (0.25, -0.74), (0.45, -0.40), (1.00, -0.30), (1.95, -0.16),
)  # fmt: skip
"""Hull outline in car coordinates [units]: 4 long and 2 wide, x ahead, y to the left, origin at the centre."""
_SPINE: Points = ((1.90, 0.09), (-1.75, 0.15), (-1.75, -0.15), (1.90, -0.09))
_RIDGES: Sequence[Points] = (
    ((0.18, 0.66), (-0.80, 0.68), (-1.20, 0.46), (-0.80, 0.58), (0.18, 0.58)),
    ((1.80, 0.16), (0.95, 0.27), (0.95, 0.21), (1.80, 0.12)),
)
"""Lit ridges on the left side; their mirror image on the right is shaded."""
_FLOOR: Points = ((0.30, 0.84), (-1.00, 0.88), (-1.45, 0.60), (-1.45, -0.60), (-1.00, -0.88), (0.30, -0.84))
_COCKPIT: Points = ((0.55, 0.20), (0.20, 0.32), (-0.45, 0.30), (-0.45, -0.30), (0.20, -0.32), (0.55, -0.20))
_FRONT_WING: Points = ((2.00, 0.40), (1.85, 0.96), (1.50, 0.96), (1.60, 0.20), (1.60, -0.20), (1.50, -0.96),
                       (1.85, -0.96), (2.00, -0.40))  # fmt: skip
_REAR_WING: Points = ((-1.55, 0.82), (-2.00, 0.82), (-2.00, -0.82), (-1.55, -0.82))
_FLAP: Points = ((-1.68, 0.82), (-1.76, 0.82), (-1.76, -0.82), (-1.68, -0.82))
_LIGHT: Points = ((-1.86, 0.46), (-2.06, 0.46), (-2.06, -0.46), (-1.86, -0.46))
_AXLES: Sequence[Points] = (
    ((1.17, 0.78), (1.07, 0.78), (1.07, -0.78), (1.17, -0.78)),
    ((-1.17, 0.78), (-1.27, 0.78), (-1.27, -0.78), (-1.17, -0.78)),
)
_HELMET: Points = tuple((-0.08 + 0.24 * math.cos(k * math.pi / 6), 0.24 * math.sin(k * math.pi / 6)) for k in range(12))
_VISOR: Points = ((0.14, 0.13), (0.06, 0.17), (0.06, -0.17), (0.14, -0.13))
_WHEEL: Points = ((0.42, 0.20), (-0.42, 0.20), (-0.42, -0.20), (0.42, -0.20))
_TREAD: Points = ((0.36, 0.06), (-0.36, 0.06), (-0.36, -0.06), (0.36, -0.06))
_FRONT_AXLE, _REAR_AXLE, _WHEEL_OFFSET = 1.12, -1.22, 0.80
_BODY: Sequence[tuple[str | Colour, Points]] = (
    *((FLOOR, axle) for axle in _AXLES),
    ("dark", _FRONT_WING),
    (FLOOR, _FLOOR),
    ("body", _HULL),
    *(("light", ridge) for ridge in _RIDGES),
    *(("dark", [(x, -y) for x, y in ridge]) for ridge in _RIDGES),
    (STRIPE, _SPINE),
    (COCKPIT, _COCKPIT),
    ("dark", _REAR_WING),
    ("light", _FLAP),
    ("lamp", _LIGHT),
    (HELMET, _HELMET),
    (COCKPIT, _VISOR),
)
"""Shapes above the wheels from bottom to top, each with a fixed colour or the name of a per-car colour."""
_BODY_CORNERS: Floats = np.array([corner for _, shape in _BODY for corner in shape])
_CASTING: Floats = np.array([*_FLOOR, *_HULL, *_FRONT_WING, *_REAR_WING])
_CASTING_COUNTS = [len(shape) for shape in (_FLOOR, _HULL, _FRONT_WING, _REAR_WING)]
"""Corner counts of the shapes that cast a shadow, besides the wheels."""
_SHADOW_OFFSET = (0.32, -0.30)
"""Shadow offset to the right and upwards in the picture [units]."""
REACH = 2.7
"""Distance from the centre to the outermost point, including the shadow [units before enlarging]."""
BRAKING = 0.1
"""Brake position from which the brake light is on."""

ENLARGED = 2.2
"""Enlargement factor of drawn cars, to be visible on roads that are 20 times as wide as a car."""
GHOST_OPACITY = 115
"""Opacity of a ghost, of 255."""
_FINE_SMOOTHING, _SMOOTHING, _LARGE = 3, 2, 90
"""Supersampling factors for small and large pictures, and the size from which a picture is large [px]."""


@dataclass(frozen=True)
class Pose:
    """Inputs of a car picture: angles [rad], positive to the left, and scale including enlargement [px per unit]."""

    heading: float
    wheel_angle: float
    braking: bool
    scale: float

    @property
    def size(self) -> int:
        """Width and height of the picture [px]."""
        return 2 * math.ceil(REACH * self.scale) + 2


def wheel_angle(steer: float) -> float:
    """Return the front wheel angle at standstill; the real angle at speed is too small to see."""
    return -steer * MAX_WHEEL_ANGLE


def car_picture(
    pose: Pose, colour: Colour, ghost: bool = False, off: tuple[float, float] = (0.0, 0.0), shadow: bool = True
) -> pygame.Surface:
    """Return a premultiplied picture of a car, centred or at offset `off` [px]."""
    drawing = _drawing(pose, off)
    if shadow:
        drawing.draw_shadow(pose)
    drawing.draw_car(pose, colour)
    picture = pygame.transform.smoothscale(drawing.canvas, (pose.size, pose.size))
    if ghost:
        picture.fill((GHOST_OPACITY,) * 4, special_flags=pygame.BLEND_RGBA_MULT)
    return picture


def car_shadow(pose: Pose) -> pygame.Surface:
    """Return a picture of the shadow alone."""
    drawing = _drawing(pose, (0.0, 0.0))
    drawing.draw_shadow(pose)
    return pygame.transform.smoothscale(drawing.canvas, (pose.size, pose.size))


class CarSprite:
    """Exact drawing of single cars. `scale` is that of the track [px per unit], `turn` that of the view [rad]."""

    def __init__(self, scale: float, turn: float = 0.0) -> None:
        self._scale, self._turn = scale * ENLARGED, turn

    def draw(
        self,
        surface: pygame.Surface,
        to_screen: ToScreen,
        car: Mapping[str, Any],
        colour: Colour = BODY,
        ghost: bool = False,
    ) -> None:
        x, y = to_screen(car["x"], car["y"])
        braking = bool(car["brake"] > BRAKING)
        pose = Pose(float(car["heading"]) + self._turn, wheel_angle(float(car["steer"])), braking, self._scale)
        left, top = math.floor(x - pose.size / 2), math.floor(y - pose.size / 2)
        picture = car_picture(pose, colour, ghost, (x - pose.size / 2 - left, y - pose.size / 2 - top))
        surface.blit(picture, (left, top), special_flags=pygame.BLEND_PREMULTIPLIED)


@dataclass(frozen=True)
class _Drawing:
    """Canvas for the shapes of a car: centre, pixels per unit and heading."""

    canvas: pygame.Surface
    middle: tuple[float, float]
    scale: float
    heading: float

    def draw_shadow(self, pose: Pose) -> None:
        wheels = [_turned(_WHEEL, *wheel) for wheel in _wheels(pose)]
        corners = np.concatenate([_CASTING, *wheels])
        self._draw(corners, [(SHADOW, count) for count in (*_CASTING_COUNTS, *(len(wheel) for wheel in wheels))],
                   _SHADOW_OFFSET)  # fmt: skip

    def draw_car(self, pose: Pose, colour: Colour) -> None:
        paints = {"body": colour, "dark": _shaded(colour, _SHADE), "light": _lit(colour, _LIGHT_SHADE),
                  "lamp": BRAKE_LIGHT if pose.braking else TAIL_LIGHT}  # fmt: skip
        wheels = [
            (paint, _turned(shape, *wheel))
            for wheel in _wheels(pose)
            for paint, shape in ((TYRE, _WHEEL), (TREAD, _TREAD))
        ]
        corners = np.concatenate([*(shape for _, shape in wheels), _BODY_CORNERS])
        body = [(paints[paint] if isinstance(paint, str) else paint, len(shape)) for paint, shape in _BODY]
        self._draw(corners, [*((paint, len(shape)) for paint, shape in wheels), *body])

    def _draw(
        self, corners: Floats, shapes: Sequence[tuple[Sequence[int], int]], offset: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        """Draw shapes given as consecutive corner counts; rotating all corners at once is much faster."""
        cos, sin = math.cos(self.heading) * self.scale, math.sin(self.heading) * self.scale
        x, y = self.middle[0] + offset[0] * self.scale, self.middle[1] - offset[1] * self.scale
        pixels = (corners @ np.array([(cos, -sin), (-sin, -cos)]) + (x, y)).tolist()
        start = 0
        for colour, count in shapes:
            pygame.draw.polygon(self.canvas, colour, pixels[start : start + count])
            start += count


def _drawing(pose: Pose, off: tuple[float, float]) -> _Drawing:
    smoothing = _FINE_SMOOTHING if pose.size < _LARGE else _SMOOTHING
    canvas = pygame.Surface((pose.size * smoothing,) * 2, pygame.SRCALPHA, 32)
    middle = (pose.size / 2 + off[0]) * smoothing, (pose.size / 2 + off[1]) * smoothing
    return _Drawing(canvas, middle, pose.scale * smoothing, pose.heading)


def _wheels(pose: Pose) -> list[tuple[float, tuple[float, float]]]:
    """Return the angle and position of each wheel."""
    axles = (_FRONT_AXLE, pose.wheel_angle), (_REAR_AXLE, 0.0)
    return [(angle, (axle, side)) for axle, angle in axles for side in (_WHEEL_OFFSET, -_WHEEL_OFFSET)]


def _turned(shape: Points, angle: float, offset: tuple[float, float]) -> Points:
    cos, sin = math.cos(angle), math.sin(angle)
    return [(offset[0] + x * cos - y * sin, offset[1] + x * sin + y * cos) for x, y in shape]


def _shaded(colour: Colour, share: float) -> Colour:
    red, green, blue = (round(part * share) for part in colour)
    return red, green, blue


def _lit(colour: Colour, share: float) -> Colour:
    red, green, blue = (round(part + (255 - part) * share) for part in colour)
    return red, green, blue


MIN_CAR_LENGTH = 17.0
"""Smallest drawn car length in a window of the reference height [px]."""
CAR_LENGTH = 4.0
"""Car length [units]."""
SCALE_STEP = 1.05
"""Ratio between the scales of cached sprites."""
CROWD = 20
"""Number of visible cars from which sprites use coarser angles."""
HEADINGS, CROWD_HEADINGS = 128, 64
STEERS, CROWD_STEERS = 2, 0
"""Front wheel steps to each side."""
MASTER = 2
"""Size factor of the master pictures that sprites are rotated and shrunk from."""
MAX_SPRITES, MAX_MASTERS = 6000, 400
"""Maximum number of cached sprites and masters; about 40 MB in a window of the reference height."""
MAX_NEW_SPRITES = 24
"""Maximum number of new sprites per frame; further cars keep their sprite of the previous scale for a while."""


class _Key(NamedTuple):
    """Cache key of a sprite; `scale` and `heading` in steps."""

    scale: int
    heading: float
    steer: float
    braking: bool
    colour: Colour
    ghost: bool


class CarSprites:
    """Drawing of all cars of a view; the followed one is on top and exact."""

    def __init__(self) -> None:
        self._sprites: dict[_Key, pygame.Surface] = {}
        self._masters: dict[tuple[object, ...], pygame.Surface] = {}
        self._shadows: dict[tuple[int, float], pygame.Surface] = {}
        self._step = self._last_step = 0
        self._made = 0

    def draw_others(
        self, surface: pygame.Surface, view: View, cars: Cars, looks: tuple[CarStyle, ...], focus: int
    ) -> None:
        """Draw all cars but the followed one, ghosts first."""
        scale = car_scale(view)
        seen = visible(view, cars, focus)
        self._begin(scale)
        crowd = len(seen) > CROWD
        headings, steers = (CROWD_HEADINGS, CROWD_STEERS) if crowd else (HEADINGS, STEERS)
        chosen = cars[seen]
        places = view.points_to_screen(np.stack([chosen["x"], chosen["y"]], axis=1)).tolist()
        turn = 2.0 * math.pi / headings
        turns = (np.rint((chosen["heading"] + view.turn) / turn) % headings * turn).tolist()
        wheels = (np.rint(chosen["steer"] * steers) / max(1, steers)).tolist()
        brakes = (chosen["brake"] > BRAKING).tolist()
        bodies: list[list[tuple[pygame.Surface, tuple[int, int]]]] = [[], [], []]
        for number, place, turned, steer, braking in zip(seen.tolist(), places, turns, wheels, brakes, strict=True):
            look = looks[number]
            key = _Key(self._step, turned, steer, braking, look.colour, look.ghost)
            bodies[1 if look.ghost else 2].append(_centred(self._sprite(key), place))
            if not look.ghost:
                bodies[0].append(_centred(self._shadow(key.heading), place))
        for layer in bodies:
            surface.fblits(layer, pygame.BLEND_PREMULTIPLIED)

    def draw_followed(self, surface: pygame.Surface, view: View, car: Mapping[str, Any], look: CarStyle) -> None:
        CarSprite(car_scale(view) / ENLARGED, view.turn).draw(surface, view.to_screen, car, look.colour, look.ghost)

    def _begin(self, scale: float) -> None:
        """Start a frame at this scale."""
        step = round(math.log(scale, SCALE_STEP))
        if step != self._step:
            self._step, self._last_step = step, self._step
        self._made = 0

    def _sprite(self, key: _Key) -> pygame.Surface:
        sprite = self._sprites.get(key)
        if sprite is None and self._made >= MAX_NEW_SPRITES:
            sprite = self._sprites.get(key._replace(scale=self._last_step))
        if sprite is not None:
            return sprite
        self._made += 1
        master = self._master(key.steer, key.braking, key.colour, key.ghost)
        sprite = pygame.transform.rotozoom(master, math.degrees(key.heading), 1.0 / MASTER)
        return _kept(self._sprites, key, sprite, MAX_SPRITES)

    def _master(self, steer: float, braking: bool, colour: Colour, ghost: bool) -> pygame.Surface:
        key = (self._step, steer, braking, colour, ghost)
        if key in self._masters:
            return self._masters[key]
        pose = Pose(0.0, wheel_angle(steer), braking, MASTER * SCALE_STEP**self._step)
        return _kept(self._masters, key, car_picture(pose, colour, ghost, shadow=False), MAX_MASTERS)

    def _shadow(self, heading: float) -> pygame.Surface:
        key = self._step, heading
        if key in self._shadows:
            return self._shadows[key]
        return _kept(self._shadows, key, car_shadow(Pose(heading, 0.0, False, SCALE_STEP**self._step)), MAX_MASTERS)


def car_scale(view: View) -> float:
    """Return the scale at which cars are drawn [px per car unit]."""
    least = MIN_CAR_LENGTH / CAR_LENGTH * view.size[1] / REFERENCE_HEIGHT
    return max(view.scale * ENLARGED, least)


def visible(view: View, cars: Cars, focus: int) -> NDArray[np.intp]:
    """Return the indices of the cars in a view, without the followed one."""
    places = view.points_to_screen(np.stack([cars["x"], cars["y"]], axis=1))
    reach = CAR_LENGTH * car_scale(view)
    inside = ((places > -reach) & (places < np.array(view.size) + reach)).all(axis=1)
    return np.flatnonzero(inside & (np.arange(len(cars)) != focus))


def _centred(picture: pygame.Surface, place: list[float]) -> tuple[pygame.Surface, tuple[int, int]]:
    return picture, (round(place[0] - picture.get_width() / 2), round(place[1] - picture.get_height() / 2))


def _kept(pictures: dict[Any, pygame.Surface], key: object, picture: pygame.Surface, most: int) -> pygame.Surface:
    pictures[key] = picture
    if len(pictures) > most:
        del pictures[next(iter(pictures))]
    return picture
