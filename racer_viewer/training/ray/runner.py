"""RLlib environment runner that drives all cars of one process as arrays.

RLlib's own runner keeps a list per value and car, and expects a car to restart one step after its episode has ended.
This runner steps a RacerVectorEnv, whose cars restart within the same step, and sends arrays with advantages.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import ray
import torch
from numpy.typing import NDArray
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES, INPUT_ENV_SPACES
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.evaluation.postprocessing import Postprocessing

from racer_env.bridge.ws_client import TOKEN_VARIABLE
from racer_env.env import ACTION_SPACE, OBSERVATION_SPACE
from racer_env.errors import RacerError, in_one_line
from racer_viewer.training.config import RunConfig
from racer_viewer.training.lap_tracker import LapTracker
from racer_viewer.training.metrics import DrivingStats
from racer_viewer.training.ray.settings import RunnerSettings
from racer_viewer.training.sb3 import make_cars
from racer_viewer.training.vec_env import find_cars, simulation_of

CLIP_REWARD = 10.0
"""Limit of normalised rewards, as in stable-baselines3."""
RETRY_FACTOR, MAX_RETRY_INTERVAL = 3.0, 30.0
"""Time until a failed runner tries again: multiple of the time it took to fail, and maximum [s]; other runners wait."""
SETTINGS = "settings"
"""Key of the `RunnerSettings` in RLlib's env_config."""

Floats = NDArray[np.float32]
Batch = dict[str, Floats]
"""Columns by RLlib's names, with one row per step and car."""


class Rollout:
    """Some ticks of all cars, as arrays (ticks, cars, …). observations[tick] is the observation before that tick.

    module: policy that drives, see `RacerModule`. discounted: discounted rewards of each car's episode so far.
    """

    def __init__(self, ticks: int, first: Floats, module: Any) -> None:
        cars, size = first.shape
        actions = module.action_space.shape[0]
        self.ticks, self._module = ticks, module
        self._log_std: torch.Tensor = module.policy.log_std.detach()
        self._std = self._log_std.exp()
        self.observations: Floats = np.empty((ticks + 1, cars, size), np.float32)
        self.observations[0] = first
        self._actions: Floats = np.empty((ticks, cars, actions), np.float32)
        self._means: Floats = np.empty((ticks, cars, actions), np.float32)
        """Mean actions of the policy."""
        self.rewards: Floats = np.empty((ticks, cars), np.float32)
        self.discounted = np.empty((ticks, cars))
        self._terminated = np.zeros((ticks, cars), np.bool_)
        self._truncated = np.zeros((ticks, cars), np.bool_)
        self._last: Floats = np.zeros((0, size), np.float32)
        """Last observations of truncated episodes, ordered by tick and car."""

    def act(self, tick: int) -> Floats:
        """Draw the actions of a tick. RLlib's own sampling would cost more than the rest of a tick."""
        with torch.no_grad():
            means = self._module.mean_actions(torch.from_numpy(self.observations[tick]))
            actions: Floats = torch.normal(means, self._std.expand_as(means)).numpy()
        self._means[tick], self._actions[tick] = means.numpy(), actions
        return actions

    def end(self, tick: int, terminated: NDArray[np.bool_], truncated: NDArray[np.bool_], last: Floats) -> None:
        """Mark the episodes that ended in a tick. last: last observation of each of these cars."""
        cut = truncated & ~terminated
        self._terminated[tick], self._truncated[tick] = terminated, cut
        self._last = np.concatenate((self._last, last[cut[terminated | truncated]]))

    def batch(self, config: RunConfig) -> Batch:
        """Return the training batch; advantages are standardised later, over the batches of all runners."""
        noise = self._log_std.expand(self._means.shape).numpy()
        inputs = np.concatenate((self._means, noise), axis=-1)
        distribution = self._module.get_exploration_action_dist_cls().from_logits(torch.from_numpy(inputs))
        advantages, values = self._advantages(config)
        columns = {
            Columns.OBS: self.observations[:-1],
            Columns.ACTIONS: self._actions,
            Columns.ACTION_DIST_INPUTS: inputs,
            Columns.ACTION_LOGP: distribution.logp(torch.from_numpy(self._actions)).numpy(),
            Postprocessing.ADVANTAGES: advantages,
            Postprocessing.VALUE_TARGETS: advantages + values,
        }
        return {name: column.reshape(-1, *column.shape[2:]) for name, column in columns.items()}

    def _advantages(self, config: RunConfig) -> tuple[Floats, Floats]:
        """Return generalised advantages and values; truncated episodes are bootstrapped with the value function."""
        rewards, gamma = self.rewards, config.gamma
        if config.norm_reward:
            rewards = np.clip(rewards / float(self._module.reward_scale), -CLIP_REWARD, CLIP_REWARD)
        values = self._values(self.observations)
        after = values[1:].copy()
        after[self._terminated] = 0.0
        after[self._truncated] = self._values(self._last)
        advantages = rewards + gamma * after - values[:-1]
        decay = gamma * config.gae_lambda * ~(self._terminated | self._truncated)
        for tick in reversed(range(self.ticks - 1)):
            advantages[tick] += decay[tick] * advantages[tick + 1]
        return advantages.astype(np.float32), values[:-1]

    def _values(self, observations: Floats) -> Floats:
        with torch.no_grad():
            values: Floats = self._module.compute_values({Columns.OBS: torch.from_numpy(observations)}).numpy()
        return values


