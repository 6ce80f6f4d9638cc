"""Numpy arrays out of pickle records."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_viewer.agents.pickles import Record

MODULES = ("numpy.core", "numpy._core")
"""Before numpy 2, and since."""
RECONSTRUCT = frozenset(f"{module}.multiarray._reconstruct" for module in MODULES)
SCALAR = frozenset(f"{module}.multiarray.scalar" for module in MODULES)
FROM_BUFFER = frozenset(f"{module}.numeric._frombuffer" for module in MODULES)
DTYPE = "numpy.dtype"
ALLOWED = frozenset((*RECONSTRUCT, *SCALAR, *FROM_BUFFER, DTYPE, "numpy.ndarray"))

NUMBERS = frozenset(("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"))
BYTE_ORDERS = ("<", ">", "|", "=")


def to_floats(value: Any) -> NDArray[np.float64]:
    """A number, numpy scalar or numpy array as doubles. ValueError or TypeError where it is none."""
    if isinstance(value, int | float):
        return np.array(float(value))
    if not isinstance(value, Record):
        raise TypeError("not a number or an array of numbers")
    if value.name in SCALAR:
        dtype, buffer = value.arguments
        return _from_bytes(buffer, dtype, (), "C")
    if value.name in RECONSTRUCT:
        _, shape, dtype, is_fortran, buffer = value.state
        return _from_bytes(buffer, dtype, shape, "F" if is_fortran else "C")
    if value.name in FROM_BUFFER:
        buffer, dtype, shape, order = value.arguments
        return _from_bytes(buffer, dtype, shape, order)
    raise TypeError(f"{value.name} is not an array of numbers")


def _from_bytes(buffer: Any, dtype: Any, shape: Any, order: Any) -> NDArray[np.float64]:
    if not isinstance(buffer, bytes | bytearray) or order not in ("C", "F"):
        raise TypeError("an array without content")
    if not isinstance(shape, tuple) or len(shape) > 8 or not all(type(size) is int and size >= 0 for size in shape):
        raise TypeError("an array without a shape")
    numbers = np.frombuffer(buffer, _dtype(dtype))
    if numbers.size != math.prod(shape):
        raise ValueError("an array that is shorter or longer than its shape")
    return numbers.reshape(shape, order=order).astype(np.float64)


def _dtype(record: Any) -> np.dtype[Any]:
    if not isinstance(record, Record) or record.name != DTYPE:
        raise TypeError("an array without a type")
    code, byte_order = record.arguments[0], record.state[1]
    if code not in NUMBERS or byte_order not in BYTE_ORDERS:
        raise TypeError("an array of something else than numbers")
    return np.dtype(f"{byte_order}{code}")
