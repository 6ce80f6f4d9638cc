"""RLlib's environment runner on all cars at once: a rollout is a few arrays, and only at its end it becomes episodes.

RLlib's own runner keeps a list for every value of every car, and waits a step for a car to start anew; this one takes
the arrays of a RacerVectorEnv, whose cars start anew within the step.
"""

from __future__ import annotations

import os
import time
import uuid
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer

from racer_env.vector import RacerVectorEnv
from racer_viewer.training.learner import make_cars
from racer_viewer.training.metrics import find_cars
from racer_viewer.training.ray.report import Moments, Report, Witness
from racer_viewer.training.ray.settings import RunnerSettings

SETTINGS = "settings"
"""Key of a runner's `RunnerSettings` in RLlib's env_config."""
TOKEN_VARIABLE = "RACER_BRIDGE_TOKEN"
CLIP_REWARD = 10.0
"""Scaled rewards are within ± this, as in stable-baselines3."""

Floats = NDArray[np.float32]


class CarRunner(SingleAgentEnvRunner):
    """Drives the cars of one process with the policy it was sent."""

    env: RacerVectorEnv | None
    _last_observations: Floats
    _ids: list[str]
    """Of the episodes that the cars are in."""

    def make_env(self) -> None:
        torch.set_num_threads(1)
        settings: RunnerSettings = self.config.env_config[SETTINGS]
        if self.env is not None:
            self.env.close()
        if settings.token is not None:
            os.environ[TOKEN_VARIABLE] = settings.token
        self._run_config = settings.config
        self._cars = make_cars(settings.config, settings.bridge_of(self.worker_index or 0))
        plain = find_cars(self._cars)
        assert plain is not None
        self._plain = plain
        self.env, self.num_envs = plain.cars, plain.num_envs
        self._witness = Witness(settings.config, plain)
        self._discounted = np.zeros(self.num_envs)
        self._needs_initial_reset = True

    def take_report(self) -> Report:
        return self._witness.take()

    def process(self) -> int:
        return os.getpid()

    def _sample(
        self,
        *,
        num_timesteps: int | None = None,
        num_episodes: int | None = None,
        explore: bool,
        random_actions: bool = False,
        force_reset: bool = False,
    ) -> list[SingleAgentEpisode]:
        assert num_timesteps is not None, "runs gather ticks, not episodes"
        if self._needs_initial_reset or force_reset:
            self._start()
        begin = time.perf_counter()
        rollout = _Rollout(-(-num_timesteps // self.num_envs), self.num_envs, self.module)
        rollout.observations[0] = self._last_observations
        for tick in range(rollout.ticks):
            self._tick(rollout, tick, explore)
        self._last_observations = rollout.observations[-1]
        episodes, self._ids = rollout.episodes(self._ids)
        self._witness.note_moments(
            Moments.of(rollout.observations[1:].reshape(-1, rollout.observations.shape[-1])),
            Moments.of(rollout.discounted.reshape(-1)),
            time.perf_counter() - begin,
        )
        steps = rollout.ticks * self.num_envs
        self._log_env_steps(metric=self._metrics_num_env_steps_sampled, num_steps=steps)
        self._increase_sampled_metrics(steps, sum(each.is_done for each in episodes))
        return episodes

    def _start(self) -> None:
        """Each runner with random numbers of its own."""
        seed = int(np.random.SeedSequence((self._run_config.seed, self.worker_index or 0)).generate_state(1)[0])
        torch.manual_seed(seed)
        self._cars.seed(seed)
        self._last_observations = cast(Floats, self._cars.reset())
        self._ids = [uuid.uuid4().hex for _ in range(self.num_envs)]
        self._discounted[:] = 0.0
        self._witness.start()
        self._needs_initial_reset = False

    def _tick(self, rollout: _Rollout, tick: int, explore: bool) -> None:
        actions = rollout.act(tick, explore)
        space = self._plain.action_space
        observations, rewards, _, _ = self._cars.step(np.clip(actions, space.low, space.high))  # type: ignore[attr-defined]
        step = self._plain.last_step
        self._witness.tick()
        self._discounted = self._discounted * self._run_config.gamma + rewards
        rollout.discounted[tick] = self._discounted
        rollout.rewards[tick] = rewards
        rollout.observations[tick + 1] = cast(Floats, observations)
        if len(step.ended):
            self._discounted[step.ended] = 0.0
            rollout.terminated[tick], rollout.truncated[tick] = step.terminated, step.truncated
            rollout.last_observations[tick] = dict(
                zip(step.ended.tolist(), step.final_observations.copy(), strict=True)
            )


class _Rollout:
    """So many ticks of all cars, as arrays (ticks, cars, …)."""

    def __init__(self, ticks: int, cars: int, module: Any) -> None:
        self.ticks, self._module = ticks, module
        self._distribution = module.get_exploration_action_dist_cls()
        size, actions = module.observation_space.shape[0], module.action_space.shape[0]
        self.observations: Floats = np.empty((ticks + 1, cars, size), np.float32)
        self.actions: Floats = np.empty((ticks, cars, actions), np.float32)
        self.inputs: Floats = np.empty((ticks, cars, 2 * actions), np.float32)
        """Of the distributions that the actions were drawn from."""
        self.rewards: Floats = np.empty((ticks, cars), np.float32)
        self.discounted = np.empty((ticks, cars))
        self.terminated, self.truncated = np.zeros((ticks, cars), np.bool_), np.zeros((ticks, cars), np.bool_)
        self.last_observations: dict[int, dict[int, Floats]] = {}
        """By tick and car, of those whose episode ended."""

    def act(self, tick: int, explore: bool) -> Floats:
        inputs = self._module.forward_exploration({Columns.OBS: torch.from_numpy(self.observations[tick])})
        inputs = inputs[Columns.ACTION_DIST_INPUTS]
        self.inputs[tick] = inputs.numpy()
        distribution = self._distribution.from_logits(inputs)
        drawn = distribution.sample() if explore else inputs[:, : self.actions.shape[-1]]
        actions: Floats = drawn.numpy()
        self.actions[tick] = actions
        return actions

    def episodes(self, ids: list[str]) -> tuple[list[SingleAgentEpisode], list[str]]:
        """The pieces of all cars' episodes, and what their episodes are called from here on."""
        distribution = self._distribution.from_logits(torch.from_numpy(self.inputs))
        self._logp: Floats = distribution.logp(torch.from_numpy(self.actions)).numpy()
        scale = float(self._module.reward_scale)
        self._paid: Floats = np.clip(self.rewards / np.float32(scale), -CLIP_REWARD, CLIP_REWARD)
        over = self.terminated | self.truncated
        pieces, names = [], list(ids)
        for car in range(over.shape[1]):
            begin = 0
            for tick in np.flatnonzero(over[:, car]).tolist():
                pieces.append(self._piece(names[car], car, begin, tick + 1))
                names[car], begin = uuid.uuid4().hex, tick + 1
            if begin < self.ticks:
                pieces.append(self._piece(names[car], car, begin, self.ticks))
        return pieces, names

    def _piece(self, name: str, car: int, begin: int, end: int) -> SingleAgentEpisode:
        observations = self.observations[begin : end + 1, car].copy()
        last = self.last_observations.get(end - 1, {}).get(car)
        if last is not None:
            observations[-1] = last
        span = slice(begin, end)
        terminated = bool(self.terminated[end - 1, car])
        return SingleAgentEpisode(
            name,
            observations=InfiniteLookbackBuffer(observations),
            actions=InfiniteLookbackBuffer(self.actions[span, car].copy()),
            rewards=InfiniteLookbackBuffer(self._paid[span, car].copy()),
            extra_model_outputs={
                Columns.ACTION_DIST_INPUTS: InfiniteLookbackBuffer(self.inputs[span, car].copy()),
                Columns.ACTION_LOGP: InfiniteLookbackBuffer(self._logp[span, car].copy()),
            },
            terminated=terminated,
            truncated=bool(self.truncated[end - 1, car]) and not terminated,
            len_lookback_buffer=0,
        )
