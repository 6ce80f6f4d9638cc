"""RLlib's PPO with the settings of a run's config."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.evaluation.postprocessing import Postprocessing
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils.metrics import LEARNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME
from stable_baselines3.common.utils import get_device

from racer_env.env import ACTION_SPACE, OBSERVATION_SPACE
from racer_env.errors import RacerError
from racer_env.vector import RacerVectorEnv
from racer_viewer.training.config import RunConfig
from racer_viewer.training.ray.cluster import summary, wait_for_cpus
from racer_viewer.training.ray.module import MODEL_ACTIVATION, MODEL_LOG_STD, MODEL_NET, RacerLearner, RacerModule
from racer_viewer.training.ray.runner import SETTINGS, Batch, CarRunner, RunnerFailure, RunnerRollout
from racer_viewer.training.ray.settings import RaySettings, RunnerSettings

MAX_RESTARTS = 1000
"""Maximum number of runner restarts in one run."""
FIRST_ROLLOUT_TIMEOUT = 600.0
"""Timeout [s] of the first rollout, which may include compiling the engine."""
MIN_ROLLOUT_TIMEOUT, ROLLOUT_TIMEOUT_FACTOR = 120.0, 10.0
"""Timeout of later rollouts: minimum [s], and multiple of the previous iteration's time."""
PROBE_TIMEOUT = 10.0
"""Timeout [s] of the health check of a replaced runner."""
MIN_PROBE_INTERVAL, MAX_PROBE_INTERVAL = 1.0, 60.0
"""Time [s] between two health checks of a lost runner; it doubles each time. All other runners wait meanwhile."""
MIN_ADVANTAGE_STD = 1e-4
"""Minimum divisor when advantages are standardised."""


@dataclass(frozen=True, eq=False)
class Iteration:
    """Result of one rollout of all runners and the update after it.

    lost: number of runners that died or timed out. gathering: time [s] until all rollouts had arrived. learning: time
    [s] of the update. metrics: metrics of the update, by RLlib's names.
    """

    rollouts: Sequence[RunnerRollout]
    failures: Sequence[RunnerFailure]
    lost: int
    gathering: float
    learning: float = 0.0
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        return sum(each.stats.steps for each in self.rollouts)


class RacerPPO(PPO):
    """RLlib's PPO on the rollouts of `CarRunner`. Runners receive the policy with every request, so that a replaced
    runner drives with the same policy as the others.
    """

    last: Iteration
    """Latest iteration."""
    _gathering: float | None = None
    """Time [s] that the latest rollouts took."""
    _next_probe, _probe_interval = 0.0, MIN_PROBE_INTERVAL
    """Time of the next health check of lost runners, by time.monotonic, and the interval after it [s]."""

    def setup(self, config: Any) -> None:
        super().setup(config)
        self._random = np.random.default_rng(config.seed)

    def training_step(self) -> None:
        begin = time.perf_counter()
        answers, lost = self._gather()
        rollouts = [each for each in answers if isinstance(each, RunnerRollout)]
        failures = [each for each in answers if isinstance(each, RunnerFailure)]
        arrived = time.perf_counter()
        self.last = Iteration(rollouts, failures, lost, arrived - begin)
        if rollouts:
            self._gathering = self.last.gathering
            metrics = self._learn([each.batch for each in rollouts])
            self.last = replace(self.last, learning=time.perf_counter() - arrived, metrics=metrics)

    def restore_env_runners(self, env_runner_group: Any) -> list[int]:
        """Check lost runners at growing intervals: without a free CPU, a check in every iteration takes seconds."""
        if time.monotonic() < self._next_probe:
            return []
        restored: list[int] = super().restore_env_runners(env_runner_group)
        if env_runner_group.num_healthy_remote_workers() < env_runner_group.num_remote_env_runners():
            self._next_probe = time.monotonic() + self._probe_interval
            self._probe_interval = min(2.0 * self._probe_interval, MAX_PROBE_INTERVAL)
        else:
            self._probe_interval = MIN_PROBE_INTERVAL
        return restored

    def _gather(self) -> tuple[list[Any], int]:
        """Request a rollout of every runner; return the answers, and the number of runners that did not answer."""
        runners = self.env_runner_group._worker_manager
        asked, request = runners.healthy_actor_ids(), {"policy": ray.put(self.policy_state())}
        timeout = FIRST_ROLLOUT_TIMEOUT
        if self._gathering:
            timeout = max(MIN_ROLLOUT_TIMEOUT, ROLLOUT_TIMEOUT_FACTOR * self._gathering)
        answers = runners.foreach_actor("sample", kwargs=request, timeout_seconds=timeout)
        for silent in set(asked) - {each.actor_id for each in answers}:
            ray.kill(runners.actors()[silent], no_restart=False)
            runners.set_actor_state(silent, healthy=False)
        results = [each.get() for each in answers if each.ok]
        return results, len(asked) - len(results)

    def policy_state(self) -> dict[str, Any]:
        """Return the state of the module that runners drive with."""
        (answer,) = self.learner_group.foreach_learner(lambda learner: learner.module[DEFAULT_MODULE_ID].get_state())
        state: dict[str, Any] = answer.get()
        return state

    def _learn(self, parts: Sequence[Batch]) -> dict[str, float]:
        """Update the policy; return metrics. Rows are shuffled here because RLlib does not shuffle its first epoch."""
        order = self._random.permutation(sum(len(part[Postprocessing.ADVANTAGES]) for part in parts))
        columns = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}
        advantages = columns[Postprocessing.ADVANTAGES]
        columns[Postprocessing.ADVANTAGES] = (advantages - advantages.mean()) / max(MIN_ADVANTAGE_STD, advantages.std())
        steps, config = len(advantages), self.config
        results = self.learner_group.update(
            batch=MultiAgentBatch({DEFAULT_MODULE_ID: SampleBatch(columns)}, env_steps=steps),
            timesteps={NUM_ENV_STEPS_SAMPLED_LIFETIME: 0},
            num_epochs=config.num_epochs,
            minibatch_size=min(config.minibatch_size, steps),
            shuffle_batch_per_epoch=config.shuffle_batch_per_epoch,
        )
        self.metrics.aggregate(results, key=LEARNER_RESULTS)
        learned = results[0][DEFAULT_MODULE_ID]
        return {name: float(value.peek()) for name, value in learned.items()}


