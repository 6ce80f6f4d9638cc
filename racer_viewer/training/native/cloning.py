"""Behaviour cloning: a policy learns to do what a driver did, from the steps of laps.

The loss is the mean squared difference between the policy's mean action and the driver's. An action at one of its
limits asks only for an output at or beyond that limit, because the car clips both to the same. Laps that are held out
decide when to stop and which weights to keep. The same seed gives the same weights to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.compiled import Compiled, bind, kernel
from racer_viewer.agents import RunningStats
from racer_viewer.agents.policies import ACTION_HIGH, ACTION_LOW, ACTION_SIZE
from racer_viewer.agents.stats import DEFAULT_CLIP, DEFAULT_EPSILON
from racer_viewer.replays import Demonstration, Trace, clean_laps, demonstrated_lap, recoveries
from racer_viewer.training.native.blas import use_one_blas_thread
from racer_viewer.training.native.network import (
    POLICY,
    ZERO,
    BlockGradient,
    Floats,
    NetworkPass,
    Parameters,
    Rows,
    blocks_of,
)
from racer_viewer.training.native.update import AdamState, adam_step

RAYS = slice(0, 9)
"""Columns of the rays in an observation, from right to left."""
SIGNED = slice(10, 12)
"""Columns of the observation that change their sign in a mirror: yaw rate and steering."""
SPEED = 9
"""Column of the speed in an observation."""
MIN_SPEED = 0.02
"""Speed from which a lap begins with a flying start, as a fraction of the maximum."""
STEER = 0
"""Column of the steering in an action."""
AVERAGED, AVERAGED_FIRST = 0.995, 10
"""Part of the averaged weights that a gradient step leaves, at most; it grows to that as steps / (steps + 10)."""
POLICY_ONLY = slice(POLICY, POLICY + 1)
MIN_DEVIATION = 0.01
"""Minimum standard deviation of an observation in the statistics; a value that never changed would be divided by 0."""
STATISTICS_COUNT = 1e6
"""Count of the statistics of a clone: learning that goes on moves them slowly, and so what the policy sees."""


@dataclass(frozen=True, eq=False)
class DemonstrationSet:
    """Steps of laps to learn from.

    observations: (n, 14), not normalised. actions: (n, 3) within their limits.
    laps, ticks: number of the lap of each step, and ticks since its start (n,).
    recovered: True for steps of `recoveries`, which are learned from but never held out (n,).
    sources: where each lap comes from, to show.
    """

    observations: Floats
    actions: Floats
    laps: Rows
    ticks: Rows
    recovered: NDArray[np.bool_]
    sources: tuple[str, ...]

    @classmethod
    def of(cls, demonstrations: Sequence[Demonstration]) -> DemonstrationSet:
        """Return the steps of some laps."""
        if not demonstrations:
            raise ValueError("there is nothing to learn from")
        laps = np.repeat(np.arange(len(demonstrations)), [each.steps for each in demonstrations])
        return cls(
            np.concatenate([each.observations[:-1] for each in demonstrations]),
            np.concatenate([each.actions for each in demonstrations]),
            laps,
            np.concatenate([np.arange(each.steps) for each in demonstrations]),
            np.zeros(len(laps), np.bool_),
            tuple(each.source for each in demonstrations),
        )

    @classmethod
    def of_traces(cls, traces: Iterable[Trace], seed: int = 0) -> DemonstrationSet:
        """Return the clean laps of some drives, with recoveries. Raises ReplayError for a drive without one."""
        found = [(trace, lap) for trace in traces for lap in clean_laps(trace)]
        data = cls.of([demonstrated_lap(trace, lap) for trace, lap in found])
        extra = [recoveries(trace, lap, seed + number) for number, (trace, lap) in enumerate(found)]
        for number, each in enumerate(extra):
            steps = len(each.actions)
            some = cls(
                each.observations, each.actions, np.full(steps, number), each.ticks, np.ones(steps, np.bool_), ()
            )  # fmt: skip
            data = data._with(some, 0)
        return data

    def __len__(self) -> int:
        return len(self.actions)

    def joined(self, other: DemonstrationSet) -> DemonstrationSet:
        """Return the laps of both."""
        return self._with(other, len(self.sources))

    def _with(self, other: DemonstrationSet, first: int) -> DemonstrationSet:
        """Append the steps of other laps, whose numbers begin with `first` from now on."""
        return DemonstrationSet(
            np.concatenate([self.observations, other.observations]),
            np.concatenate([self.actions, other.actions]),
            np.concatenate([self.laps, other.laps + first]),
            np.concatenate([self.ticks, other.ticks]),
            np.concatenate([self.recovered, other.recovered]),
            self.sources + other.sources,
        )

    def statistics(self) -> RunningStats:
        """Return mean and variance of the observations, to normalise them with."""
        observations = self.observations.astype(np.float64)
        variance = np.maximum(observations.var(axis=0), MIN_DEVIATION**2)
        return RunningStats(observations.mean(axis=0), variance, max(STATISTICS_COUNT, float(len(self))))

    def held_out(self, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Choose the rows that are held out: whole laps, or a stretch of the only lap.

        Laps from a standing start are learned from if there are others: few show how to start.
        """
        starts = np.unique(self.laps, return_index=True)
        moving = starts[0][self.observations[starts[1], SPEED] > MIN_SPEED]
        candidates = moving if len(moving) else starts[0]
        count = min(max(1, round(share * len(starts[0]))), len(candidates))
        if count < len(starts[0]):
            return np.isin(self.laps, rng.permutation(candidates)[:count])
        end = int(self.ticks.max()) + 1
        length = max(1, round(share * end))
        first = int(rng.integers(end - length + 1))
        return (self.ticks >= first) & (self.ticks < first + length)


