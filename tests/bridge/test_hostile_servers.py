"""Our client against hostile servers: bounded memory and time, and one clear error."""

import json
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import repeat
from typing import Any

import pytest

from racer_env.bridge.session import ServerLimits, Session
from racer_env.bridge.track_cache import TrackCache
from racer_env.bridge.ws_client import ClientConnection
from racer_env.errors import BridgeError, ContractError
from tests.bridge.old_server import OldServer, receive_frame

TIMEOUT, PATIENCE = 0.5, 20.0
"""Time limit of the client [s], where it is the one to end an attack and where it is not."""
LONGEST = 10.0
"""Maximum time until the error [s]; generous, because tests share two cores."""
MAX_MEMORY = 8 * 1024 * 1024
"""Maximum memory that an attack may take [bytes]."""
INTERVAL = 0.02
"""Time between two bytes of a slow server [s]."""

Attack = Callable[[socket.socket], None]


def frame_header(first: int, size: int) -> bytes:
    return struct.pack(">BBQ", first, 127, size)


def send_all(parts: Iterator[bytes], interval: float = 0.0) -> Attack:
    def attack(peer: socket.socket) -> None:
        for part in parts:
            peer.sendall(part)
            time.sleep(interval)

    return attack


class HostileServer(OldServer):
    """Server that attacks instead of answering, after the handshake or in it."""

    def __init__(self, attack: Attack, in_handshake: bool) -> None:
        self._attack, self._in_handshake = attack, in_handshake
        super().__init__()

    def shake_hands(self, peer: socket.socket) -> None:
        if self._in_handshake:
            peer.recv(4096)
            self._attack(peer)
        else:
            super().shake_hands(peer)

    def _talk(self, peer: socket.socket) -> None:
        receive_frame(peer)
        self._attack(peer)


@contextmanager
def hostile_server(attack: Attack, in_handshake: bool = False) -> Iterator[str]:
    ended = threading.Event()

    def attack_and_wait(peer: socket.socket) -> None:
        with suppress(OSError):
            attack(peer)
        ended.wait(20)

    with closing(HostileServer(attack_and_wait, in_handshake)) as server:
        try:
            yield server.url
        finally:
            ended.set()


def error_of(url: str, connect_timeout: float = PATIENCE, reply_timeout: float = PATIENCE) -> BridgeError:
    """Return the error of connecting, which must come in time and take little memory."""
    tracemalloc.start()
    begin = time.monotonic()
    try:
        with pytest.raises(BridgeError) as caught:
            ClientConnection(url, connect_timeout=connect_timeout, reply_timeout=reply_timeout)
        assert time.monotonic() - begin < LONGEST
        assert tracemalloc.get_traced_memory()[1] < MAX_MEMORY
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    return caught.value


HANDSHAKES: dict[str, Attack] = {
    "silence": lambda peer: None,
    "a header without an end": send_all(repeat(b"x" * 1000)),
    "headers without an end": send_all(repeat(b"X-Header: 1\r\n" * 100)),
    "headers after a status without an end": send_all(
        part for part in (b"HTTP/1.1 101 Switching Protocols\r\n", *[b"X-Header: 1\r\n" * 100] * 1000)
    ),
    "one byte after the other": send_all(repeat(b"H"), INTERVAL),
    "a body of 20 GB": send_all(iter([b"HTTP/1.1 500 No\r\nContent-Length: 20000000000\r\n\r\n", b"no" * 10**6])),
    "a negative body": send_all(iter([b"HTTP/1.1 500 No\r\nContent-Length: -7\r\n\r\n"])),
    "a redirect to itself": send_all(iter([b"HTTP/1.1 301 Moved\r\nLocation: ws://127.0.0.1:1\r\n\r\n"])),
    "another protocol": send_all(iter([b"SSH-2.0-OpenSSH_9.6\r\n\r\n"])),
}


@pytest.mark.parametrize("attack", HANDSHAKES.values(), ids=HANDSHAKES.keys())
def test_a_hostile_handshake_ends_in_time(attack: Attack) -> None:
    with hostile_server(attack, in_handshake=True) as url:
        error_of(url, connect_timeout=TIMEOUT)


SLOW_REPLIES: dict[str, Attack] = {
    "silence": lambda peer: None,
    "pings without an end": send_all(repeat(b"\x89\x00" * 100)),
    "a ping every now and then": send_all(repeat(b"\x89\x02??"), INTERVAL),
    "pongs without an end": send_all(repeat(b"\x8a\x00" * 100)),
    "empty fragments without an end": send_all(part for part in (b"\x01\x00", *[b"\x00\x00" * 100] * 100_000)),
    "one byte after the other": send_all((bytes((byte,)) for byte in b"\x81\x7e\x10\x00" + b" " * 4096), INTERVAL),
    "a header that stops": send_all(iter([b"\x81"])),
}


