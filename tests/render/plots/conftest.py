"""Runs with figures, laps and events as a learner would write them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from racer_viewer.run_history import RunEvent, RunHistory
from racer_viewer.ui.theme import Theme

MakeRun = Callable[..., RunHistory]
STEPS_PER_UPDATE = 8192.0


@pytest.fixture
def theme() -> Theme:
    return Theme(1.0)


@pytest.fixture(scope="session")
def run_of() -> MakeRun:
    """A run of so many updates and laps; figures that are given replace or join those of PPO."""

    def make(updates: int = 60, laps: int = 300, name: str = "run", **changes: Any) -> RunHistory:
        random = np.random.default_rng(len(name))
        steps = np.arange(1.0, updates + 1.0) * STEPS_PER_UPDATE
        end = updates * STEPS_PER_UPDATE
        share = np.arange(updates) / max(1, updates - 1)
        completion = np.where(np.arange(updates) % 5 == 4, share, np.nan)
        values = {
            "reward/progress": 0.002 * share,
            "reward/speed": np.zeros(updates),
            "reward/wall": -0.001 * (1.0 - share),
            "reward/offTrack": -0.0005 * (1.0 - share),
            "reward/backward": np.zeros(updates),
            "reward/stillness": np.zeros(updates),
            "racer/completion_rate": completion,
            "train/policy_gradient_loss": -0.01 + 0.005 * share + random.normal(0.0, 0.001, updates),
            "train/entropy_loss": -1.0 + 3.0 * share,
            "train/approx_kl": 0.005 + random.normal(0.0, 0.001, updates),
            "train/explained_variance": 0.9 * share,
            "time/fps": np.full(updates, 25_000.0),
        }
        when = np.linspace(0.1 * end, end, laps)
        times = 6.6 + 3.0 * np.exp(-6.0 * when / max(1.0, end)) + np.abs(random.normal(0.0, 0.1, laps))
        sectors = np.column_stack([when, times * 0.3, times * 0.33, times * 0.37])
        events = tuple(
            RunEvent(round(at * end), 0.0, kind, f"{kind} at {at}")
            for at, kind in ((0.1, "first lap"), (0.4, "weights"), (0.7, "best"), (0.9, "checkpoint"))
            if updates
        )
        made = {"laps": np.column_stack([when, times]), "sectors": sectors, "events": events}
        return RunHistory(name, steps, steps / 25_000.0, values | changes.pop("values", {}), **(made | changes))

    return make
