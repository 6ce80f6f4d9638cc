"""The script that compares how engines learn: what it measures, and that it continues where it was interrupted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def compare(file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "compare_learning.py"), str(file), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)


@pytest.mark.slow
def test_results_are_kept_and_not_measured_twice(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    options = ("--steps", "8000", "--tracks", "track-01", "--engines", "native")
    first = compare(file, "--seeds", "1", *options)
    assert first.returncode == 0, first.stderr
    (one,) = json.loads(file.read_text())
    assert (one["engine"], one["track"], one["seed"], one["steps"]) == ("native", "track-01", 0, 8192)
    assert one["first_clean_lap"] is None, "nobody laps before the first update"
    again = compare(file, "--seeds", "2", *options)
    assert again.stderr.count("Result(") == 1
    assert [each["seed"] for each in json.loads(file.read_text())] == [0, 1]
    assert json.loads(file.read_text())[0] == one
    assert again.stdout.splitlines()[1].split()[:3] == ["track-01", "native", "2"]


ENGINES = ("native", "sb3")
ROLLOUT = 8192
"""Steps of a rollout of the preset."""


def result(track: str, engine: str, seed: int, rollouts: int | None, lap: float | None) -> dict[str, object]:
    first = rollouts and rollouts * ROLLOUT
    return {"engine": engine, "track": track, "seed": seed, "steps": 1000, "first_lap": first,
            "first_clean_lap": first, "lap": lap, "clean": True, "seconds": 2.0}  # fmt: skip


def test_the_table_compares_medians_and_ranks_and_counts_missing_laps_as_infinite(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    few = [("native", 0, 9, 6.5), ("native", 1, 10, 6.6), ("native", 2, None, 9.0)]
    equal = [*few, *(("sb3", seed, 10, 6.7) for seed in range(3))]
    many = [
        (engine, seed, first + seed % 3, None) for engine, first in (("native", 9), ("sb3", 10)) for seed in range(60)
    ]
    circuits = {
        "equal": equal,
        "other": [*few, ("sb3", 0, 5, 6.7)],
        "many": many,
        "none": [*few[2:], ("sb3", 0, None, 9.0)],
    }
    file.write_text(json.dumps([result(track, *each) for track, rows in circuits.items() for each in rows]))
    lines = compare(file).stdout.splitlines()

    def verdict(track: str, column: str) -> str:
        (line,) = [line for line in lines if line.startswith(track) and f" {column}: " in line]
        return line.split(": ", 1)[1]

    first, flying = "first clean lap [steps]", "flying lap [s]"
    assert any("81,920 (73,728 to inf)" in line for line in lines if line.split()[:2] == ["equal", "native"])
    assert verdict("equal", first) == "ratio of medians 1.000 (equal); as different by chance: 100%"
    assert verdict("equal", flying) == "ratio of medians 0.985 (equal); as different by chance: 70%"
    assert "(DIFFERENT)" in verdict("other", first)
    assert verdict("none", first) == "reached by too few"
    assert verdict("many", first) == "ratio of medians 0.909 (equal); as different by chance: 0%"


@pytest.mark.slow
def test_a_run_may_end_with_its_first_clean_lap(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    options = ("--first-laps", "--seeds", "1", "--tracks", "track-01", "--engines", "native")
    assert compare(file, *options).returncode == 0
    (one,) = json.loads(file.read_text())
    assert one["clean"]
    assert one["lap"] is None
    assert one["first_clean_lap"] % ROLLOUT == 0
    assert one["first_clean_lap"] < one["steps"] <= one["first_clean_lap"] + ROLLOUT
