"""Properties of built tracks of any shape, and input that cannot be built."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from racer_env.engine import Simulation, Track, build_track
from racer_env.errors import CircuitError

CIRCUITS = json.loads((Path(__file__).parents[1] / "data" / "reference_circuits.json").read_text(encoding="utf-8"))
LINES = ("inner", "outer", "inner_road", "outer_road")
SQUARE = [[0.0, 0.0, 10.0], [200.0, 0.0, 10.0], [200.0, 200.0, 10.0], [0.0, 200.0, 10.0]]
INNER_END, OUTER_END, CENTRE, DIRECTION, ARC = slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 8), 8
"""Columns of a gate."""
MIN_WALL_DISTANCE = 4.0
"""Minimum distance from the centreline to a wall before smoothing [units]."""


@st.composite
def ring(draw: st.DrawFn) -> list[list[float]]:
    """Draw control points around a blob, in either direction."""
    corners = draw(st.integers(4, 16))
    radius, width = st.floats(120.0, 400.0), st.floats(8.0, 30.0)
    turns = [2.0 * math.pi * i / corners for i in range(corners)]
    points = [[r * math.cos(turn), r * math.sin(turn), draw(width)] for turn in turns for r in [draw(radius)]]
    return points[::-1] if draw(st.booleans()) else points


GATES = st.integers(2, 80)
repeatable = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def enclosed_area(line: Any) -> float:
    x, y = line[:, 0], line[:, 1]
    return abs(float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]))) / 2.0


@repeatable
@given(points=ring(), gates=GATES)
def test_walls_and_road_edges_are_closed_lines_of_equally_many_points(points: list[list[float]], gates: int) -> None:
    track = build_track(points, gates)
    for name in LINES:
        line = getattr(track, name)
        assert line.shape == (max(200, 12 * len(points)) + 1, 2), name
        assert line.dtype == np.float64, name
        assert np.isfinite(line).all(), name
        assert (line[0] == line[-1]).all(), name


@repeatable
@given(points=ring(), gates=GATES)
def test_the_outer_wall_goes_around_at_least_as_much_as_the_inner_one(points: list[list[float]], gates: int) -> None:
    track = build_track(points, gates)
    assert enclosed_area(track.outer) >= enclosed_area(track.inner)


@repeatable
@given(points=ring(), gates=GATES)
def test_a_gate_is_two_wall_points_a_centre_a_direction_and_an_arc(points: list[list[float]], gates: int) -> None:
    track = build_track(points, gates)
    assert track.gates.shape == (gates, 9)
    np.testing.assert_allclose(track.gates[:, ARC], np.arange(gates) * track.length / gates, rtol=1e-12)
    np.testing.assert_allclose(np.hypot(*track.gates[:, DIRECTION].T), 1.0, rtol=1e-12)
    np.testing.assert_allclose(track.centreline.points(track.gates[:, ARC]), track.gates[:, CENTRE], atol=1e-9)
    for wall, ends in ((track.inner, track.gates[:, INNER_END]), (track.outer, track.gates[:, OUTER_END])):
        assert (wall[None] == ends[:, None]).all(axis=2).any(axis=1).all()


@repeatable
@given(points=ring(), gates=GATES)
def test_the_start_is_gate_0_in_its_direction(points: list[list[float]], gates: int) -> None:
    track = build_track(points, gates)
    x, y, heading = track.start
    assert (x, y) == tuple(track.gates[0, CENTRE])
    np.testing.assert_allclose([x, y], points[0][:2], rtol=0.0, atol=1e-9)
    np.testing.assert_allclose([math.cos(heading), math.sin(heading)], track.gates[0, DIRECTION], rtol=0.0, atol=1e-12)


@repeatable
@given(points=ring(), gates=GATES)
def test_a_lap_is_a_little_longer_than_the_way_from_control_point_to_control_point(
    points: list[list[float]], gates: int
) -> None:
    corners = np.array(points)[:, :2]
    straight = np.linalg.norm(np.roll(corners, -1, axis=0) - corners, axis=1).sum()
    assert straight <= build_track(points, gates).length < 1.5 * straight


@repeatable
@given(points=ring(), first=GATES, second=GATES)
def test_the_number_of_gates_changes_nothing_but_the_gates(points: list[list[float]], first: int, second: int) -> None:
    one, other = build_track(points, first), build_track(points, second)
    assert one.length == other.length
    assert one.start == other.start
    for name in LINES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@repeatable
@given(points=ring(), dx=st.floats(-500.0, 500.0), dy=st.floats(-500.0, 500.0))
def test_a_track_built_elsewhere_has_the_same_shape(points: list[list[float]], dx: float, dy: float) -> None:
    here, there = build_track(points), build_track([[x + dx, y + dy, width] for x, y, width in points])
    assert there.length == pytest.approx(here.length, rel=1e-12)
    for name in LINES:
        np.testing.assert_allclose(
            getattr(there, name), getattr(here, name) + np.array([dx, dy]), rtol=0.0, atol=1e-8, err_msg=name
        )
    assert there.start == pytest.approx((here.start[0] + dx, here.start[1] + dy, here.start[2]), abs=1e-8)


@pytest.mark.parametrize("name", CIRCUITS)
def test_walls_of_the_circuits_keep_away_from_the_road(name: str) -> None:
    track = build_track(CIRCUITS[name]["control_points"], CIRCUITS[name]["gates"])
    samples = len(track.inner) - 1
    centres = track.centreline.points(np.arange(samples) * track.length / samples)
    for wall, road in ((track.inner, track.inner_road), (track.outer, track.outer_road)):
        to_wall = np.linalg.norm(wall[:-1] - centres, axis=1)
        to_road = np.linalg.norm(road[:-1] - centres, axis=1)
        assert (to_wall > MIN_WALL_DISTANCE - 1.0).all()
        assert (to_wall > to_road).all()


def test_a_track_has_30_gates_unless_asked_otherwise() -> None:
    assert len(build_track(SQUARE).gates) == 30


def test_control_points_can_be_an_array_and_are_copied() -> None:
    points = np.array(SQUARE)
    track = build_track(points)
    points[0] = 1000.0
    np.testing.assert_array_equal(track.control_points, SQUARE)
    np.testing.assert_array_equal(track.inner, build_track(SQUARE).inner)


@pytest.mark.parametrize("name", ["control_points", *LINES, "gates"])
def test_arrays_of_a_track_cannot_be_written(name: str) -> None:
    array = getattr(build_track(SQUARE), name)
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1.0


def test_attributes_of_a_track_cannot_be_set() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        build_track(SQUARE).gates = np.zeros((2, 9))  # type: ignore[misc]


def test_tables_of_a_track_are_built_once_and_cannot_be_written() -> None:
    track = build_track(SQUARE)
    assert track.tables is track.tables
    assert not any(table.flags.writeable for table in track.tables)


def test_simulations_share_a_track_without_changing_it() -> None:
    track: Track = build_track(SQUARE)
    before = [table.copy() for table in track.tables]
    for simulation in (Simulation(track, 3), Simulation(track, 2)):
        for _ in range(50):
            simulation.step(np.tile([0.3, 1.0, 0.0], (simulation.num_cars, 1)))
    for old, new in zip(before, track.tables, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("points", [[], SQUARE[:1], SQUARE[:3]])
def test_fewer_than_four_control_points_are_no_track(points: list[list[float]]) -> None:
    with pytest.raises(CircuitError, match="at least 4"):
        build_track(points)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("column", range(3))
def test_a_control_point_that_is_not_finite_is_named(value: float, column: int) -> None:
    points = [row.copy() for row in SQUARE]
    points[2][column] = value
    with pytest.raises(CircuitError, match="control point 2 is not finite"):
        build_track(points)


@pytest.mark.parametrize(
    "points",
    [
        [row[:2] for row in SQUARE],
        [[*row, 1.0] for row in SQUARE],
        [SQUARE],
        SQUARE[0],
        7.0,
        [SQUARE[0], SQUARE[1][:2], SQUARE[2], SQUARE[3]],
        [["a", 0.0, 1.0]] * 4,
        [[None, 0.0, 1.0]] * 4,
        {"x": 1.0},
        None,
    ],
    ids=[
        "two columns",
        "four columns",
        "too deep",
        "one row",
        "a number",
        "ragged",
        "text",
        "none",
        "mapping",
        "nothing",
    ],
)
def test_control_points_that_are_not_rows_of_three_numbers_are_refused(points: Any) -> None:
    with pytest.raises(CircuitError, match="control point"):
        build_track(points)


@pytest.mark.parametrize("gates", [1, 0, -3])
def test_a_track_needs_two_gates(gates: int) -> None:
    with pytest.raises(CircuitError, match="at least 2 gates"):
        build_track(SQUARE, gates)


def test_control_points_all_in_one_place_are_no_track() -> None:
    with pytest.raises(CircuitError, match="the same"):
        build_track([SQUARE[0]] * 5)
