"""Simulation of N cars that are stepped together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from racer_env.engine.centreline import Floats
from racer_env.engine.compiled import bind
from racer_env.engine.config import Config, parse_config
from racer_env.engine.joined import Fleet, JoinedTables, join_tables
from racer_env.engine.quantities import BEFORE
from racer_env.engine.starts import Start, draw_index
from racer_env.engine.tables import TrackTables
from racer_env.engine.thread_team import ThreadTeam
from racer_env.engine.tick import (
    BAD_ACTION,
    CAR,
    OBSERVATION_SIZE,
    observe_exactly,
    start_cars,
    step_cars,
    step_cars_with_terms,
)
from racer_env.engine.track import Track
from racer_env.errors import ActionError, RacerError

Cars = np.recarray[Any, np.dtype[np.record]]
Bools = NDArray[np.bool_]
Observations = NDArray[np.float32]

CARS_PER_CALL = 64
"""Minimum number of cars that a thread steps in one call; fewer cost more to hand over than they save."""
CALLS_PER_THREAD = 4
"""Number of calls into which a thread's part of a step is divided, so that no thread waits long for another."""

_NO_ROWS = np.zeros(0, np.int64)
_KEPT_WHEN_PUT_BACK = (
    "lap", "checkpoint", "lap_ticks", "lap_gates", "last_lap_ticks", "best_lap_ticks", "step_count",
)  # fmt: skip


@dataclass(frozen=True)
class StepResult:
    """Result of a tick, one row per car. The next step overwrites the arrays.

    observations: (N, 14). With auto-reset, a car whose episode ended has the first observation of its new one.
    components: (N, C) in the order of `Config.components`; rewards are their sums.
    finished_lap_ticks: time of a lap completed in this tick, else 0.
    final_observations, final_cars: with auto-reset, last observation and state of the episodes that ended in this tick;
    other rows are meaningless.
    """

    observations: Observations
    rewards: Floats
    components: Floats
    terminated: Bools
    truncated: Bools
    finished_lap_ticks: NDArray[np.int64]
    final_observations: Observations
    final_cars: Cars


@dataclass(frozen=True)
class SimulationState:
    """Complete state of a simulation; see `Simulation.save`."""

    cars: Cars
    observations: Observations


def bind_step(tables: TrackTables) -> Callable[..., int]:
    """Return the machine code of a tick. All simulations have arguments of the same types."""
    return bind(step_cars, *step_arguments(tables))


def bind_term_step(tables: TrackTables) -> Callable[..., int]:
    """Return the machine code of a tick of a config with terms."""
    return bind(step_cars_with_terms, *step_arguments(tables), np.zeros((1, BEFORE)))


def step_arguments(tables: TrackTables) -> tuple[Any, ...]:
    """Return arguments of the right types for `step_cars`."""
    return tables, Config().table(), np.zeros(1, CAR), _blank_observations(1), np.zeros(1, np.int64)


def bind_start(tables: TrackTables) -> Callable[..., None]:
    """Return the machine code that starts episodes."""
    return bind(start_cars, tables, Start().table(), np.zeros(1, CAR), _blank_observations(1), np.zeros(1, np.int64))


def bind_observe(tables: TrackTables) -> Callable[..., None]:
    """Return the machine code that writes observations in double precision."""
    return bind(observe_exactly, tables, np.zeros(1, CAR), np.zeros((1, OBSERVATION_SIZE)), np.zeros(1, np.int64))


def _blank_observations(num_cars: int) -> Observations:
    return np.zeros((num_cars, OBSERVATION_SIZE), np.float32)


