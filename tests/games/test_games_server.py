"""A real server process with several clients, valid and invalid, at the same time."""

import json
import random
import socket
import threading
import time
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from racer_env.bridge.net import ServerAddress
from racer_env.games import RacingGameClient
from racer_env.games.client_session import SessionLimits
from racer_env.games.server import GamesServer
from racer_env.games.supervisor import GamesConfig
from racer_viewer.games.window import ServerThread
from tests.games.conftest import SHORT, RunningGames, StartGames
from tests.games.hostile_clients import busy_neighbour, hostile_lines, send_all
from tests.games.plain_player import PlainPlayer, plain_player
from tests.processes import wait_for

TELEMETRY = {
    "car_x", "car_y", "car_vx", "car_vy", "car_angle", "car_angular_vel", "speed", "wheel_speeds", "tiles_visited",
    "total_tiles", "steps", "total_reward",
}  # fmt: skip
MIN_RATE = 25.0
"""Minimum tick rate, of 50 requested [1/s]; other programs use this machine too."""


def test_a_client_with_the_plain_messages_only(games: RunningGames) -> None:
    with plain_player(games.port) as player:
        assert player.handshake["type"] == "HANDSHAKE"
        assert player.handshake["num_games"] == 4
        state = player.reset(0)
        assert state["telemetry"].keys() == TELEMETRY
        assert state["telemetry"]["steps"] == 0
        assert (state["done"], state["info"], state["frame_shape"]) == (False, {}, [96, 96, 3])
        player.act(0, gas=1.0)
        wait_for(lambda: player.state(0)["telemetry"]["speed"] > 5.0, "the car drives")
        player.send({"type": "CLOSE"})
        assert player.is_disconnected()


def test_games_run_freely_with_the_latest_action_of_any_client(games: RunningGames) -> None:
    with plain_player(games.port) as one, plain_player(games.port) as other:
        one.reset(1)
        one.act(1, gas=1.0)
        wait_for(lambda: other.state(1)["telemetry"]["speed"] > 5.0, "it drives")
        other.act(1, gas=0.0, brake=1.0)
        wait_for(lambda: one.state(1)["telemetry"]["speed"] < 1.0, "it stands")
        episode = one.state(1)["episode"]
        wait_for(lambda: one.state(1)["episode"] > episode, "the next episode begins")


def whole_episode(player: PlainPlayer, game_id: int) -> list[dict[str, Any]]:
    """Return the states of an episode from a reset to its end; retry if an end was missed."""
    for _ in range(20):
        assert player.reset(game_id)["telemetry"]["steps"] == 0
        states = [player.state(game_id)]
        while not states[-1]["done"]:
            states.append(player.state(game_id))
        if states[-1]["ended"] == 1:
            return states
    pytest.fail("an end was missed in every episode")


def test_done_is_reported_once_to_each_client_even_after_the_restart(games: RunningGames) -> None:
    with plain_player(games.port) as quick, plain_player(games.port) as slow:
        slow.state(2)
        states = whole_episode(quick, 2)
        last = states[-1]
        assert last["telemetry"]["steps"] == SHORT
        assert last["truncated"]
        assert last["frame"] is not None
        assert sum(state["reward_since"] for state in states) == pytest.approx(last["telemetry"]["total_reward"])
        assert quick.state(2)["episode"] > last["episode"]
        end = slow.state(2)
        assert end["done"]
        assert end["episode"] >= last["episode"]
        if end["episode"] == last["episode"]:
            assert end["telemetry"] == last["telemetry"]
            assert end["reward"] == last["reward"]
        assert slow.state(2)["episode"] > end["episode"]


def test_a_reset_is_an_end_for_other_clients(games: RunningGames) -> None:
    with plain_player(games.port) as one, plain_player(games.port) as other:

        def gets_the_reset() -> bool:
            other.state(2)
            one.reset(2)
            state = other.state(2)
            return bool((state["done"], state["truncated"], state["info"]) == (True, True, {"reset": True}))

        wait_for(gets_the_reset, "the other client gets the reset before that episode ends as well")


