"""Parts that network servers share: address and listener, access policy, start and stop, latency statistics."""

from __future__ import annotations

import asyncio
import errno
import hmac
import math
import signal
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from types import FrameType
from urllib.parse import parse_qs, urlsplit

from racer_env.errors import BridgeError, RacerError, os_reason

BACKLOG = 512
"""Maximum number of connections that wait to be accepted."""
RECEIVE_BUFFER_SIZE = 16 * 1024
"""Requested size of a connection's receive buffer [bytes]; limits what a client can send ahead."""
SWITCH_INTERVAL = 0.0005
"""Thread switch interval [s]: the longest time for which a busy thread holds up the connections."""

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_ORIGIN_LENGTH = 80
"""Maximum length of a wrong origin in an error message [characters]."""

Origin = tuple[str, str, int]
"""Scheme, host and port of a web page."""
LoopFactory = Callable[[], asyncio.AbstractEventLoop]
Refusal = tuple[HTTPStatus, str]
"""HTTP status and reason of a refused connection."""


@dataclass(frozen=True)
class ServerAddress:
    """Host and port of a server."""

    host: str = "127.0.0.1"
    port: int = 9876

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class PortInUseError(BridgeError):
    """Another program listens on the port."""


def open_listener(address: ServerAddress) -> socket.socket:
    """Return a listening socket; connections inherit its options."""
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUseError(f"port {address.port} on {address.host} is taken") from None
        raise BridgeError(f"cannot listen on {address}: {os_reason(error)}") from None
    except OverflowError:
        raise BridgeError(f"a port is a number from 0 to 65535, not {address.port}") from None
    except UnicodeError:
        raise BridgeError(f"cannot listen on {address}: no host can have such a name") from None
    for option, value in ((socket.SO_RCVBUF, RECEIVE_BUFFER_SIZE), (socket.SO_KEEPALIVE, 1)):
        listener.setsockopt(socket.SOL_SOCKET, option, value)
    return listener


def find_free_port(address: ServerAddress) -> int:
    """Return a free port, preferably one just above that of the address."""
    for port in (*range(address.port + 1, min(address.port + 100, 65536)), 0):
        try:
            with open_listener(ServerAddress(address.host, port)) as listener:
                found: int = listener.getsockname()[1]
                return found
        except BridgeError:
            continue
    return 0


