"""Policy log: the policies of a run at many steps, as raw arrays in one file. Nothing in it is executed.

A record is a policy's normalisation (means, then variances, as doubles) and its tensors (as single floats), in the
order of the layout that precedes it in the run log. SAC's critics are left out, since driving does not need them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from racer_env.errors import os_reason
from racer_viewer.agents import Agent, AgentError, AgentInfo, RunningStats, Statistics, agent_of_arrays
from racer_viewer.agents.policies import OBSERVATION_SIZE
from racer_viewer.agents.sb3_model import CRITICS, DEFAULT_CLIP_MEAN, ModelDescription
from racer_viewer.paths import open_regular
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.run_log_reader import NETWORK

POLICIES_FILE = "policies.bin"
MAX_FILE_SIZE = 64 * 2**20
"""Maximum size of the file [bytes], independent of the length of the run."""
THINNING = 4
"""Factor by which fewer policies are logged whenever half of the remaining file is used."""

ACTIVATIONS = {"tanh": "Tanh", "relu": "ReLU"}
"""Names of torch.nn for the activations of a run's config."""
_FLOAT, _DOUBLE = np.dtype("<f4"), np.dtype("<f8")
_STATISTICS = 2 * OBSERVATION_SIZE


@dataclass(frozen=True)
class PolicyLayout:
    """Content of the policy records.

    algorithm: "ppo" or "sac".
    activation: as in the run's config.
    clip_obs, epsilon: settings of the normalisation.
    tensors: maps tensor name to shape.
    """

    algorithm: str
    activation: str
    clip_obs: float
    epsilon: float
    tensors: Mapping[str, tuple[int, ...]]

    @property
    def size(self) -> int:
        """Size of a record [bytes]."""
        numbers = sum(math.prod(shape) for shape in self.tensors.values())
        return _STATISTICS * _DOUBLE.itemsize + numbers * _FLOAT.itemsize

    def to_json(self) -> dict[str, Any]:
        return {"what": NETWORK, **self.__dict__}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> PolicyLayout:
        tensors = {str(name): tuple(int(size) for size in shape) for name, shape in content["tensors"].items()}
        clip, epsilon = float(content["clip_obs"]), float(content["epsilon"])
        return cls(str(content["algorithm"]), str(content["activation"]), clip, epsilon, tensors)

    def encode(self, tensors: Mapping[str, NDArray[Any]], mean: NDArray[Any], var: NDArray[Any]) -> bytes:
        parts = [mean.astype(_DOUBLE).tobytes(), var.astype(_DOUBLE).tobytes()]
        return b"".join(parts + [tensors[name].astype(_FLOAT, copy=False).tobytes() for name in self.tensors])

    def decode(self, record: bytes, steps: int, info: AgentInfo) -> Agent:
        """Return the agent of a record."""
        mean, var = np.frombuffer(record, _DOUBLE, _STATISTICS).astype(np.float64).reshape(2, -1)
        arrays, position = {}, _STATISTICS * _DOUBLE.itemsize
        for name, shape in self.tensors.items():
            count = math.prod(shape)
            arrays[name] = np.frombuffer(record, _FLOAT, count, position).astype(np.float32).reshape(shape)
            position += count * _FLOAT.itemsize
        stats = Statistics(RunningStats(mean, var, 0.0), clip_obs=self.clip_obs, epsilon=self.epsilon)
        return agent_of_arrays(arrays, self._description(steps), stats, info)

    def _description(self, steps: int) -> ModelDescription:
        return ModelDescription(
            algorithm="SAC" if self.algorithm == "sac" else "PPO",
            activation=ACTIVATIONS[self.activation],
            squash_output=False,
            use_expln=False,
            clip_mean=DEFAULT_CLIP_MEAN,
            action_low=None,
            action_high=None,
            timesteps=steps,
        )


def driving_tensors(state: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the tensors of a torch policy's state that driving needs, as arrays that share their memory."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in state.items() if not name.startswith(CRITICS)}


class PolicyLog:
    """Writer of a policy log. As the file grows, fewer policies are logged.

    every: one of so many offered policies is logged at first.
    """

    def __init__(self, folder: Path, run_log: RunLog, layout: PolicyLayout, every: int = 1) -> None:
        self._path, self._run_log, self.layout = folder / POLICIES_FILE, run_log, layout
        self._size = self._path.stat().st_size if self._path.is_file() else 0
        self._file: BinaryIO | None = None
        self._every, self._limit = every, (self._size + MAX_FILE_SIZE) // 2
        """File size at which `_every` grows [bytes]."""
        self._offered = 0
        run_log.network(layout.to_json())

    def offer(self, make: Callable[[], bytes], steps: int) -> bool:
        """Log the policy if it is its turn, and return True then. make: returns the record; called only if needed."""
        self._offered += 1
        if (self._offered - 1) % self._every:
            return False
        self.keep(make(), steps)
        return True

    def keep(self, record: bytes, steps: int) -> None:
        """Write a policy. A full disk is logged as a problem and does not end the run."""
        if self._size + len(record) > MAX_FILE_SIZE:
            return
        try:
            if self._file is None:
                self._path.touch()
                self._file = self._path.open("r+b", buffering=0)
            self._file.seek(self._size)
            self._file.write(record)
        except OSError as error:
            self._run_log.event("problem", f"could not save a policy: {os_reason(error)}; the run continues", steps)
            return
        self._run_log.policy(steps, self._size)
        self._size += len(record)
        if self._size > self._limit:
            self._every *= THINNING
            self._limit = (self._size + MAX_FILE_SIZE) // 2

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def load_policy(folder: Path, content: Mapping[str, Any], steps: int, offset: int) -> Agent:
    """Load a logged policy as an agent. content: its layout in the run log; offset: start of its record."""
    path = folder / POLICIES_FILE
    try:
        layout = PolicyLayout.from_json(content)
        if layout.size > MAX_FILE_SIZE:
            raise ValueError(f"it would have {layout.size:,} bytes")
        with open_regular(path) as file:
            file.seek(offset)
            record = file.read(layout.size)
        modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        info = AgentInfo(f"{folder.name} at {steps:,}", path, layout.size, modified, stats_path=path)
        return layout.decode(record, steps, info)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise AgentError(f"{path}: the policy at {steps:,} steps cannot be read ({os_reason(error)})") from error
