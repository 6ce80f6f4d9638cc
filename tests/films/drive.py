"""Frames of a drive, and pictures of them that are drawn without a film."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import Simulation, load_circuit
from racer_viewer.agents import CHAMPION, load_agent
from racer_viewer.films.maker import FilmLook
from racer_viewer.render.camera import Insets
from racer_viewer.render.overlays import Overlays
from racer_viewer.render.scene import Scene, SceneOptions
from racer_viewer.snapshot import CarStyle, InterpolatedFrame, Snapshot
from racer_viewer.timing import Timing
from racer_viewer.ui.theme import ORDINARY, Theme, fitting_scale

Pixels = NDArray[np.uint8]
"""Rows, columns, colours."""


def drive(count: int) -> list[InterpolatedFrame]:
    """Return frames of the champion's drive from the start, one tick apart."""
    agent, simulation = load_agent(CHAMPION), Simulation(load_circuit("track-01"))
    after = _snapshot(simulation)
    driven = [InterpolatedFrame(after, after)]
    for _ in range(count - 1):
        simulation.step(agent.act(simulation.result.observations))
        before, after = after, _snapshot(simulation)
        driven.append(InterpolatedFrame(before, after))
    return driven


def _snapshot(simulation: Simulation) -> Snapshot:
    car = simulation.cars[0]
    timing = Timing(int(car.lap), int(car.lap_ticks), int(car.last_lap_ticks) or None, None, None)
    seen = simulation.result.observations[0].copy()
    return Snapshot(
        simulation.track, np.array(simulation.cars), (CarStyle("A", ORDINARY.player),), observation=seen, timing=timing
    )


def pictures(
    frames: Sequence[InterpolatedFrame], look: FilmLook, numbers: Sequence[int], insets: Insets | None = None
) -> list[Pixels]:
    """Draw the numbered frames, each after all frames before it.

    Parameters:
        insets: parts of the window that panels cover
    """
    theme = Theme(fitting_scale(look.size), look.palette)
    scene, overlays = Scene(theme, patient=True), Overlays(theme, patient=True)
    scene.camera.mode = look.camera
    scene.camera.insets = insets or Insets()
    surface = pygame.Surface(look.size, depth=32)
    options = SceneOptions("rays" in look.shown, "gates" in look.shown, "names" in look.shown)
    drawn: dict[int, Pixels] = {}
    for number, frame in enumerate(frames):
        if number == 0 or frame.after is not frames[number - 1].after:
            scene.tick(frame.after)
            overlays.tick(frame.after)
        if number in numbers:
            scene.draw(surface, frame.before, frame.after, frame.share, options)
            overlays.draw(surface, frame.after, look.shown, look.units)
            drawn[number] = pygame.surfarray.array3d(surface).swapaxes(0, 1)
    return [drawn[number] for number in numbers]
