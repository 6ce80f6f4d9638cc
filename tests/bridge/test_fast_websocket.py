"""FastWebSocket: the fast path for whole frames and the library's path for all others give the same results."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import websocket

from racer_env.bridge.ws_client import READ_SIZE, FastWebSocket
from tests.bridge.old_server import OldServer, receive_frame

TEXT, BINARY = websocket.ABNF.OPCODE_TEXT, websocket.ABNF.OPCODE_BINARY
REPLY = b"r" * 500


class ScriptedServer(OldServer):
    """Server that runs a test's function for every connection."""

    def __init__(self, talk: Callable[[socket.socket], None]) -> None:
        self._script = talk
        super().__init__()

    def _talk(self, peer: socket.socket) -> None:
        self._script(peer)


@contextmanager
def connected_to(talk: Callable[[socket.socket], None], timeout: float = 20.0) -> Iterator[FastWebSocket]:
    server = ScriptedServer(talk)
    client = websocket.create_connection(server.url, timeout=timeout, class_=FastWebSocket, skip_utf8_validation=True)
    client.settimeout(timeout)
    client.max_size = 300_000
    try:
        yield client  # type: ignore[misc]
    finally:
        client.shutdown()
        server.close()


def frame(payload: bytes, opcode: int = TEXT, last: bool = True) -> bytes:
    first, size = (0x80 if last else 0) | opcode, len(payload)
    if size < 126:
        return bytes((first, size)) + payload
    return struct.pack(">BBH" if size < 65536 else ">BBQ", first, 126 if size < 65536 else 127, size) + payload


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 125, 126, 127, 1552, 65535, 65536, 200_000])
def test_what_is_sent_arrives_as_it_was(size: int) -> None:
    sent, arrived = bytes(i % 251 for i in range(size)), []

    def talk(peer: socket.socket) -> None:
        arrived.append(receive_frame(peer))
        peer.sendall(frame(REPLY))

    with connected_to(talk) as client:
        client.send(sent, BINARY)
        assert client.recv_data() == (TEXT, REPLY)
    assert arrived == [(BINARY, sent)]


def test_every_frame_has_a_mask_of_its_own() -> None:
    raw: list[bytes] = []

    def talk(peer: socket.socket) -> None:
        while len(b"".join(raw)) < 100 * 16:
            raw.append(peer.recv(4096))
        peer.sendall(frame(REPLY))

    with connected_to(talk) as client:
        for _ in range(100):
            client.send(b"0123456789", TEXT)
        client.recv_data()
    together = b"".join(raw)
    assert len({together[at + 2 : at + 6] for at in range(0, len(together), 16)}) > 95


@pytest.mark.parametrize("size", [0, 1, 125, 126, 500, 10_448, READ_SIZE - 4, READ_SIZE, 65_535, 65_536, 300_000])
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_a_message_of_any_size_is_received_whole(size: int, opcode: int) -> None:
    content = bytes(i % 251 for i in range(size))
    with connected_to(lambda peer: peer.sendall(frame(content, opcode))) as client:
        assert client.recv_data() == (opcode, content)


SCRIPTS = {
    "in fragments": [frame(b"a" * 200, TEXT, last=False), frame(b"b" * 200, 0, last=False), frame(b"c", 0)],
    "in fragments with a ping between": [frame(b"a" * 200, TEXT, False), frame(b"?", 9), frame(b"b" * 200 + b"c", 0)],
    "after a ping": [frame(b"?", 9) + frame(b"a" * 200 + b"b" * 200 + b"c")],
    "after a pong of its own accord": [frame(b"p" * 100, 10), frame(b"a" * 200 + b"b" * 200 + b"c")],
    "byte by byte": [bytes((byte,)) for byte in frame(b"a" * 200 + b"b" * 200 + b"c")],
    "cut within the header": [frame(b"a" * 200 + b"b" * 200 + b"c")[:3], frame(b"a" * 200 + b"b" * 200 + b"c")[3:]],
    "with the next one": [frame(b"a" * 200 + b"b" * 200 + b"c") + frame(REPLY)],
    "with half of the next one": [frame(b"a" * 200 + b"b" * 200 + b"c") + frame(REPLY)[:90], frame(REPLY)[90:]],
}


@pytest.mark.parametrize("parts", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_a_message_arrives_whole_however_it_is_split(parts: list[bytes]) -> None:
    pongs = []

    def talk(peer: socket.socket) -> None:
        for part in parts:
            peer.sendall(part)
        if REPLY not in b"".join(parts):
            peer.sendall(frame(REPLY))
        pongs.append(receive_frame(peer))
        peer.sendall(frame(b"end" * 100))

    with connected_to(talk) as client:
        assert client.recv_data() == (TEXT, b"a" * 200 + b"b" * 200 + b"c")
        assert client.recv_data() == (TEXT, REPLY)
        client.send(b"thanks", TEXT)
        assert client.recv_data() == (TEXT, b"end" * 100)
    assert pongs == [(10, b"?")] if frame(b"?", 9) in b"".join(parts) else [(TEXT, b"thanks")]


def test_a_close_frame_is_answered_and_returned() -> None:
    answers = []

    def talk(peer: socket.socket) -> None:
        peer.sendall(frame(struct.pack(">H", 1001) + b"bye" * 30, 8))
        answers.append(receive_frame(peer)[0])

    with connected_to(talk) as client:
        assert client.recv_data() == (8, struct.pack(">H", 1001) + b"bye" * 30)
        assert not client.connected
        client.sock.shutdown(socket.SHUT_WR)
        assert client.sock.recv(1) == b""
    assert answers == [8]


def test_a_lost_connection_is_an_error() -> None:
    for beginning in (b"", frame(REPLY)[:2], frame(REPLY)[:100]):
        with (
            connected_to(lambda peer, part=beginning: peer.sendall(part)) as client,
            pytest.raises(websocket.WebSocketConnectionClosedException),
        ):
            client.recv_data()


@pytest.mark.parametrize("beginning", [b"", frame(REPLY)[:3], frame(REPLY)[:100], frame(b"a" * 200, TEXT, False)])
def test_silence_ends_in_time_wherever_it_begins(beginning: bytes) -> None:
    silence = threading.Event()

    def talk(peer: socket.socket) -> None:
        peer.sendall(beginning)
        silence.wait(20)

    with connected_to(talk, timeout=0.3) as client:
        begin = time.monotonic()
        with pytest.raises((websocket.WebSocketTimeoutException, TimeoutError, BlockingIOError)):
            client.recv_data()
        assert 0.2 < time.monotonic() - begin < 5.0
        silence.set()
