"""Model export: an ONNX graph for other languages, a stripped copy of a model to share, or one without statistics.

All are written from the agent's own layers or the file's plain parts: nothing in the model file is executed, and
neither torch nor onnx is needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from racer_env.errors import RacerError
from racer_viewer.agents import Agent, find_stats, load_agent, load_stats, save_stats
from racer_viewer.agents.archive import Archive, read_file
from racer_viewer.agents.load import DESCRIPTION, TENSORS
from racer_viewer.agents.model_writer import (
    LEARNED_ENTROPY,
    SETTINGS,
    VARIABLES,
    ModelContent,
    new_optimiser,
    plain_settings,
    save_model,
)
from racer_viewer.agents.networks import Floats
from racer_viewer.agents.onnx_file import FLOAT, OnnxGraph, OnnxNode, OnnxPort, write_onnx
from racer_viewer.agents.onnx_policy import INPUT, OUTPUT
from racer_viewer.agents.pickles import PickledName, TensorFile
from racer_viewer.agents.policies import ACTION_SIZE, OBSERVATION_SIZE, GaussianPolicy
from racer_viewer.agents.sb3_model import (
    MAX_DESCRIPTION_BYTES,
    ModelDescription,
    parse_fields,
    pickled_numbers,
    read_description,
)
from racer_viewer.paths import atomic_write

LEARNING_RATE, CLIP_RANGE = 3e-4, 0.2
"""Settings in a copy whose model has schedules for them; a schedule is code and is left out."""
SHARE_CHECK_SIZE = 100
"""Number of random observations on which a shared copy is compared with its model."""
MAX_VARIABLES_BYTES = 2**20
FIXED_ENTROPY = "ent_coef_tensor"
"""Variable of SAC with a weight of the entropy that is not learned."""
SHARED, BRANCHES = "mlp_extractor.shared_net", ("mlp_extractor.policy_net", "mlp_extractor.value_net")
"""Layers that policy and value function share in models of stable-baselines3 before 1.8, and those that follow."""
INPUT_PARTS = {
    BRANCHES[0]: ("action_net",),
    BRANCHES[1]: ("value_net",),
    "actor.latent_pi": ("actor.mu", "actor.mu.0", "actor.log_std"),
}
"""Parts of a policy that take observations, and the layers that take them instead if the part is empty."""

MODEL_FILE, STATS_FILE = "model.onnx", "vecnorm_stats.json"
TOLERANCE = 1e-5
"""Maximum difference between an action of the exported model and of the agent."""
ONNX_CHECK_SIZE = 1000
"""Number of random observations on which an exported model is compared with the agent."""
_ACTIVATIONS = {"Tanh": "Tanh", "ReLU": "Relu", "ELU": "Elu", "LeakyReLU": "LeakyRelu"}


def share(model: Path, target: Path, stats: Path | None = None) -> Path:
    """Write a copy of a model for others, with its statistics in it and beside it, and return its path.

    A trained model also contains the optimiser's state, the last observations and pickled objects. The copy contains
    weights and plain settings only, drives the same, loads in stable-baselines3 and is a third of the size.
    """
    agent = load_agent(model, stats)
    target = _copy_path(agent, target)
    content = model_content(agent)
    beside = find_stats(target) if content.stats is None else None
    if beside not in (None, target):
        raise RacerError(f"{beside} has the statistics of another model: choose another name, or remove that file")
    save_model(content, target)
    observations = np.random.default_rng(0).uniform(0.0, 1.0, (SHARE_CHECK_SIZE, OBSERVATION_SIZE))
    if not np.array_equal(agent.act(observations), load_agent(target).act(observations)):
        raise RacerError("the exported model acts differently: please report this")
    return target


def model_content(agent: Agent) -> ModelContent:
    """Return the content of an agent's file that is understood: tensors and plain settings."""
    if not isinstance(agent.policy, GaussianPolicy):
        raise RacerError(f"{agent.info.path} is not a model of stable-baselines3: only those can be shared")
    archive = Archive(read_file(agent.info.path))
    data, packed = archive.read(DESCRIPTION, MAX_DESCRIPTION_BYTES), archive.read(TENSORS)
    fields, description = parse_fields(data), read_description(data)
    entropy = _entropy(archive) if description.is_off_policy else {}
    del archive  # the file may be large
    tensors = _unshared(_tensors(packed))
    del packed
    settings = _plain_settings(fields)
    rate = settings.setdefault("learning_rate", LEARNING_RATE)
    if description.algorithm == "PPO":
        settings.setdefault("clip_range", CLIP_RANGE)
    parts = {"actor.optimizer": "actor.", "critic.optimizer": "critic."} if description.is_off_policy else {}
    optimisers = {name: new_optimiser(_count(tensors, prefix), rate) for name, prefix in parts.items()}
    if LEARNED_ENTROPY in entropy:
        optimisers["ent_coef_optimizer"] = new_optimiser(1, rate)
    return ModelContent(
        algorithm=description.algorithm,
        settings=settings,
        policy_settings=_policy_settings(tensors, description),
        tensors=tensors,
        optimisers=optimisers or {"policy.optimizer": new_optimiser(len(tensors), rate)},
        variables=entropy,
        action_limits=(agent.policy.box.low, agent.policy.box.high),
        stats=None if agent.info.stats_path is None else load_stats(agent.info.stats_path),
    )


