"""Start of SDL's video system, the size of a new window, and the picture that it shows.

Screens draw one picture in memory, whatever shows it. In very large windows it has a lower resolution and is enlarged,
by the graphics card if there is one, else by the processor.
"""

from __future__ import annotations

import math
import os
import sys
import time
from functools import cache
from typing import Any, Literal

import pygame

from racer_viewer.translation import Language, first_known, set_language

WINDOW_CLASS = "racer-viewer"
"""Name by which a desktop groups the windows of the app and finds its icon."""
LARGE_SCREEN = 2560 * 1440
"""Number of pixels from which a screen is worth a graphics card, if there is one."""
PROBE_SIZE, PROBE_FRAMES = (3840, 2160), 3
MAX_PROBE_TIME = 0.008
"""Maximum processor time per drawn probe frame [s]; a renderer that needs more is no graphics card."""
MAX_PICTURE = 2600 * 1500
"""Number of pixels from which a picture is drawn at a lower resolution, unless the full one is asked for."""
REFERENCE_SIZE, MIN_SIZE = (1280, 720), (960, 540)
"""Usual and minimum size of a window [px]."""
SCREEN_SHARE = 2.0 / 3.0
"""Part of a large screen's sides that the first window takes."""
MAX_SCREEN_SHARES = (0.95, 0.9)
"""Largest part of the screen's width and height for a new window; the rest is for its frame and the desktop's bars."""

_DISPLAY_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
"""Environment variables that point SDL to a display on Linux."""

_INVISIBLE_DRIVERS = ("dummy", "offscreen")
_CHOICE_DRIVERS = ("x11", "windows")
"""Drivers that can bring pictures to the screen with and without a graphics card."""


class NoDisplayError(Exception):
    """No display to open a window on."""


def has_display() -> bool:
    """Return whether SDL can be expected to find a display; outside Linux always True."""
    return not sys.platform.startswith("linux") or any(os.environ.get(name) for name in _DISPLAY_VARIABLES)


def start_video() -> None:
    """Start SDL's video system without its signal handlers; refuse its invisible "offscreen" driver."""
    if pygame.display.get_init():
        return
    if not has_display():
        raise NoDisplayError("neither DISPLAY nor WAYLAND_DISPLAY is set")
    os.environ.setdefault("SDL_NO_SIGNAL_HANDLERS", "1")
    os.environ["SDL_VIDEO_X11_WMCLASS"] = os.environ["SDL_VIDEO_WAYLAND_WMCLASS"] = WINDOW_CLASS  # pygame sets others
    os.environ.setdefault("SDL_WINDOWS_DPI_AWARENESS", "permonitorv2")
    try:
        pygame.display.init()
    except pygame.error as error:
        raise NoDisplayError(str(error)) from None
    if pygame.display.get_driver() == "offscreen" and "SDL_VIDEODRIVER" not in os.environ:
        pygame.display.quit()
        raise NoDisplayError("SDL found no display")


def use_language(wanted: Language | Literal["system"]) -> None:
    """Show texts in this language from now on, or in that of the system."""
    set_language(system_language() if wanted == "system" else wanted)


def system_language() -> Language:
    """Return the first language that the user prefers and that there is a translation for, else English.

    The variable LANGUAGE, if it is set, counts more than the system's preferences, as in other programs with gettext.
    """
    given = os.environ.get("LANGUAGE", "").split(":")
    return first_known([*given, *(each["language"] for each in pygame.system.get_pref_locales())])


def use_renderer(wanted: str) -> str:
    """Set how pictures reach windows, before the first window is opened; return the way that is used.

    wanted: "software", "gpu" (a texture of SDL's accelerated renderer) or "auto".
    Under X11, SDL would take OpenGL even if no graphics card draws it, which costs more than everything else in a
    frame. Drivers other than X11 and Windows offer one way only.
    """
    driver = pygame.display.get_driver()
    if driver not in _CHOICE_DRIVERS:
        return "software" if driver in _INVISIBLE_DRIVERS else "gpu"
    if wanted == "auto":
        width, height = pygame.display.get_desktop_sizes()[0]
        wanted = "gpu" if width * height > LARGE_SCREEN and has_graphics_card() else "software"
    os.environ["SDL_FRAMEBUFFER_ACCELERATION"] = "1" if wanted == "gpu" else "0"
    return wanted


