"""A run on Ray: its folder, story, checkpoints and evaluations are those of every run, only others do the work.

A model of stable-baselines3 stands in this process. It learns nothing itself: what Ray has learned is put into it after
every update, so that all that looks after a run finds it there, and it is what is saved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize

from racer_env.errors import RacerError
from racer_viewer.training.config import RunConfig
from racer_viewer.training.lap_tracker import tell
from racer_viewer.training.overseer import Overseer, Report
from racer_viewer.training.policy_log import PolicyLog, driving_tensors
from racer_viewer.training.ray.algorithm import Iteration, RacerPPO, algorithm_of
from racer_viewer.training.ray.cluster import ray_running
from racer_viewer.training.ray.learner import Plan
from racer_viewer.training.ray.runner import Gathered
from racer_viewer.training.ray.settings import RunnerSettings, Spread
from racer_viewer.training.run import Outcome, Run
from racer_viewer.training.run_folder import Checkpoint
from racer_viewer.training.sb3 import Falling, Model

PRIMING_TICKS = 200
"""Of a new run's policy, before it learns: nothing is known yet to normalise with."""
PATIENCE_SECONDS = 60.0
"""For runners of which none can gather anything any more, in a run where some could before."""
RETRY_SECONDS = 1.0
ALL_LOST = "all of them died"
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
    """One run on Ray; see `Run`.

    bridges: addresses of servers whose cars runners drive instead of their own, with commas between them.
    """

    def __init__(
        self,
        config: RunConfig,
        runs: Path,
        checkpoint: Checkpoint | None = None,
        bridges: str | None = None,
        spread: Spread | None = None,
    ) -> None:
        self.spread = spread or Spread()
        super().__init__(self.spread.of_all(config), runs, checkpoint)
        self._settings = RunnerSettings.of(self.spread.of_one(self.config), bridges)
        self._troubles: set[str] = set()
        """What some runners could not gather for, lately."""
        self._processes: dict[int, str] = {}
        """Of runners that gathered, by their numbers."""
        self._idle_since: float | None = None
        """Since when none does any more, by time.monotonic."""
        self.on_iteration: Callable[[RacerPPO], None] = lambda algorithm: None
        """Called after every one, for those who measure or disturb."""

    @property
    def on_bridge(self) -> bool:
        """Its cars are in other processes always."""
        return True

    def learn(
        self,
        report: Report = lambda progress: None,
        companions: Sequence[BaseCallback] = (),
        on_problem: Callable[[str], None] = lambda text: None,
    ) -> Outcome:
        with ray_running(self.spread.address, self.spread.runners):
            return super().learn(report, companions, on_problem)

    def change_weights(self, weights: Mapping[str, float], steps: int) -> None:
        raise RacerError("the rewards of a run on Ray cannot be changed while it learns")

    def _run_model(
        self,
        model: Model,
        env: VecNormalize,
        report: Report,
        companions: Sequence[BaseCallback],
        keeper: PolicyLog,
    ) -> None:
        done = model.num_timesteps
        model.set_logger(self._logger(model, f"_{done}" if done else ""))
        with ExitStack() as open_things:
            open_things.callback(model.logger.close)
            algorithm = open_things.enter_context(algorithm_of(self.config, self.spread, self._settings))
            if not done and not self.config.begin_from:
                _prime(model, env)
            self._hand_over(algorithm, model, env)
            self._steps_before, self._seconds_before = done, self.story.seconds
            self._watch = Overseer(self, model, env, report)
            callbacks = CallbackList([*companions, self._watch])
            for each in (self.metrics, callbacks):
                each.init_callback(model)
            callbacks.on_training_start({}, {})
            self._iterate(algorithm, model, env, callbacks, keeper)
            callbacks.on_training_end()  # which may add some figures
            if model.logger.name_to_value:
                model.logger.dump(model.num_timesteps)

    def _is_over(self, model: Model) -> bool:
        return self._stopped or model.num_timesteps >= self.config.timesteps

    def _iterate(
        self, algorithm: RacerPPO, model: Model, env: VecNormalize, callbacks: CallbackList, keeper: PolicyLog
    ) -> None:
        """The figures of the last iteration are not written down yet."""
        while not self._is_over(model):
            keeper.offer(lambda: _record(keeper, model, env), model.num_timesteps)
            algorithm.train()
            self.on_iteration(algorithm)
            iteration = algorithm.last
            self._note_troubles(iteration)
            if not iteration.gathered:
                continue
            model.num_timesteps += iteration.steps
            self._take_over(algorithm, model)
            for each in iteration.gathered:
                self._take(each, model.num_timesteps, env)
            self._note_figures(iteration, model)
            self._prepare(algorithm, model, env)
            self.story.tick()
            callbacks.on_step()  # which tells them how many steps there are now
            callbacks.on_rollout_end()
            if not self._is_over(model):
                model.logger.dump(model.num_timesteps)
        keeper.keep(_record(keeper, model, env), model.num_timesteps)

    def _note_troubles(self, iteration: Iteration) -> None:
        """Where nobody gathers, wait for a while; not at the beginning, when it never went well yet."""
        assert self._watch is not None
        texts, now = {each.text for each in iteration.troubles}, time.monotonic()
        if iteration.gathered:
            self._idle_since = None
        elif not self._processes:
            raise RacerError(f"no runner drives: {min(texts, default=ALL_LOST)}")
        else:
            self._idle_since = self._idle_since or now
            if now - self._idle_since > PATIENCE_SECONDS:
                self.save_now()
                why = min(texts, default=ALL_LOST)
                raise RacerError(f"no runner drives any more, what was learned is saved: {why}")
        for text in sorted(texts - self._troubles):
            self._watch.tell_problem(f"a runner cannot go on, and tries again: {text}")
        self._troubles = texts
        if iteration.lost:
            self._watch.tell_problem(f"{iteration.lost} of {self.spread.runners} runners died, and will be replaced")
        anew = self._note_processes(iteration)
        if anew:
            word = "was" if anew == 1 else "were"
            self._watch.tell_problem(f"{anew} of {self.spread.runners} runners had died, and {word} started anew")
        if not iteration.gathered:
            time.sleep(RETRY_SECONDS)

    def _note_processes(self, iteration: Iteration) -> int:
        """How many runners have another one than before: Ray may replace them without a word."""
        there = {each.runner: each.process for each in iteration.gathered}
        anew = sum(self._processes.get(runner, process) != process for runner, process in there.items())
        self._processes.update(there)
        return anew

    def _hand_over(self, algorithm: RacerPPO, model: Model, env: VecNormalize) -> None:
        """What the model knows, to the learner."""
        policy, optimiser = model.policy.state_dict(), model.policy.optimizer.state_dict()
        plan = self._plan(model, env)
        algorithm.learner_group.foreach_learner(lambda learner: learner.begin_with(policy, optimiser, plan))

    def _prepare(self, algorithm: RacerPPO, model: Model, env: VecNormalize) -> None:
        plan = self._plan(model, env)
        algorithm.learner_group.foreach_learner(lambda learner: learner.follow(plan))

    def _take_over(self, algorithm: RacerPPO, model: Model) -> None:
        """What the learner knows now, into the model."""
        (answer,) = algorithm.learner_group.foreach_learner(lambda learner: learner.state_of_policy())
        policy, optimiser = answer.get()
        model.policy.load_state_dict(policy)
        model.policy.optimizer.load_state_dict(optimiser)

    def _plan(self, model: Model, env: VecNormalize) -> Plan:
        """By the progress that stable-baselines3 goes by: noise of before the rollout, learning of after it."""
        config, running = self.config, _observed(env)
        now, then = model.num_timesteps, model.num_timesteps + config.num_cars * config.n_steps
        return Plan(
            learning_rate=Falling(config.learning_rate, config.final_learning_rate)(1.0 - then / config.timesteps),
            log_std_limit=Falling(config.log_std, config.final_log_std)(1.0 - now / config.timesteps),
            obs_mean=running.mean.copy(),
            obs_var=running.var.copy(),
            returns_var=float(env.ret_rms.var) if config.norm_reward else None,
            clip_obs=config.clip_obs,
        )

    def _take(self, gathered: Gathered, steps: int, env: VecNormalize) -> None:
        """What one runner tells of its driving."""
        for running, seen in ((_observed(env), gathered.observations), (env.ret_rms, gathered.returns)):
            running.update_from_moments(seen.mean, seen.var, seen.count)
        report = gathered.report
        self.metrics.add(report.driven, report.components / report.steps)
        tell(report.sights, self.story, self.config.circuits, steps)

    def _note_figures(self, iteration: Iteration, model: Model) -> None:
        """By the names that the other engine has for them, so that all charts know them."""
        self.metrics.on_rollout_end()
        record = model.logger.record
        for name, known in FIGURES.items():
            if name in iteration.figures:
                record(known, iteration.figures[name] * (-1.0 if name == "entropy" else 1.0))
        record("train/learning_rate", float(model.policy.optimizer.param_groups[0]["lr"]))
        record("train/std", float(model.policy.log_std.detach().exp().mean()))  # type: ignore[operator]
        record("ray/runners", len(iteration.gathered))
        record("ray/driving_sec", max(each.seconds for each in iteration.gathered))
        record("ray/gathering_sec", iteration.gathering)
        record("ray/learning_sec", iteration.learning)
        seconds = self.story.seconds - self._seconds_before
        record("time/fps", round((model.num_timesteps - self._steps_before) / seconds))
        record("time/total_timesteps", model.num_timesteps)
        record("time/time_elapsed", self.story.seconds)


def _prime(model: Model, env: VecNormalize) -> None:
    """Drive for a while, for statistics to begin with."""
    observations: Any = env.reset()
    for _ in range(PRIMING_TICKS):
        actions, _ = model.predict(observations)
        observations, _, _, _ = env.step(actions)


def _observed(env: VecNormalize) -> RunningMeanStd:
    assert isinstance(env.obs_rms, RunningMeanStd)
    return env.obs_rms


def _record(keeper: PolicyLog, model: Model, env: VecNormalize) -> bytes:
    running = _observed(env)
    return keeper.layout.encode(driving_tensors(model.policy.state_dict()), running.mean, running.var)
