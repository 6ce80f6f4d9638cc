"""The car: its constants, and its motion in one tick before walls are considered."""

import math

from racer_env.engine.compiled import Compiled, part
from racer_env.engine.trigonometry import arctan2, sin_cos

DT = 1.0 / 60.0
"""Duration of a tick [s]."""
TICKS_PER_SECOND = 60

MASS = 800.0
WHEELBASE = 1.5
MAX_SPEED = 160.0
"""Maximum speed [units/s]."""
ENGINE_FORCE = 55_000.0
BRAKE_FORCE = 50_000.0
DRAG = 2.0
"""Drag force per squared speed."""
ROLLING_RESISTANCE = 150.0
MAX_WHEEL_ANGLE = 0.37
"""Maximum angle of the front wheels at rest [rad]."""
STEERING_FADE = 0.025
"""Reduction of the wheel angle per unit of speed."""
TRACTION_AT_REST = 0.85
TRACTION_AT_MAX_SPEED = 0.55
STEER_RATE, THROTTLE_RATE, BRAKE_RATE = 24.0, 6.0, 10.0
"""Rates at which the inputs follow the action [1/s]."""
CRAWL_SPEED, STANDING_SPEED = 1.0, 0.01
"""Speeds [units/s]: up to the first, resistance only stops the car, turning is linear; up to the second it stands."""

ROAD, RUNOFF, SHOULDER = 0, 1, 2
GRIP = (1.0, 0.5, 0.7)
"""Grip by surface code."""
SPEED_FACTOR = (1.0, 0.4, 0.85)
"""Factor of engine force and divisor of drag, by surface code."""
SHOULDER_WIDTH = 24.0
"""Width of the shoulder beside the road [units]."""

_STEER_STEP = 1.0 - math.exp(-STEER_RATE * DT)
_THROTTLE_STEP = 1.0 - math.exp(-THROTTLE_RATE * DT)
_BRAKE_STEP = 1.0 - math.exp(-BRAKE_RATE * DT)


@part
def wrap_angle(angle: float) -> float:
    """Return the same angle in [−π, π]."""
    if -math.pi <= angle <= math.pi:
        return angle
    return angle - 2.0 * math.pi * math.floor((angle + math.pi) / (2.0 * math.pi))


@part
def surface_at(centre_distance: float, half_width: float) -> int:
    """Return the surface code at a distance from the centreline."""
    if centre_distance <= half_width:
        return ROAD
    if centre_distance <= half_width + SHOULDER_WIDTH:
        return SHOULDER
    return RUNOFF


@part
def move(car: Compiled) -> tuple[float, float]:
    """Update inputs, heading, velocity and position for one tick, ignoring walls.

    Returns the sine and cosine of the new heading.
    """
    speed, heading = car.speed, car.heading
    grip, factor = GRIP[car.surface], SPEED_FACTOR[car.surface]
    _follow_inputs(car)
    wheel_angle = -car.steer * MAX_WHEEL_ANGLE / (1.0 + STEERING_FADE * speed)
    turn = _turn(wheel_angle, speed)
    car.heading = wrap_angle(heading + turn) if speed > CRAWL_SPEED else heading + turn
    car.yaw_rate = turn / DT
    forward = _forward_speed(car, speed, factor)

    sin, cos = sin_cos(car.heading)
    traction = TRACTION_AT_REST - (TRACTION_AT_REST - TRACTION_AT_MAX_SPEED) * min(speed / MAX_SPEED, 1.0)
    sideways = (-car.vx * sin + car.vy * cos) * (1.0 - grip * traction)
    vx, vy = forward * cos - sideways * sin, forward * sin + sideways * cos
    new_speed = math.sqrt(vx * vx + vy * vy)
    if new_speed > MAX_SPEED:
        vx, vy, new_speed = vx * MAX_SPEED / new_speed, vy * MAX_SPEED / new_speed, MAX_SPEED
    if vx * cos + vy * sin < 0.0 and new_speed < CRAWL_SPEED:
        vx, vy, new_speed = 0.0, 0.0, 0.0
    car.vx, car.vy, car.speed = vx, vy, new_speed
    car.slip_angle = abs(arctan2(sideways, forward)) if new_speed > CRAWL_SPEED else 0.0
    car.x += vx * DT
    car.y += vy * DT
    return sin, cos


@part
def _follow_inputs(car: Compiled) -> None:
    """Move steer, throttle and brake towards the action, each at its rate."""
    car.steer += (min(1.0, max(-1.0, car.action[0])) - car.steer) * _STEER_STEP
    car.throttle += (min(1.0, max(0.0, car.action[1])) - car.throttle) * _THROTTLE_STEP
    car.brake += (min(1.0, max(0.0, car.action[2])) - car.brake) * _BRAKE_STEP


@part
def _turn(wheel_angle: float, speed: float) -> float:
    """Return the change of heading when the front and the rear axle have each rolled for one tick."""
    if speed <= CRAWL_SPEED:
        return wheel_angle * speed * DT
    rolled = speed * DT
    sin, cos = sin_cos(wheel_angle)
    return arctan2(rolled * sin, WHEELBASE - rolled + rolled * cos)


@part
def _forward_speed(car: Compiled, speed: float, factor: float) -> float:
    """Return the speed after engine, brake, drag and rolling resistance."""
    resistance = car.brake * BRAKE_FORCE + DRAG * speed * speed / factor + ROLLING_RESISTANCE
    force = car.throttle * ENGINE_FORCE * factor
    if speed > CRAWL_SPEED:
        force -= resistance
    elif speed > STANDING_SPEED:
        force -= min(resistance, MASS * speed / DT)
    return min(MAX_SPEED, max(0.0, speed + force / MASS * DT))