@contextmanager
def build_algorithm(config: RunConfig, settings: RaySettings, runner: RunnerSettings) -> Iterator[RacerPPO]:
    """Start the runners, and a learner in this process; stop them at the end."""
    wait_for_cpus(settings.runners)
    try:
        algorithm: RacerPPO = ppo_config(config, settings, runner).build_algo()
    except Exception as error:  # RLlib passes on any exception of another process
        hint = "every node needs the same version of racer-viewer[ray]"
        raise RacerError(f"runners could not be started ({summary(error)}): {hint}") from error
    try:
        yield algorithm
    finally:
        algorithm.stop()
        shutil.rmtree(algorithm.logdir, ignore_errors=True)  # RLlib leaves an empty folder in the user's home


def ppo_config(config: RunConfig, settings: RaySettings, runner: RunnerSettings) -> Any:
    """Return RLlib's config of PPO."""
    ppo: Any = PPOConfig(RacerPPO)
    ppo.environment(
        RacerVectorEnv,
        env_config={SETTINGS: runner},
        observation_space=OBSERVATION_SPACE,
        action_space=ACTION_SPACE,
    )
    ppo.env_runners(
        env_runner_cls=CarRunner,
        num_env_runners=settings.runners,
        num_envs_per_env_runner=runner.config.num_cars,
    )
    on_gpu = get_device(config.device).type == "cuda"
    ppo.learners(num_learners=0, learner_class=RacerLearner, num_gpus_per_learner=int(on_gpu))
    ppo.rl_module(
        rl_module_spec=RLModuleSpec(
            module_class=RacerModule,
            model_config={
                MODEL_NET: tuple(config.net),
                MODEL_ACTIVATION: config.activation,
                MODEL_LOG_STD: config.log_std,
            },
        )
    )
    _set_training(ppo, config)
    ppo.fault_tolerance(
        restart_failed_env_runners=True,
        max_num_env_runner_restarts=MAX_RESTARTS,
        delay_between_env_runner_restarts_s=0.0,
        env_runner_health_probe_timeout_s=PROBE_TIMEOUT,
    )
    ppo.debugging(seed=config.seed, log_level="CRITICAL")
    ppo.reporting(min_time_s_per_iteration=None, min_sample_timesteps_per_iteration=0)
    return ppo


def _set_training(ppo: Any, config: RunConfig) -> None:
    """Set PPO's parameters as in stable-baselines3. Runners use gamma; `IterationSettings` set the learning rate."""
    steps = config.num_cars * config.n_steps
    ppo.training(
        train_batch_size_per_learner=steps,
        minibatch_size=min(config.batch_size, steps),
        num_epochs=config.n_epochs,
        clip_param=config.clip_range,
        vf_clip_param=math.inf,
        vf_loss_coeff=config.vf_coef,
        entropy_coeff=config.ent_coef,
        use_kl_loss=True,
        kl_coeff=0.0,  # for the metric only
        grad_clip=config.max_grad_norm,
        grad_clip_by="global_norm",
    )
