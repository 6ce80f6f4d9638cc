"""A WebSocket that is quick with short messages.

A connection to a bridge server, seen from the client: requests and replies, one for one.

After a time-out, a lost connection or a broken contract it is closed: nothing is tried again behind the caller's back.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import orjson
import websocket

from racer_env.bridge.batch_format import decode_result
from racer_env.bridge.interface import BatchStep
from racer_env.bridge.validation import short
from racer_env.errors import BridgeError, ContractError

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


CONNECT_TIMEOUT, REPLY_TIMEOUT = 10.0, 30.0
"""Seconds."""
LARGEST_REPLY = 64 * 1024 * 1024
"""Bytes. No server has a reason to send more."""
TOKEN_VARIABLE = "RACER_BRIDGE_TOKEN"
DEFAULT_PORT = 9876
DEFAULT_URL = f"ws://localhost:{DEFAULT_PORT}"

OPCODE_TEXT, OPCODE_BINARY = websocket.ABNF.OPCODE_TEXT, websocket.ABNF.OPCODE_BINARY

Reply = dict[str, Any]
Result = TypeVar("Result")


class Connection:
    """A WebSocket to a bridge: requests and replies, one for one."""

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
            self.description = self._describe()
        except BaseException:
            self.abort()
            raise

    @property
    def capabilities(self) -> frozenset[str]:
        """What the server can do beyond reset, step and close. Existing servers: nothing."""
        return frozenset(self.description.get("capabilities", ()))

    def require(self, capability: str, purpose: str) -> None:
        if capability not in self.capabilities:
            raise BridgeError(f"the bridge at {self.url} knows no {capability}: {purpose} needs one that does")

    def request(
        self,
        message: Mapping[str, Any],
        expected: str,
        judge: Callable[[Reply], Result],
        glance: Callable[[bytes], Result | None] = lambda content: None,
    ) -> Result:
        """Send a JSON message and return what is made of the reply of the expected type by who judges it.

        Whoever glances at it first, as it came, may spare the judge the work.
        """
        result: Result = self._guarded(self._exchange_json, orjson.dumps(message), expected, judge, glance)
        return result

    def request_batch(
        self, message: bytes | Mapping[str, Any], num_cars: int, judge: Callable[[BatchStep], BatchStep]
    ) -> BatchStep:
        """Send a step or a batch_reset and return the binary reply, if it is right by who judges it."""
        if isinstance(message, bytes):
            return self._guarded(self._exchange_batch, message, OPCODE_BINARY, num_cars, judge)
        return self._guarded(self._exchange_batch, orjson.dumps(message), OPCODE_TEXT, num_cars, judge)

    def close(self) -> None:
        """Say goodbye, if there is still someone, and close."""
        if self._socket.connected:
            try:
                self._socket.settimeout(1.0)
                self.request({"type": "close"}, "close_result", dict)
            except BridgeError:
                pass
            self._socket.close(timeout=1)

    def abort(self) -> None:
        """Close at once."""
        self._socket.shutdown()  # type: ignore[no-untyped-call]

    def _guarded(self, exchange: Callable[..., Result], *arguments: Any) -> Result:
        if not self._socket.connected:
            raise BridgeError(f"the connection to {self.url} is closed: connect again")
        try:
            return exchange(*arguments)
        except _RefusedError as refusal:
            raise BridgeError(f"the bridge at {self.url} says: {refusal}") from None
        except (websocket.WebSocketTimeoutException, TimeoutError, BlockingIOError):
            self.abort()
            raise BridgeError(f"{self.url} gave no reply within {self._reply_timeout:g} s; it is now closed") from None
        except (websocket.WebSocketException, OSError) as error:
            self.abort()
            raise BridgeError(f"lost the connection to {self.url}: {error}") from None
        except BaseException:  # a broken contract, or Ctrl-C between request and reply: the two are out of step now
            self.abort()
            raise

    def _exchange(self, message: bytes, opcode: int) -> tuple[int, bytes]:
        self._socket.send(message, opcode)
        opcode, reply = self._socket.recv_data()
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            raise websocket.WebSocketConnectionClosedException(_farewell(reply))
        if len(reply) > LARGEST_REPLY:
            raise ContractError(f"a reply of {len(reply)} bytes: at most {LARGEST_REPLY} expected")
        return opcode, reply

    def _exchange_json(
        self,
        message: bytes,
        expected: str,
        judge: Callable[[Reply], Result],
        glance: Callable[[bytes], Result | None],
    ) -> Result:
        opcode, content = self._exchange(message, OPCODE_TEXT)
        result = glance(content) if opcode == OPCODE_TEXT else None
        return judge(_json_reply(opcode, content, expected)) if result is None else result

    def _exchange_batch(
        self, message: bytes, opcode: int, num_cars: int, judge: Callable[[BatchStep], BatchStep]
    ) -> BatchStep:
        opcode, reply = self._exchange(message, opcode)
        if opcode != OPCODE_BINARY:
            _json_reply(opcode, reply, "a binary result")
        return judge(decode_result(reply, num_cars))

    def _describe(self) -> dict[str, Any]:
        """What the server says of itself. Existing servers know no such request and answer with an error."""
        try:
            return self.request({"type": "describe"}, "describe_result", dict)
        except ContractError:
            raise
        except BridgeError:
            if not self._socket.connected:
                raise
            return {}


class _RefusedError(Exception):
    """The server answered with an error; the connection stays usable."""


def _json_reply(opcode: int, content: bytes, expected: str) -> Reply:
    """The reply of the expected type."""
    try:
        reply = orjson.loads(content) if opcode == OPCODE_TEXT else None
    except orjson.JSONDecodeError as error:
        raise ContractError(f"reply: {expected} expected, got no JSON: {error}") from None
    if type(reply) is not dict:
        raise ContractError(f"reply: {expected} expected, got {short(content)}")
    kind = reply.get("type")
    if kind == "error":
        raise _RefusedError(str(reply.get("message")))
    if kind != expected:
        raise ContractError(f"reply: type {expected!r} expected, got {short(kind)}")
    return reply


def check_url(url: str) -> None:
    """Raise if it cannot be a bridge's."""
    if not url.startswith(("ws://", "wss://")):
        raise BridgeError(f"a bridge's address starts with ws:// or wss://, as {DEFAULT_URL}; not {short(url)}")


