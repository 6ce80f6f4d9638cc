"""Fairness: a misbehaving client does not delay others."""

import itertools
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from racer_env.bridge.track_cache import TrackBuilder, TrackCache
from racer_env.engine import Track
from tests.bridge.conftest import RunningBridge, StartBridge
from tests.bridge.plain_client import PlainClient, plain_client
from tests.bridge.raw_websocket import BINARY, CONTINUATION, PING, TEXT, RawWebSocket, frame, upgrade_request
from tests.bridge.watching import events

STEPS = 100
USUAL_SECONDS, MAX_SECONDS = 0.25, 3.0
"""Maximum 90th percentile and maximum of a step's duration [s]; generous, because tests share two cores."""

_seeds = itertools.count(1000)

Nuisance = Callable[[int, threading.Event], None]


def ask_for_new_circuits(port: int, stopped: threading.Event) -> None:
    raw = RawWebSocket(port)
    while not stopped.is_set():
        raw.send(frame(TEXT, json.dumps({"type": "reset", "trackId": f"random:{next(_seeds)}"}).encode()))
        raw.receive_text()


def send_garbage(port: int, stopped: threading.Event) -> None:
    while not stopped.is_set():
        raw = RawWebSocket(port)
        raw.send(
            frame(TEXT, b'{"type":' * 500), frame(BINARY, bytes(1000)), frame(TEXT, b"\xff" * 100), bytes(range(256))
        )
        raw.is_closed_by_server()


def _flood(port: int, stopped: threading.Event, data: bytes) -> None:
    """Send as fast as the server reads, and discard the replies."""
    raw = RawWebSocket(port)
    reader = threading.Thread(target=raw.is_closed_by_server, daemon=True)
    raw.send(frame(TEXT, b'{"type":"reset"}'))
    reader.start()
    while not stopped.is_set():
        raw.send(data)
    raw.socket.shutdown(socket.SHUT_RDWR)
    reader.join()


def send_steps_ahead(port: int, stopped: threading.Event) -> None:
    _flood(port, stopped, frame(TEXT, b'{"type":"step","action":[0,1,0]}') * 2000)


def send_requests_with_large_replies_ahead(port: int, stopped: threading.Event) -> None:
    _flood(port, stopped, frame(TEXT, b'{"type":"track"}') * 50)


def send_pings(port: int, stopped: threading.Event) -> None:
    _flood(port, stopped, frame(PING) * 2000)


def send_a_message_in_tiny_parts(port: int, stopped: threading.Event) -> None:
    _flood(
        port, stopped, frame(TEXT, b"", fin=False) + frame(CONTINUATION, b"", fin=False) * 2000 + frame(CONTINUATION)
    )


def come_and_go(port: int, stopped: threading.Event) -> None:
    """Request a circuit and reset the connection before it is built."""
    while not stopped.is_set():
        raw = RawWebSocket(port)
        raw.send(frame(TEXT, json.dumps({"type": "reset", "trackId": f"random:{next(_seeds)}"}).encode()))
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.close()


def begin_handshakes(port: int, stopped: threading.Event) -> None:
    begun = []
    while not stopped.is_set() and len(begun) < 200:
        begun.append(RawWebSocket(port, upgrade=False))
        begun[-1].send(upgrade_request(port)[:50])
    stopped.wait()


def send_long_and_many_unknown_keys(port: int, stopped: threading.Event) -> None:
    """Send resets of 64 KB whose keys, or values, have no meaning; on new connections, so that each is warned about."""
    long, many = "k" * 60_000, {f"progress{index}": 0 for index in range(3500)}
    settings = [{"config": {long: 0}}, {"config": {"weights": many}}, {"start": {long: 0}}, {"start": {"arc": long}}]
    while not stopped.is_set():
        raw = RawWebSocket(port)
        for values in settings:
            raw.send(frame(TEXT, json.dumps({"type": "reset", **values}).encode()))
            assert len(raw.receive_text()) < 1000
        raw.close()


