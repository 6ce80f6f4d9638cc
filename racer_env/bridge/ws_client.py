"""Client side of a connection to a bridge server: requests and replies, one for one.

A reply has a maximum size, which is checked in the header of each frame before its content is read, and one time limit
for all of it. After a timeout, a lost connection or a reply that breaks the contract the connection is closed. Nothing
is retried silently.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import websocket

from racer_env.bridge.batch_format import decode_result, max_result_size
from racer_env.bridge.interface import ACTION_LOW, OBSERVATION_LOW, BatchStep
from racer_env.bridge.messages import (
    CAPABILITIES,
    MAX_REPLY_SIZE,
    MAX_REPLY_SIZES,
    BatchResetRequest,
    CloseReply,
    CloseRequest,
    DescribeReply,
    DescribeRequest,
    RefusedError,
    Reply,
    Request,
    decode_reply,
    encode,
    reply_error,
)
from racer_env.errors import BridgeError, ContractError, os_reason, short

DEFAULT_PORT = 9876
DEFAULT_URL = f"ws://localhost:{DEFAULT_PORT}"
TOKEN_VARIABLE = "RACER_BRIDGE_TOKEN"
CONNECT_TIMEOUT, REPLY_TIMEOUT, CLOSE_TIMEOUT = 10.0, 30.0, 1
"""Timeouts [s]."""
MAX_HANDSHAKE_SIZE = 64 * 1024
"""Maximum size of a server's answer to the upgrade request [bytes]."""
MAX_CONTROL_SIZE = 125
"""Maximum size of a ping, pong or close frame [bytes], from RFC 6455."""

READ_SIZE = 64 * 1024
"""Maximum number of bytes per read."""
SPIN_TIMEOUT = 0.0003
"""Time that a reply is polled for before the thread sleeps [s]; most replies arrive earlier."""
CAN_SPIN = sys.platform != "win32" and hasattr(os, "sched_yield")

OPCODE_TEXT, OPCODE_BINARY, OPCODE_CLOSE = (
    websocket.ABNF.OPCODE_TEXT,
    websocket.ABNF.OPCODE_BINARY,
    websocket.ABNF.OPCODE_CLOSE,
)
_FIN = 0x80
_WHOLE_MESSAGE = (_FIN | OPCODE_TEXT, _FIN | OPCODE_BINARY)
"""First byte of a message in one frame."""
_MASKED, _TWO_BYTE_LENGTH = 0x80, 126
"""Second byte of a frame: mask bit, and the value that announces a length in the next two bytes."""
_FRAME_HEADER = struct.Struct(">BBH")
"""Header of a frame of 126 to 65535 bytes."""

Result = TypeVar("Result")


