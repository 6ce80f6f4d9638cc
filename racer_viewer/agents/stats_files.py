"""Files of normalisation statistics: search, reading and writing. Nothing in them is executed.

| suffix | content |
|---|---|
| `.npz` | format of racer-viewer: complete and not pickled, so that training resumes exactly |
| `.pkl` | `VecNormalize.save` of stable-baselines3 |
| `.json` | `vecnorm_stats.json` of an export: only what driving needs |
| `.zip` | a model that contains its statistics, as racer-viewer writes it |
"""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_viewer.agents import pickles
from racer_viewer.agents.archive import AgentError, Archive, read_file, shown
from racer_viewer.agents.pickle_writer import write_zip
from racer_viewer.agents.pickles import PickledObject, read_pickle
from racer_viewer.agents.stats import RunningStats, Statistics, stats_of
from racer_viewer.paths import atomic_write

VEC_NORMALIZE = "stable_baselines3.common.vec_env.vec_normalize.VecNormalize"
RUNNING_MEAN_STD = "stable_baselines3.common.running_mean_std.RunningMeanStd"
SPACES = frozenset(
    f"{package}.spaces.{space}"
    for package in ("gymnasium", "gym")
    for space in ("box.Box", "dict.Dict", "discrete.Discrete", "multi_discrete.MultiDiscrete")
)
RANDOM = frozenset(
    f"numpy.random.{name}"
    for name in (
        "_pickle.__generator_ctor", "_pickle.__bit_generator_ctor", "_pickle.__randomstate_ctor",
        "_pcg64.PCG64", "_pcg64.PCG64DXSM", "_mt19937.MT19937", "_philox.Philox", "_sfc64.SFC64",
        "bit_generator.SeedSequence", "bit_generator.__pyx_unpickle_SeedSequence",
    )
)  # fmt: skip
SEEDING = frozenset(f"gym.utils.seeding.RandomNumberGenerator{method}" for method in ("", "._generator_ctor"))
ALLOWED = frozenset(
    (VEC_NORMALIZE, RUNNING_MEAN_STD, "collections.OrderedDict", *SPACES, *RANDOM, *SEEDING, *pickles.ALLOWED_IN_ARRAYS)
)
"""Names in files of stable-baselines3 1.7 to 2.9 with numpy 1 and 2, gym and gymnasium."""


ONNX_STATS = "vecnorm_stats.json"
ZOO_STATS = "vecnormalize.pkl"
"""Name of the statistics of rl_zoo3, in a folder with the name of the environment."""
STATS_MEMBER = "vecnormalize.npz"
"""Member of a model's zip file that holds its statistics; stable-baselines3 ignores it."""
MAX_STATS_BYTES = 4 * 2**20
"""Maximum size of a statistics file [bytes]."""
DOUBLE = np.dtype("<f8")
NPY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '<f8', 'fortran_order': False, 'shape': \(((?:\d{1,6}, ?)*\d{0,6})\), \} *\n",
    re.DOTALL,
)
NUMBERS = ("clip_obs", "clip_reward", "epsilon", "gamma", "norm_reward")
"""Scalar settings in a statistics file, beside the arrays."""
RUNNING = [f"{prefix}_{name}" for prefix in ("obs", "ret") for name in ("mean", "var", "count")]
"""Arrays in a statistics file."""
MAX_ARRAY_BYTES = 2**20
"""Maximum size of an array in a statistics file [bytes]."""


def read_vec_normalize(data: bytes) -> Statistics:
    """Return the statistics in a saved `VecNormalize`."""
    content = read_pickle(data, ALLOWED)
    if not isinstance(content, PickledObject) or content.name != VEC_NORMALIZE or not isinstance(content.state, dict):
        raise AgentError("is a pickle, but not of a VecNormalize")
    fields = content.state
    try:
        normalises = bool(fields["norm_obs"])
        return stats_of(
            SimpleNamespace(
                norm_obs=normalises,
                obs_rms=_running(fields["obs_rms"]) if normalises else None,
                ret_rms=_running(fields["ret_rms"]),
                norm_reward=bool(fields["norm_reward"]),
                **{name: pickles.to_floats(fields[name]) for name in ("clip_obs", "clip_reward", "epsilon", "gamma")},
            )
        )
    except KeyError as error:
        raise AgentError(f"is a VecNormalize without {shown(error.args[0])}") from error
    except (TypeError, ValueError, OverflowError, LookupError) as error:
        raise AgentError(f"is a VecNormalize that is damaged ({shown(str(error))})") from error


