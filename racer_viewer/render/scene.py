"""Scene: ground, skid marks, cars, rays and gates of a snapshot, seen by a camera. Panels are drawn elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pygame

from racer_env.engine import Track
from racer_viewer.render.camera import REFERENCE_HEIGHT, REST_SCALE, Camera, View
from racer_viewer.render.car import CarSprites, visible
from racer_viewer.render.effects import Effects
from racer_viewer.render.labels import GateLines, NameTags
from racer_viewer.render.rays import RayFan
from racer_viewer.render.tiles import GroundLevels
from racer_viewer.snapshot import Cars, Snapshot, cars_between
from racer_viewer.ui.theme import Theme


@dataclass(frozen=True)
class SceneOptions:
    """Optional layers besides ground and cars."""

    rays: bool = True
    gates: bool = False
    names: bool = True


ALL_BUT_GATES = SceneOptions()
STEADY_FRAMES = 20
"""Number of frames after which a new window height counts as final."""


class Scene:
    """Renderer of the world between two snapshots; animations advance once per tick.

    patient: draw every frame in full, for screenshots and films; otherwise keeping the frame rate has priority.
    """

    def __init__(self, theme: Theme, patient: bool = False) -> None:
        self.camera = Camera()
        self.effects = Effects()
        self.patient, self._theme = patient, theme
        self.ground: GroundLevels | None = None
        self._cars = CarSprites()
        self._rays, self._gates, self._names = RayFan(theme), GateLines(theme), NameTags(theme)
        self.on_layer: Callable[[str], None] = lambda name: None
        """Callback after each drawn layer, for benchmarks."""
        self._steady, self._height = 0, 0
        """Number of frames for which the window has had this height."""
        self._ticked = False
        self._last: tuple[View, Cars] | None = None

    def use(self, theme: Theme) -> None:
        """Change the theme."""
        if theme is not self._theme:
            self._theme = theme
            self._rays, self._gates, self._names = RayFan(theme), GateLines(theme), NameTags(theme)

    def prepare(self, track: Track, height: int = REFERENCE_HEIGHT) -> None:
        """Build the ground of a track for a window of this height, about 0.1 s; otherwise the first frame does it."""
        self._ground_of(track, height)

    def tick(self, snapshot: Snapshot) -> None:
        """Advance by one simulation tick."""
        self._ticked = True
        self.effects.tick(snapshot)
        self.camera.tick(snapshot)

    def draw(
        self,
        surface: pygame.Surface,
        before: Snapshot,
        after: Snapshot,
        share: float,
        options: SceneOptions = ALL_BUT_GATES,
    ) -> None:
        """Draw the world between the last two ticks; share 0 is `before` and 1 is `after`, which may be the same."""
        if not self._ticked:
            self.tick(after)
        share = 1.0 if before is after else share
        cars, focus = cars_between(before, after, share), after.focus
        followed = cars[focus]
        view = self.camera.look(surface.get_size(), share, (float(followed["x"]), float(followed["y"])))
        self._ground_of(after.track, surface.get_height()).draw(surface, view, self.patient)
        self.on_layer("ground")
        self.effects.draw_marks(surface, view)
        self.on_layer("marks")
        if options.gates:
            self._gates.draw(surface, view, after.track, int(followed["checkpoint"]))
            self.on_layer("gates")
        if options.rays and not after.styles[focus].ghost:
            self._rays.draw(surface, view, followed)
            self.on_layer("rays")
        self.effects.draw_dust(surface, view, share)
        self._cars.draw_others(surface, view, cars, after.styles, focus)
        self._cars.draw_followed(surface, view, followed, after.styles[focus])
        self.on_layer("cars and dust")
        self.effects.draw_sparks(surface, view, share)
        if options.names:
            self._names.draw(surface, view, cars, after.styles, visible(view, cars, focus), focus)
        self.on_layer("sparks and names")
        self._last = view, cars

    def draw_ahead(self) -> bool:
        """Prepare a part of the ground beyond the view, about 1 ms; return False if there is nothing to prepare.

        Call it when a frame has time left, so that later frames do not need it.
        """
        return self.ground is not None and self.ground.draw_ahead(self.camera.view)

    def car_on_screen(self, number: int) -> tuple[float, float]:
        """Return the centre of a car in the last picture [px]."""
        if self._last is None:
            raise LookupError("nothing was drawn yet")
        view, cars = self._last
        return view.to_screen(float(cars["x"][number]), float(cars["y"][number]))

    def _ground_of(self, track: Track, height: int = REFERENCE_HEIGHT) -> GroundLevels:
        """Return the ground for windows of this height; while a window is resized, existing tiles are rescaled."""
        base = REST_SCALE * height / REFERENCE_HEIGHT
        self._steady = self._steady + 1 if height == self._height else 0
        self._height = height
        ground = self.ground
        if ground is None or ground.track is not track:
            self.ground = ground = GroundLevels(track, base)
        elif ground.base != base and (self._steady >= STEADY_FRAMES or self.patient):
            self.ground = ground = GroundLevels(track, base, ground.plan)
        return ground
