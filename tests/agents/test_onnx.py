"""Exported models drive like the agent they were exported from. Needs onnxruntime, which is optional."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from racer_viewer.agents import Agent, AgentError, load_agent, save_stats
from tests.agents.models import some_observations, trained

needs_onnxruntime = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")


def varint(number: int) -> bytes:
    result = b""
    while number > 127:
        result += bytes([number & 127 | 128])
        number >>= 7
    return result + bytes([number])


def field(number: int, value: int | str | bytes) -> bytes:
    """One field of a protobuf message, which is what an ONNX file is."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def node(kind: str, inputs: Sequence[str], output: str) -> bytes:
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind)


def tensor(name: str, values: Any) -> bytes:
    array = np.asarray(values, np.float32)
    return b"".join(field(1, size) for size in array.shape) + field(2, 1) + field(8, name) + field(9, array.tobytes())


def end(name: str, rows: int | str, columns: int) -> bytes:
    """An input or output of the graph."""
    dimensions = field(1, field(1 if isinstance(rows, int) else 2, rows)) + field(1, field(1, columns))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dimensions)))


def onnx_file(agent: Agent, rows: int | str = 1, obs: str = "obs", actions: str = "actions", columns: int = 3) -> bytes:
    """Return an exported graph: normalised observations in, clipped mean actions out."""
    policy: Any = agent.policy
    nodes, tensors, last = [], [], obs
    for number, layer in enumerate((*policy.actor.hidden, policy.actor.head)):
        tensors += [tensor(f"w{number}", layer.weights), tensor(f"b{number}", layer.bias)]
        nodes += [
            node("MatMul", (last, f"w{number}"), f"m{number}"),
            node("Add", (f"m{number}", f"b{number}"), f"s{number}"),
        ]
        last = f"s{number}"
        if number < len(policy.actor.hidden):
            nodes.append(node("Relu", (last,), f"a{number}"))
            last = f"a{number}"
    tensors += [tensor("low", policy.box.low), tensor("high", policy.box.high)]
    nodes += [node("Max", (last, "low"), "above"), node("Min", ("above", "high"), actions)]
    graph = b"".join(field(1, content) for content in nodes) + field(2, "g")
    graph += b"".join(field(5, content) for content in tensors)
    graph += field(11, end(obs, rows, 14)) + field(12, end(actions, rows, columns))
    return field(1, 8) + field(8, field(1, "") + field(2, 13)) + field(7, graph)


@pytest.fixture
def original(folder: Path) -> Agent:
    return trained("ppo-relu", folder).agent


@pytest.fixture
def statistics(folder: Path) -> Any:
    return trained("ppo-relu", folder).vec_normalize


@needs_onnxruntime
@pytest.mark.parametrize("rows", [1, "cars"])
def test_an_exported_model_drives_the_same(rows: int | str, original: Agent, statistics: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx_file(original, rows))
    save_stats(tmp_path / "vecnorm_stats.json", statistics)
    agent = load_agent(path)
    observations = some_observations(300)
    assert agent.normalised
    assert (agent.name, agent.info.algorithm, agent.info.policy_layers) == ("model", "ONNX", None)
    np.testing.assert_allclose(agent.act(observations), original.act(observations), rtol=0, atol=1e-5)
    np.testing.assert_allclose(agent.act(observations[0]), original.act(observations[0]), rtol=0, atol=1e-5)
    assert agent.act(observations[:0]).shape == (0, 3)


@needs_onnxruntime
def test_what_an_exported_model_does_not_know_it_says(original: Agent, statistics: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx_file(original))
    agent = load_agent(path)
    observation = some_observations(1)[0]
    assert not agent.normalised
    assert agent.values(observation) is None
    assert agent.spread(observation) is None
    assert agent.noise_shape is None
    with pytest.raises(AgentError, match="only act deterministically"):
        agent.act(observation, deterministic=False)
    save_stats(tmp_path / "s.json", statistics)
    ours, theirs = (
        load_agent(path, stats=tmp_path / "s.json").sensitivity(observation),
        original.sensitivity(observation),
    )
    np.testing.assert_allclose(ours, theirs, rtol=0.02, atol=0.01 * np.abs(theirs).max())


@needs_onnxruntime
@pytest.mark.parametrize("change", [{"obs": "input"}, {"actions": "action"}])
def test_graphs_of_another_kind_are_refused(change: dict[str, Any], original: Agent, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(onnx_file(original, **change))
    with pytest.raises(AgentError, match=r"model\.onnx: has .*; required is '(obs|actions)' of \[1, (14|3)\]"):
        load_agent(tmp_path / "model.onnx")


@needs_onnxruntime
@pytest.mark.parametrize("content", [b"", b"hello", b"\x08\x08"])
def test_files_that_are_no_graph_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(AgentError, match=r"model\.onnx: is not an ONNX model|has \[\]"):
        load_agent(tmp_path / "model.onnx")


def test_without_onnxruntime_the_error_says_how_to_get_it(
    original: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.onnx").write_bytes(onnx_file(original))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(AgentError, match="needs onnxruntime: pip install onnxruntime"):
        load_agent(tmp_path / "model.onnx")
