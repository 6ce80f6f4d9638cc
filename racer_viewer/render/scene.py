"""The world as a snapshot has it: ground, marks, cars, rays and gates, seen by a camera. No panels."""

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
    """What is drawn besides ground and cars."""

    rays: bool = True
    gates: bool = False
    names: bool = True


ALL_BUT_GATES = SceneOptions()
STEADY_FRAMES = 20
"""After which a window is taken to have its size."""


class Scene:
    """Draws moments between snapshots; what moves by itself moves once per tick.

    patient: every frame is drawn in full, for pictures and films, where a window prefers to be in time.
    """

    def __init__(self, theme: Theme, patient: bool = False) -> None:
        self.camera = Camera()
        self.effects = Effects()
        self._patient, self._theme = patient, theme
        self._ground: GroundLevels | None = None
        self._cars = CarSprites()
        self._rays, self._gates, self._names = RayFan(theme), GateLines(theme), NameTags(theme)
        self.on_layer: Callable[[str], None] = lambda name: None
        """Told when a layer was drawn: for those who measure."""
        self._steady, self._height = 0, 0
        """For how many frames the window has had this height."""
        self._ticked = False
        self._last: tuple[View, Cars] | None = None

    def use(self, theme: Theme) -> None:
        """Other letters and colours from now on."""
        if theme is not self._theme:
            self._theme = theme
            self._rays, self._gates, self._names = RayFan(theme), GateLines(theme), NameTags(theme)

    def prepare(self, track: Track, height: int = REFERENCE_HEIGHT) -> None:
        """Build what a track is drawn from in a window of this height, some 0.1 s; else the first frame does it."""
        self._ground_of(track, height)

    def tick(self, snapshot: Snapshot) -> None:
        """Once per tick of the simulation."""
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
        """The moment between the last two ticks, 0 is `before` and 1 is `after`; they may be the same."""
        if not self._ticked:
            self.tick(after)
        share = 1.0 if before is after else share
        cars, focus = cars_between(before, after, share), after.focus
        followed = cars[focus]
        view = self.camera.look(surface.get_size(), share, (float(followed["x"]), float(followed["y"])))
        self._ground_of(after.track, surface.get_height()).draw(surface, view, self._patient)
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
        """Prepare a little of the ground beyond the view, about 1 ms; False if there is nothing to prepare.

        To be called when a frame has time left, so that no later one needs it.
        """
        return self._ground is not None and self._ground.draw_ahead(self.camera.view)

    def car_on_screen(self, number: int) -> tuple[float, float]:
        """Where the middle of a car was in the last picture [px]."""
        if self._last is None:
            raise LookupError("nothing was drawn yet")
        view, cars = self._last
        return view.to_screen(float(cars["x"][number]), float(cars["y"][number]))

    def _ground_of(self, track: Track, height: int = REFERENCE_HEIGHT) -> GroundLevels:
        """For windows of this height. While one is dragged larger or smaller, what there is is scaled."""
        base = REST_SCALE * height / REFERENCE_HEIGHT
        self._steady = self._steady + 1 if height == self._height else 0
        self._height = height
        ground = self._ground
        if ground is None or ground.track is not track:
            self._ground = ground = GroundLevels(track, base)
        elif ground.base != base and (self._steady >= STEADY_FRAMES or self._patient):
            self._ground = ground = GroundLevels(track, base, ground.plan)
        return ground
