"""Binary batch messages: one request steps N cars, and one reply returns all their results.

All numbers are little-endian. A message is a header of 16 bytes followed by arrays without gaps:

| header | |
|---|---|
| 4 bytes | `RCRB` |
| u16 | version of this format, 1 |
| u16 | kind: 1 step, 2 result |
| u32 | N, the number of cars |
| u32 | K, the number of cars whose episode ended in this step (0 in a request) |

A step carries f64 (N, 3) actions. A result carries the arrays of `COLUMNS` with N rows, zero bytes up to a multiple of
8, and then those of `FINAL_COLUMNS` with K rows: the end of the episodes of the cars in `ended`. With reward terms,
`components` is wider by one for each of them.

`BatchContract` validates the values of a decoded result. Its loops are compiled, because array expressions would take
many times as long as the transfer.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.bridge.interface import (
    COMPONENT_KEYS,
    OBSERVATION_HIGH,
    OBSERVATION_LOW,
    BatchStep,
    Bools,
    CarColumns,
    Floats,
    Observations,
)
from racer_env.bridge.messages import SPEED_LIMIT
from racer_env.bridge.validation import Contract
from racer_env.engine.car import MAX_SPEED
from racer_env.engine.compiled import entry
from racer_env.engine.tick import OBSERVATION_SIZE
from racer_env.errors import ContractError

MAGIC, VERSION = b"RCRB", 1
STEP, RESULT = 1, 2
HEADER = struct.Struct("<4sHHII")
ACTION_BYTES = 24
"""Size of one car's action in a step [bytes]."""

FLOAT, INTEGER, SMALL_FLOAT, FLAG = np.dtype("<f8"), np.dtype("<i8"), np.dtype("<f4"), np.dtype("?")
Column = tuple[str, np.dtype[Any], int]
"""Name, type and number of values per row."""

_CARS: tuple[Column, ...] = (
    ("speed", FLOAT, 1),
    ("lap", INTEGER, 1),
    ("checkpoint", INTEGER, 1),
    ("step_count", INTEGER, 1),
    ("stillness", INTEGER, 1),
)
COLUMNS: tuple[Column, ...] = (
    ("rewards", FLOAT, 1),
    ("components", FLOAT, len(COMPONENT_KEYS)),
    ("finished_lap_ticks", INTEGER, 1),
    *_CARS,
    ("observations", SMALL_FLOAT, OBSERVATION_SIZE),
    ("terminated", FLAG, 1),
    ("truncated", FLAG, 1),
    ("wall_contact", FLAG, 1),
)
FINAL_COLUMNS: tuple[Column, ...] = (
    ("ended", INTEGER, 1),
    *_CARS,
    ("observations", SMALL_FLOAT, OBSERVATION_SIZE),
    ("wall_contact", FLAG, 1),
)


def encode_step(actions: Floats) -> bytes:
    """Return the request that steps N cars with these (N, 3) actions."""
    return HEADER.pack(MAGIC, VERSION, STEP, len(actions), 0) + actions.astype(FLOAT, copy=False).tobytes()


def decode_step(message: bytes, num_cars: int) -> Floats:
    """Return the (N, 3) actions of a request for `num_cars` cars."""
    kind, count, _ = _decode_header(message)
    if kind != STEP or count != num_cars:
        raise ContractError(f"a batch step (kind {STEP}) of {num_cars} cars expected, got kind {kind} of {count}")
    if len(message) != HEADER.size + num_cars * ACTION_BYTES:
        raise ContractError(f"a step of {num_cars} cars has {num_cars * ACTION_BYTES} bytes of actions")
    return np.frombuffer(message, FLOAT, offset=HEADER.size).reshape(num_cars, 3)


def encode_result(step: BatchStep) -> bytes:
    header = HEADER.pack(MAGIC, VERSION, RESULT, len(step.rewards), len(step.ended))
    columns = _packed(COLUMNS, {**vars(step), **vars(step.cars)})
    finals = {"ended": step.ended, "observations": step.final_observations, **vars(step.final_cars)}
    return b"".join(
        (header, columns, bytes(-len(columns) % 8), _packed(FINAL_COLUMNS, finals) if len(step.ended) else b"")
    )


def max_result_size(cars: int, components: int = len(COMPONENT_KEYS)) -> int:
    """Return the size of the largest result of a number of cars [bytes]: each episode ends, and 7 bytes fill up."""
    return HEADER.size + _layout(cars, components).itemsize + 7 + _final_layout(cars).itemsize


def decode_result(message: bytes, num_cars: int, components: int = len(COMPONENT_KEYS)) -> BatchStep:
    """Return the result for `num_cars` cars: views of the message, whose values are not yet validated.

    components: number of reward components of each car.
    """
    kind, count, ended = _decode_header(message)
    if kind != RESULT or count != num_cars or ended > num_cars:
        raise ContractError(f"batch result: kind {kind} with {count} cars, {ended} ended; {num_cars} were stepped")
    layout, final_layout = _layout(count, components), _final_layout(ended)
    finals_at = HEADER.size + layout.itemsize + -layout.itemsize % 8
    if len(message) != finals_at + final_layout.itemsize:
        raise ContractError(f"batch result: {len(message)} bytes do not fit {count} cars of which {ended} ended")
    columns = np.ndarray((), layout, message, HEADER.size)
    finals = np.ndarray((), final_layout, message, finals_at) if ended else _NO_FINALS
    _check_flags(columns, "terminated", "truncated", "wall_contact")
    if ended:
        _check_flags(finals, "wall_contact")
    return BatchStep(
        columns["observations"],
        columns["rewards"],
        columns["components"],
        columns["terminated"],
        columns["truncated"],
        columns["finished_lap_ticks"],
        _cars(columns),
        finals["ended"],
        finals["observations"],
        _cars(finals) if ended else _NO_CARS,
    )


