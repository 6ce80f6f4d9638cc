"""Real bridge servers, as processes of their own."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass
class RunningBridge:
    """A server process and where it is."""

    url: str
    process: "subprocess.Popen[str]"
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def end(self, how: int = signal.SIGTERM, seconds: float = 10.0) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(how)
        return self.process.wait(seconds)


StartBridge = Callable[..., Any]


@contextmanager
def running_bridge(folder: Path, *arguments: str) -> Iterator[RunningBridge]:
    """`racer-viewer bridge` on a port of its own choice, ended afterwards."""
    log = folder / f"bridge-{len(list(folder.iterdir()))}.log"
    command = [sys.executable, "-P", "-m", "racer_viewer", "bridge", "--port", "0", *arguments]
    with (
        log.open("w") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as process,
    ):
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("Bridge at ws://"), log.read_text()
        try:
            yield RunningBridge(first.split()[2], process, log)
        finally:
            if process.poll() is None:
                process.kill()


@pytest.fixture(scope="session")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBridge]:
    """A server with default settings, shared by all tests that do it no harm."""
    with running_bridge(tmp_path_factory.mktemp("bridge")) as running:
        yield running


@pytest.fixture
def start_bridge(tmp_path: Path) -> StartBridge:
    """Starts servers with other settings: `with start_bridge("--max-clients", "2") as bridge:`."""
    return lambda *arguments: running_bridge(tmp_path, *arguments)
