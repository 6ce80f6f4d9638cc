"""Exported ONNX policies: normalised `obs` [1, 14] → `actions` [1, 3], computed with numpy.

Only the operations that a policy needs are known, and the size of every result is checked before it is computed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from racer_viewer.agents.archive import AgentError, shown
from racer_viewer.agents.networks import Floats
from racer_viewer.agents.onnx_file import (
    FLOAT,
    MAX_DIMENSIONS,
    Array,
    OnnxGraph,
    OnnxNode,
    OnnxPort,
    read_onnx,
)
from racer_viewer.agents.policies import ACTION_HIGH, ACTION_LOW, ACTION_SIZE, OBSERVATION_SIZE, ActionBox

INPUT, OUTPUT = "obs", "actions"
MAX_ONNX_BYTES = 64 * 2**20
"""Maximum size of a file [bytes]; a policy of three layers of 1024 has 8 MiB."""
DERIVATIVE_STEP = 1e-3
"""Step of the central difference, in normalised inputs."""
MAX_RESULTS = 2**20
"""Maximum number of values in the results of all operations, for one observation; three layers of 4096 have 25,000."""
ROWS_AT_ONCE = 32
"""Observations that are computed at once; their results take at most 256 MiB."""
MAX_PRODUCTS = 2**26
"""Maximum number of products, and of operands of other operations, for one observation; three layers of 4096 have half
as many."""

Operation = Callable[[Mapping[str, Any], Sequence[Any]], Array]


class OnnxPolicy:
    """Policy of an ONNX model; only its mean action is known."""

    def __init__(self, data: bytes) -> None:
        self._graph = read_onnx(data)
        _check_ports(self._graph)
        unknown = sorted({node.operation for node in self._graph.nodes} - OPERATIONS.keys())
        if unknown:
            raise AgentError(f"has the operations {shown(', '.join(unknown))}; known are {', '.join(OPERATIONS)}")
        self._constants = {name: _as_operand(array) for name, array in self._graph.constants.items()}
        self._one_by_one = self._graph.inputs[0].shape[0] == 1
        self._box = ActionBox(ACTION_LOW, ACTION_HIGH)
        self._run(np.zeros((1, OBSERVATION_SIZE), np.float32))  # reports a graph that cannot be computed

    @property
    def noise_shape(self) -> None:
        return None

    def mean_actions(self, inputs: Floats) -> Floats:
        rows, step = np.atleast_2d(inputs), 1 if self._one_by_one else ROWS_AT_ONCE
        parts = [self._run(rows[first : first + step]) for first in range(0, len(rows), step)]
        actions = np.concatenate([np.empty((0, ACTION_SIZE), np.float32), *parts])
        return self._box.clip(actions.reshape((*inputs.shape[:-1], ACTION_SIZE)))

    def sampled_actions(self, inputs: Floats, rng: np.random.Generator) -> None:
        return None

    def noisy_actions(self, inputs: Floats, normals: Floats) -> None:
        return None

    def values(self, inputs: Floats) -> None:
        return None

    def spread(self, inputs: Floats) -> None:
        return None

    def jacobian(self, inputs: Floats) -> Floats:
        """Return the derivative of the mean action, by central differences."""
        steps = np.eye(OBSERVATION_SIZE, dtype=np.float32) * np.float32(DERIVATIVE_STEP)
        difference: Floats = self.mean_actions(inputs + steps) - self.mean_actions(inputs - steps)
        return difference.T / np.float32(2.0 * DERIVATIVE_STEP)

    def _run(self, rows: Floats) -> Floats:
        """Compute the graph for some rows of observations."""
        values: dict[str, Array] = {**self._constants, INPUT: rows}
        results, products = MAX_RESULTS * len(rows), MAX_PRODUCTS * len(rows)
        for node in self._graph.nodes:
            try:
                operands = [values[name] if name else None for name in node.inputs]
                size, factors = _check_cost(node, operands)
                results, products = results - size, products - size * factors
                if results < 0 or products < 0:
                    raise AgentError("computes more than a policy needs: it is too large")
                with np.errstate(all="ignore"):
                    result = OPERATIONS[node.operation](node.attributes, operands)
            except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
                raise AgentError(f"its operation {node.operation} cannot be computed ({shown(str(error))})") from error
            values[node.outputs[0] if node.outputs else ""] = result
        actions = values.get(OUTPUT)
        if actions is None or actions.shape != (len(rows), ACTION_SIZE) or not np.isfinite(actions).all():
            raise AgentError(f"gives no {ACTION_SIZE} finite actions for {OBSERVATION_SIZE} observations")
        return actions.astype(np.float32, copy=False)


def _check_ports(graph: OnnxGraph) -> None:
    for ports, name, size in ((graph.inputs, INPUT, OBSERVATION_SIZE), (graph.outputs, OUTPUT, ACTION_SIZE)):
        if len(ports) != 1 or not _fits(ports[0], name, size):
            found = [(port.name, port.shape) for port in ports]
            raise AgentError(f"has {shown(str(found))}; required is {name!r} of [1, {size}] single precision numbers")


def _fits(port: OnnxPort, name: str, size: int) -> bool:
    return port.name == name and port.element_type == FLOAT and len(port.shape) == 2 and port.shape[1] == size


def _as_operand(array: Array) -> Array:
    """Return a constant in single precision; whole numbers, which are shapes and axes, stay as they are."""
    return array if array.dtype.kind == "i" else array.astype(np.float32, copy=False)


def _check_cost(node: OnnxNode, operands: Sequence[Array | None]) -> tuple[int, int]:
    """Return the number of values in the result of an operation, and the number of products or operands for each.

    Raises ValueError if operands are missing, or are too many.
    """
    least, most = OPERANDS.get(node.operation, (1, 1))
    if not least <= len(operands) <= most or any(each is None for each in operands[:least]):
        raise ValueError(f"it has {len(operands)} operands")
    arrays = [each for each in operands if each is not None]
    if node.operation in PRODUCTS:
        left, right = _factors(node.attributes, arrays)
        shape = left.shape[0], right.shape[1]
        if np.broadcast_shapes(shape, *(each.shape for each in arrays[2:])) != shape:
            raise ValueError("it adds something larger than its product")
        return math.prod(shape), int(left.shape[1])
    if node.operation == "Concat":
        return sum(each.size for each in arrays), 1
    if node.operation == "Reshape":
        arrays = arrays[:1]
    return math.prod(np.broadcast_shapes(*(each.shape for each in arrays))), len(arrays)


def _factors(attributes: Mapping[str, Any], operands: Sequence[Array]) -> tuple[Array, Array]:
    """Return the two matrices of a product, transposed where the attributes say so."""
    left, right = operands[:2]
    if left.ndim != 2 or right.ndim != 2:
        raise ValueError("it multiplies something other than matrices")
    left = left.T if _number(attributes, "transA", 0) else left
    return left, right.T if _number(attributes, "transB", 0) else right


def _number(attributes: Mapping[str, Any], name: str, default: float) -> np.float32:
    """Return an attribute that is a number; an array would make the result larger than its operands."""
    value = attributes.get(name, default)
    if not isinstance(value, int | float):
        raise TypeError(f"its {name} is not a number")
    return np.float32(value)


def _gemm(attributes: Mapping[str, Any], operands: Sequence[Array | None]) -> Array:
    left, right, addend = (*operands, None)[:3]
    assert left is not None
    assert right is not None
    left, right = _factors(attributes, (left, right))
    result: Array = _number(attributes, "alpha", 1.0) * (left @ right)
    return result if addend is None else result + _number(attributes, "beta", 1.0) * addend


def _clip(attributes: Mapping[str, Any], operands: Sequence[Array | None]) -> Array:
    """Clip to limits, which are operands, or attributes in old files."""
    values, low, high = (*operands, None, None)[:3]
    assert values is not None
    low_limit = _number(attributes, "min", -math.inf) if low is None else low
    return np.clip(values, low_limit, _number(attributes, "max", math.inf) if high is None else high)


def _constant(attributes: Mapping[str, Any], operands: Sequence[Array]) -> Array:
    value = attributes["value"] if "value" in attributes else attributes["value_float"]
    return _as_operand(np.asarray(value))


def _flatten(attributes: Mapping[str, Any], operands: Sequence[Array]) -> Array:
    axis = attributes.get("axis", 1)
    return operands[0].reshape((math.prod(operands[0].shape[:axis]), -1))


def _reshape(attributes: Mapping[str, Any], operands: Sequence[Array]) -> Array:
    values, shape = operands
    if shape.ndim != 1 or shape.size > MAX_DIMENSIONS:
        raise ValueError(f"a shape has at most {MAX_DIMENSIONS} sides")
    return values.reshape([values.shape[axis] if side == 0 else int(side) for axis, side in enumerate(shape)])


def _elu(attributes: Mapping[str, Any], operands: Sequence[Array]) -> Array:
    values, alpha = operands[0], _number(attributes, "alpha", 1.0)
    return np.where(values > 0, values, alpha * np.expm1(np.minimum(values, np.float32(0.0))))


def _leaky_relu(attributes: Mapping[str, Any], operands: Sequence[Array]) -> Array:
    return np.where(operands[0] > 0, operands[0], _number(attributes, "alpha", 0.01) * operands[0])


def _of_each(function: Callable[..., Any]) -> Operation:
    """Return the operation of an element-wise function."""
    return lambda attributes, operands: function(*operands)


PRODUCTS = ("Gemm", "MatMul")
OPERANDS: Mapping[str, tuple[int, int]] = {
    "Gemm": (2, 3), "Clip": (1, 3), "Constant": (0, 0), "Min": (1, sys.maxsize), "Max": (1, sys.maxsize),
    "Concat": (1, sys.maxsize), **dict.fromkeys(("MatMul", "Add", "Sub", "Mul", "Div", "Reshape"), (2, 2)),
}  # fmt: skip
"""Minimum and maximum number of operands of an operation; operations that are not listed have one."""
OPERATIONS: Mapping[str, Operation] = {
    "Gemm": _gemm,
    "MatMul": lambda attributes, operands: operands[0] @ operands[1],
    "Add": _of_each(np.add),
    "Sub": _of_each(np.subtract),
    "Mul": _of_each(np.multiply),
    "Div": _of_each(np.divide),
    "Min": _of_each(lambda *values: reduce(np.minimum, values)),
    "Max": _of_each(lambda *values: reduce(np.maximum, values)),
    "Tanh": _of_each(np.tanh),
    "Relu": _of_each(lambda values: np.maximum(values, np.float32(0.0))),
    "LeakyRelu": _leaky_relu,
    "Elu": _elu,
    "Sigmoid": _of_each(lambda values: np.float32(0.5) + np.float32(0.5) * np.tanh(np.float32(0.5) * values)),
    "Clip": _clip,
    "Identity": _of_each(lambda values: values),
    "Constant": _constant,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Concat": lambda attributes, operands: np.concatenate(operands, attributes.get("axis", 0)),
}
"""Operations by their names in ONNX, from attributes and operands to the result."""
