"""Normalisation: running statistics of observations and rewards, and the normaliser of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_viewer.agents.archive import AgentError

DEFAULT_CLIP = 10.0
DEFAULT_EPSILON = 1e-8
DEFAULT_GAMMA = 0.99


@dataclass(frozen=True, eq=False)
class RunningStats:
    """Mean, variance and number of the values seen so far."""

    mean: NDArray[np.float64]
    var: NDArray[np.float64]
    count: float

    def __post_init__(self) -> None:
        numbers = (self.mean, self.var, np.float64(self.count))
        if self.mean.shape != self.var.shape or not all(np.isfinite(number).all() for number in numbers):
            raise AgentError("its means and variances are not finite, or not as many as each other")
        if (self.var < 0.0).any() or self.count < 0.0:
            raise AgentError("a variance or a count is negative")


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics and settings of a stable-baselines3 `VecNormalize`.

    observations: None if observations are not normalised.
    returns: statistics of discounted returns; None if not saved, which suffices to drive but not to resume training.
    clip_obs, clip_reward: absolute limits of normalised values.
    epsilon: value added to variances before the square root.
    gamma: discount factor of the returns.
    """

    observations: RunningStats | None
    returns: RunningStats | None = None
    clip_obs: float = DEFAULT_CLIP
    clip_reward: float = DEFAULT_CLIP
    epsilon: float = DEFAULT_EPSILON
    gamma: float = DEFAULT_GAMMA
    norm_reward: bool = True

    def __post_init__(self) -> None:
        settings = (self.clip_obs, self.clip_reward, self.epsilon, self.gamma)
        if np.isnan(settings).any() or min(settings) < 0.0:
            raise AgentError("clip_obs, clip_reward, epsilon or gamma is not a number from 0 up")
        if self.observations is not None and (self.observations.var + self.epsilon <= 0.0).any():
            raise AgentError("a variance is zero, and so is epsilon")


def stats_of(vec_normalize: Any) -> Statistics:
    """Return a copy of the statistics of a stable-baselines3 `VecNormalize`, or of an object with its attributes."""
    observations = vec_normalize.obs_rms if vec_normalize.norm_obs else None
    if isinstance(observations, dict):
        raise AgentError("the statistics are of several inputs (a Dict); supported is one Box")
    return Statistics(
        observations=None if observations is None else _running(observations),
        returns=_running(vec_normalize.ret_rms),
        clip_obs=float(vec_normalize.clip_obs),
        clip_reward=float(vec_normalize.clip_reward),
        epsilon=float(vec_normalize.epsilon),
        gamma=float(vec_normalize.gamma),
        norm_reward=bool(vec_normalize.norm_reward),
    )


def restore_stats(stats: Statistics, vec_normalize: Any) -> None:
    """Set the statistics and settings of a `VecNormalize`, which then continues exactly as the saved one would have."""
    if stats.returns is None:
        raise AgentError("these statistics are for driving only: without reward statistics training cannot be resumed")
    vec_normalize.norm_obs = stats.observations is not None
    if stats.observations is not None:
        _restore(stats.observations, vec_normalize.obs_rms)
    _restore(stats.returns, vec_normalize.ret_rms)
    for name in ("clip_obs", "clip_reward", "epsilon", "gamma", "norm_reward"):
        setattr(vec_normalize, name, getattr(stats, name))


class Normaliser:
    """Normalises observations: `(x - mean) / sqrt(var + epsilon)`, clipped, in single precision.

    The difference is computed in doubles, as in stable-baselines3: a nearly constant input has a tiny variance.
    """

    def __init__(self, stats: Statistics) -> None:
        assert stats.observations is not None
        self._mean = stats.observations.mean
        self._scale = 1.0 / np.sqrt(stats.observations.var + stats.epsilon)
        self._limit = np.float64(stats.clip_obs)

    def apply(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        scaled = (observations - self._mean) * self._scale
        np.minimum(scaled, self._limit, out=scaled)
        np.maximum(scaled, -self._limit, out=scaled)
        return scaled.astype(np.float32)

    def slope(self, observation: NDArray[Any]) -> NDArray[np.float32]:
        """Return the derivative of each normalised value by its input; 0 if it is clipped."""
        scaled = (observation - self._mean) * self._scale
        return np.where(np.abs(scaled) < self._limit, self._scale, 0.0).astype(np.float32)


def _running(running_mean_std: Any) -> RunningStats:
    mean, var = (np.array(number, np.float64) for number in (running_mean_std.mean, running_mean_std.var))
    return RunningStats(mean, var, float(running_mean_std.count))


def _restore(running: RunningStats, running_mean_std: Any) -> None:
    if np.shape(running_mean_std.mean) != running.mean.shape:
        raise AgentError(
            f"the statistics are of {running.mean.size} values, but {np.size(running_mean_std.mean)} are normalised"
        )
    running_mean_std.mean, running_mean_std.var = running.mean.copy(), running.var.copy()
    running_mean_std.count = running.count
