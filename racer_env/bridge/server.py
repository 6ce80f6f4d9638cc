"""One client of the bridge server: frames in, replies out, nobody else kept waiting.

The bridge server: who is let in, and who must go. See `connection` for what it does for a client."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
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
    ws_create_server,
)

from racer_env.bridge.batch_format import MAGIC
from racer_env.bridge.interface import DEFAULT_TRACK
from racer_env.bridge.net import BACKLOG, SWITCH_INTERVAL, Access, Address, Latencies, Server
from racer_env.bridge.session import Limits, Session
from racer_env.bridge.track_cache import TrackBuilder, TrackNotBuiltError, TrackShelf
from racer_env.engine import Track
from racer_env.errors import RacerError

log = logging.getLogger("racer_env.bridge")

WATERMARK = 256 * 1024
"""Bytes of unread replies after which nothing more is read from a client until it reads."""
INTERNAL_ERROR = "internal error: the bridge's log has the details"

_DATA = frozenset((WSMsgType.TEXT, WSMsgType.BINARY))


class Connection(WSListener):
    """One client.

    Its messages are answered in their order, one in each turn of the loop, so that a client who sends many at once
    delays nobody else. Those that must wait, for their turn, for a track, or because the client does not read its
    replies, are few: nothing more is read until they are answered.
    """

    def __init__(self, tracks: TrackShelf, builder: TrackBuilder, limits: Limits, connected: set[Connection]) -> None:
        super().__init__()
        self._builder = builder
        self._limits = limits
        self._connected = connected
        self._session = Session(tracks, limits)
        self._latencies = Latencies()
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[WSMsgType, bytes]] = deque()
        self._turn_is_due = False
        self._building: asyncio.Future[Track] | None = None
        self._built: list[Track] = []
        self._replies_unread = False
        self._parts: bytearray | None = None
        self._parts_kind = WSMsgType.TEXT
        self._connected_at = self._last_heard = time.monotonic()

    @property
    def silent_seconds(self) -> float:
        """How long nothing came from a client who does not wait for us."""
        return 0.0 if self._building else time.monotonic() - self._last_heard

    @property
    def is_closing(self) -> bool:
        return self._transport.is_close_frame_sent or bool(self._socket.is_closing())

    def on_ws_connected(self, transport: WSTransport) -> None:
        self._transport = transport
        self._socket = transport.underlying_transport
        self._socket.set_write_buffer_limits(high=WATERMARK)
        peer = self._socket.get_extra_info("peername")  # None if it is gone already
        self._peer = "{}:{}".format(*peer[:2]) if peer else "unknown"
        self._connected.add(self)
        log.debug(log_line("connected", peer=self._peer))

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        self._connected.discard(self)
        self._waiting.clear()
        if self._building is not None:
            self._building.cancel()
        counts = asdict(self._session.counts)
        self._session.close()
        seconds = round(time.monotonic() - self._connected_at, 3)
        why = _ending(transport)
        log.info(log_line("closed", peer=self._peer, why=why, seconds=seconds, **counts, **self._latencies.summary()))

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        kind = frame.msg_type
        if transport.is_close_frame_sent:
            if kind == WSMsgType.CLOSE:
                transport.disconnect()
            return
        self._last_heard = time.monotonic()
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
        self._let_others_go_first()

    def end(self, code: WSCloseCode, why: str) -> None:
        """Send a close frame, and close when the client has answered it."""
        if not self.is_closing:
            self._transport.send_close(code, why.encode())
            self._waiting.clear()
            self._socket.resume_reading()

    def drop(self) -> None:
        self._transport.disconnect(False)

    def _assemble(self, kind: WSMsgType, part: bytes, is_last: bool, is_alone: bool) -> None:
        """Put a message together that comes in several frames."""
        if (kind == WSMsgType.CONTINUATION) != (self._parts is not None):
            self.end(WSCloseCode.PROTOCOL_ERROR, "frames of a message out of order")
            return
        if self._parts is None:
            self._parts, self._parts_kind = bytearray(), kind
        self._parts += part
        if len(self._parts) > self._limits.frame_bytes:
            self.end(WSCloseCode.MESSAGE_TOO_BIG, f"a message may have {self._limits.frame_bytes} bytes")
        elif is_last:
            message, self._parts = bytes(self._parts), None
            self._receive(self._parts_kind, message, is_alone)
        else:
            self._let_others_go_first()

    def _receive(self, kind: WSMsgType, message: bytes, is_alone: bool) -> None:
        """Answer at once if nobody can be kept waiting by that, else later."""
        may_answer = self._building is None or kind not in _DATA
        if is_alone and may_answer and not self._waiting and not self._replies_unread:
            self._answer(kind, message)
        else:
            self._waiting.append((kind, message))
            self._let_others_go_first()

    def _let_others_go_first(self) -> None:
        """Read and answer nothing more in this turn of the loop."""
        self._socket.pause_reading()
        if not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Read on if nothing waits, else answer the next message, unless something other must happen first."""
        self._turn_is_due = False
        if self._replies_unread:
            return
        if not self._waiting:
            self._socket.resume_reading()
        elif self._building is None:
            self._answer(*self._waiting.popleft())
            self._let_others_go_first()

    def _answer(self, kind: WSMsgType, message: bytes) -> None:
        if kind in _DATA:
            self._reply_to(kind, message)
        elif kind == WSMsgType.PING:
            self._transport.send_pong(message)
        elif kind == WSMsgType.CLOSE:
            goodbye = self._transport.close_handshake.recv
            self._transport.send_close((goodbye and goodbye.code) or WSCloseCode.OK)
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
            reply = self._session.refusal("a message may not be nested so deeply")
        except Exception:
            log.exception(log_line("internal error", peer=self._peer, message=repr(message[:200])))
            reply = self._session.refusal(INTERNAL_ERROR)
        self._send(message, reply)
        self._latencies.add(time.perf_counter_ns() - begin)

    def _send(self, message: bytes, reply: bytes) -> None:
        self._transport.send(WSMsgType.BINARY if reply.startswith(MAGIC) else WSMsgType.TEXT, reply)
        self._built.clear()
        if log.isEnabledFor(logging.DEBUG):
            log.debug(log_line("message", peer=self._peer, request=_excerpt(message), reply=_excerpt(reply)))

    def _build(self, name: str, kind: WSMsgType, message: bytes) -> None:
        """Have a track built, then try again to answer the message. One at a time: others order some, too."""

        def built(order: asyncio.Future[Track]) -> None:
            self._building = None
            if order.cancelled():
                return
            self._last_heard = time.monotonic()
            problem = order.exception()
            if problem is None:
                self._built.append(order.result())
                self._reply_to(kind, message)
            else:
                self._send(message, self._session.refusal(_what_to_say(problem)))
            self._let_others_go_first()

        self._building = asyncio.wrap_future(self._builder.order(name))
        self._building.add_done_callback(built)


