"""Laps, sector times and gates of all training cars at once, tick by tick."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from racer_env.bridge.interface import BatchStep
from racer_env.engine import CAR, TICKS_PER_SECOND, Simulation, Track, load_circuit
from racer_viewer.timing import SECTORS, sector_gates
from racer_viewer.training.config import RunConfig
from racer_viewer.training.metrics import DrivingStats, EpisodeTracker, step_info, stuck_ticks

T = TypeVar("T")
Rows = Sequence[int] | NDArray[np.int64]
Times = list[float]
"""Time [s] of each sector of a lap; NaN where unknown."""
UNKNOWN = -1
"""Entry tick of a sector that the car did not enter at its first gate."""
GONE = -1
"""Circuit index of a track that was exchanged for another one, on which some cars still end their episode."""
_NO_TIMES: Times = [math.nan] * SECTORS
"""Row without times; all of them share one NaN object, so that lists of it compare equal."""


class SectorTracker:
    """Measures sector times of all cars. A lap's row has NaN for sectors that were not driven completely.

    from_line: whether episodes start on the start line, so that their first sector counts.

    In most ticks no car enters another sector; a few array operations find that out. The rest is done car by car.
    """

    def __init__(self, tracks: Sequence[Track], cars: int, from_line: bool) -> None:
        self._entry_tick = 0 if from_line else UNKNOWN
        self._first_gate: NDArray[np.int64] = np.zeros(cars, np.int64)
        """Index in `_sector_at` of the first gate of each car's track."""
        self._sector: NDArray[np.int64] = np.zeros(cars, np.int64)
        self._entered = [UNKNOWN] * cars
        self._times = [list(_NO_TIMES) for _ in range(cars)]
        self.set_tracks(tracks, None)

    def set_tracks(self, tracks: Sequence[Track], current: NDArray[Any] | None) -> None:
        """Set the tracks, at the start or after some were exchanged. current: track index of each car."""
        self._gate_count = max(len(track.gates) for track in tracks)
        self._sector_at = np.concatenate([sectors_by_gate(len(track.gates), self._gate_count) for track in tracks])
        """Sector by gate, with `_gate_count` entries per track."""
        if current is not None:
            self._first_gate = current * self._gate_count

    def start(self, checkpoints: NDArray[Any], tracks: NDArray[Any] | None) -> None:
        """Start an episode for all cars."""
        self._start(range(len(self._entered)), checkpoints, tracks)

    def step(self, step: BatchStep, tracks: NDArray[Any] | None) -> Sequence[tuple[int, Times]]:
        """Add a tick; return the row of the car and the times of every lap that ended or was abandoned in it.

        tracks: current track index of each car.
        """
        checkpoints, ticks = step.cars.checkpoint, step.cars.step_count
        ended: list[int] = step.ended.tolist() if len(step.ended) else []
        if ended:
            checkpoints, ticks = checkpoints.copy(), ticks.copy()
            checkpoints[ended], ticks[ended] = step.final_cars.checkpoint, step.final_cars.step_count
        sectors = self._sector_at.take(checkpoints + self._first_gate)
        moved = (sectors != self._sector).nonzero()[0].tolist()
        if not moved and not ended:
            return ()
        for row in moved:
            self._leave(row, int(ticks[row]))
        self._sector = sectors
        over = dict.fromkeys([*(row for row in moved if sectors[row] == 0), *ended])
        laps = [(row, self._take(row)) for row in over]
        if ended:
            self._start(ended, step.cars.checkpoint, tracks)
        return [(row, times) for row, times in laps if times != _NO_TIMES]

    def _leave(self, row: int, tick: int) -> None:
        if self._entered[row] != UNKNOWN:
            self._times[row][self._sector[row]] = (tick - self._entered[row]) / TICKS_PER_SECOND
        self._entered[row] = tick

    def _take(self, row: int) -> Times:
        times, self._times[row] = self._times[row], list(_NO_TIMES)
        return times

    def _start(self, rows: Sequence[int], checkpoints: NDArray[Any], tracks: NDArray[Any] | None) -> None:
        for row in rows:
            if tracks is not None:
                self._first_gate[row] = tracks[row] * self._gate_count
            self._sector[row] = self._sector_at[checkpoints[row] + self._first_gate[row]]
            self._entered[row], self._times[row] = self._entry_tick, list(_NO_TIMES)


def circuits_by_track(circuits: NDArray[np.int64], simulation: Simulation) -> NDArray[np.int64]:
    """Return the circuit index of each track of a simulation, or GONE.

    circuits: circuit index of each track of the beginning.
    """
    numbers = simulation.track_numbers
    return np.where(numbers >= 0, circuits[numbers], GONE)


