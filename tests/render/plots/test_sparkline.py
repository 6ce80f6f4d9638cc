"""A run's curve in a row of a list."""

from collections.abc import Callable

import numpy as np
import pygame
import pytest

from racer_viewer.render.plots import Sparkline
from racer_viewer.run_history import RunHistory
from racer_viewer.ui.theme import ORDINARY, Theme

MakeRun = Callable[..., RunHistory]
RECT = pygame.Rect(20, 10, 120, 36)


def drawn(theme: Theme, run: RunHistory) -> np.ndarray:
    surface = pygame.Surface((160, 60), depth=32)
    Sparkline(theme).draw(surface, RECT, run)
    return pygame.surfarray.array3d(surface).astype(int)


def line(picture: np.ndarray) -> np.ndarray:
    return np.asarray((picture == ORDINARY.accent).all(axis=2))


def test_the_best_lap_falls_to_the_right(theme: Theme, run_of: MakeRun) -> None:
    there = line(drawn(theme, run_of()))
    rows = [np.flatnonzero(column).mean() for column in there if column.any()]
    assert rows[0] < RECT.top + 10
    assert rows[-1] > RECT.bottom - 10


def test_without_laps_or_with_those_of_several_circuits_the_reward_rises_to_the_right(
    theme: Theme, run_of: MakeRun
) -> None:
    many = run_of(60, 300, circuits=("track-01", "track-02"), lap_circuits=np.arange(300) % 2)
    for run in (run_of(60, 0), many):
        there = line(drawn(theme, run))
        rows = [np.flatnonzero(column).mean() for column in there if column.any()]
        assert rows[0] > rows[-1] + 15


@pytest.mark.parametrize("updates", [0, 1, 60])
def test_it_stays_in_its_place(theme: Theme, run_of: MakeRun, updates: int) -> None:
    laps = 0 if updates < 2 else 300
    picture = drawn(theme, run_of(updates, laps))
    assert picture.any()
    picture[RECT.left : RECT.right, RECT.top : RECT.bottom] = 0
    assert not picture.any()


def test_a_picture_is_kept_as_long_as_its_run(theme: Theme, run_of: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    surface, small, run = pygame.Surface((160, 60), depth=32), Sparkline(theme), run_of()
    times = []
    draw = Sparkline.render_curve
    monkeypatch.setattr(Sparkline, "render_curve", lambda *args: times.append(1) or draw(*args))
    for _ in range(3):
        small.draw(surface, RECT, run)
    assert len(times) == 1
    small.draw(surface, RECT.inflate(10, 0), run)
    small.draw(surface, RECT.inflate(10, 0), run_of())
    assert len(times) == 3
