"""Policy and value network of PPO: parameters, forward pass and gradient of the loss.

The two networks have the same hidden layers and take the same observations, so each layer is one stack of two matrices
that numpy multiplies in one call: number 0 is the policy, number 1 the value function. The output layers are stacked
too; the value function uses the first of its outputs, the weights of the others stay 0.

numpy's matrix products release Python's lock and so do the compiled functions here, which do everything between two
products in one pass. Rows are processed in blocks that stay in the processor's cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.compiled import Compiled, bind, fast_part, kernel
from racer_viewer.agents.policies import ACTION_SIZE, OBSERVATION_SIZE

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Rows = NDArray[np.int64]

POLICY, VALUE = 0, 1
"""Index of the networks in every stack."""
BOTH = slice(POLICY, VALUE + 1)
BLOCK_ROWS = 512
"""Maximum number of rows of a block; its activations fit into the cache of a core."""
HIDDEN_GAIN, ACTION_GAIN, VALUE_GAIN = math.sqrt(2.0), 0.01, 1.0
"""Gains of the orthogonal initial weights, as in stable-baselines3."""
RELU = {"tanh": False, "relu": True}
"""True for relu, by the names of activations in a run's config."""
NETS = ("policy_net", "value_net")
"""Names of the networks in stable-baselines3, in the order of the stack."""
HEADS = ("action_net", "value_net")
LOG_STD = "log_std"
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)

POLICY_LOSS, VALUE_LOSS, KL_DIVERGENCE, CLIPPED = range(4)
"""Indices of the sums over rows that `policy_gradient` adds up."""
SUMS = 4


