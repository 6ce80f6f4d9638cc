"""Programs written for the existing server: the same messages get the same replies."""

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from racer_env import RacerEnv
from racer_env.bridge.embedded import EmbeddedBridge
from racer_env.bridge.interface import Scenario
from racer_env.bridge.session import MAX_WARNINGS
from racer_env.engine import parse_config
from tests.bridge.conftest import RunningBridge, StartBridge
from tests.bridge.old_server import OldEnvironment
from tests.bridge.plain_client import GENTLY, PlainClient, plain_client
from tests.bridge.raw_websocket import BINARY, CONTINUATION, TEXT, frame, raw_websocket, upgrade_request
from tests.bridge.watching import events, logged

CONFIG = {"weights": {"progress": 2.0, "wallPenalty": -0.5}, "episode": {"maxSteps": 40, "stillnessTimeoutTicks": 9}}
RESET, STEP = b'{"type":"reset"}', b'{"type":"step","action":[0.2,1,0]}'


@pytest.fixture
def client(bridge: RunningBridge) -> Iterator[PlainClient]:
    with plain_client(bridge.url) as client:
        yield client


def talk(draw: random.Random, length: int) -> Iterator[dict[str, Any]]:
    """Yield requests of an existing client; resets leave out the circuit, the config, or both."""
    yield {"type": "step", "action": GENTLY}
    for _ in range(length):
        kind = draw.choices(("step", "reset", "close", "wrong"), (80, 4, 1, 3))[0]
        if kind == "step":
            yield {"type": "step", "action": [draw.uniform(-1.5, 1.5), draw.uniform(0.3, 1.2), draw.uniform(-0.1, 0.2)]}
        elif kind == "reset":
            request = {"trackId": f"track-0{draw.randint(1, 3)}", "config": CONFIG}
            yield {"type": "reset", **{key: value for key, value in request.items() if draw.random() < 0.5}}
        elif kind == "close":
            yield {"type": "close"}
        else:
            yield draw.choice([{"type": "reset", "trackId": "track-99"}, {"type": "halt"}, {"no": "type"}])


def test_a_whole_talk_gets_the_replies_of_an_existing_server(client: PlainClient) -> None:
    existing, kinds = OldEnvironment(), set()
    for number, request in enumerate(talk(random.Random(507), 700)):
        expected, reply = existing.answer(request), client.ask(request)
        assert reply["type"] == expected["type"], (number, request, reply)
        kinds.add(reply["type"])
        if reply["type"] != "error":
            assert reply.keys() == expected.keys()
            np.testing.assert_allclose(numbers(reply), numbers(expected), rtol=0.0, atol=1e-9, err_msg=str(number))
    assert kinds == {"reset_result", "step_result", "close_result", "error"}


def numbers(reply: dict[str, Any]) -> list[float]:
    """Return all numbers and flags of a reply, by the order of its keys."""
    values = [*reply.get("observation", ()), *(reply.get(key, 0) for key in ("reward", "terminated", "truncated"))]
    info = reply.get("info", {})
    return [*map(float, values), *(float(info[key]) for key in sorted(info))]


def test_a_reset_depends_on_nothing_that_came_before(bridge: RunningBridge) -> None:
    with plain_client(bridge.url) as fresh, plain_client(bridge.url) as used:
        default = fresh.reset()
        used.reset(trackId="track-03", config=CONFIG, start={"arc": 0.4, "speed": 50.0}, telemetry=True, seed=3)
        assert used.reset() == default
        assert [used.step() for _ in range(60)] == [fresh.step() for _ in range(60)]
        used.reset(trackIds=["track-02", "track-03"], config=CONFIG)
        assert used.reset(config=None, trackId=None) == default
        elsewhere = fresh.reset(trackId="track-02")
        assert used.reset(trackId="track-02") == elsewhere
        assert used.step([0, 0, 1]) == fresh.step([0, 0, 1])


def test_the_track_request_without_an_id_is_about_the_last_reset(client: PlainClient) -> None:
    client.reset(trackId="track-02")
    assert client.ask({"type": "track"})["track"]["id"] == "track-02"
    client.reset()
    assert client.ask({"type": "track"})["track"]["id"] == "track-01"


