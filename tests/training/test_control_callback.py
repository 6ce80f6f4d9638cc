"""Commands of viewers, executed between two ticks."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from racer_env.engine import TICKS_PER_SECOND
from racer_viewer.training.config import RunConfig
from racer_viewer.training.control import PACE, ControlServer
from racer_viewer.training.controlled_run import ControlCallback
from racer_viewer.training.metrics import DrivingStats

CARS, PACE_FACTOR = 8, 20.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ControlServer]:
    with closing(ControlServer(tmp_path)) as server:
        yield server


@pytest.mark.parametrize("ticks_per_call", [1, 120])
def test_a_pace_is_kept_with_any_number_of_ticks_per_call(server: ControlServer, ticks_per_call: int) -> None:
    run: Any = SimpleNamespace(config=RunConfig(num_cars=CARS), stopped=False)
    learner: Any = SimpleNamespace(steps=0)
    control = ControlCallback(run, server)
    control.learner = learner
    server.queue.put({"do": PACE, "times": PACE_FACTOR})
    control.on_step(DrivingStats())
    begin = time.monotonic()
    for _ in range(240 // ticks_per_call):
        learner.steps += CARS * ticks_per_call
        control.on_step(DrivingStats())
    assert time.monotonic() - begin > 0.7 * 240 / (PACE_FACTOR * TICKS_PER_SECOND)
