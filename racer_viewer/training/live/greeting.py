"""How a window and a learner know each other: a secret in a file that only the user can read, never sent itself."""

from __future__ import annotations

import json
import os
import secrets
import sys
from dataclasses import asdict, dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any

from racer_env.errors import RacerError
from racer_viewer.training.live.files import LEARNER_FILE

HOST = "127.0.0.1"
ANSWER_SECONDS = 5.0
"""In which a learner must begin to speak."""
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

    def write(self, folder: Path) -> None:
        """As a file of the user's own, which is there as a whole or not at all."""
        path = folder / LEARNER_FILE
        temporary = path.with_name(f".{LEARNER_FILE}.{secrets.token_hex(4)}")
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                json.dump(asdict(self), file)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def read_address(folder: Path) -> Address | None:
    """That of the folder's learner, if there is or was one."""
    try:
        content = json.loads((folder / LEARNER_FILE).read_text(encoding="utf-8"))
        return Address(int(content["pid"]), int(content["port"]), str(content["key"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def call(address: Address) -> Connection:
    """A connection to a learner that has shown to know the secret. One of CONNECTION_ERRORS if there is none."""
    if not _exists(address.pid):
        raise ConnectionError("the process is gone")
    connection = Client((HOST, address.port))
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


def running_learner(folder: Path) -> int | None:
    """The process that learns in a folder now, if there is one: it must answer, and know the secret."""
    address = read_address(folder)
    if address is None:
        return None
    try:
        call(address).close()
    except CONNECTION_ERRORS:
        return None
    return address.pid


def check_nobody_learns(folder: Path) -> None:
    """Two learners in one folder would spoil each other's files."""
    pid = running_learner(folder)
    if pid is not None:
        raise RacerError(f"{folder.name} is learning already, in process {pid}: stop that first")


def _exists(pid: int) -> bool:
    """Whether there is a process of this number, ours or not. Windows is asked by calling it: signals kill there."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