@dataclass(frozen=True, eq=False)
class MeanVariance:
    """Mean and variance of `count` rows."""

    mean: NDArray[np.float64]
    var: NDArray[np.float64]
    count: int

    @classmethod
    def of(cls, values: NDArray[np.floating]) -> MeanVariance:
        """Compute them over the rows of an array."""
        return cls(values.mean(axis=0, dtype=np.float64), values.var(axis=0, dtype=np.float64), len(values))


@dataclass(frozen=True, eq=False)
class RunnerRollout:
    """Rollout of one runner.

    observations, returns: statistics for the normalisation. seconds: time that it took. runner: number of the runner.
    process: process of the runner, which changes when the runner is replaced.
    """

    batch: Batch
    stats: DrivingStats
    observations: MeanVariance
    returns: MeanVariance
    seconds: float
    runner: int
    process: str


@dataclass(frozen=True)
class RunnerFailure:
    """Reason why a runner has no rollout, for instance a bridge that does not answer. It tries again when asked."""

    text: str


class CarRunner(SingleAgentEnvRunner):
    """Drives the cars of one process.

    last_observations: observations after the latest rollout.
    """

    last_observations: Floats
    _env: Any = None
    _failure: RunnerFailure | None = None
    """Latest failure."""
    _retry_at = 0.0
    """Time of the next try after a failure, by time.monotonic."""

    def make_env(self) -> None:
        """Prepare the runner; the cars are created in the first rollout, because a bridge may be slow to answer."""
        torch.set_num_threads(1)
        self._process = f"{os.getpid()} on {socket.gethostname()}"
        self._settings: RunnerSettings = self.config.env_config[SETTINGS]
        self.num_envs = self._settings.config.num_cars

    def get_spaces(self) -> dict[str, Any]:
        spaces = (OBSERVATION_SPACE, ACTION_SPACE)
        return dict.fromkeys((INPUT_ENV_SPACES, INPUT_ENV_SINGLE_SPACES, DEFAULT_MODULE_ID), spaces)

    def assert_healthy(self) -> None:
        assert self.module is not None

    def stop(self) -> None:
        if self._env is not None:
            self._env.close()
            self._env = None

    def sample(self, *, policy: Any) -> RunnerRollout | RunnerFailure:
        """Collect a rollout. policy: state of the module, or Ray's reference to it."""
        begin = time.monotonic()
        if self._failure is not None and begin < self._retry_at:
            return self._failure
        self.module.set_state(ray.get(policy) if isinstance(policy, ray.ObjectRef) else policy)
        try:
            if self._env is None:
                self.start()
            return self._gather()
        except RacerError as error:
            self._failure = RunnerFailure(str(error))
        except Exception as error:  # RLlib would end the process without a message
            self._failure = RunnerFailure(f"{type(error).__name__}: {in_one_line(error)}")
        self.stop()
        now = time.monotonic()
        self._retry_at = now + min(RETRY_FACTOR * (now - begin), MAX_RETRY_INTERVAL)
        return self._failure

    def start(self) -> Any:
        """Create and reset the cars, with a seed per runner; return their vector environment."""
        config, runner = self._settings.config, self.worker_index or 0
        if self._settings.token is not None:
            os.environ[TOKEN_VARIABLE] = self._settings.token
        self._env = env = make_cars(config, self._settings.bridge_of(runner))
        seed = int(np.random.SeedSequence((config.seed, runner)).generate_state(1)[0])
        torch.manual_seed(seed)
        env.seed(seed)
        self.last_observations = cast(Floats, env.reset())
        self._cars = find_cars(env)
        self._laps = LapTracker(config, simulation_of(self._cars), self._cars.last_step)
        self._stats = DrivingStats()
        self._discounted = np.zeros(self.num_envs)
        return env

    def _gather(self) -> RunnerRollout:
        begin, config = time.perf_counter(), self._settings.config
        rollout = Rollout(config.n_steps, self.last_observations, self.module)
        for tick in range(rollout.ticks):
            self._tick(rollout, tick)
        self.last_observations = rollout.observations[-1]
        seen = rollout.observations[1:]
        stats, self._stats = self._stats, DrivingStats()
        return RunnerRollout(
            batch=rollout.batch(config),
            stats=stats,
            observations=MeanVariance.of(seen.reshape(-1, seen.shape[-1])),
            returns=MeanVariance.of(rollout.discounted.reshape(-1)),
            seconds=time.perf_counter() - begin,
            runner=self.worker_index or 0,
            process=self._process,
        )

    def _tick(self, rollout: Rollout, tick: int) -> None:
        actions = np.clip(rollout.act(tick), ACTION_SPACE.low, ACTION_SPACE.high)
        observations, rewards, _, _ = self._env.step(actions)
        step = self._cars.last_step
        self._stats.add(self._laps.step(step))
        rollout.observations[tick + 1], rollout.rewards[tick] = observations, rewards
        self._discounted = self._discounted * self._settings.config.gamma + rewards
        rollout.discounted[tick] = self._discounted
        if len(step.ended):
            self._discounted[step.ended] = 0.0
            rollout.end(tick, step.terminated, step.truncated, step.final_observations)
