"""A connection to a bridge server, seen from the client: requests and replies, one for one.

After a time-out, a lost connection or a broken contract it is closed: nothing is tried again behind the caller's back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import orjson
import websocket

from racer_env.bridge.batch_format import decode_result
from racer_env.bridge.contract import short
from racer_env.bridge.interface import BatchStep
from racer_env.bridge.quick_socket import QuickSocket
from racer_env.errors import BridgeError, ContractError

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
