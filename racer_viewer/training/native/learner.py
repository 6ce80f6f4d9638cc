"""Native learner: PPO on cars of this process, with numpy and numba alone.

It does the same as the learner on stable-baselines3, in the same order, and its models are the same files: either
learner resumes the runs of the other.
"""

from __future__ import annotations

import math
import os
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from racer_env.engine import Simulation, load_circuit
from racer_env.errors import RacerError, os_reason
from racer_viewer.agents import AgentError, load_agent, load_stats
from racer_viewer.training.config import STARTS, RunConfig
from racer_viewer.training.learner import Callback, Learner, LearnerError, PolicyWeights
from racer_viewer.training.metric_files import MetricsCollector, MetricsFiles
from racer_viewer.training.native.blas import use_one_blas_thread
from racer_viewer.training.native.model_files import load_native_model, save_native_model
from racer_viewer.training.native.network import Floats, initial_parameters
from racer_viewer.training.native.rollout import Normalisation, RolloutCollector
from racer_viewer.training.native.teacher import Teacher
from racer_viewer.training.native.update import AdamState, DivergedError, Updater
from racer_viewer.training.policy_log import PolicyLayout
from racer_viewer.training.run_folder import CONFIG_FILE, Checkpoint, ResumeError
from racer_viewer.training.run_log import RunLog

MAX_THREADS = 4
"""Maximum number of threads if the config does not set one; more bring little with small networks."""
VALUE_METRICS = ("train/value_loss", "train/explained_variance", "train/std")
"""Metrics of an update in which only the value function learned."""
CALL_INTERVAL = 1.0 / 90.0
"""Time [s] between two calls of `on_step`: that of the car feed, so that viewers see smooth movement."""


