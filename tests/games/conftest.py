"""Real games servers, as processes of their own."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SHORT = 40
"""Ticks of an episode of the shared server: at 50 a second, somewhat less than a second."""


@dataclass
class RunningGames:
    """A server process and where it is."""

    port: int
    process: "subprocess.Popen[str]"
    log: Path

    def end(self, how: int = signal.SIGTERM, seconds: float = 20.0) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(how)
        return self.process.wait(seconds)


StartGames = Callable[..., AbstractContextManager[RunningGames]]


@contextmanager
def running_games(folder: Path, *arguments: str) -> Iterator[RunningGames]:
    """`racer-viewer games` on a port of its own choice, ended afterwards."""
    log = folder / f"games-{len(list(folder.iterdir()))}.log"
    command = [sys.executable, "-P", "-m", "racer_viewer", "games", "--port", "0", *arguments]
    with (
        log.open("w") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as process,
    ):
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("Games at "), log.read_text()
        try:
            yield RunningGames(int(first.split()[2].rsplit(":", 1)[1]), process, log)
        finally:
            if process.poll() is None:
                process.kill()


@pytest.fixture(scope="session")
def games(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGames]:
    """Four short CarRacing games, shared by all tests that do them no harm."""
    pytest.importorskip("Box2D")
    arguments = ("--num-games", "4", "--max-steps", str(SHORT), "--seed", "3", "--verbose", "1")
    with running_games(tmp_path_factory.mktemp("games"), *arguments) as running:
        yield running
        assert running.process.poll() is None, running.log.read_text()
        assert "Traceback" not in running.log.read_text()


@pytest.fixture
def start_games(tmp_path: Path) -> StartGames:
    """Starts servers with other settings: `with start_games("--num-games", "2") as games:`."""
    pytest.importorskip("Box2D")
    return lambda *arguments: running_games(tmp_path, *arguments)
