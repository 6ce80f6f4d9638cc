"""Charts show their content, read back from their pixels."""

import numpy as np
import pygame
import pytest

from racer_viewer.render.overlays.panel import blend
from racer_viewer.render.plots.axes import SECONDS, lap_limits
from racer_viewer.render.plots.chart import AREA_SHADE, RAW_SHADE, Chart
from racer_viewer.render.plots.drawing import draw_areas, draw_dots, draw_line, placed_marks
from racer_viewer.render.plots.hover import draw_hover, readings
from racer_viewer.render.plots.series import (
    ChartLine,
    ChartMark,
    Content,
    Dots,
    Stack,
    moving_average,
    running_best,
    stacked,
)
from racer_viewer.ui.theme import ORDINARY, Colour, Theme

SIZE = 420, 240
RED, BLUE, GREEN = (255, 0, 0), (0, 0, 255), (0, 255, 0)
PANEL = ORDINARY.panel[:3]
XS = np.linspace(0.0, 100.0, 101)


def picture(chart: Chart) -> np.ndarray:
    return pygame.surfarray.array3d(chart.picture).astype(int)


def has(pixels: np.ndarray, colour: Colour) -> np.ndarray:
    return np.asarray((pixels == colour).all(axis=-1))


def rows_of(chart: Chart, colour: Colour, steps: float) -> np.ndarray:
    """Pixel rows that have a colour, at some steps."""
    return np.flatnonzero(has(picture(chart)[round(chart.axes.x(steps))], colour))


def test_a_line_is_where_its_values_are(theme: Theme) -> None:
    chart = Chart(theme, SIZE, Content("A", lines=(ChartLine("a", RED, XS, 3.0 + 0.1 * XS),)), (0.0, 100.0), 0.0)
    for steps in (5.0, 50.0, 95.0):
        assert rows_of(chart, RED, steps).mean() == pytest.approx(chart.axes.y(3.0 + 0.1 * steps), abs=1.2)


def test_a_gap_stays_a_gap_unless_the_line_is_joined(theme: Theme) -> None:
    ys = np.where((XS > 40.0) & (XS < 60.0), np.nan, 5.0 + 0.01 * XS)
    for joined in (False, True):
        chart = Chart(theme, SIZE, Content("A", lines=(ChartLine("a", RED, XS, ys, joined=joined),)), (0.0, 100.0), 0.0)
        assert bool(len(rows_of(chart, RED, 50.0))) == joined
        assert len(rows_of(chart, RED, 20.0))
        assert len(rows_of(chart, RED, 80.0))


def test_a_value_alone_is_seen(theme: Theme) -> None:
    ys = np.full(101, np.nan)
    ys[50] = 1.0
    chart = Chart(theme, SIZE, Content("A", lines=(ChartLine("a", RED, XS, ys),)), (0.0, 100.0), 0.6)
    assert len(rows_of(chart, RED, 50.0)) >= 2
    first = Chart(theme, SIZE, Content("A", lines=(ChartLine("a", RED, XS[:1] + 1.0, XS[:1]),)), (0.0, 1.0))
    assert has(picture(first), RED).sum() >= 4


def test_nothing_of_a_line_is_outside_the_frame(theme: Theme) -> None:
    wild = np.where(XS % 2 == 0, 1e9, -1e9)
    content = Content("A", lines=(ChartLine("a", RED, XS, wild, False),), limits=lambda _: (0.0, 1.0))
    chart = Chart(theme, SIZE, content, (20.0, 80.0), 0.0)
    drawn = has(picture(chart), RED)
    frame = chart.axes.frame
    assert drawn[frame.left : frame.right, frame.top : frame.bottom].any()
    drawn[frame.left : frame.right, frame.top : frame.bottom] = False
    assert not drawn.any()


