"""ControlServer that a run follows between two ticks."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from racer_env.engine import TICKS_PER_SECOND
from racer_viewer.training.callbacks import Conductor
from racer_viewer.training.config import RunConfig
from racer_viewer.training.control import PACE, ControlServer

CARS, TIMES = 8, 20.0


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[ControlServer]:
    with closing(ControlServer(tmp_path)) as orders:
        yield orders


@pytest.mark.parametrize("ticks_between", [1, 120])
def test_a_pace_is_kept_however_many_ticks_are_driven_between_two_looks(
    orders: ControlServer, ticks_between: int
) -> None:
    run: Any = SimpleNamespace(config=RunConfig(num_cars=CARS), stopped=False)
    conductor = Conductor(run, orders)
    orders.queue.put({"do": PACE, "times": TIMES})
    conductor._on_step()
    begin = time.monotonic()
    for _ in range(240 // ticks_between):
        conductor.num_timesteps += CARS * ticks_between
        conductor._on_step()
    assert time.monotonic() - begin > 0.7 * 240 / (TIMES * TICKS_PER_SECOND)
