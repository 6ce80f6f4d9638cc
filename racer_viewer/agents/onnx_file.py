"""ONNX files: the part of the format that a policy needs, read and written without onnx or onnxruntime.

An ONNX file is a protobuf message. Every length is checked before it is used; tensors in other files are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_viewer.agents.archive import AgentError, shown

MAX_FIELDS = 100_000
"""Maximum number of fields in one message."""
MAX_NODES = 1000
MAX_VALUES = 16 * 2**20
"""Maximum number of values in all tensors of a file."""
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types of protobuf."""
FLOAT, INT64, DOUBLE = 1, 7, 11
"""Tensor element types of ONNX."""
DTYPES: Mapping[int, np.dtype[Any]] = {FLOAT: np.dtype("<f4"), INT64: np.dtype("<i8"), DOUBLE: np.dtype("<f8")}
OPSET_VERSION, IR_VERSION = 17, 10
"""Versions of the operators and of the file format that are written; runtimes of the last years support both."""

Value = int | bytes
Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class OnnxNode:
    """One operation: the names of its inputs and outputs, and its attributes."""

    operation: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OnnxPort:
    """Input or output of a graph. shape: None for a size that is not fixed."""

    name: str
    element_type: int
    shape: tuple[int | None, ...]


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """Nodes in the order of their execution, constants by name, and the graph's inputs and outputs."""

    nodes: Sequence[OnnxNode]
    constants: Mapping[str, Array]
    inputs: Sequence[OnnxPort]
    outputs: Sequence[OnnxPort]


def read_onnx(data: bytes) -> OnnxGraph:
    """Read the graph of an ONNX file. Raises AgentError for damaged files and for parts that a policy does not need."""
    try:
        graph = _only(_messages(data, 7), "graph")
        nodes = [_read_node(each) for each in _messages(graph, 1)]
        if len(nodes) > MAX_NODES:
            raise AgentError(f"is an ONNX model of more than {MAX_NODES} operations")
        constants, left = {}, MAX_VALUES
        for each in _messages(graph, 5):
            name, array = _read_tensor(each, left)
            constants[name], left = array, left - array.size
        inputs, outputs = ([_read_port(each) for each in _messages(graph, number)] for number in (11, 12))
    except (ValueError, IndexError, struct.error, OverflowError) as error:
        raise AgentError(f"is not an ONNX model, or it is damaged ({shown(str(error))})") from error
    return OnnxGraph(nodes, constants, [port for port in inputs if port.name not in constants], outputs)