def test_an_average_is_bold_and_the_values_are_faint_behind_it(theme: Theme) -> None:
    ys = np.where(XS % 2 == 0, 1.0, 0.0)
    line = ChartLine("a", RED, XS, ys)
    chart = Chart(theme, SIZE, Content("A", lines=(line,)), (0.0, 100.0), 0.95)
    assert np.ptp(rows_of(chart, RED, 80.0)) < chart.axes.frame.height * 0.2
    behind = has(picture(chart), blend(PANEL, RED, RAW_SHADE))
    rows = np.flatnonzero(behind[round(chart.axes.x(60.0)) : round(chart.axes.x(90.0))].any(axis=0))
    assert np.ptp(rows) > chart.axes.frame.height * 0.8
    plain = Chart(theme, SIZE, Content("A", lines=(line,)), (0.0, 100.0), 0.0)
    assert not has(picture(plain), blend(PANEL, RED, RAW_SHADE)).any()


@pytest.mark.parametrize("weight", [0.0, 0.6, 0.99])
def test_the_moving_average_skips_what_is_missing(weight: float) -> None:
    values = np.random.default_rng(1).normal(5.0, 1.0, 300)
    values[[0, 7, 8, 200]] = np.nan
    mean = share = 0.0
    for value, average in zip(values, moving_average(values, weight), strict=True):
        if np.isnan(value):
            assert np.isnan(average)
            continue
        mean, share = weight * mean + (1.0 - weight) * value, weight * share + (1.0 - weight)
        assert average == pytest.approx(mean / share)


def test_stacked_areas_add_up(theme: Theme) -> None:
    parts = np.tile([3.0, 0.0, 2.0, -1.0, -0.5], (101, 1))
    colours = (RED, GREEN, BLUE, (250, 250, 0), (0, 250, 250))
    content = Content("A", stack=Stack(("a", "b", "c", "d", "e"), colours, XS, parts))
    chart = Chart(theme, SIZE, content, (0.0, 100.0), 0.5)
    shades = [blend(PANEL, colour, AREA_SHADE) for colour in colours]
    unit = chart.axes.y(0.0) - chart.axes.y(1.0)
    for part, shade in zip(parts[0], shades, strict=True):
        assert len(rows_of(chart, shade, 50.0)) == pytest.approx(abs(part) * unit, abs=3.0)
    zero = chart.axes.y(0.0)
    assert rows_of(chart, shades[0], 50.0).max() <= zero < rows_of(chart, shades[3], 50.0).min()
    assert rows_of(chart, shades[2], 50.0).min() == pytest.approx(chart.axes.y(5.0), abs=2.0)
    assert rows_of(chart, shades[4], 50.0).max() == pytest.approx(chart.axes.y(-1.5), abs=2.0)


def test_ends_of_a_stack_are_the_sums_of_its_parts() -> None:
    parts = np.random.default_rng(2).normal(0.0, 1.0, (50, 6))
    up, down = stacked(parts)
    np.testing.assert_allclose(up[:, -1] + down[:, -1], parts.sum(axis=1))
    assert (np.diff(up, axis=1) >= 0.0).all()
    assert (np.diff(down, axis=1) <= 0.0).all()


def test_a_stack_has_gaps_too(theme: Theme) -> None:
    parts = np.ones((101, 1))
    parts[40:60] = np.nan
    chart = Chart(theme, SIZE, Content("A", stack=Stack(("a",), (RED,), XS, parts)), (0.0, 100.0))
    shade = blend(PANEL, RED, AREA_SHADE)
    assert len(rows_of(chart, shade, 20.0))
    assert not len(rows_of(chart, shade, 50.0))


def lap_chart(theme: Theme, times: np.ndarray) -> Chart:
    content = Content("LAPS", SECONDS, dots=(Dots("lap", RED, XS[: len(times)], times),), limits=lap_limits)
    return Chart(theme, SIZE, content, (0.0, 100.0))


