"""The racer as a game: one car of the project's own engine."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

from racer_env.bridge.interface import DEFAULT_TRACK
from racer_env.engine import DT, Config, Simulation, Track
from racer_env.engine.circuits import build_named
from racer_env.engine.config import EpisodeLimits
from racer_env.env import CarWindow, open_window
from racer_env.games.game import CAR, Outcome, Sight
from racer_env.games.worker_protocol import FRAME_SIZE, Action

_FOR_EVER = 2**31
"""Ticks: how long an episode may be is for the game to say."""


def racer_track() -> Track:
    """The circuit of all racer games of a process."""
    return build_named(DEFAULT_TRACK)


class RacerGame:
    """One car at the start line, with the rewards and the end of the racer: after three seconds of standing still.

    prepared: what pictures are drawn from is made at once, which takes some tenths of a second; else for the first
    frame, which holds up the game.
    """

    def __init__(self, track: Track, seed: int | None = None, prepared: bool = False) -> None:
        config = Config(episode=EpisodeLimits(max_steps=_FOR_EVER))
        self._simulation = Simulation(track, config=config, seed=seed or 0)
        self._track = track
        self._window: CarWindow | None = None
        if prepared:
            self.frame()

    def restart(self) -> None:
        self._simulation.reset()

    def tick(self, action: Action) -> Outcome:
        result = self._simulation.step([action])
        stood_still = bool(result.terminated[0])
        info = {"stood_still": True} if stood_still else {}
        return Outcome(float(result.rewards[0]), stood_still, bool(result.truncated[0]), info)

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
        """The window's whole picture, squeezed as CarRacing squeezes its own."""
        if self._window is None:
            self._window = open_window(False)
        picture = self._window.draw(self._track, self._simulation.cars[0])
        assert picture is not None, "nobody opened a window on a screen"
        whole = Image.fromarray(picture)
        nearly = whole.reduce((whole.width // FRAME_SIZE, whole.height // FRAME_SIZE))  # the quick part of the way
        return nearly.resize((FRAME_SIZE, FRAME_SIZE), Image.Resampling.BOX).tobytes()

    def sight(self, width: int, height: int) -> Sight:
        """The car itself: who has a window draws it better at its own size."""
        return Sight(CAR, width, height, np.asarray(self._simulation.cars[:1]).tobytes())


def _seconds(ticks: int) -> float | None:
    """Of a lap; None if there was none yet."""
    return ticks * DT if ticks else None