def write_onnx(graph: OnnxGraph, name: str) -> bytes:
    """Return an ONNX file of a graph of single precision."""
    content = [_field(1, _node_message(node)) for node in graph.nodes]
    content += [_field(2, name), *(_field(5, _tensor_message(each, array)) for each, array in graph.constants.items())]
    content += [_field(11, _port_message(port)) for port in graph.inputs]
    content += [_field(12, _port_message(port)) for port in graph.outputs]
    operators = _field(1, "") + _field(2, OPSET_VERSION)
    parts = (_field(1, IR_VERSION), _field(2, "racer-viewer"), _field(7, b"".join(content)), _field(8, operators))
    return b"".join(parts)


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the number and value of each field of a message; 4 and 8 byte values as bytes."""
    position, count = 0, 0
    while position < len(data):
        count += 1
        if count > MAX_FIELDS:
            raise ValueError("a message has too many fields")
        key, position = _read_varint(data, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == VARINT:
            value, position = _read_varint(data, position)
            yield number, value
            continue
        if wire_type == BYTES:
            size, position = _read_varint(data, position)
        elif wire_type in (FIXED64, FIXED32):
            size = 8 if wire_type == FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire_type}")
        if size > len(data) - position:
            raise ValueError("a field is longer than its message")
        yield number, data[position : position + size]
        position += size


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (2**64 - 1), position
    raise ValueError("a number is too long")


def _messages(data: bytes, number: int) -> list[bytes]:
    found = [value for each, value in _fields(data) if each == number]
    if not all(isinstance(value, bytes) for value in found):
        raise ValueError(f"field {number} is not a message")
    return [value for value in found if isinstance(value, bytes)]


def _only(found: Sequence[bytes], what: str) -> bytes:
    if len(found) != 1:
        raise ValueError(f"it has {len(found)} of: {what}")
    return found[0]


def _text(data: bytes, number: int) -> str:
    return b"".join(_messages(data, number)[-1:]).decode("utf-8")


def _numbers(data: bytes, number: int) -> list[int]:
    """Return a repeated integer field, packed or not."""
    result: list[int] = []
    for each, value in _fields(data):
        if each != number:
            continue
        if isinstance(value, int):
            result.append(_signed(value))
            continue
        position = 0
        while position < len(value):
            item, position = _read_varint(value, position)
            result.append(_signed(item))
    return result


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _read_node(data: bytes) -> OnnxNode:
    if _text(data, 7) not in ("", "ai.onnx"):
        raise ValueError(f"an operation of {_text(data, 7)}")
    inputs, outputs = ([each.decode("utf-8") for each in _messages(data, number)] for number in (1, 2))
    return OnnxNode(_text(data, 4), inputs, outputs, dict(_read_attribute(each) for each in _messages(data, 5)))


def _read_attribute(data: bytes) -> tuple[str, Any]:
    """Return the name and value of an attribute: a number, a list of whole numbers or a tensor."""
    for number, value in _fields(data):
        if number == 2 and isinstance(value, bytes):
            return _text(data, 1), struct.unpack("<f", value)[0]
        if number == 3 and isinstance(value, int):
            return _text(data, 1), _signed(value)
        if number == 5 and isinstance(value, bytes):
            return _text(data, 1), _read_tensor(value, MAX_VALUES)[1]
        if number == 8:
            return _text(data, 1), _numbers(data, 8)
    return _text(data, 1), None


def _read_tensor(data: bytes, max_values: int) -> tuple[str, Array]:
    """Return the name and content of a tensor. max_values: maximum number of values."""
    if _messages(data, 13) or any(_numbers(data, 14)):
        raise AgentError("is an ONNX model with tensors in other files, which are not read")
    shape, (kind,) = _numbers(data, 1), _numbers(data, 2) or (0,)
    size = 1
    for side in shape:
        size *= side
        if side < 0 or size > max_values:
            raise ValueError("a tensor is too large")
    if kind not in DTYPES:
        raise ValueError(f"a tensor of type {kind}")
    dtype = DTYPES[kind]
    content = b"".join(_messages(data, 9)) or b"".join(_messages(data, {FLOAT: 4, DOUBLE: 10}.get(kind, 9)))
    numbers = np.array(_numbers(data, 7), dtype) if kind == INT64 and not content else np.frombuffer(content, dtype)
    if numbers.size != size:
        raise ValueError("a tensor is shorter or longer than its shape")
    return _text(data, 8), numbers.reshape(shape)


def _read_port(data: bytes) -> OnnxPort:
    tensor = _only(_messages(_only(_messages(data, 2), "type"), 1), "tensor type")
    sides = [_numbers(each, 1) for shape in _messages(tensor, 2) for each in _messages(shape, 1)]
    (kind,) = _numbers(tensor, 1) or (0,)
    return OnnxPort(_text(data, 1), kind, tuple(side[0] if side else None for side in sides))


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3 | VARINT) + _varint(value)
    data = value.encode("utf-8") if isinstance(value, str) else value
    return _varint(number << 3 | BYTES) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    result = bytearray()
    while value > 127:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes((*result, value))


def _node_message(node: OnnxNode) -> bytes:
    names = [_field(number, name) for number, group in ((1, node.inputs), (2, node.outputs)) for name in group]
    return b"".join((*names, _field(4, node.operation)))


def _tensor_message(name: str, array: Array) -> bytes:
    shape = b"".join(_field(1, side) for side in array.shape)
    return shape + _field(2, FLOAT) + _field(8, name) + _field(9, array.astype(DTYPES[FLOAT]).tobytes())


def _port_message(port: OnnxPort) -> bytes:
    shape = b"".join(_field(1, _field(1, side) if side is not None else b"") for side in port.shape)
    return _field(1, port.name) + _field(2, _field(1, _field(1, port.element_type) + _field(2, shape)))
