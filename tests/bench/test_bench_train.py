"""`bench train` measures real learning."""

from dataclasses import replace

import pytest

from racer_viewer.bench.preview import measure as measure_preview
from racer_viewer.bench.train import LEARNER_ALONE, ONE_THREAD, SB3, TWO_THREADS, measure
from racer_viewer.training.config import preset

pytestmark = pytest.mark.timing


@pytest.mark.slow
def test_learning_is_measured_with_all_engines_in_turn() -> None:
    figures = measure("quick", 2, replace(preset("ppo"), num_cars=16, n_steps=64, batch_size=512, n_epochs=1))
    assert set(figures.steps_per_second) == {SB3, ONE_THREAD, TWO_THREADS, LEARNER_ALONE}
    assert all(speed > 0 for speed in (*figures.steps_per_second.values(), *figures.steps_per_cpu_second.values()))
    assert all(0.0 < share < 1.0 for share in figures.gathering.values())
    assert figures.ratios[ONE_THREAD] > 1.0


@pytest.mark.slow
def test_what_the_live_picture_costs_is_measured_beside_the_same_run_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    figures = measure_preview(rounds=1, seconds=1.5)
    assert figures.headless > 100.0
    assert figures.preview > 100.0
    assert figures.ratio == figures.preview / figures.headless
    assert 0.0 < figures.picture_p50 <= figures.picture_p99
