"""From a run's config to RLlib's PPO."""

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
from racer_viewer.training.ray.cluster import gist, wait_for_room
from racer_viewer.training.ray.learner import MODEL_ACTIVATION, MODEL_LOG_STD, MODEL_NET, RacerLearner, RacerModule
from racer_viewer.training.ray.runner import SETTINGS, Batch, CarRunner, Gathered, Trouble
from racer_viewer.training.ray.settings import RunnerSettings, Spread

MOST_RESTARTS = 1000
"""Of runners, in one run."""
FIRST_ANSWER_SECONDS = 600.0
"""For runners to make their cars ready, which may mean to compile the engine, and to gather for the first time."""
LEAST_SILENCE_SECONDS, MOST_SILENCE = 120.0, 10.0
"""For a runner that does not answer, until it is given up: so many seconds, and so many times what gathering took."""
PROBE_SECONDS = 10.0
"""For a new runner in the place of another to answer, whenever it is asked."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds until it is asked again, while it does not: each time twice as many. Meanwhile all others wait."""
TINY = 1e-4
"""Advantages are not divided by less."""


@dataclass(frozen=True, eq=False)
class Iteration:
    """One round of gathering and learning.

    lost: runners that died, or did not answer for too long. gathering: seconds until all that was gathered had come.
    learning: seconds of the learner. figures: its own, by RLlib's names.
    """

    gathered: Sequence[Gathered]
    troubles: Sequence[Trouble]
    lost: int
    gathering: float
    learning: float = 0.0
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        return sum(each.report.steps for each in self.gathered)


class RacerPPO(PPO):
    """RLlib's PPO on what `CarRunner` gathers. Runners get the policy with every request: so one that was started anew
    drives with the same as all others.
    """

    last: Iteration
    """The latest one."""
    _usual: float | None = None
    """Seconds that gathering took lately."""
    _probe_at, _pause = 0.0, FIRST_PAUSE
    """When runners that were lost are asked for again, by time.monotonic, and how long to wait after that."""

    def setup(self, config: Any) -> None:
        super().setup(config)
        self._random = np.random.default_rng(config.seed)

    def training_step(self) -> None:
        begin = time.perf_counter()
        answers, lost = self._gather()
        gathered = [each for each in answers if isinstance(each, Gathered)]
        troubles = [each for each in answers if isinstance(each, Trouble)]
        came = time.perf_counter()
        self.last = Iteration(gathered, troubles, lost, came - begin)
        if gathered:
            self._usual = self.last.gathering
            figures = self._learn([each.batch for each in gathered])
            self.last = replace(self.last, learning=time.perf_counter() - came, figures=figures)

    def restore_env_runners(self, env_runner_group: Any) -> list[int]:
        """RLlib asks before every iteration, which costs seconds as long as there is no processor for a new runner."""
        if time.monotonic() < self._probe_at:
            return []
        restored: list[int] = super().restore_env_runners(env_runner_group)
        if env_runner_group.num_healthy_remote_workers() < env_runner_group.num_remote_env_runners():
            self._probe_at = time.monotonic() + self._pause
            self._pause = min(2.0 * self._pause, LONGEST_PAUSE)
        else:
            self._pause = FIRST_PAUSE
        return restored

    def _gather(self) -> tuple[list[Any], int]:
        """What runners answer, and how many do not."""
        runners = self.env_runner_group._worker_manager
        asked, request = runners.healthy_actor_ids(), {"policy": ray.put(self.policy_state())}
        limit = max(LEAST_SILENCE_SECONDS, MOST_SILENCE * self._usual) if self._usual else FIRST_ANSWER_SECONDS
        answers = runners.foreach_actor("sample", kwargs=request, timeout_seconds=limit)
        for silent in set(asked) - {each.actor_id for each in answers}:
            ray.kill(runners.actors()[silent], no_restart=False)
            runners.set_actor_state(silent, healthy=False)
        there = [each.get() for each in answers if each.ok]
        return there, len(asked) - len(there)

    def policy_state(self) -> dict[str, Any]:
        """What runners drive with."""
        (answer,) = self.learner_group.foreach_learner(lambda learner: learner.module[DEFAULT_MODULE_ID].get_state())
        state: dict[str, Any] = answer.get()
        return state

    def _learn(self, parts: Sequence[Batch]) -> dict[str, float]:
        """RLlib goes through it in the order given for the first time, and shuffles after that only."""
        order = self._random.permutation(sum(len(part[Postprocessing.ADVANTAGES]) for part in parts))
        columns = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}
        advantages = columns[Postprocessing.ADVANTAGES]
        columns[Postprocessing.ADVANTAGES] = (advantages - advantages.mean()) / max(TINY, advantages.std())
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
def algorithm_of(config: RunConfig, spread: Spread, settings: RunnerSettings) -> Iterator[RacerPPO]:
    """Runners that gather, and a learner in this process. Nothing is left of them at the end."""
    wait_for_room(spread.runners)
    try:
        algorithm: RacerPPO = ppo_config(config, spread, settings).build_algo()
    except Exception as error:  # of many kinds, from another process
        same = "every machine needs the same version of this project, with its extra ray"
        raise RacerError(f"runners could not be started ({gist(error)}): {same}") from error
    try:
        yield algorithm
    finally:
        algorithm.stop()
        shutil.rmtree(algorithm.logdir, ignore_errors=True)  # an empty folder in the user's home, which RLlib makes


def ppo_config(config: RunConfig, spread: Spread, settings: RunnerSettings) -> Any:
    """settings: of each runner."""
    ppo: Any = PPOConfig(RacerPPO)
    ppo.environment(
        RacerVectorEnv,
        env_config={SETTINGS: settings},
        observation_space=OBSERVATION_SPACE,
        action_space=ACTION_SPACE,
    )
    ppo.env_runners(
        env_runner_cls=CarRunner,
        num_env_runners=spread.runners,
        num_envs_per_env_runner=settings.config.num_cars,
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
        max_num_env_runner_restarts=MOST_RESTARTS,
        delay_between_env_runner_restarts_s=0.0,
        env_runner_health_probe_timeout_s=PROBE_SECONDS,
    )
    ppo.debugging(seed=config.seed, log_level="CRITICAL")
    ppo.reporting(min_time_s_per_iteration=None, min_sample_timesteps_per_iteration=0)
    return ppo


def _set_training(ppo: Any, config: RunConfig) -> None:
    """As stable-baselines3 does it, as far as RLlib can; runners know the discount, and a `Plan` the learning rate."""
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
        kl_coeff=0.0,  # it is told, and not learned from
        grad_clip=config.max_grad_norm,
        grad_clip_by="global_norm",
    )
