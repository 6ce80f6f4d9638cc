"""Panels show the values of the snapshot, read back from their pixels."""

import dataclasses
import itertools
import math
import time
from collections.abc import Callable

import numpy as np
import pygame
import pytest

from racer_env.engine import ANYWHERE, Driver, Simulation, Track, build_track, load_circuit
from racer_env.engine.car import DT, MASS
from racer_viewer.render.overlays import OVERLAYS, Overlays
from racer_viewer.render.overlays.agent import AgentPanel, shares
from racer_viewer.render.overlays.circuit_map import CircuitMap
from racer_viewer.render.overlays.inputs import InputsPanel, SpeedPanel
from racer_viewer.render.overlays.panel import History, TextPainter
from racer_viewer.render.overlays.physics import FORCE_REACH, PhysicsPanel, forces_on
from racer_viewer.render.overlays.reward import RewardPanel
from racer_viewer.render.overlays.timing import GapsPanel, TimingPanel, nearest
from racer_viewer.snapshot import CarStyle, PolicyInsight, Snapshot
from racer_viewer.timing import Sector, Timing
from racer_viewer.ui.theme import COLOUR_BLIND, ORDINARY, Theme

MakeSnapshot = Callable[..., Snapshot]
Show = Callable[..., np.ndarray]
Length = Callable[..., int]
GOOD, BAD, ACCENT = ORDINARY.good, ORDINARY.bad, ORDINARY.accent


def count(picture: np.ndarray, colour: tuple[int, int, int]) -> int:
    return int((picture == colour).all(axis=2).sum())


def test_the_speedometer_is_lit_as_far_as_the_speed(
    snapshot_of: MakeSnapshot, painter: TextPainter, show: Show
) -> None:
    for compact in (False, True):
        panel = SpeedPanel(painter, compact)
        for speed in (0.0, 33.0, 80.0, 160.0):
            line = show(panel, snapshot_of(speed=speed), units="km/h")[:, panel.ramp.bottom - 2]
            lit = np.flatnonzero((line == ACCENT).all(axis=1))
            reached = lit.max() + 1 - panel.ramp.left if len(lit) else 0
            assert reached == pytest.approx(panel.ramp.width * speed / 160.0, abs=3.5)


def test_speeds_are_given_in_the_units_that_are_asked_for(
    snapshot_of: MakeSnapshot, painter: TextPainter, show: Show
) -> None:
    panel = SpeedPanel(painter, False)
    at_50, at_180 = show(panel, snapshot_of(speed=50.0), units="km/h"), show(panel, snapshot_of(speed=180.0))
    digits = slice(0, panel.ramp.left)
    np.testing.assert_array_equal(at_50[digits], at_180[digits])
    with pytest.raises(KeyError):
        show(panel, snapshot_of(), units="knots")


