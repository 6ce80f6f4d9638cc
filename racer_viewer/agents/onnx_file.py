"""ONNX files: the part of the format that a policy needs, read and written without onnx or onnxruntime.

An ONNX file is a protobuf message. Every length is checked before it is used, the number of fields in all messages is
bounded, and the content of tensors is not copied; tensors in other files are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_viewer.agents.archive import AgentError, shown

MAX_FIELDS = 200_000
"""Maximum number of fields, and of numbers in lists, in all messages of a file; a policy has a few hundred."""
MAX_NODES = 1000
MAX_VALUES = 16 * 2**20
"""Maximum number of values in all tensors of a file."""
MAX_DIMENSIONS = 8
"""Maximum number of dimensions of a tensor; numpy combines arrays of at most 32."""
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types of protobuf."""
FLOAT, INT64, DOUBLE = 1, 7, 11
"""Tensor element types of ONNX."""
DTYPES: Mapping[int, np.dtype[Any]] = {FLOAT: np.dtype("<f4"), INT64: np.dtype("<i8"), DOUBLE: np.dtype("<f8")}
OPSET_VERSION, IR_VERSION = 17, 10
"""Versions of the operators and of the file format that are written; runtimes of the last years support both."""

Value = int | memoryview
Message = Mapping[int, Sequence[Value]]
"""Values of a message by the numbers of their fields."""
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
        return _Reader().graph(memoryview(data))
    except (ValueError, IndexError, struct.error, OverflowError) as error:
        raise AgentError(f"is not an ONNX model, or it is damaged ({shown(str(error))})") from error


def write_onnx(graph: OnnxGraph, name: str) -> bytes:
    """Return an ONNX file of a graph of single precision."""
    content = [_field(1, _node_message(node)) for node in graph.nodes]
    content += [_field(2, name), *(_field(5, _tensor_message(each, array)) for each, array in graph.constants.items())]
    content += [_field(11, _port_message(port)) for port in graph.inputs]
    content += [_field(12, _port_message(port)) for port in graph.outputs]
    operators = _field(1, "") + _field(2, OPSET_VERSION)
    parts = (_field(1, IR_VERSION), _field(2, "racer-viewer"), _field(7, b"".join(content)), _field(8, operators))
    return b"".join(parts)


