"""Local bridges: cars of a simulation in this process."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from racer_env.bridge.interface import (
    COMPONENT_KEYS,
    STEP_KEYS,
    BatchStep,
    Bools,
    CarColumns,
    CarRow,
    CarStep,
    Floats,
    Info,
    Observations,
    Scenario,
    copy_rows,
    reset_info,
)
from racer_env.engine import CAR, Simulation, Track, load_circuit
from racer_env.engine.rewards import COMPONENT_CAPACITY
from racer_env.errors import ActionError, RacerError

FindTrack = Callable[[str], Track]
"""Function that returns a track by its id."""

NOT_STARTED = "step before reset: reset the environment first"


def _column_reader(*names: str, first: int = 0, last: int = len(COMPONENT_KEYS)) -> struct.Struct:
    """Return a struct that reads some columns of a car's row at once; one by one takes as long as a tick.

    names: columns in their order in `CAR`. first, last: range of the reward components that are read.
    """
    assert CAR.fields is not None
    codes = {"f": "d", "i": "q", "b": "?"}
    layout, position = "=", 0
    for name in names:
        column, offset = CAR.fields[name][:2]
        size, count = column.base.itemsize, column.itemsize // column.base.itemsize
        if name == "components":
            offset, count = offset + first * size, last - first
        layout += f"{offset - position}x{count}{codes[column.base.kind]}"
        position = offset + count * size
    return struct.Struct(layout)


_STEP_COLUMNS = _column_reader(
    "speed", "reward", "components", "lap", "checkpoint", "step_count", "stillness",
    "wall_contact", "terminated", "truncated",
)  # fmt: skip
_TERM_COLUMNS = _column_reader("components", first=len(COMPONENT_KEYS), last=COMPONENT_CAPACITY)


def _compile_splitter() -> Callable[..., tuple[float, bool, bool, Info]]:
    """Return a function that makes reward, flags and info of the values of `_STEP_COLUMNS`.

    It is compiled from the table of reward components: a literal with all keys takes half as long as a loop over them.
    """
    parts = [f"part{number}" for number in range(len(COMPONENT_KEYS))]
    names = {
        **dict(zip(COMPONENT_KEYS, parts, strict=True)),
        "tick": "steps",
        "rawSpeed": "speed",
        "lap": "lap",
        "checkpoint": "checkpoint",
        "stepCount": "steps",
        "wallContact": "wall_contact",
        "stillnessCounter": "still_ticks",
    }
    info = ", ".join(f"{key!r}: {names[key]}" for key in STEP_KEYS)
    columns = f"speed, reward, {', '.join(parts)}, lap, checkpoint, steps, still_ticks, wall_contact, end, cut"
    splitter: Callable[..., tuple[float, bool, bool, Info]] = eval(f"lambda {columns}: (reward, end, cut, {{{info}}})")
    return splitter


_split_columns = _compile_splitter()
_make_tuple = tuple.__new__
"""Constructor of a NamedTuple without the overhead of `CarStep(...)`."""


class EmbeddedBridge:
    """One car of its own simulation."""

    def __init__(self, find_track: FindTrack = load_circuit) -> None:
        self._find_track = find_track
        self._scenario: Scenario | None = None
        self._simulation: Simulation | None = None
        self._terms: tuple[str, ...] = ()

    @property
    def track(self) -> Track:
        simulation = self._started()
        return simulation.tracks[int(simulation.cars.track[0])]

    @property
    def car(self) -> CarRow:
        return copy_rows(self._started().cars)[0]  # type: ignore[no-any-return]

    def reset(self, scenario: Scenario | None = None, seed: int | None = None) -> tuple[Observations, Info]:
        simulation = self._prepare(scenario)
        if seed is not None:
            simulation.seed(seed)
        observations = simulation.reset()
        car = simulation.cars[0]
        return observations[0].copy(), reset_info(
            float(car.speed), int(car.lap), int(car.checkpoint), int(car.step_count)
        )

    def step(self, action: ArrayLike) -> CarStep:
        if self._simulation is None:
            raise RacerError(NOT_STARTED)
        try:
            if len(action) != 3:  # type: ignore[arg-type]
                raise ValueError(f"this has {len(action)} values")  # type: ignore[arg-type]
            self._action[...] = action
        except (TypeError, ValueError) as error:
            raise ActionError(f"an action must be 3 finite numbers, steer, throttle, brake: {error}") from None
        self._simulation.advance()
        reward, terminated, truncated, info = _split_columns(*_STEP_COLUMNS.unpack_from(self._row))
        if self._terms:
            info.update(zip(self._terms, _TERM_COLUMNS.unpack_from(self._row), strict=False))
        return _make_tuple(CarStep, (self._observation.copy(), reward, terminated, truncated, info))

    def exact_observation(self) -> Floats:
        """Return the observation in double precision. The next call overwrites it."""
        observation: Floats = self._started().exact_observations()[0]
        return observation

    def close(self) -> None:
        self._simulation = None

    def _started(self) -> Simulation:
        if self._simulation is None:
            raise RacerError(NOT_STARTED)
        return self._simulation

    def _prepare(self, scenario: Scenario | None) -> Simulation:
        """Return the simulation of a scenario. Other tracks need a new one, which keeps the random state."""
        before, simulation = self._scenario, self._simulation
        scenario = scenario or before or Scenario()
        if simulation is None or before is None or (scenario.tracks, scenario.redraw) != (before.tracks, before.redraw):
            tracks = [self._find_track(name) for name in scenario.tracks]
            fresh = Simulation(tracks, 1, scenario.config, redraw=scenario.redraw, start=scenario.start)
            if simulation is not None:
                fresh.cars.random = simulation.cars.random
            simulation = self._simulation = fresh
            self._action = simulation.cars.action[0]
            self._observation = simulation.reset()[0]
            self._row = simulation.cars.view(np.uint8, np.ndarray).data
        elif scenario != before:
            simulation.configure(scenario.config)
            simulation.start_from(scenario.start)
        self._scenario, self._terms = scenario, tuple(scenario.config.formulas)
        return simulation


class EmbeddedBatch:
    """N cars of one simulation.

    auto_reset: whether a car whose episode ends starts the next one within the same step.
    simulation: None before the first reset and after close().
    """

    def __init__(
        self, num_cars: int, threads: int = 1, find_track: FindTrack = load_circuit, *, auto_reset: bool = True
    ) -> None:
        self.num_cars = num_cars
        self.auto_reset = auto_reset
        self._threads = threads
        self._find_track = find_track
        self._scenario: Scenario | None = None
        self.simulation: Simulation | None = None

    @property
    def cars(self) -> NDArray[np.void]:
        if self.simulation is None:
            raise RacerError(NOT_STARTED)
        return copy_rows(self.simulation.cars)

    @property
    def tracks(self) -> tuple[Track, ...]:
        if self.simulation is None:
            raise RacerError(NOT_STARTED)
        return self.simulation.tracks

    def reset(
        self,
        scenario: Scenario | None = None,
        seeds: int | Sequence[int | None] | None = None,
        mask: Bools | None = None,
    ) -> BatchStep:
        simulation = self._prepare(scenario)
        if seeds is not None:
            simulation.seed(seeds)
        simulation.reset(mask)
        return self._result(simulation)

    def step(self, actions: ArrayLike) -> BatchStep:
        if self.simulation is None:
            raise RacerError(NOT_STARTED)
        self.simulation.step(actions)
        return self._result(self.simulation)

    def close(self) -> None:
        if self.simulation is not None:
            self.simulation.close()
        self.simulation = None

    def _prepare(self, scenario: Scenario | None) -> Simulation:
        scenario = scenario or self._scenario or Scenario()
        if self.simulation is None or scenario != self._scenario:
            before = self.simulation
            tracks = [self._find_track(name) for name in scenario.tracks]
            self.simulation = Simulation(
                tracks,
                self.num_cars,
                scenario.config,
                auto_reset=self.auto_reset,
                redraw=scenario.redraw,
                start=scenario.start,
                threads=self._threads,
            )
            if before is not None:
                self.simulation.cars.random = before.cars.random
                before.close()
            self._columns = _columns(self.simulation.cars)
            result = self.simulation.result
            self._final_columns = _columns(result.final_cars) if self.auto_reset else self._columns
            self._final_observations = result.final_observations if self.auto_reset else result.observations
            self._no_final_columns = self._final_columns.rows(self.simulation.ended)
            self._no_final_observations = self._final_observations[:0]
        self._scenario = scenario
        return self.simulation

    def _result(self, simulation: Simulation) -> BatchStep:
        result, ended = simulation.result, simulation.ended
        return BatchStep(
            result.observations,
            result.rewards,
            result.components,
            result.terminated,
            result.truncated,
            result.finished_lap_ticks,
            self._columns,
            ended,
            self._final_observations[ended] if len(ended) else self._no_final_observations,
            self._final_columns.rows(ended) if len(ended) else self._no_final_columns,
        )


def _columns(cars: Any) -> CarColumns:
    return CarColumns(*(cars[name] for name in CarColumns.__dataclass_fields__))
