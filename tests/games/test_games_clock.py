"""Ticks come at an even rate; what cannot be made up for is skipped and counted."""

import pytest

from racer_env.games.worker import CATCH_UP, TickClock


def run(clock: TickClock, until: float, cost: float = 0.0, now: float = 0.0) -> float:
    """Tick as a worker does, each tick costing so many seconds; returns when it is."""
    while now < until:
        now = max(now, clock.due)
        clock.begin_tick(now)
        now += cost
    return now


def test_ticks_are_due_at_an_even_rate() -> None:
    clock = TickClock(50.0, 0.0)
    run(clock, 10.0)
    report = clock.report(7, 10.0)
    assert report.game_id == 7
    assert clock.ticks == pytest.approx(500, abs=1)
    assert report.rate == pytest.approx(50.0, rel=0.01)
    assert report.late_max == report.skipped == 0
    assert report.keeps_up


def test_a_short_delay_is_made_up_for() -> None:
    clock = TickClock(50.0, 0.0)
    now = run(clock, 1.0)
    run(clock, 3.0, now=now + 0.9 * CATCH_UP)
    assert clock.skipped == 0
    assert clock.ticks == pytest.approx(150, abs=1)
    assert clock.report(0, 3.0).late_max == pytest.approx(90.0, abs=21.0)


def test_of_a_long_delay_ticks_are_skipped_and_counted() -> None:
    clock = TickClock(50.0, 0.0)
    now = run(clock, 1.0)
    clock.begin_tick(now + 2.0)
    assert clock.skipped == pytest.approx(100, abs=2)
    assert clock.due == pytest.approx(now + 2.0, abs=clock.period)


def test_a_machine_that_is_too_slow_is_told_by_how_much() -> None:
    clock = TickClock(50.0, 0.0)
    now = run(clock, 10.0, cost=0.04)
    report = clock.report(0, now)
    assert report.rate == pytest.approx(25.0, rel=0.1)
    assert not report.keeps_up
    assert report.ticks + report.skipped == pytest.approx(500, abs=10)


def test_the_rate_is_that_of_the_last_seconds() -> None:
    clock = TickClock(50.0, 0.0)
    now = 0.0
    for second in range(1, 10):
        now = run(clock, float(second), cost=0.1, now=now)
        slow = clock.report(0, now)
    assert slow.rate < 15.0
    for second in range(10, 20):
        now = run(clock, float(second), now=now)
        quick = clock.report(0, now)
    assert quick.rate == pytest.approx(50.0, rel=0.05)
