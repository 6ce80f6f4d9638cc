"""Quantities: what the formulas of reward terms can use, by name, and how a tick measures them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from racer_env.engine.car import DT, ROAD, RUNOFF, SHOULDER
from racer_env.engine.compiled import Compiled, part, shared
from racer_env.engine.locate import point_at
from racer_env.engine.rays import RAY_COUNT, RAY_RANGE
from racer_env.engine.trigonometry import arctan2

if TYPE_CHECKING:
    from collections.abc import Collection

PER_SECOND = 1.0 / DT
CURVATURE_SPAN = 12.0
"""Length over which curvature is measured [units]; shorter wiggles are ignored."""
LOOKS_AHEAD = (0.0, 25.0, 50.0, 100.0)
"""Distances at which the curvature of the centreline is measured [units]."""


@dataclass(frozen=True)
class Quantity:
    """A quantity of one car in one tick, after the car has moved.

    low, high: usual values; positions far from the track and very long episodes exceed them.
    """

    name: str
    unit: str
    help: str
    low: float
    high: float


QUANTITIES = (
    Quantity("speed", "units/s", "speed of the car", 0.0, 160.0),
    Quantity("forward_speed", "units/s", "speed along the heading of the car", -160.0, 160.0),
    Quantity("sideways_speed", "units/s", "speed across the heading of the car, positive to the left", -160.0, 160.0),
    Quantity("acceleration", "units/s²", "change of the speed in this tick, per second", -9600.0, 9600.0),
    Quantity("yaw_rate", "rad/s", "rate at which the car turns, positive to the left", -20.0, 20.0),
    Quantity("slip", "rad", "angle between the heading of the car and its movement, never negative", 0.0, 3.2),
    Quantity("steer", "", "steering of the car: -1 is fully left, 1 fully right", -1.0, 1.0),
    Quantity("throttle", "", "throttle of the car, 0 to 1", 0.0, 1.0),
    Quantity("brake", "", "brake of the car, 0 to 1", 0.0, 1.0),
    Quantity("steer_change", "", "change of the steering in this tick", -1.0, 1.0),
    Quantity("throttle_change", "", "change of the throttle in this tick", -1.0, 1.0),
    Quantity("brake_change", "", "change of the brake in this tick", -1.0, 1.0),
    Quantity("progress", "laps", "part of the lap driven along the centreline in this tick, negative backwards",
             -0.01, 0.01),
    Quantity("advance", "units", "distance driven along the centreline in this tick, negative backwards", -3.0, 3.0),
    Quantity("lap_fraction", "laps", "place on the lap: 0 at the start line, 1 after a whole lap", 0.0, 1.0),
    Quantity("lap_length", "units", "length of a lap", 100.0, 20_000.0),
    Quantity("centre_distance", "units", "distance from the centreline, on either side", 0.0, 80.0),
    Quantity("centre_offset", "units", "distance from the centreline, positive to the left of it", -80.0, 80.0),
    Quantity("half_width", "units", "half the width of the road here", 2.0, 40.0),
    Quantity("edge_distance", "units", "distance to the edge of the road, negative beyond it", -60.0, 40.0),
    Quantity("heading_error", "rad", "angle from the direction of the road to the heading, positive to the left",
             -3.2, 3.2),
    Quantity("curvature", "1/unit", "curvature of the centreline here, positive if it bends to the left", -0.3, 0.3),
    Quantity("curvature_25", "1/unit", "curvature of the centreline 25 units ahead", -0.3, 0.3),
    Quantity("curvature_50", "1/unit", "curvature of the centreline 50 units ahead", -0.3, 0.3),
    Quantity("curvature_100", "1/unit", "curvature of the centreline 100 units ahead", -0.3, 0.3),
    Quantity("off_track", "0 or 1", "1 when the car is off the road", 0.0, 1.0),
    Quantity("on_shoulder", "0 or 1", "1 when the car is on the shoulder beside the road", 0.0, 1.0),
    Quantity("on_runoff", "0 or 1", "1 when the car is on the runoff behind the shoulder", 0.0, 1.0),
    Quantity("wall_contact", "0 or 1", "1 when the centre of the car is closer than 2 units to a wall", 0.0, 1.0),
    Quantity("wall_distance", "units", "the shortest of the nine rays", 0.0, 200.0),
    Quantity("ray_0", "units", "distance to the wall at -90°, to the right; at most 200", 0.0, 200.0),
    Quantity("ray_1", "units", "distance to the wall at -67.5°", 0.0, 200.0),
    Quantity("ray_2", "units", "distance to the wall at -45°", 0.0, 200.0),
    Quantity("ray_3", "units", "distance to the wall at -22.5°", 0.0, 200.0),
    Quantity("ray_4", "units", "distance to the wall straight ahead", 0.0, 200.0),
    Quantity("ray_5", "units", "distance to the wall at 22.5°", 0.0, 200.0),
    Quantity("ray_6", "units", "distance to the wall at 45°", 0.0, 200.0),
    Quantity("ray_7", "units", "distance to the wall at 67.5°", 0.0, 200.0),
    Quantity("ray_8", "units", "distance to the wall at 90°, to the left", 0.0, 200.0),
    Quantity("lap", "", "number of the lap, 1 at the start of an episode", 1.0, 100.0),
    Quantity("lap_time", "s", "time since the car crossed the line, or since the start of the episode", 0.0, 120.0),
    Quantity("lap_finished", "0 or 1", "1 in the tick that completes a lap through all gates", 0.0, 1.0),
    Quantity("last_lap_time", "s", "time of the last complete lap, 0 before the first", 0.0, 120.0),
    Quantity("best_lap_time", "s", "time of the fastest complete lap of this episode, 0 before the first", 0.0, 120.0),
    Quantity("gate_passed", "0 or 1", "1 in the tick in which the car crosses the next gate", 0.0, 1.0),
    Quantity("episode_time", "s", "time since the start of the episode", 0.0, 600.0),
    Quantity("still_time", "s", "time for which the car has been slower than stillnessSpeedThreshold", 0.0, 10.0),
)  # fmt: skip
"""All quantities, in the order in which they are stored."""

QUANTITY_INDEX = {quantity.name: index for index, quantity in enumerate(QUANTITIES)}
"""Index of each quantity by its name."""

(
    _SPEED, _FORWARD_SPEED, _SIDEWAYS_SPEED, _ACCELERATION, _YAW_RATE, _SLIP,
    _STEER, _THROTTLE, _BRAKE, _STEER_CHANGE, _THROTTLE_CHANGE, _BRAKE_CHANGE,
    _PROGRESS, _ADVANCE, _LAP_FRACTION, _LAP_LENGTH, _CENTRE_DISTANCE, _CENTRE_OFFSET, _HALF_WIDTH, _EDGE_DISTANCE,
    _HEADING_ERROR, _CURVATURE, _CURVATURE_25, _CURVATURE_50, _CURVATURE_100,
    _OFF_TRACK, _ON_SHOULDER, _ON_RUNOFF, _WALL_CONTACT, _WALL_DISTANCE, _RAY_0, _, _, _, _, _, _, _, _,
    _LAP, _LAP_TIME, _LAP_FINISHED, _LAST_LAP_TIME, _BEST_LAP_TIME, _GATE_PASSED, _EPISODE_TIME, _STILL_TIME,
) = range(len(QUANTITIES))  # fmt: skip
SPEED, STILL_TIME = _SPEED, _STILL_TIME
"""Indices of quantities that depend on a threshold of the config."""

NOTHING, PLAIN, DIRECTION = 0, 1, 2
"""Bits of what a tick measures: nothing, everything that costs next to nothing, and what needs the road's direction."""
CURVATURES = (4, 8, 16, 32)
"""Bits of the curvatures at `LOOKS_AHEAD`."""
EVERYTHING = PLAIN | DIRECTION | sum(CURVATURES)


