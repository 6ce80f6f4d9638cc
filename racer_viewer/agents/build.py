"""A policy from a model's tensors: the names and shapes of stable-baselines3 tell what it is built of."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import pairwise
from typing import Protocol

import numpy as np

from racer_viewer.agents.description import SUPPORTED, Description
from racer_viewer.agents.errors import AgentError, shown
from racer_viewer.agents.networks import ACTIVATIONS, Floats, Layer, Network
from racer_viewer.agents.noise import FixedNoise, LearnedNoise, Noise, StateNoise
from racer_viewer.agents.policies import ActionBox, GaussianPolicy
from racer_viewer.agents.spaces import ACTION_HIGH, ACTION_LOW, ACTION_SIZE, OBSERVATION_SIZE

EXPLN_EPSILON = np.float32(1e-6)
CRITICS = ("critic.", "critic_target.")
"""Tensors of SAC that driving does not need."""


class Tensors(Protocol):
    """A model's tensors by the names of stable-baselines3, from wherever they are."""

    @property
    def names(self) -> Collection[str]: ...

    def read(self, name: str) -> Floats:
        """A copy of a tensor, with finite numbers only."""
        ...


def build_policy(tensors: Tensors, description: Description) -> tuple[GaussianPolicy, int]:
    """The policy of a PPO or SAC model, and how many learned numbers it has.

    Every tensor but those of SAC's critics is used, or the model is refused.
    """
    parts = _Parts(tensors)
    policy = (_ppo if description.algorithm == "PPO" else _sac)(parts, description)
    parts.check_all_used()
    return policy, parts.numbers


class _Parts:
    """The tensors of a model, which of them were used, and how many numbers were in those."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self.numbers = 0
        self._unused = dict.fromkeys(name for name in tensors.names if not name.startswith(CRITICS))

    def __contains__(self, name: str) -> bool:
        return name in self._tensors.names

    def take(self, name: str) -> Floats:
        if name not in self._unused:
            raise AgentError(f"has no tensor {shown(name)}; {SUPPORTED}")
        del self._unused[name]
        tensor = self._tensors.read(name)
        tensor.flags.writeable = False
        self.numbers += tensor.size
        return tensor

    def layer(self, name: str) -> Layer:
        weights, bias = self.take(f"{name}.weight"), self.take(f"{name}.bias")
        if weights.ndim != 2 or bias.shape != weights.shape[:1] or weights.size == 0:
            raise AgentError(f"its part {shown(name)} is not a fully connected layer; {SUPPORTED}")
        transposed = np.ascontiguousarray(weights.T)
        transposed.flags.writeable = False
        return Layer(transposed, bias)

    def layers(self, name: str) -> tuple[Layer, ...]:
        """Those named NAME.0, NAME.2, NAME.4 …: the activations between them take a number, but have no tensors."""
        pattern = re.compile(re.escape(name) + r"\.(\d{1,4})\.weight")
        numbers = sorted(int(match[1]) for key in self._unused if (match := pattern.fullmatch(key)))
        if numbers != list(range(0, 2 * len(numbers), 2)):
            raise AgentError(f"its part {shown(name)} is more than fully connected layers; {SUPPORTED}")
        return tuple(self.layer(f"{name}.{number}") for number in numbers)

    def check_all_used(self) -> None:
        if self._unused:
            raise AgentError(f"has parts beyond an MlpPolicy: {shown(', '.join(self._unused))}; {SUPPORTED}")


def _ppo(parts: _Parts, description: Description) -> GaussianPolicy:
    shared = parts.layers("mlp_extractor.shared_net")
    actor = _network(
        (*shared, *parts.layers("mlp_extractor.policy_net")), parts.layer("action_net"), description.activation
    )
    critic = _network(
        (*shared, *parts.layers("mlp_extractor.value_net")), parts.layer("value_net"), description.activation
    )
    _check_sizes(actor)
    if critic.inputs != actor.inputs or critic.head.outputs != 1:
        raise AgentError("its value function does not fit its policy")
    noise = _parameter_noise(parts.take("log_std"), actor, description)
    squashed = description.squash_output and isinstance(noise, StateNoise)
    return GaussianPolicy(actor, critic, noise, _box(description, squashed), squashed, mean_limit=None)


def _sac(parts: _Parts, description: Description) -> GaussianPolicy:
    clips_mean = "actor.mu.0.weight" in parts
    head = parts.layer("actor.mu.0" if clips_mean else "actor.mu")
    actor = _network(parts.layers("actor.latent_pi"), head, description.activation)
    _check_sizes(actor)
    noise: Noise
    if "actor.log_std" in parts:
        noise = _parameter_noise(parts.take("actor.log_std"), actor, description)
    else:
        noise = LearnedNoise(parts.layer("actor.log_std"))
        if noise.layer.weights.shape != actor.head.weights.shape:
            raise AgentError("its noise does not fit its policy")
    limit = description.clip_mean if clips_mean else None
    return GaussianPolicy(actor, None, noise, _box(description, squashed=True), squashed=True, mean_limit=limit)


def _network(hidden: tuple[Layer, ...], head: Layer, activation: str) -> Network:
    layers = (*hidden, head)
    if any(before.outputs != after.inputs for before, after in pairwise(layers)):
        raise AgentError("its layers do not fit together")
    return Network(hidden, head, ACTIVATIONS[activation])


def _check_sizes(actor: Network) -> None:
    if actor.inputs != OBSERVATION_SIZE:
        raise AgentError(f"takes {actor.inputs} observations; a racing agent takes {OBSERVATION_SIZE}")
    if actor.head.outputs != ACTION_SIZE:
        raise AgentError(f"gives {actor.head.outputs} actions; a racing agent gives {ACTION_SIZE}")


def _parameter_noise(log_std: Floats, actor: Network, description: Description) -> Noise:
    """One number an action, or with gSDE one for each feature, of every action or of all together."""
    features = actor.head.inputs
    if log_std.shape not in ((ACTION_SIZE,), (features, ACTION_SIZE), (features, 1)):
        raise AgentError(f"its noise of {log_std.shape} numbers does not fit its policy")
    is_fixed = log_std.ndim == 1
    std = _expln(log_std) if description.use_expln and not is_fixed else np.exp(log_std)
    if not np.isfinite(std).all():
        raise AgentError("its noise is not finite: the training went astray")
    std.flags.writeable = False
    return FixedNoise(std) if is_fixed else StateNoise(np.broadcast_to(std, (features, ACTION_SIZE)))


def _expln(log_std: Floats) -> Floats:
    """An exponential up to 0, a logarithm from there."""
    positive = np.maximum(log_std, np.float32(0.0)) + EXPLN_EPSILON
    return np.where(log_std <= 0.0, np.exp(np.minimum(log_std, np.float32(0.0))), np.log1p(positive) + 1.0)


def _box(description: Description, squashed: bool) -> ActionBox:
    low = ACTION_LOW if description.action_low is None else np.array(description.action_low, np.float32)
    high = ACTION_HIGH if description.action_high is None else np.array(description.action_high, np.float32)
    if low.shape != (ACTION_SIZE,) or high.shape != (ACTION_SIZE,) or not (low <= high).all():
        raise AgentError(f"its action limits are {low} and {high}; needed are {ACTION_SIZE} of each")
    if squashed and not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise AgentError("its actions have no limits, so they cannot be squashed into them")
    low.flags.writeable = high.flags.writeable = False
    return ActionBox(low, high)