def _decode_header(message: bytes) -> tuple[int, int, int]:
    if len(message) < HEADER.size:
        raise ContractError(f"batch message: {len(message)} bytes are too few for the header of {HEADER.size}")
    magic, version, kind, count, ended = HEADER.unpack_from(message)
    if magic != MAGIC or version != VERSION:
        raise ContractError(f"batch message: it does not start with {MAGIC.decode()} version {VERSION}")
    return kind, count, ended


def _packed(columns: tuple[Column, ...], values: Mapping[str, NDArray[Any]]) -> bytes:
    return b"".join([values[name].astype(kind, copy=False).tobytes() for name, kind, _ in columns])


def _record(columns: tuple[Column, ...], rows: int) -> np.dtype[np.void]:
    """Return the type of one record that holds all columns."""
    return np.dtype([(name, kind, (rows, width) if width > 1 else (rows,)) for name, kind, width in columns])


@lru_cache(64)
def _layout(cars: int, components: int) -> np.dtype[np.void]:
    return _record(
        tuple((name, kind, components if name == "components" else width) for name, kind, width in COLUMNS), cars
    )


@lru_cache(64)
def _final_layout(cars: int) -> np.dtype[np.void]:
    return _record(FINAL_COLUMNS, cars)


def _check_flags(columns: NDArray[np.void], *names: str) -> None:
    for name in names:
        if columns[name].tobytes().strip(b"\0\1"):
            raise ContractError(f"batch result: {name} must be bytes of 0 or 1")


def _cars(columns: NDArray[np.void]) -> CarColumns:
    return CarColumns(
        columns["speed"],
        columns["lap"],
        columns["checkpoint"],
        columns["step_count"],
        columns["stillness"],
        columns["wall_contact"],
    )


_NO_FINALS = np.zeros((), _final_layout(0))
_NO_CARS = _cars(_NO_FINALS)


NONE = -1
"""Column and car number if all values are valid."""
CHECKED_COLUMNS = (
    "observation", "rewards", "components", "finished_lap_ticks",
    "speed", "lap", "checkpoint", "step_count", "stillness",
)  # fmt: skip
(_OBSERVATION, _REWARD, _COMPONENTS, _FINISHED, _SPEED, _LAP, _CHECKPOINT, _STEP_COUNT, _STILLNESS) = range(
    len(CHECKED_COLUMNS)
)
_FLOAT_COLUMNS = ("rewards", "components")
_WRONG_ENDS = "ended: it must list exactly the cars that are terminated or truncated"

Cell = tuple[int, int]
"""Number of a column in `CHECKED_COLUMNS`, and of a car."""


class BatchContract(Contract):
    """Ranges of the values of N cars, and rules between one result and the next.

    auto_reset: whether a car whose episode ends starts the next one within the same step.
    """

    def __init__(self, auto_reset: bool = True) -> None:
        super().__init__(OBSERVATION_LOW, OBSERVATION_HIGH)
        self._auto_reset = auto_reset
        self._last: CarColumns | None = None

    def reset(self, step: BatchStep, mask: Bools | None) -> BatchStep:
        """Return the result of a reset of all cars, or of those in the mask."""
        self._check_values(step, step.observations, step.cars)
        fresh = step.cars.step_count if mask is None else step.cars.step_count[mask]
        if fresh.any():
            raise ContractError(f"step_count: 0 expected after a reset, got {fresh.max()}")
        self._last = step.cars
        return step

    def step(self, step: BatchStep) -> BatchStep:
        """Return the result of a step."""
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
        """Check the final values of cars that ended, their new start if they have one, and all other counters."""
        ended, others = step.ended, np.flatnonzero(~over)
        if not np.array_equal(np.flatnonzero(over), ended):
            raise ContractError(_WRONG_ENDS)
        self._check_values(step, step.final_observations, step.final_cars, "final ")
        _check_moves(last.rows(ended), step.final_cars)
        if self._auto_reset and step.cars.step_count[ended].any():
            raise ContractError("step_count: 0 expected for a car that started its next episode")
        if not self._auto_reset:
            _check_moves(last.rows(ended), step.cars.rows(ended))
        _check_moves(last.rows(others), step.cars.rows(others))

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
        if column == NONE:
            return
        name = CHECKED_COLUMNS[column]
        if name == "observation":
            self.within_bounds(observations)
        if name == "speed":
            raise ContractError(f"{which}speed: 0 to {MAX_SPEED:g} expected")
        raise ContractError(f"{which}{name}: {'finite numbers' if name in _FLOAT_COLUMNS else '0 or more'} expected")


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
    if column != NONE:
        raise ContractError(f"{CHECKED_COLUMNS[column]}: car {car} cannot have moved like that in one tick")


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
) -> Cell:
    """Return the first cell whose value is not finite or out of range. `speed` has as many rows as there are cars."""
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
    return NONE, NONE


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
) -> Cell:
    """Return the cell of the first counter that cannot have moved like that in one tick."""
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
    return NONE, NONE
