"""What one runner gathers at a time, as arrays, and what PPO learns from it.

What a runner tells of the driving: reward components, laps, sectors, episodes, and the moments of what it saw.

RLlib's environment runner on all cars at once: it sends arrays with all that PPO learns from, and not episodes.

RLlib's own runner keeps a list for every value of every car, and waits a step for a car to start anew; this one takes
the arrays of a RacerVectorEnv, whose cars start anew within the step, and works out advantages where they are gathered.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, field
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
from racer_env.engine import REWARD_COMPONENTS
from racer_env.env import ACTION_SPACE, OBSERVATION_SPACE
from racer_env.errors import RacerError, in_one_line
from racer_viewer.training.config import RunConfig
from racer_viewer.training.lap_tracker import Sights, Spotter
from racer_viewer.training.metrics import Driven, Episodes, find_cars, tick_of
from racer_viewer.training.ray.settings import RunnerSettings
from racer_viewer.training.sb3 import make_cars
from racer_viewer.training.vec_env import SB3VecEnv

CLIP_REWARD = 10.0
"""Scaled rewards are within ± this, as in stable-baselines3."""

Floats = NDArray[np.float32]
Batch = dict[str, Floats]
"""A row for every step of every car, by RLlib's names."""


class Rollout:
    """So many ticks of all cars, as arrays (ticks, cars, …). observations[tick] is what was seen before it.

    module: that drives, see `RacerModule`. discounted: rewards so far, discounted, of the episode a car is in.
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
        """Around which actions were drawn."""
        self.rewards: Floats = np.empty((ticks, cars), np.float32)
        self.discounted = np.empty((ticks, cars))
        self._terminated = np.zeros((ticks, cars), np.bool_)
        self._truncated = np.zeros((ticks, cars), np.bool_)
        self._last: Floats = np.zeros((0, size), np.float32)
        """What was seen at the end of episodes that were cut off, in the order of ticks and cars."""

    def act(self, tick: int) -> Floats:
        """RLlib's own way there costs more than all the rest of a tick."""
        with torch.no_grad():
            means = self._module.means_of(torch.from_numpy(self.observations[tick]))
            actions: Floats = torch.normal(means, self._std.expand_as(means)).numpy()
        self._means[tick], self._actions[tick] = means.numpy(), actions
        return actions

    def end(self, tick: int, terminated: NDArray[np.bool_], truncated: NDArray[np.bool_], last: Floats) -> None:
        """Some episodes ended with this tick. last: what each of these cars saw last."""
        cut = truncated & ~terminated
        self._terminated[tick], self._truncated[tick] = terminated, cut
        self._last = np.concatenate((self._last, last[cut[terminated | truncated]]))

    def batch(self, config: RunConfig) -> Batch:
        """What can be learned from it; advantages are not standardised yet, since this is only a part."""
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
        """Generalised advantages, and the values they are above. An episode that was cut off goes on in the values."""
        paid, gamma = self.rewards, config.gamma
        if config.norm_reward:
            paid = np.clip(paid / float(self._module.reward_scale), -CLIP_REWARD, CLIP_REWARD)
        values = self._values(self.observations)
        after = values[1:].copy()
        after[self._terminated] = 0.0
        after[self._truncated] = self._values(self._last)
        better = paid + gamma * after - values[:-1]
        kept = gamma * config.gae_lambda * ~(self._terminated | self._truncated)
        for tick in reversed(range(self.ticks - 1)):
            better[tick] += kept[tick] * better[tick + 1]
        return better.astype(np.float32), values[:-1]

    def _values(self, observations: Floats) -> Floats:
        with torch.no_grad():
            values: Floats = self._module.compute_values({Columns.OBS: torch.from_numpy(observations)}).numpy()
        return values


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and variance of so many values."""

    mean: NDArray[np.float64]
    var: NDArray[np.float64]
    count: int

    @classmethod
    def of(cls, values: NDArray[np.floating]) -> Moments:
        """Of rows."""
        return cls(values.mean(axis=0, dtype=np.float64), values.var(axis=0, dtype=np.float64), len(values))


@dataclass(eq=False)
class Report:
    """Of one rollout of one runner. components: (6,) sums over steps and cars."""

    steps: int = 0
    components: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(REWARD_COMPONENTS)))
    driven: Driven = field(default_factory=Driven)
    sights: Sights = field(default_factory=Sights)


class Witness:
    """Sees every tick of a runner's cars, from the beginning of their episodes on."""

    def __init__(self, config: RunConfig, cars: SB3VecEnv) -> None:
        self._cars, self._episodes = cars, Episodes(cars.num_envs)
        self._spotter = Spotter(config, cars)
        self._spotter.start()
        self._report = Report()

    def tick(self) -> None:
        """After a step."""
        tick, report = tick_of(self._cars), self._report
        report.steps += len(tick.rewards)
        report.components += tick.components.sum(axis=0)
        report.driven.add(self._episodes.tick(tick))
        report.sights.add(self._spotter.tick(tick))

    def take(self) -> Report:
        """What there was since the last one."""
        report, self._report = self._report, Report()
        return report


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
