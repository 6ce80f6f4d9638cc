"""Demonstrations: what an agent would have seen and done in a replay, exactly as an environment steps it."""

from dataclasses import replace

import numpy as np
import pytest

from racer_env.engine import Simulation
from racer_viewer.replays import (
    ENGINE_VERSION,
    ReplayError,
    clean_laps,
    demonstrated_drive,
    demonstrated_lap,
    trace_replay,
)
from tests.replays.replay_drives import RING, ring_run, weaving_run


def test_a_drive_holds_what_a_simulation_of_its_actions_returns() -> None:
    replay = ring_run(300)
    drive = demonstrated_drive(trace_replay(replay))
    simulation = Simulation(RING.build(), 1, replay.config, start=replay.start)
    assert drive.steps == 300
    assert drive.source == "Anna on Ring"
    for step in range(drive.steps):
        assert np.array_equal(drive.observations[step], simulation.result.observations[0])
        result = simulation.step(replay.actions[step : step + 1])
        assert drive.rewards[step] == result.rewards[0]
        assert np.array_equal(drive.actions[step], replay.actions[step].astype(np.float32))
    assert np.array_equal(drive.observations[-1], simulation.result.observations[0])


def test_actions_beyond_the_limits_are_those_that_the_engine_drives() -> None:
    chance = np.random.default_rng(3)
    actions = chance.uniform(-2.0, 2.0, (100, 3)).astype(np.float32).astype(np.float64)
    wild = demonstrated_drive(trace_replay(replace(ring_run(100), actions=actions)))
    tame = demonstrated_drive(trace_replay(replace(ring_run(100), actions=wild.actions)))
    assert np.array_equal(wild.actions, np.clip(actions, (-1.0, 0.0, 0.0), 1.0))
    assert np.array_equal(wild.observations, tame.observations)
    assert np.array_equal(wild.rewards, tame.rewards)


def test_laps_are_the_steps_from_line_to_line() -> None:
    trace = trace_replay(ring_run())
    whole = demonstrated_drive(trace)
    assert len(clean_laps(trace)) >= 2
    for timed in clean_laps(trace):
        lap = demonstrated_lap(trace, timed)
        assert lap.steps == timed.ticks
        assert np.array_equal(lap.observations, whole.observations[timed.first : timed.last + 1])
        assert np.array_equal(lap.rewards, whole.rewards[timed.first : timed.last])


def test_a_lap_off_the_road_is_left_out() -> None:
    trace = trace_replay(weaving_run(900))
    faulty = [lap for lap in trace.laps if not lap.clean]
    assert faulty
    assert set(clean_laps(trace)) == set(trace.laps) - set(faulty)


def test_a_replay_without_a_clean_lap_is_refused() -> None:
    with pytest.raises(ReplayError, match="no finished lap"):
        clean_laps(trace_replay(ring_run(60)))
    crooked = next(run for run in map(weaving_run, range(200, 900, 50)) if run.laps)
    with pytest.raises(ReplayError, match=r"no clean lap to learn from: .* in sector"):
        clean_laps(trace_replay(crooked))


def test_a_replay_that_drives_differently_here_is_refused() -> None:
    with pytest.raises(ReplayError, match="lap times recorded"):
        clean_laps(trace_replay(replace(ring_run(), laps=(7,))))
    with pytest.raises(ReplayError, match="engine version"):
        clean_laps(trace_replay(replace(ring_run(), laps=(7,), engine_version=ENGINE_VERSION + 1)))
