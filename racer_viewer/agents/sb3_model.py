"""Models of stable-baselines3: the plain-text description in a model file, and the policy built from its tensors.

The pickled parts of the description are neither decoded nor used. Tensor names and shapes determine the network.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from racer_viewer.agents.archive import AgentError, shown
from racer_viewer.agents.networks import ACTIVATIONS, Floats, Layer, Network
from racer_viewer.agents.pickles import ALLOWED_IN_ARRAYS, read_pickle, to_floats
from racer_viewer.agents.policies import (
    ACTION_HIGH,
    ACTION_LOW,
    ACTION_SIZE,
    OBSERVATION_SIZE,
    ActionBox,
    ActionNoise,
    FixedNoise,
    GaussianPolicy,
    LearnedNoise,
    StateDependentNoise,
)

MAX_DESCRIPTION_BYTES = 4 * 2**20
MAX_TIMESTEPS = 2**53
"""Maximum number of steps that a model can have been trained for; integers in JSON can have thousands of digits."""

SUPPORTED = (
    "supported are PPO, A2C, TRPO, SAC and TQC with MlpPolicy, from stable-baselines3, of 14 observations and 3 actions"
)

Algorithm = Literal["PPO", "A2C", "TRPO", "SAC", "TQC"]
ACTOR_CRITIC = "ActorCriticPolicy"
OFF_POLICY: dict[str, Algorithm] = {"SACPolicy": "SAC", "TQCPolicy": "TQC"}
"""Algorithms with a squashed Gaussian policy, by the name of its class."""
PACKAGES = ("stable_baselines3.", "sb3_contrib.")
MAX_NORMAL_OBSERVATION = 1.0 + 1e-6
"""Largest raw observation of the environment; a larger one was normalised."""
DEFAULT_CLIP_MEAN = 2.0
MAX_CLIP_MEAN = 1e6
FLATTEN = "stable_baselines3.common.torch_layers.FlattenExtractor"

OTHER_MODELS = {
    "Recurrent": "a recurrent policy, which has a memory",
    "MultiInput": "a MultiInputPolicy, which takes several inputs",
    "Cnn": "a CnnPolicy, which looks at pictures",
    "DQN": "a DQN model",
    "TD3": "a TD3 or DDPG model",
}
"""Descriptions of unsupported models, by a part of the policy's class name."""


@dataclass(frozen=True)
class ModelDescription:
    """Properties of a model that its tensors do not show.

    squash_output: True if PPO with gSDE squashes actions with tanh.
    use_expln: True if gSDE computes the deviation with `expln` instead of `exp`.
    clip_mean: absolute limit of the mean (SAC with gSDE).
    action_low, action_high: action limits; None if the file does not contain them.
    timesteps: number of steps the model was trained for; None if the file does not contain it.
    needs_stats: True if the last observations in the file are normalised, so that it drives badly without statistics.
    """

    algorithm: Algorithm
    activation: str
    squash_output: bool
    use_expln: bool
    clip_mean: float
    action_low: tuple[float, ...] | None
    action_high: tuple[float, ...] | None
    timesteps: int | None
    needs_stats: bool = False

    @property
    def is_off_policy(self) -> bool:
        """True for the algorithms with SAC's policy."""
        return self.algorithm in OFF_POLICY.values()


def read_description(data: bytes) -> ModelDescription:
    """Read the plain fields of the JSON that stable-baselines3 writes. Raises AgentError for unsupported models."""
    fields = parse_fields(data)
    algorithm = _algorithm(fields)
    settings = _mapping(fields.get("policy_kwargs"))
    low, high = _action_limits(fields.get("action_space"))
    _check_extractor(settings)
    return ModelDescription(
        algorithm=algorithm,
        activation=_activation(settings, algorithm),
        squash_output=settings.get("squash_output") is True,
        use_expln=settings.get("use_expln") is True,
        clip_mean=_clip_mean(settings),
        action_low=low,
        action_high=high,
        timesteps=steps_in(fields),
        needs_stats=_has_normalised_observations(fields.get("_last_obs")),
    )


