"""The bridge server: WebSocket connections, each with an environment of its own (see `session`)."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from http import HTTPStatus
from types import FrameType
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

from racer_env.bridge.access import Access
from racer_env.bridge.latency import Latencies
from racer_env.bridge.session import Limits, Session
from racer_env.bridge.tracks import TrackNotBuiltError, TrackShelf
from racer_env.engine import circuits
from racer_env.errors import BridgeError, RacerError

log = logging.getLogger("racer_env.bridge")

HANDSHAKE_SECONDS = 5.0
FAREWELL_SECONDS = 0.5
"""How long clients have to answer a close frame when the server ends."""
SWITCH_INTERVAL = 0.0005
"""Seconds for which building a track may hold up the connections, at a time."""
WATERMARK = 256 * 1024
"""Bytes of unread replies after which nothing more is read from a client until it reads."""


@dataclass(frozen=True)
class Address:
    host: str = "127.0.0.1"
    port: int = 9876

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class BridgeServer:
    """Serves bridges until it is told to stop."""

    def __init__(self, address: Address, token: str | None = None, limits: Limits | None = None) -> None:
        self.address = address
        self.limits = limits or Limits()
        self._access = Access(address.host, token)
        self.tracks = TrackShelf()
        self.connections: set[Connection] = set()
        self._builder = ThreadPoolExecutor(1, "racer-tracks")
        self._stop: asyncio.Event | None = None

    async def serve(self, started: Callable[[Address], None] = lambda address: None) -> None:
        """Listen, say so, and return when `stop` was called and everyone was told."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        sys.setswitchinterval(SWITCH_INTERVAL)
        server = await ws_create_server(
            self._admit,
            sock=_listen(self.address),
            websocket_handshake_timeout=HANDSHAKE_SECONDS,
            max_frame_size=self.limits.frame_bytes,
        )
        self.address = Address(self.address.host, server.sockets[0].getsockname()[1])
        watch = asyncio.create_task(self._close_idle())
        self._builder.submit(self._build_bundled)
        try:
            started(self.address)
            await self._stop.wait()
        finally:
            watch.cancel()
            server.close()
            await self._farewell()
            self._builder.shutdown(wait=False, cancel_futures=True)

    def stop(self) -> None:
        """End `serve`; from any thread, and from a signal handler."""
        if self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)

    def build(self, names: tuple[str, ...], done: Callable[[Future[Any]], None]) -> None:
        """Build tracks beside the loop and call back within it."""
        job = self._builder.submit(self.tracks.build, names)
        job.add_done_callback(lambda job: self._loop.call_soon_threadsafe(done, job))

    def _build_bundled(self) -> None:
        """Most clients want one of these: have them before they ask."""
        for circuit in circuits():
            self.tracks.hold(circuit.id)

    def _admit(self, request: WSUpgradeRequest) -> WSListener | WSUpgradeResponseWithListener:
        refusal = self._access.refusal(request.path.decode("latin-1"), request.headers)
        if refusal is None and len(self.connections) >= self.limits.connections:
            refusal = (
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{self.limits.connections} clients are connected, which is the limit",
            )
        if refusal is None:
            return Connection(self)
        status, reason = refusal
        log.warning(_line("refused", status=status.value, reason=reason))
        response = WSUpgradeResponse.create_error_response(status, reason.encode())
        return WSUpgradeResponseWithListener(response, None)

    async def _close_idle(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self.limits.idle_seconds / 4.0))
            latest = time.monotonic() - self.limits.idle_seconds
            for connection in list(self.connections):
                if connection.last_heard < latest:
                    connection.end(WSCloseCode.GOING_AWAY, f"silent for {self.limits.idle_seconds:g} s")

    async def _farewell(self) -> None:
        for connection in list(self.connections):
            connection.end(WSCloseCode.GOING_AWAY, "the bridge is shutting down")
        patience = self._loop.time() + FAREWELL_SECONDS
        while self.connections and self._loop.time() < patience:
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.drop()


