"""RacingGameClient with plain servers, and with servers that break the protocol."""

import _thread
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
from racer_env.games import client as client_module
from racer_env.games.protocol import ServerError, parse_stats

FRAME = np.arange(96 * 96 * 3, dtype=np.uint8).tobytes()
TELEMETRY = {
    "car_x": 1.0, "car_y": 2, "car_vx": 0.5, "car_vy": 0, "car_angle": -1.5, "car_angular_vel": 0.0, "speed": 0.5,
    "wheel_speeds": [1.0, 1, 0, 0.5], "tiles_visited": 3, "total_tiles": 300, "steps": 4, "total_reward": -0.4,
}  # fmt: skip
Distortion = Callable[[dict[str, Any]], Any]


class PlainServer:
    """Server with the plain messages only, for one client after another; an unknown message or game ends it."""

    def __init__(self, distort: Distortion, games: int, clients: int) -> None:
        self._distort, self._games, self._clients = distort, games, clients
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
        for _ in range(self._clients):
            with suppress(OSError):
                self._serve_client()

    def _serve_client(self) -> None:
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
def plain_server(
    distort: Distortion = lambda message: message, games: int = 3, clients: int = 1
) -> Iterator[PlainServer]:
    server = PlainServer(distort, games, clients)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def client_of(change: Distortion, **options: Any) -> Iterator[RacingGameClient]:
    """Return a client of a server that changes every STATE that it sends."""

    def distort(message: dict[str, Any]) -> Any:
        return change(message) if message["type"] == "STATE" else message

    with plain_server(distort) as server, RacingGameClient("127.0.0.1", server.port, **options) as client:
        yield client


def test_a_plain_server_gets_only_plain_messages() -> None:
    with plain_server() as server, RacingGameClient("127.0.0.1", server.port) as client:
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
        with pytest.raises(BridgeError, match="offers no tick statistics"):
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


def test_actions_without_all_values_are_filled_with_zeros() -> None:
    with plain_server() as server, RacingGameClient("127.0.0.1", server.port) as client:
        for action in ({"gas": 1}, {"steer": -0.5, "brake": 1}, {}, {"throttle": 1.0}):
            client.set_action(action)
    server.thread.join(10)
    assert [request.get("action") for request in server.requests] == [
        {"steer": 0.0, "gas": 1.0, "brake": 0.0},
        {"steer": -0.5, "gas": 0.0, "brake": 1.0},
        {"steer": 0.0, "gas": 0.0, "brake": 0.0},
        {"steer": 0.0, "gas": 0.0, "brake": 0.0},
        None,
    ]


def test_a_program_connects_and_disconnects_explicitly() -> None:
    with plain_server(clients=3) as server:
        client = RacingGameClient("127.0.0.1", server.port, 10.0)
        client.connect()
        assert client.connected
        assert client.get_state(0).reward == -0.1
        client.disconnect()
        client.disconnect()
        assert not client.connected
        with pytest.raises(BridgeError, match=r"is closed: connect\(\) opens it again"):
            client.get_state(0)
        client.connect()
        assert client.get_state(1).reward == -0.1
        client.close()
        with client as again:
            assert again is client
            assert client.get_state(2).reward == -0.1
        assert not client.connected
    server.thread.join(10)
    assert [request["type"] for request in server.requests] == ["GET_STATE", "CLOSE"] * 3


def test_a_client_connects_again_after_an_error_and_forgets_the_rest_of_the_old_connection() -> None:
    replies: list[Any] = [b"what?\nand more"]

    def distort(message: dict[str, Any]) -> Any:
        return replies.pop() if replies and message["type"] == "STATE" else message

    with plain_server(distort, clients=2) as server:
        client = RacingGameClient("127.0.0.1", server.port)
        with pytest.raises(ContractError):
            client.get_state(0)
        assert not client.connected
        client.connect()
        assert client.get_state(0).reward == -0.1
        client.disconnect()


def test_without_a_port_and_a_timeout_the_defaults_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    with plain_server() as server:
        monkeypatch.setattr(client_module, "DEFAULT_PORT", server.port)
        with RacingGameClient("127.0.0.1", None, None) as client:
            assert client.num_games == 3