def test_all_states_come_in_one_round_trip_and_without_frames_if_wanted(games: RunningGames) -> None:
    with RacingGameClient(port=games.port) as client, RacingGameClient(port=games.port, frames=False) as blind:
        states = client.states()
        assert len(states) == client.num_games == 4
        assert all(state.frame is not None and state.frame.shape == (96, 96, 3) for state in states)
        assert all(state.frame is None for state in blind.states())
        assert blind.get_state(0).frame is None


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"type": "GET_STATE", "game_id": 4}, "game_id: a whole number from 0 to 3 expected, got 4"),
        ({"type": "RESET", "game_id": True}, "game_id: a whole number from 0 to 3 expected, got True"),
        (b"hello\n", "not JSON"),
        (b"\xff\xfe\x00\n", "not JSON"),
        ([1, 2], "a message is a JSON object"),
        ({"type": "FLY"}, "type: one of SET_ACTION"),
    ],
)
def test_an_invalid_message_gets_an_error_and_the_connection_stays_open(
    games: RunningGames, message: object, reason: str
) -> None:
    with plain_player(games.port) as player:
        assert reason in player.refusal(message)
        assert player.state(0)["type"] == "STATE"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"type": "SET_ACTION", "game_id": 0, "action": {"steer": "x", "gas": 0, "brake": 0}}, "action.steer"),
        ({"type": "SET_ACTION", "game_id": 4, "action": {}}, "game_id: a whole number from 0 to 3 expected, got 4"),
        ({"type": "SET_ACTION", "action": [0, 1, 0]}, "action: an object expected"),
        ({"type": "SET_ACTION", "action": {"gas": float("nan")}}, "not JSON"),
        ({"type": "SET_ACTION", "action": {"gas": float("inf")}}, "not JSON"),
        (b'{"type":"SET_ACTION","action"\n', "not JSON"),
    ],
)
def test_an_invalid_action_gets_no_reply_and_its_error_comes_with_the_next(
    games: RunningGames, message: object, reason: str
) -> None:
    with plain_player(games.port) as player:
        player.send(message)
        state = player.state(1)
        assert reason in state["action_error"]
        assert "action_error" not in player.state(1)
        for _ in range(3):
            player.send(message)
        assert player.ask({"type": "GET_STATS"})["type"] == "STATS"
        first, second = player.ask({"type": "GET_STATES", "game_ids": [2, 1], "frame": False})["states"]
        assert reason in first["action_error"]
        assert "(3 actions were refused)" in first["action_error"]
        assert "action_error" not in second
        player.send(message)
        refusal = player.refusal({"type": "GET_STATE", "game_id": 9})
        assert "got 9; before that, SET_ACTION was refused: " in refusal
        assert reason in refusal
        assert player.refusal({"type": "FLY"}).startswith("type: one of")
        assert player.reset(3).keys() == player.state(3).keys() >= {"telemetry"}
    log = games.log.read_text()
    assert f"SET_ACTION refused: {reason}" in log


def test_a_refused_action_leaves_the_last_one_in_effect(games: RunningGames) -> None:
    with plain_player(games.port) as player:
        player.reset(3)
        player.act(3, gas=1.0)
        player.send({"type": "SET_ACTION", "game_id": 3, "action": {"gas": None, "brake": 1.0}})
        wait_for(lambda: player.state(3)["telemetry"]["speed"] > 5.0, "the car drives")


def test_a_missing_game_is_the_first_and_missing_action_values_are_zero(games: RunningGames) -> None:
    with plain_player(games.port) as player:
        assert player.ask({"type": "RESET"})["game_id"] == 0
        player.send({"type": "SET_ACTION", "action": {"gas": 1.0}})
        wait_for(lambda: player.state(0)["telemetry"]["speed"] > 5.0, "it drives")
        player.send({"type": "SET_ACTION", "action": {"brake": 1.0}})
        wait_for(lambda: player.ask({"type": "GET_STATE"})["telemetry"]["speed"] < 1.0, "it stands")
        player.send({"type": "SET_ACTION"})
        assert "action_error" not in player.state(0)


