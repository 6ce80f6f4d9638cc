"""StdioEnv: an environment in another process, or another language, as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import gymnasium
from gymnasium import spaces

from racer_env.stdio.client import StdioClient, hosting_command
from racer_env.stdio.schema import Bounds, Expected


class StdioEnv(gymnasium.Env[Any, Any]):
    """An environment that a helper process hosts.

    command: how the helper is started, as a list of words; `StdioEnv.hosting` knows that of ours.
    expected: what the helper must say of itself. The options are those of `StdioClient`.

    ## Action space
    `Discrete(n_actions)`, or a `Box` where the helper takes arrays (whole numbers if the environment has MultiDiscrete
    or MultiBinary actions).

    ## Observation space
    A `Box` with the helper's bounds, or without bounds if it tells none; `Discrete` for a single whole number.

    Reward, ends and info are the environment's. What breaks the contract raises, and the helper is ended.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(self, command: Sequence[str], expected: Expected | None = None, **options: Any) -> None:
        self.client = StdioClient(command, expected, **options)
        actions = self.client.description.actions
        self.observation_space = _observation_space(self.client.description.observation)
        self.action_space = _box(actions) if isinstance(actions, Bounds) else spaces.Discrete(actions)

    @classmethod
    def hosting(cls, env_id: str, make_kwargs: Mapping[str, Any] | None = None, **options: Any) -> Self:
        """An installed Gymnasium environment, in a process of its own."""
        return cls(hosting_command(env_id, make_kwargs), **options)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        observation, info = self.client.reset(seed, options)
        return self._member(observation), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.client.step(action)
        return self._member(observation), reward, terminated, truncated, info

    def close(self) -> None:
        self.client.close()

    def _member(self, observation: Any) -> Any:
        """Of the observation space: an array, or for a single number that."""
        return observation if observation.ndim else observation[()]


def _observation_space(bounds: Bounds) -> gymnasium.Space[Any]:
    if bounds.shape == () and bounds.dtype.kind in "iu":
        low, high = int(bounds.low), int(bounds.high)
        if high - low < 2**31:
            return spaces.Discrete(high - low + 1, start=low)
    return _box(bounds)


def _box(bounds: Bounds) -> spaces.Box:
    return spaces.Box(bounds.low, bounds.high, dtype=bounds.dtype.type)
