"""The bridge server: accepts WebSocket connections and answers their messages, one session per connection."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from http import HTTPStatus
from typing import Any

import orjson
from picows import (
    WSCloseCode,
    WSFrame,
    WSListener,
    WSMsgType,
    WSTransport,
    WSUpgradeRequest,
    WSUpgradeResponse,
    WSUpgradeResponseWithListener,
)

from racer_env.bridge.acceptor import Acceptor, limit_connections
from racer_env.bridge.batch_format import MAGIC
from racer_env.bridge.interface import DEFAULT_TRACK
from racer_env.bridge.net import SWITCH_INTERVAL, AccessPolicy, LatencyHistogram, Server, ServerAddress
from racer_env.bridge.session import ServerLimits, Session
from racer_env.bridge.track_cache import TrackBuilder, TrackCache, TrackNotBuiltError
from racer_env.engine import Circuit, Track
from racer_env.errors import RacerError

log = logging.getLogger("racer_env.bridge")

MAX_UNREAD_REPLIES = 256 * 1024
"""Size of unread replies [bytes] after which the server stops reading from a client."""
SHUTDOWN_TIMEOUT = 0.4
"""Time that clients have to answer a close frame when the server stops [s]."""
LOG_WINDOW, MAX_REFUSALS_LOGGED = 60.0, 100
"""Length of a log window [s], and the maximum number of refused connections that the log has in one."""
WEBSOCKET_VERSION = "13"
"""Version of RFC 6455, the only one that was ever in use."""
INTERNAL_ERROR = "internal error: the bridge's log has the details"

_DATA = frozenset((WSMsgType.TEXT, WSMsgType.BINARY))
_SUBPROTOCOL = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class BridgeServer(Server):
    """Serves bridge sessions until `stop` is called.

    origins: origins of web pages that may connect, as `http://localhost:3000`.
    strict: refuse configs with unknown keys, which are otherwise ignored with a warning in the log.
    own: circuits of the owner by id, which clients may list and use beside the bundled and random ones.
    """

    def __init__(
        self,
        address: ServerAddress,
        token: str | None = None,
        limits: ServerLimits | None = None,
        origins: Collection[str] = (),
        strict: bool = False,
        own: Mapping[str, Circuit] | None = None,
    ) -> None:
        super().__init__(address)
        limits = limits or ServerLimits()
        self._limits = replace(limits, connections=limit_connections(limits.connections))
        if self._limits.connections < limits.connections:
            log.warning(log_line("fewer connections", limit=self._limits.connections, reason="limit of open files"))
        self._access = AccessPolicy(address.host, token, origins)
        self._strict = strict
        self._tracks = TrackCache(own)
        self._connections: set[ServerConnection] = set()
        self._log_window_end, self._refusals = 0.0, 0

    async def _serve(self, listener: socket.socket, started: Callable[[ServerAddress], None]) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._builder = TrackBuilder(self._tracks)
        self._builder.submit(DEFAULT_TRACK)  # most clients need it first
        acceptor = Acceptor(listener, self._admit, self._limits.frame_bytes, self._log_refusal)
        accepting = asyncio.create_task(acceptor.accept())
        idle_check = asyncio.create_task(self._close_idle_connections())
        try:
            started(self.address)
            await self._stopped.wait()
        finally:
            idle_check.cancel()
            accepting.cancel()
            await self._close_connections()
            self._builder.close()

    def _admit(self, request: WSUpgradeRequest) -> WSUpgradeResponseWithListener:
        """Accept or refuse a connection. As existing servers do, accept the first subprotocol that is offered."""
        refusal = self._access.refusal(request.path.decode("latin-1"), request.headers)
        headers = None
        if refusal is None and request.headers.getall("Sec-WebSocket-Version", [""]) != [WEBSOCKET_VERSION]:
            refusal = HTTPStatus.UPGRADE_REQUIRED, f"the bridge needs WebSocket version {WEBSOCKET_VERSION}"
            headers = {"Upgrade": "websocket", "Sec-WebSocket-Version": WEBSOCKET_VERSION}
        if refusal is None and len(self._connections) >= self._limits.connections:
            refusal = (
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{self._limits.connections} clients are connected, which is the limit",
            )
        if refusal is None:
            connection = ServerConnection(self._tracks, self._builder, self._limits, self._connections, self._strict)
            offered = _SUBPROTOCOL.match(request.headers.get("Sec-WebSocket-Protocol", ""))
            subprotocol = {"Sec-WebSocket-Protocol": offered.group()} if offered else None
            return WSUpgradeResponseWithListener(WSUpgradeResponse.create_101_response(subprotocol), connection)
        status, reason = refusal
        self._log_refusal(reason, status)
        response = WSUpgradeResponse.create_error_response(status, reason.encode(), headers)
        return WSUpgradeResponseWithListener(response, None)

    def _log_refusal(self, reason: str, status: HTTPStatus | None = None) -> None:
        """Log a refused connection; beyond a number per minute only how many more there were."""
        now = time.monotonic()
        if now >= self._log_window_end:
            if self._refusals > MAX_REFUSALS_LOGGED:
                log.warning(log_line("refused more", number=self._refusals - MAX_REFUSALS_LOGGED))
            self._log_window_end, self._refusals = now + LOG_WINDOW, 0
        self._refusals += 1
        if self._refusals <= MAX_REFUSALS_LOGGED:
            values = {"reason": reason} if status is None else {"status": status.value, "reason": reason}
            log.warning(log_line("refused", **values))

    async def _close_idle_connections(self) -> None:
        """Close connections that are silent for too long, and drop those that do not answer a close frame."""
        closing: set[ServerConnection] = set()
        while True:
            await asyncio.sleep(min(1.0, self._limits.idle_seconds / 4.0))
            for connection in closing & self._connections:
                connection.drop()
            for connection in list(self._connections):
                if connection.silent_seconds > self._limits.idle_seconds:
                    connection.end(WSCloseCode.GOING_AWAY, f"silent for {self._limits.idle_seconds:g} s")
            closing = {connection for connection in self._connections if connection.is_closing}

    async def _close_connections(self) -> None:
        for connection in list(self._connections):
            connection.end(WSCloseCode.GOING_AWAY, "the bridge is shutting down")
        await self._wait_for_disconnects()
        for connection in list(self._connections):
            connection.drop()
        await self._wait_for_disconnects()

    async def _wait_for_disconnects(self) -> None:
        assert self._loop is not None
        deadline = self._loop.time() + SHUTDOWN_TIMEOUT
        while self._connections and self._loop.time() < deadline:
            await asyncio.sleep(0.01)


class ServerConnection(WSListener):
    """Connection of one client.

    Messages are answered in order, one per turn of the event loop, so that a client that sends many at once does not
    delay the others. Messages may have to wait for their turn, for a track, or until the client reads its replies.
    Nothing more is read meanwhile, so only a few of them queue up.
    """

    def __init__(
        self,
        tracks: TrackCache,
        builder: TrackBuilder,
        limits: ServerLimits,
        connections: set[ServerConnection],
        strict: bool,
    ) -> None:
        super().__init__()
        self._builder = builder
        self._limits = limits
        self._connections = connections
        self._session = Session(tracks, limits, strict, self._warn)
        self._latencies = LatencyHistogram()
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[WSMsgType, bytes]] = deque()
        self._turn_is_due = False
        self._building: asyncio.Future[Track] | None = None
        self._built: list[Track] = []
        self._replies_unread = False
        self._parts: bytearray | None = None
        self._parts_kind = WSMsgType.TEXT
        self._connected_at = self._last_received = time.monotonic()

    @property
    def silent_seconds(self) -> float:
        """Time since the last message [s]; 0 while the client waits for a track."""
        return 0.0 if self._building else time.monotonic() - self._last_received

    @property
    def is_closing(self) -> bool:
        return self._transport.is_close_frame_sent or bool(self._socket.is_closing())

    def on_ws_connected(self, transport: WSTransport) -> None:
        self._transport = transport
        self._socket = transport.underlying_transport
        self._socket.set_write_buffer_limits(high=MAX_UNREAD_REPLIES)
        peer = self._socket.get_extra_info("peername")  # None if it has disconnected already
        self._host = str(peer[0]) if peer else "unknown"
        self._peer = f"{self._host}:{peer[1]}" if peer else "unknown"
        self._connections.add(self)
        log.debug(log_line("connected", peer=self._peer))

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        self._connections.discard(self)
        self._waiting.clear()
        if self._building is not None:
            self._building.cancel()
        counts = asdict(self._session.counts)
        self._session.close()
        seconds = round(time.monotonic() - self._connected_at, 3)
        why = _close_reason(transport)
        log.info(log_line("closed", peer=self._peer, why=why, seconds=seconds, **counts, **self._latencies.summary()))

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        kind = frame.msg_type
        if transport.is_close_frame_sent:
            if kind == WSMsgType.CLOSE:
                transport.disconnect()
            return
        self._last_received = time.monotonic()
        if frame.rsv1 or frame.rsv2 or frame.rsv3:
            self.end(WSCloseCode.PROTOCOL_ERROR, "reserved bits are set, but no extension was agreed")
        elif kind == WSMsgType.CONTINUATION or not frame.fin or (self._parts is not None and kind in _DATA):
            self._assemble(kind, frame.get_payload_as_bytes(), frame.fin, frame.last_in_buffer)
        else:
            self._receive(kind, frame.get_payload_as_bytes(), frame.last_in_buffer)

    def pause_writing(self) -> None:
        self._replies_unread = True
        self._socket.pause_reading()

    def resume_writing(self) -> None:
        self._replies_unread = False
        self._yield_turn()

    def end(self, code: WSCloseCode, why: str) -> None:
        """Send a close frame; the connection closes when the client answers it."""
        if not self.is_closing:
            self._transport.send_close(code, why.encode())
            self._waiting.clear()
            self._socket.resume_reading()

    def drop(self) -> None:
        """Close without a handshake."""
        self._transport.disconnect(False)

    def _assemble(self, kind: WSMsgType, part: bytes, is_last: bool, is_last_in_buffer: bool) -> None:
        """Collect the frames of a fragmented message."""
        if (kind == WSMsgType.CONTINUATION) != (self._parts is not None):
            self.end(WSCloseCode.PROTOCOL_ERROR, "frames of a message out of order")
            return
        if self._parts is None:
            self._parts, self._parts_kind = bytearray(), kind
        self._parts += part
        if len(self._parts) > self._limits.frame_bytes:
            self.end(WSCloseCode.MESSAGE_TOO_BIG, f"a message must have at most {self._limits.frame_bytes} bytes")
        elif is_last:
            message, self._parts = bytes(self._parts), None
            self._receive(self._parts_kind, message, is_last_in_buffer)
        else:
            self._yield_turn()

    def _receive(self, kind: WSMsgType, message: bytes, is_last_in_buffer: bool) -> None:
        """Answer a message at once if it is the only one, else queue it."""
        may_answer = self._building is None or kind not in _DATA
        if is_last_in_buffer and may_answer and not self._waiting and not self._replies_unread:
            self._answer(kind, message)
        else:
            self._waiting.append((kind, message))
            self._yield_turn()

    def _yield_turn(self) -> None:
        """Read and answer nothing more in this turn of the event loop."""
        self._socket.pause_reading()
        if not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Answer the next queued message, or resume reading if there is none."""
        self._turn_is_due = False
        if self._replies_unread:
            return
        if not self._waiting:
            self._socket.resume_reading()
        elif self._building is None:
            self._answer(*self._waiting.popleft())
            self._yield_turn()

    def _answer(self, kind: WSMsgType, message: bytes) -> None:
        if kind in _DATA:
            self._reply_to(kind, message)
        elif kind == WSMsgType.PING:
            self._transport.send_pong(message)
        elif kind == WSMsgType.CLOSE:
            received = self._transport.close_handshake.recv
            self._transport.send_close((received and received.code) or WSCloseCode.OK)
            self._transport.disconnect()

    def _reply_to(self, kind: WSMsgType, message: bytes) -> None:
        begin = time.perf_counter_ns()
        try:
            text = kind == WSMsgType.TEXT
            reply = self._session.answer_text(message) if text else self._session.answer_binary(message)
        except TrackNotBuiltError as missing:
            self._build(missing.names[0], kind, message)
            return
        except RecursionError:
            reply = self._session.refusal("the message is nested too deeply")
        except Exception:
            log.exception(log_line("internal error", peer=self._peer, message=repr(message[:200])))
            reply = self._session.refusal(INTERNAL_ERROR)
        self._send(message, reply)
        self._latencies.add(time.perf_counter_ns() - begin)

    def _warn(self, problem: str) -> None:
        log.warning(log_line("config key ignored", peer=self._peer, problem=problem))

    def _send(self, message: bytes, reply: bytes) -> None:
        self._transport.send(WSMsgType.BINARY if reply.startswith(MAGIC) else WSMsgType.TEXT, reply)
        self._built.clear()
        if log.isEnabledFor(logging.DEBUG):
            log.debug(log_line("message", peer=self._peer, request=_excerpt(message), reply=_excerpt(reply)))

    def _build(self, name: str, kind: WSMsgType, message: bytes) -> None:
        """Build a track, then answer the message again. One track at a time, so that other clients get their turn."""

        def on_built(job: asyncio.Future[Track]) -> None:
            self._building = None
            if job.cancelled():
                return
            self._last_received = time.monotonic()
            problem = job.exception()
            if problem is None:
                self._built.append(job.result())
                self._reply_to(kind, message)
            else:
                self._send(message, self._session.refusal(_error_message(problem)))
            self._yield_turn()

        self._building = asyncio.wrap_future(self._builder.submit(name, self._host))
        self._building.add_done_callback(on_built)


def _error_message(error: BaseException) -> str:
    """Return the message of a RacerError; log any other error and return a general message."""
    if isinstance(error, RacerError):
        return str(error)
    log.error(log_line("internal error"), exc_info=error)
    return INTERNAL_ERROR


def _close_reason(transport: WSTransport) -> str:
    """Return why a connection was closed, for the log."""
    handshake = transport.close_handshake
    if handshake is None:
        return "connection lost"
    if handshake.sent is None or handshake.recv_then_sent:
        return "client closed"
    return handshake.sent.reason


def log_line(event: str, **values: Any) -> str:
    """Return a log line as JSON."""
    return orjson.dumps({"event": event, **values}, option=orjson.OPT_NON_STR_KEYS).decode()


def _excerpt(message: bytes) -> str:
    if message.startswith(MAGIC):
        return f"binary, {len(message)} bytes"
    return message[:500].decode(errors="replace")
