"""Interface between a training run and the engine that improves its policy.

A `Run` owns the folder, the run log, checkpoints, evaluations and control. A `Learner` owns the policy, its
normalisation, the optimiser and the cars. The learner calls a `Callback` while it learns; it knows nothing else of the
run. There are three such engines: PPO in numpy and numba (`native.learner.NativeLearner`), stable-baselines3
(`sb3.SB3Learner`) and Ray (`ray.learner.RayLearner`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from racer_env.engine import Config, Simulation, Track
from racer_env.errors import RacerError
from racer_viewer.training.config import RunConfig
from racer_viewer.training.metrics import DrivingStats, MetricsLogger
from racer_viewer.training.policy_log import PolicyLayout
from racer_viewer.training.run_folder import Checkpoint
from racer_viewer.training.run_log import RunLog


class LearnerError(RacerError):
    """Failure of a learner whose policy is still good; the run saves that policy before it ends."""


@dataclass(frozen=True, eq=False)
class PolicyWeights:
    """Weights that are needed to drive, and the normalisation of observations.

    The arrays may share memory with the learner, which overwrites them in its next update.
    """

    tensors: Mapping[str, NDArray[Any]]
    obs_mean: NDArray[Any]
    obs_var: NDArray[Any]


class Callback:
    """Base class of objects that follow a learner.

    learner: set before the first call. group: all callbacks of the run, to report notes and problems to; set likewise.
    """

    learner: Learner
    group: CallbackList

    def on_training_start(self) -> None:
        """Called once, after the first reset of all cars."""

    def on_rollout_start(self) -> None:
        """Called before a rollout, with the policy that collects it."""

    def on_step(self, stats: DrivingStats) -> bool:
        """Called after one or more ticks of all cars; return False to stop learning."""
        return True

    def on_rollout_end(self) -> None:
        """Called after a rollout."""

    def on_training_end(self) -> None:
        """Called once, after the last update, unless learning failed."""

    def on_circuit_change(self, number: int, track: Track) -> None:
        """Called after a circuit of the run was exchanged. number: its index in `learner.config.circuits`."""

    def on_note(self, text: str) -> None:
        """Called when something happened that the user should know; empty after an evaluation without a new best."""

    def on_problem(self, text: str) -> None:
        """Called when something went wrong and the run continues."""


class CallbackList(Callback):
    """Calls several callbacks in order."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self._callbacks = tuple(callbacks)

    def attach(self, learner: Learner) -> None:
        """Set the learner and the group of all callbacks."""
        for each in (self, *self._callbacks):
            each.learner, each.group = learner, self

    def on_training_start(self) -> None:
        for each in self._callbacks:
            each.on_training_start()

    def on_rollout_start(self) -> None:
        for each in self._callbacks:
            each.on_rollout_start()

    def on_step(self, stats: DrivingStats) -> bool:
        """Call all of them, even after one has asked to stop."""
        go_on = True
        for each in self._callbacks:
            go_on = each.on_step(stats) and go_on
        return go_on

    def on_rollout_end(self) -> None:
        for each in self._callbacks:
            each.on_rollout_end()

    def on_training_end(self) -> None:
        for each in self._callbacks:
            each.on_training_end()

    def on_circuit_change(self, number: int, track: Track) -> None:
        for each in self._callbacks:
            each.on_circuit_change(number, track)

    def on_note(self, text: str) -> None:
        for each in self._callbacks:
            each.on_note(text)

    def on_problem(self, text: str) -> None:
        for each in self._callbacks:
            each.on_problem(text)


class Learner(ABC):
    """Engine that trains a policy. It is created untrained; `close` releases its cars and processes.

    config: settings of the run; only its rewards and circuits change while the learner learns.
    ticks_per_second: speed that a callback keeps by waiting; a learner that drives many ticks between two calls of
        `on_step` drives fewer if it is low.
    watched: whether a window shows the run. It needs a core, which a learner with several threads leaves to it.
    """

    config: RunConfig
    ticks_per_second: float = math.inf
    watched: bool = False

    @property
    @abstractmethod
    def steps(self) -> int:
        """Total environment steps so far, summed over cars."""

    @property
    @abstractmethod
    def updates(self) -> int:
        """Number of policy updates since the learner was created."""

    @property
    @abstractmethod
    def simulation(self) -> Simulation | None:
        """Simulation of the cars; None if they are in other processes."""

    @property
    @abstractmethod
    def logger(self) -> MetricsLogger:
        """Collector of metrics, written after every rollout; available while `learn` runs."""

    @abstractmethod
    def load(self, checkpoint: Checkpoint) -> None:
        """Restore weights, optimiser, statistics and step counter; raise ResumeError if they do not fit the config."""

    @abstractmethod
    def load_weights(self, model: str) -> None:
        """Start with the weights and statistics of a model, given by path or by the name of a bundled model."""

    @abstractmethod
    def learn(self, folder: Path, log: RunLog, callback: Callback) -> None:
        """Learn until `config.timesteps`, or until the callback asks to stop.

        folder: receives files of metrics. log: receives the metrics of every update.
        """

    @abstractmethod
    def policy_layout(self) -> PolicyLayout:
        """Return the layout of the policy in a run's policy log."""

    @abstractmethod
    def policy_weights(self) -> PolicyWeights:
        """Return the weights of the current policy."""

    @abstractmethod
    def save(self, path: Path) -> Path:
        """Write the model to a zip file that stable-baselines3 loads, and its statistics beside it; return `path`."""

    @abstractmethod
    def close(self) -> None:
        """Release everything; the learner cannot be used afterwards."""

    def set_rewards(self, rewards: Config) -> None:
        """Pay other rewards from the next tick on."""
        if self.simulation is None:
            raise RacerError("rewards cannot be changed while the cars are on a bridge or on Ray")
        self.simulation.configure(rewards)
        self.config = replace(self.config, rewards=rewards)

    def set_circuit(self, before: str, name: str, track: Track) -> None:
        """Let the cars of a circuit start their next episodes on another one.

        before, name: names of both in `config.tracks`.
        """
        if self.simulation is None:
            raise RacerError("the circuit cannot be changed while the cars are on a bridge or on Ray")
        for number, each in enumerate(self.config.tracks):
            if each == before:
                self.simulation.exchange_track(number, track)
        tracks = tuple(name if each == before else each for each in self.config.tracks)
        self.config = replace(self.config, tracks=tracks)


LearnerFactory = Callable[[RunConfig], Learner]
