"""Car feed: learning cars as another process sees them."""

import struct
import threading
from pathlib import Path

import numpy as np
import pytest

from racer_viewer.run_history import SWARM_CAR, Swarm
from racer_viewer.training.car_feed import CarFeedReader, CarFeedWriter
from racer_viewer.training.controlled_run import RewardScale


def cars(count: int, value: int) -> np.ndarray:
    rows = np.zeros(count, SWARM_CAR)
    for name in SWARM_CAR.names or ():
        rows[name] = value
    return rows


def test_the_latest_state_is_read(tmp_path: Path) -> None:
    writer = CarFeedWriter(tmp_path, 3)
    reader = CarFeedReader(tmp_path)
    assert reader.read() is None, "nothing yet"
    for tick in (1, 2, 3):
        writer.write(Swarm(tick, cars(3, tick)), 3 * tick)
        latest = reader.read()
        assert latest is not None
        swarm, steps = latest
        assert (swarm.tick, steps) == (tick, 3 * tick)
        np.testing.assert_array_equal(swarm.cars, cars(3, tick))
    writer.close()
    assert not (tmp_path / "swarm.bin").exists()
    latest = reader.read()
    assert latest is not None, "a reader keeps the last state"
    assert latest[0].tick == 3


def test_a_reader_never_sees_half_a_tick(tmp_path: Path) -> None:
    writer, reader = CarFeedWriter(tmp_path, 512), CarFeedReader(tmp_path)
    states, over = [cars(512, value) for value in range(50)], threading.Event()

    def write() -> None:
        for number in range(20_000):
            writer.write(Swarm(number, states[number % 50]), number)
        over.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = set()
    while not over.is_set():
        latest = reader.read()
        if latest is not None:
            swarm, steps = latest
            assert swarm.tick == steps
            assert (swarm.cars == states[swarm.tick % 50]).all()
            seen.add(swarm.tick)
    thread.join()
    assert len(seen) > 10


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "swarm.bin").write_bytes(b"something else entirely, and long enough for a head")
    with pytest.raises(ValueError, match="another version"):
        CarFeedReader(tmp_path)


def test_a_feed_of_more_cars_than_a_run_can_have_is_refused(tmp_path: Path) -> None:
    header = struct.pack("<4sIQQ", b"RSWM", 2, 1_000_000, 1)
    (tmp_path / "swarm.bin").write_bytes(header + bytes(2 * (24 + 1_000_000 * SWARM_CAR.itemsize)))
    with pytest.raises(ValueError, match="too many cars"):
        CarFeedReader(tmp_path)


def test_quality_orders_cars_and_rises_with_the_run() -> None:
    usual, rng = RewardScale(), np.random.default_rng(0)
    for _ in range(50):
        bad = usual.apply(rng.normal(-1.0, 0.1, 64))
    assert bad.min() == 0.0
    assert bad.max() == 1.0
    for mean in np.linspace(-1.0, 1.0, 200):
        good = usual.apply(rng.normal(mean, 0.1, 64))
    assert good.mean() > 0.7, "later cars do well, compared with the whole run"
    last = usual.apply(np.array([1.0] * 63 + [-1.0]))
    assert last[-1] < 0.1 < last[0]
