"""Quantities of a tick: each against what it says, computed another way."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from racer_env.engine import ANYWHERE, CAR, Driver, Simulation, Track, load_circuit, quantities
from racer_env.engine.quantities import CURVATURE_SPAN, LOOKS_AHEAD, QUANTITIES, QUANTITY_INDEX
from racer_env.engine.scoring import RecordedDrive, record_drive
from racer_env.engine.walls import curvatures

SEED = 11


def actions_of(track: Track, ticks: int, seed: int) -> NDArray[np.float64]:
    """A drive with noise: fast, off the road, into walls, and standing still at the end."""
    chance = np.random.default_rng(seed)
    simulation, driver = Simulation(track, 1, start=ANYWHERE, seed=SEED), Driver(track)
    actions = np.zeros((ticks, 3))
    for tick in range(ticks):
        actions[tick] = driver.act(simulation.cars)[0]
        if tick // 60 % 4 == 3:
            actions[tick] += chance.normal(size=3) * (0.6, 0.3, 0.3)
        if tick > ticks - 300:
            actions[tick] = 0.0, 0.0, 1.0
        simulation.step(actions[tick : tick + 1])
    return np.clip(actions, (-1.0, 0.0, 0.0), 1.0)


@pytest.fixture(scope="module", params=["track-01", "track-03", "random:5:hard"])
def driven(request: pytest.FixtureRequest) -> tuple[Track, RecordedDrive, NDArray[np.void]]:
    """A track, its recorded drive, and the rows of the car before and after every tick."""
    track = load_circuit(request.param)
    actions = actions_of(track, 2400, 5)
    simulation = Simulation(track, 1, start=ANYWHERE, seed=SEED)
    rows = np.zeros(len(actions) + 1, CAR)
    rows[0] = simulation.cars[0]
    for tick, action in enumerate(actions, 1):
        simulation.step(action[None])
        rows[tick] = simulation.cars[0]
    return track, record_drive(track, actions, ANYWHERE, SEED), rows


def test_names_are_those_of_their_places() -> None:
    for name, index in QUANTITY_INDEX.items():
        if not name.startswith("ray_"):
            assert getattr(quantities, f"_{name.upper()}") == index, name
    first = QUANTITY_INDEX["ray_0"]
    assert [QUANTITY_INDEX[f"ray_{ray}"] for ray in range(9)] == [*range(first, first + 9)]


def test_every_quantity_is_what_it_says(driven: tuple[Track, RecordedDrive, NDArray[np.void]]) -> None:
    track, drive, rows = driven
    before, now = rows[:-1], rows[1:]
    cos, sin = np.cos(now["heading"]), np.sin(now["heading"])
    directions = track.centreline.tangents(now["arc"])
    road = np.arctan2(directions[:, 1], directions[:, 0])
    heading_error = np.angle(np.exp(1j * (now["heading"] - road)))
    points = track.centreline.points(now["arc"])
    left = directions[:, 0] * (now["y"] - points[:, 1]) - directions[:, 1] * (now["x"] - points[:, 0])
    gained = (now["arc"] - before["arc"] + track.length / 2) % track.length - track.length / 2
    expected = {
        "speed": np.hypot(now["vx"], now["vy"]),
        "forward_speed": now["vx"] * cos + now["vy"] * sin,
        "sideways_speed": now["vy"] * cos - now["vx"] * sin,
        "acceleration": (now["speed"] - before["speed"]) * 60.0,
        "yaw_rate": now["yaw_rate"],
        "slip": now["slip_angle"],
        **{name: now[name] for name in ("steer", "throttle", "brake")},
        **{f"{name}_change": now[name] - before[name] for name in ("steer", "throttle", "brake")},
        "progress": gained / track.length,
        "advance": gained,
        "lap_fraction": now["arc"] / track.length,
        "lap_length": np.full(len(now), track.length),
        "centre_distance": now["centre_distance"],
        "centre_offset": np.copysign(now["centre_distance"], left),
        "half_width": now["half_width"],
        "edge_distance": now["half_width"] - now["centre_distance"],
        "heading_error": heading_error,
        **{
            name: curvatures(track.centreline, now["arc"] + ahead, CURVATURE_SPAN)
            for name, ahead in zip(
                ("curvature", "curvature_25", "curvature_50", "curvature_100"), LOOKS_AHEAD, strict=True
            )
        },
        "off_track": now["surface"] != 0,
        "on_shoulder": now["surface"] == 2,
        "on_runoff": now["surface"] == 1,
        "wall_contact": now["wall_contact"],
        "wall_distance": now["rays"].min(axis=1),
        **{f"ray_{ray}": now["rays"][:, ray] for ray in range(9)},
        "lap": now["lap"],
        "lap_time": now["lap_ticks"] / 60.0,
        "lap_finished": now["finished_lap_ticks"] > 0,
        "last_lap_time": now["last_lap_ticks"] / 60.0,
        "best_lap_time": now["best_lap_ticks"] / 60.0,
        "gate_passed": now["checkpoint"] != before["checkpoint"],
        "episode_time": np.arange(1, len(now) + 1) / 60.0,
        "still_time": now["stillness"] / 60.0,
    }
    assert expected.keys() == QUANTITY_INDEX.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(drive.column(name), values, rtol=1e-6, atol=1e-7, err_msg=name)
    assert drive.column("still_time").max() > 1.0
    assert drive.column("on_runoff").any()


def test_usual_values_are_within_their_range(driven: tuple[Track, RecordedDrive, NDArray[np.void]]) -> None:
    _, drive, _ = driven
    for quantity, column in zip(QUANTITIES, drive.quantities.T, strict=True):
        assert quantity.low - 1e-9 <= column.min(), quantity.name
        assert column.max() <= quantity.high + 1e-9, quantity.name


def test_the_drive_is_the_one_of_a_plain_simulation(driven: tuple[Track, RecordedDrive, NDArray[np.void]]) -> None:
    _, drive, rows = driven
    assert drive.column("speed").tobytes() == rows["speed"][1:].tobytes()
    assert drive.column("lap_finished").sum() == (rows["finished_lap_ticks"] > 0).sum()
    assert math.isclose(drive.column("progress").sum(), drive.amounts[:, 0].sum())
