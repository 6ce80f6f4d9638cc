"""Fuzzing: every message is answered or closes its own connection, and other clients are not affected."""

import json
import random
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bridge.conftest import RunningBridge
from tests.bridge.hostile_messages import NASTY, VALID, Message, hostile_messages, is_too_large
from tests.bridge.plain_client import plain_client
from tests.bridge.raw_websocket import BINARY, CLOSE, TEXT, RawWebSocket, Received, frame, raw_websocket
from tests.bridge.stepping_neighbour import stepping_neighbour
from tests.bridge.watching import MEGABYTE, events, memory_of

CONNECTIONS = 4
BARRAGE = 400
"""Number of messages that one connection sends without waiting for replies."""
MAX_GROWTH = 60 * MEGABYTE
"""Maximum growth of the server's memory [bytes]."""
KNOWN_REPLY = re.compile(rb'\{"type":"(reset_result|step_result|close_result|describe_result|track_result)"')


def barrage(port: int, messages: Sequence[Message]) -> None:
    """Send all messages and check that each is answered, up to the first that is too large."""
    received: list[Received] = []
    with raw_websocket(port) as raw:
        reader = threading.Thread(target=_collect, args=(raw, received))
        reader.start()
        with suppress(ConnectionError):
            raw.send(*(frame(opcode, payload) for opcode, payload in messages), frame(CLOSE, b"\x03\xe8"))
        reader.join()
    *replies, last = received
    if any(map(is_too_large, messages)):
        # If the client still sends when the server closes, TCP may reset the connection before the close frame.
        assert last.opcode != CLOSE or last.close_code == 1009
        assert len(replies) < len(messages)
    else:
        assert last.close_code == 1000, last
        assert len(replies) == len(messages)
    for reply, message in zip(replies, messages, strict=False):
        assert _is_an_answer(reply), (message[1][:500], reply.payload[:500])


def _collect(raw: RawWebSocket, received: list[Received]) -> None:
    with suppress(ConnectionError):
        while not received or received[-1].opcode != CLOSE:
            received.append(raw.receive())


def _is_an_answer(reply: Received) -> bool:
    if reply.opcode == BINARY:
        return reply.payload.startswith(b"RCRB")
    if reply.payload.startswith(b'{"type":"error"'):
        error = json.loads(reply.payload)
        return error.keys() == {"type", "message"} and "internal" not in error["message"]
    return KNOWN_REPLY.match(reply.payload) is not None


def barrages(messages: Iterator[Message]) -> Iterator[list[Message]]:
    """Yield bundles of messages, one per connection; a message that is too large ends its bundle."""
    while bundle := list(islice(messages, BARRAGE)):
        begin = 0
        for number, message in enumerate(bundle, 1):
            if is_too_large(message) or number == len(bundle):
                yield bundle[begin:number]
                begin = number


def fuzz(bridge: RunningBridge, seed: int, number: int) -> None:
    """Send hostile messages over several connections at once, next to a client that steps."""
    with plain_client(bridge.url) as client:
        client.reset(trackId="random:1:easy")  # the only circuit in the messages that is not bundled
    before = memory_of(bridge.process.pid)
    with stepping_neighbour(bridge.url), ThreadPoolExecutor(CONNECTIONS) as senders:
        for _ in senders.map(lambda bundle: barrage(bridge.port, bundle), barrages(hostile_messages(seed, number))):
            assert memory_of(bridge.process.pid) < before + MAX_GROWTH
    assert_unharmed(bridge)


def assert_unharmed(bridge: RunningBridge) -> None:
    assert bridge.process.poll() is None
    assert events(bridge.log, "internal error") == []
    assert "Traceback" not in bridge.log.read_text()
    with plain_client(bridge.url) as client:
        client.reset()
        client.step()


def test_ten_thousand_hostile_messages(bridge: RunningBridge) -> None:
    fuzz(bridge, seed=1, number=10_000)


@pytest.mark.slow
def test_a_hundred_thousand_hostile_messages(bridge: RunningBridge) -> None:
    fuzz(bridge, seed=2, number=120_000)


def test_a_wrong_value_in_every_field_of_every_message(bridge: RunningBridge) -> None:
    """Send every field of every message with every nasty value."""
    messages = [
        (TEXT, json.dumps(message | {field: value}).encode())
        for message in VALID
        for field in message
        for value in NASTY
    ]
    for start in range(0, len(messages), BARRAGE):
        barrage(bridge.port, messages[start : start + BARRAGE])
    assert_unharmed(bridge)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(NASTY),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=10), inner, max_size=5),
    max_leaves=10,
)
FIELDS = (
    "action", "trackId", "trackIds", "redraw", "config", "start", "seed", "seeds", "telemetry", "numCars", "mask",
)  # fmt: skip
requests = st.fixed_dictionaries(
    {"type": st.sampled_from(["step", "reset", "batch_reset", "track", "describe", "close"]) | json_values},
    optional=dict.fromkeys(FIELDS, json_values),
)
messages_of_all_sorts = st.one_of(
    requests.map(lambda value: (TEXT, json.dumps(value).encode())),
    json_values.map(lambda value: (TEXT, json.dumps(value).encode())),
    st.binary(max_size=300).map(lambda payload: (TEXT, payload)),
    st.binary(max_size=300).map(lambda payload: (BINARY, payload)),
    st.binary(max_size=100).map(lambda payload: (BINARY, b"RCRB\x01\x00\x01\x00" + payload)),
)


@settings(max_examples=40, deadline=None)
@given(messages=st.lists(messages_of_all_sorts, min_size=1, max_size=30))
def test_messages_drawn_by_hypothesis(bridge: RunningBridge, messages: list[Message]) -> None:
    barrage(bridge.port, messages)


def test_bytes_that_are_no_frames_and_no_handshakes(bridge: RunningBridge) -> None:
    draw = random.Random(3)
    with stepping_neighbour(bridge.url):
        for number in range(300):
            with raw_websocket(bridge.port, upgrade=number % 2 == 0) as raw:
                beginning = draw.choice(
                    [b"", b"GET / HTTP/1.1\r\n", frame(TEXT, b'{"type":"reset"}'), b"\x81", b"\x88\x80"]
                )
                with suppress(ConnectionError):
                    raw.send(beginning + draw.randbytes(draw.choice([1, 10, 100, 5000])) + b"\r\n\r\n")
    assert_unharmed(bridge)
