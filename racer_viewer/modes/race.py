"""A race: cars on one circuit, their drivers, and the results of each car so far. Draws nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import TICKS_PER_SECOND, Config, Start, parse_config
from racer_env.engine.laps import track_limit_faults
from racer_env.engine.rewards import COMPONENT_CAPACITY
from racer_env.engine.starts import grid_starts
from racer_viewer.agents import Agent
from racer_viewer.modes.controls import Action
from racer_viewer.modes.race_cars import BridgeCars, BridgeStatus, CarGroup, LocalCars
from racer_viewer.replays import Replay, ReplayError, ReplayRecorder, RunRecording
from racer_viewer.replays.ghosts import Ghost, GhostLap
from racer_viewer.snapshot import CarStyle, Colour, PolicyInsight, Snapshot
from racer_viewer.timing import (
    LapTime,
    RaceProgress,
    SectorTimes,
    Stopwatch,
    best_lap,
    fault_text,
    lap_time,
    lap_to_show,
)
from racer_viewer.translation import _, mark

if TYPE_CHECKING:
    from racer_env.engine import Track
    from racer_viewer.modes.screen import BridgeAddress

INSIGHT_INTERVAL = 4
"""Ticks between two evaluations of the followed car's policy; one evaluation takes as long as stepping eight cars."""
TIME_UP, STOOD_STILL = mark("time up"), mark("standstill")
"""Endings of an episode that the simulation decides."""
ENDLESS: Mapping[str, Any] = {"episode": {"maxSteps": 10**9, "stillnessTimeoutTicks": 10**9}}
"""Content of an ai-config.json whose episodes never end."""
NO_ACTION: Action = (0.0, 0.0, 0.0)
HELD: Action = (0.0, 0.0, 1.0)
"""Action of a car that is held where it was put back."""
PENALTY_TICKS = 120
"""Time for which a car is held after it was put back on the road [ticks]."""
WRONG_WAY_TICKS, WRONG_WAY_DISTANCE = 30, 4.0
"""Time [ticks] and distance [units] of driving backwards after which it counts as the wrong way."""
START_LINE = Start()
ANYWHERE = Start(arc=(0.0, 1.0))
GHOST_COLOUR: Colour = (214, 226, 234)


@dataclass(frozen=True)
class Entrant:
    """Driver of a car: an agent, or (None) the player. A ghost is only shown for comparison."""

    name: str
    colour: Colour
    agent: Agent | None = None
    ghost: bool = False


@dataclass(frozen=True)
class RaceSetup:
    """Definition of a race.

    circuit: circuit id, `random:SEED`, or (not over a bridge) the path of a circuit file.
    track: the circuit as it is built already, instead of `circuit`; it need not be saved anywhere.
    ghost: lap to race against, shown where it was after as many ticks of the lap.
    grid: cars start from the boxes of the starting grid, the first car from the last one; otherwise all on the line.
    config: content of an ai-config.json.
    bridge: server that simulates the cars; None simulates them in this process.
    focus: index of the car that is followed at first.
    stochastic: agents sample their actions at first, as in training.
    stops: no tick is simulated after the episodes of all cars have ended.
    """

    circuit: str
    entrants: tuple[Entrant, ...]
    ghost: Ghost | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    bridge: BridgeAddress | None = None
    focus: int = 0
    stochastic: bool = False
    stops: bool = True
    grid: bool = False
    track: Track | None = None


@dataclass(frozen=True)
class Restart:
    """Begin a new episode with this seed."""

    seed: int = 0


@dataclass(frozen=True)
class SetFocus:
    """Follow another car."""

    car: int


@dataclass(frozen=True)
class TakeWheel:
    """Let the player drive the followed car, or give it back to its agent."""

    on: bool


@dataclass(frozen=True)
class SetStochastic:
    """Let agents sample their actions, as in training, or use the mean actions."""

    on: bool


@dataclass(frozen=True)
class SetStart:
    """Begin the next episodes here."""

    start: Start


@dataclass(frozen=True)
class SetEntrant:
    """Give a car another driver, name or colour."""

    car: int
    entrant: Entrant


@dataclass(frozen=True)
class SetGhost:
    """Race against another ghost from the next episode on; None for none."""

    ghost: Ghost | None


@dataclass(frozen=True)
class PutBack:
    """Put the followed car back on the road at a standstill, and hold it there for PENALTY_TICKS."""


