"""A WebSocket that is quick with short messages."""

from __future__ import annotations

import os
import socket
import struct
import sys
import time

import websocket

READ_BYTES = 64 * 1024
"""Read at once, if they are there."""
LOOK_SECONDS = 0.0003
"""How long a reply is looked for before the process sleeps until it comes."""
CAN_LOOK = sys.platform != "win32" and hasattr(os, "sched_yield")
_LAST = 0x80
_WHOLE = (_LAST | websocket.ABNF.OPCODE_TEXT, _LAST | websocket.ABNF.OPCODE_BINARY)
"""The first byte of a message in one frame."""
_MASKED, _TWO_BYTES = 0x80, 126
"""In the second byte: that it is masked, as all from a client are; that the length is in the next two bytes."""
_HEADER = struct.Struct(">BBH")
"""Of a frame with 126 to 65535 bytes."""


class QuickSocket(websocket.WebSocket):
    """websocket-client with a short way for what nearly all messages are: one frame, written and read in one go.

    The library reads the header, the length and the content of a frame one by one, each with a wait before it, and
    makes a dozen calls of each message, which takes longer than the way to the server and back. All that is not a
    whole frame (fragments, pings, close frames, what comes in pieces) is left to it.
    """

    def settimeout(self, timeout: float | None) -> None:
        """Have the system watch the time: Python would ask it before each read and write whether it may."""
        super().settimeout(timeout)
        if self.sock is not None and timeout and not self.is_ssl():  # type: ignore[no-untyped-call]
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                self.sock.setsockopt(socket.SOL_SOCKET, option, _system_time(timeout))
            self.sock.settimeout(None)

    def send(self, payload: bytes | str, opcode: int = websocket.ABNF.OPCODE_TEXT) -> int:
        size = len(payload)
        if self.sock is None or size > 0xFFFF or isinstance(payload, str):
            return super().send(payload, opcode)
        first = _LAST | opcode
        short = size < _TWO_BYTES
        header = bytes((first, _MASKED | size)) if short else _HEADER.pack(first, _MASKED | _TWO_BYTES, size)
        key = os.urandom(4)
        mask = int.from_bytes((key * (size // 4 + 1))[:size], "little")
        masked = (int.from_bytes(payload, "little") ^ mask).to_bytes(size, "little")
        self.sock.sendall(header + key + masked)
        return size

    def recv_data(self, control_frame: bool = False) -> tuple[int, bytes]:
        unread = self.frame_buffer.recv_buffer
        if self.sock is not None and not unread:
            data = _read_soon(self.sock)
            if len(data) > _HEADER.size:
                first, second, size = _HEADER.unpack_from(data)
                if first in _WHOLE and second == _TWO_BYTES and len(data) == _HEADER.size + size:
                    return first & 0xF, data[_HEADER.size :]
            if data:
                unread.append(data)
        return self._recv_by_library(control_frame)

    def _recv_by_library(self, control_frame: bool) -> tuple[int, bytes]:
        """It watches the time by itself."""
        if self.sock is not None:
            self.sock.settimeout(self.gettimeout())
        try:
            return super().recv_data(control_frame)
        finally:
            self.settimeout(self.gettimeout())


def _read_soon(sock: socket.socket) -> bytes:
    """What comes next. The reply is on its way, and going to sleep and waking up takes longer than that: look first.

    Others go first in between, so that a server on the same core gets to answer.
    """
    if CAN_LOOK:
        end = time.perf_counter() + LOOK_SECONDS
        while time.perf_counter() < end:
            try:
                return sock.recv(READ_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                os.sched_yield()
    return sock.recv(READ_BYTES)


def _system_time(seconds: float) -> int | bytes:
    """As a socket option, where 0 would be for ever."""
    if sys.platform == "win32":
        return max(1, round(seconds * 1e3))
    return struct.pack("ll", *divmod(max(1, round(seconds * 1e6)), 1_000_000))
