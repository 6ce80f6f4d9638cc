"""Teacher of a run: clones a driver from laps at its start, then holds PPO near the driver for a while.

While the policy is cloned, the cars drive with it as in any rollout. So one sees what it has learned so far, and the
value function learns what its driving earns, from which PPO can go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from racer_viewer.replays import load_lessons
from racer_viewer.training.config import RunConfig
from racer_viewer.training.native.cloning import (
    CloningEpoch,
    CloningLoss,
    CloningSettings,
    DemonstrationSet,
    clone,
    normalised,
)
from racer_viewer.training.native.network import VALUE, Parameters
from racer_viewer.training.native.rollout import Normalisation

EPOCHS = 60
"""Passes over the laps while the policy is cloned."""
TERM_ROWS = 512
"""Steps of the laps in the cloning loss beside PPO's, drawn anew for every minibatch."""


class Teacher:
    """Teacher of a run, with the laps of its config.

    laps: number of the laps. metrics: losses of the latest epoch of cloning, by their names in the run log.
    """

    def __init__(self, config: RunConfig, parameters: Parameters) -> None:
        self._config, self._parameters = config, parameters
        self._data = DemonstrationSet.of_traces(load_lessons(config.teach), config.seed)
        self._stats = self._data.statistics()
        self._value_only = parameters.part(VALUE)
        self._epochs: Iterator[CloningEpoch] | None = None
        self._first, self._due, self._done = 0, 0, 0
        self.laps = len(self._data.sources)
        self.metrics: dict[str, float] = {}

    def is_cloning(self, steps: int) -> bool:
        """Return whether the policy is still cloned after so many steps of the run."""
        return steps < self._config.clone_steps

    def clone(self, first: int, last: int) -> None:
        """Learn from the laps what falls to the steps from `first` to `last`; the last time, keep the best policy."""
        config = self._config
        if self._epochs is None:
            share = 1.0 - first / config.clone_steps
            self._first, self._due, self._done = first, max(1, math.ceil(EPOCHS * share)), 0
            settings = CloningSettings(epochs=self._due, patience=self._due)
            self._epochs = clone(
                self._parameters, config.activation, self._data, self._stats, settings, config.seed, config.clip_obs
            )
        share = min(1.0, (last - self._first) / (config.clone_steps - self._first))
        while self._done < math.ceil(self._due * share) and (epoch := next(self._epochs, None)) is not None:
            self._done += 1
            self.metrics = {"clone/loss": epoch.loss, "clone/held_out_loss": epoch.held_out}
        if not self.is_cloning(last):
            next(self._epochs, None)  # it ends, and keeps the best policy
            self._epochs = None

    def set_statistics(self, norm: Normalisation) -> None:
        """Normalise observations as the cloned policy expects it."""
        norm.mean[...], norm.var[...], norm.number[0] = self._stats.mean, self._stats.var, self._stats.count

    def keep_value_only(self, gradient: Parameters) -> None:
        """Let a gradient of PPO change the value function alone."""
        gradient.flat *= self._value_only

    def term(self, norm: Normalisation, steps: int) -> Callable[[Parameters], None] | None:
        """Return what adds the gradient of the cloning loss to PPO's; None when its weight has faded to 0."""
        weight = self._config.teach_weights(1.0 - steps / self._config.timesteps)
        if not weight:
            return None
        seen = normalised(self._data.observations, norm.statistics().observations or self._stats, norm.clip_obs)
        loss = CloningLoss(seen, self._data.actions, self._parameters, self._config.activation)
        rng, count = np.random.default_rng((self._config.seed, steps)), min(TERM_ROWS, len(self._data))

        def add(gradient: Parameters) -> None:
            rows = np.sort(rng.integers(len(self._data), size=count))
            gradient.flat += loss.gradient(rows, weight)[0].flat

        return add
