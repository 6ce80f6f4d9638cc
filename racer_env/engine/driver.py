"""A rule-based driver: pure pursuit of the centreline, at speeds planned from its curvature."""

import numpy as np

from racer_env.engine.car import MAX_SPEED, MAX_WHEEL_ANGLE, STEERING_FADE, WHEELBASE
from racer_env.engine.centreline import Floats
from racer_env.engine.simulation import Cars
from racer_env.engine.track import Track
from racer_env.engine.walls import curvatures

SPACING = 1.0
"""Distance between the points of the plan [units]."""
LOOK_AHEAD, LOOK_AHEAD_PER_SPEED = 7.0, 0.10
"""Look-ahead distance at rest [units], and its increase per unit of speed."""
CURVATURE_SPAN = 12.0
"""Length over which curvature is measured [units]; shorter wiggles are ignored."""
STEERING_MARGIN = 0.75
"""Fraction of the possible steering that the plan uses."""
BRAKING = 60.0
"""Deceleration that the plan assumes [units/s²]."""
THROTTLE_PER_SPEED, BRAKE_PER_SPEED = 0.25, 0.08
"""Throttle per missing unit of speed, and brake per unit too much."""


class Driver:
    """Drives any number of cars around one track."""

    def __init__(self, track: Track) -> None:
        count = int(track.length / SPACING)
        distances = np.arange(count) * track.length / count
        self._per_unit = count / track.length
        self._line = track.centreline.points(distances)
        self._speeds = _plan_speeds(np.abs(curvatures(track.centreline, distances, CURVATURE_SPAN)))

    def act(self, cars: Cars) -> Floats:
        """Return actions (N, 3) for these cars."""
        here = (cars["arc"] * self._per_unit).astype(np.int64) % len(self._line)
        reach = LOOK_AHEAD + LOOK_AHEAD_PER_SPEED * cars["speed"]
        ahead = (here + (reach * self._per_unit).astype(np.int64)) % len(self._line)
        missing = self._speeds[here] - cars["speed"]
        actions = np.empty((len(here), 3))
        actions[:, 0] = pursue(cars, self._line[ahead, 0], self._line[ahead, 1])
        actions[:, 1] = missing * THROTTLE_PER_SPEED
        actions[:, 2] = -missing * BRAKE_PER_SPEED
        return np.clip(actions, (-1.0, 0.0, 0.0), 1.0, out=actions)


def pursue(cars: Cars, x: Floats, y: Floats) -> Floats:
    """Return the steering (N,) that leads cars to points on an arc; beyond the limits for sharp turns."""
    to_x, to_y = x - cars["x"], y - cars["y"]
    cos, sin = np.cos(cars["heading"]), np.sin(cars["heading"])
    left = cos * to_y - sin * to_x
    wheel_angle = 2.0 * WHEELBASE * left / np.maximum(to_x**2 + to_y**2, 1.0)
    wheel_angle = np.where(cos * to_x + sin * to_y < 0.0, np.copysign(MAX_WHEEL_ANGLE, left), wheel_angle)
    steering: Floats = -wheel_angle * (1.0 + STEERING_FADE * cars["speed"]) / MAX_WHEEL_ANGLE
    return steering


def _plan_speeds(curvature: Floats) -> Floats:
    """Return the speeds that steering allows, lowered where the car must brake for a slower point ahead."""
    possible = STEERING_MARGIN * MAX_WHEEL_ANGLE / WHEELBASE / np.maximum(curvature, 1e-6)
    speeds = np.clip((possible - 1.0) / STEERING_FADE, 20.0, MAX_SPEED)
    for i in range(2 * len(speeds) - 1, -1, -1):
        following = speeds[(i + 1) % len(speeds)]
        speeds[i % len(speeds)] = min(speeds[i % len(speeds)], np.sqrt(following**2 + 2.0 * BRAKING * SPACING))
    return speeds
