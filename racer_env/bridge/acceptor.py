"""Accepts connections and bounds their number: each one counts from `accept` until its socket is closed.

The event loops' own servers accept without a bound. Without free descriptors some of them call `accept` again and
again, at full load, and log every attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable

import aiofastnet
from picows import WSAutoPingStrategy, WSTransport, WSUpgradeRequest, WSUpgradeResponseWithListener
from picows.picows import WSProtocol  # type: ignore[attr-defined]

from racer_env.errors import os_reason

HANDSHAKE_TIMEOUT = 5.0
"""Maximum duration of a WebSocket handshake [s]."""
MAX_HANDSHAKES = 64
"""Maximum number of connections that have not completed their handshake; a new one replaces the oldest."""
RESERVED_DESCRIPTORS = 64
"""File descriptors of the process that connections leave free, for files, pipes and libraries."""
RETRY_DELAY = 0.5
"""Time until the next attempt after a failed `accept` [s]."""
READ_BUFFER_SIZE = 16 * 1024
"""Initial size of a connection's read buffer [bytes]."""

Admit = Callable[[WSUpgradeRequest], WSUpgradeResponseWithListener]

_picows_log = logging.getLogger("picows.server")


class Acceptor:
    """Accepts connections of a listener for picows.

    admit: accepts or refuses an upgrade request.
    frame_bytes: maximum size of a frame.
    on_problem: called with the text of each problem.
    """

    def __init__(
        self, listener: socket.socket, admit: Admit, frame_bytes: int, on_problem: Callable[[str], None]
    ) -> None:
        self._listener = listener
        self._listener.setblocking(False)
        self._admit, self._frame_bytes, self._on_problem = admit, frame_bytes, on_problem
        self._handshakes: dict[BoundedProtocol, None] = {}

    async def accept(self) -> None:
        """Accept connections until cancelled; then close the listener and all unfinished handshakes."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    connection, _ = await loop.sock_accept(self._listener)
                except OSError as error:
                    self._on_problem(f"cannot accept a connection: {os_reason(error)}")
                    self._drop_oldest()
                    await asyncio.sleep(RETRY_DELAY)
                    continue
                if len(self._handshakes) >= MAX_HANDSHAKES:
                    self._on_problem(f"more than {MAX_HANDSHAKES} handshakes at once: the oldest are dropped")
                    self._drop_oldest()
                with contextlib.suppress(OSError):  # it has disconnected already
                    await aiofastnet.connect_accepted_socket(loop, self._make_protocol, connection)
        finally:
            self._listener.close()
            while self._handshakes:
                self._drop_oldest()

    def begin(self, protocol: BoundedProtocol) -> None:
        self._handshakes[protocol] = None

    def end(self, protocol: BoundedProtocol) -> None:
        """Forget a handshake that is complete, or whose connection is closed."""
        self._handshakes.pop(protocol, None)

    def _drop_oldest(self) -> None:
        oldest = next(iter(self._handshakes), None)
        if oldest is not None:
            self.end(oldest)
            oldest.transport.disconnect(False)

    def _make_protocol(self) -> BoundedProtocol:
        return BoundedProtocol(self, self._admit, self._frame_bytes)


class BoundedProtocol(WSProtocol):  # type: ignore[misc]
    """Connection of picows that reports the begin and the end of its handshake."""

    transport: WSTransport

    def __init__(self, acceptor: Acceptor, admit: Admit, frame_bytes: int) -> None:
        super().__init__(
            host_port=None,
            ws_path=None,
            is_client_side=False,
            ws_listener_factory=self._admit,
            logger=_picows_log,
            disconnect_on_exception=True,
            websocket_handshake_timeout=HANDSHAKE_TIMEOUT,
            enable_auto_ping=False,
            auto_ping_idle_timeout=0.0,
            auto_ping_reply_timeout=0.0,
            auto_ping_strategy=WSAutoPingStrategy.PING_WHEN_IDLE,
            enable_auto_pong=False,
            max_frame_size=frame_bytes,
            extra_headers=None,
            read_buffer_init_size=READ_BUFFER_SIZE,
        )
        self._acceptor, self._admit_request = acceptor, admit

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._acceptor.begin(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._acceptor.end(self)
        super().connection_lost(exc)

    def _admit(self, request: WSUpgradeRequest) -> WSUpgradeResponseWithListener:
        asyncio.get_running_loop().call_soon(self._end_handshake)
        return self._admit_request(request)

    def _end_handshake(self) -> None:
        """End the handshake unless the request was refused; that connection counts until its socket is closed."""
        if not self.transport.underlying_transport.is_closing():
            self._acceptor.end(self)


def limit_connections(wanted: int) -> int:
    """Return how many clients the process can serve, at most `wanted`; raise its descriptor limit if needed."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + MAX_HANDSHAKES + RESERVED_DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    with contextlib.suppress(OSError, ValueError):  # macOS has a further limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(1, min(wanted, soft - MAX_HANDSHAKES - RESERVED_DESCRIPTORS))
