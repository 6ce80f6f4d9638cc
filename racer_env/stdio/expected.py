"""What a program may expect of a helper, before it has heard of it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from racer_env.bridge.contract import exactly, short
from racer_env.errors import RacerError

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
