"""What an environment takes and gives, as `describe` tells it.

What a program may expect of a helper, before it has heard of it.

What an action must be, on both sides of the pipe.

What a helper says of itself, held to what is expected of it."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import ArrayLike, DTypeLike, NDArray

from racer_env.bridge.validation import exactly, field, short
from racer_env.errors import ActionError, ContractError, RacerError


@dataclass(frozen=True, eq=False)
class Bounds:
    """An array of numbers: the smallest and the largest that each may be. They have its shape and its type."""

    low: NDArray[Any]
    high: NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.low.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.low.dtype


@dataclass(frozen=True, eq=False)
class Description:
    """Observations are always one array.

    actions: how many there are to choose from, numbered from 0; or, where an action is an array, its bounds.
    takes_options: whether `reset` takes options.
    """

    observation: Bounds
    actions: int | Bounds
    takes_options: bool = False

    def to_json(self) -> dict[str, Any]:
        """The fields of the reply to `describe`. Those after obs_dtype are additive."""
        observation, actions = self.observation, self.actions
        fields: dict[str, Any] = {
            "n_actions": actions if isinstance(actions, int) else None,
            "obs_shape": list(observation.shape),
            "obs_dtype": str(observation.dtype),
            "obs_low": _in_short(observation.low),
            "obs_high": _in_short(observation.high),
        }
        if isinstance(actions, Bounds):
            fields["action_shape"] = list(actions.shape)
            fields["action_dtype"] = str(actions.dtype)
            fields["action_low"], fields["action_high"] = _finite(actions.low), _finite(actions.high)
        return {**fields, "reset_options": self.takes_options}


def describe(observations: Space[Any], actions: Space[Any]) -> Description:
    """Raise for what cannot be sent as one array."""
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
    return Description(observation, choices, takes_options=True)


def _bounds(space: Space[Any]) -> Bounds | None:
    """Of a space whose members are arrays, or numbers."""
    if isinstance(space, spaces.Box):
        return Bounds(space.low, space.high)
    if isinstance(space, spaces.Discrete):
        return Bounds(*(np.asarray(bound, space.dtype) for bound in (space.start, space.start + space.n - 1)))
    if isinstance(space, spaces.MultiBinary):
        return Bounds(np.zeros(space.shape, space.dtype), np.ones(space.shape, space.dtype))
    if isinstance(space, spaces.MultiDiscrete):
        return Bounds(*(np.asarray(bound, space.dtype) for bound in (space.start, space.start + space.nvec - 1)))
    return None


def _in_short(bound: NDArray[Any]) -> Any:
    """One number where all are the same: an image has thousands of them."""
    return _finite(bound.flat[0]) if bound.size and (bound == bound.flat[0]).all() else _finite(bound)


def _finite(bound: Any) -> Any:
    """As JSON has it, with null where there is no bound."""
    numbers = np.asarray(bound, object)
    return np.where(np.isfinite(bound), numbers, np.full_like(numbers, None)).tolist()


DTYPES = frozenset(("bool", "float16", "float32", "float64")) | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


@dataclass(frozen=True, eq=False)
class Expected:
    """What a helper must say of itself. None: it may be anything.

    Existing helpers tell no bounds. With obs_low and obs_high their observations are held to these; a helper that does
    tell must tell the same.
    """

    obs_shape: Sequence[int] | None = None
    obs_dtype: DTypeLike | None = None
    n_actions: int | None = None
    action_shape: Sequence[int] | None = None
    obs_low: ArrayLike | None = None
    obs_high: ArrayLike | None = None

    def __post_init__(self) -> None:
        """What cannot be expected of any helper is refused here, before one is started."""
        for name, checked in (
            ("obs_shape", _checked_shape("obs_shape", self.obs_shape)),
            ("obs_dtype", _checked_dtype(self.obs_dtype)),
            ("n_actions", _checked_count(self.n_actions)),
            ("action_shape", _checked_shape("action_shape", self.action_shape)),
            ("obs_low", _checked_bound("obs_low", self.obs_low)),
            ("obs_high", _checked_bound("obs_high", self.obs_high)),
        ):
            object.__setattr__(self, name, checked)
        low, high = self._as_far_as_known("obs_low"), self._as_far_as_known("obs_high")
        if low is not None and high is not None and not _is_ordered(low, high):
            raise RacerError(f"obs_low must be at most obs_high, not {short(self.obs_low)} and {short(self.obs_high)}")

    def _as_far_as_known(self, name: str) -> NDArray[Any] | None:
        """A bound, if there is one, as far as shape and type are known."""
        bound = getattr(self, name)
        if bound is None:
            return None
        shape = bound.shape if self.obs_shape is None else tuple(self.obs_shape)
        dtype = bound.dtype if self.obs_dtype is None else np.dtype(self.obs_dtype)
        fitted = fit(bound, shape, dtype)
        if fitted is None:
            raise RacerError(f"{name} must be a {dtype}, or {dtype}s of shape {shape}, not {short(bound.tolist())}")
        return fitted


def fit(bound: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """A bound for all of a shape, or None if it is none for that or not of the type."""
    exact = exactly(bound, dtype)
    try:
        return None if exact is None else np.broadcast_to(exact, shape)
    except ValueError:
        return None


def _is_ordered(low: NDArray[Any], high: NDArray[Any]) -> bool:
    try:
        return bool((low <= high).all())
    except ValueError:  # of shapes that do not go together
        return False


def _checked_shape(name: str, value: Sequence[int] | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    try:
        shape = tuple(map(operator.index, value))
    except TypeError:
        shape = (-1,)
    if any(length < 0 for length in shape):
        raise RacerError(f"{name} must be whole numbers, as (84, 84, 3), not {short(value)}")
    return shape


def _checked_dtype(value: DTypeLike | None) -> np.dtype[Any] | None:
    try:
        dtype = None if value is None else np.dtype(value)
    except TypeError:
        dtype = np.dtype(object)
    if dtype is not None and dtype.name not in DTYPES:
        raise RacerError(f"obs_dtype must be one of {', '.join(sorted(DTYPES))}, not {short(value)}")
    return dtype


def _checked_count(value: Any) -> int | None:
    try:
        count = None if value is None else operator.index(value)
    except TypeError:
        count = 0
    if count is not None and count < 1:
        raise RacerError(f"n_actions must be a whole number from 1, not {short(value)}")
    return count


def _checked_bound(name: str, value: ArrayLike | None) -> NDArray[Any] | None:
    if value is None:
        return None
    try:
        bound = np.array(value)
    except ValueError:  # rows of different lengths
        bound = np.array(None)
    if bound.dtype.kind not in "biuf" or np.isnan(bound).any():
        raise RacerError(f"{name} must be numbers, not {short(value)}")
    return bound


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
    told = _agreed_bounds("obs", reply, shape, dtype)
    low = _expected_bound("obs_low", expected.obs_low, told.low, "obs_low" in reply)
    high = _expected_bound("obs_high", expected.obs_high, told.high, "obs_high" in reply)
    _check_order("obs", low, high)
    return Description(Bounds(low, high), actions, takes_options=reply.get("reset_options") is True)


def _actions(reply: Mapping[str, Any]) -> int | Bounds:
    count = reply.get("n_actions")
    if count is None and "action_shape" in reply:
        shape = _shape("action_shape", reply["action_shape"])
        dtype = _dtype("action_dtype", reply.get("action_dtype", DEFAULT_ACTION_DTYPE))
        return _agreed_bounds("action", reply, shape, dtype)
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


def _agreed_bounds(of: str, reply: Mapping[str, Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Bounds:
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
