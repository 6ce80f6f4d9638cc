"""What an environment takes and gives, as `describe` tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray

from racer_env.errors import RacerError


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
