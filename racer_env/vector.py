"""RacerVectorEnv: N cars as one Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from racer_env.bridge.interface import (
    COMPONENT_KEYS,
    DEFAULT_TRACK,
    STEP_KEYS,
    Batch,
    BatchStep,
    Bools,
    CarColumns,
    Floats,
    Observations,
)
from racer_env.engine import TICKS_PER_SECOND, Config, Start
from racer_env.env import ACTION_SPACE, OBSERVATION_SPACE, ClosedBridge
from racer_env.errors import RacerError
from racer_env.scenarios import changed_scenario, make_scenario, open_batch

Infos = dict[str, Any]


class RacerVectorEnv(VectorEnv[Observations, NDArray[np.float32], NDArray[Any]]):
    """
    ## Description
    N cars stepped together in one compiled call. Results are bit-identical to N times `RacerEnv`, many times faster.

    ## Action space
    `Box(-1 or 0, 1, (N, 3), float32)`: steer, throttle and brake of each car, as in `RacerEnv`.

    ## Observation space
    `Box(-1 or 0, 1, (N, 14), float32)`: the observation of `RacerEnv` for each car.

    ## Rewards
    Float64 (N,): the sum of each car's reward components, which are columns of `infos`.

    ## Starting state
    That of `RacerEnv`, drawn for each car by its own random generator: car i of seed s starts as one car of seed s + i.

    ## Episode end
    That of `RacerEnv`. A car whose episode ends starts the next one within the same step (`AutoresetMode.SAME_STEP`):
    its last observation and info are in `infos["final_obs"]` and `infos["final_info"]`.

    ## Arguments
    - `num_envs`: number of cars.
    - `redraw`: with several circuits, each episode draws one; without it, car i drives number i modulo their count.
    - `threads`: number of threads for a step; more than one pays off from a few hundred cars.
    - `copy`: False returns the simulation's own arrays, which the next step overwrites.

    `bridge_url`, `config_path`, `track_id`, `config`, `start` and `token` are those of `RacerEnv`; `render_mode` must
    be None. `reset(options=...)` also accepts `reset_mask`, which resets only some cars.

    ## Version history
    - v0: initial version.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": [],
        "render_fps": TICKS_PER_SECOND,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 64,
        bridge_url: str | None = None,
        config_path: str | None = None,
        track_id: str | Sequence[str] = DEFAULT_TRACK,
        render_mode: None = None,
        *,
        redraw: bool = False,
        config: Config | Mapping[str, Any] | None = None,
        start: Start | Mapping[str, Any] | None = None,
        token: str | None = None,
        threads: int = 1,
        copy: bool = True,
    ) -> None:
        self.closed = True  # Gymnasium's destructor closes an open environment, even one that failed to open
        if render_mode is not None:
            raise RacerError("a vector environment draws nothing: make a RacerEnv to render")
        self.num_envs = num_envs
        self.render_mode = None
        self.single_observation_space, self.single_action_space = OBSERVATION_SPACE, ACTION_SPACE
        self.observation_space = batch_space(OBSERVATION_SPACE, num_envs)
        self.action_space = batch_space(ACTION_SPACE, num_envs)
        self._scenario = make_scenario(track_id, config_path, config, start, redraw)
        self.batch: Batch = open_batch(num_envs, bridge_url, token, threads)
        """Batch of cars; its step returns arrays without infos."""
        self.closed = False
        self._copy = copy
        self._seeded = False
        self._all_cars = np.ones(num_envs, np.bool_)
        self._all_cars.flags.writeable = False
        self._step_masks = {f"_{key}": self._all_cars for key in STEP_KEYS}

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        options = dict(options or {})
        mask = _checked_mask(options.pop("reset_mask", None), self.num_envs)
        step = self.reset_batch(seed, options, mask)
        reset = self._all_cars if mask is None else mask
        return self._owned(step.observations), _with_masks(_reset_columns(step.cars), reset)

    def reset_batch(
        self, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None, mask: Any = None
    ) -> BatchStep:
        """Reset and return arrays without infos."""
        if seed is None and not self._seeded:
            seed = [int(number) for number in self.np_random.integers(2**62, size=self.num_envs)]
        scenario = changed_scenario(self._scenario, options)
        if mask is not None and scenario != self._scenario:
            raise RacerError("reset_mask: another circuit, start or config needs a reset of all cars")
        step = self.batch.reset(scenario, seed, mask)
        self._scenario, self._seeded = scenario, True
        return step

    def step(self, actions: NDArray[np.float32]) -> tuple[Observations, Floats, Bools, Bools, Infos]:
        step = self.batch.step(actions)
        return (
            self._owned(step.observations),
            self._owned(step.rewards),
            self._owned(step.terminated),
            self._owned(step.truncated),
            self._infos(step),
        )

    @property
    def cars(self) -> NDArray[np.void]:
        """Copy of the cars' rows (N,) of `racer_env.engine.CAR`. Not available over a bridge."""
        return self.batch.cars

    def close_extras(self, **options: Any) -> None:
        self.batch.close()
        self.batch = cast(Batch, ClosedBridge())

    def _owned(self, array: NDArray[Any]) -> Any:
        return array.copy() if self._copy else array

    def _infos(self, step: BatchStep) -> Infos:
        """Return infos as Gymnasium merges those of single environments: a column and a mask for each key."""
        if not len(step.ended):
            return {**_step_columns(step.components, step.cars), **self._step_masks}
        over = step.terminated | step.truncated
        others = ~over
        infos = _with_masks(_reset_columns(step.cars), self._all_cars)
        if others.any():
            columns = _step_columns(step.components, step.cars)
            for key, column in columns.items():
                column[over] = 0 if key not in infos else infos[key][over]
            infos = {**_with_masks(columns, others), **infos, **{key: columns[key] for key in infos if key in columns}}
        final = _step_columns(step.components[step.ended], step.final_cars)
        infos["final_info"] = _with_masks(
            {key: self._spread(column, step.ended) for key, column in final.items()}, over
        )
        infos["final_obs"] = np.full(self.num_envs, None, dtype=object)
        for row, observation in zip(step.ended, step.final_observations, strict=True):
            infos["final_obs"][row] = observation
        infos["_final_info"], infos["_final_obs"] = over, over.copy()
        return infos

    def _spread(self, column: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return a column with a row for every car; rows of other cars are 0."""
        spread = np.zeros(self.num_envs, column.dtype)
        spread[rows] = column
        return spread


def _reset_columns(cars: CarColumns) -> Infos:
    steps = cars.step_count.copy()
    return {
        "tick": steps,
        "speed": cars.speed.copy(),
        "lap": cars.lap.copy(),
        "checkpoint": cars.checkpoint.copy(),
        "stepCount": steps.copy(),
    }


def _step_columns(components: Floats, cars: CarColumns) -> Infos:
    steps = cars.step_count.copy()
    return {
        **dict(zip(COMPONENT_KEYS, components.T.copy(), strict=True)),
        "tick": steps,
        "rawSpeed": cars.speed.copy(),
        "lap": cars.lap.copy(),
        "checkpoint": cars.checkpoint.copy(),
        "stepCount": steps.copy(),
        "wallContact": cars.wall_contact.copy(),
        "stillnessCounter": cars.stillness.copy(),
    }


def _with_masks(columns: Infos, mask: Bools) -> Infos:
    return {**columns, **{f"_{key}": mask for key in columns}}


def _checked_mask(mask: Any, num_envs: int) -> Bools | None:
    if mask is None:
        return None
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (num_envs,):
        raise RacerError(f"reset_mask must be an array of {num_envs} booleans")
    if not mask.any():
        raise RacerError("reset_mask must choose at least one car")
    return mask
