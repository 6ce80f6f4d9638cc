"""Axes have round figures that people can read."""

import math

import numpy as np
import pytest

from racer_viewer.render.plots.axes import (
    PLAIN,
    SECONDS,
    SHARE,
    figure,
    figure_limits,
    lap_limits,
    quantity,
    rounded_limits,
    seconds,
    span_of,
    tick_step,
    ticks_within,
)


@pytest.mark.parametrize("most", [2, 3, 5, 9])
@pytest.mark.parametrize(
    ("low", "high"),
    [(6.62, 8.91), (-0.25, 0.2), (0.0, 1.0), (-5.0, 26.0), (0.0, 36_432.0), (1e-5, 3e-5), (-3.0, -1.0), (5.0, 5.0)],
)
def test_ticks_are_round_and_cover_the_data(low: float, high: float, most: int) -> None:
    first, last, step = rounded_limits(low, high, most)
    assert first <= low + 1e-6 * step
    assert last >= high - 1e-6 * step
    assert step / 10.0 ** math.floor(math.log10(step) + 1e-9) in (pytest.approx(1), pytest.approx(2), pytest.approx(5))
    ticks = ticks_within(first, last, step)
    assert len(ticks) >= 2
    assert all(round(tick / step) == pytest.approx(tick / step) for tick in ticks)
    assert min(abs(tick - low) for tick in ticks) <= step
    assert min(abs(tick - high) for tick in ticks) <= step


def test_an_axis_does_not_go_much_further_than_the_data() -> None:
    for low, high in ((-0.25, 0.2), (6.62, 8.91), (-5.0, 26.0)):
        first, last, _ = rounded_limits(low, high, 3)
        assert last - first < 1.4 * (high - low)


def test_there_are_no_more_ticks_than_there_is_room_for() -> None:
    for extent in (1.0, 7.0, 303_104.0, 4e6):
        assert extent / tick_step(extent, 6) <= 6.0 + 1e-6


@pytest.mark.parametrize(
    ("value", "resolution", "text"),
    [
        (0.0, 1.0, "0"),
        (200_000.0, 100_000.0, "200k"),
        (1_200_000.0, 200_000.0, "1.2M"),
        (2_000_000.0, 200_000.0, "2M"),
        (1_050_000.0, 50_000.0, "1.05M"),
        (7.5, 0.5, "7.5"),
        (7.0, 0.5, "7.0"),
        (-0.002, 0.002, "−0.002"),
        (2e-6, 1e-6, "2e-6"),
        (40.0, 20.0, "40"),
    ],
)
def test_amounts_are_short(value: float, resolution: float, text: str) -> None:
    assert quantity(value, resolution) == text


def test_figures_are_read_with_three_digits() -> None:
    assert [figure(value) for value in (25_168.0, 0.1424, -0.00168, 0.0, 7.0)] == [
        "25.2k", "0.142", "−0.00168", "0", "7.00",
    ]  # fmt: skip


def test_times_and_shares_are_written_as_people_say_them() -> None:
    assert [seconds(value) for value in (6.65, 59.999, 62.45)] == ["6.65", "1:00.00", "1:02.45"]
    assert SECONDS.tick(7.5, 0.5) == "7.5"
    assert SECONDS.tick(90.0, 30.0) == "1:30"
    assert SHARE.read(0.28125) == "28 %"
    assert SHARE.tick(0.4, 0.2) == "40 %"
    assert PLAIN.tick(30_000.0, 10_000.0) == "30k"


@pytest.mark.parametrize("others", [[7.0, 7.2], [7.0] * 500, list(np.linspace(6.6, 9.0, 90))])
def test_a_lap_of_a_minute_does_not_flatten_the_others(others: list[float]) -> None:
    low, high = lap_limits(np.array([*others, 60.0]))
    assert low == min(others)
    assert max(others) <= high < 12.0


def test_slow_laps_are_shown_while_all_are_slow() -> None:
    assert lap_limits(np.array([30.0, 24.0, 20.0])) == (20.0, 30.0)


def test_a_strange_figure_does_not_flatten_the_others() -> None:
    values = np.append(np.random.default_rng(0).normal(0.005, 0.001, 200), [0.4, -3.0])
    low, high = figure_limits(values)
    assert -0.01 < low <= np.sort(values)[1]
    assert np.sort(values)[-2] <= high < 0.02
    assert figure_limits(np.array([1.0, 2.0, 4.0])) == (1.0, 4.0)


def test_the_span_begins_at_nothing_unless_nothing_was_there() -> None:
    assert span_of() == (0.0, 1.0)
    assert span_of(np.array([8192.0, 303_104.0]), np.zeros(0)) == (0.0, 303_104.0)
    assert span_of(np.array([9e6, 9.5e6])) == (9e6, 9.5e6)
    assert span_of(np.array([8192.0])) == (0.0, 8192.0)
