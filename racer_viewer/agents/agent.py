"""An agent: observations in, actions out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from racer_viewer.agents.archive import AgentError
from racer_viewer.agents.networks import Floats
from racer_viewer.agents.policies import OBSERVATION_SIZE, GaussianPolicy, Policy
from racer_viewer.agents.sb3_model import ModelDescription
from racer_viewer.agents.stats import Normaliser


@dataclass(frozen=True)
class AgentInfo:
    """What is known of a model.

    name: of the file, without its ending.
    file_bytes, modified: of the file.
    stats_path: the file of the normalisation; None without one.
    algorithm: "PPO", "SAC", or "ONNX", of which the rest is not known: None.
    policy_layers, value_layers: sizes of the hidden layers; value_layers is None without a value function.
    activation: as torch.nn names it.
    parameters: learned numbers that the agent uses (SAC's critics are not among them).
    timesteps: it was trained for; None where the file does not say.
    """

    name: str
    path: Path
    file_bytes: int
    modified: datetime
    stats_path: Path | None
    algorithm: str = ""
    policy_layers: tuple[int, ...] | None = None
    value_layers: tuple[int, ...] | None = None
    activation: str | None = None
    parameters: int | None = None
    timesteps: int | None = None

    def of_policy(self, policy: GaussianPolicy, description: ModelDescription, parameters: int) -> AgentInfo:
        """The same, with what is known of a policy of PPO or SAC."""
        return replace(
            self,
            algorithm=description.algorithm,
            policy_layers=policy.actor.sizes,
            value_layers=None if policy.critic is None else policy.critic.sizes,
            activation=description.activation,
            parameters=parameters,
            timesteps=description.timesteps,
        )


@dataclass(frozen=True, eq=False)
class Agent:
    """A trained driver. It never changes; one agent can drive any number of cars.

    Observations are raw, as the environment gives them: (14,), or (N, 14) for N cars; answers have the same first
    dimension. The fields other than `info` are for this package.
    """

    info: AgentInfo
    policy: Policy
    normaliser: Normaliser | None

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def normalised(self) -> bool:
        """Whether observations are normalised first. A model that was trained so drives badly without."""
        return self.normaliser is not None

    @property
    def noise_shape(self) -> tuple[int, ...] | None:
        """Of the standard normal numbers that `act` takes as `noise` for one car; None if it has no noise."""
        return self.policy.noise_shape

    def act(
        self,
        observations: ArrayLike,
        deterministic: bool = True,
        rng: np.random.Generator | None = None,
        noise: ArrayLike | None = None,
    ) -> Floats:
        """Steer, throttle and brake, (3,) or (N, 3), within the limits that the model was trained with.

        deterministic: the mean action; else one that is drawn, from `rng` or (slower) from a fresh generator.
        noise: draw with these standard normal numbers instead: (3,) or (N, 3); for gSDE the (features, 3) of
            `noise_shape`, for all cars the same. With gSDE, drawing from `rng` has the same distribution in every
            tick, but each tick is drawn anew, whereas training keeps one such matrix for a while.
        """
        inputs = self._inputs(observations)
        if noise is not None:
            actions = self.policy.strayed_actions(inputs, self._normals(noise, inputs))
        elif deterministic:
            return self.policy.mean_actions(inputs)
        else:
            actions = self.policy.drawn_actions(inputs, rng or np.random.default_rng())
        if actions is None:
            raise AgentError(f"{self.info.path}: this kind of model has no noise; it acts deterministically only")
        return actions

    def values(self, observations: ArrayLike) -> Floats | None:
        """The return that the model expects from here, () or (N,), in rewards as normalised in its training.

        None if it has no value function (SAC, ONNX).
        """
        return self.policy.values(self._inputs(observations))

    def spread(self, observations: ArrayLike) -> Floats | None:
        """Standard deviation of the drawn actions, (3,) or (N, 3), in the actions' units.

        For PPO before they are clipped to their limits, for SAC within them (to about 2 %). None for ONNX.
        """
        return self.policy.spread(self._inputs(observations))

    def sensitivity(self, observation: ArrayLike) -> Floats:
        """(3, 14): how much each mean action changes with each raw input, at one observation.

        An input beyond the normalisation's clip, or an action clipped at its limit, changes nothing: 0.
        """
        raw = self._checked(observation)
        if raw.ndim != 1:
            raise AgentError(
                f"sensitivity is of one observation of {OBSERVATION_SIZE} numbers, not of shape {raw.shape}"
            )
        jacobian = self.policy.jacobian(self._inputs(raw))
        return jacobian if self.normaliser is None else jacobian * self.normaliser.slope(raw)

    def _inputs(self, observations: ArrayLike) -> Floats:
        raw = self._checked(observations)
        return raw.astype(np.float32) if self.normaliser is None else self.normaliser.apply(raw)

    def _checked(self, observations: ArrayLike) -> NDArray[Any]:
        raw = np.asarray(observations)
        if raw.shape[-1:] != (OBSERVATION_SIZE,) or raw.ndim > 2:
            raise AgentError(f"observations are ({OBSERVATION_SIZE},) or (N, {OBSERVATION_SIZE}), not {raw.shape}")
        return raw

    def _normals(self, noise: ArrayLike, inputs: Floats) -> Floats:
        normals, shape = np.asarray(noise, np.float32), self.noise_shape
        if shape is not None and len(shape) == 1:
            shape = (*inputs.shape[:-1], *shape)
        if shape is not None and normals.shape != shape:
            raise AgentError(f"noise is {shape}, not {normals.shape}")
        return normals
