"""Many cars driven by one policy: what a moment of a training looked like, after it is over."""

from __future__ import annotations

import numpy as np

from racer_env.engine import ANYWHERE, Config, Simulation, Track
from racer_viewer.agents import Agent
from racer_viewer.curves import SWARM_CAR, Swarm

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
        way = result.components[:, 0] * self._length / max(1e-9, self._simulation.config.weights.progress)
        self._quality = FADING * self._quality + (1.0 - FADING) * np.clip(way / BRISK, 0.0, 1.0)
        return self._swarm()

    def _swarm(self) -> Swarm:
        cars = self._simulation.cars
        rows = np.zeros(len(cars), SWARM_CAR)
        for name in ("x", "y", "heading", "speed", "lap"):
            rows[name] = cars[name]
        rows["quality"], rows["episode"], rows["track"] = self._quality, self._episode, self._number
        return Swarm(self._tick, rows)
