"""The engine against recorded runs of the racer that existing models were trained on."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from racer_env.engine import Simulation, Track, build_track
from tests.engine.oracle import OracleCar, OracleTrack

Floats = NDArray[np.float64]

DATA = Path(__file__).parents[1] / "data"
CIRCUITS = json.loads((DATA / "reference_circuits.json").read_text(encoding="utf-8"))
with np.load(DATA / "engine_traces.npz") as _traces:
    TRACES: dict[str, NDArray[Any]] = dict(_traces)
COLUMNS = [str(name) for name in TRACES["columns"]]
RUNS = [key for key in TRACES if key.startswith("track-")]
TOLERANCE = 1e-9
SINGLE_PRECISION = 1e-6

STATE = [
    "x",
    "y",
    "heading",
    "vx",
    "vy",
    "speed",
    "yaw_rate",
    "surface",
    "steer",
    "throttle",
    "brake",
    "slip_angle",
    "lap",
    "checkpoint",
    "lap_ticks",
]
OBSERVATION = [f"obs_{i}" for i in range(14)]
COMPONENTS = ["progress", "speed_bonus", "wall", "off_track", "backward", "stillness"]
OUTCOME = ["reward", "wall_contact", "terminated", "truncated"]
PLACED = ["x", "y", "heading", "vx", "vy", "speed", "steer", "throttle", "brake"]
"""Columns that row 0 of a run with its own start sets."""
BLOCK = 7
"""Rows of a `placed` block: the state a car is put in, and 6 ticks."""

HARSH_CONFIG: dict[str, dict[str, float]] = {
    "weights": {
        "progress": 2.0,
        "speedBonus": 0.01,
        "wallPenalty": -0.5,
        "offTrackPenalty": -0.25,
        "backwardPenalty": -0.125,
        "stillnessPenalty": -0.0625,
        "stillnessSpeedThreshold": 3.0,
    },
    "episode": {"maxSteps": 1800, "stillnessTimeoutTicks": 60},
}
HARSH_DRIVERS = ("laps", "reverse", "placed")
PLACED_DRIVERS = ("reverse", "placed")


def column(rows: Floats, name: str) -> Floats:
    return rows[..., COLUMNS.index(name)]


def track_of(run: str) -> str:
    return run.split("/")[0]


def driver_of(run: str) -> str:
    return run.split("/")[1]


def config_of(run: str) -> dict[str, dict[str, float]] | None:
    return HARSH_CONFIG if driver_of(run) in HARSH_DRIVERS else None


@cache
def built(name: str) -> Track:
    return build_track(CIRCUITS[name]["control_points"], CIRCUITS[name]["gates"])


@cache
def oracle(name: str) -> OracleTrack:
    return OracleTrack(CIRCUITS[name]["control_points"], CIRCUITS[name]["gates"])


def episodes(run: str) -> Iterator[tuple[int, Floats]]:
    """The pieces of a run that start anew, each with the number of its first row."""
    rows = TRACES[run]
    size = BLOCK if driver_of(run) == "placed" else len(rows)
    for first in range(0, len(rows), size):
        yield first, rows[first : first + size]


def place(simulation: Simulation, car: int, row: Floats) -> None:
    for name in PLACED:
        simulation.cars[name][car] = column(row, name)


def engine_row(simulation: Simulation, action: Floats) -> Floats:
    """Return the state of the first car as a row of a recorded run, in double precision."""
    car = simulation.cars[0]
    observation = [
        *(car.rays / 200.0),
        car.speed / 160.0,
        np.clip(car.yaw_rate / 5.0, -1.0, 1.0),
        car.steer,
        car.arc / simulation.track.length,
        min(1.0, car.centre_distance / 80.0),
    ]
    assert not car.components[len(COMPONENTS) :].any()
    return as_row(action, car, observation, car.components[: len(COMPONENTS)])


def as_row(action: Floats, car: Any, observation: Any, components: Any) -> Floats:
    values = dict(zip(COLUMNS[:3], action, strict=True))
    values |= {name: float(getattr(car, name)) for name in STATE + OUTCOME}
    values |= dict(zip(OBSERVATION, observation, strict=True))
    values |= dict(zip(COMPONENTS, components, strict=True))
    return np.array([values[name] for name in COLUMNS])


def record(simulation: Simulation, actions: Floats) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Step through (ticks, N, 3) actions. Returns the states and observations of all ticks."""
    states = np.zeros(actions.shape[:2], simulation.cars.dtype)
    observations = np.zeros((*actions.shape[:2], len(OBSERVATION)), np.float32)
    for tick, action in enumerate(actions):
        observations[tick] = simulation.step(action).observations
        states[tick] = simulation.cars
    return states, observations


def assert_same(run: str, first_row: int, actual: Floats, expected: Floats, names: list[str], tolerance: float) -> None:
    """Fail with the first row that differs, and its first such column."""
    wrong = np.argwhere(~(np.abs(actual - expected) <= tolerance))
    if len(wrong):
        row, i = wrong[0]
        pytest.fail(f"{run} row {first_row + row}: {names[i]} is {actual[row, i]!r}, was {expected[row, i]!r}")


