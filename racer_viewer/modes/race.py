"""A race: cars on one circuit at the same time, each a RacerEnv of its own. Nothing here draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from racer_env.engine import CAR, TICKS_PER_SECOND, Start, Track, parse_config
from racer_env.env import RacerEnv
from racer_viewer.modes.link import BridgeAddress, Link
from racer_viewer.modes.race_car import Entrant as Entrant
from racer_viewer.modes.race_car import RaceCar
from racer_viewer.modes.stopwatch import LapTime, Stopwatch
from racer_viewer.modes.wheel import Action
from racer_viewer.render.overlays import lap_time
from racer_viewer.replays import Replay, Trace
from racer_viewer.snapshot import Cars, Colour, Look, Snapshot

ENDLESS: Mapping[str, Any] = {"episode": {"maxSteps": 10**9, "stillnessTimeoutTicks": 10**9}}
"""Nobody is sent home for standing still or after fifty seconds."""
AT_THE_LINE = Start()
ANYWHERE = Start(arc=(0.0, 1.0))
GHOST_COLOUR: Colour = (214, 226, 234)


def _look_of(ghost: Trace) -> Look:
    """With the lap that it shows, to tell it from who drives now."""
    lap = f" {lap_time(ghost.best_lap.ticks)}" if ghost.best_lap else ""
    return Look(ghost.replay.driver + lap, GHOST_COLOUR, ghost=True)


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
        copy = self.followed.env.followed
        return Link(self.bridge.url, copy is None, copy.out_of_step_since if copy else None)

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
            looks=(*(car.look() for car in self.cars), *self._ghost_looks),
            focus=self.focus,
            observation=followed.seen,
            totals=followed.totals,
            thought=followed.thought(),
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
