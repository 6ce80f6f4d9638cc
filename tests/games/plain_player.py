"""A minimal client: a socket, the standard library's JSON, and the messages that every server has."""

import base64
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

REPLY_TIMEOUT = 30.0
STATE_KEYS = {"type", "game_id", "telemetry", "frame", "frame_shape", "reward", "done", "info"}
FRAME_BYTES = 96 * 96 * 3


class PlainPlayer:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), REPLY_TIMEOUT)
        self._lines = self.socket.makefile("rb")
        self.handshake = self.read()

    def send(self, message: Any) -> None:
        """Send bytes unchanged, and anything else as JSON."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        self.socket.sendall(line)

    def read(self) -> dict[str, Any]:
        line = self._lines.readline()
        if not line:
            raise EOFError("the server has closed the connection")
        message = json.loads(line)
        assert isinstance(message, dict)
        return message

    def ask(self, message: Any) -> dict[str, Any]:
        self.send(message)
        return self.read()

    def act(self, game_id: int, steer: float = 0.0, gas: float = 0.5, brake: float = 0.0) -> None:
        action = {"steer": steer, "gas": gas, "brake": brake}
        self.send({"type": "SET_ACTION", "game_id": game_id, "action": action})

    def state(self, game_id: int = 0) -> dict[str, Any]:
        return self._state({"type": "GET_STATE", "game_id": game_id})

    def reset(self, game_id: int = 0) -> dict[str, Any]:
        return self._state({"type": "RESET", "game_id": game_id})

    def refusal(self, message: Any) -> str:
        """Send an invalid message and return the text of the ERROR."""
        reply = self.ask(message)
        assert reply.keys() == {"type", "message"}, reply
        assert reply["type"] == "ERROR"
        return str(reply["message"])

    def is_disconnected(self) -> bool:
        """Return whether the server closes the connection."""
        try:
            return not self._lines.read()
        except ConnectionError:
            return True

    def close(self) -> None:
        self._lines.close()
        self.socket.close()

    def _state(self, message: dict[str, Any]) -> dict[str, Any]:
        state = self.ask(message)
        assert state["type"] == "STATE", state
        assert state.keys() >= STATE_KEYS
        assert state["game_id"] == message["game_id"]
        if state["frame"] is not None:
            assert len(base64.b64decode(state["frame"], validate=True)) == FRAME_BYTES
        return state


@contextmanager
def plain_player(port: int) -> Iterator[PlainPlayer]:
    player = PlainPlayer(port)
    try:
        yield player
    finally:
        player.close()