def parse_fields(data: bytes) -> Mapping[str, Any]:
    """Parse the JSON of a model's description."""
    try:
        fields = json.loads(data)  # reads Infinity too, which stable-baselines3 may write
    except (ValueError, RecursionError) as error:
        raise AgentError(f"its member 'data' is not JSON ({shown(str(error))})") from error
    if not isinstance(fields, dict):
        raise AgentError("its member 'data' does not describe a model")
    return fields


def steps_in(fields: Mapping[str, Any]) -> int | None:
    """Return the number of steps in a model's description; None if it has no sensible one."""
    steps = fields.get("num_timesteps")
    return steps if type(steps) is int and 0 <= steps <= MAX_TIMESTEPS else None


def _algorithm(fields: Mapping[str, Any]) -> Algorithm:
    policy = _mapping(fields.get("policy_class"))
    module, name = _text(policy.get("__module__")), _class_name(policy)
    if not module.startswith(PACKAGES) or name not in (ACTOR_CRITIC, *OFF_POLICY):
        full_name = f"{module}.{name}" if name else module
        what = next((what for part, what in OTHER_MODELS.items() if part.lower() in full_name.lower()), "a model")
        raise AgentError(f"is {what} with a policy of {shown(full_name)}; {SUPPORTED}")
    if name in OFF_POLICY:
        return OFF_POLICY[name]
    if "clip_range" in fields:
        return "PPO"
    return "TRPO" if "cg_max_steps" in fields else "A2C"


def _class_name(policy: Mapping[str, Any]) -> str:
    """Return the class name in the repr of a policy's functions; the file contains it nowhere else in plain text."""
    for value in (policy.get("__init__"), *policy.values()):
        if isinstance(value, str) and (function := re.match(r"<function (\S{1,200}) at 0x", value)):
            return function[1].rpartition(".")[0].rpartition(".")[2]
    return ""


def _activation(settings: Mapping[str, Any], algorithm: str) -> str:
    text = settings.get("activation_fn")
    if text is None:
        return "ReLU" if algorithm in OFF_POLICY.values() else "Tanh"
    known = re.fullmatch(r"<class 'torch\.nn\.modules\.activation\.(\w+)'>", _text(text))
    if known is None or known[1] not in ACTIVATIONS:
        raise AgentError(f"its activation is {shown(text)}; supported are {', '.join(ACTIVATIONS)}")
    return known[1]


def _check_extractor(settings: Mapping[str, Any]) -> None:
    extractor = settings.get("features_extractor_class")
    if extractor is not None and extractor != f"<class '{FLATTEN}'>":
        raise AgentError(f"has a features extractor of its own ({shown(extractor)}); {SUPPORTED}")


def _clip_mean(settings: Mapping[str, Any]) -> float:
    value = settings.get("clip_mean", DEFAULT_CLIP_MEAN)
    if not isinstance(value, int | float) or not abs(value) < MAX_CLIP_MEAN:
        raise AgentError(f"its clip_mean is not a number below {MAX_CLIP_MEAN}")
    return float(value)


def _action_limits(space: Any) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    """Return the action limits, which the file contains as numpy text like `[-1.  0.  0.]`."""
    fields = _mapping(space)
    kind = _text(fields.get(":type:"))
    if kind and not kind.endswith(".Box'>"):
        raise AgentError(f"its actions are {shown(kind)}, not a Box; {SUPPORTED}")
    return _numbers(fields.get("low")), _numbers(fields.get("high"))


def pickled_numbers(entry: Any) -> NDArray[np.float64] | None:
    """Return the pickled array or number in an entry of a model's description; None if it is anything else."""
    try:
        pickle = base64.b64decode(_text(_mapping(entry).get(":serialized:")), validate=True)
        return to_floats(read_pickle(pickle, ALLOWED_IN_ARRAYS)) if pickle else None
    except (AgentError, TypeError, ValueError, LookupError):
        return None


def _has_normalised_observations(entry: Any) -> bool:
    """Return True if the last observations of training, a pickled array, are outside of the environment's limits."""
    observations = pickled_numbers(entry)
    return observations is not None and bool((np.abs(observations) > MAX_NORMAL_OBSERVATION).any())


def _numbers(text: Any) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(number) for number in _text(text).strip("[] \n").split())
    except ValueError:
        raise AgentError(f"its action limits are {shown(text)}, not numbers") from None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


