"""Learner on Ray RLlib: runners collect rollouts in other processes, this process learns from them.

A model of stable-baselines3 receives the weights after every update. It is what is saved, evaluated and logged, so a
run on Ray is like every other run and either engine can resume it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from racer_env.errors import RacerError
from racer_viewer.training.config import RunConfig
from racer_viewer.training.learner import Callback, Learner, LearnerError, PolicyWeights
from racer_viewer.training.metrics import DrivingStats, MetricsLogger
from racer_viewer.training.policy_log import PolicyLayout
from racer_viewer.training.ray.algorithm import Iteration, RacerPPO, build_algorithm
from racer_viewer.training.ray.cluster import ray_session
from racer_viewer.training.ray.module import IterationSettings
from racer_viewer.training.ray.settings import RaySettings, RunnerSettings
from racer_viewer.training.run import Run
from racer_viewer.training.run_folder import Checkpoint
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.sb3 import SB3Learner, metrics_files

WARM_UP_TICKS = 200
"""Ticks that a new policy drives before it learns, to initialise the normalisation statistics."""
IDLE_TIMEOUT = 60.0
"""Time [s] without a rollout of any runner after which a run ends."""
RETRY_INTERVAL = 1.0
"""Time [s] between two iterations without a rollout."""
ALL_LOST = "all of them died"
METRICS = {
    "policy_loss": "train/policy_gradient_loss",
    "vf_loss": "train/value_loss",
    "entropy": "train/entropy_loss",
    "mean_kl_loss": "train/approx_kl",
    "vf_explained_var": "train/explained_variance",
    "total_loss": "train/loss",
}
"""Names of metrics in stable-baselines3, by their names in RLlib."""

IterationHandler = Callable[[RacerPPO], None]


def ray_run(
    config: RunConfig,
    runs: Path,
    settings: RaySettings,
    checkpoint: Checkpoint | None = None,
    bridges: str | None = None,
    on_iteration: IterationHandler = lambda algorithm: None,
) -> Run:
    """Create a run that learns on Ray.

    bridges: addresses of bridge servers whose cars the runners drive, separated by commas.
    on_iteration: called after every iteration.
    """
    config = replace(settings.run_config(config), engine="ray")
    runner = RunnerSettings.create(settings.runner_config(config), bridges)
    return Run(
        config, runs, checkpoint, partial(RayLearner, settings=settings, runner=runner, on_iteration=on_iteration)
    )


class RayLearner(Learner):
    """PPO on Ray RLlib. Ray is started, or connected to, when the learner is created.

    settings: cluster and number of runners. runner: settings that each runner receives.
    """

    def __init__(
        self,
        config: RunConfig,
        settings: RaySettings,
        runner: RunnerSettings,
        on_iteration: IterationHandler = lambda algorithm: None,
    ) -> None:
        self.config, self._settings, self._runner, self._on_iteration = config, settings, runner, on_iteration
        self._updates = 0
        with ExitStack() as resources:
            resources.enter_context(ray_session(settings.address, settings.runners))
            self._sb3 = SB3Learner(config)
            resources.callback(self._sb3.close)
            self._resources = resources.pop_all()

    @property
    def steps(self) -> int:
        return self._sb3.steps

    @property
    def updates(self) -> int:
        return self._updates

    @property
    def simulation(self) -> None:
        """None: the cars are in the runners' processes."""
        return None

    @property
    def logger(self) -> MetricsLogger:
        return self._sb3.logger

    def load(self, checkpoint: Checkpoint) -> None:
        self._sb3.load(checkpoint)

    def load_weights(self, model: str) -> None:
        self._sb3.load_weights(model)

    def policy_layout(self) -> PolicyLayout:
        return self._sb3.policy_layout()

    def policy_weights(self) -> PolicyWeights:
        return self._sb3.policy_weights()

    def save(self, path: Path) -> Path:
        return self._sb3.save(path)

    def close(self) -> None:
        self._resources.close()

    def learn(self, folder: Path, log: RunLog, callback: Callback) -> None:
        model = self._sb3.model
        with ExitStack() as resources:
            resources.enter_context(metrics_files(model, folder, log, callback.on_problem))
            algorithm = resources.enter_context(build_algorithm(self.config, self._settings, self._runner))
            if not self.steps and not self.config.begin_from:
                self._warm_up_statistics()
            self._send_model(algorithm)
            callback.on_training_start()
            self._iterate(algorithm, log, callback)
            callback.on_training_end()
            if model.logger.name_to_value:
                model.logger.dump(self.steps)

    def _iterate(self, algorithm: RacerPPO, log: RunLog, callback: Callback) -> None:
        """Learn to the end; the metrics of the last iteration are not dumped yet."""
        health = RunnerHealth(self._settings.runners, callback.on_problem)
        first_steps, first_seconds = self.steps, log.seconds
        while self.steps < self.config.timesteps:
            callback.on_rollout_start()
            algorithm.train()
            self._on_iteration(algorithm)
            iteration = algorithm.last
            health.check(iteration)
            if iteration.rollouts:
                go_on = callback.on_step(self._take(iteration, algorithm))
                callback.on_rollout_end()
                self._record_metrics(iteration, log.seconds, (self.steps - first_steps) / (log.seconds - first_seconds))
            else:
                go_on = callback.on_step(DrivingStats())
                time.sleep(RETRY_INTERVAL)
            if not go_on:
                return
            if iteration.rollouts and self.steps < self.config.timesteps:
                self._sb3.model.logger.dump(self.steps)

    def _take(self, iteration: Iteration, algorithm: RacerPPO) -> DrivingStats:
        """Copy weights and statistics of an iteration into the model, and prepare the next iteration."""
        model, env, stats = self._sb3.model, self._sb3.env, DrivingStats()
        self._updates += 1
        model.num_timesteps += iteration.steps
        self._receive_model(algorithm)
        for each in iteration.rollouts:
            for running, seen in ((self._sb3.observation_statistics, each.observations), (env.ret_rms, each.returns)):
                running.update_from_moments(seen.mean, seen.var, seen.count)
            stats.add(each.stats)
        settings = self._iteration_settings()
        algorithm.learner_group.foreach_learner(lambda learner: learner.apply(settings))
        return stats

    def _send_model(self, algorithm: RacerPPO) -> None:
        """Copy the model to RLlib's learner."""
        policy = self._sb3.model.policy
        weights, optimiser, settings = policy.state_dict(), policy.optimizer.state_dict(), self._iteration_settings()
        algorithm.learner_group.foreach_learner(lambda learner: learner.load_model(weights, optimiser, settings))

    def _receive_model(self, algorithm: RacerPPO) -> None:
        """Copy weights and optimiser of RLlib's learner into the model."""
        (answer,) = algorithm.learner_group.foreach_learner(lambda learner: learner.model_state())
        weights, optimiser = answer.get()
        self._sb3.model.policy.load_state_dict(weights)
        self._sb3.model.policy.optimizer.load_state_dict(optimiser)

    def _iteration_settings(self) -> IterationSettings:
        """Return the settings of the next iteration.

        As in stable-baselines3, the noise depends on the steps before the rollout, the learning rate on those after it.
        """
        config, running, returns = self.config, self._sb3.observation_statistics, self._sb3.env.ret_rms
        now, then = self.steps, self.steps + config.num_cars * config.n_steps
        return IterationSettings(
            learning_rate=config.learning_rates(1.0 - then / config.timesteps),
            log_std_limit=config.log_std_limits(1.0 - now / config.timesteps),
            obs_mean=running.mean.copy(),
            obs_var=running.var.copy(),
            returns_var=float(returns.var) if config.norm_reward else None,
            clip_obs=config.clip_obs,
        )

    def _record_metrics(self, iteration: Iteration, seconds: float, steps_per_second: float) -> None:
        """Record metrics by the names that stable-baselines3 uses, so that all charts know them."""
        record, policy = self.logger.record, self._sb3.model.policy
        for name, known in METRICS.items():
            if name in iteration.metrics:
                record(known, iteration.metrics[name] * (-1.0 if name == "entropy" else 1.0))
        record("train/learning_rate", float(policy.optimizer.param_groups[0]["lr"]))
        record("train/std", float(policy.log_std.detach().exp().mean()))  # type: ignore[operator]
        record("ray/runners", len(iteration.rollouts))
        record("ray/driving_sec", max(each.seconds for each in iteration.rollouts))
        record("ray/gathering_sec", iteration.gathering)
        record("ray/learning_sec", iteration.learning)
        record("time/fps", round(steps_per_second))
        record("time/total_timesteps", self.steps)
        record("time/time_elapsed", seconds)

    def _warm_up_statistics(self) -> None:
        """Drive with the untrained policy to initialise the normalisation statistics."""
        model, env = self._sb3.model, self._sb3.env
        observations: Any = env.reset()
        for _ in range(WARM_UP_TICKS):
            actions, _ = model.predict(observations)
            observations, _, _, _ = env.step(actions)