def test_without_frames_those_of_a_plain_server_are_ignored() -> None:
    with client_of(lambda message: {**message, "frame": "no picture"}, frames=False) as client:
        assert client.get_state(0).frame is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"reward": None}, "reward: a finite number expected"),
        ({"reward": True}, "reward: a finite number expected"),
        ({"done": 0}, "done: true or false expected"),
        ({"info": []}, "info: an object expected"),
        ({"telemetry": 3}, "telemetry: an object expected"),
        ({"telemetry": {**TELEMETRY, "speed": "fast"}}, "telemetry.speed: a finite number"),
        ({"telemetry": {**TELEMETRY, "steps": -1}}, "telemetry.steps: at least 0 expected, got -1"),
        ({"telemetry": {**TELEMETRY, "wheel_speeds": [1, 2, 3]}}, "wheel_speeds: a list of >= 4 values expected"),
        ({"telemetry": {**TELEMETRY, "wheel_speeds": [1, 2, 3, None]}}, r"wheel_speeds\[3\]: a finite number"),
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
def test_every_field_of_a_state_is_checked(changes: dict[str, Any], expected: str) -> None:
    with client_of(lambda message: {**message, **changes}) as client, pytest.raises(ContractError, match=expected):
        client.get_state(0)


@pytest.mark.parametrize("name", ["telemetry", "frame", "reward", "done", "info"])
def test_a_missing_field_is_named(name: str) -> None:
    def without(message: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in message.items() if key != name}

    with client_of(without) as client, pytest.raises(ContractError, match=f"{name}: missing"):
        client.get_state(0)


@pytest.mark.parametrize("line", [b"what?\n", b"[]\n", b"\n", b"NaN\n", b'{"type":"STATE","reward":NaN}\n'])
def test_invalid_json_is_refused(line: bytes) -> None:
    with client_of(lambda message: line) as client, pytest.raises(ContractError):
        client.get_state(0)


@pytest.mark.parametrize("count", [0, -1, 2.0, True, None, "3", 10**9])
def test_a_handshake_has_a_valid_number_of_games(count: Any) -> None:
    with plain_server(lambda message: {**message, "num_games": count}) as server, pytest.raises(ContractError):
        RacingGameClient("127.0.0.1", server.port)


def test_an_error_of_the_server_is_raised_with_its_message() -> None:
    refusal = {"type": "ERROR", "message": "not today"}
    with client_of(lambda message: refusal) as client, pytest.raises(ServerError, match="not today"):
        client.get_state(0)


def test_the_connection_is_closed_after_a_timeout() -> None:
    with client_of(lambda message: b"", timeout=0.2) as client:
        with pytest.raises(BridgeError, match=r"no reply .* within 0\.2 s"):
            client.get_state(0)
        with pytest.raises(BridgeError, match="is closed"):
            client.get_state(0)


def test_the_timeout_is_for_the_whole_reply() -> None:
    def drip(connection: socket.socket) -> None:
        pause = threading.Event()
        while not pause.wait(0.05):  # until the client closes the connection
            connection.sendall(b" ")

    slow = pytest.raises(BridgeError, match=r"no reply .* within 0\.3 s")
    with answering(drip) as port, RacingGameClient(port=port, timeout=0.3) as client, slow:
        client.get_state(0)


def test_an_unrequested_reply_closes_the_connection() -> None:
    line = json.dumps(state(0, frame=None)).encode() + b"\n"
    with client_of(lambda message: line * 2) as client:
        client.get_state(0)
        with pytest.raises(ContractError, match="nothing expected before a request"):
            client.get_state(0)
        with pytest.raises(BridgeError, match="is closed"):
            client.get_state(0)


def test_the_connection_is_closed_after_an_invalid_reply() -> None:
    with client_of(lambda message: b"what?\n" + json.dumps(state(0)).encode() + b"\n") as client:
        with pytest.raises(ContractError):
            client.get_state(0)
        with pytest.raises(BridgeError, match="is closed"):
            client.get_state(0)