RaceCommand = Restart | SetFocus | TakeWheel | SetStochastic | SetStart | SetEntrant | SetGhost | PutBack


@dataclass(frozen=True, eq=False)
class EpisodeState:
    """One car's episode so far.

    totals: (COMPONENT_CAPACITY,) reward components, summed over the episode.
    gate_tick: tick at which the car crossed its last gate; 0 before the first.
    lap_ends: ticks at which the laps ended.
    distance: distance from the start line over all laps [units].
    held: ticks for which the car is still held where it was put back.
    ending: reason for the end of the episode; empty while it is running.
    """

    driver: str
    circuit: str
    ticks: int
    totals: NDArray[np.float64]
    laps: tuple[LapTime, ...]
    gate_tick: int
    ending: str
    recording: RunRecording
    lap_ends: tuple[int, ...] = ()
    distance: float = 0.0
    held: int = 0

    @property
    def reward(self) -> float:
        return float(self.totals.sum())

    @property
    def best(self) -> LapTime | None:
        """Fastest clean lap."""
        return best_lap(self.laps)

    @property
    def shown_lap(self) -> LapTime | None:
        """Fastest clean lap, or the fastest of all if none is clean."""
        return lap_to_show(self.laps)

    def replay(self) -> Replay | None:
        """Return a replay of the episode so far; None before its first tick, or if it cannot be replayed.

        It is the same replay, with the same date, whenever it is asked for: saving it twice makes one file.
        """
        return self._replay

    @cached_property
    def _replay(self) -> Replay | None:
        try:
            return self.recording.replay() if self.ticks else None
        except ReplayError:  # too many control points, or a server that sent rewards which are not finite
            return None


@dataclass(frozen=True, eq=False)
class Tick:
    """State of a race after one tick, or after commands without a tick. Immutable.

    episode: number of restarts so far.
    finished: lap that the followed car finished in this tick.
    over: the episodes of all cars have ended.
    episodes: one for each car.
    bridge: connection to the server, if the cars are on one.
    """

    snapshot: Snapshot
    episode: int
    finished: LapTime | None
    over: bool
    episodes: tuple[EpisodeState, ...]
    bridge: BridgeStatus | None = None

    @property
    def followed(self) -> EpisodeState:
        return self.episodes[self.snapshot.focus]

    @property
    def laps(self) -> tuple[LapTime, ...]:
        """Laps of the followed car in this episode."""
        return self.followed.laps


class RaceCar:
    """Driver and results of one car in the current episode.

    gates: ticks at which the car crossed a gate.
    ending: reason for the end of the episode; empty while it is running.
    """

    def __init__(self, entrant: Entrant) -> None:
        self.entrant = entrant

    def begin(self, track: Track, config: Config, start: Start, seed: int, stopwatch: Stopwatch, row: Any) -> None:
        """Start a new episode with the car in this row of `CAR`."""
        assert track.circuit is not None
        self.circuit, self.ending = track.circuit.name, ""
        self.gates: list[int] = []
        self.stopwatch = stopwatch
        self.progress = RaceProgress(track.length, len(track.gates), row)
        self.laps: tuple[LapTime, ...] = ()
        self.lap_ends: tuple[int, ...] = ()
        self.held, self.was_put_back = 0, False
        self._insight: PolicyInsight | None = None
        self._random = np.random.default_rng(seed)
        self.recorder = ReplayRecorder(track.circuit, config, start, seed, self.entrant.name)

    def act(self, agent: Agent, observation: NDArray[np.float32], stochastic: bool) -> NDArray[Any]:
        """Return the agent's action; models without noise always act deterministically."""
        return agent.act(observation, deterministic=not (stochastic and agent.noise_shape), rng=self._random)

    def insight(self, observation: NDArray[np.float32], ticks: int) -> PolicyInsight | None:
        """Return the agent's view of an observation, at most `INSIGHT_INTERVAL` ticks old."""
        agent = self.entrant.agent
        if agent is not None and (self._insight is None or ticks % INSIGHT_INTERVAL == 0):
            value: NDArray[np.float32] | None = agent.values(observation)
            self._insight = PolicyInsight(
                None if value is None else float(value), agent.spread(observation), agent.sensitivity(observation)
            )
        return self._insight

    def style(self, status: BridgeStatus | None) -> CarStyle:
        """Return the car's appearance; a car whose position is only estimated is drawn as a ghost."""
        if status is None or status.exact:
            return CarStyle(self.entrant.name, self.entrant.colour, self.entrant.ghost)
        return CarStyle(_("{name} (estimated)").format(name=self.entrant.name), self.entrant.colour, ghost=True)