def _running(value: Any) -> Any:
    """Return the statistics of one input; those of several inputs, a dict, unchanged for `stats_of` to refuse."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, PickledObject) or value.name != RUNNING_MEAN_STD or not isinstance(value.state, dict):
        raise TypeError("no running mean and variance")
    numbers = {name: pickles.to_floats(value.state[name]) for name in ("mean", "var", "count")}
    return SimpleNamespace(**numbers)


def find_stats(model: Path) -> Path | None:
    """Return the file with the statistics of a model, or None.

    `NAME.zip`: the model itself if it contains them; `NAME_vecnormalize.pkl` or `.npz`; for a checkpoint
    `NAME_500_steps.zip` also `NAME_vecnormalize_500_steps.pkl` or `.npz`; then `vecnormalize.pkl` or `.npz`, and the
    place of rl_zoo3, `NAME/vecnormalize.pkl` or the only `*/vecnormalize.pkl`.
    `.onnx` file: `vecnorm_stats.json`.
    """
    if has_stats(model):
        return model
    if model.suffix.lower() == ".onnx":
        names = [ONNX_STATS]
    else:
        stems = [f"{model.stem}_vecnormalize"]
        if checkpoint := re.fullmatch(r"(.+)_(\d+)_steps", model.stem):
            stems.append(f"{checkpoint[1]}_vecnormalize_{checkpoint[2]}_steps")
        names = [f"{stem}{ending}" for stem in (*stems, "vecnormalize") for ending in (".pkl", ".npz")]
    beside = next((path for name in names if os.path.isfile(path := model.parent / name)), None)
    return beside or (_find_zoo_stats(model) if model.suffix.lower() == ".zip" else None)


def has_stats(model: Path) -> bool:
    """Return True for a model file that contains its statistics."""
    if model.suffix.lower() != ".zip":
        return False
    try:
        return STATS_MEMBER in Archive(read_file(model)).names
    except AgentError:
        return False


def _find_zoo_stats(model: Path) -> Path | None:
    named = model.with_suffix("") / ZOO_STATS
    if os.path.isfile(named):
        return named
    try:
        found = list(model.parent.glob(f"*/{ZOO_STATS}"))
    except OSError:
        return None
    return found[0] if len(found) == 1 else None


def load_stats(path: str | os.PathLike[str]) -> Statistics:
    """Load the statistics in a `.npz`, `.pkl` or `.json` file, or in a model that contains them. Raises AgentError."""
    file = Path(path)
    readers = {".npz": _read_npz, ".pkl": read_vec_normalize, ".json": _read_json}
    try:
        if file.suffix.lower() == ".zip":
            return _read_npz(Archive(read_file(file)).read(STATS_MEMBER, MAX_STATS_BYTES))
        reader = readers.get(file.suffix.lower())
        if reader is None:
            raise AgentError(f"statistics must be a {', '.join(readers)} file")
        return reader(read_file(file, MAX_STATS_BYTES))
    except AgentError as error:
        raise AgentError(f"{file}: {error}") from error


def save_stats(path: str | os.PathLike[str], stats: Any) -> None:
    """Write `Statistics`, or those of a `VecNormalize`, to a `.npz` or `.json` file atomically."""
    file = Path(path)
    if not isinstance(stats, Statistics):
        stats = stats_of(stats)
    match file.suffix.lower():
        case ".npz":
            content = stats_npz(stats)
        case ".json":
            content = _as_json(stats)
        case _:
            raise AgentError(f"{file}: statistics must be saved as a .npz or .json file")
    with atomic_write(file) as temporary:
        temporary.write_bytes(content)


def stats_npz(stats: Statistics) -> bytes:
    """Return the content of a `.npz` file of statistics."""
    fields: dict[str, Any] = {name: getattr(stats, name) for name in NUMBERS}
    for prefix, running in (("obs", stats.observations), ("ret", stats.returns)):
        if running is not None:
            fields |= {f"{prefix}_{name}": getattr(running, name) for name in ("mean", "var", "count")}
    arrays: dict[str, Any] = {name: np.array(value, DOUBLE, order="C") for name, value in fields.items()}
    return write_zip({f"{name}.npy": _npy(array) for name, array in arrays.items()})


def _npy(array: NDArray[np.float64]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _read_npz(data: bytes) -> Statistics:
    archive = Archive(data)
    names = [name for name in (*NUMBERS, *RUNNING) if f"{name}.npy" in archive.names]
    fields = {name: _read_array(archive.read(f"{name}.npy", MAX_ARRAY_BYTES)) for name in names}
    try:
        numbers: dict[str, Any] = {name: float(fields[name]) for name in NUMBERS}
        numbers["norm_reward"] = bool(numbers["norm_reward"])
        return Statistics(_npz_running(fields, "obs"), _npz_running(fields, "ret"), **numbers)
    except KeyError as error:
        raise AgentError(f"has no {shown(error.args[0])}") from error
    except (TypeError, ValueError) as error:
        raise AgentError(f"is damaged ({error})") from error


def _npz_running(fields: Mapping[str, NDArray[np.float64]], prefix: str) -> RunningStats | None:
    if f"{prefix}_mean" not in fields:
        return None
    return RunningStats(fields[f"{prefix}_mean"], fields[f"{prefix}_var"], float(fields[f"{prefix}_count"]))


def _read_array(data: bytes) -> NDArray[np.float64]:
    """Read a .npy file of doubles as written by `stats_npz`."""
    header = NPY_HEADER.match(data)
    if header is None:
        raise AgentError("holds an array that is not of doubles, or is damaged")
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
    return Statistics(RunningStats(mean, var, 0.0), clip_obs=clip, epsilon=epsilon)
