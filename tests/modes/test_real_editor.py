"""The editor in a real window: a circuit is drawn with the mouse, saved, and an agent learns to lap on it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from racer_viewer.circuits.library import CircuitLibrary
from racer_viewer.run_history import RunEvent
from racer_viewer.training.run_folder import run_folders
from racer_viewer.training.run_log_reader import load_history
from racer_viewer.ui.theme import ORDINARY, Colour
from tests.modes.editing import oval
from tests.modes.eyes import SCREEN, WINDOW, press
from tests.modes.xvfb_screen import LIMIT, XvfbScreen, is_there
from tests.processes import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_there(), reason="no Xvfb or no xdotool")]

PROGRAM = """
import sys
from pathlib import Path
from racer_viewer.app.window import App
from racer_viewer.circuits.draft import Draft
from racer_viewer.modes.editor import open_editor

app = App(Path(sys.argv[1]))
open_editor(app.context, Draft())
app.run()
"""


def test_a_person_draws_saves_and_trains_in_a_window(screen: XvfbScreen, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "settings.json").write_text('{"tour": "skipped"}')
    app = subprocess.Popen([sys.executable, "-c", PROGRAM, str(data)], env=screen.environment)
    try:
        wait_for(lambda: _shows(screen, ORDINARY.accent), "the tool bar")
        screen.do("sleep", 0.5)
        begin = time.monotonic()
        _draw(screen)
        wait_for(lambda: _shows(screen, ORDINARY.good), "that the circuit can be driven")
        press(screen, "ctrl+s")
        wait_for(lambda: len(CircuitLibrary(data).entries()) == 1, "the file of the circuit")
        [entry] = CircuitLibrary(data).entries()
        assert entry.drivable, entry.problem
        press(screen, "g")
        wait_for(lambda: any(event.kind == "best" for event in _events(data)), "a clean lap")
        print(f"from an empty canvas to a clean lap: {time.monotonic() - begin:.0f} s")
        press(screen, "g", "Escape", "Up", "Return")  # the run is stopped and the editor left: nothing is unsaved
        screen.do("sleep", 0.5)
        press(screen, "Escape", "Return")
        assert app.wait(LIMIT) == 0
    finally:
        app.kill()
        app.wait()


def _draw(screen: XvfbScreen) -> None:
    """Draw a lap with the left button held."""
    left, top = (SCREEN[0] - WINDOW[0]) // 2, (SCREEN[1] - WINDOW[1]) // 2
    places = [(left + x, top + y) for x, y in oval()]
    screen.do("mousemove", *places[0], "sleep", 0.1, "mousedown", 1)
    for place in places:
        screen.do("mousemove", *place, "sleep", 0.02)
    screen.do("mouseup", 1)


def _shows(screen: XvfbScreen, colour: Colour) -> bool:
    return bool((screen.pixels == colour).all(axis=2).any())


def _events(data: Path) -> list[RunEvent]:
    return [event for folder in run_folders(data / "runs") for event in load_history(folder).events]
