"""Traces: re-simulated replays with every tick, their laps and rewards, and the comparison of several traces."""

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
"""Tolerance of the total reward; sums may differ in their last digits between machines."""
TRACK_CACHE_SIZE = 4
MAX_LISTED_LAPS = 5
"""Maximum number of laps in a message."""
WALL_HIT_GAP = 15
"""Maximum gap between two wall contacts of the same hit [ticks]."""


@dataclass(frozen=True)
class ReplayLap:
    """A finished lap of a trace.

    first, last: rows of the trace right after the car crossed the line; `first` is 0 for a standing start.
    gate_ticks: ticks since `first` at each gate, by gate number; gate 0 is the finish line.
    fault: first reason for which the lap does not count, and where; empty if it is clean.
    """

    first: int
    last: int
    gate_ticks: tuple[int, ...]
    fault: str = ""

    @property
    def clean(self) -> bool:
        """True if no wall was touched and the car was on the road in every tick."""
        return not self.fault

    @property
    def ticks(self) -> int:
        return self.last - self.first

    @property
    def time(self) -> LapTime:
        from racer_viewer.timing import LapTime

        return LapTime(self.ticks, self.gate_ticks, self.fault)


@dataclass(frozen=True, eq=False)
class Trace:
    """Every tick of a replay: row 0 is the start, row t the state after tick t.

    rows: (T + 1,) of `CAR`.
    observations: (T + 1, 14) observations of an agent.
    """

    replay: Replay
    track: Track
    rows: Cars
    observations: NDArray[np.float32]

    @property
    def ticks(self) -> int:
        return len(self.rows) - 1

    @cached_property
    def laps(self) -> tuple[ReplayLap, ...]:
        """Finished laps in order; a lap that started away from the line is not counted."""
        ends = np.flatnonzero(self.rows["finished_lap_ticks"])
        return tuple(self._lap(int(end), int(self.rows["finished_lap_ticks"][end])) for end in ends)

    @property
    def best_lap(self) -> ReplayLap | None:
        """Fastest clean lap, standing or flying; the first of equals."""
        return min((lap for lap in self.laps if lap.clean), key=lambda lap: lap.ticks, default=None)

    @property
    def ghost(self) -> Cars | None:
        """Rows of the best lap, indexed by ticks since the line."""
        best = self.best_lap
        return None if best is None else self.lap_rows(best)

    def lap_rows(self, lap: ReplayLap) -> Cars:
        """Return the rows of a lap, including both crossings of the line."""
        return self.rows[lap.first : lap.last + 1]

    @cached_property
    def totals(self) -> Floats:
        """Reward components summed up to each row, in the order of `Config.components`, (T + 1, COMPONENT_CAPACITY)."""
        return np.add.accumulate(self.rows["components"], axis=0)

    @cached_property
    def reward(self) -> float:
        """Total reward, summed tick by tick as in the recording."""
        return float(np.add.accumulate(self.rows["reward"])[-1])

    def gate_ticks_at(self, tick: int) -> tuple[int, ...]:
        """Return `ReplayLap.gate_ticks` of the current lap at a tick; 0 for gates ahead."""
        return self._gate_ticks(tick - int(self.rows["lap_ticks"][tick]), tick)

    @property
    def mismatch(self) -> str | None:
        """Difference between the trace and the recorded result, in one line; None if they agree."""
        laps = tuple(lap.ticks for lap in self.laps)
        if laps != self.replay.laps:
            return f"lap times recorded: {_listed(self.replay.laps)}; re-simulated: {_listed(laps)}"
        if not math.isclose(self.reward, self.replay.reward, rel_tol=REWARD_TOLERANCE, abs_tol=REWARD_TOLERANCE):
            return f"reward recorded: {self.replay.reward:.6g}; re-simulated: {self.reward:.6g}"
        return None

    @cached_property
    def gate_rows(self) -> NDArray[np.int64]:
        """Rows in which a gate was crossed."""
        return np.flatnonzero(np.diff(self.rows["checkpoint"])) + 1

    @cached_property
    def wall_rows(self) -> NDArray[np.int64]:
        """Rows of wall hits; contacts at most WALL_HIT_GAP apart are one hit."""
        touched = np.flatnonzero(self.rows["wall_contact"])
        return touched[np.diff(touched, prepend=-WALL_HIT_GAP - 1) > WALL_HIT_GAP]

    @cached_property
    def faults(self) -> dict[int, str]:
        """First fault of each lap by its row, see `ReplayLap.fault`."""
        from racer_viewer.timing import first_faults

        return first_faults(self.rows, self.replay.put_back)

    def _lap(self, last: int, ticks: int) -> ReplayLap:
        first = last - ticks
        row = next((row for row in self.faults if first < row <= last), None)
        fault = "" if row is None else f"{self.faults[row]} in sector {self._sector(row)}"
        return ReplayLap(first, last, self._gate_ticks(first, last), fault)

    def _sector(self, row: int) -> int:
        """Return the number of the sector, from 1, that the car was in before a row."""
        from racer_viewer.timing import sector_gates

        gate = int(self.rows["checkpoint"][row - 1])
        return 1 + sum(gate >= each for each in sector_gates(len(self.track.gates)))

    def _gate_ticks(self, first: int, last: int) -> tuple[int, ...]:
        begin, end = np.searchsorted(self.gate_rows, (first, last), side="right")
        taken = self.gate_rows[begin:end]
        ticks = np.zeros(len(self.track.gates), np.int64)
        ticks[self.rows["checkpoint"][taken]] = taken - first
        return tuple(ticks.tolist())