def test_one_slow_lap_is_an_arrow_and_leaves_the_others_their_room(theme: Theme) -> None:
    times = 7.0 + 0.5 * (XS % 2)
    calm = lap_chart(theme, times)
    times[50] = 60.0
    chart = lap_chart(theme, times)
    assert chart.axes.y(7.0) - chart.axes.y(7.5) > chart.axes.frame.height * 0.15
    x, frame = round(chart.axes.x(50.0)), chart.axes.frame

    def at_the_top(of: Chart) -> bool:
        area = picture(of)[x - 8 : x + 9, frame.top : frame.top + 4]
        return bool((area[..., 0] > 150).any())

    assert at_the_top(chart)
    assert not at_the_top(calm)
    [reading] = readings(chart, x, frame.top)
    assert reading.text == "1:00.00"


def test_many_dots_are_thinned_and_few_are_not() -> None:
    surface = pygame.Surface((400, 200), pygame.SRCALPHA, 32)
    random = np.random.default_rng(3)
    xs, ys = random.uniform(0.0, 400.0, 100_000), random.normal(100.0, 8.0, 100_000)
    assert 1000 < draw_dots(surface, RED, xs, ys, 2) < 10_000
    assert draw_dots(surface, RED, np.array([10.0, 50.0]), np.array([10.0, 50.0]), 2) == 2


def test_a_line_of_many_points_keeps_its_extremes() -> None:
    surface = pygame.Surface((200, 100), depth=32)
    xs, ys = np.linspace(0.0, 199.0, 100_000), np.full(100_000, 50.0)
    ys[50_000] = 5.0
    draw_line(surface, RED, xs, ys, 2.0)
    red = pygame.surfarray.array3d(surface)[:, :, 0]
    column = int(xs[50_000])
    assert red[column - 1 : column + 2, 5:50].max(axis=0).min() > 100
    assert red[20, 40] == 0


def test_the_best_so_far_only_falls_and_holds_to_the_end() -> None:
    xs, ys = running_best(np.arange(6.0), np.array([9.0, np.nan, 9.5, 8.0, 8.0, 8.5]), 7.0)
    assert xs.tolist() == [0.0, 3.0, 7.0]
    assert ys.tolist() == [9.0, 8.0, 8.0]


