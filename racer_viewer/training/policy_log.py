"""The policies that a run keeps while it learns, one after the other in one file: raw arrays, nothing to execute.

A record is a policy's normalisation (means, then variances, as doubles) and then its tensors (as single floats), in the
order of the layout that stands in the story before it. SAC's critics are left out: driving does not need them.
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

from racer_viewer.agents import Agent, AgentError, AgentInfo, RunningStats, Statistics, agent_of_arrays
from racer_viewer.agents.policies import OBSERVATION_SIZE
from racer_viewer.agents.sb3_model import CRITICS, DEFAULT_CLIP_MEAN, ModelDescription
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.run_log_reader import NETWORK

POLICIES_FILE = "policies.bin"

MOST_BYTES = 64 * 2**20
"""Of the file, however long the run."""
THINNING = 4
"""Whenever half of what was left of the file is full, only every so-manieth policy of before is kept."""

ACTIVATIONS = {"tanh": "Tanh", "relu": "ReLU"}
"""From a run's config to the names of torch."""
_FLOAT, _DOUBLE = np.dtype("<f4"), np.dtype("<f8")
_STATISTICS = 2 * OBSERVATION_SIZE


@dataclass(frozen=True)
class PolicyLayout:
    """What the records are made of.

    algorithm: "ppo" or "sac"; activation: as in the run's config; clip_obs, epsilon: of the normalisation; tensors: the
    shape of each by its name.
    """

    algorithm: str
    activation: str
    clip_obs: float
    epsilon: float
    tensors: Mapping[str, tuple[int, ...]]

    @property
    def size(self) -> int:
        """Bytes of a record."""
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
        """The agent of a record."""
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
    """Of a torch policy's state those that driving needs, as arrays that share their memory."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in state.items() if not name.startswith(CRITICS)}


class PolicyLog:
    """Appends policies to the file; fewer and fewer of them when it gets large.

    every: of so many that are offered one is kept, at first.
    """

    def __init__(self, folder: Path, story: RunLog, layout: PolicyLayout, every: int = 1) -> None:
        self._path, self._story, self.layout = folder / POLICIES_FILE, story, layout
        self._size = self._path.stat().st_size if self._path.is_file() else 0
        self._file: BinaryIO | None = None
        self._every, self._limit = every, (self._size + MOST_BYTES) // 2
        """How many of those that are offered are kept, until the file has so many bytes."""
        self._seen = 0
        story.network(layout.to_json())

    def offer(self, make: Callable[[], bytes], steps: int) -> bool:
        """A new policy: keep it if it is one of those to keep. The record is made only then."""
        self._seen += 1
        if (self._seen - 1) % self._every:
            return False
        self.keep(make(), steps)
        return True

    def keep(self, record: bytes, steps: int) -> None:
        """Write a policy; a full disk does not end the run."""
        if self._size + len(record) > MOST_BYTES:
            return
        try:
            if self._file is None:
                self._path.touch()
                self._file = self._path.open("r+b", buffering=0)
            self._file.seek(self._size)
            self._file.write(record)
        except OSError as error:
            self._story.event("problem", f"could not keep a policy: {error.strerror or error}; the run goes on", steps)
            return
        self._story.policy(steps, self._size)
        self._size += len(record)
        if self._size > self._limit:
            self._every *= THINNING
            self._limit = (self._size + MOST_BYTES) // 2

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def load_policy(folder: Path, content: Mapping[str, Any], steps: int, offset: int) -> Agent:
    """The agent of a kept policy, by the layout in the story and where its record begins."""
    path = folder / POLICIES_FILE
    try:
        layout = PolicyLayout.from_json(content)
        with path.open("rb") as file:
            file.seek(offset)
            record = file.read(layout.size)
        modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        info = AgentInfo(f"{folder.name} at {steps:,}", path, layout.size, modified, stats_path=path)
        return layout.decode(record, steps, info)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AgentError(f"{path}: its policy of {steps:,} steps cannot be read ({error})") from error