@dataclass(frozen=True)
class CloningSettings:
    """Settings of cloning.

    epochs: maximum number of passes over the steps. patience: epochs without a lower held-out loss until it stops.
    batch_size: steps of a gradient step. learning_rate: rate at the start; it falls to 0 over all epochs.
    held_out: share of the laps, or of the only lap, that is held out.
    mirrored: whether each step is learned from its mirror image too.
    noise: standard deviation of the noise on normalised observations, which makes the policy less sensitive to states
        that differ a little from the driver's.
    """

    epochs: int = 60
    patience: int = 20
    batch_size: int = 128
    learning_rate: float = 2e-3
    held_out: float = 0.2
    mirrored: bool = True
    noise: float = 0.05


@dataclass(frozen=True)
class CloningEpoch:
    """Progress of cloning. loss, held_out: mean losses of the epoch; best: lowest held-out loss so far."""

    number: int
    loss: float
    held_out: float
    best: float


class CloningLoss:
    """Cloning loss and its gradient over rows of observations and actions.

    observations: normalised.
    """

    def __init__(self, observations: Floats, actions: Floats, parameters: Parameters, activation: str) -> None:
        self._observations, self._actions, self._parameters = observations, actions, parameters
        self._pass = NetworkPass(parameters, activation)
        self._gradient, self._block = BlockGradient(parameters.sizes), BlockGradient(parameters.sizes)
        self._kernel = _bind()

    def gradient(self, rows: Rows, weight: float = 1.0) -> tuple[Parameters, float]:
        """Return the gradient of `weight` times the mean loss of some rows, and that mean loss. The next call
        overwrites the gradient."""
        total, loss = self._gradient.parameters, 0.0
        total.flat[...] = ZERO
        for block in blocks_of(rows):
            space = self._pass.forward(self._observations, block, POLICY_ONLY)
            part = self._block.parameters
            loss += self._kernel(
                space.outputs, self._parameters.biases[-1], self._actions, block, ACTION_LOW, ACTION_HIGH,
                weight / len(rows), space.output_errors, part.biases[-1],
            )  # fmt: skip
            self._pass.backward(space, part, POLICY_ONLY)
            total.flat += part.flat
        return total, loss / len(rows)

    def loss(self, rows: Rows) -> float:
        """Return the mean loss of some rows."""
        total = 0.0
        part = self._block.parameters
        for block in blocks_of(rows):
            space = self._pass.forward(self._observations, block, POLICY_ONLY)
            total += self._kernel(
                space.outputs, self._parameters.biases[-1], self._actions, block, ACTION_LOW, ACTION_HIGH,
                0.0, space.output_errors, part.biases[-1],
            )  # fmt: skip
        return total / len(rows)


def normalised(observations: Floats, stats: RunningStats, clip: float = DEFAULT_CLIP) -> Floats:
    """Return observations as a policy with these statistics sees them."""
    values = (observations - stats.mean) / np.sqrt(stats.var + DEFAULT_EPSILON)
    return np.clip(values, -clip, clip).astype(np.float32)