class ReplayTracer:
    """Re-simulation of a replay in portions; an hour of driving takes some seconds.

    track: track of its circuit, if built already; building one takes a moment.
    tick: number of ticks simulated so far.
    """

    def __init__(self, replay: Replay, track: Track | None = None) -> None:
        from racer_env.engine import CAR, Simulation

        if track is None:
            track = track_of(replay.circuit)
        elif not is_track_of(track, replay.circuit):
            raise ReplayError("the replay was recorded on another circuit")
        self.replay, self.track = replay, track
        self.tick = 0
        self._simulation = Simulation(track, 1, replay.config, start=replay.start, seed=replay.seed)
        self._rows = np.zeros(replay.ticks + 1, CAR)
        self._observations = np.zeros((replay.ticks + 1, self._simulation.result.observations.shape[1]), np.float32)
        self._rows[0], self._observations[0] = self._simulation.cars[0], self._simulation.result.observations[0]

    def advance(self, ticks: int) -> bool:
        """Simulate up to so many ticks, about 10 µs each; return True if any are left."""
        simulation, rows = self._simulation, self._rows
        row_bytes = rows.view(np.uint8).reshape(len(rows), rows.itemsize)
        car_bytes, seen, step = (
            simulation.cars.view(np.uint8, np.ndarray),
            simulation.result.observations[0],
            simulation.step,
        )
        first = self.tick
        self.tick = min(self.replay.ticks, first + ticks)
        put_back = set(self.replay.put_back)
        for tick, action in enumerate(self.replay.actions[first : self.tick, None, :], first + 1):
            if tick in put_back:
                simulation.put_back(0)
            step(action)
            row_bytes[tick] = car_bytes
            self._observations[tick] = seen
        return self.tick < self.replay.ticks

    def trace(self) -> Trace:
        """Simulate the rest and return the trace."""
        self.advance(self.replay.ticks)
        self._rows.flags.writeable = self._observations.flags.writeable = False
        return Trace(self.replay, self.track, self._rows, self._observations)


def trace_replay(replay: Replay, track: Track | None = None) -> Trace:
    """Re-simulate a replay, about 10 µs per tick, with this engine even if another version recorded it.

    track: track of its circuit, if built already; building one takes a moment.
    """
    return ReplayTracer(replay, track).trace()


@lru_cache(maxsize=TRACK_CACHE_SIZE)
def track_of(circuit: Circuit) -> Track:
    """Return the track of a circuit; circuits with the geometry of a bundled one share the track of `load_circuit`."""
    from racer_env.engine import circuits, load_circuit

    same = (each.id for each in circuits() if _geometry(each) == _geometry(circuit))
    try:
        return load_circuit(next(same, circuit))
    except RacerError as error:
        raise ReplayError(f"the circuit of the replay cannot be built: {error}") from None


