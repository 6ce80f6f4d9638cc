"""Validation of values from another process: checked once where they arrive, trusted afterwards.

These helpers need no engine, so the stdio and games clients use them too. `messages` and `batch_format` build the
checks of the racer bridge on them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from racer_env.errors import ContractError, short

LARGEST = sys.float_info.max

_NUMBERS = frozenset((float, int))


class Contract:
    """Shape, type and bounds of an environment's observations, and checks of rewards and flags.

    Values are checked as a JSON decoder returns them.
    """

    def __init__(self, low: ArrayLike, high: ArrayLike, dtype: DTypeLike = np.float32) -> None:
        self._dtype = np.dtype(dtype)
        self._low, self._high = (np.nan_to_num(np.asarray(bound, self._dtype)) for bound in (low, high))
        self._shape = self._low.shape

    def observation(self, value: Any) -> NDArray[Any]:
        """Return an observation as an array; raise unless it has the right shape, is finite and within bounds."""
        array = _array(value, self._shape, self._dtype)
        if array is None:
            raise ContractError(self._describe_mismatch(value))
        exact = exactly(array, self._dtype)
        if exact is None:
            raise ContractError(f"observation: values of {self._dtype} expected, got {short(value)}")
        self.within_bounds(exact)
        return exact

    def within_bounds(self, array: NDArray[Any]) -> None:
        """Raise unless an observation, or each row of several, is finite and within bounds."""
        valid = (array >= self._low) & (array <= self._high)
        if not valid.all():
            at = tuple(int(i) for i in np.argwhere(~valid)[0])
            index = at[len(at) - len(self._shape) :]
            low, high = self._low[index], self._high[index]
            raise ContractError(f"observation{list(at) if at else ''}: {low:g} to {high:g} expected, got {array[at]}")

    @staticmethod
    def reward(value: Any) -> float:
        return number("reward", value)

    @staticmethod
    def flag(name: str, value: Any) -> bool:
        if type(value) is not bool:
            raise ContractError(f"{name}: true or false expected, got {short(value)}")
        return value

    def _describe_mismatch(self, value: Any) -> str:
        """Describe a value that is not an array of numbers of the right shape."""
        try:
            array = np.array(value)
        except (TypeError, ValueError, OverflowError):  # rows of different lengths, or too many levels
            array = np.array(None)
        if array.dtype.kind in "iuf" and array.shape != self._shape:
            return f"observation: shape {self._shape} expected, got {array.shape}"
        return f"observation: numbers of shape {self._shape} expected, got {short(value)}"


def field(reply: Mapping[str, Any], name: str) -> Any:
    """Return a required field."""
    try:
        return reply[name]
    except KeyError:
        raise ContractError(f"{name}: missing") from None


def number(name: str, value: Any) -> float:
    """Return a finite number as a float; booleans are no numbers."""
    if type(value) not in _NUMBERS or not abs(value) <= LARGEST:
        raise ContractError(f"{name}: a finite number expected, got {short(value)}")
    return float(value)


def exactly(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Return an array as another type, or None if that type cannot hold all values. Only floats may be rounded."""
    if array.dtype == dtype:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(dtype)
    return cast if dtype.kind == "f" or (cast == array).all() else None


def explain(error: Exception, message: Any) -> str:
    """Return a validation error of msgspec in the project's wording: place, expectation and value.

    message: the whole message as a decoder without a schema returns it.
    """
    problem, _, path = str(error).partition(" - at ")
    place = path.strip("`").removeprefix("$").removeprefix(".")
    for pattern, text in _PROBLEMS:
        if match := pattern.fullmatch(problem):
            expectation = text(*match.groups())
            break
    else:
        return f"{place}: {problem}" if place else problem
    if expectation.endswith("missing"):
        return f"{place}.{expectation}" if place else expectation
    if expectation.startswith("unknown"):
        return f"{place or 'message'}: {expectation}"
    return f"{place or 'message'}: {expectation} expected, got {short(_value_at(message, place))}"


_KINDS = {
    "float": "a finite number",
    "int": "a whole number",
    "bool": "true or false",
    "str": "a string",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_PROBLEMS: tuple[tuple[re.Pattern[str], Any], ...] = (
    (re.compile("Object missing required field `(.*)`"), lambda name: f"{name}: missing"),
    (re.compile("Object contains unknown field `(.*)`"), lambda name: f"unknown key {name!r}"),
    (re.compile("Expected `.*` >= (.*)"), lambda bound: f"at least {float(bound):.6g}"),
    (re.compile("Expected `.*` <= (.*)"), lambda bound: f"at most {float(bound):.6g}"),
    (re.compile("Expected `array` of length <= (.*)"), lambda length: f"a list of at most {length} values"),
    (re.compile("Expected `array` of length (.*)"), lambda length: f"a list of {length} values"),
    (re.compile("Expected `object` of length <= (.*)"), lambda length: f"an object of at most {length} values"),
    (re.compile("Expected `str` of length <= (.*)"), lambda length: f"a text of at most {length} characters"),
    (re.compile("(?:Number|Integer value) out of range"), lambda: "a finite number"),
    (
        re.compile("Expected `([a-z| ]*)`(?:, got `.*`)?"),
        lambda kinds: " or ".join(_KINDS.get(kind, kind) for kind in kinds.split(" | ")),
    ),
)
"""Errors of msgspec, and how each is worded."""
_PATH_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def _value_at(message: Any, place: str) -> Any:
    """Return the value at a place such as `info.lap` or `action[2]`."""
    for key, index in _PATH_STEP.findall(place):
        message = message[int(index)] if index else message[key]
    return message


def _array(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Convert nested lists to an array; return None unless they have the shape and hold nothing but numbers.

    Each level is checked at once, because an image has tens of thousands of numbers.
    """
    items: list[Any] = [value]
    for length in shape:
        if [*map(type, items)].count(list) < len(items) or [*map(len, items)].count(length) < len(items):
            return None
        items = [*chain.from_iterable(items)]
    kinds = [*map(type, items)]
    integers = kinds.count(int)
    if integers + kinds.count(float) < len(kinds):
        return None
    try:
        if integers < len(kinds):
            return np.array(items, np.float64).reshape(shape)
        if dtype == np.uint8:
            return np.frombuffer(bytearray(items), np.uint8).reshape(shape)
        return np.array(items, np.int64).reshape(shape)
    except (ValueError, OverflowError):  # integers beyond the type
        return _array_of_large(items, shape)


def _array_of_large(items: list[Any], shape: tuple[int, ...]) -> NDArray[Any] | None:
    array = np.array(items)
    return array.reshape(shape) if array.dtype.kind in "iuf" else None
