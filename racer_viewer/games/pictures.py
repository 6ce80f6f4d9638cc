"""What a game looks like in a window, from what its worker sends."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Protocol

import numpy as np
import pygame

from racer_env.engine import CAR as CAR_COLUMNS
from racer_env.engine import Track
from racer_env.errors import RacerError
from racer_env.games.game import CAR
from racer_env.games.kinds import core_count
from racer_env.games.racer_game import racer_track
from racer_env.games.server import GamesServer
from racer_env.games.worker_protocol import Seen
from racer_viewer.render.overlays import Overlays
from racer_viewer.render.scene import Scene
from racer_viewer.snapshot import CarStyle, Snapshot
from racer_viewer.ui.theme import Theme, fitting_scale

PANELS = ("timing", "map")
LEAST_FOR_PANELS = (640, 400)
"""A smaller picture of a racer shows no panels [px]."""
FRAME = 1.0 / 60.0
"""From one picture of the window to the next [s]."""
SIGHTS_PER_CORE = 60.0
"""Pictures that are asked of the workers in a second, for each core."""


def least_interval(hz: float, games: int) -> float:
    """From one picture of a game to the next, so that all games together do not ask for too much [s]."""
    return max(1.0 / hz, games / (SIGHTS_PER_CORE * core_count()))


class Feed:
    """The sights of one game, asked for one at a time: whoever draws never waits for them.

    interval: from one picture to the next, at least [s]; drawing them keeps the workers from other things. What is
    drawn here costs them nothing.
    """

    def __init__(self, server: GamesServer, game_id: int, interval: float) -> None:
        self._server, self._game_id, self._interval = server, game_id, interval
        self._next: Future[Seen] | None = None
        self._due = 0.0

    def poll(self, size: tuple[int, int]) -> Seen | None:
        """What has come since the last time, if anything; the next one is asked for in this size."""
        seen = None
        if self._next is not None and self._next.done():
            done, self._next = self._next, None
            if not done.cancelled() and not isinstance(done.exception(), RacerError):  # a lost game comes back
                seen = done.result()
        now = time.perf_counter()
        if self._next is None and now >= self._due and min(size) > 0:
            self._due = 0.0 if seen is not None and seen.kind == CAR else max(self._due, now - FRAME) + self._interval
            self._next = self._server.submit(self._server.arcade.look(self._game_id, *size))
        return seen


class Picture(Protocol):
    """Shows one game, the last thing that was seen of it."""

    def take(self, seen: Seen) -> None: ...

    def draw(self, surface: pygame.Surface) -> None:
        """Fill a surface, or as much of it as has the right shape."""


class PixelPicture:
    """A picture that comes as pixels, in the middle of its place."""

    def __init__(self) -> None:
        self._pixels: pygame.Surface | None = None

    def take(self, seen: Seen) -> None:
        self._pixels = pygame.image.frombuffer(seen.content, (seen.width, seen.height), "RGB")

    def draw(self, surface: pygame.Surface) -> None:
        if self._pixels is None:
            return
        area, (width, height) = surface.get_rect(), self._pixels.get_size()
        scale = min(area.width / width, area.height / height)
        fitting = (round(width * scale), round(height * scale))
        pixels = self._pixels if fitting == (width, height) else pygame.transform.smoothscale(self._pixels, fitting)
        surface.blit(pixels, pixels.get_rect(center=area.center))


class CarPicture:
    """A racer, drawn here as the app draws it."""

    def __init__(self, track: Track, theme: Theme) -> None:
        self._track, self._theme = track, theme
        self._scene, self._overlays = Scene(theme), Overlays(theme)
        self._now: Snapshot | None = None

    def take(self, seen: Seen) -> None:
        cars = np.frombuffer(seen.content, CAR_COLUMNS).copy()
        before, self._now = self._now, Snapshot(self._track, cars, (CarStyle("", self._theme.palette.player),))
        if before is None or before.car["step_count"] != self._now.car["step_count"]:
            self._scene.tick(self._now)
            self._overlays.tick(self._now)

    def draw(self, surface: pygame.Surface) -> None:
        if self._now is None:
            return
        self._fit(surface.get_size())
        self._scene.draw(surface, self._now, self._now, 1.0)
        if all(map(int.__ge__, surface.get_size(), LEAST_FOR_PANELS)):
            self._overlays.draw(surface, self._now, PANELS)
        self._scene.draw_ahead()

    def _fit(self, size: tuple[int, int]) -> None:
        """Letters for a picture of this size."""
        scale = fitting_scale(size)
        if scale != self._theme.scale:
            self._theme = Theme(scale, self._theme.palette)
            self._scene.use(self._theme)
            self._overlays = self._overlays.with_theme(self._theme)


class Pictures:
    """Makes pictures of whatever kind comes; racers of one window share their track."""

    def __init__(self) -> None:
        self._track: Track | None = None

    def new(self, seen: Seen, theme: Theme) -> Picture:
        if seen.kind != CAR:
            return PixelPicture()
        if self._track is None:
            self._track = racer_track()
        return CarPicture(self._track, theme)
