"""Update of PPO: advantages of a rollout, minibatches shared by threads, and Adam.

Threads share the blocks of a minibatch. Each block has a gradient of its own, and these are added in a fixed order. The
same seed therefore gives the same weights to the last bit, whatever the number of threads and their timing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from racer_env.engine.compiled import Compiled, bind, kernel
from racer_env.engine.thread_team import ThreadTeam
from racer_viewer.agents.model_writer import ADAM
from racer_viewer.agents.policies import ACTION_SIZE, OBSERVATION_SIZE
from racer_viewer.training.config import RunConfig
from racer_viewer.training.native.network import (
    CLIPPED,
    HALF_LOG_TWO_PI,
    KL_DIVERGENCE,
    POLICY_LOSS,
    VALUE_LOSS,
    BlockGradient,
    Doubles,
    Floats,
    LossSettings,
    Minibatch,
    NetworkPass,
    Parameters,
    Rows,
    blocks_of,
)
from racer_viewer.training.native.rollout import RolloutTables

BETA_1, BETA_2, EPSILON = ADAM["betas"][0], ADAM["betas"][1], ADAM["eps"]
ADVANTAGE_EPSILON = 1e-8
"""Number added to the deviation of a minibatch's advantages."""
NORM_EPSILON = 1e-6
"""Number added to the norm of a gradient before it is clipped, as in torch."""


class DivergedError(ArithmeticError):
    """A number of an update is not finite."""


@dataclass
class AdamState:
    """Averages of gradients and of their squares, and number of steps of Adam."""

    first: Parameters
    second: Parameters
    steps: int = 0

    @classmethod
    def create(cls, sizes: tuple[int, ...]) -> AdamState:
        return cls(Parameters(sizes), Parameters(sizes))

    def reset(self) -> None:
        """Begin anew."""
        self.first.flat[...] = self.second.flat[...] = self.steps = 0

    def copy(self) -> AdamState:
        return AdamState(self.first.copy(), self.second.copy(), self.steps)


@cache
def _bind() -> tuple[Any, Any]:
    """Return the machine code of `estimate_advantages` and `adam`."""
    one, two = np.zeros(1, np.float32), np.zeros((1, 1), np.float32)
    return (
        bind(estimate_advantages, two, two, two, two, two, 0.0, 0.0),
        bind(adam, one, one, one, one, 0.0, 0.0, 0.0),
    )


class Updater:
    """Improves the parameters with rollouts.

    threads: maximum number of threads, this one included. adam: state of the optimiser.
    adjust: changes the gradient of every minibatch before it is used; None for PPO alone.
    """

    adjust: Callable[[Parameters], None] | None = None

    def __init__(self, config: RunConfig, parameters: Parameters, threads: int = 1) -> None:
        self._config, self._parameters = config, parameters
        self.adam = AdamState.create(parameters.sizes)
        self._team = ThreadTeam(threads, "racer-update")
        self._passes = [NetworkPass(parameters, config.activation) for _ in range(threads)]
        self._gradients: list[BlockGradient] = []
        self._advantages = _bind()[0]
        shape = (config.n_steps, config.num_cars)
        self.advantages, self.returns = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self.values: Floats = np.zeros((config.n_steps + 1, config.num_cars), np.float32)

    def use_threads(self, threads: int) -> None:
        """Share updates among so many threads from now on, at most as many as at the beginning."""
        self._team.threads = max(1, min(threads, len(self._passes)))

    def close(self) -> None:
        self._team.close()

    def estimate(self, rollout: RolloutTables) -> None:
        """Compute values, advantages and returns; add the value of the last observation of truncated episodes."""
        gamma = self._config.gamma
        self.values[...] = self._values(rollout.observations.reshape(-1, OBSERVATION_SIZE)).reshape(self.values.shape)
        if count := int(rollout.final_count[0]):
            ticks, cars = rollout.final_steps[:count].T
            rollout.rewards[ticks, cars] += np.float32(gamma) * self._values(rollout.final_observations[:count])
        self._advantages(
            rollout.rewards, self.values, rollout.starts, self.advantages, self.returns,
            gamma, self._config.gae_lambda,
        )  # fmt: skip

    def update(self, rollout: RolloutTables, learning_rate: float, rng: np.random.Generator) -> dict[str, float]:
        """Learn from a rollout; return metrics by their names in stable-baselines3."""
        self.estimate(rollout)
        steps = self.advantages.size
        return self.learn(rollout, learning_rate, [rng.permutation(steps) for _ in range(self._config.n_epochs)])

    def learn(self, rollout: RolloutTables, learning_rate: float, orders: Sequence[Rows]) -> dict[str, float]:
        """Learn from estimated advantages. orders: order of the steps in each epoch."""
        config = self._config
        data = Minibatch(
            rollout.observations[:-1].reshape(-1, OBSERVATION_SIZE),
            rollout.actions.reshape(-1, ACTION_SIZE),
            rollout.log_probs.reshape(-1),
            self.advantages.reshape(-1),
            self.returns.reshape(-1),
        )
        sums = []
        for order in orders:
            epoch = [self.step(data, rows, learning_rate) for rows in _minibatches(order, config.batch_size)]
            sums += epoch
        means = np.mean(sums, axis=0)
        log_std = self._parameters.log_std.astype(np.float64)
        entropy = float((0.5 + HALF_LOG_TWO_PI + log_std).sum())
        last = sums[-1]
        variance = float(np.var(data.returns))
        return {
            "train/entropy_loss": -entropy,
            "train/policy_gradient_loss": float(means[POLICY_LOSS]),
            "train/value_loss": float(means[VALUE_LOSS]),
            "train/approx_kl": float(np.mean([each[KL_DIVERGENCE] for each in epoch])),
            "train/clip_fraction": float(means[CLIPPED]),
            "train/loss": float(last[POLICY_LOSS] - config.ent_coef * entropy + config.vf_coef * last[VALUE_LOSS]),
            "train/explained_variance": math.nan
            if variance == 0.0
            else 1.0 - float(np.var(data.returns - self.values[:-1].reshape(-1))) / variance,
            "train/std": float(np.exp(log_std).mean()),
            "train/clip_range": config.clip_range,
            "train/learning_rate": learning_rate,
        }

    def gradient(self, data: Minibatch, rows: Rows) -> tuple[Parameters, Doubles]:
        """Return the gradient of the loss of a minibatch, and the means of `NetworkPass.sums` over its rows."""
        config, advantages = self._config, data.advantages[rows]
        mean, scale = 0.0, 1.0
        if len(rows) > 1:
            mean = float(advantages.mean(dtype=np.float64))
            scale = 1.0 / (float(advantages.std(dtype=np.float64, ddof=1)) + ADVANTAGE_EPSILON)
        settings = LossSettings(config.clip_range, config.vf_coef, mean, scale, float(len(rows)))
        blocks = blocks_of(rows)
        while len(self._gradients) < len(blocks):
            self._gradients.append(BlockGradient(self._parameters.sizes))

        def compute(thread: int, number: int) -> None:
            self._passes[thread].gradient(data, blocks[number], settings, self._gradients[number])

        self._team.run(compute, len(blocks))
        gradient, sums = self._gradients[0].parameters, self._gradients[0].sums
        for other in self._gradients[1 : len(blocks)]:
            gradient.flat += other.parameters.flat
            sums += other.sums
        gradient.log_std -= config.ent_coef
        return gradient, sums / len(rows)

    def _values(self, observations: Floats) -> Floats:
        """Return the value estimates of observations (n, 14)."""
        blocks = blocks_of(np.arange(len(observations)))
        result = np.empty(len(observations), np.float32)
        self._team.run(
            lambda thread, number: self._passes[thread].values(observations, blocks[number], result), len(blocks)
        )
        return result

    def step(self, data: Minibatch, rows: Rows, learning_rate: float) -> Doubles:
        """Make one step of Adam with a minibatch; return the means of its losses."""
        gradient, means = self.gradient(data, rows)
        if not np.isfinite(means).all():
            raise DivergedError("a gradient is not finite")
        if self.adjust is not None:
            self.adjust(gradient)
        adam_step(self._parameters, gradient, self.adam, learning_rate, self._config.max_grad_norm)
        return means


