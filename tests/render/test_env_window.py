"""The window of an environment: what is in its pictures, and how it opens and closes."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pygame
import pytest

from racer_env import RacerEnv
from racer_env.engine import Driver, Simulation, Track, build_track, load_circuit
from racer_viewer.render.camera import FAST_SCALE, REFERENCE_HEIGHT, REST_SCALE
from racer_viewer.render.car import ENLARGED
from racer_viewer.render.env_window import SIZE, EnvRenderer, open_env_window
from racer_viewer.ui.theme import ORDINARY

WIDTH, HEIGHT = SIZE
CENTRE = (WIDTH / 2, HEIGHT / 2)


@pytest.fixture(scope="module")
def track() -> Track:
    return load_circuit("track-01")


def car_of(simulation: Simulation, **changes: Any) -> np.void:
    row = simulation.cars[0].copy()
    for name, value in changes.items():
        row[name] = value
    return row


def picture_of(track: Track, car: dict[str, Any], window: EnvRenderer | None = None) -> np.ndarray:
    picture = (window or open_env_window(False)).draw(track, car)
    assert picture is not None
    return picture


def place_of_car(picture: np.ndarray) -> np.ndarray:
    """Return the centre of the car's colour as x, y; its dot on the map has the same colour."""
    red = (np.abs(picture.astype(int) - ORDINARY.player) <= 12).all(axis=2)
    red[HEIGHT // 2 :, 3 * WIDTH // 4 :] = False
    found = np.argwhere(red)[:, ::-1]
    place = np.median(found, axis=0)
    body = found[(np.abs(found - place) < 20.0).all(axis=1)]
    assert len(body) >= 1.6 * (FAST_SCALE * HEIGHT / REFERENCE_HEIGHT) ** 2, "pixels, of a car seen from farthest away"
    return body.mean(axis=0)


def test_a_picture_has_the_size_and_type_that_gymnasium_wants(track: Track) -> None:
    picture = picture_of(track, car_of(Simulation(track)))
    assert picture.shape == (HEIGHT, WIDTH, 3) == (640, 960, 3)
    assert picture.dtype == np.uint8
    assert picture.flags.c_contiguous
    assert picture.flags.writeable
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 100


def test_pictures_do_not_change_when_the_next_one_is_drawn(track: Track) -> None:
    window, simulation = open_env_window(False), Simulation(track)
    first = picture_of(track, car_of(simulation), window)
    kept = first.copy()
    picture_of(track, car_of(simulation, x=50.0), window)
    np.testing.assert_array_equal(first, kept)


def test_a_car_at_rest_is_in_the_middle(track: Track) -> None:
    place = place_of_car(picture_of(track, car_of(Simulation(track))))
    np.testing.assert_allclose(place, CENTRE, atol=0.5 * ENLARGED * REST_SCALE * HEIGHT / REFERENCE_HEIGHT)


@pytest.mark.parametrize("name", ["track-01", "track-03"])
def test_the_car_stays_in_the_picture_as_it_drives(name: str) -> None:
    track = load_circuit(name)
    window, simulation, driver = open_env_window(False), Simulation(track), Driver(track)
    before = picture_of(track, car_of(simulation), window)
    for tick in range(180):
        simulation.step(driver.act(simulation.cars))
        picture = picture_of(track, car_of(simulation), window)
        if tick % 30 == 29:
            x, y = place_of_car(picture)
            assert 0.15 * WIDTH < x < 0.85 * WIDTH
            assert 0.15 * HEIGHT < y < 0.85 * HEIGHT
            assert (picture != before).mean() > 0.05
            before = picture


def test_a_car_that_was_put_elsewhere_is_followed_at_once(track: Track) -> None:
    window, simulation = open_env_window(False), Simulation(track)
    picture_of(track, car_of(simulation, vx=160.0), window)
    elsewhere = car_of(simulation, x=-simulation.cars.x[0], y=-simulation.cars.y[0])
    np.testing.assert_array_equal(picture_of(track, elsewhere, window), picture_of(track, elsewhere))


def test_figures_follow_the_car(track: Track) -> None:
    simulation = Simulation(track)
    plain = picture_of(track, car_of(simulation))
    for change in ({"lap": 7}, {"lap_ticks": 100}, {"last_lap_ticks": 555}):
        there = np.argwhere((picture_of(track, car_of(simulation, **change)) != plain).any(axis=2))
        assert len(there) > 10
        assert (there[:, 1] < 0.3 * WIDTH).all()


def test_another_track_is_another_picture_and_the_first_comes_back(track: Track) -> None:
    window, other = open_env_window(False), load_circuit("track-03")
    first = picture_of(track, car_of(Simulation(track)), window)
    assert (picture_of(other, car_of(Simulation(other)), window) != first).mean() > 0.2
    np.testing.assert_array_equal(picture_of(track, car_of(Simulation(track)), window), first)


def test_a_track_without_a_name_can_be_drawn(track: Track) -> None:
    bare = build_track(track.control_points)
    place_of_car(picture_of(bare, car_of(Simulation(bare))))


def test_an_environment_draws_pictures_without_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("racer_env.env.open_window", open_env_window)
    env = RacerEnv(render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    for _ in range(60):
        env.step(np.array([0.0, 1.0, 0.0], np.float32))
    second = env.render()
    env.reset(options={"circuit": "track-03"})
    third = env.render()
    assert (first != second).any()
    assert (second != third).mean() > 0.2
    env.close()


@pytest.fixture
def dummy_display(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Dummy video driver."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield
    pygame.display.quit()


def click_close(window: EnvRenderer) -> None:
    assert window.screen is not None
    pygame.event.post(pygame.event.Event(pygame.WINDOWCLOSE, window=window.screen.window))


@pytest.mark.usefixtures("dummy_display")
def test_a_window_shows_what_a_picture_shows(track: Track) -> None:
    window, car = open_env_window(True), car_of(Simulation(track))
    assert window.draw(track, car) is None
    assert window.screen is not None
    for _ in range(60):
        window.draw(track, car)
    shown = pygame.surfarray.array3d(window.screen.surface).swapaxes(0, 1)
    np.testing.assert_array_equal(shown, picture_of(track, car))
    window.close()
    window.close()


@pytest.mark.usefixtures("dummy_display")
def test_a_window_that_was_closed_stays_closed_and_the_other_goes_on(track: Track) -> None:
    first, second = open_env_window(True), open_env_window(True)
    car = car_of(Simulation(track))
    for window in (first, second):
        window.draw(track, car)
    click_close(first)
    for window in (second, first, second, first):
        assert window.draw(track, car) is None
    assert first.screen is not None
    assert second.screen is not None
    assert not first.screen.is_open()
    assert second.screen.is_open()
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    second.draw(track, car)
    assert not second.screen.is_open()


@pytest.mark.usefixtures("dummy_display")
def test_a_window_draws_no_more_than_sixty_times_a_second(track: Track) -> None:
    window, car = open_env_window(True), car_of(Simulation(track))
    window.draw(track, car)
    start = time.perf_counter()
    for _ in range(30):
        window.draw(track, car)
    assert time.perf_counter() - start > 29 / 60
    click_close(window)
    start = time.perf_counter()
    for _ in range(1000):
        window.draw(track, car)
    assert time.perf_counter() - start < 1.0, "nobody watches: no need to wait"


@pytest.mark.usefixtures("dummy_display")
def test_an_environment_goes_on_after_its_window_was_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[EnvRenderer] = []
    monkeypatch.setattr(
        "racer_env.env.open_window", lambda visible: opened.append(open_env_window(visible)) or opened[0]
    )
    env = RacerEnv(render_mode="human")
    env.reset(seed=0)
    env.step([0.0, 1.0, 0.0])
    click_close(opened[0])
    for _ in range(5):
        info = env.step([0.0, 1.0, 0.0])[4]
    assert info["stepCount"] == 6
    assert env.render() is None
    env.close()


def python(code: str, **environment: str) -> "subprocess.Popen[str]":
    kept = {
        key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    }
    return subprocess.Popen(
        [sys.executable, "-c", code], env=kept | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


PICTURE = """
import pygame
from racer_env.engine import Simulation, load_circuit
from racer_viewer.render.env_window import open_env_window
track = load_circuit("track-01")
row = Simulation(track).cars[0]
car = row.copy()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a display")
def test_without_a_display_a_window_is_one_clear_error_and_a_picture_is_no_problem() -> None:
    code = (
        PICTURE
        + """
from racer_env.errors import RacerError
assert open_env_window(False).draw(track, car).shape == (640, 960, 3)
assert not pygame.display.get_init()
try:
    open_env_window(True)
except RacerError as error:
    print(error)
"""
    )
    said, complaint = python(code).communicate(timeout=60)
    assert said.startswith("no display to open a window on"), complaint
    assert 'render_mode="rgb_array"' in said


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_window_does_not_keep_the_process_from_being_ended() -> None:
    code = (
        PICTURE
        + """
window = open_env_window(True)
print("open", flush=True)
while True:
    window.draw(track, car)
"""
    )
    with python(code, SDL_VIDEODRIVER="dummy") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == -signal.SIGTERM


@pytest.mark.skipif(shutil.which("xvfb-run") is None, reason="xvfb is not installed")
def test_a_real_window_opens_on_a_real_display() -> None:
    code = (
        PICTURE
        + """
window = open_env_window(True)
for _ in range(10):
    window.draw(track, car)
print(pygame.display.get_driver())
window.close()
"""
    )
    command = ["xvfb-run", "-a", sys.executable, "-c", code]
    environment = {key: value for key, value in os.environ.items() if key != "SDL_VIDEODRIVER"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert result.stdout.strip() == "x11", result.stderr
