"""Map panel: the whole circuit with a dot for every car."""

from __future__ import annotations

import math

import numpy as np
import pygame

from racer_env.engine import Track
from racer_viewer.render.overlays.panel import EDGE, WIDTH, Panel, PanelInput, TextPainter
from racer_viewer.snapshot import CarStyle
from racer_viewer.translation import _
from racer_viewer.ui.theme import PADDING, TEXT_SMALL, Colour

HEIGHT, COMPACT_HEIGHT = 176, 112
ROAD: Colour = (196, 202, 198)
ROAD_RIM: Colour = (10, 12, 14)
ROAD_WIDTH, START_LENGTH = 4.5, 12.0
DOT, FOLLOWED_DOT, RIM = 4.0, 5.5, 1.5
"""Radii of the car dots and width of their outline, at scale 1 [px]."""
SMOOTHING = 4
POINT_DISTANCE = 1.0
"""Distance between points along the road [px]."""


class CircuitMap(Panel):
    """Map with north up. A ghost is hollow; the followed car is larger, has a bright outline and is drawn last."""

    EVERY, PHASE = 2, 1

    def __init__(self, painter: TextPainter, compact: bool) -> None:
        super().__init__(painter, COMPACT_HEIGHT if compact else HEIGHT)
        self._track: Track | None = None
        self._empty = self.plate
        self._dots: dict[tuple[Colour, bool, bool], pygame.Surface] = {}
        self._scale = self._left = self._top = 0.0

    def prepare(self, view: PanelInput) -> None:
        if view.snapshot.track is not self._track:
            self._show(view.snapshot.track)

    def draw_moving(self, board: pygame.Surface, view: PanelInput) -> None:
        snapshot = view.snapshot
        xs = np.rint(self._left + snapshot.cars["x"] * self._scale).astype(int).tolist()
        ys = np.rint(self._top - snapshot.cars["y"] * self._scale).astype(int).tolist()
        order = [number for number in range(len(xs)) if number != snapshot.focus]
        placed = []
        for number in (*order, snapshot.focus):
            dot = self._dot(snapshot.styles[number], number == snapshot.focus)
            half = dot.get_width() // 2
            placed.append((dot, (xs[number] - half, ys[number] - half)))
        board.fblits(placed)

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return the panel position of a track position."""
        return self._left + x * self._scale, self._top - y * self._scale

    def _show(self, track: Track) -> None:
        """Draw the road, start line, name and length of another circuit onto the plate."""
        self._track = track
        self.plate = self._empty.copy()
        name_top = self.size[1] - self.px(EDGE) - self.theme.line_height(TEXT_SMALL)
        self._fit(track, name_top)
        length = _("{length:.0f} units").format(length=track.length)
        room = self.right - self.left - self.theme.width(length, TEXT_SMALL) - self.px(8)
        name = self.painter.fitted(track.circuit.name if track.circuit else "", room)
        self.painter.text(self.plate, name, self.left, name_top, self.palette.text)
        self.painter.text_right(self.plate, length, self.right, name_top, self.palette.faint)
        self.plate.blit(self._road(track), (0, 0))

    def _fit(self, track: Track, bottom: int) -> None:
        """Scale and centre the circuit with its walls, which no car passes, in the space above `bottom`."""
        walls = np.concatenate([track.inner, track.outer])
        low, high = walls.min(axis=0), walls.max(axis=0)
        wide, tall = (high - low).tolist()
        inset = self.px(FOLLOWED_DOT + RIM + 2)
        width, height = self.px(WIDTH - 2 * PADDING) - inset, bottom - self.top - 2 * inset
        self._scale = min(width / wide, height / tall)
        middle_x, middle_y = ((low + high) / 2.0).tolist()
        self._left = self.size[0] / 2.0 - middle_x * self._scale
        self._top = self.top + inset + height / 2.0 + middle_y * self._scale

    def _road(self, track: Track) -> pygame.Surface:
        """Draw the road and the start line, supersampled for smooth edges."""
        canvas = pygame.Surface((self.size[0] * SMOOTHING, self.size[1] * SMOOTHING), pygame.SRCALPHA, 32)
        canvas.fill((*ROAD_RIM, 0))
        line = track.centreline.points(np.arange(0.0, track.length, POINT_DISTANCE / self._scale))
        points = [tuple(SMOOTHING * value for value in self.place(x, y)) for x, y in line.tolist()]
        width = SMOOTHING * self.theme.scale * ROAD_WIDTH
        for colour, radius in ((ROAD_RIM, width / 2.0 + SMOOTHING * self.theme.scale), (ROAD, width / 2.0)):
            for point in points:
                pygame.draw.circle(canvas, colour, point, radius)
        x, y, heading = track.start
        middle = pygame.Vector2(self.place(x, y)) * SMOOTHING
        across = pygame.Vector2(math.sin(heading), math.cos(heading)) * SMOOTHING * self.px(START_LENGTH) / 2.0
        for colour, thickness in ((ROAD_RIM, 5), (self.palette.text, 2.5)):
            pygame.draw.line(canvas, colour, middle - across, middle + across, SMOOTHING * self.px(thickness))
        return pygame.transform.smoothscale(canvas, self.size)

    def _dot(self, look: CarStyle, followed: bool) -> pygame.Surface:
        key = look.colour, look.ghost, followed
        if key not in self._dots:
            self._dots[key] = _dot(look.colour, look.ghost, self._rim(followed), self._radius(followed), self.px(RIM))
        return self._dots[key]

    def _rim(self, followed: bool) -> Colour:
        return self.palette.text if followed else ROAD_RIM

    def _radius(self, followed: bool) -> float:
        return self.theme.scale * (FOLLOWED_DOT if followed else DOT)


def _dot(colour: Colour, hollow: bool, rim: Colour, radius: float, rim_width: float) -> pygame.Surface:
    """Return a disc with an outline; its width is odd, so that it has a centre pixel."""
    reach = math.ceil(radius + rim_width)
    side = 2 * reach + 1
    canvas = pygame.Surface((side * SMOOTHING, side * SMOOTHING), pygame.SRCALPHA, 32)
    canvas.fill((*rim, 0))
    middle = (side * SMOOTHING / 2.0, side * SMOOTHING / 2.0)
    pygame.draw.circle(canvas, rim, middle, (radius + rim_width) * SMOOTHING)
    pygame.draw.circle(canvas, colour, middle, radius * SMOOTHING)
    if hollow:
        pygame.draw.circle(canvas, (*colour, 0), middle, radius * 0.55 * SMOOTHING)
    return pygame.transform.smoothscale(canvas, (side, side))
