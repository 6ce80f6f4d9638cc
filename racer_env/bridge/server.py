"""The bridge server: who is let in, and how it begins and ends. See `connection` for what it does for a client."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from types import FrameType
from typing import Protocol

from picows import (
    WSCloseCode,
    WSListener,
    WSUpgradeRequest,
    WSUpgradeResponse,
    WSUpgradeResponseWithListener,
    ws_create_server,
)

from racer_env.bridge.access import Access
from racer_env.bridge.connection import Connection, log, log_line
from racer_env.bridge.interface import DEFAULT_TRACK
from racer_env.bridge.session import Limits
from racer_env.bridge.tracks import TrackBuilder, TrackShelf
from racer_env.errors import BridgeError, RacerError

BACKLOG = 512
"""Connections that may wait to be accepted."""
RECEIVE_BUFFER = 16 * 1024
"""Bytes that a client may send ahead of what is read, more or less: the operating system has its own idea of it."""
HANDSHAKE_SECONDS = 5.0
FAREWELL_SECONDS = 0.4
"""How long clients have to answer a close frame when the server ends."""
SWITCH_INTERVAL = 0.0005
"""Seconds for which building a track may hold up the connections, at a time."""


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
        self._limits = limits or Limits()
        self._access = Access(address.host, token)
        self._tracks = TrackShelf()
        self._connections: set[Connection] = set()
        self._stopped = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: socket.socket | None = None

    def listen(self) -> None:
        """Take the port. Whoever connects from now on waits for `serve`."""
        self._listener = listen_on(self.address)
        self.address = Address(self.address.host, self._listener.getsockname()[1])

    async def serve(self, started: Callable[[Address], None] = lambda address: None) -> None:
        """Listen, say so, and return when `stop` was called and everyone was told."""
        if self._listener is None:
            self.listen()
        self._loop = asyncio.get_running_loop()
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._builder = TrackBuilder(self._tracks)
        self._builder.order(DEFAULT_TRACK)  # most clients want it first: have it before they ask
        server = await ws_create_server(
            self._admit,
            sock=self._listener,
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

    def stop(self) -> None:
        """End `serve`, also before it has begun; from any thread, and from a signal handler."""
        if self._loop is None:
            self._stopped.set()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopped.set)

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


LoopFactory = Callable[[], asyncio.AbstractEventLoop]


class Server(Protocol):
    """What serves until it is stopped."""

    async def serve(self, started: Callable[[Address], None]) -> None: ...

    def stop(self) -> None: ...


def run_server(server: Server, started: Callable[[Address], None], make_loop: LoopFactory | None = None) -> None:
    """Serve until SIGINT or SIGTERM. Terminals and wrappers like to send several of them: the process that was told to
    end by the first ignores the others."""

    def stop(number: int, frame: FrameType | None) -> None:
        server.stop()

    handlers = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with asyncio.Runner(loop_factory=make_loop) as runner:
            runner.run(server.serve(started))
        handlers = dict.fromkeys(handlers, signal.SIG_IGN)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def free_port(address: Address) -> int:
    """A port that nobody listens on: if possible, one of the next."""
    for port in (*range(address.port + 1, min(address.port + 100, 65536)), 0):
        try:
            with listen_on(Address(address.host, port)) as listener:
                found: int = listener.getsockname()[1]
                return found
        except BridgeError:
            continue
    return 0


def listen_on(address: Address) -> socket.socket:
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTakenError(f"port {address.port} on {address.host} is taken") from None
        raise BridgeError(f"cannot listen on {address}: {error.strerror or error}") from None
    except OverflowError:
        raise BridgeError(f"a port is a number from 0 to 65535, not {address.port}") from None
    except UnicodeError:
        raise BridgeError(f"cannot listen on {address}: no host can have such a name") from None
    for option, value in ((socket.SO_RCVBUF, RECEIVE_BUFFER), (socket.SO_KEEPALIVE, 1)):
        listener.setsockopt(socket.SOL_SOCKET, option, value)  # connections inherit them
    return listener


class PortTakenError(BridgeError):
    """Somebody else listens there."""


def uvloop_factory() -> LoopFactory:
    """What makes loops of uvloop, where it is installed."""
    try:
        import uvloop as fast
    except ImportError:
        raise RacerError(
            "uvloop is not installed: pip install uvloop (not on Windows), or leave --uvloop out"
        ) from None
    return fast.new_event_loop
