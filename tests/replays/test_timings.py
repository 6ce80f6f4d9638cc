"""Times at any tick of a trace equal those of a stopwatch that has followed the car."""

import time

import pytest

from racer_env.engine import Start
from racer_viewer.replays import Trace, trace_replay
from racer_viewer.timing import Stopwatch, TraceTimings
from tests.replays.replay_drives import ring_run

COLUMNS = ("lap", "lap_ticks", "checkpoint", "finished_lap_ticks")


def clock(trace: Trace) -> Stopwatch:
    return Stopwatch(len(trace.track.gates))


@pytest.mark.parametrize("start", [Start(), Start(arc=(0.35, 0.35))])
def test_every_tick_has_the_times_that_were_shown_while_it_was_driven(start: Start) -> None:
    trace = trace_replay(ring_run(900, start=start))
    timings, followed = TraceTimings(trace.rows, trace.gate_rows, clock(trace)), clock(trace)
    assert len(trace.laps) >= 2
    for tick, row in enumerate(trace.rows):
        followed.tick(*(int(row[name]) for name in COLUMNS))
        assert timings.at(tick) == followed.timing(), tick


def test_any_tick_of_a_long_run_is_found_at_once() -> None:
    trace = trace_replay(ring_run(20_000))
    timings = TraceTimings(trace.rows, trace.gate_rows, clock(trace))
    start_time = time.perf_counter()
    for tick in range(0, trace.ticks, 10):
        timings.at(tick)
    assert time.perf_counter() - start_time < 1.0
