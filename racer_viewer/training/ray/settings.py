"""How a run is spread over processes; nothing here needs Ray."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from racer_env.bridge.ws_client import TOKEN_VARIABLE, check_url
from racer_env.errors import ConfigError
from racer_viewer.training.config import RunConfig

DEFAULT_RUNNERS = 1


@dataclass(frozen=True)
class Spread:
    """Over what a run is spread.

    address: of a Ray cluster; None is a small Ray on this machine. runners: processes that gather.
    cars_per_runner: None shares the config's cars among them.
    """

    address: str | None = None
    runners: int = DEFAULT_RUNNERS
    cars_per_runner: int | None = None

    def of_all(self, config: RunConfig) -> RunConfig:
        """The config of a run that is spread like this: its cars are those of all runners."""
        if config.algo != "ppo":
            raise ConfigError(f"on Ray one learns with ppo only, not with {config.algo}")
        return replace(config, num_cars=self.runners * self._cars(config))

    def of_one(self, config: RunConfig) -> RunConfig:
        """What one runner makes its cars of."""
        return replace(config, num_cars=self._cars(config))

    def crowds(self, cores: int) -> bool:
        """Whether there are more runners than this machine has cores; a cluster has room or says that it has not."""
        return self.address is None and self.runners > cores

    def _cars(self, config: RunConfig) -> int:
        return self.cars_per_runner or max(1, config.num_cars // self.runners)


@dataclass(frozen=True)
class RunnerSettings:
    """What every runner is told.

    bridges: servers whose cars runners drive, each the next one; none are in the runner's own process.
    token: of the bridges; None is what each machine's own RACER_BRIDGE_TOKEN says.
    """

    config: RunConfig
    bridges: tuple[str, ...] = ()
    token: str | None = field(default=None, repr=False)

    def bridge_of(self, runner: int) -> str | None:
        """runner: from 1, as RLlib counts them."""
        return self.bridges[max(runner - 1, 0) % len(self.bridges)] if self.bridges else None

    @classmethod
    def of(cls, config: RunConfig, bridge: str | None) -> RunnerSettings:
        """bridge: an address, or several with commas between them."""
        bridges = () if bridge is None else tuple(each.strip() for each in bridge.split(","))
        for each in bridges:
            check_url(each)
        return cls(config, bridges, os.environ.get(TOKEN_VARIABLE) if bridges else None)
