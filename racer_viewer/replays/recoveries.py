"""Recoveries: how a driver would come back to their own line, simulated around a lap.

A lap shows what to do on its line, and almost nothing beside it, where a policy that imitates it soon is. So cars start
from states of the lap, are pushed about, and follow the driver's line and speed: each does what the driver did at the
nearest point of the lap, corrected for how far it is off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from racer_viewer.replays.demonstrations import ACTION_LOW
from racer_viewer.replays.trace import ReplayLap, Trace

if TYPE_CHECKING:
    from racer_env.engine.simulation import Cars

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

SPACING = 16
"""Ticks of the lap between the starts of two cars."""
TICKS = 60
"""Ticks that each car drives."""
PUSH = (0.35, 0.3, 0.3)
"""Standard deviation of the pushes on steer, throttle and brake."""
PUSH_MEMORY = 0.93
"""Part of a push that is left after a tick."""
SEARCHED = np.arange(-6, 16)
"""Rows around the last nearest one among which the next is searched."""
MAX_DISTANCE = 8.0
"""Distance from the driver's line beyond which a car is given up [units]."""


@dataclass(frozen=True, eq=False)
class RecoverySteps:
    """Steps of cars that come back to the line of a lap, in no order.

    observations: (n, 14). actions: (n, 3) within their limits. ticks: ticks of the lap at the nearest point (n,).
    """

    observations: NDArray[np.float32]
    actions: NDArray[np.float32]
    ticks: Rows


def recoveries(trace: Trace, lap: ReplayLap, seed: int) -> RecoverySteps:
    """Return the steps of cars that are pushed off the line of a lap, except those off the road or far from it."""
    from racer_env.engine import Simulation
    from racer_env.engine.car import ROAD

    rng = np.random.default_rng(seed)
    nearest = np.arange(lap.first, lap.last, SPACING)
    simulation = Simulation(trace.track, len(nearest), trace.replay.config)
    simulation.cars[...] = trace.rows[nearest]
    follower, seen = _Follower(trace, lap), trace.observations[nearest].copy()
    push, fresh = np.zeros((len(nearest), 3)), np.sqrt(1.0 - PUSH_MEMORY**2) * np.array(PUSH)
    following = np.ones(len(nearest), np.bool_)
    observations, actions, places = [], [], []
    for _ in range(TICKS):
        nearest, distance = follower.locate(simulation.cars, nearest)
        following &= (distance < MAX_DISTANCE) & (simulation.cars["surface"] == ROAD) & (nearest < lap.last - 1)
        wanted = follower.act(simulation.cars, nearest)
        observations.append(seen[following].copy())
        actions.append(wanted[following])
        places.append(nearest[following] - lap.first)
        push = PUSH_MEMORY * push + fresh * rng.standard_normal(push.shape)
        seen = simulation.step(np.clip(wanted + push, ACTION_LOW, 1.0)).observations
    return RecoverySteps(
        np.concatenate(observations), np.concatenate(actions).astype(np.float32), np.concatenate(places)
    )


class _Follower:
    """Follows the line of a lap."""

    def __init__(self, trace: Trace, lap: ReplayLap) -> None:
        from racer_env.engine.driver import LOOK_AHEAD, LOOK_AHEAD_PER_SPEED

        self._rows, self._actions = trace.rows, trace.replay.actions
        self._first, self._last = lap.first, lap.last
        moves = np.hypot(np.diff(self._rows["x"]), np.diff(self._rows["y"]))
        self._driven = np.concatenate([[0.0], np.cumsum(moves)])
        self._reach = LOOK_AHEAD, LOOK_AHEAD_PER_SPEED

    def locate(self, cars: Cars, nearest: Rows) -> tuple[Rows, Floats]:
        """Return the rows of the lap that are nearest to cars, and their distances [units]."""
        around = np.clip(nearest[:, None] + SEARCHED, self._first, self._last - 1)
        rows = self._rows[around]
        distances = np.hypot(rows["x"] - cars["x"][:, None], rows["y"] - cars["y"][:, None])
        best = distances.argmin(axis=1)
        each = np.arange(len(best))
        return around[each, best], distances[each, best]

    def act(self, cars: Cars, nearest: Rows) -> Floats:
        """Return the driver's actions, corrected for the differences between the cars and the nearest rows."""
        from racer_env.engine.driver import BRAKE_PER_SPEED, THROTTLE_PER_SPEED

        rows = self._rows[nearest].view(np.recarray)
        reach = self._reach[0] + self._reach[1] * rows["speed"]
        ahead = np.minimum(np.searchsorted(self._driven, self._driven[nearest] + reach), len(self._driven) - 1)
        missing = rows["speed"] - cars["speed"]
        actions = np.clip(self._actions[nearest], ACTION_LOW, 1.0)
        actions[:, 0] += self._steering(cars, ahead) - self._steering(rows, ahead)
        actions[:, 1] += missing * THROTTLE_PER_SPEED
        actions[:, 2] -= missing * BRAKE_PER_SPEED
        return np.clip(actions, ACTION_LOW, 1.0)

    def _steering(self, cars: Cars, ahead: Rows) -> Floats:
        """Return the steering with which cars drive to rows ahead."""
        from racer_env.engine.driver import pursue

        return pursue(cars, self._rows["x"][ahead], self._rows["y"][ahead])
