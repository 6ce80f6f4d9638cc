"""Makes the models in this folder with the stable-baselines3 that runs it: `python make_old_models.py`.

Each is a zip, the statistics beside it, and in `NAME_expected.npz` what that version itself answered. Versions used:
2.0.0 (numpy 1.26.4, gymnasium 0.28.1) and 1.7.0 (numpy 1.26.4, gym 0.21.0), which still had shared layers.
"""

from pathlib import Path

import numpy as np
import stable_baselines3 as sb3
import torch
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

OLD_GYM = sb3.__version__.startswith("1.")
if OLD_GYM:
    import gym
else:
    import gymnasium as gym

HERE = Path(__file__).parent


class Drift(gym.Env):
    """Fourteen numbers that wander, and a reward for answering with the first of them."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (14,), np.float32)
    action_space = gym.spaces.Box(np.array([-1, 0, 0], np.float32), np.ones(3, np.float32))

    def __init__(self):
        self.random = np.random.default_rng(0)

    def reset(self, seed=None, options=None):
        self.at = self.random.uniform(-1, 1, 14).astype(np.float32)
        return self.at if OLD_GYM else (self.at, {"tick": 0})

    def step(self, action):
        reward = -float(abs(action[0] - self.at[0]))
        self.at = np.clip(self.at + self.random.normal(0, 0.2, 14), -1, 1).astype(np.float32)
        end = bool(self.random.random() < 0.05)
        return (self.at, reward, end, {}) if OLD_GYM else (self.at, reward, end, False, {})


def make(name, algorithm, policy_kwargs, **options):
    env = VecNormalize(DummyVecEnv([Drift, Drift]))
    env.seed(1)
    model = algorithm("MlpPolicy", env, policy_kwargs=policy_kwargs, seed=1, device="cpu", **options)
    model.learn(200)
    env.observation_space.sample()
    env.action_space.sample()
    model.save(HERE / f"{name}.zip")
    env.save(HERE / f"{name}_vecnormalize.pkl")
    observations = np.random.default_rng(2).uniform(-1, 1, (50, 14)).astype(np.float32)
    normalised = env.normalize_obs(observations)
    expected = {"observations": observations, "actions": model.predict(normalised, deterministic=True)[0]}
    if hasattr(model.policy, "predict_values"):
        with torch.no_grad():
            expected["values"] = model.policy.predict_values(torch.as_tensor(normalised)).numpy()[:, 0]
    np.savez_compressed(HERE / f"{name}_expected.npz", **expected)


version = sb3.__version__.replace(".", "-").rstrip("\n")
torch.set_num_threads(1)
make(f"ppo_sb3-{version}", sb3.PPO, {"net_arch": [{"pi": [12, 8], "vf": [10]}]}, n_steps=64)
make(f"sac_sb3-{version}", sb3.SAC, {"net_arch": [12, 8]}, learning_starts=20, buffer_size=500)
if OLD_GYM:
    kwargs = {"net_arch": [16, {"pi": [8], "vf": [10, 6]}], "activation_fn": torch.nn.ReLU}
    make(f"shared_sb3-{version}", sb3.PPO, kwargs, n_steps=64)
else:
    make(f"gsde_sb3-{version}", sb3.SAC, {"net_arch": [12, 8]}, learning_starts=20, buffer_size=500, use_sde=True)