class Simulation:
    """N independent cars on one or several tracks. Nothing else in the project computes physics, rays or laps.

    track: one or several tracks, which simulations can share; car i drives on track i modulo their count.
    config: reward weights and episode limits, as ai-config JSON.
    auto_reset: start the next episode of a car within the step that ended the last one.
    redraw: draw one of several tracks for every episode, with the car's own random generator.
    start: ranges from which starts are drawn; the standing start by default.
    seed: seed of all random draws. Car i draws like the only car of a simulation with seed + i.
    threads: maximum number of threads that share a step.
    tables: tables of the track by default; `track.brute_force_tables()` for tests and benchmarks.
    """

    def __init__(
        self,
        track: Track | Sequence[Track],
        num_cars: int = 1,
        config: Config | Mapping[str, Any] | None = None,
        auto_reset: bool = False,
        *,
        redraw: bool = False,
        start: Start | None = None,
        seed: int = 0,
        threads: int = 1,
        tables: TrackTables | None = None,
    ) -> None:
        self.tracks = (track,) if isinstance(track, Track) else tuple(track)
        if num_cars < 1:
            raise RacerError(f"a simulation needs at least one car, not {num_cars}")
        if not self.tracks:
            raise RacerError("a simulation needs at least one track")
        self.num_cars = num_cars
        self.auto_reset = auto_reset
        self.redraw = redraw
        self._tables = [each.tables for each in self.tracks] if tables is None else [tables]
        self._drawn = len(self.tracks) if redraw and len(self.tracks) > 1 else 0
        """Number of tracks of which an episode draws one; 0 if cars keep their track."""
        self._current = np.arange(len(self.tracks))
        """Index of the track that replaced each one of the beginning, or its own."""
        self._successors = np.arange(len(self.tracks))
        """Track of a car's next episode by its track, if it keeps its track; another one if that was exchanged."""
        self._exchanged = False
        self._cars = np.zeros(num_cars, CAR)
        self.cars: Cars = self._cars.view(np.recarray)
        """State columns by name, as `cars.x` or `cars["x"]`. A position written here is used from the next step on."""
        self._actions = self._cars["action"]
        self._shape = self._actions.shape
        self._observations = _blank_observations(num_cars)
        self._final_cars = np.zeros(num_cars, CAR)
        self.ended = _NO_ROWS
        """Indices of the cars whose episode ended in the last step."""
        self.result = StepResult(
            observations=self._observations,
            rewards=self._cars["reward"],
            components=self._cars["components"],
            terminated=self._cars["terminated"],
            truncated=self._cars["truncated"],
            finished_lap_ticks=self._cars["finished_lap_ticks"],
            final_observations=np.zeros_like(self._observations),
            final_cars=self._final_cars.view(np.recarray),
        )
        self._begin = bind_start(self.tables)
        self._exact: Floats | None = None
        self._joined: JoinedTables | None = None
        self._team = ThreadTeam(min(threads, os.cpu_count() or 1, num_cars // CARS_PER_CALL), "racer-step")
        self._cars["track"] = np.arange(num_cars) % len(self.tracks)
        self.configure(config)
        self.start_from(start or Start())
        self.seed(seed)
        self.reset()

    @property
    def track(self) -> Track:
        """The first track."""
        return self.tracks[0]

    @property
    def tables(self) -> TrackTables:
        """Tables of the first track."""
        return self._tables[0]

    def configure(self, config: Config | Mapping[str, Any] | None) -> None:
        """Set reward weights, reward terms and episode limits from the next step on; `result` has other components."""
        self.config = parse_config(config)
        self._rules = self.config.table()
        components, count = self._cars["components"], len(self.config.components)
        components[:, count:] = 0.0
        self.result = replace(self.result, components=components[:, :count])
        with_terms = bool(self.config.formulas)
        self._step = bind_term_step(self.tables) if with_terms else bind_step(self.tables)
        self._before = np.zeros((self.num_cars if with_terms else 0, BEFORE))
        self._plan_calls()

    def exchange_track(self, number: int, track: Track) -> int:
        """Start the episodes on a track that would start on another one; return its index. Running episodes go on.

        The new track takes the index of one that is no longer needed, or one more.
        number: index of the other track in the tracks of the beginning, also if it was exchanged before.
        """
        before = int(self._current[number])
        needed = {*np.delete(self._current, number).tolist(), *self._cars["track"].tolist()}
        new = next((each for each in range(len(self.tracks)) if each not in needed), len(self.tracks))
        self.tracks = (*self.tracks[:new], track, *self.tracks[new + 1 :])
        self._tables[new : new + 1] = [track.tables]
        self._current[number] = new
        self._successors = np.append(self._successors, new)[: len(self.tracks)]
        self._successors[self._successors == before] = new
        self._successors[new] = new
        self._exchanged, self._joined = True, None
        self._plan_calls()
        return new

    @property
    def track_numbers(self) -> NDArray[np.int64]:
        """Number of each track among those of the beginning; −1 for tracks that were exchanged for others."""
        numbers = np.full(len(self.tracks), -1)
        numbers[self._current] = np.arange(len(self._current))
        return numbers

    def start_from(self, start: Start) -> None:
        """Set the ranges from which future starts are drawn."""
        self.start = start
        self._ranges = start.table()

    def seed(self, seed: int | Sequence[int | None]) -> None:
        """Seed the random generators: car i with seed + i, or with entry i of a sequence; None changes nothing."""
        seeds = range(seed, seed + self.num_cars) if isinstance(seed, int) else seed
        if len(seeds) != self.num_cars:
            raise RacerError(f"seed: {self.num_cars} cars need one number each, not {len(seeds)}")
        for row, number in enumerate(seeds):
            if number is not None:
                self._cars["random"][row] = (number * 0xD1342543DE82EF95 + 0x2545F4914F6CDD1D) % 2**64

    def reset(self, mask: ArrayLike | None = None) -> Observations:
        """Start a new episode for all cars, or for those in the mask. Returns the observations of all cars."""
        chosen = np.ones(self.num_cars, np.bool_) if mask is None else np.asarray(mask, dtype=np.bool_)
        if chosen.shape != (self.num_cars,):
            raise RacerError(
                f"reset: the mask needs one entry for each of {self.num_cars} cars, not shape {chosen.shape}"
            )
        self.ended = _NO_ROWS
        for column in ("action", "reward", "components", "terminated", "truncated", "finished_lap_ticks"):
            self._cars[column][chosen] = 0
        self._begin_episodes(np.flatnonzero(chosen))
        return self._observations

    def put_back(self, car: int) -> None:
        """Put a car back on the centreline at a standstill, at most as far as it has come since its last gate.

        Its laps, gates and ticks go on.
        """
        row = self._cars[car].copy()
        length, gates = self.tracks[row["track"]].length, len(self.tracks[row["track"]].gates)
        since_gate = (row["arc"] / length - row["checkpoint"] / gates + 0.5) % 1.0 - 0.5
        share = (row["checkpoint"] / gates + (since_gate if 0.0 <= since_gate < 1.0 / gates else 0.0)) % 1.0
        ranges = Start(arc=(float(share), float(share))).table()
        self._begin(self._tables[row["track"]], ranges, self._cars, self._observations, np.array([car]))
        for column in _KEPT_WHEN_PUT_BACK:
            self._cars[column][car] = row[column]

    def step(self, actions: ArrayLike) -> StepResult:
        """Advance every car by one tick. Actions are N rows of steer, throttle, brake, clamped to their ranges."""
        try:
            if getattr(actions, "shape", None) != self._shape:
                actions = self._as_rows(actions)
            self._actions[...] = actions
        except (TypeError, ValueError) as error:
            raise ActionError(
                f"actions must be {self.num_cars} rows of steer, throttle, brake as finite numbers: {error}"
            ) from None
        return self.advance()

    def advance(self) -> StepResult:
        """Advance every car by one tick with the action in its row."""
        ended = self._step(*self._call) if self._call else self._step_in_calls()
        self.ended = self._finish(ended) if ended else _NO_ROWS
        return self.result

    def exact_observations(self) -> Floats:
        """Return the observations (N, 14) before they are rounded to float32. The next call overwrites the array."""
        if self._exact is None:
            self._exact, self._observe = np.zeros(self._observations.shape), bind_observe(self.tables)
        for tables, _, cars, _, rows, *_ in self._calls:
            self._observe(tables, cars, self._exact, rows)
        return self._exact

    def fleet(self) -> Fleet:
        """Return the cars for compiled code that steps them itself, with the current rewards and starts.

        Such code starts the next episode of a car with `restart`. Reset the simulation before it steps the cars again.
        """
        if self._joined is None:
            self._joined = join_tables(self._tables)
        draws = [0.0, float(self._drawn)] if self._drawn else []
        order, ends = np.zeros(self.num_cars, np.int64), np.zeros(len(self.tracks), np.int64)
        return Fleet(
            self._joined, self._rules, self._ranges, self._cars, self._observations, order, ends, np.array(draws),
            self._current if self._drawn else self._successors, self._before,
        )  # fmt: skip

    def _as_rows(self, actions: ArrayLike) -> Floats:
        array = np.asarray(actions, dtype=np.float64)
        if array.shape != self._shape:
            raise ValueError(f"this is an array of shape {array.shape}")
        return array

    def _plan_calls(self) -> None:
        """Prepare one compiled call per track that has cars, or several if threads share them."""
        order = np.argsort(self._cars["track"], kind="stable")
        ends = np.cumsum(np.bincount(self._cars["track"], minlength=len(self.tracks)))[:-1]
        shares = (
            (tables, share)
            for tables, members in zip(self._tables, np.split(order, ends), strict=True)
            for share in np.array_split(members, self._number_of_calls(len(members)))
        )
        self._calls: list[tuple[Any, ...]] = [
            (tables, self._rules, self._cars, self._observations, rows) for tables, rows in shares if len(rows)
        ]
        if self.config.formulas:  # terms are evaluated within the rules, so threads need their own
            self._calls = [(tables, self._rules.copy(), *rest, self._before) for tables, _, *rest in self._calls]
        self._call = self._calls[0] if len(self._calls) == 1 else None

    def _number_of_calls(self, cars: int) -> int:
        """Return the number of calls that step some cars of one track."""
        if self._team.threads == 1:
            return 1
        return max(1, min(cars // CARS_PER_CALL, self._team.threads * CALLS_PER_THREAD))

    def _step_in_calls(self) -> int:
        if not np.isfinite(self._actions).all():
            return BAD_ACTION
        ended: list[int] = []
        self._team.run(lambda thread, number: ended.append(self._step(*self._calls[number])), len(self._calls))
        return sum(ended)

    def _finish(self, count: int) -> NDArray[np.int64]:
        """Handle a tick in which episodes ended or an action was not finite. Returns the indices of the ended cars.

        With auto-reset, save their last observation and state, and start their next episode.
        """
        if count == BAD_ACTION:
            self._actions[...] = 0.0
            raise ActionError("actions must be finite numbers; nothing was stepped")
        ended = np.flatnonzero(self.result.terminated | self.result.truncated)
        if self.auto_reset:
            self.result.final_observations[ended] = self._observations[ended]
            self._final_cars[ended] = self._cars[ended]
            self._begin_episodes(ended)
        return ended

    def _begin_episodes(self, rows: NDArray[np.int64]) -> None:
        if self._drawn:
            self._cars["track"][rows] = self._current[draw_index(self._drawn, self._cars, rows)]
            self._plan_calls()
        elif self._exchanged:
            self._cars["track"][rows] = self._successors[self._cars["track"][rows]]
            self._plan_calls()
        tracks = self._cars["track"][rows]
        for number in np.unique(tracks):
            self._begin(self._tables[number], self._ranges, self._cars, self._observations, rows[tracks == number])

    def save(self) -> SimulationState:
        """Return a copy of the whole state of all cars."""
        return SimulationState(self._cars.copy().view(np.recarray), self._observations.copy())

    def restore(self, state: SimulationState) -> None:
        """Continue exactly from a saved state of this or another simulation with as many cars.

        The state may have been edited: a car whose position was changed is located again.
        """
        if len(state.cars) != self.num_cars:
            raise RacerError(f"restore: the state has {len(state.cars)} cars, the simulation {self.num_cars}")
        if state.cars["track"].max() >= len(self.tracks):
            raise RacerError("restore: the state has a car on a track that the simulation does not have")
        self._cars[...] = state.cars
        self._observations[...] = state.observations
        self._plan_calls()

    def close(self) -> None:
        """End the other threads, if there are any."""
        self._team.close()