class _Reader:
    """Reader of the messages of one file, each of which is read once; all of them share one bound."""

    def __init__(self) -> None:
        self._fields_left, self._values_left = MAX_FIELDS, MAX_VALUES

    def graph(self, data: memoryview) -> OnnxGraph:
        graph = self._message(_only(_parts(self._message(data), 7), "graph"))
        nodes = _parts(graph, 1)
        if len(nodes) > MAX_NODES:
            raise AgentError(f"is an ONNX model of more than {MAX_NODES} operations")
        constants = dict(self._tensor(each) for each in _parts(graph, 5))
        inputs, outputs = ([self._port(each) for each in _parts(graph, number)] for number in (11, 12))
        inputs = [port for port in inputs if port.name not in constants]
        return OnnxGraph([self._node(each) for each in nodes], constants, inputs, outputs)

    def _message(self, data: memoryview) -> Message:
        """Return the fields of a message; 4 and 8 byte values as bytes."""
        fields: dict[int, list[Value]] = {}
        position = 0
        while position < len(data):
            self._count_field()
            key, position = _read_varint(data, position)
            number, wire_type = key >> 3, key & 7
            value: Value
            if wire_type == VARINT:
                value, position = _read_varint(data, position)
            else:
                size, position = _size(data, position, wire_type)
                value, position = data[position : position + size], position + size
            fields.setdefault(number, []).append(value)
        return fields

    def _count_field(self) -> None:
        self._fields_left -= 1
        if self._fields_left < 0:
            raise ValueError("it has too many fields")

    def _numbers(self, message: Message, number: int) -> list[int]:
        """Return a repeated integer field, packed or not."""
        result: list[int] = []
        for value in message.get(number, ()):
            if isinstance(value, int):
                result.append(_signed(value))
                continue
            position = 0
            while position < len(value):
                self._count_field()
                item, position = _read_varint(value, position)
                result.append(_signed(item))
        return result

    def _node(self, data: memoryview) -> OnnxNode:
        message = self._message(data)
        if (domain := _text(message, 7)) not in ("", "ai.onnx"):
            raise ValueError(f"an operation of {shown(domain)}")
        inputs, outputs = ([str(each, "utf-8") for each in _parts(message, number)] for number in (1, 2))
        attributes = dict(self._attribute(each) for each in _parts(message, 5))
        return OnnxNode(_text(message, 4), inputs, outputs, attributes)

    def _attribute(self, data: memoryview) -> tuple[str, Any]:
        """Return the name and value of an attribute: a number, a list of whole numbers or a tensor."""
        message = self._message(data)
        name = _text(message, 1)
        match message:
            case {2: [memoryview() as value, *_]}:
                return name, struct.unpack("<f", value)[0]
            case {3: [int() as value, *_]}:
                return name, _signed(value)
            case {5: [memoryview() as value, *_]}:
                return name, self._tensor(value)[1]
            case {8: _}:
                return name, self._numbers(message, 8)
        return name, None

    def _tensor(self, data: memoryview) -> tuple[str, Array]:
        """Return the name and content of a tensor."""
        message = self._message(data)
        if 13 in message or any(self._numbers(message, 14)):
            raise AgentError("is an ONNX model with tensors in other files, which are not read")
        shape, (kind,) = self._numbers(message, 1), self._numbers(message, 2) or (0,)
        if len(shape) > MAX_DIMENSIONS:
            raise ValueError(f"a tensor of {len(shape)} dimensions")
        size = 1
        for side in shape:
            size *= side
            if side < 0 or size > self._values_left:
                raise ValueError("a tensor is too large")
        self._values_left -= size
        if kind not in DTYPES:
            raise ValueError(f"a tensor of type {kind}")
        content = _parts(message, 9) or _parts(message, {FLOAT: 4, DOUBLE: 10}.get(kind, 9))
        if kind == INT64 and not content:
            numbers = np.array(self._numbers(message, 7), DTYPES[kind])
        else:
            numbers = np.frombuffer(content[0] if len(content) == 1 else b"".join(content), DTYPES[kind])
        if numbers.size != size:
            raise ValueError("a tensor is shorter or longer than its shape")
        return _text(message, 8), numbers.reshape(shape)

    def _port(self, data: memoryview) -> OnnxPort:
        message = self._message(data)
        kind_of_value = self._message(_only(_parts(message, 2), "type"))
        tensor = self._message(_only(_parts(kind_of_value, 1), "tensor type"))
        shapes = [self._message(each) for each in _parts(tensor, 2)]
        sides = [self._numbers(self._message(each), 1) for shape in shapes for each in _parts(shape, 1)]
        (kind,) = self._numbers(tensor, 1) or (0,)
        return OnnxPort(_text(message, 1), kind, tuple(side[0] if side else None for side in sides))


def _size(data: memoryview, position: int, wire_type: int) -> tuple[int, int]:
    """Return the size of a field that is not a varint, and its position."""
    if wire_type == BYTES:
        size, position = _read_varint(data, position)
    elif wire_type in (FIXED64, FIXED32):
        size = 8 if wire_type == FIXED64 else 4
    else:
        raise ValueError(f"wire type {wire_type}")
    if size > len(data) - position:
        raise ValueError("a field is longer than its message")
    return size, position


def _read_varint(data: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (2**64 - 1), position
    raise ValueError("a number is too long")


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _parts(message: Message, number: int) -> list[memoryview]:
    """Return a repeated field of messages, texts or bytes."""
    found = message.get(number, ())
    parts = [value for value in found if isinstance(value, memoryview)]
    if len(parts) != len(found):
        raise ValueError(f"field {number} is not a message")
    return parts


def _only(found: Sequence[memoryview], what: str) -> memoryview:
    if len(found) != 1:
        raise ValueError(f"it has {len(found)} of: {what}")
    return found[0]


def _text(message: Message, number: int) -> str:
    return "".join(str(each, "utf-8") for each in _parts(message, number)[-1:])


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
