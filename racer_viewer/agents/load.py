"""From a file to an agent."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from racer_viewer.agents.agent import Agent, AgentInfo
from racer_viewer.agents.archive import Archive, read_file
from racer_viewer.agents.build import build_policy
from racer_viewer.agents.bundled import models_folder
from racer_viewer.agents.description import MAX_DESCRIPTION_BYTES, SUPPORTED, read_description
from racer_viewer.agents.errors import AgentError
from racer_viewer.agents.onnx_policy import OnnxPolicy
from racer_viewer.agents.policies import Policy
from racer_viewer.agents.spaces import OBSERVATION_SIZE
from racer_viewer.agents.stats import Normaliser
from racer_viewer.agents.stats_files import find_stats, load_stats
from racer_viewer.agents.tensors import TensorFile

DESCRIPTION, TENSORS = "data", "policy.pth"
"""The two members of a model's archive that are read."""


def load_agent(path: str | os.PathLike[str], stats: str | os.PathLike[str] | None = None) -> Agent:
    """A PPO or SAC model of stable-baselines3 (`.zip`), or an exported one (`.onnx`), as an agent.

    stats: the file of its normalisation, `.pkl`, `.npz` or `.json`; None looks for it beside the model (see
        `find_stats`). Without any the agent takes observations as they are, and says so (`normalised`).

    Nothing in the files is executed, and neither torch nor stable-baselines3 is needed. What cannot be used is an
    `AgentError`.
    """
    file = _model_file(Path(path))
    stats_path = find_stats(file) if stats is None else Path(stats)
    normaliser = None if stats_path is None else _load_normaliser(stats_path)
    try:
        data = read_file(file)
        info = _file_info(file, stats_path, len(data))
        load = _load_onnx if file.suffix.lower() == ".onnx" else _load_zip
        policy, info = load(data, info)
    except AgentError as error:
        raise AgentError(f"{file}: {error}") from error
    return Agent(info, policy, normaliser)


def _model_file(path: Path) -> Path:
    """The path, with `.zip` where that was left out; a bare name that is no file here may be a bundled model."""
    if os.path.exists(path) or not path.name:
        return path
    folders = (path.parent, models_folder()) if len(path.parts) == 1 else (path.parent,)
    names = (f"{path.name}.zip", path.name)
    return next((folder / name for folder in folders for name in names if os.path.isfile(folder / name)), path)


def _load_normaliser(path: Path) -> Normaliser | None:
    stats = load_stats(path)
    if stats.observations is None:
        return None
    if stats.observations.mean.shape != (OBSERVATION_SIZE,):
        raise AgentError(
            f"{path}: is of observations of shape {stats.observations.mean.shape}; "
            f"a racing agent takes {OBSERVATION_SIZE}"
        )
    return Normaliser(stats)


def _file_info(file: Path, stats_path: Path | None, file_bytes: int) -> AgentInfo:
    try:
        modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except (OSError, OverflowError, ValueError) as error:
        raise AgentError(f"cannot be read: {error}") from error
    return AgentInfo(name=file.stem, path=file, file_bytes=file_bytes, modified=modified, stats_path=stats_path)


def _load_zip(data: bytes, info: AgentInfo) -> tuple[Policy, AgentInfo]:
    archive = Archive(data)
    if not {DESCRIPTION, TENSORS} <= set(archive.names):
        raise AgentError(f"is a zip file, but not a model of stable-baselines3; {SUPPORTED}")
    description = read_description(archive.read(DESCRIPTION, MAX_DESCRIPTION_BYTES))
    tensors = archive.read(TENSORS)
    try:
        with np.errstate(over="ignore"):
            policy, numbers = build_policy(TensorFile(tensors), description)
    except AgentError as error:
        raise AgentError(f"{TENSORS}: {error}") from error
    return policy, info.of_policy(policy, description, numbers)


def _load_onnx(data: bytes, info: AgentInfo) -> tuple[Policy, AgentInfo]:
    return OnnxPolicy(data), replace(info, algorithm="ONNX")
