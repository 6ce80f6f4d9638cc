"""How a learner knows that the window which started it still lives, even before that has called it.

The window holds the other end of the learner's standard input. The system lets go of it when the window dies, however
that happens; a byte says before that the learner shall go on by itself. There is no clock in it: a window that sleeps
holds on.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from contextlib import suppress

STANDARD_INPUT = 0
_GO_ON = b"\n"


class Leash:
    """The learner's end. handle: of a pipe to read from."""

    def __init__(self, handle: int = STANDARD_INPUT) -> None:
        self._handle, self._lock = handle, threading.Lock()
        self._end: bytes | None = None
        """What came first: a byte, or none at all if it was cut; None while it is held."""

    @property
    def held(self) -> bool:
        return self._look() is None

    @property
    def cut(self) -> bool:
        """Whether whoever held it is gone without a word."""
        return self._look() == b""

    def _look(self) -> bytes | None:
        with self._lock:
            if self._end is None:
                try:
                    self._end = os.read(self._handle, 1) if _has_news(self._handle) else None
                except OSError:
                    self._end = b""
            return self._end


def let_go(learner: subprocess.Popen[bytes], to_go_on: bool) -> None:
    """The window's end; once."""
    if learner.stdin is not None and not learner.stdin.closed:
        with suppress(OSError, ValueError):  # it has ended, or another thread was faster
            if to_go_on:
                learner.stdin.write(_GO_ON)
            learner.stdin.close()


def _has_news(handle: int) -> bool:
    """Whether a read would return at once. OSError if nobody holds the other end."""
    if sys.platform == "win32":
        import _winapi
        import msvcrt

        return bool(_winapi.PeekNamedPipe(msvcrt.get_osfhandle(handle), 0)[0])
    return bool(select.select([handle], [], [], 0)[0])
