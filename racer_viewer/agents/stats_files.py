"""Files of normalisation statistics: where they are looked for, how they are read and written.

| ending | what |
|---|---|
| `.npz` | our own: everything, nothing pickled, so that learning can go on exactly |
| `.pkl` | stable-baselines3's `VecNormalize.save`; read without running it |
| `.json` | `vecnorm_stats.json` of an export: what is needed to drive |
"""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_viewer.agents.archive import Archive, read_file
from racer_viewer.agents.errors import AgentError, shown
from racer_viewer.agents.pickles import MAX_PICKLE_BYTES
from racer_viewer.agents.stats import Running, Statistics, stats_of
from racer_viewer.agents.vecnormalize import read_vec_normalize

ONNX_STATS = "vecnorm_stats.json"
MAX_STATS_BYTES = MAX_PICKLE_BYTES
DOUBLE = np.dtype("<f8")
NPY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '<f8', 'fortran_order': False, 'shape': \(((?:\d{1,6}, ?)*\d{0,6})\), \} *\n",
    re.DOTALL,
)
NUMBERS = ("clip_obs", "clip_reward", "epsilon", "gamma", "norm_reward")
"""The single numbers of a statistics file, beside the arrays."""


def find_stats(model: Path) -> Path | None:
    """The statistics that lie beside a model, the ones with its own name first; None where there are none.

    For `NAME.zip`: `NAME_vecnormalize.pkl` or `.npz`, for a checkpoint `NAME_500_steps.zip` also
    `NAME_vecnormalize_500_steps.pkl` or `.npz`, then `vecnormalize.pkl` or `.npz`. For an `.onnx` file:
    `vecnorm_stats.json`.
    """
    if model.suffix.lower() == ".onnx":
        names = [ONNX_STATS]
    else:
        stems = [f"{model.stem}_vecnormalize"]
        if checkpoint := re.fullmatch(r"(.+)_(\d+)_steps", model.stem):
            stems.append(f"{checkpoint[1]}_vecnormalize_{checkpoint[2]}_steps")
        names = [f"{stem}{ending}" for stem in (*stems, "vecnormalize") for ending in (".pkl", ".npz")]
    return next((path for name in names if os.path.isfile(path := model.parent / name)), None)


def load_stats(path: str | os.PathLike[str]) -> Statistics:
    """The statistics in a `.npz`, `.pkl` or `.json` file. Nothing in it is executed."""
    file = Path(path)
    readers = {".npz": _read_npz, ".pkl": read_vec_normalize, ".json": _read_json}
    try:
        reader = readers.get(file.suffix.lower())
        if reader is None:
            raise AgentError(f"statistics are a {', '.join(readers)} file")
        return reader(read_file(file, MAX_STATS_BYTES))
    except AgentError as error:
        raise AgentError(f"{file}: {error}") from error


def save_stats(path: str | os.PathLike[str], stats: Any) -> None:
    """Write `Statistics`, or those of a `VecNormalize`, to a `.npz` or `.json` file: all of it or nothing."""
    file = Path(path)
    if not isinstance(stats, Statistics):
        stats = stats_of(stats)
    match file.suffix.lower():
        case ".npz":
            content = _as_npz(stats)
        case ".json":
            content = _as_json(stats)
        case _:
            raise AgentError(f"{file}: statistics are saved as a .npz or .json file")
    _write_atomically(file, content)


def _as_npz(stats: Statistics) -> bytes:
    fields: dict[str, Any] = {name: getattr(stats, name) for name in NUMBERS}
    for prefix, running in (("obs", stats.observations), ("ret", stats.returns)):
        if running is not None:
            fields |= {f"{prefix}_{name}": getattr(running, name) for name in ("mean", "var", "count")}
    arrays: dict[str, Any] = {name: np.array(value, DOUBLE, order="C") for name, value in fields.items()}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _read_npz(data: bytes) -> Statistics:
    archive = Archive(data)
    fields = {name.removesuffix(".npy"): _read_array(archive.read(name, MAX_STATS_BYTES)) for name in archive.names}
    try:
        numbers: dict[str, Any] = {name: float(fields[name]) for name in NUMBERS}
        numbers["norm_reward"] = bool(numbers["norm_reward"])
        return Statistics(_npz_running(fields, "obs"), _npz_running(fields, "ret"), **numbers)
    except KeyError as error:
        raise AgentError(f"has no {shown(error.args[0])}") from error
    except (TypeError, ValueError) as error:
        raise AgentError(f"is damaged ({error})") from error


def _npz_running(fields: Mapping[str, NDArray[np.float64]], prefix: str) -> Running | None:
    if f"{prefix}_mean" not in fields:
        return None
    return Running(fields[f"{prefix}_mean"], fields[f"{prefix}_var"], float(fields[f"{prefix}_count"]))


def _read_array(data: bytes) -> NDArray[np.float64]:
    """A .npy file of doubles, exactly as `_as_npz` writes it."""
    header = NPY_HEADER.match(data)
    if header is None:
        raise AgentError("holds an array that is not of doubles, or damaged")
    shape = tuple(int(size) for size in header[1].split(b",") if size.strip())
    numbers = data[header.end() :]
    if len(numbers) != DOUBLE.itemsize * math.prod(shape):
        raise AgentError("holds an array that is shorter or longer than its shape")
    return np.frombuffer(numbers, DOUBLE).reshape(shape).astype(np.float64)


def _as_json(stats: Statistics) -> bytes:
    if stats.observations is None:
        raise AgentError("observations are not normalised: there are no statistics to write")
    content = {
        "obs_mean": stats.observations.mean.tolist(),
        "obs_var": stats.observations.var.tolist(),
        "clip_obs": stats.clip_obs,
        "epsilon": stats.epsilon,
    }
    return json.dumps(content, indent=2).encode()


def _read_json(data: bytes) -> Statistics:
    try:
        content = json.loads(data)
        mean, var = (np.array(content[name], np.float64) for name in ("obs_mean", "obs_var"))
        clip, epsilon = float(content["clip_obs"]), float(content["epsilon"])
    except KeyError as error:
        raise AgentError(f"has no {shown(error.args[0])}") from error
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise AgentError(f"is not a file of statistics ({error})") from error
    return Statistics(Running(mean, var, 0.0), clip_obs=clip, epsilon=epsilon)


def _write_atomically(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