@pytest.mark.parametrize("before", [b"", b" ", b"\r\n\t "])
def test_json_in_a_binary_frame_is_answered_in_a_text_frame(bridge: RunningBridge, before: bytes) -> None:
    with raw_websocket(bridge.port) as binary, raw_websocket(bridge.port) as text:
        for message in (RESET, STEP, b'{"type":"halt"}', b"{", STEP):
            binary.send(frame(BINARY, before + message))
            text.send(frame(TEXT, before + message))
            assert binary.receive() == text.receive()


def test_json_in_a_binary_frame_may_come_in_parts_and_need_a_circuit(bridge: RunningBridge) -> None:
    with raw_websocket(bridge.port) as raw:
        reset = b'{"type":"reset","trackId":"random:77:easy"}'
        raw.send(frame(BINARY, reset[:9], fin=False), frame(CONTINUATION, reset[9:]), frame(BINARY, STEP))
        kinds = [json.loads(raw.receive_text())["type"] for _ in range(2)]
        assert kinds == ["reset_result", "step_result"]


@pytest.mark.parametrize("message", [b"", b"[1]", b"  ", b"RCRB{", b"\xff{", b"\x0b{}", b'"{"', b"\xef\xbb\xbf{}"])
def test_any_other_binary_frame_is_a_batch_step(client: PlainClient, message: bytes) -> None:
    assert "batch" in client.refusal(message)


def test_json_in_a_binary_frame_may_have_the_size_of_a_text_message(start_bridge: StartBridge) -> None:
    with start_bridge("--max-cars", "9000") as bridge, plain_client(bridge.url) as client:
        assert client.ask(b'{"type":"close"}' + b" " * 65520) == {"type": "close_result"}
        assert "65536 bytes" in client.refusal(b'{"type":"close"}' + b" " * 65521)


def test_whole_numbers_of_a_config_may_be_written_as_floats(client: PlainClient) -> None:
    client.ask('{"type": "reset", "config": {"episode": {"maxSteps": 3.0, "stillnessTimeoutTicks": 2e0}}}')
    assert [client.step([0, 0, 1])["truncated"] for _ in range(4)] == [False, False, True, True]
    client.ask('{"type": "reset", "config": {"episode": {"stillnessTimeoutTicks": 2e0}}}')
    assert [client.step([0, 0, 1])["terminated"] for _ in range(3)] == [False, True, True]


@pytest.mark.parametrize("zero", ["0", "0.0", "-0.0"])
def test_a_limit_of_0_ends_an_episode_with_its_first_step(client: PlainClient, zero: str) -> None:
    for limit, ends in (("maxSteps", (False, True)), ("stillnessTimeoutTicks", (True, False))):
        client.ask(f'{{"type": "reset", "config": {{"episode": {{"{limit}": {zero}}}}}}}')
        for _ in range(3):
            step = client.step([0, 1, 0])
            assert (step["terminated"], step["truncated"]) == ends


def test_unknown_keys_of_a_config_are_ignored_with_one_warning_each(start_bridge: StartBridge) -> None:
    known = {"weights": {"stillnessPenalty": -7.0}, "episode": {"maxSteps": 2}}
    unknown: dict[str, Any] = {
        "$schema": "ai-config", "ppo": {"gamma": [0.99]}, "weights": {"stillnessPenalty": -7.0, "progres": "much"},
        "episode": {"maxSteps": 2, "laps\n": None},
    }  # fmt: skip
    with start_bridge() as bridge:
        for _ in range(2):
            with plain_client(bridge.url) as client, plain_client(bridge.url) as usual:
                for _ in range(3):
                    assert client.reset(config=unknown) == usual.reset(config=known)
                    assert [client.step() for _ in range(3)] == [usual.step() for _ in range(3)]
        warnings = logged(bridge.log, "config key ignored", 8)
        assert len(warnings) == 8, "one for each key and connection"
        assert len({line["peer"] for line in warnings}) == 2
        assert [line["problem"] for line in warnings[:4]] == [
            "config: unknown key '$schema'; known: weights, episode, terms",
            "config: unknown key 'ppo'; known: weights, episode, terms",
            "config.weights: unknown key 'progres'; did you mean progress?",
            "config.episode: unknown key 'laps\\n'; known: maxSteps, stillnessTimeoutTicks",
        ]
        assert "WARNING" in bridge.log.read_text()


