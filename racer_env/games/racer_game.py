"""Racer-v0 as a game: one car of the project's own engine."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

from racer_env.bridge.interface import DEFAULT_TRACK
from racer_env.engine import DT, Config, Simulation, Track
from racer_env.engine.circuits import build_named
from racer_env.engine.config import EpisodeLimits
from racer_env.env import CarWindow, open_window
from racer_env.games.game import CAR, DrawData, TickResult
from racer_env.games.worker_protocol import FRAME_SIZE, Action

_UNLIMITED = 2**31
"""Step limit of the engine [ticks]; the game has its own limit."""


def racer_track() -> Track:
    """Build the track that all racer games of a process share."""
    return build_named(DEFAULT_TRACK)


class RacerGame:
    """One car at the start line, with the rewards of Racer-v0; an episode ends after three seconds without movement.

    prepared: prepare drawing at once, which takes some tenths of a second; otherwise the first frame delays the game.
    """

    def __init__(self, track: Track, seed: int | None = None, prepared: bool = False) -> None:
        config = Config(episode=EpisodeLimits(max_steps=_UNLIMITED))
        self._simulation = Simulation(track, config=config, seed=seed or 0)
        self._track = track
        self._window: CarWindow | None = None
        if prepared:
            self.frame()

    def restart(self) -> None:
        self._simulation.reset()

    def tick(self, action: Action) -> TickResult:
        result = self._simulation.step([action])
        stood_still = bool(result.terminated[0])
        info = {"stood_still": True} if stood_still else {}
        return TickResult(float(result.rewards[0]), stood_still, bool(result.truncated[0]), info)

    def telemetry(self) -> dict[str, Any]:
        car = self._simulation.cars[0]
        return {
            "car_x": float(car["x"]),
            "car_y": float(car["y"]),
            "car_vx": float(car["vx"]),
            "car_vy": float(car["vy"]),
            "car_angle": float(car["heading"]),
            "car_angular_vel": float(car["yaw_rate"]),
            "speed": float(car["speed"]),
            "tiles_visited": int(car["lap_gates"]),
            "total_tiles": len(self._track.gates),
            "lap": int(car["lap"]),
            "checkpoint": int(car["checkpoint"]),
            "lap_time": float(car["lap_ticks"] * DT),
            "last_lap_time": _seconds(int(car["last_lap_ticks"])),
            "best_lap_time": _seconds(int(car["best_lap_ticks"])),
            "surface": int(car["surface"]),
            "wall_contact": bool(car["wall_contact"]),
            "observation": self._simulation.result.observations[0].tolist(),
        }

    def frame(self) -> bytes:
        """Draw the whole window and scale it without keeping its aspect ratio, as CarRacing does."""
        if self._window is None:
            self._window = open_window(False)
        pixels = self._window.draw(self._track, self._simulation.cars[0])
        assert pixels is not None, "the window is not visible, so it returns pixels"
        image = Image.fromarray(pixels)
        reduced = image.reduce((image.width // FRAME_SIZE, image.height // FRAME_SIZE))  # much faster than resize
        return reduced.resize((FRAME_SIZE, FRAME_SIZE), Image.Resampling.BOX).tobytes()

    def draw_data(self, width: int, height: int) -> DrawData:
        """Return the car's state; the window draws the car at its own size."""
        return DrawData(CAR, width, height, np.asarray(self._simulation.cars[:1]).tobytes())


def _seconds(ticks: int) -> float | None:
    """Return a lap time in seconds; None if no lap was completed."""
    return ticks * DT if ticks else None
