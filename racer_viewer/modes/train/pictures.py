"""Swarm and curves of a run, each on a surface of its own that is drawn again when there is time for it."""

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
"""Number of cars that replay a policy after the run has ended."""
QUALITY_DECAY = 0.98
"""Factor of a car's moving average of quality, per tick."""
BEST_PROGRESS = 2.0
"""Progress per tick that counts as quality 1 [units]."""


class PolicySwarm:
    """Cars driven by one policy from random starts with sampled actions: a swarm for a run that has ended.

    number: index of the track among the run's tracks.
    """

    def __init__(self, track: Track, number: int, rewards: Config, count: int = CARS) -> None:
        self._simulation = Simulation(track, count, rewards, start=ANYWHERE, seed=1, auto_reset=True)
        self._random = np.random.default_rng(1)
        self._seen = self._simulation.result.observations
        self._quality, self._episode = np.full(count, 0.5), np.zeros(count, np.int64)
        self._length, self._number, self._tick = track.length, number, 0

    def step(self, agent: Agent) -> Swarm:
        """Advance all cars by one tick."""
        sampled = agent.noise_shape is not None
        result = self._simulation.step(agent.act(self._seen, deterministic=not sampled, rng=self._random))
        self._seen, self._tick = result.observations, self._tick + 1
        self._episode += result.terminated | result.truncated
        progress = result.components[:, PROGRESS] * self._length / max(1e-9, self._simulation.config.weights.progress)
        self._quality = QUALITY_DECAY * self._quality + (1.0 - QUALITY_DECAY) * np.clip(
            progress / BEST_PROGRESS, 0.0, 1.0
        )
        return self._swarm()

    def _swarm(self) -> Swarm:
        cars = self._simulation.cars
        rows = np.zeros(len(cars), SWARM_CAR)
        for name in ("x", "y", "heading", "speed", "lap", "wall_contact"):
            rows[name] = cars[name]
        rows["quality"], rows["episode"], rows["track"] = self._quality, self._episode, self._number
        return Swarm(self._tick, rows)


CURVES_INTERVAL = 1.0
"""Interval at which charts take new data [s]; drawing them is slow."""
MAX_FRAME_TIME = 0.007
"""Time in a frame after which swarm and curves are not drawn again [s],"""
MAX_SKIPPED = 3
"""and the maximum number of frames in a row in which that may happen."""


@dataclass(frozen=True, eq=False)
class TrainPictureState:
    """Input for the pictures of one frame.

    circuit: ID of the circuit.
    number: its index among the run's circuits.
    mouse: position of the mouse in the window [px].
    at: steps of the time that is shown; None is now.
    """

    track: Track
    circuit: str
    number: int
    runs: Sequence[RunHistory]
    mouse: tuple[int, int] | None
    smoothing: float
    at: float | None


class TrainPictures:
    """Pictures of swarm and curves. Where both are visible they take turns: 30 frames per second are enough for each.

    patient: draw both in every frame, for films.
    """

    def __init__(self, app: AppContext, patient: bool = False) -> None:
        self._app, self._patient = app, patient
        self._swarm, self._curves = SwarmScene(app.theme, patient), CurvesView(app.theme, patient)
        self._pictures: dict[TrainLayout, pygame.Surface] = {}
        self._runs: Sequence[RunHistory] = ()
        self._runs_since = 0.0
        self._began, self._skipped, self._turn = 0.0, 0, TrainLayout.CURVES

    def prepare(self, track: Track, size: tuple[int, int]) -> None:
        """Prepare the ground of the swarm for a pane of this size."""
        self._swarm.prepare(track, size[1], width=size[0])

    def tick(self, cars: Swarm | None) -> None:
        self._swarm.tick(cars)

    def reset_cars(self) -> None:
        """Forget the cars: other cars drive from now on."""
        self._swarm.reset()

    def steps_at(self, x: int, y: int) -> float | None:
        """Return the steps at a pixel of the curves; None outside the charts."""
        return self._curves.chart_at(x, y)

    @property
    def charts(self) -> Sequence[str]:
        """Names of the charts drawn last."""
        return self._curves.names

    def draw_ahead(self, visible: Collection[TrainLayout]) -> bool:
        """Use spare time to prepare a visible picture; return False if there is nothing to do."""
        swarm = TrainLayout.SWARM in visible and self._swarm.draw_ahead()
        return swarm or (TrainLayout.CURVES in visible and self._curves.draw_ahead())

    def begin(self) -> None:
        """Note the start of a frame."""
        self._began = time.perf_counter()

    def draw(self, surface: pygame.Surface, panes: dict[TrainLayout, pygame.Rect], state: TrainPictureState) -> None:
        """Draw the visible pictures in their panes."""
        visible = [pane for pane in panes if pane is not TrainLayout.SHOWCASE]
        due = self._choose(visible)
        for pane in visible:
            place = panes[pane]
            picture = self._pictures.get(pane)
            if picture is None or picture.get_size() != place.size:
                picture = self._pictures[pane] = pygame.Surface(place.size, depth=32)
                self.redraw(pane, picture, place, state)
            elif pane in due:
                self.redraw(pane, picture, place, state)
            surface.blit(picture, place)

    def _choose(self, visible: Sequence[TrainLayout]) -> Collection[TrainLayout]:
        """Return the panes whose pictures are drawn again in this frame."""
        if self._patient or len(visible) < 2:
            return visible
        if time.perf_counter() - self._began > MAX_FRAME_TIME and self._skipped < MAX_SKIPPED:
            self._skipped += 1
            return ()
        self._skipped = 0
        self._turn = TrainLayout.CURVES if self._turn is TrainLayout.SWARM else TrainLayout.SWARM
        return (self._turn,)

    def redraw(self, pane: TrainLayout, picture: pygame.Surface, place: pygame.Rect, state: TrainPictureState) -> None:
        """Draw the picture of a pane again."""
        theme = self._app.theme
        if pane is TrainLayout.SWARM:
            self._swarm.use(theme)
            self._swarm.draw(picture, state.track, number=state.number)
            return
        if self._curves.theme is not theme:
            self._curves = CurvesView(theme, self._patient)
        picture.fill(theme.palette.panel[:3])
        mouse = None if state.mouse is None else (state.mouse[0] - place.x, state.mouse[1] - place.y)
        runs = self._runs_to_draw(state)
        self._curves.draw(picture, picture.get_rect(), runs, mouse, state.smoothing, state.at, state.circuit)

    def _runs_to_draw(self, state: TrainPictureState) -> Sequence[RunHistory]:
        now = time.monotonic()
        if self._patient or now - self._runs_since > CURVES_INTERVAL:
            self._runs, self._runs_since = state.runs, now
        return self._runs