def adam_step(
    parameters: Parameters, gradient: Parameters, state: AdamState, learning_rate: float, max_norm: float = math.inf
) -> None:
    """Make a step of Adam. Raises DivergedError if the gradient is not finite."""
    norm = math.sqrt(float(np.dot(gradient.flat, gradient.flat)))
    if not math.isfinite(norm):
        raise DivergedError("a gradient is not finite")
    state.steps += 1
    _bind()[1](
        parameters.flat, gradient.flat, state.first.flat, state.second.flat,
        min(1.0, max_norm / (norm + NORM_EPSILON)),
        learning_rate / (1.0 - BETA_1**state.steps),
        1.0 / math.sqrt(1.0 - BETA_2**state.steps),
    )  # fmt: skip


def _minibatches(order: Rows, size: int) -> Iterator[Rows]:
    """Yield the rows of each minibatch, in ascending order: they are read twice as fast as in random order."""
    for start in range(0, len(order), size):
        yield np.sort(order[start : start + size])


@kernel
def estimate_advantages(
    rewards: Compiled,
    values: Compiled,
    starts: Compiled,
    advantages: Compiled,
    returns: Compiled,
    gamma: float,
    gae_lambda: float,
) -> None:
    """Compute generalised advantage estimates and returns, (ticks, cars). values, starts: one tick more."""
    ticks, cars = rewards.shape
    for i in range(cars):
        last = 0.0
        for tick in range(ticks - 1, -1, -1):
            goes_on = 1.0 - starts[tick + 1, i]
            delta = rewards[tick, i] + gamma * values[tick + 1, i] * goes_on - values[tick, i]
            last = delta + gamma * gae_lambda * goes_on * last
            advantages[tick, i] = last
            returns[tick, i] = last + values[tick, i]


@kernel
def adam(
    values: Compiled,
    gradient: Compiled,
    first: Compiled,
    second: Compiled,
    scale: float,
    rate: float,
    correction: float,
) -> None:
    """Make one step. scale: factor of the gradient. rate, correction: bias corrections of the two averages."""
    factor, step, root = np.float32(scale), np.float32(rate), np.float32(correction)
    b1, b2, epsilon = np.float32(BETA_1), np.float32(BETA_2), np.float32(EPSILON)
    c1, c2 = np.float32(1.0 - BETA_1), np.float32(1.0 - BETA_2)
    for i in range(len(values)):
        slope = gradient[i] * factor
        first[i] = b1 * first[i] + c1 * slope
        second[i] = b2 * second[i] + c2 * slope * slope
        values[i] -= step * first[i] / (np.sqrt(second[i]) * root + epsilon)
