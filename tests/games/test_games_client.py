"""RacingGameClient on servers as they exist, and on servers that break what was agreed."""

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

from racer_env.errors import ActionError, BridgeError, ContractError
from racer_env.games import RacingGameClient
from racer_env.games.state_contract import ServerError

FRAME = np.arange(96 * 96 * 3, dtype=np.uint8).tobytes()
TELEMETRY = {
    "car_x": 1.0, "car_y": 2, "car_vx": 0.5, "car_vy": 0, "car_angle": -1.5, "car_angular_vel": 0.0, "speed": 0.5,
    "wheel_speeds": [1.0, 1, 0, 0.5], "tiles_visited": 3, "total_tiles": 300, "steps": 4, "total_reward": -0.4,
}  # fmt: skip
Distortion = Callable[[dict[str, Any]], Any]


class OldGamesServer:
    """Knows the plain messages and nothing else, and one client: an unknown message or game is its end."""

    def __init__(self, distort: Distortion = lambda message: message, games: int = 3) -> None:
        self._distort, self._games = distort, games
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.requests: list[dict[str, Any]] = []
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            connection, _ = self._listener.accept()
            with connection:
                self._send(connection, {"type": "HANDSHAKE", "num_games": self._games})
                for line in connection.makefile("rb"):
                    self._answer(connection, json.loads(line))

    def _answer(self, connection: socket.socket, request: dict[str, Any]) -> None:
        self.requests.append(request)
        assert request["type"] in ("SET_ACTION", "GET_STATE", "RESET", "CLOSE")
        if request["type"] in ("GET_STATE", "RESET"):
            self._send(connection, state(request["game_id"]))

    def _send(self, connection: socket.socket, message: dict[str, Any]) -> None:
        sent = self._distort(message)
        connection.sendall(sent if isinstance(sent, bytes) else json.dumps(sent).encode() + b"\n")


def state(game_id: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "type": "STATE",
        "game_id": game_id,
        "telemetry": TELEMETRY,
        "frame": base64.b64encode(FRAME).decode(),
        "frame_shape": [96, 96, 3],
        "reward": -0.1,
        "done": False,
        "info": {},
        **changes,
    }


@contextmanager
def old_games(distort: Distortion = lambda message: message, games: int = 3) -> Iterator[OldGamesServer]:
    server = OldGamesServer(distort, games)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def asking(change: Distortion, **options: Any) -> Iterator[RacingGameClient]:
    """A client of a server that changes every STATE that it sends."""

    def distort(message: dict[str, Any]) -> Any:
        return change(message) if message["type"] == "STATE" else message

    with old_games(distort) as server, RacingGameClient("127.0.0.1", server.port, **options) as client:
        yield client


def test_an_existing_server_is_driven_without_anything_that_it_does_not_know() -> None:
    with old_games() as server, RacingGameClient("127.0.0.1", server.port) as client:
        assert client.num_games == 3
        client.set_action({"steer": -0.5, "gas": 2.0, "brake": 0.0}, 1)
        client.set_action([0.1, 0.2, 0.3], 0)
        client.set_action(np.array([0.0, 1.0, 0.0], np.float32))
        telemetry, frame, reward, done, info = client.reset(2)
        assert telemetry == TELEMETRY
        assert frame is not None
        assert frame.shape == (96, 96, 3)
        assert frame.dtype == np.uint8
        assert frame.tobytes() == FRAME
        assert (reward, done, info) == (-0.1, False, {})
        assert len(client.states()) == 3
        with pytest.raises(BridgeError, match="does not tell how steadily"):
            client.stats()
    server.thread.join(10)
    kinds = [request["type"] for request in server.requests]
    assert kinds == ["SET_ACTION"] * 3 + ["RESET"] + ["GET_STATE"] * 3 + ["CLOSE"]
    assert server.requests[0] == {
        "type": "SET_ACTION",
        "game_id": 1,
        "action": {"steer": -0.5, "gas": 1.0, "brake": 0.0},
    }
    assert server.requests[3].keys() == {"type", "game_id"}


