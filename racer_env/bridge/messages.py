"""Telemetry: the car's whole state in every reply, for those who asked for it in a reset.

What the values of N cars can be. Compiled: with arrays it would take many times as long as sending them.

What the reply to a step looks like if nothing at all is strange about it.

Decoding and checking in one go takes a fraction of the time that a look at each value takes. What does not fit may
still be right: the contract decides then, and says what is wrong.


The contract of a racer bridge, for one car and for many."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from types import GenericAlias
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from racer_env.bridge.interface import (
    COMPONENT_KEYS,
    OBSERVATION_HIGH,
    OBSERVATION_LOW,
    RESET_KEYS,
    STEP_KEYS,
    BatchStep,
    Bools,
    CarColumns,
    CarRow,
    Info,
    Observations,
    Step,
)
from racer_env.bridge.validation import Contract, field, number, short
from racer_env.engine import CAR, Track
from racer_env.engine.car import MAX_SPEED
from racer_env.engine.compiled import entry
from racer_env.engine.rewards import camel_case
from racer_env.errors import ContractError

_COLUMNS = (
    "x", "y", "heading", "vx", "vy", "speed", "yaw_rate", "surface", "steer", "throttle", "brake", "slip_angle", "lap",
    "checkpoint", "lap_ticks", "step_count", "wall_contact", "stillness", "arc", "centre_distance", "last_lap_ticks",
    "best_lap_ticks", "rays",
)  # fmt: skip
"""Columns of `engine.CAR` that are sent."""


WIRE_NAMES = {name: camel_case(name) for name in _COLUMNS}
TELEMETRY_KEYS = ("trackId", *WIRE_NAMES.values())
_TELEMETRY_VALUES = [((CAR.names or ()).index(column), key) for column, key in WIRE_NAMES.items()]
"""Index of a column in a row of `CAR`, and its name on the wire."""


def telemetry_of(car: CarRow, track: Track) -> dict[str, Any]:
    """Return the telemetry object of a car."""
    name, values = track.circuit.id if track.circuit else "", car.item()
    telemetry: dict[str, Any] = {"trackId": name, **{key: values[index] for index, key in _TELEMETRY_VALUES}}
    telemetry["rays"] = telemetry["rays"].tolist()
    return telemetry


def car_of(telemetry: Mapping[str, Any]) -> CarRow:
    """Return the row of a car from its telemetry. Columns that telemetry does not carry are 0."""
    row: CarRow = np.zeros(1, CAR)[0]
    for column, key in WIRE_NAMES.items():
        row[column] = telemetry[key]
    return row


SPEED_LIMIT = MAX_SPEED * (1.0 + 1e-9)
NOTHING = -1
COLUMNS = (
    "observation", "rewards", "components", "finished_lap_ticks",
    "speed", "lap", "checkpoint", "step_count", "stillness",
)  # fmt: skip
_OBSERVATION, _REWARD, _COMPONENTS, _FINISHED, _SPEED, _LAP, _CHECKPOINT, _STEP_COUNT, _STILLNESS = range(len(COLUMNS))

Place = tuple[int, int]
"""The number of a column and of a car."""


@entry
def wrong_value(
    low: Any,
    high: Any,
    observations: Any,
    rewards: Any,
    components: Any,
    finished_lap_ticks: Any,
    speed: Any,
    lap: Any,
    checkpoint: Any,
    step_count: Any,
    stillness: Any,
) -> Place:
    """Where the first value is that is not finite or out of its range, or NOTHING. There are as many cars as speeds."""
    for car in range(len(speed)):
        for i in range(len(low)):
            if not low[i] <= observations[car, i] <= high[i]:
                return _OBSERVATION, car
        if not math.isfinite(rewards[car]):
            return _REWARD, car
        for component in components[car]:
            if not math.isfinite(component):
                return _COMPONENTS, car
        if finished_lap_ticks[car] < 0:
            return _FINISHED, car
        if not 0.0 <= speed[car] <= SPEED_LIMIT:
            return _SPEED, car
        if lap[car] < 0:
            return _LAP, car
        if checkpoint[car] < 0:
            return _CHECKPOINT, car
        if step_count[car] < 0:
            return _STEP_COUNT, car
        if stillness[car] < 0:
            return _STILLNESS, car
    return NOTHING, NOTHING


@entry
def wrong_move(
    last_lap: Any,
    last_checkpoint: Any,
    last_step_count: Any,
    last_stillness: Any,
    lap: Any,
    checkpoint: Any,
    step_count: Any,
    stillness: Any,
) -> Place:
    """Where the first counter is that cannot have moved like that in one tick, or NOTHING."""
    for car in range(len(lap)):
        laps, gates = lap[car] - last_lap[car], checkpoint[car] - last_checkpoint[car]
        if laps != 0 and (laps != 1 or checkpoint[car] != 0):
            return _LAP, car
        if gates != 0 and gates != 1 and checkpoint[car] != 0:
            return _CHECKPOINT, car
        if step_count[car] != last_step_count[car] + 1:
            return _STEP_COUNT, car
        if stillness[car] != 0 and stillness[car] != last_stillness[car] + 1:
            return _STILLNESS, car
    return NOTHING, NOTHING


COUNTER_KEYS = ("tick", "lap", "checkpoint", "stepCount", "stillnessCounter")
LARGEST = sys.float_info.max


def _between(low: float, high: float) -> Any:
    return Annotated[float, msgspec.Meta(ge=low, le=high)]


_Finite = _between(-LARGEST, LARGEST)
_Observation = GenericAlias(tuple, tuple(map(_between, OBSERVATION_LOW.tolist(), OBSERVATION_HIGH.tolist())))
_KINDS = {
    **dict.fromkeys(COMPONENT_KEYS, _Finite),
    **dict.fromkeys(COUNTER_KEYS, Annotated[int, msgspec.Meta(ge=0)]),
    "rawSpeed": _between(0.0, SPEED_LIMIT),
    "wallContact": bool,
}
_Info = msgspec.defstruct("Info", [(key, _KINDS[key]) for key in STEP_KEYS], forbid_unknown_fields=True)
_Step = msgspec.defstruct(
    "Step",
    [
        ("type", Literal["step_result"]),
        ("observation", _Observation),
        ("reward", _Finite),
        ("terminated", bool),
        ("truncated", bool),
        ("info", _Info),
    ],
    forbid_unknown_fields=True,
)
_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_Step)


def decode_plain_step(content: bytes) -> Any | None:
    """The reply, with attributes named as its fields, or None if there is anything strange about it."""
    try:
        return _DECODER.decode(content)
    except ValueError:
        return None


_NUMERIC = ("rewards", "components")
_WRONG_ENDS = "ended: it must list exactly the cars that are terminated or truncated"


class RacerContract(Contract):
    """The contract of a racer bridge, over the course of an episode: counters only move as they can."""

    def __init__(self) -> None:
        super().__init__(OBSERVATION_LOW, OBSERVATION_HIGH)
        self._last: Info = {}

    def reset_result(self, reply: Mapping[str, Any]) -> tuple[NDArray[np.float32], Info]:
        """Observation and info of a reset."""
        observation, info = self.observation(field(reply, "observation")), _info(reply, RESET_KEYS)
        speed = number("info.speed", info["speed"])
        _speed_in_range("info.speed", speed)
        for key in ("tick", "lap", "checkpoint", "stepCount"):
            _counter(f"info.{key}", info[key])
        if info["stepCount"] != 0:
            raise ContractError(f"info.stepCount: 0 expected after a reset, got {info['stepCount']}")
        self._last = {**info, "stillnessCounter": 0}
        return observation, info

    def plain_step(self, content: bytes) -> Step | None:
        """As `step_result` of what is in this JSON, in a fraction of the time.

        None if it is not plainly right, and `step_result` must look at it more closely.
        """
        step = decode_plain_step(content)
        if step is None:
            return None
        info: Info = msgspec.structs.asdict(step.info)
        self._count(info)
        return Step(np.array(step.observation, np.float32), step.reward, step.terminated, step.truncated, info)

    def step_result(self, reply: Mapping[str, Any]) -> Step:
        """Everything that a step gave."""
        observation, info = self.observation(field(reply, "observation")), dict(_info(reply, STEP_KEYS))
        for key in (*COMPONENT_KEYS, "rawSpeed"):
            info[key] = number(f"info.{key}", info[key])
        _speed_in_range("info.rawSpeed", info["rawSpeed"])
        self.flag("info.wallContact", info["wallContact"])
        for key in COUNTER_KEYS:
            _counter(f"info.{key}", info[key])
        step = Step(
            observation,
            self.reward(field(reply, "reward")),
            self.flag("terminated", field(reply, "terminated")),
            self.flag("truncated", field(reply, "truncated")),
            info,
        )
        self._count(info)
        return step

    def _count(self, info: Info) -> None:
        """Raise unless every counter moved as it can in one tick, and remember them."""
        last = self._last
        for key in ("tick", "stepCount"):
            if info[key] != last[key] + 1:
                raise ContractError(f"info.{key}: {last[key] + 1} expected, got {info[key]}")
        lap, checkpoint, still = info["lap"], info["checkpoint"], info["stillnessCounter"]
        if lap - last["lap"] not in (0, 1):
            raise ContractError(f"info.lap: {last['lap']} or {last['lap'] + 1} expected, got {lap}")
        if checkpoint not in (last["checkpoint"], last["checkpoint"] + 1, 0):
            raise ContractError(f"info.checkpoint: it went from {last['checkpoint']} to {checkpoint}")
        if lap != last["lap"] and checkpoint != 0:
            raise ContractError(f"info.checkpoint: 0 expected with a new lap, got {checkpoint}")
        if still not in (0, last["stillnessCounter"] + 1):
            raise ContractError(f"info.stillnessCounter: it went from {last['stillnessCounter']} to {still}")
        self._last = info


class BatchContract(Contract):
    """The contract of N cars at once."""

    def __init__(self) -> None:
        super().__init__(OBSERVATION_LOW, OBSERVATION_HIGH)
        self._last: CarColumns | None = None

    def reset_result(self, step: BatchStep, mask: Bools | None) -> BatchStep:
        self._check_values(step, step.observations, step.cars)
        fresh = step.cars.step_count if mask is None else step.cars.step_count[mask]
        if fresh.any():
            raise ContractError(f"step_count: 0 expected after a reset, got {fresh.max()}")
        self._last = step.cars
        return step

    def step_result(self, step: BatchStep) -> BatchStep:
        """The step, if every value of it is as it can be after the step before."""
        if self._last is None:
            raise ContractError("a batch step without a reset before it")
        self._check_values(step, step.observations, step.cars)
        over = step.terminated | step.truncated
        if np.count_nonzero(over) != len(step.ended):
            raise ContractError(_WRONG_ENDS)
        if len(step.ended):
            self._check_ends(step, over, self._last)
        else:
            _check_moves(self._last, step.cars)
        self._last = step.cars
        return step

    def _check_ends(self, step: BatchStep, over: Bools, last: CarColumns) -> None:
        """Raise unless what ended is as it can be, what started anew is at its start, and what goes on has moved."""
        ended, going = step.ended, np.flatnonzero(~over)
        if not np.array_equal(np.flatnonzero(over), ended):
            raise ContractError(_WRONG_ENDS)
        self._check_values(step, step.final_observations, step.final_cars, "final ")
        _check_moves(last.rows(ended), step.final_cars)
        if step.cars.step_count[ended].any():
            raise ContractError("step_count: 0 expected where a car has started anew")
        _check_moves(last.rows(going), step.cars.rows(going))

    def _check_values(self, step: BatchStep, observations: Observations, cars: CarColumns, which: str = "") -> None:
        column, _ = wrong_value(
            self._low,
            self._high,
            observations,
            step.rewards,
            step.components,
            step.finished_lap_ticks,
            cars.speed,
            cars.lap,
            cars.checkpoint,
            cars.step_count,
            cars.stillness,
        )
        if column == NOTHING:
            return
        name = COLUMNS[column]
        if name == "observation":
            self.within_bounds(observations)
        if name == "speed":
            raise ContractError(f"{which}speed: 0 to {MAX_SPEED:g} expected")
        raise ContractError(f"{which}{name}: {'finite numbers' if name in _NUMERIC else '0 or more'} expected")


def _check_moves(last: CarColumns, now: CarColumns) -> None:
    """Raise unless every counter of these cars moved as it can in one tick."""
    column, car = wrong_move(
        last.lap,
        last.checkpoint,
        last.step_count,
        last.stillness,
        now.lap,
        now.checkpoint,
        now.step_count,
        now.stillness,
    )
    if column != NOTHING:
        raise ContractError(f"{COLUMNS[column]}: car {car} cannot have moved like that in one tick")


def _info(reply: Mapping[str, Any], keys: tuple[str, ...]) -> Info:
    info = field(reply, "info")
    if type(info) is not dict:
        raise ContractError(f"info: an object expected, got {short(info)}")
    if info.keys() != set(keys):
        for key in keys:
            field(info, key)
        raise ContractError(f"info: unknown key {next(key for key in info if key not in keys)!r}")
    return info


def _counter(name: str, value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ContractError(f"{name}: a whole number from 0 expected, got {short(value)}")
    return value


def _speed_in_range(name: str, speed: float) -> None:
    if not 0.0 <= speed <= SPEED_LIMIT:
        raise ContractError(f"{name}: 0 to {MAX_SPEED:g} expected, got {speed}")
