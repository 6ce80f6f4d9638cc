"""RLlib's environment runner on all cars at once: it sends arrays with all that PPO learns from, and not episodes.

RLlib's own runner keeps a list for every value of every car, and waits a step for a car to start anew; this one takes
the arrays of a RacerVectorEnv, whose cars start anew within the step, and works out advantages where they are gathered.
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
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES, INPUT_ENV_SPACES
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

from racer_env.bridge.dialogue import TOKEN_VARIABLE
from racer_env.env import ACTION_SPACE, OBSERVATION_SPACE
from racer_env.errors import RacerError, in_one_line
from racer_viewer.training.learner import make_cars
from racer_viewer.training.metrics import find_cars
from racer_viewer.training.ray.report import Moments, Report, Witness
from racer_viewer.training.ray.rollout import Batch, Floats, Rollout
from racer_viewer.training.ray.settings import RunnerSettings

RETRY_AFTER, MOST_RETRY_SECONDS = 3.0, 30.0
"""What took so long to fail is tried again after so many times as long, but at most after this: others wait for it."""
SETTINGS = "settings"
"""Key of a runner's `RunnerSettings` in RLlib's env_config."""


@dataclass(frozen=True, eq=False)
class Gathered:
    """By one runner, which has a number; its process is another one after it has died.

    observations, returns: what normalisation is learned from. seconds: that it took.
    """

    batch: Batch
    report: Report
    observations: Moments
    returns: Moments
    seconds: float
    runner: int
    process: str


@dataclass(frozen=True)
class Trouble:
    """Why a runner could gather nothing: a bridge that is not there, say. It tries again when it is asked again."""

    text: str


class CarRunner(SingleAgentEnvRunner):
    """Drives the cars of one process."""

    _last_observations: Floats
    _cars: Any = None
    _trouble: Trouble | None = None
    """The latest."""
    _retry_at = 0.0
    """When it makes sense to try again after that, by time.monotonic."""

    def make_env(self) -> None:
        """The cars are there when the first one drives: a bridge may keep a runner waiting, but not from being made."""
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
        if self._cars is not None:
            self._cars.close()
            self._cars = None

    def sample(self, *, policy: Any) -> Gathered | Trouble:
        """policy: state of the module to drive with, or where Ray has it."""
        begin = time.monotonic()
        if self._trouble is not None and begin < self._retry_at:
            return self._trouble
        self.module.set_state(ray.get(policy) if isinstance(policy, ray.ObjectRef) else policy)
        try:
            if self._cars is None:
                self._start()
            return self._gather()
        except RacerError as error:
            self._trouble = Trouble(str(error))
        except Exception as error:  # which would end this process, and nobody would know why
            self._trouble = Trouble(f"{type(error).__name__}: {in_one_line(error)}")
        self.stop()
        now = time.monotonic()
        self._retry_at = now + min(RETRY_AFTER * (now - begin), MOST_RETRY_SECONDS)
        return self._trouble

    def _start(self) -> None:
        """Each runner with random numbers of its own."""
        config, runner = self._settings.config, self.worker_index or 0
        if self._settings.token is not None:
            os.environ[TOKEN_VARIABLE] = self._settings.token
        self._cars = cars = make_cars(config, self._settings.bridge_of(runner))
        seed = int(np.random.SeedSequence((config.seed, runner)).generate_state(1)[0])
        torch.manual_seed(seed)
        cars.seed(seed)
        self._last_observations = cast(Floats, cars.reset())
        plain = find_cars(cars)
        assert plain is not None
        self._plain, self._witness = plain, Witness(config, plain)
        self._discounted = np.zeros(self.num_envs)

    def _gather(self) -> Gathered:
        begin, config = time.perf_counter(), self._settings.config
        rollout = Rollout(config.n_steps, self._last_observations, self.module)
        for tick in range(rollout.ticks):
            self._tick(rollout, tick)
        self._last_observations = rollout.observations[-1]
        seen = rollout.observations[1:]
        return Gathered(
            batch=rollout.batch(config),
            report=self._witness.take(),
            observations=Moments.of(seen.reshape(-1, seen.shape[-1])),
            returns=Moments.of(rollout.discounted.reshape(-1)),
            seconds=time.perf_counter() - begin,
            runner=self.worker_index or 0,
            process=self._process,
        )

    def _tick(self, rollout: Rollout, tick: int) -> None:
        actions = np.clip(rollout.act(tick), ACTION_SPACE.low, ACTION_SPACE.high)
        observations, rewards, _, _ = self._cars.step(actions)
        self._witness.tick()
        rollout.observations[tick + 1], rollout.rewards[tick] = observations, rewards
        self._discounted = self._discounted * self._settings.config.gamma + rewards
        rollout.discounted[tick] = self._discounted
        step = self._plain.last_step
        if len(step.ended):
            self._discounted[step.ended] = 0.0
            rollout.end(tick, step.terminated, step.truncated, step.final_observations)
