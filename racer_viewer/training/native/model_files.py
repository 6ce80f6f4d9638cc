"""Models of the native learner: written as stable-baselines3 writes them, and read from zips of either learner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from racer_viewer.agents.archive import Archive, read_file
from racer_viewer.agents.load import TENSORS
from racer_viewer.agents.model_writer import ModelContent, new_optimiser, save_model
from racer_viewer.agents.pickles import PickledName, TensorFile, TorchFile
from racer_viewer.agents.stats import Statistics
from racer_viewer.training.config import RunConfig
from racer_viewer.training.native.network import Parameters
from racer_viewer.training.native.update import AdamState
from racer_viewer.training.policy_log import ACTIVATIONS

OPTIMISER = "policy.optimizer"
"""Name of PPO's optimiser in stable-baselines3, and of its member in a model without the suffix."""


def save_native_model(
    path: Path, config: RunConfig, parameters: Parameters, adam: AdamState, stats: Statistics, steps: int, updates: int
) -> Path:
    """Write a model that stable-baselines3 loads and continues to train, and its statistics beside it.

    steps, updates: environment steps and rollouts that it has learned from.
    """
    remaining = 1.0 - steps / config.timesteps
    learning_rate = config.learning_rates(remaining)
    content = ModelContent(
        algorithm="PPO",
        settings={
            "num_timesteps": steps,
            "_total_timesteps": config.timesteps,
            "_num_timesteps_at_start": 0,
            "seed": config.seed,
            "learning_rate": learning_rate,
            "gamma": config.gamma,
            "use_sde": False,
            "sde_sample_freq": -1,
            "_current_progress_remaining": remaining,
            "_n_updates": updates * config.n_epochs,
            "_episode_num": 0,
            "n_envs": config.num_cars,
            "n_steps": config.n_steps,
            "gae_lambda": config.gae_lambda,
            "ent_coef": config.ent_coef,
            "vf_coef": config.vf_coef,
            "max_grad_norm": config.max_grad_norm,
            "batch_size": config.batch_size,
            "n_epochs": config.n_epochs,
            "clip_range": config.clip_range,
            "normalize_advantage": True,
            "target_kl": None,
        },
        policy_settings={
            "net_arch": list(config.net),
            "activation_fn": PickledName(f"torch.nn.modules.activation.{ACTIVATIONS[config.activation]}"),
            "log_std_init": config.log_std,
        },
        tensors=parameters.tensors(),
        optimisers={OPTIMISER: _adam_state(adam, learning_rate)},
        stats=stats,
    )
    return save_model(content, path)


def load_native_model(path: Path, parameters: Parameters, adam: AdamState) -> None:
    """Set weights and optimiser to those of a model of PPO. Raises AgentError, or ValueError if the shapes differ."""
    archive = Archive(read_file(path))
    tensors = TensorFile(archive.read(TENSORS))
    names = list(parameters.tensors())
    unknown = set(tensors.names) - set(names)
    if unknown:
        raise ValueError(f"it has the additional tensor {min(unknown)}")
    parameters.load({name: tensors.read(name) for name in tensors.names})
    _restore_adam(TorchFile(archive.read(f"{OPTIMISER}.pth")), adam, names)


def _adam_state(adam: AdamState, learning_rate: float) -> dict[str, Any]:
    """Return the `state_dict` of torch's Adam."""
    first, second = adam.first.tensors(), adam.second.tensors()
    state = new_optimiser(len(first), learning_rate)
    if adam.steps:
        steps = np.array(adam.steps, np.float32)
        state["state"] = {
            number: {"step": steps, "exp_avg": first[name], "exp_avg_sq": second[name]}
            for number, name in enumerate(first)
        }
    return state


def _restore_adam(file: TorchFile, adam: AdamState, names: list[str]) -> None:
    """Set the state of the optimiser. names: its tensors, in the order of stable-baselines3."""
    entries = file.adam(len(names))
    if not entries:  # it has not learned yet, or was exported
        adam.first.flat[...] = adam.second.flat[...] = adam.steps = 0
        return
    for average, key in ((adam.first, "exp_avg"), (adam.second, "exp_avg_sq")):
        average.load({name: entry[key] for name, entry in zip(names, entries, strict=True)})
    adam.steps = int(entries[0]["step"].item())
    if adam.steps < 1 or adam.second.flat.min() < 0.0:
        raise ValueError("its optimiser has negative numbers where there can be none")
