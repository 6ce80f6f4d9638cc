"""The contract: what comes over a boundary is checked here, once, and is trusted behind it.

This much of it needs no engine: that of the racer stands in `racer_contract`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from racer_env.errors import ContractError

LARGEST = sys.float_info.max
LONGEST_QUOTE = 80
"""Characters of a wrong value in a message."""

_NUMBERS = frozenset((float, int))


class Contract:
    """What every observation, reward and end flag of an environment must be. Values come as JSON gives them."""

    def __init__(self, low: ArrayLike, high: ArrayLike, dtype: DTypeLike = np.float32) -> None:
        self._dtype = np.dtype(dtype)
        self._low, self._high = (np.nan_to_num(np.asarray(bound, self._dtype)) for bound in (low, high))
        self._shape = self._low.shape

    def observation(self, value: Any) -> NDArray[Any]:
        """The observation as an array, if it has the shape, is finite and within bounds."""
        array = _array(value, self._shape, self._dtype)
        if array is None:
            raise ContractError(self._what_is_wrong(value))
        exact = exactly(array, self._dtype)
        if exact is None:
            raise ContractError(f"observation: values of {self._dtype} expected, got {short(value)}")
        self.within_bounds(exact)
        return exact

    def within_bounds(self, array: NDArray[Any]) -> None:
        """Raise unless all of an array, or of each of its rows, is finite and within bounds."""
        right = (array >= self._low) & (array <= self._high)
        if not right.all():
            at = tuple(int(i) for i in np.argwhere(~right)[0])
            place = at[len(at) - len(self._shape) :]
            low, high = self._low[place], self._high[place]
            raise ContractError(f"observation{list(at) if at else ''}: {low:g} to {high:g} expected, got {array[at]}")

    @staticmethod
    def reward(value: Any) -> float:
        return number("reward", value)

    @staticmethod
    def flag(name: str, value: Any) -> bool:
        if type(value) is not bool:
            raise ContractError(f"{name}: true or false expected, got {short(value)}")
        return value

    def _what_is_wrong(self, value: Any) -> str:
        """With a value that is not numbers of the shape."""
        try:
            array = np.array(value)
        except (TypeError, ValueError, OverflowError):  # rows of different lengths, or too many levels of them
            array = np.array(None)
        if array.dtype.kind in "iuf" and array.shape != self._shape:
            return f"observation: shape {self._shape} expected, got {array.shape}"
        return f"observation: numbers of shape {self._shape} expected, got {short(value)}"


def field(reply: Mapping[str, Any], name: str) -> Any:
    """A field that must be there."""
    try:
        return reply[name]
    except KeyError:
        raise ContractError(f"{name}: missing") from None


def number(name: str, value: Any) -> float:
    """A finite number, and no boolean."""
    if type(value) not in _NUMBERS or not abs(value) <= LARGEST:
        raise ContractError(f"{name}: a finite number expected, got {short(value)}")
    return float(value)


def short(value: Any) -> str:
    """For messages: what it is, in a line."""
    try:
        text = " ".join(repr(value).split())
    except RecursionError:
        return "something nested too deeply"
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 3] + "..."


def exactly(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """The array as another type, or None if that has not got all of its values. Only floats may be rounded."""
    if array.dtype == dtype:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(dtype)
    return cast if dtype.kind == "f" or (cast == array).all() else None


def _array(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Lists of lists as an array of some type; None unless they have the shape and numbers are all that is in them.

    Level by level, and all of a level at once: an image has ten thousands of numbers.
    """
    items: list[Any] = [value]
    for length in shape:
        if [*map(type, items)].count(list) < len(items) or [*map(len, items)].count(length) < len(items):
            return None
        items = [*chain.from_iterable(items)]
    kinds = [*map(type, items)]
    whole = kinds.count(int)
    if whole + kinds.count(float) < len(kinds):
        return None
    try:
        if whole < len(kinds):
            return np.array(items, np.float64).reshape(shape)
        if dtype == np.uint8:
            return np.frombuffer(bytearray(items), np.uint8).reshape(shape)
        return np.array(items, np.int64).reshape(shape)
    except (ValueError, OverflowError):  # there are larger numbers
        return _array_of_large(items, shape)


def _array_of_large(items: list[Any], shape: tuple[int, ...]) -> NDArray[Any] | None:
    array = np.array(items)
    return array.reshape(shape) if array.dtype.kind in "iuf" else None
