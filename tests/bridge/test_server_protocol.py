"""The protocol over a real socket: requests of existing clients, and the additive ones."""

import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from racer_env.engine import circuits, load_circuit
from tests.bridge.conftest import RunningBridge
from tests.bridge.plain_client import GENTLY, PlainClient, plain_client

RESET_INFO = {"tick", "speed", "lap", "checkpoint", "stepCount"}
STEP_INFO = {
    "progress", "speed", "wall", "offTrack", "backward", "stillness", "tick", "rawSpeed", "lap", "checkpoint",
    "stepCount", "wallContact", "stillnessCounter",
}  # fmt: skip
ANYWHERE = {"arc": [0.0, 1.0], "offset": [-0.5, 0.5], "heading": [-0.2, 0.2], "speed": [0.0, 100.0]}


@pytest.fixture
def client(bridge: RunningBridge) -> Iterator[PlainClient]:
    with plain_client(bridge.url) as client:
        yield client


def test_a_reset_is_answered_with_these_keys_and_no_more(client: PlainClient) -> None:
    reply = client.ask({"type": "reset", "trackId": "track-01", "config": {"episode": {"maxSteps": 100}}})
    assert reply.keys() == {"type", "observation", "info"}
    assert reply["type"] == "reset_result"
    assert len(reply["observation"]) == 14
    assert all(type(value) is float for value in reply["observation"])
    assert reply["info"] == {"tick": 0, "speed": 0.0, "lap": 1, "checkpoint": 0, "stepCount": 0}
    assert reply["info"].keys() == RESET_INFO


def test_a_step_is_answered_with_these_keys_and_no_more(client: PlainClient) -> None:
    client.ask({"type": "reset"})
    reply = client.ask({"type": "step", "action": [0.0, 1.0, 0.0]})
    assert reply.keys() == {"type", "observation", "reward", "terminated", "truncated", "info"}
    assert reply["type"] == "step_result"
    assert len(reply["observation"]) == 14
    assert type(reply["reward"]) is float
    assert reply["terminated"] is reply["truncated"] is False
    info = reply["info"]
    assert info.keys() == STEP_INFO
    assert info["tick"] == info["stepCount"] == 1
    assert info["rawSpeed"] > 0.0
    assert info["wallContact"] is False
    assert sum(info[key] for key in ("progress", "speed", "wall", "offTrack", "backward", "stillness")) == (
        pytest.approx(reply["reward"])
    )


def test_whole_numbers_are_numbers_too(client: PlainClient) -> None:
    client.reset()
    assert client.step([0, 1, 0])["info"]["stepCount"] == 1


def test_a_close_is_answered_and_afterwards_a_step_needs_a_reset(client: PlainClient) -> None:
    client.reset()
    client.step()
    assert client.ask({"type": "close"}) == {"type": "close_result"}
    assert "reset" in client.refusal({"type": "step", "action": GENTLY})
    assert client.reset()["info"]["stepCount"] == 0
    assert client.step()["info"]["stepCount"] == 1
    assert client.ask({"type": "close"}) == {"type": "close_result"}
    assert client.ask({"type": "close"}) == {"type": "close_result"}


def test_a_reset_in_the_midst_of_an_episode_starts_a_new_one(client: PlainClient) -> None:
    first = client.reset()
    after = [client.step([0.3, 1.0, 0.0]) for _ in range(20)]
    assert client.reset() == first
    assert [client.step([0.3, 1.0, 0.0]) for _ in range(20)] == after


def test_every_connection_has_an_environment_of_its_own(bridge: RunningBridge) -> None:
    with plain_client(bridge.url) as one, plain_client(bridge.url) as other:
        one.reset()
        other.reset(trackId="track-03")
        for count in range(1, 6):
            assert one.step()["info"]["stepCount"] == count
        assert other.step()["info"]["stepCount"] == 1


def test_steps_after_the_end_of_an_episode_are_answered_and_the_counters_go_on(client: PlainClient) -> None:
    client.reset(config={"episode": {"maxSteps": 3}})
    ends = [(step["truncated"], step["info"]["stepCount"]) for step in (client.step() for _ in range(6))]
    assert ends == [(False, 1), (False, 2), (True, 3), (True, 4), (True, 5), (True, 6)]