def mirrored(observations: Floats, actions: Floats) -> tuple[Floats, Floats]:
    """Return what the same driver would see and do on a circuit that is mirrored left to right."""
    seen, done = observations.copy(), actions.copy()
    seen[:, RAYS] = observations[:, RAYS][:, ::-1]
    seen[:, SIGNED] *= -1.0
    done[:, STEER] *= -1.0
    return seen, done


def clone(
    parameters: Parameters,
    activation: str,
    data: DemonstrationSet,
    stats: RunningStats,
    settings: CloningSettings,
    seed: int,
    clip_obs: float = DEFAULT_CLIP,
) -> Iterator[CloningEpoch]:
    """Clone the driver of some laps, epoch by epoch; close the iterator to stop early.

    After each epoch `parameters` are averages over the latest gradient steps, which drive more steadily than the latest
    ones; at the end, those with the lowest held-out loss.

    parameters: their policy is changed in place, new or already trained; the value function stays.
    stats: normalisation of observations.
    """
    use_one_blas_thread()
    rng = np.random.default_rng(seed)
    held_out = data.held_out(settings.held_out, rng)
    seen, actions = data.observations[~held_out], data.actions[~held_out]
    if settings.mirrored:
        images = mirrored(seen, actions)
        seen, actions = np.concatenate([seen, images[0]]), np.concatenate([actions, images[1]])
    seen = normalised(seen, stats, clip_obs)
    noisy, live = seen.copy(), parameters.copy()
    loss = CloningLoss(noisy, actions, live, activation)
    checked = held_out & ~data.recovered
    check = CloningLoss(
        normalised(data.observations[checked], stats, clip_obs), data.actions[checked], parameters, activation
    )
    every, state = np.arange(np.count_nonzero(checked)), AdamState.create(parameters.sizes)
    policy, best, best_loss, best_epoch = parameters.part(POLICY), parameters.flat.copy(), math.inf, 0
    averaged = policy.astype(np.float32)
    try:
        for epoch in range(1, settings.epochs + 1):
            rate = settings.learning_rate * 0.5 * (1.0 + math.cos(math.pi * (epoch - 1) / settings.epochs))
            if settings.noise:
                rng.standard_normal(out=noisy, dtype=np.float32)
                noisy *= np.float32(settings.noise)
                noisy += seen
            order, losses = rng.permutation(len(noisy)), 0.0
            for start in range(0, len(order), settings.batch_size):
                rows = np.sort(order[start : start + settings.batch_size])
                gradient, mean = loss.gradient(rows)
                adam_step(live, gradient, state, rate)
                losses += mean * len(rows)
                share = np.float32(max(1.0 - AVERAGED, AVERAGED_FIRST / (state.steps + AVERAGED_FIRST)))
                parameters.flat += share * averaged * (live.flat - parameters.flat)
            now = check.loss(every)
            if now < best_loss:
                best_loss, best_epoch = now, epoch
                best[...] = parameters.flat
            yield CloningEpoch(epoch, losses / len(order), now, best_loss)
            if epoch - best_epoch >= settings.patience:
                break
    finally:
        np.copyto(parameters.flat, best, where=policy)


@cache
def _bind() -> Any:
    one, two, three = np.zeros(1, np.float32), np.zeros((1, 1), np.float32), np.zeros((1, 1, 1), np.float32)
    return bind(cloning_gradient, three, two, two, np.zeros(1, np.int64), one, one, 0.0, three, two)


@kernel
def cloning_gradient(
    outputs: Compiled,
    bias: Compiled,
    actions: Compiled,
    rows: Compiled,
    low: Compiled,
    high: Compiled,
    weight: float,
    errors: Compiled,
    bias_gradient: Compiled,
) -> float:
    """Set the derivatives of the loss by the outputs of a block, times `weight`; return the sum of the losses.

    outputs: (2, rows, 3), without their bias. errors: receives the derivatives by the outputs.
    """
    for k in range(ACTION_SIZE):
        bias_gradient[POLICY, k] = ZERO
    loss = 0.0
    for i in range(len(rows)):
        for k in range(ACTION_SIZE):
            wanted, value = actions[rows[i], k], outputs[POLICY, i, k] + bias[POLICY, k]
            miss = value - wanted
            if (wanted <= low[k] and value < low[k]) or (wanted >= high[k] and value > high[k]):
                miss = ZERO
            loss += miss * miss
            errors[POLICY, i, k] = 2.0 * weight * miss
            bias_gradient[POLICY, k] += errors[POLICY, i, k]
    return loss
