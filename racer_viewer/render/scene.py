"""Scene: ground, skid marks, cars, rays and gates of a snapshot, seen by a camera. Panels are drawn elsewhere.

Where drawing takes too long, the ground with its skid marks is drawn at half the resolution and enlarged; everything
above it is always sharp.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from racer_viewer.render.turned_ground import TurnedGround


@dataclass(frozen=True)
class SceneOptions:
    """Optional layers besides ground and cars."""

    rays: bool = True
    gates: bool = False
    names: bool = True


ALL_BUT_GATES = SceneOptions()
STEADY_FRAMES = 20
"""Number of frames after which a new window height counts as final."""
SLOW_FRAME, OBSERVED_FRAMES = 0.010, 60
"""Drawing time above which a frame is slow [s], and the number of frames whose median decides."""


class Scene:
    """Renderer of the world between two snapshots; animations advance once per tick.

    patient: draw every frame in full, for screenshots and films; otherwise keeping the frame rate has priority.
    """

    def __init__(self, theme: Theme, patient: bool = False) -> None:
        self.camera = Camera()
        self.effects = Effects()
        self.patient, self._theme = patient, theme
        self.ground: GroundLevels | None = None
        self._turned: TurnedGround | None = None
        self._cars = CarSprites()
        self._rays, self._gates, self._names = RayFan(theme), GateLines(theme), NameTags(theme)
        self.on_layer: Callable[[str], None] = lambda name: None
        """Callback after each drawn layer, for benchmarks."""
        self.resolution = "auto"
        """Resolution of the ground: "full", "half", or "auto", which is half where drawing is slow."""
        self._half = False
        """True while the ground is drawn at half resolution."""
        self._decided_for: tuple[object, ...] = ()
        """Window size and resolution for which that was decided."""
        self._times: list[float] = []
        self._small = pygame.Surface((1, 1), depth=32)
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
        begin = time.perf_counter()
        self._draw_ground(surface, view, after.track)
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
        self._observe(time.perf_counter() - begin)

    def draw_ahead(self) -> bool:
        """Prepare a part of the ground beyond the view, about 1 ms; return False if there is nothing to prepare.

        Call it when a frame has time left, so that later frames do not need it.
        """
        view, ground = _halved(self.camera.view) if self._half else self.camera.view, self.ground
        if ground is not None and view.turn and self._turned is not None:
            view = self._turned.flat_view(view, ground)
        return ground is not None and ground.draw_ahead(view)

    def car_on_screen(self, number: int) -> tuple[float, float]:
        """Return the centre of a car in the last picture [px]."""
        if self._last is None:
            raise LookupError("nothing was drawn yet")
        view, cars = self._last
        return view.to_screen(float(cars["x"][number]), float(cars["y"][number]))

    def _draw_ground(self, surface: pygame.Surface, view: View, track: Track) -> None:
        """Draw ground and skid marks."""
        if (view.size, self.resolution) != self._decided_for:
            self._decided_for = view.size, self.resolution
            self._half, self._times = self.resolution == "half" and not self.patient, []
        target, seen = surface, view
        if self._half:
            seen = _halved(view)
            if self._small.get_size() != seen.size:
                self._small = pygame.Surface(seen.size, depth=32)
            target = self._small
        ground = self._ground_of(track, view.size[1])
        if view.turn:
            self._turned_ground().draw(target, seen, ground, self.patient)
        else:
            ground.draw(target, seen, self.patient)
        self.on_layer("ground")
        self.effects.draw_marks(target, seen)
        self.on_layer("marks")
        if self._half:
            _enlarge(target, surface)
            self.on_layer("enlarging")

    def _observe(self, seconds: float) -> None:
        """Record the drawing time of a frame; if most frames are slow, use half resolution until the size changes.

        Frames with missing ground take longer for a moment and are not counted.
        """
        if self._half or self.patient or self.resolution != "auto" or self.ground is None or not self.ground.complete:
            return
        self._times.append(seconds)
        if len(self._times) >= OBSERVED_FRAMES:
            self._half, self._times = statistics.median(self._times) > SLOW_FRAME, []

    def _turned_ground(self) -> TurnedGround:
        """Return the renderer of turned ground, made when it is needed first."""
        if self._turned is None:
            from racer_viewer.render.turned_ground import TurnedGround

            self._turned = TurnedGround()
        return self._turned

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


def _halved(view: View) -> View:
    """Return the same view in a picture of half the width and height."""
    width, height = view.size
    return replace(view, scale=view.scale / 2.0, size=((width + 1) // 2, (height + 1) // 2))


def _enlarge(picture: pygame.Surface, surface: pygame.Surface) -> None:
    """Cover a surface with a picture of half its width and height; to smooth it would take three times as long."""
    pygame.transform.scale(picture, surface.get_size(), surface)