def test_the_connection_stays_open_after_an_error_of_the_server() -> None:
    replies: list[Any] = [{"type": "ERROR", "message": "not today"}]
    with client_of(lambda message: replies.pop() if replies else message) as client:
        with pytest.raises(ServerError, match="not today"):
            client.get_state(0)
        assert client.get_state(0).reward == -0.1


def test_ctrl_c_during_a_request_closes_the_connection() -> None:
    interrupts = [_thread.interrupt_main]

    def interrupt(message: dict[str, Any]) -> dict[str, Any]:
        if interrupts:
            interrupts.pop()()
        return message

    with client_of(interrupt) as client:
        with pytest.raises(KeyboardInterrupt):
            client.get_state(0)
        with pytest.raises(BridgeError, match="is closed"):
            client.get_state(0)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf")])
def test_a_timeout_is_a_positive_number(timeout: float) -> None:
    with pytest.raises(BridgeError, match="timeout must be a number of seconds above 0"):
        RacingGameClient(timeout=timeout)


def test_additional_fields_of_a_state_are_attributes() -> None:
    more = {"truncated": True, "ended": 2, "episode": 7, "reward_since": 1.5, "human": False, "action_error": "no"}
    with client_of(lambda message: {**message, **more}) as client:
        found = client.get_state(0)
        assert len(found) == 5
        assert {name: getattr(found, name) for name in more} == more
    with plain_server() as server, RacingGameClient(port=server.port) as client:
        assert {getattr(client.get_state(0), name) for name in more} == {None}


STATS: dict[str, Any] = {
    "type": "STATS", "game": "any", "hz": 50.0, "clients": 1, "keeps_up": True,
    "games": [{"game_id": 2, "rate": 50.0, "ticks": 3, "skipped": 0, "late_ms": {"p50": 0.1, "p99": 1, "max": 2}}],
}  # fmt: skip


def test_tick_statistics_are_checked() -> None:
    assert parse_stats(STATS, 3) == STATS
    for change in (
        {"hz": None},
        {"clients": -1},
        {"keeps_up": 1},
        {"games": {}},
        {"games": [3]},
        {"games": [{**STATS["games"][0], "game_id": 3}]},
        {"games": [{**STATS["games"][0], "late_ms": {"p50": 0.1}}]},
        {"type": "STATE"},
    ):
        with pytest.raises(ContractError):
            parse_stats({**STATS, **change}, 3)


@pytest.mark.parametrize("change", [{"hz": 0}, {"hz": "fast"}, {"game": 3}, {"frames": 1}, {"offers": "all"}])
def test_every_field_of_a_handshake_is_checked(change: dict[str, Any]) -> None:
    with plain_server(lambda message: {**message, **change}) as server, pytest.raises(ContractError):
        RacingGameClient("127.0.0.1", server.port)


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """Return the port of a server that handles every request with this function."""

    def serve() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b'{"type":"HANDSHAKE","num_games":1}\n')
                for _ in connection.makefile("rb"):
                    answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
    thread.join(10)


def test_a_server_that_does_not_run_or_closes_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(BridgeError, match="is the server running"):
        RacingGameClient("127.0.0.1", port)

    def leave(message: dict[str, Any]) -> bytes:
        raise ConnectionError

    with client_of(leave) as client, pytest.raises(BridgeError, match="has closed the connection"):
        client.get_state(0)


@pytest.mark.parametrize(
    "action",
    [
        None,
        3,
        (1, 2),
        (1, 2, 3, 4),
        {"steer": None},
        "abc",
        (0, None, 0),
        (float("nan"), 0, 0),
        (0, 1e999, 0),
        (0, 10**400, 0),
    ],
)
def test_an_invalid_action_is_never_sent(action: Any) -> None:
    with plain_server() as server, RacingGameClient("127.0.0.1", server.port) as client:
        with pytest.raises(ActionError):
            client.set_action(action, 0)
        for game_id in (3, -1, True, 0.0, None):
            with pytest.raises(BridgeError, match="game_id is a whole number from 0 to 2"):
                client.set_action((0, 0, 0), game_id)  # type: ignore[arg-type]
        client.get_state(0)
    server.thread.join(10)
    assert [request["type"] for request in server.requests] == ["GET_STATE", "CLOSE"]
