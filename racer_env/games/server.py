"""The games server: it accepts clients, disconnects them, and logs tick statistics."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from racer_env.bridge.net import Server, ServerAddress
from racer_env.games.client_session import ClientSession, SessionLimits
from racer_env.games.protocol import OFFERS, HandshakeMessage
from racer_env.games.supervisor import GamesConfig, GameSupervisor, log
from racer_env.games.worker_process import GamesError
from racer_env.games.worker_protocol import TickStats

LOG_INTERVAL = 5.0
"""Time between two log lines with tick statistics [s]."""
Result = TypeVar("Result")


class GamesServer(Server):
    """Serves games until `stop` is called.

    `serve` calls its argument with the address once the games are set up. It raises GamesError if they cannot start or
    cannot continue.
    """

    def __init__(self, address: ServerAddress, config: GamesConfig, limits: SessionLimits | None = None) -> None:
        super().__init__(address)
        self.supervisor = GameSupervisor(config, self.stop)
        self._config, self._limits = config, limits or SessionLimits()
        self._sessions: dict[ClientSession, asyncio.Task[None]] = {}

    @property
    def client_count(self) -> int:
        return len(self._sessions)

    def submit(self, command: Coroutine[Any, Any, Result]) -> Future[Result] | None:
        """Run a coroutine of the supervisor from another thread; return None if the server has just ended."""
        assert self._loop is not None
        try:
            return asyncio.run_coroutine_threadsafe(command, self._loop)
        except RuntimeError:
            command.close()
            return None

    async def _serve(self, listener: socket.socket, started: Callable[[ServerAddress], None]) -> None:
        try:
            if await self._start_games():
                await self._accept_clients(listener, started)
        finally:
            listener.close()
            await self.supervisor.stop()
        if self.supervisor.tick_stats:
            log.warning(summary(self.supervisor.tick_stats))
        if self.supervisor.problem is not None:
            raise GamesError(f"the games cannot continue ({self.supervisor.problem!r}): see the log")

    async def _start_games(self) -> bool:
        """Start the games; return False if the server is stopped before they are set up."""
        starting, stopping = asyncio.create_task(self.supervisor.start()), asyncio.create_task(self._stopped.wait())
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not starting.done():
            starting.cancel()
            return False
        starting.result()
        return True

    async def _accept_clients(self, listener: socket.socket, started: Callable[[ServerAddress], None]) -> None:
        """Serve clients until the server is stopped."""
        server = await asyncio.start_server(self._admit, sock=listener, limit=self._limits.line_size)
        logging_task = asyncio.create_task(self._log_stats())
        try:
            started(self.address)
            await self._stopped.wait()
        finally:
            logging_task.cancel()
            server.close()
            await self._end_sessions()

    async def _admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = ClientSession(self.supervisor, self._limits, reader, writer, lambda: len(self._sessions))
        if len(self._sessions) >= self._limits.clients and not self._make_room():
            await session.disconnect(f"{self._limits.clients} clients are connected, which is the limit")
            return
        task = asyncio.current_task()
        assert task is not None
        self._sessions[session] = task
        log.info("%s connected", session.name)
        config = self._config
        try:
            await session.serve(HandshakeMessage(config.num_games, config.game, config.hz, config.frames, OFFERS))
        finally:
            self._sessions.pop(session, None)
            self.supervisor.remove_driver(session.name)
            log.info("%s disconnected", session.name)

    def _make_room(self) -> bool:
        """Disconnect the client that has been silent for longest, if that is too long; return whether one was."""
        session = max(self._sessions, key=lambda session: session.silent_seconds)
        timeout = self._limits.silent_timeout
        if session.silent_seconds < timeout:
            return False
        session.set_cancel_reason(
            f"silent for more than {timeout:g} s, and {self._limits.clients} clients are the limit"
        )
        self._sessions.pop(session).cancel()
        return True

    async def _log_stats(self) -> None:
        """Log tick statistics regularly, as a warning if games do not keep up."""
        while True:
            await asyncio.sleep(LOG_INTERVAL)
            stats = self.supervisor.tick_stats
            slow = [each for each in stats if not each.keeps_up]
            if slow:
                log.warning(slowness_warning(slow))
            elif stats:
                log.info(summary(stats))

    async def _end_sessions(self) -> None:
        tasks = list(self._sessions.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def summary(stats: list[TickStats]) -> str:
    """Describe tick rates and lateness in one line."""
    lowest = min(each.rate for each in stats)
    highest = max(each.rate for each in stats)
    rates = f"{lowest:.1f}" if highest - lowest < 0.05 else f"{lowest:.1f} to {highest:.1f}"
    p50, p99 = max(each.late_p50 for each in stats), max(each.late_p99 for each in stats)
    latest, skipped = max(each.late_max for each in stats), sum(each.skipped for each in stats)
    return (
        f"{len(stats)} game{'s' * (len(stats) > 1)} at {rates} of {stats[0].hz:g} ticks/s; ticks are late by "
        f"{p50:.2f} ms (median), {p99:.1f} ms (99 %), {latest:.0f} ms (at most); {skipped} skipped"
    )


def slowness_warning(slow: list[TickStats]) -> str:
    """Describe which games are too slow, and what to do about it."""
    games = ", ".join(f"game {each.game_id} {each.rate:.1f}" for each in slow)
    return f"the machine does not keep up with {slow[0].hz:g} ticks/s: {games}; use fewer games or a lower --hz"
