"""Locks on files. The system itself releases one when whoever holds it dies, and not while they sleep."""

from __future__ import annotations

import os
import sys
import time

if sys.platform == "win32":
    import msvcrt

    LOCKED_BYTE = 2**20
    """Behind all content: on Windows nobody else may read a byte that is locked."""
    TRIES, PAUSE_SECONDS = 3, 0.005
    """A lock cannot be shared there: two that look at the same moment are in each other's way."""

    def take_lock(handle: int, shared: bool = False) -> bool:
        """Whether it could be had at once."""
        for _ in range(TRIES):
            os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            except OSError:
                time.sleep(PAUSE_SECONDS)
            else:
                return True
        return False

    def release_lock(handle: int) -> None:
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def take_lock(handle: int, shared: bool = False) -> bool:
        """Whether it could be had at once; on a file system without locks, always."""
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:
            return True
        return True

    def release_lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)
