"""A WebSocket client without a library, which can send invalid frames."""

import base64
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
TIMEOUT = 30.0


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, reserved: int = 0, masked: bool = True) -> bytes:
    """Return a frame as a client sends it. The mask is zero, which is valid."""
    first, mask = (0x80 if fin else 0) | reserved << 4 | opcode, 0x80 if masked else 0
    if len(payload) < 126:
        head = struct.pack(">BB", first, mask | len(payload))
    elif len(payload) < 65536:
        head = struct.pack(">BBH", first, mask | 126, len(payload))
    else:
        head = struct.pack(">BBQ", first, mask | 127, len(payload))
    return head + (bytes(4) if masked else b"") + payload


def upgrade_request(port: int, target: str = "/", **headers: str) -> bytes:
    """Return a WebSocket upgrade request with additional headers, such as `Origin="null"`."""
    lines = {
        "Host": f"127.0.0.1:{port}",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"GET {target} HTTP/1.1\r\n{head}\r\n".encode()


class Received(NamedTuple):
    opcode: int
    payload: bytes

    @property
    def close_code(self) -> int:
        assert self.opcode == CLOSE, self
        return int.from_bytes(self.payload[:2], "big")

    @property
    def close_reason(self) -> str:
        return self.payload[2:].decode()


class RawWebSocket:
    """Connection after the handshake, or before it with `upgrade=False`."""

    def __init__(self, port: int, *, upgrade: bool = True, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(TIMEOUT)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        if upgrade:
            self.socket.sendall(upgrade_request(port))
            assert b" 101 " in self.until(b"\r\n\r\n").splitlines()[0]

    def send(self, *frames: bytes) -> None:
        self.socket.sendall(b"".join(frames))

    def until(self, end: bytes) -> bytes:
        """Return everything received up to and including some bytes."""
        while end not in self._received:
            self._more()
        found = self._received.index(end) + len(end)
        return self._take(found)

    def receive(self) -> Received:
        """Return the next frame; raise ConnectionError if the server has closed the connection."""
        self._fill(2)
        opcode, size, start = self._received[0] & 0xF, self._received[1], 2
        if size >= 126:
            start = 4 if size == 126 else 10
            self._fill(start)
            size = int.from_bytes(self._received[2:start], "big")
        self._fill(start + size)
        return Received(opcode, self._take(start + size)[start:])

    def receive_text(self) -> str:
        opcode, payload = self.receive()
        assert opcode == TEXT, (opcode, payload[:200])
        return payload.decode()

    def is_closed_by_server(self) -> bool:
        """Return True once the server has closed the connection; raise TimeoutError if it does not."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            pass
        return True

    def close(self) -> None:
        self.socket.close()

    def _fill(self, size: int) -> None:
        while len(self._received) < size:
            self._more()

    def _more(self) -> None:
        part = self.socket.recv(65536)
        if not part:
            raise ConnectionError("the server has closed the connection")
        self._received += part

    def _take(self, size: int) -> bytes:
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken


@contextmanager
def raw_websocket(port: int, *, upgrade: bool = True, receive_buffer: int | None = None) -> Iterator[RawWebSocket]:
    connection = RawWebSocket(port, upgrade=upgrade, receive_buffer=receive_buffer)
    try:
        yield connection
    finally:
        connection.close()
