"""Legend of the swarm view and its colour scales, with even steps of lightness: a better car is always brighter."""

from __future__ import annotations

from functools import cache

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_viewer.render.camera import View
from racer_viewer.translation import _, mark
from racer_viewer.ui.theme import COLOUR_BLIND, MARGIN, TEXT_SMALL, Palette, Theme

SHADES = 32
"""Colour steps from worst to best."""
HEAT_SHADES = 256
"""Colour steps from cold to hot."""
_HEAT_GAMMA = 0.6
"""Gamma of the heat; below 1, rarely driven cells are easier to see."""

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]

_QUALITY = ((0.44, 0.17, 348.0), (0.57, 0.22, 24.0), (0.72, 0.18, 56.0), (0.83, 0.17, 92.0), (0.90, 0.22, 132.0))
"""Anchors purple, red, orange, yellow, green as OKLCh lightness 0 to 1, chroma and hue [°]."""
_QUALITY_COLOUR_BLIND = ((0.40, 0.15, 300.0), (0.53, 0.14, 255.0), (0.66, 0.12, 200.0), (0.80, 0.17, 150.0),
                         (0.94, 0.18, 106.0))  # fmt: skip
"""Anchors violet, blue, teal, green, yellow: distinct by lightness, and by blue against yellow."""
_HEAT = ((0.36, 0.13, 275.0), (0.47, 0.14, 264.0), (0.58, 0.13, 250.0), (0.72, 0.11, 232.0))
"""Anchors from dark to light blue: a hue that no car has."""
_HEAT_COLOUR_BLIND = ((0.36, 0.07, 40.0), (0.52, 0.11, 45.0), (0.60, 0.11, 50.0), (0.70, 0.08, 58.0))
"""Anchors from brown to sand, for the same reason."""
_HEAT_OPACITY = 0.80
"""Largest opacity of the heat; cold cells are transparent."""

_LMS = np.array(
    [(1.0, 0.3963377774, 0.2158037573), (1.0, -0.1055613458, -0.0638541728), (1.0, -0.0894841775, -1.2914855480)]
)
_RGB = np.array(
    [(4.0767416621, -3.3077115913, 0.2309699292), (-1.2684380046, 2.6097574011, -0.3413193965),
     (-0.0041960863, -0.7034186147, 1.7076147010)]
)  # fmt: skip
"""Matrices from OKLab to cone responses, and from their cubes to linear RGB."""


@cache
def quality_colours(palette: Palette) -> Bytes:
    """Return quality colours (SHADES, 3), worst first."""
    return _bytes(_ramp(_QUALITY_COLOUR_BLIND if palette == COLOUR_BLIND else _QUALITY, np.linspace(0.0, 1.0, SHADES)))


@cache
def heat_colours(palette: Palette) -> Bytes:
    """Return premultiplied heat colours (HEAT_SHADES, 4), coldest first."""
    warm = np.linspace(0.0, 1.0, HEAT_SHADES) ** _HEAT_GAMMA
    colours = _ramp(_HEAT_COLOUR_BLIND if palette == COLOUR_BLIND else _HEAT, warm)
    opacity = _HEAT_OPACITY * warm[:, None] ** 0.8
    return _bytes(np.concatenate([colours * opacity, opacity], axis=1))


def shades_of(quality: NDArray[np.float32], steps: int = SHADES) -> NDArray[np.intp]:
    """Return colour indices; unknown quality counts as worst."""
    share = np.clip(np.nan_to_num(quality), 0.0, 1.0)
    return np.minimum(share * steps, steps - 1).astype(np.intp)


def _ramp(anchors: tuple[tuple[float, float, float], ...], at: Floats) -> Floats:
    """Return RGB colours 0 to 1 at these shares of the way from the first anchor to the last."""
    lightness, chroma, hue = np.array(anchors).T
    hue = np.unwrap(np.radians(hue))
    of = np.linspace(0.0, 1.0, len(anchors))
    chroma, hue = np.interp(at, of, chroma), np.interp(at, of, hue)
    lab = np.stack([np.interp(at, of, lightness), chroma * np.cos(hue), chroma * np.sin(hue)], axis=1)
    linear = np.clip((lab @ _LMS.T) ** 3 @ _RGB.T, 0.0, 1.0)
    return np.asarray(np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1.0 / 2.4) - 0.055))


def _bytes(colours: Floats) -> Bytes:
    found = np.rint(colours * 255.0).astype(np.uint8)
    found.setflags(write=False)
    return found


BAR_WIDTH, SHORT_BAR_WIDTH, BAR_HEIGHT = 110, 84, 8
EDGE, GAP = 9, 7
"""Padding and gap at scale 1 [px]."""
WIDTH_STEP = 12
"""Width increment of the plate, so that it does not move with every additional digit [px]."""
WORSE, BETTER = mark("worse"), mark("better")
CLEAR = 8
"""Smallest distance between the plate and the road [px]."""
PLACES = 9
"""Number of candidate positions across and down."""


