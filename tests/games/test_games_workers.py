"""Worker processes that exit, send garbage, hang or cannot be started: the server recovers or reports why it cannot."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from racer_env.bridge.net import ServerAddress
from racer_env.games import supervisor as supervisor_module
from racer_env.games import worker_process
from racer_env.games.server import GamesServer
from racer_env.games.supervisor import GamesConfig, GameSupervisor
from racer_env.games.worker_process import GamesError, WorkerLostError
from racer_viewer.games.window import ServerThread
from tests.games.plain_player import PlainPlayer, plain_player
from tests.games.scripted_worker import EXITS, EXITS_DRAWING_1, HANGS, SENDS_GARBAGE, UNKNOWN_GAME, WORKS
from tests.processes import POLL_INTERVAL, wait_for

SCRIPT = Path(__file__).with_name("scripted_worker.py")
TIMEOUT = 60.0
Script = Callable[[str], None]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Return a function that sets the mode of the next worker processes."""

    def use(mode: str) -> None:
        monkeypatch.setattr(worker_process, "COMMAND", (sys.executable, str(SCRIPT), mode))

    return use


def config(num_games: int = 1, frames: bool = False) -> GamesConfig:
    return GamesConfig("Racer-v0", num_games, 50.0, 1000, None, frames)


def with_supervisor(body: Callable[[GameSupervisor], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        supervisor = GameSupervisor(config())
        await supervisor.start()
        try:
            async with asyncio.timeout(TIMEOUT):
                await body(supervisor)
        finally:
            await supervisor.stop()

    asyncio.run(play())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(POLL_INTERVAL)


@contextmanager
def serving(settings: GamesConfig) -> Iterator[tuple[GamesServer, PlainPlayer]]:
    server = GamesServer(ServerAddress(port=0), settings)
    server.listen()
    thread = ServerThread(server, lambda address: None)
    thread.start()
    try:
        with plain_player(server.address.port) as player:
            yield server, player
    finally:
        server.stop()
        thread.join()
    assert thread.problem is None


def test_a_worker_that_cannot_be_started_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "COMMAND", ("no-such-program-anywhere",))

    async def body(supervisor: GameSupervisor) -> None:
        pytest.fail("it has started")

    with pytest.raises(GamesError, match="worker 0 cannot be started: "):
        with_supervisor(body)


def test_a_failed_restart_of_a_worker_is_retried(
    script: Script, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(supervisor: GameSupervisor) -> None:
        await supervisor.query_state(0)
        monkeypatch.setattr(worker_process, "COMMAND", ("no-such-program-anywhere",))
        with pytest.raises(WorkerLostError):
            await supervisor.query_state(0, restart=True)
        await until(lambda: "cannot be started: " in caplog.text)
        script(WORKS)
        assert (await supervisor.query_state(0)).snapshot.episode > 1

    script(EXITS)
    with_supervisor(body)


@pytest.mark.slow
def test_a_worker_that_sends_garbage_is_replaced(script: Script) -> None:
    async def body(supervisor: GameSupervisor) -> None:
        await supervisor.query_state(0)
        script(WORKS)
        with pytest.raises(WorkerLostError, match="an invalid message"):
            await supervisor.query_state(0, restart=True)
        await supervisor.query_state(0)
        assert supervisor.games[0].loss_count == 1

    script(SENDS_GARBAGE)
    with_supervisor(body)


def test_a_server_that_cannot_supervise_its_workers_ends_with_the_reason(
    script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    script(UNKNOWN_GAME)
    server = GamesServer(ServerAddress(port=0), config())

    async def serve() -> None:
        queries: list[asyncio.Task[Any]] = []

        def started(address: ServerAddress) -> None:
            queries.append(asyncio.create_task(server.supervisor.query_state(0, restart=True)))

        async with asyncio.timeout(TIMEOUT):
            await server.serve(started)

    with pytest.raises(GamesError, match="the games cannot continue"):
        asyncio.run(serve())
    assert "the games cannot continue" in caplog.text


@pytest.mark.slow
def test_a_worker_that_hangs_counts_as_too_slow_and_is_replaced(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "HANG_TIMEOUT", 1.0)
    monkeypatch.setattr(supervisor_module, "WATCH_INTERVAL", 0.1)
    script(HANGS)
    with serving(config()) as (server, player), plain_player(server.address.port) as other:
        player.state(0)
        wait_for(lambda: bool(stats(player)["games"]), "a report")
        assert stats(player)["games"][0]["rate"] == 50.0
        script(WORKS)
        player.send({"type": "RESET", "game_id": 0})
        wait_for(lambda: not stats(other)["keeps_up"], "the statistics count as out of date")
        assert stats(other)["games"][0]["rate"] == 0.0
        monkeypatch.setattr(worker_process, "REPLY_TIMEOUT", 0.5)
        wait_for(lambda: server.supervisor.games[0].loss_count == 1, "it is killed")
        monkeypatch.setattr(worker_process, "REPLY_TIMEOUT", TIMEOUT)
        assert player.read()["type"] == "ERROR"
        wait_for(
            lambda: bool(stats(player)["games"]) and stats(player)["keeps_up"], "a new worker runs the game", TIMEOUT
        )


def stats(player: PlainPlayer) -> dict[str, Any]:
    return player.ask({"type": "GET_STATS"})


def test_an_end_is_still_reported_when_another_game_of_the_same_request_is_lost(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "worker_count", lambda name, games, frames: 2)
    script(EXITS_DRAWING_1)
    blind = {"type": "GET_STATES", "frame": False}
    with serving(config(2, frames=True)) as (server, player), plain_player(server.address.port) as other:
        assert player.ask(blind)["type"] == other.ask(blind)["type"] == "STATES"
        assert other.ask({"type": "RESET", "game_id": 0, "frame": False})["type"] == "STATE"
        script(WORKS)
        assert "game 1 was lost" in player.refusal({"type": "GET_STATES"})
        assert stats(other)["type"] == "STATS"
        assert "game 1 was lost" in other.refusal(blind)
        state = player.ask({"type": "GET_STATE", "game_id": 0, "frame": False})
        assert (state["done"], state["frame"]) == (True, None)
        assert player.ask(blind)["type"] == "STATES"
