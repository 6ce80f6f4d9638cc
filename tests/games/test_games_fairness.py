"""A worker process that has more to do than it can: it says so, answers all the same, and no game starves."""

import queue
import threading
import time
from typing import Any

from racer_env.engine import TICKS_PER_SECOND
from racer_env.games.game import Outcome, Playable, Sight
from racer_env.games.kinds import CAR_RACING, KINDS, RACER
from racer_env.games.server import complaint
from racer_env.games.worker import Commands, Worker
from racer_env.games.worker_protocol import Action, Answer, Ask, Counted, Finish, FromWorker, Setup
from tests.bridge.watching import eventually

HZ, GAMES, TICK_SECONDS = 1000.0, 6, 0.002
"""A round of ticks takes twelve times as long as it may."""


class Slow:
    """A game whose ticks take their time."""

    def restart(self) -> None:
        pass

    def tick(self, action: Action) -> Outcome:
        time.sleep(TICK_SECONDS)
        return Outcome(0.0)

    def telemetry(self) -> dict[str, Any]:
        return {}

    def frame(self) -> bytes:
        return b""

    def sight(self, width: int, height: int) -> Sight:
        return Sight("pixels", width, height, b"")


def test_where_there_is_too_much_to_do_it_is_told_and_no_game_starves() -> None:
    said: list[FromWorker] = []
    playables: list[Playable] = [Slow() for _ in range(GAMES)]
    setup = Setup("slow", list(range(GAMES)), [0] * GAMES, None, HZ, 10**6, False)
    commands: Commands = queue.SimpleQueue()
    worker = Worker(setup, playables, said.append)
    thread = threading.Thread(target=worker.run, args=(commands,))
    thread.start()
    for number in range(GAMES):
        commands.put(Ask(number, number, restart=False, frame=False))
    try:
        eventually(lambda: sum(isinstance(each, Answer) for each in said) == GAMES, "all are answered")
        eventually(lambda: any(isinstance(each, Counted) and each.clocks for each in said), "it reports by itself")
    finally:
        commands.put(Finish())
        thread.join()
    last = said[-1]
    assert isinstance(last, Counted)
    assert len(last.clocks) == GAMES
    assert not any(clock.keeps_up for clock in last.clocks)
    assert all(clock.skipped > 0 for clock in last.clocks)
    ticks = [clock.ticks for clock in last.clocks]
    assert min(ticks) > 0.5 * max(ticks)
    assert "the machine does not keep up with 1000 ticks/s: game 0 " in complaint(last.clocks)


def test_games_run_as_fast_as_they_were_made_for() -> None:
    assert KINDS[RACER].hz == TICKS_PER_SECOND
    assert KINDS[CAR_RACING].hz == 50.0
