"""The bridge server: who is let in, and who must go. See `connection` for what it does for a client."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from http import HTTPStatus

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
from racer_env.bridge.listening import BACKLOG, Address
from racer_env.bridge.serving import SWITCH_INTERVAL, Server
from racer_env.bridge.session import Limits
from racer_env.bridge.tracks import TrackBuilder, TrackShelf

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
