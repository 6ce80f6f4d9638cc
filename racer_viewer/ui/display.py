"""Finding a display to open a window on."""

from __future__ import annotations

import os
import sys

import pygame

_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
"""By which SDL finds one on Linux."""


class NoDisplayError(Exception):
    """There is no display to open a window on."""


def has_display() -> bool:
    """Whether it is worth asking SDL; elsewhere than on Linux there always is one."""
    return not sys.platform.startswith("linux") or any(os.environ.get(name) for name in _VARIABLES)


def start_video() -> None:
    """Let SDL open the display; it may leave the process's signals alone, and must not draw where nobody looks."""
    if pygame.display.get_init():
        return
    if not has_display():
        raise NoDisplayError("neither DISPLAY nor WAYLAND_DISPLAY is set")
    os.environ.setdefault("SDL_NO_SIGNAL_HANDLERS", "1")
    os.environ.setdefault("SDL_WINDOWS_DPI_AWARENESS", "permonitorv2")
    try:
        pygame.display.init()
    except pygame.error as error:
        raise NoDisplayError(str(error)) from None
    if pygame.display.get_driver() == "offscreen" and "SDL_VIDEODRIVER" not in os.environ:
        pygame.display.quit()
        raise NoDisplayError("none was found")