def test_a_car_that_stands_still_for_too_long_is_terminated(client: PlainClient) -> None:
    client.reset(config={"episode": {"stillnessTimeoutTicks": 5}})
    assert [client.step([0, 0, 1])["terminated"] for _ in range(7)] == [False] * 4 + [True] * 3
    assert client.step([0, 0, 1])["info"]["stillnessCounter"] == 8


def test_the_config_of_a_reset_determines_the_reward(client: PlainClient) -> None:
    client.reset(config={"weights": {"progress": 0.0, "speedBonus": 0.0, "stillnessPenalty": -7.0}})
    assert client.step([0, 0, 1])["reward"] == -7.0


def test_actions_beyond_their_ranges_are_clamped(bridge: RunningBridge) -> None:
    with plain_client(bridge.url) as wild, plain_client(bridge.url) as tame:
        wild.reset()
        tame.reset()
        for beyond, within in (
            ([5.0, 9, -3.0], [1, 1, 0]),
            ([-1e300, -1, 2**63], [-1, 0, 1]),
            ([2, 1e9, 0], [1, 1, 0]),
        ):
            assert wild.step(beyond) == tame.step(within)


@pytest.mark.parametrize(
    "action",
    [
        "[NaN, 0, 0]", "[0, Infinity, 0]", "[0, 0, -Infinity]", "[1e999, 0, 0]", "[0, 0, " + "9" * 400 + "]", "[0, 0]",
        "[0, 0, 0, 0]", "[]", "[true, 0, 0]", "[0, false, 0]", '["0", "0", "0"]', '"000"', "[null, 0, 0]", "null", "5",
        "{}", '{"0": 0, "1": 0, "2": 0}', "[[0, 0, 0]]", "[[0], [0], [0]]", "[0, 0, {}]", "[" + "0," * 9999 + "0]",
    ],
)  # fmt: skip
def test_an_action_that_is_not_three_finite_numbers_is_refused(client: PlainClient, action: str) -> None:
    client.reset()
    assert client.refusal(f'{{"type": "step", "action": {action}}}')
    assert client.step()["info"]["stepCount"] == 1, "the refused action has moved nothing"


def test_a_step_without_an_action_is_refused(client: PlainClient) -> None:
    client.reset()
    assert "3 finite numbers" in client.refusal({"type": "step"})
    assert client.step()["info"]["stepCount"] == 1


def test_a_step_before_the_first_reset_is_refused(client: PlainClient) -> None:
    assert "before reset" in client.refusal({"type": "step", "action": GENTLY})
    client.reset()
    client.step()


@pytest.mark.parametrize("name", ["track-99", "", "TRACK-01", "track-01.json", "random:", "random:-1", "random:x:easy"])
def test_an_unknown_track_is_refused_and_the_episode_goes_on(client: PlainClient, name: str) -> None:
    client.reset()
    client.step()
    assert client.refusal({"type": "reset", "trackId": name})
    assert client.step()["info"]["stepCount"] == 2


def test_the_refusal_of_an_unknown_track_lists_the_known_ones(client: PlainClient) -> None:
    message = client.refusal({"type": "reset", "trackId": "nowhere"})
    assert "nowhere" in message
    for circuit in circuits():
        assert circuit.id in message


