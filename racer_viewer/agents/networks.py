"""Fully connected networks in single precision: forward pass and derivative by the inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

ZERO, HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
ONE_THREAD_PRODUCTS = 2**18
"""Maximum number of products for which OpenBLAS uses one thread. Above that it waits for all cores, and a busy other
process, such as a learner, turns a few microseconds into many milliseconds."""
MIN_BLOCK_ROWS = 16
"""Minimum number of rows per block; smaller blocks cost more than they save."""

LEAKY_SLOPE = np.float32(0.01)
"""Negative slope of torch's LeakyReLU by default."""


@dataclass(frozen=True)
class Activation:
    """Activation function and its derivative. `apply` may overwrite its argument."""

    name: str
    apply: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Layer:
    """Fully connected layer, `x @ weights + bias`; weights are (inputs, outputs), the transpose of torch's."""

    weights: Floats
    bias: Floats

    @property
    def inputs(self) -> int:
        return len(self.weights)

    @property
    def outputs(self) -> int:
        return len(self.bias)

    @cached_property
    def block_rows(self) -> int:
        """Maximum number of rows multiplied at once; 0 for no limit, if blocks would be too small."""
        rows = ONE_THREAD_PRODUCTS // self.weights.size
        return rows if rows >= MIN_BLOCK_ROWS else 0

    def apply(self, values: Floats) -> Floats:
        rows = self.block_rows
        if values.ndim == 1 or not rows or len(values) <= rows:
            result: Floats = values @ self.weights
        else:
            result = np.empty((len(values), self.outputs), np.float32)
            for start in range(0, len(values), rows):
                np.matmul(values[start : start + rows], self.weights, out=result[start : start + rows])
        result += self.bias
        return result


@dataclass(frozen=True, eq=False)
class Network:
    """Network of hidden layers, each followed by the activation, and a head without one."""

    hidden: tuple[Layer, ...]
    head: Layer
    activation: Activation

    @property
    def inputs(self) -> int:
        return (*self.hidden, self.head)[0].inputs

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the hidden layers."""
        return tuple(layer.outputs for layer in self.hidden)

    def features(self, values: Floats) -> Floats:
        """Return the values of the last hidden layer."""
        for layer in self.hidden:
            values = self.activation.apply(layer.apply(values))
        return values

    def jacobian(self, values: Floats) -> Floats:
        """Return the derivative of the head's outputs by the inputs for one row of values, (outputs, inputs)."""
        slopes = []
        for layer in self.hidden:
            sums = layer.apply(values)
            slopes.append(self.activation.slope(sums))
            values = self.activation.apply(sums)
        jacobian = self.head.weights.T
        for layer, slope in zip(reversed(self.hidden), reversed(slopes), strict=True):
            jacobian = np.matmul(jacobian * slope, layer.weights.T)
        return jacobian


def _tanh(x: Floats) -> Floats:
    return np.tanh(x, out=x)


def _tanh_slope(x: Floats) -> Floats:
    return ONE - np.square(np.tanh(x))


def _relu(x: Floats) -> Floats:
    return np.maximum(x, ZERO, out=x)


def _relu_slope(x: Floats) -> Floats:
    return (x > 0.0).astype(np.float32)


def _leaky_relu(x: Floats) -> Floats:
    result: Floats = np.maximum(x, LEAKY_SLOPE * x)
    return result


def _leaky_relu_slope(x: Floats) -> Floats:
    return np.where(x > 0.0, ONE, LEAKY_SLOPE)


def _elu(x: Floats) -> Floats:
    result: Floats = np.where(x > ZERO, x, np.expm1(np.minimum(x, ZERO)))
    return result


def _elu_slope(x: Floats) -> Floats:
    result: Floats = np.exp(np.minimum(x, ZERO))
    return result


def _sigmoid(x: Floats) -> Floats:
    result: Floats = HALF + HALF * np.tanh(HALF * x)
    return result


def _silu(x: Floats) -> Floats:
    return x * _sigmoid(x)


def _silu_slope(x: Floats) -> Floats:
    sigmoid = _sigmoid(x)
    result: Floats = np.multiply(sigmoid, ONE + x * (ONE - sigmoid))
    return result


ACTIVATIONS = {
    activation.name: activation
    for activation in (
        Activation("Tanh", _tanh, _tanh_slope),
        Activation("ReLU", _relu, _relu_slope),
        Activation("LeakyReLU", _leaky_relu, _leaky_relu_slope),
        Activation("ELU", _elu, _elu_slope),
        Activation("SiLU", _silu, _silu_slope),
    )
}
"""Activations by their names in torch.nn, with default settings."""
