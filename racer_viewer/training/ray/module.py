"""Network and PPO learner for RLlib that match stable-baselines3.

The network is the policy class of stable-baselines3, so that weights and optimiser state can be exchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from stable_baselines3.common.policies import ActorCriticPolicy

from racer_viewer.training.sb3 import ACTIVATIONS

MODEL_NET, MODEL_ACTIVATION, MODEL_LOG_STD = "net", "activation", "log_std"
"""Keys of the module's settings in RLlib's model_config."""
EPSILON = 1e-8
"""Term added to variances, as in stable-baselines3."""


class RacerModule(TorchRLModule, ValueFunctionAPI):
    """Actor-critic network that normalises observations itself, so that runners receive normalisation with the weights.

    reward_scale: divisor of rewards. It is a buffer of the module so that all runners use the same value.
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
        """Set the statistics. returns_var: variance of discounted returns; None leaves rewards unscaled."""
        self.obs_mean.copy_(torch.from_numpy(np.asarray(mean)))
        self.obs_scale.copy_(torch.from_numpy(1.0 / np.sqrt(np.asarray(var) + EPSILON)))
        self.reward_scale.fill_(1.0 if returns_var is None else float(np.sqrt(returns_var + EPSILON)))
        self.clip_obs.fill_(clip_obs)

    def mean_actions(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the mean actions; the noise is the policy's log_std."""
        means: torch.Tensor = self.policy.action_net(
            self.policy.mlp_extractor.forward_actor(self._normalised(observations))
        )
        return means

    def _normalised(self, observations: torch.Tensor) -> torch.Tensor:
        scaled = (observations - self.obs_mean) * self.obs_scale
        return torch.clamp(scaled, -self.clip_obs, self.clip_obs)

    def _forward(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        means = self.mean_actions(batch[Columns.OBS])
        noise = self.policy.log_std.expand_as(means)
        return {Columns.ACTION_DIST_INPUTS: torch.cat((means, noise), dim=-1)}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        features = self.policy.mlp_extractor.forward_critic(self._normalised(batch[Columns.OBS]))
        values: torch.Tensor = self.policy.value_net(features).squeeze(-1)
        return values


ADAM_EPSILON = 1e-5
"""Epsilon of Adam in stable-baselines3's PPO."""


@dataclass(frozen=True, eq=False)
class IterationSettings:
    """Settings of the next iteration: rollout and update.

    log_std_limit: upper limit of the noise on actions. obs_mean, obs_var, returns_var, clip_obs: normalisation, see
    `RacerModule.set_normalisation`.
    """

    learning_rate: float
    log_std_limit: float
    obs_mean: NDArray[np.float64]
    obs_var: NDArray[np.float64]
    returns_var: float | None
    clip_obs: float


class RacerLearner(PPOTorchLearner):
    """PPO learner whose settings change only between two iterations, so that rollouts come from the policy that learns
    from them.
    """

    def load_model(self, policy: Mapping[str, Any], optimiser: Mapping[str, Any], settings: IterationSettings) -> None:
        """Load weights and optimiser state of stable-baselines3, and apply settings."""
        self._racer.policy.load_state_dict(policy)
        self._optimiser.load_state_dict(dict(optimiser))
        self.apply(settings)

    def apply(self, settings: IterationSettings) -> None:
        """Apply the settings of the next iteration."""
        self._optimiser.param_groups[0]["lr"] = settings.learning_rate
        self._racer.set_normalisation(settings.obs_mean, settings.obs_var, settings.returns_var, settings.clip_obs)
        with torch.no_grad():
            self._racer.policy.log_std.clamp_(max=settings.log_std_limit)

    def model_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return weights and optimiser state, in the format of stable-baselines3."""
        return self._racer.policy.state_dict(), self._optimiser.state_dict()

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Use the optimiser and parameter order of stable-baselines3, so that optimiser states can be exchanged."""
        parameters = list(self._module[module_id].policy.parameters())
        optimiser = torch.optim.Adam(parameters, eps=ADAM_EPSILON)
        self.register_optimizer(module_id=module_id, optimizer=optimiser, params=parameters)

    @property
    def _racer(self) -> RacerModule:
        module = self.module[DEFAULT_MODULE_ID].unwrapped()
        assert isinstance(module, RacerModule)
        return module

    @property
    def _optimiser(self) -> torch.optim.Optimizer:
        (optimiser,) = (optimiser for _, optimiser in self.get_optimizers_for_module(DEFAULT_MODULE_ID))
        assert isinstance(optimiser, torch.optim.Optimizer)
        return optimiser
