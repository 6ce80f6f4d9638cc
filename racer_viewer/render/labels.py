"""Labels in the world: gate lines with their numbers, and names beside cars."""

from __future__ import annotations

import math

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import Track
from racer_viewer.render.camera import View
from racer_viewer.render.car import CAR_LENGTH, Colour, car_scale
from racer_viewer.snapshot import Cars, CarStyle
from racer_viewer.ui.theme import TEXT_SMALL, Theme

FAINT = (236, 240, 244)
RIM = (18, 22, 26)
DISC = 10
"""Radius of the disc behind a number at scale 1 [px]."""


class GateLines:
    """Gates in a view; the next one to take is highlighted."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._discs: dict[tuple[int, bool], pygame.Surface] = {}

    def draw(self, surface: pygame.Surface, view: View, track: Track, taken: int) -> None:
        """Draw the gates. `taken`: index of the gate that the followed car took last."""
        following = (taken + 1) % len(track.gates)
        ends = view.points_to_screen(track.gates[:, :4].reshape(-1, 2, 2))
        low, high = ends.min(axis=1), ends.max(axis=1)
        seen = ((high > -DISC) & (low < (view.size[0] + DISC, view.size[1] + DISC))).all(axis=1)
        for number in [*(each for each in seen.nonzero()[0].tolist() if each != following), following]:
            if seen[number]:
                self._draw_gate(surface, ends[number].tolist(), number, number == following)

    def _draw_gate(self, surface: pygame.Surface, ends: list[list[float]], number: int, following: bool) -> None:
        theme, (inner, outer) = self._theme, ends
        colour = theme.palette.accent if following else FAINT
        if following:
            pygame.draw.aaline(surface, RIM, inner, outer, theme.px(4))
        pygame.draw.aaline(surface, colour, inner, outer, theme.px(2 if following else 1))
        disc = self._disc(number, following)
        surface.fblits([(disc, disc.get_rect(center=(round(x), round(y)))) for x, y in ends])

    def _disc(self, number: int, following: bool) -> pygame.Surface:
        """Return the disc at both ends of a gate."""
        key = number, following
        if key not in self._discs:
            theme = self._theme
            radius = theme.px(DISC)
            disc = pygame.Surface((2 * radius + 6, 2 * radius + 6), pygame.SRCALPHA, 32)
            middle = disc.get_rect().center
            pygame.draw.aacircle(disc, RIM, middle, radius + 1.5)
            if following:
                pygame.draw.aacircle(disc, theme.palette.accent, middle, radius)
            text = theme.text(str(number), TEXT_SMALL, theme.palette.on_accent if following else theme.palette.text)
            disc.blit(text, text.get_rect(center=(middle[0], middle[1] + 1)))
            self._discs[key] = disc
        return self._discs[key]


PLATE = (14, 18, 20, 178)
PADDING, STRIPE, CORNER, GAP = 5, 3, 4, 4
"""Text padding, width of the colour stripe, corner radius, and gap between car and plate, at scale 1 [px]."""
CAR_WIDTH = 2.0
"""Car width [units]."""
MAX_NAMES = 24
"""Maximum number of names; the cars nearest to the followed one win."""
MAX_PLATES = 256


class NameTags:
    """Name plates above or below each car but the followed one, where there is space."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._plates: dict[tuple[str, Colour, int], pygame.Surface] = {}

    def draw(
        self,
        surface: pygame.Surface,
        view: View,
        cars: Cars,
        looks: tuple[CarStyle, ...],
        seen: NDArray[np.intp],
        focus: int,
    ) -> None:
        places = view.points_to_screen(np.stack([cars["x"], cars["y"]], axis=1))
        order = seen[np.argsort(np.hypot(*(places[seen] - places[focus]).T))][:MAX_NAMES]
        bodies = {
            number: _body(places[number].tolist(), float(cars["heading"][number]) + view.turn, car_scale(view))
            for number in (*order.tolist(), focus)
        }
        taken, put = list(bodies.values()), []
        for number in order.tolist():
            plate = self._plate(looks[number].name, looks[number].colour)
            body = bodies[number].inflate(2 * GAP, 2 * GAP)
            above, below = plate.get_rect(midbottom=body.midtop), plate.get_rect(midtop=body.midbottom)
            for place in (above, below):
                area = place.clamp(surface.get_rect())
                if area.collidelist(taken) < 0:
                    put.append((plate, area.topleft))
                    taken.append(area)
                    break
        surface.fblits(put)

    def _plate(self, name: str, colour: Colour) -> pygame.Surface:
        key = name, colour, self._theme.px(TEXT_SMALL)
        if key not in self._plates:
            if len(self._plates) >= MAX_PLATES:
                self._plates.clear()
            self._plates[key] = self._drawn(name, colour)
        return self._plates[key]

    def _drawn(self, name: str, colour: Colour) -> pygame.Surface:
        px, text = self._theme.px, self._theme.text(name, TEXT_SMALL)
        plate = pygame.Surface((text.get_width() + 2 * px(PADDING) + px(STRIPE), text.get_height() + px(PADDING)),
                               pygame.SRCALPHA, 32)  # fmt: skip
        pygame.draw.rect(plate, PLATE, plate.get_rect(), border_radius=px(CORNER))
        stripe = pygame.Rect(0, 0, px(STRIPE), plate.get_height())
        pygame.draw.rect(plate, colour, stripe, border_top_left_radius=px(CORNER), border_bottom_left_radius=px(CORNER))
        plate.blit(text, (px(STRIPE) + px(PADDING), (plate.get_height() - text.get_height() + 1) // 2))
        return plate


def _body(place: list[float], heading: float, scale: float) -> pygame.Rect:
    """Return the bounding rectangle of a drawn car."""
    along, aside = CAR_LENGTH / 2 * scale, CAR_WIDTH / 2 * scale
    cos, sin = abs(math.cos(heading)), abs(math.sin(heading))
    body = pygame.Rect(0, 0, math.ceil(2 * (cos * along + sin * aside)), math.ceil(2 * (sin * along + cos * aside)))
    body.center = round(place[0]), round(place[1])
    return body
