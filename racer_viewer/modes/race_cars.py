"""The cars of a race: all as one simulation in this process, or each on a server. Both yield rows of `CAR`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import CAR, Config, Simulation, Start, load_circuit
from racer_env.env import RacerEnv
from racer_viewer.snapshot import Cars
from racer_viewer.translation import _

if TYPE_CHECKING:
    from racer_env.engine import Track
    from racer_viewer.modes.screen import BridgeAddress


@dataclass(frozen=True)
class BridgeStatus:
    """Reliability of the followed car's position on a server.

    telemetry: the server sends the position; otherwise a local copy of the car computes it.
    out_of_sync_since: tick since which that copy is only an estimate.
    """

    url: str
    telemetry: bool
    out_of_sync_since: int | None = None

    @property
    def exact(self) -> bool:
        return self.out_of_sync_since is None

    @property
    def text(self) -> str:
        if self.telemetry:
            return "telemetry"
        return (
            _("in sync")
            if self.exact
            else _("out of sync since tick {tick}: position estimated").format(tick=self.out_of_sync_since)
        )


class CarGroup(Protocol):
    """Cars that are stepped together. `rows` (N,) of `CAR` and `observations` (N, 14) are never written again."""

    track: Track
    rows: Cars
    observations: NDArray[np.float32]

    def reset(self, starts: Sequence[Start], seed: int) -> None:
        """Start a new episode of every car, each from its own start."""
        ...

    def put_back(self, car: int) -> bool:
        """Put a car back on the road at a standstill; returns False if that is not possible."""
        ...

    def step(self, actions: NDArray[np.float64]) -> None: ...

    def status(self, car: int) -> BridgeStatus | None:
        """Return the connection of a car; None if it is simulated in this process."""
        ...

    def close(self) -> None: ...


class LocalCars:
    """All cars of a race as one simulation in this process; a car keeps driving after its episode has ended."""

    def __init__(self, circuit: str | Track, count: int, config: Config) -> None:
        self.track = load_circuit(circuit) if isinstance(circuit, str) else circuit
        self._simulation = Simulation(self.track, count, config)
        self._rows = self._simulation.cars.view(CAR, np.ndarray)
        self._copy()

    def reset(self, starts: Sequence[Start], seed: int) -> None:
        self._simulation.seed([seed] * len(self._rows))
        for start in dict.fromkeys(starts):
            self._simulation.start_from(start)
            self._simulation.reset([each == start for each in starts])
        self._copy()

    def put_back(self, car: int) -> bool:
        self._simulation.put_back(car)
        self._copy()
        return True

    def step(self, actions: NDArray[np.float64]) -> None:
        self._simulation.step(actions)
        self._copy()

    def status(self, car: int) -> BridgeStatus | None:
        return None

    def close(self) -> None:
        self._simulation.close()

    def _copy(self) -> None:
        self.rows = self._rows.copy()
        self.observations = self._simulation.result.observations.copy()


class BridgeCars:
    """Cars on a server, one connection each. Each has telemetry or a shadow car, so that it can be drawn."""

    def __init__(self, circuit: str, count: int, config: Config, bridge: BridgeAddress) -> None:
        self._bridge, self._envs = bridge, list[RacerEnv]()
        try:
            for _car in range(count):
                env = RacerEnv(bridge.url, track_id=circuit, config=config, token=bridge.token, render_mode="rgb_array")
                self._envs.append(env)
        except BaseException:
            self.close()
            raise

    def reset(self, starts: Sequence[Start], seed: int) -> None:
        resets = [env.reset(seed=seed, options={"start": start}) for env, start in zip(self._envs, starts, strict=True)]
        self.observations = np.stack([observation for observation, _info in resets])
        self.track = self._envs[0].track
        self._collect()

    def put_back(self, car: int) -> bool:
        return False

    def step(self, actions: NDArray[np.float64]) -> None:
        steps = [env.step(action) for env, action in zip(self._envs, actions, strict=True)]
        self.observations = np.stack([step[0] for step in steps])
        self._collect()

    def status(self, car: int) -> BridgeStatus | None:
        shadow = self._envs[car].shadow
        return BridgeStatus(self._bridge.url, shadow is None, shadow.out_of_sync_since if shadow else None)

    def close(self) -> None:
        for env in self._envs:
            env.close()

    def _collect(self) -> None:
        self.rows = np.array([env.car for env in self._envs], CAR)
