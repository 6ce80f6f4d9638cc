"""Fixtures: the real app with SDL's dummy driver, and an X server for real windows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.modes.eyes import SCREEN
from tests.modes.person import Person
from tests.modes.xvfb_screen import XvfbScreen


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    user = Person(tmp_path)
    yield user
    user.app.close()


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[XvfbScreen]:
    """Start an X server for tests that open real windows."""
    folder = tmp_path / "screen"
    folder.mkdir()
    with XvfbScreen(folder, SCREEN) as opened:
        yield opened
