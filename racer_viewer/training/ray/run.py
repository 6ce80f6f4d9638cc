"""A run on Ray: its folder, story, checkpoints and evaluations are those of every run, only others do the work.

A model of stable-baselines3 stands in this process. It learns nothing itself: what Ray has learned is put into it after
every update, so that all that looks after a run finds it there, and it is what is saved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from ray.rllib.algorithms.ppo import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize

from racer_env.bridge.interface import COMPONENT_KEYS
from racer_env.errors import RacerError
from racer_viewer.training.config import RunConfig
from racer_viewer.training.learner import Falling, Model
from racer_viewer.training.live.policies import PolicyKeeper, driving_tensors
from racer_viewer.training.metrics import EPISODES, REMEMBERED_EPISODES
from racer_viewer.training.overseer import Overseer, Report
from racer_viewer.training.ray.algorithm import algorithm_of
from racer_viewer.training.ray.learner import Plan
from racer_viewer.training.ray.machines import ray_running
from racer_viewer.training.ray.report import Report as RunnerReport
from racer_viewer.training.ray.settings import Spread
from racer_viewer.training.run import Run
from racer_viewer.training.saved import Checkpoint

PRIMING_TICKS = 200
"""Of a new run's policy, before it learns: nothing is known yet to normalise with."""
REPORT_SECONDS = 30.0
"""That runners have to tell what happened."""
FIGURES = {
    "policy_loss": "train/policy_gradient_loss",
    "vf_loss": "train/value_loss",
    "entropy": "train/entropy_loss",
    "mean_kl_loss": "train/approx_kl",
    "vf_explained_var": "train/explained_variance",
    "total_loss": "train/loss",
}
"""From RLlib's names to those that charts know."""