def _connect(url: str, token: str | None, timeout: float) -> websocket.WebSocket:
    check_url(url)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        return websocket.create_connection(
            url,
            timeout=timeout,
            class_=QuickSocket,
            header=headers,
            skip_utf8_validation=True,
            suppress_origin=True,
            http_no_proxy=["*"],
        )
    except websocket.WebSocketBadStatusException as error:
        raise BridgeError(f"{url} refused the connection: {_reason(error)}") from None
    except websocket.WebSocketTimeoutException:
        raise BridgeError(f"cannot connect to {url} within {timeout:g} s: is the bridge there?") from None
    except (websocket.WebSocketException, OSError, ValueError) as error:
        raise BridgeError(
            f"cannot connect to {url}: is the bridge running? Start it with: racer-viewer bridge ({error})"
        ) from None


def _reason(error: websocket.WebSocketBadStatusException) -> str:
    body = error.resp_body
    text = body.decode(errors="replace").strip() if isinstance(body, bytes) else ""
    return text[:300] if text else f"HTTP status {error.status_code}"


def _farewell(close_frame: bytes) -> str:
    """What a close frame says: a code in two bytes, and maybe why."""
    code = int.from_bytes(close_frame[:2], "big") if len(close_frame) >= 2 else 1005
    reason = close_frame[2:].decode(errors="replace")
    return f"the server closed it with code {code}" + (f", {reason}" if reason else "")
