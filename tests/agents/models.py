"""Small real models of stable-baselines3 with normalisation statistics."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from torch import nn

from racer_viewer.agents import Agent, load_agent

ACTION_SPACE = spaces.Box(np.array([-1, 0, 0], np.float32), np.ones(3, np.float32))

PPO_GSDE = {"use_sde": True}
SETTINGS: dict[str, tuple[type[BaseAlgorithm], dict[str, Any], dict[str, Any]]] = {
    "ppo": (PPO, {}, {}),
    "ppo-relu": (PPO, {"activation_fn": nn.ReLU, "net_arch": [32, 16, 8]}, {}),
    "ppo-elu-separate": (PPO, {"activation_fn": nn.ELU, "net_arch": {"pi": [24], "vf": [48, 12]}}, {}),
    "ppo-leaky": (PPO, {"activation_fn": nn.LeakyReLU, "net_arch": [33], "share_features_extractor": False}, {}),
    "ppo-silu-wide": (PPO, {"activation_fn": nn.SiLU, "net_arch": [256, 128]}, {}),
    "ppo-linear": (PPO, {"net_arch": {"pi": [], "vf": [5]}}, {}),
    "ppo-gsde": (PPO, {"log_std_init": -2}, PPO_GSDE),
    "ppo-gsde-squashed": (PPO, {"squash_output": True, "full_std": False, "log_std_init": -1}, PPO_GSDE),
    "ppo-gsde-expln": (PPO, {"use_expln": True, "log_std_init": 0.3, "net_arch": [8]}, PPO_GSDE),
    "a2c": (A2C, {"net_arch": [32, 32]}, {}),
    "sac": (SAC, {}, {}),
    "sac-tanh": (SAC, {"activation_fn": nn.Tanh, "net_arch": {"pi": [64], "qf": [16]}}, {}),
    "sac-linear": (SAC, {"net_arch": {"pi": [], "qf": [16]}}, {}),
    "sac-gsde": (SAC, {"net_arch": [64, 48]}, {"use_sde": True}),
    "sac-gsde-clipped": (SAC, {"net_arch": [32], "clip_mean": 0.25, "use_expln": True}, {"use_sde": True}),
    "sac-gsde-unclipped": (SAC, {"net_arch": [32], "clip_mean": 0.0}, {"use_sde": True}),
}
"""Models by name: algorithm, policy settings, other settings."""
LEARNED = ("ppo", "ppo-relu", "a2c", "sac-tanh", "sac-gsde")
"""Models that learn for a few hundred steps; the others have random weights."""


class Drift(gymnasium.Env[np.ndarray, np.ndarray]):
    """Environment of random walks at different scales, with a reward for steering like the first of them."""

    action_space = ACTION_SPACE
    observation_size = 14

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-50.0, 50.0, (self.observation_size,), np.float32)
        self.scale = np.geomspace(0.01, 10.0, self.observation_size)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.at = self.np_random.normal(0.3, 1.0, self.observation_size)
        return self.observation, {"tick": 0}

    def step(self, action: np.ndarray) -> Any:
        reward = -abs(float(action[0]) - float(np.tanh(self.at[0])))
        self.at += self.np_random.normal(0.0, 0.2, self.observation_size)
        return self.observation, reward, bool(self.np_random.random() < 0.05), False, {}

    @property
    def observation(self) -> np.ndarray:
        return (self.scale * self.at).astype(np.float32)


@dataclass(frozen=True)
class Trained:
    """A model of stable-baselines3, its normalisation, and the agent loaded from their files."""

    model: Any
    vec_normalize: VecNormalize
    path: Path
    agent: Agent

    def predict(self, observations: np.ndarray, deterministic: bool = True) -> np.ndarray:
        return self.model.predict(self.vec_normalize.normalize_obs(observations), deterministic=deterministic)[0]

    @property
    def normalised(self) -> Any:
        return lambda observations: torch.as_tensor(self.vec_normalize.normalize_obs(observations))


def make_env(env: type[gymnasium.Env[Any, Any]] = Drift, cars: int = 2) -> VecNormalize:
    return VecNormalize(DummyVecEnv([env] * cars), clip_obs=4.0)


def make_model(name: str, env: Any = None) -> Any:
    """Make the model with a name in SETTINGS."""
    algorithm, policy_settings, settings = SETTINGS[name]
    speed = {
        PPO: {"n_steps": 64, "batch_size": 64},
        A2C: {"n_steps": 16},
        SAC: {"learning_starts": 32, "buffer_size": 1000},
    }[algorithm]
    env = make_env() if env is None else env
    return algorithm(
        "MlpPolicy",
        env,
        seed=1,
        device="cpu",
        policy_kwargs=dict(policy_settings),
        **speed,
        **settings,  # type: ignore[arg-type]
    )


def _experience(vec_normalize: VecNormalize, steps: int = 200) -> None:
    vec_normalize.seed(3)
    vec_normalize.reset()
    for _ in range(steps):
        vec_normalize.step(np.stack([ACTION_SPACE.sample() for _ in range(vec_normalize.num_envs)]))


def _draw_weights(model: Any) -> None:
    """Add random weights, so that actions reach their limits; stable-baselines3 initialises policies close to zero."""
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)


@cache
def trained(name: str, folder: Path) -> Trained:
    """Train or make a model once for all tests."""
    model = make_model(name)
    vec_normalize = model.get_env()
    if name in LEARNED:
        model.learn(128 if isinstance(model, SAC) else 256)
    else:
        _experience(vec_normalize)
        _draw_weights(model)
    path = folder / f"{name}.zip"
    model.save(path)
    vec_normalize.save(folder / f"{name}_vecnormalize.pkl")
    return Trained(model, vec_normalize, path, load_agent(path))


def some_observations(count: int = 3000, seed: int = 0) -> np.ndarray:
    """Return observations of Drift, some far outside the training range."""
    rng = np.random.default_rng(seed)
    scale = np.geomspace(0.01, 10.0, 14) * rng.choice((1.0, 3.0, 30.0), (count, 1), p=(0.8, 0.15, 0.05))
    return (scale * rng.normal(0.3, 1.0, (count, 14))).astype(np.float32)
