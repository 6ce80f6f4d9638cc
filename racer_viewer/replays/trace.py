"""A replay driven again: every tick of it, its laps, and where the rewards came from.

Several runs on one circuit, each from its own start at tick 0: who is how far ahead at any tick of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from racer_env.errors import RacerError
from racer_viewer.replays.replay import Floats, Replay, ReplayError

if TYPE_CHECKING:
    from racer_env.engine import Circuit, Track
    from racer_viewer.timing import LapTime

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

    @property
    def time(self) -> LapTime:
        from racer_viewer.timing import LapTime

        return LapTime(self.ticks, self.gate_ticks)


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
        """(T + 1, 6): the reward components summed up until each row, in the order of `REWARD_COMPONENTS`."""
        return np.add.accumulate(self.rows["components"], axis=0)

    @cached_property
    def reward(self) -> float:
        """Sum over the run, added up tick by tick as whoever drives does."""
        return float(np.add.accumulate(self.rows["reward"])[-1])

    def gate_ticks_at(self, tick: int) -> tuple[int, ...]:
        """As `Lap.gate_ticks`, of the lap that is being driven after this tick; 0 where a gate is yet to be taken."""
        return self._gate_ticks(tick - int(self.rows["lap_ticks"][tick]), tick)

    @property
    def mismatch(self) -> str | None:
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


class ReplayTracer:
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

    def advance(self, ticks: int) -> bool:
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
        self.advance(self.replay.ticks)
        self._rows.flags.writeable = self._seen.flags.writeable = False
        return Trace(self.replay, self.track, self._rows, self._seen)


def trace_replay(replay: Replay, track: Track | None = None) -> Trace:
    """Drive a replay again, some 10 µs a tick.

    track: that of its circuit, if it is built already; building one takes a moment.

    A replay of another engine version is driven as this engine does it.
    """
    return ReplayTracer(replay, track).trace()


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


MAX_COMPARED = 8
"""Runs at a time: more cannot be told apart."""


@dataclass(frozen=True)
class Standing:
    """Who crossed the line at the end of a lap, in this order.

    runs: their numbers. ticks: of each since its start.
    """

    lap: int
    runs: tuple[int, ...]
    ticks: tuple[int, ...]


class Comparison:
    """Runs by the gates that they took: the gate of one lap is another than that of the next."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._gates = len(traces[0].track.gates)
        self._taken = [trace.gate_rows.tolist() for trace in traces]
        self._starts = [int(trace.rows["lap"][0]) * self._gates + int(trace.rows["checkpoint"][0]) for trace in traces]
        """The last gate before the start; a lap has as many as the circuit."""

    def gaps(self, tick: int, focus: int) -> tuple[float, ...]:
        """For every run how far it is behind (+) or ahead (−) of one of them [ticks], by when both took the last gate
        that both have taken; 0 before the first, NaN if there is none since one started beyond it."""
        return tuple(self._gap(number, focus, tick) for number in range(len(self._taken)))

    def standing(self, tick: int) -> Standing | None:
        """At the end of the last lap that two runs or more have ended; None before, and where they started apart."""
        if len(set(self._starts)) > 1:
            return None
        reached = sorted(self._reached(number, tick) // self._gates for number in range(len(self._taken)))
        if len(reached) < 2 or reached[-2] < 2:
            return None
        line = reached[-2] * self._gates
        times = [(self._taken_at(number, line), number) for number in range(len(self._taken))]
        ended = sorted((when, number) for when, number in times if when is not None and when <= tick)
        if len(ended) < 2:
            return None
        return Standing(reached[-2] - 1, tuple(number for _, number in ended), tuple(when for when, _ in ended))

    def _gap(self, number: int, focus: int, tick: int) -> float:
        gate = min(self._reached(number, tick), self._reached(focus, tick))
        theirs, ours = self._taken_at(number, gate), self._taken_at(focus, gate)
        if theirs is not None and ours is not None:
            return float(theirs - ours)
        return 0.0 if self._starts[number] == self._starts[focus] else math.nan

    def _reached(self, number: int, tick: int) -> int:
        """The last gate that a run has taken."""
        return self._starts[number] + bisect_right(self._taken[number], tick)

    def _taken_at(self, number: int, gate: int) -> int | None:
        """When a run took a gate; None if it never did."""
        place, taken = gate - self._starts[number] - 1, self._taken[number]
        return taken[place] if 0 <= place < len(taken) else None


def common_track(replays: Sequence[Replay]) -> Track:
    """The track of all of them. Runs on different circuits, or too many, cannot be compared."""
    if not replays:
        raise ReplayError("there is no replay to show")
    if len(replays) > MAX_COMPARED:
        raise ReplayError(f"at most {MAX_COMPARED} replays can be compared at a time, not {len(replays)}")
    first = replays[0]
    for other in replays[1:]:
        if _driven(other.circuit) != _driven(first.circuit):
            raise ReplayError(
                f"replays of different circuits cannot be compared: {_who(first)} drove on {first.circuit.name},"
                f" {_who(other)} on {_other_name(other.circuit, first.circuit)}"
            )
    return track_of(first.circuit)


def _driven(circuit: Circuit) -> tuple[object, ...]:
    """What makes a circuit another one."""
    return circuit.control_points, circuit.gates


def _who(replay: Replay) -> str:
    return replay.driver or "nobody"


def _other_name(circuit: Circuit, known: Circuit) -> str:
    return f"another circuit of this name, {circuit.name}" if circuit.name == known.name else circuit.name