class Legend:
    """Small plate in the corner where the circuit leaves most space, redrawn when its content changes.

    cross: picture of a crash mark.
    """

    def __init__(self, theme: Theme, colours: NDArray[np.uint8], cross: pygame.Surface) -> None:
        self._theme, self._cross = theme, cross
        self._bar = _bar(colours, theme.px(BAR_HEIGHT))
        self._words: tuple[str, str, str] = ("", "", "")
        self._plates: list[pygame.Surface] = []
        self._key: tuple[object, ...] = ()
        self._chosen, self._place = 0, (0, 0)

    def draw(
        self,
        surface: pygame.Surface,
        view: View,
        area: pygame.Rect,
        road: NDArray[np.float64],
        cars: str,
        stopped: str = "",
        at_walls: str = "",
    ) -> pygame.Rect:
        """Draw the legend within an area and return its rectangle. road: (n, 2) positions of the circuit [units]."""
        words = cars, stopped, at_walls
        if words != self._words or not self._plates:
            self._words, self._plates = words, self._drawn(*words)
        key = view, tuple(area), id(road), *(plate.get_size() for plate in self._plates)
        if key != self._key:
            self._key = key
            self._choose(area, view.points_to_screen(road))
        return surface.blit(self._plates[self._chosen], self._place)

    def _choose(self, area: pygame.Rect, road: NDArray[np.float64]) -> None:
        """Choose the first plate that covers no road, or the one that covers least of it."""
        margin = self._theme.px(MARGIN) // 2
        room = area.inflate(-2 * margin, -2 * margin)
        found = [_roomiest(plate.get_size(), room, road) for plate in self._plates]
        self._chosen = min(range(len(found)), key=lambda number: found[number][0])
        self._place = found[self._chosen][1]

    def _drawn(self, cars: str, stopped: str, at_walls: str) -> list[pygame.Surface]:
        """Return a wide and a narrow plate: the colour scale, and below it the counts."""
        theme, faint = self._theme, self._theme.palette.faint
        worse, better = theme.text(_(WORSE), TEXT_SMALL, faint), theme.text(_(BETTER), TEXT_SMALL, faint)
        bar = pygame.transform.smoothscale(self._bar, (theme.px(BAR_WIDTH), self._bar.get_height()))
        short = pygame.transform.smoothscale(self._bar, (theme.px(SHORT_BAR_WIDTH), self._bar.get_height()))
        counted = [theme.text(cars, TEXT_SMALL)]
        ended = [self._cross, theme.text(stopped, TEXT_SMALL, faint)] if stopped else []
        touching = [theme.text(at_walls, TEXT_SMALL, faint)] if at_walls else []
        rows = [[worse, bar, better], counted + ended + touching], [[short], counted, ended, touching]
        return [self._stacked([row for row in layout if row], theme.px(GAP)) for layout in rows]

    def _stacked(self, rows: list[list[pygame.Surface]], gap: int) -> pygame.Surface:
        theme, edge = self._theme, self._theme.px(EDGE)
        line = theme.line_height(TEXT_SMALL)
        step = theme.px(WIDTH_STEP)
        width = -(-max(_width(row, gap) for row in rows) // step) * step
        plate = theme.panel(width + 2 * edge, line * len(rows) + 2 * edge)
        for number, row in enumerate(rows):
            x, middle = edge, edge + line * number + line // 2
            for part in row:
                plate.blit(part, (x, middle - part.get_height() // 2))
                x += part.get_width() + gap
        return plate


def _roomiest(size: tuple[int, int], room: pygame.Rect, road: NDArray[np.float64]) -> tuple[int, tuple[int, int]]:
    """Return the smallest number of covered road points, and the top left corner of the plate there.

    Corners are tried first, the lower right one before the others.
    """
    shares = np.linspace(1.0, 0.0, PLACES)
    across, down = (side.ravel() for side in np.meshgrid(shares, shares, indexing="ij"))
    corners = np.abs(across - 0.5) + np.abs(down - 0.5) == 1.0
    free = max(0, room.width - size[0]), max(0, room.height - size[1])
    places = np.rint(np.stack([room.x + across * free[0], room.y + down * free[1]], axis=1)).astype(int)
    low, high = places[:, None] - CLEAR, places[:, None] + size + CLEAR
    covered = ((road >= low) & (road <= high)).all(axis=2).sum(axis=1)
    best = np.lexsort((~corners, covered))[0]
    return int(covered[best]), (int(places[best, 0]), int(places[best, 1]))


def _bar(colours: NDArray[np.uint8], height: int) -> pygame.Surface:
    """Return a bar of all colours, worst first."""
    strip = np.ascontiguousarray(np.broadcast_to(colours[None], (height, *colours.shape)))
    return pygame.image.frombuffer(strip.tobytes(), (len(colours), height), "RGB")


def _width(parts: list[pygame.Surface], gap: int) -> int:
    return sum(part.get_width() for part in parts) + gap * (len(parts) - 1)
