"""Descriptions of environments: shapes, types and bounds of observations and actions.

A host describes its environment with `describe`; a client checks that description against an `Expected` with
`check_description`. Both check actions with `check_choice` and `check_array`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import ArrayLike, DTypeLike, NDArray

from racer_env.bridge.validation import exactly, field
from racer_env.errors import ActionError, ContractError, RacerError, short


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds of an array; `low` and `high` have its shape and type."""

    low: NDArray[Any]
    high: NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.low.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.low.dtype


@dataclass(frozen=True, eq=False)
class EnvDescription:
    """Observations and actions of an environment. An observation is always one array.

    actions: number of discrete actions, or the bounds of an action if it is an array.
    takes_options: whether `reset` takes options.
    """

    observation: Bounds
    actions: int | Bounds
    takes_options: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the reply to `describe`; those after obs_dtype are additive."""
        observation, actions = self.observation, self.actions
        fields: dict[str, Any] = {
            "n_actions": actions if isinstance(actions, int) else None,
            "obs_shape": list(observation.shape),
            "obs_dtype": str(observation.dtype),
            "obs_low": _compact(observation.low),
            "obs_high": _compact(observation.high),
        }
        if isinstance(actions, Bounds):
            fields["action_shape"] = list(actions.shape)
            fields["action_dtype"] = str(actions.dtype)
            fields["action_low"], fields["action_high"] = _finite(actions.low), _finite(actions.high)
        return {**fields, "reset_options": self.takes_options}


def describe(observations: Space[Any], actions: Space[Any]) -> EnvDescription:
    """Describe an environment; raise RacerError if a space cannot be sent as one array."""
    observation, action = _bounds(observations), _bounds(actions)
    if observation is None:
        raise RacerError(
            f"observations of a {type(observations).__name__} space cannot be sent: register the environment with "
            "gymnasium.wrappers.FlattenObservation around it"
        )
    if action is None:
        raise RacerError(
            f"actions of a {type(actions).__name__} space cannot be sent: register the environment with "
            "an ActionWrapper around it that takes Discrete or Box actions"
        )
    choices = int(actions.n) if isinstance(actions, spaces.Discrete) else action
    return EnvDescription(observation, choices, takes_options=True)


def _bounds(space: Space[Any]) -> Bounds | None:
    """Return the bounds of a space of arrays or numbers; None for other spaces."""
    if isinstance(space, spaces.Box):
        return Bounds(space.low, space.high)
    if isinstance(space, spaces.Discrete):
        return Bounds(*(np.asarray(bound, space.dtype) for bound in (space.start, space.start + space.n - 1)))
    if isinstance(space, spaces.MultiBinary):
        return Bounds(np.zeros(space.shape, space.dtype), np.ones(space.shape, space.dtype))
    if isinstance(space, spaces.MultiDiscrete):
        return Bounds(*(np.asarray(bound, space.dtype) for bound in (space.start, space.start + space.nvec - 1)))
    return None


def _compact(bound: NDArray[Any]) -> Any:
    """Return one number if all are equal; an image has thousands of them."""
    return _finite(bound.flat[0]) if bound.size and (bound == bound.flat[0]).all() else _finite(bound)


def _finite(bound: Any) -> Any:
    """Return a bound as JSON, with null for infinity."""
    numbers = np.asarray(bound, object)
    return np.where(np.isfinite(bound), numbers, np.full_like(numbers, None)).tolist()


MAX_NUMBERS = 2**24
"""Maximum number of values in an observation or an action; more would not fit into a reply."""
DEFAULT_ACTION_DTYPE = "float32"
DTYPES = frozenset(("bool", "float16", "float32", "float64")) | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected description of a helper; None accepts any value.

    obs_low and obs_high also apply to observations of helpers that send no bounds; a helper that sends bounds must send
    the same.
    """

    obs_shape: Sequence[int] | None = None
    obs_dtype: DTypeLike | None = None
    n_actions: int | None = None
    action_shape: Sequence[int] | None = None
    obs_low: ArrayLike | None = None
    obs_high: ArrayLike | None = None

    def __post_init__(self) -> None:
        """Refuse values that no helper can have, before a helper is started."""
        for name, checked in (
            ("obs_shape", _check_expected_shape("obs_shape", self.obs_shape)),
            ("obs_dtype", _check_expected_dtype(self.obs_dtype)),
            ("n_actions", _check_expected_count(self.n_actions)),
            ("action_shape", _check_expected_shape("action_shape", self.action_shape)),
            ("obs_low", _check_expected_bound("obs_low", self.obs_low)),
            ("obs_high", _check_expected_bound("obs_high", self.obs_high)),
        ):
            object.__setattr__(self, name, checked)
        low, high = self._fitted_bound("obs_low"), self._fitted_bound("obs_high")
        if low is not None and high is not None and not _is_ordered(low, high):
            raise RacerError(f"obs_low must be at most obs_high, not {short(self.obs_low)} and {short(self.obs_high)}")

    def _fitted_bound(self, name: str) -> NDArray[Any] | None:
        """Return a bound with the expected shape and type, as far as they are known."""
        bound = getattr(self, name)
        if bound is None:
            return None
        shape = bound.shape if self.obs_shape is None else tuple(self.obs_shape)
        dtype = bound.dtype if self.obs_dtype is None else np.dtype(self.obs_dtype)
        fitted = _fit(bound, shape, dtype)
        if fitted is None:
            raise RacerError(f"{name} must be a {dtype}, or {dtype}s of shape {shape}, not {short(bound.tolist())}")
        return fitted