def test_the_mouse_finds_the_values_of_all_series(theme: Theme) -> None:
    gappy = np.where(XS == 30.0, np.nan, 2.0 * XS)
    best = running_best(XS, 50.0 - (XS // 20.0), 100.0)
    content = Content(
        "A",
        lines=(
            ChartLine("raw", RED, XS, XS, False),
            ChartLine("average", RED, XS, np.where(XS < 29.0, 0.0, 10.0)),
            ChartLine("gap", RED, XS, gappy),
            ChartLine("joined", RED, XS, gappy, joined=True),
            ChartLine("best", RED, *best, False, stepped=True),
            ChartLine("short", RED, XS[:20], XS[:20], False),
        ),
        dots=(Dots("dot", RED, np.array([20.0, 31.0, 90.0]), np.array([1.0, 2.0, 3.0])),),
        stack=Stack(("up", "none", "down"), (RED, GREEN, BLUE), XS, np.stack([XS, 0.0 * XS, -XS], axis=1)),
    )
    chart = Chart(theme, SIZE, content, (0.0, 100.0), 0.5)
    found = {reading.name: reading for reading in readings(chart, chart.axes.x(30.2), chart.axes.frame.top)}
    texts = {name: reading.text for name, reading in found.items()}
    assert texts == {
        "raw": "30.0", "average": "10.0", "gap": "–", "joined": "62.0", "best": "49.0", "short": "–", "dot": "2.00",
        "up": "30.0", "down": "−30.0",
    }  # fmt: skip
    assert found["average"].average == "7.50"
    assert found["raw"].point == pytest.approx((chart.axes.x(30.0), chart.axes.y(30.0)))


@pytest.mark.parametrize("mouse", [(80, 80), (470, 80), (80, 240), (470, 240), (265, 160)])
def test_the_box_with_the_values_stays_where_it_may_be(theme: Theme, mouse: tuple[int, int]) -> None:
    lines = tuple(ChartLine(f"a line with a long name, {number}", RED, XS, XS + number) for number in range(8))
    chart = Chart(theme, SIZE, Content("A", lines=lines), (0.0, 100.0))
    surface, within = pygame.Surface((600, 340), depth=32), pygame.Rect((60, 50), SIZE)
    draw_hover(surface, chart, within.topleft, mouse, within)
    pixels = pygame.surfarray.array3d(surface).astype(int)
    assert (pixels == ORDINARY.text).all(axis=2).any()
    pixels[within.left : within.right, within.top : within.bottom] = 0
    assert not pixels.any()


def test_marks_that_matter_have_the_room(theme: Theme) -> None:
    marks = (
        ChartMark(50.0, "checkpoint", "saved"), ChartMark(50.5, "weights", "changed"), ChartMark(49.5, "best", "6.60"),
        ChartMark(10.0, "best", "7.00"), ChartMark(90.0, "paused", "paused"), ChartMark(300.0, "best", "beyond"),
    )  # fmt: skip
    line = ChartLine("a", RED, XS, XS, False)
    chart = Chart(theme, SIZE, Content("A", lines=(line,), marks=marks), (0.0, 100.0))
    assert [mark.text for mark, _ in placed_marks(marks, chart.axes, 12.0)] == ["changed", "7.00"]
    lane = picture(chart)[:, chart.axes.frame.top - 8 : chart.axes.frame.top]
    columns = np.flatnonzero(has(lane, ORDINARY.accent).any(axis=1))
    assert columns.min() == pytest.approx(chart.axes.x(50.5), abs=1.0)


def test_an_empty_chart_says_so(theme: Theme) -> None:
    nothing = Chart(theme, SIZE, Content("LAP TIMES", empty="no laps yet"), (0.0, 1.0))
    frame = nothing.axes.frame
    letters = has(picture(nothing)[frame.left : frame.right, frame.top : frame.bottom], ORDINARY.faint)
    assert letters.any()
    assert np.flatnonzero(letters.any(axis=1)).mean() == pytest.approx(frame.width / 2, rel=0.2)
    missing = Content("A", lines=(ChartLine("a", RED, XS, np.full(101, np.nan)),))
    assert missing.is_empty


@pytest.mark.parametrize("size", [(1, 1), (30, 10), (60, 300), (300, 40)])
def test_a_chart_may_be_too_small_for_anything(theme: Theme, size: tuple[int, int]) -> None:
    content = Content(
        "TITLE", lines=(ChartLine("a", RED, XS, XS),), latest=[("1.00", RED)], marks=(ChartMark(5.0, "best", "x"),)
    )
    assert Chart(theme, size, content, (0.0, 100.0)).picture.get_size() == size


def test_an_area_without_values_is_empty_and_none_leaves_the_frame() -> None:
    surface = pygame.Surface((40, 100), depth=32)
    surface.set_clip((0, 20, 40, 60))
    missing = np.nan
    ends = np.array([[40.0, missing, 30.0], [40.0, missing, missing], [missing, missing, missing], [5.0, missing, 2.0]])
    draw_areas(surface, (RED, BLUE, GREEN), np.array([0, 10, 20, 30]), ends, base=60)
    pixels = pygame.surfarray.array3d(surface)
    rows = {
        colour: [np.flatnonzero(has(pixels[x], colour)).tolist() for x in (0, 10, 20, 30)] for colour in (RED, GREEN)
    }
    assert rows[RED] == [[*range(40, 60)], [*range(40, 60)], [], [*range(20, 60)]]
    assert rows[GREEN] == [[*range(30, 40)], [], [], []]
    assert not has(pixels, BLUE).any()
