"""Environments with behaviour that a host must cope with. Importing this module registers them."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

START = 5
"""Number of the first action in the environment's action space."""


class OddEnv(gymnasium.Env[Any, Any]):
    """Environment whose actions are oddities; close() creates the file `closed_file`."""

    def __init__(self, closed_file: str | None = None) -> None:
        print("made")
        self.observation_space = spaces.Box(-1.0, np.array([1.0, np.inf]), dtype=np.float64)
        self.action_space = spaces.Discrete(len(self.oddities()), start=START)
        self._closed_file = closed_file

    def oddities(self) -> list[Any]:
        return [self.print, self.write, self.from_c, self.child, self.read, self.fail, self.leave, self.nan, self.flat,
                self.no_reward, self.five]  # fmt: skip

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.array([0.1, 1e300]), self._info() | {"options": options}

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward = np.array([0.1, 1 / 3]), 0.5
        changed = self.oddities()[action - START]()
        if isinstance(changed, tuple):
            observation, reward = changed
        return observation, np.float32(reward), np.bool_(action == START), False, self._info()

    def close(self) -> None:
        print("closed")
        if self._closed_file is not None:
            Path(self._closed_file).write_text("closed", encoding="utf-8")
        raise RuntimeError("and it fails at that")

    def print(self) -> None:
        print('{"ok":true}')

    def write(self) -> None:
        os.write(1, b'{"ok":false}\n')

    def from_c(self) -> None:
        """Print into the buffer of C, which is written when the process exits."""
        if sys.platform != "win32":
            ctypes.CDLL(None).printf(b"from C\n")

    def child(self) -> None:
        subprocess.run([sys.executable, "-I", "-S", "-c", "print('from a child')"], check=True)

    def read(self) -> None:
        assert sys.stdin.read() == ""

    def fail(self) -> None:
        raise KeyError("no\nsuch \udcff thing")

    def leave(self) -> None:
        sys.exit("enough")

    def nan(self) -> Any:
        return np.array([0.0, np.nan]), 0.0

    def flat(self) -> Any:
        return np.zeros(3), 0.0

    def no_reward(self) -> Any:
        return np.zeros(2), np.inf

    def five(self) -> Any:
        return [0.25, 5], 5

    def _info(self) -> dict[str, Any]:
        endless: list[Any] = []
        endless.append(endless)
        return {
            "number": np.float32(0.5), "array": np.arange(3), "nested": {"a": (1, None), "b": object()}, 3: "no text",
            "nan": np.nan, "some": [1.0, np.inf], "large": 2**70, "odd": "\udcff", "endless": endless, "self": self,
        }  # fmt: skip


class ArraysEnv(gymnasium.Env[Any, Any]):
    """Environment with array actions; an observation is the action, or an image that is not contiguous."""

    def __init__(self, space: str = "choices") -> None:
        self.action_space = {
            "choices": spaces.MultiDiscrete([3, 4], start=[0, 10]),
            "switches": spaces.MultiBinary([2, 2]),
            "box": spaces.Box(np.array([-1.0, -np.inf]), np.array([1.0, np.inf]), dtype=np.float32),
        }[space]
        self.observation_space = spaces.Box(0, 255, (4, 5, 3), np.uint8) if space == "box" else self.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._observation(self.action_space.sample()), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), repr(action)
        return self._observation(action), 0.0, False, False, {}

    def _observation(self, action: Any) -> Any:
        if self.observation_space is self.action_space:
            return action
        return np.arange(60, dtype=np.uint8).reshape(3, 5, 4).T


class DictEnv(gymnasium.Env[Any, Any]):
    observation_space = spaces.Dict({"a": spaces.Discrete(2)})
    action_space = spaces.Discrete(2)


class NeedsBox2D(gymnasium.Env[Any, Any]):
    def __init__(self, cause: str | None = None, needs: str = "Box2D") -> None:
        missing = ModuleNotFoundError("No module named 'Box2D'", name="Box2D")
        raise gymnasium.error.DependencyNotInstalled(
            f'{needs} is not installed, run `pip install "gymnasium[box2d]"`'
        ) from (missing if cause is None else ImportError(cause))


for name, kind in (("Odd", OddEnv), ("Arrays", ArraysEnv), ("Dict", DictEnv), ("NeedsBox2D", NeedsBox2D)):
    gymnasium.register(f"{name}-v0", entry_point=kind, disable_env_checker=True)
