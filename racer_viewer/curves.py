"""The story of a training run in figures: what its charts are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SECTORS = 3


@dataclass(frozen=True)
class Event:
    """Something that happened.

    steps: that all cars together had made. seconds: since the run began, without pauses.
    kind: "begin", "first gate", "first lap", "best", "checkpoint", "weights", "paused", "resumed", "problem" or "end".
    """

    steps: int
    seconds: float
    kind: str
    text: str


@dataclass(frozen=True, eq=False)
class Curves:
    """A run as far as it is.

    name: of the run.
    steps, seconds: (n,) of each update of the policy, rising.
    values: by the learner's own names ("rollout/ep_rew_mean", "reward/progress", "train/approx_kl", ...), (n,), NaN
        where an update has no such figure.
    laps: (m, 2) of each finished lap of the learning cars: steps and time [s].
    sectors: (m, 1 + SECTORS): steps, and the times of the thirds of a lap [s].
    policies: (p,) steps at which a policy was kept, to drive again.
    """

    name: str = ""
    steps: Floats = field(default_factory=lambda: np.zeros(0))
    seconds: Floats = field(default_factory=lambda: np.zeros(0))
    values: Mapping[str, Floats] = field(default_factory=dict)
    laps: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    sectors: Floats = field(default_factory=lambda: np.zeros((0, 1 + SECTORS)))
    events: tuple[Event, ...] = ()
    policies: Floats = field(default_factory=lambda: np.zeros(0))


SWARM_CAR = np.dtype([
    ("x", "f4"), ("y", "f4"), ("heading", "f4"), ("speed", "f4"),
    ("quality", "f4"), ("episode", "i4"), ("lap", "i4"), ("track", "i4"),
])  # fmt: skip
"""A car that learns, as much of it as is shown.

quality: 0 to 1, how well it does: its reward in the last seconds among what is usual in this run.
episode: counts the car's episodes; when it changes, one ended where the car was before.
track: number of the circuit among those of the run.
"""


@dataclass(frozen=True, eq=False)
class Swarm:
    """All cars that learn, at one tick. tick: counts all ticks of the run; cars: (N,) of `SWARM_CAR`."""

    tick: int
    cars: NDArray[np.void]
