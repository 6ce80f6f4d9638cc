"""Who learns in a folder: the one that holds the lock on its learner.json, however long it has not been heard of."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from racer_env.errors import RacerError
from racer_viewer.training.live.file_lock import release_lock, take_lock
from racer_viewer.training.live.files import LEARNER_FILE, SWARM_FILE
from racer_viewer.training.live.greeting import Address

CONTENT_BYTES = 512
"""Of the file, always: what is written covers all that was there before."""
TRIES, PAUSE_SECONDS = 20, 0.05
"""Of a learner that begins; others who look hold the file for a moment too."""
_BINARY = getattr(os, "O_BINARY", 0)


class Claim:
    """A folder in which nobody else learns, until `release`. A RacerError if somebody does.

    The file is for the user alone, since it has the secret in it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / LEARNER_FILE
        try:
            self._handle = self._take()
        except OSError as error:
            raise RacerError(f"cannot write {self._path}: {error.strerror or error}") from None
        with suppress(OSError):
            (folder / SWARM_FILE).unlink(missing_ok=True)  # of a learner that was killed

    def tell(self, address: Address) -> None:
        """Where this learner listens, to those who may read the file."""
        content = json.dumps(asdict(address)).encode().ljust(CONTENT_BYTES)
        os.lseek(self._handle, 0, os.SEEK_SET)
        os.write(self._handle, content)

    def release(self) -> None:
        """The file goes while it is still held, so that nobody takes one that is about to go; Windows cannot do so."""
        if sys.platform == "win32":
            os.close(self._handle)
        with suppress(OSError):
            self._path.unlink()
        if sys.platform != "win32":
            os.close(self._handle)

    def _take(self) -> int:
        for _ in range(TRIES):
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | _BINARY, 0o600)
            if take_lock(handle) and _is_at(self._path, handle):
                if sys.platform != "win32":
                    os.fchmod(handle, 0o600)
                return handle
            os.close(handle)
            time.sleep(PAUSE_SECONDS)
        raise RacerError(_in_use(self._folder, running_learner(self._folder)))


def read_address(folder: Path) -> Address | None:
    """What is written of the folder's learner, whether or not that still lives."""
    try:
        return _parse((folder / LEARNER_FILE).read_bytes())
    except OSError:
        return None


def find_learner(folder: Path) -> Address | None:
    """Of the learner that lives in a folder now; it may be asleep."""
    try:
        handle = os.open(folder / LEARNER_FILE, os.O_RDONLY | _BINARY)
    except OSError:
        return None
    try:
        content = os.read(handle, CONTENT_BYTES)
        if take_lock(handle, shared=True):
            release_lock(handle)
            return None
    except OSError:
        return None
    finally:
        os.close(handle)
    return _parse(content)


def running_learner(folder: Path) -> int | None:
    """The process that learns in a folder now, if there is one."""
    address = find_learner(folder)
    return None if address is None else address.pid


def check_nobody_learns(folder: Path) -> None:
    """Two learners in one folder would spoil each other's files."""
    pid = running_learner(folder)
    if pid is not None:
        raise RacerError(_in_use(folder, pid))


def _in_use(folder: Path, pid: int | None) -> str:
    where = "" if pid is None else f", in process {pid}"
    return f"{folder.name} is learning already{where}: stop that first"


def _parse(content: bytes) -> Address | None:
    try:
        values = json.loads(content)
        return Address(int(values["pid"]), int(values["port"]), str(values["key"]))
    except (ValueError, KeyError, TypeError):
        return None


def _is_at(path: Path, handle: int) -> bool:
    """Whether the file that was opened is still the one at the path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
