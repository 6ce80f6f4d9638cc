"""Window of a Gymnasium environment: one car on its track, on screen or as an RGB array."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import CAR, DT, Track
from racer_env.errors import RacerError
from racer_viewer.clock import FixedStepClock
from racer_viewer.render.overlays import Overlays
from racer_viewer.render.scene import Scene
from racer_viewer.snapshot import CarStyle, Snapshot
from racer_viewer.ui.display import NoDisplayError, start_video, use_renderer
from racer_viewer.ui.theme import Theme, fitting_scale

SIZE = (960, 640)
"""Picture size [px]."""
SHOWN = ("timing", "map")
TITLE = "Racer"


def open_env_window(visible: bool) -> EnvRenderer:
    """Open a window on screen, or an off-screen renderer."""
    return EnvRenderer(EnvScreen() if visible else None)


class EnvRenderer:
    """Renderer of one car with scene, rays, timing and map.

    On screen it draws at most 60 frames per second. When the user closes the window it stays closed: further drawing
    does nothing, and the environment continues at full speed.
    """

    def __init__(self, screen: EnvScreen | None = None) -> None:
        self.screen = screen
        self._picture = pygame.Surface(SIZE, depth=32)
        theme = Theme(fitting_scale(SIZE))
        self._look = CarStyle("", theme.palette.player)
        self._scene, self._overlays = Scene(theme, patient=screen is None), Overlays(theme, patient=screen is None)
        self._last: Snapshot | None = None

    def draw(self, track: Track, car: np.void) -> NDArray[np.uint8] | None:
        """Return the picture (height, width, 3), or None if it was shown in a window."""
        if self.screen is None:
            self._compose(self._picture, track, car)
            return _array_of(self._picture)
        if self.screen.is_open():
            self._compose(self.screen.surface, track, car)
            self._scene.draw_ahead()
            self.screen.show()
        return None

    def close(self) -> None:
        if self.screen is not None:
            self.screen.close()

    def _compose(self, surface: pygame.Surface, track: Track, car: np.void) -> None:
        now = Snapshot(track, np.array([car], CAR), (self._look,))
        if self._last is None or not _nothing_moved(self._last, now):
            self._scene.tick(now)
            self._overlays.tick(now)
        self._last = now
        self._scene.draw(surface, now, now, 1.0)
        self._overlays.draw(surface, now, SHOWN)


def _nothing_moved(one: Snapshot, other: Snapshot) -> bool:
    """Return True if nothing has moved; the same picture may be requested twice."""
    return one.track is other.track and bool((one.cars == other.cars).all())


def _array_of(picture: pygame.Surface) -> NDArray[np.uint8]:
    """Return a copy (height, width, 3), made by blitting into the array's memory, which is much faster than copying
    channels."""
    array = np.empty((*picture.get_size()[::-1], 3), np.uint8)
    pygame.image.frombuffer(array.data, picture.get_size(), "RGB").blit(picture, (0, 0))
    return array


class EnvScreen:
    """Real window. Several can be open at once; each of them handles the events of all."""

    _open: ClassVar[list[EnvScreen]] = []

    def __init__(self) -> None:
        try:
            start_video()
            use_renderer("software")
            self.window = pygame.Window(TITLE, SIZE)
            self.surface = self.window.get_surface()
        except (NoDisplayError, pygame.error) as error:
            raise _no_display(error) from None
        self._pacer = FixedStepClock.pacing(1.0 / DT)
        self._open.append(self)

    def is_open(self) -> bool:
        """False once the user has closed the window."""
        if self in self._open:
            self._take_events()
        return self in self._open

    def show(self) -> None:
        """Present the picture when the next frame is due."""
        self._pacer.wait()
        self.window.flip()

    def close(self) -> None:
        if self in self._open:
            self._open.remove(self)
            self.window.destroy()

    def _take_events(self) -> None:
        for event in pygame.event.get():
            for screen in self._open.copy():
                if event.type == pygame.QUIT or (event.type == pygame.WINDOWCLOSE and event.window == screen.window):
                    screen.close()


def _no_display(error: object) -> RacerError:
    return RacerError(f'no display to open a window on ({error}): use render_mode="rgb_array" for pictures without one')