EXPLN_EPSILON = np.float32(1e-6)
CRITICS = ("critic.", "critic_target.")
"""Prefixes of SAC's tensors that driving does not need."""


class Tensors(Protocol):
    """Source of a model's tensors, by the names of stable-baselines3."""

    @property
    def names(self) -> Collection[str]: ...

    def read(self, name: str) -> Floats:
        """Return a copy of a tensor. Raises AgentError if a number is not finite."""
        ...


def build_policy(tensors: Tensors, description: ModelDescription) -> tuple[GaussianPolicy, int]:
    """Return the policy of a model and its number of parameters.

    Raises AgentError if a tensor is missing, or unused and not of SAC's critics.
    """
    parts = _Parts(tensors)
    policy = (_sac if description.is_off_policy else _ppo)(parts, description)
    parts.check_all_used()
    return policy, parts.numbers


class _Parts:
    """Tensors of a model, with the unused ones and the number of values in the used ones."""

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
        """Return the layers NAME.0, NAME.2, NAME.4 …; the activations between them have a number but no tensors."""
        pattern = re.compile(re.escape(name) + r"\.(\d{1,4})\.weight")
        numbers = sorted(int(match[1]) for key in self._unused if (match := pattern.fullmatch(key)))
        if numbers != list(range(0, 2 * len(numbers), 2)):
            raise AgentError(f"its part {shown(name)} is more than fully connected layers; {SUPPORTED}")
        return tuple(self.layer(f"{name}.{number}") for number in numbers)

    def check_all_used(self) -> None:
        if self._unused:
            raise AgentError(f"has parts beyond an MlpPolicy: {shown(', '.join(self._unused))}; {SUPPORTED}")


def _ppo(parts: _Parts, description: ModelDescription) -> GaussianPolicy:
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
    squashed = description.squash_output and isinstance(noise, StateDependentNoise)
    return GaussianPolicy(actor, critic, noise, _box(description, squashed), squashed, mean_limit=None)


def _sac(parts: _Parts, description: ModelDescription) -> GaussianPolicy:
    clips_mean = "actor.mu.0.weight" in parts
    head = parts.layer("actor.mu.0" if clips_mean else "actor.mu")
    actor = _network(parts.layers("actor.latent_pi"), head, description.activation)
    _check_sizes(actor)
    noise: ActionNoise
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


def _parameter_noise(log_std: Floats, actor: Network, description: ModelDescription) -> ActionNoise:
    """Return noise from a parameter: one value per action, or with gSDE one per feature and action or per feature."""
    features = actor.head.inputs
    if log_std.shape not in ((ACTION_SIZE,), (features, ACTION_SIZE), (features, 1)):
        raise AgentError(f"its noise of {log_std.shape} numbers does not fit its policy")
    is_fixed = log_std.ndim == 1
    std = _expln(log_std) if description.use_expln and not is_fixed else np.exp(log_std)
    if not np.isfinite(std).all():
        raise AgentError("its noise is not finite: the training diverged")
    std.flags.writeable = False
    return FixedNoise(std) if is_fixed else StateDependentNoise(np.broadcast_to(std, (features, ACTION_SIZE)))


def _expln(log_std: Floats) -> Floats:
    """Return the deviation of gSDE with `use_expln`: exponential up to 0, logarithmic above."""
    positive = np.maximum(log_std, np.float32(0.0)) + EXPLN_EPSILON
    return np.where(log_std <= 0.0, np.exp(np.minimum(log_std, np.float32(0.0))), np.log1p(positive) + 1.0)


def _box(description: ModelDescription, squashed: bool) -> ActionBox:
    low = ACTION_LOW if description.action_low is None else np.array(description.action_low, np.float32)
    high = ACTION_HIGH if description.action_high is None else np.array(description.action_high, np.float32)
    if low.shape != (ACTION_SIZE,) or high.shape != (ACTION_SIZE,) or not (low <= high).all():
        raise AgentError(f"its action limits are {low} and {high}; {ACTION_SIZE} of each are required")
    if squashed and not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise AgentError("its actions have no limits to be squashed into")
    low.flags.writeable = high.flags.writeable = False
    return ActionBox(low, high)
