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
    """For the next update.

    learning_rate: of it. log_std_limit: at most this, after it. The others are what observations and rewards are
    normalised with after it; see `RacerModule.set_normalisation`.
    """

    learning_rate: float
    log_std_limit: float
    obs_mean: NDArray[np.float64]
    obs_var: NDArray[np.float64]
    returns_var: float | None
    clip_obs: float


class RacerLearner(PPOTorchLearner):
    """What changes of the policy between two updates does so at their end, before runners get the new weights: the
    probabilities that they note with their actions stay true.
    """

    _plan: Plan | None = None

    def begin_with(self, policy: Mapping[str, Any], optimiser: Mapping[str, Any], plan: Plan) -> None:
        """Weights and the optimiser's memory, of stable-baselines3, and how to go on."""
        self._racer.policy.load_state_dict(policy)
        self._optimiser.load_state_dict(dict(optimiser))
        self._plan = plan
        self._follow_plan()

    def prepare(self, plan: Plan) -> None:
        self._plan = plan

    def state_of_policy(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Weights and the optimiser's memory, as stable-baselines3 has them."""
        return self._racer.policy.state_dict(), self._optimiser.state_dict()

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """The same optimiser over the same parameters as stable-baselines3 has, so that either goes on with it."""
        parameters = list(self._module[module_id].policy.parameters())
        optimiser = torch.optim.Adam(parameters, lr=config.lr, eps=ADAM_EPSILON)
        self.register_optimizer(
            module_id=module_id, optimizer=optimiser, params=parameters, lr_or_lr_schedule=config.lr
        )

    def before_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        super().before_gradient_based_update(timesteps=timesteps)
        if self._plan is not None:
            self._optimiser.param_groups[0]["lr"] = self._plan.learning_rate

    def after_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        super().after_gradient_based_update(timesteps=timesteps)
        self._follow_plan()

    def _follow_plan(self) -> None:
        plan = self._plan
        if plan is None:
            return
        self._racer.set_normalisation(plan.obs_mean, plan.obs_var, plan.returns_var, plan.clip_obs)
        with torch.no_grad():
            self._racer.policy.log_std.clamp_(max=plan.log_std_limit)

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
