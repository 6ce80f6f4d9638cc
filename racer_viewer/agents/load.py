"""Loading of agents: from a model file, from the bundled models, or from arrays in memory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np

from racer_env.errors import os_reason, suggestion
from racer_viewer.agents.agent import Agent, AgentInfo
from racer_viewer.agents.archive import AgentError, Archive, check_is_file, read_file, shown
from racer_viewer.agents.networks import Floats
from racer_viewer.agents.onnx_policy import MAX_ONNX_BYTES, OnnxPolicy
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
"""Name of the bundled model that drives on every circuit."""
DESCRIPTION, TENSORS = "data", "policy.pth"
"""Members of a model's archive that are read."""


MAX_COMPARED = 1000
"""Maximum number of models in a folder whose names are compared with one that does not exist."""


class MissingStatisticsWarning(UserWarning):
    """A model was trained with normalised observations, but its statistics were not found."""


class _BundledModel(msgspec.Struct, frozen=True):
    """Entry of models.json."""

    tracks: tuple[str, ...]
    author_of: tuple[str, ...] = ()
    """Circuits on which it has the best clean lap of all bundled models."""


def models_folder() -> Path:
    """Return the folder of the bundled models: in the installed package, or at the top of a source checkout."""
    return _PACKAGED if _PACKAGED.is_dir() else _IN_REPOSITORY


def bundled_models() -> list[Path]:
    """Return the bundled models: the champion first, the others by name."""
    return sorted(models_folder().glob("[!.]*.zip"), key=lambda path: (path.stem != CHAMPION, path.stem))


@cache
def bundled_tracks() -> dict[str, tuple[str, ...]]:
    """Return the ids of the circuits that each bundled model was trained on, by model name."""
    facts = msgspec.json.decode((models_folder() / "models.json").read_bytes(), type=dict[str, _BundledModel])
    return {name: each.tracks for name, each in facts.items()}


@cache
def bundled_authors() -> dict[str, Path]:
    """Return the bundled model with the best clean lap on each bundled circuit, by the circuit's id."""
    facts = msgspec.json.decode((models_folder() / "models.json").read_bytes(), type=dict[str, _BundledModel])
    return {track: models_folder() / f"{name}.zip" for name, each in facts.items() for track in each.author_of}


def load_agent(path: str | os.PathLike[str], stats: str | os.PathLike[str] | None = None) -> Agent:
    """Load a model of stable-baselines3 (`.zip`) or an exported one (`.onnx`). Raises AgentError.

    stats: file of its normalisation statistics, `.pkl`, `.npz` or `.json`; None looks for it in and beside the model
        (see `find_stats`). Without statistics the agent uses raw observations (`normalised` is False); a
        MissingStatisticsWarning is issued if the model was trained with normalised ones.

    Nothing in the files is executed. Neither torch nor stable-baselines3 is needed.
    """
    file = _model_file(Path(path))
    stats_path = find_stats(file) if stats is None else Path(stats)
    normaliser = None if stats_path is None else _load_normaliser(stats_path)
    if not os.path.exists(file):
        raise AgentError(f"{file}: {_missing(file)}")
    try:
        load = _load_onnx if file.suffix.lower() == ".onnx" else _load_zip
        policy, info = load(file, _file_info(file, stats_path))
    except AgentError as error:
        raise AgentError(f"{file}: {error}") from error
    if info.problem is not None:
        hint = f"put {info.name}_vecnormalize.pkl beside it, or name the file of its statistics"
        warnings.warn(f"{info.problem}: {hint}", MissingStatisticsWarning, stacklevel=2)
    return Agent(info, policy, normaliser)


def _model_file(path: Path) -> Path:
    """Resolve a path: add a missing `.zip`, and look up a bare name among the bundled models."""
    if os.path.exists(path) or not path.name:
        return path
    folders = (path.parent, models_folder()) if len(path.parts) == 1 else (path.parent,)
    names = (f"{path.name}.zip", path.name)
    return next((folder / name for folder in folders for name in names if os.path.isfile(folder / name)), path)


def _missing(file: Path) -> str:
    """Say that there is no such model, and which one of the same folder may be meant."""
    if len(file.parts) == 1:
        names = [path.stem for path in bundled_models()]
        return f"there is no such file or bundled model; {suggestion(file.stem, names)}"
    with suppress(OSError):
        there = islice((path.stem for path in file.parent.iterdir() if path.suffix in (".zip", ".onnx")), MAX_COMPARED)
        return f"there is no such file; {suggestion(file.stem, there, ' ')}".rstrip("; ")
    return "there is no such file"


def _load_normaliser(path: Path) -> Normaliser | None:
    stats = load_stats(path)
    if stats.observations is None:
        return None
    if stats.observations.mean.shape != (OBSERVATION_SIZE,):
        raise AgentError(
            f"{path}: has statistics of observations of shape {stats.observations.mean.shape}; "
            f"a racing agent takes {OBSERVATION_SIZE}"
        )
    return Normaliser(stats)


def _file_info(file: Path, stats_path: Path | None) -> AgentInfo:
    check_is_file(file)
    try:
        status = file.stat()
        modified = datetime.fromtimestamp(status.st_mtime, UTC)
    except (OSError, OverflowError, ValueError) as error:
        raise AgentError(f"cannot be read: {os_reason(error)}") from error
    return AgentInfo(file.stem, file, status.st_size, modified, stats_path)


def _load_zip(file: Path, info: AgentInfo) -> tuple[Policy, AgentInfo]:
    archive = Archive(read_file(file))
    if not {DESCRIPTION, TENSORS} <= set(archive.names):
        raise AgentError(f"is a zip file, but not a model of stable-baselines3; {SUPPORTED}")
    description = read_description(archive.read(DESCRIPTION, MAX_DESCRIPTION_BYTES))
    tensors = archive.read(TENSORS)
    del archive  # the file may be large; only its tensors are needed from here on
    try:
        with np.errstate(over="ignore"):
            policy, numbers = build_policy(TensorFile(tensors), description)
    except AgentError as error:
        raise AgentError(f"{TENSORS}: {error}") from error
    return policy, info.of_policy(policy, description, numbers)


def _load_onnx(file: Path, info: AgentInfo) -> tuple[Policy, AgentInfo]:
    return OnnxPolicy(read_file(file, MAX_ONNX_BYTES)), replace(info, algorithm="ONNX")


@dataclass(frozen=True, eq=False)
class ArrayTensors:
    """Tensors in memory, by name."""

    arrays: Mapping[str, Floats]

    @property
    def names(self) -> Collection[str]:
        return self.arrays.keys()

    def read(self, name: str) -> Floats:
        numbers = np.array(self.arrays[name], np.float32, order="C")
        if not np.isfinite(numbers).all():
            raise AgentError(f"its tensor {shown(name)} holds numbers that are not finite: the training diverged")
        return numbers


def agent_of_arrays(
    arrays: Mapping[str, Floats], description: ModelDescription, stats: Statistics, info: AgentInfo
) -> Agent:
    """Make an agent from tensors and statistics. info: name and origin of the agent."""
    with np.errstate(over="ignore"):
        policy, numbers = build_policy(ArrayTensors(arrays), description)
    info = info.of_policy(policy, description, numbers)
    return Agent(info, policy, None if stats.observations is None else Normaliser(stats))
