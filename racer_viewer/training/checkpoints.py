"""Saving what was learned, so that it is either there as a whole or as it was before, and going on from it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.vec_env import VecNormalize

from racer_env.errors import RacerError
from racer_viewer.agents import load_agent, load_stats, restore_stats, save_stats
from racer_viewer.folders import written_whole
from racer_viewer.training.learner import Model
from racer_viewer.training.saved import CONFIG_FILE, Checkpoint, ResumeError


def save_checkpoint(model: Model, env: VecNormalize, path: Path) -> Path:
    """Write NAME.zip and beside it NAME_vecnormalize.npz, the statistics first: no model is ever without them."""
    save_stats(path.with_name(f"{path.stem}_vecnormalize.npz"), env)
    with written_whole(path) as temporary:
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