class RunnerHealth:
    """Reports runners that fail, die or are replaced, and ends a run in which none collects rollouts any more."""

    def __init__(self, runners: int, on_problem: Callable[[str], None]) -> None:
        self._runners, self._on_problem = runners, on_problem
        self._failures: set[str] = set()
        """Failures of the previous iteration."""
        self._processes: dict[int, str] = {}
        """Process of each runner that has collected a rollout, by runner number."""
        self._idle_since: float | None = None
        """Time of the first iteration without a rollout, by time.monotonic."""

    def check(self, iteration: Iteration) -> None:
        """Report problems of an iteration; raise if no runner works at the start, or for too long later."""
        failures = {each.text for each in iteration.failures}
        if iteration.rollouts:
            self._idle_since = None
        else:
            self._check_idle(min(failures, default=ALL_LOST))
        for text in sorted(failures - self._failures):
            self._on_problem(f"a runner failed and tries again: {text}")
        self._failures = failures
        if iteration.lost:
            self._on_problem(f"{iteration.lost} of {self._runners} runners died and will be replaced")
        if replaced := self._count_replaced(iteration):
            self._on_problem(f"{replaced} of {self._runners} runners had died and {_were(replaced)} replaced")

    def _check_idle(self, reason: str) -> None:
        if not self._processes:
            raise RacerError(f"no runner can drive: {reason}")
        now = time.monotonic()
        self._idle_since = self._idle_since or now
        if now - self._idle_since > IDLE_TIMEOUT:
            raise LearnerError(f"no runner can drive any more, the policy was saved: {reason}")

    def _count_replaced(self, iteration: Iteration) -> int:
        """Count the runners whose process has changed: Ray replaces them silently."""
        processes = {each.runner: each.process for each in iteration.rollouts}
        replaced = sum(self._processes.get(runner, process) != process for runner, process in processes.items())
        self._processes.update(processes)
        return replaced


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
