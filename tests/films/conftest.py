"""A drive to film, and a user of the app."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from racer_viewer.settings import Settings, SettingsFile
from racer_viewer.snapshot import InterpolatedFrame
from tests.films.drive import drive
from tests.modes.person import Person

WINDOW = (960, 540)


@pytest.fixture(scope="session")
def ten_seconds() -> list[InterpolatedFrame]:
    """Ten seconds of the champion's drive."""
    return drive(600)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for films."""
    made = tmp_path / "films"
    made.mkdir()
    return made


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    """A user with the smallest window, which makes films small."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    SettingsFile(tmp_path).save(Settings(window=WINDOW))
    user = Person(tmp_path)
    yield user
    user.app.close()
