"""The engine with its accelerators against plain searches through the whole track."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from racer_env.engine import Simulation, Track, build_track
from racer_env.engine.starts import ANYWHERE
from tests.engine.oracle import RAY_ANGLES, OracleCar, OracleTrack

Floats = NDArray[np.float64]

CIRCUITS = json.loads((Path(__file__).parents[1] / "data" / "reference_circuits.json").read_text(encoding="utf-8"))
TOLERANCE = 1e-9
SINGLE_PRECISION = 1e-6
RAY_RANGE = 200.0
GRID_MARGIN = 6.0
"""Margin of the engine's grid around the walls [units]."""

COMPARED = [
    *("x", "y", "heading", "vx", "vy", "speed", "yaw_rate", "slip_angle", "steer", "throttle", "brake"),
    *("surface", "arc", "centre_distance", "wall_contact", "lap", "checkpoint", "lap_ticks"),
    *("reward", "components", "terminated", "truncated"),
]
QUICK_END: dict[str, dict[str, float]] = {
    "weights": {
        "speedBonus": 0.01,
        "wallPenalty": -0.5,
        "offTrackPenalty": -0.25,
        "backwardPenalty": -0.125,
        "stillnessSpeedThreshold": 40.0,
    },
    "episode": {"maxSteps": 4, "stillnessTimeoutTicks": 3},
}
"""Config in which every reward component counts and episodes end within a few ticks."""


@dataclass(frozen=True)
class TrackShape:
    """Description of a track. The seed makes its points irregular, so that no two distances are equal by symmetry."""

    shape: str
    corners: int
    size: int
    clockwise: bool
    gates: int
    seed: int

    def control_points(self) -> list[list[float]]:
        rng = np.random.default_rng(self.seed)
        turn = (np.arange(self.corners) + rng.uniform(-0.3, 0.3, self.corners)) * 2.0 * math.pi / self.corners
        radius = self.size * rng.uniform(0.85, 1.15, self.corners)
        half_width = rng.uniform(8.0, 30.0, self.corners)
        x, y = radius * np.cos(turn), radius * np.sin(turn)
        if self.shape == "winding":
            x, y = x * (2.0 + np.cos(3.0 * turn)), y * (2.0 + np.cos(3.0 * turn))
        elif self.shape == "island":
            turn = (np.arange(self.corners) + rng.uniform(-0.05, 0.05, self.corners)) * 2.0 * math.pi / self.corners
            half_width[:] = half_width[0]
            radius = half_width[0] + 30.0 + rng.uniform(0.0, 15.0)
            x, y = radius * np.cos(turn) + (self.size - 100.0) / 2.0 * np.sign(np.cos(turn)), radius * np.sin(turn)
        elif self.shape == "tight":
            x[::2], y[::2] = 0.35 * x[::2], 0.35 * y[::2]
        elif self.shape == "narrow":
            y *= 0.25
        elif self.shape == "eight":
            x, y = radius * np.sin(turn), 0.7 * radius * np.sin(2.0 * turn)
        elif self.shape == "tangle":
            x, y = rng.uniform(-self.size, self.size, (2, self.corners))
        rows = np.stack([x, y, half_width], axis=1)
        return [list(row) for row in (rows[::-1] if self.clockwise else rows)]


SHAPES = {
    "round": "a blob with room for its walls",
    "winding": "bends to both sides",
    "island": "little or nothing between its two straights but the inner wall",
    "tight": "hairpins, in which walls are pushed in and fold",
    "narrow": "so flat that walls of opposite sides overlap",
    "eight": "crosses itself once",
    "tangle": "crosses itself anywhere",
}
TRACK_SHAPES = st.builds(
    TrackShape,
    shape=st.sampled_from(list(SHAPES)),
    corners=st.integers(5, 14),
    size=st.integers(100, 250),
    clockwise=st.booleans(),
    gates=st.integers(2, 60),
    seed=st.integers(0, 2**32 - 1),
)

REPEATABLE = settings(deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate])
"""Settings that draw the same tracks every time, without shrinking: a smaller seed gives no simpler track."""


