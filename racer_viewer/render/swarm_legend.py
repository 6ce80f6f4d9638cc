"""What the colours of the swarm mean, and how many cars there are."""

from __future__ import annotations

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_viewer.render.camera import View
from racer_viewer.ui.theme import MARGIN, TEXT_SMALL, Theme

BAR_WIDTH, SHORT_BAR_WIDTH, BAR_HEIGHT = 110, 84, 8
EDGE, GAP = 9, 7
"""Around what is written, and between it, at scale 1 [px]."""
WIDTH_STEP = 12
"""Widths differ by so much, so that a plate does not move whenever a count has one digit more [px]."""
WORSE, BETTER = "worse", "better"
CLEAR = 8
"""Between the plate and the road [px]."""
PLACES = 9
"""Across and down, that are tried."""


class Legend:
    """A small plate in the corner where the circuit leaves most room. It is drawn when what is on it changes.

    cross: the mark of a crash.
    """

    def __init__(self, theme: Theme, colours: NDArray[np.uint8], cross: pygame.Surface) -> None:
        self._theme, self._cross = theme, cross
        self._bar = _bar(colours, theme.px(BAR_HEIGHT))
        self._words: tuple[str, str] = ("", "")
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
        crashes: str = "",
    ) -> pygame.Rect:
        """Within an area of the surface. road: (n, 2) places of the circuit [units]; returns where the legend is."""
        if (cars, crashes) != self._words or not self._plates:
            self._words, self._plates = (cars, crashes), self._drawn(cars, crashes)
        key = view, tuple(area), id(road), *(plate.get_size() for plate in self._plates)
        if key != self._key:
            self._key = key
            self._choose(area, view.points_to_screen(road))
        return surface.blit(self._plates[self._chosen], self._place)

    def _choose(self, area: pygame.Rect, road: NDArray[np.float64]) -> None:
        """The first plate that covers nothing of the road, or the one that covers least of it."""
        margin = self._theme.px(MARGIN) // 2
        room = area.inflate(-2 * margin, -2 * margin)
        found = [_roomiest(plate.get_size(), room, road) for plate in self._plates]
        self._chosen = min(range(len(found)), key=lambda number: found[number][0])
        self._place = found[self._chosen][1]

    def _drawn(self, cars: str, crashes: str) -> list[pygame.Surface]:
        """A wide plate and a narrow one: the scale, and below it the counts."""
        theme, faint = self._theme, self._theme.palette.faint
        worse, better = theme.text(WORSE, TEXT_SMALL, faint), theme.text(BETTER, TEXT_SMALL, faint)
        bar = pygame.transform.smoothscale(self._bar, (theme.px(BAR_WIDTH), self._bar.get_height()))
        short = pygame.transform.smoothscale(self._bar, (theme.px(SHORT_BAR_WIDTH), self._bar.get_height()))
        counted = [theme.text(cars, TEXT_SMALL)]
        ended = [self._cross, theme.text(crashes, TEXT_SMALL, faint)] if crashes else []
        rows = [[worse, bar, better], counted + ended], [[short], counted, ended]
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
    """How much of the road a plate covers where it covers least, and its top left corner there.

    The corners come first, the lower right one before the others.
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
    """All colours beside each other, the worst first."""
    strip = np.ascontiguousarray(np.broadcast_to(colours[None], (height, *colours.shape)))
    return pygame.image.frombuffer(strip.tobytes(), (len(colours), height), "RGB")


def _width(parts: list[pygame.Surface], gap: int) -> int:
    return sum(part.get_width() for part in parts) + gap * (len(parts) - 1)
