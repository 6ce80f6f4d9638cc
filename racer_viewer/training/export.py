"""Model export: an ONNX graph for other languages, or a stripped copy of a model to share.

Both are written from the agent's own layers or the file's plain parts: nothing in the model file is executed. The ONNX
export needs no torch.
"""

from __future__ import annotations

import importlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from racer_env.errors import RacerError
from racer_viewer.agents import Agent, find_stats, load_agent, load_stats, save_stats
from racer_viewer.agents.load import DESCRIPTION
from racer_viewer.agents.onnx_policy import INPUT, OUTPUT
from racer_viewer.agents.policies import ACTION_SIZE, OBSERVATION_SIZE, GaussianPolicy
from racer_viewer.paths import atomic_write

RUN_FIELDS = (
    "_last_obs", "_last_original_obs", "_last_episode_starts", "ep_info_buffer", "ep_success_buffer",
    "lr_schedule", "start_time",
)  # fmt: skip
"""Fields of a model that describe its run rather than its policy; left out of a shared copy."""
LEARNING_RATE = 3e-4
"""Learning rate in a shared copy; the schedule of a run is code and is left out."""
SYSTEM_INFO = "system_info.txt"
SHARE_CHECK_SIZE = 100
"""Number of random observations on which a shared copy is compared with its model."""

MODEL_FILE, STATS_FILE = "model.onnx", "vecnorm_stats.json"
OPSET_VERSION, IR_VERSION = 17, 10
"""Versions of the ONNX operators and file format; runtimes of the last years support both."""
TOLERANCE = 1e-5
"""Maximum difference between an action of the exported model and of the agent."""
ONNX_CHECK_SIZE = 1000
"""Number of random observations on which an exported model is compared with the agent."""
_ACTIVATIONS = {"Tanh": "Tanh", "ReLU": "Relu", "ELU": "Elu", "LeakyReLU": "LeakyRelu"}


def share(model: Path, target: Path) -> Path:
    """Write a copy of a model for others, with its statistics beside it, and return its path.

    A trained model also contains the optimiser's state, the last observations and paths of the machine. The copy drives
    the same, loads in stable-baselines3 and is a third of the size.
    """
    agent = load_agent(model)
    target = target.with_suffix(".zip")
    if target.exists() and target.samefile(agent.info.path):
        raise RacerError(f"{target} is the model itself: choose another name")
    stats = find_stats(agent.info.path)
    with atomic_write(target) as temporary:
        _copy(agent.info.path, temporary)
    if stats is not None:
        save_stats(target.with_name(f"{target.stem}_vecnormalize.npz"), load_stats(stats))
    observations = np.random.default_rng(0).uniform(0.0, 1.0, (SHARE_CHECK_SIZE, OBSERVATION_SIZE))
    if not np.array_equal(agent.act(observations), load_agent(target).act(observations)):
        raise RacerError("the copy drives differently: please report this")
    return target


def _copy(source: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(source) as model, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
            for name in model.namelist():
                content = model.read(name)
                if name == DESCRIPTION:
                    content = _without_run_fields(json.loads(content))
                elif name.endswith("optimizer.pth"):
                    content = _without_state(content)
                if name != SYSTEM_INFO:
                    copy.writestr(name, content)
    except zipfile.BadZipFile:
        raise RacerError(f"{source} is not a model of stable-baselines3: only those can be shared") from None


def _without_run_fields(fields: dict[str, Any]) -> bytes:
    kept = {name: value for name, value in fields.items() if name not in RUN_FIELDS}
    return json.dumps({**kept, "learning_rate": LEARNING_RATE}, indent=1).encode()


def _without_state(optimiser: bytes) -> bytes:
    """Return an optimiser's file with its settings but without its state for every weight."""
    import torch

    content = torch.load(io.BytesIO(optimiser), weights_only=True)
    copy = io.BytesIO()
    torch.save({**content, "state": {}}, copy)
    return copy.getvalue()


def export(model: Path, folder: Path) -> float:
    """Write model.onnx and vecnorm_stats.json, and return the largest difference between their actions and the agent's.

    Raises RacerError if it exceeds TOLERANCE.
    """
    agent = load_agent(model)
    if not isinstance(agent.policy, GaussianPolicy):
        raise RacerError(f"{model} is an exported model already")
    stats = find_stats(agent.info.path)
    content = _graph(agent, agent.policy)
    with atomic_write(folder / MODEL_FILE) as temporary:
        temporary.write_bytes(content)
    if stats is not None:
        save_stats(folder / STATS_FILE, load_stats(stats))
    difference = _difference(agent, load_agent(folder / MODEL_FILE, folder / STATS_FILE if stats else None))
    if difference > TOLERANCE:
        raise RacerError(f"the exported model differs from the agent by {difference:.2g}: please report this")
    return difference


def _graph(agent: Agent, policy: GaussianPolicy) -> bytes:
    """Build the ONNX graph from normalised observations to the policy's mean action."""
    onnx = _onnx()
    activation = _ACTIVATIONS.get(policy.actor.activation.name)
    if activation is None:
        raise RacerError(f"models with the activation {policy.actor.activation.name} cannot be exported")
    nodes: list[Any] = []
    constants: list[Any] = []
    value = INPUT

    def constant(name: str, array: Any) -> str:
        constants.append(onnx.numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def then(operation: str, *inputs: str) -> None:
        nonlocal value
        output = f"value{len(nodes)}"
        nodes.append(onnx.helper.make_node(operation, [value, *inputs], [output]))
        value = output

    for number, layer in enumerate((*policy.actor.hidden, policy.actor.head)):
        then("Gemm", constant(f"weights{number}", layer.weights), constant(f"bias{number}", layer.bias))
        if layer is not policy.actor.head:
            then(activation)
    if policy.mean_limit is not None:
        then("Clip", constant("lowest_mean", -policy.mean_limit), constant("highest_mean", policy.mean_limit))
    if policy.squashed:
        then("Tanh")
        then("Mul", constant("half_range", policy.box.half_range))
        then("Add", constant("middle", policy.box.middle))
    else:
        then("Max", constant("low", policy.box.low))
        then("Min", constant("high", policy.box.high))
    nodes[-1].output[0] = OUTPUT
    number_type = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        nodes,
        agent.name,
        [onnx.helper.make_tensor_value_info(INPUT, number_type, [1, OBSERVATION_SIZE])],
        [onnx.helper.make_tensor_value_info(OUTPUT, number_type, [1, ACTION_SIZE])],
        constants,
    )
    versions = [onnx.helper.make_opsetid("", OPSET_VERSION)]
    model = onnx.helper.make_model(graph, producer_name="racer-viewer", opset_imports=versions)
    model.ir_version = IR_VERSION
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _onnx() -> Any:
    try:
        onnx = importlib.import_module("onnx")
        for part in ("onnx.numpy_helper", "onnx.helper", "onnx.checker"):
            importlib.import_module(part)
    except ImportError:
        raise RacerError("export needs the packages onnx and onnxruntime: pip install onnx onnxruntime") from None
    return onnx


def _difference(agent: Agent, exported: Agent) -> float:
    rng = np.random.default_rng(0)
    low = np.zeros(OBSERVATION_SIZE)
    low[[10, 11]] = -1.0
    observations = rng.uniform(low, 1.0, (ONNX_CHECK_SIZE, OBSERVATION_SIZE)).astype(np.float32)
    return float(np.abs(agent.act(observations) - exported.act(observations)).max())
