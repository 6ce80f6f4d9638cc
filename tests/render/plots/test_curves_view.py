"""All charts of runs: which there are, where, when they are drawn anew, and what the mouse does."""

import dataclasses
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pygame
import pytest

from racer_env.engine import circuit_name
from racer_viewer.render.plots import CHARTS, CurvesView, charts_of
from racer_viewer.render.plots.curves_view import MIN_HEIGHT, MIN_WIDTH, grid
from racer_viewer.render.plots.figures import COMPONENT_KEYS, content_of, sector_medians, span
from racer_viewer.run_history import RunHistory
from racer_viewer.ui.theme import COLOUR_BLIND, ORDINARY, Theme, fitting_scale

MakeRun = Callable[..., RunHistory]
BEHIND = (255, 0, 255)
SIZES = [(380, 250), (800, 500), (1280, 720), (2560, 1440)]


def board(size: tuple[int, int]) -> pygame.Surface:
    surface = pygame.Surface(size, depth=32)
    surface.fill(BEHIND)
    return surface


def pixels(surface: pygame.Surface) -> np.ndarray:
    return pygame.surfarray.array3d(surface).astype(int)


def places(view: CurvesView, size: tuple[int, int]) -> list[str]:
    """Names of the charts that a mouse finds anywhere."""
    found = [view.name_at(x, y) for y in range(0, size[1], 20) for x in range(0, size[0], 20)]
    return list(dict.fromkeys(name for name in found if name))


@pytest.mark.parametrize(("size", "count"), [((380, 250), 2), ((800, 500), 9), ((1280, 720), 9), ((2560, 1440), 9)])
def test_as_many_charts_as_can_be_read_are_shown(run_of: MakeRun, size: tuple[int, int], count: int) -> None:
    scale = 1.0 if size == (380, 250) else fitting_scale(size)
    view = CurvesView(Theme(scale), patient=True)
    surface = board(size)
    view.draw(surface, surface.get_rect(), [run_of()])
    shown = places(view, size)
    assert len(shown) == count
    assert shown[:2] == ["reward", "laps"]


@pytest.mark.parametrize("count", range(1, 14))
def test_places_are_within_the_area_and_apart_from_each_other(count: int) -> None:
    for size in SIZES:
        area = pygame.Rect((13, 7), size)
        found = grid(area, count, 6, 1.0)
        assert all(area.contains(place) for place in found)
        assert all(place.inflate(11, 11).collidelist(found[:number]) < 0 for number, place in enumerate(found))
        assert found[0].unionall(found[1:]) == area
        if len(found) > 1:
            assert min(place.width for place in found) >= MIN_WIDTH - 1
            assert min(place.height for place in found) >= MIN_HEIGHT - 1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("number", [1, 3])
