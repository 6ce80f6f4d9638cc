"""Replies as JSON: what an environment gives is often numpy, and sometimes nothing that JSON could carry."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson

from racer_env.bridge.contract import exactly
from racer_env.errors import ContractError
from racer_env.stdio.description import Bounds

DEEPEST = 16
"""Levels of an info that are sent; what lies deeper is left out, and so is what contains itself."""
LONGEST_ERROR = 2000
"""Characters."""
SMALLEST_INTEGER, LARGEST_INTEGER = -(2**63), 2**64 - 1

_NOTHING = object()
"""What JSON cannot carry."""


def encode(reply: Mapping[str, Any]) -> bytes:
    """A line, with its end."""
    return orjson.dumps(reply, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)


def refusal(error: BaseException) -> dict[str, Any]:
    """The reply that says what was wrong."""
    text = f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
    return {"ok": False, "error": text.encode("utf-8", "backslashreplace").decode()}


def observation(value: Any, bounds: Bounds) -> Any:
    """What is sent of an observation, to the bit, if it has the shape and the type that were described."""
    array = np.asarray(value)
    if array.shape != bounds.shape:
        raise ContractError(f"observation: shape {bounds.shape} expected, got {array.shape}")
    exact = exactly(array, bounds.dtype)
    if exact is None:
        raise ContractError(f"observation: values of {bounds.dtype} expected, got {array.dtype}")
    if exact.dtype.kind == "f":
        if not np.isfinite(exact).all():
            at = tuple(int(i) for i in np.argwhere(~np.isfinite(exact))[0])
            raise ContractError(f"observation{list(at)}: a finite number expected, got {exact[at]}")
        exact = exact.astype(np.float64)
    elif exact.dtype.kind == "b":
        exact = exact.astype(np.uint8)
    return np.ascontiguousarray(exact) if exact.ndim else exact.item()


def reward(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ContractError(f"reward: a finite number expected, got {number}")
    return number


def info(value: Any) -> dict[str, Any]:
    """Those parts of an info that JSON can carry. Numpy becomes plain; a part with NaN or infinity is left out."""
    plain = _plain(value, DEEPEST)
    return plain if isinstance(plain, dict) else {}


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()  # and on: what is in an array of objects may be anything
    if isinstance(value, str):
        return str(value) if _is_unicode(value) else _NOTHING
    if isinstance(value, int):
        return int(value) if SMALLEST_INTEGER <= value <= LARGEST_INTEGER else _NOTHING
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _NOTHING
    if depth and isinstance(value, Mapping):
        parts = {key: _plain(part, depth - 1) for key, part in value.items() if type(key) is str and _is_unicode(key)}
        return {key: part for key, part in parts.items() if part is not _NOTHING}
    if depth and isinstance(value, list | tuple):
        items = [_plain(item, depth - 1) for item in value]
        return _NOTHING if _NOTHING in items else items
    return _NOTHING


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