def is_track_of(track: Track, circuit: Circuit) -> bool:
    """Return True if a track has the geometry of a circuit; names and medals may differ."""
    points = np.array(circuit.control_points, np.float64)
    return len(track.gates) == circuit.gates and np.array_equal(track.control_points, points)


def _listed(laps: tuple[int, ...]) -> str:
    if not laps:
        return "none"
    return ", ".join(map(str, laps[:MAX_LISTED_LAPS])) + (", …" if len(laps) > MAX_LISTED_LAPS else "") + " ticks"


MAX_COMPARED = 8
"""Maximum number of compared replays; more cannot be distinguished on screen."""


@dataclass(frozen=True)
class Standing:
    """Order of the replays at the end of a lap.

    runs: indices of the replays, first to last.
    ticks: time of each since its start [ticks].
    """

    lap: int
    runs: tuple[int, ...]
    ticks: tuple[int, ...]


class Comparison:
    """Gaps between traces on one circuit, each from its own start at tick 0. Gates are counted over all laps."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._gates = len(traces[0].track.gates)
        self._crossed = [trace.gate_rows.tolist() for trace in traces]
        self._starts = [int(trace.rows["lap"][0]) * self._gates + int(trace.rows["checkpoint"][0]) for trace in traces]
        """Number of the last gate before the start."""

    def gaps(self, tick: int, focus: int) -> tuple[float, ...]:
        """Return how far each trace is behind (+) or ahead (−) of the focused one [ticks] at the last common gate.

        The gap is 0 before the first gate, and NaN if one trace started beyond the gates of the other.
        """
        return tuple(self._gap(number, focus, tick) for number in range(len(self._crossed)))

    def standing(self, tick: int) -> Standing | None:
        """Return the order after the last lap that two or more have finished; None before, or if starts differ."""
        if len(set(self._starts)) > 1:
            return None
        reached = sorted(self._reached(number, tick) // self._gates for number in range(len(self._crossed)))
        if len(reached) < 2 or reached[-2] < 2:
            return None
        line = reached[-2] * self._gates
        times = [(self._crossed_at(number, line), number) for number in range(len(self._crossed))]
        ended = sorted((when, number) for when, number in times if when is not None and when <= tick)
        if len(ended) < 2:
            return None
        return Standing(reached[-2] - 1, tuple(number for _, number in ended), tuple(when for when, _ in ended))

    def _gap(self, number: int, focus: int, tick: int) -> float:
        gate = min(self._reached(number, tick), self._reached(focus, tick))
        theirs, ours = self._crossed_at(number, gate), self._crossed_at(focus, gate)
        if theirs is not None and ours is not None:
            return float(theirs - ours)
        return 0.0 if self._starts[number] == self._starts[focus] else math.nan

    def _reached(self, number: int, tick: int) -> int:
        """Return the number of the last gate that a trace has crossed at a tick."""
        return self._starts[number] + bisect_right(self._crossed[number], tick)

    def _crossed_at(self, number: int, gate: int) -> int | None:
        """Return the tick at which a trace crossed a gate; None if it never did."""
        place, taken = gate - self._starts[number] - 1, self._crossed[number]
        return taken[place] if 0 <= place < len(taken) else None


def common_track(replays: Sequence[Replay]) -> Track:
    """Return the track of all replays. Raises ReplayError for different circuits or too many replays."""
    if not replays:
        raise ReplayError("there is no replay to show")
    if len(replays) > MAX_COMPARED:
        raise ReplayError(f"at most {MAX_COMPARED} replays can be compared, not {len(replays)}")
    first = replays[0]
    for other in replays[1:]:
        if _geometry(other.circuit) != _geometry(first.circuit):
            raise ReplayError(
                f"replays of different circuits cannot be compared:"
                f" {_driver_name(first)} drove on {first.circuit.name},"
                f" {_driver_name(other)} on {_other_name(other.circuit, first.circuit)}"
            )
    return track_of(first.circuit)


def _geometry(circuit: Circuit) -> tuple[object, ...]:
    """Return the properties that distinguish two circuits."""
    return circuit.control_points, circuit.gates


def _driver_name(replay: Replay) -> str:
    return replay.driver or "an unnamed driver"


def _other_name(circuit: Circuit, known: Circuit) -> str:
    return f"another circuit of this name, {circuit.name}" if circuit.name == known.name else circuit.name
