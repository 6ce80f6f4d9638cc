"""A race: cars on one circuit at the same time, each a RacerEnv of its own. Nothing here draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import CAR, TICKS_PER_SECOND, Config, Start, Track, parse_config
from racer_env.env import RacerEnv
from racer_viewer.agents import Agent
from racer_viewer.modes.stopwatch import LapTime, Stopwatch
from racer_viewer.modes.wheel import Action
from racer_viewer.replays import Recorder, Replay, Trace
from racer_viewer.snapshot import Cars, Colour, Look, Snapshot, Thought, car_row

ENDLESS = {"episode": {"maxSteps": 10**9, "stillnessTimeoutTicks": 10**9}}
"""Nobody is sent home for standing still or after fifty seconds."""
GHOST_COLOUR: Colour = (214, 226, 234)
THOUGHT_TICKS = 4
"""Ticks between two looks into an agent: nobody reads faster, and it takes as long as driving eight cars."""


@dataclass(frozen=True)
class Entrant:
    """Who drives a car: an agent, or (None) the person at the keys."""

    name: str
    colour: Colour
    agent: Agent | None = None


def _look_of(ghost: Trace) -> Look:
    """With the lap that it shows, to tell it from who drives now."""
    best = ghost.best_lap
    lap = f" {best.ticks / TICKS_PER_SECOND:.2f}" if best else ""
    return Look(ghost.replay.driver + lap, GHOST_COLOUR, ghost=True)


class Race:
    """Some cars from the same start. The first is the one that is followed, timed and recorded.

    There is no contact. A ghost shows the record: where the car was that many ticks after the line.
    """

    def __init__(self, circuit: str, entrants: Sequence[Entrant], ghost: Trace | None = None) -> None:
        self.entrants = tuple(entrants)
        self.config: Config = parse_config(ENDLESS)
        self._envs = [RacerEnv(track_id=circuit, config=self.config) for _ in entrants]
        self.ghost = ghost
        looks = [Look(each.name, each.colour) for each in entrants]
        self._looks = (*looks, *([_look_of(ghost)] if ghost else []))
        self.restart()

    @property
    def track(self) -> Track:
        return self._envs[0].track

    @property
    def laps(self) -> list[LapTime]:
        return self.stopwatch.laps

    @property
    def car(self) -> Any:
        """The followed car's row."""
        return self._rows[0]

    def restart(self) -> None:
        """All cars to the start, and the clock to zero."""
        self._seen = [env.reset(seed=0)[0] for env in self._envs]
        self.ticks = 0
        self.totals = np.zeros(6)
        self._thought: Thought | None = None
        self._passed: list[list[int]] = [[] for _ in self._envs]
        best = self.ghost.best_lap if self.ghost else None
        self.stopwatch = Stopwatch(len(self.track.gates), LapTime(best.ticks, best.gate_ticks) if best else None)
        circuit = self.track.circuit
        assert circuit is not None
        self._recorder = Recorder(circuit, self.config, Start(), 0, self.entrants[0].name)
        self._rows = np.zeros(len(self._looks), CAR)
        self._look_at_cars()

    def step(self, action: Action) -> LapTime | None:
        """One tick of every car; the action is the person's. Returns the lap that the followed car ended."""
        self.ticks += 1
        for number, (env, entrant) in enumerate(zip(self._envs, self.entrants, strict=True)):
            chosen = np.array(action) if entrant.agent is None else entrant.agent.act(self._seen[number])
            self._seen[number], reward, _, _, _ = env.step(chosen)
            if number == 0:
                taken = chosen, reward
        self._look_at_cars()
        car = self.car
        self.totals = self.totals + car["components"]
        self._recorder.add(*taken, finished_lap_ticks=int(car["finished_lap_ticks"]))
        return self.stopwatch.tick(
            *(int(car[name]) for name in ("lap", "lap_ticks", "checkpoint", "finished_lap_ticks"))
        )

    def snapshot(self) -> Snapshot:
        """What there is to see now."""
        return Snapshot(
            track=self.track,
            cars=self._rows.copy(),
            looks=self._looks,
            observation=self._seen[0],
            totals=self.totals,
            thought=self._look_into_agent(),
            timing=self.stopwatch.timing(),
            gaps=self._gaps(),
        )

    def replay(self) -> Replay | None:
        """What was driven since the start; None before the first tick."""
        return self._recorder.replay() if self._recorder.ticks else None

    def close(self) -> None:
        for env in self._envs:
            env.close()

    def _look_at_cars(self) -> None:
        gates = self._rows["checkpoint"].copy()
        for number, env in enumerate(self._envs):
            self._rows[number] = car_row(env.car)[0]
            if self._rows["checkpoint"][number] != gates[number]:
                self._passed[number].append(self.ticks)
        if self.ghost is not None:
            self._rows[-1] = self._ghost_row(self.ghost)

    def _ghost_row(self, ghost: Trace) -> Cars:
        """Of its first lap while ours is from the standing start, of its best lap after that."""
        car = self.car
        lap = ghost.laps[0] if car["lap"] == 1 and ghost.laps and ghost.laps[0].first == 0 else ghost.best_lap
        first = lap.first if lap else 0
        return ghost.rows[min(first + int(car["lap_ticks"]), ghost.ticks)]  # type: ignore[no-any-return]

    def _look_into_agent(self) -> Thought | None:
        agent = self.entrants[0].agent
        if agent is not None and (self._thought is None or self.ticks % THOUGHT_TICKS == 0):
            seen = self._seen[0]
            value: NDArray[np.float32] | None = agent.values(seen)
            self._thought = Thought(
                None if value is None else float(value), agent.spread(seen), agent.sensitivity(seen)
            )
        return self._thought

    def _gaps(self) -> tuple[float, ...]:
        """By when each car took the last gate that both have taken."""
        if len(self._envs) < 2:
            return ()
        own = self._passed[0]
        gaps = []
        for passed in self._passed:
            gate = min(len(own), len(passed)) - 1
            gaps.append((passed[gate] - own[gate]) / TICKS_PER_SECOND if gate >= 0 else 0.0)
        return tuple(gaps)
