"""A replay driven again: every tick of it, its laps, and where the rewards came from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from racer_env.errors import RacerError
from racer_viewer.replays.replay import Floats, Replay, ReplayError

if TYPE_CHECKING:
    from racer_env.engine import Circuit, Track

Cars = NDArray[Any]
"""Rows of `racer_env.engine.CAR`."""

REWARD_TOLERANCE = 1e-6
"""Between machines sums may differ in their last digits; on one machine they are the same to the bit."""
TRACKS_KEPT = 4
LAPS_LISTED = 5
"""In a message."""
STILL_AT_WALL = 15
"""A car that leaves the wall for no more ticks than this is still at it: one hit, not many."""


@dataclass(frozen=True)
class Lap:
    """A finished lap.

    first, last: rows of the trace in which the car had just crossed the line, or stood at it for its start.
    gate_ticks: by the number of the gate, the ticks since `first` after which it was taken; number 0 is the line at
        the end of the lap.
    clean: no wall was touched, and the car was on the road in every tick.
    """

    first: int
    last: int
    gate_ticks: tuple[int, ...]
    clean: bool

    @property
    def ticks(self) -> int:
        return self.last - self.first


@dataclass(frozen=True, eq=False)
class Trace:
    """Row 0 is the start, row t is after tick t.

    rows: (T + 1,) of `CAR`.
    observations: (T + 1, 14), what an agent saw.
    """

    replay: Replay
    track: Track
    rows: Cars
    observations: NDArray[np.float32]

    @property
    def ticks(self) -> int:
        return len(self.rows) - 1

    @cached_property
    def laps(self) -> tuple[Lap, ...]:
        """The finished laps, in order. One that began elsewhere than at the line is none."""
        ends = np.flatnonzero(self.rows["finished_lap_ticks"])
        return tuple(self._lap(int(end), int(self.rows["finished_lap_ticks"][end])) for end in ends)

    @property
    def best_lap(self) -> Lap | None:
        """The fastest, from a standing start or flying; of equals, the first."""
        return min(self.laps, key=lambda lap: lap.ticks, default=None)

    @property
    def ghost(self) -> Cars | None:
        """The best lap as rows 0 to n, n its time: where the car was so many ticks after the line."""
        best = self.best_lap
        return None if best is None else self.lap_rows(best)

    def lap_rows(self, lap: Lap) -> Cars:
        """The rows of a lap, from one line to the next: one more than it has ticks."""
        return self.rows[lap.first : lap.last + 1]

    @cached_property
    def totals(self) -> Floats:
        """(T + 1, 6): the reward components summed up until each row, in the order of `COMPONENTS`."""
        return np.add.accumulate(self.rows["components"], axis=0)

    @cached_property
    def reward(self) -> float:
        """Sum over the run, added up tick by tick as whoever drives does."""
        return float(np.add.accumulate(self.rows["reward"])[-1])

    def gate_ticks_at(self, tick: int) -> tuple[int, ...]:
        """As `Lap.gate_ticks`, of the lap that is being driven after this tick; 0 where a gate is yet to be taken."""
        return self._gate_ticks(tick - int(self.rows["lap_ticks"][tick]), tick)

    @property
    def disagreement(self) -> str | None:
        """In a line, how this is not what the replay says that came of it; None if it is."""
        laps = tuple(lap.ticks for lap in self.laps)
        if laps != self.replay.laps:
            return f"lap times claimed: {_listed(self.replay.laps)}; driven again: {_listed(laps)}"
        if not math.isclose(self.reward, self.replay.reward, rel_tol=REWARD_TOLERANCE, abs_tol=REWARD_TOLERANCE):
            return f"reward claimed: {self.replay.reward:.6g}; driven again: {self.reward:.6g}"
        return None

    @cached_property
    def gate_rows(self) -> NDArray[np.int64]:
        """Rows in which a gate was taken."""
        return np.flatnonzero(np.diff(self.rows["checkpoint"])) + 1

    @cached_property
    def wall_rows(self) -> NDArray[np.int64]:
        """Rows in which a wall was hit, each hit once however long the car stayed at the wall."""
        touched = np.flatnonzero(self.rows["wall_contact"])
        return touched[np.diff(touched, prepend=-STILL_AT_WALL - 1) > STILL_AT_WALL]

    def _lap(self, last: int, ticks: int) -> Lap:
        from racer_env.engine.car import ROAD

        first = last - ticks
        driven = self.rows[first + 1 : last + 1]
        clean = not driven["wall_contact"].any() and bool((driven["surface"] == ROAD).all())
        return Lap(first, last, self._gate_ticks(first, last), clean)

    def _gate_ticks(self, first: int, last: int) -> tuple[int, ...]:
        begin, end = np.searchsorted(self.gate_rows, (first, last), side="right")
        taken = self.gate_rows[begin:end]
        ticks = np.zeros(len(self.track.gates), np.int64)
        ticks[self.rows["checkpoint"][taken]] = taken - first
        return tuple(ticks.tolist())


class Tracing:
    """A replay that is being driven again, as far as somebody has time for it; an hour of it takes some seconds.

    track: that of its circuit, if it is built already; building one takes a moment.
    """

    def __init__(self, replay: Replay, track: Track | None = None) -> None:
        from racer_env.engine import CAR, Simulation

        if track is None:
            track = track_of(replay.circuit)
        elif not is_of(track, replay.circuit):
            raise ReplayError("the replay was driven on another circuit than this track's")
        self.replay, self.track = replay, track
        self.tick = 0
        """How far it is."""
        self._simulation = Simulation(track, 1, replay.config, start=replay.start, seed=replay.seed)
        self._rows = np.zeros(replay.ticks + 1, CAR)
        self._seen = np.zeros((replay.ticks + 1, self._simulation.result.observations.shape[1]), np.float32)
        self._rows[0], self._seen[0] = self._simulation.cars[0], self._simulation.result.observations[0]

    def go_on(self, ticks: int) -> bool:
        """Drive so many ticks more, some 10 µs each; whether there are any left then."""
        simulation, rows = self._simulation, self._rows
        row_bytes = rows.view(np.uint8).reshape(len(rows), rows.itemsize)
        car_bytes, seen, step = (
            simulation.cars.view(np.uint8, np.ndarray),
            simulation.result.observations[0],
            simulation.step,
        )
        first = self.tick
        self.tick = min(self.replay.ticks, first + ticks)
        for tick, action in enumerate(self.replay.actions[first : self.tick, None, :], first + 1):
            step(action)
            row_bytes[tick] = car_bytes
            self._seen[tick] = seen
        return self.tick < self.replay.ticks

    def trace(self) -> Trace:
        """All of it; what was not driven yet is driven now."""
        self.go_on(self.replay.ticks)
        self._rows.flags.writeable = self._seen.flags.writeable = False
        return Trace(self.replay, self.track, self._rows, self._seen)


def trace_replay(replay: Replay, track: Track | None = None) -> Trace:
    """Drive a replay again, some 10 µs a tick.

    track: that of its circuit, if it is built already; building one takes a moment.

    A replay of another engine version is driven as this engine does it.
    """
    return Tracing(replay, track).trace()


@lru_cache(maxsize=TRACKS_KEPT)
def track_of(circuit: Circuit) -> Track:
    """The track of a circuit: for a bundled one, the very track that everybody drives on."""
    from racer_env.engine import circuits, load_circuit

    try:
        return load_circuit(circuit.id if circuit in circuits() else circuit)
    except RacerError as error:
        raise ReplayError(f"the circuit of the replay cannot be built: {error}") from None


def is_of(track: Track, circuit: Circuit) -> bool:
    """Whether what is driven there is the same; names and medals may differ."""
    points = np.array(circuit.control_points, np.float64)
    return len(track.gates) == circuit.gates and np.array_equal(track.control_points, points)


def _listed(laps: tuple[int, ...]) -> str:
    if not laps:
        return "none"
    return ", ".join(map(str, laps[:LAPS_LISTED])) + (", …" if len(laps) > LAPS_LISTED else "") + " ticks"
