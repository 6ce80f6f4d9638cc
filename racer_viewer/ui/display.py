"""Start of SDL's video system, with a clear error where there is no display."""

from __future__ import annotations

import os
import sys

import pygame

_DISPLAY_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
"""Environment variables that point SDL to a display on Linux."""


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
    os.environ.setdefault("SDL_WINDOWS_DPI_AWARENESS", "permonitorv2")
    try:
        pygame.display.init()
    except pygame.error as error:
        raise NoDisplayError(str(error)) from None
    if pygame.display.get_driver() == "offscreen" and "SDL_VIDEODRIVER" not in os.environ:
        pygame.display.quit()
        raise NoDisplayError("SDL found no display")
