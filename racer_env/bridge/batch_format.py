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
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.bridge.interface import BatchStep, CarColumns, Floats
from racer_env.engine.tick import OBSERVATION_SIZE
from racer_env.errors import ContractError

MAGIC, VERSION = b"RCRB", 1
STEP, RESULT = 1, 2
HEADER = struct.Struct("<4sHHII")
ACTION_BYTES = 24
"""Of one car in a step."""

Column = tuple[str, str, int]
"""Name, type, values in a row."""

_CARS: tuple[Column, ...] = (
    ("speed", "<f8", 1),
    ("lap", "<i8", 1),
    ("checkpoint", "<i8", 1),
    ("step_count", "<i8", 1),
    ("stillness", "<i8", 1),
)
COLUMNS: tuple[Column, ...] = (
    ("rewards", "<f8", 1),
    ("components", "<f8", 6),
    ("finished_lap_ticks", "<i8", 1),
    *_CARS,
    ("observations", "<f4", OBSERVATION_SIZE),
    ("terminated", "|b1", 1),
    ("truncated", "|b1", 1),
    ("wall_contact", "|b1", 1),
)
FINAL_COLUMNS: tuple[Column, ...] = (
    ("ended", "<i8", 1),
    *_CARS,
    ("observations", "<f4", OBSERVATION_SIZE),
    ("wall_contact", "|b1", 1),
)


def encode_step(actions: Floats) -> bytes:
    """The request that steps N cars with these (N, 3) actions."""
    return HEADER.pack(MAGIC, VERSION, STEP, len(actions), 0) + actions.astype("<f8", copy=False).tobytes()


def decode_step(message: bytes, num_cars: int) -> Floats:
    """The actions of a request for so many cars."""
    kind, count, _ = _decode_header(message)
    if kind != STEP or count != num_cars:
        raise ContractError(f"a batch step (kind {STEP}) of {num_cars} cars is due, not kind {kind} of {count}")
    if len(message) != HEADER.size + num_cars * ACTION_BYTES:
        raise ContractError(f"a step of {num_cars} cars has {num_cars * ACTION_BYTES} bytes of actions")
    return np.frombuffer(message, "<f8", offset=HEADER.size).reshape(num_cars, 3)


def encode_result(step: BatchStep) -> bytes:
    values = {**step.__dict__, **step.cars.__dict__}
    finals = {"ended": step.ended, "observations": step.final_observations, **step.final_cars.__dict__}
    arrays = b"".join(_bytes(values[name], kind) for name, kind, _ in COLUMNS)
    return b"".join((
        HEADER.pack(MAGIC, VERSION, RESULT, len(step.rewards), len(step.ended)),
        arrays,
        bytes(-len(arrays) % 8),
        *(_bytes(finals[name], kind) for name, kind, _ in FINAL_COLUMNS if len(step.ended)),
    ))  # fmt: skip


def decode_result(message: bytes, num_cars: int) -> BatchStep:
    """What came back for so many cars: views of the message, in the right shapes, not yet held to the contract."""
    kind, count, ended = _decode_header(message)
    if kind != RESULT or count != num_cars or ended > num_cars:
        raise ContractError(f"batch result: kind {kind} with {count} cars, {ended} ended; {num_cars} were stepped")
    size = _row_bytes(COLUMNS) * count
    if len(message) != HEADER.size + size + -size % 8 + _row_bytes(FINAL_COLUMNS) * ended:
        raise ContractError(f"batch result: {len(message)} bytes do not fit {count} cars of which {ended} ended")
    columns = dict(_arrays(message, HEADER.size, COLUMNS, count))
    finals = dict(_arrays(message, HEADER.size + size + -size % 8, FINAL_COLUMNS, ended))
    names = CarColumns.__dataclass_fields__
    return BatchStep(
        cars=CarColumns(**{name: columns.pop(name) for name in names}),
        final_cars=CarColumns(**{name: finals[name] for name in names}),
        final_observations=finals["observations"],
        ended=finals["ended"],
        **columns,
    )


def _decode_header(message: bytes) -> tuple[int, int, int]:
    if len(message) < HEADER.size:
        raise ContractError(f"batch message: {len(message)} bytes are too few for the header of {HEADER.size}")
    magic, version, kind, count, ended = HEADER.unpack_from(message)
    if magic != MAGIC or version != VERSION:
        raise ContractError(f"batch message: it does not start with {MAGIC.decode()} version {VERSION}")
    return kind, count, ended


def _bytes(array: NDArray[Any], kind: str) -> bytes:
    return array.astype(kind, copy=False).tobytes()


def _row_bytes(columns: tuple[Column, ...]) -> int:
    return sum(np.dtype(kind).itemsize * width for _, kind, width in columns)


def _arrays(message: bytes, offset: int, columns: tuple[Column, ...], rows: int) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, kind, width in columns:
        flat = np.frombuffer(message, kind, rows * width, offset)
        if kind == "|b1" and flat.view(np.uint8).max(initial=0) > 1:
            raise ContractError(f"batch result: {name} must be bytes of 0 or 1")
        yield name, flat.reshape(rows, width) if width > 1 else flat
        offset += flat.nbytes
