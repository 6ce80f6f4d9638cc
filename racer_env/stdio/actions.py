"""What an action must be, on both sides of the pipe."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.bridge.contract import exactly, short
from racer_env.errors import ActionError
from racer_env.stdio.description import Bounds


def checked_choice(value: Any, choices: int) -> int:
    """One of so many actions, numbered from 0."""
    try:
        number = -1 if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < choices:
        raise ActionError(f"action: a whole number from 0 to {choices - 1} expected, got {short(value)}")
    return number


def checked_array(value: Any, bounds: Bounds) -> NDArray[Any]:
    """An array of the shape and the type of the bounds, finite and within them."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if array.dtype.kind not in "iuf" or array.shape != bounds.shape or _has_boolean(value):
        raise ActionError(f"action: numbers of shape {bounds.shape} expected, got {short(value)}")
    exact = exactly(array, bounds.dtype)
    if exact is None:
        raise ActionError(f"action: values of {bounds.dtype} expected, got {short(value)}")
    right = np.isfinite(exact) & (exact >= bounds.low) & (exact <= bounds.high)
    if not right.all():
        at = tuple(int(i) for i in np.argwhere(~right)[0])
        low, high = bounds.low[at], bounds.high[at]
        raise ActionError(f"action{list(at)}: {low:g} to {high:g} expected, got {array[at]}")
    return exact


def _has_boolean(value: Any) -> bool:
    """Whether true or false is in lists that are numbers otherwise."""
    return isinstance(value, bool) or (isinstance(value, list | tuple) and any(map(_has_boolean, value)))
