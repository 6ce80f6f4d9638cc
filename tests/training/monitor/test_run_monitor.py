"""Run monitor: a run in another process, followed and controlled."""

import time
from collections.abc import Iterator

import numpy as np
import pytest

from racer_env.errors import ConfigError, RacerError
from racer_viewer.training.run_monitor import RunMonitor
from tests.processes import is_gone, wait_for
from tests.training.monitor.learners import LAPPING, config, event_kinds, wait_until_learning


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunMonitor]:
    """A run that learns during all tests of this module."""
    run = RunMonitor.start(config(LAPPING), tmp_path_factory.mktemp("data") / "runs")
    try:
        assert run.state == "starting"
        wait_until_learning(run)
        yield run
    finally:
        run.close()
        pid = run.pid
        assert pid is not None
        wait_for(lambda: is_gone(pid))


def test_metrics_laps_sectors_policies_and_events_arrive(run: RunMonitor) -> None:
    wait_for(lambda: len(run.history.steps) > 2 and len(run.history.laps) and len(run.history.sectors))
    history = run.history
    assert {"reward/progress", "train/approx_kl", "time/fps"} <= set(history.values)
    assert event_kinds(run)[:3] == ["begin", "first gate", "first lap"]
    assert len(history.policies) > 2
    assert run.policy().act([0.5] * 14).shape == (3,)
    assert run.total == 50_000_000
    assert run.steps > 0
    whole = history.sectors[~np.isnan(history.sectors).any(axis=1)]
    np.testing.assert_allclose(whole[:1, 1:].sum(axis=1), history.laps[:1, 1], atol=0.01)


def test_the_cars_are_seen(run: RunMonitor) -> None:
    wait_for(lambda: run.swarm() is not None)
    first = run.swarm()
    assert first is not None
    wait_for(lambda: (now := run.swarm()) is not None and now.tick > first.tick + 10)
    cars = first.cars
    assert cars.shape == (16,)
    assert ((cars["quality"] >= 0.0) & (cars["quality"] <= 1.0)).all()
    assert (cars["track"] == 0).all()
    wait_for(lambda: run.steps_per_second > 0.0)


def test_a_pause_stops_the_steps(run: RunMonitor) -> None:
    run.pause()
    wait_for(lambda: run.state == "paused")
    swarm = run.swarm()
    wait_for(lambda: run.steps_per_second == 0.0)  # measured over seconds
    now, steps = run.swarm(), run.steps
    assert swarm is not None
    assert now is not None
    assert now.tick == swarm.tick
    run.resume()
    wait_for(lambda: run.state == "learning" and run.steps > steps)


def test_real_time_is_sixty_ticks_a_second(run: RunMonitor) -> None:
    run.set_pace(1.0)

    def tick() -> int:
        swarm = run.swarm()
        assert swarm is not None
        return swarm.tick

    def ticks_per_second(ticks: int) -> float:
        """Measure the speed over at least so many ticks."""
        first, start = tick(), time.monotonic()
        wait_for(lambda: tick() >= first + ticks)
        return (tick() - first) / (time.monotonic() - start)

    wait_for(lambda: ticks_per_second(20) < 100.0)
    assert ticks_per_second(120) == pytest.approx(60.0, rel=0.15)
    run.set_pace(None)
    wait_for(lambda: ticks_per_second(20) > 100.0)


def test_weights_are_changed_while_it_learns(run: RunMonitor) -> None:
    with pytest.raises(ConfigError, match="did you mean speedBonus"):
        run.set_weights({"speedBonsu": 1.0})
    wait_for(lambda: len(run.history.steps) > 2)
    assert np.nanmax(run.history.values["reward/speed"]) == 0.0
    run.set_weights({"speedBonus": 0.25})
    wait_for(lambda: "weights" in event_kinds(run))
    event = next(event for event in run.history.events if event.kind == "weights")
    assert event.text == "speedBonus from 0 to 0.25"
    wait_for(lambda: run.history.values["reward/speed"][-1] > 0.0)
    wait_for(lambda: run.config.rewards.weights.speed_bonus == 0.25)
    wait_for(lambda: '"speedBonus": 0.25' in (run.folder / "config.json").read_text())


def test_a_checkpoint_is_saved_on_request(run: RunMonitor) -> None:
    before = set(run.folder.glob("*_steps.zip"))
    run.save()
    wait_for(lambda: set(run.folder.glob("*_steps.zip")) > before)
    wait_for(lambda: "checkpoint" in event_kinds(run))


def test_there_is_one_learner_at_a_time(run: RunMonitor) -> None:
    with pytest.raises(RacerError, match="training already"):
        RunMonitor.continue_run(run.folder)
    with pytest.raises(RacerError, match="exists already"):
        RunMonitor.start(run.config, run.folder.parent)