@pytest.mark.parametrize(("steer", "throttle", "brake"), [(0.6, 0.25, 0.9), (-0.35, 1.0, 0.5), (0.0, 0.0, 0.0)])
def test_input_bars_are_as_long_as_what_the_car_does(
    steer: float,
    throttle: float,
    brake: float,
    snapshot_of: MakeSnapshot,
    painter: TextPainter,
    show: Show,
    length: Length,
) -> None:
    panel = InputsPanel(painter, True)
    end_marks = [math.copysign(1.0, -steer), 0.0, 0.0]
    picture = show(panel, snapshot_of(steer=steer, throttle=throttle, brake=brake, action=end_marks))
    widths = [panel.bars[0].width / 2 * abs(steer), panel.bars[1].width * throttle, panel.bars[2].width * brake]
    for bar, colour, width in zip(panel.bars, (ACCENT, GOOD, BAD), widths, strict=True):
        assert length(picture, bar, colour) == pytest.approx(width, abs=3.0)
    first = panel.bars[0]
    right = pygame.Rect(first.centerx + 1, first.top, first.width // 2 - 1, first.height)
    assert (length(picture, right, ACCENT) > 0) == (steer > 0.0)


@pytest.mark.parametrize("asked", [-1.0, -0.5, 0.0, 0.75])
def test_a_hollow_mark_is_where_the_driver_wants_the_input(
    asked: float, snapshot_of: MakeSnapshot, painter: TextPainter, show: Show
) -> None:
    panel = InputsPanel(painter, True)
    bar = panel.bars[0]
    picture = show(panel, snapshot_of(action=[asked, 1.0, 1.0]))
    above = picture[bar.left - 4 : bar.right + 4, bar.top - 2]
    mark = np.flatnonzero((above == ORDINARY.text).all(axis=1)) - 4
    assert mark.mean() == pytest.approx(bar.width * (asked + 1.0) / 2.0, abs=1.0)
    assert len(mark) == 5


def test_traces_show_the_last_two_seconds(snapshot_of: MakeSnapshot, painter: TextPainter, show: Show) -> None:
    panel, history = InputsPanel(painter, False), History()
    for step in range(120):
        history.tick(snapshot_of(step_count=step, throttle=1.0 if step >= 60 else 0.3))
    picture = show(panel, snapshot_of(step_count=119), history)
    below = picture[:, panel.bars[2].bottom + 6 :]
    rows = [np.flatnonzero((below[x] == GOOD).all(axis=1)).mean() for x in (panel.left + 20, panel.right - 20)]
    assert rows[1] < rows[0] - 10


@pytest.mark.parametrize("compact", [False, True])
def test_reward_bars_are_as_long_as_the_parts_of_this_tick(
    compact: bool, snapshot_of: MakeSnapshot, painter: TextPainter, show: Show, length: Length
) -> None:
    panel = RewardPanel(painter, compact)
    parts = [0.0012, 0.0004, -0.002, -0.001, -0.0003, 0.0]
    picture = show(panel, snapshot_of(components=parts))
    assert panel.axis.reach == pytest.approx(0.005), "what is negative sums up to 0.0033"
    for bar, part, colour in zip(panel.bars, (*parts, sum(parts)), (*ORDINARY.series, ORDINARY.text), strict=True):
        half = bar.width / 2
        assert length(picture, bar, colour) == pytest.approx(half * abs(part) / 0.005, abs=1.0)
        left = pygame.Rect(bar.left, bar.top, bar.width // 2 - 1, bar.height)
        assert (length(picture, left, colour) > 0) == (part < 0.0)


def test_the_reward_graph_stacks_gains_upwards_and_losses_downwards(
    snapshot_of: MakeSnapshot, painter: TextPainter, show: Show
) -> None:
    panel, history = RewardPanel(painter, False), History()
    for step in range(8):
        history.tick(snapshot_of(step_count=step, components=[0.001, 0.0005, -0.0005, -0.001, 0.0, 0.0]))
    picture = show(panel, snapshot_of(step_count=7), history)
    assert panel.graph is not None
    assert panel.axis.reach == pytest.approx(0.002)
    column, half, zero = picture[panel.graph.right - 2], panel.graph.height // 2, panel.graph.centery
    for part, start, end in ((0, 0.0, 0.001), (1, 0.001, 0.0015), (2, 0.0, -0.0005), (3, -0.0005, -0.0015)):
        rows = np.flatnonzero((column[panel.graph.top : panel.graph.bottom] == ORDINARY.series[part]).all(axis=1))
        rows = rows + panel.graph.top
        low, high = sorted(zero - value / 0.002 * half for value in (start, end))
        assert rows.min() == pytest.approx(low, abs=1.0)
        assert rows.max() + 1 == pytest.approx(high, abs=1.0)
    older = picture[panel.graph.left + 40, panel.graph.top : zero]
    assert not (older == ORDINARY.series[0]).all(axis=1).any(), "before the episode there was nothing"


def test_the_sums_of_the_episode_are_written(snapshot_of: MakeSnapshot, painter: TextPainter, show: Show) -> None:
    panel = RewardPanel(painter, False)
    plain, other = (show(panel, snapshot_of(totals=np.array([total, 0, 0, 0, 0, 0.0]))) for total in (0.0, 1.5))
    changed = np.argwhere((plain != other).any(axis=2))
    rows = {int(np.argmin([abs(y - bar.centery) for bar in panel.bars])) for y in changed[:, 1]}
    assert rows == {0, len(panel.bars) - 1}, "progress and total"
    assert changed[:, 0].min() > panel.bars[0].right


def test_shares_of_what_matters_sum_up_to_one_and_follow_the_ranges(thought: PolicyInsight) -> None:
    parts = shares(thought)
    assert parts.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(parts[[4, 9, 13]], [0.5, 0.25, 0.25])
    nothing = shares(dataclasses.replace(thought, sensitivity=np.zeros((3, 14), np.float32)))
    assert not nothing.any()


def test_agent_bars_are_as_long_as_spread_and_shares(
    snapshot_of: MakeSnapshot, painter: TextPainter, thought: PolicyInsight, show: Show, length: Length
) -> None:
    panel = AgentPanel(painter, False)
    picture = show(panel, snapshot_of(insight=thought))
    assert panel.spread_axis.reach == panel.share_axis.reach == pytest.approx(0.5)
    for bar, spread in zip(panel.spread_bars, (0.5, 0.25, 0.1), strict=True):
        assert length(picture, bar, ORDINARY.series[1]) == pytest.approx(bar.width * spread / 0.5, abs=1.0)
    for bar, share in zip(panel.share_bars, (0.25, 0.0, 0.0, 0.0, 0.25), strict=True):
        assert length(picture, bar, ACCENT) == pytest.approx(bar.width * share / 0.5, abs=1.0)


@pytest.mark.parametrize(("ray", "side"), [(0, 1), (8, -1)])
def test_the_ray_that_matters_is_lit_on_its_side(
    ray: int, side: int, snapshot_of: MakeSnapshot, painter: TextPainter, show: Show
) -> None:
    sensitivity = np.zeros((3, 14), np.float32)
    sensitivity[0, ray] = 1.0
    panel = AgentPanel(painter, True)
    picture = show(panel, snapshot_of(insight=PolicyInsight(None, None, sensitivity)))
    lit = np.argwhere((picture == ACCENT).all(axis=2))
    fan_middle = panel.left + panel.px(92) // 2
    assert len(lit) > 30
    assert np.sign(lit[:, 0].mean() - fan_middle) == side


def test_an_agent_without_value_and_spread_is_shown_too(
    snapshot_of: MakeSnapshot, painter: TextPainter, thought: PolicyInsight, show: Show, length: Length
) -> None:
    panel = AgentPanel(painter, False)
    bare = snapshot_of(insight=dataclasses.replace(thought, value=None, spread=None))
    picture = show(panel, bare)
    assert all(length(picture, bar, ORDINARY.series[1]) == 0 for bar in panel.spread_bars)
    assert length(picture, panel.share_bars[0], ACCENT) > 0


def test_where_no_agent_drives_one_line_says_so(snapshot_of: MakeSnapshot, thought: PolicyInsight) -> None:
    surface, overlays = pygame.Surface((1280, 720), depth=32), Overlays(Theme(1.0))
    (nobody,) = overlays.draw(surface, snapshot_of(), ["agent"])
    (agent,) = overlays.draw(surface, snapshot_of(insight=thought), ["agent"])
    assert nobody.height < agent.height / 4


def test_forces_are_those_that_move_the_car() -> None:
    simulation = Simulation(load_circuit("track-03"), 16, start=ANYWHERE, seed=3)
    driver = Driver(simulation.track)
    checked = 0
    for _ in range(120):
        before = np.array(simulation.cars)
        simulation.step(driver.act(simulation.cars))
        for old, car in zip(before, np.array(simulation.cars), strict=True):
            if old["speed"] < 20.0 or car["speed"] > 159.0 or car["wall_contact"] or old["surface"] != car["surface"]:
                continue
            forces = forces_on(car)
            sin, cos = math.sin(car["heading"]), math.cos(car["heading"])
            along = car["vx"] * cos + car["vy"] * sin - old["speed"]
            across = (car["vx"] - old["vx"]) * -sin + (car["vy"] - old["vy"]) * cos
            net = forces.engine - forces.brake - forces.drag
            assert net == pytest.approx(MASS * along / DT / 1000.0, abs=1.5)
            assert forces.friction == pytest.approx(MASS * across / DT / 1000.0, rel=0.05, abs=0.5)
            checked += 1
    assert checked > 400


def test_nothing_resists_a_car_that_stands(snapshot_of: MakeSnapshot) -> None:
    forces = forces_on(snapshot_of(brake=1.0).car)
    assert (forces.brake, forces.drag, forces.friction) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("compact", [False, True])
def test_force_bars_are_as_long_as_the_forces(
    compact: bool, snapshot_of: MakeSnapshot, painter: TextPainter, show: Show, length: Length
) -> None:
    panel = PhysicsPanel(painter, compact)
    snapshot = snapshot_of(speed=100.0, vx=100.0, throttle=0.5, brake=0.2)
    picture, forces = show(panel, snapshot), forces_on(snapshot.car)
    assert (forces.engine, forces.brake, forces.drag) == pytest.approx((27.5, 10.0, 20.15))
    values = forces.engine, forces.brake, forces.drag
    for bar, value, colour in zip(panel.bars, values, (GOOD, BAD, ORDINARY.faint), strict=True):
        assert length(picture, bar, colour) == pytest.approx(bar.width * value / FORCE_REACH, abs=1.0)


@pytest.mark.parametrize(("surface", "colour"), [(0, GOOD), (1, BAD), (2, ACCENT)])
def test_the_surface_has_its_colour(
    surface: int, colour: tuple[int, int, int], snapshot_of: MakeSnapshot, painter: TextPainter, show: Show
) -> None:
    picture = show(PhysicsPanel(painter, False), snapshot_of(surface=surface))
    assert count(picture[:, : painter.theme.px(22)], colour) > 10


def test_the_arrow_points_where_the_car_slides(snapshot_of: MakeSnapshot, painter: TextPainter, show: Show) -> None:
    panel = PhysicsPanel(painter, False)
    tips = []
    for left in (-60.0, 60.0):
        picture = show(panel, snapshot_of(heading=0.0, vx=100.0, vy=left, speed=117.0))
        lit = np.argwhere((picture == ACCENT).all(axis=2))
        lit = lit[lit[:, 0] > panel.right - panel.px(70)]
        tips.append(lit[lit[:, 1] == lit[:, 1].min()][:, 0].mean())
    assert tips[0] > tips[1] + 20


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize(("delta", "seen", "unseen"), [(-14, GOOD, BAD), (14, BAD, GOOD)])
def test_a_delta_is_drawn_in_the_colour_of_what_it_means(
    compact: bool,
    delta: int,
    seen: tuple[int, int, int],
    unseen: tuple[int, int, int],
    snapshot_of: MakeSnapshot,
    painter: TextPainter,
    show: Show,
) -> None:
    panel = TimingPanel(painter, compact)
    picture = show(panel, snapshot_of(timing=Timing(2, 100, 1100, 1000, delta)))
    assert count(picture, seen) > 20
    assert count(picture, unseen) == 0


def test_without_a_best_lap_nothing_is_good_or_bad(snapshot_of: MakeSnapshot, painter: TextPainter, show: Show) -> None:
    panel = TimingPanel(painter, False)
    picture = show(panel, snapshot_of(timing=Timing(1, 100, None, None, None, (Sector(350, None),) * 3)))
    assert count(picture, GOOD) == count(picture, BAD) == 0


def test_sectors_have_the_colour_of_better_and_worse(
    snapshot_of: MakeSnapshot, painter: TextPainter, show: Show
) -> None:
    panel = TimingPanel(painter, False)
    sectors = Sector(340, 350), Sector(360, 350), Sector(None, 350)
    picture = show(panel, snapshot_of(timing=Timing(2, 100, 1100, 1000, None, sectors)))
    thirds = np.array_split(picture, 3)
    assert [count(third, GOOD) > 5 for third in thirds] == [True, False, False]
    assert [count(third, BAD) > 5 for third in thirds] == [False, True, False]


def test_a_snapshot_without_timing_shows_what_the_car_knows(
    snapshot_of: MakeSnapshot, painter: TextPainter, show: Show
) -> None:
    car = snapshot_of(lap=4, lap_ticks=321, last_lap_ticks=1069, best_lap_ticks=1042)
    explicit = dataclasses.replace(car, timing=Timing(4, 321, 1069, 1042, None))
    panel = TimingPanel(painter, False)
    np.testing.assert_array_equal(show(panel, car), show(panel, explicit))
    assert (show(panel, car) != show(panel, snapshot_of())).any()


def test_the_lap_time_runs_in_every_frame(snapshot_of: MakeSnapshot, painter: TextPainter, show: Show) -> None:
    panel = TimingPanel(painter, False)
    pictures = [show(panel, snapshot_of(timing=Timing(1, ticks, None, None, None))) for ticks in (100, 101, 102)]
    assert (pictures[0] != pictures[1]).any()
    assert (pictures[1] != pictures[2]).any()


def test_the_nearest_cars_are_listed_from_the_one_farthest_ahead() -> None:
    gaps = (3.0, 0.0, -1.0, 50.0, -9.0, math.nan, 0.5)
    assert nearest(gaps, 1, 7) == [4, 2, 6, 0, 3, 5]
    assert nearest(gaps, 1, 3) == [2, 6, 0]


def test_gaps_have_a_dot_in_the_colour_of_each_car(snapshot_of: MakeSnapshot, painter: TextPainter, show: Show) -> None:
    snapshot = snapshot_of(4, gaps=(0.0, -2.0, 1.0, math.inf))
    panel = GapsPanel(painter, 3)
    picture = show(panel, snapshot)
    rows = []
    for number in (1, 2, 3):
        dot = np.argwhere((picture == snapshot.styles[number].colour).all(axis=2))
        assert len(dot) > 10
        rows.append(dot[:, 1].mean())
    assert rows == sorted(rows)
    assert count(picture, snapshot.styles[0].colour) == 0


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("scale", [0.8, 1.0, 2.5])
def test_the_dot_on_the_map_is_where_the_car_is(
    compact: bool, scale: float, track: Track, snapshot_of: MakeSnapshot, show: Show
) -> None:
    panel = CircuitMap(TextPainter(Theme(scale)), compact)
    look = CarStyle("You", (255, 0, 255))
    places = []
    for gate in track.gates[::7]:
        x, y = float(gate[4]), float(gate[5])
        picture = show(panel, snapshot_of(x=x, y=y, styles=(look,)))
        dot = np.argwhere((picture == look.colour).all(axis=2))
        assert len(dot) > 8 * scale
        np.testing.assert_allclose(dot.mean(axis=0), panel.place(x, y), atol=1.0)
        places.append(dot.mean(axis=0))
    spread = np.ptp(places, axis=0)
    assert spread.max() > 0.4 * min(panel.size)


def test_the_map_shows_the_road_where_the_track_is(track: Track, snapshot_of: MakeSnapshot, show: Show) -> None:
    panel = CircuitMap(TextPainter(Theme(1.0)), False)
    picture = show(panel, snapshot_of(x=1e6))
    for x, y in track.gates[1:, 4:6]:
        px, py = panel.place(x, y)
        assert picture[round(px), round(py)].min() > 120


def test_a_ghost_is_hollow_and_the_followed_car_is_larger_and_on_top(track: Track, show: Show) -> None:
    cars = np.repeat(np.array(Simulation(track).cars), 3)
    cars["x"], cars["y"] = track.gates[[3, 12, 21], 4], track.gates[[3, 12, 21], 5]
    colours = (255, 0, 255), (0, 255, 255), (255, 255, 0)
    looks = CarStyle("a", colours[0]), CarStyle("b", colours[1], ghost=True), CarStyle("c", colours[2])
    panel = CircuitMap(TextPainter(Theme(2.0)), False)
    picture = show(panel, Snapshot(track, cars, looks, focus=2))
    middles = [picture[tuple(round(value) for value in panel.place(car["x"], car["y"]))] for car in cars]
    assert [tuple(middle) == colour for middle, colour in zip(middles, colours, strict=True)] == [True, False, True]
    assert count(picture, colours[1]) > 20
    assert count(picture, colours[2]) > 1.5 * count(picture, colours[0])
    cars["x"], cars["y"] = cars["x"][0], cars["y"][0]
    stacked = show(panel, Snapshot(track, cars, looks, focus=2))
    assert count(stacked, colours[2]) == pytest.approx(count(picture, colours[2]), abs=2)


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("circuit", ["track-01", "track-03", "track-06"])
def test_the_map_shows_a_car_that_touches_the_farthest_wall_whole(
    snapshot_of: MakeSnapshot, show: Show, circuit: str, compact: bool
) -> None:
    track, look = load_circuit(circuit), CarStyle("You", (255, 0, 255))
    walls, heights = np.concatenate([track.inner, track.outer]), []
    for axis, end in itertools.product((0, 1), (np.argmin, np.argmax)):
        x, y = walls[end(walls[:, axis])].tolist()
        panel = CircuitMap(TextPainter(Theme(1.0)), compact)
        picture = show(panel, snapshot_of(x=x, y=y, track_=track, styles=(look,)))
        dot = np.argwhere((picture == look.colour).all(axis=2))
        heights.append(np.ptp(dot, axis=0).tolist())
    assert heights == [heights[0]] * 4, "the whole disc at each of the four ends"


def test_another_circuit_is_another_map_and_one_without_a_name_can_be_shown(
    track: Track, snapshot_of: MakeSnapshot, painter: TextPainter, show: Show
) -> None:
    panel = CircuitMap(painter, False)
    first = show(panel, snapshot_of())
    bare = show(panel, snapshot_of(track_=build_track(track.control_points)))
    assert (first != bare).any(axis=2)[:, -25:].any(), "no name"
    other = show(panel, snapshot_of(track_=load_circuit("track-03")))
    assert (first != other).any(axis=2).mean() > 0.02
    np.testing.assert_array_equal(show(panel, snapshot_of()), first)


def test_another_palette_has_its_own_good_and_bad(snapshot_of: MakeSnapshot, show: Show) -> None:
    panel = TimingPanel(TextPainter(Theme(1.0, COLOUR_BLIND)), False)
    picture = show(panel, snapshot_of(timing=Timing(2, 100, 1100, 1000, -14)))
    assert count(picture, COLOUR_BLIND.good) > 20
    assert count(picture, GOOD) == 0


def test_everything_is_drawn_in_a_fraction_of_a_frame(snapshot_of: MakeSnapshot, thought: PolicyInsight) -> None:
    overlays, surface = Overlays(Theme(1.0)), pygame.Surface((1280, 720), depth=32)
    took = []
    for step in range(60):
        snapshot = snapshot_of(8, step_count=step, insight=thought, gaps=tuple(range(8)), components=[1e-3] * 6)
        overlays.tick(snapshot)
        start = time.perf_counter()
        overlays.draw(surface, snapshot, OVERLAYS)
        took.append(time.perf_counter() - start)
    assert np.median(took) < 0.012