class Race:
    """Cars that drive from the same start, without contact. One of them is followed.

    A race belongs to the thread that drives it; others get its `Tick`s and send `RaceCommand`s.
    """

    def __init__(self, setup: RaceSetup) -> None:
        self.setup, self.config = setup, parse_config(setup.config)
        self._focus, self._stochastic, self._player_drives, self._start = (
            setup.focus,
            setup.stochastic,
            False,
            START_LINE,
        )
        self._ghost = setup.ghost
        self._cars = [RaceCar(entrant) for entrant in setup.entrants]
        count = len(self._cars)
        self._group: CarGroup = (
            LocalCars(setup.track or setup.circuit, count, self.config)
            if setup.bridge is None
            else BridgeCars(setup.circuit, count, self.config, setup.bridge)
        )
        self._episode, self._ticks = -1, 0
        self._totals: NDArray[np.float64] = np.zeros((count, COMPONENT_CAPACITY))
        try:
            self._restart(0)
        except BaseException:
            self.close()
            raise

    @property
    def over(self) -> bool:
        """True when the episodes of all cars have ended."""
        return all(car.ending for car in self._cars)

    def apply(self, command: RaceCommand) -> None:
        """Carry out a command."""
        match command:
            case Restart(seed):
                self._restart(seed)
            case SetFocus(car):
                self._focus = car
            case TakeWheel(on):
                self._player_drives = on
            case SetStochastic(on):
                self._stochastic = on
            case SetStart(start):
                self._start = start
            case SetEntrant(car, entrant):
                self._cars[car].entrant = entrant
            case SetGhost(ghost):
                self._ghost = ghost
            case PutBack():
                self._put_back(self._focus)

    def step(self, action: Action = NO_ACTION) -> Tick:
        """Advance all cars by one tick; `action` is the player's."""
        gates = self._group.rows["checkpoint"].tolist()
        actions = self._actions(action)
        self._group.step(actions)
        self._ticks += 1
        rows, finished = self._group.rows, None
        self._totals = self._totals + rows["components"]
        columns = (
            "lap",
            "lap_ticks",
            "checkpoint",
            "finished_lap_ticks",
            "reward",
            "terminated",
            "truncated",
            "arc",
        )
        faults = (each.tolist() for each in track_limit_faults(rows))
        for number, values in enumerate(zip(*(rows[name].tolist() for name in columns), *faults, strict=True)):
            lap, lap_ticks, gate, finished_ticks, reward, terminated, truncated, arc, wall, off_road = values
            car = self._cars[number]
            car.progress.add(gate, arc)
            if gate != gates[number]:
                car.gates.append(self._ticks)
            if not car.ending and (terminated or truncated):
                car.ending = TIME_UP if truncated else STOOD_STILL
            car.recorder.add(actions[number], reward, finished_lap_ticks=finished_ticks)
            fault = fault_text(wall, off_road, car.was_put_back)
            car.was_put_back, car.held = False, max(0, car.held - 1)
            finished_lap = car.stopwatch.tick(lap, lap_ticks, gate, finished_ticks, fault)
            if finished_lap is not None:
                car.laps = tuple(car.stopwatch.laps)
                car.lap_ends = (*car.lap_ends, self._ticks)
                finished = finished_lap if number == self._focus else finished
        return self.tick(finished)

    def tick(self, finished: LapTime | None = None) -> Tick:
        """Return the state of the race now."""
        statuses = [self._group.status(number) for number in range(len(self._cars))]
        return Tick(
            self._snapshot(statuses),
            self._episode,
            finished,
            self.over,
            tuple(
                EpisodeState(
                    car.entrant.name,
                    car.circuit,
                    self._ticks,
                    self._totals[number],
                    car.laps,
                    car.gates[-1] if car.gates else 0,
                    car.ending,
                    car.recorder.recording(),
                    car.lap_ends,
                    car.progress.now,
                    car.held,
                )
                for number, car in enumerate(self._cars)
            ),
            statuses[self._focus],
        )

    def close(self) -> None:
        self._group.close()

    @property
    def _on_grid(self) -> bool:
        """True if the cars start from the grid; their way to the line is not a lap."""
        return self.setup.grid and self.setup.bridge is None and self._start == START_LINE

    def _starts(self) -> list[Start]:
        count = len(self._cars)
        if not self._on_grid:
            return [self._start] * count
        boxes = grid_starts(self._group.track.length)
        return [boxes[(number - 1) % count % len(boxes)] for number in range(count)]

    def _restart(self, seed: int) -> None:
        starts = self._starts()
        self._group.reset(starts, seed)
        self._ticks = 0
        self._totals = np.zeros_like(self._totals)
        to_beat = self._ghost.time if self._ghost else None
        track, fastest = self._group.track, SectorTimes(to_beat)
        for car, start, row in zip(self._cars, starts, self._group.rows, strict=True):
            stopwatch = Stopwatch(len(track.gates), to_beat, fastest, from_grid=row["lap_gates"] < 0)
            car.begin(track, self.config, start, seed, stopwatch, row)
        self._episode += 1

    def _put_back(self, number: int) -> None:
        car = self._cars[number]
        if not car.held and self._group.put_back(number):
            car.recorder.put_back()
            car.was_put_back, car.held = True, PENALTY_TICKS

    def _actions(self, action: Action) -> NDArray[np.float64]:
        actions = np.empty((len(self._cars), len(action)))
        for number, car in enumerate(self._cars):
            agent = car.entrant.agent
            if car.held:
                actions[number] = HELD
            elif agent is None or (self._player_drives and number == self._focus):
                actions[number] = action
            else:
                actions[number] = car.act(agent, self._group.observations[number], self._stochastic)
        return actions

    def _snapshot(self, statuses: Sequence[BridgeStatus | None]) -> Snapshot:
        focus, ghost, rows = self._focus, self._ghost, self._group.rows
        followed, observation = self._cars[focus], self._group.observations[focus]
        styles = tuple(car.style(status) for car, status in zip(self._cars, statuses, strict=True))
        ghost_delta = None
        if ghost is not None:
            lap, ticks = self._ghost_lap(ghost, rows[focus])
            rows = np.concatenate([rows, lap.row_at(ticks)])
            styles = (*styles, _ghost_style(ghost))
            ghost_delta = lap.delta(ticks, followed.progress.in_lap) if followed.progress.now >= 0.0 else None
        return Snapshot(
            track=self._group.track,
            cars=rows,
            styles=styles,
            focus=focus,
            observation=observation,
            totals=self._totals[focus],
            reward_components=self.config.components,
            insight=followed.insight(observation, self._ticks),
            timing=followed.stopwatch.timing(ghost_delta),
            gaps=self._gaps(),
            places=self._places(),
            wrong_way=followed.progress.went_back(WRONG_WAY_TICKS, WRONG_WAY_DISTANCE) and bool(rows[focus]["speed"]),
        )

    def _ghost_lap(self, ghost: Ghost, car: Any) -> tuple[GhostLap, int]:
        """Return the ghost's lap beside a car and its tick: the first in the car's first lap, else the best.

        The ghost waits at the line for a car that comes from the starting grid.
        """
        if self._on_grid and car["lap"] == 1:
            return ghost.first, 0
        return (ghost.first if car["lap"] == 1 else ghost.best), int(car["lap_ticks"])

    def _gaps(self) -> tuple[float, ...]:
        """Return each car's time behind (+) the followed car [s]: since the car ahead was where the other one is."""
        if len(self._cars) < 2:
            return ()
        own = self._cars[self._focus].progress
        return tuple(car.progress.ticks_behind(own) / TICKS_PER_SECOND for car in self._cars)

    def _places(self) -> tuple[int, ...]:
        """Return each car's position, by the distance it has come."""
        if len(self._cars) < 2:
            return ()
        distances = [car.progress.now for car in self._cars]
        return tuple(1 + sum(other > distance for other in distances) for distance in distances)


def _ghost_style(ghost: Ghost) -> CarStyle:
    """Return the ghost's appearance; its lap time is part of the name, since the driver may be the same."""
    return CarStyle(f"{ghost.name} {lap_time(ghost.lap_ticks)}", GHOST_COLOUR, ghost=True)
