"""Circuits: bundled ones, random ones, and files."""

import json
from pathlib import Path

import numpy as np
import pytest

from racer_env.engine import Driver, Simulation, Track, build_track, circuits, load_circuit
from racer_env.engine.circuit_check import check_track
from racer_env.engine.tables import crossing_walls
from racer_env.errors import CircuitError

REFERENCE = json.loads((Path(__file__).parent.parent / "data" / "reference_circuits.json").read_text())
SQUARE = [[-200, -200, 15], [0, -200, 15], [200, -200, 15], [200, 0, 15], [200, 200, 15], [0, 200, 15], [-200, 200, 15],
          [-200, 0, 15]]  # fmt: skip


def drive(track: Track, laps: int, limit: int = 6000) -> tuple[list[int], int, int]:
    """Return the lap times of the rule-based driver [ticks], and its ticks in wall contact and off the road."""
    driver, simulation = Driver(track), Simulation(track)
    times: list[int] = []
    contacts = off_road = 0
    for _ in range(limit):
        result = simulation.step(driver.act(simulation.cars))
        contacts += int(simulation.cars.wall_contact[0])
        off_road += int(simulation.cars.surface[0] != 0)
        if result.finished_lap_ticks[0]:
            times.append(int(result.finished_lap_ticks[0]))
            if len(times) == laps:
                break
    return times, contacts, off_road


def write(path: Path, **changes: object) -> Path:
    content = {"name": "Mine", "control_points": SQUARE} | changes
    path.write_text(json.dumps(content))
    return path


def test_the_three_classic_circuits_are_bundled_unchanged() -> None:
    bundled = {circuit.id: circuit for circuit in circuits()}
    for name, reference in REFERENCE.items():
        assert bundled[name].name == (reference["name"] if name != "track-01" else "Meadow Ring")
        assert bundled[name].gates == reference["gates"]
        np.testing.assert_array_equal(bundled[name].control_points, reference["control_points"])
    assert len(bundled) >= 6


def test_a_definition_loads_as_its_name_does() -> None:
    circuit = circuits()[0]
    assert load_circuit(circuit).circuit is circuit
    np.testing.assert_array_equal(load_circuit(circuit).outer, load_circuit(circuit.id).outer)


@pytest.mark.parametrize("name", [circuit.id for circuit in circuits()])
def test_the_driver_laps_every_bundled_circuit_cleanly_and_earns_a_medal(name: str) -> None:
    track = load_circuit(name)
    times, contacts, off_road = drive(track, laps=2)
    assert (contacts, off_road) == (0, 0)
    assert track.circuit is not None
    assert track.circuit.medals is not None
    medals = track.circuit.medals
    assert medals.author is not None
    assert medals.author < medals.gold < medals.silver < medals.bronze
    assert min(times) / 60.0 <= medals.bronze
    assert medals.gold < 1.02 * min(times) / 60.0


def assert_drivable(name: str) -> None:
    track = load_circuit(name)
    assert len(crossing_walls(track.grid)) == 0
    times, contacts, off_road = drive(track, laps=1)
    assert len(times) == 1, f"{name}: no lap"
    assert (contacts, off_road) == (0, 0), f"{name}: touched a wall or left the road"


@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_random_circuits_can_be_driven(difficulty: str) -> None:
    for seed in range(3):
        assert_drivable(f"random:{seed}:{difficulty}")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_a_thousand_consecutive_seeds_can_be_driven(first: int) -> None:
    for seed in range(first, first + 100):
        assert_drivable(f"random:{seed}")


@pytest.mark.slow
@pytest.mark.parametrize("difficulty", ["easy", "hard"])
def test_many_seeds_of_the_other_difficulties_can_be_driven(difficulty: str) -> None:
    for seed in range(1000, 1100):
        assert_drivable(f"random:{seed}:{difficulty}")


def test_a_seed_always_gives_the_same_circuit() -> None:
    """Compare with recorded points: other machines and later versions must give the same."""
    recorded = json.loads((Path(__file__).parent.parent / "data" / "random_circuits.json").read_text())
    for name, points in recorded.items():
        np.testing.assert_array_equal(load_circuit(name).control_points, points)


