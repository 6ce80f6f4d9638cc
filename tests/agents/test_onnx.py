"""Exported models drive like the agent they were exported from, and hostile graphs are refused cheaply."""

import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from racer_viewer.agents import Agent, AgentError, load_agent, save_stats
from racer_viewer.agents.onnx_policy import OnnxPolicy
from tests.agents.models import some_observations, trained


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


@pytest.mark.parametrize("change", [{"obs": "input"}, {"actions": "action"}])
def test_graphs_of_another_kind_are_refused(change: dict[str, Any], original: Agent, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(onnx_file(original, **change))
    with pytest.raises(AgentError, match=r"model\.onnx: has .*; required is '(obs|actions)' of \[1, (14|3)\]"):
        load_agent(tmp_path / "model.onnx")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x08\x08"])
def test_files_that_are_no_graph_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(AgentError, match=r"model\.onnx: is not an ONNX model|has \[\]"):
        load_agent(tmp_path / "model.onnx")


def attribute(name: str, value: int | float | bytes) -> bytes:
    """Return an attribute of a node: a number or a tensor."""
    if isinstance(value, float):
        return field(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)
    return field(1, name) + (
        field(3, value) + field(20, 2) if isinstance(value, int) else field(5, value) + field(20, 4)
    )


def graph_file(nodes: Sequence[bytes], tensors: Sequence[bytes] = (), rows: int | str = 1) -> bytes:
    """Return an ONNX file from `obs` to `actions`."""
    graph = b"".join(field(1, content) for content in nodes) + field(2, "g")
    graph += b"".join(field(5, content) for content in tensors)
    graph += field(11, end("obs", rows, 14)) + field(12, end("actions", rows, 3))
    return field(1, 8) + field(8, field(1, "") + field(2, 17)) + field(7, graph)


WEIGHTS = tensor("w", np.random.default_rng(0).normal(size=(14, 3)))
BIAS = tensor("b", [0.1, -0.2, 0.3])
HEAD = node("MatMul", ("obs", "w"), "m")
GRAPHS = {
    "Gemm": [node("Gemm", ("obs", "w", "b"), "actions")
             + field(5, attribute("alpha", 0.5)) + field(5, attribute("beta", 2.0))],
    "Gemm transposed": [node("Gemm", ("obs", "t"), "actions") + field(5, attribute("transB", 1))],
    **{name: [HEAD, node(name, ("m", "b"), "actions")] for name in ("Add", "Sub", "Mul", "Div", "Min", "Max")},
    **{name: [HEAD, node(name, ("m",), "actions")] for name in ("Tanh", "Relu", "Sigmoid", "Identity", "Flatten")},
    "LeakyRelu": [HEAD, node("LeakyRelu", ("m",), "actions") + field(5, attribute("alpha", 0.2))],
    "Elu": [HEAD, node("Elu", ("m",), "actions") + field(5, attribute("alpha", 0.7))],
    "Clip": [HEAD, node("Clip", ("m", "low", "high"), "actions")],
    "Clip above": [HEAD, node("Clip", ("m", "", "high"), "actions")],
    "Constant": [node("Constant", (), "c") + field(5, attribute("value", tensor("", [1.0, 2.0, 3.0]))),
                 HEAD, node("Add", ("m", "c"), "actions")],
    "Min of three": [HEAD, node("Min", ("m", "b", "high"), "actions")],
    "Max of one": [HEAD, node("Max", ("m",), "actions")],
    "Concat": [node("Gemm", ("obs", "w"), "m"), node("Concat", ("m", "m"), "mm") + field(5, attribute("axis", 1)),
               node("MatMul", ("mm", "six"), "actions")],
    "Reshape": [HEAD, node("Reshape", ("m", "shape"), "actions")],
}  # fmt: skip
TENSORS = [
    WEIGHTS, BIAS, tensor("t", np.random.default_rng(1).normal(size=(3, 14))), tensor("low", -0.3), tensor("high", 0.4),
    tensor("six", np.random.default_rng(2).normal(size=(6, 3))),
    field(1, 2) + field(2, 7) + field(8, "shape") + field(9, np.array([0, 3], "<i8").tobytes()),
]  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_operations_give_what_onnxruntime_gives(name: str, tmp_path: Path) -> None:
    content = graph_file(GRAPHS[name], TENSORS, "rows")
    session = onnxruntime.InferenceSession(content)
    inputs = np.random.default_rng(3).normal(size=(20, 14)).astype(np.float32)
    (expected,) = session.run(["actions"], {"obs": inputs})
    (tmp_path / "model.onnx").write_bytes(content)
    low, high = np.array([-1, 0, 0], np.float32), np.ones(3, np.float32)
    np.testing.assert_allclose(
        load_agent(tmp_path / "model.onnx").act(inputs), np.clip(expected, low, high), rtol=1e-5, atol=1e-6
    )


def doubling(count: int) -> list[bytes]:
    return [
        node("Concat", (f"v{i}" if i else "obs",) * 2, f"v{i + 1}") + field(5, attribute("axis", 1))
        for i in range(count)
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (graph_file([node("Loop", ("obs",), "actions")]), "has the operations 'Loop'; known are Gemm"),
        (graph_file([node("ConstantOfShape", ("obs",), "actions")]), "has the operations 'ConstantOfShape'"),
        (graph_file([node("If", ("obs",), "x"), node("Scan", ("x",), "actions")]), "has the operations 'If, Scan'"),
        (graph_file(doubling(60)), "computes more than a policy needs: it is too large"),
        (graph_file([node("Add", ("obs", "tall"), "actions")], [tensor("tall", np.zeros((400_000, 1)))]), "too large"),
        (graph_file([node("MatMul", ("obs", "w"), "actions")], [tensor("w", np.zeros((9, 3)))]), "MatMul cannot be"),
        (graph_file([node("MatMul", ("obs", "w"), "actions")]), "MatMul cannot be computed"),
        (graph_file([node("Tanh", ("obs",), "actions")]), "gives no 3 finite actions"),
        (graph_file([node("Gemm", ("obs", "w", "tall"), "actions")], [WEIGHTS, tensor("tall", np.zeros((900, 1)))]),
         "Gemm cannot be computed .*larger than its product"),
        (graph_file([HEAD, node("Elu", ("m",), "actions") + field(5, attribute("alpha", tensor("", np.ones((9, 1)))))],
                    [WEIGHTS]), "Elu cannot be computed .*alpha is not a number"),
        (graph_file([HEAD, node("Clip", ("m",), "actions") + field(5, attribute("min", tensor("", np.ones((9, 1)))))],
                    [WEIGHTS]), "Clip cannot be computed .*min is not a number"),
        (graph_file([HEAD, node("Add", ("m", "b", "m"), "actions")], [WEIGHTS, BIAS]), "Add .*it has 3 operands"),
        (graph_file([node("Clip", ("", "b"), "actions")], [BIAS]), "Clip .*it has 2 operands"),
        (graph_file([node("Flatten", ("",), "actions")]), "Flatten .*it has 1 operands"),
        (graph_file([node("Tanh", ("deep",), "actions")], [tensor("deep", np.zeros((1,) * 40))]), "of 40 dimensions"),
        (graph_file([node("Reshape", ("obs", "ones"), "x"), node("Tanh", ("x",), "actions")],
                    [tensor("ones", [14] + [1] * 40)]), "Reshape .*at most 8 sides"),
        (graph_file([HEAD, node("Div", ("m", "zero"), "actions")], [WEIGHTS, tensor("zero", 0.0)]), "no 3 finite"),
        (graph_file([HEAD], [WEIGHTS + field(13, field(1, "location") + field(2, "/etc/passwd"))]), "in other files"),
        (graph_file([HEAD], [field(1, 2**40) + field(2, 1) + field(8, "w")]), "a tensor is too large"),
        (graph_file([HEAD], [field(1, 14) + field(2, 1) + field(8, "w") + field(9, b"1234")]), "shorter or longer"),
        (graph_file([HEAD], [field(2, 8) + field(8, "w")]), "a tensor of type 8"),
        (graph_file([HEAD + field(7, "com.evil")], [WEIGHTS]), r"an operation of .*com\.evil"),
        (graph_file([node("Identity", ("obs",), "x")] * 1001), "more than 1000 operations"),
        (field(7, b"") * 2, "is not an ONNX model"),
        (varint(7 << 3 | 2) + varint(2**60), "longer than its message"),
        (b"\xff" * 100, "a number is too long"),
    ],
)  # fmt: skip
def test_hostile_graphs_are_refused_in_one_line(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(AgentError, match=message) as refused:
        load_agent(tmp_path / "model.onnx")
    assert "\n" not in str(refused.value)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_damaged_graphs_are_refused_or_drive(data: st.DataObject) -> None:
    content = bytearray(graph_file([*GRAPHS["Elu"]], TENSORS))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)) | st.just(len(content)))
    with suppress(AgentError):
        assert OnnxPolicy(bytes(content[:cut])).mean_actions(np.zeros((2, 14), np.float32)).shape == (2, 3)
