"""The games server: who is let in, and who must go. See `guest` for what it does for a client."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from racer_env.bridge.net import Address, Server
from racer_env.games.client_session import Guest, Limits
from racer_env.games.protocol import handshake
from racer_env.games.supervisor import Arcade, Plan, log
from racer_env.games.worker_process import GamesError
from racer_env.games.worker_protocol import ClockReport

REPORT_SECONDS = 5.0
"""Between two lines in the log on how steadily the games run."""
Result = TypeVar("Result")


class GamesServer(Server):
    """Serves games until it is told to stop.

    `serve` says where the games are when they have started. It raises GamesError if they cannot, or cannot go on.
    """

    def __init__(self, address: Address, plan: Plan, limits: Limits | None = None) -> None:
        super().__init__(address)
        self.arcade = Arcade(plan, self.stop)
        self._plan, self._limits = plan, limits or Limits()
        self._guests: dict[Guest, asyncio.Task[None]] = {}

    @property
    def guest_count(self) -> int:
        return len(self._guests)

    def submit(self, order: Coroutine[Any, Any, Result]) -> Future[Result] | None:
        """Have something done by a running server, from another thread; None if it has just ended."""
        assert self._loop is not None
        try:
            return asyncio.run_coroutine_threadsafe(order, self._loop)
        except RuntimeError:
            order.close()
            return None

    async def _serve(self, listener: socket.socket, started: Callable[[Address], None]) -> None:
        try:
            if await self._open():
                await self._receive(listener, started)
        finally:
            listener.close()
            await self.arcade.close()
        if self.arcade.clocks:
            log.warning(summary(self.arcade.clocks))
        if self.arcade.problem is not None:
            raise GamesError(f"the games cannot go on ({self.arcade.problem!r}): the log has the details")

    async def _open(self) -> bool:
        """Whether the games are there before somebody stops the server."""
        opening, stopping = asyncio.create_task(self.arcade.open()), asyncio.create_task(self._stopped.wait())
        await asyncio.wait((opening, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not opening.done():
            opening.cancel()
            return False
        opening.result()
        return True

    async def _receive(self, listener: socket.socket, started: Callable[[Address], None]) -> None:
        """Guests, until somebody stops the server."""
        server = await asyncio.start_server(self._admit, sock=listener, limit=self._limits.line_bytes)
        watch = asyncio.create_task(self._watch())
        try:
            started(self.address)
            await self._stopped.wait()
        finally:
            watch.cancel()
            server.close()
            await self._farewell()

    async def _admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        guest = Guest(self.arcade, self._limits, reader, writer, lambda: len(self._guests))
        if len(self._guests) >= self._limits.clients and not self._make_room():
            await guest.send_away(f"{self._limits.clients} clients are connected, which is the limit")
            return
        task = asyncio.current_task()
        assert task is not None
        self._guests[guest] = task
        log.info("%s has come", guest.name)
        plan = self._plan
        try:
            await guest.serve(handshake(plan.game, plan.num_games, plan.hz, plan.frames))
        finally:
            self._guests.pop(guest, None)
            self.arcade.leave(guest.name)
            log.info("%s has gone", guest.name)

    def _make_room(self) -> bool:
        """Whether somebody has been silent for so long that it must go."""
        guest = max(self._guests, key=lambda guest: guest.silent_seconds)
        if guest.silent_seconds < self._limits.silent_seconds:
            return False
        guest.explain_end(
            f"silent for more than {self._limits.silent_seconds:g} s, and {self._limits.clients} clients are the limit"
        )
        self._guests.pop(guest).cancel()
        return True

    async def _watch(self) -> None:
        """Tell how steadily the games run; when they do not keep up, louder."""
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            clocks = self.arcade.clocks
            behind = [clock for clock in clocks if not clock.keeps_up]
            if behind:
                log.warning(complaint(behind))
            elif clocks:
                log.info(summary(clocks))

    async def _farewell(self) -> None:
        guests = list(self._guests.values())
        for task in guests:
            task.cancel()
        await asyncio.gather(*guests, return_exceptions=True)


def summary(clocks: list[ClockReport]) -> str:
    """How steadily the games run, in a line."""
    lowest = min(clock.rate for clock in clocks)
    highest = max(clock.rate for clock in clocks)
    rates = f"{lowest:.1f}" if highest - lowest < 0.05 else f"{lowest:.1f} to {highest:.1f}"
    p50, p99 = (max(values) for values in zip(*((clock.late_p50, clock.late_p99) for clock in clocks), strict=True))
    latest, skipped = max(clock.late_max for clock in clocks), sum(clock.skipped for clock in clocks)
    return (
        f"{len(clocks)} game{'s' * (len(clocks) > 1)} at {rates} of {clocks[0].hz:g} ticks/s; ticks are late by "
        f"{p50:.2f} ms (median), {p99:.1f} ms (99 %), {latest:.0f} ms (at most); {skipped} skipped"
    )


def complaint(behind: list[ClockReport]) -> str:
    """That the machine is too slow, and by how much."""
    games = ", ".join(f"game {clock.game_id} {clock.rate:.1f}" for clock in behind)
    return f"the machine does not keep up with {behind[0].hz:g} ticks/s: {games}; fewer games or a lower --hz would do"