@contextmanager
def in_the_background(nuisances: list[Nuisance], port: int) -> Iterator[None]:
    stopped = threading.Event()
    threads = [threading.Thread(target=nuisance, args=(port, stopped)) for nuisance in nuisances]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def step_times(client: PlainClient, number: int) -> list[float]:
    """Return the sorted durations of a number of steps [s]."""
    seconds = []
    for count in range(1, number + 1):
        begin = time.perf_counter()
        reply = client.step()
        seconds.append(time.perf_counter() - begin)
        assert reply["info"]["stepCount"] == count
    return sorted(seconds)


@pytest.mark.parametrize(
    "nuisances",
    [
        [ask_for_new_circuits, send_garbage],
        [send_steps_ahead],
        [send_requests_with_large_replies_ahead],
        [send_pings, send_a_message_in_tiny_parts],
        [come_and_go, begin_handshakes],
        [send_long_and_many_unknown_keys] * 4,
    ],
    ids=lambda nuisances: " and ".join(nuisance.__name__ for nuisance in nuisances),
)
def test_a_well_behaved_client_steps_on(bridge: RunningBridge, nuisances: list[Nuisance]) -> None:
    with plain_client(bridge.url) as client, in_the_background(nuisances, bridge.port):
        client.reset(config={"episode": {"maxSteps": 10**6}})
        times = step_times(client, STEPS)
    assert times[STEPS * 9 // 10] < USUAL_SECONDS
    assert times[-1] < MAX_SECONDS


def has_reply(client: PlainClient) -> bool:
    client.socket.settimeout(0.0)
    try:
        client.socket.recv()
    except BlockingIOError:
        return False
    return True


def test_a_request_for_one_circuit_does_not_wait_for_all_circuits_of_another_client(bridge: RunningBridge) -> None:
    many = [f"random:{next(_seeds)}:hard" for _ in range(60)]
    with plain_client(bridge.url) as greedy, plain_client(bridge.url) as modest:
        greedy.send({"type": "reset", "trackIds": many})
        modest.reset(trackId=f"random:{next(_seeds)}:easy")
        assert not has_reply(greedy), "building all of them takes seconds"


def test_a_bundled_circuit_is_built_before_the_random_ones_of_other_clients(start_bridge: StartBridge) -> None:
    with start_bridge() as bridge, ExitStack() as greedy, plain_client(bridge.url) as modest:
        others = [greedy.enter_context(plain_client(bridge.url)) for _ in range(60)]
        for client in others:
            client.send({"type": "reset", "trackId": f"random:{next(_seeds)}:hard"})
        modest.reset(trackId="track-03")
        assert not all(has_reply(client) for client in others), "building all of them takes seconds"


def test_bundled_circuits_are_built_first_and_then_each_host_gets_one_in_turn() -> None:
    order: list[str] = []
    all_submitted = threading.Event()

    class RecordingCache(TrackCache):
        def build(self, name: str) -> Track:
            assert all_submitted.wait(60)
            order.append(name)
            return super().build(name)

    builder = TrackBuilder(RecordingCache())
    jobs = [builder.submit(f"random:{seed}:easy", "greedy") for seed in range(1, 5)]
    jobs.append(builder.submit("random:9:easy", "modest"))
    jobs.append(builder.submit("track-02", "late"))
    all_submitted.set()
    for job in jobs:
        job.result(timeout=60)
    builder.close()
    assert order.index("track-02") <= 1, "one was begun before it was asked for"
    assert order.index("random:9:easy") <= 3, "that one, the bundled one and one more of the other host"


def test_an_unknown_circuit_is_refused_while_others_are_built(bridge: RunningBridge) -> None:
    with plain_client(bridge.url) as greedy, plain_client(bridge.url) as modest:
        greedy.send({"type": "reset", "trackIds": [f"random:{next(_seeds)}:hard" for _ in range(60)]})
        modest.refusal({"type": "reset", "trackId": "nowhere"})
        modest.reset(trackId="track-02")
        assert not has_reply(greedy), "building all of them takes seconds"


def test_none_of_this_was_an_error_of_the_server(bridge: RunningBridge) -> None:
    assert events(bridge.log, "internal error") == []
    assert "Traceback" not in bridge.log.read_text()
