"""A newcomer's first training in a real window: three keys, and within a minute or so a car that can be raced."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from racer_env.engine import Simulation, load_circuit
from racer_viewer.modes.circuits import MEDALS
from racer_viewer.ui.theme import ORDINARY
from tests.modes.eyes import Eyes, press
from tests.modes.xvfb_screen import LIMIT, XvfbScreen, is_there
from tests.processes import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_there(), reason="no Xvfb or no xdotool")]

LONGEST = 240.0
"""A minute is what it takes on a machine that does nothing else [s]."""


def test_a_newcomer_trains_an_agent_and_races_it(screen: XvfbScreen, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "settings.json").write_text('{"overlays": ["timing", "map"]}')
    track = load_circuit("track-01")
    Simulation(track)  # compiled here, so that the app need not
    command = [sys.executable, "-m", "racer_viewer", "--data-dir", str(data)]
    app = subprocess.Popen(command, env=screen.environment, stderr=subprocess.PIPE, text=True)
    try:
        eyes = Eyes(screen, track)
        wait_for(lambda: eyes.shows(ORDINARY.accent), "the menu")
        press(screen, "Down", "Down", "Return")
        wait_for(lambda: eyes.shows(MEDALS["gold"]), "the setup, with the circuit's medals")
        press(screen, "Return")  # Start
        wait_for(lambda: bool(list((data / "runs").glob("*/policies.bin"))), "the first update")
        (run,) = (data / "runs").iterdir()
        wait_for(lambda: (run / f"{run.name}_best.zip").is_file(), "a lap that is worth keeping", LONGEST)
        wait_for(lambda: not (run / "learner.json").exists(), "the end of the learning", LONGEST)
        events = [json.loads(line) for line in (run / "live.jsonl").read_text().splitlines()]
        assert any("lap" in json.dumps(line) for line in events)
        time.sleep(2.0)
        press(screen, "Return")  # Race it
        wait_for(lambda: eyes.see() is not None, "the race")
        assert app.poll() is None
        press(screen, "Escape", "Up", "Return")  # back to the end of the training
        time.sleep(0.5)
        press(screen, "Up", "Return")  # to the menu
        time.sleep(0.5)
        press(screen, "Escape")
        assert app.wait(LIMIT) == 0
        assert app.stderr is not None
        assert "Traceback" not in app.stderr.read()
    finally:
        app.kill()
        app.wait()
