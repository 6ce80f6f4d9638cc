"""How far a policy's actions stray from its mean: the three kinds of noise that stable-baselines3 learns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from racer_viewer.agents.networks import Floats, Layer

LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0
"""Where SAC limits the logarithm of its deviation."""


class Noise(Protocol):
    """`features` are the last hidden layer's values, of one row or of many."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the standard normal numbers that `strayed` takes for one row."""
        ...

    def deviation(self, features: Floats) -> Floats:
        """Standard deviation of every action, before it is squashed or clipped."""
        ...

    def strayed(self, features: Floats, normals: Floats) -> Floats:
        """What is added to the mean for given standard normal numbers."""
        ...


@dataclass(frozen=True, eq=False)
class FixedNoise:
    """PPO: one deviation for each action, everywhere the same."""

    std: Floats

    @property
    def shape(self) -> tuple[int, ...]:
        return self.std.shape

    def deviation(self, features: Floats) -> Floats:
        return np.broadcast_to(self.std, (*features.shape[:-1], self.std.size)).copy()

    def strayed(self, features: Floats, normals: Floats) -> Floats:
        return self.std * normals


@dataclass(frozen=True, eq=False)
class LearnedNoise:
    """SAC: a layer of its own says the logarithm of the deviation."""

    layer: Layer

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.layer.outputs,)

    def deviation(self, features: Floats) -> Floats:
        return np.exp(np.clip(self.layer.apply(features), LOG_STD_MIN, LOG_STD_MAX))

    def strayed(self, features: Floats, normals: Floats) -> Floats:
        return self.deviation(features) * normals


@dataclass(frozen=True, eq=False)
class StateNoise:
    """gSDE: a random matrix, drawn now and then, that the features are multiplied with.

    In training one matrix stays for many ticks, so the noise is smooth. For a single tick the result is normally
    distributed with `deviation`; whoever wants the smoothness too keeps the normal numbers and passes them on.
    """

    std: Floats

    @property
    def shape(self) -> tuple[int, ...]:
        return self.std.shape

    def deviation(self, features: Floats) -> Floats:
        variance: Floats = features**2 @ self.std**2
        return np.sqrt(variance)

    def strayed(self, features: Floats, normals: Floats) -> Floats:
        strayed: Floats = features @ (self.std * normals)
        return strayed
