"""Rollouts: many ticks of all cars in one compiled call, with policy, noise, engine, normalisation and storage.

Everything that a tick needs is in a few named tuples of arrays, which the compiled call reads and writes. Statistics of
observations and returns are those of stable-baselines3's VecNormalize, tick by tick.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import Simulation
from racer_env.engine.compiled import Compiled, bind, entry, kernel, part
from racer_env.engine.joined import restart, sort_by_track, step_fleet
from racer_env.engine.rewards import PROGRESS
from racer_env.engine.tick import BAD_ACTION
from racer_viewer.agents import AgentError, RunningStats, Statistics
from racer_viewer.agents.policies import ACTION_HIGH, ACTION_LOW, ACTION_SIZE, OBSERVATION_SIZE
from racer_viewer.agents.stats import DEFAULT_CLIP, DEFAULT_EPSILON
from racer_viewer.training.config import PAID_UNITS, RunConfig
from racer_viewer.training.native.driving import TICK, DrivingLog, add_start, add_tick
from racer_viewer.training.native.network import HALF_LOG_TWO_PI, RELU, ZERO, Doubles, Floats, Parameters, rational_tanh

Integers = NDArray[np.int64]

FIRST_COUNT = 1e-4
"""Count with which running statistics begin, as in stable-baselines3."""


class PolicyTables(NamedTuple):
    """Policy as the compiled call reads it.

    parameters: all numbers of both networks. sizes: sizes of all layers, with inputs and outputs.
    deviation: standard deviation of the action noise (3,). low, high: limits of actions (3,).
    values: buffers for the values of two layers, (2, cars, largest layer), with a multiple of four cars.
    """

    parameters: Floats
    sizes: Integers
    relu: bool
    deviation: Floats
    low: Floats
    high: Floats
    values: Floats


class Normalisation(NamedTuple):
    """Running statistics of observations and of discounted returns, with their settings. Single numbers are arrays.

    scale: 1 / standard deviation of each observation. discounted: discounted return of each car.
    """

    mean: Doubles
    var: Doubles
    number: Doubles
    return_mean: Doubles
    return_var: Doubles
    return_number: Doubles
    scale: Doubles
    discounted: Doubles
    clip_obs: float
    clip_reward: float
    epsilon: float
    gamma: float
    norm_reward: bool

    @classmethod
    def create(cls, config: RunConfig) -> Normalisation:
        """Return the statistics of a new run."""
        return cls(
            np.zeros(OBSERVATION_SIZE), np.ones(OBSERVATION_SIZE), np.full(1, FIRST_COUNT),
            np.zeros(1), np.ones(1), np.full(1, FIRST_COUNT),
            np.ones(OBSERVATION_SIZE), np.zeros(config.num_cars),
            config.clip_obs, DEFAULT_CLIP, DEFAULT_EPSILON, config.gamma, config.norm_reward,
        )  # fmt: skip

    def restored(self, stats: Statistics) -> Normalisation:
        """Return statistics that go on from saved ones, with the settings saved with them."""
        if stats.returns is None or stats.observations is None:
            raise AgentError("these statistics are for driving only: without all of them training cannot be resumed")
        seen, returns = stats.observations, stats.returns
        if seen.mean.shape != (OBSERVATION_SIZE,) or returns.mean.size != 1:
            raise AgentError(
                f"these statistics are of {seen.mean.size} observations; a racing agent takes {OBSERVATION_SIZE}"
            )
        return self._replace(
            mean=seen.mean.copy(), var=seen.var.copy(), number=np.full(1, seen.count),
            return_mean=returns.mean.reshape(1).copy(), return_var=returns.var.reshape(1).copy(),
            return_number=np.full(1, returns.count), clip_obs=float(stats.clip_obs),
            clip_reward=float(stats.clip_reward), epsilon=float(stats.epsilon), gamma=float(stats.gamma),
            norm_reward=bool(stats.norm_reward),
        )  # fmt: skip

    def statistics(self) -> Statistics:
        """Return a copy of the statistics."""
        return Statistics(
            RunningStats(self.mean.copy(), self.var.copy(), float(self.number[0])),
            RunningStats(np.array(self.return_mean[0]), np.array(self.return_var[0]), float(self.return_number[0])),
            self.clip_obs, self.clip_reward, self.epsilon, self.gamma, self.norm_reward,
        )  # fmt: skip


class RolloutTables(NamedTuple):
    """Steps of a rollout, (ticks, cars, ...). Observations and episode starts have one tick more.

    noise: standard normal numbers, drawn before the rollout. starts: 1 where an episode begins.
    final_observations: normalised last observations of episodes that were truncated; final_steps: their tick and car;
    final_count: their number, an array of one.
    """

    observations: Floats
    actions: Floats
    log_probs: Floats
    rewards: Floats
    starts: Floats
    noise: Floats
    final_observations: Floats
    final_steps: Integers
    final_count: Integers

    @classmethod
    def create(cls, ticks: int, cars: int) -> RolloutTables:
        return cls(
            np.zeros((ticks + 1, cars, OBSERVATION_SIZE), np.float32),
            np.zeros((ticks, cars, ACTION_SIZE), np.float32),
            np.zeros((ticks, cars), np.float32),
            np.zeros((ticks, cars), np.float32),
            np.ones((ticks + 1, cars), np.float32),
            np.zeros((ticks, cars, ACTION_SIZE), np.float32),
            np.zeros((ticks * cars, OBSERVATION_SIZE), np.float32),
            np.zeros((ticks * cars, 2), np.int64),
            np.zeros(1, np.int64),
        )


class RolloutCollector:
    """Buffers of a rollout, and the compiled call that fills them. Rollouts continue each other's episodes.

    tables: steps of the current rollout. driving: statistics of what the cars do.
    """

    def __init__(self, config: RunConfig, simulation: Simulation, parameters: Parameters, norm: Normalisation) -> None:
        self.tables = RolloutTables.create(config.n_steps, config.num_cars)
        self.driving = DrivingLog(config, simulation, config.n_steps)
        self._simulation, self._parameters, self._norm = simulation, parameters, norm
        layers = (OBSERVATION_SIZE, *parameters.sizes, ACTION_SIZE)
        self._policy = PolicyTables(
            parameters.flat, np.array(layers), RELU[config.activation], np.ones(ACTION_SIZE, np.float32),
            ACTION_LOW, ACTION_HIGH, np.zeros((2, -(-config.num_cars // 4) * 4, max(layers)), np.float32),
        )  # fmt: skip
        self._in_units = config.progress_in_units
        self._prepare_tracks()
        self._row = np.zeros(1, np.int64)
        fleet = simulation.fleet()
        start, self._run = _bind(*self._arguments(), 0, 0)
        start(fleet.observations, norm, self.tables.observations[-1])

    def begin(self, rng: np.random.Generator) -> None:
        """Prepare the next rollout: draw its noise, and begin with the last observations."""
        tables = self.tables
        rng.standard_normal(out=tables.noise, dtype=np.float32)
        tables.observations[0], tables.starts[0] = tables.observations[-1], tables.starts[-1]
        tables.final_count[0] = 0
        np.exp(self._parameters.log_std, out=self._policy.deviation)

    def _prepare_tracks(self) -> None:
        """Set the values that depend on the tracks, which may be exchanged between two calls of `run`."""
        self._tracks = self._simulation.tracks
        lengths = np.array([track.length for track in self._tracks])
        self._progress_scale = lengths / PAID_UNITS if self._in_units else np.ones_like(lengths)

    def run(self, first: int, last: int) -> bool:
        """Drive from one tick of the rollout to another; return False if an action is not finite."""
        if self._simulation.tracks is not self._tracks:
            self._prepare_tracks()
            self.driving.set_tracks(self._simulation)
        return bool(self._run(*self._arguments(), first, last))

    def _arguments(self) -> tuple[Any, ...]:
        driving, fleet = self.driving.tables, self._simulation.fleet()
        return fleet, self._policy, self._norm, self.tables, driving, self._progress_scale, self._row


def _bind(*arguments: Any) -> tuple[Callable[..., None], Callable[..., bool]]:
    fleet, _, norm, tables, *_ = arguments
    start = bind(normalise_observations, fleet.observations, norm, tables.observations[0])
    return start, bind(run_ticks, *arguments)


@entry
def run_ticks(
    fleet: Compiled,
    policy: Compiled,
    norm: Compiled,
    rollout: Compiled,
    driving: Compiled,
    progress_scale: Compiled,
    row: Compiled,
    first: int,
    last: int,
) -> bool:
    """Drive some ticks of a rollout. Returns False if an action is not finite.

    progress_scale: factor of the progress reward by track. row: buffer for the index of a car.
    """
    sort_by_track(fleet)
    cars = fleet.cars
    for tick in range(first, last):
        choose_actions(policy, rollout, cars, tick)
        ended = step_fleet(fleet)
        if ended == BAD_ACTION:
            return False
        rewards, starts = rollout.rewards[tick], rollout.starts[tick + 1]
        new_finals = rollout.final_count[0]
        for i in range(len(cars)):
            car = cars[i]
            add_tick(driving, car, i)
            rewards[i] = car.reward + car.components[PROGRESS] * (progress_scale[car.track] - 1.0)
            starts[i] = 0.0
            if car.terminated or car.truncated:
                starts[i] = 1.0
                if not car.terminated:
                    final = rollout.final_count[0]
                    rollout.final_steps[final, 0], rollout.final_steps[final, 1] = tick, i
                    for k in range(OBSERVATION_SIZE):
                        rollout.final_observations[final, k] = fleet.observations[i, k]
                    rollout.final_count[0] += 1
                row[0] = i
                restart(fleet, row)
                add_start(driving, car, i)
        if ended:
            sort_by_track(fleet)
        driving.counters[TICK] += 1
        normalise_observations(fleet.observations, norm, rollout.observations[tick + 1])
        _scale_rows(norm, rollout.final_observations[new_finals : rollout.final_count[0]])
        normalise_rewards(norm, rewards, starts)
    return True


@kernel
def choose_actions(policy: Compiled, rollout: Compiled, cars: Compiled, tick: int) -> None:
    """Evaluate the policy, add noise, and store actions and their probabilities."""
    evaluate(policy, rollout.observations[tick])
    mean = policy.values[(len(policy.sizes) - 2) % 2]
    for i in range(len(cars)):
        log_prob = 0.0
        for k in range(ACTION_SIZE):
            deviation = policy.deviation[k]
            action = np.float32(mean[i, k] + deviation * rollout.noise[tick, i, k])
            z = (action - mean[i, k]) / deviation
            log_prob -= 0.5 * z * z + policy.parameters[k] + HALF_LOG_TWO_PI
            rollout.actions[tick, i, k] = action
            if math.isfinite(action):
                action = min(max(action, policy.low[k]), policy.high[k])
            cars[i].action[k] = action
        rollout.log_probs[tick, i] = log_prob


@kernel
def evaluate(policy: Compiled, observations: Compiled) -> None:
    """Compute the mean actions of all cars. Layer n writes its values to buffer n modulo 2."""
    numbers, sizes = policy.parameters, policy.sizes
    begin = ACTION_SIZE
    for layer in range(len(sizes) - 1):
        inputs, outputs = sizes[layer], sizes[layer + 1]
        end = begin + inputs * outputs
        weights = numbers[begin:end].reshape(inputs, outputs)
        begin = end + inputs * outputs  # the value function is not needed while driving
        bias = numbers[begin : begin + outputs]
        begin += 2 * outputs
        activated = layer < len(sizes) - 2
        if layer == 0:
            apply_layer(observations, weights, bias, policy.values[0], activated, policy.relu)
        else:
            source = policy.values[(layer + 1) % 2]
            apply_layer(source, weights, bias, policy.values[layer % 2], activated, policy.relu)


@kernel
def apply_layer(
    source: Compiled, weights: Compiled, bias: Compiled, target: Compiled, activated: bool, relu: bool
) -> None:
    """Compute a layer for all rows, four of them and four inputs at a time: each loaded weight is used four times.

    target: a multiple of four rows; those that `source` does not have repeat its last one.
    """
    inputs, outputs = weights.shape
    last = len(source) - 1
    for row in range(0, last + 1, 4):
        s0, s1 = source[row], source[min(row + 1, last)]
        s2, s3 = source[min(row + 2, last)], source[min(row + 3, last)]
        t0, t1 = target[row, :outputs], target[row + 1, :outputs]
        t2, t3 = target[row + 2, :outputs], target[row + 3, :outputs]
        for j in range(outputs):
            t0[j] = t1[j] = t2[j] = t3[j] = bias[j]
        for k in range(0, inputs - 3, 4):
            w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
            a0, a1, a2, a3 = s0[k], s0[k + 1], s0[k + 2], s0[k + 3]
            b0, b1, b2, b3 = s1[k], s1[k + 1], s1[k + 2], s1[k + 3]
            c0, c1, c2, c3 = s2[k], s2[k + 1], s2[k + 2], s2[k + 3]
            d0, d1, d2, d3 = s3[k], s3[k + 1], s3[k + 2], s3[k + 3]
            for j in range(outputs):
                v0, v1, v2, v3 = w0[j], w1[j], w2[j], w3[j]
                t0[j] += a0 * v0 + a1 * v1 + a2 * v2 + a3 * v3
                t1[j] += b0 * v0 + b1 * v1 + b2 * v2 + b3 * v3
                t2[j] += c0 * v0 + c1 * v1 + c2 * v2 + c3 * v3
                t3[j] += d0 * v0 + d1 * v1 + d2 * v2 + d3 * v3
        for k in range(inputs - inputs % 4, inputs):
            for j in range(outputs):
                t0[j] += s0[k] * weights[k, j]
                t1[j] += s1[k] * weights[k, j]
                t2[j] += s2[k] * weights[k, j]
                t3[j] += s3[k] * weights[k, j]
        for each in range(row, row + 4):
            result = target[each, :outputs]
            if activated and relu:
                for j in range(outputs):
                    result[j] = max(result[j], ZERO)
            elif activated:
                for j in range(outputs):
                    result[j] = rational_tanh(result[j])


@kernel
def normalise_observations(observations: Compiled, norm: Compiled, target: Compiled) -> None:
    """Add the observations of all cars to the statistics and write them normalised."""
    rows = len(observations)
    for k in range(OBSERVATION_SIZE):
        total = 0.0
        for i in range(rows):
            total += observations[i, k]
        mean = total / rows
        total = 0.0
        for i in range(rows):
            total += (observations[i, k] - mean) ** 2
        norm.mean[k], norm.var[k] = merge_statistics(
            norm.mean[k], norm.var[k], norm.number[0], mean, total / rows, rows
        )
        norm.scale[k] = 1.0 / math.sqrt(norm.var[k] + norm.epsilon)
    norm.number[0] += rows
    for i in range(rows):
        for k in range(OBSERVATION_SIZE):
            value = (observations[i, k] - norm.mean[k]) * norm.scale[k]
            target[i, k] = min(max(value, -norm.clip_obs), norm.clip_obs)


@part
def _scale_rows(norm: Compiled, rows: Compiled) -> None:
    """Normalise observations in place, without adding them to the statistics."""
    for i in range(len(rows)):
        for k in range(OBSERVATION_SIZE):
            value = (rows[i, k] - norm.mean[k]) * norm.scale[k]
            rows[i, k] = min(max(value, -norm.clip_obs), norm.clip_obs)


@part
def normalise_rewards(norm: Compiled, rewards: Compiled, ended: Compiled) -> None:
    """Add the discounted returns to the statistics and divide the rewards by their standard deviation."""
    rows, total = len(rewards), 0.0
    for i in range(rows):
        norm.discounted[i] = norm.discounted[i] * norm.gamma + rewards[i]
        total += norm.discounted[i]
    mean, total = total / rows, 0.0
    for i in range(rows):
        total += (norm.discounted[i] - mean) ** 2
        if ended[i]:
            norm.discounted[i] = 0.0
    norm.return_mean[0], norm.return_var[0] = merge_statistics(
        norm.return_mean[0], norm.return_var[0], norm.return_number[0], mean, total / rows, rows
    )
    norm.return_number[0] += rows
    if norm.norm_reward:
        scale = 1.0 / math.sqrt(norm.return_var[0] + norm.epsilon)
        for i in range(rows):
            rewards[i] = min(max(rewards[i] * scale, -norm.clip_reward), norm.clip_reward)


@part
def merge_statistics(
    mean: float, var: float, count: float, other_mean: float, other_var: float, other_count: float
) -> tuple[float, float]:
    """Return mean and variance of the union of two sets of numbers, by Chan's formula."""
    delta, total = other_mean - mean, count + other_count
    squares = var * count + other_var * other_count + delta * delta * count * other_count / total
    return mean + delta * other_count / total, squares / total