def is_loopback(host: str) -> bool:
    """Return whether only programs on this machine can reach a host name or address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class AccessPolicy:
    """Rules for who may connect: programs on this machine, other machines with the token, and pages of some origins.

    A browser lets any page connect to any address and names the page in `Origin`. Other programs send no Origin, or
    the address of the server itself.

    origins: origins of pages that may connect, as `http://localhost:3000`.
    """

    def __init__(self, host: str, token: str | None, origins: Collection[str] = ()) -> None:
        if not is_loopback(host) and not token:
            raise BridgeError(f"{host} can be reached from other machines: set a token with --token-file FILE")
        self._token = _bytes(token) if token else None
        self._origins = {parse_origin(origin) for origin in origins}

    def refusal(self, target: str, headers: Mapping[str, str]) -> Refusal | None:
        """Return why an upgrade request is refused; None if it is accepted."""
        path, _, query = target.partition("?")
        if path != "/":
            return HTTPStatus.NOT_FOUND, "connect to the path /"
        if not self._is_own_origin(headers) and not self._is_allowed_origin(headers):
            return (
                HTTPStatus.FORBIDDEN,
                "web pages of this origin are not allowed; bridge --allow-origin URL allows them",
            )
        if self._token is not None and not self._has_token(query, headers):
            return (
                HTTPStatus.UNAUTHORIZED,
                "this bridge requires a token: as Authorization: Bearer TOKEN, or ?token=TOKEN",
            )
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
        # Any domain can resolve to this machine: without a token, only loopback names count as the server's own.
        return same and (self._token is not None or is_loopback(url.hostname or ""))

    def _is_allowed_origin(self, headers: Mapping[str, str]) -> bool:
        try:
            return parse_origin(headers.get("Origin", "")) in self._origins
        except BridgeError:
            return False

    def _has_token(self, query: str, headers: Mapping[str, str]) -> bool:
        assert self._token is not None
        scheme, _, bearer = headers.get("Authorization", "").partition(" ")
        offered = bearer.strip() if scheme.lower() == "bearer" else parse_qs(query).get("token", [""])[0]
        return hmac.compare_digest(_bytes(offered), self._token)


def parse_origin(text: str) -> Origin:
    """Return the parts of an origin; raise unless it is one, such as `http://localhost:3000`."""
    try:
        url = urlsplit(text)
        port = url.port or DEFAULT_PORTS.get(url.scheme, 0)
    except ValueError:
        url, port = urlsplit(""), 0
    if not url.scheme or not url.hostname or "@" in url.netloc or url.path.strip("/") or url.query or url.fragment:
        raise BridgeError(f"an origin is written as http://localhost:3000, not {text[:MAX_ORIGIN_LENGTH]!r}")
    return url.scheme, url.hostname, port


def _bytes(secret: str) -> bytes:
    """Return the original bytes of a secret, which need not be valid UTF-8."""
    return secret.encode("utf-8", "surrogateescape")


class Server(ABC):
    """A server that listens at an address until `stop` is called."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self._stopped = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: socket.socket | None = None

    def listen(self) -> socket.socket:
        """Open the port. Clients that connect before `serve` wait."""
        try:
            self._listener = open_listener(self.address)
        except PortInUseError as error:
            port = find_free_port(self.address)
            raise BridgeError(f"{error}; {port} is free: --port {port}") from None
        self.address = ServerAddress(self.address.host, self._listener.getsockname()[1])
        return self._listener

    async def serve(self, started: Callable[[ServerAddress], None] = lambda address: None) -> None:
        """Listen, call `started`, and return when `stop` was called and all connections are closed."""
        listener = self._listener or self.listen()
        self._loop = asyncio.get_running_loop()
        await self._serve(listener, started)

    def stop(self) -> None:
        """End `serve`, even before it has begun. Safe to call from any thread and from a signal handler."""
        if self._loop is None:
            self._stopped.set()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopped.set)

    @abstractmethod
    async def _serve(self, listener: socket.socket, started: Callable[[ServerAddress], None]) -> None:
        """Call `started`, serve until `_stopped` is set, and close the listener."""


def run_server(server: Server, started: Callable[[ServerAddress], None], make_loop: LoopFactory | None = None) -> None:
    """Serve until SIGINT or SIGTERM."""
    with stop_on_signals(server.stop), asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(server.serve(started))


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on SIGINT and SIGTERM, which must end the body of the context.

    Terminals and wrappers often send several signals: after the first, the process ignores the others.
    """

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop()

    handlers = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
        handlers = dict.fromkeys(handlers, signal.SIG_IGN)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def uvloop_factory() -> LoopFactory:
    """Return the loop factory of uvloop; raise if it is not installed."""
    try:
        import uvloop as fast
    except ImportError:
        raise RacerError(
            "uvloop is not installed: pip install uvloop (not on Windows), or leave --uvloop out"
        ) from None
    return fast.new_event_loop


class LatencyHistogram:
    """Histogram of durations with five bins per octave: percentiles are accurate to 15 %."""

    _BINS_PER_OCTAVE = 5
    _OCTAVES = 40

    def __init__(self) -> None:
        self._counts = [0] * (self._BINS_PER_OCTAVE * self._OCTAVES)
        self._total = self._number = self._longest = 0

    def add(self, nanoseconds: int) -> None:
        self._number += 1
        self._total += nanoseconds
        self._longest = max(self._longest, nanoseconds)
        bin_ = int(math.log2(max(nanoseconds, 1)) * self._BINS_PER_OCTAVE)
        self._counts[min(bin_, len(self._counts) - 1)] += 1

    def percentile(self, percent: float) -> float:
        """Return the duration that `percent` of all durations do not exceed [ns]."""
        wanted, seen = self._number * percent / 100.0, 0
        for bin_, count in enumerate(self._counts):
            seen += count
            if count and seen >= wanted:
                return min(float(2.0 ** ((bin_ + 1) / self._BINS_PER_OCTAVE)), float(self._longest))
        return 0.0

    def summary(self) -> dict[str, float]:
        """Return mean, median, 99th percentile and maximum [µs] for a log line."""
        mean = self._total / self._number if self._number else 0.0
        values = {"mean": mean, "p50": self.percentile(50), "p99": self.percentile(99), "max": float(self._longest)}
        return {f"{name}_us": round(value / 1000.0, 1) for name, value in values.items()}