def measures_for(quantities: Collection[int]) -> int:
    """Return the bits of what must be measured for some quantities, given by their indices."""
    if not quantities:
        return NOTHING
    bits = PLAIN
    if _HEADING_ERROR in quantities or _CENTRE_OFFSET in quantities:
        bits |= DIRECTION
    return bits | sum(bit for number, bit in enumerate(CURVATURES) if _CURVATURE + number in quantities)


BEFORE = 6
"""Number of values that `note_before` keeps."""


@part
def note_before(car: Compiled, before: Compiled) -> None:
    """Keep what a tick will change and its quantities need."""
    before[0], before[1], before[2] = car.speed, car.steer, car.throttle
    before[3], before[4], before[5] = car.brake, car.arc, car.checkpoint


@shared
def measure(
    track: Compiled, measures: int, car: Compiled, before: Compiled, sin: float, cos: float, values: Compiled
) -> None:
    """Set the quantities of a car after its tick.

    measures: bits of what is needed. before: values of `note_before`. sin, cos: sine and cosine of the heading.
    """
    length = track.frame[0].length
    values[_SPEED] = car.speed
    values[_FORWARD_SPEED] = car.vx * cos + car.vy * sin
    values[_SIDEWAYS_SPEED] = car.vy * cos - car.vx * sin
    values[_ACCELERATION] = (car.speed - before[0]) * PER_SECOND
    values[_YAW_RATE] = car.yaw_rate
    values[_SLIP] = car.slip_angle
    values[_STEER] = car.steer
    values[_THROTTLE] = car.throttle
    values[_BRAKE] = car.brake
    values[_STEER_CHANGE] = car.steer - before[1]
    values[_THROTTLE_CHANGE] = car.throttle - before[2]
    values[_BRAKE_CHANGE] = car.brake - before[3]
    gained = distance_gained(length, car.arc, before[4])
    values[_PROGRESS] = gained / length
    values[_ADVANCE] = gained
    values[_LAP_FRACTION] = car.arc / length
    values[_LAP_LENGTH] = length
    values[_CENTRE_DISTANCE] = car.centre_distance
    values[_HALF_WIDTH] = car.half_width
    values[_EDGE_DISTANCE] = car.half_width - car.centre_distance
    values[_OFF_TRACK] = 1.0 if car.surface != ROAD else 0.0
    values[_ON_SHOULDER] = 1.0 if car.surface == SHOULDER else 0.0
    values[_ON_RUNOFF] = 1.0 if car.surface == RUNOFF else 0.0
    values[_WALL_CONTACT] = 1.0 if car.wall_contact else 0.0
    nearest = RAY_RANGE
    for ray in range(RAY_COUNT):
        values[_RAY_0 + ray] = car.rays[ray]
        nearest = min(nearest, car.rays[ray])
    values[_WALL_DISTANCE] = nearest
    values[_LAP] = car.lap
    values[_LAP_TIME] = car.lap_ticks * DT
    values[_LAP_FINISHED] = 1.0 if car.finished_lap_ticks > 0 else 0.0
    values[_LAST_LAP_TIME] = car.last_lap_ticks * DT
    values[_BEST_LAP_TIME] = car.best_lap_ticks * DT
    values[_GATE_PASSED] = 1.0 if car.checkpoint != before[5] else 0.0
    values[_EPISODE_TIME] = car.step_count * DT
    values[_STILL_TIME] = car.stillness * DT
    if measures & DIRECTION:
        x, y, dx, dy, _ = point_at(track, car.arc)
        values[_HEADING_ERROR] = arctan2(dx * sin - dy * cos, dx * cos + dy * sin)
        left = dx * (car.y - y) - dy * (car.x - x)
        values[_CENTRE_OFFSET] = car.centre_distance if left >= 0.0 else -car.centre_distance
    for number in range(len(LOOKS_AHEAD)):
        if measures & CURVATURES[number]:
            values[_CURVATURE + number] = curvature_at(track, car.arc + LOOKS_AHEAD[number])


@part
def distance_gained(length: float, arc: float, old_arc: float) -> float:
    """Return the distance along a lap from one place to another, the shorter way around."""
    gained = arc - old_arc
    if gained > length / 2.0:
        gained -= length
    elif gained < -length / 2.0:
        gained += length
    return gained


@shared
def curvature_at(track: Compiled, arc: float) -> float:
    """Return the mean curvature of the centreline around an arc, which may be beyond the end of the lap."""
    _, _, ax, ay, _ = point_at(track, _wrapped(track, arc - CURVATURE_SPAN / 2.0))
    _, _, bx, by, _ = point_at(track, _wrapped(track, arc + CURVATURE_SPAN / 2.0))
    return arctan2(ax * by - ay * bx, ax * bx + ay * by) / CURVATURE_SPAN


@part
def _wrapped(track: Compiled, arc: float) -> float:
    """Return the same place on the lap as an arc in [0, length)."""
    length = track.frame[0].length
    arc %= length
    return arc if arc < length else 0.0