class NativeLearner(Learner):
    """PPO in numpy and numba. It needs neither torch nor stable-baselines3.

    threads: number of threads that share an update. One less of them learns while a window shows the run, unless the
        config sets their number.
    """

    def __init__(self, config: RunConfig) -> None:
        use_one_blas_thread()
        self.config, self.threads = config, config.threads or free_threads()
        tracks = [load_circuit(name) for name in config.tracks]
        self._simulation = Simulation(
            tracks, config.num_cars, config.rewards, auto_reset=True, redraw=len(tracks) > 1,
            start=STARTS[config.starts], seed=config.seed,
        )  # fmt: skip
        self._rng = np.random.default_rng(config.seed)
        self._parameters = initial_parameters(config.net, config.first_action, config.log_std, self._rng)
        self._norm = Normalisation.create(config)
        self._teacher = Teacher(config, self._parameters) if config.teach else None
        self._metrics = MetricsCollector()
        self._steps = self._updates = 0
        self._tick_seconds = CALL_INTERVAL
        """Duration of a tick of all cars in the latest call [s]."""
        with ExitStack() as resources:
            resources.callback(self._simulation.close)
            self._updater = Updater(config, self._parameters, self.threads)
            resources.callback(self._updater.close)
            self._resources = resources.pop_all()

    @property
    def steps(self) -> int:
        return self._steps

    @property
    def updates(self) -> int:
        return self._updates

    @property
    def simulation(self) -> Simulation:
        return self._simulation

    @property
    def logger(self) -> MetricsCollector:
        return self._metrics

    def load(self, checkpoint: Checkpoint) -> None:
        try:
            load_native_model(checkpoint.model, self._parameters, self._updater.adam)
        except (AgentError, ValueError) as error:
            raise ResumeError(f"{checkpoint.model} does not fit its {CONFIG_FILE}: {error}") from None
        self._norm = self._norm.restored(load_stats(checkpoint.stats))
        self._steps = checkpoint.steps
        self._rng = np.random.default_rng((self.config.seed, self._steps))  # other noise than before

    def load_weights(self, model: str) -> None:
        source, log_std = load_agent(model).info, self._parameters.log_std.copy()
        if source.stats_path is None:
            raise RacerError(f"{source.path} has no statistics beside it, without which its weights cannot be used")
        try:
            load_native_model(source.path, self._parameters, self._updater.adam)
        except (AgentError, ValueError) as error:
            layers = ",".join(map(str, source.policy_layers or ()))
            raise RacerError(
                f"{source.path} does not fit: it is {source.algorithm} with hidden layers {layers} "
                f"({source.activation}); set --algo, net and activation to match ({error})"
            ) from None
        self._parameters.log_std[...] = log_std
        self._norm = self._norm.restored(load_stats(source.stats_path))

    def learn(self, folder: Path, log: RunLog, callback: Callback) -> None:
        with closing(MetricsFiles(folder, self._steps, log, callback.on_problem)) as files:
            rollout = RolloutCollector(self.config, self._simulation, self._parameters, self._norm)
            good = self._snapshot()
            callback.on_training_start()
            clock = _Clock(self._steps)
            while self._steps < self.config.timesteps:
                try:
                    cloning = self._clone()
                    if not self._collect(rollout, callback):
                        break
                    good = self._snapshot()
                    callback.on_rollout_end()
                    self._update(rollout, clock, cloning)
                    if cloning:
                        self._end_cloning(folder, log, callback)
                except DivergedError as error:
                    self._restore(good)
                    raise LearnerError(self._advice(error)) from None
                files.write(self._metrics.take(), self._steps)
            callback.on_training_end()
            if rest := self._metrics.take():
                files.write(rest, self._steps)

    def policy_layout(self) -> PolicyLayout:
        config, norm = self.config, self._norm
        shapes = {name: tensor.shape for name, tensor in self._parameters.tensors().items()}
        return PolicyLayout(config.algo, config.activation, norm.clip_obs, norm.epsilon, shapes)

    def policy_weights(self) -> PolicyWeights:
        return PolicyWeights(self._parameters.tensors(), self._norm.mean, self._norm.var)

    def save(self, path: Path) -> Path:
        return save_native_model(
            path, self.config, self._parameters, self._updater.adam, self._norm.statistics(), self._steps, self._updates
        )

    def close(self) -> None:
        self._resources.close()

    def warm_up(self) -> None:
        """Collect a rollout and learn from it, without a callback."""
        rollout = RolloutCollector(self.config, self._simulation, self._parameters, self._norm)
        rollout.begin(self._rng)
        rollout.run(0, self.config.n_steps)
        self._updater.update(rollout.tables, self.config.learning_rate, self._rng)

    def _collect(self, rollout: RolloutCollector, callback: Callback) -> bool:
        """Collect a rollout; return False if the callback asks to stop."""
        config, tick = self.config, 0
        limit = config.log_std_limits(1.0 - self._steps / config.timesteps)
        np.minimum(self._parameters.log_std, np.float32(limit), out=self._parameters.log_std)
        callback.on_rollout_start()
        rollout.begin(self._rng)
        while tick < config.n_steps:
            ticks, start = min(self._ticks_per_call(), config.n_steps - tick), time.perf_counter()
            if not rollout.run(tick, tick + ticks):
                raise DivergedError("an action is not finite")
            self._tick_seconds = (time.perf_counter() - start) / ticks
            tick += ticks
            self._steps += ticks * config.num_cars
            if not callback.on_step(rollout.driving.take()):
                return False
        return True

    def _clone(self) -> bool:
        """Learn from laps before a rollout, while the policy is cloned; return False afterwards."""
        if self._teacher is None or not self._teacher.is_cloning(self._steps):
            return False
        self._teacher.clone(self._steps, self._steps + self.config.n_steps * self.config.num_cars)
        self._teacher.set_statistics(self._norm)
        return True

    def _end_cloning(self, folder: Path, log: RunLog, callback: Callback) -> None:
        """Save the clone if it is finished."""
        assert self._teacher is not None
        self._teacher.set_statistics(self._norm)
        if self._teacher.is_cloning(self._steps):
            return
        self._updater.adam.reset()
        path = folder / f"{self.config.name}_clone.zip"
        try:
            self.save(path)
        except OSError as error:
            callback.on_problem(f"could not save {path.stem}: {os_reason(error)}; the run continues")
        log.event("clone", f"Cloned from {self._teacher.laps} laps", self._steps)

    def _ticks_per_call(self) -> int:
        """Return how many ticks to drive until callbacks are called again."""
        speed = min(self.ticks_per_second, 1.0 / max(self._tick_seconds, 1e-9))
        return max(1, int(CALL_INTERVAL * speed))

    def _update(self, rollout: RolloutCollector, clock: _Clock, cloning: bool) -> None:
        """Learn from a rollout, and record the metrics of the update. cloning: only the value function learns."""
        config, record = self.config, self._metrics.record
        learning_rate = config.learning_rates(1.0 - self._steps / config.timesteps)
        self._updater.use_threads(config.threads or self.threads - self.watched)
        if (teacher := self._teacher) is not None:
            self._updater.adjust = teacher.keep_value_only if cloning else teacher.term(self._norm, self._steps)
        with np.errstate(all="ignore"):
            metrics = self._updater.update(rollout.tables, learning_rate, self._rng)
        if not np.isfinite(self._parameters.flat).all():
            raise DivergedError("a weight is not finite")
        self._updates += 1
        if teacher is not None and cloning:
            metrics = {name: metrics[name] for name in VALUE_METRICS} | teacher.metrics
        metrics |= {"train/n_updates": self._updates * config.n_epochs, **clock.metrics(self._steps, self._updates)}
        for name, value in metrics.items():
            if math.isfinite(value):
                record(name, value)

    def _snapshot(self) -> _Snapshot:
        """Return a copy of everything learned. Raises DivergedError if statistics are not finite."""
        norm = self._norm
        if not all(np.isfinite(each).all() for each in (norm.mean, norm.var, norm.return_mean, norm.return_var)):
            raise DivergedError("an observation or a reward is not finite")
        return _Snapshot(self._parameters.flat.copy(), self._updater.adam.copy(), _copied(norm), self._steps)

    def _restore(self, good: _Snapshot) -> None:
        self._parameters.flat[...] = good.parameters
        adam = self._updater.adam
        adam.first.flat[...], adam.second.flat[...] = good.adam.first.flat, good.adam.second.flat
        adam.steps, self._norm, self._steps = good.adam.steps, good.norm, good.steps

    def _advice(self, error: DivergedError) -> str:
        config = self.config
        return (
            f"learning diverged after {self._steps:,} steps: {error}. The last good policy was saved; lower "
            f"learning_rate ({config.learning_rate:g}), max_grad_norm ({config.max_grad_norm:g}) or the reward weights"
        )


