"""The window of an environment: one car on its track, on screen or as a picture."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import DT, Track
from racer_env.engine.car import MAX_SPEED
from racer_env.errors import RacerError
from racer_viewer.render.car import CarSprite, RayLight
from racer_viewer.render.ground import Ground
from racer_viewer.render.hud import CircuitMap, SpeedAndLaps

SIZE = WIDTH, HEIGHT = 960, 640
"""[px]"""
SCALE = 5.0
"""Pixels per unit."""
LOOK_AHEAD = 0.26
"""How far from the middle of the picture the car is at top speed, of width and height."""
LOOK_AHEAD_STEP = 0.06
"""Part of the way that the look-ahead moves in one tick."""
JUMP = 20.0
"""A car that is this far from where it was did not drive there."""
TITLE = "Racer"


def open_env_window(visible: bool) -> EnvWindow:
    """A window on the screen, or pictures without one."""
    return EnvWindow(_Screen() if visible else None)


class EnvWindow:
    """Draws one car, followed by a camera that looks ahead of it.

    On a screen, it draws 60 times a second and no faster. When a person closes the window, it stays closed: drawing
    does nothing from then on, and the environment goes on at full speed.
    """

    def __init__(self, screen: _Screen | None = None) -> None:
        self._screen = screen
        self._picture = pygame.Surface(SIZE, depth=32)
        self._camera = _Camera()
        self._car, self._rays, self._figures = CarSprite(SCALE), RayLight(SIZE), SpeedAndLaps()
        self._ground: Ground | None = None

    def draw(self, track: Track, car: Mapping[str, Any]) -> NDArray[np.uint8] | None:
        """The picture (height, width, 3); None if it went to a window."""
        if self._screen is None:
            self._compose(self._picture, track, car)
            return _array_of(self._picture)
        if self._screen.is_open():
            ground = self._compose(self._screen.surface, track, car)
            ground.draw_ahead(SIZE, self._camera.left, self._camera.top)
            self._screen.show()
        return None

    def close(self) -> None:
        if self._screen is not None:
            self._screen.close()

    def _compose(self, surface: pygame.Surface, track: Track, car: Mapping[str, Any]) -> Ground:
        if self._ground is None or self._ground.track is not track:
            self._ground, self._map = Ground(track, SCALE), CircuitMap(track)
        self._camera.follow(track, car)
        self._ground.draw(surface, self._camera.left, self._camera.top)
        self._rays.draw(surface, self._camera.to_screen, car)
        self._car.draw(surface, self._camera.to_screen, car)
        self._figures.draw(surface, car)
        self._map.draw(surface, car)
        return self._ground


def _array_of(picture: pygame.Surface) -> NDArray[np.uint8]:
    """A copy (height, width, 3), made by drawing into the array's memory: many times faster than to copy channels."""
    array = np.empty((*picture.get_size()[::-1], 3), np.uint8)
    pygame.image.frombuffer(array.data, picture.get_size(), "RGB").blit(picture, (0, 0))
    return array


class _Camera:
    """Where the picture is on the track."""

    def __init__(self) -> None:
        self.left = self.top = 0
        self._track: Track | None = None
        self._place = (0.0, 0.0)
        self._ahead = (0.0, 0.0)

    def follow(self, track: Track, car: Mapping[str, Any]) -> None:
        """Keep the car in the picture, with more room before it the faster it goes."""
        here = car["x"], car["y"]
        goal = car["vx"] / MAX_SPEED * LOOK_AHEAD * WIDTH, -car["vy"] / MAX_SPEED * LOOK_AHEAD * HEIGHT
        if track is not self._track or math.dist(here, self._place) > JUMP:
            self._track, self._ahead = track, goal
        else:
            x, y = self._ahead
            self._ahead = x + (goal[0] - x) * LOOK_AHEAD_STEP, y + (goal[1] - y) * LOOK_AHEAD_STEP
        self._place = here
        self.left = round(here[0] * SCALE + self._ahead[0] - WIDTH / 2)
        self.top = round(-here[1] * SCALE + self._ahead[1] - HEIGHT / 2)

    def to_screen(self, x: float, y: float) -> tuple[float, float]:
        return x * SCALE - self.left, -y * SCALE - self.top


class _Screen:
    """A real window. Several can be open at once; each of them takes the events of all."""

    _open: ClassVar[list[_Screen]] = []

    def __init__(self) -> None:
        _start_video()
        try:
            self._window = pygame.Window(TITLE, SIZE)
            self.surface = self._window.get_surface()
        except pygame.error as error:
            raise _no_display(error) from None
        self._next_frame = time.perf_counter()
        self._open.append(self)

    def is_open(self) -> bool:
        """Whether nobody has closed it until now."""
        if self in self._open:
            self._take_events()
        return self in self._open

    def show(self) -> None:
        """Put the picture on the screen when its time has come."""
        wait = self._next_frame - time.perf_counter()
        if wait > 0.0:
            time.sleep(wait)
        self._next_frame = max(self._next_frame, time.perf_counter() - DT) + DT
        self._window.flip()

    def close(self) -> None:
        if self in self._open:
            self._open.remove(self)
            self._window.destroy()

    def _take_events(self) -> None:
        for event in pygame.event.get():
            for screen in self._open.copy():
                if event.type == pygame.QUIT or (event.type == pygame.WINDOWCLOSE and event.window == screen._window):
                    screen.close()


def _start_video() -> None:
    """Let SDL find a display; it may leave the process's signals alone, and must not draw where nobody looks."""
    if pygame.display.get_init():
        return
    os.environ.setdefault("SDL_NO_SIGNAL_HANDLERS", "1")
    try:
        pygame.display.init()
    except pygame.error as error:
        raise _no_display(error) from None
    if pygame.display.get_driver() == "offscreen" and "SDL_VIDEODRIVER" not in os.environ:
        pygame.display.quit()
        raise _no_display("none was found")


def _no_display(error: object) -> RacerError:
    return RacerError(f'no display to open a window on ({error}): use render_mode="rgb_array" for pictures without one')
