"""The network that learns on Ray: that of stable-baselines3, so that what is learned is a model like all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from stable_baselines3.common.policies import ActorCriticPolicy

from racer_viewer.training.learner import ACTIVATIONS

MODEL_NET, MODEL_ACTIVATION, MODEL_LOG_STD = "net", "activation", "log_std"
"""Keys of the settings that the module is made with."""
EPSILON = 1e-8
"""Added to variances, as stable-baselines3 does."""


class RacerModule(TorchRLModule, ValueFunctionAPI):
    """Takes observations as they are, and normalises them itself: so its normalisation goes wherever its weights go.

    reward_scale: runners divide rewards by it. It travels here too, so that it is the same for all of them.
    """

    obs_mean: torch.Tensor
    obs_scale: torch.Tensor
    reward_scale: torch.Tensor
    clip_obs: torch.Tensor

    def setup(self) -> None:
        settings = self.model_config
        self.policy = ActorCriticPolicy(
            self.observation_space,
            self.action_space,
            lambda remaining: 0.0,
            net_arch=list(settings[MODEL_NET]),
            activation_fn=ACTIVATIONS[settings[MODEL_ACTIVATION]],
            log_std_init=settings[MODEL_LOG_STD],
        )
        size = self.observation_space.shape[0]
        self.register_buffer("obs_mean", torch.zeros(size))
        self.register_buffer("obs_scale", torch.ones(size))
        self.register_buffer("reward_scale", torch.ones(()))
        self.register_buffer("clip_obs", torch.tensor(10.0))

    def set_normalisation(
        self, mean: NDArray[np.float64], var: NDArray[np.float64], returns_var: float | None, clip_obs: float
    ) -> None:
        """returns_var: of discounted returns; None leaves rewards as they are."""
        self.obs_mean.copy_(torch.from_numpy(np.asarray(mean)))
        self.obs_scale.copy_(torch.from_numpy(1.0 / np.sqrt(np.asarray(var) + EPSILON)))
        self.reward_scale.fill_(1.0 if returns_var is None else float(np.sqrt(returns_var + EPSILON)))
        self.clip_obs.fill_(clip_obs)

    def means_of(self, observations: torch.Tensor) -> torch.Tensor:
        """Of the actions; their noise is the policy's log_std."""
        means: torch.Tensor = self.policy.action_net(
            self.policy.mlp_extractor.forward_actor(self._normalised(observations))
        )
        return means

    def _normalised(self, observations: torch.Tensor) -> torch.Tensor:
        scaled = (observations - self.obs_mean) * self.obs_scale
        return torch.clamp(scaled, -self.clip_obs, self.clip_obs)

    def _forward(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        means = self.means_of(batch[Columns.OBS])
        noise = self.policy.log_std.expand_as(means)
        return {Columns.ACTION_DIST_INPUTS: torch.cat((means, noise), dim=-1)}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        features = self.policy.mlp_extractor.forward_critic(self._normalised(batch[Columns.OBS]))
        values: torch.Tensor = self.policy.value_net(features).squeeze(-1)
        return values
