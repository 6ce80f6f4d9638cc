"""The state of a car, and the compiled calls of a simulation: a tick, the start of an episode, and an observation."""

import math

import numpy as np

from racer_env.engine.car import MAX_SPEED, move, surface_at
from racer_env.engine.compiled import Compiled, entry, part, shared
from racer_env.engine.contact import meet_walls
from racer_env.engine.laps import count_gates
from racer_env.engine.locate import locate
from racer_env.engine.quantities import measure, note_before
from racer_env.engine.rays import RAY_COUNT, RAY_RANGE, cast_rays
from racer_env.engine.rewards import COMPONENT_CAPACITY, pay_rewards
from racer_env.engine.starts import place
from racer_env.engine.terms import pay_terms
from racer_env.engine.trigonometry import sin_cos

OBSERVATION_SIZE = RAY_COUNT + 5
YAW_RATE_RANGE = 5.0
"""Yaw rate [rad/s] that is observed as 1."""
CENTRE_DISTANCE_RANGE = 80.0
"""Distance from the centreline [units] that is observed as 1."""
BAD_ACTION = -1
"""Return value of `step_cars` if an action is not finite."""

CAR = np.dtype([
    ("x", "f8"), ("y", "f8"), ("heading", "f8"), ("vx", "f8"), ("vy", "f8"), ("speed", "f8"), ("yaw_rate", "f8"),
    ("steer", "f8"), ("throttle", "f8"), ("brake", "f8"), ("slip_angle", "f8"),
    ("arc", "f8"), ("centre_distance", "f8"), ("half_width", "f8"), ("located_x", "f8"), ("located_y", "f8"),
    ("action", "f8", 3), ("rays", "f8", RAY_COUNT), ("reward", "f8"), ("components", "f8", COMPONENT_CAPACITY),
    ("surface", "i8"), ("lap", "i8"), ("checkpoint", "i8"), ("lap_ticks", "i8"), ("lap_gates", "i8"),
    ("last_lap_ticks", "i8"), ("best_lap_ticks", "i8"), ("finished_lap_ticks", "i8"),
    ("step_count", "i8"), ("stillness", "i8"), ("track", "i8"), ("random", "u8"),
    ("wall_contact", "?"), ("terminated", "?"), ("truncated", "?"),
], align=True)  # fmt: skip
"""Complete state of one car and results of its last tick; a simulation is an array of these rows.

arc, centre_distance, half_width, surface: location of the point located_x, located_y; updated if the car is elsewhere.
action: raw action; steer, throttle and brake are the inputs that follow it.
rays: distances [units].
components: reward components, then the terms of the config, then zeros.
lap_gates: gates crossed in this lap.
finished_lap_ticks: time of a lap that ended in this tick, else 0.
stillness: ticks in a row below the threshold speed.
track: index of the track in the simulation.
random: state of the car's random generator, which draws its starts.
"""


@entry
def step_cars(track: Compiled, rules: Compiled, cars: Compiled, observations: Compiled, members: Compiled) -> int:
    """Advance some cars of one track by one tick. Returns how many episodes ended, or BAD_ACTION without a change.

    members: rows of `cars` and `observations` to advance.
    """
    for i in members:
        for value in cars[i].action:
            if not math.isfinite(value):
                return BAD_ACTION
    ended = 0
    for i in members:
        car = cars[i]
        if car.x != car.located_x or car.y != car.located_y:
            _locate_again(track, car)
        old_x, old_y, old_arc = car.x, car.y, car.arc
        sin, cos = move(car)
        heading = car.heading
        meet_walls(track, car, old_x, old_y)
        if car.heading != heading:
            sin, cos = sin_cos(car.heading)
        _update_location(track, car)
        count_gates(track, car, old_x, old_y)
        pay_rewards(rules[0], track.frame[0].length, car, old_arc)
        _observe(track, car, sin, cos, observations[i])
        ended += car.terminated or car.truncated
    return ended


@entry
def step_cars_with_terms(
    track: Compiled, rules: Compiled, cars: Compiled, observations: Compiled, members: Compiled, before: Compiled
) -> int:
    """Do what `step_cars` does, then evaluate the config's terms; without terms nothing of this is called.

    before: state of each car before the tick, (cars, BEFORE).
    """
    for i in members:
        if cars[i].x != cars[i].located_x or cars[i].y != cars[i].located_y:
            _update_location(track, cars[i])
        note_before(cars[i], before[i])
    ended = step_cars(track, rules, cars, observations, members)
    if ended != BAD_ACTION:
        for i in members:
            sin, cos = sin_cos(cars[i].heading)
            measure(track, rules[0].measures, cars[i], before[i], sin, cos, rules[0].values)
            pay_terms(rules[0], cars[i])
    return ended


@entry
def start_cars(track: Compiled, ranges: Compiled, cars: Compiled, observations: Compiled, members: Compiled) -> None:
    """Start a new episode for these rows on this track."""
    for i in members:
        place(track, cars[i], ranges)
        _update_location(track, cars[i])
        sin, cos = sin_cos(cars[i].heading)
        _observe(track, cars[i], sin, cos, observations[i])


@entry
def observe_exactly(track: Compiled, cars: Compiled, observations: Compiled, members: Compiled) -> None:
    """Write the observations of these rows again, into an array of any precision; nothing else changes."""
    for i in members:
        _write_observation(track, cars[i], observations[i])


@part
def _update_location(track: Compiled, car: Compiled) -> None:
    """Set the columns that follow from the car's position on the track."""
    car.centre_distance, car.arc, car.half_width = locate(track, car.x, car.y)
    car.surface = surface_at(car.centre_distance, car.half_width)
    car.located_x, car.located_y = car.x, car.y


@shared
def _locate_again(track: Compiled, car: Compiled) -> None:
    """Do what `_update_location` does, for cars that were moved by hand."""
    _update_location(track, car)


@part
def _observe(track: Compiled, car: Compiled, sin: float, cos: float, observation: Compiled) -> None:
    """Cast the rays and write the observation."""
    cast_rays(track, car.x, car.y, car.heading, sin, cos, car.rays)
    _write_observation(track, car, observation)


@part
def _write_observation(track: Compiled, car: Compiled, observation: Compiled) -> None:
    """Write the 14 values of the observation, which follow from the car's row."""
    for ray in range(RAY_COUNT):
        observation[ray] = car.rays[ray] / RAY_RANGE
    observation[RAY_COUNT] = car.speed / MAX_SPEED
    observation[RAY_COUNT + 1] = min(1.0, max(-1.0, car.yaw_rate / YAW_RATE_RANGE))
    observation[RAY_COUNT + 2] = car.steer
    observation[RAY_COUNT + 3] = car.arc / track.frame[0].length
    observation[RAY_COUNT + 4] = min(1.0, car.centre_distance / CENTRE_DISTANCE_RANGE)