def test_a_blank_line_is_nothing(games: RunningGames) -> None:
    with plain_player(games.port) as player:
        player.send(b'\n\r\n \t\n{"type":"GET_STATE","game_id":2}\r\n\n')
        assert player.read()["game_id"] == 2
        assert player.state(1)["game_id"] == 1


def test_a_line_without_end_closes_the_connection(games: RunningGames) -> None:
    with plain_player(games.port) as player, plain_player(games.port) as neighbour:
        player.send(b"x" * 65536)
        player.send(b"x" * 200_000)
        assert "65,536 bytes" in player.read()["message"]
        assert player.is_disconnected()
        neighbour.state(0)


def test_a_message_that_comes_byte_by_byte_and_several_that_come_at_once(games: RunningGames) -> None:
    line = b'{"type":"GET_STATE","game_id":0,"frame":false}\n'
    with plain_player(games.port) as player:
        for byte in line:
            player.send(bytes([byte]))
        assert player.read()["type"] == "STATE"
        player.send(line * 50 + b"\n" + line)
        kinds = [player.read()["type"] for _ in range(51)]
        assert kinds == ["STATE"] * 51
        assert player.state(0)["type"] == "STATE"


def test_a_client_that_disconnects_abruptly_affects_no_other(games: RunningGames) -> None:
    with plain_player(games.port) as neighbour:
        for ending in (b"", b'{"type":"GET_ST', b'{"type":"GET_STATE","game_id":0}\n' * 20):
            player = PlainPlayer(games.port)
            player.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # reset the connection
            player.send(ending)
            player.close()
            neighbour.state(0)


def test_a_client_that_reads_nothing_delays_no_other(games: RunningGames) -> None:
    with plain_player(games.port) as deaf, plain_player(games.port) as neighbour:
        deaf.socket.settimeout(0.2)
        with suppress(TimeoutError):
            for _ in range(1000):
                deaf.send(b'{"type":"GET_STATES"}\n' * 1000)
            pytest.fail("the server accepts unlimited input from a client that reads nothing")
        begin = time.monotonic()
        for _ in range(10):
            neighbour.state(3)
        assert time.monotonic() - begin < 10.0


def test_the_tick_rate_holds_and_lateness_is_reported(games: RunningGames) -> None:
    with RacingGameClient(port=games.port, frames=False) as client:
        before = [state.telemetry["steps"] for state in client.states()]
        assert len(before) == 4
        wait_for(lambda: all(each["ticks"] > 2 * SHORT for each in client.stats()["games"]), "games tick", 60)
        stats = client.stats()
        assert (stats["hz"], stats["game"]) == (50.0, "CarRacing-v3")
        assert stats["clients"] >= 1
        for game in stats["games"]:
            assert MIN_RATE < game["rate"] < 60.0
            assert 0.0 <= game["late_ms"]["p50"] <= game["late_ms"]["p99"] <= game["late_ms"]["max"]


def test_clients_beyond_the_limit_are_refused(games: RunningGames) -> None:
    with ExitStack() as players:
        connected = 0
        while connected < 65:
            player = players.enter_context(plain_player(games.port))
            if player.handshake["type"] == "ERROR":
                break
            connected += 1
        assert connected <= 64
        assert "64 clients are connected, which is the limit" in player.handshake["message"]
        assert player.is_disconnected()
    wait_for(lambda: _is_admitted(games.port), "there is room again")


def _is_admitted(port: int) -> bool:
    with plain_player(port) as player:
        return player.handshake["type"] == "HANDSHAKE"


def test_many_actions_affect_no_other_client(games: RunningGames) -> None:
    line = json.dumps({"type": "SET_ACTION", "game_id": 3, "action": {"steer": 0, "gas": 0.2, "brake": 0}}).encode()
    with plain_player(games.port) as flooding, plain_player(games.port) as neighbour:
        sending = threading.Thread(target=flooding.send, args=((line + b"\n") * 10_000,))
        sending.start()
        for game_id in range(4):
            neighbour.state(game_id)
        sending.join()
        assert flooding.state(3)["type"] == "STATE"


def test_hundreds_of_hostile_messages(games: RunningGames) -> None:
    with busy_neighbour(games.port):
        send_all(games.port, list(hostile_lines(1, 600)))


