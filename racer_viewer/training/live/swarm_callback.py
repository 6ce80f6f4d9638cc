"""Shows all learning cars to those who look at the swarm file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from racer_env.engine import CAR, TICKS_PER_SECOND, Simulation
from racer_viewer.curves import SWARM_CAR, Floats, Swarm
from racer_viewer.training.live.swarm_file import SwarmWriter
from racer_viewer.training.metrics import RacerMetricsCallback, find_cars

MOST_PER_SECOND = 90.0
"""Pictures of the swarm: every tick in real time, and enough for a window at any pace."""
_LOOK_BACK = 2.0 * TICKS_PER_SECOND
"""Ticks over which a car's reward is judged."""
_QUICK, _SLOW = 0.05, 0.001
"""How fast the scale of what is usual widens, and narrows, with every picture."""
_LEAST_SPAN = 1e-6


class UsualRewards:
    """How well cars do, from 0 to 1, among what was usual in the run so far."""

    def __init__(self) -> None:
        self._low = self._high = math.nan

    def judge(self, rewards: Floats) -> Floats:
        """For the recent reward of every car; the tenth and the last tenth of them set the scale."""
        ordered, tenth = np.sort(rewards), len(rewards) // 10
        low, high = float(ordered[tenth]), float(ordered[-1 - tenth])
        if math.isnan(self._low):
            self._low, self._high = low, high
        self._low += (low - self._low) * (_QUICK if low < self._low else _SLOW)
        self._high += (high - self._high) * (_QUICK if high > self._high else _SLOW)
        quality: Floats = (rewards - self._low) * (1.0 / max(self._high - self._low, _LEAST_SPAN))
        np.maximum(quality, 0.0, out=quality)
        np.minimum(quality, 1.0, out=quality)
        return quality


class SwarmCallback(BaseCallback):
    """Writes the swarm after a tick, while somebody looks, but not more often than anyone can see.

    metrics: must be called before this.
    """

    def __init__(
        self,
        writer: SwarmWriter,
        track_names: tuple[str, ...],
        metrics: RacerMetricsCallback,
        watched: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._writer, self._metrics, self._usual, self._watched = writer, metrics, UsualRewards(), watched
        self._numbers = np.array([track_names.index(name) for name in track_names])
        """A circuit that is there twice counts as its first."""
        self._written = 0.0

    def _on_training_start(self) -> None:
        cars, count = find_cars(self.training_env), self.training_env.num_envs
        simulation = getattr(cars.cars.batch, "simulation", None) if cars else None
        assert isinstance(simulation, Simulation), "the swarm is shown of cars in this process"
        self._rewards, self._episodes = np.zeros(count), np.zeros(count, np.int32)
        self._rows, state = np.zeros(count, SWARM_CAR), simulation.cars.view(CAR, np.ndarray)
        self._pairs = [(self._rows[name], state[name]) for name in ("x", "y", "heading", "speed", "lap")]
        """Where to, and where from."""
        self._tracks = state["track"]
        self._show()

    def _on_step(self) -> bool:
        tick = self._metrics.tick
        self._rewards += (tick.rewards - self._rewards) / _LOOK_BACK
        if len(tick.ended):
            self._episodes[tick.ended] += 1
            self._rewards[tick.ended] = self._rewards.mean()
        if self._watched() and time.monotonic() - self._written >= 1.0 / MOST_PER_SECOND:
            self._show()
        return True

    def _show(self) -> None:
        self._written = time.monotonic()
        for there, here in self._pairs:
            there[...] = here
        rows = self._rows
        rows["track"] = self._numbers[self._tracks]
        rows["quality"], rows["episode"] = self._usual.judge(self._rewards), self._episodes
        self._writer.write(Swarm(self.num_timesteps // len(rows), rows), self.num_timesteps)
