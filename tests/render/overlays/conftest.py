"""Snapshots of a car at a standing start, with whatever a test wants changed, and panels to show them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pygame
import pytest

from racer_env.engine import Simulation, Track, load_circuit
from racer_viewer.render.overlays.panel import History, Panel, PanelInput, TextPainter
from racer_viewer.snapshot import CarStyle, PolicyInsight, Snapshot
from racer_viewer.ui.theme import ORDINARY, Theme

MakeSnapshot = Callable[..., Snapshot]
Show = Callable[..., np.ndarray]


@pytest.fixture(scope="session")
def track() -> Track:
    return load_circuit("track-01")


@pytest.fixture
def theme() -> Theme:
    return Theme(1.0)


@pytest.fixture
def painter(theme: Theme) -> TextPainter:
    return TextPainter(theme)


@pytest.fixture(scope="session")
def snapshot_of(track: Track) -> MakeSnapshot:
    """Columns of the followed car go by their names, all else by the names of a snapshot's fields."""
    start = np.array(Simulation(track).cars)

    def make(cars: int = 1, **changes: Any) -> Snapshot:
        rows = np.repeat(start, cars)
        fields = {name: changes.pop(name) for name in list(changes) if name not in rows.dtype.names}
        on = fields.pop("track_", track)
        focus = fields.get("focus", 0)
        for name, value in changes.items():
            if name == "components":  # there is room for more
                rows[name][focus][: len(value)] = value
            else:
                rows[name][focus] = value
        styles = tuple(CarStyle(f"Car {number}", ORDINARY.cars[number % 8]) for number in range(cars))
        return Snapshot(on, rows, **{"styles": styles} | fields)

    return make


@pytest.fixture(scope="session")
def thought() -> PolicyInsight:
    sensitivity = np.zeros((3, 14), np.float32)
    sensitivity[0, 4], sensitivity[1, 9], sensitivity[2, 13] = 1.0, 0.25, -0.25
    return PolicyInsight(1.5, np.array([0.5, 0.25, 0.1], np.float32), sensitivity)


@pytest.fixture
def show() -> Show:
    """The picture (width, height, 3) of a panel on black."""

    def draw(panel: Panel, snapshot: Snapshot, history: History | None = None, units: str = "units/s") -> np.ndarray:
        if history is None:
            history = History()
            history.tick(snapshot)
        board = pygame.Surface(panel.size, depth=32)
        panel.forget()
        panel.draw(board, PanelInput(snapshot, history, units))
        return pygame.surfarray.array3d(board).astype(int)

    return draw


@pytest.fixture
def length() -> Callable[..., int]:
    """Count the pixels of this colour on the middle line of a bar."""

    def measure(picture: np.ndarray, bar: pygame.Rect, colour: tuple[int, int, int]) -> int:
        line = picture[bar.left : bar.right, bar.centery]
        return int((line == colour).all(axis=1).sum())

    return measure
