"""Watching and replays in a real window, with real keys and a real mouse."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

from racer_env.engine import Simulation, Track, load_circuit
from racer_viewer.replays import load_replay, trace_replay
from racer_viewer.ui.theme import ORDINARY
from tests.modes.eyes import SCREEN, WINDOW, Eyes, press
from tests.modes.xvfb_screen import LIMIT, XvfbScreen, is_there
from tests.processes import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_there(), reason="no Xvfb or no xdotool")]

MAP_PIXEL = 6.0
"""Minimum distance of two positions that the map shows as different [units]."""
OVERLAYS = '{"tour": "skipped", "overlays": ["timing", "map"], "name": "Anna"}'


@pytest.fixture
def track() -> Track:
    track = load_circuit("track-01")
    Simulation(track)  # compiled here, so that the app need not
    return track


@contextmanager
def running(screen: XvfbScreen, data: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    data.mkdir(exist_ok=True)
    (data / "settings.json").write_text(OVERLAYS)
    command = [sys.executable, "-m", "racer_viewer", "--data-dir", str(data), *arguments]
    app = subprocess.Popen(command, env=screen.environment, stderr=subprocess.PIPE, text=True)
    try:
        yield app
    finally:
        app.kill()
        app.wait()


def way_within(eyes: Eyes, seconds: float) -> float:
    """Return the distance that the car moves in this time [units]."""
    first = eyes.see()
    end = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() >= end, "the end of the measurement")
    second = eyes.see()
    assert first is not None
    assert second is not None
    return float(np.hypot(second[0] - first[0], second[1] - first[1]))


def ends_well(app: subprocess.Popen[str]) -> bool:
    code = app.wait(LIMIT)
    assert app.stderr is not None
    errors = app.stderr.read()
    assert "Traceback" not in errors, errors
    return code == 0


def test_a_person_watches_stops_time_takes_the_wheel_films_and_leaves(
    screen: XvfbScreen, track: Track, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with running(screen, data, "watch", "champion", "--track", "track-01") as app:
        eyes = Eyes(screen, track)
        wait_for(lambda: eyes.see() is not None, "the car")
        wait_for(eyes.sees_no_keys, "the keys to go")
        assert way_within(eyes, 0.6) > MAP_PIXEL, "it drives"
        press(screen, "space")
        assert way_within(eyes, 0.6) < MAP_PIXEL, "time stands"
        press(screen, "space")
        assert way_within(eyes, 0.6) > MAP_PIXEL
        press(screen, "t")
        screen.do("keydown", "s")
        wait_for(lambda: way_within(eyes, 0.3) < MAP_PIXEL, "the brake of the person at the wheel")
        screen.do("keyup", "s")
        press(screen, "t")
        wait_for(lambda: way_within(eyes, 0.3) > MAP_PIXEL, "the agent to go on")
        press(screen, "F10")
        way_within(eyes, 1.0)
        press(screen, "F10")
        wait_for(lambda: eyes.see() is None, "the film to be made")
        wait_for(lambda: len(list((data / "films").glob("racer-*.mp4"))) == 1, "the film")
        wait_for(lambda: eyes.see() is not None, "the car again")
        press(screen, "F12", "k")
        wait_for(lambda: len(list((data / "screenshots").glob("*.png"))) == 1, "the screenshot")
        wait_for(lambda: len(list((data / "replays").glob("*.racer"))) == 1, "the replay")
        press(screen, "Escape", "Up", "Return")  # leave watching
        wait_for(lambda: eyes.see() is None and eyes.shows(ORDINARY.accent), "the menu")
        press(screen, "Up", "Return")
        assert ends_well(app)
    (film,) = (data / "films").glob("*.mp4")
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(film)
    assert 40 < frames < 200
    assert abs(frames / 60.0 - seconds) < 0.02
    (kept,) = (data / "replays").glob("*.racer")
    replay = load_replay(kept)
    trace = trace_replay(replay)
    assert trace.reward == replay.reward
    assert tuple(lap.ticks for lap in trace.laps) == replay.laps


def test_a_person_drags_along_the_timeline_of_a_replay(screen: XvfbScreen, track: Track, tmp_path: Path) -> None:
    data = tmp_path / "data"
    kept = make_replay(data)
    trace = trace_replay(load_replay(kept))
    with running(screen, data, "replay", str(kept)) as app:
        eyes = Eyes(screen, track, bottom=58)  # the timeline
        wait_for(lambda: eyes.see() is not None, "the car")
        press(screen, "space")
        for share in (0.8, 0.25, 0.5):
            drag_to(screen, share)
            tick = round(share * trace.ticks)
            near = [np.array([trace.rows["x"][at], trace.rows["y"][at]]) for at in range(tick - 4, tick + 5)]

            def is_there_now(near: list[np.ndarray] = near) -> bool:
                place = eyes.see()
                return place is not None and min(float(np.hypot(*(each - place))) for each in near) < MAP_PIXEL

            wait_for(is_there_now, f"the car where it was at tick {tick}")
        press(screen, "Escape", "Up", "Return")
        assert ends_well(app)


def make_replay(data: Path) -> Path:
    """Save a replay of the champion's first lap."""
    from racer_viewer.agents import load_agent
    from racer_viewer.modes.race import Entrant, Race, RaceSetup
    from racer_viewer.replays import save_replay

    race = Race(RaceSetup("track-01", (Entrant("champion", (0, 0, 0), load_agent("champion")),)))
    tick = race.step()
    while not tick.laps:
        tick = race.step()
    replay = tick.followed.replay()
    assert replay is not None
    data.mkdir()
    path = data / "lap.racer"
    save_replay(replay, path)
    return path


def drag_to(screen: XvfbScreen, share: float) -> None:
    """Drag the mouse along the rail of the timeline to this share of its length."""
    import pygame

    from racer_viewer.render.overlays import lap_time
    from racer_viewer.ui.theme import Theme, fitting_scale
    from racer_viewer.ui.timeline import Timeline

    timeline = Timeline(502, lap_time, lambda at: None, lambda: None)
    timeline.draw(pygame.Surface(WINDOW), Theme(fitting_scale(WINDOW)))
    left, top = (SCREEN[0] - WINDOW[0]) // 2, (SCREEN[1] - WINDOW[1]) // 2
    y = top + timeline.rail.centery
    middle, goal = (left + timeline.rail.left + round(timeline.rail.width * part) for part in (0.6, share))
    screen.do("mousemove", middle, y, "mousedown", 1, "mousemove", goal, y, "mouseup", 1)
