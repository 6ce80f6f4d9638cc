"""Policies: normalised observations → actions, from a network's mean, noise around it and the action limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from racer_viewer.agents.networks import HALF, ONE, Floats, Layer, Network

OBSERVATION_LOW = np.array([0.0] * 10 + [-1.0, -1.0, 0.0, 0.0], np.float32)
"""Minimum of each observation, as in `racer_env.bridge.interface`, which would load the compiled engine. A test
compares these constants."""
OBSERVATION_HIGH = np.ones(14, np.float32)
OBSERVATION_SIZE = OBSERVATION_LOW.size
ACTION_LOW = np.array([-1.0, 0.0, 0.0], np.float32)
"""Minimum of steer, throttle and brake."""
ACTION_HIGH = np.ones(3, np.float32)
ACTION_SIZE = ACTION_LOW.size

for _limits in (OBSERVATION_LOW, OBSERVATION_HIGH, ACTION_LOW, ACTION_HIGH):
    _limits.flags.writeable = False


LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0
"""Limits of the logarithm of SAC's standard deviation."""


class ActionNoise(Protocol):
    """Action noise of a policy. features: values of the last hidden layer, one row or many."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the standard normal numbers that `sample` takes for one row."""
        ...

    def deviation(self, features: Floats) -> Floats:
        """Return the standard deviation of every action before it is squashed or clipped."""
        ...

    def sample(self, features: Floats, normals: Floats) -> Floats:
        """Return the offset from the mean for given standard normal numbers."""
        ...


@dataclass(frozen=True, eq=False)
class FixedNoise:
    """Noise of PPO: one constant deviation for each action."""

    std: Floats

    @property
    def shape(self) -> tuple[int, ...]:
        return self.std.shape

    def deviation(self, features: Floats) -> Floats:
        return np.broadcast_to(self.std, (*features.shape[:-1], self.std.size)).copy()

    def sample(self, features: Floats, normals: Floats) -> Floats:
        return self.std * normals


@dataclass(frozen=True, eq=False)
class LearnedNoise:
    """Noise of SAC: a layer computes the logarithm of the deviation."""

    layer: Layer

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.layer.outputs,)

    def deviation(self, features: Floats) -> Floats:
        return np.exp(np.clip(self.layer.apply(features), LOG_STD_MIN, LOG_STD_MAX))

    def sample(self, features: Floats, normals: Floats) -> Floats:
        return self.deviation(features) * normals


@dataclass(frozen=True, eq=False)
class StateDependentNoise:
    """Noise of gSDE: the features multiplied with a random matrix.

    Training keeps one matrix for many ticks, so the noise is smooth. In a single tick it is normally distributed with
    `deviation`; pass the same normal numbers in several ticks for smooth noise.
    """

    std: Floats

    @property
    def shape(self) -> tuple[int, ...]:
        return self.std.shape

    def deviation(self, features: Floats) -> Floats:
        variance: Floats = features**2 @ self.std**2
        return np.sqrt(variance)

    def sample(self, features: Floats, normals: Floats) -> Floats:
        offset: Floats = features @ (self.std * normals)
        return offset


_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_NODES, _WEIGHTS = _NODES.astype(np.float32), (_WEIGHTS / _WEIGHTS.sum()).astype(np.float32)
"""Nodes and weights of Gauss-Hermite quadrature, for means over a normal distribution."""


@dataclass(frozen=True, eq=False)
class ActionBox:
    """Limits of every action."""

    low: Floats
    high: Floats

    @cached_property
    def half_range(self) -> Floats:
        half: Floats = HALF * (self.high - self.low)
        return half

    @cached_property
    def middle(self) -> Floats:
        return self.low + self.half_range

    def clip(self, actions: Floats) -> Floats:
        return np.minimum(np.maximum(actions, self.low), self.high)

    def unscale(self, actions: Floats) -> Floats:
        """Scale actions from -1..1 to the limits."""
        return self.middle + self.half_range * actions


class Policy(Protocol):
    """A policy. Inputs are normalised, one row or many; None is returned for what a kind of model does not have."""

    @property
    def noise_shape(self) -> tuple[int, ...] | None: ...

    def mean_actions(self, inputs: Floats) -> Floats: ...

    def sampled_actions(self, inputs: Floats, rng: np.random.Generator) -> Floats | None: ...

    def noisy_actions(self, inputs: Floats, normals: Floats) -> Floats | None: ...

    def values(self, inputs: Floats) -> Floats | None: ...

    def spread(self, inputs: Floats) -> Floats | None: ...

    def jacobian(self, inputs: Floats) -> Floats: ...


@dataclass(frozen=True, eq=False)
class GaussianPolicy:
    """Policy of PPO or SAC.

    squashed: True if tanh maps actions into the limits (SAC, and PPO with `squash_output`); else they are clipped.
    mean_limit: absolute limit of the mean before squashing (SAC with gSDE).
    """

    actor: Network
    critic: Network | None
    noise: ActionNoise
    box: ActionBox
    squashed: bool
    mean_limit: float | None

    @property
    def noise_shape(self) -> tuple[int, ...]:
        return self.noise.shape

    def mean_actions(self, inputs: Floats) -> Floats:
        return self._into_box(self._mean(self.actor.features(inputs)))

    def sampled_actions(self, inputs: Floats, rng: np.random.Generator) -> Floats:
        features = self.actor.features(inputs)
        mean = self._mean(features)
        normals = rng.standard_normal(mean.shape, np.float32)
        return self._into_box(mean + self.noise.deviation(features) * normals)

    def noisy_actions(self, inputs: Floats, normals: Floats) -> Floats:
        features = self.actor.features(inputs)
        return self._into_box(self._mean(features) + self.noise.sample(features, normals))

    def values(self, inputs: Floats) -> Floats | None:
        if self.critic is None:
            return None
        return self.critic.head.apply(self.critic.features(inputs))[..., 0]

    def spread(self, inputs: Floats) -> Floats:
        features = self.actor.features(inputs)
        deviation = self.noise.deviation(features)
        if not self.squashed:
            return deviation
        mean = self._mean(features)
        actions = np.tanh(mean[..., np.newaxis] + deviation[..., np.newaxis] * _NODES)
        centred = actions - (actions @ _WEIGHTS)[..., np.newaxis]
        return self.box.half_range * np.sqrt(np.square(centred) @ _WEIGHTS)

    def jacobian(self, inputs: Floats) -> Floats:
        """Return the derivative of the mean action of one row, (actions, inputs); 0 for an action at its limit."""
        mean = self.actor.head.apply(self.actor.features(inputs))
        slope = np.ones_like(mean)
        if self.mean_limit is not None:
            slope[np.abs(mean) > self.mean_limit] = 0.0
            mean = mean.clip(-self.mean_limit, self.mean_limit)
        if self.squashed:
            slope *= self.box.half_range * (ONE - np.square(np.tanh(mean)))
        else:
            slope[(mean < self.box.low) | (mean > self.box.high)] = 0.0
        return slope[:, np.newaxis] * self.actor.jacobian(inputs)

    def _mean(self, features: Floats) -> Floats:
        mean = self.actor.head.apply(features)
        return mean if self.mean_limit is None else mean.clip(-self.mean_limit, self.mean_limit)

    def _into_box(self, actions: Floats) -> Floats:
        return self.box.unscale(np.tanh(actions)) if self.squashed else self.box.clip(actions)
