"""RLlib's PPO learner, with the schedules and the normalisation of a run's config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core import DEFAULT_MODULE_ID

from racer_viewer.training.ray.module import RacerModule

ADAM_EPSILON = 1e-5
"""As stable-baselines3's PPO has it."""


@dataclass(frozen=True, eq=False)
class Plan:
    """For the next iteration, from gathering on.

    log_std_limit: the noise on actions is at most this. The others but learning_rate are what observations and rewards
    are normalised with; see `RacerModule.set_normalisation`.
    """

    learning_rate: float
    log_std_limit: float
    obs_mean: NDArray[np.float64]
    obs_var: NDArray[np.float64]
    returns_var: float | None
    clip_obs: float


class RacerLearner(PPOTorchLearner):
    """What changes of the policy besides learning does so between two iterations: runners gather with the very policy
    that learns from it.
    """

    def begin_with(self, policy: Mapping[str, Any], optimiser: Mapping[str, Any], plan: Plan) -> None:
        """Weights and the optimiser's memory, of stable-baselines3, and how to go on."""
        self._racer.policy.load_state_dict(policy)
        self._optimiser.load_state_dict(dict(optimiser))
        self.follow(plan)

    def follow(self, plan: Plan) -> None:
        self._optimiser.param_groups[0]["lr"] = plan.learning_rate
        self._racer.set_normalisation(plan.obs_mean, plan.obs_var, plan.returns_var, plan.clip_obs)
        with torch.no_grad():
            self._racer.policy.log_std.clamp_(max=plan.log_std_limit)

    def state_of_policy(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Weights and the optimiser's memory, as stable-baselines3 has them."""
        return self._racer.policy.state_dict(), self._optimiser.state_dict()

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """The same optimiser over the same parameters as stable-baselines3 has, so that either goes on with it."""
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
