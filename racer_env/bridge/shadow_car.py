"""Following a car on a server that does not say where it is.

Existing servers send no position. A copy of the engine here is fed with the same actions, and each tick its observation
is held against the one that came back: as long as they agree, the copy is where the car is. Where they part it is said,
and nothing is drawn as fact any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from racer_env.bridge.client import BridgeClient
from racer_env.bridge.embedded import EmbeddedBridge
from racer_env.bridge.interface import Info, Observations, Scenario, Step
from racer_env.engine import Track

TOLERANCE = 1e-4
"""Of an observation's value. Two right engines differ by rounding only, some thousand times less."""


class FollowedCar:
    """Our own copy of a car that is driven elsewhere.

    in_step: whether it agreed with everything that came back in this episode.
    largest_deviation: of any observed value so far in this episode, while in step.
    out_of_step_since: the tick of this episode where it first disagreed.
    """

    def __init__(self) -> None:
        self._copy = EmbeddedBridge()
        self.largest_deviation = 0.0
        self.out_of_step_since: int | None = None

    @property
    def in_step(self) -> bool:
        return self.out_of_step_since is None

    @property
    def track(self) -> Track:
        return self._copy.track

    @property
    def car(self) -> Mapping[str, Any]:
        """Where the car is by our reckoning: right while in step."""
        return self._copy.car

    def reset(self, scenario: Scenario, observation: Observations) -> None:
        """An episode was started over there, with this first observation."""
        self.largest_deviation, self.out_of_step_since = 0.0, None
        ours, _ = self._copy.reset(scenario)
        self._compare(0, ours, observation)

    def step(self, action: ArrayLike, result: Step) -> None:
        """The car over there was stepped with this action, and this came back."""
        ours = self._copy.step(action)
        self._compare(ours.info["stepCount"], ours.observation, result.observation)

    def report(self) -> str:
        """In a line, for the corner of a window."""
        if self.in_step:
            return f"in step, largest deviation {self.largest_deviation:.1g}"
        return f"out of step since tick {self.out_of_step_since}"

    def _compare(self, tick: int, ours: Observations, theirs: Observations) -> None:
        if not self.in_step:
            return
        deviation = float(np.abs(ours - theirs).max())
        if deviation > TOLERANCE:
            self.out_of_step_since = tick
        else:
            self.largest_deviation = max(self.largest_deviation, deviation)


class WatchedClient:
    """A bridge to an existing server whose car can be seen, as a followed copy."""

    def __init__(self, client: BridgeClient) -> None:
        self._client = client
        self._scenario = Scenario()
        self.followed = FollowedCar()

    @property
    def track(self) -> Track:
        return self.followed.track

    @property
    def car(self) -> Mapping[str, Any]:
        return self.followed.car

    def reset(self, scenario: Scenario | None = None, seed: int | None = None) -> tuple[Observations, Info]:
        self._scenario = scenario or self._scenario
        observation, info = self._client.reset(self._scenario, seed)
        self.followed.reset(self._scenario, observation)
        return observation, info

    def step(self, action: ArrayLike) -> Step:
        result = self._client.step(action)
        self.followed.step(action, result)
        return result

    def close(self) -> None:
        self._client.close()
