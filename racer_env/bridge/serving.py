"""How a server begins and ends, whatever it serves."""

from __future__ import annotations

import asyncio
import signal
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from racer_env.bridge.listening import Address, PortTakenError, free_port, listen_on
from racer_env.errors import BridgeError, RacerError

SWITCH_INTERVAL = 0.0005
"""Seconds for which another thread, that builds a track or draws, may hold up the connections, at a time."""

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


class Server(ABC):
    """Serves at an address until it is told to stop."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._stopped = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: socket.socket | None = None

    def listen(self) -> socket.socket:
        """Take the port. Whoever connects from now on waits for `serve`."""
        try:
            self._listener = listen_on(self.address)
        except PortTakenError as error:
            port = free_port(self.address)
            raise BridgeError(f"{error}; {port} is free: --port {port}") from None
        self.address = Address(self.address.host, self._listener.getsockname()[1])
        return self._listener

    async def serve(self, started: Callable[[Address], None] = lambda address: None) -> None:
        """Listen, say so, and return when `stop` was called and everyone was told."""
        listener = self._listener or self.listen()
        self._loop = asyncio.get_running_loop()
        await self._serve(listener, started)

    def stop(self) -> None:
        """End `serve`, also before it has begun; from any thread, and from a signal handler."""
        if self._loop is None:
            self._stopped.set()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopped.set)

    @abstractmethod
    async def _serve(self, listener: socket.socket, started: Callable[[Address], None]) -> None:
        """Say that it has started, and serve until `_stopped` is set. Closes the listener."""


def run_server(server: Server, started: Callable[[Address], None], make_loop: LoopFactory | None = None) -> None:
    """Serve until SIGINT or SIGTERM."""
    with ended_by_signals(server.stop), asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(server.serve(started))


@contextmanager
def ended_by_signals(end: Callable[[], None]) -> Iterator[None]:
    """SIGINT and SIGTERM call this, which ends what is done meanwhile. Terminals and wrappers like to send several of
    them: the process that was told to end by the first ignores the others."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        end()

    handlers = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
        handlers = dict.fromkeys(handlers, signal.SIG_IGN)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def uvloop_factory() -> LoopFactory:
    """What makes loops of uvloop, where it is installed."""
    try:
        import uvloop as fast
    except ImportError:
        raise RacerError(
            "uvloop is not installed: pip install uvloop (not on Windows), or leave --uvloop out"
        ) from None
    return fast.new_event_loop