@cache
def has_graphics_card() -> bool:
    """Return whether SDL's accelerated renderer spares the processor, by drawing a large picture out of sight."""
    from pygame._sdl2.video import Renderer, Texture

    window = pygame.Window("Racer", REFERENCE_SIZE, hidden=True)
    try:
        renderer = Renderer(window, accelerated=1, target_texture=True)
        picture = Texture.from_surface(renderer, pygame.Surface(REFERENCE_SIZE, depth=32))
        renderer.target = Texture(renderer, PROBE_SIZE, target=True)
        times = []
        for _ in range(PROBE_FRAMES):
            begin = time.process_time()
            picture.draw(dstrect=(0, 0, *PROBE_SIZE))
            renderer.to_surface(area=pygame.Rect(0, 0, 1, 1))  # waits until the picture is finished
            times.append(time.process_time() - begin)
        return min(times) <= MAX_PROBE_TIME
    except RuntimeError:  # either of the two error classes of pygame
        return False
    finally:
        window.destroy()


def new_window_size(saved: tuple[int, int] | None, least: tuple[int, int] = MIN_SIZE) -> tuple[int, int]:
    """Return the size of a new window on the main screen; without a saved size it is that of a first window."""
    if pygame.display.get_driver() in _INVISIBLE_DRIVERS:  # their screen has no meaning
        width, height = map(max, saved or REFERENCE_SIZE, least)
        return width, height
    desktop = pygame.display.get_desktop_sizes()[0]
    return fitting_window(saved, desktop, least) if saved else first_window_size(desktop)


def first_window_size(desktop: tuple[int, int]) -> tuple[int, int]:
    """Return two thirds of a large screen, the usual size on others, or less if that does not fit."""
    wide = max(desktop[0] * SCREEN_SHARE, REFERENCE_SIZE[0]), max(desktop[1] * SCREEN_SHARE, REFERENCE_SIZE[1])
    scale = min(wide[0] / REFERENCE_SIZE[0], wide[1] / REFERENCE_SIZE[1])
    return fitting_window((round(REFERENCE_SIZE[0] * scale), round(REFERENCE_SIZE[1] * scale)), desktop)


def fitting_window(
    size: tuple[int, int], desktop: tuple[int, int], least: tuple[int, int] = MIN_SIZE
) -> tuple[int, int]:
    """Return the size, at least `least`, shrunk to the screen without a change of its shape."""
    width, height = map(max, size, least)
    share = min(1.0, desktop[0] * MAX_SCREEN_SHARES[0] / width, desktop[1] * MAX_SCREEN_SHARES[1] / height)
    return round(width * share), round(height * share)


class WindowPicture:
    """The picture that fills a window, and the way it gets there.

    renderer: result of `use_renderer`; becomes "software" if the graphics card fails.
    resolution: "full" for a picture with all pixels of the window; otherwise large windows get fewer.
    """

    def __init__(self, window: pygame.Window, renderer: str, resolution: str = "auto") -> None:
        self._window, self.renderer, self.resolution = window, renderer, resolution
        self._card: Any = None
        """SDL's accelerated renderer of the window; None if SDL's window surface is used."""
        self._texture: Any = None
        self._picture = pygame.Surface((1, 1), depth=32)
        if renderer == "gpu" and pygame.display.get_driver() in _CHOICE_DRIVERS:
            self._card = _graphics_card(window)
            self.renderer = "software" if self._card is None else "gpu"
        if self._card is None:
            window.get_surface()  # an error of the display is raised here

    @property
    def reduction(self) -> int:
        """Number of pixels of the window along a side of each pixel of the picture."""
        width, height = self._window.size
        return 1 if self.resolution == "full" else max(1, math.ceil(math.sqrt(width * height / MAX_PICTURE)))

    @property
    def surface(self) -> pygame.Surface:
        """Surface to draw the next frame on; another one after a change of the window's size."""
        reduction = self.reduction
        if self._card is None and reduction == 1:
            return self._window.get_surface()
        size = -(-self._window.size[0] // reduction), -(-self._window.size[1] // reduction)
        if self._picture.get_size() != size:
            self._picture = pygame.Surface(size, depth=32)
        return self._picture

    def show(self) -> None:
        """Bring the picture into the window."""
        picture = self.surface
        if self._card is not None:
            self._show_on_card(picture)
            return
        if self.reduction > 1:
            target = self._window.get_surface()
            pygame.transform.scale(picture, target.get_size(), target)
        self._window.flip()

    def _show_on_card(self, picture: pygame.Surface) -> None:
        from pygame._sdl2.video import Texture

        if self._texture is None or (self._texture.width, self._texture.height) != picture.get_size():
            self._texture = Texture(self._card, picture.get_size(), depth=32, streaming=True, scale_quality=1)
        self._texture.update(picture)
        self._texture.draw()
        self._card.present()


def _graphics_card(window: pygame.Window) -> Any:
    """Return SDL's accelerated renderer for a window, or None if there is none."""
    from pygame._sdl2.video import Renderer

    try:
        return Renderer(window, accelerated=1)
    except RuntimeError:  # either of the two error classes of pygame
        return None
