"""The engine benchmark, for real: it runs, its figures hang together, and generous floors hold."""

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timing]


@pytest.fixture(scope="module")
def figures() -> dict:
    command = [sys.executable, "-m", "racer_viewer", "bench", "engine", "--quick", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_many_cars_are_many_times_faster_than_cartpole(figures: dict) -> None:
    assert figures["ratios"]["1024 cars"] > 4.0
    assert figures["ratios"]["1 car from Python"] > 1.5


def test_the_index_is_many_times_faster_than_brute_force(figures: dict) -> None:
    assert figures["faster_than_brute_force"] > 10.0


def test_cost_hardly_grows_with_the_length_of_the_circuit(figures: dict) -> None:
    assert figures["long_circuit_cost"]["64 cars"] < 2.0


def test_a_car_gets_cheaper_in_company(figures: dict) -> None:
    assert figures["cost_by_cars"]["1024"] < figures["cost_by_cars"]["1"]


def test_the_parts_of_a_tick_add_up_to_less_than_the_tick(figures: dict) -> None:
    assert set(figures["nanoseconds_per_car"]) == {"centreline", "rays", "car", "walls"}
    assert sum(figures["nanoseconds_per_car"].values()) < 2.0 * figures["cost_by_cars"]["1024"]
