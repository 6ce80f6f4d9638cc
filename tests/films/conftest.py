"""A drive to film, and somebody at the app."""

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
    """Of the champion."""
    return drive(600)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where films go, and nothing else."""
    made = tmp_path / "films"
    made.mkdir()
    return made


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    """With the smallest window that there is: what is filmed is as large."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    SettingsFile(tmp_path).save(Settings(window=WINDOW))
    someone = Person(tmp_path)
    yield someone
    someone.app.close()