def test_seeds_and_difficulties_give_different_circuits() -> None:
    names = ["random:1", "random:2", "random:1:easy", "random:1:hard"]
    lengths = {load_circuit(name).length for name in names}
    assert len(lengths) == len(names)
    assert load_circuit("random:1").length == load_circuit("random:1:medium").length


def test_a_circuit_file_is_loaded_by_its_path(tmp_path: Path) -> None:
    track = load_circuit(write(tmp_path / "mine.json", gates=12))
    assert track.circuit is not None
    assert (track.circuit.id, track.circuit.name) == ("mine", "Mine")
    assert len(track.gates) == 12
    assert load_circuit(str(tmp_path / "mine.json")).length == track.length


NARROW = [point if i != 3 else [200, 0, 0.9] for i, point in enumerate(SQUARE)]
EIGHT = [[-200, -100, 10], [-50, -50, 10], [50, 50, 10], [200, 100, 10], [280, 0, 10], [200, -100, 10], [50, -50, 10],
         [-50, 50, 10], [-200, 100, 10], [-280, 0, 10]]  # fmt: skip
TIGHT = [[0, 0, 20], [300, 0, 20], [310, 10, 20], [300, 20, 20], [0, 20, 20], [-150, 10, 20]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"control_points": SQUARE[:3]}, "at least 4"),
        ({"control_points": NARROW}, "control point 3: the road is 1.8 wide there, narrower than the car"),
        ({"control_points": EIGHT}, "the walls cross near"),
        ({"control_points": TIGHT}, "the inner wall is turned inside out"),
        ({"control_points": [*SQUARE[:2], SQUARE[1], *SQUARE[2:]]}, "control point 2 is nearly the same"),
        ({"control_points": [*SQUARE[:5], [1, 2]]}, "$.control_points[5]"),
        ({"control_points": [*SQUARE[:5], [1, 2, "wide"]]}, "$.control_points[5]"),
        ({"control_points": [*SQUARE[:5], [1e9, 0, 15]]}, "control point 5"),
        ({"control_points": [[100 * x, 100 * y, 20] for x, y, _ in SQUARE]}, "units long: at most 20000"),
        ({"control_points": 5}, "$.control_points"),
        ({"name": 3}, "$.name"),
        ({"gates": 0}, "$.gates"),
        ({"colour": "red"}, "colour"),
        ({"medals": {"gold": -1, "silver": 2, "bronze": 3}}, "$.medals.gold"),
    ],
)
def test_a_circuit_that_cannot_be_driven_says_which_point_is_the_problem(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    path = write(tmp_path / "mine.json", **changes)
    with pytest.raises(CircuitError) as error:
        load_circuit(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_point_named_for_crossing_walls_is_where_they_cross() -> None:
    with pytest.raises(CircuitError, match="after control points") as error:
        check_track(build_track(EIGHT))
    named = {int(word) for word in str(error.value).replace(":", " ").replace(",", " ").split() if word.isdigit()}
    assert named & {0, 1, 2, 5, 6, 7}


@pytest.mark.parametrize("content", ["", "{", "not json", '{"name": NaN}'])
def test_a_file_that_is_not_json_says_so(tmp_path: Path, content: str) -> None:
    (tmp_path / "mine.json").write_text(content)
    with pytest.raises(CircuitError, match=r"mine\.json is not JSON"):
        load_circuit(tmp_path / "mine.json")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("track-1", "did you mean track-01"),
        ("silverstone", "known: track-01"),
        ("missing.json", "does not exist"),
        ("random:", "whole number"),
        ("random:-3", "whole number"),
        ("random:1e3", "whole number"),
        ("random:٣", "whole number"),
        ("random:1:hrad", "did you mean hard"),
        ("random:1:x:y", "unknown difficulty"),
        ("", "unknown circuit"),
    ],
)
def test_a_wrong_name_says_what_is_known(name: str, message: str) -> None:
    with pytest.raises(CircuitError, match=message):
        load_circuit(name)


def test_a_folder_is_not_a_circuit(tmp_path: Path) -> None:
    with pytest.raises(CircuitError):
        load_circuit(tmp_path)
