"""Agents: loaded policies that map observations to actions."""

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
    """Description of a model.

    name: file name without its suffix.
    file_bytes, modified: size [bytes] and date of the file.
    stats_path: file of the normalisation statistics, possibly the model itself; None without one.
    algorithm: "PPO", "A2C", "TRPO", "SAC", "TQC" or "ONNX"; the fields below are None for "ONNX".
    policy_layers, value_layers: sizes of the hidden layers; value_layers is None without a value function.
    activation: name in torch.nn.
    parameters: number of learned parameters that the agent uses; SAC's critics are not counted.
    timesteps: number of steps it was trained for; None if the file does not contain it.
    needs_stats: True if it was trained with normalised observations, as far as the file shows.
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
    needs_stats: bool = False

    @property
    def problem(self) -> str | None:
        """Warning about a model that drives badly because its statistics are missing; None if there is none."""
        if self.stats_path is not None or not self.needs_stats:
            return None
        return f"{self.path.name} was trained with normalised observations and drives badly without its statistics"

    def of_policy(self, policy: GaussianPolicy, description: ModelDescription, parameters: int) -> AgentInfo:
        """Return a copy with the description of a policy of stable-baselines3."""
        return replace(
            self,
            algorithm=description.algorithm,
            policy_layers=policy.actor.sizes,
            value_layers=None if policy.critic is None else policy.critic.sizes,
            activation=description.activation,
            parameters=parameters,
            timesteps=description.timesteps,
            needs_stats=description.needs_stats,
        )


@dataclass(frozen=True, eq=False)
class Agent:
    """A trained driver. It is immutable; one agent can drive any number of cars.

    Observations are raw, as the environment returns them: (14,), or (N, 14) for N cars; results have the same first
    dimension. The fields other than `info` are internal to this package.
    """

    info: AgentInfo
    policy: Policy
    normaliser: Normaliser | None

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def normalised(self) -> bool:
        """True if observations are normalised; a model trained with normalisation drives badly without it."""
        return self.normaliser is not None

    @property
    def noise_shape(self) -> tuple[int, ...] | None:
        """Shape of the `noise` argument of `act` for one car; None for a deterministic model."""
        return self.policy.noise_shape

    def act(
        self,
        observations: ArrayLike,
        deterministic: bool = True,
        rng: np.random.Generator | None = None,
        noise: ArrayLike | None = None,
    ) -> Floats:
        """Return steer, throttle and brake, (3,) or (N, 3), within the action limits of the model.

        deterministic: return the mean action; else sample one with `rng` or (slower) a new generator.
        noise: sample with these standard normal numbers instead: (3,) or (N, 3); for gSDE the (features, 3) of
            `noise_shape`, the same for all cars. Training with gSDE keeps one such matrix for many ticks; sampling
            with `rng` has the same distribution in every tick, but draws a new one each time.
        """
        inputs = self._inputs(observations)
        if noise is not None:
            actions = self.policy.noisy_actions(inputs, self._normals(noise, inputs))
        elif deterministic:
            return self.policy.mean_actions(inputs)
        else:
            actions = self.policy.sampled_actions(inputs, rng or np.random.default_rng())
        if actions is None:
            raise AgentError(f"{self.info.path}: models of this kind have no noise; they only act deterministically")
        return actions

    def predict(
        self,
        observation: ArrayLike,
        state: tuple[Floats, ...] | None = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool = True,
    ) -> tuple[Floats, tuple[Floats, ...] | None]:
        """Return actions and the state, as models of stable-baselines3 do, so that an agent can be used for one.

        state, episode_start: for recurrent policies; ignored here, and the state is returned unchanged.
        deterministic: True by default, unlike in stable-baselines3.
        """
        return self.act(observation, deterministic), state

    def values(self, observations: ArrayLike) -> Floats | None:
        """Return the expected return, () or (N,), in rewards as normalised in training.

        None for models without a value function (SAC, ONNX).
        """
        return self.policy.values(self._inputs(observations))

    def spread(self, observations: ArrayLike) -> Floats | None:
        """Return the standard deviation of sampled actions, (3,) or (N, 3), in action units.

        PPO: before actions are clipped to their limits. SAC: within the limits, accurate to about 2 %. ONNX: None.
        """
        return self.policy.spread(self._inputs(observations))

    def sensitivity(self, observation: ArrayLike) -> Floats:
        """Return the derivative of each mean action by each raw input at one observation, (3, 14).

        It is 0 for inputs clipped by the normalisation and for actions clipped at their limit.
        """
        raw = self._checked(observation)
        if raw.ndim != 1:
            raise AgentError(
                f"sensitivity takes one observation of {OBSERVATION_SIZE} numbers, not an array of shape {raw.shape}"
            )
        jacobian = self.policy.jacobian(self._inputs(raw))
        return jacobian if self.normaliser is None else jacobian * self.normaliser.slope(raw)

    def _inputs(self, observations: ArrayLike) -> Floats:
        raw = self._checked(observations)
        return raw.astype(np.float32) if self.normaliser is None else self.normaliser.apply(raw)

    def _checked(self, observations: ArrayLike) -> NDArray[Any]:
        raw = np.asarray(observations)
        if raw.shape[-1:] != (OBSERVATION_SIZE,) or raw.ndim > 2:
            raise AgentError(
                f"observations must have shape ({OBSERVATION_SIZE},) or (N, {OBSERVATION_SIZE}), not {raw.shape}"
            )
        return raw

    def _normals(self, noise: ArrayLike, inputs: Floats) -> Floats:
        normals, shape = np.asarray(noise, np.float32), self.noise_shape
        if shape is not None and len(shape) == 1:
            shape = (*inputs.shape[:-1], *shape)
        if shape is not None and normals.shape != shape:
            raise AgentError(f"noise must have shape {shape}, not {normals.shape}")
        return normals
