"""Snapshots: the immutable state of everything visible after one tick, and the frames between two of them.

Every mode makes snapshots; the renderer, films and sound read them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import REWARD_COMPONENTS, Component, Track
from racer_env.engine.rewards import COMPONENT_CAPACITY
from racer_viewer.timing import Timing

Colour = tuple[int, int, int]
Cars = NDArray[Any]
"""Rows of `racer_env.engine.CAR`."""

_INTERPOLATED = ("x", "y", "vx", "vy", "speed", "yaw_rate", "steer", "throttle", "brake", "slip_angle", "rays")
"""Columns that are interpolated linearly between two ticks."""

MAX_MOVE = 6.0
"""Distance that no car drives in a tick [units]."""


@dataclass(frozen=True)
class CarStyle:
    """Appearance of a car. A ghost is translucent and leaves no tyre marks."""

    name: str
    colour: Colour
    ghost: bool = False


@dataclass(frozen=True, eq=False)
class PolicyInsight:
    """Outputs of the followed car's policy for its current observation.

    value: expected return, in rewards normalised as in training; None without a value function.
    spread: (3,) standard deviation of steer, throttle and brake; None without a distribution.
    sensitivity: (3, 14) derivative of each action with respect to each observed value.
    """

    value: float | None
    spread: NDArray[np.float32] | None
    sensitivity: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """State of everything visible after one tick.

    cars: one row of `CAR` for each car; never written again.
    styles: one for each car.
    focus: index of the followed car.
    observation: (14,) observation of the followed car.
    totals: (COMPONENT_CAPACITY,) reward components of the followed car, summed over its episode.
    reward_components: the components of the race's config, which `totals` begins with.
    gaps: time of each car behind (+) or ahead of (−) the followed one [s]; empty without opponents.
    places: position of each car in the race, from 1; empty without opponents.
    wrong_way: the followed car drives backwards.
    """

    track: Track
    cars: Cars
    styles: tuple[CarStyle, ...]
    focus: int = 0
    observation: NDArray[np.float32] = field(default_factory=lambda: np.zeros(14, np.float32))
    totals: NDArray[np.float64] = field(default_factory=lambda: np.zeros(COMPONENT_CAPACITY))
    reward_components: tuple[Component, ...] = REWARD_COMPONENTS
    insight: PolicyInsight | None = None
    timing: Timing | None = None
    gaps: tuple[float, ...] = ()
    places: tuple[int, ...] = ()
    wrong_way: bool = False

    @property
    def car(self) -> Any:
        """Row of the followed car."""
        return self.cars[self.focus]


@dataclass(frozen=True, eq=False)
class InterpolatedFrame:
    """A frame between two snapshots, which may be the same: `share` 0 is `before`, 1 is `after`."""

    before: Snapshot
    after: Snapshot
    share: float = 1.0


def cars_between(before: Snapshot, after: Snapshot, share: float) -> Cars:
    """Return the cars of `after`, moved back to a time between two ticks; 0 is `before`, 1 is `after`.

    A car that did not drive from one position to the other (new episode, other track, put back) is not moved.
    """
    cars = after.cars.copy()
    if share >= 1.0 or before.track is not after.track or len(before.cars) != len(cars):
        return cars
    old, back = before.cars, 1.0 - share
    drove = cars["step_count"] == old["step_count"] + 1
    drove &= np.abs(cars["x"] - old["x"]) + np.abs(cars["y"] - old["y"]) < MAX_MOVE
    for name in _INTERPOLATED:
        change = (old[name] - cars[name]) * back
        cars[name] += np.where(drove if change.ndim == 1 else drove[:, None], change, 0.0)
    turn = (old["heading"] - cars["heading"] + math.pi) % (2.0 * math.pi) - math.pi
    cars["heading"] += np.where(drove, turn * back, 0.0)
    return cars