@dataclass(frozen=True, eq=False)
class _Snapshot:
    """Copy of everything learned after a number of steps."""

    parameters: Floats
    adam: AdamState
    norm: Normalisation
    steps: int


def _copied(norm: Normalisation) -> Normalisation:
    return norm.restored(norm.statistics())._replace(discounted=norm.discounted.copy())


class _Clock:
    """Measures the speed of a learner since its start."""

    def __init__(self, steps: int) -> None:
        self._first, self._start = steps, time.monotonic()

    def metrics(self, steps: int, updates: int) -> dict[str, Any]:
        seconds = max(time.monotonic() - self._start, 1e-6)
        return {
            "time/iterations": updates,
            "time/fps": int((steps - self._first) / seconds),
            "time/time_elapsed": seconds,
            "time/total_timesteps": steps,
        }


def preload() -> None:
    """Load all machine code of the native engine, so that a learner of this process starts without delay."""
    config = RunConfig(num_cars=2, n_steps=2, batch_size=4, threads=1)
    with closing(NativeLearner(config)) as learner:
        learner.warm_up()


def free_threads() -> int:
    """Return the number of cores that this process may use, at most `MAX_THREADS`."""
    affinity = getattr(os, "sched_getaffinity", None)  # macOS and Windows have none
    cores = os.cpu_count() or 1 if affinity is None else len(affinity(0))
    return min(cores, MAX_THREADS)