@pytest.mark.parametrize(
    "setting",
    [
        {"trackId": 1}, {"trackId": ["track-01", 2]}, {"trackId": {}}, {"config": []}, {"config": "fast"},
        {"config": {"weights": []}}, {"config": {"weights": {"progress": "1"}}},
        {"config": {"weights": {"progress": True}}}, {"config": {"episode": {"maxSteps": -1}}},
        {"config": {"episode": {"maxSteps": 1.5}}}, {"seed": 1.5}, {"seed": "1"}, {"seed": True},
        {"telemetry": 1}, {"start": 5}, {"start": {"arc": 2}}, {"start": {"where": 0}}, {"start": {"arc": [1, 0]}},
        {"trackIds": []}, {"trackIds": ["track-01"] * 65},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_a_reset_with_a_wrong_setting_is_refused_and_the_episode_goes_on(
    client: PlainClient, setting: dict[str, Any]
) -> None:
    client.reset()
    client.step()
    assert client.refusal({"type": "reset", **setting})
    assert client.step()["info"]["stepCount"] == 2


@pytest.mark.parametrize("kind", ["stop", "", "RESET", None, 1, [], {}, "step_result"])
def test_an_unknown_type_is_refused(client: PlainClient, kind: Any) -> None:
    assert "unknown message type" in client.refusal({"type": kind})
    client.reset()


def test_a_message_without_a_type_is_refused(client: PlainClient) -> None:
    assert "unknown message type" in client.refusal({})
    client.reset()


@pytest.mark.parametrize(
    "text", ["", "reset", "{", '{"type": "reset"', "{'type': 'reset'}", '{"type": "reset"}}', "\0"]
)
def test_what_is_not_json_is_refused(client: PlainClient, text: str) -> None:
    assert "not JSON" in client.refusal(text)
    client.reset()


@pytest.mark.parametrize("text", ["[]", "3", '"reset"', "null", "true", '[{"type": "reset"}]'])
def test_json_that_is_no_object_is_refused(client: PlainClient, text: str) -> None:
    assert "object" in client.refusal(text)
    client.reset()


def test_a_server_describes_itself(client: PlainClient) -> None:
    reply = client.ask({"type": "describe"})
    assert (reply["type"], reply["protocol"]) == ("describe_result", 1)
    assert reply["observation"]["shape"] == [14]
    assert len(reply["observation"]["low"]) == len(reply["observation"]["high"]) == 14
    assert reply["action"] == {"shape": [3], "dtype": "float32", "low": [-1.0, 0.0, 0.0], "high": [1.0, 1.0, 1.0]}
    assert set(reply["stepInfoKeys"]) == STEP_INFO
    assert set(reply["resetInfoKeys"]) == RESET_INFO
    assert set(reply["rewardKeys"]) < STEP_INFO
    assert [track["id"] for track in reply["tracks"]] == [circuit.id for circuit in circuits()]
    assert {"batch", "seed", "start", "telemetry", "track"} <= set(reply["capabilities"])
    assert reply["limits"]["message_bytes"] == 65536


def test_the_geometry_of_a_track_is_that_of_the_engine(client: PlainClient) -> None:
    reply = client.ask({"type": "track", "trackId": "track-02"})
    assert reply["type"] == "track_result"
    track, built = reply["track"], load_circuit("track-02")
    assert track["id"] == "track-02"
    assert track["length"] == built.length
    for key, points in (("inner", built.inner), ("outer", built.outer), ("controlPoints", built.control_points)):
        np.testing.assert_array_equal(track[key], points)
    assert "known" in client.refusal({"type": "track", "trackId": "nowhere"})


def test_telemetry_comes_with_every_reply_when_it_was_asked_for_and_only_then(client: PlainClient) -> None:
    assert "telemetry" not in client.reset()
    assert "telemetry" not in client.step()
    reset = client.reset(telemetry=True, trackId="track-02")
    assert reset["telemetry"]["trackId"] == "track-02"
    step = client.step([0.0, 1.0, 0.0])
    car = step["telemetry"]
    assert car["speed"] == step["info"]["rawSpeed"]
    assert car["stepCount"] == 1
    assert len(car["rays"]) == 9
    assert (car["x"], car["y"]) != (reset["telemetry"]["x"], reset["telemetry"]["y"])
    assert "telemetry" not in client.reset(telemetry=False)
    assert "telemetry" not in client.step()
    assert "telemetry" in client.reset(telemetry=True)
    assert "telemetry" not in client.reset()
    assert "telemetry" not in client.step()


def test_start_and_seed_determine_the_position_of_the_car(bridge: RunningBridge) -> None:
    with plain_client(bridge.url) as one, plain_client(bridge.url) as other:
        first = one.reset(start=ANYWHERE, seed=7)
        assert first == other.reset(start=ANYWHERE, seed=7)
        assert first != other.reset(start=ANYWHERE, seed=8)
        assert one.reset(start=ANYWHERE) != first, "without a seed the next start is drawn"
        halfway = one.reset(start={"arc": 0.5, "speed": 60.0}, telemetry=True)
        assert halfway["info"]["speed"] == 60.0
        assert halfway["telemetry"]["arc"] == pytest.approx(0.5 * load_circuit("track-01").length)


def test_a_random_circuit_is_the_same_for_everyone(bridge: RunningBridge) -> None:
    with plain_client(bridge.url) as one, plain_client(bridge.url) as other:
        assert one.reset(trackId="random:5:easy") == other.reset(trackId="random:5:easy")
        assert one.reset(trackId="random:5:easy") != one.reset(trackId="track-01")


CARS = 3
HEADER = "<4sHHII"
RESULT = "<3d18d3q3d3q3q3q3q42f3?3?3?"
"""Rewards, components, finished laps, speed, lap, gate, steps, stillness, observations, terminated, truncated, wall."""
FINAL = "<1q1d1q1q1q1q14f1?"
"""Car number, speed, lap, gate, steps, stillness, observation and wall of one car."""


def batch_step(*actions: tuple[float, float, float]) -> bytes:
    return struct.pack(HEADER, b"RCRB", 1, 1, len(actions), 0) + struct.pack(
        f"<{3 * len(actions)}d", *(value for action in actions for value in action)
    )


def binary_reply(client: PlainClient, message: Any) -> bytes:
    client.send(message)
    reply = client.socket.recv()
    assert isinstance(reply, bytes), reply
    return reply


def test_a_batch_has_the_documented_layout_and_the_same_values_as_single_cars(bridge: RunningBridge) -> None:
    with plain_client(bridge.url) as batch, plain_client(bridge.url) as single:
        reset = binary_reply(batch, {"type": "batch_reset", "numCars": CARS, "trackId": "track-01"})
        assert struct.unpack_from(HEADER, reset) == (b"RCRB", 1, 2, CARS, 0)
        first = single.reset(trackId="track-01")
        actions = ((0.5, 1.0, 0.0), (0.0, 0.0, 1.0), (-0.5, 0.7, 0.1))
        reply = binary_reply(batch, batch_step(*actions))

        values = struct.unpack_from(RESULT, reply, 16)
        assert len(reply) == 16 + struct.calcsize(RESULT) + -struct.calcsize(RESULT) % 8
        for car, action in enumerate(actions):
            assert single.reset() == first
            alone = single.step(list(action))
            info = alone["info"]
            components = [info[key] for key in ("progress", "speed", "wall", "offTrack", "backward", "stillness")]
            assert values[car] == alone["reward"]
            assert list(values[3 + 6 * car : 9 + 6 * car]) == components
            assert values[21 + car] == 0
            assert values[24 + car] == info["rawSpeed"]
            assert values[27 + car] == info["lap"]
            assert values[30 + car] == info["checkpoint"]
            assert values[33 + car] == info["stepCount"] == 1
            assert values[36 + car] == info["stillnessCounter"]
            seen = values[39 + 14 * car : 53 + 14 * car]
            np.testing.assert_array_equal(np.float32(seen), np.float32(alone["observation"]))
            assert values[81 + car] is alone["terminated"]
            assert values[84 + car] is alone["truncated"]
            assert values[87 + car] is info["wallContact"]


def test_a_batch_returns_the_end_of_an_episode_and_starts_the_next(client: PlainClient) -> None:
    config = {"weights": {"stillnessSpeedThreshold": 0.01}, "episode": {"stillnessTimeoutTicks": 2}}
    start = binary_reply(client, {"type": "batch_reset", "numCars": CARS, "config": config})
    moving, standing = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    binary_reply(client, batch_step(moving, standing, moving))
    reply = binary_reply(client, batch_step(moving, standing, moving))
    assert struct.unpack_from(HEADER, reply) == (b"RCRB", 1, 2, CARS, 1)
    values = struct.unpack_from(RESULT, reply, 16)
    finals_at = 16 + struct.calcsize(RESULT) + -struct.calcsize(RESULT) % 8
    final = struct.unpack_from(FINAL, reply, finals_at)
    assert len(reply) == finals_at + struct.calcsize(FINAL)
    assert (final[0], final[4]) == (1, 2), "car 1 ended after two steps"
    assert values[81:84] == (False, True, False)
    assert values[33:36] == (2, 0, 2), "and drives its next episode"
    assert values[53:67] == struct.unpack_from(RESULT, start, 16)[53:67]


def test_without_auto_reset_a_car_drives_on_after_its_episode_until_it_is_reset(client: PlainClient) -> None:
    steps_at = slice(33, 36)
    reset = {"type": "batch_reset", "numCars": CARS, "config": {"episode": {"maxSteps": 2}}, "autoReset": False}
    binary_reply(client, reset)
    for steps in (1, 2, 3):
        reply = binary_reply(client, batch_step(*[GENTLY] * CARS))
        assert struct.unpack_from(HEADER, reply)[-1] == (CARS if steps >= 2 else 0), "cars that have ended"
        assert struct.unpack_from(RESULT, reply, 16)[steps_at] == (steps,) * CARS
    reply = binary_reply(client, {"type": "batch_reset", "mask": [True, False, False]})
    assert struct.unpack_from(RESULT, reply, 16)[steps_at] == (0, 3, 3)
    reply = binary_reply(client, batch_step(*[GENTLY] * CARS))
    assert struct.unpack_from(RESULT, reply, 16)[steps_at] == (1, 4, 4)
    assert client.refusal({"type": "batch_reset", "mask": [True, False, False], "autoReset": True})


@pytest.mark.parametrize(
    "message",
    [
        b"", b"RCRB", batch_step(*[GENTLY] * 2), batch_step(*[GENTLY] * 4), batch_step(*[GENTLY] * 3)[:-1],
        batch_step(*[GENTLY] * 3) + b"\0", b"XXXX" + batch_step(*[GENTLY] * 3)[4:], bytes(88),
        batch_step((float("nan"), 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        batch_step((0.0, 0.0, 0.0), (0.0, float("inf"), 0.0), (0.0, 0.0, 0.0)),
        struct.pack(HEADER, b"RCRB", 1, 1, 2**32 - 1, 0), struct.pack(HEADER, b"RCRB", 2, 1, 3, 0) + bytes(72),
        struct.pack(HEADER, b"RCRB", 1, 2, 3, 0) + bytes(72),
    ],
)  # fmt: skip
def test_a_batch_step_of_the_wrong_form_is_refused_and_moves_nothing(client: PlainClient, message: bytes) -> None:
    binary_reply(client, {"type": "batch_reset", "numCars": CARS})
    assert client.refusal(message)
    reply = binary_reply(client, batch_step(*[GENTLY] * 3))
    assert struct.unpack_from(RESULT, reply, 16)[33:36] == (1, 1, 1)


def test_a_batch_step_before_batch_reset_is_refused(client: PlainClient) -> None:
    assert "batch_reset" in client.refusal(batch_step(GENTLY))


@pytest.mark.parametrize(
    "setting",
    [
        {"numCars": 0}, {"numCars": 1025}, {"numCars": 1.0}, {"numCars": True}, {"numCars": "3"}, {"numCars": 2**62},
        {"seeds": [1]}, {"seeds": 1}, {"seeds": [1, 2, "3"]}, {"seed": 0.5}, {"mask": [True]}, {"mask": [1, 0, 1]},
        {"mask": True}, {"mask": [True] * 3, "trackId": "track-02"}, {"numCars": 2, "mask": [True, False]},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_a_batch_reset_with_a_wrong_setting_is_refused_and_the_cars_drive_on(
    client: PlainClient, setting: dict[str, Any]
) -> None:
    binary_reply(client, {"type": "batch_reset", "numCars": CARS})
    binary_reply(client, batch_step(*[GENTLY] * 3))
    assert client.refusal({"type": "batch_reset", "numCars": CARS, **setting})
    reply = binary_reply(client, batch_step(*[GENTLY] * 3))
    assert struct.unpack_from(RESULT, reply, 16)[33:36] == (2, 2, 2)


def test_a_mask_resets_some_cars_and_leaves_the_others(client: PlainClient) -> None:
    binary_reply(client, {"type": "batch_reset", "numCars": CARS})
    binary_reply(client, batch_step(*[GENTLY] * 3))
    reply = binary_reply(client, {"type": "batch_reset", "numCars": CARS, "mask": [True, False, True]})
    assert struct.unpack_from(RESULT, reply, 16)[33:36] == (0, 1, 0)


def test_a_batch_reset_without_a_mask_depends_on_nothing_that_came_before(bridge: RunningBridge) -> None:
    settings = {"numCars": CARS, "trackIds": ["track-02"], "config": {"episode": {"maxSteps": 1}}}
    with plain_client(bridge.url) as fresh, plain_client(bridge.url) as used:
        binary_reply(used, {"type": "batch_reset", **settings, "start": ANYWHERE})
        binary_reply(used, batch_step(*[GENTLY] * CARS))
        default = binary_reply(fresh, {"type": "batch_reset"})
        assert binary_reply(used, {"type": "batch_reset"}) == default
        assert struct.unpack_from(HEADER, default)[3] == 1, "one car"
        for _ in range(3):
            assert binary_reply(used, batch_step(GENTLY)) == binary_reply(fresh, batch_step(GENTLY))


def test_a_mask_continues_the_batch_whose_fields_need_not_be_repeated(client: PlainClient) -> None:
    config = {"episode": {"maxSteps": 2}}
    start = binary_reply(client, {"type": "batch_reset", "numCars": CARS, "trackId": "track-02", "config": config})
    client.reset(trackId="track-03")
    binary_reply(client, batch_step(*[GENTLY] * CARS))
    reply = binary_reply(client, {"type": "batch_reset", "mask": [True, False, True]})
    values = struct.unpack_from(RESULT, reply, 16)
    assert values[33:36] == (0, 1, 0)
    assert values[39:53] == struct.unpack_from(RESULT, start, 16)[39:53], "the same circuit"
    values = struct.unpack_from(RESULT, binary_reply(client, batch_step(*[GENTLY] * CARS)), 16)
    assert values[84:87] == (False, True, False), "the same limit"


def test_the_seeds_of_a_batch_determine_the_positions_of_its_cars(client: PlainClient) -> None:
    def arcs(**seeds: Any) -> tuple[float, ...]:
        reply = binary_reply(client, {"type": "batch_reset", "numCars": CARS, "start": ANYWHERE, **seeds})
        return struct.unpack_from(RESULT, reply, 16)[39:81]

    assert arcs(seed=3) == arcs(seed=3) != arcs(seed=4)
    one, other = arcs(seeds=[1, 2, 3]), arcs(seeds=[1, 5, 3])
    assert one[:14] == other[:14]
    assert one[14:28] != other[14:28]
    assert one[28:] == other[28:]


ALL_WEIGHTS = (
    "progress", "speedBonus", "wallPenalty", "offTrackPenalty", "backwardPenalty", "stillnessPenalty",
    "stillnessSpeedThreshold",
)  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        {"start": {"offset": 1e308}},
        {"start": {"offset": -1e6}},
        {"start": {"heading": 1e300}},
        {"start": {"heading": [-1e308, 1e308]}},
        {"config": {"weights": dict.fromkeys(ALL_WEIGHTS, 1.7e308)}},
    ],
    ids=json.dumps,
)
def test_extreme_settings_are_refused_or_give_valid_replies(client: PlainClient, settings: dict[str, Any]) -> None:
    if client.ask({"type": "reset", **settings})["type"] == "reset_result":
        for _ in range(30):
            step = client.step([1.0, 1.0, 0.0])
            assert type(step["reward"]) is float
            assert all(-1.0 <= value <= 1.0 for value in step["observation"])
