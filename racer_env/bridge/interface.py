"""What a bridge is: the one door between an environment and whatever simulates its cars.

Two kinds stand behind it, `embedded` (in this process) and `client` (over a WebSocket). Those who drive, a
`RacerEnv` or a viewer, do not know which they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from racer_env.engine import REWARD_COMPONENTS, Config, Start, Track
from racer_env.engine.simulation import Bools as Bools
from racer_env.engine.simulation import Observations as Observations
from racer_env.engine.tick import OBSERVATION_SIZE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
CarRow = np.void
"""One row of `racer_env.engine.CAR`; columns are read by name, as `row["x"]`."""
Info = dict[str, Any]
"""Of one car, with the keys of the protocol, as plain Python numbers."""

RAYS, SPEED, YAW_RATE, STEER, PROGRESS, CENTRE_DISTANCE = slice(0, 9), 9, 10, 11, 12, 13
"""Where in the observation what is."""

OBSERVATION_LOW = np.zeros(OBSERVATION_SIZE, np.float32)
OBSERVATION_LOW[[YAW_RATE, STEER]] = -1.0
OBSERVATION_HIGH = np.ones(OBSERVATION_SIZE, np.float32)
ACTION_LOW = np.array([-1.0, 0.0, 0.0], np.float32)
ACTION_HIGH = np.ones(3, np.float32)

COMPONENT_KEYS = tuple(component.wire_name for component in REWARD_COMPONENTS)
"""Keys of the reward components in `info`."""
RESET_KEYS = ("tick", "speed", "lap", "checkpoint", "stepCount")
STEP_KEYS = (
    *COMPONENT_KEYS, "tick", "rawSpeed", "lap", "checkpoint", "stepCount", "wallContact", "stillnessCounter",
)  # fmt: skip

DEFAULT_TRACK = "track-01"


@dataclass(frozen=True)
class Scenario:
    """Where episodes are driven and what counts there.

    tracks: circuit ids; with several, `redraw` gives every episode one of them, else car i drives number i modulo
    their count. The embedded bridge takes paths of circuit files too.
    """

    tracks: tuple[str, ...] = (DEFAULT_TRACK,)
    config: Config = field(default_factory=Config)
    start: Start = field(default_factory=Start)
    redraw: bool = False


class Step(NamedTuple):
    """What one tick gave for one car, in the order that Gymnasium gives it."""

    observation: Observations
    reward: float
    terminated: bool
    truncated: bool
    info: Info


@dataclass(frozen=True)
class CarColumns:
    """What the infos of many cars are made of, one row a car."""

    speed: Floats
    lap: Integers
    checkpoint: Integers
    step_count: Integers
    stillness: Integers
    wall_contact: Bools

    def rows(self, rows: Integers) -> CarColumns:
        """A copy of some rows."""
        return CarColumns(**{name: column[rows] for name, column in self.__dict__.items()})


@dataclass(frozen=True)
class BatchStep:
    """What one tick gave for N cars. The arrays may be overwritten by the next step: copy what must stay.

    A car that ended has already started anew: `observations` and `cars` show its new episode, the `final` ones how the
    old one ended, with a row for each number in `ended`. Rewards, components, flags and finished laps are always those
    of the tick.
    """

    observations: Observations
    rewards: Floats
    components: Floats
    terminated: Bools
    truncated: Bools
    finished_lap_ticks: Integers
    cars: CarColumns
    ended: Integers
    final_observations: Observations
    final_cars: CarColumns


class Bridge(Protocol):
    """One car somewhere."""

    @property
    def track(self) -> Track:
        """The track of the present episode."""
        ...

    @property
    def car(self) -> CarRow:
        """Copy of the car's row. A remote bridge has one only if it was opened with telemetry."""
        ...

    def reset(self, scenario: Scenario | None = None, seed: int | None = None) -> tuple[Observations, Info]:
        """Start an episode; what is None stays as it was."""
        ...

    def step(self, action: ArrayLike) -> Step: ...

    def close(self) -> None: ...


class Batch(Protocol):
    """N cars somewhere, stepped together, each starting anew when its episode ends."""

    @property
    def cars(self) -> NDArray[np.void]:
        """Copy of the rows (N,) of `racer_env.engine.CAR`. Only a local batch has them."""
        ...

    def reset(
        self,
        scenario: Scenario | None = None,
        seeds: int | Sequence[int | None] | None = None,
        mask: Bools | None = None,
    ) -> BatchStep:
        """Start an episode for all cars, or for those in the mask."""
        ...

    def step(self, actions: ArrayLike) -> BatchStep: ...

    def close(self) -> None: ...


def reset_info(speed: float, lap: int, checkpoint: int, step_count: int) -> Info:
    return {"tick": step_count, "speed": speed, "lap": lap, "checkpoint": checkpoint, "stepCount": step_count}


def set_result(row: CarRow, action: ArrayLike, step: Step) -> None:
    """Set the columns of a car's row that a step's request and reply carry."""
    row["action"], row["reward"] = action, step.reward
    row["components"] = [step.info[key] for key in COMPONENT_KEYS]
    row["terminated"], row["truncated"] = step.terminated, step.truncated
