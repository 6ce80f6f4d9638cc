"""What there is to see at one tick: every mode makes snapshots; the renderer, the recorder and replays take them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import REWARD_COMPONENTS, Track
from racer_viewer.timing import Timing

Colour = tuple[int, int, int]
Cars = NDArray[Any]
"""Rows of `racer_env.engine.CAR`."""

_EVEN = ("x", "y", "vx", "vy", "speed", "yaw_rate", "steer", "throttle", "brake", "slip_angle", "rays")
"""Columns that change evenly from tick to tick."""


@dataclass(frozen=True)
class CarStyle:
    """How a car is shown. A ghost is see-through and leaves no marks."""

    name: str
    colour: Colour
    ghost: bool = False


@dataclass(frozen=True, eq=False)
class PolicyInsight:
    """What the agent that drives the followed car makes of what it sees now.

    value: the return that it expects, in rewards as normalised in its training; None if it has no value function.
    spread: (3,) standard deviation of steer, throttle and brake; None if it has none.
    sensitivity: (3, 14) change of each action with each observed value.
    """

    value: float | None
    spread: NDArray[np.float32] | None
    sensitivity: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One tick.

    cars: a row of `CAR` for each, the snapshot's own; styles has as many.
    focus: number of the followed car.
    observation: (14,) of the followed car.
    totals: (6,) reward components of the followed car summed up over its episode.
    gaps: for every car how far it is behind (+) or ahead (−) of the followed one [s]; empty where nobody races.
    """

    track: Track
    cars: Cars
    styles: tuple[CarStyle, ...]
    focus: int = 0
    observation: NDArray[np.float32] = field(default_factory=lambda: np.zeros(14, np.float32))
    totals: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(REWARD_COMPONENTS)))
    insight: PolicyInsight | None = None
    timing: Timing | None = None
    gaps: tuple[float, ...] = ()

    @property
    def car(self) -> Any:
        """The row of the followed car."""
        return self.cars[self.focus]


@dataclass(frozen=True, eq=False)
class InterpolatedFrame:
    """A picture: between two snapshots, 0 is `before` and 1 is `after`; they may be the same."""

    before: Snapshot
    after: Snapshot
    share: float = 1.0


def cars_between(before: Snapshot, after: Snapshot, share: float) -> Cars:
    """The cars of `after`, moved back to a moment between two ticks; 0 is `before`, 1 is `after`.

    A car that did not drive from the one place to the other (a new episode, another track) is shown where it is now.
    """
    cars = after.cars.copy()
    if share >= 1.0 or before.track is not after.track or len(before.cars) != len(cars):
        return cars
    old, back = before.cars, 1.0 - share
    drove = cars["step_count"] == old["step_count"] + 1
    for name in _EVEN:
        change = (old[name] - cars[name]) * back
        cars[name] += np.where(drove if change.ndim == 1 else drove[:, None], change, 0.0)
    turn = (old["heading"] - cars["heading"] + math.pi) % (2.0 * math.pi) - math.pi
    cars["heading"] += np.where(drove, turn * back, 0.0)
    return cars