def sectors_by_gate(gates: int, size: int) -> NDArray[np.int64]:
    """Return the sector of each gate of a track, in an array of `size`."""
    return np.searchsorted(sector_gates(gates), np.arange(size), "right").astype(np.int64)


class LapTracker:
    """Collects the driving statistics of cars from the start of their first episodes.

    simulation: the cars, if they are in this process. first: result of the reset of all cars. A bridge does not report
    which car drives on which circuit: laps have no circuit, and there are no sector times, if a run has several.
    """

    def __init__(self, config: RunConfig, simulation: Simulation | None, first: BatchStep) -> None:
        self._config, self._simulation = config, simulation
        self._cars = len(first.cars.checkpoint)
        self._circuit_of_number = np.array([config.circuits.index(name) for name in config.tracks])
        """Circuit index of each track of the beginning; `config.tracks` may contain a circuit twice."""
        self._tracks = None if simulation is None else simulation.cars.view(CAR, np.ndarray)["track"]
        self._gate_counts: NDArray[np.float64]
        self._stuck_after: NDArray[np.int64]
        self._prepare_tracks()
        self._episodes = EpisodeTracker(self._cars)
        self._sectors = self._make_sector_tracker(simulation)
        if self._sectors is not None:
            self._sectors.start(first.cars.checkpoint, self._tracks)

    def step(self, step: BatchStep) -> DrivingStats:
        """Add a tick and return its statistics."""
        info = step_info(step)
        stats = self._episodes.step(info, self._gate_counts, self._stuck_after)
        if info.lap_times:
            stats.laps, stats.lap_circuits = self._with_circuits(info.lap_rows, info.lap_times)
        if self._sectors is not None and (laps := self._sectors.step(step, self._tracks)):
            rows, times = zip(*laps, strict=True)
            stats.sectors, stats.sector_circuits = self._with_circuits(rows, times)
        if len(info.ended) and self._tracks is not None:
            self._circuits = self._current_circuits()  # a new episode may be on another circuit
            self._gate_counts, self._stuck_after = self._gate_rules()
        return stats

    def update_tracks(self) -> None:
        """Notice tracks that were exchanged since the last tick."""
        if self._simulation is not None and self._simulation.tracks is not self._built:
            self._prepare_tracks()
            if self._sectors is not None:
                self._sectors.set_tracks(self._built, self._tracks)

    def _prepare_tracks(self) -> None:
        """Set the values that depend on the tracks."""
        if self._simulation is None:
            self._built: tuple[Track, ...] = tuple(load_circuit(name) for name in self._config.tracks)
            self._circuit_of_track = self._circuit_of_number
        else:
            self._built = self._simulation.tracks
            self._circuit_of_track = circuits_by_track(self._circuit_of_number, self._simulation)
        self._circuits = self._current_circuits()
        self._gates_by_track = np.array([float(len(track.gates)) for track in self._built])
        self._stuck_by_track = np.array([stuck_ticks(track) for track in self._built], np.int64)
        self._gate_counts, self._stuck_after = self._gate_rules()

    def _current_circuits(self) -> NDArray[np.int64] | None:
        if self._tracks is not None:
            return self._circuit_of_track.take(self._tracks)
        return np.zeros(self._cars, np.int64) if len(self._config.circuits) == 1 else None

    def _gate_rules(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the number of gates and `stuck_ticks` of each car; of unknown circuits, mean and maximum of all."""
        if self._tracks is None:
            gates = np.full(self._cars, self._gates_by_track.mean())
            return gates, np.full(self._cars, self._stuck_by_track.max())
        return self._gates_by_track.take(self._tracks), self._stuck_by_track.take(self._tracks)

    def _with_circuits(self, rows: Rows, times: Sequence[T]) -> tuple[list[T], list[int]]:
        """Return times of cars and their circuits, without those on tracks that were exchanged."""
        if self._circuits is None:
            return list(times), []
        known = [(each, int(self._circuits[row])) for row, each in zip(rows, times, strict=True)]
        known = [(each, circuit) for each, circuit in known if circuit != GONE]
        return [each for each, _ in known], [circuit for _, circuit in known]

    def _make_sector_tracker(self, simulation: Simulation | None) -> SectorTracker | None:
        if simulation is None and len(self._config.tracks) > 1:
            return None
        tracks = simulation.tracks if simulation else [load_circuit(self._config.tracks[0])]
        return SectorTracker(tracks, self._cars, self._config.starts == "line")
