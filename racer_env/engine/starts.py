"""Starts of episodes: on the start line by default, or drawn from ranges."""

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.car import wrap_angle
from racer_env.engine.centreline import Floats
from racer_env.engine.compiled import Compiled, part
from racer_env.engine.locate import pose_at
from racer_env.errors import ConfigError, short

Range = tuple[float, float]

LIMITS: dict[str, Range] = {"arc": (0.0, 1.0), "offset": (-2.0, 2.0), "heading": (-7.0, 7.0), "speed": (0.0, 160.0)}
"""Limits of the ranges: offsets reach about as far as the walls, headings about a turn."""


@dataclass(frozen=True)
class Start:
    """Ranges from which starts are drawn uniformly; equal ends fix a value. The default is the standing start.

    arc: fraction of a lap from the start line, 0 to 1.
    offset: fraction of half the road width to the left of the centreline.
    heading: error against the direction of travel [rad], left positive.
    speed: speed along the heading [units/s].
    """

    arc: Range = (0.0, 0.0)
    offset: Range = (0.0, 0.0)
    heading: Range = (0.0, 0.0)
    speed: Range = (0.0, 0.0)

    def __post_init__(self) -> None:
        for field, (low, high) in zip(fields(self), astuple(self), strict=True):
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise ConfigError(
                    f"start {field.name}: a range is two finite numbers, the lower first, not {low}, {high}"
                )
        for name, limit in LIMITS.items():
            low, high = getattr(self, name)
            if low < limit[0] or high > limit[1]:
                raise ConfigError(f"start {name}: stay within {limit[0]:g} to {limit[1]:g}, not {low:g} to {high:g}")

    def table(self) -> Floats:
        """Return the ranges as compiled code reads them, (4, 2)."""
        return np.array(astuple(self), dtype=np.float64)


GRID_BOXES, GRID_FIRST, GRID_SPACING, GRID_OFFSET = 8, 4.8, 11.0, 0.4
"""Starting grid: number of boxes, distance of the first from the line and of each from the next [units], and offset of
the boxes to the left and right of the centreline, alternating, as a fraction of half the road width."""
GRID_NOSE = 4.8
"""Distance of a car's position from the front of its box [units]."""


def grid_starts(length: float) -> tuple[Start, ...]:
    """Return the standing starts from the boxes of the starting grid, on a circuit of this length [units]."""
    starts = []
    for box in range(GRID_BOXES):
        arc = 1.0 - (GRID_FIRST + box * GRID_SPACING + GRID_NOSE) / length % 1.0
        offset = GRID_OFFSET if box % 2 == 0 else -GRID_OFFSET
        starts.append(Start(arc=(arc, arc), offset=(offset, offset)))
    return tuple(starts)


ANYWHERE = Start(arc=(0.0, 1.0), offset=(-0.8, 0.8), heading=(-0.5, 0.5), speed=(0.0, 120.0))
"""Starts all over the road at many speeds: training sees every corner early."""


def parse_start(start: Start | Mapping[str, Any] | None) -> Start:
    """Return a start, also from its JSON form: a number fixes a value, two are a range."""
    if start is None:
        return Start()
    if isinstance(start, Start):
        return start
    known = [field.name for field in fields(Start)]
    if not isinstance(start, Mapping):
        raise ConfigError(f"start must be an object with {', '.join(known)}, not {type(start).__name__}")
    for key in start:
        if key not in known:
            raise ConfigError(f"start: unknown key {short(key)}; known: {', '.join(known)}")
    return Start(**{key: _range(key, value) for key, value in start.items()})


def _range(name: str, value: Any) -> tuple[float, float]:
    numbers = value if isinstance(value, (list, tuple)) else (value, value)
    if len(numbers) != 2 or any(isinstance(n, bool) or not isinstance(n, (int, float)) for n in numbers):
        raise ConfigError(f"start {name}: a number, or two for a range, not {short(value)}")
    try:
        return float(numbers[0]), float(numbers[1])
    except OverflowError:
        raise ConfigError(f"start {name}: a number, or two for a range, not one so large") from None


def draw_index(count: int, cars: NDArray[np.void], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw an index below `count` for each of these cars, from the car's own generator, as `draw` does."""
    with np.errstate(over="ignore"):
        cars["random"][rows] += np.uint64(0x9E3779B97F4A7C15)
        z = cars["random"][rows]
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (count * ((z >> np.uint64(11)) / 9007199254740992.0)).astype(np.int64)


@part
def place(track: Compiled, car: Compiled, ranges: Compiled) -> None:
    """Draw a start for a car and set its whole state as at the beginning of an episode."""
    length = track.frame[0].length
    arc = draw(car, ranges[0]) * length
    arc = arc - length if arc >= length else arc
    x, y, direction, half_width = pose_at(track, arc)
    offset = draw(car, ranges[1]) * half_width
    error = draw(car, ranges[2])
    car.heading = wrap_angle(direction + error) if error != 0.0 else direction
    car.speed = draw(car, ranges[3])
    car.x, car.y = x - offset * math.sin(direction), y + offset * math.cos(direction)
    car.vx, car.vy = car.speed * math.cos(car.heading), car.speed * math.sin(car.heading)
    car.yaw_rate = car.slip_angle = car.steer = car.throttle = car.brake = 0.0
    gates = track.frame[0].gates
    car.checkpoint = min(gates - 1, int(arc / length * gates))
    car.lap, car.lap_ticks, car.lap_gates = 1, 0, 0 if arc == 0.0 else -gates
    car.last_lap_ticks = car.best_lap_ticks = car.step_count = car.stillness = 0
    car.wall_contact = False


@part
def draw(car: Compiled, bounds: Compiled) -> float:
    """Draw a uniform number from a range with the car's own generator (splitmix64); a fixed value draws none."""
    low, high = bounds[0], bounds[1]
    if low == high:
        return low
    car.random += np.uint64(0x9E3779B97F4A7C15)
    z = car.random
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return low + (high - low) * (float(z >> np.uint64(11)) / 9007199254740992.0)
