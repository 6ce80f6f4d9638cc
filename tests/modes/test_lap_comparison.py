"""Laps compared in the window: which laps, where they differ, and what is below the mouse."""

import numpy as np
import pytest

from racer_viewer.modes.help import ExplanationScreen
from racer_viewer.modes.lap_comparison import LapComparisonScreen
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.replays import Trace, trace_replay
from racer_viewer.replays.lap_profile import LapComparison, lap_profile
from tests.modes.person import Person
from tests.modes.test_replays_on_screen import seen, traced
from tests.replays.replay_drives import ring_run


def comparing(person: Person, *traces: Trace) -> LapComparisonScreen:
    """Open replays and compare their laps with the key for it."""
    seen(person, *traces)
    person.press("x")
    return person.top(LapComparisonScreen)


def test_the_best_laps_of_two_drivers_are_compared(person: Person) -> None:
    screen = comparing(person, traced(), traced(throttle=0.8, driver="Bert"))
    assert [screen.name_of(number).split(",")[0] for number in screen.chosen] == ["Anna", "Bert"]
    first, second = (screen.laps[number][1] for number in screen.chosen)
    assert screen.comparison.gaps[0] == pytest.approx(0.0, abs=0.02)
    assert screen.comparison.gaps[-1] == pytest.approx((second.ticks - first.ticks) / 60.0, abs=0.02)


def test_the_places_are_where_time_is_lost(person: Person) -> None:
    screen = comparing(person, traced(), traced(throttle=0.8, driver="Bert"))
    comparison = screen.comparison
    largest = comparison.differences[0]
    begin, end = (comparison.first.index_at(distance) for distance in (largest.start, largest.end))
    assert largest.seconds == pytest.approx(comparison.gaps[end] - comparison.gaps[begin])
    assert largest.seconds > 0.0, "less throttle loses time"
    steps = comparison.gaps[end - begin :] - comparison.gaps[: begin - end]
    assert abs(largest.seconds) == pytest.approx(np.abs(steps).max())
    person.press("down", "down")
    assert screen.list.item is not None
    assert screen.list.item.hint.startswith("Against Anna: Bert +")
    assert screen.distance == largest.middle


def test_any_two_laps_can_be_chosen_but_not_one_twice(person: Person) -> None:
    screen = comparing(person, traced(), traced(throttle=0.8, driver="Bert"))
    pairs = set()
    for _ in range(2 * len(screen.laps)):
        person.press("right")
        assert screen.chosen[0] != screen.chosen[1]
        pairs.add(tuple(screen.chosen))
    assert len(pairs) == len(screen.laps) - 1


def test_two_laps_of_one_drive_are_compared(person: Person) -> None:
    screen = comparing(person, trace_replay(ring_run()))
    assert screen.chosen[0] != screen.chosen[1]
    assert {number for number, _ in screen.laps} == {0}


def test_the_charts_show_the_values_below_the_mouse_and_explain_themselves(person: Person) -> None:
    screen = comparing(person, traced(), traced(throttle=0.8, driver="Bert"))
    before, chosen = person.picture().copy(), screen.distance
    width, height = before.get_size()
    person.point(round(width * 0.75), round(height * 0.25))
    assert chosen != screen.distance
    assert 0.0 < screen.distance < screen.comparison.first.distances[-1]
    assert person.picture().get_buffer().raw != before.get_buffer().raw
    person.write("?")
    assert len(person.top(ExplanationScreen).explanations_shown) == 5


def test_one_lap_alone_is_not_compared(person: Person) -> None:
    seen(person, trace_replay(ring_run(300)))
    person.press("x")
    person.top(ReplayScreen)
    assert "Two whole laps" in person.app.context.notice


def test_a_lap_does_not_differ_from_itself() -> None:
    trace = trace_replay(ring_run())
    lap = lap_profile(trace, trace.laps[1])
    comparison = LapComparison(lap, lap)
    assert comparison.differences == ()
    assert not comparison.apart.any()
    assert lap.times[-1] == pytest.approx(lap.seconds, abs=0.02)
