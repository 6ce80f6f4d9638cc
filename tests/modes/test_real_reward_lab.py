"""The reward lab in a real window: a term is typed, completed and trained with."""

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


def test_a_term_typed_in_the_window_is_trained_with(screen: XvfbScreen, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "settings.json").write_text('{"tour": "skipped"}')
    track = load_circuit("track-01")
    Simulation(track, config={"terms": {"own": "1"}})  # compiled here, so that the app need not
    command = [sys.executable, "-m", "racer_viewer", "--data-dir", str(data)]
    app = subprocess.Popen(command, env=screen.environment, stderr=subprocess.PIPE, text=True)
    try:
        eyes = Eyes(screen, track)
        wait_for(lambda: eyes.shows(ORDINARY.accent), "the menu")
        press(screen, "Down", "Down", "Down", "Return")
        wait_for(lambda: eyes.shows(MEDALS["gold"]), "the form of a new run")
        press(screen, *["Down"] * 7, "Return")  # Reward
        wait_for(lambda: eyes.shows(ORDINARY.good) and not eyes.shows(MEDALS["gold"]), "the ranking")
        press(screen, "Up", "Up", "Up", "Return")  # Add a term
        screen.do("type", "--delay", "90", "--", "smooth")
        press(screen, "Tab")
        screen.do("type", "--delay", "90", "--", "-0.001 * abs(steer_ch")
        wait_for(lambda: eyes.shows(ORDINARY.bad), "the mark of the error")
        press(screen, "Tab")
        screen.do("type", "--delay", "90", "--", ")")
        press(screen, "Return", "Escape", "Return")  # accept, leave, use this reward
        wait_for(lambda: eyes.shows(MEDALS["gold"]), "the form again")
        press(screen, *["Up"] * 7, "Return")  # Start
        wait_for(lambda: bool(list((data / "runs").glob("*/config.json"))), "the run")
        (path,) = (data / "runs").glob("*/config.json")
        assert json.loads(path.read_text())["rewards"]["terms"] == {"smooth": "-0.001 * abs(steer_change)"}
        log = path.with_name("live.jsonl")
        wait_for(lambda: log.is_file() and '"reward/smooth"' in log.read_text(), "the metric of the term")
        assert app.poll() is None
    finally:
        app.terminate()
        app.wait(LIMIT)
        assert app.stderr is not None
        assert "Traceback" not in app.stderr.read()
