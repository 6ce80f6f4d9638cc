"""How a window and a learner know each other: a secret in a file that only the user can read, never sent itself."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any

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
