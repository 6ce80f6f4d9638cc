"""What a helper says of itself, held to what is expected of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from racer_env.bridge.contract import field, short
from racer_env.errors import ContractError
from racer_env.stdio.description import Bounds, Description
from racer_env.stdio.expected import DTYPES, Expected, fit

MOST_NUMBERS = 2**24
"""In an observation or an action: more would not fit into a reply."""
DEFAULT_ACTION_DTYPE = "float32"


def agreed(reply: Mapping[str, Any], expected: Expected) -> Description:
    """The description in a reply, if it makes sense and is the expected one."""
    shape, dtype = _shape("obs_shape", field(reply, "obs_shape")), _dtype("obs_dtype", field(reply, "obs_dtype"))
    actions = _actions(reply)
    _compare("obs_shape", expected.obs_shape, shape)
    _compare("obs_dtype", expected.obs_dtype, dtype)
    _compare("n_actions", expected.n_actions, None if isinstance(actions, Bounds) else actions)
    _compare("action_shape", expected.action_shape, actions.shape if isinstance(actions, Bounds) else None)
    told = _bounds("obs", reply, shape, dtype)
    low = _expected_bound("obs_low", expected.obs_low, told.low, "obs_low" in reply)
    high = _expected_bound("obs_high", expected.obs_high, told.high, "obs_high" in reply)
    _check_order("obs", low, high)
    return Description(Bounds(low, high), actions, takes_options=reply.get("reset_options") is True)


def _actions(reply: Mapping[str, Any]) -> int | Bounds:
    count = reply.get("n_actions")
    if count is None and "action_shape" in reply:
        shape = _shape("action_shape", reply["action_shape"])
        dtype = _dtype("action_dtype", reply.get("action_dtype", DEFAULT_ACTION_DTYPE))
        return _bounds("action", reply, shape, dtype)
    if type(count) is not int or count < 1:
        raise ContractError(f"n_actions: a whole number from 1, or an action_shape, expected, got {short(count)}")
    return count


def _shape(name: str, value: Any) -> tuple[int, ...]:
    if type(value) is not list or not all(type(length) is int and length >= 0 for length in value):
        raise ContractError(f"{name}: a list of whole numbers expected, got {short(value)}")
    if len(value) > 32 or math.prod(value) > MOST_NUMBERS:
        raise ContractError(f"{name}: at most {MOST_NUMBERS} numbers expected, got {short(value)}")
    return tuple(value)


def _dtype(name: str, value: Any) -> np.dtype[Any]:
    if not isinstance(value, str) or value not in DTYPES:
        raise ContractError(f"{name}: one of {', '.join(sorted(DTYPES))} expected, got {short(value)}")
    return np.dtype(value)


def _bounds(of: str, reply: Mapping[str, Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Bounds:
    smallest, largest = _limits(dtype)
    low = _bound(f"{of}_low", reply.get(f"{of}_low"), shape, dtype, smallest)
    high = _bound(f"{of}_high", reply.get(f"{of}_high"), shape, dtype, largest)
    _check_order(of, low, high)
    return Bounds(low, high)


def _check_order(of: str, low: NDArray[Any], high: NDArray[Any]) -> None:
    if not (low <= high).all():
        raise ContractError(
            f"{of}_low: at most {of}_high expected, got {short(low.tolist())} and {short(high.tolist())}"
        )


def _limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind == "f":
        return -math.inf, math.inf
    return (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)


def _bound(name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any], none: float) -> NDArray[Any]:
    """One number for all of a shape, or one for each; null is no bound."""
    try:
        told = np.array(value, object)
        numbers = np.array([none if each is None else each for each in told.flat], object).reshape(told.shape)
        right = {int, float}.issuperset(map(type, numbers.flat)) and told.shape in ((), shape)
        bound = np.broadcast_to(numbers, shape).astype(dtype) if right else None
    except (ValueError, OverflowError):
        bound = None
    if bound is None or np.isnan(bound.astype(np.float64)).any():
        raise ContractError(f"{name}: a {dtype}, or {dtype}s of shape {shape}, expected, got {short(value)}")
    return bound


def _expected_bound(name: str, expected: ArrayLike | None, told: NDArray[Any], is_told: bool) -> NDArray[Any]:
    if expected is None:
        return told
    bound = fit(np.asarray(expected), told.shape, told.dtype)
    if bound is None:
        raise ContractError(f"{name}: {short(expected)} expected, but it tells of {told.dtype}s of shape {told.shape}")
    if is_told and not np.array_equal(bound, told):
        raise ContractError(f"{name}: {short(bound.tolist())} expected, got {short(told.tolist())}")
    return bound


def _compare(name: str, expected: Any, told: Any) -> None:
    if expected is not None and expected != told:
        raise ContractError(f"{name}: {expected} expected, got {told}")