class FastWebSocket(websocket.WebSocket):
    """websocket-client with bounds, and with a fast path for messages in one frame.

    The library reads header, length and content of a frame one by one, with a wait before each, and makes a dozen
    calls per message, which takes longer than the round trip to the server. Messages in one frame are written and read
    in one call instead. The library also reads without a limit: a frame may announce any size, and its timeout begins
    again with every byte. Here the timeout is that of the whole handshake, or of a whole message with all pings and
    fragments before its end.

    max_size: maximum size of a received message [bytes].
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.max_size = MAX_REPLY_SIZE
        self._unread = bytearray()
        self._deadline = 0.0
        self._message_size = 0
        self._can_spin = False

    def connect(self, url: str, **options: Any) -> None:
        """Connect and complete the handshake. Redirects are refused: they would take the token elsewhere."""
        timeout = self.gettimeout()
        self._begin(timeout)
        stream = _open_stream(url, timeout)
        bounded = HandshakeStream(stream, self._deadline)
        super().connect(url, **{**options, "socket": bounded, "redirect_limit": 0})  # type: ignore[no-untyped-call]
        self.sock = stream
        self._can_spin = CAN_SPIN and not isinstance(stream, ssl.SSLSocket)

    def settimeout(self, timeout: float | None) -> None:
        """Set the timeout as a socket option; Python's own timeout adds a system call to each read and write."""
        super().settimeout(timeout)
        if self.sock is not None and timeout and not self.is_ssl():  # type: ignore[no-untyped-call]
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                self.sock.setsockopt(socket.SOL_SOCKET, option, _socket_option_time(timeout))
            self.sock.settimeout(None)

    def send(self, payload: bytes | str, opcode: int = OPCODE_TEXT) -> int:
        size = len(payload)
        if self.sock is None or size > 0xFFFF or isinstance(payload, str):
            return super().send(payload, opcode)
        first = _FIN | opcode
        if size < _TWO_BYTE_LENGTH:
            header = bytes((first, _MASKED | size))
        else:
            header = _FRAME_HEADER.pack(first, _MASKED | _TWO_BYTE_LENGTH, size)
        key = os.urandom(4)
        mask = int.from_bytes((key * (size // 4 + 1))[:size], "little")
        masked = (int.from_bytes(payload, "little") ^ mask).to_bytes(size, "little")
        self.sock.sendall(header + key + masked)
        return size

    def recv_data(self, control_frame: bool = False) -> tuple[int, bytes]:
        self._begin(self.gettimeout())
        if self.sock is not None and not self._unread:
            data = _receive(self.sock, self._can_spin)
            if len(data) > _FRAME_HEADER.size:
                first, second, size = _FRAME_HEADER.unpack_from(data)
                if first in _WHOLE_MESSAGE and second == _TWO_BYTE_LENGTH and len(data) == _FRAME_HEADER.size + size:
                    self._add_size(size)
                    return first & 0xF, data[_FRAME_HEADER.size :]
            self._unread += data
            if not data:
                raise websocket.WebSocketConnectionClosedException("the server closed it")
        try:
            return super().recv_data(control_frame)
        finally:
            self.settimeout(self.gettimeout())

    def recv_frame(self) -> websocket.ABNF:
        """Receive a frame. Raises ContractError for one that is too large as soon as its header is there."""
        _remaining(self._deadline)  # thousands of small frames may have arrived in one read
        first, second = self._read(2)
        size, masked, opcode = second & 0x7F, second & _MASKED, first & 0xF
        if size >= _TWO_BYTE_LENGTH:
            size = int.from_bytes(self._read(2 if size == _TWO_BYTE_LENGTH else 8), "big")
        if opcode < OPCODE_CLOSE:
            self._add_size(size)
        elif size > MAX_CONTROL_SIZE:
            raise ContractError(f"reply: a control frame of {size} bytes; at most {MAX_CONTROL_SIZE} expected")
        key = self._read(4) if masked else b""
        payload = self._read(size)
        if masked:
            payload = websocket.ABNF.mask(key, payload)
        flags = [first >> shift & 1 for shift in (7, 6, 5, 4)]
        frame = websocket.ABNF(*flags, opcode, masked >> 7, payload)  # type: ignore[call-arg, arg-type]
        frame.validate(skip_utf8_validation=True)
        return frame

    def close(self, status: int = 1000, reason: bytes | str = b"", timeout: float | None = CLOSE_TIMEOUT) -> None:
        self._begin(timeout)
        super().close(status, reason, timeout)

    def _begin(self, timeout: float | None) -> None:
        """Begin a message, and its time limit."""
        self._deadline = time.perf_counter() + (REPLY_TIMEOUT if timeout is None else timeout)
        self._message_size = 0

    def _add_size(self, size: int) -> None:
        self._message_size += size
        if self._message_size > self.max_size:
            raise ContractError(f"reply: {self._message_size} bytes; at most {self.max_size} expected")

    def _read(self, size: int) -> bytes:
        """Return the next bytes; raise TimeoutError at the end of the time limit."""
        while len(self._unread) < size:
            if self.sock is None:
                raise websocket.WebSocketConnectionClosedException("the connection is closed")
            self.sock.settimeout(_remaining(self._deadline))
            data = self.sock.recv(READ_SIZE)
            if not data:
                raise websocket.WebSocketConnectionClosedException("the server closed it")
            self._unread += data
        taken = bytes(self._unread[:size])
        del self._unread[:size]
        return taken


class HandshakeStream:
    """Socket for the library's handshake, which reads headers without a limit: bounds their size and duration.

    deadline: end of the time limit, in terms of `time.perf_counter`.
    """

    def __init__(self, stream: socket.socket, deadline: float) -> None:
        self._stream, self._deadline = stream, deadline
        self._received = 0

    def recv(self, size: int) -> bytes:
        self._stream.settimeout(_remaining(self._deadline))
        data = self._stream.recv(min(size, READ_SIZE))  # the size of an error's body is the server's choice
        self._received += len(data)
        if self._received > MAX_HANDSHAKE_SIZE:
            raise websocket.WebSocketException(f"its answer has more than {MAX_HANDSHAKE_SIZE} bytes")
        return data

    def send(self, data: bytes) -> int:
        self._stream.settimeout(_remaining(self._deadline))
        return self._stream.send(data)

    def gettimeout(self) -> float | None:
        return self._stream.gettimeout()

    def close(self) -> None:
        self._stream.close()


def _open_stream(url: str, timeout: float | None) -> socket.socket:
    """Connect to the host of a URL, encrypted if it begins with wss."""
    parts = urlsplit(url)
    if not parts.hostname:
        raise ValueError("the address has no host")
    secure = parts.scheme == "wss"
    stream = socket.create_connection((parts.hostname, parts.port or (443 if secure else 80)), timeout)
    try:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return ssl.create_default_context().wrap_socket(stream, server_hostname=parts.hostname) if secure else stream
    except BaseException:
        stream.close()
        raise


def _remaining(deadline: float) -> float:
    """Return the time until a deadline [s]; raise TimeoutError after it."""
    remaining = deadline - time.perf_counter()
    if remaining <= 0.0:
        raise TimeoutError("timed out")
    return remaining


def _receive(sock: socket.socket, spin: bool) -> bytes:
    """Read the next bytes. Poll first: a reply usually arrives sooner than a sleeping thread wakes up.

    The thread yields between polls so that a server on the same core can answer.
    """
    if spin:
        end = time.perf_counter() + SPIN_TIMEOUT
        while time.perf_counter() < end:
            try:
                return sock.recv(READ_SIZE, socket.MSG_DONTWAIT)
            except BlockingIOError:
                os.sched_yield()
    return sock.recv(READ_SIZE)


def _socket_option_time(seconds: float) -> int | bytes:
    """Return a timeout as the value of a socket option, where 0 would mean no timeout."""
    if sys.platform == "win32":
        return max(1, round(seconds * 1e3))
    return struct.pack("ll", *divmod(max(1, round(seconds * 1e6)), 1_000_000))


class ClientConnection:
    """WebSocket connection to a bridge server.

    capabilities: names of the server's requests and fields beyond reset, step and close; empty for existing servers.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        token: str | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
        reply_timeout: float = REPLY_TIMEOUT,
    ) -> None:
        self.url = url
        self._reply_timeout = reply_timeout
        self._socket = _connect(url, token or os.environ.get(TOKEN_VARIABLE), connect_timeout)
        self._socket.settimeout(reply_timeout)
        try:
            self.capabilities = self._request_capabilities()
        except BaseException:
            self.abort()
            raise

    def require(self, capability: str, purpose: str) -> None:
        if capability not in self.capabilities:
            raise BridgeError(f"the bridge at {self.url} does not support {capability!r}, which {purpose} needs")

    def request(self, request: Request, kind: type[Reply], accept: Callable[[Reply], Result]) -> Result:
        """Send a request and return `accept(reply)`. Errors that `accept` raises close the connection."""
        result: Result = self._guarded(self._exchange_json, encode(request), kind, accept)
        return result

    def request_batch(
        self,
        request: bytes | BatchResetRequest,
        num_cars: int,
        accept: Callable[[BatchStep], BatchStep],
        components: int,
    ) -> BatchStep:
        """Send a batch step or reset and return `accept(result)`. Errors that `accept` raises close the connection.

        components: number of reward components in the result.
        """
        content, opcode = (request, OPCODE_BINARY) if isinstance(request, bytes) else (encode(request), OPCODE_TEXT)
        return self._guarded(self._exchange_batch, content, opcode, num_cars, accept, components)

    def close(self) -> None:
        """Release the server's environment if it still answers, and close."""
        if self._socket.connected:
            try:
                self._socket.settimeout(CLOSE_TIMEOUT)
                self.request(CloseRequest(), CloseReply, lambda reply: None)
            except BridgeError:
                pass
            self._socket.close(timeout=CLOSE_TIMEOUT)

    def abort(self) -> None:
        """Close without a handshake."""
        self._socket.shutdown()  # type: ignore[no-untyped-call]

    def _guarded(self, exchange: Callable[..., Result], *arguments: Any) -> Result:
        if not self._socket.connected:
            raise BridgeError(f"the connection to {self.url} is closed: connect again")
        try:
            return exchange(*arguments)
        except RefusedError as refusal:
            raise BridgeError(f"the bridge at {self.url} says: {refusal}") from None
        except (websocket.WebSocketTimeoutException, TimeoutError, BlockingIOError):
            self.abort()
            raise BridgeError(
                f"{self.url} gave no reply within {self._reply_timeout:g} s; the connection is now closed"
            ) from None
        except (websocket.WebSocketException, OSError) as error:
            self.abort()
            raise BridgeError(f"lost the connection to {self.url}: {os_reason(error)}") from None
        except BaseException:  # a broken contract, or Ctrl-C: the next reply might answer an earlier request
            self.abort()
            raise

    def _exchange(self, message: bytes, opcode: int, max_size: int) -> tuple[int, bytes]:
        self._socket.max_size = max_size
        self._socket.send(message, opcode)
        opcode, reply = self._socket.recv_data()
        if opcode == OPCODE_CLOSE:
            raise websocket.WebSocketConnectionClosedException(_close_reason(reply))
        return opcode, reply

    def _exchange_json(self, message: bytes, kind: type[Reply], accept: Callable[[Reply], Result]) -> Result:
        opcode, content = self._exchange(message, OPCODE_TEXT, MAX_REPLY_SIZES.get(kind, MAX_REPLY_SIZE))
        if opcode != OPCODE_TEXT:
            raise ContractError(f"reply: JSON in a text frame expected, got {short(content)}")
        return accept(decode_reply(content, kind))

    def _exchange_batch(
        self, message: bytes, opcode: int, num_cars: int, accept: Callable[[BatchStep], BatchStep], components: int
    ) -> BatchStep:
        opcode, content = self._exchange(message, opcode, max(MAX_REPLY_SIZE, max_result_size(num_cars, components)))
        if opcode != OPCODE_BINARY:
            raise reply_error(content, "a binary result")
        return accept(decode_result(content, num_cars, components))

    def _request_capabilities(self) -> frozenset[str]:
        """Ask the server for its capabilities. Existing servers do not know the request and reply with an error.

        Capabilities that this client does not know are left out.
        """
        try:
            return self.request(DescribeRequest(), DescribeReply, _checked_capabilities)
        except ContractError:
            raise
        except BridgeError:
            if not self._socket.connected:
                raise
            return frozenset()


def _checked_capabilities(reply: DescribeReply) -> frozenset[str]:
    """Return the capabilities that this client knows; raise ContractError if the server's cars are of another kind."""
    for name, box, low in (("observation", reply.observation, OBSERVATION_LOW), ("action", reply.action, ACTION_LOW)):
        if box.shape != [*low.shape] or len(box.low) != low.size or len(box.high) != low.size:
            raise ContractError(f"{name}.shape: {[*low.shape]} expected, got {short(box.shape)}")
    return frozenset(reply.capabilities) & frozenset(CAPABILITIES)


def check_url(url: str) -> None:
    """Raise unless a URL can be that of a bridge."""
    if not url.startswith(("ws://", "wss://")):
        raise BridgeError(f"a bridge's address starts with ws:// or wss://, such as {DEFAULT_URL}; not {short(url)}")


def _connect(url: str, token: str | None, timeout: float) -> FastWebSocket:
    check_url(url)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        return websocket.create_connection(  # type: ignore[return-value]
            url,
            timeout=timeout,
            class_=FastWebSocket,
            header=headers,
            skip_utf8_validation=True,
            suppress_origin=True,
            http_no_proxy=["*"],
        )
    except websocket.WebSocketBadStatusException as error:
        raise BridgeError(f"{url} refused the connection: {_refusal_reason(error)}") from None
    except (websocket.WebSocketTimeoutException, TimeoutError):
        raise BridgeError(f"cannot connect to {url} within {timeout:g} s: is the bridge running?") from None
    except (websocket.WebSocketException, OSError, ValueError) as error:
        raise BridgeError(
            f"cannot connect to {url}: is the bridge running? Start it with: racer-viewer bridge ({os_reason(error)})"
        ) from None


def _refusal_reason(error: websocket.WebSocketBadStatusException) -> str:
    body = error.resp_body
    text = body.decode(errors="replace").strip() if isinstance(body, bytes) else ""
    return text[:300] if text else f"HTTP status {error.status_code}"


def _close_reason(close_frame: bytes) -> str:
    """Describe the content of a close frame: a code of two bytes and an optional reason."""
    code = int.from_bytes(close_frame[:2], "big") if len(close_frame) >= 2 else 1005
    reason = close_frame[2:].decode(errors="replace")
    return f"the server closed it with code {code}" + (f", {reason}" if reason else "")
