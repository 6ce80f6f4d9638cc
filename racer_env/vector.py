"""RacerVectorEnv and DiscreteRacerVectorEnv: N cars as one Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from racer_env.bridge.interface import (
    DEFAULT_TRACK,
    Batch,
    BatchStep,
    Bools,
    CarColumns,
    Floats,
    Observations,
    Scenario,
    component_keys,
    step_keys,
)
from racer_env.engine import TICKS_PER_SECOND, Config, Start
from racer_env.env import ACTION_SPACE, DISCRETE_ACTIONS, OBSERVATION_SPACE, CarWindow, ClosedBridge, open_window
from racer_env.errors import RacerError
from racer_env.scenarios import changed_scenario, make_scenario, open_batch

Infos = dict[str, Any]


class RacerVectorEnv(VectorEnv[Observations, NDArray[np.float32], NDArray[Any]]):
    """
    ## Description
    N cars stepped together in one compiled call. Results are bit-identical to those of Gymnasium's `SyncVectorEnv` with
    N times `RacerEnv`, many times faster.

    ## Action space
    `Box(-1 or 0, 1, (N, 3), float32)`: steer, throttle and brake of each car, as in `RacerEnv`.

    ## Observation space
    `Box(-1 or 0, 1, (N, 14), float32)`: the observation of `RacerEnv` for each car.

    ## Rewards
    Float64 (N,): the sum of each car's reward components, which are columns of `infos`.

    ## Starting state
    That of `RacerEnv`, drawn for each car by its own random generator: car i of seed s starts as one car of seed s + i.

    ## Episode end
    That of `RacerEnv`. `autoreset_mode` decides when a car whose episode ended starts the next one:
    - `AutoresetMode.SAME_STEP`: within the same step. Its last observation and info are in `infos["final_obs"]` and
      `infos["final_info"]`.
    - `AutoresetMode.NEXT_STEP`: in the next step, which ignores its action and returns a reward of 0.
    - `AutoresetMode.DISABLED`: with `reset(options={"reset_mask": terminated | truncated})`, before the next step.

    ## Arguments
    - `num_envs`: number of cars.
    - `render_mode`: None, or "rgb_array" for an image of each car; not over a bridge.
    - `redraw`: with several circuits, each episode draws one; without it, car i drives number i modulo their count.
    - `threads`: number of threads for a step; more than one pays off from a few hundred cars.
    - `copy`: False returns the simulation's own arrays, which the next step overwrites.
    - `autoreset_mode`: an `AutoresetMode` or its value: "SameStep", "NextStep" or "Disabled".

    `bridge_url`, `config_path`, `track_id`, `config`, `start` and `token` are those of `RacerEnv`.
    `reset(options=...)` also accepts `reset_mask`, which resets only some cars.

    ## Version history
    - v0: initial version.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  # each environment has its own, with its mode
        "render_modes": ["rgb_array"],
        "render_fps": TICKS_PER_SECOND,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 64,
        bridge_url: str | None = None,
        config_path: str | None = None,
        track_id: str | Sequence[str] = DEFAULT_TRACK,
        render_mode: str | None = None,
        *,
        redraw: bool = False,
        config: Config | Mapping[str, Any] | None = None,
        start: Start | Mapping[str, Any] | None = None,
        token: str | None = None,
        threads: int = 1,
        copy: bool = True,
        autoreset_mode: AutoresetMode | str = "SameStep",
    ) -> None:
        self.closed = True  # Gymnasium's destructor closes an open environment, even one that failed to open
        self._mode = _parse_mode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self._mode}
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise RacerError(f"render_mode of a vector environment must be None or 'rgb_array', not {render_mode!r}")
        if render_mode is not None and bridge_url is not None:
            raise RacerError("a vector environment on a bridge cannot render: make a RacerEnv instead")
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space, self.single_action_space = OBSERVATION_SPACE, ACTION_SPACE
        self.observation_space = batch_space(OBSERVATION_SPACE, num_envs)
        self.action_space = batch_space(ACTION_SPACE, num_envs)
        self._scenario = make_scenario(track_id, config_path, config, start, redraw)
        self.batch: Batch = open_batch(num_envs, bridge_url, token, threads, self._mode is AutoresetMode.SAME_STEP)
        """Batch of cars; its step returns arrays without infos."""
        self.closed = False
        self._copy = copy
        self._seeded = False
        self._all_cars = np.ones(num_envs, np.bool_)
        self._all_cars.flags.writeable = False
        self._set_keys(self._scenario)
        self._waiting = np.zeros(num_envs, np.bool_)
        """Cars whose episode has ended and whose next one has not begun."""
        self._windows: list[CarWindow] = []

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        options = dict(options or {})
        mask = _checked_mask(options.pop("reset_mask", None), self.num_envs)
        step = self.reset_batch(seed, options, mask)
        infos = {**self._step_columns(np.zeros_like(step.components), step.cars), "speed": step.cars.speed.copy()}
        if mask is None:
            return self._owned(step.observations), {**infos, **self._masks}
        for column in infos.values():
            column[~mask] = 0
        return self._owned(step.observations), _with_masks(infos, mask.copy())

    def reset_batch(
        self,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
        mask: Bools | None = None,
    ) -> BatchStep:
        """Reset and return arrays without infos."""
        if seed is None and not self._seeded:
            seed = [int(number) for number in self.np_random.integers(2**62, size=self.num_envs)]
        elif seed is not None and mask is not None:
            seed = self._masked_seeds(seed, mask)
        scenario = changed_scenario(self._scenario, options)
        if mask is not None and scenario != self._scenario:
            raise RacerError("reset_mask: another circuit, start or config needs a reset of all cars")
        step = self.batch.reset(scenario, seed, mask)
        self._set_keys(scenario)
        self._scenario, self._seeded = scenario, True
        self._waiting = self._waiting & ~(self._all_cars if mask is None else mask)
        return step

    def step(self, actions: NDArray[np.float32]) -> tuple[Observations, Floats, Bools, Bools, Infos]:
        if self._mode is AutoresetMode.SAME_STEP:
            step = self.batch.step(actions)
            infos = self._infos(step)
        else:
            step, infos = self._step_or_restart(actions)
        return (
            self._owned(step.observations),
            self._owned(step.rewards),
            self._owned(step.terminated),
            self._owned(step.truncated),
            infos,
        )

    def render(self) -> tuple[NDArray[np.uint8], ...]:
        """Return an image of each car."""
        if self.render_mode is None:
            raise RacerError('this environment draws nothing: make it with render_mode="rgb_array"')
        cars, tracks = self.batch.cars, self.batch.tracks
        if not self._windows:
            self._windows = [open_window(visible=False) for _ in cars]
        images = (window.draw(tracks[car["track"]], car) for window, car in zip(self._windows, cars, strict=True))
        return tuple(image for image in images if image is not None)

    @property
    def cars(self) -> NDArray[np.void]:
        """Copy of the cars' rows (N,) of `racer_env.engine.CAR`. Not available over a bridge."""
        return self.batch.cars

    def close_extras(self, **options: Any) -> None:
        self.batch.close()
        self.batch = cast(Batch, ClosedBridge())
        for window in self._windows:
            window.close()
        self._windows = []

    def _owned(self, array: NDArray[Any]) -> Any:
        return array.copy() if self._copy else array

    def _step_or_restart(self, actions: NDArray[np.float32]) -> tuple[BatchStep, Infos]:
        """Step the cars, except those whose episode has ended: they start the next one, or must have been reset."""
        waiting = self._waiting
        if not waiting.any():
            step = self.batch.step(actions)
            infos = self._step_columns(step.components, step.cars)
        elif self._mode is AutoresetMode.DISABLED:
            cars = ", ".join(map(str, np.flatnonzero(waiting)))
            raise RacerError(f"the episodes of these cars have ended: {cars}; reset them with the option reset_mask")
        else:
            self.batch.step(actions)
            step = self.batch.reset(mask=waiting)  # a new episode keeps nothing of the tick
            infos = self._step_columns(step.components, step.cars)
            infos["speed"][waiting] = step.cars.speed[waiting]
        self._waiting = step.terminated | step.truncated
        return step, {**infos, **self._masks}

    def _masked_seeds(self, seed: int | Sequence[int | None], mask: Bools) -> list[int | None]:
        seeds = range(seed, seed + self.num_envs) if isinstance(seed, int) else seed
        if len(seeds) != self.num_envs:
            raise RacerError(f"seed: {self.num_envs} cars need one number each, not {len(seeds)}")
        return [number if chosen else None for number, chosen in zip(seeds, mask, strict=True)]

    def _infos(self, step: BatchStep) -> Infos:
        """Return infos as Gymnasium merges those of single environments: a column and a mask for each key."""
        infos = {**self._step_columns(step.components, step.cars), **self._masks}
        if not len(step.ended):
            return infos
        over = step.terminated | step.truncated
        for key in self.component_keys:
            infos[key][over] = 0.0
        infos["speed"][over] = step.cars.speed[over]
        final = self._step_columns(step.components[step.ended], step.final_cars)
        infos["final_info"] = _with_masks(
            {key: self._spread(column, step.ended) for key, column in final.items()}, over
        )
        infos["final_obs"] = np.full(self.num_envs, None, dtype=object)
        for row, observation in zip(step.ended, step.final_observations, strict=True):
            infos["final_obs"][row] = observation
        infos["_final_info"], infos["_final_obs"] = over, over.copy()
        return infos

    def _set_keys(self, scenario: Scenario) -> None:
        """Set the keys of the infos; a config with terms has more of them."""
        self.component_keys = component_keys(scenario.config)
        """Info keys of the reward components."""
        self._masks = {f"_{key}": self._all_cars for key in step_keys(scenario.config)}

    def _step_columns(self, components: Floats, cars: CarColumns) -> Infos:
        steps, parts = cars.step_count.copy(), dict(zip(self.component_keys, components.T.copy(), strict=True))
        return {
            **parts,
            "tick": steps,
            "rawSpeed": cars.speed.copy(),
            "lap": cars.lap.copy(),
            "checkpoint": cars.checkpoint.copy(),
            "stepCount": steps.copy(),
            "wallContact": cars.wall_contact.copy(),
            "stillnessCounter": cars.stillness.copy(),
        }

    def _spread(self, column: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return a column with a row for every car; rows of other cars are 0."""
        spread = np.zeros(self.num_envs, column.dtype)
        spread[rows] = column
        return spread


class DiscreteRacerVectorEnv(RacerVectorEnv):
    """
    ## Description
    `RacerVectorEnv` with the nine discrete actions of `DiscreteRacerEnv`.

    ## Action space
    `MultiDiscrete([9] * N)`: one of the actions of `DiscreteRacerEnv` for each car.

    Everything else is as in `RacerVectorEnv`.

    ## Version history
    - v0: initial version.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.single_action_space = spaces.Discrete(len(DISCRETE_ACTIONS))
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def step(self, actions: Any) -> tuple[Observations, Floats, Bools, Bools, Infos]:
        chosen = np.asarray(actions)
        valid = chosen.shape == (self.num_envs,) and np.issubdtype(chosen.dtype, np.integer)
        if not valid or chosen.min() < 0 or chosen.max() >= len(DISCRETE_ACTIONS):
            raise RacerError(f"actions must be {self.num_envs} whole numbers from 0 to {len(DISCRETE_ACTIONS) - 1}")
        return super().step(DISCRETE_ACTIONS[chosen])


def _parse_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = ", ".join(repr(each.value) for each in AutoresetMode)
        raise RacerError(f"autoreset_mode must be an AutoresetMode or one of {known}, not {mode!r}") from None


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
