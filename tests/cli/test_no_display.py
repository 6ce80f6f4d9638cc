"""The app without a display: it films a lap and prints the path."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a display")
def test_a_lap_is_filmed_and_its_path_printed(tmp_path: Path) -> None:
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-m", "racer_viewer", "--data-dir", str(tmp_path)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    said = re.fullmatch(r"(.*lap\.gif): the champion on Meadow Ring, a lap of ([\d.]+) s\n", result.stdout)
    assert said is not None, result.stdout
    with Image.open(said[1]) as film:
        seconds = film.n_frames * film.info["duration"] / 1000.0
        assert film.info["duration"] == 50
        assert seconds == pytest.approx(float(said[2]), abs=0.1)
        film.seek(film.n_frames // 2)
        colours = film.convert("RGB").getcolors(maxcolors=100_000)
    assert colours is not None
    assert len(colours) > 30
