"""Remote bridges: helpful errors, no silent retries, every reply validated."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from racer_env.bridge.batch_format import (
    HEADER,
    BatchContract,
    decode_result,
    decode_step,
    encode_result,
    encode_step,
)
from racer_env.bridge.client import BridgeClient, RemoteBatch
from racer_env.bridge.embedded import EmbeddedBatch, EmbeddedBridge
from racer_env.bridge.interface import BatchStep, Scenario
from racer_env.bridge.messages import TELEMETRY_COLUMNS
from racer_env.bridge.shadow_car import ShadowCar, ShadowedClient
from racer_env.bridge.validation import Contract
from racer_env.engine import Start, parse_config
from racer_env.errors import ActionError, BridgeError, ContractError, RacerError
from racer_env.scenarios import open_bridge
from tests.bridge.conftest import RunningBridge
from tests.bridge.old_server import OldServer, old_server

Change = Callable[[dict[str, Any]], Any]


@pytest.fixture
def server() -> Iterator[OldServer]:
    with old_server() as running:
        yield running


def test_no_server_says_how_to_start_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(BridgeError, match=rf"cannot connect to ws://127.0.0.1:{port}.*racer-viewer bridge"):
        BridgeClient(f"ws://127.0.0.1:{port}")
    with pytest.raises(BridgeError, match="starts with ws://"):
        BridgeClient("localhost:9876")
    with pytest.raises(BridgeError, match="cannot connect"):
        BridgeClient("ws://no.such.host.invalid:9876")


def test_connecting_to_a_silent_server_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begin = time.monotonic()
        with pytest.raises(BridgeError, match=r"within 0\.3 s"):
            BridgeClient(f"ws://127.0.0.1:{silent.getsockname()[1]}", connect_timeout=0.3)
        assert time.monotonic() - begin < 5


def test_a_server_that_is_no_bridge_is_recognised() -> None:
    def answer(listener: socket.socket) -> None:
        peer, _ = listener.accept()
        with peer:
            peer.recv(4096)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        with pytest.raises(BridgeError, match="refused the connection"):
            BridgeClient(f"ws://127.0.0.1:{listener.getsockname()[1]}")


def test_a_reply_that_never_comes_closes_the_connection(server: OldServer) -> None:
    client = BridgeClient(server.url, reply_timeout=0.3)
    client.reset()
    release = threading.Event()

    def wait(reply: dict[str, Any]) -> dict[str, Any]:
        release.wait(10)
        return reply

    server.distort = wait
    with pytest.raises(BridgeError, match=r"no reply within 0\.3 s"):
        client.step([0, 1, 0])
    with pytest.raises(BridgeError, match="closed: connect again"):
        client.step([0, 1, 0])
    release.set()


def test_an_error_reply_is_passed_on_and_the_connection_stays_usable(server: OldServer) -> None:
    client = BridgeClient(server.url)
    client.reset()
    with pytest.raises(BridgeError, match=r"says: Unknown track: track-09\. Available: track-01"):
        client.reset(Scenario(("track-09",)))
    assert client.step([0, 1, 0]).info["stepCount"] == 1
    for wrong in ([0, 1], "abc", [0, 0, float("inf")], None, 3):
        with pytest.raises(ActionError, match="3 finite numbers"):
            client.step(wrong)  # type: ignore[arg-type]
    assert client.step([0, 1, 0]).info["stepCount"] == 2
    client.close()
    client.close()


def test_stepping_before_a_reset_is_an_error_of_the_client(server: OldServer) -> None:
    with pytest.raises(RacerError, match="reset the environment first"):
        BridgeClient(server.url).step([0, 1, 0])


def test_an_existing_server_is_asked_only_for_what_it_knows(server: OldServer) -> None:
    client = BridgeClient(server.url, telemetry=True)
    assert not client.has_telemetry
    assert client.connection.capabilities == frozenset()
    client.reset(seed=4)
    assert set(server.requests[-1]) == {"type", "trackId", "config"}
    with pytest.raises(BridgeError, match=r"no telemetry.*ShadowedClient"):
        _ = client.car
    with pytest.raises(BridgeError, match="does not support 'start'"):
        client.reset(Scenario(start=Start(arc=(0.5, 0.5))))
    with pytest.raises(BridgeError, match="does not support 'trackIds'"):
        client.reset(Scenario(("track-01", "track-02"), redraw=True))


def test_telemetry_is_the_state_of_the_car(bridge: RunningBridge) -> None:
    scenario = Scenario(("random:11",), start=Start(arc=(0.0, 1.0), speed=(10.0, 50.0)))
    client, here = BridgeClient(bridge.url, telemetry=True), EmbeddedBridge()
    client.reset(scenario, 3)
    here.reset(scenario, 3)
    for _ in range(50):
        client.step([0.3, 1.0, 0.0])
        here.step([0.3, 1.0, 0.0])
        for name in (
            *TELEMETRY_COLUMNS,
            "action",
            "reward",
            "components",
            "finished_lap_ticks",
            "terminated",
            "truncated",
        ):
            assert np.array_equal(client.car[name], here.car[name]), name
    np.testing.assert_array_equal(client.track.inner, here.track.inner)
    client.close()


def replacing(*path: Any, value: Any) -> Change:
    """Return a distortion that replaces one value of every reply to a step."""

    def change(reply: dict[str, Any]) -> dict[str, Any]:
        if reply["type"] == "step_result":
            at: Any = reply
            for key in path[:-1]:
                at = at[key]
            if value is KeyError:
                del at[path[-1]]
            else:
                at[path[-1]] = value
        return reply

    return change


BROKEN = [
    (("observation",), [0.0] * 13, "observation: a list of 14 values expected"),
    (("observation",), [[0.0] * 14], r"observation\[0\]: a finite number expected"),
    (("observation",), "abc", "observation: a list expected, got 'abc'"),
    (("observation",), None, "observation: a list expected, got None"),
    (("observation", 3), True, r"observation\[3\]: a finite number expected, got True"),
    (("observation", 3), "0.5", r"observation\[3\]: a finite number expected, got '0.5'"),
    (("observation", 3), None, r"observation\[3\]: a finite number expected, got None"),
    (("observation", 3), 1.5, r"observation\[3\]: at most 1 expected, got 1.5"),
    (("observation", 10), -1.5, r"observation\[10\]: at least -1 expected, got -1.5"),
    (("observation",), KeyError, "observation: missing"),
    (("reward",), "1", "reward: a finite number"),
    (("reward",), True, "reward: a finite number"),
    (("reward",), None, "reward: a finite number"),
    (("reward",), KeyError, "reward: missing"),
    (("terminated",), 0, "terminated: true or false"),
    (("truncated",), None, "truncated: true or false"),
    (("truncated",), KeyError, "truncated: missing"),
    (("info",), [], "info: an object"),
    (("info", "progress"), KeyError, "info.progress: missing"),
    (("info", "extra"), 1, "info: unknown key 'extra'"),
    (("info", "wall"), "0", "info.wall: a finite number"),
    (("info", "rawSpeed"), -1.0, "info.rawSpeed: at least 0 expected, got -1.0"),
    (("info", "rawSpeed"), 1000, "info.rawSpeed: at most 160 expected, got 1000"),
    (("info", "wallContact"), 1, "info.wallContact: true or false"),
    (("info", "stepCount"), 7, "info.stepCount: 3 expected, got 7"),
    (("info", "stepCount"), 3.0, "info.stepCount: a whole number"),
    (("info", "tick"), -1, "info.tick: at least 0 expected, got -1"),
    (("info", "tick"), 9, "info.tick: 3 expected, got 9"),
    (("info", "lap"), 5, "info.lap: 1 or 2 expected, got 5"),
    (("info", "lap"), 0, "info.lap: 1 or 2"),
    (("info", "checkpoint"), 5, "info.checkpoint: it went from 0 to 5"),
    (("info", "stillnessCounter"), 9, "info.stillnessCounter: it went from"),
    (("type",), "reset_result", "type 'step_result' expected"),
    (("type",), 3, "type 'step_result' expected"),
]


@pytest.mark.parametrize(("path", "value", "named"), BROKEN)
def test_an_invalid_reply_raises_an_error_that_names_the_value(
    server: OldServer, path: tuple[Any, ...], value: Any, named: str
) -> None:
    client = BridgeClient(server.url)
    client.reset()
    client.step([0, 1, 0])
    client.step([0, 1, 0])
    server.distort = replacing(*path, value=value)
    with pytest.raises(ContractError, match=named):
        client.step([0, 1, 0])
    with pytest.raises(BridgeError, match="closed"):
        client.step([0, 1, 0])


@pytest.mark.parametrize("reply", [b"", b"{", b"[1]", b'"x"', b"\xff\xfe", b"NaN", json.dumps({"a": 1}).encode()])
def test_a_reply_that_is_no_message_is_refused(server: OldServer, reply: bytes) -> None:
    client = BridgeClient(server.url)
    client.reset()
    server.distort = lambda _: reply
    with pytest.raises(ContractError, match="step_result"):
        client.step([0, 1, 0])


def test_infinite_numbers_do_not_pass_as_numbers(server: OldServer) -> None:
    for value in (float("nan"), float("inf")):  # Python's json module writes them, although JSON has none
        client = BridgeClient(server.url)
        server.distort = lambda reply: reply
        client.reset()
        server.distort = replacing("reward", value=value)
        with pytest.raises(ContractError):
            client.step([0, 1, 0])


def test_a_new_lap_needs_checkpoint_zero(server: OldServer) -> None:
    client = BridgeClient(server.url)
    client.reset()

    def change(reply: dict[str, Any]) -> dict[str, Any]:
        reply["info"].update(lap=2, checkpoint=1)
        return reply

    server.distort = change
    with pytest.raises(ContractError, match="0 expected with a new lap"):
        client.step([0, 1, 0])


def test_a_contract_for_any_observation_knows_shape_bounds_and_infinity() -> None:
    contract = Contract(np.full((2, 2), -np.inf), np.full((2, 2), np.inf))
    assert contract.observation([[1, 2], [3, 4e9]]).dtype == np.float32
    for wrong in ([[1, 2], [3, float("nan")]], [[1, 2], [3, 1e300]], [[1, 2], [3]], [1, 2], {"a": 1}):
        with pytest.raises(ContractError, match="observation"):
            contract.observation(wrong)
    pixels = Contract(np.zeros(3), np.full(3, 255), np.uint8)
    assert pixels.observation([0, 128, 255]).dtype == np.uint8
    with pytest.raises(ContractError, match="observation"):
        pixels.observation([0, 128, 256])


def batch_steps() -> tuple[BatchContract, EmbeddedBatch]:
    batch = EmbeddedBatch(3)
    contract = BatchContract()
    config = parse_config({"episode": {"maxSteps": 4}})
    contract.reset(copied(batch.reset(Scenario(config=config), 0)), None)
    return contract, batch


def copied(step: BatchStep) -> BatchStep:
    """Return a step encoded and decoded again, so that its arrays are copies."""
    message = bytearray(encode_result(step))
    return decode_result(message, len(step.rewards))  # type: ignore[arg-type]


def test_valid_batches_pass_validation_across_the_end_of_episodes() -> None:
    contract, batch = batch_steps()
    ended = 0
    for _ in range(10):
        step = contract.step(copied(batch.step(np.ones((3, 3)))))
        ended += len(step.ended)
    assert ended == 6


def test_without_auto_reset_a_car_that_starts_again_by_itself_is_refused() -> None:
    batch, contract = EmbeddedBatch(3, auto_reset=False), BatchContract(auto_reset=False)
    contract.reset(copied(batch.reset(Scenario(config=parse_config({"episode": {"maxSteps": 2}})), 0)), None)
    for _ in range(4):
        step = copied(batch.step(np.ones((3, 3))))
        contract.step(step)
    step = copied(batch.step(np.ones((3, 3))))
    step.cars.step_count[:] = 0
    with pytest.raises(ContractError, match="step_count"):
        contract.step(step)


@pytest.mark.parametrize(
    ("column", "value", "named"),
    [
        ("observations", np.nan, "observation"),
        ("observations", 1.5, "observation"),
        ("rewards", np.inf, "rewards"),
        ("components", np.nan, "components"),
        ("finished_lap_ticks", -1, "finished_lap_ticks"),
        ("truncated", True, "ended"),
        ("cars.speed", 200.0, "speed"),
        ("cars.speed", np.nan, "speed"),
        ("cars.lap", 3, "lap"),
        ("cars.checkpoint", 4, "checkpoint"),
        ("cars.step_count", 9, "step_count"),
        ("cars.stillness", 77, "stillness"),
        ("cars.stillness", -1, "stillness"),
    ],
)
def test_an_invalid_batch_result_is_refused(column: str, value: Any, named: str) -> None:
    contract, batch = batch_steps()
    step = copied(batch.step(np.ones((3, 3))))
    at: Any = step
    for name in column.split("."):
        at = getattr(at, name)
    at[1] = value
    with pytest.raises(ContractError, match=named):
        contract.step(step)


def test_a_batch_message_of_the_wrong_size_or_kind_is_refused() -> None:
    batch = EmbeddedBatch(3)
    message = encode_result(batch.reset())
    for wrong in (
        b"",
        message[:10],
        message[:-1],
        message + b"x",
        b"XXXX" + message[4:],
        encode_step(np.zeros((3, 3))),
    ):
        with pytest.raises(ContractError, match="batch"):
            decode_result(wrong, 3)
    with pytest.raises(ContractError, match="4 were stepped"):
        decode_result(message, 4)
    row = 8 + 6 * 8 + 8 + 5 * 8 + 14 * 4 + 3
    broken = bytearray(message)
    broken[HEADER.size + 3 * row - 1] = 7
    with pytest.raises(ContractError, match="wall_contact must be bytes of 0 or 1"):
        decode_result(bytes(broken), 3)
    with pytest.raises(ContractError, match="3 cars"):
        decode_step(encode_step(np.zeros((2, 3))), 3)


def test_a_batch_over_the_socket_refuses_what_it_cannot_do(bridge: RunningBridge) -> None:
    batch = RemoteBatch(2, bridge.url)
    with pytest.raises(RacerError, match="reset the environment first"):
        batch.step(np.zeros((2, 3)))
    with pytest.raises(BridgeError, match="unknown track 'x'"):
        batch.reset(Scenario(("x",)))
    batch.reset()
    for wrong in (np.zeros((3, 3)), np.full((2, 3), np.nan), "abc"):
        with pytest.raises(ActionError, match="finite numbers"):
            batch.step(wrong)
    batch.step(np.zeros((2, 3)))
    batch.close()
    too_many = RemoteBatch(2000, bridge.url)
    with pytest.raises(BridgeError, match="numCars must be a whole number from 1 to 1024"):
        too_many.reset()
    too_many.close()


def test_a_shadow_car_is_in_sync_with_an_existing_server(server: OldServer) -> None:
    watched = open_bridge(server.url, telemetry=True)
    assert isinstance(watched, ShadowedClient)
    shadow = watched.shadow
    for track in ("track-03", "track-01"):
        watched.reset(Scenario((track,)))
        for tick in range(150):
            watched.step([np.sin(tick / 20), 1.0, 0.0])
        assert shadow.in_sync
        assert 0 <= shadow.largest_deviation < 1e-6
        assert watched.car["step_count"] == 150
    watched.close()


def test_a_shadow_car_reports_since_when_it_is_out_of_sync(server: OldServer) -> None:
    watched = ShadowedClient(BridgeClient(server.url))
    watched.reset()
    for _ in range(30):
        watched.step([0, 1, 0])
    server.distort = lambda reply: {**reply, "observation": [0.5, *reply["observation"][1:]]}
    for _ in range(5):
        watched.step([0, 1, 0])
    assert watched.shadow.out_of_sync_since == 31
    server.distort = lambda reply: reply
    watched.reset()
    assert watched.shadow.in_sync
    watched.close()


def test_out_of_sync_the_values_of_the_server_override_those_of_the_shadow_car(server: OldServer) -> None:
    watched = ShadowedClient(BridgeClient(server.url))
    watched.reset()
    watched.step([0, 1, 0])

    def lap_and_wall(reply: dict[str, Any]) -> dict[str, Any]:
        reply["observation"][0] = 0.5
        reply["info"].update(lap=2, checkpoint=0, rawSpeed=77.0, wallContact=True)
        return reply

    server.distort = lap_and_wall
    watched.step([0, 1, 0])
    car = watched.car
    assert (car["speed"], car["wall_contact"], car["lap"], car["checkpoint"]) == (77.0, True, 2, 0)
    assert (car["finished_lap_ticks"], car["lap_ticks"]) == (2, 0)
    watched.step([0, 1, 0])
    assert (watched.car["finished_lap_ticks"], watched.car["lap_ticks"]) == (0, 1)
    server.distort = lambda reply: reply
    watched.close()


def test_a_shadow_car_notices_another_config_or_circuit() -> None:
    shadow, other = ShadowCar(), EmbeddedBridge()
    observation, _ = other.reset(Scenario(("track-02",)))
    shadow.reset(Scenario(("track-01",)), observation)
    assert shadow.out_of_sync_since == 0
