"""The bridge interface: everything an environment needs from a simulation, local or remote.

`embedded` implements it in this process and `client` over a WebSocket. Environments and the viewer use either without
knowing which.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from racer_env.engine import CAR, REWARD_COMPONENTS, Config, Start, Track
from racer_env.engine.simulation import Bools as Bools
from racer_env.engine.simulation import Observations as Observations
from racer_env.engine.tick import OBSERVATION_SIZE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
CarRow = np.void
"""One row of `racer_env.engine.CAR`; columns are read by name, as `row["x"]`."""
Info = dict[str, Any]
"""The info of one car: keys of the protocol, plain Python numbers."""

RAYS, SPEED, YAW_RATE, STEER, PROGRESS, CENTRE_DISTANCE = slice(0, 9), 9, 10, 11, 12, 13
"""Indices of the observation."""

OBSERVATION_LOW = np.zeros(OBSERVATION_SIZE, np.float32)
OBSERVATION_LOW[[YAW_RATE, STEER]] = -1.0
OBSERVATION_HIGH = np.ones(OBSERVATION_SIZE, np.float32)
ACTION_LOW = np.array([-1.0, 0.0, 0.0], np.float32)
ACTION_HIGH = np.ones(3, np.float32)

COMPONENT_KEYS = tuple(component.wire_name for component in REWARD_COMPONENTS)
"""Info keys of the reward components."""
RESET_KEYS = ("tick", "speed", "lap", "checkpoint", "stepCount")
"""Info keys of a reset."""
STEP_KEYS = (
    *COMPONENT_KEYS, "tick", "rawSpeed", "lap", "checkpoint", "stepCount", "wallContact", "stillnessCounter",
)  # fmt: skip
"""Info keys of a step."""


def component_keys(config: Config) -> tuple[str, ...]:
    """Return the info keys of a config's reward components: those of the table, then the names of its terms."""
    return (*COMPONENT_KEYS, *config.formulas)


def step_keys(config: Config) -> tuple[str, ...]:
    """Return the info keys of a step with a config; the terms come last."""
    return (*STEP_KEYS, *config.formulas)


DEFAULT_TRACK = "track-01"


@dataclass(frozen=True)
class Scenario:
    """Tracks, reward config and start of the episodes of an environment.

    tracks: circuit ids. If there are several, each episode draws one of them with `redraw`; without it, car i drives
        number i modulo their count. The embedded bridge also accepts paths of circuit files.
    config: reward weights and episode limits.
    start: ranges that the start of an episode is drawn from.
    redraw: whether each episode draws its track.
    """

    tracks: tuple[str, ...] = (DEFAULT_TRACK,)
    config: Config = field(default_factory=Config)
    start: Start = field(default_factory=Start)
    redraw: bool = False


class CarStep(NamedTuple):
    """Result of one tick of one car, in the order of Gymnasium's `step`."""

    observation: Observations
    reward: float
    terminated: bool
    truncated: bool
    info: Info


@dataclass(frozen=True)
class CarColumns:
    """Columns that the infos of N cars are made of, one row per car."""

    speed: Floats
    lap: Integers
    checkpoint: Integers
    step_count: Integers
    stillness: Integers
    wall_contact: Bools

    def rows(self, rows: Integers) -> CarColumns:
        """Return a copy of some rows."""
        return CarColumns(**{name: column[rows] for name, column in self.__dict__.items()})


@dataclass(frozen=True)
class BatchStep:
    """Result of one tick of N cars. The next step may overwrite the arrays: copy what must stay.

    `final_observations` and `final_cars` have one row for each car number in `ended`: the end of its episode. With
    auto-reset, these cars have already started the next one, which `observations` and `cars` show. Rewards,
    components, flags and finished laps always belong to the tick itself.
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
    """One car of a local or remote simulation."""

    @property
    def track(self) -> Track:
        """Track of the current episode."""
        ...

    @property
    def car(self) -> CarRow:
        """Copy of the car's row. A remote bridge has one only if it was opened with telemetry."""
        ...

    def reset(self, scenario: Scenario | None = None, seed: int | None = None) -> tuple[Observations, Info]:
        """Start an episode. Without a scenario the last one is used; without a seed the random state continues."""
        ...

    def step(self, action: ArrayLike) -> CarStep: ...

    def close(self) -> None: ...


class Batch(Protocol):
    """N cars of a local or remote simulation, stepped together.

    With auto-reset, a car whose episode ends starts the next one within the same step; without it, it drives on until
    it is reset.
    """

    @property
    def cars(self) -> NDArray[np.void]:
        """Copy of the rows (N,) of `racer_env.engine.CAR`. Only a local batch has them."""
        ...

    @property
    def tracks(self) -> tuple[Track, ...]:
        """Tracks by the number in the rows' column `track`. Only a local batch has them."""
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


def copy_rows(rows: Any) -> NDArray[np.void]:
    """Return a copy (N,) of rows of `CAR`. numpy's own copy of structured rows takes ten times as long."""
    return np.frombuffer(bytearray(rows.tobytes()), CAR)


def reset_info(speed: float, lap: int, checkpoint: int, step_count: int) -> Info:
    return {"tick": step_count, "speed": speed, "lap": lap, "checkpoint": checkpoint, "stepCount": step_count}


def complete_reset_info(info: Info, terms: Iterable[str] = ()) -> Info:
    """Return the info of a reset with all keys of a step. `speed` remains the car's speed, as the protocol has it.

    terms: names of the config's terms.
    """
    return {**_NOTHING_HAPPENED, **info, "rawSpeed": info["speed"], **dict.fromkeys(terms, 0.0)}


_NOTHING_HAPPENED: Info = {
    **dict.fromkeys(STEP_KEYS, 0), **dict.fromkeys(COMPONENT_KEYS, 0.0), "rawSpeed": 0.0, "wallContact": False
}  # fmt: skip


def set_step_columns(row: CarRow, action: ArrayLike, step: CarStep, config: Config) -> None:
    """Set the columns of a car's row that a step's request and reply carry."""
    row["action"], row["reward"] = action, step.reward
    keys = component_keys(config)
    row["components"][: len(keys)] = [step.info[key] for key in keys]
    row["terminated"], row["truncated"] = step.terminated, step.truncated
