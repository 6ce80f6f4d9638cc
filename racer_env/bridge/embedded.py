"""The bridge within this process: no port, no copies on the way."""

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
    Info,
    Observations,
    Scenario,
    Step,
    reset_info,
)
from racer_env.engine import CAR, Simulation, Track, load_circuit
from racer_env.errors import ActionError, RacerError

Tracks = Callable[[str], Track]
"""Finds a track by its id."""


def _reader(*names: str) -> struct.Struct:
    """Reads some columns of a car's row, named in their order there, in one go: one by one takes as long as a tick."""
    assert CAR.fields is not None
    codes = {"f": "d", "i": "q", "b": "?"}
    layout, position = "=", 0
    for name in names:
        column, offset = CAR.fields[name][:2]
        layout += f"{offset - position}x{column.itemsize // column.base.itemsize}{codes[column.base.kind]}"
        position = offset + column.itemsize
    return struct.Struct(layout)


_CAR_COLUMNS = _reader(
    "speed", "reward", "components", "lap", "checkpoint", "step_count", "stillness",
    "wall_contact", "terminated", "truncated",
)  # fmt: skip


def _column_splitter() -> Callable[..., tuple[float, bool, bool, Info]]:
    """Return the function that makes reward, flags and info of the values of `_CAR_COLUMNS`.

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


_split_columns = _column_splitter()
_make_step = tuple.__new__
"""`Step(...)` calls this in a roundabout way."""

NOT_STARTED = "step before reset: reset the environment first"


class EmbeddedBridge:
    """One car of an own simulation."""

    def __init__(self, find_track: Tracks = load_circuit) -> None:
        self._find_track = find_track
        self._scenario: Scenario | None = None
        self._simulation: Simulation | None = None

    @property
    def track(self) -> Track:
        simulation = self._started()
        return simulation.tracks[int(simulation.cars.track[0])]

    @property
    def car(self) -> CarRow:
        return self._started().cars.view(CAR, np.ndarray)[0].copy()  # type: ignore[no-any-return]

    def reset(self, scenario: Scenario | None = None, seed: int | None = None) -> tuple[Observations, Info]:
        simulation = self._prepare(scenario)
        if seed is not None:
            simulation.seed(seed)
        observations = simulation.reset()
        car = simulation.cars[0]
        return observations[0].copy(), reset_info(
            float(car.speed), int(car.lap), int(car.checkpoint), int(car.step_count)
        )

    def step(self, action: ArrayLike) -> Step:
        if self._simulation is None:
            raise RacerError(NOT_STARTED)
        try:
            if len(action) != 3:  # type: ignore[arg-type]
                raise ValueError(f"this has {len(action)} values")  # type: ignore[arg-type]
            self._action[0] = action
        except (TypeError, ValueError) as error:
            raise ActionError(f"an action must be 3 finite numbers, steer, throttle, brake: {error}") from None
        self._simulation.step(self._action)
        reward, terminated, truncated, info = _split_columns(*_CAR_COLUMNS.unpack_from(self._car_row))
        return _make_step(Step, (self._observations.copy(), reward, terminated, truncated, info))

    def close(self) -> None:
        self._simulation = None

    def _started(self) -> Simulation:
        if self._simulation is None:
            raise RacerError(NOT_STARTED)
        return self._simulation

    def _prepare(self, scenario: Scenario | None) -> Simulation:
        """The simulation for a scenario; only other tracks need a new one, which goes on with the random state."""
        before, simulation = self._scenario, self._simulation
        scenario = scenario or before or Scenario()
        if simulation is None or before is None or (scenario.tracks, scenario.redraw) != (before.tracks, before.redraw):
            tracks = [self._find_track(name) for name in scenario.tracks]
            fresh = Simulation(tracks, 1, scenario.config, redraw=scenario.redraw, start=scenario.start)
            if simulation is not None:
                fresh.cars.random = simulation.cars.random
            simulation = fresh
            self._keep(simulation)
        elif scenario != before:
            simulation.configure(scenario.config)
            simulation.start_from(scenario.start)
        self._scenario = scenario
        return simulation

    def _keep(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._action = np.zeros((1, 3))
        self._observations = simulation.reset()[0]
        self._car_row = simulation.cars.view(np.uint8, np.ndarray).data


class EmbeddedBatch:
    """N cars of an own simulation, each starting anew when its episode ends."""

    def __init__(self, num_cars: int, threads: int = 1, find_track: Tracks = load_circuit) -> None:
        self.num_cars = num_cars
        self._threads = threads
        self._find_track = find_track
        self._scenario: Scenario | None = None
        self.simulation: Simulation | None = None
        """The simulation of this batch; None before the first reset and after close()."""

    @property
    def cars(self) -> NDArray[np.void]:
        if self.simulation is None:
            raise RacerError(NOT_STARTED)
        return self.simulation.cars.view(CAR, np.ndarray).copy()

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
                auto_reset=True,
                redraw=scenario.redraw,
                start=scenario.start,
                threads=self._threads,
            )
            if before is not None:
                self.simulation.cars.random = before.cars.random
                before.close()
            self._columns = _columns(self.simulation.cars)
            self._final_columns = _columns(self.simulation.result.final_cars)
            self._nobody = self._final_columns.rows(self.simulation.ended)
            self._nobody_seen = self.simulation.result.final_observations[:0]
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
            result.final_observations[ended] if len(ended) else self._nobody_seen,
            self._final_columns.rows(ended) if len(ended) else self._nobody,
        )


def _columns(cars: Any) -> CarColumns:
    return CarColumns(*(cars[name] for name in CarColumns.__dataclass_fields__))