def _plain_settings(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a model's description; numbers that are pickled, such as TQC's target entropy, too."""
    pickled = {name: pickled_numbers(fields[name]) for name in SETTINGS if isinstance(fields.get(name), dict)}
    numbers = {name: number.item() for name, number in pickled.items() if number is not None and number.ndim == 0}
    return plain_settings({**fields, **numbers})


def _copy_path(agent: Agent, target: Path) -> Path:
    """Return the path of a copy with its suffix. Raises RacerError if it is the model itself."""
    target = target.with_suffix(".zip")
    if target.exists() and target.samefile(agent.info.path):
        raise RacerError(f"{target} is the model itself: choose another name")
    return target


def _tensors(data: bytes) -> dict[str, Floats]:
    file = TensorFile(data)
    return {name: file.read(name) for name in file.names}


def _entropy(archive: Archive) -> dict[str, Floats]:
    """Return SAC's weight of the entropy among the variables of a model; other variables are left out."""
    if VARIABLES not in archive.names:
        return {}
    file = TensorFile(archive.read(VARIABLES, MAX_VARIABLES_BYTES))
    found = {name: file.read(name) for name in (LEARNED_ENTROPY, FIXED_ENTROPY) if name in file.names}
    return {name: tensor for name, tensor in found.items() if tensor.size == 1}


def _count(tensors: Mapping[str, Floats], prefix: str) -> int:
    return sum(name.startswith(prefix) for name in tensors)


def _unshared(tensors: dict[str, Floats]) -> dict[str, Floats]:
    """Return tensors in which policy and value function each have their own copy of shared layers."""
    pattern = re.compile(rf"({re.escape(SHARED)}|{'|'.join(map(re.escape, BRANCHES))})\.(\d+)\.(weight|bias)")
    layers = {name: match for name in tensors if (match := pattern.fullmatch(name))}
    shared = {name: match for name, match in layers.items() if match[1] == SHARED}
    if not shared:
        return tensors
    result = {name: tensor for name, tensor in tensors.items() if name not in layers}
    for branch in BRANCHES:
        for name, match in layers.items():
            if match[1] in (SHARED, branch):
                number = int(match[2]) + (len(shared) if match[1] == branch else 0)
                result[f"{branch}.{number}.{match[3]}"] = tensors[name]
    return result


def _policy_settings(tensors: Mapping[str, Floats], description: ModelDescription) -> dict[str, Any]:
    """Return the settings of the policy that its tensors and its description show."""
    settings: dict[str, Any] = {
        "activation_fn": PickledName(f"torch.nn.modules.activation.{description.activation}"),
        "use_expln": description.use_expln,
    }
    if not description.is_off_policy:
        settings["net_arch"] = {"pi": _sizes(tensors, BRANCHES[0]), "vf": _sizes(tensors, BRANCHES[1])}
        settings["squash_output"] = description.squash_output
        return settings | {"full_std": tensors["log_std"].shape[-1] > 1}
    critic = _sizes(tensors, "critic.qf0")
    settings["net_arch"] = {"pi": _sizes(tensors, "actor.latent_pi"), "qf": critic[:-1]}
    settings["n_critics"] = len({name.split(".")[1] for name in tensors if name.startswith("critic.qf")})
    settings["clip_mean"] = description.clip_mean if "actor.mu.0.weight" in tensors else 0.0
    settings["use_sde"] = "actor.log_std" in tensors
    return settings | ({"n_quantiles": critic[-1]} if description.algorithm == "TQC" else {})


def _sizes(tensors: Mapping[str, Floats], part: str) -> list[int]:
    """Return the sizes of the layers of a part, by their numbers."""
    found = {name: re.fullmatch(rf"{re.escape(part)}\.(\d+)\.bias", name) for name in tensors}
    numbers = {int(match[1]): len(tensors[name]) for name, match in found.items() if match}
    return [numbers[number] for number in sorted(numbers)]


@dataclass(frozen=True)
class Folding:
    """Result of `fold`, measured on observations of one drive.

    difference: largest difference between an action of the folded model and of the original without clipping.
    clipped: share of the observations in which the original clips an input, where the two differ more.
    """

    path: Path
    difference: float
    clipped: float


def fold(agent: Agent, target: Path, observations: Floats) -> Folding:
    """Write a copy whose first layers contain the normalisation, so that it takes raw observations everywhere.

    observations: those of a drive, (N, 14), on which the copy is compared with the model.
    """
    target = _copy_path(agent, target)
    if agent.info.stats_path is None or agent.normaliser is None:
        raise RacerError(f"{agent.info.path} has no normalisation to fold: it takes raw observations already")
    content = model_content(agent)
    assert content.stats is not None
    running = content.stats.observations
    assert running is not None
    scale = 1.0 / np.sqrt(running.var + content.stats.epsilon)
    tensors = dict(content.tensors)
    for name in _first_layers(tensors):
        weights, bias = (tensors[f"{name}.{kind}"].astype(np.float64) for kind in ("weight", "bias"))
        inputs = weights[:, :OBSERVATION_SIZE] * scale
        tensors[f"{name}.bias"] = (bias - inputs @ running.mean).astype(np.float32)
        weights[:, :OBSERVATION_SIZE] = inputs
        tensors[f"{name}.weight"] = weights.astype(np.float32)
    raw = replace(content.stats, observations=None)
    with atomic_write(target) as temporary:
        temporary.write_bytes(replace(content, tensors=tensors, stats=raw).to_bytes())
    clipped = (np.abs((observations - running.mean) * scale) > content.stats.clip_obs).any(axis=1)
    compared = observations[~clipped]
    difference = np.abs(agent.act(compared) - load_agent(target).act(compared)).max(initial=0.0)
    return Folding(target, float(difference), float(clipped.mean()))


def _first_layers(tensors: Mapping[str, Floats]) -> list[str]:
    """Return the layers that take observations: of the policy, of the value function, and of SAC's critics."""
    found = [name for name in (f"{part}.0" for part in INPUT_PARTS) if f"{name}.weight" in tensors]
    found += [
        head for part, heads in INPUT_PARTS.items() for head in heads
        if f"{part}.0" not in found and f"{head}.weight" in tensors
    ]  # fmt: skip
    critics = (re.fullmatch(r"(critic(_target)?\.qf\d+\.0)\.weight", name) for name in tensors)
    return found + [match[1] for match in critics if match]


def export(model: Path, folder: Path, stats: Path | None = None) -> float:
    """Write model.onnx and vecnorm_stats.json, and return the largest difference between their actions and the agent's.

    Raises RacerError if it exceeds TOLERANCE.
    """
    agent = load_agent(model, stats)
    if not isinstance(agent.policy, GaussianPolicy):
        raise RacerError(f"{model} is an exported model already")
    content = write_onnx(_graph(agent.policy), agent.name)
    with atomic_write(folder / MODEL_FILE) as temporary:
        temporary.write_bytes(content)
    if agent.normalised:
        assert agent.info.stats_path is not None
        save_stats(folder / STATS_FILE, load_stats(agent.info.stats_path))
    difference = _difference(agent, load_agent(folder / MODEL_FILE, folder / STATS_FILE if agent.normalised else None))
    if difference > TOLERANCE:
        raise RacerError(f"the exported model differs from the agent by {difference:.2g}: please report this")
    return difference


def _graph(policy: GaussianPolicy) -> OnnxGraph:
    """Return the ONNX graph from normalised observations to the policy's mean action."""
    activation = _ACTIVATIONS.get(policy.actor.activation.name)
    if activation is None:
        raise RacerError(f"models with the activation {policy.actor.activation.name} cannot be exported")
    nodes: list[OnnxNode] = []
    constants: dict[str, Floats] = {}
    value = INPUT

    def then(operation: str, **operands: Any) -> None:
        nonlocal value
        constants.update({name: np.asarray(array, np.float32) for name, array in operands.items()})
        output = f"value{len(nodes)}"
        nodes.append(OnnxNode(operation, [value, *operands], [output]))
        value = output

    for number, layer in enumerate((*policy.actor.hidden, policy.actor.head)):
        then("Gemm", **{f"weights{number}": layer.weights, f"bias{number}": layer.bias})
        if layer is not policy.actor.head:
            then(activation)
    if policy.mean_limit is not None:
        then("Clip", lowest_mean=-policy.mean_limit, highest_mean=policy.mean_limit)
    if policy.squashed:
        then("Tanh")
        then("Mul", half_range=policy.box.half_range)
        then("Add", middle=policy.box.middle)
    else:
        then("Max", low=policy.box.low)
        then("Min", high=policy.box.high)
    nodes[-1] = replace(nodes[-1], outputs=[OUTPUT])
    ports = (OnnxPort(INPUT, FLOAT, (1, OBSERVATION_SIZE)), OnnxPort(OUTPUT, FLOAT, (1, ACTION_SIZE)))
    return OnnxGraph(nodes, constants, ports[:1], ports[1:])


def _difference(agent: Agent, exported: Agent) -> float:
    rng = np.random.default_rng(0)
    low = np.zeros(OBSERVATION_SIZE)
    low[[10, 11]] = -1.0
    observations = rng.uniform(low, 1.0, (ONNX_CHECK_SIZE, OBSERVATION_SIZE)).astype(np.float32)
    return float(np.abs(agent.act(observations) - exported.act(observations)).max())
