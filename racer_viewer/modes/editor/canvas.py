"""Canvas of the editor: the circuit from above with its control points, handles, problems and the line being drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pygame

from racer_viewer.circuits.draft import Point
from racer_viewer.circuits.preview import problem_text
from racer_viewer.modes.editor.document import SNAP_STEP, CircuitDocument
from racer_viewer.modes.editor.ground import EditorGround
from racer_viewer.render.camera import Insets, View
from racer_viewer.run_history import Swarm
from racer_viewer.ui.theme import PADDING, TEXT_SMALL, Colour, Theme

SCALES = (0.05, 20.0)
"""Smallest and largest scale [px per unit]."""
EMPTY_WIDTH = 1100.0
"""Width of the area that is shown of an empty canvas [units]."""
FIT_MARGIN, WALL_ROOM = 0.05, 60.0
"""Margin around a circuit that fills the canvas, as a share of its height, and room for road and walls [units]."""
REACH = 12
"""Distance within which the mouse takes a point, a handle or the line, at scale 1 [px]."""
POINT_RADIUS, MIN_POINT_RADIUS, HANDLE_RADIUS = 6, 3, 5
"""Radius of a point, the smallest one where points are close, and half the size of a handle, at scale 1 [px]."""
POINT_SHARE = 0.28
"""Largest radius of a point as a share of the usual distance between two [px]."""
CAR_SIZE, MIN_CAR_SIZE = 4.0, 7.0
"""Length of a car [units], and the smallest one that is drawn, at scale 1 [px]."""
GRID_STEPS = (10.0, 50.0, 100.0, 500.0, 1000.0)
MIN_GRID = 14
"""Smallest distance between lines of the grid at scale 1 [px]."""
INK: Colour = (16, 20, 22)
LIGHT: Colour = (246, 244, 236)
SHADOW = (0, 0, 0, 70)
ARROW = 16
"""Length of the arrow at the start line at scale 1 [px]."""
LABEL_PLACES = ((1, -1), (-1, -1), (1, 1), (-1, 1), (0, -2), (0, 2), (1, -3), (-1, -3), (1, 3), (-1, 3))
"""Places of a label around its mark, in order of preference: columns and rows."""

TargetKind = Literal["point", "width", "line", "none"]


@dataclass(frozen=True)
class Target:
    """Object below the mouse: a control point, one of its width handles, a place on the line, or nothing.

    index: index of the point. arc: place on the line.
    """

    kind: TargetKind = "none"
    index: int = -1
    arc: float = 0.0


@dataclass(frozen=True)
class Drawing:
    """Layers over the circuit in this frame.

    stroke: freehand line so far [units]. box: selection rectangle [px]. cursor: cursor of a gamepad [px].
    to_pointer: place that the next point would get [units].
    """

    target: Target = Target()
    stroke: Sequence[tuple[float, float]] = ()
    box: pygame.Rect | None = None
    cursor: tuple[int, int] | None = None
    to_pointer: tuple[float, float] | None = None
    grid: bool = False
    gates: bool = True
    cars: Swarm | None = None
    insets: Insets = field(default_factory=Insets)


class CanvasView:
    """Part of the world that the canvas shows. size: size of the canvas [px]."""

    def __init__(self) -> None:
        self.x = self.y = 0.0
        self.scale = 0.0
        self.size = (1, 1)

    @property
    def view(self) -> View:
        return View(self.x, self.y, self.scale or 1.0, self.size)

    def pan(self, dx: float, dy: float) -> None:
        """Move what is shown by so many pixels."""
        self.x -= dx / self.scale
        self.y += dy / self.scale

    def zoom(self, factor: float, about: tuple[float, float]) -> None:
        """Scale what is shown, keeping the place at these pixels."""
        x, y = self.view.to_world(*about)
        self.scale = min(SCALES[1], max(SCALES[0], self.scale * factor))
        now_x, now_y = self.view.to_world(*about)
        self.x, self.y = self.x + x - now_x, self.y + y - now_y

    def fit(self, points: Sequence[Point], insets: Insets) -> None:
        """Show all points, in the middle of the area without panels."""
        low_x, low_y, high_x, high_y = -EMPTY_WIDTH / 2.0, -1.0, EMPTY_WIDTH / 2.0, 1.0
        if len(points) > 1:
            rooms = [point.half_width + WALL_ROOM for point in points]
            low_x = min(point.x - room for point, room in zip(points, rooms, strict=True))
            low_y = min(point.y - room for point, room in zip(points, rooms, strict=True))
            high_x = max(point.x + room for point, room in zip(points, rooms, strict=True))
            high_y = max(point.y + room for point, room in zip(points, rooms, strict=True))
        margin = 2.0 * FIT_MARGIN * self.size[1]
        width = max(1.0, self.size[0] - insets.left - insets.right - margin)
        height = max(1.0, self.size[1] - insets.top - insets.bottom - margin)
        scale = min(width / max(1.0, high_x - low_x), height / max(1.0, high_y - low_y))
        self.scale = min(SCALES[1], max(SCALES[0], scale))
        self.x = (low_x + high_x) / 2.0 - (insets.left - insets.right) / 2.0 / self.scale
        self.y = (low_y + high_y) / 2.0 + (insets.top - insets.bottom) / 2.0 / self.scale


class Canvas:
    """Draws the circuit, and finds what is at a pixel."""

    def __init__(self, document: CircuitDocument) -> None:
        self._document = document
        self.camera, self.ground = CanvasView(), EditorGround()
        self.labels: list[tuple[str, pygame.Rect]] = []
        """Texts of the problems shown in the last frame, with their places [px]."""

    def target_at(self, px: float, py: float, theme: Theme) -> Target:
        """Return what the mouse would take at a pixel; points have precedence over handles, and these over the line."""
        document, view = self._document, self.camera.view
        if px >= view.size[0]:
            return Target()  # beside the canvas
        x, y = view.to_world(px, py)
        reach = theme.px(REACH) / view.scale
        nearest = document.preview.nearest_point(x, y)
        if nearest is not None and nearest[1] <= reach:
            return Target("point", nearest[0])
        for index, handle in self._handles():
            if math.dist(handle, (x, y)) <= reach:
                return Target("width", index)
        on_line = document.preview.nearest_arc(x, y)
        if on_line is not None and on_line[1] <= reach:
            return Target("line", arc=on_line[0])
        return Target()

    def points_in(self, box: pygame.Rect) -> list[int]:
        """Return the indices of the points in a rectangle [px]."""
        places = self._places()
        inside = (places >= box.topleft).all(axis=1) & (places <= box.bottomright).all(axis=1)
        return [int(index) for index in np.flatnonzero(inside)]

    def draw(self, surface: pygame.Surface, theme: Theme, drawing: Drawing, taken: Sequence[pygame.Rect] = ()) -> None:
        """Cover a surface. taken: areas of panels, in which no label is put [px]."""
        self.camera.size = surface.get_size()
        view, document = self.camera.view, self._document
        self.ground.draw(surface, view, document.preview)
        if drawing.grid:
            _draw_grid(surface, view, theme)
        if drawing.gates and document.preview.track is not None:
            self._draw_gates(surface, view, document.preview.track.gates)
        self._draw_line(surface, view, theme, drawing)
        if drawing.cars is not None:
            _draw_cars(surface, view, theme, drawing.cars)
        self._draw_points(surface, view, theme, drawing.target)
        if len(drawing.stroke) > 1:
            points = view.points_to_screen(drawing.stroke).tolist()
            pygame.draw.lines(surface, INK, False, points, theme.px(5))
            pygame.draw.lines(surface, theme.palette.accent, False, points, theme.px(3))
        if drawing.box is not None:
            pygame.draw.rect(surface, theme.palette.accent, drawing.box, theme.px(1))
        if drawing.cursor is not None:
            _draw_cursor(surface, theme, drawing.cursor)
        self._draw_problems(surface, view, theme, taken)

    def _handles(self) -> list[tuple[int, tuple[float, float]]]:
        """Return the width handles of the selected points: two on the edges of the road at each."""
        document = self._document
        if not document.is_closed or not document.selected or len(document.selected) > 12:
            return []
        line = document.draft.centreline
        arcs = np.array([document.preview.arc_of_point(index) for index in sorted(document.selected)])
        tangents = line.tangents(arcs)
        found = []
        for index, (dx, dy) in zip(sorted(document.selected), tangents.tolist(), strict=True):
            x, y, half_width = document.points[index]
            for side in (half_width, -half_width):
                found.append((index, (x - side * dy, y + side * dx)))
        return found

    def _places(self) -> np.ndarray:
        points = np.array(self._document.points, np.float64).reshape(-1, 3)[:, :2]
        return self.camera.view.points_to_screen(points)

    def _draw_gates(self, surface: pygame.Surface, view: View, gates: np.ndarray) -> None:
        ends = view.points_to_screen(gates[1:, :4].reshape(-1, 2, 2)).tolist()
        for first, second in ends:
            pygame.draw.aaline(surface, (150, 160, 158), first, second)

    def _draw_line(self, surface: pygame.Surface, view: View, theme: Theme, drawing: Drawing) -> None:
        """Draw the centreline, dashed, the start line with its direction, and the place where a point would be."""
        document = self._document
        line = document.preview.line
        if len(line) > 1:
            points = view.points_to_screen(line)
            if document.is_closed:
                for i in range(0, len(points) - 1, 2):
                    pygame.draw.aaline(surface, LIGHT, points[i].tolist(), points[i + 1].tolist())
            else:
                pygame.draw.lines(surface, LIGHT, False, points.tolist(), theme.px(2))
        if document.is_closed:
            self._draw_start(surface, view, theme)
        if drawing.to_pointer is not None and document.points:
            last = document.points[-1]
            begin, end = view.to_screen(last.x, last.y), view.to_screen(*drawing.to_pointer)
            pygame.draw.aaline(surface, theme.palette.accent, begin, end)
        if drawing.target.kind == "line":
            ((x, y),) = view.points_to_screen(document.draft.centreline.points(np.array([drawing.target.arc])))
            radius = theme.px(POINT_RADIUS + 2)
            pygame.draw.aacircle(surface, INK, (x, y), radius + 1)
            pygame.draw.aacircle(surface, theme.palette.accent, (x, y), radius)
            for dx, dy in ((radius / 2, 0), (0, radius / 2)):
                pygame.draw.line(surface, INK, (x - dx, y - dy), (x + dx, y + dy), theme.px(2))

    def _draw_start(self, surface: pygame.Surface, view: View, theme: Theme) -> None:
        """Draw the start line across the road, and an arrow in the direction of travel."""
        line = self._document.draft.centreline
        ((dx, dy),) = line.tangents(np.array([0.0])).tolist()
        x, y, half_width = self._document.points[0]
        left, right = (view.to_screen(x - side * dy, y + side * dx) for side in (half_width, -half_width))
        pygame.draw.line(surface, INK, left, right, theme.px(5))
        pygame.draw.line(surface, LIGHT, left, right, theme.px(3))
        size = theme.px(ARROW)
        ahead = np.array([1.6 * size / view.scale])
        ((dx, dy),), ((x, y),) = line.tangents(ahead).tolist(), line.points(ahead).tolist()
        px, py = view.to_screen(x, y)
        corners = [(1.0, 0.0), (-0.6, 0.7), (-0.2, 0.0), (-0.6, -0.7)]
        arrow = [(px + size * (a * dx - b * dy), py - size * (a * dy + b * dx)) for a, b in corners]
        pygame.draw.polygon(surface, INK, arrow)
        pygame.draw.aalines(surface, LIGHT, True, arrow)
        pygame.draw.polygon(surface, theme.palette.good, arrow)

    def _draw_points(self, surface: pygame.Surface, view: View, theme: Theme, target: Target) -> None:
        document, accent = self._document, theme.palette.accent
        for index, handle in self._handles():
            px, py = view.to_screen(*handle)
            radius = theme.px(HANDLE_RADIUS + (target.kind == "width" and target.index == index))
            square = pygame.Rect(0, 0, 2 * radius, 2 * radius)
            square.center = round(px), round(py)
            pygame.draw.rect(surface, INK, square.inflate(2, 2))
            pygame.draw.rect(surface, accent, square)
        places = self._places()
        usual = theme.px(POINT_RADIUS)
        if len(places) > 2:
            apart = float(np.median(np.hypot(*np.diff(places, axis=0).T)))
            usual = max(theme.px(MIN_POINT_RADIUS), min(usual, round(POINT_SHARE * apart)))
        for index, (px, py) in enumerate(places.tolist()):
            hovered = target.kind == "point" and target.index == index
            radius = theme.px(POINT_RADIUS + 2) if hovered else usual
            pygame.draw.aacircle(surface, INK, (px, py), radius + max(1, usual // 3))
            pygame.draw.aacircle(surface, accent if index in document.selected else LIGHT, (px, py), radius)

    def _draw_problems(self, surface: pygame.Surface, view: View, theme: Theme, taken: Sequence[pygame.Rect]) -> None:
        """Mark the place of each problem, and write the reason beside it where there is room."""
        self.labels = []
        occupied, area = list(taken), surface.get_rect().inflate(-theme.px(8), -theme.px(8))
        for problem in self._document.problems:
            px, py = view.to_screen(problem.x, problem.y)
            centre = round(px), round(py)
            if not area.collidepoint(centre):
                centre = min(max(centre[0], area.left), area.right), min(max(centre[1], area.top), area.bottom)
            _draw_mark(surface, theme, centre)
            label = _label(theme, problem_text(problem))
            place = _free_place(label, centre, theme, occupied, area)
            if place is not None:
                surface.blit(label, place)
                occupied.append(place)
                self.labels.append((problem_text(problem), place))


def _label(theme: Theme, text: str) -> pygame.Surface:
    words = theme.text(text, TEXT_SMALL, theme.palette.text)
    label = theme.panel(words.get_width() + 2 * theme.px(PADDING * 0.7), words.get_height() + theme.px(PADDING * 0.7))
    bad = pygame.Rect(0, 0, theme.px(4), label.get_height())
    pygame.draw.rect(label, theme.palette.bad, bad, border_radius=theme.px(2))
    label.blit(words, words.get_rect(center=label.get_rect().center))
    return label


def _free_place(
    label: pygame.Surface, mark: tuple[int, int], theme: Theme, occupied: Sequence[pygame.Rect], area: pygame.Rect
) -> pygame.Rect | None:
    """Return a place beside a mark on which nothing else is; None if there is none."""
    off = theme.px(14)
    for column, row in LABEL_PLACES:
        place = label.get_rect()
        place.centerx = mark[0] + column * (off + place.width // 2)
        place.centery = mark[1] + row * (off // 2 + place.height // 2)
        if area.contains(place) and place.collidelist(list(occupied)) < 0:
            return place
    return None


def _draw_mark(surface: pygame.Surface, theme: Theme, centre: tuple[int, int]) -> None:
    """Draw a disc with an exclamation mark."""
    radius = theme.px(11)
    pygame.draw.aacircle(surface, LIGHT, centre, radius + theme.px(2))
    pygame.draw.aacircle(surface, theme.palette.bad, centre, radius)
    x, y = centre
    bar = pygame.Rect(0, 0, theme.px(3), theme.px(9))
    bar.midbottom = x, y + theme.px(2)
    pygame.draw.rect(surface, LIGHT, bar)
    bar.height = theme.px(3)
    bar.midtop = x, y + theme.px(4)
    pygame.draw.rect(surface, LIGHT, bar)


def _draw_cursor(surface: pygame.Surface, theme: Theme, place: tuple[int, int]) -> None:
    x, y = place
    near, far = theme.px(5), theme.px(16)
    for colour, width in ((INK, theme.px(4)), (LIGHT, theme.px(2))):
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            pygame.draw.line(surface, colour, (x + near * dx, y + near * dy), (x + far * dx, y + far * dy), width)


def _draw_grid(surface: pygame.Surface, view: View, theme: Theme) -> None:
    """Draw the lines that points snap to, or every fifth, tenth ... where these are too close."""
    step = next((each for each in GRID_STEPS if each * view.scale >= theme.px(MIN_GRID)), GRID_STEPS[-1])
    assert GRID_STEPS[0] == SNAP_STEP
    (left, bottom), (right, top) = view.bounds()
    layer = _grid_line(max(surface.get_size()))
    for number in range(math.ceil(left / step), math.floor(right / step) + 1):
        x = round(view.to_screen(number * step, 0.0)[0])
        surface.blit(layer, (x, 0), (0, 0, 2 if number % 5 == 0 else 1, surface.get_height()))
    for number in range(math.ceil(bottom / step), math.floor(top / step) + 1):
        y = round(view.to_screen(0.0, number * step)[1])
        surface.blit(layer, (0, y), (0, 0, surface.get_width(), 2 if number % 5 == 0 else 1))


_GRID_LINES: dict[int, pygame.Surface] = {}


def _grid_line(length: int) -> pygame.Surface:
    """Return a translucent square from which lines of the grid are cut."""
    if length not in _GRID_LINES:
        _GRID_LINES.clear()
        square = pygame.Surface((length, length), pygame.SRCALPHA, 32)
        square.fill((255, 255, 255, 34))
        _GRID_LINES[length] = square
    return _GRID_LINES[length]


def _draw_cars(surface: pygame.Surface, view: View, theme: Theme, cars: Swarm) -> None:
    """Draw the cars that learn as darts, from red for slow ones to green for good ones."""
    rows = cars.cars
    size = max(CAR_SIZE * view.scale, float(theme.px(MIN_CAR_SIZE)))
    places = view.points_to_screen(np.column_stack([rows["x"], rows["y"]]))
    palette = theme.palette
    good, bad = np.array(palette.good), np.array(palette.bad)
    for (px, py), heading, quality in zip(
        places.tolist(), rows["heading"].tolist(), rows["quality"].tolist(), strict=True
    ):
        share = min(1.0, max(0.0, quality))
        colour = tuple((bad + (good - bad) * share).astype(int).tolist())
        cos, sin = math.cos(heading), math.sin(heading)
        dart = [(px + size * (a * cos - b * sin), py - size * (a * sin + b * cos)) for a, b in _DART]
        pygame.draw.polygon(surface, colour, dart)
        pygame.draw.aalines(surface, INK, True, dart)


_DART = ((0.7, 0.0), (-0.5, 0.4), (-0.5, -0.4))
"""Corners of a dart in parts of a car's length."""
