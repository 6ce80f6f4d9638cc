"""How long things took, in a few numbers and little memory.

Where a server can be reached, and how it takes that place.

Who may connect to a bridge server.

How a server begins and ends, whatever it serves."""

from __future__ import annotations

import asyncio
import errno
import hmac
import math
import signal
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from types import FrameType
from urllib.parse import parse_qs, urlsplit

from racer_env.errors import BridgeError, RacerError


class Latencies:
    """Durations, counted in steps of about a fifth of an octave: percentiles are right to 15 %."""

    _PER_OCTAVE = 5
    _OCTAVES = 40

    def __init__(self) -> None:
        self._counts = [0] * (self._PER_OCTAVE * self._OCTAVES)
        self._total = self._number = self._longest = 0

    def add(self, nanoseconds: int) -> None:
        """One more."""
        self._number += 1
        self._total += nanoseconds
        self._longest = max(self._longest, nanoseconds)
        step = int(math.log2(max(nanoseconds, 1)) * self._PER_OCTAVE)
        self._counts[min(step, len(self._counts) - 1)] += 1

    def percentile(self, percent: float) -> float:
        """Nanoseconds that so many per cent took at most."""
        wanted, seen = self._number * percent / 100.0, 0
        for step, count in enumerate(self._counts):
            seen += count
            if count and seen >= wanted:
                return min(float(2.0 ** ((step + 1) / self._PER_OCTAVE)), float(self._longest))
        return 0.0

    def summary(self) -> dict[str, float]:
        """For a log line, in microseconds."""
        mean = self._total / self._number if self._number else 0.0
        values = {"mean": mean, "p50": self.percentile(50), "p99": self.percentile(99), "max": float(self._longest)}
        return {f"{name}_us": round(value / 1000.0, 1) for name, value in values.items()}


BACKLOG = 512
"""Connections that may wait to be accepted."""
RECEIVE_BUFFER = 16 * 1024
"""Bytes that a client may send ahead of what is read, more or less: the operating system has its own idea of it."""


@dataclass(frozen=True)
class Address:
    host: str = "127.0.0.1"
    port: int = 9876

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class PortTakenError(BridgeError):
    """Somebody else listens there."""


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


Refusal = tuple[HTTPStatus, str]


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach a host name or address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Access:
    """Programs on this machine may connect; anyone else needs the token, and pages in a browser may not at all.

    A browser tells which page a connection is for, in `Origin`, and lets any page connect to anything. Other programs
    send no Origin, or the address of the server itself.
    """

    def __init__(self, host: str, token: str | None) -> None:
        if not is_loopback(host) and not token:
            raise BridgeError(f"{host} can be reached by others: choose a token for them, --token SECRET")
        self._token = _bytes(token) if token else None

    def refusal(self, target: str, headers: Mapping[str, str]) -> Refusal | None:
        """Why a request to upgrade is refused, with its HTTP status; None to let it in."""
        path, _, query = target.partition("?")
        if path != "/":
            return HTTPStatus.NOT_FOUND, "the bridge is at /"
        if not self._is_own_origin(headers):
            return HTTPStatus.FORBIDDEN, "pages of other origins may not use the bridge"
        if self._token is not None and not self._has_token(query, headers):
            return HTTPStatus.UNAUTHORIZED, "this bridge needs its token: as a bearer in Authorization, or ?token="
        return None

    def _is_own_origin(self, headers: Mapping[str, str]) -> bool:
        origin = headers.get("Origin")
        if origin is None:
            return True
        try:
            url, host = urlsplit(origin), urlsplit("//" + headers.get("Host", ""))
            same = bool(url.hostname) and (url.hostname, url.port) == (host.hostname, host.port)
        except ValueError:
            return False
        # A name that someone else's DNS points at this machine is no loopback name: a token must do there.
        return same and (self._token is not None or is_loopback(url.hostname or ""))

    def _has_token(self, query: str, headers: Mapping[str, str]) -> bool:
        assert self._token is not None
        scheme, _, bearer = headers.get("Authorization", "").partition(" ")
        offered = bearer.strip() if scheme.lower() == "bearer" else parse_qs(query).get("token", [""])[0]
        return hmac.compare_digest(_bytes(offered), self._token)


def _bytes(secret: str) -> bytes:
    """As it was typed or sent, whether that was UTF-8 or not."""
    return secret.encode("utf-8", "surrogateescape")


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