@pytest.mark.parametrize("attack", SLOW_REPLIES.values(), ids=SLOW_REPLIES.keys())
def test_a_reply_without_an_end_ends_in_time(attack: Attack) -> None:
    with hostile_server(attack) as url:
        assert f"no reply within {TIMEOUT:g} s" in str(error_of(url, reply_timeout=TIMEOUT))


LARGE_REPLIES: dict[str, Attack] = {
    "a text of 20 GB": send_all(iter([frame_header(0x81, 20 * 10**9), *[b" " * 65536] * 1000])),
    "a binary message of 20 GB": send_all(iter([frame_header(0x82, 20 * 10**9)])),
    "the largest size of all": send_all(iter([frame_header(0x81, 2**64 - 1)])),
    "a ping of 20 GB": send_all(iter([frame_header(0x89, 20 * 10**9)])),
    "a close frame of 1 MB": send_all(iter([frame_header(0x88, 10**6)])),
    "one byte too many": send_all(iter([frame_header(0x81, 256 * 1024 + 1)])),
    "fragments without an end": send_all(
        part for part in (frame_header(0x01, 1000) + b" " * 1000, *[frame_header(0, 1000) + b" " * 1000] * 10_000)
    ),
}


@pytest.mark.parametrize("attack", LARGE_REPLIES.values(), ids=LARGE_REPLIES.keys())
def test_a_reply_that_is_too_large_is_refused_by_its_header(attack: Attack) -> None:
    with hostile_server(attack) as url:
        error = error_of(url, reply_timeout=PATIENCE)
        assert isinstance(error, ContractError)
        assert "bytes; at most" in str(error)


DESCRIPTION = json.loads(Session(TrackCache(), ServerLimits()).answer_text(b'{"type":"describe"}'))

WRONG_DESCRIPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"capabilities": "batch"}, "capabilities: a list expected, got 'batch'"),
    ({"capabilities": None}, "capabilities: a list expected, got None"),
    ({"capabilities": [7]}, "capabilities[0]: a string expected, got 7"),
    ({"capabilities": ["x"] * 1001}, "capabilities: a list of at most 1000 values expected"),
    ({"capabilities": ["x" * 201]}, "capabilities[0]: a text of at most 200 characters expected"),
    ({"protocol": "1"}, "protocol: a whole number expected, got '1'"),
    ({"protocol": 0}, "protocol: at least 1 expected, got 0"),
    ({"protocol": 2**40}, "protocol: at most"),
    ({"server": ["x"]}, "server: a string expected"),
    ({"limits": {"cars": "many"}}, "a finite number expected"),
    ({"limits": {str(number): 1 for number in range(1001)}}, "limits: an object of at most 1000 values expected"),
    ({"observation": {**DESCRIPTION["observation"], "shape": [13]}}, "observation.shape: [14] expected, got [13]"),
    ({"observation": {**DESCRIPTION["observation"], "shape": [-1]}}, "observation.shape[0]: at least 0 expected"),
    ({"action": {**DESCRIPTION["action"], "low": []}}, "action.shape: [3] expected"),
    ({"tracks": [{"id": 5, "name": "x"}]}, "tracks[0].id: a string expected, got 5"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG_DESCRIPTIONS, ids=[case[1] for case in WRONG_DESCRIPTIONS])
def test_a_wrong_description_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    content = json.dumps({**DESCRIPTION, **changes}).encode()
    with hostile_server(send_all(iter([frame_header(0x81, len(content)) + content]))) as url:
        assert message in str(error_of(url, reply_timeout=PATIENCE))


def test_a_long_error_is_cut() -> None:
    content = json.dumps({**DESCRIPTION, "type": "x" * 200_000}).encode()
    with hostile_server(send_all(iter([frame_header(0x81, len(content)) + content]))) as url:
        assert "describe_result" in str(error_of(url, reply_timeout=PATIENCE))


def test_capabilities_that_the_client_does_not_know_are_left_out() -> None:
    content = json.dumps({**DESCRIPTION, "capabilities": ["batch", "teleport"]}).encode()
    with hostile_server(send_all(iter([frame_header(0x81, len(content)) + content]))) as url:
        connection = ClientConnection(url, connect_timeout=20.0, reply_timeout=20.0)
        assert connection.capabilities == {"batch"}
        connection.abort()
