"""The fixed-step clock, with a fake time source."""

import pytest

from racer_viewer.clock import FixedStepClock


class FakeTime:
    """A time source that only tests and sleeps move.

    oversleep: added to every sleep [s].
    """

    def __init__(self, oversleep: float = 0.0) -> None:
        self.now = 100.0
        self.slept: list[float] = []
        self._oversleep = oversleep

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds + self._oversleep

    def clock(self, step: float, max_lag: float) -> FixedStepClock:
        return FixedStepClock(step, max_lag, lambda: self.now, self.sleep)


def steps_taken(clock: FixedStepClock) -> int:
    count = 0
    while clock.take_step():
        count += 1
    return count


def test_time_becomes_whole_steps_and_the_rest_is_carried_over() -> None:
    clock = FakeTime().clock(0.25, 10.0)
    clock.advance(0.625)
    assert steps_taken(clock) == 2
    assert clock.fraction == 0.5
    assert clock.seconds_left == 0.125
    clock.advance(0.125)
    assert steps_taken(clock) == 1
    assert clock.fraction == 0.0


def test_frames_of_one_step_each_give_exactly_one_step() -> None:
    clock = FakeTime().clock(1.0 / 60.0, 0.25)
    for _ in range(1000):
        clock.advance(1.0 / 60.0)
        assert steps_taken(clock) == 1


def test_a_long_pause_is_capped() -> None:
    clock = FakeTime().clock(0.125, 0.5)
    clock.advance(3600.0)
    assert steps_taken(clock) == 4


def test_update_reads_the_time_source() -> None:
    fake = FakeTime()
    clock = fake.clock(0.25, 10.0)
    clock.update()
    assert not clock.take_step()
    fake.now += 0.5
    clock.update()
    clock.update()
    assert steps_taken(clock) == 2


def test_waiting_keeps_an_even_rate_though_each_sleep_is_too_long() -> None:
    fake = FakeTime(oversleep=0.0625)
    clock = fake.clock(0.25, 0.5)
    for frame in range(1, 9):
        clock.wait()
        assert fake.now == pytest.approx(100.0 + 0.25 * frame + 0.0625)
    assert fake.slept == [0.25] + [0.1875] * 7


def test_waiting_does_not_sleep_when_a_step_is_overdue_and_makes_up_for_one_only() -> None:
    fake = FakeTime()
    clock = fake.clock(0.25, 0.5)
    fake.now += 5.0
    clock.wait()
    clock.wait()
    assert fake.slept == []
    clock.wait()
    assert fake.slept == [0.25]


def test_a_pacing_clock_has_the_length_of_a_frame_as_its_step() -> None:
    clock = FixedStepClock.pacing(50.0)
    assert (clock.step, clock.max_lag) == (0.02, 0.04)
