"""RacingGameClient on servers as they exist, and on servers that break what was agreed."""

import _thread
import base64
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

from racer_env.errors import ActionError, BridgeError, ContractError
from racer_env.games import RacingGameClient
from racer_env.games.protocol import ServerError, stats_of

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


def test_the_time_is_for_the_whole_of_a_reply_however_much_of_it_comes() -> None:
    def drip(connection: socket.socket) -> None:
        for _ in range(20):
            connection.sendall(b" ")
            time.sleep(0.05)
        connection.sendall(json.dumps(state(0)).encode() + b"\n")

    slow = pytest.raises(BridgeError, match=r"no reply .* within 0\.3 s")
    with answering(drip) as port, RacingGameClient(port=port, timeout=0.3) as client, slow:
        client.get_state(0)


def test_a_reply_that_nobody_asked_for_costs_the_connection() -> None:
    line = json.dumps(state(0, frame=None)).encode() + b"\n"
    with asking(lambda message: line * 2) as client:
        client.get_state(0)
        with pytest.raises(ContractError, match="nothing expected before a request"):
            client.get_state(0)
        with pytest.raises(BridgeError, match="is closed"):
            client.get_state(0)


def test_after_a_broken_contract_nothing_more_is_believed() -> None:
    with asking(lambda message: b"what?\n" + json.dumps(state(0)).encode() + b"\n") as client:
        with pytest.raises(ContractError):
            client.get_state(0)
        with pytest.raises(BridgeError, match="is closed"):
            client.get_state(0)


def test_after_an_error_of_the_server_the_connection_stays() -> None:
    replies: list[Any] = [{"type": "ERROR", "message": "not today"}]
    with asking(lambda message: replies.pop() if replies else message) as client:
        with pytest.raises(ServerError, match="not today"):
            client.get_state(0)
        assert client.get_state(0).reward == -0.1


def test_ctrl_c_between_a_request_and_its_reply_costs_the_connection() -> None:
    interrupts = [_thread.interrupt_main]

    def interrupt(message: dict[str, Any]) -> dict[str, Any]:
        if interrupts:
            interrupts.pop()()
        return message

    with asking(interrupt) as client:
        with pytest.raises(KeyboardInterrupt):
            client.get_state(0)
        with pytest.raises(BridgeError, match="is closed"):
            client.get_state(0)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf")])
def test_a_timeout_is_a_time(timeout: float) -> None:
    with pytest.raises(BridgeError, match="timeout must be a number of seconds above 0"):
        RacingGameClient(timeout=timeout)


def test_what_newer_servers_say_of_a_state_is_there_beside_the_five() -> None:
    more = {"truncated": True, "ended": 2, "episode": 7, "reward_since": 1.5, "human": False}
    with asking(lambda message: {**message, **more}) as client:
        found = client.get_state(0)
        assert len(found) == 5
        assert {name: getattr(found, name) for name in more} == more
    with old_games() as server, RacingGameClient(port=server.port) as client:
        assert {getattr(client.get_state(0), name) for name in more} == {None}


STATS: dict[str, Any] = {
    "type": "STATS", "game": "any", "hz": 50.0, "clients": 1, "keeps_up": True,
    "games": [{"game_id": 2, "rate": 50.0, "ticks": 3, "skipped": 0, "late_ms": {"p50": 0.1, "p99": 1, "max": 2}}],
}  # fmt: skip


def test_how_steadily_games_run_is_checked() -> None:
    assert stats_of(STATS, 3) == STATS
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
            stats_of({**STATS, **change}, 3)


@pytest.mark.parametrize("change", [{"hz": 0}, {"hz": "fast"}, {"game": 3}, {"frames": 1}, {"offers": "all"}])
def test_all_of_a_handshake_is_checked(change: dict[str, Any]) -> None:
    with old_games(lambda message: {**message, **change}) as server, pytest.raises(ContractError):
        RacingGameClient("127.0.0.1", server.port)


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port of a server that does this with every request."""

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
    "action",
    [
        None,
        3,
        (1, 2),
        (1, 2, 3, 4),
        {"steer": 0},
        "abc",
        (0, None, 0),
        (float("nan"), 0, 0),
        (0, 1e999, 0),
        (0, 10**400, 0),
    ],
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
