"""Drives: run a race in the window's thread or in a thread of its own. Commands go in, immutable ticks come out.

A race in this process is stepped in the window's thread: eight cars take about 1 ms of a 16.7 ms frame, a thread would
delay every input by one window tick, and films need exactly one tick per call. A race over a bridge has its own thread,
since a server may take any time to answer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol

from racer_env.errors import BridgeError, RacerError, in_one_line
from racer_viewer.modes.controls import Action
from racer_viewer.modes.race import Race, RaceCommand, RaceSetup, Tick

TIME_BUDGET = 0.005
"""Simulation time budget per window tick [s]; remaining ticks are dropped."""


class Drive(Protocol):
    """A race that is being driven.

    first: state of the race when the drive was opened.
    waiting_since: time of the request that a server has not answered yet, on the monotonic clock [s]; else None.
    """

    first: Tick
    waiting_since: float | None

    def send(self, command: RaceCommand) -> None:
        """Carry out a command before the next tick."""
        ...

    def advance(self, ticks: int, action: Action, time_budget: float = TIME_BUDGET) -> Sequence[Tick]:
        """Ask for ticks; returns those that are ready, or one after commands without a tick.

        Fewer ticks are simulated if the time budget [s] is used up, but at least one.
        """
        ...

    def close(self) -> None: ...


def open_drive(setup: RaceSetup, threaded: bool | None = None) -> Drive:
    """Open a race; it has its own thread if its cars are on a bridge, unless `threaded` says otherwise."""
    race = Race(setup)
    own_thread = setup.bridge is not None if threaded is None else threaded
    return ThreadedDrive(race) if own_thread else LocalDrive(race)


@dataclass(frozen=True)
class _Request:
    commands: tuple[RaceCommand, ...]
    ticks: int
    action: Action
    time_budget: float = math.inf


class LocalDrive:
    """Steps a race in the calling thread; `advance` returns the ticks that it simulated."""

    def __init__(self, race: Race) -> None:
        self._race = race
        self.first = race.tick()
        self.waiting_since: float | None = None
        self._commands: list[RaceCommand] = []

    def send(self, command: RaceCommand) -> None:
        self._commands.append(command)

    def advance(self, ticks: int, action: Action, time_budget: float = TIME_BUDGET) -> Sequence[Tick]:
        commands, self._commands = tuple(self._commands), []
        return _simulate(self._race, _Request(commands, ticks, action, time_budget))

    def close(self) -> None:
        self._race.close()


class ThreadedDrive:
    """Steps a race in its own thread; `advance` returns the ticks of an earlier call, or raises its error.

    The race is known to the thread only.
    """

    def __init__(self, race: Race) -> None:
        self.first = race.tick()
        self.waiting_since: float | None = None
        self._commands: list[RaceCommand] = []
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._replies: SimpleQueue[Sequence[Tick] | RacerError] = SimpleQueue()
        self._closed = False
        Thread(target=_run, args=(race, self._requests, self._replies), name="racer-drive", daemon=True).start()

    def send(self, command: RaceCommand) -> None:
        self._commands.append(command)

    def advance(self, ticks: int, action: Action, time_budget: float = TIME_BUDGET) -> Sequence[Tick]:
        if self._closed:
            raise BridgeError("the connection is closed")
        driven: Sequence[Tick] = ()
        if self.waiting_since is not None:
            try:
                reply = self._replies.get_nowait()
            except Empty:
                return ()
            self.waiting_since = None
            if isinstance(reply, RacerError):
                raise reply
            driven = reply
        if ticks or self._commands:
            commands, self._commands = tuple(self._commands), []
            self.waiting_since = time.monotonic()
            self._requests.put(_Request(commands, ticks, action))
        return driven

    def close(self) -> None:
        """Let the thread end after its current request, without waiting for it."""
        if not self._closed:
            self._closed = True
            self._requests.put(None)


def _run(race: Race, requests: SimpleQueue[_Request | None], replies: SimpleQueue[Sequence[Tick] | RacerError]) -> None:
    while (request := requests.get()) is not None:
        try:
            replies.put(_simulate(race, request))
        except RacerError as error:
            replies.put(error)
        except Exception as error:  # a server may send anything
            replies.put(RacerError(f"{type(error).__name__}: {in_one_line(error)}"))
    race.close()


def _simulate(race: Race, request: _Request) -> Sequence[Tick]:
    for command in request.commands:
        race.apply(command)
    deadline = time.perf_counter() + request.time_budget
    driven: list[Tick] = []
    while len(driven) < request.ticks and not (race.setup.stops and race.over):
        driven.append(race.step(request.action))
        if time.perf_counter() >= deadline:
            break
    return driven if driven or not request.commands else [race.tick()]