@pytest.mark.parametrize("run", RUNS)
def test_every_column_of_a_recorded_run_is_reproduced(run: str) -> None:
    simulation = Simulation(built(track_of(run)), 1, config_of(run))
    skipped = 1 if driver_of(run) in PLACED_DRIVERS else 0
    for first, expected in episodes(run):
        observations = [simulation.reset()[0].copy()]
        actual = [engine_row(simulation, expected[0, :3])]
        if skipped:
            place(simulation, 0, expected[0])
        for row in expected[1:]:
            observations.append(simulation.step([row[:3]]).observations[0].copy())
            actual.append(engine_row(simulation, row[:3]))
        start = first + skipped
        assert_same(run, start, np.array(actual)[skipped:], expected[skipped:], COLUMNS, TOLERANCE)
        seen = np.stack([column(expected, name) for name in OBSERVATION], axis=1)
        assert_same(run, start, np.array(observations)[skipped:], seen[skipped:], OBSERVATION, SINGLE_PRECISION)


@pytest.mark.parametrize("line", ["inner", "outer", "inner_road", "outer_road", "gates"])
@pytest.mark.parametrize("name", CIRCUITS)
@pytest.mark.parametrize("build", [built, oracle], ids=["engine", "oracle"])
def test_built_lines_and_gates_are_the_recorded_ones(build: Any, name: str, line: str) -> None:
    key = {"inner_road": "innerRoad", "outer_road": "outerRoad", "gates": "checkpoints"}.get(line, line)
    np.testing.assert_allclose(getattr(build(name), line), TRACES[f"geometry/{name}/{key}"], rtol=0.0, atol=TOLERANCE)


@pytest.mark.parametrize("name", CIRCUITS)
@pytest.mark.parametrize("build", [built, oracle], ids=["engine", "oracle"])
def test_start_and_lap_length_are_the_recorded_ones(build: Any, name: str) -> None:
    track = build(name)
    expected = TRACES[f"geometry/{name}/start"]
    np.testing.assert_allclose([*track.start, track.length], expected, rtol=0.0, atol=TOLERANCE)


@pytest.mark.parametrize("harsh", [False, True], ids=["default config", "harsh config"])
@pytest.mark.parametrize("name", CIRCUITS)
def test_cars_driven_together_move_exactly_as_each_alone(name: str, harsh: bool) -> None:
    """Drive all runs of one track and config at once, a `placed` run as 60 cars; short runs stand still at the end."""
    runs = [run for run in RUNS if track_of(run) == name and (driver_of(run) in HARSH_DRIVERS) == harsh]
    drives = [(run, rows) for run in runs for _, rows in episodes(run)]
    ticks = min(400, max(len(rows) for _, rows in drives) - 1)
    actions = np.zeros((ticks, len(drives), 3))
    for car, (_, rows) in enumerate(drives):
        driven = min(ticks, len(rows) - 1)
        actions[:driven, car] = rows[1 : driven + 1, :3]

    together = Simulation(built(name), len(drives), config_of(runs[0]), seed=0)
    for car, (run, rows) in enumerate(drives):
        if driver_of(run) in PLACED_DRIVERS:
            place(together, car, rows[0])
    states, observations = record(together, actions)
    for car, (run, rows) in enumerate(drives):
        alone = Simulation(built(name), 1, config_of(run), seed=car)
        if driver_of(run) in PLACED_DRIVERS:
            place(alone, 0, rows[0])
        own_states, own_observations = record(alone, actions[:, car : car + 1])
        assert own_observations.tobytes() == observations[:, car : car + 1].tobytes(), f"{run}, car {car}"
        for field in states.dtype.fields or ():
            own, its = own_states[field][:, 0], states[field][:, car]
            assert own.tobytes() == its.tobytes(), f"{run}, car {car}: {field}"


@pytest.mark.parametrize(
    "run",
    ["track-01/placed/21", "track-02/wall/11", "track-02/reverse/21", "track-03/random/12", "track-03/placed/21"],
)
def test_the_oracle_reproduces_the_beginning_of_a_recorded_run(run: str) -> None:
    car = OracleCar(oracle(track_of(run)), config_of(run))
    own_start = driver_of(run) in PLACED_DRIVERS
    for first, expected in episodes(run):
        if first >= 120:
            break
        expected = expected[:120]
        if own_start:
            car.place(*(float(column(expected[0], name)) for name in PLACED))
        else:
            car.reset()
        actual = [as_row(expected[0, :3], car, car.observation, car.components)]
        for row in expected[1:]:
            car.step(row[:3])
            actual.append(as_row(row[:3], car, car.observation, car.components))
        skipped = 1 if own_start else 0
        assert_same(run, first + skipped, np.array(actual)[skipped:], expected[skipped:], COLUMNS, TOLERANCE)
