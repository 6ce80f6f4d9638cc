"""Swarm and curves of a training, each on a surface of its own that is drawn anew when there is time for it."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pygame

from racer_env.engine import Track
from racer_viewer.curves import Curves, Swarm
from racer_viewer.modes.screen import Stage
from racer_viewer.modes.train.layout import Layout
from racer_viewer.render.plots import CurvesView
from racer_viewer.render.swarm import SwarmScene

CURVES_SECONDS = 1.0
"""Charts show what was so long ago at most: they take their time to draw, and nobody reads faster."""
BUSY_SECONDS = 0.007
"""A picture that has taken so long already leaves swarm and curves as they are,"""
MOST_LEFT = 3
"""but not so many pictures after each other."""


@dataclass(frozen=True, eq=False)
class Sight:
    """What there is to see of a run now.

    circuit, number: its name, and its place among those of the run. mouse: where it is in the window [px].
    at: steps of the moment that is shown, None is now.
    """

    track: Track
    circuit: str
    number: int
    runs: Sequence[Curves]
    mouse: tuple[int, int] | None
    smoothing: float
    at: float | None


class TrainPictures:
    """Beside the showcase, swarm and curves take turns: neither is smoother at 60 pictures a second than at 30.

    patient: everything is drawn in every picture, for films.
    """

    def __init__(self, app: Stage, patient: bool = False) -> None:
        self._app, self._patient = app, patient
        self._swarm, self._curves = SwarmScene(app.theme, patient), CurvesView(app.theme, patient)
        self._pictures: dict[Layout, pygame.Surface] = {}
        self._runs: Sequence[Curves] = ()
        self._runs_since = 0.0
        self._began, self._left, self._turn = 0.0, 0, Layout.CURVES

    def prepare(self, track: Track, size: tuple[int, int]) -> None:
        """The ground of the swarm, for a part of the window of this size."""
        self._swarm.prepare(track, size[1], width=size[0])

    def tick(self, cars: Swarm | None) -> None:
        self._swarm.tick(cars)

    def forget_cars(self) -> None:
        """Others drive from now on."""
        self._swarm.reset()

    def steps_at(self, x: int, y: int) -> float | None:
        """Of the moment at a pixel of the curves."""
        return self._curves.chart_at(x, y)

    def draw_ahead(self, shown: Collection[Layout]) -> bool:
        """There is time before the next picture: prepare a little of what is shown."""
        swarm = Layout.SWARM in shown and self._swarm.draw_ahead()
        return swarm or (Layout.CURVES in shown and self._curves.draw_ahead())

    def begin(self) -> None:
        """A picture of the window begins now."""
        self._began = time.perf_counter()

    def draw(self, surface: pygame.Surface, places: dict[Layout, pygame.Rect], sight: Sight) -> None:
        """What is shown of swarm and curves, at its places."""
        parts = [part for part in places if part is not Layout.SHOWCASE]
        due = self._choose(parts)
        for part in parts:
            place = places[part]
            picture = self._pictures.get(part)
            if picture is None or picture.get_size() != place.size:
                picture = self._pictures[part] = pygame.Surface(place.size, depth=32)
                self._draw_anew(part, picture, place, sight)
            elif part in due:
                self._draw_anew(part, picture, place, sight)
            surface.blit(picture, place)

    def _choose(self, parts: Sequence[Layout]) -> Collection[Layout]:
        """Those that are drawn anew in this picture."""
        if self._patient or len(parts) < 2:
            return parts
        if time.perf_counter() - self._began > BUSY_SECONDS and self._left < MOST_LEFT:
            self._left += 1
            return ()
        self._left = 0
        self._turn = Layout.CURVES if self._turn is Layout.SWARM else Layout.SWARM
        return (self._turn,)

    def _draw_anew(self, part: Layout, picture: pygame.Surface, place: pygame.Rect, sight: Sight) -> None:
        theme = self._app.theme
        if part is Layout.SWARM:
            self._swarm.use(theme)
            self._swarm.draw(picture, sight.track, number=sight.number)
            return
        if self._curves.theme is not theme:
            self._curves = CurvesView(theme, self._patient)
        picture.fill(theme.palette.panel[:3])
        mouse = None if sight.mouse is None else (sight.mouse[0] - place.x, sight.mouse[1] - place.y)
        runs = self._runs_to_draw(sight)
        self._curves.draw(picture, picture.get_rect(), runs, mouse, sight.smoothing, sight.at, sight.circuit)

    def _runs_to_draw(self, sight: Sight) -> Sequence[Curves]:
        now = time.monotonic()
        if self._patient or now - self._runs_since > CURVES_SECONDS:
            self._runs, self._runs_since = sight.runs, now
        return self._runs