class Places:
    """Draws states of cars all over and around a track."""

    def __init__(self, track: OracleTrack, seed: int) -> None:
        self.track = track
        self.rng = np.random.default_rng(seed)
        walls = np.concatenate([track.inner, track.outer])
        self.low, self.high = walls.min(axis=0), walls.max(axis=0)

    def __iter__(self) -> Iterator[tuple[float, float]]:
        while True:
            yield from (self.on_the_road(), self.near_a_wall(), self.anywhere(), self.near_a_wall(), self.at_the_edge())
            yield from (self.on_the_road(), self.near_a_wall(), self.far_off())

    def on_the_road(self) -> tuple[float, float]:
        arc = self.rng.uniform(0.0, self.track.length)
        (x, y), (dx, dy) = self.track.spline.point_at(arc), self.track.spline.direction_at(arc)
        offset = self.rng.uniform(-1.0, 1.0) * self.track.spline.half_width_at(arc)
        return x - dy * offset, y + dx * offset

    def near_a_wall(self) -> tuple[float, float]:
        i = self.rng.integers(len(self.track.wall_starts))
        x, y = self.track.wall_starts[i] + self.rng.uniform() * self.track.wall_ways[i]
        angle, distance = self.rng.uniform(0.0, 2.0 * math.pi), self.rng.uniform(0.0, 4.0)
        return float(x + distance * math.cos(angle)), float(y + distance * math.sin(angle))

    def anywhere(self) -> tuple[float, float]:
        x, y = self.rng.uniform(self.low - 10.0, self.high + 10.0)
        return float(x), float(y)

    def at_the_edge(self) -> tuple[float, float]:
        """Draw a place within a tick of the border of the engine's grid, on either side."""
        place = self.rng.uniform(self.low, self.high)
        axis = self.rng.integers(2)
        edge = self.rng.choice([self.low[axis] - GRID_MARGIN, self.high[axis] + GRID_MARGIN])
        place[axis] = edge + self.rng.uniform(-3.0, 3.0)
        return float(place[0]), float(place[1])

    def far_off(self) -> tuple[float, float]:
        angle, distance = self.rng.uniform(0.0, 2.0 * math.pi), self.rng.uniform(1.0, 3.0)
        x, y = (self.low + self.high) / 2.0 + distance * (self.high - self.low) * (math.cos(angle), math.sin(angle))
        return float(x), float(y)

    def heading(self) -> float:
        """Draw a heading, sometimes along an axis, and sometimes beyond ±π, which wall hits can cause."""
        kind = self.rng.uniform()
        if kind < 0.15:
            return float(self.rng.choice([0.0, 0.5, 1.0, -0.5]) * math.pi)
        return float(self.rng.uniform(-math.pi, math.pi) if kind < 0.8 else self.rng.uniform(-8.0, 8.0))

    def state(self, x: float, y: float) -> dict[str, float]:
        """Draw a state as `OracleCar.place` takes it."""
        heading = self.heading()
        speed = self.rng.choice(
            [0.0, self.rng.uniform(0.0, 3.0), self.rng.uniform(3.0, 60.0), self.rng.uniform(60.0, 160.0)]
        )
        slip = self.rng.choice([0.0, self.rng.normal(0.0, 0.3), self.rng.uniform(-math.pi, math.pi)])
        return {
            "x": x,
            "y": y,
            "heading": heading,
            "vx": float(speed * math.cos(heading + slip)),
            "vy": float(speed * math.sin(heading + slip)),
            "speed": float(speed),
            "steer": self.rng.uniform(-1.0, 1.0),
            "throttle": self.rng.uniform(0.0, 1.0),
            "brake": self.rng.uniform(0.0, 1.0),
        }

    def actions(self, count: int) -> Floats:
        """Draw actions, also slightly out of range."""
        return self.rng.uniform((-1.2, -0.5, -1.0), (1.2, 1.5, 1.2), (count, 3))


def put(simulation: Simulation, car: int, state: dict[str, float]) -> None:
    for name, value in state.items():
        simulation.cars[name][car] = value


