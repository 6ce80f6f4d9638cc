"""WebSocket frames: valid ones are answered, invalid ones close their own connection only."""

import itertools
import json
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.bridge.conftest import RunningBridge
from tests.bridge.plain_client import plain_client
from tests.bridge.raw_websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    RawWebSocket,
    frame,
    raw_websocket,
    upgrade_request,
)
from tests.bridge.watching import events

RESET, STEP = b'{"type":"reset"}', b'{"type":"step","action":[0,1,0]}'


@pytest.fixture
def raw(bridge: RunningBridge) -> Iterator[RawWebSocket]:
    with raw_websocket(bridge.port) as raw:
        yield raw


def in_parts(message: bytes, size: int) -> list[bytes]:
    """Return the frames of a fragmented message."""
    parts = [message[start : start + size] for start in range(0, len(message), size)]
    return [
        frame(TEXT if number == 0 else CONTINUATION, part, fin=number == len(parts) - 1)
        for number, part in enumerate(parts)
    ]


def replies(raw: RawWebSocket, number: int) -> list[str]:
    return [json.loads(raw.receive_text())["type"] for _ in range(number)]


@pytest.mark.parametrize("size", [1, 5, 16])
def test_a_message_may_come_in_parts(raw: RawWebSocket, size: int) -> None:
    raw.send(*in_parts(RESET, size), *in_parts(STEP, size))
    assert replies(raw, 2) == ["reset_result", "step_result"]


def test_parts_may_be_empty(raw: RawWebSocket) -> None:
    nothing = frame(CONTINUATION, b"", fin=False)
    raw.send(frame(TEXT, b"", fin=False), nothing, nothing, frame(CONTINUATION, RESET, fin=False))
    raw.send(frame(CONTINUATION))
    assert replies(raw, 1) == ["reset_result"]


def test_a_ping_is_answered_with_its_payload_also_between_the_parts_of_a_message(raw: RawWebSocket) -> None:
    raw.send(frame(PING, b"hello"))
    assert raw.receive() == (PONG, b"hello")
    raw.send(frame(TEXT, RESET[:5], fin=False), frame(PING, b""), frame(CONTINUATION, RESET[5:]))
    assert raw.receive() == (PONG, b"")
    assert replies(raw, 1) == ["reset_result"]


def test_a_pong_that_nobody_asked_for_is_ignored(raw: RawWebSocket) -> None:
    raw.send(frame(PONG, b"?"), frame(TEXT, RESET))
    assert replies(raw, 1) == ["reset_result"]


def test_a_message_that_comes_byte_by_byte_is_answered_and_delays_nobody(bridge: RunningBridge) -> None:
    with plain_client(bridge.url) as neighbour, raw_websocket(bridge.port, upgrade=False) as slow:
        neighbour.reset()
        for number, byte in enumerate(upgrade_request(bridge.port) + frame(TEXT, RESET) + frame(TEXT, STEP)):
            slow.send(bytes((byte,)))
            if number % 10 == 0:
                neighbour.step()
        assert b" 101 " in slow.until(b"\r\n\r\n")
        assert replies(slow, 2) == ["reset_result", "step_result"]


def test_messages_that_are_sent_ahead_are_answered_in_their_order(raw: RawWebSocket) -> None:
    numbers = range(1, 501)
    raw.send(frame(TEXT, RESET), *[frame(TEXT, STEP)] * len(numbers))
    assert json.loads(raw.receive_text())["type"] == "reset_result"
    assert [json.loads(raw.receive_text())["info"]["stepCount"] for _ in numbers] == list(numbers)


def test_messages_behind_a_reset_on_a_circuit_that_must_be_built_wait_for_it(bridge: RunningBridge) -> None:
    """Two clients at once, so that one waits for its own circuit and for that of the other."""
    both = [RawWebSocket(bridge.port) for _ in range(2)]
    for seed, raw in enumerate(both):
        other_circuit = json.dumps({"type": "reset", "trackIds": [f"random:{seed}:easy", f"random:{seed}9:easy"]})
        raw.send(frame(TEXT, RESET), frame(TEXT, STEP), frame(TEXT, other_circuit.encode()), frame(TEXT, STEP))
        raw.send(frame(TEXT, STEP), frame(TEXT, b'{"type":"describe"}'), frame(TEXT, b"what?"), frame(TEXT, STEP))
        raw.send(frame(TEXT, RESET), frame(TEXT, STEP), frame(CLOSE, struct.pack(">H", 1000)))
    for raw in both:
        answers = [json.loads(raw.receive_text()) for _ in range(10)]
        assert [answer["type"].removesuffix("_result") for answer in answers] == [
            "reset", "step", "reset", "step", "step", "describe", "error", "step", "reset", "step",
        ]  # fmt: skip
        steps = [answer["info"]["stepCount"] for answer in answers if "info" in answer]
        assert steps == [0, 1, 0, 1, 2, 3, 0, 1]
        assert raw.receive().close_code == 1000
        raw.close()


