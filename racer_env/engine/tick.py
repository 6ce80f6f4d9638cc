"""The state of a car, and the two compiled calls of a simulation: a tick, and the start of an episode."""

import math

import numpy as np

from racer_env.engine.car import MAX_SPEED, move, surface_at
from racer_env.engine.compiled import Compiled, entry, part
from racer_env.engine.contact import meet_walls
from racer_env.engine.laps import count_gates
from racer_env.engine.locate import locate
from racer_env.engine.rays import RAY_COUNT, RAY_RANGE, cast_rays
from racer_env.engine.rewards import COMPONENT_COUNT, pay_rewards
from racer_env.engine.starts import place
from racer_env.engine.trigonometry import sin_cos

OBSERVATION_SIZE = RAY_COUNT + 5
YAW_RATE_RANGE = 5.0
"""Yaw rate [rad/s] that shows as 1."""
CENTRE_DISTANCE_RANGE = 80.0
"""Distance from the centreline that shows as 1."""
BAD_ACTION = -1

CAR = np.dtype([
    ("x", "f8"), ("y", "f8"), ("heading", "f8"), ("vx", "f8"), ("vy", "f8"), ("speed", "f8"), ("yaw_rate", "f8"),
    ("steer", "f8"), ("throttle", "f8"), ("brake", "f8"), ("slip_angle", "f8"),
    ("arc", "f8"), ("centre_distance", "f8"), ("half_width", "f8"), ("located_x", "f8"), ("located_y", "f8"),
    ("action", "f8", 3), ("rays", "f8", RAY_COUNT), ("reward", "f8"), ("components", "f8", COMPONENT_COUNT),
    ("surface", "i8"), ("lap", "i8"), ("checkpoint", "i8"), ("lap_ticks", "i8"), ("lap_gates", "i8"),
    ("last_lap_ticks", "i8"), ("best_lap_ticks", "i8"), ("finished_lap_ticks", "i8"),
    ("step_count", "i8"), ("stillness", "i8"), ("track", "i8"), ("random", "u8"),
    ("wall_contact", "?"), ("terminated", "?"), ("truncated", "?"),
], align=True)  # fmt: skip
"""The whole state of one car and what its last tick gave; a simulation is an array of these.

Beyond the obvious: `arc`, `centre_distance`, `half_width` and `surface` belong to the point `located_x, located_y`
and are found anew if the car is elsewhere; `action` is what the driver asked for and `steer`, `throttle`, `brake`
what the car made of it; `rays` are in units; `lap_gates` counts the gates taken in this lap; `finished_lap_ticks`
is the time of a lap that ended in this very tick, else 0; `stillness` counts ticks in a row below the threshold
speed; `track` counts the tracks of the simulation; `random` is the car's own random state, for its starts.
"""


@entry
def step_cars(track: Compiled, rules: Compiled, cars: Compiled, observations: Compiled, members: Compiled) -> int:
    """Advance the cars of this track by one tick; returns how many episodes ended, or BAD_ACTION and nothing is done.

    members: the rows of `cars` and `observations` that are meant.
    """
    for i in members:
        for value in cars[i].action:
            if not math.isfinite(value):
                return BAD_ACTION
    ended = 0
    for i in members:
        car = cars[i]
        if car.x != car.located_x or car.y != car.located_y:
            _find(track, car)
        old_x, old_y, old_arc = car.x, car.y, car.arc
        sin, cos = move(car)
        heading = car.heading
        meet_walls(track, car, old_x, old_y)
        if car.heading != heading:
            sin, cos = sin_cos(car.heading)
        _find(track, car)
        count_gates(track, car, old_x, old_y)
        pay_rewards(rules[0], track.frame[0].length, car, old_arc)
        _observe(track, car, sin, cos, observations[i])
        ended += car.terminated or car.truncated
    return ended


@entry
def start_cars(track: Compiled, ranges: Compiled, cars: Compiled, observations: Compiled, members: Compiled) -> None:
    """Begin a new episode for these rows, on this track."""
    for i in members:
        place(track, cars[i], ranges)
        _find(track, cars[i])
        sin, cos = sin_cos(cars[i].heading)
        _observe(track, cars[i], sin, cos, observations[i])


@part
def _find(track: Compiled, car: Compiled) -> None:
    """Set what follows from the car's position on the track."""
    car.centre_distance, car.arc, car.half_width = locate(track, car.x, car.y)
    car.surface = surface_at(car.centre_distance, car.half_width)
    car.located_x, car.located_y = car.x, car.y


@part
def _observe(track: Compiled, car: Compiled, sin: float, cos: float, observation: Compiled) -> None:
    """Cast the rays and write the 14 values that the agent sees."""
    cast_rays(track, car.x, car.y, car.heading, sin, cos, car.rays)
    for ray in range(RAY_COUNT):
        observation[ray] = car.rays[ray] / RAY_RANGE
    observation[RAY_COUNT] = car.speed / MAX_SPEED
    observation[RAY_COUNT + 1] = min(1.0, max(-1.0, car.yaw_rate / YAW_RATE_RANGE))
    observation[RAY_COUNT + 2] = car.steer
    observation[RAY_COUNT + 3] = car.arc / track.frame[0].length
    observation[RAY_COUNT + 4] = min(1.0, car.centre_distance / CENTRE_DISTANCE_RANGE)
