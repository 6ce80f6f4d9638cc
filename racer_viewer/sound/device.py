"""The sound device, opened quietly."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pygame

from racer_viewer.sound.catalogue import RATE

SIXTEEN_BIT_SIGNED = -16
STEREO = 2
"""Not for the space: only in stereo a channel's volume has 255 steps of its own, however low the sound's is."""
BUFFER = 512
"""Samples per block, 11 ms: volumes move from block to block."""
UNHEARD_DRIVER = "dummy"
_CHATTER = b"ALSA lib "


class NoSoundError(Exception):
    """There is nothing to play sounds on. It does not leave this package."""


def open_device(unheard: bool = False) -> None:
    """Starts pygame's mixer as it is needed here, or raises `NoSoundError` or what pygame raises.

    unheard: SDL's dummy driver will do, for tests of everything but the ear.
    """
    pygame.mixer.quit()
    with without_alsa_chatter():
        pygame.mixer.init(RATE, SIXTEEN_BIT_SIGNED, STEREO, BUFFER, allowedchanges=0)
    if pygame.mixer.get_driver() == UNHEARD_DRIVER and not unheard:
        pygame.mixer.quit()
        raise NoSoundError(f"SDL_AUDIODRIVER is {UNHEARD_DRIVER}")


@contextmanager
def without_alsa_chatter() -> Iterator[None]:
    """Keeps libasound's lines about a missing card from the terminal; whatever else is written meanwhile comes after.

    The library writes to descriptor 2 itself, past Python, and pygame has no switch for that.
    """
    if sys.platform != "linux" or not _stderr_is_descriptor_2():
        yield
        return
    with tempfile.TemporaryFile() as written:
        sys.stderr.flush()
        terminal = os.dup(2)
        try:
            os.dup2(written.fileno(), 2)
            yield
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)
            written.seek(0)
            rest = b"".join(line for line in written if not line.startswith(_CHATTER))
            if rest:
                os.write(2, rest)


def _stderr_is_descriptor_2() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.fileno() == 2
    except (OSError, ValueError, AttributeError):
        return False
