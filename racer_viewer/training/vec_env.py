"""Vector environment and metrics callback of stable-baselines3 for the cars of a RacerVectorEnv."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvIndices, VecEnvStepReturn

from racer_env.bridge.interface import (
    COMPONENT_KEYS,
    STEP_KEYS,
    BatchStep,
    CarColumns,
    Info,
    Observations,
    complete_reset_info,
    reset_info,
)
from racer_env.engine import TICKS_PER_SECOND, Simulation
from racer_env.errors import RacerError
from racer_env.vector import RacerVectorEnv
from racer_viewer.training.metrics import DrivingMetrics, EpisodeTracker, StepInfo, step_info

TRUNCATED, TERMINAL_OBSERVATION = "TimeLimit.truncated", "terminal_observation"
"""Keys that stable-baselines3 reads from the info of an ended episode."""

_OF_ONE_CAR = {"observation_space": "single_observation_space", "action_space": "single_action_space"}


class SB3VecEnv(VecEnv):
    """Adapter from a RacerVectorEnv, local or on a bridge, to stable-baselines3.

    A step creates dictionaries only for cars whose episode ended, see `CarInfo`. Callbacks find reward components and
    lap times of all cars as arrays in `last_step`.

    All cars are one environment: `set_options` needs the same options for all of them, and `set_attr` and `env_method`
    apply once, to all.
    """

    def __init__(self, cars: RacerVectorEnv) -> None:
        if cars.metadata["autoreset_mode"] is not AutoresetMode.SAME_STEP:
            raise RacerError("stable-baselines3 needs cars that restart within the same step: leave out autoreset_mode")
        self.cars = cars
        self._last: BatchStep | None = None
        self._actions: NDArray[Any] | None = None
        self.read_keys = _read_keys(cars.component_keys)
        """Keys of an info, each with its number among the components, or with its column of the cars."""
        super().__init__(cars.num_envs, cars.single_observation_space, cars.single_action_space)
        self._infos: list[Info] = [CarInfo(self, row) for row in range(cars.num_envs)]

    @property
    def last_step(self) -> BatchStep:
        """Result of the last step, as arrays with a row for each car; the next step may overwrite them."""
        if self._last is None:
            raise RacerError("no step yet: reset the environment first")
        return self._last

    def reset(self) -> Observations:
        """Start an episode for all cars, with the seeds and options set for this reset."""
        seeds = None if all(seed is None for seed in self._seeds) else self._seeds
        self._last = step = self.cars.reset_batch(seeds, self._common_options())
        self.read_keys = _read_keys(self.cars.component_keys)
        self._reset_seeds()
        self._reset_options()
        self._set_reset_infos(range(self.num_envs), step.cars)
        return step.observations.copy()

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        actions, self._actions = self._actions, None
        if actions is None:
            raise RacerError("step_wait without step_async: there are no actions")
        self._last = step = self.cars.batch.step(actions)
        infos = self._infos.copy()
        if len(step.ended):
            for number, row in enumerate(step.ended.tolist()):
                infos[row] = self._last_info(step, number, row)
            self._set_reset_infos(step.ended.tolist(), step.cars)
        return (
            step.observations.copy(),
            step.rewards.astype(np.float32),
            step.terminated | step.truncated,
            infos,
        )

    def close(self) -> None:
        self.cars.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        value = getattr(self.cars, _OF_ONE_CAR.get(attr_name, attr_name))
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        self._check_all_cars(indices)
        setattr(self.cars, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        self._check_all_cars(indices)
        return [getattr(self.cars, method_name)(*method_args, **method_kwargs)] * self.num_envs

    def env_is_wrapped(self, wrapper_class: type[gymnasium.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Return None for each car: a RacerVectorEnv renders nothing."""
        return [None] * self.num_envs

    def _common_options(self) -> dict[str, Any]:
        if len(self._options) != self.num_envs or any(options != self._options[0] for options in self._options):
            raise RacerError("set_options: all cars are one environment and need the same options")
        return self._options[0]

    def _check_all_cars(self, indices: VecEnvIndices) -> None:
        if set(self._get_indices(indices)) != set(range(self.num_envs)):
            raise RacerError("all cars are one environment: use set_attr and env_method for all of them")

    def set_component_keys(self, keys: tuple[str, ...]) -> None:
        """Set the info keys of the reward components, after the rewards of the cars were changed."""
        self.cars.component_keys = keys
        self.read_keys = _read_keys(keys)

    def value(self, key: str, row: int, cars: CarColumns, car_row: int) -> Any:
        """Return a value of an info; after an episode has ended, components and car state are in different rows."""
        column = self.read_keys[key]
        if isinstance(column, int):
            return self.last_step.components[row, column].item()
        return getattr(cars, column)[car_row].item()

    def _last_info(self, step: BatchStep, number: int, row: int) -> Info:
        """Return the info of an ended episode. number: its position among the episodes that ended in this step."""
        return {
            **{key: self.value(key, row, step.final_cars, number) for key in self.read_keys},
            TRUNCATED: bool(step.truncated[row] and not step.terminated[row]),
            TERMINAL_OBSERVATION: step.final_observations[number].copy(),
        }

    def _set_reset_infos(self, rows: Sequence[int], cars: CarColumns) -> None:
        for row in rows:
            speed, lap, checkpoint, steps = cars.speed[row], cars.lap[row], cars.checkpoint[row], cars.step_count[row]
            info = reset_info(speed.item(), lap.item(), checkpoint.item(), steps.item())
            self.reset_infos[row] = complete_reset_info(info, self.cars.component_keys[len(COMPONENT_KEYS) :])


