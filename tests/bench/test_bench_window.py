"""`bench render` and `bench start` measure real pictures and real processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from racer_viewer.bench import render, start

pytestmark = pytest.mark.timing


@pytest.mark.slow
def test_pictures_are_timed_layer_by_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    figures = render.measure(0.5, numbers=(1, 8), cameras=("follow", "turn"))
    assert [(case.circuit, case.camera, case.cars) for case in figures.cases] == [
        ("track-01", "follow", 1), ("track-01", "follow", 8), ("track-01", "turn", 1), ("track-01", "turn", 8),
        ("track-06", "follow", 1), ("track-06", "follow", 8), ("track-06", "turn", 1), ("track-06", "turn", 8),
    ]  # fmt: skip
    for case in figures.cases:
        assert 0.0 < case.p50 <= case.p99
        assert 0.0 < case.cpu_p50 <= case.cpu_p99
        assert {"ground", "rays", "gates", "panels"} <= set(case.layers)
        assert 0.2 * case.p50 < sum(p50 for p50, _ in case.layers.values()) < 2.0 * case.p99
    assert max(case.p50 for case in figures.cases) < 60.0
    assert figures.renderer == "software", "the dummy driver has no other"


@pytest.mark.slow
def test_one_command_measures_several_sizes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    render.run(0.3, True, [(960, 540), (1280, 720)], "software", "half")
    reports = json.loads(capsys.readouterr().out)["reports"]
    assert [report["size"] for report in reports] == [[960, 540], [1280, 720]]
    assert all("enlarging" in case["layers"] for report in reports for case in report["cases"])


@pytest.mark.slow
def test_the_menu_is_there_in_about_the_time_of_a_bare_window() -> None:
    environment = {**os.environ, "SDL_VIDEODRIVER": "dummy"}
    command = [sys.executable, "-m", "racer_viewer", "bench", "start", "--rounds", "3", "--json"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    figures = json.loads(result.stdout)
    assert set(figures["seconds"]) == {start.BARE, start.MENU}
    assert figures["ratio"] < 6.0


def test_nothing_heavy_is_imported_before_the_menu_is_shown(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
import racer_viewer.cli
from racer_viewer.app.window import App
app = App(Path(sys.argv[1]))
app.frame(0.0)
heavy = ("numpy", "numba", "gymnasium", "torch", "stable_baselines3", "racer_env")
print([name for name in heavy if name in sys.modules])
app.close()
"""
    environment = {**os.environ, "SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy"}
    command = [sys.executable, "-c", code, str(tmp_path)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert result.stdout.splitlines()[-1] == "[]", result.stderr