class Parameters:
    """Numbers of both networks in one vector, and views of its parts; also used for gradients and their averages.

    sizes: sizes of the hidden layers.
    flat: all numbers. log_std: logarithm of the action noise (3,).
    weights: (2, inputs, outputs) for each layer. biases: (2, outputs) for each layer.
    """

    def __init__(self, sizes: tuple[int, ...], flat: Floats | None = None) -> None:
        self.sizes = sizes
        shapes: list[tuple[int, ...]] = [(ACTION_SIZE,)]
        for inputs, outputs in pairwise((OBSERVATION_SIZE, *sizes, ACTION_SIZE)):
            shapes += [(2, inputs, outputs), (2, outputs)]
        count = sum(map(math.prod, shapes))
        self.flat = np.zeros(count, np.float32) if flat is None else flat
        views, position = [], 0
        for shape in shapes:
            views.append(self.flat[position : position + math.prod(shape)].reshape(shape))
            position += math.prod(shape)
        self.log_std, self.weights, self.biases = views[0], views[1::2], views[2::2]

    def copy(self) -> Parameters:
        return Parameters(self.sizes, self.flat.copy())

    def tensors(self) -> dict[str, Floats]:
        """Return all tensors by their names in stable-baselines3, in the order of its parameters; copies."""
        tensors = {LOG_STD: self.log_std.copy()}
        for name, view in self._views():
            tensors[name] = np.ascontiguousarray(view)
        return tensors

    def load(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set all numbers. Raises ValueError if a tensor is missing or has another shape."""
        for name, view in (LOG_STD, self.log_std), *self._views():
            if name not in tensors:
                raise ValueError(f"it has no {name}")
            if tensors[name].shape != view.shape:
                raise ValueError(f"{name} has the shape {tensors[name].shape} instead of {view.shape}")
            view[...] = tensors[name]

    def part(self, net: int) -> NDArray[np.bool_]:
        """Return which of the numbers are weights and biases of one of the networks."""
        chosen = Parameters(self.sizes)
        for stack in (*chosen.weights, *chosen.biases):
            stack[net] = 1.0
        return chosen.flat > ZERO

    def _views(self) -> Iterator[tuple[str, Floats]]:
        """Yield views of the weights and biases as stable-baselines3 has them: (outputs, inputs)."""
        hidden = len(self.sizes)
        for net in (POLICY, VALUE):
            for layer in range(hidden):
                name = f"mlp_extractor.{NETS[net]}.{2 * layer}"
                yield f"{name}.weight", self.weights[layer][net].T
                yield f"{name}.bias", self.biases[layer][net]
        for net, outputs in ((POLICY, ACTION_SIZE), (VALUE, 1)):
            yield f"{HEADS[net]}.weight", self.weights[hidden][net, :, :outputs].T
            yield f"{HEADS[net]}.bias", self.biases[hidden][net, :outputs]


def initial_parameters(
    sizes: tuple[int, ...], first_action: tuple[float, ...], log_std: float, rng: np.random.Generator
) -> Parameters:
    """Return orthogonal weights. first_action: mean action of the new policy."""
    parameters = Parameters(sizes)
    parameters.log_std[...] = log_std
    *hidden, head = parameters.weights
    for stack in hidden:
        for weights in stack:
            weights[...] = _orthogonal(weights, HIDDEN_GAIN, rng)
    head[POLICY] = _orthogonal(head[POLICY], ACTION_GAIN, rng)
    head[VALUE, :, :1] = _orthogonal(head[VALUE, :, :1], VALUE_GAIN, rng)
    parameters.biases[-1][POLICY] = first_action
    return parameters


def _orthogonal(like: Floats, gain: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a matrix of the same shape. Its rows or columns, whichever are fewer, are orthogonal, of length `gain`."""
    inputs, outputs = like.shape
    tall = rng.standard_normal((max(inputs, outputs), min(inputs, outputs)))
    q, r = np.linalg.qr(tall)
    q *= np.sign(np.diag(r))
    return gain * (q if inputs >= outputs else q.T)


class Minibatch(NamedTuple):
    """Flat arrays of a rollout, one row per step; a minibatch is a choice of rows.

    log_probs: logarithm of the probability of each action when it was chosen.
    """

    observations: Floats
    actions: Floats
    log_probs: Floats
    advantages: Floats
    returns: Floats


class LossSettings(NamedTuple):
    """Settings of PPO's loss for one minibatch.

    mean, scale: the advantages are normalised as (advantage - mean) * scale. rows: number of rows of the minibatch.
    """

    clip_range: float
    vf_coef: float
    mean: float
    scale: float
    rows: float


@dataclass(frozen=True)
class Kernels:
    """Machine code of the compiled functions."""

    activate: Any
    backpropagate: Any
    take_rows: Any
    policy_gradient: Any


@cache
def bind_kernels() -> Kernels:
    """Compile the functions, or load them from the cache."""
    one, two, three = np.zeros(1, np.float32), np.zeros((1, 1), np.float32), np.zeros((1, 1, 1), np.float32)
    rows, sums = np.zeros(1, np.int64), np.zeros(SUMS)
    data = Minibatch(two, two, one, one, one)
    return Kernels(
        bind(activate, three, two, False),
        bind(backpropagate, three, three, two, False),
        bind(take_rows, two, rows, two),
        bind(
            policy_gradient, three, two, one, data, rows, LossSettings(0.0, 0.0, 0.0, 0.0, 0.0), three, two, one, sums
        ),
    )


class Workspace:
    """Buffers for blocks of a fixed number of rows: activations and errors."""

    def __init__(self, rows: int, sizes: tuple[int, ...]) -> None:
        self.inputs = np.zeros((rows, OBSERVATION_SIZE), np.float32)
        self.hidden = [np.zeros((2, rows, size), np.float32) for size in sizes]
        self.errors = [np.zeros((2, rows, size), np.float32) for size in sizes]
        self.outputs = np.zeros((2, rows, ACTION_SIZE), np.float32)
        self.output_errors = np.zeros((2, rows, ACTION_SIZE), np.float32)


class BlockGradient:
    """Gradient of the loss over the rows of a block, and sums of its losses, see `POLICY_LOSS` and following."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.parameters = Parameters(sizes)
        self.sums = np.zeros(SUMS)


class NetworkPass:
    """Forward and backward pass of blocks of rows; each thread has its own."""

    def __init__(self, parameters: Parameters, activation: str) -> None:
        self._parameters, self._relu = parameters, RELU[activation]
        self._kernels = bind_kernels()
        self._workspaces: dict[int, Workspace] = {}

    def gradient(self, data: Minibatch, block: Rows, settings: LossSettings, result: BlockGradient) -> None:
        """Compute the gradient of a block; without the entropy bonus, which depends on no row."""
        parameters, part = self._parameters, result.parameters
        space = self.forward(data.observations, block)
        self._kernels.policy_gradient(
            space.outputs, parameters.biases[-1], np.exp(-parameters.log_std), data, block, settings,
            space.output_errors, part.biases[-1], part.log_std, result.sums,
        )  # fmt: skip
        self.backward(space, part)

    def forward(self, observations: Floats, block: Rows, nets: slice = BOTH) -> Workspace:
        """Compute the hidden values of a block of observations (n, 14), and the outputs without their bias."""
        space = self._workspace(len(block))
        self._kernels.take_rows(observations, block, space.inputs)
        self._forward(space, nets)
        return space

    def backward(self, space: Workspace, gradient: Parameters, nets: slice = BOTH) -> None:
        """Set the gradient of all weights, and of the biases of the hidden layers, from `space.output_errors`."""
        errors = space.output_errors[nets]
        for layer in reversed(range(len(space.hidden))):
            hidden = space.hidden[layer][nets]
            np.matmul(hidden.transpose(0, 2, 1), errors, out=gradient.weights[layer + 1][nets])
            np.matmul(
                errors, self._parameters.weights[layer + 1][nets].transpose(0, 2, 1), out=space.errors[layer][nets]
            )
            errors = space.errors[layer][nets]
            self._kernels.backpropagate(errors, hidden, gradient.biases[layer][nets], self._relu)
        np.matmul(space.inputs.T, errors, out=gradient.weights[0][nets])

    def values(self, observations: Floats, block: Rows, result: Floats) -> None:
        """Write the value estimates of a block of observations (n, 14) to the same rows of `result` (n,)."""
        space = self.forward(observations, block, slice(VALUE, VALUE + 1))
        result[block] = space.outputs[VALUE, :, 0] + self._parameters.biases[-1][VALUE, 0]

    def _workspace(self, rows: int) -> Workspace:
        if rows not in self._workspaces:
            self._workspaces[rows] = Workspace(rows, self._parameters.sizes)
        return self._workspaces[rows]

    def _forward(self, space: Workspace, nets: slice) -> None:
        """Compute the hidden values of one or both networks, and their outputs without bias."""
        parameters = self._parameters
        values: Floats = space.inputs
        for weights, bias, buffer in zip(parameters.weights, parameters.biases, space.hidden, strict=False):
            hidden = buffer[nets]
            np.matmul(values, weights[nets], out=hidden)
            self._kernels.activate(hidden, bias[nets], self._relu)
            values = hidden
        np.matmul(values, parameters.weights[-1][nets], out=space.outputs[nets])


def blocks_of(rows: Rows) -> list[Rows]:
    """Divide rows into blocks of about the same size."""
    count = -(-len(rows) // BLOCK_ROWS)
    ends = [len(rows) * number // count for number in range(count + 1)]
    return [rows[begin:end] for begin, end in pairwise(ends)]


# tanh(x) = x P(x²) / Q(x²) with a relative error of 6e-9 up to TANH_LIMIT, where tanh rounds to 1 in single precision.
TANH_LIMIT = np.float32(7.9)
P0, P1, P2, P3, P4 = map(np.float32, (
    0.999999994331936, 0.13450605859382575, 0.003578974403783066, 2.202294577151955e-05, 1.5427530056011003e-08,
))  # fmt: skip
Q1, Q2, Q3, Q4 = map(np.float32, (
    0.4678393385387855, 0.02619217132024148, 0.00034236213821428195, 8.598605473439623e-07,
))  # fmt: skip
ZERO, ONE = np.float32(0.0), np.float32(1.0)


@fast_part
def rational_tanh(x: Compiled) -> Compiled:
    """Return tanh(x) in single precision. Vector instructions compute eight at once, unlike those of the C library."""
    x = min(max(x, -TANH_LIMIT), TANH_LIMIT)
    s = x * x
    p = P0 + s * (P1 + s * (P2 + s * (P3 + s * P4)))
    q = ONE + s * (Q1 + s * (Q2 + s * (Q3 + s * Q4)))
    return x * p / q


@kernel
def activate(values: Compiled, bias: Compiled, relu: bool) -> None:
    """Add the bias (2, n) to values (2, rows, n) and apply the activation, in place."""
    for net in range(values.shape[0]):
        for row in range(values.shape[1]):
            for i in range(values.shape[2]):
                values[net, row, i] += bias[net, i]
    flat = values.reshape(-1)  # one long loop: vector instructions are not used for nested ones
    if relu:
        for i in range(len(flat)):
            flat[i] = max(flat[i], ZERO)
    else:
        for i in range(len(flat)):
            flat[i] = rational_tanh(flat[i])


@kernel
def backpropagate(errors: Compiled, hidden: Compiled, bias: Compiled, relu: bool) -> None:
    """Multiply errors (2, rows, n) by the slope of the activation, in place; set `bias` (2, n) to their sums."""
    bias[:, :] = ZERO
    for net in range(errors.shape[0]):
        for row in range(errors.shape[1]):
            if relu:
                for i in range(errors.shape[2]):
                    error = errors[net, row, i] if hidden[net, row, i] > ZERO else ZERO
                    errors[net, row, i] = error
                    bias[net, i] += error
            else:
                for i in range(errors.shape[2]):
                    value = hidden[net, row, i]
                    error = errors[net, row, i] * (ONE - value * value)
                    errors[net, row, i] = error
                    bias[net, i] += error


@kernel
def take_rows(source: Compiled, rows: Compiled, target: Compiled) -> None:
    """Copy some rows of a matrix."""
    for i in range(len(rows)):
        for column in range(target.shape[1]):
            target[i, column] = source[rows[i], column]


@kernel
def policy_gradient(
    outputs: Compiled,
    bias: Compiled,
    precision: Compiled,
    data: Compiled,
    rows: Compiled,
    settings: Compiled,
    errors: Compiled,
    bias_gradient: Compiled,
    log_std_gradient: Compiled,
    sums: Compiled,
) -> None:
    """Compute the derivatives of PPO's loss by the outputs of a block, and set `sums` to its losses.

    outputs: (2, rows, 3), without their bias. errors: receives the derivatives by the outputs.
    precision: 1 / standard deviation of the noise on each action (3,).
    """
    bias_gradient[:, :] = ZERO
    log_std_gradient[:] = ZERO
    sums[:] = 0.0
    low, high = 1.0 - settings.clip_range, 1.0 + settings.clip_range
    constant = ACTION_SIZE * HALF_LOG_TWO_PI
    for k in range(ACTION_SIZE):
        constant -= math.log(precision[k])
    for i in range(len(rows)):
        row = rows[i]
        squares = 0.0
        for k in range(ACTION_SIZE):
            z = (data.actions[row, k] - outputs[0, i, k] - bias[0, k]) * precision[k]
            squares += z * z
        change = -0.5 * squares - constant - data.log_probs[row]
        ratio = math.exp(change)
        advantage = (data.advantages[row] - settings.mean) * settings.scale
        within = low <= ratio <= high
        clipped = advantage * min(max(ratio, low), high)
        sums[POLICY_LOSS] -= min(advantage * ratio, clipped)
        sums[KL_DIVERGENCE] += ratio - 1.0 - change
        sums[CLIPPED] += abs(ratio - 1.0) > settings.clip_range
        slope = 0.0
        if within or advantage * ratio < clipped:
            slope = -advantage * ratio / settings.rows
        for k in range(ACTION_SIZE):
            z = (data.actions[row, k] - outputs[0, i, k] - bias[0, k]) * precision[k]
            errors[0, i, k] = slope * z * precision[k]
            bias_gradient[0, k] += errors[0, i, k]
            log_std_gradient[k] += slope * (z * z - 1.0)
        miss = outputs[1, i, 0] + bias[1, 0] - data.returns[row]
        sums[VALUE_LOSS] += miss * miss
        errors[1, i, 0] = 2.0 * settings.vf_coef * miss / settings.rows
        bias_gradient[1, 0] += errors[1, i, 0]
