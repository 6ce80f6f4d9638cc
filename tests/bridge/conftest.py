"""Fixtures: real bridge servers in their own processes."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.servers import RunningServer, running_server

RunningBridge = RunningServer
StartBridge = Callable[..., AbstractContextManager[RunningBridge]]


def running_bridge(folder: Path, *arguments: str) -> AbstractContextManager[RunningBridge]:
    return running_server(folder, "bridge", *arguments)


@pytest.fixture(scope="session")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBridge]:
    """Server with default settings, shared by all tests that do not stop it."""
    with running_bridge(tmp_path_factory.mktemp("bridge")) as running:
        yield running


@pytest.fixture
def start_bridge(tmp_path: Path) -> StartBridge:
    """Context manager for servers with other settings: `with start_bridge("--max-clients", "2") as bridge:`."""
    return lambda *arguments: running_bridge(tmp_path, *arguments)