def test_a_client_cannot_fill_the_log_with_unknown_keys(start_bridge: StartBridge) -> None:
    with start_bridge() as bridge, plain_client(bridge.url) as client:
        for number in range(4):
            client.reset(config={"weights": {f"{number} {key} {'x' * 80}": 0 for key in range(500)}})
        client.reset(config={"k" * 60_000: 0})
        warnings = events(bridge.log, "config key ignored")
        assert len(warnings) == MAX_WARNINGS + 1
        assert "further unknown keys" in warnings[-1]["problem"]
        assert max(len(line["problem"]) for line in warnings) < 400


def test_a_strict_server_refuses_unknown_keys(start_bridge: StartBridge) -> None:
    with start_bridge("--strict") as bridge, plain_client(bridge.url) as client:
        client.reset()
        message = client.refusal({"type": "reset", "config": {"weights": {"progres": 1.0}}})
        assert message == "config.weights: unknown key 'progres'; did you mean progress?"
        assert "unknown key 'ppo'" in client.refusal({"type": "batch_reset", "config": {"ppo": {}}})
        assert client.step()["info"]["stepCount"] == 1
        client.reset(config={"episode": {"maxSteps": 3.0}})
        assert events(bridge.log, "config key ignored") == []


def test_observations_in_json_are_the_doubles_of_the_engine(client: PlainClient) -> None:
    draw, local = random.Random(4), EmbeddedBridge()
    scenario = Scenario(("track-02",), parse_config({"episode": {"maxSteps": 10**6}}))
    first, _ = local.reset(scenario)
    reply = client.reset(trackId="track-02", config=scenario.config.to_json())
    assert reply["observation"] == local.exact_observation().tolist()
    np.testing.assert_array_equal(np.float32(reply["observation"]), first)
    finer = 0
    for _ in range(1500):
        action = [draw.uniform(-1, 1), draw.random(), 0.2 * draw.random()]
        seen, observation = client.step(action)["observation"], local.step(action).observation
        assert seen == local.exact_observation().tolist()
        assert np.float32(seen).tobytes() == observation.tobytes()
        finer += sum(value != float(np.float32(value)) for value in seen)
    assert finer > 1000 * 10, "most values have more digits than float32"


def test_an_environment_over_the_socket_returns_the_float32_of_one_in_this_process(bridge: RunningBridge) -> None:
    draw = np.random.default_rng(5)
    options: dict[str, Any] = {"track_id": ["track-01", "track-03"], "start": {"arc": [0, 1], "speed": [0, 90]}}
    here, there = RacerEnv(**options), RacerEnv(bridge.url, **options)
    for episode in range(6):
        seed = 11 if episode == 0 else None
        observations = [env.reset(seed=seed)[0] for env in (here, there)]
        for _ in range(120):
            assert [each.dtype for each in observations] == [np.float32, np.float32]
            assert observations[0].tobytes() == observations[1].tobytes()
            action = draw.uniform(-1.0, 1.0, 3).astype(np.float32)
            observations = [env.step(action)[0] for env in (here, there)]
    for env in (here, there):
        env.close()


@pytest.mark.parametrize(
    ("offered", "accepted"),
    [("racer", "racer"), ("racer.v2, other", "racer.v2"), ("a,b", "a"), (None, None), ("", None), ('"x"', None)],
)
def test_the_first_subprotocol_that_is_offered_is_accepted(
    bridge: RunningBridge, offered: str | None, accepted: str | None
) -> None:
    with raw_websocket(bridge.port, upgrade=False) as raw:
        headers = {} if offered is None else {"Sec-WebSocket-Protocol": offered}
        raw.send(upgrade_request(bridge.port, **headers))
        head = raw.until(b"\r\n\r\n").decode().splitlines()
        assert " 101 " in head[0]
        found = [line.partition(": ")[2] for line in head if line.lower().startswith("sec-websocket-protocol")]
        assert found == ([] if accepted is None else [accepted])
        raw.send(frame(TEXT, RESET))
        assert json.loads(raw.receive_text())["type"] == "reset_result"


def test_a_client_that_insists_on_its_subprotocol_connects(bridge: RunningBridge) -> None:
    with plain_client(bridge.url, subprotocols=["racer-bridge", "other"]) as client:
        assert client.socket.getsubprotocol() == "racer-bridge"
        client.reset()


def test_the_line_of_a_server_that_is_ready_says_that_it_is_listening(start_bridge: StartBridge) -> None:
    with start_bridge() as bridge:
        assert bridge.ready_line.startswith(f"Bridge listening on ws://127.0.0.1:{bridge.port} ")
