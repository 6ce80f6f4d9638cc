"""What a runner tells of the driving: reward components, laps, sectors, episodes, and the moments of what it saw."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import COMPONENTS
from racer_viewer.training.config import RunConfig
from racer_viewer.training.live.sights import Sights, Spotter
from racer_viewer.training.metrics import Driven, Episodes, tick_of
from racer_viewer.training.vec_env import SB3VecEnv


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and variance of so many values."""

    mean: NDArray[np.float64]
    var: NDArray[np.float64]
    count: int

    @classmethod
    def of(cls, values: NDArray[np.floating]) -> Moments:
        """Of rows."""
        return cls(values.mean(axis=0, dtype=np.float64), values.var(axis=0, dtype=np.float64), len(values))


@dataclass(eq=False)
class Report:
    """Of one rollout of one runner. components: (6,) sums over steps and cars."""

    steps: int = 0
    components: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(COMPONENTS)))
    driven: Driven = field(default_factory=Driven)
    sights: Sights = field(default_factory=Sights)


class Witness:
    """Sees every tick of a runner's cars, from the beginning of their episodes on."""

    def __init__(self, config: RunConfig, cars: SB3VecEnv) -> None:
        self._cars, self._episodes = cars, Episodes(cars.num_envs)
        self._spotter = Spotter(config, cars)
        self._spotter.start()
        self._report = Report()

    def tick(self) -> None:
        """After a step."""
        tick, report = tick_of(self._cars), self._report
        report.steps += len(tick.rewards)
        report.components += tick.components.sum(axis=0)
        report.driven.add(self._episodes.tick(tick))
        report.sights.add(self._spotter.tick(tick))

    def take(self) -> Report:
        """What there was since the last one."""
        report, self._report = self._report, Report()
        return report
