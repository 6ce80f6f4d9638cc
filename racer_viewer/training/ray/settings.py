"""Settings of a run on Ray, and of its runners. Nothing here needs Ray."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from racer_env.bridge.ws_client import TOKEN_VARIABLE, check_url
from racer_env.errors import ConfigError
from racer_viewer.training.config import RunConfig

DEFAULT_RUNNERS = 1


@dataclass(frozen=True)
class RaySettings:
    """Cluster and runners of a run.

    address: address of a Ray cluster; None starts Ray on this machine. runners: number of processes that drive.
    cars_per_runner: cars of each runner; None divides the config's cars among them.
    """

    address: str | None = None
    runners: int = DEFAULT_RUNNERS
    cars_per_runner: int | None = None

    def run_config(self, config: RunConfig) -> RunConfig:
        """Return the config of the run, whose cars are those of all runners."""
        if config.algo != "ppo":
            raise ConfigError(f"--engine ray supports PPO only; use --engine sb3 for {config.algo.upper()}")
        return replace(config, num_cars=self.runners * self._cars(config))

    def runner_config(self, config: RunConfig) -> RunConfig:
        """Return the config of one runner."""
        return replace(config, num_cars=self._cars(config))

    def oversubscribes(self, cores: int) -> bool:
        """Return whether this machine has fewer cores than runners; a cluster checks its own resources."""
        return self.address is None and self.runners > cores

    def _cars(self, config: RunConfig) -> int:
        return self.cars_per_runner or max(1, config.num_cars // self.runners)


@dataclass(frozen=True)
class RunnerSettings:
    """Settings that every runner receives.

    bridges: servers whose cars the runners drive, assigned in turn; empty if the cars are in the runner's process.
    token: token of the bridges; None uses RACER_BRIDGE_TOKEN of the runner's own node.
    """

    config: RunConfig
    bridges: tuple[str, ...] = ()
    token: str | None = field(default=None, repr=False)

    def bridge_of(self, runner: int) -> str | None:
        """Return the bridge of a runner; RLlib counts runners from 1."""
        return self.bridges[max(runner - 1, 0) % len(self.bridges)] if self.bridges else None

    @classmethod
    def create(cls, config: RunConfig, bridges: str | None) -> RunnerSettings:
        """Check and split `bridges`, addresses separated by commas."""
        addresses = () if bridges is None else tuple(each.strip() for each in bridges.split(","))
        for each in addresses:
            check_url(each)
        return cls(config, addresses, os.environ.get(TOKEN_VARIABLE) if addresses else None)