def _what_to_say(error: BaseException) -> str:
    if isinstance(error, RacerError):
        return str(error)
    log.error(log_line("internal error"), exc_info=error)
    return INTERNAL_ERROR


def _ending(transport: WSTransport) -> str:
    """Why a connection ended, for the log."""
    goodbyes = transport.close_handshake
    if goodbyes is None:
        return "connection lost"
    if goodbyes.sent is None or goodbyes.recv_then_sent:
        return "client closed"
    return goodbyes.sent.reason


def log_line(event: str, **values: Any) -> str:
    """A log line that programs can read too."""
    return orjson.dumps({"event": event, **values}, option=orjson.OPT_NON_STR_KEYS).decode()


def _excerpt(message: bytes) -> str:
    if message.startswith(MAGIC):
        return f"binary, {len(message)} bytes"
    return message[:500].decode(errors="replace")


HANDSHAKE_SECONDS = 5.0
FAREWELL_SECONDS = 0.4
"""How long clients have to answer a close frame when the server ends."""


class BridgeServer(Server):
    """Serves bridges until it is told to stop."""

    def __init__(self, address: Address, token: str | None = None, limits: Limits | None = None) -> None:
        super().__init__(address)
        self._limits = limits or Limits()
        self._access = Access(address.host, token)
        self._tracks = TrackShelf()
        self._connections: set[Connection] = set()

    async def _serve(self, listener: socket.socket, started: Callable[[Address], None]) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._builder = TrackBuilder(self._tracks)
        self._builder.order(DEFAULT_TRACK)  # most clients want it first: have it before they ask
        server = await ws_create_server(
            self._admit,
            sock=listener,
            backlog=BACKLOG,
            websocket_handshake_timeout=HANDSHAKE_SECONDS,
            enable_auto_pong=False,
            max_frame_size=self._limits.frame_bytes,
        )
        watch = asyncio.create_task(self._watch())
        try:
            started(self.address)
            await self._stopped.wait()
        finally:
            watch.cancel()
            server.close()
            await self._farewell()
            self._builder.close()

    def _admit(self, request: WSUpgradeRequest) -> WSListener | WSUpgradeResponseWithListener:
        refusal = self._access.refusal(request.path.decode("latin-1"), request.headers)
        if refusal is None and len(self._connections) >= self._limits.connections:
            refusal = (
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{self._limits.connections} clients are connected, which is the limit",
            )
        if refusal is None:
            return Connection(self._tracks, self._builder, self._limits, self._connections)
        status, reason = refusal
        log.warning(log_line("refused", status=status.value, reason=reason))
        response = WSUpgradeResponse.create_error_response(status, reason.encode())
        return WSUpgradeResponseWithListener(response, None)

    async def _watch(self) -> None:
        """Close who is silent for too long, and drop who does not take note of a close frame."""
        closing: set[Connection] = set()
        while True:
            await asyncio.sleep(min(1.0, self._limits.idle_seconds / 4.0))
            for connection in closing & self._connections:
                connection.drop()
            for connection in list(self._connections):
                if connection.silent_seconds > self._limits.idle_seconds:
                    connection.end(WSCloseCode.GOING_AWAY, f"silent for {self._limits.idle_seconds:g} s")
            closing = {connection for connection in self._connections if connection.is_closing}

    async def _farewell(self) -> None:
        for connection in list(self._connections):
            connection.end(WSCloseCode.GOING_AWAY, "the bridge is shutting down")
        await self._all_gone()
        for connection in list(self._connections):
            connection.drop()
        await self._all_gone()

    async def _all_gone(self) -> None:
        """Wait until nobody is connected, but not for long."""
        assert self._loop is not None
        patience = self._loop.time() + FAREWELL_SECONDS
        while self._connections and self._loop.time() < patience:
            await asyncio.sleep(0.01)
