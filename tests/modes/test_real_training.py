"""A first training run in a real window: three keys, and about a minute later a policy to race against."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from racer_env.engine import Simulation, load_circuit
from racer_viewer.modes.circuits import MEDALS
from racer_viewer.ui.theme import ORDINARY
from tests.modes.eyes import Eyes, press
from tests.modes.xvfb_screen import LIMIT, XvfbScreen, is_there
from tests.processes import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_there(), reason="no Xvfb or no xdotool")]

TRAINING_TIMEOUT = 240.0
"""Timeout of the training [s], which takes a minute on an idle machine."""


def test_a_newcomer_trains_an_agent_and_races_it(screen: XvfbScreen, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "settings.json").write_text('{"overlays": ["timing", "map"], "tour": "skipped"}')
    track = load_circuit("track-01")
    Simulation(track)  # compiled here, so that the app need not
    command = [sys.executable, "-m", "racer_viewer", "--data-dir", str(data)]
    app = subprocess.Popen(command, env=screen.environment, stderr=subprocess.PIPE, text=True)
    try:
        eyes = Eyes(screen, track)
        wait_for(lambda: eyes.shows(ORDINARY.accent), "the menu")
        press(screen, "Down", "Down", "Down", "Return")
        wait_for(lambda: eyes.shows(MEDALS["gold"]), "the setup, with the circuit's medals")
        press(screen, "Return")  # Start
        wait_for(lambda: bool(list((data / "runs").glob("*/policies.bin"))), "the first update")
        (run,) = (data / "runs").iterdir()
        wait_for(lambda: (run / f"{run.name}_best.zip").is_file(), "a lap that is worth keeping", TRAINING_TIMEOUT)
        wait_for(lambda: not (run / "learner.json").exists(), "the end of the learning", TRAINING_TIMEOUT)
        events = [json.loads(line) for line in (run / "live.jsonl").read_text().splitlines()]
        assert any("lap" in json.dumps(line) for line in events)
        wait_for(lambda: press(screen, "Return") or eyes.see() is not None, "the race")
        assert app.poll() is None
        press(screen, "Escape", "Up", "Return")  # back to the end screen of the run
        wait_for(lambda: eyes.see() is None, "the end screen")
        press(screen, "Up", "Return")  # main menu
        press(screen, "Escape", "Return")  # the menu asks first
        assert app.wait(LIMIT) == 0
        assert app.stderr is not None
        assert "Traceback" not in app.stderr.read()
    finally:
        app.kill()
        app.wait()