def _fit(bound: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Broadcast a bound to a shape and type; return None if it does not fit."""
    exact = exactly(bound, dtype)
    try:
        return None if exact is None else np.broadcast_to(exact, shape)
    except ValueError:
        return None


def _is_ordered(low: NDArray[Any], high: NDArray[Any]) -> bool:
    try:
        return bool((low <= high).all())
    except ValueError:  # incompatible shapes
        return False


def _check_expected_shape(name: str, value: Sequence[int] | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    try:
        shape = tuple(map(operator.index, value))
    except TypeError:
        shape = (-1,)
    if any(length < 0 for length in shape):
        raise RacerError(f"{name} must be whole numbers, such as (84, 84, 3), not {short(value)}")
    return shape


def _check_expected_dtype(value: DTypeLike | None) -> np.dtype[Any] | None:
    try:
        dtype = None if value is None else np.dtype(value)
    except TypeError:
        dtype = np.dtype(object)
    if dtype is not None and dtype.name not in DTYPES:
        raise RacerError(f"obs_dtype must be one of {', '.join(sorted(DTYPES))}, not {short(value)}")
    return dtype


def _check_expected_count(value: Any) -> int | None:
    try:
        count = None if value is None else operator.index(value)
    except TypeError:
        count = 0
    if count is not None and count < 1:
        raise RacerError(f"n_actions must be a whole number from 1, not {short(value)}")
    return count


def _check_expected_bound(name: str, value: ArrayLike | None) -> NDArray[Any] | None:
    if value is None:
        return None
    try:
        bound = np.array(value)
    except ValueError:  # rows of different lengths
        bound = np.array(None)
    if bound.dtype.kind not in "biuf" or np.isnan(bound).any():
        raise RacerError(f"{name} must be numbers, not {short(value)}")
    return bound


def check_choice(value: Any, choices: int) -> int:
    """Return a discrete action from 0 to choices - 1; raise ActionError for anything else."""
    try:
        number = -1 if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < choices:
        raise ActionError(f"action: a whole number from 0 to {choices - 1} expected, got {short(value)}")
    return number


def check_array(value: Any, bounds: Bounds) -> NDArray[Any]:
    """Return an array action with the shape and type of the bounds; raise ActionError if it is not within them."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if array.dtype.kind not in "iuf" or array.shape != bounds.shape or _has_boolean(value):
        raise ActionError(f"action: numbers of shape {bounds.shape} expected, got {short(value)}")
    exact = exactly(array, bounds.dtype)
    if exact is None:
        raise ActionError(f"action: values of {bounds.dtype} expected, got {short(value)}")
    valid = np.isfinite(exact) & (exact >= bounds.low) & (exact <= bounds.high)
    if not valid.all():
        at = tuple(int(i) for i in np.argwhere(~valid)[0])
        low, high = bounds.low[at], bounds.high[at]
        raise ActionError(f"action{list(at)}: {low:g} to {high:g} expected, got {array[at]}")
    return exact


def _has_boolean(value: Any) -> bool:
    """Return whether nested lists contain a boolean."""
    return isinstance(value, bool) or (isinstance(value, list | tuple) and any(map(_has_boolean, value)))


def check_description(reply: Mapping[str, Any], expected: Expected) -> EnvDescription:
    """Return the description in a reply; raise ContractError if it is invalid or not the expected one."""
    shape = _check_shape("obs_shape", field(reply, "obs_shape"))
    dtype = _check_dtype("obs_dtype", field(reply, "obs_dtype"))
    actions = _check_actions(reply)
    _compare("obs_shape", expected.obs_shape, shape)
    _compare("obs_dtype", expected.obs_dtype, dtype)
    _compare("n_actions", expected.n_actions, None if isinstance(actions, Bounds) else actions)
    _compare("action_shape", expected.action_shape, actions.shape if isinstance(actions, Bounds) else None)
    received = _check_bounds("obs", reply, shape, dtype)
    low = _expected_bound("obs_low", expected.obs_low, received.low, "obs_low" in reply)
    high = _expected_bound("obs_high", expected.obs_high, received.high, "obs_high" in reply)
    _check_order("obs", low, high)
    return EnvDescription(Bounds(low, high), actions, takes_options=reply.get("reset_options") is True)


def _check_actions(reply: Mapping[str, Any]) -> int | Bounds:
    count = reply.get("n_actions")
    if count is None and "action_shape" in reply:
        shape = _check_shape("action_shape", reply["action_shape"])
        dtype = _check_dtype("action_dtype", reply.get("action_dtype", DEFAULT_ACTION_DTYPE))
        return _check_bounds("action", reply, shape, dtype)
    if type(count) is not int or count < 1:
        raise ContractError(f"n_actions: a whole number from 1, or an action_shape, expected, got {short(count)}")
    return count


def _check_shape(name: str, value: Any) -> tuple[int, ...]:
    if type(value) is not list or not all(type(length) is int and length >= 0 for length in value):
        raise ContractError(f"{name}: a list of whole numbers expected, got {short(value)}")
    if len(value) > 32 or math.prod(value) > MAX_NUMBERS:
        raise ContractError(f"{name}: at most {MAX_NUMBERS} numbers expected, got {short(value)}")
    return tuple(value)


def _check_dtype(name: str, value: Any) -> np.dtype[Any]:
    if not isinstance(value, str) or value not in DTYPES:
        raise ContractError(f"{name}: one of {', '.join(sorted(DTYPES))} expected, got {short(value)}")
    return np.dtype(value)


def _check_bounds(prefix: str, reply: Mapping[str, Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Bounds:
    smallest, largest = _type_limits(dtype)
    low = _check_bound(f"{prefix}_low", reply.get(f"{prefix}_low"), shape, dtype, smallest)
    high = _check_bound(f"{prefix}_high", reply.get(f"{prefix}_high"), shape, dtype, largest)
    _check_order(prefix, low, high)
    return Bounds(low, high)


def _check_order(prefix: str, low: NDArray[Any], high: NDArray[Any]) -> None:
    if not (low <= high).all():
        raise ContractError(
            f"{prefix}_low: at most {prefix}_high expected, got {short(low.tolist())} and {short(high.tolist())}"
        )


def _type_limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind == "f":
        return -math.inf, math.inf
    return (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)


def _check_bound(name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any], none: float) -> NDArray[Any]:
    """Return a bound with this shape; the value is one number, or one for each element, and null is unbounded."""
    try:
        received = np.array(value, object)
        numbers = np.array([none if each is None else each for each in received.flat], object).reshape(received.shape)
        valid = {int, float}.issuperset(map(type, numbers.flat)) and received.shape in ((), shape)
        bound = np.broadcast_to(numbers, shape).astype(dtype) if valid else None
    except (ValueError, OverflowError):
        bound = None
    if bound is None or np.isnan(bound.astype(np.float64)).any():
        raise ContractError(f"{name}: a {dtype}, or {dtype}s of shape {shape}, expected, got {short(value)}")
    return bound


def _expected_bound(name: str, expected: ArrayLike | None, received: NDArray[Any], is_sent: bool) -> NDArray[Any]:
    if expected is None:
        return received
    bound = _fit(np.asarray(expected), received.shape, received.dtype)
    if bound is None:
        raise ContractError(
            f"{name}: {short(expected)} expected, but observations are {received.dtype}s of shape {received.shape}"
        )
    if is_sent and not np.array_equal(bound, received):
        raise ContractError(f"{name}: {short(bound.tolist())} expected, got {short(received.tolist())}")
    return bound


def _compare(name: str, expected: Any, received: Any) -> None:
    if expected is not None and expected != received:
        raise ContractError(f"{name}: {expected} expected, got {received}")