class Connection(WSListener):
    """One client. Messages are answered in their order; while a track is built for one, the next ones wait."""

    def __init__(self, server: BridgeServer) -> None:
        super().__init__()
        self._server = server
        self._session = Session(server.tracks, server.limits)
        self._latencies = Latencies()
        self._waiting: deque[tuple[WSMsgType, bytes]] = deque()
        self._building = False
        self._fragments: list[bytes] = []
        self._fragments_kind = WSMsgType.TEXT
        self._connected_at = self.last_heard = time.monotonic()
        self._ending = "connection lost"

    def on_ws_connected(self, transport: WSTransport) -> None:
        self._transport = transport
        self._socket = transport.underlying_transport
        self._socket.set_write_buffer_limits(high=WATERMARK)
        self._socket.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._peer = "{}:{}".format(*self._socket.get_extra_info("peername")[:2])
        self._server.connections.add(self)
        log.debug(_line("connected", peer=self._peer))

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        self._server.connections.discard(self)
        seconds = round(time.monotonic() - self._connected_at, 3)
        counts = asdict(self._session.counts)
        log.info(
            _line("closed", peer=self._peer, why=self._ending, seconds=seconds, **counts, **self._latencies.summary())
        )

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        self.last_heard = time.monotonic()
        kind = frame.msg_type
        if kind == WSMsgType.CLOSE:
            self._ending = "client closed"
            transport.send_close(frame.get_close_code() or WSCloseCode.OK)
            transport.disconnect()
        elif kind in (WSMsgType.TEXT, WSMsgType.BINARY, WSMsgType.CONTINUATION):
            message = frame.get_payload_as_bytes()
            if frame.fin and not self._fragments and kind != WSMsgType.CONTINUATION:
                self._receive(kind, message)
            else:
                self._assemble(kind, message, frame.fin)

    def pause_writing(self) -> None:
        self._socket.pause_reading()

    def resume_writing(self) -> None:
        if not self._building:
            self._socket.resume_reading()

    def end(self, code: WSCloseCode, why: str) -> None:
        """Send a close frame and close as soon as it is answered or sent."""
        self._ending = why
        self._transport.send_close(code, why.encode())
        self._transport.disconnect()

    def drop(self) -> None:
        self._transport.disconnect(False)

    def _assemble(self, kind: WSMsgType, part: bytes, last: bool) -> None:
        """A message in several frames."""
        if (kind == WSMsgType.CONTINUATION) != bool(self._fragments):
            self.end(WSCloseCode.PROTOCOL_ERROR, "frames of a message out of order")
            return
        if not self._fragments:
            self._fragments_kind = kind
        self._fragments.append(part)
        if sum(map(len, self._fragments)) + len(self._fragments) > self._server.limits.frame_bytes:
            self.end(WSCloseCode.MESSAGE_TOO_BIG, f"a message may have {self._server.limits.frame_bytes} bytes")
            self._fragments = []
        elif last:
            message, self._fragments = b"".join(self._fragments), []
            self._receive(self._fragments_kind, message)

    def _receive(self, kind: WSMsgType, message: bytes) -> None:
        if self._building:
            self._waiting.append((kind, message))
        elif not self._transport.is_close_frame_sent:
            self._reply_to(kind, message)

    def _reply_to(self, kind: WSMsgType, message: bytes) -> None:
        begin = time.perf_counter_ns()
        try:
            text = kind == WSMsgType.TEXT
            reply = self._session.answer_text(message) if text else self._session.answer_binary(message)
        except TrackNotBuiltError as missing:
            self._build(missing.names, kind, message)
            return
        except Exception:
            log.exception(_line("internal error", peer=self._peer, message=repr(message[:200])))
            reply = self._session.refusal("internal error: the bridge's log has the details")
        self._transport.send(WSMsgType.BINARY if reply.startswith(b"RCRB") else WSMsgType.TEXT, reply)
        self._latencies.add(time.perf_counter_ns() - begin)
        if log.isEnabledFor(logging.DEBUG):
            log.debug(_line("message", peer=self._peer, request=_excerpt(message), reply=_excerpt(reply)))

    def _build(self, names: tuple[str, ...], kind: WSMsgType, message: bytes) -> None:
        """Have tracks built, then answer this message and those that came meanwhile."""
        self._building = True
        self._socket.pause_reading()

        def built(job: Future[Any]) -> None:
            self._building = False
            if self not in self._server.connections:
                return
            if job.exception() is None:
                self._reply_to(kind, message)
            else:
                self._transport.send(WSMsgType.TEXT, self._session.refusal(_problem(job.exception())))
            while self._waiting and not self._building:
                self._receive(*self._waiting.popleft())
            if not self._building:
                self._socket.resume_reading()

        self._server.build(names, built)


def run_server(server: BridgeServer, started: Callable[[Address], None], uvloop: bool = False) -> None:
    """Serve until SIGINT or SIGTERM."""

    def stop(number: int, frame: FrameType | None) -> None:
        server.stop()

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with asyncio.Runner(loop_factory=_loop_factory(uvloop)) as runner:
            runner.run(server.serve(started))
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def free_port(address: Address) -> int | None:
    """The next port after this one that nobody listens on."""
    for port in range(address.port + 1, min(address.port + 100, 65536)):
        try:
            _listen(Address(address.host, port)).close()
        except BridgeError:
            continue
        return port
    return None


def _listen(address: Address) -> socket.socket:
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((address.host, address.port), family=family, backlog=512)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTakenError(f"port {address.port} on {address.host} is taken") from None
        raise BridgeError(f"cannot listen on {address}: {error.strerror or error}") from None
    except OverflowError:
        raise BridgeError(f"a port is a number from 0 to 65535, not {address.port}") from None


class PortTakenError(BridgeError):
    """Somebody else listens there."""


def _loop_factory(uvloop: bool) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if not uvloop:
        return None
    try:
        import uvloop as fast
    except ImportError:
        raise RacerError(
            "uvloop is not installed: pip install uvloop (not on Windows), or leave --uvloop out"
        ) from None
    return fast.new_event_loop


def _problem(error: BaseException | None) -> str:
    if isinstance(error, RacerError):
        return str(error)
    log.error(_line("internal error"), exc_info=error)
    return "internal error: the bridge's log has the details"


def _line(event: str, **values: Any) -> str:
    """A log line that programs can read too."""
    return orjson.dumps({"event": event, **values}, option=orjson.OPT_NON_STR_KEYS).decode()


def _excerpt(message: bytes) -> str:
    if message.startswith(b"RCRB"):
        return f"binary, {len(message)} bytes"
    return message[:500].decode(errors="replace")
