"""Circuits: bundled ones, random ones, and files."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from racer_env.engine import Driver, Simulation, Track, build_track, circuits, load_circuit
from racer_env.engine.circuit_check import check_track
from racer_env.engine.circuits import build_named
from racer_env.engine.random_circuits import DIAL_RANGES, Dial, dial_id, parse_random_name, random_control_points
from racer_env.engine.tables import crossing_walls
from racer_env.engine.walls import curvatures
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


@given(
    seed=st.integers(0, 10**18 - 1),
    dial=st.builds(Dial, *(st.floats(*DIAL_RANGES[key]) for key in ("length", "twist", "width"))),
)
@settings(max_examples=25, deadline=None)
def test_a_dial_gives_a_drivable_circuit_of_its_length_and_width(seed: int, dial: Dial) -> None:
    name = dial_id(seed, dial)
    assert dial_id(*parse_random_name(name)) == name
    assert random_control_points(*parse_random_name(name)) == random_control_points(*parse_random_name(name))
    track = build_named(name)
    assert track.length == pytest.approx(dial.length, rel=0.01)
    assert 2.0 * track.control_points[:, 2].mean() == pytest.approx(dial.width, rel=0.13, abs=1.0)


@pytest.mark.parametrize("twist", [0.0, 0.5, 1.0])
def test_circuits_from_a_dial_are_lapped_cleanly(twist: float) -> None:
    for seed in range(3):
        assert_drivable(dial_id(seed, Dial(1800.0, twist, 40.0)))


def test_more_twist_gives_more_bends() -> None:
    """Compare the sums of all turns of some circuits, which are 2 pi for an oval."""

    def turns(twist: float) -> float:
        tracks = [load_circuit(dial_id(seed, Dial(4000.0, twist, 30.0))) for seed in range(5)]
        bends = [curvatures(track.centreline, np.arange(0.0, track.length, 4.0), 4.0) for track in tracks]
        return float(np.mean([4.0 * np.abs(each).sum() for each in bends]))

    assert turns(0.0) + 3.0 < turns(0.5) < turns(1.0) - 3.0


def test_an_id_may_leave_out_properties_and_separate_them_by_commas() -> None:
    assert parse_random_name("random:7:twist=1") == (7, Dial(twist=1.0))
    assert parse_random_name("random:7:length=1500,twist=0.6,width=18") == (7, Dial(1500.0, 0.6, 18.0))
    assert dial_id(7, Dial(1e9, -1.0, 39.6)) == "random:7:length=8000:twist=0:width=40"


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
        ("random:1:twits=1", "did you mean twist"),
        ("random:1:twist=2", "from 0 to 1"),
        ("random:1:twist=nan", "from 0 to 1"),
        ("random:1:twist=1e-1", "from 0 to 1"),
        ("random:1:twist=", "from 0 to 1"),
        ("random:1:width=20:width=30", "one number from 16 to 80"),
        ("random:1:length=" + "9" * 60, "from 800 to 8000"),
        ("", "unknown circuit"),
    ],
)
def test_a_wrong_name_says_what_is_known(name: str, message: str) -> None:
    with pytest.raises(CircuitError, match=message):
        load_circuit(name)


def test_a_folder_is_not_a_circuit(tmp_path: Path) -> None:
    with pytest.raises(CircuitError):
        load_circuit(tmp_path)
