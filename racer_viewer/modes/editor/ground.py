"""Ground of the editor: a road that is drawn at once while it changes, and exactly as in a race when it rests."""

from __future__ import annotations

import pygame

from racer_env.engine import Track
from racer_viewer.circuits.draft import Point
from racer_viewer.circuits.preview import Preview
from racer_viewer.modes.waiting import BackgroundTask
from racer_viewer.render.camera import View
from racer_viewer.render.ground import GroundPlan
from racer_viewer.render.road import Layer, build_course, layers
from racer_viewer.render.steady_ground import SteadyGround
from racer_viewer.render.tiles import GroundLevels

REST_FRAMES = 12
"""Number of frames without a change after which the exact ground is made."""
QUICK_PIECE = 10.0
"""Smallest length of a straight piece of road while it changes [px]."""
MAX_SCALE_ERROR = 1.5
"""Factor between the scales of view and exact ground from which it is made again for the view."""

Shape = tuple[tuple[Point, ...], int]
"""Inputs of the ground: control points and number of gates."""


class EditorGround:
    """Meadow, and the road of a preview on it.

    The exact ground is planned in the background and drawn in spare time. Until it is complete, and while the circuit
    changes, only the polygons of the road are drawn, which takes some milliseconds.
    """

    def __init__(self) -> None:
        self._meadow = SteadyGround(None)
        self._quick: tuple[Shape, float, list[Layer]] | None = None
        self._shape: Shape = ((), 0)
        self._rest, self._scale = 0, 1.0
        self._exact: GroundLevels | None = None
        self._exact_shape: Shape = ((), 0)
        self._is_ready = False
        """True if the exact ground has covered a view since it was made."""
        self._plan: BackgroundTask[GroundLevels] | None = None
        self._planned: tuple[Shape, float] = ((), 0), 1.0
        """Circuit that was planned last, and its scale."""
        self._view: View | None = None
        self._drew_ahead = self._began = False

    @property
    def is_exact(self) -> bool:
        """True if the picture drawn last is as in a race."""
        return self._is_ready and self._exact_shape == self._shape

    def draw(self, surface: pygame.Surface, view: View, shown: Preview) -> None:
        """Cover a surface."""
        shape = shown.draft.points, shown.draft.gates
        self._rest = self._rest + 1 if shape == self._shape and view.scale == self._scale else 0
        self._shape, self._scale, self._view = shape, view.scale, view
        self._take_plan()
        self._make_plan(shown.track, view)
        if not self._drew_ahead:
            self._draw_part()
        self._drew_ahead = False
        if self.is_exact and self._exact is not None:
            self._exact.draw(surface, view)
            return
        if not self._rest and not self._began:
            self._began = True
            self._meadow.prepare(view)
        surface.blit(self._meadow.picture(view), (0, 0))
        if shown.track is not None:
            _draw_layers(surface, view, self._layers(shape, shown.track, QUICK_PIECE / view.scale))

    def draw_ahead(self) -> bool:
        """Use spare time to draw a part of the exact ground; return False if nothing is left to do."""
        self._drew_ahead = True
        return self._draw_part()

    def _draw_part(self) -> bool:
        if self._view is None:
            return False
        if self._exact is None or self._exact_shape != self._shape:
            return self._meadow.draw_ahead()
        left = self._exact.draw_ahead(self._view)
        self._is_ready = self._is_ready or not self._exact.cover(self._view).missing
        return left

    def _make_plan(self, track: Track | None, view: View) -> None:
        """Plan the exact ground in the background if the circuit rests."""
        if track is None or self._rest < REST_FRAMES or self._plan is not None:
            return
        shape, scale = self._planned
        if shape == self._shape and 1.0 / MAX_SCALE_ERROR < view.scale / scale < MAX_SCALE_ERROR:
            return
        self._planned = self._shape, view.scale
        base = view.scale
        self._plan = BackgroundTask(lambda: GroundLevels(track, base, GroundPlan(track)), "racer-editor-ground")

    def _take_plan(self) -> None:
        if self._plan is None or not self._plan.done:
            return
        plan, self._plan = self._plan, None
        self._exact, self._exact_shape, self._is_ready = plan.result(), self._planned[0], False

    def _layers(self, shape: Shape, track: Track, piece: float) -> list[Layer]:
        """Return the layers of the road, from a cache while neither circuit nor scale change."""
        if self._quick is None or self._quick[:2] != (shape, piece):
            course = build_course(track, worn=False)
            self._quick = shape, piece, layers(course.thinned(max(piece, course.piece)))
        return self._quick[2]


def _draw_layers(surface: pygame.Surface, view: View, found: list[Layer]) -> None:
    """Draw polygons without smoothing their edges."""
    width, height = view.size
    for corners, colours in found:
        if not len(corners):
            continue
        points = view.points_to_screen(corners)
        low, high = points.min(axis=1), points.max(axis=1)
        seen = (high[:, 0] > 0) & (high[:, 1] > 0) & (low[:, 0] < width) & (low[:, 1] < height)
        for number, polygon in zip(seen.nonzero()[0].tolist(), points[seen].tolist(), strict=True):
            if len(colours[number]) == 3:  # translucent shadows would need a surface each
                pygame.draw.polygon(surface, colours[number], polygon)
