"""The script that compares how engines learn: what it measures, and that it continues where it was interrupted."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def compare(file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "compare_learning.py"), str(file), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)


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


def test_the_table_has_medians_and_a_verdict_and_counts_missing_laps_as_infinite(tmp_path: Path) -> None:
    def result(engine: str, seed: int, first: int | None, lap: float) -> dict[str, object]:
        return {"engine": engine, "track": "track-01", "seed": seed, "steps": 1000, "first_lap": first,
                "first_clean_lap": first, "lap": lap, "clean": True, "seconds": 2.0}  # fmt: skip

    file = tmp_path / "results.json"
    equal = [result("native", 0, 95, 6.5), result("native", 1, 100, 6.6), result("native", 2, None, 9.0)]
    other = [result("sb3", seed, 102, 6.7) for seed in range(3)]
    file.write_text(json.dumps(equal + other))
    table = compare(file).stdout
    assert "100 (95 to inf)" in table
    assert "ratios of medians: 0.980, 0.980, 0.985: equal" in table
    file.write_text(json.dumps([*equal, result("sb3", 0, 50, 6.7)]))
    assert "DIFFERENT" in compare(file).stdout
