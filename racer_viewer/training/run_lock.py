"""Locks on files. The system itself releases one when whoever holds it dies, and not while they sleep.

How a window and a learner know each other: a secret in a file that only the user can read, never sent itself.

Who learns in a folder: the one that holds the lock on its learner.json, however long it has not been heard of."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any

from racer_env.errors import RacerError
from racer_viewer.training.car_feed import CAR_FEED_FILE

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


HOST = "127.0.0.1"
ANSWER_SECONDS = 5.0
"""In which a learner must begin to speak; one that sleeps is called again later."""
MOST_BYTES = 2**16
"""Of a message."""
CONNECTION_ERRORS = (OSError, EOFError, AuthenticationError, AssertionError, ValueError)
"""What may go wrong; multiprocessing asserts that the other side speaks as it does."""

Message = dict[str, Any]


@dataclass(frozen=True)
class Address:
    """Where a learner listens. pid: its process; key: the secret, in hexadecimal."""

    pid: int
    port: int
    key: str


def call(address: Address) -> Connection:
    """A connection to a learner that has shown to know the secret. One of CONNECTION_ERRORS if there is none."""
    with socket.create_connection((HOST, address.port), ANSWER_SECONDS) as line:
        line.setblocking(True)
        connection = Connection(line.detach())
    try:
        if not connection.poll(ANSWER_SECONDS):
            raise TimeoutError("no answer")
        answer_challenge(connection, bytes.fromhex(address.key))
        deliver_challenge(connection, bytes.fromhex(address.key))
    except BaseException:
        connection.close()
        raise
    return connection


def welcome(connection: Connection, key: str) -> None:
    """The other side of `call`."""
    deliver_challenge(connection, bytes.fromhex(key))
    answer_challenge(connection, bytes.fromhex(key))


def send(connection: Connection, message: Message) -> None:
    connection.send_bytes(json.dumps(message).encode())


def receive(connection: Connection) -> Message:
    """The next message; waits for it. ValueError if it is none."""
    content = json.loads(connection.recv_bytes(MOST_BYTES))
    if not isinstance(content, dict):
        raise ValueError("not an object")
    return content


LEARNER_FILE = "learner.json"

CONTENT_BYTES = 512
"""Of the file, always: what is written covers all that was there before."""
TRIES, PAUSE_SECONDS = 20, 0.05
"""Of a learner that begins; others who look hold the file for a moment too."""
_BINARY = getattr(os, "O_BINARY", 0)


class RunLock:
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
            (folder / CAR_FEED_FILE).unlink(missing_ok=True)  # of a learner that was killed

    def publish(self, address: Address) -> None:
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


def check_not_running(folder: Path) -> None:
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