_COLUMNS = {
    "tick": "step_count",
    "rawSpeed": "speed",
    "lap": "lap",
    "checkpoint": "checkpoint",
    "stepCount": "step_count",
    "wallContact": "wall_contact",
    "stillnessCounter": "stillness",
}
"""Column of the cars for each key of an info; reward components are separate."""


def _read_keys(components: Sequence[str]) -> dict[str, int | str]:
    """Return the keys of an info in their order, with where their values are."""
    numbers = {key: number for number, key in enumerate(components)}
    order = (*STEP_KEYS, *components[len(COMPONENT_KEYS) :])
    return {key: numbers[key] if key in numbers else _COLUMNS[key] for key in order}


_get = dict.get  # faster: stable-baselines3 reads two or three keys of every info in every step


class CarInfo(dict[str, Any]):
    """Info of a car whose episode continues: created once, and read from the arrays of the last step on access.

    It always shows the latest tick: copy it before the next step if needed. Entries that a wrapper adds stay in it. The
    info of an ended episode is an ordinary dictionary.
    """

    __slots__ = ("_env", "_row")

    def __init__(self, env: SB3VecEnv, row: int) -> None:
        super().__init__({TRUNCATED: False})
        self._env, self._row = env, row

    def __missing__(self, key: str) -> Any:
        env = self._env
        return env.value(key, self._row, env.last_step.cars, self._row)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self._env.read_keys else _get(self, key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._env.read_keys or super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        read_keys = self._env.read_keys
        yield from read_keys
        yield from (key for key in super().__iter__() if key not in read_keys)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def copy(self) -> Info:
        """Return the info of the latest tick as an ordinary dictionary."""
        return {key: self[key] for key in self}

    def keys(self) -> Any:
        return self.copy().keys()

    def values(self) -> Any:
        return self.copy().values()

    def items(self) -> Any:
        return self.copy().items()

    def __eq__(self, other: object) -> bool:
        return self.copy() == other

    def __ne__(self, other: object) -> bool:
        return self.copy() != other

    def __repr__(self) -> str:
        return repr(self.copy())

    def __reduce__(self) -> tuple[type, tuple[Info]]:
        return dict, (self.copy(),)


class RacerMetricsCallback(BaseCallback):
    """Callback of stable-baselines3 that records `DrivingMetrics` in a training script of your own.

    It works on any vector environment with the racer's infos. A lap time is then the number of steps between two laps,
    or since the start of the episode. On a `SB3VecEnv` it reads arrays instead of dictionaries, and does not count a
    first lap that did not begin on the start line. The completion rate assumes circuits with 30 gates, as usual.
    """

    def __init__(self) -> None:
        super().__init__()
        self.metrics = DrivingMetrics()

    def _on_training_start(self) -> None:
        count = self.training_env.num_envs
        self._env, self._episodes = _vec_env_of(self.training_env), EpisodeTracker(count)
        self._lap, self._lap_start = np.ones(count, np.int64), np.zeros(count, np.int64)
        self._keys: Sequence[str] = COMPONENT_KEYS
        with suppress(AttributeError):  # another environment with the racer's infos
            self._keys = self.training_env.get_attr("component_keys")[0]

    def _on_step(self) -> bool:
        info = self._from_infos() if self._env is None else step_info(self._env.last_step)
        self.metrics.add(self._episodes.step(info), self.logger, self._keys)
        return True

    def _on_rollout_end(self) -> None:
        self.metrics.end_rollout(self.logger)

    def _from_infos(self) -> StepInfo:
        infos: list[dict[str, Any]] = self.locals["infos"]
        ended = np.flatnonzero(self.locals["dones"])
        lap, steps = (np.array([info[key] for info in infos]) for key in ("lap", "stepCount"))
        rows = np.flatnonzero(lap > self._lap)
        times = ((steps - self._lap_start)[rows] / TICKS_PER_SECOND).tolist()
        self._lap[rows], self._lap_start[rows] = lap[rows], steps[rows]
        self._lap[ended], self._lap_start[ended] = 1, 0
        components = np.array([[info[key] for key in self._keys] for info in infos])
        stopped = np.array([not infos[row].get(TRUNCATED, False) for row in ended], np.bool_)
        gates, speeds = (np.array([info[key] for info in infos]) for key in ("checkpoint", "rawSpeed"))
        return StepInfo(components.sum(axis=1), components, times, rows, ended, stopped, gates, speeds)


def find_cars(env: VecEnv) -> SB3VecEnv:
    """Return the SB3VecEnv inside of wrappers."""
    cars = _vec_env_of(env)
    assert cars is not None, "a run learns on an SB3VecEnv"
    return cars


def simulation_of(cars: SB3VecEnv) -> Simulation | None:
    """Return the simulation of the cars; None if they are on a bridge."""
    simulation = getattr(cars.cars.batch, "simulation", None)
    assert simulation is None or isinstance(simulation, Simulation)
    return simulation


def _vec_env_of(env: VecEnv) -> SB3VecEnv | None:
    while isinstance(env, VecEnvWrapper):
        env = env.venv
    return env if isinstance(env, SB3VecEnv) else None