def test_without_frames_an_existing_servers_pictures_are_left_alone() -> None:
    with asking(lambda message: {**message, "frame": "no picture"}, frames=False) as client:
        assert client.get_state(0).frame is None


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"reward": None}, "reward: a finite number expected"),
        ({"reward": True}, "reward: a finite number expected"),
        ({"done": 0}, "done: true or false expected"),
        ({"info": []}, "info: an object expected"),
        ({"telemetry": 3}, "telemetry: an object expected"),
        ({"telemetry": {**TELEMETRY, "speed": "fast"}}, "telemetry.speed: a finite number"),
        ({"telemetry": {**TELEMETRY, "steps": -1}}, "telemetry.steps: a whole number from 0"),
        ({"telemetry": {**TELEMETRY, "wheel_speeds": [1, 2, 3]}}, "wheel_speeds: 4 numbers"),
        ({"telemetry": {**TELEMETRY, "wheel_speeds": [1, 2, 3, None]}}, "wheel_speeds: a finite number"),
        ({"frame": "###"}, "frame: base64 or null expected"),
        ({"frame": 7}, "frame: base64 or null expected"),
        ({"frame": "AAAA"}, "frame: 27648 bytes expected, got 3"),
        ({"frame_shape": [96, 96]}, "frame_shape: height, width and 3"),
        ({"frame_shape": [96, 96, 4]}, "frame_shape: height, width and 3"),
        ({"frame_shape": [10**9, 10**9, 3]}, "frame_shape: height, width and 3"),
        ({"game_id": 1}, "game_id: 0 expected, got 1"),
        ({"type": "STAT"}, "type: STATE expected"),
    ],
)
def test_every_clause_of_the_contract_is_checked(changes: dict[str, Any], complaint: str) -> None:
    with asking(lambda message: {**message, **changes}) as client, pytest.raises(ContractError, match=complaint):
        client.get_state(0)


@pytest.mark.parametrize("name", ["telemetry", "frame", "reward", "done", "info"])
def test_what_is_missing_is_named(name: str) -> None:
    def without(message: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in message.items() if key != name}

    with asking(without) as client, pytest.raises(ContractError, match=f"{name}: missing"):
        client.get_state(0)


@pytest.mark.parametrize("line", [b"what?\n", b"[]\n", b"\n", b"NaN\n", b'{"type":"STATE","reward":NaN}\n'])
def test_garbage_is_refused(line: bytes) -> None:
    with asking(lambda message: line) as client, pytest.raises(ContractError):
        client.get_state(0)


@pytest.mark.parametrize("count", [0, -1, 2.0, True, None, "3", 10**9])
def test_a_handshake_must_say_how_many_games_there_are(count: Any) -> None:
    with old_games(lambda message: {**message, "num_games": count}) as server, pytest.raises(ContractError):
        RacingGameClient("127.0.0.1", server.port)


def test_an_error_is_raised_with_what_the_server_says() -> None:
    refusal = {"type": "ERROR", "message": "not today"}
    with asking(lambda message: refusal) as client, pytest.raises(ServerError, match="not today"):
        client.get_state(0)


def test_a_server_that_does_not_answer_in_time_costs_the_connection() -> None:
    with asking(lambda message: b"", timeout=0.2) as client:
        with pytest.raises(BridgeError, match=r"no reply .* within 0\.2 s"):
            client.get_state(0)
        with pytest.raises(BridgeError, match="is closed"):
            client.get_state(0)


def test_a_server_that_is_not_there_or_goes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(BridgeError, match="is the server running"):
        RacingGameClient("127.0.0.1", port)

    def leave(message: dict[str, Any]) -> bytes:
        raise ConnectionError

    with asking(leave) as client, pytest.raises(BridgeError, match="has gone"):
        client.get_state(0)


@pytest.mark.parametrize(
    "action", [None, 3, (1, 2), (1, 2, 3, 4), {"steer": 0}, "abc", (0, None, 0), (float("nan"), 0, 0), (0, 1e999, 0)]
)
def test_an_action_that_is_none_is_never_sent(action: Any) -> None:
    with old_games() as server, RacingGameClient("127.0.0.1", server.port) as client:
        with pytest.raises(ActionError):
            client.set_action(action, 0)
        for game_id in (3, -1, True, 0.0, None):
            with pytest.raises(BridgeError, match="game_id is a whole number from 0 to 2"):
                client.set_action((0, 0, 0), game_id)  # type: ignore[arg-type]
        client.get_state(0)
    server.thread.join(10)
    assert [request["type"] for request in server.requests] == ["GET_STATE", "CLOSE"]
