"""The tick schedule of a game: an even rate, catching up, and skipped ticks."""

import pytest

from racer_env.games.worker import MAX_LAG, TickSchedule


def run(schedule: TickSchedule, until: float, cost: float = 0.0, now: float = 0.0) -> float:
    """Tick as a worker does, each tick taking `cost` seconds; return the time at the end."""
    while now < until:
        now = max(now, schedule.due)
        schedule.begin_tick(now)
        now += cost
    return now


def test_ticks_are_due_at_an_even_rate() -> None:
    schedule = TickSchedule(50.0, 0.0)
    run(schedule, 10.0)
    report = schedule.report(7, 10.0)
    assert report.game_id == 7
    assert schedule.ticks == pytest.approx(500, abs=1)
    assert report.rate == pytest.approx(50.0, rel=0.01)
    assert report.late_max == report.skipped == 0
    assert report.keeps_up


def test_a_short_delay_is_caught_up_on() -> None:
    schedule = TickSchedule(50.0, 0.0)
    now = run(schedule, 1.0)
    run(schedule, 3.0, now=now + 0.9 * MAX_LAG)
    assert schedule.skipped == 0
    assert schedule.ticks == pytest.approx(150, abs=1)
    assert schedule.report(0, 3.0).late_max == pytest.approx(90.0, abs=21.0)


def test_ticks_of_a_long_delay_are_skipped_and_counted() -> None:
    schedule = TickSchedule(50.0, 0.0)
    now = run(schedule, 1.0)
    schedule.begin_tick(now + 2.0)
    assert schedule.skipped == pytest.approx(100, abs=2)
    assert schedule.due == pytest.approx(now + 2.0, abs=schedule.period)


def test_the_rate_shows_that_the_machine_is_too_slow() -> None:
    schedule = TickSchedule(50.0, 0.0)
    now = run(schedule, 10.0, cost=0.04)
    report = schedule.report(0, now)
    assert report.rate == pytest.approx(25.0, rel=0.1)
    assert not report.keeps_up
    assert report.ticks + report.skipped == pytest.approx(500, abs=10)


def test_the_rate_covers_the_last_seconds() -> None:
    schedule = TickSchedule(50.0, 0.0)
    now = 0.0
    for second in range(1, 10):
        now = run(schedule, float(second), cost=0.1, now=now)
        slow = schedule.report(0, now)
    assert slow.rate < 15.0
    for second in range(10, 20):
        now = run(schedule, float(second), now=now)
        quick = schedule.report(0, now)
    assert quick.rate == pytest.approx(50.0, rel=0.05)