class RayRun(Run):
    """One run on Ray; see `Run`."""

    def __init__(
        self,
        config: RunConfig,
        runs: Path,
        checkpoint: Checkpoint | None = None,
        bridge_url: str | None = None,
        spread: Spread | None = None,
    ) -> None:
        self.spread = spread or Spread()
        self._bridges = bridge_url
        super().__init__(self.spread.of_all(config), runs, checkpoint, bridge_url and bridge_url.split(",")[0])
        self._returns = deque[float](maxlen=REMEMBERED_EPISODES)
        self._lengths = deque[int](maxlen=REMEMBERED_EPISODES)
        self.on_iteration: Callable[[PPO], None] = lambda algorithm: None
        """Called after every one, for those who measure or disturb."""

    @property
    def on_bridge(self) -> bool:
        """Its cars are in other processes always."""
        return True

    def change_weights(self, weights: Mapping[str, float], steps: int) -> None:
        raise RacerError("the rewards of a run on Ray cannot be changed while it learns")

    def _run_model(
        self,
        model: Model,
        env: VecNormalize,
        report: Report,
        companions: Sequence[BaseCallback],
        keeper: PolicyKeeper,
    ) -> None:
        done = model.num_timesteps
        model.set_logger(self._logger(model, f"_{done}" if done else ""))
        with ExitStack() as open_things:
            open_things.callback(model.logger.close)
            open_things.enter_context(ray_running(self.spread.address, self.spread.runners))
            algorithm = open_things.enter_context(algorithm_of(self.config, self.spread, self._bridges))
            if not done and not self.config.begin_from:
                _prime(model, env)
            self._hand_over(algorithm, model, env)
            self._watch = Overseer(self, model, env, report)
            callbacks = CallbackList([*companions, self._watch])
            callbacks.init_callback(model)
            callbacks.on_training_start({}, {})
            self._iterate(algorithm, model, env, callbacks, keeper)
            callbacks.on_training_end()

    def _iterate(
        self, algorithm: PPO, model: Model, env: VecNormalize, callbacks: CallbackList, keeper: PolicyKeeper
    ) -> None:
        while model.num_timesteps < self.config.timesteps and not self._stopped:
            keeper.offer(lambda: _record(keeper, model, env), model.num_timesteps)
            result = algorithm.train()
            reports = algorithm.env_runner_group.foreach_env_runner(
                "take_report", local_env_runner=False, timeout_seconds=REPORT_SECONDS
            )
            model.num_timesteps += _steps_of(result)
            self._take_over(algorithm, model)
            self._take_reports(reports, model, env)
            self._note_figures(result, reports, model)
            self._prepare(algorithm, model, env)
            self.on_iteration(algorithm)
            callbacks.on_rollout_end()
            callbacks.on_step()
            model.logger.dump(model.num_timesteps)
        keeper.keep(_record(keeper, model, env), model.num_timesteps)

    def _hand_over(self, algorithm: PPO, model: Model, env: VecNormalize) -> None:
        """What the model knows, to the learner and from there to all runners."""
        policy, optimiser = model.policy.state_dict(), model.policy.optimizer.state_dict()
        plan = self._plan(model, env)
        algorithm.learner_group.foreach_learner(lambda learner: learner.begin_with(policy, optimiser, plan))
        algorithm.env_runner_group.sync_weights(
            from_worker_or_learner_group=algorithm.learner_group, timeout_seconds=REPORT_SECONDS, inference_only=True
        )

    def _prepare(self, algorithm: PPO, model: Model, env: VecNormalize) -> None:
        plan = self._plan(model, env)
        algorithm.learner_group.foreach_learner(lambda learner: learner.prepare(plan))

    def _take_over(self, algorithm: PPO, model: Model) -> None:
        """What the learner knows now, into the model."""
        (answer,) = algorithm.learner_group.foreach_learner(lambda learner: learner.state_of_policy())
        policy, optimiser = answer.get() if hasattr(answer, "get") else answer
        model.policy.load_state_dict(policy)
        model.policy.optimizer.load_state_dict(optimiser)

    def _plan(self, model: Model, env: VecNormalize) -> Plan:
        config, running = self.config, _observed(env)
        remaining = max(0.0, 1.0 - model.num_timesteps / config.timesteps)
        return Plan(
            learning_rate=Falling(config.learning_rate, config.final_learning_rate)(remaining),
            log_std_limit=Falling(config.log_std, config.final_log_std)(remaining),
            obs_mean=running.mean.copy(),
            obs_var=running.var.copy(),
            returns_var=float(env.ret_rms.var) if config.norm_reward else None,
            clip_obs=config.clip_obs,
        )

    def _take_reports(self, reports: Sequence[RunnerReport], model: Model, env: VecNormalize) -> None:
        steps, story, metrics = model.num_timesteps, self.story, self.metrics
        for each in reports:
            if each.observations is not None and each.returns is not None:
                for running, seen in ((_observed(env), each.observations), (env.ret_rms, each.returns)):
                    running.update_from_moments(seen.mean, seen.var, seen.count)
            story.laps(each.laps, steps, each.lap_circuits or None)
            story.sectors(each.sectors, steps, each.sector_circuits or None)
            metrics.laps += len(each.laps)
            metrics.best_lap = min([*each.laps, *([metrics.best_lap] if metrics.best_lap else [])], default=None)
            metrics.episodes += len(each.episode_returns)
            self._returns.extend(each.episode_returns)
            self._lengths.extend(each.episode_lengths)
        if "first gate" not in story.known and any(each.passed_a_gate for each in reports):
            story.event("first gate", "First gate", steps)
        if "first lap" not in story.known and (laps := [(each, lap) for each in reports for lap in each.laps[:1]]):
            self._tell_first_lap(*laps[0], steps)
        story.tick()

    def _tell_first_lap(self, report: RunnerReport, lap: float, steps: int) -> None:
        names = self.config.circuits
        where = f" on {names[report.lap_circuits[0]]}" if report.lap_circuits and len(names) > 1 else ""
        self.story.event("first lap", f"First lap: {lap:.2f} s{where}", steps)

    def _note_figures(self, result: Mapping[str, Any], reports: Sequence[RunnerReport], model: Model) -> None:
        """By the names that the other engine has for them, so that all charts know them."""
        record = model.logger.record
        steps = max(1, sum(each.steps for each in reports))
        means = np.sum([each.components for each in reports] or [np.zeros(len(COMPONENT_KEYS))], axis=0) / steps
        for key, value in zip(COMPONENT_KEYS, means.tolist(), strict=True):
            record(f"reward/{key}", value)
        laps = [lap for each in reports for lap in each.laps]
        if laps:
            record("racer/mean_lap_time_sec", float(np.mean(laps)))
            record("racer/best_lap_time_sec", min(laps))
        ended = sum(len(each.episode_returns) for each in reports)
        record(EPISODES, ended)
        if ended:
            record("racer/completion_rate", sum(each.completed for each in reports) / ended)
            record("rollout/ep_rew_mean", float(np.mean(self._returns)))
            record("rollout/ep_len_mean", float(np.mean(self._lengths)))
        learned = result.get("learners", {}).get("default_policy", {})
        for name, known in FIGURES.items():
            if name in learned:
                record(known, float(learned[name]) * (-1.0 if name == "entropy" else 1.0))
        record("train/learning_rate", float(model.policy.optimizer.param_groups[0]["lr"]))
        record("train/std", float(model.policy.log_std.detach().exp().mean()))  # type: ignore[operator]
        record("ray/runners", len(reports))
        for name, seconds in result.get("timers", {}).items():
            if isinstance(seconds, float | int):
                record(f"ray/{name}_sec", float(seconds))
        record("ray/gathering_sec", max((each.seconds for each in reports), default=0.0))
        record("time/total_timesteps", model.num_timesteps)
        record("time/time_elapsed", self.story.seconds)


def _steps_of(result: Mapping[str, Any]) -> int:
    """That were gathered and learned from in an iteration; 0 if all runners failed."""
    return int(result.get("env_runners", {}).get("num_env_steps_sampled", 0))


def _prime(model: Model, env: VecNormalize) -> None:
    """Drive for a while, for statistics to begin with."""
    observations: Any = env.reset()
    for _ in range(PRIMING_TICKS):
        actions, _ = model.predict(observations)
        observations, _, _, _ = env.step(actions)


def _observed(env: VecNormalize) -> RunningMeanStd:
    assert isinstance(env.obs_rms, RunningMeanStd)
    return env.obs_rms


def _record(keeper: PolicyKeeper, model: Model, env: VecNormalize) -> bytes:
    running = _observed(env)
    return keeper.layout.encode(driving_tensors(model.policy.state_dict()), running.mean, running.var)
