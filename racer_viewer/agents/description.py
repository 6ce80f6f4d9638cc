"""What an archive's `data` member says of a model in plain text. Its pickled parts are neither decoded nor used."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from racer_viewer.agents.errors import AgentError, shown
from racer_viewer.agents.networks import ACTIVATIONS

MAX_DESCRIPTION_BYTES = 16 * 2**20

SUPPORTED = "supported are PPO and SAC with MlpPolicy, from stable-baselines3, of 14 observations and 3 actions"

POLICIES = {"ActorCriticPolicy": "PPO", "SACPolicy": "SAC"}
DEFAULT_ACTIVATIONS = {"PPO": "Tanh", "SAC": "ReLU"}
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
"""By a part of the policy's class name."""


@dataclass(frozen=True)
class Description:
    """What cannot be seen from the tensors.

    action_low, action_high: None where the file does not say.
    clip_mean: SAC with gSDE clips the mean to ± this.
    use_expln: how gSDE makes a deviation of what it learned.
    """

    algorithm: Literal["PPO", "SAC"]
    activation: str
    squash_output: bool
    use_expln: bool
    clip_mean: float
    action_low: tuple[float, ...] | None
    action_high: tuple[float, ...] | None
    timesteps: int | None


def read_description(data: bytes) -> Description:
    """The plain fields of the JSON that stable-baselines3 writes. A model of another kind is refused here."""
    fields = _parse(data)
    algorithm = _algorithm(fields)
    settings = _mapping(fields.get("policy_kwargs"))
    low, high = _action_limits(fields.get("action_space"))
    _check_extractor(settings)
    timesteps = fields.get("num_timesteps")
    return Description(
        algorithm=algorithm,
        activation=_activation(settings, algorithm),
        squash_output=settings.get("squash_output") is True,
        use_expln=settings.get("use_expln") is True,
        clip_mean=_clip_mean(settings),
        action_low=low,
        action_high=high,
        timesteps=timesteps if type(timesteps) is int and timesteps >= 0 else None,
    )


def _parse(data: bytes) -> Mapping[str, Any]:
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise AgentError(f"its member 'data' is not JSON ({shown(str(error))})") from error
    if not isinstance(fields, dict):
        raise AgentError("its member 'data' does not describe a model")
    return fields


def _algorithm(fields: Mapping[str, Any]) -> Literal["PPO", "SAC"]:
    policy = _mapping(fields.get("policy_class"))
    module, name = _text(policy.get("__module__")), _class_name(policy)
    if not module.startswith("stable_baselines3.") or name not in POLICIES:
        full_name = f"{module}.{name}" if name else module
        what = next((what for part, what in OTHER_MODELS.items() if part.lower() in full_name.lower()), "a model")
        raise AgentError(f"is {what} with a policy of {shown(full_name)}; {SUPPORTED}")
    if POLICIES[name] == "SAC":
        return "SAC"
    if "clip_range" not in fields:
        raise AgentError(f"is an actor-critic model, but not of PPO (A2C, perhaps); {SUPPORTED}")
    return "PPO"


def _class_name(policy: Mapping[str, Any]) -> str:
    """The class that a policy's functions say they belong to; the file has no other plain trace of it."""
    for value in (policy.get("__init__"), *policy.values()):
        if isinstance(value, str) and (function := re.match(r"<function (\S{1,200}) at 0x", value)):
            return function[1].rpartition(".")[0].rpartition(".")[2]
    return ""


def _activation(settings: Mapping[str, Any], algorithm: str) -> str:
    text = settings.get("activation_fn")
    if text is None:
        return DEFAULT_ACTIVATIONS[algorithm]
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
    """Of an action box; the text is numpy's, as `[-1.  0.  0.]`."""
    fields = _mapping(space)
    kind = _text(fields.get(":type:"))
    if kind and not kind.endswith(".Box'>"):
        raise AgentError(f"its actions are {shown(kind)}, not a Box; {SUPPORTED}")
    return _numbers(fields.get("low")), _numbers(fields.get("high"))


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
