"""How a race goes on: at once, or, where its cars are on a bridge, beside the window, which waits for nobody."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread

from racer_env.errors import BridgeError, RacerError
from racer_viewer.modes.controls import Action
from racer_viewer.modes.link import Link
from racer_viewer.modes.race import Race
from racer_viewer.snapshot import Snapshot
from racer_viewer.timing import LapTime

LONGEST = 0.005
"""Of what is driven in a tick of the window [s]; what is over stays undone."""


@dataclass(frozen=True, eq=False)
class Tick:
    """What came of a tick: what there is to see, the lap that the followed car ended, and how the link is."""

    snapshot: Snapshot
    finished: LapTime | None = None
    link: Link | None = None


class Drive:
    """Has a race driven, tick by tick, in this very thread."""

    def __init__(self, race: Race) -> None:
        self.race = race
        self.silent_since: float | None = None
        """When something was asked of a server that is not answered yet."""
        self._orders: list[Callable[[Race], object]] = []

    def advance(self, ticks: int, action: Action, time_left: float = LONGEST) -> Sequence[Tick]:
        """What is new to see: the ticks that were driven, or what an order has changed.

        They may be less than asked for, but for one, if there is no time left for more [s].
        """
        orders, self._orders = self._orders, []
        return _advance(self.race, orders, ticks, action, time.perf_counter() + time_left)

    def order(self, change: Callable[[Race], object]) -> None:
        """Change something about the race, before its next tick."""
        self._orders.append(change)

    def close(self) -> None:
        self.race.close()


class DriveBeside(Drive):
    """Has a race driven by a thread of its own. What `advance` returns was asked for in an earlier call.

    What goes wrong there is raised here, in the next call.
    """

    def __init__(self, race: Race) -> None:
        super().__init__(race)
        self._work: SimpleQueue[Callable[[], Sequence[Tick]] | None] = SimpleQueue()
        self._done: SimpleQueue[Sequence[Tick] | RacerError] = SimpleQueue()
        self._parted = False
        Thread(target=self._run, name="racer-drive", daemon=True).start()

    def advance(self, ticks: int, action: Action, time_left: float = LONGEST) -> Sequence[Tick]:
        if self._parted:
            raise BridgeError("there is no connection any more")
        driven: Sequence[Tick] = ()
        if self.silent_since is not None:
            try:
                answer = self._done.get_nowait()
            except Empty:
                return ()
            self.silent_since = None
            if isinstance(answer, RacerError):
                raise answer
            driven = answer
        if ticks or self._orders:
            orders, self._orders = self._orders, []
            self.silent_since = time.monotonic()
            self._work.put(lambda: _advance(self.race, orders, ticks, action))
        return driven

    def close(self) -> None:
        """As soon as it is through with what it does; nobody waits for that."""
        if not self._parted:
            self._parted = True
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                self._done.put(work())
            except RacerError as error:
                self._done.put(error)
            except Exception as error:  # what a server sent may have been beyond all that was thought of
                self._done.put(RacerError(f"{type(error).__name__}: {error}"))
        self.race.close()


def drive_of(race: Race) -> Drive:
    return Drive(race) if race.bridge is None else DriveBeside(race)


def _advance(
    race: Race, orders: Sequence[Callable[[Race], object]], ticks: int, action: Action, end: float = math.inf
) -> Sequence[Tick]:
    """Until this time of the performance counter, and at most until all episodes are over."""
    for change in orders:
        change(race)
    driven: list[Tick] = []
    while len(driven) < ticks and not race.over and (not driven or time.perf_counter() < end):
        finished = race.step(action)
        driven.append(Tick(race.snapshot(), finished, race.link))
    return driven if driven or not orders else [Tick(race.snapshot(), None, race.link)]
