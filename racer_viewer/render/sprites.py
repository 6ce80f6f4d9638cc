"""Many cars at once: pictures of cars are kept, by what they look like."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_viewer.render.camera import REFERENCE_HEIGHT, View
from racer_viewer.render.car import BRAKING, ENLARGED, CarSprite, Colour, Pose, car_picture, car_shadow, wheel_angle
from racer_viewer.snapshot import Cars, Look

LEAST_LENGTH = 17.0
"""Cars are drawn no shorter than this in a window of the reference height [px]."""
CAR_LENGTH = 4.0
"""[units]"""
SCALE_STEP = 1.05
"""Pictures are of scales that differ by this factor."""
CROWD = 20
"""With more cars in view than this, pictures are told apart less finely."""
HEADINGS, CROWD_HEADINGS = 128, 64
STEERS, CROWD_STEERS = 2, 0
"""Steps of the front wheels to each side."""
MASTER = 2
"""Pictures are turned and shrunk from ones that are so many times larger."""
SPRITES_KEPT, MASTERS_KEPT = 6000, 400
"""Some 40 MB in a window of the reference height."""
MADE_AT_ONCE = 24
"""Pictures per frame; cars beyond that look for a while as they did at the last scale."""


class _Key(NamedTuple):
    """What a picture depends on; `scale` and `heading` in steps."""

    scale: int
    heading: float
    steer: float
    braking: bool
    colour: Colour
    ghost: bool


class CarSprites:
    """Draws all cars of a view, the followed one on top of the others and exactly as it is."""

    def __init__(self) -> None:
        self._sprites: dict[_Key, pygame.Surface] = {}
        self._masters: dict[tuple[object, ...], pygame.Surface] = {}
        self._shadows: dict[tuple[int, float], pygame.Surface] = {}
        self._step = self._last_step = 0
        self._made = 0

    def draw_others(self, surface: pygame.Surface, view: View, cars: Cars, looks: tuple[Look, ...], focus: int) -> None:
        """All but the followed one; ghosts below the rest."""
        scale = car_scale(view)
        seen = visible(view, cars, focus)
        self._begin(scale)
        crowd = len(seen) > CROWD
        headings, steers = (CROWD_HEADINGS, CROWD_STEERS) if crowd else (HEADINGS, STEERS)
        chosen = cars[seen]
        places = view.points_to_screen(np.stack([chosen["x"], chosen["y"]], axis=1)).tolist()
        turn = 2.0 * math.pi / headings
        turns = (np.rint(chosen["heading"] / turn) % headings * turn).tolist()
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

    def draw_followed(self, surface: pygame.Surface, view: View, car: Mapping[str, Any], look: Look) -> None:
        CarSprite(car_scale(view) / ENLARGED).draw(surface, view.to_screen, car, look.colour, look.ghost)

    def _begin(self, scale: float) -> None:
        """A new frame at this scale."""
        step = round(math.log(scale, SCALE_STEP))
        if step != self._step:
            self._step, self._last_step = step, self._step
        self._made = 0

    def _sprite(self, key: _Key) -> pygame.Surface:
        sprite = self._sprites.get(key)
        if sprite is None and self._made >= MADE_AT_ONCE:
            sprite = self._sprites.get(key._replace(scale=self._last_step))
        if sprite is not None:
            return sprite
        self._made += 1
        master = self._master(key.steer, key.braking, key.colour, key.ghost)
        sprite = pygame.transform.rotozoom(master, math.degrees(key.heading), 1.0 / MASTER)
        return _kept(self._sprites, key, sprite, SPRITES_KEPT)

    def _master(self, steer: float, braking: bool, colour: Colour, ghost: bool) -> pygame.Surface:
        key = (self._step, steer, braking, colour, ghost)
        if key in self._masters:
            return self._masters[key]
        pose = Pose(0.0, wheel_angle(steer), braking, MASTER * SCALE_STEP**self._step)
        return _kept(self._masters, key, car_picture(pose, colour, ghost, shadow=False), MASTERS_KEPT)

    def _shadow(self, heading: float) -> pygame.Surface:
        key = self._step, heading
        if key in self._shadows:
            return self._shadows[key]
        return _kept(self._shadows, key, car_shadow(Pose(heading, 0.0, False, SCALE_STEP**self._step)), MASTERS_KEPT)


def car_scale(view: View) -> float:
    """At which cars are drawn [px per unit of a car]."""
    least = LEAST_LENGTH / CAR_LENGTH * view.size[1] / REFERENCE_HEIGHT
    return max(view.scale * ENLARGED, least)


def visible(view: View, cars: Cars, focus: int) -> NDArray[np.intp]:
    """Numbers of the cars in a view, without the followed one."""
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