def test_a_ping_is_answered_while_a_circuit_is_built(bridge: RunningBridge, raw: RawWebSocket) -> None:
    raw.send(frame(TEXT, b'{"type":"reset","trackId":"random:123:hard"}'))
    with plain_client(bridge.url) as neighbour:
        neighbour.reset()  # answered after the server has started the other reset
    for number in itertools.count():
        raw.send(frame(PING, str(number).encode()))
        received = raw.receive()
        if received.opcode == TEXT:
            break
        assert received == (PONG, str(number).encode())
    assert number > 0
    assert json.loads(received.payload)["type"] == "reset_result"


@pytest.mark.parametrize(
    ("code", "answer"), [(b"", 1000), (struct.pack(">H", 1000), 1000), (struct.pack(">H", 4000) + b"enough", 4000)]
)
def test_a_close_frame_is_answered_with_its_code(raw: RawWebSocket, code: bytes, answer: int) -> None:
    raw.send(frame(CLOSE, code))
    assert raw.receive().close_code == answer
    assert raw.is_closed_by_server()


def test_what_follows_a_close_frame_is_ignored(raw: RawWebSocket) -> None:
    raw.send(frame(TEXT, RESET), frame(CLOSE, struct.pack(">H", 1000)), frame(TEXT, STEP))
    assert replies(raw, 1) == ["reset_result"]
    assert raw.receive().opcode == CLOSE
    assert raw.is_closed_by_server()


BROKEN = {
    "unmasked": frame(TEXT, RESET, masked=False),
    "reserved bit 1": frame(TEXT, RESET, reserved=4),
    "reserved bit 2": frame(BINARY, RESET, reserved=2),
    "reserved bit 3": frame(PING, b"", reserved=1),
    "opcode 3": frame(3, RESET),
    "opcode 15": frame(15, RESET),
    "a ping in parts": frame(PING, b"", fin=False),
    "a ping that is too long": frame(PING, bytes(126)),
    "a continuation of nothing": frame(CONTINUATION, RESET),
    "an unfinished continuation of nothing": frame(CONTINUATION, RESET, fin=False),
    "a message within a message": frame(TEXT, RESET, fin=False) + frame(TEXT, RESET),
    "a beginning within a message": frame(TEXT, b"", fin=False) + frame(BINARY, RESET, fin=False),
    "a size in more bytes than needed": b"\x81\xfe\x00\x05" + bytes(9),
    "a size of 2⁶³ bytes": b"\x81\xff" + b"\xff" * 8 + bytes(9),
    "half a close code": frame(CLOSE, b"\x03"),
    "a close code that nobody may send": frame(CLOSE, struct.pack(">H", 999)),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_an_invalid_frame_closes_its_own_connection_only(bridge: RunningBridge, broken: bytes) -> None:
    with plain_client(bridge.url) as neighbour, raw_websocket(bridge.port) as raw:
        neighbour.reset()
        raw.send(frame(TEXT, RESET))
        assert replies(raw, 1) == ["reset_result"]
        raw.send(broken)
        assert raw.receive().close_code == 1002
        raw.send(frame(CLOSE, struct.pack(">H", 1002)))
        assert raw.is_closed_by_server()
        neighbour.step()


def test_text_that_is_not_utf_8_is_refused(raw: RawWebSocket) -> None:
    raw.send(frame(TEXT, b'{"type":"\xff\xfe"}'), frame(TEXT, RESET))
    assert replies(raw, 2) == ["error", "reset_result"]


@pytest.mark.parametrize(
    "request_head",
    [
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET //[ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\nOrigin: http://[\r\nHost: [\r\n\r\n",
    ],
)
def test_requests_that_are_no_websocket_get_an_http_error(bridge: RunningBridge, request_head: bytes) -> None:
    with raw_websocket(bridge.port, upgrade=False) as raw:
        raw.send(request_head)
        assert raw.until(b"\r\n").startswith(b"HTTP/1.1 4")
        assert raw.is_closed_by_server()


def test_a_request_head_without_an_end_is_not_kept(bridge: RunningBridge) -> None:
    with raw_websocket(bridge.port, upgrade=False) as raw:
        with suppress(ConnectionError):
            raw.send(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000)
        assert raw.is_closed_by_server()


def test_none_of_this_was_an_error_of_the_server_or_logged_per_message(bridge: RunningBridge) -> None:
    assert events(bridge.log, "message") == []
    assert events(bridge.log, "internal error") == []
    assert "Traceback" not in bridge.log.read_text()
