"""The agents that come with the app.

From a file to an agent.

Agents from arrays that are in memory already: the policies that a run keeps while it learns."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from racer_viewer.agents.agent import Agent, AgentInfo
from racer_viewer.agents.archive import AgentError, Archive, read_file, shown
from racer_viewer.agents.networks import Floats
from racer_viewer.agents.onnx_policy import OnnxPolicy
from racer_viewer.agents.pickles import TensorFile
from racer_viewer.agents.policies import OBSERVATION_SIZE, Policy
from racer_viewer.agents.sb3_model import (
    MAX_DESCRIPTION_BYTES,
    SUPPORTED,
    ModelDescription,
    build_policy,
    read_description,
)
from racer_viewer.agents.stats import Normaliser, Statistics
from racer_viewer.agents.stats_files import find_stats, load_stats

_PACKAGED = Path(__file__).parent.parent / "models"
_IN_REPOSITORY = Path(__file__).parents[2] / "models"

CHAMPION = "champion"
"""The one that drives everywhere."""


class _Facts(msgspec.Struct, frozen=True):
    """What models.json says of a model."""

    tracks: tuple[str, ...]


def models_folder() -> Path:
    """Inside the package once it is installed, at the top of the repository while it is worked on."""
    return _PACKAGED if _PACKAGED.is_dir() else _IN_REPOSITORY


def bundled_models() -> list[Path]:
    """The champion first, the others by name."""
    return sorted(models_folder().glob("*.zip"), key=lambda path: (path.stem != CHAMPION, path.stem))


@cache
def bundled_tracks() -> dict[str, tuple[str, ...]]:
    """Ids of the circuits that each bundled model was trained on, by the model's name."""
    facts = msgspec.json.decode((models_folder() / "models.json").read_bytes(), type=dict[str, _Facts])
    return {name: each.tracks for name, each in facts.items()}


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


@dataclass(frozen=True, eq=False)
class ArrayTensors:
    """Tensors by name."""

    arrays: Mapping[str, Floats]

    @property
    def names(self) -> Collection[str]:
        return self.arrays.keys()

    def read(self, name: str) -> Floats:
        numbers = np.array(self.arrays[name], np.float32, order="C")
        if not np.isfinite(numbers).all():
            raise AgentError(f"its tensor {shown(name)} holds numbers that are not finite: the training went astray")
        return numbers


def agent_of_arrays(
    arrays: Mapping[str, Floats], description: ModelDescription, stats: Statistics, info: AgentInfo
) -> Agent:
    """The agent that these tensors and this normalisation are; `info` tells where they are from."""
    with np.errstate(over="ignore"):
        policy, numbers = build_policy(ArrayTensors(arrays), description)
    info = info.of_policy(policy, description, numbers)
    return Agent(info, policy, None if stats.observations is None else Normaliser(stats))
