"""Ground for a view that mostly stands still: drawn once, tile by tile, and cached as a whole."""

from __future__ import annotations

import pygame

from racer_env.engine import Track
from racer_viewer.render.camera import View
from racer_viewer.render.ground import GroundPlan
from racer_viewer.render.tiles import GroundLevels

STEADY_PICTURES = 20
"""Number of pictures after which a view counts as final and its ground is drawn exactly."""
MAX_PICTURES = 4
"""Maximum number of finished grounds, for switching between layouts."""
UNDIMMED = (255, 255, 255)
Brightness = tuple[int, int, int]


class SteadyGround:
    """Ground of one track, or of a meadow without one.

    plan: plan of the track, if it is known already.
    brightness: factors of red, green and blue, of 255.
    patient: complete every picture, for films; otherwise keeping the frame rate has priority.
    """

    def __init__(
        self,
        track: Track | None,
        plan: GroundPlan | None = None,
        brightness: Brightness = UNDIMMED,
        patient: bool = False,
    ) -> None:
        self.track = track
        self._first_plan, self._brightness, self._patient = plan, brightness, patient
        self._finished: dict[View, pygame.Surface] = {}
        self._unfinished = pygame.Surface((1, 1), depth=32)
        self._ground: GroundLevels | None = None
        self._coming: GroundLevels | None = None
        self._view: View | None = None
        self._steady = 0

    def is_complete(self, view: View) -> bool:
        """Return whether the picture of a view is finished."""
        return view in self._finished

    def prepare(self, view: View) -> None:
        """Complete a view, about 0.2 s."""
        if view not in self._finished:
            self._ground = GroundLevels(self.track, view.scale, self._plan)
            self._finish(view)

    def picture(self, view: View) -> pygame.Surface:
        """Return the picture of a view; it is shared, and an unfinished one changes."""
        self._steady = self._steady + 1 if view == self._view else 0
        self._view = view
        if self._patient:
            self.prepare(view)
        elif view not in self._finished:
            self._go_on(view)
        return self._finished.get(view) or self._unfinished

    def draw_ahead(self) -> bool:
        """Draw a part of what the last view lacks, about 2 ms; return False if it is complete."""
        view = self._view
        if view is None or view in self._finished or self._coming is None or self._coming.base != view.scale:
            return False
        if self._coming.draw_ahead(view):
            return True
        self._ground = self._coming
        self._finish(view)
        return False

    @property
    def _plan(self) -> GroundPlan | None:
        return self._ground.plan if self._ground else self._first_plan

    def _go_on(self, view: View) -> None:
        """Continue drawing the exact ground; until it is complete, existing tiles are scaled."""
        if self._ground is None:
            self._ground = self._coming = GroundLevels(self.track, view.scale, self._plan)
        elif self._steady >= STEADY_PICTURES and (self._coming is None or self._coming.base != view.scale):
            self._coming = GroundLevels(self.track, view.scale, self._plan)
        self.draw_ahead()
        if view not in self._finished:
            if self._unfinished.get_size() != view.size:
                self._unfinished = pygame.Surface(view.size, depth=32)
            self._ground.draw(self._unfinished, view)
            self._dim(self._unfinished)

    def _finish(self, view: View) -> None:
        assert self._ground is not None
        while len(self._finished) >= MAX_PICTURES:
            del self._finished[next(iter(self._finished))]
        picture = pygame.Surface(view.size, depth=32)
        self._ground.draw(picture, view, patient=True)
        self._dim(picture)
        self._finished[view] = picture

    def _dim(self, picture: pygame.Surface) -> None:
        if self._brightness != UNDIMMED:
            picture.fill(self._brightness, special_flags=pygame.BLEND_RGB_MULT)
