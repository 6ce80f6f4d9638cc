"""Many cars driven by one policy: what a moment of a training looked like, after it is over.

Swarm and curves of a training, each on a surface of its own that is drawn anew when there is time for it."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pygame

from racer_env.engine import ANYWHERE, Config, Simulation, Track
from racer_env.engine.rewards import PROGRESS
from racer_viewer.agents import Agent
from racer_viewer.modes.screen import AppContext
from racer_viewer.modes.train.panels import TrainLayout
from racer_viewer.render.plots import CurvesView
from racer_viewer.render.swarm import SwarmScene
from racer_viewer.run_history import SWARM_CAR, RunHistory, Swarm

CARS = 48
FADING = 0.98
"""Of a car's quality, what is left of it a tick later; the rest is how it does in that tick."""
BRISK = 2.0
"""Way in a tick that is as good as it gets [units]."""


class PolicySwarm:
    """Cars that begin anywhere, with actions that are drawn as in training.

    number: of the track among those of the run.
    """

    def __init__(self, track: Track, number: int, rewards: Config, count: int = CARS) -> None:
        self._simulation = Simulation(track, count, rewards, start=ANYWHERE, seed=1, auto_reset=True)
        self._random = np.random.default_rng(1)
        self._seen = self._simulation.result.observations
        self._quality, self._episode = np.full(count, 0.5), np.zeros(count, np.int64)
        self._length, self._number, self._tick = track.length, number, 0

    def step(self, agent: Agent) -> Swarm:
        """One tick of all of them."""
        drawn = agent.noise_shape is not None
        result = self._simulation.step(agent.act(self._seen, deterministic=not drawn, rng=self._random))
        self._seen, self._tick = result.observations, self._tick + 1
        self._episode += result.terminated | result.truncated
        way = result.components[:, PROGRESS] * self._length / max(1e-9, self._simulation.config.weights.progress)
        self._quality = FADING * self._quality + (1.0 - FADING) * np.clip(way / BRISK, 0.0, 1.0)
        return self._swarm()

    def _swarm(self) -> Swarm:
        cars = self._simulation.cars
        rows = np.zeros(len(cars), SWARM_CAR)
        for name in ("x", "y", "heading", "speed", "lap"):
            rows[name] = cars[name]
        rows["quality"], rows["episode"], rows["track"] = self._quality, self._episode, self._number
        return Swarm(self._tick, rows)


CURVES_SECONDS = 1.0
"""Charts show what was so long ago at most: they take their time to draw, and nobody reads faster."""
BUSY_SECONDS = 0.007
"""A picture that has taken so long already leaves swarm and curves as they are,"""
MOST_LEFT = 3
"""but not so many pictures after each other."""


@dataclass(frozen=True, eq=False)
class TrainPictureState:
    """What there is to see of a run now.

    circuit, number: its name, and its place among those of the run. mouse: where it is in the window [px].
    at: steps of the moment that is shown, None is now.
    """

    track: Track
    circuit: str
    number: int
    runs: Sequence[RunHistory]
    mouse: tuple[int, int] | None
    smoothing: float
    at: float | None


class TrainPictures:
    """Beside the showcase, swarm and curves take turns: neither is smoother at 60 pictures a second than at 30.

    patient: everything is drawn in every picture, for films.
    """

    def __init__(self, app: AppContext, patient: bool = False) -> None:
        self._app, self._patient = app, patient
        self._swarm, self._curves = SwarmScene(app.theme, patient), CurvesView(app.theme, patient)
        self._pictures: dict[TrainLayout, pygame.Surface] = {}
        self._runs: Sequence[RunHistory] = ()
        self._runs_since = 0.0
        self._began, self._left, self._turn = 0.0, 0, TrainLayout.CURVES

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

    def draw_ahead(self, shown: Collection[TrainLayout]) -> bool:
        """There is time before the next picture: prepare a little of what is shown."""
        swarm = TrainLayout.SWARM in shown and self._swarm.draw_ahead()
        return swarm or (TrainLayout.CURVES in shown and self._curves.draw_ahead())

    def begin(self) -> None:
        """A picture of the window begins now."""
        self._began = time.perf_counter()

    def draw(self, surface: pygame.Surface, places: dict[TrainLayout, pygame.Rect], sight: TrainPictureState) -> None:
        """What is shown of swarm and curves, at its places."""
        parts = [part for part in places if part is not TrainLayout.SHOWCASE]
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

    def _choose(self, parts: Sequence[TrainLayout]) -> Collection[TrainLayout]:
        """Those that are drawn anew in this picture."""
        if self._patient or len(parts) < 2:
            return parts
        if time.perf_counter() - self._began > BUSY_SECONDS and self._left < MOST_LEFT:
            self._left += 1
            return ()
        self._left = 0
        self._turn = TrainLayout.CURVES if self._turn is TrainLayout.SWARM else TrainLayout.SWARM
        return (self._turn,)

    def _draw_anew(
        self, part: TrainLayout, picture: pygame.Surface, place: pygame.Rect, sight: TrainPictureState
    ) -> None:
        theme = self._app.theme
        if part is TrainLayout.SWARM:
            self._swarm.use(theme)
            self._swarm.draw(picture, sight.track, number=sight.number)
            return
        if self._curves.theme is not theme:
            self._curves = CurvesView(theme, self._patient)
        picture.fill(theme.palette.panel[:3])
        mouse = None if sight.mouse is None else (sight.mouse[0] - place.x, sight.mouse[1] - place.y)
        runs = self._runs_to_draw(sight)
        self._curves.draw(picture, picture.get_rect(), runs, mouse, sight.smoothing, sight.at, sight.circuit)

    def _runs_to_draw(self, sight: TrainPictureState) -> Sequence[RunHistory]:
        now = time.monotonic()
        if self._patient or now - self._runs_since > CURVES_SECONDS:
            self._runs, self._runs_since = sight.runs, now
        return self._runs
