"""What one runner gathers at a time, as arrays, and what PPO learns from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing

from racer_viewer.training.config import RunConfig

CLIP_REWARD = 10.0
"""Scaled rewards are within ± this, as in stable-baselines3."""

Floats = NDArray[np.float32]
Batch = dict[str, Floats]
"""A row for every step of every car, by RLlib's names."""


class Rollout:
    """So many ticks of all cars, as arrays (ticks, cars, …). observations[tick] is what was seen before it.

    module: that drives, see `RacerModule`. discounted: rewards so far, discounted, of the episode a car is in.
    """

    def __init__(self, ticks: int, first: Floats, module: Any) -> None:
        cars, size = first.shape
        actions = module.action_space.shape[0]
        self.ticks, self._module = ticks, module
        self._log_std: torch.Tensor = module.policy.log_std.detach()
        self._std = self._log_std.exp()
        self.observations: Floats = np.empty((ticks + 1, cars, size), np.float32)
        self.observations[0] = first
        self._actions: Floats = np.empty((ticks, cars, actions), np.float32)
        self._means: Floats = np.empty((ticks, cars, actions), np.float32)
        """Around which actions were drawn."""
        self.rewards: Floats = np.empty((ticks, cars), np.float32)
        self.discounted = np.empty((ticks, cars))
        self._terminated = np.zeros((ticks, cars), np.bool_)
        self._truncated = np.zeros((ticks, cars), np.bool_)
        self._last: Floats = np.zeros((0, size), np.float32)
        """What was seen at the end of episodes that were cut off, in the order of ticks and cars."""

    def act(self, tick: int) -> Floats:
        """RLlib's own way there costs more than all the rest of a tick."""
        with torch.no_grad():
            means = self._module.means_of(torch.from_numpy(self.observations[tick]))
            actions: Floats = torch.normal(means, self._std.expand_as(means)).numpy()
        self._means[tick], self._actions[tick] = means.numpy(), actions
        return actions

    def end(self, tick: int, terminated: NDArray[np.bool_], truncated: NDArray[np.bool_], last: Floats) -> None:
        """Some episodes ended with this tick. last: what each of these cars saw last."""
        cut = truncated & ~terminated
        self._terminated[tick], self._truncated[tick] = terminated, cut
        self._last = np.concatenate((self._last, last[cut[terminated | truncated]]))

    def batch(self, config: RunConfig) -> Batch:
        """What can be learned from it; advantages are not standardised yet, since this is only a part."""
        noise = self._log_std.expand(self._means.shape).numpy()
        inputs = np.concatenate((self._means, noise), axis=-1)
        distribution = self._module.get_exploration_action_dist_cls().from_logits(torch.from_numpy(inputs))
        advantages, values = self._advantages(config)
        columns = {
            Columns.OBS: self.observations[:-1],
            Columns.ACTIONS: self._actions,
            Columns.ACTION_DIST_INPUTS: inputs,
            Columns.ACTION_LOGP: distribution.logp(torch.from_numpy(self._actions)).numpy(),
            Postprocessing.ADVANTAGES: advantages,
            Postprocessing.VALUE_TARGETS: advantages + values,
        }
        return {name: column.reshape(-1, *column.shape[2:]) for name, column in columns.items()}

    def _advantages(self, config: RunConfig) -> tuple[Floats, Floats]:
        """Generalised advantages, and the values they are above. An episode that was cut off goes on in the values."""
        paid, gamma = self.rewards, config.gamma
        if config.norm_reward:
            paid = np.clip(paid / float(self._module.reward_scale), -CLIP_REWARD, CLIP_REWARD)
        values = self._values(self.observations)
        after = values[1:].copy()
        after[self._terminated] = 0.0
        after[self._truncated] = self._values(self._last)
        better = paid + gamma * after - values[:-1]
        kept = gamma * config.gae_lambda * ~(self._terminated | self._truncated)
        for tick in reversed(range(self.ticks - 1)):
            better[tick] += kept[tick] * better[tick + 1]
        return better.astype(np.float32), values[:-1]

    def _values(self, observations: Floats) -> Floats:
        with torch.no_grad():
            values: Floats = self._module.compute_values({Columns.OBS: torch.from_numpy(observations)}).numpy()
        return values