@pytest.mark.slow
def test_eight_thousand_hostile_messages(games: RunningGames) -> None:
    with busy_neighbour(games.port):
        for seed in range(2, 6):
            send_all(games.port, list(hostile_lines(seed, 2000)))


def test_random_bytes_from_many_clients(games: RunningGames) -> None:
    draw = random.Random(4)
    with busy_neighbour(games.port):
        for _ in range(40):
            with plain_player(games.port) as player:
                player.send(draw.randbytes(draw.choice([1, 100, 5000])))


@pytest.mark.slow
def test_without_frames_they_are_null_and_a_game_starts_with_the_first_request(start_games: StartGames) -> None:
    with start_games("--render", "none", "--num-games", "2", "--hz", "20") as games, plain_player(games.port) as player:
        player.act(0, gas=1.0)
        assert player.ask({"type": "GET_STATS"})["games"] == [], "an action starts no game"
        state = player.state(0)
        assert (state["frame"], state["telemetry"]["steps"], state["episode"]) == (None, 0, 1)
        wait_for(lambda: player.state(0)["telemetry"]["speed"] > 5.0, "the action is applied from the first tick on")
        assert [game["game_id"] for game in player.ask({"type": "GET_STATS"})["games"]] == [0]


@pytest.mark.slow
def test_six_games_without_frames_hold_their_rate(start_games: StartGames) -> None:
    with (
        start_games("--render", "none", "--num-games", "6") as games,
        RacingGameClient(port=games.port, frames=False) as client,
    ):
        client.states()
        wait_for(lambda: min((each["ticks"] for each in client.stats()["games"]), default=0) > 250, "5 s", 60)
        assert min(each["rate"] for each in client.stats()["games"]) > MIN_RATE


@pytest.mark.slow
def test_a_full_server_disconnects_the_client_that_is_silent_for_longest() -> None:
    config = GamesConfig("Racer-v0", 1, 50.0, 1000, 1, False)
    server = GamesServer(ServerAddress(port=0), config, SessionLimits(clients=2, silent_timeout=0.05))
    thread = ServerThread(server, lambda address: None)
    server.listen()
    thread.start()
    try:
        with plain_player(server.address.port) as silent, plain_player(server.address.port) as talking:

            def admits_another() -> bool:
                talking.state(0)
                with plain_player(server.address.port) as newcomer:
                    return bool(newcomer.handshake["type"] == "HANDSHAKE")

            wait_for(admits_another, "a place is free")
            assert "silent for more than 0.05 s, and 2 clients are the limit" in silent.read()["message"]
            assert silent.is_disconnected()
            talking.state(0)
    finally:
        server.stop()
        thread.join()
    assert thread.problem is None


@pytest.mark.slow
def test_racer_games_use_the_same_protocol(start_games: StartGames) -> None:
    with start_games("--game", "Racer-v0", "--num-games", "2") as games, plain_player(games.port) as player:
        assert player.handshake["hz"] == 60.0
        first = player.state(1)
        assert first["frame"] is not None
        player.act(1, gas=1.0)
        with RacingGameClient(port=games.port, frames=False) as client:
            client.get_state(0)
            wait_for(lambda: client.get_state(1).telemetry["speed"] > 50.0, "it drives")
            wait_for(lambda: client.get_state(0).done, "the other car stands still for too long")


@pytest.mark.slow
def test_a_client_that_reads_nothing_for_too_long_is_disconnected() -> None:
    pytest.importorskip("Box2D")
    server = GamesServer(
        ServerAddress(port=0), GamesConfig("CarRacing-v3", 1, 50.0, 1000, 1, True), SessionLimits(unread_timeout=0.5)
    )
    thread = ServerThread(server, lambda address: None)
    server.listen()
    thread.start()
    try:
        with plain_player(server.address.port) as deaf, plain_player(server.address.port) as neighbour:
            deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            with suppress(ConnectionError):
                for _ in range(200):
                    deaf.send(b'{"type":"GET_STATE","game_id":0}\n' * 100)
            wait_for(lambda: server.client_count == 1, "it is disconnected", 60)
            neighbour.state(0)
    finally:
        server.stop()
        thread.join()
    assert thread.problem is None
