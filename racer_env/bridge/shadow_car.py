"""Shadow car: a local copy of a car whose server sends no telemetry.

Existing servers send no position. A local simulation gets the same actions, and after each tick its observation is
compared with the server's. The copy is exact while they agree; from the first difference on, it is only an estimate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from racer_env.bridge.client import BridgeClient
from racer_env.bridge.embedded import EmbeddedBridge
from racer_env.bridge.interface import CarRow, CarStep, Info, Observations, Scenario, copy_rows, set_step_columns
from racer_env.engine import Config, Track

TOLERANCE = 1e-4
"""Maximum difference of an observed value. Correct engines differ by rounding only, a thousand times less."""


class ShadowCar:
    """Local copy of a car that a server simulates.

    largest_deviation: largest difference of an observed value in this episode, while in sync.
    out_of_sync_since: tick of this episode at which the observations first differed; None while in sync.
    """

    def __init__(self) -> None:
        self._copy = EmbeddedBridge()
        self._row: CarRow | None = None
        self._config = Config()
        self.largest_deviation = 0.0
        self.out_of_sync_since: int | None = None

    @property
    def in_sync(self) -> bool:
        return self.out_of_sync_since is None

    @property
    def track(self) -> Track:
        return self._copy.track

    @property
    def car(self) -> CarRow:
        """Copy of the car's row. Out of sync, values from the server override local estimates."""
        return self._copy.car if self._row is None else copy_rows(self._row)[0]

    def reset(self, scenario: Scenario, observation: Observations) -> None:
        """Start an episode; the server returned this first observation."""
        self.largest_deviation, self.out_of_sync_since = 0.0, None
        self._config = scenario.config
        expected, _ = self._copy.reset(scenario)
        self._row = self._copy.car
        self._compare(0, expected, observation)

    def step(self, action: ArrayLike, result: CarStep) -> None:
        """Advance the copy by one tick; the server returned this result for the same action."""
        before, expected = self.car, self._copy.step(action)
        self._compare(expected.info["stepCount"], expected.observation, result.observation)
        self._row = row = self._copy.car
        set_step_columns(row, action, result, self._config)
        if not self.in_sync:
            info, ticks = result.info, before["lap_ticks"] + 1
            row["speed"], row["wall_contact"] = info["rawSpeed"], info["wallContact"]
            row["lap"], row["checkpoint"] = info["lap"], info["checkpoint"] % len(self.track.gates)
            finished = info["lap"] != before["lap"]
            row["finished_lap_ticks"], row["lap_ticks"] = (ticks, 0) if finished else (0, ticks)

    def _compare(self, tick: int, expected: Observations, received: Observations) -> None:
        if not self.in_sync:
            return
        deviation = float(np.abs(expected - received).max())
        if deviation > TOLERANCE:
            self.out_of_sync_since = tick
        else:
            self.largest_deviation = max(self.largest_deviation, deviation)


class ShadowedClient:
    """Bridge to a server without telemetry; `track` and `car` come from a shadow car."""

    def __init__(self, client: BridgeClient) -> None:
        self._client = client
        self._scenario = Scenario()
        self.shadow = ShadowCar()

    @property
    def track(self) -> Track:
        return self.shadow.track

    @property
    def car(self) -> CarRow:
        return self.shadow.car

    def reset(self, scenario: Scenario | None = None, seed: int | None = None) -> tuple[Observations, Info]:
        self._scenario = scenario or self._scenario
        observation, info = self._client.reset(self._scenario, seed)
        self.shadow.reset(self._scenario, observation)
        return observation, info

    def step(self, action: ArrayLike) -> CarStep:
        result = self._client.step(action)
        self.shadow.step(action, result)
        return result

    def close(self) -> None:
        self._client.close()
