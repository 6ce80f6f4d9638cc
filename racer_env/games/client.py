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

from racer_env.bridge.net import Address
from racer_env.bridge.validation import short
from racer_env.errors import ActionError, BridgeError, ContractError
from racer_env.games.protocol import (
    ACTION_KEYS,
    GameState,
    ServerError,
    clamped,
    handshake_of,
    parse_line,
    state_of,
    states_of,
    stats_of,
)
from racer_env.games.worker_protocol import Action

DEFAULT_PORT = 5555
LONGEST_LINE = 2**28
"""Bytes of a reply: the frames of a thousand games."""
CHUNK = 2**18
LEAST_WAIT = 0.001
"""For which a socket can be told to wait, at least [s]: not at all means something else."""
LAST_WORDS_SECONDS = 0.1
"""For which what a server said before it went is waited for."""

Result = TypeVar("Result")


class RacingGameClient:
    """Drives games that run freely on a server, each with the latest action that was set.

    with RacingGameClient("127.0.0.1", 5555) as client:
        client.set_action({"steer": 0.0, "gas": 0.5, "brake": 0.0}, 0)
        telemetry, frame, reward, done, info = client.get_state(0)

    frames: without them, states have no pictures, and servers that can leave them out are asked to.
    timeout: for connecting and for every reply [s].

    All that comes back is checked; a ContractError says what is wrong with it, and the value goes no further. A
    BridgeError says that the server cannot be reached, has gone, or refuses something (ServerError). But for what the
    server refuses, the connection is closed then: what comes after that could not be told apart.
    """

    def __init__(
        self, host: str = "127.0.0.1", port: int = DEFAULT_PORT, *, frames: bool = True, timeout: float = 30.0
    ) -> None:
        if not 0.0 < timeout < math.inf:
            raise BridgeError(f"timeout must be a number of seconds above 0, not {timeout!r}")
        self._address = Address(host, port)
        self._frames, self._timeout = frames, timeout
        self._received = bytearray()
        self._socket = self._connect()
        try:
            message = self._reply()
            self.handshake = handshake_of(message)
            self.num_games: int = message["num_games"]
            self._offers = frozenset(message.get("offers", ()))
        except BaseException:
            self._drop()
            raise

    def set_action(self, action: Mapping[str, float] | Sequence[float], game_id: int = 0) -> None:
        """Steer (−1 to 1, right is positive), gas and brake (0 to 1) from now on; what is beyond is clamped."""
        steer, gas, brake = _checked(action)
        wanted = {"steer": steer, "gas": gas, "brake": brake}
        message = {"type": "SET_ACTION", "game_id": self._known(game_id), "action": wanted}
        with self._in_step():
            self._send(message)

    def get_state(self, game_id: int = 0) -> GameState:
        """How a game is now, or how its last episode ended if that is news: then `done` is true."""
        return self._state("GET_STATE", game_id)

    def reset(self, game_id: int = 0) -> GameState:
        """Begin a new episode of a game."""
        return self._state("RESET", game_id)

    def states(self) -> list[GameState]:
        """Of all games, in one round trip if the server offers that."""
        games = range(self.num_games)
        if "GET_STATES" not in self._offers:
            return [self.get_state(game_id) for game_id in games]
        return self._ask(self._question("GET_STATES"), lambda reply: states_of(reply, games, self._frames))

    def stats(self) -> dict[str, Any]:
        """How steadily the games run, from a server that tells: see docs/games.md."""
        if "GET_STATS" not in self._offers:
            raise BridgeError("this server does not tell how steadily its games run")
        return self._ask({"type": "GET_STATS"}, lambda reply: stats_of(reply, self.num_games))

    def close(self) -> None:
        """Say goodbye and go."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.sendall(b'{"type":"CLOSE"}\n')
        self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _connect(self) -> socket.socket | None:
        try:
            connection = socket.create_connection((self._address.host, self._address.port), self._timeout)
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BridgeError(f"no games at {self._address}: {reason}; is the server running?") from None
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _question(self, kind: str, game_id: int | None = None) -> dict[str, Any]:
        message: dict[str, Any] = {"type": kind}
        if game_id is not None:
            message["game_id"] = game_id
        if not self._frames and "frame" in self._offers:
            message["frame"] = False
        return message

    def _known(self, game_id: int) -> int:
        try:
            number = -1 if isinstance(game_id, bool) else operator.index(game_id)
        except TypeError:
            number = -1
        if not 0 <= number < self.num_games:
            raise BridgeError(f"game_id is a whole number from 0 to {self.num_games - 1}, not {game_id!r}")
        return number

    def _open(self) -> socket.socket:
        if self._socket is None:
            raise BridgeError(f"the connection to the games at {self._address} is closed")
        return self._socket

    def _state(self, kind: str, game_id: int) -> GameState:
        number = self._known(game_id)
        return self._ask(self._question(kind, number), lambda reply: state_of(reply, number, self._frames))

    def _ask(self, message: dict[str, Any], judge: Callable[[dict[str, Any]], Result]) -> Result:
        """What the judge makes of the reply."""
        with self._in_step():
            self._send(message)
            return judge(self._reply())

    @contextmanager
    def _in_step(self) -> Iterator[None]:
        """Whatever goes wrong but an ERROR of the server costs the connection, Ctrl-C too: later replies would be
        taken for those to other requests."""
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
            self._refuse_unasked(connection)
            connection.settimeout(self._timeout)
            connection.sendall(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))
        except OSError as error:
            self._explain(error)

    def _refuse_unasked(self, connection: socket.socket) -> None:
        """Before a request nothing can have come, but for an ERROR: the server says that it goes, say."""
        connection.settimeout(0.0)
        with suppress(BlockingIOError):
            self._receive(connection)
        if self._received:
            line, _, rest = bytes(self._received).partition(b"\n")
            self._received[:] = rest
            parse_line(line)
            raise ContractError(f"nothing expected before a request, got {short(line)}")

    def _reply(self) -> dict[str, Any]:
        """The next message of the server."""
        connection = self._open()
        until = time.monotonic() + self._timeout
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if searched > LONGEST_LINE:
                raise ContractError(f"a line of at most {LONGEST_LINE} bytes expected")
            try:
                connection.settimeout(max(LEAST_WAIT, until - time.monotonic()))
                self._receive(connection)
                if time.monotonic() > until and b"\n" not in self._received:
                    raise TimeoutError
            except OSError as error:
                self._explain(error)
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return parse_line(line)

    def _receive(self, connection: socket.socket) -> None:
        """Some more of what the server sends."""
        part = connection.recv(CHUNK)
        if not part:
            raise BridgeError(f"the games server at {self._address} has gone")
        self._received += part

    def _explain(self, error: OSError) -> NoReturn:
        """Close the connection, which is out of step now, and say why. What the server said last explains it best."""
        if isinstance(error, TimeoutError):
            self._drop()
            raise BridgeError(f"no reply from the games at {self._address} within {self._timeout:g} s") from None
        with suppress(OSError):
            self._open().settimeout(LAST_WORDS_SECONDS)
            self._received += self._open().recv(CHUNK)
        last_words = bytes(self._received)
        self._drop()
        if b'"ERROR"' in last_words:
            parse_line(last_words.splitlines()[-1])
        raise BridgeError(f"the games server at {self._address} has gone ({error.strerror or error})") from None

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _checked(action: Mapping[str, float] | Sequence[float]) -> Action:
    """Three finite numbers, clamped."""
    try:
        values = [action[key] for key in ACTION_KEYS] if isinstance(action, Mapping) else list(action)
        steer, gas, brake = map(float, values)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ActionError(f"an action is steer, gas and brake, by name or in this order, not {action!r}") from None
    if not all(map(math.isfinite, (steer, gas, brake))):
        raise ActionError(f"an action is three finite numbers, not {action!r}")
    return clamped((steer, gas, brake))