def test_nothing_is_drawn_outside_the_rectangle(run_of: MakeRun, size: tuple[int, int], number: int) -> None:
    runs = [run_of(name=f"a run with quite a long name, number {each}") for each in range(number)]
    surface = board((size[0] + 60, size[1] + 60))
    rect = pygame.Rect((30, 30), size)
    view = CurvesView(Theme(1.0), patient=True)
    for hover in ((32, 100), (rect.right - 20, rect.bottom - 50), (rect.centerx, 40 + size[1] // 4)):
        view.draw(surface, rect, runs, hover, at=3e5)
    picture = pixels(surface)
    picture[rect.left : rect.right, rect.top : rect.bottom] = BEHIND
    assert (picture == BEHIND).all()
    assert surface.get_clip() == surface.get_rect()


def test_charts_are_drawn_anew_only_when_something_changed(theme: Theme, run_of: MakeRun) -> None:
    surface, view = board((1280, 720)), CurvesView(theme, patient=True)
    rect, runs = surface.get_rect(), [run_of()]

    def drawn(hover: tuple[int, int] | None = None, smoothing: float = 0.6, at: float | None = None) -> int:
        before = view.redraws
        view.draw(surface, rect, runs, hover, smoothing, at)
        return view.redraws - before

    assert drawn() == 9
    assert drawn() == drawn(hover=(200, 100)) == drawn(at=1000.0) == 0
    assert drawn(smoothing=0.9) == 9
    assert drawn() == 9
    runs[0] = dataclasses.replace(runs[0])
    assert drawn() == 9
    rect = pygame.Rect(0, 0, 1200, 720)
    assert drawn() == 9
    view.focus = "laps"
    assert drawn() == 1
    view.focus = None
    assert drawn() == 0


def drawn_whole(view: CurvesView, rect: pygame.Rect, runs: list[RunHistory]) -> int:
    """Count the parts drawn in the time after a frame."""
    view.draw(board(rect.size), rect, runs)
    parts = 0
    while view.draw_ahead():
        parts += 1
    return parts


def test_a_chart_that_was_never_drawn_is_drawn_in_a_frame_and_others_part_by_part(
    theme: Theme, run_of: MakeRun
) -> None:
    view, rect, runs = CurvesView(theme), pygame.Rect(0, 0, 1280, 720), [run_of()]
    for frame in range(1, 12):
        view.draw(board(rect.size), rect, runs)
        assert view.redraws == min(9, frame)
    runs, frames = [run_of(70)], 0
    while view.redraws < 18:
        redraws, frames = view.redraws, frames + 1
        view.draw(board(rect.size), rect, runs)
        assert view.redraws - redraws <= 1
        assert frames < 200
    assert frames > 3 * 9, "a frame has no time for a whole chart"
    quick, patient = board(rect.size), board(rect.size)
    view.draw(quick, rect, runs)
    CurvesView(theme, patient=True).draw(patient, rect, runs)
    np.testing.assert_array_equal(pixels(quick), pixels(patient))


def test_a_frame_draws_nothing_of_a_chart_when_there_was_time_after_the_one_before(
    theme: Theme, run_of: MakeRun
) -> None:
    view, rect, runs = CurvesView(theme), pygame.Rect(0, 0, 1280, 720), [run_of()]
    drawn_whole(view, rect, runs)
    parts = drawn_whole(view, rect, [run_of(70)])
    runs = [run_of(80)]
    view.draw(board(rect.size), rect, runs)
    for _ in range(parts):
        assert view.draw_ahead()
        view.draw(board(rect.size), rect, runs)
    assert view.redraws == 27
    assert not view.draw_ahead()


def test_an_old_picture_is_shown_until_the_new_one_is_whole(theme: Theme, run_of: MakeRun) -> None:
    view, rect, other = CurvesView(theme), pygame.Rect(0, 0, 1280, 720), [run_of(90, 10)]

    def seen() -> np.ndarray:
        surface = board(rect.size)
        view.draw(surface, rect, other)
        return pixels(surface)

    drawn_whole(view, rect, [run_of()])
    before = after = seen()
    while view.redraws == 9:
        np.testing.assert_array_equal(before, after)
        view.draw_ahead()
        after = seen()
    changed = (before != after).any(axis=(1, 2))
    assert changed.any()
    assert not changed[500:].any()


def test_a_pixel_is_a_moment(theme: Theme, run_of: MakeRun) -> None:
    run = run_of()
    view, surface = CurvesView(theme, patient=True), board((1280, 720))
    assert view.chart_at(100, 100) is None
    view.draw(surface, pygame.Rect(40, 20, 1200, 680), [run])
    steps = [view.chart_at(x, 120) for x in range(110, 400, 20)]
    assert all(a is not None and b is not None and a < b for a, b in pairwise(steps))
    assert view.chart_at(42, 120) == 0.0
    assert view.chart_at(5, 5) is None
    for wanted in (100_000.0, 400_000.0):
        view.draw(surface, pygame.Rect(40, 20, 1200, 680), [run], at=wanted)
        white = np.flatnonzero((pixels(surface)[:, 120] == ORDINARY.text).all(axis=1))
        near = [view.chart_at(int(x), 120) for x in white]
        assert any(each == pytest.approx(wanted, rel=0.01) for each in near)


@pytest.mark.parametrize("what", ["at", "hover"])
def test_a_moment_is_marked_in_all_charts(theme: Theme, run_of: MakeRun, what: str) -> None:
    run, rect = run_of(), pygame.Rect(0, 0, 1280, 720)
    view = CurvesView(theme, patient=True)
    plain, marked = board(rect.size), board(rect.size)
    view.draw(plain, rect, [run])
    view.draw(marked, rect, [run], **({"at": 2e5} if what == "at" else {"hover": (200, 100)}))
    changed = (pixels(plain) != pixels(marked)).any(axis=2)
    for row in range(3):
        for column in range(3):
            middle = changed[column * 427 : column * 427 + 426, row * 240 + 60 : row * 240 + 190]
            assert (middle.sum(axis=1) > 100).any()


def test_one_chart_can_have_all_the_room(theme: Theme, run_of: MakeRun) -> None:
    view, surface = CurvesView(theme, patient=True), board((800, 500))
    for name in CHARTS:
        view.focus = name
        view.draw(surface, surface.get_rect(), [run_of()], hover=(400, 250))
        assert places(view, (800, 500)) == [name]
        assert view.name_at(795, 495) == name


def test_a_run_of_sac_has_its_own_figures(run_of: MakeRun) -> None:
    ppo = run_of()
    others = ("train/policy_gradient_loss", "train/entropy_loss", "train/approx_kl", "train/explained_variance")
    figures = {key: value for key, value in ppo.values.items() if key not in others}
    losses = {key: np.ones(60) for key in ("train/actor_loss", "train/critic_loss", "train/ent_coef")}
    sac = dataclasses.replace(ppo, values=figures | losses)
    assert charts_of([RunHistory()]) == charts_of([ppo])
    assert set(charts_of([ppo])) - set(charts_of([sac])) == {"entropy", "loss", "kl", "explained"}
    assert set(charts_of([sac])) - set(charts_of([ppo])) == {"actor", "critic", "temperature"}
    assert set(charts_of([ppo, sac])) == set(charts_of([ppo])) | set(charts_of([sac]))


def test_the_reward_is_stacked_for_one_run_and_a_line_for_each_of_several(run_of: MakeRun) -> None:
    run = run_of()
    alone = content_of("reward", [run], ORDINARY)
    assert alone.stack is not None
    total = sum(run.values[key] for key in COMPONENT_KEYS) * 60.0
    np.testing.assert_allclose(alone.lines[0].ys, total)
    np.testing.assert_allclose(alone.stack.parts.sum(axis=1), total)
    assert [name for name, _ in alone.legend] == ["progress", "wall", "off track"]
    several = content_of("reward", [run, run_of(name="other")], COLOUR_BLIND)
    assert several.stack is None
    assert [(line.name, line.colour) for line in several.lines] == [
        ("run", COLOUR_BLIND.cars[0]), ("other", COLOUR_BLIND.cars[1]),
    ]  # fmt: skip


def test_every_lap_is_a_dot_and_the_best_a_line(run_of: MakeRun) -> None:
    run = run_of()
    content = content_of("laps", [run], ORDINARY)
    np.testing.assert_array_equal(content.dots[0].ys, run.laps[:, 1])
    assert content.lines[0].ys[-1] == run.laps[:, 1].min()
    assert content.lines[0].xs[-1] == span([run])[1]
    assert [text for text, _ in content.latest][1] == f"fastest {run.laps[:, 1].min():.2f} s"


def test_a_run_without_laps_shows_those_of_its_figures(run_of: MakeRun) -> None:
    best = np.where(np.arange(60) % 3 == 0, 8.0 - np.arange(60) * 0.01, np.nan)
    run = run_of(60, 0, values={"racer/best_lap_time_sec": best})
    content = content_of("laps", [run], ORDINARY)
    np.testing.assert_array_equal(content.dots[0].ys, best[::3])
    assert content_of("sectors", [run], ORDINARY).is_empty


def test_sectors_are_medians_of_laps_that_follow_each_other() -> None:
    rows = np.column_stack([np.arange(1000.0), *(np.full(1000, each) for each in (2.0, 3.0, 4.0))])
    rows[::20, 1] = 50.0
    rows[5, 2] = np.nan
    steps, medians = sector_medians(rows)
    assert (medians == (2.0, 3.0, 4.0)).all()
    assert steps[-1] == 999.0
    assert 40 <= len(steps) <= 120
    few, times = sector_medians(rows[1:3])
    assert few.tolist() == [1.0, 2.0]
    assert times.tolist() == [[2.0, 3.0, 4.0]] * 2
    assert [each.shape for each in sector_medians(np.zeros((0, 4)))] == [(0,), (0, 3)]


def test_sectors_of_laps_that_were_driven_in_part_count() -> None:
    rows = np.column_stack([np.arange(240.0), *(np.full(240, each) for each in (2.0, 3.0, 4.0))])
    rows[::2, 1] = np.nan
    rows[1::2, 3] = np.nan
    rows[:60, 2] = np.nan
    steps, medians = sector_medians(rows)
    assert (medians[:, [0, 2]] == (2.0, 4.0)).all()
    assert np.isnan(medians[steps < 59, 1]).all()
    assert (medians[steps > 80, 1] == 3.0).all()


def test_times_are_those_of_one_circuit(theme: Theme, run_of: MakeRun) -> None:
    run = run_of()
    numbers = np.arange(300) % 2
    many = dataclasses.replace(run, circuits=("track-01", "track-02"), lap_circuits=numbers, sector_circuits=numbers)
    for number, circuit in enumerate(many.circuits):
        content = content_of("laps", [many], ORDINARY, circuit)
        assert content.title == f"LAP TIMES ON {circuit_name(circuit).upper()}"
        np.testing.assert_array_equal(content.dots[0].ys, run.laps[number::2, 1])
    assert content_of("laps", [run], ORDINARY, "track-02").title == "LAP TIMES"
    assert content_of("sectors", [many], ORDINARY, "track-03").is_empty
    view, surface = CurvesView(theme, patient=True), board((1280, 720))
    for circuit in many.circuits:
        view.draw(surface, surface.get_rect(), [many], circuit=circuit)
    assert view.redraws == 18


@pytest.mark.parametrize("updates", [0, 1, 2])
@pytest.mark.parametrize("size", SIZES[:3])
def test_the_very_beginning_can_be_drawn(
    theme: Theme, run_of: MakeRun, recwarn: pytest.WarningsRecorder, updates: int, size: tuple[int, int]
) -> None:
    run = run_of(updates, 0, events=())
    surface, view = board(size), CurvesView(theme, patient=True)
    for runs in ([], [RunHistory()], [run], [run, RunHistory(), run]):
        view.draw(surface, surface.get_rect(), runs, hover=(100, 70), at=0.0)
    assert not len(recwarn)


def test_no_laps_yet_is_said(run_of: MakeRun) -> None:
    for chart, said in (("laps", "no laps yet"), ("sectors", "no sector times yet"), ("kl", "no data yet")):
        content = content_of(chart, [RunHistory()], ORDINARY)
        assert content.is_empty
        assert content.empty == said


def test_a_figure_of_some_updates_is_a_line_nevertheless(theme: Theme, run_of: MakeRun) -> None:
    view, surface = CurvesView(theme, patient=True), board((600, 300))
    view.focus = "completion"
    view.draw(surface, surface.get_rect(), [run_of(events=())])
    inside = pixels(surface)[80:560, 40:260]
    assert (inside == ORDINARY.cars[0]).all(axis=2).any(axis=1).mean() > 0.8


def test_figures_that_are_not_finite_are_missing(theme: Theme, run_of: MakeRun) -> None:
    variance = np.full(60, 0.5)
    variance[[3, 4]] = -np.inf, np.nan
    content = content_of("explained", [run_of(values={"train/explained_variance": variance})], ORDINARY)
    assert np.isnan(content.lines[0].ys[[3, 4]]).all()
    assert content.latest[0][0] == "0.500"


@pytest.mark.parametrize("rect", [(0, 0, 0, 0), (0, 0, 3, 3), (10, 10, 40, 400), (700, 400, 500, 500), (900, 0, 9, 9)])
def test_a_rectangle_may_be_tiny_or_partly_outside(
    theme: Theme, run_of: MakeRun, rect: tuple[int, int, int, int]
) -> None:
    surface = board((800, 500))
    for runs in ([run_of()], [run_of(), run_of(name="b")]):
        CurvesView(theme, patient=True).draw(surface, pygame.Rect(rect), runs, hover=(rect[0] + 1, rect[1] + 1))
