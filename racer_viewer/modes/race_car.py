"""One car of a race: its driver, and what came of its episode so far. Nothing here draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.bridge.interface import COMPONENT_KEYS, Info
from racer_env.engine import Config, Start
from racer_env.env import RacerEnv
from racer_env.errors import ContractError
from racer_viewer.agents import Agent
from racer_viewer.modes.stopwatch import LapTime, Stopwatch
from racer_viewer.modes.wheel import Action
from racer_viewer.replays import Recorder, Replay, ReplayError
from racer_viewer.snapshot import Colour, Look, Thought, car_row

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
        self.row: Any = car_row(self.env.car)[0]
        self.ticks, self.ending = 0, ""
        self.totals = np.zeros(len(COMPONENT_KEYS))
        self.passed: list[int] = []
        self._thought: Thought | None = None
        self._random = np.random.default_rng(seed)
        self.stopwatch = Stopwatch(len(self.env.track.gates), to_beat)
        circuit = self.env.track.circuit
        assert circuit is not None
        self._recorder = Recorder(circuit, config, start, seed, self.entrant.name)

    def step(self, action: Action | None, drawn: bool) -> LapTime | None:
        """One tick, with the person's action or (None) the agent's, its mean or drawn. Returns a lap that it ended."""
        agent = self.entrant.agent
        if action is not None or agent is None:
            chosen: NDArray[Any] = np.array(action or (0.0, 0.0, 0.0))
        else:
            chosen = agent.act(self.seen, deterministic=not (drawn and agent.noise_shape), rng=self._random)
        gate = int(self.row["checkpoint"])
        self.seen, reward, terminated, truncated, info = self.env.step(chosen)
        self.ticks += 1
        self.row = self._row(chosen, reward, info)
        self.totals = self.totals + self.row["components"]
        if self.row["checkpoint"] != gate:
            self.passed.append(self.ticks)
        if not self.ending and (terminated or truncated):
            self.ending = TIME_UP if truncated else STOOD_STILL
        self._recorder.add(chosen, reward, finished_lap_ticks=int(self.row["finished_lap_ticks"]))
        columns = ("lap", "lap_ticks", "checkpoint", "finished_lap_ticks")
        return self.stopwatch.tick(*(int(self.row[name]) for name in columns))

    def look(self) -> Look:
        """A car whose place is only guessed is a ghost."""
        followed = self.env.followed
        if followed is None or followed.in_step:
            return Look(self.entrant.name, self.entrant.colour, self.entrant.ghost)
        return Look(f"{self.entrant.name} (a guess)", self.entrant.colour, ghost=True)

    def thought(self) -> Thought | None:
        """What its agent makes of what it sees, not older than some ticks."""
        agent = self.entrant.agent
        if agent is not None and (self._thought is None or self.ticks % THOUGHT_TICKS == 0):
            value: NDArray[np.float32] | None = agent.values(self.seen)
            self._thought = Thought(
                None if value is None else float(value), agent.spread(self.seen), agent.sensitivity(self.seen)
            )
        return self._thought

    def replay(self) -> Replay | None:
        """What was driven in this episode; None before its first tick, or if no replay can be made of it."""
        try:
            return self._recorder.replay() if self._recorder.ticks else None
        except ReplayError:  # a circuit of too many points, or a server with rewards beyond all numbers
            return None

    def _row(self, action: NDArray[Any], reward: float, info: Info) -> Any:
        """The car as it is. Where that is only reckoned, what did come over the wire stands above the reckoning."""
        car, before, followed = self.env.car, self.row, self.env.followed
        row = car_row(car)[0]
        row["action"], row["reward"], row["components"] = action, reward, [info[key] for key in COMPONENT_KEYS]
        crossed_line = info["lap"] != before["lap"]
        if followed is not None and not followed.in_step:
            row["speed"], row["wall_contact"] = info["rawSpeed"], info["wallContact"]
            row["lap"], row["checkpoint"] = info["lap"], info["checkpoint"] % len(self.env.track.gates)
            ticks = before["lap_ticks"] + 1
            row["finished_lap_ticks"], row["lap_ticks"] = (ticks, 0) if crossed_line else (0, ticks)
        elif not 0 <= row["checkpoint"] < len(self.env.track.gates):
            raise ContractError(f"gate {row['checkpoint']} was taken, but the circuit has {len(self.env.track.gates)}")
        elif crossed_line and "finished_lap_ticks" not in car:
            row["finished_lap_ticks"] = row["last_lap_ticks"]
        return row
