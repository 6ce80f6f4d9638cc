"""Driving statistics of all cars, collected by the compiled call of a rollout: laps, sectors, episodes, rewards.

They equal those of `lap_tracker.LapTracker`, which collects them tick by tick in Python for the other engines.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import TICKS_PER_SECOND, Simulation
from racer_env.engine.compiled import Compiled, part
from racer_env.engine.rewards import COMPONENT_CAPACITY
from racer_viewer.timing import SECTORS
from racer_viewer.training.config import RunConfig
from racer_viewer.training.lap_tracker import GONE, UNKNOWN, circuits_by_track, sectors_by_gate
from racer_viewer.training.metrics import NO_GATE, STUCK_SPEED, DrivingStats, stuck_ticks

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

LAP, SECTOR, EPISODE, FAILURE, TICK = range(5)
"""Indices of the counters: laps, rows of sector times, ended episodes, failures, ticks."""


class DrivingTables(NamedTuple):
    """Statistics as the compiled call reads and writes them.

    sector_at: sector by track and gate. circuits: circuit index by track, or GONE. gate_counts, stuck_after: gates and
    `stuck_ticks` by track. first_entry: tick at which a new episode has entered its sector, or UNKNOWN.
    gate, since_gate, stuck, sector, entered, times, episode_reward: current episode of each car.
    counters: see `LAP` and following. distance: laps driven, an array of one. components: sums of rewards.
    car_rewards, car_episodes: reward and number of ended episodes of each car.
    laps: time [s] and circuit of each lap. sectors: times [s] and circuit. episodes: reward, ticks.
    """

    sector_at: Integers
    circuits: Integers
    gate_counts: Doubles
    stuck_after: Integers
    first_entry: int
    gate: Integers
    since_gate: Integers
    stuck: Integers
    sector: Integers
    entered: Integers
    times: Doubles
    episode_reward: Doubles
    counters: Integers
    distance: Doubles
    components: Doubles
    car_rewards: Doubles
    car_episodes: Integers
    laps: Doubles
    sectors: Doubles
    episodes: Doubles


class DrivingLog:
    """Statistics since the last `take`. ticks: maximum number of ticks between two calls of `take`."""

    def __init__(self, config: RunConfig, simulation: Simulation, ticks: int) -> None:
        cars, capacity = simulation.num_cars, ticks * simulation.num_cars
        self._circuits = np.array([config.circuits.index(name) for name in config.tracks])
        self.tables = DrivingTables(
            *self._by_track(simulation),
            first_entry=0 if config.starts == "line" else UNKNOWN,
            gate=np.full(cars, NO_GATE, np.int64),
            since_gate=np.zeros(cars, np.int64),
            stuck=np.zeros(cars, np.int64),
            sector=np.zeros(cars, np.int64),
            entered=np.zeros(cars, np.int64),
            times=np.full((cars, SECTORS), math.nan),
            episode_reward=np.zeros(cars),
            counters=np.zeros(5, np.int64),
            distance=np.zeros(1),
            components=np.zeros(COMPONENT_CAPACITY),
            car_rewards=np.zeros(cars),
            car_episodes=np.zeros(cars, np.int64),
            laps=np.zeros((capacity, 2)),
            sectors=np.zeros((capacity, SECTORS + 1)),
            episodes=np.zeros((capacity, 2)),
        )
        self.tables.sector[...] = self.tables.sector_at[simulation.cars.track, simulation.cars.checkpoint]
        self.tables.entered[...] = self.tables.first_entry

    def set_tracks(self, simulation: Simulation) -> None:
        """Continue after tracks were exchanged; laps on those before are not counted any more."""
        sector_at, circuits, gate_counts, stuck_after = self._by_track(simulation)
        self.tables = self.tables._replace(
            sector_at=sector_at, circuits=circuits, gate_counts=gate_counts, stuck_after=stuck_after
        )

    def _by_track(self, simulation: Simulation) -> tuple[Integers, Integers, Doubles, Integers]:
        """Return the tables by track."""
        tracks = simulation.tracks
        gates = max(len(track.gates) for track in tracks)
        return (
            np.stack([sectors_by_gate(len(track.gates), gates) for track in tracks]),
            circuits_by_track(self._circuits, simulation),
            np.array([float(len(track.gates)) for track in tracks]),
            np.array([stuck_ticks(track) for track in tracks], np.int64),
        )

    def take(self) -> DrivingStats:
        """Return the statistics and begin anew; episodes go on."""
        tables = self.tables
        laps, sectors, ended, failures, ticks = tables.counters.tolist()
        episodes, timed, split = tables.episodes[:ended], tables.laps[:laps], tables.sectors[:sectors]
        timed, split = timed[timed[:, 1] != GONE], split[split[:, SECTORS] != GONE]
        stats = DrivingStats(
            steps=ticks * len(tables.gate),
            components=tables.components.copy(),
            laps=timed[:, 0].tolist(),
            lap_circuits=timed[:, 1].astype(np.int64).tolist(),
            sectors=split[:, :SECTORS].tolist(),
            sector_circuits=split[:, SECTORS].astype(np.int64).tolist(),
            returns=episodes[:, 0].tolist(),
            lengths=episodes[:, 1].astype(np.int64).tolist(),
            distance=float(tables.distance[0]),
            failures=failures,
            car_rewards=tables.car_rewards.copy(),
            car_episodes=tables.car_episodes.copy(),
        )
        for sums in (tables.counters, tables.distance, tables.components, tables.car_rewards, tables.car_episodes):
            sums[...] = 0
        return stats


@part
def add_tick(driving: Compiled, car: Compiled, i: int) -> None:
    """Add a tick of car i, before its next episode starts."""
    counters, tick = driving.counters, car.step_count
    over = car.terminated or car.truncated
    for component in range(COMPONENT_CAPACITY):
        driving.components[component] += car.components[component]
    driving.car_rewards[i] += car.reward
    driving.episode_reward[i] += car.reward
    driving.since_gate[i] += 1
    if driving.gate[i] != NO_GATE and car.checkpoint != driving.gate[i]:
        driving.since_gate[i], driving.stuck[i] = 0, 0
        driving.distance[0] += 1.0 / driving.gate_counts[car.track]
    driving.gate[i] = car.checkpoint
    stuck = driving.since_gate[i] >= driving.stuck_after[car.track] and car.speed < STUCK_SPEED
    if (stuck or car.terminated) and not driving.stuck[i]:
        driving.stuck[i] = 1
        counters[FAILURE] += 1
    if car.finished_lap_ticks:
        lap = driving.laps[counters[LAP]]
        lap[0], lap[1] = car.finished_lap_ticks / TICKS_PER_SECOND, driving.circuits[car.track]
        counters[LAP] += 1
    sector = driving.sector_at[car.track, car.checkpoint]
    left = sector != driving.sector[i]
    if left:
        if driving.entered[i] != UNKNOWN:
            driving.times[i, driving.sector[i]] = (tick - driving.entered[i]) / TICKS_PER_SECOND
        driving.entered[i] = tick
        driving.sector[i] = sector
    if over or (left and sector == 0):
        _take_sectors(driving, i, driving.circuits[car.track])
    if over:
        episode = driving.episodes[counters[EPISODE]]
        episode[0], episode[1] = driving.episode_reward[i], tick
        counters[EPISODE] += 1
        driving.car_episodes[i] += 1
        driving.episode_reward[i], driving.since_gate[i], driving.stuck[i] = 0.0, 0, 0


@part
def add_start(driving: Compiled, car: Compiled, i: int) -> None:
    """Note the start of an episode of car i."""
    driving.gate[i] = NO_GATE
    driving.sector[i] = driving.sector_at[car.track, car.checkpoint]
    driving.entered[i] = driving.first_entry


@part
def _take_sectors(driving: Compiled, i: int, circuit: int) -> None:
    """Move the sector times of a lap to the list, unless there are none."""
    known = False
    for sector in range(SECTORS):
        known = known or not math.isnan(driving.times[i, sector])
    if known:
        row = driving.sectors[driving.counters[SECTOR]]
        for sector in range(SECTORS):
            row[sector] = driving.times[i, sector]
            driving.times[i, sector] = math.nan
        row[SECTORS] = circuit
        driving.counters[SECTOR] += 1
