"""RacingGameClient: drive the games of a server over TCP."""

from __future__ import annotations

import math
import operator
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

import orjson

from racer_env.bridge.net import ServerAddress
from racer_env.errors import ActionError, BridgeError, ContractError, os_reason, short
from racer_env.games.protocol import (
    ACTION_KEYS,
    GameState,
    ServerError,
    clamp,
    parse_handshake,
    parse_line,
    parse_state,
    parse_states,
    parse_stats,
)
from racer_env.games.worker_protocol import Action

DEFAULT_PORT = 5555
DEFAULT_TIMEOUT = 30.0
"""Time limit for connecting and for every reply [s]."""
MAX_LINE_SIZE = 2**28
"""Maximum size of a reply [bytes]; enough for the frames of thousands of games."""
CHUNK_SIZE = 2**18
"""Maximum amount of data received at once [bytes]."""
MIN_TIMEOUT = 0.001
"""Minimum socket timeout [s]; 0 would switch the socket to non-blocking."""
LAST_MESSAGE_TIMEOUT = 0.1
"""Time to wait for the last message of a server that has closed the connection [s]."""

Result = TypeVar("Result")


class RacingGameClient:
    """Client for games that run freely on a server, each with the latest action that was set.

    with RacingGameClient("127.0.0.1", 5555) as client:
        client.set_action({"steer": 0.0, "gas": 0.5, "brake": 0.0}, 0)
        telemetry, frame, reward, done, info = client.get_state(0)

    port, timeout: None for the default; timeout is the limit for connecting and for every reply [s].
    frames: whether states have frames; if not, servers that can leave them out are asked to.

    A new client is connected. `connect` connects it again after `disconnect`, `close` or an error, and does nothing if
    it is connected, so that programs that call it first work as well.

    Every reply is checked; an invalid one raises ContractError. BridgeError means that the server cannot be reached,
    has closed the connection, or refuses a request (ServerError). After any error but ServerError the connection is
    closed, because later replies could not be matched to requests.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int | None = None,
        timeout: float | None = None,
        *,
        frames: bool = True,
    ) -> None:
        timeout = DEFAULT_TIMEOUT if timeout is None else timeout
        if not 0.0 < timeout < math.inf:
            raise BridgeError(f"timeout must be a number of seconds above 0, not {timeout!r}")
        self._address = ServerAddress(host, DEFAULT_PORT if port is None else port)
        self._frames, self._timeout = frames, timeout
        self._received = bytearray()
        self._socket: socket.socket | None = None
        self.connect()

    @property
    def connected(self) -> bool:
        """True if the connection is open."""
        return self._socket is not None

    def connect(self) -> None:
        """Connect to the server and read its handshake; do nothing if the connection is open."""
        if self.connected:
            return
        self._received.clear()
        self._socket = self._open_socket()
        try:
            self.handshake = self._reply()
            handshake = parse_handshake(self.handshake)
            self.num_games = handshake.num_games
            self._offers = frozenset(handshake.offers)
        except BaseException:
            self._drop()
            raise

    def disconnect(self) -> None:
        """End the session, as `close` does; `connect` begins another one."""
        self.close()

    def set_action(self, action: Mapping[str, float] | Sequence[float], game_id: int = 0) -> None:
        """Set steer (−1 to 1, right is positive), gas and brake (0 to 1) from now on; values beyond are clamped.

        action: the three values in this order, or by name; values that are not named are 0.
        """
        values = dict(zip(ACTION_KEYS, _check_action(action), strict=True))
        message = {"type": "SET_ACTION", "game_id": self._check_game_id(game_id), "action": values}
        with self._closing_on_error():
            self._send(message)

    def get_state(self, game_id: int = 0) -> GameState:
        """Return the current state of a game, or with `done` the end of an episode that was not yet reported."""
        return self._state("GET_STATE", game_id)

    def reset(self, game_id: int = 0) -> GameState:
        """Begin a new episode of a game and return its first state."""
        return self._state("RESET", game_id)

    def states(self) -> list[GameState]:
        """Return the states of all games, in one round trip if the server offers that."""
        games = range(self.num_games)
        if "GET_STATES" not in self._offers:
            return [self.get_state(game_id) for game_id in games]
        return self._ask(self._request("GET_STATES"), lambda reply: parse_states(reply, games, self._frames))

    def stats(self) -> dict[str, Any]:
        """Return tick rates and lateness of the games, if the server offers them; see docs/games.md."""
        if "GET_STATS" not in self._offers:
            raise BridgeError("this server offers no tick statistics")
        return self._ask({"type": "GET_STATS"}, lambda reply: parse_stats(reply, self.num_games))

    def close(self) -> None:
        """End the session."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.sendall(b'{"type":"CLOSE"}\n')
        self._drop()

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _open_socket(self) -> socket.socket:
        try:
            connection = socket.create_connection((self._address.host, self._address.port), self._timeout)
        except (OSError, OverflowError, UnicodeError) as error:
            raise BridgeError(f"no games at {self._address}: {os_reason(error)}; is the server running?") from None
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _request(self, kind: str, game_id: int | None = None) -> dict[str, Any]:
        message: dict[str, Any] = {"type": kind}
        if game_id is not None:
            message["game_id"] = game_id
        if not self._frames and "frame" in self._offers:
            message["frame"] = False
        return message

    def _check_game_id(self, game_id: int) -> int:
        try:
            number = -1 if isinstance(game_id, bool) else operator.index(game_id)
        except TypeError:
            number = -1
        if not 0 <= number < self.num_games:
            raise BridgeError(f"game_id is a whole number from 0 to {self.num_games - 1}, not {game_id!r}")
        return number

    def _open(self) -> socket.socket:
        if self._socket is None:
            raise BridgeError(f"the connection to the games at {self._address} is closed: connect() opens it again")
        return self._socket

    def _state(self, kind: str, game_id: int) -> GameState:
        number = self._check_game_id(game_id)
        return self._ask(self._request(kind, number), lambda reply: parse_state(reply, number, self._frames))

    def _ask(self, message: dict[str, Any], parse: Callable[[dict[str, Any]], Result]) -> Result:
        """Send a request and return its parsed reply."""
        with self._closing_on_error():
            self._send(message)
            return parse(self._reply())

    @contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        """Close the connection on any exception but ServerError, including Ctrl-C.

        Otherwise later replies would be matched to the wrong requests.
        """
        try:
            yield
        except ServerError:
            raise
        except BaseException:
            self._drop()
            raise

    def _send(self, message: dict[str, Any]) -> None:
        connection = self._open()
        try:
            self._check_nothing_received(connection)
            connection.settimeout(self._timeout)
            connection.sendall(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))
        except OSError as error:
            self._explain(error)

    def _check_nothing_received(self, connection: socket.socket) -> None:
        """Raise if a message arrived before the request; the server may send an ERROR when it shuts down."""
        connection.settimeout(0.0)
        with suppress(BlockingIOError):
            self._receive(connection)
        if self._received:
            line, _, rest = bytes(self._received).partition(b"\n")
            self._received[:] = rest
            parse_line(line)
            raise ContractError(f"nothing expected before a request, got {short(line)}")

    def _reply(self) -> dict[str, Any]:
        """Return the next message of the server."""
        connection = self._open()
        deadline = time.monotonic() + self._timeout
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if searched > MAX_LINE_SIZE:
                raise ContractError(f"a line of at most {MAX_LINE_SIZE} bytes expected")
            try:
                connection.settimeout(max(MIN_TIMEOUT, deadline - time.monotonic()))
                self._receive(connection)
                if time.monotonic() > deadline and b"\n" not in self._received:
                    raise TimeoutError
            except OSError as error:
                self._explain(error)
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return parse_line(line)

    def _receive(self, connection: socket.socket) -> None:
        """Receive more data."""
        part = connection.recv(CHUNK_SIZE)
        if not part:
            raise BridgeError(f"the games server at {self._address} has closed the connection")
        self._received += part

    def _explain(self, error: OSError) -> NoReturn:
        """Close the connection and raise an error with the reason; the server's last message, if any, is the reason."""
        if isinstance(error, TimeoutError):
            self._drop()
            raise BridgeError(f"no reply from the games at {self._address} within {self._timeout:g} s") from None
        with suppress(OSError):
            self._open().settimeout(LAST_MESSAGE_TIMEOUT)
            self._received += self._open().recv(CHUNK_SIZE)
        received = bytes(self._received)
        self._drop()
        if b'"ERROR"' in received:
            parse_line(received.splitlines()[-1])
        raise BridgeError(
            f"the games server at {self._address} has closed the connection ({os_reason(error)})"
        ) from None

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _check_action(action: Mapping[str, float] | Sequence[float]) -> Action:
    """Return steer, gas and brake, clamped; raise ActionError unless they are finite numbers."""
    try:
        values = [action.get(key, 0.0) for key in ACTION_KEYS] if isinstance(action, Mapping) else list(action)
        steer, gas, brake = map(float, values)
    except (TypeError, ValueError, OverflowError):
        raise ActionError(f"an action is steer, gas and brake, by name or in this order, not {action!r}") from None
    if not all(map(math.isfinite, (steer, gas, brake))):
        raise ActionError(f"an action is three finite numbers, not {action!r}")
    return clamp((steer, gas, brake))
