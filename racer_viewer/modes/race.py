"""One car of a race: its driver, and what came of its episode so far. Nothing here draws.

A race: cars on one circuit at the same time, each a RacerEnv of its own. Nothing here draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.bridge.interface import COMPONENT_KEYS
from racer_env.engine import CAR, TICKS_PER_SECOND, Config, Start, Track, parse_config
from racer_env.env import RacerEnv
from racer_viewer.agents import Agent
from racer_viewer.modes.controls import Action
from racer_viewer.modes.link import BridgeAddress, Link
from racer_viewer.render.overlays import lap_time
from racer_viewer.replays import Replay, ReplayError, ReplayRecorder, Trace
from racer_viewer.snapshot import Cars, CarStyle, Colour, PolicyInsight, Snapshot
from racer_viewer.timing import LapTime, Stopwatch

THOUGHT_TICKS = 4
"""Ticks between two looks into an agent: nobody reads faster, and it takes as long as driving eight cars."""
TIME_UP, STOOD_STILL = "time up", "stood still"
"""How episodes end by themselves."""


@dataclass(frozen=True)
class Entrant:
    """Who drives a car: an agent, or (None) the person at the keys. A ghost is only shown for comparison."""

    name: str
    colour: Colour
    agent: Agent | None = None
    ghost: bool = False


class RaceCar:
    """A RacerEnv and who drives it.

    row: of `CAR`, as it is now.
    seen: what was observed last.
    totals: (6,) reward components, summed up over the episode.
    passed: the ticks after which it took a gate.
    ending: how the episode ended; empty while it goes on.
    """

    def __init__(self, entrant: Entrant, env: RacerEnv) -> None:
        self.entrant, self.env = entrant, env

    def begin(self, config: Config, start: Start, seed: int, to_beat: LapTime | None) -> None:
        """A new episode."""
        self.seen, _ = self.env.reset(seed=seed, options={"start": start})
        self.row: Any = self.env.car
        self.ticks, self.ending = 0, ""
        self.totals = np.zeros(len(COMPONENT_KEYS))
        self.passed: list[int] = []
        self._thought: PolicyInsight | None = None
        self._random = np.random.default_rng(seed)
        self.stopwatch = Stopwatch(len(self.env.track.gates), to_beat)
        circuit = self.env.track.circuit
        assert circuit is not None
        self._recorder = ReplayRecorder(circuit, config, start, seed, self.entrant.name)

    def step(self, action: Action | None, drawn: bool) -> LapTime | None:
        """One tick, with the person's action or (None) the agent's, its mean or drawn. Returns a lap that it ended."""
        agent = self.entrant.agent
        if action is not None or agent is None:
            chosen: NDArray[Any] = np.array(action or (0.0, 0.0, 0.0))
        else:
            chosen = agent.act(self.seen, deterministic=not (drawn and agent.noise_shape), rng=self._random)
        gate = int(self.row["checkpoint"])
        self.seen, reward, terminated, truncated, _ = self.env.step(chosen)
        self.ticks += 1
        self.row = self.env.car
        self.totals = self.totals + self.row["components"]
        if self.row["checkpoint"] != gate:
            self.passed.append(self.ticks)
        if not self.ending and (terminated or truncated):
            self.ending = TIME_UP if truncated else STOOD_STILL
        self._recorder.add(chosen, reward, finished_lap_ticks=int(self.row["finished_lap_ticks"]))
        columns = ("lap", "lap_ticks", "checkpoint", "finished_lap_ticks")
        return self.stopwatch.tick(*(int(self.row[name]) for name in columns))

    def look(self) -> CarStyle:
        """A car whose place is only guessed is a ghost."""
        shadow = self.env.shadow
        if shadow is None or shadow.in_sync:
            return CarStyle(self.entrant.name, self.entrant.colour, self.entrant.ghost)
        return CarStyle(f"{self.entrant.name} (a guess)", self.entrant.colour, ghost=True)

    def thought(self) -> PolicyInsight | None:
        """What its agent makes of what it sees, not older than some ticks."""
        agent = self.entrant.agent
        if agent is not None and (self._thought is None or self.ticks % THOUGHT_TICKS == 0):
            value: NDArray[np.float32] | None = agent.values(self.seen)
            self._thought = PolicyInsight(
                None if value is None else float(value), agent.spread(self.seen), agent.sensitivity(self.seen)
            )
        return self._thought

    def replay(self) -> Replay | None:
        """What was driven in this episode; None before its first tick, or if no replay can be made of it."""
        try:
            return self._recorder.replay() if self._recorder.ticks else None
        except ReplayError:  # a circuit of too many points, or a server with rewards beyond all numbers
            return None


ENDLESS: Mapping[str, Any] = {"episode": {"maxSteps": 10**9, "stillnessTimeoutTicks": 10**9}}
"""Nobody is sent home for standing still or after fifty seconds."""
AT_THE_LINE = Start()
ANYWHERE = Start(arc=(0.0, 1.0))
GHOST_COLOUR: Colour = (214, 226, 234)


def _look_of(ghost: Trace) -> CarStyle:
    """With the lap that it shows, to tell it from who drives now."""
    lap = f" {lap_time(ghost.best_lap.ticks)}" if ghost.best_lap else ""
    return CarStyle(ghost.replay.driver + lap, GHOST_COLOUR, ghost=True)


@dataclass(frozen=True)
class RaceSetup:
    """Who races where. `config` is the content of an ai-config.json; with a bridge, the cars are over there."""

    circuit: str
    entrants: tuple[Entrant, ...]
    ghost: Trace | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    bridge: BridgeAddress | None = None

    def open(self) -> Race:
        return Race(self.circuit, self.entrants, self.ghost, self.config, self.bridge)


class Race:
    """Some cars from the same start. One is followed, and all that is said of the race is said of that one.

    There is no contact. A ghost shows the record: where the car was that many ticks after the line.

    bridge: where the cars are; None has them in this process.
    focus: number of the followed car.
    person_drives: whether the person has the wheel of the followed car, although an agent could drive it.
    drawn: whether agents draw their actions, as in training, instead of doing what they hold best.
    start: where the next episode begins.
    """

    def __init__(
        self,
        circuit: str,
        entrants: Sequence[Entrant],
        ghost: Trace | None = None,
        config: Mapping[str, Any] = ENDLESS,
        bridge: BridgeAddress | None = None,
    ) -> None:
        self.config, self.bridge, self.ghost = parse_config(config), bridge, ghost
        self.focus, self.person_drives, self.drawn, self.start = 0, False, False, AT_THE_LINE
        self._ghost_looks = (_look_of(ghost),) if ghost else ()
        self.cars: list[RaceCar] = []
        self.seed = 0
        self._circuit = circuit
        try:
            for entrant in entrants:
                self.cars.append(RaceCar(entrant, self._open_env()))
            self.restart()
        except BaseException:
            self.close()
            raise

    @property
    def entrants(self) -> tuple[Entrant, ...]:
        return tuple(car.entrant for car in self.cars)

    @property
    def track(self) -> Track:
        return self.cars[0].env.track

    @property
    def followed(self) -> RaceCar:
        return self.cars[self.focus]

    @property
    def laps(self) -> list[LapTime]:
        return self.followed.stopwatch.laps

    @property
    def stopwatch(self) -> Stopwatch:
        return self.followed.stopwatch

    @property
    def totals(self) -> Any:
        return self.followed.totals

    @property
    def over(self) -> bool:
        """Whether the episodes of all cars have ended."""
        return all(car.ending for car in self.cars)

    @property
    def link(self) -> Link | None:
        """To the server, if the cars are on one."""
        if self.bridge is None:
            return None
        copy = self.followed.env.shadow
        return Link(self.bridge.url, copy is None, copy.out_of_sync_since if copy else None)

    def restart(self, seed: int = 0) -> None:
        """All cars to the start, which is drawn by the seed unless it is the line; and the clock to zero."""
        self.ticks = 0
        best = self.ghost.best_lap if self.ghost else None
        for car in self.cars:
            car.begin(self.config, self.start, seed, LapTime(best.ticks, best.gate_ticks) if best else None)
        self.seed = seed  # the last thing: whoever sees it knows that all have begun

    def step(self, action: Action) -> LapTime | None:
        """One tick of every car; the action is the person's. Returns the lap that the followed car ended."""
        self.ticks += 1
        finished = None
        for number, car in enumerate(self.cars):
            at_the_wheel = car.entrant.agent is None or (self.person_drives and number == self.focus)
            lap = car.step(action if at_the_wheel else None, self.drawn)
            finished = lap if number == self.focus else finished
        return finished

    def snapshot(self) -> Snapshot:
        """What there is to see now."""
        followed = self.followed
        ghosts = [self._ghost_row(self.ghost)] if self.ghost else []
        return Snapshot(
            track=self.track,
            cars=np.array([*(car.row for car in self.cars), *ghosts], CAR),
            styles=(*(car.look() for car in self.cars), *self._ghost_looks),
            focus=self.focus,
            observation=followed.seen,
            totals=followed.totals,
            insight=followed.thought(),
            timing=followed.stopwatch.timing(),
            gaps=self._gaps(),
        )

    def replay(self) -> Replay | None:
        """What the followed car drove since the start; None before the first tick."""
        return self.followed.replay()

    def close(self) -> None:
        for car in self.cars:
            car.env.close()

    def _open_env(self) -> RacerEnv:
        """Over a bridge, with telemetry or a copy that follows: an environment that could be drawn has either."""
        if self.bridge is None:
            return RacerEnv(track_id=self._circuit, config=self.config)
        return RacerEnv(
            self.bridge.url,
            track_id=self._circuit,
            config=self.config,
            token=self.bridge.token,
            render_mode="rgb_array",
        )

    def _ghost_row(self, ghost: Trace) -> Cars:
        """Of its first lap while ours is from the standing start, of its best lap after that."""
        car = self.followed.row
        lap = ghost.laps[0] if car["lap"] == 1 and ghost.laps and ghost.laps[0].first == 0 else ghost.best_lap
        first = lap.first if lap else 0
        return ghost.rows[min(first + int(car["lap_ticks"]), ghost.ticks)]  # type: ignore[no-any-return]

    def _gaps(self) -> tuple[float, ...]:
        """By when each car took the last gate that both have taken."""
        if len(self.cars) < 2:
            return ()
        own = self.followed.passed
        gaps = []
        for car in self.cars:
            gate = min(len(own), len(car.passed)) - 1
            gaps.append((car.passed[gate] - own[gate]) / TICKS_PER_SECOND if gate >= 0 else 0.0)
        return tuple(gaps)