def assert_same_car(simulation: Simulation, i: int, expected: OracleCar, context: Any) -> None:
    car = simulation.cars[i]
    for name in COMPARED:
        actual, wanted = np.asarray(car[name], dtype=np.float64), np.asarray(getattr(expected, name), dtype=np.float64)
        if name == "components":
            assert not actual[wanted.size :].any(), "there are no terms"
            actual = actual[: wanted.size]
        assert (np.abs(actual - wanted) <= TOLERANCE).all(), f"{name} is {actual}, not {wanted}: {context}"
    rays = car.rays / RAY_RANGE
    assert (np.abs(rays - expected.observation[:9]) <= TOLERANCE).all(), (
        f"rays are {car.rays}, not {expected.rays}: {context}"
    )


@settings(REPEATABLE, max_examples=6)
@given(layout=TRACK_SHAPES)
def test_a_few_ticks_anywhere_on_any_track_are_those_of_brute_force(layout: TrackShape) -> None:
    assert_ticks_are_those_of_brute_force(layout)


@pytest.mark.slow
@settings(REPEATABLE, max_examples=80)
@given(layout=TRACK_SHAPES)
def test_a_few_ticks_on_many_more_tracks_are_those_of_brute_force(layout: TrackShape) -> None:
    assert_ticks_are_those_of_brute_force(layout)


def assert_ticks_are_those_of_brute_force(layout: TrackShape) -> None:
    oracle = OracleTrack(layout.control_points(), layout.gates)
    places = Places(oracle, layout.seed)
    cars = [OracleCar(oracle, QUICK_END) for _ in range(14)]
    simulation = Simulation(build_track(layout.control_points(), layout.gates), len(cars), QUICK_END)
    states = [places.state(*place) for place, _ in zip(places, cars, strict=False)]
    for i, (car, state) in enumerate(zip(cars, states, strict=True)):
        car.place(**state)
        put(simulation, i, state)
        car.checkpoint = simulation.cars.checkpoint[i] = int(car.arc / oracle.length * layout.gates)
    for tick in range(5):
        actions = places.actions(len(cars))
        observations = simulation.step(actions).observations
        for i, car in enumerate(cars):
            car.step(actions[i])
            assert_same_car(simulation, i, car, (layout, i, tick, states[i]))
            np.testing.assert_allclose(observations[i], car.observation, rtol=0.0, atol=SINGLE_PRECISION)


@settings(REPEATABLE, max_examples=20)
@given(layout=TRACK_SHAPES)
def test_any_track_is_built_as_the_formulas_say(layout: TrackShape) -> None:
    assert_built_alike(layout.control_points(), layout.gates)


def test_a_control_point_given_twice_builds_as_the_formulas_say() -> None:
    points = TrackShape("round", 8, 120, False, 30, 5).control_points()
    assert_built_alike([*points[:3], points[2], *points[3:]], 30)


def assert_built_alike(control_points: list[list[float]], gates: int) -> None:
    track, oracle = build_track(control_points, gates), OracleTrack(control_points, gates)
    for name in ("inner", "outer", "inner_road", "outer_road", "gates", "length", "start"):
        np.testing.assert_allclose(getattr(track, name), getattr(oracle, name), rtol=0.0, atol=TOLERANCE, err_msg=name)


@pytest.mark.parametrize("name", CIRCUITS)
def test_rays_and_location_on_the_circuits_are_those_of_brute_force(name: str) -> None:
    """Compare cars that stand where they are put, or where a wall has pushed them."""
    circuit = CIRCUITS[name]
    oracle = OracleTrack(circuit["control_points"], circuit["gates"])
    places = Places(oracle, 1)
    simulation = Simulation(build_track(circuit["control_points"], circuit["gates"]), 400)
    for i, (x, y) in zip(range(400), places, strict=False):
        put(simulation, i, {"x": x, "y": y, "heading": places.heading()})
    simulation.step(np.zeros((400, 3)))
    for car in simulation.cars:
        expected = OracleCar(oracle)
        expected.place(float(car.x), float(car.y), float(car.heading))
        for column in ("rays", "arc", "centre_distance", "surface"):
            difference = np.abs(car[column] - getattr(expected, column))
            assert (difference <= TOLERANCE).all(), f"{column} at {car.x!r}, {car.y!r}, {car.heading!r}"
        assert car.wall_contact == (oracle.wall_distance(car.x, car.y) < 2.0)


