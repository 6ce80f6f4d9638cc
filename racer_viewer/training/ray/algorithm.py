"""From a run's config to RLlib's PPO."""

from __future__ import annotations

import logging
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from racer_env.env import ACTION_SPACE, OBSERVATION_SPACE
from racer_env.vector import RacerVectorEnv
from racer_viewer.training.config import RunConfig
from racer_viewer.training.ray.learner import RacerLearner
from racer_viewer.training.ray.module import MODEL_ACTIVATION, MODEL_LOG_STD, MODEL_NET, RacerModule
from racer_viewer.training.ray.runner import SETTINGS, CarRunner
from racer_viewer.training.ray.settings import RunnerSettings, Spread

MOST_RESTARTS = 1000
"""Of runners, in one run."""
GRACE_SECONDS = 10.0
"""For a runner that does not answer, until it is given up."""


@contextmanager
def algorithm_of(config: RunConfig, spread: Spread, bridge: str | None) -> Iterator[PPO]:
    """Runners that gather, and a learner in this process. Nothing is left of them at the end."""
    logging.getLogger("ray.rllib").setLevel(logging.ERROR)  # its import has set it otherwise
    algorithm: PPO = ppo_config(config, spread, RunnerSettings.of(spread.of_one(config), bridge)).build_algo()
    try:
        yield algorithm
    finally:
        algorithm.stop()
        shutil.rmtree(algorithm.logdir, ignore_errors=True)  # an empty folder in the user's home, which RLlib makes


def ppo_config(config: RunConfig, spread: Spread, settings: RunnerSettings) -> Any:
    """settings: of each runner."""
    ppo: Any = PPOConfig()
    ppo.environment(
        RacerVectorEnv,
        env_config={SETTINGS: settings},
        observation_space=OBSERVATION_SPACE,
        action_space=ACTION_SPACE,
        disable_env_checking=True,
        normalize_actions=False,
        clip_actions=True,
    )
    ppo.env_runners(
        env_runner_cls=CarRunner,
        num_env_runners=spread.runners,
        num_envs_per_env_runner=settings.config.num_cars,
        rollout_fragment_length=config.n_steps,
        batch_mode="truncate_episodes",
        create_env_on_local_worker=False,
    )
    ppo.learners(num_learners=0)
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
        max_num_env_runner_restarts=MOST_RESTARTS,
        delay_between_env_runner_restarts_s=0.0,
        env_runner_health_probe_timeout_s=GRACE_SECONDS,
    )
    ppo.debugging(seed=config.seed, log_level="ERROR")
    ppo.reporting(min_time_s_per_iteration=None, min_sample_timesteps_per_iteration=0)
    return ppo


def _set_training(ppo: Any, config: RunConfig) -> None:
    """As stable-baselines3 does it, as far as RLlib can."""
    steps = config.num_cars * config.n_steps
    ppo.training(
        learner_class=RacerLearner,
        lr=config.learning_rate,
        gamma=config.gamma,
        lambda_=config.gae_lambda,
        train_batch_size_per_learner=steps,
        minibatch_size=min(config.batch_size, steps),
        num_epochs=config.n_epochs,
        clip_param=config.clip_range,
        vf_clip_param=math.inf,
        vf_loss_coeff=config.vf_coef,
        entropy_coeff=config.ent_coef,
        use_kl_loss=False,
        grad_clip=config.max_grad_norm,
        grad_clip_by="global_norm",
    )
