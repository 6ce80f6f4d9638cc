"""Pictures of games in a window, drawn from the data that their workers send."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Protocol

import numpy as np
import pygame

from racer_env.engine import CAR as CAR_COLUMNS
from racer_env.engine import Track
from racer_env.errors import RacerError
from racer_env.games.game import CAR, core_count
from racer_env.games.racer_game import racer_track
from racer_env.games.server import GamesServer
from racer_env.games.worker_protocol import DrawReply
from racer_viewer.render.overlays import Overlays
from racer_viewer.render.scene import Scene
from racer_viewer.snapshot import CarStyle, Snapshot
from racer_viewer.ui.theme import Theme, fitting_scale

PANELS = ("timing", "map")
"""Overlays on the picture of a racer."""
MIN_SIZE_FOR_PANELS = (640, 400)
"""Minimum size of a picture with panels [px]."""
FRAME_RATE = 60.0
"""Frames of the window per second."""
IMAGE_RATE_PER_CORE = 60.0
"""Maximum number of images per second and core that the workers draw for the window."""


def min_image_interval(hz: float, games: int) -> float:
    """Return the minimum time between two images of a game [s], so that the workers are not overloaded."""
    return max(1.0 / hz, games / (IMAGE_RATE_PER_CORE * core_count()))


class DrawFeed:
    """Requests the drawing data of one game, one request at a time, without ever waiting for a reply.

    interval: minimum time between two images, which the worker draws [s]; car states have no minimum.
    """

    def __init__(self, server: GamesServer, game_id: int, interval: float) -> None:
        self._server, self._game_id, self._interval = server, game_id, interval
        self._next: Future[DrawReply] | None = None
        self._due = 0.0

    def poll(self, size: tuple[int, int]) -> DrawReply | None:
        """Return the reply that arrived since the last call, if any; request the next one in this size [px]."""
        reply = None
        if self._next is not None and self._next.done():
            done, self._next = self._next, None
            if not done.cancelled() and not isinstance(done.exception(), RacerError):  # a lost game is restarted
                reply = done.result()
        now = time.perf_counter()
        if self._next is None and now >= self._due and min(size) > 0:
            is_car = reply is not None and reply.kind == CAR
            self._due = 0.0 if is_car else max(self._due, now - 1.0 / FRAME_RATE) + self._interval
            self._next = self._server.submit(self._server.supervisor.query_drawing(self._game_id, *size))
        return reply


class GamePicture(Protocol):
    """Picture of one game, from the latest reply of its worker."""

    def update(self, reply: DrawReply) -> None: ...

    def draw(self, surface: pygame.Surface) -> None:
        """Fill a surface, or the part of it that has the aspect ratio of the picture."""


class PixelPicture:
    """Picture that the worker has drawn, centred on the surface."""

    def __init__(self) -> None:
        self._pixels: pygame.Surface | None = None

    def update(self, reply: DrawReply) -> None:
        self._pixels = pygame.image.frombuffer(reply.content, (reply.width, reply.height), "RGB")

    def draw(self, surface: pygame.Surface) -> None:
        if self._pixels is None:
            return
        area, (width, height) = surface.get_rect(), self._pixels.get_size()
        scale = min(area.width / width, area.height / height)
        fitting = (round(width * scale), round(height * scale))
        pixels = self._pixels if fitting == (width, height) else pygame.transform.smoothscale(self._pixels, fitting)
        surface.blit(pixels, pixels.get_rect(center=area.center))


class CarPicture:
    """Picture of a racer, drawn here as the app draws it."""

    def __init__(self, track: Track, theme: Theme) -> None:
        self._track, self._theme = track, theme
        self._scene, self._overlays = Scene(theme), Overlays(theme)
        self._now: Snapshot | None = None

    def update(self, reply: DrawReply) -> None:
        cars = np.frombuffer(reply.content, CAR_COLUMNS).copy()
        before, self._now = self._now, Snapshot(self._track, cars, (CarStyle("", self._theme.palette.player),))
        if before is None or before.car["step_count"] != self._now.car["step_count"]:
            self._scene.tick(self._now)
            self._overlays.tick(self._now)

    def draw(self, surface: pygame.Surface) -> None:
        if self._now is None:
            return
        self._fit(surface.get_size())
        self._scene.draw(surface, self._now, self._now, 1.0)
        if all(map(int.__ge__, surface.get_size(), MIN_SIZE_FOR_PANELS)):
            self._overlays.draw(surface, self._now, PANELS)
        self._scene.draw_ahead()

    def _fit(self, size: tuple[int, int]) -> None:
        """Use a theme whose text fits a picture of this size [px]."""
        scale = fitting_scale(size)
        if scale != self._theme.scale:
            self._theme = Theme(scale, self._theme.palette)
            self._scene.use(self._theme)
            self._overlays = self._overlays.with_theme(self._theme)


class PictureFactory:
    """Creates pictures; the racers of a window share one track."""

    def __init__(self) -> None:
        self._track: Track | None = None

    def new(self, reply: DrawReply, theme: Theme) -> GamePicture:
        if reply.kind != CAR:
            return PixelPicture()
        if self._track is None:
            self._track = racer_track()
        return CarPicture(self._track, theme)
