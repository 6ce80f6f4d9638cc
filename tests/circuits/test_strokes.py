"""Strokes drawn freehand: each becomes a circuit that can be driven, or says where it cannot."""

import math

import numpy as np
import pytest

from racer_env.engine import Driver, Simulation, Track
from racer_env.engine.centreline import build_centreline
from racer_env.errors import CircuitError
from racer_viewer.circuits.draft import Draft
from racer_viewer.circuits.preview import preview
from racer_viewer.circuits.strokes import TOLERANCE, fit_line, fit_stroke

Stroke = list[tuple[float, float]]
MAX_LAP_TICKS = 6000
"""Time that the rule-based driver has for a lap [ticks]; it takes less than half on every bundled circuit."""


def drawn(kind: int, seed: int) -> Stroke:
    """Draw a random stroke: ovals, blobs, scribbles, polygons, stars, eights; with a hand that trembles or not."""
    draw = np.random.default_rng(seed)
    count, size = int(draw.integers(3, 600)), draw.uniform(20.0, 900.0)
    angles = np.linspace(0.0, 2.0 * np.pi * draw.uniform(0.8, 1.15), count)
    if kind == 0:
        xy = np.column_stack([np.cos(angles) * draw.uniform(0.5, 1.8), np.sin(angles)]) * size
    elif kind == 1:
        waves = (draw.uniform(0.0, 0.35 / k) * np.cos(k * angles + draw.uniform(0.0, 6.0)) for k in range(2, 7))
        xy = np.column_stack([np.cos(angles), np.sin(angles)]) * (1.0 + sum(waves))[:, None] * size
    elif kind == 2:
        xy = np.cumsum(draw.normal(0.0, size / 20.0, (count, 2)), axis=0)
    elif kind == 3:
        xy = draw.uniform(-size, size, (int(draw.integers(3, 12)), 2))
    elif kind == 4:
        corners = np.sort(draw.uniform(0.0, 2.0 * np.pi, int(draw.integers(4, 14))))
        radii = size * draw.uniform(0.4, 1.0, len(corners))
        xy = np.column_stack([np.cos(corners) * radii, np.sin(corners) * radii])
    else:
        xy = np.column_stack([np.sin(angles), np.sin(2.0 * angles)]) * size
    xy += draw.normal(0.0, draw.choice([0.0, 1.0, 5.0, 15.0]), xy.shape) + draw.uniform(-500.0, 500.0, 2)
    return [(float(x), float(y)) for x, y in xy]


def circle(radius: float, turns: float = 1.0, count: int = 200) -> Stroke:
    angles = np.linspace(0.0, turns * 2.0 * np.pi, count)
    return [(float(x), float(y)) for x, y in zip(radius * np.cos(angles), radius * np.sin(angles), strict=True)]


def laps(track: Track) -> bool:
    """Return whether the rule-based driver completes a lap."""
    driver, simulation = Driver(track), Simulation(track, config={"episode": {"maxSteps": MAX_LAP_TICKS}})
    return any(simulation.step(driver.act(simulation.cars)).finished_lap_ticks[0] for _ in range(MAX_LAP_TICKS))


def assert_circuit_or_error(stroke: Stroke) -> Track | None:
    """Check that a stroke gives a circuit, or problems with places; return its track if it can be driven."""
    low, high = np.min(stroke, axis=0) - 400.0, np.max(stroke, axis=0) + 400.0
    try:
        shown = preview(Draft(points=fit_stroke(stroke)))
        problems, track = shown.problems, shown.track if shown.drivable else None
    except CircuitError as error:
        problems, track = (error.problem,), None
    assert bool(problems) == (track is None)
    assert all(low[0] < problem.x < high[0] and low[1] < problem.y < high[1] for problem in problems)
    return track


@pytest.mark.parametrize("kind", range(6))
def test_a_random_stroke_is_a_drivable_circuit_or_an_error_with_a_place(kind: int) -> None:
    for seed in range(3):
        assert_circuit_or_error(drawn(kind, seed))


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(6))
def test_a_thousand_strokes_are_drivable_circuits_or_errors_with_a_place(kind: int) -> None:
    tracks = [assert_circuit_or_error(drawn(kind, seed)) for seed in range(168)]
    drivable = [track for track in tracks if track is not None]
    if kind in (0, 1):
        assert len(drivable) > 150, "nearly every round stroke gives a circuit"
    assert all(laps(track) for track in drivable[::8])


