"""An existing client: websocket-client with its defaults and JSON of the standard library."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import websocket

REPLY_TIMEOUT = 30.0
GENTLY = [0.1, 0.5, 0.0]
"""Action for tests in which any action will do."""


class PlainClient:
    def __init__(self, url: str, **options: Any) -> None:
        self.socket = websocket.create_connection(url, timeout=REPLY_TIMEOUT, **options)

    def ask(self, message: Any) -> dict[str, Any]:
        """Return the reply to a message: a string is sent as is, bytes as a binary message, anything else as JSON."""
        self.send(message)
        return self.reply()

    def send(self, message: Any) -> None:
        if isinstance(message, bytes):
            self.socket.send_binary(message)
        else:
            self.socket.send(message if isinstance(message, str) else json.dumps(message))

    def reply(self) -> dict[str, Any]:
        text = self.socket.recv()
        assert isinstance(text, str), text[:40]
        reply = json.loads(text)
        assert isinstance(reply, dict)
        return reply

    def reset(self, **settings: Any) -> dict[str, Any]:
        return self._expect("reset_result", {"type": "reset", **settings})

    def step(self, action: list[float] = GENTLY) -> dict[str, Any]:
        return self._expect("step_result", {"type": "step", "action": action})

    def refusal(self, message: Any) -> str:
        """Return the error message that the server replies with."""
        reply = self.ask(message)
        assert reply.keys() == {"type", "message"}, reply
        assert reply["type"] == "error"
        return str(reply["message"])

    def close(self) -> None:
        self.socket.close(timeout=5)

    def _expect(self, kind: str, message: Any) -> dict[str, Any]:
        reply = self.ask(message)
        assert reply["type"] == kind, reply
        return reply


@contextmanager
def plain_client(url: str, **options: Any) -> Iterator[PlainClient]:
    client = PlainClient(url, **options)
    try:
        yield client
    finally:
        client.close()
