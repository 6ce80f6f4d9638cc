"""A worker with too much to do reports it, still answers, and lets no game starve."""

import queue
import threading
import time
from typing import Any

from racer_env.engine import TICKS_PER_SECOND
from racer_env.games.game import CAR_RACING, KINDS, RACER, DrawData, GameBackend, TickResult
from racer_env.games.server import slowness_warning
from racer_env.games.worker import Commands, Worker
from racer_env.games.worker_protocol import (
    Action,
    SetupCommand,
    StateQuery,
    StateReply,
    StatsReply,
    StopCommand,
    WorkerMessage,
)
from tests.processes import wait_for

HZ, GAMES, TICK_COST = 1000.0, 6, 0.002
"""Twelve times as much work as the worker has time for; the cost of a tick is in seconds."""


class SlowBackend:
    """A game with expensive ticks."""

    def restart(self) -> None:
        pass

    def tick(self, action: Action) -> TickResult:
        end = time.perf_counter() + TICK_COST
        while time.perf_counter() < end:
            pass
        return TickResult(0.0)

    def telemetry(self) -> dict[str, Any]:
        return {}

    def frame(self) -> bytes:
        return b""

    def draw_data(self, width: int, height: int) -> DrawData:
        return DrawData("pixels", width, height, b"")


def test_overload_is_reported_and_no_game_starves() -> None:
    sent: list[WorkerMessage] = []
    backends: list[GameBackend] = [SlowBackend() for _ in range(GAMES)]
    setup = SetupCommand("slow", list(range(GAMES)), [0] * GAMES, None, HZ, 10**6, False)
    commands: Commands = queue.SimpleQueue()
    worker = Worker(setup, backends, sent.append)
    thread = threading.Thread(target=worker.run, args=(commands,))
    thread.start()
    for number in range(GAMES):
        commands.put(StateQuery(number, number, restart=False, frame=False))
    try:
        wait_for(lambda: sum(isinstance(each, StateReply) for each in sent) == GAMES, "all queries are answered")
        wait_for(lambda: any(isinstance(each, StatsReply) and each.games for each in sent), "it sends statistics")
    finally:
        commands.put(StopCommand())
        thread.join()
    last = sent[-1]
    assert isinstance(last, StatsReply)
    assert len(last.games) == GAMES
    assert not any(stats.keeps_up for stats in last.games)
    assert all(stats.skipped > 0 for stats in last.games)
    ticks = [stats.ticks for stats in last.games]
    assert min(ticks) > 0.5 * max(ticks)
    assert "the machine does not keep up with 1000 ticks/s: game 0 " in slowness_warning(last.games)


def test_games_have_the_tick_rate_that_they_are_designed_for() -> None:
    assert KINDS[RACER].hz == TICKS_PER_SECOND
    assert KINDS[CAR_RACING].hz == 50.0
