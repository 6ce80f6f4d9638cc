"""Fixtures: real games servers in processes of their own."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.servers import RunningServer, running_server

SHORT = 40
"""Length of an episode of the shared server [ticks]; at 50 ticks/s, less than a second."""

RunningGames = RunningServer
StartGames = Callable[..., AbstractContextManager[RunningGames]]


def running_games(folder: Path, *arguments: str) -> AbstractContextManager[RunningGames]:
    return running_server(folder, "games", *arguments)


@pytest.fixture(scope="session")
def games(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGames]:
    """Start a server with four CarRacing games of short episodes, shared by all tests that leave it running."""
    pytest.importorskip("Box2D")
    arguments = ("--num-games", "4", "--max-steps", str(SHORT), "--seed", "3", "--verbose", "1")
    with running_games(tmp_path_factory.mktemp("games"), *arguments) as running:
        yield running
        assert running.process.poll() is None, running.log.read_text()
        assert "Traceback" not in running.log.read_text()


@pytest.fixture
def start_games(tmp_path: Path) -> StartGames:
    """Return a function that starts servers with other options: `with start_games("--num-games", "2") as games:`."""
    pytest.importorskip("Box2D")
    return lambda *arguments: running_games(tmp_path, *arguments)
