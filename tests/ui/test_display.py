"""The size of new windows, and the way pictures reach them."""

import os
import subprocess
import sys
from pathlib import Path

import pygame
import pytest

from racer_viewer.ui.display import WINDOW_CLASS, WindowPicture, first_window_size, fitting_window, start_video
from tests.modes.xvfb_screen import XvfbScreen, is_there
from tests.processes import wait_for


@pytest.mark.parametrize(
    ("desktop", "window"),
    [
        ((1920, 1080), (1280, 720)),
        ((1400, 900), (1280, 720)),
        ((2560, 1440), (1707, 960)),
        ((3840, 2160), (2560, 1440)),
    ],
)
def test_the_first_window_has_the_usual_size_or_two_thirds_of_a_large_screen(
    desktop: tuple[int, int], window: tuple[int, int]
) -> None:
    assert first_window_size(desktop) == window


@pytest.mark.parametrize("desktop", [(800, 600), (1024, 600), (1280, 720), (1366, 768), (1080, 1920)])
def test_a_window_is_inside_a_small_screen(desktop: tuple[int, int]) -> None:
    for width, height in (first_window_size(desktop), fitting_window((2560, 1440), desktop)):
        assert width < desktop[0]
        assert height < desktop[1] - 40, "there is room for a title bar"
        assert width / height == pytest.approx(16 / 9, rel=0.01)


@pytest.mark.slow
@pytest.mark.skipif(not is_there(), reason="no Xvfb or no xdotool")
@pytest.mark.parametrize("size", [(1024, 600), (1920, 1080), (3840, 2160)])
def test_the_real_window_is_on_the_screen_under_its_own_name(tmp_path: Path, size: tuple[int, int]) -> None:
    with XvfbScreen(tmp_path, size) as screen:
        command = [sys.executable, "-m", "racer_viewer", "--data-dir", str(tmp_path / "data")]
        app = subprocess.Popen(command, env=screen.environment, stderr=subprocess.DEVNULL)
        try:
            search = ("search", "--onlyvisible", "--class", f"^{WINDOW_CLASS}$")
            wait_for(lambda: _found(screen, *search), "the window")
            geometry = screen.do("getwindowgeometry", "--shell", screen.do(*search).split()[0])
            values = dict(line.split("=") for line in geometry.splitlines())
            x, y, width, height = (int(values[name]) for name in ("X", "Y", "WIDTH", "HEIGHT"))
            assert (width, height) == first_window_size(size)
            assert x >= 0
            assert y >= 0
            assert x + width <= size[0]
            assert y + height <= size[1]
        finally:
            app.terminate()
            app.wait()


def _found(screen: XvfbScreen, *search: str) -> bool:
    try:
        return bool(screen.do(*search).strip())
    except subprocess.CalledProcessError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not is_there(), reason="no Xvfb or no xdotool")
def test_a_renderer_that_the_processor_draws_is_no_graphics_card(tmp_path: Path) -> None:
    code = "from racer_viewer.ui.display import start_video, use_renderer; start_video(); print(use_renderer('auto'))"
    with XvfbScreen(tmp_path, (3840, 2160)) as screen:
        software = {**screen.environment, "LIBGL_ALWAYS_SOFTWARE": "1"}
        run = subprocess.run([sys.executable, "-c", code], env=software, capture_output=True, text=True, check=True)
    assert run.stdout.split()[-1] == "software"


@pytest.mark.parametrize(
    ("size", "resolution", "picture"),
    [
        ((1920, 1080), "auto", (1920, 1080)),
        ((2560, 1440), "auto", (2560, 1440)),
        ((3840, 2160), "auto", (1920, 1080)),
        ((3841, 2161), "half", (1921, 1081)),
        ((3840, 2160), "full", (3840, 2160)),
    ],
)
def test_a_very_large_window_gets_an_enlarged_picture(
    size: tuple[int, int], resolution: str, picture: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    start_video()
    window = pygame.Window("Racer", size)
    try:
        shown = WindowPicture(window, "software", resolution)
        assert shown.surface.get_size() == picture
        shown.surface.fill((10, 20, 30))
        shown.surface.fill((200, 100, 50), (picture[0] // 2, 0, picture[0], picture[1]))
        shown.show()
        surface = window.get_surface()
        assert [surface.get_at((x, size[1] - 1))[:3] for x in (0, size[0] - 1)] == [(10, 20, 30), (200, 100, 50)]
    finally:
        window.destroy()


GPU_PICTURE = """
import pygame
from racer_viewer.ui.display import WindowPicture, start_video, use_renderer
start_video()
window = pygame.Window("Racer", (2900, 1500), (0, 0))
shown = WindowPicture(window, use_renderer("gpu"))
for _ in range(5):
    shown.surface.fill((200, 100, 50))
    shown.surface.fill((10, 20, 30), (0, 0, shown.surface.get_width() // 2, 2000))
    shown.show()
    pygame.event.pump()
print(shown.renderer, *shown.surface.get_size(), flush=True)
input()
"""


@pytest.mark.slow
@pytest.mark.skipif(not is_there(), reason="no Xvfb or no xdotool")
def test_the_renderer_of_the_graphics_card_enlarges_the_picture(tmp_path: Path) -> None:
    """Mesa's software driver stands in for a graphics card."""
    with XvfbScreen(tmp_path, (3000, 1600)) as screen:
        environment = {**screen.environment, "LIBGL_ALWAYS_SOFTWARE": "1"}
        command = [sys.executable, "-c", GPU_PICTURE]
        run = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert run.stdout is not None
            words = next(line for line in run.stdout if not line.startswith("pygame")).split()
            assert words[1:] == ["1450", "750"]
            if words[0] == "gpu":  # else there is not even Mesa
                wait_for(lambda: (screen.pixels[700, 2800] == (200, 100, 50)).all(), "the picture")
                assert (screen.pixels[700, 100] == (10, 20, 30)).all()
        finally:
            run.communicate("\n")


def test_without_a_screen_a_window_has_the_usual_size() -> None:
    code = "from racer_viewer.ui.display import *; start_video(); print(new_window_size(None), use_renderer('auto'))"
    environment = {**os.environ, "SDL_VIDEODRIVER": "dummy"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "(1280, 720) software"
