"""Comparison of replays: gaps at the gates that both have crossed."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from racer_env.engine import Circuit, Start
from racer_viewer.replays import MAX_COMPARED, Comparison, ReplayError, Trace, common_track, trace_replay
from racer_viewer.replays.trace import WALL_HIT_GAP, ReplayTracer
from tests.replays.replay_drives import RING, ring_run


@cache
def fast() -> Trace:
    return trace_replay(ring_run())


@cache
def slow() -> Trace:
    return trace_replay(ring_run(throttle=0.5))


def gates_crossed(trace: Trace, tick: int) -> list[int]:
    """Return the ticks at which the car crossed a gate, found by a search over all rows."""
    column = trace.rows["checkpoint"].tolist()
    return [row for row in range(1, tick + 1) if column[row] != column[row - 1]]


def test_the_gap_is_measured_at_the_last_gate_that_both_crossed() -> None:
    comparison = Comparison([fast(), slow()])
    for tick in (200, 299, 300, 431, 512, 700):
        ours, theirs = gates_crossed(fast(), tick), gates_crossed(slow(), tick)
        last = min(len(ours), len(theirs)) - 1
        assert comparison.gaps(tick, 0) == (0.0, theirs[last] - ours[last])
        assert comparison.gaps(tick, 1) == (ours[last] - theirs[last], 0.0)
    assert comparison.gaps(700, 0)[1] > 0.0


def test_gaps_are_zero_before_the_first_gate() -> None:
    assert Comparison([fast(), slow()]).gaps(0, 1) == (0.0, 0.0)


def test_a_run_that_started_beyond_the_last_common_gate_has_no_gap_until_the_other_is_there() -> None:
    ahead = trace_replay(ring_run(700, start=Start(arc=(0.35, 0.35))))
    comparison = Comparison([fast(), ahead])
    assert math.isnan(comparison.gaps(0, 0)[1])
    column = ahead.rows["checkpoint"].tolist()
    gate = column[int(ahead.gate_rows[0])]
    here = next(row for row in fast().gate_rows.tolist() if fast().rows["checkpoint"][row] == gate)
    assert math.isnan(comparison.gaps(here - 1, 0)[1])
    assert comparison.gaps(here, 0)[1] == int(ahead.gate_rows[0]) - here
    assert comparison.standing(700) is None


def test_the_standing_is_that_of_the_last_lap_that_two_have_ended() -> None:
    comparison = Comparison([slow(), fast()])
    line = slow().laps[0].last
    assert comparison.standing(line - 1) is None
    standing = comparison.standing(line)
    assert standing is not None
    assert (standing.lap, standing.runs, standing.ticks) == (1, (1, 0), (fast().laps[0].last, line))
    assert comparison.standing(slow().laps[1].last).lap == 2  # type: ignore[union-attr]


def test_runs_on_different_circuits_cannot_be_compared() -> None:
    run = ring_run()
    longer = Circuit("Long ring", (*RING.control_points[:-1], (70.0, -45.0, 12.0)), gates=10, id="long")
    with pytest.raises(ReplayError, match=r"different circuits.*Anna drove on Ring, Bob on Long ring"):
        common_track([run, replace(run, circuit=longer, driver="Bob")])
    with pytest.raises(ReplayError, match="another circuit of this name"):
        common_track([run, replace(run, circuit=Circuit("Ring", RING.control_points, gates=12))])
    with pytest.raises(ReplayError, match=f"at most {MAX_COMPARED}"):
        common_track([run] * (MAX_COMPARED + 1))


def test_the_same_circuit_under_another_name_can_be_compared() -> None:
    run = ring_run()
    other = replace(run, circuit=Circuit("Mine", RING.control_points, gates=RING.gates))
    track = common_track([run, other])
    assert trace_replay(other, track).track is track


def test_a_replay_simulated_in_portions_is_bit_identical() -> None:
    tracing = ReplayTracer(ring_run())
    assert tracing.advance(1)
    while tracing.advance(97):
        assert tracing.tick < 700
    trace = tracing.trace()
    assert trace.rows.tobytes() == fast().rows.tobytes()
    assert np.array_equal(trace.observations, fast().observations)


def test_a_long_wall_contact_is_one_hit() -> None:
    rows = fast().rows.copy()
    rows["wall_contact"] = False
    for row in (0, 1, 2, 2 + WALL_HIT_GAP, 200, 201 + WALL_HIT_GAP):
        rows["wall_contact"][row] = True
    assert Trace(fast().replay, fast().track, rows, fast().observations).wall_rows.tolist() == [
        0,
        200,
        201 + WALL_HIT_GAP,
    ]
    rows["wall_contact"] = False
    assert not len(Trace(fast().replay, fast().track, rows, fast().observations).wall_rows)
