"""Worker processes that die, babble, hang or cannot be started: the server goes on, or says why it cannot."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from racer_env.bridge.net import Address
from racer_env.games import supervisor as arcade_module
from racer_env.games import worker_process
from racer_env.games.server import GamesServer
from racer_env.games.supervisor import Arcade, Plan
from racer_env.games.worker_process import GamesError, WorkerLostError
from racer_viewer.games.window import ServerThread
from tests.bridge.watching import eventually
from tests.games.plain_player import PlainPlayer, plain_player
from tests.games.scripted_worker import BABBLES, DIES, DIES_DRAWING_1, HANGS, STRAYS, WHOLE

SCRIPT = Path(__file__).with_name("scripted_worker.py")
SECONDS = 60.0
Script = Callable[[str], None]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Says what the next worker processes do."""

    def use(how: str) -> None:
        monkeypatch.setattr(worker_process, "COMMAND", (sys.executable, str(SCRIPT), how))

    return use


def plan(num_games: int = 1, frames: bool = False) -> Plan:
    return Plan("Racer-v0", num_games, 50.0, 1000, None, frames)


def with_arcade(body: Callable[[Arcade], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        arcade = Arcade(plan())
        await arcade.open()
        try:
            async with asyncio.timeout(SECONDS):
                await body(arcade)
        finally:
            await arcade.close()

    asyncio.run(play())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


@contextmanager
def serving(how: Plan) -> Iterator[tuple[GamesServer, PlainPlayer]]:
    server = GamesServer(Address(port=0), how)
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


def test_a_worker_that_cannot_be_started_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "COMMAND", ("no-such-program-anywhere",))

    async def body(arcade: Arcade) -> None:
        pytest.fail("it has started")

    with pytest.raises(GamesError, match="worker 0 cannot be started: "):
        with_arcade(body)


def test_a_worker_that_cannot_be_started_again_is_tried_again(
    script: Script, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(arcade: Arcade) -> None:
        await arcade.ask(0)
        monkeypatch.setattr(worker_process, "COMMAND", ("no-such-program-anywhere",))
        with pytest.raises(WorkerLostError):
            await arcade.ask(0, restart=True)
        await until(lambda: "cannot be started: " in caplog.text)
        script(WHOLE)
        assert (await arcade.ask(0)).moment.episode > 1

    script(DIES)
    with_arcade(body)


@pytest.mark.slow
def test_a_worker_that_says_what_nobody_understands_is_replaced(script: Script) -> None:
    async def body(arcade: Arcade) -> None:
        await arcade.ask(0)
        script(WHOLE)
        with pytest.raises(WorkerLostError, match="what nobody understands"):
            await arcade.ask(0, restart=True)
        await arcade.ask(0)
        assert arcade.views[0].losses == 1

    script(BABBLES)
    with_arcade(body)


def test_a_server_whose_workers_nobody_can_keep_ends_and_says_why(
    script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    script(STRAYS)
    server = GamesServer(Address(port=0), plan())

    async def serve() -> None:
        asking: list[asyncio.Task[Any]] = []

        def started(address: Address) -> None:
            asking.append(asyncio.create_task(server.arcade.ask(0, restart=True)))

        async with asyncio.timeout(SECONDS):
            await server.serve(started)

    with pytest.raises(GamesError, match="the games cannot go on"):
        asyncio.run(serve())
    assert "the games cannot go on" in caplog.text


@pytest.mark.slow
def test_a_worker_that_hangs_does_not_keep_up_and_is_replaced(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "SILENT_SECONDS", 1.0)
    monkeypatch.setattr(arcade_module, "WATCH_SECONDS", 0.1)
    script(HANGS)
    with serving(plan()) as (server, player), plain_player(server.address.port) as other:
        player.state(0)
        eventually(lambda: bool(stats(player)["games"]), "a report")
        assert stats(player)["games"][0]["rate"] == 50.0
        script(WHOLE)
        player.send({"type": "RESET", "game_id": 0})
        eventually(lambda: not stats(other)["keeps_up"], "the figures are no longer taken for current")
        assert stats(other)["games"][0]["rate"] == 0.0
        monkeypatch.setattr(worker_process, "ANSWER_SECONDS", 0.5)
        eventually(lambda: server.arcade.views[0].losses == 1, "it is killed")
        monkeypatch.setattr(worker_process, "ANSWER_SECONDS", SECONDS)
        assert player.read()["type"] == "ERROR"
        eventually(lambda: bool(stats(player)["games"]) and stats(player)["keeps_up"], "another one plays on", SECONDS)


def stats(player: PlainPlayer) -> dict[str, Any]:
    return player.ask({"type": "GET_STATS"})


def test_an_end_is_still_told_when_another_game_of_the_same_question_was_lost(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arcade_module, "worker_count", lambda name, games, frames: 2)
    script(DIES_DRAWING_1)
    blind = {"type": "GET_STATES", "frame": False}
    with serving(plan(2, frames=True)) as (server, player), plain_player(server.address.port) as other:
        assert player.ask(blind)["type"] == other.ask(blind)["type"] == "STATES"
        assert other.ask({"type": "RESET", "game_id": 0, "frame": False})["type"] == "STATE"
        script(WHOLE)
        assert "game 1 was lost" in player.refusal({"type": "GET_STATES"})
        assert stats(other)["type"] == "STATS"
        assert "game 1 was lost" in other.refusal(blind)
        told = player.ask({"type": "GET_STATE", "game_id": 0, "frame": False})
        assert (told["done"], told["frame"]) == (True, None)
        assert player.ask(blind)["type"] == "STATES"
