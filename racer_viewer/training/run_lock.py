"""Run lock: at most one learner per run folder.

A learner holds a file lock on learner.json, which also contains the address of its control socket. The operating system
releases the lock when the process dies, and keeps it while the process is suspended.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from racer_env.errors import RacerError, os_reason
from racer_viewer.paths import open_regular

LEARNER_FILE = "learner.json"
CONTENT_SIZE = 512
"""Fixed size of the file [bytes]; a write overwrites all earlier content."""
LOCK_TRIES, LOCK_INTERVAL = 20, 0.05
"""Attempts of a starting learner to take the lock, and time between them [s]; readers hold the lock briefly too."""
_BINARY = getattr(os, "O_BINARY", 0)

if sys.platform == "win32":
    import msvcrt

    LOCKED_BYTE = 2**20
    """Position of the locked byte, after all content: on Windows other processes cannot read a locked byte."""
    WINDOWS_TRIES, WINDOWS_INTERVAL = 3, 0.005
    """Attempts and time between them [s]; Windows has no shared locks, so two readers can block each other."""

    def take_lock(handle: int, shared: bool = False) -> bool:
        """Try to lock a file without waiting; return True on success."""
        for _ in range(WINDOWS_TRIES):
            os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            except OSError:
                time.sleep(WINDOWS_INTERVAL)
            else:
                return True
        return False

    def release_lock(handle: int) -> None:
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def take_lock(handle: int, shared: bool = False) -> bool:
        """Try to lock a file without waiting; return True on success, and on file systems without locks."""
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:
            return True
        return True

    def release_lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)


@dataclass(frozen=True)
class LearnerAddress:
    """Control socket of a learner.

    pid: process id of the learner.
    key: shared secret, in hexadecimal.
    """

    pid: int
    port: int
    key: str


class RunLock:
    """Exclusive right to learn in a folder, held until `release`. Raises RacerError if another learner holds it.

    Only the user can read the lock file, since it contains the shared secret.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / LEARNER_FILE
        try:
            self._handle = self._take()
        except OSError as error:
            raise RacerError(f"cannot write {self._path}: {os_reason(error)}") from None

    def publish(self, address: LearnerAddress) -> None:
        """Write the address of this learner to the lock file."""
        content = json.dumps(asdict(address)).encode().ljust(CONTENT_SIZE)
        os.lseek(self._handle, 0, os.SEEK_SET)
        os.write(self._handle, content)

    def release(self) -> None:
        """Remove the file while it is locked, so that no other learner locks a removed file. Windows cannot do so."""
        if sys.platform == "win32":
            os.close(self._handle)
        with suppress(OSError):
            self._path.unlink()
        if sys.platform != "win32":
            os.close(self._handle)

    def _take(self) -> int:
        for _ in range(LOCK_TRIES):
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | _BINARY, 0o600)
            if take_lock(handle) and _is_at(self._path, handle):
                if sys.platform != "win32":
                    os.fchmod(handle, 0o600)
                return handle
            os.close(handle)
            time.sleep(LOCK_INTERVAL)
        raise RacerError(_in_use(self._folder, running_learner(self._folder)))


def read_address(folder: Path) -> LearnerAddress | None:
    """Return the address in the lock file, even if its learner is no longer alive."""
    try:
        with open_regular(folder / LEARNER_FILE) as file:
            return _parse(file.read(CONTENT_SIZE))
    except OSError:
        return None


def running_learner(folder: Path) -> int | None:
    """Return the process id of the learner that holds the lock, even if it is suspended; None without a learner."""
    try:
        with open_regular(folder / LEARNER_FILE) as file:
            content = file.read(CONTENT_SIZE)
            if take_lock(file.fileno(), shared=True):
                release_lock(file.fileno())
                return None
    except OSError:
        return None
    address = _parse(content)
    return None if address is None else address.pid


def check_not_running(folder: Path) -> None:
    """Raise RacerError if a learner runs in the folder: two learners would corrupt each other's files."""
    pid = running_learner(folder)
    if pid is not None:
        raise RacerError(_in_use(folder, pid))


def _in_use(folder: Path, pid: int | None) -> str:
    where = "" if pid is None else f", in process {pid}"
    return f"{folder.name} is training already{where}: stop that run first"


def _parse(content: bytes) -> LearnerAddress | None:
    try:
        values = json.loads(content)
        return LearnerAddress(int(values["pid"]), int(values["port"]), str(values["key"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _is_at(path: Path, handle: int) -> bool:
    """Return True if the opened file is still the one at the path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
