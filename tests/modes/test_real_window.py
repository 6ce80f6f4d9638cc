"""The app in a real window: a lap is driven by the pixels on screen and by key presses; pause, resize, quit."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from racer_env.engine import Simulation, Track, load_circuit
from racer_viewer.modes.circuits import MEDALS
from racer_viewer.ui.theme import ORDINARY
from tests.modes.eyes import Eyes, press
from tests.modes.xvfb_screen import LIMIT, XvfbScreen, is_there
from tests.processes import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_there(), reason="no Xvfb or no xdotool")]

TARGET_SPEED, LOOK_AHEAD = 42.0, 34.0
"""Speed of a careful driver [units/s], and the distance of the point steered for [units]."""
MAX_LAP_TIME = 120.0
"""[s]"""


def test_a_person_drives_a_lap_pauses_resizes_and_quits(screen: XvfbScreen, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "settings.json").write_text('{"laps": 1, "overlays": ["timing", "map"], "tour": "skipped"}')
    track = load_circuit("track-01")
    Simulation(track)  # compiled here, so that the app need not
    command = [sys.executable, "-m", "racer_viewer", "--data-dir", str(data)]
    app = subprocess.Popen(command, env=screen.environment, stderr=subprocess.PIPE, text=True)
    try:
        eyes = Eyes(screen, track)
        wait_for(lambda: eyes.shows(ORDINARY.accent), "the menu")
        press(screen, "Return")
        wait_for(lambda: eyes.shows(MEDALS["gold"]), "the choice of circuits, with its medals")
        press(screen, "Return")
        wait_for(lambda: eyes.see() is not None, "the race")
        lap = _drive(screen, eyes, track, data)
        assert 8.0 < lap < MAX_LAP_TIME
        press(screen, "Return")  # again
        wait_for(lambda: eyes.see() is not None, "the race again")
        press(screen, "Escape")
        wait_for(lambda: eyes.see() is None, "the pause, which hides the panels")
        press(screen, "Escape")
        wait_for(lambda: eyes.see() is not None, "the race to go on")
        window = screen.do("getwindowfocus").strip()
        screen.do("windowsize", window, 1000, 600)
        wait_for(lambda: "1000x600" in screen.do("getwindowgeometry", window), "the smaller window")
        screen.do("sleep", 0.3)  # some frames in the smaller window
        assert app.poll() is None
        _quit(screen)
        assert app.wait(LIMIT) == 0
        assert app.stderr is not None
        assert "Traceback" not in app.stderr.read()
    finally:
        app.kill()
        app.wait()


def _quit(screen: XvfbScreen) -> None:
    """Quit by the keyboard: pause, last line, main menu, which asks."""
    press(screen, "Escape")
    press(screen, "Up")
    press(screen, "Return")
    screen.do("sleep", 0.2)
    press(screen, "Escape")
    press(screen, "Return")


def _drive(screen: XvfbScreen, eyes: Eyes, track: Track, data: Path) -> float:
    """Keep to the middle of the road until a lap is in the records; returns its time [s]."""
    arcs = np.arange(0.0, track.length, 2.0)
    line = track.centreline.points(arcs)
    seen: list[tuple[float, float, float]] = []
    held: set[str] = set()
    end = time.monotonic() + MAX_LAP_TIME
    try:
        while time.monotonic() < end:
            lap = _recorded(data)
            if lap is not None:
                return lap
            place = eyes.see()
            now = time.monotonic()
            if place is None:
                continue
            seen = [*seen[-12:], (now, *place)]
            speed, heading = _motion(seen, track)
            _hold(screen, held, "w", speed < TARGET_SPEED)
            nearest = int(np.hypot(*(line - place).T).argmin())
            goal = line[(nearest + int(LOOK_AHEAD / 2.0)) % len(line)]
            wanted = math.atan2(goal[1] - place[1], goal[0] - place[0])
            error = (wanted - heading + math.pi) % (2.0 * math.pi) - math.pi
            if speed > 5.0 and abs(error) > 0.05:
                _tap(screen, "a" if error > 0.0 else "d", min(0.06, abs(error) * 0.12))
            else:
                screen.do("sleep", 0.02)
    finally:
        for key in held:
            screen.do("keyup", key)
    raise AssertionError(f"no lap within {MAX_LAP_TIME:g} s; last seen at {seen[-1:]}")


def _motion(seen: list[tuple[float, float, float]], track: Track) -> tuple[float, float]:
    """Return speed and heading, from the position a quarter of a second ago."""
    now, x, y = seen[-1]
    before = next((each for each in seen if now - each[0] < 0.25), seen[0])
    seconds = now - before[0]
    dx, dy = x - before[1], y - before[2]
    way = math.hypot(dx, dy)
    if seconds <= 0.0 or way < 1.5:
        return (way / seconds if seconds > 0.0 else 0.0), track.start[2]
    return way / seconds, math.atan2(dy, dx)


def _hold(screen: XvfbScreen, held: set[str], key: str, down: bool) -> None:
    if down != (key in held):
        screen.do("keydown" if down else "keyup", key)
        (held.add if down else held.discard)(key)


def _tap(screen: XvfbScreen, key: str, seconds: float) -> None:
    screen.do("keydown", key, "sleep", f"{seconds:.3f}", "keyup", key)


def _recorded(data: Path) -> float | None:
    """Return the best lap in the records [s], if there is one; the app enters it after the race."""
    path = data / "records.sqlite"
    if not path.exists():
        return None
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as records:
            row = records.execute("SELECT min(best_lap) FROM record").fetchone()
    except sqlite3.Error:
        return None
    return row[0] / 60.0 if row and row[0] else None
