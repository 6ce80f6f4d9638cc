"""StdioEnv: a Gymnasium environment that runs in another process, possibly in another language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import gymnasium
from gymnasium import spaces

from racer_env.stdio.client import StdioClient, hosting_command
from racer_env.stdio.schema import Bounds, Expected


class StdioEnv(gymnasium.Env[Any, Any]):
    """Environment that a helper process hosts.

    command: the helper's command line as a list; `StdioEnv.hosting` uses this package's own helper.
    expected: the description that the helper must give.
    options: further arguments for `StdioClient`.

    ## Action space
    `Discrete(n_actions)`, or a `Box` if actions are arrays (of integers if the environment has MultiDiscrete or
    MultiBinary actions).

    ## Observation space
    A `Box` with the helper's bounds, or without bounds if it sends none; `Discrete` for a single integer.

    ## Rewards, episode end and info
    Those of the hosted environment. An invalid reply raises ContractError and ends the helper.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(self, command: Sequence[str], expected: Expected | None = None, **options: Any) -> None:
        self.client = StdioClient(command, expected, **options)
        actions = self.client.description.actions
        self.observation_space = _observation_space(self.client.description.observation)
        self.action_space = _box(actions) if isinstance(actions, Bounds) else spaces.Discrete(actions)

    @classmethod
    def hosting(cls, env_id: str, make_kwargs: Mapping[str, Any] | None = None, **options: Any) -> Self:
        """Host an installed Gymnasium environment in a process of its own."""
        return cls(hosting_command(env_id, make_kwargs), **options)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        observation, info = self.client.reset(seed, options)
        return self._to_space(observation), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.client.step(action)
        return self._to_space(observation), reward, terminated, truncated, info

    def close(self) -> None:
        self.client.close()

    def _to_space(self, observation: Any) -> Any:
        """Return an observation as a member of the observation space: an array, or a scalar."""
        return observation if observation.ndim else observation[()]


def _observation_space(bounds: Bounds) -> gymnasium.Space[Any]:
    if bounds.shape == () and bounds.dtype.kind in "iu":
        low, high = int(bounds.low), int(bounds.high)
        if high - low < 2**31:
            return spaces.Discrete(high - low + 1, start=low)
    return _box(bounds)


def _box(bounds: Bounds) -> spaces.Box:
    return spaces.Box(bounds.low, bounds.high, dtype=bounds.dtype.type)
