"""The real app under SDL's dummy driver."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from person import Person


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    someone = Person(tmp_path)
    yield someone
    someone.app.close()
