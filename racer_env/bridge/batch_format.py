"""The binary batch: one message steps N cars, and one comes back.

All numbers are little-endian. A message is a header of 16 bytes and then arrays, one after the other without gaps:

| header | |
|---|---|
| 4 bytes | `RCRB` |
| u16 | version of this format, 1 |
| u16 | kind: 1 step, 2 result |
| u32 | N, the number of cars |
| u32 | K, the number of cars whose episode ended in this step (0 in a request) |

A step carries f64 (N, 3) actions. A result carries the arrays of `COLUMNS` with N rows, zero bytes up to a multiple of
8, and then those of `FINAL_COLUMNS` with K rows: how the episodes of the cars `ended` ended.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.bridge.interface import BatchStep, CarColumns, Floats
from racer_env.engine import REWARD_COMPONENTS
from racer_env.engine.tick import OBSERVATION_SIZE
from racer_env.errors import ContractError

MAGIC, VERSION = b"RCRB", 1
STEP, RESULT = 1, 2
HEADER = struct.Struct("<4sHHII")
ACTION_BYTES = 24
"""Of one car in a step."""

FLOAT, INTEGER, SMALL_FLOAT, FLAG = np.dtype("<f8"), np.dtype("<i8"), np.dtype("<f4"), np.dtype("?")
Column = tuple[str, np.dtype[Any], int]
"""Name, type, values in a row."""

_CARS: tuple[Column, ...] = (
    ("speed", FLOAT, 1),
    ("lap", INTEGER, 1),
    ("checkpoint", INTEGER, 1),
    ("step_count", INTEGER, 1),
    ("stillness", INTEGER, 1),
)
COLUMNS: tuple[Column, ...] = (
    ("rewards", FLOAT, 1),
    ("components", FLOAT, len(REWARD_COMPONENTS)),
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
    """The request that steps N cars with these (N, 3) actions."""
    return HEADER.pack(MAGIC, VERSION, STEP, len(actions), 0) + actions.astype(FLOAT, copy=False).tobytes()


def decode_step(message: bytes, num_cars: int) -> Floats:
    """The actions of a request for so many cars."""
    kind, count, _ = _decode_header(message)
    if kind != STEP or count != num_cars:
        raise ContractError(f"a batch step (kind {STEP}) of {num_cars} cars is due, not kind {kind} of {count}")
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


def decode_result(message: bytes, num_cars: int) -> BatchStep:
    """What came back for so many cars: views of the message, in the right shapes, not yet held to the contract."""
    kind, count, ended = _decode_header(message)
    if kind != RESULT or count != num_cars or ended > num_cars:
        raise ContractError(f"batch result: kind {kind} with {count} cars, {ended} ended; {num_cars} were stepped")
    layout, final_layout = _layout(count), _final_layout(ended)
    finals_at = HEADER.size + layout.itemsize + -layout.itemsize % 8
    if len(message) != finals_at + final_layout.itemsize:
        raise ContractError(f"batch result: {len(message)} bytes do not fit {count} cars of which {ended} ended")
    columns = np.ndarray((), layout, message, HEADER.size)
    finals = np.ndarray((), final_layout, message, finals_at) if ended else _NOBODY
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
    """All columns as one record."""
    return np.dtype([(name, kind, (rows, width) if width > 1 else (rows,)) for name, kind, width in columns])


@lru_cache(64)
def _layout(cars: int) -> np.dtype[np.void]:
    """What follows the header for so many cars."""
    return _record(COLUMNS, cars)


@lru_cache(64)
def _final_layout(cars: int) -> np.dtype[np.void]:
    """What comes last for so many cars that ended."""
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


_NOBODY = np.zeros((), _final_layout(0))
_NO_CARS = _cars(_NOBODY)
