"""From a run's config to a stable-baselines3 model and the environment that it learns on.

Saving what was learned, so that it is either there as a whole or as it was before, and going on from it."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from racer_env.engine import ANYWHERE, Simulation, Start, load_circuit
from racer_env.engine.rewards import PROGRESS
from racer_env.errors import RacerError
from racer_env.vector import RacerVectorEnv
from racer_viewer.agents import load_agent, load_stats, restore_stats, save_stats
from racer_viewer.paths import atomic_write
from racer_viewer.training.config import PAID_UNITS, RunConfig
from racer_viewer.training.run_folder import CONFIG_FILE, Checkpoint, ResumeError
from racer_viewer.training.vec_env import SB3VecEnv

Model = PPO | SAC

_STARTS = {"line": Start(), "anywhere": ANYWHERE}
ACTIVATIONS = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}


def make_env(config: RunConfig, bridge_url: str | None = None) -> VecNormalize:
    """The cars, with normalised observations and rewards."""
    env = make_cars(config, bridge_url)
    return VecNormalize(env, norm_reward=config.norm_reward, clip_obs=config.clip_obs, gamma=config.gamma)


def make_cars(config: RunConfig, bridge_url: str | None = None) -> VecEnv:
    """The cars, paid as the config says."""
    cars = RacerVectorEnv(
        config.num_cars,
        bridge_url,
        track_id=config.tracks,
        redraw=len(config.tracks) > 1,
        config=config.rewards,
        start=_STARTS[config.starts],
    )
    plain = SB3VecEnv(cars)
    return ProgressInUnits(plain, config.tracks) if config.progress_in_units else plain


def make_model(config: RunConfig, env: VecNormalize) -> Model:
    """A model that has learned nothing yet. Small networks learn fastest on one thread of torch."""
    torch.set_num_threads(int(os.environ.get("RACER_TORCH_THREADS", "1")))
    common: dict[str, Any] = {
        "policy": "MlpPolicy",
        "env": env,
        "learning_rate": Falling(config.learning_rate, config.final_learning_rate),
        "gamma": config.gamma,
        "batch_size": config.batch_size,
        "seed": config.seed,
        "device": config.device,
        "verbose": 0,
    }
    network = {"net_arch": list(config.net), "activation_fn": ACTIVATIONS[config.activation]}
    if config.algo == "sac":
        return SAC(
            **common,
            buffer_size=config.buffer_size,
            learning_starts=config.learning_starts,
            train_freq=config.train_freq,
            gradient_steps=config.gradient_steps,
            tau=config.tau,
            use_sde=True,
            policy_kwargs={**network, "log_std_init": config.log_std},
        )
    model = PPO(
        **common,
        n_steps=config.n_steps,
        n_epochs=config.n_epochs,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        ent_coef=config.ent_coef,
        vf_coef=config.vf_coef,
        max_grad_norm=config.max_grad_norm,
        policy_kwargs={**network, "log_std_init": config.log_std},
    )
    with torch.no_grad():
        cast(torch.nn.Linear, model.policy.action_net).bias.copy_(torch.tensor(config.first_action))
    return model


@dataclass(frozen=True)
class Falling:
    """A schedule from one value to another, by the part of the run that remains. Saved by name, not as code."""

    first: float
    last: float

    def __call__(self, remaining: float) -> float:
        """remaining: from 1 on; below 0 in the last update of a run whose steps are no whole number of them."""
        return self.last + (self.first - self.last) * max(0.0, remaining)


class ProgressInUnits(VecEnvWrapper):
    """Pays for progress by the way driven and not by the part of the lap, which is worth less on a long circuit."""

    def __init__(self, venv: SB3VecEnv, tracks: Sequence[str]) -> None:
        super().__init__(venv)
        self._cars = venv
        self._scales = np.array([load_circuit(name).length for name in tracks]) / PAID_UNITS
        self._now = self._scales[:1]
        """Of every car, or of all of them."""

    def reset(self) -> VecEnvObs:
        observations = self.venv.reset()
        self._note_tracks()
        return observations

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, dones, infos = self.venv.step_wait()
        more = self._cars.last_step.components[:, PROGRESS] * (self._now - 1.0)
        if dones.any():
            self._note_tracks()
        return observations, (rewards + more).astype(np.float32), dones, infos

    def _note_tracks(self) -> None:
        """Which car is on which track now; a bridge does not say, and need not where there is only one."""
        if len(self._scales) > 1:
            simulation: Simulation | None = getattr(self._cars.cars.batch, "simulation", None)
            if simulation is None:
                raise RacerError(
                    "progress_in_units on several circuits needs the cars in this process, not on a bridge"
                )
            self._now = self._scales[simulation.cars.track]


class QuieterNoise(BaseCallback):
    """Lets the noise on PPO's actions be at most what the schedule says: the last tenths need a steady hand."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        self._limit = Falling(config.log_std, config.final_log_std)

    def _on_rollout_start(self) -> None:
        remaining = self.model._current_progress_remaining
        with torch.no_grad():
            self.model.policy.log_std.clamp_(max=self._limit(remaining))  # type: ignore[operator]

    def _on_step(self) -> bool:
        return True


def save_checkpoint(model: Model, env: VecNormalize, path: Path) -> Path:
    """Write NAME.zip and beside it NAME_vecnormalize.npz, the statistics first: no model is ever without them."""
    save_stats(path.with_name(f"{path.stem}_vecnormalize.npz"), env)
    with atomic_write(path) as temporary:
        model.save(temporary)
    return path


def restore(checkpoint: Checkpoint, model: Model, env: VecNormalize) -> None:
    """Put weights, optimiser, statistics and counter of a checkpoint into a new model of the same config.

    Only tensors are read from the file: nothing in it is executed.
    """
    try:
        model.set_parameters(str(checkpoint.model), exact_match=True, device=model.device)
    except (ValueError, RuntimeError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise ResumeError(f"{checkpoint.model} does not fit its {CONFIG_FILE}: {str(error).splitlines()[0]}") from None
    restore_stats(load_stats(checkpoint.stats), env)
    model.num_timesteps = checkpoint.steps
    if isinstance(model, SAC):  # what it remembered is gone: gather anew, with what it can, before it learns on
        model.learning_starts += checkpoint.steps
        model.use_sde_at_warmup = True


def begin_from(path: str, model: Model, env: VecNormalize) -> None:
    """Put weights and statistics of some model into a new one, for a run of its own; the noise is as the run's config
    says. Only tensors are read from the file.
    """
    source = load_agent(path).info  # finds bundled models by name, and says clearly what cannot be used
    if source.stats_path is None:
        raise RacerError(f"{source.path} has no statistics beside it: its weights mean nothing without them")
    noise = model.policy.log_std.detach().clone() if isinstance(model, PPO) else None
    try:
        model.set_parameters(str(source.path), exact_match=True, device=model.device)
    except (ValueError, RuntimeError, KeyError) as error:
        layers = ",".join(map(str, source.policy_layers or ()))
        raise RacerError(
            f"{source.path} does not fit: it is {source.algorithm} with hidden layers {layers} "
            f"({source.activation}), set --algo, net and activation so ({str(error).splitlines()[0]})"
        ) from None
    if noise is not None:
        with torch.no_grad():
            model.policy.log_std.copy_(noise)  # type: ignore[operator]
    restore_stats(load_stats(source.stats_path), env)