def oval(radius: float, straight: float, half_width: float) -> list[list[float]]:
    """Return control points of two half circles with straights between them."""
    turns = np.linspace(-math.pi / 2.0, math.pi / 2.0, 7)
    right = [[straight / 2.0 + radius * math.cos(turn), radius * math.sin(turn), half_width] for turn in turns]
    return right + [[-x, -y, half_width] for x, y, _ in right]


@pytest.mark.parametrize(
    ("radius", "straight", "half_width"), [(40, 5, 8), (43, 10, 8), (42, 160, 8), (58, 120, 25), (60, 200, 25)]
)
def test_rays_that_pass_an_inner_wall_on_both_sides_do_not_hide_it(
    radius: float, straight: float, half_width: float
) -> None:
    """A car behind the end of a slim inner wall sees road to the left and to the right of it."""
    points = oval(radius, straight, half_width)
    track, oracle = build_track(points), OracleTrack(points)
    places = Places(oracle, 2)
    grid = Simulation(track, 4000)
    for i in range(grid.num_cars):
        x, y = places.on_the_road()
        put(grid, i, {"x": x, "y": y, "heading": places.heading()})
    plain = Simulation(track, grid.num_cars, tables=track.brute_force_tables())
    plain.restore(grid.save())
    grid.step(np.zeros((grid.num_cars, 3)))
    plain.step(np.zeros((grid.num_cars, 3)))
    wrong = np.argwhere(np.abs(grid.cars.rays - plain.cars.rays) > TOLERANCE)
    for i, ray in wrong[:1]:
        x, y, heading = (float(grid.cars[name][i]) for name in ("x", "y", "heading"))
        expected = oracle.ray(x, y, heading + RAY_ANGLES[ray])
        context = f"{len(wrong)} wrong; ray {ray} from {x!r}, {y!r}, heading {heading!r}"
        pytest.fail(f"{context} is {grid.cars.rays[i, ray]:.9f}, by brute force {expected:.9f}")


def drive(rng: np.random.Generator, cars: int, ticks: int) -> Iterator[Floats]:
    """Yield random actions that cars hold for a while, mostly with the throttle open, so that they get somewhere."""
    actions = np.zeros((cars, 3))
    for _ in range(ticks):
        changing = rng.uniform(size=cars) < 0.05
        fresh = rng.uniform((-1.0, 0.0, -2.0), (1.0, 1.5, 1.0), (cars, 3))
        actions[changing] = fresh[changing]
        yield actions


def assert_grid_changes_nothing(track: Track, cars: int, ticks: int) -> None:
    grid, plain = (
        Simulation(track, cars, {"episode": {"maxSteps": 500}}, auto_reset=True, start=ANYWHERE, seed=3, tables=tables)
        for tables in (track.tables, track.brute_force_tables())
    )
    for tick, actions in enumerate(drive(np.random.default_rng(4), cars, ticks)):
        seen, wanted = grid.step(actions).observations, plain.step(actions).observations
        np.testing.assert_allclose(seen, wanted, rtol=0.0, atol=SINGLE_PRECISION, err_msg=f"tick {tick}")
        for name in [*COMPARED, "rays"]:
            wrong = np.argwhere(~(np.abs(grid.cars[name] * 1.0 - plain.cars[name]) <= TOLERANCE))
            assert not len(wrong), f"tick {tick}, car {wrong[0]}: {name}"


@pytest.mark.parametrize("name", CIRCUITS)
@pytest.mark.parametrize("ticks", [200, pytest.param(4000, marks=pytest.mark.slow)])
def test_long_drives_on_the_circuits_are_the_same_with_a_grid_of_one_cell(name: str, ticks: int) -> None:
    assert_grid_changes_nothing(build_track(CIRCUITS[name]["control_points"], CIRCUITS[name]["gates"]), 40, ticks)


@settings(REPEATABLE, max_examples=6)
@given(layout=TRACK_SHAPES)
def test_drives_on_any_track_are_the_same_with_a_grid_of_one_cell(layout: TrackShape) -> None:
    assert_grid_changes_nothing(build_track(layout.control_points(), layout.gates), 32, 300)