def test_a_circle_becomes_a_circle_of_few_points_that_can_be_lapped() -> None:
    points = fit_stroke(circle(200.0), half_width=15.0)
    shown = preview(Draft(points=points))
    assert shown.drivable
    assert laps(shown.track)
    assert 8 <= len(points) <= 20
    assert {point.half_width for point in points} == {15.0}
    assert np.hypot(*shown.line.T) == pytest.approx(200.0, abs=4.0)


@pytest.mark.parametrize("turns", [0.85, 1.0, 1.1, -1.0])
def test_a_circuit_starts_where_the_stroke_began_and_runs_the_same_way(turns: float) -> None:
    points = fit_stroke(circle(250.0, turns))
    (x, y, _), (_, ahead, _) = points[:2]
    assert math.hypot(x - 250.0, y) < 60.0 + 250.0 * 2.0 * math.pi * max(abs(turns) - 1.0, 0.0)
    assert (ahead - y > 0.0) == (turns > 0.0)
    assert preview(Draft(points=points)).facts.length == pytest.approx(2.0 * math.pi * 250.0, rel=0.08)


def test_the_tremor_of_a_hand_and_small_loops_are_not_in_the_circuit() -> None:
    draw = np.random.default_rng(1)
    calm = np.array(circle(300.0, count=400))
    curl = np.array(circle(12.0, count=30)) - (12.0, 0.0) + calm[100]
    hand = np.vstack([calm[:100], curl, calm[100:]]) + draw.normal(0.0, 2.0, (430, 2))
    shown = preview(Draft(points=fit_stroke([tuple(point) for point in hand])))
    assert shown.drivable
    assert np.hypot(*shown.line.T) == pytest.approx(300.0, abs=12.0)
    assert len(shown.draft.points) < 40


def test_control_points_keep_to_a_line_within_the_tolerance() -> None:
    angles = np.linspace(0.0, 2.0 * np.pi, 900, endpoint=False)
    radii = 500.0 + 120.0 * np.sin(3.0 * angles)
    line = np.column_stack([radii * np.cos(angles), radii * np.sin(angles), 15.0 + 5.0 * np.cos(angles)])
    points = fit_line(line)
    spline = build_centreline(np.array(points))
    fitted = spline.points(np.linspace(0.0, spline.length, 5000))
    gaps = [np.hypot(*(fitted - place).T).min() for place in line[:, :2]]
    assert max(gaps) < TOLERANCE + 0.5
    assert len(points) < 80
    assert points[0][:2] == (500.0, 0.0)
    assert (points[0].half_width, min(point.half_width for point in points)) == (20.0, pytest.approx(10.0, abs=0.2))


def test_an_eight_is_refused_where_it_crosses_itself() -> None:
    stroke = [(500.0 * math.sin(a), 400.0 * math.sin(2.0 * a)) for a in np.linspace(0.3, 0.3 + 2.0 * math.pi, 300)]
    [problem] = preview(Draft(points=fit_stroke(stroke))).problems
    assert problem.kind == "cross"
    assert math.hypot(problem.x, problem.y) < 40.0


@pytest.mark.parametrize(
    "stroke",
    [[], [(5.0, 5.0)], [(5.0, 5.0)] * 500, [(5.0, 5.0), (6.0, 6.0)], [(math.nan, 1.0)] * 9, circle(10.0),
     [(float(x), 7.0) for x in range(40)], [(1e300, 0.0), (0.0, 1e300), (-1e300, 5.0)],
     [(math.inf, 0.0), (1.0, 2.0), (3.0, 4.0)]],
)  # fmt: skip
def test_a_stroke_without_a_lap_is_refused_with_a_reason(stroke: Stroke) -> None:
    with pytest.raises(CircuitError) as error:
        fit_stroke(stroke)
    assert error.value.problem.kind in ("short", "tight", "long")
    assert math.isfinite(error.value.problem.x + error.value.problem.y)
